"""Requests to a service over one kept connection. A repeated request carries the same key, so it is billed once."""

from __future__ import annotations

import http.client
import os
import ssl
import threading
import time
import urllib.parse
import uuid
from typing import Any

from hedgerow._json import canonical, parse
from hedgerow.errors import BudgetExceeded, HedgerowError, InvalidInput, LedgerUnavailable, TooLarge

INTERFACE = "1"  # version of the service's interface that this client speaks
ATTEMPTS = 5
PASSING = (409, 429, 503)  # statuses that a repetition may overcome
WAITING = 202  # status of a purchase that waits for an owner
LONGEST_WAIT = 10.0  # seconds between two attempts
VARIABLE = "HEDGEROW_TOKEN"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
KINDS: dict[str, type[HedgerowError]] = {
    "budget-exceeded": BudgetExceeded,
    "too-large": TooLarge,
    "invalid-input": InvalidInput,
    "ledger-unavailable": LedgerUnavailable,
}


class ServiceError(HedgerowError):
    """A service cannot be reached, refuses a token, or has a fault."""


class ApprovalNeeded(ServiceError):
    """A purchase waits for an owner, or was refused by one. Nothing was spent.

    ``approval`` tells its id and its state.
    """

    def __init__(self, message: str, approval: dict[str, Any]) -> None:
        super().__init__(message)
        self.approval = approval


class ServiceConnection:
    """A kept connection to a service. Threads take turns."""

    def __init__(
        self, url: str, token: str | None = None, timeout: float = 180.0, context: ssl.SSLContext | None = None
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or parts.query:
            raise InvalidInput(
                "url must be the address of a service, without a token in it. Found another kind of address. Give "
                "one such as https://data.example.org."
            )
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise InvalidInput(
                "url must be https beyond this machine, because it carries a token. Found http. Use https."
            )
        given = token or os.environ.get(VARIABLE, "")
        if not given or not given.isascii() or not given.isprintable():
            raise InvalidInput(f"token must be the token of a person. Found none. Pass token=, or set {VARIABLE}.")
        self._host, self._port, self._prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self._context = (context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._token, self._timeout, self._lock = given, timeout, threading.Lock()
        self._kept: http.client.HTTPConnection | None = None

    def __repr__(self) -> str:
        return f"ServiceConnection({self._host!r})"

    def get(self, path: str, **parameters: Any) -> Any:
        """Return the JSON that an endpoint returns."""
        return parse(self.read(path, **parameters).decode())

    def read(self, path: str, **parameters: Any) -> bytes:
        """Return the bytes that an endpoint returns."""
        query = urllib.parse.urlencode({name: value for name, value in parameters.items() if value is not None})
        return self._request("GET", f"{path}?{query}" if query else path, None, {})

    def post(self, path: str, body: Any) -> Any:
        """Send JSON and return the JSON that comes back. All repetitions of one call carry the same key."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
        return parse(self._request("POST", path, canonical(body).encode(), headers).decode())

    def close(self) -> None:
        """Close the connection. A later request opens a new one."""
        with self._lock:
            self._drop()

    def _request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        """Send a request until it is answered or refused, at most ``ATTEMPTS`` times.

        While an earlier sending of the same request is still running in the service, the client waits for its outcome,
        for as long as it would wait for an answer.
        """
        sent = {"Authorization": f"Bearer {self._token}", "Accept": "application/json, */*", **headers}
        attempt, until = 0, time.monotonic() + self._timeout
        while True:
            try:
                status, found, content = self._once(method, self._prefix + path, body, sent)
            except ssl.SSLCertVerificationError:
                raise ServiceError(
                    f"The certificate of {self._host!r} must be valid for this name. Found a certificate that is not. "
                    "Pass context= if the service has an authority of its own."
                ) from None
            except (OSError, http.client.HTTPException):
                status, found, content = 0, {}, b""
            if 200 <= status < 300 and status != WAITING:
                self._require_interface(found)
                return content
            is_running = status == 409 and time.monotonic() < until
            if (status not in PASSING and status != 0) or (attempt == ATTEMPTS - 1 and not is_running):
                break
            time.sleep(_wait(found, attempt))
            attempt += not is_running
        if status == 0:
            raise ServiceError(
                f"A service must answer at {self._host!r}. Found none after {ATTEMPTS} attempts. Check the address "
                "and the network."
            )
        raise self._refusal(status, found, content)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request over the kept connection. Return its status, its headers and its body."""
        with self._lock:
            if self._kept is None:
                self._kept = self._open()
            try:
                self._kept.request(method, path, body, headers)
                response = self._kept.getresponse()
                content = response.read()
            except BaseException:
                self._drop()
                raise
            if response.will_close:
                self._drop()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, content

    def _open(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._context)

    def _drop(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _require_interface(self, headers: dict[str, str]) -> None:
        """Refuse a server that is older or newer than this client."""
        found = headers.get("hedgerow-interface", "none")
        if found == INTERFACE:
            return
        newer = found.isascii() and found.isdigit() and len(found) < 9 and int(found) > int(INTERFACE)
        what = "a newer service" if newer else "an older service, or none"
        todo = "Install a newer hedgerow here" if newer else "Check the address, or have the service updated"
        raise ServiceError(
            f"The service must speak version {INTERFACE} of the interface, as this client does. Found {found[:20]!r}: "
            f"{what}. {todo}."
        )

    def _refusal(self, status: int, headers: dict[str, str], content: bytes) -> HedgerowError:
        """Return the error for a refusal: the library's own kind and sentence, where the service names one."""
        try:
            record = parse(content.decode())
            name, detail = str(record["type"]).rpartition(":")[2], str(record["detail"])
        except (ValueError, KeyError, TypeError):
            self._require_interface(headers)
            return ServiceError(
                f"The service must answer with an answer or a refusal. Found status {status}. Try later."
            )
        if isinstance(approval := record.get("approval"), dict):
            return ApprovalNeeded(detail, approval)
        return KINDS.get(name, ServiceError)(detail)


def _wait(headers: dict[str, str], attempt: int) -> float:
    """Return the seconds to wait before the next attempt: what the service asks for, or twice as long each time."""
    asked = headers.get("retry-after", "")
    return min(LONGEST_WAIT, float(asked) if asked.isascii() and asked.isdigit() else 0.1 * 2**attempt)
