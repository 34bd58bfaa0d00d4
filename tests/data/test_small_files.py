"""Small tables are read and counted through arrays, large ones through compiled loops, and both give the same cells."""

from __future__ import annotations

import itertools
import os
import stat

import numpy as np
import pyarrow as pa
import pytest
from awkward_values import AWKWARD
from coded_rows import coded_rows
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.data import coding, counting, csv_file
from hedgerow.data import table as tables
from hedgerow.data.counting import ManyTables
from hedgerow.data.csv_file import Csv, CsvFile
from hedgerow.data.table import Table

PIECES = [b'"', b",", b"\n", b"\r\n", b"\r", b'""', b"x", b"12", b" ", b"\xff", b"a,b\n", b'"q",1\n', b'1,"q"\r\n']
UNIVERSE = hr.Universe(a=hr.Integers(0, 9), b=hr.Categories(["x", "y", "z"]), c=hr.Flag())


def fields(path, dialect: Csv) -> list[list[bytes | None]]:
    found: list[list[bytes | None]] = [[], []]
    for batch in CsvFile(path, dialect).batches([0, 1]):
        for column, array in zip(found, batch, strict=True):
            column += array.to_pylist()
    return found


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30), st.sampled_from(['"', None]), st.booleans())
@example([b'"a,b"', b"\n"], '"', True)
@example([b'"a""b",c\n'], '"', True)
@example([b'"a\nb",c\n'], '"', True)
@example([b'","', b"\n"], '"', True)
@example([b'""', b",", b'"'], '"', True)
@example([b"a", b"\n", b"\n", b"b"], '"', True)
def test_a_file_is_read_alike_by_arrays_and_by_loops(tmp_path_factory, pieces, quote, multiline) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(b"".join(pieces))
    dialect = Csv(quote=quote, multiline=multiline, columns=["a", "b"])
    kept = csv_file.SMALL
    try:
        by_arrays = fields(path, dialect)
        csv_file.SMALL = -1
        by_loops = fields(path, dialect)
    finally:
        csv_file.SMALL = kept
    assert by_arrays == by_loops


@pytest.mark.parametrize("last", [b"", b"3", b"3,", b"3,4", b"3,4\r"])
def test_the_files_end_ends_a_line_of_any_length(last) -> None:
    """Also where whole lines come before it in the same block."""
    data = np.frombuffer(b"1,2\n" + last, np.uint8)
    places, lengths, after = csv_file._plain_fields(data, 0, True, ord(","), ord('"'), [0])
    columns = csv_file._gather_fields(data, places[0], lengths[0], ord('"'), compile=False).to_pylist()
    assert (columns, after) == ([b"1", b"3"] if last else [b"1"], len(data))


QUOTED = [b'"a""b"', b'""""', b'"6"" scar"', b'""', b'"a"', b"a", b"", None, b'"""a"""', b'"a""""b"']


@pytest.mark.parametrize("compile", [True, False])
def test_doubled_quotes_within_a_field_become_one_and_change_no_other_field(compile) -> None:
    data, places, lengths = b"", [], []
    for field in QUOTED:
        is_quoted = field is not None and field.startswith(b'"')
        places.append(len(data) + is_quoted)
        lengths.append(csv_file.ABSENT if field is None else -len(field) if is_quoted else len(field))
        data += field or b""
    given = [np.frombuffer(data, np.uint8), np.array(places), np.array(lengths)]
    copied = csv_file._gather_fields(*given, ord('"'), compile=compile)
    copied.validate(full=True)
    expected = [b'a"b', b'"', b'6" scar', b"", b"a", b"a", b"", None, b'"a"', b'a""b']
    assert copied.to_pylist() == expected


def test_a_doubled_quote_in_the_name_of_a_column_is_one(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'"6"" scar","""",plain,"a, b"\n1,2,3,4\n')
    assert CsvFile(path, Csv()).columns == ['6" scar', '"', "plain", "a, b"]


@pytest.mark.parametrize("block", [1, 2, 7, 64])
def test_a_file_is_read_alike_however_its_blocks_fall(block, tmp_path, monkeypatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'1,x\r\n"2","y"\n3\n\n,\n4,"z\nz"\n5,x')
    dialect = Csv(columns=["a", "b"])
    whole = fields(path, dialect)
    monkeypatch.setattr(csv_file, "BLOCK", block)
    assert fields(path, dialect) == whole == [
        [b"1", b"2", b"3", b"", b"", b"4", b"5"], [b"x", b"y", None, None, b"", b"z\nz", b"x"]
    ]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([" 5", "5", "+3", "-1", "1e0", "2.5", "9.999", "", "abc", "12345678901234567890", "١"]))
)
def test_texts_are_numbers_alike_whether_few_or_many(texts) -> None:
    for attribute in (hr.Integers(0, 9), hr.Integers(0, 9, other=True, missing=True), hr.Range(0, 10, bins=4)):
        column = pa.array([text.encode() for text in texts] + [None], pa.large_binary())
        few, many = coding.Coder(attribute), coding.Coder(attribute)
        many._texts = coding.FEW_TEXTS
        assert few.cells(column).tolist() == many.cells(column).tolist()


NOTATIONS = [
    "".join(parts)
    for parts in itertools.product(
        ["", "+", "-", " ", "x"],
        ["", "7", "012", "123456789012345", "1234567890123456", "1234567890123456789"],
        ["", ".", ".5", ".250", ".x"],
        ["", "e", "e1", "E+1", "e-1", "e+", "e07", "e100", "ee1", "e1.5"],
        ["", "\t\n", "x", " 1"],
    )
]


def test_compiled_code_reads_every_notation_of_a_number_as_the_rule_does() -> None:
    """Missing texts, texts without a number and numbers outside the range are told apart too."""
    texts = [*NOTATIONS, *(text for text in AWKWARD if isinstance(text, str) and text.isprintable()), None]
    column = pa.array(texts, pa.large_string())
    expected = [coding._float(coding.meaning(text)[1]) for text in texts]
    assert np.array_equal(coding.numbers_of(column), expected, equal_nan=True)
    for attribute in (hr.Integers(-20, 2000, other=True, missing=True), hr.Range(-20, 2000, bins=404, missing=True)):
        many = coding.Coder(attribute)
        many._texts = coding.FEW_TEXTS
        assert many.cells(column).tolist() == [many.cell(text) for text in texts]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (coding.IN_DIGITS, ["7", "-7", "+7", " 7 ", "0" * 17 + "7", "7\t"]),
        (coding.IN_DECIMALS, ["7.5", "-7.5", "0.25", "7e1", "7.5e1", "7E+01", "7.5e-10", "1" * 15 + ".5"]),
        (coding.BY_THE_RULE, ["7.", ".5", "+7.5", " 7.5", "7e", "7e+", "7.5e100", "7x", "1" * 16 + ".5", "1" * 19, "inf"]),
        (coding.NO_NUMBER, ["x", "x7", "(7)", "\u0667"]),
        (coding.NOTHING, ["", " ", "\t\n", None]),
    ],
)  # fmt: skip
def test_numbers_in_plain_notation_are_read_by_compiled_code_and_all_others_by_the_rule(kind, texts) -> None:
    """In a large file, a text that is left to the rule costs a thousand times as much."""
    found, _ = coding._scan(pa.array(texts, pa.large_string()).cast(pa.large_binary()))
    assert found.tolist() == [kind] * len(texts)


@pytest.mark.parametrize("sets", [[("a",), ("a", "b"), ()], [("b", "c"), ("a", "b", "c")]])
def test_rows_are_counted_alike_whether_few_or_many(sets, monkeypatch) -> None:
    rng = np.random.default_rng(3)
    batches = [[rng.integers(0, size, rows) for size in UNIVERSE.shape] for rows in (0, 1, 5000)]

    def counted() -> list[list[int]]:
        found = ManyTables(UNIVERSE, sets)
        for batch in batches:
            found.add([batch[UNIVERSE.index(name)] for name in found.columns], len(batch[0]))
        return [table.tolist() for table in found.tables()]

    few = counted()
    monkeypatch.setattr(counting, "FEW_PLACES", -1)
    assert few == counted()


def test_arrays_beyond_memory_are_spilled_into_a_folder_that_only_its_owner_can_open(tmp_path, monkeypatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,x,True\n")
    monkeypatch.setattr(tables, "FOLDED_AT_ONCE", 0)
    kept = Table(path, UNIVERSE)
    ((folder,),) = kept._engine.execute("SELECT current_setting('temp_directory')").fetchall()
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700 and os.stat(folder).st_uid == os.getuid()


def test_a_small_universe_is_counted_as_rows_are(tmp_path, monkeypatch) -> None:
    """The same counts and the same fingerprint, so that a ledger goes on whichever way its table was kept."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "".join(f"{i % 7},{'xyz'[i % 3]},{i % 5 == 0}\n" for i in range(500)))
    folded = Table(path, UNIVERSE)
    monkeypatch.setattr(tables, "FOLDED_AT_ONCE", 0)
    kept = Table(path, UNIVERSE)
    assert folded._engine is None
    assert kept._engine is not None
    for names in (("a",), ("b", "c"), ("a", "b", "c")):
        assert folded.marginal(names).tolist() == kept.marginal(names).tolist()
    assert folded.rows == kept.rows == len(coded_rows(path, UNIVERSE))
    assert folded.fingerprint() == kept.fingerprint()
