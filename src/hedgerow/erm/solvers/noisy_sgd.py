"""Noisy stochastic gradient descent: many cheap steps, each on a secret random sample of the rows.

Papers: Bassily, Smith & Thakurta "Private empirical risk minimization: efficient algorithms and tight error bounds";
Abadi et al. "Deep learning with differential privacy"; Mironov, Talwar & Zhang "Rényi differential privacy of the
sampled Gaussian mechanism"; Ullman "Private multiplicative weights beyond linear queries", Theorem 4.1, whose oracle
this is.

Symbols: q the rate at which every row is in a step's sample, independently; T steps; L the ℓ2 bound on a row's
gradient; σ = zL the noise on the sum over a sample, z the noise multiplier.

Privacy. A row that is added or removed moves the sum over a sample by at most L, and it is in the sample with
probability q only. So T steps have the privacy of T subsampled Gaussian releases. ``amplification`` composes them, and
converts the result to replaced rows. The bill is one (ε, δ) step, because subsampled noise has no useful ρ. So a ledger
needs slack in δ for it.

Risk. The gradient estimate is unbiased with V ≤ ‖Q‖₂²L²/(qn) + (σ/qn)²(G_Q² + ‖Q‖₂²); the bound is that of ``descent``.

Differs: samples are Poisson at a public rate, so that the true number of rows plays no part. Steps follow the potential
of the set and are accelerated if the loss is smooth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from hedgerow._checks import positive
from hedgerow._types import Array
from hedgerow.erm.problem import Problem, require_count, require_here, require_steps
from hedgerow.erm.solver import Draw, SolverPlan, public
from hedgerow.erm.solvers.descent import Schedule, descend, schedule
from hedgerow.erm.solvers.mirror_descent import potential_of, terms_of
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.amplification import sample_rate, subsampled_gaussian
from hedgerow.privacy.events import COIN

_USUAL_BATCH = 512  # expected rows in a sample, by default


@dataclass(frozen=True)
class SamplingSchedule:
    """The rate at which every row is in a step's sample, and the steps."""

    rate: float
    steps: Schedule


@dataclass(frozen=True)
class NoisySgd:
    """Minimize the average loss over a bounded set by noisy gradients of random samples.

    Parameters
    ----------
    - batch: the expected number of rows in a sample. 512 by default.
    - epochs: the number of passes over the data, in expectation.

    Example
    -------
    >>> result = hr.erm.noisy_sgd(X, y, loss=loss, over=hr.L2Ball(1.0), budget=hr.Budget(1.0, 1e-6), epochs=1)
    """

    batch: int | None = None
    epochs: float = 20.0
    name: ClassVar[str] = "noisy_sgd"

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[SamplingSchedule]:
        """Plan all steps as one subsampled Gaussian event."""
        require_here(problem, self.name)
        Ψ, n, L = potential_of(problem), problem.n, problem.lipschitz
        size = require_count("batch", _USUAL_BATCH if self.batch is None else self.batch)
        heads = min(COIN, math.ceil(min(1.0, size / n) * COIN))
        q = sample_rate(heads)
        T = require_steps(max(1, math.ceil(min(positive("epochs", self.epochs) / q, 1e300))))
        ε, δ = amount.approximate()
        event = subsampled_gaussian(
            ε, δ, problem.budget.neighbours, heads=heads, steps=T, sensitivity=L, values=problem.p
        )
        Q2, σ = Ψ.norm_radius_l2, event.noise.sigma
        V = (Q2 * L) ** 2 / (q * n) + (σ / (q * n)) ** 2 * (Ψ.norm_width**2 + Q2**2)
        steps = schedule(terms_of(problem, Ψ, V / T), T, steps=T)
        return SolverPlan(self, (event,), steps.bound, T, SamplingSchedule(q, steps), share=q)

    def run(self, problem: Problem, plan: SolverPlan[SamplingSchedule], draw: Draw) -> Array:
        """Take the steps."""
        steps, expected = plan.details.steps, plan.details.rate * problem.n
        ridge = problem.loss.ridge - steps.ridge  # a ridge that the steps do not handle is part of the gradient

        def gradient(theta: Array) -> Array:
            noisy = draw.add(problem.gradient(theta, draw.sample(problem.X.shape[0])))
            return noisy / expected + ridge * theta

        with draw.bar("noisy SGD", steps.count) as tick:
            return descend(gradient, potential_of(problem), steps, tick)


noisy_sgd = public(NoisySgd)
