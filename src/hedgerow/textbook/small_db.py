"""SmallDB: release a small synthetic database, chosen by the exponential mechanism among all databases of its size.

Papers: Blum, Ligett & Roth, *A learning theory approach to non-interactive database privacy*; Dwork & Roth, *The
Algorithmic Foundations of Differential Privacy*, Algorithm 4, Theorems 4.2–4.9. Proof: docs/proofs/small_db.md.

Symbols: x the data with n rows, y a database of m rows, R all of them (|R| = C(|X| + m − 1, m)), u(x, y) = −max_q |q(x)
− q(y)|, of sensitivity 1/n when one row is replaced. P(y) ∝ exp(ε·n·u(x, y)/2).

Differs: nothing is approximated. m·n·u(x, y) is a whole number of grid steps, computed exactly for every y in R, and
``Noise.choose`` draws from exactly the stated distribution. A universe or an m that is too large to enumerate is
refused, because an approximate sampler would not be private. Scores are in units of 1/m of a row, so one row moves them
by at most m.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hedgerow._threads import one_thread
from hedgerow.data import counting
from hedgerow.data.source import DataSource
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.events import Exponential
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.query.linear import Linear
from hedgerow.textbook import bounds
from hedgerow.universe.universe import Universe

MOST_DATABASES = 2_000_000  # at most this many databases are enumerated
CHUNK = 20_000  # databases scored at a time


@final
@dataclass(frozen=True)
class SmallDatabase:
    """A public database of m rows, as counts over the universe."""

    universe: Universe
    counts: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """m."""
        return int(self.counts.sum())

    def marginal(self, attributes: Sequence[str]) -> NDArray[np.float64]:
        """Return fractions over the attributes, with axes in universe order."""
        names = self.universe.order(attributes)
        away = tuple(i for i, name in enumerate(self.universe.names) if name not in names)
        return np.asarray(self.counts.sum(axis=away) / self.rows)

    def answer(self, query: Linear) -> float:
        """Return the query's fraction on the database."""
        return query.dot(self.marginal(query.attributes))


def databases(cells: int, size: int) -> int:
    """Return |R|, the number of databases of ``size`` rows. Refuse a number that cannot be enumerated."""
    if size < 1 or cells < 1:
        raise InvalidInput(f"size must be at least 1. Found {size!r}. Give the rows of the small database.")
    if bounds.ln_databases(cells, size) > 2 * math.log(MOST_DATABASES):
        count, shown = math.inf, f"about 10^{bounds.ln_databases(cells, size) / math.log(10):.0f}"
    else:
        count = math.comb(cells + size - 1, size)
        shown = str(count)
    if count > MOST_DATABASES:
        raise TooLarge(
            f"The databases to choose from must be at most {MOST_DATABASES}. Found {shown} (of {size} rows over "
            f"{cells} cells). Ask for a larger alpha, or declare fewer or coarser attributes."
        )
    return int(count)


def best_size(
    cells: int, rows: float, queries: int, beta: float, epsilon: float, vc_dimension: int | None = None
) -> tuple[int, float]:
    """Return the m with the smallest promise among those that can be enumerated, and the promise.

    All queries are within √(ln|Q|/m) + 2(ln|R| + ln(1/β))/(εn), or within that for their VC dimension, except with
    probability β (Proposition 4.4).
    """
    best, m = (1, math.inf), 1
    while bounds.ln_databases(cells, m) <= math.log(MOST_DATABASES):
        near = math.sqrt(math.log(max(queries, 3)) / m)
        if vc_dimension is not None:
            near = min(near, bounds.small_db_deviation_vc(m, vc_dimension))
        error = bounds.small_db_error(rows, m, beta, epsilon, cells, near)
        best = min(best, (m, error), key=lambda found: found[1])
        m = max(m + 1, math.floor(1.05 * m))
    databases(cells, best[0])  # refuses a universe that is too large to enumerate a single row
    return best


@one_thread
def release(
    queries: Sequence[Linear],
    data: DataSource,
    ledger: Ledger,
    noise: Noise,
    *,
    alpha: float | None = None,
    size: int | None = None,
    epsilon: float | None = None,
) -> SmallDatabase:
    """Run Dwork & Roth's Algorithm 4. Give ``alpha`` (then m = ⌈ln|Q|/α²⌉) or the ``size`` m itself.

    ``epsilon`` is by default all that the ledger has left. To answer within α by Theorem 4.5, pass ``alpha = α/2``.
    """
    universe = data.universe
    if ledger.budget.neighbours != "replace":
        raise InvalidInput(
            "SmallDB must have neighbours='replace': its score is a fraction of n rows. "
            f"Found {ledger.budget.neighbours!r}. Use pmw or mwem, or a budget that replaces a row."
        )
    if not queries:
        raise InvalidInput("The workload must have at least one query. Found none. List the queries to keep.")
    if (alpha is None) == (size is None):
        raise InvalidInput(f"Either alpha or size must be given. Found {alpha!r} and {size!r}. Give one of the two.")
    m = bounds.small_db_size(alpha, len(queries)) if alpha is not None else int(size or 0)
    count = databases(universe.size, m)
    finest = counting.grid_for(data.rows * m, 1.0)  # refuses, from public sizes, sums too large for float64
    unit = 1.0 if all(q.is_count for q in queries) else finest
    with ledger.exclusively():  # nobody else may spend between reading what is left and charging it
        # one row moves m·n·u by m, which is m/unit steps
        allowance = Allowance(ledger, ledger.remaining)
        event = allowance.choice(m / unit) if epsilon is None else Exponential(m / unit, epsilon)
        receipt = ledger.charge(event, why="small_db: choice")
    distance = _distances(universe, queries, data, m, count, unit)
    chosen = noise.choose(-distance.astype(float), receipt)
    return SmallDatabase(universe, _nth_database(universe, m, chosen))


def _distances(
    universe: Universe, queries: Sequence[Linear], data: DataSource, m: int, count: int, unit: float
) -> NDArray[np.int64]:
    """Return max_q |m·n·q(x) − m·n·q(y)| for every y in R, in whole units."""
    n = data.rows
    table = (
        np.stack([counting.everywhere(universe, counting.on_grid(universe, q, unit)) for q in queries]) / unit
    )  # k × |X|, whole
    counts = data.marginal(universe.names).reshape(-1).astype(float)
    target = (table @ counts).astype(np.int64) * m  # exact, as are all sums below: n·m/unit ≤ 2^50
    distances = np.empty(count, np.int64)
    for start, block in _blocks(universe.size, m):
        held = (block @ table.T).astype(np.int64)  # m·q(y)
        distances[start : start + len(block)] = np.abs(target - n * held).max(axis=1)
    return distances


def _layouts(cells: int, size: int) -> Iterator[tuple[int, ...]]:
    """Return all databases in a fixed order, each as the positions of cells − 1 bars among size + cells − 1 places."""
    return itertools.combinations(range(size + cells - 1), cells - 1)


def _counts_of(layouts: NDArray[np.int64], cells: int, size: int) -> NDArray[np.int64]:
    """Return the counts per cell of databases given by their bars."""
    ends = np.full((len(layouts), 1), size + cells - 1)
    bars = np.hstack([np.full((len(layouts), 1), -1), layouts.reshape(len(layouts), cells - 1), ends])
    return np.diff(bars, axis=1) - 1


def _blocks(cells: int, size: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield blocks of databases as counts, each with the number of its first database."""
    layouts, start = _layouts(cells, size), 0
    while some := list(itertools.islice(layouts, max(1, min(CHUNK, 20_000_000 // cells)))):
        yield start, _counts_of(np.array(some, np.int64), cells, size).astype(float)
        start += len(some)


def _nth_database(universe: Universe, size: int, index: int) -> NDArray[np.int64]:
    """Return the database with this number, as counts over the universe."""
    layout = np.array([next(itertools.islice(_layouts(universe.size, size), index, None))], np.int64)
    return _counts_of(layout, universe.size, size).reshape(universe.shape)
