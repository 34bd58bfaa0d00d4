"""The engine as a front asks it: the public state, whether an answer may be given, and whether a person may ask.

Requests of people that wait at the same time are sent in one message.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from hedgerow.server.fronts import ITEMS, REVISION, VERSION, AdmissionRequest, refusal_of
from hedgerow.server.people import Token
from hedgerow.server.problems import Refusal, bad_request

ADMITTED = 10.0  # seconds in which a person's next question is computed before the engine is asked about the person
REMEMBERED = 10_000  # persons and datasets


@dataclass(frozen=True)
class EngineResponse:
    """A whole response of the engine. Names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class EngineGateway(Protocol):
    """A way to send the engine a request, again while the engine is away."""

    async def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> EngineResponse: ...


class StateUnavailable(Exception):
    """The engine gives no public state of a dataset: the front hands requests on."""


@dataclass(frozen=True)
class EngineState:
    """The public state of a dataset. ``data`` is None if the version is one that the front has."""

    version: str
    revision: str
    data: bytes | None


class EngineDesk:
    """The engine, as a front asks it."""

    def __init__(self, gateway: EngineGateway, token: str) -> None:
        self._gateway, self._headers = gateway, {"authorization": f"Bearer {token}"}
        self._waiting: list[tuple[msgspec.Raw, asyncio.Future[Any]]] = []
        self._sending: asyncio.Task[None] | None = None
        self._admitted: OrderedDict[bytes, tuple[Token, float]] = OrderedDict()

    async def state(self, dataset: str, version: str) -> EngineState:
        """Return the public state of a dataset, if it is another than this version."""
        got = await self._gateway.send(
            "GET", f"/v1/fronts/{dataset}/state", {**self._headers, "if-none-match": version}, b""
        )
        if got.status not in (200, 304):
            raise StateUnavailable
        data = None if got.status == 304 else got.body
        return EngineState(got.headers[VERSION.lower()], got.headers[REVISION.lower()], data)

    async def give(self, dataset: str, revision: str, answers: str) -> Mapping[str, Any]:
        """Ask the engine whether answers of this revision may be given.

        The verdict has ``is_given``, ``is_stale``, or ``others``: the answers that were given before.
        """
        found: Mapping[str, Any] = await self._post(
            f"/v1/fronts/{dataset}/answers", {"revision": revision, "answers": answers}
        )
        return found

    async def admit(self, asked: AdmissionRequest) -> Mapping[str, Any]:
        """Ask whether a person may ask. Return ``is_stale``, or which questions are new to the person."""
        promise: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((_item_of(asked), promise))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())
        verdict = await promise
        if "refusal" in verdict:
            self._admitted.pop(_name(asked.token, asked.dataset, asked.endpoint), None)
            raise refusal_of(verdict["refusal"])
        found: Mapping[str, Any] = verdict
        return found

    async def person(self, token: str, dataset: str, endpoint: str, request: str) -> tuple[Token, bool]:
        """Return the person of a token, and True if the engine was asked.

        Within ``ADMITTED`` seconds the engine is not asked again before an answer is computed. It is asked before any
        answer is given.
        """
        name, now = _name(token, dataset, endpoint), asyncio.get_running_loop().time()
        known = self._admitted.get(name)
        if known is not None and known[1] > now - ADMITTED:
            return known[0], False
        verdict = await self.admit(AdmissionRequest(token, dataset, endpoint, request, is_new=True))
        found = msgspec.convert(verdict["person"], Token)
        self._admitted[name] = found, now
        if len(self._admitted) > REMEMBERED:
            self._admitted.popitem(last=False)
        return found, True

    async def _send(self) -> None:
        """Send the waiting requests for admission in one message, and give each its verdict."""
        while self._waiting:
            sent, self._waiting = self._waiting[:ITEMS], self._waiting[ITEMS:]
            outcome: Any
            try:
                got = await self._post("/v1/fronts/admissions", {"items": [asked for asked, _ in sent]})
                outcome = got["verdicts"]
            except Exception as fault:  # nobody may wait for a verdict that will not come
                outcome = [fault] * len(sent)
            for (_, promise), verdict in zip(sent, outcome, strict=True):
                if promise.done():
                    continue
                if isinstance(verdict, Exception):
                    promise.set_exception(verdict)
                else:
                    promise.set_result(verdict)

    async def _post(self, target: str, body: Any) -> Any:
        """Send a message to the engine, and return what it answers."""
        headers = {**self._headers, "content-type": "application/json"}
        got = await self._gateway.send("POST", target, headers, msgspec.json.encode(body))
        if got.status != 200:
            raise Refusal(
                503, "engine-away", "The engine of the service does not answer its front",
                "The engine must answer. Found that it refuses its front. Try later, or tell the owner.", {"Retry-After": "1"},
            )  # fmt: skip
        return msgspec.json.decode(got.body)


def _name(token: str, dataset: str, endpoint: str) -> bytes:
    return hashlib.sha256("\0".join([token, dataset, endpoint]).encode()).digest()


def _item_of(asked: AdmissionRequest) -> msgspec.Raw:
    """Return a request as JSON, or refuse it alone if the engine could not read it together with others."""
    try:
        text = msgspec.json.encode(asked)
        msgspec.json.decode(text, type=AdmissionRequest)
    except (msgspec.MsgspecError, UnicodeError):
        raise bad_request(
            "A request must be UTF-8 text within the limits of length. Found another request. Correct it."
        ) from None
    return msgspec.Raw(text)
