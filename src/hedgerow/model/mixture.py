"""A hypothesis made of several: of each a share, by how many rows it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.questions.linear import Linear


class Mixture(Hypothesis):
    """Σ share·part, of hypotheses of one universe. Public, as they are; it stays as they were."""

    def __init__(self, parts: Sequence[Hypothesis], shares: Sequence[float]) -> None:
        super().__init__(parts[0].universe, parts[0].memory_limit, dense=False)
        self._parts, self._shares = tuple(parts), np.asarray(shares, dtype=float)

    @property
    def cliques(self) -> tuple[Names, ...]:
        """Of every part."""
        return tuple(dict.fromkeys(names for part in self._parts for names in part.cliques))

    @property
    def factors(self) -> dict[Names, Array]:
        raise InvalidInput(
            "Factors must be of one block's hypothesis. Found a mixture of several. Use session.over(name).hypothesis."
        )

    def add_factors(self, factors: Mapping[Names, Array]) -> None:
        raise InvalidInput(
            "A mixture must stay as its parts were fitted. Found a factor to add. Ask within=, and they are refitted."
        )

    def copy(self) -> Hypothesis:
        return self  # nothing changes it

    def _computed(self, names: Names) -> Array:
        tables = [share * part.marginal(names) for part, share in zip(self._parts, self._shares, strict=True)]
        return np.asarray(np.sum(tables, axis=0))

    def answer(self, query: Linear) -> float:
        return float(self._shares @ [part.answer(query) for part in self._parts])

    def sample(self, rows: int, rng: np.random.Generator, *, rounded: bool = False) -> NDArray[np.int32]:
        """Of each part so many records, in any order."""
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
