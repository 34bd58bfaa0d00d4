"""Draw synthetic records whose counts match a hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow._memory import RECORD, require
from hedgerow.engine.certificate import Certificate
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis

if TYPE_CHECKING:
    import pandas as pd


def require_record_options(rows: Any, resolution: Any) -> int:
    """Refuse a number of records or a resolution that makes no sense; return the number."""
    if not isinstance(rows, int | np.integer) or isinstance(rows, bool) or rows < 1:
        raise InvalidInput(f"rows must be a whole number of at least 1. Found {rows!r}. Say how many records.")
    if resolution not in ("values", "bins"):
        raise InvalidInput(f"resolution must be 'values' or 'bins'. Found {resolution!r}. Choose one.")
    return int(rows)


def synthetic_records(
    hypothesis: Hypothesis,
    rows: int,
    randomness: Callable[[], np.random.Generator],
    resolution: Literal["values", "bins"],
    certificate: Certificate | None,
) -> pd.DataFrame:
    """Draw ``rows`` records from a hypothesis; with "values", a number is drawn uniformly inside its bin.

    ``attrs["certificate"]`` of the frame states the certificate.
    """
    import pandas as pd

    universe = hypothesis.universe
    require("Synthetic records", rows * len(universe.names), RECORD, "Draw fewer at a time", "values")
    generator = randomness()
    codes = hypothesis.sample(rows, generator, rounded=True)
    if resolution == "bins":
        columns = universe.decode(codes, numeric=True)
    else:
        columns = {
            name: universe[name].draw(codes[:, i], generator.random(len(codes)))
            for i, name in enumerate(universe.names)
        }
    records = pd.DataFrame(columns)
    if certificate is not None:
        records.attrs["certificate"] = str(certificate)  # every file format of a frame can store text
    return records
