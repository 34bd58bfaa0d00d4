"""The entry point of all solvers: the interface of a solver, its plan, and the one way to run it.

A solver is a small frozen value whose fields are its options. It first *plans* from public facts alone, with an
``Amount``, which prices noise but cannot pay for it. The plan lists all events of the call, the bound of the theorem,
and the details that the run will need. Then all events are charged together, and the solver *runs*: it draws against
the receipt, each event once and in order, so that nothing can be drawn that was not planned and paid for.

    problem → plan → charge → run → Result

``solve`` defines the parameters of every solver, with their defaults and meanings. ``public`` turns a solver class into
the function that users call. A new solver is one class in ``solvers/``, listed in ``solvers.SOLVERS``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hedgerow import _duration, _progress
from hedgerow._memory import in_bytes, limit_memory
from hedgerow._renamed import renamed_parameters
from hedgerow._threads import one_thread
from hedgerow._types import Array, Integers
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets import Unconstrained
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.data.spark_frame import spark_frame
from hedgerow.erm.problem import Problem, prepare_problem
from hedgerow.erm.rows import Arrays, Norm
from hedgerow.erm.spark_rows import SparkRows
from hedgerow.erm.units import Whose, payer_of_units
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Allowance, Amount, Payer
from hedgerow.privacy.events import Event
from hedgerow.privacy.ledger import Receipt
from hedgerow.privacy.noise import Noise, Seeded

Details = TypeVar("Details", covariant=True)


@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome of a solver: the released θ and its cost.

    Attributes
    ----------
    theta : array
        The fitted parameters.
    events : tuple of Event
        The events that were billed.
    cost : float
        If a Budget paid for this call alone, the ε at the budget's δ. If a ledger paid, the charge in its currency (ρ,
        or ε if δ = 0).
    risk_bound : float or None
        A bound on the expected excess of the average loss over the best in the set, from public quantities. None if no
        theorem applies.
    iterations : int
        The number of steps.
    solver : str
        The name of the solver.
    population_bound : float or None
        A bound on the expected excess over the population from which the rows are independent draws. None if no
        theorem applies.

    Example
    -------
    >>> loss = hr.losses.Logistic(ridge=0.1)
    >>> result = hr.erm.output_perturbation(X, y, loss=loss, over=hr.L2Ball(1.0), budget=budget)
    >>> result.solver, result.theta.shape
    ('output_perturbation', (2,))
    """

    theta: Array
    events: tuple[Event, ...]
    cost: float
    risk_bound: float | None
    iterations: int
    solver: str
    population_bound: float | None = None


@dataclasses.dataclass(frozen=True)
class SolverPlan(Generic[Details]):
    """All events that a call will draw, in order, and the bound it promises.

    Public, and fixed before anything is drawn.
    """

    solver: Solver
    events: tuple[Event, ...]
    risk_bound: float | None
    iterations: int
    details: Details
    share: float = 1.0
    """The share of the rows that one step reads."""


@dataclasses.dataclass(frozen=True)
class Draw:
    """Noise drawn against the receipt of a plan's events, and an optional progress bar."""

    noise: Noise
    receipt: Receipt
    progress: bool = False

    def add(self, value: Array) -> Array:
        """Return the value with the noise of the next event."""
        return self.noise.add(value, self.receipt)

    def choose(self, scores: Array) -> int:
        """Return the number of the score that the next event picks."""
        return self.noise.choose(scores, self.receipt)

    def sample(self, rows: int) -> Integers:
        """Return the rows of a random sample, by the next event."""
        return self.noise.sample(rows, self.receipt)

    def bar(self, title: str, steps: int) -> contextlib.AbstractContextManager[Callable[[int], None]]:
        """Return a context manager that shows the progress of the given number of steps."""
        return _progress.bar(title, steps, self.progress)


class Planner(Protocol):
    """Anything that ``solve`` accepts: a solver, or a choice among solvers (``auto``)."""

    name: ClassVar[str]

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[Any]:
        """Return a plan that spends the whole amount, from public facts alone. Refuse if the solver cannot run."""


class Solver(Planner, Protocol):
    """One method of minimization. It is frozen, and its fields are its options."""

    def run(self, problem: Problem, plan: SolverPlan[Any], draw: Draw) -> Array:
        """Return θ, a function of the events of the plan, drawn in order. At this stage nothing is refused."""


@one_thread
@np.errstate(all="ignore")
def solve(
    planner: Planner,
    X: Any,
    y: ArrayLike,
    *,
    loss: Loss,
    over: ConvexSet | None,
    budget: Payer,
    row_bound: float = 1.0,
    norm: Norm = "l2",
    label_bound: float | None = None,
    expected_rows: int | None = None,
    unit: Whose | None = None,
    rows_per_unit: int | None = None,
    spend: float | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    limit: int | str | None = None,
    progress: bool = False,
) -> Result:
    """Minimize the average loss over rows, privately.

    Each parameter has exactly one line below, because ``public`` copies these lines into the docstrings of the solvers.

    - X: an array, a frame or a sparse matrix. Its shape is public; values are never refused. A Spark frame works, too.
    - y: one label per row. For a Spark frame, the name of the label column.
    - loss: one of ``hedgerow.losses``.
    - over: the set of allowed θ, such as L2Ball(1.0), or None for no constraint.
    - budget: a Budget that pays for this call alone, or an Accountant or session of the same people.
    - row_bound: rows are clipped to this norm.
    - norm: the norm that row_bound bounds, "l2" or "linf".
    - label_bound: targets of a regression are clipped to [−label_bound, label_bound]. 1 by default.
    - expected_rows: a public guess of the number of rows. Required if neighbours add or remove a row.
    - unit: the person of each row (or that column's name), if persons have several rows. Privacy is then per person.
    - rows_per_unit: the number of rows of each person that are kept.
    - spend: the amount of the Accountant's or session's currency to use. By default all that is left.
    - seed: makes the noise repeatable, and so not private.
    - noise: a source of noise, instead of a seed.
    - limit: the memory that the fit may take, in bytes or as text such as "2GB". By default half of the machine's.
    - progress: show a progress bar.
    """
    if seed is not None and noise is not None:
        raise InvalidInput("seed and noise must not both be given. Found both. Drop one of them.")
    frame, within = spark_frame(X), limit_memory(in_bytes(limit))
    here = Arrays(X, y) if frame is None else None
    most = 0
    if unit is not None:
        budget, most = payer_of_units(budget, rows_per_unit)
    elif rows_per_unit is not None:
        raise InvalidInput(
            "rows_per_unit must come with unit. Found rows_per_unit alone. Give unit=…, the person of each row."
        )
    allowance = Allowance.of(budget, spend)
    source = noise if noise is not None else Noise() if seed is None else Seeded(seed)
    facts: dict[str, Any] = {
        "loss": loss, "over": Unconstrained() if over is None else over, "budget": allowance.budget,
        "row_bound": row_bound, "norm": norm, "label_bound": label_bound, "expected_rows": expected_rows,
    }  # fmt: skip
    if here is not None:
        with within:
            problem = prepare_problem(here if unit is None else here.of_units(unit, most), **facts)
            return carry_out(planner, problem, allowance, source, progress)
    with within, contextlib.closing(SparkRows(frame, y, unit, most)) as there:
        return carry_out(planner, there.problem(prepare_problem(there, **facts)), allowance, source, progress)


def carry_out(planner: Planner, problem: Problem, allowance: Allowance, noise: Noise, progress: bool = False) -> Result:
    """Plan a call, charge all of its events, draw them, and record the result."""
    plan = planner.plan(problem, allowance.quote())
    solver = plan.solver
    _require_time(problem, plan)
    receipt = allowance.charge(*plan.events, why=f"erm: {solver.name}", keep=False)
    theta = solver.run(problem, plan, Draw(noise, receipt, progress))
    allowance.ledger.record(receipt, theta, noise.private)
    return Result(theta, plan.events, receipt.cost, plan.risk_bound, plan.iterations, solver.name)


def _require_time(problem: Problem, plan: SolverPlan[Any]) -> None:
    """Refuse a plan that would take days.

    A sparse matrix counts as one entry per row, because its entries are private.
    """
    n, p = float(problem.n), problem.p
    entries = n * p if isinstance(problem.X, np.ndarray) else n + p
    _duration.require(
        f"A fit of {p} parameters to about {problem.n:.3g} rows in {plan.iterations} steps",
        plan.iterations * (plan.share * entries + n) * _duration.ENTRY,
        "Take fewer steps or rows",
    )


def public(planner: type[Any], *, fixed: tuple[str, ...] = (), **defaults: Any) -> Callable[..., Result]:
    """Return the function that users call for a ``Planner`` class.

    It has the parameters of ``solve`` and the solver's own fields. ``fixed`` lists parameters that it does not have,
    because the solver has an attribute of that name. ``defaults`` replaces defaults of ``solve``.
    """
    own = [field.name for field in dataclasses.fields(planner)]
    signature = _signature(planner, fixed, defaults)

    def call(*given: Any, **named: Any) -> Result:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        arguments = bound.arguments
        solver = planner(**{option: arguments.pop(option) for option in own})
        return solve(solver, **{parameter: getattr(solver, parameter) for parameter in fixed}, **arguments)

    call.__name__ = call.__qualname__ = planner.name
    call.__module__ = planner.__module__
    call.__doc__ = _describe(planner, signature)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return renamed_parameters(rows="expected_rows")(call)


def _signature(planner: type[Any], fixed: tuple[str, ...], defaults: dict[str, Any]) -> inspect.Signature:
    """Return the signature of a solver's function: the shared parameters, with its own options before ``spend``."""
    shared = inspect.signature(solve)
    parameters = [
        parameter.replace(default=defaults.get(name, parameter.default))
        for name, parameter in shared.parameters.items()
        if name not in ("planner", *fixed)
    ]
    options = inspect.signature(planner).parameters.values()
    keyword = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    # options describe the problem, so they come before the parameters of payment
    before = [parameter.name for parameter in parameters].index("spend")
    return shared.replace(parameters=[*parameters[:before], *keyword, *parameters[before:]])


def _describe(planner: type[Any], signature: inspect.Signature) -> str:
    """Return the docstring of a solver's function: the solver's own, with the shared parameters among its own."""
    own = inspect.getdoc(planner) or ""
    about, _, example = own.partition("\n\nExample\n-------\n")
    about, _, options = about.partition("\n\nParameters\n----------\n")
    lines = [line for line in (inspect.getdoc(solve) or "").splitlines() if line.startswith("- ")]
    shared = [line for line in lines if line[2:].split(":")[0] in signature.parameters]
    sections = {
        "Parameters": "\n".join(_as_entry(line) for line in [*_bullets(options), *shared]),
        "Returns": "Result",
        "Raises": "InvalidInput\n    If an option is out of range, or the solver does not suit the loss, the set or the "
        "budget.\nBudgetExceeded\n    If the account cannot pay.",
        "Example": example,
    }
    return "\n\n".join([about, *(f"{title}\n{'-' * len(title)}\n{body}" for title, body in sections.items() if body)])


def _bullets(options: str) -> list[str]:
    """Return the items of a list, each on one line."""
    return re.sub(r"\n +", " ", options).splitlines()


def _as_entry(bullet: str) -> str:
    """Return an item ``- name: what it is`` as an entry of a NumPy docstring."""
    name, _, told = bullet[2:].partition(": ")
    told = told[:1].upper() + told[1:] if told else told
    return "\n".join([name, *textwrap.wrap(told, 112, initial_indent="    ", subsequent_indent="    ")])
