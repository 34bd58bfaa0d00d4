"""The tool explain_answer: what a bar means, which theorem it rests on, what would narrow it, and what it settles."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.answer import Answer
from hedgerow.assistants.arguments import RESOLUTION, SCALE, Schema, arguments_schema, question_schema
from hedgerow.assistants.asking import BINS_HINT, free_answer
from hedgerow.assistants.buying import limit_exceeded
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.quoting import safe_text
from hedgerow.assistants.results import number_record, number_words, plain_number, sentence, verdict
from hedgerow.assistants.tool import Tool, ToolCall, ToolResult
from hedgerow.errors import BudgetExceeded, HedgerowError
from hedgerow.query.bound import Bound
from hedgerow.query.counts import Query
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.statistics import difference

THEOREM = "error bars (docs/proofs/error_bars.md)"
CONVEX_THEOREM = "bounds on the excess risk of public minima (docs/proofs/public_minimum.md)"


def explain_answer(desk: AssistantDesk, call: ToolCall) -> ToolResult:
    """Explain an answer. With ``other`` also say whether the two differ by more than the bars."""
    answer, bound, record = free_answer(desk, call.arguments["question"], call.arguments)
    query = answer.query
    data: dict[str, Any] = {"answer": record, "confidence": desk.confidence}
    data["meaning"] = _meaning(desk, answer)
    data["theorem"] = None if answer.error is None else CONVEX_THEOREM if query.is_convex else THEOREM
    data["would_narrow"] = _would_narrow(desk, call, answer)
    data["population"] = _population(desk, bound, answer)
    lines = [
        sentence(record),
        data["meaning"],
        *([] if data["theorem"] is None else [f"Theorem: {data['theorem']}."]),
        *data["would_narrow"],
        data["population"],
    ]
    if "value" in record and record["low"] is not None:
        is_settled = record["low"] > 0 or record["high"] < 0
        data["differs_from_0"] = is_settled
        lines.append("It certainly differs from 0." if is_settled else "It may be 0: do not report a sign.")
    if "other" in call.arguments:
        data["comparison"] = _comparison(desk, query, record, call)
        lines.append(data["comparison"]["words"])
    return ToolResult("\n".join(lines), data, asked=repr(query))


def _meaning(desk: AssistantDesk, answer: Answer) -> str:
    """Say what the bar of an answer promises."""
    if answer.error is None:
        return "Nothing that was released bounds the error of this answer. Read it as a hint, and report no finding."
    if answer.query.is_convex:
        return (
            "The bar bounds the excess risk: on the table, the average loss of these coefficients exceeds the least "
            f"possible by at most it, together with all other bars, with probability {desk.confidence:.3g}."
        )
    said = (
        "The bar bounds the distance from the true value on the table, not on the population. It holds together with "
        f"the bars of all other answers, with probability {desk.confidence:.3g}, however the questions were chosen. "
        "It is a guarantee, so most errors are much smaller: the typical error is an average, not a bound."
    )
    if answer.source == "measured":
        return said + " This question was measured itself."
    return said + " The value follows from what was released of the table."


def _would_narrow(desk: AssistantDesk, call: ToolCall, answer: Answer) -> list[str]:
    """List what would make the bar narrower."""
    if answer.error is None or answer.query.is_convex:
        return [*_at_bins(desk, call, answer), "Fewer attributes in a question give a narrower bar."]
    found = []
    bar, coarse = float(np.max(answer.error)), float(np.max(answer.resolution))
    if coarse > 0:
        found.append(
            f"{plain_number(coarse):g} of the bar comes from bins that the question cuts. Ask about whole bins, as "
            "describe_dataset lists them, or with resolution bins: no budget removes this part."
        )
    if bar > 2 * coarse and np.ndim(answer.value) == 0:
        found += _price_of_half(desk, call, answer.query, (bar + coarse) / 2)
    found.append("Fewer conditions, and larger groups, give narrower bars relative to the value.")
    return found


def _at_bins(desk: AssistantDesk, call: ToolCall, answer: Answer) -> list[str]:
    """Say which answer the coded table gives, where values inside bins leave an answer without a bar."""
    if answer.query.is_convex or call.arguments["resolution"] == "bins":
        return []
    _, _, record = free_answer(desk, call.arguments["question"], {**call.arguments, "resolution": "bins"})
    return (
        []
        if record.get("low") is None
        else [f"Values inside bins leave it without a bar. {BINS_HINT} Here: {number_words(record, record['unit'])}."]
    )


def _price_of_half(desk: AssistantDesk, call: ToolCall, query: Query, within: float) -> list[str]:
    """Say what a narrower bar would cost, if anything sells one."""
    resolution = call.arguments["resolution"]
    bound = bound_to(query, desk.view.universe, resolution)
    if not desk.quotes_prices or getattr(bound, "in_rows", False) or call.arguments["scale"] == "rows":
        return [f"The tool price tells what a narrower bar costs, such as {within:.3g}."]
    try:
        cost = desk.view.price(query, within=within, resolution=resolution)
    except BudgetExceeded as refused:  # whose amounts tell what others have spent
        why = f": {safe_text(str(refused))}" if desk.shows_spending else " here."
        return [f"A bar of {within:.3g} cannot be bought{why}"]
    except HedgerowError:
        return [
            f"A bar of {within:.3g} cannot be bought here. The owner may sell narrower ones from the session itself."
        ]
    limit = limit_exceeded(desk, cost)
    if limit is not None:
        return [f"A bar of {within:.3g} costs more than {limit}, so it cannot be bought."]
    who = "the tool buy" if desk.purchases else "the owner"
    return (
        [f"A bar of {within:.3g} costs {cost / desk.view.budget.total:.2%} of the budget now, from {who}."]
        if cost
        else []
    )


def _population(desk: AssistantDesk, bound: Bound[Any], answer: Answer) -> str:
    """Say what follows for the population that the rows came from."""
    view = desk.view
    statement = view.population_after(desk.numbers)
    if len(view.blocks) > 1 or not bound.is_fraction or answer.error is None or answer.query.is_convex:
        return "About the population that the rows came from, no bound is known for this kind of answer."
    error = statement.error(float(np.max(answer.error)))
    if error is None:
        return f"About the population: {statement}"
    return f"For the population, if the rows are independent draws from it, the bar is {error:.3g}. {statement}"


def _comparison(desk: AssistantDesk, query: Query, record: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    """Compare with another question: by a question about the difference if there is one, else by both bars."""
    view, resolution = desk.view, call.arguments["resolution"]
    other, _, second = free_answer(desk, call.arguments["other"], call.arguments)
    found = verdict({"value": None, **record}, {"value": None, **second})
    if found.get("low") is None or call.arguments["scale"] == "rows":
        return found
    try:
        gap = view.ask(difference(query, other.query), resolution=resolution)
    except HedgerowError:
        return found
    direct = number_record(gap.value, gap.error, gap.typical)
    if direct["low"] is None or direct["value"] is None or direct["bar"] >= (found["high"] - found["low"]) / 2:
        return found
    settled = direct["low"] > 0 or direct["high"] < 0
    words = (
        f"The difference itself is {direct['value']:.4g}, certainly between {direct['low']:.4g} and "
        f"{direct['high']:.4g}: " + ("its sign is settled." if settled else "its sign is not settled.")
    )
    return found | {
        "difference": direct["value"], "low": direct["low"], "high": direct["high"], "settled": settled, "words": words
    }  # fmt: skip


def _schema(desk: AssistantDesk) -> Schema:
    return arguments_schema(
        ("question",),
        question=question_schema(),
        other=question_schema() | {"description": "A second question: do the two differ by more than the bars?"},
        scale=SCALE,
        resolution=RESOLUTION,
    )


TOOLS = (
    Tool(
        "explain_answer", "Explain an answer",
        "What the bar of an answer means, by which theorem, what would narrow it, whether the answer differs from 0 or "
        "from another answer by more than the bars, and what follows for the population. Free.",
        _schema, explain_answer,
    ),
)  # fmt: skip
