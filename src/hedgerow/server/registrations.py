"""Registrations: datasets on their way from a source to an open session, written down so that a restart loses none.

    draft      columns and budget are being declared; nothing was read but the schema
    opening    the opening goes on; what it spends is in the dataset's ledger
    stopped    the opening ended early; to open it again goes on and bills nothing twice
    open       the dataset is served, and opened again at every start
    dropped    given up before it was opened; what its draft cost stays with its table

One opening runs at a time. It refuses a table that the service has already: by its place, by its content, and, under
the same universe, by its fingerprint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import msgspec

import hedgerow as hr
from hedgerow._json import canonical, parse
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.noise import random_token
from hedgerow.server.problems import Refusal
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.settings import NAME
from hedgerow.server.sources import Source
from hedgerow.universe.universe import Universe

STATES = ("draft", "opening", "stopped", "open", "dropped")
FIXED = ("opening", "stopped", "open")  # states in which the declaration and the budget cannot change
MOST_DRAFTS = 200
PAST = ("given", "approvals", "questions")  # what is kept under the name of a dataset, and must not become another's
COLUMNS = "id, name, state, person, at, marks, draft_epsilon, draft_delta, record"


@dataclass(frozen=True)
class Registration:
    """One registration. ``columns`` maps each name to its declaration, or to None as long as it has none.

    ``types`` are the kinds of values that the schema states. ``marks`` recognize the table. ``draft`` is the ε and δ
    that reading rows for the declarations has cost. ``budget`` has the ε and δ of the whole.
    """

    id: str
    name: str
    source: Source
    person: str
    at: float
    state: str = "draft"
    types: dict[str, str | None] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()
    draft: tuple[float, float] = (0.0, 0.0)
    neighbours: str = "replace"
    budget: tuple[float, float] | None = None
    reserve: float = 0.1
    approve_above: float | None = None
    fault: str = ""

    @property
    def declared(self) -> dict[str, Any]:
        """The columns that are declared and not left out."""
        return {name: given for name, given in self.columns.items() if given is not None and name not in self.left_out}

    def marks_with(self, marks: Sequence[str]) -> tuple[str, ...]:
        """Return these marks with those of the draft: a changed file is still the table that paid for the draft."""
        return tuple(dict.fromkeys((*(self.marks if any(self.draft) else ()), *marks)))

    @property
    def undeclared(self) -> list[str]:
        """The columns that are neither declared nor left out."""
        return [name for name, given in self.columns.items() if given is None and name not in self.left_out]


class RegistrationStore:
    """The registrations of a service, in its registry."""

    def __init__(self, registry: ServiceRegistry, now: Callable[[], float] = time.time) -> None:
        self._registry, self._now = registry, now

    def create(self, name: str, source: Source, person: str, taken: Sequence[str], **facts: Any) -> Registration:
        """Begin a registration under a name that no dataset has."""
        with self._registry.transaction():
            self.require_free(name, taken)
            ((drafts,),) = self._registry.rows("SELECT count(*) FROM registrations WHERE state = 'draft'")
            if drafts >= MOST_DRAFTS:
                raise InvalidInput(
                    f"At most {MOST_DRAFTS} registrations may be unfinished. Found that many already. Finish some, or "
                    "give them up."
                )
            made = Registration(random_token(8), name, source, person, self._now(), **facts)
            self._registry.write("INSERT INTO registrations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _row(made))
        return made

    def require_free(self, name: str, taken: Sequence[str]) -> None:
        """Refuse a name that cannot be one, or that another dataset or registration has."""
        if not NAME.fullmatch(name):
            raise InvalidInput(
                "The name of a dataset must be up to 64 letters, digits, '-' and '_', and begin with a letter or a "
                "digit. Found another name. Choose a short name."
            )
        names = [each.name for each in self.list() if each.state != "dropped"] + list(taken)
        if name.lower() in (each.lower() for each in names):  # some disks do not tell them apart
            raise InvalidInput("The name of a dataset must be new. Found one that is taken. Choose another.")
        if any(self._registry.rows(f"SELECT 1 FROM {table} WHERE dataset = ? LIMIT 1", (name,)) for table in PAST):
            raise InvalidInput(
                "The name of a dataset must be new. Found that of an earlier one, whose answers and approvals are on "
                "record. Choose another."
            )

    def find(self, identity: str) -> Registration:
        """Return a registration, or refuse a number that none has."""
        rows = self._registry.rows(f"SELECT {COLUMNS} FROM registrations WHERE id = ?", (identity,))
        if not rows or rows[0][2] == "dropped":
            raise Refusal(404, "not-found", "There is no such registration", "The path must name a registration. Found another path. GET /v1/registrations lists them.")  # fmt: skip
        return _registration(rows[0])

    def list(self) -> Sequence[Registration]:
        """Return all registrations, the newest first."""
        return [
            _registration(row)
            for row in self._registry.rows(f"SELECT {COLUMNS} FROM registrations ORDER BY at DESC, id")
        ]

    def change(self, identity: str, *states: str, **facts: Any) -> Registration:
        """Change a registration that is in one of these states. Refuse it in another."""
        with self._registry.transaction():
            found = self.find(identity)
            if found.state not in states:
                raise InvalidInput(
                    f"The registration must be {' or '.join(states)} for this. Found it {found.state}. Look at it "
                    "again."
                )
            changed = replace(found, **facts)
            self._registry.write(
                "UPDATE registrations SET state = ?, marks = ?, draft_epsilon = ?, draft_delta = ?, record = ? WHERE id = ?",
                (*_row(changed)[2:3], *_row(changed)[5:], identity),
            )
        return changed

    def drop(self, identity: str) -> Registration:
        """Give up a draft. It stays on record only if something was paid for it."""
        found = self.change(identity, "draft", state="dropped")
        if not any(found.draft):
            self._registry.write("DELETE FROM registrations WHERE id = ?", (identity,))
        return found

    def with_marks(self, marks: Sequence[str]) -> Sequence[Registration]:
        """Return the registrations of a table that has one of these marks, dropped ones included."""
        return [each for each in self.list() if set(each.marks) & set(marks)]

    def stop_openings(self) -> None:
        """Note that openings which an earlier life of the service began have ended early."""
        for each in self.list():
            if each.state == "opening":
                self.change(each.id, "opening", state="stopped", fault="The service stopped meanwhile.")


def _row(each: Registration) -> tuple[Any, ...]:
    """Return a registration as a row of the registry."""
    record = {
        "source": msgspec.to_builtins(each.source), "types": each.types, "columns": list(each.columns.items()),
        "left_out": list(each.left_out), "notes": each.notes, "neighbours": each.neighbours,
        "budget": None if each.budget is None else list(each.budget), "reserve": each.reserve,
        "approve_above": each.approve_above, "fault": each.fault,
    }  # fmt: skip
    return (
        each.id,
        each.name,
        each.state,
        each.person,
        each.at,
        canonical(list(each.marks)),
        *each.draft,
        canonical(record),
    )


def _registration(row: Sequence[Any]) -> Registration:
    """Return the registration that a row of the registry describes."""
    identity, name, state, person, at, marks, epsilon, delta, text = row
    record = parse(text)
    budget = record.pop("budget")
    return Registration(
        identity, name, msgspec.convert(record.pop("source"), Source), person, at, state, marks=tuple(parse(marks)),
        draft=(epsilon, delta), columns=dict(record.pop("columns")), left_out=tuple(record.pop("left_out")),
        budget=None if budget is None else tuple(budget), **record,
    )  # fmt: skip


def universe_of(found: Registration) -> Universe:
    """Return the universe of a registration, and refuse one that is not complete."""
    if found.undeclared:
        raise InvalidInput(
            f"Every column must be declared or left out. Found {len(found.undeclared)} that are not. Declare them, "
            "leave them out, or pay for a draft."
        )
    if not found.declared:
        raise InvalidInput("A universe must have a column. Found none. Declare one.")
    return Universe.from_json(found.declared)


def budget_after(budget: Budget, draft: tuple[float, float]) -> Budget:
    """Return what a draft leaves of a budget, and refuse a budget that it exhausts."""
    left = (budget.epsilon - draft[0], budget.delta - draft[1])
    if left[0] <= 0 or left[1] < 0 or (draft[1] and left[1] == 0):
        raise InvalidInput(
            f"The budget must exceed what the draft has cost, epsilon = {draft[0]:g} and delta = {draft[1]:g}. Found "
            f"{budget.epsilon:g} and {budget.delta:g}. Raise it; the draft stays spent."
        )
    return budget if draft == (0.0, 0.0) else hr.Budget(*left, budget.neighbours)


def sum_costs(costs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return sums of ε and δ in decimal arithmetic: 0.1 plus 0.2 is 0.3."""
    parts = [tuple(Decimal(repr(each)) for each in cost) for cost in costs]
    return float(sum(part[0] for part in parts)), float(sum(part[1] for part in parts))
