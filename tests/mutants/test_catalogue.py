"""The catalogue keeps up with the code: every mutant still applies, and no mechanism is without one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from catalogue import MUTANTS
from mutant import Mutant, Writer

TESTS = Path(__file__).resolve().parent.parent
SOURCE = TESTS.parent / "src" / "hedgerow"
MECHANISMS = [
    "textbook",
    "engines/practical",
    "model",
    "erm/solvers",
    "generalise",
    "privacy",
    "data",
    "drafting",
    "ledgers",
    "planning",
]

each = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)


@each
def test_a_mutant_still_applies_and_is_python(mutant: Mutant) -> None:
    text = (SOURCE / mutant.file).read_text()
    assert text.count(mutant.old) == 1, "renew its old text, or say in NOT_WRITTEN why it cannot be written any more"
    assert mutant.new != mutant.old
    compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")


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
    assert [c for c, count in Counter((m.file, m.old, m.new) for m in MUTANTS).items() if count > 1] == []


def test_every_mutant_that_is_written_is_in_the_catalogue() -> None:
    assert {m.id for writer in Writer.every for m in writer.mutants} == {m.id for m in MUTANTS}


@pytest.mark.parametrize("folder", MECHANISMS)
def test_every_mechanism_has_a_mutant(folder: str) -> None:
    there = {f"{folder}/{path.name}" for path in (SOURCE / folder).glob("*.py") if path.name != "__init__.py"}
    assert there and there - {mutant.file for mutant in MUTANTS} == set()
