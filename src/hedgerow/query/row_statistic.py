"""The average of a function of one record's raw values, estimated from a few random records.

Paper: Fish, Reyzin & Rubinstein, *Sampling without compromising accuracy in adaptive data analysis*, §2.1: q: X → [0,
1].

A Python function sees raw values and runs where they are. It is therefore for the owner's own process, and has no JSON
form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from hedgerow._checks import number
from hedgerow._renamed import renamed_parameters
from hedgerow._types import Names
from hedgerow.errors import InvalidInput
from hedgerow.query.bound import Bound
from hedgerow.query.counts import Query, Resolution
from hedgerow.universe.universe import Universe


@final
class RowStatistic(Query):
    """A question made by ``statistic``. Two are equal if they have the same function object and the same attributes."""

    __slots__ = ("attributes", "function", "population", "vectorised", "within")
    is_asked_alone = True

    def __init__(
        self,
        function: Callable[..., Any],
        attributes: Names,
        within: float | None,
        vectorised: bool,
        population: bool = False,
    ) -> None:
        self.function, self.attributes, self.within, self.vectorised = function, attributes, within, vectorised
        self.population = population

    def on(self, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
        """Refuse to bind: a statistic reads raw rows, not the coded table."""
        raise InvalidInput(
            "A statistic must be asked alone, in a session with rows. Found it among other questions. "
            "Use session.ask(hr.statistic(…)), opened with hr.open(…, keep_rows=True)."
        )

    def _identity(self) -> Any:
        return ("statistic", id(self.function), self.attributes, self.vectorised, self.population)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", "…")
        return f"statistic({name}, {list(self.attributes)!r})"


@renamed_parameters(spelling=True, vectorized="vectorised")
def statistic(
    function: Callable[..., Any],
    attributes: str | Sequence[str],
    *,
    within: float | None = None,
    vectorised: bool = False,
    population: bool = False,
) -> RowStatistic:
    """Ask for the average of ``function`` over the records, with an error of at most ``within``.

    The function gets the raw values of the attributes in the given order: numbers as floats (NaN if missing), flags as
    bools, everything else as text ("" if missing). It returns a number from 0 to 1. Each row is treated by itself: a
    value below 0 counts as 0, one above 1 as 1, and a value that is no number, or an exception, as 0. A function that
    fails, or is never from 0 to 1, on made-up records of the universe is refused before anything is charged.

    The function is called once for every row of the sample, so that the value of a row cannot depend on other rows. It
    runs in this process and sees private values: pass only functions that you have read.

    Parameters
    ----------
    function : callable
        The function of one record.
    attributes : str or sequence of str
        The attributes that it takes.
    within : float, optional
        The error bar. Default: the ``within`` of ``Session.ask``.
    vectorised : bool
        Call the function with arrays instead; it returns one value per row. The caller vouches that each value depends
        on its own row only, to the last bit.
    population : bool
        Ask for the average over the population from which the rows are independent draws; the error bar then holds for
        it. This is possible where the session's whole budget is small: ``within`` must be above e^ε − 1
        (docs/sampling.md).

    Returns
    -------
    RowStatistic

    Raises
    ------
    InvalidInput
        If the function cannot be called, the names are not different texts, or ``within`` is not in (0, 1].

    Example
    -------
    >>> session.ask(statistic(lambda age: age > 40, ["age"], within=0.05))  # doctest: +SKIP
    """
    names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    if not callable(function):
        raise InvalidInput(f"function must be callable. Found {type(function).__name__}. Give a function of a record.")
    if not names or not all(type(name) is str for name in names) or len(set(names)) < len(names):
        raise InvalidInput(
            f"attributes must be different names, at least one. Found {attributes!r}. List the function's arguments."
        )
    if within is not None and not 0 < number(within) <= 1:
        raise InvalidInput(f"within must be above 0 and at most 1. Found {within!r}. Give a fraction, such as 0.05.")
    return RowStatistic(function, names, None if within is None else number(within), bool(vectorised), bool(population))
