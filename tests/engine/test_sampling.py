"""Statistics of raw values and flips in a session: on its ledger, within what was asked, for the owner's own process."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow import wire
from hedgerow.data import Table
from hedgerow.data.row_store import columns_of, row_store
from hedgerow.engine import sampling
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.generalise import transfer
from hedgerow.privacy.events import FlippedRows, Subsampled
from hedgerow.query.row_trial import TRIALS

N = 20_000
UNIVERSE = hr.Universe({"age": hr.Range(18, 90, bins=3), "smoker": hr.Flag(), "city": hr.Categories(["a", "b", "c"])})


def people() -> pd.DataFrame:
    ages = 18 + np.arange(N) % 72
    return pd.DataFrame({"age": ages, "smoker": ages % 4 == 0, "city": np.where(ages % 3 == 0, "a", "b")})


def session(**options) -> hr.Session:
    given = {
        "universe": UNIVERSE,
        "budget": hr.Budget(1.0, 1e-6),
        "queries": 100,
        "reserve": 0.5,
        "keep_rows": True,
        "seed": 1,
    }
    given |= options
    return hr.open(people(), **given)


def test_a_statistic_of_raw_values_is_within_what_was_asked_and_billed_on_the_sessions_ledger() -> None:
    s = session()
    before = s.spent
    asked = hr.statistic(lambda age, city: age % 2 == 0 and city == "a", ["age", "city"], within=0.05)
    answer = s.ask(asked)
    ages = people()["age"]
    assert abs(answer.value - ((ages % 6 == 0).mean())) <= answer.error == 0.05
    entry = s.log[-1]
    assert isinstance(entry.event, Subsampled) and entry.event.sample.rows == N and entry.event.sample.size < N / 2
    assert s.spent - before == pytest.approx(answer.cost) == pytest.approx(entry.cost) and answer.source == "measured"
    assert len(entry.released) == 1 and entry.asked is asked


def test_a_repeat_is_free_and_a_better_bar_is_paid_for() -> None:
    s = session()
    asked = hr.statistic(lambda age: age > 40, "age", within=0.06)
    first, again = s.ask(asked), s.ask(asked)
    assert (again.value, again.cost, again.source) == (first.value, 0.0, "repeat")
    better = s.ask(asked, within=0.03)
    assert better.cost > first.cost and better.error == 0.03
    assert s.ask(asked, within=0.05).source == "repeat"
    in_rows = s.ask(asked, scale="rows")
    assert in_rows.value == pytest.approx(N * better.value) and in_rows.error == pytest.approx(0.03 * N)
    other = hr.statistic(lambda age: age > 40, "age", within=0.06)
    assert s.ask(other).source == "measured"  # another function object: nothing says that it is the same


def test_a_refused_statistic_touches_no_row() -> None:
    s, seen = session(budget=hr.Budget(0.1, 0.0), reserve=0.0), []
    with pytest.raises(BudgetExceeded):
        for within in (0.01, 0.009, 0.008, 0.007, 0.006, 0.005):
            s.ask(hr.statistic(lambda age: age > 40, "age"), within=within)
            s.ask(hr.statistic(lambda age: age > 41, "age"), within=within)
        pytest.fail("a budget without end")
    with pytest.raises(BudgetExceeded):
        s.ask(hr.statistic(lambda age: seen.append(age) or True, "age", within=0.002))
    assert len(seen) == TRIALS  # made-up records, and no other


def test_a_function_that_asks_the_session_in_turn_is_charged_nothing_and_refused() -> None:
    """Else what a row holds would decide what the ledger shows."""
    s = session()

    def asking(age: float) -> bool:
        s.ask(hr.statistic(lambda age: 1.0, "age", within=0.1))
        return True

    before = len(s.log)
    for ask in (
        lambda: s.ask(hr.statistic(asking, "age", within=0.05)),
        lambda: s.sample_yes_no(hr.statistic(asking, "age")),
    ):
        with pytest.raises(InvalidInput, match="on all made-up records"):
            ask()
    assert len(s.log) == before

    def asking_for_the_old(age: float) -> bool:
        return asking(age) if age > 60 else True

    answer = s.ask(hr.statistic(asking_for_the_old, "age", within=0.05))
    assert len(s.log) == before + 1 and answer.value < 0.95
    assert s.ask(hr.statistic(lambda age: 1.0, "age", within=0.1)).value > 0.9


def test_flips_are_bits_of_rows_at_random_and_an_interval_narrows_as_they_come() -> None:
    s = session()
    assert isinstance(s.sample_yes_no(hr.count(smoker=True)), bool)
    assert s.log[-1].event == FlippedRows(s.log[-1].event.heads, N, 1) and s.log[-1].released[0].shape == (1,)
    truth = people()["smoker"].mean()
    last = None
    for found in itertools.islice(s.sample_yes_no_stream(hr.count(smoker=True), lies=0.1, at_once=500), 12):
        assert found.low <= truth <= found.high and found.low <= found.value <= found.high
        assert last is None or (found.low >= last.low and found.high <= last.high and found.flips == last.flips + 500)
        last = found
    assert last is not None and last.error < 0.05
    by_function = itertools.islice(
        s.sample_yes_no_stream(hr.statistic(lambda age: age % 4 == 0, "age"), at_once=3000), 1
    )
    assert abs(next(by_function).value - truth) < 0.1


def test_no_function_is_stored_or_sent_although_a_ledger_that_paid_for_one_is() -> None:
    s = session()
    asked = hr.statistic(lambda age: age > 40, "age", within=0.05)
    answer = s.ask(asked)
    s.sample_yes_no(asked)
    for thing in (asked, answer):
        with pytest.raises(InvalidInput, match="function has no JSON form"):
            wire.dumps(thing)
    taken_up = wire.ledger_from_lines(wire.ledger_lines(s.ledger), UNIVERSE)
    assert taken_up.spent == s.spent
    again = session(ledger=taken_up)
    assert again.spent == s.spent
    assert again.ask(asked).cost > 0  # what a function said cannot be known by its name


def test_a_session_without_rows_says_how_to_have_them() -> None:
    without = session(keep_rows=False)
    for ask in (
        lambda: without.ask(hr.statistic(abs, "age", within=0.1)),
        lambda: without.sample_yes_no(hr.count(smoker=True)),
        lambda: without.sample_yes_no_stream(hr.count(smoker=True)),
    ):
        with pytest.raises(InvalidInput, match=r"must be opened with rows.*hr.open\(…, keep_rows=True\)"):
            ask()
    assert without.spent == session(keep_rows=False).spent


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": hr.Budget(1.0, 1e-6, "add-remove")}, "neighbours='replace'"),
        ({"keep_rows": 5.0}, "rows must be True, a folder or a store"),
    ],
)
def test_rows_are_refused_where_their_losses_do_not_hold(options, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        session(**options)


def test_counts_alone_have_no_rows_unless_a_store_of_as_many_is_given() -> None:
    data = Table(people(), UNIVERSE)
    given = {"universe": UNIVERSE, "budget": hr.Budget(1.0, 1e-6), "seed": 0}
    with pytest.raises(InvalidInput, match="rows must be a store of rows if the source has only counts"):
        hr.open(data, keep_rows=True, **given)
    with pytest.raises(InvalidInput, match=f"must be the {N} rows of the table. Found {N - 1}"):
        hr.open(data, keep_rows=row_store(people()[1:], columns_of(UNIVERSE)), **given)
    s = hr.open(data, keep_rows=row_store(people(), {"age": float, "smoker": bool}), **given)
    assert abs(s.ask(hr.statistic(lambda age: age / 100, "age", within=0.1)).value - 0.535) < 0.1


def test_a_statistic_is_asked_alone_and_says_how_well() -> None:
    s = session()
    with pytest.raises(InvalidInput):
        s.ask_all([hr.statistic(abs, "age", within=0.1)])
    with pytest.raises(InvalidInput, match="within must be given for a statistic"):
        s.ask(hr.statistic(abs, "age"))
    with pytest.raises(InvalidInput, match="A predicate must be true or false"):
        s.sample_yes_no(hr.mean("age"))


def test_a_folder_keeps_the_rows_for_the_next_session(tmp_path) -> None:
    people().to_parquet(tmp_path / "t.parquet")
    for _ in range(2):
        s = hr.open(
            tmp_path / "t.parquet", universe=UNIVERSE, budget=hr.Budget(1.0, 1e-6), keep_rows=tmp_path / "rows", seed=0
        )
        assert s.ask(hr.statistic(lambda age: age >= 18, "age", within=0.1)).value > 0.9
    assert (tmp_path / "rows" / "columns.json").exists()


@pytest.mark.parametrize("neighbour", [np.nan, 1e300, -1.0, 40.0])
def test_nothing_seen_besides_the_answer_depends_on_a_row(neighbour) -> None:
    """The same seed draws the same rows and noise: only a value on the drawn rows may move, by at most one row."""

    def strange(age: float) -> float:
        if not 0 <= age < 200:
            raise ValueError(f"a private value: {age}")
        return age / 100

    told = []
    for changed in (False, True):
        frame = people().astype({"age": float})
        if changed:
            frame.loc[0, "age"] = neighbour
        s = hr.open(frame, universe=UNIVERSE, budget=hr.Budget(1.0, 1e-6), queries=100, keep_rows=True, seed=1)
        answer = s.ask(hr.statistic(strange, "age", within=0.05))
        told.append((answer.error, answer.cost, s.log[-1].event, answer.value))
    assert told[0][:3] == told[1][:3]
    assert abs(told[0][3] - told[1][3]) * told[0][2].sample.size <= 1 + 1e-9


def test_each_of_the_expected_streams_has_its_part_of_beta_and_no_less(monkeypatch) -> None:
    taken: list[float] = []
    monkeypatch.setattr(sampling.scq, "count_by_flips", lambda *given, beta, **named: taken.append(beta) or iter(()))
    opened = session(queries=100, beta=0.1)
    opened.sample_yes_no_stream(hr.count(smoker=True))
    assert 100 * sum(taken) == pytest.approx(0.1)


def test_an_answer_about_the_population_is_dearer_and_wider_by_what_privacy_allows() -> None:
    """By Jung et al., for the whole budget: the rows are measured to within what e^ε − 1 leaves of the error."""
    opened = session(budget=hr.Budget(0.05, 1e-9), queries=1, reserve=0.9)
    of_rows = opened.ask(hr.statistic(lambda age: age < 40, "age", within=0.2))
    of_all = opened.ask(hr.statistic(lambda age: age < 40, "age", within=0.2, population=True))
    assert of_rows.error == pytest.approx(0.2) and of_all.error == pytest.approx(0.2) and of_all.cost > of_rows.cost
    measured = opened.log[-1].event.inner.scale / opened.log[-1].event.sample.size
    assert measured < opened.log[-2].event.inner.scale / opened.log[-2].event.sample.size
    needs = transfer.on_sample(0.2, 0.05, 1e-9, 0.05)
    spent = math.expm1(0.05) + transfer.jung_extra(1e-9, needs.sample_beta, 0.05)
    assert needs.sample_error + spent == pytest.approx(0.2) and 0 < needs.sample_error < 0.2 - math.expm1(0.05)


def test_a_budget_that_is_too_large_says_nothing_about_the_population() -> None:
    with pytest.raises(InvalidInput, match="within must be above the price of the privacy loss"):
        session().ask(hr.statistic(lambda age: age < 40, "age", within=0.1, population=True))
    with pytest.raises(InvalidInput, match="within must be given"):
        session().ask(hr.statistic(lambda age: age < 40, "age", population=True))
