"""Common statistics: quantiles, totals, variances, correlations, histograms, groups, most frequent values, differences.

Each is composed of linear queries (``composed``, ``ratios``), and its error bar holds together with theirs.

A new statistic is a module here that ends with ``offer(its class, its function)``, and a line below that imports it;
tests/test_adding.py shows one and holds it to every contract. The public name goes into ``hedgerow/__init__``.

- ``statistic``: the base, the registry, and questions that are asked together.
- ``quantiles``: the value below which a share of the records lies, found by a search over counts.
- ``totals``: the sum of an attribute over the records.
- ``spread``: variances and correlations, each from means of products near the mean.
- ``frequent``: the most frequent values of an attribute.
- ``differences``: differences of two numbers.
- ``histograms``: a count for each bin.
- ``groups``: one question for each cell of some attributes.
"""

from __future__ import annotations

from hedgerow.query.statistics.differences import BoundDifference, Difference, difference
from hedgerow.query.statistics.frequent import BoundTop, Top, top
from hedgerow.query.statistics.groups import MOST_GROUPS, GroupedQuestion, Groups, group_by, require_kept
from hedgerow.query.statistics.histograms import Histogram, histogram
from hedgerow.query.statistics.quantiles import (
    NOTHING,
    BoundQuantile,
    InterpolatedQuantile,
    QuantileStatistic,
    interpolated_quantile,
    median,
    quantile,
)
from hedgerow.query.statistics.spread import (
    BoundCorrelation,
    BoundVariance,
    Correlation,
    Variance,
    about,
    correlation,
    variance,
)
from hedgerow.query.statistics.statistic import (
    MAKERS,
    STATISTICS,
    OfRecords,
    SeveralQuestions,
    SingleQuestion,
    Statistic,
    offer,
    part_of,
    real_number,
    require_where,
    single,
)
from hedgerow.query.statistics.totals import BoundTotal, Total, total

__all__ = [
    "MAKERS",
    "MOST_GROUPS",
    "NOTHING",
    "STATISTICS",
    "BoundCorrelation",
    "BoundDifference",
    "BoundQuantile",
    "BoundTop",
    "BoundTotal",
    "BoundVariance",
    "Correlation",
    "Difference",
    "GroupedQuestion",
    "Groups",
    "Histogram",
    "InterpolatedQuantile",
    "OfRecords",
    "QuantileStatistic",
    "SeveralQuestions",
    "SingleQuestion",
    "Statistic",
    "Top",
    "Total",
    "Variance",
    "about",
    "correlation",
    "difference",
    "group_by",
    "histogram",
    "interpolated_quantile",
    "median",
    "offer",
    "part_of",
    "quantile",
    "real_number",
    "require_kept",
    "require_where",
    "single",
    "top",
    "total",
    "variance",
]
