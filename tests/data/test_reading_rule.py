"""Places where reading could lose or mix rows, or reveal one."""

from __future__ import annotations

import codecs
import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from coded_rows import coded_rows

import hedgerow as hr
from hedgerow.data import HistogramSource, Table, coding, counting, readers
from hedgerow.data import table as table_module
from hedgerow.data.coding import Coder
from hedgerow.errors import DataUnavailable, InvalidInput
from hedgerow.query.linear import Linear


@pytest.mark.parametrize("failure", [ValueError, KeyError, BaseException])
def test_messages_of_an_engine_are_dropped_as_a_whole(failure) -> None:
    """From the message, and from what hangs on it: a traceback shows contexts and causes too."""

    def work() -> None:
        raise failure("row 17: SECRET")

    with pytest.raises(DataUnavailable) as refused:
        table_module.hide_engine_errors(work)
    assert refused.value.__context__ is None and refused.value.__cause__ is None
    assert "SECRET" not in "".join(traceback.format_exception(refused.value))


def test_a_refusal_of_our_own_is_shown_without_the_error_that_caused_it() -> None:
    def work() -> None:
        try:
            raise ValueError("row 17: SECRET")
        except ValueError:
            raise InvalidInput("A column must be declared. Found none. Declare it.")  # noqa: B904

    with pytest.raises(InvalidInput, match="A column must be declared") as refused:
        table_module.hide_engine_errors(work)
    assert "SECRET" not in "".join(traceback.format_exception(refused.value))


def test_rows_that_share_a_cell_of_a_table_larger_than_a_batch_are_all_counted() -> None:
    universe = hr.Universe(x=hr.Integers(0, 299), y=hr.Integers(0, 299))
    counts = Table(pd.DataFrame({"x": [7] * 5 + [299], "y": [261] * 5 + [0]}), universe).marginal(("x", "y"))
    assert counts[7, 261] == 5 and counts[299, 0] == 1 and counts.sum() == 6


def test_every_cell_of_a_large_attribute_is_told_from_the_others() -> None:
    universe = hr.Universe(x=hr.Integers(0, 69_999))
    values = [5, 261, 65_541, 69_999]
    counts = Table(pd.DataFrame({"x": values}), universe).marginal(("x",))
    assert np.flatnonzero(counts).tolist() == values


def test_the_mark_that_may_begin_a_file_is_no_part_of_a_name(tmp_path) -> None:
    path = tmp_path / "marked.csv"
    path.write_bytes(codecs.BOM_UTF8 + b"x,y\n1,2\n3,0\n")
    universe = hr.Universe(x=hr.Integers(0, 3), y=hr.Integers(0, 3))
    assert np.argwhere(Table(path, universe).marginal(("x", "y"))).tolist() == [[1, 2], [3, 0]]


def test_negative_numbers_in_texts_keep_their_sign(tmp_path) -> None:
    path = tmp_path / "signs.csv"
    path.write_text("x\n-3\n+2\n-1.5\n 1 \n2x\n")
    universe = hr.Universe(x=hr.Integers(-3, 3, other=True))
    assert coded_rows(path, universe).ravel().tolist() == [0, 5, 1, 4, 7]


def test_every_batch_of_a_frame_is_read(monkeypatch) -> None:
    monkeypatch.setattr(readers, "ROWS", 3)
    frame = pd.DataFrame({"x": np.arange(10)})
    assert Table(frame, hr.Universe(x=hr.Integers(0, 9))).marginal(("x",)).tolist() == [1] * 10


def test_a_weighted_question_is_counted_in_multiples_of_its_grid() -> None:
    universe = hr.Universe.from_sizes({"a": 4})
    query = Linear.from_table(universe, ("a",), [0.1, 1 / 3, 0.7, 1.0])
    counted = counting.on_grid(universe, query)
    steps = counted.table * 2.0**counting.WEIGHT_BITS
    assert np.array_equal(steps, np.round(steps)) and not np.array_equal(counted.table, query.table)
    assert np.abs(counted.table - query.table).max() <= 2.0 ** -(counting.WEIGHT_BITS + 1)


def test_values_beyond_what_float64_holds_are_cut() -> None:
    """From 2^53 steps on a value would be rounded, by what the table holds."""
    universe = hr.Universe.from_sizes({"a": 2})
    query = counting.on_grid(universe, Linear.from_table(universe, ("a",), [0.9, 0.3]))
    step = counting.FINEST_STEP
    assert counting.exact_count(query, np.array([2**50, 0]), step) == 2**53 * step


def test_unsigned_numbers_beyond_the_signed_ones_are_above_the_range() -> None:
    values = np.array([2**64 - 1, 2**63, 3], np.uint64)
    assert Coder(hr.Integers(0, 9)).cells(values).tolist() == [9, 9, 3]
    assert Coder(hr.Integers(0, 9, other=True)).cells(values).tolist() == [10, 10, 3]


def test_a_quote_takes_further_lines_only_for_a_record_of_as_many_fields_as_there_are_columns(tmp_path) -> None:
    """Otherwise one row could swallow others: then each line is a record of its own."""
    path, universe = tmp_path / "quoted.csv", hr.Universe(x=hr.Integers(0, 9), y=hr.Integers(0, 9))
    for text, rows in (('x,y\n"1\n2",3\n1,2\n', 2), ('x,y\n"1\n2",3,4\n1,2\n', 3)):
        path.write_text(text)
        assert Table(path, universe, csv=hr.Csv(multiline=True)).rows == rows


def test_cached_and_new_counts_come_in_the_order_of_the_request() -> None:
    universe = hr.Universe.from_sizes({"a": 2, "b": 3})
    data = HistogramSource(universe, np.arange(6))
    data.marginal(("b",))
    assert [counts.tolist() for counts in data.marginals([("a",), ("b",), ("a",)])] == [[3, 12], [3, 5, 7], [3, 12]]


@pytest.mark.parametrize("few", [0, 100])
def test_a_missing_text_is_missing_whatever_bytes_lie_below_it(few, monkeypatch) -> None:
    """Arrow allows a missing value to have content, which other programs leave there."""
    monkeypatch.setattr(coding, "FEW_TEXTS", few)
    there = pa.array(["7", "8", "7"], pa.large_string())
    hidden = pa.Array.from_buffers(pa.large_string(), 3, [pa.py_buffer(bytes([0b101])), *there.buffers()[1:]])
    universe = hr.Universe(c=hr.Categories(["7", "8", None]), k=hr.Integers(0, 9, missing=True))
    counts = Table(pa.table({"c": hidden, "k": hidden}), universe)
    assert counts.marginal(("c",)).tolist() == [2, 0, 1]
    assert counts.marginal(("k",))[[7, 8, -1]].tolist() == [2, 0, 1]
