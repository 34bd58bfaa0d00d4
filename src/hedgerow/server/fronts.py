"""The engine's side of its fronts: fronts with a token of their own compute free answers, and the engine decides.

    GET  /v1/fronts/{dataset}/state      the public state, as a release file
    POST /v1/fronts/{dataset}/answers    may these answers be given? The first answer to a question is everybody's
    POST /v1/fronts/admissions           may these persons ask this? Their requests are counted and noted in the trail

A front decides nothing about people: their tokens, roles, rates and the trail are the engine's. A free answer is
written down here before it is given anywhere, so it repeats on every front and in every worker. Whoever has a front's
token decides free answers and sees the public state; it opens nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hedgerow.errors import HedgerowError
from hedgerow.server.api import ENDPOINTS, Endpoint, Service
from hedgerow.server.arrivals import read_body
from hedgerow.server.dataset import Dataset
from hedgerow.server.faults import log_fault
from hedgerow.server.outcomes import OutcomeStore
from hedgerow.server.people import Token
from hedgerow.server.problems import Refusal, bad_request, forbidden, internal, not_found
from hedgerow.server.reading import release_file
from hedgerow.server.shared_answers import read_proposed

LARGEST = 64_000_000  # bytes that a front may send at once
ITEMS = 1_000  # requests of people in one message
REVISION = "Hedgerow-Revision"
VERSION = "Hedgerow-Version"
DIGEST_BYTES = 32
Short = Annotated[str, msgspec.Meta(max_length=200)]


class ProposedBody(msgspec.Struct, forbid_unknown_fields=True):
    """Answers that a front computed from a revision of the public state, as a line of a ledger."""

    revision: Short
    answers: str


class AdmissionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """One request of a person at a front. With ``status`` it has ended, and is noted in the trail."""

    token: Annotated[str, msgspec.Meta(max_length=1_000)]
    dataset: Short
    endpoint: Short
    request: Short
    revision: str | None = None  # of the answers; None if there are none
    questions: list[str] = []  # that the person asks, as the trail remembers them
    is_new: bool = False  # the first message about this request, which counts against the rate
    asked: Annotated[str, msgspec.Meta(max_length=4_000)] = ""
    status: Annotated[int, msgspec.Meta(ge=100, le=599)] | None = None
    key: Short | None = None
    digest: bytes = b""


class AdmissionsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Requests of people at a front."""

    items: Annotated[list[AdmissionRequest], msgspec.Meta(max_length=ITEMS)]


class ServiceHost(Protocol):
    """The checks of the service, which hold at its fronts too."""

    service: Service
    outcomes: OutcomeStore

    def find_front(self, request: Request) -> Token: ...
    def find_token(self, request: Request, given: str) -> Token: ...
    def count_request(self, token: Token) -> None: ...
    def require_open(self) -> None: ...
    def require_role(self, endpoint: Endpoint, token: Token, identity: str, path: Mapping[str, str]) -> None: ...
    def note(
        self, token: Token, identity: str, path: Mapping[str, str], endpoint: str, *, asked: str = "", status: int
    ) -> None: ...
    async def check(self, name: str, request: Request, serve: Callable[[str], Awaitable[Response]]) -> Response: ...


class FrontEndpoints:
    """The routes of fronts."""

    def __init__(self, host: ServiceHost) -> None:
        self._host, self._service = host, host.service
        self._endpoints = {each.name: each for each in ENDPOINTS if each.is_answered_by_fronts}

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/v1/fronts/{dataset}/state", self._for_fronts("front_state", self._state), methods=["GET"]),
            Route("/v1/fronts/{dataset}/answers", self._for_fronts("front_answers", self._answers), methods=["POST"]),
            Route("/v1/fronts/admissions", self._for_fronts("front_admissions", self._admissions), methods=["POST"]),
        ]

    def _for_fronts(self, name: str, serve: Callable[[Request, Token], Awaitable[Response]]) -> Any:
        """Wrap an endpoint that needs a front's token. Fronts have no rate: they send what many people ask."""

        async def checked(request: Request) -> Response:
            async def served(_: str) -> Response:
                front = self._host.find_front(request)
                self._host.require_open()
                return await serve(request, front)

            return await self._host.check(name, request, served)

        return checked

    def _dataset(self, name: str, *tokens: Token) -> Dataset:
        found = self._service.datasets.get(name)
        if found is None or not all(token.may_use(name) for token in tokens):
            raise not_found()
        return found

    async def _body(self, request: Request, kind: type[Any]) -> Any:
        """Read a front's message, and refuse one that is late or has another form."""
        try:
            given = await asyncio.wait_for(read_body(request, LARGEST), self._service.limits.body_seconds)
            return msgspec.json.decode(given, type=kind)
        except TimeoutError:
            raise bad_request(
                "The body must arrive completely within the time limit. Found an incomplete body. Send it again.", 408
            ) from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise bad_request(
                "A message from a front must have the form that this version sends. Found another form. Run the same "
                "version of hedgerow on the engine and all fronts."
            ) from None

    # The public state

    async def _state(self, request: Request, front: Token) -> Response:
        """Send the public state of a dataset, unless the front has this version."""
        dataset = self._dataset(request.path_params["dataset"], front)
        while dataset.is_published:
            version, revision = dataset.version, dataset.revision
            headers = {VERSION: version, REVISION: revision}
            if request.headers.get("if-none-match") == version:
                return Response(status_code=304, headers=headers)
            content = await dataset.read("state of fronts", lambda session: release_file(session, "none"))
            if revision == dataset.revision:  # else something was released meanwhile
                return Response(content, headers=headers, media_type="application/octet-stream")
        raise Refusal(
            422, "not-published", "Free answers may depend on the table",
            "The free answers of a dataset must follow from released values. Found that they may not. Hand requests "
            "on.",
        )  # fmt: skip

    # Answers

    async def _answers(self, request: Request, front: Token) -> Response:
        """Judge the answers that a front wants to give: record them, or send those that were given before."""
        dataset = self._dataset(request.path_params["dataset"], front)
        given: ProposedBody = await self._body(request, ProposedBody)
        try:
            proposed = await asyncio.to_thread(read_proposed, given.answers, dataset.session.universe)
        except HedgerowError:
            raise bad_request(
                "Answers from a front must be a line of a ledger. Found another form. Run the same version of "
                "hedgerow on the engine and all fronts.") from None  # fmt: skip
        published = dataset.published
        if published is not None:
            await dataset.shared.read(published)
        if published is None or dataset.published is not published or given.revision != dataset.revision:
            return JSONResponse({"is_stale": True})
        others, fresh = dataset.shared.accept(published, proposed)
        if fresh:
            await dataset.note_given(fresh)
            dataset.settle_if_due()
        else:
            await dataset.wait_for_notes()
        return JSONResponse({"others": others} if others else {"is_given": True})

    # People

    async def _admissions(self, request: Request, front: Token) -> Response:
        """Judge whether each of the requests that a front received may be answered."""
        given: AdmissionsBody = await self._body(request, AdmissionsBody)
        verdicts = []
        for each in given.items:
            try:
                verdicts.append(self._verdict(request, front, each))
            except Exception as fault:  # of one request, which the others do not share
                log_fault(each.request, fault)
                verdicts.append({"refusal": refused_record(internal())})
        if self._service.trail.is_due:
            await asyncio.to_thread(self._service.trail.flush)
        return Response(msgspec.json.encode({"verdicts": verdicts}), media_type="application/json")

    def _verdict(self, request: Request, front: Token, asked: AdmissionRequest) -> dict[str, Any]:
        """Return what the front may do with one request of a person: the checks of a request, in their order."""
        token = None
        path = {"dataset": asked.dataset}
        try:
            token = self._host.find_token(request, asked.token)
            if asked.is_new:
                self._host.count_request(token)
            endpoint = self._endpoints.get(asked.endpoint)
            if endpoint is None:
                raise forbidden(token.role)
            self._host.require_role(endpoint, token, asked.request, path)
            dataset = self._dataset(asked.dataset, token, front)
            if asked.key is not None and len(asked.digest) == DIGEST_BYTES:
                self._host.outcomes.begin_free(token.id, asked.key, asked.digest)
        except Refusal as refused:
            if token is not None and refused.status != 429 and refused.name != "forbidden":
                self._host.note(token, asked.request, path, asked.endpoint, status=refused.status)
            return {"refusal": refused_record(refused)}
        if asked.revision is not None and asked.revision != dataset.revision:
            return {"is_stale": True}
        first = self._service.trail.is_first(asked.dataset, token.analyst, asked.questions)
        if asked.status is not None:
            self._host.note(token, asked.request, path, asked.endpoint, asked=asked.asked, status=asked.status)
        return {"first": first, "person": vars(token)}


def refused_record(refused: Refusal) -> dict[str, Any]:
    """Return a refusal as data."""
    return {
        "status": refused.status, "name": refused.name, "title": refused.title, "detail": refused.detail,
        "headers": dict(refused.headers or {}),
    }  # fmt: skip


def refusal_of(record: Mapping[str, Any]) -> Refusal:
    """Return the refusal that ``refused_record`` described."""
    return Refusal(record["status"], record["name"], record["title"], record["detail"], dict(record["headers"]) or None)
