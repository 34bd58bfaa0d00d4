"""Attacks on noisy SGD: all samples of tiny tables of both neighbouring relations, rows at the ends of float64, samples without rows, persons with copies."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from preparing import prepared
from recorder import Recorder

from hedgerow import erm, losses
from hedgerow.convex.sets import L2Ball
from hedgerow.erm.problem import Problem
from hedgerow.erm.rows import in_whole_units
from hedgerow.erm.solvers.noisy_sgd import NoisySgd
from hedgerow.errors import NotPrivateWarning
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import COIN, PoissonSample

FAR = 50.0
ENDS = [1.0, -1.0, 1.7e308, -math.inf, math.nan, 5e-324, 0.0]  # features of a row, clipped to 1
HUBER: dict[str, Any] = {"loss": losses.Huber(), "over": L2Ball(1.0), "label_bound": FAR}


def problem_of(rows: list[float], budget: Budget) -> Problem:
    """Rows of one feature, each of which pulls as hard as its feature lets it."""
    guess = {} if budget.neighbours == "replace" else {"expected_rows": 4}
    return prepared(np.array(rows).reshape(-1, 1), np.full(len(rows), FAR), budget=budget, **HUBER, **guess)


def density(problem: Problem, rate: float, sigma: float, at: np.ndarray) -> np.ndarray:
    """Return the density of the noisy sum of one step, over all samples of the rows, each with its probability."""
    found, n = np.zeros_like(at), problem.X.shape[0]
    for sample in itertools.chain.from_iterable(itertools.combinations(range(n), k) for k in range(n + 1)):
        total = float(problem.gradient(np.zeros(1), np.array(sample, np.int64))[0])
        likely = rate ** len(sample) * (1 - rate) ** (n - len(sample))
        found += likely * np.exp(-(((at - total) / sigma) ** 2) / 2)
    return found


def share_of_delta(one: list[float], other: list[float], budget: Budget, batch: int, less: float = 1.0) -> float:
    """δ of one step, in the worse direction, as a share of what is billed; with so many times less noise."""
    problems = [problem_of(rows, budget) for rows in (one, other)]
    plans = [NoisySgd(batch=batch, epochs=1e-9).plan(p, Allowance.of(budget).quote()) for p in problems]
    assert plans[0].events == plans[1].events and plans[0].iterations == 1  # public
    (event,) = plans[0].events
    sigma, reach = event.noise.sigma / less, len(one) + 1
    at = np.linspace(-reach - 14 * sigma, reach + 14 * sigma, 8_001)
    laws = [density(p, plans[0].details.rate, sigma, at) for p in problems]
    laws = [law / law.sum() for law in laws]
    excess = [np.maximum(p - math.exp(event.epsilon) * q, 0).sum() for p, q in (laws, laws[::-1])]
    return float(max(excess)) / event.delta


@pytest.mark.parametrize(("epsilon", "batch"), [(0.5, 2), (3.0, 2), (1.0, 4)], ids=["half", "half, larger", "all"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_row_of_a_tiny_table_has_more_delta_than_is_billed_whatever_it_and_the_others_hold(
    relation, epsilon, batch
) -> None:
    """Exact: every sample of up to four rows. With a third of the noise the row at the bound shows, so the search can find it."""
    budget = Budget(epsilon, 1e-3, relation)
    found = []
    for others in ([1.0, 1.0, 1.0], [1.0, -1.0, 0.3], [math.nan, 1e308, -1e-310]):
        for row in ENDS:
            less = [*others] if relation == "add-remove" else [*others, -1.0]
            found.append(share_of_delta([*others, row], less, budget, batch))
    if relation == "add-remove":
        found += [share_of_delta([row], [], budget, batch) for row in ENDS]
    assert max(found) <= 1
    gone = [1.0] * 3 if relation == "add-remove" else [1.0, 1.0, 1.0, -1.0]
    assert share_of_delta([1.0] * 4, gone, budget, batch, less=3.0) > 1


def test_rows_at_the_edge_of_their_bound_have_a_norm_of_at_most_it_exactly() -> None:
    """In whole units the norm is a fraction of whole numbers: nothing is rounded."""
    rng = np.random.default_rng(0)
    for _ in range(600):
        p, bound, bits = (
            int(rng.choice([1, 2, 3, 17])),
            float(rng.choice([1.0, 0.3, 7.0, 1e-3])),
            int(rng.choice([8, 20, 26])),
        )
        unit = 2.0 ** (math.ceil(math.log2(bound)) - bits)
        x = rng.normal(size=p)
        x *= bound / np.linalg.norm(x) * (1 + float(rng.choice([0, 2e-16, -1e-16, 1e-12, 1e300, 1e-300])))
        x = np.round(x / unit) * unit if rng.random() < 0.3 else x
        x = rng.choice([1e308, 5e-324, -1.797e308, 2.2e-308, 0.0], p) if rng.random() < 0.2 else x
        (held,) = in_whole_units(x[None, :], bound, "l2", unit)
        assert sum(Fraction(v) ** 2 for v in held.tolist()) * Fraction(unit) ** 2 <= Fraction(bound) ** 2


def test_samples_without_rows_are_steps_like_others() -> None:
    """A rate at which no row is ever drawn, and tables of none, one and a thousand rows: one bill, and finite numbers."""
    budget = Budget(1.0, 1e-6, "add-remove")
    fits = []
    for n in (0, 1, 1000):
        X, y, noise = np.ones((n, 2)), np.full(n, FAR), Recorder(1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", NotPrivateWarning)
            fits.append(
                erm.noisy_sgd(X, y, budget=budget, expected_rows=10**6, batch=1, epochs=3e-6, noise=noise, **HUBER)
            )
        added = [draw for draw in noise.draws if draw.kind == "add"]
        assert len(added) == fits[-1].iterations > 1 and not any(map(any, (draw.raw for draw in added)))
        assert np.linalg.norm(fits[-1].theta) <= 1 + 1e-9
    assert len({fit.events for fit in fits}) == 1 and len({fit.risk_bound for fit in fits}) == 1


@pytest.mark.parametrize("copies", [2, 7, 40])
def test_copies_of_a_row_are_one_persons_and_move_a_sum_by_what_is_billed_for_them(copies) -> None:
    """The rows of others are all equal to theirs: only the person's column tells them apart."""
    budget, rng = Budget(1.0, 1e-6, "add-remove"), np.random.default_rng(3)
    others = 20
    X, y = np.ones((others + copies, 1)), np.full(others + copies, FAR)
    whose = [*range(others), *["the same"] * copies]
    order = rng.permutation(others + copies)

    def sums(stay: int) -> list[Any]:
        place = [i for i in order if i < stay]
        given = {
            "expected_rows": 20,
            "batch": 20,
            "epochs": 1e-9,
            "unit": [whose[i] for i in place],
            "rows_per_unit": 2,
        }
        noise = Recorder(1)
        erm.noisy_sgd(X[place], y[place], budget=budget, noise=noise, **given, **HUBER)
        return noise.draws

    with_person, without = sums(others + copies), sums(others)
    assert [draw.kind for draw in with_person] == [draw.kind for draw in without] == ["sample", "add"]
    assert int(with_person[0].raw[0]) - int(without[0].raw[0]) == 2  # rows of the person that are kept
    assert isinstance(with_person[0].event, PoissonSample) and with_person[0].event.heads == COIN
    moved = abs(with_person[1].raw[0] - without[1].raw[0])
    assert moved <= 2 * Fraction(with_person[1].event.sensitivity)
    assert moved > 1.9
