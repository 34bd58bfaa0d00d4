import math

import numpy as np
import pytest
from scipy.stats import chi2

from hedgerow import audit
from hedgerow.data import HistogramSource
from hedgerow.data.counting import everywhere
from hedgerow.errors import BudgetExceeded, InvalidInput, TooLarge
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.query.counts import count
from hedgerow.query.linear import Linear
from hedgerow.query.workloads import intervals, parities
from hedgerow.textbook import bounds, small_db
from hedgerow.universe.universe import Universe

LINE = Universe.from_sizes({"x": 4})
BITS = Universe.from_sizes({"a": 2, "b": 2})


def data_of(universe: Universe, *counts: int) -> HistogramSource:
    return HistogramSource(universe, np.array(counts))


def law(universe, queries, counts, m, epsilon) -> dict[tuple[int, ...], float]:
    """P(y) ∝ exp(−ε·n·max|q(x) − q(y)|/2), written down from the definition."""
    n, x = sum(counts), np.array(counts) / sum(counts)
    tables = np.stack([everywhere(universe, q) for q in queries])
    databases = [y for y in np.ndindex(*(m + 1,) * universe.size) if sum(y) == m]
    weights = [math.exp(-epsilon * n * np.abs(tables @ (x - np.array(y) / m)).max() / 2) for y in databases]
    return {y: w / sum(weights) for y, w in zip(databases, weights, strict=True)}


@pytest.mark.parametrize("weighted", [False, True], ids=["counts", "weights"])
def test_databases_are_drawn_from_exactly_the_exponential_mechanism(weighted):
    queries = [q.on(LINE) for q in intervals("x").on(LINE)]
    if weighted:
        queries = [*queries, Linear.from_table(LINE, ("x",), [0.0, 0.25, 0.5, 0.75])]
    counts, m, epsilon, runs = (7, 0, 2, 1), 3, 0.9, 1500
    expected = law(LINE, queries, counts, m, epsilon)
    noise = Seeded(3)
    seen = dict.fromkeys(expected, 0)
    for _ in range(runs):
        y = small_db.release(queries, data_of(LINE, *counts), Accountant(Budget(epsilon, 0.0)), noise, size=m)
        seen[tuple(y.counts.tolist())] += 1
    assert len(expected) == 20
    statistic = sum((seen[y] - runs * p) ** 2 / (runs * p) for y, p in expected.items())
    assert min(runs * p for p in expected.values()) > 5
    assert statistic < chi2.isf(1e-6, df=19)  # false alarm 1e-6


@pytest.mark.audit
def test_theorem_4_5_holds_at_its_number_of_rows():
    queries = [q.on(LINE) for q in intervals("x").on(LINE)]  # 10 intervals
    alpha, beta, epsilon = 0.5, 0.1, 1.0
    rows = math.ceil(bounds.small_db_rows(alpha, beta, epsilon, len(queries), LINE.size))
    runs, allowed = audit.runs_to_tell(beta, 3 * beta, 1e-6, 0.01)
    failures, rng = 0, np.random.default_rng(0)
    for seed in range(runs):
        counts = rng.multinomial(rows, rng.dirichlet(np.full(4, 0.3)))
        data = HistogramSource(LINE, counts)
        y = small_db.release(queries, data, Accountant(Budget(epsilon, 0.0)), Seeded(seed), alpha=alpha / 2)
        assert y.rows == bounds.small_db_size(alpha / 2, len(queries))
        failures += max(abs(q.dot(data.marginal(q.attributes)) / rows - y.answer(q)) for q in queries) > alpha
    assert failures <= allowed


@pytest.mark.audit
def test_with_next_to_no_rows_the_same_test_fails():
    queries = [q.on(LINE) for q in intervals("x").on(LINE)]
    data, noise = data_of(LINE, 2, 0, 0, 0), Seeded(0)
    errors = []
    for _ in range(178):
        y = small_db.release(queries, data, Accountant(Budget(0.01, 0.0)), noise, alpha=0.25)
        errors.append(max(abs(q.dot(data.marginal(q.attributes)) / 2 - y.answer(q)) for q in queries))
    assert sum(error > 0.5 for error in errors) > 39


def test_the_score_moves_by_at_most_the_sensitivity_it_is_billed_for():
    rng = np.random.default_rng(2)
    queries = [q.on(BITS) for q in parities().on(BITS)] + [Linear.from_table(BITS, ("a", "b"), rng.random((2, 2)))]
    seen = []

    class Watched(Seeded):
        def choose(self, scores, receipt):
            seen.append((scores, receipt.redeem(Exponential)))
            return 0

    moved = []
    for _ in range(100):
        counts = rng.integers(1, 50, 4)
        neighbour = counts.copy()
        neighbour[rng.integers(4)] -= 1
        neighbour[rng.integers(4)] += 1
        seen.clear()
        for c in (counts, neighbour):
            small_db.release(queries, HistogramSource(BITS, c), Accountant(Budget(1.0, 0.0)), Watched(0), size=5)
        (one, event), (other, _) = seen
        shift = one - other  # up to a constant, which is the best score of each
        moved.append((shift.max() - shift.min()) / 2 / event.sensitivity)
    assert 0.5 < max(moved) <= 1


def test_the_operating_systems_randomness_gives_a_database_close_to_the_data():
    data = data_of(BITS, 4000, 3000, 2000, 1000)
    queries = [count(a=1).on(BITS), count(b=1).on(BITS), count(a=1, b=1).on(BITS)]
    y = small_db.release(queries, data, Accountant(Budget(1.0, 0.0)), Noise(), size=10)
    assert y.counts.tolist() == [[4, 3], [2, 1]]  # the only one with no error: all others weigh less than e^-500
    assert y.answer(queries[0]) == pytest.approx(0.3)
    assert y.marginal(("b",)).tolist() == pytest.approx([0.6, 0.4])


def test_the_whole_budget_is_spent_on_the_one_choice():
    queries = [count(a=1).on(BITS)]
    for budget in (Budget(0.7, 0.0), Budget(0.7, 1e-6)):
        accountant = Accountant(budget)
        small_db.release(queries, data_of(BITS, 5, 5, 5, 5), accountant, Seeded(0), size=4)
        assert accountant.spent == pytest.approx(budget.total)
        with pytest.raises((BudgetExceeded, InvalidInput)):
            small_db.release(queries, data_of(BITS, 5, 5, 5, 5), accountant, Seeded(0), size=4)


def test_every_database_is_enumerated_once():
    for cells, m in [(1, 3), (2, 5), (4, 3), (7, 2)]:
        blocks = np.vstack([block for _, block in small_db._blocks(cells, m)])
        assert (blocks.sum(axis=1) == m).all()
        assert (blocks >= 0).all()
        assert len(np.unique(blocks, axis=0)) == len(blocks) == small_db.databases(cells, m)


def test_blocks_of_many_databases_follow_on_each_other(monkeypatch):
    monkeypatch.setattr(small_db, "CHUNK", 7)
    starts = [(start, len(block)) for start, block in small_db._blocks(4, 3)]
    assert starts == [(0, 7), (7, 7), (14, 6)]


def test_a_million_databases_are_no_obstacle():
    universe = Universe.from_sizes({"x": 6})
    queries = [q.on(universe) for q in intervals("x").on(universe)]
    assert small_db.databases(6, 35) == 658_008
    data = data_of(universe, 100, 200, 300, 0, 0, 100)
    y = small_db.release(queries, data, Accountant(Budget(5.0, 0.0)), Seeded(0), size=35)
    assert max(abs(q.dot(data.marginal(q.attributes)) / 700 - y.answer(q)) for q in queries) < 0.1


def test_too_many_databases_are_refused_with_their_number_and_nothing_is_spent():
    universe = Universe.from_sizes({"x": 100})
    accountant = Accountant(Budget(1.0, 0.0))
    with pytest.raises(TooLarge, match=rf"at most 2000000. Found {math.comb(103, 4)} \(of 4 rows over 100 cells\)"):
        small_db.release([count(x=1).on(universe)], data_of(universe, *[1] * 100), accountant, Seeded(0), size=4)
    with pytest.raises(TooLarge, match=r"Found about 10\^"):
        small_db.databases(10**100, 50)
    assert accountant.spent == 0


@pytest.mark.parametrize(
    ("budget", "change", "message"),
    [
        (Budget(1.0, 0.0, "add-remove"), {}, "neighbours='replace'"),
        (Budget(1.0, 0.0), {"size": None}, "Either alpha or size must be given"),
        (Budget(1.0, 0.0), {"alpha": 0.5}, "Either alpha or size must be given"),
        (Budget(1.0, 0.0), {"size": 0}, "size must be at least 1"),
    ],
)
def test_arguments_outside_the_definition_of_the_mechanism_are_refused(budget, change, message):
    with pytest.raises(InvalidInput, match=message):
        small_db.release(
            [count(a=1).on(BITS)], data_of(BITS, 1, 1, 1, 1), Accountant(budget), Seeded(0), **{"size": 3} | change
        )
    with pytest.raises(InvalidInput, match="at least one query"):
        small_db.release([], data_of(BITS, 1, 1, 1, 1), Accountant(Budget(1.0, 0.0)), Seeded(0), size=2)
