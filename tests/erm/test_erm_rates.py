"""Table 1: every row grows as the paper says."""

from __future__ import annotations

import dataclasses
import math

import pytest

from hedgerow.erm import rates as table
from hedgerow.erm.rates import TABLE, Setting
from hedgerow.errors import InvalidInput

BASE = Setting(rows=10**6, features=100, epsilon=0.5, delta=1e-8, vertices=200, strong_convexity=0.1)


def growth(bound, field: str, factor: float = 4.0, setting: Setting = BASE) -> float:
    """The exponent with which the bound grows in one field."""
    more = dataclasses.replace(setting, **{field: type(getattr(setting, field))(getattr(setting, field) * factor)})
    return math.log(bound(more) / bound(setting)) / math.log(factor)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.assumption}, {row.method}, {row.side}")
def test_every_bound_is_positive_and_shrinks_with_the_rows(row) -> None:
    assert row.bound(BASE) > 0
    assert growth(row.bound, "rows") < 0


@pytest.mark.parametrize(
    "bound, exponent",
    [
        (table.noisy_gradient_descent, -1),
        (table.mirror_descent, -1),
        (table.objective_perturbation, -1),
        (table.objective_perturbation_earlier, -1),
        (table.strongly_convex, -2),
        (table.frank_wolfe_smooth, -2 / 3),
        (table.lipschitz_lower, -1),
    ],
)
def test_the_exponent_of_the_rows(bound, exponent) -> None:
    assert growth(bound, "rows") == pytest.approx(exponent)


@pytest.mark.parametrize("bound", [table.frank_wolfe, table.lasso, table.lasso_lower])
def test_the_lasso_shrinks_like_rows_to_the_minus_two_thirds_up_to_logarithms(bound) -> None:
    assert growth(bound, "rows", 1000) == pytest.approx(-2 / 3, abs=0.08)


def test_few_vertices_free_mirror_descent_of_the_dimension() -> None:
    many = dataclasses.replace(BASE, vertices=math.inf)
    assert growth(table.mirror_descent, "features", setting=many) == pytest.approx(0.5)
    assert growth(table.mirror_descent, "features", setting=dataclasses.replace(BASE, vertices=8)) == 0


def test_bounds_scale_with_the_units_of_the_loss() -> None:
    """A loss three times as large has three times the risk."""
    larger = dataclasses.replace(BASE, lipschitz=3.0, smoothness=3.0, strong_convexity=0.3)
    for row in TABLE:
        if row.assumption != "lasso":
            assert row.bound(larger) == pytest.approx(3 * row.bound(BASE))


def test_every_row_says_from_which_side_it_bounds_under_what_assumption() -> None:
    assert {row.side for row in TABLE} == {"upper", "lower"}
    assert {row.assumption for row in TABLE} == {"lipschitz", "smooth", "strongly convex", "l1-lipschitz", "lasso"}
    assert all((row.method == "any") == (row.side == "lower") for row in TABLE)


def test_a_width_stands_for_the_dimension() -> None:
    narrow = dataclasses.replace(BASE, vertices=math.inf, width=2.0)
    assert growth(table.objective_perturbation, "features", setting=narrow) == 0


def test_a_width_counts_for_mirror_descent_together_with_the_range_of_its_potential() -> None:
    """Theorem 3.2 is L·G_C·√(range of Ψ)·√ln(1/δ)/(εn), never more than the Euclidean potential's L·R·√p."""
    free = dataclasses.replace(BASE, vertices=math.inf)
    euclid = table.mirror_descent(free)
    assert table.mirror_descent(dataclasses.replace(free, width=2.0)) == euclid
    whole = dataclasses.replace(free, width=2.0, potential_range=4.0)
    unit = math.sqrt(math.log(1 / free.delta)) / (free.epsilon * free.rows)
    assert table.mirror_descent(whole) == pytest.approx(4.0 * unit)
    assert growth(table.mirror_descent, "potential_range", 2.0, whole) == pytest.approx(0.5)
    assert table.mirror_descent(dataclasses.replace(whole, potential_range=1e6)) == euclid
    few = dataclasses.replace(BASE, vertices=50, width=1.5)
    assert table.mirror_descent(few) == pytest.approx(1.5 * math.sqrt(math.log(50)) * unit)


def test_the_lasso_is_theorem_5_5_on_the_unit_l1_ball() -> None:
    ball = dataclasses.replace(BASE, vertices=2 * BASE.features)
    assert table.lasso(ball) == pytest.approx(table.frank_wolfe(ball))


def test_a_bound_names_the_parameters_that_it_lacks() -> None:
    with pytest.raises(InvalidInput, match="strong_convexity"):
        table.strongly_convex(dataclasses.replace(BASE, strong_convexity=None))
    with pytest.raises(InvalidInput, match="delta"):
        dataclasses.replace(BASE, delta=0.0)
    for name in ("rows", "radius", "curvature", "strong_convexity", "width", "potential_range"):
        for wrong in (0.0, -1.0, math.nan):
            with pytest.raises(InvalidInput, match=name.replace("_", " ").capitalize()):
                dataclasses.replace(BASE, **{name: wrong})
