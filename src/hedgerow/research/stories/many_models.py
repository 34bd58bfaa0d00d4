"""The demo of convex questions: an analyst who fits a thousand regressions and classifiers under one budget.

For one target after another the analyst adds features step by step. Each time she tries every feature that is left
and keeps the one that helps most, as judged on the session's own public hypothesis. Then she starts again within each
group of the feature that helped most. So her questions depend on all earlier answers. The table is public, which is
why true excess risks may be shown.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow._extras import extra
from hedgerow.answer import Answer
from hedgerow.convex.minimize import BoundMinimize, minimize
from hedgerow.convex.sets import L2Ball
from hedgerow.convex.solver.public_minimum import minimize_over
from hedgerow.data import DataSource, Table
from hedgerow.demo import path, universe
from hedgerow.losses import (
    Absolute,
    Hinge,
    Huber,
    Logistic,
    Loss,
    MultinomialLogistic,
    Poisson,
    Squared,
)
from hedgerow.opening import open as open_session
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.noise import Noise
from hedgerow.query.counts import Query, count
from hedgerow.session import Session
from hedgerow.unsafe import unsafe_excess_risk

QUESTIONS = 1000  # default number of models
MOST_FEATURES = 3  # features that a stepwise selection chooses
BALL = L2Ball(3.0)  # the set that every model is fitted over
STUDIES: tuple[Loss, ...] = (  # the targets and losses that the analyst studies
    Logistic(target="physical_limitation"),
    Squared(target="visits"),
    MultinomialLogistic(target="health"),
    Huber(0.5, target="chronic_diseases"),
    Hinge(target="physical_limitation"),
    Poisson(2.0, target="visits"),
    Logistic(target="individual_deductible"),
    Absolute(target="visits"),
)

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Fit:
    """One fitted model: the question, its answer, and the true excess risk of the answer."""

    query: Query
    answer: Answer
    excess: float


def analyst(session: Session) -> Generator[Query, Answer, None]:
    """Select features stepwise, study by study; ``send`` the generator each answer."""
    found: list[tuple[Loss, tuple[str, ...]]] = []
    for study in STUDIES:
        chosen = yield from _stepwise(session, study)
        found.append((study, chosen))
    for rank in range(MOST_FEATURES):  # again within each group of the best feature, then of the second best, …
        for study, chosen in found:
            for label in session.universe[chosen[rank]].labels:
                group = replace(study, where=count({chosen[rank]: label}))
                yield from _stepwise(session, group, without=(chosen[rank],))


def _stepwise(
    session: Session, study: Loss, without: tuple[str, ...] = ()
) -> Generator[Query, Answer, tuple[str, ...]]:
    """Ask for every model that is tried; return the features in the order in which they were chosen."""
    chosen: tuple[str, ...] = ()
    while len(chosen) < MOST_FEATURES:
        risks: dict[str, float] = {}
        for name in session.universe.names:
            if name not in (study.target, *without, *chosen):
                query = minimize(replace(study, features=(*chosen, name)), BALL)
                answer = yield query
                risks[name] = _hypothesis_risk(session, query, answer)
        chosen = (*chosen, min(risks, key=risks.__getitem__))
    return chosen


def _hypothesis_risk(session: Session, query: Query, answer: Answer) -> float:
    """Return the risk of the answer on the hypothesis. Public."""
    bound = cast(BoundMinimize, query.on(session.universe))
    return bound.risk.objective(session.hypothesis.marginal(bound.attributes)).value(answer.value)


def fits(session: Session, data: DataSource, how_many: int) -> list[Fit]:
    """Run the analyst until there are ``how_many`` answers; return them with their true excess risks."""
    asking = analyst(session)
    made: list[Fit] = []
    query = next(asking)
    try:
        while len(made) < how_many:
            answer = session.ask(query)
            excess = unsafe_excess_risk(data, query, answer.value, tolerance=1e-5)
            made.append(Fit(query, answer, max(excess, 0.0)))
            query = asking.send(answer)
    except StopIteration:
        pass
    return made


def alone(session: Session, data: DataSource, query: Query, share: float, rng: np.random.Generator) -> float:
    """Return the excess risk of noisy gradient descent with this share of the budget, at its best step size.

    A few step sizes are tried.
    """
    bound = cast(BoundMinimize, query.on(session.universe))
    risk, n, p, steps = bound.risk, session.rows, bound.risk.dimension, 100
    counts = data.marginal(bound.attributes)
    objective, least = risk.objective(counts), minimize_over(risk, counts, bound.over, 1e-5).value
    L = risk.lipschitz(bound.over)
    sigma = session.budget.gradient(L) * math.sqrt(steps / (2 * share * session.budget.rho()))
    usual = bound.over.diameter_l2(p) / math.sqrt(steps * (L**2 + p * (sigma / n) ** 2))
    found: list[float] = []
    for factor in (0.3, 1.0, 3.0, 10.0):
        theta: NDArray[np.float64] = np.zeros(p)
        for k in range(steps):
            noisy = objective.gradient(theta) + rng.normal(0.0, sigma, p)
            theta = bound.over.project(theta - factor * usual * (1 - k / steps) * noisy / n)
        found.append((objective.value(theta) - least) / n)
    return max(0.0, min(found))


def run(
    folder: Path,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    how_many: int = QUESTIONS,
    console: Console | None = None,
) -> Path:
    """Fit, print a table and save the picture; return the picture's path."""
    from rich.console import Console

    screen = console or Console()
    budget = Budget(epsilon, delta)
    screen.print(f"[bold]hedgerow[/] · RAND Health Insurance Experiment · regressions · ε = {epsilon:g}, δ = {delta:g}")
    with screen.status("learning a private hypothesis of the data"):
        data = Table(path(), universe())
        session = open_session(data, universe=universe(), budget=budget)
    with screen.status("an analyst selects features, one model after another"):
        made = fits(session, data, how_many)
    excess = np.array([fit.excess for fit in made])
    screen.print(_table(made))
    screen.print(
        f"{len(made):,} adaptively chosen models · mean excess risk {excess.mean():.5f} · worst {excess.max():.4f}\n"
        f"spent {session.spent:.4g} of {budget.total:.4g} {budget.currency}: "
        f"(ε = {epsilon:g}, δ = {delta:g}) for everything above, however many models follow"
    )
    with screen.status("the same models with the budget split between them"):
        picture = _picture(folder, session, data, made)
    screen.print(f"picture: {picture}")
    return picture


def _table(made: list[Fit]) -> Any:
    """Return a table of some of the models."""
    from rich.table import Table

    table = Table(title="some of the models (true excess risk is shown because this table is public)")
    for column in ("model", "error bound", "true excess risk"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for fit in made[:: max(1, len(made) // 12)][:12]:
        bar = "none" if fit.answer.error is None else f"{fit.answer.error:.3f}"
        table.add_row(repr(fit.query), bar, f"{fit.excess:.5f}")
    return table


def _picture(folder: Path, session: Session, data: DataSource, made: list[Fit]) -> Path:
    """Plot mean and worst excess risk after k models, for the session and for descent with 1/k of the budget each."""
    extra("matplotlib").use("Agg")
    plt = extra("matplotlib.pyplot")

    rng, excess = Noise().generator(), np.array([fit.excess for fit in made])
    ks = [k for k in (1, 3, 10, 30, 100, 300, 1000) if k <= len(made)]
    some = [made[i].query for i in np.unique(np.linspace(0, len(made) - 1, 16).astype(int))]
    split = [[alone(session, data, query, 1 / k, rng) for query in some] for k in ks]
    along = np.unique(np.geomspace(1, len(made), 60).astype(int))
    figure, axes = plt.subplots(figsize=(7, 4.2))
    axes.plot(ks, [max(risks) for risks in split], color="tab:red", linestyle="--", label="the budget split, worst")
    axes.plot(ks, [float(np.mean(risks)) for risks in split], color="tab:red", label="the budget split, mean")
    axes.plot(
        along, [excess[:k].max() for k in along], color="tab:green", linestyle="--", label="hedgerow, worst so far"
    )
    axes.plot(along, [excess[:k].mean() for k in along], color="tab:green", label="hedgerow, mean so far")
    axes.set(
        xscale="log", yscale="log", xlabel="regressions and classifiers fitted", ylabel="excess risk", ylim=(1e-5, None)
    )
    axes.set_title(f"one budget, ε = {session.budget.epsilon:g}, δ = {session.budget.delta:g}")
    axes.legend(frameon=False, fontsize=9)
    axes.grid(alpha=0.25, which="both")
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "excess-risk-by-models.png"
    figure.savefig(target, dpi=150)
    plt.close(figure)
    return target
