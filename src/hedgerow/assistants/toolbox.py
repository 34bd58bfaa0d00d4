"""All tools, and the call of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedgerow.assistants import asking, buying, describing, explaining, models
from hedgerow.assistants.arguments import require_arguments
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.quoting import safe_text
from hedgerow.assistants.tool import Tool, ToolCall, ToolResult
from hedgerow.errors import InvalidInput

TOOLS: tuple[Tool, ...] = (
    *describing.TOOLS,
    *asking.TOOLS,
    *explaining.TOOLS,
    *models.TOOLS,
    *buying.TOOLS,
)


def tools_of(desk: AssistantDesk) -> list[Tool]:
    """Return the tools that a desk has."""
    return [tool for tool in TOOLS if tool.is_offered(desk)]


def call_tool(
    desk: AssistantDesk, name: str, arguments: Mapping[str, Any] | None, call: ToolCall | None = None
) -> ToolResult:
    """Run a tool and note it in the history.

    Parameters
    ----------
    desk : AssistantDesk
        The table, and what the assistant may do with it.
    name : str
        Name of the tool.
    arguments : mapping or None
        Its arguments, which are checked against its schema.
    call : ToolCall, optional
        Approvals and the sign to stop. Its arguments are ignored.

    Returns
    -------
    ToolResult

    Raises
    ------
    HedgerowError
        If the call is refused. The message tells how to mend it.
    """
    tools = {tool.name: tool for tool in tools_of(desk)}
    if name not in tools:
        raise InvalidInput(
            f"A tool must be one of {', '.join(tools)}. Found {safe_text(str(name), 60)}. Use one of these."
        )
    tool, about = tools[name], call or ToolCall({})
    checked = require_arguments(tool.schema(desk), arguments)
    result = tool.run(desk, ToolCall(checked, about.approved, about.stop))
    desk.note(name, result.asked, result.charged)
    return result
