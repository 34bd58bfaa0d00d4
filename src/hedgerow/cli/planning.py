"""The command ``plan``: predict what the budget buys before any of it is spent. No row is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import hedgerow as hr
from hedgerow._json import parse
from hedgerow.cli.file import DEFAULT, File, Place, workload_in
from hedgerow.cli.output import AsJson, show, table
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console


def plan(
    rows: Annotated[int | None, typer.Option(help="Number of rows of the table.")] = None,
    accuracy: Annotated[float | None, typer.Option(help="Wanted error, as a fraction of the rows.")] = None,
    queries: Annotated[int | None, typer.Option(help="Number of questions; by default that of the file.")] = None,
    beta: Annotated[float | None, typer.Option(help="Probability that any answer errs by more than stated.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="ε instead of the file's; the rest of [budget] still applies.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="δ instead of the file's.")] = None,
    solve_for: Annotated[
        str | None,
        typer.Option(help="Find rows, accuracy, queries, beta, epsilon or delta from all others."),
    ] = None,
    workload: Annotated[str | None, typer.Option(help="Workload, such as 'marginals(2)'.")] = None,
    public: Annotated[
        Path | None, typer.Option(help="Public rows that resemble the table: a .csv or .parquet file.")
    ] = None,
    simulate: Annotated[bool, typer.Option(help="Simulate the practical profile on made-up or public rows.")] = True,
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Recommend a mechanism, a number of rows and an error before anything is spent. No table is read."""
    file = File(place)
    options = file.options
    if epsilon is not None and delta is not None:
        budget = file.budget_with(epsilon, delta)
    elif epsilon is None and delta is None:
        budget = file.budget
    else:
        raise InvalidInput("--epsilon and --delta must come together. Found one. Give both, or neither.")
    made = hr.plan(
        universe=file.universe, budget=budget, rows=rows, accuracy=accuracy,
        queries=options.get("queries", 100_000) if queries is None else queries,
        beta=options.get("beta", 0.05) if beta is None else beta,
        workload=options.get("workload") if workload is None else workload_in(workload),
        public=None if public is None else _rows(public), simulate=simulate,
        solve_for=solve_for,  # type: ignore[arg-type]  # checked there
    )  # fmt: skip

    def tell(screen: Console) -> None:
        screen.print(table(made.columns, made.lines))
        for said in (made.verdict, made.sentence, made.limit, made.population):
            if said:
                screen.print(said)

    show(parse(made.json), as_json, tell)


def _rows(path: Path) -> object:
    """Read the public rows."""
    import pandas as pd

    if path.suffix not in (".csv", ".parquet") or not path.exists():
        raise InvalidInput(f"--public must be a .csv or .parquet file. Found {path.name!r}. Check it.")
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
