"""Configuration, events, state, answers and certificates are frozen values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hedgerow

PACKAGE = Path(hedgerow.__file__).parent
GROW = {  # what is added to while it is made, by the one that makes it
    "console/page_request.py PageRequest",  # the form is read after the visit is checked
    "data/owner_inspection.py ColumnInspection",
    "data/value_counts.py ValueCounts",
    "engine/practical/free_answers.py FittedModel",
    "erm/exact_sums.py Digits",
    "privacy/accounts.py Bills",
    "privacy/receipt.py Bill",
    "server/endpoint.py Call",
    "server/problems.py Refusal",  # an exception: Python sets its traceback
}


def dataclasses_in(text: str) -> Iterator[tuple[str, bool]]:
    """Each dataclass of a module, and whether it is frozen."""
    for node in ast.walk(ast.parse(text)):
        for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            if ast.unparse(decorator).partition("(")[0].endswith("dataclass"):
                yield node.name, "frozen=True" in ast.unparse(decorator)


def test_every_dataclass_is_frozen_but_those_that_grow_while_they_are_made() -> None:
    found = {
        f"{file.relative_to(PACKAGE).as_posix()} {name}": is_frozen
        for file in PACKAGE.rglob("*.py")
        for name, is_frozen in dataclasses_in(file.read_text())
    }
    assert len(found) > 200
    assert {name for name, is_frozen in found.items() if not is_frozen} == GROW


def test_a_dataclass_that_is_not_frozen_is_found() -> None:
    said = "@dataclass(frozen=True)\nclass A: ...\n@dataclasses.dataclass(eq=False)\nclass B: ...\n@dataclass\nclass C: ..."
    assert dict(dataclasses_in(said)) == {"A": True, "B": False, "C": False}
