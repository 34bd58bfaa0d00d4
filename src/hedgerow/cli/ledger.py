"""The commands ``ledger …``: show spending, verify, export and report. None of them spends."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow._json import parse
from hedgerow.cli.desk import first_ledger, open_reading, session
from hedgerow.cli.file import DEFAULT, File, Place
from hedgerow.cli.output import FAILED, AsJson, complain, facts, show, show_progress, table
from hedgerow.cli.published_file import file_at
from hedgerow.errors import InvalidInput, LedgerBroken

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(no_args_is_help=True, help="Inspect the ledger: spending by analyst, integrity, released answers.")


@app.command("show")
def show_(
    days: Annotated[float | None, typer.Option(help="Only the last N days.")] = None,
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show spending by analyst and day. The table is not needed."""
    if days is not None and not 0 < days < 1e6:
        raise InvalidInput(f"--days must be above 0. Found {days:g}. Give the number of days to look back.")
    file = File(place)
    with show_progress("reading the ledger"):
        ledger = open_reading(file)
        spending, budget, spent = ledger.spending(days), ledger.budget, ledger.spent
        entries = ledger.entries()
        record: dict[str, Any] = {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "neighbours": budget.neighbours,
            "currency": budget.currency,
            "spent": spent,
            "total": budget.total,
            "remaining": ledger.remaining,
            "charges": len(entries),
            "private": all(entry.private for entry in entries),
            "draft": dict(zip(("epsilon", "delta"), file.draft, strict=True)),
            "caps": ledger.caps,
            "spending": spending.to_dict("records"),
            "head": str(ledger.head),
            "blocks": [
                {
                    "block": name,
                    "epsilon": each.budget.epsilon,
                    "delta": each.budget.delta,
                    "spent": each.spent,
                    "total": each.budget.total,
                }
                for name, each in ledger.blocks.items()
            ],
        }
        ledger.close()
    show(record, as_json, lambda screen: _show_ledger(screen, record, days))


def _show_ledger(screen: Console, record: dict[str, Any], days: float | None) -> None:
    """Print the budget, the spending, the blocks and the caps."""
    loud = "" if record["private"] else "NOT PRIVATE (seeded): "
    draft = record["draft"]
    pairs = [
        ("budget", f"ε = {record['epsilon']:g}, δ = {record['delta']:g} ({record['neighbours']})"),
        ("spent",
            f"{loud}{record['spent'] / record['total']:.1%} ({record['currency']} {record['spent']:.4g} of "
            f"{record['total']:.4g})"),
        *([("draft", f"ε = {draft['epsilon']:g}, δ = {draft['delta']:g} before that")] if draft["epsilon"] else []),
        ("charges", f"{record['charges']:,}"),
        ("head", record["head"]),
    ]  # fmt: skip
    screen.print(facts(pairs))
    lines = [
        (row["who"] or "(everybody)", row["day"], row["charges"], row["spent"], f"{row['share']:.2%}")
        for row in record["spending"]
    ]
    title = "" if days is None else f"the last {days:g} days"
    screen.print(table(("who", "day", "charges", record["currency"], "of the budget"), lines, title))
    if record["blocks"]:
        blocks = [
            (b["block"], b["epsilon"], b["delta"], b["spent"], f"{b['spent'] / b['total']:.1%}")
            for b in record["blocks"]
        ]
        screen.print(table(("appended block", "ε", "δ", record["currency"], "of its budget"), blocks))
    if record["caps"]:
        caps = [(who, cap, f"{cap / record['total']:.2%}") for who, cap in record["caps"].items()]
        screen.print(table(("cap of", record["currency"], "of the budget"), caps))


@app.command()
def verify(
    head: Annotated[
        str | None, typer.Option(help="Head that was noted elsewhere: all lines up to it must be present.")
    ] = None,
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Check the chain of all lines. Status 1 if one was changed, removed, moved or, against --head, cut off."""
    file = File(place)
    with show_progress("checking every line"):
        try:
            ledger = open_reading(file)
            found = ledger.verify(head)
            ledger.close()
        except LedgerBroken as broken:
            if as_json:
                show({"whole": False, "fault": str(broken)}, True, lambda screen: None)
            complain(str(broken))
            raise typer.Exit(FAILED) from None
    record = {"whole": True, "lines": found.number, "head": str(found)}
    against = "" if head else " Lines cut off at the end show only against a head noted elsewhere: --head."
    show(
        record,
        as_json,
        lambda screen: screen.print(f"{found.number:,} lines, all as they were written.{against}\nhead {found}"),
    )


@app.command()
def export(
    out: Annotated[Path | None, typer.Option(help="File for the lines; stdout by default.")] = None,
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Print every line as one JSON object: number, time, who, kind, body, hash. With --json, print one array."""
    file = File(place)
    file.require_other(out)
    ledger = open_reading(file)
    try:
        if as_json and out is None:
            show([parse(line) for line in ledger.export()], True, lambda screen: None)
            return
        with out.open("w", encoding="utf-8") if out is not None else _stdout() as target:
            count = 0
            for line in ledger.export():
                target.write(line + "\n")
                count += 1
        if out is not None:
            record = {"out": str(out), "lines": count, "head": str(ledger.head)}
            show(
                record, as_json, lambda screen: screen.print(f"Wrote {count:,} lines to {out}.\nhead {record['head']}")
            )
    finally:
        ledger.close()


def _stdout() -> Any:
    """Return stdout as a context manager that does not close it."""
    import contextlib

    return contextlib.nullcontext(sys.stdout)


@app.command()
def report(
    out: Annotated[Path, typer.Option(help="File to write, .html or .json.")] = Path("report.html"),
    names: Annotated[
        bool, typer.Option("--names", help="Add who was billed and when: for the owner, not for publication.")
    ] = False,
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write a report of the last thousand questions and answers, the budget, every charge and the certificate.

    The report contains nothing private. Print it, or open it in a browser and save it as PDF.
    """
    if out.suffix not in (".html", ".json"):
        raise InvalidInput(f"--out must end in .html or .json. Found {out.name!r}. Rename it.")
    file = file_at(place)
    file.require_other(out)
    with session(file, use="read") as opened, show_progress("writing the report"):
        made = opened.report(everybody=True, names=names)
        made.save(out)
    if as_json:
        show(parse(made.json), True, lambda screen: None)
    else:
        typer.echo(f"Wrote {out}: {len(made.answers):,} answers, {len(made.charges):,} charges.")


@app.command()
def cap(
    who: Annotated[str, typer.Argument(help="Analyst or project, or * for all analysts together.")],
    epsilon: Annotated[float, typer.Argument(help="Largest ε that they may spend, at the budget's δ.")],
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Limit what one analyst, one project or all analysts together may spend. The cap may be changed later."""
    with session(File(place)) as opened:
        first_ledger(opened).cap(who, epsilon)
        currency = opened.budget.currency
    record = {"who": who, "epsilon": epsilon, "currency": currency}
    show(record, as_json, lambda screen: screen.print(f"{who} may spend up to ε = {epsilon:g}."))
