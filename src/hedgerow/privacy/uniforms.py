"""Real uniforms, known to as many bits as a question about them needs: the slow, exact half of `noise`.

Every bound rests on `decimal`, whose ln and exp are correctly rounded at any precision: the true value lies strictly
between the neighbours of the result. A question that the known bits do not settle asks for 64 more bits.

Symbols: U a uniform on [0, 1); γ a rate; s a scale. This module draws nothing itself: random words come from the
caller.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class Uniform:
    """A real uniform in [0, 1), known to as many bits as a question about it needs.

    The known bits say that U lies between numerator/2^bits and (numerator + 1)/2^bits.
    """

    def __init__(self, word: np.uint64, words: Callable[[int], Words]) -> None:
        self.numerator, self.bits, self._words = int(word), 64, words

    def refine(self) -> None:
        """Draw 64 more bits of U."""
        self.numerator, self.bits = (self.numerator << 64) | int(self._words(1)[0]), self.bits + 64

    def context(self) -> decimal.Context:
        """Return a decimal context that is precise enough for the known bits."""
        return decimal.Context(prec=self.bits + 40, rounding=decimal.ROUND_HALF_EVEN, traps=[])

    def exponential(self, context: decimal.Context, flipped: bool = False) -> tuple[Decimal, Decimal]:
        """Return bounds on −ln U, or on −ln(1 − U) if ``flipped``.

        n/2^bits has at most ``bits`` digits, so the division is exact.
        """
        n, one = self.numerator, 1 << self.bits
        ends = (one - n, one - n - 1) if flipped else (n + 1, n)
        low, high = (context.ln(context.divide(Decimal(end), Decimal(one))).copy_negate() for end in ends)
        return max(context.next_minus(low), Decimal(0)), context.next_plus(high)

    def floor_exponential(self, s: float) -> int:
        """Return ⌊−s ln U⌋."""
        while True:
            context = self.context()
            low, high = self.exponential(context)
            if high.is_finite():
                low = context.next_minus(context.multiply(low, Decimal(s)))
                high = context.next_plus(context.multiply(high, Decimal(s)))
                if (floor := max(math.floor(low), 0)) == math.floor(high):
                    return floor
            self.refine()

    def is_below_exp(self, γ: Fraction) -> bool:
        """Return True if U < e^−γ."""
        if γ == 0:
            return True
        while True:
            context = self.context()
            rate = context.divide(Decimal(γ.numerator), Decimal(γ.denominator))
            low = context.next_minus(context.exp(context.next_plus(rate).copy_negate()))
            high = context.next_plus(context.exp(context.next_minus(rate).copy_negate()))
            one = Decimal(1 << self.bits)
            if context.divide(Decimal(self.numerator + 1), one) <= low:
                return True
            if context.divide(Decimal(self.numerator), one) >= high:
                return False
            self.refine()


def largest_gumbel(terms: list[tuple[Uniform, Fraction]]) -> int:
    """Return the argmax of shift − ln(−ln(1 − U)) over pairs (U, shift)."""
    while True:
        bounds = []
        for uniform, shift in terms:
            context = uniform.context()
            # A large shift must leave as many digits for the Gumbel as a small one.
            context.prec += len(str(int(abs(shift))))
            low, high = uniform.exponential(context, flipped=True)
            middle = context.divide(Decimal(shift.numerator), Decimal(shift.denominator))
            below = context.subtract(middle, context.next_plus(context.ln(high)))
            above = context.subtract(middle, context.next_minus(context.ln(low)))
            rounding = context.scaleb(context.add(middle.copy_abs(), Decimal(1)), 5 - context.prec)
            bounds.append((context.subtract(below, rounding), context.add(above, rounding)))
        best = max(range(len(bounds)), key=lambda i: bounds[i][0])
        if all(bounds[i][1] < bounds[best][0] for i in range(len(bounds)) if i != best):
            return best
        for uniform, _ in terms:
            uniform.refine()
