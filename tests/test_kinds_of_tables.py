"""On seven kinds of table, opening, the usual questions, a fit, synthetic records and a report succeed.

Every answer has an informative error bar, or states that there are too few rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kinds_of_tables
import numpy as np
import pytest
from kinds_of_tables import KINDS, Kind

import hedgerow as hr

pytestmark = pytest.mark.filterwarnings(
    "ignore::hedgerow.errors.NotPrivateWarning", "ignore::hedgerow.errors.PublicWarning"
)


def questions(kind: Kind) -> list[Any]:
    """Twenty questions that people ask first."""
    number, group, flag = kind.number, kind.group, kind.flag
    universe = kind.universe
    label = universe[group].labels[0]
    low, high = (float(end) for end in (np.nanmin(universe[number].bounds[0]), np.nanmax(universe[number].bounds[1])))
    middle = float(round((low + high) / 2))
    first, rest = hr.count({group: label}), ~hr.count({group: label})
    return [
        hr.count({flag: True}),
        hr.count({group: label}),
        hr.count({number: (middle, None)}),
        hr.count({flag: True, group: label}),
        hr.count({flag: True}) | hr.count({number: (None, middle)}),
        hr.marginal(group),
        hr.marginal(group, flag),
        hr.histogram(number, edges=[low, middle, high]),
        hr.mean(number),
        hr.median(number),
        hr.quantile(number, 0.9),
        hr.variance(number),
        hr.mean(number, where=hr.count({flag: True})),
        hr.share(hr.count({flag: True}), where=hr.count({group: label})),
        hr.group_by(group).count(),
        hr.group_by(group).mean(number),
        hr.group_by(group).share(hr.count({flag: True})),
        hr.difference(hr.mean(number, where=first), hr.mean(number, where=rest)),
        hr.odds_ratio(hr.count({flag: True}), first, rest),
        hr.trend(hr.count({flag: True}), over=number),
        hr.top(group, 2),
        *(
            [
                hr.count({kind.date: "2013-03"}), hr.group_by(kind.date, by="year").count(), hr.trend(number, over=kind.date),
                hr.histogram(kind.date, ["2013-01-01", "2013-07-01", "2014-12-31"]),
            ]
            if kind.date
            else []
        ),
    ]  # fmt: skip


def walk(kind: Kind, folder: Path) -> None:
    session = hr.open(kind.frame, universe=kind.universe, budget=kind.budget, reserve=0.1, seed=1, **kind.how)
    truth = kind.frame if not kind.how else None
    for query in questions(kind):
        answer = session.ask(query)
        ends = answer.interval
        said = str(answer)
        assert (
            ends is not None and np.isfinite(ends[0]).all() | np.isfinite(ends[1]).all()
        ) or "too few rows" in said, said
        if ends is not None and truth is not None:
            true = hr.unsafe.unsafe_answer(truth, query, kind.universe)
            if np.shape(true) != np.shape(
                ends[0]
            ):  # among the most frequent values there are ties, as far as bars tell
                continue
            assert np.all((ends[0] <= np.asarray(true) + 1e-9) & (np.asarray(true) - 1e-9 <= ends[1])), (
                query,
                said,
                true,
            )
        reaches_zero = (np.asarray(ends[0]) <= 0) & (np.asarray(ends[1]) >= 0) if ends is not None else True
        assert not np.any(reaches_zero) or "too few rows" in said or np.array_equal(*ends), said
    frame = session.sql(f"SELECT {kind.group}, count(*) AS n, avg({kind.number}) AS m FROM data GROUP BY {kind.group}")
    assert frame["n"].notna().all() and frame["n_error"].notna().all()
    model = hr.estimators.LogisticRegression(session, target=kind.flag, features=[kind.number, kind.group]).fit()
    assert 0.4 < model.score(kind.frame) <= 1
    records = session.synthetic(500)
    assert len(records) == 500 and set(records.columns) == set(kind.universe.names)
    assert kind.universe[kind.group].size and "count" in str(session.describe())
    session.report().save(folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Certificate" in page and kind.group in page
    assert session.certificate is not None or "No certificate" in str(session)


@pytest.mark.parametrize("name", KINDS)
def test_a_first_day_with_a_table_of_each_kind(name: str, tmp_path: Path) -> None:
    walk(KINDS[name](), tmp_path)


@pytest.mark.audit
def test_a_first_day_with_a_million_rows(tmp_path: Path) -> None:
    walk(kinds_of_tables.large(1_000_000), tmp_path)
