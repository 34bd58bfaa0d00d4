"""Bars, part by part: each part is as wide as its proof needs, and no wider.

Most bars are wider than necessary, because of union bounds and Chernoff's bound. So a bar may still hold although it
shrank. Here every part is computed again from the quantity that it bounds: the tail of a sum of noises, the shares of β, the number
of statements that hold at once. A part that is a fifth smaller fails, and each test shows that it would.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from paying import paid
from scipy import optimize, special, stats

import hedgerow as hr
from hedgerow.audit import runs_to_tell
from hedgerow.engine import theory
from hedgerow.engine.practical.bars.error_bars import ErrorBars, _plane_tail, gaussian_tail, tail
from hedgerow.engine.practical.convex.excess_bounds import _by_distance, _by_variation, _sup_quadratic, excess_bound
from hedgerow.engine.practical.fit.residuals import Overview, from_coordinates
from hedgerow.engine.practical.guard import plan_guard
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.noise import Seeded
from hedgerow.query.linear import Linear
from hedgerow.textbook import mwem, pmw
from hedgerow.textbook import sparse_vector as sv
from hedgerow.universe.universe import subsets

UNIVERSE = hr.Universe.from_sizes({"a": 3, "b": 4})
EXACT = RowCountInterval(1000, 1000, 1000)
LITTLE = 1e-9  # a β for which Chernoff's bound is nearly the quantile
FIRST = 0.6  # of β, of the first measurement


# The tail of a sum of noises


def least_width(scale: float, norm: float, x: float) -> float:
    """The least t for which the proof's e^(−λt)·E e^(λ⟨q, Z⟩) is at most e^(−x) for some λ, of Laplace noise: by search."""
    found = optimize.minimize_scalar(
        lambda s: (x - norm**2 * math.log1p(-s * s)) / s,
        bounds=(1e-6, 1 - 1e-12),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return scale * float(found.fun)


def test_the_tail_of_laplace_noise_is_nearly_the_least_that_its_proof_allows() -> None:
    for norm, x in itertools.product((0.3, 1.0, 2.0, 5.0, 30.0), (1.0, 4.0, 9.0, 25.0, 60.0)):
        width, least = float(tail(Laplace(1.0, 15.0), np.asarray(norm), x)), least_width(15.0, norm, x)
        assert least * (1 - 1e-9) <= width <= 1.05 * least


@pytest.mark.parametrize("step", [0.01, 0.2, 0.25])
def test_discrete_noise_has_at_most_twice_the_normal_tail_of_a_little_more_variance(step) -> None:
    """The tail of a weighted sum of three, with weights that fit no lattice, is computed exactly on their grid."""
    weights, grid = (
        np.array([1.0, math.sqrt(2), -math.sqrt(3)]) / math.sqrt(6),
        np.arange(-int(9 / step), int(9 / step) + 1),
    )
    if grid.size > 200:
        grid = np.arange(-100, 101)
        step = 9 / 100
    law = np.exp(-((grid * step) ** 2) / 2)
    law /= law.sum()
    sums = functools.reduce(np.add.outer, [w * step * grid for w in weights]).ravel()
    chances = functools.reduce(np.multiply.outer, [law] * 3).ravel()
    for x in (1.0, 4.0, 9.0, 16.0):
        assert chances[sums > float(gaussian_tail(x, step))].sum() <= math.exp(-x)
        assert x < 4 or chances[sums > 0.8 * float(gaussian_tail(x, step))].sum() > math.exp(-x)


def test_a_gaussian_tail_is_never_below_the_quantile_and_a_fifth_less_would_be() -> None:
    event = Gaussian(1.0, 20.0)
    for x in (8.0, 12.0, 20.0, 40.0, 80.0):
        quantile = float(-special.ndtri_exp(-x)) * 20
        width = float(tail(event, np.ones(()), x))
        assert 0.8 * width < quantile <= width <= 1.2 * quantile


def test_a_laplace_tail_is_never_below_the_quantile_and_at_most_two_fifths_wider() -> None:
    """One noise: e^(−x) = ½·e^(−t/b). Chernoff's bound costs ½·ln x and little more."""
    for x in (4.0, 8.0, 20.0, 60.0):
        quantile = 15 * (x - math.log(2))
        width = float(tail(Laplace(1.0, 15.0), np.ones(()), x))
        assert quantile <= width <= quantile + 15 * (2 + math.log(2) + math.log(1 + x))


def test_the_noise_in_a_plane_is_beyond_its_tail_as_often_as_stated_and_a_fifth_less_would_be_too_little() -> None:
    """The tail of Gaussian noise is e^(−z²/2), at most twice that on a grid; a coarse grid uses the norm of a vector of two."""
    for x in (4.0, 9.0, 16.0):
        assert (
            math.exp(-(_plane_tail(x, 0.1) ** 2) / 2)
            <= math.exp(-x)
            < math.exp(-((0.8 * _plane_tail(x, 0.1)) ** 2) / 2)
        )
        assert _plane_tail(x, 0.3) == pytest.approx(math.sqrt(2) + math.sqrt(2 * x))


def test_on_a_coarse_grid_noise_is_not_compared_with_one_that_has_none() -> None:
    assert float(gaussian_tail(8.0, 0.26)) == 4.0 > float(gaussian_tail(8.0, 0.25))


# Shares of β


def small_table() -> Measurement:
    return Measurement(("a",), np.zeros(3), Gaussian(1.0, 5.0))


def query(i: int) -> Linear:
    return hr.count(a=i % 3).on(UNIVERSE)


def shares(steps: str) -> list[float]:
    """e^(−doubt) of tables (t), queries (q) and numbers (n), in this order, as they are given out."""
    bars, found = ErrorBars(UNIVERSE, 0.05), []
    for i, step in enumerate(steps):
        found.append(math.exp(-bars._doubt))
        if step == "t":
            bars.add(small_table())
        elif step == "q":
            bars.add(Measurement(("a",), np.asarray(0.0), Gaussian(1.0, 5.0), query(i)))
        else:
            bars.add_number()
    return found


@pytest.mark.parametrize("steps", ["t" * 60, "q" * 60, "n" * 60, "tqn" * 20, "ttqqnn" * 10, "nqt" * 20])
def test_the_failure_probabilities_of_measurements_add_up_to_at_most_beta(steps) -> None:
    """The j-th has 0.4·8/((6 + j)(7 + j)), the first 0.6, whatever it is of: all but 0.4·8/(J + 7) is in the first J."""
    found = shares(steps)
    assert found == pytest.approx(
        [0.05 * FIRST] + [0.05 * 0.4 * 8 / ((6 + j) * (7 + j)) for j in range(2, len(steps) + 1)]
    )
    assert math.fsum(found) == pytest.approx(0.05 * (1 - 0.4 * 8 / (len(steps) + 7)))
    used = ErrorBars(UNIVERSE, 0.05)
    used.add(small_table())
    assert used._tables[0][1] == pytest.approx(-math.log(found[0]))  # what it was given is what its bar uses


def overview(sigma: float = 10.0, noise: Seeded | None = None) -> Overview:
    """All residuals of a table of 1000 rows that are alike in every cell, n known."""
    found = []
    for s in subsets(("a", "b"), 1):
        shape = tuple(m - 1 for m in UNIVERSE.sizes(s))
        event = Gaussian(1.0, sigma, 2.0**-10)
        drawn = np.zeros(shape) if noise is None else np.asarray(noise.add(np.zeros(shape), paid(event)))
        found.append(Measurement(s, from_coordinates(drawn), event, residual=True))
    return Overview(UNIVERSE, found, 1000.0)


def test_an_overview_takes_the_first_share_and_leaves_the_second() -> None:
    bars = ErrorBars(UNIVERSE, 0.05)
    bars.add_overview(overview())
    assert math.exp(-bars.overview_doubt) == pytest.approx(0.05 * FIRST)
    assert math.exp(-bars._doubt) == pytest.approx(0.05 * 0.4 / 9)


# How many statements hold at once


def masks(size: int, kind: str) -> list[np.ndarray]:
    every = [np.array(bits, bool) for bits in itertools.product([False, True], repeat=size)]
    if kind == "products":
        return every
    return [m for m in every if np.count_nonzero(m != np.roll(m, 1)) <= 2]


def statements(kind: str, sets: list[tuple[str, ...]]) -> list[Linear]:
    """Every query of the class on every one of the sets of attributes: what a union bound must pay for."""
    found = []
    for names in sets:
        for chosen in itertools.product(*(masks(m, kind) for m in UNIVERSE.sizes(names))):
            found.append(Linear.product(UNIVERSE, dict(zip(names, chosen, strict=True))))
    return [q for q in found if q.attributes]


def half_widths(bars: ErrorBars, asked: list[Linear]) -> np.ndarray:
    low, high = bars.intervals(asked, EXACT)
    return (high - low) / 2 * 1000


@pytest.mark.parametrize("what", ["table", "overview"])
def test_the_chances_of_all_products_add_up_to_their_share(what) -> None:
    """Σ over the class of Pr[|⟨q − c, Z⟩| > bar], exactly, is at most β₁/2; and with bars of 0.8 times the width it is not.

    Each chance is 2Φ(−bar/deviation). A union bound that is left out takes a factor of 12 or more from inside the bar's
    logarithm; the last line says that it would be seen too.
    """
    sigma, allowed = 0.5, FIRST * LITTLE * 0.5
    bars, sets = ErrorBars(UNIVERSE, LITTLE), subsets(("a", "b"), 1)
    # of one attribute a set and the rest of it are one event
    asked = [q for q in statements("products", sets) if len(q.attributes) > 1 or not q.table[0]]
    if what == "table":
        bars.add(Measurement(("a", "b"), np.full((3, 4), 1000 / 12), Gaussian(1.0, sigma, sigma / 2**6)))
    else:
        bars.add_overview(overview(sigma))
    deviations = []
    for q in asked:
        centred = q.table - q.table.mean()
        if what == "table":
            merged = 12 / q.table.size
            deviations.append(sigma * math.sqrt(merged * float((centred**2).sum())))
        else:
            deviations.append(float(overview(sigma).deviations(q.attributes, [q])[0]))
    sure = np.array(deviations) > 1e-9  # a query of every cell has no error
    z = half_widths(bars, asked)[sure] / np.array(deviations)[sure]

    def chance(times: float) -> float:
        return float(2 * special.ndtr(-times * z).sum())

    assert chance(1.0) <= allowed
    assert chance(0.8) > allowed
    # the bar without its union: as if x were ln(2/β₁) alone
    alone = math.sqrt(2 * math.log(2 / (FIRST * LITTLE)))
    assert float(2 * special.ndtr(-np.minimum(z, alone)).sum()) > allowed


def test_the_norm_of_a_tables_noise_is_bounded_for_its_share_and_a_fifth_less_would_not_be() -> None:
    """Any table: |⟨q, Z⟩| ≤ ‖q‖‖Z_A‖, and ‖Z_A‖²/σ_A² is a chi-square, whose tail is known."""
    bars = ErrorBars(UNIVERSE, LITTLE)
    bars.add(Measurement(("a", "b"), np.full((3, 4), 1000 / 12), Gaussian(1.0, 0.5)))
    allowed = FIRST * LITTLE * 0.1
    for names in subsets(("a", "b"), 1):
        sizes = UNIVERSE.sizes(names)
        weights = np.linspace(0.1, 0.9, math.prod(sizes)).reshape(sizes) ** 2
        q = Linear.from_table(UNIVERSE, names, weights)
        centred = float(np.linalg.norm(weights - weights.mean()))
        radius = half_widths(bars, [q])[0] / (centred * 0.5 * math.sqrt(12 / weights.size))
        distance = bars.distance(names, np.full(sizes, 1 / weights.size), EXACT) * 1000
        assert distance == pytest.approx(radius * 0.5 * math.sqrt(12 / weights.size))
        subset = 1 / 2 if len(names) == 2 else 1 / 6  # half for both attributes, half for the three smaller sets
        assert stats.chi2.sf(radius**2, weights.size) <= allowed * subset
        assert stats.chi2.sf((0.8 * radius) ** 2, weights.size) > allowed * subset


def test_the_norm_of_laplace_noise_is_bounded_for_its_share() -> None:
    """‖Z‖₁ of M cells: at most a Gamma(M) of scale b and a step each, whose tail is known. 0.8 of it would be too little."""
    bars, b = ErrorBars(UNIVERSE, LITTLE), 0.5
    bars.add(Measurement(("a", "b"), np.full((3, 4), 1000 / 12), Laplace(2.0, b, 2.0**-10)))
    distance = bars.distance(("a", "b"), np.full((3, 4), 1 / 12), EXACT) * 1000
    allowed = FIRST * LITTLE * 0.1
    assert 2 * stats.gamma.sf((distance - 12 * 2.0**-10) / b, 12) <= allowed
    assert 2 * stats.gamma.sf(0.8 * distance / b, 12) > allowed


# Single queries, numbers and n


def test_a_single_query_and_a_number_have_their_quantile_and_a_fifth_less_is_too_little() -> None:
    share = FIRST * LITTLE
    bars, event = ErrorBars(UNIVERSE, LITTLE), Gaussian(1.0, 3.0)
    number = bars.number(event)
    assert bars.width(query(0), event, alone=True) == number
    bars.add(Measurement(("a",), np.asarray(400.0), event, query(0)))
    asked = half_widths(bars, [query(0)])[0]
    assert asked == pytest.approx(number)
    assert 2 * special.ndtr(-number / 3) <= share < 2 * special.ndtr(-0.8 * number / 3)
    again = Laplace(1.0, 3.0)
    width = ErrorBars(UNIVERSE, LITTLE).number(again)
    assert math.exp(-width / 3) <= share
    assert math.exp(-0.8 * width / 3) > share, "a fifth less is too little"


def test_a_query_that_is_no_count_is_wider_by_what_was_rounded() -> None:
    bars, event = ErrorBars(UNIVERSE, 0.05), Gaussian(1.0, 3.0, 0.25)
    q = Linear.from_table(UNIVERSE, ("a",), np.array([0.2, 0.5, 0.9]))
    width = bars.number(event)
    bars.add(Measurement(("a",), np.asarray(400.0), event, q, rounding=2.0**-12))
    assert half_widths(bars, [q])[0] == pytest.approx(width + 0.125 + 1000 * 2.0**-12)


def test_the_interval_of_n_has_the_quantile_of_a_sum_of_all_cells() -> None:
    for event, law in ((Gaussian(1.0, 3.0), "gaussian"), (Laplace(1.0, 3.0), "laplace")):
        bars = ErrorBars(UNIVERSE, LITTLE)
        bars.add(Measurement(("a", "b"), np.full((3, 4), 1e6), event))
        rows = bars.rows()
        width, allowed = rows.high - 12e6, FIRST * LITTLE * 0.9  # there are no lines
        assert rows.low == pytest.approx(12e6 - width) and rows.off == pytest.approx(width)
        x = math.log(2 * 6 / allowed)  # it is the one product on one of the 3 smaller subsets, which have half
        if law == "laplace":
            assert least_width(3.0, math.sqrt(12), x) <= width <= 1.05 * least_width(3.0, math.sqrt(12), x)
        else:
            z = width / (3 * math.sqrt(12))
            assert z == pytest.approx(math.sqrt(2 * x))  # on so coarse a grid
            assert 2 * special.ndtr(-z) <= allowed / 6 < special.ndtr(-0.8 * z) * 2


# Together, on draws


def worst_ratio(kind: str, event: Laplace | Gaussian, noise: Seeded, beta: float) -> float:
    """The largest error of any query of the class as a share of its bar, of one noisy table."""
    y = 1e5 + np.asarray(noise.add(np.zeros((3, 4), np.int64), paid(event)))
    bars = ErrorBars(UNIVERSE, beta)
    bars.add(Measurement(("a", "b"), y, event))
    asked = statements(kind, subsets(("a", "b"), 1))
    low, high = bars.intervals(asked, RowCountInterval(12e5, 12e5, 12e5))
    true = np.array([q.table.mean() for q in asked])
    middle, half = (low + high) / 2, (high - low) / 2
    sure = half > 1e-12
    return float((np.abs(true - middle)[sure] / half[sure]).max())


@pytest.mark.parametrize("event", [Gaussian(1.0, 20.0), Laplace(1.0, 15.0)])
def test_all_bars_of_a_table_hold_at_once_as_often_as_promised(event) -> None:
    """β = 0.3, against a rate of 0.6 of misses. Bars of half the width do miss: as often as that."""
    beta = 0.3
    runs, allowed = runs_to_tell(beta, 0.6, 1e-7, 1e-3)
    noise = Seeded(9)
    ratios = np.array([worst_ratio("runs", event, noise, beta) for _ in range(runs)])
    assert np.count_nonzero(ratios > 1) <= allowed
    narrow = 0.5 if isinstance(event, Gaussian) else 0.25
    assert np.count_nonzero(ratios > narrow) > allowed


# The guard's promise


def comparisons_fail(guard, width: float, rounds: int, queries: int) -> float:
    """The least union bound on any of c thresholds and k values straying by ``width`` together: by search over the split."""
    τ, ν = guard.threshold_scale, guard.query_scale
    A = np.linspace(0, width, 20_001)[1:-1]
    return float((rounds * np.exp(-A / τ) + queries / 2 * np.exp(-(width - A) / ν)).min())


@pytest.mark.parametrize(("rounds", "queries", "beta"), [(1, 10, 0.1), (8, 1000, 0.05), (50, 10**6, 0.01)])
@pytest.mark.parametrize("budget", [hr.Budget(1.0, 0.0), hr.Budget(1.0, 1e-6)], ids=["pure", "approximate"])
def test_the_width_of_comparisons_is_what_beta_asks_for_and_a_fifth_less_is_too_little(
    rounds, queries, beta, budget
) -> None:
    config, width = sv.threshold_game_config(
        Amount.share_of(budget), threshold=1e6, rounds=rounds, queries=queries, beta=beta
    )
    assert comparisons_fail(config.guard, width, rounds, queries) <= beta * (1 + 1e-6)
    assert comparisons_fail(config.guard, 0.8 * width, rounds, queries) > 1.5 * beta


@pytest.mark.parametrize("budget", [hr.Budget(1.0, 0.0), hr.Budget(1.0, 1e-6)], ids=["pure", "approximate"])
def test_the_guards_promise_is_three_widths_its_threshold_two_and_they_are_what_beta_asks_for(budget) -> None:
    rows, queries, beta = 10**7, 1000, 0.025
    guard = plan_guard(budget, rows, queries, beta, 0.1)
    width = guard.promise * rows / 3
    assert guard.config.threshold == pytest.approx(2 * width, abs=2.0**-20)
    fails = [comparisons_fail(guard.config.guard, x * width, guard.config.rounds, queries) for x in (1.0, 0.8)]
    assert fails[0] <= beta * (1 + 1e-6) and fails[1] > 1.5 * beta


# Theory's 3α


def beyond(event: Laplace | Gaussian, width: float) -> float:
    """Pr[|Z| > width]."""
    return (
        math.exp(-width / event.scale) if isinstance(event, Laplace) else 2 * float(special.ndtr(-width / event.sigma))
    )


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "approximate"])
def test_the_alpha_of_online_pmw_is_what_beta_asks_for_and_a_fifth_less_is_too_little(delta) -> None:
    """Comparisons and measurements stray by more than αn with probability β; the threshold is 2αn and the answer 3α."""
    beta, queries, n = 0.1, 1000, 1e8
    config = pmw.configure(hr.Budget(1.0, delta), cells=64, scale=n, queries=queries, beta=beta)
    assert config.error == pytest.approx(3 * config.alpha)
    assert config.threshold == pytest.approx(2 * config.alpha * n, rel=1e-6)

    def fails(width: float) -> float:
        return comparisons_fail(config.guard, width, config.rounds, queries) + config.rounds * beyond(config.measurement, width)  # fmt: skip

    assert fails(config.alpha * n - 2) <= beta * (1 + 1e-6)
    assert fails(0.8 * config.alpha * n) > 1.5 * beta


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "approximate"])
def test_the_alpha_of_mwem_is_what_beta_asks_for_and_a_fifth_less_is_too_little(delta) -> None:
    """A choice is w′ worse than the best with probability k·e^(−εw′/2Δ), and w′ and the measurement's error make αn."""
    beta, queries, n = 0.1, 500, 1e8
    config = mwem.configure(hr.Budget(1.0, delta), cells=64, scale=n, queries=queries, beta=beta)
    assert config.error == pytest.approx(3 * config.alpha)

    def fails(width: float) -> float:
        splits = np.linspace(0.01, 0.99, 99)
        return min(
            config.rounds * (queries * math.exp(-s * width / config.choice.scale) + beyond(config.measurement, (1 - s) * width))
            for s in splits
        )  # fmt: skip

    assert fails(config.alpha * n) <= beta * (1 + 1e-6)
    assert fails(0.8 * config.alpha * n) > 1.5 * beta


def test_the_interval_of_the_theorys_estimate_of_n_follows_from_beta() -> None:
    for event in (Laplace(1.0, 70.0), Gaussian(1.0, 70.0)):
        for beta in (1e-4, 1e-9):
            reach = theory._reach(event, beta)
            assert beyond(event, reach) <= beta
            assert beyond(event, 0.8 * reach) > beta


# The excess risk that a distance leaves possible


@pytest.mark.parametrize("distance", [0.002, 0.01, 0.03])
def test_the_certificate_covers_the_worst_table_at_its_distance_and_at_most_fifteen_times_more(distance) -> None:
    """A mean, ½(θ − y)² with y from −1 to 1: of all tables as far away, the worst is moved along y itself."""
    universe = hr.Universe.from_sizes({"y": 5})
    bound = hr.minimize(hr.losses.Squared(target="y"), hr.Box(-1.0, 1.0)).on(universe)
    believed = np.array([0.15, 0.2, 0.3, 0.2, 0.15])
    found = optimum(bound, believed)
    y = np.linspace(-1, 1, 5)
    moved = believed + distance * y / np.linalg.norm(y)  # y has mean 0, so that it still sums to 1
    assert moved.min() > 0
    worst = 0.5 * float(moved @ y - found.theta[0]) ** 2  # ℓ_D(θ̂) − min ℓ_D of a mean
    stated = excess_bound(bound, believed, found, distance)
    assert worst <= stated <= 15 * worst + found.gap


def optimum(bound, marginal):
    return bound.fit_on(FixedMarginal(marginal))[0]


class FixedMarginal:
    """A hypothesis that believes one table."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = table

    def marginal(self, names):
        return self.table


@pytest.mark.parametrize(("a", "c", "h"), [(0.01, 2.0, 1.0), (0.003, 9.0, 0.2), (0.5, 0.1, 4.0)])
def test_the_largest_of_a_slope_less_its_curvature_is_covered_and_little_more(a, c, h) -> None:
    """In one dimension it is a²c/2h. The κ that are tried are a factor of 2.2 apart, and no more than that is lost."""
    exact = a * a * c / (2 * h)
    found = _sup_quadratic(a, np.array([[c]]), np.array([[h]]), reach=2.0)
    assert exact <= found <= 2.2 * exact


@pytest.mark.parametrize("variation", [0.01, 0.05, 0.1])
def test_the_bound_by_variation_covers_the_worst_table_and_at_most_fifteen_times_more(variation) -> None:
    """For a mean, the worst table at a distance in total variation has that share of its rows moved from one end to the other."""
    universe = hr.Universe.from_sizes({"y": 5})
    bound = hr.minimize(hr.losses.Squared(target="y"), hr.Box(-1.0, 1.0)).on(universe)
    believed = np.array([0.15, 0.2, 0.3, 0.2, 0.15])
    found = optimum(bound, believed)
    moved = believed + variation * np.array([-1, 0, 0, 0, 1.0])
    worst = 0.5 * float(moved @ np.linspace(-1, 1, 5) - found.theta[0]) ** 2
    stated = excess_bound(bound, believed, found, math.inf, variation)
    assert worst <= stated <= 15 * worst + found.gap
    assert excess_bound(bound, believed, found, math.inf) == math.inf


def test_bounds_cover_every_table_at_the_distance_even_if_the_model_fits_exactly() -> None:
    """All rows are believed to be at 0, where the loss of θ̂ is 0: what they are moved by is all that the bounds have."""
    universe = hr.Universe.from_sizes({"y": 5})
    bound = hr.minimize(hr.losses.Squared(target="y"), hr.Box(-1.0, 1.0)).on(universe)
    believed = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    found = optimum(bound, believed)
    for share in (0.05, 0.3, 0.6):
        moved = believed + share * np.array([0, 0, -1, 0, 1.0])
        worst = 0.5 * (share - found.theta[0]) ** 2  # of their mean
        away = float(np.linalg.norm(moved - believed))
        for each in (_by_variation(bound, believed, found, share), _by_distance(bound, believed, found, away)):
            assert len(each) >= 4 and min(each) >= worst
