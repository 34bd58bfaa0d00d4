"""The commands ``init`` (draft the file), ``open`` (open the session) and ``append`` (add rows).

Each of them may spend, after stating the price.
"""

from __future__ import annotations

import contextlib
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hedgerow as hr
from hedgerow._json import quote_text
from hedgerow.cli.desk import account, first_ledger, is_open, require_open, session, spent_line
from hedgerow.cli.environment import expand, require_no_secret
from hedgerow.cli.file import DEFAULT, File, Place, draft_cost, more, replace_file
from hedgerow.cli.output import AsJson, Seed, Yes, complain, confirm, facts, show, show_progress, table
from hedgerow.engine.certificate import NONE
from hedgerow.errors import HedgerowError, InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from hedgerow.data.csv_file import Csv
    from hedgerow.data.schema import Column
    from hedgerow.privacy.budget import Budget
    from hedgerow.universe.attributes import Attribute

Draft = dict[str, "Attribute | None"]
# declarations that are suggested, as comments, for a column whose schema does not describe its values
HINTS = {
    "whole": '# kind = "Integers"\n# low = 0\n# high = 100\n',
    "number": '# kind = "Range"\n# low = 0\n# high = 100\n# bins = 10\n',
    "date": '# kind = "Dates"\n# low = 2015-01-01\n# high = 2024-12-31\n# by = "month"\n',
}
LABELS = '# kind = "Categories"\n# values = ["…", "…"]\n# other = true\n'
TO_DECLARE = """\
# Declare these columns from public knowledge, or leave them out.
# Kinds: Categories, Flag, Integers, Range, Dates (docs/universe.md).

"""


def init(
    source: Annotated[
        str, typer.Argument(help="A CSV or Parquet file, or a database URL ('…${PGPASSWORD}…' for secrets).")
    ],
    out: Annotated[Path, typer.Option("--file", "-f", envvar="HEDGEROW_FILE", help="File to write.")] = DEFAULT,
    table_name: Annotated[str | None, typer.Option("--table", help="Name of the table in a database.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="ε of the whole budget. There is no default.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ of the whole budget. There is no default.")] = None,
    neighbours: Annotated[
        str | None,
        typer.Option(
            help="replace (n is public) or add-remove (n is private). Default: as in an overwritten file, else replace."
        ),
    ] = None,
    budget: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--budget",
            metavar="ε δ",
            help="Read the rows for this price, out of the whole budget, to draft columns without a public schema.",
        ),
    ] = None,
    codebook: Annotated[Path | None, typer.Option(help="Public universe file that declares some columns.")] = None,
    columns: Annotated[str | None, typer.Option(help="Only these columns, separated by commas.")] = None,
    ledger: Annotated[str | None, typer.Option(help="URL of the ledger.")] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            help="A question that matters most, as SQL, a formula such as 'income ~ sex + age', or a column. Repeat it."
        ),
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="Delimiter of a CSV file.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of a CSV file.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an existing file. The cost of its draft is kept.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Draft hedgerow.toml from the schema of a source: free, unless --budget allows to read rows for a stated price."""
    require_no_secret(source, "source")
    if out.exists() and not force:
        raise InvalidInput(
            f"init must not overwrite a file. Found {str(out)!r}. Name another with --file, or add --force."
        )
    before = File(out).content if out.exists() else {}
    earlier = draft_cost(before)
    neighbours = _neighbours(neighbours, before, earlier, out)
    price = None if budget is None else hr.Budget(*budget, neighbours)  # type: ignore[arg-type]
    whole = _whole(epsilon, delta, neighbours, price, earlier)
    delimiter = "\t" if delimiter == "\\t" else delimiter
    dialect: dict[str, Any] = {
        name: value for name, value in (("delimiter", delimiter), ("encoding", encoding)) if value is not None
    }
    csv = hr.Csv(**dialect) if dialect else None
    place = expand(source, "source")
    known, types = _from_schema(place, table_name, csv, columns, codebook)
    unknown = [name for name, attribute in known.items() if attribute is None]
    head = _head(source, out, table_name, dialect, whole, neighbours, ledger, workload or [])
    notes: Mapping[str, str] = {}
    if unknown and price is not None:
        complain(_price_notice(source, unknown, price))
        confirm("Read the rows?", yes)
        cost = (more(earlier[0], price.epsilon), more(earlier[1], price.delta))
        head += _cost(cost)
        book = {name: attribute for name, attribute in known.items() if attribute is not None}
        with _note_price(out, head), show_progress("reading the rows"):
            found = hr.Universe.draft(
                place, budget=price, table=table_name, csv=csv, columns=list(known), codebook=book, seed=seed
            )  # fmt: skip
        known, unknown, earlier, notes = {name: found[name] for name in found.names}, [], cost, found.notes
    elif earlier != (0.0, 0.0):
        head += _cost(earlier)
    from hedgerow.universe.files import to_mapping

    if out.exists():
        replace_file(out, head + _universe(known, types, notes))
    else:
        out.write_text(head + _universe(known, types, notes), encoding="utf-8")
    record = {
        "file": str(out),
        "columns": {name: None if a is None else to_mapping(hr.Universe({name: a}))[name] for name, a in known.items()},
        "undeclared": unknown,
        "notes": dict(notes),
        "spent": {"epsilon": earlier[0], "delta": earlier[1]},
        "private": seed is None,
    }
    show(record, as_json, lambda screen: _print_draft(screen, out, known, notes, whole, earlier))


def _neighbours(told: str | None, before: Mapping[str, Any], earlier: tuple[float, float], out: Path) -> str:
    """Return the neighbors of the new file: as given, else those of the file that is overwritten.

    A draft that was paid for one kind of neighbors has another price for the other kind, so the kind must not change
    then.
    """
    section = before.get("budget", {})
    said = section.get("neighbours", "replace") if isinstance(section, Mapping) else "replace"
    chosen: str = said if told is None else told
    hr.Budget(1.0, 0.0, chosen)  # type: ignore[arg-type]  # refuses an unknown kind
    if chosen != said and earlier != (0.0, 0.0):
        raise InvalidInput(
            f"--neighbours must be {said!r}, because the draft in {out.name} was paid for that. Found {chosen!r}. "
            "Leave it out, or name another file and another ledger."
        )
    return chosen


@contextlib.contextmanager
def _note_price(out: Path, head: str) -> Iterator[None]:
    """Write the price into the file before it is spent. A refusal spends nothing, and restores the file."""
    before = out.read_bytes() if out.exists() else None
    if before is not None:
        replace_file(out, head)
    else:
        with out.open("x", encoding="utf-8") as file:  # of two processes at once, one fails
            file.write(head)
    try:
        yield
    except HedgerowError:
        if before is None:
            out.unlink()
        else:
            replace_file(out, before.decode())
        raise


def _whole(
    epsilon: float | None, delta: float | None, neighbours: str, price: Budget | None, earlier: tuple[float, float]
) -> Budget | None:
    """Return the whole budget, if it is given, and check that the price of the draft is a part of it."""
    if (epsilon is None) != (delta is None):
        raise InvalidInput(
            "--epsilon and --delta must come together. Found one. Give both, or declare them in the file."
        )
    if epsilon is None or delta is None:
        return None
    whole = hr.Budget(epsilon, delta, neighbours)  # type: ignore[arg-type]
    if price is not None and not (
        more(earlier[0], price.epsilon) < whole.epsilon and (more(earlier[1], price.delta) < whole.delta or price.pure)
    ):
        raise InvalidInput(
            f"--budget must be a part of the whole, epsilon = {whole.epsilon:g} and delta = {whole.delta:g}. Found "
            f"{price.epsilon:g} and {price.delta:g}{'' if earlier == (0.0, 0.0) else ', after an earlier draft'}. Give "
            "less."
        )
    return whole


def _from_schema(
    place: str, table_name: str | None, csv: Csv | None, columns: str | None, codebook: Path | None
) -> tuple[Draft, dict[str, Column]]:
    """Return what is public about each column. No row is read.

    The types of a file are treated as public, because the owner drafts from it, as in ``Universe.from_schema``.
    """
    from hedgerow.data.readers import open_before_rows
    from hedgerow.data.schema import hide_engine_errors
    from hedgerow.drafting.public import from_codebook, from_column

    found = hide_engine_errors(
        lambda: open_before_rows(place if table_name else hr.TrustSchema(place), table_name, csv)
    )
    every = found.all_names(None if csv is None else csv.delimiter)
    names = [name.strip() for name in columns.split(",")] if columns else every
    types = {name: found.type_of(i) for name, i in zip(names, found.positions(names), strict=True)}
    book: Mapping[str, Attribute] = {}
    if codebook is not None:
        listed = hr.Universe.load(codebook)
        book = {name: from_codebook(name, listed[name]) for name in listed.names}
    return {name: book[name] if name in book else from_column(types[name], None, 16) for name in names}, types


def _price_notice(source: str, unknown: list[str], price: Budget) -> str:
    """Return the notice of the price of a draft."""
    listed = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
    return (
        f"The schema does not describe {listed}. Reading their rows in {source} costs everybody in it epsilon = "
        f"{price.epsilon:g}, delta = {price.delta:g} of privacy, for good. The cost is noted in the file and counts "
        "toward the budget."
    )


def _head(
    source: str, out: Path, table_name: str | None, dialect: Mapping[str, str], whole: Budget | None, neighbours: str,
    ledger: str | None, workload: list[str],
) -> str:  # fmt: skip
    """Return the text of the file without the columns."""
    if "://" not in source:
        path = Path(source).absolute()
        source = (
            str(path.relative_to(out.absolute().parent)) if path.is_relative_to(out.absolute().parent) else str(path)
        )
    stem = table_name or (Path(source).name.partition(".")[0] if "://" not in source else "people")
    stem = re.sub(r"[^\w.-]", "_", stem)
    url = ledger or f"sqlite:///{stem}.ledger"
    require_no_secret(url, "ledger")
    lines = [
        "# What hedgerow needs to know about the table. All of it is public: nothing here may come from its rows,",
        "# unless they were paid for.",
        "",
    ]
    lines += [f"source = {quote_text(source)}"]
    lines += [f"table = {quote_text(table_name)}"] if table_name else []
    lines += [f"ledger = {quote_text(url)}", ""]
    if dialect:
        lines += ["[csv]", *(f"{name} = {quote_text(value)}" for name, value in dialect.items()), ""]
    lines.append("[budget]  # for all releases together")
    declared = (
        "# epsilon = 1.0\n# delta = 1e-6" if whole is None else f"epsilon = {whole.epsilon!r}\ndelta = {whole.delta!r}"
    )
    lines += [
        declared,
        f'neighbours = "{neighbours}"',
        "",
        "[practical]",
        "reserve = 0.1  # share of the budget for answers that must be more precise than the free ones",
        f"workload = [{', '.join(map(quote_text, workload))}]  # what matters most"
        if workload
        else '# workload = ["income ~ sex + age", ["sex", "income"]]  # what matters most: questions, SQL, formulas, columns',
        "",
    ]
    return "\n".join(lines) + "\n"


def _cost(spent: tuple[float, float]) -> str:
    """Return the [draft] table of the file."""
    return f"[draft]  # what drafting the universe has cost, of the budget: do not remove\nepsilon = {spent[0]!r}\ndelta = {spent[1]!r}\n\n"


def _universe(known: Draft, types: Mapping[str, Column], notes: Mapping[str, str]) -> str:
    """Return the columns of the file: declared ones with the notes of the draft, and the others as comments."""
    from hedgerow.universe.files import to_mapping, to_toml

    parts = [
        "".join(f"# {line}\n" for line in textwrap.wrap(notes.get(name, ""), 110))
        + to_toml(to_mapping(hr.Universe({name: attribute})), "universe")
        for name, attribute in known.items()
        if attribute is not None
    ]
    undeclared = []
    for name, attribute in known.items():
        if attribute is None:
            kind = str(types[name].kind).replace("time", "date")
            undeclared.append(f"# {to_toml({name: {}}, 'universe').strip()}\n{HINTS.get(kind, LABELS)}")
    return "\n".join([*parts, *([TO_DECLARE + "\n".join(undeclared)] if undeclared else [])])


def _print_draft(
    screen: Console, out: Path, known: Draft, notes: Mapping[str, str], whole: Budget | None, spent: tuple[float, float]
) -> None:
    """Print the drafted columns, the cost and the next steps."""
    lines = [(name, *(("not declared", None) if a is None else (_kind(a), a.size))) for name, a in known.items()]
    screen.print(table(("column", "what it may be", "cells"), lines))
    for name, note in notes.items():
        screen.print(f"{name}: {note}.", markup=False)
    open_ones = [name for name, attribute in known.items() if attribute is None]
    cost = (
        "No row was read, nothing was spent."
        if spent == (0.0, 0.0)
        else f"Spent ε = {spent[0]:g}, δ = {spent[1]:g} of the budget."
    )
    screen.print(f"Wrote {out}. {cost}")
    todo = []
    if open_ones:
        todo.append(
            f"declare {', '.join(open_ones[:6])}{' …' if len(open_ones) > 6 else ''} (or draft them with --budget ε δ)"
        )
    if whole is None:
        todo.append("declare [budget]")
    screen.print("Next: read it, " + "".join(f"{each}, " for each in todo) + "then `hedgerow open`.")


def _kind(attribute: Attribute) -> str:
    """Describe an attribute by its kind and some labels."""
    labels = attribute.labels
    some = labels if attribute.size <= 4 else [*labels[:2], "…", labels[-1]]
    return f"{type(attribute).__name__}: {', '.join(map(str, some))}"


def open_(
    place: Place = DEFAULT,
    analyst: Annotated[
        str, typer.Option("--analyst", "--who", help="Analyst on whose behalf later charges of this call are made.")
    ] = "",
    yes: Yes = False,
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Open the session: once, for most of the budget. Later calls show its state."""
    file = File(place)
    is_new = not is_open(file)
    if is_new:
        budget, reserve = file.budget, file.reserve
        _ = (file.universe, file.options, file.csv)  # faults of the file are reported before anybody confirms
        complain(
            f"Opening reads {file.source_shown} and spends up to {1 - reserve:.0%} of epsilon = {budget.epsilon:g}, "
            f"delta = {budget.delta:g} on a hypothesis, for good. The rest is kept for more precise answers. The cost "
            f"is noted in {file.ledger_shown}."
        )
        confirm("Open it?", yes)
    with session(file, analyst, seed, first=True) as opened:
        certificate = opened.certificate
        report = opened.report()
        head = str(first_ledger(opened).head)
        record = {
            "opened": "now" if is_new else "before",
            **account(opened),
            "facts": {**report.facts, "private": account(opened)["private"]},
            "draft": dict(zip(("epsilon", "delta"), file.draft, strict=True)),
            "certificate": None if certificate is None else str(certificate),
            "head": head,
        }
    show(record, as_json, lambda screen: _print_state(screen, record))


def append(
    source: Annotated[str, typer.Argument(help="Only the new rows: a CSV or Parquet file, or a database URL.")],
    block: Annotated[str, typer.Option(help="Name of the block.")],
    table_name: Annotated[str | None, typer.Option("--table", help="Name of the table in a database.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="ε of the block; by default that of the table.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ of the block; by default that of the table.")] = None,
    place: Place = DEFAULT,
    yes: Yes = False,
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Append new rows as a block with its own budget, and note it in the file. Nobody may be in two blocks."""
    file = File(place)
    require_open(file)
    given = {"name": block, "source": source, "table": table_name, "epsilon": epsilon, "delta": delta}
    written = {name: value for name, value in given.items() if value is not None}
    appended, known = file.block_arguments(written), [each["block"] for each in file.blocks]
    noted = _noted_block(file, written)
    if block in known:
        raise InvalidInput(f"block must be a new name. Found {block!r}, which {file.path.name} has. Choose another.")
    budget, reserve = appended.get("budget", file.budget), file.reserve
    complain(
        f"Appending reads {source} and spends up to {1 - reserve:.0%} of its own epsilon = {budget.epsilon:g}, delta = "
        f"{budget.delta:g} on a hypothesis, for good. Nobody in its rows may be in another block."
    )
    confirm("Append it?", yes)
    with session(file, seed=seed) as opened:
        rows = opened.append(**appended).blocks[block].rows
        record = {
            "block": block,
            "rows": rows,
            "blocks": list(opened.blocks),
            **account(opened),
            "head": str(first_ledger(opened).head),
        }
    # written after the ledger: if this is interrupted, the same command resumes and bills nothing twice
    replace_file(file.path, file.path.read_text(encoding="utf-8").rstrip() + noted)
    show(record, as_json, lambda screen: screen.print(f"Appended {block!r}, {rows:,.0f} rows. {spent_line(record)}"))


def _noted_block(file: File, block: Mapping[str, Any]) -> str:
    """Return the text that notes a block in the file.

    Refuse a block that the file cannot hold, before anything is spent.
    """
    marks = {name: quote_text(value) if isinstance(value, str) else repr(value) for name, value in block.items()}
    text = "\n".join(["", "", "[[blocks]]", *(f"{name} = {mark}" for name, mark in marks.items()), ""])
    with contextlib.suppress(ValueError):  # of what is no Unicode, too
        if tomllib.loads(text.encode().decode())["blocks"] == [block]:
            return text
    raise InvalidInput(
        f"The name and the source of a block must be texts that {file.path.name} can hold. Found characters that a "
        "TOML file cannot hold. Rename the block or its file."
    )


def _print_state(screen: Console, record: dict[str, Any]) -> None:
    """Print the state of the session."""
    known = record["facts"]
    rows = known.get("rows", known.get("rows_estimated"))
    draft = record["draft"]
    pairs = [
        ("rows", f"{rows:,.0f}{'' if 'rows' in known else ' (a private estimate)'}"),
        ("cells", f"{known['cells']:,}" if known["cells"] < 1e15 else f"{known['cells']:.3g}"),
        ("budget", spent_line(record)),
        *([("draft", f"ε = {draft['epsilon']:g}, δ = {draft['delta']:g} before that")] if draft["epsilon"] else []),
        ("certified", record["certificate"] or NONE),
        ("ledger's head", f"{record['head']}  (note it elsewhere: `hedgerow ledger verify --head` needs it)"),
    ]
    screen.print(facts(pairs))
