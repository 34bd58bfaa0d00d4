"""Optional libraries, each with the extra that installs it."""

from __future__ import annotations

import importlib
from typing import Any

from hedgerow.errors import InvalidInput

# module name: (its purpose, the extra of pyproject.toml that installs it)
EXTRAS = {
    "ibis": ("tables of Ibis, and databases other than PostgreSQL and SQLite", "databases"),
    "matplotlib": ("pictures", "plots"),
    "psycopg": ("PostgreSQL", "postgres"),
    "sklearn": ("estimators", "estimators"),
    "sqlalchemy": ("SQLAlchemy's dialect", "dialect"),
    "cryptography": ("signatures of release files", "signing"),
    "fsspec": ("files at a URL", "remote"),
    "pyspark": ("Spark", "spark"),
    "uvicorn": ("the service", "server"),
    "starlette": ("the service", "server"),
    "msgspec": ("the service", "server"),
    "jinja2": ("the console in the browser", "server"),
    "python_multipart": ("uploads in the browser", "server"),
    "mcp": ("assistants as analysts", "mcp"),
}


def extra(module: str) -> Any:
    """Import an optional module, or refuse with the name of the extra that installs it.

    >>> extra("matplotlib.pyplot")  # doctest: +SKIP
    """
    library = module.partition(".")[0]
    purpose, name = EXTRAS[library]
    try:
        importlib.import_module(library)
    except ModuleNotFoundError as missing:
        if missing.name != library:  # the library is installed, but one of its own dependencies is not
            raise
        raise MissingExtra(
            f"{library} must be installed for {purpose}. Found none. Install it: pip install 'hedgerow[{name}]'."
        ) from None
    return importlib.import_module(module)


class MissingExtra(InvalidInput, ImportError):
    """An optional library is not installed."""
