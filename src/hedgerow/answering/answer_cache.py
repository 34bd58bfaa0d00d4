"""Keep the answers of an engine: all of them for repeated questions, and the latest for a report."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from hedgerow._spill import Shelf
from hedgerow._types import Array
from hedgerow.answer import Answer
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.engine.interface import Answers
from hedgerow.query.bound import Bound, Estimate, is_within
from hedgerow.query.composed import ComposedQuestion
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear


class AnswerStore(Protocol):
    """A place that stores given answers: the ledger of one block, or the combined ledger of several."""

    def note(self, question: Any, answer: Any) -> None:
        """Store an answer that was given to a bound question."""
        ...

    def recall(self, question: Any) -> Any | None:
        """Return the last answer to a bound question, or None."""
        ...


class AnswerCache:
    """An engine with a cache of its answers: a repeat gets its earlier answer, unless it asks for a tighter bar."""

    def __init__(self, engine: Answers, log: AnswerStore) -> None:
        self._engine, self._log = engine, log
        self._known: dict[Hashable, Estimate] = {}
        self._shelf = Shelf()
        self.prepared: dict[Hashable, Estimate] = {}
        self.watcher: Callable[[Bound[Any], Estimate, bool], None] | None = None
        """A function that is told of every answer that is kept, and whether it replaces an earlier one."""

    def __contains__(self, bound: Bound[Any]) -> bool:
        return self._known_of(bound) is not None

    def is_last_answer(self, bound: Bound[Any], value: Any) -> bool:
        """Return True if ``value`` is the answer that this question was given last."""
        known = self._known_of(bound)
        return known is not None and np.array_equal(known.value, value)

    def keep(self, bound: Bound[Any], estimate: Estimate) -> Estimate:
        """Cache the answer and note it in the log. Return the answer unchanged."""
        kept = _with_arrays(estimate, self._shelf.put)  # a copy, because the caller may modify the returned arrays
        is_better = bound.key in self._known
        self._known[bound.key] = kept
        self._log.note(bound, kept)
        if self.watcher is not None:
            self.watcher(bound, kept, is_better)
        return estimate

    def adopt(self, bound: Bound[Any], estimate: Estimate) -> None:
        """Cache an answer that another process gave and noted."""
        self._known[bound.key] = _with_arrays(estimate, self._shelf.put)

    def prepare(self, queries: Iterable[Linear]) -> None:
        """Compute, in one batch, the free answers to these queries, so that they are ready when the queries are asked.

        If the engine has no free answers, tell it instead which queries come next. An empty list discards what was
        prepared.
        """
        fresh = {query.key: query for query in queries if query not in self}
        free = self._engine.free(list(fresh.values()))
        self.prepared = {} if free is None else dict(zip(fresh, free, strict=True))
        self._engine.expect(list(fresh.values()) if free is None else ())

    def ready(self, query: Linear) -> Estimate | None:
        """Return the prepared answer to a query and cache it, or None if there is none."""
        found = self.prepared.pop(query.key, None)
        return None if found is None else self.keep(query, found)

    def ask(self, bound: Bound[Any], within: float | None) -> Estimate:
        """Answer a bound question. A question composed of several others is cached as a whole, too."""
        if not isinstance(bound, ComposedQuestion):
            return bound.ask(self, within)
        known = self._find(bound, within)
        asked: Any = self if within is None else RefreshingCache(self, self._engine)
        return self.keep(bound, bound.ask(asked, within)) if known is None else known

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer a linear query: from the cache, else as prepared, else by the engine."""
        known = self._find(query, within)
        if known is None and within is None:
            known = self.ready(query)
        return self.keep(query, self._engine.linear(query, within)) if known is None else known

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer to a linear query, without an error bar."""
        return self._engine.hypothesis_answer(query)

    @property
    def least_rows(self) -> float:
        """Lower bound on the number of rows."""
        return self._engine.least_rows

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Ask the engine for numerator and denominator such that their ratio has a bar of ``within``, and cache both.

        Cached answers to the two parts are not used, because their bars may be too wide for the ratio.
        """
        top, bottom = self._engine.ratio(numerator, denominator, within)
        return self.keep(numerator, top), self.keep(denominator, bottom)

    def has(self, bound: Bound[Any], within: float) -> bool:
        """Return True if a cached answer to this question has a bar of at most ``within``."""
        return self._find(bound, within) is not None

    def price(self, bound: Bound[Any], within: float) -> float:
        """Return the cost of asking for a bar of ``within`` now. Public; nothing is charged.

        A composed question is priced from its parts as a purchase would find them: those that were answered before
        keep their answers.
        """
        if self.has(bound, within):
            return 0.0
        quote = self._engine.make_quote()
        if not isinstance(bound, ComposedQuestion) or not hasattr(quote, "price"):
            return self._engine.price(bound, within)
        bound.ask(QuotedCache(self, self._engine, quote), within)
        return float(quote.price)

    def recall(self, bound: Bound[Any], within: float | None) -> Estimate | None:
        """Return the cached answer if its bar is at most ``within``; else None. Nothing is asked."""
        return self._find(bound, within)

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a whole marginal table, from the cache or by the engine."""
        known = self._find(table, within)
        return self.keep(table, self._engine.marginal(table, within)) if known is None else known

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Answer a convex question, from the cache or by the engine."""
        known = self._find(question, within)
        return self.keep(question, self._engine.minimize(question, within)) if known is None else known

    def _find(self, bound: Bound[Any], within: float | None) -> Estimate | None:
        """Return the cached answer, marked as a repeat, if its bar is at most ``within``; else None."""
        known = self._known_of(bound)
        if known is None or (within is not None and not is_within(known.error, within)):
            return None
        return replace(_with_arrays(known, self._shelf.take_copy), source="repeat")

    def _known_of(self, bound: Bound[Any]) -> Estimate | None:
        """Return the cached answer as it is stored, read from the log if it is not in memory."""
        known = self._known.get(bound.key)
        if known is None:
            known = self._log.recall(bound)
            if known is not None:
                self._known[bound.key] = known
        return known


class RefreshingCache:
    """A view of the cache for questions that pay for a tighter bar.

    For a part that was answered before, the view returns the better of the cached answer and the engine's current free
    answer, because the engine may have learned more since then.
    """

    def __init__(self, cache: AnswerCache, engine: Answers) -> None:
        self._cache, self._engine = cache, engine

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Return the answer with the smaller bar: the cached one, or the engine's free answer of today."""
        said = self._cache.linear(query, within)
        return self._refresh(query, said) if said.source == "repeat" else said

    def _refresh(self, query: Linear, said: Estimate) -> Estimate:
        """Return the cached answer, or the engine's free answer of today if its bar is smaller."""
        free = self._engine.free([query])
        if not free or free[0].error is None or (said.error is not None and said.error <= free[0].error):
            return said
        return free[0]

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer to a linear query, without an error bar."""
        return self._engine.hypothesis_answer(query)

    @property
    def least_rows(self) -> float:
        """Lower bound on the number of rows."""
        return self._engine.least_rows

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a whole marginal table through the cache."""
        return self._cache.marginal(table, within)


class QuotedCache(RefreshingCache):
    """The same view for a price: parts that were answered before as a purchase finds them, all others as quoted."""

    def __init__(self, cache: AnswerCache, engine: Answers, quote: Any) -> None:
        super().__init__(cache, engine)
        self._quote = quote

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Return the answer that a purchase would find, or the quoted one."""
        known = self._cache.recall(query, within)
        return self._quote.linear(query, within) if known is None else self._refresh(query, known)

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Return the table that a purchase would find, or the quoted one."""
        known = self._cache.recall(table, within)
        return self._quote.marginal(table, within) if known is None else known


def _with_arrays(estimate: Estimate, kept: Callable[[Array], Array]) -> Estimate:
    """Return the estimate with each of its arrays replaced by ``kept(array)``."""
    arrays: dict[str, Any] = {
        name: kept(value)
        for name in ("value", "error", "resolution", "typical", "coefficients", "lower", "upper")
        if isinstance(value := getattr(estimate, name), np.ndarray)
    }
    return replace(estimate, **arrays) if arrays else estimate


# a report holds at most this many answers: the most recent ones
REPORTED = 1000
# the answers of a report have at most this many cells in total; the most recent answer is kept whatever its size
REPORTED_CELLS = 1_000_000


class AnswerHistory:
    """The answers that a report lists."""

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self._cells = 0

    def add(self, answer: Answer) -> None:
        """Remember an answer, and drop the oldest ones beyond the limits."""
        if len(self._answers) == REPORTED:
            self._cells -= _cells(self._answers.popleft())
        self._answers.append(answer)
        self._cells += _cells(answer)
        while self._cells > REPORTED_CELLS and len(self._answers) > 1:
            self._cells -= _cells(self._answers.popleft())

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The remembered answers, oldest first."""
        return tuple(self._answers)


def _cells(answer: Answer) -> int:
    """Return the number of cells of an answer."""
    return 1 if type(answer.value) is float else np.size(answer.value)
