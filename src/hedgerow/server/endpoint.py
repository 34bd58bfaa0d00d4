"""Parts that all endpoints share: a request that has passed the checks, a reply, and a row of the interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hedgerow.server.answer_queue import Meter
from hedgerow.server.approvals import ApprovalStore
from hedgerow.server.commits import GroupCommits
from hedgerow.server.dataset import Dataset
from hedgerow.server.people import Token, TokenStore
from hedgerow.server.pool import WorkerPool
from hedgerow.server.problems import bad_request, not_found
from hedgerow.server.registrar import Registrar
from hedgerow.server.settings import ApprovalRule, Limits
from hedgerow.server.trail import Trail
from hedgerow.session import Session

READERS = ("owner", "auditor")
ASKERS = ("owner", "analyst")


@dataclass(frozen=True)
class Reply:
    """The result of an endpoint: data, or bytes of a media type, or a stream of lines."""

    content: Any = None
    status: int = 200
    media: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Any = None


@dataclass(frozen=True)
class Service:
    """The parts that all endpoints share."""

    datasets: Mapping[str, Dataset]
    tokens: TokenStore
    trail: Trail
    approvals: ApprovalStore
    limits: Limits
    commits: GroupCommits
    pool: WorkerPool | None = None
    rules: Mapping[str, ApprovalRule] = field(default_factory=dict)
    registrar: Registrar | None = None


@dataclass
class Call:
    """One request that has passed all checks: its token, its dataset, its body and its parameters."""

    service: Service
    token: Token
    request_id: str
    body: Any
    parameters: Mapping[str, str]
    path: Mapping[str, str]
    accept: str
    disconnected: Callable[[], Awaitable[bool]]
    asked: str = ""  # words for the trail, also of a request that is refused
    meter: Meter = field(default_factory=Meter)  # what was charged, also by a request that is refused

    @property
    def dataset(self) -> Dataset:
        """The dataset of the path. One that does not exist and one that the token is not for are refused alike."""
        name = self.path["dataset"]
        found = self.service.datasets.get(name)
        if found is None or not self.token.may_use(name):
            raise not_found()
        return found

    async def run(self, work: Callable[[Session], Any]) -> Any:
        """Run work on the dataset's session on behalf of this person."""
        return await self.dataset.run(self.token.analyst, work, self.meter)

    def note_questions(self, names: Sequence[str], each: int = 1) -> list[bool]:
        """Tell for each question whether this person asks it for the first time.

        Such a one counts ``each`` against the limit.
        """
        first = self.service.trail.is_first(self.dataset.name, self.token.analyst, names)
        self.dataset.count_new(self.token.analyst, each * sum(first))
        return first

    def whole(self, name: str, default: int, most: int, least: int = 1) -> int:
        """Return a whole number of the query string."""
        given = self.parameters.get(name)
        if given is None:
            return default
        if not given.isascii() or not given.isdigit() or len(given) > 12 or not least <= int(given) <= most:
            raise bad_request(
                f"{name} must be a whole number from {least} to {most}. Found {given[:20]!r}. Correct it."
            )
        return int(given)

    def choice(self, name: str, default: str, known: tuple[str, ...]) -> Any:
        """Return one of the known words of the query string."""
        given = self.parameters.get(name, default)
        if given not in known:
            raise bad_request(f"{name} must be one of {', '.join(known)}. Found {given[:40]!r}. Choose one.")
        return given


Parameter = tuple[str, Mapping[str, Any]]
"""A parameter of the query string: a sentence, and its JSON schema."""


def whole(text: str, most: int, least: int = 1) -> Parameter:
    """Return a parameter that is a whole number."""
    return text, {"type": "integer", "minimum": least, "maximum": most}


def choice(text: str, *known: str) -> Parameter:
    """Return a parameter that is one of some words."""
    return text, {"type": "string", "enum": list(known)}


def text(text: str) -> Parameter:
    """Return a parameter that is a text."""
    return text, {"type": "string"}


Handler = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True)
class Endpoint:
    """One row of the interface."""

    method: str
    path: str
    name: str
    handler: Handler
    roles: tuple[str, ...]
    body: type[msgspec.Struct] | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    returns: str | tuple[str, ...] = "application/json"
    is_shown_once: bool = False
    may_wait: bool = False  # for an owner's approval
    is_answered_by_fronts: bool = False  # where it is free and follows from released values
    may_charge: Callable[[Call], bool] | None = None  # for requests that are not free whatever they say

    @property
    def is_kept(self) -> bool:
        """True if the outcome of a request with an idempotency key is stored.

        A secret that is shown once is not stored.
        """
        return self.method == "POST" and not self.is_shown_once

    @property
    def summary(self) -> str:
        """First sentence of the handler's docstring."""
        return (self.handler.__doc__ or "").partition("\n")[0]

    def charges(self, call: Call) -> bool:
        """Return True if this request may charge, so that its outcome must be stored before it is sent."""
        return self.is_kept and (self.may_charge is None or self.may_charge(call))
