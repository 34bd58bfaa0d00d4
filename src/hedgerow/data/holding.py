"""Where the cells of a source are held and counted: on its cluster, or here, in an embedded engine."""

from __future__ import annotations

from typing import Any

from hedgerow.data.contributions import Unit
from hedgerow.data.csv_file import Csv
from hedgerow.data.readers import Typed
from hedgerow.data.source import DataSource
from hedgerow.data.spark_frame import spark_frame
from hedgerow.data.spark_table import SparkTable
from hedgerow.data.table import Table
from hedgerow.questions.universe import Universe


def held(
    source: Any, universe: Universe, *, table: str | None = None, csv: Csv | None = None, unit: Unit | None = None
) -> DataSource:
    """The source, read once and coded. A frame of Spark stays on its cluster; all else is copied, as cells, to this process."""
    typed = isinstance(source, Typed)
    frame = None if csv is not None or table is not None else spark_frame(source.source if typed else source)
    if frame is not None:
        return SparkTable(Typed(frame) if typed else frame, universe, unit)
    return Table(source, universe, table=table, csv=csv, unit=unit)
