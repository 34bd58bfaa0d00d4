"""Small work uses arrays and large work uses compiled loops, with the same results."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.engine.practical.certificate import largest_errors
from hedgerow.model import hypothesis, junction_tree, log_linear, memory_layout, small_tables, triangulation
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.model.junction_tree import JunctionTree
from hedgerow.model.log_linear import FlatSums
from hedgerow.model.triangulation import cells_with

SIZES = {"a": 3, "b": 4, "c": 1, "d": 5, "e": 2, "f": 6}
UNIVERSE = hr.Universe.from_json(SIZES)
TREES = [
    [("a", "b"), ("b", "d"), ("d", "e", "f")],
    [("a", "b", "c"), ("d",), ("e", "f")],
    [("a", "b"), ("b", "d"), ("d", "e"), ("e", "a")],
    [("a", "b", "d", "e"), ("f", "a")],
]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch):
    """Call a function through compiled loops, whatever the size of its work."""

    def call(function, *given):
        with monkeypatch.context() as patched:
            for module, name in [
                (junction_tree, "FEW_CELLS"), (hypothesis, "FEW_CELLS"), (memory_layout, "FEW_CELLS"), (triangulation, "FEW"),
                (small_tables, "FEW_CELLS"), (log_linear, "FEW_TABLES"), (largest_errors, "FEW_SUMS"),
            ]:  # fmt: skip
                patched.setattr(module, name, -1)
            patched.setattr("hedgerow.model.triangulation.FEW", -1)
            return function(*given)

    return call


@pytest.mark.parametrize("sets", TREES)
@pytest.mark.parametrize("spread", [0.1, 3.0, 900.0])
def test_a_small_tree_is_calibrated_as_a_large_one(sets, spread, compiled) -> None:
    """900: potentials so far apart that each separator's cell needs its own maximum, and some probabilities are 0."""
    tree = JunctionTree(UNIVERSE, sets)
    rng = np.random.default_rng(7)
    potentials = [spread * rng.normal(size=shape) for shape in tree.shapes]
    small, log_small = tree.calibrate(potentials)
    large, log_large = compiled(tree.calibrate, potentials)
    assert log_small == pytest.approx(log_large, rel=1e-13)
    for one, other in zip(small, large, strict=True):
        assert one == pytest.approx(other, rel=1e-11, abs=1e-300)
        assert one.sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("sets", TREES)
def test_tables_are_added_to_cliques_and_summed_from_them_alike(sets, compiled) -> None:
    tree = JunctionTree(UNIVERSE, sets)
    rng = np.random.default_rng(8)
    inside = [names for clique in tree.cliques for k in (1, 2) for names in itertools.combinations(clique, k)]
    parameters = rng.normal(size=sum(UNIVERSE.cells(names) for names in inside))
    beliefs = rng.random(tree.cells)

    def both() -> list[np.ndarray]:
        sums = FlatSums.plan(tree, inside)
        potentials, means = np.empty(tree.cells), np.empty(parameters.size)
        sums.potentials(parameters, potentials)
        sums.means(beliefs, means)
        return [potentials, means]

    for one, other in zip(both(), compiled(both), strict=True):
        assert one == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 1, 7), (40, 30), (6,)])
def test_folds_of_small_arrays_sum_add_and_multiply_as_those_of_large_ones(shape, compiled) -> None:
    rng = np.random.default_rng(9)
    for axes in itertools.chain.from_iterable(
        itertools.combinations(range(len(shape)), k) for k in range(len(shape) + 1)
    ):
        table = rng.normal(size=[shape[k] for k in axes])
        values = rng.random(shape)

        def results(axes=axes, table=table, values=values) -> list[np.ndarray]:
            fold = memory_layout.fold(shape, axes)
            by, onto = memory_layout.update_folds(shape, axes, axes[:1])
            added, multiplied = values.copy(), values.copy()
            fold.add(added, table)
            sums = by.times(multiplied, table, onto)
            return [fold.sum(values), added, multiplied, sums]

        for one, other in zip(results(), compiled(results), strict=True):
            assert one.shape == other.shape
            assert one == pytest.approx(other, rel=1e-12, abs=1e-13)


def test_a_hypothesis_learns_alike(compiled) -> None:
    rng = np.random.default_rng(10)
    factors = [(("a", "b"), rng.normal(size=(3, 4))), (("b", "d"), rng.normal(size=(4, 5)))]
    factors.append((UNIVERSE.names, rng.normal(size=UNIVERSE.shape)))

    def learned() -> np.ndarray:
        found = Hypothesis(UNIVERSE)
        for names, table in factors:
            found.add_factors({names: table})
            found.marginal(("a", "b"))
        return found.marginal(("a", "d", "f"))

    assert learned() == pytest.approx(compiled(learned), rel=1e-11)


@pytest.mark.parametrize("seed", range(40))
def test_small_graphs_are_triangulated_as_large_ones(seed, compiled) -> None:
    rng = np.random.default_rng(seed)
    sizes = tuple(int(m) for m in rng.integers(1, 9, 6))
    pairs = [1 << i | 1 << j for i, j in itertools.combinations(range(6), 2) if rng.random() < 0.5]
    near = triangulation.links(6, pairs)
    for fill_first in (True, False):
        few = triangulation._eliminate(near, sizes, fill_first)
        assert few == compiled(triangulation._eliminate, near, sizes, fill_first)
    universe = hr.Universe.from_json({"abcdef"[i]: size for i, size in enumerate(sizes)})
    sets = [tuple("abcdef"[i] for i in range(6) if mask >> i & 1) for mask in pairs]
    tree = JunctionTree(universe, sets)
    candidates = [tuple(names) for k in (2, 3) for names in itertools.combinations("abcdef", k)]
    assert cells_with(tree, sets, candidates).tolist() == compiled(cells_with, tree, sets, candidates).tolist()


@pytest.mark.parametrize("inside", [("a",), ("b", "d"), ("a", "f"), ()])
def test_places_and_sums_through_a_clique_are_found_alike(inside, compiled) -> None:
    rng = np.random.default_rng(11)
    names = ("a", "b", "d", "f")
    belief = rng.random(UNIVERSE.sizes(names))
    given = rng.random((UNIVERSE.cells(inside), 3))

    def both() -> list[np.ndarray]:
        table = small_tables.CliqueTable(names, belief)
        return [table.places(names, inside), table.through(given, inside, ("b", "f"))]

    for one, other in zip(both(), compiled(both), strict=True):
        assert one == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (1, 5, 2), (5, 1, 1)])
def test_largest_errors_and_sums_of_errors_are_found_alike(shape, compiled) -> None:
    rng = np.random.default_rng(12)
    for ordered in itertools.product([True, False], repeat=len(shape)):
        table = rng.integers(-(2**40), 2**40, shape)
        allowed = rng.integers(0, 2**30, shape)
        for given in (table, -np.abs(table), np.zeros(shape, np.int64)):
            few = largest_errors.largest_error(given, ordered, allowed)
            assert few == compiled(largest_errors.largest_error, given, ordered, allowed)
            assert largest_errors.sum_of_errors(given, ordered) == compiled(
                largest_errors.sum_of_errors, given, ordered
            )
