"""The commands ``audit``, ``errata``, ``demo`` and ``release``, which need no configuration file."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import hedgerow as hr
from hedgerow.cli.file import is_same_file
from hedgerow.cli.output import FAILED, AsJson, Seed, require_table_file, show, write_table
from hedgerow.errors import InvalidInput

DEMOS = {"counts": 5000, "convex": 1000, "holdout": 5000}
"""Name of each demo, with its default number of questions, models or features."""


def _complete(incomplete: str, names: list[str]) -> list[str]:
    """Return the names that begin with the text typed so far."""
    return [name for name in names if name.startswith(incomplete)]


def audit(
    names: Annotated[list[str] | None, typer.Argument(help="Parts of the names to audit; all if left out.")] = None,
    share: Annotated[float, typer.Option(help="Share of the runs of a full audit, which takes nearly an hour.")] = 0.05,
    workers: Annotated[int, typer.Option(help="Number of processes.")] = 2,
    docs: Annotated[Path | None, typer.Option(help="Folder for audit.json and the page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Try to refute the privacy of every mechanism, and catch the broken ones of the gallery.

    The exit status is 1 if a claim fails.
    """
    from hedgerow.research.audit_cases.report import AuditOutcome, AuditResults, run_audits, write

    if not 0 < share <= 1:
        raise InvalidInput(f"--share must be above 0 and at most 1. Found {share:g}. Give a part of the runs.")
    findings = AuditResults(docs)
    if not names:
        findings.forget()
    with contextlib.redirect_stdout(sys.stderr if as_json else sys.stdout):  # the audit prints each row as it is done
        wrong = run_audits(findings, share, workers, lambda key: not names or any(text in key for text in names))
    ours, broken = findings.ours(), findings.on_broken()
    if not ours and not broken:
        raise InvalidInput(f"names must match something to audit. Found nothing like {names}. Leave the name out.")
    if docs is not None:
        write(docs, findings)
    record = {
        "faults": wrong,
        "share_of_runs": share,
        "ours": [
            {"mechanism": AuditOutcome.key(o.case), "claim": o.case.claim.epsilon, "found": o.evidence.found}
            for o in ours
        ],
        "broken": [{"mechanism": c.entry.name, "claim": c.entry.claim, "found": c.broken.found} for c in broken],
    }
    verdict = "\n".join(wrong) or f"{len(ours)} claims of ours hold, and {len(broken)} broken mechanisms are caught."
    show(record, as_json, lambda screen: screen.print(verdict))
    if wrong:
        raise typer.Exit(FAILED)


def _errata(incomplete: str) -> list[str]:
    """Complete the name of an erratum."""
    from hedgerow.research.errata import ERRATA

    return _complete(incomplete, [erratum.name for erratum in ERRATA])


def errata(
    name: Annotated[
        str | None, typer.Argument(help="Name of one erratum; all if left out.", autocompletion=_errata)
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the page of all errata.")] = False,
    page: Annotated[Path, typer.Option(help="File for the page.")] = Path("docs/errata.md"),
    as_json: AsJson = False,
) -> None:
    """Show the errors of the papers: each demonstration fails on the printed formula and passes on ours."""
    from hedgerow.research.errata.report import report

    raise typer.Exit(report(name, page if write else None, as_json=as_json))


def demo(
    which: Annotated[
        str,
        typer.Argument(
            help="counts: questions about real people. convex: regressions. holdout: the classic false discovery.",
            autocompletion=lambda incomplete: _complete(incomplete, list(DEMOS)),
        ),
    ] = "counts",
    folder: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("hedgerow-demo"),
    epsilon: Annotated[float, typer.Option(help="The privacy budget ε.")] = 1.0,
    questions: Annotated[int | None, typer.Option(help="Number of questions, models or features.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Only write the bundled table to this .csv or .parquet file.")
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the bundled table on this machine, with a tour in the browser.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask thousands of questions about bundled real data under one budget, or reuse one test set many times."""
    from rich.console import Console

    if which not in DEMOS:
        raise InvalidInput(f"demo must be one of {', '.join(map(repr, DEMOS))}. Found {which!r}. Choose one.")
    if serve:
        from hedgerow.cli.service import serve_demo

        serve_demo()
        return
    if table is not None:
        require_table_file(table)
        import pandas as pd

        from hedgerow.demo import path

        bundled = pd.read_parquet(path())
        write_table(bundled, table)
        record = {"table": str(table), "rows": len(bundled)}
        show(record, as_json, lambda screen: screen.print(f"Wrote {len(bundled):,} rows to {table}."))
        return
    many = DEMOS[which] if questions is None else questions
    said = Console(file=io.StringIO(), width=160) if as_json else Console()
    picture = _run_demo(which, folder, epsilon, many, said)
    if as_json:
        lines = said.file.getvalue().splitlines()  # type: ignore[attr-defined]
        show({"demo": which, "said": lines, "picture": str(picture)}, True, lambda screen: None)


def _run_demo(which: str, folder: Path, epsilon: float, many: int, screen: Any) -> Path:
    """Run one demo and return the path of its picture."""
    if which == "holdout":
        from hedgerow.research.stories import false_discovery

        return false_discovery.run(folder, epsilon=epsilon, features=many, console=screen)
    if which == "convex":
        from hedgerow.research.stories import many_models

        return many_models.run(folder, epsilon=epsilon, how_many=many, console=screen)
    from hedgerow.demo import run

    return run(folder, epsilon=epsilon, how_many=many, console=screen)


def release(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet file of integer-coded columns.")],
    domain: Annotated[Path, typer.Argument(help='Its public domain: a JSON object {"column": size}.')],
    epsilon: Annotated[float, typer.Option(help="The privacy budget ε.")],
    delta: Annotated[float, typer.Option(help="The privacy budget δ.")],
    out: Annotated[Path, typer.Option(help="File for the synthetic records (.csv or .parquet).")] = Path(
        "synthetic.csv"
    ),
    rows: Annotated[int | None, typer.Option(help="Number of records; by default as many as the table has.")] = None,
    ways: Annotated[int, typer.Option(help="Preserve all marginals of this many attributes.")] = 3,
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Release synthetic records of a coded table: a whole budget at once, without a ledger. Each call spends again."""
    require_table_file(out)
    if is_same_file(out, table) or is_same_file(out, domain):
        raise InvalidInput(f"--out must be a file of its own. Found {str(out)!r}, which is read. Name another.")
    released = hr.release(
        table,
        universe=hr.Universe.from_json(domain),
        budget=hr.Budget(epsilon, delta),
        workload=hr.marginals(ways),
        seed=seed,
    )
    records = released.synthetic(rows)
    write_table(records, out)
    record = {"out": str(out), "rows": len(records), "epsilon": epsilon, "delta": delta, "private": released.private}
    show(record, as_json, lambda screen: screen.print(f"Wrote {len(records):,} synthetic records to {out}."))
