"""Drafts of a universe keep to their sensitivities (``neighbouring``). A table here is the number of times each text occurs."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from neighbouring import BUDGETS, Case, hold

from hedgerow.data.value_counts import ValueCounts
from hedgerow.drafting import kinds, numbers, selection
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant

Texts = dict[str, int]
MIXED: Texts = {"": 5, "3": 9, "-4": 6, "1.5": 7, "100": 8, "2020-02-01": 4, "red": 9}
FAR: Texts = {"": 9, "3": 4, "-4": 8, "1.5": 9, "100": 2, "2020-02-01": 9, "red": 7}
CUTS = np.array([-8.0, -2.0, 0.0, 2.0, 4.0, 64.0, 256.0])


def tally_of(texts: Texts) -> ValueCounts:
    found = Counter(texts)
    return ValueCounts(found, found.pop("", 0))


def neighbours(texts: Texts, budget: Budget) -> list[tuple[Texts, Texts]]:
    """A row of each value has each other value instead, or is gone. No value is new or vanishes: that is δ's part."""
    others: list[str | None] = [*texts] if budget.neighbours == "replace" else [None]
    found = []
    for source in texts:
        for target in others:
            if target != source:
                moved = Counter(texts)
                moved.subtract([source])
                moved.update([] if target is None else [target])
                found.append((texts, dict(moved)))
    return found


def case(run: Callable[[ValueCounts, Any, Any, Amount], Any], site: str, budget: Budget) -> Case:
    return Case(
        lambda texts, ledger, noise: run(tally_of(texts), ledger, noise, Amount(budget, 0.3 * budget.total)),
        budget, neighbours(MIXED, budget), FAR, frozenset({f"drafting.{site}"}),
        ledger=lambda: Accountant(budget, slack=budget.delta / 2),
    )  # fmt: skip


def told(tally: ValueCounts, ledger: Any, noise: Any, amount: Amount) -> Any:
    return selection.common_values(tally, selection.threshold_event(amount, 1e-7), ledger, noise, "values")


def held(tally: ValueCounts, ledger: Any, noise: Any, amount: Amount) -> Any:
    return kinds.most_common_kind(tally, amount.marginal(), ledger, noise, "kinds")


def bounds(tally: ValueCounts, ledger: Any, noise: Any, amount: Amount) -> Any:
    return numbers.bounds(tally.numbers, amount.marginal(), ledger, noise, "bounds")


def ends(tally: ValueCounts, ledger: Any, noise: Any, amount: Amount) -> Any:
    return numbers.ends(tally.numbers, CUTS, 0.1, amount.marginal(), ledger, noise, "ends")


def cut(tally: ValueCounts, ledger: Any, noise: Any, amount: Amount) -> Any:
    event = amount.choice(numbers.quantile_sensitivity(amount.budget, 2, 5))
    return numbers.quantile_cut(tally.numbers, CUTS, 2, 5, event, ledger, noise, "cut")


SITES: dict[str, tuple[Callable[..., Any], str]] = {
    "kinds": (held, "kinds:most_common_kind"),
    "powers of two": (bounds, "numbers:bounds"),
    "ends": (ends, "numbers:ends"),
    "quantile": (cut, "numbers:quantile_cut"),
}
CASES: dict[str, Callable[[], Case]] = {
    f"draft {name}, {kind}": functools.partial(case, run, site, budget)
    for name, (run, site) in SITES.items()
    for kind, budget in BUDGETS.items()
} | {
    f"draft values, {kind}": functools.partial(case, told, "selection:common_values", budget)
    for kind, budget in BUDGETS.items()
    if not budget.pure
}


@pytest.mark.parametrize("name", CASES)
def test_a_draft_moves_by_its_sensitivity_and_no_more(name: str) -> None:
    hold(CASES[name]())
