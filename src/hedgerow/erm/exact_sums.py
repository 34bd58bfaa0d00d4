"""Sums of products of whole numbers, exact for any number of rows.

Paper: Mironov "On significance of the least significant bits for differential privacy" (why sums are exact).

Symbols: |x| ≤ 2^a the entries of X, |v| ≤ 2^b those of V, both whole; n rows; a float64 holds whole numbers up to 2^53.

A product with n·2^(a+b) ≤ 2^53 is exact in float64, in any order. Where there are more rows V is taken apart into digits of
so few bits that each digit's product is exact, and the products are put together again as whole numbers with carries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hedgerow._types import Array, Matrix

EXACT = 53  # bits of a float64: whole numbers below 2^53 are exact


def exact_sum(X: Matrix, V: Matrix, bits_of_X: int, bits_of_V: int) -> Array:
    """Xᵀ·V, rounded once to a float64: exact where it is below 2^53."""
    n = int(X.shape[0])
    room = EXACT - bits_of_X - max(n - 1, 0).bit_length()
    if n == 0 or room >= bits_of_V:
        return _dense(X.T @ V)
    width = max(room, 1)
    block = 1 << (EXACT - bits_of_X - width)
    sums: list[NDArray[np.int64]] = []
    for start in range(0, n, block):
        part, rest, d = X[start : start + block], V[start : start + block], 0
        while d * width <= bits_of_V:
            rest, digit = _split(rest, 2.0**width)
            product = _dense(part.T @ digit).astype(np.int64)
            sums[d : d + 1] = [product + sums[d] if start else product]
            d += 1
    for d in range(len(sums) - 1):  # carries, so that all but the last are digits from 0 to 2^width − 1
        carry = sums[d] >> width
        sums[d], sums[d + 1] = sums[d] - (carry << width), sums[d + 1] + carry
    total = sums[-1].astype(np.float64)
    for digits in sums[-2::-1]:
        total = total * 2.0**width + digits
    return total


def _split(V: Matrix, base: float) -> tuple[Matrix, Matrix]:
    """V = base·rest + digit, both of V's sign."""
    if sp.issparse(V):
        rest, digit = V.copy(), V.copy()
        rest.data, digit.data = _split(V.data, base)
        return rest, digit
    rest = np.trunc(V / base)
    return rest, V - base * rest


def _dense(product: Any) -> Array:
    return np.asarray(product.toarray() if sp.issparse(product) else product)


def row_products(X: Matrix, vector: Array) -> Array:
    """⟨x, vector⟩ for every row x, each from that row alone, to the last bit.

    A matrix product would compute rows in blocks, and the last bit of one would depend on how many rows come before it: a
    neighbour's row could then move other rows across a kink of the loss. So would rows not stored one after the other.
    """
    return np.asarray(np.vecdot(np.ascontiguousarray(X), vector) if isinstance(X, np.ndarray) else X @ vector)


def exact_row_products(X: Matrix, vector: Array, bits_of_X: int) -> Array:
    """⟨x, vector⟩ for every row x of whole numbers, with a relative error of 2^-52: the vector, too, in exact digits."""
    width = max(EXACT - bits_of_X - int(X.shape[1]).bit_length(), 1)
    step, rest = 2.0 ** np.frexp(np.abs(vector).max())[1], vector
    total, lost = np.zeros(X.shape[0]), np.zeros(X.shape[0])
    for _ in range(1 + 90 // width):
        step = step * 2.0**-width
        digit = np.trunc(rest / step)
        rest = rest - digit * step
        term = np.asarray(X @ digit) * step
        before, total = total, total + term
        lost += (before - (total - (total - before))) + (term - (total - before))  # what the addition rounded off
    return total + lost
