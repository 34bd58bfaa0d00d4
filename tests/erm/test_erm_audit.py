"""Every private solver on its worst neighbours: distinguished no better than claimed, and better if noise is missing.

The cases, their neighbours and their scores are in `hedgerow.research.audit_cases.erm_cases`; `python -m hedgerow.audit` finds how much of each claim
a long audit reaches.

Method. Each run is one number that grows with the pull, near to a sufficient statistic where steps are few. Of the runs
`audit.epsilon_lower_bound_of_scores` takes a quarter to choose a threshold, and the others to bound ε from below.

Errors. A solver as private as claimed fails with probability at most 10⁻⁶ (the confidence). One with half the noise, or in
the long audit one paid three times ε, is found with probability 0.99: `test_so_many_runs_are_enough…` computes it. Where the
certificate has slack (`tight` is false) it takes twice that to break the claim. Claims are such that few runs do: δ is large,
for with a small one Gaussian noise shows its loss in rare events only. The short audit has seeds, so that it does not
depend on luck; the long one draws from the operating system.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom, norm

from hedgerow import errors, losses
from hedgerow.audit import clopper_pearson, epsilon_lower_bound_of_scores
from hedgerow.convex import sets
from hedgerow.erm import (
    auto,
    frank_wolfe,
    frank_wolfe_general,
    lasso,
    mirror_descent,
    noisy_sgd,
    output_perturbation,
    regularised_output_perturbation,
    whitened_descent,
)
from hedgerow.erm import solver as door
from hedgerow.erm.problem import Problem
from hedgerow.privacy import events
from hedgerow.privacy.amplification import subsampled_gaussian
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_mu
from hedgerow.privacy.ledger import Receipt
from hedgerow.privacy.noise import Seeded
from hedgerow.privacy.perturbed_objective import noise_scale
from hedgerow.research.audit_cases.erm_cases import BALL, CASES, FAR, HUBER, LONG, LONGER, PURE, SHORT, ErmCase, Rows

CONFIDENCE, MISS = 1 - 1e-6, 1e-2
LONG_RUNS = 6000


@pytest.fixture(autouse=True)
def quick_runs(monkeypatch) -> None:
    """A refit of two steps, without the projection that follows all that is drawn; a public plan made once."""
    monkeypatch.setattr("hedgerow.erm.solvers.sparse_refit.STEPS", 2)
    monkeypatch.setattr("hedgerow.erm.solvers.sparse_refit.nearest", lambda point, metric, radius: point)
    module = importlib.import_module("hedgerow.erm.solvers.output_perturbation")  # by name it is the function
    plan, plans = module.regularized_weight, {}

    def planned(problem: Problem, mu: float, radius: float) -> tuple[float, float]:
        public = problem.n, problem.budget, mu, radius
        if public not in plans:
            plans[public] = plan(problem, mu, radius)
        return plans[public]

    monkeypatch.setattr(module, "regularized_weight", planned)


def found(case: ErmCase, claim: Budget, paid: Budget, neighbours: str, runs: int, seeded: bool) -> float:
    """The bound on ε, at the claim's δ, of the solver paid so much, where a row is replaced or removed."""
    scores = [
        [case.run(table, paid, 2 * i + side if seeded else None) for i in range(runs)]
        for side, table in enumerate(case.tables(neighbours))
    ]
    return epsilon_lower_bound_of_scores(*scores, confidence=CONFIDENCE, delta=claim.delta)


def with_half_the_noise(budget: Budget, times: float = 1.0) -> Budget:
    """A row that comes or goes moves a sum half as far as one that is replaced."""
    return Budget(times * budget.epsilon, budget.delta, "add-remove")


# Of each kind of release one: a Gaussian's, a perturbed objective's, and a choice's. Of the others tests/exact has the sensitivities, and
# `python -m hedgerow.audit` and `make audit` the audits, which notice less than this too.
EACH_KIND = ("mirror descent", "objective perturbation", "lasso without a refit")
SHORTLY = [pytest.param(name, marks=() if name in EACH_KIND else pytest.mark.audit) for name in CASES]


@pytest.mark.audit
@pytest.mark.parametrize("name", SHORTLY)
def test_the_worst_neighbours_are_told_apart_no_better_than_claimed(name) -> None:
    case = CASES[name]
    claim = case.claim(SHORT)
    assert found(case, claim, claim, "replace", case.runs, seeded=True) <= claim.epsilon


@pytest.mark.audit
@pytest.mark.parametrize("name", SHORTLY)
def test_the_same_audit_notices_half_the_noise(name) -> None:
    case = CASES[name]
    claim = case.claim(SHORT)
    paid = with_half_the_noise(claim, times=1.0 if case.tight else 2.0)
    assert found(case, claim, paid, "replace", case.runs, seeded=True) > claim.epsilon


@pytest.mark.audit
@pytest.mark.parametrize("name", [*CASES, *LONGER])
def test_a_long_audit_notices_three_times_epsilon(name, neighbours="replace") -> None:
    """The certificate has slack of its own: half the noise of twice ε."""
    case = (CASES | LONGER)[name]
    claim = dataclasses.replace(case.claim(LONG), neighbours=neighbours)
    paid = dataclasses.replace(claim, epsilon=3 * claim.epsilon)
    if neighbours == "replace" and not case.tight:
        paid = with_half_the_noise(claim, times=2.0)
    assert found(case, claim, paid, neighbours, LONG_RUNS, seeded=False) > claim.epsilon


# How many runs


def refuted(p: float, q: float, claim: Budget, runs: int) -> bool:
    """Return True if an event of these probabilities refutes the claim in the runs that test it, except with probability MISS."""
    tests, error = runs - runs // 4, (1 - CONFIDENCE) / 2
    fewest, most = binom.ppf(MISS / 2, tests, p), binom.isf(MISS / 2, tests, q)
    low, high = clopper_pearson(int(fewest), tests, error)[0], clopper_pearson(int(most), tests, error)[1]
    return low - claim.delta > math.exp(claim.epsilon) * high


# Two steps count 2:1 in a mean, and a tenth of ρ for moments that do not change leaves √0.9: both cost 5 % of μ.
DILUTED = 0.94


def noise_of_a_sampled_step(epsilon: float, delta: float) -> float:
    """σ for a change of 1, where all rows are in the sample, and come and go."""
    return subsampled_gaussian(
        epsilon, delta, "add-remove", heads=events.COIN, steps=1, sensitivity=1.0, values=1
    ).noise.sigma


@pytest.mark.parametrize(
    ("mu", "claim", "runs"),
    [
        (2 * gaussian_mu(SHORT.epsilon, SHORT.delta), SHORT, CASES["output perturbation"].runs),
        (2 * gaussian_mu(SHORT.epsilon, SHORT.delta) * DILUTED, SHORT, CASES["mirror descent"].runs),
        (
            2 / noise_of_a_sampled_step(2 * SHORT.epsilon, SHORT.delta) * DILUTED,
            SHORT,
            CASES["noisy SGD, all rows"].runs,
        ),
        (
            2 / noise_scale(2 * SHORT.epsilon, SHORT.delta, 1.0, 1.0, 20.0, "add-remove"),
            SHORT,
            CASES["objective perturbation"].runs,
        ),
        (
            2 * math.sqrt(2 * Budget(2 * SHORT.epsilon, SHORT.delta).rho()) * DILUTED,
            SHORT,
            CASES["lasso with a refit"].runs,
        ),
        (gaussian_mu(3 * LONG.epsilon, LONG.delta) * DILUTED, LONG, LONG_RUNS),
    ],
    ids=["a step", "diluted", "SGD", "objective", "lasso", "long"],
)
def test_the_number_of_runs_suffices_to_refute_a_gaussian_release(mu, claim, runs) -> None:
    """At every threshold within ¼σ of the best, which is how well the first quarter of the runs finds it."""
    enough = [t for t in np.arange(-1, 4, 0.05) if refuted(norm.sf(t - mu), norm.sf(t), claim, runs)]
    assert max(enough) - min(enough) >= 0.5


def test_the_number_of_runs_suffices_to_refute_a_choice_between_two_vertices() -> None:
    """A row pulls the log-odds by half of a step's ε, by all of it with half the noise; a row against it, by 0.7 of that."""
    step = math.sqrt(8 * Budget(2 * SHORT.epsilon, SHORT.delta).rho())
    assert refuted(expit(0.3 * PURE.epsilon), expit(-1.7 * PURE.epsilon), PURE, CASES["Frank–Wolfe"].runs)
    assert refuted(expit(step), expit(-step), SHORT, CASES["lasso without a refit"].runs)


# What noise cannot show: how far one row moves what is released, whatever was released before


class Transcript(Seeded):
    """Keeps what is to be released, and releases what another transcript did: neighbours after the same history."""

    def __init__(self, seed: int, before: Transcript | None = None) -> None:
        super().__init__(seed)
        self.before, self.values, self.releases, self.samples = before, [], [], 0

    def _redeem(self, receipt: Receipt, *kinds: type[Any]) -> Any:
        self.redeemed = super()._redeem(receipt, *kinds)
        return self.redeemed

    def _released_as_before(self, value: Any, drawn: Any) -> Any:
        self.values.append((np.array(value, dtype=float), self.redeemed))
        self.releases.append(drawn if self.before is None else self.before.releases[len(self.releases)])
        return self.releases[-1]

    def add(self, value: Any, receipt: Receipt) -> Any:
        return self._released_as_before(value, super().add(value, receipt))

    def choose(self, scores: Any, receipt: Receipt) -> int:
        return int(self._released_as_before(scores, super().choose(scores, receipt)))

    def sample(self, rows: int, receipt: Receipt) -> Any:
        heads = self._redeem(receipt, events.PoissonSample).heads
        self.samples += 1  # the same coins for the same rows, counted from the last
        coins = np.random.default_rng((self.seed, self.samples)).integers(0, events.COIN, 100)[100 - rows :]
        return np.flatnonzero(coins < heads)


def farthest(first: Transcript, second: Transcript) -> float:
    """The change of a release as a share of the sensitivity that was billed for it."""
    shares = []
    for (one, event), (two, other) in zip(first.values, second.values, strict=True):
        assert event == other
        if isinstance(event, events.Exponential):
            shares.append(np.abs(one - two).max() / event.sensitivity)
        else:
            steps = np.rint(one / event.grid) - np.rint(two / event.grid)
            shares.append(np.linalg.norm(steps) * event.grid / event.sensitivity)
    return float(max(shares))


def awkward_rows(rng: np.random.Generator, n: int, p: int) -> Rows:
    """Rows and labels far beyond their bounds, at them, and next to nothing."""
    X = rng.standard_cauchy((n, p)) * 10.0 ** rng.integers(-9, 9, (n, 1))
    X[0], y = np.eye(p)[0], rng.standard_cauchy(n) * 10.0 ** rng.integers(-3, 6, n)
    y[0] = 1e300
    return X, y


# Objective perturbation is missing: its noise is not for a change of values but for one of densities.
MOVED: dict[str, Callable[..., Any]] = {
    "mirror descent": lambda X, y, **k: mirror_descent(X, y, over=sets.Box(-1.0, 0.3), iterations=3, **HUBER, **k),
    "whitened descent": lambda X, y, **k: whitened_descent(
        X, y, loss=losses.Squared(), label_bound=FAR, iterations=3, **k
    ),
    "noisy SGD": lambda X, y, **k: noisy_sgd(X, y, over=BALL, batch=5, epochs=2, **HUBER, **k),
    "output perturbation": lambda X, y, **k: output_perturbation(
        X, y, loss=losses.Huber(ridge=0.1), label_bound=FAR, over=sets.L1Ball(2.0), **k
    ),
    "regularised output perturbation": lambda X, y, **k: regularised_output_perturbation(X, y, **HUBER, **k),
    "Frank–Wolfe": lambda X, y, **k: frank_wolfe(X, y, over=sets.L1Ball(1.0), iterations=3, **HUBER, **k),
    "general Frank–Wolfe": lambda X, y, **k: frank_wolfe_general(
        X, y, over=sets.InterpolationBall(1.0, 0.5), iterations=3, **HUBER, **k
    ),
    "lasso": lambda X, y, **k: lasso(X, y, label_bound=FAR, iterations=2, refit=True, **k),
}


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("name", MOVED)
def test_no_row_moves_a_release_by_more_than_is_billed(name, neighbours, wrap, monkeypatch) -> None:
    budget, most, rng = Budget(1.0, 1e-3, neighbours), 0.0, np.random.default_rng(5)
    choices = {} if neighbours == "replace" else {"expected_rows": 9}
    for trial in range(8):
        X, y = awkward_rows(rng, 10, 3)
        pair = [(X, y), (X[1:], y[1:])]
        if neighbours == "replace":
            pair[1] = (X, np.append(-y[0], y[1:])) if rng.random() < 0.5 else (np.vstack([-X[:1], X[1:]]), y)
        transcript: Transcript | None = None
        seen = []
        for rows, labels in pair:
            transcript = Transcript(trial, transcript)
            seen.append(transcript)
            monkeypatch.setattr(door, "Noise", lambda now=transcript: now)
            MOVED[name](wrap(rows), labels, budget=budget, **choices)
        most = max(most, farthest(*seen))
    # SGD's noise is for rows that come and go: a replaced one is two of them, and its ε and δ are halved for that
    billed = 2 if name == "noisy SGD" and neighbours == "replace" else 1
    assert 0.25 * billed < most <= billed * (1 + 1e-6 * (billed - 1))


# The same, for whatever a table may hold and in whatever units


STRANGE = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e9, 1e308, -1e308, 5e-324, 1e-200, math.nan, math.inf, -math.inf]
SETS: dict[str, Callable[[float], sets.ConvexSet]] = {
    "ℓ2 ball": sets.L2Ball,
    "ℓ1 ball": sets.L1Ball,
    "box": lambda size: sets.Box(-size, size / 3),
    "simplex": sets.Simplex,
    "polytope": lambda size: sets.Polytope(size * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -0.3]])),
}
LOSSES: dict[str, Callable[[float], losses.Loss]] = {
    "squared": lambda ridge: losses.Squared(ridge=ridge),
    "logistic": lambda ridge: losses.Logistic(ridge=ridge),
    "huber": lambda ridge: losses.Huber(0.7, ridge=ridge),
    "poisson": lambda ridge: losses.Poisson(ridge=ridge),
    "smoothed hinge": lambda ridge: losses.SmoothedHinge(ridge=ridge),
    "hinge": lambda ridge: losses.Hinge(ridge=ridge),
    "absolute": lambda ridge: losses.Absolute(ridge=ridge),
}
SOLVERS: dict[str, Callable[..., Any]] = {
    "mirror descent": lambda X, y, **k: mirror_descent(X, y, iterations=3, **k),
    "whitened descent": lambda X, y, over, **k: whitened_descent(
        X, y, iterations=3, over=over if isinstance(over, sets.L2Ball) else None, **k
    ),
    "noisy SGD": lambda X, y, **k: noisy_sgd(X, y, batch=(k.get("expected_rows", y.size) + 1) // 2, epochs=2, **k),
    "output perturbation": output_perturbation,
    "regularised output perturbation": lambda X, y, over, **k: regularised_output_perturbation(X, y, **k),
    "Frank–Wolfe": lambda X, y, **k: frank_wolfe(X, y, iterations=3, **k),
    "general Frank–Wolfe": lambda X, y, **k: frank_wolfe_general(X, y, iterations=3, **k),
    "lasso": lambda X, y, over, loss, norm, **k: lasso(X, y, iterations=2, **k),
    "auto": lambda X, y, loss, **k: auto(
        X, y, loss=loss if loss.is_smooth else losses.Logistic(), **k
    ),  # kinks take long
}


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, bool, bool, list[Rows], dict[str, Any]]:
    """A solver, whether rows are sparse, whether they are replaced, two neighbours, and public choices."""
    replaced, size = draw(st.booleans()), st.sampled_from(STRANGE) | st.floats(-3, 3)
    table = draw(st.lists(st.tuples(size, size, size), min_size=1, max_size=9))
    other = draw(st.tuples(size, size, size))
    first, second = (np.array(rows).reshape(-1, 3) for rows in (table, [other, *table[1:]] if replaced else table[1:]))
    scale = st.sampled_from([0, 0, 0, 0, 0, 0, 0, 0, -3, 3, -9, 9, -20, 20, -300]).map(lambda power: 10.0**power)
    row_bound = draw(scale)
    choices: dict[str, Any] = {
        "loss": LOSSES[draw(st.sampled_from(list(LOSSES)))](draw(st.sampled_from([0.1, 0.0, 1e-6, 1e6]))),
        "over": SETS[draw(st.sampled_from(list(SETS)))](draw(scale)),
        "budget": Budget(*draw(st.sampled_from([(1.0, 1e-3), (1e-3, 1e-9), (30.0, 0.1)]))),
        "row_bound": row_bound,
        "norm": draw(st.sampled_from(["l2", "linf"])),
        "label_bound": draw(scale),
    }
    if not replaced:
        choices["budget"] = dataclasses.replace(choices["budget"], neighbours="add-remove")
        choices |= {
            "expected_rows": draw(st.sampled_from([1, 5, 1000, 2**33])),
            "limit": "1TB",
        }  # memory is judged by the guess
    unit = row_bound if draw(st.booleans()) else 1.0
    with np.errstate(all="ignore"):
        in_units = [(rows[:, :2] * unit, rows[:, 2]) for rows in (first, second)]
    return draw(st.sampled_from(list(SOLVERS))), draw(st.booleans()), replaced, in_units, choices


def overheard(solver: str, sparse: bool, rows: Rows, choices: dict[str, Any], before: Transcript | None) -> Any:
    """The transcript of a call, with its result; or the words of a refusal. Nothing may be warned about."""
    with warnings.catch_warnings(), np.errstate(all="raise"), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", errors.NotPrivateWarning)
        transcript = Transcript(0, before)
        patch.setattr(door, "Noise", lambda: transcript)
        X, y = rows
        try:
            result = SOLVERS[solver](sp.csr_array(X) if sparse else X, y, **choices)
        except errors.InvalidInput as refusal:
            return str(refusal)
        return transcript, result


def check_neighbours(call: tuple[str, bool, bool, list[Rows], dict[str, Any]]) -> None:
    solver, sparse, replaced, pair, choices = call
    first = overheard(solver, sparse, pair[0], choices, None)
    second = overheard(solver, sparse, pair[1], choices, None if isinstance(first, str) else first[0])
    if isinstance(first, str):
        assert first == second
        return
    assert first[1].events == second[1].events
    assert np.array_equal(first[1].theta, second[1].theta)  # a function of what is released
    billed = 1.0
    if (
        solver == "noisy SGD"
    ):  # of a row that comes or goes; its noise multiplier has room for rounding (amplification._FINE)
        billed = (2 if replaced else 1) * (1 + 5e-7)
    assert farthest(first[0], second[0]) <= billed


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(calls())
def test_no_row_of_any_table_in_any_units_has_more_influence_than_is_billed(call) -> None:
    check_neighbours(call)


@pytest.mark.audit
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls())
def test_no_row_of_thousands_of_tables_has_more_influence_than_is_billed(call) -> None:
    check_neighbours(call)
