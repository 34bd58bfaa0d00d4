"""What was answered is answered again: an engine that is not asked twice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from hedgerow._shelf import Shelf
from hedgerow._types import Array
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.engines.engine import Engine
from hedgerow.questions.bound import Bound, Estimate
from hedgerow.questions.composed import Composed
from hedgerow.questions.counts import BoundMarginal
from hedgerow.questions.linear import Linear


class Notes(Protocol):
    """Where answers are written down: a ledger, or that of several blocks."""

    def note(self, question: Any, answer: Any) -> None: ...

    def recall(self, question: Any) -> Any | None: ...


class Memory:
    """An engine that is not asked twice: what was answered is answered again, unless a better bar is asked for."""

    def __init__(self, engine: Engine, ledger: Notes) -> None:
        self._engine, self._ledger = engine, ledger
        self._known: dict[Hashable, Estimate] = {}
        self._shelf = Shelf()
        self._ready: dict[Hashable, Estimate] = {}

    def __contains__(self, bound: Bound[Any]) -> bool:
        return self._known_of(bound) is not None

    def keep(self, bound: Bound[Any], estimate: Estimate) -> Estimate:
        kept = _with_arrays(estimate, self._shelf.put)  # whoever gets the answer may change it
        self._known[bound.key] = kept
        self._ledger.note(bound, kept)
        return estimate

    def prepare(self, queries: Iterable[Linear]) -> None:
        """Answers to these that need nothing private, computed together, for when they are asked."""
        fresh = {query.key: query for query in queries if query not in self}
        free = self._engine.free(list(fresh.values()))
        self._ready = {} if free is None else dict(zip(fresh, free, strict=True))
        self._engine.expect(list(fresh.values()) if free is None else ())

    def ready(self, query: Linear) -> Estimate | None:
        """What was prepared of it, now answered."""
        found = self._ready.pop(query.key, None)
        return None if found is None else self.keep(query, found)

    def ask(self, bound: Bound[Any], within: float | None) -> Estimate:
        """What is composed of others is remembered too."""
        if not isinstance(bound, Composed):
            return bound.ask(self, within)
        known = self._kept(bound, within)
        asked: Any = self if within is None else Current(self, self._engine)
        return self.keep(bound, bound.ask(asked, within)) if known is None else known

    def linear(self, query: Linear, within: float | None) -> Estimate:
        known = self._kept(query, within)
        if known is None and within is None:
            known = self.ready(query)
        return self.keep(query, self._engine.linear(query, within)) if known is None else known

    def believed(self, query: Linear) -> float:
        return self._engine.believed(query)

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Not by what is known of its parts, whose bars may be too wide for it; what is found is known from now on."""
        top, bottom = self._engine.ratio(numerator, denominator, within)
        return self.keep(numerator, top), self.keep(denominator, bottom)

    def has(self, bound: Bound[Any], within: float) -> bool:
        """Whether it was answered with such a bar."""
        return self._kept(bound, within) is not None

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        known = self._kept(table, within)
        return self.keep(table, self._engine.marginal(table, within)) if known is None else known

    def minimise(self, question: BoundMinimize, within: float | None) -> Estimate:
        known = self._kept(question, within)
        return self.keep(question, self._engine.minimise(question, within)) if known is None else known

    def _kept(self, bound: Bound[Any], within: float | None) -> Estimate | None:
        known = self._known_of(bound)
        if known is None or (within is not None and (known.error is None or np.max(known.error) > within * (1 + 1e-9))):
            return None
        return replace(_with_arrays(known, self._shelf.taken), source="repeat")

    def _known_of(self, bound: Bound[Any]) -> Estimate | None:
        known = self._known.get(bound.key)
        if known is None:
            known = self._ledger.recall(bound)
            if known is not None:
                self._known[bound.key] = known
        return known


class Current:
    """A memory for what is bought: of a part that was answered before, the better of that and what is known by now."""

    def __init__(self, memory: Memory, engine: Engine) -> None:
        self._memory, self._engine = memory, engine

    def linear(self, query: Linear, within: float | None) -> Estimate:
        said = self._memory.linear(query, within)
        free = self._engine.free([query]) if said.source == "repeat" else None
        if not free or free[0].error is None or (said.error is not None and said.error <= free[0].error):
            return said
        return free[0]

    def believed(self, query: Linear) -> float:
        return self._engine.believed(query)

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        return self._memory.marginal(table, within)


def _with_arrays(estimate: Estimate, kept: Callable[[Array], Array]) -> Estimate:
    arrays: dict[str, Any] = {
        name: kept(value)
        for name in ("value", "error", "resolution", "typical", "coefficients")
        if isinstance(value := getattr(estimate, name), np.ndarray)
    }
    return replace(estimate, **arrays) if arrays else estimate
