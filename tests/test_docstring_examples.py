"""Examples in docstrings, which the API reference shows, run as printed; questions among them can be asked."""

from __future__ import annotations

import doctest
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.query.counts import Query
from hedgerow.unsafe import _FrameRows

MODULES = (hr, hr.losses, hr.erm, hr.estimators, hr.serialize, hr.audit, hr.unsafe)
ELSEWHERE = {"connect", "by_statistical_queries"}  # a server, and twelve seconds: tests/server, tests/erm
ROWS = 3000


def examples() -> Iterator[tuple[str, Any]]:
    """Yield every public name, and every public method, whose docstring has an example."""
    listed: dict[Any, str] = {}
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing):  # a method may be documented on a base class, once for all that inherit it
                for owner in (each for each in thing.__mro__ if each.__module__.startswith("hedgerow")):
                    for key, method in vars(owner).items():
                        documented = getattr(method, "__func__", method)
                        if not key.startswith("_") and inspect.isroutine(documented):
                            listed.setdefault(documented, f"{owner.__name__}.{key}")
            if inspect.isroutine(thing) or inspect.isclass(thing):
                listed.setdefault(thing, name)
    for thing, name in listed.items():
        if ">>>" in (inspect.getdoc(thing) if inspect.isclass(thing) else thing.__doc__ or ""):
            yield name, thing


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    flags = {name: rng.random(ROWS) < 0.4 for name in ("smoker", "married", "insured", "ill", "died")}
    return pd.DataFrame(
        {
            "age": rng.integers(17, 91, ROWS), "sex": rng.choice(["F", "M"], ROWS), "visits": rng.integers(0, 10, ROWS),
            "race": rng.choice(["White", "other"], ROWS), "region": rng.choice(["north", "south"], ROWS),
            "job": rng.choice(["cook", "nurse", "clerk", "guard"], ROWS), "education": rng.integers(0, 9, ROWS),
            "income": rng.integers(0, 100, ROWS), "days": rng.integers(0, 10, ROWS), **flags,
        }
    )  # fmt: skip


def universe_of(frame: pd.DataFrame) -> hr.Universe:
    def attribute(name: str) -> Any:
        column = frame[name]
        if column.dtype == bool:
            return hr.Flag()
        if name in ("sex", "race", "region", "job"):
            return hr.Categories(sorted(set(column)))
        return hr.Range(17, 91, bins=4) if name == "age" else hr.Integers(0, int(column.max()))

    return hr.Universe({name: attribute(name) for name in frame})


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Names that examples use without making them."""
    folder = tmp_path_factory.mktemp("examples")
    frame = table()
    universe, budget = universe_of(frame), hr.Budget(2.0, 1e-9)
    for file in ("people.csv", "adult.csv", "february.csv"):
        frame.to_csv(folder / file, index=False)
    universe.save(folder / "people.toml")
    few = frame[["age", "smoker"]]
    block = hr.open(few, universe=universe_of(few), budget=budget, block="january", reserve=0.2)
    block.publish(folder / "people.hedgerow")
    session = hr.open(frame, universe=universe, budget=budget, keep_rows=True, reserve=0.5)
    numbers = frame.select_dtypes("number").assign(y=frame["smoker"].astype(int))
    X, y = numbers[["age", "visits"]].to_numpy() / 100.0, numbers["y"].to_numpy()
    holdout = hr.Holdout(numbers, hr.Budget(1.0, 0.0), target="y", train=numbers)
    return {
        **{name: getattr(hr, name) for name in hr.__all__},
        "hr": hr, "audit": hr.audit, "answer": session.ask(hr.count(sex="F")), "folder": folder, "session": session, "block": block, "universe": universe,
        "budget": budget, "frame": numbers, "train_frame": numbers, "X": X, "y": y, "loss": hr.losses.Logistic(),
        "model": lambda rows: rows["age"] > 40, "holdout": holdout, "first": hr.count(sex="F"), "second": hr.count(sex="M"),
        "rows": _FrameRows(frame, universe), "np": np, "mechanism": lambda data: data + np.random.default_rng().laplace(), "data": 0.0, "neighbour": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(("name", "thing"), [pytest.param(name, thing, id=name) for name, thing in examples()])
def test_the_example_of_a_docstring_runs(
    name: str, thing: Any, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in ELSEWHERE:
        return
    monkeypatch.chdir(names["folder"])
    scope = {**names, "session": names["block"]} if name == "Session.append" else dict(names)
    if name == "TrustSchema":
        scope["universe"] = universe_of(names["frame"][["age", "visits"]])
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(thing) or ""):
        source = example.source.strip()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = eval(compile(source, name, "eval"), scope)
            except SyntaxError:
                exec(compile(source, name, "exec"), scope)
                continue
            if example.want:
                assert repr(value) == example.want.strip()
            elif isinstance(value, Query):
                names["session"].ask(value)


def test_the_examples_are_found() -> None:
    found = {name for name, _ in examples()}
    assert {"count", "open", "Session.append", "Holdout", "LogisticRegression"} <= found
    assert len(found) > 50
