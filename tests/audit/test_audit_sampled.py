"""``distinguish`` has its stated confidence and enough power for an audit, and does not depend on the number of processes."""

import itertools
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sequential import is_kept

from hedgerow import audit
from hedgerow.audit import bounds, learned, sampled
from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import Noise, Seeded


def randomised_response(epsilon: float, rng: np.random.Generator):
    """ε-DP exactly: the true bit with probability e^ε/(1 + e^ε)."""
    return lambda bit: int(rng.random() < (1 / (1 + math.exp(-epsilon)) if bit else 1 / (1 + math.exp(epsilon))))


MECHANISMS = {  # of ε = 1 each, and what their outputs are
    "number": lambda rng: lambda d: d + rng.laplace(),
    "category": lambda rng: lambda d: randomised_response(1.0, rng)(d),
    "vector": lambda rng: lambda d: (d + rng.laplace(), rng.normal(), rng.normal()),
    "sequence": lambda rng: lambda d: (randomised_response(0.5, rng)(d), "x", randomised_response(0.5, rng)(d)),
}


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_bound_is_above_the_true_loss_as_rarely_as_it_says(kind) -> None:
    """Confidence 0.8, with 10^-4 for either error: a bound wrong twice as often as it says is found."""
    mechanism = MECHANISMS[kind](np.random.default_rng(1))
    audits = (audit.distinguish(mechanism, 0, 1, runs=400, kind=kind, confidence=0.8) for _ in itertools.count())
    assert is_kept((found.epsilon > 1.0 for found in audits), 0.2, 0.4, false_fail=1e-4, false_pass=1e-4)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_most_of_a_known_loss_is_found(kind) -> None:
    found = audit.distinguish(MECHANISMS[kind](np.random.default_rng(2)), 0, 1, runs=16_000, kind=kind)
    assert 0.6 < found.epsilon <= 1.0
    assert found.refutes(0.6) and not found.refutes(1.0)


def test_a_statistic_learned_on_the_runs_that_judge_it_would_find_a_loss_where_there_is_none() -> None:
    """Why runs are split: outputs that are all different, the same for both neighbours."""
    rng = np.random.default_rng(3)
    first, second = ([int(z) for z in rng.integers(0, 10**6, 400)] for _ in range(2))
    scorer = learned.of_categories(first, second)[0]
    event = bounds.best_tail(scorer(first), scorer(second), 400)
    cheated = bounds.bound_of_hits(event.hits(scorer(first)), event.hits(scorer(second)), 400)
    assert cheated > 2
    assert audit.distinguish(lambda d: int(rng.integers(0, 10**6)), 0, 1, runs=400, kind="category").epsilon == 0


def test_a_vector_is_told_apart_by_the_direction_that_no_coordinate_shows() -> None:
    """A large common noise hides the difference of two coordinates from each of them."""
    rng = np.random.default_rng(4)

    def run(d):
        common = 50 * rng.normal()
        return (common + d + rng.laplace() / 2, common)

    assert audit.distinguish(run, 0, 1, runs=8000, kind="vector").epsilon > 1.0


def test_a_sequence_is_told_apart_by_the_order_of_its_items() -> None:
    """The same items as often on either neighbour: one in order, the other shuffled."""
    rng = np.random.default_rng(5)
    run = lambda ordered: (0, 1) if ordered else tuple(int(z) for z in rng.permutation(2))  # noqa: E731
    assert audit.distinguish(run, True, False, runs=4000, kind="sequence").epsilon > 0.5


def test_sequences_of_numbers_that_end_early_are_audited_by_bins() -> None:
    rng = np.random.default_rng(6)
    run = lambda d: [d + rng.laplace() for _ in range(rng.integers(1, 4))]  # noqa: E731
    assert audit.distinguish(run, 0, 2, runs=4000, kind="sequence").epsilon > 1.0


def test_ones_own_statistic_is_used_as_it_is() -> None:
    rng = np.random.default_rng(7)
    found = audit.distinguish(lambda d: {"answer": d + rng.laplace()}, 0, 1, runs=8000, statistic=lambda z: z["answer"])
    assert 0.7 < found.epsilon <= 1.0


def seeded(number: int):
    rng = np.random.default_rng(number)
    return lambda d: d + rng.laplace()


def test_the_bound_does_not_depend_on_the_number_of_processes() -> None:
    found = [
        audit.distinguish(audit.PerProcess(seeded), 0, 1, runs=2000, workers=workers, progress=False)
        for workers in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]


def test_processes_have_noise_of_their_own() -> None:
    """Each block makes its noise; noise made here is refused there."""
    make = lambda number: lambda d: float(Noise().generator().random())  # noqa: E731
    first, second = sampled.outputs_of(audit.PerProcess(make), (0, 1), 128, workers=2)
    assert len({*first, *second}) == 256
    ours = Seeded(1)
    shared = audit.PerProcess(lambda number: lambda d: float(ours.generator().random()))
    with pytest.raises(InvalidInput, match="Noise must be used in the process that made it"):
        sampled.outputs_of(shared, (0, 1), 128, workers=2)


def test_a_process_that_dies_ends_the_audit_with_a_sentence() -> None:
    dying = audit.PerProcess(lambda number: lambda d: os._exit(1))
    with pytest.raises(InvalidInput, match="Found that one died"):
        sampled.outputs_of(dying, (0, 1), 128, workers=2)


def test_a_plain_function_is_refused_for_several_processes() -> None:
    with pytest.raises(InvalidInput, match="must be a PerProcess"):
        audit.distinguish(lambda d: 0.0, 0, 1, runs=100, workers=2)


def test_too_few_runs_and_unknown_kinds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="runs must be at least 64"):
        audit.distinguish(lambda d: 0.0, 0, 1, runs=63)
    with pytest.raises(InvalidInput, match="kind must be"):
        audit.distinguish(lambda d: 0.0, 0, 1, runs=100, kind="tensor")
    with pytest.raises(InvalidInput, match="A vector must have the same number of entries"):
        sizes = iter([1, 2] * 200)
        audit.distinguish(lambda d: [0.0] * next(sizes), 0, 1, runs=100, kind="vector")


# Power


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 10**6), st.floats(0.5, 0.999999), st.floats(0, 0.5))
def test_no_audit_finds_more_than_is_reachable(runs, confidence, delta) -> None:
    reachable = audit.reachable_epsilon(runs, confidence=confidence, delta=delta)
    hits = np.linspace(0, runs, 5).astype(int)
    found = [bounds.bound_of_hits(p, q, runs, delta=delta, confidence=confidence) for p in hits for q in hits]
    assert max(found) == reachable


def test_the_reachable_bound_is_found_if_an_output_reveals_the_table() -> None:
    found = audit.distinguish(lambda d: d, 0, 1, runs=1000)
    assert found.epsilon == found.reachable == audit.reachable_epsilon(750)


def test_the_stated_runs_are_the_fewest_within_a_per_cent_that_reach_an_epsilon() -> None:
    runs = sampled.runs_for(3.0)
    assert audit.reachable_epsilon(runs) > 3.0 > audit.reachable_epsilon(int(runs * 0.98))


def test_the_power_of_an_event_is_what_simulations_have() -> None:
    """An event of 0.3 and 0.1 in 2000 runs: the stated bound is missed, and a claim below it refuted, as often as said."""
    p, q, runs, rng = 0.3, 0.1, 2000, np.random.default_rng(8)
    stated = audit.epsilon_of_event(p, q, runs, miss=0.05)
    chance = bounds.chance_to_refute(p, q, runs, 0.65)
    found = np.array(
        [
            bounds.bound_of_hits(int(a), int(b), runs)
            for a, b in zip(rng.binomial(runs, p, 2000), rng.binomial(runs, q, 2000), strict=True)
        ]
    )
    assert np.mean(found < stated) <= 0.05
    assert 0.5 < stated < math.log(p / q)
    assert 0.5 < chance <= np.mean(found > 0.65) + 0.02


def test_an_event_that_tells_nothing_has_no_chance_to_refute() -> None:
    assert bounds.chance_to_refute(0.3, 0.3, 1000, 0.5) < 1e-6
