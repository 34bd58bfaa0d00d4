"""Rank the mechanisms for a stated workload, by their guarantees and by a trial of the practical profile."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from hedgerow import _html
from hedgerow._checks import number, whole
from hedgerow._json import readable
from hedgerow._progress import phases, tell
from hedgerow.convex.minimize import Minimize
from hedgerow.errors import InvalidInput
from hedgerow.generalise.statement import population_statement
from hedgerow.planning import simulation
from hedgerow.planning.theorems import mechanisms
from hedgerow.privacy.budget import Budget
from hedgerow.query.counts import Query
from hedgerow.query.workloads import Workload
from hedgerow.universe.universe import Universe


@dataclass(frozen=True)
class Option:
    """One mechanism in a plan.

    - ``how``: the way to use it. ``by``: the theorem or simulation that the numbers come from.
    - ``error``: at the stated rows all answers are within it, with probability 1 − β. None if there is no such bound.
    - ``rows``: the number of rows that the stated accuracy needs. None if it is not known.
    - ``simulated``: True if ``error`` and ``rows`` come from simulated sessions. They are then examples and no bounds:
      ``error`` is the widest bar of one such session, and a session on another table may have wider ones.
    - ``typical``: the mean error in a simulation.
    """

    mechanism: str
    adaptive: bool
    how: str
    by: str
    error: float | None = None
    rows: float | None = None
    typical: float | None = None
    simulated: bool = False


@dataclass(frozen=True)
class Plan:
    """The options that ``hr.plan`` found, with the facts that they rest on.

    Attributes
    ----------
    options : tuple of Option
        One option for each mechanism, the best first.
    epsilon, delta : float
        The privacy budget.
    cells, queries : int
        The size of the universe, and the number of questions.
    beta : float
        The probability that some answer is farther off than promised.
    rows, accuracy : int or float, optional
        The number of rows and the wanted error, as given to ``hr.plan``.
    population : str or None
        What follows for the population from which the rows are drawn, if ``rows`` is given.
    """

    options: tuple[Option, ...]
    epsilon: float
    delta: float
    cells: int
    queries: int
    beta: float
    rows: int | None
    accuracy: float | None
    population: str | None

    @property
    def best(self) -> Option:
        """The best option."""
        return self.options[0]

    @property
    def sentence(self) -> str:
        """The recommendation, as one sentence."""
        best, asked = self.best, f"{self.queries:,} questions at ε = {self.epsilon:g}, δ = {self.delta:g}"
        kind = "Questions may depend on answers." if best.adaptive else "Questions must be known in advance."
        if self.rows is not None:
            if best.error is None:
                return (
                    f"No mechanism promises anything for {asked} with {self.rows:,} rows. Spend more, ask less, or use "
                    "coarser columns."
                )
            about = f"{asked} about {self.rows:,} rows: {best.mechanism} ({best.how})"
            if best.simulated:
                return (
                    f"{about}. The bars of a simulated session were at most ± {best.error:.3g}, which is no bound: on "
                    f"your table they may be wider. The bars that a session states hold for all of its answers "
                    f"together with probability {1 - self.beta:.0%}. {kind}"
                )
            return (
                f"{about} promises an error of at most ± {best.error:.3g} for every answer, with probability "
                f"{1 - self.beta:.0%} for all of them together. {kind}"
            )
        if best.rows is None:
            return (
                f"No number of rows that was tried promises ± {self.accuracy:g} for {asked}. Spend more, or ask for "
                "less."
            )
        needs = (
            f"needed about {best.rows:,.0f} rows in a simulation, which is no bound: your table may need more"
            if best.simulated
            else f"needs {best.rows:,.0f} rows"
        )
        return f"{asked}, each within ± {self.accuracy:g}: {best.mechanism} ({best.how}) {needs}. {kind}"

    @property
    def json(self) -> str:
        """The plan as JSON."""
        record = {**asdict(self), "sentence": self.sentence}
        return readable(record, indent=1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of the table of options."""
        held = ("error of all answers",) if self.rows is not None else ()
        needed = (f"rows for ± {self.accuracy:g}",) if self.accuracy is not None else ()
        return ("mechanism", *held, "typically", *needed, "adaptive", "by")

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """The options as rows of text, under ``columns``."""
        found = []
        for o in self.options:
            held = (_error(o),) if self.rows is not None else ()
            needed = (_rows(o),)
            typical = "–" if o.typical is None else f"± {o.typical:.2g}"
            adaptive = "yes" if o.adaptive else "no"
            found.append((o.mechanism, *held, typical, *(needed if self.accuracy is not None else ()), adaptive, o.by))
        return found

    def __str__(self) -> str:
        rows = [self.columns, *self.lines]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*text, self.sentence, *([self.population] if self.population else [])])

    def _repr_html_(self) -> str:
        said = [self.sentence, *([self.population] if self.population else [])]
        return _html.table(self.columns, self.lines) + "".join(map(_html.paragraph, said))


def plan(
    *,
    universe: Universe,
    budget: Budget,
    rows: int | None = None,
    accuracy: float | None = None,
    queries: int = 100_000,
    beta: float = 0.05,
    workload: Workload | list[Query] | None = None,
    public: Any = None,
    simulate: bool = True,
    progress: bool | None = None,
) -> Plan:
    """Rank the mechanisms for k linear questions: by the error at n rows, and by the rows that an accuracy needs.

    A plan is free, because no table is read. Errors are fractions of the rows, and hold for all questions together. The
    errors of the textbook mechanisms come from theorems. Those of the practical profile come from a simulation, on
    uniform independent columns or on rows drawn from ``public``. They are an example and no bound: a session on your
    table states its own bars, which may be wider.

    Parameters
    ----------
    universe : Universe
        The universe of the table.
    budget : Budget
        The privacy budget.
    rows : int, optional
        The number of rows, to find the error. Give ``rows``, ``accuracy`` or both.
    accuracy : float, optional
        The wanted error, between 0 and 1, to find the rows that it needs.
    queries : int
        The number of questions.
    beta : float
        The probability that some answer is farther off than promised.
    workload : Workload or list of Query, optional
        The questions that the simulation asks.
    public : pandas.DataFrame, optional
        Rows that are nobody's secret, for the simulation.
    simulate : bool
        False to leave out the simulation.
    progress : bool, optional
        True to show progress. By default it is shown where somebody can see it.

    Returns
    -------
    Plan

    Raises
    ------
    InvalidInput
        If neither ``rows`` nor ``accuracy`` is given, or if a parameter is outside its range.
    """
    if not isinstance(universe, Universe) or not isinstance(budget, Budget):
        raise InvalidInput("A plan must have universe= and budget=. Found something else. Declare them as for hr.open.")
    if rows is None and accuracy is None:
        raise InvalidInput(
            "A plan must be for rows= or for an accuracy=. Found neither. Say how many rows there are, or what error "
            "is wanted."
        )
    n = None if rows is None else whole("rows", rows)
    wanted = None if accuracy is None else number(accuracy)
    k, β = whole("queries", queries), number(beta)
    if wanted is not None and not 0 < wanted < 1:
        raise InvalidInput(
            f"accuracy must be between 0 and 1. Found {accuracy!r}. Give a fraction of the rows, such as 0.01."
        )
    if not 0 < β < 1:
        raise InvalidInput(f"beta must be between 0 and 1. Found {beta!r}. Give the probability of failure.")
    if workload is not None and not isinstance(workload, Workload):
        workload = list(workload)
        if any(isinstance(query, Minimize) or not isinstance(query, Query) for query in workload):
            raise InvalidInput(
                "The workload of a plan must be counts, tables or means. Found something else. For convex questions "
                "see hr.erm and docs/erm.md."
            )
    options = [_theorem_option(each, n, wanted) for each in mechanisms(budget, k, β, universe.size)]
    if simulate:
        with phases(progress):
            options.append(
                _simulated_option(universe, budget, n, wanted, queries=k, beta=β, workload=workload, public=public)
            )
    options.sort(key=lambda o: _rank(o, n is not None))
    population = None if n is None else str(population_statement(budget, rows=n, asked=k, sample_beta=β))
    return Plan(tuple(options), budget.epsilon, budget.delta, universe.size, k, β, n, wanted, population)


def _theorem_option(mechanism: Any, rows: int | None, accuracy: float | None) -> Option:
    """Return the option of a mechanism with a theorem."""
    error = None if rows is None else _useful(mechanism.error(rows))
    needed = None if accuracy is None else mechanism.rows(accuracy)
    finite = None if needed is None or math.isinf(needed) else math.ceil(needed)
    return Option(mechanism.name, mechanism.adaptive, mechanism.how, mechanism.theorem, error, finite)


def _simulated_option(
    universe: Universe, budget: Budget, rows: int | None, accuracy: float | None, **about: Any
) -> Option:
    """Return the option of the practical profile. Its numbers are those of simulated sessions, and no bounds."""
    error = needed = typical = None
    on = "uniform columns" if about["public"] is None else "public rows"
    by = f"simulation on {on}"
    if rows is not None:
        tell(lambda: "trying the practical profile")
        found = simulation.simulate_session(universe, budget, rows, **about)
        error, typical = _useful(found.error), found.typical
        if found.rows < rows:
            by += f", {found.rows:,} of them"
    if accuracy is not None:
        tell(lambda: "looking for the rows that the practical profile needs")
        tried, enough = simulation.rows_for(accuracy, universe, budget, rows or 20_000, **about)
        needed = float(tried.rows) if enough else None
        typical = tried.typical if typical is None else typical
    return Option("practical profile", True, "hr.open", by, error, needed, typical, simulated=True)


def _useful(error: float | None) -> float | None:
    """Return the error, or None if it is 1 or more, because a fraction is never off by more than 1."""
    return error if error is not None and error < 1 else None


def _rank(option: Option, by_error: bool) -> float:
    found = option.error if by_error else option.rows
    return math.inf if found is None else found


def _error(option: Option) -> str:
    """Show the error of an option: a bound, or what a simulation showed."""
    if option.error is None:
        return "no bound"
    return f"{'about' if option.simulated else 'at most'} {option.error:.3g}"


def _rows(option: Option) -> str:
    """Show the rows of an option: enough by a theorem, or enough in a simulation."""
    if option.rows is None:
        return "–"
    rows = f"{option.rows:,.0f}" if option.rows < 1e9 else f"{option.rows:.2g}"
    return f"about {rows}" if option.simulated else rows
