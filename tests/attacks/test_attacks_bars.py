"""No choice of questions makes a bar fail, or makes answering impossible."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical import guard as guards
from hedgerow.engine.practical.bars.error_bars import ErrorBars
from hedgerow.engine.practical.fit.residuals import Evidence
from hedgerow.engine.practical.guard import GUARD_ROUNDS, plan_guard
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval
from hedgerow.privacy.events import Gaussian
from hedgerow.query.linear import Linear

FLAGS = hr.Universe({name: hr.Flag() for name in "abcd"})
RARE = hr.conjunction(*"abcd")


def guarded() -> hr.Session:
    """Four rare flags of which only single ones are measured: all four together have [0, 0.1], and a guard."""
    one = np.array([0.9, 0.1])
    counts = np.rint(10_000_000 * np.multiply.outer(np.multiply.outer(one, one), np.multiply.outer(one, one)))
    single = [hr.count({name: True}) for name in "abcd"]
    return hr.open(
        HistogramSource(FLAGS, counts.astype(np.int64)),
        universe=FLAGS,
        budget=hr.Budget(1.0, 1e-6),
        workload=single,
        guard=0.1,
        seed=1,
    )


def test_an_answer_that_was_moved_to_meet_within_has_not_the_guards_bar() -> None:
    session = guarded()
    answer = session.ask(RARE, within=0.06)
    assert answer.error <= 0.06
    assert abs(answer.value - 1e-4) <= answer.error
    fresh = guarded().ask(RARE)
    assert fresh.error < 0.02 and abs(fresh.value - 1e-4) <= fresh.error  # as it is without within


def test_a_bar_that_is_met_for_free_costs_nothing_where_a_guard_watches() -> None:
    session = guarded()
    assert session.price(RARE, within=0.06) == 0 == session.ask(RARE, within=0.06).cost


def test_questions_without_a_table_are_answered_without_the_guard(monkeypatch) -> None:
    session = guarded()
    monkeypatch.setattr(guards, "LARGEST_TABLE", 15)
    answer = session.ask(RARE)
    assert answer.cost == 0 and answer.error > 0.09


@pytest.mark.parametrize("queries", [1, GUARD_ROUNDS])
def test_a_guard_that_was_planned_for_few_questions_has_the_width_for_all_its_rounds(queries) -> None:
    budget = hr.Budget(1.0, 1e-6)
    planned, more = (plan_guard(budget, 10**7, k, 0.025, 0.1) for k in (queries, GUARD_ROUNDS + 1))
    assert planned is not None and more is not None
    assert planned == plan_guard(budget, 10**7, GUARD_ROUNDS, 0.025, 0.1)
    assert planned.promise < more.promise


def test_a_difference_of_differences_is_answered() -> None:
    counts = np.arange(1, 17).reshape(2, 2, 2, 2) * 1000
    session = hr.open(HistogramSource(FLAGS, counts), universe=FLAGS, budget=hr.Budget(1.0, 1e-6), seed=1)
    a, b, c = (hr.count({name: True}) for name in "abc")
    truth = [counts.take(1, axis=i).sum() / counts.sum() for i in range(3)]
    answer = session.ask(hr.difference(hr.difference(a, b), c))
    assert answer.error is not None and abs(answer.value - (truth[0] - truth[1] - truth[2])) <= answer.error


def test_a_bar_for_many_numbers_at_once_is_refused_in_words() -> None:
    with pytest.raises(hr.BudgetExceeded, match="within must be at least"):
        guarded().ask(hr.group_by("a").count(hr.count(b=True)), within=1e-9)


@pytest.mark.parametrize(
    "question",
    [
        hr.share(hr.count(a=(0, 3)), where=hr.count(b=True)),
        hr.difference(hr.count(a=(0, 3)), hr.count(b=True)),
        hr.mean("a", where=hr.count(b=True)),
    ],
    ids=repr,
)
def test_nothing_is_paid_again_for_what_was_learned_since_its_parts_were_asked(question) -> None:
    universe = hr.Universe(a=hr.Integers(0, 7), b=hr.Flag(), c=hr.Categories(list("wxyz")))
    rng = np.random.default_rng(0)
    data = HistogramSource(universe, rng.multinomial(100_000, rng.dirichlet(np.full(universe.size, 0.3))))
    first, second = (
        hr.open(data, universe=universe, budget=hr.Budget(1.0, 1e-6), reserve=0.6, workload=[hr.count(b=True)], seed=1)
        for _ in range(2)
    )
    before = first.ask(question)
    for session in (first, second):
        session.ask(hr.marginal("a", "b"), within=0.002)
    within = 1.05 * second.ask(question).error
    assert within < before.error / 2
    assert first.price(question, within=within) == 0
    again = first.ask(question, within=within)
    assert again.cost == 0 and again.error <= within


def test_a_question_about_very_many_attributes_needs_no_list_of_all_their_sets() -> None:
    universe = hr.Universe({f"f{i}": hr.Flag() for i in range(18)})
    evidence = Evidence(universe, 100.0)
    tracemalloc.start()
    assert universe.names not in evidence
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("others", [1, 3])
def test_weights_that_differ_by_next_to_nothing_are_no_line(others) -> None:
    """An analyst who knows the noise takes every difference by its sign, and the sum is far larger than noise along a line."""
    universe = hr.Universe(a=hr.Integers(0, 999), b=hr.Integers(0, others - 1))
    names = ("a", "b") if others > 1 else ("a",)
    shape = universe.sizes(names)
    counts = np.full(shape, 100.0)
    noise = np.rint(np.random.default_rng(1).normal(scale=50.0, size=shape))
    bars, n = ErrorBars(universe, 0.05), float(counts.sum())
    bars.add(Measurement(names, counts + noise, Gaussian(1.0, 50.0)))
    for size in (4e-10, 1e-13):
        query = Linear.from_table(universe, names, 0.5 + size * np.sign(noise))
        low, high = bars.intervals([query], RowCountInterval(n, n, n))
        assert low[0] <= query.table.mean() <= high[0]  # all cells have as many rows
    line = Linear.from_table(universe, ("a",), np.linspace(0.1, 0.9, 1000))
    low, high = bars.intervals([line], RowCountInterval(n, n, n))
    assert (high - low)[0] * n < 2 * 50 * np.sqrt(others * 1000 / 12) * 8  # and a line still is one


def test_a_guards_bar_holds_for_every_epsilon_although_counts_are_compared_in_whole_rows() -> None:
    """3w is a small part of a row here, and the hypothesis is off by up to half of one, which no comparison in rows can tell.

    The noise strays beyond w with probability β/2 for all comparisons of a session, and the seeds are fixed.
    """
    rng, n = np.random.default_rng(0), 3001
    universe = hr.Universe(age=hr.Integers(0, 11), visits=hr.Integers(0, 9), smoker=hr.Flag(), half=hr.Integers(0, 9))
    columns = [rng.integers(0, 12, n), rng.choice([0, 0, 0, 1, 2, 7, 9], n), rng.random(n) < 0.3, np.arange(n) % 2 * 9]
    counts = np.zeros(universe.shape, dtype=np.int64)
    np.add.at(counts, tuple(np.asarray(column, dtype=int) for column in columns), 1)
    promised = 0
    for epsilon in (2e5, 1e6):
        session = hr.open(HistogramSource(universe, counts), universe=universe, budget=hr.Budget(epsilon, 1e-6), seed=1)
        guard = session._engine.guard
        for axis, name in enumerate(("age", "visits", "half")):
            values = columns[(0, 1, 3)[axis]]
            for top in range(universe[name].size - 1):
                answer = session.ask(hr.count({name: (None, top)}))
                assert abs(answer.value - (values <= top).mean()) <= answer.error * (1 + 1e-9)
                promised += answer.error >= guard.promise and answer.source == "hypothesis"
    assert promised > 0
