"""Results that a language model reads: units, intervals within the possible values, remarks on bins, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import people
import pytest

import hedgerow as hr
from hedgerow.assistants.desk import AssistantDesk, PurchaseRule
from hedgerow.assistants.toolbox import call_tool

WOMEN, MEN = "share(count(smoker=True), where=count(sex='F'))", "share(count(smoker=True), where=count(sex='M'))"
UNITS = {
    "count(smoker=True)": "share",
    "marginal('sex')": "share",
    WOMEN: "share",
    f"difference({WOMEN}, {MEN})": "points",
    "compare(group_by('sex').share(count(smoker=True)))": "points",
    "compare(group_by('sex').share(count(smoker=True)), measure='ratio')": "number",
    "compare(group_by('sex').mean('visits'))": "value",
    "mean('visits')": "value",
    "group_by('sex').mean('visits')": "value",
    "group_by('sex').count()": "share",
    "quantile('visits', 0.9)": "value",
    "total('visits')": "total",
    "group_by('sex').total('visits')": "total",
    "variance('visits')": "value",
    "ratio(count(sex='F'), count(sex='M'))": "number",
    "relative_risk(count(smoker=True), count(sex='F'), count(sex='M'))": "number",
    "cramers_v('sex', 'smoker')": "number",
    "correlation('visits', 'smoker')": "number",
    "trend('visits', 'smoker')": "value",
    "top('sex', 1)": "share",
    "histogram('visits', edges=[0, 9, 80])": "share",
    "parity('sex', 'smoker')": "share",
}


class Unaffordable(AssistantDesk):
    """A desk whose table refuses every price, and names an amount."""

    @property
    def view(self) -> Any:
        view = self.table.public_view()

        def price(*_: Any, **__: Any) -> float:
            raise hr.BudgetExceeded("The price must be at most 0.00049 rho, what is left. Found 1. Ask for less.")

        view.price = price  # type: ignore[attr-defined]
        return view


@pytest.fixture(scope="module")
def desk() -> AssistantDesk:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "visits": rng.gamma(1.0, 4.0, 4000).clip(0, 80),
            "sex": rng.choice(["F", "M"], 4000),
            "smoker": rng.random(4000) < 0.3,
        }
    )
    universe = hr.Universe(visits=hr.Range(edges=[0, 3, 9, 20, 80]), sex=hr.Categories(["F", "M"]), smoker=hr.Flag())
    return AssistantDesk(hr.open(frame, universe=universe, budget=hr.Budget(2.0, 1e-6), guard=0.0, seed=1))


def ask(desk: AssistantDesk, question: str, **given: Any) -> Any:
    return call_tool(desk, "ask", {"questions": [question], **given})


@pytest.mark.parametrize("resolution", ["values", "bins"])
@pytest.mark.parametrize("question", UNITS)
def test_every_answer_has_its_unit_and_an_interval_of_possible_values(
    desk: AssistantDesk, question: str, resolution: str
) -> None:
    record = ask(desk, question, resolution=resolution).data["answers"][0]
    assert record["unit"] == UNITS[question] and record["measures"] not in ("", "value")
    low = -1.0 if "correlation" in question else -np.inf if record["unit"] in ("points", "value") else 0.0
    if question.split("(")[0] in ("mean", "quantile", "variance", "total") or question.startswith("group_by"):
        low = 0.0
    high = 1.0 if record["unit"] == "share" or question.split("(")[0] in ("correlation", "cramers_v") else np.inf
    for cell in record.get("cells", [record]):
        assert cell["low"] is None or low - 1e-9 <= cell["low"] <= cell["value"] <= cell["high"] <= high + 1e-9


def test_a_count_in_rows_is_in_rows_and_a_total_never_is(desk: AssistantDesk) -> None:
    assert ask(desk, "count(smoker=True)", scale="rows").data["answers"][0]["unit"] == "rows"
    total = ask(desk, "total('visits')", scale="rows")
    assert total.data["answers"][0]["unit"] == "total" and "rows ±" not in total.text and "added up" in total.text


def test_a_comparison_is_in_the_unit_of_what_it_compares(desk: AssistantDesk) -> None:
    found = call_tool(
        desk,
        "ask",
        {"questions": [WOMEN, MEN, "mean('visits')", "total('visits')"], "compare": [[0, 1], [2, 2], [2, 3]]},
    )
    shares, means, mixed = found.data["comparisons"]
    assert shares["unit"] == "points" and "percentage points" in shares["words"]
    assert means["unit"] == "value" and "percentage" not in means["words"]
    assert "cannot be compared" in mixed["words"]


def test_sql_averages_are_within_the_declared_range(desk: AssistantDesk) -> None:
    rows = call_tool(
        desk, "sql", {"statement": "SELECT sex, avg(visits), count(*), sum(visits) FROM data GROUP BY sex"}
    )
    for cell in (cell for row in rows.data["rows"] for cell in row[1:]):
        assert 0 <= cell["low"] <= cell["value"] <= cell["high"]
    assert all(row[1]["high"] <= 80 for row in rows.data["rows"])


def test_a_bar_that_bins_make_wide_is_remarked_with_the_way_out(desk: AssistantDesk) -> None:
    wide, narrow = ask(desk, "mean('visits')"), ask(desk, "mean('visits')", resolution="bins")
    assert "The bars of 0 are wide" in wide.text and "resolution bins" in wide.text
    assert "inside bins" not in narrow.text
    assert narrow.data["answers"][0]["bar"] < 0.5 * wide.data["answers"][0]["bar"]
    assert "inside bins" not in ask(desk, "count(sex='F')").text
    explained = call_tool(desk, "explain_answer", {"question": "correlation('visits', 'smoker')"}).data
    if explained["answer"]["low"] is None:
        assert explained["theorem"] is None and any("resolution bins" in each for each in explained["would_narrow"])


def test_a_refusal_names_no_document_that_an_assistant_cannot_read(desk: AssistantDesk) -> None:
    for question in (
        "count(visits>3)",
        "mean(visits)",
        "proportion(sex='F')",
        {"kind": "count", "where": {"sex": "F"}},
    ):
        with pytest.raises(hr.InvalidInput) as refused:
            call_tool(desk, "ask", {"questions": [question]})
        assert "docs/questions.md" not in str(refused.value)
        assert "description of questions" in str(refused.value) or "as text, such as" in str(refused.value)


def test_a_desk_names_only_tools_that_it_has(desk: AssistantDesk, tmp_path: Path) -> None:
    assert "buy" not in call_tool(desk, "describe_dataset", {}).data["free"]


@pytest.mark.parametrize("shows_spending", [True, False])
def test_a_bar_that_the_budget_cannot_pay_for_is_called_so_without_the_amounts_of_others(shows_spending: bool) -> None:
    session = people.opened(people.frame(4000), reserve=0.02)
    desk = AssistantDesk(session, purchases=PurchaseRule("assistant"), shows_spending=shows_spending)
    for within, is_said in ((1e-4, True), (0.007, shows_spending)):
        found = call_tool(desk, "price", {"question": "count(age=2)", "within": within})
        assert session.remaining < found.data["cost"]
        assert ("cannot be bought" in found.text) == is_said and found.data["may_buy"] is not is_said
    told = str(call_tool(desk, "explain_answer", {"question": "count(age=2)"}).data["would_narrow"])
    assert ("what is left" in told) == shows_spending
    desk = Unaffordable(session, shows_spending=shows_spending)
    told = str(call_tool(desk, "explain_answer", {"question": "count(age=2)"}).data["would_narrow"])
    assert "cannot be bought" in told and ("0.00049" in told) == shows_spending
