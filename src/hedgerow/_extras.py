"""Libraries that a plain install does not bring, each named with the extra that does."""

from __future__ import annotations

import importlib
from typing import Any

from hedgerow.errors import InvalidInput

EXTRAS = {  # by what is imported: what it is for, and the extra of pyproject.toml
    "ibis": ("tables of Ibis, and databases other than PostgreSQL and SQLite", "databases"),
    "matplotlib": ("pictures", "plots"),
    "psycopg": ("PostgreSQL", "postgres"),
    "sklearn": ("estimators", "estimators"),
    "sqlalchemy": ("SQLAlchemy's dialect", "dialect"),
    "fsspec": ("files at a URL", "remote"),
    "pyspark": ("Spark", "spark"),
}


def extra(module: str) -> Any:
    """Import an optional module, or refuse with the extra that installs it.

    >>> extra("matplotlib.pyplot")  # doctest: +SKIP
    """
    library = module.partition(".")[0]
    purpose, name = EXTRAS[library]
    try:
        importlib.import_module(library)
    except ModuleNotFoundError as missing:
        if missing.name != library:  # it is there, and something of its own is not
            raise
        raise MissingExtra(
            f"{library} must be installed for {purpose}. Found none. Install it: pip install 'hedgerow[{name}]'."
        ) from None
    return importlib.import_module(module)


class MissingExtra(InvalidInput, ImportError):
    """An optional library that is not installed."""
