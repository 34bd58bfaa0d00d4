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
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Mount, Route

from hedgerow._extras import extra
from hedgerow.privacy.noise import random_token
from hedgerow.server.api import ENDPOINTS, Call, Endpoint, Reply, Service
from hedgerow.server.arrivals import bearer_of, read_body, require_host
from hedgerow.server.faults import log_fault
from hedgerow.server.fronts import FrontEndpoints
from hedgerow.server.limits import Rate
from hedgerow.server.metrics import Metrics
from hedgerow.server.openapi import document
from hedgerow.server.outcomes import HEADER, OutcomeStore, StoredOutcome, request_digest
from hedgerow.server.people import FRONT, Token
from hedgerow.server.problems import MEDIA_TYPE, Refusal, bad_request, forbidden, internal, invalid_token, too_many
from hedgerow.server.registering import receive_upload
from hedgerow.server.replies import HEADERS, decode_body, handle, if_changed
from hedgerow.server.settings import Settings

PASSING = (202, 429, 500, 503, 504)  # statuses that a repeated request may overcome
LARGEST_FREE = 65_536  # bytes of a free outcome that is stored; a larger one is computed again, at no cost
COLLECT_EVERY = 60.0  # seconds after which all memory is looked through for what can be freed, if nobody waits
FLUSH_EVERY = 0.25  # seconds after which free requests are written to the trail

Pages = Callable[["Application"], Sequence[BaseRoute]]
"""A function that returns the routes of pages in the browser, none of which begins with /v1."""


class Application:
    """The checks around the endpoints of a service."""

    def __init__(
        self, settings: Settings, service: Service, outcomes: OutcomeStore, pages: Pages | None = None
    ) -> None:
        self.settings, self.service, self.outcomes = settings, service, outcomes
        self._metrics = Metrics()
        self._rate = Rate(settings.limits.requests_per_minute)
        self._wrong = Rate(settings.limits.wrong_tokens_per_minute)
        self._description = document(settings.prefix)
        self._tasks: set[asyncio.Task[Response]] = set()
        self._is_closing = False
        self._starting: asyncio.Task[None] | None = None
        self._assistants = None
        if settings.assistants is not None:
            extra("mcp")
            from hedgerow.server.assistants import AssistantEndpoint

            self._assistants = AssistantEndpoint(settings, service)
        self._routes = [
            Route("/v1/health", self._for_everybody("health", self._health)),
            Route("/v1/ready", self._for_everybody("ready", self._ready)),
            Route("/v1/metrics", self._for_tokens("metrics", self._read_metrics)),
            Route("/v1/openapi.json", self._for_tokens("openapi", self._describe)),
            *FrontEndpoints(self).routes(),
            *(
                Route(each.path, self._for_tokens(each.name, self._serve_endpoint(each)), methods=[each.method])
                for each in sorted(ENDPOINTS, key=lambda each: not each.is_answered_by_fronts)  # found sooner
            ),
        ]
        self._pages = list(pages(self)) if pages is not None else []

    def starlette(self) -> Starlette:
        """Return the ASGI application."""
        elsewhere = Route("/{path:path}", self._for_tokens("elsewhere", self._elsewhere))
        elsewhere.methods = set()  # every method, so that none is answered without a token
        routes: list[Any] = [*self._routes, *self._pages, *self._assistant_routes(), *self._upload_routes(), elsewhere]
        if self.settings.prefix:
            routes = [Mount(self.settings.prefix, routes=routes), elsewhere]
        return Starlette(routes=routes, lifespan=self._lifespan)

    def _upload_routes(self) -> list[Route]:
        """Return the route of uploads, whose bodies are larger than those of other requests and never in memory."""
        if self.service.registrar is None:
            return []

        async def received(request: Request, token: Token, identity: str) -> Response:
            self.require_open()
            found = await receive_upload(
                self.service, token, identity, request.query_params.get("name", ""), request.stream()
            )
            return JSONResponse(found, 201)

        return [Route("/v1/uploads", self._for_tokens("upload", received), methods=["POST"])]

    def _assistant_routes(self) -> list[Route]:
        """Return the routes of assistants, for every method, because the SDK answers them."""
        if self._assistants is None:
            return []
        assistants = self._assistants

        async def answered(request: Request, token: Token, identity: str) -> Response:
            self.require_open()
            return await assistants.serve(request, token, identity)

        serve = self._for_tokens("mcp", answered)
        routes = [Route(path, serve) for path in ("/mcp", "/mcp/{dataset}")]
        for route in routes:
            route.methods = set()
        return routes

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Write the trail now and then; at the end finish what was begun, and close the sessions."""
        pool = self.service.pool
        self._starting = asyncio.create_task(self._start())
        flushing = asyncio.create_task(self._flush())
        try:
            async with nullcontext() if self._assistants is None else self._assistants.run():
                yield
        finally:
            self._is_closing = True
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=self.settings.limits.seconds)
            flushing.cancel()
            await asyncio.wait([self._starting])
            if self.service.registrar is not None:
                await self.service.registrar.close()
            for dataset in list(self.service.datasets.values()):
                await dataset.close()
            if pool is not None:
                await pool.close()
            await asyncio.to_thread(self.service.trail.flush)
            await self.service.commits.close()

    async def _start(self) -> None:
        """Start the workers, and let them load what the first questions need."""
        if self.service.pool is not None:
            await self.service.pool.start()
            for dataset in list(self.service.datasets.values()):
                if not self._is_closing:
                    await dataset.warm()

    async def _flush(self) -> None:
        """Write the trail. Where nobody waits, look for memory to be freed, which would make them wait."""
        collected = time.monotonic()
        while True:
            await asyncio.sleep(FLUSH_EVERY)
            if not self._tasks and time.monotonic() > collected + COLLECT_EVERY:
                gc.collect()
                collected = time.monotonic()
            try:
                await asyncio.to_thread(self.service.trail.flush)
            except Exception as fault:  # what could not be written is written later
                log_fault("trail", fault)

    # Checks

    def _for_everybody(self, name: str, serve: Callable[[Request], Awaitable[Response]]) -> Any:
        """Wrap an endpoint that needs no token."""

        async def checked(request: Request) -> Response:
            return await self.check(name, request, lambda _: serve(request))

        return checked

    def _for_tokens(self, name: str, serve: Callable[[Request, Token, str], Awaitable[Response]]) -> Any:
        """Wrap an endpoint that needs a token."""

        async def checked(request: Request) -> Response:
            async def served(identity: str) -> Response:
                return await serve(request, self._token(request), identity)

            return await self.check(name, request, served)

        return checked

    async def check(self, name: str, request: Request, serve: Callable[[str], Awaitable[Response]]) -> Response:
        """Check host and origin, serve, and turn refusals and faults into problems."""
        identity, start = random_token(8), time.perf_counter()
        try:
            require_host(request, self.settings.hosts)
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

    def _token(self, request: Request) -> Token:
        """Return the token of a request. Wrong ones count against the address, right ones against their own rate.

        A right token passes however many wrong ones came from its address, which may be that of a proxy.
        """
        token = self.person_of_proxy(request)
        if token is None:
            token = self.find_token(request, bearer_of(request))
        self.count_request(token)
        return token

    def find_token(self, request: Request, given: str) -> Token:
        """Return the record of a right token, or refuse a wrong one and count it against the address."""
        return self._require_token(request, given, is_front=False)

    def find_front(self, request: Request) -> Token:
        """Return the record of a front's token, which opens the way of fronts and nothing else."""
        return self._require_token(request, bearer_of(request), is_front=True)

    def _require_token(self, request: Request, given: str, *, is_front: bool) -> Token:
        token = self.service.tokens.find(given)
        if token is None or (token.role == FRONT) != is_front:
            wait = self._wrong.take(request.client.host if request.client else "")
            raise too_many(wait) if wait else invalid_token()
        return token

    def count_request(self, token: Token) -> None:
        """Count a request against the rate of its token."""
        wait = self._rate.take(token.id)
        if wait:
            raise too_many(wait)

    def person_of_proxy(self, request: Request) -> Token | None:
        """Return the account of a person whom a trusted proxy names, once and without a token beside."""
        rule = self.settings.sign_on
        if rule is None or request.client is None or "authorization" in request.headers:
            return None
        named = request.headers.getlist(rule.header)
        if len(named) != 1 or not named[0] or not rule.is_trusted(request.client.host):
            return None
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):  # a browser signs on by itself
            raise bad_request(
                "The request must come from this service's pages. Found another site's. Open the service.", 403
            )
        return self.service.tokens.account(named[0])

    # Endpoints

    def _serve_endpoint(self, endpoint: Endpoint) -> Callable[[Request, Token, str], Awaitable[Response]]:
        """Return the handler of an endpoint: it checks the role, reads the body and answers."""

        async def serve(request: Request, token: Token, identity: str) -> Response:
            """Answer one request to the endpoint."""
            self.require_role(endpoint, token, identity, request.path_params)
            try:
                body = await asyncio.wait_for(
                    read_body(request, self.settings.limits.body), self.settings.limits.body_seconds
                )
            except TimeoutError:
                raise bad_request(
                    "The body must arrive completely within the time limit. Found an incomplete body. Send it again.",
                    408,
                ) from None
            call = Call(
                self.service, token, identity, decode_body(endpoint, request, body), request.query_params,
                request.path_params, request.headers.get("accept", ""), request.is_disconnected,
            )  # fmt: skip
            key = request.headers.get(HEADER) if endpoint.is_kept else None
            response = await self.carry_out(endpoint, call, key, self.place(request), body)
            return if_changed(request, response)

        return serve

    def place(self, request: Request) -> str:
        """Return the path of a request within the service, which is the same behind every front."""
        return request.url.path.removeprefix(self.settings.prefix)

    def require_role(self, endpoint: Endpoint, token: Token, identity: str, path: Mapping[str, str]) -> None:
        """Refuse a token of another role, and every request while the service stops."""
        if token.role not in endpoint.roles:
            self.note(token, identity, path, endpoint.name, status=403)
            raise forbidden(token.role)
        self.require_open()

    def require_open(self) -> None:
        if self._is_closing:
            raise Refusal(
                503, "closing", "The service is stopping", "The service must run. Found it stopping. Try later."
            )

    async def carry_out(
        self, endpoint: Endpoint, call: Call, key: str | None = None, place: str = "", body: bytes = b""
    ) -> Response:
        """Perform a call within the time of a request, or return the outcome that is stored under its key.

        Requests over HTTP and pages in the browser both come here.
        """
        self.require_role(endpoint, call.token, call.request_id, call.path)
        key, kept = await self._begin_key(endpoint, call, key, place, body)
        if kept is not None:
            self.note(call.token, call.request_id, call.path, endpoint.name, asked="a repetition", status=kept.status)
            return Response(kept.body, kept.status, {"Idempotency-Replayed": "true"}, kept.media)
        task = asyncio.create_task(self._perform(endpoint, call, key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.wait_for(asyncio.shield(task), self.settings.limits.seconds)
        except TimeoutError:
            raise Refusal(
                504, "too-slow", "The answer takes longer than a request may",
                f"An answer must take at most {self.settings.limits.seconds:g} seconds. Found that this one takes "
                "longer. Repeat the request later: what was paid for is kept.",
            ) from None  # fmt: skip

    async def _begin_key(
        self, endpoint: Endpoint, call: Call, key: str | None, place: str, body: bytes
    ) -> tuple[str | None, StoredOutcome | None]:
        """Reserve the idempotency key of a request.

        Return the key if its outcome is to be stored, or a stored outcome.
        """
        if key is None:
            return None, None
        begun = (call.token.id, key, request_digest(key, endpoint.method, place, body))
        if not endpoint.charges(call):
            self.outcomes.begin_free(*begun)
            return None, None
        return key, await self.service.commits.run(lambda: self.outcomes.begin(*begun))

    async def _perform(self, endpoint: Endpoint, call: Call, key: str | None) -> Response:
        """Run the endpoint, note the request in the trail, and store the outcome of a request with a key.

        This goes on when the client gives up, so that what was paid for is stored.
        """
        reply, response = await handle(endpoint, call)
        trail = self.service.trail
        trail.add(
            call.token, request=call.request_id, dataset=call.path.get("dataset", ""), endpoint=endpoint.name,
            asked=call.asked, cost=call.meter.cost, status=response.status_code,
        )  # fmt: skip
        try:
            if call.meter.cost > 0 or trail.is_due:  # else it is written a moment later
                await asyncio.to_thread(trail.flush)
            if key is not None:
                stored = key
                await self.service.commits.run(lambda: self._store(call, stored, reply, response))
        except Exception as fault:  # the entry waits, and is written later
            log_fault(call.request_id, fault)
        return response

    def _store(self, call: Call, key: str, reply: Reply, response: Response) -> None:
        """Store the outcome of a request with a key, or free the key for another attempt."""
        token = call.token.id
        is_large_and_free = call.meter.cost == 0 and not reply.stream and len(response.body) > LARGEST_FREE
        if response.status_code in PASSING or reply.stream is not None or is_large_and_free:
            self.outcomes.forget(token, key)
        else:
            media = response.headers.get("content-type", MEDIA_TYPE)
            self.outcomes.end(token, key, StoredOutcome(response.status_code, bytes(response.body), media))

    def note(
        self, token: Token, identity: str, path: Mapping[str, str], endpoint: str, *, asked: str = "", status: int
    ) -> None:
        """Note a request in the trail that does not reach its endpoint."""
        self.service.trail.add(
            token, request=identity, dataset=path.get("dataset", ""), endpoint=endpoint,
            asked=asked, cost=0.0, status=status,
        )  # fmt: skip

    # What the service says of itself

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _ready(self, request: Request) -> Response:
        is_ready = not self._is_closing and self._starting is not None and self._starting.done()
        return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)

    async def _read_metrics(self, request: Request, token: Token, identity: str) -> Response:
        if token.role not in ("owner", "auditor"):
            raise forbidden(token.role)
        return PlainTextResponse(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _describe(self, request: Request, token: Token, identity: str) -> Response:
        return if_changed(request, JSONResponse(self._description))

    async def _elsewhere(self, request: Request, token: Token, identity: str) -> Response:
        """Refuse a request to a path without an endpoint, or with a method that its endpoint does not have."""
        allowed = {m for r in self._routes if r.matches(request.scope)[0] is Match.PARTIAL for m in r.methods or ()}
        if allowed:
            raise Refusal(
                405, "method", "The endpoint has other methods",
                f"The method must be one of {', '.join(sorted(allowed))}. Found {request.method[:20]}. Use one of "
                "these.",
                {"Allow": ", ".join(sorted(allowed))},
            )  # fmt: skip
        raise Refusal(
            404, "not-found", "There is no such endpoint",
            "The path must name an endpoint. Found another. GET /v1/openapi.json lists them.",
        )  # fmt: skip
