"""Seven made-up tables of common kinds, each with its universe, budget and options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import hedgerow as hr


@dataclass
class Kind:
    """A table, and which of its columns the usual questions are about."""

    frame: pd.DataFrame
    universe: hr.Universe
    number: str
    group: str
    flag: str
    budget: hr.Budget = field(default_factory=lambda: hr.Budget(1.0, 1e-7))
    how: dict[str, Any] = field(default_factory=dict)
    date: str | None = None


def _people(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["F", "M"], rows),
            "region": rng.choice(["north", "east", "south", "west"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "smoker": rng.random(rows) < 0.15 + 0.003 * (age - 18),
            "visits": np.minimum(rng.poisson(1 + age / 40), 12),
        }
    )


PEOPLE = {
    "age": hr.Integers(18, 89), "sex": hr.Categories(["F", "M"]), "smoker": hr.Flag(), "visits": hr.Integers(0, 12),
    "region": hr.Categories(["north", "east", "south", "west"]),
}  # fmt: skip


def small() -> Kind:
    """700 rows."""
    return Kind(_people(700), hr.Universe(PEOPLE), "age", "region", "smoker", hr.Budget(1.0, 1e-5))


def survey() -> Kind:
    """Answers from 1 to 5, of which many are missing or were refused."""
    rng, rows = np.random.default_rng(1), 6000
    frame = _people(rows, 1).astype({"age": float, "region": object})
    for i in range(6):
        frame[f"q{i}"] = np.where(rng.random(rows) < 0.25, None, rng.integers(1, 6, rows))
    frame.loc[rng.random(rows) < 0.1, "age"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "region"] = "refused"
    columns = {
        **PEOPLE, "age": hr.Integers(18, 89, missing=True), "region": hr.Categories(PEOPLE["region"].labels, other=True),
        **{f"q{i}": hr.Integers(1, 5, missing=True) for i in range(6)},
    }  # fmt: skip
    return Kind(frame, hr.Universe(columns), "age", "region", "smoker")


def dates() -> Kind:
    """Flights with the day of departure."""
    rng, rows = np.random.default_rng(2), 20_000
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2013-01-01") + pd.to_timedelta(rng.integers(0, 730, rows), unit="D"),
            "carrier": rng.choice(["AA", "B6", "DL", "UA"], rows), "delay": rng.normal(10, 30, rows),
            "late": rng.random(rows) < 0.3,
        }
    )  # fmt: skip
    universe = hr.Universe(
        day=hr.Dates("2013-01-01", "2014-12-31", by="month"), carrier=hr.Categories(["AA", "B6", "DL", "UA"]),
        delay=hr.Range(-60, 180, bins=24), late=hr.Flag(),
    )  # fmt: skip
    return Kind(frame, universe, "delay", "carrier", "late", date="day")


def wide() -> Kind:
    """42 columns."""
    rng, rows = np.random.default_rng(3), 5000
    frame = _people(rows, 3)
    for i in range(37):
        frame[f"item{i}"] = rng.integers(0, 2 + i % 4, rows)
    columns = {**PEOPLE, **{f"item{i}": hr.Integers(0, 1 + i % 4) for i in range(37)}}
    return Kind(frame, hr.Universe(columns), "age", "region", "smoker")


def large(rows: int = 30_000) -> Kind:
    """Many rows; the audit has a million."""
    return Kind(_people(rows, 4), hr.Universe(PEOPLE), "age", "region", "smoker", hr.Budget(1.0, 1e-9))


def several_rows() -> Kind:
    """Up to five visits a person."""
    rng, rows = np.random.default_rng(5), 12_000
    frame = _people(rows, 5).assign(person=rng.integers(0, 5000, rows))
    how = {"unit": "person", "rows_per_unit": 3}
    return Kind(frame, hr.Universe(PEOPLE), "age", "region", "smoker", hr.Budget(2.0, 1e-6, "add-remove"), how)


def wide_codes() -> Kind:
    """A diagnosis of 800 codes."""
    rng, rows = np.random.default_rng(6), 20_000
    frame = _people(rows, 6).assign(code=np.minimum(rng.zipf(1.3, rows), 800))
    universe = hr.Universe({**PEOPLE, "code": hr.Categories(list(range(1, 3001)))})
    return Kind(frame, universe, "age", "region", "smoker")


KINDS = {
    "small": small, "survey": survey, "dates": dates, "wide": wide, "large": large, "several rows": several_rows,
    "wide codes": wide_codes,
}  # fmt: skip
