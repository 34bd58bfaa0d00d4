"""The endpoints that ask: single questions, batches, SQL, fits, prices, synthetic records and summaries."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

import hedgerow as hr
from hedgerow._json import parse
from hedgerow.answer import Answer
from hedgerow.errors import HedgerowError
from hedgerow.query.counts import Query
from hedgerow.report import plain, record_of
from hedgerow.server.answer_queue import Meter, Resolution, Scale, question_name
from hedgerow.server.buying import buy, require_bounded
from hedgerow.server.endpoint import Call, Reply
from hedgerow.server.judging import judge_model
from hedgerow.server.problems import Refusal, bad_request, internal, problem_of
from hedgerow.server.questions import NAMES, read_question
from hedgerow.server.worker import summary_record, write_records
from hedgerow.session import Session
from hedgerow.sql.result import SqlResult, run_statement
from hedgerow.sql.statement import read_statement

LOG = logging.getLogger("hedgerow.server")
PART = 100  # questions that are read or written before other requests have their turn
SHORT = 2_000  # characters of a statement that is read before other requests have their turn
CHUNK = 500  # questions of a streamed batch that are answered at a time
NDJSON = "application/x-ndjson"
FORMS = ("csv", "parquet", "arrow")
RECORDS = ("text/csv; charset=utf-8", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream")
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


class FitBody(msgspec.Struct, forbid_unknown_fields=True):
    """A model: its loss, its target and features, and the set that its coefficients are in.

    ``over`` is a ball of this radius by the Euclidean or by the sum norm, or a box that reaches as far in every
    direction.
    """

    loss: Literal[
        "Logistic", "Squared", "Hinge", "SmoothedHinge", "Huber", "Absolute", "Poisson", "MultinomialLogistic"
    ]
    target: str
    features: list[str]
    radius: Positive = 5.0
    over: Literal["L2Ball", "L1Ball", "Box"] = "L2Ball"
    within: Positive | None = None


class PlanBody(msgspec.Struct, forbid_unknown_fields=True):
    """A plan for a number of rows, or for an accuracy."""

    rows: Annotated[int, msgspec.Meta(ge=1, le=10**12)] | None = None
    accuracy: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    queries: Annotated[int, msgspec.Meta(ge=1, le=10**9)] = 100_000
    beta: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.05


async def ask(call: Call) -> Reply:
    """Answer one question."""
    given: AskBody = call.body
    query = read_question(given.question)
    call.asked = repr(query)
    answer = await _ask_one(call, query, given.within, given.scale, given.resolution)
    (record,) = _records(call, given.resolution, [query], [answer], given.form)
    return Reply({"answer": record})


async def ask_by_text(call: Call) -> Reply:
    """Answer one free question, written as text in the query string."""
    given = call.parameters.get("q")
    if given is None:
        raise bad_request("The query string must have a question q. Found none. For example ?q=count(smoker=True).")
    scale = call.choice("scale", "fraction", ("fraction", "rows"))
    resolution = call.choice("resolution", "values", ("values", "bins"))
    query = read_question(given)
    call.asked = repr(query)
    answers = await call.dataset.ask(call.token.analyst, [query], scale, resolution, call.meter)
    (record,) = _records(call, resolution, [query], answers)
    return Reply({"answer": record})


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
    call.asked = f"{len(given.questions)} question{'s' if len(given.questions) != 1 else ''}"
    queries: list[Query] = []
    for start in range(0, len(given.questions), PART):
        queries += [read_question(question) for question in given.questions[start : start + PART]]
        await asyncio.sleep(0)
    call.asked = "\n".join([call.asked, *(repr(query) for query in queries[:PART])])
    if NDJSON in call.accept:
        return Reply(stream=_lines(call, given, queries), media=NDJSON)
    answers = await dataset.ask(call.token.analyst, queries, given.scale, given.resolution, call.meter)
    records: list[Any] = []
    for start in range(0, len(queries), PART):
        part = slice(start, start + PART)
        records += _records(call, given.resolution, queries[part], answers[part], given.form)
        await asyncio.sleep(0)
    return Reply({"answers": records})


async def _lines(call: Call, given: BatchBody, queries: list[Any]) -> Any:
    """Answer a batch in parts, and yield one line for each answer. A refusal in the middle is the last line."""
    for start in range(0, len(queries), CHUNK):
        part, meter = queries[start : start + CHUNK], Meter()
        try:
            answers = await call.dataset.ask(call.token.analyst, part, given.scale, given.resolution, meter)
            records = _records(call, given.resolution, part, answers, given.form)
            status, lines = 200, [msgspec.json.encode({"answer": record}) + b"\n" for record in records]
        except Exception as fault:  # the headers are sent, so the refusal is a line
            problem = _problem(fault, is_owner=call.token.role == "owner")
            if problem.status == 500:
                LOG.error("request %s: %s", call.request_id, type(fault).__name__)
            status = problem.status
            lines = [msgspec.json.encode({"problem": {"type": problem.name, "detail": problem.detail}}) + b"\n"]
        if meter.cost > 0 or status != 200:  # the entry of the request itself was made before the stream began
            call.service.trail.add(
                call.token, request=call.request_id, dataset=call.dataset.name, endpoint="ask_batch",
                asked=f"{len(part)} questions of a stream", cost=meter.cost, status=status,
            )  # fmt: skip
        for line in lines:
            yield line
        if status != 200:
            return


def _problem(fault: Exception, *, is_owner: bool) -> Refusal:
    """Return a fault as a refusal, without its message if the fault is unexpected."""
    if isinstance(fault, Refusal):
        return fault
    return problem_of(fault, is_owner=is_owner) if isinstance(fault, HedgerowError) else internal()


async def run_sql(call: Call) -> Reply:
    """Run a SELECT on the table data."""
    given: SqlBody = call.body
    call.asked = given.statement
    most = call.service.limits.questions

    if call.dataset.is_published:
        universe = call.dataset.universe
        if universe is not None and len(given.statement) <= SHORT:
            read_statement(given.statement, universe)  # one that cannot be read is refused at once
        name = f"sql {hashlib.sha256(given.statement.encode()).hexdigest()}"
        columns, rows, asked = await call.dataset.compute(
            call.token.analyst, "run_sql", given.statement, most, question=name, key=(given.statement, most)
        )
        call.note_questions([name], asked)
        return Reply({"columns": columns, "rows": plain(rows)})

    def run(session: Session) -> SqlResult:
        def ask_all(queries: Sequence[Query]) -> list[Answer]:
            return session.ask_all(queries, scale="rows", progress=False)

        return run_statement(given.statement, session.universe, ask_all, most_questions=most)

    result = await call.run(run)
    return Reply({"columns": list(result.columns), "rows": plain([list(row) for row in result.records])})


async def price(call: Call) -> Reply:
    """Return what a question with this error would cost now. Nothing is spent."""
    given: PriceBody = call.body
    query = read_question(given.question)
    call.asked = f"price of {query!r}"
    await require_bounded(call, query, given.resolution)
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
    form = call.choice("format", "csv", FORMS)
    call.asked = f"{rows} synthetic records"
    if call.dataset.is_published:
        content = await call.dataset.compute(call.token.analyst, "synthesize", rows, form)
    else:
        frame = await call.run(lambda session: session.synthetic(rows))
        content = await asyncio.to_thread(write_records, frame, form)
    media = dict(zip(FORMS, RECORDS, strict=True))[form]
    name = f"{call.dataset.name}-synthetic.{form}"
    return Reply(content, media=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})


async def describe(call: Call) -> Reply:
    """Summarize every column and the strongest associations. Free."""
    if call.dataset.is_published:
        return Reply(await call.dataset.compute(call.token.analyst, "describe", key=("describe",)))
    return Reply(await call.dataset.read("describe", lambda session: summary_record(session.describe())))


async def fit(call: Call) -> Reply:
    """Fit a model to the table: a convex question by the names of its columns. Free without ``within``.

    With it come its text as a question, and a judgement on the public hypothesis: the model's risk beside that of no
    features, and predicted beside observed shares.
    """
    given: FitBody = call.body
    loss = getattr(hr.losses, given.loss)(target=given.target, features=given.features)
    ends = (-given.radius, given.radius) if given.over == "Box" else (given.radius,)
    query = hr.minimize(loss, over=getattr(hr, given.over)(*ends))
    over = f"{given.over}({', '.join(map(repr, ends))})"
    call.asked = f"minimize(losses.{given.loss}(target={given.target!r}, features={given.features!r}), over={over})"
    answer = await _ask_one(call, query, given.within)
    (record,) = _records(call, "values", [query], [answer])
    theta = np.asarray(answer.value, float)
    if call.dataset.is_published:
        key = (NAMES.of(query), theta.tobytes())
        judgement = await call.dataset.compute(call.token.analyst, "judge", query, theta, key=key)
    else:
        judgement = await call.run(lambda session: judge_model(session.hypothesis, session.universe, query, theta))
    coefficients = plain(answer.coefficients.to_dict(orient="records"))
    return Reply(
        {"question": call.asked, "answer": record, "coefficients": coefficients, "judgement": plain(judgement)}
    )


async def _ask_one(
    call: Call, query: Query, within: float | None, scale: Scale = "fraction", resolution: Resolution = "values"
) -> Answer:
    """Answer a question for free, or buy its answer: a count over time is always paid for."""
    if within is None and not query.is_asked_alone:
        if not call.dataset.is_published:
            await require_bounded(call, query, resolution)
        (answer,) = await call.dataset.ask(call.token.analyst, [query], scale, resolution, call.meter)
        return answer
    return await buy(call, query, within, scale, resolution)


async def plan(call: Call) -> Reply:
    """Recommend a mechanism for a number of rows or an accuracy, from theorems alone. No row is read."""
    given: PlanBody = call.body
    call.asked = "a plan"
    universe, budget = call.dataset.session.universe, call.dataset.session.budget

    def made() -> Any:
        return hr.plan(
            universe=universe, budget=budget, rows=given.rows, accuracy=given.accuracy, queries=given.queries,
            beta=given.beta, simulate=False, progress=False,
        )  # fmt: skip

    found = await asyncio.to_thread(made)
    return Reply(parse(found.json))


def _records(
    call: Call, resolution: Resolution, queries: list[Any], answers: list[Answer], form: Form = "plain"
) -> list[Any]:
    """Return answers as data. A question that only other analysts have asked looks like a new one."""
    first = call.note_questions([question_name(query, resolution) for query in queries])
    shown = [
        replace(answer, source="hypothesis") if is_first and answer.source == "repeat" else answer
        for answer, is_first in zip(answers, first, strict=True)
    ]
    return [hr.wire.to_json(answer) if form == "exact" else plain(record_of(answer)) for answer in shown]


def buys(call: Call) -> bool:
    """Return True if a question may charge: with ``within``, or where a free answer may depend on the table."""
    dataset = call.service.datasets.get(call.path["dataset"])
    return getattr(call.body, "within", None) is not None or (dataset is not None and not dataset.is_published)


def free(call: Call) -> bool:
    """Return False: a request of this kind never charges."""
    return False
