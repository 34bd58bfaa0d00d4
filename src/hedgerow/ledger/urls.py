"""Find the store of a ledger's URL."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from hedgerow.errors import InvalidInput
from hedgerow.ledger.postgres import Postgres
from hedgerow.ledger.sqlite import Sqlite
from hedgerow.ledger.store import Store

WAIT = 30.0  # seconds to wait for a lock, unless the URL has ?timeout=


def store_at(text: str) -> Store:
    """Return the store at a URL.

    The URL is ``sqlite:///path``, ``sqlite:////absolute/path`` or ``postgresql://user@host/database``.

    ``?timeout=`` is the number of seconds to wait for a lock. All other options of a PostgreSQL URL go to its driver.
    """
    scheme, found, rest = text.partition("://")
    backend = scheme.partition("+")[0]
    if not found or backend not in ("sqlite", "postgresql", "postgres"):
        raise _refusal(text)
    place, _, query = rest.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    wait = _seconds(dict(options).get("timeout", WAIT))
    others = [(name, value) for name, value in options if name != "timeout"]
    if backend != "sqlite":
        return Postgres(f"postgresql://{place}" + (f"?{urlencode(others, quote_via=quote)}" if others else ""), wait)
    if others or (place and not place.startswith("/")):
        raise _refusal(text)
    return Sqlite(place[1:], wait)


def _refusal(text: str) -> InvalidInput:
    """Return the error for a URL that no store can read."""
    # Show only the scheme: the rest, or a text that is no URL, may hold a password.
    scheme, found, _ = text.partition("://")
    said = repr(scheme) if found and len(scheme) <= 20 and scheme.replace("+", "").isalnum() else "another text"
    return InvalidInput(
        f"ledger must be a URL of SQLite or PostgreSQL. Found {said}. Give 'sqlite:///people.ledger' or "
        "'postgresql://…'."
    )


def _seconds(text: Any) -> float:
    """Parse the timeout."""
    try:
        wait = float(text)
    except (TypeError, ValueError):
        wait = -1.0
    if not 0 < wait < 1e6:
        raise InvalidInput(
            f"timeout must be a number of seconds. Found {text!r}. Give 'sqlite:///people.ledger?timeout=30'."
        )
    return wait
