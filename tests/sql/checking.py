"""The truth of a statement by DuckDB on the coded table, and our answer to it without noise."""

from __future__ import annotations

import math
import re
from typing import Any

import duckdb
import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.answer import Answer
from hedgerow.data import Table
from hedgerow.query.counts import Query, bound
from hedgerow.sql import run_statement
from hedgerow.unsafe import unsafe_respondent

ROWS = 400
UNIVERSE = hr.Universe(
    a=hr.Integers(0, 4), b=hr.Integers(0, 2), c=hr.Categories(["x", "xy", "z"]), m=hr.Categories(["p", "q", None]),
    flag=hr.Flag(),
)  # fmt: skip


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.integers(0, 5, ROWS),
            "b": rng.integers(0, 3, ROWS),
            "c": rng.choice(["x", "xy", "z"], ROWS),
            "m": rng.choice(np.array(["p", "q", None], dtype=object), ROWS),
            "flag": rng.integers(0, 2, ROWS).astype(bool),
        }
    )


class Truth:
    """Answers to statements with the noise left out, and DuckDB's."""

    def __init__(self, frame: pd.DataFrame, universe: hr.Universe = UNIVERSE) -> None:
        self.universe, self.rows = universe, len(frame)
        self.respondent = unsafe_respondent(Table(frame, universe))
        self.engine = duckdb.connect()
        for setting in ("ieee_floating_point_ops", "error_on_division_by_zero"):  # what is divided by 0 is NULL
            self.engine.execute(f"SET {setting} = false")
        self.engine.register("data", frame)

    def ask_all(self, queries: list[Query]) -> list[Answer]:
        answers = []
        for query in queries:
            question = bound(query, self.universe)
            estimate = question.ask(self.respondent, None)
            value = estimate.value
            if question.is_fraction or getattr(question, "in_rows", False):
                value = round(
                    value * self.rows, 9
                )  # what a fraction of float64 leaves would decide where HAVING compares counts
            answers.append(Answer(query, value, 0.0, "measured", 0.0))
        return answers

    def ours(self, statement: str) -> pd.DataFrame:
        return run_statement(statement, self.universe, self.ask_all).frame

    def theirs(self, statement: str) -> pd.DataFrame:
        return self.engine.sql(statement).df()


def disagreement(ours: pd.DataFrame, theirs: pd.DataFrame, statement: str) -> str | None:
    """Return the first difference. A group that DuckDB does not list is empty: every declared value has its row in our result."""
    shown = [name for name in ours.columns if not name.endswith(("_error", "_typical"))]
    if [c.lower().split(":")[0] for c in shown] != [re.sub(r"_\d+$", "", c.lower()) for c in theirs.columns]:
        return f"columns {shown} and {list(theirs.columns)}"
    if "LIMIT" in statement.rpartition(")")[2]:
        return None if len(ours) >= len(theirs) else "fewer rows"  # which of equal ones come first is open
    values = [name for name in shown if name.startswith("x")]
    groups = [name for name in shown if name not in values]
    left, right = _keyed(ours, groups, values), _keyed(theirs.set_axis(shown, axis=1), groups, values)
    for key, rows in right.items():
        if key not in left:
            return f"group {key} is missing"
        for row in rows:
            if not any(_alike(row, mine) for mine in left[key]):
                return f"{values} of {key}: {left[key]} and {row}"
    return None


def _alike(true: list[Any], mine: list[Any]) -> bool:
    return all(
        t is None or (m is not None and math.isclose(m, t, rel_tol=1e-9, abs_tol=1e-9))
        for t, m in zip(true, mine, strict=True)
    )


def _keyed(frame: pd.DataFrame, groups: list[str], values: list[str]) -> dict[Any, list[list[Any]]]:
    """The rows of each group: two where a total is NULL and so is a value."""
    found: dict[Any, list[list[Any]]] = {}
    for record in frame.to_dict("records"):
        key = tuple(None if pd.isna(record[g]) else str(record[g]).removesuffix(".0") for g in groups)
        found.setdefault(key, []).append(
            [None if pd.isna(record[v]) or math.isinf(record[v]) else float(record[v]) for v in values]
        )
    return found
