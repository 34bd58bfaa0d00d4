"""auto: the solver of the least predicted risk, from public quantities."""

from __future__ import annotations

import numpy as np
import pytest
from preparing import prepared

from hedgerow import erm, errors
from hedgerow.convex.sets import L1Ball, L2Ball, Simplex, Unconstrained
from hedgerow.erm.auto import promises as plans
from hedgerow.erm.solvers import SOLVERS
from hedgerow.losses import Absolute, Hinge, Logistic, Squared
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant

BUDGET = Budget(1.0, 1e-6)


def table(n: int = 1000, p: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, p))
    return X, (X[:, 0] > 0).astype(float)


def promises(over, loss, budget=BUDGET, n: int = 1000, p: int = 10, norm="l2") -> dict[str, float]:
    problem = prepared(*table(n, p), loss, over, budget, norm=norm)
    return {plan.solver.name: risk for plan, risk in plans(problem, Allowance.of(budget).quote())}


def test_many_bounded_features_over_an_l1_ball_go_to_frank_wolfe() -> None:
    """ℓ2 norms of such rows grow like √p, which mirror descent pays for and Frank–Wolfe does not."""
    found = promises(L1Ball(1.0), Squared(), n=200, p=20_000, norm="linf")
    assert min(found, key=found.get) == "frank_wolfe"


def test_unit_rows_over_an_l2_ball_go_to_mirror_descent() -> None:
    found = promises(L2Ball(1.0), Logistic(), n=5000)
    assert min(found, key=found.get) == "mirror_descent"


def test_only_solvers_that_can_run_are_named() -> None:
    assert set(promises(L2Ball(1.0), Hinge())) == {"mirror_descent"}
    assert set(promises(L2Ball(1.0), Logistic())) == {"mirror_descent", "frank_wolfe_general"}
    assert set(promises(Simplex(), Logistic(), Budget(1.0, 0.0))) == {"frank_wolfe"}
    assert "output_perturbation" in promises(L2Ball(1.0), Logistic(ridge=0.1))


@pytest.mark.parametrize(
    "over, loss", [(L2Ball(1.0), Logistic()), (L1Ball(1.0), Squared()), (L2Ball(1.0), Logistic(ridge=0.1))]
)
def test_the_promise_of_every_solver_named_is_positive_and_shrinks_with_the_rows(over, loss) -> None:
    few, many = promises(over, loss, n=500), promises(over, loss, n=50_000)
    assert set(few) <= set(SOLVERS)
    assert all(0 < many[name] < few[name] for name in few)


def test_by_theory_it_runs_the_solver_of_the_least_promise() -> None:
    X, y = table()
    for over, loss in ((L2Ball(1.0), Logistic()), (L1Ball(1.0), Logistic())):
        found = promises(over, loss)
        result = erm.auto(X, y, loss=loss, over=over, budget=BUDGET, seed=0, profile="theory")
        assert result.solver == min(found, key=found.get)
        assert result.risk_bound is not None


@pytest.mark.parametrize(
    ("over", "loss", "solver"),
    [
        (L2Ball(1.0), Logistic(), "whitened_descent"),
        (Unconstrained(), Squared(), "whitened_descent"),
        (L2Ball(1.0), Hinge(), "whitened_descent"),
        (L2Ball(1.0), Absolute(), "mirror_descent"),
        (L1Ball(1.0), Logistic(), "mirror_descent"),
    ],
    ids=["classes", "numbers", "hinge", "kinks", "vertices"],
)
def test_in_practice_features_are_whitened_where_that_can_be_done(over, loss, solver) -> None:
    X, y = table()
    assert erm.auto(X, y, loss=loss, over=over, budget=BUDGET, seed=0).solver == solver


def test_many_features_are_not_whitened() -> None:
    X, y = table(50, 501)
    assert erm.auto(X, y, loss=Logistic(), over=L2Ball(1.0), budget=BUDGET, seed=0).solver == "mirror_descent"


def test_an_unknown_profile_is_refused() -> None:
    X, y = table(50)
    with pytest.raises(errors.InvalidInput, match="profile must be"):
        erm.auto(X, y, loss=Logistic(), over=L2Ball(1.0), budget=BUDGET, profile="best")


def test_the_choice_sees_no_row() -> None:
    X, y = table()
    solvers = {
        erm.auto(rows, labels, loss=Logistic(), over=L1Ball(1.0), budget=BUDGET, seed=0).solver
        for rows, labels in ((X, y), (0 * X, 0 * y), (50 * X, 1 - y))
    }
    assert len(solvers) == 1


def test_by_theory_and_without_a_constraint_the_dimension_free_solver_runs() -> None:
    X, y = table()
    found = erm.auto(X, y, loss=Logistic(), over=Unconstrained(), budget=BUDGET, seed=0, profile="theory")
    assert found.solver == "regularised_output_perturbation"


def test_a_pure_budget_without_vertices_is_refused_with_the_way_out() -> None:
    X, y = table(100)
    with pytest.raises(errors.InvalidInput, match="delta"):
        erm.auto(X, y, loss=Logistic(), over=L2Ball(1.0), budget=Budget(1.0, 0.0))


def test_an_accountant_is_charged_once() -> None:
    X, y = table()
    accountant = Accountant(BUDGET)
    found = erm.auto(X, y, loss=Logistic(), over=L2Ball(1.0), budget=accountant, spend=accountant.remaining / 2, seed=0)
    assert accountant.events == found.events
    assert accountant.spent <= accountant.budget.total * 0.5000001


def test_every_name_is_exported() -> None:
    for name in erm.__all__:
        assert getattr(erm, name) is not None
    with pytest.raises(AttributeError):
        erm.no_such_solver  # noqa: B018
