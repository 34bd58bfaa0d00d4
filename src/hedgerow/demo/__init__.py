"""The demo: thousands of questions about real people under one budget, on data that ship with the package.

Further stories are in ``research/stories``.

The table is the RAND Health Insurance Experiment (public domain), 20,190 person-years; README.md beside it describes
how its columns were derived. The table is public, which is why the demo may show true values and true errors at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow._types import Array
from hedgerow.answer import Answer
from hedgerow.data import Table
from hedgerow.demo.association import group_shares, save_picture, story
from hedgerow.demo.line_chart import ChartLine, line_chart
from hedgerow.opening import open as open_session
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.query.counts import Count, Query, count
from hedgerow.session import Session
from hedgerow.universe.attributes import Categories, Flag, Range
from hedgerow.universe.universe import Universe
from hedgerow.unsafe import unsafe_answer

QUESTIONS = 5000  # default number of questions
RED, GREEN = "#d62728", "#2ca02c"  # colors of the lines
NO_VISIT, MANY_VISITS = {"[0, 1)"}, {"[9, 15)", "[15, 80]"}  # bins of ``visits``
LIMITED = {"[0.5, 1]"}  # the bin of ``physical_limitation`` that means a limitation
SHOWN: tuple[Query, ...] = (  # the experiment's own question: do people who pay more see the doctor less?
    count(coinsurance=0),
    count(coinsurance=0, visits=NO_VISIT),
    count(coinsurance=0, visits=MANY_VISITS),
    count(coinsurance=95),
    count(coinsurance=95, visits=NO_VISIT),
    count(coinsurance=95, visits=MANY_VISITS),
    count(health="poor"),
    count(health="poor", visits=MANY_VISITS),
    count(health="excellent", visits=NO_VISIT),
    count(physical_limitation=LIMITED),
    count(physical_limitation=LIMITED, health="excellent"),
    count(individual_deductible=True, coinsurance=0),
)

if TYPE_CHECKING:
    from rich.console import Console


def path() -> Path:
    """Return the path of the bundled table."""
    return Path(str(files("hedgerow.demo") / "rand_hie.parquet"))


def universe() -> Universe:
    """Return the universe of the table: public bins, from the published design of the experiment."""
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
    """Yield random conjunctions of one to three attributes: some neighbouring bins, by their labels, or one category.

    Questions are about whole bins, so that the universe can represent them exactly.
    """
    declared = universe()
    for _ in range(how_many):
        predicates: dict[str, Any] = {}
        for name in rng.choice(declared.names, size=rng.integers(1, 4), replace=False):
            attribute = declared[str(name)]
            if attribute.ordered and attribute.values is not None:
                low, high = sorted(rng.integers(0, attribute.size, 2))
                predicates[str(name)] = set(attribute.labels[low : high + 1])
            else:
                predicates[str(name)] = attribute.labels[int(rng.integers(attribute.size))]
        yield count(predicates)


def run(
    folder: Path,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    how_many: int = QUESTIONS,
    console: Console | None = None,
) -> Path:
    """Ask the questions, print a table and save the picture; return the picture's path."""
    from rich.console import Console

    screen = console or Console()
    budget = Budget(epsilon, delta)
    screen.print(
        f"[bold]hedgerow[/] · RAND Health Insurance Experiment · {universe().size:,} cells · "
        f"ε = {epsilon:g}, δ = {delta:g}"
    )
    with screen.status("learning a private hypothesis of the data"):
        data = Table(path(), universe())
        session = open_session(data, universe=universe(), budget=budget, queries=how_many)
    asked = [*SHOWN, *questions(how_many - len(SHOWN), Noise().generator())][:how_many]
    answers = session.ask_all(asked, progress=screen.is_terminal)
    truth = np.array([unsafe_answer(data, query) for query in asked])
    off = np.abs(np.array([answer.value for answer in answers]) - truth)
    screen.print(_table(asked, answers, truth))
    screen.print(headline(answers, truth, session), highlight=False)
    picture = _picture(folder, session, off, truth)
    shares = group_shares(session, data, NO_VISIT)
    screen.print(story(session, shares), highlight=False)
    screen.print(f"picture: {save_picture(folder, shares)}")
    screen.print(f"picture: {picture}")
    return picture


def headline(answers: list[Answer], truth: Array, session: Session) -> str:
    """Summarize the run: the number of questions, their cost, and the errors of the answers."""
    off = np.array([abs(float(answer) - t) for answer, t in zip(answers, truth, strict=True)])
    inside = np.mean([o <= (1.0 if a.error is None else a.error) for a, o in zip(answers, off, strict=True)])
    widest = max(1.0 if a.error is None else float(a.error) for a in answers)
    within = (
        "each within its guaranteed error" if inside == 1 else f"{inside:.2%} of them within their guaranteed error"
    )
    budget = session.budget
    return (
        f"{len(answers):,} questions about {session.rows:,.0f} person-years cost ε = {budget.epsilon:g} in all, "
        f"and the answers are {off.mean():.2%} off on average and {off.max():.2%} at most, "
        f"{within} (± {widest:.2%} where widest).\n"
        f"Spent {session.spent:.4g} of {budget.total:.4g} {budget.currency}, that is (ε = {budget.epsilon:g}, δ = "
        f"{budget.delta:g}), for everything above, however many questions follow."
    )


def _table(asked: list[Query], answers: list[Answer], truth: Array) -> Any:
    """Return a table of the first answers."""
    from rich.table import Table

    table = Table(title="a dozen of the answers (the truth is shown because this table is public)")
    for column in ("share of the records with …", "private", "guaranteed", "typical", "truth"):
        table.add_column(column, justify="right" if table.columns else "left")
    for query, answer, true in list(zip(asked, answers, truth, strict=True))[: len(SHOWN)]:
        bars = ["unknown" if bar is None else f"± {bar:.2%}" for bar in (answer.error, answer.typical)]
        table.add_row(words(query), f"{answer.value:.2%}", *bars, f"{true:.2%}")
    return table


def words(query: Query) -> str:
    """Write a question in plain words, with neighbouring bins joined to one range."""
    said, declared = [], universe()
    for name, wanted in query.predicates if isinstance(query, Count) else ():
        if isinstance(wanted, set):
            bins = [label for label in declared[name].labels if label in wanted]
            ends = f"{bins[0].partition(',')[0]},{bins[-1].partition(',')[2]}"
            said.append(f"{name} in {ends}")
        else:
            said.append(f"{name} {wanted}")
    return ", ".join(said).replace("_", " ")


def _picture(folder: Path, session: Session, errors: Array, truth: Array) -> Path:
    """Save the chart of errors and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "error-by-questions.svg"
    target.write_text(chart(session.budget, session.rows, errors, truth), "utf-8")
    return target


def chart(budget: Budget, rows: float, errors: Array, truth: Array) -> str:
    """Draw mean and largest error after k questions, for the session and for noise on every answer, as an SVG.

    Both have the same budget.
    """
    ks = [int(k) for k in np.unique(np.geomspace(10, len(errors), 25).astype(int))]
    noise = Noise()
    noisy_mean, noisy_max = [], []
    for k in ks:
        event = Amount.share_of(budget).gaussian(float(np.sqrt(k)) * budget.linear())
        drawn = noise.add(np.round(truth[:k] * rows), Accountant(budget).charge(event, why="all counts"))
        off = np.abs(np.asarray(drawn) / rows - truth[:k])
        noisy_mean.append(off.mean())
        noisy_max.append(off.max())
    lines = [
        ChartLine("noise on every answer, worst", RED, True, ks, noisy_max),
        ChartLine("noise on every answer, mean", RED, False, ks, noisy_mean),
        ChartLine("hedgerow, worst", GREEN, True, ks, [errors[:k].max() for k in ks]),
        ChartLine("hedgerow, mean", GREEN, False, ks, [errors[:k].mean() for k in ks]),
    ]
    title = f"one budget, ε = {budget.epsilon:g}, δ = {budget.delta:g}"
    return line_chart(lines, title=title, x_label="questions asked", y_label="error (fraction of the table)")
