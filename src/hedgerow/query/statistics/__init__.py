"""Common statistics: quantiles, totals, variances, correlations, histograms, groups, most frequent values, differences.

Each is composed of linear queries (``composed``, ``ratios``), and its error bar holds together with theirs.

To add a statistic, write a module here that ends with ``offer(its class, its function)``, and import it below.
tests/test_adding.py shows an example, which passes every contract. The public name goes into ``hedgerow/__init__``.

- ``statistic``: the base, the registry, and questions that are asked together.
- ``quantiles``: the value below which a share of the records lies, found by a search over counts.
- ``totals``: the sum of an attribute over the records.
- ``spread``: variances and correlations, each from means of products near the mean.
- ``frequent``: the most frequent values of an attribute.
- ``differences``: differences of two numbers.
- ``odds``: ratios of two numbers, relative risks and odds ratios.
- ``trends``: slopes over an ordered attribute.
- ``contingency``: the strength of an association, Cramér's V.
- ``curves``: survival curves from times and events.
- ``periods``: groups of dates.
- ``families``: comparisons of all groups with one, or of all pairs.
- ``histograms``: a count for each bin.
- ``groups``: one question for each cell of some attributes.
"""

from __future__ import annotations

from hedgerow.query.statistics.contingency import BoundAssociation, PairAssociation, cramers_v, cramers_v_of
from hedgerow.query.statistics.curves import BoundSurvival, Survival, survival
from hedgerow.query.statistics.differences import BoundDifference, Difference, difference
from hedgerow.query.statistics.families import GroupContrast, compare
from hedgerow.query.statistics.frequent import BoundTop, Top, top
from hedgerow.query.statistics.groups import MOST_GROUPS, GroupedQuestion, Groups, group_by, require_kept
from hedgerow.query.statistics.histograms import Histogram, histogram
from hedgerow.query.statistics.odds import (
    BoundOddsRatio,
    BoundQuotient,
    NumberRatio,
    OddsRatio,
    RelativeRisk,
    odds_ratio,
    ratio,
    relative_risk,
)
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
from hedgerow.query.statistics.trends import BoundTrend, Trend, trend

__all__ = [
    "MAKERS",
    "MOST_GROUPS",
    "NOTHING",
    "STATISTICS",
    "BoundAssociation",
    "BoundCorrelation",
    "BoundDifference",
    "BoundOddsRatio",
    "BoundQuantile",
    "BoundQuotient",
    "BoundSurvival",
    "BoundTop",
    "BoundTotal",
    "BoundTrend",
    "BoundVariance",
    "Correlation",
    "Difference",
    "GroupContrast",
    "GroupedQuestion",
    "Groups",
    "Histogram",
    "InterpolatedQuantile",
    "NumberRatio",
    "OddsRatio",
    "OfRecords",
    "PairAssociation",
    "QuantileStatistic",
    "RelativeRisk",
    "SeveralQuestions",
    "SingleQuestion",
    "Statistic",
    "Survival",
    "Top",
    "Total",
    "Trend",
    "Variance",
    "about",
    "compare",
    "correlation",
    "cramers_v",
    "cramers_v_of",
    "difference",
    "group_by",
    "histogram",
    "interpolated_quantile",
    "median",
    "odds_ratio",
    "offer",
    "part_of",
    "quantile",
    "ratio",
    "real_number",
    "relative_risk",
    "require_kept",
    "require_where",
    "single",
    "survival",
    "top",
    "total",
    "trend",
    "variance",
]
