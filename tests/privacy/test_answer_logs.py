"""The contract of every log of answers: it has the last answer to each question, in the order given.

A new one is tested by one line in ``LOGS``: how to open a session whose ledger has it.
"""

from __future__ import annotations

import numpy as np
import pytest
from fresh_ledgers import postgres_url, sqlite_url

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.privacy.accounts import BlocksQuestion
from hedgerow.privacy.answer_log import AnswerLog
from hedgerow.privacy.events import Gaussian
from hedgerow.privacy.ledger import Ledger
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import bound

UNIVERSE = hr.Universe(a=hr.Integers(0, 3), b=hr.Integers(0, 2))
TABLE = HistogramSource(UNIVERSE, np.arange(12).reshape(4, 3) * 100 + 50)
QUESTIONS = [bound(q, UNIVERSE) for q in (hr.count(a=1), hr.count(a=(1, 2), b=0), hr.marginal("a"), hr.count(b=2))]
LOGS = {"memory": lambda: hr.Accountant(hr.Budget(1.0, 1e-6)), "SQLite": sqlite_url, "PostgreSQL": postgres_url}
EVENT = Gaussian(1.0, 1000.0)
every = pytest.mark.parametrize("fresh", LOGS.values(), ids=list(LOGS))
on_disk = pytest.mark.parametrize("fresh", [sqlite_url, postgres_url], ids=["SQLite", "PostgreSQL"])


def opened(place: object) -> Ledger:
    return hr.open(TABLE, universe=UNIVERSE, budget=hr.Budget(1.0, 1e-6), guard=0.0, reserve=0.5, ledger=place).ledger


def answer(value: object) -> Estimate:
    return Estimate(value, np.full(np.shape(value), 0.1) if np.ndim(value) else 0.1, "hypothesis")


ANSWERS = [answer(0.25), answer(0.5), answer(np.arange(4.0)), answer(0.125)]


def heard(log: AnswerLog) -> list[object]:
    return [(question.key, np.asarray(found.value).tolist()) for question, found in log.answers()]


def told() -> list[object]:
    return [(q.key, np.asarray(a.value).tolist()) for q, a in zip(QUESTIONS, ANSWERS, strict=True)]


@every
def test_answers_are_kept_in_order_and_found_by_every_reader(fresh) -> None:
    place = fresh()
    log = opened(place).answer_log
    assert log.answers() == () and log.recall(QUESTIONS[0]) is None
    for question, found in zip(QUESTIONS, ANSWERS, strict=True):
        log.note(question, found)
    assert heard(log) == told()
    log.flush()
    assert heard(log) == told()
    if isinstance(place, str):
        again = opened(place).answer_log
        assert heard(again) == told()
        for question, found in zip(QUESTIONS, ANSWERS, strict=True):
            recalled = again.recall(question)
            assert np.array_equal(recalled.value, found.value) and np.array_equal(recalled.error, found.error)
    else:
        assert [log.recall(question) for question in QUESTIONS] == ANSWERS


@every
def test_the_last_answer_to_a_question_is_the_one_that_is_repeated(fresh) -> None:
    place = fresh()
    ledger = opened(place)
    for value in (0.1, 0.2, 0.3):
        ledger.answer_log.note(QUESTIONS[0], answer(value))
        ledger.answer_log.flush()
    found = (opened(place) if isinstance(place, str) else ledger).answer_log
    assert found.recall(QUESTIONS[0]).value == 0.3
    assert found.recall(QUESTIONS[1]) is None
    assert [value for _, value in heard(found)] == [0.1, 0.2, 0.3]


@every
def test_a_question_about_several_blocks_is_another_question(fresh) -> None:
    place = fresh()
    ledger = opened(place)
    ledger.answer_log.note(QUESTIONS[0], answer(0.1))
    ledger.answer_log.note(BlocksQuestion(("1", "2"), QUESTIONS[0]), answer(0.2))
    ledger.answer_log.flush()
    found = (opened(place) if isinstance(place, str) else ledger).answer_log
    assert found.recall(QUESTIONS[0]).value == 0.1
    assert found.recall(BlocksQuestion(("1", "2"), QUESTIONS[0])).value == 0.2
    assert found.recall(BlocksQuestion(("2", "3"), QUESTIONS[0])) is None


@every
def test_answers_given_at_once_are_all_there_when_they_are_given(fresh) -> None:
    place = fresh()
    log = opened(place).answer_log
    with log.at_once():
        log.mark_guard_used()  # so that the answers cannot be worked out again
        for question, found in zip(QUESTIONS, ANSWERS, strict=True):
            log.note(question, found)
    assert heard(log) == told()
    if isinstance(place, str):
        assert heard(opened(place).answer_log) == told()  # without a flush


@every
def test_a_paid_answer_and_one_of_a_guard_are_kept_before_they_are_given(fresh) -> None:
    place = fresh()
    ledger = opened(place)
    ledger.answer_log.mark_guard_used()
    ledger.answer_log.note(QUESTIONS[0], answer(0.1))
    with ledger.asking(hr.count(a=(1, 2), b=0)):
        ledger.charge(EVENT)
        ledger.answer_log.note(QUESTIONS[1], answer(0.2))
        assert [value for _, value in heard(ledger.answer_log)] == [0.1, 0.2]
    if isinstance(place, str):
        assert [value for _, value in heard(opened(place).answer_log)] == [0.1, 0.2]


def test_a_second_session_in_memory_gets_no_answers_of_the_first() -> None:
    """Its answers may be about another table."""
    ledger = opened(hr.Accountant(hr.Budget(1.0, 1e-6)))
    ledger.answer_log.note(QUESTIONS[0], answer(0.1))
    ledger.begin_replay()
    assert ledger.answer_log.recall(QUESTIONS[0]) is None and len(ledger.answers()) == 1


@on_disk
def test_free_answers_wait_for_the_next_charge_and_are_written_before_it(fresh) -> None:
    place = fresh()
    ledger = opened(place)
    before = ledger.head
    ledger.answer_log.note(QUESTIONS[0], answer(0.1))
    assert ledger.head == before
    ledger.charge(EVENT)
    kinds = [line.kind for line in ledger._store.lines(after=before.number)]
    assert kinds == ["answers", "charge"]
