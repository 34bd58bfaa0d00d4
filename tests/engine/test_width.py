"""Wide tables: candidates, joint choices, and an overview that no model can hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource, Table
from hedgerow.engine.practical import free_answers
from hedgerow.engine.practical.measure import candidates
from hedgerow.engine.practical.measure import prefit as selection
from hedgerow.engine.practical.measure.candidates import Candidates, EverySmallSet, ListedSets, distance
from hedgerow.engine.practical.measure.prefit import Prefit
from hedgerow.model.log_linear import LogLinear
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded

UNIVERSE = hr.Universe.from_sizes({"a": 2, "b": 3, "only": 1, "c": 2, "d": 4, "e": 2})
VARYING = ("a", "b", "c", "d", "e")


def every_set(universe: hr.Universe) -> ListedSets:
    orders = [list(itertools.combinations(universe.names, k)) for k in (1, 2, 3)]
    return ListedSets(universe, {names: 1 / len(sets) for sets in orders for names in sets})


def test_all_small_sets_ask_what_they_ask_one_by_one() -> None:
    listed, every = every_set(UNIVERSE), EverySmallSet(UNIVERSE)
    assert every.pairs() == listed.pairs()
    assert every.larger({}) == listed.larger({})
    assert {t: pytest.approx(w) for t, w in every.tables().items()} == listed.tables()
    shares = {name: 0.1 * (i + 1) for i, name in enumerate(VARYING)}
    for names in [(), *listed.tables()]:
        assert every.above(names, shares) == pytest.approx(listed.above(names, shares))
    assert listed.above(("a",), dict.fromkeys(VARYING, 1.0)) == pytest.approx(listed.often("a"))
    for name in VARYING:
        assert every.often(name) == pytest.approx(listed.often(name))


def test_the_weight_of_a_set_is_how_often_its_attributes_are_asked_about() -> None:
    listed = ListedSets(UNIVERSE, {("a", "b"): 2.0, ("b", "c", "d"): 1.0, ("only", "e"): 3.0})
    sets = [("a", "b"), ("b", "c"), ("a", "e"), ("b", "c", "d")]
    expected = [sum(w * len({*c} & {*t}) for t, w in listed.tables().items()) for c in sets]
    assert listed.weights(sets) == expected


@pytest.mark.parametrize("made", [EverySmallSet, every_set])
def test_among_many_larger_sets_those_that_the_model_joins_are_candidates(made, monkeypatch) -> None:
    monkeypatch.setattr(candidates, "MOST_LISTED", 3)
    links = {"a": {"a", "b"}, "b": {"a", "b", "d"}, "d": {"b", "d"}, "c": {"c", "e"}, "e": {"c", "e"}}
    asked = made(UNIVERSE)
    assert asked.larger(links) == [("a", "b", "d")]
    monkeypatch.setattr(candidates, "MOST_NEAR", 2)
    everything = {name: set(VARYING) for name in VARYING}
    assert len(asked.larger(everything)) == 2


@pytest.mark.parametrize("most", [0, 10**6], ids=["table by table", "as a matrix"])
def test_scores_are_of_each_candidate_by_itself(most, monkeypatch) -> None:
    """Distances, discounts and beliefs, whether pairs are one matrix or not."""
    monkeypatch.setattr("hedgerow.engine.practical.measure.candidates.MOST_VALUES", most)
    rng = np.random.default_rng(1)
    data = HistogramSource(UNIVERSE, rng.integers(0, 40, UNIVERSE.size))
    sets = [("a",), ("b",), ("c",), ("d",), ("e",), ("a", "b"), ("b", "c"), ("c", "d")]
    model = LogLinear(UNIVERSE, sets)
    model.settle(rng.normal(size=model.theta.size))
    offered = Candidates(UNIVERSE, EverySmallSet(UNIVERSE)).offer(model, 10**6)
    assert offered.sets == [*itertools.combinations(VARYING, 2), *itertools.combinations(VARYING, 3)]
    own = {("a", "b", "c"): 2.0}  # a set of three, whose residual alone would be measured
    found = zip(
        offered.sets,
        offered.distances(data.marginals, 5e3),
        offered.discounts(3.0, 0.5, 5e3, own).tolist(),
        strict=True,
    )
    for names, far, discount in found:
        believed = model.marginal(names)
        np.testing.assert_allclose(offered.model_table(names), believed, atol=1e-13)
        assert abs(far - distance(data.marginal(names), 5e3 * believed)) <= 1  # a half may be rounded either way
        noise = own.get(names, 3.0)
        assert discount == pytest.approx(float(np.minimum(noise, 0.5 * 5e3 * believed).sum()))


def test_candidates_keep_the_model_within_its_limit() -> None:
    model = LogLinear(UNIVERSE, [("a",), ("b",), ("c",), ("d",), ("e",), ("a", "b"), ("b", "c")])
    candidates = Candidates(UNIVERSE, EverySmallSet(UNIVERSE))
    cells = model.tree.cells
    for limit in (cells, cells + 6, cells + 20):
        offered = candidates.offer(model, limit)
        larger = [LogLinear(UNIVERSE, [*model.sets, names]).tree.cells for names in offered.sets]
        assert max(larger) <= limit
    assert len(candidates.offer(model, 1).sets) == 1


def chained(count: int, rows: int, seed: int) -> Table:
    """Flags, each like the one before it nine times in ten."""
    rng = np.random.default_rng(seed)
    cells = np.cumsum(rng.random((rows, count)) < 0.1, axis=1) % 2
    universe = hr.Universe.from_sizes({f"x{i:02}": 2 for i in range(count)})
    import pandas as pd

    return Table(pd.DataFrame(cells, columns=list(universe.names)), universe)


def prefitted(data: Table, budget: hr.Budget, seed: int = 0) -> tuple[Prefit, Accountant]:
    account = Accountant(budget)
    prefit = Prefit(data, Seeded(seed), EverySmallSet(data.universe), Allowance.of(account), float(data.rows))
    prefit.run()
    return prefit, account


def test_tables_chosen_together_share_at_most_one_attribute_and_all_is_spent(monkeypatch) -> None:
    monkeypatch.setattr(selection, "OVERVIEW_PAIRS", 0)
    data = chained(24, 3000, 0)
    prefit, account = prefitted(data, hr.Budget(2, 1e-6))
    assert account.spent == pytest.approx(account.budget.total, rel=1e-6)
    entries = [entry.why for entry in account.entries()]
    runs = [len(list(group)) for why, group in itertools.groupby(entries) if why == "prefit: choice"]
    assert max(runs) == 24 // selection.AT_ONCE + 2
    measured = [m.attributes for m in prefit.learned.measurements][-sum(runs) :]
    for many in runs:
        for one, other in itertools.combinations(measured[:many], 2):
            assert len({*one} & {*other}) <= 1
        measured = measured[many:]


def test_an_overview_that_no_model_holds_teaches_it_the_strongest_pairs(monkeypatch) -> None:
    """All pairs of a chain of 24 flags are measured; the model takes neighbours, and knows what is far apart."""
    data = chained(24, 200_000, 1)
    prefit, account = prefitted(data, hr.Budget(1, 1e-6))
    assert prefit.learned.overview is not None
    assert account.spent == pytest.approx(account.budget.total, rel=1e-6)
    neighbours = list(itertools.pairwise(data.universe.names))
    assert {*neighbours} <= {*prefit.learned.model.sets}
    assert prefit.learned.model.tree.cells < selection.MODEL_CELLS
    for names in [*neighbours, ("x00", "x05"), ("x02", "x23")]:
        off = np.abs(prefit.learned.model.marginal(names) - data.marginal(names) / data.rows)
        assert off.max() < 0.005


def test_a_wide_session_answers_within_its_bars() -> None:
    data = chained(24, 3000, 2)
    session = hr.open(data, universe=data.universe, budget=hr.Budget(1, 1e-6), seed=3)
    names = data.universe.names
    for pair in [names[:2], names[4:6], (names[0], names[9]), (names[3], names[20])]:
        answer = session.ask(hr.marginal(*pair))
        off = np.abs(answer.value - data.marginal(pair) / data.rows)
        assert (off <= answer.error).all()
        assert not math.isnan(off.max())


def wide(attributes: int) -> hr.Universe:
    return hr.Universe.from_sizes({f"a{i}": 2 for i in range(attributes)})


def test_the_room_of_many_attributes_follows_from_their_values(monkeypatch) -> None:
    """For 40 attributes of 80 values, 88 × 80 cells have room for a model of 88 cells and not for one of 89; few attributes do."""
    names = ("a0", "a1", "a2", "a3")  # in one clique, and 36 others of two cells each
    for messages, fits in ((88 * 80, True), (88 * 80 - 1, False)):
        monkeypatch.setattr(free_answers, "ROOM_MESSAGES", messages)
        assert free_answers.FittedModel.nothing(wide(40)).has_room(names) is fits
        assert free_answers.FittedModel.nothing(wide(30)).has_room(names)


def test_a_wide_model_grows_as_far_as_its_answers_go_through_it_and_the_rest_corrects(monkeypatch) -> None:
    monkeypatch.setattr(selection, "OVERVIEW_PAIRS", 0)
    data, budget = chained(40, 20_000, 0), hr.Budget(8, 1e-6)
    found = []
    for cells in (150, 170):
        messages = 80 * cells  # of 80 values, for a model of so few cells
        monkeypatch.setattr(selection, "MOST_MESSAGES", messages * selection.MODEL_CELLS // 100)
        account = Accountant(budget)
        asked, allowance = EverySmallSet(data.universe), Allowance.of(account)
        # 200 cells in all, of which 40 attributes have three quarters while it is chosen what to measure
        learned = Prefit(data, Seeded(0), asked, allowance, float(data.rows), model_cells=100).run()
        assert account.spent == pytest.approx(account.budget.total, rel=1e-6)
        assert learned.model.tree.cells <= cells
        assert learned.outside
        found.append(learned.model.tree.cells)
    assert found[0] < found[1]


def test_among_measured_tables_a_strong_pair_enters_the_model_before_a_stronger_triple(monkeypatch) -> None:
    """There is room for one of them: records follow the pair, and answers about the triple are corrected."""
    monkeypatch.setattr(selection, "OVERVIEW_CELLS", 0)
    universe = hr.Universe.from_sizes({"a": 8, "b": 8, "c": 8, "p": 12, "q": 12})
    rng = np.random.default_rng(3)
    a, b, p = (rng.integers(0, m, 60_000) for m in (8, 8, 12))
    q = np.where(rng.random(60_000) < 0.5, p, rng.integers(0, 12, 60_000))
    columns = {"a": a, "b": b, "c": (a + b) % 8, "p": p, "q": q}
    data = Table(pd.DataFrame(columns), universe)
    workload = {t: 1.0 for t in itertools.combinations(universe.names, 3)}
    allowance = Allowance.of(Accountant(hr.Budget(20, 1e-6)))
    learned = Prefit(data, Seeded(1), workload, allowance, 60_000.0, model_cells=300).run(everything=True)
    assert ("p", "q") in learned.model.sets
    assert ("a", "b", "c") in learned.outside and learned.model.tree.cells <= 600
    hypothesis = learned.hypothesis()
    for names in (("a", "b", "c"), ("p", "q")):
        truth = data.marginal(names) / 60_000
        assert np.abs(hypothesis.marginal(names) - truth).sum() < 0.1
        apart = np.abs(learned.model.marginal(names) - truth).sum()
        assert apart > 1 if names in learned.outside else apart < 0.1
