"""Wide tables are fitted to sums over blocks of their cells too, and a release measures what its noise allows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data.source import HistogramSource
from hedgerow.engine.practical.fit import corrections
from hedgerow.engine.practical.fit.corrections import as_target, blocks
from hedgerow.engine.practical.measure.prefit import Prefit
from hedgerow.model import log_linear
from hedgerow.model.log_linear import LocalModel
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded

ROWS, SIGMA = 40_000.0, 25.0


def diagonal(size: int = 64) -> np.ndarray:
    """Two numbers that are never far apart."""
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.where(apart <= 6, 1.0, 0.0) / (apart <= 6).sum()


def noisy(seed: int) -> np.ndarray:
    return ROWS * diagonal() + np.random.default_rng(seed).normal(0, SIGMA, diagonal().shape)


def independent() -> np.ndarray:
    table = diagonal()
    return np.multiply.outer(table.sum(axis=1), table.sum(axis=0))


def fit(counts: np.ndarray) -> np.ndarray:
    local = LocalModel(("x", "y"), independent(), [("x", "y")])
    log_linear.minimize(local, [as_target(ROWS, independent(), counts, SIGMA**2)], ROWS, steps=300, tolerance=1e-6)
    return local.table()


def test_an_effect_that_only_all_cells_together_show_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An independent guess has two fifths of the rows far beside the diagonal, where there are none."""
    far = np.abs(np.subtract.outer(np.arange(64), np.arange(64))) > 16
    assert independent()[far].sum() > 0.4
    with_blocks = [fit(noisy(seed))[far].sum() for seed in range(3)]
    monkeypatch.setattr(corrections, "STRIDES", ())
    without = [fit(noisy(seed))[far].sum() for seed in range(3)]
    assert np.mean(with_blocks) < 0.5 * np.mean(without)


def test_a_fit_with_blocks_is_the_optimum_of_its_objective() -> None:
    """n·log Z − ⟨θ, y⟩ + the least ½Σa·u² of parts u that add up to θ: (D + Σ U A⁻¹ Uᵀ)⁻¹ as its matrix."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    prior = rng.dirichlet(np.ones(24 * 2)).reshape(24, 2)
    counts = 500 * prior + rng.normal(0, 5, prior.shape)
    wanted = as_target(500.0, prior, counts, 25.0)
    assert [b.ridge.size for b in wanted.blocks] == [12]  # of 24 values blocks of 4, and none of 16
    local = LocalModel(("x", "y"), prior, [("x", "y")])
    log_linear.minimize(local, [wanted], 500.0, steps=2000, tolerance=1e-16)
    covariance = np.diag(1 / wanted.ridge.ravel())
    for b in wanted.blocks:
        member = np.eye(b.ridge.size)[b.place]
        covariance += member / b.ridge @ member.T
    precision = np.linalg.inv(covariance)

    def objective(θ):
        log_z, means = local.evaluate(θ)
        return 500 * log_z - θ @ counts.ravel() + 0.5 * θ @ precision @ θ, 500 * means - counts.ravel() + precision @ θ

    plain = minimize(objective, np.zeros(48), jac=True, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000})
    assert objective(local.theta)[0] == pytest.approx(plain.fun, abs=1e-6)
    assert local.theta == pytest.approx(plain.x, abs=1e-3)


def test_a_fit_goes_on_where_the_last_one_ended() -> None:
    """Parts of the last fit's parameters are those that cost least, so that its end is its next beginning."""
    prior = independent()
    local, wanted = LocalModel(("x", "y"), prior, [("x", "y")]), as_target(ROWS, prior, noisy(1), SIGMA**2)
    ended = log_linear.minimize(local, [wanted], ROWS, steps=2000, tolerance=1e-10)
    θ = local.theta.copy()
    assert log_linear.minimize(local, [wanted], ROWS, steps=50, tolerance=1e-10) == pytest.approx(ended, rel=1e-9)
    assert local.theta == pytest.approx(θ, abs=1e-2 * np.abs(θ).max())


@pytest.mark.parametrize(("shape", "sizes"), [
    ((64, 64), [256, 16]), ((64, 5), [80, 20]), ((23, 23), []), ((500,), []), ((24, 3, 2), [36]), ((31, 32), [64, 62]),
])  # fmt: skip
def test_blocks_are_of_wide_attributes_and_have_the_noise_of_their_sums(shape, sizes) -> None:
    prior = np.full(shape, 1 / np.prod(shape))
    found = blocks(1000.0, prior, 1000 * prior, 4.0)
    assert [b.ridge.size for b in found] == sizes
    for b in found:
        cells = np.bincount(b.place)
        assert cells.sum() == prior.size
        believed = np.maximum(1000 * cells / prior.size, 0.01 * np.sqrt(4 * cells))
        assert b.ridge == pytest.approx(np.maximum(4 * cells / believed, 0.2 * np.sqrt(4 * cells)))


SIZES = {"a": 3, "b": 4, "c": 2, "d": 3}


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(("epsilon", "largest"), [(50.0, 3), (0.05, 2)])
def test_a_release_measures_triples_without_choosing_only_where_their_noise_is_small(
    neighbours, epsilon, largest
) -> None:
    universe = hr.Universe.from_sizes(SIZES)
    counts = (
        np.random.default_rng(2).multinomial(20_000, np.full(universe.size, 1 / universe.size)).reshape(universe.shape)
    )
    budget = hr.Budget(epsilon, 1e-6, neighbours)
    accountant = Accountant(budget)
    workload = {t: 1.0 for k in (1, 2, 3) for t in itertools.combinations(SIZES, k)}
    rows = 20_000.0 if neighbours == "replace" else None
    prefit = Prefit(HistogramSource(universe, counts), Seeded(3), workload, Allowance.of(accountant), rows)
    learned = prefit.run(everything=True)
    assert learned.overview is not None
    assert max(map(len, learned.overview.sets)) == largest  # what is chosen later is no part of it
    assert accountant.spent == pytest.approx(budget.total, rel=1e-6)
    assert (learned.measurements[0].attributes == ()) == (neighbours == "add-remove")
