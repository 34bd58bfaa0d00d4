"""Mistakes of the second day: wrong kinds of arguments, arithmetic with questions, files and folders, ledgers, holdouts.

As in ``test_mistakes``: an error of hedgerow's own that says what must be, what was found and what to do, or the right
answer.
"""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from test_mistakes import LINES, SMALL, Desk

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.query.parse import question

pytestmark = pytest.mark.filterwarnings(
    "ignore::hedgerow.errors.NotPrivateWarning", "ignore::hedgerow.errors.PublicWarning"
)
F, M = hr.count(sex="F"), hr.count(sex="M")
BUDGET, PRIVATE_N = hr.Budget(1.0, 1e-6), hr.Budget(1.0, 1e-6, "add-remove")
SMOKERS = {"target": "smoker", "features": ["age"]}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))


@pytest.fixture(autouse=True)
def own_key(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_LEDGER_KEY_FILE", str(desk.folder / "ledger.key"))


def ledger(desk: Desk, name: str) -> str:
    return f"sqlite:///{desk.folder / name}.ledger"


def resumed(desk: Desk, name: str, **changed: Any) -> Any:
    """Open a session on a ledger, close it, and open it again with something changed."""
    desk.open(desk.frame, ledger=ledger(desk, name)).ledger.close()
    return desk.open(changed.pop("table", desk.frame), ledger=ledger(desk, name), **changed)


def holdout(desk: Desk) -> Any:
    return hr.Holdout(desk.frame, hr.Budget(4.0, 0.0), target="smoker", train=desk.frame, seed=1)


def logistic(over: Any = None, **about: Any) -> Any:
    return hr.minimize(hr.losses.Logistic(**{**SMOKERS, **about}), over=hr.L2Ball(5.0) if over is None else over)


def ridge(desk: Desk) -> Any:
    return hr.estimators.Ridge(desk.session, target="pay", features=["age"]).fit()


REFUSED: dict[str, tuple[Callable[[Desk], Any], str]] = {
    # arguments of questions
    "a column for a count": (lambda d: hr.count("age"), "named predicates. Found 'age'"),
    "pairs for a count": (lambda d: hr.count([("age", 3)]), "named predicates"),
    "a list for a mean": (lambda d: d.ask(hr.mean(["age"])), r"one of 'age'.* Found \['age'\]"),
    "None for a mean": (lambda d: d.ask(hr.mean(None)), "one of 'age'.* Found None"),
    "a dictionary for where": (lambda d: d.ask(hr.mean("age", where={"sex": "F"})), "where must be a count"),
    "a function for where": (lambda d: d.ask(hr.mean("age", where=lambda row: True)), "where must be a count"),
    "a truth value for where": (lambda d: d.ask(hr.mean("age", where=True)), "where must be a count. Found True"),
    "a quantile as text": (lambda d: d.ask(hr.quantile("age", "0.5")), "q must be a number. Found '0.5'"),
    "a quantile of NaN": (lambda d: d.ask(hr.quantile("age", float("nan"))), "q must be at least 0"),
    "two quantiles": (lambda d: d.ask(hr.quantile("age", [0.1, 0.9])), "q must be a number"),
    "the top none": (lambda d: d.ask(hr.top("sex", 0)), "k must be a whole number"),
    "the top of a text": (lambda d: d.ask(hr.top("sex", "3")), "k must be a whole number"),
    "falling edges": (lambda d: d.ask(hr.histogram("age", [50, 20])), "increasing numbers"),
    "an edge of NaN": (lambda d: d.ask(hr.histogram("age", [float("nan"), 20])), "increasing numbers"),
    "a number of edges": (lambda d: d.ask(hr.histogram("age", 5)), "list of increasing numbers"),
    "edges of categories": (lambda d: d.ask(hr.histogram("sex", [1, 2])), "numeric attribute. Found 'sex'"),
    "a correlation of categories": (lambda d: d.ask(hr.correlation("age", "sex")), "numeric attribute. Found 'sex'"),
    "a correlation with itself": (lambda d: d.ask(hr.correlation("age", "age")), "two attributes. Found 'age' twice"),
    "a trend over itself": (lambda d: d.ask(hr.trend("age", over="age")), "two attributes. Found 'age' twice"),
    "an association with itself": (lambda d: d.ask(hr.cramers_v("age", "age")), "Found 'age' twice"),
    "a variance of categories": (lambda d: d.ask(hr.variance("sex")), "numeric attribute. Found 'sex'"),
    "a share of a column": (lambda d: d.ask(hr.share("smoker", where=F)), "must be a count. Found 'smoker'"),
    "a share of a mean": (lambda d: d.ask(hr.share(hr.mean("age"), where=F)), "must be a count. Found mean"),
    "a ratio of columns": (lambda d: d.ask(hr.ratio("age", "pay")), "two questions. Found 'age'"),
    "a difference of answers": (lambda d: d.ask(hr.difference(d.ask(F), d.ask(M))), "two questions. Found Answer"),
    "comparisons without groups": (lambda d: d.ask(hr.compare(hr.mean("age"))), "for each value of one attribute"),
    "comparisons with no group": (lambda d: d.ask(hr.compare(hr.group_by("sex").mean("age"), against="X")), "Found 'X'"),
    "comparisons by odds": (lambda d: d.ask(hr.compare(hr.group_by("sex").mean("age"), measure="odds")), "one of diff"),
    "groups of a number": (lambda d: d.ask(hr.group_by(3).count()), "by their names. Found 3"),
    "a column in a count of groups": (lambda d: d.ask(hr.group_by("sex").count("smoker")), "for each group must be"),
    "weights of another shape": (lambda d: d.ask(hr.linear(("sex",), [0, 1, 1])), r"shape \(2,\)"),
    "weights of NaN": (lambda d: d.ask(hr.linear(("sex",), [float("nan"), 1])), "must be numbers. Found NaN"),
    "weights above one": (lambda d: d.ask(hr.linear(("sex",), [0, 7])), r"in \[0, 1\]"),
    "weights of texts": (lambda d: d.ask(hr.linear(("sex",), ["a", "b"])), "weights must be numbers"),
    "survival over categories": (lambda d: d.ask(hr.survival("sex", "smoker")), "time must be a column of numbers"),
    "survival with columns swapped": (lambda d: d.ask(hr.survival("smoker", "age")), "'age': A value must be"),
    "a Python range": (lambda d: d.ask(hr.count(age=range(40, 50))), r"declares.*Found range\(40, 50\)"),
    "a slice": (lambda d: d.ask(hr.count(age=slice(40, 50))), "declares.*Found slice"),
    "a function of values": (lambda d: d.ask(hr.count(age=lambda age: age > 40)), "declares.*Found <function"),
    "a dictionary of bounds": (lambda d: d.ask(hr.count(age={"low": 40})), "declares.*Found {'low': 40}"),
    "a short mask": (lambda d: d.ask(hr.count(age=np.ones(3, bool))), r"one entry per cell \(74\)"),
    "no ends": (lambda d: d.ask(hr.count(age=())), r"must be \(low, high\). Found \(\)"),
    "one end in brackets": (lambda d: d.ask(hr.count(age=(40,))), r"must be \(low, high\)"),
    "an end of NaN": (lambda d: d.ask(hr.count(pay=(float("nan"), 5))), "low <= high"),
    "bytes": (lambda d: d.ask(hr.count(sex=b"F")), "Found b'F'"),
    "another spelling of an umlaut": (lambda d: d.ask(hr.count(region="U\u0308bersee")), "Did you mean 'Übersee'"),
    "half a character": (lambda d: d.ask(hr.count(region="\ud800")), "declares"),
    "NaN where it has no cell": (lambda d: d.ask(hr.count(age=float("nan"))), "declares.*Found None"),
    "an error below all noise": (lambda d: d.session.price(F, within=1e-300), "within must be at least the smallest error"),
    "an answer equal to a number": (lambda d: d.ask(F) == 0.5, "== with a number"),
    "windows in SQL": (lambda d: d.sql("SELECT count(*) / sum(count(*)) OVER () FROM data"), r"ask marginal\('sex'\)"),
    "distinct values in SQL": (lambda d: d.sql("SELECT count(DISTINCT sex) FROM data"), "which of them occur is private"),
    "bands in SQL": (lambda d: d.sql("SELECT floor(age / 10) * 10, count(*) FROM data GROUP BY 1"), "as CASE WHEN"),
    "dates as texts in SQL": (lambda d: d.sql("SELECT strftime(seen, '%Y'), count(*) FROM data GROUP BY 1"), "date_trunc, year"),
    "the most frequent in SQL": (lambda d: d.sql("SELECT mode(sex) FROM data"), "ORDER BY count"),
    "a word without quotes": (lambda d: question("count(sex=F)"), 'A text must be in quotes, as in "F"'),
    # files of declarations
    "a universe from None": (lambda d: hr.Universe.load(None), "a text or a Path"),
    "a universe of no column": (lambda d: hr.Universe.load(d.file("", "u1.toml")), "Found no column"),
    "a universe in Latin-1": (lambda d: hr.Universe.load(d.file('["größe"]\nkind = "Flag"', "u2.toml", "latin-1")), "not UTF-8"),
    "a universe with a slip": (lambda d: hr.Universe.load(d.file('[a]\nkind = "Flag\n', "u3.toml")), "at line 2"),
    "a kind in lower case": (lambda d: hr.Universe.load(d.file('[a]\nkind = "flag"', "u4.toml")), "Did you mean 'Flag'"),
    "an argument with a typo": (lambda d: hr.Universe.load(d.file('[a]\nkind = "Integers"\nlow = 0\nhihg = 9', "u5.toml")), "does not take. Did you mean 'high'"),
    "an argument left out": (lambda d: hr.Universe.load(d.file('[a]\nkind = "Integers"\nlow = 0', "u6.toml")), "Found no 'high'"),
    "an argument of a wrong type": (lambda d: hr.Universe.load(d.file('[a]\nkind = "Integers"\nlow = "x"\nhigh = 1', "u7.toml")), "low = 'x'.*wrong type"),
    "categories of bytes": (lambda d: hr.Categories([b"F"]), "Found bytes"),
    "a draft of a semicolon file": (lambda d: hr.Universe.draft(d.file("age;sex\n34;F\n"), budget=hr.Budget(0.1, 1e-7)), "--delimiter ';'"),
    "a draft of UTF-16": (lambda d: hr.Universe.draft(d.file("age,sex\n34,F\n", encoding="utf-16"), budget=hr.Budget(0.1, 1e-7)), "--encoding utf-16"),
    "a draft of Latin-1": (lambda d: hr.Universe.draft(d.file("größe,sex\n34,F\n", encoding="latin-1"), budget=hr.Budget(0.1, 1e-7)), "--encoding latin-1"),
    "a draft of an empty file": (lambda d: hr.Universe.draft(d.file(""), budget=hr.Budget(0.1, 1e-7)), "Found an empty one"),
    "a draft of one column": (lambda d: hr.Universe.draft(d.frame, budget=hr.Budget(0.1, 1e-7), columns="age"), r"Write \['age'\]"),
    "a codebook that is a text": (lambda d: hr.Universe.draft(d.frame, budget=hr.Budget(0.1, 1e-7), codebook="age"), "codebook must be a mapping"),
    "a number of 400 digits": (lambda d: d.ask(hr.count(age=10**400)), "declares"),
    "a price below the range": (lambda d: d.ask(hr.count(pay=-1)), "declares"),
    "a value that is in other": (lambda d: d.ask(hr.count(job="c")), r"'\(other\)'. Found 'c'"),
    "missing where it has no cell": (lambda d: d.ask(hr.count(sex=hr.MISSING)), r"Found '\(missing\)'"),
    "a date with slashes": (lambda d: d.ask(hr.count(seen="03/05/2013")), "text such as '2020-01-31'"),
    "a month by its name": (lambda d: d.ask(hr.count(seen="March")), "text such as '2020-01-31'"),
    "a year as a number": (lambda d: d.ask(hr.count(seen=2013)), "text such as '2020-01-31'"),
    "within a negative error": (lambda d: d.ask(F, within=-1), "within must be above 0"),
    "within NaN": (lambda d: d.ask(F, within=float("nan")), "within must be above 0"),
    "within any error": (lambda d: d.ask(F, within=float("inf")), "within must be above 0 and at most 1"),
    "no scale": (lambda d: d.ask(F, scale=None), "scale must be"),
    # arithmetic with questions and answers
    "a difference of questions": (lambda d: F - M, "asked before.*difference"),
    "a ratio of questions": (lambda d: F / M, "asked before.*ratio"),
    "a sum of questions": (lambda d: sum([F, M]), "asked before"),
    "a question compared": (lambda d: F < 0.5, "asked before"),
    "or between questions": (lambda d: F or M, "by &"),
    "not before a question": (lambda d: not F, "by &"),
    "a mean and a count": (lambda d: d.ask(hr.mean("age") & F), "must be a count. Found mean"),
    "an answer as a truth value": (lambda d: bool(d.ask(F)), "error bar into account"),
    "an answer divided by nothing": (lambda d: d.ask(F) / None, "answers or finite numbers. Found NoneType"),
    "a table as a float": (lambda d: float(d.ask(hr.marginal("sex"))), "one value"),
    "a table in two digits": (lambda d: f"{d.ask(hr.marginal('sex')):.2f}", "one value"),
    "a plot on a text": (lambda d: d.ask(F).plot("ax"), "axes must be matplotlib's. Found str"),
    # what a session does
    "many of no questions": (lambda d: d.session.ask_all(None), "list of questions"),
    "many of a text": (lambda d: d.session.ask_all("age"), "list of questions"),
    "one text among questions": (lambda d: d.session.ask_all([F, "x"]), "must be made by hr.count"),
    "a price without an error": (lambda d: d.session.price(F, within=None), "within must be"),
    "records as a text": (lambda d: d.session.synthetic("10"), "whole number"),
    "a trillion records": (lambda d: d.session.synthetic(10**12), "at most .* values"),
    "a report as a PDF": (lambda d: d.session.report().save("x.pdf"), r"end in \.html or \.json"),
    "a report in no folder": (lambda d: d.session.report().save("/nowhere/x.html"), "folder that exists"),
    "a release in no folder": (lambda d: d.session.publish("/nowhere/p.hedgerow"), "folder that exists"),
    "a release without a path": (lambda d: d.session.publish(None), "a text or a Path"),
    "a universe in no folder": (lambda d: SMALL.save("/nowhere/u.toml"), "folder that exists"),
    "a universe in another format": (lambda d: SMALL.save(d.folder / "u.xyz"), r"\.toml or \.json"),
    "associations of a text": (lambda d: d.session.associations("a"), "whole number"),
    "a block that is not there": (lambda d: d.session.select_blocks("x"), "Found 'x'"),
    "a pickled session": (lambda d: pickle.dumps(d.session), "stay in its process"),
    # sources
    "columns of two levels": (lambda d: d.open(pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("age", "x"), ("sex", "y")]))), "Found no 'age'"),
    "a column twice in a frame": (lambda d: d.open(pd.DataFrame([[1, 2, 3]], columns=["age", "age", "sex"])), "more than once"),
    "groups of a frame": (lambda d: d.open(d.frame.groupby("sex")), "Found DataFrameGroupBy"),
    "a generator": (lambda d: d.open(row for row in []), "Found generator"),
    "a file without an ending": (lambda d: d.open(d.file("age,sex\n" + LINES, "tfile")), "Convert it first"),
    "a zip file": (lambda d: d.open(d.file(b"PK", "t.zip")), "Convert it first"),
    "a broken gzip file": (lambda d: d.open(d.file(b"\x1f\x8bjunk", "t.csv.gz")), "must open before"),
    "a CSV by its URL": (lambda d: d.open("http://127.0.0.1:1/x.csv"), "must come with table="),
    "another encoding of a name": (lambda d: d.open(d.file("größe,b\n1,2\n", encoding="latin-1"), universe=hr.Universe({"größe": hr.Flag()})), "Found no 'größe'"),
    "people where n is public": (lambda d: d.open(d.frame, unit="code", rows_per_unit=2), "add-remove"),
    "no rows of a person": (lambda d: d.open(d.frame, budget=PRIVATE_N, unit="code", rows_per_unit=0), "whole number"),
    "rows of a person as text": (lambda d: d.open(d.frame, budget=PRIVATE_N, unit="code", rows_per_unit="2"), "whole"),
    "rows of no person": (lambda d: d.open(d.frame, rows_per_unit=2), "must come with unit"),
    "a codebook with a typo": (lambda d: hr.Universe.draft(d.frame, budget=hr.Budget(0.1, 1e-7), codebook={"agee": (0, 9)}), "Did you mean 'age'"),
    "a domain in a list": (lambda d: hr.Universe.from_json([1]), "mapping or the path"),
    "a domain of a half": (lambda d: hr.Universe.from_json({"age": 2.5}), "whole number"),
    "a domain of nothing": (lambda d: hr.Universe.from_json({"age": 0}), "at least 1"),
    # options and ledgers
    "a workload of no column": (lambda d: d.open(d.frame, workload="income ~ sex"), "Found 'income'"),
    "a workload with a typo": (lambda d: d.open(d.frame, workload=["agee"]), "Found 'agee'"),
    "a probability of two": (lambda d: d.open(d.frame, beta=2), "beta must be between 0 and 1"),
    "no questions": (lambda d: d.open(d.frame, queries=0), "queries must be a whole number"),
    "an accuracy of the other profile": (lambda d: d.open(d.frame, alpha=0.1), "profile='theory'"),
    "epsilon True": (lambda d: hr.Budget(True, 1e-6), "epsilon must be"),
    "delta as text": (lambda d: hr.Budget(1, "1e-6"), "delta must be"),
    "delta None": (lambda d: hr.Budget(1, None), "delta must be"),
    "a ledger's path": (lambda d: d.open(d.frame, ledger="people.ledger"), "URL of SQLite"),
    "a ledger on MySQL": (lambda d: d.open(d.frame, ledger="mysql://x/y"), "URL of SQLite"),
    "a ledger in no folder": (lambda d: d.open(d.frame, ledger="sqlite:////nowhere/x/y.ledger"), "folder of a ledger"),
    "a ledger that is a text": (lambda d: d.open(d.frame, ledger=f"sqlite:///{d.file('junk', 'j.ledger')}"), "not a database"),
    "a table of a frame": (lambda d: d.open(d.frame, table="people"), "table must come with the URL"),
    "a pattern of CSV files": (lambda d: d.open(d.folder / "*.csv"), "pattern must be of Parquet"),
    "a file in the home folder": (lambda d: d.open("~/nowhere/t.csv"), r"Found nothing at '[^~]"),
    "a ledger of another table": (lambda d: resumed(d, "a", table=d.frame.iloc[:50]), "table that it was opened on"),
    "a ledger of another budget": (lambda d: resumed(d, "b", budget=hr.Budget(2, 1e-6)), "that of the ledger"),
    "a ledger of another universe": (lambda d: resumed(d, "c", universe=hr.Universe(age=hr.Integers(17, 90))), "another universe"),
    "an analyst without a ledger": (lambda d: d.open(d.frame, analyst="ana"), "durable ledger"),
    "an analyst as a number": (lambda d: d.open(d.frame, ledger=ledger(d, "d"), analyst=3), "printable characters"),
    "an analyst named as all": (lambda d: d.open(d.frame, ledger=ledger(d, "e"), analyst="*"), "another name than"),
    "a cap above the budget": (lambda d: d.open(d.frame, ledger=ledger(d, "f")).ledger.cap("ana", 5), "at most the budget's"),
    "a cap as text": (lambda d: d.open(d.frame, ledger=ledger(d, "g")).ledger.cap("ana", "x"), "Found 'x'"),
    # releases, plans, models, holdouts
    "an unknown method": (lambda d: hr.release(d.frame, universe=SMALL, budget=BUDGET, method="magic", workload=hr.marginals(2)), "Found 'magic'"),
    "tables of no column": (lambda d: hr.marginals(0), "whole number"),
    "a plan for a negative error": (lambda d: hr.plan(universe=SMALL, budget=BUDGET, accuracy=-1), "between 0 and 1"),
    "a plan for nothing": (lambda d: hr.plan(universe=SMALL, budget=BUDGET), "number of rows or for an accuracy.*--rows"),
    "a service without an address": (lambda d: hr.connect("nowhere", token="x"), "address of a service"),
    "a table for a release": (lambda d: hr.load(d.file("age,sex\n")), "as it was published"),
    "a ball of negative radius": (lambda d: hr.L2Ball(-1), "above 0"),
    "a loss by its name": (lambda d: hr.minimize("logistic", over=hr.L2Ball(1.0)), "hedgerow.losses"),
    "features in a text": (lambda d: d.ask(logistic(features="age")), r"Write \['age'\]"),
    "the target among the features": (lambda d: d.ask(logistic(features=["smoker"])), "Remove it"),
    "a target of many values": (lambda d: d.ask(logistic(target="age", features=["smoker"])), "two values"),
    "arrays of other lengths": (lambda d: hr.erm.auto(np.zeros((5, 2)), np.zeros(4), loss=hr.losses.Logistic(), over=hr.L2Ball(1.0), budget=BUDGET), "one label"),
    "no rows to hold out": (lambda d: hr.Holdout(d.frame.iloc[:0], BUDGET, target="smoker"), "at least one row"),
    "a target that is no column": (lambda d: hr.Holdout(d.frame, BUDGET, target="Smoker"), "target column"),
    "an unknown metric": (lambda d: holdout(d).score(lambda X: X["age"] > 3, "acc"), "Found 'acc'"),
    "targets in a list": (lambda d: hr.Holdout(d.frame, BUDGET, target=["smoker"]), "target column"),
    "a release of nothing": (lambda d: hr.load(None), "a text or a Path"),
    "a release in place of a folder": (lambda d: d.session.publish(d.folder), "that of a file. Found the folder"),
    "predictions of nothing": (lambda d: ridge(d).predict(None), "must be a table with a column 'age'"),
    "no model": (lambda d: holdout(d).score(None), "model must have predict"),
    "a model that fails": (lambda d: holdout(d).score(lambda X: X["nope"]), "give every row a value"),
}  # fmt: skip

RIGHT: dict[str, tuple[Callable[[Desk], Any], Callable[[Any], bool]]] = {
    "pandas' missing value": (lambda d: hr.count(score=pd.NA) == hr.count(score=None), bool),
    "NaN as the missing value": (lambda d: hr.count(score=float("nan")) == hr.count(score=pd.NaT) == hr.count(score=None), bool),
    "a series of values": (lambda d: hr.count(sex=pd.Series(["F", "M"])) == hr.count(sex=["F", "M"]), bool),
    "numpy's labels": (lambda d: hr.Categories(np.array(["F", "M"])).labels, lambda v: repr(v) == "('F', 'M')"),
    "a universe that Windows wrote": (lambda d: hr.Universe.load(d.file('[a]\nkind = "Flag"', "w.toml", "utf-8-sig")).names, lambda v: v == ("a",)),
    "names of SQL as they are written": (lambda d: list(d.sql("SELECT MEDIAN(Age), count(*) FILTER (WHERE sex = 'F') FROM data").columns[::3]), lambda v: v == ["median(Age)", "count(*) filter(where sex = 'F')"]),
    "a column of numbers of rows in a draft": (lambda d: hr.Universe.draft(d.file(",age\n" + "1,34\n" * 300), budget=hr.Budget(1.0, 1e-6), seed=1).names, lambda v: v == ("age",)),
    "predictions of no rows": (lambda d: ridge(d).predict(d.frame.iloc[:0]).shape, lambda v: v == (0,)),
    "a typical error of almost no budget": (lambda d: d.open(d.frame, budget=hr.Budget(1e-6, 1e-6)).ask(F).typical, lambda v: v <= 1),
    "the verdict on one row": (lambda d: hr.plan(universe=SMALL, budget=BUDGET, rows=1).verdict, lambda v: v.startswith("No: 1 row at") and "± 100 %" in v),
    "numpy's numbers and texts": (lambda d: [d.ask(q).value for q in (hr.count(age=np.int64(40), sex=np.str_("F")), hr.count(age=40, sex="F"))], lambda v: v[0] == v[1]),
    "numpy's date": (lambda d: [d.ask(hr.count(seen=day)).value for day in (np.datetime64("2013-03-05"), "2013-03-05")], lambda v: v[0] == v[1]),
    "a timestamp": (lambda d: [d.ask(hr.count(seen=day)).value for day in (pd.Timestamp("2013-03-05"), "2013-03-05")], lambda v: v[0] == v[1]),
    "a year as text": (lambda d: d.ask(hr.count(seen="2013")).value, lambda v: abs(v - 1) < 1e-9),
    "no values": (lambda d: d.ask(hr.count(sex=[])).value, lambda v: v == 0),
    "an infinite end": (lambda d: d.ask(hr.count(pay=(0, float("inf")))).value, lambda v: abs(v - 1) < 1e-9),
    "more values than there are": (lambda d: d.ask(hr.top("sex", 10)).value, lambda v: v.shape == (2,)),
    "a column twice in a table": (lambda d: d.ask(hr.marginal("sex", "sex")).value, lambda v: v.shape == (2,)),
    "an answer in two digits": (lambda d: (f"{d.ask(F):.2f}", d.ask(F)), lambda v: v[0] == f"{v[1].value:.2f}"),
    "a rounded answer": (lambda d: (round(d.ask(F), 2), d.ask(F)), lambda v: v[0] == round(v[1].value, 2)),
    "a sum of answers": (lambda d: sum([d.ask(F), d.ask(M)]).value, lambda v: abs(v - 1) < 1e-6),
    "an answer divided by zero": (lambda d: d.ask(F) / 0, lambda a: np.isinf(a.value) and a.error is None),
    "no questions at all": (lambda d: d.session.ask_all([]), lambda v: v == []),
    "a generator of questions": (lambda d: d.session.ask_all(hr.count(age=a) for a in (20, 30)), lambda v: len(v) == 2),
    "a copied session": (lambda d: copy.copy(d.session).ask(F).value == d.session.ask(F).value, bool),
    "a lazy frame": (lambda d: d.open(pl.from_pandas(d.frame).lazy()).rows, lambda n: n == 300),
    "an Arrow table": (lambda d: d.open(pa.Table.from_pandas(d.frame)).rows, lambda n: n == 300),
    "codes as texts": (lambda d: _share(d, ["1", "2"] * 150, hr.Categories([1, 2])), lambda v: abs(v - 0.5) < 0.2),
    "texts as codes": (lambda d: _share(d, [1.0, 2.0] * 150, hr.Categories(["1", "2"])), lambda v: abs(v - 0.5) < 0.2),
    "words for a flag": (lambda d: _share(d, ["Yes", "no"] * 150, hr.Flag()), lambda v: abs(v - 0.5) < 0.2),
    "infinite numbers": (lambda d: _share(d, [np.inf, -np.inf] * 150, hr.Range(0, 10, 2)), lambda v: abs(v - 0.5) < 0.2),
    "a codebook of other tables": (lambda d: hr.Universe.draft(d.frame[["age"]], codebook={"age": (0, 9), "height": (0, 200)}).names, lambda v: v == ("age",)),
    "NumPy's epsilon": (lambda d: hr.Budget(np.float64(1), 1e-6), lambda b: b == hr.Budget(1.0, 1e-6)),
}  # fmt: skip


def _share(desk: Desk, values: list[Any], attribute: Any) -> float:
    """Return the share of the first cell, as a session on these values finds it."""
    session = desk.open(pd.DataFrame({"f": values}), universe=hr.Universe(f=attribute))
    return float(session.ask(hr.marginal("f")).value[0])


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_has_an_error_that_says_what_to_do(mistake: str, desk: Desk) -> None:
    make, words = REFUSED[mistake]
    with pytest.raises(HedgerowError) as refused:
        make(desk)
    said = str(refused.value)
    assert re.search(words, said, re.DOTALL), said
    assert re.search(r"\bmust\b.*Found .*\. \S|Did you mean .*\? \S", said, re.DOTALL), said


@pytest.mark.parametrize("case", RIGHT)
def test_a_call_that_looks_like_a_mistake_has_the_right_answer(case: str, desk: Desk) -> None:
    make, holds = RIGHT[case]
    assert holds(make(desk))


def test_nothing_was_spent_by_a_mistake_and_no_file_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path)
    spent = desk.session.spent
    for name, (make, _) in REFUSED.items():
        if "ledger" not in name and "analyst" not in name and "cap" not in name:
            with pytest.raises(HedgerowError):
                make(desk)
    assert desk.session.spent == spent
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".html", ".hedgerow", ".part")]
