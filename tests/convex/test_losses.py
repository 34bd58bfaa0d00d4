"""Losses: slopes against differences, constants against search, and the broadcast forms against a design matrix."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import qmc

import hedgerow as hr
from hedgerow import losses
from hedgerow.convex.features import Features
from hedgerow.convex.losses import custom
from hedgerow.convex.losses.loss import LOSSES
from hedgerow.convex.sets import Box, L1Ball, L2Ball, Unconstrained
from hedgerow.errors import InvalidInput, TooLarge


def distance(theta, records):
    return np.abs(records["visits"] - 5 * theta[0])


def distance_slope(theta, records):
    return 5 * np.sign(5 * theta[0] - records["visits"])[:, None]


SAMPLES = [  # at least one of each kind
    losses.Squared(),
    losses.Logistic(),
    losses.BoundedLogistic(),
    losses.Hinge(),
    losses.SmoothedHinge(0.4),
    losses.Huber(0.7),
    losses.Absolute(),
    losses.Pinball(0.3),
    losses.Poisson(clip=1.2),
    losses.MultinomialLogistic(),
    losses.Squared(ridge=0.3),
    losses.Logistic(ridge=0.1),
    losses.Custom(distance, distance_slope, attributes=["visits"], dimension=1, lipschitz=5.0),
]
GLM = [loss for loss in SAMPLES if isinstance(loss, losses.Loss)]
SCALAR = [loss for loss in GLM if loss.labels != "class" and not loss.ridge]
KINKED = [loss for loss in SCALAR if not loss.is_smooth]


def named(loss):
    return f"{type(loss).__name__}-{loss.ridge}" if isinstance(loss, losses.Loss) else type(loss).__name__


over_scalar = pytest.mark.parametrize("loss", SCALAR, ids=named)
over_every = pytest.mark.parametrize("loss", SAMPLES, ids=named)

UNIVERSE = hr.Universe(
    age=hr.Range(20, 80, bins=4, other=True),
    region=hr.Categories(["north", "south", "east"], other=True),
    smoker=hr.Flag(),
    visits=hr.Integers(0, 5),
    grade=hr.Categories(["a", "b", "c"]),
    fixed=hr.Categories(["only"]),
)


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def labels_of(loss, rng, count):
    return {
        "binary": rng.integers(0, 2, count).astype(float),
        "count": rng.integers(0, 6, count).astype(float),
        "real": rng.uniform(-1, 1, count),
    }[loss.labels]


def asked(loss, **fields):
    """The same loss, asked about the universe."""
    target = {"binary": "smoker", "class": "grade", "count": "visits", "real": "visits"}[loss.labels]
    return dataclasses.replace(loss, **{"target": target, "features": ("age", "region"), **fields})


def risk_of(loss):
    return (asked(loss) if isinstance(loss, losses.Loss) else loss).on(UNIVERSE)


def test_every_loss_is_under_this_contract():
    public = {getattr(losses, name) for name in losses.__all__} - {losses.Loss}
    assert {type(loss) for loss in SAMPLES} == public, "Add one of it to SAMPLES in tests/convex/test_losses.py."
    own = {kind for kind in LOSSES if kind.__module__.startswith("hedgerow.")}  # not those that other tests register
    assert public == {*own, losses.Custom}, "Decorate it by LOSSES.add, and add its line to losses.py."
    here = {kind for kind in losses.Loss.__subclasses__() if kind.__module__.startswith("hedgerow.convex.losses")}
    assert here <= public, "Add it to losses.py."


@over_scalar
def test_the_derivative_is_the_slope_of_the_value(loss, rng):
    z, y, h = rng.normal(size=500) * 2, labels_of(loss, rng, 500), 1e-6
    slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    assert np.allclose(loss.derivative(z, y), slope, atol=1e-5)


@over_scalar
def test_the_curvature_is_the_slope_of_the_derivative(loss, rng):
    z, y, h = rng.normal(size=500) * 2, labels_of(loss, rng, 500), 1e-6
    slope = (loss.derivative(z + h, y) - loss.derivative(z - h, y)) / (2 * h)
    assert np.mean(np.isclose(loss.curvature(z, y), slope, atol=1e-4)) > 0.99  # corners of φ′ have measure zero
    assert (loss.curvature(z, y) <= loss.smoothness).all()


@over_scalar
def test_a_loss_is_convex_on_random_triples(loss, rng):
    a, b, t = rng.normal(size=2000) * 3, rng.normal(size=2000) * 3, rng.uniform(size=2000)
    y = labels_of(loss, rng, 2000)
    assert (loss.value(t * a + (1 - t) * b, y) <= t * loss.value(a, y) + (1 - t) * loss.value(b, y) + 1e-12).all()


@over_scalar
def test_the_directional_derivative_is_the_one_sided_slope_even_at_kinks(loss):
    y = np.array([0.0, 1.0, 0.0, 1.0])
    kink = {"Hinge": 2 * y - 1, "SmoothedHinge": 2 * y - 1, "Poisson": np.full(4, 1.2)}.get(type(loss).__name__, y)
    h = 2.0**-30
    for z in (kink, kink + 0.25, kink - 0.25):
        for dz in (np.array([1.0, 1.0, -1.0, -1.0]), np.array([-0.5, 2.0, 2.0, -0.5])):
            quotient = (loss.value(z + h * dz, y) - loss.value(z, y)) / h
            assert np.allclose(loss.directional(z, y, dz), quotient, atol=1e-6)


@pytest.mark.parametrize("loss", KINKED, ids=named)
def test_at_a_kink_leaving_it_never_gains_less_than_any_subgradient_says(loss):
    y = np.array([1.0])
    left, right = loss.slopes(y, y)
    assert right > left
    for dz in (np.array([1.0]), np.array([-1.0])):
        assert loss.directional(y, y, dz) == max(left * dz, right * dz)
    assert loss.directional(y + 1e-9, y, np.array([-1.0]), tolerance=1e-8) == -left
    assert loss.directional(y + 1e-9, y, np.array([-1.0])) == -right


@over_scalar
def test_the_lipschitz_constant_bounds_every_slope_and_is_reached(loss, rng):
    y_ends, z_ends = (-1.0, 1.0), (-0.8, 2.0)
    z = np.linspace(*z_ends, 801)[:, None]
    y = {"binary": np.array([0.0, 1.0]), "count": np.linspace(0, 1, 51)}.get(loss.labels, np.linspace(-1, 1, 51))
    slopes = np.abs(np.stack(loss.slopes(z, y)))
    assert slopes.max() == pytest.approx(loss.lipschitz(z_ends, y_ends))


def test_squared_loss_is_not_lipschitz_without_a_bound_and_the_others_are_as_known():
    assert losses.Squared().lipschitz() == math.inf
    assert losses.Squared().lipschitz(2.0, 1.0) == 3.0
    assert losses.Squared().lipschitz((0.0, 1.0), (0.0, 1.0)) == 1.0
    assert losses.Logistic().lipschitz() == 1.0
    assert losses.Hinge().lipschitz() == 1.0
    assert losses.Pinball(0.3).lipschitz() == 0.7
    assert losses.Poisson(clip=2.0).lipschitz(y=3.0) == pytest.approx(math.exp(2))
    assert losses.MultinomialLogistic().lipschitz() == pytest.approx(math.sqrt(2))


def test_multinomial_slopes_and_curvature_match_differences(rng):
    loss, h = losses.MultinomialLogistic(classes=4), 1e-6
    z, y = rng.normal(size=(30, 4)) * 2, rng.integers(0, 4, 30).astype(float)
    for k in range(4):
        step = h * np.eye(4)[k]
        assert np.allclose(
            loss.derivative(z, y)[:, k], (loss.value(z + step, y) - loss.value(z - step, y)) / (2 * h), atol=1e-6
        )
        slope = (loss.derivative(z + step, y) - loss.derivative(z - step, y)) / (2 * h)
        assert np.allclose(loss.curvature(z, y)[:, :, k], slope, atol=1e-6)
    dz = rng.normal(size=(30, 4))
    quotient = (loss.value(z + h * dz, y) - loss.value(z, y)) / h
    assert np.allclose(loss.directional(z, y, dz), quotient, atol=1e-4)
    bounded = np.clip(z, -1, 1)
    assert np.linalg.norm(loss.derivative(bounded, y), axis=1).max() <= loss.lipschitz(1.0)
    assert loss.lipschitz(1.0) < math.sqrt(2)
    assert np.linalg.eigvalsh(loss.curvature(z, y)).max() <= loss.smoothness


def test_two_classes_are_logistic_regression(rng):
    z, y = rng.normal(size=50), rng.integers(0, 2, 50).astype(float)
    two = np.stack([np.zeros(50), z], axis=1)
    assert np.allclose(losses.MultinomialLogistic().value(two, y), losses.Logistic().value(z, y))


# Features


def all_features():
    return Features(
        UNIVERSE,
        ["smoker", "age", "region", "visits"],
        interactions=[("age", "smoker"), ("region", "visits"), ("region", "grade", "smoker")],
        onehot=["visits"],
    )


def test_the_broadcast_predictor_is_the_design_matrix_times_theta(rng):
    features = all_features()
    X = features.design()
    assert X.shape == (math.prod(features.shape), features.dimension) == (X.shape[0], len(features.feature_names))
    theta = rng.normal(size=features.dimension)
    assert np.allclose(features.predictor(theta).ravel(), X @ theta)
    many = rng.normal(size=(features.dimension, 3))
    assert np.allclose(features.predictor(many).reshape(-1, 3), X @ many)


def test_gradients_and_grams_are_marginal_sums(rng):
    features = all_features()
    X = features.design()
    r = rng.normal(size=features.shape)
    assert np.allclose(features.gradient(r), X.T @ r.ravel())
    many = rng.normal(size=(*features.shape, 3))
    assert np.allclose(features.gradient(many), X.T @ many.reshape(-1, 3))
    assert np.allclose(features.gram(r), X.T @ (r.ravel()[:, None] * X))


def test_row_norms_are_bounded_exactly():
    features = all_features()
    X = features.design()
    assert features.row_norm_bound == pytest.approx(np.linalg.norm(X, axis=1).max())
    assert features.row_sup_bound == pytest.approx(np.abs(X).max())


def test_columns_are_numbers_by_public_bounds_flags_and_one_column_per_category():
    features = Features(UNIVERSE, ["age", "smoker", "region"], coding="full")
    assert features.feature_names == (
        "age",
        "smoker",
        "region=north",
        "region=south",
        "region=east",
        "region=(other)",
        "intercept",
    )
    cells = {"age": np.array([0, 3, 4]), "smoker": np.array([0, 1, 1]), "region": np.array([0, 3, 1])}
    assert features.rows(cells).tolist() == [
        [-0.75, 0, 1, 0, 0, 0, 1],
        [0.75, 1, 0, 0, 0, 1, 1],
        [0.0, 1, 0, 1, 0, 0, 1],  # the extra cell of a number stands in the middle
    ]
    assert UNIVERSE["age"].scale == (50.0, 30.0)


def test_beside_an_intercept_a_category_has_no_column_for_its_first_value():
    features = Features(UNIVERSE, ["age", "region"])
    assert features.feature_names == ("age", "region=south", "region=east", "region=(other)", "intercept")
    assert features.references == {"region": "north"}
    cells = {"age": np.array([0, 3]), "region": np.array([0, 3])}
    assert features.rows(cells).tolist() == [[-0.75, 0, 0, 0, 1], [0.75, 0, 0, 1, 1]]
    assert Features(UNIVERSE, ["region"], intercept=False).dimension == 4  # nothing stands for the reference then


@pytest.mark.parametrize(("names", "crossed"), [(["region"], []), (["region", "age"], [("region", "age")]),
                                                (["smoker", "region"], [("smoker", "region")])])  # fmt: skip
def test_reference_columns_span_what_all_columns_span_and_are_independent(names, crossed):
    full, reference = (Features(UNIVERSE, names, interactions=crossed, onehot=["smoker"], coding=c).design() for c in ("full", "reference"))  # fmt: skip
    assert np.linalg.matrix_rank(reference) == reference.shape[1] == np.linalg.matrix_rank(full) < full.shape[1]
    assert np.linalg.matrix_rank(np.hstack([full, reference])) == reference.shape[1]


# Losses bound to a universe


WHERES = [None, hr.count(grade="a", smoker=True), hr.count(age=(40, None)) | hr.count(visits=2)]
ASKED = [(loss, where) for loss in SAMPLES for where in (WHERES if loss in GLM else [None])]


@pytest.mark.parametrize(("loss", "where"), ASKED, ids=[f"{named(loss)}-{where}" for loss, where in ASKED])
def test_the_objective_over_a_marginal_is_the_sum_over_records(loss, where, rng):
    crossed = asked(loss, where=where, interactions=[("age", "region")]) if loss in GLM else loss
    risk = crossed.on(UNIVERSE)
    m = rng.dirichlet(np.ones(math.prod(risk.shape))).reshape(risk.shape)
    objective = risk.objective(m)
    theta, other, h = rng.normal(size=risk.dimension), rng.normal(size=risk.dimension), 1e-6
    assert objective.value(theta) == pytest.approx((m * risk.losses(theta)).sum())
    slope = (objective.value(theta + h * other) - objective.value(theta - h * other)) / (2 * h)
    assert objective.gradient(theta) @ other == pytest.approx(slope, rel=1e-4, abs=1e-7)
    u = risk.directional(theta, theta + other)
    assert (m * u).sum() == pytest.approx(slope, rel=1e-4, abs=1e-7)
    if risk.is_smooth:
        bend = (objective.gradient(theta + h * other) - objective.gradient(theta - h * other)) / (2 * h)
        assert np.allclose(
            objective.hessian(theta) @ other, bend, atol=1e-3 if type(loss).__name__ in "Huber SmoothedHinge" else 1e-5
        )


def test_records_outside_where_cost_nothing(rng):
    risk = losses.Logistic(target="smoker", features=["age"], where=hr.count(grade="b")).on(UNIVERSE)
    assert risk.attributes == ("age", "smoker", "grade")
    each = risk.losses(rng.normal(size=risk.dimension))
    assert (each[:, :, [0, 2]] == 0).all()
    assert (each[:, :, 1] > 0).all()


@pytest.mark.parametrize("over", [L2Ball(1.5), L1Ball(2.0), Box(-0.5, 1.0)], ids=repr)
@over_every
def test_the_constants_hold_at_every_record_and_every_pair_of_parameters(loss, over, rng):
    risk = risk_of(loss)
    p, h = risk.dimension, 1e-6
    thetas = [over.minimize(rng.normal(size=p)) for _ in range(15)] + [
        over.project(rng.normal(size=p)) for _ in range(5)
    ]
    for theta in thetas:
        gradients = np.array(
            [(risk.losses(theta + h * e) - risk.losses(theta - h * e)).ravel() / (2 * h) for e in np.eye(p)]
        )
        assert np.linalg.norm(gradients, axis=0).max() <= risk.lipschitz(over) + 1e-5
        assert np.abs(gradients).max() <= (risk.lipschitz_sup if risk.is_glm else risk.lipschitz)(over) + 1e-5
        for other in thetas[:6]:
            assert np.abs(risk.directional(theta, other)).max() <= risk.scale(over) + 1e-9


def test_the_lipschitz_constant_of_logistic_regression_is_nearly_reached(rng):
    over = L2Ball(5.0)
    risk = losses.Logistic(target="smoker", features=["age", "region"]).on(UNIVERSE)
    row = np.array([0.75, 1.0, 0.0, 0.0, 0.0, 1.0])
    gradient = np.abs(risk.loss.derivative(np.array(row @ over.minimize(-row)), np.array(0.0))) * np.linalg.norm(row)
    assert gradient == pytest.approx(risk.lipschitz(over), rel=1e-9)


def test_a_linear_query_is_the_squared_loss_of_an_intercept():
    """½(θ − q)² over [0, 1]: θ̂ = ⟨q, D̂⟩, err = ½·gap², S = 1, strongly convex with constant 1."""
    risk = losses.Squared(target="smoker").on(UNIVERSE)
    over = Box(0.0, 1.0)
    assert risk.attributes == ("smoker",)
    assert (risk.scale(over), risk.lipschitz(over), risk.strong_convexity(over), risk.smoothness) == (1, 1, 1, 1)
    objective = risk.objective(np.array([0.3, 0.7]))
    assert objective.gradient(np.array([0.7])) == pytest.approx(0.0)
    assert objective.value(np.array([0.5])) - objective.value(np.array([0.7])) == pytest.approx(0.2**2 / 2)


def test_the_ridge_counts_with_the_whole_mass_and_makes_the_loss_strongly_convex(rng):
    risk = losses.Hinge(target="smoker", features=["age"], ridge=0.5).on(UNIVERSE)
    assert risk.strong_convexity(L2Ball(1.0)) == 0.5
    m = rng.integers(0, 9, risk.shape)
    objective = risk.objective(m)
    a, b = rng.normal(size=(2, risk.dimension))
    middle = objective.value((a + b) / 2)
    assert (objective.value(a) + objective.value(b)) / 2 - middle >= m.sum() * 0.5 * ((a - b) @ (a - b)) / 8 - 1e-9


def test_losses_are_values_and_equal_when_written_alike():
    one = losses.Logistic(target="smoker", features=["age"], where=hr.count(grade="a"))
    assert one == losses.Logistic(target="smoker", features=("age",), where=hr.count(grade={"a"}))
    assert len({one, losses.Logistic(target="smoker", features=["age"])}) == 2
    assert losses.Huber(2.0) != losses.Huber(1.0)


def test_a_marginal_never_shows_in_a_repr(rng):
    risk = losses.Squared(target="smoker").on(UNIVERSE)
    assert "0.123" not in repr(risk.objective(np.array([0.123, 0.877])))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: losses.Logistic(target="smokes", features=["age"]).on(UNIVERSE), "Found 'smokes'"),
        (lambda: losses.Logistic(target="smoker", features=["aeg"]).on(UNIVERSE), "Found 'aeg'"),
        (lambda: losses.Logistic(features=["age"]).on(UNIVERSE), "must name its target"),
        (lambda: losses.Logistic(target="fixed", features=["age"]).on(UNIVERSE), "at least two values"),
        (
            lambda: losses.Logistic(target="smoker", features=["age", "smoker"]).on(UNIVERSE),
            "not be among the features",
        ),
        (lambda: losses.Logistic(target="smoker", interactions=[("age", "smoker")]).on(UNIVERSE), "not be among"),
        (lambda: losses.Logistic(target="smoker", intercept=False).on(UNIVERSE), "at least one attribute"),
        (lambda: losses.Logistic(target="smoker", interactions=[("age",)]).on(UNIVERSE), "at least two attributes"),
        (lambda: losses.Logistic(target="smoker", features="age"), r"Write \['age'\]"),
        (lambda: losses.Logistic(target="visits", features=["age"]).on(UNIVERSE), "two values. Found 'visits' with 6"),
        (lambda: losses.Squared(target="region", features=["age"]).on(UNIVERSE), "must be a number"),
        (lambda: losses.Poisson(target="grade", features=["age"]).on(UNIVERSE), "must be a number"),
        (lambda: losses.Poisson(target="t").on(hr.Universe(t=hr.Integers(-2, 2))), "no value below 0"),
        (lambda: losses.MultinomialLogistic(7, target="grade").on(UNIVERSE), "classes must be 3"),
        (lambda: losses.Squared(target="visits", where=hr.mean("age")).on(UNIVERSE), "where must be true or false"),
        (lambda: losses.Squared(target="visits").on(UNIVERSE).lipschitz(Unconstrained()), "bounded set"),
        (lambda: losses.Logistic(target="smoker").on(UNIVERSE).scale(Unconstrained()), "bounded set"),
        (lambda: losses.Logistic(target="smoker", ridge=1.0).on(UNIVERSE).lipschitz(Unconstrained()), "with a ridge"),
        (lambda: losses.Squared(target="visits").on(UNIVERSE).objective(np.ones(3)), "of shape"),
        (lambda: losses.Squared(target="visits").on(UNIVERSE).scale(Box([0.0, 0.0], 1.0)), "dimension must be 2"),
        (lambda: losses.Squared(ridge=-1.0), "ridge must be"),
        (lambda: losses.Squared(ridge=math.nan), "ridge must be"),
        (lambda: losses.Huber(0.0), "width must be a finite number above 0"),
        (lambda: losses.SmoothedHinge(math.nan), "width must be a finite number above 0"),
        (lambda: losses.Pinball(1.0), "strictly between"),
        (lambda: losses.Poisson(math.inf), "clip must be finite"),
        (lambda: losses.MultinomialLogistic(1), "at least 2"),
    ],
)
def test_a_question_that_does_not_make_sense_is_refused_from_public_facts(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()


def test_every_label_has_a_place_and_none_is_refused():
    strange = [0, 1, 2, -3, 0.5, 0.49, math.nan, math.inf]
    assert list(losses.Logistic().as_labels(strange)) == [0, 1, 1, 0, 1, 0, 0, 1]
    assert list(losses.Poisson().as_labels(strange)[:7]) == [0, 1, 2, 0, 0.5, 0.49, 0]
    assert list(losses.Squared().as_labels(strange)[:7]) == [0, 1, 2, -3, 0.5, 0.49, 0]
    assert list(losses.MultinomialLogistic().as_labels(strange)[:7]) == [0, 1, 2, 0, 0, 0, 0]
    for loss in (losses.Squared(), losses.Poisson()):
        assert np.isfinite(loss.as_labels(strange)).all()


def test_a_table_of_very_many_cells_is_no_limit_but_parameters_are():
    wide = hr.Universe({f"a{i}": hr.Integers(0, 9999) for i in range(10)})
    names = [f"a{i}" for i in range(1, 10)]
    assert not losses.Squared(target="a0", features=names).on(wide).is_listable
    with pytest.raises(TooLarge, match="fewer features"):
        losses.Squared(target="a0", features=names, onehot=names).on(wide)


def test_a_lipschitz_loss_needs_no_bounded_set_for_its_gradients():
    risk = losses.Logistic(target="smoker", features=["age"]).on(UNIVERSE)
    assert risk.lipschitz(Unconstrained()) == pytest.approx(math.sqrt(1 + 0.75**2))


# A user's own loss


def own(**changes):
    fields = {"value": distance, "gradient": distance_slope, "attributes": ["visits"], "dimension": 1, "lipschitz": 5.0}
    return losses.Custom(**{**fields, **changes})


def test_a_sound_loss_of_ones_own_passes_the_check_and_behaves_like_the_shipped_one():
    over = Box(0.0, 1.0)
    own().check(UNIVERSE, over)
    risk = own().on(UNIVERSE)
    assert risk.scale(over) == 5.0
    u = risk.directional(np.array([0.4]), np.array([1.0]))  # a kink at visits = 2
    assert np.allclose(u, [3, 3, 3, -3, -3, -3], atol=1e-8)
    down = risk.directional(np.array([0.4]), np.array([0.0]))
    assert np.allclose(down, [-2, -2, 2, 2, 2, 2], atol=1e-8)
    m = np.arange(6) / 15
    assert risk.objective(m).value(np.array([0.5])) == pytest.approx((m * risk.losses(np.array([0.5]))).sum())
    assert risk.objective(m).gradient(np.array([0.5])) == pytest.approx(5 * (m[:3].sum() - m[3:].sum()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"value": lambda t, r: -np.abs(r["visits"] - 5 * t[0]), "gradient": lambda t, r: -distance_slope(t, r)},
            "convex",
        ),
        ({"gradient": lambda t, r: -distance_slope(t, r)}, "subgradient"),
        ({"lipschitz": 4.0}, "lipschitz = 4. Found 5"),
        ({"scale": 3.0}, "scale = 3"),
        ({"strong_convexity": 1.0}, "strong_convexity"),
        ({"gradient": lambda t, r: np.full((6, 1), np.nan)}, "gradient of a loss must be finite"),
        ({"value": lambda t, r: np.log(r["visits"] - 1)}, "value of a loss must be finite"),
        ({"gradient": lambda t, r: distance_slope(t, r)[:, 0]}, "must have shape"),
        ({"attributes": ["visit"]}, "Found 'visit'"),
        ({"attributes": []}, "at least one name"),
        ({"lipschitz": math.inf}, "lipschitz must be a finite number above 0"),
        ({"dimension": 0}, "dimension must be"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_a_loss_that_is_not_what_it_claims_is_refused(changes, said):
    with pytest.raises(InvalidInput, match=said):
        own(**changes).check(UNIVERSE, Box(0.0, 1.0))


def test_a_loss_of_ones_own_without_a_scale_needs_a_bounded_set():
    with pytest.raises(InvalidInput, match="bounded set"):
        own().on(UNIVERSE).scale(Unconstrained())


def test_on_data_a_gradient_beyond_its_declared_norm_is_clipped_without_a_word():
    risk = own(lipschitz=2.0).on(UNIVERSE)
    assert risk.objective(np.eye(6)[5]).gradient(np.array([0.0])) == pytest.approx(-2.0)
    broken = own(gradient=lambda t, r: np.full((6, 1), np.nan)).on(UNIVERSE)
    assert broken.objective(np.ones(6)).gradient(np.array([0.0])) == 0.0


def test_the_check_reads_labels_and_missing_values_as_documented():
    seen = {}

    def value(theta, records):
        seen.update(records)
        return (records["region"] == "south") * theta[0] ** 2

    loss = losses.Custom(
        value,
        lambda t, r: ((r["region"] == "south") * 2 * t[0])[:, None],
        attributes=["age", "region"],
        dimension=1,
        lipschitz=2.0,
        smoothness=2.0,
    )
    loss.check(UNIVERSE, Box(0.0, 1.0))
    assert set(seen["region"]) == {"north", "south", "east", "(other)"}
    assert np.isnan(seen["age"]).sum() == 4
    assert np.isclose(loss.on(UNIVERSE).directional(np.array([1.0]), np.array([0.0])).min(), -2.0)


@pytest.mark.parametrize("z", [-3.0, -0.5, 0.0, 0.7, 4.0])
def test_the_bounded_logistic_loss_has_its_minimum_at_the_log_odds_at_half_the_slope(z) -> None:
    p, loss = 1 / (1 + math.exp(-z)), losses.BoundedLogistic()
    zero, one = (float(loss.derivative(np.array(z), np.array(y))) for y in (0.0, 1.0))
    assert p * one + (1 - p) * zero == pytest.approx(0, abs=1e-12)
    assert loss.lipschitz() == 0.5
    curved = p * loss.curvature(np.array(z), np.array(1.0)) + (1 - p) * loss.curvature(np.array(z), np.array(0.0))
    if z != 0:  # where both halves meet, each has its curvature on one side only
        assert curved == pytest.approx(min(p, 1 - p) / 2)
    assert curved <= loss.mean_smoothness


def test_the_probes_of_a_check_follow_the_halton_sequence():
    for dimension in (1, 3, 40):
        expected = qmc.Halton(dimension, scramble=False).random(33)[1:]
        assert np.array_equal(custom.halton(32, dimension), expected)
