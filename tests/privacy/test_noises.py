"""The contract of every source of noise: it draws only against a receipt, each event once, in the order of the charge.

A new source is tested by one line in ``SOURCES``, and a new kind of event by one in ``EVENTS``, with all that may be drawn
once it is paid for. That the draws follow their laws is in test_noise.
"""

from __future__ import annotations

import contextlib
import itertools
import math

import numpy as np
import pytest
from concurrency import forked
from paying import paid

from hedgerow import errors
from hedgerow.privacy.amplification import subsampled_gaussian
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import (
    KINDS,
    AboveThreshold,
    ApproximateDP,
    DistinctRows,
    Event,
    Exponential,
    FlippedRows,
    Gaussian,
    Laplace,
    PerturbedObjective,
    Planned,
    PoissonSample,
    Repeated,
    RepeatedRows,
    Subsampled,
    SubsampledGaussian,
    ThresholdedCounts,
)
from hedgerow.privacy.ledger import Accountant, Receipt
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.renyi_events import HitRound, RandomRuns

SOURCES = {"Noise": Noise, "Seeded": lambda: Seeded(5)}
FINEST = 2.0**-20


def draw_number(source: Noise, receipt: Receipt) -> object:
    return source.add(3.0, receipt)


def draw_table(source: Noise, receipt: Receipt) -> object:
    return source.add(np.zeros((2, 3)), receipt)


def draw_choice(source: Noise, receipt: Receipt) -> object:
    return source.choose(np.zeros(4), receipt)


def draw_round(source: Noise, receipt: Receipt) -> object:
    return source.open_round(receipt, 0, FINEST)


def draw_round_on_grid(source: Noise, receipt: Receipt) -> object:
    return source.open_round(receipt, 0, 1.0, on_grid=True)


def draw_runs(source: Noise, receipt: Receipt) -> object:
    return source.draw_runs(receipt)


def draw_sample(source: Noise, receipt: Receipt) -> object:
    return source.sample(20, receipt)


def draw_rows(source: Noise, receipt: Receipt) -> object:
    return source.draw_rows(receipt)


def draw_flips(source: Noise, receipt: Receipt) -> object:
    return source.flips(lambda indices: indices % 2 == 0, receipt)


NUMBERS, CHOICES, ROUNDS, SAMPLES, ROWS, FLIPS, RUNS = (
    (draw_number, draw_table),
    (draw_choice,),
    (draw_round, draw_round_on_grid),
    (draw_sample,),
    (draw_rows,),
    (draw_flips,),
    (draw_runs,),
)
DRAWS = (*NUMBERS, *CHOICES, *ROUNDS, *SAMPLES, *ROWS, *FLIPS, *RUNS)
SAMPLED = subsampled_gaussian(1.0, 1e-6, "replace", heads=2**30, steps=3, sensitivity=1.0, values=2)
# Every kind of event, and the ways to draw from it, draw after draw
EVENTS: list[tuple[Event, list[tuple]]] = [
    (Laplace(1.0, 2.0), [NUMBERS]),
    (Gaussian(1.0, 2.0), [NUMBERS]),
    (Exponential(1.0, 0.5), [CHOICES]),
    (AboveThreshold(1.0, 0.1, 0.2), [ROUNDS]),
    (HitRound(1.0, 0.1), [(draw_round,)]),
    (RandomRuns(0.1, 4.0), [RUNS]),
    (ApproximateDP(0.1, 1e-6), []),
    (Repeated(Gaussian(1.0, 2.0), 4), [NUMBERS] * 4),
    (Repeated(Laplace(1.0, 2.0), 1), [NUMBERS]),
    (Planned(Gaussian(1.0, 8.0), 0.5), [NUMBERS]),
    (SAMPLED, [SAMPLES, NUMBERS] * 3),
    (Subsampled(DistinctRows(5, 20), Laplace(1.0, 2.0)), [ROWS, NUMBERS]),
    (Subsampled(RepeatedRows(5, 3), Exponential(1.0, 0.5)), [ROWS, CHOICES]),
    (FlippedRows(2**28, 20, 7), [FLIPS]),
    (PerturbedObjective(8.0, 1e-3, 0.1, Gaussian(1.0, 9.0, 2.0**-30), Gaussian(0.1, 30.0, 2.0**-16)), [NUMBERS] * 2),
    (ThresholdedCounts(Gaussian(1.0, 2.0), 12), [NUMBERS]),
]

every = pytest.mark.parametrize("made", SOURCES.values(), ids=list(SOURCES))
each = pytest.mark.parametrize(
    ("event", "draws"), EVENTS, ids=lambda x: type(x).__name__ if isinstance(x, Event) else ""
)


def test_every_kind_of_event_is_tried_but_those_that_cannot_be_charged() -> None:
    assert {type(event) for event, _ in EVENTS} == set(KINDS.values()) - {PoissonSample, DistinctRows, RepeatedRows}


@every
@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: draw.__name__)
def test_an_event_alone_buys_nothing_and_neither_does_anything_else(made, draw) -> None:
    class Forged(Receipt):  # type: ignore[misc]
        def __init__(self) -> None:
            self._event = Laplace(1.0, 1.0)

        def redeem(self, *kinds):
            return next(event for event, _ in EVENTS if isinstance(event, kinds))

    for offered in (
        *(event for event, _ in EVENTS),
        PoissonSample(5),
        None,
        1.0,
        Accountant(Budget(1.0, 0.0)),
        Forged(),
    ):
        with pytest.raises(errors.InvalidInput, match=r"Noise must be drawn against a receipt. Found "):
            draw(made(), offered)


@every
@each
def test_charged_events_are_drawn_exactly_once(made, event, draws) -> None:
    source = made()
    for ways in itertools.islice(itertools.product(*draws), 12):
        receipt = paid(event)
        for draw in ways:
            draw(source, receipt)
        for draw in DRAWS:
            with pytest.raises(errors.InvalidInput, match=r"Found one draw more. Charge the event first."):
                draw(source, receipt)


@every
@each
def test_a_draw_of_another_kind_is_refused_and_uses_up_no_more_than_the_one_it_was_next_to(made, event, draws) -> None:
    source = made()
    for wrong in DRAWS:
        if not draws or wrong in draws[0]:
            continue
        receipt = paid(event)
        with pytest.raises(errors.InvalidInput, match=r"event must be .*which is next on the receipt"):
            wrong(source, receipt)
        for ways in draws[1:]:
            ways[0](source, receipt)
        with pytest.raises(errors.InvalidInput, match="Found one draw more"):
            wrong(source, receipt)


@every
def test_events_charged_together_are_drawn_in_that_order(made) -> None:
    source, order = made(), [Laplace(1.0, 2.0), Exponential(1.0, 0.5), AboveThreshold(1.0, 0.1, 0.2)]
    draws = [draw_number, draw_choice, draw_round]
    for permuted in itertools.permutations(range(3)):
        receipt = paid(*order)
        with contextlib.ExitStack() as stack:
            if list(permuted) != [0, 1, 2]:
                stack.enter_context(pytest.raises(errors.InvalidInput, match="in that order"))
            for i in permuted:
                draws[i](source, receipt)


@every
def test_two_events_of_one_kind_are_told_apart_by_their_order(made) -> None:
    silent, loud = Laplace(1.0, 2.0**-30), Laplace(1.0, 2.0**30)
    source = made()
    receipt = paid(silent, loud, silent)
    first, second, third = (source.add(7.0, receipt) for _ in range(3))
    assert first == third == 7.0
    assert second != 7.0


@every
def test_a_sampled_sum_is_a_sample_and_then_its_noise_step_after_step(made) -> None:
    source, receipt = made(), paid(SAMPLED)
    for _ in range(SAMPLED.steps):
        rows = source.sample(4000, receipt)
        assert np.all(np.diff(rows) > 0) and rows[0] >= 0 and rows[-1] < 4000
        assert abs(rows.size - 1000) < 200  # 7 standard deviations
        assert isinstance(source.add(float(rows.size), receipt), float)
    skipped = paid(SAMPLED)
    with pytest.raises(errors.InvalidInput, match=r"event must be Laplace or Gaussian. Found PoissonSample"):
        source.add(1.0, skipped)


@every
def test_a_receipt_is_drawn_from_once_whatever_source_draws(made) -> None:
    receipt = paid(Laplace(1.0, 2.0))
    made().add(1.0, receipt)
    for other in SOURCES.values():
        with pytest.raises(errors.InvalidInput, match="Found one draw more"):
            other().add(1.0, receipt)


@every
def test_a_draw_that_fails_on_its_value_is_used_up_all_the_same(made) -> None:
    receipt = paid(Laplace(1.0, 2.0))
    with pytest.raises(errors.InvalidInput, match="must be numeric"):
        made().add(np.array(["x"]), receipt)
    with pytest.raises(errors.InvalidInput, match="Found one draw more"):
        made().add(1.0, receipt)


@every
@each
def test_a_receipt_buys_nothing_in_a_fork_even_of_noise_made_there(made, event, draws) -> None:
    receipt = paid(event)
    for draw in draws[0] if draws else ():
        assert "must be used in the process that made it" in forked(lambda draw=draw: draw(made(), receipt))
        assert "must be used in the process that made it" in forked(lambda draw=draw: made().sample(3, receipt))
    for ways in draws:
        ways[0](made(), receipt)


@every
def test_a_sample_by_itself_can_be_priced_by_no_budget_and_charged_to_no_ledger(made) -> None:
    for budget in (Budget(1e9, 0.0), Budget(1e9, 0.5)):
        for sample in (PoissonSample(1), DistinctRows(1, 2), RepeatedRows(1, 2)):
            assert budget.cost(sample) == math.inf
            with pytest.raises(errors.BudgetExceeded, match=f"Found infinity for {type(sample).__name__}"):
                Accountant(budget).charge(sample)


# Parts of events


class Cheap(Gaussian):  # type: ignore[misc]
    @property
    def rho(self) -> float:
        return 1e-12


@pytest.mark.parametrize(
    "make",
    [
        lambda: Repeated(Cheap(1.0, 1e-3), 3),
        lambda: Repeated(ApproximateDP(0.1, 1e-3), 3),  # whose delta nobody would count
        lambda: Repeated(SubsampledGaussian(1e-9, 1e-9, 1, PoissonSample(1), Gaussian(1.0, 1e-3)), 1),
        lambda: Repeated(Repeated(Laplace(1.0, 1.0), 2), 2),
        lambda: Repeated(PoissonSample(1), 1),
        lambda: Repeated(3.0, 1),
        lambda: SubsampledGaussian(1.0, 1e-6, 1, PoissonSample(1), Cheap(1.0, 1e-3)),
        lambda: SubsampledGaussian(1.0, 1e-6, 1, 0.5, Gaussian(1.0, 1.0)),
        lambda: PerturbedObjective(1.0, 1e-6, 0.1, Laplace(1.0, 1.0), Gaussian(1.0, 1.0)),
        lambda: PerturbedObjective(1.0, 1e-6, 0.1, Gaussian(1.0, 1.0), Cheap(1.0, 1.0)),
        lambda: Laplace(Laplace(1.0, 1.0), 1.0),
        lambda: Subsampled(DistinctRows(1, 2), Gaussian(1.0, 1.0)),
        lambda: Subsampled(Laplace(1.0, 1.0), Laplace(1.0, 1.0)),
        lambda: Subsampled(DistinctRows(1, 2), AboveThreshold(1.0, 1.0, 1.0)),
        lambda: DistinctRows(3, 2),
        lambda: RepeatedRows(0, 2),
        lambda: DistinctRows(1, 2**51),
        lambda: FlippedRows(2**31, 10),
    ],
)
def test_a_part_that_is_not_what_the_bill_counts_is_refused(make) -> None:
    with pytest.raises(errors.InvalidInput):
        make()


# Guard rounds


@every
@pytest.mark.parametrize(
    ("unit", "on_grid"),
    [(1.0, False), (2.0**-19, False), (0.3, False), (0.3, True), (2.0, True), (0.0, True), (-1.0, True)],
)
def test_a_round_whose_noise_would_be_rounded_is_refused(made, unit, on_grid) -> None:
    """Noise that is cut off to whole units has another law than was billed: 0 would be twice as likely."""
    with pytest.raises(errors.InvalidInput, match="unit must be a power of two that divides the sensitivity"):
        made().open_round(paid(AboveThreshold(1.0, 0.1, 0.2)), 0, unit, on_grid)


@every
@pytest.mark.parametrize("draw", ROUNDS, ids=lambda draw: draw.__name__)
def test_an_open_round_compares_with_nothing_in_a_fork(made, draw) -> None:
    opened = draw(made(), paid(AboveThreshold(1.0, 0.1, 0.2)))
    assert "must be used in the process that made it" in forked(lambda: opened.excess(0))
    assert opened.is_open


@every
@pytest.mark.parametrize("draw", ROUNDS, ids=lambda draw: draw.__name__)
def test_a_round_is_over_with_its_first_value_above(made, draw) -> None:
    opened = draw(made(), paid(AboveThreshold(1.0, 0.1, 0.2)))
    assert opened.excess(-(2**50)) is None
    assert opened.excess(2**50) > 0
    assert not opened.is_open
    with pytest.raises(errors.InvalidInput, match="A round must be open"):
        opened.excess(-(2**50))
