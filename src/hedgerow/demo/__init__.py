"""The demo: thousands of questions about real people under one budget, on data that ship with the package.

The table is the RAND Health Insurance Experiment (public domain), 20,190 person-years; README.md beside it says how its
columns were derived. It is public, which is why the demo may show true values and true errors at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.bench import unsafe_answer
from hedgerow.data import Table
from hedgerow.opening import open as open_session
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.questions.attributes import Categories, Flag, Range
from hedgerow.questions.counts import Query, count
from hedgerow.questions.universe import Universe
from hedgerow.session import Session

QUESTIONS = 5000


def path() -> Path:
    """The bundled table."""
    return Path(str(files("hedgerow.demo") / "rand_hie.parquet"))


def universe() -> Universe:
    """Public bins, from the published design of the experiment."""
    return Universe(
        visits=Range(edges=[0, 1, 2, 3, 4, 6, 9, 15, 80], values=[0, 1, 2, 3, 4.5, 7, 11, 20]),
        coinsurance=Categories([0, 25, 50, 95, 100]),
        individual_deductible=Flag(),
        incentive=Range(edges=[0, 1, 150, 450, 750, 1300]),
        expense_limit=Range(edges=[0, 1, 450, 1000, 2000, 4001]),
        physical_limitation=Range(edges=[0, 0.5, 1], values=[0, 1]),
        chronic_diseases=Range(edges=[0, 5, 10, 12, 15, 20, 60]),
        health=Categories(["excellent", "good", "fair", "poor"]),
    )


def questions(how_many: int, rng: np.random.Generator) -> Iterator[Query]:
    """Random conjunctions of one to three attributes: intervals of bins, or sets of categories."""
    declared = universe()
    for _ in range(how_many):
        predicates: dict[str, Any] = {}
        for name in rng.choice(declared.names, size=rng.integers(1, 4), replace=False):
            attribute = declared[str(name)]
            if attribute.ordered and attribute.values is not None:
                low, high = sorted(rng.integers(0, attribute.size, 2))
                predicates[str(name)] = (float(attribute.values[low]), float(attribute.values[high]))
            else:
                predicates[str(name)] = attribute.labels[rng.integers(attribute.size)]
        yield count(predicates)


def run(folder: Path, *, epsilon: float = 1.0, delta: float = 1e-6, how_many: int = QUESTIONS) -> Path:
    """Ask, print a table and save the picture; returns its path."""
    from rich.console import Console

    console = Console()
    budget = Budget(epsilon, delta)
    console.print(
        f"[bold]hedgerow[/] · RAND Health Insurance Experiment · {universe().size:,} cells · ε = {epsilon:g}, δ = {delta:g}"
    )
    with console.status("learning a private hypothesis of the data"):
        data = Table(path(), universe())
        session = open_session(data, universe=universe(), budget=budget, queries=how_many)
    asked = list(questions(how_many, Noise().generator()))
    answers = session.ask_all(asked, progress=True)
    truth = np.array([unsafe_answer(data, query) for query in asked])
    values = np.array([answer.value for answer in answers])
    console.print(_table(asked, answers, truth))
    covered = np.mean(
        [abs(a.value - t) <= (1.0 if a.error is None else a.error) for a, t in zip(answers, truth, strict=True)]
    )
    console.print(
        f"{how_many:,} questions · mean error {np.abs(values - truth).mean():.4%} · worst {np.abs(values - truth).max():.3%} · "
        f"{covered:.1%} inside their error bars\n"
        f"spent {session.spent:.4g} of {budget.total:.4g} {budget.currency}: (ε = {epsilon:g}, δ = {delta:g}) for everything above, "
        "however many questions follow"
    )
    picture = _picture(folder, session, np.abs(values - truth), truth)
    console.print(f"picture: {picture}")
    return picture


def _table(asked: list[Query], answers: list[Any], truth: np.ndarray[Any, Any]) -> Any:
    from rich.table import Table

    table = Table(title="a dozen of the answers (the truth is shown because this table is public)")
    for column in ("question", "private answer", "error bar", "truth"):
        table.add_column(column, justify="left" if column == "question" else "right")
    for query, answer, true in list(zip(asked, answers, truth, strict=True))[:12]:
        bar = "none" if answer.error is None else f"± {answer.error:.2%}"
        table.add_row(repr(query), f"{answer.value:.3%}", bar, f"{true:.3%}")
    return table


def _picture(folder: Path, session: Session, errors: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> Path:
    """Mean and largest error after k questions: the session's, and that of noise on every answer at the same budget."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    ks = np.unique(np.geomspace(10, len(errors), 25).astype(int))
    noise, rows = Noise(), session.rows
    noisy_mean, noisy_max = [], []
    for k in ks:
        event = Amount.share_of(session.budget).gaussian(float(np.sqrt(k)) * session.budget.linear())
        drawn = noise.add(np.round(truth[:k] * rows), Accountant(session.budget).charge(event, why="all counts"))
        off = np.abs(np.asarray(drawn) / rows - truth[:k])
        noisy_mean.append(off.mean())
        noisy_max.append(off.max())
    figure, axes = plt.subplots(figsize=(7, 4.2))
    axes.plot(ks, noisy_max, color="tab:red", linestyle="--", label="noise on every answer, worst")
    axes.plot(ks, noisy_mean, color="tab:red", label="noise on every answer, mean")
    axes.plot(ks, [errors[:k].max() for k in ks], color="tab:green", linestyle="--", label="hedgerow, worst")
    axes.plot(ks, [errors[:k].mean() for k in ks], color="tab:green", label="hedgerow, mean")
    axes.set(xscale="log", yscale="log", xlabel="questions asked", ylabel="error (fraction of the table)")
    axes.set_title(f"one budget, ε = {session.budget.epsilon:g}, δ = {session.budget.delta:g}")
    axes.legend(frameon=False, fontsize=9)
    axes.grid(alpha=0.25, which="both")
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "error-by-questions.png"
    figure.savefig(target, dpi=150)
    plt.close(figure)
    return target
