"""The wrapper of the official SDK: tools, resources and the prompt as a server of the Model Context Protocol.

A host says who asks and runs the work: ``OneDesk`` for a single user over stdio; the service has one for its tokens.
Refusals are results with the library's sentences, so that an assistant can mend its call. Unexpected faults are logged
by type and place: their messages may quote data.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from hedgerow._extras import extra
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.guide import INSTRUCTIONS, PROMPT_NAME, PROMPT_TITLE, honest_analysis
from hedgerow.assistants.quoting import safe_text
from hedgerow.assistants.resources import RESOURCES, read_resource
from hedgerow.assistants.tool import ApprovalRequest, LostCall, ToolCall, ToolResult
from hedgerow.assistants.toolbox import call_tool, tools_of
from hedgerow.errors import HedgerowError

extra("mcp")
import mcp_types as types  # noqa: E402
from mcp.server.lowlevel import Server  # noqa: E402
from mcp.server.stdio import stdio_server  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402

LOG = logging.getLogger("hedgerow.assistants")
LONGEST_ERROR = 3_000  # characters of a refusal
PATIENCE = 600.0  # seconds in which a person answers
APPROVAL = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Spend it", "description": "Spend this of the budget."}},
    "required": ["approve"],
}
logging.getLogger("mcp").addHandler(logging.NullHandler())  # its messages quote requests
logging.getLogger("mcp").propagate = False
T = TypeVar("T")
Work = Callable[[AssistantDesk], T]


class AssistantHost(Protocol):
    """Whoever has the desks: it finds the desk of a request and works on it."""

    async def call(self, request: Any, name: str, arguments: Mapping[str, Any] | None, call: ToolCall) -> ToolResult:
        """Run a tool on the desk of a request, with the approvals and the sign to stop of ``call``."""
        ...

    async def read(self, request: Any, name: str, work: Work[T]) -> T:
        """Read something of the desk of a request. ``name`` is for an audit trail."""
        ...

    def explain(self, request: Any, refused: HedgerowError) -> str:
        """Return the sentence of a refusal as far as this caller may read it."""
        ...


class OneDesk:
    """The host of one desk for one user, with a thread of its own."""

    def __init__(self, desk: AssistantDesk) -> None:
        self._desk = desk
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hedgerow-assistant")

    async def call(self, request: Any, name: str, arguments: Mapping[str, Any] | None, call: ToolCall) -> ToolResult:
        """Run a tool on the desk, after all earlier work."""
        return await self.read(request, name, lambda desk: call_tool(desk, name, arguments, call))

    async def read(self, request: Any, name: str, work: Work[T]) -> T:
        """Run work on the desk, after all earlier work."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._desk)

    def explain(self, request: Any, refused: HedgerowError) -> str:
        """Return the sentence of a refusal."""
        return str(refused)

    def close(self) -> None:
        """Wait for work that has begun."""
        self._thread.shutdown(cancel_futures=True)


def build_server(host: AssistantHost, name: str = "hedgerow") -> Server[Any]:
    """Return a server of the protocol for the desks of a host."""
    calls = _Calls(host)
    import hedgerow as hr

    return Server(
        name,
        version=hr.__version__,
        title="hedgerow: a sensitive table, asked privately",
        instructions=INSTRUCTIONS,
        on_list_tools=calls.list_tools,
        on_call_tool=calls.call_tool,
        on_list_resources=calls.list_resources,
        on_list_resource_templates=calls.list_templates,
        on_read_resource=calls.read_resource,
        on_list_prompts=calls.list_prompts,
        on_get_prompt=calls.get_prompt,
    )


class _Calls:
    """The handlers of a server."""

    def __init__(self, host: AssistantHost) -> None:
        self._host = host

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        """List the tools of the caller's desk."""

        def listed(desk: AssistantDesk) -> list[types.Tool]:
            """Return the descriptions of the tools that a desk offers."""
            return [
                types.Tool(
                    name=tool.name,
                    title=tool.title,
                    description=tool.description,
                    input_schema=tool.schema(desk),
                    annotations=types.ToolAnnotations(
                        title=tool.title,
                        read_only_hint=not tool.spends,
                        destructive_hint=tool.spends,
                        idempotent_hint=True,
                        open_world_hint=False,
                    ),
                )
                for tool in tools_of(desk)
            ]

        found = await self._read(ctx, "list_tools", listed)
        return types.ListToolsResult(tools=found)

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        """Run a tool. A refusal is a result that is marked as an error."""
        approved = _approvals(params)
        declined = set(params.input_responses or {}) - approved
        stop = threading.Event()
        for is_approved in (False, True):
            try:
                call = ToolCall({}, approved, stop)
                result = await self._host.call(ctx.request, params.name, params.arguments, call)
                return types.CallToolResult(
                    content=[types.TextContent(type="text", text=result.text)], structured_content=result.data
                )
            except ApprovalRequest as waiting:
                if is_approved:
                    break
                answer = False if waiting.key in declined else await self._approval(ctx, waiting)
                if not isinstance(answer, bool):
                    return answer
                if not answer:
                    return _refusal(
                        "A purchase must be approved by a person. Found that it was not. Use the free answer."
                    )
                approved = approved | {waiting.key}
            except HedgerowError as refused:
                return _refusal(self._host.explain(ctx.request, refused))
            except (asyncio.CancelledError, LostCall):
                stop.set()
                raise
            except MCPError:
                raise
            except Exception as fault:
                log_fault(fault)
                return _refusal(
                    "The server must be able to answer. Found a fault, which its log names. Try another question."
                )
        return _refusal("The price must stay as it was approved. Found that it has changed. Ask for the price again.")

    async def _approval(self, ctx: Any, waiting: ApprovalRequest) -> Any:
        """Ask the person behind the client: True, False, or a result that makes the client ask and call again."""
        session = ctx.session
        capabilities = session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            return _refusal(
                "A purchase must be approved by a person. Found a client that cannot ask one. Ask the owner to buy it: "
                "hedgerow ask … --within …"
            )
        if (
            not session.can_send_request
        ):  # the protocol since 2026: the client asks, and repeats the call with the answer
            asked = types.ElicitRequest(
                params=types.ElicitRequestFormParams(message=waiting.message, requested_schema=APPROVAL)
            )
            return types.InputRequiredResult(input_requests={waiting.key: asked})
        try:
            asked = session.elicit_form(waiting.message, APPROVAL, related_request_id=ctx.request_id)
            return _is_approval(await asyncio.wait_for(asked, PATIENCE))
        except TimeoutError:
            return False

    async def list_resources(self, ctx: Any, params: Any) -> types.ListResourcesResult:
        """List the documents."""
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=each.uri, name=each.name, description=each.description, mime_type=each.media)
                for each in RESOURCES
            ]
        )

    async def list_templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        """List no templates."""
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(self, ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Return a document."""
        uri = str(params.uri)
        media, text = await self._read(ctx, "read_resource", lambda desk: read_resource(desk, uri))
        contents = types.TextResourceContents(uri=uri, mime_type=media, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        """List the prompt on honest analysis."""
        question = types.PromptArgument(name="question", description="What is to be found out.", required=False)
        about = "How to use the tools and read their intervals."
        prompt = types.Prompt(name=PROMPT_NAME, title=PROMPT_TITLE, description=about, arguments=[question])
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(self, ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Return the prompt on honest analysis."""
        if params.name != PROMPT_NAME:
            raise MCPError(types.INVALID_PARAMS, f"A prompt must be {PROMPT_NAME}. Found another. Use this one.")
        text = honest_analysis((params.arguments or {}).get("question", ""))
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=PROMPT_TITLE, messages=[message])

    async def _read(self, ctx: Any, name: str, work: Work[T]) -> T:
        """Run work whose refusals are errors of the protocol."""
        sentence, code = "The server must be able to answer. Found a fault, which its log names.", types.INTERNAL_ERROR
        try:
            return await self._host.read(ctx.request, name, work)
        except HedgerowError as refused:
            sentence, code = self._host.explain(ctx.request, refused), types.INVALID_PARAMS
        except MCPError:
            raise
        except Exception as fault:
            log_fault(fault)
        raise MCPError(code, safe_text(sentence, LONGEST_ERROR))


def _approvals(params: types.CallToolRequestParams) -> frozenset[str]:
    """Return the purchases that a person has approved in answer to an earlier result."""
    given = params.input_responses or {}
    return frozenset(key for key, answer in given.items() if _is_approval(answer))


def _is_approval(found: Any) -> bool:
    """Return True only for a form that was accepted and says so."""
    content = getattr(found, "content", None) or {}
    return getattr(found, "action", None) == "accept" and isinstance(content, dict) and content.get("approve") is True


def _refusal(sentence: str) -> types.CallToolResult:
    text = "\n".join(safe_text(line, LONGEST_ERROR) for line in sentence.splitlines())[:LONGEST_ERROR]
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def log_fault(fault: BaseException) -> None:
    """Log the type and the place of a fault. Its message may quote data."""
    frames = traceback.extract_tb(fault.__traceback__)
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-6:]))
    LOG.error("%s at %s", type(fault).__name__, places)


async def serve_stdio(desk: AssistantDesk) -> None:
    """Serve one desk over stdin and stdout until the client closes them."""
    host = OneDesk(desk)
    server = build_server(host)
    try:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    finally:
        host.close()
