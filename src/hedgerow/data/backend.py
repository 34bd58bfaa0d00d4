"""Choose where the cells of a source are kept and counted: on its cluster, or in an embedded engine of this process."""

from __future__ import annotations

from typing import Any

from hedgerow.data.contributions import PersonColumn
from hedgerow.data.csv_file import Csv
from hedgerow.data.readers import TrustSchema
from hedgerow.data.source import DataSource
from hedgerow.data.spark_frame import spark_frame
from hedgerow.data.spark_table import SparkTable
from hedgerow.data.table import Table
from hedgerow.universe.universe import Universe


def open_source(
    source: Any,
    universe: Universe,
    *,
    table: str | None = None,
    csv: Csv | None = None,
    unit: PersonColumn | None = None,
) -> DataSource:
    """Read and code a source, and return it as a ``DataSource``.

    A Spark frame stays on its cluster. The cells of all other sources are copied into this process.
    """
    typed = isinstance(source, TrustSchema)
    frame = None if csv is not None or table is not None else spark_frame(source.source if typed else source)
    if frame is not None:
        return SparkTable(TrustSchema(frame) if typed else frame, universe, unit)
    return Table(source, universe, table=table, csv=csv, unit=unit)
