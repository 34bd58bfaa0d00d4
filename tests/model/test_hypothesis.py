"""The hypothesis model against brute force: one array over the whole universe is the specification."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, ncx2

from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.model import kernels
from hedgerow.model import memory_layout as folds
from hedgerow.model.hypothesis import JOINED, SAFE_RANGE, Hypothesis
from hedgerow.model.junction_tree import JunctionTree, junction_cells
from hedgerow.query.linear import Linear
from hedgerow.universe.universe import Universe

SHAPES = {
    "no factor": [],
    "single attributes": ["a", "b", "c"],
    "chain": ["ab", "bc", "cd", "de"],
    "star": ["ab", "ac", "ad", "aef"],
    "four-cycle": ["ab", "bc", "cd", "ad"],
    "five-cycle with a chord": ["ab", "bc", "cd", "de", "ae", "bd"],
    "grid": ["ab", "bc", "de", "ef", "ad", "be", "cf"],
    "disconnected": ["ab", "cd", "ef"],
    "disconnected cycles": ["ab", "bc", "ac", "de", "ef", "df"],
    "nested": ["abcd", "ab", "c", "bcd"],
    "complete": ["abc", "def", "ad", "ae", "af", "bd", "be", "bf", "cd", "ce", "cf"],
}


def brute_force(universe: Universe, factors: list[tuple[tuple[str, ...], np.ndarray]]) -> np.ndarray:
    """The distribution as one array, in log space until the last step."""
    log = np.zeros(universe.shape)
    for names, table in factors:
        log = log + spread(universe, names, table)
    weights = np.exp(log - log.max())
    return weights / weights.sum()


def spread(universe: Universe, names: tuple[str, ...], table: np.ndarray) -> np.ndarray:
    return table.reshape([universe[n].size if n in names else 1 for n in universe.names])


def summed(universe: Universe, joint: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    return joint.sum(axis=tuple(i for i, n in enumerate(universe.names) if n not in names))


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [tuple(n for i, n in enumerate(names) if code >> i & 1) for code in range(1 << len(names))]


@st.composite
def models(draw: st.DrawFn) -> tuple[Universe, list[tuple[tuple[str, ...], np.ndarray]]]:
    """A small universe and factors on up to three attributes, some of them of enormous magnitude."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    universe = Universe.from_sizes({"abcdef"[i]: size for i, size in enumerate(sizes)})
    factors = []
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(0, 7))):
        names = universe.order(draw(st.lists(st.sampled_from(universe.names), max_size=3)))
        magnitude = draw(st.sampled_from([0.1, 1.0, 30.0, 300.0]))
        factors.append((names, magnitude * rng.uniform(-1, 1, universe.sizes(names))))
    return universe, factors


# Marginals


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("magnitude", [1.0, 300.0])
def test_every_marginal_agrees_with_brute_force(shape, dense, magnitude) -> None:
    universe = Universe.from_sizes({"a": 2, "b": 3, "c": 2, "d": 4, "e": 1, "f": 3})
    rng = np.random.default_rng(7)
    factors = [(tuple(s), magnitude * rng.normal(size=universe.sizes(s))) for s in SHAPES[shape]]
    hypothesis = Hypothesis(universe, dense=dense)
    for names, table in factors:
        hypothesis.add_factor(names, table)
    joint = brute_force(universe, factors)
    for names in subsets(universe.names):
        np.testing.assert_allclose(hypothesis.marginal(names), summed(universe, joint, names), rtol=0, atol=1e-10)


@settings(max_examples=80, deadline=None)
@given(models(), st.sampled_from([True, False, None]), st.randoms(use_true_random=False))
def test_changes_and_marginals_in_any_order_agree_with_brute_force(model, dense, random) -> None:
    universe, factors = model
    hypothesis = Hypothesis(universe, dense=dense)
    for i, (names, table) in enumerate(factors):
        hypothesis.add_factor(names, table)
        if random.random() < 0.7:
            wanted = universe.order(random.choices(universe.names, k=3))
            expected = summed(universe, brute_force(universe, factors[: i + 1]), wanted)
            np.testing.assert_allclose(hypothesis.marginal(wanted), expected, rtol=0, atol=1e-10)
        if random.random() < 0.2:
            hypothesis = hypothesis.copy()
    joint = brute_force(universe, factors)
    for names in random.sample(subsets(universe.names), k=2):
        np.testing.assert_allclose(hypothesis.marginal(names), summed(universe, joint, names), rtol=0, atol=1e-10)


@settings(max_examples=100, deadline=None)
@given(models())
def test_the_beliefs_and_the_log_partition_function_agree_with_brute_force(model) -> None:
    universe, factors = model
    tree = JunctionTree(universe, [names for names, _ in factors])
    potentials = tree.zeros()
    for names, table in factors:
        tree.add(potentials, names, table)
    before = [p.copy() for p in potentials]
    beliefs, log_partition = tree.calibrate(potentials)
    joint = brute_force(universe, factors)
    log = sum((spread(universe, names, table) for names, table in factors), np.zeros(universe.shape))
    exact = log.max() + math.log(np.exp(log - log.max()).sum())
    assert log_partition == pytest.approx(exact, rel=1e-12, abs=1e-10)
    for clique, belief, given_potential, potential in zip(tree.cliques, beliefs, before, potentials, strict=True):
        np.testing.assert_allclose(belief, summed(universe, joint, clique), rtol=0, atol=1e-10)
        np.testing.assert_array_equal(given_potential, potential)


def test_a_state_that_one_clique_rules_out_and_another_restores_is_not_lost() -> None:
    universe = Universe.from_sizes({"a": 2, "b": 2, "c": 2})
    hypothesis = Hypothesis(universe, dense=False)
    hypothesis.add_factor("ab", np.array([[0.0, -2000.0], [0.0, -2001.0]]))
    hypothesis.add_factor("bc", np.array([[0.0, 0.0], [2000.0, 2000.0]]))
    weights = np.array([[1.0, 1.0], [1.0, math.exp(-1)]])
    np.testing.assert_allclose(hypothesis.marginal("ab"), weights / weights.sum(), rtol=1e-12)


def test_small_updates_in_place_stay_right_over_thousands_of_steps() -> None:
    universe = Universe.from_sizes({"a": 3, "b": 4, "c": 5, "d": 6})
    rng = np.random.default_rng(3)
    hypothesis = Hypothesis(universe, dense=True)
    log = np.zeros(universe.shape)
    for step in range(5000):
        names = universe.order(rng.choice(universe.names, size=2, replace=False))
        table = 0.1 * rng.normal(size=universe.sizes(names))
        hypothesis.add_factor(names, table)
        log += spread(universe, names, table)
        if step % 3 == 0:
            hypothesis.marginal(("a", "c"))
    joint = np.exp(log - log.max())
    joint /= joint.sum()
    np.testing.assert_allclose(hypothesis.marginal(universe.names), joint, rtol=1e-10)


def test_an_update_far_past_the_range_of_floats_can_be_undone() -> None:
    universe = Universe.from_sizes({"a": 2, "b": 3})
    hypothesis = Hypothesis(universe, dense=True)
    table = np.array([0.0, -4 * SAFE_RANGE])
    hypothesis.add_factor("a", table)
    assert hypothesis.marginal("a")[1] == 0.0
    hypothesis.add_factor("a", -table)
    np.testing.assert_allclose(hypothesis.marginal("a"), [0.5, 0.5], rtol=1e-12)


def test_updates_by_large_and_by_full_tables_agree_with_brute_force() -> None:
    universe = Universe.from_sizes({c: 8 for c in "abcdef"})
    rng = np.random.default_rng(5)
    hypothesis = Hypothesis(universe, dense=True)
    hypothesis.marginal("a")
    factors = []
    for names in ("ab", "abcde", "cf", "abcdef", "bcdef", "abcdef", "e"):
        factors.append((tuple(names), rng.normal(size=universe.sizes(names))))
        hypothesis.add_factor(*factors[-1])
        before = factors[-1][1].copy()
        joint = brute_force(universe, factors)
        for wanted in (("a", "f"), ("b", "c", "d"), tuple("abcde"), tuple("abcdef")):
            np.testing.assert_allclose(hypothesis.marginal(wanted), summed(universe, joint, wanted), atol=1e-12)
        np.testing.assert_array_equal(before, factors[-1][1])
    assert universe.cells("abcde") > JOINED


def test_the_axes_of_a_factor_follow_the_names_as_given() -> None:
    universe = Universe.from_sizes({"a": 2, "b": 3})
    table = np.arange(6.0).reshape(3, 2)
    one, other = Hypothesis(universe), Hypothesis(universe)
    one.add_factor(("b", "a"), table)
    other.add_factor(("a", "b"), table.T)
    np.testing.assert_array_equal(one.marginal("ab"), other.marginal("ba"))
    assert one.marginal("ba").shape == (2, 3)


def test_a_marginal_is_kept_until_the_next_change_and_cannot_be_written() -> None:
    hypothesis = Hypothesis(Universe.from_sizes({"a": 2, "b": 3}))
    first = hypothesis.marginal(("a", "b"))
    assert hypothesis.marginal(["b", "a", "b"]) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1.0
    hypothesis.add_factor("a", [0.0, 1.0])
    assert hypothesis.marginal(("a", "b")) is not first
    np.testing.assert_allclose(first, 1 / 6)


def test_marginals_sum_to_one_and_the_empty_one_is_one() -> None:
    hypothesis = Hypothesis(Universe.from_sizes({"a": 7, "b": 30}))
    hypothesis.add_factor("ab", np.random.default_rng(0).normal(size=(7, 30)))
    assert hypothesis.marginal(()) == 1.0
    assert hypothesis.marginal(()).shape == ()
    assert hypothesis.marginal("b").sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("dense", [True, False])
def test_a_copy_and_its_original_do_not_change_each_other(dense) -> None:
    universe = Universe.from_sizes({"a": 2, "b": 2, "c": 2})
    original = Hypothesis(universe, dense=dense)
    original.add_factor("ab", np.array([[0.0, 1.0], [2.0, 3.0]]))
    expected = original.marginal("ab").copy()
    twin = original.copy()
    twin.add_factor("ab", np.ones((2, 2)) * [[0.0, 5.0]])
    twin.add_factor("bc", np.array([[0.0, 5.0], [0.0, 0.0]]))
    changed = twin.marginal("abc").copy()
    np.testing.assert_array_equal(original.marginal("ab"), expected)
    original.add_factor("ab", np.array([[9.0, 0.0], [0.0, 0.0]]))
    original.marginal("ab")
    np.testing.assert_array_equal(twin.marginal("abc"), changed)
    np.testing.assert_array_equal(twin.copy().marginal("cab"), changed)


def test_factors_rebuild_the_same_hypothesis() -> None:
    universe = Universe.from_sizes({"a": 2, "b": 3, "c": 4})
    rng = np.random.default_rng(1)
    hypothesis = Hypothesis(universe, dense=False)
    for names in ("ab", "bc", "ab"):
        hypothesis.add_factor(names, rng.normal(size=universe.sizes(names)))
    again = Hypothesis(universe, dense=False)
    again.add_factors(hypothesis.factors)
    assert list(hypothesis.factors) == [("a", "b"), ("b", "c")]
    np.testing.assert_array_equal(again.marginal("abc"), hypothesis.marginal("abc"))


# Answers


@settings(max_examples=100, deadline=None)
@given(models(), st.sampled_from([True, False]), st.integers(0, 2**32))
def test_answers_agree_with_brute_force(model, dense, seed) -> None:
    universe, factors = model
    rng = np.random.default_rng(seed)
    hypothesis = Hypothesis(universe, dense=dense)
    hypothesis.add_factors({})
    for names, table in factors:
        hypothesis.add_factor(names, table)
    joint = brute_force(universe, factors)
    names = universe.names
    conjunction = Linear.product(universe, {n: rng.random(universe[n].size) < 0.7 for n in names})
    weighted = Linear.from_table(universe, names, rng.random(universe.shape))
    for query in (conjunction, weighted):
        exact = float((joint * spread(universe, query.attributes, query.table)).sum())
        assert hypothesis.answer(query) == pytest.approx(exact, abs=1e-10)


def test_a_conjunction_over_a_hundred_attributes_needs_no_table_over_them() -> None:
    universe = Universe.from_sizes({f"b{i}": 2 for i in range(100)})
    hypothesis = Hypothesis(universe)
    for i in range(99):
        hypothesis.add_factor((f"b{i}", f"b{i + 1}"), [[1.0, 0.0], [0.0, 1.0]])
    every = Linear.product(universe, {n: np.array([False, True]) for n in universe.names})
    stay = math.e / (math.e + 1)  # a symmetric chain: half for the first, then a step that stays with this probability
    assert hypothesis.answer(every) == pytest.approx(0.5 * stay**99, rel=1e-10)


# Structure


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sets(st.sampled_from("abcdefgh"), max_size=4), max_size=10), st.randoms(use_true_random=False))
def test_the_tree_holds_every_set_and_each_attribute_in_one_connected_part(sets, random) -> None:
    sizes = {c: 2 + i % 4 for i, c in enumerate("abcdefgh")}
    tree = JunctionTree(sizes, sets)
    assert all(any(s <= set(c) for c in tree.cliques) for s in sets)
    assert not any(set(c) < set(d) for c in tree.cliques for d in tree.cliques)
    assert all(parent == -1 or parent > i for i, parent in enumerate(tree.parents))
    for name in sizes:  # running intersection: one topmost clique has it
        tops = [
            p < 0 or name not in tree.cliques[p] for c, p in zip(tree.cliques, tree.parents, strict=True) if name in c
        ]
        assert sum(tops) == 1
    shuffled = [random.sample(sorted(s), k=len(s)) for s in random.sample(sets, k=len(sets))]
    assert JunctionTree(sizes, shuffled).cliques == tree.cliques
    assert junction_cells(sizes, sets) == tree.cells == sum(math.prod(s) for s in tree.shapes)


def test_a_cycle_is_triangulated_through_its_smallest_attributes() -> None:
    sizes = {"a": 50, "b": 2, "c": 50, "d": 2}
    tree = JunctionTree(sizes, ["ab", "bc", "cd", "ad"])
    assert sorted(tree.cliques) == [("a", "b", "d"), ("b", "c", "d")]


def test_the_size_of_a_tree_is_exact_far_past_what_could_be_allocated() -> None:
    sizes = {f"b{i}": 2 for i in range(100)}
    assert junction_cells(sizes, [list(sizes)]) == 2**100
    assert JunctionTree(sizes, dense=True).cells == 2**100


def test_a_small_universe_is_one_clique_and_a_large_sparse_one_is_not() -> None:
    assert len(Hypothesis(Universe.from_sizes({"a": 8, "b": 8})).cliques) == 1
    large = Universe.from_sizes({c: 8 for c in "abcdef"})
    assert len(Hypothesis(large, cliques=["ab", "bc"]).cliques) == 5
    assert len(Hypothesis(large, cliques=["abcdef"]).cliques) == 1
    assert len(Hypothesis(large, cliques=["abcde", "bcdef"]).cliques) == 1  # a tree would save little
    assert len(Hypothesis(large, cliques=["ab"], dense=True).cliques) == 1


def test_a_universe_with_more_attributes_than_an_array_has_axes_is_answered() -> None:
    universe = Universe.from_sizes({f"c{i}": 1 for i in range(80)} | {"a": 3})
    hypothesis = Hypothesis(universe)
    hypothesis.add_factor("a", np.log([1.0, 2.0, 1.0]))
    np.testing.assert_allclose(hypothesis.marginal(("c7", "a")), [[0.25, 0.5, 0.25]])


def test_three_way_marginals_of_two_to_the_hundred_cells_agree_with_sums_along_the_chain() -> None:
    universe = Universe.from_sizes({f"b{i}": 2 for i in range(100)})
    rng = np.random.default_rng(11)
    triples = [(f"b{i}", f"b{i + 1}", f"b{i + 2}") for i in range(60)]
    tables = [rng.normal(size=(2, 2, 2)) for _ in triples]
    hypothesis = Hypothesis(universe)
    for names, table in zip(triples, tables, strict=True):
        hypothesis.add_factor(names, table)
    for k in (0, 20, 40, 59):
        np.testing.assert_allclose(hypothesis.marginal(triples[k]), chain_marginal(tables, k), rtol=0, atol=1e-10)


def chain_marginal(tables: list[np.ndarray], k: int) -> np.ndarray:
    """Forward and backward sums along a chain of three-way tables, as an independent reference."""
    forward = np.ones((2, 2))
    for table in tables[:k]:
        forward = np.einsum("ab,abc->bc", forward, np.exp(table))
    backward = np.ones((2, 2))
    for table in reversed(tables[k + 1 :]):
        backward = np.einsum("abc,bc->ab", np.exp(table), backward)
    joint = forward[:, :, None] * np.exp(tables[k]) * backward[None, :, :]
    return joint / joint.sum()


# Sampling


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("shape", ["star", "four-cycle", "disconnected"])
def test_samples_follow_the_distribution(shape, dense) -> None:
    """Pearson's χ² over all cells. False fails: 1e-6 a case. False passes where a cell is off by 0.02: below 1e-6."""
    universe = Universe.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2, "e": 1, "f": 3})
    rng = np.random.default_rng(2)
    hypothesis = Hypothesis(universe, dense=dense)
    factors = [(tuple(s), rng.normal(size=universe.sizes(s))) for s in SHAPES[shape]]
    for names, table in factors:
        hypothesis.add_factor(names, table)
        hypothesis.marginal("a")  # the dense array is now updated in place, not normalised
    rows = 200_000
    codes = hypothesis.sample(rows, np.random.default_rng(4))
    assert codes.shape == (rows, 6)
    counts = np.zeros(universe.shape)
    np.add.at(counts, tuple(codes.T), 1)
    expected = rows * brute_force(universe, factors)
    assert expected.min() > 5
    threshold = chi2.ppf(1 - 1e-6, universe.size - 1)
    assert ncx2.cdf(threshold, universe.size - 1, (0.02 * rows) ** 2 / expected.max()) < 1e-6
    assert ((counts - expected) ** 2 / expected).sum() < threshold


def test_a_cell_of_no_probability_is_never_drawn() -> None:
    universe = Universe.from_sizes({"a": 3, "b": 3})
    for dense in (True, False):
        hypothesis = Hypothesis(universe, dense=dense)
        hypothesis.add_factor("a", [0.0, -2000.0, -2000.0])
        hypothesis.add_factor("b", [-2000.0, 0.0, -2000.0])
        codes = hypothesis.sample(10_000, np.random.default_rng(0))
        assert (codes == [0, 1]).all()


def test_sampling_a_hundred_attributes_keeps_far_dependence() -> None:
    """Copies of one fair bit all along a chain: the first and the last agree in every record."""
    universe = Universe.from_sizes({f"b{i}": 2 for i in range(100)})
    hypothesis = Hypothesis(universe)
    hypothesis.add_factors({(f"b{i}", f"b{i + 1}"): np.array([[0.0, -800.0], [-800.0, 0.0]]) for i in range(99)})
    codes = hypothesis.sample(4000, np.random.default_rng(1))
    assert (codes == codes[:, :1]).all()
    assert abs(codes[:, 0].mean() - 0.5) < 4.9 * 0.5 / math.sqrt(4000)  # false fails: 1e-6


def test_no_records_can_be_asked_for_but_not_a_negative_number() -> None:
    hypothesis = Hypothesis(Universe.from_sizes({"a": 2}))
    assert hypothesis.sample(0, np.random.default_rng(0)).shape == (0, 1)
    with pytest.raises(InvalidInput, match=r"rows must be a whole number of at least 0\. Found -1\."):
        hypothesis.sample(-1, np.random.default_rng(0))


# Refusals


def test_a_clique_past_memory_is_refused_by_name_and_the_hypothesis_stays_usable() -> None:
    universe = Universe.from_sizes({"age": 100, "income": 1000, "town": 5000, "sex": 2})
    hypothesis = Hypothesis(universe, memory_limit=10**7)
    hypothesis.add_factor(("age", "sex"), np.ones((100, 2)) * [[0.0, 1.0]])
    with pytest.raises(TooLarge) as refusal:
        hypothesis.add_factor(("income", "town"), np.broadcast_to(0.0, (1000, 5000)))
    assert str(refusal.value) == (
        "The cliques of the hypothesis must fit the memory limit of 10000000 bytes. Found 5000200 cells (80003200 bytes), "
        "of which 5000000 are on the clique income, town. "
        "Use coarser bins, fewer attributes, or a larger memory_limit."
    )
    np.testing.assert_allclose(hypothesis.marginal(["sex"]), [1 / (1 + math.e), math.e / (1 + math.e)])
    hypothesis.add_factor(["town"], np.zeros(5000))
    assert repr(hypothesis) == "Hypothesis(4 attributes, 1000000000 cells, 2 factors, 3 cliques)"


def test_a_refusal_can_be_asked_for_beforehand_without_any_change() -> None:
    universe = Universe.from_sizes({"a": 1000, "b": 1000, "c": 1000})
    hypothesis = Hypothesis(universe, memory_limit=2 * 10**7)
    hypothesis.require("ab")
    assert hypothesis.cliques == Hypothesis(universe).cliques
    with pytest.raises(TooLarge, match=f"{10**9} are on the clique a, b, c"):
        hypothesis.require("abc")
    hypothesis.add_factor("ab", np.zeros((1000, 1000)))
    with pytest.raises(TooLarge, match="Found 2000000 cells"):
        hypothesis.require("bc")


def test_a_dense_universe_past_memory_is_refused_with_its_exact_size() -> None:
    universe = Universe.from_sizes({f"b{i}": 2 for i in range(100)})
    with pytest.raises(TooLarge, match=f"Found {2**100} cells .* on the clique b0, b1, .*, b99"):
        Hypothesis(universe, dense=True)


def test_a_marginal_past_memory_is_refused_and_smaller_ones_are_still_answered() -> None:
    universe = Universe.from_sizes({f"c{i}": 10 for i in range(9)})
    hypothesis = Hypothesis(universe, memory_limit=10**6)
    for i in range(8):
        hypothesis.add_factor((f"c{i}", f"c{i + 1}"), np.eye(10))
    with pytest.raises(TooLarge) as refusal:
        hypothesis.marginal(universe.names)
    assert str(refusal.value).startswith("A table of the hypothesis must fit the memory limit of 1000000 bytes. Found ")
    assert str(refusal.value).endswith("Use coarser bins, fewer attributes, or a larger memory_limit.")
    assert hypothesis.marginal(("c0", "c8")).shape == (10, 10)


def test_a_table_that_cannot_be_made_at_once_is_made_for_one_value_after_the_other() -> None:
    """On the way to two ends of a chain stands a table of three attributes, ten times as large as theirs."""
    universe = Universe.from_sizes({f"c{i}": 10 for i in range(9)})
    rng, ends, three = np.random.default_rng(0), ("c0", "c8"), ("c0", "c4", "c8")
    hypothesis = Hypothesis(universe)
    hypothesis.add_factors({tuple(f"c{i + j}" for j in range(3)): rng.normal(size=(10, 10, 10)) for i in range(7)})
    tree, beliefs, limit = hypothesis._tree, hypothesis._current(), 10_000
    assert tree.can_tabulate(ends, 10**6) and tree.can_tabulate(("c0", "c1"), limit)
    assert hypothesis.can_tabulate(ends, 1000) and not tree.can_tabulate(ends, limit)
    np.testing.assert_allclose(
        tree.marginal(beliefs, ends, memory_limit=limit), tree.marginal(beliefs, ends), rtol=1e-12
    )
    with pytest.raises(TooLarge, match="1000 cells"):  # the table itself
        tree.marginal(beliefs, three, memory_limit=limit)


def test_several_factors_are_added_together_or_not_at_all() -> None:
    universe = Universe.from_sizes({"a": 2, "b": 1000, "c": 1000})
    hypothesis = Hypothesis(universe, memory_limit=10**6)
    with pytest.raises(TooLarge):
        hypothesis.add_factors({("a",): np.array([0.0, 3.0]), ("b", "c"): np.zeros((1000, 1000))})
    np.testing.assert_allclose(hypothesis.marginal("a"), 0.5)
    assert hypothesis.factors == {}


@pytest.mark.parametrize(
    ("attributes", "table", "message"),
    [
        (("a", "z"), np.zeros((2, 2)), "An attribute must be one of 'a', 'b'. Found 'z'."),
        (("a", "a"), np.zeros((2, 2)), "The attributes of a factor must be distinct. Found ('a', 'a')."),
        (("a", "b"), np.zeros((3, 2)), "A log table on ('a', 'b') must have shape (2, 3). Found (3, 2)."),
        (("a",), [0.0, math.nan], "A log table must be finite. Found an entry that is not."),
        (("a",), [0.0, -math.inf], "A log table must be finite. Found an entry that is not."),
    ],
)
def test_a_bad_factor_is_refused_and_nothing_changes(attributes, table, message) -> None:
    hypothesis = Hypothesis(Universe.from_sizes({"a": 2, "b": 3}))
    before = hypothesis.marginal("ab")
    with pytest.raises(InvalidInput) as refusal:
        hypothesis.add_factor(attributes, table)
    assert str(refusal.value).startswith(message)
    assert hypothesis.marginal("ab") is before


def test_the_repr_shows_structure_only() -> None:
    universe = Universe.from_sizes({"a": 2, "b": 3})
    plain, trained = Hypothesis(universe), Hypothesis(universe)
    plain.add_factor("a", [0.0, 0.0])
    trained.add_factor("a", [0.125, 77.0])
    assert repr(plain) == repr(trained) == "Hypothesis(2 attributes, 6 cells, 1 factors, 1 cliques)"


# Kernels


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=6), st.data())
def test_folds_agree_with_numpy(shape, data) -> None:
    axes, onto = (tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(shape))))))) for _ in range(2))
    widen = data.draw(st.booleans())
    rng = np.random.default_rng(0)
    values = rng.random(shape)
    table = rng.random([shape[k] for k in axes])
    laid = table.reshape([n if k in axes else 1 for k, n in enumerate(shape)])
    fold = folds.fold(tuple(shape), axes, widen=widen)
    np.testing.assert_allclose(fold.sum(values), values.sum(axis=tuple(set(range(len(shape))) - set(axes))), rtol=1e-13)
    added = values.copy()
    fold.add(added, table)
    np.testing.assert_array_equal(added, values + laid)
    by, sums = folds.update_folds(tuple(shape), axes, onto)
    multiplied = values.copy()
    result = by.times(multiplied, table, sums)
    np.testing.assert_array_equal(multiplied, values * laid)
    expected = (values * laid).sum(axis=tuple(set(range(len(shape))) - set(onto)))
    np.testing.assert_allclose(result, expected, rtol=1e-13)


def test_folds_of_large_arrays_agree_with_numpy() -> None:
    rng = np.random.default_rng(1)
    for shape in ((2,) * 16, (10, 10, 10, 10, 10), (70, 3, 900), (5000, 2, 7), (3, 4000)):
        values = rng.random(shape)
        for _ in range(12):
            axes, onto = (tuple(np.flatnonzero(rng.random(len(shape)) < 0.4).tolist()) for _ in range(2))
            rest = tuple(set(range(len(shape))) - set(onto))
            np.testing.assert_allclose(folds.fold(shape, onto).sum(values), values.sum(axis=rest), rtol=1e-12)
            table = rng.random([shape[k] for k in axes])
            laid = table.reshape([n if k in axes else 1 for k, n in enumerate(shape)])
            by, sums = folds.update_folds(shape, axes, onto)
            result = by.times(values, table, sums)
            np.testing.assert_allclose(result, values.sum(axis=rest), rtol=1e-12)
            values /= laid


def test_the_polynomial_exponential_is_good_to_the_last_places() -> None:
    x = np.concatenate([np.linspace(-707.9, 0.0, 200_001), np.linspace(-2.0, 0.0, 200_001), [-0.0, -1e-300]])
    y = np.ones_like(x)
    total = kernels.exp_times(y, x, 0.0)
    np.testing.assert_allclose(y, np.exp(x), rtol=5e-16)
    assert total == pytest.approx(y.sum(), rel=1e-13)
    below = np.ones(3)
    kernels.exp_times(below, np.array([-709.0, -1e6, -1e300]), 0.0)
    np.testing.assert_array_equal(below, 0.0)


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 1000])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_extremes_are_found_and_a_value_that_is_not_finite_is_noticed_anywhere(size, bad) -> None:
    values = np.random.default_rng(size).normal(size=size)
    assert kernels.extremes(values) == (values.min(), values.max())
    for place in {0, size // 2, size - 1}:
        spoilt = values.copy()
        spoilt[place] = bad
        assert not math.isfinite(sum(kernels.extremes(spoilt)))


def test_raking_gives_records_the_weights_of_a_table() -> None:
    """The table is of some attributes, in its own order; records that share a cell keep their proportions."""
    rng = np.random.default_rng(12)
    columns = np.stack([rng.integers(0, m, 500) for m in (3, 4, 2, 5)]).astype(np.int32)
    target, before = rng.dirichlet(np.ones(30)), rng.random(500)
    chosen, strides = np.array([0, 2, 3]), np.array([10, 5, 1], np.int32)
    places = np.ravel_multi_index(tuple(columns[chosen]), (3, 2, 5))
    assert np.unique(places).size == 30
    weights = before.copy()
    kernels.rake(columns, chosen, strides, target, weights, np.empty(500, np.int32), np.empty(30))
    np.testing.assert_allclose(np.bincount(places, weights), target, rtol=1e-12)
    np.testing.assert_allclose(weights / before, (target / np.bincount(places, before))[places], rtol=1e-12)
