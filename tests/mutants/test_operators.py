"""Operators find exactly the places that they are for, and a draw of mutants changes only where the code does."""

from __future__ import annotations

import ast
from pathlib import Path

import mutant_operators
import pytest
from judgements import JUDGED

MODULE = '''
"""Costs > 0."""
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    SIZE = 1 + 2

SHARE = 0.5

@dataclass(frozen=True)
class Ledger:
    total: float = 1.0

    def charge(self, *events: "list[0 < 1]"):
        """Pay > 0."""
        with self.lock:
            cost = sum(event.cost for event in events)
            if cost > self.total - self.spent:
                raise ValueError(f"{cost - self.spent} > {1 + 1}")
            self.spent = self.spent + cost
            tell(lambda: f"{self.spent + 1}")
            self.note(events, cost)
        return -cost

    def __repr__(self):
        return "Ledger" * (1 + 1)
'''


def changes(operator: str) -> set[tuple[str, str]]:
    return {(site.old, site.new) for site in mutant_operators.sites("ledger.py", MODULE) if site.operator == operator}


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("comparison", {("cost > self.total - self.spent", f"cost {sign} self.total - self.spent") for sign in (">=", "<")}),
        ("constant", {("SHARE = 0.5", "SHARE = 1.0"), ("total: float = 1.0", "total: float = 2.0")}),
        (
            "sign",
            {("self.total - self.spent", "self.total + self.spent"), ("self.spent + cost", "self.spent - cost"), ("-cost", "cost")},
        ),
        ("statement", {("self.spent = self.spent + cost", "pass"), ("self.note(events, cost)", "pass")}),
        ("arguments", {("self.note(events, cost)", "self.note(cost, events)")}),
        (
            "charge",
            {
                ("(event.cost for event in events)", "(event.cost / 2 for event in events)"),
                ("self.total - self.spent", "self.total - self.spent / 2"),
                ("self.spent + cost", "self.spent / 2 + cost"),
            },
        ),
        (
            "privilege",
            {
                ("dataclass(frozen=True)", "dataclass(frozen=False)"),
                ("self.lock", "__import__('contextlib').nullcontext()"),
                ("cost > self.total - self.spent", "False"),
            },
        ),
    ],
)  # fmt: skip
def test_an_operator_finds_all_its_places_and_no_message_annotation_or_representation(operator, expected) -> None:
    assert changes(operator) == expected


def test_every_change_is_python_that_differs_by_its_one_place() -> None:
    for site in mutant_operators.sites("ledger.py", MODULE):
        changed = site.changed(MODULE)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(MODULE))
        assert len(changed.splitlines()) == len(MODULE.splitlines()) and site.where in ("", "Ledger", "Ledger.charge")


def drawn(folder: Path, text: str) -> dict[str, str]:
    (folder / "ledger.py").write_text(text)
    return {site.id: site.new for site in mutant_operators.drawn(folder, ["ledger"], 7, seed=1)}


def test_a_draw_is_the_same_where_only_the_lines_before_it_the_formatting_or_other_code_have_changed(tmp_path) -> None:
    before = drawn(tmp_path, MODULE)
    assert len(before) == 7
    assert (
        drawn(
            tmp_path,
            MODULE.replace("SHARE = 0.5", "\n# a half\n\nSHARE = 0.5").replace("- self.spent:", "-  self.spent:"),
        )
        == before
    )


def test_a_judgement_says_why() -> None:
    assert all(judgement.kind and len(judgement.reason) > 10 for judgement in JUDGED.values())


def test_a_place_that_was_drawn_stays_drawn_where_its_file_has_another_name_and_only_what_is_gone_is_replaced(
    tmp_path,
) -> None:
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "ledger.py").write_text(MODULE)
    before = mutant_operators.drawn(tmp_path, ["books"], 7, seed=1)
    (tmp_path / "books" / "ledger.py").rename(tmp_path / "books" / "account.py")
    after = mutant_operators.drawn(tmp_path, ["books"], 7, seed=1, earlier=before)
    assert {site.key for site in after} == {site.key for site in before}
    assert {site.file for site in after} == {"books/account.py"}
    gone = MODULE.replace("SHARE = 0.5", "SHARE = None")
    (tmp_path / "books" / "account.py").write_text(gone)
    left = mutant_operators.drawn(tmp_path, ["books"], 7, seed=1, earlier=before)
    was = {site.key for site in before if "SHARE" not in site.old}
    assert len(left) == 7 and was <= {site.key for site in left}
