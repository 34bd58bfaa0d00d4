"""A ledger that two versions of the package share: nothing is drawn twice for one price, dropped, or believed of another fit.

Another version is one to whoever asks for the package's metadata: a distribution that comes first on the path.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_ledgers import postgres_url, sqlite_url

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.free_answers import FittedModel
from hedgerow.engine.practical.measure import prefit
from hedgerow.engine.practical.measure.candidates import ListedSets
from hedgerow.ledger import opened, read
from hedgerow.ledger.binding import version_now
from hedgerow.ledger.chain import now
from hedgerow.ledger.urls import store_at
from hedgerow.privacy.events import Laplace
from hedgerow.privacy.noise import Noise

everywhere = pytest.mark.parametrize("fresh", [sqlite_url, postgres_url], ids=["SQLite", "PostgreSQL"])
PURE, APPROXIMATE = hr.Budget(1.0, 0.0), hr.Budget(1.0, 1e-6)
EVENT = Laplace(1.0, 20.0)
UNIVERSE = hr.Universe(a=hr.Integers(0, 3), b=hr.Integers(0, 3), c=hr.Integers(0, 3))
COUNTS = np.random.default_rng(0).multinomial(20_000, np.random.default_rng(1).dirichlet(np.ones(64))).reshape(4, 4, 4)


def changed(url: str, statement: str) -> None:
    store = store_at(url)
    with store._connection() as connection:
        connection.execute(statement)
        connection.commit()
    store.close()


def spend(ledger: Any) -> None:
    Noise().add(0.0, ledger.charge(EVENT))


def session_at(url: str, **given: Any) -> hr.Session:
    usual = {"budget": APPROXIMATE, "guard": 0.0, "reserve": 0.4, "ledger": url}
    return hr.open(HistogramSource(UNIVERSE, COUNTS), universe=UNIVERSE, **(usual | given))


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Install another version."""

    def installed() -> None:
        about = tmp_path / "hedgerow-99.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hedgerow\nVersion: 99.0\n")
        monkeypatch.syspath_prepend(tmp_path)
        assert version_now() == "99.0"

    return installed


# Lines that another version wrote


def line(**fields: Any) -> str:
    return json.dumps({"v": 1} | fields)


STRANGE = {
    "a refund": ("refund", line(number=0)),
    "a charge of another kind": ("charge2", line(number=2, cost=0.1)),
    "a charge of no block": ("charge:x", "{}"),
    "a charge of block 0": ("charge:0", "{}"),
    "a charge of a block that never came": ("charge:7", "{}"),
    "a charge of a newer format": ("charge", line(v=2)),
    "a charge that is no JSON": ("charge", "nonsense"),
    "a release of a newer format": ("release", line(v=2, number=1, released=1.0, private=True)),
    "a release of nothing": ("release", line(number=1, private=True)),
    "a release of no charge": ("release", line(number=9, released=1.0, private=True)),
    "a release counted from the end": ("release", line(number=-1, released=1.0, private=True)),
    "a second release": ("release", line(number=1, released=1.0, private=True)),
    "a release that is a list": ("release", "[]"),
    "a release of an unknown form": ("release", line(number=1, released={"kind": "new"}, private=True)),
    "answers of a newer format": ("answers", '{"answers":[],"v":2}'),
    "answers in a list": ("answers", "[]"),
    "a cap without an amount": ("cap", line(who="ana")),
    "a cap of a newer format": ("cap", line(v=2, who="ana", epsilon=1e9)),
    "a cap that is a text": ("cap", line(who="ana", epsilon="all")),
    "an accepted version without one": ("version", line()),
    "an accepted version of a newer format": ("version", line(v=2, version="99.0")),
    "an accepted version that is a list": ("version", line(version=["99.0"])),
    "a block without a name": ("block", line()),
}


def written(url: str, kind: str, body: str) -> None:
    """As another process would: a line that follows from those before."""
    store = store_at(url)
    store.append([(now(), "", kind, body)])
    store.close()


@pytest.mark.parametrize("strange", STRANGE)
def test_a_line_that_this_version_does_not_know_is_refused_by_sessions_and_readers(strange) -> None:
    url = sqlite_url()
    session = opened(url, PURE)
    spend(session)
    spend(session)
    written(url, *STRANGE[strange])
    for _ in range(2):  # the session that is open
        with pytest.raises((hr.InvalidInput, hr.LedgerBroken)):
            spend(session)
    with pytest.raises((hr.InvalidInput, hr.LedgerBroken)):
        opened(url, PURE)
    with pytest.raises((hr.InvalidInput, hr.LedgerBroken)):
        reading = read(url)
        assert reading.verify() and reading.entries() and reading.caps
    assert session.head.number == 6  # the account, two charges and releases, and the line: nobody has written more


@everywhere
def test_the_cost_that_a_line_states_is_not_believed(fresh) -> None:
    url = fresh()
    session = opened(url, PURE)
    spend(session)
    (before,) = [record for record in map(json.loads, session.export()) if record["kind"] == "charge"]
    free = json.loads(before["body"]) | {"number": 1, "cost": 0.0}
    written(url, "charge", json.dumps(free))
    session.refresh()
    assert session.spent == opened(url, PURE).spent == read(url).spent == pytest.approx(2 / 20)


# Two versions at once


@everywhere
def test_a_session_of_the_older_version_charges_nothing_once_the_newer_was_accepted(fresh, upgrade) -> None:
    url = fresh()
    older = session_at(url)
    before = older.spent
    free = older.ask(hr.count(a=1))
    upgrade()
    with pytest.raises(hr.InvalidInput, match=r"Found hedgerow 99\.0"):
        session_at(url)
    read(url).accept_version()
    newer = session_at(url)
    assert newer.spent == before and newer.ledger.entries()[-1].number == older.ledger.entries()[-1].number
    paid = newer.ask(hr.count(a=1, b=2), within=0.003)
    assert paid.cost > 0
    with pytest.MonkeyPatch.context() as undone:
        undone.setattr("hedgerow.ledger.binding.version_now", lambda: "1")  # the older process goes on
        for _ in range(2):
            with pytest.raises(hr.LedgerUnavailable, match="one version at a time"):
                older.ask(hr.count(a=2, c=3), within=0.003)
        assert older.ask(hr.count(a=1)).value == free.value
        older.ledger.flush()  # what it said is not lost
    assert read(url).spent == pytest.approx(before + paid.cost)
    assert session_at(url).ask(hr.count(a=1)).value == free.value
    read(url).verify()


def test_a_version_that_fits_otherwise_does_not_believe_the_certificate_of_another_fit(upgrade, monkeypatch) -> None:
    """The certificate says how far one hypothesis is off, and the other version has another."""
    url = sqlite_url()
    older = session_at(url, workload=hr.marginals(1))
    assert older.certificate is not None
    recorded = older.ask(hr.marginal("a", "b"))
    older.ledger.flush()
    upgrade()
    read(url).accept_version()
    monkeypatch.setattr(FittedModel, "refit", lambda self, *steps, **given: None)
    newer = session_at(url, workload=hr.marginals(1))
    assert newer.certificate is None and newer.spent == older.spent
    assert not np.allclose(newer.hypothesis.marginal(("a", "c")), older.hypothesis.marginal(("a", "c")))
    again = newer.ask(hr.marginal("a", "b"))
    assert again.source == "repeat" and np.array_equal(again.value, recorded.value)
    assert again.error == pytest.approx(recorded.error)
    assert len(newer.ledger.entries()) == len(older.ledger.entries())


def swapped_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, other = prefit.Prefit._measure, {"a": "b", "b": "a"}
    monkeypatch.setattr(
        prefit.Prefit,
        "_measure",
        lambda self, names, cost: usual(self, tuple(sorted(other.get(n, n) for n in names)), cost),
    )


def turned_singles(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = prefit.Prefit._singles
    monkeypatch.setattr(prefit.Prefit, "_singles", lambda self: usual(self)[::-1])


def turned_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = ListedSets.pairs
    monkeypatch.setattr(ListedSets, "pairs", lambda self: usual(self)[::-1])


@pytest.mark.parametrize(
    ("budget", "otherwise"),
    [(APPROXIMATE, turned_singles), (PURE, swapped_measurements), (PURE, turned_candidates)],
    ids=["residuals", "tables", "choices"],
)
def test_a_version_that_measures_in_another_order_takes_no_table_for_another(
    budget, otherwise, upgrade, monkeypatch
) -> None:
    """All tables of so many attributes have one size here, and one noise: what came out of one would pass for another's."""
    url, options = sqlite_url(), {"budget": budget, "workload": hr.marginals(2)}
    older = session_at(url, **options)
    upgrade()
    read(url).accept_version()
    head = read(url).head
    otherwise(monkeypatch)
    with pytest.raises(hr.InvalidInput, match="opened as before"):
        session_at(url, **options)
    assert read(url).head == head and read(url).spent == older.spent


# A ledger whose lines change under an answer that is known


@everywhere
@pytest.mark.parametrize("change", ["UPDATE hedgerow_lines SET body = '{}' WHERE", "DELETE FROM hedgerow_lines WHERE"])
def test_an_answer_whose_line_is_gone_or_another_is_not_repeated(fresh, change) -> None:
    url = fresh()
    session_at(url).ask(hr.count(a=1, b=2), within=0.003)
    later = session_at(url)
    (place,) = later.ledger._parts.answer_log._index.known.values()
    changed(url, f"{change} number >= {place}")
    with pytest.raises(hr.LedgerBroken):
        later.ask(hr.count(a=1, b=2))
