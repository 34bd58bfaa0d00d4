"""Exact privacy losses of small mechanisms, by enumeration. The demonstrations use them."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from hedgerow._types import Array


def binomial_delta(epsilon: float, trials: int, p: float, q: float) -> float:
    """Return the least δ at which ``trials`` coins of bias p and of bias q are (epsilon, δ)-indistinguishable."""
    log_p, log_q = _log_binomial(trials, p), _log_binomial(trials, q)
    return max(_hockey_stick(epsilon, log_p, log_q), _hockey_stick(epsilon, log_q, log_p))


def randomized_response_delta(epsilon: float, each: float, times: int, leak: float = 0.0) -> float:
    """Return δ at epsilon of repeated randomized responses, the worst among (``each``, ``leak``)-private mechanisms."""
    yes = 1 / (1 + math.exp(-each))
    return 1 - (1 - leak) ** times * (1 - binomial_delta(epsilon, times, yes, 1 - yes))


def _log_binomial(n: int, p: float) -> Array:
    k = np.arange(n + 1)
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p))


def _hockey_stick(epsilon: float, log_p: Array, log_q: Array) -> float:
    """Return Σ max(0, p − e^ε·q)."""
    gain = epsilon + log_q - log_p
    return float(np.sum(np.where(gain < 0, -np.exp(log_p) * np.expm1(np.minimum(gain, 0.0)), 0.0)))
