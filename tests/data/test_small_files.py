"""Small tables are read and counted through arrays, large ones through compiled loops, and both give the same cells."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest
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
    import pyarrow as pa

    for attribute in (hr.Integers(0, 9), hr.Integers(0, 9, other=True, missing=True), hr.Range(0, 10, bins=4)):
        column = pa.array([text.encode() for text in texts] + [None], pa.large_binary())
        few, many = coding.Coder(attribute), coding.Coder(attribute)
        many._texts = coding.FEW_TEXTS
        assert few.cells(column).tolist() == many.cells(column).tolist()


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


def test_what_does_not_fit_in_memory_is_spilt_into_a_folder_that_its_owner_alone_can_open(
    tmp_path, monkeypatch
) -> None:
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
