"""The store at a URL."""

from __future__ import annotations

from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.ledgers.postgres import Postgres
from hedgerow.ledgers.sqlite import Sqlite
from hedgerow.ledgers.store import Store

WAIT = 30.0  # seconds for a lock, unless the URL says ?timeout=


def store_at(text: str) -> Store:
    """The store at a URL: ``sqlite:///path``, ``sqlite:////absolute/path`` or ``postgresql://user@host/database``."""
    import sqlalchemy as sa

    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise _refused(text) from None
    wait = _seconds(url.query.get("timeout", str(WAIT)))
    url = url.difference_update_query(["timeout"])
    backend = url.get_backend_name()
    if backend == "sqlite":
        return Sqlite(url, wait)
    if backend == "postgresql":
        return Postgres(url, wait)
    raise _refused(text)


def _refused(text: str) -> InvalidInput:
    scheme = text.partition(":")[0][:20]  # the rest may hold a password
    return InvalidInput(
        f"ledger must be a URL of SQLite or PostgreSQL. Found {scheme!r}. Give 'sqlite:///people.ledger' or 'postgresql://…'."
    )


def _seconds(text: Any) -> float:
    try:
        wait = float(text)
    except (TypeError, ValueError):
        wait = -1.0
    if not 0 < wait < 1e6:
        raise InvalidInput(
            f"timeout must be a number of seconds. Found {text!r}. Give 'sqlite:///people.ledger?timeout=30'."
        )
    return wait
