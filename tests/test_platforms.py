"""Systems other than Linux, as far as Linux can test: missing features are not needed, or are refused plainly."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hedgerow.data import row_store
from hedgerow.errors import InvalidInput
from hedgerow.ledger.urls import store_at

WITHOUT = """
import os, sys, numpy, pandas, pyarrow, duckdb, opendp.prelude  # what others need is theirs to say
for name in ("fork", "forkpty", "register_at_fork", "getuid", "geteuid", "getgid", "getegid"):
    delattr(os, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
import hedgerow as hr
frame = pandas.DataFrame({"smoker": [True, False] * 500, "age": list(range(20, 70)) * 20})
universe = hr.Universe(smoker=hr.Flag(), age=hr.Integers(20, 69))
session = hr.open(frame, universe=universe, budget=hr.Budget(1, 1e-9))
assert 0 <= session.ask(hr.count(smoker=True)).value <= 1
assert len(session.sql("SELECT smoker, count(*) AS n FROM data GROUP BY smoker")) == 2
print("answered")
"""


def test_a_session_answers_without_what_only_posix_has() -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert ran.stdout.split() == ["answered"], ran.stderr


def test_a_charge_waits_for_the_disk_on_macos_too(tmp_path) -> None:
    with store_at(f"sqlite:///{tmp_path}/people.ledger")._connection() as connection:
        set_to = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "fullfsync")]
    assert set_to == [2, 1]


def test_rows_are_not_stored_where_modes_do_not_protect_them(tmp_path, monkeypatch) -> None:
    source = tmp_path / "people.csv"
    source.write_text("age\n40\n50\n")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "name", "nt")
        with pytest.raises(InvalidInput, match="POSIX file modes"):
            row_store.row_store(str(source), {"age": float}, str(tmp_path / "rows"))
    assert not (tmp_path / "rows").exists()
    row_store.row_store(str(source), {"age": float}, str(tmp_path / "rows"))
    assert (tmp_path / "rows").stat().st_mode & 0o077 == 0
