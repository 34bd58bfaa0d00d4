"""The registry: access, stored facts about people, and group commits."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from hedgerow.errors import InvalidInput
from hedgerow.server import outcomes
from hedgerow.server.commits import GroupCommits
from hedgerow.server.outcomes import OutcomeStore, StoredOutcome
from hedgerow.server.people import Token, TokenStore
from hedgerow.server.problems import Refusal
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.trail import Trail

ANA = Token("a", "ana", "heart", "analyst", None, 0.0, None, None)
BEN = Token("b", "ben", "heart", "analyst", None, 0.0, None, None)


def test_a_registry_that_others_may_read_is_refused(tmp_path: Path) -> None:
    ServiceRegistry(tmp_path / "r").close()
    (tmp_path / "r").chmod(0o640)
    with pytest.raises(InvalidInput, match=r"mode 0640.*chmod 600"):
        ServiceRegistry(tmp_path / "r")
    (tmp_path / "r").chmod(0o600)
    ServiceRegistry(tmp_path / "r").close()


def test_a_registry_of_the_first_format_is_brought_up_to_date(tmp_path: Path) -> None:
    ServiceRegistry(tmp_path / "r").close()
    old = sqlite3.connect(tmp_path / "r")
    old.executescript(
        "DROP INDEX requests_of_analyst; ALTER TABLE requests DROP COLUMN analyst; PRAGMA user_version = 1;"
        "INSERT INTO tokens VALUES ('a', x'00', 'ana', 'heart', 'analyst', NULL, 0, NULL, NULL);"
        "INSERT INTO requests (at, request, person, token, dataset, endpoint, asked, cost, status)"
        " VALUES (0, 'r', 'ana', 'a', 'people', 'ask', 'q', 0, 200);"
    )
    old.close()
    registry = ServiceRegistry(tmp_path / "r")
    (entry,) = Trail(registry).requests("people")
    assert entry.analyst == "heart/ana"
    registry.close()


def test_one_analysts_requests_push_out_neither_anothers_nor_paid_ones(tmp_path: Path) -> None:
    registry = ServiceRegistry(tmp_path / "r")
    trail = Trail(registry, kept=10)
    for token, count, cost in ((BEN, 5, 0.0), (ANA, 1, 0.5), (ANA, 60, 0.0)):
        for i in range(count):
            trail.add(token, request=str(i), dataset="d", endpoint="ask", asked="q", cost=cost, status=200)
            trail.flush()
    mine, others = trail.own_requests("d", "heart/ana"), trail.own_requests("d", "heart/ben")
    assert 10 <= len(mine) <= 21 and len(others) == 5
    assert [entry.cost for entry in mine][-1] == 0.5 and mine[0].request == "59"
    registry.close()


def test_a_question_beyond_the_quota_is_not_remembered_in_the_file(tmp_path: Path) -> None:
    registry = ServiceRegistry(tmp_path / "r")
    trail = Trail(registry, named=3)
    assert trail.is_first("d", "ana", list("abcde")) == [True] * 5
    trail.flush()
    assert len(registry.rows("SELECT 1 FROM questions")) == 3
    assert Trail(registry, named=3).is_first("d", "ana", list("abcde")) == [False, False, False, True, True]
    registry.close()


def test_the_oldest_outcomes_of_a_token_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "MOST", 20)
    registry, now = ServiceRegistry(tmp_path / "r"), [0.0]
    store = OutcomeStore(registry, "life", lambda: now[0])
    for i in range(60):
        now[0] += 1
        assert store.begin("t", str(i), b"") is None
        store.end("t", str(i), StoredOutcome(200, b"x", "text/plain"))
    assert len(registry.rows("SELECT 1 FROM outcomes")) <= 20
    assert store.begin("t", "59", b"") == StoredOutcome(200, b"x", "text/plain")
    registry.close()


def test_a_key_of_a_free_request_is_not_used_for_another_request(tmp_path: Path) -> None:
    registry = ServiceRegistry(tmp_path / "r")
    store = OutcomeStore(registry, "life")
    store.begin_free("t", "key", b"1")
    store.begin_free("t", "key", b"1")
    with pytest.raises(Refusal):
        store.begin_free("t", "key", b"2")
    with pytest.raises(Refusal):
        store.begin("t", "key", b"2")
    store.begin_free("another", "key", b"2")
    registry.close()


def test_changes_that_wait_together_are_written_together_and_a_refused_one_alone_changes_nothing(
    tmp_path: Path,
) -> None:
    registry = ServiceRegistry(tmp_path / "r")

    def fails(person: str) -> None:
        TokenStore(registry).create(person, "analyst")
        raise KeyError(person)

    async def several() -> list[object]:
        commits = GroupCommits(registry)
        work = [lambda i=i: TokenStore(registry).create(f"p{i}", "analyst") for i in range(5)]
        found = [commits.run(each) for each in work]
        found.insert(2, commits.run(lambda: fails("nobody")))
        return await asyncio.gather(*found, return_exceptions=True)

    statements: list[str] = []
    registry._database.set_trace_callback(statements.append)
    results = asyncio.run(several())
    assert isinstance(results[2], KeyError)
    assert sorted(token.person for token in TokenStore(registry).list()) == ["p0", "p1", "p2", "p3", "p4"]
    assert statements.count("COMMIT") < 6  # the first is written at once, and the rest together
    registry.close()


def test_a_reader_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    registry = ServiceRegistry(tmp_path / "r")

    async def looked_up() -> bool:
        with registry.transaction():
            TokenStore(registry).create("ana", "analyst")
            found = await asyncio.wait_for(asyncio.to_thread(TokenStore(registry).list), 5)
            return found == []

    assert asyncio.run(looked_up())
    assert len(TokenStore(registry).list()) == 1
    registry.close()
