"""Limit the rows of one person to at most k, chosen by a hash.

A person is identified by one column, the unit: by the text of its value under the rule of ``coding``, without the
blanks around it. All rows without a value belong to one person. The rows of a person are ordered by a hash of the
person, of the row's cells, and of a counter among the person's rows with the same cells. The first k rows in that order
are kept.

So the choice depends on the person's own rows alone: neither on other people's rows nor on the order in which an engine
delivers them. For each person it is as good as a random draw of k rows. The hash has no secret key, because privacy
holds for any rule that looks at one person only, and because the same table must be read in the same way tomorrow.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow._checks import whole
from hedgerow.data.coding import meaning, texts_of
from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes import BLANKS


@dataclass(frozen=True)
class PersonColumn:
    """The column that identifies a person, and ``rows``: k, the largest number of rows kept of one person."""

    column: str
    rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InvalidInput(
                f"unit must be the name of the column that tells persons apart. Found {type(self.column).__name__}. "
                "Give a text."
            )
        object.__setattr__(self, "rows", whole("rows_per_unit", self.rows))


def persons(column: Any) -> Any:
    """Return the person of each row, as an Arrow array of bytes."""
    import pyarrow as pa

    texts = texts_of(column).dictionary_encode()
    bare = [text.strip(BLANKS.encode()) for text in texts.dictionary.to_pylist()]
    return pa.array(bare, pa.large_binary()).take(texts.indices.cast(pa.int64()))


def person_of(value: Any) -> bytes:
    """Return the person that one value names, by the same rule as ``persons``."""
    return (meaning(value)[0] or "").strip(BLANKS).encode("utf-8", "replace")


def kept_rows(persons: Sequence[bytes], records: Sequence[str], most: int) -> list[int]:
    """Return the numbers of the rows that are kept, in order. ``kept_query`` states the same rule in SQL.

    ``records`` are texts that are equal for equal rows.
    """
    seen: Counter[tuple[bytes, str]] = Counter()
    marks: list[tuple[bytes, str, int]] = []
    for i, (person, record) in enumerate(zip(persons, records, strict=True)):
        seen[person, record] += 1
        marked = f"{person.hex().upper()}|{record}|{seen[person, record]}"
        marks.append((person, hashlib.md5(marked.encode(), usedforsecurity=False).hexdigest(), i))
    taken: Counter[bytes] = Counter()
    stay = []
    for person, _, i in sorted(marks):
        taken[person] += 1
        if taken[person] <= most:
            stay.append(i)
    return sorted(stay)


def kept_query(table: str, columns: list[str], most: int) -> str:
    """Return SQL that selects the cells of the kept rows from ``table``, which has a column ``unit``.

    DuckDB and Spark read the statement in the same way.
    """
    cells = ", ".join(columns)
    record = " || ',' || ".join(f"CAST({column} AS STRING)" for column in columns)
    again = f"SELECT *, row_number() OVER (PARTITION BY unit, {cells} ORDER BY unit) AS again FROM {table}"
    mark = f"md5(hex(unit) || '|' || {record} || '|' || CAST(again AS STRING))"
    placed = (
        f"SELECT {cells}, row_number() OVER (PARTITION BY unit ORDER BY {mark}, {cells}, again) AS place FROM ({again})"
    )
    return f"SELECT {cells} FROM ({placed}) WHERE place <= {most}"
