"""Which rows of a person are kept, where each may have several: at most k, chosen by a hash.

A person is what the rows say of them in one column, the unit: the text of its value by the rule of ``coding``, blanks around it aside. Rows that
say nothing are one person's. The rows of a person are put in the order of a hash of the person, of the row's cells, and of how many
rows of the person have had these cells, and the first k stay. So which stay depends on the person's own rows alone, whatever the
others have and in whatever order an engine brings them; and for each person it is as good as a draw of k of the rows. The hash has no
secret: privacy holds for any rule that looks at one person, and the same table must be read alike tomorrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hedgerow._checks import whole
from hedgerow.data.coding import texts_of
from hedgerow.errors import InvalidInput
from hedgerow.questions.attributes import BLANKS


@dataclass(frozen=True)
class Unit:
    """``column``: whose value tells a row's person. ``rows``: k, the most that are kept of one."""

    column: str
    rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InvalidInput(
                f"unit must be the name of the column that tells persons apart. Found a {type(self.column).__name__}. Give a text."
            )
        object.__setattr__(self, "rows", whole("rows_per_unit", self.rows))


def persons(column: Any) -> Any:
    """Whose each row is: an Arrow array of bytes."""
    import pyarrow as pa

    texts = texts_of(column).dictionary_encode()
    bare = [text.strip(BLANKS.encode()) for text in texts.dictionary.to_pylist()]
    return pa.array(bare, pa.large_binary()).take(texts.indices.cast(pa.int64()))


def kept_query(rows: str, columns: list[str], most: int) -> str:
    """SQL for the cells that stay, of a table ``rows`` with ``unit``, in words that DuckDB and Spark read alike."""
    cells = ", ".join(columns)
    record = " || ',' || ".join(f"CAST({column} AS STRING)" for column in columns)
    again = f"SELECT *, row_number() OVER (PARTITION BY unit, {cells} ORDER BY unit) AS again FROM {rows}"
    mark = f"md5(hex(unit) || '|' || {record} || '|' || CAST(again AS STRING))"
    placed = (
        f"SELECT {cells}, row_number() OVER (PARTITION BY unit ORDER BY {mark}, {cells}, again) AS place FROM ({again})"
    )
    return f"SELECT {cells} FROM ({placed}) WHERE place <= {most}"
