"""Draw synthetic records whose counts match a hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow._memory import RECORD, require
from hedgerow.engine.certificate import Certificate
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.counts import Query, bound_condition, require_boolean
from hedgerow.query.linear import Linear
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd


REDRAWS = 100  # records that are impossible are drawn again at most this often


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
    impossible: Iterable[Query] = (),
) -> pd.DataFrame:
    """Draw ``rows`` records from a hypothesis; with "values", a number is drawn uniformly inside its bin.

    No record satisfies one of the conditions in ``impossible``.
    ``attrs["certificate"]`` of the frame states the certificate.
    """
    import pandas as pd

    universe = hypothesis.universe
    require("Synthetic records", rows * len(universe.names), RECORD, "Draw fewer at a time", "values")
    conditions, generator = _bind(impossible, universe), randomness()
    codes = _replace_impossible(hypothesis, hypothesis.sample(rows, generator, rounded=True), conditions, generator)
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


def unmix_columns(records: pd.DataFrame) -> pd.DataFrame:
    """Return records whose columns have one type each, as Parquet and Arrow require.

    Labels such as 0, 25 and "(other)" become texts if a column has texts and others.
    """
    mixed = {name: column for name, column in records.items() if column.dtype == object and _is_mixed(column)}
    return records.assign(**{str(n): c.map(str, na_action="ignore") for n, c in mixed.items()}) if mixed else records


def _is_mixed(column: pd.Series) -> bool:
    """Return True if a column has texts and values of other types."""
    are_texts = {isinstance(value, str) for value in column.dropna()}
    return len(are_texts) == 2


def _bind(impossible: Iterable[Query], universe: Universe) -> list[Linear]:
    """Bind the conditions that no record may satisfy; refuse one that cuts a bin."""
    if isinstance(impossible, Query | str) or not isinstance(impossible, Iterable):
        raise InvalidInput(f"impossible must be a list of counts. Found {type(impossible).__name__}. Put it in a list.")
    found = []
    for query in impossible:
        require_boolean(query)
        condition = bound_condition(query, universe)
        if not condition.is_exact:
            raise InvalidInput(
                f"impossible must name whole bins, because a record is drawn as cells. Found {query!r}, which cuts "
                "one. Use the ends of bins, or declare finer ones."
            )
        found.append(condition.low)
    return found


def _replace_impossible(
    hypothesis: Hypothesis, codes: NDArray[np.int32], conditions: Sequence[Linear], generator: np.random.Generator
) -> NDArray[np.int32]:
    """Draw again the records that satisfy a condition, until none does."""
    for _ in range(REDRAWS if conditions else 0):
        wrong = np.zeros(len(codes), bool)
        for query in conditions:
            places = tuple(codes[:, hypothesis.universe.index(name)] for name in query.attributes)
            wrong |= np.asarray(query.table)[places].astype(bool)
        if not wrong.any():
            return codes
        codes[wrong] = hypothesis.sample(int(wrong.sum()), generator)
    if not conditions:
        return codes
    raise InvalidInput(
        f"impossible must leave records that the hypothesis believes in. Found hardly any after {REDRAWS} draws. Name "
        "fewer combinations."
    )
