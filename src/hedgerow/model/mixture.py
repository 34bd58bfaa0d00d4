"""A mixture of several hypotheses, each weighted by the number of rows it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.linear import Linear


class Mixture(Hypothesis):
    """The distribution Σ share·part over hypotheses of one universe. Public, as its parts are, and never updated."""

    def __init__(self, parts: Sequence[Hypothesis], shares: Sequence[float]) -> None:
        super().__init__(parts[0].universe, parts[0].memory_limit, dense=False)
        self._parts, self._shares = tuple(parts), np.asarray(shares, dtype=float)

    @property
    def cliques(self) -> tuple[Names, ...]:
        """The cliques of all parts."""
        return tuple(dict.fromkeys(names for part in self._parts for names in part.cliques))

    @property
    def factors(self) -> dict[Names, Array]:
        """Refuse: a mixture has no log tables."""
        raise InvalidInput(
            "Factors must be read from one block's hypothesis. Found a mixture of several. "
            "Use session.select_blocks(name).hypothesis."
        )

    def add_factors(self, factors: Mapping[Names, Array]) -> None:
        """Refuse: the parts stay as they were fitted."""
        raise InvalidInput(
            "A mixture must stay as its parts were fitted. Found a factor to add. "
            "Ask a question with within= to have them refitted."
        )

    def copy(self) -> Hypothesis:
        """Return the mixture itself: nothing changes it."""
        return self

    def _compute(self, names: Names) -> Array:
        tables = [share * part.marginal(names) for part, share in zip(self._parts, self._shares, strict=True)]
        return np.asarray(np.sum(tables, axis=0))

    def answer(self, query: Linear) -> float:
        """Return the parts' answers, weighted by their shares."""
        return float(self._shares @ [part.answer(query) for part in self._parts])

    def sample(self, rows: int, rng: np.random.Generator, *, rounded: bool = False) -> NDArray[np.int32]:
        """Draw from each part its share of the records, in random order."""
        if int(rows) != rows or rows < 0:
            raise InvalidInput(
                f"rows must be a whole number of at least 0. Found {rows!r}. Give the number of records."
            )
        if rounded:
            ends = np.rint(np.cumsum(self._shares) * int(rows)).astype(int)
            many = np.diff(np.concatenate([[0], ends]))
        else:
            many = rng.multinomial(int(rows), self._shares)
        codes = np.concatenate(
            [part.sample(int(k), rng, rounded=rounded) for part, k in zip(self._parts, many, strict=True) if k]
            or [np.zeros((0, len(self.universe.names)), np.int32)]
        )
        return np.asarray(codes[rng.permutation(len(codes))])
