"""A count asked alone has the same answer, bar and typical error as in a batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.bars import count_bars
from hedgerow.engine.practical.bars.count_bars import CountBars
from hedgerow.engine.practical.bars.error_bars import ErrorBars
from hedgerow.engine.practical.fit.residuals import Overview, center
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.query.linear import Linear
from hedgerow.universe.universe import Universe, subsets

SMALL = Universe({"a": hr.Integers(0, 4), "b": hr.Categories([*"wxyz"]), "c": hr.Flag(), "d": hr.Integers(0, 2)})
WIDE = hr.Universe(pay=hr.Integers(0, 59), place=hr.Integers(0, 29), kind=hr.Integers(0, 3), sex=hr.Flag())


def count(universe: Universe, rng: np.random.Generator) -> Linear:
    """A product of sets: a value, a run, all but one, or any."""
    masks = {}
    for name in rng.choice(universe.names, rng.integers(1, len(universe.names) + 1), replace=False).tolist():
        size = universe[name].size
        mask = np.zeros(size, bool)
        first, last = sorted(rng.integers(size, size=2).tolist())
        mask[[first] if rng.random() < 0.3 else slice(first, last + 1)] = True
        masks[name] = rng.random(size) < 0.5 if rng.random() < 0.3 else mask ^ (rng.random() < 0.2)
    return Linear.product(universe, masks)


def some_bars(kind: str, rng: np.random.Generator) -> CountBars:
    bars = CountBars(SMALL, 0.05)
    names = [("a",), ("a", "b"), ("b", "c"), ("a", "b", "c"), ("a", "c", "d")]
    if "overview" in kind:
        shapes = [SMALL.sizes(s) for s in subsets(("a", "b", "c"))]
        residuals = [
            Measurement(
                s, center(rng.normal(0, 30, shape)) + 8_000 * (not s), Gaussian(1.0, 30.0 + 5 * len(s)), residual=True
            )
            for s, shape in zip(subsets(("a", "b", "c")), shapes, strict=True)
        ]
        bars.add_overview(Overview(SMALL, residuals, None))
    for each in names if "overview" not in kind else names[-1:]:
        event = Laplace(1.0, 15.0) if "laplace" in kind else Gaussian(1.0, float(rng.uniform(10, 40)))
        bars.add(Measurement(each, rng.normal(900, 300, SMALL.sizes(each)), event))
    return bars


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "overview"])
@pytest.mark.parametrize(
    "rows", [RowCountInterval(10_000, 10_000, 10_000), RowCountInterval(9_900, 9_000, 11_000, 300.0)]
)
def test_a_count_alone_has_the_bar_that_it_has_among_others(kind: str, rows: RowCountInterval) -> None:
    rng = np.random.default_rng(3)
    bars = some_bars(kind, rng)
    queries = [count(SMALL, rng) for _ in range(150)]
    low, high = bars.intervals(queries, rows)
    for i, query in enumerate(queries):
        assert bars.interval(query, rows) == pytest.approx((low[i], high[i]), rel=1e-12, abs=1e-12)
        wanted = float(bars.deviations(query.attributes, [query])[0]) if query.attributes else math.inf
        assert not query.attributes or bars.deviation(query) == pytest.approx(wanted, rel=1e-12)
    assert 0 < sum(np.isinf(bars.deviation(q)) for q in queries if q.attributes) < 100


def test_later_measurements_count_at_once() -> None:
    rng = np.random.default_rng(4)
    bars, rows = some_bars("gaussian", rng), RowCountInterval(10_000, 10_000, 10_000)
    query = Linear.product(SMALL, {"a": np.arange(5) == 1, "d": np.arange(3) > 0})
    before = bars.interval(query, rows)
    bars.add(Measurement(("a", "d"), np.full((5, 3), 666.0), Gaussian(1.0, 2.0)))
    assert bars.interval(query, rows) == pytest.approx([float(end[0]) for end in bars.intervals([query], rows)])
    assert bars.interval(query, rows) != before
    bars.add(Measurement(query.attributes, np.array(900.0), Gaussian(1.0, 1.0), query))
    low, high = bars.interval(query, rows)
    assert (low, high) == pytest.approx([float(end[0]) for end in bars.intervals([query], rows)]) and high - low < 0.01


def test_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_bars, "KEPT_PARTS", 2)
    monkeypatch.setattr(count_bars, "KEPT_TAILS", 2)
    rng = np.random.default_rng(5)
    bars, rows = some_bars("gaussian", rng), RowCountInterval(10_000, 10_000, 10_000)
    plain = ErrorBars(SMALL, 0.05)
    for measurement, _ in bars._tables:
        plain.add(measurement)
    for query in (count(SMALL, rng) for _ in range(60)):
        ends = [float(end[0]) for end in plain.intervals([query], rows)]
        assert bars.interval(query, rows) == pytest.approx(ends, rel=1e-12, abs=1e-12)
    assert len(bars._plans) <= 2


def opened(budget: hr.Budget, **options: Any) -> hr.Session:
    rng = np.random.default_rng(6)
    pay = np.exp(-np.arange(60) / 8)[:, None] * rng.dirichlet(np.full(60, 0.5), 30).T
    cells = (pay[:, :, None, None] * rng.dirichlet(np.full(8, 0.6), (60, 30)).reshape(60, 30, 4, 2)).ravel()
    counts = rng.multinomial(30_000, cells / cells.sum()).reshape(60, 30, 4, 2)
    return hr.open(HistogramSource(WIDE, counts), universe=WIDE, budget=budget, seed=3, guard=0.0, **options)


@pytest.mark.parametrize("budget", [hr.Budget(1, 1e-6), hr.Budget(1, 0.0), hr.Budget(1, 1e-6, "add-remove")], ids=str)
def test_an_answer_alone_is_the_one_among_others(budget: hr.Budget) -> None:
    rng = np.random.default_rng(7)
    session = opened(budget, reserve=0.3)
    known = session._engine.public.knowledge
    queries = [count(WIDE, rng) for _ in range(120)]
    assert [known.typical_of(query) for query in queries] == pytest.approx(known.typical(queries), nan_ok=True)
    session.ask(hr.count(pay=(3, 9), place=4), within=0.01)  # so that the model is no longer the certified one
    known = session._engine.public.knowledge
    queries = [count(WIDE, rng) for _ in range(120)]
    values, errors = known.free_all(queries)
    usual = known.typical(queries)
    for i, query in enumerate(queries):
        assert known.free(query, None) == pytest.approx((values[i], errors[i]), rel=1e-9, abs=1e-11)
        assert known.typical_of(query) == pytest.approx(usual[i], rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_question_errs_by_the_noise_that_the_fit_leaves_in_its_cells(neighbours: str) -> None:
    """Little of it in cells where few rows are believed; all of it in what was measured by itself. By hand, weighted with the squares of
    the centred weights."""
    session = opened(hr.Budget(1, 1e-6, neighbours), reserve=0.3)
    known, rng = session._engine.public.knowledge, np.random.default_rng(8)
    names = ("kind", "sex")
    cell = Linear.product(WIDE, {"kind": np.arange(4) == 0, "sex": np.arange(2) == 0})
    sigma = known.bars.deviations(names, [cell])[0]
    believed = known.rows.estimate * known.hypothesis_table(names) / sigma + 0.25
    weights = [rng.random((4, 2)), np.outer([1.0, 0, 1, 0], [0.0, 1]), np.outer(np.arange(4) / 3 - 0.4, [0.8, 0]) + 0.5]
    for table in weights:
        query = Linear.from_table(WIDE, names, table)
        squares = (table - table.mean()) ** 2
        kept = (squares * believed**2 / (1 + believed**2)).sum() / squares.sum()
        noise = known.bars.deviations(names, [query])[0] / known.rows.estimate
        by_hand = np.sqrt(2 / np.pi * kept) * noise
        assert known.typical_of(query) == pytest.approx(by_hand) == pytest.approx(known.typical([query])[0])
    bought = hr.count(pay=(3, 9), place=4)
    assert session.ask(bought, within=0.006).source == "measured"
    assert bought.on(WIDE).key in known._bought
    noise = known.bars.deviation(bought.on(WIDE)) / known.rows.estimate
    assert known.typical_of(bought.on(WIDE)) == pytest.approx(np.sqrt(2 / np.pi) * noise)
