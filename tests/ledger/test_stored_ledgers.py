"""Ledgers of the version before open once their owner accepts the new one: nothing is billed again, and answers repeat.

``fixtures/make.py`` made them, with an opening, a block, a cap, free and paid answers, a refused charge and a lost one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import stored_session as stored

import hedgerow as hr
from hedgerow.engine.interface import FIT_VERSION
from hedgerow.engine.practical.free_answers import FittedModel
from hedgerow.ledger import read
from hedgerow.ledger.binding import FIRST_FIT, version_now

everywhere = pytest.mark.parametrize(
    ("kind", "load"), [("sqlite", stored.on_sqlite), ("postgres", stored.on_postgres)], ids=["SQLite", "PostgreSQL"]
)
pytestmark = [
    pytest.mark.filterwarnings("ignore::hedgerow.errors.PublicWarning"),
    pytest.mark.filterwarnings("ignore::hedgerow.errors.FitChangedWarning"),
]


@pytest.fixture(autouse=True)
def upgraded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The owner's key, and a later version of the package than any that is stored."""
    monkeypatch.setenv("HEDGEROW_LEDGER_KEY", stored.KEY)
    about = tmp_path / "hedgerow-99.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hedgerow\nVersion: 99.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert version_now() == "99.0"


@everywhere
def test_a_stored_ledger_is_refused_until_its_owner_accepts_the_version(kind: str, load: Callable[[], str]) -> None:
    url = load()
    with pytest.raises(hr.InvalidInput, match=r"Found hedgerow 99\.0, where it was 0\.1\.0"):
        stored.opened(url)
    assert str(read(url).head) == stored.expected(kind)["head"]


@everywhere
def test_a_stored_ledger_has_its_spending_and_repeats_its_answers(kind: str, load: Callable[[], str]) -> None:
    url, was = load(), stored.expected(kind)
    assert str(read(url).verify(was["head"])) == was["head"]
    read(url).accept_version()
    session = stored.opened(url, who="cleo")
    assert stored.spent(session) == was["spent"]
    assert stored.answers(session) == was["answers"]
    assert stored.spent(session) == was["spent"]  # and repeating them cost nothing
    session.close()
    again = stored.opened(url)
    assert stored.answers(again) == was["answers"] and stored.spent(again) == was["spent"]
    again.close()
    assert read(url).verify(was["head"]).number > int(was["head"].partition(":")[0])


@everywhere
def test_a_stored_ledger_goes_on_and_its_lost_charge_and_its_caps_hold(kind: str, load: Callable[[], str]) -> None:
    url, was = load(), stored.expected(kind)
    read(url).accept_version()
    session = stored.opened(url, who="ana")
    one, later = session.blocks["1"].ledger, session.blocks["later"].ledger
    lost = [entry.number for ledger in (one, later) for entry in ledger.entries() if not entry.is_complete]
    assert lost == was["lost"]
    assert one.remaining < one.budget.total - one.spent  # of ana's cap, less than of the budget
    with pytest.raises(hr.BudgetExceeded):
        session.ask(hr.count(a=2, b=1, c=3), within=1e-4)
    paid = session.ask(
        hr.count(a=0, b=0, c=0), within=0.02
    )  # what was lost is asked again, and paid again if it must be
    assert max(stored.spent(session)) >= max(was["spent"]) and paid.error <= 0.02
    session.close()
    read(url).verify(was["head"])


@everywhere
def test_opening_a_stored_ledger_rewrites_none_of_its_lines(kind: str, load: Callable[[], str]) -> None:
    url = load()
    before = list(read(url).export())
    read(url).accept_version()
    stored.opened(url).close()
    after = list(read(url).export())
    assert after[: len(before)] == before and len(after) > len(before)
    assert json.loads(after[len(before)])["kind"] == "version"


# Which fit


@everywhere
def test_the_fit_of_stored_entries_is_that_of_its_version(kind: str, load: Callable[[], str]) -> None:
    """A fit that answers otherwise needs a version of its own: raise ``FIT_VERSION``, and store what it believes beside."""
    url = load()
    read(url).accept_version()
    session = stored.opened(url)
    was = stored.expected(kind)["believed"][FIT_VERSION]
    for now, then in zip(stored.believed(session), was, strict=True):
        np.testing.assert_allclose(now, then, rtol=1e-6, atol=1e-9)
    session.close()


@everywhere
def test_a_later_fit_says_so_repeats_what_is_recorded_and_answers_the_rest_itself(
    kind: str, load: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, was, asked = load(), stored.expected(kind), hr.marginal("a", "c")
    read(url).accept_version()
    monkeypatch.setattr("hedgerow.opening.FIT_VERSION", "99")
    monkeypatch.setattr(FittedModel, "refit", lambda self, *steps, **given: None)
    with pytest.warns(
        hr.FitChangedWarning, match="Found fit 99, where the ledger notes fit 1. Recorded answers repeat"
    ):
        session = stored.opened(url)
    assert stored.spent(session) == was["spent"]
    assert stored.answers(session) == was["answers"] and stored.spent(session) == was["spent"]
    one = session.select_blocks("1").ask(asked)
    assert one.source == "hypothesis"
    assert not np.allclose(one.value, was["believed"]["1"][0])
    session.close()
    with pytest.warns(hr.FitChangedWarning):  # every opening says so, and the answer of the new fit is recorded
        again = stored.opened(url)
    assert np.array_equal(again.select_blocks("1").ask(asked).value, one.value)
    again.close()


@pytest.mark.filterwarnings("error::hedgerow.errors.FitChangedWarning")
def test_a_new_ledger_notes_its_fit_and_is_opened_again_by_the_same_without_a_word() -> None:
    url = stored.sqlite_url()
    for _ in range(2):
        stored.opened(url).close()
    records = [json.loads(line) for line in read(url).export()]
    noted = [json.loads(r["body"])["fit"] for r in records if r["kind"] in ("account", "block")]
    assert noted == [FIT_VERSION] * 2


@everywhere
def test_a_ledger_of_before_the_fit_was_noted_has_the_first(kind: str, load: Callable[[], str]) -> None:
    lines = [json.loads(line) for line in read(load()).export()]
    assert "fit" not in json.loads(lines[0]["body"]) and FIRST_FIT == "1"
