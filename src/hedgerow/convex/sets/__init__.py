"""Constraint sets: the parameters that a convex question allows.

- ``convex_set``: the interface of every set.
- ``elementary`` and ``structured``: the sets themselves.
- ``potentials``: mirror maps that follow the shape of a set.

A new set goes into one of these modules, into the tuple ``SETS`` below, and through tests/convex/test_sets.py.
"""

from hedgerow.convex.sets.convex_set import ConvexSet, SparsePoint, VertexSet
from hedgerow.convex.sets.elementary import Box, L1Ball, L2Ball, Polytope, Simplex, Unconstrained
from hedgerow.convex.sets.structured import GroupL1Ball, InterpolationBall, NuclearBall

SETS = (Box, GroupL1Ball, InterpolationBall, L1Ball, L2Ball, NuclearBall, Polytope, Simplex, Unconstrained)
"""Every set that a question accepts. Another class is refused, because its methods would see private values."""

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
