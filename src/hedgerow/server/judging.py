"""Judge a fitted model on the public hypothesis: its risk and that of a model without features, and its calibration.

Both are averages over a weighted sample of the hypothesis, so they are free. Noise in the hypothesis does not show in
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # submodules load on first use

from hedgerow._types import Array
from hedgerow.answering.model_effects import calibration_table, sampled_outcomes
from hedgerow.convex.bound_loss import GlmRisk
from hedgerow.query.counts import Query
from hedgerow.universe.universe import Universe

GROUPS = 8  # of records with similar predictions
FARTHEST = 50.0  # predictors of the baseline
YES_OR_NO = ("Logistic", "Hinge", "SmoothedHinge")


def judge_model(hypothesis: Any, universe: Universe, query: Query, theta: Array) -> dict[str, Any]:
    """Return the risks of a model and of the best model without features, and how predictions agree with what is there.

    ``gain`` is the part of the baseline's risk that the features take away, where that risk is positive. ``share`` is
    the weight of a group, ``predicted`` the mean prediction, and ``observed`` the mean of the target: a share for a
    target of yes or no, and otherwise a number in the units of the target.
    """
    risk: GlmRisk = query.loss.on(universe)  # type: ignore[attr-defined]
    scores, cells, weights = sampled_outcomes(risk, hypothesis, lambda rows: rows @ theta.reshape((-1, *risk.outputs)))
    weights = weights / weights.sum()
    labels = risk.labels[cells]
    own, baseline = float(weights @ risk.loss.value(scores, labels)), _baseline(risk, labels, weights)
    found: dict[str, Any] = {
        "risk": own,
        "baseline": baseline,
        "gain": 1 - own / baseline if baseline > 0 else None,
        "groups": [],
        "unit": "share" if type(risk.loss).__name__ in YES_OR_NO else "number",
    }
    seen = _in_units(risk, scores, cells)
    if seen is not None:
        table = calibration_table(*seen, weights, GROUPS)
        found["groups"] = table.to_dict(orient="records")
    return found


def _baseline(risk: GlmRisk, labels: Array, weights: Array) -> float:
    """Return the least risk of a model that predicts the same for every record."""
    values, places = np.unique(labels, return_inverse=True)
    shares = np.bincount(places.ravel(), weights)
    if risk.outputs:  # the best scores of classes are the logarithms of their shares
        return float(-(shares @ np.log(np.maximum(shares, 1e-300))))
    best = scipy.optimize.minimize_scalar(
        lambda z: float(shares @ risk.loss.value(np.full(len(values), z), values)), bounds=(-FARTHEST, FARTHEST), method="bounded"
    )  # fmt: skip
    return float(best.fun)


def _in_units(risk: GlmRisk, scores: Array, cells: Any) -> tuple[Array, Array] | None:
    """Return predictions and outcomes in the same units, or None for a target of several classes."""
    name, declared = type(risk.loss).__name__, risk.universe[risk.target]
    if risk.outputs:
        return None
    if name in YES_OR_NO:
        predicted = scipy.special.expit(scores) if name == "Logistic" else (scores > 0).astype(float)
        return predicted, (cells == 1).astype(float)
    if declared.values is None:
        return None
    observed = np.asarray(declared.values, float)[cells]
    if name == "Poisson":
        return np.exp(np.minimum(scores, FARTHEST)), observed
    centre, half = declared.scale
    return centre + half * scores, observed
