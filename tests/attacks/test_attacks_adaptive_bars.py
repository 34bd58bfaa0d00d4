"""Bars hold against analysts who know the table and the noise. ``adaptive_bars`` defines them and writes the results."""

from __future__ import annotations

import itertools

import adaptive_bars as attacks
import numpy as np
import pandas as pd
import pytest

import hedgerow as hr

FEW = 8


@pytest.mark.parametrize(("kind", "narrow"), [("counts", 0.18), ("over time", 0.2)])
def test_bars_hold_for_a_few_sessions_and_much_narrower_ones_would_not(kind, narrow) -> None:
    """β = 0.05: that more of the sessions fail than are allowed has a probability of at most 1e-6. With bars of ``narrow`` of the width more do."""
    found = attacks.run(kind, FEW, betas=(0.05,))
    assert found.holds, found.worst
    assert sum(ratio > narrow for ratio in found.ratios[0.05]) > found.allowed[0.05]


@pytest.mark.audit
@pytest.mark.parametrize("kind", attacks.KINDS)
def test_bars_hold_against_an_analyst_who_knows_the_table(kind) -> None:
    """Among 200 sessions, at β = 0.05 and at 0.3, no more fail than β explains, except with probability 1e-6."""
    found = attacks.run(kind)
    print(found)
    assert found.holds, found.worst


@pytest.mark.audit
def test_typical_errors_are_within_a_factor_of_two() -> None:
    """For classes of questions that were measured. Each mean is over the answers of 100 sessions, so it is known to about 5 %."""
    found = attacks.typical_errors()
    print({what: round(ratio, 2) for what, (ratio, _) in found.items()})
    assert {what: ratio for what, (ratio, _) in found.items() if not 0.5 <= ratio <= 2} == {}


def test_the_bar_of_flips_reaches_the_farther_end_of_their_interval() -> None:
    """After one flip the value is 0 or 1, and the interval nearly everything."""
    universe = hr.Universe(flag=hr.Flag())
    people = pd.DataFrame({"flag": np.arange(1000) % 2 == 0})
    session = hr.open(people, universe=universe, budget=hr.Budget(1.0, 1e-6), keep_rows=True, reserve=0.9, seed=1)
    for found in itertools.islice(session.sample_yes_no_stream(hr.count(flag=True)), 40):
        assert found.value - found.error <= found.low + 1e-12 and found.high - 1e-12 <= found.value + found.error
        assert abs(found.value - 0.5) <= found.error


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "approximate"])
def test_the_typical_error_of_all_rows_is_that_of_their_number_where_it_is_private(delta) -> None:
    """|ñ − n| of 20 sessions: their mean is a sum of exponentials at worst, and within a factor of four of what it is but with probability 1e-7."""
    universe = hr.Universe(a=hr.Integers(0, 1), b=hr.Flag())
    people = pd.DataFrame({"a": np.arange(500) % 2, "b": np.arange(500) % 5 == 0})
    answers = [
        hr.open(people, universe=universe, budget=hr.Budget(2.0, delta, "add-remove"), seed=seed).ask(hr.count(), scale="rows")
        for seed in range(20)
    ]  # fmt: skip
    off, usual = (np.mean(x) for x in ([abs(a.value - 500) for a in answers], [a.typical for a in answers]))
    assert usual / 4 < off < 4 * usual
    public = hr.open(people, universe=universe, budget=hr.Budget(2.0, delta), seed=1).ask(hr.count(), scale="rows")
    assert public.typical == 0 and public.value == 500
