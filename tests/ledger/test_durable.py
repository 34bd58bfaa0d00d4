"""Ledgers that outlive their session: they resume unchanged, for the right owner, and caps limit who may spend how much."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from crashing import BOUGHT, BUDGET, FREE, TABLE, TABLES, UNIVERSE, WITHIN, opened
from fresh_ledgers import postgres_url, sqlite_url

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.ledger import Head, binding, chain, read, replay, snapshots, spending, stored_answers
from hedgerow.ledger import opened as ledger_at
from hedgerow.ledger.chain import next_line
from hedgerow.ledger.store import Moved
from hedgerow.privacy.events import Gaussian, Laplace, ThresholdedCounts
from hedgerow.privacy.noise import Noise
from hedgerow.query.counts import bound

everywhere = pytest.mark.parametrize("fresh", [sqlite_url, postgres_url], ids=["SQLite", "PostgreSQL"])
SETS = [("a",), ("a", "b"), ("b", "c", "d")]
PURE = hr.Budget(1.0, 0.0)


def heard(session: hr.Session, query: hr.Query, within: float | None = None) -> tuple[bytes, object]:
    answer = session.ask(query, within=within)
    return np.asarray(answer.value).tobytes(), np.asarray(answer.error, dtype=float).tolist()


def asked(session: hr.Session) -> list[object]:
    return [heard(session, q) for q in (*FREE, *TABLES)] + [heard(session, q, WITHIN) for q in BOUGHT]


def changed(url: str, *statements: str) -> None:
    """By somebody who can write to the database."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def alike(one: hr.Session, other: hr.Session) -> bool:
    return all(np.array_equal(one.hypothesis.marginal(names), other.hypothesis.marginal(names)) for names in SETS)


# Taken up


@everywhere
def test_a_reopened_session_has_its_spending_and_gives_the_same_answers_for_free(fresh) -> None:
    url = fresh()
    first = opened(url)
    before = asked(first)
    again = opened(url)
    assert (again.spent, len(again.log)) == (first.spent, len(first.log)) and alike(first, again)
    assert asked(again) == before
    assert again.spent == first.spent
    assert first.ask(BOUGHT[0], within=WITHIN).source == again.ask(BOUGHT[0], within=WITHIN).source == "repeat"
    again.ledger.verify()


def test_a_snapshot_gives_what_all_entries_give_to_the_last_bit(monkeypatch) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 3)
    url = sqlite_url()
    first = opened(url)
    before = asked(first)
    by_snapshot = opened(url)
    assert by_snapshot.ledger._parts.log.entries._loaded is None  # nothing before it was read
    changed(url, "DELETE FROM hedgerow_snapshots")
    by_entries = opened(url)
    assert by_entries.ledger._parts.log.entries._older == 0
    assert by_snapshot.spent == by_entries.spent == first.spent
    assert alike(first, by_snapshot) and alike(first, by_entries)
    assert asked(by_snapshot) == asked(by_entries) == before
    assert by_snapshot.certificate == by_entries.certificate == first.certificate is not None
    assert hr.wire.dumps(by_snapshot.log[3]) == hr.wire.dumps(by_entries.log[3])


@pytest.mark.parametrize("slack", [0.0, 4e-7])
def test_a_snapshot_has_all_that_was_spent_of_the_budget_of_a_share_of_the_slack_and_of_a_cap(
    slack, monkeypatch
) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 1)
    url, budget = sqlite_url(), hr.Budget(1.0, 1e-6)
    first = ledger_at(url, budget, slack=slack, who="ana")
    first.snapshots.remember(lambda: {"known": 1})
    with first.asking():
        if slack:
            first.charge(ThresholdedCounts(Gaussian(1.0, 20.0), 105))
        else:
            first.charge(budget.plan_noise(Gaussian(1.0, (0.8 * budget.total) ** -0.5), 0.8))
        first.charge(Gaussian(1.0, 20.0))
    again = ledger_at(url, budget, slack=slack, who="ana")
    assert again._parts.log.entries._loaded is None and again.snapshots.last_state() == {
        "known": 1
    }  # no entry was read
    assert again.standing == first.standing and (0 < again.standing.failing < slack or again.standing.planned > 0)
    assert (again.slack, again.remaining) == (first.slack, first.remaining)
    assert again._parts.caps.by == first._parts.caps.by and again._parts.caps.by["ana"] > 0


def test_no_snapshot_is_taken_that_lacks_what_others_bought(monkeypatch) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 1)
    url = sqlite_url()
    one, two = opened(url), opened(url)
    two.ask(BOUGHT[0], within=WITHIN)
    with one.ledger.asking():  # which hears of it, and has learned nothing from it yet
        one.ledger.charge(Gaussian(1.0, 1e5), why="something else")
    assert not alike(one, two) and alike(opened(url), two)


@pytest.mark.parametrize("profile", ["practical", "theory"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_every_profile_is_resumed(profile, neighbours) -> None:
    url = sqlite_url()

    def again() -> hr.Session:
        return hr.open(
            HistogramSource(UNIVERSE, 100 * TABLE.marginal(UNIVERSE.names)), universe=UNIVERSE,
            budget=hr.Budget(1.0, 1e-6, neighbours), profile=profile, ledger=url, seed=2,
        )  # fmt: skip

    first = again()
    before = [heard(first, q) for q in FREE]
    second = again()
    assert alike(first, second) and second.rows == first.rows and second.spent == first.spent
    assert [heard(second, q) for q in FREE] == before


def test_the_remainder_that_a_read_only_ledger_states_is_what_questions_may_spend() -> None:
    """Half of a share for planned noise is not theirs."""
    url, budget = sqlite_url(), hr.Budget(1.0, 1e-6)
    ledger = ledger_at(url, budget)
    ledger.charge(budget.plan_noise(Gaussian(1.0, (0.8 * budget.total) ** -0.5), 0.8))
    reading = read(url)
    assert reading.remaining == ledger.remaining == pytest.approx(0.2 * budget.total)
    assert reading.spent == ledger.spent < 0.5 * budget.total


def test_an_open_round_of_a_guard_is_spent_when_the_session_is_left() -> None:
    url = sqlite_url()
    first = opened(url)
    first.ask(FREE[0])
    rounds = [entry for entry in first.log if entry.why == "guard round"]
    assert rounds and not rounds[-1].released
    again = opened(url)
    assert again.spent == first.spent and not again._engine._watch.is_open
    again.ask(FREE[1])
    assert len([entry for entry in again.log if entry.why == "guard round"]) == len(rounds) + 1


def test_free_answers_are_written_with_the_next_charge_and_those_of_a_guard_at_once() -> None:
    url = sqlite_url()
    session = hr.open(TABLE, universe=UNIVERSE, budget=BUDGET, guard=0.0, reserve=0.3, ledger=url, seed=1)
    lines = session.ledger.head.number
    free = [heard(session, query) for query in FREE]
    assert session.ledger.head.number == lines
    assert len(session.ledger.answers()) == len(FREE)
    session.ask(BOUGHT[0], within=1e-4)
    assert len([1 for line in session.ledger.export() if json.loads(line)["kind"] == "answers"]) == 2
    again = hr.open(TABLE, universe=UNIVERSE, budget=BUDGET, guard=0.0, reserve=0.3, ledger=url, seed=1)
    assert [heard(again, query) for query in FREE] == free
    guarded = opened(sqlite_url())
    before = guarded.ledger.head.number
    guarded.ask(FREE[0])
    guarded.ask(FREE[1])
    assert guarded.ledger.head.number == before + 3  # a round, and two answers that hold a comparison each


def test_answers_of_a_guard_that_are_given_together_are_written_together_before_they_are_given() -> None:
    url = sqlite_url()
    session = opened(url, seed=1)
    before = session.ledger.head.number
    first = [(a.value, a.error) for a in session.ask_all(FREE[:6])]
    kinds = [json.loads(line)["kind"] for line in session.ledger.export()][before:]
    assert kinds == ["charge", "answers", "answers"]  # a round, the answer that paid for it, and all others
    again = opened(url, seed=1)  # as after a crash: nothing was flushed
    assert [(a.value, a.error) for a in again.ask_all(FREE[:6])] == first and again.spent == session.spent


@everywhere
def test_earlier_answers_are_repeated_within_a_batch(fresh) -> None:
    url = fresh()
    first = opened(url, guard=0.0)
    free = [(a.value, a.error) for a in first.ask_all(FREE)]
    first.ask(BOUGHT[0], within=WITHIN)  # learned from, so that it would be answered otherwise now
    first.ledger.close()
    again = opened(url, guard=0.0)
    answers = again.ask_all([*FREE, *BOUGHT])
    assert [(a.value, a.error) for a in answers[: len(FREE)]] == free
    assert {a.source for a in answers[: len(FREE) + 1]} == {"repeat"} and answers[-1].source == "hypothesis"
    assert [again._engine.hypothesis_answer(bound(q, UNIVERSE)) for q in FREE] != [value for value, _ in free]


def test_large_answers_do_not_wait_in_memory(monkeypatch) -> None:
    monkeypatch.setattr(stored_answers, "CELLS", 20)
    session = hr.open(TABLE, universe=UNIVERSE, budget=BUDGET, guard=0.0, ledger=sqlite_url(), seed=1)
    lines = session.ledger.head.number
    session.ask(TABLES[1])
    assert session.ledger.head.number == lines
    session.ask(TABLES[0])  # 8 and 18 cells
    assert session.ledger.head.number == lines + 1 and len(session.ledger.answers()) == 2


def test_many_free_answers_are_written_together(monkeypatch) -> None:
    monkeypatch.setattr(stored_answers, "TOGETHER", 4)
    url = sqlite_url()
    session = hr.open(TABLE, universe=UNIVERSE, budget=BUDGET, guard=0.0, ledger=url, seed=1)
    lines = session.ledger.head.number
    session.ask_all(FREE[:8])
    assert session.ledger.head.number == lines + 2
    session.ask(FREE[8])
    session.ledger.close()
    assert [bound.key for bound, _ in ledger_answers(url)] == [bound.key for bound, _ in session.ledger.answers()]
    assert len(ledger_answers(url)) == 9


def ledger_answers(url: str) -> list[tuple[object, object]]:
    session = hr.open(TABLE, universe=UNIVERSE, budget=BUDGET, guard=0.0, ledger=url, seed=1)
    return list(session.ledger.answers())


# Whose it is

OTHER_ROW = TABLE.marginal(UNIVERSE.names).copy()
OTHER_ROW.flat[0] -= 1
OTHER_ROW.flat[1] += 1


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"source": HistogramSource(UNIVERSE, OTHER_ROW)}, "must be resumed on the table that it was opened on"),
        ({"budget": hr.Budget(1.5, 1e-6)}, "budget must be that of the ledger"),
        ({"reserve": 0.2}, "another reserve"),
        ({"guard": 0.1}, "another guard"),
        ({"beta": 0.1}, "another beta"),
        ({"queries": 7}, "another queries"),
        ({"workload": hr.marginals(2)}, "another workload"),
        ({"workload": [hr.count(a=1)]}, "another workload"),
        ({"profile": "theory", "reserve": None}, "another profile"),
    ],
)
def test_another_table_or_another_declaration_is_refused_and_spends_nothing(given, refused) -> None:
    url = sqlite_url()
    usual = {"source": TABLE, "universe": UNIVERSE, "budget": BUDGET, "reserve": 0.3, "ledger": url, "seed": 1}
    head = hr.open(**usual).ledger.head
    with pytest.raises(hr.InvalidInput, match=refused) as raised:
        hr.open(**{**usual, **given})
    assert raised.value.__context__ is None
    assert read(url).head == head
    assert hr.open(**usual).ledger.head == head


def test_another_version_is_refused_until_the_owner_accepts_it(monkeypatch) -> None:
    url = sqlite_url()
    first = opened(url)
    before = heard(first, BOUGHT[0], WITHIN)
    monkeypatch.setattr(binding, "version_now", lambda: "99.0")
    with pytest.raises(hr.InvalidInput, match=r"Found hedgerow 99\.0"):
        opened(url)
    read(url).accept_version()
    again = opened(url)
    assert again.ledger._parts.log.entries._older == 0  # the other version's snapshot is not believed
    assert again.spent == first.spent and heard(again, BOUGHT[0], WITHIN) == before


def test_the_key_is_apart_from_the_ledger_and_without_it_nothing_is_recognised(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HEDGEROW_LEDGER_KEY_FILE", str(tmp_path / "apart" / "ledger.key"))
    url, other = sqlite_url(), sqlite_url()
    opened(url)
    key = tmp_path / "apart" / "ledger.key"
    assert key.stat().st_mode & 0o777 == 0o600 and len(bytes.fromhex(key.read_text())) == 32
    kept = "".join(read(url).export())
    assert key.read_text() not in kept and TABLE.fingerprint() not in kept
    opened(other)
    marks = [json.loads(json.loads(next(read(u).export()))["body"])["table"] for u in (url, other)]
    assert binding._fingerprint(b"one", "name", "content") != binding._fingerprint(b"two", "name", "content")
    assert marks[0]["table"] != marks[1]["table"] and marks[0]["key"] == marks[1]["key"]
    key.chmod(0o644)
    with pytest.raises(hr.InvalidInput, match="must be able to use the key file"):
        opened(url)
    key.chmod(0o600)
    given = key.read_text()
    key.unlink()
    with pytest.raises(hr.InvalidInput, match="key of the ledger must exist"):
        opened(url)
    assert not key.exists()  # a new one would not be the ledger's
    monkeypatch.setenv("HEDGEROW_LEDGER_KEY", "00" * 32)
    with pytest.raises(hr.InvalidInput, match="must be the one that the ledger was made with"):
        opened(url)
    monkeypatch.setenv("HEDGEROW_LEDGER_KEY", "short")
    with pytest.raises(hr.InvalidInput, match="at least 64 hexadecimal digits"):
        opened(url)
    monkeypatch.setenv("HEDGEROW_LEDGER_KEY", given)
    opened(url)


# Sharing


@everywhere
def test_sessions_on_one_ledger_know_of_each_others_charges_before_they_charge(fresh) -> None:
    url = fresh()
    one, two = opened(url, who="one"), opened(url, who="two")
    one.ask(BOUGHT[0], within=WITHIN)
    spent = one.spent
    assert two.spent < spent
    two.ask(BOUGHT[1], within=WITHIN)
    assert two.spent > spent and alike(opened(url), two) and not alike(one, two)
    one.ask(BOUGHT[2], within=WITHIN)
    two.ledger.refresh()
    assert one.spent == two.spent == opened(url).spent and alike(opened(url), one)
    assert two.ask(BOUGHT[2], within=WITHIN).source == "repeat"  # answered to the other
    one.ledger.verify()
    assert [entry.number for entry in one.log] == list(range(len(one.log)))


@everywhere
def test_the_second_opening_gets_the_releases_of_the_first_and_pays_nothing(fresh) -> None:
    url = fresh()
    one, two = ledger_at(url, PURE), ledger_at(url, PURE)
    said = []
    for ledger in (one, two):
        with ledger.opening():
            receipt = ledger.charge(Laplace(1.0, 2.0), why="opening")
            said.append(Noise().add(np.zeros(3), receipt).tolist())
    assert said[0] == said[1]
    assert one.spent == two.spent == pytest.approx(0.5)
    assert len(two.entries()) == 1


@everywhere
def test_a_draw_is_recorded_although_another_process_has_charged_since(fresh) -> None:
    """Only a charge needs the turn: what was paid for must come out, whoever was in between."""
    url = fresh()
    one, two = ledger_at(url, PURE), ledger_at(url, PURE)
    receipt = one.charge(Laplace(1.0, 4.0))
    two.charge(Laplace(1.0, 4.0))
    one.record(receipt, 0.25)
    assert [entry.released for entry in read(url).entries()] == [(0.25,), ()]
    assert one.spent == pytest.approx(0.5)
    one.charge(Laplace(1.0, 4.0))


def test_amounts_spent_by_one_process_are_not_left_for_the_other() -> None:
    url = sqlite_url()
    one, two = ledger_at(url, PURE), ledger_at(url, PURE)
    one.charge(Laplace(1.0, 1 / 0.7))
    assert two.affords(Laplace(1.0, 1 / 0.7))  # as far as it has heard
    with pytest.raises(hr.BudgetExceeded):
        two.charge(Laplace(1.0, 1 / 0.7))
    assert two.spent == one.spent == pytest.approx(0.7)
    receipt = two.charge(Laplace(1.0, 1 / 0.3))
    assert receipt.number == 1
    one.refresh()
    assert one.remaining == two.remaining == pytest.approx(0.0, abs=1e-9)


@everywhere
def test_nobody_spends_more_than_their_cap_and_all_together_no_more_than_the_budget(fresh) -> None:
    url = fresh()
    owner = ledger_at(url, PURE)
    owner.cap("ana", 0.3)
    ana, ben = ledger_at(url, PURE, who="ana"), ledger_at(url, PURE, who="ben")
    assert ana.remaining == pytest.approx(0.3) and ben.remaining == 1.0
    ana.charge(Laplace(1.0, 1 / 0.25))
    with pytest.raises(hr.BudgetExceeded, match="'ana'"):
        ana.charge(Laplace(1.0, 1 / 0.1))
    assert not ana.affords(Laplace(1.0, 1 / 0.1)) and ana.affords(Laplace(1.0, 1 / 0.05))
    again = ledger_at(url, PURE, who="ana")
    assert again.remaining == pytest.approx(0.05)
    assert again.limit == "the cap of 'ana'" and ben.limit == "the budget"
    with pytest.raises(hr.BudgetExceeded, match="'ana'"):
        again.charge(Laplace(1.0, 1 / 0.1))
    ben.charge(Laplace(1.0, 1 / 0.72))
    again.refresh()
    assert again.limit == "the budget"  # less is left of it than of the cap
    with pytest.raises(hr.BudgetExceeded):
        again.charge(Laplace(1.0, 1 / 0.04))  # within the cap, and not within the whole
    owner.refresh()
    owner.cap("ana", 0.26)
    view = ledger_at(url, PURE).spending()
    assert view.who.tolist() == ["ana", "ben"] and view.spent.tolist() == pytest.approx([0.25, 0.72])
    assert view.charges.tolist() == [1, 1] and view.share.sum() == pytest.approx(0.97)
    assert ledger_at(url, PURE).spending(days=1).equals(view) and ledger_at(url, PURE).spending(days=-1).empty
    assert read(url).caps == {"ana": 0.26}
    for who, epsilon in (("", 0.1), ("ana", 1.5)):
        with pytest.raises(hr.InvalidInput, match="A cap must have a name"):
            owner.cap(who, epsilon)


@everywhere
def test_a_project_has_a_cap_that_its_analysts_share_and_each_may_have_one_of_their_own(fresh) -> None:
    url = fresh()
    owner = ledger_at(url, PURE)
    owner.cap("heart", 0.5)
    owner.cap("heart/ana", 0.3)
    ana, ben = ledger_at(url, PURE, who="heart/ana"), ledger_at(url, PURE, who="heart/ben")
    other, alike = ledger_at(url, PURE, who="lung/ana"), ledger_at(url, PURE, who="hearty")
    assert [x.remaining for x in (ana, ben, other)] == pytest.approx([0.3, 0.5, 1.0])
    ben.charge(Laplace(1.0, 1 / 0.3))
    with pytest.raises(hr.BudgetExceeded, match="'heart'"):  # within ana's own, and not within the project's
        ana.charge(Laplace(1.0, 1 / 0.25))
    ana.charge(Laplace(1.0, 1 / 0.1))
    assert ana.remaining == pytest.approx(0.1) and ledger_at(url, PURE, who="heart/ana").remaining == ana.remaining
    owner.refresh()
    owner.cap("heart", 0.9)
    with pytest.raises(hr.BudgetExceeded, match="'heart/ana'"):
        ana.charge(Laplace(1.0, 1 / 0.25))
    for free in (other, alike):
        free.charge(Laplace(1.0, 1 / 0.25))
    assert owner.spending().groupby("who").spent.sum().to_dict() == pytest.approx(
        {"heart/ana": 0.1, "heart/ben": 0.3, "hearty": 0.25, "lung/ana": 0.25}
    )


@everywhere
def test_a_cap_is_used_only_by_its_own_analyst_and_not_by_similar_names(fresh) -> None:
    url = fresh()
    owner = ledger_at(url, PURE)
    for name in ("heart", "heart/ana"):
        owner.cap(name, 0.4)
    for who in ("hearts", "heart-2/ana", "hear", "heart ", "lung/heart", "Heart/ana", "heart/anabel"):
        ledger_at(url, PURE, who=who).charge(Laplace(1.0, 1 / 0.05))
    assert ledger_at(url, PURE, who="heart").remaining == pytest.approx(0.35)  # anabel is of the project
    assert ledger_at(url, PURE, who="heart/ana").remaining == pytest.approx(0.35)  # and is not Ana
    ledger_at(url, PURE, who="heart/ana").charge(Laplace(1.0, 1 / 0.1))
    left = [ledger_at(url, PURE, who=who).remaining for who in ("heart", "heart/ana", "heart/ben", "hearts")]
    assert left == pytest.approx([0.25, 0.25, 0.25, 0.55])


def test_the_cap_of_all_analysts_holds_for_their_sum_and_not_for_everybody() -> None:
    url = sqlite_url()
    owner = ledger_at(url, PURE)
    owner.charge(Laplace(1.0, 1 / 0.2))
    owner.cap("*", 0.3)
    ana, ben = ledger_at(url, PURE, who="heart/ana"), ledger_at(url, PURE, who="ben")
    assert [x.remaining for x in (ana, ben, ledger_at(url, PURE))] == pytest.approx([0.3, 0.3, 0.8])
    ana.charge(Laplace(1.0, 1 / 0.2))
    with pytest.raises(hr.BudgetExceeded, match=r"what is left of '\*'"):
        ben.charge(Laplace(1.0, 1 / 0.2))
    ben.charge(Laplace(1.0, 1 / 0.1))
    assert ledger_at(url, PURE).remaining == pytest.approx(0.5)


def test_charges_of_an_opening_are_on_nobodys_cap() -> None:
    url = sqlite_url()
    session = opened(url, who="ana")
    session.ask(BOUGHT[0], within=WITHIN)
    view = session.ledger.spending().set_index("who").charges
    assert view["ana"] == len(session.log) - view[""] and view["ana"] >= 1
    with pytest.raises(hr.InvalidInput, match="analyst must come with a durable ledger"):
        hr.open(TABLE, universe=UNIVERSE, budget=BUDGET, analyst="ana", seed=1)


# Tampering


def small(fresh) -> tuple[str, Head]:
    """A ledger of a few lines, of every kind."""
    url = fresh()
    ledger = ledger_at(url, PURE)
    ledger.cap("ana", 0.5)
    for scale in (10.0, 20.0):
        Noise().add(np.arange(2), ledger.charge(Laplace(1.0, scale), why="a test"))
    return url, ledger.verify()


def test_every_single_byte_of_every_line_is_checked() -> None:
    url, head = small(sqlite_url)
    store = ledger_at(url, PURE)._store
    lines = list(store.lines())
    for i, line in enumerate(lines):
        for name in ("time", "who", "kind", "body", "hash", "number"):
            value = getattr(line, name)
            others = [value + 1, value ^ 64] if isinstance(value, int) else [
                *(value[:j] + chr(ord(c) ^ 1) + value[j + 1 :] for j, c in enumerate(value)), value + " ",
            ]  # fmt: skip
            for other in others:
                record = {n: getattr(line, n) for n in type(line).__slots__} | {name: other}
                forged = [*lines[:i], type(line)(**record), *lines[i + 1 :]]
                with pytest.raises(hr.LedgerBroken):
                    list(spending.check_lines(forged, Head()))
        elsewhere = next_line(lines[i - 1].head if i else Head(), line.time, line.who, line.kind, line.body + " ")
        if line is not lines[-1]:  # which nothing follows
            with pytest.raises(hr.LedgerBroken):
                list(spending.check_lines([*lines[:i], elsewhere, *lines[i + 1 :]], Head()))
    assert list(spending.check_lines(lines, Head()))[-1].head == head


def with_all_kinds(fresh) -> str:
    """A session's ledger with lines of every kind, answers of others and a snapshot; as few bytes of each as can be."""
    universe, url = hr.Universe(b=hr.Flag(), s=hr.Flag()), fresh()
    usual = {"universe": universe, "budget": BUDGET, "guard": 0.0, "reserve": 0.5, "ledger": url, "seed": 1}
    session = hr.open(
        HistogramSource(universe, [400, 300, 200, 100]), **usual, workload=hr.marginals(1), analyst="anaïs"
    )
    session.ledger.cap("anaïs", 0.9)
    session.ask(hr.count(b=True, s=True), within=0.05)
    read(url).accept_version()
    session.ledger.close()
    kinds = {json.loads(line)["kind"] for line in read(url).export()}
    assert kinds == {"account", "charge", "release", "answers", "cap", "snapshot", "version"}
    return url


def every_change(url: str, stride: int) -> int:
    """Each cell of both tables, changed in one place after another and back: how often ``verify`` was asked, and found it."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    store, tried = ledger_store(url), 0
    spending.verify(store)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table, names in (
            ("hedgerow_lines", ("time", "who", "kind", "body", "hash", "number")),
            ("hedgerow_snapshots", ("body", "number")),
        ):
            rows = connection.execute(sa.text(f"SELECT {', '.join(names)}, number AS key FROM {table}")).all()
            assert rows
            for row in rows:
                for name, value in zip(names, row, strict=False):
                    if isinstance(value, int):
                        others = [value + 1, value - 1, value ^ 2**40]
                    else:
                        places = range(row.key % stride, len(value), stride)
                        others = [value[:j] + chr(ord(value[j]) ^ 1) + value[j + 1 :] for j in places]
                        others += [value + " ", value[:-1] or "x"]
                    for other in others:
                        if name == "number" and other in {r.key for r in rows}:
                            continue  # there is one of that number already
                        update = sa.text(f"UPDATE {table} SET {name} = :value WHERE number = :key")
                        place = other if name == "number" else row.key
                        connection.execute(update, {"value": other, "key": row.key})
                        with pytest.raises(hr.LedgerBroken):
                            spending.verify(store)
                        connection.execute(update, {"value": value, "key": place})
                        tried += 1
    spending.verify(store)
    store.close()
    engine.dispose()
    return tried


@everywhere
def test_a_change_in_any_place_of_any_table_is_found(fresh) -> None:
    assert every_change(with_all_kinds(fresh), stride=97) > 150


@pytest.mark.audit
@everywhere
def test_a_change_of_any_byte_of_any_table_is_found(fresh) -> None:
    assert every_change(with_all_kinds(fresh), stride=1) > 5_000


@everywhere
def test_a_line_is_written_after_the_one_that_was_seen_last_or_not_at_all(fresh) -> None:
    store = ledger_store(small(fresh)[0])
    said, head = (1, "", "answers", '{"answers":[],"v":1}'), store.head()
    assert store.append([said], head).number == store.append_quickly(said, store.head()).number - 1
    after = store.head()
    assert after.number == head.number + 2
    with pytest.raises(Moved):
        store.append([said], head)
    assert store.append_quickly(said, head) is None
    assert store.head() == after == spending.verify(store)
    store.close()


@everywhere
@pytest.mark.parametrize(
    "harm",
    [
        ["UPDATE hedgerow_lines SET body = replace(body, '10.0', '99.0') WHERE number = 3"],
        ["UPDATE hedgerow_lines SET who = 'ben' WHERE number = 3"],
        ["DELETE FROM hedgerow_lines WHERE number = 4"],
        ["DELETE FROM hedgerow_lines WHERE number = 1"],
        ["DELETE FROM hedgerow_lines WHERE number = 4", "UPDATE hedgerow_lines SET number = number - 1 WHERE number > 4"],
        [f"UPDATE hedgerow_lines SET number = {new} WHERE number = {old}" for old, new in ((3, 99), (5, 3), (99, 5))],
        ["INSERT INTO hedgerow_lines SELECT number + 100, time, who, kind, body, hash FROM hedgerow_lines WHERE number = 3"],
    ],
    ids=["changed", "who", "removed", "without its first", "closed up", "moved", "doubled"],
)  # fmt: skip
def test_changed_removed_moved_and_doubled_lines_are_found_and_refused(fresh, harm) -> None:
    url, _ = small(fresh)
    changed(url, *harm)
    with pytest.raises(hr.LedgerBroken):
        spending.verify(ledger_store(url))
    with pytest.raises((hr.LedgerBroken, hr.InvalidInput)):
        ledger_at(url, PURE)


def ledger_store(url: str):
    from hedgerow.ledger.urls import store_at

    return store_at(url)


@everywhere
def test_lines_cut_off_at_the_end_are_found_by_a_head_noted_elsewhere(fresh) -> None:
    url, head = small(fresh)
    assert ledger_at(url, PURE).verify(str(head)) == head
    changed(url, f"DELETE FROM hedgerow_lines WHERE number > {head.number - 2}")
    shorter = ledger_at(url, PURE)
    shorter.verify()  # whole, as far as it goes
    for looked_at in (shorter, read(url)):
        with pytest.raises(hr.LedgerBroken, match="cut off"):
            looked_at.verify(str(head))
    with pytest.raises(hr.InvalidInput, match="A head must be"):
        shorter.verify("somewhere")


@pytest.mark.parametrize("harm", ["again", "skipped", "with what came out"])
def test_a_charge_that_is_not_the_next_one_is_found_though_its_hash_fits(harm) -> None:
    url, _ = small(sqlite_url)
    store, there = ledger_store(url), ledger_at(url, PURE)
    first = read(url).entries()[0]
    entry = {
        "again": dataclasses.replace(first, released=()),
        "skipped": dataclasses.replace(first, number=3, released=()),
        "with what came out": dataclasses.replace(first, number=2),
    }[harm]
    store.append([(chain.now(), "", "charge", hr.wire.dumps(entry))])
    assert len(list(chain.check_lines(store.lines(), Head()))) == store.head().number  # the chain is whole
    store.close()
    for taken_up in (there.refresh, lambda: ledger_at(url, PURE)):
        with pytest.raises(hr.LedgerBroken, match="must be charge 2"):
            taken_up()


def test_the_share_of_what_somebody_spent_is_of_the_whole_budget() -> None:
    ledger = ledger_at(sqlite_url(), hr.Budget(2.0, 0.0), who="ana")
    ledger.charge(Laplace(1.0, 2.0))
    assert ledger.spending().share.tolist() == pytest.approx([0.25])


def test_a_release_beyond_what_was_to_come_out_is_found_though_its_hash_fits() -> None:
    url, _ = small(sqlite_url)
    store, there = ledger_store(url), ledger_at(url, PURE)
    store.append([(chain.now(), "", "release", replay.written_release(read(url).entries()[0]))])
    store.close()
    for taken_up in (there.refresh, lambda: ledger_at(url, PURE), lambda: read(url).entries()):
        with pytest.raises(hr.LedgerBroken, match="Found one value more"):
            taken_up()


@pytest.mark.parametrize("number", [-1, 1, 7])
def test_a_release_of_a_charge_that_is_not_there_is_found_though_its_hash_fits(number) -> None:
    url, _ = small(sqlite_url)
    store, there = ledger_store(url), ledger_at(url, PURE)
    assert len(read(url).entries()) == 2
    release = json.loads(replay.written_release(read(url).entries()[0]))
    number = number if number < 0 else number + 1
    store.append([(chain.now(), "", "release", json.dumps(release | {"number": number}))])
    store.close()
    for taken_up in (there.refresh, lambda: ledger_at(url, PURE), lambda: read(url).entries()):
        with pytest.raises(hr.LedgerBroken, match="a release of one of the 2 charges before it"):
            taken_up()


@pytest.mark.parametrize("kind", ["account", "charge", "release", "cap", "answers", "snapshot", "block"])
def test_a_line_of_another_format_is_never_read_as_one_of_this_format(kind) -> None:
    """A version that stores more, or stores it otherwise, numbers its format anew; a line without a format is no line."""
    for fields in ({}, {"number": 0, "private": True, "who": "ana", "amount": 1.0}):
        for another in (replay.FORMAT + 1, replay.FORMAT - 1, str(replay.FORMAT), None):
            line = next_line(Head(), 1000, "", kind, json.dumps(fields | {"v": another}))
            with pytest.raises(hr.InvalidInput, match="The format of a ledger must be"):
                replay.record_in(line)
        with pytest.raises(hr.LedgerBroken, match="must have the form of its kind"):
            replay.record_in(next_line(Head(), 1000, "", kind, json.dumps(fields)))


def test_a_line_earlier_than_the_one_before_it_is_found_though_its_hash_fits() -> None:
    lines = [next_line(Head(), 1000, "", "account", "{}")]
    for time in (1000, 2000):  # at one time, and later
        lines.append(next_line(lines[-1].head, time, "", "answers", "{}"))
    assert list(chain.check_lines(lines, Head())) == lines
    late = next_line(lines[-1].head, 1999, "", "answers", "{}")
    with pytest.raises(hr.LedgerBroken, match="Found an earlier time"):
        list(chain.check_lines([*lines, late], Head()))


def test_a_changed_snapshot_is_found_and_refused() -> None:
    url = sqlite_url()
    session = opened(url)
    session.ask(BOUGHT[0], within=WITHIN)
    changed(url, "UPDATE hedgerow_snapshots SET body = replace(body, '\"tops\": 0', '\"tops\": 1')")
    with pytest.raises(hr.LedgerBroken, match="snapshot"):
        session.ledger.verify()
    with pytest.raises(hr.LedgerBroken, match="snapshot"):
        opened(url)


def test_a_byte_of_the_file_is_found_or_says_nothing() -> None:
    url, head = small(sqlite_url)
    path = Path(url.removeprefix("sqlite:///"))
    changed(url, "PRAGMA wal_checkpoint(TRUNCATE)")
    whole, said = path.read_bytes(), list(read(url).export())
    for place in np.random.default_rng(0).integers(0, len(whole), 40):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            ledger = read(url)
            ledger.verify(head)
            assert list(ledger.export()) == said  # a byte that no line is in
            ledger.close()
        except hr.HedgerowError:
            pass


def test_exported_lines_are_checked_where_they_are_read() -> None:
    url, head = small(sqlite_url)
    lines = list(read(url).export())
    assert [line.number for line in spending.import_lines(iter(lines))] == list(range(1, head.number + 1))
    for forged in (lines[:2] + lines[3:], [lines[1], lines[0], *lines[2:]]):
        with pytest.raises(hr.LedgerBroken):
            list(spending.import_lines(iter(forged)))


def test_a_ledger_as_lines_of_json_is_resumed_in_memory() -> None:
    session = opened(sqlite_url())
    asked(session)
    again = hr.wire.ledger_from_lines(list(hr.wire.ledger_lines(session.ledger)), UNIVERSE)
    assert again.spent == session.spent and len(again.answers()) == len(session.ledger.answers())


# Where it is


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("people.ledger", "must be a URL"),
        ("mysql://me:secret@host/db", "must be a URL"),
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
        ("sqlite:////nowhere/at/all/people.ledger", "folder of a ledger"),
        ("sqlite:///people.ledger?timeout=soon", "timeout must be"),
    ],
)
def test_a_place_that_cannot_be_is_refused(url, refused) -> None:
    with pytest.raises(hr.InvalidInput, match=refused) as raised:
        ledger_at(url, PURE)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("missing", "url", "extra"),
    [("psycopg", "postgresql://nobody@nowhere/x", "postgres")],
)
def test_without_the_extra_it_is_said_which_one(missing, url, extra, tmp_path) -> None:
    code = f"""
import sys
sys.modules[{missing!r}] = None
import hedgerow as hr
try:
    hr.ledger.opened({url!r}, hr.Budget(1.0, 0.0))
except hr.InvalidInput as refusal:
    print(refusal)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=os.environ)
    assert f"pip install 'hedgerow[{extra}]'" in ran.stdout, ran.stderr


def test_there_must_be_something_to_read(tmp_path) -> None:
    with pytest.raises(hr.InvalidInput, match="There must be a ledger to read"):
        read(f"sqlite:///{tmp_path / 'none.ledger'}")
