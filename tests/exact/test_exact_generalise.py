"""The reusable holdout, held to its sensitivity (``neighbouring``): rows of every awkward value among them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from neighbouring import BUDGETS, Case, hold

from hedgerow.generalise import metrics
from hedgerow.generalise.holdout import MEASUREMENT, ROUND, Holdout
from hedgerow.privacy.budget import Budget

REPLACED = {kind: budget for kind, budget in BUDGETS.items() if budget.neighbours == "replace"}
TRAIN = (np.arange(40.0)[:, None] % 3, np.arange(40.0) % 2)
ABOVE = (False, True, False, False, True, True)


def rows(**changed: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Twelve rows; ``r3=(x, y)`` has other values in the third."""
    X, y = np.arange(12.0)[:, None] % 4, np.arange(12.0) % 2
    for name, (x, target) in changed.items():
        X[int(name[1:]), 0], y[int(name[1:])] = x, target
    return X, y


def ask_everything(held: Holdout) -> Any:
    """Comparisons, of which the third, fifth and sixth end a round, and a measurement outright."""
    model = lambda X: X[:, 0]  # noqa: E731
    told = [held.score(model), held.score(model, guess=0.9), held.score(model, "zero_one_loss")]
    told += [held.mean(lambda X, y: X[:, 0] - y), held.score(model, metrics.squared_error(2.0), guess=0.1)]
    told += [held.measure(model), held.measure(model, "absolute_error")]
    told += [held.score(model, lambda y, p: np.sqrt(p) * 0.5 + 0.5 * (y == p), by_row=True, guess=0.0)]
    return told, repr(held), held.plan, held.exhausted, held.leaderboard("accuracy").to_dict()


def asked(budget: Budget) -> Case:
    def run(table: Any, ledger: Any, noise: Any) -> Any:
        held = Holdout(table, budget, train=TRAIN, ledger=ledger, rounds=4, threshold=0.25)
        held._noise = noise
        return ask_everything(held)

    whole = rows()
    values = (1.0, 0.0, 2.0, np.nan, np.inf, -np.inf, -5.0, 1e300)
    pairs = [(whole, rows(**{f"r{i}": (x, y)})) for i in (0, 3) for x in values for y in (0.0, 1.0)]
    hostile = rows(r1=(np.nan, np.nan), r2=(np.inf, 0.0), r5=(-1.0, 7.0))
    pairs += [(hostile, rows(r1=(0.0, 0.0), r2=(np.inf, 0.0), r5=(-1.0, 7.0)))]
    sites = frozenset({"generalise.holdout:Holdout._open_round", "generalise.holdout:Holdout._measure"})
    return Case(
        run, budget, pairs, rows(r0=(9.0, 9.0), r4=(np.nan, 1.0), r7=(-3.0, 0.0)), sites, {ROUND: 0.9, MEASUREMENT: 0.9},
        guard=lambda: iter(ABOVE),
    )  # fmt: skip


CASES: dict[str, Callable[[], Case]] = {f"holdout, {kind}": functools.partial(asked, b) for kind, b in REPLACED.items()}


@pytest.mark.parametrize("name", CASES)
def test_one_row_moves_what_is_drawn_from_by_its_sensitivity_and_nothing_else_at_all(name: str) -> None:
    hold(CASES[name]())
