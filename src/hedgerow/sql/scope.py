"""Names that a statement may use: the table, its alias and the columns of the universe."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import expressions as exp

from hedgerow.sql.syntax import INSTEAD_OF_A_COLUMN, bare, parts, refuse
from hedgerow.universe.universe import Universe

TABLE = "data"  # name of the only table


@dataclass(frozen=True)
class Scope:
    """Columns that are visible, and the name of their table."""

    universe: Universe
    table: str
    columns: tuple[str, ...]

    def column(self, node: exp.Expression) -> str:
        """Return the attribute that a column names. Case matters only if two columns differ by case alone."""
        node = bare(node)
        if not isinstance(node, exp.Column):
            refuse(node, f"{node.key.upper()} where a column is expected", ways_out=INSTEAD_OF_A_COLUMN)
        name, table = parts(node, "this", "table")
        if not isinstance(name, exp.Identifier):
            refuse(node, f"{node.sql()} where a column is expected")
        if table is not None and table.name.lower() != self.table.lower():
            refuse(node, f"the table {table.name!r}", f"A column must belong to the table {self.table!r}")
        if name.name in self.columns:
            return name.name
        alike = [column for column in self.columns if column.lower() == name.name.lower()]
        if len(alike) != 1:
            listed = ", ".join(map(repr, self.columns[:12])) + (", …" if len(self.columns) > 12 else "")
            refuse(node, f"{name.name!r}", f"A column must be one of {listed}")
        return alike[0]
