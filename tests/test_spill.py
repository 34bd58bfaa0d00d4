"""Spilled arrays come back to the last bit and are not in memory meanwhile, and a session keeps a bounded amount."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
from people import SMALL, opened

import hedgerow as hr
from hedgerow import _spill
from hedgerow.answering import answer_cache
from hedgerow.data import HistogramSource
from hedgerow.engine.practical import free_answers
from hedgerow.engine.practical.fit import corrections

TABLES = [hr.marginal(*names) for names in (("age",), ("age", "sex"), ("age", "smoker"), ("age", "sex", "smoker"))]


@pytest.fixture
def session():
    counts = np.random.default_rng(0).integers(0, 1000, SMALL.size)
    return opened(HistogramSource(SMALL, counts), reserve=0.4, guard=0.0, workload=hr.marginals(1))


def test_a_stored_array_is_independent_of_its_original(monkeypatch) -> None:
    monkeypatch.setattr(_spill, "SMALL", 100)
    monkeypatch.setattr(_spill, "SEGMENT", 4096)
    shelf, rng = _spill.Shelf(), np.random.default_rng(0)
    arrays = [rng.random(shape) for shape in ((3,), (40, 5), (7, 11, 13), (300, 4), ())] + [np.arange(60)[::-1]]
    arrays.append(rng.random((30, 20)).T)
    wanted = [array.copy() for array in arrays]
    kept = [shelf.put(array) for array in arrays]
    for array in arrays:
        array[...] = 0
    for _ in range(2):
        for array, other in zip(wanted, kept, strict=True):
            taken = shelf.take_copy(other)
            assert taken.dtype == array.dtype and np.array_equal(taken, array) and taken.flags.writeable
            taken[...] = -1
    assert len(shelf._maps) > 1 and not kept[1].flags.owndata and kept[0].flags.owndata


def test_without_room_on_the_disk_it_stays_in_memory(monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(_spill, "SMALL", 100)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    given = np.arange(100.0)
    kept = _spill.Shelf().put(given)
    assert np.array_equal(kept, given) and kept is not given


def test_a_table_is_repeated_to_the_last_bit_after_more_was_learned(session, monkeypatch) -> None:
    monkeypatch.setattr(_spill, "SMALL", 8)
    first = [session.ask(table) for table in TABLES]
    said = [(np.array(a.value), np.array(a.error)) for a in first]
    for answer in first:
        answer.value[...] = 0  # it is the analyst's
    session.ask(hr.count(age=(3, 5), sex="F"), within=1e-3)
    for table, (value, error) in zip(TABLES, said, strict=True):
        again = session.ask(table)
        assert again.source == "repeat" and np.array_equal(again.value, value) and np.array_equal(again.error, error)
        again.value[...] = 1
    assert session._cache._shelf._maps


def test_a_report_has_the_last_answers_that_there_is_room_for(session, monkeypatch) -> None:
    monkeypatch.setattr(answer_cache, "REPORTED_CELLS", 20)
    for table in (*TABLES, TABLES[0], TABLES[1]):  # 8, 16, 16, 32, 8 and 16 cells
        session.ask(table)
        assert [a.query for a in session.report().answers] == [table]
    session.ask(hr.count(sex="F"))
    assert [a.query for a in session.report().answers] == [TABLES[1], hr.count(sex="F")]
    monkeypatch.setattr(answer_cache, "REPORTED", 3)
    monkeypatch.setattr(answer_cache, "REPORTED_CELLS", 10**6)
    for age in range(8):
        session.ask(hr.count(age=age))
    assert [a.query for a in session.report().answers] == [hr.count(age=age) for age in (5, 6, 7)]


def test_corrected_tables_are_the_same_when_they_are_made_again(session, monkeypatch) -> None:
    monkeypatch.setattr(free_answers, "ROOM", 0)  # nothing fits the model: all that is bought corrects
    session.ask(TABLES[1], within=0.02)
    session.ask(TABLES[2], within=0.02)
    learned = session._engine.knowledge.learned
    names = [table.on(SMALL).attributes for table in TABLES[1:3]]
    first, again = (learned.corrections(learned.model.marginal) for _ in range(2))
    kept = [first.table(n) for n in names]
    assert all(table is not None for table in kept) and len(first._kept) == 2
    monkeypatch.setattr(corrections, "KEPT_CELLS", 1)
    for n, table in zip(names, kept, strict=True):
        assert np.array_equal(again.table(n), table) and len(again._kept) == 1
