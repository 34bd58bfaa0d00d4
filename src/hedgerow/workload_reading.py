"""Workloads as people write them: questions, SQL, formulas and names of columns, read on a universe.

    hr.count(smoker=True)                        a question
    "mean('income', where=count(sex='F'))"       a question as text
    "SELECT sex, AVG(income) FROM data GROUP BY sex"
    "income ~ sex + age"                         each column on the right with the one on the left, and in pairs
    "income ~ sex * age"                         these, and all three together
    ("sex", "income")                            the table of these columns
    "income"                                     the column with every other one

All of it is public. What is read is a list of questions: tables of counts, except for questions that were given as
such. Beside texts and names, every other column is expected by itself: these tables cost little, and without them
nothing would be known of the columns that were not named. A list of questions alone is taken as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.query.counts import Query, bound, marginal
from hedgerow.query.parse import question, read_question
from hedgerow.query.workloads import Workload, conjunctions, intervals, marginals, parities, thresholds
from hedgerow.universe.universe import Universe

WORKLOADS = {each.__name__: each for each in (conjunctions, intervals, marginals, parities, thresholds)}
WAYS = (
    "questions, SQL text, formulas such as 'income ~ sex + age', tuples of columns such as ('sex', 'income'), or names "
    "of columns"
)


def require_workload(given: Any) -> None:
    """Refuse what no universe could read as a workload, before any row is read."""
    if given is None or isinstance(given, Workload | str):
        return
    items = given if isinstance(given, list | tuple) else None
    if items is None or not all(isinstance(item, Query | str) or _is_names(item) for item in items):
        raise InvalidInput(
            "workload must be a workload, such as hr.marginals(2), or a list of questions. Found "
            f"{type(given).__name__}. Give {WAYS}."
        )


def read_workload(given: Any, universe: Universe) -> Workload | list[Query] | None:
    """Return a workload, or the list of its questions, as this universe reads it.

    Parameters
    ----------
    given : Workload, str or iterable
        A workload, or a list of questions, SQL texts, formulas, tuples of columns and names of columns; or one of these
        as text.
    universe : Universe
        The universe whose columns are named.
    """
    if given is None or isinstance(given, Workload):
        return given
    found = _read_call(given) if isinstance(given, str) else None
    if found is not None:
        return found
    items = [given] if isinstance(given, str) else list(given)
    require_workload(items)
    read = [query for item in items for query in ([item] if isinstance(item, Query) else _read(item, universe))]
    if all(isinstance(item, Query) for item in items):
        return read
    named = {name for query in read for names in bound(query, universe).tables for name in names}
    return read + [marginal(name) for name in universe.names if name not in named]


def _read_call(text: str) -> Workload | None:
    """Return the workload that a text such as ``marginals(2)`` calls; None for any other text."""
    if text.split("(")[0].strip() not in WORKLOADS or "(" not in text:
        return None
    found: Workload = read_question(text, WORKLOADS)
    return found


def _read(item: Any, universe: Universe) -> Iterator[Query]:
    """Yield the questions that one item means."""
    if not isinstance(item, str):
        yield marginal(*_columns(item, universe))
    elif item in universe.names:
        yield from (marginal(item, other) for other in universe.names if other != item)
    elif "~" in item:
        yield from _of_formula(item, universe)
    elif item.lstrip()[:6].upper() == "SELECT":
        yield from _of_sql(item, universe)
    elif item.strip().isidentifier():
        _columns([item.strip()], universe)
    else:
        yield question(item)


def _of_formula(text: str, universe: Universe) -> Iterator[Query]:
    """Yield the tables that a model ``y ~ a + b:c`` depends on most.

    These are y with every term, and every two columns on the right, which say how the columns share y.
    """
    left, *right = text.split("~")
    if len(right) != 1 or not left.strip():
        raise InvalidInput(
            f"A formula must have one ~, with a column before it. Found {text!r}. Write 'income ~ sex + age'."
        )
    (target,) = _columns([left.strip()], universe)
    terms: list[tuple[str, ...]] = []
    for term in right[0].split("+"):
        crossed = [part.strip() for part in term.replace("*", ":").split(":")]
        names = _columns(crossed, universe)
        terms += [*((name,) for name in names), names] if "*" in term else [names]
    features = list(dict.fromkeys(name for term in terms for name in term))
    if target in features:
        raise InvalidInput(
            f"A formula must not have its target among the features. Found {target!r} on both sides of {text!r}. "
            "Remove it on the right."
        )
    wanted = [(target, *term) for term in terms] + list(itertools.combinations(features, 2))
    yield from (marginal(*names) for names in dict.fromkeys(wanted))


def _of_sql(text: str, universe: Universe) -> Iterator[Query]:
    """Yield the tables that the questions of a statement need."""
    from hedgerow.sql.result import example_questions

    asked = [bound(query, universe) for query in example_questions(text, universe)]
    sets = dict.fromkeys(universe.order(names) for each in asked for names in each.tables if names)
    yield from (marginal(*names) for names in sets)


def _columns(names: Iterable[str], universe: Universe) -> tuple[str, ...]:
    """Return the names, each once; refuse one that is no column."""
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in universe.names:
            raise InvalidInput(
                f"A workload must name columns of the universe. Found {name!r}. The columns are "
                f"{', '.join(map(repr, universe.names[:12]))}{', …' if len(universe.names) > 12 else ''}."
            )
    return chosen


def _is_names(item: Any) -> bool:
    """Return True for a tuple or list of names."""
    return isinstance(item, tuple | list) and bool(item) and all(isinstance(name, str) for name in item)
