"""Convex questions on neighbours that attain the billed sensitivity: one row's slope turns as far as it can.

Neighbours. Huber's loss with a narrow width has the slope ∓width for labels of ±1, wherever θ is in a small ball. So a
sum of gradients does not depend on θ, a ridge alone decides the minimum, and the excess risk is linear. Each of them
moves by exactly its sensitivity when a row at a = 1 turns from y = 1 to −1. Rows at a = −1, whose features are
orthogonal to that row's, make the hypothesis so wrong that the guard, which has a small share of the budget, nearly
always says so.

Statistic. All that an oracle draws, along the features of the row that turns. This is more than the oracle releases,
and it is the likelihood ratio.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from hedgerow import losses
from hedgerow.convex.sets import L2Ball
from hedgerow.data import HistogramSource
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.research.audit_cases.erm_cases import RecordingNoise
from hedgerow.textbook import convex_offline, convex_pmw, oracles, sparse_vector
from hedgerow.textbook.localized_oracle import LocalizedOracle
from hedgerow.universe.universe import Universe

PLANE = Universe.from_sizes({"y": 2, "a": 2})
CLAIM = Budget(4.0, 0.05)
GUARD = 0.05  # share of the budget for the guard; the oracle has the rest
WIDTH, RADIUS, RIDGE = 0.25, 0.25, 0.05
BALL = L2Ball(RADIUS)
NORM = math.sqrt(2)  # norm of the features: ±1 and the intercept
ENOUGH = 0.55  # error for which noisy descent takes few steps, as a share of S


@dataclass(frozen=True)
class Family:
    """An oracle, a loss of its family, and a table: pairs of rows that pull either way, and other rows beside them."""

    oracle: oracles.Oracle
    scale: float
    pairs: int
    aside: int
    ridge: float = 0.0

    @property
    def loss(self) -> losses.Loss:
        """The Huber loss of the family."""
        return losses.Huber(target="y", features=("a",), width=WIDTH, ridge=self.ridge)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return 2 * self.pairs + self.aside

    @property
    def tables(self) -> tuple[HistogramSource, HistogramSource]:
        """The two neighbours."""
        up, down = ([[0, self.pairs + d], [self.aside, self.pairs - d]] for d in (0, 1))
        return HistogramSource(PLANE, np.array(up)), HistogramSource(PLANE, np.array(down))


L, DIAMETER, RIDGED = WIDTH * NORM, 2 * RADIUS, WIDTH * NORM + RIDGE * RADIUS
FAMILIES: dict[str, Family] = {
    "noisy descent": Family(oracles.NoisyGradientDescentOracle(L, DIAMETER, 2), L * DIAMETER, 10, 1000),
    "regularised output perturbation": Family(
        oracles.RegularizedOutputPerturbationOracle(L, RADIUS, 2, L * DIAMETER), L * DIAMETER, 20_000, 600
    ),
    "output perturbation": Family(
        oracles.OutputPerturbationOracle(RIDGED, RIDGE, 2, RIDGED * DIAMETER), RIDGED * DIAMETER, 20_000, 1000, RIDGE
    ),
    "localised output perturbation": Family(
        LocalizedOracle(L, DIAMETER, RADIUS, 2, cells=4, smoothness=NORM**2), L * DIAMETER, 20_000, 200
    ),
}  # fmt: skip


@functools.cache
def config(name: str) -> convex_pmw.ConvexPMWConfig:
    """Return a configuration of one round whose threshold is nearly zero."""
    family = FAMILIES[name]
    S, rows = family.scale, family.rows
    plan = family.oracle.plan(CLAIM, (1 - GUARD) * (1 - 1e-9) * CLAIM.total, rows, 0.1, ENOUGH * S)
    assert plan is not None
    sensitivity = CLAIM.bounded_sum(S) + 2 * convex_pmw.NUMERICAL * S
    epsilon = Amount(CLAIM, GUARD * (1 - 1e-9) * CLAIM.total).round_epsilon()
    guard = sparse_vector.guard_round(epsilon, sensitivity=sensitivity)
    return convex_pmw.ConvexPMWConfig(rows, 4, 4, 1e-4 * S, 0.1, "hoeffding", S, 1, guard, family.oracle, plan)


def online(name: str, data: HistogramSource, noise: Noise) -> float:
    """Return the statistic of one run of online convex PMW."""
    overheard = RecordingNoise(noise)
    mechanism = convex_pmw.OnlineConvexPMW(config(name), data, Accountant(CLAIM), overheard)
    mechanism.ask(FAMILIES[name].loss.on(PLANE), BALL)
    return _along_the_row(overheard)


@functools.cache
def offline_config() -> convex_offline.OfflineConfig:
    """Return a configuration in which the choice and the measured error have half of the guard's share each."""
    online = config("noisy descent")
    amount, Δ = Amount(CLAIM, GUARD / 2 * (1 - 1e-9) * CLAIM.total), online.guard.sensitivity
    return convex_offline.OfflineConfig(online, amount.choice(Δ), amount.gaussian(Δ, online.grid))


def offline(data: HistogramSource, noise: Noise) -> float:
    """Return the statistic of one run of offline convex PMW."""
    overheard = RecordingNoise(noise)
    risk = FAMILIES["noisy descent"].loss.on(PLANE)
    convex_offline.release(offline_config(), [(risk, BALL)], data, Accountant(CLAIM), overheard)
    return _along_the_row(overheard)


def _along_the_row(overheard: RecordingNoise) -> float:
    """Sum all draws of an oracle along the row's features. The sum is 0 if no oracle was asked."""
    return sum(float(np.sum(z)) for z in overheard.heard if np.size(z) == 2)
