"""The application: the checks that every request passes, in this order, and then its endpoint.

    host and origin     a name that the service does not have is refused (DNS rebinding), and so is another site's page
    token               wrong, expired and revoked ones are refused alike; only the health of the service needs none
    rate                per token; wrong tokens per address
    endpoint and role   the path, the method, and the role of the token
    size and form       of the body
    repetition          a request with an idempotency key that was answered before gets the same answer

Errors are problem+json. An unexpected fault is logged by its type and place alone, because its message may quote data.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Match, Mount, Route

from hedgerow.errors import HedgerowError
from hedgerow.privacy.noise import random_token
from hedgerow.server.api import ENDPOINTS, Call, Endpoint, Reply, Service
from hedgerow.server.limits import Rate
from hedgerow.server.metrics import Metrics
from hedgerow.server.openapi import document
from hedgerow.server.outcomes import HEADER, OutcomeStore, StoredOutcome
from hedgerow.server.people import Token
from hedgerow.server.problems import MEDIA_TYPE, Refusal, bad_request, forbidden, internal, invalid_token, problem_of
from hedgerow.server.settings import Settings

LOG = logging.getLogger("hedgerow.server")
PASSING = (429, 500, 503, 504)  # statuses of failures that a repeated request may overcome
LARGEST_FREE = 65_536  # bytes of a free outcome that is stored; a larger one is computed again, at no cost
FLUSH_EVERY = 0.25  # seconds after which free requests are written to the trail
HEADERS = {
    "Cache-Control": "private, no-cache",
    "Vary": "Authorization, Accept",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Hedgerow-Interface": "1",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Application:
    """The checks around the endpoints of a service."""

    def __init__(self, settings: Settings, service: Service, outcomes: OutcomeStore) -> None:
        self._settings, self._service, self._outcomes = settings, service, outcomes
        self._metrics = Metrics()
        self._rate = Rate(settings.limits.requests_per_minute)
        self._wrong = Rate(settings.limits.wrong_tokens_per_minute)
        self._description = document(settings.prefix)
        self._tasks: set[asyncio.Task[Response]] = set()
        self._is_closing = False
        self._routes = [
            Route("/v1/health", self._for_everybody("health", self._health)),
            Route("/v1/ready", self._for_everybody("ready", self._ready)),
            Route("/v1/metrics", self._for_tokens("metrics", self._read_metrics)),
            Route("/v1/openapi.json", self._for_tokens("openapi", self._describe)),
            *(
                Route(each.path, self._for_tokens(each.name, self._serve_endpoint(each)), methods=[each.method])
                for each in ENDPOINTS
            ),
        ]

    def starlette(self) -> Starlette:
        """Return the ASGI application."""
        elsewhere = Route("/{path:path}", self._for_tokens("elsewhere", self._elsewhere))
        elsewhere.methods = set()  # every method, so that none is answered without a token
        routes: list[Any] = [*self._routes, elsewhere]
        if self._settings.prefix:
            routes = [Mount(self._settings.prefix, routes=routes), elsewhere]
        return Starlette(routes=routes, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Write the trail now and then; at the end finish what was begun, and close the sessions."""
        flushing = asyncio.create_task(self._flush())
        try:
            yield
        finally:
            self._is_closing = True
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=self._settings.limits.seconds)
            flushing.cancel()
            for dataset in self._service.datasets.values():
                await dataset.close()
            self._service.trail.flush()

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_EVERY)
            try:
                await asyncio.to_thread(self._service.trail.flush)
            except Exception as fault:  # what could not be written is written later
                log_fault("trail", fault)

    # Checks

    def _for_everybody(self, name: str, serve: Callable[[Request], Awaitable[Response]]) -> Any:
        """Wrap an endpoint that needs no token."""

        async def checked(request: Request) -> Response:
            return await self._check(name, request, lambda _: serve(request))

        return checked

    def _for_tokens(self, name: str, serve: Callable[[Request, Token, str], Awaitable[Response]]) -> Any:
        """Wrap an endpoint that needs a token."""

        async def checked(request: Request) -> Response:
            async def served(identity: str) -> Response:
                return await serve(request, self._token(request), identity)

            return await self._check(name, request, served)

        return checked

    async def _check(self, name: str, request: Request, serve: Callable[[str], Awaitable[Response]]) -> Response:
        """Check host and origin, serve, and turn refusals and faults into problems."""
        identity, start = random_token(8), time.perf_counter()
        try:
            self._require_host(request)
            response = await serve(identity)
        except Refusal as refused:
            response = refused.response(identity)
        except ClientDisconnect:
            response = Response(status_code=499)
        except Exception as fault:
            log_fault(identity, fault)
            response = internal().response(identity)
        for header, value in {**HEADERS, "X-Request-Id": identity}.items():
            response.headers.setdefault(header, value)
        self._metrics.add(name, response.status_code, time.perf_counter() - start)
        return response

    def _require_host(self, request: Request) -> None:
        host = request.headers.get("host", "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name not in self._settings.hosts and host not in self._settings.hosts:
            raise bad_request(
                "Host must be a name of this service. Found another. Use the address that its owner gave.", 421
            )
        origin = request.headers.get("origin")
        if origin is not None and request.method not in ("GET", "HEAD"):
            scheme, mark, site = origin.lower().partition("://")
            if not mark or scheme not in ("http", "https") or site != host:
                raise bad_request(
                    "Origin must be this service. Found another site. Send the request from a program.", 403
                )

    def _token(self, request: Request) -> Token:
        """Return the token of a request. Wrong ones count against the address, right ones against their own rate.

        A right token passes however many wrong ones came from its address, which may be that of a proxy.
        """
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        token = self._service.tokens.find(given.strip() if kind.lower() == "bearer" else "")
        if token is None:
            wait = self._wrong.take(request.client.host if request.client else "")
            raise _too_many(wait) if wait else invalid_token()
        wait = self._rate.take(token.id)
        if wait:
            raise _too_many(wait)
        return token

    # Endpoints

    def _serve_endpoint(self, endpoint: Endpoint) -> Callable[[Request, Token, str], Awaitable[Response]]:
        async def serve(request: Request, token: Token, identity: str) -> Response:
            if token.role not in endpoint.roles:
                self._note(token, identity, request, endpoint, status=403)
                raise forbidden(token.role)
            if self._is_closing:
                raise Refusal(
                    503, "closing", "The service is stopping", "The service must run. Found it stopping. Try later."
                )
            try:
                body = await asyncio.wait_for(self._body(request), self._settings.limits.seconds)
            except TimeoutError:
                raise bad_request("The body must arrive in time. Found that it does not. Send it again.", 408) from None
            call = Call(
                self._service, token, identity, _decode(endpoint, request, body), request.query_params,
                request.path_params, request.headers.get("accept", ""), request.is_disconnected,
            )  # fmt: skip
            key = request.headers.get(HEADER) if endpoint.is_kept else None
            if key is not None:
                kept = self._outcomes.begin(token.id, key, request.method, request.url.path, body)
                if kept is not None:
                    self._note(token, identity, request, endpoint, asked="a repetition", status=kept.status)
                    return Response(kept.body, kept.status, {"Idempotency-Replayed": "true"}, kept.media)
            task = asyncio.create_task(self._perform(endpoint, call, key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            try:
                response = await asyncio.wait_for(asyncio.shield(task), self._settings.limits.seconds)
            except TimeoutError:
                raise Refusal(
                    504, "too-slow", "The answer takes longer than a request may",
                    f"An answer must take at most {self._settings.limits.seconds:g} seconds. Found that this one takes "
                    "longer. Repeat the request later: what was paid for is kept.",
                ) from None  # fmt: skip
            return _if_changed(request, response)

        return serve

    async def _perform(self, endpoint: Endpoint, call: Call, key: str | None) -> Response:
        """Run the endpoint, note the request in the trail, and store the outcome of a request with a key.

        This goes on when the client gives up, so that what was paid for is stored.
        """
        reply = Reply()
        try:
            reply = await endpoint.handler(call)
            response = _response(reply)
        except Refusal as refused:
            response = refused.response(call.request_id)
        except HedgerowError as refused:
            response = problem_of(refused, is_owner=call.token.role == "owner").response(call.request_id)
        except Exception as fault:
            log_fault(call.request_id, fault)
            response = internal().response(call.request_id)
        self._service.trail.add(
            call.token, request=call.request_id, dataset=call.path.get("dataset", ""), endpoint=endpoint.name,
            asked=call.asked, cost=reply.cost, status=response.status_code,
        )  # fmt: skip
        if key is not None:
            try:
                self._store(call.token.id, key, reply, response)
            except Exception as fault:
                log_fault(call.request_id, fault)
        return response

    def _store(self, token: str, key: str, reply: Reply, response: Response) -> None:
        """Store the outcome of a request with a key, or free the key for another attempt."""
        is_large_and_free = reply.cost == 0 and not reply.stream and len(response.body) > LARGEST_FREE
        if response.status_code in PASSING or reply.stream is not None or is_large_and_free:
            self._outcomes.forget(token, key)
        else:
            media = response.headers.get("content-type", MEDIA_TYPE)
            self._outcomes.end(token, key, StoredOutcome(response.status_code, bytes(response.body), media))

    def _note(
        self, token: Token, identity: str, request: Request, endpoint: Endpoint, *, asked: str = "", status: int
    ) -> None:
        """Note a request in the trail that does not reach its endpoint."""
        self._service.trail.add(
            token, request=identity, dataset=request.path_params.get("dataset", ""), endpoint=endpoint.name,
            asked=asked, cost=0.0, status=status,
        )  # fmt: skip

    async def _body(self, request: Request) -> bytes:
        """Read the body; refuse one that is too large before all of it is read."""
        most = self._settings.limits.body
        declared = request.headers.get("content-length", "0")
        parts, size = (
            [],
            int(declared) if declared.isascii() and declared.isdigit() and len(declared) < 18 else most + 1,
        )
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

    # What the service says of itself

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _ready(self, request: Request) -> Response:
        return JSONResponse({"ready": not self._is_closing}, 503 if self._is_closing else 200)

    async def _read_metrics(self, request: Request, token: Token, identity: str) -> Response:
        if token.role not in ("owner", "auditor"):
            raise forbidden(token.role)
        return PlainTextResponse(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _describe(self, request: Request, token: Token, identity: str) -> Response:
        return JSONResponse(self._description)

    async def _elsewhere(self, request: Request, token: Token, identity: str) -> Response:
        allowed = {m for r in self._routes if r.matches(request.scope)[0] is Match.PARTIAL for m in r.methods or ()}
        if allowed:
            raise Refusal(
                405, "method", "The endpoint has other methods",
                f"The method must be one of {', '.join(sorted(allowed))}. Found {request.method[:20]}. Use one of these.",
                {"Allow": ", ".join(sorted(allowed))},
            )  # fmt: skip
        raise Refusal(
            404, "not-found", "There is no such endpoint",
            "The path must name an endpoint. Found another. GET /v1/openapi.json lists them.",
        )  # fmt: skip


def log_fault(identity: str, fault: BaseException) -> None:
    """Log the type and the place of a fault. Its message may quote data."""
    frames = traceback.extract_tb(fault.__traceback__)
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-6:]))
    LOG.error("request %s: %s at %s", identity, type(fault).__name__, places)


def _too_many(wait: float) -> Refusal:
    return Refusal(
        429, "too-many-requests", "Too many requests",
        "Requests must stay below the rate of the service. Found more. Wait, or send questions together.",
        {"Retry-After": str(max(1, round(wait + 0.5)))},
    )  # fmt: skip


def _decode(endpoint: Endpoint, request: Request, body: bytes) -> Any:
    """Return the body as the endpoint's type."""
    if endpoint.body is None:
        return None
    media = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json":
        raise bad_request("Content-Type must be application/json. Found another. Send JSON.", 415)
    try:
        return msgspec.json.decode(body, type=endpoint.body)
    except msgspec.ValidationError as wrong:
        raise bad_request(f"The body must fit the description. Found: {wrong}. See /v1/openapi.json.", 422) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request("The body must be JSON in UTF-8. Found other bytes. Check it.") from None


def _response(reply: Reply) -> Response:
    if reply.stream is not None:
        return StreamingResponse(reply.stream, reply.status, dict(reply.headers), reply.media)
    body = reply.content if isinstance(reply.content, bytes) else msgspec.json.encode(reply.content)
    return Response(body, reply.status, dict(reply.headers), reply.media)


def _if_changed(request: Request, response: Response) -> Response:
    """Give a readable answer its ETag, and an empty 304 to a client that has it already."""
    if request.method != "GET" or response.status_code != 200 or isinstance(response, StreamingResponse):
        return response
    tag = f'"{hashlib.sha256(bytes(response.body)).hexdigest()[:32]}"'
    given = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if tag in given:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return response
