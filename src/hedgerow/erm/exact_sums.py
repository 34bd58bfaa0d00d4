"""Exact sums of products of whole numbers, for any number of rows.

Paper: Mironov "On significance of the least significant bits for differential privacy" (the reason for exact sums).

Symbols: |x| ≤ 2^a the entries of X, |v| ≤ 2^b those of V, both whole; n rows; a float64 holds whole numbers up to 2^53.

A product with n·2^(a+b) ≤ 2^53 is exact in float64, in any order of summation. For more rows, V is split into digits of
so few bits that the product of each digit is exact. The products are then combined as whole numbers with carries.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hedgerow._types import Array, Matrix

EXACT = 53  # bits of a float64: whole numbers below 2^53 are exact
# Relative error of a sum beyond 2^53. Its digits, fewer than 32, are combined one by one, each with one rounding.
ROUNDED = 32 * 2.0**-53
BLOCK = 1 << 12  # rows that are summed at a time if the rows are in several places


def exact_sum(X: Matrix, V: Matrix, bits_of_X: int, bits_of_V: int) -> Array:
    """Return Xᵀ·V as float64: exact below 2^53, otherwise with a relative error of at most ``ROUNDED``."""
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
            rest, digit = _split_digit(rest, 2.0**width)
            product = _dense(part.T @ digit).astype(np.int64)
            sums[d : d + 1] = [product + sums[d] if start else product]
            d += 1
    _carry(sums, width)
    total = sums[-1].astype(np.float64)
    for digits in sums[-2::-1]:
        total = total * 2.0**width + digits
    return total


@dataclasses.dataclass
class Digits:
    """Exact sums over rows in several places.

    Each place adds its own rows, and the digits of all places are then added.

    The width of a digit is that of blocks of ``BLOCK`` rows, whatever the total number of rows, so that the digits of
    different places match. All digits are kept below 2^width, except the last. No row's product reaches the last digit
    directly, so it fits an int64.
    """

    bits_of_X: int
    bits_of_V: int
    values: NDArray[np.int64] | None = None  # one digit per line, the lowest first

    @property
    def width(self) -> int:
        """The bits of a digit."""
        return max(EXACT - self.bits_of_X - BLOCK.bit_length() + 1, 1)

    @property
    def lines(self) -> int:
        """The number of digits."""
        return self.bits_of_V // self.width + 2

    def add(self, X: Matrix, V: Matrix) -> None:
        """Add the products of more rows."""
        for start in range(0, int(X.shape[0]), BLOCK):
            part, rest = X[start : start + BLOCK], V[start : start + BLOCK]
            sums: list[NDArray[np.int64]] = []
            while len(sums) * self.width <= self.bits_of_V:
                rest, digit = _split_digit(rest, 2.0**self.width)
                sums.append(_dense(part.T @ digit).astype(np.int64))
            sums.append(np.zeros_like(sums[0]))
            if self.values is not None:
                sums = [new + old for new, old in zip(sums, self.values, strict=True)]
            _carry(sums, self.width)
            self.values = np.array(sums)

    def total(self, rows: int) -> Array:
        """Return what ``exact_sum`` gives for all of these rows together."""
        assert self.values is not None
        wholes = [
            sum(int(digit) << (d * self.width) for d, digit in enumerate(each))
            for each in self.values.reshape(len(self.values), -1).T.tolist()
        ]
        room = EXACT - self.bits_of_X - max(rows - 1, 0).bit_length()
        if rows == 0 or room >= self.bits_of_V:
            return np.array(wholes, np.float64).reshape(self.values.shape[1:])
        width = max(room, 1)
        last = self.bits_of_V // width
        total = np.array([whole >> (last * width) for whole in wholes], np.float64)
        for d in range(last - 1, -1, -1):
            total = total * 2.0**width + np.array([(whole >> (d * width)) & ((1 << width) - 1) for whole in wholes])
        return total.reshape(self.values.shape[1:])


def _carry(sums: list[NDArray[np.int64]], width: int) -> None:
    """Carry in place, so that every digit but the last is from 0 to 2^width − 1."""
    for d in range(len(sums) - 1):
        carry = sums[d] >> width
        sums[d], sums[d + 1] = sums[d] - (carry << width), sums[d + 1] + carry


def _split_digit(V: Matrix, base: float) -> tuple[Matrix, Matrix]:
    """Split V = base·rest + digit, with the sign of V in both."""
    if sp.issparse(V):
        rest, digit = V.copy(), V.copy()
        rest.data, digit.data = _split_digit(V.data, base)
        return rest, digit
    rest = np.trunc(V / base)
    return rest, V - base * rest


def _dense(product: Any) -> Array:
    return np.asarray(product.toarray() if sp.issparse(product) else product)


def row_products(X: Matrix, vector: Array) -> Array:
    """Return ⟨x, vector⟩ for every row x, each computed from that row alone, to the last bit.

    A matrix product would compute rows in blocks, so the last bit of one row would depend on the number of rows before
    it. A neighbour's row could then move other rows across a kink of the loss. The same holds for rows that are not
    contiguous.
    """
    return np.asarray(np.vecdot(np.ascontiguousarray(X), vector) if isinstance(X, np.ndarray) else X @ vector)


def exact_row_products(X: Matrix, vector: Array, bits_of_X: int) -> Array:
    """Return ⟨x, vector⟩ for every row x of whole numbers, with a relative error of 2^-52.

    The vector is split into digits whose products are exact.
    """
    width = max(EXACT - bits_of_X - int(X.shape[1]).bit_length(), 1)
    step, rest = 2.0 ** np.frexp(np.abs(vector).max())[1], vector
    total, lost = np.zeros(X.shape[0]), np.zeros(X.shape[0])
    for _ in range(1 + 90 // width):
        step = step * 2.0**-width
        digit = np.trunc(rest / step)
        rest = rest - digit * step
        term = np.asarray(X @ digit) * step
        before, total = total, total + term
        lost += (before - (total - (total - before))) + (term - (total - before))  # the rounding error of the addition
    return total + lost
