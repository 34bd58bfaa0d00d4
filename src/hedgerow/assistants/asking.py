"""The tools that answer questions: ask, for one question or many, and sql."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import hedgerow as hr
from hedgerow.answer import Answer, Combination
from hedgerow.assistants.arguments import RESOLUTION, SCALE, Schema, arguments_schema, question_schema
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.quoting import label_words, safe_text
from hedgerow.assistants.results import (
    answer_record,
    ends_of,
    is_wide_by_bins,
    number_record,
    number_words,
    plain_label,
    plain_name,
    sentence,
    unit_of,
    verdict,
)
from hedgerow.assistants.tool import Tool, ToolCall, ToolResult
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.query import parse
from hedgerow.query.bound import Bound
from hedgerow.query.counts import Query
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.sql.result import run_statement

SETS = ("L2Ball", "L1Ball", "Box", "Simplex", "Unconstrained")
NOT_SENT = ("Custom", "Loss")  # losses that are functions of a user's own
BINS_HINT = (
    "No budget removes that part. With resolution bins a question is about the coded table, where each value is the "
    "representative of its bin, and its bar is much narrower."
)
PART = 50  # questions that are answered before a cancelled call is noticed


def read_question(given: Any) -> Query:
    """Return the question that an assistant wrote: a text, or an object of the JSON form. Nothing is executed."""
    if isinstance(given, str) and given.lstrip()[:6].upper() == "SELECT":
        raise InvalidInput("A question must be written as in Python. Found SQL. Send it to the tool sql.")
    found: Query
    if isinstance(given, str):
        try:
            found = parse.question(given, _names())
        except InvalidInput as refused:
            raise InvalidInput(str(refused).replace(parse.GUIDE, "See the description of questions.")) from None
    else:
        try:
            found = hr.wire.from_json(given if "v" in given else {"v": 1, **given}, hr.Query)
        except InvalidInput as refused:
            raise InvalidInput(f"{refused} Or write the question as text, such as count(sex='F').") from None
    if isinstance(found, RowStatistic):
        raise InvalidInput("A question must be data. Found a function of rows. Ask a count or a mean.")
    return found


def _names() -> parse.Names:
    """Return what a text may call besides the questions: losses and sets of convex questions."""
    return {
        "minimize": hr.minimize,
        **{f"losses.{name}": getattr(hr.losses, name) for name in hr.losses.__all__ if name not in NOT_SENT},
        **{name: getattr(hr, name) for name in SETS},
    }


def ask(desk: AssistantDesk, call: ToolCall) -> ToolResult:
    """Answer questions for free. A question that is refused does not stop the others."""
    given = call.arguments["questions"]
    pairs = _pairs(call.arguments.get("compare", []), len(given))
    different = list({repr(each): each for each in given}.items())
    found: dict[str, dict[str, Any]] = {}
    for start in range(0, len(different), PART):
        call.require_wanted()
        part = different[start : start + PART]
        answered = _answer_part(desk, [each for _, each in part], call.arguments)
        found |= dict(zip((name for name, _ in part), answered, strict=True))
    records = [dict(found[repr(each)]) for each in given]
    comparisons = [verdict(*_both(records, i, j)) | {"first": i, "second": j} for i, j in pairs]
    data: dict[str, Any] = {"answers": records, "comparisons": comparisons, "confidence": desk.confidence}
    refused = sum("error" in record for record in records)
    if refused == len(records):
        raise InvalidInput(records[0]["error"] if len(records) == 1 else _all_refused(records))
    lines, room = [], desk.limits.shown
    for number, record in enumerate(records):
        room -= len(record.get("cells", "1")) * max(1, len(record.get("axes", "1")) - 1)
        if room < 0:
            record.pop("cells", None)
            lines.append(f"{number}. {record['question']}: left out, because the result is long. Ask for it alone.")
            record["left_out"] = True
            continue
        lines.append(f"{number}. " + (f"refused: {record['error']}" if "error" in record else sentence(record)))
    lines += [f"Comparison of {each['first']} and {each['second']}: {each['words']}" for each in comparisons]
    cut = [str(number) for number, record in enumerate(records) if is_wide_by_bins(record)]
    if cut and call.arguments["resolution"] == "values":
        lines.append(f"The bars of {', '.join(cut)} are wide, or missing, because of values inside bins. {BINS_HINT}")
    lines.append(f"All bars hold together with probability {desk.confidence:.3g}. Free.")
    return ToolResult("\n".join(lines), data, asked=_question_texts(given))


def _answer_part(desk: AssistantDesk, given: Sequence[Any], how: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of some questions, computed together unless one of them is refused."""
    try:
        queries = [read_question(each) for each in given]
        answers = desk.view.ask_all(queries, scale=how["scale"], resolution=how["resolution"], progress=False)
    except (InvalidInput, TooLarge):
        return [_answer_one(desk, each, how) for each in given]
    return [_record(desk, each, answer, how)[1] for each, answer in zip(given, answers, strict=True)]


def _answer_one(desk: AssistantDesk, given: Any, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of one question: its answer, or the sentence that refuses it."""
    try:
        record = free_answer(desk, given, how)[2]
    except (InvalidInput, TooLarge) as refused:
        return {"question": safe_text(str(given)), "error": safe_text(str(refused), 1_500)}
    return record


def free_answer(desk: AssistantDesk, given: Any, how: Mapping[str, Any]) -> tuple[Answer, Bound[Any], dict[str, Any]]:
    """Ask a question of what was released: the answer, the bound question, and the record of the answer."""
    answer = desk.view.ask(read_question(given), scale=how["scale"], resolution=how["resolution"])
    return answer, *_record(desk, given, answer, how)


def _record(
    desk: AssistantDesk, given: Any, answer: Answer, how: Mapping[str, Any]
) -> tuple[Bound[Any], dict[str, Any]]:
    """Return the bound question and the record of an answer, and count its numbers."""
    bound = bound_to(answer.query, desk.table.universe, how["resolution"])
    record = answer_record(answer, unit_of(answer.query, bound, how["scale"]), bound, desk.limits, given)
    desk.numbers += max(1, len(record.get("cells", ())) + record.get("cells_left_out", 0))
    return bound, record


def _pairs(given: list[list[int]], questions: int) -> list[tuple[int, int]]:
    for pair in given:
        if not all(0 <= at < questions for at in pair):
            raise InvalidInput(
                f"compare must have numbers of questions, from 0 to {questions - 1}. Found {pair}. The first is 0."
            )
    return [(int(first), int(second)) for first, second in given]


def _both(records: Sequence[dict[str, Any]], first: int, second: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two records to be compared. An answer without a single number is compared as unknown."""
    one, other = ({"question": "", "unit": "", "value": None, **records[at]} for at in (first, second))
    return one, other


def _all_refused(records: Sequence[dict[str, Any]]) -> str:
    listed = "\n".join(f"{number}. {record['error']}" for number, record in enumerate(records[:10]))
    return f"At least one question must be one that can be asked. Found {len(records)} that cannot.\n{listed}"


def _question_texts(given: Sequence[Any]) -> str:
    texts = [each if isinstance(each, str) else "a question in JSON" for each in given]
    return texts[0] if len(texts) == 1 else f"{len(texts)} questions: " + "; ".join(texts[:20])


def run_sql(desk: AssistantDesk, call: ToolCall) -> ToolResult:
    """Run a SELECT on the table data. Aggregates come with bars, counts are in rows."""
    view, statement, most = desk.view, call.arguments["statement"], desk.limits.rows

    def ask_all(queries: Sequence[Query]) -> list[Answer]:
        answers: list[Answer] = []
        for start in range(0, len(queries), PART):
            call.require_wanted()
            answers += view.ask_all(queries[start : start + PART], scale="rows", progress=False)
        return answers

    result = run_statement(statement, view.universe, ask_all, most_questions=10 * desk.limits.questions)
    rows: list[list[Any]] = []
    for row in result.rows[:most]:
        cells = []
        for cell, is_answer in zip(row, result.is_answer, strict=True):
            if not is_answer:
                cells.append(plain_label(cell))
            elif cell is None or isinstance(cell, int | float):
                cells.append(number_record(float("nan") if cell is None else cell, 0.0, 0.0))
            else:
                cells.append(number_record(cell.value, cell.error, cell.typical, _ends(desk, cell)))
        rows.append(cells)
    desk.numbers += sum(result.is_answer) * len(result.rows)
    left = len(result.rows) - len(rows)
    data = {
        "columns": [plain_name(name) for name in result.names],
        "rows": rows,
        "rows_left_out": left,
        "confidence": desk.confidence,
    }
    lines = [" | ".join(safe_text(name, 80) for name in result.names)]
    for cells in rows:
        texts = [number_words(cell, "value") if isinstance(cell, dict) else label_words(cell) for cell in cells]
        lines.append(" | ".join(texts))
    if left:
        lines.append(f"… and {left} more rows. Use LIMIT and ORDER BY, or group by fewer columns.")
    lines.append("Every declared group has a row, also an empty one. Counts are in rows. Free.")
    return ToolResult("\n".join(lines), data, asked=statement)


def _ends(desk: AssistantDesk, cell: Any) -> tuple[float, float]:
    """Return the ends of an aggregate's interval in a SQL result; none if the aggregate combines several answers."""
    if not isinstance(cell, Answer) or isinstance(cell.query, Combination):
        return -math.inf, math.inf
    bound = bound_to(cell.query, desk.table.universe)
    low, high = ends_of(bound, unit_of(cell.query, bound, "rows"))
    return float(low), float(high)


def _ask_schema(desk: AssistantDesk) -> Schema:
    """Return the schema of the arguments of the tool ``ask``."""
    pair = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2}
    return arguments_schema(
        ("questions",),
        questions={
            "type": "array", "items": question_schema(), "minItems": 1, "maxItems": desk.limits.questions,
            "description": "One question, or many at once.",
        },
        scale=SCALE,
        resolution=RESOLUTION,
        compare={
            "type": "array", "items": pair, "maxItems": desk.limits.questions,
            "description": "Pairs of questions to compare, by number from 0: is their difference larger than the bars?",
        },
    )  # fmt: skip


def _sql_schema(desk: AssistantDesk) -> Schema:
    return arguments_schema(
        ("statement",),
        statement={
            "type": "string", "minLength": 1, "maxLength": parse.LONGEST,
            "description": "SELECT … FROM data …, such as SELECT sex, count(*), avg(age) FROM data GROUP BY sex.",
        },
    )  # fmt: skip


TOOLS = (
    Tool(
        "ask", "Ask questions",
        "Counts, shares, means, quantiles, totals, groups, tables and differences, each with the interval that "
        "contains the truth. Free, any number of times; the same question gets the same answer. Compare intervals, "
        "not values.",
        _ask_schema, ask,
    ),
    Tool(
        "sql", "Run SQL",
        "A SELECT with aggregates on the table data: count, sum, avg, quantiles, GROUP BY, WHERE, HAVING, ORDER BY, "
        "LIMIT. Each aggregate has its interval. Rows cannot be selected. Free.",
        _sql_schema, run_sql,
    ),
)  # fmt: skip
