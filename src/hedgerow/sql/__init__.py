"""SQL as another way to ask: a SELECT becomes questions (``questions``), and their answers its rows.

syntax      parses; what is not understood is refused with its place
scope       the names a statement may use
conditions  WHERE as counts, with three truth values
statement   a SELECT as public values
result      asks, groups, sorts
cursor      the same as a PEP-249 connection
dialect     and as an SQLAlchemy dialect, for ``pandas.read_sql``
"""

from hedgerow.sql.result import Result, run

__all__ = ["Result", "run"]
