"""The values of a row decide its own part alone: not whether a call succeeds, nor how other rows are read or added."""

from __future__ import annotations

import datetime
import math
import warnings
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from preparing import prepared
from scipy.optimize import minimize

from hedgerow import erm, errors, losses
from hedgerow.convex import sets
from hedgerow.erm.exact_sums import exact_row_products, exact_sum
from hedgerow.erm.solvers import minimum as minima
from hedgerow.erm.solvers.whitened_descent import label_event, label_size, metric_of, plan_noise
from hedgerow.erm.values import as_number, labels, matrix
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget

BUDGET, UNKNOWN_N = Budget(1.0, 1e-3), Budget(1.0, 1e-3, "add-remove")
BALL, HUGE = sets.L2Ball(2.0), float(np.finfo(float).max)
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 3)), RNG.integers(0, 2, 20).astype(float)


@pytest.fixture(autouse=True)
def nothing_is_warned_about():
    """Nor raised, where a caller asks numpy to."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", errors.NotPrivateWarning)
        warnings.simplefilter(
            "ignore", errors.UnaccountedWarning
        )  # at the second fit of the process, whatever its rows
        yield


def problem(X: Any, y: Any, loss: Any = losses.Logistic(), over: Any = BALL, **choices: Any) -> Any:
    return prepared(X, y, loss, over, choices.pop("budget", BUDGET), **choices)


# Every value is a number by itself


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (2, 2.0), (True, 1.0), (np.bool_(False), 0.0), (np.float32(0.5), 0.5), (Fraction(1, 4), 0.25),
        (Decimal("1.5"), 1.5), (10**400, math.inf), (-(10**400), -math.inf), ("2.5", 2.5), (b" 3 ", 3.0),
        ("1e400", math.inf), ("True", 1.0), ("(2+1j)", 2.0), (3 + 4j, 3.0), (np.complex64(1j), 0.0),
        (None, None), (pd.NA, None), (pd.NaT, None), ("red", None), ("", None), (math.nan, None), ([1], None),
        (Decimal("sNaN"), None), (np.datetime64("2020-01-01"), None), (np.timedelta64(5, "s"), None),
        (datetime.date(2020, 1, 1), None), (SimpleNamespace(), None), (np.array(3.0), None),
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_is_the_number_it_is_or_spells_and_else_missing(value, number) -> None:
    assert math.isnan(as_number(value)) if number is None else as_number(value) == number


class BrokenNumber(float):
    def __float__(self) -> float:
        raise RuntimeError("a secret")


def test_a_number_that_breaks_is_missing() -> None:
    assert math.isnan(as_number(BrokenNumber(1.0)))


STRANGE = [
    math.nan, math.inf, -math.inf, 1e308, 5e-324, "red", "7", None, pd.NA, 1j, 10**400, Decimal("NaN"), [1, 2], {},
    np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01"), True, np.longdouble("1e400"), SimpleNamespace(), b"\xff",
]  # fmt: skip


def mixed(value: Any) -> np.ndarray:
    """The table with the value in one cell, as an array of objects."""
    table = X.astype(object)
    table[7, 1] = value
    return table


@pytest.mark.parametrize("value", STRANGE, ids=repr)
def test_a_strange_value_leaves_other_rows_as_they_were(value) -> None:
    plain, others = problem(X, Y).X, np.arange(20) != 7
    tables: list[Any] = [mixed(value), pd.DataFrame(mixed(value)), pd.DataFrame(mixed(value)).convert_dtypes()]
    for table in tables:
        assert np.array_equal(problem(table, Y).X[others], plain[others])
    targets = Y.astype(object)
    targets[7] = value
    for y in (targets, list(targets), pd.Series(targets)):
        assert np.array_equal(problem(X, y).y[others], Y[others])


def test_the_type_that_one_value_gives_an_array_leaves_other_rows_as_they_were() -> None:
    plain, others = problem(X, Y).X, np.arange(20) != 7
    text = X.astype("U32")
    text[7, 0] = "red"
    masked = np.ma.masked_array(X, mask=np.zeros(X.shape))
    masked[7] = np.ma.masked
    frame = pd.DataFrame(X, columns=list("abc"))
    nulls = frame.astype("Float64")
    nulls.iloc[7, 0] = pd.NA
    polars = pl.DataFrame({name: frame[name].to_list() for name in frame})
    named = polars.with_columns(pl.Series("b", [*map(str, X[:7, 1]), "red", *map(str, X[8:, 1])]))
    gap = polars.with_columns(pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise(pl.col("a")).alias("a"))
    for table in (
        text,
        X.astype(complex),
        X.astype(np.longdouble),
        masked,
        nulls,
        polars,
        named,
        gap,
        np.asfortranarray(X),
    ):
        assert np.array_equal(problem(table, Y).X[others], plain[others])


def test_booleans_whole_numbers_and_dates_are_read_alike_whatever_type_a_neighbour_gives_them() -> None:
    for column in ([True, False], [1, 2**60 + 1], list(pd.to_datetime(["2020-01-01", "2021-01-01"]))):
        alone, beside = pd.DataFrame({"a": column}), pd.DataFrame({"a": [*column, "red"]})
        assert np.array_equal(matrix(alone), matrix(beside)[:2])
        assert np.array_equal(labels(alone["a"]), labels(beside["a"])[:2])


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda columns: pl.DataFrame(columns, strict=False), pa.table])
def test_a_column_of_a_frame_is_read_alike_whatever_types_the_others_have(frame) -> None:
    """numpy finds no common type for whole numbers with a gap and dates, and one row makes the gap."""
    columns: dict[str, list[Any]] = {
        "number": [1.5, 2.5], "whole": [2**60 + 1, 2], "gap": [1, None], "flag": [True, False], "unsure": [True, None],
        "text": ["1.5", "red"], "day": [datetime.date(2020, 1, 1)] * 2, "time": [datetime.datetime(2020, 1, 1)] * 2,
        "span": [datetime.timedelta(1)] * 2, "decimal": [Decimal("1.5"), None], "bytes": [b"1", b"x"], "list": [[1], [2]],
        "struct": [{"a": 1}, {"a": 2}],
    }  # fmt: skip
    for name, values in columns.items():
        alone = matrix(frame({name: values}))[:, 0]
        for other in columns.keys() - {name}:
            assert np.array_equal(matrix(frame({name: values, other: columns[other]}))[:, 0], alone)


@pytest.mark.parametrize("wrap", [np.asarray, np.asfortranarray, sp.csr_array, sp.coo_array, sp.csc_array])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_rows_without_end_are_clipped_along_their_infinite_entries(wrap, norm) -> None:
    rows = np.array(
        [[np.inf, -np.inf, 3.0], [np.nan, 0.5, np.nan], [1e308, 1e308, 1e308], [5e-324, 0, 0], [np.inf] * 3]
    )
    seen = problem(wrap(rows), np.zeros(5), norm=norm)
    clipped = (seen.X.toarray() if sp.issparse(seen.X) else seen.X) * seen.unit
    side = math.sqrt(0.5) if norm == "l2" else 1.0
    assert np.allclose(clipped[0], [side, -side, 0.0 if norm == "l2" else 1.0], atol=1e-5)
    assert np.allclose(clipped[1], [0, 0.5, 0], atol=1e-5)
    lengths = np.linalg.norm(clipped, axis=1, ord=2 if norm == "l2" else np.inf)
    assert np.isfinite(clipped).all() and (lengths <= 1).all()


def test_an_entry_of_a_sparse_matrix_that_is_stored_in_parts_is_read_as_their_sum() -> None:
    row, column = np.array([0, 0, 1, 0, 1, 1]), np.array([1, 1, 0, 1, 2, 2])
    parts = np.array([0.75, 0.75, 0.0, -1.0, np.inf, np.inf])
    expected = np.array([[0.0, 0.5, 0.0], [0.0, 0.0, HUGE]])
    coo = sp.coo_array((parts, (row, column)), shape=(2, 3))
    order = np.argsort(row, kind="stable")
    csr = sp.csr_array((parts[order], column[order], [0, 3, 6]), shape=(2, 3))
    stale = csr.copy()
    stale.has_canonical_format = True  # as one who changes indices in place may leave it
    for stored in (coo, csr, stale, coo.tolil(), csr.tocsc()):
        read = matrix(stored)
        assert np.array_equal(read.toarray(), expected) and read.nnz <= 3
    assert csr.nnz == 6  # the caller's own is as it was


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_caller_s_own_table_is_as_it_was(norm) -> None:
    """Zeros that are stored, or made by cutting, are dropped from a copy."""
    rows = np.array([[5e-324, 1.0], [math.nan, 2.0], [0.0, 1e-30]])
    for table in (rows.copy(), np.asfortranarray(rows), sp.csr_array(rows), sp.csr_array(rows).astype(np.longdouble)):
        before = table.copy()
        first, second = (problem(table, np.zeros(3), norm=norm).gradient(np.ones(2)) for _ in range(2))
        parts = ("data", "indices", "indptr") if sp.issparse(table) else ("T",)
        assert all(np.array_equal(getattr(table, part), getattr(before, part), equal_nan=True) for part in parts)
        assert np.array_equal(first, second)


def test_a_row_that_goes_leaves_even_a_single_other_as_it_was_to_the_last_bit_whatever_the_order_in_memory() -> None:
    for p in (3, 17, 100):
        rows, theta = RNG.normal(size=(2, p)), RNG.normal(size=p)
        both = problem(np.asfortranarray(rows), [0, 1], budget=UNKNOWN_N, expected_rows=2)
        one = problem(np.asfortranarray(rows[1:]), [1], budget=UNKNOWN_N, expected_rows=2)
        assert np.array_equal(both.X[1:], one.X)
        assert np.array_equal(both.scores(theta)[1:], one.scores(theta))


# No solver hears of what a row holds

AWKWARD = {
    "missing": ([math.nan] * 3, math.nan),
    "infinite": ([math.inf, -math.inf, 1.0], -math.inf),
    "huge": ([1e308, -1e308, 1e308], 1e308),
    "tiny": ([5e-324, 1e-300, 0.0], 5e-324),
    "zero": ([0.0] * 3, -0.0),
    "label 2": ([1.0, 2.0, 3.0], 2.0),
    "label −1": ([1.0, 2.0, 3.0], -1.0),
}
SOLVERS: dict[str, Any] = {
    "auto": lambda X, y, **k: erm.auto(X, y, loss=losses.Logistic(), over=BALL, **k),
    "auto in theory": lambda X, y, **k: erm.auto(X, y, loss=losses.Squared(), over=BALL, profile="theory", **k),
    "mirror descent": lambda X, y, **k: erm.mirror_descent(X, y, loss=losses.Poisson(), over=BALL, iterations=5, **k),
    "whitened descent": lambda X, y, **k: erm.whitened_descent(X, y, loss=losses.Squared(), iterations=5, **k),
    "noisy SGD": lambda X, y, **k: erm.noisy_sgd(X, y, loss=losses.Hinge(), over=BALL, epochs=2, **k),
    "Frank–Wolfe": lambda X, y, **k: erm.frank_wolfe(X, y, loss=losses.Huber(), over=sets.L1Ball(1.0), **k),
    "general": lambda X, y, **k: erm.frank_wolfe_general(X, y, loss=losses.Logistic(), over=BALL, **k),
    "objective": lambda X, y, **k: erm.objective_perturbation(X, y, loss=losses.Poisson(), over=BALL, **k),
    "output": lambda X, y, **k: erm.output_perturbation(X, y, loss=losses.Squared(ridge=0.1), over=BALL, **k),
    "regularised": lambda X, y, **k: erm.regularised_output_perturbation(X, y, loss=losses.Logistic(), **k),
    "lasso": lambda X, y, **k: erm.lasso(X, y, **k),
    "lasso by theory": lambda X, y, **k: erm.lasso(X, y, refit=False, **k),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array, pd.DataFrame, lambda X: X.astype(object)])
def test_a_table_with_any_row_is_solved_like_its_neighbour(solver, wrap) -> None:
    for budget in (BUDGET, UNKNOWN_N):
        stated = {"budget": budget, "seed": 0} | ({} if budget is BUDGET else {"expected_rows": 20})
        plain = SOLVERS[solver](wrap(X), Y, **stated)
        tables = []
        for row, label in AWKWARD.values():
            tables.append((np.vstack([row, X[1:]]), np.append(label, Y[1:])))
        if budget is UNKNOWN_N:
            tables += [(X[:0], Y[:0]), (X[:1], Y[:1])]
        for rows, y in tables:
            found = SOLVERS[solver](wrap(rows), y, **stated)
            assert found.events == plain.events and found.cost == plain.cost
            assert (found.theta.dtype, found.theta.shape) == (plain.theta.dtype, plain.theta.shape)
            assert np.isfinite(found.theta).all() and found.iterations == plain.iterations


ESTIMATORS: dict[str, dict[str, Any]] = {
    "LogisticRegression": {"classes": [0, 1]},
    "LinearSVC": {"classes": [0, 1, 2]},
    "LinearRegression": {},
    "Ridge": {},
    "Lasso": {},
    "HuberRegressor": {},
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_fits_a_table_with_any_row_or_none_like_its_neighbour(name) -> None:
    pytest.importorskip("sklearn")
    for wrap in (np.asarray, sp.csr_array, pd.DataFrame):
        for row, label in AWKWARD.values():
            model = getattr(erm, name)(BUDGET, random_state=0, **ESTIMATORS[name])
            model.fit(wrap(np.vstack([row, X[1:]])), np.append(label, Y[1:]))
            assert model.n_features_in_ == 3 and np.isfinite(model.coef_).all()
        for n in (0, 1):
            few = getattr(erm, name)(UNKNOWN_N, expected_rows=20, random_state=0, **ESTIMATORS[name]).fit(
                wrap(X[:n]), Y[:n]
            )
            assert few.coef_.shape == model.coef_.shape
    with pytest.raises(errors.InvalidInput, match="must have at least one row"):
        getattr(erm, name)(BUDGET, **ESTIMATORS[name]).fit(X[:0], Y[:0])


@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC"])
def test_a_label_that_is_no_stated_class_is_of_the_first_one(name) -> None:
    pytest.importorskip("sklearn")

    def coefficients(y: Any, classes: Any) -> np.ndarray:
        return getattr(erm, name)(BUDGET, classes=classes, random_state=0).fit(X, y).coef_

    colours = np.array(["blue", "green", "red"])[np.arange(20) % 3]
    known = coefficients(np.where(np.arange(20) == 7, "blue", colours), ["red", "green", "blue"])
    for stranger in ("violet", None, math.nan, 3, [1]):
        y = colours.astype(object)
        y[7] = stranger
        for given in (y, list(y), pd.Series(y)):
            assert np.array_equal(coefficients(given, ["red", "green", "blue"]), known)
    numbers = coefficients(np.where(np.arange(20) == 7, 0, Y), [0, 1])
    for y in (Y.astype(int).astype(str), Y.astype(object), Y.astype(bool).astype(object), Y.astype(complex)):
        strange = np.array(y)
        strange[7] = "red" if strange.dtype.kind in "UO" else math.nan
        assert np.array_equal(coefficients(strange, [0, 1]), numbers)


# Sums are exact, however many rows there are


def whole_table(n: int, p: int, bits: int) -> np.ndarray:
    return RNG.integers(-(2**bits), 2**bits, (n, p), endpoint=True).astype(float)


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array, sp.csc_array], ids=["dense", "csr", "csc"])
@pytest.mark.parametrize(
    ("n", "bits", "more"), [(0, 24, 25), (1, 24, 52), (100, 24, 25), (5000, 24, 25), (5000, 5, 49)]
)
def test_sums_of_whole_numbers_are_those_of_whole_numbers(wrap, n, bits, more) -> None:
    X, v = whole_table(n, 3, bits), whole_table(n, 1, more)[:, 0]
    exact = [sum(int(a) * int(b) for a, b in zip(column, v, strict=True)) for column in X.T]
    assert exact_sum(wrap(X), v, bits, more).tolist() == [float(total) for total in exact]
    exact_pairs = [[float(sum(int(a) * int(b) for a, b in zip(c, d, strict=True))) for d in X.T] for c in X.T]
    assert exact_sum(wrap(X), wrap(X), bits, bits).tolist() == exact_pairs


def test_blocks_of_rows_add_up_to_whole_numbers_too() -> None:
    """A room of one bit leaves 2^4 rows to a block."""
    X, v = whole_table(100, 2, 48), whole_table(100, 1, 3)[:, 0]
    exact = [float(sum(int(a) * int(b) for a, b in zip(column, v, strict=True))) for column in X.T]
    assert exact_sum(X, v, 48, 3).tolist() == exact


def test_products_of_rows_are_right_to_the_last_bit_where_terms_cancel() -> None:
    X, theta = whole_table(200, 40, 20), RNG.normal(size=40) * 10.0 ** RNG.integers(-12, 3, 40)
    exact = [float(sum(Fraction(a) * Fraction(b) for a, b in zip(row, theta, strict=True))) for row in X.tolist()]
    assert np.allclose(exact_row_products(X, theta, 20), exact, rtol=2.0**-52, atol=0)
    assert np.array_equal(exact_row_products(X, np.zeros(40), 20), np.zeros(200))


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_with_thousands_of_times_the_guessed_rows_sums_are_exact_and_cut(wrap) -> None:
    n = 20_000
    rows, y = RNG.normal(size=(n, 3)), RNG.normal(size=n)
    rows[1::2], y[1::2] = -rows[::2], y[::2]  # sums small enough that nothing is cut
    few = problem(wrap(rows), y, losses.Huber(), budget=UNKNOWN_N, expected_rows=1)
    slopes = few.loss.derivative(few.scores(np.zeros(3)), few.y)
    whole = [[int(v) for v in np.trunc(slopes / few.slope_unit)], few.X.toarray() if sp.issparse(few.X) else few.X]
    exact = [sum(s * int(x) for s, x in zip(whole[0], column, strict=True)) for column in whole[1].T]
    assert few.gradient(np.zeros(3)).tolist() == [float(total) * few.unit * few.slope_unit for total in exact]
    backwards = problem(wrap(rows[::-1]), y[::-1], losses.Huber(), budget=UNKNOWN_N, expected_rows=1)
    assert np.array_equal(few.gradient(np.ones(3)), backwards.gradient(np.ones(3)))
    alike = problem(wrap(np.ones((n, 3))), np.ones(n), losses.Huber(), budget=UNKNOWN_N, expected_rows=1)
    assert np.abs(alike.gradient(np.zeros(3))).max() <= 8 * alike.lipschitz_l1


class Silent:
    """Releases what it is given, without noise."""

    def add(self, value: Any) -> Any:
        self.value = np.array(value)
        return value


def test_one_row_among_thousands_of_times_as_many_as_guessed_moves_moments_and_sizes_by_what_is_billed() -> None:
    rows, y = RNG.normal(size=(9000, 3)), RNG.normal(size=9000)
    seen = []
    for kept in (slice(None), slice(1, None)):
        data = problem(rows[kept] / 1e4, y[kept] / 1e2, losses.Huber(2.0), budget=UNKNOWN_N, expected_rows=1)
        silent = Silent()
        amount = Amount.share_of(UNKNOWN_N)
        plan = plan_noise(data, amount, 3, 1.0, adapts=True, iterations=2)
        metric_of(data, plan.moments, silent)
        moments = silent.value
        label_size(data, 1.0, label_event(data, amount, 0.1), silent)
        seen.append((moments, silent.value))
    (M, s), (M2, s2) = seen
    assert np.linalg.norm(M - M2) <= 1 and np.linalg.norm(s - s2) <= math.sqrt(2)
    assert np.allclose(s - s2, [(y[0] / 1e2) ** 2, abs(y[0] / 1e2) ** 3], atol=1e-9)


# Minima come with a proof

SMOOTH = [losses.Logistic(), losses.Huber(0.5), losses.SmoothedHinge(), losses.Poisson(), losses.Squared()]
REGIONS = [sets.Unconstrained(), sets.L2Ball(0.3), sets.L1Ball(0.3), sets.Box(-0.1, 0.2)]


def tilted(loss: Any, over: Any, n: int = 60) -> tuple[Any, float, np.ndarray]:
    rng = np.random.default_rng(1)
    rows, y = rng.normal(size=(n, 4)), rng.normal(size=n)
    inside = over if over.is_bounded or not isinstance(loss, losses.Squared) else sets.L2Ball(100.0)
    return prepared(rows, y, loss, inside, BUDGET), 3.0, rng.normal(size=4)


@pytest.mark.parametrize("over", REGIONS, ids=repr)
@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: type(loss).__name__)
def test_the_distance_that_is_proven_is_never_below_the_true_one(loss, over) -> None:
    data, weight, tilt = tilted(loss, over)
    best = minima.minimum(data, over, weight, tilt, max(1e-9, minima.rounding_distance(data, over, weight)))
    for size in (0.0, 1e-8, 1e-4, 1.0):
        for _ in range(5):
            v = best + size * RNG.normal(size=4)
            point, proven = minima._prove(data, over, weight, tilt, v)
            assert np.linalg.norm(point - best) <= proven + 1e-9


@pytest.mark.parametrize("over", [over for over in REGIONS if over.is_bounded], ids=repr)
@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: type(loss).__name__)
def test_newtons_method_over_a_set_is_as_near_as_asked_by_itself(loss, over) -> None:
    """In its few steps, each a pass over the rows: descent, which would come after it, takes thousands."""
    data, weight, tilt = tilted(loss, over)
    v = minima._newton_over(data, over, weight, tilt, weight * 1e-6 / 8)
    assert minima._prove(data, over, weight, tilt, v)[1] <= 1e-6


@pytest.mark.parametrize("over", REGIONS, ids=repr)
@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: type(loss).__name__)
def test_the_returned_point_is_as_close_as_asked_according_to_another_solver(loss, over) -> None:
    data, weight, tilt = tilted(loss, over)
    rows = data.X * data.unit

    def objective(theta: np.ndarray) -> float:
        return float(loss.value(rows @ theta, data.y).sum() + weight / 2 * theta @ theta + tilt @ theta)

    with np.errstate(all="ignore"):
        if isinstance(over, sets.L1Ball):  # θ = a − b with a, b ≥ 0 is smooth, and the ball a half-space
            split = minimize(
                lambda ab: objective(ab[:4] - ab[4:]), np.full(8, 0.01), bounds=[(0, None)] * 8, method="SLSQP",
                constraints={"type": "ineq", "fun": lambda ab: over.radius - ab.sum()}, options={"ftol": 1e-14, "maxiter": 500},
            )  # fmt: skip
            other = split.x[:4] - split.x[4:]
        else:
            limits = {"type": "ineq", "fun": lambda t: 0.09 - t @ t} if isinstance(over, sets.L2Ball) else ()
            bounds = [(-0.1, 0.2)] * 4 if isinstance(over, sets.Box) else None
            other = minimize(
                objective, np.zeros(4), method="SLSQP", constraints=limits, bounds=bounds,
                options={"ftol": 1e-14, "maxiter": 500},
            ).x  # fmt: skip
    for distance in (1e-1, 1e-3):
        found = minima.minimum(data, over, weight, tilt, distance)
        assert np.linalg.norm(found - other) <= distance + 1e-5


def test_rows_that_are_all_alike_leave_a_minimum_with_a_proof() -> None:
    """A plain sum of so many equal numbers is rounded the same way at every step, by more than the proof allows."""
    data = prepared(np.ones((500_000, 1)), np.ones(500_000), losses.Logistic(), sets.L2Ball(0.1), BUDGET)
    least = minima.rounding_distance(data, data.over, 1.0)
    _, proven = minima._newton_exactly(data, data.over, 1.0, np.zeros(1), np.zeros(1), least)
    assert proven <= least


def test_the_proof_allows_for_rounding_where_the_nearest_point_to_0_is_not_0() -> None:
    data, over = (
        prepared(RNG.normal(size=(20, 3)), np.ones(20), losses.Logistic(), sets.Simplex(1.0), BUDGET),
        sets.Simplex(1.0),
    )
    v, weight = np.zeros(3), 2.0
    point = over.project(v)  # a third, three times: rounded
    slope = minima._gradient(data, point, weight, 0.0, is_exact=True)[0]
    tilt = -(minima._steepest(data, weight) * (v - point) + slope)  # so that `point` is the minimum
    off = minima._projection_slack(data, 20, weight, float(np.linalg.norm(point)))
    slack = minima._slack(data, 20)  # of the slopes, whatever the point
    assert minima._prove(data, over, weight, tilt, v)[1] * weight >= slack + off > slack


@pytest.mark.parametrize("over", REGIONS, ids=repr)
@pytest.mark.parametrize("budget", [BUDGET, UNKNOWN_N], ids=["replace", "add-remove"])
def test_the_least_distance_that_may_be_asked_for_is_reached(budget, over) -> None:
    for n, p in ((1, 1), (50, 4), (400, 10)):
        rng = np.random.default_rng(2)
        rows, y = rng.standard_cauchy((n, p)), rng.standard_cauchy(n)
        choices = {} if budget is BUDGET else {"expected_rows": n}
        for loss in (losses.Logistic(), losses.Huber(0.5)):
            data = prepared(rows, y, loss, over, budget, **choices)
            for weight in (0.1, 1e4):
                least = minima.rounding_distance(data, over, weight)
                found = minima.minimum(data, over, weight, np.zeros(p), least)
                start = found - minima._gradient(data, found, weight, 0.0)[0] / minima._steepest(data, weight)
                again, proven = minima._prove(data, over, weight, np.zeros(p), start)
                assert proven <= 2 * least and np.linalg.norm(found - again) <= 3 * least
