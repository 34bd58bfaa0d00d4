"""Many small tables from one calibration, and the sizes of trees not built, against one elimination and one tree for each."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

from hedgerow.model import small_tables
from hedgerow.model.hypothesis import PairTables
from hedgerow.model.junction_tree import JunctionTree, junction_cells
from hedgerow.model.log_linear import LogLinear
from hedgerow.model.small_tables import SmallTables, fits
from hedgerow.model.triangulation import cells_with, edge_cells, eliminate, links
from hedgerow.universe.universe import Universe

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


@pytest.mark.parametrize("most", [small_tables.TOGETHER, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_made_together_are_to_the_last_bit_what_they_are_one_by_one(seed, most, monkeypatch) -> None:
    """All of them, some of them, and those that were not announced."""
    monkeypatch.setattr(small_tables, "TOGETHER", most)
    universe, _, tree, beliefs = drawn(seed)
    sets = [names for size in (1, 2, 3) for names in itertools.combinations(universe.names, size)]
    one_by_one, together = SmallTables(tree, beliefs), SmallTables(tree, beliefs)
    for expected in (sets, sets[:: 2 + seed % 3], ()):
        together.expect(expected)
        for names in sets:
            assert np.array_equal(one_by_one.marginal(names), together.marginal(names))


def test_attributes_that_come_the_same_way_are_summed_over_once(monkeypatch) -> None:
    """Nine leaves on three cliques of a triangle: 27 tables of one of each, by three sums, not by three for each."""
    sizes = {"x": 3, "y": 3, "z": 3} | {f"{n}{i}": 2 for n in "xyz" for i in range(3)}
    tree = JunctionTree(sizes, [("x", "y", "z"), *((n, *(f"{n}{i}" for i in range(3))) for n in "xyz")])
    beliefs, _ = tree.calibrate([np.random.default_rng(0).normal(size=shape) for shape in tree.shapes])
    small, sums = SmallTables(tree, beliefs), []
    small.marginal(("x0", "y0", "z0"))  # compiled
    passed = small_tables._pass_messages
    monkeypatch.setattr(small_tables, "_pass_messages", lambda *given: sums.append(1) or passed(*given))
    sets = list(itertools.product(*([f"{n}{i}" for i in range(3)] for n in "xyz")))
    few = [names for names in sets if sum(int(name[1]) for name in names) % 3 == 0]
    for expected, times in ((sets, 3), (few, 3 * 9)):  # of less than half of them, each by itself
        small.expect(expected)
        sums.clear()
        for names in expected:
            np.testing.assert_allclose(small.marginal(names), tree.marginal(beliefs, names), atol=1e-13)
        assert len(sums) == times


def test_the_ends_of_a_long_chain_have_a_table() -> None:
    """Longer than Python's stack is deep, by way of the clique in which three ways part."""
    names = tuple(f"a{i}" for i in range(1_100))
    tree = JunctionTree(dict.fromkeys(names, 2), list(itertools.pairwise(names)))
    beliefs, _ = tree.calibrate([np.eye(2) * 8.0 for _ in tree.shapes])
    asked = (names[0], names[550], names[-1])
    np.testing.assert_allclose(SmallTables(tree, beliefs).marginal(asked), tree.marginal(beliefs, asked), atol=1e-12)


def test_a_table_is_summed_in_the_order_that_takes_least() -> None:
    """The 100 values of x last: first, they would be laid out over all cells of the largest clique."""
    sizes = {f"b{i}": 2 for i in range(16)} | {"x": 100, "y": 2, "z": 2}
    b = tuple(sizes)[:16]
    tree = JunctionTree(sizes, [b, (*b[4:12], "x"), (*b[:8], "y"), (*b[8:], "z")])
    rng = np.random.default_rng(0)
    beliefs, _ = tree.calibrate([rng.normal(size=shape) for shape in tree.shapes])
    small = SmallTables(tree, beliefs)
    tracemalloc.start()
    try:
        found = small.marginal(("x", "y", "z"))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 16 * tree.bytes
    np.testing.assert_allclose(found, tree.marginal(beliefs, ("x", "y", "z")), atol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_matrix_of_all_pairs_has_the_table_of_each(seed) -> None:
    universe, _, tree, beliefs = drawn(seed)
    tables = PairTables(tree.sizes)
    matrix = tables.pair_matrix(tree, beliefs)
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
    built = [JunctionTree(universe, [*sets, c]).cells for c in candidates]
    assert cells_with(tree, sets, candidates).tolist() == built
    assert [junction_cells(universe, [*sets, c]) for c in candidates] == built


@pytest.mark.parametrize("attributes", [63, 64, 65, 130])
def test_the_tree_of_many_attributes_is_a_junction_tree_of_all_sets(attributes) -> None:
    """Past the bits of a word: every set has its clique, and the cliques of an attribute are joined."""
    rng = np.random.default_rng(attributes)
    names = [f"a{i}" for i in range(attributes)]
    sets = [tuple(rng.choice(names, 2, replace=False)) for _ in range(attributes)]
    tree = JunctionTree(dict.fromkeys(names, 2), sets)
    assert all(tree.home(s) is not None for s in sets)
    assert junction_cells(dict.fromkeys(names, 2), sets) == tree.cells
    for name in names:
        own = {i for i, clique in enumerate(tree.cliques) if name in clique}
        assert sum(tree.parents[i] not in own for i in own) == 1
    assert not any(set(c) <= set(d) for c, d in itertools.permutations(tree.cliques, 2))


@pytest.mark.parametrize("fill_first", [True, False])
def test_an_elimination_takes_first_what_adds_no_edge_and_then_what_makes_the_fewest_cells(fill_first) -> None:
    """A cycle 0–1–2–3 of 2, 7, 2 and 7 values with a tail: 1 makes a clique of 28 cells and 0 one of 98."""
    sets = [0b00011, 0b00110, 0b01100, 0b01001, 0b10001]
    near, order, maximal = links(5, sets).copy(), np.empty(5, np.int64), np.empty(5, bool)
    eliminate(near, np.log2([2.0, 7, 2, 7, 9]), fill_first, order, maximal)
    assert order.tolist() == [4, 1, 0, 2, 3]
    assert near[[4, 1, 0], 0].tolist() == [0b00001, 0b00101, 0b01100]
    assert maximal.tolist() == [True, True, True, False, False]


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
