"""Hypotheses for other draws of the noise: new measurements of the hypothesis, and a model fitted to each draw.

They serve the bootstrap of coefficients (``engine/coefficient_widths``). Everything here is a function of released
values. The draws are public, under a seed that is made of the released values, and no budget is spent.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

from hedgerow._types import Array
from hedgerow.engine.practical.fit.residuals import center, from_coordinates
from hedgerow.engine.practical.free_answers import FittedModel, FreeAnswers
from hedgerow.engine.practical.measurement import Measurement
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.events import Laplace
from hedgerow.privacy.noise import public_generator

REPLICATES = 16
REFIT_STEPS = 30  # most steps of the fit of a replicate, which starts from the fitted model
TOLERANCE = 0.1  # nats


class Replicates:
    """The replicates of one state of knowledge. They are fitted on first use, and serve every question."""

    def __init__(self, known: FreeAnswers) -> None:
        self.hypothesis, self._learned = known.hypothesis, known.learned
        self._found: list[Hypothesis] = []

    def hypotheses(self) -> list[Hypothesis]:
        """Return the hypotheses of the replicates."""
        if not self._found:
            released = b"".join(measurement.values.tobytes() for measurement in self._learned.measurements)
            rng = public_generator(zlib.crc32(released))  # other blocks of a session get other draws
            self._found = [_replicate(self._learned, self.hypothesis, rng) for _ in range(REPLICATES)]
        return self._found


def _replicate(learned: FittedModel, hypothesis: Hypothesis, rng: np.random.Generator) -> Hypothesis:
    """Draw all measurements anew from the hypothesis, and fit the model to them."""
    twin = learned.with_measurements([_redraw(each, learned, hypothesis, rng) for each in learned.measurements])
    twin.refit(REFIT_STEPS, TOLERANCE)
    return twin.hypothesis()


def _redraw(
    measurement: Measurement, learned: FittedModel, hypothesis: Hypothesis, rng: np.random.Generator
) -> Measurement:
    """Return a measurement with the hypothesis' own counts and new noise."""
    names, rows = measurement.attributes, learned.rows
    if measurement.query is not None:
        counts = np.asarray(rows * hypothesis.answer(measurement.query))
    elif measurement.of_groups:
        counts = rows * learned.marginal(names)
    else:
        counts = rows * hypothesis.marginal(names)
    if not (measurement.residual and names):
        values = counts + _noise(measurement, np.shape(counts), rng)
    else:
        contrasts = measurement.contrasts
        values = center(counts) + from_coordinates(
            _noise(measurement, tuple(c.count for c in contrasts), rng), contrasts
        )
    return measurement.with_values(np.asarray(values).reshape(measurement.values.shape))


def _noise(measurement: Measurement, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw public noise of the law of a measurement's event."""
    scale = math.sqrt(measurement.variance)
    if isinstance(measurement.event, Laplace):
        return np.asarray(rng.laplace(0.0, scale / math.sqrt(2), shape))
    return np.asarray(rng.normal(0.0, scale, shape))
