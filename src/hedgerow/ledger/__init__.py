"""Durable ledgers on SQLite and PostgreSQL, append-only and checked line by line.

- ``chain``: a line of a ledger, and the hash by which each line fixes all lines before it.
- ``store``: the lines in a database. ``sqlite`` and ``postgres`` add their connections and locks, ``urls`` finds the
  store of a URL.
- ``shared_chain``: the chain as far as one process has read it, beside others that write.
- ``log``: charges and releases as lines. ``replay`` turns entries into lines and back.
- ``stored_answers``: when answers are written, and how they are found again. ``answer_log`` has their form.
- ``caps``: the shares of analysts and projects, and the filter that holds them to it.
- ``snapshots``: the state of a ledger and its engine, from which it opens without reading everything.
- ``turns``: the turn of a question among several processes.
- ``account`` and ``binding``: the table, the options, the version and the fit that a ledger belongs to.
- ``durable``: the ledger, composed of all these.
- ``read_only`` and ``spending``: look at a ledger without its table.

``hr.open(…, ledger="sqlite:///people.ledger")`` makes such a ledger or resumes it. ``read`` opens one to look at,
without a table.
"""

from __future__ import annotations

from hedgerow.ledger.binding import Binding, comparable_options, key_file
from hedgerow.ledger.chain import Head
from hedgerow.ledger.durable import Durable, opened
from hedgerow.ledger.read_only import Reading, exists, read

__all__ = ["Binding", "Durable", "Head", "Reading", "comparable_options", "exists", "key_file", "opened", "read"]
