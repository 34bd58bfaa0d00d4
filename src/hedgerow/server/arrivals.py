"""The first checks of a request, before its token is looked at: host, origin and size."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from hedgerow.server.problems import bad_request


def require_host(request: Request, hosts: Sequence[str]) -> None:
    """Refuse a request for a name that the service does not have, and one that another site's page sends."""
    host = request.headers.get("host", "").lower()
    name, _, port = host.rpartition(":")
    is_with_port = name in hosts and port.isascii() and port.isdigit()
    if host not in hosts and not is_with_port:
        raise bad_request(
            "Host must be a name of this service. Found another name. Use the address that its owner gave.", 421
        )
    origin = request.headers.get("origin")
    if origin is not None and request.method not in ("GET", "HEAD"):
        scheme, mark, site = origin.lower().partition("://")
        if not mark or scheme not in ("http", "https") or site != host:
            raise bad_request("Origin must be this service. Found another site. Send the request from a program.", 403)


def bearer_of(request: Request) -> str:
    """Return the token that a request has in its header, or an empty text."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""


async def read_body(request: Request, most: int) -> bytes:
    """Read the body; refuse one that is too large before all of it is read."""
    declared = request.headers.get("content-length", "0")
    is_number = declared.isascii() and declared.isdigit() and len(declared) < 18
    size = int(declared) if is_number else most + 1
    parts = []
    if size <= most:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                break
            parts.append(part)
    if size > most:
        raise bad_request(f"A request must have at most {most} bytes. Found more. Send several.", 413)
    return b"".join(parts)
