"""Losses of convex questions, by their public names: a line for each. They are defined in ``convex/losses``."""

from hedgerow.convex.losses.custom import Custom as Custom
from hedgerow.convex.losses.families import Absolute as Absolute
from hedgerow.convex.losses.families import BoundedLogistic as BoundedLogistic
from hedgerow.convex.losses.families import Hinge as Hinge
from hedgerow.convex.losses.families import Huber as Huber
from hedgerow.convex.losses.families import Logistic as Logistic
from hedgerow.convex.losses.families import Loss as Loss
from hedgerow.convex.losses.families import MultinomialLogistic as MultinomialLogistic
from hedgerow.convex.losses.families import Pinball as Pinball
from hedgerow.convex.losses.families import Poisson as Poisson
from hedgerow.convex.losses.families import SmoothedHinge as SmoothedHinge
from hedgerow.convex.losses.families import Squared as Squared

__all__ = sorted(name for name in globals() if not name.startswith("_"))
