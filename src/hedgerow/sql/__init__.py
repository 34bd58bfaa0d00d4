"""SQL as another way to ask: a SELECT becomes questions (``questions``), and their answers become its rows.

syntax      parse a statement; refuse what is not understood, with its place
scope       names that a statement may use
conditions  WHERE as counts, with three truth values
statement   a SELECT as public values
result      ask the questions; group, sort and limit the answers
cursor      a PEP-249 connection
dialect     an SQLAlchemy dialect, for ``pandas.read_sql``
"""

from hedgerow.sql.result import SqlResult, run_statement

__all__ = ["SqlResult", "run_statement"]
