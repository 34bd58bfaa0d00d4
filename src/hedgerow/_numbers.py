"""Write numbers for people."""

from __future__ import annotations

import math


def few_digits(number: float, digits: int = 4) -> str:
    """Return a number with a few significant digits, and in full, without a power of ten, if it is large.

    Example
    -------
    >>> few_digits(43674.2), few_digits(0.123456), few_digits(2e20)
    ('43,674', '0.1235', '2e+20')
    """
    if math.isfinite(number) and 10**digits <= abs(number) < 1e15:
        return f"{number:,.0f}"
    return f"{number:.{digits}g}"
