"""Describe a fitted model: mean predictions by the values of a feature, and predicted beside observed shares.

Both are averages over a weighted sample of a public hypothesis, or over a frame of one's own. Neither costs anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk
from hedgerow.engine.sampled_fit import SampledHypothesis, draw_records

if TYPE_CHECKING:
    import pandas as pd

RECORDS = 20_000  # of the hypothesis, over which predictions are averaged
SEED = 496  # public: it makes the averages repeatable
MOST_SHOWN = 12  # values of a feature with many: this many, evenly spaced


def mean_predictions(risk: GlmRisk, hypothesis: SampledHypothesis, predict: Callable[[Array], Array]) -> pd.DataFrame:
    """Return the mean prediction with each feature set to each of its values, all else as in the hypothesis.

    ``predict`` turns feature vectors into predictions. The frame has the feature, the value, the mean prediction, and
    its difference from the one at the feature's first value.
    """
    import pandas as pd

    columns, weights = draw_records(risk, hypothesis, RECORDS, SEED)
    weights = _where(risk, columns, weights)
    cells = {name: columns[risk.attributes.index(name)] for name in risk.features.attributes}
    found = []
    for name in risk.features.attributes:
        labels = risk.universe[name].labels
        shown = np.unique(np.linspace(0, len(labels) - 1, min(MOST_SHOWN, len(labels))).astype(int))
        means = [
            float(weights @ predict(risk.features.rows({**cells, name: np.full(weights.size, cell)})) / weights.sum())
            for cell in shown
        ]
        found += [(name, labels[cell], mean, mean - means[0]) for cell, mean in zip(shown, means, strict=True)]
    return pd.DataFrame(found, columns=["feature", "value", "prediction", "difference"])


def sampled_outcomes(
    risk: GlmRisk, hypothesis: SampledHypothesis, predict: Callable[[Array], Array]
) -> tuple[Array, NDArray[np.int64], Array]:
    """Return the predictions, the true cells of the target and the weights of records of the hypothesis."""
    columns, weights = draw_records(risk, hypothesis, RECORDS, SEED)
    cells = {name: columns[risk.attributes.index(name)] for name in risk.features.attributes}
    rows = risk.features.rows(cells) if cells else np.ones((weights.size, 1))
    return predict(rows), columns[risk.attributes.index(risk.target)].astype(np.int64), _where(risk, columns, weights)


def calibration_table(predicted: Array, happened: Array, weights: Array, bins: int) -> pd.DataFrame:
    """Return, for groups of records with similar predictions, the mean prediction and the share where it happened.

    Groups have about the same weight; records of equal prediction stay together.
    """
    import pandas as pd

    order = np.argsort(predicted, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    edges = np.unique(predicted[order][np.searchsorted(reached, np.arange(1, bins) / bins)])
    group = np.searchsorted(edges, predicted, side="right")
    sums = [np.bincount(group, weights * each, len(edges) + 1) for each in (np.ones(len(group)), predicted, happened)]
    kept = sums[0] > 0
    weight, mean, observed = (each[kept] for each in sums)
    return pd.DataFrame({"share": weight / weight.sum(), "predicted": mean / weight, "observed": observed / weight})


def _where(risk: GlmRisk, columns: NDArray[np.int32], weights: Array) -> Array:
    """Leave out the records outside ``where``."""
    if risk.restriction is None:
        return weights
    places = tuple(columns[risk.attributes.index(name)] for name in risk.restriction.attributes)
    return np.asarray(weights * risk.restriction.table[places])
