"""Pages that ask: overview, exploring, comparing, SQL, synthetic records, history; and prices and purchases."""

from __future__ import annotations

import csv as csv_files
import io
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.responses import JSONResponse, RedirectResponse, Response

import hedgerow as hr
from hedgerow import serialize
from hedgerow._json import parse, write_spaced
from hedgerow.answer import Answer
from hedgerow.console import bars, completion, recipes, wording
from hedgerow.console.exploration import MEASURES, Exploration, numeric_columns
from hedgerow.console.page_request import PageRequest
from hedgerow.console.registering import may_register
from hedgerow.display import titles
from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import random_token
from hedgerow.query.counts import Query
from hedgerow.server.problems import Refusal
from hedgerow.universe.attributes import Attribute

LARGEST_CARD = 200  # a column with more values has no picture on the overview
MOST_CARDS = 60  # columns with a picture on one overview
TALL = 14  # an ordered column with more values is drawn as columns instead of lines
LISTED = 40  # values of a column that can be chosen one by one
PARTS = (1.25, 1.5, 2, 4)  # parts of the present error that are offered for sale
PREVIEW = 20  # synthetic records on a page
SHOWN = 5  # questions of one request in the history
LONGEST_ASKED = 2_000  # characters of a request that are on record
KINDS = {
    "ask": "question", "ask_by_text": "question", "ask_batch": "questions", "run_sql": "SQL", "fit": "model", "price": "price",
    "synthesize": "synthetic records", "plan": "plan",
}  # fmt: skip
AGAIN = ("ask", "ask_by_text", "ask_batch", "run_sql", "fit")
NUMBER = re.compile(r"[−-]?[\d,]+(\.\d+)?(e[−+-]?\d+)?|unknown|−?∞")
DECIMAL = re.compile(r"-?\d+\.\d+")
PLACE = re.compile(r"at line (\d+), column (\d+)")


async def start(asked: PageRequest) -> Response:
    """Redirect to the first dataset, or say that there is none."""
    names = (await asked.gateway.call("list_datasets"))["datasets"]
    if not names and may_register(asked):
        return RedirectResponse(asked.address_of("/register"), 303)
    if not names:
        return asked.page("nothing.html")
    asked.dataset = names[0]
    return RedirectResponse(asked.url("promise" if asked.visit.token.role == "auditor" else ""), 303)


async def overview(asked: PageRequest) -> Response:
    """Show every column, with a filter if bars were clicked; and the strongest associations."""
    universe, chosen = asked.universe, Exploration.read(asked.universe, asked.pairs)
    names = [name for name in universe.names if universe[name].size <= LARGEST_CARD][:MOST_CARDS]
    facts = await asked.call("describe_dataset")
    where = chosen.where
    summary = await asked.call("describe") if where is None else None
    queries = [hr.marginal(name) if where is None else hr.group_by(name).count(where) for name in names]
    found = await answers(asked, [*([] if where is None else [where]), *queries], "rows")
    matching = None if where is None else bars.panels(found.pop(0), "rows")[0].bars[0]
    cards = [_card(asked, chosen, name, answer, summary) for name, answer in zip(names, found, strict=True)]
    pairs = [
        {
            **pair,
            "href": asked.url("explore") + chosen.group_by(*pair["columns"]).address,
            "shown": wording.number(pair["difference"], "points", pair["error"]),
            "error_shown": wording.number(pair["error"], "points", pair["error"]),
        }
        for pair in (summary or {"associations": []})["associations"]
    ]
    without = [name for name in universe.names if name not in names]
    return asked.page(
        "overview.html", facts=facts, cards=cards, chips=_chips(asked, chosen, ""), matching=matching, pairs=pairs,
        chosen=chosen, without=[(name, asked.url("explore") + chosen.group_by(name).address) for name in without],
    )  # fmt: skip


def _card(asked: PageRequest, chosen: Exploration, name: str, answer: Answer, summary: Any) -> dict[str, Any]:
    """Return the contents of the card of one column: its bars, its statistics and the link that groups by it."""
    (panel,) = bars.panels(
        answer, "rows", lambda cell: asked.url("") + chosen.toggle(name, cell).address, chosen.filters.get(name, ())
    )
    has_facts = summary is not None and not asked.universe[name].is_truth  # a flag's bars show everything
    statistics, errors = (summary["columns"][name], summary["errors"][name]) if has_facts else ({}, {})
    shown = [
        (called, wording.number(statistics[key], "rows" if key == "missing" else "mean", errors.get(key)), errors.get(key))
        for called, key in (("mean", "mean"), ("median", "50%"), ("missing", "missing"))
        if statistics.get(key) is not None
    ]  # fmt: skip
    return {
        "name": name,
        "kind": kind_of(asked.universe[name]),
        "panel": panel,
        "is_tall": asked.universe[name].ordered and len(panel.bars) > TALL,
        "facts": shown,
        "href": asked.url("explore") + chosen.group_by(name).address,
    }


def kind_of(attribute: Attribute) -> str:
    """Return the kind of a column in a word."""
    return {
        "Integers": "whole numbers",
        "Range": "numbers, in bins",
        "Flag": "yes or no",
        "Categories": "categories",
    }.get(type(attribute).__name__, type(attribute).__name__.lower())


def _chips(asked: PageRequest, chosen: Exploration, page: str) -> list[dict[str, str]]:
    """Return the filters in words, each with the address without it."""
    return [
        {
            "text": titles.condition(hr.count({name: chosen.where.predicates[k][1]})),  # type: ignore[union-attr]
            "without": asked.url(page) + chosen.with_filter(name, ()).address,
        }
        for k, name in enumerate(chosen.filters)
    ]


async def explore(asked: PageRequest) -> Response:
    """Show one question, by up to three columns, with its error in words."""
    chosen = Exploration.read(asked.universe, asked.pairs)
    query = chosen.question()
    counts = chosen.counts()
    answer, *parts = await answers(asked, [query, *([] if counts is None else [counts])], chosen.scale)
    last = chosen.by[-1] if chosen.by else ""
    panels = bars.panels(
        answer, chosen.measure, lambda cell: asked.url("explore") + chosen.toggle(last, cell).address,
        chosen.filters.get(last, ()), titles.title(chosen.where) if chosen.where is not None else "all rows",
    )  # fmt: skip
    every = [bar for panel in panels for bar in panel.bars]
    return asked.page(
        "explore.html", chosen=chosen, panels=panels, every=every, wide=sum(bar.is_wide for bar in every),
        title=_title(chosen, query), chips=_chips(asked, chosen, "explore"), columns=_columns(asked, chosen),
        numbers=[(list(asked.universe.names).index(name), name) for name in numeric_columns(asked.universe)],
        measures=MEASURES, offer=offer_of(asked, query if counts is None else counts, (parts or [answer])[0], chosen.part_measure, of_parts=counts is not None),
        recipes=recipes.of_questions(asked, [repr(query)], chosen),
        is_tall=bool(last) and asked.universe[last].ordered and len(panels) == 1 and len(panels[0].bars) > TALL,
        question=repr(query),
    )  # fmt: skip


def _title(chosen: Exploration, query: Query) -> str:
    text = wording.visible(titles.sentence(query).rstrip("."))
    if chosen.measure not in ("share", "rows"):
        return text
    return f"{'Number' if chosen.measure == 'rows' else 'Share'} of {text[:1].lower()}{text[1:]}"


def _columns(asked: PageRequest, chosen: Exploration) -> list[dict[str, Any]]:
    """Return the columns as choices: for grouping, and for filtering by their cells."""
    found = []
    for k, name in enumerate(asked.universe.names):
        attribute, cells = asked.universe[name], chosen.filters.get(name, ())
        few = attribute.size <= LISTED
        found.append(
            {
                "number": k,
                "name": name,
                "size": attribute.size,
                "chosen": cells,
                "by": asked.url("explore") + chosen.group_by(name, *(by for by in chosen.by if by != name)).address,
                "cells": [
                    (label, asked.url("explore") + chosen.toggle(name, i).address, i in cells)
                    for i, label in enumerate(attribute.labels if few else ())
                ],
                "ends": [] if few else _ends(attribute),
            }
        )
    return found


def _ends(attribute: Attribute) -> list[tuple[int, Any]]:
    """Return up to a hundred cells at which a range may begin or end."""
    step = -(-attribute.size // 100)
    places = sorted({*range(0, attribute.size, step), attribute.size - 1})
    return [(i, attribute.labels[i]) for i in places]


async def compare(asked: PageRequest) -> Response:
    """Show the difference of two groups, its interval, and whether zero is excluded."""
    universe, given = asked.universe, dict(asked.pairs)
    names, numbers = list(universe.names), numeric_columns(universe)
    column = _name(names, given.get("column"), _first_category(universe))
    labels = list(universe[column].labels[:LISTED])
    a, b = (read_place(given.get(which), len(labels), default) for which, default in (("a", 0), ("b", len(labels) - 1)))
    targets = [(f"mean-{names.index(name)}", f"mean of {wording.short(name)}") for name in numbers if name != column]
    targets += [
        (f"share-{names.index(name)}-{i}", f"share with {wording.short(name)} = {wording.short(label)}")
        for name in names if name != column and universe[name].size <= LISTED
        for i, label in enumerate(universe[name].labels)
    ]  # fmt: skip
    if not targets or len(labels) < 2:
        raise InvalidInput("A comparison must have two groups and another column. Found fewer. Use Explore.")
    shares = [value for value, _ in targets if value.startswith("share")]
    target = given.get("target") if given.get("target") in dict(targets) else (shares or [targets[0][0]])[0]
    kind, number, *cell = str(target).split("-")
    groups = [hr.count({column: labels[k]}) for k in (a, b)]
    name, measure = names[int(number)], "mean" if kind == "mean" else "rate"
    if kind == "mean":
        parts: list[Query] = [hr.mean(name, where=group) for group in groups]
    else:
        parts = [hr.share(hr.count({name: universe[name].labels[int(cell[0])]}), where=group) for group in groups]
    query, counts = hr.difference(*parts), hr.marginal(column, name)
    found = await answers(asked, [*parts, query, counts], "fraction")
    lines = [
        bars.panels(answer, measure, whole=wording.short(labels[k]))[0].bars[0]
        for answer, k in zip(found, (a, b), strict=False)
    ]
    (panel,) = bars.panels(found[2], "points" if kind == "share" else "difference", whole="difference")
    return asked.page(
        "compare.html", names=list(enumerate(names)), column=names.index(column), labels=list(enumerate(labels)), a=a, b=b,
        targets=targets, target=target, lines=lines, bar=panel.bars[0], excludes=bool(found[2].excludes(0)),
        title=wording.visible(titles.sentence(query)), offer=offer_of(asked, counts, found[3], "share", of_parts=True), recipes=recipes.of_questions(asked, [repr(query)]),
        first=wording.short(labels[a]), second=wording.short(labels[b]), value=float(found[2].value), column_name=column,
        of=dict(targets)[str(target)],
    )  # fmt: skip


def _first_category(universe: Any) -> str:
    plain = [name for name in universe.names if not universe[name].ordered and universe[name].size > 1]
    return str((plain or list(universe.names))[0])


def _name(names: Sequence[str], given: str | None, default: str) -> str:
    place = read_place(given, len(names), -1)
    return default if place < 0 else names[place]


def read_place(given: str | None, size: int, default: int) -> int:
    return (
        int(given)
        if given and given.isascii() and given.isdecimal() and len(given) < 7 and int(given) < size
        else default
    )


# Asking


async def answers(asked: PageRequest, queries: Sequence[Query], scale: str) -> list[Answer]:
    """Ask free questions."""
    body = {"questions": [serialize.to_json(query) for query in queries], "scale": scale, "form": "exact"}
    found = (await asked.call("ask_batch", body=body))["answers"]
    return [serialize.from_json(record, Answer) for record in found]


def offer_of(
    asked: PageRequest, query: Query, answer: Answer, measure: str, *, of_parts: bool = False
) -> dict[str, Any] | None:
    """Return the errors that are offered for sale, as parts of the present one.

    ``of_parts``: the question is the table of counts that the answer of the page is made of.
    """
    ends = bars.Ends.of(answer, measure)
    rows = asked.application.service.datasets[asked.dataset].session.rows if measure == "rows" else 1.0
    half = (ends.high - ends.low) / 2 / rows
    widest = float(half[half == half].max(initial=0.0))
    if not 0 < widest < float("inf"):
        return None
    shown = measure if measure in ("mean", "median") else "points"
    return {
        "question": write_spaced(serialize.to_json(query)),
        "choices": [(widest / part, wording.number(widest / part, shown, widest / part)) for part in PARTS],
        "now": wording.number(widest, shown, widest),
        "measure": shown,
        "parts": wording.visible(titles.title(query)) if of_parts else "",
    }


async def price(asked: PageRequest) -> Response:
    """Show what a smaller error would cost. Nothing is spent."""
    body = {"question": parse(asked.form_field("question") or "null"), "within": _within(asked)}
    found = await asked.call("price", body=body)
    return asked.page(
        "price.html", price=found, question=asked.form_field("question"), within=body["within"], key=random_token(16),
        shown=wording.number(body["within"], asked.form_field("measure"), body["within"]), measure=asked.form_field("measure"),
        cost=wording.amount(found["cost"], found["currency"]),
        share=found["cost"] / asked.application.service.datasets[asked.dataset].session.budget.total,
    )  # fmt: skip


async def buy(asked: PageRequest) -> Response:
    """Buy a smaller error. A form that is sent twice is billed once."""
    body = {"question": parse(asked.form_field("question") or "null"), "within": _within(asked), "form": "exact"}
    found = await asked.call("ask", body=body, key=asked.form_field("key") or None)
    if "answer" not in found:
        return asked.page("waiting.html")
    answer = serialize.from_json(found["answer"], Answer)
    measure = "share" if asked.form_field("measure") == "points" else "mean"
    currency = asked.application.service.datasets[asked.dataset].session.budget.currency
    return asked.page(
        "bought.html", panels=bars.panels(answer, measure, whole=wording.short(titles.title(answer.query))),
        cost=wording.amount(answer.cost, currency), is_free=answer.cost == 0,
    )  # fmt: skip


def _within(asked: PageRequest) -> float:
    try:
        return float(asked.form_field("within"))
    except ValueError:
        raise InvalidInput(
            "The error must be a number. Found a text that is no number. Choose an error on the page."
        ) from None


async def csv(asked: PageRequest) -> Response:
    """Return a question's answer as CSV: a line for each cell, with both errors."""
    given = dict(asked.pairs)
    body = {"question": given.get("q", ""), "scale": given.get("scale", "fraction"), "form": "exact"}
    found = await asked.call("ask", body=body)
    frame = serialize.from_json(found["answer"], Answer).to_frame()
    headers = {"Content-Disposition": f'attachment; filename="{asked.dataset}-answer.csv"'}
    return Response(frame.to_csv(index=False), media_type="text/csv", headers=headers)


# SQL, synthetic records, history


async def sql(asked: PageRequest) -> Response:
    """Run a SELECT and show its rows."""
    statement = dict(asked.pairs).get("q", "")
    result, fault, place = None, "", None
    if statement.strip():
        try:
            result = await asked.call("run_sql", body={"statement": statement})
        except Refusal as refused:
            fault, found = refused.detail, PLACE.search(refused.detail)
            place = (int(found[1]), int(found[2])) if found else None
    first = asked.universe.names[0]
    example = f"SELECT {recipes.quote_name(_first_category(asked.universe) or first)}, count(*) FROM data GROUP BY 1"
    return asked.page(
        "sql.html", statement=statement or example, result=result, fault=fault, place=place,
        recipes=recipes.of_statement(asked, statement) if statement.strip() else [],
        table=[] if result is None else _with_sides([[_cell(value) for value in row] for row in result["rows"][:1_000]]),
    )  # fmt: skip


def _cell(value: Any) -> str:
    return (
        wording.number(value, "mean", abs(value) / 1000 or None)
        if isinstance(value, float)
        else wording.short("NULL" if value is None else value)
    )


def _with_sides(lines: Sequence[Sequence[str]]) -> list[list[tuple[str, bool]]]:
    """Return the cells of a table, each with True if its column has numbers alone, which stand to the right."""
    found = [all(NUMBER.fullmatch(cell) or cell == "NULL" for cell in column) for column in zip(*lines, strict=True)]
    return [list(zip(line, found, strict=True)) for line in lines]


async def words(asked: PageRequest) -> Response:
    """Return what the editor completes: columns with their values, functions and keywords."""
    columns = [
        {
            "name": wording.short(name),
            "quoted": recipes.quote_name(name),
            "kind": kind_of(asked.universe[name]),
            "values": [
                "'" + str(label).replace("'", "''") + "'"
                for label in asked.universe[name].labels[:LISTED]
                if isinstance(label, str) and len(label) <= wording.LONGEST
            ],
        }
        for name in asked.universe.names
    ]
    return JSONResponse({"columns": columns, "functions": completion.FUNCTIONS, "keywords": completion.KEYWORDS})


async def synthetic(asked: PageRequest) -> Response:
    """Show some synthetic records, and offer more for download."""
    response = await asked.gateway.fetch(
        "synthesize", dataset=asked.dataset, parameters={"rows": str(PREVIEW), "format": "csv"}
    )
    head, *found = csv_files.reader(io.StringIO(bytes(response.body).decode()))
    lines = [[f"{float(cell):.6g}" if DECIMAL.fullmatch(cell) else cell for cell in line] for line in found]
    return asked.page(
        "synthetic.html", head=head, lines=_with_sides(lines), most=asked.application.service.limits.records,
    )  # fmt: skip


async def records(asked: PageRequest) -> Response:
    """Return synthetic records as a file."""
    given = dict(asked.pairs)
    chosen = {"rows": given.get("rows", "1000"), "format": given.get("format", "csv")}
    return await asked.gateway.fetch("synthesize", dataset=asked.dataset, parameters=chosen)


async def history(asked: PageRequest) -> Response:
    """Show what the person asked."""
    before = dict(asked.pairs).get("before")
    parameters = {"most": "100", **({"before": before} if before else {})}
    found = (await asked.call("read_history", parameters=parameters))["requests"]
    lines = [_history_line(asked, entry) for entry in found if entry["asked"] and entry["endpoint"] in KINDS]
    return asked.page("history.html", lines=lines, before=found[-1]["number"] if len(found) == 100 else None)


def _history_line(asked: PageRequest, entry: dict[str, Any]) -> dict[str, Any]:
    """Return a request with its questions, and with the code that repeats it if the whole of it is on record."""
    endpoint, text = entry["endpoint"], entry["asked"]
    head, *rest = text.splitlines() if endpoint == "ask_batch" else ("", text)
    questions = rest[: len(rest) if len(text) < LONGEST_ASKED else -1]
    is_whole = endpoint in AGAIN and len(text) < LONGEST_ASKED and (not head or head.startswith(f"{len(rest)} "))
    return {
        **entry,
        "kind": "question" if endpoint == "ask_batch" and len(questions) == 1 else KINDS[endpoint],
        "questions": questions[:SHOWN],
        "more": head if head and (len(questions) > SHOWN or not is_whole) else "",
        "again": asked.url("sql") if endpoint == "run_sql" else "",
        "recipes": [] if not is_whole else recipes.of_statement(asked, text) if endpoint == "run_sql" else recipes.of_questions(asked, questions),
        "csv": [asked.url("csv") + "?" + urlencode({"q": question}) for question in questions]
        if is_whole and endpoint != "run_sql" and len(questions) == 1
        else [],
    }  # fmt: skip
