"""One contract over every constraint set: nearest points, linear minimisers, radii, widths and mirror potentials."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import pickle
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from hedgerow.convex import sets
from hedgerow.convex.sets import (
    Box,
    ConvexSet,
    GroupL1Ball,
    InterpolationBall,
    L1Ball,
    L2Ball,
    NuclearBall,
    Polytope,
    Simplex,
    Unconstrained,
)
from hedgerow.convex.sets.potentials import Euclidean, HyperbolicEntropy, VertexEntropy
from hedgerow.convex.sets.structured import svd_by_rotations
from hedgerow.errors import InvalidInput

P = 12
SAMPLES = [  # in dimension P, at least one of each kind
    L2Ball(1.7),
    L1Ball(2.5),
    Box(-1.0, 2.0),
    Box(tuple(-np.arange(P) / 4.0), tuple(np.ones(P))),
    Simplex(),
    Simplex(3.0),
    Polytope(np.random.default_rng(5).normal(size=(20, P)) + 1.0),
    Polytope(np.random.default_rng(6).normal(size=(5, P))),
    GroupL1Ball(1.5, 3),
    GroupL1Ball(2.0, (0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 4, 4)),
    InterpolationBall(2.0, 0.0),
    InterpolationBall(2.0, 0.3),
    InterpolationBall(2.0, 0.9),
    InterpolationBall(2.0, 1.0),
    NuclearBall(1.3, (3, 4)),
    Unconstrained(),
]
BOUNDED = [C for C in SAMPLES if C.is_bounded]
VERTEX_SETS = [C for C in BOUNDED if isinstance(C, sets.VertexSet)]
POTENTIALS = [(C, C.potential(P)) for C in BOUNDED] + [(L1Ball(2.5), L1Ball(2.5).potential(P, "q-norm"))]
POTENTIALS += [  # which these balls take only in higher dimension
    (C, HyperbolicEntropy(P, C.radius_l1(P), C._hyperbolic)) for C in BOUNDED if isinstance(C, InterpolationBall)
]
on_every = pytest.mark.parametrize("C", SAMPLES, ids=repr)
on_bounded = pytest.mark.parametrize("C", BOUNDED, ids=repr)
on_potentials = pytest.mark.parametrize(
    ("C", "psi"), POTENTIALS, ids=[f"{C!r}-{type(psi).__name__}" for C, psi in POTENTIALS]
)


def points_in(C, rng, count=60, p=P):
    """Points of the set: vertices and faces (linear minimisers), mixtures of them, and projections."""
    corners = [C.minimize(rng.normal(size=p)) for _ in range(count)]
    sparse = [C.minimize(rng.normal(size=p) ** 5) for _ in range(count // 2)]
    mixed = [rng.dirichlet(np.full(len(corners), 0.1)) @ corners for _ in range(count)]
    near = [C.project(rng.normal(size=p) * 0.3) for _ in range(count)]
    return corners + sparse + mixed + near


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def test_every_set_is_under_this_contract():
    assert {type(C) for C in SAMPLES} == set(sets.SETS), "Add one of it to SAMPLES in tests/convex/test_sets.py."
    here = {kind for kind in kinds_of(ConvexSet) if kind.__module__.startswith("hedgerow.")}
    assert here == set(sets.SETS), "Add it to SETS in convex/sets/__init__.py."


def kinds_of(kind):
    """Its subclasses, however far down, that can be made."""
    below = {found for under in kind.__subclasses__() for found in (under, *kinds_of(under))}
    return {found for found in below if not inspect.isabstract(found)}


@on_every
def test_a_set_is_a_frozen_value(C):
    again = pickle.loads(pickle.dumps(C))
    assert again == C and hash(again) == hash(C) and repr(again) == repr(C)
    assert [other for other in SAMPLES if other == C] == [C]
    for field in dataclasses.fields(C):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(C, field.name, 1.0)


@on_every
def test_a_dimension_of_a_set_is_checked_and_its_points_must_be_finite_vectors(C):
    assert C.require(P) == P
    for wrong in (0, -1, 1.5, True, *([] if C.dimension is None else [P + 1])):
        with pytest.raises(InvalidInput, match="dimension"):
            C.require(wrong)
    for wrong in (np.full(P, np.nan), np.full(P, np.inf), np.zeros((P, 1))):
        with pytest.raises(InvalidInput, match="Parameters must be"):
            C.project(wrong)


@on_bounded
def test_a_projection_is_in_the_set_and_no_point_of_the_set_is_nearer(C, rng):
    inside = np.array(points_in(C, rng))
    for size in (0.1, 1.0, 30.0):
        for _ in range(20):
            v = rng.normal(size=P) * size
            x = C.project(v)
            assert C.contains(x)
            # the nearest point is the one with ⟨v − x, y − x⟩ ≤ 0 for every y of the set
            assert ((inside - x) @ (v - x)).max() <= 1e-9 * (1 + size)
            assert np.linalg.norm(inside - v, axis=1).min() >= np.linalg.norm(x - v) - 1e-9


@on_bounded
def test_projecting_twice_changes_nothing_and_distances_never_grow(C, rng):
    for _ in range(50):
        a, b = rng.normal(size=(2, P)) * rng.choice([0.3, 3.0])
        x, y = C.project(a), C.project(b)
        assert np.allclose(C.project(x), x, atol=1e-10)
        assert np.linalg.norm(x - y) <= np.linalg.norm(a - b) + 1e-10


@on_bounded
def test_a_point_of_the_set_is_its_own_projection(C, rng):
    for x in points_in(C, rng, 10):
        assert C.contains(x)
        assert np.allclose(C.project(x), x, atol=1e-9)


@on_bounded
def test_a_point_outside_is_not_contained(C, rng):
    far = C.minimize(rng.normal(size=P)) + 10 * rng.normal(size=P)
    assert not C.contains(far)
    assert not C.contains(np.full(P, np.nan))


@on_bounded
def test_the_linear_minimiser_is_in_the_set_and_no_random_point_beats_it(C, rng):
    inside = np.array(points_in(C, rng))
    for g in [*rng.normal(size=(30, P)), np.eye(P)[0], -np.eye(P)[3], np.ones(P), np.zeros(P)]:
        x = C.minimize(g)
        assert C.contains(x)
        assert (inside @ g).min() >= x @ g - 1e-9


@on_bounded
def test_radii_and_diameter_bound_every_point_and_are_reached(C, rng):
    inside = np.array(points_in(C, rng))
    norms1, norms2 = np.abs(inside).sum(axis=1), np.linalg.norm(inside, axis=1)
    apart = np.linalg.norm(inside[:, None] - inside[None], axis=2)
    assert norms1.max() <= C.radius_l1(P) + 1e-9
    assert norms2.max() <= C.radius_l2(P) + 1e-9
    assert apart.max() <= C.diameter_l2(P) + 1e-9
    signs = np.array(
        list(itertools.product([-1.0, 1.0], repeat=P))
    )  # ‖θ‖₁ = max over signs, so one of these reaches it
    reached = max(abs(C.minimize(s) @ s) for s in signs[:: 1 if not isinstance(C, Polytope) else 7])
    assert reached >= C.radius_l1(P) * (1 - 1e-9) or isinstance(C, Polytope)
    assert norms2.max() >= 0.7 * C.radius_l2(P)
    assert apart.max() >= 0.7 * C.diameter_l2(P)


@on_bounded
def test_the_gaussian_width_is_at_most_its_bound_and_the_bound_is_not_loose(C, rng):
    draws, false_fail = 4000, 1e-6
    b = rng.normal(size=(draws, P))
    sup = np.array([-(C.minimize(-g) @ -g) for g in b])
    margin = NormalDist().inv_cdf(1 - false_fail) * sup.std() / math.sqrt(draws)
    assert sup.mean() - margin <= C.gaussian_width(P)
    assert sup.mean() + margin >= 0.45 * C.gaussian_width(P)


@pytest.mark.parametrize("C", [L2Ball(1.7), Box(-1.0, 2.0)], ids=repr)
def test_the_exact_widths_are_exact(C, rng):
    draws, false_fail = 20_000, 1e-6
    sup = np.array([-(C.minimize(-g) @ -g) for g in rng.normal(size=(draws, P))])
    margin = NormalDist().inv_cdf(1 - false_fail / 2) * sup.std() / math.sqrt(draws)
    assert abs(sup.mean() - C.gaussian_width(P)) <= margin


@pytest.mark.parametrize("C", VERTEX_SETS, ids=repr)
def test_scores_are_those_of_the_vertices_and_the_best_vertex_is_the_linear_minimiser(C, rng):
    g = rng.normal(size=P)
    vertices = np.array([C.vertex(i, P).dense(P) for i in range(C.vertex_count(P))])
    assert np.allclose(C.vertex_scores(g), vertices @ g)
    assert np.allclose(vertices[np.argmin(C.vertex_scores(g))], C.minimize(g))
    assert all(C.contains(v) for v in vertices)
    with pytest.raises(InvalidInput, match="numbered"):
        C.vertex(C.vertex_count(P), P)


def test_the_l1_ball_handles_a_million_coordinates_without_a_vertex_list(rng):
    p = 1_000_000
    C, g = L1Ball(1.0), rng.normal(size=p)
    assert C.vertex(p + 7, p).indices.tolist() == [7]
    assert C.minimize(g) @ g == -np.abs(g).max()
    assert abs(np.abs(C.project(g)).sum() - 1.0) < 1e-9
    assert C.vertex_scores(g).shape == (2 * p,)


@on_potentials
def test_a_potential_is_one_strongly_convex_in_its_norm(C, psi, rng):
    assert psi.strong_convexity == 1.0
    inside = [0.999 * x + 0.001 * psi.start for x in points_in(C, rng, 12)]  # entropies have no slope at the boundary
    tightest = math.inf
    for i, j in rng.integers(len(inside), size=(120, 2)):
        x, y = inside[i], inside[j]
        gap = psi.value(y) - psi.value(x) - psi.gradient(x) @ (y - x)
        size = psi.norm(y - x) ** 2 / 2
        assert gap >= size * (1 - 1e-6) - 1e-9
        tightest = min(tightest, gap / size) if size > 1e-6 else tightest
    assert tightest < 30  # a potential that is far more convex than it says would waste its range


@on_potentials
def test_the_gradient_of_a_potential_is_its_slope(C, psi, rng):
    along = np.array(points_in(C, rng, 8))
    middle = (
        rng.dirichlet(np.ones(len(along))) @ along
    )  # no size is zero there, where a q-norm has no second derivative
    for x in along[:12]:
        x = 0.5 * x + 0.25 * middle + 0.25 * psi.start
        d = along[int(rng.integers(len(along)))] - psi.start  # a direction within the set's span
        h = 1e-5
        slope = (psi.value(x + h * d) - psi.value(x - h * d)) / (2 * h)
        assert slope == pytest.approx(psi.gradient(x) @ d, rel=1e-4, abs=1e-5 * psi.range)


@on_potentials
def test_a_potential_starts_at_its_least_value_and_stays_within_its_range(C, psi, rng):
    assert C.contains(psi.start)
    values = np.array([psi.value(0.999999 * x + 0.000001 * psi.start) for x in points_in(C, rng)])
    assert values.min() >= psi.value(psi.start) - 1e-9
    assert values.max() - psi.value(psi.start) <= psi.range * (1 + 1e-9)


@on_potentials
def test_a_mirror_step_minimises_what_it_should(C, psi, rng):
    inside = np.array(points_in(C, rng, 20))
    theta = psi.start
    for eta in (0.01, 0.3, 3.0, 30.0):
        g = rng.normal(size=P)
        after = psi.mirror_step(theta, g, eta)
        assert C.contains(after)
        slope = eta * g - psi.gradient(theta)
        size = 1 + float(np.abs(slope).max())
        interior = (1 - 1e-9) * after + 1e-9 * psi.start
        if not isinstance(psi, VertexEntropy):  # whose slope cannot be read back so near the boundary
            # first-order optimality against every point: ⟨slope + ∇Ψ(after), x − after⟩ ≥ 0
            assert ((inside - after) @ (slope + psi.gradient(interior))).min() >= -2e-5 * size
        best = slope @ after + psi.value(interior)
        assert all(slope @ x + psi.value(0.999999 * x + 0.000001 * psi.start) >= best - 2e-5 * size for x in inside)
        theta = psi.minimizer(0.5 * (psi.gradient(psi.start) + rng.normal(size=P)))


@on_potentials
def test_the_norm_and_its_dual_are_dual_and_its_ball_has_the_stated_size(C, psi, rng):
    span = np.array(points_in(C, rng, 20))
    for x in span[:20] - psi.start:
        g = rng.normal(size=P)
        assert abs(x @ g) <= psi.norm(x) * psi.dual_norm(g) * (1 + 1e-7) + 1e-9
        assert np.linalg.norm(x) <= psi.norm(x) * psi.norm_radius_l2 * (1 + 1e-7) + 1e-9
    draws, false_fail = 4000, 1e-6
    squares = np.array([psi.dual_norm(b) for b in rng.normal(size=(draws, P))]) ** 2
    margin = NormalDist().inv_cdf(1 - false_fail) * squares.std() / math.sqrt(draws)
    assert squares.mean() - margin <= psi.norm_width**2 + psi.norm_radius_l2**2


def test_the_printed_polytope_potential_would_not_be_strongly_convex_in_the_l1_norm():
    """Fact 3.4 as printed, ‖θ‖_q²/(4(q−1)) at q = log k/(log k − 1), falls short; ours at the same points does not."""
    p = 100
    q = math.log(p) / (math.log(p) - 1)
    x, y = np.full(p, 0.5 / p), -np.full(p, 0.5 / p)

    def printed(v):
        return np.sum(np.abs(v) ** q) ** (2 / q) / (4 * (q - 1))

    psi = L1Ball(1.0).potential(p, "q-norm")
    short = [(f(x) + f(y)) / 2 - f((x + y) / 2) for f in (printed, psi.value)]
    needed = np.abs(x - y).sum() ** 2 / 8
    assert short[0] < needed <= short[1]


@pytest.mark.parametrize("p", [1, 2, 3, 50, 5000])
def test_potential_ranges_grow_like_the_logarithm_of_the_dimension(p):
    assert L1Ball(1.0).potential(p).range <= 1.35 * math.log(2 * p) + 0.5
    assert L1Ball(1.0).potential(p, "q-norm").range <= max(math.e * math.log(p), p / 2 if p < 8 else 0.5)
    assert Simplex().potential(p).range == pytest.approx(math.log(p))


@pytest.mark.parametrize("size", [2e6, 1e15, 1e17, 1e100, 1e250])
def test_a_hyperbolic_step_on_a_large_ball_survives_duals_far_beyond_exp(size):
    """Also those whose last digit is worth more than the step that brings them back to the ball."""
    C = L1Ball(1.0)
    psi = C.potential(1000)
    after = psi.minimizer(np.linspace(-size / 2, size, 1000))
    assert C.contains(after)
    assert after[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("size", [2e6, 1e8, 1e9, 9e9, 1.1e10, 3e10, 1e12, 1e17, 1e100, 1e250])
def test_so_does_one_on_an_interpolation_ball_which_ends_where_the_dual_is_largest(alpha, size):
    C = InterpolationBall(2.0, alpha)
    dual = np.linspace(-0.5, 1.0, 1000)
    after = HyperbolicEntropy(1000, C.radius_l1(1000), C._hyperbolic).minimizer(size * dual)
    assert C.contains(after)
    assert dual @ after == pytest.approx(C.radius * C.dual_norm(dual), rel=1e-5)


def test_the_interpolation_ball_takes_the_potential_with_the_better_bound():
    assert isinstance(InterpolationBall(1.0, 0.2).potential(2000), HyperbolicEntropy)
    assert isinstance(InterpolationBall(1.0, 1.0).potential(2000), Euclidean)


def test_no_constraint_leaves_every_vector_where_it_is():
    v = np.array([1e9, -3.0])
    assert np.array_equal(Unconstrained().project(v), v)
    assert Unconstrained().radius_l2(2) == math.inf
    assert not Unconstrained().is_bounded
    assert np.array_equal(Unconstrained().potential(2).mirror_step(v, np.ones(2), 2.0), v - 2)
    with pytest.raises(InvalidInput, match="bounded"):
        Unconstrained().minimize(v)


def test_sets_are_values():
    assert L2Ball(1) == L2Ball(1.0)
    assert Polytope([[0.0, 1.0], [1.0, 0.0]]) == Polytope(np.eye(2)[::-1])
    assert Polytope(np.eye(2)) != Polytope(2 * np.eye(2))
    assert len({Box(0, 1), Box(0.0, 1.0), GroupL1Ball(1, [5, 5, 9]), GroupL1Ball(1, [0, 0, 1])}) == 2
    assert hash(Polytope(np.eye(2))) == hash(Polytope(np.eye(2)))


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf, "wide"])
@pytest.mark.parametrize(
    "make",
    [
        L2Ball,
        L1Ball,
        Simplex,
        lambda r: GroupL1Ball(r, 2),
        lambda r: InterpolationBall(r, 0.5),
        lambda r: NuclearBall(r, (2, 2)),
    ],
)
def test_a_radius_that_is_not_positive_is_refused(make, radius):
    with pytest.raises(InvalidInput, match="must be a finite number above 0"):
        make(radius)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Box(1.0, 0.0), "low <= high"),
        (lambda: Box([0.0, math.nan], 1.0), "finite"),
        (lambda: Box([0.0, 0.0], [1.0, 1.0, 1.0]), "one length"),
        (lambda: Polytope([]), "at least one row"),
        (lambda: Polytope(np.zeros((0, 3))), "at least one row"),
        (lambda: Polytope([[1.0, math.inf]]), "NaN or infinity"),
        (lambda: GroupL1Ball(1.0, 0), "block size"),
        (lambda: GroupL1Ball(1.0, [0.5, 1.0]), "block size"),
        (lambda: InterpolationBall(1.0, 1.5), r"\[0, 1\]"),
        (lambda: InterpolationBall(1.0, math.nan), r"\[0, 1\]"),
        (lambda: NuclearBall(1.0, (3,)), "two whole numbers"),
        (lambda: NuclearBall(1.0, (3, 0)), "two whole numbers"),
        (lambda: Polytope(np.eye(3)).project(np.zeros(2)), "The dimension must be 3"),
        (lambda: Box([0.0, 0.0], 1.0).minimize(np.zeros(5)), "The dimension must be 2"),
        (lambda: NuclearBall(1.0, (2, 3)).potential(5), "The dimension must be 6"),
        (lambda: L2Ball(1.0).project(np.zeros((2, 2))), "must be a vector"),
        (lambda: L1Ball(1.0).project([0.0, math.nan]), "must be finite"),
        (lambda: L1Ball(1.0).potential(0), "at least 1"),
        (lambda: L1Ball(1.0).potential(3, "round"), "'hyperbolic' or 'q-norm'"),
    ],
)
def test_bad_geometry_is_refused_with_the_way_out(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()


@pytest.mark.parametrize("region", [L1Ball(1.0), Simplex(1.0), GroupL1Ball(1.0, 1)], ids=repr)
@pytest.mark.parametrize("p", [3, 1000, 5000])
def test_nearest_points_of_many_coordinates_are_right_to_what_minima_allow_for(region, p) -> None:
    """A running sum rounds equal terms alike, p² times in all; `erm.solvers.minimum` allows for 2(p + 16) units."""
    for low in (0.0003, 0.000717, 0.00091):
        v = np.full(p, low)
        v[0] += 0.93
        found = region.project(v)
        τ = (Fraction(float(v[0])) + (p - 1) * Fraction(low) - 1) / p
        if τ < 0 and not isinstance(region, Simplex):
            continue  # within the ball
        best = [max(Fraction(float(x)) - τ, Fraction(0)) for x in v[:2]]
        off = [float(Fraction(float(x)) - b) for x, b in zip(found[:2], best, strict=True)]
        assert math.hypot(off[0], math.sqrt(p - 1) * off[1]) <= 2 * (p + 16) * 2.0**-53 * np.linalg.norm(v)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (6, 4), (7, 7)])
def test_rotations_find_the_singular_values_that_lapack_finds(shape) -> None:
    rng = np.random.default_rng(5)
    flat = np.outer(rng.normal(size=shape[0]), rng.normal(size=shape[1]))
    for matrix in (rng.normal(size=shape), 1e-150 * rng.normal(size=shape), flat, np.zeros(shape)):
        left, sizes, right = svd_by_rotations(matrix)
        size = np.abs(matrix).max()
        assert (left * sizes) @ right == pytest.approx(matrix, abs=1e-14 * size, rel=0)
        assert sizes == pytest.approx(np.linalg.svd(matrix)[1], abs=1e-14 * size, rel=0)
        whole = sizes > 1e-10 * size
        assert (left.T @ left)[np.ix_(whole, whole)] == pytest.approx(np.eye(whole.sum()), abs=1e-14)
