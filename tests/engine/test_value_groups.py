"""Rare values of wide attributes share one group inside the model, answers are about each value, and corrections add the rest."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.bars.error_bars import ErrorBars
from hedgerow.engine.practical.bars.merged_bars import MergedBars
from hedgerow.engine.practical.fit import value_groups as merging_module
from hedgerow.engine.practical.fit.corrections import rake_table
from hedgerow.engine.practical.fit.value_groups import ValueGroups, group_rare, group_shares
from hedgerow.engine.practical.free_answers import FittedModel, FreeAnswers
from hedgerow.engine.practical.measure import prefit as selection
from hedgerow.engine.practical.measure.prefit import Prefit
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded
from hedgerow.query.counts import bound

UNIVERSE = hr.Universe(pay=hr.Integers(0, 59), place=hr.Integers(0, 29), kind=hr.Integers(0, 3))
ROWS = 40_000


def people(seed: int = 0) -> np.ndarray:
    """Pay is rare at its upper end, and depends on the place; one cell of the two is large."""
    rng = np.random.default_rng(seed)
    pay = np.exp(-np.arange(60) / 8)[:, None] * rng.dirichlet(np.full(60, 0.5), 30).T
    table = (pay[:, :, None] * rng.dirichlet(np.full(4, 0.6), (60, 30))).ravel()
    table = 0.9 * table / table.sum()
    table.reshape(60, 30, 4)[50, 20, 1] += 0.1
    return rng.multinomial(ROWS, table).reshape(60, 30, 4)


COUNTS = people()
DATA = HistogramSource(UNIVERSE, COUNTS)


def opened(budget: hr.Budget | None = None, **options: Any) -> hr.Session:
    given = {"reserve": 0.3, "seed": 3, **options}
    return hr.open(DATA, universe=UNIVERSE, budget=budget or hr.Budget(1, 1e-6), **given)


def some_merging() -> ValueGroups:
    rng = np.random.default_rng(5)
    groups = {"pay": np.array([3, 1, 0, 0, 2] * 12), "place": np.arange(30) // 4}
    shares = {name: rng.random(g.size) for name, g in groups.items()}
    for name, g in groups.items():
        shares[name] /= np.bincount(g, shares[name])[g]
    return ValueGroups(UNIVERSE, groups, shares)


def random_queries(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    masks = [
        {n: rng.random(UNIVERSE[n].size) < 0.4 for n in names} for names in (("pay",), ("pay", "place"), UNIVERSE.names)
    ]
    return [bound(hr.count(m), UNIVERSE) for m in masks] + [
        bound(hr.linear(("pay", "kind"), rng.random((60, 4))), UNIVERSE),
        bound(hr.mean("pay", where=hr.count(kind=1)), UNIVERSE).numerator,
    ]


# Groups


@pytest.mark.parametrize("seed", range(5))
def test_common_values_are_alone_and_rare_ones_share_groups_of_about_as_many(seed) -> None:
    counts = np.random.default_rng(seed).exponential(30, 80) ** 1.5 - 20
    groups = group_rare(counts, 200.0)
    assert sorted(set(groups)) == list(range(groups.max() + 1))
    sizes = np.bincount(groups)
    assert (sizes[groups[counts >= 200]] == 1).all()
    rare = np.unique(groups[counts < 200])
    held = np.bincount(groups, np.maximum(counts, 0))[rare]
    assert (held >= 100).all() or len(rare) == 1
    assert (held < 600).all()


def test_shares_add_up_in_each_group_and_are_drawn_together_by_as_much_as_noise_spreads_them() -> None:
    rng, groups = np.random.default_rng(1), np.repeat([0, 1, 2], [40, 40, 1])
    true = np.concatenate([np.full(40, 50.0), np.linspace(0, 400, 40), [7.0]])
    noisy = true + rng.normal(0, 30, 81)
    found = group_shares(noisy, groups, 900.0)
    assert np.bincount(groups, found) == pytest.approx([1, 1, 1])
    assert (found > 0).all()
    assert np.ptp(found[:40]) < 0.5 * np.ptp(noisy[:40]) / noisy[:40].sum()  # what was noise alone is nearly level
    assert np.corrcoef(found[40:80], true[40:80])[0, 1] > 0.95


# Questions


def test_a_question_has_the_same_answer_about_groups_as_about_values() -> None:
    merging = some_merging()
    rng = np.random.default_rng(2)
    for query in random_queries(3):
        table = rng.dirichlet(np.ones(merging.inner.cells(query.attributes))).reshape(
            merging.inner.sizes(query.attributes)
        )
        by_values = merging.spread(query.attributes, table)
        assert by_values.shape == UNIVERSE.sizes(query.attributes)
        assert merging.sum_groups(query.attributes, by_values) == pytest.approx(table)
        assert merging.expected_question(query).dot(table) == pytest.approx(query.dot(by_values))


@pytest.mark.parametrize("event", [Gaussian(2**0.5, 3.0), Laplace(2.0, 4.0)], ids=["gaussian", "laplace"])
def test_a_group_has_the_noise_of_all_its_values_on_average(event) -> None:
    """The variance of a sum of k noisy counts is k times that of one, and groups have k values on average."""
    merging, names = some_merging(), ("pay", "place")
    found = merging.of_groups(Measurement(names, onto(COUNTS, UNIVERSE, names).astype(float), event))
    values, groups = UNIVERSE.cells(names), merging.inner.cells(names)
    assert found.variance == pytest.approx(Measurement(names, np.zeros(1), event).variance * values / groups)
    assert found.values.sum() == pytest.approx(ROWS)


def test_questions_about_very_many_values_are_those_that_a_matrix_of_groups_gives(monkeypatch) -> None:
    small = some_merging()
    monkeypatch.setattr(merging_module, "MOST_INDICATORS", 0)
    large = some_merging()
    for query in random_queries(2):
        expected, found = small.expected_question(query), large.expected_question(query)
        assert found.attributes == expected.attributes and found.table == pytest.approx(expected.table)


def test_a_question_lies_between_those_about_groups_around_it_on_every_table() -> None:
    merging = some_merging()
    rng = np.random.default_rng(4)
    wide = bound(hr.count(pay=(2, 59), place=(3, 20), kind={0, 2}), UNIVERSE)  # with whole groups inside
    assert merging.around(wide)[0].vectors
    for query in [*random_queries(5), wide]:
        below, above = merging.around(query)
        for _ in range(20):
            counts = rng.multinomial(500, rng.dirichlet(np.full(UNIVERSE.size, 0.01))).reshape(UNIVERSE.shape)
            low, value, high = (
                q.dot(onto(c, universe, q.attributes))
                for q, c, universe in (
                    (below, merging.sum_groups(UNIVERSE.names, counts), merging.inner), (query, counts, UNIVERSE),
                    (above, merging.sum_groups(UNIVERSE.names, counts), merging.inner),
                )
            )  # fmt: skip
            assert low <= value * (1 + 1e-12) <= high * (1 + 1e-12) ** 2
    whole = merging.groups["pay"] == 2
    below, above = merging.around(bound(hr.count(pay=whole), UNIVERSE))
    assert below == above


def onto(counts: np.ndarray, universe: hr.Universe, names: tuple[str, ...]) -> np.ndarray:
    return counts.sum(axis=tuple(i for i, n in enumerate(universe.names) if n not in names)).astype(float)


def test_records_of_groups_become_records_of_their_values_by_their_shares() -> None:
    merging = some_merging()
    rng, rows = np.random.default_rng(6), 200_000
    codes = np.column_stack([rng.integers(0, m, rows) for m in merging.inner.shape]).astype(np.int32)
    drawn = merging.draw_values(codes, rng.random((rows, 2)))
    for column, (name, groups) in enumerate(merging.groups.items()):
        assert np.array_equal(groups[drawn[:, column]], codes[:, column])
        expected = merging.spread((name,), np.bincount(codes[:, column]).astype(float))
        assert np.abs(np.bincount(drawn[:, column], minlength=groups.size) - expected).max() < 6 * np.sqrt(rows / 4)
    assert np.array_equal(drawn[:, 2], codes[:, 2])
    # and within two groups the values of one say nothing of those of the other
    one, other = merging.groups
    inner = np.zeros([merging.inner[name].size for name in (one, other)])
    np.add.at(inner, (codes[:, 0], codes[:, 1]), 1.0)
    joint = np.zeros([merging.universe[name].size for name in (one, other)])
    np.add.at(joint, (drawn[:, 0], drawn[:, 1]), 1.0)
    expected = merging.spread((one, other), inner)
    assert np.all(np.abs(joint - expected) < 6 * np.sqrt(expected) + 6)


# Sessions


def test_a_session_merges_rare_values_and_answers_about_each_within_its_bars() -> None:
    session = opened(hr.Budget(1, 1e-6, "add-remove"))
    merging = session._engine.knowledge.learned.merging
    assert merging.inner["pay"].size < 40 and merging.inner["kind"].size == 4
    for names in (("pay",), ("pay", "place"), ("pay", "kind"), UNIVERSE.names):
        found, truth = session.ask(hr.marginal(*names)), onto(COUNTS, UNIVERSE, names) / ROWS
        assert found.value.shape == truth.shape
        assert found.value.sum() == pytest.approx(1, abs=0.01)
        if found.error is not None:
            assert (np.abs(found.value - truth) <= found.error).all()
    for query in random_queries(7)[:4]:
        value, error = session._engine.knowledge.free(query, None)
        assert abs(value - query.dot(onto(COUNTS, UNIVERSE, query.attributes)) / ROWS) <= error


def test_a_question_about_groups_has_narrower_bars_than_one_that_divides_them() -> None:
    known = opened()._engine.knowledge
    groups = known.learned.merging.groups["pay"]
    whole = groups == np.bincount(groups).argmax()
    part = whole & (np.arange(60) == np.flatnonzero(whole)[0])
    names = {"place": np.arange(30) < 15}
    (low, low_part), (high, high_part) = known.bars.intervals(
        [bound(hr.count({"pay": mask, **names}), UNIVERSE) for mask in (whole, part)], known.rows
    )
    assert low_part <= low and 0 < high_part <= high + 1e-12
    assert high - low < 0.2


def test_a_value_in_a_group_has_no_bar_from_below_by_its_group() -> None:
    known = opened(hr.Budget(3, 1e-6))._engine.knowledge
    groups = known.learned.merging.groups["pay"]
    low, high = known.bars.cell_intervals(("pay", "kind"), known.rows)
    truth = onto(COUNTS, UNIVERSE, ("pay", "kind")) / ROWS
    assert (low <= truth).all() and (truth <= high).all()
    of_groups = known.bars._groups.cell_intervals(("pay", "kind"), known.rows)[0]
    several = np.bincount(groups) > 1
    assert (of_groups[several] > 0).any() and (low[several[groups]] == 0).all() and (low > 0).any()


@pytest.mark.parametrize("budget", [hr.Budget(1, 1e-6), hr.Budget(1, 1e-6, "add-remove"), hr.Budget(1, 0)], ids=str)
def test_a_session_with_merged_values_is_resumed_to_the_last_bit(budget) -> None:
    first = opened(budget)
    for question in (
        hr.count(pay=50),
        hr.count(pay=(3, 40), place={1, 2, 20}),
        hr.marginal("place", "kind"),
        hr.mean("pay"),
    ):
        with contextlib.suppress(hr.BudgetExceeded):
            first.ask(question, within=0.02)
    lines = list(hr.wire.ledger_lines(first.ledger))
    again = opened(budget, ledger=hr.wire.ledger_from_lines(lines, UNIVERSE))
    assert again.spent == first.spent and again.rows == first.rows
    state = first._engine.state()["learned"]
    public = None if budget.neighbours == "add-remove" else ROWS
    restored = FreeAnswers(FittedModel.restore(UNIVERSE, public, state), 0.05, public)
    for k in (1, 2, 3):
        for names in itertools.combinations(UNIVERSE.names, k):
            known = first.hypothesis.marginal(names)
            assert np.array_equal(again.hypothesis.marginal(names), known)
            assert np.array_equal(restored.hypothesis.marginal(names), known)
    later = hr.count(pay=(10, 55), kind=2)
    assert again.ask(later).value == first.ask(later).value and again.ask(later).error == first.ask(later).error


def test_measurements_of_single_values_are_believed() -> None:
    known, names = opened()._engine.knowledge, ("pay", "place")
    truth = onto(COUNTS, UNIVERSE, names)
    before = np.abs(known.hypothesis_table(names) - truth / ROWS).sum()
    noisy = truth + np.random.default_rng(11).normal(0, 3, truth.shape)
    known.learn(Measurement(names, noisy, Gaussian(2**0.5, 3.0)))
    assert np.abs(known.hypothesis_table(names) - truth / ROWS).sum() < 0.7 * before


def test_bars_of_merged_values_have_half_of_beta_each_whatever_was_merged(monkeypatch) -> None:
    """Noise decides the merges, so they must not decide the parts of β."""
    monkeypatch.setattr(merging_module, "group_rare", lambda counts, least: np.arange(counts.size))
    session = opened()
    known = session._engine.knowledge
    assert not known.learned.merging.groups
    query = bound(hr.count(kind=1), UNIVERSE)
    event = Gaussian(1.0, 1.0)
    one, half = MergedBars(known.learned.merging, 0.05), ErrorBars(UNIVERSE, 0.025)
    assert type(known.bars) is MergedBars
    assert one.width(query, event, alone=True) == half.width(query, event, alone=True)


def test_the_number_of_rows_of_merged_values_has_both_intervals(monkeypatch) -> None:
    known = opened(hr.Budget(3, 1e-6, "add-remove"))._engine.knowledge
    assert type(known.bars) is MergedBars and known.bars._has_values and known.bars._has_groups
    for one, other in [((90, 110), (95, 120)), ((80, 130), (100, 105))]:
        monkeypatch.setattr(known.bars._values, "rows", lambda one=one: RowCountInterval(100.0, *one, 1.0))
        monkeypatch.setattr(known.bars._groups, "rows", lambda other=other: RowCountInterval(100.0, *other, 1.0))
        found = known.bars.rows()
        assert (found.low, found.high) == (max(one[0], other[0]), min(one[1], other[1]))
        assert found.low <= found.estimate <= found.high


def test_a_hypothesis_with_merged_values_is_not_updated() -> None:
    with pytest.raises(hr.InvalidInput, match="must stay as it was fitted"):
        opened().hypothesis.add_factor(["kind"], np.zeros(4))


# What the model cannot hold

CHAIN = hr.Universe.from_sizes({"a": 12, "b": 12, "c": 12, "d": 2})


def dependent() -> np.ndarray:
    """Each pair of a, b and c depends strongly."""
    rng = np.random.default_rng(8)
    return rng.multinomial(50_000, rng.dirichlet(np.full(CHAIN.size, 0.05))).reshape(CHAIN.shape)


def outside(monkeypatch: pytest.MonkeyPatch) -> FittedModel:
    """Chosen with room for 1,500 cells: two of the three pairs, but not all three."""
    monkeypatch.setattr(selection, "OVERVIEW_CELLS", 0)
    monkeypatch.setattr(selection, "OVERVIEW_PAIRS", 0)
    monkeypatch.setattr(selection, "LARGEST_MODEL_CELLS", selection.MODEL_CELLS)
    budget = hr.Budget(20, 1e-6)
    workload = {t: 1.0 for t in itertools.combinations("abc", 2)}
    data = HistogramSource(CHAIN, dependent())
    prefit = Prefit(data, Seeded(4), workload, Allowance.of(Accountant(budget)), 50_000.0, model_cells=1500)
    return prefit.run()


def test_a_dependent_pair_that_does_not_fit_the_model_is_measured_and_corrects_every_answer_about_it(
    monkeypatch,
) -> None:
    learned = outside(monkeypatch)
    assert learned.outside
    hypothesis = learned.hypothesis()
    for pair in learned.outside:
        truth = onto(dependent(), CHAIN, pair) / 50_000
        model = np.abs(learned.model.marginal(pair) - truth).sum()
        assert np.abs(hypothesis.marginal(pair) - truth).sum() < 0.3 * model
        for names in itertools.combinations(CHAIN.names, 3):
            if set(pair) <= set(names):
                away = next(i for i, n in enumerate(names) if n not in pair)
                assert hypothesis.marginal(names).sum(axis=away) == pytest.approx(hypothesis.marginal(pair), abs=1e-5)
        mask = {pair[0]: np.arange(12) < 5, pair[1]: np.arange(12) > 7, "d": np.array([True, False])}
        query = bound(hr.count(mask), CHAIN)
        assert hypothesis.answer(query) == pytest.approx(query.dot(hypothesis.marginal(query.attributes)))


def test_records_have_the_tables_of_the_model_and_of_what_it_cannot_hold(monkeypatch) -> None:
    learned = outside(monkeypatch)
    hypothesis = learned.hypothesis()
    codes = hypothesis.sample(50_000, np.random.default_rng(9), rounded=True)
    for names in (*learned.outside, *learned.model.tops):
        cells = np.ravel_multi_index(tuple(codes[:, CHAIN.index(n)] for n in names), CHAIN.sizes(names))
        found = np.bincount(cells, minlength=CHAIN.cells(names)).reshape(CHAIN.sizes(names)) / 50_000
        assert np.abs(found - hypothesis.marginal(names)).sum() < 0.04
    assert np.abs(learned.model.marginal(learned.outside[0]) - hypothesis.marginal(learned.outside[0])).sum() > 0.1


def test_corrections_stay_as_they_were_when_more_is_learned(monkeypatch) -> None:
    learned = outside(monkeypatch)
    pair = learned.outside[0]
    before, again = learned.hypothesis(), learned.hypothesis()
    known = before.marginal(pair).copy()
    learned.add(learned.measurements[-1])
    learned.refit(20)
    assert np.array_equal(again.marginal(pair), known)


def test_raking_gives_the_sums_asked_for() -> None:
    rng = np.random.default_rng(10)
    truth = rng.dirichlet(np.ones(60)).reshape(3, 4, 5)
    targets = {("a", "b"): truth.sum(axis=2), ("b", "c"): truth.sum(axis=0)}
    found = rake_table(np.full((3, 4, 5), 1 / 60), ("a", "b", "c"), targets)
    assert found.sum(axis=2) == pytest.approx(targets["a", "b"]) and found.sum(axis=0) == pytest.approx(
        targets["b", "c"]
    )
