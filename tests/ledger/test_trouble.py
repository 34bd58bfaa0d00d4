"""A missing ledger, a full disk, a read-only file, a clock that went back, a turn that another process has: a clear refusal,
nothing released, and nothing lost."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import threading
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from concurrency import forked
from crashing import BOUGHT, FREE, WITHIN, Log, in_a_process, opened
from fresh_ledgers import postgres_url, sqlite_url
from postgres import Server, binary, server

import hedgerow as hr
from hedgerow.ledger import opened as ledger_at
from hedgerow.ledger import read
from hedgerow.ledger.chain import now
from hedgerow.ledger.urls import store_at
from hedgerow.privacy.events import Laplace
from hedgerow.privacy.noise import Noise

everywhere = pytest.mark.parametrize("fresh", [sqlite_url, postgres_url], ids=["SQLite", "PostgreSQL"])
PURE = hr.Budget(1.0, 0.0)
TENTH = Laplace(1.0, 10.0)


def seen(raised: BaseException) -> str:
    """All that a traceback could show, with what led to it and the values of all names."""
    return "".join(
        traceback.TracebackException(type(raised), raised, raised.__traceback__, capture_locals=True).format()
    )


def test_a_server_that_is_away_refuses_what_is_paid_and_all_is_there_when_it_is_back() -> None:
    if binary("initdb") is None:
        pytest.skip("no PostgreSQL here: install Debian's postgresql, or put initdb on the PATH")
    server = Server()
    try:
        url = server.fresh()
        session = opened(url)
        before = [session.ask(BOUGHT[0], within=WITHIN), session.ask(FREE[-1])]
        spent = session.spent
        server.stop()
        with pytest.raises(
            hr.LedgerUnavailable, match=r"The ledger on PostgreSQL must be \w+ before anything is released"
        ):
            session.ask(BOUGHT[1], within=WITHIN)
        assert session.ask(BOUGHT[0], within=WITHIN).value == before[0].value  # a repeat needs no ledger
        with pytest.raises(hr.LedgerUnavailable):
            opened(url)
        server.start()
        again = opened(url)
        assert again.spent == spent
        assert [again.ask(BOUGHT[0], within=WITHIN).value, again.ask(FREE[-1]).value] == [a.value for a in before]
        assert session.ask(BOUGHT[1], within=WITHIN).cost > 0  # refused before it was charged: the session goes on
        again.ledger.verify()
    finally:
        server.remove()


def in_small(url: str, log: Log, room: int) -> None:
    """Charge and draw in a process whose files may not grow beyond so many bytes."""
    ledger, noise = ledger_at(url, PURE), Noise()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    for i in range(1000):
        try:
            receipt = ledger.charge(Laplace(1.0, 2000.0))
            log.write("charged", receipt.number)
            log.write("released", receipt.number, float(noise.add(float(i), receipt)))
        except hr.LedgerUnavailable as refusal:
            log.write("refused", str(refusal), seen(refusal))
            return


@pytest.mark.parametrize("room", [60_000, 61_500, 64_000, 70_000, 90_000])
def test_a_full_disk_refuses_and_all_that_was_released_is_in_the_ledger(room, tmp_path) -> None:
    url, log = sqlite_url(), Log(tmp_path / "log")
    ledger_at(url, PURE).close()
    os.waitpid(in_a_process(lambda: in_small(url, log, room), log), 0)
    told = log.read()
    assert told[-1][0] == "refused", told[-1]
    assert "must be written before anything is released" in told[-1][1] and "Nothing was released" in told[-1][1]
    again = ledger_at(url, PURE)
    again.verify()
    kept = {entry.number: entry.released for entry in again.entries()}
    assert {e[1]: (e[2],) for e in told if e[0] == "released"}.items() <= kept.items()
    assert {e[1] for e in told if e[0] == "charged"} <= set(kept)
    again.charge(TENTH)  # there is room again


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, of 400 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)], capture_output=True)
    if made.returncode:
        pytest.skip("no file system may be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_without_room_refuses_and_goes_on_when_there_is_some(small_disk) -> None:
    url, noise, released = f"sqlite:///{small_disk / 'people.ledger'}", Noise(), {}
    (small_disk / "other").write_bytes(bytes(100_000))
    ledger = ledger_at(url, PURE)
    charged = -1
    with pytest.raises(hr.LedgerUnavailable, match="must be written before anything is released"):
        for i in range(1000):
            charged = (receipt := ledger.charge(Laplace(1.0, 2000.0))).number
            released[charged] = float(noise.add(float(i), receipt))
    with pytest.raises(hr.LedgerUnavailable):  # and again: it must be opened anew
        ledger.charge(Laplace(1.0, 2000.0))
    (small_disk / "other").unlink()
    again = ledger_at(url, PURE)
    again.verify()
    kept = {entry.number: entry.released for entry in again.entries()}
    assert len(released) > 5 and {n: (value,) for n, value in released.items()}.items() <= kept.items()
    assert charged in kept
    again.charge(TENTH)
    again.verify()


def test_no_error_contains_what_could_not_be_written() -> None:
    url = sqlite_url()
    ledger = ledger_at(url, PURE)
    receipt = ledger.charge(TENTH)
    holding = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    holding.execute("DROP TABLE hedgerow_lines")
    holding.close()
    with pytest.raises(hr.LedgerUnavailable) as raised:
        ledger.record(receipt, 8675309.25)
    error: BaseException | None = raised.value
    assert error.__cause__ is None and error.__context__ is None
    assert "8675309" not in str(error)
    with pytest.raises(hr.LedgerUnavailable, match="whose ledger failed while it wrote"):
        ledger.charge(TENTH)


@everywhere
@pytest.mark.parametrize(
    "said",
    ["disk full\nDETAIL:  Failing row contains (7, 8675309).", "", "no room." * 90],
    ids=["details", "no words", "many words"],
)
def test_a_refusal_has_the_databases_first_words_and_nothing_of_the_statement_or_its_values(fresh, said) -> None:
    store = ledger_at(fresh(), PURE)._store

    def fail() -> None:
        raise store.errors[0](said)

    with pytest.raises(hr.LedgerUnavailable) as raised:
        store._attempt("written", fail)
    words = str(raised.value)
    assert not any(part in words for part in ("8675309", "INSERT", "DETAIL", "\n"))
    assert (said.splitlines() or ["Error"])[0].rstrip(".")[:160] in words and len(words) < 500


def test_a_file_that_may_only_be_read_refuses_and_is_as_it_was() -> None:
    url = sqlite_url()
    ledger_at(url, PURE).charge(TENTH)
    head = read(url).head
    folder = Path(url.removeprefix("sqlite:///")).parent

    def try_it() -> str:
        if os.geteuid() == 0:  # whom nothing is forbidden
            os.setgid(65534)
            os.setuid(65534)
        try:
            ledger_at(url, PURE).charge(TENTH)
        except hr.LedgerUnavailable as refusal:
            return str(refusal)
        return "charged"

    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    try:
        assert "The ledger on SQLite must be" in forked(try_it)
    finally:
        folder.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o644)
    assert read(url).head == head
    ledger_at(url, PURE).charge(TENTH)


@everywhere
def test_a_clock_that_went_back_refuses_a_charge_and_not_what_was_drawn(fresh) -> None:
    ledger = ledger_at(fresh(), PURE)
    receipt = ledger.charge(TENTH)
    later = now() + 3600 * 10**6  # as a line that was written before the clock was set back
    ledger._store.append([(later, "", "answers", '{"answers":[],"v":1}')])
    with pytest.raises(hr.LedgerUnavailable, match=r"clock must not go back\. Found it 3600 s before"):
        ledger.charge(TENTH)
    assert ledger.spent == pytest.approx(0.1)
    value = Noise().add(np.arange(2), receipt)
    assert np.array_equal(ledger.entries()[0].released[0], value)
    ledger.verify()


@everywhere
def test_a_waiter_is_refused_after_the_limit_and_readers_do_not_wait(fresh) -> None:
    url = fresh()
    short = f"{url}{'&' if '?' in url else '?'}timeout=0.3"
    holder, other = ledger_at(url, PURE), ledger_at(short, PURE)
    with holder.asking("a long question"):
        holder.charge(TENTH)
        with pytest.raises(hr.LedgerUnavailable, match=r"another session had its turn for longer than 0\.3 s"):
            other.charge(TENTH)
        looking = read(short)
        assert len(looking.entries()) == 1 and looking.verify() == holder.head
        assert looking.spending().charges.sum() == 1
        other.refresh()
        assert other.spent == pytest.approx(0.1)
    other.charge(TENTH)
    assert other.spent == pytest.approx(0.2)


@everywhere
def test_a_waiter_gets_the_turn_when_the_question_is_over(fresh) -> None:
    url = fresh()
    holder, other = ledger_at(url, PURE), ledger_at(url, PURE)
    order = []

    def wait() -> None:
        other.charge(TENTH)
        order.append("other")

    waiting = threading.Thread(target=wait)
    with holder.asking("a long question"):
        holder.charge(TENTH)
        waiting.start()
        waiting.join(0.3)
        holder.charge(TENTH)
        order.append("holder")
    waiting.join()
    assert order == ["holder", "other"]
    assert other.spent == pytest.approx(0.3)


@pytest.mark.parametrize("together", [False, True])
def test_an_answer_that_could_not_be_written_is_neither_given_nor_repeated(together) -> None:
    url = sqlite_url()
    session = opened(f"{url}?timeout=0.2")
    session.ask(FREE[0])  # its round is open
    holding = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    holding.execute("BEGIN IMMEDIATE")
    for _ in range(2):
        with pytest.raises(hr.LedgerUnavailable, match="must be written before anything is released"):
            session.ask_all(FREE[1:4]) if together else session.ask(FREE[1])
    holding.execute("ROLLBACK")
    holding.close()
    said = [session.ask(query).value for query in FREE[:4]]
    again = opened(url)
    assert [again.ask(query).value for query in FREE[:4]] == said and again.spent == session.spent


def test_a_turn_ends_with_its_process(tmp_path) -> None:
    for fresh in (sqlite_url, postgres_url):
        url, log = fresh(), Log(tmp_path / fresh.__name__)
        ledger_at(url, PURE).close()

        def die(url: str = url) -> None:
            ledger = ledger_at(url, PURE)
            with ledger.asking("a question"):
                ledger.charge(TENTH)
                os.kill(os.getpid(), signal.SIGKILL)

        os.waitpid(in_a_process(die, log), 0)
        after = ledger_at(url, PURE)
        assert after.spent == pytest.approx(0.1)
        after.charge(TENTH)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:50%hunter2@localhost/people",
        "postgresql://ana:x?hunter2@localhost/people",
        "postgresql://ana:x@hunter2@localhost/people",
        "postgresql://ana:x/hunter2@localhost/people",
        "postgresql://ana:hunter2/x@localhost/people",
        "host=localhost password=hunter2",
        "password=hunter2",
        "hunter2hunter2hunter2://localhost",  # longer than any scheme
    ],
)
def test_no_piece_of_a_password_is_in_the_refusal_of_a_url(url) -> None:
    with pytest.raises(hr.InvalidInput, match="ledger must be a URL") as refused:
        ledger_at(url, PURE)
    assert "hunter" not in str(refused.value) and refused.value.__cause__ is refused.value.__context__ is None


def test_a_password_with_signs_by_their_codes_is_the_password() -> None:
    store: Any = store_at("postgresql://ana:p%40s%2F%3F%25@[::1]:5433/people?host=%2Ftmp&connect_timeout=3")
    place = store._place
    assert (place["password"], place["port"], place["host"], place["connect_timeout"]) == (
        "p@s/?%",
        "5433",
        "/tmp",
        "3",
    )


def test_a_database_without_an_encoding_holds_a_ledger() -> None:
    """PostgreSQL says of its texts that they are bytes."""
    server().sql("CREATE DATABASE plain ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    url = f"postgresql://owner@/plain?host={server().folder}"
    ledger = ledger_at(url, PURE)
    ledger.charge(TENTH)
    ledger.close()
    again = ledger_at(url, PURE)
    assert again.spent == TENTH.epsilon and again.verify() == again.head
    again.close()


@everywhere
def test_a_waiter_interrupted_as_the_turn_comes_does_not_keep_it(fresh) -> None:
    url = fresh()
    ledger_at(url, PURE).close()
    store, other = store_at(url), store_at(f"{url}{'&' if '?' in url else '?'}timeout=1")
    for step in ("_take_turn", "_end_turn"):
        done = getattr(store, step)

        def interrupted(done: Any = done, step: str = step) -> None:
            if step == "_take_turn":
                done()
            raise KeyboardInterrupt

        setattr(store, step, interrupted)
        with pytest.raises(KeyboardInterrupt), store.turn():
            pass
        setattr(store, step, done)
        for each in (other, store):
            with each.turn():
                pass
    store.close()
    other.close()


def test_a_wait_of_less_than_a_millisecond_is_not_one_for_ever() -> None:
    url = postgres_url()
    ledger_at(url, PURE).close()
    one, two = store_at(url), store_at(f"{url}&timeout=0.0001")
    with one.turn(), pytest.raises(hr.LedgerUnavailable, match="another session had its turn"):
        two.take_turn()
    one.close()
    two.close()
