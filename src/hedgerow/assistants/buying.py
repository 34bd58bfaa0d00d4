"""The tools price and buy. Buying is the only way in which a tool can charge the table's budget.

``buy`` is offered only where the owner allowed it. The amount is limited by a cap in the ledger, which holds across
processes and restarts, and a person may have to approve each purchase.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any

from hedgerow.assistants.arguments import RESOLUTION, SCALE, WITHIN, Schema, arguments_schema, question_schema
from hedgerow.assistants.asking import read_question
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.quoting import safe_text
from hedgerow.assistants.results import answer_record, plain_number, sentence, unit_of
from hedgerow.assistants.tool import ApprovalRequest, Tool, ToolCall, ToolResult
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import Query
from hedgerow.query.counts import bound as bound_to
from hedgerow.session import Session


def price(desk: AssistantDesk, call: ToolCall) -> ToolResult:
    """Return what a narrower bar would cost now. Nothing is charged."""
    view, within, resolution = desk.view, float(call.arguments["within"]), call.arguments["resolution"]
    query = read_question(call.arguments["question"])
    cost, whole = view.price(query, within=within, resolution=resolution), view.budget.total
    data = {
        "question": safe_text(repr(query)), "within": within, "cost": plain_number(cost),
        "currency": view.budget.currency, "share_of_budget": plain_number(cost / whole),
        "may_buy": desk.purchases is not None and limit_exceeded(desk, cost) is None,
    }  # fmt: skip
    if cost == 0:
        said = "free: the free answer has such a bar already. Use ask."
    else:
        said = f"{cost:.4g} {view.budget.currency}, {cost / whole:.2%} of the whole budget. "
        limit = limit_exceeded(desk, cost)
        if limit is not None:
            said += f"This is more than {limit}, so it cannot be bought. Ask for a wider bar."
        else:
            said += (
                "Use buy." if desk.purchases else "Nothing can be bought here: tell the owner what you need and why."
            )
    return ToolResult(f"{data['question']} within {within:g}: {said}", data, asked=f"price of {query!r}")


def limit_exceeded(desk: AssistantDesk, cost: float) -> str | None:
    """Return the limit that a cost exceeds, or None.

    The amount that others have left is shown only if the owner shows spending.
    """
    view = desk.view
    if cost > view.budget.total:
        return "the whole budget"
    return "what is left of the budget" if desk.shows_spending and cost > view.budget.total - view.spent else None


def buy(desk: AssistantDesk, call: ToolCall) -> ToolResult:
    """Buy a narrower bar under the cap, for at most its price. A purchase that was made before is repeated for free.

    The price of some questions is that of a first step. So the ledger refuses more than the price, because a person
    approved that price only.
    """
    session, rule = desk.table, desk.purchases
    if rule is None or not isinstance(session, Session):
        raise InvalidInput("Purchases must be allowed by the owner. Found that they are not. Use ask, which is free.")
    within, scale, resolution = float(call.arguments["within"]), call.arguments["scale"], call.arguments["resolution"]
    query = read_question(call.arguments["question"])
    cost = desk.view.price(query, within=within, resolution=resolution)
    if cost > 0 and rule.needs_approval:
        key = purchase_key(query, within, resolution, cost)
        if key not in call.approved:
            raise ApprovalRequest(key, purchase_request(desk, query, within, cost))
    call.require_wanted()  # from here on the call is completed: what is charged is recorded, and repeats for free
    with session.on_behalf_of(rule.analyst), contextlib.ExitStack() as stack:
        for block in session.blocks.values():
            stack.enter_context(block.ledger.spending_at_most(cost))
        answer = desk.sell(session, query, within, scale, resolution)
    bound = bound_to(query, session.universe, resolution)
    record = answer_record(answer, unit_of(query, bound, scale), bound, desk.limits, call.arguments["question"])
    desk.numbers += max(1, len(record.get("cells", ())))
    data: dict[str, Any] = {"answer": record, "charged": plain_number(answer.cost), "currency": session.budget.currency}
    paid = f"Charged {answer.cost:.4g} {session.budget.currency}." if answer.cost else "Charged nothing."
    return ToolResult(f"{sentence(record)}\n{paid} Asking again is free.", data, answer.cost, repr(query))


def purchase_key(query: Query, within: float, resolution: str, cost: float) -> str:
    """Return the name of exactly this purchase at this price, to which an approval is tied."""
    text = f"{query!r} within {within!r} of {resolution} for {cost:.6g}"
    return "buy-" + hashlib.sha256(text.encode()).hexdigest()[:24]


def purchase_request(desk: AssistantDesk, query: Query, within: float, cost: float) -> str:
    """Return what a person is asked to approve."""
    budget = desk.table.budget
    return (
        f"An assistant wants to spend {cost:.4g} {budget.currency}, {cost / budget.total:.2%} of the privacy budget of "
        f"{desk.name}, for good, for an answer within {within:g} to: {safe_text(repr(query))}"
    )


def _schema(desk: AssistantDesk) -> Schema:
    return arguments_schema(("question", "within"), question=question_schema(), within=WITHIN, resolution=RESOLUTION)


def _buy_schema(desk: AssistantDesk) -> Schema:
    return arguments_schema(
        ("question", "within"), question=question_schema(), within=WITHIN, scale=SCALE, resolution=RESOLUTION
    )


TOOLS = (
    Tool(
        "price", "Price a narrower bar",
        "What an answer with a bar of within would cost of the budget. Nothing is charged. Most answers need no "
        "purchase.",
        _schema, price, needs_session=True,
    ),
    Tool(
        "buy", "Buy a narrower bar",
        "Spend a part of the privacy budget, for good, on an answer with a bar of within. Only if the free bar does "
        "not settle your question: see price and explain_answer first. A person may be asked to approve.",
        _buy_schema, buy, is_offered=lambda desk: desk.purchases is not None, spends=True, needs_session=True,
    ),
)  # fmt: skip
