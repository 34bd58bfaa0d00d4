"""The basis of audits of whole mechanisms: with equal noise on both neighbours, draws move by nearly the billed sensitivity."""

import math

import pytest

from hedgerow.privacy.noise import Seeded
from hedgerow.privacy.planned import price
from hedgerow.query.counts import count
from hedgerow.research.audit_cases import convex_cases, row_cases, session_cases
from hedgerow.research.audit_cases.own_mechanisms import APPROXIMATE, COMING
from hedgerow.research.audit_cases.session_cases import REMOVED, REPLACED, release_run, session_run, spend_all


@pytest.mark.parametrize("name", convex_cases.FAMILIES)
def test_a_turned_row_moves_an_oracle_by_its_sensitivity(name) -> None:
    """Along (1, 1), so that the coordinates' sum moves by √2 times the norm at every step."""
    plan = convex_cases.config(name).plan
    up, down = (convex_cases.online(name, table, Seeded(3)) for table in convex_cases.FAMILIES[name].tables)
    assert 0.94 < abs(up - down) / (math.sqrt(2) * plan.steps * plan.noise.sensitivity) <= 1


def test_a_turned_row_moves_the_offline_oracle_by_its_sensitivity() -> None:
    plan = convex_cases.config("noisy descent").plan
    up, down = (convex_cases.offline(table, Seeded(3)) for table in convex_cases.FAMILIES["noisy descent"].tables)
    assert 0.94 < abs(up - down) / (math.sqrt(2) * plan.steps * plan.noise.sensitivity) <= 1


def nothing(session, within):
    return within


SESSIONS = {
    "open": (APPROXIMATE, REPLACED, nothing, {"reserve": 0.0, "guard": 0.0}, 0.75),
    "add-remove": (COMING, REMOVED, nothing, {"reserve": 0.0, "guard": 0.0}, 0.75),
    "within": (APPROXIMATE, REPLACED, spend_all(count(x=0)), {"reserve": 0.95, "guard": 0.0}, 0.9),
    "guard": (APPROXIMATE, session_cases.GUARDED, session_cases.ask_the_guard, session_cases.GUARD, 0.8),
    "blocks": (APPROXIMATE, REPLACED, session_cases.ask_over_time, session_cases.GROWING, 0.75),
    "convex": (
        convex_cases.CLAIM,
        session_cases.CORRELATED,
        spend_all(session_cases.QUESTION),
        session_cases.KNOWN,
        0.8,
    ),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_reveals_nearly_as_much_about_a_row_as_it_may(name) -> None:
    """The same Gaussian noise on both tables: the log-likelihood ratios differ by Σ(Δ/σ)² = 2ρ of all that was measured.

    Where that was planned it may be more than the budget's 2ρ, up to what Gaussian noise alone may tell.
    """
    budget, pair, ask, options, least = SESSIONS[name]
    run = session_run(budget, pair, ask, seed=5, **options)
    first, second = (run(table, Seeded(0)) for table in pair)
    assert least < (first - second) / (2 * budget.total) <= 1 / price(budget.epsilon, budget.delta, 1.0)


def test_a_release_spends_its_budget_on_what_a_row_moves() -> None:
    first, second = (release_run(APPROXIMATE, REPLACED, seed=5)(table, Seeded(0)) for table in REPLACED)
    most = 1 / price(APPROXIMATE.epsilon, APPROXIMATE.delta, 1.0)
    assert 0.9 * most < (first - second) / (2 * APPROXIMATE.total) <= most


def test_a_row_from_one_end_of_a_number_to_the_other_moves_the_certificate_of_means_by_its_sensitivity() -> None:
    first, second = (row_cases.certificate_of_means(row_cases.PURE)(table, Seeded(3)) for table in row_cases.OF_MEANS)
    assert abs(first - second) == pytest.approx(1.0)


def test_a_turned_row_moves_the_certificate_of_losses_by_its_sensitivity() -> None:
    run = row_cases.certificate_of_losses(row_cases.PURE)
    first, second = (run(table, Seeded(3)) for table in session_cases.CORRELATED)
    assert 0.94 < abs(first - second) <= 1
