"""``ledger``: who spent what, whether it is whole, and what was said. Nothing here spends."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.desk import first_ledger, reading, session
from hedgerow.cli.file import DEFAULT, File, Place
from hedgerow.cli.output import FAILED, AsJson, complain, facts, show, table, working
from hedgerow.errors import InvalidInput, LedgerBroken

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(no_args_is_help=True, help="Look at the ledger: who spent what, whether it is whole, what was said.")


@app.command("show")
def show_(
    days: Annotated[float | None, typer.Option(help="Only of the last so many days.")] = None,
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Who spent what, by day; no table is needed."""
    if days is not None and not 0 < days < 1e6:
        raise InvalidInput(f"--days must be above 0. Found {days:g}. Say how many days to look back.")
    file = File(place)
    with working("reading the ledger"):
        ledger = reading(file)
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
    show(record, as_json, lambda screen: _shown(screen, record, days))


def _shown(screen: Console, record: dict[str, Any], days: float | None) -> None:
    loud = "" if record["private"] else "NOT PRIVATE (seeded): "
    draft = record["draft"]
    pairs = [
        ("budget", f"ε = {record['epsilon']:g}, δ = {record['delta']:g} ({record['neighbours']})"),
        ("spent", f"{loud}{record['spent'] / record['total']:.1%} ({record['currency']} {record['spent']:.4g} of {record['total']:.4g})"),
        *([("draft", f"ε = {draft['epsilon']:g}, δ = {draft['delta']:g} before that")] if draft["epsilon"] else []),
        ("charges", f"{record['charges']:,}"),
        ("head", record["head"]),
    ]  # fmt: skip
    screen.print(facts(pairs))
    rows = [
        (row["who"] or "(everybody)", row["day"], row["charges"], row["spent"], f"{row['share']:.2%}")
        for row in record["spending"]
    ]
    title = "" if days is None else f"the last {days:g} days"
    screen.print(table(("who", "day", "charges", record["currency"], "of the budget"), rows, title))
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
        str | None, typer.Option(help="A head that was noted elsewhere: lines up to it must be there.")
    ] = None,
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Check every line against the next. Status 1 if any was changed, removed, moved or, against --head, cut off."""
    file = File(place)
    with working("checking every line"):
        try:
            ledger = reading(file)
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
    out: Annotated[Path | None, typer.Option(help="Where the lines go; stdout by default.")] = None,
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Every line as JSON, a line each: number, time, who, kind, body, hash. With --json, one array."""
    file = File(place)
    file.require_other(out)
    ledger = reading(file)
    try:
        if as_json and out is None:
            show([json.loads(line) for line in ledger.export()], True, lambda screen: None)
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
    import contextlib

    return contextlib.nullcontext(sys.stdout)


@app.command()
def report(
    out: Annotated[Path, typer.Option(help="A .html page, or .json.")] = Path("report.html"),
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """A page with the budget, every charge, what is certified and the last thousand answers: nothing private."""
    if out.suffix not in (".html", ".json"):
        raise InvalidInput(f"--out must end in .html or .json. Found {out.name!r}. Rename it.")
    file = File(place)
    file.require_other(out)
    with session(file) as opened, working("writing the report"):
        made = opened.report(everybody=True)
        made.save(out)
    if as_json:
        show(json.loads(made.json), True, lambda screen: None)
    else:
        typer.echo(f"Wrote {out}: {len(made.answers):,} answers, {len(made.charges):,} charges.")


@app.command()
def cap(
    who: Annotated[str, typer.Argument(help="Whose.")],
    epsilon: Annotated[float, typer.Argument(help="The most they may spend, of the budget, at its δ.")],
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Set the most that somebody may spend. It may be set again."""
    with session(File(place)) as opened:
        first_ledger(opened).cap(who, epsilon)
        currency = opened.budget.currency
    record = {"who": who, "epsilon": epsilon, "currency": currency}
    show(record, as_json, lambda screen: screen.print(f"{who} may spend up to ε = {epsilon:g}."))
