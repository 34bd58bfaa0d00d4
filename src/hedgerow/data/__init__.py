"""The only code that sees rows: how a table is read, coded into cells and counted.

``source`` is what a mechanism may ask of a table; ``histogram`` and ``table`` are the two there are. ``readers`` and
``csv_file`` bring the rows of a source, ``coding`` has the rule by which each value gets its cell. ``exact_counts`` turns a
question into a whole number of grid steps of the rows it counts.
"""

from hedgerow.data.histogram import Histogram
from hedgerow.data.source import DataSource
from hedgerow.data.table import Table

__all__ = ["DataSource", "Histogram", "Table"]
