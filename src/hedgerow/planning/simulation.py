"""Try the practical profile on synthetic or public rows, because no theorem says what error it reaches.

Without public rows, every column is uniform and independent of the others. That is where the hypothesis starts, so only
the noise shows. A real table, about which there is more to learn, is answered less well. Public rows that resemble the
real table say more.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.data import CodedRows, DataSource, HistogramSource, Table
from hedgerow.errors import InvalidInput, NotPrivateWarning, PublicWarning
from hedgerow.opening import open as open_session
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.noise import Seeded
from hedgerow.query.counts import Query, marginal
from hedgerow.query.workloads import Workload
from hedgerow.universe.universe import Universe
from hedgerow.unsafe import unsafe_answer

# In a universe of at most this many cells, rows are drawn as counts, so that their number costs nothing.
DENSE = 1 << 16
MOST = 200_000  # the largest number of rows that are drawn one by one
ASKED = 40  # the largest number of the workload's questions that are asked
SPREAD = 2.0  # a real table's mean error is within this factor of the simulated one, see benchmarks/plan.py
SEED = 0  # the noise may be repeatable, because the rows are public


@dataclass(frozen=True)
class SimulatedErrors:
    """The errors of a simulated session.

    ``error`` is the widest guaranteed bar, which holds for all questions together, or None if some answer has no bar.
    ``typical`` and ``largest`` are the mean and the largest distance of the answers from the truth. ``interval`` is
    where the mean of a session on a real table was found: between half and twice that of the simulation
    (docs/benchmarks-plan.md).
    """

    rows: int
    error: float | None
    typical: float
    largest: float

    @property
    def interval(self) -> tuple[float, float]:
        """The least and the largest mean error to expect on a real table."""
        return self.typical / SPREAD, self.typical * SPREAD


def simulate_session(
    universe: Universe, budget: Budget, rows: int, *, queries: int, beta: float,
    workload: Any = None, public: Any = None,
) -> SimulatedErrors:  # fmt: skip
    """Run one session on public rows, and return its errors."""
    data = _quietly(draw_rows, universe, rows, public)
    about = {"queries": queries, "beta": beta, "workload": workload}
    return _errors(universe, budget, data, about, [questions(universe, workload)])[0]


@dataclass(frozen=True)
class WorkloadEffect:
    """Typical errors of the workload's questions and of others, in sessions opened with and without the workload.

    The other questions are tables of three columns, or of two if there are only two.
    """

    declared: float
    others: float
    declared_without: float
    others_without: float

    def __str__(self) -> str:
        return (
            f"With this workload its questions are typically off by {self.declared:.2g}, without it by "
            f"{self.declared_without:.2g}; other questions by {self.others:.2g}, without it by "
            f"{self.others_without:.2g} (simulated)."
        )


def simulate_workload(
    universe: Universe, budget: Budget, rows: int, *, queries: int, beta: float, workload: Any, public: Any = None
) -> tuple[SimulatedErrors, WorkloadEffect]:
    """Run a session with the workload and one without it on the same public rows, and compare their errors.

    Returns the errors of the session with the workload, too.
    """
    data = _quietly(draw_rows, universe, rows, public)
    asked = [questions(universe, workload), questions(universe, None)]
    with_it, without = (
        _errors(universe, budget, data, {"queries": queries, "beta": beta, "workload": each}, asked)
        for each in (workload, None)
    )
    return with_it[0], WorkloadEffect(with_it[0].typical, with_it[1].typical, without[0].typical, without[1].typical)


def _errors(
    universe: Universe, budget: Budget, data: DataSource, about: dict[str, Any], asked: Sequence[Sequence[Query]]
) -> list[SimulatedErrors]:
    """Open a session on public rows, and return the errors of each list of questions."""

    def ask() -> list[list[Any]]:
        session = open_session(data, universe=universe, budget=budget, seed=SEED, progress=False, **about)
        return [session.ask_all(each, resolution="bins", progress=False) for each in asked]

    found = []
    for answers in _quietly(ask):
        off = [np.abs(np.asarray(a.value) - unsafe_answer(data, a.query, resolution="bins")).ravel() for a in answers]
        widest = max(math.inf if a.error is None else float(np.max(a.error)) for a in answers)
        every = np.concatenate(off)
        bar = None if math.isinf(widest) else widest
        found.append(SimulatedErrors(data.rows, bar, float(every.mean()), float(every.max())))
    return found


def _quietly(run: Callable[..., Any], *given: Any) -> Any:
    """Run a function without the warnings that rows are public and noise is repeatable."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        warnings.simplefilter("ignore", PublicWarning)
        return run(*given)


def draw_rows(universe: Universe, rows: int, public: Any = None) -> DataSource:
    """Draw ``rows`` rows: from the public frame with replacement, or from independent uniform columns."""
    generator = Seeded(SEED).generator()
    if public is not None:
        if not type(public).__module__.startswith("pandas") or not len(public):
            raise InvalidInput(
                f"public must be a pandas frame with rows. Found {type(public).__name__}. Read the public rows into "
                "one."
            )
        return Table(public.iloc[generator.integers(0, len(public), min(rows, MOST))], universe)
    if universe.size <= DENSE:
        return HistogramSource(universe, generator.multinomial(rows, np.full(universe.size, 1 / universe.size)))
    return CodedRows(universe, [generator.integers(0, size, min(rows, MOST)) for size in universe.shape])


def questions(universe: Universe, workload: Any) -> list[Query]:
    """Return some of the workload's questions, evenly spaced.

    Without a workload, these are tables of three attributes, or of all attributes if there are fewer.
    """
    if isinstance(workload, Workload):
        found: Sequence[Query] = workload.on(universe)
    elif workload is not None:
        found = list(workload)
    else:
        ways = min(3, len(universe.names))
        sets = itertools.islice(itertools.combinations(universe.names, ways), 5000)
        found = [marginal(*names) for names in sets if universe.cells(names) <= DENSE] or [marginal(universe.names[0])]
    if not found:
        raise InvalidInput("workload must have at least one question. Found none. Give questions, or leave it out.")
    return [found[i] for i in np.unique(np.linspace(0, len(found) - 1, min(ASKED, len(found))).astype(int))]


def rows_for(
    accuracy: float, universe: Universe, budget: Budget, start: float | SimulatedErrors, **about: Any
) -> tuple[SimulatedErrors, bool]:
    """Find by a few trials about how many rows give bars of this width, given that errors fall as 1/n.

    The trials begin at ``start``: a number of rows, or a trial that was made. Returns the best trial, and True if its
    rows were enough.
    """
    most = 2**40 if universe.size <= DENSE and about.get("public") is None else MOST
    made = start if isinstance(start, SimulatedErrors) else None
    rows = int(min(max(made.rows if made else float(start), 100.0), most))  # type: ignore[arg-type]
    best: SimulatedErrors | None = None
    for _ in range(5):
        found = made if made is not None and made.rows == rows else simulate_session(universe, budget, rows, **about)
        reached = found.error is not None and found.error <= accuracy
        if reached and (best is None or found.rows < best.rows):
            best = found
        if reached and found.error is not None and found.error >= 0.8 * accuracy:
            break
        wanted = 4.0 * rows if found.error is None else 1.05 * rows * found.error / accuracy
        following = int(min(max(wanted, 100.0), most))
        if following == rows or (rows == most and not reached):
            break
        rows = following
    return (best, True) if best is not None else (found, False)
