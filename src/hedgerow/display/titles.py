"""Say a question in plain words: for the titles of pictures and the lines of a report."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from hedgerow.convex.minimize import Minimize
from hedgerow.query.counts import CombinedQuery, Count, Marginal, Not, OverTime, Parity, Query, WeightedQuery
from hedgerow.query.ratios import Mean, Ratio, Share
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.query.statistics.contingency import PairAssociation
from hedgerow.query.statistics.curves import Survival
from hedgerow.query.statistics.differences import Difference
from hedgerow.query.statistics.families import GroupContrast
from hedgerow.query.statistics.frequent import Top
from hedgerow.query.statistics.groups import GroupedQuestion
from hedgerow.query.statistics.histograms import Histogram
from hedgerow.query.statistics.odds import NumberRatio, RelativeRisk
from hedgerow.query.statistics.quantiles import QuantileStatistic
from hedgerow.query.statistics.spread import Correlation, Variance
from hedgerow.query.statistics.totals import Total
from hedgerow.query.statistics.trends import Trend
from hedgerow.universe.attributes import not_

LISTED = 8  # a set of more values is shown by its number
EVERYONE = "all rows"
UNINFORMATIVE = "uninformative"  # an answer or a cell whose interval covers all possible values


@singledispatch
def title(query: Any) -> str:
    """Return a question as a phrase without a full stop."""
    return repr(query)


@title.register
def _(query: Count) -> str:
    return f"rows where {condition(query)}" if query.predicates else EVERYONE


@title.register(CombinedQuery)
@title.register(Not)
def _(query: Query) -> str:
    return f"rows where {condition(query)}"


@title.register
def _(query: Parity) -> str:
    return f"rows in which an odd number of {_join(query.attributes)} hold"


@title.register
def _(query: WeightedQuery) -> str:
    if np.isin(query.weights, (0.0, 1.0)).all():
        cells = f"{int(query.weights.sum()):,} of the {query.weights.size:,} combinations"
        return f"rows in {cells} of {_join(query.attributes)}"
    return f"weighted count over {_join(query.attributes)}"


@title.register
def _(query: OverTime) -> str:
    return f"{title(query.counted)}, over time"


@title.register
def _(query: Marginal) -> str:
    return f"rows by {_join(query.attributes)}"


@title.register
def _(query: Mean) -> str:
    return f"mean of {query.attribute}{_where(query.where)}"


@title.register
def _(query: Total) -> str:
    return f"sum of {query.attribute}{_where(query.where)}"


@title.register
def _(query: Variance) -> str:
    return f"variance of {query.attribute}{_where(query.where)}"


@title.register
def _(query: Correlation) -> str:
    return f"correlation of {query.first} and {query.second}{_where(query.where)}"


@title.register
def _(query: QuantileStatistic) -> str:
    called = "median" if query.q == 0.5 else f"{100 * query.q:g} % quantile"
    return f"{called} of {query.attribute}{_where(query.where)}"


@title.register
def _(query: Share) -> str:
    among = "" if query.where == Count(()) else f", among {title(query.where)}"
    return f"share where {condition(query.part)}{among}"


@title.register(Ratio)
@title.register(NumberRatio)
def _(query: Any) -> str:
    return f"{title(query.above)}, divided by {title(query.below)}"


@title.register
def _(query: RelativeRisk) -> str:
    return f"{query.called} of {condition(query.part)}: {condition(query.first)}, against {condition(query.second)}"


@title.register
def _(query: Trend) -> str:
    return f"trend of {title(query.of)} over {query.over}{_where(query.where)}"


@title.register
def _(query: PairAssociation) -> str:
    return f"association of {query.first} and {query.second} (Cramér's V){_where(query.where)}"


@title.register
def _(query: GroupContrast) -> str:
    pairs = "all pairs" if query.against is None else f"each against {condition(query.against)}"
    return f"{title(query.of)}: {query.measure}s, {pairs}"


@title.register
def _(query: Difference) -> str:
    return f"{title(query.first)}, minus {title(query.second)}"


@title.register
def _(query: Histogram) -> str:
    return f"rows by {query.attribute}{_where(query.where)}"


@title.register
def _(query: Survival) -> str:
    return f"share without the event ({condition(query.event)}), by {query.time}{_where(query.where)}"


@title.register
def _(query: Top) -> str:
    return f"the {query.k} most frequent values of {query.attribute}"


@title.register
def _(query: GroupedQuestion) -> str:
    by = "" if query.by is None else f", dates by {query.by}"
    return f"{'rows' if query.of is None else title(query.of)}, by {_join(query.attributes)}{by}"


@title.register
def _(query: Minimize) -> str:
    loss = query.loss
    target, features = getattr(loss, "target", None), getattr(loss, "features", None)
    if target is None or features is None:
        return f"model of {_join(getattr(loss, 'attributes', ()))} by a loss of the analyst's own"
    among = _where(getattr(loss, "where", None))
    return f"{type(loss).__name__.lower()} model of {target} on {_join(features) or 'a constant'}{among}"


@title.register
def _(query: RowStatistic) -> str:
    name = getattr(query.function, "__name__", "")
    called = "a function of the analyst's own" if name in ("", "<lambda>") else name
    return f"mean of {called} over {_join(query.attributes)}"


@singledispatch
def condition(query: Query) -> str:
    """Return a condition as a phrase, such as "sex is F and age is 40 to 65"."""
    return title(query)


@condition.register
def _(query: Count) -> str:
    parts = [_predicate(name, predicate) for name, predicate in query.predicates]
    return " and ".join(parts) or "anything holds"


@condition.register
def _(query: CombinedQuery) -> str:
    return f" {query.operation} ".join(_in_brackets(part) for part in query.parts)


@condition.register
def _(query: Not) -> str:
    predicates: tuple[Any, ...] = getattr(query.part, "predicates", ())
    if len(predicates) == 1:
        ((name, predicate),) = predicates
        return _predicate(name, not_(predicate))
    return f"not {_in_brackets(query.part)}"


def sentence(query: Any) -> str:
    """Return the phrase of a question with a capital, as a title."""
    said = title(query)
    return said[:1].upper() + said[1:]


@singledispatch
def unit(query: Any, in_rows: bool) -> str:
    """Return the quantity that an answer to the question measures, as the title of an axis."""
    return "value"


@unit.register(Count)
@unit.register(CombinedQuery)
@unit.register(Not)
@unit.register(Marginal)
@unit.register(Histogram)
@unit.register(Parity)
@unit.register(Top)
def _(query: Any, in_rows: bool) -> str:
    return "number of rows" if in_rows else "share of rows"


@unit.register
def _(query: WeightedQuery, in_rows: bool) -> str:
    is_count = np.isin(query.weights, (0.0, 1.0)).all()
    return ("number of rows" if in_rows else "share of rows") if is_count else "value"


@unit.register
def _(query: GroupedQuestion, in_rows: bool) -> str:
    return unit(Count(()) if query.of is None else query.of, in_rows)


@unit.register
def _(query: GroupContrast, in_rows: bool) -> str:
    return f"difference in {unit(query.of, in_rows)}" if query.measure == "difference" else "ratio"


@unit.register
def _(query: Difference, in_rows: bool) -> str:
    first, second = unit(query.first, in_rows), unit(query.second, in_rows)
    return f"difference in {first}" if first == second else "difference"


@unit.register(Ratio)
@unit.register(NumberRatio)
@unit.register(RelativeRisk)
def _(query: Any, in_rows: bool) -> str:
    return "ratio"


@unit.register
def _(query: Trend, in_rows: bool) -> str:
    return f"change for each unit of {query.over}"


@unit.register
def _(query: PairAssociation, in_rows: bool) -> str:
    return "Cramér's V, from 0 to 1"


@unit.register(Mean)
@unit.register(Variance)
@unit.register(QuantileStatistic)
@unit.register(Correlation)
@unit.register(Total)
def _(query: Any, in_rows: bool) -> str:
    return title(query).partition(" where ")[0]


@unit.register(Share)
@unit.register(Survival)
def _(query: Any, in_rows: bool) -> str:
    return "share of those rows"


def label(value: Any) -> str:
    """Return the label of a cell as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def _in_brackets(query: Query) -> str:
    return f"({condition(query)})" if query.is_compound else condition(query)


def _where(query: Query | None) -> str:
    return "" if query is None or query == Count(()) else f" where {condition(query)}"


def _predicate(name: str, predicate: Any) -> str:
    """Return the predicate on one attribute as a phrase."""
    match predicate:
        case bool() | np.bool_():
            return f"{name} holds" if predicate else f"{name} does not hold"
        case not_(predicate=bool() | np.bool_()):
            return _predicate(name, not predicate.predicate)
        case not_():
            return _predicate(name, predicate.predicate).replace(f"{name} is", f"{name} is not", 1)
        case np.ndarray():
            plain = np.asarray(predicate)
            return f"{name} is in {int(plain.sum())} of {plain.size} cells"
        case tuple() if len(predicate) == 2:
            low, high = predicate
            if low is None or high is None:
                return f"{name} is " + (f"at most {label(high)}" if low is None else f"at least {label(low)}")
            return f"{name} is {label(low)} to {label(high)}"
        case set() | frozenset() | list():
            values = sorted((label(value) for value in predicate), key=lambda text: (len(text), text))
            if len(values) > LISTED:
                return f"{name} is one of {len(values)} values"
            return f"{name} is {_join(values, 'or')}"
    return f"{name} is {label(predicate)}"


def _join(names: Any, last: str = "and") -> str:
    """Join names with commas and a last word."""
    *most, end = [str(name) for name in names] or [""]
    return f"{', '.join(most)} {last} {end}" if most else end
