"""Tables on which no private lasso does well, SCALED DOWN: fingerprinting codewords over orthogonal rows.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, Theorem 5.8 and Lemma 5.10. The code is Tardos', padded as in Dwork, Talwar, Thakurta & Zhang
"Analyze Gauss".

Symbols: w + 1 codewords x_j ∈ {±1}^p, of which table D_i leaves out the i-th; τ the share of code columns, the others
being padding on which all codewords agree; Y a k × p matrix of orthogonal ±1 columns, k ≈ τwp.

With labels 1 on the codewords and 0 on the rows of Y, the sum of squares is Σ(⟨x_j, θ⟩ − 1)² + k‖θ‖₂². Over the ℓ1
ball, a good θ must therefore spread over the columns and carry the sign of each consensus column, which is a trace of
the codewords.

Differs: the theorem takes τ = 0.001, w = m/log m and p = 1000m² for a large m, so it says nothing before p ~ 10¹⁰. Here
τ is larger, p is what fits in memory, and k is the power of two that has a Hadamard matrix. The table keeps its shape
and the sign argument holds, but the constants of the theorem do not. It is a generator for experiments, not a
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
    """The table D_i: rows with |x|∞ = 1 and labels 0 or 1.

    It is public, because it is made up and drawn from nobody's data.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    signs: NDArray[np.float64]  # signs of the consensus columns, 0 elsewhere
    left_out: NDArray[np.float64]  # the codeword that the table leaves out
    code_share: float
    label: str = LABEL

    def agreement(self, theta: NDArray[np.float64]) -> float:
        """Return the share of all columns that are consensus columns whose sign θ carries. A good θ has at least ¾."""
        return float(np.mean((self.signs != 0) & (np.sign(theta) == self.signs)))

    def reference(self) -> NDArray[np.float64]:
        """Return θ* = signs/p, whose sum of squares is at most w(2τ)² + k/p."""
        return self.signs / self.signs.size


def hard_instance(
    codewords: int, features: int, *, generator: np.random.Generator, code_share: float = 0.1, left_out: int = 0
) -> HardInstance:
    """Generate the table D_i, scaled down (see the module's docstring).

    Parameters
    ----------
    codewords : int
        w + 1, at least 2.
    features : int
        p, at least 2.
    generator : numpy Generator
        The source of randomness. The table is public, so the noise need not be secure.
    code_share : float
        τ, the share of code columns.
    left_out : int
        i, the number of the codeword that the table leaves out.

    Returns
    -------
    HardInstance

    Raises
    ------
    InvalidInput
        If a parameter is out of range.
    """
    w, p = codewords - 1, features
    if w < 1 or p < 2 or not 0 < code_share < 1 or not 0 <= left_out <= w:
        raise InvalidInput(
            "There must be 2 codewords or more, 2 features or more, a code share between 0 and 1 and a left-out "
            f"codeword among them. Found {codewords}, {features}, {code_share} and {left_out}. Correct them."
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
    """Return shuffled codewords: code columns and padding columns.

    Code columns have a bias from the arcsine law, away from its ends. Padding columns are all +1 or all −1.
    """
    code = max(1, round(share * p))
    cut = math.asin(math.sqrt(1 / (300 * words)))  # Tardos' t = 1/(300 w)
    bias = np.sin(generator.uniform(cut, math.pi / 2 - cut, code)) ** 2
    coded = np.where(generator.random((words, code)) < bias, 1.0, -1.0)
    padding = np.broadcast_to(np.where(np.arange(p - code) % 2, 1.0, -1.0), (words, p - code))
    return np.hstack([coded, padding])[:, generator.permutation(p)]


@dataclass(frozen=True)
class ReconstructionInstance:
    """A secret of m bits, each in ``copies`` rows of a table, and m counts from which it can be rebuilt.

    Paper: Kasiviswanathan, Rudelson & Smith, *The power of linear reconstruction attacks*. Proof:
    docs/proofs/lower_bounds.md.
    """

    secret: NDArray[np.int64]
    counts: NDArray[np.int64]  # rows in each of the m cells, and in a last one
    questions: NDArray[np.float64]  # m questions over m + 1 cells, each 0 or 1 per cell
    copies: int

    @property
    def answers(self) -> NDArray[np.float64]:
        """The true answers, as fractions of the rows."""
        return np.asarray(self.questions @ self.counts / self.counts.sum())

    def rebuild(self, answers: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the bits that these answers point to: the inverse Hadamard transform, rounded."""
        m, n = len(self.secret), int(self.counts.sum())
        signed = 2 * answers - answers[0]
        found = hadamard(m, dtype=np.float64).T @ signed * (n / (self.copies * m))
        return np.asarray(found >= 0.5, dtype=np.int64)

    def most_wrong(self, error: float) -> float:
        """Return a bound on the share of wrong bits if every answer is within ``error``: 36α²n²/(g²m)."""
        n = int(self.counts.sum())
        return 36 * (error * n / self.copies) ** 2 / len(self.secret)


def reconstruction_instance(
    bits: int, rows: int, *, generator: np.random.Generator, copies: int = 1
) -> ReconstructionInstance:
    """Generate a table whose counts give its rows away if they are too accurate.

    Parameters
    ----------
    bits : int
        m, a power of two.
    rows : int
        n, at least ``bits`` × ``copies``.
    generator : numpy Generator
        The source of randomness. The table is public, so the noise need not be secure.
    copies : int
        g, the rows of each bit.

    Returns
    -------
    ReconstructionInstance

    Raises
    ------
    InvalidInput
        If a parameter is out of range.
    """
    if bits < 2 or bits & (bits - 1) or copies < 1 or rows < bits * copies:
        raise InvalidInput(
            "bits must be a power of two of at least 2, with bits × copies rows or more. Found "
            f"{bits}, {copies} and {rows}. Correct them."
        )
    secret = generator.integers(0, 2, bits)
    counts = np.append(secret * copies, rows - secret.sum() * copies)
    questions = np.hstack([(hadamard(bits) > 0).astype(np.float64), np.zeros((bits, 1))])
    return ReconstructionInstance(secret, counts, questions, copies)
