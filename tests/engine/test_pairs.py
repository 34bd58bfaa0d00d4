"""Sessions that measure all pairs of a table although no model holds them: the measurements and the answers."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.engine.practical.fit.interactions import CommonFactors, InteractionPrior, onto_simplex
from hedgerow.engine.practical.fit.residuals import coordinates
from hedgerow.engine.practical.free_answers import FittedModel
from hedgerow.engine.practical.measure import prefit
from hedgerow.engine.practical.measurement import along

SIZES = {name: size for name, size in zip("abcdefgh", (2, 5, 3, 7, 4, 6, 2, 5), strict=True)}
PAIRS = list(itertools.combinations(SIZES, 2))


@functools.cache
def table() -> pd.DataFrame:
    """Eight columns around a hidden one, and two of them that follow a third."""
    rng = np.random.default_rng(1)
    hidden = rng.integers(0, 6, 100_000)
    found = {
        name: np.where(rng.random(hidden.size) < 0.4, hidden % size, rng.integers(0, size, hidden.size))
        for name, size in SIZES.items()
    }
    found["f"] = np.where(rng.random(hidden.size) < 0.5, found["d"] % 6, found["f"])
    return pd.DataFrame(found)


@pytest.fixture(params=["replace", "add-remove"])
def session(request, monkeypatch) -> hr.Session:
    monkeypatch.setattr(prefit, "OVERVIEW_CELLS", 0)  # as if no model could hold all pairs
    monkeypatch.setattr(prefit, "PART_CELLS", 100)
    return hr.open(
        table(),
        universe=hr.Universe.from_json(SIZES),
        budget=hr.Budget(1, 1e-9, request.param),
        seed=3,
        progress=False,
    )


def true_table(names) -> np.ndarray:
    places = np.ravel_multi_index([table()[n].to_numpy() for n in names], [SIZES[n] for n in names])
    counts = np.bincount(places, minlength=math.prod(SIZES[n] for n in names))
    return counts.reshape([SIZES[n] for n in names])


def test_all_pairs_are_measured_by_one_charge_and_no_dependence_is_lost(session) -> None:
    drawn = [entry for entry in session.log if entry.why == "prefit: residuals"]
    assert len(drawn) == (1 if session.budget.neighbours == "replace" else 2)
    assert {tuple(s) for s in drawn[0].about["sets"]} == {*PAIRS, *((name,) for name in SIZES)}
    learned = session._engine.knowledge.learned
    assert not {*PAIRS} <= set(learned.model.sets)
    for pair in PAIRS:
        true = true_table(pair) / len(table())
        alone = np.multiply.outer(true.sum(axis=1), true.sum(axis=0))
        found = np.asarray(session.ask(hr.marginal(*pair)).value)
        if np.abs(true - alone).sum() > 0.02:
            assert np.abs(found - alone).sum() > 2 / 3 * np.abs(true - alone).sum()


def test_the_precision_of_a_pair_follows_its_cells_and_the_fewer_of_its_values(session) -> None:
    """√cells·(1 + 8/m²), m the fewer values: a pair of flags has nearly that of two columns of five."""
    entry = next(entry for entry in session.log if entry.why == "prefit: residuals")
    drawn = dict(zip(map(tuple, entry.about["sets"]), entry.about["times"], strict=True))
    sizes = {pair: [SIZES[name] for name in pair] for pair in PAIRS}
    wanted = {pair: math.sqrt(math.prod(m)) * (1 + 8 / min(m) ** 2) for pair, m in sizes.items()}
    first = drawn[PAIRS[0]] / wanted[PAIRS[0]]
    for pair in PAIRS:
        assert drawn[pair] == pytest.approx(first * wanted[pair], rel=0.05)


@pytest.mark.parametrize(("neighbours", "parts"), [("add-remove", 1), ("replace", 2)])
def test_pairs_with_a_flag_have_their_share_of_the_budget_of_pairs(monkeypatch, neighbours, parts) -> None:
    """A thirtieth for each of 28 pairs, here at most .75; under replace-one at half the precision.

    Their precisions keep their proportions, and so do those of other pairs.
    """
    monkeypatch.setattr(prefit, "MOST_OF_FLAGS", 0.75)
    usual, more = (times_of_overview(monkeypatch, share, neighbours) for share in (0.0, 1 / 30))
    assert sorted(usual) == sorted(more)
    cost = {pair: k * math.prod(1 - 1 / SIZES[name] for name in pair) for pair, k in more.items() if len(pair) == 2}
    flags = {pair for pair in cost if 2 in (SIZES[pair[0]], SIZES[pair[1]])}
    own = parts * sum(cost[pair] for pair in flags)
    assert own / (own + sum(cost[pair] for pair in cost.keys() - flags)) == pytest.approx(0.75, abs=0.01)
    for some in (flags, cost.keys() - flags):
        ratios = [more[pair] / usual[pair] for pair in some]
        assert max(ratios) == pytest.approx(min(ratios), rel=0.05)
    assert times_of_overview(monkeypatch, 1.0, neighbours) == more


def times_of_overview(monkeypatch, share: float, neighbours="add-remove", ledger=None) -> dict[tuple[str, ...], int]:
    monkeypatch.setattr(prefit, "OVERVIEW_CELLS", 0)
    monkeypatch.setattr(prefit, "PART_CELLS", 100)
    monkeypatch.setattr(prefit, "FLAGS_SHARE", share)
    budget = hr.Budget(1, 1e-9, neighbours)
    opened = hr.open(
        table(), universe=hr.Universe.from_json(SIZES), budget=budget, seed=3, progress=False, ledger=ledger
    )
    about = next(entry for entry in opened.log if entry.why == "prefit: residuals").about
    opened.close()
    return dict(zip(map(tuple, about["sets"]), about["times"], strict=True))


def test_an_interrupted_opening_keeps_the_noise_that_its_overview_was_planned_with(monkeypatch, tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/begun.ledger"
    with monkeypatch.context() as earlier, pytest.raises(Interrupted):
        earlier.setattr(FittedModel, "refit", lambda *given: (_ for _ in ()).throw(Interrupted))
        times_of_overview(earlier, 0.0, ledger=url)
    assert times_of_overview(monkeypatch, 1 / 30, ledger=url) == times_of_overview(monkeypatch, 0.0)


def test_the_noise_of_every_residual_is_what_its_measurement_says(session) -> None:
    """In every pair, and of all pairs together to a few hundredths."""
    off = []
    for m in session._engine.measurements:
        if m.residual and m.attributes:
            by = along(m.values.shape)
            true = coordinates(true_table(m.attributes), 2.0**-20, by)
            z = m.values
            for axis, each in enumerate(by):
                z = np.moveaxis(np.tensordot(each.inverse.T, z, axes=(1, axis)), 0, axis)
            off.append(((z - true) / m.event.sigma).ravel())
    assert not any(m.ranged for m in session._engine.measurements)
    together = np.concatenate(off)
    assert np.square(together).mean() == pytest.approx(1, abs=5 * math.sqrt(2 / together.size))
    assert max(np.square(each).mean() for each in off if each.size >= 12) < 3.5


def test_a_larger_table_sums_to_the_estimates_of_its_pairs(session) -> None:
    hypothesis = session._engine.knowledge.hypothesis
    whole = hypothesis.marginal(("b", "d", "f"))
    for i, pair in enumerate([("d", "f"), ("b", "f"), ("b", "d")]):
        assert np.abs(whole.sum(axis=i) - hypothesis.marginal(pair)).sum() < 0.004


def test_a_resumed_model_gives_the_same_answers(session) -> None:
    learned = session._engine.knowledge.learned
    public = 1.0 * len(table()) if session.budget.neighbours == "replace" else None
    again = FittedModel.restore(learned.universe, public, learned.state())
    for names in (*PAIRS, ("a", "b", "h")):
        assert np.array_equal(again.hypothesis().marginal(names), learned.hypothesis().marginal(names))


def test_noise_is_shrunk_away_and_what_stands_out_of_it_is_kept() -> None:
    rng = np.random.default_rng(0)
    believed = np.full((8, 12), 400.0)
    signal = np.zeros((8, 12))
    signal[2, 3], signal[5, 7] = 900.0, -350.0
    noise = [rng.normal(0, 60, (8, 12)) for _ in range(21)]
    prior = InteractionPrior.fit(
        [(believed, each, 3600.0) for each in noise[1:]] + [(believed, signal + noise[0], 3600.0)]
    )
    quiet = prior.shrink(believed, noise[1], 3600.0)
    assert np.abs(quiet).mean() < 0.15 * np.abs(noise[1]).mean()
    loud = prior.shrink(believed, signal + noise[0], 3600.0)
    assert np.abs(loud - signal).mean() < 0.5 * np.abs(noise[0]).mean()
    assert loud[2, 3] > 700 and loud[5, 7] < -150


def test_an_empty_cell_is_found_empty_where_most_cells_are_as_believed() -> None:
    rng = np.random.default_rng(0)
    believed = np.full((10, 20), 300.0)
    true = believed.copy()
    true[:, ::5] = 0.0
    off = true - believed + rng.normal(0, 60, believed.shape)
    found = believed + InteractionPrior.fit([(believed, off, 3600.0)]).shrink(believed, off, 3600.0)
    assert np.abs(found[:, ::5]).mean() < 0.4 * np.abs(believed + off)[:, ::5].mean()


def deviations_of_pairs(directions: int) -> tuple[dict[str, int], dict, dict, dict]:
    """True deviations of all pairs along a few common directions, the same with noise, and its variances."""
    rng = np.random.default_rng(2)
    sizes = {f"a{i}": 4 + i for i in range(8)}
    scores = {name: 40 * rng.normal(size=(size, directions)) / np.sqrt(size) for name, size in sizes.items()}
    pairs = list(itertools.combinations(sizes, 2))
    true = {(a, b): scores[a] @ scores[b].T for a, b in pairs}
    variances = {(a, b): 3e3 / math.sqrt(sizes[a] * sizes[b]) for a, b in pairs}
    noisy = {pair: t + rng.normal(0, math.sqrt(variances[pair]), t.shape) for pair, t in true.items()}
    return sizes, true, noisy, variances


def test_common_directions_of_all_pairs_are_found_and_noise_has_hardly_any() -> None:
    sizes, true, noisy, variances = deviations_of_pairs(2)
    factors = CommonFactors.fit(sizes, noisy, variances)
    off, wanted, expected = 0.0, 0.0, 0.0
    for pair, t in true.items():
        common = factors.of_pair(pair, variances[pair])
        off += np.square(common.off - t).sum()
        wanted += np.square(noisy[pair] - t).sum()
        expected += common.noise.sum()
    assert off < 0.6 * wanted
    assert expected < off < 4 * expected  # the noise that is said to be left, and what no direction of theirs explains
    alone = CommonFactors.fit(sizes, {pair: noisy[pair] - t for pair, t in true.items()}, variances)
    assert len(alone.signs) <= 1


def test_common_factors_change_little_where_deviations_do() -> None:
    """Directions may turn and change places; what they say of a pair may not."""
    sizes, _, noisy, variances = deviations_of_pairs(3)
    moved = {pair: t + 1e-7 * (-1) ** np.arange(t.size).reshape(t.shape) for pair, t in noisy.items()}
    first, second = CommonFactors.fit(sizes, noisy, variances), CommonFactors.fit(sizes, moved, variances)
    for pair, variance in variances.items():
        a, b = first.of_pair(pair, variance), second.of_pair(pair, variance)
        np.testing.assert_allclose(a.off, b.off, atol=1e-4)
        np.testing.assert_allclose(a.noise, b.noise, atol=1e-4)


def test_the_prior_of_an_earlier_fit_has_no_empty_cells_and_no_factors() -> None:
    weights = np.full(13, 1 / 13)
    prior = InteractionPrior.restore({"a": 2}, {"interactions": weights})
    assert prior.weights.tolist() == [*weights, 0.0] and not len(prior.factors.signs)


class Interrupted(Exception):
    pass


def test_an_opening_that_began_with_single_attributes_goes_on_with_them(monkeypatch, tmp_path) -> None:
    """An earlier version measured all pairs only where there is less noise."""

    def opened(ledger: str) -> hr.Session:
        budget = hr.Budget(1, 1e-9, "replace")
        return hr.open(
            table(), universe=hr.Universe.from_json(SIZES), budget=budget, seed=3, progress=False, ledger=ledger
        )

    monkeypatch.setattr(prefit, "OVERVIEW_CELLS", 0)
    url, refit = f"sqlite:///{tmp_path}/begun.ledger", FittedModel.refit
    with monkeypatch.context() as earlier:
        earlier.setattr(prefit, "OVERVIEW_NOISE", 0.0)
        earlier.setattr(FittedModel, "refit", lambda *given: (_ for _ in ()).throw(Interrupted))
        with pytest.raises(Interrupted):
            opened(url)
    assert FittedModel.refit is refit
    monkeypatch.setattr(prefit, "EARLIER_OVERVIEW_NOISE", 0.0)
    again, fresh = opened(url), opened(f"sqlite:///{tmp_path}/fresh.ledger")
    assert not any(entry.why == "prefit: residuals" for entry in again.log)
    assert any(entry.why == "prefit: residuals" for entry in fresh.log)
    again.close()
    fresh.close()


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_is_the_nearest_table_of_that_total(seed) -> None:
    """v − projection is one number wherever the projection is above 0, and no more elsewhere (Karush, Kuhn and Tucker)."""
    v = np.random.default_rng(seed).normal(3, 10, (4, 6))
    found = onto_simplex(v, 50.0)
    assert found.sum() == pytest.approx(50) and found.min() >= 0
    shift = (v - found)[found > 0]
    assert np.ptp(shift) < 1e-9 and (v[found == 0] <= shift.max() + 1e-9).all()
