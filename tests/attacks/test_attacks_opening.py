"""Types that a frame infers from all rows together, and encodings that join lines, change no other row's cell."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data.coding import Coder, meaning
from hedgerow.data.csv_file import Csv
from hedgerow.data.table import Table, code_batches
from hedgerow.errors import InvalidInput

KINDS: dict[str, tuple[list[Any], list[str]]] = {
    "periods": ([pd.Period("2020", "M"), pd.Period("2021-03", "M")], ["2020-01", "2021-03", "600"]),
    "intervals": ([pd.Interval(0, 1), pd.Interval(1, 2.5)], ["(0, 1]", "(1, 2.5]", "(0.0, 1.0]"]),
    "whole intervals": ([pd.Interval(0, 1), pd.Interval(1, 2)], ["(0, 1]", "(1, 2]", "(0.0, 1.0]"]),
    "durations": ([datetime.timedelta(1), datetime.timedelta(2, 5)], ["1 day, 0:00:00", "2 days, 0:00:05"]),
    "durations of pandas": ([pd.Timedelta("1D"), pd.Timedelta("2D 5s")], ["1 day, 0:00:00", "2 days, 0:00:05"]),
    "durations of NumPy": ([np.timedelta64(1, "D"), np.timedelta64(48, "h")], ["1 day, 0:00:00", "2 days, 0:00:00"]),
    "dates of NumPy": ([np.datetime64("2020-01-01"), np.datetime64("2021", "Y")],
                       ["2020-01-01 00:00:00", "2021-01-01 00:00:00", "2020-01-01", "2021"]),
}  # fmt: skip
OTHERS = [None, pd.NA, pd.NaT, "x", "", 1, 2.5, True, 1j, b"x", datetime.date(2020, 1, 1), datetime.timedelta(1),
          pd.Timedelta(5), pd.Timestamp("2020"), np.datetime64("9000-01-01"), np.datetime64("2020", "ns"), pd.Period("2020", "D"),
          pd.Interval(0, 1.5), pd.Interval(0, 1, closed="left"), [1], object()]  # fmt: skip


def cells(source: Any, attribute: Any, **how: Any) -> list[int]:
    batches = code_batches(source, hr.Universe(c=attribute), **how)
    return [int(cell) for (column,) in batches for cell in column]


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_changes_another_through_a_type_of_pandas(kind) -> None:
    values, labels = KINDS[kind]
    numbers = hr.Range(-1e20, 1e20, bins=1000, other=True)
    for attribute, expected in ((hr.Categories(labels, other=True), [0, 1]), (numbers, [1000, 1000])):
        types = set()
        for other in [*values, *OTHERS]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                frame = pd.DataFrame({"c": [*values, other]})
            types.add(str(frame["c"].dtype))
            assert cells(frame, attribute)[:2] == expected, other
        assert len(types) > 1


def test_large_unsigned_numbers_are_in_the_same_bin_however_they_are_carried() -> None:
    attribute = hr.Range(0, 2e19, bins=64)
    values = [2**63 + 2**60, 2**64 - 2**40, 5]
    rule = [Coder(attribute).cell(value) for value in values]
    assert cells(pd.DataFrame({"c": np.array(values, np.uint64)}), attribute) == rule
    assert cells(pd.DataFrame({"c": [*values, "x"]}), attribute)[:3] == rule
    assert cells(pd.DataFrame({"c": [*values, None]}), attribute)[:3] == rule


@pytest.mark.parametrize("encoding", ["euc_kr", "cp949", "gb18030", "shift_jis", "euc_jp", "big5"])
def test_no_byte_sequence_of_an_encoding_takes_the_newline(encoding, tmp_path) -> None:
    path, dialect = tmp_path / "t.csv", Csv(encoding=encoding)
    attribute = hr.Categories(["M", "F"], other=True)
    for first in range(0x80, 0x100):
        for second in (b"", *((b"\xd4",) if first == 0xA4 else (b"\x81", b"\xfe"))):
            path.write_bytes(b"c\nF\n" + bytes([first]) + second + b"\nF\nM\n")
            found = cells(path, attribute, csv=dialect)
            assert found[:1] + found[2:] == [1, 1, 0], (first, second)


def test_korean_text_is_read_in_both_names_of_its_encoding(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("c\n한국\n서울\n".encode("euc_kr"))
    for encoding in ("euc_kr", "cp949"):
        assert cells(path, hr.Categories(["서울", "한국"]), csv=Csv(encoding=encoding)) == [1, 0]


@pytest.mark.parametrize("encoding", ["unicode_escape", "raw_unicode_escape"])
def test_an_encoding_in_which_a_line_can_spell_a_newline_is_refused(encoding) -> None:
    with pytest.raises(InvalidInput):
        Csv(encoding=encoding)


def test_rows_that_end_in_lone_carriage_returns_are_not_taken_for_names(tmp_path) -> None:
    path, universe = tmp_path / "t.csv", hr.Universe(c=hr.Integers(0, 9))
    for row in (b"3,x,5", b"3,c,5", b"c,c,c"):
        path.write_bytes(b"c,d,e\r1,2,3\r" + row + b"\r4,5,6")
        assert Table(path, universe).rows == 0


def test_an_object_without_a_class_or_with_a_strange_text_has_a_cell() -> None:
    class Text(str):
        def __hash__(self) -> int:
            raise ValueError

    class Strange:
        def __str__(self) -> str:
            return Text("F")

        @property
        def __class__(self) -> type:
            raise ValueError

    class Named:
        def __str__(self) -> str:
            return Text("F")

    frame = pd.DataFrame({"c": pd.Series(["F", Strange(), Named()], dtype=object)})
    assert cells(frame, hr.Categories(["F", "M"], other=True)) == [0, 2, 0]
    assert type(meaning(Named())[0]) is str
