"""Convex minimization queries as questions: "which θ of the set has the least average loss?"

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §2 (convex minimization queries).

Symbols: ℓ_x(θ) the loss of record x, Θ the set, S = sup |⟨θ − θ′, ∇ℓ_x(θ)⟩| its scale, err(D, θ) = ℓ_D(θ) − min over Θ
of ℓ_D: by how much θ is worse on the data than the best of the set.

A question is a value: bound to a universe, two are equal exactly when they have the same loss, features and set, however
``where`` or the features were written. Every refusal here depends on the universe, the loss and the set alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Hashable
from functools import cached_property
from typing import Any, ClassVar, Protocol

from hedgerow._types import Array, Names
from hedgerow.convex.bound_loss import GlmRisk, Risk
from hedgerow.convex.losses import families
from hedgerow.convex.losses.custom import Custom, CustomRisk
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets import SETS, Unconstrained
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.public_minimum import Minimum, minimised
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.questions.bound import Estimate, Labels
from hedgerow.questions.counts import QUESTIONS, Query, Resolution
from hedgerow.questions.universe import Universe

LOSSES = {getattr(families, name) for name in families.__all__} - {Loss} | {Custom}
TOLERANCE, COARSE = 1e-6, 1e-4  # of θ̂, per unit of mass; the coarse one for kinks on many cells, slow to certify
FEW_CELLS = 2_000
SMALLEST_SET, LARGEST_SET = 1e-100, 1e100  # squares of lengths, and their products with slopes, stay within float64
ABOUT = {field.name for field in dataclasses.fields(Loss)}  # what a loss is asked about; the rest are its own constants


class Believes(Protocol):
    """A public distribution, such as a hypothesis."""

    def marginal(self, attributes: Names, /) -> Array: ...


class Minimises(Protocol):
    """Whoever answers convex questions: θ, with a bound on its excess risk."""

    def minimise(self, question: BoundMinimize, within: float | None) -> Estimate: ...


@dataclasses.dataclass(frozen=True, eq=False)
class BoundMinimize:
    """argmin over ``over`` of Σ D(x)·ℓ_x(θ), on the cells of the risk's attributes."""

    risk: Risk
    over: ConvexSet

    is_fraction: ClassVar[bool] = False

    @cached_property
    def labels(self) -> Labels:
        """What each entry of θ belongs to; nothing is known of a user's own loss."""
        if not isinstance(self.risk, GlmRisk):
            return ()
        named = (("feature", self.risk.features.feature_names),)
        return (*named, ("class", tuple(self.risk.universe[self.risk.target].labels))) if self.risk.outputs else named

    @property
    def attributes(self) -> Names:
        return self.risk.attributes

    @property
    def tables(self) -> tuple[Names, ...]:
        return (self.attributes,)

    def ask(self, respondent: Minimises, within: float | None) -> Estimate:
        return respondent.minimise(self, within)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.risk.shape

    def fitted(self, hypothesis: Believes) -> tuple[Minimum, Array]:
        """θ̂ and the hypothesis' marginal it was found on. Public."""
        try:
            marginal = hypothesis.marginal(self.attributes)
        except TooLarge:
            raise TooLarge(
                "The marginal on the attributes of a convex question must fit in memory. Found "
                f"{math.prod(self.shape)} cells on "
                f"{', '.join(self.attributes)}. Use fewer features, declare coarser bins, or fit it once with "
                "hedgerow.erm."
            ) from None
        tolerance = TOLERANCE if self.risk.is_smooth or marginal.size <= FEW_CELLS else COARSE
        return minimised(self.risk, marginal, self.over, tolerance), marginal

    @cached_property
    def scale(self) -> float | None:
        """S; None over an unbounded set, where nothing bounds it."""
        return self.risk.scale(self.over) if self.over.is_bounded or not self.risk.is_glm else None

    def is_vouched(self, losses: Collection[Custom]) -> bool:
        """Whether its functions are the package's own, or of a user's loss that is among those the owner vouches for.

        The very loss: whether two are equal is up to their functions, which may say so of themselves.
        """
        return isinstance(self.risk, GlmRisk) or (
            isinstance(self.risk, CustomRisk) and any(self.risk.loss is loss for loss in losses)
        )

    @cached_property
    def key(self) -> Hashable:
        return ("minimize", _meaning(self.risk), self.over)


class Minimize(Query):
    """See ``minimize``."""

    def __init__(self, loss: Loss | Custom, over: ConvexSet) -> None:
        self.loss, self.over = loss, over

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundMinimize:
        """Of the coded table at either resolution: a loss is of representative values."""
        _require_own(self.loss, self.over)
        risk = self.loss.on(universe)
        self.over.require(risk.dimension)
        radius = self.over.radius_l1(risk.dimension) if self.over.is_bounded else 0.0
        if not (radius == 0 or SMALLEST_SET <= radius <= LARGEST_SET):
            raise InvalidInput(
                f"The set of a question must reach between {SMALLEST_SET:g} and {LARGEST_SET:g} from the origin, or "
                "be it. "
                f"Found {self.over!r}. Change its size, or the units of the features."
            )
        if isinstance(self.loss, Custom):
            self.loss.check(universe, self.over)
        elif not self.over.is_bounded:
            risk.lipschitz(self.over)  # refuses a loss that needs a bounded set
        return BoundMinimize(risk, self.over)

    def _identity(self) -> Any:
        return ("minimize", self.loss, self.over)

    def __repr__(self) -> str:
        if isinstance(self.loss, Custom):
            return f"minimize(Custom({', '.join(self.loss.attributes)}), over={self.over!r})"
        about = ", ".join(self.loss.features) or "a constant"
        among = "" if self.loss.where is None else f" where {self.loss.where!r}"
        return f"minimize({type(self.loss).__name__} of {self.loss.target} on {about}{among}, over={self.over!r})"


QUESTIONS.add(Minimize)


def minimize(loss: Loss | Custom, over: ConvexSet | None = None) -> Query:
    """The parameters of least average loss among those of the set: regressions, classifiers, quantiles.

    Without a set the minimum is over all parameters, for losses with bounded slopes such as ``Logistic`` and ``Huber``.
    """
    _require_own(loss, over)
    return Minimize(loss, Unconstrained() if over is None else over)


def _require_own(loss: object, over: object) -> None:
    """The package's own classes only: the methods of another would be called with private values."""
    if type(loss) not in LOSSES:
        raise InvalidInput(
            f"loss must be one of hedgerow.losses. Found a {type(loss).__name__}. "
            'For example Logistic(target="smoker", features=["age"]), or losses.Custom for your own.'
        )
    if over is not None and type(over) not in SETS:
        raise InvalidInput(f"over must be a convex set. Found a {type(over).__name__}. For example L2Ball(5.0).")


def _meaning(risk: Risk) -> Hashable:
    """What the loss is as a function of a record and θ."""
    if not isinstance(risk, GlmRisk):
        return risk.loss  # type: ignore[attr-defined, no-any-return]  # a user's functions are equal when they are the same
    loss, universe = risk.loss, risk.universe
    own = tuple(getattr(loss, f.name) for f in dataclasses.fields(loss) if f.name not in ABOUT | {"classes"})
    crossed = tuple(universe.order(pair) for pair in loss.interactions)
    spelled = frozenset(n for n in loss.onehot if n in risk.features.attributes and universe[n].values is not None)
    where = None if risk.restriction is None else risk.restriction.key
    features = tuple(dict.fromkeys(loss.features))
    return (type(loss), own, loss.target, features, crossed, spelled, bool(loss.intercept), float(loss.ridge), where)
