"""Ledgers that outlive their process: on SQLite and PostgreSQL, append-only, and checked line by line.

``chain`` is what a line is and how each fixes all before it; ``store`` keeps lines, and ``sqlite`` and ``postgres`` say where and
under which locks; ``durable`` is the ledger itself, ``notes`` its answers, ``binding`` the table and the declaration that it
belongs to. ``hr.open(…, ledger="sqlite:///people.ledger")`` makes one, or takes it up again; ``read`` looks at one without a table.
"""

from __future__ import annotations

from hedgerow.ledgers.binding import Binding, declared, key_file
from hedgerow.ledgers.chain import Head
from hedgerow.ledgers.durable import Durable, opened
from hedgerow.ledgers.reading import Reading, exists, read

__all__ = ["Binding", "Durable", "Head", "Reading", "declared", "exists", "key_file", "opened", "read"]
