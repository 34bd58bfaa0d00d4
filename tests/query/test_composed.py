"""Composed questions lie between their ends on every table that the bars of their parts allow, wherever in their bins values are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.query.bound import Estimate
from hedgerow.query.composed import AnswerKnowledge
from hedgerow.query.linear import Linear

U = hr.Universe(x=hr.Range(edges=[-4, -1, 0.5, 2, 7]), y=hr.Integers(-1, 2), g=hr.Flag())
EDGES = np.array([-4, -1, 0.5, 2, 7])
CASES = 40


@dataclass
class Rows:
    """A table of values, none of them on an edge of its bin."""

    x: np.ndarray
    y: np.ndarray
    g: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        found = np.zeros((4, 4, 2))
        np.add.at(found, (np.searchsorted(EDGES, self.x) - 1, self.y + 1, self.g.astype(int)), 1.0)
        return found / self.x.size


def tables(rng: np.random.Generator) -> list[Rows]:
    """A few tables, some alike and some not, with values at the ends of their bins or anywhere in them."""
    found: list[Rows] = []
    weights = rng.dirichlet(np.full(32, rng.choice([0.1, 1.0])))
    bend = rng.choice([0.1, 1.0, 4.0])
    for _ in range(rng.integers(1, 5)):
        other = weights * np.exp(bend * rng.normal(size=32))
        cells = rng.choice(32, 40, p=other / other.sum())
        i, j, k = np.unravel_index(cells, (4, 4, 2))
        where = (
            rng.choice([0.001, 0.5, 0.999], 40)
            if rng.random() < 0.5
            else np.where(rng.random(4) < 0.5, 0.001, 0.999)[i]
        )
        found.append(Rows(EDGES[i] + where * (EDGES[i + 1] - EDGES[i]), j - 1, k.astype(bool)))
    return found


class BarsOf:
    """Whoever knows of every linear query what holds in all of some tables, believes one of them, and sells bars about another."""

    def __init__(self, counts: Sequence[np.ndarray], believed: int, sold: int, off: float) -> None:
        self._counts, self._believed, self.sold, self._off = counts, believed, sold, off

    def _of(self, query: Linear) -> np.ndarray:
        away = tuple(i for i, name in enumerate(U.names) if name not in query.attributes)
        return np.array([query.dot(counts.sum(axis=away)) for counts in self._counts])

    least_rows = 40.0

    def hypothesis_answer(self, query: Linear) -> float:
        return float(self._of(query)[self._believed])

    def linear(self, query: Linear, within: float | None) -> Estimate:
        values = self._of(query)
        low, high = values.min(), values.max()
        if within is not None and (high - low) / 2 > within:
            return Estimate(float(values[self.sold] + self._off * within), within, "measured")
        return Estimate(float(low + high) / 2, float(high - low) / 2 + 1e-9, "hypothesis")


def below(values: np.ndarray, q: float) -> float:
    return float(np.sort(values)[max(0, int(np.ceil(q * values.size - 1e-9)) - 1)])


def correlated(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.corrcoef(x, y)[0, 1]) if x.std() > 1e-9 and y.std() > 1e-9 else np.nan


def sloped(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.cov(x, y, bias=True)[0, 1] / np.var(x)) if x.size and np.var(x) > 1e-9 else np.nan


def associated(first: np.ndarray, second: np.ndarray, rows: int, columns: int) -> float:
    """Cramér's V by its definition: cells whose row or column is empty count as 0."""
    if not first.size:
        return np.nan
    table = np.zeros((rows, columns))
    np.add.at(table, (first.astype(int), second.astype(int)), 1.0)
    table /= table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    full = expected > 0
    return float(np.sqrt(((table - expected)[full] ** 2 / expected[full]).sum() / (min(rows, columns) - 1)))


ON = hr.count(g=True)
CUT = hr.count(x=(-2.0, 1.0))
QUESTIONS = {
    "count": (CUT, lambda r: ((r.x >= -2) & (r.x <= 1)).mean()),
    "mean": (hr.mean("x"), lambda r: r.x.mean()),
    "mean of some": (hr.mean("x", where=ON), lambda r: r.x[r.g].mean() if r.g.any() else np.nan),
    "mean of a cut": (hr.mean("y", where=CUT), lambda r: r.y[i].mean() if (i := (r.x >= -2) & (r.x <= 1)).any() else np.nan),
    "total": (hr.total("x", where=ON), lambda r: (r.x * r.g).mean()),
    "variance": (hr.variance("x"), lambda r: r.x.var()),
    "variance of some": (hr.variance("y", where=ON), lambda r: r.y[r.g].var() if r.g.any() else np.nan),
    "correlation": (hr.correlation("y", "g"), lambda r: correlated(r.y, r.g)),
    "correlation in bins": (hr.correlation("x", "y"), lambda r: correlated(r.x, r.y)),
    "median": (hr.median("x"), lambda r: below(r.x, 0.5)),
    "quantile": (hr.quantile("y", 0.8, where=ON), lambda r: below(r.y[r.g], 0.8) if r.g.any() else np.nan),
    "interpolated median": (hr.interpolated_quantile("x", 0.5), lambda r: np.quantile(r.x, 0.5)),
    "interpolated quantile": (hr.interpolated_quantile("y", 0.8, where=ON), lambda r: np.quantile(r.y[r.g], 0.8) if r.g.any() else np.nan),
    "share": (hr.share(CUT, where=ON), lambda r: ((r.x >= -2) & (r.x <= 1))[r.g].mean() if r.g.any() else np.nan),
    "ratio": (hr.ratio(hr.count(y=1), ON), lambda r: (r.y == 1).sum() / r.g.sum() if r.g.any() else np.nan),
    "ratio of cuts": (
        hr.ratio(CUT, hr.count(x=(0.0, 5.0))),
        lambda r: ((r.x >= -2) & (r.x <= 1)).sum() / i.sum() if (i := (r.x >= 0) & (r.x <= 5)).any() else np.nan,
    ),
    "difference": (
        hr.difference(hr.mean("y", where=ON), hr.mean("y", where=~ON)),
        lambda r: r.y[r.g].mean() - r.y[~r.g].mean() if r.g.any() and not r.g.all() else np.nan,
    ),
    "ratio of means": (
        hr.ratio(hr.mean("g", where=hr.count(y={0, 1})), hr.mean("g")),
        lambda r: r.g[i].mean() / r.g.mean() if (i := np.isin(r.y, [0, 1])).any() and r.g.any() else np.nan,
    ),
    "relative risk": (
        hr.relative_risk(CUT, ON, ~ON),
        lambda r: i[r.g].mean() / i[~r.g].mean() if (i := (r.x >= -2) & (r.x <= 1))[~r.g].any() and r.g.any() else np.nan,
    ),
    "odds ratio": (
        hr.odds_ratio(hr.count(y={0, 1}), ON, ~ON),
        lambda r: (i & r.g).sum() * (~i & ~r.g).sum() / b if (b := ((~(i := np.isin(r.y, [0, 1])) & r.g).sum() * (i & ~r.g).sum())) else np.nan,
    ),
    "trend": (hr.trend("y", over="g"), lambda r: sloped(r.g, r.y)),
    "trend of a share": (hr.trend(CUT, over="y"), lambda r: sloped(r.y, (r.x >= -2) & (r.x <= 1))),
    "association": (hr.cramers_v("y", "x"), lambda r: associated(r.y + 1, np.searchsorted(EDGES, r.x) - 1, 4, 4)),
    "association with a flag": (hr.cramers_v("g", "y"), lambda r: associated(r.g.astype(int), r.y + 1, 2, 4)),
    "association of some": (hr.cramers_v("y", "x", where=ON), lambda r: associated(r.y[r.g] + 1, np.searchsorted(EDGES, r.x[r.g]) - 1, 4, 4)),
    "difference of counts": (hr.difference(CUT, ON), lambda r: ((r.x >= -2) & (r.x <= 1)).mean() - r.g.mean()),
}  # fmt: skip
each = pytest.mark.parametrize("name", QUESTIONS)


def known(name: str) -> Iterator[tuple[np.random.Generator, list[Rows], BarsOf]]:
    for seed in range(CASES):
        rng = np.random.default_rng([seed, len(name)])
        rows = tables(rng)
        believed, sold = rng.integers(len(rows), size=2)
        yield rng, rows, BarsOf([r.counts for r in rows], int(believed), int(sold), float(rng.choice([-1.0, 0.0, 1.0])))


@each
def test_the_truth_of_every_table_that_the_bars_allow_is_between_the_ends(name) -> None:
    query, truth = QUESTIONS[name]
    reached = 0
    for _, rows, bars in known(name):
        low, high = query.on(U).ends(AnswerKnowledge(bars))
        truths = np.array([truth(r) for r in rows])
        truths = truths[~np.isnan(truths)]
        assert np.all((truths >= low - 1e-9) & (truths <= high + 1e-9)), (truths, low, high)
        said = query.on(U).ask(bars, None)
        if said.error is not None:
            assert np.all(np.abs(truths - said.value) <= said.error + 1e-9)
        reached += bool(truths.size and high > low and (truths.max() - truths.min()) > 0.3 * (high - low))
    assert reached  # the ends are not far from what is allowed


@pytest.mark.parametrize(("of", "over", "where"), [("y", "x", None), ("x", "y", ON), ("x", "x", None)])
def test_a_slope_over_wide_bins_is_between_its_ends(of, over, where) -> None:
    asked = hr.trend(of if of != over else CUT, over=over, where=where)
    bounded = 0
    for _, rows, bars in known(of + over):
        low, high = asked.on(U).ends(AnswerKnowledge(bars))
        for r in rows:
            kept = r.g if where is not None else np.ones(r.g.size, bool)
            outcome = ((r.x >= -2) & (r.x <= 1)) if of == over else getattr(r, of)
            truth = sloped(getattr(r, over)[kept], outcome[kept])
            assert np.isnan(truth) or low - 1e-9 <= truth <= high + 1e-9
        bounded += bool(np.isfinite(high - low))
    assert bounded or over == "x"  # these bins are so wide that the values of x need not vary


class BarsAbout:
    """Whoever has one table's counts to ``bar``, and those of ``g`` to a sixth of that, with the truth anywhere in a bar."""

    def __init__(self, counts: np.ndarray, believed: np.ndarray, bar: float, rng: np.random.Generator) -> None:
        self._of, self._believes, self._bar, self._rng = (
            BarsOf([counts], 0, 0, 0.0),
            BarsOf([believed], 0, 0, 0.0),
            bar,
            rng,
        )

    def hypothesis_answer(self, query: Linear) -> float:
        return self._believes.hypothesis_answer(query)

    def linear(self, query: Linear, within: float | None) -> Estimate:
        bar = self._bar / 6 if query.attributes == ("g",) else self._bar
        bought = within is not None and within < bar
        bar = within if bought else bar
        off = self._rng.choice([-1.0, 0.3, 1.0])
        return Estimate(
            self._of.hypothesis_answer(query) + off * (1 - 1e-9) * bar, bar, "measured" if bought else "hypothesis"
        )


BOUGHT = {
    name: QUESTIONS[name] for name in ("mean", "mean of some")
} | {
    "count": (hr.count(x=(-2.0, 6.9)), lambda r: ((r.x >= -2) & (r.x <= 6.9)).mean()),
    "mean of few": (hr.mean("y", where=ON), lambda r: r.y[r.g].mean() if r.g.any() else np.nan),
    "share of few": (hr.share(hr.count(y=1), where=ON), lambda r: (r.y == 1)[r.g].mean() if r.g.any() else np.nan),
    "difference of fractions": (hr.difference(hr.count(y=1), ON), lambda r: (r.y == 1).mean() - r.g.mean()),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUGHT)
def test_a_purchase_is_as_accurate_as_was_asked_for(name) -> None:
    query, truth = BOUGHT[name]
    bought = 0
    for rng, rows, _ in known(name):
        true, bars = truth(rows[0]), BarsAbout(rows[0].counts, rows[-1].counts, rng.choice([0.02, 0.1]), rng)
        free = query.on(U).ask(bars, None)
        if np.isnan(true) or free.error is None:
            continue
        assert abs(free.value - true) <= free.error + 1e-9
        try:
            within = free.error * rng.uniform(0.5, 0.99)
            said = query.on(U).ask(bars, within)
        except (BudgetExceeded, InvalidInput):  # less than bins, or how many records there are, leave open
            continue
        assert abs(said.value - true) <= said.error + 1e-9 <= within + 1e-7
        bought += said.source == "measured"
    assert bought
