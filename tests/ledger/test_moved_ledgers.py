"""Ledgers that change under open sessions: restored from an older copy, replaced, linked, or without their lock.

The next reader of the ledger knows every charge, and no session waits forever.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from fresh_ledgers import postgres_url, sqlite_url
from sqlite_file import open_sqlite

import hedgerow as hr
from hedgerow.ledger import opened, read
from hedgerow.ledger.durable import Durable
from hedgerow.privacy.events import Laplace
from hedgerow.privacy.noise import Noise

everywhere = pytest.mark.parametrize("fresh", [sqlite_url, postgres_url], ids=["SQLite", "PostgreSQL"])
PURE = hr.Budget(1.0, 0.0)


def spend(ledger: Durable, times: int = 1) -> None:
    for _ in range(times):
        Noise().add(0.0, ledger.charge(Laplace(1.0, 20.0)))


def changed(url: str, statement: str) -> None:
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


@everywhere
@pytest.mark.parametrize(
    "left", ["DELETE FROM hedgerow_lines WHERE number > 3", "UPDATE hedgerow_lines SET hash = '00' WHERE number > 3"]
)
def test_a_session_under_which_an_older_ledger_was_put_back_charges_nothing_more(fresh, left) -> None:
    url = fresh()
    session = opened(url, PURE)
    spend(session, 3)
    head = str(session.head)
    changed(url, left)
    for _ in range(2):
        with pytest.raises(
            hr.LedgerUnavailable, match=r"Found a different last line|whose ledger failed while it wrote"
        ):
            spend(session)
    assert len(session.entries()) == 3
    with pytest.raises(hr.LedgerBroken):
        read(url).verify(head)


def test_a_replaced_ledger_file_gets_no_entries_that_would_be_lost() -> None:
    url = sqlite_url()
    first = opened(url, PURE)
    spend(first)
    first.close()
    path = file_of(url)
    shutil.copy(path, f"{path}.yesterday")
    session = opened(url, PURE)
    spend(session, 3)
    os.replace(f"{path}.yesterday", path)
    with pytest.raises(hr.LedgerUnavailable, match=r"must stay where it is while sessions are open\. Found another"):
        spend(session)
    path.unlink()
    with pytest.raises(hr.LedgerUnavailable, match="Found none"):
        session.sync()


def test_a_link_to_a_ledger_has_the_turns_of_its_file(tmp_path) -> None:
    url = sqlite_url()
    (tmp_path / "link.ledger").symlink_to(file_of(url))
    one, other = opened(url, PURE), opened(f"sqlite:///{tmp_path}/link.ledger?timeout=0.1", PURE)
    with one._store.turn(), pytest.raises(hr.LedgerUnavailable, match="another session had its turn"):
        spend(other)
    spend(one)
    spend(other)
    assert len(other.entries()) == 2 and not list(tmp_path.glob("*-turn"))


def test_sessions_agree_on_a_new_lock_if_the_lock_of_turns_was_removed() -> None:
    url = sqlite_url()
    one = opened(url, PURE)
    spend(one)
    Path(f"{file_of(url)}-turn").unlink()
    late = opened(f"{url}?timeout=0.1", PURE)
    spend(late)
    with one._store.turn(), pytest.raises(hr.LedgerUnavailable, match="another session had its turn"):
        spend(late)
    spend(one)
    assert len(one.entries()) == 3


def test_a_second_name_of_the_file_spends_nothing_unseen() -> None:
    """SQLite's log has the name by which the file was opened: with two of them one would not see the other's lines."""
    url = sqlite_url()
    one = opened(url, PURE)
    spend(one)
    again = file_of(url).with_name("again.ledger")
    os.link(file_of(url), again)
    with pytest.raises(hr.LedgerUnavailable, match="one name"):
        opened(f"sqlite:///{again}", PURE)
    with pytest.raises(hr.LedgerUnavailable, match="one name"):
        opened(url, PURE)


@pytest.mark.parametrize("kept", [0.5, 0.9, 0.01])
def test_a_file_that_was_cut_short_is_not_taken_for_a_ledger(kept) -> None:
    url = sqlite_url()
    session = opened(url, PURE)
    spend(session, 10)
    session.close()
    path = file_of(url)
    os.truncate(path, int(path.stat().st_size * kept))
    with pytest.raises((hr.LedgerUnavailable, hr.LedgerBroken)):
        opened(url, PURE)


def test_a_copy_without_the_log_is_found_by_a_head_noted_elsewhere() -> None:
    url = sqlite_url()
    session = opened(url, PURE)
    spend(session, 3)
    copy = file_of(url).with_name("copy.ledger")
    shutil.copy(file_of(url), copy)  # and not people.ledger-wal, where the last lines are
    with pytest.raises((hr.LedgerBroken, hr.InvalidInput)):
        read(f"sqlite:///{copy}").verify(str(session.head))
    with open_sqlite(file_of(url)) as there:
        assert there.execute("SELECT max(number) FROM hedgerow_lines").fetchone()[0] == session.head.number
