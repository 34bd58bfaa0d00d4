"""The only code that sees rows: it reads a table, codes its rows into cells and counts them.

- ``source``: the interface through which mechanisms see a table. ``coded_rows``, ``table`` and ``spark_table``
  implement it, and ``table.open_source`` chooses between the last two.
- ``readers``: bring the rows of any source in batches. ``csv_file``, ``parquet_files``, ``postgres_table`` and
  ``spark_frame`` read one kind of source each.
- ``schema``: the columns that a reader gives, what their types say publicly, and the refusal that quotes no row.
- ``coding``: the rule that gives each value its cell.
- ``contributions``: limits the rows of one person.
- ``counting``: counts many tables in one scan, and turns a question into a whole number of grid steps.
- ``row_store`` and ``row_values``: raw rows in random order, and the values that a function gives them.
- ``value_counts`` and ``owner_inspection``: the values of columns, for drafting a universe and for the owner's eyes.

The readers are imported with ``Table``, when it is first used: what answers without the table does without them.
"""

from typing import TYPE_CHECKING, Any

from hedgerow.data.coded_rows import CodedRows
from hedgerow.data.source import DataSource, HistogramSource

if TYPE_CHECKING:
    from hedgerow.data.table import Table

__all__ = ["CodedRows", "DataSource", "HistogramSource", "Table"]


def __getattr__(name: str) -> Any:
    if name == "Table":
        from hedgerow.data.table import Table

        return Table
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
