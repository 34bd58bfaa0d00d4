"""A tool and its result, as values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hedgerow.assistants.arguments import Schema

if TYPE_CHECKING:
    from hedgerow.assistants.desk import AssistantDesk


@dataclass(frozen=True)
class ToolResult:
    """A result in two forms: a short text for a reader, and the same facts as data for a program.

    ``charged`` is what the call cost, in the budget's currency. ``asked`` is what the history and the audit trail keep.
    """

    text: str
    data: dict[str, Any]
    charged: float = 0.0
    asked: str = ""


@dataclass(frozen=True)
class ToolCall:
    """A call with checked arguments. ``approved`` has the keys of purchases that a person has approved.

    ``stop`` is set when nobody waits for the result any more.
    """

    arguments: Mapping[str, Any]
    approved: frozenset[str] = frozenset()
    stop: threading.Event = field(default_factory=threading.Event)

    def require_wanted(self) -> None:
        """End the work of a call that was cancelled."""
        if self.stop.is_set():
            raise LostCall


class LostCall(Exception):
    """The caller does not wait for the result any more."""


class ApprovalRequest(Exception):
    """A purchase waits for the approval of a person. ``key`` names exactly this purchase at this price."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key, self.message = key, message


@dataclass(frozen=True)
class Tool:
    """A tool: its name, what it tells an assistant, its arguments, and the function that runs it.

    ``is_offered`` says whether a desk has it. ``spends`` is True for the tools that may be charged, and
    ``needs_session`` for those that a copy of the released values cannot run.
    """

    name: str
    title: str
    description: str
    schema: Callable[[AssistantDesk], Schema]
    run: Callable[[AssistantDesk, ToolCall], ToolResult]
    is_offered: Callable[[AssistantDesk], bool] = lambda desk: True
    spends: bool = False
    needs_session: bool = False
