"""An SQLAlchemy dialect, so that ``pandas.read_sql`` and other users of SQLAlchemy can ask a session.

engine = hedgerow.sql.dialect.engine(session)
pandas.read_sql("SELECT sex, count(*) AS n FROM data GROUP BY sex", engine)
"""

from __future__ import annotations

from typing import Any

from hedgerow._extras import extra
from hedgerow.sql import cursor
from hedgerow.sql.scope import TABLE

extra("sqlalchemy")

import sqlalchemy  # noqa: E402
from sqlalchemy import types  # noqa: E402
from sqlalchemy.engine import default  # noqa: E402
from sqlalchemy.exc import NoSuchTableError  # noqa: E402
from sqlalchemy.pool import StaticPool  # noqa: E402


class Dialect(default.DefaultDialect):
    """A read-only dialect with one table."""

    name = "hedgerow"
    driver = "session"
    supports_statement_cache = True
    supports_native_boolean = True
    default_paramstyle = "qmark"

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the PEP-249 module."""
        return cursor

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing: there are no transactions."""

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        return (1,)

    def _get_default_schema_name(self, connection: Any) -> Any:
        return None

    def _check_unicode_returns(self, connection: Any) -> bool:
        return True

    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        return [TABLE] if schema is None else []

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:
        return schema is None and table_name.lower() == TABLE

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        if not self.has_table(connection, table_name, schema):
            raise NoSuchTableError(table_name)
        universe = connection.connection.dbapi_connection.session.universe
        return [
            {"name": name, "type": _type_of(universe[name]), "nullable": True, "default": None}
            for name in universe.names
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        """Return no primary key."""
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        """Return no foreign keys."""
        return []

    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        """Return no indexes."""
        return []

    def get_unique_constraints(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        return []

    def get_check_constraints(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        return []

    def get_table_comment(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        return {"text": None}

    def get_schema_names(self, connection: Any, **_: Any) -> list[str]:
        return []

    def get_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """Return no views."""
        return []


TYPES: dict[type, type[types.TypeEngine[Any]]] = {
    bool: types.Boolean,
    int: types.Integer,
    float: types.Float,
    str: types.String,
}


def _type_of(attribute: Any) -> types.TypeEngine[Any]:
    """Return the SQL type of an attribute."""
    return TYPES[attribute.value_type]()


def engine(session: cursor.SqlRespondent) -> sqlalchemy.Engine:
    """Return an SQLAlchemy engine that asks through the session."""
    from sqlalchemy.dialects import registry

    registry.register("hedgerow.session", __name__, "Dialect")
    return sqlalchemy.create_engine(
        "hedgerow+session://", creator=lambda: cursor.connect(session), poolclass=StaticPool, module=cursor
    )
