"""A certificate holds for every question, asked or not. It moves by at most one row, and is charged from the record it is drawn from."""

from __future__ import annotations

import functools
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from paying import paid

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical import free_answers
from hedgerow.engine.practical.certificate import certified_bounds, largest_errors
from hedgerow.engine.practical.certificate.certificate_purchase import (
    WEIGHT_BITS,
    mean_sensitivity,
    mean_weights,
    quantile,
    rounded_mean,
    step_bits,
)
from hedgerow.engine.practical.certificate.certified_bounds import CertifiedCounts, small_sets
from hedgerow.engine.practical.certificate.largest_errors import (
    PIECES,
    PLACES,
    boxes_with,
    error_allowances,
    half_distance,
    largest_error,
    largest_of_means,
    sum_of_errors,
)
from hedgerow.engine.practical.engine import CERTIFICATE
from hedgerow.engine.practical.free_answers import FittedModel, FreeAnswers
from hedgerow.engine.practical.measure.purchases import WantedBar
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded
from hedgerow.query.linear import Linear

UNIVERSE = hr.Universe(
    age=hr.Integers(0, 4), region=hr.Categories(["n", "e", "s", "w"]), sex=hr.Flag(), visits=hr.Integers(0, 2)
)
BUDGETS = [
    hr.Budget(1.0, delta, neighbours) for delta in (0.0, 1e-6) for neighbours in ("replace", "add-remove")
]  # fmt: skip


def table(rows: int = 40_000, seed: int = 0, universe: hr.Universe = UNIVERSE) -> HistogramSource:
    rng = np.random.default_rng(seed)
    return HistogramSource(universe, rng.multinomial(rows, rng.dirichlet(np.full(universe.size, 0.2))))


def opened(data: HistogramSource, budget: hr.Budget = BUDGETS[2], **options) -> hr.Session:
    return hr.open(data, universe=data.universe, budget=budget, **{"seed": 1, **options})


def masks(size: int, ordered: bool) -> list[np.ndarray]:
    """Return the masks of all intervals, or of all sets, of one attribute."""
    if ordered:
        return [np.array([i <= k <= j for k in range(size)]) for i in range(size) for j in range(i, size)]
    return [np.array(chosen, bool) for chosen in itertools.product((0, 1), repeat=size)]


def products(shape: tuple[int, ...], ordered: list[bool]) -> list[np.ndarray]:
    return [
        functools.reduce(np.multiply.outer, [mask.astype(float) for mask in chosen])
        for chosen in itertools.product(*(masks(m, o) for m, o in zip(shape, ordered, strict=True)))
    ]


# The largest error, and the mean


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_largest_error_is_that_of_the_worst_question(axes) -> None:
    rng = np.random.default_rng(axes)
    for _ in range(25):
        shape = tuple(int(m) for m in rng.integers(1, 5, axes))
        ordered = [bool(o) for o in rng.integers(0, 2, axes)]
        difference = rng.integers(-50, 51, shape)
        every = products(shape, ordered)
        assert largest_error(difference, ordered) == max(abs(float((q * difference).sum())) for q in every)
        assert half_distance(difference) == max(difference[difference > 0].sum(), -difference[difference < 0].sum())
        off = rng.integers(0, 20, shape)
        exceeding = max(abs(float((q * difference).sum())) - float((q * off).sum()) for q in every)
        assert largest_error(difference, ordered, off) == max(0, exceeding)


def test_with_too_many_sets_the_bound_is_larger_and_still_holds(monkeypatch) -> None:
    difference = np.random.default_rng(0).integers(-50, 51, (4, 4, 3))
    exact = largest_error(difference, [False, False, True])
    monkeypatch.setattr("hedgerow.engine.practical.certificate.largest_errors.MOST_SETS", 1)
    assert largest_error(difference, [False, False, True]) >= exact


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_row_moves_the_number_by_one_whatever_is_allowed_and_no_more(neighbours) -> None:
    """Over all tables and lines together: the largest of what exceeds; some row moves it by a whole one."""
    rng, bits = np.random.default_rng(2), 4
    names = [("age",), ("region", "visits"), ("age", "region", "visits")]
    believed = {n: rng.dirichlet(np.ones(math.prod(UNIVERSE.sizes(n)))).reshape(UNIVERSE.sizes(n)) for n in names}
    lines = {n: error_allowances(believed[n], 3.0, bits) for n in names}
    assert all(each.offset >= 0 and (each.table is None or each.table.min() >= 0) for n in names for each in lines[n])

    def released(counts: np.ndarray) -> Fraction:
        largest = None
        for n in names:
            away = tuple(i for i, a in enumerate(UNIVERSE.names) if a not in n)
            off = (counts.sum(axis=away) << bits) - np.rint(np.ldexp(600 * believed[n], bits)).astype(np.int64)
            for each in lines[n]:
                found = largest_error(off, [UNIVERSE[a].ordered for a in n], each.table) - each.offset
                largest = found if largest is None else max(largest, found)
        return Fraction(largest, 2**bits)

    moves = []
    counts = rng.multinomial(600, np.full(UNIVERSE.size, 1 / UNIVERSE.size)).reshape(UNIVERSE.shape)
    for cell, other in rng.integers(0, UNIVERSE.size, (40, 2)):
        near = counts.copy()
        near.flat[cell] += 1
        if neighbours == "replace":
            near.flat[other] -= 1
        moves.append(abs(released(near) - released(counts)))
    assert max(moves) == 1


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_row_moves_what_means_are_made_of_by_one_and_no_more(neighbours) -> None:
    """In whole steps, rounded down; a row that goes from one end of a number to the other within a value moves it by a whole one, and so
    does one that comes at the end that is farther from the place."""
    rng, bits, moves = np.random.default_rng(7), 3, []
    for _ in range(60):
        shape = (int(rng.integers(2, 6)), int(rng.integers(1, 4)))
        axis, places = int(rng.integers(0, 2)), None
        table = rng.integers(-40, 41, shape) << bits
        table += rng.integers(0, 1 << bits, shape)
        if shape[axis] == 1:
            continue
        places = rng.integers(0, PLACES + 1, shape[1 - axis])
        farthest = np.maximum(places, PLACES - places) if neighbours == "add-remove" else np.full_like(places, PLACES)
        allowed = rng.integers(0, 40 << bits, shape[1 - axis])
        u = np.linspace(0, 1, shape[axis])
        near = table.copy()
        k = int(rng.integers(0, shape[1 - axis]))
        first, last = ((0, k), (-1, k)) if axis == 0 else ((k, 0), (k, -1))
        near[last] += 1 << bits
        if neighbours == "replace":
            near[first] -= 1 << bits
        found = [largest_of_means(each, axis, places, farthest, allowed) for each in (table, near)]
        for each, largest in zip((table, near), found, strict=True):
            lines = np.moveaxis(each, axis, -1)
            sums = [abs(float((u - c / PLACES) @ line)) for c, line in zip(places, lines, strict=True)]
            by_hand = max(s / f * PLACES - a for s, f, a in zip(sums, farthest, allowed, strict=True))
            assert by_hand - 1 - 1e-6 <= largest <= by_hand + 1e-6
        moves.append(abs(found[0] - found[1]))
    assert (1 << bits) - 1 <= max(moves) <= 1 << bits
    huge, alike = np.array([[2**60, -(2**60)], [-(2**60), 2**60]]), np.full(2, PLACES)
    assert largest_of_means(huge, 0, np.array([0, PLACES]), alike, np.array([5, 7])) == 2**60 - 5


def test_expected_errors_grow_with_the_cells_that_matter_and_a_question_has_the_least_of_its_lines() -> None:
    few, many = (error_allowances(np.full(m, 1 / m), 10.0, 8) for m in (4, 64))
    assert [each.offset for each in few] < [each.offset for each in many]
    assert [each.table is None for each in few] == [slope == 0 for _, slope in PIECES]
    table = few[-1].table
    assert int(table.sum()) == pytest.approx(PIECES[-1][1] / PIECES[-1][0] * few[-1].offset, abs=120)
    empty = np.array([0.5, 0.5, 0.0, 0.0])
    assert error_allowances(empty, 10.0, 8)[0].offset == error_allowances(empty[:2], 10.0, 8)[0].offset
    assert error_allowances(empty, 10.0, 8)[-1].table[2] == 0
    assert [each.offset for each in error_allowances(empty, 0.0, 8)] == [0] * len(PIECES)
    assert all(each.offset <= 2**55 for each in error_allowances(empty, 1e300, 20))


def boxes(size: int, ordered: bool) -> list[np.ndarray]:
    if not ordered or size == 1:
        return list(np.eye(size, dtype=bool))
    return [mask for mask in masks(size, True) if not mask.all()]


def test_the_sum_of_errors_is_over_all_boxes() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        shape = tuple(int(m) for m in rng.integers(1, 5, 3))
        ordered = [bool(o) for o in rng.integers(0, 2, 3)]
        difference = rng.integers(-(2**40), 2**40, shape)
        every = list(itertools.product(*(boxes(m, o) for m, o in zip(shape, ordered, strict=True))))
        assert sum_of_errors(difference, ordered) == sum(abs(int(difference[np.ix_(*c)].sum())) for c in every)
        assert len(every) == math.prod(boxes_with(m, o)[0] for m, o in zip(shape, ordered, strict=True))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_row_moves_the_mean_by_its_sensitivity_and_no_more(neighbours) -> None:
    """It is attained where rows in the middle of every order differ in what has none."""
    budget, names = (
        hr.Budget(1.0, 1e-6, neighbours),
        [("age", "region"), ("region", "visits"), ("age", "region", "visits")],
    )
    weights = mean_weights(UNIVERSE, names)
    stated = Fraction(mean_sensitivity(UNIVERSE, weights, budget))
    far = {}  # too many rows in one region, too few in the others
    for n in names:
        sign = np.where(np.arange(4) == 1, 1, -1).reshape([-1 if a == "region" else 1 for a in n])
        far[n] = 10**6 * np.broadcast_to(sign, UNIVERSE.sizes(n))
    moves = []
    cells = [dict(zip(UNIVERSE.names, cell, strict=True)) for cell in np.ndindex(UNIVERSE.shape)]
    middle = [{"age": 2, "region": region, "sex": 0, "visits": 1} for region in (0, 1)]
    for row, other in itertools.permutations([*cells[::7], *middle], 2):
        means = []
        for present in (row, other if neighbours == "replace" else None):
            total = 0
            for n in names:
                difference = far[n].copy()
                if present is not None:
                    difference[tuple(present[a] for a in n)] += 1
                total += weights[n] * sum_of_errors(difference, [UNIVERSE[a].ordered for a in n])
            means.append(Fraction(total, 2**WEIGHT_BITS))
        moves.append(abs(means[0] - means[1]))
    assert max(moves) <= stated * (1 + Fraction(1, 2**30))
    assert max(moves) >= stated * (1 - Fraction(1, 2**30))


def test_a_mean_is_rounded_to_the_nearest_step_in_whole_numbers() -> None:
    grid, bits = 2.0**-6, 10
    for total in (0, 1, 3 << (bits + WEIGHT_BITS - 7), (5 << (bits + WEIGHT_BITS - 7)) - 1, 10**40):
        exact = Fraction(total, 2 ** (bits + WEIGHT_BITS)) / Fraction(grid)
        found = Fraction(rounded_mean(total, bits, grid)) / Fraction(grid)
        assert found == min((2 * exact + 1) // 2, 2**53)


# The noise


@pytest.mark.parametrize("event", [Gaussian(1.0, 30.0, 2.0**-10), Laplace(1.0, 30.0, 2.0**-10)])
def test_noise_is_below_its_quantile_as_often_as_stated_and_a_shorter_one_would_fail(event) -> None:
    beta, draws = 0.05, 4000
    noise = Seeded(3).add(np.zeros(draws), paid(event))
    reach = quantile(event, beta)
    slack = 4 * math.sqrt(beta * (1 - beta) / draws)
    assert np.mean(noise < -reach) <= beta + slack
    assert np.mean(noise < -0.8 * reach) > beta + slack


def test_a_coarse_grid_has_a_wider_quantile() -> None:
    assert quantile(Gaussian(1.0, 2.0, 1.0), 0.01) == pytest.approx(2 * math.sqrt(2 * math.log(100)))


@pytest.mark.parametrize(
    "rows", [RowCountInterval(10, 10, 10), RowCountInterval(2**50, 2**50, 2**50), RowCountInterval(100, 50, 200)]
)
def test_steps_are_as_fine_as_whole_numbers_allow(rows) -> None:
    bits = step_bits(rows, 100.0)
    assert 0 <= bits <= 20
    assert rows.high * 2.0**bits <= 2.0**52
    if rows.low != rows.high:
        assert 2.0**50 * 2.0**bits <= 2.0**60


# What a session says


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_every_product_of_up_to_three_attributes_is_within_its_bar(budget) -> None:
    data = table()
    session = opened(data, budget)
    assert session.certificate is not None
    for size in (1, 2, 3):
        for names in itertools.combinations(UNIVERSE.names, size):
            ordered = [UNIVERSE[n].ordered for n in names]
            queries = [Linear.from_table(UNIVERSE, names, q) for q in products(UNIVERSE.sizes(names), ordered)[:200]]
            truth = [q.dot(data.marginal(q.attributes)) / 40_000 for q in queries]
            found = session._engine.free(queries)
            assert all(abs(e.value - t) <= (e.error or 0) + 1e-12 for e, t in zip(found, truth, strict=True))
    made = session._engine.knowledge.certified
    assert {(limit.kind, limit.size) for limit in made.certificate.limits} == {
        ("means", 2),
        *((k, s) for k in ("products", "any") for s in (1, 2, 3)),
    }


def test_tables_that_are_counted_again_and_a_few_at_a_time_are_certified_alike(monkeypatch) -> None:
    usual = opened(table())._engine.knowledge.certified.certificate
    monkeypatch.setattr(
        "hedgerow.engine.practical.certificate.certificate_purchase.AT_ONCE", 15
    )  # cells: less than one table of three attributes
    assert opened(table())._engine.knowledge.certified.certificate == usual


def test_small_counts_have_narrower_bars_than_large_ones_of_the_same_attributes() -> None:
    made = opened(table())._engine.knowledge.certified
    names = ("age", "region", "visits")
    small, large = (
        Linear.product(UNIVERSE, {"age": np.arange(5) < a, "region": np.arange(4) < r, "visits": np.arange(3) < 1})
        for a, r in ((1, 1), (4, 3))
    )
    narrow, wide = made.reach(names, [small, large])
    assert narrow < wide <= made.flat(names)
    for query, reach in ((small, narrow), (large, wide)):
        lines = []
        for each in made.allowances(names):
            on_cells = 0.0 if each.table is None else query.dot(each.table.astype(float)) / 2**made.bits
            lines.append(max(0.0, each.offset / 2**made.bits + made.margin) + on_cells)
        assert reach == pytest.approx(min(*lines, made.anything[3]) + made.rounding[names])


def test_a_question_that_is_no_sum_of_products_has_a_bar_however_exact_the_products_are() -> None:
    """Attributes without an order, weights that are no product, and a number of 0 rows beyond what was expected."""
    data = HistogramSource(hr.Universe(city=hr.Categories(list("xyzw")), flag=hr.Flag()), np.full((4, 2), 25))
    session = hr.open(data, universe=data.universe, budget=hr.Budget(2000.0, 0.0), seed=0)
    made = session._engine.knowledge.certified
    assert made is not None
    made.margin = -math.inf
    asked = (hr.count(city={"x", "y"}) | hr.count(flag=True)).on(data.universe)
    assert np.isfinite(made.reach(("city", "flag"), [asked])).all()
    answer = session.ask(hr.count(city={"x", "y"}) | hr.count(flag=True))
    assert abs(answer.value - 0.75) <= answer.error


def test_any_weights_are_within_what_is_certified() -> None:
    """Rising and falling numbers, ones that do neither, and tables that are no product."""
    data = table()
    session = opened(data)
    made, rng = session._engine.knowledge.certified, np.random.default_rng(5)
    names = ("age", "region", "visits")
    rising = np.sort(rng.random(5))[:, None, None] * (rng.random(4) < 0.5)[None, :, None] * np.array([0, 1, 1.0])
    zigzag = np.array([1, 0, 1, 0, 1.0])[:, None, None] * np.ones(4)[None, :, None] * np.array([0, 1, 0.0])
    for weights in (rising, zigzag, rng.random((5, 4, 3)), rng.choice([0.2, 0.3], (5, 4, 3))):
        query = Linear.from_table(UNIVERSE, names, weights)
        exact = query.dot(data.marginal(query.attributes))
        believed = query.dot(made.certified_table(query.attributes)) * made.rows.estimate
        reach = made.reach(query.attributes, [query])[0]
        assert abs(exact - believed) <= reach <= made.anything[len(query.attributes)] + 1
    one = Linear.from_table(UNIVERSE, names, rising)
    flat = made.flat(one.attributes) - made.rounding[one.attributes]
    assert made.reach(one.attributes, [one])[0] <= flat * rising.max() + made.rounding[one.attributes] + 1e-9


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_means_within_one_value_have_the_bar_of_what_they_are_made_of(budget) -> None:
    """At the place that was certified by its allowance and L, elsewhere by what the value's own count may be off besides; what is no such line
    has no bar of this kind."""
    data = table()
    known = opened(data, budget)._engine.knowledge
    made = known.certified
    high, low, narrower = made.rows.high, made.rows.estimate, 0
    low_is_high = made.rows.low == made.rows.high
    for number, other in itertools.permutations(UNIVERSE.names, 2):
        if not UNIVERSE[number].ordered:
            continue
        names = UNIVERSE.order({number, other})
        axis = names.index(number)
        u = np.linspace(0, 1, UNIVERSE[number].size)
        places, farthest, allowed = made.sums_of_means(names, axis)
        rows = 1.0 if low_is_high else np.maximum(places, 64 - places) / 64
        np.testing.assert_array_equal(farthest / 64, np.broadcast_to(rows, places.shape))
        of_sums = farthest / 64 * np.maximum(0.0, allowed / 2**made.bits + made.means)
        assert made.farthest_of_means(names) >= of_sums.max() + made.rounding[names] - 1e-9
        for k in range(UNIVERSE[other].size):
            place = places[k] / 64
            for c, gamma, slope in ((place, 0.5, 0.5), (place, 0.3, -0.3), (0.9 * place + 0.05, 0.5, 0.4)):
                lines = np.full((UNIVERSE[other].size, u.size), gamma)
                lines[k] += slope * (u - c)
                query = Linear.from_table(UNIVERSE, names, np.moveaxis(lines, -1, axis))
                one = Linear.product(UNIVERSE, {other: np.arange(UNIVERSE[other].size) == k})
                away = abs(c - place) * made.reach((other,), [one])[0]
                stated = abs(slope) * (of_sums[k] + away) + made.rounding[names]
                assert made.of_mean(names, query) == pytest.approx((gamma, stated), abs=1e-9 * (high + low))
                exact, believed = query.dot(data.marginal(names)), query.dot(made.certified_table(names))
                missed = (exact - gamma * 40_000) - made.rows.estimate * (believed - gamma)
                assert abs(missed) <= made.of_mean(names, query)[1]
                value, error = known.free(query, None)
                narrower += error < 0.99 * (known.rows.off + stated) / known.rows.estimate
                assert abs(value - exact / 40_000) <= error
                batch = known.free_all([query])
                assert (value, error) == pytest.approx((batch[0][0], batch[1][0]), rel=1e-12)
                lines[k, 0] += 1e-3
                bent = Linear.from_table(UNIVERSE, names, np.moveaxis(lines, -1, axis))
                assert made.of_mean(names, bent)[1] == math.inf or u.size == 2
    assert narrower or low_is_high
    two = np.full((5, 3), 0.5)
    two[:, :2] += 0.1 * np.arange(5)[:, None] / 4  # within two values
    assert made.of_mean(("age", "visits"), Linear.from_table(UNIVERSE, ("age", "visits"), two))[1] == math.inf
    assert made.of_mean(("age", "visits"), hr.count(age=1, visits=1).on(UNIVERSE))[1] == math.inf


def test_a_mean_holds_whatever_the_number_of_rows_is(monkeypatch) -> None:
    """γ + S/n for the least and the most that S and n may be, of a sum on either side of 0, and not a row's worth wider."""
    known = opened(table(), BUDGETS[3])._engine.knowledge
    known.rows, query = RowCountInterval(100, 50, 200), hr.count(age=1).on(UNIVERSE)
    ñ, gamma, reach = known.certified.rows.estimate, 0.5, 3.0
    monkeypatch.setattr(CertifiedCounts, "of_mean", lambda self, names, query: (gamma, reach))
    for count in (-10.0, -1.0, 0.0, 2.0, 20.0):
        low, high = known._cut_to_mean(0.0, 1.0, query, gamma + count / ñ)
        every = [gamma + (count + side) / n for side in (-reach, reach) for n in (50, 200)]
        assert (low, high) == pytest.approx((min(every), max(every)))
    assert known._cut_to_mean(0.49, 0.51, query, gamma) == (0.49, 0.51)


def test_a_mean_has_room_for_tables_that_do_not_agree() -> None:
    """A pair that the model does not hold is raked to its tables, and raking ends before it is there: of two numbers that go together
    the count of a value is one by their table and another by its own. The numbers of the certificate are the exact ones here."""
    universe = hr.Universe(a=hr.Integers(0, 4), b=hr.Integers(0, 2))
    counts = np.zeros((5, 3), np.int64)
    counts[[0, 1, 2, 3, 4], [0, 0, 1, 1, 2]] = 500_000, 3, 250_000, 4, 249_993
    data, pair = HistogramSource(universe, counts), ("a", "b")
    learned = FittedModel.nothing(universe, float(data.rows))
    for name in pair:
        learned.add(Measurement((name,), data.marginal((name,)).astype(float), Gaussian(1.0, 3.0)))
    learned.grow(("a",), ("b",))
    learned.refit(50)
    noise = 300 * np.random.default_rng(0).normal(size=counts.shape)
    learned.add(Measurement(pair, counts + np.rint(noise), Gaussian(1.0, 300.0)))
    known = FreeAnswers(learned, 0.05, data.rows)
    assert learned.outside == [pair]
    apart = [
        np.abs(known.hypothesis_table(pair).sum(axis=1 - i) - known.hypothesis_table((name,))).max()
        for i, name in enumerate(pair)
    ]
    assert data.rows * max(apart) > 10
    made = CertifiedCounts(known, small_sets(known))
    made.bits = 10
    off = {names: (data.marginal(names) << made.bits) - made.in_steps(names) for names in made.family}
    made.anything = {1: max(half_distance(off[name,]) for name in pair) / 1024, 2: math.inf}
    made.means = (max(largest_of_means(off[pair], axis, *made.sums_of_means(pair, axis)) for axis in (0, 1)) + 1) / 1024
    for axis, c, sign in itertools.product((0, 1), (-30.0, 0.0, 0.4, 1.0, 30.0), (-1, 1)):
        u = np.linspace(0, 1, counts.shape[axis])
        for k in range(counts.shape[1 - axis]):
            lines = np.full((counts.shape[1 - axis], u.size), 0.5)
            lines[k] += sign * 0.5 / (1 + abs(c)) * (u - c)
            query = Linear.from_table(universe, pair, np.moveaxis(lines, -1, axis))
            if query.attributes == pair:
                missed = query.dot(counts) - data.rows * query.dot(made.certified_table(pair))
                assert abs(missed) <= made.of_mean(pair, query)[1] < math.inf
    made.rounding[pair] = 0.0
    for k in range(3):  # as near to a line as is taken for one, and far from it for how little it rises
        weights = np.full((5, 3), 0.5)
        weights[:, k] += 1e-12 * np.linspace(0, 1, 5)
        weights[2, k] += 9e-10
        missed = float(((weights - 0.5) * off[pair]).sum()) / 1024
        assert abs(missed) <= made.of_mean(pair, Linear.from_table(universe, pair, weights))[1] < math.inf


def test_a_certificate_from_before_there_was_a_number_of_means_is_restored_without_it() -> None:
    known = opened(table())._engine.knowledge
    record = json.loads(json.dumps(known.certified.state(), allow_nan=False))
    assert CertifiedCounts.restore(known, record).means == known.certified.means < math.inf
    record["means"] = record.pop("sums") + 1e6
    older = CertifiedCounts.restore(known, record)
    assert older._of_sums(("age", "visits"), 0).tolist() == [record["means"]] * 3  # of the sums as they are
    assert older.state() == record
    del record["means"]
    older = CertifiedCounts.restore(known, record)
    assert older.means == math.inf and older.margin == known.certified.margin
    none = opened(table(universe=hr.Universe(sex=hr.Flag(), region=hr.Categories(["n", "e", "s"]))))._engine.knowledge
    record = json.loads(json.dumps(none.certified.state(), allow_nan=False))
    assert none.certified.means == CertifiedCounts.restore(none, record).means == math.inf


def test_an_alternating_count_is_as_many_intervals_as_it_has() -> None:
    made = opened(table())._engine.knowledge.certified
    query = hr.count(age={0, 2, 4}, visits=1).on(UNIVERSE)
    assert made._products(query.attributes, [query]).tolist() == [3.0]


def test_the_certificate_has_its_own_part_of_beta() -> None:
    session = opened(table())
    made = session.certificate
    assert made.beta == pytest.approx(0.0325)
    assert session._engine.knowledge.bars._beta == pytest.approx(0.0175)
    assert "With probability 0.9675" in str(made)
    assert ("not a bound" in str(made)) == (made.typical is not None)
    assert session.synthetic(10).attrs["certificate"] == str(made)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_bars_of_fractions_allow_for_every_possible_number_of_rows(neighbours) -> None:
    """|N/n − v| where N is within B rows of ñv, and n in its interval: B for rounding too, β for n too."""
    session = opened(table(), hr.Budget(1.0, 1e-6, neighbours))
    made = session._engine.knowledge.certified
    low, high, ñ = made.rows.low, made.rows.high, made.rows.estimate
    assert (low < high) == (neighbours == "add-remove")
    for limit in made.certificate.limits:
        rounded = max(off for names, off in made.rounding.items() if len(names) == limit.size)
        flat = max(made.flat(names) for names in made.family if len(names) == limit.size)
        B = made.anything[limit.size] + rounded
        of_means = [made.farthest_of_means(n) for n in made.family if len(n) == 2 and n != ("region", "sex")]
        B = {"any": B, "products": min(B, flat), "means": max(of_means)}[limit.kind]
        for v in (0.0, 0.3, 1.0):
            assert (ñ * v + B) / low - v <= limit.bar + 1e-12
            assert v - (ñ * v - B) / high <= limit.bar + 1e-12
    assert made.certificate.beta == pytest.approx(0.0325 if neighbours == "replace" else 0.05)


def test_no_certificate_is_bought_where_its_noise_would_drown_it_and_bars_have_all_of_beta() -> None:
    session = opened(table(rows=300))
    assert session.certificate is None
    assert session._engine.knowledge.bars._beta == pytest.approx(0.05)
    assert "certificate" not in {entry.why for entry in session.log}


def test_a_certificate_costs_its_share_and_no_more() -> None:
    session = opened(table(), reserve=0.2)
    paid_for = sum(entry.cost for entry in session.log if entry.why == "certificate")
    assert paid_for == pytest.approx(CERTIFICATE["rho"] * 0.8 * session.budget.total, rel=1e-6)


@pytest.mark.parametrize("apart", [0.01, 3.0])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_numbers_are_those_of_the_data_when_there_is_no_noise(neighbours, apart, monkeypatch) -> None:
    """All that is added to the largest errors, less what is allowed, are the quantiles."""
    monkeypatch.setattr(largest_errors, "APART", apart)
    monkeypatch.setattr(FreeAnswers, "measures", lambda self, names: "region" not in names)
    monkeypatch.setattr(Seeded, "add", lambda self, value, receipt: (receipt.redeem(Gaussian, Laplace), value)[1])
    data = table()
    session = opened(data, hr.Budget(1.0, 1e-6, neighbours))
    made = session._engine.knowledge.certified
    rows = made.rows.estimate
    charged = next(entry.events for entry in session.ledger.entries() if entry.why == "certificate")
    events = [planned.event for planned in charged]
    worst, steps = -math.inf, 2.0**made.bits
    for size in (1, 2, 3):
        farthest = 0.0
        for names in itertools.combinations(UNIVERSE.names, size):
            off = data.marginal(names) - rows * made.certified_table(names)
            farthest = max(farthest, np.abs(off).sum() / 2)
            for q in products(UNIVERSE.sizes(names), [UNIVERSE[n].ordered for n in names]):
                given = min(
                    each.offset / steps + (0.0 if each.table is None else float((q * each.table).sum()) / steps)
                    for each in made.allowances(names)
                )
                worst = max(worst, abs(float((q * off).sum())) - given)
        share = next(limit.beta for limit in made.certificate.limits if (limit.kind, limit.size) == ("any", size))
        assert made.anything[size] == pytest.approx(farthest + quantile(events[2 + size], share), abs=0.01)
    of_means = -math.inf
    for number, other in itertools.permutations(UNIVERSE.names, 2):
        if UNIVERSE[number].ordered:
            names = UNIVERSE.order({number, other})
            axis = names.index(number)
            believed = np.moveaxis(rows * made.certified_table(names), axis, -1)
            off = np.moveaxis(data.marginal(names), axis, -1) - believed
            u = np.linspace(0, 1, UNIVERSE[number].size)
            known = session._engine.knowledge
            for c, line, q in zip(made.places(names, axis) / 64, off, believed, strict=True):
                f = 1.0 if neighbours == "replace" else max(c, 1 - c)
                usual = (0 if known.measures(names) else apart) * math.sqrt(((u - c) ** 2 @ q) * q.sum())
                of_means = max(of_means, abs((u - c) @ line) / f - usual)
    share, of_sums = (next(x.beta for x in made.certificate.limits if x.kind == kind) for kind in ("products", "means"))
    assert made.margin == pytest.approx(worst + quantile(events[1], share), abs=0.01)
    assert made.means == pytest.approx(of_means + quantile(events[2], of_sums), abs=0.01)
    of_any = sum(limit.beta for limit in made.certificate.limits if limit.kind == "any")
    assert made.certificate.beta - made.certificate.beta_of_rows == pytest.approx(share + of_sums + of_any)


def test_after_a_refit_answers_stay_within_what_was_certified() -> None:
    data = table()
    session = opened(data, reserve=0.6)
    asked = hr.count(age=(1, 3), region={"n", "s"}, visits=1)
    before = session.ask(asked)
    made = session._engine.knowledge.certified
    session.ask(hr.count(age=(1, 3), region={"n", "s"}, sex=True), within=before.error / 4)
    assert session._engine.hypothesis is not made.hypothesis
    query = asked.on(UNIVERSE)
    known = session._engine.knowledge
    low, high = known.intervals([query], np.array([0.9]))  # whatever the hypothesis has come to believe
    certified = query.dot(made.certified_table(query.attributes))
    reach = made.reach(query.attributes, [query])[0] / 40_000
    assert certified - reach <= low[0] + 1e-9 and high[0] <= certified + reach + 1e-9
    value, error = known.free(query, None)
    assert value - error >= before.value - 2 * before.error - 1e-12
    assert abs(value - query.dot(data.marginal(query.attributes)) / 40_000) <= error
    assert error <= 2 * before.error + 1e-12


def test_a_resumed_session_has_its_certificate() -> None:
    data = table()
    first = opened(data)
    ledger = Accountant(first.budget, earlier=first.ledger.entries())
    again = opened(data, ledger=ledger, seed=99)
    assert again.certificate == first.certificate and again.spent == first.spent


def test_a_cell_has_the_bar_and_the_value_of_its_count() -> None:
    session = opened(table())
    whole = session.ask(hr.marginal("age", "region", "visits"))
    assert whole.error.shape == whole.typical.shape == whole.value.shape == (5, 4, 3)
    for cell in [(0, 0, 0), (2, 1, 1), (4, 3, 2)]:
        one = session.ask(hr.count(age=cell[0], region="nesw"[cell[1]], visits=cell[2]))
        assert whole.value[cell] == pytest.approx(one.value, abs=1e-12)
        assert whole.error[cell] == pytest.approx(one.error, abs=1e-12)
        assert whole.typical[cell] == pytest.approx(one.typical)


def test_a_family_too_large_is_cut_to_what_can_be_gone_through(monkeypatch) -> None:
    known = opened(table())._engine.knowledge
    assert [len(sets) for sets in small_sets(known).values()] == [4, 6, 4]
    monkeypatch.setattr(certified_bounds, "MOST_SETS", {1: 3, 2: 3, 3: 3})
    assert [len(sets) for sets in small_sets(known).values()] == [3, 3, 3]
    session = opened(table())
    assert "(3 of 6 sets)" in str(session.certificate)
    outside = next(t for t in itertools.combinations(UNIVERSE.names, 2) if t not in small_sets(known)[2])
    made = session._engine.knowledge.certified
    assert (made.cells(outside) == math.inf).all() and made.distance(outside) == math.inf
    assert (
        made.reach(outside, [Linear.product(UNIVERSE, {n: np.arange(UNIVERSE[n].size) == 0 for n in outside})])[0]
        == math.inf
    )
    monkeypatch.setattr(certified_bounds, "MOST_LISTED", 0)
    assert all(any(set(t) <= set(c) for c in known.hypothesis.cliques) for s in small_sets(known).values() for t in s)


def test_a_set_that_the_model_cannot_tabulate_is_left_out_and_stays_out_after_a_restart(monkeypatch) -> None:
    beyond = UNIVERSE.names[:3]
    monkeypatch.setattr(Hypothesis, "can_tabulate", lambda _, names, cells: names != beyond)
    known = opened(table())._engine.knowledge
    monkeypatch.undo()
    assert beyond not in known.certified.family and len(known.certified.family) == 13
    again = CertifiedCounts.restore(known, known.certified.state())
    assert again.family == known.certified.family and again.state() == known.certified.state()


def test_typical_errors_are_about_what_errors_are_and_unknown_where_nothing_was_measured_together() -> None:
    data, rng = table(rows=200_000), np.random.default_rng(0)
    sets = [hr.marginal(*names) for names in itertools.combinations(UNIVERSE.names, 2)]
    for workload, size, kind in ((sets, 3, "inferred"), ([hr.count(age=1)], 2, "assumed")):
        session = opened(data, workload=workload)
        every = [
            dict(zip(names, chosen, strict=True))
            for names in itertools.combinations(UNIVERSE.names, size)
            for chosen in itertools.product(*(boxes(UNIVERSE[n].size, UNIVERSE[n].ordered) for n in names))
        ]
        queries = [Linear.product(UNIVERSE, every[i]) for i in rng.permutation(len(every))[:1000]]
        queries = [query for query in queries if len(query.attributes) == size]
        found = session._engine.free(queries)
        answers = session.ask_all([hr.marginal(*query.attributes) for query in queries[:5]])
        assert {answer.support.kind for answer in answers} == {kind}
        if kind == "assumed":
            assert {each.typical for each in found} == {None}
            continue
        off = [abs(e.value - q.dot(data.marginal(q.attributes)) / 200_000) for e, q in zip(found, queries, strict=True)]
        assert 0.5 < np.mean([each.typical for each in found]) / np.mean(off) < 2


# What is bought


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_a_price_is_what_is_then_paid_and_quoting_it_costs_nothing(budget) -> None:
    session = opened(table(), budget, reserve=0.7)
    for query, within in [
        (hr.count(age=(1, 3), region="n", sex=True, visits=1), 0.004),
        (hr.marginal("age", "region"), 0.008),
        (hr.linear(["age", "visits"], np.random.default_rng(0).random((5, 3))), 0.01),
        (hr.count(age=1), 0.9),
    ]:
        spent = session.spent
        price = session.price(query, within=within)
        assert session.spent == spent
        answer = session.ask(query, within=within)
        assert answer.cost == pytest.approx(price) and np.max(answer.error) <= within * (1 + 1e-9)
        assert session.price(query, within=within) == 0.0


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_unreachable_errors_are_refused_without_a_charge_and_reachable_ones_are_stated(budget) -> None:
    session = opened(table(), budget)
    for query in (hr.count(age=(1, 3), region="n", sex=True, visits=1), hr.marginal("age", "region")):
        spent = session.spent
        with pytest.raises(hr.BudgetExceeded, match="times as wide") as refusal:
            session.ask(query, within=1e-4)
        assert session.spent == spent
        factor = float(str(refusal.value).split("a bar ")[1].split(" ")[0])
        assert np.max(session.ask(query, within=1e-4 * factor * 1.001).error) <= 1e-4 * factor * 1.0011
        session = opened(table(), budget)


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_a_ratio_is_bought_as_one_or_refused_unpaid(budget) -> None:
    data = table(rows=100_000)
    session = opened(data, budget, reserve=0.7)
    engine, bought = session._engine, 0
    for within in (0.9, 0.1, 0.03, 0.01, 0.007, 0.005, 0.003, 0.001):
        part, whole = (
            hr.count(age=(1, 3), region={"n", "e", "s"}).on(UNIVERSE),
            hr.count(region={"n", "e", "s"}).on(UNIVERSE),
        )
        spent = session.spent
        try:
            top, bottom = engine.ratio(part, whole, within)
        except hr.BudgetExceeded:
            assert session.spent == spent
            continue
        bought += session.spent > spent
        t, b = top.value, bottom.value
        error = max((t + top.error) / (b - bottom.error) - t / b, t / b - (t - top.error) / (b + bottom.error))
        assert error <= within * (1 + 1e-6)
    assert bought and within == 0.001


def test_bars_that_are_bought_together_are_paid_together_or_not_at_all() -> None:
    """Two that are a little too dear together, though each could be paid alone."""
    session = opened(table(), reserve=0.3)
    purchases, spent = session._engine._purchases, session.spent
    queries = [hr.count(age=(1, 3), region={"n"}).on(UNIVERSE), hr.count(sex=True, visits={0, 2}).on(UNIVERSE)]

    def wanted(within: float) -> list[WantedBar]:
        return [WantedBar(query, within) for query in queries]

    def pays(bars: list[WantedBar]) -> bool:
        return session.ledger.affords(*(purchase.event for purchase in purchases.plan(bars)))

    refused, paid = 1e-6, 0.5
    for _ in range(60):
        middle = math.sqrt(refused * paid)
        refused, paid = (refused, middle) if pays(wanted(middle)) else (middle, paid)
    assert all(pays([one]) for one in wanted(refused))
    with pytest.raises(hr.BudgetExceeded, match="nothing was charged"):
        purchases.buy(*wanted(refused))
    assert session.spent == spent
    purchases.buy(*wanted(paid))
    assert session.spent > spent


def test_a_purchase_is_more_accurate_than_the_free_answer() -> None:
    """Median errors of the same questions before and after paying, where the bar is a third of the free one."""
    before, after = [], []
    for seed in range(12):
        data = table(seed=seed)
        session = opened(data, reserve=0.5, seed=seed)
        query = hr.count(age=(1, 3), region={"n", "w"}, visits={0, 2}, sex=True)
        truth = query.on(UNIVERSE).dot(data.marginal(UNIVERSE.names)) / 40_000
        free = session.ask(query)
        paid_answer = session.ask(query, within=min(0.01, (free.error or 1.0) / 3))
        before.append(abs(free.value - truth))
        after.append(abs(paid_answer.value - truth))
    assert np.median(after) < np.median(before)


def test_two_estimates_are_weighed_by_their_precision() -> None:
    assert free_answers._combine(0.1, 0.01, 0.3, 0.03) == pytest.approx(0.1 + 0.2 / 10)
    assert free_answers._combine(0.1, math.inf, 0.3, 0.03) == 0.3
