"""The guarantee of each mechanism, as a test: do these rows and this budget give every answer this error?

Symbols: n rows, α the error, |X| cells, k questions, β the probability that any answer is farther off than promised. A
``Goal`` has all of them but |X|. ``Mechanism.suffices`` is monotone in each, so ``solve`` finds any one from the others
by bisection on the exact formulas.

Differs: the textbook mechanisms promise 3α where their theorems are stated for α. Here an error is what holds for every
answer. The package's mechanisms are calibrated by the ledger, and need fewer rows than ``textbook.bounds``.
``lower_bounds`` has the theorems of the other direction.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from hedgerow.convex.losses.families import Loss
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.engine.matrix import plan_matrix, split_workload
from hedgerow.engine.matrix_answers import MatrixPlan
from hedgerow.engine.theory import ConvexFamily
from hedgerow.erm.auto import WITH_A_BOUND
from hedgerow.erm.problem import Problem, describe_problem
from hedgerow.erm.solver import Solver
from hedgerow.erm.solvers.mirror_descent import MirrorDescent, least_risk
from hedgerow.erm.solvers.objective_perturbation import ObjectivePerturbation
from hedgerow.errors import BudgetExceeded, InvalidInput, TooLarge
from hedgerow.generalise.transfer import on_sample
from hedgerow.generalise.widths import on_population, plan_holdout
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Laplace
from hedgerow.query.bound import Bound
from hedgerow.textbook import bounds, convex_offline, descent_by_queries, mwem, pmw, small_db, subsampled
from hedgerow.universe.universe import Universe

Unknown = Literal["rows", "accuracy", "queries", "beta", "epsilon", "delta"]
About = Literal["counts", "minimizers", "population", "scores"]

ROWS_AT_MOST, QUERIES_AT_MOST = 2.0**62, 2.0**62
LEAST_ERROR, LEAST_BETA, LEAST_EPSILON, MOST_EPSILON, LEAST_DELTA = 1e-12, 1e-30, 1e-6, 100.0, 1e-100
LEAST_SLACK = 1e-12  # the least δ of one fit for which its noise can be computed
REFERENCE = 10**6  # rows at which a matrix mechanism is planned; its noise does not depend on their number
HOLDOUT_ROUNDS = 10  # wrong guesses that the row of the holdout allows for, as ``hr.Holdout`` does by default


@dataclass(frozen=True)
class Goal:
    """All that a guarantee is about: the budget, n, α, k and β."""

    budget: Budget
    rows: float
    error: float
    queries: int
    beta: float

    def having(self, unknown: Unknown, value: float) -> Goal:
        """Return the goal with another value of one quantity."""
        match unknown:
            case "rows":
                return replace(self, rows=value)
            case "beta":
                return replace(self, beta=value)
            case "accuracy":
                return replace(self, error=value)
            case "queries":
                return replace(self, queries=int(value))
            case "epsilon":
                return replace(self, budget=replace(self.budget, epsilon=value))
            case "delta":
                return replace(self, budget=replace(self.budget, delta=value))


@dataclass(frozen=True)
class Mechanism:
    """A mechanism and its guarantee.

    ``adaptive`` is True if questions may depend on earlier answers. ``how`` says how to use the mechanism, and
    ``theorem`` where the guarantee comes from. ``about``: the answers that it is for. ``largest`` is the error that
    promises nothing. ``in_expectation``: the error is an expectation, and β plays no part. ``runs`` is False for a goal
    that takes more time or memory than there is. ``precision``: how near a solution is to the best, as a share of it.
    ``typical``: the mean error, if it is known. ``answers``: the number of answers of the workload, if the guarantee
    is for these alone.
    """

    name: str
    adaptive: bool
    how: str
    theorem: str
    suffices: Callable[[Goal], bool]
    about: About = "counts"
    largest: float = 1.0
    in_expectation: bool = False
    precision: float = 1e-6
    runs: Callable[[Goal], bool] = lambda goal: True
    typical: Callable[[Goal], float] | None = None
    answers: int | None = None


def solve(mechanism: Mechanism, goal: Goal, unknown: Unknown) -> float | None:
    """Return the best value of one quantity for which the guarantee holds, given the others in ``goal``.

    The best is the least n, α, β, ε or δ, or the largest k, which is 2^62 if that many will do. None:
    no value is enough.
    """
    if unknown not in get_args(Unknown):
        raise InvalidInput(f"solve_for must be one of {', '.join(get_args(Unknown))}. Found {unknown!r}. Choose one.")
    if mechanism.in_expectation and unknown == "beta":
        return None

    def enough(value: float) -> bool:
        with contextlib.suppress(InvalidInput, BudgetExceeded, TooLarge):
            return mechanism.suffices(goal.having(unknown, value))
        return False

    near = 1 + mechanism.precision
    match unknown:
        case "rows":
            found = _first(enough, 1.0, ROWS_AT_MOST, near)
            return None if found is None else _whole_rows(found, enough, near)
        case "accuracy":
            return _last(enough, mechanism.largest * (1 - 1e-9), LEAST_ERROR * mechanism.largest, near)
        case "queries" if mechanism.answers is not None:
            return float(mechanism.answers) if enough(1.0) else None
        case "queries":
            return _most_queries(enough, near)
        case "beta":
            return _last(enough, 1 - 1e-9, LEAST_BETA, near)
        case "epsilon":
            return _first(enough, LEAST_EPSILON, MOST_EPSILON, near)
        case "delta":
            return 0.0 if enough(0.0) else _first(enough, LEAST_DELTA, 0.5, near, factor=1e10)


Enough = Callable[[float], bool]


def _first(enough: Enough, low: float, high: float, near: float, factor: float = 4.0) -> float | None:
    """Return nearly the least value that is enough, searched upwards; None if none up to ``high`` is."""
    tried, last = low, None
    while not enough(tried):
        if tried >= high:
            return None
        last, tried = tried, min(high, tried * factor)
    return tried if last is None else _between(enough, last, tried, near)


def _last(enough: Enough, high: float, low: float, near: float) -> float | None:
    """Return nearly the least value that is enough, searched downwards; None if ``high`` is not."""
    if not enough(high):
        return None
    tried = high
    while tried > low:
        smaller = max(low, tried / 4)
        if not enough(smaller):
            return _between(enough, smaller, tried, near)
        tried = smaller
    return low


def _between(enough: Enough, low: float, high: float, near: float) -> float:
    """Return a value that is enough, given that ``high`` is and ``low`` is not, at most ``near`` times the least."""
    while high > low * near:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _whole_rows(rows: float, enough: Enough, near: float) -> float:
    """Return a whole number of rows that is enough, at or just above ``rows``."""
    whole = math.ceil(rows)
    while not enough(float(whole)):
        whole = math.ceil(whole * near) + 1
    return float(whole)


def _most_queries(enough: Enough, near: float) -> float | None:
    """Return the largest number of questions, at most 2^62, or None if not even one is answered."""
    if not enough(1.0):
        return None
    low, high = 1, 4
    while enough(float(high)):
        low, high = high, 4 * high
        if high > QUERIES_AT_MOST:
            return QUERIES_AT_MOST
    while high - low > max(1.0, low * (near - 1)):
        middle = (low + high) // 2
        low, high = (middle, high) if enough(float(middle)) else (low, middle)
    return float(low)


def mechanisms(cells: int, vc_dimension: int | None = None) -> list[Mechanism]:
    """Return all mechanisms with a guarantee for averages over rows: counts, averages of any function, and scores.

    SmallDB is pure, and therefore within any δ. ``vc_dimension`` is that of the questions, if it is known.
    """
    sampling = [
        Mechanism(
            "noise on every answer", True, "one draw a question", "a union bound on the noise",
            lambda g: noise_width(g.budget, g.queries, g.beta) <= g.error * g.rows,
        ),
        Mechanism(
            "sampled rows", True, "hr.statistic", "Fish et al., Proposition 6, exact", _sampling_suffices,
        ),
        Mechanism(
            "sampled rows, population", True, "hr.statistic(population=True)", "Fish et al., Theorem 5, by Jung et al.",
            _population_suffices, about="population",
        ),
        Mechanism(
            "reusable holdout", True, "hr.Holdout", "description length, and Jung et al.", _holdout_suffices,
            about="scores",
        ),
    ]  # fmt: skip
    if cells < 2:
        return sampling  # with one cell there is nothing to learn
    return [
        *sampling,
        Mechanism(
            "online PMW", True, 'hr.open(profile="theory")', "Theorems 4.14 and 4.15, calibrated",
            lambda g: pmw.rows_needed(g.budget, g.error / 3, g.beta, g.queries, cells) <= g.rows,
        ),
        Mechanism(
            "MWEM", False, 'hr.release(method="mwem")', "Theorem 12.6, calibrated",
            lambda g: mwem.rows_needed(g.budget, g.error / 3, g.beta, g.queries, cells) <= g.rows,
        ),
        *(_small_db(cells, d) for d in {None, vc_dimension}),
    ]  # fmt: skip


def matrix_mechanism(bound: Sequence[Bound[Any]], universe: Universe) -> Mechanism | None:
    """Return the factorization release of a workload, whose errors are known beforehand; None if it cannot be planned.

    ``typical`` is the mean error of its noise.
    """
    try:
        tables, queries = split_workload(bound, universe)
    except InvalidInput:
        return None  # questions that are not linear
    if not (tables or queries):
        return None
    answers = sum(universe.cells(names) for names in tables) + len(queries)

    @functools.cache
    def planned(budget: Budget, beta: float) -> MatrixPlan:
        return plan_matrix(budget, universe, tables, queries, rows=REFERENCE, beta=beta).plan

    def suffices(g: Goal) -> bool:
        return planned(g.budget, g.beta).widest * REFERENCE <= g.error * g.rows

    def typical(g: Goal) -> float:
        return planned(g.budget, g.beta).typical * REFERENCE / g.rows

    return Mechanism(
        "matrix mechanism", False, 'hr.release(method="matrix")', "exact errors of the stated workload", suffices,
        typical=typical, answers=answers,
    )  # fmt: skip


def convex_mechanisms(questions: Sequence[BoundMinimize], cells: int) -> list[Mechanism]:
    """Return all mechanisms with a guarantee for convex questions like these: the excess over the best θ of the set."""
    if not questions or any(question.scale is None for question in questions):
        return []
    largest = max(question.scale for question in questions if question.scale is not None)
    found = [_fit(solver, named, theorem, questions, largest) for solver, named, theorem in FITS]
    found.append(
        Mechanism(
            "descent by statistical queries", True, "hr.erm.by_statistical_queries",
            "Fish et al., Corollaries 15 and 16, with constants",
            lambda g: all(_descent_suffices(question, g) for question in questions), "minimizers", largest,
        )
    )  # fmt: skip
    if cells < 2:
        return found

    def online(g: Goal) -> bool:
        family = ConvexFamily(questions, g.budget, cells, g.queries, g.beta / 2, 0.5)  # half is for counts
        return family.first(g.rows, g.error) is not None

    def offline(g: Goal) -> bool:
        return convex_offline.suffices(
            g.budget, [(q.risk, q.over) for q in questions], cells=cells, rows=g.rows, queries=g.queries, beta=g.beta,
            alpha=g.error,
        )  # fmt: skip

    return [
        *found,
        Mechanism(
            "online PMW for convex questions", True, 'hr.open(profile="theory", workload=[hr.minimize(…)])',
            "Ullman, Theorem 3.8, calibrated", online, "minimizers", largest,
        ),
        Mechanism(
            "offline PMW for convex questions", False, 'hr.release(method="convex")', "Ullman, §1.2, calibrated",
            offline, "minimizers", largest,
        ),
    ]  # fmt: skip


FITS: tuple[tuple[Solver, str, str], ...] = (
    *zip(
        WITH_A_BOUND,
        ("Frank–Wolfe", "mirror descent", "output perturbation", "Frank–Wolfe, general"),
        ("Theorem 5.5", "Theorems 3.2 and A.1", "strong convexity", "Theorem B.2"),
        strict=True,
    ),
    (ObjectivePerturbation(), "objective perturbation", "Theorem 4.1"),
)


def noise_width(budget: Budget, queries: int, beta: float) -> float:
    """Return a width, in rows, that k draws of noise all stay within, except with probability β.

    P(|Lap(b)| > w) ≤ e^(−w/b) and P(|N(0, σ²)| > w) ≤ 2e^(−w²/2σ²). The noise is a whole number, which adds 1.
    """
    k = float(queries)
    event = Amount.share_of(budget).noise(k * budget.linear(), math.sqrt(k) * budget.linear())
    if isinstance(event, Laplace):
        return event.scale * math.log(k / beta) + 1
    return event.sigma * math.sqrt(2 * math.log(2 * k / beta)) + 1


def _sampling_suffices(g: Goal) -> bool:
    """Return True if the budget pays for k averages over sampled rows, each within α of the table's."""
    if g.budget.neighbours != "replace":
        return False  # the cost of a sample depends on n
    plan = subsampled.plan(_whole(g.rows), alpha=g.error, beta=g.beta, queries=g.queries)
    return g.queries * g.budget.cost(plan.event) <= g.budget.total


def _population_suffices(g: Goal) -> bool:
    """Return True if k averages over sampled rows are within α of the population's, at some loss within the budget.

    The theorem asks for a small loss, so a larger budget need not be spent.
    """
    if g.budget.neighbours != "replace" or g.budget.rows_per_unit > 1:
        return False
    for share in (1.0, 0.5, 0.25, 0.1, 0.03):
        spent = replace(g.budget, epsilon=min(g.budget.epsilon, share * g.error))
        with contextlib.suppress(InvalidInput):
            needs = on_sample(g.error, spent.epsilon, spent.delta, g.beta)
            plan = subsampled.plan(_whole(g.rows), alpha=needs.sample_error, beta=needs.sample_beta, queries=g.queries)
            if g.queries * spent.cost(plan.event) <= spent.total:
                return True
    return False


def _holdout_suffices(g: Goal) -> bool:
    """Return True if k scores, ``HOLDOUT_ROUNDS`` of them guessed wrong, are all within α of the population's."""
    if g.budget.neighbours != "replace":
        return False
    plan = plan_holdout(
        Amount.share_of(g.budget), g.budget, rows=_whole(g.rows), trained_on=_whole(g.rows), rounds=HOLDOUT_ROUNDS,
        questions=g.queries, beta=g.beta, threshold=None,
    )  # fmt: skip
    return on_population(plan, g.queries) <= g.error


def _small_db(cells: int, vc_dimension: int | None) -> Mechanism:
    """Return SmallDB, with its size from the number of questions or from their VC dimension."""

    def size(g: Goal) -> int:
        if vc_dimension is None:
            return bounds.small_db_size(g.error / 2, g.queries)
        return bounds.small_db_size_vc(g.error / 2, vc_dimension)

    return Mechanism(
        "SmallDB" if vc_dimension is None else "SmallDB, VC dimension", False, 'hr.release(method="small_db")',
        "Theorem 4.5" if vc_dimension is None else f"Theorem 4.9, VC dimension {vc_dimension}",
        lambda g: g.budget.neighbours == "replace" and bounds.small_db_rows(
            g.error, g.beta, g.budget.epsilon, g.queries, cells, vc_dimension
        ) <= g.rows,
        runs=lambda g: bounds.ln_databases(cells, size(g)) <= math.log(small_db.MOST_DATABASES),
    )  # fmt: skip


def _fit(solver: Solver, name: str, theorem: str, questions: Sequence[BoundMinimize], largest: float) -> Mechanism:
    """Return a solver of ``hr.erm`` that fits each of k questions by itself, at a k-th of the budget."""

    def suffices(g: Goal) -> bool:
        return all(_fit_suffices(solver, _problem(question, g), _part(solver, g), g.error) for question in questions)

    return Mechanism(
        name, True, f"hr.erm.{solver.name}", f"Talwar et al., {theorem}, in expectation", suffices, "minimizers",
        largest, in_expectation=True, precision=0.01,
    )  # fmt: skip


def _fit_suffices(solver: Solver, problem: Problem, amount: Amount, error: float) -> bool:
    """Return True if the solver's bound is at most ``error``."""
    if isinstance(solver, MirrorDescent) and not least_risk(problem, amount) <= error:
        return False  # the limit of many steps is not enough, so there is no need to plan steps
    risk = solver.plan(problem, amount).risk_bound
    return risk is not None and risk <= error


def _part(solver: Solver, g: Goal) -> Amount:
    """Return what one of k fits may spend; half of δ is slack for a solver whose steps have a δ of their own."""
    if g.queries == 1:
        return Allowance.of(g.budget).quote()
    if isinstance(solver, ObjectivePerturbation) and not g.budget.pure:
        slack = g.budget.delta / 2
        if slack / g.queries < LEAST_SLACK:
            raise InvalidInput(f"queries must be fewer for so small a delta. Found {g.queries}. Fit fewer models.")
        return Amount(g.budget, g.budget.rho(slack) / g.queries, slack=slack / g.queries)
    return Amount.share_of(g.budget, 1 / g.queries)


def _problem(question: BoundMinimize, g: Goal) -> Problem:
    """Return the public facts of a fit of the question's loss to n rows, as coded by the universe."""
    risk = question.risk.glm
    if risk is None or not isinstance(risk.loss, Loss):
        raise InvalidInput("The loss must be one of hedgerow.losses. Found another loss. Ask a session to minimize it.")
    return describe_problem(
        _whole(g.rows), question.risk.dimension, loss=risk.loss, over=question.over, budget=g.budget,
        row_bound=risk.features.row_norm_bound, label_bound=float(abs(risk.labels).max()),
    )  # fmt: skip


def _descent_suffices(question: BoundMinimize, g: Goal) -> bool:
    """Return True if the budget pays for k runs of descent, each within α of the table's best except with β."""
    glm = question.risk.glm
    if glm is None or not isinstance(glm.loss, Loss) or g.budget.neighbours != "replace":
        return False
    risk = descent_by_queries.ClippedRisk(glm.loss, question.over)
    plan = descent_by_queries.configure(risk, _whole(g.rows), alpha=g.error, beta=g.beta, queries=g.queries)
    return g.queries * plan.cost(g.budget) <= g.budget.total


def _whole(rows: float) -> int:
    return max(1, math.floor(rows))
