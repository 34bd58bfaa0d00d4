"""A front: a process with its own TLS, checks and connections, which hands requests on to the engine of the service.

A front has neither tables nor ledgers nor people's tokens, and keeps nothing, so there may be any number of them, each
killed and started at any time. With a token of the role ``front`` it gives free answers itself (``front_answers``). A
request that was cut off because the engine was away is sent again. Every request that may charge has an idempotency
key, the client's or one of the front's, so that it is billed once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
import urllib.parse
from collections.abc import AsyncIterator, Mapping
from typing import Any

import h11
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hedgerow.privacy.noise import random_token
from hedgerow.server.arrivals import read_body, require_host
from hedgerow.server.faults import log_fault
from hedgerow.server.front_answers import FrontAnswers
from hedgerow.server.front_engine import EngineDesk, EngineResponse
from hedgerow.server.outcomes import HEADER
from hedgerow.server.pool import WorkerPool
from hedgerow.server.problems import Refusal, bad_request, internal
from hedgerow.server.replies import HEADERS
from hedgerow.server.settings import Settings

PASSED_ON = (b"authorization", b"accept", b"content-type", b"if-none-match", HEADER.encode())
METHODS = ("GET", "POST", "DELETE")
KEPT_BACK = (b"connection", b"transfer-encoding", b"keep-alive", b"date", b"content-length")
UNREPEATED = "/tokens"  # end of the path whose answer is shown once, and stored under no key
IDLE = 3.0  # seconds after which a kept connection is not used again: the engine closes it after five
PAUSE = 0.05  # seconds before a request is sent again
PART = 65_536


class EngineConnection:
    """One connection to the engine, for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._state = reader, writer, h11.Connection(h11.CLIENT)
        self.used = time.monotonic()

    async def send(self, request: h11.Request, body: bytes) -> h11.Response:
        """Send a request, and return the head of its response."""
        parts = [self._state.send(request), self._state.send(h11.Data(body)), self._state.send(h11.EndOfMessage())]
        self._writer.write(b"".join(part or b"" for part in parts))
        while not isinstance(event := await self._next(), h11.Response):
            if isinstance(event, h11.ConnectionClosed):
                raise ConnectionResetError
        return event

    async def parts(self) -> AsyncIterator[bytes]:
        """Iterate over the body of the response."""
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                yield bytes(event.data)

    async def _next(self) -> Any:
        while (event := self._state.next_event()) is h11.NEED_DATA:
            self._state.receive_data(await self._reader.read(PART))
        return event

    def is_reusable(self) -> bool:
        """Begin the next request, if the last one has ended properly."""
        self.used = time.monotonic()
        with contextlib.suppress(h11.LocalProtocolError):
            self._state.start_next_cycle()
            return True
        return False

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


class RemoteEngine:
    """The engine of a service, as a front reaches it."""

    def __init__(self, settings: Settings) -> None:
        parts = urllib.parse.urlsplit(settings.engine)
        self._place, self._prefix = (
            (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)),
            parts.path,
        )
        trusted = None if settings.engine_certificate is None else str(settings.engine_certificate)
        self._context = ssl.create_default_context(cafile=trusted) if parts.scheme == "https" else None
        self.host, self._seconds = parts.netloc.encode(), settings.limits.seconds
        self._idle: list[EngineConnection] = []

    async def ask(
        self, method: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes, *, repeats: bool
    ) -> Any:
        """Send a request until the engine answers. Return the connection with the head of the response."""
        length = [(b"content-length", str(len(body)).encode())] if body or method == "POST" else []
        request = h11.Request(
            method=method, target=self._prefix + target, headers=[(b"host", self.host), *headers, *length]
        )
        until, is_repeated = time.monotonic() + self._seconds, False
        while True:
            is_sent = False
            try:
                connection = await self._connection(fresh=is_repeated or not repeats)
                is_sent = True
                try:
                    head = await asyncio.wait_for(connection.send(request, body), max(0.1, until - time.monotonic()))
                except BaseException:
                    connection.close()
                    raise
                still_runs = head.status_code == 409 and is_repeated
                if not still_runs and not (head.status_code == 503 and repeats and is_repeated):
                    return connection, head
                connection.close()
            except (OSError, h11.ProtocolError) as cut:
                if is_sent and not repeats:
                    raise _away("may have done it: look before you send it again") from cut
            if time.monotonic() > until:
                raise _away("did not answer in time")
            is_repeated = True
            await asyncio.sleep(PAUSE)

    async def _connection(self, *, fresh: bool) -> EngineConnection:
        """Return an idle connection to the engine that is fresh enough, or a new one."""
        while self._idle and not fresh:
            kept = self._idle.pop()
            if time.monotonic() - kept.used < IDLE:
                return kept
            kept.close()
        host, port = self._place
        opened = asyncio.open_connection(host, port, ssl=self._context)
        return EngineConnection(*await asyncio.wait_for(opened, 10))

    async def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> EngineResponse:
        """Send a request of the front's own, again while the engine is away. Return the whole response."""
        given = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        connection, head = await self.ask(method, target, given, body, repeats=True)
        try:
            content = b"".join([part async for part in self.parts(connection)])
        except (OSError, h11.ProtocolError) as cut:
            raise _away("broke off") from cut
        found = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        return EngineResponse(head.status_code, found, content)

    async def parts(self, connection: EngineConnection) -> AsyncIterator[bytes]:
        """Iterate over the body of a response, and keep the connection when it has ended."""
        try:
            async for part in connection.parts():
                yield part
        except BaseException:
            connection.close()
            raise
        self.give_back(connection)

    def give_back(self, connection: EngineConnection) -> None:
        """Keep a connection for the next request."""
        if connection.is_reusable():
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close the kept connections."""
        while self._idle:
            self._idle.pop().close()


def front(settings: Settings, token: str = "") -> Starlette:
    """Return the ASGI application of a front. With a token of its own it gives free answers itself."""
    engine, answers = RemoteEngine(settings), None
    if token and settings.workers:
        pool = WorkerPool(settings.workers, settings.limits.work_seconds, settings.limits.memory)
        answers = FrontAnswers(EngineDesk(engine, token), pool, settings.limits)

    async def handle(request: Request) -> Response:
        """Answer a request, and turn every failure into a response of the service's form."""
        identity = random_token(8)
        try:
            response = await _answer(request, identity)
        except Refusal as refused:
            response = refused.response(identity)
        except ClientDisconnect:
            response = Response(status_code=499)
        except Exception as fault:
            log_fault(identity, fault)
            response = internal().response(identity)
        for header, value in {**HEADERS, "X-Request-Id": identity}.items():
            response.headers.setdefault(header, value)
        return response

    async def _answer(request: Request, identity: str) -> Response:
        """Check a request, answer it here if the front can, and hand it on to the engine otherwise."""
        require_host(request, settings.hosts)
        if request.method not in METHODS:
            raise bad_request(
                f"The method must be one of {', '.join(METHODS)}. Found another method. Use one of these.", 405
            )
        path = request.url.path.removeprefix(settings.prefix)
        if path == "/v1/health":
            return JSONResponse({"status": "ok"})
        if not path.startswith("/v1/") or path.startswith(
            "/v1/fronts"
        ):  # pages and assistants have sessions, which a front does not keep; fronts ask the engine
            raise Refusal(
                404, "not-found", "A front has the HTTP interface alone",
                "The path must begin with /v1/. Found another. Pages and assistants connect to the engine.",
            )  # fmt: skip
        try:
            body = await asyncio.wait_for(read_body(request, settings.limits.body), settings.limits.body_seconds)
        except TimeoutError:
            raise bad_request(
                "The body must arrive completely within the time limit. Found an incomplete body. Send it again.", 408
            ) from None
        try:
            own = None if answers is None else await answers.serve(request, path, body, identity)
            return await _hand_on(request, body) if own is None else own
        except TimeoutError:
            raise _away("took too long") from None

    async def _hand_on(request: Request, body: bytes) -> Response:
        """Hand a request on to the engine, and pass its response back."""
        headers = [(name, value) for name, value in request.headers.raw if name in PASSED_ON]
        path = request.scope.get("raw_path", request.url.path.encode()).decode("ascii")
        repeats = not (request.method == "POST" and path.rstrip("/").endswith(UNREPEATED))
        if request.method == "POST" and repeats and HEADER not in request.headers:
            headers.append((HEADER.encode(), f"front-{random_token(16)}".encode()))
        query = request.scope["query_string"].decode("ascii")
        target = path.removeprefix(settings.prefix) + (f"?{query}" if query else "")
        until = time.monotonic() + settings.limits.seconds
        while True:
            connection, head = await engine.ask(request.method, target, headers, body, repeats=repeats)
            passed = {name.decode(): value.decode("latin-1") for name, value in head.headers if name not in KEPT_BACK}
            if any(name == b"transfer-encoding" for name, _ in head.headers):
                return StreamingResponse(engine.parts(connection), head.status_code, passed)
            try:
                content = b"".join([part async for part in engine.parts(connection)])
            except (OSError, h11.ProtocolError) as cut:
                if not repeats or time.monotonic() > until:
                    raise _away("may have done it: look before you send it again") from cut
                continue
            return Response(content, head.status_code, passed)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if answers is not None:
            await answers.start()
        yield
        if answers is not None:
            await answers.close()
        engine.close()

    every = Route("/{path:path}", handle)
    every.methods = set()  # those that are not handed on are refused alike
    return Starlette(routes=[every], lifespan=lifespan)


def _away(how: str) -> Refusal:
    return Refusal(
        503, "engine-away", "The engine of the service cannot be reached",
        f"The engine must answer. Found that it {how}. Repeat the request with the same Idempotency-Key.", {"Retry-After": "1"},
    )  # fmt: skip
