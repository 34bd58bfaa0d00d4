"""New durable ledgers, each in a place of its own."""

from __future__ import annotations

import itertools
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from postgres import MEMORY, server

from hedgerow.ledger.durable import Durable
from hedgerow.ledger.urls import store_at
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Entry

_folder, _made = (
    tempfile.TemporaryDirectory(prefix="hr-ledgers-", dir=MEMORY),
    itertools.count(),
)  # gone with the process


def sqlite_url() -> str:
    Path(_folder.name).chmod(0o755)  # for tests that become somebody else
    place = Path(_folder.name) / str(next(_made))
    place.mkdir()
    return f"sqlite:///{place / 'people.ledger'}"


def postgres_url() -> str:
    return server().fresh()


_lately: deque[Durable] = deque()


def _opened(ledger: Durable) -> None:
    """No more than a test uses: a server has so many connections only."""
    _lately.append(ledger)
    if len(_lately) > 8:
        _lately.popleft().close()


class OnSqlite(Durable):
    def __init__(self, budget: Budget, slack: float = 0.0, earlier: Sequence[Entry] = ()) -> None:
        super().__init__(store_at(sqlite_url()), budget, slack, earlier)
        _opened(self)


class OnPostgres(Durable):
    def __init__(self, budget: Budget, slack: float = 0.0, earlier: Sequence[Entry] = ()) -> None:
        super().__init__(store_at(postgres_url()), budget, slack, earlier)
        _opened(self)
