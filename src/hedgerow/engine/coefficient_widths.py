"""Intervals of coefficients where no theory gives them: a parametric bootstrap of the released measurements.

Paper: Efron & Tibshirani, *An Introduction to the Bootstrap* (1993), §6.5.

Symbols: y the released measurements, D̂ the hypothesis fitted to them, θ̂ its coefficients; y_b measurements drawn anew
from D̂ with the noise of their own events, θ_b the coefficients of the hypothesis fitted to y_b; B the number of y_b.

The half width of a coefficient is |mean_b θ_b − θ̂| + t·sd_b θ_b, with t the quantile of Student's law of B − 1
degrees. The first term is the bias of the fit, which draws noisy cells to its prior. The interval says how far noise
and fit move a coefficient if the table looks like D̂. It is no guarantee: it covers one coefficient, at the level
``LEVEL``, where the measurements cover the model's columns. Noise says nothing of dependence that no measurement saw:
where a feature and the target were never measured together, the width is infinite.

Everything here is a function of released values. An engine draws the replicates (``practical/convex/replicates``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow import _scipy as scipy
from hedgerow._types import Array
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.engine.sampled_fit import theta_on
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.support import Support

LEVEL = 0.95  # of the interval of one coefficient
FEWER = 8  # replicates of a sampled fit use this many times fewer records, and so does what they are compared with


def bootstrap_widths(
    question: BoundMinimize,
    hypothesis: Hypothesis,
    theta: Array,
    replicates: Sequence[Hypothesis],
    support: Support | None,
) -> Array:
    """Return the half width of the interval of each coefficient.

    ``support`` is that of the question, if it is known.
    """
    fewer = 1 if question.risk.is_listable else FEWER
    middle = theta if fewer == 1 else theta_on(question, hypothesis, fewer)  # on the same records as the replicates
    drawn = np.array([theta_on(question, each, fewer) for each in replicates])
    quantile = float(scipy.special.stdtrit(len(drawn) - 1, (1 + LEVEL) / 2))
    found = np.asarray(np.abs(drawn.mean(axis=0) - middle) + quantile * drawn.std(axis=0, ddof=1))
    risk = question.risk.glm
    if support is not None and risk is not None:
        pairs = [{pair.first, pair.second} for pair in support.separated]
        apart = {name for pair in pairs if risk.target in pair for name in pair - {risk.target}}
        of_feature = found.reshape(risk.features.dimension, -1)  # a column for each class
        of_feature[risk.features.columns_with(apart)] = np.inf
    return found
