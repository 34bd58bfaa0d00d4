"""Purchases and findings of assistants: a price binds, an approval is for one purchase, no interval is rounded inward."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import people
import pytest
from assisting import release_of, run
from mcp import Client

import hedgerow as hr
from hedgerow.assistants.buying import purchase_key
from hedgerow.assistants.desk import AssistantDesk, PurchaseRule
from hedgerow.assistants.protocol import OneDesk, _is_approval, build_server
from hedgerow.assistants.results import number_record, outward, verdict
from hedgerow.assistants.tool import ApprovalRequest, ToolCall
from hedgerow.assistants.toolbox import call_tool
from hedgerow.privacy.events import Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.research.audit_cases.session_cases import CORRELATED, KNOWN, QUESTION


def test_a_purchase_never_costs_more_than_its_price() -> None:
    """The price of a convex question is that of a first step; learning costs a thousand times as much here."""

    def opened() -> hr.Session:
        budget = hr.Budget(3.0, 0.05)
        return hr.open(CORRELATED[0], universe=CORRELATED[0].universe, budget=budget, seed=0, **KNOWN)

    question = "minimize(losses.Huber(target='y', features=('a',), width=0.25, intercept=False), over=L2Ball(0.25))"
    session = opened()
    desk = AssistantDesk(session, "people", PurchaseRule("assistant", needs_approval=False))
    purchase, spent = {"question": question, "within": 0.05}, session.spent
    price = call_tool(desk, "price", purchase).data["cost"]
    with contextlib.suppress(hr.BudgetExceeded):
        assert call_tool(desk, "buy", purchase).charged == pytest.approx(session.spent - spent, rel=1e-6)
    assert 0 < session.spent - spent <= price * (1 + 1e-6)
    free = opened()
    free.ask(QUESTION, within=0.05)
    assert free.spent - spent > 100 * price  # without the limit


def test_a_limit_on_charges_refuses_before_it_is_exceeded_and_ends_with_its_context() -> None:
    ledger = Accountant(hr.Budget(1.0, 0.0))
    with ledger.spending_at_most(0.3) as bill:
        ledger.charge(Laplace(1.0, 5.0))
        with pytest.raises(hr.BudgetExceeded, match="as was agreed"):
            ledger.charge(Laplace(1.0, 5.0))
        assert bill.cost == pytest.approx(0.2) and ledger.spent == pytest.approx(0.2)
    ledger.charge(Laplace(1.0, 5.0))
    assert ledger.spent == pytest.approx(0.4)


def test_an_approval_is_good_for_one_question_bar_and_price(tmp_path: Path) -> None:
    session = people.opened(people.frame(4000), ledger=f"sqlite:///{tmp_path / 'l'}", reserve=0.6)
    desk = AssistantDesk(session, "people", PurchaseRule("assistant"))
    bar = float(desk.view.ask(hr.count(smoker=True)).error)  # type: ignore[arg-type]
    purchase = {"question": "count(smoker=True)", "within": 0.8 * bar}
    with pytest.raises(ApprovalRequest) as waiting:
        call_tool(desk, "buy", purchase)
    approved = ToolCall({}, frozenset({waiting.value.key}))
    for other in ({"within": 0.7 * bar}, {"question": "count(sex='F')"}, {"resolution": "bins"}):
        with pytest.raises(ApprovalRequest):
            call_tool(desk, "buy", purchase | other | ({"within": 0.5 * bar} if "question" in other else {}), approved)
    assert session.spent == desk.view.spent
    assert call_tool(desk, "buy", purchase, approved).charged > 0
    query = hr.count(smoker=True)
    assert len({purchase_key(query, 0.1, "values", cost) for cost in (0.01, 0.02)}) == 2
    session.close()


@pytest.mark.parametrize(
    ("action", "content", "is_yes"),
    [
        ("accept", {"approve": True}, True),
        ("accept", {"approve": False}, False),
        ("accept", {"approve": "true"}, False),
        ("accept", {"approve": 1}, False),
        ("accept", {}, False),
        ("accept", None, False),
        ("decline", {"approve": True}, False),
        ("cancel", {"approve": True}, False),
    ],
)
def test_only_a_form_that_was_accepted_with_a_yes_is_an_approval(action: str, content: Any, is_yes: bool) -> None:
    assert _is_approval(SimpleNamespace(action=action, content=content)) is is_yes
    assert not _is_approval(None)


def test_an_interval_in_a_result_contains_the_exact_one() -> None:
    rng = np.random.default_rng(0)
    for value, error in zip(
        rng.normal(size=2000) * 10 ** rng.uniform(-6, 6, 2000),
        rng.random(2000) * 10 ** rng.uniform(-8, 6, 2000),
        strict=True,
    ):
        found = number_record(value, error, None)
        assert found["low"] <= value - error and value + error <= found["high"] and error <= found["bar"]
        assert outward(value, 1, 4) >= value >= outward(value, -1, 4)


def test_a_comparison_is_settled_exactly_where_the_intervals_are_apart() -> None:
    rng = np.random.default_rng(1)
    settled = 0
    for _ in range(500):
        one, other = (
            {"question": "q", "unit": "share", **number_record(rng.random(), 0.3 * rng.random(), None)}
            for _ in range(2)
        )
        found = verdict(one, other)
        apart = one["low"] > other["high"] or one["high"] < other["low"]
        assert (
            found["settled"] == apart
            and found["low"] <= one["low"] - other["high"]
            and found["high"] >= one["high"] - other["low"]
        )
        assert ("certainly" in found["words"]) == apart and ("Not settled" in found["words"]) == (not apart)
        settled += apart
    assert 100 < settled < 450


class BrokenDesk(AssistantDesk):
    @property
    def view(self) -> Any:
        raise RuntimeError("the row of Mrs. Smith, 47, is broken")


def test_a_fault_is_told_and_logged_without_its_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    desk = BrokenDesk(people.opened(people.frame(400)))

    async def work() -> None:
        async with Client(build_server(OneDesk(desk)), mode="auto") as client:
            result = await client.call_tool("ask", {"questions": ["count(smoker=True)"]})
            assert result.is_error and "fault" in result.content[0].text and "Smith" not in result.content[0].text

    own = logging.getLogger("hedgerow")
    before, own.propagate = own.propagate, True
    try:
        with caplog.at_level("ERROR", "hedgerow"):
            run(work)
    finally:
        own.propagate = before
    assert "RuntimeError" in caplog.text and "Smith" not in caplog.text


def test_an_explanation_states_the_population_only_where_a_theorem_does() -> None:
    question, said = {"question": "count(smoker=True)"}, []
    for epsilon in (0.2, 2.0):
        desk = AssistantDesk(people.opened(people.frame(20_000), budget=hr.Budget(epsilon, 1e-6)))
        found = call_tool(desk, "explain_answer", question).data
        statement = desk.view.population_after(desk.numbers)
        assert str(statement) in found["population"]
        said.append(statement.is_useful)
        if statement.is_useful:
            bar = float(statement.error(found["answer"]["bar"]) or 0)
            assert bar > found["answer"]["bar"] and f"the bar is {bar:.3g}" in found["population"]
        mean = call_tool(desk, "explain_answer", {"question": "mean('age')"}).data
        assert "no bound is known" in mean["population"]
    assert said == [True, False]


def test_nothing_is_bought_of_a_release_or_without_a_rule_whatever_the_desk_says(tmp_path: Path) -> None:
    for desk in (
        AssistantDesk(hr.load(release_of(tmp_path)), "people", PurchaseRule("assistant", needs_approval=False)),
        AssistantDesk(people.opened(people.frame(400)), "people"),
    ):
        with pytest.raises(hr.InvalidInput, match=r"must be allowed by the owner|A tool must be one of"):
            call_tool(desk, "buy", {"question": "count(smoker=True)", "within": 0.4})
