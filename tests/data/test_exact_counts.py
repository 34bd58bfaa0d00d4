"""After the same history one row moves every released value and score by at most the billed amount, in exact arithmetic.

A recorder keeps every value and score that a mechanism passes to the noise. The neighbouring table then gets the
same draws, so that both runs share their history, and the records are compared as fractions. No statistics.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from paying import paid

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.data import counting as rows
from hedgerow.data.source import MOST_ROWS
from hedgerow.engine.practical.engine import build_practical_engine
from hedgerow.engine.practical.fit.residuals import coordinates
from hedgerow.engine.practical.measure import prefit as selection
from hedgerow.engine.practical.measure.candidates import distance as distance_of
from hedgerow.engine.practical.measurement import along
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential, Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded, _steps
from hedgerow.query.linear import Linear
from hedgerow.session import Session
from hedgerow.textbook import mwem, pmw, small_db
from hedgerow.universe.universe import Universe

pytestmark = pytest.mark.filterwarnings("ignore::hedgerow.NotPrivateWarning")
BUDGETS = [Budget(1.0, d, neighbours) for d in (0.0, 1e-6) for neighbours in ("replace", "add-remove")]
SURELY = 2.0**60


class Recorder(Seeded):
    """Draws as ``before`` did, and remembers what was asked of it. Every guard it serves answers ⊤."""

    def __init__(self, before: Recorder | None = None) -> None:
        super().__init__(0)
        self.before, self.calls, self.drawn, self.opened = before, [], [], False

    def add(self, value: Any, receipt: Any) -> Any:
        event = receipt.redeem(Laplace, Gaussian)
        return self._kept(np.atleast_1d(value).ravel(), event, lambda: Seeded.add(self, value, paid(event)))

    def choose(self, scores: Any, receipt: Any) -> int:
        event = receipt.redeem(Exponential)
        return self._kept(scores, event, lambda: Seeded.choose(self, scores, paid(event)))

    def _comparison(self, scale: float) -> float:
        self.opened = not self.opened  # a round's threshold, then the value that closes it
        return 0.0 if self.opened else SURELY

    def _kept(self, value: Any, event: Any, draw: Any) -> Any:
        self.calls.append((np.array(value), event))
        self.drawn.append(draw() if self.before is None else self.before.drawn[len(self.drawn)])
        return self.drawn[-1]


def moved(one: np.ndarray, two: np.ndarray, event: Laplace | Gaussian | Exponential) -> Fraction:
    """Return the distance of two neighbours in the measure that the event bounds; for a Gaussian, its square."""
    if isinstance(event, Exponential):
        return max(abs(Fraction(a) - Fraction(b)) for a, b in zip(one.tolist(), two.tolist(), strict=True))
    steps = [abs(int(a) - int(b)) for a, b in zip(_steps(one, event.grid), _steps(two, event.grid), strict=True)]
    if isinstance(event, Laplace):
        return sum(steps) * Fraction(event.grid)
    return sum(s * s for s in steps) * Fraction(event.grid) ** 2


def compared(run: Any, table: np.ndarray, other: np.ndarray, budget: Budget) -> int:
    """Run on both tables with one history; how many values were compared."""
    records, before = [], None
    for counts in (table, other):
        noise, accountant = Recorder(before), Accountant(budget)
        run(counts, accountant, noise)
        billed = [part for event in accountant.events for part in event.draws]
        for _, event in noise.calls:
            billed.remove(event)  # each draw has a charge of its own
        records.append(noise.calls)
        before = noise
    for (one, event), (two, same) in zip(*records, strict=True):
        assert event == same
        limit = Fraction(event.sensitivity)
        assert moved(one, two, event) <= (limit**2 if isinstance(event, Gaussian) else limit), event
    return len(records[0])


@st.composite
def neighbours(draw: Any, budget: Budget, most: int = 4) -> tuple[Universe, np.ndarray, np.ndarray]:
    """A small universe, a table of up to 10^15 rows on it, and the table with one row replaced, or gone."""
    shape = draw(st.lists(st.integers(1, most), min_size=2, max_size=3).filter(lambda s: math.prod(s) > 1))
    universe = hr.Universe.from_sizes({name: m for name, m in zip("abc", shape, strict=False)})
    n = draw(st.integers(0, 15).flatmap(lambda d: st.integers(10**d // 2 + 1, 10**d)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    table = rng.multinomial(n, rng.dirichlet(np.full(universe.size, draw(st.sampled_from([0.05, 1.0])))))
    other = table.copy()
    present = np.flatnonzero(table)
    other[present[draw(st.integers(0, len(present) - 1))]] -= 1
    if budget.neighbours == "replace":
        other[draw(st.integers(0, universe.size - 1))] += 1
    return universe, table, other


def questions(universe: Universe, seed: int) -> list[hr.Query]:
    rng = np.random.default_rng(seed)
    two = list(universe.names[:2])
    found: list[hr.Query] = [hr.linear(two, rng.random(universe.sizes(two))), hr.marginal(*two)]
    found += [hr.linear(list(universe.names), rng.integers(0, 2, universe.shape)), hr.count({two[0]: {0}})]
    return [*found, hr.linear(two, rng.random(universe.sizes(two)) * 2.0**-30), hr.mean(two[0])]


def check_a_session(budget: Budget, data: Any) -> None:
    universe, table, other = data.draw(neighbours(budget))
    guard, seed = data.draw(st.sampled_from([None, 0.1])), data.draw(st.integers(0, 100))

    def run(counts: np.ndarray, accountant: Accountant, noise: Recorder) -> None:
        held = HistogramSource(universe, counts)
        engine = build_practical_engine(
            held, accountant, noise, workload=None, queries=100, beta=0.1, guard=guard, reserve=0.4
        )  # fmt: skip
        session = Session(held, accountant, noise, engine)
        for query, within in itertools.product(questions(universe, seed), (None, 0.05, 1e-4)):
            with contextlib.suppress(hr.BudgetExceeded):
                session.ask(query, within=within)

    assert compared(run, table, other, budget) >= 1


@pytest.mark.parametrize("grid", [2.0**-14, 1.0, 2.0, 64.0])
def test_coordinates_of_very_large_tables_are_the_nearest_on_their_grid(grid: float) -> None:
    """This includes tables with so many rows that the grid is coarser than one row."""
    counts = np.array([[241391645114443, 37512], [29086509980327, 292471798288827]])
    for by, times in ((along((2, 2)), 1), (along((2, 2)), 3)):
        (found,) = coordinates(counts, grid, by, times).ravel().tolist()
        total = int(counts[0, 0] - counts[0, 1] - counts[1, 0] + counts[1, 1])  # over √4: the squares of both contrasts
        exact = math.isqrt(total**2 * times * 2**80 // 4) / 2**40
        steps = min(abs(found) / grid, 2.0**53)
        assert abs(steps - min(exact / grid, 2.0**53)) <= 0.5 + 2.0**-40 * steps


def check_a_release(budget: Budget, data: Any) -> None:
    universe, table, other = data.draw(neighbours(budget))

    def run(counts: np.ndarray, accountant: Accountant, noise: Recorder) -> None:
        build_practical_engine(
            HistogramSource(universe, counts), accountant, noise,
            workload=None, queries=1, beta=0.1, guard=0.0, reserve=0.0, everything=True,
        )  # fmt: skip

    assert compared(run, table, other, budget) >= 1


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_no_row_moves_a_practical_session_by_more_than_is_billed(budget, data) -> None:
    check_a_session(budget, data)


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_no_row_moves_a_release_by_more_than_is_billed(budget, data) -> None:
    check_a_release(budget, data)


@pytest.mark.audit
@pytest.mark.parametrize("check", [check_a_session, check_a_release])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_no_row_of_hundreds_of_tables_moves_anything_by_more_than_is_billed(budget, check, data) -> None:
    check(budget, data)


def linear_queries(universe: Universe, seed: int) -> list[Linear]:
    return [q.on(universe) for q in questions(universe, seed) if isinstance(q.on(universe), Linear)]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_no_row_moves_pmw_or_mwem_by_more_than_is_billed_however_wrong_the_guess_of_n(budget, data) -> None:
    universe, table, other = data.draw(neighbours(budget))
    scale = data.draw(st.sampled_from([10.0**7, 10.0**10]))
    asked = linear_queries(universe, data.draw(st.integers(0, 100)))
    public = {"cells": universe.size, "scale": scale, "beta": 0.1, "alpha": 0.3}

    def online(counts: np.ndarray, accountant: Accountant, noise: Recorder) -> None:
        config = pmw.configure(budget, queries=100, **public)
        mechanism = pmw.OnlinePMW(config, HistogramSource(universe, counts), accountant, noise)
        for query in asked[: config.rounds]:
            mechanism.ask(query)

    def offline(counts: np.ndarray, accountant: Accountant, noise: Recorder) -> None:
        config = mwem.configure(budget, queries=len(asked), **public)
        mwem.release(config, asked, HistogramSource(universe, counts), accountant, noise)
        chosen_by = [scores for scores, event in noise.calls if isinstance(event, Exponential)]
        assert all((scores % config.grid == 0).all() for scores in chosen_by)  # else subtracting would round

    # what the guard compares is |N − a public number|, and N itself is measured right after its ⊤
    assert compared(online, table, other, budget) >= 1
    assert compared(offline, table, other, budget) >= 2


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_row_moves_small_db_by_more_than_is_billed(data) -> None:
    budget = Budget(1.0, 0.0)
    universe, table, other = data.draw(neighbours(budget, most=3))
    assume(2 * int(table.sum()) <= MOST_ROWS)  # what is more is refused: n is public
    asked = linear_queries(universe, data.draw(st.integers(0, 100)))
    some = data.draw(st.sampled_from([asked, [q for q in asked if q.is_count]]))

    def run(counts: np.ndarray, accountant: Accountant, noise: Recorder) -> None:
        small_db.release(some, HistogramSource(universe, counts), accountant, noise, size=2)

    assert compared(run, table, other, budget) == 1


@given(st.integers(0, 2**32), st.integers(0, 50), st.integers(0, 20))
@settings(max_examples=200, deadline=None)
def test_a_weighted_count_is_the_exact_one_to_the_nearest_step(seed, magnitude, bits) -> None:
    rng = np.random.default_rng(seed)
    universe = hr.Universe.from_sizes({"a": 5, "b": 7})
    counts = rng.multinomial(2**magnitude, rng.dirichlet(np.full(35, 0.3))).reshape(5, 7)
    weights = rng.random((5, 7)) * rng.choice([1.0, 1e-9, 1e-310], (5, 7))
    weights[0, 0] = 1.0
    query, step = rows.on_grid(universe, Linear.from_table(universe, ("a", "b"), weights)), 2.0**-bits
    exact = sum(Fraction(w) * int(c) for w, c in zip(query.table.ravel(), counts.ravel(), strict=True))
    steps = min(2**53, math.floor(exact / Fraction(step) + Fraction(1, 2)))
    assert Fraction(rows.exact_count(query, counts, step)) == steps * Fraction(step)
    assert np.abs(query.table - weights).max() <= 2.0**-41


@pytest.mark.parametrize(
    "sizes", [(2,), (7,), (3, 5), (30, 20), (2, 3, 4), pytest.param((100, 90), marks=pytest.mark.audit)]
)
@given(seed=st.integers(0, 2**32), magnitude=st.integers(0, 50))
@settings(max_examples=25, deadline=None)
def test_a_residuals_coordinates_are_the_exact_ones_to_the_nearest_step(sizes, seed, magnitude) -> None:
    """v/√P is within half a step of y exactly when (2|y| − 1)²·P ≤ (2v)² ≤ (2|y| + 1)²·P, in steps."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(2**magnitude, rng.dirichlet(np.full(math.prod(sizes), 0.3))).reshape(sizes)
    grid = max(selection.GRID, 2.0 ** (magnitude - 52))
    whole = counts.astype(object)
    P = np.ones((), object)
    for axis, m in enumerate(sizes):
        H = np.array([[1] * k + [-k] + [0] * (m - k - 1) for k in range(1, m)], object)
        whole = np.moveaxis(np.tensordot(H, whole, axes=(1, axis)), 0, axis)
        P = np.multiply.outer(P, np.array([k * (k + 1) for k in range(1, m)], object))
    cells = list(np.ndindex(whole.shape))
    y = coordinates(counts, grid)
    for cell in cells if len(cells) < 200 else [cells[i] for i in rng.integers(0, len(cells), 200)]:
        steps, twice = Fraction(y[cell]) / Fraction(grid), 2 * whole[cell] * int(1 / grid)
        assert steps.denominator == 1
        assert whole[cell] * steps >= 0
        assert max(0, 2 * abs(steps) - 1) ** 2 * P[cell] <= twice**2 <= (2 * abs(steps) + 1) ** 2 * P[cell]


@given(st.integers(0, 2**32), st.integers(0, 50), st.integers(-6, 6))
@settings(max_examples=200, deadline=None)
def test_scores_are_exact_whatever_n_was_guessed(seed, magnitude, wrong) -> None:
    """A score is a public multiple, at most 1, of a whole number that one row moves by at most 1."""
    rng = np.random.default_rng(seed)
    n, cells = 2**magnitude, 40
    guess = min(2.0**51, max(1.0, n * 10.0**wrong))
    counts = rng.multinomial(n, rng.dirichlet(np.full(cells, 0.2)))
    expected = guess * rng.dirichlet(np.full(cells, 0.2))
    weights, noise = np.array([rng.random(), 1.0]), int(n * rng.random() ** 8)
    discounts = [float(guess * rng.random())] * 2
    scores = []
    for more in (0, 1):
        counts[0] += more
        distance = distance_of(counts, expected, noise)
        off = [abs(int(c) - round(float(e))) for c, e in zip(counts, expected, strict=True)]
        assert distance == sum(max(0, each - noise) for each in off)
        scores.append(list(map(Fraction, selection._exact_scores([distance] * 2, discounts, weights, guess))))
    change = [abs(a - b) for a, b in zip(*scores, strict=True)]
    assert change[0] <= change[1] <= 1
    assert change[1] in (0, 1)
    assert change[0] / change[1] <= weights[0] or guess > 2**30 if change[1] else True


def test_a_histogram_of_more_rows_than_arithmetic_is_proved_for_is_refused() -> None:
    universe = hr.Universe.from_sizes({"a": 2})
    assert HistogramSource(universe, np.array([MOST_ROWS - 1, 1])).rows == MOST_ROWS
    for counts in ([MOST_ROWS, 2], [2**62, 2**62]):
        with pytest.raises(hr.InvalidInput, match=r"A histogram must hold at most 2\^50 rows in all\. Found more\."):
            HistogramSource(universe, np.array(counts))
    with pytest.raises(hr.InvalidInput, match="at most"):
        HistogramSource(universe, np.array([2**63 + 5, 0], np.uint64))
