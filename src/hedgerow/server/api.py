"""The endpoints: what each takes, who may use it, and what it returns.

Every endpoint is a row of ``ENDPOINTS``, from which routes, checks and the OpenAPI document are made.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import msgspec

import hedgerow as hr
from hedgerow._json import parse
from hedgerow.answer import Answer
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.query.counts import Query
from hedgerow.report import plain, record_of
from hedgerow.server.dataset import Dataset, Resolution, Scale
from hedgerow.server.people import ROLES, Token, TokenStore
from hedgerow.server.problems import Refusal, bad_request, internal, not_found, problem_of
from hedgerow.server.questions import read_question
from hedgerow.server.settings import Limits
from hedgerow.server.trail import Trail
from hedgerow.session import Session
from hedgerow.sql.result import SqlResult, run_statement

LOG = logging.getLogger("hedgerow.server")
PART = 100  # questions that are read or written before other requests have their turn
CHUNK = 500  # questions of a streamed batch that are answered at a time
NDJSON = "application/x-ndjson"
READERS = ("owner", "auditor")
ASKERS = ("owner", "analyst")
Question = str | dict[str, Any]
Positive = Annotated[float, msgspec.Meta(gt=0)]


Form = Literal["plain", "exact"]  # an answer as readable fields, or as the library's own form


class AskBody(msgspec.Struct, forbid_unknown_fields=True):
    """One question. With ``within`` a tighter error is bought if the free answer is not as good."""

    question: Question
    within: Positive | None = None
    scale: Scale = "fraction"
    resolution: Resolution = "values"
    form: Form = "plain"


class BatchBody(msgspec.Struct, forbid_unknown_fields=True):
    """Many questions, all of them free."""

    questions: list[Question]
    scale: Scale = "fraction"
    resolution: Resolution = "values"
    form: Form = "plain"


class SqlBody(msgspec.Struct, forbid_unknown_fields=True):
    """A SELECT on the table ``data``."""

    statement: str


class PriceBody(msgspec.Struct, forbid_unknown_fields=True):
    """A question with the error to be priced."""

    question: Question
    within: Positive
    resolution: Resolution = "values"


class TokenBody(msgspec.Struct, forbid_unknown_fields=True):
    """A person who gets a token."""

    person: str
    role: Literal["owner", "analyst", "auditor"]
    project: str = ""
    datasets: list[str] | None = None
    days: Positive | None = None


@dataclass(frozen=True)
class Reply:
    """The result of an endpoint: data, or bytes of a media type, or a stream of lines."""

    content: Any = None
    status: int = 200
    media: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Any = None
    cost: float = 0.0


@dataclass(frozen=True)
class Service:
    """The parts that all endpoints share."""

    datasets: Mapping[str, Dataset]
    tokens: TokenStore
    trail: Trail
    limits: Limits


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
        return await self.dataset.run(self.token.analyst, work)

    def whole(self, name: str, default: int, most: int) -> int:
        """Return a whole number of the query string."""
        given = self.parameters.get(name)
        if given is None:
            return default
        if not given.isascii() or not given.isdigit() or len(given) > 12 or not 1 <= int(given) <= most:
            raise bad_request(f"{name} must be a whole number from 1 to {most}. Found {given[:20]!r}. Correct it.")
        return int(given)

    def choice(self, name: str, default: str, known: tuple[str, ...]) -> Any:
        """Return one of the known words of the query string."""
        given = self.parameters.get(name, default)
        if given not in known:
            raise bad_request(f"{name} must be one of {', '.join(known)}. Found {given[:40]!r}. Choose one.")
        return given


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
    parameters: Mapping[str, str] = field(default_factory=dict)
    returns: str = "application/json"
    is_shown_once: bool = False

    @property
    def is_kept(self) -> bool:
        """True if the outcome of a request with an idempotency key is stored. One that is shown once is not."""
        return self.method == "POST" and not self.is_shown_once

    @property
    def summary(self) -> str:
        """First sentence of the handler's docstring."""
        return (self.handler.__doc__ or "").partition("\n")[0]


# Datasets


async def list_datasets(call: Call) -> Reply:
    """List the datasets of this token."""
    names = [name for name in call.service.datasets if call.token.may_use(name)]
    return Reply({"datasets": names})


async def describe_dataset(call: Call) -> Reply:
    """Return the public facts of a dataset: universe, budget, number of rows."""

    def facts(session: Session) -> dict[str, Any]:
        budget = session.budget
        return {
            "dataset": call.dataset.name,
            "universe": hr.wire.to_json(session.universe),
            "rows": round(session.rows),
            "rows_are": "public" if budget.neighbours == "replace" else "estimated",
            "budget": {"epsilon": budget.epsilon, "delta": budget.delta, "neighbours": budget.neighbours},
            "private": session.private,
            "blocks": list(session.blocks),
            "version": hr.__version__,
        }

    return Reply(plain(await call.run(facts)))


async def read_certificate(call: Call) -> Reply:
    """Return what is guaranteed of every small question, asked or not."""
    found = await call.run(lambda session: session.certificate)
    return Reply({"certificate": None if found is None else str(found)})


# Questions


async def ask(call: Call) -> Reply:
    """Answer one question."""
    given: AskBody = call.body
    query = read_question(given.question)
    call.asked = repr(query)
    if given.within is None:
        answers = await call.dataset.ask(call.token.analyst, [query], given.scale, given.resolution)
    else:
        within = given.within
        answers = [
            await call.run(
                lambda session: session.ask(query, within=within, scale=given.scale, resolution=given.resolution)
            )
        ]
    (record,) = _records(call, given.resolution, [query], answers, given.form)
    return Reply({"answer": record}, cost=answers[0].cost)


async def ask_by_text(call: Call) -> Reply:
    """Answer one free question, written as text in the query string."""
    given = call.parameters.get("q")
    if given is None:
        raise bad_request("The query string must have a question q. Found none. For example ?q=count(smoker=True).")
    scale = call.choice("scale", "fraction", ("fraction", "rows"))
    resolution = call.choice("resolution", "values", ("values", "bins"))
    query = read_question(given)
    call.asked = repr(query)
    answers = await call.dataset.ask(call.token.analyst, [query], scale, resolution)
    (record,) = _records(call, resolution, [query], answers)
    return Reply({"answer": record}, cost=answers[0].cost)


async def ask_batch(call: Call) -> Reply:
    """Answer many free questions; as lines of JSON if the request accepts application/x-ndjson."""
    given: BatchBody = call.body
    dataset = call.dataset  # refused before a stream begins
    if len(given.questions) > call.service.limits.questions:
        raise bad_request(
            f"A batch must have at most {call.service.limits.questions} questions. Found {len(given.questions)}. "
            "Send several.",
            413,
        )
    call.asked = f"{len(given.questions)} questions"
    queries: list[Query] = []
    for start in range(0, len(given.questions), PART):
        queries += [read_question(question) for question in given.questions[start : start + PART]]
        await asyncio.sleep(0)
    call.asked += ": " + "; ".join(repr(query) for query in queries[:PART])
    if NDJSON in call.accept:
        return Reply(stream=_lines(call, given, queries), media=NDJSON)
    answers = await dataset.ask(call.token.analyst, queries, given.scale, given.resolution)
    records: list[Any] = []
    for start in range(0, len(queries), PART):
        part = slice(start, start + PART)
        records += _records(call, given.resolution, queries[part], answers[part], given.form)
        await asyncio.sleep(0)
    return Reply({"answers": records}, cost=sum(answer.cost for answer in answers))


async def _lines(call: Call, given: BatchBody, queries: list[Any]) -> Any:
    """Answer a batch in parts, and yield one line for each answer. A refusal in the middle is the last line."""
    for start in range(0, len(queries), CHUNK):
        part = queries[start : start + CHUNK]
        try:
            answers = await call.dataset.ask(call.token.analyst, part, given.scale, given.resolution)
            records = _records(call, given.resolution, part, answers, given.form)
            status, lines = 200, [msgspec.json.encode({"answer": record}) + b"\n" for record in records]
            cost = sum(answer.cost for answer in answers)
        except Exception as fault:  # the headers are sent, so the refusal is a line
            problem = _problem(fault, is_owner=call.token.role == "owner")
            if problem.status == 500:
                LOG.error("request %s: %s", call.request_id, type(fault).__name__)
            status, cost = problem.status, 0.0
            lines = [msgspec.json.encode({"problem": {"type": problem.name, "detail": problem.detail}}) + b"\n"]
        if cost > 0 or status != 200:  # the entry of the request itself was made before the stream began
            call.service.trail.add(
                call.token, request=call.request_id, dataset=call.dataset.name, endpoint="ask_batch",
                asked=f"{len(part)} questions of a stream", cost=cost, status=status,
            )  # fmt: skip
        for line in lines:
            yield line
        if status != 200:
            return


def _problem(fault: Exception, *, is_owner: bool) -> Refusal:
    """Return the refusal that a fault is, without its message if it is an unexpected one."""
    if isinstance(fault, Refusal):
        return fault
    return problem_of(fault, is_owner=is_owner) if isinstance(fault, HedgerowError) else internal()


async def run_sql(call: Call) -> Reply:
    """Run a SELECT on the table data."""
    given: SqlBody = call.body
    call.asked = given.statement
    most = call.service.limits.questions

    def run(session: Session) -> SqlResult:
        def ask_all(queries: Sequence[Query]) -> list[Answer]:
            return session.ask_all(queries, scale="rows", progress=False)

        return run_statement(given.statement, session.universe, ask_all, most_questions=most)

    result = await call.run(run)
    records = [list(row) for row in result.records]
    return Reply({"columns": list(result.columns), "rows": plain(records)})


async def price(call: Call) -> Reply:
    """Return what a question with this error would cost now. Nothing is spent."""
    given: PriceBody = call.body
    query = read_question(given.question)
    call.asked = f"price of {query!r}"
    cost = await call.run(
        lambda session: (
            session.price(query, within=given.within, resolution=given.resolution),
            session.budget.currency,
        )
    )
    return Reply({"cost": cost[0], "currency": cost[1]})


async def synthesize(call: Call) -> Reply:
    """Draw synthetic records, as CSV, Parquet or an Arrow stream. Free."""
    rows = call.whole("rows", 1_000, call.service.limits.records)
    form = call.choice("format", "csv", ("csv", "parquet", "arrow"))
    call.asked = f"{rows} synthetic records"
    frame = await call.run(lambda session: session.synthetic(rows))
    content = await asyncio.to_thread(_write_records, frame, form)
    media = {
        "csv": "text/csv; charset=utf-8",
        "parquet": "application/vnd.apache.parquet",
        "arrow": "application/vnd.apache.arrow.stream",
    }[form]
    name = f"{call.dataset.name}-synthetic.{form}"
    return Reply(content, media=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _write_records(frame: Any, form: str) -> bytes:
    if form == "csv":
        return bytes(frame.to_csv(index=False).encode())
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, out = pa.Table.from_pandas(frame, preserve_index=False), io.BytesIO()
    if form == "parquet":
        pq.write_table(table, out)
    else:
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
    return out.getvalue()


async def read_history(call: Call) -> Reply:
    """Return this person's own latest requests."""
    most = call.whole("most", 100, 1_000)
    before = call.whole("before", 0, 10**12) or None
    found = call.service.trail.requests(call.dataset.name, person=call.token.person, before=before, most=most)
    shown = [{"number": r.number, "at": r.at, "endpoint": r.endpoint, "asked": r.asked, "cost": r.cost} for r in found]
    return Reply({"requests": shown})


# The owner's and the auditor's


async def read_spending(call: Call) -> Reply:
    """Return what is spent and left, and by whom."""

    def spending(session: Session) -> dict[str, Any]:
        report = parse(session.report().json)
        ledgers = {name: block.ledger for name, block in session.blocks.items()}
        people = {name: getattr(ledger, "spending", None) for name, ledger in ledgers.items()}
        return {
            "spent": session.spent,
            "remaining": session.remaining,
            "total": session.budget.total,
            "currency": session.budget.currency,
            "spent_epsilon": session.spent_epsilon,
            "facts": report["facts"],
            "by": {name: _frame(found()) for name, found in people.items() if callable(found)},
        }

    return Reply(plain(await call.run(spending)))


async def read_entries(call: Call) -> Reply:
    """Return the entries of the ledger: every charge, in order."""
    most = call.whole("most", 100, 10_000)
    after = call.whole("after", 0, 10**12)

    def entries(session: Session) -> list[dict[str, Any]]:
        return [
            {
                "number": entry.number,
                "why": entry.why,
                "asked": "" if entry.asked is None else repr(entry.asked),
                "events": [repr(event) for event in entry.events],
                "cost": entry.cost,
            }
            for entry in session.log
        ][after : after + most]

    return Reply({"entries": plain(await call.run(entries))})


async def read_trail(call: Call) -> Reply:
    """Return everybody's latest requests."""
    most = call.whole("most", 100, 1_000)
    before = call.whole("before", 0, 10**12) or None
    found = call.service.trail.requests(call.dataset.name, before=before, most=most)
    return Reply({"requests": [vars(request) for request in found]})


def _frame(found: Any) -> Any:
    return found.to_dict(orient="records") if hasattr(found, "to_dict") else found


# TokenStore


async def list_tokens(call: Call) -> Reply:
    """List all tokens, without their secrets."""
    covered = [token for token in call.service.tokens.list() if _covers(call.token, token)]
    return Reply({"tokens": [vars(token) for token in covered]})


async def create_token(call: Call) -> Reply:
    """Make a token. It is shown once."""
    given: TokenBody = call.body
    call.asked = f"token for {given.person}"
    if call.token.datasets is not None and (
        given.datasets is None or not set(given.datasets) <= set(call.token.datasets)
    ):
        raise InvalidInput(
            "datasets must be among those of the owner's own token. Found others. Name datasets of this token."
        )
    unknown = set(given.datasets or ()) - set(call.service.datasets)
    if unknown:
        raise InvalidInput(f"datasets must be served. Found {sorted(unknown)[0]!r}. GET /v1/datasets lists them.")
    secret, token = call.service.tokens.create(
        given.person, given.role, project=given.project, datasets=given.datasets, days=given.days
    )
    return Reply({"token": secret, **vars(token)}, 201)


async def revoke_token(call: Call) -> Reply:
    """End a token at once."""
    identity = call.path["token"]
    call.asked = f"revoke {identity}"
    known = {token.id: token for token in call.service.tokens.list()}
    if identity not in known or not _covers(call.token, known[identity]) or not call.service.tokens.revoke(identity):
        raise not_found()
    return Reply({"revoked": identity})


def _covers(owner: Token, other: Token) -> bool:
    """Return True if an owner's token is for all datasets of another token."""
    return owner.datasets is None or (other.datasets is not None and set(other.datasets) <= set(owner.datasets))


def _records(call: Call, resolution: str, queries: list[Any], answers: list[Answer], form: Form = "plain") -> list[Any]:
    """Return answers as data. A question that only others have asked before looks as if nobody had asked it."""
    first = call.service.trail.is_first(
        call.dataset.name, call.token.person, [f"{resolution} {query!r}" for query in queries]
    )
    shown = [
        replace(answer, source="hypothesis") if is_first and answer.source == "repeat" else answer
        for answer, is_first in zip(answers, first, strict=True)
    ]
    return [hr.wire.to_json(answer) if form == "exact" else plain(record_of(answer)) for answer in shown]


D = "/v1/datasets/{dataset}"
PAGES = {"most": "Entries of a page.", "before": "Number before which the page ends."}
TEXT = {
    "q": "The question, as text.",
    "scale": "fraction or rows.",
    "resolution": "values or bins.",
}
ENDPOINTS = (
    Endpoint("GET", "/v1/datasets", "list_datasets", list_datasets, ROLES),
    Endpoint("GET", D, "describe_dataset", describe_dataset, ROLES),
    Endpoint("GET", f"{D}/certificate", "read_certificate", read_certificate, ROLES),
    Endpoint("GET", f"{D}/ask", "ask_by_text", ask_by_text, ASKERS, parameters=TEXT),
    Endpoint("POST", f"{D}/ask", "ask", ask, ASKERS, AskBody),
    Endpoint("POST", f"{D}/batch", "ask_batch", ask_batch, ASKERS, BatchBody),
    Endpoint("POST", f"{D}/sql", "run_sql", run_sql, ASKERS, SqlBody),
    Endpoint("POST", f"{D}/price", "price", price, ASKERS, PriceBody),
    Endpoint(
        "GET", f"{D}/synthetic", "synthesize", synthesize, ASKERS,
        parameters={"rows": "Number of records.", "format": "csv, parquet or arrow."}, returns="text/csv",
    ),
    Endpoint("GET", f"{D}/history", "read_history", read_history, ASKERS, parameters=PAGES),
    Endpoint("GET", f"{D}/ledger/spending", "read_spending", read_spending, READERS),
    Endpoint(
        "GET", f"{D}/ledger/entries", "read_entries", read_entries, READERS,
        parameters={"most": "Entries of a page.", "after": "Number of entries to pass over."},
    ),
    Endpoint("GET", f"{D}/trail", "read_trail", read_trail, READERS, parameters=PAGES),
    Endpoint("GET", "/v1/tokens", "list_tokens", list_tokens, ("owner",)),
    Endpoint("POST", "/v1/tokens", "create_token", create_token, ("owner",), TokenBody, is_shown_once=True),
    Endpoint("DELETE", "/v1/tokens/{token}", "revoke_token", revoke_token, ("owner",)),
)  # fmt: skip
