"""Mistakes of a first day: each gets a clear error or the right answer, and none is silently wrong.

An error says what must be, what was found and what to do. Python's own error about the arguments of a call is clear, too.
"""

from __future__ import annotations

import datetime
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.query.parse import question

pytestmark = pytest.mark.filterwarnings(
    "ignore::hedgerow.errors.NotPrivateWarning", "ignore::hedgerow.errors.PublicWarning"
)
BUDGET = hr.Budget(1.0, 1e-6)
SMALL = hr.Universe(age=hr.Integers(17, 90), sex=hr.Categories(["F", "M"]))
ROWS = 300
UNIVERSE = hr.Universe(
    age=hr.Integers(17, 90), sex=hr.Categories(["F", "M"]), region=hr.Categories(["Nord", "Süd", "Übersee"]),
    code=hr.Categories([1, 2, 9]), smoker=hr.Flag(), pay=hr.Range(0, 1000, bins=10), job=hr.Categories(["a", "b"], other=True),
    seen=hr.Dates("2013-01-01", "2013-12-31", by="month"), score=hr.Integers(0, 9, missing=True),
)  # fmt: skip


def people(rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(17, 91, rows), "sex": rng.choice(["F", "M"], rows), "smoker": rng.random(rows) < 0.3,
            "region": rng.choice(["Nord", "Süd", "Übersee"], rows), "code": rng.choice([1, 2, 9], rows),
            "pay": rng.uniform(0, 1000, rows), "job": rng.choice(["a", "b", "c"], rows),
            "seen": pd.Timestamp("2013-01-01") + pd.to_timedelta(rng.integers(0, 365, rows), unit="D"),
            "score": rng.integers(0, 10, rows),
        }
    )  # fmt: skip


class Desk:
    """A folder, a session and a table, which the mistakes are made with."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.frame = folder, people()
        self.session = hr.open(self.frame, universe=UNIVERSE, budget=BUDGET, reserve=0.2, seed=1, keep_rows=True)

    def file(self, text: str | bytes, name: str = "t.csv", encoding: str = "utf-8") -> Path:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    def open(self, source: Any, universe: Any = SMALL, budget: Any = BUDGET, **how: Any) -> Any:
        return hr.open(source, universe=universe, budget=budget, seed=1, **how)

    def opened(self, text: str | bytes, encoding: str = "utf-8", **how: Any) -> Any:
        return self.open(self.file(text, encoding=encoding), **how)

    def ask(self, query: Any, **how: Any) -> Any:
        return self.session.ask(query, **how)

    def sql(self, statement: Any) -> Any:
        return self.session.sql(statement)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))


def rows(n: int) -> Callable[[Any], bool]:
    return lambda session: session.rows == n


LINES = "34,F\n51,M\n" * 150

REFUSED: dict[str, tuple[Callable[[Desk], Any], str]] = {
    # files
    "a semicolon file": (lambda d: d.opened("age;sex\n" + "34;F\n" * 300), "between ';'.*delimiter=';'"),
    "a tab file called csv": (lambda d: d.opened("age\tsex\n" + "34\tF\n" * 300), r"delimiter='\\t'"),
    "a pipe file": (lambda d: d.opened("age|sex\n" + "34|F\n" * 300), "delimiter='|'"),
    "UTF-16": (lambda d: d.opened("age,sex\n" + LINES, encoding="utf-16"), "encoding='utf-16'"),
    "UTF-16 without a mark": (lambda d: d.opened("age,sex\n" + LINES, encoding="utf-16-le"), "encoding='utf-16'"),
    "an empty file": (lambda d: d.opened(""), "an empty first line"),
    "an empty first line": (lambda d: d.opened("\nage,sex\n" + LINES), "an empty first line"),
    "only a header": (lambda d: d.opened("age,sex\n"), "at least one row"),
    "no header": (lambda d: d.opened(LINES), "no header.*columns="),
    "another case": (lambda d: d.opened("Age,Sex\n" + LINES), "Did you mean 'Age'. Did you mean 'Sex'"),
    "a blank in the header": (lambda d: d.opened("age, sex\n" + LINES), "Did you mean ' sex'"),
    "a typo in the header": (lambda d: d.opened("age,sexx\n" + LINES), "the table has 'age', 'sexx'. Did you mean 'sexx'"),
    "a column twice": (lambda d: d.opened("age,sex,age\n" + LINES), "'age' more than once"),
    "a title line": (lambda d: d.opened("Table 1\nage,sex\n" + LINES), "in its first line"),
    "random bytes": (lambda d: d.opened(bytes(range(256)) * 9), "in its first line"),
    "a wrong delimiter": (lambda d: d.opened("age,sex\n" + LINES, csv=hr.Csv(delimiter=";")), "between ','"),
    "a delimiter of two": (lambda d: hr.Csv(delimiter=";;"), "one ASCII character"),
    "an unknown encoding": (lambda d: hr.Csv(encoding="utf8000"), "encoding must be"),
    "the quote as delimiter": (lambda d: hr.Csv(delimiter='"'), "must differ"),
    "columns as a text": (lambda d: hr.Csv(columns="age"), "must be the names"),
    "a dialect that is a text": (lambda d: d.opened("age,sex\n" + LINES, csv=";"), "csv must be an hr.Csv"),
    "a dialect for a frame": (lambda d: d.open(d.frame, csv=hr.Csv()), "csv must come with the path"),
    "an Excel file": (lambda d: d.open(d.file(b"PK", "t.xlsx")), "Convert it first"),
    "a JSON file": (lambda d: d.open(d.file("[]", "t.json")), "Convert it first"),
    "a broken Parquet file": (lambda d: d.open(d.file(b"junk", "t.parquet")), "must open before"),
    "an empty folder": (lambda d: d.open(_folder(d)), "must have .parquet files"),
    "a file that is not there": (lambda d: d.open("nowhere.csv"), "must exist"),
    "an empty path": (lambda d: d.open(""), "must have a name"),
    "a URL without a table": (lambda d: d.open("sqlite:///t.db"), "must come with table="),
    "a database that is not there": (lambda d: d.open("sqlite:////nowhere/t.db", table="t"), "Found"),
    "a table that is not there": (lambda d: d.open(_database(d), table="persons"), "Found"),
    "None": (lambda d: d.open(None), "A source must be"),
    "a list": (lambda d: d.open([1, 2]), "A source must be"),
    "a dictionary": (lambda d: d.open({"age": [1]}), "A source must be"),
    "an array": (lambda d: d.open(np.zeros((5, 2))), "A source must be"),
    "a series": (lambda d: d.open(d.frame["age"]), "A source must be"),
    "a number": (lambda d: d.open(3), "A source must be"),
    "an empty frame": (lambda d: d.open(pd.DataFrame()), "the table has no columns"),
    "a frame without rows": (lambda d: d.open(d.frame.iloc[:0]), "at least one row"),
    "a frame with numbers as names": (lambda d: d.open(pd.DataFrame({0: [1], 1: [2]})), "the table has '0', '1'"),
    "a frame with another case": (lambda d: d.open(pd.DataFrame({"Age": [1], "sex": ["F"]})), "Did you mean 'Age'"),
    "a frame with the column as index": (lambda d: d.open(d.frame.set_index("age")), "Found no 'age'"),
    # budgets and options
    "a negative epsilon": (lambda d: hr.Budget(-1, 1e-6), "above 0"),
    "an epsilon as text": (lambda d: hr.Budget("1", 1e-6), "above 0. Found '1'"),
    "epsilon zero": (lambda d: hr.Budget(0, 1e-6), "above 0"),
    "epsilon NaN": (lambda d: hr.Budget(float("nan"), 1e-6), "above 0"),
    "an infinite epsilon": (lambda d: hr.Budget(float("inf"), 1e-6), "finite"),
    "delta of two": (lambda d: hr.Budget(1, 2), "below 1"),
    "a negative delta": (lambda d: hr.Budget(1, -1e-6), "at least 0"),
    "no delta": (lambda d: hr.Budget(1), "argument"),
    "unknown neighbors": (lambda d: hr.Budget(1, 1e-6, "swap"), "Found 'swap'"),
    "a number as a budget": (lambda d: d.open(d.frame, budget=1), "budget must be an hr.Budget"),
    "a tuple as a budget": (lambda d: d.open(d.frame, budget=(1, 1e-6)), "budget must be an hr.Budget"),
    "no budget": (lambda d: hr.open(d.frame, universe=SMALL), "argument"),
    "no universe": (lambda d: hr.open(d.frame, budget=BUDGET), "argument"),
    "a dictionary as a universe": (lambda d: d.open(d.frame, universe={"age": 90}), "universe must be"),
    "a list as a universe": (lambda d: d.open(d.frame, universe=["age"]), "universe must be"),
    "a misspelled option": (lambda d: d.open(d.frame, resreve=0.1), "argument"),
    "a reserve of two": (lambda d: d.open(d.frame, reserve=2), "must be shares"),
    "a negative reserve": (lambda d: d.open(d.frame, reserve=-0.1), "must be shares"),
    "a reserve as text": (lambda d: d.open(d.frame, reserve="10%"), "must be shares"),
    "an unknown profile": (lambda d: d.open(d.frame, profile="fast"), "Found 'fast'"),
    "a seed as text": (lambda d: hr.open(d.frame, universe=SMALL, budget=BUDGET, seed="a"), "seed must be"),
    "a ledger that is a path": (lambda d: d.open(d.frame, ledger=3), "ledger"),
    "a workload of numbers": (lambda d: d.open(d.frame, workload=[3]), "Found"),
    "a unit that is no column": (lambda d: d.open(d.frame, unit="patient", rows_per_unit=2), "Found"),
    "a limit as nonsense": (lambda d: d.open(d.frame, limit="lots"), "limit"),
    # declarations
    "a universe of nothing": (lambda d: hr.Universe(), "at least one attribute"),
    "a number for a column": (lambda d: hr.Universe(age=3), "must be a Range"),
    "a type for a column": (lambda d: hr.Universe(age=int), "must be a Range"),
    "a class for a column": (lambda d: hr.Universe(age=hr.Flag), "must be a Range"),
    "a list for a column": (lambda d: hr.Universe(age=["a", "b"]), "must be a Range"),
    "pairs for a universe": (lambda d: hr.Universe([("age", hr.Flag())]), "declared by a mapping"),
    "a text for a universe": (lambda d: hr.Universe("age"), "declared by a mapping"),
    "a number as a name": (lambda d: hr.Universe({3: hr.Flag()}), "must be a text"),
    "a text of categories": (lambda d: hr.Categories("FM"), "must be a list"),
    "no categories": (lambda d: hr.Categories([]), "at least one value"),
    "a number of categories": (lambda d: hr.Categories(3), "must be a list"),
    "a category twice": (lambda d: hr.Categories(["a", "b", "a"]), "Found 'a' twice"),
    "one and true": (lambda d: hr.Categories([1, True]), "twice"),
    "NaN as a category": (lambda d: hr.Categories([float("nan"), 1]), "NaN"),
    "a list as a category": (lambda d: hr.Categories([["a"]]), "plain values"),
    "the reserved other": (lambda d: hr.Categories(["a", "(other)"], other=True), "must not list"),
    "the reserved missing": (lambda d: hr.Categories(["a", "(missing)"], missing=True), "must not list"),
    "a range of texts": (lambda d: hr.Range("1", "5", 3), "finite numbers. Found"),
    "a range of dates": (lambda d: hr.Range("2013-01-01", "2014-01-01", 3), "Dates for dates"),
    "a range upside down": (lambda d: hr.Range(5, 1, 3), "increasing"),
    "a range without bins": (lambda d: hr.Range(1, 5), "low=1, high=5, bins=None"),
    "a range of NaN": (lambda d: hr.Range(float("nan"), 5, 3), "finite"),
    "bins as text": (lambda d: hr.Range(1, 5, "3"), "bins must be"),
    "negative bins": (lambda d: hr.Range(1, 5, -3), "bins must be"),
    "infinite bins": (lambda d: hr.Range(1, 5, float("inf")), "bins must be"),
    "half a bin": (lambda d: hr.Range(1, 5, 2.5), "bins must be"),
    "a billion bins": (lambda d: hr.Range(0, 1, 10**9), "at most"),
    "edges as text": (lambda d: hr.Range(edges="abc"), "list of increasing numbers"),
    "edges of texts": (lambda d: hr.Range(edges=["a", "b"]), "list of increasing numbers"),
    "edges as a number": (lambda d: hr.Range(edges=5), "list of increasing numbers"),
    "one edge": (lambda d: hr.Range(edges=[1]), "at least two"),
    "unsorted edges": (lambda d: hr.Range(edges=[1, 3, 2]), "increasing"),
    "ends and edges": (lambda d: hr.Range(0, 9, edges=[0, 5, 9]), "Found both"),
    "too few values": (lambda d: hr.Range(0, 9, 3, values=[1]), "3 finite numbers"),
    "integers of halves": (lambda d: hr.Integers(0.5, 3), "whole ends"),
    "integers of texts": (lambda d: hr.Integers("0", "3"), "whole ends"),
    "integers upside down": (lambda d: hr.Integers(3, 0), "low <= high"),
    "one end": (lambda d: hr.Integers(3), "argument"),
    "a month that is not": (lambda d: hr.Dates("2013-13-01", "2014-01-01", by="month"), "A date must be"),
    "a date in another form": (lambda d: hr.Dates("01/02/2013", "01/02/2014", by="month"), "A date must be"),
    "years as numbers": (lambda d: hr.Dates(2013, 2014, by="year"), "A date must be"),
    "dates without a period": (lambda d: hr.Dates("2013-01-01", "2014-01-01"), "low, high and by"),
    "an unknown period": (lambda d: hr.Dates("2013-01-01", "2014-01-01", by="months"), "low, high and by"),
    "dates upside down": (lambda d: hr.Dates("2014-01-01", "2013-01-01", by="month"), "low <= high"),
    "a word for both": (lambda d: hr.Flag(true="ja", false="ja"), "'ja' in both"),
    "a file that is no universe": (lambda d: hr.Universe.load(d.file("x = ", "u.toml")), "Found"),
    "a universe file that is not there": (lambda d: hr.Universe.load("nowhere.toml"), "must exist"),
    # questions
    "another case of a column": (lambda d: d.ask(hr.count(Age=40)), "Did you mean 'age'"),
    "a typo of a column": (lambda d: d.ask(hr.mean("agee")), "Did you mean 'age'"),
    "an unknown column": (lambda d: d.ask(hr.count(height=3)), "one of 'age'"),
    "a number as text": (lambda d: d.ask(hr.count(age="40")), "Did you mean 40"),
    "a code as text": (lambda d: d.ask(hr.count(code="1")), "Did you mean 1"),
    "another case of a value": (lambda d: d.ask(hr.count(sex="f")), "Did you mean 'F'"),
    "a longer value": (lambda d: d.ask(hr.count(sex="Female")), "'F', 'M'. Found 'Female'"),
    "a value without its umlaut": (lambda d: d.ask(hr.count(region="Ubersee")), "Did you mean 'Übersee'"),
    "a flag as a word": (lambda d: d.ask(hr.count(smoker="yes")), "Did you mean True"),
    "a flag as two": (lambda d: d.ask(hr.count(smoker=2)), "False, True"),
    "a half age": (lambda d: d.ask(hr.count(age=40.5)), "declares"),
    "an age out of range": (lambda d: d.ask(hr.count(age=200)), "declares"),
    "a range out of range": (lambda d: d.ask(hr.count(age=(100, 200))), "must overlap"),
    "a range upside down in a question": (lambda d: d.ask(hr.count(age=(60, 40))), "low <= high"),
    "a range of three": (lambda d: d.ask(hr.count(age=(20, 30, 40))), "must be .low, high."),
    "a range of texts in a question": (lambda d: d.ask(hr.count(age=("20", "30"))), "must be numbers"),
    "a range of categories": (lambda d: d.ask(hr.count(sex=("F", "M"))), "with an order"),
    "a missing value without a cell": (lambda d: d.ask(hr.count(age=None)), "declares"),
    "a day that is not": (lambda d: d.ask(hr.count(seen="2013-02-30")), "A date must be"),
    "a month in another year": (lambda d: d.ask(hr.count(seen="2020-01")), "declares"),
    "and for &": (lambda d: hr.count(age=40) and hr.count(sex="F"), "by &"),
    "a chained comparison of a question": (lambda d: bool(hr.count(age=40)), "by &"),
    "& with a text": (lambda d: d.ask(hr.count(age=40) & "sex"), "must be a count"),
    "a mean of categories": (lambda d: d.ask(hr.mean("sex")), "Found 'sex'"),
    "a median of categories": (lambda d: d.ask(hr.median("region")), "Found 'region'"),
    "a quantile beyond one": (lambda d: d.ask(hr.quantile("age", 50)), "at least 0 and at most 1"),
    "a mean among a text": (lambda d: d.ask(hr.mean("age", where="smoker")), "where"),
    "no attribute of a marginal": (lambda d: d.ask(hr.marginal()), "at least one"),
    "a number for a marginal": (lambda d: d.ask(hr.marginal(3)), "by their names"),
    "groups without a question": (lambda d: d.ask(hr.group_by("sex")), "of each group"),
    "groups of nothing": (lambda d: hr.group_by(), "at least one"),
    "an unknown period of groups": (lambda d: hr.group_by("seen", by="yaer"), "by must be one of"),
    "a period of no dates": (lambda d: d.ask(hr.group_by("sex", by="year").count()), "an attribute of dates"),
    "weekdays of months": (lambda d: d.ask(hr.group_by("seen", by="weekday").count()), "declared by day"),
    "a histogram of a text": (lambda d: d.ask(hr.histogram("age", "20")), "edges must be"),
    "a histogram of one edge": (lambda d: d.ask(hr.histogram("age", [20])), "at least two"),
    "a histogram with dates of numbers": (lambda d: d.ask(hr.histogram("age", ["2013-01-01", "2014-01-01"])), "of dates"),
    "a histogram with texts of dates": (lambda d: d.ask(hr.histogram("seen", ["January", "March"])), "A date must be"),
    "a text for a question": (lambda d: d.ask("count(age=40)"), "without quotes"),
    "SQL for a question": (lambda d: d.ask("SELECT count(*) FROM data"), "session.sql"),
    "a function for a question": (lambda d: d.ask(hr.count), "must be made by"),
    "None for a question": (lambda d: d.ask(None), "must be made by"),
    "a list of questions": (lambda d: d.ask([hr.count(age=40)]), "ask_all"),
    "one question for many": (lambda d: d.session.ask_all(hr.count(age=40)), "Found|argument"),
    "within zero": (lambda d: d.ask(hr.count(age=40), within=0), "within"),
    "within as text": (lambda d: d.ask(hr.count(age=40), within="1%"), "within"),
    "within below all reach": (lambda d: d.ask(hr.count(age=40), within=1e-9), "Found"),
    "an unknown scale": (lambda d: d.ask(hr.count(age=40), scale="percent"), "scale"),
    "an unknown resolution": (lambda d: d.ask(hr.count(age=40), resolution="fine"), "resolution"),
    "a statistic of a row": (lambda d: d.ask(hr.statistic(lambda r: r["age"] > 40, ["age"]), within=0.1), "not with a row"),
    "a statistic of too few": (lambda d: d.ask(hr.statistic(lambda a, b: a > b, ["age"]), within=0.1), "TypeError"),
    "a statistic beyond one": (lambda d: d.ask(hr.statistic(lambda a: a, ["age"]), within=0.1), "from 0 to 1"),
    "a statistic that is a text": (lambda d: d.ask(hr.statistic(str, ["age"]), within=0.1), "from 0 to 1"),
    "a statistic of no column": (lambda d: d.ask(hr.statistic(lambda a: a > 3, ["height"]), within=0.1), "Found no 'height'"),
    "a misspelled written question": (lambda d: question("cuont(age=40)"), "must be made of"),
    "a written question that opens a file": (lambda d: question("__import__('os')"), "must be made of"),
    "an empty written question": (lambda d: question(""), "as in Python"),
    "a huge written question": (lambda d: question("count(age=" + "1" * 30_000 + ")"), "at most"),
    "answers compared": (lambda d: d.ask(hr.count(age=40)) < 0.5, "Found|not supported"),
    "an answer plus a text": (lambda d: d.ask(hr.count(age=40)) + "a", "Found|unsupported"),
    # SQL
    "SELECT *": (lambda d: d.sql("SELECT * FROM data"), "rows are private"),
    "a misspelled SELECT": (lambda d: d.sql("SELEC count(*) FROM data"), "must be SQL"),
    "another table": (lambda d: d.sql("SELECT count(*) FROM people"), "called 'data'"),
    "a join": (lambda d: d.sql("SELECT count(*) FROM data a JOIN b ON a.x = b.x"), "before you open them"),
    "DISTINCT": (lambda d: d.sql("SELECT DISTINCT sex FROM data"), "GROUP BY"),
    "WITH": (lambda d: d.sql("WITH a AS (SELECT 1) SELECT count(*) FROM data"), "one SELECT"),
    "an update": (lambda d: d.sql("UPDATE data SET age = 3"), "must be a SELECT"),
    "two statements": (lambda d: d.sql("SELECT count(*) FROM data; SELECT count(*) FROM data"), "one statement"),
    "no statement": (lambda d: d.sql(""), "one statement"),
    "no text": (lambda d: d.sql(3), "must be text"),
    "a row's column": (lambda d: d.sql("SELECT sex, count(*) FROM data"), "in GROUP BY"),
    "a CASE of rows": (lambda d: d.sql("SELECT CASE WHEN age < 40 THEN 1 END, count(*) FROM data"), "in GROUP BY"),
    "an unknown column in SQL": (lambda d: d.sql("SELECT count(*) FROM data WHERE height > 3"), "one of 'age'"),
    "another case of a value in SQL": (lambda d: d.sql("SELECT count(*) FROM data WHERE sex = 'f'"), "Did you mean 'F'"),
    "a number in quotes": (lambda d: d.sql("SELECT count(*) FROM data WHERE age > '40'"), "without quotes"),
    "an average of texts": (lambda d: d.sql("SELECT avg(sex) FROM data"), "column of numbers"),
    "a weekday of months": (lambda d: d.sql("SELECT dayname(seen), count(*) FROM data GROUP BY 1"), "declared by day"),
    "NULL where none is declared": (lambda d: d.sql("SELECT count(*) FROM data WHERE age IS NULL"), "missing values"),
    # other things, and the wrong order
    "a plan without rows": (lambda d: hr.plan(universe=SMALL, budget=BUDGET, rows=0), "rows"),
    "a plan with rows as text": (lambda d: hr.plan(universe=SMALL, budget=BUDGET, rows="many"), "rows"),
    "no synthetic records": (lambda d: d.session.synthetic(0), "at least"),
    "half a synthetic record": (lambda d: d.session.synthetic(2.5), "whole number"),
    "a release that is not there": (lambda d: hr.load("nowhere.hedgerow"), "must exist"),
    "a release that is none": (lambda d: hr.load(d.file("x", "x.hedgerow")), "Found"),
    "an estimator without a session": (lambda d: hr.estimators.LogisticRegression(None, target="smoker").fit(), "session must be"),
    "an estimator before fit": (lambda d: hr.estimators.Ridge(d.session, target="pay").predict(d.frame), "fitted"),
    "an estimator of no target": (lambda d: hr.estimators.Ridge(d.session).fit(["age"]), "target must be"),
    "scaled features": (lambda d: _scaled(d).fit(_scaled_rows(d), d.frame["smoker"]), "in the units of the universe"),
    "one-hot features": (lambda d: _scaled(d).fit(np.zeros((30, 5)), d.frame["smoker"]), "one column for each"),
    "a holdout without a target": (lambda d: hr.Holdout(d.frame, BUDGET), "Found"),
    "a holdout that counts people": (lambda d: hr.Holdout(d.frame, hr.Budget(1, 0, "add-remove"), target="smoker"), "replace"),
    "a draft for nothing": (lambda d: hr.Universe.draft(d.frame), "budget="),
    "a draft of texts without delta": (lambda d: hr.Universe.draft(d.frame, budget=hr.Budget(1, 0)), "a delta above 0"),
    "a loss of no column": (lambda d: d.ask(hr.minimize(hr.losses.Logistic(target="x", features=["age"]), over=hr.L2Ball(1.0))), "one of 'age'"),
    "a ball as a number": (lambda d: d.ask(hr.minimize(hr.losses.Logistic(target="smoker", features=["age"]), over=3)), "Found"),
}  # fmt: skip

RIGHT: dict[str, tuple[Callable[[Desk], Any], Callable[[Any], bool]]] = {
    "a byte order mark": (lambda d: d.opened("age,sex\n" + LINES, encoding="utf-8-sig"), rows(300)),
    "quoted names": (lambda d: d.opened('"age","sex"\n' + LINES), rows(300)),
    "lines of Windows": (lambda d: d.opened("age,sex\r\n" + LINES.replace("\n", "\r\n")), rows(300)),
    "no last newline": (lambda d: d.opened("age,sex\n" + LINES.rstrip()), rows(300)),
    "UTF-16, declared": (lambda d: d.opened("age,sex\n" + LINES, encoding="utf-16", csv=hr.Csv(encoding="utf-16")), rows(300)),
    "columns, declared": (lambda d: d.opened(LINES, csv=hr.Csv(columns=["age", "sex"])), rows(300)),
    "further columns": (lambda d: d.opened("id,age,sex\n" + "7,34,F\n" * 300), rows(300)),
    "short lines": (lambda d: d.opened("age,sex\n" + "34\n" * 300), rows(300)),
    "words for numbers": (lambda d: d.opened("age,sex\n" + "old,F\n" * 300), rows(300)),
    "a polars frame": (lambda d: d.open(pl.from_pandas(d.frame)), rows(ROWS)),
    "one row": (lambda d: d.open(d.frame.iloc[:1]), rows(1)),
    "a set of categories": (lambda d: hr.Categories({"M", "F"}).labels, lambda found: found == ("F", "M")),
    "exact big integers": (lambda d: hr.Integers(2**63, 2**63 + 2).labels[1], lambda found: found == 2**63 + 1),
    "a reserved name": (lambda d: hr.Universe({"from": hr.Flag(), "index": hr.Flag(), "count": hr.Flag()}).size, lambda n: n == 8),
    "a name with blanks and signs": (lambda d: hr.Universe({"a b": hr.Flag(), "日本": hr.Flag(), "": hr.Flag()}).size, lambda n: n == 8),
    "groups in a list": (lambda d: d.ask(hr.group_by(["sex"]).count()).value, lambda v: v.shape == (2,)),
    "a marginal in a list": (lambda d: d.ask(hr.marginal(["sex", "smoker"])).value, lambda v: v.shape == (2, 2)),
    "a flag as one": (lambda d: [d.ask(hr.count(smoker=flag)).value for flag in (1, True)], lambda v: v[0] == v[1]),
    "a list of values": (lambda d: d.ask(hr.count(sex=["F", "M"])).value, lambda v: abs(v - 1) < 1e-6),
    "a tuple that should be a list": (lambda d: d.ask(hr.count(age={20, 30})).value, lambda v: 0 <= v < 0.3),
    "a month": (lambda d: d.ask(hr.count(seen="2013-03")).resolution, lambda r: r == 0),
    "a label of a table": (lambda d: d.ask(hr.count(seen=UNIVERSE["seen"].labels[0])).resolution, lambda r: r == 0),
    "a half-open range": (lambda d: d.ask(hr.count(age=(None, 90))).value, lambda v: abs(v - 1) < 1e-6),
    "the missing cell": (lambda d: d.ask(hr.count(score=None)).value, lambda v: 0 <= v < 0.2),
    "a text of a date in SQL": (lambda d: d.sql("SELECT count(*) AS n FROM data WHERE seen >= '2013-06-01'")["n"][0], lambda n: 100 < n < 240),
    "another case of a column in SQL": (lambda d: d.sql("SELECT count(*) AS n FROM data WHERE AGE > 50")["n"][0], lambda n: 90 < n < 260),
    "groups of a CASE": (lambda d: d.sql("SELECT CASE WHEN age < 50 THEN 'young' ELSE 'old' END AS g, count(*) AS n FROM data GROUP BY g"), lambda f: abs(f["n"].sum() - ROWS) < 1),
    "an answer asked twice": (lambda d: [d.ask(hr.count(age=33)).value for _ in range(2)], lambda v: v[0] == v[1]),
    "array features": (lambda d: _scaled(d).fit().predict(d.frame[["age", "pay"]].to_numpy()), lambda p: len(p) == ROWS),
    "dates described": (lambda d: str(d.session.describe()), lambda text: "2013-0" in text),
    "no certificate": (lambda d: str(d.session), lambda text: "No certificate" in text or "With probability" in text),
    "a date of datetime": (lambda d: d.ask(hr.count(seen=(datetime.date(2013, 1, 1), datetime.datetime(2013, 3, 31)))).resolution, lambda r: r == 0),
}  # fmt: skip


def _folder(desk: Desk) -> Path:
    (desk.folder / "empty").mkdir(exist_ok=True)
    return desk.folder / "empty"


def _database(desk: Desk) -> str:
    with sqlite3.connect(desk.folder / "t.db") as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS people (age INT, sex TEXT)")
    return f"sqlite:///{desk.folder}/t.db"


def _scaled(desk: Desk) -> Any:
    return hr.estimators.LogisticRegression(desk.session, target="smoker", features=["age", "pay"])


def _scaled_rows(desk: Desk) -> np.ndarray:
    found = desk.frame[["age", "pay"]].to_numpy(float)
    return (found - found.mean(axis=0)) / found.std(axis=0)


def test_there_are_as_many_mistakes_as_people_made() -> None:
    assert len(REFUSED) + len(RIGHT) >= 159


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_has_an_error_that_says_what_to_do(mistake: str, desk: Desk) -> None:
    make, words = REFUSED[mistake]
    with pytest.raises((HedgerowError, TypeError, ValueError)) as refused:
        make(desk)
    said = str(refused.value)
    assert re.search(words, said, re.DOTALL), said
    if isinstance(refused.value, HedgerowError):
        assert re.search(r"\bmust\b.*Found .*\. \S", said, re.DOTALL), said
    else:  # an error of Python's own, about the call itself
        assert re.search(r"argument|not supported between|unsupported operand|fitted", said), said


@pytest.mark.parametrize("case", RIGHT)
def test_a_call_that_looks_like_a_mistake_has_the_right_answer(case: str, desk: Desk) -> None:
    make, holds = RIGHT[case]
    assert holds(make(desk))
