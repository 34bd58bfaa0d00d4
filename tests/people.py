"""A small made-up table of people, and a session on it, for several test files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import hedgerow as hr

SMALL = hr.Universe(age=hr.Integers(0, 7), sex=hr.Categories(["F", "M"]), smoker=hr.Flag(), region=hr.Integers(0, 3))


def frame(rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.binomial(7, 0.4, rows)
    smoker = rng.random(rows) < 0.1 + 0.08 * age
    return pd.DataFrame(
        {
            "age": age,
            "sex": np.where(rng.random(rows) < 0.5 + 0.05 * smoker, "F", "M"),
            "smoker": smoker,
            "region": np.minimum(3, rng.poisson(0.5 + 0.2 * age)),
        }
    )


def opened(table: Any, **options: Any) -> hr.Session:
    options = {"budget": hr.Budget(1.0, 1e-6), "seed": 1, **options}
    return hr.open(table, universe=SMALL, **options)
