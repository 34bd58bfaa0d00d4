"""The command line: the demo, synthetic data from a file in one command, and the errata of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.errors import HedgerowError

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)


@app.command()
def demo(
    which: Annotated[
        str, typer.Argument(help="counts: questions about real people. holdout: the classic false discovery.")
    ] = "counts",
    folder: Annotated[Path, typer.Option(help="Where the picture is saved.")] = Path("hedgerow-demo"),
    epsilon: Annotated[float, typer.Option(help="The privacy budget ε.")] = 1.0,
    questions: Annotated[int, typer.Option(help="How many questions to ask.")] = 5000,
) -> None:
    """Ask thousands of questions about bundled real data under one budget; or of a test set that must stay one."""
    if which == "holdout":
        from hedgerow.demo import holdout

        holdout.run(folder, epsilon=epsilon, features=questions)
    elif which == "counts":
        from hedgerow.demo import run

        run(folder, epsilon=epsilon, how_many=questions)
    else:
        typer.echo(f"demo must be 'counts' or 'holdout'. Found {which!r}. Choose one.", err=True)
        raise typer.Exit(2)


@app.command("demo-convex")
def demo_convex(
    folder: Annotated[Path, typer.Option(help="Where the picture is saved.")] = Path("hedgerow-demo"),
    epsilon: Annotated[float, typer.Option(help="The privacy budget ε.")] = 1.0,
    models: Annotated[int, typer.Option(help="How many models to fit.")] = 1000,
) -> None:
    """Fit a thousand adaptively chosen regressions and classifiers on bundled real data under one budget."""
    from hedgerow.demo.convex import run

    run(folder, epsilon=epsilon, how_many=models)


@app.command()
def release(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet file of integer-coded columns.")],
    domain: Annotated[Path, typer.Argument(help='Its public domain: a JSON object {"column": size}.')],
    epsilon: Annotated[float, typer.Option(help="The privacy budget ε.")],
    delta: Annotated[float, typer.Option(help="The privacy budget δ.")],
    out: Annotated[Path, typer.Option(help="Where the synthetic records go (CSV).")] = Path("synthetic.csv"),
    rows: Annotated[int | None, typer.Option(help="How many; by default as many as the table has.")] = None,
    ways: Annotated[int, typer.Option(help="The release keeps all marginals of this many attributes.")] = 3,
) -> None:
    """Release synthetic records of a table: all of the budget, at once."""
    import hedgerow as hr

    try:
        released = hr.release(
            table,
            universe=hr.Universe.from_json(domain),
            budget=hr.Budget(epsilon, delta),
            workload=hr.marginals(ways),
        )
        released.synthetic(rows).to_csv(out, index=False)
    except HedgerowError as refused:
        typer.echo(str(refused), err=True)
        raise typer.Exit(2) from None
    typer.echo(f"wrote {out}")


@app.command()
def errata(
    name: Annotated[str | None, typer.Argument(help="One of them; all if left out.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the page of all of them.")] = False,
    page: Annotated[Path, typer.Option(help="Where the page goes.")] = Path("docs/errata.md"),
) -> None:
    """Show the errors of the papers: each demonstration fails on the printed formula and passes on ours."""
    from hedgerow.errata.report import report

    raise typer.Exit(report(name, page if write else None))
