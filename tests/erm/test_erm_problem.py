"""The shared parts of every solver: refusals that say nothing about rows, clipping, exact sums, and payment."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from preparing import prepared
from scipy.stats import norm as normal

from hedgerow import erm, errors, losses
from hedgerow.convex import sets
from hedgerow.privacy import events
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_delta, gaussian_mu
from hedgerow.privacy.ledger import Accountant

BUDGET = Budget(1.0, 1e-6)
BALL = sets.L2Ball(2.0)
SECRET = 0.123456


def table(n: int = 50, p: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, p)), rng.integers(0, 2, n)


def problem(X, y, loss=losses.Logistic(), over=BALL, budget=BUDGET, **choices):
    """As a solver sees it: with the slope of its loss, which not all can do without."""
    allowance = Allowance.of(budget, choices.pop("spend", None))
    found = prepared(X, y, loss, over, allowance.budget, **choices)
    assert found.slope_bound > 0
    return found


def with_secret(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X[7, 1] = SECRET
    return X


X, Y = table()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (X, Y[:-1], "y must have one label for each row"),
        (X, X, "y must have one label for each row"),
        (X[:, 0], Y, "X must be a table"),
        (X[:, :0], Y, "X must be a table"),
        (X.tolist(), Y, "X must be an array, a frame or a sparse matrix"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_without_a_number_of_rows(X, y, message) -> None:
    with pytest.raises(errors.InvalidInput, match=message) as refusal:
        problem(X, y)
    assert "50" not in str(refusal.value) and "49" not in str(refusal.value)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"row_bound": 0.0}, "row_bound must be"),
        ({"norm": "l3"}, "norm must be 'l2' or 'linf'"),
        ({"expected_rows": 50}, "rows must be left out"),
        ({"budget": Budget(1, 1e-6, "add-remove")}, "rows must be a public guess"),
        ({"budget": 1.0}, "budget must be a Budget or an Accountant"),
        ({"over": sets.Simplex(), "loss": "logistic"}, "loss must be a hedgerow loss"),
        ({"over": sets.NuclearBall(1.0, (2, 2))}, "dimension must be 4"),
        ({"over": sets.Unconstrained(), "loss": losses.Squared()}, "slope of the loss must be bounded"),
        ({"loss": losses.MultinomialLogistic(classes=2)}, "one score per row"),
        ({"spend": 0.1}, "spend must be left out"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(choices, message) -> None:
    with pytest.raises(errors.InvalidInput, match=message):
        problem(X, Y, **choices)


def test_no_repr_shows_a_row() -> None:
    assert str(SECRET) not in repr(problem(with_secret(X), Y))


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("scale", [1.0, 1e200], ids=["plain", "huge"])
def test_rows_beyond_the_bound_are_clipped_and_rows_within_it_are_kept(wrap, scale) -> None:
    rows = np.array([[3.0, 4.0], [0.3, -0.4], [0.0, 0.0]]) * np.array([[scale], [1.0], [1.0]])
    l2 = problem(wrap(rows), np.array([0, 1, 1]))
    seen = l2.X.toarray() if sp.issparse(l2.X) else l2.X
    assert np.allclose(seen * l2.unit, [[0.6, 0.8], [0.3, -0.4], [0, 0]], atol=1e-5)
    assert (np.linalg.norm(seen * l2.unit, axis=1) <= 1).all()
    cut = problem(wrap(rows), np.array([0, 1, 1]), norm="linf", row_bound=0.35)
    seen = cut.X.toarray() if sp.issparse(cut.X) else cut.X
    assert np.allclose(seen * cut.unit, [[0.35, 0.35], [0.3, -0.35], [0, 0]], atol=1e-5)


def test_targets_are_clipped_to_their_bound() -> None:
    assert problem(X, np.full(50, 9.0), loss=losses.Squared(), label_bound=2.0).y.max() == 2.0


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared(), losses.Hinge()], ids=lambda v: type(v).__name__)
def test_the_gradient_is_that_of_the_loss_and_its_sum_is_exact(loss) -> None:
    data = problem(X, Y, loss=loss)
    θ = np.array([0.3, -0.7, 0.2])
    rows = data.X * data.unit
    expected = rows.T @ loss.derivative(rows @ θ, data.y)
    assert np.allclose(data.gradient(θ), expected, atol=1e-3)
    backwards = problem(X[::-1], Y[::-1], loss=loss)
    assert (data.gradient(θ) == backwards.gradient(θ)).all()  # no rounding, so no order
    assert np.allclose(data.gradient(θ), problem(sp.csr_array(X), Y, loss=loss).gradient(θ), atol=1e-6)


def test_one_row_moves_the_sum_of_gradients_by_no_more_than_the_sensitivity_and_some_row_moves_it_as_far() -> None:
    base = np.vstack([np.zeros((20, 2)), [[1.0, 0.0]]])
    other = np.vstack([np.zeros((20, 2)), [[-1.0, 0.0]]])
    y = np.append(np.zeros(20), 5.0)
    ball = sets.L2Ball(1.0)
    a = prepared(base, y, losses.Huber(), ball, BUDGET, label_bound=5.0)
    b = prepared(other, y, losses.Huber(), ball, BUDGET, label_bound=5.0)
    moved = np.linalg.norm(a.gradient(np.zeros(2)) - b.gradient(np.zeros(2)))
    assert moved == pytest.approx(BUDGET.gradient(a.lipschitz), rel=1e-4)
    assert moved <= Allowance.of(BUDGET).fine_gaussian(a.gradient_change, 2).sensitivity


@pytest.mark.parametrize("n", [2, 50, 4097])
def test_sums_over_all_rows_of_features_times_slopes_are_exact_in_float64(n) -> None:
    """Whole steps: the larger of both, once for each row, is below 2^53. So a sum does not depend on the order of its rows."""
    found = prepared(*table(n), losses.Logistic(), BALL, BUDGET)
    assert n * 2 ** (found.bits + found.slope_bits) * 2 > 2**52 and n * 2 ** (found.bits + found.slope_bits) <= 2**53
    assert 0 <= found.slope_bits - found.bits <= 1


@pytest.mark.parametrize(("ε", "δ"), [(0.1, 1e-6), (1.0, 1e-6), (5.0, 1e-9), (0.01, 1e-2)])
def test_the_analytic_gaussian_meets_delta_and_hardly_more_noise_than_needed(ε, δ) -> None:
    μ = gaussian_mu(ε, δ)
    profile = normal.cdf(μ / 2 - ε / μ) - math.exp(ε) * normal.cdf(-μ / 2 - ε / μ)
    assert profile == pytest.approx(δ, rel=1e-4) and gaussian_delta(μ, ε) <= δ
    assert gaussian_delta(1.0001 * μ, ε) > δ


def test_a_whole_budget_buys_less_noise_than_the_same_budget_through_an_accountant() -> None:
    whole, shared = Allowance.of(BUDGET), Allowance.of(Accountant(BUDGET))
    assert shared.mu == pytest.approx(math.sqrt(2 * BUDGET.total))
    assert 1.02 < whole.mu / shared.mu < 1.3


def test_a_budget_pays_once_and_only_for_what_it_certifies() -> None:
    allowance = Allowance.of(BUDGET)
    event = allowance.fine_gaussian(2.0, values=5, steps=10)
    assert event.sigma == pytest.approx(2.0 * math.sqrt(10) / allowance.mu, rel=1e-5)
    assert 0.999 < allowance.charge(*[event] * 10).cost <= 1.0
    with pytest.raises(errors.BudgetExceeded, match="charged once"):
        allowance.charge(event)
    with pytest.raises(errors.BudgetExceeded):
        Allowance.of(BUDGET).charge(*[event] * 14)


def test_a_quote_buys_the_same_when_the_allowance_is_spent() -> None:
    for payer in (BUDGET, Accountant(BUDGET, slack=5e-7)):
        allowance = Allowance.of(payer)
        quote, mu, step = allowance.quote(), allowance.mu, allowance.approximate()
        allowance.charge(allowance.fine_gaussian(2.0, values=5))
        assert (quote.mu, quote.approximate()) == (mu, step)
        assert not hasattr(quote, "charge")


def test_an_accountant_is_charged_every_event_in_its_currency_and_all_of_its_share() -> None:
    accountant = Accountant(BUDGET)
    allowance = Allowance.of(accountant, spend=accountant.remaining / 2)
    event = allowance.fine_gaussian(2.0, values=5, steps=10)
    assert allowance.charge(*[event] * 10).cost == pytest.approx(BUDGET.total / 2)
    assert accountant.events == (event,) * 10
    with pytest.raises(errors.BudgetExceeded, match="spend must be at most"):
        Allowance.of(accountant, spend=BUDGET.total)


def test_a_refused_list_of_events_charges_nothing() -> None:
    accountant = Accountant(BUDGET)
    with pytest.raises(errors.BudgetExceeded):
        Allowance.of(accountant).charge(*[events.Gaussian(1.0, 10.0)] * 1000)
    assert accountant.spent == 0


def test_an_approximate_step_needs_slack_and_uses_it_up() -> None:
    with pytest.raises(errors.BudgetExceeded, match="must have slack"):
        Allowance.of(Accountant(BUDGET)).approximate()
    accountant = Accountant(BUDGET, slack=5e-7)
    event = events.ApproximateDP(*Allowance.of(accountant).approximate())
    assert event.delta == 5e-7 and event.rho == pytest.approx(BUDGET.rho(5e-7))
    Allowance.of(accountant).charge(event)
    assert accountant.slack == 0 and accountant.remaining == pytest.approx(0, abs=1e-9)
    assert not accountant.affords(events.ApproximateDP(1e-9, 1e-9))
    with pytest.raises(errors.BudgetExceeded):
        accountant.charge(events.ApproximateDP(1e-9, 1e-9))


def test_a_pure_budget_is_refused_gaussian_noise() -> None:
    with pytest.raises(errors.InvalidInput, match="delta must be above 0"):
        Allowance.of(Budget(1.0, 0.0)).fine_gaussian(1.0, 1)
    with pytest.raises(errors.BudgetExceeded):
        Accountant(Budget(1.0, 0.0)).charge(events.ApproximateDP(0.1, 1e-6))


@pytest.mark.parametrize(("n", "p"), [(1000, 10), (20_000, 100), (50, 5000)])
def test_a_row_that_goes_leaves_the_scores_of_the_others_as_they_were_to_the_last_bit(n, p) -> None:
    """A matrix product fails this, and a last bit decides on which side of a kink a score lies."""
    rng = np.random.default_rng(0)
    X, theta, budget = rng.normal(size=(n, p)), rng.normal(size=p), Budget(1.0, 1e-6, "add-remove")
    whole = problem(X, np.zeros(n), budget=budget, expected_rows=n).scores(theta)
    for gone in (0, n // 2, n - 1):
        left = problem(np.delete(X, gone, 0), np.zeros(n - 1), budget=budget, expected_rows=n).scores(theta)
        assert np.array_equal(left, np.delete(whole, gone))


@pytest.mark.parametrize(
    "choices",
    [
        {"row_bound": 1e-300},
        {"row_bound": 1e300},
        {"over": sets.L2Ball(1e300)},
        {"over": sets.L2Ball(1e-300)},
        {"loss": losses.Squared(), "label_bound": 1e-300},
        {"loss": losses.Squared(), "label_bound": 1e300},
        {"loss": losses.Logistic(ridge=1e-300)},
        {"loss": losses.Logistic(ridge=1e300)},
        {"loss": losses.Huber(1e-300)},
    ],
    ids=str,
)
def test_scales_at_the_ends_of_float64_are_refused(choices) -> None:
    with pytest.raises(errors.InvalidInput, match="Change the units"):
        problem(X, Y, **choices)


NOBODY = {"budget": Budget(1.0, 1e-3, "add-remove"), "expected_rows": 10, "seed": 0}


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "solve",
    [
        lambda X, y: erm.auto(X, y, loss=losses.Logistic(), over=BALL, **NOBODY),
        lambda X, y: erm.mirror_descent(X, y, loss=losses.Hinge(), over=BALL, **NOBODY),
        lambda X, y: erm.noisy_sgd(X, y, loss=losses.Logistic(), over=BALL, **NOBODY),
        lambda X, y: erm.frank_wolfe(X, y, loss=losses.Logistic(), over=sets.L1Ball(1.0), **NOBODY),
        lambda X, y: erm.frank_wolfe_general(X, y, loss=losses.Logistic(), over=BALL, **NOBODY),
        lambda X, y: erm.objective_perturbation(X, y, loss=losses.Logistic(), over=BALL, **NOBODY),
        lambda X, y: erm.output_perturbation(X, y, loss=losses.Logistic(ridge=0.1), over=BALL, **NOBODY),
        lambda X, y: erm.regularised_output_perturbation(X, y, loss=losses.Logistic(), **NOBODY),
        lambda X, y: erm.lasso(X, y, **NOBODY),
    ],
    ids=["auto", "mirror", "sgd", "fw", "fw general", "objective", "output", "regularised", "lasso"],
)
def test_with_a_private_n_an_empty_table_is_fitted_like_any_other(solve, wrap) -> None:
    """An error would tell a table of one row from its neighbour without any."""
    assert np.isfinite(solve(wrap(np.zeros((0, 2))), np.zeros(0)).theta).all()
    with pytest.raises(errors.InvalidInput, match="must have at least one row"):
        problem(np.zeros((0, 2)), np.zeros(0))


@pytest.mark.parametrize("over", [sets.Simplex(), sets.Polytope([[0.5]]), sets.Box(0.3, 0.3)], ids=repr)
@pytest.mark.parametrize("solver", [erm.mirror_descent, erm.noisy_sgd, erm.auto], ids=lambda f: f.__name__)
def test_a_set_of_one_point_gives_that_point(over, solver) -> None:
    found = solver(X[:, :1], Y, loss=losses.Logistic(), over=over, budget=BUDGET, seed=0).theta
    assert np.allclose(found, over.project(np.zeros(1)))
