"""The tables on which no private lasso does well, SCALED DOWN: fingerprinting codewords over orthogonal rows.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, Theorem 5.8 and Lemma 5.10; the code is Tardos', padded as in Dwork, Talwar, Thakurta & Zhang
"Analyze Gauss".

Symbols: w + 1 codewords x_j ∈ {±1}^p of which table D_i leaves out the i-th; τ the share of code columns, the others
being padding on which all codewords agree; Y a k × p matrix of orthogonal ±1 columns, k ≈ τwp. With labels 1 on the
codewords and 0 on the rows of Y the sum of squares is Σ(⟨x_j, θ⟩ − 1)² + k‖θ‖₂², so that over the ℓ1 ball a good θ must
spread over the columns and carry the sign of each consensus column: a codeword's trace.

Differs: the theorem takes τ = 0.001, w = m/log m and p = 1000m² for a large m, so p ~ 10¹⁰ before it says anything.
Here τ is larger and p is what fits in memory, and k is the power of two that carries a Hadamard matrix. The table keeps
its shape, and the sign argument holds; the constants of the theorem do not. It is a generator for experiments, not a
certificate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from hedgerow.errors import InvalidInput

LABEL = "scaled-down hard instance of Theorem 5.8"


@dataclass(frozen=True)
class HardInstance:
    """D_i: rows with |x|∞ = 1 and labels 0 or 1. Public: made up, not drawn from anyone's data."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    signs: NDArray[np.float64]  # of the consensus columns, 0 elsewhere
    left_out: NDArray[np.float64]  # the codeword that is not in the table
    code_share: float
    label: str = LABEL

    def agreement(self, theta: NDArray[np.float64]) -> float:
        """The share of all columns that are consensus columns whose sign θ carries: at least ¾ for a good θ."""
        return float(np.mean((self.signs != 0) & (np.sign(theta) == self.signs)))

    def reference(self) -> NDArray[np.float64]:
        """θ* = signs/p, whose sum of squares is at most w(2τ)² + k/p."""
        return self.signs / self.signs.size


def hard_instance(
    codewords: int, features: int, *, generator: np.random.Generator, code_share: float = 0.1, left_out: int = 0
) -> HardInstance:
    """D_i for ``codewords`` = w + 1 and p = ``features``; ``left_out`` is i. Scaled down: see the module."""
    w, p = codewords - 1, features
    if w < 1 or p < 2 or not 0 < code_share < 1 or not 0 <= left_out <= w:
        raise InvalidInput(
            "There must be 2 codewords or more, 2 features or more, a code share between 0 and 1 and a left-out codeword "
            f"among them. Found {codewords}, {features}, {code_share} and {left_out}. Correct them."
        )
    k = 2 ** math.ceil(math.log2(max(code_share * w * p, p)))  # orthogonal columns need k ≥ p
    words = _padded_tardos(w + 1, p, code_share, generator)
    kept = np.delete(words, left_out, axis=0)
    signs = np.where(np.abs(kept.sum(axis=0)) == w, np.sign(kept.sum(axis=0)), 0.0)
    Y = hadamard(k, dtype=np.float64)[:, generator.permutation(k)[:p]]
    return HardInstance(
        X=np.vstack([Y, kept]),
        y=np.concatenate([np.zeros(k), np.ones(w)]),
        signs=signs,
        left_out=words[left_out],
        code_share=code_share,
    )


def _padded_tardos(words: int, p: int, share: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """Code columns with a bias from the arcsine law away from its ends, and padding columns all +1 or all −1; shuffled."""
    code = max(1, round(share * p))
    cut = math.asin(math.sqrt(1 / (300 * words)))  # Tardos' t = 1/(300 w)
    bias = np.sin(generator.uniform(cut, math.pi / 2 - cut, code)) ** 2
    coded = np.where(generator.random((words, code)) < bias, 1.0, -1.0)
    padding = np.broadcast_to(np.where(np.arange(p - code) % 2, 1.0, -1.0), (words, p - code))
    return np.hstack([coded, padding])[:, generator.permutation(p)]
