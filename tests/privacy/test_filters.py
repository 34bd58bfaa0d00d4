"""The contract of every filter: it admits from public facts, admitting spends nothing, and counting is exact.

A new filter is tested by one line in ``FILTERS``: how to make it, what it can spend on the events of a maker, and the maker.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.ledger.caps import Author, CappedFilter, Caps
from hedgerow.privacy.allowance import CallFilter
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import ApproximateDP, Event, Gaussian, Laplace, PoissonSample
from hedgerow.privacy.filter import FIT, Filter, Standing
from hedgerow.privacy.log import Entry

PURE, APPROXIMATE, SLACK, SHARE = Budget(1.0, 0.0), Budget(1.0, 1e-6), 4e-7, 0.5


def laplace(cost: float) -> Event:
    return Laplace(1.0, 1.0 / cost)


def gaussian(cost: float) -> Event:
    return Gaussian(1.0, math.sqrt(0.5 / cost), 2.0**-20)


def planned(cost: float) -> Event:
    event = APPROXIMATE.plan_noise(gaussian(cost), SHARE)  # type: ignore[arg-type]
    assert event is not None
    return event


def capped(standing: Standing | None = None) -> Filter:
    caps = Caps(APPROXIMATE, Author("heart/ana", is_opening=False), {"heart": 0.5 * APPROXIMATE.total}, {})
    return CappedFilter(APPROXIMATE, 0.0, standing or Standing(), caps)


@dataclass(frozen=True)
class Kind:
    """``room``: all that events of ``of`` may cost together."""

    make: Callable[..., Filter]
    room: float
    of: Callable[[float], Event]


FILTERS = {
    "pure": Kind(lambda standing=None: Filter(PURE, 0.0, standing), 1.0, laplace),
    "zCDP": Kind(lambda standing=None: Filter(APPROXIMATE, 0.0, standing), APPROXIMATE.total, gaussian),
    "slack": Kind(lambda standing=None: Filter(APPROXIMATE, SLACK, standing), APPROXIMATE.rho(SLACK), gaussian),
    "planned": Kind(lambda standing=None: Filter(APPROXIMATE, 0.0, standing), SHARE * APPROXIMATE.total, planned),
    "capped": Kind(capped, 0.5 * APPROXIMATE.total, gaussian),
    "add-remove": Kind(
        lambda standing=None: Filter(Budget(1.0, 1e-6, "add-remove"), 0.0, standing), APPROXIMATE.total, gaussian
    ),
}
every = pytest.mark.parametrize("kind", FILTERS.values(), ids=list(FILTERS))
resumable = pytest.mark.parametrize(
    "kind", [kind for name, kind in FILTERS.items() if name != "capped"], ids=[n for n in FILTERS if n != "capped"]
)


def charge(filter: Filter, *events: Event) -> float:
    """As a cashier does."""
    cost = filter.admit(events, [filter.budget.cost(event) for event in events])
    entry = Entry(0, events, cost)
    filter.count(entry)
    if isinstance(filter, CappedFilter):
        filter._caps.count("heart/ana", entry)
    return cost


@every
def test_a_new_filter_has_spent_nothing(kind) -> None:
    filter = kind.make()
    assert (filter.spent, filter.spent_epsilon, filter.standing) == (0.0, 0.0, Standing())
    assert filter.slack == filter.set_aside
    assert filter.remaining >= kind.room * (1 - 1e-12)


@every
def test_admitting_and_affording_spend_nothing(kind) -> None:
    filter, event = kind.make(), kind.of(kind.room / 3)
    for _ in range(5):
        assert filter.affords(event)
        assert filter.admit((event,), [filter.budget.cost(event)]) == filter.budget.cost(event)
    assert filter.standing == Standing() and filter.spent == 0.0


@every
@pytest.mark.parametrize("parts", [1, 3, 7, 49])
def test_all_there_is_passes_in_equal_parts_and_no_more(kind, parts) -> None:
    filter, event = kind.make(), kind.of(kind.room * (1 - 1e-9) / parts)
    for _ in range(parts):
        assert filter.affords(event)
        charge(filter, event)
    before = filter.standing
    more = kind.of(kind.room * 1e-6)
    assert not filter.affords(more)
    with pytest.raises(BudgetExceeded):
        charge(filter, more)
    assert filter.standing == before
    assert filter.spent == pytest.approx(kind.room, rel=1e-6)
    assert filter.spent <= kind.room * (1 + 1e-11)
    assert filter.spent_epsilon <= filter.budget.epsilon * (1 + 1e-11)


@every
def test_events_pass_together_or_not_at_all(kind) -> None:
    filter, event = kind.make(), kind.of(0.6 * kind.room)
    assert filter.affords(event) and not filter.affords(event, event)
    with pytest.raises(BudgetExceeded):
        charge(filter, event, event)
    assert filter.standing == Standing()
    charge(filter, event)
    assert not filter.affords(event)


@every
@settings(max_examples=40, deadline=None)
@given(shares=st.lists(st.floats(1e-6, 0.9), max_size=12))
def test_no_sequence_of_admitted_events_exceeds_the_total_and_the_sum_is_exact(kind, shares) -> None:
    filter, exact = kind.make(), Fraction(0)
    for share in shares:
        event = kind.of(share * kind.room)
        try:
            charge(filter, event)
        except BudgetExceeded:
            continue
        exact += Fraction(filter.budget.cost(event))
    assert filter.standing.spent == exact <= Fraction(kind.room) * (1 + FIT) * (1 + Fraction(1, 10**15))


@every
def test_events_without_a_finite_price_are_refused(kind) -> None:
    with pytest.raises(BudgetExceeded, match="cost must be finite"):
        charge(kind.make(), PoissonSample(1))


@every
def test_a_delta_of_ones_own_comes_out_of_the_slack_alone(kind) -> None:
    filter, delta = kind.make(), SLACK / 2
    event = ApproximateDP(1e-6, delta)
    for _ in range(round(filter.set_aside / delta)):
        charge(filter, event)
    assert filter.slack == pytest.approx(0.0, abs=1e-18)
    with pytest.raises(BudgetExceeded):
        charge(filter, event)


@resumable
def test_a_filter_that_goes_on_from_a_standing_admits_what_the_first_would(kind) -> None:
    first = kind.make()
    charge(first, kind.of(0.3 * kind.room))
    charge(first, kind.of(0.2 * kind.room))
    again = kind.make(first.standing)
    assert again.standing == first.standing and again.remaining == first.remaining
    assert again.spent_epsilon == first.spent_epsilon
    for share in (0.4, 0.6):
        event = kind.of(share * kind.room)
        assert again.affords(event) == first.affords(event) == (share < 0.5)


@resumable
def test_earlier_entries_count_even_beyond_the_budget(kind) -> None:
    filter, event = kind.make(), kind.of(0.8 * kind.room)
    for number in range(2):
        filter.count_earlier(Entry(number, (event,), filter.budget.cost(event)))
    assert filter.spent == pytest.approx(1.6 * kind.room)
    assert not filter.affords(kind.of(1e-6 * kind.room))
    with pytest.raises(InvalidInput, match="An earlier entry must have a cost"):
        filter.count_earlier(Entry(2, (PoissonSample(1),), 0.0))


@resumable
def test_the_check_of_charges_by_themselves_does_not_depend_on_spending(kind) -> None:
    filter, event = kind.make(), kind.of(0.4 * kind.room)
    charge(filter, event, event)
    assert filter.would_fit([(event,), (event,)])
    assert not filter.would_fit([(event,), (event,), (event,)])


def test_a_slack_must_hold_what_earlier_entries_took_of_it() -> None:
    filter = Filter(APPROXIMATE, SLACK)
    filter.count_earlier(Entry(0, (ApproximateDP(1e-3, 0.9 * SLACK),), 0.0))
    filter.require_slack()
    filter.count_earlier(Entry(1, (ApproximateDP(1e-3, 0.9 * SLACK),), 0.0))
    with pytest.raises(InvalidInput, match="slack must be at least"):
        filter.require_slack()


def test_planned_noise_and_all_else_have_parts_of_their_own() -> None:
    filter = Filter(APPROXIMATE)
    charge(filter, planned(0.9 * SHARE * APPROXIMATE.total))
    assert filter.remaining == pytest.approx((1 - SHARE) * APPROXIMATE.total)
    charge(filter, gaussian(0.9 * (1 - SHARE) * APPROXIMATE.total))
    for more in (planned, gaussian):
        assert not filter.affords(more(0.2 * SHARE * APPROXIMATE.total))
    late = Filter(APPROXIMATE)
    charge(late, gaussian(1e-3))
    assert not late.affords(planned(1e-3))  # the share could depend on what was released


def test_a_cap_limits_a_project_as_a_whole_and_openings_are_on_nobodys_cap() -> None:
    author = Author("heart/ana", is_opening=True)
    caps = Caps(APPROXIMATE, author, {"heart": 0.5 * APPROXIMATE.total}, {})
    filter = CappedFilter(APPROXIMATE, 0.0, Standing(), caps)
    dear = gaussian(0.6 * APPROXIMATE.total)
    assert filter.affords(dear) and filter.remaining == APPROXIMATE.total
    author.is_opening = False
    assert not filter.affords(dear)
    entry = Entry(0, (gaussian(0.4 * APPROXIMATE.total),), 0.4 * APPROXIMATE.total)
    caps.count("heart/ben", entry)
    caps.count("hearty", entry)  # of another project
    assert filter.remaining == pytest.approx(0.1 * APPROXIMATE.total)


def test_one_call_is_admitted_once_and_is_what_was_certified() -> None:
    filter = CallFilter(APPROXIMATE)
    event = gaussian(0.1 * APPROXIMATE.total)
    assert filter.affords(event) and filter.spent == 0.0
    cost = charge(filter, event)
    assert filter.spent == filter.spent_epsilon == cost > 0 and filter.remaining == 0.0
    assert not filter.affords(gaussian(1e-9))
