"""A report contains released values and public facts, and nothing else."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from people import SMALL, frame, opened

import hedgerow as hr
from hedgerow.display import report_page
from hedgerow.errors import InvalidInput
from hedgerow.privacy.conversion import epsilon_of_rho
from hedgerow.privacy.events import Gaussian
from hedgerow.privacy.renyi_events import HitRound, RandomRuns
from hedgerow.report import Charge


def test_a_report_has_every_answer_and_every_charge(session) -> None:
    session = opened(frame())
    answers = [session.ask(hr.count(sex="F")), session.ask(hr.marginal("sex"))]
    report = session.report()
    found = json.loads(report.json)
    assert [a["question"] for a in found["answers"]] == [repr(a.query) for a in answers]
    assert found["answers"][0]["value"] == answers[0].value and found["answers"][0]["error"] == answers[0].error
    assert np.allclose(found["answers"][1]["value"], answers[1].value)
    assert found["answers"][1]["axes"] == [{"name": "sex", "labels": ["F", "M"]}]
    assert sum(charge["cost"] for charge in found["charges"]) == pytest.approx(session.spent)
    assert found["facts"]["rows"] == 20_000 and found["facts"]["private"].startswith("NO")
    assert [a["name"] for a in found["attributes"]] == list(SMALL.names)
    for shown in ("count(sex=&#x27;F&#x27;)", "spent", "prefit", "smoker"):
        assert shown in report.html
    session.ask(hr.count(sex="M"))
    assert len(report.answers) == 2  # it stays as it was


def test_a_report_says_nothing_about_the_rows() -> None:
    """The number of rows is private here, and so is which code they have."""
    secret = hr.Universe(code=hr.Integers(4000, 5000), flag=hr.Flag())
    rows = pd.DataFrame({"code": [4711] * 4321, "flag": [True] * 4321})
    session = hr.open(rows, universe=secret, budget=hr.Budget(1, 1e-6, neighbours="add-remove"), seed=2)
    session.ask(hr.count(flag=True))
    facts = json.loads(session.report().json)["facts"]
    assert "rows" not in facts and facts["rows_estimated"] == session.rows != 4321
    for shown in (session.report().html, session.report().json, session._repr_html_(), str(session)):
        assert "4711" not in shown and "4321" not in shown


def test_a_report_is_saved_by_the_name_of_its_file(session, tmp_path) -> None:
    report = session.report()
    assert report.save(tmp_path / "r.html").read_text(encoding="utf-8") == report.html
    assert json.loads(report.save(str(tmp_path / "r.json")).read_text(encoding="utf-8")) == json.loads(report.json)
    with pytest.raises(InvalidInput, match=r"must end in .html or .json. Found 'r.txt'"):
        report.save(tmp_path / "r.txt")


def test_numbers_that_are_not_finite_become_null() -> None:
    session = opened(frame(200))
    report = session.report()
    unbounded = session.ask(hr.count(sex="F")) / session.ask(hr.count(sex="F", age=7, region=3, smoker=False))
    kept = type(report)(report.facts, report.attributes, "<b>", report.charges, (unbounded / 0,))
    assert json.loads(kept.json)["answers"][0]["value"] is None
    assert "&lt;b&gt;" in kept.html


def test_a_session_says_in_a_terminal_and_a_notebook_what_it_spent(session) -> None:
    for shown in (str(session), session._repr_html_()):
        assert (
            "epsilon" in shown
            and "NO: the noise comes from a seed" in shown
            and "20,000" in shown
            and "% of the budget (rho" in shown
        )


def test_a_universe_lists_its_attributes() -> None:
    assert "sex: Categories, 2: F, M" in str(SMALL)
    assert "<td>sex</td><td>Categories</td><td>2</td><td>F, M</td>" in SMALL._repr_html_()


@pytest.fixture
def shared_ledger(tmp_path):
    """A ledger on which ana asked seven questions, some of which are composed of many counts, and bob bought one."""
    asked = [
        hr.count(sex="F"),
        hr.mean("age", where=hr.count(sex="F")),
        hr.median("age"),
        hr.marginal("region"),
        hr.group_by("region").mean("age"),
        hr.count(sex="M") | hr.count(smoker=True),
        hr.difference(hr.mean("age", where=hr.count(smoker=True)), hr.mean("age", where=hr.count(smoker=False))),
        hr.count(age=(3, 5), sex="F", smoker=True),
    ]
    open_again = {"ledger": f"sqlite:///{tmp_path / 'people.ledger'}", "reserve": 0.3}
    with opened(frame(), analyst="ana", **open_again) as session:
        for query in asked[:-1]:
            session.ask(query)
    with opened(frame(), analyst="bob", **open_again) as session:
        bought = session.ask(asked[-1], within=0.004)
    assert bought.source == "measured"
    with opened(frame(), **open_again) as session:
        yield session, asked


def test_a_report_lists_what_people_asked_and_not_what_it_is_composed_of(shared_ledger) -> None:
    session, asked = shared_ledger
    report = session.report(everybody=True)
    assert [repr(answer.query) for answer in report.answers] == [repr(query) for query in asked]
    assert len(report.parts) > 5  # nothing is lost
    for words in ("Mean of age where sex is F", "Median of age", "Rows where sex is M or smoker holds"):
        assert words in report.html


def test_names_and_times_are_in_a_report_for_the_owner_only(shared_ledger) -> None:
    session, _ = shared_ledger
    for report in (session.report(everybody=True), session.report()):
        assert "bob" not in report.html + report.json and all(not charge.when for charge in report.charges)
    report = session.report(everybody=True, names=True)
    assert "bob" in report.html and {charge.who for charge in report.charges} == {"", "bob"}
    assert all(charge.when for charge in report.charges)
    assert sum(charge.cost for charge in report.charges) == pytest.approx(session.spent)


def test_a_cover_says_what_was_spent_as_an_epsilon_and_whom_it_protects() -> None:
    report = opened(frame()).report()
    cover = report.html.partition("</section>")[0]
    assert f"{report.facts['spent_epsilon']:.4g}" in cover and "Nothing here is protected" in cover  # a seed
    assert "any one row" in cover and "ε if alone" in report.html and "@media print" in report.html
    pure = opened(frame(), budget=hr.Budget(1.0, 0.0)).report()
    assert "ε if alone" not in pure.html and report.facts["spent_epsilon"] <= 1


@pytest.mark.parametrize("k", [1, 4])
def test_the_epsilon_beside_a_cost_is_that_of_a_person(k) -> None:
    account = hr.Accountant(hr.Budget(1.0, 1e-6, "add-remove", rows_per_unit=k))
    account.charge(Gaussian(1.0, 60.0))
    assert cost_line(account)[1] == f"{account.spent_epsilon:.3g}"


@pytest.mark.parametrize("event", [HitRound(1.0, 0.02), RandomRuns(1e-3, 2.0)])
def test_a_price_that_is_no_rho_has_no_epsilon_beside_it(event) -> None:
    account = hr.Accountant(hr.Budget(1.0, 1e-6))
    account.charge(Gaussian(1.0, 60.0), event)
    assert account.spent_epsilon != pytest.approx(epsilon_of_rho(account.spent, 1e-6), rel=0.3)  # of a hit it is less
    cost, alone, share = cost_line(account)
    assert (cost, alone) == (f"{account.spent:.4g}", "–") and share.endswith("%")


def cost_line(account: hr.Accountant) -> tuple[str, ...]:
    """The line of a report about all that an account paid for."""
    facts = {"delta": 1e-6, "epsilon": 1.0, "rows_per_unit": account.budget.rows_per_unit}
    charges = [Charge(each.why, "", ", ".join(map(repr, each.events)), each.cost) for each in account.entries()]
    return report_page._cost(charges, facts | {"currency": "rho", "spent_of": account.budget.total})


def test_a_memory_ledger_has_no_names_to_tell() -> None:
    assert all(not charge.who and not charge.when for charge in opened(frame(200)).report(names=True).charges)


def test_groups_of_a_statement_are_told_by_their_values(session) -> None:
    session.sql("SELECT region, count(*) FROM data WHERE smoker GROUP BY region")
    session.sql("SELECT region, avg(age) FROM data GROUP BY region")
    session.ask(hr.count(region=1))
    page = session.report().html
    assert "<p>Rows where smoker holds, by region</p>" in page and "<p>Mean of age, by region</p>" in page
    assert "Rows where region is 1" in page and "mask(" not in page  # a question alone stays a line


def test_the_error_of_a_coefficient_is_called_guaranteed_only_if_it_is(session) -> None:
    session.ask(hr.minimize(hr.losses.Logistic(target="smoker", features=["age"]), over=hr.L2Ball(5.0)))
    page = session.report().html
    models = page[page.index("<h3>Models</h3>") :]
    head = models[models.index("<thead>") : models.index("</thead>")]
    assert "the error is" in head and "guaranteed" not in head


def test_a_bought_answer_tells_its_price_as_a_share_of_the_budget() -> None:
    session = opened(frame(), budget=hr.Budget(1.0, 1e-6), reserve=0.3)
    free = session.ask(hr.count(sex="F", smoker=True))
    paid = session.ask(hr.count(sex="F", smoker=True), within=0.9 * free.error)
    page = session.report().html
    share = paid.cost / session.budget.total
    assert f"measured, {paid.cost:.3g} ρ, {share:.1%} of the budget" in page
    assert "answers that had to be more accurate" in page


def test_a_report_writes_dates_as_dates_and_large_numbers_in_full() -> None:
    universe = hr.Universe(seen=hr.Dates("2020-01-01", "2020-12-31", by="month"), pay=hr.Range(0, 1000, bins=10))
    rows = pd.DataFrame({"seen": ["2020-03-10"] * 9000 + ["2020-11-20"] * 1000, "pay": [250.0] * 10_000})
    session = hr.open(rows, universe=universe, budget=hr.Budget(1, 1e-6), seed=1)
    session.ask_all([hr.median("seen"), hr.mean("seen"), hr.total("pay")])
    page = session.report().html
    assert "<td class=n>2020-03-" in page and "days</td>" in page and "18,3" not in page
    assert "e+0" not in page and "any one row." in page
