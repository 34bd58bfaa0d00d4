"""Questions about random rows are about the same table, and the same values, as counts."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from coded_rows import coded_rows

import hedgerow as hr
from hedgerow.data.row_store import columns_of, in_memory, row_store
from hedgerow.data.row_values import STEPS, linear_values, statistic_values
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import bound
from hedgerow.universe.attributes import Attribute

TEXTS = pd.DataFrame({"a": ["ja", "nein", "Ja ", None, "", "?", "1", "yes", "0", "7"]}, dtype=object)
KINDS: dict[str, tuple[Any, Attribute]] = {
    "a flag's own words": (TEXTS, hr.Flag(true="ja", false="nein")),
    "a flag that may be missing": (TEXTS, hr.Flag(missing=True)),
    "a flag with another cell": (TEXTS, hr.Flag(other=True)),
    "numbers that may be missing or none": (TEXTS, hr.Integers(0, 3, other=True, missing=True)),
    "bins that may be missing or none": (TEXTS, hr.Range(0, 3, 3, other=True, missing=True)),
    "an empty label beside missing values": (TEXTS, hr.Categories(["ja", ""], missing=True, other=True)),
    "truths under labels": (pl.DataFrame({"a": [True, False, None]}), hr.Categories(["True", "False"], other=True)),
    "numbers beyond floats": (pl.DataFrame({"a": [2**53 + k for k in range(3)]}), hr.Integers(2**53, 2**53 + 2)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_expression_means_the_same_rows_as_in_the_table(kind: str) -> None:
    frame, attribute = KINDS[kind]
    universe = hr.Universe(a=attribute)
    rows = row_store(frame, columns_of(universe), coded=universe)
    every, cells = np.arange(rows.rows), coded_rows(frame, universe)[:, 0]
    for cell in range(attribute.size):
        asked = bound(hr.count(a=np.arange(attribute.size) == cell), universe)
        found = linear_values(rows, universe, asked)(every) == STEPS
        assert found.tolist() == (cells == cell).tolist()


def test_a_flip_of_a_session_knows_a_flags_own_words() -> None:
    frame = pd.DataFrame({"smoker": ["ja"] * 20_000})
    universe = hr.Universe(smoker=hr.Flag(true="ja", false="nein"))
    session = hr.open(frame, universe=universe, budget=hr.Budget(4, 1e-6), keep_rows=True, seed=1)
    answers = [session.sample_yes_no(hr.count(smoker=True), lies=0.01) for _ in range(20)]
    assert sum(answers) > 15
    assert session.ask(hr.statistic(lambda smoker: smoker, "smoker", within=0.2)).value > 0.7


def test_a_function_gets_a_flags_own_truth() -> None:
    universe = hr.Universe(a=hr.Flag(true="ja", false="nein", missing=True))
    rows = row_store(TEXTS, columns_of(universe), coded=universe)
    valued = statistic_values(rows, hr.statistic(lambda a: a, "a"))
    assert (valued(np.arange(10)) == STEPS).tolist() == [True, False, True, *[False] * 7]


def test_rows_without_the_universes_cells_answer_no_expression() -> None:
    universe, other = hr.Universe(a=hr.Flag()), hr.Universe(a=hr.Flag(true="ja"))
    asked = bound(hr.count(a=True), universe)
    for rows in (in_memory({"a": [True]}), in_memory({"a": [True]}, coded=other)):
        with pytest.raises(InvalidInput, match="must be stored with the session's universe"):
            linear_values(rows, universe, asked)


def test_a_store_of_another_universes_cells_is_built_again(tmp_path: Path) -> None:
    TEXTS.to_csv(tmp_path / "t.csv", index=False)
    for words in ("ja", "nein"):
        universe = hr.Universe(a=hr.Flag(true=words))
        rows = row_store(tmp_path / "t.csv", columns_of(universe), tmp_path / "rows", coded=universe)
        (cells,) = rows.cells(np.arange(2), universe, ("a",))
        assert cells.tolist() == [words == "ja", words == "nein"]


def test_a_store_is_not_used_again_where_a_database_has_changed_beside_its_file(tmp_path: Path) -> None:
    """SQLite writes to a log beside the file first, whose size and time of change stay what they were."""
    path = tmp_path / "t.db"
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE t (x)")
    database.execute("INSERT INTO t VALUES (1)")
    database.commit()

    def found() -> list[float]:
        rows = row_store(f"sqlite://{path}", {"x": float}, tmp_path / "rows", table="t")
        return rows.take(np.arange(rows.rows), ("x",))[0].tolist()

    assert found() == [1.0]
    before = path.stat().st_mtime_ns
    database.execute("UPDATE t SET x = 2")
    database.commit()
    assert path.stat().st_mtime_ns == before
    assert found() == [2.0]
    database.close()
