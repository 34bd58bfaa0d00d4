"""A PEP-249 connection to a service: ``hedgerow.client.database.connect("hedgerow://data.example.org/people")``.

The token comes from ``token=`` or the variable ``HEDGEROW_TOKEN``, never from the address. Beyond this machine the
connection has TLS. A path before the dataset is the prefix of the service behind a proxy.
"""

from __future__ import annotations

import urllib.parse
from typing import Any

from hedgerow.client.connection import LOOPBACK
from hedgerow.client.remote import RemoteSession
from hedgerow.client.remote import connect as connect_to_service
from hedgerow.errors import InvalidInput
from hedgerow.sql.cursor import (
    Connection,
    Cursor,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
    apilevel,
    paramstyle,
    threadsafety,
)

SCHEME = "hedgerow"
__all__ = [
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "RemoteConnection",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]


class RemoteConnection(Connection):
    """A PEP-249 connection to one dataset of a service."""

    def __init__(self, remote: RemoteSession) -> None:
        super().__init__(remote)
        self._remote = remote

    def close(self) -> None:
        """Close the connection to the service."""
        super().close()
        self._remote.close()


def connect(url: str, token: str | None = None, **options: Any) -> RemoteConnection:
    """Return a PEP-249 connection to a dataset.

    Parameters
    ----------
    url : str
        ``hedgerow://host/dataset``, with a port and a prefix where there are any.
    token : str, optional
        Token of the person who asks. Default: the environment variable ``HEDGEROW_TOKEN``.
    **options
        ``timeout`` and ``context``, as of ``hr.connect``.
    """
    parts = urllib.parse.urlsplit(url)
    prefix, _, dataset = parts.path.rpartition("/")
    if parts.scheme != SCHEME or not parts.hostname or not dataset or parts.query or "@" in parts.netloc:
        raise InvalidInput(
            "url must be hedgerow://host/dataset, without a token in it. Found another kind of address. Pass token=, "
            "or set HEDGEROW_TOKEN."
        )
    scheme = "http" if parts.hostname in LOOPBACK else "https"
    return RemoteConnection(connect_to_service(f"{scheme}://{parts.netloc}{prefix}", token, dataset=dataset, **options))
