"""Every private solver of ``hedgerow.erm`` on its worst neighbours, so that an audit comes close to what is claimed.

Neighbours. One row pulls as hard as a row can, wherever θ is: Huber's loss with a label out of reach has the slope ∓1. The
other table has the opposite row (replaced) or none (removed). The rest are rows of zeros, which move nothing, or rows
that put what a solver releases where it tells most: Frank–Wolfe's vertex at odds of its own, its direction near an axis.

Method. Each run is one number that grows with the pull, near to a sufficient statistic where steps are few. Claims are such
that few runs do: δ is large, for with a small one Gaussian noise shows its loss in rare events only.
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

FAR = 50.0  # a label that no score comes near
SHORT, LONG, PURE = Budget(1.0, 0.2), Budget(2.0, 0.05), Budget(2.5, 0.0)

Rows = tuple[Array, Array]
Score = Callable[..., float]


def idle(count: int, features: int = 1) -> Rows:
    return np.zeros((count, features)), np.zeros(count)


@dataclasses.dataclass(frozen=True)
class Case:
    """A solver and where it is audited. `score(X, y, budget=…, rows=…, seed=…)` grows with the pull of the first row."""

    score: Score
    others: Rows = dataclasses.field(default_factory=lambda: idle(1))
    runs: int = 720  # of the short audit, on each table
    long: int = 5000  # of `make audit`
    reach: tuple[float, float] = (0.6, 0.6)  # shares of ε that the long audit finds: a row replaced, a row removed
    tight: bool = True  # else the certificate itself has slack, and half the noise need not break it
    pure: bool = False

    def claim(self, budget: Budget) -> Budget:
        return PURE if self.pure else budget

    def tables(self, neighbours: str) -> tuple[Rows, Rows]:
        """The row that pulls up with the others, and its worst neighbour."""
        X, y = self.others
        row = np.eye(1, X.shape[1])
        up, down = ((np.vstack([row, X]), np.append(label, y)) for label in (FAR, -FAR))
        return up, down if neighbours == "replace" else (X, y)

    def run(self, table: Rows, paid: Budget, seed: int | None = None) -> float:
        rows = None if paid.neighbours == "replace" else self.others[1].size + 1
        return float(self.score(*table, budget=paid, rows=rows, seed=seed))


HUBER: dict[str, Any] = {"loss": losses.Huber(), "label_bound": FAR}
BALL, FREE = sets.L2Ball(40.0), sets.Unconstrained()


def ridged(weight: float) -> dict[str, Any]:
    return {"loss": losses.Huber(ridge=weight), "label_bound": FAR, "over": FREE}


def direction(theta: Array) -> float:
    return float(theta[0] / theta[1])


class Overheard(Noise):
    """Keeps all that is drawn of another's noise."""

    def __init__(self, source: Noise) -> None:
        super().__init__()
        self.source, self.heard = source, list[Any]()

    def add(self, value: Any, receipt: Receipt) -> Any:
        self.heard.append(self.source.add(value, receipt))
        return self.heard[-1]

    def open_round(self, receipt: Receipt, threshold: int, unit: float, on_grid: bool = False) -> GuardRound:
        return self.source.open_round(receipt, threshold, unit, on_grid)

    def choose(self, scores: NDArray[Any], receipt: Receipt) -> int:
        self.heard.append(self.source.choose(scores, receipt))
        return int(self.heard[-1])


def overheard_lasso(X: Any, y: Any, *, budget: Budget, rows: int | None, seed: int | None) -> float:
    """The log-likelihood ratio, but for a constant, of all that the lasso draws: a size, a vertex, moments, and steps."""
    noise = Overheard(Noise() if seed is None else Seeded(seed))
    result = lasso(
        X, y, label_bound=FAR, radius=0.01 * FAR, iterations=1, refit=True, budget=Accountant(budget), rows=rows,
        noise=noise,
    )  # fmt: skip
    size, (chosen, vertex), moments, *steps = zip(noise.heard, result.events, strict=True)
    assert isinstance(vertex, Exponential)
    ratio: float = vertex.epsilon / 2 * (1 if chosen == 0 else -1) - sum(_weighed(*step) for step in steps)
    if budget.neighbours == "add-remove":  # a row that is replaced leaves them as they were
        ratio += _weighed(*size) + _weighed(*moments)
    return ratio


def _weighed(sums: Any, event: Any) -> float:
    return float(np.sum(sums)) * float(event.sensitivity) / float(event.sigma) ** 2


ASIDE = (np.tile([[0.0, 1.0]], (100, 1)), np.full(100, FAR))  # hold θ near the second axis
AGAINST = (np.array([[0.7]]), np.array([-FAR]))  # make the vertex that the row pulls to the rarer one

# A solver is one entry here; those of LONGER are left to the long audit.
CASES: dict[str, Case] = {
    "mirror descent": Case(
        lambda X, y, **k: mirror_descent(X, y, over=BALL, iterations=2, **HUBER, **k).theta[0],
        runs=880, reach=(0.55, 0.55),
    ),
    "whitened descent": Case(
        lambda X, y, **k: whitened_descent(X, y, iterations=1, **HUBER, **k).theta[0],
        others=idle(100), runs=880, reach=(0.5, 0.5),
    ),
    "noisy SGD, all rows": Case(
        lambda X, y, **k: noisy_sgd(X, y, over=BALL, batch=10, epochs=2, **HUBER, **k).theta[0],
        runs=600, reach=(0.4, 0.4), tight=False,
    ),
    "output perturbation": Case(lambda X, y, **k: output_perturbation(X, y, **ridged(1.0), **k).theta[0]),
    "regularised output perturbation": Case(
        lambda X, y, **k: regularised_output_perturbation(X, y, **HUBER, **k).theta[0]
    ),
    "objective perturbation": Case(
        lambda X, y, **k: objective_perturbation(X, y, **ridged(10.0), **k).theta[0],
        runs=480, reach=(0.4, 0.4), tight=False,
    ),
    "Frank–Wolfe": Case(
        lambda X, y, **k: frank_wolfe(X, y, over=sets.L1Ball(1.0), iterations=1, **HUBER, **k).theta[0],
        others=AGAINST, runs=1950, reach=(0.55, 0.45), pure=True,
    ),
    "general Frank–Wolfe": Case(
        lambda X, y, **k: direction(frank_wolfe_general(X, y, over=BALL, iterations=2, **HUBER, **k).theta),
        others=ASIDE, runs=880, reach=(0.55, 0.55),
    ),
    "lasso without a refit": Case(
        lambda X, y, budget, **k: lasso(
            X, y, label_bound=FAR, radius=0.01 * FAR, iterations=1, refit=False, budget=Accountant(budget), **k
        ).theta[0],
        runs=420, reach=(0.3, 0.4), tight=False,
    ),
    "lasso with a refit": Case(overheard_lasso, others=idle(100), runs=600, reach=(0.38, 0.4), tight=False),
}  # fmt: skip

LONGER: dict[str, Case] = {
    "mirror descent, eight steps": Case(
        lambda X, y, **k: mirror_descent(X, y, over=BALL, iterations=8, **HUBER, **k).theta[0], reach=(0.5, 0.5)
    ),
    "noisy SGD, half of the rows": Case(
        lambda X, y, **k: noisy_sgd(X, y, over=BALL, batch=10, epochs=2, **HUBER, **k).theta[0],
        others=idle(19), reach=(0.25, 0.25), tight=False,
    ),
    "Frank–Wolfe, eight steps with a δ": Case(
        lambda X, y, budget, **k: frank_wolfe(
            X, y, over=sets.L1Ball(1.0), iterations=8, budget=Accountant(budget), **HUBER, **k
        ).theta[0],
        reach=(0.32, 0.32), tight=False,
    ),
}  # fmt: skip
