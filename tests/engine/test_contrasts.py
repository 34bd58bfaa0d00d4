"""The coordinates in which residuals are measured: the sensitivity to one row, and the noise left in questions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical import measurement as measurement_module
from hedgerow.engine.practical.bars.error_bars import nats_of_kinds
from hedgerow.engine.practical.fit import value_groups
from hedgerow.engine.practical.fit.residuals import Overview, center, coordinates, from_coordinates
from hedgerow.engine.practical.measurement import SINGLE, Contrasts, Measurement, helmert, of_ranges
from hedgerow.errors import InvalidInput
from hedgerow.privacy.events import Gaussian
from hedgerow.query.linear import Linear

SIZES = (4, 5, 8, 16, 37)


def ranges(m: int) -> np.ndarray:
    """But for the whole, as two ends drawn at random make them."""
    ends = [sorted(pair) for pair in itertools.product(range(m), repeat=2)]
    values = np.arange(m)
    return np.array([(values >= low) & (values <= high) for low, high in ends if high - low + 1 < m], dtype=float)


def variances(contrasts: Contrasts, questions: np.ndarray) -> np.ndarray:
    return np.square(questions @ contrasts.inverse).sum(axis=1)


@pytest.mark.parametrize("made", [helmert, of_ranges])
@pytest.mark.parametrize("m", SIZES)
def test_contrasts_say_all_of_the_residual_and_nothing_else(made, m) -> None:
    each = made(m)
    assert each.rows.dtype == each.squares.dtype == np.int64
    assert not each.rows.sum(axis=1).any()
    whole = each.inverse @ (each.rows / np.sqrt(each.squares)[:, None])
    assert whole == pytest.approx(np.eye(m) - 1 / m, abs=1e-9)


@pytest.mark.parametrize("m", SIZES)
def test_every_value_adds_as_much_to_contrasts_of_ranges_and_the_ends_are_the_ends(m) -> None:
    each = of_ranges(m)
    gram = (each.rows.T.astype(object) @ each.rows.astype(object)) / each.squares[0]
    others = gram[~np.eye(m, dtype=bool)]
    assert {*gram.diagonal()} == {each.contribution.square}
    assert (others.min(), others.max()) == (each.contribution.least, each.contribution.most)
    assert each.contribution.square == pytest.approx(1 - 1 / m, rel=0.02)


@pytest.mark.parametrize("m", SIZES)
def test_the_assumed_questions_are_the_mean_over_single_values_and_ranges(m) -> None:
    for each, single in ((helmert(m), 1.0), (of_ranges(m), SINGLE)):
        kinds = (single, np.eye(m)), (1 - single, ranges(m))
        assert each.asked[0] == pytest.approx(sum(w * variances(each, asked).mean() for w, asked in kinds))
        assert each.asked[1] == pytest.approx(sum(w * np.square(asked.mean(axis=1)).mean() for w, asked in kinds))
    assert each.loss == pytest.approx(variances(each, np.eye(m)).mean() / (1 - 1 / m))
    assert each.widest == pytest.approx(np.linalg.eigvalsh(each.inverse @ each.inverse.T)[-1])
    assert helmert(m).loss == helmert(m).widest == 1


@pytest.mark.parametrize("m", SIZES)
def test_no_other_noise_of_a_circle_is_better_for_what_is_asked(m) -> None:
    """The mean variance times the squared norm of what a row adds, against spectra 20 % higher at one frequency."""
    each = of_ranges(m)
    w = SINGLE / m + (1 - SINGLE) * np.square(np.abs(np.fft.fft(ranges(m), axis=1))).mean(axis=0)[1:] / m
    spectrum = np.square(np.fft.fft(each.rows[0]).real[1:]) / each.squares[0]
    price = (w / spectrum).sum() * spectrum.sum()
    for k in range((m - 1) // 2 + 1):
        other = spectrum.copy()
        other[[k, m - 2 - k]] *= 1.2
        assert (w / other).sum() * other.sum() > price
    assert price < w.sum() * (m - 1)  # of noise alike everywhere


@pytest.mark.parametrize(("m", "of_a_range", "of_a_value"), [(16, 0.82, 1.13), (100, 0.50, 1.21)])
def test_ranges_have_as_much_less_noise_and_single_values_as_much_more_as_is_said(m, of_a_range, of_a_value) -> None:
    """In the changelog."""
    shaped, alike = (float(np.sqrt(variances(each, ranges(m)).mean())) for each in (of_ranges(m), helmert(m)))
    assert shaped / alike == pytest.approx(of_a_range, abs=0.01)
    assert math.sqrt(of_ranges(m).loss) == pytest.approx(of_a_value, abs=0.01)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("kinds", [("r5",), ("r4", "h3"), ("r5", "r6"), ("h2", "r7")])
def test_no_rows_are_further_apart_than_the_sensitivity_of_a_ranged_residual(kinds, neighbours) -> None:
    by = [(of_ranges if kind[0] == "r" else helmert)(int(kind[1:])) for kind in kinds]
    sizes = [each.size for each in by]
    rows = []
    for cell in np.ndindex(*sizes):
        one = np.zeros(sizes, np.int64)
        one[cell] = 1
        rows.append(coordinates(one, 2.0**-40, by).ravel())
    pairs = ((r, 0 * r) for r in rows) if neighbours == "add-remove" else itertools.combinations(rows, 2)
    largest = max(float(np.linalg.norm(a - b)) for a, b in pairs)
    stated = hr.Budget(1, 1e-6, neighbours).tensor_l2([each.contribution for each in by])
    assert largest <= stated * (1 + 1e-9)
    assert stated <= 1.02 * largest


@pytest.mark.parametrize(
    "by", [(of_ranges(8), helmert(3), of_ranges(5)), (helmert(90), of_ranges(70)), (of_ranges(9),)]
)
@pytest.mark.parametrize("magnitude", [0, 10, 50])
def test_ranged_coordinates_are_exact_and_make_the_residual_again(by, magnitude) -> None:
    rng = np.random.default_rng(magnitude)
    shape = tuple(each.size for each in by)
    counts = rng.multinomial(2**magnitude // 16, rng.dirichlet(np.full(math.prod(shape), 0.3))).reshape(shape)
    counts.flat[0] += 2**magnitude - counts.sum()  # most in one cell, whose contrasts are the largest
    grid = max(2.0**-14, 2.0 ** (magnitude - 52))
    found = coordinates(counts, grid, by)
    assert found.shape == tuple(each.count for each in by)
    whole = counts.astype(object)
    for axis, each in enumerate(by):
        whole = np.moveaxis(np.tensordot(each.rows.astype(object), whole, axes=(1, axis)), 0, axis)
    cells = [*np.ndindex(found.shape)]
    for cell in cells if len(cells) < 300 else [cells[i] for i in rng.integers(0, len(cells), 300)]:
        P = math.prod(int(each.squares[i]) for each, i in zip(by, cell, strict=True))
        steps, twice = int(found[cell] / grid), 2 * int(whole[cell]) * int(1 / grid)
        assert steps * grid == found[cell] and whole[cell] * steps >= 0
        assert max(0, 2 * abs(steps) - 1) ** 2 * P <= twice**2 <= (2 * abs(steps) + 1) ** 2 * P
    reach = 4 * grid * math.sqrt(found.size) + 1e-9 * counts.sum()
    assert np.abs(from_coordinates(found, by) - center(counts.astype(float))).max() <= reach


def test_an_overview_by_ranges_knows_the_deviation_of_every_query() -> None:
    """An estimate is linear in the noise: its variance is the sum, over all coordinates, of what each alone moves it by, squared."""
    universe = hr.Universe.from_sizes({"a": 5, "b": 3, "c": 6})
    rng = np.random.default_rng(3)
    x = rng.integers(0, 90, universe.shape)
    sets = [(), ("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]
    sigmas, ranged = {s: 3.0 + i for i, s in enumerate(sets)}, ("a", "c")
    queries = [hr.count(a=(1, 3), b={0, 2}), hr.count(c=(1, 4), a=2), hr.linear(("b", "c"), rng.random((3, 6)))]
    bound = [q.on(universe) for q in queries]

    def overview(moved: tuple[str, ...] | None = None, coordinate: int = 0) -> Overview:
        measured = []
        for s in sets:
            held = tuple(n for n in s if n in ranged)
            by = Measurement(s, np.zeros(universe.sizes(s)), Gaussian(1.0, 1.0), residual=True, ranged=held).contrasts
            table = x.sum(axis=tuple(i for i, n in enumerate(universe.names) if n not in s))
            drawn = coordinates(table, 2.0**-20, by)
            if s == moved:
                drawn.reshape(-1)[coordinate] += sigmas[s]
            event = Gaussian(1.0, sigmas[s], 2.0**-20)
            measured.append(Measurement(s, from_coordinates(drawn, by), event, residual=True, ranged=held))
        return Overview(universe, measured, None)

    def answers(found: Overview) -> np.ndarray:
        return np.array([q.dot(found.onto(q.attributes)) for q in bound])

    still = overview()
    shapes = {s: [m if n in ranged else m - 1 for n, m in zip(s, universe.sizes(s), strict=True)] for s in sets}
    every = [(s, i) for s in sets for i in range(math.prod(shapes[s]))]
    moves = np.array([answers(overview(s, i)) - answers(still) for s, i in every])
    stated = [float(still.deviations(q.attributes, [q])[0]) for q in bound]
    assert np.sqrt((moves**2).sum(axis=0)) == pytest.approx(stated, rel=1e-6)
    true = [x.sum(axis=tuple(i for i, n in enumerate("abc") if n not in q.attributes)) for q in bound]
    assert answers(still) == pytest.approx([q.dot(each) for q, each in zip(bound, true, strict=True)], abs=1e-2)
    tables = rng.normal(size=(200, 5, 3))
    wide = [Linear(("a", "b"), (5, 3), None, t / np.linalg.norm(t), False) for t in tables]
    assert max(still.deviations(("a", "b"), wide)) <= still.widest(("a", "b"))
    rounding = math.hypot(*(2.0**-21 * math.sqrt(math.prod(shapes[s])) / sigmas[s] for s in sets if s))
    assert still.rounding == pytest.approx(rounding)


def ordered_and_not() -> tuple[hr.Universe, hr.Universe]:
    others = {"b": hr.Categories(["x", "y", "z"]), "c": hr.Flag()}
    return hr.Universe(a=hr.Integers(0, 15), **others), hr.Universe(a=hr.Categories([*range(16)]), **others)


def test_a_session_expects_ranges_of_what_is_ordered() -> None:
    rng = np.random.default_rng(0)
    found = {}
    for universe in ordered_and_not():
        counts = rng.multinomial(20_000, np.full(universe.size, 1 / universe.size)).reshape(universe.shape)
        session = hr.open(HistogramSource(universe, counts), universe=universe, budget=hr.Budget(1, 1e-6), seed=1)
        ranged = {m.attributes: m.ranged for m in session._engine.measurements if m.residual}
        question = hr.count(a={*range(4, 12)}, b="x")
        found[universe["a"].ordered] = (ranged["a", "b"], ranged["b", "c"], session.ask(question).typical)
    assert found[True][:2] == (("a",), ()) and found[False][:2] == ((), ())
    assert found[True][2] < 0.9 * found[False][2]


def test_a_declared_workload_and_a_release_are_measured_alike_everywhere() -> None:
    universe = ordered_and_not()[0]
    data = HistogramSource(universe, np.full(universe.shape, 200))
    session = hr.open(data, universe=universe, budget=hr.Budget(1, 1e-6), seed=1, workload=[hr.marginal("a", "b")])
    release = hr.release(data, universe=universe, budget=hr.Budget(1, 1e-6), seed=1)
    for made in (session, release):
        assert not any(m.ranged for m in made._engine.measurements)


def test_an_attribute_merged_to_one_group_is_left_out(monkeypatch) -> None:
    """All values of a wide attribute may be too rare to be told apart."""
    monkeypatch.setattr(value_groups, "group_rare", lambda counts, least: np.zeros(len(counts), np.int64))
    universe = hr.Universe(w=hr.Integers(0, 24), a=hr.Integers(0, 4), f=hr.Flag())
    data = HistogramSource(universe, np.full(universe.shape, 8))
    for workload in (None, [hr.marginal("w", "a"), hr.marginal("a", "f")]):
        session = hr.open(data, universe=universe, budget=hr.Budget(1, 1e-6), workload=workload, seed=1)
        assert session._engine.knowledge.learned.merging.inner["w"].size == 1
        assert session.ask(hr.count(a=(1, 3), w=(0, 11))).value == pytest.approx(0.6 * 12 / 25, abs=0.05)


def test_residuals_of_one_overview_are_measured_alike() -> None:
    universe = hr.Universe.from_sizes({"a": 5, "b": 2})
    mixed = [
        Measurement(s, np.zeros(universe.sizes(s)), Gaussian(1.0, 2.0), residual=True, ranged=ranged)
        for s, ranged in ((("a",), ("a",)), (("b",), ()), (("a", "b"), ()))
    ]
    with pytest.raises(InvalidInput, match=r"must .*Found"):
        Overview(universe, mixed, 100.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"ranged": ["b"]},
        {"residual": False},
        {"ranged": ["a"], "attributes": ["b"]},
        {"ranged": "a"},
        {"ranged": ["a", "a"]},
    ],
)
def test_a_ranged_measurement_is_read_as_it_was_written_or_refused(changes) -> None:
    sent = Measurement(("a",), np.arange(5.0), Gaussian(1.0, 2.0), residual=True, ranged=("a",))
    record = hr.wire.to_json(sent)
    back = hr.wire.from_json(record)
    assert back.ranged == ("a",) and np.array_equal(back.values, sent.values)
    assert "ranged" not in hr.wire.to_json(Measurement(("a",), np.arange(5.0), Gaussian(1.0, 2.0), residual=True))
    with pytest.raises(InvalidInput, match=r"must .*Found"):
        hr.wire.from_json({**record, **changes})


def test_contrasts_are_cached_while_other_threads_add_and_drop_theirs(monkeypatch) -> None:
    """Another thread may add contrasts of its own while the cache sums up what it holds."""
    monkeypatch.setattr(measurement_module, "MOST_ENTRIES", 10)
    found = measurement_module.contrasts_of(lambda m: helmert(int(m)))

    class Size(int):
        def __mul__(self, other: int) -> int:
            found(int(self) + 100)
            return int(self) * int(other)

    for m in (2, 3, 4):
        assert found(Size(m)).count == m - 1


def test_an_array_that_sessions_share_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        nats_of_kinds(6, True)[...] = 1.0
