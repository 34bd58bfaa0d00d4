"""Sessions that measure all pairs of a table although no model holds them: the measurements and the answers."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.engine.practical.contrasts import along
from hedgerow.engine.practical.fit.interactions import InteractionPrior, onto_simplex
from hedgerow.engine.practical.fit.residuals import coordinates
from hedgerow.engine.practical.free_answers import FittedModel
from hedgerow.engine.practical.measure import prefit

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


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_is_the_nearest_table_of_that_total(seed) -> None:
    """v − projection is one number wherever the projection is above 0, and no more elsewhere (Karush, Kuhn and Tucker)."""
    v = np.random.default_rng(seed).normal(3, 10, (4, 6))
    found = onto_simplex(v, 50.0)
    assert found.sum() == pytest.approx(50) and found.min() >= 0
    shift = (v - found)[found > 0]
    assert np.ptp(shift) < 1e-9 and (v[found == 0] <= shift.max() + 1e-9).all()
