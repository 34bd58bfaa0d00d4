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
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.value_counts import Counted
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential, Gaussian, Laplace
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise

LEAST, MOST = -16, 63  # exponents of two: smaller numbers count as the least, larger ones as the most
CELLS = 2 * (MOST - LEAST + 1) + 1  # in order: negative powers from the largest down, zero, positive powers
CANDIDATES = 1024  # the number of candidates for the cuts of numbers
MARKS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)  # round numbers of one size
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
    if there is None:
        return None
    first, last = _widen(noisy, there[0], -1, event), _widen(noisy, there[1], 1, event)
    return _end(first, upper=False), _end(last, upper=True)


def _widen(noisy: NDArray[np.float64], cell: int, step: int, event: Laplace | Gaussian) -> int:
    """Return the outermost cell, up to two farther, that may hold rows: its count exceeds the spread of the noise."""
    for _ in range(2 * (cell != ZERO)):  # zero is an end of its own
        if 0 <= cell + step < noisy.size and noisy[cell + step] > spread(event):
            cell += step
    return cell


def spread(event: Laplace | Gaussian) -> float:
    """Return the standard deviation of the noise."""
    return event.scale * math.sqrt(2) if isinstance(event, Laplace) else event.sigma


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


@dataclass(frozen=True)
class EndEstimate:
    """Two cuts between which nearly all numbers lie, and how many lie outside as far as the noise tells."""

    first: int
    last: int
    below: float
    above: float
    noise: float
    """Standard deviation of the noise of ``below`` and ``above``, of the larger one."""


def ends(
    numbers: Counted, cuts: NDArray[np.float64], allowed: float, event: Laplace | Gaussian, ledger: Ledger, noise: Noise,
    why: str,
) -> EndEstimate | None:  # fmt: skip
    """Choose two cuts outside which about ``allowed`` rows lie on each side, or None if there are too few rows to say.

    A side is cut off up to the outermost cell with more than noise, or less far if the noisy count of what is cut off
    exceeds ``allowed`` by more than the noise's standard deviation.
    """
    receipt = ledger.charge(event, why=why)
    cuts = np.array([-np.inf, *cuts, np.inf])  # what lies beyond the cuts is counted, too
    noisy = noise.add(np.diff(below(numbers, cuts)), receipt)
    there = occupied_range(noisy[1:-1], event)
    if there is None:
        return None
    low, under = _cut_off(noisy, there[0], allowed, event)
    high, over = _cut_off(noisy[::-1], noisy.size - 3 - there[1], allowed, event)
    widest = spread(event) * math.sqrt(max(low, high) + 1)
    return EndEstimate(low, noisy.size - 2 - high, max(0.0, under), max(0.0, over), widest)


def _cut_off(noisy: NDArray[np.float64], most: int, allowed: float, event: Laplace | Gaussian) -> tuple[int, float]:
    """Return the number of cells to cut off, at most ``most``, and the noisy number of rows in them."""
    together = np.cumsum(noisy)
    fit = (k for k in range(most, 0, -1) if together[k] <= allowed + spread(event) * math.sqrt(k + 1))
    cells = next(fit, 0)
    return cells, float(together[cells])


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


def nice_cuts(low: float, high: float, whole: bool, most: int) -> NDArray[np.float64]:
    """Return round cuts from below low to above high: even ones, or for numbers of many sizes ones that grow with them.

    A scale of money or of counts has many sizes. Numbers that reach over a factor of 16 or more are taken for one.
    """
    if whole and high - low < most:
        return np.arange(math.floor(low), math.floor(high) + 2).astype(float)
    reach = max(abs(low), abs(high))
    least = min(abs(low), abs(high)) if low * high > 0 else 0.0
    if reach <= 16 * least:
        step = _round_up((high - low) / (most - 2), (1.0, 2.0, 5.0, 10.0), whole)
        return np.asarray(np.arange(math.floor(low / step), math.floor(high / step) + 2) * step, np.float64)
    top = math.ceil(math.log10(reach))
    sizes = [float(f"{mark}e{k}") for k in range(top - 4, top + 1) for mark in MARKS]
    sizes = sorted({float(math.floor(size)) if whole else size for size in sizes} - {0.0})
    both = np.array([*(-size for size in reversed(sizes)), 0.0, *sizes])
    beyond = math.nextafter(high, math.inf)
    first = max(0, int(np.searchsorted(both, low, side="right")) - 1)
    last = min(both.size - 1, int(np.searchsorted(both, beyond, side="left")))
    return np.asarray(both[first : last + 1])


def _round_up(number: float, marks: tuple[float, ...], whole: bool) -> float:
    """Return the least round number, a mark times a power of ten, that is not below a number; at least 1 if whole."""
    number = max(number, 1.0) if whole else number
    size = 10.0 ** math.floor(math.log10(number))
    return next(mark * size for mark in marks if mark * size >= number * (1 - 1e-9))


def bins_worth(rows: float, most: int, choice: Callable[[int], Exponential]) -> int:
    """Return the largest number of bins whose rows are twice the error of their cuts.

    ``choice`` gives the event of a cut for a number of bins. The choice is off by 2Δ/ε·(ln(candidates) + 3) with
    probability 1 − e⁻³, in units of 1/bins of a row.
    """
    for bins in range(most, 1, -1):
        off = choice(bins).scale * (math.log(CANDIDATES) + 3) / bins
        if rows / bins >= 2 * off:
            return bins
    return 1


def candidates(low: float, high: float, whole: bool, most: int) -> NDArray[np.float64]:
    """Return public cuts, evenly from low to above high, at whole numbers if ``whole``."""
    if whole:
        step = max(1, math.ceil((high - low + 1) / most))
        return np.arange(math.floor(low), math.floor(high) + step + 1, step).astype(float)
    return np.append(np.linspace(low, high, most + 1), math.nextafter(high, math.inf))
