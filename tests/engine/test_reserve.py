"""The reserve for purchases follows a public rule if the owner does not set it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.engine import LEAST_RESERVE, MOST_RESERVE, RESERVE_OF_UNKNOWN, typical_reserve

UNIVERSE = hr.Universe.from_sizes({"a": 2, "b": 3})


def kept(rows: int, budget: hr.Budget, **options: float) -> float:
    table = HistogramSource(UNIVERSE, np.full((2, 3), rows // 6))
    session = hr.open(table, universe=UNIVERSE, budget=budget, guard=0.0, seed=0, **options)
    return 1 - session.spent / budget.total


@pytest.mark.parametrize("budget", [hr.Budget(1, 1e-6), hr.Budget(1, 0.0)])
def test_it_buys_ten_counts_to_a_hundredth_of_the_rows(budget) -> None:
    rows = 60_000 if budget.delta else 600_000
    share = typical_reserve(budget, rows)
    assert LEAST_RESERVE < share < MOST_RESERVE
    each, within, x = share * budget.total / 10, 0.01 * rows, math.log(2e4)
    deviations = math.sqrt(2 * x) / math.sqrt(2 * each) if budget.delta else x / each
    assert deviations == pytest.approx(within)  # the bar of a count that costs so much
    assert kept(rows, budget) == pytest.approx(share, rel=1e-3)


def test_it_is_between_one_and_five_per_cent() -> None:
    budget = hr.Budget(1, 1e-6)
    assert kept(6_000, budget) == pytest.approx(MOST_RESERVE, rel=1e-3)
    assert kept(6 * 10**7, budget) == pytest.approx(LEAST_RESERVE, rel=1e-3)
    private = hr.Budget(1, 1e-6, neighbours="add-remove")
    for rows in (6_000, 6 * 10**7):  # n is not asked
        assert kept(rows, private) == pytest.approx(RESERVE_OF_UNKNOWN, rel=1e-3)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("rows", [6_000, 6 * 10**7])
def test_a_guard_that_leaves_no_room_for_it_is_refused_before_the_table_is_read(neighbours, rows) -> None:
    """Whatever the rule comes to: as if the owner had asked for the most."""
    budget, table = hr.Budget(1, 1e-6, neighbours=neighbours), HistogramSource(UNIVERSE, np.full((2, 3), rows // 6))
    for guard in (0.475, 0.49):
        with pytest.raises(hr.InvalidInput, match="reserve and guard must be shares"):
            hr.open(table, universe=UNIVERSE, budget=budget, guard=guard, seed=0)
    session = hr.open(table, universe=UNIVERSE, budget=budget, guard=0.49, reserve=0.0, seed=0)
    assert session.spent <= 0.02 * budget.total * (1 + 1e-9)


def test_a_stated_reserve_is_used() -> None:
    assert kept(6 * 10**7, hr.Budget(1, 1e-6), reserve=0.3) == pytest.approx(0.3, rel=1e-3)
    assert kept(6_000, hr.Budget(1, 1e-6), reserve=0.0) == pytest.approx(0.0, abs=1e-6)
