"""Convex minimization questions: find the θ in a set that has the least average loss.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §2 (convex minimization queries).

Symbols: ℓ_x(θ) the loss of record x, Θ the set, S = sup |⟨θ − θ′, ∇ℓ_x(θ)⟩| its scale, err(D, θ) = ℓ_D(θ) − min over Θ
of ℓ_D the excess risk: how much worse θ is on the data than the best point of the set.

A question is a value. Two questions bound to a universe are equal exactly when they have the same loss, features and
set, no matter how ``where`` or the features were written. Every refusal in this module depends only on the universe,
the loss and the set.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Hashable, Iterable
from functools import cached_property
from typing import Any, ClassVar, Protocol

from hedgerow._types import Array, Names
from hedgerow.convex.bound_loss import GlmRisk, Risk
from hedgerow.convex.losses.custom import Custom, CustomRisk
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.losses.loss import LOSSES
from hedgerow.convex.sets import SETS, Unconstrained
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.public_minimum import Minimum, minimize_over
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.query.bound import BoundQuestion, Estimate, Labels
from hedgerow.query.counts import QUESTIONS, Query, Resolution
from hedgerow.query.counts import bound as bound_to
from hedgerow.universe.universe import Universe

# The gap that is accepted for the minimum on the hypothesis, per unit of mass. COARSE is for losses with kinks on more
# than FEW_CELLS cells, where a smaller gap takes long to certify.
TOLERANCE, COARSE = 1e-6, 1e-4
FEW_CELLS = 2_000
OTHER_PAIRS = 0.05  # weight of a pair of features of a very wide model, in a workload, beside 1 for one with the target
# The least and the largest ℓ1 radius of a set: squares of lengths, and their products with slopes, stay within float64.
SMALLEST_SET, LARGEST_SET = 1e-100, 1e100
# The fields that say which attributes a loss is about. The other fields of a loss are its own constants.
ABOUT = {field.name for field in dataclasses.fields(Loss)}


class PublicDistribution(Protocol):
    """A public distribution, such as a hypothesis."""

    def marginal(self, attributes: Names, /) -> Array:
        """Return the distribution's marginal on the attributes."""
        ...


class ConvexRespondent(Protocol):
    """An engine that answers convex questions with a θ and a bound on its excess risk."""

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Answer the question, with an excess risk of at most ``within`` if it is given."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class BoundMinimize(BoundQuestion):
    """A question bound to a universe: argmin over ``over`` of Σ D(x)·ℓ_x(θ), on the cells of the risk's attributes."""

    risk: Risk
    over: ConvexSet

    is_fraction: ClassVar[bool] = False

    @cached_property
    def labels(self) -> Labels:
        """The names of θ's axes and entries. Empty for a user-defined loss, whose entries have no known names."""
        if not isinstance(self.risk, GlmRisk):
            return ()
        named = (("feature", self.risk.features.feature_names),)
        return (*named, ("class", tuple(self.risk.universe[self.risk.target].labels))) if self.risk.outputs else named

    @property
    def attributes(self) -> Names:
        """The attributes that the loss depends on."""
        return self.risk.attributes

    @property
    def tables(self) -> tuple[Names, ...]:
        """The attribute sets whose marginals answer the question: one set."""
        return (self.attributes,)

    @property
    def stored(self) -> tuple[Query, Resolution] | None:
        """The question of its loss and set; None for a user-defined loss, whose functions have no stored form."""
        glm = self.risk.glm
        return None if glm is None else (Minimize(glm.loss, self.over), "values")  # type: ignore[arg-type]

    def weighted_sets(self, most: int) -> list[tuple[Names, float]]:
        """Return its attributes, or of many attributes all sets of ``most``, on which the risk mostly depends.

        Where these would be too many cells, the pairs of the target with a feature count most: the fit's residuals are
        orthogonal to the features. The pairs of features only say how the features share it.
        """
        if len(self.attributes) <= most:
            return [(self.attributes, 1.0)] if self.attributes else []
        if self.risk.glm is not None and not self.risk.is_listable:
            pairs = list(itertools.combinations(self.attributes, 2))
            return [(pair, (1.0 if self.risk.glm.target in pair else OTHER_PAIRS) / len(pairs)) for pair in pairs]
        sets = list(itertools.combinations(self.attributes, most))
        return [(names, 1.0 / len(sets)) for names in sets]

    def ask(self, respondent: ConvexRespondent, within: float | None) -> Estimate:
        """Put the question to an engine."""
        return respondent.minimize(self, within)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the marginal on the attributes."""
        return self.risk.shape

    def fit_on(self, hypothesis: PublicDistribution) -> tuple[Minimum, Array]:
        """Minimize the loss on a hypothesis. Return the minimum θ̂ and the marginal on which it was found.

        Both are public.
        """
        self.require_listable()
        try:
            marginal = hypothesis.marginal(self.attributes)
        except TooLarge:
            raise self._too_large() from None
        tolerance = TOLERANCE if self.risk.is_smooth or marginal.size <= FEW_CELLS else COARSE
        return minimize_over(self.risk, marginal, self.over, tolerance), marginal

    def require_listable(self) -> None:
        """Refuse a question whose attributes have too many cells for a table."""
        if not self.risk.is_listable:
            raise self._too_large()

    def _too_large(self) -> TooLarge:
        return TooLarge(
            "The marginal on the attributes of a convex question must fit in memory. Found "
            f"{math.prod(self.shape)} cells on {', '.join(self.attributes)}. Use fewer features, declare coarser "
            "bins, or fit it once with hedgerow.erm."
        )

    @cached_property
    def scale(self) -> float | None:
        """The scale S, or None over an unbounded set, where nothing bounds it."""
        return self.risk.scale(self.over) if self.over.is_bounded or not self.risk.is_glm else None

    def is_trusted(self, losses: Collection[Custom]) -> bool:
        """True if its functions are the package's own, or those of a user-defined loss that the owner trusts.

        The loss must be the same object as a trusted one. Equality would not do, because the user's functions could
        claim to be equal to others.
        """
        return isinstance(self.risk, GlmRisk) or (
            isinstance(self.risk, CustomRisk) and any(self.risk.loss is loss for loss in losses)
        )

    @cached_property
    def key(self) -> Hashable:
        """A hashable value that is equal for questions with the same meaning."""
        return ("minimize", _meaning(self.risk), self.over)


class Minimize(Query):
    """A minimization question that is not yet bound to a universe. Made by ``minimize``."""

    is_convex = True

    def __init__(self, loss: Loss | Custom, over: ConvexSet) -> None:
        self.loss, self.over = loss, over

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundMinimize:
        """Bind the question to a universe.

        A loss is a function of representative values, so the question is about the coded table at either resolution.
        """
        _require_own(self.loss, self.over)
        risk = self.loss.on(universe)
        self.over.require(risk.dimension)
        radius = self.over.radius_l1(risk.dimension) if self.over.is_bounded else 0.0
        if not (radius == 0 or SMALLEST_SET <= radius <= LARGEST_SET):
            raise InvalidInput(
                f"The set of a question must reach between {SMALLEST_SET:g} and {LARGEST_SET:g} from the origin, or "
                f"be the origin. Found {self.over!r}. Change its size, or the units of the features."
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


def bound_convex(queries: Iterable[Query], universe: Universe) -> list[BoundMinimize]:
    """Bind questions to a universe, and return those that are convex, in order."""
    bound = (bound_to(query, universe) for query in queries)
    return [each for each in bound if isinstance(each, BoundMinimize)]


def minimize(loss: Loss | Custom, over: ConvexSet | None = None) -> Query:
    """Ask for the parameters of least average loss in a set: regressions, classifiers, quantiles.

    Parameters
    ----------
    loss : Loss or Custom
        One of ``hedgerow.losses``, with its target and features.
    over : ConvexSet, optional
        The set of allowed parameters. Without a set the minimum is over all parameters; this works for losses with
        bounded slopes, such as ``Logistic`` and ``Huber``.

    Returns
    -------
    Query
        A question whose answer is the vector θ.

    Raises
    ------
    InvalidInput
        If the loss or the set is not one of the package's own classes.

    Example
    -------
    >>> query = hr.minimize(hr.losses.Logistic(target="smoker", features=["age"]), over=hr.L2Ball(5.0))
    """
    _require_own(loss, over)
    return Minimize(loss, Unconstrained() if over is None else over)


def _require_own(loss: object, over: object) -> None:
    """Refuse classes from outside the package, because their methods would be called with private values."""
    if type(loss) not in LOSSES and type(loss) is not Custom:
        raise InvalidInput(
            f"loss must be one of hedgerow.losses. Found {type(loss).__name__}. "
            'For example Logistic(target="smoker", features=["age"]), or losses.Custom for your own.'
        )
    if over is not None and type(over) not in SETS:
        raise InvalidInput(f"over must be a convex set. Found {type(over).__name__}. For example L2Ball(5.0).")


def _meaning(risk: Risk) -> Hashable:
    """Return a hashable value that identifies the loss as a function of a record and θ."""
    if not isinstance(risk, GlmRisk):
        # functions are compared by identity
        return risk.loss  # type: ignore[attr-defined, no-any-return]
    loss, universe = risk.loss, risk.universe
    own = tuple(getattr(loss, f.name) for f in dataclasses.fields(loss) if f.name not in ABOUT | {"classes"})
    crossed = tuple(universe.order(pair) for pair in loss.interactions)
    spelled = frozenset(n for n in loss.onehot if n in risk.features.attributes and universe[n].values is not None)
    where = None if risk.restriction is None else risk.restriction.key
    features = tuple(dict.fromkeys(loss.features))
    about = (loss.target, features, crossed, spelled, risk.features.has_reference, bool(loss.intercept))
    return (type(loss), own, *about, float(loss.ridge), where)
