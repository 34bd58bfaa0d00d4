"""Rank the mechanisms for a stated workload, by their guarantees and by a trial of the practical profile.

Any one of rows, error, number of questions, β, ε and δ follows from the others, by bisection on the exact bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, get_args

from hedgerow._checks import number, whole
from hedgerow._progress import phases, tell
from hedgerow.convex.minimize import BoundMinimize, bound_convex
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.generalise.statement import population_statement
from hedgerow.planning import simulation
from hedgerow.planning.lower_bounds import lower_bounds
from hedgerow.planning.report import Option, Plan
from hedgerow.planning.simulation import SimulatedErrors
from hedgerow.planning.theorems import (
    About,
    Goal,
    Mechanism,
    Unknown,
    convex_mechanisms,
    matrix_mechanism,
    mechanisms,
    solve,
)
from hedgerow.privacy.budget import Budget
from hedgerow.profiles import checked_workload, read_workload
from hedgerow.query.bound import Bound
from hedgerow.query.counts import Query
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.workloads import Workload
from hedgerow.universe.universe import Universe

MOST_LISTED = 2000  # questions of a workload that are planned one by one
MOST_COUNTED = 10**6  # questions of a workload whose VC dimension is bounded by their number
QUERIES = 100_000  # counts, where their number is not stated


def plan(
    *,
    universe: Universe,
    budget: Budget,
    rows: int | None = None,
    accuracy: float | None = None,
    queries: int | None = None,
    beta: float = 0.05,
    solve_for: Unknown | None = None,
    workload: Workload | Iterable[Any] | str | None = None,
    public: Any = None,
    simulate: bool = True,
    progress: bool | None = None,
) -> Plan:
    """Rank the mechanisms: by the error at n rows, by the rows that an error needs, or by any other quantity.

    A plan is free, because no table is read. Errors are fractions of the rows, and hold for all questions together. The
    errors of the textbook mechanisms come from theorems. Those of the practical profile come from a simulation, on
    uniform independent columns or on rows drawn from ``public``. They are an example and no bound: a session on your
    table states its own bars, which may be wider. Convex questions in the workload are planned too; their errors are
    the excess of their loss over the best.

    Parameters
    ----------
    universe : Universe
        The universe of the table.
    budget : Budget
        The privacy budget.
    rows : int, optional
        The number of rows, to find the error. Give ``rows``, ``accuracy`` or both.
    accuracy : float, optional
        The wanted error, to find the rows that it needs: a fraction of the rows, or an excess in units of the loss.
    queries : int, optional
        The number of questions. Default: 100,000 counts, and the convex questions of the workload.
    beta : float
        The probability that some answer is farther off than promised.
    solve_for : {"rows", "accuracy", "queries", "beta", "epsilon", "delta"}, optional
        The quantity to find from all others: the most questions, or the least of anything else. A value that is given
        for this quantity is not used. Default: the error, the rows, or both.
    workload : Workload, str or iterable, optional
        The questions that the simulation asks, and convex questions.
    public : pandas.DataFrame, optional
        Rows that are nobody's secret, for the simulation.
    simulate : bool
        False to leave out the simulation. There is none for convex questions, nor for ``queries``, ``beta``,
        ``epsilon`` and ``delta``.
    progress : bool, optional
        True to show progress. By default it is shown where somebody can see it.

    Returns
    -------
    Plan

    Raises
    ------
    InvalidInput
        If neither ``rows`` nor ``accuracy`` is given, or if a parameter is outside its range.

    Example
    -------
    >>> universe = hr.Universe(age=hr.Integers(17, 90), smoker=hr.Flag())
    >>> facts = {"universe": universe, "rows": 20_000, "accuracy": 0.01, "simulate": False}
    >>> hr.plan(budget=hr.Budget(1, 1e-9), solve_for="queries", **facts).best.solution  # doctest: +SKIP
    """
    if not isinstance(universe, Universe) or not isinstance(budget, Budget):
        raise InvalidInput(
            "A plan must have universe= and budget=. Found none, or other types. Give both, as to hr.open."
        )
    n = None if rows is None else whole("rows", rows)
    wanted = None if accuracy is None else number(accuracy)
    β = number(beta)
    if not 0 < β < 1:
        raise InvalidInput(f"beta must be between 0 and 1. Found {beta!r}. Give the probability of failure.")
    workload = read_workload(checked_workload(workload), universe)
    counts, convex = _questions(workload, universe)
    if wanted is not None and not (0 < wanted < 1 or (wanted > 0 and convex)):
        raise InvalidInput(
            f"accuracy must be between 0 and 1. Found {accuracy!r}. Give a fraction of the rows, such as 0.01."
        )
    n, wanted, solving = _unknown(n, wanted, solve_for)
    k = None if queries is None else whole("queries", queries)
    goals = {
        True: Goal(budget, n or 1.0, wanted or 0.5, k or max(1, len(convex)), β),  # of convex questions
        False: Goal(budget, n or 1.0, wanted or 0.5, k or QUERIES, β),
    }
    found: list[Mechanism] = []
    if counts is not None:
        few = isinstance(counts, Workload) and counts.length(universe) <= MOST_COUNTED
        d = counts.vc_dimension(universe) if few and isinstance(counts, Workload) else None
        found += mechanisms(universe.size, d)
        matrix = matrix_mechanism(_list_questions(counts, universe), universe) if counts else None
        found += [] if matrix is None else [matrix]
    found += convex_mechanisms(convex, universe.size)
    options = [_theorem_option(each, goals[each.about == "minimizers"], n, wanted, solving) for each in found]
    effect = None
    if simulate and counts is not None and solving is None:
        asked = counts if isinstance(counts, Workload) else counts or None
        about = {"queries": k or QUERIES, "beta": β, "workload": asked, "public": public}
        with phases(progress):
            tried = None
            if n is not None and workload is not None:
                tell(lambda: "trying the practical profile, with the workload and without it")
                tried, effect = simulation.simulate_workload(universe, budget, n, **about)
            elif n is not None:
                tell(lambda: "trying the practical profile")
                tried = simulation.simulate_session(universe, budget, n, **about)
            options.append(_simulated_option(universe, budget, n, wanted, tried, **about))
    main: About = "counts" if counts is not None else "minimizers"
    shown = [option for option in options if option is not None]
    shown.sort(key=lambda o: _rank(o, main, solving, n is not None))
    population = None if n is None else str(population_statement(budget, rows=n, asked=k or QUERIES, sample_beta=β))
    limits = (
        ()
        if n is None or solving is not None
        else lower_bounds(budget, n, goals[main == "minimizers"].queries, β, universe.size, convex)
    )
    return Plan(
        tuple(shown), budget.epsilon, budget.delta, universe.size, goals[main == "minimizers"].queries, β, n, wanted, population, solving,
        tuple(bound for bound in limits if counts is not None or bound.about == "minimizers"),
        effect,
    )  # fmt: skip


def _questions(workload: Any, universe: Universe) -> tuple[Workload | list[Query] | None, list[BoundMinimize]]:
    """Return the counts of a workload, None if it has convex questions alone, and its convex questions."""
    if workload is None or isinstance(workload, Workload):
        return (workload or []), []
    asked = list(workload)
    if not all(isinstance(query, Query) for query in asked):
        raise InvalidInput(
            "The workload of a plan must be counts, tables, means or minimizations. Found another object in it. Give "
            "such questions only."
        )
    if not asked:
        raise InvalidInput("workload must have at least one question. Found none. Give questions, or leave it out.")
    counts = [query for query in asked if not query.is_convex]
    return (counts or None), bound_convex(asked, universe)


def _list_questions(counts: Workload | list[Query], universe: Universe) -> list[Bound[Any]]:
    """Return the questions of a workload, bound; none if they are too many or too large to plan them one by one."""
    if (counts.length(universe) if isinstance(counts, Workload) else len(counts)) > MOST_LISTED:
        return []
    try:
        asked = counts.on(universe) if isinstance(counts, Workload) else counts
        return [bound_to(query, universe) for query in asked]
    except TooLarge:
        return []


def _unknown(
    rows: int | None, accuracy: float | None, solve_for: Unknown | None
) -> tuple[int | None, float | None, Unknown | None]:
    """Return rows and accuracy as far as they are used, and the unknown if it is neither of them."""
    if solve_for is not None and solve_for not in get_args(Unknown):
        raise InvalidInput(f"solve_for must be one of {', '.join(get_args(Unknown))}. Found {solve_for!r}. Choose one.")
    if solve_for == "rows":
        rows = None
    if solve_for == "accuracy":
        accuracy = None
    needs = {"rows": accuracy is not None, "accuracy": rows is not None, None: rows is not None or accuracy is not None}
    if not needs.get(solve_for, rows is not None and accuracy is not None):
        raise InvalidInput(
            "A plan must be for a number of rows or for an accuracy, and for both if solve_for is another quantity. "
            "Found too few. Give the number of rows (rows=20_000, or --rows 20000) or the error that you want "
            "(accuracy=0.01, or --accuracy 0.01)."
        )
    return rows, accuracy, None if solve_for in ("rows", "accuracy") else solve_for


def _theorem_option(
    mechanism: Mechanism, goal: Goal, rows: int | None, accuracy: float | None, solving: Unknown | None
) -> Option | None:
    """Return the option of a mechanism with a theorem; None if it cannot promise anything for such questions."""
    error = needed = solution = None
    if solving is not None:
        solution = solve(mechanism, goal, solving)
        goal = goal if solution is None else goal.having(solving, solution)
    else:
        if accuracy is not None:
            needed = solve(mechanism, goal, "rows")
        if rows is not None:
            error = solve(mechanism, goal, "accuracy")
        if rows is None:
            goal = goal if needed is None else goal.having("rows", needed)
        else:
            goal = goal if error is None else goal.having("accuracy", error)
    if mechanism.in_expectation and error is None and needed is None and solution is None:
        return None  # a solver for other losses, sets or budgets
    known = mechanism.typical is not None and solving is None and (error is not None or needed is not None)
    typical = mechanism.typical(goal) if known and mechanism.typical is not None else None
    return Option(
        mechanism.name, mechanism.adaptive, mechanism.how, mechanism.theorem, error, needed, typical,
        interval=None if typical is None else (typical, typical), about=mechanism.about,
        solution=solution, in_expectation=mechanism.in_expectation, runs=mechanism.runs(goal),
        answers=mechanism.answers,
    )  # fmt: skip


def _simulated_option(
    universe: Universe,
    budget: Budget,
    rows: int | None,
    accuracy: float | None,
    tried: SimulatedErrors | None,
    **about: Any,
) -> Option:
    """Return the option of the practical profile. Its numbers are those of simulated sessions, and no bounds.

    ``tried`` is the session with the stated rows, if they are stated.
    """
    error = needed = typical = interval = None
    on = "uniform columns" if about["public"] is None else "public rows"
    by = f"simulation on {on}"
    if tried is not None:
        error, typical, interval = _useful(tried.error), tried.typical, tried.interval
        if rows is not None and tried.rows < rows:
            by += f", {tried.rows:,} of them"
    if accuracy is not None:
        tell(lambda: "looking for the rows that the practical profile needs")
        found, enough = simulation.rows_for(accuracy, universe, budget, tried or 20_000, **about)
        needed = float(found.rows) if enough else None
        if typical is None:
            typical, interval = found.typical, found.interval
    return Option("practical profile", True, "hr.open", by, error, needed, typical, simulated=True, interval=interval)


def _useful(error: float | None) -> float | None:
    """Return the error, or None if it is 1 or more, because a fraction is never off by more than 1."""
    return error if error is not None and error < 1 else None


def _rank(option: Option, main: About, solving: Unknown | None, by_error: bool) -> tuple[bool, bool, float]:
    """Return the sorting key of an option: the main questions first, then options that can run, then the error."""
    if solving is not None:
        found = option.solution if option.solution is None or solving != "queries" else -option.solution
    else:
        found = option.error if by_error else option.rows
    return option.about != main, not option.runs, math.inf if found is None else found
