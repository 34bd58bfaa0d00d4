"""An asker who changes a question, or interrupts one, neither sees a count nor gets more than was billed."""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.errors import InvalidInput
from hedgerow.privacy.events import Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.query.linear import Linear

UNIVERSE = hr.Universe(a=hr.Integers(0, 3), b=hr.Integers(0, 2))
COUNTS = np.arange(12).reshape(4, 3) * 10_000_000
WEIGHTED = Linear(("a",), (4,), (np.array([1e6, 0.0, 0.0, 0.0]),), None, True)  # says that it is a count


def opened(**options: Any) -> hr.Session:
    return hr.open(HistogramSource(UNIVERSE, COUNTS), universe=UNIVERSE, budget=hr.Budget(1.0, 1e-6), **options)


class Own(hr.Query):
    def on(self, universe: hr.Universe) -> Linear:
        return WEIGHTED


class OwnCount(type(hr.count(a=0))):  # type: ignore[misc]
    def on(self, universe: hr.Universe) -> Linear:
        return WEIGHTED


@pytest.mark.parametrize("profile", ["practical", "theory"])
def test_a_question_of_ones_own_class_is_refused(profile) -> None:
    session = opened(profile=profile)
    combined = hr.any_of(hr.count(a=0), hr.count(b=0))
    combined.parts = (OwnCount(()), hr.count(b=0))
    for question in (Own(), OwnCount(()), combined):
        with pytest.raises(InvalidInput):
            session.ask(question)
        with pytest.raises(InvalidInput):
            session.ask_all([question])
    for question in (Own(), OwnCount(())):
        with pytest.raises(InvalidInput):
            opened(workload=[question])
        with pytest.raises(InvalidInput):
            hr.mean("a", where=question).on(UNIVERSE)


def test_a_method_put_on_a_question_is_not_called() -> None:
    question = hr.count(a=0)
    question.on = lambda universe: WEIGHTED  # type: ignore[method-assign]
    answer = opened().ask(question)
    assert 0 <= answer.value <= 1


def test_an_array_with_methods_of_its_own_never_sees_a_count() -> None:
    seen = []

    class Spy(np.ndarray):
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
            seen.append(inputs)
            return getattr(ufunc, method)(*(np.asarray(x) for x in inputs), **options)

    session = opened(profile="theory")
    session.ask(hr.count(a=np.array([True, False, True, False]).view(Spy)))
    assert session.log
    assert not seen


def test_a_mask_that_changes_while_it_is_bound_is_still_of_zeros_and_ones() -> None:
    mask = np.array([True, False, True, False])

    class Changes(set):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 2.5 warns, and does it all the same
                mask.dtype = np.uint8
            mask[0] = 200
            return super().__iter__()

    bound = hr.count(a=mask, b=Changes([0, 1])).on(UNIVERSE)
    assert bound.vectors is not None
    assert all(vector.dtype == bool for vector in bound.vectors)


def test_a_mask_that_changes_later_leaves_the_question_as_it_was() -> None:
    mask = np.array([True, False, True, False])
    bound = hr.count(a=mask).on(UNIVERSE)
    mask[:] = [False, True, True, True]
    assert bound.table.tolist() == [1, 0, 1, 0]


def test_questions_hold_the_universes_own_names() -> None:
    class Name(str):
        pass

    for bound in (hr.count({Name("a"): 0}).on(UNIVERSE), hr.linear([Name("a")], [0, 0.5, 1, 1]).on(UNIVERSE)):
        assert [type(name) for name in bound.attributes] == [str]


def test_a_tolerance_is_read_once_as_a_number() -> None:
    class Tolerance(float):
        def __lt__(self, other: object) -> bool:
            return True

        __gt__ = __le__ = __ge__ = __lt__

    with pytest.raises(InvalidInput, match="within"):
        opened().ask(hr.count(a=0), within=Tolerance(-1.0))


def test_a_charge_within_a_charge_cannot_overspend() -> None:
    """As from the handler of a signal or a finaliser, at whatever call or return of the outer charge it comes."""
    whole = Laplace(1.0, 1.0)  # all of the budget
    place, reached = 0, True
    while reached:
        accountant, passed, reached = Accountant(hr.Budget(1.0, 0.0)), 0, False

        def interrupt(frame: Any, kind: str, argument: Any, account=accountant, at=place) -> None:
            nonlocal passed, reached
            passed += 1
            if passed == at:
                reached = True
                with contextlib.suppress(hr.HedgerowError):
                    account.charge(whole)

        place += 1
        before = sys.getprofile()
        sys.setprofile(lambda f, k, x, i=interrupt, p=place: i(f, k, x, at=p))
        try:
            accountant.charge(whole)
        except hr.BudgetExceeded:
            pass
        finally:
            sys.setprofile(before)
        assert len(accountant.events) <= 1
        assert accountant.spent <= 1
    assert place > 10
