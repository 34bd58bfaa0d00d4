"""The privacy budget, and the sensitivities its neighbours imply.

Symbols: ε, δ the budget; ρ zCDP loss; S, L bounds on a bounded query and on a gradient.
Currency: ε, added up, when δ = 0; ρ otherwise.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Literal, final, get_args

from hedgerow import errors
from hedgerow._checks import number, positive
from hedgerow.privacy import amplification, events, perturbed_objective
from hedgerow.privacy.conversion import largest_rho
from hedgerow.privacy.events import Event

Neighbours = Literal["replace", "add-remove"]


@final
@dataclasses.dataclass(frozen=True)
class Budget:
    """(ε, δ) for everything that will ever be released, and what "neighbouring tables" means.

    "replace": one row changes and the number of rows is public. "add-remove": one row comes or goes.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = "replace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        if not 0 <= number(self.delta) < 1:
            raise errors.InvalidInput(
                f"delta must be at least 0 and below 1. Found {self.delta!r}. Use far less than 1 / rows, or 0."
            )
        object.__setattr__(self, "delta", number(self.delta))
        if self.neighbours not in get_args(Neighbours):
            raise errors.InvalidInput(
                f"neighbours must be {' or '.join(map(repr, get_args(Neighbours)))}. Found {self.neighbours!r}. "
                "Say whether a person's row is replaced, or added and removed."
            )

    @property
    def pure(self) -> bool:
        return self.delta == 0

    @property
    def currency(self) -> str:
        return "epsilon" if self.pure else "rho"

    @property
    def total(self) -> float:
        """All there is to spend, in the currency."""
        return self.epsilon if self.pure else self.rho()

    def rho(self, slack: float = 0.0) -> float:
        """The largest ρ such that ρ-zCDP implies (ε, δ − slack)-DP, rounded down."""
        if self.pure:
            raise errors.InvalidInput("delta must be above 0 to count in rho. Found 0. Use epsilon, or give a delta.")
        if not 0 <= slack < self.delta:
            raise errors.InvalidInput(
                f"slack must be at least 0 and below delta = {self.delta!r}. Found {slack!r}. Reserve less."
            )
        return largest_rho(self.epsilon, self.delta - slack)

    def cost(self, event: Event) -> float:
        """What the event costs in the currency; infinite if the currency cannot pay for it."""
        if type(event) not in events.KINDS.values():
            raise errors.InvalidInput(
                f"event must be one of {', '.join(events.KINDS)}. Found a {type(event).__name__}. "
                "Describe what will be drawn by one of these."
            )
        if isinstance(event, events.SubsampledGaussian):
            amplification.require_private(event, self.neighbours)
        if isinstance(event, events.Subsampled | events.FlippedRows):
            amplification.require_neighbours(event, self.neighbours)
        if isinstance(event, events.PerturbedObjective):
            perturbed_objective.require_private(event, self.neighbours)
        if self.pure and event.delta > 0:
            return math.inf
        cost = event.epsilon if self.pure else event.rho
        return cost if cost > 0 else math.inf  # also for NaN: what cannot be priced cannot be paid

    # Sensitivities, in rows: how far one neighbour can move the statistic.

    def linear(self) -> float:
        """A query that sums q(row) with q in [0, 1]."""
        return 1.0

    def bounded(self, bound: float) -> float:
        """A query that sums u(row) with |u| <= bound."""
        return self._twice_if_replaced(positive("bound", bound))

    def marginal_l1(self) -> float:
        """A whole table of counts, each row in one cell; ℓ1."""
        return self._twice_if_replaced(1.0)

    def marginal_l2(self) -> float:
        """A whole table of counts, each row in one cell; ℓ2."""
        return math.sqrt(2.0) if self.neighbours == "replace" else 1.0

    def residual_l2(self, sizes: Sequence[int]) -> float:
        """The centred table of counts on attributes of these sizes (docs/proofs/residuals.md); ℓ2.

        A row is a tensor product of centred unit vectors: norm² Π(1 − 1/m). Two rows have the inner product
        Π(1 − 1/m) over attributes on which they agree times Π(−1/m) over those on which they differ.
        """
        own = math.prod(1 - 1 / m for m in sizes)
        if self.neighbours == "add-remove":
            return math.sqrt(own)
        least = min(
            math.prod(-1 / m if differs else 1 - 1 / m for m, differs in zip(sizes, which, strict=True))
            for which in itertools.product((False, True), repeat=len(sizes))
            if any(which)
        )
        return math.sqrt(2 * (own - least))

    def marginal_distance(self) -> float:
        """The ℓ1 distance of a table of counts to a fixed one."""
        return self._twice_if_replaced(1.0)

    def gradient(self, lipschitz: float) -> float:
        """A sum of gradients, each of norm at most `lipschitz`; ℓ2."""
        return self._twice_if_replaced(positive("lipschitz", lipschitz))

    def _twice_if_replaced(self, one: float) -> float:
        return 2 * one if self.neighbours == "replace" else one
