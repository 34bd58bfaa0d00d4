"""A scripted analyst: 40 tasks on a table, through an assistant's tools, and the same script on the raw rows.

The whole table stands for the population. Both scripts work on one random half of it. Tasks are drawn from the declaration alone,
before any answer is seen. A conclusion about a difference, an association, a trend or a coefficient is a sign, and its size. It
is drawn only where the interval excludes 0: through the tools, their guaranteed interval; on the raw rows, the estimate ± 1.96
standard deviations of 40 bootstrap samples. A share or a mean is always a conclusion, however wide its interval. Coefficients
are also judged by the bootstrapped intervals that the tools give as a hint.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import tables

import hedgerow as hr
from hedgerow import demo
from hedgerow.assistants.asking import read_question
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.models import family_for, loss_of
from hedgerow.assistants.toolbox import call_tool
from hedgerow.data import Table
from hedgerow.unsafe import unsafe_answer

BUDGET = hr.Budget(1.0, 1e-6)
KINDS = {"share": 8, "mean": 4, "difference": 10, "association": 6, "trend": 6, "coefficient": 6}
CLOSE = 0.05  # a size is right if it is so near, as a part of the declared range; for coefficients, of the larger of 1 and itself
BOOTSTRAPS = 40
TABLES = ("rand_hie", "adult_dense", "nltcs")
REACH = 1.96


@dataclass(frozen=True)
class Task:
    """A question whose answer is one number. For a coefficient, ``model`` is asked for and ``feature`` is read."""

    kind: str
    question: str
    scale: float
    model: dict[str, Any] | None = None
    feature: str = ""


@dataclass(frozen=True)
class Conclusion:
    value: float
    low: float
    high: float

    @property
    def is_settled(self) -> bool:
        return self.low > 0 or self.high < 0


def load(name: str) -> tuple[hr.Universe, pd.DataFrame]:
    """A table with its declaration."""
    if name == "rand_hie":
        return demo.universe(), pd.read_parquet(demo.path())
    found = tables.load(name)
    plain = {column: "".join(c if c.isalnum() else "_" for c in column) for column in found.sizes}
    frame = found.frame.rename(columns=plain)
    return hr.Universe.from_sizes({plain[column]: size for column, size in found.sizes.items()}), frame


def tasks_of(universe: hr.Universe, rng: np.random.Generator) -> Iterator[Task]:
    """Tasks drawn from the declaration."""
    numbers = [name for name in universe.names if universe[name].values is not None]
    for kind, count in KINDS.items():
        seen: set[str] = set()
        while len(seen) < count:
            task = _draw(kind, universe, numbers, rng)
            if task.question + task.feature not in seen:
                seen.add(task.question + task.feature)
                yield task


def _draw(kind: str, universe: hr.Universe, numbers: list[str], rng: np.random.Generator) -> Task:
    first, second, third = (str(each) for each in rng.permutation(universe.names)[:3])
    number, other = (str(each) for each in rng.permutation(numbers)[:2])
    if kind == "share":
        return Task(kind, f"share({_part(universe, first, rng)}, where={_part(universe, second, rng)})", 1.0)
    if kind == "mean":
        group = first if first != number else second
        return Task(kind, f"mean({number!r}, where={_part(universe, group, rng)})", _span(universe, number))
    if kind == "difference":
        part, rest = _halves(universe, second, rng)
        if rng.random() < 0.5 and number != second:
            return Task(
                kind,
                f"difference(mean({number!r}, where={part}), mean({number!r}, where={rest}))",
                _span(universe, number),
            )
        of = _part(universe, first, rng)
        return Task(kind, f"difference(share({of}, where={part}), share({of}, where={rest}))", 1.0)
    if kind == "association":
        return Task(kind, f"correlation({number!r}, {other!r})", 1.0)
    if kind == "trend":
        of = first if first != number else second
        return Task(kind, f"trend({_part(universe, of, rng)}, over={number!r})", 1.0 / _span(universe, number))
    target, features = first, sorted((second, third))
    model = {"target": target, "features": features, "family": family_for(universe, target), "radius": 5.0}
    if model["family"] == "multinomial":
        return _draw(kind, universe, numbers, rng)
    names = [n for n in loss_of(model).on(universe).features.feature_names if n != "intercept"]
    return Task(kind, f"{target} by {features}", 1.0, model, str(rng.choice(names)))


def _span(universe: hr.Universe, name: str) -> float:
    values = universe[name].values
    return float(np.nanmax(values) - np.nanmin(values))


def _part(universe: hr.Universe, name: str, rng: np.random.Generator) -> str:
    """A count of about half of the values of an attribute."""
    return _halves(universe, name, rng)[0]


def _halves(universe: hr.Universe, name: str, rng: np.random.Generator) -> tuple[str, str]:
    labels = list(universe[name].labels)
    cut = int(rng.integers(1, len(labels)))
    if not universe[name].ordered:
        labels = [labels[int(i)] for i in rng.permutation(len(labels))]
    return tuple(
        f"count({name}={{{', '.join(repr(_plain(each)) for each in part)}}})" for part in (labels[:cut], labels[cut:])
    )  # type: ignore[return-value]


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def through_tools(desk: AssistantDesk, asked: list[Task]) -> tuple[list[Conclusion], list[Conclusion]]:
    """Judge by the answers of the tools alone: by guaranteed intervals, and for coefficients by bootstrapped ones."""
    questions = [task.question for task in asked if task.model is None]
    found = call_tool(desk, "ask", {"questions": questions, "resolution": "bins"}).data["answers"]
    records = dict(zip(questions, found, strict=True))
    conclusions, hints = [], []
    for task in asked:
        if task.model is None:
            record = records[task.question]
            value, low, high = record["value"], record["low"], record["high"]
        else:
            fitted = call_tool(desk, "fit_model", task.model).data
            value = fitted["model"]["coefficients"][task.feature]
            guaranteed = fitted["coefficient_bars"] if fitted["basis"] == "guaranteed" else None
            low, high = _around(value, guaranteed, task.feature)
            hints.append(_conclusion(value, *_around(value, fitted["bootstrap_bars"], task.feature)))
        conclusions.append(_conclusion(value, low, high))
    return conclusions, hints


def _around(value: float, bars: dict[str, float] | None, feature: str) -> tuple[float | None, float | None]:
    bar = None if bars is None else bars.get(feature)
    return (None, None) if bar is None else (value - bar, value + bar)


def _conclusion(*given: float | None) -> Conclusion:
    return Conclusion(*(math.nan if each is None else float(each) for each in given))


def on_rows(
    universe: hr.Universe, frame: pd.DataFrame, asked: list[Task], rng: np.random.Generator
) -> list[Conclusion]:
    """The same numbers computed from rows, with intervals from bootstrap samples."""
    values = _true(universe, frame, asked)
    samples = np.array(
        [_true(universe, frame.sample(len(frame), replace=True, random_state=rng), asked) for _ in range(BOOTSTRAPS)]
    )
    reach = REACH * np.nanstd(samples, axis=0, ddof=1)
    return [Conclusion(v, v - r, v + r) for v, r in zip(values, reach, strict=True)]


def _true(universe: hr.Universe, frame: pd.DataFrame, asked: list[Task]) -> list[float]:
    data, found = Table(frame, universe), []
    for task in asked:
        if task.model is None:
            found.append(float(unsafe_answer(data, read_question(task.question), resolution="bins")))
        else:
            loss = loss_of(task.model)
            theta = np.ravel(unsafe_answer(data, hr.minimize(loss, over=hr.L2Ball(task.model["radius"]))))
            found.append(float(theta[list(loss.on(universe).features.feature_names).index(task.feature)]))
    return found


@dataclass
class Tally:
    """Conclusions that are right in sign and size, wrong, and not drawn; and of the latter, whose value would have been right.

    ``inside``: of the wrong ones, those whose interval contains the truth.
    """

    right: int = 0
    wrong: int = 0
    wrong_sign: int = 0
    inside: int = 0
    unsettled: int = 0
    value_right: int = 0

    def add(self, task: Task, found: Conclusion, truth: float) -> None:
        reach = CLOSE * max(1.0, abs(truth)) if task.kind == "coefficient" else CLOSE * task.scale
        is_level = task.kind in ("share", "mean")
        has_sign = is_level or found.value * truth > 0
        is_right = bool(has_sign and abs(found.value - truth) <= reach)
        if not is_level and not found.is_settled:
            self.unsettled += 1
            self.value_right += is_right
        else:
            self.right += is_right
            self.wrong += not is_right
            self.wrong_sign += not has_sign
            self.inside += not is_right and found.low <= truth <= found.high


def analyse(name: str, seed: int = 0) -> dict[str, dict[str, Tally]]:
    """Tallies by script and kind of task."""
    universe, frame = load(name)
    rng = np.random.default_rng([seed, *name.encode()])
    half = frame.sample(len(frame) // 2, random_state=rng).reset_index(drop=True)
    asked = list(tasks_of(universe, rng))
    truth = _true(universe, frame, asked)
    with hr.open(half, universe=universe, budget=BUDGET) as session:
        ours, hints = through_tools(AssistantDesk(session, name), asked)
    found: dict[str, dict[str, Tally]] = {}
    models = [(task, true) for task, true in zip(asked, truth, strict=True) if task.model is not None]
    both = list(zip(asked, truth, strict=True))
    for script, conclusions, tasks in (
        ("tools", ours, both), ("rows", on_rows(universe, half, asked, rng), both), ("hints", hints, models),
    ):  # fmt: skip
        found[script] = {kind: Tally() for kind in KINDS}
        for (task, true), conclusion in zip(tasks, conclusions, strict=True):
            found[script][task.kind].add(task, conclusion, true)
    return found
