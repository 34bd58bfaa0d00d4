"""List the strongest associations of a table for free, with error bars.

p_ij, p_i, p_j    shares of rows in a cell of two columns, and in the values of each column
V                 Cramér's V, of the hypothesis, with its interval (``query.statistics.contingency``)
p_ij − p_i p_j    how many more rows the cell has than independent columns would have; its bar follows from the bars
                  e_ij, e_i, e_j of the three shares: e_ij + e_i p_j + p_i e_j + e_i e_j
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow import _html
from hedgerow.answer import Answer
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.counts import Query, marginal
from hedgerow.query.statistics import cramers_v, cramers_v_of
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd

MOST_PAIRS = 5_000  # at most this many pairs of columns are compared, the smallest first
MOST_CELLS = 100_000  # a pair with more cells is not compared
COLUMNS = (
    *("first", "second", "cramers_v", "lower", "upper", "proven"),
    *("first_value", "second_value", "difference", "error"),
)

Ask = Callable[[Query], Answer]


@dataclass(frozen=True, eq=False)
class Association:
    """Two columns that depend on each other, with the cell that differs most from independence.

    ``lower`` and ``upper`` are the ends of the interval of Cramér's V. ``difference`` is p_ij − p_i p_j of that cell,
    ``error`` its bar.
    """

    columns: tuple[str, str]
    cramers_v: float
    lower: float
    upper: float
    values: tuple[Any, Any]
    difference: float
    error: float | None

    @property
    def is_proven(self) -> bool:
        """True if the error bars prove that the columns depend on each other."""
        apart = self.error is not None and abs(self.difference) > self.error
        return apart or self.lower > 0

    @property
    def strength(self) -> str:
        """Cramér's V in words, with its interval if the bars say anything about it."""
        if self.lower <= 0 and self.upper >= 1:
            return f"V {self.cramers_v:.3f} (not bounded)"
        if self.is_proven and self.lower < 0.0005:  # not "between 0.000": independence is excluded
            return f"V {self.cramers_v:.3f} (above 0, at most {self.upper:.3f})"
        return f"V {self.cramers_v:.3f} (between {self.lower:.3f} and {self.upper:.3f})"

    @property
    def cell(self) -> str:
        """The cell that differs most from independence."""
        return " and ".join(f"{name} = {value}" for name, value in zip(self.columns, self.values, strict=True))

    @property
    def contrast(self) -> str:
        """The share of that cell beyond independence, with its bar."""
        return f"{self.difference:+.3g}" + ("" if self.error is None else f" ± {self.error:.2g}")

    def __str__(self) -> str:
        proven = "proven" if self.is_proven else "not proven"
        return f"{' × '.join(self.columns)}: {self.strength}, {self.cell} {self.contrast}, {proven}"


class Associations(Sequence[Association]):
    """The strongest associations of a table, made by ``associations()``. All bars hold together, with those of answers.

    ``proven`` says of an association that the error bars exclude independent columns. One that is not proven may still
    be there.
    """

    def __init__(self, listed: Sequence[Association]) -> None:
        self._listed = tuple(listed)

    def __getitem__(self, place: Any) -> Any:
        return self._listed[place]

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[Association]:
        return iter(self._listed)

    @property
    def frame(self) -> pd.DataFrame:
        """The associations as a frame, the strongest first."""
        import pandas as pd

        lines = [
            (
                *(*one.columns, one.cramers_v, one.lower, one.upper, one.is_proven),
                *(*one.values, one.difference, math.nan if one.error is None else one.error),
            )
            for one in self._listed
        ]
        return pd.DataFrame([dict(zip(COLUMNS, row, strict=True)) for row in lines], columns=list(COLUMNS))

    def __str__(self) -> str:
        return "\n".join(map(str, self._listed)) or "No two columns can be compared."

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        lines = [
            (" × ".join(one.columns), one.strength, one.cell, one.contrast, "yes" if one.is_proven else "no")
            for one in self._listed
        ]
        return _html.table(("columns", "Cramér's V", "cell", "share beyond independence", "proven"), lines)


def strongest_associations(universe: Universe, hypothesis: Hypothesis, fraction: Ask, most: int) -> Associations:
    """Return the strongest associations between two columns, with the bars of free answers."""
    names = [name for name in universe.names if universe[name].size > 1]
    pairs = [pair for pair in itertools.combinations(names, 2) if universe.cells(pair) <= MOST_CELLS]
    pairs = sorted(pairs, key=lambda pair: (universe.cells(pair), pair))[:MOST_PAIRS]
    strengths = {pair: cramers_v_of(hypothesis.marginal(pair)) for pair in pairs}
    strongest = sorted(strengths, key=lambda pair: (-strengths[pair], pair))[:most]
    return Associations([_association(pair, strengths[pair], fraction) for pair in strongest])


def _association(pair: tuple[str, str], strength: float, fraction: Ask) -> Association:
    """Return an association with the cell that differs most from independence, and the bar of that difference."""
    joint, first, second = fraction(marginal(*pair)), fraction(marginal(pair[0])), fraction(marginal(pair[1]))
    apart = joint.value - np.outer(first.value, second.value)
    i, j = np.unravel_index(int(np.argmax(np.abs(apart))), apart.shape)
    error = None
    if joint.error is not None and first.error is not None and second.error is not None:
        e = float(np.broadcast_to(joint.error, apart.shape)[i, j])
        a, b = (float(np.broadcast_to(one.error, one.value.shape)[k]) for one, k in ((first, i), (second, j)))  # type: ignore[arg-type]
        p, q = float(first.value[i]), float(second.value[j])
        error = e + a * q + p * b + a * b
    ends = fraction(cramers_v(*pair)).interval
    lower, upper = (0.0, 1.0) if ends is None else (max(0.0, float(ends[0])), min(1.0, float(ends[1])))
    values = tuple(joint.labels[axis][1][k] for axis, k in ((0, i), (1, j)))
    return Association(pair, strength, lower, upper, (values[0], values[1]), float(apart[i, j]), error)
