"""The catalogue keeps up with the code: every mutant still applies, and no mechanism is without one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import located
import pytest
from catalogue import MUTANTS
from mutant import Mutant, Writer

TESTS = Path(__file__).resolve().parent.parent
SOURCE = TESTS.parent / "src" / "hedgerow"
MECHANISMS = [
    "textbook",
    "engine/practical",
    "model",
    "erm/solvers",
    "generalise",
    "privacy",
    "data",
    "drafting",
    "ledger",
    "planning",
]

each = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)


def test_processes_that_test_mutants_do_not_import_the_sources_themselves() -> None:
    run = [sys.executable, "-c", "import sys, mutants; print('hedgerow' in sys.modules)"]
    tools = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "tools"), str(SOURCE.parent)])}
    assert subprocess.run(run, capture_output=True, text=True, env=tools, check=True).stdout == "False\n"


@each
def test_a_mutant_still_applies_and_is_python(mutant: Mutant) -> None:
    file = mutant.found_in(SOURCE)
    text = file.read_text()
    try:
        changed = mutant.changed(text)
    except located.NotOnce as not_once:
        pytest.fail(f"{not_once} Or say in NOT_WRITTEN why it cannot be written any more.")
    assert changed != text
    compile(changed, mutant.file, "exec")


def test_a_mutant_says_which_function_it_is_in() -> None:
    def is_in_one(mutant: Mutant) -> bool:
        text = mutant.found_in(SOURCE).read_text()
        return any(located.enclosing(text, *span) for span in located.spans(text, "", mutant.old))

    assert [m.id for m in MUTANTS if not m.where and is_in_one(m)] == [], "run python tools/mutants.py --locate"


MODULE = """
SHARE = 0.5  # of all

class Ledger:
    def charge(self, cost):
        if (self.spent +
                cost > self.total):
            raise Exceeded(
                cost,
            )
        self.spent = self.spent + cost

def charge(cost):
    return cost > 0
"""


@pytest.mark.parametrize(
    ("where", "old", "new", "result"),
    [
        ("Ledger.charge", "self.spent + cost > self.total", "False", "if (False):"),
        ("Ledger.charge", "self.spent = self.spent + cost", "pass", "        pass\n"),
        ("Ledger.charge", "self.total): raise Exceeded(cost)", "self.total): pass", "cost > self.total): pass\n"),
        ("charge", "cost > 0", "cost >= 0", "return cost >= 0\n"),
        ("SHARE", "0.5", "1.0", "SHARE = 1.0  # of all\n"),
        ("Ledger", "spent + cost >", "spent >", "if (self.spent > self.total):"),
    ],
)
def test_a_place_is_found_by_its_function_and_syntax_whatever_its_formatting(
    where: str, old: str, new: str, result: str
) -> None:
    changed = located.changed(MODULE, where, old, new)
    assert result in changed
    compile(changed, "module", "exec")


@pytest.mark.parametrize(
    ("where", "old"), [("Ledger.charge", "cost > 0"), ("Ledger", "self.spent"), ("Book.charge", "cost > 0")]
)
def test_a_place_that_is_not_there_once_is_refused(where: str, old: str) -> None:
    with pytest.raises(located.NotOnce, match="must be in"):
        located.changed(MODULE, where, old, "0")


def test_a_mutant_of_a_file_that_has_moved_is_found_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "accounts.py").write_text(MODULE)
    (tmp_path / "other.py").write_text("def charge(cost):\n    return cost\n")
    mutant = Mutant("X1", "ledger", "old/ledger.py", "Ledger.charge", "self.spent + cost > self.total", "False", (), "")
    assert mutant.found_in(tmp_path) == tmp_path / "new" / "accounts.py"


@each
def test_a_mutant_names_tests_that_are_there_and_says_why_it_harms(mutant: Mutant) -> None:
    assert mutant.note
    assert mutant.tests or mutant.equivalent
    for node in mutant.tests:
        file, _, name = node.partition("::")
        assert file != "test_transcripts.py", "seeded results say that something changed, not that it harms"
        assert f"def {name.partition('[')[0]}(" in (TESTS / file).read_text()


def test_no_two_mutants_have_one_name_or_make_one_change() -> None:
    assert [i for i, count in Counter(m.id for m in MUTANTS).items() if count > 1] == []
    assert [c for c, count in Counter((m.file, m.where, m.old, m.new) for m in MUTANTS).items() if count > 1] == []


def test_every_mutant_that_is_written_is_in_the_catalogue() -> None:
    assert {m.id for writer in Writer.every for m in writer.mutants} == {m.id for m in MUTANTS}


@pytest.mark.parametrize("folder", MECHANISMS)
def test_every_mechanism_has_a_mutant(folder: str) -> None:
    there = {f"{folder}/{path.name}" for path in (SOURCE / folder).glob("*.py") if path.name != "__init__.py"}
    assert there and there - {mutant.file for mutant in MUTANTS} == set()
