"""A seed is announced wherever it is used, and nothing draws from a seed unless the caller gave one.

The tests of this project use seeds throughout, and are told not to warn of them; here the warning is an error, or counted.
"""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import erm, losses
from hedgerow.convex import sets
from hedgerow.data import HistogramSource
from hedgerow.privacy.noise import Noise

UNIVERSE = hr.Universe(a=hr.Integers(0, 3), b=hr.Flag())
DATA = HistogramSource(UNIVERSE, np.array([[1200, 100], [1250, 90], [1180, 110], [958, 112]]))
LARGE = HistogramSource(UNIVERSE, np.array([[10**6, 0]] + [[0, 0]] * 3))
BUDGET = hr.Budget(1.0, 1e-6)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)) / 3
CLASSES, VALUES = (X[:, 0] > 0).astype(int), np.clip(X[:, 0], -1, 1)

SESSIONS = {
    "open": lambda **seed: hr.open(DATA, universe=UNIVERSE, budget=BUDGET, **seed),
    "open guarded": lambda **seed: hr.open(DATA, universe=UNIVERSE, budget=BUDGET, guard=0.1, **seed),
    "open theory": lambda **seed: hr.open(LARGE, universe=UNIVERSE, budget=BUDGET, profile="theory", **seed),
    "release": lambda **seed: hr.release(DATA, universe=UNIVERSE, budget=BUDGET, **seed),
    "release mwem": lambda **seed: hr.release(
        LARGE, universe=UNIVERSE, budget=BUDGET, method="mwem", workload=[hr.count(a=1)], **seed
    ),
}
BALL, POLYTOPE = sets.L2Ball(1.0), sets.L1Ball(1.0)
SOLVERS = {
    "auto": (losses.Logistic(), BALL, CLASSES),
    "by_statistical_queries": (losses.Logistic(), BALL, CLASSES),
    "frank_wolfe": (losses.Logistic(), POLYTOPE, CLASSES),
    "frank_wolfe_general": (losses.Logistic(), BALL, CLASSES),
    "mirror_descent": (losses.Logistic(), BALL, CLASSES),
    "noisy_sgd": (losses.Logistic(), BALL, CLASSES),
    "objective_perturbation": (losses.Logistic(), BALL, CLASSES),
    "output_perturbation": (losses.Squared(ridge=0.1), BALL, VALUES),
    "regularised_output_perturbation": (losses.Logistic(), None, CLASSES),
    "whitened_descent": (losses.Logistic(), BALL, CLASSES),
}


def solved(name: str, **seed):
    if name == "lasso":
        return erm.lasso(X, VALUES, budget=BUDGET, radius=1.0, **seed).theta
    loss, over, y = SOLVERS[name]
    return getattr(erm, name)(X, y, loss=loss, over=over, budget=BUDGET, **seed).theta


def fitted(name: str, **seed):
    given = {"random_state": seed["seed"]} if seed else {}
    pytest.importorskip("sklearn")
    kind = getattr(erm, name)
    if name in ("LogisticRegression", "LinearSVC"):
        return kind(BUDGET, classes=[0, 1], **given).fit(X, CLASSES).coef_
    return kind(BUDGET, **given).fit(X, VALUES).coef_


def searched(name: str, **seed):
    given = {"random_state": seed["seed"]} if seed else {}
    found = erm.PrivateSearch([erm.Ridge(BUDGET, alpha=alpha) for alpha in (1.0, 5.0)], BUDGET, **given)
    return found.fit(X, VALUES).best_estimator_.coef_


ERM = (
    {"PrivateSearch": (searched, "PrivateSearch")}
    | {name: (solved, name) for name in [*SOLVERS, "lasso"]}
    | {name: (fitted, name) for name in erm.ESTIMATORS}
)


def test_every_solver_is_tried() -> None:
    public = set(erm.__all__) - {"Result"}
    assert set(ERM) == public


@pytest.mark.parametrize("made", SESSIONS)
def test_a_session_draws_from_no_seed_unless_one_is_given(made) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", hr.NotPrivateWarning)
        one, other = SESSIONS[made](), SESSIONS[made]()
        for session in (one, other):
            assert type(session._noise) is Noise
            assert session.private
            assert all(entry.private for entry in session.log)
            assert "NOT PRIVATE" not in repr(session) + repr(session.log)
        records = [session.synthetic(1000).to_numpy().tolist() for session in (one, other)]
        assert records[0] != records[1]
        with pytest.raises(hr.NotPrivateWarning):
            SESSIONS[made](seed=7)
    first, second = SESSIONS[made](seed=7), SESSIONS[made](seed=7)
    assert np.array_equal(first.ask(hr.marginal("a", "b")).value, second.ask(hr.marginal("a", "b")).value)


@pytest.mark.parametrize("made", ["open", "release"])
def test_two_sessions_without_a_seed_release_different_numbers(made) -> None:
    one, other = (SESSIONS[made]().ask(hr.marginal("a", "b")).value for _ in range(2))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", ERM)
def test_a_fit_draws_from_no_seed_unless_one_is_given(name) -> None:
    fit, which = ERM[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", hr.NotPrivateWarning)
        runs = [fit(which) for _ in range(6)]  # a sparse one may come out alike now and then
        assert any(not np.array_equal(runs[0], run) for run in runs[1:])
        with pytest.raises(hr.NotPrivateWarning):
            fit(which, seed=7)
    assert np.array_equal(fit(which, seed=7), fit(which, seed=7))


def test_a_seeded_session_says_so_wherever_it_is_shown() -> None:
    session = SESSIONS["open"](seed=7)
    assert not session.private
    assert "NOT PRIVATE: seed 7" in repr(session)
    assert session.log
    assert all("private=False" in repr(entry) for entry in session.log)


def test_every_seed_is_announced_under_pythons_own_filters_at_the_line_that_asked_for_it() -> None:
    code = """
import numpy as np, hedgerow as hr
from hedgerow import erm, losses
from hedgerow.convex import sets
from hedgerow.data import HistogramSource
from hedgerow.privacy.noise import Seeded
U = hr.Universe(a=hr.Integers(0, 3), b=hr.Flag())
for seed in range(3):
    hr.open(HistogramSource(U, np.full(8, 500)), universe=U, budget=hr.Budget(1.0, 1e-6), seed=seed)  # line 9
for seed in range(2):
    erm.mirror_descent(np.eye(3), [0, 1, 1], loss=losses.Logistic(), over=sets.L2Ball(1.0), budget=hr.Budget(1.0, 1e-6), seed=0)
for seed in range(4):
    Seeded(0)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = [line for line in ran.stderr.splitlines() if "NotPrivateWarning" in line]
    assert [line.partition(": ")[0] for line in told] == ["<string>:9"] * 3 + ["<string>:11"] * 2 + ["<string>:13"] * 4
