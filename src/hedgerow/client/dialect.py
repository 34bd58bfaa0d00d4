"""An SQLAlchemy dialect for services, so that pandas, notebooks and dashboards connect to ``hedgerow://host/dataset``.

engine = sqlalchemy.create_engine("hedgerow://data.example.org/people")   # the token from HEDGEROW_TOKEN
engine = sqlalchemy.create_engine("hedgerow://…", connect_args={"token": token})
pandas.read_sql("SELECT sex, count(*) AS n FROM data GROUP BY sex", engine)
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import URL
from sqlalchemy.pool import QueuePool

from hedgerow.client import database
from hedgerow.errors import InvalidInput
from hedgerow.sql.dialect import Dialect


class ServiceDialect(Dialect):
    """A read-only dialect over HTTP, with one table."""

    driver = "http"
    supports_statement_cache = True

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the PEP-249 module."""
        return database

    @classmethod
    def get_pool_class(cls, url: URL) -> Any:
        """Return a pool whose connections are kept."""
        return QueuePool

    def create_connect_args(self, url: URL) -> Any:
        """Return the address without anything that could be a token."""
        if url.username or url.password or url.query:
            raise InvalidInput(
                "The address must be hedgerow://host/dataset, without a token in it. Found a longer address. Pass "
                "the token in connect_args, or set HEDGEROW_TOKEN."
            )
        port = "" if url.port is None else f":{url.port}"
        host = f"[{url.host}]" if ":" in (url.host or "") else url.host
        return [f"{database.SCHEME}://{host}{port}/{url.database or ''}"], {}
