"""Whole convex mechanisms: every billed event is drawn once, in order, with its own law, and the draws reach the answer."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from exact_laws import COARSE, is_uniform, needed_roughly, uniforms
from recording import Recorded, RecordedSeeded
from test_laws_of_mechanisms import opened

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.privacy.events import AboveThreshold, Event, Exponential, Gaussian, Repeated
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.research.audit_cases import convex_cases
from hedgerow.textbook import convex_offline, convex_pmw

FAMILY = convex_cases.FAMILIES["noisy descent"]
RISK, TABLE = FAMILY.loss.on(convex_cases.PLANE), FAMILY.tables[0]

MANY = hr.Universe.from_sizes({"y": 2, "a": 12, "b": 12, "c": 12})
Y, A, B, C = np.indices(MANY.shape)
FEW = HistogramSource(MANY, (((A >= 6) == Y) & (B == C)).astype(np.int64) * 3)

Run = Callable[[Noise], tuple[np.ndarray, list[Event]]]


def online(name: str, source: Noise) -> tuple[np.ndarray, list[Event]]:
    family, account = convex_cases.FAMILIES[name], Accountant(convex_cases.CLAIM)
    mechanism = convex_pmw.OnlineConvexPMW(convex_cases.config(name), family.tables[0], account, source)
    return mechanism.ask(family.loss.on(convex_cases.PLANE), convex_cases.BALL).theta, account.events


def offline(source: Noise) -> tuple[np.ndarray, list[Event]]:
    account, losses = Accountant(convex_cases.CLAIM), [(RISK, convex_cases.BALL)] * 2
    found = convex_offline.release(convex_cases.offline_config(), losses, TABLE, account, source)
    return found.hypothesis.marginal(("y", "a")), account.events


def practical(source: Noise) -> tuple[np.ndarray, list[Event]]:
    """Cells so many that no table of them would show anything: θ is found by noisy gradients."""
    budget = hr.Budget(6.0, 1e-6)
    session, _ = opened(source, budget, FEW, workload=[hr.count(y=0)], reserve=0.9)
    question = hr.minimize(hr.losses.Huber(target="y", features=("a", "b", "c")), over=hr.L2Ball(1.0))
    before = len(session.log)
    source.record.added.clear()
    answer = session.ask(question, within=0.25)
    billed = [event for entry in session.log[before:] for event in entry.events]
    assert sum(entry.why == "gradient" for entry in session.log[before:]) >= 40
    return np.asarray(answer.value), billed


RUNS: dict[str, Run] = {
    **{f"convex pmw, {name}": functools.partial(online, name) for name in convex_cases.FAMILIES},
    "convex offline": offline,
    "practical, gradients": practical,
}


def drawn_from(event: Event) -> list[Event]:
    return [event.event] * event.times if isinstance(event, Repeated) else [event]


@pytest.mark.parametrize("name", RUNS)
def test_billed_events_are_drawn_once_and_in_order(name) -> None:
    source = RecordedSeeded(1)
    _, billed = RUNS[name](source)
    each = [event for whole in billed for event in drawn_from(whole)]
    record = source.record
    assert [event for event, _, _ in record.added] == [e for e in each if isinstance(e, Gaussian)]
    assert [event for event, _, _ in record.chosen] == [e for e in each if isinstance(e, Exponential)]
    assert len(record.thresholds) == sum(isinstance(e, AboveThreshold) for e in each)


@pytest.mark.audit
@pytest.mark.parametrize("made", [lambda seed: Recorded(), RecordedSeeded], ids=["private", "seeded"])
@pytest.mark.parametrize("name", RUNS)
def test_draws_have_the_law_that_was_billed(name, made) -> None:
    """Power against half and double the scale."""
    rng, found = np.random.default_rng(2), np.zeros(0)
    for seed in range(600):
        source = made(seed)
        RUNS[name](source)
        found = np.concatenate([found, *(uniforms(z, e, rng) for e, z in source.record.noises())])
        if found.size >= needed_roughly(Gaussian):
            break
    assert found.size >= needed_roughly(Gaussian)
    assert is_uniform(found, COARSE)


@pytest.mark.parametrize("name", RUNS)
def test_another_draw_is_another_answer(name) -> None:
    first, again, other = (RUNS[name](RecordedSeeded(seed))[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
