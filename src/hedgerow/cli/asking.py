"""``ask``, ``sql``, ``fit`` and ``synth``: what a session answers, once it is open."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hedgerow as hr
from hedgerow.cli.desk import account, session, spent_line
from hedgerow.cli.file import DEFAULT, File, Place
from hedgerow.cli.output import AsJson, Seed, complain, require_table_file, show, table, working, written
from hedgerow.errors import BudgetExceeded, InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from hedgerow.answer import Answer
    from hedgerow.questions import text
    from hedgerow.questions.attributes import Attribute
    from hedgerow.questions.counts import Query
    from hedgerow.questions.universe import Universe
    from hedgerow.session import Session
    from hedgerow.sql.result import Result

Who = Annotated[str, typer.Option(help="On whose behalf: for caps, and for who spent what.")]
Over = Annotated[
    list[str] | None, typer.Option("--over", help="About one block; given twice, about all from one to the other.")
]
From = Annotated[Path | None, typer.Option("--from", help="A file of them, - for stdin.")]


def _also() -> text.Names:
    """Return what may be asked besides ``questions``: convex losses of the package's own."""
    return {
        "minimize": hr.minimize,
        **{f"losses.{name}": getattr(hr.losses, name) for name in hr.losses.__all__ if name not in ("Custom", "Loss")},
        **{kind.__name__: kind for kind in (hr.L2Ball, hr.L1Ball, hr.Box, hr.Simplex, hr.Unconstrained)},
    }


def ask(
    questions: Annotated[
        list[str] | None, typer.Argument(help="""As in Python: 'count(smoker=True, age=(40, 65))'; or JSON.""")
    ] = None,
    source: From = None,
    within: Annotated[float | None, typer.Option(help="Pay, if needed, for an error of at most this.")] = None,
    price: Annotated[bool, typer.Option("--price", help="With --within: only say what it would cost.")] = False,
    scale: Annotated[str, typer.Option(help="fraction, or rows.")] = "fraction",
    resolution: Annotated[str, typer.Option(help="values, or bins: about the coded table.")] = "values",
    over: Over = None,
    place: Place = DEFAULT,
    who: Who = "",
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Ask questions. Free unless --within is given, or a guard is on; each answer says what it cost."""
    file = File(place)
    asked = [_question(each) for each in [*(questions or ()), *_lines(source, file)]]
    if not asked:
        raise InvalidInput("There must be a question. Found none. For example: hedgerow ask 'count(smoker=True)'.")
    if price and within is None:
        raise InvalidInput("--price must come with --within. Found none. Say how good the answers must be.")
    refused: BudgetExceeded | None = None
    answers: list[Answer] = []
    with session(file, who, seed) as whole:
        opened = _about(whole, over)
        options: Any = {"scale": scale, "resolution": resolution}
        if price:
            costs = [opened.price(query, within=within or 0.0, resolution=options["resolution"]) for query in asked]
            record = {**account(opened), "prices": costs}
            show(record, as_json, lambda screen: _prices(screen, asked, record))
            return
        from hedgerow.questions.counts import OverTime
        from hedgerow.report import record_of

        if within is None and not any(isinstance(query, OverTime) for query in asked):
            answers = opened.ask_all(asked, **options)
        else:
            for query in asked:
                try:
                    answers.append(opened.ask(query, within=within, **options))
                except BudgetExceeded as too_much:  # what was paid for before is shown
                    refused = too_much
                    break
        record = {**account(opened), "answers": [record_of(answer) for answer in answers]}
    if answers or refused is None:
        show(record, as_json, lambda screen: _answers(screen, answers, record))
    if refused is not None:
        raise refused


def _question(given: str) -> Query:
    """One in words as in Python, or in its JSON form."""
    if given.lstrip().startswith("{"):
        asked: Query = hr.wire.loads(given, hr.Query)
        return asked
    from hedgerow.questions import text

    return text.question(given, _also())


def _lines(source: Path | None, file: File) -> list[str]:
    """A question a line; blank ones and what begins with # are none."""
    lines = (line.strip() for line in _read(source, file).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _read(source: Path | None, file: File) -> str:
    if source is None:
        return ""
    # a mistake in a question is quoted, and so would be a row
    if {".csv", ".tsv", ".parquet"} & {suffix.lower() for suffix in source.suffixes} or file.is_own(source):
        raise InvalidInput(
            f"--from must be a file of questions. Found a table, {source.name!r}. Write them into a .txt or .sql file."
        )
    try:
        return sys.stdin.read() if str(source) == "-" else source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"--from must be a file of UTF-8 text. Found other bytes in {source}. Convert it.") from None


def _answers(screen: Console, answers: list[Answer], record: dict[str, Any]) -> None:
    import numpy as np

    single = [answer for answer in answers if np.ndim(answer.value) == 0]
    if single:
        rows: list[tuple[Any, ...]] = [
            (repr(a.query), float(a.value), _bar(a.error), _bar(a.typical), _bar(a.resolution) if np.any(a.resolution) else "", a.source, _cost(a))
            for a in single
        ]  # fmt: skip
        columns = ["question", "value", "guaranteed", "typical", "of it bins", "from", "cost"]
        if not any(row[4] for row in rows):
            columns.pop(4)
            rows = [(*row[:4], *row[5:]) for row in rows]
        screen.print(table(columns, rows))
    for answer in answers:
        if np.ndim(answer.value):
            screen.print(str(answer), soft_wrap=True)
    screen.print(spent_line(record))


def _prices(screen: Console, asked: list[Query], record: dict[str, Any]) -> None:
    rows = [
        (repr(query), "free" if not cost else f"{cost:.3g}", f"{cost / record['total']:.2%}")
        for query, cost in zip(asked, record["prices"], strict=True)
    ]
    screen.print(table(("question", record["currency"], "of the budget"), rows))
    screen.print(spent_line(record))


def _bar(found: Any) -> str:
    import numpy as np

    return "unknown" if found is None else f"± {float(np.max(found)):.4g}"


def _cost(answer: Answer) -> str:
    return f"{answer.cost:.3g}" if answer.cost else "free"


def _about(opened: Session, over: list[str] | None) -> Session:
    if over and len(over) > 2:
        raise InvalidInput(
            f"--over must be given once or twice. Found {len(over)} of them. Name the first and the last block."
        )
    return opened.over(*over) if over else opened


def sql(
    statement: Annotated[list[str] | None, typer.Argument(help="SELECT … FROM data …; several with ; between.")] = None,
    source: From = None,
    out: Annotated[Path | None, typer.Option(help="Write the rows to a .csv or .parquet file (one statement).")] = None,
    over: Over = None,
    place: Place = DEFAULT,
    who: Who = "",
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Ask in SQL. From stdin where nothing else is given: each aggregate comes with its errors, counts in rows."""
    require_table_file(out)
    if not statement and source is None:
        source = Path("-")
    file = File(place)
    from hedgerow.sql.syntax import statements

    asked = [each for given in [*(statement or ()), _read(source, file)] for each in statements(given)]
    if not asked:
        raise InvalidInput("There must be a statement. Found none. For example: SELECT count(*) FROM data.")
    file.require_other(out)
    if out is not None and len(asked) != 1:
        raise InvalidInput(f"--out must be of one statement. Found {len(asked)}. Ask them one by one.")
    with session(file, who, seed) as whole:
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
        written(results[0].frame, out)
        record["out"] = str(out)
    show(record, as_json, lambda screen: _results(screen, results, record))


def _results(screen: Console, results: list[Result], record: dict[str, Any]) -> None:
    for result in results:
        rows = [
            [part for cell, is_answer in zip(row, result.is_answer, strict=True) for part in (_cell(cell) if is_answer else (cell,))]
            for row in result.rows
        ]  # fmt: skip
        columns = [
            column
            for name, is_answer in zip(result.names, result.is_answer, strict=True)
            for column in ((name, "guaranteed") if is_answer else (name,))
        ]
        screen.print(table(columns, rows))
    if "out" in record:
        screen.print(f"Wrote {record['out']}.")
    screen.print(spent_line(record))


def _cell(cell: Any) -> tuple[Any, str]:
    if cell is None:
        return None, ""
    if isinstance(cell, int | float):
        return cell, ""
    return float(cell.value), _bar(cell.error)


def _columns(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """The declared columns, for the shell to complete."""
    try:
        found = File((getattr(ctx, "params", None) or {}).get("place") or DEFAULT).universe.names
    except Exception:
        return []
    return [name for name in found if name.startswith(incomplete)]


MODELS = {  # names of losses, which are loaded when one is fitted
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
    model: Annotated[str | None, typer.Option(help=f"{', '.join(MODELS)}; by default what suits the target.")] = None,
    radius: Annotated[float, typer.Option(help="The largest norm of the coefficients.")] = 5.0,
    quantile: Annotated[float, typer.Option(help="Of the quantile model.")] = 0.5,
    where: Annotated[str | None, typer.Option(help="Only among these: 'count(age=(40, 65))'.")] = None,
    place: Place = DEFAULT,
    who: Who = "",
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Fit a regression or a classifier: from the hypothesis, so it is as free as any question."""
    if model is not None and model not in MODELS:
        raise InvalidInput(f"--model must be one of {', '.join(MODELS)}. Found {model!r}. Choose one.")
    file = File(place)
    from hedgerow.questions import text

    chosen = model or _suited(file.universe, target)
    about: dict[str, Any] = {
        "target": target,
        "features": features,
        "where": None if where is None else text.question(where),
    }
    if chosen == "quantile":
        about["quantile"] = quantile
    loss = getattr(hr.losses, MODELS[chosen])(**about)
    risk = loss.on(file.universe)
    with session(file, who, seed) as opened, working("fitting"):
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
            "excess_risk": answer.error,
            "source": answer.source,
            "cost": answer.cost,
        }  # fmt: skip
    rows = [(name, *map(float, row)) for name, row in zip(names, theta, strict=True)]

    def tell(screen: Console) -> None:
        screen.print(table((f"{chosen} model of {target}", *classes), rows))
        bound = "not bounded" if answer.error is None else f"at most {float(answer.error):.4g}"
        screen.print("Numbers are scaled to [−1, 1] by their declared ends, flags are 0 or 1.")
        screen.print(f"Excess risk on the table: {bound} ({answer.source}, {_cost(answer)}).")
        screen.print(spent_line(record))

    show(record, as_json, tell)


def _suited(universe: Universe, target: str) -> str:
    declared: Attribute = universe[target]
    if declared.size == 2 and (isinstance(declared, hr.Flag) or declared.values is None):
        return "logistic"
    return "linear" if declared.values is not None and declared.ordered else "multinomial"


def synth(
    rows: Annotated[int | None, typer.Option(help="How many; by default as many as the table has.")] = None,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet file; by default CSV to stdout.")] = None,
    resolution: Annotated[str, typer.Option(help="values, or bins: representatives of bins.")] = "values",
    place: Place = DEFAULT,
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Draw synthetic records from the hypothesis. Free, as often as you like."""
    require_table_file(out)
    options: Any = {"resolution": resolution}
    file = File(place)
    file.require_other(out)
    with session(file, seed=seed) as opened, working("drawing records"):
        records = opened.synthetic(rows, **options)
        record = {**account(opened), "rows": len(records), "certificate": records.attrs.get("certificate")}
    if out is not None:
        with working("writing them"):
            written(records, out)
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
