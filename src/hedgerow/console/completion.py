"""Names that the SQL editor completes besides those of the dataset. docs/sql.md describes them."""

FUNCTIONS = (
    "count", "sum", "avg", "min", "max", "median", "quantile_cont", "percentile_cont", "var_pop", "stddev_pop", "corr",
)  # fmt: skip
KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ROLLUP", "CUBE", "GROUPING SETS", "HAVING", "ORDER BY", "DESC", "LIMIT", "AND", "OR",
    "NOT", "IN", "BETWEEN", "IS NULL", "AS", "CASE", "WHEN", "THEN", "ELSE", "END", "FILTER", "WITHIN GROUP",
)  # fmt: skip
