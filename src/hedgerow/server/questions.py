"""The questions of a request, as data: the library's JSON forms, or text as in Python. No code is received."""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any

import hedgerow as hr
from hedgerow import serialize
from hedgerow.errors import InvalidInput
from hedgerow.query import parse
from hedgerow.query.counts import Query
from hedgerow.query.row_statistic import RowStatistic

SETS = ("L2Ball", "L1Ball", "Box", "Simplex", "Unconstrained")
REMEMBERED = 4_096  # questions whose text was read, or whose name is known
LONGEST = 1_000  # characters of such a text or name
NOT_SENT = ("Custom", "Loss")  # losses that are functions of a user's own


def read_question(given: Any) -> Query:
    """Return the question that a request describes: an object of the JSON form, or a text."""
    found: Query
    if isinstance(given, str):
        found = _question_in(given) if len(given) <= LONGEST else parse.question(given, _names())
    elif isinstance(given, dict):
        found = hr.wire.from_json(given if "v" in given else {"v": 1, **given}, Query)
    else:
        raise InvalidInput(
            f'A question must be a text or an object. Found {type(given).__name__}. For example "count(smoker=True)".'
        )
    if isinstance(found, RowStatistic):
        raise InvalidInput("A question must be data. Found a function of rows. Ask it where the table is.")
    return found


@functools.lru_cache(REMEMBERED)
def _question_in(text: str) -> Query:
    return parse.question(text, _names())


class QuestionNames:
    """The names of the latest questions: their JSON forms, each of which is written once."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[Query, str]] = OrderedDict()

    def of(self, query: Query) -> str:
        """Return the name of a question."""
        known = self._known.get(id(query))
        if known is not None and known[0] is query:
            return known[1]
        name = serialize.dumps(query)
        if len(name) <= LONGEST:
            self._known[id(query)] = query, name
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return name


NAMES = QuestionNames()


def _names() -> parse.Names:
    """Return what a text may call besides the questions: losses and sets of convex questions."""
    return {
        "minimize": hr.minimize,
        **{f"losses.{name}": getattr(hr.losses, name) for name in hr.losses.__all__ if name not in NOT_SENT},
        **{name: getattr(hr, name) for name in SETS},
    }
