"""Attacks on convex questions: numbers, arrays, names and functions of the analyst's own classes, and n learned between measurements."""

import warnings

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import losses
from hedgerow.convex.sets import Box, InterpolationBall, L1Ball, L2Ball, Simplex
from hedgerow.convex.solver.excess import excess_of
from hedgerow.data import HistogramSource

UNIVERSE = hr.Universe(y=hr.Flag(), a=hr.Integers(0, 3), c=hr.Categories(["u", "v", "w"]))


def table(rows: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(rows, rng.dirichlet(np.ones(24))).reshape(UNIVERSE.shape)


def opened(counts, **options):
    given = {"budget": hr.Budget(1.0, 1e-6), "workload": [hr.marginal("y")], "guard": 0.05, "reserve": 0.5, **options}
    return hr.open(HistogramSource(UNIVERSE, counts), universe=UNIVERSE, **given)


class Listening(float):
    """A float that hears what it is combined with."""

    heard: list = []  # noqa: RUF012

    def _hear(self, other):
        Listening.heard.append(other)
        return float.__float__(self)

    def __mul__(self, other):
        return Listening(self._hear(other) * other) if isinstance(other, float) else self._hear(other) * other

    def __truediv__(self, other):
        return Listening(self._hear(other) / other)

    def __rsub__(self, other):
        return Listening(other - self._hear(other))

    __rmul__ = __mul__

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [float.__float__(i) if isinstance(i, Listening) else i for i in inputs]
        Listening.heard.append(plain)
        return getattr(ufunc, method)(*plain, **options)


def asked(number):
    logistic = losses.Logistic(target="y", features=["a"])
    return {
        "ridge": hr.minimize(losses.Logistic(target="y", features=["a"], ridge=number(0.1)), L2Ball(1.0)),
        "quantile": hr.minimize(losses.Pinball(number(0.25), target="a", ridge=0.1), Box(-1.0, 1.0)),
        "clip": hr.minimize(losses.Poisson(number(0.25), target="a", features=["y"]), L2Ball(1.0)),
        "alpha": hr.minimize(logistic, InterpolationBall(1.0, number(0.5))),
        "within": hr.minimize(logistic, L2Ball(1.0)),
    }


@pytest.mark.parametrize("which", asked(float))
def test_numbers_of_ones_own_class_hear_nothing(which):
    Listening.heard.clear()
    answer = opened(table(10**5)).ask(asked(Listening)[which], within=Listening(0.2) if which == "within" else 0.2)
    assert answer.error <= 0.2
    assert not Listening.heard


def test_masks_of_ones_own_class_hear_nothing():
    heard = []

    class Mask(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            heard.append(ufunc)
            return getattr(ufunc, method)(*map(np.asarray, inputs), **options)

        def __array_function__(self, func, types, args, kwargs):
            heard.append(func)
            return super().__array_function__(func, types, args, kwargs)

    query = hr.count(a=np.array([True, False, True, False]).view(Mask))
    assert type(query.on(UNIVERSE).vectors[0]) is np.ndarray
    opened(table(10**5), workload=[hr.marginal("c")]).ask(query, within=0.01)
    assert not heard


def test_a_mask_that_says_it_is_of_booleans_counts_no_row_five_times():
    class Lying(np.ndarray):
        dtype = property(lambda self: np.dtype(bool))

    mask = np.array([5.0, 0.0, 0.0, 0.0]).view(Lying)
    try:
        counted = hr.count(a=mask).on(UNIVERSE)
    except hr.InvalidInput:
        return
    assert counted.dot(np.array([10, 0, 0, 0])) <= 10


def test_a_mask_changed_afterwards_is_not_the_one_that_was_asked():
    mask = np.array([True, False, True, False])
    bound = hr.count(a=mask).on(UNIVERSE)
    mask[:] = False
    assert bound.dot(np.array([1, 10, 100, 1000])) == 101


def test_a_number_of_classes_that_lies_changes_no_constant():
    class Few(int):
        def __sub__(self, other):
            return 1e-9

    honest = losses.MultinomialLogistic(3, target="c", features=["y"]).on(UNIVERSE)
    lying = losses.MultinomialLogistic(Few(3), target="c", features=["y"]).on(UNIVERSE)
    assert lying.lipschitz(L2Ball(1.0)) == honest.lipschitz(L2Ball(1.0)) > 1


def test_a_ridge_that_lies_about_its_sign_is_refused():
    class Negative(float):
        def __ge__(self, other):
            return True

    with pytest.raises(hr.InvalidInput, match="ridge must be finite and at least 0"):
        losses.Squared(target="y", ridge=Negative(-5.0))


def test_names_of_ones_own_class_mean_one_thing():
    """A name that is equal to another one later would have the loss minimised for one label and compared for another."""

    class Changing(str):
        __slots__ = ()

        def __eq__(self, other):
            raise AssertionError("asked")

        __hash__ = str.__hash__

    loss = losses.Logistic(
        target=Changing("y"), features=[Changing("a")], interactions=[(Changing("a"), Changing("c"))]
    )
    assert type(loss.target) is str and type(loss.features[0]) is str
    assert loss.on(UNIVERSE).losses(np.zeros(loss.on(UNIVERSE).dimension)).shape == UNIVERSE.shape


def test_functions_that_say_they_are_equal_to_vouched_ones_are_not_vouched():
    seen = []

    class Equal:
        def __init__(self, function):
            self.function = function

        def __eq__(self, other):
            return True

        __hash__ = object.__hash__

        def __call__(self, theta, records):
            seen.append(theta.copy())
            return self.function(theta, records)

    def value(theta, records):
        return 0.5 * (theta[0] - (records["a"] <= 1)) ** 2

    def gradient(theta, records):
        return (theta[0] - (records["a"] <= 1))[:, None]

    constants = {"lipschitz": 1.0, "smoothness": 1.0, "strong_convexity": 1.0}
    vouched = losses.Custom(value, gradient, ("a",), 1, **constants)
    copied = losses.Custom(Equal(value), Equal(gradient), ("a",), 1, **constants)
    session = opened(table(10**5), trusted_losses=[vouched])
    assert session.ask(hr.minimize(vouched, Box(0.0, 1.0)), within=0.2).error <= 0.2
    with pytest.raises(hr.InvalidInput, match="trust"):
        session.ask(hr.minimize(copied, Box(0.0, 1.0)), within=1e-3)


def test_learning_n_between_two_measurements_changes_neither_the_value_nor_its_bill():
    """If n is private, learning it better can change the unit of n·err. The purchase succeeds all the same."""
    loss, over = losses.Logistic(target="y", features=["a"]), L2Ball(3.0)
    risk = loss.on(UNIVERSE)
    budget = hr.Budget(10.0, 1e-6, "add-remove")

    def unit(rows):
        return excess_of(risk, over, np.zeros(risk.dimension), budget, rows, 1e-3).unit

    edge = next(rows for rows in range(600, 2400) if unit(rows) != unit(rows + 1))
    crossed = 0
    for seed in range(40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hr.NotPrivateWarning)
            session = opened(
                table(edge - 30, seed), budget=budget, workload=[hr.marginal("c")], guard=0.0, reserve=0.99, seed=seed
            )
        before = unit(session._engine.knowledge.rows.high)
        session.ask(hr.minimize(loss, over), within=0.1)
        crossed += before != unit(session._engine.knowledge.rows.high)
    assert crossed > 0


@pytest.mark.parametrize("over", [Simplex(1e-9), L1Ball(1e-9)], ids=repr)
def test_a_projection_onto_a_tiny_set_from_far_away_is_in_the_set(over):
    for far in ([1e8, 0.0, 0.0], [1e8, 1e8, 1.0], [3.0, 2.0, 1e12]):
        assert over.contains(over.project(far), 1e-15)
