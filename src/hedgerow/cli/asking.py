"""The commands ``ask``, ``sql``, ``fit`` and ``synth``, which an open session answers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hedgerow as hr
from hedgerow._numbers import few_digits
from hedgerow.cli.desk import account, session, spent_line
from hedgerow.cli.file import DEFAULT, File, Place
from hedgerow.cli.output import AsJson, Seed, complain, require_table_file, show, show_progress, table, write_table
from hedgerow.cli.published_file import PublishedFile, file_at
from hedgerow.errors import BudgetExceeded, InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from hedgerow.answer import Answer
    from hedgerow.query import parse
    from hedgerow.query.counts import Query
    from hedgerow.session import Session
    from hedgerow.sql.result import SqlResult
    from hedgerow.universe.attributes import Attribute
    from hedgerow.universe.universe import Universe

AnalystName = Annotated[
    str,
    typer.Option("--analyst", "--who", help="Analyst on whose behalf to ask, for caps and for the record of spending."),
]
Over = Annotated[
    list[str] | None,
    typer.Option("--over", help="Ask about this block; given twice, about all blocks from first to last."),
]
From = Annotated[Path | None, typer.Option("--from", help="File to read them from; - for stdin.")]


def _also() -> parse.Names:
    """Return the names that a question may use besides ``questions``: the package's convex losses and sets."""
    return {
        "minimize": hr.minimize,
        **{f"losses.{name}": getattr(hr.losses, name) for name in hr.losses.__all__ if name not in ("Custom", "Loss")},
        **{kind.__name__: kind for kind in (hr.L2Ball, hr.L1Ball, hr.Box, hr.Simplex, hr.Unconstrained)},
    }


def ask(
    questions: Annotated[
        list[str] | None,
        typer.Argument(help="""Questions as in Python, 'count(smoker=True, age=(40, 65))', or JSON."""),
    ] = None,
    source: From = None,
    within: Annotated[float | None, typer.Option(help="Pay, if necessary, for an error of at most this.")] = None,
    price: Annotated[bool, typer.Option("--price", help="With --within: only print the cost.")] = False,
    scale: Annotated[str, typer.Option(help="Scale of counts: fraction or rows.")] = "fraction",
    resolution: Annotated[str, typer.Option(help="Ask about values, or about the bins of the coded table.")] = "values",
    over: Over = None,
    place: Place = DEFAULT,
    analyst: AnalystName = "",
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Ask questions. They are free unless --within is given or a guard is on. Each answer shows its cost."""
    file = file_at(place)
    asked = [_question(each) for each in [*(questions or ()), *_lines(source, file)]]
    if not asked:
        raise InvalidInput("ask must have a question. Found none. For example: hedgerow ask 'count(smoker=True)'.")
    if price and within is None:
        raise InvalidInput("--price must come with --within. Found none. Give the error that the answers may have.")
    refused: BudgetExceeded | None = None
    answers: list[Answer] = []
    free = within is None and not any(query.is_asked_alone for query in asked)
    with session(file, analyst, seed, use="ask" if free else "charge") as whole:
        opened = _about(whole, over)
        options: Any = {"scale": scale, "resolution": resolution}
        if price:
            costs = [opened.price(query, within=within or 0.0, resolution=options["resolution"]) for query in asked]
            record = {**account(opened), "prices": costs}
            show(record, as_json, lambda screen: _prices(screen, asked, record))
            return
        from hedgerow.report import record_of

        if free:
            answers = opened.ask_all(asked, **options)
        else:
            for query in asked:
                try:
                    answers.append(opened.ask(query, within=within, **options))
                except BudgetExceeded as too_much:  # answers paid for before are still shown
                    refused = too_much
                    break
        record = {**account(opened), "answers": [record_of(answer) for answer in answers]}
    if answers or refused is None:
        show(record, as_json, lambda screen: _answers(screen, answers, record))
    if refused is not None:
        raise refused


def _question(given: str) -> Query:
    """Parse one question, written as in Python or as JSON."""
    if given.lstrip().startswith("{"):
        asked: Query = hr.wire.loads(given, hr.Query)
        return asked
    from hedgerow.query import parse

    return parse.question(given, _also())


def _lines(source: Path | None, file: File | PublishedFile) -> list[str]:
    """Return the questions of a file, one per line, without blank lines and comments (#)."""
    lines = (line.strip() for line in _read_questions(source, file).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _read_questions(source: Path | None, file: File | PublishedFile) -> str:
    """Read a file of questions; refuse the table itself."""
    if source is None:
        return ""
    # an error message quotes a faulty question, so a table would leak a row
    if {".csv", ".tsv", ".parquet"} & {suffix.lower() for suffix in source.suffixes} or file.is_own(source):
        raise InvalidInput(
            f"--from must be a file of questions. Found a table, {source.name!r}. Write the questions into a .txt or "
            ".sql file."
        )
    try:
        return sys.stdin.read() if str(source) == "-" else source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"--from must be a file of UTF-8 text. Found other bytes in {source}. Convert it.") from None


def _answers(screen: Console, answers: list[Answer], record: dict[str, Any]) -> None:
    """Print answers: single numbers in one table, then each table of its own."""
    import numpy as np

    single = [answer for answer in answers if np.ndim(answer.value) == 0]
    if single:
        lines: list[tuple[Any, ...]] = [
            (repr(a.query), float(a.value), _bar(a.error), _bar(a.typical), _bar(a.resolution) if np.any(a.resolution) else "", a.source, _cost(a))
            for a in single
        ]  # fmt: skip
        columns = ["question", "value", "guaranteed", "typical", "from bins", "source", "cost"]
        if not any(row[4] for row in lines):
            columns.pop(4)
            lines = [(*row[:4], *row[5:]) for row in lines]
        screen.print(table(columns, lines))
    for answer in answers:
        if np.ndim(answer.value):
            screen.print(str(answer), soft_wrap=True)
    screen.print(spent_line(record))


def _prices(screen: Console, asked: list[Query], record: dict[str, Any]) -> None:
    """Print the price of each question."""
    lines = [
        (repr(query), "free" if not cost else f"{cost:.3g}", f"{cost / record['total']:.2%}")
        for query, cost in zip(asked, record["prices"], strict=True)
    ]
    screen.print(table(("question", record["currency"], "of the budget"), lines))
    screen.print(spent_line(record))


def _bar(found: Any) -> str:
    """Format an error bar."""
    import numpy as np

    return "unknown" if found is None else f"± {few_digits(float(np.max(found)))}"


def _cost(answer: Answer) -> str:
    return f"{answer.cost:.3g}" if answer.cost else "free"


def _about(opened: Session, over: list[str] | None) -> Session:
    """Return the session, or its view of the blocks that --over names."""
    if over and len(over) > 2:
        raise InvalidInput(
            f"--over must be given once or twice. Found it {len(over)} times. Name the first and the last block."
        )
    return opened.select_blocks(*over) if over else opened


def sql(
    statement: Annotated[list[str] | None, typer.Argument(help="SELECT … FROM data …; separate several by ;.")] = None,
    source: From = None,
    out: Annotated[Path | None, typer.Option(help="Write the rows to a .csv or .parquet file (one statement).")] = None,
    over: Over = None,
    place: Place = DEFAULT,
    analyst: AnalystName = "",
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Ask in SQL, read from stdin if no statement is given. Aggregates come with their errors, counts in rows."""
    require_table_file(out)
    if not statement and source is None:
        source = Path("-")
    file = file_at(place)
    from hedgerow.sql.syntax import statements

    asked = [each for given in [*(statement or ()), _read_questions(source, file)] for each in statements(given)]
    if not asked:
        raise InvalidInput("There must be a statement. Found none. For example: SELECT count(*) FROM data.")
    file.require_other(out)
    if out is not None and len(asked) != 1:
        raise InvalidInput(f"--out must come with one statement. Found {len(asked)}. Ask them one by one.")
    with session(file, analyst, seed, use="ask") as whole:
        opened = _about(whole, over)
        results = [opened.sql_result(each) for each in asked]
        record = {
            **account(opened),
            "results": [
                {"statement": each, "columns": result.columns, "rows": result.records}
                for each, result in zip(asked, results, strict=True)
            ],
        }
    if out is not None:
        write_table(results[0].frame, out)
        record["out"] = str(out)
    show(record, as_json, lambda screen: _results(screen, results, record))


def _results(screen: Console, results: list[SqlResult], record: dict[str, Any]) -> None:
    """Print the rows of each statement."""
    for result in results:
        lines = [
            [part for cell, is_answer in zip(row, result.is_answer, strict=True) for part in (_cell(cell) if is_answer else (cell,))]
            for row in result.rows
        ]  # fmt: skip
        columns = [
            column
            for name, is_answer in zip(result.names, result.is_answer, strict=True)
            for column in ((name, "guaranteed") if is_answer else (name,))
        ]
        screen.print(table(columns, lines))
    if "out" in record:
        screen.print(f"Wrote {record['out']}.")
    screen.print(spent_line(record))


def _cell(cell: Any) -> tuple[Any, str]:
    """Return the value and the error bar of a cell."""
    if cell is None:
        return None, ""
    if isinstance(cell, int | float):
        return cell, ""
    return float(cell.value), _bar(cell.error)


def _columns(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """Return declared columns that begin with the text typed so far, for shell completion."""
    try:
        found = file_at((getattr(ctx, "params", None) or {}).get("place") or DEFAULT).universe.names
    except Exception:
        return []
    return [name for name in found if name.startswith(incomplete)]


MODELS = {  # name of the loss of each model; the losses are loaded only when a model is fitted
    "linear": "Squared",
    "logistic": "Logistic",
    "multinomial": "MultinomialLogistic",
    "svm": "Hinge",
    "huber": "Huber",
    "quantile": "Pinball",
    "poisson": "Poisson",
}


def fit(
    target: Annotated[str, typer.Argument(help="The column to predict.", autocompletion=_columns)],
    features: Annotated[list[str], typer.Argument(help="The columns to predict it from.", autocompletion=_columns)],
    model: Annotated[str | None, typer.Option(help=f"{', '.join(MODELS)}; by default chosen by the target.")] = None,
    radius: Annotated[float, typer.Option(help="Largest norm of the coefficients.")] = 5.0,
    quantile: Annotated[float, typer.Option(help="Quantile of the quantile model.")] = 0.5,
    where: Annotated[str | None, typer.Option(help="Use only these records: 'count(age=(40, 65))'.")] = None,
    place: Place = DEFAULT,
    analyst: AnalystName = "",
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Fit a regression or a classifier from the hypothesis. It is as free as any other question."""
    if model is not None and model not in MODELS:
        raise InvalidInput(f"--model must be one of {', '.join(MODELS)}. Found {model!r}. Choose one.")
    file = file_at(place)
    from hedgerow.query import parse

    chosen = model or _default_model(file.universe, target)
    about: dict[str, Any] = {
        "target": target,
        "features": features,
        "where": None if where is None else parse.question(where),
    }
    if chosen == "quantile":
        about["quantile"] = quantile
    loss = getattr(hr.losses, MODELS[chosen])(**about)
    risk = loss.on(file.universe)
    with session(file, analyst, seed, use="ask") as opened, show_progress("fitting"):
        answer = opened.ask(hr.minimize(loss, over=hr.L2Ball(radius)))
        names = risk.features.feature_names
        import numpy as np

        theta = np.asarray(answer.value).reshape(len(names), -1)
        classes = [str(label) for label in file.universe[target].labels] if theta.shape[1] > 1 else ["coefficient"]
        record = {
            **account(opened),
            "model": chosen,
            "target": target,
            "coefficients": {n: dict(zip(classes, row.tolist(), strict=True)) if len(classes) > 1 else float(row[0]) for n, row in zip(names, theta, strict=True)},
            "errors": np.ravel(errors).tolist() if (errors := answer.coefficient_errors) is not None else None,
            "basis": answer.coefficient_basis,
            "simulation": answer.simulation,
            "excess_risk": answer.error,
            "source": answer.source,
            "cost": answer.cost,
        }  # fmt: skip
    lines = [(name, *map(float, row)) for name, row in zip(names, theta, strict=True)]
    heads = (f"{chosen} model of {target}", *classes)
    if len(classes) == 1 and record["errors"] is not None:
        lines = [(*row, each) for row, each in zip(lines, record["errors"], strict=True)]
        heads = (*heads, f"± ({answer.coefficient_basis})")

    def tell(screen: Console) -> None:
        """Print the coefficients and the sentences that explain them."""
        screen.print(table(heads, lines))
        bound = "not bounded" if answer.error is None else f"at most {float(answer.error):.4g}"
        screen.print("Numbers are scaled to [−1, 1] by their declared ends, flags are 0 or 1.")
        for name, value in risk.features.references.items():
            screen.print(f"{name}: compared with {value}.")
        if answer.coefficient_basis == "bootstrap":
            screen.print(
                "± bootstrap: a 95 % interval of each coefficient for the released noise. It is not guaranteed."
            )
        if answer.simulation is not None:
            screen.print(
                f"Fitted on a sample of the hypothesis, which adds at most {answer.simulation:.4g} to the risk."
            )
        screen.print(f"Excess risk on the table: {bound} ({answer.source}, {_cost(answer)}).")
        screen.print(spent_line(record))

    show(record, as_json, tell)


def _default_model(universe: Universe, target: str) -> str:
    """Return the default model for a target."""
    declared: Attribute = universe[target]
    if declared.size == 2 and (declared.is_truth or declared.values is None):
        return "logistic"
    return "linear" if declared.values is not None and declared.ordered else "multinomial"


def synth(
    rows: Annotated[int | None, typer.Option(help="Number of records; by default as many as the table has.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the records, .csv or .parquet; by default CSV to stdout.")
    ] = None,
    resolution: Annotated[str, typer.Option(help="Draw values, or the representatives of bins.")] = "values",
    impossible: Annotated[
        list[str] | None, typer.Option(help="A count that no record can satisfy, as in ask. Repeat it.")
    ] = None,
    place: Place = DEFAULT,
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Draw synthetic records from the hypothesis. This is free, as often as you like."""
    require_table_file(out)
    options: Any = {"resolution": resolution, "impossible": [_question(each) for each in impossible or ()]}
    file = file_at(place)
    file.require_other(out)
    with session(file, seed=seed, use="read") as opened, show_progress("drawing records"):
        records = opened.synthetic(rows, **options)
        record = {**account(opened), "rows": len(records), "certificate": records.attrs.get("certificate")}
    if out is not None:
        with show_progress("writing them"):
            write_table(records, out)
        record["out"] = str(out)
        show(
            record,
            as_json,
            lambda screen: screen.print(f"Wrote {len(records):,} synthetic records to {out}. {spent_line(record)}"),
        )
    elif as_json:
        show({**record, "records": records.to_dict("records")}, True, lambda screen: None)
    else:
        if not record["private"]:
            complain(spent_line(record))
        records.to_csv(sys.stdout, index=False)
