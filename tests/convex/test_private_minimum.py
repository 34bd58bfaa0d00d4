"""Minimizers on private counts: the proven methods alone, rounding, and no warnings, on every loss and set."""

import math
import warnings

import numpy as np
import pytest
from test_public_minimum import KINKED, SETS, SMOOTH, bound

from hedgerow import losses
from hedgerow.convex.sets import Box, L1Ball, L2Ball, Polytope, Simplex, Unconstrained
from hedgerow.convex.solver import private_minimum as minimiser
from hedgerow.convex.solver.private_minimum import Surrogate
from hedgerow.universe.universe import Universe

LOSSES = [*SMOOTH, *KINKED]
NAMES = [f"{type(loss).__name__}{i}" for i, loss in enumerate(LOSSES)]


def tables(risk, seed: int = 0):
    """Ordinary and extreme: one row, one cell, two far apart, many rows."""
    rng = np.random.default_rng(seed)
    cells = math.prod(risk.shape)
    one, two = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
    one[rng.integers(cells)] = 1
    two[0], two[-1] = 10**6, 10**6 - 1
    ordinary = rng.integers(0, 50, cells)
    return [t.reshape(risk.shape) for t in (one, two, ordinary, ordinary * 10**7)]


@pytest.mark.parametrize("over", SETS, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_no_method_finds_a_lower_value_than_was_promised(loss, over):
    """Newton with its proof, and the accelerated steps alone, on the same surrogate."""
    risk = bound(loss)
    surrogate, tolerance = Surrogate.of(risk, over, 0.1), 1e-4
    assert minimiser.certain_value(surrogate, tolerance)
    for counts in tables(risk)[1:3]:
        f = surrogate.function(counts)
        best = f.value(minimiser.private_minimizer(surrogate, counts, 1e-7))
        for found in (
            minimiser.private_minimizer(surrogate, counts, tolerance),
            minimiser._run_accelerated(surrogate, f, tolerance)[0],
        ):
            assert over.contains(found, 1e-12)
            assert f.value(found) - best <= tolerance


@pytest.mark.parametrize("over", [L2Ball(1.0), L1Ball(0.5), Box(-0.2, 0.4)], ids=repr)
@pytest.mark.parametrize("kind", [losses.Logistic, losses.Hinge])
def test_the_place_of_a_minimum_is_found_by_newton_and_by_accelerated_steps_alone(kind, over):
    risk = bound(kind(target="y", features=["a", "b"]))
    surrogate = Surrogate(risk, over, 0.1, 0.2)
    assert minimiser.certain_place(surrogate, 1e-7)
    for counts in tables(risk, 1):
        closest = minimiser.locate_minimum(surrogate, counts, 1e-11)
        tolerance = surrogate.strong * 1e-14 / 4
        _, v = minimiser._run_accelerated(surrogate, surrogate.function(counts), tolerance)
        for found in (minimiser.locate_minimum(surrogate, counts, 1e-7), v):
            assert np.linalg.norm(found - closest) <= 1e-7 + 1e-11


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_a_surrogate_is_as_smooth_as_strong_and_as_near_as_it_says(loss):
    risk, over, rng = bound(loss), L2Ball(2.0), np.random.default_rng(2)
    error = 0.05
    surrogate = Surrogate.of(risk, over, error)
    counts = tables(risk)[2]
    f, plain = surrogate.function(counts), risk.objective(counts)
    for _ in range(30):
        a, b = (over.project(rng.normal(size=risk.dimension) * rng.choice([0.01, 1.0])) for _ in range(2))
        bent = f.value(b) - f.value(a) - float(f.gradient(a) @ (b - a))
        apart = float((b - a) @ (b - a)) / 2
        assert surrogate.strong * apart - 1e-12 <= bent <= surrogate.smoothness * apart + 1e-12
        above = f.value(a) - plain.value(a) / plain.mass
        assert -1e-12 <= above <= error + 1e-12


def test_public_facts_tell_where_a_value_is_not_certain_for_every_table():
    smooth, kinked = bound(SMOOTH[1]), bound(KINKED[0])
    sure = minimiser.certain_value
    assert sure(Surrogate.of(kinked, Simplex(1.0), 0.01), 1e-6)
    assert not sure(Surrogate.of(smooth, L2Ball(1.0), 1e-3), 1e-18)  # beyond float64
    assert not sure(Surrogate.of(kinked, L2Ball(1.0), 1e-9), 1e-6)  # too many steps
    assert not sure(Surrogate(smooth, L2Ball(1.0)), 1e-3)  # not strongly convex
    assert not sure(Surrogate.of(smooth, Unconstrained(), 0.1), 1e-3)
    assert not sure(Surrogate.of(smooth, Polytope(np.eye(4)), 0.1), 1e-3)  # its projection is a solver's outcome
    for size in (1e-300, 1e-200, 1e150, 1e300):
        assert not sure(Surrogate.of(bound(SMOOTH[0]), L2Ball(size), 0.1), 1e-3)
        assert not minimiser.certain_place(Surrogate.of(bound(SMOOTH[0]), L2Ball(size), 0.1), 1e-9 * size)


@pytest.mark.parametrize("ridge", [1e-160, 1e-200, 5e-267, 1e-3])
def test_no_count_makes_a_minimum_warn_or_raise(ridge, monkeypatch):
    """Curvatures at the ends of float64, and Newton steps through singular matrices; few steps are enough to see."""
    monkeypatch.setattr(minimiser, "MOST_STEPS", 300)
    universe = Universe.from_sizes({"y": 2, "a": 3})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loss in (
            losses.Absolute(target="y", ridge=ridge),
            losses.Logistic(target="y", features=["a"], ridge=ridge),
        ):
            risk = loss.on(universe)
            for width in (0.1, 1e-6):
                surrogate = Surrogate.of(risk, L2Ball(1.0), width)
                for counts in tables(risk):
                    assert L2Ball(1.0).contains(minimiser.private_minimizer(surrogate, counts, 1e-4), 1e-12)
                    assert L2Ball(1.0).contains(minimiser.locate_minimum(surrogate, counts, 1e-2), 1e-12)


def test_a_method_that_fails_is_followed_by_the_proven_one(monkeypatch):
    risk = bound(SMOOTH[1])
    surrogate, counts = Surrogate.of(risk, L2Ball(1.0), 0.05), tables(bound(SMOOTH[1]))[2]
    wanted = minimiser.private_minimizer(surrogate, counts, 1e-10)

    def broken(*_):
        raise RuntimeError("4711 rows")

    monkeypatch.setattr(minimiser, "newton", broken)
    f = surrogate.function(counts)
    assert f.value(minimiser.private_minimizer(surrogate, counts, 1e-7)) - f.value(wanted) <= 1e-7


@pytest.mark.parametrize("over", SETS, ids=repr)
def test_projections_are_as_exact_as_the_proofs_take_them_to_be(over):
    """Against the same computation in extended precision where there is one, else against itself: P(P(x)) = P(x)."""
    rng = np.random.default_rng(3)
    risk = bound(SMOOTH[0])
    for _ in range(50):
        v = rng.normal(size=risk.dimension) * 10 ** rng.uniform(-3, 6)
        once = over.project(v)
        allowed = minimiser.ULP * (risk.dimension + 16) * (over.radius_l2(risk.dimension) + np.linalg.norm(v))
        assert np.linalg.norm(over.project(once) - once) <= allowed
        if isinstance(over, L2Ball):
            wide = v.astype(np.longdouble)
            exact = wide * min(np.longdouble(1), over.radius / np.sqrt((wide**2).sum()))
            assert np.linalg.norm((once - exact).astype(float)) <= allowed


def test_a_method_that_stops_early_is_followed_by_the_proven_one(monkeypatch):
    """It is believed only with a proof, and where it stands at its start there is none."""
    surrogate, counts = Surrogate.of(bound(SMOOTH[1]), L2Ball(1.0), 0.05), tables(bound(SMOOTH[1]))[2]
    f, wanted = surrogate.function(counts), minimiser.private_minimizer(surrogate, counts, 1e-10)

    def idle(f, over, judge, theta, tolerance):
        judge.offer(f, theta, f.gradient(theta))
        return theta

    monkeypatch.setattr(minimiser, "newton", idle)
    assert f.value(minimiser.private_minimizer(surrogate, counts, 1e-9)) - f.value(wanted) <= 1e-9
