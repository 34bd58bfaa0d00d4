"""Linear algebra uses one thread while the package computes, and the user's number before and after."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import scipy
import threadpoolctl
from people import SMALL, frame

import hedgerow as hr
from hedgerow import erm
from hedgerow._threads import OneThread
from hedgerow.data import Table
from hedgerow.losses import Logistic

GIVEN = 3  # unlike what a machine has by default


def threads() -> set[int]:
    """Return the numbers of threads of every BLAS in this process: NumPy's and SciPy's."""
    assert scipy.linalg is not None
    found = threadpoolctl.ThreadpoolController().select(user_api="blas").info()
    assert found
    return {library["num_threads"] for library in found}


@pytest.fixture(autouse=True)
def given() -> Iterator[None]:
    assert threads()
    with threadpoolctl.threadpool_limits(GIVEN, user_api="blas"):
        assert threads() == {GIVEN}
        yield
        assert threads() == {GIVEN}


class Watched(Table):
    """A table that notes how many threads there are when it is counted."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.seen: set[int] = set()

    def marginals(self, sets: Sequence[tuple[int, ...]]) -> Any:
        self.seen |= threads()
        return super().marginals(sets)


BUDGET = hr.Budget(1.0, 1e-6)


def a_session(data: Watched) -> None:
    hr.open(data, universe=SMALL, budget=BUDGET, seed=1, progress=False)


def a_purchase(data: Watched) -> None:
    session = hr.open(data, universe=SMALL, budget=BUDGET, reserve=0.5, seed=1, progress=False)
    data.seen.clear()
    assert session.ask(hr.count(age=3, smoker=True, region=1), within=0.0018).cost > 0


def a_release(data: Watched) -> None:
    hr.release(data, universe=SMALL, budget=BUDGET, seed=1, progress=False)


def the_lecture_s_release(data: Watched) -> None:
    hr.release(data, universe=SMALL, budget=BUDGET, method="mwem", workload=hr.marginals(1), seed=1, progress=False)


@pytest.mark.parametrize("work", [a_session, a_purchase, a_release, the_lecture_s_release])
def test_counting_uses_one_thread_and_restores_the_users_number_of_threads(work: Callable[[Watched], None]) -> None:
    data = Watched(frame(), SMALL)
    work(data)
    assert data.seen == {1}


def test_one_private_model_is_fitted_on_one_thread() -> None:
    seen: set[int] = set()

    class Labels:
        """Labels that note the number of threads whenever they are read."""

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            seen.update(threads())
            return np.arange(30) % 2

    rows = np.linspace(-1, 1, 60).reshape(30, 2)
    erm.objective_perturbation(rows, Labels(), loss=Logistic(), over=hr.L2Ball(1.0), budget=BUDGET, seed=1)
    assert seen == {1}


def test_the_setting_is_restored_after_an_error_and_only_by_the_outermost_call() -> None:
    one = OneThread()

    @one
    def inner() -> set[int]:
        return threads()

    with pytest.raises(ZeroDivisionError), one:
        assert inner() == {1}
        assert threads() == {1}
        _ = 1 / 0
    assert threads() == {GIVEN}


def test_threads_that_work_at_once_give_back_what_there_was_before_the_first() -> None:
    one, begun, may_end = OneThread(), threading.Event(), threading.Event()

    def longer() -> None:
        with one:
            begun.set()
            may_end.wait(30)

    other = threading.Thread(target=longer)
    with one:
        other.start()
        assert begun.wait(30)
    assert threads() == {1}  # the other is still at work
    may_end.set()
    other.join()
    assert threads() == {GIVEN}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_while_another_thread_works_is_not_left_with_one() -> None:
    one, begun, may_end = OneThread(), threading.Event(), threading.Event()

    def longer() -> None:
        with one:
            begun.set()
            may_end.wait(30)

    other = threading.Thread(target=longer)
    other.start()
    assert begun.wait(30)
    child = os.fork()
    if child == 0:
        try:
            with one:
                inside = threads()
            os._exit(0 if inside == {1} and threads() == {GIVEN} else 1)
        finally:
            os._exit(2)
    try:
        assert os.waitpid(child, 0)[1] == 0
    finally:
        may_end.set()
        other.join()
