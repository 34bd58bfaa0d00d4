"""The front door: what a solver is, what it plans, and the one way to run it.

A solver is a small frozen value whose fields are its own options. It *plans* from public facts alone, with an `Amount` that
buys noise and pays for nothing: all events of the call, the bound of its theorem, and what it needs to know again when it
runs. Then all events are charged together, and it *runs*: it draws against the receipt, each event once and in order, so that
nothing can be drawn that was not planned and paid for.

    problem → plan → charge → run → Result

`solve` spells the parameters of every solver, their defaults and what they mean; `public` makes of a solver class the
function that users call. A new solver is one class in `solvers/`, entered in `solvers.SOLVERS`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hedgerow import _progress
from hedgerow._memory import in_bytes, limited
from hedgerow._threads import one_thread
from hedgerow._types import Array, Integers
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets import Unconstrained
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.data.spark_frame import spark_frame
from hedgerow.erm.problem import Problem, prepared
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
    """What a solver releases, and what it paid.

    `cost` is the ε at the budget's δ where a Budget paid for this call alone, and the currency that was charged (ρ, or ε
    if δ = 0) where a ledger paid. `risk_bound` bounds the expected excess of the average loss over the best in the
    set, from public quantities; None where no theorem applies.
    """

    theta: Array
    events: tuple[Event, ...]
    cost: float
    risk_bound: float | None
    iterations: int
    solver: str


@dataclasses.dataclass(frozen=True)
class Plan(Generic[Details]):
    """All that a call will draw, in order, and the bound it promises: public, and fixed before any is drawn."""

    solver: Solver
    events: tuple[Event, ...]
    risk_bound: float | None
    iterations: int
    details: Details


@dataclasses.dataclass(frozen=True)
class Draw:
    """Noise against the receipt of a plan's events; and a bar that shows how far it got, if that is wanted."""

    noise: Noise
    receipt: Receipt
    progress: bool = False

    def add(self, value: Array) -> Array:
        return self.noise.add(value, self.receipt)

    def choose(self, scores: Array) -> int:
        return self.noise.choose(scores, self.receipt)

    def sample(self, rows: int) -> Integers:
        return self.noise.sample(rows, self.receipt)

    def bar(self, title: str, steps: int) -> contextlib.AbstractContextManager[Callable[[int], None]]:
        return _progress.bar(title, steps, self.progress)


class Planner(Protocol):
    """What the door takes: a solver, or a choice among some (`auto`)."""

    name: ClassVar[str]

    def plan(self, problem: Problem, amount: Amount) -> Plan[Any]:
        """From public facts alone, for all of the amount; refused where the solver cannot run."""


class Solver(Planner, Protocol):
    """One way to minimise. Frozen: its fields are its options."""

    def run(self, problem: Problem, plan: Plan[Any], draw: Draw) -> Array:
        """θ, a function of what is drawn: every event of the plan, in order. Refuses nothing any more."""


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
    rows: int | None = None,
    unit: Whose | None = None,
    rows_per_unit: int | None = None,
    spend: float | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    limit: int | str | None = None,
    progress: bool = False,
) -> Result:
    """Minimise the average loss over rows, privately.

    - X: an array, a frame or a sparse matrix. Its shape is public; what rows hold is never refused. Rows of a Spark frame stay on its cluster.
    - y: one label for each row; of a Spark frame, the name of the column.
    - loss: one of `hedgerow.losses`.
    - over: the set in which θ is sought, such as L2Ball(1.0); None for no constraint.
    - budget: a Budget, all of which pays for this call; or an Accountant or a session of the same people, to pay from.
    - row_bound: rows are clipped to this norm, never trusted.
    - norm: which norm that is, "l2" or "linf".
    - label_bound: targets of a regression are clipped to [−label_bound, label_bound]; 1 unless given.
    - rows: a public guess of the number of rows, needed where neighbours add or remove one.
    - unit: whose each row is, where a person may have several (of a Spark frame, the name of the column); the promise is then a person's.
    - rows_per_unit: how many rows of each person are kept.
    - spend: how much of an Accountant's or a session's currency to use; all that is left unless given.
    - seed: makes the noise repeatable, and so not private.
    - noise: where to draw from, in place of a seed.
    - limit: how much memory the fit may take, in bytes or as in "2GB"; by default half of the machine's.
    - progress: show a bar.
    """
    if seed is not None and noise is not None:
        raise InvalidInput("seed and noise must not both be given. Found both. Drop one of them.")
    frame, within = spark_frame(X), limited(in_bytes(limit))
    here = Arrays(X, y) if frame is None else None
    most = 0
    if unit is not None:
        budget, most = payer_of_units(budget, rows_per_unit)
    elif rows_per_unit is not None:
        raise InvalidInput("rows_per_unit must come with unit. Found it alone. Say whose each row is.")
    allowance = Allowance.of(budget, spend)
    source = noise if noise is not None else Noise() if seed is None else Seeded(seed)
    facts: dict[str, Any] = {
        "loss": loss, "over": Unconstrained() if over is None else over, "budget": allowance.budget,
        "row_bound": row_bound, "norm": norm, "label_bound": label_bound, "rows": rows,
    }  # fmt: skip
    if here is not None:
        with within:
            problem = prepared(here if unit is None else here.of_units(unit, most), **facts)
            return carried_out(planner, problem, allowance, source, progress)
    with within, contextlib.closing(SparkRows(frame, y, unit, most)) as there:
        return carried_out(planner, there.problem(prepared(there, **facts)), allowance, source, progress)


def carried_out(
    planner: Planner, problem: Problem, allowance: Allowance, noise: Noise, progress: bool = False
) -> Result:
    """Plan, pay for all of it, draw, and record what came out."""
    plan = planner.plan(problem, allowance.quote())
    solver = plan.solver
    receipt = allowance.charge(*plan.events, why=f"erm: {solver.name}", keep=False)
    theta = solver.run(problem, plan, Draw(noise, receipt, progress))
    allowance.ledger.record(receipt, theta, noise.private)
    return Result(theta, plan.events, receipt.cost, plan.risk_bound, plan.iterations, solver.name)


def public(planner: type[Any], *, fixed: tuple[str, ...] = (), **defaults: Any) -> Callable[..., Result]:
    """The function that users call, of a `Planner` class: the parameters of `solve`, and the solver's own fields.

    ``fixed``: parameters that are not asked for, as the solver has an attribute of that name. ``defaults``: where they are
    not those of `solve`.
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
    call.__doc__ = _described(planner, signature)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _signature(planner: type[Any], fixed: tuple[str, ...], defaults: dict[str, Any]) -> inspect.Signature:
    shared = inspect.signature(solve)
    parameters = [
        parameter.replace(default=defaults.get(name, parameter.default))
        for name, parameter in shared.parameters.items()
        if name not in ("planner", *fixed)
    ]
    options = inspect.signature(planner).parameters.values()
    keyword = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    before = [parameter.name for parameter in parameters].index("spend")  # the options stand beside the problem
    return shared.replace(parameters=[*parameters[:before], *keyword, *parameters[before:]])


def _described(planner: type[Any], signature: inspect.Signature) -> str:
    """What the solver says of itself, then a line for every shared parameter that it has."""
    lines = (inspect.getdoc(solve) or "").splitlines()
    shared = [line for line in lines if line.startswith("- ") and line[2:].split(":")[0] in signature.parameters]
    return "\n".join([inspect.getdoc(planner) or "", "", *shared])
