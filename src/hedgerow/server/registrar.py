"""Register tables: look at a schema, declare columns, pay for a draft, open. Owners of the whole service do it.

Nothing is read from rows but by ``draft``, which is paid for first, and by the opening. To recognize a table its
bytes are digested, and nothing of that is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

import hedgerow as hr
from hedgerow._progress import listener
from hedgerow.data.readers import TrustSchema, open_before_rows
from hedgerow.data.schema import hide_engine_errors
from hedgerow.data.table import open_source
from hedgerow.drafting.public import from_column
from hedgerow.errors import HedgerowError, InvalidInput, TooLarge
from hedgerow.ledger.chain import Head
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.server.answer_queue import Meter
from hedgerow.server.dataset import Dataset
from hedgerow.server.desk_file import LEDGER, NAME, desk_text, write_new
from hedgerow.server.faults import log_fault
from hedgerow.server.problems import Refusal
from hedgerow.server.registration_rule import RegistrationRule
from hedgerow.server.registrations import FIXED, Registration, RegistrationStore, budget_after, sum_costs, universe_of
from hedgerow.server.settings import ApprovalRule, Settings
from hedgerow.server.sources import Marks, Place, Source, SourceList, no_file
from hedgerow.server.uploads import Uploads
from hedgerow.session import Session
from hedgerow.universe.files import to_mapping
from hedgerow.universe.universe import Universe

MOST_COLUMNS = 500
LONGEST_HEAD = 200_000  # characters of all names
BINS = 16


@dataclass(frozen=True)
class Desk:
    """Functions of the command line that open the files of owners.

    ``open_session`` opens the session of a file, and refuses a ledger without the noted head. ``expand`` fills secrets
    of the environment into an address. ``sources_of`` returns the source and the table of a file's dataset, and of each
    of its blocks.
    """

    open_session: Callable[[Path, Head], Session]
    expand: Callable[[str, str], str]
    sources_of: Callable[[Path], Sequence[tuple[str, str | None]]]


class Registrar:
    """The registrations of a running service."""

    def __init__(
        self,
        settings: Settings,
        rule: RegistrationRule,
        desk: Desk,
        store: RegistrationStore,
        datasets: MutableMapping[str, Dataset],
        rules: MutableMapping[str, ApprovalRule],
        make: Callable[[str, Session], Dataset],
    ) -> None:
        rule.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.rule, self.store, self.sources = rule, store, SourceList(rule, desk.expand)
        self.uploads = Uploads(rule, settings.limits.memory, settings.limits.body_seconds)
        self._settings, self._desk, self._marks = settings, desk, Marks(rule.folder)
        self._datasets, self._rules, self._make = datasets, rules, make
        self.deciding, self._opening = asyncio.Lock(), asyncio.Lock()
        self._progress: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._known: dict[tuple[str | int, ...], tuple[str, ...]] = {}
        store.stop_openings()

    # Looking at a source

    async def create(self, name: str, source: Source, person: str) -> Registration:
        """Begin a registration with the columns of the schema. No row is read."""
        self.store.require_free(name, list(self._datasets))
        place = self.sources.find(source, self.uploads.path)
        marks = await asyncio.to_thread(self.marks_of, place)
        await self.require_new(marks)
        types = await asyncio.to_thread(lambda: self._schema(place, source))
        columns = {name: _declaration(name, from_column(column, None, BINS)) for name, column in types.items()}
        kinds = {name: column.kind for name, column in types.items()}
        return self.store.create(
            name, source, person, list(self._datasets), marks=marks, types=kinds, columns=columns,
            notes={name: "from the schema" for name, given in columns.items() if given is not None},
        )  # fmt: skip

    def _schema(self, place: Place, source: Source) -> dict[str, Any]:
        """Return the public facts of each column."""
        where = self.sources.locate(place)
        found = hide_engine_errors(
            lambda: open_before_rows(where if place.table else TrustSchema(where), place.table, source.csv())
        )
        names = list(dict.fromkeys(found.columns))
        if not 0 < len(names) <= MOST_COLUMNS or sum(map(len, names)) > LONGEST_HEAD:
            raise TooLarge(
                f"A table must have 1 to {MOST_COLUMNS} columns here, whose names have at most {LONGEST_HEAD:,} "
                f"characters. Found {len(names)} columns. Check the delimiter, or register a view."
            )
        return {name: found.type_of(i) for name, i in zip(names, found.positions(names), strict=True)}

    # Declaring its columns

    def declare(self, identity: str, columns: Mapping[str, Any], left_out: Sequence[str]) -> Registration:
        """Replace declarations of columns.

        Each declaration is checked alone, so that the refusal can name the wrong column.
        """
        found = self.store.find(identity)
        unknown = [name for name in (*columns, *left_out) if name not in found.columns]
        if unknown:
            raise InvalidInput(
                "columns must be those of the table. Found another name. Look at the registration again."
            )
        declared = {name: None if given is None else _check_declaration(name, given) for name, given in columns.items()}
        notes = {name: note for name, note in found.notes.items() if columns.get(name, found.columns[name]) == found.columns[name]}  # fmt: skip
        return self.store.change(
            identity, "draft", columns={**found.columns, **declared}, left_out=tuple(dict.fromkeys(left_out)), notes=notes, fault="",
        )  # fmt: skip

    async def draft(self, identity: str, names: Sequence[str], price: Budget) -> Registration:
        """Read the rows of columns to draft their declarations, for a price that is noted before."""
        async with self.deciding:
            found = self.store.find(identity)
            unknown = [name for name in names if name not in found.columns]
            if unknown or not names:
                raise InvalidInput("columns must be some of the table. Found none, or another. Choose columns.")
            place = self._place(found)
            marks = await asyncio.to_thread(self.marks_of, place)
            await self.require_new(marks, identity)
            earlier = self._spent_on(marks, found)
            if earlier != (0.0, 0.0) and price.neighbours != self._neighbors_of(marks, found):
                raise InvalidInput(
                    "neighbours must be those of the earlier draft of this table. Found other neighbours. Leave them "
                    "as they were."
                )
            cost = sum_costs([found.draft, (price.epsilon, price.delta)])
            paid = self.store.change(
                identity, "draft", marks=found.marks_with(marks), draft=cost, neighbours=price.neighbours
            )
            account = Accountant(price, slack=price.delta / 2)
            try:
                made = await asyncio.to_thread(lambda: self._read_draft(place, found, names, account))
            except (InvalidInput, TooLarge):
                if not account.charged:  # refused before anything was drawn
                    self.store.change(identity, "draft", draft=found.draft)
                raise
            declared = to_mapping(made)
            notes = {**paid.notes, **{name: f"drafted: {made.notes.get(name, '')}" for name in declared}}
            return self.store.change(identity, "draft", columns={**paid.columns, **declared}, notes=notes)

    def _read_draft(self, place: Place, found: Registration, names: Sequence[str], account: Accountant) -> Universe:
        return hr.Universe.draft(
            self.sources.locate(place), budget=account.budget, ledger=account, table=place.table, csv=found.source.csv(),
            columns=list(names),
        )  # fmt: skip

    # Opening

    async def open(
        self, identity: str, budget: Budget | None, reserve: float, approve_above: float | None
    ) -> Registration:
        """Begin to open a registration, or go on with an opening that was stopped. It goes on after this returns."""
        async with self.deciding:
            found = self.store.find(identity)
            place = self._place(found)
            self.sources.require_unmoved(place)
            is_new = found.state != "stopped"
            if not is_new:
                self._require_ledger(found)
                self._require_unmoved(found)
                begun = self.store.change(identity, "stopped", state="opening", fault="")
            else:
                begun = await self._commit(found, place, budget, reserve, approve_above)
        self._progress[identity] = "waiting for another opening" if self._opening.locked() else "reading the table"
        task = asyncio.create_task(self._open(begun, is_new=is_new))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return begun

    async def _commit(
        self, found: Registration, place: Place, budget: Budget | None, reserve: float, approve_above: float | None
    ) -> Registration:
        """Check everything about a registration, and write its file. After this, nothing about it can change."""
        if found.state != "draft" or budget is None:
            raise InvalidInput(
                f"An opening must have a budget and a registration that is not open. Found it {found.state}. Look at "
                "it again."
            )
        universe = universe_of(found)
        marks = await asyncio.to_thread(self.marks_of, place)
        await self.require_new(marks, found.id)
        draft = self._spent_on(marks, found)
        if draft != (0.0, 0.0) and budget.neighbours != self._neighbors_of(marks, found):
            raise InvalidInput(
                "neighbours must be those of the draft that was paid for. Found other neighbours. Leave them as they "
                "were."
            )
        budget_after(budget, draft)
        hr.Practical(reserve=reserve)
        await self._require_other_fingerprint(place, found, universe)
        folder = self.folder(found)
        if (folder / LEDGER).exists():
            raise InvalidInput("The folder of the dataset must be new. Found a ledger in it. Choose another name.")
        (folder / NAME).unlink(missing_ok=True)
        where = place.source
        if found.source.upload and not place.source.startswith(str(folder)):
            where = str(folder / Path(place.source).name)
        csv = found.source.csv()
        text = desk_text(
            {"source": where, "table": place.table, "csv": {} if csv is None else _dialect(found.source)},
            to_mapping(universe), {"epsilon": budget.epsilon, "delta": budget.delta, "neighbours": budget.neighbours},
            {"epsilon": draft[0], "delta": draft[1]}, reserve,
        )  # fmt: skip
        folder.mkdir(mode=0o700, exist_ok=True)
        if where != place.source:
            self.uploads.take(found.source.upload, folder)
        write_new(folder / NAME, text)
        return self.store.change(
            found.id, "draft", state="opening", marks=found.marks_with(marks), columns=found.columns, left_out=found.left_out, budget=(budget.epsilon, budget.delta), fault="",
            neighbours=budget.neighbours, reserve=reserve, approve_above=approve_above,
        )  # fmt: skip

    async def _open(self, registration: Registration, *, is_new: bool) -> None:
        """Open the session of a registration and serve it. Note how it ended."""
        async with self._opening:
            identity = registration.id
            try:
                session = await asyncio.to_thread(self._open_session, registration)
                made = await asyncio.to_thread(self._make, registration.name, session)
            except HedgerowError as refused:
                self._stop(registration, str(refused), is_new=is_new)
            except Exception as fault:
                log_fault(f"opening {registration.name}", fault)
                self._stop(registration, "The opening failed. The log of the service says where.", is_new=is_new)
            else:
                self.serve(registration, made)
                self.store.change(identity, "opening", state="open")
            self._progress.pop(identity, None)

    def _open_session(self, registration: Registration) -> Session:
        def told(words: str) -> None:
            self._progress[registration.id] = words

        with listener(told):
            return self._desk.open_session(self.folder(registration) / NAME, Head())

    def _stop(self, registration: Registration, why: str, *, is_new: bool) -> None:
        """Note that an opening ended early. If nothing was spent, everything can be changed again."""
        has_spent = not is_new or (self.folder(registration) / LEDGER).exists()
        self.store.change(registration.id, "opening", state="stopped" if has_spent else "draft", fault=why)

    def _require_ledger(self, registration: Registration) -> None:
        """Refuse to open again what was opened before, if its ledger is gone: the budget would be spent anew."""
        if not (self.folder(registration) / LEDGER).exists():
            raise InvalidInput(
                "The ledger of a dataset that was opened must be in its folder. Found none. Put it back, with what "
                "belongs to it."
            )

    def _require_unmoved(self, registration: Registration) -> None:
        """Refuse a dataset if a link leads to its table, or to that of a block, by now."""
        blocks = [Place(*each) for each in self._desk.sources_of(self.folder(registration) / NAME)[1:]]
        for place in (self._place(registration), *blocks):
            self.sources.require_unmoved(place)

    def serve(self, registration: Registration, made: Dataset) -> None:
        """Let requests reach a dataset that was opened."""
        if registration.approve_above is not None:
            self._rules[registration.name] = ApprovalRule(registration.approve_above)
        self._datasets[registration.name] = made

    def open_again(self, tell: Callable[[str], None]) -> dict[str, tuple[Registration, Session]]:
        """Open the sessions of all registered datasets at the start of the service.

        A session that cannot be opened is reported.
        """
        found = {}
        for each in self.store.list():
            if each.state != "open":
                continue
            tell(f"opening {each.name}")
            if each.name in self._datasets:
                tell(f"{each.name} is registered, and not served, because the service's file has another of this name")
                continue
            try:
                self._require_ledger(each)
                self._require_unmoved(each)
                found[each.name] = (each, self._desk.open_session(self.folder(each) / NAME, Head()))
            except HedgerowError as refused:
                tell(f"{each.name} is not served: {refused}")
                self.store.change(each.id, "open", state="stopped", fault=str(refused))
        return found

    async def give_up(self, identity: str) -> None:
        """Drop a registration that was not opened, and delete its upload.

        The cost of its draft stays with its table.
        """
        async with self.deciding:
            found = self.store.drop(identity)
            if found.source.upload:
                self.uploads.remove(found.source.upload)
                for each in self.folder(found).glob("table.*"):
                    each.unlink()

    async def close(self) -> None:
        """Wait for openings that go on."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Parts

    def progress(self, identity: str) -> str:
        """Return what an opening does now."""
        return self._progress.get(identity, "")

    def spent_on_drafts(self, found: Registration) -> tuple[float, float]:
        """Return the ε and δ that drafts of this table have cost, those of dropped registrations included."""
        return self._spent_on(found.marks, found)

    def _spent_on(self, marks: Sequence[str], found: Registration) -> tuple[float, float]:
        paid = {each.id: each.draft for each in self.store.with_marks(marks)} | {found.id: found.draft}
        return sum_costs(paid.values())

    def _neighbors_of(self, marks: Sequence[str], found: Registration) -> str:
        paid = [each for each in (found, *self.store.with_marks(marks)) if each.draft != (0.0, 0.0)]
        return paid[0].neighbours if paid else found.neighbours

    def folder(self, found: Registration) -> Path:
        """Return the folder of a dataset's file, ledger and upload."""
        return self.rule.folder / found.name

    def _place(self, found: Registration) -> Place:
        """Return the place of a registration's table.

        An upload is in the dataset's folder once its opening was begun.
        """
        kept = sorted(self.folder(found).glob("table.*")) if found.source.upload else []
        return Place(str(kept[0])) if kept else self.sources.find(found.source, self.uploads.path)

    async def require_new(self, marks: Sequence[str], identity: str = "") -> None:
        """Refuse a table that the service has: its people would pay two budgets."""
        for each in self.store.with_marks(marks):
            if each.id != identity and each.state in FIXED:
                raise same_table(each.name)
        opened = {each.name: self.folder(each) / NAME for each in self.store.list() if each.state in FIXED}
        for name, path in (opened | dict(self._settings.datasets)).items():
            if set(marks) & set(await asyncio.to_thread(self._marks_of_file, path)):
                raise same_table(name)

    def file_of(self, name: str) -> tuple[Path, Registration | None]:
        """Return the file of a dataset, with its registration if it has one."""
        found = next((each for each in self.store.list() if each.name == name and each.state == "open"), None)
        path = self._settings.datasets.get(name) if found is None else self.folder(found) / NAME
        if path is None or not path.is_file():
            raise InvalidInput("The dataset must have a file. Found a dataset without one. Register its table.")
        return path, found

    def _marks_of_file(self, path: Path) -> tuple[str, ...]:
        """Return the marks of the tables of a dataset's file: of the first, and of its blocks."""
        given = self._desk.sources_of(path) if path.is_file() else ()
        known = [
            Place(*each) for each in given if each[1] is not None or Path(each[0]).is_file()
        ]  # no address of files
        return tuple(mark for place in known for mark in self.marks_of(place))

    def marks_of(self, place: Place) -> tuple[str, ...]:
        """Return the marks of a table. Those of a file are computed again only if it has changed."""
        if place.table is not None:
            return self._marks.of(Place(self.sources.locate(place), place.table))
        try:
            found = Path(place.source).stat()
        except OSError:
            raise no_file() from None
        key = (place.source, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        if key not in self._known:
            self._known[key] = self._marks.of(place)
        return self._known[key]

    async def _require_other_fingerprint(self, place: Place, found: Registration, universe: Universe) -> None:
        """Refuse a table with the records of a dataset that has the same universe, whatever the form of its file."""
        alike = [each for each in list(self._datasets.values()) if each.session.universe == universe]
        if not alike:
            return

        def fingerprint() -> str:
            where = self.sources.locate(place)
            return open_source(where, universe, table=place.table, csv=found.source.csv()).fingerprint()

        own = await asyncio.to_thread(fingerprint)
        for each in alike:
            others = await each.run(
                "", lambda session: [block.data.fingerprint() for block in session.blocks.values()], Meter()
            )
            if own in others:
                raise same_table(each.name)


def same_table(name: str) -> Refusal:
    """Return the refusal of a table that is registered already."""
    return Refusal(
        409, "same-table", "This table is registered already",
        "A table must be registered once, because its people would pay two budgets. Found that it is the table of "
        f"{name!r}. Ask that dataset, or append new rows to it as a block.",
    )  # fmt: skip


def _declaration(name: str, attribute: Any) -> Any:
    return None if attribute is None else to_mapping(Universe({name: attribute}))[name]


def _check_declaration(name: str, given: Any) -> Any:
    """Return a declaration in its usual form, and refuse one that declares nothing."""
    return to_mapping(Universe.from_json({name: given}))[name]


def _dialect(source: Source) -> dict[str, Any]:
    found = msgspec.to_builtins(source)
    names = (("delimiter", "delimiter"), ("encoding", "encoding"), ("header", "columns"))
    return {name: found[field] for field, name in names if found[field]}
