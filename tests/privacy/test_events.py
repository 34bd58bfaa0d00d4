"""The record that is drawn from is the record that is billed, and its bill covers every order of the true divergence."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest

from hedgerow import errors
from hedgerow.privacy import events
from hedgerow.privacy.events import (
    AboveThreshold,
    ApproximateDP,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    PerturbedObjective,
    PoissonSample,
    Repeated,
    SubsampledGaussian,
)

EXAMPLES = [
    Laplace(2.0, 30.1, grid=0.25),
    Gaussian(math.sqrt(2), 12.3),
    Exponential(2.0, 0.07),
    AboveThreshold(1.0, 0.01, 0.016),
    ApproximateDP(0.3, 1e-8),
]
ORDERS = 1 + np.geomspace(1e-4, 1e4, 60)


def test_noise_that_is_next_to_none_is_refused_as_no_number() -> None:
    with pytest.raises(errors.InvalidInput, match="must be a finite number above 0"):
        Gaussian(1.0, 1e-160, 2.0**-560)  # ρ would be about 10³¹⁹


def log_sum(x: np.ndarray) -> float:
    return float(x.max() + np.log(np.exp(x - x.max()).sum()))


def renyi(log_p: np.ndarray, log_q: np.ndarray, α: float) -> float:
    """D_α(p ‖ q) of two distributions on the same points."""
    return log_sum(α * log_p + (1 - α) * log_q) / (α - 1)


def noises_apart(log_weight, shift: int, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """The noise of unnormalised `log_weight(k)` on the integers, and the same moved by `shift`; both in logs."""
    k = np.arange(-reach, reach + 1)
    log_p, log_q = log_weight(k), log_weight(k - shift)
    return log_p - log_sum(log_p), log_q - log_sum(log_q)


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", True, None, [1.0]], ids=repr)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: type(e).__name__)
def test_every_field_must_be_a_finite_number_above_zero(example, bad) -> None:
    for field in dataclasses.fields(example):
        with pytest.raises(errors.InvalidInput, match=f"{field.name} must be a finite number above 0"):
            dataclasses.replace(example, **{field.name: bad})


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: type(e).__name__)
def test_an_event_survives_json_to_the_last_bit(example) -> None:
    record = json.loads(json.dumps(example.to_dict()))
    assert record["kind"] == type(example).__name__
    assert Event.from_dict(record) == example == type(example).from_dict(record)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"kind": "Free", "epsilon": 1.0},
        {"kind": "Laplace", "sensitivity": 1.0},
        {"kind": "Gaussian", "sensitivity": 1.0, "sigma": 2.0, "grid": 1.0, "more": 1.0},
        {"kind": "Laplace", "sensitivity": 1.0, "scale": -2.0, "grid": 1.0},
    ],
)
def test_a_record_that_no_event_wrote_is_refused(record) -> None:
    with pytest.raises(errors.InvalidInput):
        Event.from_dict(record)


def test_a_record_of_another_kind_is_refused_by_the_class_that_reads_it() -> None:
    with pytest.raises(errors.InvalidInput, match="kind must be"):
        Gaussian.from_dict(Laplace(1, 2).to_dict())


def test_equal_events_are_one_event_whatever_the_type_of_their_numbers() -> None:
    assert len({Laplace(1, 2), Laplace(1.0, np.float64(2)), Laplace(np.int64(1), 2)}) == 1


@pytest.mark.parametrize(
    "build", [lambda: Laplace(1e-200, 1), lambda: Gaussian(1e-200, 1), lambda: Exponential(1, 1e-170)]
)
def test_a_cost_that_rounds_to_zero_is_refused_rather_than_free(build) -> None:
    with pytest.raises(errors.InvalidInput, match=r"rho of .* must be a finite number above 0"):
        build()


@pytest.mark.parametrize("grid", [0.1, 3.0, 1 + 2.0**-52])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_a_grid_is_a_power_of_two_and_the_refusal_names_one(kind, grid) -> None:
    with pytest.raises(errors.InvalidInput, match=f"grid must be a power of two.*Use {events.grid_at_most(grid)}"):
        kind(1.0, 10.0, grid)


@pytest.mark.parametrize(("step", "grid"), [(1.0, 1.0), (0.1, 0.0625), (3.9, 2.0), (2.0**-1000, 2.0**-1000)])
def test_the_grid_at_most_a_step_is_the_largest_such_power(step, grid) -> None:
    assert events.grid_at_most(step) == grid


@pytest.mark.parametrize("steps", [2.0**41, 2.0**-41])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_noise_that_could_overflow_or_vanish_is_refused_from_its_scale_alone(kind, steps) -> None:
    with pytest.raises(errors.InvalidInput, match="grid steps"):
        kind(1.0, steps)
    kind(1.0, steps, events.grid_at_most(steps))


@pytest.mark.parametrize(("shift", "s"), [*itertools.product([1, 2, 5, 17], [0.2, 1.0, 4.0, 30.0])])
def test_the_bill_of_laplace_noise_covers_every_order_and_is_met_by_the_first(shift, s) -> None:
    event = Laplace(shift, s)
    p, q = noises_apart(lambda k: -np.abs(k) / s, shift, reach=math.ceil(300 * s) + 2 * shift)
    assert all(renyi(p, q, α) <= α * event.rho * (1 + 1e-6) + 1e-12 for α in ORDERS)
    assert renyi(p, q, 1.0001) == pytest.approx(event.rho, rel=1e-3)
    assert np.max(p - q) == pytest.approx(event.epsilon, rel=1e-9)


@pytest.mark.parametrize("split", [(1, 1, 1, 1, 1, 1), (3, 3), (5, 1), (4, 1, 1)])
def test_a_row_that_moves_several_cells_costs_no_more_than_one_that_moves_one(split) -> None:
    s = 2.5
    pairs = [noises_apart(lambda k: -np.abs(k) / s, shift, reach=900) for shift in split]
    for α in ORDERS:
        assert sum(renyi(p, q, α) for p, q in pairs) <= α * Laplace(sum(split), s).rho * (1 + 1e-9)


@pytest.mark.parametrize("ε", [1e-9, 1e-4, 0.3, 0.49, 0.51, 1.0, 5.0])
def test_the_bill_of_laplace_noise_on_a_fine_grid_is_that_of_the_continuous_one(ε) -> None:
    fine = Laplace(ε, 1.0, grid=2.0**-40)
    assert fine.rho == pytest.approx(ε - 1 + math.exp(-ε) if ε > 0.1 else ε**2 / 2 - ε**3 / 6 + ε**4 / 24, rel=1e-5)
    assert Laplace(ε, 1.0, grid=events.grid_at_most(ε)).rho >= fine.rho


@pytest.mark.parametrize("ε", [1e-6, 1e-3, 0.1, 1.0, 3.0])
def test_laplace_noise_one_grid_step_apart_is_randomized_response(ε) -> None:
    assert Laplace(1.0, 1 / ε).rho == pytest.approx(ε * math.tanh(ε / 2), rel=1e-9)


@pytest.mark.parametrize(("shift", "σ"), [*itertools.product([1, 2, 7], [0.4, 1.0, 6.3])])
def test_the_bill_of_gaussian_noise_covers_every_order(shift, σ) -> None:
    reach = math.ceil(60 * σ) + 20 * shift
    p, q = noises_apart(lambda k: -(k**2) / (2 * σ**2), shift, reach)
    event = Gaussian(shift, σ)
    # The mass of D_α sits near α·shift, so the range must reach beyond it.
    assert all(renyi(p, q, α) <= α * event.rho * (1 + 1e-9) + 1e-9 for α in ORDERS[ORDERS < 15])
    assert event.epsilon == math.inf and event.rho == pytest.approx(shift**2 / (2 * σ**2), rel=1e-12)


@pytest.mark.parametrize("ε", [0.01, 0.5, 2.0, 6.0])
def test_every_epsilon_dp_mechanism_is_covered_by_epsilon_times_tanh(ε) -> None:
    p = np.array([ε, 0.0]) - math.log1p(math.exp(ε))  # randomized response, the worst of them
    event = AboveThreshold(1, ε / 3, 2 * ε / 3)
    assert event.epsilon == pytest.approx(ε) and event.rho == pytest.approx(ε * math.tanh(ε / 2))
    assert all(renyi(p, p[::-1], α) <= α * event.rho * (1 + 1e-9) + 1e-11 for α in ORDERS)
    assert renyi(p, p[::-1], 1.0001) == pytest.approx(event.rho, rel=1e-3)


@pytest.mark.parametrize("ε", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_the_bill_of_the_exponential_mechanism_covers_every_order_of_its_worst_scores(ε, share) -> None:
    event = Exponential(2.0, ε)
    base = np.log([share, 1 - share]) * event.scale  # scores that choose the first with this probability
    moved = base + np.array([event.sensitivity, -event.sensitivity])
    p, q = (scores / event.scale - log_sum(scores / event.scale) for scores in (moved, base))
    assert all(max(renyi(p, q, α), renyi(q, p, α)) <= α * event.rho * (1 + 1e-9) + 1e-11 for α in ORDERS)
    assert np.abs(p - q).max() <= event.epsilon


@pytest.mark.parametrize(("ε1", "ε2"), [(0.3, 0.3), (0.2, 0.5), (0.9, 0.4)])
def test_a_guard_round_at_its_scales_loses_no_more_than_it_bills_and_nearly_that(ε1, ε2) -> None:
    """Every output of up to five queries, from the exact distribution of the discrete noise, on whole rows."""
    event = AboveThreshold(1.0, ε1, ε2)
    z = np.arange(-400, 401)
    noise = np.exp(-np.abs(z) / event.threshold_scale)
    noise /= noise.sum()
    e = math.exp(-1 / event.query_scale)

    def above(gap: np.ndarray) -> np.ndarray:  # P[ν >= gap]
        return np.where(gap > 0, e ** np.abs(gap) / (1 + e), 1 - e ** (np.abs(gap) + 1) / (1 + e))

    def probability(values: list[int]) -> float:  # of ⊥ ... ⊥ ⊤ with threshold 0
        below = np.prod([1 - above(z - v) for v in values[:-1]], axis=0)
        return float((noise * below * above(z - values[-1])).sum())

    losses = [
        abs(math.log(probability(values) / probability([v + move for v, move in zip(values, moves, strict=True)])))
        for values in ([0], [0, 0], [-9, -9, 9], [-30, -30, -30, -30, 30], [30, 30, 30, 30, -30])
        for moves in itertools.product((-1, 0, 1), repeat=len(values))
    ]
    assert max(losses) <= event.epsilon * (1 + 1e-9)
    assert max(losses) >= 0.75 * event.epsilon


@pytest.mark.parametrize(("given", "kept"), [(1.0, 1.0), (0.3, math.ceil(0.3 * 2**20) / 2**20), (2.0**-20, 2.0**-20)])
def test_the_sensitivity_of_a_guard_is_rounded_up_to_the_grid_of_its_noise(given, kept) -> None:
    event = AboveThreshold(given, 0.1, 0.2)
    assert event.sensitivity == kept >= given
    assert event.threshold_scale == kept / 0.1 and event.query_scale == 2 * kept / 0.2
    assert Event.from_dict(event.to_dict()) == event
    for scale in (event.threshold_scale, event.query_scale):
        assert event.sensitivity % events.comparison_grid(scale) == 0


@pytest.mark.parametrize("ε", [(1e-8, 0.1), (0.1, 1e-7)])
def test_a_guard_with_very_wide_noise_counts_in_whole_rows(ε) -> None:
    event = AboveThreshold(1.5, *ε)
    assert event.sensitivity == 2.0
    assert events.comparison_grid(max(event.threshold_scale, event.query_scale)) == 1.0


@pytest.mark.parametrize("arguments", [(1e-9, 0.1, 0.1), (1.0, 1e-13, 0.1), (1.0, 0.1, 1e13), (2.0**41, 1.0, 1.0)])
def test_a_guard_in_fractions_or_beyond_the_samplers_range_is_refused(arguments) -> None:
    with pytest.raises(errors.InvalidInput, match="rows"):
        AboveThreshold(*arguments)


def test_only_an_event_that_states_a_delta_needs_a_slack() -> None:
    assert [event.delta for event in EXAMPLES] == [0.0, 0.0, 0.0, 0.0, 1e-8]


@pytest.mark.parametrize("ε", [0.05, 1.0, 4.0])
def test_an_approximate_event_is_billed_as_epsilon_dp_outside_its_delta(ε) -> None:
    assert ApproximateDP(ε, 1e-6).rho == AboveThreshold(1, ε / 2, ε / 2).rho
    with pytest.raises(errors.InvalidInput, match="delta must be below 1"):
        ApproximateDP(ε, 1.0)


@pytest.mark.parametrize("ε", [0.05, 1.0, 4.0])
def test_an_event_with_a_proof_of_its_own_is_billed_as_epsilon_dp_outside_its_delta(ε) -> None:
    noise = Gaussian(1.0, 10.0)
    sampled = SubsampledGaussian(ε, 1e-6, 7, PoissonSample(2**30), noise)
    tilted = PerturbedObjective(ε, 1e-6, 0.1, noise, noise)
    assert sampled.rho == tilted.rho == ApproximateDP(ε, 1e-6).rho
    assert sampled.delta == tilted.delta == 1e-6


@pytest.mark.parametrize("event", [Laplace(2.0, 30.0), Gaussian(1.0, 12.0)])
def test_releases_billed_together_cost_the_sum_of_each(event) -> None:
    together = Repeated(event, 7)
    assert together.rho == pytest.approx(math.fsum(part.rho for part in together.draws), rel=1e-15)
    assert together.epsilon == pytest.approx(math.fsum(part.epsilon for part in together.draws), rel=1e-15)
    assert list(together.draws) == 7 * [event]
