"""A head kept elsewhere shows that a ledger was restored from an older copy."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
import serving

import hedgerow as hr
from hedgerow.cli.service import _open_dataset
from hedgerow.server.dataset import Dataset
from hedgerow.server.heads import HeadFile
from hedgerow.server.settings import read_settings


def test_a_purchase_moves_the_noted_head_and_an_older_ledger_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    file, noted = serving.desk(tmp_path), tmp_path / "elsewhere.head"
    (tmp_path / "service.toml").write_text('[datasets.people]\nfile = "hedgerow.toml"\nhead = "elsewhere.head"')
    assert read_settings(tmp_path / "service.toml").heads == {"people": noted}
    assert HeadFile(noted).noted.number == 0
    session = _open_dataset(file, HeadFile(noted).noted)
    dataset = Dataset("people", session, 10, head=HeadFile(noted))
    before = HeadFile(noted).noted
    assert before == hr.ledger.Head.of(str(session.ledger.head))
    shutil.copy(tmp_path / "people.ledger", tmp_path / "backup")
    shutil.copy(tmp_path / "people.ledger-wal", tmp_path / "backup-wal")

    async def buy() -> None:
        await dataset.run("ana", lambda session: session.ask(hr.count(smoker=True, age=(40, 65)), within=0.012))
        await dataset.close()

    asyncio.run(buy())
    after = HeadFile(noted).noted
    assert after.number > before.number
    _open_dataset(file, after).close()
    for each in tmp_path.glob("people.ledger*"):
        each.unlink()
    shutil.copy(tmp_path / "backup", tmp_path / "people.ledger")
    shutil.copy(tmp_path / "backup-wal", tmp_path / "people.ledger-wal")
    with pytest.raises(hr.LedgerBroken):
        _open_dataset(file, after)
    assert str(hr.ledger.read(f"sqlite:///{tmp_path}/people.ledger").head) == str(before)  # nothing was charged
    (tmp_path / "people.ledger").unlink()
    with pytest.raises((hr.LedgerBroken, hr.LedgerUnavailable, hr.InvalidInput)):
        _open_dataset(file, after)


def test_a_head_file_that_cannot_be_read_or_is_something_else_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(hr.LedgerUnavailable, match="must be noted"):
        HeadFile(tmp_path / "folder")
    (tmp_path / "other").write_text("hello")
    with pytest.raises(hr.InvalidInput, match="A head must be"):
        HeadFile(tmp_path / "other")
