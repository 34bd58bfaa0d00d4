"""Count: many small tables in one scan of coded columns, and exact values of queries.

A block of rows stays in the processor's cache while all tables are counted in it. Neighbouring rows of a small table
often fall into the same cell, where one increment would have to wait for the previous one. So neighbouring rows are
counted in several copies of the table, which are added up at the end.

Values of queries are exact, in rows, without rounding that could depend on the data. A 0/1 query counts rows: its value
is a whole number, and one row changes it by at most 1. The table of any other query is first rounded to multiples of
2^-40. It is then still a linear query with values in [0, 1], whose value on the data is a whole number of such steps,
added up in integers. That number is rounded to a coarser public step, a power of two of at most 1, which float64 and
the sampler can hold.

Rounding to the nearest step is monotone and commutes with adding a row. So one row still changes the result by at most
1, exactly. The same holds after values beyond 2^53 steps are cut off. All of this is true for every table of up to
``source.MOST_ROWS`` rows, whatever was guessed about the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compile_lazily
from hedgerow._types import Counts, Names
from hedgerow.data.source import MOST_ROWS
from hedgerow.errors import InvalidInput
from hedgerow.query.linear import Linear, answer_all
from hedgerow.universe.universe import Universe

BLOCK = 2048  # rows in a block
FEW_PLACES = 1 << 22  # up to this many rows × tables, count table by table without compiled code
COPIES, COPIED = 4, 256  # count in this many copies if a table has at most this many cells


class ManyTables:
    """The counts of many sets of attributes over the batches of rows added so far."""

    def __init__(self, universe: Universe, sets: Sequence[Names]) -> None:
        self._universe, self._sets = universe, sets
        self.columns = universe.order(name for names in sets for name in names)
        where = {name: i for i, name in enumerate(self.columns)}
        widest = max(map(len, sets), default=0)
        self._members = np.full((len(sets), max(widest, 1)), -1, np.int64)
        self._sizes = np.ones(self._members.shape, np.int64)
        for row, names in enumerate(sets):
            self._members[row, : len(names)] = [where[name] for name in names]
            self._sizes[row, : len(names)] = universe.sizes(names)
        self._ends = np.cumsum([0, *(math.prod(universe.sizes(names)) for names in sets)])
        self._counts = np.zeros(int(self._ends[-1]), np.int64)
        largest = max(universe.sizes(self.columns), default=1)
        self._rows = 0  # the rows added so far
        self._kind = np.uint8 if largest <= 1 << 8 else np.uint16 if largest <= 1 << 16 else np.int64

    def add(self, columns: Sequence[NDArray[Any]], rows: int) -> None:
        """Add a batch of rows, given the cells of each of ``columns``."""
        self._rows += rows
        if self._rows * len(self._sets) <= FEW_PLACES:
            self._add_few(columns, rows)
            return
        codes = np.zeros((max(len(columns), 1), rows), self._kind)
        for line, column in zip(codes, columns, strict=False):
            line[:] = column
        _count(codes, self._members, self._sizes, self._ends, self._counts)

    def _add_few(self, columns: Sequence[NDArray[Any]], rows: int) -> None:
        """Count without compiled code."""
        wide = [np.asarray(column, np.int64) for column in columns]
        for members, sizes, start, end in zip(self._members, self._sizes, self._ends, self._ends[1:], strict=False):
            place = np.zeros(rows, np.int64)
            for column, size in zip(members, sizes, strict=True):
                if column >= 0:
                    place = place * size + wide[column]
            self._counts[start:end] += np.bincount(place, minlength=end - start)

    def tables(self) -> list[Counts]:
        """Return the counts of each set of attributes."""
        pieces = zip(self._ends, self._ends[1:], self._sets, strict=False)
        return [self._counts[a:b].reshape(self._universe.sizes(names)).copy() for a, b, names in pieces]


@compile_lazily()
def _count(codes: Any, members: Any, sizes: Any, ends: Any, counts: Any) -> None:
    """Add the counts of coded rows to all tables."""
    place, spread = np.empty(BLOCK, np.int32), np.zeros(COPIES * COPIED, np.int64)
    for start in range(0, codes.shape[1], BLOCK):
        rows = min(BLOCK, codes.shape[1] - start)
        for t in range(members.shape[0]):
            cells = ends[t + 1] - ends[t]
            found = counts[ends[t] : ends[t + 1]]
            place[:] = 0
            for k in range(members.shape[1]):
                column, size = members[t, k], sizes[t, k]
                if column >= 0:
                    line = codes[column, start : start + rows]
                    for i in range(rows):
                        place[i] = place[i] * size + line[i]
            if cells > COPIED:
                for i in range(rows):
                    found[place[i]] += 1
                continue
            for i in range(0, rows - COPIES + 1, COPIES):
                spread[place[i]] += 1
                spread[cells + place[i + 1]] += 1
                spread[2 * cells + place[i + 2]] += 1
                spread[3 * cells + place[i + 3]] += 1
            for i in range(rows - rows % COPIES, rows):
                spread[place[i]] += 1
            for copy in range(COPIES):
                for i in range(cells):
                    found[i] += spread[copy * cells + i]
                    spread[copy * cells + i] = 0


FINEST_STEP = 2.0**-20  # the finest public step, in rows
EXACT_BITS = 50  # of the 53 bits of float64, so that values of up to 8·scale rows are not cut off
NOISE_BITS = 38  # noise is at most 2^38 grid steps, so that the sampler's integers stay small
WEIGHT_BITS = 40  # tables are rounded to multiples of 2^-40, which changes them by at most half of that
LIMB = 10  # bits of a weight that are multiplied at a time: times MOST_ROWS the product fits an int64
LARGEST = 2**53  # values are cut off at this many steps, because float64 holds whole numbers exactly up to here


def grid_for(scale: float, noise: float) -> float:
    """Return the public step of fractional values: a power of two of at most 1.

    ``scale`` is about the number of rows, and ``noise`` the scale of the noise in rows. The step is fine enough that
    rounding is small against the noise, and coarse enough that values and the sampler's integers are exact.
    """
    bits = min(20, EXACT_BITS - math.ceil(math.log2(max(scale, 1))), NOISE_BITS - math.ceil(math.log2(noise)))
    if bits < 0:
        raise InvalidInput(
            f"The number of rows must be at most 2^{EXACT_BITS} and their noise at most 2^{NOISE_BITS}. "
            f"Found about {scale:.3g} and {noise:.3g}. Use fewer rows, or a larger budget."
        )
    return max(FINEST_STEP, 2.0**-bits)


def on_grid(universe: Universe, query: Linear, grid: float = 2.0**-WEIGHT_BITS) -> Linear:
    """Return a query whose table is rounded to multiples of the grid, or the query itself if it counts rows.

    Rounding can leave the query with fewer attributes, so read the marginal of the attributes of the result.
    """
    if query.is_count:
        return query
    return Linear.from_table(universe, query.attributes, np.floor(query.table / grid + 0.5) * grid)


def step_of(query: Linear, grid: float) -> float:
    """Return the step of the values of an ``on_grid`` query: 1 row if it counts rows, otherwise the grid."""
    return 1.0 if query.is_count else grid


def exact_count(query: Linear, counts: NDArray[np.int64], step: float) -> float:
    """Return the value of an ``on_grid`` query in rows, to the nearest multiple of the step.

    The value is private. One row changes it by at most 1.
    """
    if query.is_count:
        return query.dot(counts)
    weights = np.rint(np.ldexp(query.table, WEIGHT_BITS)).astype(np.int64)
    total = 0
    for shift in range(0, WEIGHT_BITS, LIMB):
        last = shift + LIMB >= WEIGHT_BITS  # the last limb also holds the extra bit of a weight of 1
        limb = weights >> shift if last else (weights >> shift) & ((1 << LIMB) - 1)
        total += int(np.vdot(limb, counts)) << shift
    unit = WEIGHT_BITS + math.frexp(step)[1] - 1  # the step is 2^unit steps of the rounded table
    return min((total + (1 << unit >> 1)) >> unit, LARGEST) * step


def exact_counts(
    queries: Sequence[Linear], marginal_of: Callable[[tuple[str, ...]], NDArray[Any]], grid: float
) -> NDArray[np.float64]:
    """Return ``exact_count`` for many queries, each in its own step.

    Counts of at most MOST_ROWS rows are exact in float64.
    """
    values = np.empty(len(queries))
    whole = [i for i, query in enumerate(queries) if query.is_count]
    values[whole] = answer_all([queries[i] for i in whole], marginal_of)
    for i, query in enumerate(queries):
        if not query.is_count:
            values[i] = exact_count(query, marginal_of(query.attributes), grid)
    return values


def nearest(value: float, step: float) -> float:
    """Return the multiple of the step nearest to a public value, within the range that float64 holds exactly."""
    return max(-LARGEST, min(LARGEST, math.floor(value / step + 0.5))) * step


def everywhere(universe: Universe, query: Linear) -> NDArray[np.float64]:
    """Return the query's value in every cell of the universe, flattened. The universe must fit in memory."""
    shape = [size if name in query.attributes else 1 for name, size in zip(universe.names, universe.shape, strict=True)]
    return np.broadcast_to(query.table.reshape(shape), universe.shape).reshape(-1)


assert MOST_ROWS << LIMB < 2**62
