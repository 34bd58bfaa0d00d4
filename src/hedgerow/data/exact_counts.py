"""Exact values in rows: what a query counts, without rounding that could depend on the data.

A 0/1 query counts rows: a whole number, and one row moves it by at most 1. The table of any other query is first
rounded to multiples of 2^-40. It is then still a linear query with values in [0, 1], whose value on the data is a whole
number of such steps; integers add it up. That number is rounded to a coarser public step, a power of two at most 1,
which float64 and the sampler hold. Rounding to the nearest is monotone and commutes with adding a row, so one row still
moves the result by at most 1, exactly, as it does once values beyond 2^53 steps are cut off. All of it holds for every
table of up to ``source.MOST_ROWS`` rows, whatever was guessed of their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.source import MOST_ROWS
from hedgerow.errors import InvalidInput
from hedgerow.questions.linear import Linear, answer_all
from hedgerow.questions.universe import Universe

FINEST_STEP = 2.0**-20
EXACT_BITS = 50  # of float64's 53: values of up to 8·scale rows are not cut off
NOISE_BITS = 38  # noise of up to 2^38 rows: the sampler's integers stay small
WEIGHT_BITS = 40  # tables are multiples of 2^-40: they move by at most half of it
LIMB = 10  # bits of a weight at a time: times MOST_ROWS that fits an int64
LARGEST = 2**53


def grid_for(scale: float, noise: float) -> float:
    """The step of fractional values for about ``scale`` rows and noise of that many rows: public, a power of two ≤ 1.

    Fine enough that rounding is lost in the noise, coarse enough that values and the sampler's integers are exact.
    """
    bits = min(20, EXACT_BITS - math.ceil(math.log2(max(scale, 1))), NOISE_BITS - math.ceil(math.log2(noise)))
    if bits < 0:
        raise InvalidInput(
            f"The number of rows must be at most 2^{EXACT_BITS} and their noise at most 2^{NOISE_BITS}. "
            f"Found about {scale:.3g} and {noise:.3g}. Use fewer rows, or a larger budget."
        )
    return max(FINEST_STEP, 2.0**-bits)


def on_grid(universe: Universe, query: Linear, grid: float = 2.0**-WEIGHT_BITS) -> Linear:
    """The query itself if it counts rows, else the query with its table rounded to multiples of the grid.

    Rounding can leave it fewer attributes: read the marginal of the result's.
    """
    if query.is_count:
        return query
    return Linear.from_table(universe, query.attributes, np.floor(query.table / grid + 0.5) * grid)


def step_of(query: Linear, grid: float) -> float:
    """The step in which the values of an ``on_grid`` query come: 1 row if it counts."""
    return 1.0 if query.is_count else grid


def counted(query: Linear, counts: NDArray[np.int64], step: float) -> float:
    """The rows an ``on_grid`` query counts, to the nearest multiple of the step: private, and moved by at most 1 by a row."""
    if query.is_count:
        return query.dot(counts)
    weights = np.rint(np.ldexp(query.table, WEIGHT_BITS)).astype(np.int64)
    total = 0
    for shift in range(0, WEIGHT_BITS, LIMB):
        last = shift + LIMB >= WEIGHT_BITS  # it holds the 2^10 of a weight of 1 as well
        limb = weights >> shift if last else (weights >> shift) & ((1 << LIMB) - 1)
        total += int(np.vdot(limb, counts)) << shift
    unit = WEIGHT_BITS + math.frexp(step)[1] - 1  # the step is 2^unit of the table's steps
    return min((total + (1 << unit >> 1)) >> unit, LARGEST) * step


def counted_all(
    queries: Sequence[Linear], marginal_of: Callable[[tuple[str, ...]], NDArray[Any]], grid: float
) -> NDArray[np.float64]:
    """``counted`` for many queries, each in its own step. Counts of at most MOST_ROWS rows are exact in float64."""
    values = np.empty(len(queries))
    whole = [i for i, query in enumerate(queries) if query.is_count]
    values[whole] = answer_all([queries[i] for i in whole], marginal_of)
    for i, query in enumerate(queries):
        if not query.is_count:
            values[i] = counted(query, marginal_of(query.attributes), grid)
    return values


def nearest(value: float, step: float) -> float:
    """The multiple of the step nearest to a public value, as far as float64 holds it exactly."""
    return max(-LARGEST, min(LARGEST, math.floor(value / step + 0.5))) * step


def everywhere(universe: Universe, query: Linear) -> NDArray[np.float64]:
    """The query's value in every cell of the universe, flattened: for universes that fit in memory."""
    shape = [size if name in query.attributes else 1 for name, size in zip(universe.names, universe.shape, strict=True)]
    return np.broadcast_to(query.table.reshape(shape), universe.shape).reshape(-1)


assert MOST_ROWS << LIMB < 2**62
