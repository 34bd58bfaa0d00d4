"""Exact values in rows: what a query counts, without rounding that could depend on the data.

A 0/1 query counts rows: a whole number, and one row moves it by at most 1. The table of any other query is first
rounded to multiples of a public grid, a power of two. It is then still a linear query with values in [0, 1], and its
value on the data is a multiple of the grid which float64 computes without error in any order of summation, so one row
still moves it by at most 1, exactly. The rounding moves the query's answer by at most half the grid, as a fraction.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InvalidInput
from hedgerow.linear import Linear
from hedgerow.universe import Universe

FINEST_GRID = 2.0**-20
EXACT_BITS = 50  # of float64's 53: up to 8·scale rows, in steps of the grid, add up without error


def grid_for(scale: float, noise: float) -> float:
    """The grid of fractional values for about ``scale`` rows and noise of that many rows: public, a power of two ≤ 1.

    Fine enough that rounding is lost in the noise, coarse enough that sums are exact and the sampler's integers small.
    """
    bits = min(20, EXACT_BITS - math.ceil(math.log2(max(scale, 1))), 38 - math.ceil(math.log2(noise)))
    if bits < 0:
        raise InvalidInput(
            f"The number of rows must be at most 2^{EXACT_BITS} and their noise at most 2^38. "
            f"Found about {scale:.3g} and {noise:.3g}. Use fewer rows, or a larger budget."
        )
    return max(FINEST_GRID, 2.0**-bits)


def on_grid(universe: Universe, query: Linear, grid: float) -> Linear:
    """The query itself if it counts rows, else the query with its table rounded to multiples of the grid."""
    if query.is_count:
        return query
    return Linear.from_table(universe, query.attributes, np.floor(query.table / grid + 0.5) * grid)


def step_of(query: Linear, grid: float) -> float:
    """The step in which the values of an ``on_grid`` query come: 1 row if it counts."""
    return 1.0 if query.is_count else grid


def nearest(value: float, step: float) -> float:
    """The multiple of the step nearest to a public value."""
    return math.floor(value / step + 0.5) * step


def everywhere(universe: Universe, query: Linear) -> NDArray[np.float64]:
    """The query's value in every cell of the universe, flattened: for universes that fit in memory."""
    shape = [size if name in query.attributes else 1 for name, size in zip(universe.names, universe.shape, strict=True)]
    return np.broadcast_to(query.table.reshape(shape), universe.shape).reshape(-1)
