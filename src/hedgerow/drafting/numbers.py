"""Find the range of a column's numbers, and cuts between them.

Papers: McSherry & Talwar "Mechanism design via differential privacy"; Smith "Privacy-preserving statistical estimation
with optimal convergence rates" (quantiles by the exponential mechanism); Karwa & Vadhan "Finite sample differentially
private confidence intervals" (bounds from a noisy histogram).

Bounds come from noisy counts of signed powers of two, and closer bounds from noisy counts between cuts. A cut is chosen
among public candidates c by how near #{x < c} is to a wanted number of rows. This score is a whole number, which one
row changes by at most the sensitivity of the event.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.value_counts import Counted
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential, Gaussian, Laplace
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise

LEAST, MOST = -16, 63  # exponents of two: smaller numbers count as the least, larger ones as the most
CELLS = 2 * (MOST - LEAST + 1) + 1  # in order: negative powers from the largest down, zero, positive powers
ZERO = CELLS // 2  # the cell of zero
FAILURE = 0.01  # the probability that noise alone is taken for rows


def powers_of_two(numbers: Counted) -> NDArray[np.int64]:
    """Return how many rows have a number of each sign and power of two."""
    values, times = numbers
    counts = np.zeros(CELLS, np.int64)
    with np.errstate(all="ignore"):
        exponents = np.where(np.isinf(values), MOST, np.frexp(np.abs(values))[1].astype(np.int64) - 1)
    steps = np.clip(exponents, LEAST, MOST) - LEAST + 1
    np.add.at(counts, np.where(values == 0, ZERO, np.where(values > 0, ZERO + steps, ZERO - steps)), times)
    return counts


def level(event: Laplace | Gaussian, cells: int) -> float:
    """Return a level that the noise exceeds in some cell with probability at most ``FAILURE``."""
    if isinstance(event, Laplace):
        return event.scale * math.log(cells / FAILURE)
    return event.sigma * math.sqrt(2 * math.log(cells / FAILURE))


def bounds(
    numbers: Counted, event: Laplace | Gaussian, ledger: Ledger, noise: Noise, why: str
) -> tuple[float, float] | None:
    """Return powers of two, or zero, between which the numbers lie, or None if there are too few numbers to say."""
    receipt = ledger.charge(event, why=why)
    noisy = noise.add(powers_of_two(numbers), receipt)
    there = occupied_range(noisy, event)
    return None if there is None else (_end(there[0], upper=False), _end(there[1], upper=True))


def occupied_range(noisy: NDArray[np.float64], event: Laplace | Gaussian) -> tuple[int, int] | None:
    """Return the first and the last cell that contain more than noise, alone or together with all cells beyond them."""
    seen = level(event, 4 * noisy.size)
    if not (noisy > seen).any():
        return None
    return _first(noisy, seen), noisy.size - 1 - _first(noisy[::-1], seen)


def _first(noisy: NDArray[np.float64], seen: float) -> int:
    """Return the first cell that contains more than noise, alone or together with all cells before it."""
    together = np.cumsum(noisy) > seen * np.sqrt(np.arange(1, noisy.size + 1))
    return int(np.flatnonzero((noisy > seen) | together)[0])


def ends(
    numbers: Counted, cuts: NDArray[np.float64], event: Laplace | Gaussian, ledger: Ledger, noise: Noise, why: str
) -> tuple[int, int] | None:
    """Return the indices of two cuts between which nearly all numbers lie, or None if there are too few to say."""
    receipt = ledger.charge(event, why=why)
    noisy = noise.add(np.diff(below(numbers, cuts)), receipt)
    there = occupied_range(noisy, event)
    return None if there is None else (there[0], there[1] + 1)


def _end(cell: int, *, upper: bool) -> float:
    """Return the lower or the upper end of the numbers in a cell."""
    if cell == ZERO:
        return 0.0
    exponent = abs(cell - ZERO) - 1 + LEAST
    away = upper == (cell > ZERO)  # True for the end that is farther from zero
    return math.copysign(math.ldexp(1.0, exponent + away), cell - ZERO)


def below(numbers: Counted, cuts: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many rows have a number below each cut."""
    values, times = numbers
    return np.concatenate([[0], np.cumsum(times)])[np.searchsorted(values, cuts, side="left")].astype(np.int64)


def quantile_sensitivity(budget: Budget, part: int, parts: int) -> float:
    """Return the sensitivity of parts·#{x < c} − part·#{x}.

    A row that is added or removed changes it by parts − part or by part. A row that crosses the cut changes it by
    parts.
    """
    return float(parts if budget.neighbours == "replace" else max(part, parts - part))


def quantile_cut(
    numbers: Counted, cuts: NDArray[np.float64], part: int, parts: int, event: Exponential, ledger: Ledger,
    noise: Noise, why: str,
) -> int:  # fmt: skip
    """Choose the candidate with about part/parts of the numbers below it, and return its index.

    The score is a whole number.
    """
    receipt = ledger.charge(event, why=why)
    scores = -np.abs(parts * below(numbers, cuts) - part * int(numbers[1].sum()))
    return noise.choose(scores, receipt)


def candidates(low: float, high: float, whole: bool, most: int) -> NDArray[np.float64]:
    """Return public cuts, evenly from low to above high, at whole numbers if ``whole``."""
    if whole:
        step = max(1, math.ceil((high - low + 1) / most))
        return np.arange(math.floor(low), math.floor(high) + step + 1, step).astype(float)
    return np.append(np.linspace(low, high, most + 1), math.nextafter(high, math.inf))
