"""AI assistants on the service: the tools of ``hedgerow.assistants`` at ``/mcp`` and ``/mcp/{dataset}``.

A request passes the checks of every request, and its token is that of an analyst or of the owner. Tools that are free
run in a worker process, on released values. A price and a purchase run in the session's thread, under the caps of the
person. Every call is in the trail. A session of the protocol belongs to the token that opened it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS as HANDSHAKE
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response

from hedgerow.assistants.desk import AssistantDesk, PurchaseRule
from hedgerow.assistants.protocol import build_server
from hedgerow.assistants.quoting import safe_text
from hedgerow.assistants.tool import ApprovalRequest, LostCall, ToolCall, ToolResult
from hedgerow.assistants.toolbox import TOOLS, call_tool
from hedgerow.errors import HedgerowError, InvalidInput, TooLarge
from hedgerow.server.answer_queue import Meter
from hedgerow.server.buying import sell
from hedgerow.server.dataset import Dataset
from hedgerow.server.endpoint import ASKERS, Service
from hedgerow.server.people import Token
from hedgerow.server.problems import Refusal, bad_request, forbidden, not_found, problem_of
from hedgerow.server.settings import Settings

MOST_DESKS = 10_000  # analysts whose latest calls are remembered
SESSIONS_OF_ONE = 20  # open sessions of one token
MOST_SESSIONS = 2_000
IDLE = 900.0  # seconds after which a session without requests ends
T = TypeVar("T")


@dataclass(frozen=True)
class AssistantRequest:
    """The person behind a request, the dataset of its path, and its name in the trail."""

    token: Token
    dataset: Dataset
    request_id: str


class AssistantDesks:
    """The desks of all analysts, and the host of their requests."""

    def __init__(self, settings: Settings, service: Service) -> None:
        self._settings, self._service = settings, service
        self._desks: OrderedDict[tuple[str, str, str], AssistantDesk] = OrderedDict()

    async def call(
        self, request: Request, name: str, arguments: Mapping[str, Any] | None, call: ToolCall
    ) -> ToolResult:
        """Run a tool: a free one in a worker where there are workers, the others in the session's thread."""
        caller, meter = request.state.caller, Meter()
        desk = self._desk(caller)

        async def work() -> ToolResult:
            """Run a tool in a worker process if it is free and public, else in the session."""
            is_free = any(tool.name == name and not tool.needs_session for tool in TOOLS)
            if not is_free or not caller.dataset.is_published:
                return await self._in_session(caller, desk, lambda desk: call_tool(desk, name, arguments, call), meter)
            facts = (desk.name, desk.purchases, desk.shows_spending, desk.numbers)
            result: ToolResult
            result, more = await caller.dataset.compute(
                caller.token.analyst, "call_tool", name, None if arguments is None else dict(arguments), facts
            )
            desk.numbers += more
            key = f"{name} {_question_text(arguments)}"
            (is_first,) = self._service.trail.is_first(caller.dataset.name, caller.token.analyst, [key])
            caller.dataset.count_new(caller.token.analyst, max(1, more) if is_first else 0)
            desk.note(name, result.asked, result.charged)
            return result

        found: ToolResult = await self._noted(caller, name, _question_text(arguments), work, meter)
        return found

    async def read(self, request: Request, name: str, work: Callable[[AssistantDesk], T]) -> T:
        """Read something of the caller's desk in the session's thread."""
        caller, meter = request.state.caller, Meter()
        desk = self._desk(caller)
        found: T = await self._noted(caller, name, "", lambda: self._in_session(caller, desk, work, meter), meter)
        return found

    async def _in_session(
        self, caller: AssistantRequest, desk: AssistantDesk, work: Callable[[AssistantDesk], T], meter: Meter
    ) -> T:
        """Run work in the session's thread, after a look at the caps, which the owner may have changed."""

        def run(_: object) -> T:
            desk.purchases = self._rule(caller)
            desk.sell = functools.partial(sell, self._service, caller.dataset.name, caller.token)
            return work(desk)

        found: T = await caller.dataset.run(caller.token.analyst, run, meter)
        return found

    def explain(self, request: Request, refused: HedgerowError) -> str:
        """Return the sentence of a refusal. Amounts that tell what others spent are for the owner."""
        return problem_of(refused, is_owner=request.state.caller.token.role == "owner").detail

    async def _noted(self, caller: AssistantRequest, name: str, asked: str, work: Any, meter: Meter) -> Any:
        """Do work within the time of a request, and note it in the trail.

        The call continues when the client gives up.
        """
        task = asyncio.create_task(self._finish(caller, name, asked, work, meter))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # a lost one is no fault
        seconds = self._settings.limits.seconds
        try:
            return await asyncio.wait_for(asyncio.shield(task), seconds)
        except TimeoutError:
            raise TooLarge(
                f"An answer must take at most {seconds:g} seconds. Found that this one takes longer. Ask less at a "
                "time; what was paid for is kept."
            ) from None

    async def _finish(self, caller: AssistantRequest, name: str, asked: str, work: Any, meter: Meter) -> Any:
        """Do the work of a call, and note its status in the audit trail whatever happens."""
        status = 500
        try:
            found = await work()
            status = 200
            return found
        except (ApprovalRequest, LostCall) as ended:
            status = 202 if isinstance(ended, ApprovalRequest) else 499
            raise
        except Refusal as refused:
            status = refused.status
            raise InvalidInput(refused.detail) from None
        except HedgerowError as refused:
            status = problem_of(refused, is_owner=True).status
            raise
        finally:
            trail = self._service.trail
            trail.add(
                caller.token, request=caller.request_id, dataset=caller.dataset.name, endpoint=f"mcp {safe_text(name, 40)}",
                asked=asked, cost=meter.cost, status=status,
            )  # fmt: skip
            if meter.cost > 0 or trail.is_due:
                await asyncio.to_thread(trail.flush)

    def _desk(self, caller: AssistantRequest) -> AssistantDesk:
        """Return the desk of an analyst at a dataset."""
        key = (caller.dataset.name, caller.token.analyst, caller.token.role)
        desk = self._desks.pop(key, None)
        if desk is None:
            is_owner = caller.token.role == "owner"
            desk = AssistantDesk(caller.dataset.session, caller.dataset.name, shows_spending=is_owner)
        self._desks[key] = desk
        if len(self._desks) > MOST_DESKS:
            self._desks.popitem(last=False)
        return desk

    def _rule(self, caller: AssistantRequest) -> PurchaseRule | None:
        """Return the permission to buy, which only an analyst with a cap in every block has."""
        purchases, analyst = self._settings.assistants, caller.token.analyst
        ledgers = [block.ledger for block in caller.dataset.session.blocks.values()]
        is_capped = all(getattr(ledger, "is_capped", lambda _: False)(analyst) for ledger in ledgers)
        return (
            PurchaseRule(analyst, purchases == "approved")
            if purchases in ("approved", "capped") and is_capped
            else None
        )


class AssistantEndpoint:
    """The SDK's server for streamable HTTP behind the checks of the service."""

    def __init__(self, settings: Settings, service: Service) -> None:
        self._service = service
        self._manager = StreamableHTTPSessionManager(
            build_server(AssistantDesks(settings, service)),
            session_idle_timeout=IDLE,
            max_request_body_size=settings.limits.body,
            max_sessions=MOST_SESSIONS,
        )
        self._sessions: dict[str, tuple[str, float]] = {}  # token and latest request of each

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve until the context ends."""
        async with self._manager.run():
            yield

    async def serve(self, request: Request, token: Token, identity: str) -> Response:
        """Return the answer of the SDK to a request that has passed the checks."""
        if token.role not in ASKERS:
            raise forbidden(token.role)
        if request.method == "GET":  # a stream on which this server would never send anything
            raise Refusal(405, "method", "The endpoint has other methods", "The method must be POST or DELETE. Found GET. Use POST.", {"Allow": "POST, DELETE"})  # fmt: skip
        request.state.caller = AssistantRequest(token, self._dataset(request, token), identity)
        request.scope["user"] = AuthenticatedUser(AccessToken(token=token.id, client_id=token.id, scopes=[]))
        session = request.headers.get("mcp-session-id", "")
        if not session and request.headers.get(MCP_PROTOCOL_VERSION_HEADER, HANDSHAKE[0]) in HANDSHAKE:
            self._require_room(token)

        def began(name: str) -> None:
            self._sessions[name] = (token.id, time.monotonic())

        if session in self._sessions and self._sessions[session][0] == token.id:
            began(session)
            if request.method == "DELETE":
                del self._sessions[session]
        return SdkResponse(self._manager.handle_request, began)

    def _dataset(self, request: Request, token: Token) -> Dataset:
        """Return the dataset of the path, or the only one of the token."""
        allowed = [name for name in self._service.datasets if token.may_use(name)]
        name = request.path_params.get("dataset")
        if name is None and len(allowed) > 1:
            raise bad_request(
                "The path must name a dataset, because the token is for several. Found none. Use /mcp/ and its name.",
                404,
            )
        name = allowed[0] if name is None and allowed else name
        if name not in allowed:
            raise not_found()
        return self._service.datasets[name]

    def _require_room(self, token: Token) -> None:
        """Refuse another session of a token that has many, so that nobody takes all of them."""
        now = time.monotonic()
        self._sessions = {name: found for name, found in self._sessions.items() if found[1] > now - IDLE}
        if sum(owner == token.id for owner, _ in self._sessions.values()) >= SESSIONS_OF_ONE:
            raise Refusal(
                503, "busy", "Too many sessions are open",
                f"A token may have at most {SESSIONS_OF_ONE} sessions. Found as many. End one, or wait.",
                {"Retry-After": str(int(IDLE))},
            )  # fmt: skip


class SdkResponse(Response):
    """A response that the SDK writes, with the headers of the service."""

    def __init__(self, answer: Any, began: Callable[[str], None]) -> None:
        self.status_code, self.background, self.raw_headers = 200, None, []
        self._answer, self._began = answer, began

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let the SDK answer, and add the headers."""

        async def send_with_headers(message: Any) -> None:
            """Send a message with the service's headers, and note a session that was opened."""
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                opened = headers.get("mcp-session-id")
                if opened is not None and message["status"] < 400 and scope["method"] == "POST":
                    self._began(opened)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._answer(scope, receive, send_with_headers)


def _question_text(arguments: Mapping[str, Any] | None) -> str:
    """Return what a call asks, for the trail."""
    given = arguments or {}
    parts = [
        given[name]
        for name in ("questions", "question", "other", "statement", "within", "columns", "target")
        if name in given
    ]
    return safe_text(" ".join(map(str, parts)), 2_000)
