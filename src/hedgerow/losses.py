"""Losses of convex questions, by their public names. They are defined in ``convex/losses``."""

from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.losses.families import (
    Absolute,
    BoundedLogistic,
    Hinge,
    Huber,
    Logistic,
    Loss,
    MultinomialLogistic,
    Pinball,
    Poisson,
    SmoothedHinge,
    Squared,
)

__all__ = [
    "Absolute",
    "BoundedLogistic",
    "Custom",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MultinomialLogistic",
    "Pinball",
    "Poisson",
    "SmoothedHinge",
    "Squared",
]
