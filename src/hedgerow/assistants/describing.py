"""The tools that describe a table: describe_dataset, summarise_columns and synthetic_rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hedgerow.answering.synthetic import synthetic_records
from hedgerow.assistants.arguments import Schema, arguments_schema, column_list
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.quoting import NOTE, column_words, label_words
from hedgerow.assistants.results import outward, plain_label, plain_name, plain_number
from hedgerow.assistants.tool import Tool, ToolCall, ToolResult
from hedgerow.privacy.noise import public_generator
from hedgerow.universe.attributes import Attribute
from hedgerow.universe.universe import Universe

IN_ROWS = ("count", "freq", "missing")  # statistics that are numbers of rows


def describe_dataset(desk: AssistantDesk, call: ToolCall) -> ToolResult:
    """Return what is public about the table: columns, rows, budget, certificate, and what is free."""
    view, limits = desk.view, desk.limits
    universe, budget = view.universe, view.budget
    names = _choose_columns(universe, call.arguments.get("columns"), limits.columns)
    most = min(limits.labels, max(3, limits.shown // max(1, len(names))))
    n_is_public, (epsilon, delta) = budget.neighbours == "replace", view.whole_promise
    certificate = view.certificate
    data: dict[str, Any] = {
        "dataset": desk.name,
        "rows": round(view.rows),
        "rows_are": "public" if n_is_public else "a private estimate",
        "columns": [column_record(name, universe[name], most) for name in names],
        "columns_left_out": len(universe.names) - len(names),
        "budget": {"epsilon": plain_number(epsilon), "delta": plain_number(delta)},
        "private": view.private,
        "certificate": None if certificate is None else str(certificate),
        "confidence": plain_number(desk.confidence),
        "free": f"{_free_tools(desk)}, any number of times",
        "may_buy": desk.purchases is not None,
        "has_holdout": desk.holdout is not None,
    }
    if desk.shows_spending:
        data["budget"] |= {
            "spent": plain_number(view.spent),
            "of": plain_number(budget.total),
            "currency": budget.currency,
        }
    lines = [
        f"A sensitive table of {data['rows']:,} rows ({data['rows_are']}), with {len(universe.names)} columns. "
        f"Everything you read of it is covered by one promise to its people, epsilon = {epsilon:g}, delta = "
        f"{delta:g}, however much you ask. You never see a row.",
        *([] if view.private else ["NOT PRIVATE: the noise comes from a seed."]),
        f"All bars hold together with probability {desk.confidence:.3g}.",
        *([] if certificate is None else [f"Certificate: {certificate}"]),
        f"Free: {data['free']}. "
        + ("Narrower bars may be bought within the owner's cap." if desk.purchases else "Nothing can be bought here."),
        "Columns:",
        *(f"- {_column_words(name, each)}" for name, each in zip(names, data["columns"], strict=True)),
    ]
    if data["columns_left_out"]:
        lines.append(f"… and {data['columns_left_out']} more. Name some in columns to see them.")
    lines.append(NOTE)
    return ToolResult("\n".join(lines), data, asked=f"{len(names)} columns")


def _free_tools(desk: AssistantDesk) -> str:
    """Return which of the tools that this desk has are free."""
    paid = [
        name for name, is_there in (("buy", desk.purchases), ("score_on_holdout", desk.holdout)) if is_there is not None
    ]
    return f"every tool but {' and '.join(paid)}" if paid else "every tool"


def _choose_columns(universe: Universe, given: list[str] | None, most: int) -> list[str]:
    """Return the columns that were named, in the order of the universe, or the first ones."""
    if given is None:
        return list(universe.names)[:most]
    return list(dict.fromkeys(universe.order(given)))


def column_record(name: str, attribute: Attribute, most: int) -> dict[str, Any]:
    """Return what is declared about one column."""
    labels = [plain_label(attribute.labels[i]) for i in range(min(attribute.size, most))]
    record: dict[str, Any] = {
        "name": plain_name(name),
        "kind": type(attribute).__name__,
        "cells": attribute.size,
        "labels": labels,
        "labels_left_out": attribute.size - len(labels),
        "ordered": bool(attribute.ordered),
        "is_number": attribute.values is not None,
    }
    values = attribute.values
    known = np.array([]) if values is None else values[~np.isnan(values)]
    edges = getattr(attribute, "edges", None)
    if known.size and record["kind"] in ("Integers", "Range"):
        ends = [float(known.min()), float(known.max())] if edges is None else [float(edges[0]), float(edges[-1])]
        record["range"] = [plain_number(end) for end in ends]
    return record


def _column_words(name: str, record: dict[str, Any]) -> str:
    """Return one line about a column: its name, kind, range, number of cells and labels."""
    head = f"{column_words(name)}: {record['kind']}"
    if "range" in record:
        low, high = record["range"]
        head += f" from {low:g} to {high:g}"
        if record["kind"] == "Integers":
            return f"{head}, whole numbers"
    left = f" … and {record['labels_left_out']} more" if record["labels_left_out"] else ""
    return f"{head}; {record['cells']} cells: {', '.join(label_words(label) for label in record['labels'])}{left}"


def summarize_columns(desk: AssistantDesk, call: ToolCall) -> ToolResult:
    """Return the statistics of columns, with bars, and the strongest associations between two of them."""
    view, limits = desk.view, desk.limits
    names = _choose_columns(view.universe, call.arguments.get("columns"), limits.columns)
    summary = view.describe()
    columns = {}
    for name in names:
        found = {}
        for statistic, value in summary.columns[name].items():
            bar = summary.errors[name].get(statistic)
            is_number = isinstance(value, float | int | np.number) and not isinstance(value, bool)
            found[statistic] = {
                "value": plain_number(float(value)) if is_number else plain_label(value),
                "bar": None if bar is None else plain_number(bar),
            }
        columns[plain_name(name)] = found
    wanted = set(names)
    associations: list[dict[str, Any]] = [
        {
            "columns": [plain_name(name) for name in one.columns], "cramers_v": plain_number(one.cramers_v),
            "cell": [plain_label(value) for value in one.values],
            "share_beyond_independence": plain_number(one.difference),
            "bar": None if one.error is None else plain_number(one.error),
            "exceeds_bar": one.error is not None and abs(one.difference) > one.error,
        }
        for one in summary.associations
        if wanted.issuperset(one.columns) or call.arguments.get("columns") is None
    ]  # fmt: skip
    desk.numbers += sum(len(found) for found in columns.values()) + len(associations)
    data = {"columns": columns, "associations": associations, "columns_left_out": len(view.universe.names) - len(names)}
    lines = [
        f"{column_words(name)}: {_statistics_words(found)}" for name, found in zip(names, columns.values(), strict=True)
    ]
    if associations:
        lines.append("Strongest associations (Cramér's V has no bar: a hint; the shares beyond independence have one):")
    for one in associations:
        pair = " × ".join(column_words(name) for name in one["columns"])
        cell = " and ".join(label_words(label) for label in one["cell"])
        reach = "no bar" if one["bar"] is None else f"± {one['bar']:.2g}"
        said = "exceeds its bar" if one["exceeds_bar"] else "not settled by its bar"
        lines.append(
            f"- {pair}: V {one['cramers_v']:.3g}; {cell} {one['share_beyond_independence']:+.3g} {reach}, {said}"
        )
    lines.append(
        "min, max and unique are those of the declaration. Bars of means, deviations and quartiles include what bins "
        f"hide; ask them with resolution bins for narrower ones. {NOTE}"
    )
    return ToolResult("\n".join(lines), data, asked=f"{len(names)} columns")


def _statistics_words(found: dict[str, Any]) -> str:
    parts = []
    for statistic, each in found.items():
        value, unit = each["value"], " rows" if statistic in IN_ROWS else ""
        text = f"{value:,.0f}" if unit else f"{value:.5g}" if isinstance(value, float) else label_words(value)
        bar = "" if each["bar"] is None else f" ± {outward(each['bar'], 1, 3):,g}"
        parts.append(f"{statistic} {text}{bar}{unit}")
    return ", ".join(parts)


def draw_synthetic_rows(desk: AssistantDesk, call: ToolCall) -> ToolResult:
    """Return made-up records whose counts match the released model. The same seed gives the same records."""
    view, seed = desk.view, int(call.arguments["seed"])
    rows = min(int(call.arguments["rows"]), max(1, desk.limits.values // len(view.universe.names)))
    records = synthetic_records(view.hypothesis, rows, lambda: public_generator(seed), "values", view.certificate)
    columns = [str(name) for name in records.columns]
    values = [[_cell(value) for value in row] for row in records.itertuples(index=False)]
    left = int(call.arguments["rows"]) - rows
    data = {
        "columns": [plain_name(name) for name in columns],
        "records": values,
        "records_left_out": left,
        "seed": seed,
        "made_up": True,
    }
    lines = [
        "Made-up records, drawn from the released model. None is a person. Do not count them: ask, which has bars.",
        ", ".join(map(column_words, columns)),
        *(", ".join("" if value is None else label_words(value) for value in row) for row in values),
    ]
    if left:
        lines.append(f"… {left} were left out, because the table has many columns.")
    return ToolResult("\n".join(lines), data, asked=f"{rows} synthetic records")


def _cell(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return None if math.isnan(value) else plain_number(float(value))
    return plain_label(value)


def _columns_schema(desk: AssistantDesk) -> Schema:
    return arguments_schema(columns=column_list(desk.limits.columns, "Columns to describe. Default: the first ones."))


def _rows_schema(desk: AssistantDesk) -> Schema:
    return arguments_schema(
        rows={"type": "integer", "minimum": 1, "maximum": desk.limits.rows, "default": 20, "description": "How many."},
        seed={
            "type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 0,
            "description": "The same seed gives the same records.",
        },
    )  # fmt: skip


TOOLS = (
    Tool(
        "describe_dataset", "Describe the dataset",
        "Start here. Returns the columns with their declared values, the number of rows, the budget, what is free, and "
        "the certificate: how exact all answers are.",
        _columns_schema, describe_dataset,
    ),
    Tool(
        "summarise_columns", "Summarise columns",
        "Statistics of columns (most frequent value, mean, standard deviation, quartiles, missing values), each with "
        "its bar, and the strongest associations between two columns. Free.",
        _columns_schema, summarize_columns,
    ),
    Tool(
        "synthetic_rows", "Draw synthetic rows",
        "Made-up records that look like the table's, to see its form. Free. Never count or average them: ask instead, "
        "because only answers have bars.",
        _rows_schema, draw_synthetic_rows,
    ),
)  # fmt: skip
