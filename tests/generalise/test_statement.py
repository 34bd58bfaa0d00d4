"""The population statement of a session: the bound and its theorem, or that no theorem applies."""

from __future__ import annotations

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.generalise import transfer
from hedgerow.generalise.statement import FIRST, population_statement
from hedgerow.privacy.budget import Budget

UNIVERSE = hr.Universe.from_sizes({"a": 2, "b": 3})


def opened(epsilon: float, **options):
    counts = np.full((2, 3), 500_000)
    return hr.open(
        HistogramSource(UNIVERSE, counts), universe=UNIVERSE, budget=Budget(epsilon, 1e-9), seed=1, **options
    )


def test_a_session_with_little_privacy_spent_states_both_errors_and_the_theorem() -> None:
    session = opened(0.02)
    answer = session.ask(hr.count(a=1))
    said = session.generalisation
    assert said.is_useful and said.theorem == transfer.MONITOR
    assert session.population_error(answer) == pytest.approx(answer.error + said.extra)
    assert said.beta == pytest.approx(0.1) and said.sample_beta == 0.05
    assert transfer.MONITOR in str(said) and f"{FIRST:,} answers" in str(said)


def test_a_session_at_an_epsilon_of_one_says_that_no_theorem_helps() -> None:
    session = opened(1.0)
    assert not session.generalisation.is_useful
    assert session.population_error(session.ask(hr.count(a=1))) is None
    assert "No theorem" in str(session.generalisation)


def test_bars_that_rarely_fail_transfer_by_the_newer_theorem_where_rows_are_private() -> None:
    budget = Budget(0.01, 1e-12, "add-remove")
    said = population_statement(budget, rows=None, asked=1, sample_beta=1e-3)
    assert said.theorem == transfer.JUNG and (said.epsilon, said.beta) == (0.02, 2e-3)
    assert said.extra == transfer.jung(0.02, said.delta, 0.0, 1e-3, 2e-3)


def test_under_add_remove_no_statement_rests_on_an_estimate_of_n() -> None:
    counts, budget = HistogramSource(UNIVERSE, np.full((2, 3), 500_000)), Budget(0.01, 1e-12, "add-remove")
    session = hr.open(counts, universe=UNIVERSE, budget=budget, seed=1)
    session.ask(hr.count(a=1))
    said = session.generalisation
    assert said == population_statement(budget, rows=None, asked=1, sample_beta=0.05) and transfer.MONITOR not in str(
        said
    )
    assert (
        population_statement(budget, rows=session.rows, asked=1, sample_beta=0.05).extra < said.extra
    )  # which would be better, and unproved


def test_the_statement_widens_with_the_questions_and_its_betas_add_up() -> None:
    budget, asked = Budget(0.02, 1e-9), [1, FIRST, FIRST + 1, 100 * FIRST]
    found = [population_statement(budget, rows=3e6, asked=k, sample_beta=0.05) for k in asked]
    assert [said.questions for said in found] == [FIRST, FIRST, 4 * FIRST, 256 * FIRST]
    assert found[0].extra == transfer.sample_gap(0.02, 1e-9, 3e6, FIRST, 0.025)
    assert found[2].extra == transfer.sample_gap(0.02, 1e-9, 3e6, 4 * FIRST, 0.0125)
    assert found[0].extra == found[1].extra < found[2].extra < found[3].extra


def test_the_cells_of_a_table_are_questions_too_and_a_mean_is_no_fraction() -> None:
    session = opened(0.02)
    assert session.population_error(session.ask(hr.marginal("a", "b"))) is not None
    for _ in range(3):
        session.ask(hr.count(a=1))
    assert session.population_error(session.ask(hr.mean("b"))) is None


def test_a_session_opened_with_another_beta_says_so() -> None:
    assert opened(0.02, beta=0.01).generalisation.sample_beta == 0.01
