"""A budget in plain words, before it is committed: what it promises to people, and what it buys for those who ask.

No row is read. The number of rows is the owner's word, because where it is private the table must not say it.
"""

from __future__ import annotations

import math
import time
from typing import Any

import hedgerow as hr
from hedgerow.privacy.allowance import advice
from hedgerow.privacy.budget import Budget
from hedgerow.report import plain
from hedgerow.universe.universe import Universe

FACTORS = (0.5, 1.0, 2.0)  # of the chosen ε, whose errors are shown beside each other
SIZES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the stated number of rows
QUICK = 15.0  # seconds of a simulation after which there are no others
LARGEST_EXPONENT = 700.0


def prospect(universe: Universe, budget: Budget, rows: int, opening: float) -> dict[str, Any]:
    """Return what a budget promises and buys, in words and as curves.

    ``opening`` is the share of the budget that the opening spends at most. Errors against ε are those of one simulated
    session each, and that of the chosen one alone where a simulation takes long. Errors against the number of rows are
    scaled from the chosen one, because the noise in a count does not depend on it.
    """
    start = time.perf_counter()
    chosen = _plan(universe, budget, rows, 1.0)
    is_quick = time.perf_counter() - start < QUICK
    made = [
        chosen if factor == 1 else _plan(universe, budget, rows, factor)
        for factor in FACTORS
        if is_quick or factor == 1
    ]
    by_epsilon = [_point(plan, plan.epsilon, rows) for plan in made]
    error, typical = chosen.best.error, chosen.best.typical
    by_rows = [
        {"rows": round(rows * size), "error": _scale(error, size), "typical": _scale(typical, size)} for size in SIZES
    ]
    return plain(  # type: ignore[no-any-return]
        {
            "people": words_for_people(budget),
            "warnings": advice(budget, rows, universe.shape),
            "verdict": chosen.verdict,
            "sentence": chosen.sentence,
            "limit": chosen.limit,
            "opening": opening,
            "cells": universe.size,
            "rows": rows,
            "by_epsilon": by_epsilon,
            "by_rows": by_rows,
            "options": {"columns": list(chosen.columns), "lines": [list(line) for line in chosen.lines]},
        }
    )


def words_for_people(budget: Budget) -> list[str]:
    """Return what ε and δ promise to a person in the table, in sentences without symbols."""
    factor = math.exp(min(budget.epsilon, LARGEST_EXPONENT))
    doubt = 1 / (1 + factor)
    found = [
        "Whatever is asked, the odds of anything that somebody concludes about one person change by a factor of at "
        f"most {_write(factor)}, because that person is in the table.",
        "A guess that was even, 50 : 50, can become "
        f"{f'at most {_percent(doubt)} % sure' if doubt > 1e-9 else 'a certainty'}.",
    ]
    if budget.delta > 0:
        found.append(
            f"Besides, the probability of any conclusion may change by another {budget.delta:g}, that is once in "
            f"{_write(1 / budget.delta)} tables."
        )
    kind = (
        "The number of rows is public: people are compared with somebody else in their place."
        if budget.neighbours == "replace"
        else "The number of rows is private, too: people are compared with not being in the table at all."
    )
    return [*found, kind]


def _write(number: float) -> str:
    """Write a factor with three digits, rounded up: in full up to ten thousand million."""
    digits = 2 - math.floor(math.log10(number))
    shown = math.ceil(round(number * 10.0**digits, 6)) / 10.0**digits if digits > -300 else number
    return f"{shown:.{max(digits, 0)}f}" if shown < 100 else f"{shown:,.0f}" if shown < 1e10 else f"{shown:.1e}"


def _percent(doubt: float) -> str:
    """Write 100 % minus a doubt, rounded up, with enough digits to show the difference from 100 %."""
    places = max(1, 1 - math.floor(math.log10(100 * doubt)))
    return f"{100 - math.floor(100 * doubt * 10**places) / 10**places:.{places}f}"


def _plan(universe: Universe, budget: Budget, rows: int, factor: float) -> Any:
    return hr.plan(
        universe=universe, budget=hr.Budget(budget.epsilon * factor, budget.delta, budget.neighbours), rows=rows,
        progress=False,
    )  # fmt: skip


def _point(plan: Any, epsilon: float, rows: int) -> dict[str, Any]:
    error = plan.best.error
    group = None if error is None or error >= 0.5 else math.ceil(2 * error * rows)
    return {"epsilon": epsilon, "error": error, "typical": plan.best.typical, "group": group}


def _scale(error: float | None, size: float) -> float | None:
    return None if error is None else min(1.0, error / size)
