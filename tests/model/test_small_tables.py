"""Many small tables from one calibration, and the sizes of trees not built, against one elimination and one tree for each."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hedgerow.model.junction_tree import JunctionTree, junction_cells
from hedgerow.model.log_linear import LogLinear
from hedgerow.model.pair_tables import PairTables
from hedgerow.model.small_tables import SmallTables, fits
from hedgerow.model.tree_sizes import cells_with, edge_cells
from hedgerow.questions.universe import Universe

SEEDS = range(12)


def drawn(seed: int) -> tuple[Universe, list[tuple[str, ...]], JunctionTree, list[np.ndarray]]:
    """A tree over up to ten attributes, often a forest, with random beliefs."""
    rng = np.random.default_rng(seed)
    universe = Universe.from_sizes({f"a{i}": int(rng.integers(1, 5)) for i in range(int(rng.integers(3, 11)))})
    names = universe.names
    sets = [
        universe.order(rng.choice(names, int(rng.integers(1, 4)), replace=False))
        for _ in range(int(rng.integers(1, 1 + len(names))))
    ]
    tree = JunctionTree(universe, sets)
    return universe, sets, tree, tree.calibrate([rng.normal(size=shape) for shape in tree.shapes])[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_of_up_to_three_attributes_are_those_of_an_elimination(seed) -> None:
    universe, _, tree, beliefs = drawn(seed)
    small = SmallTables(tree, beliefs)
    for size in (1, 2, 3):
        for names in itertools.combinations(universe.names, size):
            assert fits(tree, names)
            np.testing.assert_allclose(small.marginal(names), tree.marginal(beliefs, names), atol=1e-13)
    assert not fits(tree, universe.names[:4]) or len(universe.names) < 4
    assert not fits(tree, universe.names[:2], memory_limit=1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_matrix_of_all_pairs_has_the_table_of_each(seed) -> None:
    universe, _, tree, beliefs = drawn(seed)
    tables = PairTables(tree.sizes)
    matrix = tables.believed(tree, beliefs)
    totals = tables.sums(np.abs(matrix))
    for names in itertools.combinations(universe.names, 2):
        expected = tree.marginal(beliefs, names)
        np.testing.assert_allclose(tables.block(matrix, names), expected, atol=1e-13)
        np.testing.assert_allclose(tables.block(matrix, names[::-1]), expected.T, atol=1e-13)
        assert totals[universe.index(names[0]), universe.index(names[1])] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_size_of_a_tree_with_one_set_more_is_that_of_the_tree_itself(seed) -> None:
    universe, sets, tree, _ = drawn(seed)
    candidates = [c for k in (1, 2, 3) for c in itertools.combinations(universe.names, k)]
    assert cells_with(tree, sets, candidates).tolist() == [junction_cells(universe, [*sets, c]) for c in candidates]


def test_an_edge_is_taken_along_the_way_between_its_ends() -> None:
    """In a chain a–b–c–d the edge ad makes the cliques abd, bcd (or acd, abc): so many cells more, and none for an edge there is."""
    tree = JunctionTree({"a": 2, "b": 3, "c": 5, "d": 7, "e": 2}, ["ab", "bc", "cd"])
    added = edge_cells(tree)
    assert added[0, 1] == added[1, 2] == 0
    assert added[0, 2] == 2 * 3 * 5
    assert added[0, 3] == min(2 * (3 * 5 + 5 * 7), 7 * (5 * 3 + 3 * 2))
    assert added[0, 4] == 2 * 2  # of another tree
    assert np.array_equal(added, added.T)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fit_in_two_loops_sees_what_a_fit_table_by_table_sees(seed) -> None:
    universe, sets, _, _ = drawn(seed)
    family = {tuple(s) for names in sets for k in (1, 2, 3) for s in itertools.combinations(names, k)}
    model = LogLinear(universe, family)
    assert model._flat is not None
    theta = np.random.default_rng(seed).normal(size=model.theta.size)
    together = model.evaluate(theta)
    model._flat = None
    apart = model.evaluate(theta)
    assert together[0] == pytest.approx(apart[0], abs=1e-12)
    np.testing.assert_allclose(together[1], apart[1], atol=1e-13)
