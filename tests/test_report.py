"""A report has what was released and what is public, and nothing else."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from people import SMALL, frame, opened

import hedgerow as hr
from hedgerow.errors import InvalidInput


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


def test_what_is_not_finite_is_null() -> None:
    session = opened(frame(200))
    report = session.report()
    unbounded = session.ask(hr.count(sex="F")) / session.ask(hr.count(sex="F", age=7, region=3, smoker=False))
    kept = type(report)(report.facts, report.attributes, "<b>", report.charges, (unbounded / 0,))
    assert json.loads(kept.json)["answers"][0]["value"] is None
    assert "&lt;b&gt;" in kept.html


def test_a_session_says_in_a_terminal_and_a_notebook_what_it_spent(session) -> None:
    for shown in (str(session), session._repr_html_()):
        assert "epsilon" in shown and "NO: the noise comes from a seed" in shown and "20000" in shown


def test_a_universe_lists_its_attributes() -> None:
    assert "sex: Categories, 2: F, M" in str(SMALL)
    assert "<td>sex</td><td>Categories</td><td>2</td><td>F, M</td>" in SMALL._repr_html_()
