"""Durable ledgers on SQLite and PostgreSQL, append-only and checked line by line.

- ``chain``: a line of a ledger, and the hash by which each line fixes all lines before it.
- ``store``: the lines in a database. ``sqlite`` and ``postgres`` add their connections and locks, ``urls`` finds the
  store of a URL.
- ``durable``: the ledger itself. ``replay`` turns lines into entries, ``answer_log`` stores answers.
- ``binding``: the table and the declared options that a ledger belongs to.
- ``read_only`` and ``spending``: look at a ledger without its table.

``hr.open(…, ledger="sqlite:///people.ledger")`` makes such a ledger or resumes it. ``read`` opens one to look at,
without a table.
"""

from __future__ import annotations

from hedgerow.ledger.binding import Binding, declared, key_file
from hedgerow.ledger.chain import Head
from hedgerow.ledger.durable import Durable, opened
from hedgerow.ledger.read_only import Reading, exists, read

__all__ = ["Binding", "Durable", "Head", "Reading", "declared", "exists", "key_file", "opened", "read"]
