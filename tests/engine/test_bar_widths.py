"""Every bar is the one of its proof (docs/proofs/error_bars.md): no narrower, or it would fail; no wider, or it would cost.

Widths are computed here again, from the statement of the proof. The proof shows that these bars hold, and so do the
tests that draw noise; here a term that is left out of one is seen without drawing any.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

import hedgerow as hr
from hedgerow.engine.practical import free_answers
from hedgerow.engine.practical.bars import error_bars
from hedgerow.engine.practical.bars.error_bars import ErrorBars
from hedgerow.engine.practical.engine import PracticalEngine
from hedgerow.engine.practical.fit.residuals import Overview, subsets
from hedgerow.engine.practical.guard import GUARD_ROUNDS, plan_guard
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.query.linear import Linear
from hedgerow.textbook import sparse_vector

UNIVERSE = hr.Universe.from_sizes({"a": 3, "b": 4, "c": 2})
BETA, N = 0.05, 10_000
KNOWN = RowCountInterval(N, N, N)
EVENTS = [Gaussian(1.0, 20.0), Laplace(1.0, 15.0)]
QUESTIONS = {
    "runs": hr.count(a=1, b={0, 3}),  # 3 and 0 are next to each other on a circle
    "products": hr.count(a=1, b={0, 2}),
    "tables": hr.linear(["a", "b"], np.linspace(0.1, 0.9, 12).reshape(3, 4)),
}

RUNS = {"runs": [True, True], "products": [True, False]}


def measured(names: tuple[str, ...], event: Laplace | Gaussian, value: float = 700.0) -> Measurement:
    return Measurement(names, np.full(UNIVERSE.sizes(names), value), event)


def doubt(j: int) -> float:
    """ln(1/β_j): 0.6 of β for the first, and 8/((6 + j)(7 + j)) of the rest for each other."""
    return -math.log(BETA * (0.6 if j == 1 else 0.4 * 8 / ((6 + j) * (7 + j))))


def of_subset(measured: int, asked: int) -> float:
    """Half of β_j is for all measured attributes, half for the subsets that are fewer."""
    return math.log(2) if asked == measured else math.log(2 * (2**measured - 1))


def normal(x: float, step: float) -> float:
    """Twice the normal tail is at most e^{−x}, by e^{−z²/2}/(z√(2π)); a little more for the grid. No more than √(2x)."""
    z = optimize.brentq(
        lambda z: z * z / 2 + math.log(z * math.sqrt(2 * math.pi)) - max(x + math.log(2), 2.5), 1e-3, 100
    )
    return min(math.sqrt(2 * x), z * math.sqrt(1 + (1.5 * step) ** 2))


def tail(event: Laplace | Gaussian, norm: float, x: float) -> float:
    if isinstance(event, Gaussian):
        return event.sigma * norm * normal(x, event.grid / event.sigma)
    s = math.sqrt(x / (x + norm**2))
    return event.scale * (x - norm**2 * math.log(1 - s * s)) / s


def code(query: np.ndarray, runs: list[bool], ordered: bool = True) -> float:
    """−ln of the product over the axes of a set's part of 0.98: 0.42/2m for one value or all but one, else the sum of 0.42/(m(m−3)) for a run and 0.16/((m−3)·C(m, k))
    for a set of k cells; 0.6/2m and 0.4/((m−3)·C(m, k)) of an attribute without an order, 1/2m and 1/m where m is 3 and 2. A set of one attribute is one with the rest of it.
    """
    found = -math.log(2) if query.ndim == 1 else 0.0
    for axis, is_run in enumerate(runs[: query.ndim]):
        m = query.shape[axis]
        k = int(query.any(axis=tuple(i for i in range(query.ndim) if i != axis)).sum())
        if k in (1, m - 1):
            of_values = (0.42 if ordered else 0.6) if m > 3 else 1.0
            part = of_values / (m if m == 2 else 2 * m)
        else:
            part = (0.16 if ordered else 0.4) / ((m - 3) * math.comb(m, k))
            part += 0.42 / (m * (m - 3)) if is_run and ordered else 0.0
        found -= math.log(0.98 * part)
    return found


def width_of(kind: str, query: np.ndarray, event: Laplace | Gaussian, sizes: list[int], merged: int, j: int) -> float:
    """In rows, of a query on some cells of a table of attributes of these sizes, each of ``merged`` measured ones."""
    norm = math.sqrt(((query - query.mean()) ** 2).sum() * merged)
    base = doubt(j) + of_subset(len(sizes), query.ndim)
    if kind in RUNS:
        return tail(event, norm, base + math.log(2 / 0.5) + code(query, RUNS[kind]))
    base += math.log(2 / 0.1)
    if isinstance(event, Gaussian):
        return event.sigma * (math.sqrt(query.size) + math.sqrt(2 * base)) * norm
    cells = math.prod(sizes)
    rounded = min(event.grid, event.scale * math.log(2))
    return event.scale * (cells + math.sqrt(2 * cells * base) + base) + rounded * cells


def half(ends: tuple[np.ndarray, np.ndarray]) -> float:
    return float(ends[1][0] - ends[0][0]) / 2


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("x", [0.5, 3.0, 20.0])
def test_no_noise_is_beyond_its_tail_more_often_than_stated(event, x) -> None:
    """Exactly, for one value, and for a sum of 20 by their convolution."""
    reach = np.arange(-3000, 3001)
    log_weight = (
        -np.abs(reach) / event.scale if isinstance(event, Laplace) else -(reach.astype(float) ** 2) / 2 / event.sigma**2
    )
    law = np.exp(log_weight) / np.exp(log_weight).sum()
    for count in (1, 20):
        spectrum = np.fft.rfft(law, 2**18) ** count
        sums = np.maximum(np.fft.irfft(spectrum, 2**18)[: count * (reach.size - 1) + 1], 0.0)
        t = float(error_bars.tail(event, np.array(math.sqrt(count)), x))
        for reached in (t, error_bars._one_tail(event, x)) if count == 1 else (t,):
            assert sums[count * 3000 + math.floor(reached) + 1 :].sum() <= math.exp(-x) + 1e-12
        assert t == pytest.approx(tail(event, math.sqrt(count), x), rel=0.03 if x < 10 else 4e-3)


@pytest.mark.parametrize("scale", [0.02, 0.3, 1.0, 1.5, 40.0])
def test_discrete_laplace_noise_is_at_most_an_exponential_and_a_step_or_a_part_of_its_mean(scale) -> None:
    """In distribution, at every size that it has: without the addition it is not."""
    sizes = np.arange(1, 200)
    beyond = 2 * np.exp(-sizes / scale) / (1 + math.exp(-1 / scale))  # Pr[|Z| ≥ k]
    for more in (1.0, scale * math.log(2)):
        assert (beyond <= np.minimum(1.0, np.exp(-(sizes - more) / scale)) * (1 + 1e-12)).all()
    assert (beyond > np.exp(-sizes / scale)).any()


def test_a_bar_is_proportional_to_the_noise_however_coarse_its_grid() -> None:
    """A purchase is planned from noise of scale 1: with less noise the bar must be less by the same factor, or more."""
    bars = ErrorBars(UNIVERSE, BETA)
    for kind, query in QUESTIONS.items():
        of_one = bars.width(query.on(UNIVERSE), Laplace(1.0, 1.0), alone=False)
        for scale in (1e-4, 0.01, 0.5, 3.0, 100.0):
            assert bars.width(query.on(UNIVERSE), Laplace(1.0, scale), alone=False) <= scale * of_one * (1 + 1e-9), kind
        of_one = bars.width(query.on(UNIVERSE), Gaussian(1.0, 1.0), alone=False)
        for scale in (1e-4, 0.01, 0.5, 3.0, 100.0):
            assert bars.width(query.on(UNIVERSE), Gaussian(1.0, scale), alone=False) <= scale * of_one * (1 + 1e-9), (
                kind
            )


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c")])
def test_a_bar_is_the_one_of_the_proof(event, kind, names) -> None:
    query, bars = QUESTIONS[kind].on(UNIVERSE), ErrorBars(UNIVERSE, BETA)
    bars.add(measured(names, event, 10**6))
    known = RowCountInterval(10**9, 10**9, 10**9)
    sizes = list(UNIVERSE.sizes(names))
    stated = width_of(kind, query.table, event, sizes, math.prod(sizes) // 12, 1)
    assert half(bars.intervals([query], known)) * 10**9 == pytest.approx(stated, rel=4e-3)


@pytest.mark.parametrize("event", EVENTS)
def test_the_bar_of_a_cell_is_that_of_a_run(event) -> None:
    bars = ErrorBars(UNIVERSE, BETA)
    bars.add(measured(("a", "b"), event, 10**6))
    low, high = bars.cell_intervals(("a", "b"), RowCountInterval(10**9, 10**9, 10**9))
    cell = np.zeros((3, 4))
    cell[0, 0] = 1
    assert (high - low)[0, 0] / 2 * 10**9 == pytest.approx(width_of("runs", cell, event, [3, 4], 1, 1), rel=4e-3)


@pytest.mark.parametrize("m", range(1, 9))
@pytest.mark.parametrize("is_ordered", [True, False])
def test_the_parts_of_all_sets_of_values_add_up_to_no_more_than_the_whole(m, is_ordered) -> None:
    """The parts are those of β_j, on two sides: a set of one attribute and its complement count once, and a pair by itself."""
    masks = ((np.arange(2**m)[:, None] >> np.arange(m)) & 1).astype(bool)
    of_products = 0.5 if is_ordered else 0.9  # lines have 0.4 where there are any
    parts = 2 * np.exp(-error_bars._code([Linear(("a",), (m,), (mask,), None, True) for mask in masks], [is_ordered]))
    halves = parts[: 2 ** (m - 1)]  # none has the last cell
    assert parts == pytest.approx(parts[::-1])
    assert halves.sum() == pytest.approx(of_products if m > 1 else 0.02 * of_products)
    of_a_pair = [Linear(("a", "b"), (m, 2), (mask, np.array([True, False])), None, True) for mask in masks]
    parts = 2 * np.exp(-error_bars._code(of_a_pair, [is_ordered, False]))
    assert parts.sum() == pytest.approx(of_products * 0.49 * (1 if m > 1 else 0.02))


def test_classes_share_what_a_measurement_may_fail_by() -> None:
    assert sum(2 * math.exp(-error_bars.doubt_of(which)) for which in error_bars.SHARES) == pytest.approx(1)
    unordered = [
        2 * math.exp(-error_bars.doubt_of(which, ordered=which != "products")) for which in ("products", "tables")
    ]
    assert sum(unordered) == pytest.approx(1)


def test_an_attribute_without_an_order_has_no_runs() -> None:
    """And its sets and values have their part, with that of lines."""
    universe, event = hr.Universe(a=hr.Categories(list("pqrstu")), b=hr.Categories(list("xyz"))), Gaussian(1.0, 20.0)
    bars = ErrorBars(universe, BETA)
    bars.add(Measurement(("a", "b"), np.full((6, 3), 1e6), event))
    for cells in ({"q", "r"}, {"q", "s"}, {"t"}):
        query = hr.count(a=cells, b="x").on(universe)
        norm = math.sqrt(((query.table - query.table.mean()) ** 2).sum())
        x = doubt(1) + of_subset(2, 2) + math.log(2 / 0.9) + code(query.table, [True, True], ordered=False)
        found = half(bars.intervals([query], RowCountInterval(10**9, 10**9, 10**9))) * 10**9
        assert found == pytest.approx(tail(event, norm, x), rel=4e-3)


@pytest.mark.filterwarnings("error")
def test_with_very_many_values_every_set_has_a_bar_and_so_has_a_mean_within_it() -> None:
    """1,500 values have more sets than a float holds. A set has the bar of its product, or of a table if that is smaller."""
    universe, event = hr.Universe(a=hr.Integers(0, 1499), b=hr.Integers(0, 4)), Gaussian(1.0, 20.0)
    bars, known = ErrorBars(universe, BETA), RowCountInterval(10**9, 10**9, 10**9)
    bars.add(Measurement(("a", "b"), np.full((1500, 5), 1e5), event))
    some = np.arange(1500) % 2 == 0
    log_sets = math.log(1497) + math.lgamma(1501) - 2 * math.lgamma(751) - math.log(0.98 * 0.16)
    for names, table in ((("a",), some), (("a", "b"), some[:, None] & (np.arange(5) == 1))):
        found = half(bars.intervals([Linear.from_table(universe, names, table)], known)) * 10**9
        norm = float(np.linalg.norm(table - table.mean())) * math.sqrt(7500 / table.size)
        base = doubt(1) + of_subset(2, len(names))
        of_b = -math.log(2) if len(names) == 1 else -math.log(0.98 * 0.42 / 10)  # or of the rest, which is the same
        product = tail(event, norm, base + math.log(2 / 0.5) + log_sets + of_b)
        anything = event.sigma * norm * (math.sqrt(table.size) + math.sqrt(2 * (base + math.log(2 / 0.1))))
        assert found == pytest.approx(min(product, anything), rel=4e-3)
        assert (anything < product) == (len(names) == 1)
    within = np.where(some[:, None], np.arange(5) / 4, 0.5)
    found = half(bars.intervals([Linear.from_table(universe, ("a", "b"), within)], known)) * 10**9
    norm = float(np.linalg.norm(within - within.mean()))
    x = doubt(1) + of_subset(2, 2) + math.log(2 / 0.4) + math.log(2) + log_sets
    assert found == pytest.approx(event.sigma * norm * math.sqrt(2 * x) * math.sqrt(1 + (1.5 / 20) ** 2), rel=4e-3)


@pytest.mark.parametrize("within", [0, 1])
def test_a_line_within_one_of_two_values_is_one_whichever_it_is(within) -> None:
    """If there are two lines, neither is like the majority, and the flat one decides."""
    table = np.full((5, 2), 0.5)
    for start in (0.0, 0.5):  # a line that begins like the flat one, or not
        table[:, within] = start + np.arange(5) / 10
        query = Linear.from_table(hr.Universe(a=hr.Integers(0, 4), b=hr.Flag()), ("a", "b"), table)
        assert error_bars._line_code(query, [True, False]) == pytest.approx(math.log(2 / 0.4 * 2 / 0.98))
        assert error_bars._line_code(query, [False, True]) == math.inf


def test_a_line_within_a_product_has_the_bar_of_a_plane() -> None:
    """A mean is α + βi within a product and γ elsewhere. A query without such a line has the bar of any table."""
    event, universe = Gaussian(1.0, 20.0), hr.Universe(a=hr.Integers(0, 4), b=hr.Integers(0, 3))
    bars, known = ErrorBars(universe, BETA), RowCountInterval(10**9, 10**9, 10**9)
    bars.add(Measurement(("a", "b"), np.full((5, 4), 1e6), event))
    base = doubt(1) + of_subset(2, 2)
    for middle in (0.0, 1.3, 2.9):
        table = np.full((5, 4), 0.5)
        table[:, 2] += (np.arange(5) - middle) / 10
        norm = float(np.linalg.norm(table - table.mean()))
        # of two ordered attributes, and one of the values of the other, whose rest is not the same line
        x = base + math.log(2 / 0.4) + math.log(2) + code(np.arange(4) == 2, [True]) + math.log(2)
        planar = event.sigma * norm * math.sqrt(2 * x) * math.sqrt(1 + (1.5 / 20) ** 2)
        found = half(bars.intervals([Linear.from_table(universe, ("a", "b"), table)], known)) * 10**9
        assert found == pytest.approx(planar, rel=4e-3)
        for bent in (0, 3):  # off the line within the product, and elsewhere
            other = table.copy()
            other[1, 2 - bent % 2] += 0.01
            norm = float(np.linalg.norm(other - other.mean()))
            anything = event.sigma * norm * (math.sqrt(20) + math.sqrt(2 * (base + math.log(2 / 0.1))))
            found = half(bars.intervals([Linear.from_table(universe, ("a", "b"), other)], known)) * 10**9
            assert found == pytest.approx(anything, rel=1e-6)


def test_all_measurements_together_fail_with_probability_beta() -> None:
    """The j-th has β_j, whichever kind it is of: these add up to β, and no two have the same."""
    event, bars, shares = Gaussian(1.0, 20.0), ErrorBars(UNIVERSE, BETA), []
    query = QUESTIONS["runs"].on(UNIVERSE)
    kinds = ["table", "query", "number"] * 7
    for kind in kinds:
        shares.append(2 * math.exp(-((bars.number(event) / event.sigma) ** 2) / 2))  # of a number, on two sides
        if kind == "table":
            bars.add(measured(("a",), event))
        elif kind == "query":
            bars.add(Measurement(query.attributes, np.array(700.0), event, query))
        else:
            bars.add_number()
    assert shares == pytest.approx([math.exp(-doubt(j)) for j in range(1, len(kinds) + 1)])
    assert sum(shares) < BETA
    of_many = sum(error_bars._share(j) for j in range(1, 100_001))
    assert of_many < 1 and of_many == pytest.approx(1 - 0.4 * 8 / 100_007)
    for size in range(1, 5):
        parts = [math.exp(-error_bars.doubt_of_subset(size, k)) * math.comb(size, k) for k in range(size + 1)]
        assert sum(parts) == pytest.approx(1)


@pytest.mark.parametrize("event", EVENTS)
def test_a_bar_of_a_query_measured_alone_is_the_one_of_the_proof(event) -> None:
    """And that of a weighted one is wider by half a step of its value, and by how far its weights were rounded."""
    for kind, extra_rows, rounding in (("products", 0.0, 0.0), ("tables", 0.5, 1e-3)):
        query, bars = QUESTIONS[kind].on(UNIVERSE), ErrorBars(UNIVERSE, BETA)
        bars.add(Measurement(query.attributes, np.array(5000.0), event, query, rounding=rounding))
        low, high = bars.intervals([query], KNOWN)
        x = math.log(2) + doubt(1)
        width = (event.scale * x if isinstance(event, Laplace) else event.sigma * math.sqrt(2 * x)) + extra_rows
        assert low[0] == pytest.approx((5000 - width) / N - rounding)
        assert high[0] == pytest.approx((5000 + width) / N + rounding)


def overview() -> Overview:
    """Return an overview of all sets of up to two attributes, with noise that differs from set to set."""
    found = []
    for i, s in enumerate(s for s in subsets(UNIVERSE.names, 1) if len(s) <= 2):
        values = np.zeros(UNIVERSE.sizes(s))
        found.append(Measurement(s, values, Gaussian(1.0, 10.0 + i, 0.5), residual=True))
    return Overview(UNIVERSE, found, float(N))


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_bar_of_an_overview_is_the_one_of_the_proof(kind) -> None:
    """For queries on a pair the family has 7 sets with the empty one, and residuals were rounded to halves of a step."""
    known, query = overview(), QUESTIONS[kind].on(UNIVERSE)
    bars = ErrorBars(UNIVERSE, BETA)
    bars.add_overview(known)
    base = doubt(1) + math.log(7)
    freedom = {s: math.prod(UNIVERSE[n].size - 1 for n in s) for s in known.sets if s}
    sigmas = {s: 10.0 + i for i, s in enumerate(s for s in subsets(UNIVERSE.names, 1) if len(s) <= 2)}
    rounding = math.sqrt(sum((0.25 * math.sqrt(r) / sigmas[s]) ** 2 for s, r in freedom.items()))
    deviation = float(known.deviations(query.attributes, [query])[0])
    if kind in RUNS:
        spread = normal(base + math.log(2 / 0.5) + code(query.table, RUNS[kind]), 2 * rounding)
    else:
        spread = math.sqrt(12) + math.sqrt(2 * (base + math.log(2 / 0.1)))
    assert half(bars.intervals([query], KNOWN)) * N == pytest.approx(deviation * (spread + rounding), rel=4e-3)


def test_an_overview_takes_the_first_share_of_beta() -> None:
    bars, event = ErrorBars(UNIVERSE, BETA), Gaussian(1.0, 20.0)
    bars.add_overview(overview())
    assert bars.number(event) == pytest.approx(event.sigma * math.sqrt(2 * (math.log(2) + doubt(2))))


def test_with_a_private_n_a_bar_holds_for_every_possible_n() -> None:
    """⟨q − c, counts⟩/n, c the mean of q, is farthest from 0 at the least n, and nearest at the most."""
    rows, query = RowCountInterval(N, 0.9 * N, 1.2 * N), hr.count(a=0).on(UNIVERSE)
    for counts in ([6000.0, 2000.0, 2000.0], [500.0, 4750.0, 4750.0]):
        bars = ErrorBars(UNIVERSE, BETA)
        bars.add(Measurement(("a",), np.array(counts), Gaussian(1.0, 2.0)))
        low, high = bars.intervals([query], rows)
        off, width = counts[0] - N / 3, width_of("runs", np.array([1.0, 0, 0]), Gaussian(1.0, 2.0), [3], 1, 1)
        ends = [(off + sign * width) / n + 1 / 3 for sign in (-1, 1) for n in (rows.low, rows.high)]
        assert (low[0], high[0]) == pytest.approx((max(0.0, min(ends)), max(ends)), rel=1e-4)


def test_the_interval_of_n_is_the_one_of_the_proof() -> None:
    """n is the query that is 1 everywhere: of a table, and of an overview that measured it."""
    event = Gaussian(1.0, 20.0)
    bars = ErrorBars(UNIVERSE, BETA)
    bars.add(measured(("a", "b"), event))
    found, base = bars.rows(), doubt(1) + math.log(2 / 0.9) + of_subset(2, 0)
    assert (found.high - found.low) / 2 == pytest.approx(tail(event, math.sqrt(12), base), rel=4e-3)
    assert found.estimate == pytest.approx(12 * 700)
    whole = [Measurement((), np.array(8000.0), event, residual=True)]
    whole += [Measurement((n,), np.zeros(UNIVERSE[n].size), event, residual=True) for n in UNIVERSE.names]
    bars, known = ErrorBars(UNIVERSE, BETA), Overview(UNIVERSE, whole, None)
    bars.add_overview(known)
    found, base = bars.rows(), doubt(1) + math.log(2 / 0.9 * 4)
    stated = event.sigma * (normal(base, 2 * known.rounding) + known.rounding)
    assert (found.high - found.low) / 2 == pytest.approx(stated, rel=4e-3)


@pytest.mark.parametrize("event", EVENTS)
def test_the_distance_of_a_hypothesis_is_the_one_of_the_proof(event) -> None:
    """‖y − ñh‖ and how large the noise may be, summed to fewer cells, and what is not known of n, over the least n."""
    bars, rows = ErrorBars(UNIVERSE, BETA), RowCountInterval(N, 0.9 * N, 1.2 * N)
    bars.add(measured(("a", "b"), event))
    believed = np.array([0.5, 0.3, 0.2])
    x = doubt(1) + math.log(2 / 0.1) + of_subset(2, 1)
    if isinstance(event, Gaussian):
        noise = event.sigma * math.sqrt(4) * (math.sqrt(3) + math.sqrt(2 * x))
    else:
        noise = event.scale * (12 + math.sqrt(24 * x) + x) + 12
    off = np.linalg.norm(4 * 700 - N * believed) + noise + 0.3 * N * np.linalg.norm(believed)
    assert bars.distance(("a",), believed, rows) == pytest.approx(off / (0.9 * N))


def test_parts_of_a_conjunction_bound_it_as_frechet_says() -> None:
    """P[A ∩ B] ≥ P[A] + P[B] − 1 and ≤ min(P[A], P[B]), by the ends of their own intervals."""
    bars, event = ErrorBars(UNIVERSE, BETA), Gaussian(1.0, 2.0)
    bars.add(Measurement(("a",), np.array([8000.0, 1000.0, 1000.0]), event))
    bars.add(Measurement(("b",), np.array([7000.0, 1000.0, 1000.0, 1000.0]), event))
    parts = [bars.intervals([hr.count(**part).on(UNIVERSE)], KNOWN) for part in ({"a": 0}, {"b": 0})]
    low, high = bars.intervals([hr.count(a=0, b=0).on(UNIVERSE)], KNOWN)
    assert low[0] == pytest.approx(sum(part[0][0] for part in parts) - 1)
    assert high[0] == pytest.approx(min(part[1][0] for part in parts))


def test_conjunctions_asked_together_have_each_the_bounds_of_its_own_parts() -> None:
    """Parts that share an attribute; fewer attributes, whose parts are others; and one of which nothing is known, so that all may be without it."""
    universe, rng = hr.Universe.from_sizes({"a": 3, "b": 4, "c": 2, "d": 3}), np.random.default_rng(0)
    bars, asked, bounds = ErrorBars(universe, BETA), [], []
    for names in (("a", "b"), ("b", "c")):
        counts = N * rng.dirichlet(np.full(math.prod(universe.sizes(names)), 0.2)).reshape(universe.sizes(names))
        bars.add(Measurement(names, counts, Gaussian(1.0, 2.0)))
    sets = {("a", "b", "c"): ["ab", "bc"], ("a", "c"): ["a", "c"], ("a", "b", "d"): ["ab"], ("a", "c", "d"): ["a", "c"]}
    for _ in range(20):
        for names, parts in sets.items():
            masks = {name: rng.permutation(universe[name].size) > 0 for name in names}
            asked.append(Linear.product(universe, masks))
            ends = [
                bars.intervals([Linear.product(universe, {name: masks[name] for name in part})], KNOWN)
                for part in parts
            ]
            room = max(0.0, 1 - sum(1 - low[0] for low, _ in ends))
            bounds.append((0.0 if "d" in names else room, min(high[0] for _, high in ends)))
    low, high = bars.intervals(asked, KNOWN)
    assert low == pytest.approx([least for least, _ in bounds], abs=1e-12) and low.max() > 0
    assert high == pytest.approx([most for _, most in bounds], abs=1e-12) and high.min() < 1


def test_parts_are_kept_for_a_limited_number_of_sets(monkeypatch) -> None:
    monkeypatch.setattr(error_bars, "KEPT_PARTS", 2)
    universe = hr.Universe.from_sizes(dict.fromkeys("abcde", 3))
    bars, alone = ErrorBars(universe, BETA), ErrorBars(universe, BETA)
    for each, name in itertools.product((bars, alone), "abcde"):
        each.add(Measurement((name,), np.array([8000.0, 1000.0, 1000.0]), Gaussian(1.0, 2.0)))
    for names in itertools.combinations("abcde", 3):
        query = hr.count(**dict.fromkeys(names, 0)).on(universe)
        alone._largest_parts = {}
        assert bars.intervals([query], KNOWN) == alone.intervals([query], KNOWN) != (0, 1)
        assert 0 < len(bars._largest_parts) <= 2


def test_parts_are_those_of_all_that_was_measured_until_now() -> None:
    query, residuals = hr.count(a=0, b=0, c=0).on(UNIVERSE), []
    for names in subsets(("a", "b"), 1):
        residuals.append(
            Measurement(names, np.zeros(UNIVERSE.sizes(names)), Gaussian(1.0, 2.0, 2.0**-6), residual=True)
        )
    early, late = ErrorBars(UNIVERSE, BETA), ErrorBars(UNIVERSE, BETA)
    for bars in (early, late):
        if bars is early:
            assert bars.intervals([query], KNOWN) == (0, 1)
        bars.add_overview(Overview(UNIVERSE, residuals, N))
    (_, before), (_, after) = early.intervals([query], KNOWN), late.intervals([query], KNOWN)
    assert before == after < 0.1
    for bars in (early, late):
        bars.add(Measurement(("c",), np.array([10.0, N - 10.0]), Gaussian(1.0, 2.0)))
    assert early.intervals([query], KNOWN)[1] == late.intervals([query], KNOWN)[1] < 0.01


def test_a_bar_reaches_both_ends_of_what_is_known() -> None:
    low, high = np.array([0.2, 0.2, 0.2]), np.array([0.6, 0.6, 0.6])
    values, errors = free_answers._move_into_intervals(np.array([0.3, 0.1, 0.9]), low, high, None)
    assert values.tolist() == [0.3, 0.2, 0.6]
    assert errors == pytest.approx([0.3, 0.4, 0.4])
    values, errors = free_answers._move_into_intervals(np.array([0.3, 0.1, 0.9]), low, high, 0.25)
    assert errors == pytest.approx([0.25, 0.25, 0.25])


def test_a_bar_in_rows_holds_for_every_n_that_is_possible() -> None:
    """ñv is off by at most |ñ − n|·v + n·error, at either end of n."""
    for rows in (
        RowCountInterval(1000.0, 700.0, 1100.0),
        RowCountInterval(1000.0, 900.0, 1500.0),
        RowCountInterval(3.0, 1.0, 4.0),
    ):
        least = rows.low if rows.low > 1 else 0.0
        assert rows.off == max(rows.estimate - least, rows.high - rows.estimate)
    session = hr.open(
        hr.data.HistogramSource(UNIVERSE, np.full(UNIVERSE.size, 20)), universe=UNIVERSE,
        budget=hr.Budget(1.0, 1e-6, "add-remove"), seed=0,
    )  # fmt: skip
    engine = session._engine
    assert isinstance(engine, PracticalEngine)
    rows = engine.knowledge.rows
    assert rows.high > rows.low
    assert engine.error_in_rows(0.4, 0.01) == pytest.approx(rows.off * 0.4 + rows.high * 0.01)


def test_the_variance_of_a_measurement_is_that_of_its_noise() -> None:
    for event, law in ((Gaussian(1.0, 20.0), stats.norm(scale=20.0)), (Laplace(1.0, 15.0), stats.laplace(scale=15.0))):
        assert measured(("a",), event).variance == pytest.approx(law.var())


def test_the_promise_of_a_guard_is_its_threshold_plus_its_width() -> None:
    """At 2w it never fires at errors below w, and after ⊥ the error is at most 3w, w how far a comparison may be off."""
    guard = plan_guard(hr.Budget(1.0, 1e-6), 10**7, 1000, 0.02)
    assert guard is not None
    weight, _ = sparse_vector.comparison_weight(GUARD_ROUNDS, 1000, 0.02)
    width = weight * guard.config.guard.sensitivity / guard.config.guard.epsilon
    assert guard.config.threshold == pytest.approx(2 * width, abs=1e-5)
    assert guard.promise * 10**7 == pytest.approx(3 * width)


def test_all_rounds_of_a_guard_cost_its_share() -> None:
    for budget in (hr.Budget(1.0, 1e-6), hr.Budget(1.0, 0.0)):
        guard = plan_guard(budget, 10**7, 1000, 0.02, share=0.2)
        assert guard is not None and guard.config.rounds == GUARD_ROUNDS
        assert GUARD_ROUNDS * budget.cost(guard.config.guard) == pytest.approx(0.2 * budget.total)


def test_a_question_is_covered_by_larger_tables_before_smaller_ones() -> None:
    """The bounds of a larger table are narrower than those that its attributes give one by one."""
    bars = ErrorBars(UNIVERSE, 0.05)
    for names in (("c",), ("a", "b"), ("a",)):
        bars.add(measured(names, Gaussian(1.0, 1.0)))
    assert bars.largest_parts(("a", "b", "c")) == [("a", "b"), ("c",)]
