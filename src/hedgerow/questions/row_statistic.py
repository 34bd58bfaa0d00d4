"""The average of a function of one record's raw values, asked by a few records at random.

Paper: Fish, Reyzin & Rubinstein, *Sampling without compromising accuracy in adaptive data analysis*, §2.1: q: X → [0, 1].

A Python function sees raw values, and runs where they are: it is for the owner's own process. It has no form on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from hedgerow._checks import number
from hedgerow._types import Names
from hedgerow.errors import InvalidInput
from hedgerow.questions.bound import Bound
from hedgerow.questions.counts import Query, Resolution
from hedgerow.questions.universe import Universe


@final
class RowStatistic(Query):
    """See ``statistic``. Equal to another exactly when it is the same function object of the same attributes."""

    __slots__ = ("attributes", "function", "vectorised", "within")

    def __init__(self, function: Callable[..., Any], attributes: Names, within: float | None, vectorised: bool) -> None:
        self.function, self.attributes, self.within, self.vectorised = function, attributes, within, vectorised

    def on(self, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
        raise InvalidInput(
            "A statistic must be asked alone, of a session with rows. Found it among other questions. "
            "Use session.ask(hr.statistic(…)), opened with hr.open(…, rows=True)."
        )

    def _identity(self) -> Any:
        return ("statistic", id(self.function), self.attributes, self.vectorised)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", "…")
        return f"statistic({name}, {list(self.attributes)!r})"


def statistic(
    function: Callable[..., Any],
    attributes: str | Sequence[str],
    *,
    within: float | None = None,
    vectorised: bool = False,
) -> RowStatistic:
    """The average of ``function`` over the records, to ``within``: ``statistic(lambda age: age > 40, ["age"], within=0.05)``.

    The function gets the raw values of the attributes, in their order: numbers as floats (NaN where there is none), flags as
    bools, all else as texts ("" where missing). It returns a number from 0 to 1. One rule for everything else, for each row by
    itself: below 0 is 0, above 1 is 1, and what is no number, or raises, is 0.

    It is called once for every row of the sample, so that the value of a row cannot depend on others. ``vectorised``: it is
    called with arrays instead, and gives an array of as many values; whoever says so vouches that each value follows from its own
    row alone, to the last bit. The function runs in this process and sees private values: pass none that you have not read.
    """
    names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    if not callable(function):
        raise InvalidInput(
            f"function must be callable. Found a {type(function).__name__}. Give a function of a record."
        )
    if not names or not all(type(name) is str for name in names) or len(set(names)) < len(names):
        raise InvalidInput(
            f"attributes must be different names, at least one. Found {attributes!r}. List what it takes."
        )
    if within is not None and not 0 < number(within) <= 1:
        raise InvalidInput(f"within must be above 0 and at most 1. Found {within!r}. Give a fraction, such as 0.05.")
    return RowStatistic(function, names, None if within is None else number(within), bool(vectorised))
