"""Every private solver of ``hedgerow.erm`` on its worst neighbours, so that an audit comes close to the claim.

Neighbours. One row pulls as hard as a row can, wherever θ is: Huber's loss with a label out of reach has the slope ∓1.
The other table has the opposite row (replaced) or no such row (removed). All other rows are zeros, which move nothing,
or rows that make the release most informative: they put Frank–Wolfe's vertex at odds of its own, or its direction near
an axis.

Method. Each run gives one number that grows with the pull. It is close to a sufficient statistic if steps are few. The
claims are such that few runs suffice: δ is large, because with a small δ Gaussian noise shows its loss in rare events
only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import losses
from hedgerow._types import Array
from hedgerow.convex import sets
from hedgerow.erm import (
    frank_wolfe,
    frank_wolfe_general,
    lasso,
    mirror_descent,
    noisy_sgd,
    objective_perturbation,
    output_perturbation,
    regularised_output_perturbation,
    whitened_descent,
)
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential
from hedgerow.privacy.guard_round import GuardRound
from hedgerow.privacy.ledger import Accountant, Receipt
from hedgerow.privacy.noise import Noise, Seeded

FAR = 50.0  # a label that no score reaches
SHORT, LONG, PURE = Budget(1.0, 0.2), Budget(2.0, 0.05), Budget(2.5, 0.0)

Rows = tuple[Array, Array]
Score = Callable[..., float]


def idle(count: int, features: int = 1) -> Rows:
    """Return rows of zeros, which move nothing."""
    return np.zeros((count, features)), np.zeros(count)


@dataclasses.dataclass(frozen=True)
class ErmCase:
    """A solver and the setting of its audit.

    ``score(X, y, budget=…, expected_rows=…, seed=…)`` grows with the pull of the first row.
    """

    score: Score
    others: Rows = dataclasses.field(default_factory=lambda: idle(1))
    runs: int = 720  # runs of the short audit, on each table
    long: int = 5000  # runs of `make audit`
    reach: tuple[float, float] = (0.6, 0.6)  # shares of ε that the long audit finds, for a row replaced and removed
    tight: bool = True  # False if the claim has slack, so that half the noise need not break it
    pure: bool = False

    def claim(self, budget: Budget) -> Budget:
        """Return the budget that the case claims."""
        return PURE if self.pure else budget

    def tables(self, neighbours: str) -> tuple[Rows, Rows]:
        """Return the table with the row that pulls up, and its worst neighbour."""
        X, y = self.others
        row = np.eye(1, X.shape[1])
        up, down = ((np.vstack([row, X]), np.append(label, y)) for label in (FAR, -FAR))
        return up, down if neighbours == "replace" else (X, y)

    def run(self, table: Rows, paid: Budget, seed: int | None = None) -> float:
        """Return the score of one run."""
        rows = None if paid.neighbours == "replace" else self.others[1].size + 1
        return float(self.score(*table, budget=paid, expected_rows=rows, seed=seed))


HUBER: dict[str, Any] = {"loss": losses.Huber(), "label_bound": FAR}
BALL, FREE = sets.L2Ball(40.0), sets.Unconstrained()


def ridge_options(weight: float) -> dict[str, Any]:
    """Return the options of a Huber loss with a ridge, without a set."""
    return {"loss": losses.Huber(ridge=weight), "label_bound": FAR, "over": FREE}


def direction(theta: Array) -> float:
    """Return the direction of θ as the ratio of its coordinates."""
    return float(theta[0] / theta[1])


class RecordingNoise(Noise):
    """Noise that records everything drawn from another source."""

    def __init__(self, source: Noise) -> None:
        super().__init__()
        self.source, self.heard = source, list[Any]()

    def add(self, value: Any, receipt: Receipt) -> Any:
        """Draw from the source, record the result and return it."""
        self.heard.append(self.source.add(value, receipt))
        return self.heard[-1]

    def open_round(self, receipt: Receipt, threshold: int, unit: float, on_grid: bool = False) -> GuardRound:
        """Open a round of the source."""
        return self.source.open_round(receipt, threshold, unit, on_grid)

    def choose(self, scores: NDArray[Any], receipt: Receipt) -> int:
        """Let the source choose, record the choice and return it."""
        self.heard.append(self.source.choose(scores, receipt))
        return int(self.heard[-1])


def overheard_lasso(X: Any, y: Any, *, budget: Budget, expected_rows: int | None, seed: int | None) -> float:
    """Return the log-likelihood ratio, up to a constant, of all that the lasso draws.

    The lasso draws a size, a vertex, moments, and steps.
    """
    noise = RecordingNoise(Noise() if seed is None else Seeded(seed))
    result = lasso(
        X, y, label_bound=FAR, radius=0.01 * FAR, iterations=1, refit=True, budget=Accountant(budget), expected_rows=expected_rows,
        noise=noise,
    )  # fmt: skip
    size, (chosen, vertex), moments, *steps = zip(noise.heard, result.events, strict=True)
    assert isinstance(vertex, Exponential)
    ratio: float = vertex.epsilon / 2 * (1 if chosen == 0 else -1) - sum(_pull(*step) for step in steps)
    if budget.neighbours == "add-remove":  # a replaced row does not change them
        ratio += _pull(*size) + _pull(*moments)
    return ratio


def _pull(sums: Any, event: Any) -> float:
    return float(np.sum(sums)) * float(event.sensitivity) / float(event.sigma) ** 2


ASIDE = (np.tile([[0.0, 1.0]], (100, 1)), np.full(100, FAR))  # rows that hold θ near the second axis
AGAINST = (
    np.array([[0.7]]),
    np.array([-FAR]),
)  # a row that makes the vertex to which the first row pulls the rarer one

# One entry per solver. Only the long audit runs the entries of LONGER.
CASES: dict[str, ErmCase] = {
    "mirror descent": ErmCase(
        lambda X, y, **k: mirror_descent(X, y, over=BALL, iterations=2, **HUBER, **k).theta[0],
        runs=880, reach=(0.55, 0.55),
    ),
    "whitened descent": ErmCase(
        lambda X, y, **k: whitened_descent(X, y, iterations=1, **HUBER, **k).theta[0],
        others=idle(100), runs=880, reach=(0.5, 0.5),
    ),
    "noisy SGD, all rows": ErmCase(
        lambda X, y, **k: noisy_sgd(X, y, over=BALL, batch=10, epochs=2, **HUBER, **k).theta[0],
        runs=600, reach=(0.4, 0.4), tight=False,
    ),
    "output perturbation": ErmCase(lambda X, y, **k: output_perturbation(X, y, **ridge_options(1.0), **k).theta[0]),
    "regularised output perturbation": ErmCase(
        lambda X, y, **k: regularised_output_perturbation(X, y, **HUBER, **k).theta[0]
    ),
    "objective perturbation": ErmCase(
        lambda X, y, **k: objective_perturbation(X, y, **ridge_options(10.0), **k).theta[0],
        runs=480, reach=(0.4, 0.4), tight=False,
    ),
    "Frank–Wolfe": ErmCase(
        lambda X, y, **k: frank_wolfe(X, y, over=sets.L1Ball(1.0), iterations=1, **HUBER, **k).theta[0],
        others=AGAINST, runs=1950, reach=(0.55, 0.45), pure=True,
    ),
    "general Frank–Wolfe": ErmCase(
        lambda X, y, **k: direction(frank_wolfe_general(X, y, over=BALL, iterations=2, **HUBER, **k).theta),
        others=ASIDE, runs=880, reach=(0.55, 0.55),
    ),
    "lasso without a refit": ErmCase(
        lambda X, y, budget, **k: lasso(
            X, y, label_bound=FAR, radius=0.01 * FAR, iterations=1, refit=False, budget=Accountant(budget), **k
        ).theta[0],
        runs=420, reach=(0.3, 0.4), tight=False,
    ),
    "lasso with a refit": ErmCase(overheard_lasso, others=idle(100), runs=600, reach=(0.38, 0.4), tight=False),
}  # fmt: skip

LONGER: dict[str, ErmCase] = {
    "mirror descent, eight steps": ErmCase(
        lambda X, y, **k: mirror_descent(X, y, over=BALL, iterations=8, **HUBER, **k).theta[0], reach=(0.5, 0.5)
    ),
    "noisy SGD, half of the rows": ErmCase(
        lambda X, y, **k: noisy_sgd(X, y, over=BALL, batch=10, epochs=2, **HUBER, **k).theta[0],
        others=idle(19), reach=(0.25, 0.25), tight=False,
    ),
    "Frank–Wolfe, eight steps with a δ": ErmCase(
        lambda X, y, budget, **k: frank_wolfe(
            X, y, over=sets.L1Ball(1.0), iterations=8, budget=Accountant(budget), **HUBER, **k
        ).theta[0],
        reach=(0.32, 0.32), tight=False,
    ),
}  # fmt: skip
