"""Analysts who know the table, and choose every question to make a guaranteed bar fail.

Bars promise to hold for all answers of a session at once, whoever asks. The strongest analyst is one who knows the rows and sees the answers: they know the noise, ask
where it was largest, compose differences of its extremes, and buy again until they are lucky. A session fails if one of its bars misses the
truth, which is computed here from the raw values by NumPy, without any code of questions. The number of sessions that fail must be one that a
probability of at most β explains.

``python tests/attacks/adaptive_bars.py docs/attacks-bars.json`` runs all kinds and writes what was found.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import hedgerow as hr

SESSIONS = 200  # of each kind
FALSE_FAIL = 1e-6  # of a kind whose bars fail with probability β
BETAS = (0.05, 0.3)
ROUNDING = 1e-9  # of the truth: what float64 leaves
PLAIN = hr.Universe(a=hr.Integers(0, 4), b=hr.Integers(-2, 2), city=hr.Categories(["x", "y", "z", "w"]), flag=hr.Flag())
BINNED = hr.Universe(
    a=hr.Range(0, 80, bins=5, whole=True), b=hr.Range(-5, 5, bins=4), city=hr.Categories(["x", "y", "z", "w"]), flag=hr.Flag()
)  # fmt: skip
ENDS = {id(PLAIN): {"a": (0, 4), "b": (-2, 2)}, id(BINNED): {"a": (0, 80), "b": (-5, 5)}}
NUMBERS = ("a", "b")


# Tables


@dataclass(frozen=True, eq=False)
class People:
    """A raw table, and its values as they count: clamped, whole numbers rounded down, what is missing as the lowest."""

    universe: hr.Universe
    frame: pd.DataFrame
    values: dict[str, np.ndarray]

    @property
    def rows(self) -> int:
        return len(self.frame)

    def cells(self, name: str) -> np.ndarray:
        """The place of each row's value among the declared ones, by the declaration alone."""
        if name == "city":
            return np.array(["xyzw".index(city) for city in self.values[name]])
        if name == "flag":
            return self.values[name].astype(int)
        low, high = ENDS[id(self.universe)][name]
        size = self.universe[name].size
        if self.universe is PLAIN:
            return (self.values[name] - low).astype(int)
        return np.minimum(size - 1, np.floor((self.values[name] - low) / ((high - low) / size))).astype(int)

    def marginal(self, *names: str) -> np.ndarray:
        table = np.zeros([self.universe[name].size for name in names])
        np.add.at(table, tuple(self.cells(name) for name in names), 1.0)
        return table / self.rows


def people(rng: np.random.Generator, universe: hr.Universe, rows: int) -> People:
    """A table of one of several nasty kinds."""
    ends, n = ENDS[id(universe)], rows
    kind = rng.integers(0, 8)
    low, high = (np.array([ends[name][i] for name in NUMBERS], dtype=float) for i in (0, 1))
    u = rng.random((n, 2))
    if kind == 0:  # all in one cell
        u = np.repeat(rng.random((1, 2)), n, axis=0)
    elif kind == 1:  # extremes alone, the two columns alike or opposite
        ends_ = rng.integers(0, 2, n)
        u = np.stack([ends_, ends_ if rng.random() < 0.5 else 1 - ends_], axis=1).astype(float)
    elif kind == 2:  # correlated to nearly ±1
        u[:, 1] = np.clip((u[:, 0] if rng.random() < 0.5 else 1 - u[:, 0]) + 0.02 * rng.normal(size=n), 0, 1)
    elif kind == 3:  # one column is constant
        u[:, rng.integers(0, 2)] = rng.random()
    elif kind == 4:  # most at one end
        u = u**12
    numbers = low + u * (high - low)
    if universe is PLAIN or kind == 1:
        numbers = np.rint(numbers)
    weights = rng.dirichlet([0.3] * 4) if kind != 5 else np.full(4, 0.25)
    city = rng.choice(list("xyzw"), n, p=weights)
    if kind in (5, 6):  # ties: as many of each as there can be
        city = np.array(list("xyzw"))[np.arange(n) % 4]
    flag = rng.random(n) < rng.choice([0.0, 0.02, 0.5, 1.0])
    if rng.random() < 0.5:
        flag &= city != rng.choice(list("xyzw"))
    raw = {name: numbers[:, i].copy() for i, name in enumerate(NUMBERS)}
    if kind == 7:  # values that nobody declared
        for name in NUMBERS:
            odd = rng.random(n) < 0.2
            raw[name][odd] = rng.choice([1e300, -1e300, 81.0, -6.0, np.inf, -np.inf, np.nan], int(odd.sum()))
    values: dict[str, np.ndarray] = {"city": city, "flag": flag}
    for i, name in enumerate(NUMBERS):
        found = np.clip(np.where(np.isnan(raw[name]), low[i], raw[name]), low[i], high[i])
        values[name] = np.floor(found) if universe is PLAIN or name == "a" else found
    return People(universe, pd.DataFrame({**raw, "city": city, "flag": flag}), values)


def some_rows(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 2, 3, 20, 200, 600, 2000], p=[0.04, 0.04, 0.04, 0.08, 0.2, 0.3, 0.3]))


def some_budget(rng: np.random.Generator, least: float = 0.1) -> hr.Budget:
    epsilon = float(np.exp(rng.uniform(math.log(least), math.log(1e4))))
    return hr.Budget(epsilon, float(rng.choice([0.0, 1e-6])), str(rng.choice(["replace", "add-remove"])))


# Truths


def quantile_of(x: np.ndarray, q: float) -> float:
    """The smallest value that at least a share q have or are below."""
    if not len(x):
        return math.nan
    return float(np.sort(x)[max(1, math.ceil(Fraction(q) * len(x))) - 1])


def mean_of(x: np.ndarray) -> float:
    return float(np.mean(x)) if len(x) else math.nan


def variance_of(x: np.ndarray) -> float:
    return float(np.mean((x - np.mean(x)) ** 2)) if len(x) else math.nan


def correlation_of(x: np.ndarray, y: np.ndarray) -> float:
    if not len(x) or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / math.sqrt((x @ x) * (y @ y)))


# One session


@dataclass
class Attack:
    """A session, the table that its analyst knows, and every bar beside its error."""

    session: hr.Session
    table: People
    rng: np.random.Generator
    errors: list[float] = field(default_factory=list)
    bars: list[float] = field(default_factory=list)
    worst: tuple[float, str] = (0.0, "")
    unbounded: int = 0

    def judge(self, answer: Any, truth: Any, what: str = "") -> Any:
        """Keep an answer's errors and bars. A truth that is NaN does not exist: of nobody there is no mean."""
        self.judge_bar(answer.value, answer.error, truth, what or repr(answer.query))
        return answer

    def judge_bar(self, value: Any, bar: Any, truth: Any, what: str) -> None:
        values, truths = np.broadcast_arrays(np.asarray(value, dtype=float), np.asarray(truth, dtype=float))
        bars = np.broadcast_to(np.asarray(math.inf if bar is None else bar, dtype=float), truths.shape)
        for v, b, t in zip(values.ravel(), bars.ravel(), truths.ravel(), strict=True):
            if math.isnan(t):
                continue
            if not math.isfinite(b):
                self.unbounded += 1
                continue
            off = abs(v - t)
            self.errors.append(off)
            self.bars.append(float(b))
            room = ROUNDING * max(1.0, abs(t))
            ratio = off / (b + room)
            if not ratio <= self.worst[0]:
                self.worst = (ratio, f"{what}: {v!r} ± {b!r}, truth {t!r}")

    @property
    def fails(self) -> bool:
        return not self.worst[0] <= 1

    def ask(self, question: hr.Query, truth: Any, **options: Any) -> hr.Answer:
        return self.judge(self.session.ask(question, **options), truth)

    # What the analyst makes of what they know

    def conditions(self) -> list[tuple[hr.Query, np.ndarray]]:
        """Groups, the emptiest by what was answered among them, and what cuts bins; each with the rows that it is of."""
        t, found = self.table, []
        counted = self.ask(hr.marginal("city", "flag"), t.marginal("city", "flag"))
        order = np.argsort(counted.value, axis=None)
        for place in (order[0], order[1], order[-1], int(self.rng.integers(0, 8))):
            city, flag = "xyzw"[place // 2], bool(place % 2)
            found.append((hr.count(city=city, flag=flag), (t.values["city"] == city) & (t.values["flag"] == flag)))
        low, high = sorted(self.rng.uniform(*ENDS[id(t.universe)]["b"], 2).tolist())
        if math.floor(high) >= math.ceil(low):
            found.append((hr.count(b=(low, high)), (t.values["b"] >= low) & (t.values["b"] <= high)))
        found.append((hr.count(city={"x", "y"}) | hr.count(flag=True), np.isin(t.values["city"], ["x", "y"]) | t.values["flag"]))  # fmt: skip
        return found

    def some(self) -> list[tuple[hr.Query | None, np.ndarray]]:
        """All rows, the group that looks emptiest, and another."""
        groups = self.conditions()
        everyone = (None, np.ones(self.table.rows, bool))
        return [everyone, groups[0], groups[int(self.rng.integers(1, len(groups)))]]

    def misses(self, *names: str) -> np.ndarray:
        """The error of every cell of a table."""
        truth = self.table.marginal(*names)
        return np.asarray(self.ask(hr.marginal(*names), truth).value) - truth

    def among(self, name: str, rows: np.ndarray) -> np.ndarray:
        return self.table.values[name][rows]


def worst_product(errors: np.ndarray, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Sets of rows and columns whose errors add up to about the most there is."""
    columns = np.ones(errors.shape[1], bool)
    for _ in range(6):
        rows = sign * errors[:, columns].sum(axis=1) > 0
        columns = sign * errors[rows].sum(axis=0) > 0
    return rows, columns


# The kinds of analysts


def counts(x: Attack) -> None:
    """Sets of cells by the signs of their errors, runs, differences of the extremes, in fractions and rows."""
    t = x.table
    for names in (("a", "city"), ("b", "flag"), ("a", "b")):
        errors = x.misses(*names)
        cells = [t.cells(name) for name in names]
        for sign in (1, -1):
            sets = worst_product(errors, sign)
            if not (sets[0].any() and sets[1].any()):
                continue
            rows = sets[0][cells[0]] & sets[1][cells[1]]
            question = hr.count(dict(zip(names, sets, strict=True)))
            fraction = x.ask(question, rows.mean())
            inside = x.ask(question, rows.sum(), scale="rows")
            x.judge(1 - fraction, 1 - rows.mean(), "1 − answer")
            x.judge(inside * fraction, rows.sum() * rows.mean(), "a product of answers")
        along = errors.sum(axis=1)
        sums = np.cumsum(np.concatenate([[0.0], along]))
        low, high = sorted((int(np.argmax(sums)), int(np.argmin(sums))))
        if high > low:
            run = (np.arange(len(along)) >= low) & (np.arange(len(along)) < high)
            x.ask(hr.count({names[0]: run}), run[cells[0]].mean())
        most, least = (np.unravel_index(int(place), errors.shape) for place in (errors.argmax(), errors.argmin()))
        both = []
        for place in (most, least):
            masks = {name: np.arange(m) == i for name, m, i in zip(names, errors.shape, place, strict=True)}
            rows = np.logical_and.reduce([c == i for c, i in zip(cells, place, strict=True)])
            both.append((hr.count(masks), rows.mean()))
        answers = [x.ask(*each) for each in both]
        x.judge(answers[0] - answers[1], both[0][1] - both[1][1], "a difference of answers")


def quantiles(x: Attack) -> None:
    """At the steps of the believed distribution, and of the true one, of all and of the groups that look emptiest."""
    t = x.table
    for where, rows in x.some():
        name = str(x.rng.choice(NUMBERS))
        values = x.among(name, rows)
        steps = [float(x.rng.choice([0.0, 1.0, 0.5])), float(x.rng.random())]
        if len(values):
            place = int(x.rng.integers(0, len(values)))
            exact = (place + 1) / len(values)
            steps += [exact, float(x.rng.choice([math.nextafter(exact, 0.0), min(1.0, math.nextafter(exact, 2.0))]))]
        cell = int(x.rng.integers(0, t.universe[name].size))
        below = hr.count({name: np.arange(t.universe[name].size) <= cell})
        believed = x.session.ask(below if where is None else hr.share(below, where=where)).value
        steps.append(min(1.0, max(0.0, float(believed))))
        for q in steps:
            x.ask(hr.quantile(name, q, where=where), quantile_of(values, q))


def ratios(x: Attack) -> None:
    """With denominators that are next to nothing; numerators where the noise was largest."""
    groups = x.conditions()
    for (below, few), (above, many) in zip(groups, [*groups[2:], *groups[:2]], strict=True):
        with np.errstate(all="ignore"):
            x.ask(hr.ratio(above, below), np.float64(many.sum()) / few.sum() if few.sum() else math.nan)
        x.ask(hr.share(above, where=below), mean_of(many[few].astype(float)))
        up, down = x.ask(above, many.mean()), x.ask(below, few.mean())
        x.judge(up / down, many.sum() / few.sum() if few.sum() else math.nan, "a quotient of answers")
        rows = x.ask(above, many.sum(), scale="rows"), x.ask(below, few.sum(), scale="rows")
        x.judge(rows[0] / rows[1], many.sum() / few.sum() if few.sum() else math.nan, "a quotient of answers in rows")


def differences(x: Attack) -> None:
    """Ask for differences of the largest and the least of many answers: the winner's curse."""
    t = x.table
    found = x.ask(hr.group_by("city").mean("a"), [mean_of(x.among("a", t.values["city"] == c)) for c in "xyzw"])
    order = np.argsort(found.value)
    first, last = ("xyzw"[int(order[i])] for i in (-1, 0))
    truths = [mean_of(x.among("a", t.values["city"] == c)) for c in (first, last)]
    parts = [hr.mean("a", where=hr.count(city=c)) for c in (first, last)]
    x.ask(hr.difference(*parts), truths[0] - truths[1])
    x.judge(x.ask(parts[0], truths[0]) - x.ask(parts[1], truths[1]), truths[0] - truths[1], "a difference of means")
    errors = x.misses("a", "b")
    sets = [worst_product(errors, sign) for sign in (1, -1)]
    if all(s.any() for pair in sets for s in pair):
        truths = [float((r[t.cells("a")] & c[t.cells("b")]).mean()) for r, c in sets]
        asked = [hr.count(a=r, b=c) for r, c in sets]
        x.ask(hr.difference(*asked), truths[0] - truths[1])
        x.ask(hr.difference(*asked), (truths[0] - truths[1]) * t.rows, scale="rows")
    groups = x.conditions()
    for (one, here), (other, there) in ((groups[0], groups[2]), (groups[1], groups[-1])):
        x.ask(hr.difference(one, other), here.mean() - there.mean())
        x.ask(hr.difference(hr.median("b", where=one), hr.median("b", where=other)), quantile_of(x.among("b", here), 0.5) - quantile_of(x.among("b", there), 0.5))  # fmt: skip
        part = hr.count(a=errors.sum(axis=1) > 0) if (errors.sum(axis=1) > 0).any() else hr.count(flag=True)
        inside = (errors.sum(axis=1) > 0)[t.cells("a")] if (errors.sum(axis=1) > 0).any() else t.values["flag"]
        x.ask(hr.difference(hr.share(part, where=one), hr.share(part, where=other)), mean_of(inside[here].astype(float)) - mean_of(inside[there].astype(float)))  # fmt: skip


def variances(x: Attack) -> None:
    """Ask for variances over all rows, and over tiny groups."""
    for where, rows in x.some():
        for name in NUMBERS:
            x.ask(hr.variance(name, where=where), variance_of(x.among(name, rows)))


def correlations(x: Attack) -> None:
    """Near ±1, of columns that are constant, of tiny groups."""
    for where, rows in x.some():
        truth = correlation_of(*(x.among(name, rows) for name in NUMBERS))
        x.ask(hr.correlation(*NUMBERS, where=where), truth)
    x.ask(hr.correlation("a", "flag"), correlation_of(x.table.values["a"], x.table.values["flag"].astype(float)))


def tops(x: Attack) -> None:
    """At ties: whoever is among the k, by any order of equals, must be listed."""
    for name in ("city", "a", "b"):
        true, labels = x.table.marginal(name), list(x.table.universe[name].labels)
        for k in (1, 2, 3):
            answer = x.session.ask(hr.top(name, k))
            listed = [labels.index(label) for label in answer.labels[0][1]]
            x.judge(answer, true[listed], "top")
            must = np.flatnonzero(true >= np.sort(true)[::-1][k - 1] - 1e-12)
            certain = len(listed) == k  # nothing after them: the answer is certain
            missed = set(must.tolist()) - set(listed)
            if answer.error is not None and (missed or (certain and len(must) > k)):
                x.worst = (math.inf, f"top({name}, {k}) lists {listed}, the most frequent are {must.tolist()}")


def groups(x: Attack) -> None:
    """Means, shares, medians, totals and variances of every group, the empty ones too."""
    t = x.table
    one = [(t.values["city"] == c) for c in "xyzw"]
    name = str(x.rng.choice(NUMBERS))
    by = hr.group_by("city")
    choices = [(None, np.ones(t.rows, bool)), x.conditions()[-1]]
    for where, rows in (choices[int(x.rng.integers(0, 2))],):
        x.ask(by.mean(name, where=where), [mean_of(x.among(name, g & rows)) for g in one])
        x.ask(by.median(name, where=where), [quantile_of(x.among(name, g & rows), 0.5) for g in one])
        x.ask(by.total(name, where=where), [x.among(name, g & rows).sum() for g in one])
        x.ask(by.variance(name, where=where), [variance_of(x.among(name, g & rows)) for g in one])
        if where is not None:
            x.ask(by.count(where), [(g & rows).mean() for g in one])
            x.ask(by.count(where), [(g & rows).sum() for g in one], scale="rows")
        part = hr.count(flag=True)
        x.ask(by.share(part, where=where), [mean_of(t.values["flag"][g & rows].astype(float)) for g in one])
    x.ask(hr.total(name), t.values[name].sum())
    edges = np.unique(x.rng.uniform(*ENDS[id(t.universe)][name], 3))
    if len(edges) > 1:
        x.ask(hr.histogram(name, edges=edges.tolist()), np.histogram(t.values[name], edges)[0] / t.rows)


def coefficients(x: Attack) -> None:
    """θ against the best on the coded table: its excess risk, and each coefficient."""
    few = hr.minimize(hr.losses.Squared(target="a", features=("b",), where=hr.count(city="x")), hr.L2Ball(1.0))
    for i in x.rng.choice(4, 2, replace=False).tolist():
        question = (*MODELS, few)[i]
        answer = x.session.ask(question)
        best, excess = least_risk(x.table, question, np.asarray(answer.value))
        if excess is None:
            continue
        x.judge_bar(0.0, answer.error, excess, f"excess risk of {question!r}")
        frame = answer.coefficients
        guaranteed = frame["error"].notna() & (frame["basis"] == "guaranteed")
        x.judge_bar(frame["value"].to_numpy(), np.where(guaranteed, frame["error"], np.inf), best, f"coefficients of {question!r}")  # fmt: skip


MODELS = (
    hr.minimize(hr.losses.Squared(target="b", features=("a", "flag"), ridge=0.1), hr.L2Ball(2.0)),
    hr.minimize(hr.losses.Logistic(target="flag", features=("a", "b"), ridge=0.05), hr.L2Ball(3.0)),
    hr.minimize(hr.losses.Squared(target="b", features=("a",)), hr.L2Ball(1.0)),
)


def least_risk(table: People, question: hr.Query, theta: np.ndarray) -> tuple[np.ndarray, float | None]:
    """The best θ by projected gradient descent on the coded table, and how much worse another is; None of nobody."""
    bound = question.on(table.universe)
    weights = table.marginal(*bound.attributes)
    risk, over = bound.risk, bound.over
    objective = risk.objective(weights)
    if not float((weights * risk.mask()).sum()):
        return np.full(theta.shape, math.nan), None
    best, moved = np.zeros(risk.dimension), np.zeros(risk.dimension)
    step, k = 1 / risk.smoothness, 1.0
    for _ in range(4000):  # accelerated, of a smooth loss
        after = over.project(moved - step * objective.gradient(moved))
        k, before = (1 + math.sqrt(1 + 4 * k * k)) / 2, k
        moved = after + (before - 1) / k * (after - best)
        if np.abs(after - best).max() < 1e-13:
            break
        best = after
    return best, max(0.0, float(objective.value(theta) - objective.value(best)))


def purchases(x: Attack) -> None:
    """Bars that are bought: again and again, the same and what is next to it, each told what the last one said."""
    t = x.table
    groups, within = x.conditions(), 0.3
    for _ in range(3):
        errors = x.misses("a", "city")
        sets = worst_product(errors, 1 if x.rng.random() < 0.5 else -1)
        asked = groups[int(x.rng.integers(0, len(groups)))]
        if sets[0].any() and sets[1].any() and x.rng.random() < 0.7:
            asked = hr.count(a=sets[0], city=sets[1]), sets[0][t.cells("a")] & sets[1][t.cells("city")]
        within *= float(x.rng.choice([0.9, 0.5, 0.2]))
        name = str(x.rng.choice(NUMBERS))
        rows = asked[1]
        everyone = [
            (asked[0], rows.mean(), within),
            (hr.mean(name, where=asked[0]), mean_of(x.among(name, rows)), 5 * within),
            (hr.marginal(name), t.marginal(name), within),
            (hr.difference(asked[0], groups[0][0]), rows.mean() - groups[0][1].mean(), within),
            (hr.share(hr.count(flag=True), where=asked[0]), mean_of(t.values["flag"][rows].astype(float)), within),
        ]
        for question, truth, bar in everyone:
            with contextlib.suppress(hr.BudgetExceeded, hr.InvalidInput):
                answer = x.ask(question, truth, within=bar)
                assert answer.error is None or np.max(answer.error) <= bar * (1 + 1e-6)  # None: all that there may be
            x.ask(question, truth)


def sql(x: Attack) -> None:
    """Aggregates of groups that HAVING and ORDER BY choose by their noise."""
    t = x.table
    low = math.floor(float(x.rng.uniform(*ENDS[id(t.universe)]["a"])))
    outputs = {
        "s": "sum(b)", "m": "avg(b)", "v": "var_pop(a)", "w": "var_samp(a)", "d": "stddev(a)", "q": "quantile_disc(a, 0.5)", "md": "median(a)",
        "qc": "quantile_cont(b, 0.9)", "pd": "percentile_disc(0.25) WITHIN GROUP (ORDER BY a)", "lo": "min(a)", "hi": "max(b)",
        "r": "corr(a, b)", "part": "count(*) FILTER (WHERE flag) / count(*)", "flags": "avg(CASE WHEN flag THEN 1 ELSE 0 END)",
        "sc": f"sum(CASE WHEN a >= {low} THEN b END)",
    }  # fmt: skip
    asked = x.rng.choice(list(outputs), 3, replace=False)
    listed = ", ".join(f"{outputs[name]} AS {name}" for name in asked)
    statement = f"""
        SELECT city, count(*) AS n, {listed} FROM data WHERE a >= {low} OR flag
        GROUP BY city HAVING count(*) > 2 ORDER BY {x.rng.choice(asked)} DESC LIMIT 3"""
    frame = x.session.sql(statement)
    for _, row in frame.iterrows():
        rows = (t.values["city"] == row["city"]) & ((t.values["a"] >= low) | t.values["flag"])
        a, b, flag = (t.values[name][rows] for name in ("a", "b", "flag"))
        n = len(a)
        sample = variance_of(a) * n / (n - 1) if n > 1 else math.nan
        part = mean_of(flag.astype(float))
        truths = {
            "n": n, "s": b.sum(), "m": mean_of(b), "v": variance_of(a), "w": sample, "d": math.sqrt(sample), "q": quantile_of(a, 0.5),
            "md": float(np.median(a)) if n else math.nan, "qc": float(np.quantile(b, 0.9)) if n else math.nan,
            "pd": quantile_of(a, 0.25),
            "lo": quantile_of(a, 0.0), "hi": quantile_of(b, 1.0), "r": correlation_of(a, b), "part": part, "flags": part,
            "sc": b[a >= low].sum(),
        }  # fmt: skip
        for name in ("n", *asked):
            truth, bar = truths[name], row[f"{name}_error"]
            known = bar is not None and row[name] is not None and not math.isnan(float(bar))
            x.judge_bar(row[name] if known else 0.0, bar if known else None, truth, f"SQL {name}")


def theory(x: Attack) -> None:
    """The textbook's bar, of adaptive questions by the signs of what it said."""
    t = x.table
    chosen = np.ones(t.universe["a"].size, bool)
    for _ in range(8):
        answer = x.ask(hr.count(a=chosen), chosen[t.cells("a")].mean())
        x.ask(hr.mean("a", where=hr.count(flag=True)), mean_of(x.among("a", t.values["flag"])))
        x.ask(hr.count(a=chosen), chosen[t.cells("a")].sum(), scale="rows")
        x.ask(hr.total("b"), t.values["b"].sum())
        flipped = int(x.rng.integers(0, len(chosen)))
        chosen = chosen.copy()
        chosen[flipped] = answer.value < chosen[t.cells("a")].mean() or not chosen[flipped]
        if not chosen.any():
            chosen[:] = True
    x.misses("a", "flag")


def sampled(x: Attack) -> None:
    """Ask for statistics of a few random rows, weighted by earlier answers, and intervals of yes/no answers."""
    t = x.table
    said = 0.5
    for i in range(4):
        at = float(x.rng.uniform(*ENDS[id(t.universe)]["a"]))
        with contextlib.suppress(hr.BudgetExceeded):
            answer = x.session.ask(
                hr.statistic(lambda a, at=at, said=said: said if a > at else 0.9, ["a"], within=0.15)
            )
            x.judge(answer, np.where(raw(t, "a") > at, said, 0.9).mean(), f"statistic {i}")
            said = min(1.0, max(0.0, float(answer.value)))
    truth = t.values["flag"].mean()
    with contextlib.suppress(hr.BudgetExceeded):
        for number, found in enumerate(x.session.sample_yes_no_stream(hr.count(flag=True))):
            x.judge_bar(found.value, found.error, truth, "flips")
            if number > 200:
                break


def raw(table: People, name: str) -> np.ndarray:
    """As it was written, which is what a statistic sees; what is missing is above nothing."""
    return table.frame[name].to_numpy(dtype=float)


# Sessions that are opened otherwise


WIDE = hr.Universe(a=hr.Integers(0, 399), city=hr.Categories(["x", "y", "z", "w"]), flag=hr.Flag())


def merged(rng: np.random.Generator, beta: float, seed: int) -> Attack:
    """A wide attribute, whose rare values the model merges: sets of values by the signs of their errors, runs, quantiles, means."""
    n = int(rng.choice([300, 3000]))
    centre = rng.integers(0, 400, 5)
    a = np.clip(np.where(rng.random(n) < 0.8, rng.choice(centre, n), rng.integers(0, 400, n)), 0, 399).astype(float)
    values = {"a": a, "city": rng.choice(list("xyzw"), n, p=[0.6, 0.3, 0.1, 0.0]), "flag": rng.random(n) < 0.3}
    table = People(WIDE, pd.DataFrame(values), values)
    x = Attack(opened(table, some_budget(rng, 1.0), beta, seed), table, rng)
    errors = np.asarray(x.session.ask(hr.marginal("a")).value) - wide_marginal(table)
    x.judge(x.session.ask(hr.marginal("a")), wide_marginal(table))
    for chosen in (errors > 0, errors < 0, np.abs(errors) > np.quantile(np.abs(errors), 0.9)):
        if chosen.any():
            rows = chosen[a.astype(int)]
            x.ask(hr.count(a=chosen), rows.mean())
            x.ask(hr.count(a=chosen, flag=True), (rows & values["flag"]).mean())
    sums = np.cumsum(np.concatenate([[0.0], errors]))
    low, high = sorted((int(np.argmax(sums)), int(np.argmin(sums))))
    if high > low:
        x.ask(hr.count(a=(low, high - 1)), ((a >= low) & (a < high)).mean())
    for city in "xyzw":
        rows = values["city"] == city
        x.ask(hr.mean("a", where=hr.count(city=city)), mean_of(a[rows]))
        x.ask(hr.median("a", where=hr.count(city=city)), quantile_of(a[rows], 0.5))
    return x


def wide_marginal(table: People) -> np.ndarray:
    return np.bincount(table.values["a"].astype(int), minlength=400) / table.rows


def blocks(rng: np.random.Generator, beta: float, seed: int) -> Attack:
    """Several tables, each with its budget; questions about all, some and one, and rows over time after each."""
    universe = PLAIN if rng.random() < 0.5 else BINNED
    neighbours = str(rng.choice(["replace", "add-remove"]))
    delta = float(rng.choice([0.0, 1e-6]))

    def budget() -> hr.Budget:
        return hr.Budget(float(np.exp(rng.uniform(math.log(0.5), math.log(1e3)))), delta, neighbours)

    tables = [people(rng, universe, max(2, some_rows(rng))) for _ in range(int(rng.integers(2, 4)))]
    names = [f"b{i}" for i in range(len(tables))]
    session = hr.open(
        tables[0].frame, universe=universe, budget=budget(), beta=beta, seed=seed, block=names[0], reserve=0.2
    )
    for i in range(1, len(tables)):
        session.append(tables[i].frame, block=names[i], budget=budget())
    x = Attack(session, stacked(tables), rng)
    whole, parts = x.session, x.table
    views = [(session.select_blocks(names[-1]), tables[-1]), (session.select_blocks(*names[:2]), stacked(tables[:2]))]
    for view, table in (views[int(rng.integers(0, 2))], (whole, parts)):
        x.session, x.table = view, table
        for kind in rng.choice([ratios, quantiles, groups, counts], 1):
            kind(x)
    return x


def over_time(rng: np.random.Generator, beta: float, seed: int) -> Attack:
    """Rows of each block and of all so far, asked again after every block, of several series."""
    span, pure = int(rng.choice([1, 2, 4, 8])), float(rng.choice([0.0, 1e-6]))
    neighbours = str(rng.choice(["replace", "add-remove"]))

    def budget() -> hr.Budget:
        return hr.Budget(float(np.exp(rng.uniform(math.log(0.5), math.log(100)))), pure, neighbours)

    tables = [people(rng, TIMED, int(rng.choice([1, 5, 50, 400]))) for _ in range(5)]
    session = hr.open(tables[0].frame, universe=TIMED, budget=budget(), beta=beta, seed=seed, block="b0", reserve=0.3)
    x = Attack(session, tables[0], rng)
    series = [
        (hr.count(city="x"), lambda t: t.values["city"] == "x"),
        (hr.count(flag=True), lambda t: t.values["flag"]),
    ]
    for i in range(len(tables)):
        if i:
            session.append(tables[i].frame, block=f"b{i}", budget=budget())
        for question, holds in series:
            per_block = np.array([holds(t).sum() for t in tables[: i + 1]], dtype=float)
            truth = np.stack([per_block, np.cumsum(per_block)], axis=1)
            with contextlib.suppress(hr.BudgetExceeded):
                x.judge(session.ask(question.over_time(span=span, share=0.1)), truth)
    return x


TIMED = hr.Universe(city=hr.Categories(["x", "y", "z", "w"]), flag=hr.Flag())
ENDS[id(TIMED)] = {"a": (0, 1), "b": (0, 1)}


def stacked(tables: Sequence[People]) -> People:
    frame = pd.concat([t.frame for t in tables], ignore_index=True)
    values = {name: np.concatenate([t.values[name] for t in tables]) for name in tables[0].values}
    return People(tables[0].universe, frame, values)


def opened(table: People, budget: hr.Budget, beta: float, seed: int, **options: Any) -> hr.Session:
    return hr.open(table.frame, universe=table.universe, budget=budget, beta=beta, seed=seed, **options)


def of(analyst: Callable[[Attack], None], **options: Any) -> Callable[[np.random.Generator, float, int], Attack]:
    """The analyst on a table and a budget at random."""

    def attack(rng: np.random.Generator, beta: float, seed: int) -> Attack:
        table = people(rng, PLAIN if rng.random() < 0.6 else BINNED, some_rows(rng))
        x = Attack(opened(table, some_budget(rng), beta, seed, **options), table, rng)
        analyst(x)
        return x

    return attack


def with_reserve(rng: np.random.Generator, beta: float, seed: int) -> Attack:
    table = people(rng, PLAIN if rng.random() < 0.6 else BINNED, some_rows(rng))
    x = Attack(opened(table, some_budget(rng), beta, seed, reserve=float(rng.choice([0.3, 0.9]))), table, rng)
    purchases(x)
    return x


def with_models(rng: np.random.Generator, beta: float, seed: int) -> Attack:
    table = people(rng, PLAIN, some_rows(rng))
    declared = {"workload": [hr.marginal("a", "b"), *MODELS]} if rng.random() < 0.5 else {}
    x = Attack(opened(table, some_budget(rng), beta, seed, **declared), table, rng)
    coefficients(x)
    return x


def with_guard(rng: np.random.Generator, beta: float, seed: int) -> Attack:
    """Tables of single attributes alone are measured: what is asked of pairs has a guard's bar."""
    table = people(rng, PLAIN, int(rng.choice([2000, 20_000])))
    workload = [hr.marginal(name) for name in PLAIN.names]
    x = Attack(opened(table, some_budget(rng, 5.0), beta, seed, guard=0.2, workload=workload), table, rng)
    for kind in (counts, ratios):
        kind(x)
    return x


def by_theory(rng: np.random.Generator, beta: float, seed: int) -> Attack:
    table = people(rng, PLAIN, int(rng.choice([500, 5000])))
    budget = some_budget(rng, 1.0)
    x = Attack(opened(table, budget, beta, seed, profile="theory", queries=200), table, rng)
    theory(x)
    return x


def of_rows(rng: np.random.Generator, beta: float, seed: int) -> Attack:
    table = people(rng, PLAIN, 4000)
    budget = hr.Budget(float(np.exp(rng.uniform(0, math.log(100)))), 1e-6)
    x = Attack(opened(table, budget, beta, seed, keep_rows=True, reserve=0.9, queries=5), table, rng)
    sampled(x)
    return x


Kind = Callable[[np.random.Generator, float, int], Attack]
KINDS: dict[str, tuple[Kind, float, str]] = {
    "counts": (of(counts), 1.0, "sets and runs of cells by the signs of their errors, and arithmetic of them"),
    "quantiles": (of(quantiles), 1.0, "orders at the steps of the believed and of the true distribution"),
    "ratios and shares": (of(ratios), 1.0, "denominators that are next to nothing"),
    "differences": (of(differences), 1.0, "the largest less the least of many answers"),
    "variances": (of(variances), 1.0, "of all and of tiny groups"),
    "correlations": (of(correlations), 1.0, "near ±1, of constant columns, of tiny groups"),
    "top k": (of(tops), 1.0, "at ties"),
    "groups": (of(groups), 1.0, "means, medians, totals, shares and variances of groups, empty ones too"),
    "models": (with_models, 1.0, "excess risks and coefficients of linear and logistic regressions"),
    "within": (with_reserve, 1.0, "what is bought, again and again, by what the last one said"),
    "guard": (with_guard, 1.0, "questions that nothing measured, behind a guard"),
    "merged values": (merged, 1.0, "an attribute of 400 values, the rare of them merged"),
    "SQL": (of(sql), 1.0, "aggregates of the groups that HAVING, ORDER BY and LIMIT choose"),
    "blocks": (blocks, 2.0, "two and three tables, of all, some and one"),
    "over time": (over_time, 2.0, "five blocks, two series, asked after each"),
    "theory": (by_theory, 1.0, "the textbook profile"),
    "rows at random": (of_rows, 1.0, "statistics and flips"),
}
"""By name: how a session goes, of how many β its bars may fail, and what is asked."""


# All sessions of a kind


@dataclass(frozen=True)
class Found:
    """The outcomes of the sessions of a kind, by the β that they promised."""

    kind: str
    sessions: dict[float, int]
    failed: dict[float, int]
    allowed: dict[float, int]
    worst: tuple[float, str]
    bars: int
    unbounded: int
    median_bar: float
    median_error: float
    ratios: dict[float, list[float]]
    """Of each session the worst error over its bar."""

    @property
    def holds(self) -> bool:
        return all(self.failed[beta] <= self.allowed[beta] for beta in self.sessions)

    def __str__(self) -> str:
        times = f"{self.median_bar / self.median_error:.1f}" if self.median_error > 0 else "—"
        counts = "; ".join(
            f"{self.failed[b]} of {self.sessions[b]} at β = {b:g} (≤ {self.allowed[b]})" for b in self.sessions
        )
        return (
            f"{self.kind:18} {counts}; worst error/bar {self.worst[0]:.2f}; {self.bars:,} bars, {self.unbounded:,} answers without; "
            f"median bar/error {times}"
        )


def most_allowed(sessions: int, beta: float, false_fail: float = FALSE_FAIL) -> int:
    """The most failures among so many sessions that a probability of β explains."""
    return int(stats.binom.isf(false_fail, sessions, min(1.0, beta)))


def run(kind: str, sessions: int = SESSIONS, betas: Sequence[float] = BETAS, seed: int = 0) -> Found:
    attack, times, _ = KINDS[kind]
    failed, each = dict.fromkeys(betas, 0), {beta: sessions // len(betas) for beta in betas}
    errors, bars, worst, unbounded = [], [], (0.0, ""), 0
    ratios: dict[float, list[float]] = {beta: [] for beta in betas}
    for beta in betas:
        for i in range(each[beta]):
            rng = np.random.default_rng([seed, i, round(1000 * beta), *kind.encode()])
            x = attack(rng, beta, int(rng.integers(0, 2**31)))
            failed[beta] += x.fails
            errors += x.errors
            bars += x.bars
            unbounded += x.unbounded
            if not x.worst[0] <= worst[0]:
                worst = (x.worst[0], f"session {i} at β = {beta:g}: {x.worst[1]}")
            ratios[beta].append(float(x.worst[0]))
    allowed = {beta: most_allowed(each[beta], times * beta) for beta in betas}
    median = [float(np.median(found)) if found else math.nan for found in (bars, errors)]
    return Found(kind, each, failed, allowed, worst, len(bars), unbounded, median[0], median[1], ratios)


# Typical errors, which promise nothing and must be true


def typical_errors(sessions: int = 25, rows: int = 5000, seed: int = 0) -> dict[str, tuple[float, int]]:
    """Return the mean error over the mean typical error of each class of questions, and the number of answers."""
    said: dict[str, list[tuple[float, float]]] = {}
    for i in range(sessions):
        for delta, neighbours in ((0.0, "replace"), (1e-6, "replace"), (0.0, "add-remove"), (1e-6, "add-remove")):
            rng = np.random.default_rng([seed, i])
            table = ordinary(rng, rows)
            session = opened(table, hr.Budget(1.0, delta, neighbours), 0.05, i)
            for what, answer, truth in usual_questions(session, table, rng):
                if answer.typical is not None and not np.isnan(truth).any():
                    off = np.abs(np.asarray(answer.value) - truth)
                    said.setdefault(what, []).append((float(off.mean()), float(np.mean(answer.typical))))
    return {
        what: (sum(e for e, _ in found) / max(1e-300, sum(t for _, t in found)), len(found))
        for what, found in said.items()
    }


def ordinary(rng: np.random.Generator, rows: int) -> People:
    """Columns that depend on each other, as those of real tables do."""
    a = np.floor(5 * rng.random(rows) ** 2)
    b = np.clip(np.rint(a - 2 + rng.normal(size=rows)), -2, 2)
    values = {"a": a, "b": b, "city": rng.choice(list("xyzw"), rows, p=[0.5, 0.3, 0.15, 0.05]), "flag": rng.random(rows) < np.where(a > 2, 0.6, 0.1)}  # fmt: skip
    return People(PLAIN, pd.DataFrame(values), values)


def usual_questions(
    session: hr.Session, table: People, rng: np.random.Generator
) -> Iterator[tuple[str, hr.Answer, np.ndarray]]:
    values, n = table.values, table.rows
    yield "all rows, in rows", session.ask(hr.count(), scale="rows"), np.asarray(float(n))
    for names in (("a",), ("city",), ("a", "b"), ("a", "city", "flag")):
        truth = table.marginal(*names)
        yield f"cells of {len(names)} attributes", session.ask(hr.marginal(*names)), truth
        yield f"cells of {len(names)} attributes, in rows", session.ask(hr.marginal(*names), scale="rows"), truth * n
    sides = [(np.arange(5) < rng.integers(1, 5)) ^ (rng.random() < 0.5) for _ in range(2)]
    cities = np.isin(np.arange(4), rng.choice(4, int(rng.integers(1, 3)), replace=False))
    first, second, third = sides[0][table.cells("a")], sides[1][table.cells("b")], cities[table.cells("city")]
    part = hr.count(a=sides[0])
    one, other = session.ask(part), session.ask(hr.count(city=cities))
    yield "sets of 1 attribute", one, np.asarray(first.mean())
    yield "sets of 1 attribute, in rows", session.ask(part, scale="rows"), np.asarray(float(first.sum()))
    yield "sets of 2 attributes", session.ask(hr.count(a=sides[0], city=cities)), np.asarray((first & third).mean())
    every = hr.count(a=sides[0], b=sides[1], city=cities)
    yield "sets of 3 attributes", session.ask(every), np.asarray((first & second & third).mean())
    yield "means", session.ask(hr.mean("b")), np.asarray(values["b"].mean())
    yield "means among a set", session.ask(hr.mean("b", where=part)), np.asarray(mean_of(values["b"][first]))
    flags = mean_of(values["flag"][first].astype(float))
    yield "shares", session.ask(hr.share(hr.count(flag=True), where=part)), np.asarray(flags)
    yield "sums of answers", one + other, np.asarray(first.mean() + third.mean())
    yield "products of answers", one * other, np.asarray(first.mean() * third.mean())
    if third.mean() > 0.1:
        yield "quotients of answers", one / other, np.asarray(first.mean() / third.mean())


def row_of(found: Found) -> dict[str, Any]:
    """One row of the table of claims, and the figures that it is made of."""
    _, times, asked = KINDS[found.kind]
    said = "; ".join(
        f"{found.failed[b]} of {found.sessions[b]} sessions at β = {b:g} (at most {found.allowed[b]})"
        for b in found.sessions
    )
    return {
        "claim": f"All bars of a session hold together with probability 1 − {'2β' if times == 2 else 'β'}: {found.kind} ({asked})",
        "how": "attack",
        "where": f"tests/attacks/test_attacks_adaptive_bars.py::test_bars_hold_against_an_analyst_who_knows_the_table[{found.kind}]",
        "figure": f"failed in {said}; {found.bars:,} bars",
        "kind": found.kind,
        "sessions": sum(found.sessions.values()),
        "failed": sum(found.failed.values()),
        "allowed": sum(found.allowed.values()),
        "worst": round(min(float(found.worst[0]), 1e9), 3),
        "median_bar": float(f"{found.median_bar:.3g}"),
        "median_error": float(f"{found.median_error:.3g}"),
    }


def main(path: str, kinds: Sequence[str], sessions: int = SESSIONS) -> int:
    """Run the kinds, print what was found, and put it into the file beside what other kinds have there."""
    warnings.simplefilter("ignore")
    rows: dict[str, Any] = {}
    if os.path.exists(path):
        with open(path) as file:
            rows = {row["kind"]: row for row in json.load(file)}
    well = True
    for kind in (kind for kind in KINDS if not kinds or kind in kinds):
        began = time.process_time()
        found = run(kind, sessions)
        print(f"{found}  [{time.process_time() - began:.0f} s]", flush=True)
        if found.worst[0] > 1:
            print("   ", found.worst[1], flush=True)
        well &= found.holds
        rows[kind] = row_of(found)
        write(path, rows)
    if not kinds or TYPICAL in kinds:
        rows[TYPICAL] = row_of_typical(typical_errors())
        print(rows[TYPICAL]["figure"], flush=True)
        write(path, rows)
    return 0 if well else 1


def write(path: str, rows: dict[str, Any]) -> None:
    with open(path, "w") as file:
        json.dump([rows[name] for name in (*KINDS, TYPICAL) if name in rows], file, indent=1, ensure_ascii=False)
        file.write("\n")


TYPICAL = "typical errors"


def row_of_typical(found: dict[str, tuple[float, int]]) -> dict[str, Any]:
    return {
        "claim": "The typical error of a class of questions is within a factor of two of its mean error (mean error / mean typical error)",
        "how": "attack",
        "where": "tests/attacks/test_attacks_adaptive_bars.py::test_typical_errors_are_within_a_factor_of_two",
        "figure": "; ".join(f"{what} {ratio:.2f}" for what, (ratio, _) in found.items()),
        "kind": TYPICAL,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Attack guaranteed bars, and write what was found.")
    parser.add_argument("path", help="docs/attacks-bars.json")
    parser.add_argument("kinds", nargs="*", help="all unless some are named")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    given = parser.parse_args()
    sys.exit(main(given.path, given.kinds, given.sessions))
