"""θ̂: the answer of the hypothesis to a convex question, whichever engine learned it."""

from __future__ import annotations

import math

from hedgerow._types import Array
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.convex.solver.public_minimum import Minimum, minimised
from hedgerow.errors import TooLarge
from hedgerow.model.hypothesis import Hypothesis

TOLERANCE, COARSE = 1e-6, 1e-4  # of θ̂, per unit of mass; the coarse one for kinks on many cells, slow to certify
FEW_CELLS = 2_000


def fitted(hypothesis: Hypothesis, query: BoundMinimize) -> tuple[Minimum, Array]:
    """θ̂ and the hypothesis' marginal it was found on. Public."""
    try:
        marginal = hypothesis.marginal(query.attributes)
    except TooLarge:
        cells = math.prod(query.shape)
        raise TooLarge(
            f"The marginal on the attributes of a convex question must fit in memory. Found {cells} cells on "
            f"{', '.join(query.attributes)}. Use fewer features, declare coarser bins, or fit it once with hedgerow.erm."
        ) from None
    tolerance = TOLERANCE if query.risk.is_smooth or marginal.size <= FEW_CELLS else COARSE
    return minimised(query.risk, marginal, query.over, tolerance), marginal
