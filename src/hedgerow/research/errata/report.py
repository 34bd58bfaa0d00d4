"""The output of ``hedgerow errata``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hedgerow import _progress
from hedgerow._json import readable
from hedgerow.research.errata import ERRATA, NOTED
from hedgerow.research.errata.page import ErratumRun, page_text, run_all, run_demonstration


def report(name: str | None = None, page: Path | None = None, *, as_json: bool = False) -> int:
    """Show one erratum or all, and write the page of all if one is given.

    Return the exit status: 1 if a demonstration does not behave, 2 if the arguments are refused.
    """
    console, complaints = Console(quiet=as_json), Console(stderr=True)
    if name is not None and page is not None:
        complaints.print(
            "A page must contain all errata. Found one name. Leave out the name, or --write.", highlight=False
        )
        return 2
    if page is not None and not page.parent.is_dir():
        complaints.print(
            f"The page must go into an existing folder. Found none at {page.parent}. Give --page.", highlight=False
        )
        return 2
    if name is None:
        with _progress.bar("errata", len(ERRATA), complaints.is_terminal) as tick:
            ran = run_all(ERRATA, tick)
        for table in _tables(ran):
            console.print(table)
    else:
        known = {erratum.name: erratum for erratum in ERRATA}
        if name not in known:
            complaints.print(f"name must be one of {', '.join(known)}. Found {name!r}. Choose one.", highlight=False)
            return 2
        ran = [run_demonstration(known[name])]
        _explain(ran[0], console)
    if page is not None:
        page.write_text(page_text(ran, NOTED), encoding="utf-8")
        console.print(f"wrote {page}", highlight=False)
    if as_json:
        print(readable([_record(one) for one in ran]))
    return _status(ran, console)


def _record(one: ErratumRun) -> dict[str, object]:
    """Return an erratum and its findings as JSON values."""
    e = one.erratum
    return {
        "name": e.name, "document": e.document, "place": e.place, "wrong": e.wrong, "instead": e.instead,
        "printed": str(one.printed), "ours": str(one.ours), "behaves": one.behaves,
    }  # fmt: skip


def _status(ran: Sequence[ErratumRun], console: Console) -> int:
    """Print the summary and return the exit status."""
    astray = [one.erratum.name for one in ran if not one.behaves]
    if astray:
        console.print(f"{len(astray)} do not behave: {', '.join(astray)}", highlight=False)
        return 1
    console.print(f"{len(ran)} of {len(ran)} fail as printed and hold as ours", highlight=False)
    return 0


def _tables(ran: Sequence[ErratumRun]) -> Iterator[Table]:
    """Yield one table per document. Names are never cut, because the command takes them as arguments."""
    for document, group in itertools.groupby(ran, key=lambda one: one.erratum.document):
        table = Table(title=document, title_justify="left", expand=True)
        table.add_column("erratum", no_wrap=True)
        for column in ("place", "printed", "ours"):
            table.add_column(column, ratio=1)
        for one in group:
            table.add_row(one.erratum.name, one.erratum.place, str(one.printed), str(one.ours))
        yield table


def _explain(one: ErratumRun, console: Console) -> None:
    """Print an erratum with its findings."""
    e = one.erratum
    for title, text in (
        (e.document, e.place),
        ("Printed", e.printed),
        ("Wrong", e.wrong),
        ("Instead", f"{e.instead} ({e.module})"),
        ("The printed formula", f"{one.printed.what}: {one.printed}"),
        ("Ours", f"{one.ours.what}: {one.ours}"),
    ):
        console.print(f"{title}: {text}", markup=False, highlight=False)
