"""Intervals of comparisons, trends, associations and survival curves hold, however misleading the known counts are.

A known count is an interval that contains the true count, often at an end; the hypothesis is another table. Then the
truth, computed here from the raw values, must be in the interval of every question: it is a theorem, so one miss refutes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import Table

UNIVERSE = hr.Universe(
    group=hr.Categories(["a", "b", "c"]), level=hr.Categories(["low", "high", "top"]), age=hr.Integers(0, 5),
    ill=hr.Flag(), cost=hr.Range(0, 100, bins=4),
)  # fmt: skip
PATIENTS = hr.Universe(months=hr.Integers(0, 5), died=hr.Flag())
SIDES = [(0.0, 1.0), (1.0, 0.0), (0.5, 0.5), (0.05, 0.05), (0.0, 0.0)]
TABLES = 60  # of each question


class Misled:
    """An analyst with intervals that contain the true counts, and with the hypothesis of another table."""

    def __init__(
        self, frame: pd.DataFrame, believed: pd.DataFrame, universe: hr.Universe, rng: np.random.Generator, width: float
    ) -> None:
        self.data, self.other = Table(frame, universe), Table(believed, universe)
        self.rng, self.width, self.least_rows = rng, width, float(len(frame))
        self.found: dict[Any, tuple[float, float]] = {}

    def interval(self, query: Any) -> tuple[float, float]:
        if query.key not in self.found:
            true = float((self.data.marginal(query.attributes) * query.table).sum() / self.data.rows)
            below, above = SIDES[int(self.rng.integers(0, len(SIDES)))] if query.attributes else (0.0, 0.0)
            self.found[query.key] = max(0.0, true - self.width * below), min(1.0, true + self.width * above)
        return self.found[query.key]

    def hypothesis_answer(self, query: Any) -> float:
        return float((self.other.marginal(query.attributes) * query.table).sum() / self.other.rows)

    def value(self, query: Any) -> float:
        low, high = self.interval(query)
        return min(high, max(low, self.hypothesis_answer(query)))


def people(rng: np.random.Generator) -> pd.DataFrame:
    rows = int(rng.choice([5, 30, 300]))
    group, age = (
        rng.choice(list("abc"), rows, p=rng.dirichlet([1.0] * 3)),
        rng.integers(0, int(rng.integers(2, 7)), rows),
    )
    ill = rng.random(rows) < np.clip(rng.choice([0.0, 0.1, 0.5, 0.9]) + rng.normal() * 0.2 * (age / 5), 0, 1)
    cost = np.clip(
        rng.choice([0, 30, 95]) + rng.normal() * 15 * age + 10 * (group == "a") + rng.normal(0, 3, rows), 0, 99.9
    )
    level = rng.choice(["low", "high", "top"], rows, p=rng.dirichlet([0.5] * 3))
    return pd.DataFrame({"group": group, "level": level, "age": age, "ill": ill, "cost": cost})


def over(x: Any, y: Any) -> float:
    return float(x) / float(y) if y else math.nan


def risk(frame: pd.DataFrame, group: str) -> float:
    return float(frame["ill"][frame["group"] == group].mean()) if (frame["group"] == group).any() else math.nan


def slope(x: np.ndarray, y: np.ndarray) -> float:
    x, y = np.asarray(x, float), np.asarray(y, float)
    return over(((x - x.mean()) * (y - y.mean())).sum(), ((x - x.mean()) ** 2).sum()) if len(x) else math.nan


def cramer(frame: pd.DataFrame, first: str, second: str) -> float:
    """Over the declared values, of which a table may lack some: those add nothing, but count for the size."""
    table = pd.crosstab(frame[first], frame[second]).to_numpy(float) / max(1, len(frame))
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    square = float(((table - expected) ** 2 / expected).sum()) if table.size else math.nan
    return math.sqrt(square / (min(UNIVERSE[first].size, UNIVERSE[second].size) - 1))


ILL, A, B = hr.count(ill=True), hr.count(group="a"), hr.count(group="b")
QUESTIONS: dict[str, tuple[hr.Query, Callable[[pd.DataFrame], float]]] = {
    "ratio of means": (
        hr.ratio(hr.mean("cost", A), hr.mean("cost", B)),
        lambda f: over(f["cost"][f["group"] == "a"].mean(), f["cost"][f["group"] == "b"].mean()),
    ),
    "difference of means": (
        hr.difference(hr.mean("cost", A), hr.mean("cost", B)),
        lambda f: float(f["cost"][f["group"] == "a"].mean() - f["cost"][f["group"] == "b"].mean()),
    ),
    "relative risk": (hr.relative_risk(ILL, A, B), lambda f: over(risk(f, "a"), risk(f, "b"))),
    "odds ratio": (
        hr.odds_ratio(ILL, A, B),
        lambda f: over(over(risk(f, "a"), 1 - risk(f, "a")), over(risk(f, "b"), 1 - risk(f, "b"))),
    ),
    "trend of a number": (hr.trend("cost", over="age"), lambda f: slope(f["age"], f["cost"])),
    "trend of a share": (hr.trend(ILL, over="age"), lambda f: slope(f["age"], f["ill"])),
    "trend over places": (
        hr.trend(ILL, over="level", where=A),
        lambda f: slope(
            f["level"][f["group"] == "a"].map({"low": 0, "high": 1, "top": 2}), f["ill"][f["group"] == "a"]
        ),
    ),
    "association, 2 × 3": (hr.cramers_v("group", "ill"), lambda f: cramer(f, "group", "ill")),
    "association, 3 × 6": (hr.cramers_v("age", "group"), lambda f: cramer(f, "age", "group")),
    "association in a group": (
        hr.cramers_v("level", "ill", where=A),
        lambda f: cramer(f[f["group"] == "a"], "level", "ill"),
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_truth_is_in_the_interval_whatever_is_known_and_believed_of_the_counts(name) -> None:
    query, true = QUESTIONS[name]
    asked, tried, said = query.on(UNIVERSE), 0, 0
    for seed in range(TABLES):
        rng = np.random.default_rng([7, seed, *name.encode()])
        frame = people(rng)
        truth = true(frame)
        if math.isnan(truth):
            continue
        known = Misled(frame, people(rng), UNIVERSE, rng, float(rng.choice([0.0, 1e-4, 0.003, 0.02, 0.1])))
        low, high = (float(end) for end in asked.ends(known))
        room = 1e-7 * max(1.0, abs(truth))
        assert low - room <= truth <= high + room, (seed, low, truth, high, known.width)
        tried += 1
        said += (low, high) != tuple(map(float, asked.limits))
    assert tried > TABLES // 3 and said > tried // 3


@pytest.mark.parametrize("censored", [0.05, 0.5, 0.9])
def test_the_true_curve_is_in_the_interval_whatever_is_known_and_believed_of_the_counts(censored) -> None:
    """If many are censored early, few are at risk later, and few events make the curve fall far."""
    asked = hr.survival("months", "died").on(PATIENTS)
    for seed in range(TABLES):
        rng = np.random.default_rng([9, seed, round(100 * censored)])

        def patients(rng: np.random.Generator = rng) -> pd.DataFrame:
            rows = int(rng.choice([5, 40, 400]))
            months = np.where(rng.random(rows) < censored, 0, rng.integers(0, 6, rows))
            return pd.DataFrame({"months": months, "died": rng.random(rows) < np.where(months == 0, 0.1, 0.7)})

        frame = patients()
        at_risk = np.array([(frame["months"] >= k).sum() for k in range(6)])
        deaths = np.array([((frame["months"] == k) & frame["died"]).sum() for k in range(6)])
        curve = np.cumprod(1 - np.divide(deaths, at_risk, out=np.zeros(6), where=at_risk > 0))
        known = Misled(frame, patients(), PATIENTS, rng, float(rng.choice([0.0, 1e-3, 0.02, 0.1])))
        low, high = asked.ends(known)
        assert (low - 1e-9 <= curve).all() and (curve <= high + 1e-9).all(), (seed, low, curve, high)
