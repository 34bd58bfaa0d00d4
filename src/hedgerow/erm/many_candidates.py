"""The exponential mechanism among millions of candidates, exactly, without a draw for each.

Papers: McSherry & Talwar "Mechanism design via differential privacy"; Walker's rejection from a staircase.

Symbols: s_i a score, b = 2Δ/ε the event's scale, γ_i = (max s − s_i)/b ≥ 0; candidate i is wanted with probability
∝ e^(−γ_i), which is the law of argmax(s + Gumbel(b)). k_i a whole number ≤ γ_i/ln 2, so that e^(−γ_i) ≤ 2^(−k_i).

Propose i with probability ∝ 2^(−k_i), a whole number below Σ 2^(K − k_i); accept it with probability e^(−γ_i)·2^(k_i),
which is at least ½ but for candidates of no weight. What is accepted has the law wanted, exactly, whatever the k_i, as
long as the acceptance probabilities are at most 1: rounding in the k_i costs time, never privacy. The coin is settled
with as many bits as it takes (`uniforms`), on the exact rational γ_i.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.privacy.events import Exponential
from hedgerow.privacy.noise import Noise
from hedgerow.privacy.uniforms import Uniform, Words

FEW = 1 << 13  # below, a Gumbel draw for each costs no more


def choose(noise: Noise, scores: NDArray[np.float64], event: Exponential) -> int:
    """Index i with probability ∝ exp(ε·score_i/2Δ), exactly: what ``noise.choose`` does, fast for many scores."""
    return noise.choose(scores, event) if scores.size <= FEW else choose_among_many(noise, scores, event)


def choose_among_many(noise: Noise, scores: NDArray[np.float64], event: Exponential) -> int:
    top = scores.max()
    deepest = 62 - scores.size.bit_length()  # K: Σ 2^(K − k) fits 63 bits
    # γ/ln 2 carries a relative rounding error far below 2^-40, so k stays at or below its true value
    depth = np.minimum((top - scores) * ((1 - 2.0**-40) / (math.log(2) * event.scale)), deepest).astype(np.int8)
    counts = np.bincount(depth, minlength=deepest + 1).tolist()
    total = sum(count << (deepest - k) for k, count in enumerate(counts))
    scale = 2 * Fraction(event.sensitivity) / Fraction(event.epsilon)

    def words(count: int) -> Words:
        halves = noise.subsample(1 << 32, 2 * count, replace=True).astype(np.uint64).reshape(2, count)
        joined: Words = (halves[0] << np.uint64(32)) | halves[1]
        return joined

    while True:
        rest, k = int(noise.subsample(total, 1, replace=True)[0]), 0
        while rest >= counts[k] << (deepest - k):
            rest -= counts[k] << (deepest - k)
            k += 1
        i = int(np.flatnonzero(depth == k)[rest >> (deepest - k)])
        coin = Uniform(words(1)[0], words)
        coin.bits += k  # now uniform on [0, 2^-k)
        if coin.is_below_exp((Fraction(float(top)) - Fraction(float(scores[i]))) / scale):
            return i
