"""An opening shows its progress and can be interrupted, and its charges stay, in a terminal and in a notebook."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from people import SMALL, frame, opened

import hedgerow as hr
from hedgerow.privacy.events import Gaussian
from hedgerow.privacy.ledger import Ledger

SOURCES = Path(hr.__file__).resolve().parent.parent, Path(__file__).resolve().parent

# What DuckDB, rich and we look at to know that a kernel of Jupyter runs us: none is installed here, and no ipywidgets.
NOTEBOOK = """
import builtins, sys, types
shell = type("ZMQInteractiveShell", (), {"config": {"IPKernelApp": {}}})()
ipython = types.ModuleType("IPython")
ipython.get_ipython = builtins.get_ipython = lambda: shell
sys.modules["IPython"] = ipython
"""

INTERRUPTED = """
import json, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import hedgerow as hr
from hedgerow.privacy.filter import Filter
from hedgerow.privacy.ledger import Ledger, LedgerParts
from hedgerow.privacy.log import MemoryLog
from people import SMALL, frame

class Watched(MemoryLog):
    kept, stops = 0, ()
    def append(self, entry):
        super().append(entry)
        self._step()
    def update(self, entry):
        super().update(entry)
        self._step()
    def _step(self):
        self.kept += 1
        if self.kept in self.stops:
            os.kill(os.getpid(), signal.SIGINT)

BUDGET = hr.Budget(1.0, 1e-6)
TABLE = frame(2000)
FIRST = 3  # the overview and two choices: how many more a round has depends on its draws

def opened(ledger):
    return hr.open(TABLE, universe=SMALL, budget=BUDGET, ledger=ledger, guard=0.0)

def interrupted(*stops):
    log, released, notes = Watched(), {}, []
    log.stops, ledger = stops, Ledger(LedgerParts.in_memory(Filter(BUDGET), log=log))
    for _ in stops:
        try:
            opened(ledger)
        except KeyboardInterrupt as stopped:
            notes.append(stopped.__notes__[-1])
        released |= {e.number: repr(e.released) for e in ledger.entries() if e.is_complete}
    before = ledger.spent
    session = opened(ledger)
    entries = [e for e in ledger.entries() if e.is_complete]
    return {
        "notes": notes,
        "before": before / BUDGET.total,
        "spent": session.spent / BUDGET.total,
        "kept": all(repr(ledger.entries()[n].released) == was for n, was in released.items()),
        "lost": len(ledger.entries()) - len(entries),
        "first": [repr(e.events) for e in entries[:FIRST]],
        "value": session.ask(hr.count(sex="F")).value,
    }

whole = opened(hr.Accountant(BUDGET)).ledger.entries()[:FIRST]
print(json.dumps([[repr(e.events) for e in whole], interrupted(4), interrupted(4, 8), interrupted(5)]))
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES))}
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=places)


def test_a_notebook_without_widgets_opens_a_table_and_shows_how_far_it_is() -> None:
    done = run(
        NOTEBOOK
        + "import hedgerow as hr, duckdb\n"
        + "from people import SMALL, frame\n"
        + "try:\n    duckdb.connect().execute('SET enable_progress_bar = false')\n    raise SystemExit('no notebook')\n"
        + "except duckdb.Error:\n    pass\n"
        + "session = hr.open(frame(2000), universe=SMALL, budget=hr.Budget(1, 1e-6))\n"
        + "session.ask_all([hr.count(sex='F')] * 300, progress=True)\n"
        + "print(session.ask(hr.count(sex='F')).value)\n"
    )
    assert done.returncode == 0, done.stderr
    assert 0.3 < float(done.stdout) < 0.7
    assert "reading the table" in done.stderr and "answering: 300 of 300" in done.stderr
    assert re.search(r"prefit: .* \d+% of the budget spent", done.stderr)


def test_nothing_is_shown_where_nobody_watches(capsys) -> None:
    opened(frame(500)).ask_all([hr.count(age=age) for age in range(8)] * 150)
    hr.release(frame(500), universe=SMALL, budget=hr.Budget(1, 1e-6))
    assert capsys.readouterr() == ("", "")


def test_progress_is_shown_if_wanted_and_wiped_away(capsys) -> None:
    opened(frame(500), progress=True)
    hr.release(frame(500), universe=SMALL, budget=hr.Budget(1, 1e-6), progress=True)
    shown = capsys.readouterr().err
    assert shown.startswith("\rreading the table\r") and shown.endswith(" \r")
    assert shown.count("reading the table") == 2 and "prefit" in shown


@pytest.fixture(scope="module")
def interrupted() -> list[Any]:
    """Openings that were stopped by a signal after the first releases, again after more, and between charge and draw."""
    done = run(INTERRUPTED)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def test_ctrl_c_while_opening_keeps_what_was_paid_for(interrupted) -> None:
    whole, once, twice, _ = interrupted
    for run in (once, twice):
        assert run["kept"] and run["lost"] == 0
        assert run["first"] == whole  # each was charged once, in the order of an opening that was left alone
        assert 0 < run["before"] < run["spent"] <= 1 and 0.3 < run["value"] < 0.7
        assert "Open again with the same ledger" in run["notes"][0]
    assert len(once["notes"]) == 1 and len(twice["notes"]) == 2


def test_ctrl_c_between_a_charge_and_its_draw_loses_that_charge_alone(interrupted) -> None:
    whole, _, _, torn = interrupted
    assert torn["kept"] and torn["lost"] == 1 and torn["first"] == whole and torn["spent"] <= 1 + 1e-9


def test_without_a_ledger_of_ones_own_the_interrupt_says_what_is_lost(monkeypatch) -> None:
    recorded = Ledger.record

    def stop(self: Ledger, *given: Any) -> None:
        recorded(self, *given)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Ledger, "record", stop)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background has switched off
    try:
        with pytest.raises(KeyboardInterrupt) as stopped:
            opened(frame(500))
    finally:
        signal.signal(signal.SIGINT, before)
    assert re.search(r"of 0\.\d+ rho was spent\. It is lost with this ledger", stopped.value.__notes__[-1])


def test_a_ledger_that_paid_for_something_else_before_opens_a_session_with_the_rest() -> None:
    ledger = hr.Accountant(hr.Budget(1.0, 1e-6))
    ledger.charge(Gaussian(1.0, 100.0), why="something else")
    session = opened(frame(500), ledger=ledger, guard=0.0, reserve=0.2)
    assert session.log[0].why == "something else" and session.log[1].why.startswith("prefit")
