"""Where the parameters of a convex question may lie.

``convex_set`` is what every set can do, ``elementary`` and ``structured`` are the sets, ``potentials`` the mirror maps that
follow their shape. A new set goes beside them, into the list below, and through tests/convex/test_sets.py.
"""

from hedgerow.convex.sets.convex_set import ConvexSet, SparsePoint, VertexSet
from hedgerow.convex.sets.elementary import Box, L1Ball, L2Ball, Polytope, Simplex, Unconstrained
from hedgerow.convex.sets.structured import GroupL1Ball, InterpolationBall, NuclearBall

SETS = (Box, GroupL1Ball, InterpolationBall, L1Ball, L2Ball, NuclearBall, Polytope, Simplex, Unconstrained)
"""All there are: the methods of another would be called with private values."""

__all__ = [
    "SETS",
    "Box",
    "ConvexSet",
    "GroupL1Ball",
    "InterpolationBall",
    "L1Ball",
    "L2Ball",
    "NuclearBall",
    "Polytope",
    "Simplex",
    "SparsePoint",
    "Unconstrained",
    "VertexSet",
]
