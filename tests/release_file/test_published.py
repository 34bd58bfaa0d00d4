"""A published file answers as the session did at the moment of publishing, and needs nothing else."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
from questions_at_random import (
    ADD_REMOVE,
    LOGISTIC,
    PURE,
    REPLACE,
    convex,
    guarded,
    matrix,
    mwem,
    practical,
    questions,
    released,
    several_blocks,
    small_db,
    small_file,
    theory,
    tiny_questions,
    with_losses,
)

import hedgerow as hr
from hedgerow.answering.synthetic import synthetic_records
from hedgerow.privacy.noise import public_generator

FREE = [
    pytest.param(practical, REPLACE, id="practical replace"),
    pytest.param(practical, ADD_REMOVE, id="practical add-remove"),
    pytest.param(practical, PURE, id="practical pure"),
    pytest.param(several_blocks, REPLACE, id="blocks replace"),
    pytest.param(several_blocks, ADD_REMOVE, id="blocks add-remove"),
    pytest.param(with_losses, REPLACE, id="certified losses"),
    pytest.param(released, REPLACE, id="release"),
]
FEW = hr.count(age=(2, 4), sex="F")


def asked(subject: Any, query: hr.Query, **given: Any) -> Any:
    try:
        answer = subject.ask(query, **given)
    except hr.HedgerowError as refusal:
        return str(refusal).partition(".")[0]
    parts = (answer.value, answer.error, answer.typical, answer.resolution, answer.coefficient_errors)
    return [None if part is None else np.asarray(part, dtype=float).tobytes() for part in parts], answer.labels


def published(session: hr.Session, folder: Any, **options: Any) -> hr.Release:
    return hr.load(session.publish(folder / "people.hedgerow", **options))


@pytest.mark.audit
@pytest.mark.parametrize(("opened", "budget"), FREE)
def test_500_random_questions_get_the_same_bits_from_the_file(opened, budget, tmp_path) -> None:
    session = opened(budget)
    release = published(session, tmp_path, answers="none")
    for query in questions(500, seed=11):
        assert asked(release, query) == asked(session, query), query


@pytest.mark.parametrize(("opened", "budget"), FREE)
def test_random_questions_of_every_kind_get_the_same_bits_from_the_file(opened, budget, tmp_path) -> None:
    session = opened(budget)
    if opened is practical:
        session.ask(FEW, within=0.01)  # so that the model has grown since the certificate
    release = published(session, tmp_path, answers="none")
    for i, query in enumerate(questions(100 if opened is practical else 50, seed=5)):
        scale = "rows" if i % 2 else "fraction"
        assert asked(release, query, scale=scale) == asked(session, query, scale=scale), query
    assert (release.spent, release.budget, release.private) == (session.spent, session.budget, session.private)
    assert str(release.certificate) == str(session.certificate) and release.rows == session.rows


OFFLINE = [
    pytest.param(mwem, REPLACE, id="mwem"),
    pytest.param(matrix, REPLACE, id="matrix"),
    pytest.param(convex, hr.Budget(100.0, 1e-2), id="convex"),
    pytest.param(small_db, PURE, id="small_db"),
]


@pytest.mark.parametrize(("opened", "budget"), OFFLINE)
def test_a_release_of_every_method_gives_the_same_bits_from_the_file(opened, budget, tmp_path) -> None:
    session = opened(budget)
    release = published(session, tmp_path, answers="none")
    tiny = opened is small_db
    bars = 0
    for query in [*session_workload(opened), *(tiny_questions() if tiny else questions(40, seed=5))]:
        bars += session.ask(query).error is not None
        assert asked(release, query) == asked(session, query), query
    assert bars > 0 and "its workload alone has error bars" in release.new_questions
    assert str(release.statement()) == str(session.statement()) and release.rows == session.rows
    assert str(release.describe()) == str(session.describe())
    again = release.synthetic(50, seed=2)
    pd.testing.assert_frame_equal(again, pickle.loads(pickle.dumps(release)).synthetic(50, seed=2))
    with pytest.raises(hr.HedgerowError, match="must be"):
        release.ask(hr.marginal("sex"), within=1e-9)


def session_workload(opened: Any) -> list[hr.Query]:
    """Questions of the workload of an offline release, which have bars."""
    return {
        mwem: [hr.count(sex="F")], small_db: [hr.marginal("sex", "smoker")], convex: [LOGISTIC],
        matrix: [hr.marginal("age", "sex"), hr.marginal("region")],
    }[opened]  # fmt: skip


@pytest.mark.parametrize(("opened", "budget"), [FREE[0], FREE[1], FREE[3]])
def test_batches_sql_and_records_are_those_of_the_session(opened, budget, tmp_path) -> None:
    session, many = opened(budget), questions(60, seed=6)[: -2 if opened is several_blocks else None]
    release = published(session, tmp_path)
    for mine, theirs in zip(session.ask_all(many), release.ask_all(many), strict=True):
        if opened is several_blocks:  # a session repeats what it said of a part alone, which a batch rounds otherwise
            assert theirs.value == pytest.approx(mine.value, rel=1e-12) and (mine.error is None) == (
                theirs.error is None
            )
            continue
        assert np.array_equal(mine.value, theirs.value) and np.array_equal(mine.error, theirs.error)
    statement = "SELECT sex, count(*), avg(age) FROM data WHERE region BETWEEN 1 AND 2 GROUP BY sex"
    pd.testing.assert_frame_equal(session.sql(statement), release.sql(statement))
    session_records = synthetic_records(session.hypothesis, 500, lambda: public_generator(3), "values", None)
    records = release.synthetic(500, seed=3)
    assert records.attrs["certificate"] == str(session.certificate)
    pd.testing.assert_frame_equal(records.set_axis(records.columns, axis=1), session_records, check_flags=False)
    assert (release.ask(FEW) - release.ask(hr.count(sex="F"))).error is not None
    assert release.generalisation == published(session, tmp_path).generalisation


@pytest.mark.parametrize("opened", [guarded, theory])
def test_with_a_guard_recorded_answers_repeat_and_new_ones_have_a_published_bar_or_none(opened, tmp_path) -> None:
    session = opened(REPLACE)
    given = questions(30, seed=7)[: -2 if opened is theory else None]  # no losses were declared there
    before = [asked(session, query) for query in given]
    release = published(session, tmp_path, answers="all")
    again = [asked(release, query) for query in given]
    assert again == before
    assert "as the session answered them" not in str(release)
    new = release.ask(hr.count(age={0, 3, 5}, region={0, 2}, smoker=True))
    assert new.source == "hypothesis" and (new.error is None) == (opened is theory)


def test_within_is_met_for_free_or_refused_with_the_way_out(tmp_path) -> None:
    session = practical(REPLACE)
    release = published(session, tmp_path)
    bar = float(session.ask(FEW).error)
    assert asked(release, FEW, within=2 * bar) == asked(practical(REPLACE), FEW, within=2 * bar)
    assert release.price(FEW, within=2 * bar) == 0.0
    for ask in (release.ask, release.price):
        with pytest.raises(hr.InvalidInput, match="no narrower bar"):
            ask(FEW, within=bar / 3)


def test_questions_that_need_the_table_are_refused_with_advice(tmp_path) -> None:
    release = published(practical(REPLACE), tmp_path)
    for query in (hr.count(sex="F").over_time(), hr.statistic(lambda age: age > 3, ["age"])):
        for ask in (release.ask, release.price):
            with pytest.raises(hr.InvalidInput, match="Ask the owner"):
                ask(query)
        with pytest.raises(hr.InvalidInput):
            release.ask_all([query])
    for name in ("append", "publish", "sample_yes_no"):
        assert not hasattr(release, name)
        with pytest.raises(AttributeError, match="Ask the owner"):
            getattr(release, name)


def test_the_owner_chooses_which_answers_are_recorded(tmp_path) -> None:
    session = practical(REPLACE)
    session.ask(FEW)
    assert session.ask(hr.count(region=1), within=0.003).cost > 0
    recorded = {choice: published(session, tmp_path, answers=choice).recorded for choice in ("all", "bought", "none")}
    assert len(recorded["all"]) == 2 and recorded["none"] == []
    assert [answer.value for answer in recorded["bought"]] == [session.ask(hr.count(region=1)).value]
    assert recorded["bought"][0].cost > 0
    texts = {choice: published(session, tmp_path, answers=choice).report().json for choice in recorded}
    assert "region" in texts["all"] and not any(
        charge.asked for charge in published(session, tmp_path, answers="none").report().charges
    )
    with pytest.raises(hr.InvalidInput, match="answers must be"):
        session.publish(tmp_path / "people.hedgerow", answers="some")


def test_a_view_of_one_block_answers_about_it(tmp_path) -> None:
    session = several_blocks(REPLACE)
    release = published(session, tmp_path)
    assert list(release.blocks) == ["january", "february", "march"]
    for names in (("february",), ("january", "february")):
        for query in questions(8, seed=9):
            assert asked(release.select_blocks(*names), query) == asked(session.select_blocks(*names), query)
    again = pickle.loads(pickle.dumps(release.select_blocks("march")))
    assert asked(again, FEW) == asked(session.select_blocks("march"), FEW)


def test_a_release_works_in_threads_pickles_copies_and_forks(tmp_path) -> None:
    release, many = published(practical(REPLACE), tmp_path), questions(20, seed=11)
    alone = [asked(release, query) for query in many]
    assert [asked(pickle.loads(pickle.dumps(release)), query) for query in many] == alone
    assert [asked(copy.deepcopy(release), query) for query in many] == alone
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append([asked(release, query) for query in many])) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 3
    if hasattr(os, "fork"):
        with release._lock:  # the child must not wait for a thread that it does not have
            pid = os.fork()
            if pid == 0:
                os._exit(0 if asked(release, FEW) == asked(pickle.loads(pickle.dumps(release)), FEW) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_estimators_fit_on_a_release(tmp_path) -> None:
    from hedgerow.estimators import LogisticRegression

    session = practical(REPLACE)
    release = published(session, tmp_path)
    mine = LogisticRegression(session, target="smoker", features=["age", "sex"]).fit()
    theirs = LogisticRegression(release, target="smoker", features=["age", "sex"]).fit()
    assert np.array_equal(mine.coef_, theirs.coef_) and mine.error_bound_ == theirs.error_bound_


def test_a_file_neither_names_an_analyst_nor_depends_on_when_it_was_written(tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'people.ledger'}"
    with practical(REPLACE, ledger=url, analyst="Dr Hypatia") as session:
        assert session.ask(FEW, within=0.003).cost > 0
        first = session.publish(tmp_path / "a.hedgerow", answers="all").read_bytes()
        assert first == session.publish(tmp_path / "b.hedgerow", answers="all").read_bytes()
        assert "Hypatia" in session.report(everybody=True, names=True).json
        assert "Hypatia" not in session.public_view().report(everybody=True, names=True).json
    from hedgerow.release_file.container import unpack

    assert "Hypatia" not in repr(unpack(first).document)
    with practical(REPLACE, ledger=url) as resumed:
        release = published(resumed, tmp_path, answers="all")
        for query in (FEW, *questions(10, seed=3)):
            assert asked(release, query) == asked(hr.load(first), query)


@pytest.mark.parametrize(("opened", "budget"), FREE[:5])
def test_a_file_says_what_was_spent_and_lists_each_charge_once(opened, budget, tmp_path) -> None:
    session = opened(budget)
    release = published(session, tmp_path)
    assert (release.spent, release.spent_epsilon) == (session.spent, session.spent_epsilon)
    for name, block in release.blocks.items():
        entries = session.blocks[name].ledger.entries()
        assert [charge.cost for charge in block.charges] == [entry.cost for entry in entries]


def test_a_file_is_written_completely_or_not_at_all(tmp_path, monkeypatch) -> None:
    from pathlib import Path

    session, path = practical(REPLACE), tmp_path / "people.hedgerow"
    path.write_bytes(b"before")

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        session.publish(path)
    assert path.read_bytes() == b"before" and [p.name for p in Path(tmp_path).iterdir()] == ["people.hedgerow"]


def test_a_file_and_its_first_answers_load_neither_scipy_nor_tables_nor_mechanisms(tmp_path) -> None:
    path = tmp_path / "small.hedgerow"
    path.write_bytes(small_file())
    code = (
        f"import sys, hedgerow as hr; r = hr.load({str(path)!r}); r.ask(hr.count(a=1)); r.ask(hr.marginal('a', 'b')); "
        "r.ask(hr.mean('a')); print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "hedgerow.release_file.release" in loaded
    unwanted = {
        "scipy",
        "pandas",
        "numba",
        "duckdb",
        "pyarrow",
        "calendar",
        "hedgerow.textbook.pmw",
        "hedgerow.textbook.mwem",
    }
    assert loaded & {*unwanted, "hedgerow.session", "hedgerow.data.table", "hedgerow.engine.theory"} == set()
