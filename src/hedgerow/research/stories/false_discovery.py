"""The classic false discovery: features without information, a search that trusts them, and a holdout that does not.

After Dwork et al., *The reusable holdout* (Science 2015): labels are coin flips, and so is every feature. An analyst
asks how often each feature agrees with the label, keeps those that look best on the test set, and lets them vote. No
vote is better than a coin flip.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._extras import extra
from hedgerow._progress import show_bar
from hedgerow.errors import BudgetExceeded
from hedgerow.generalise.holdout import Holdout, Score
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.noise import Noise

if TYPE_CHECKING:
    from rich.console import Console

VOTERS = (20, 50, 100, 200, 500)  # numbers of features that vote
TRUTH = 0.5  # the true accuracy of every classifier

Coins = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Discovery:
    """The claimed accuracy of each vote: by the test set itself, by the training set, and by the holdout.

    ``scores`` is shorter than ``voters`` if the holdout's rounds ended before the questions did.
    """

    voters: tuple[int, ...]
    naive: tuple[float, ...]
    training: tuple[float, ...]
    scores: tuple[Score, ...]
    holdout: Holdout


def coins(rows: int, features: int, rng: np.random.Generator) -> tuple[Coins, Coins]:
    """Return independent features and labels, all ±1; features are stored column by column in memory."""
    bits = rng.integers(0, 2, (features, rows), dtype=np.int8)
    return (2 * bits - 1).T, 2 * rng.integers(0, 2, rows, dtype=np.int8) - 1


def false_discovery(
    rows: int,
    features: int,
    budget: Budget,
    rng: np.random.Generator,
    *,
    rounds: int = 5,
    voters: tuple[int, ...] = VOTERS,
    progress: bool | None = False,
) -> Discovery:
    """Run the same analyst twice on the same data: asking the test set itself, and asking a holdout of it."""
    train, test = coins(rows, features, rng), coins(rows, features, rng)
    on_train, on_test = (np.array([np.mean(X[:, j] == y) for j in range(features)]) for X, y in (train, test))
    agree = np.flatnonzero((on_train > TRUTH) == (on_test > TRUTH))
    naive = [accuracy(vote(best_of(on_test, agree, k), on_test), test) for k in voters]

    held = Holdout(test, budget, train=train, rounds=rounds, questions=features)
    answers = np.full(features, TRUTH)
    with show_bar("asking the holdout", features, progress) as advance, suppress(BudgetExceeded):
        for j in range(features):
            answers[j] = held.score(lambda X, j=j: X[:, j], name=f"feature {j}").value
            advance()
    answered = np.arange(len(held.scores))
    votes = [vote(best_of(answers, answered, k), answers) for k in voters]
    scores: list[Score] = []
    with suppress(BudgetExceeded):
        for k, model in zip(voters, votes, strict=True):
            scores.append(held.score(model, name=f"vote of {k}"))
    training = tuple(accuracy(model, train) for model in votes)
    return Discovery(voters, tuple(naive), training, tuple(scores), held)


def best_of(means: NDArray[Any], among: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the k features whose means are furthest from a coin flip."""
    chosen: NDArray[Any] = among[np.argsort(-np.abs(means[among] - TRUTH))[:k]]
    return chosen


def vote(chosen: NDArray[Any], means: NDArray[Any]) -> Any:
    """Return a classifier: the majority of the chosen features, each on the side of its mean."""
    sides = np.where(means[chosen] > TRUTH, 1.0, -1.0)
    return lambda X: np.where(X[:, chosen] @ sides > 0, 1, -1)


def accuracy(model: Any, rows: tuple[Coins, Coins]) -> float:
    """Return the share of rows that the model labels correctly."""
    X, y = rows
    return float(np.mean(model(X) == y))


def run(
    folder: Path, *, epsilon: float = 1.0, rows: int = 5000, features: int = 5000, console: Console | None = None
) -> Path:
    """Search, print a table and save the picture; return the picture's path."""
    from rich.console import Console
    from rich.table import Table

    screen = console or Console()
    budget = Budget(epsilon, 0.0)
    screen.print(
        f"[bold]hedgerow[/] · {features:,} features that are coins · "
        f"{rows:,} rows to train on, {rows:,} held out · ε = {epsilon:g}"
    )
    found = false_discovery(rows, features, budget, Noise().generator(), progress=screen.is_terminal)
    table = Table(title="what is claimed for a vote of the best features, where the truth is 50 %")
    for column in (
        "features",
        "test set, asked directly",
        "training set",
        "holdout",
        "for the population",
        "answered by",
    ):
        table.add_column(column, justify="right")
    said: list[tuple[str, ...]] = [
        (f"{score.value:.1%}", f"{score.low:.1%} … {score.high:.1%}", score.source) for score in found.scores
    ]
    said += [("–", "–", "–")] * (len(found.voters) - len(said))
    for k, naive, training, words in zip(found.voters, found.naive, found.training, said, strict=True):
        table.add_row(str(k), f"{naive:.1%}", f"{training:.1%}", *words)
    screen.print(table)
    held = found.holdout
    unasked = features + len(found.voters) - len(held.scores)
    if unasked:
        screen.print(f"its {held.plan.rounds} rounds ended before the questions did: {unasked:,} were not answered")
    wrong = sum(score.source == "holdout" for score in held.scores)
    screen.print(
        f"{len(held.scores):,} questions · {wrong} of them measured, the rest explained by the training set · "
        f"spent {held.ledger.spent:.3g} of {budget.total:g} {budget.currency} · "
        f"intervals hold for all of them together with {1 - held.plan.beta:.0%}"
    )
    picture = draw(
        found, folder / "false-discovery.png", f"{rows:,} rows, {features:,} features that say nothing, ε = {epsilon:g}"
    )
    screen.print(f"picture: {picture}")
    return picture


def draw(found: Discovery, target: Path, title: str) -> Path:
    """Plot the claimed accuracy by the number of features that vote."""
    extra("matplotlib").use("Agg")
    plt = extra("matplotlib.pyplot")

    k = found.voters[: len(found.scores)]
    figure, axes = plt.subplots(figsize=(7, 4.2))
    axes.plot(found.voters, found.naive, color="tab:red", marker="o", label="test set, asked directly")
    axes.plot(found.voters, found.training, color="tab:gray", marker="o", linestyle="--", label="training set")
    axes.plot(k, [score.value for score in found.scores], color="tab:green", marker="o", label="holdout")
    axes.fill_between(
        k, [s.low for s in found.scores], [s.high for s in found.scores], color="tab:green", alpha=0.15, label="its interval for the population"
    )  # fmt: skip
    axes.axhline(TRUTH, color="black", linewidth=1, label="truth")
    axes.set(xscale="log", xlabel="features that vote", ylabel="claimed accuracy", title=title)
    axes.set_xticks(found.voters, [str(k) for k in found.voters])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=9)
    axes.grid(alpha=0.25)
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=150)
    plt.close(figure)
    return target
