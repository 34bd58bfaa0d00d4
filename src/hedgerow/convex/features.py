"""Feature vectors of records: each attribute has a small table over its values, so no design matrix is ever built.

Let x be the feature vector of a record. Over the cells of a marginal, a linear predictor ⟨x, θ⟩ is a broadcast sum of
one small table per attribute. Xᵀr is a set of marginal sums of the residual r, and XᵀWX a set of two-way marginal sums
of the weights W.

Numbers (Range, Integers) are standardized by their **public** bounds to [−1, 1]. A flag is 0 or 1. Categories have one
column per value, including the extra cell of an attribute declared with ``other=True``. The extra cell of a number has
no value and is placed at 0, the middle. An interaction has the products of its attributes' columns.

With ``coding="reference"`` a category has no column for its first value, its reference, wherever the columns would
otherwise add up to others: beside an intercept, and in an interaction beside the rest of it (the rule of R's formulas).
Coefficients are then differences from the reference. ``coding="full"`` keeps all columns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes import Attribute
from hedgerow.universe.universe import Universe


def standardize(attribute: Attribute) -> Array:
    """Return the values of a numeric attribute scaled by its public bounds, with 0 for a cell that has no value."""
    assert attribute.values is not None
    centre, half = attribute.scale
    return np.nan_to_num((attribute.values - centre) / half, nan=0.0)


class Features:
    """The feature vector of a record of the universe.

    The columns are one block per name, then the interactions, then the intercept. ``onehot`` lists numeric attributes
    that get one column per value instead of one column, such as integer-coded categories.
    """

    def __init__(
        self,
        universe: Universe,
        names: Iterable[str],
        *,
        intercept: bool = True,
        interactions: Iterable[Sequence[str]] = (),
        onehot: Iterable[str] = (),
        coding: str = "reference",
    ) -> None:
        chosen = tuple(dict.fromkeys(names))
        crossed = tuple(tuple(dict.fromkeys(pair)) for pair in interactions)
        for pair in crossed:
            if len(pair) < 2:
                raise InvalidInput(
                    f"An interaction must be of at least two attributes. Found {pair!r}. Name two, as in ('age', "
                    "'sex')."
                )
        if not chosen and not crossed and not intercept:
            raise InvalidInput(
                "Features must name at least one attribute. Found none and no intercept. Name some, or keep the "
                "intercept."
            )
        self.universe, self.intercept = universe, bool(intercept)
        self.attributes = universe.order([*chosen, *(name for pair in crossed for name in pair)])
        spelled = set(universe.order(onehot))
        self._spelled = {name for name in self.attributes if name in spelled or not universe[name].is_number}
        self.widths = {name: universe[name].size if name in self._spelled else 1 for name in self.attributes}
        self._blocks: tuple[tuple[str, ...], ...] = (
            *((name,) for name in chosen),
            *(universe.order(pair) for pair in crossed),
            *(((),) if intercept else ()),
        )
        self._has_reference = {
            (block, name)
            for block in self._blocks
            for name in block
            if coding == "reference" and name in self._spelled and self.widths[name] > 1
            if tuple(other for other in block if other != name) in self._blocks
        }
        widths = [math.prod(self._width(block, name) for name in block) for block in self._blocks]
        ends = [0, *itertools.accumulate(widths)]
        self._slices = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self.dimension = ends[-1]
        self.shape = universe.sizes(self.attributes)

    @cached_property
    def _columns(self) -> dict[str, Array]:
        """The table of every attribute. Tables are built on first use, after their size was checked."""
        return {
            name: np.eye(width) if name in self._spelled else standardize(self.universe[name])[:, None]
            for name, width in self.widths.items()
        }

    @property
    def has_reference(self) -> bool:
        """True if some category has a reference value without a column."""
        return bool(self._has_reference)

    @property
    def references(self) -> dict[str, str]:
        """The reference value of every category that has one beside the intercept."""
        return {block[0]: str(self.universe[block[0]].labels[0]) for block, _ in self._has_reference if len(block) == 1}

    def _width(self, block: tuple[str, ...], name: str) -> int:
        """Return the number of columns of an attribute in a block."""
        return self.widths[name] - ((block, name) in self._has_reference)

    def _table(self, block: tuple[str, ...], name: str) -> Array:
        """Return the table of an attribute in a block: one row per value."""
        return self._columns[name][:, 1:] if (block, name) in self._has_reference else self._columns[name]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name per column: the attribute, "attribute=label", products joined by "×", and "intercept"."""
        names: list[str] = []
        for block in self._blocks:
            parts = [""]
            for name in block:
                labels = self._labels(block, name)
                parts = [f"{left} × {label}" if left else label for left in parts for label in labels]
            names.extend(parts if block else ["intercept"])
        return tuple(names)

    def columns_with(self, names: Container[str]) -> Array:
        """Return True for each column that depends on one of these attributes."""
        found = np.zeros(self.dimension, dtype=bool)
        for block, columns in zip(self._blocks, self._slices, strict=True):
            found[columns] = any(name in names for name in block)
        return found

    def _labels(self, block: tuple[str, ...], name: str) -> list[str]:
        """Return the names of the columns of one attribute in a block."""
        if self.widths[name] == 1:
            return [name]
        return [f"{name}={label}" for label in self.universe[name].labels][(block, name) in self._has_reference :]

    @property
    def row_norm_bound(self) -> float:
        """max ‖x‖₂ over the records, exactly.

        The square increases with the squared norm of each attribute's own columns.
        """
        longest = {name: float((table**2).sum(axis=1).max()) for name, table in self._columns.items()}
        return math.sqrt(sum(math.prod(longest[name] for name in block) for block in self._blocks))

    @property
    def row_sup_bound(self) -> float:
        """max ‖x‖_∞ over the records, exactly."""
        largest = {name: float(np.abs(table).max()) for name, table in self._columns.items()}
        return max(math.prod(largest[name] for name in block) for block in self._blocks)

    def predictor(self, theta: Array) -> Array:
        """Return ⟨x, θ⟩ for every cell of ``attributes``, in shape ``shape``.

        If θ is p × K, K outputs follow on the last axis.
        """
        outputs = theta.shape[1:]
        total: Array = np.zeros((1,) * len(self.shape) + outputs)
        for block, part in zip(self._blocks, self._slices, strict=True):
            table = theta[part].reshape([self._width(block, name) for name in block] + list(outputs))
            for name in block:  # contract the first remaining axis of columns; its axis of cells becomes the last
                table = np.tensordot(table, self._table(block, name), axes=(0, 1))
            if block and outputs:
                table = np.moveaxis(table, 0, -1)
            total = total + table.reshape(self._spread(block) + outputs)
        return np.broadcast_to(total, self.shape + outputs)

    def gradient(self, residual: Array) -> Array:
        """Return Σ over cells of residual·x.

        The residual has one entry per cell of ``attributes`` (and K outputs last).
        """
        outputs = residual.shape[len(self.shape) :]
        result, summed = np.empty((self.dimension, *outputs)), self._sums(residual)
        for block, part in zip(self._blocks, self._slices, strict=True):
            table = summed(block)
            for name in block:
                table = np.tensordot(table, self._table(block, name), axes=(0, 0))
            if block and outputs:
                table = np.moveaxis(table, 0, -1)
            result[part] = table.reshape((-1, *outputs))
        return result

    def gram(self, weights: Array) -> Array:
        """Return Σ over cells of weight·x xᵀ, a p × p matrix, from marginal sums of the weights."""
        result, summed = np.empty((self.dimension, self.dimension)), self._sums(weights)
        for i, (first, rows) in enumerate(zip(self._blocks, self._slices, strict=True)):
            for second, columns in zip(self._blocks[i:], self._slices[i:], strict=True):
                both = self.universe.order([*first, *second])
                axis = {name: k for k, name in enumerate(both)}
                operands: list[Any] = [summed(both), list(range(len(both)))]
                out = list(range(len(both), len(both) + len(first) + len(second)))
                tables = [
                    *(self._table(first, name) for name in first),
                    *(self._table(second, name) for name in second),
                ]
                for column, name, table in zip(out, (*first, *second), tables, strict=True):
                    operands += [table, [axis[name], column]]
                value = np.einsum(*operands, out, optimize=True)
                result[rows, columns] = value.reshape(rows.stop - rows.start, columns.stop - columns.start)
                result[columns, rows] = result[rows, columns].T
        return result

    def rows(self, cells: Mapping[str, NDArray[np.integer[Any]]]) -> Array:
        """Return the feature vectors of coded records, given a cell number per attribute.

        Estimators use it to predict on an analyst's own rows.
        """
        count = len(next(iter(cells.values()))) if cells else 1
        parts: list[Array] = []
        for block in self._blocks:
            product = np.ones((count, 1))
            for name in block:
                columns = self._table(block, name)[cells[name]]
                product = (product[:, :, None] * columns[:, None, :]).reshape(
                    count, product.shape[1] * columns.shape[1]
                )
            parts.append(product)
        return np.hstack(parts)

    def design(self) -> Array:
        """Return the design matrix over all cells of ``attributes``, one row per cell. For tests on small universes."""
        grid = np.indices(self.shape).reshape(len(self.shape), -1)
        return self.rows({name: grid[i] for i, name in enumerate(self.attributes)})

    def _spread(self, block: tuple[str, ...]) -> tuple[int, ...]:
        """Return the shape of a block's table, broadcastable over all attributes."""
        return tuple(n if name in block else 1 for name, n in zip(self.attributes, self.shape, strict=True))

    def _sums(self, table: Array) -> Callable[[tuple[str, ...]], Array]:
        """Return a function that gives the marginal sums of a table.

        One- and two-way sums drop one axis after another and are cached, so each large sum is computed once.
        """
        d = len(self.attributes)

        @cache
        def suffix(i: int) -> Array:  # the table summed down to attributes i, i+1, …
            return table if i == 0 else suffix(i - 1).sum(axis=0)

        @cache
        def chain(i: int, j: int) -> Array:  # the table summed down to attributes i, j, j+1, …
            return suffix(i) if j == i + 1 else chain(i, j - 1).sum(axis=1)

        def summed(names: tuple[str, ...]) -> Array:
            """Return the table summed to these attributes, from the partial sums that are kept."""
            axes = tuple(self.attributes.index(name) for name in names)
            if len(axes) == 1:
                start, rest = suffix(axes[0]), tuple(range(1, d - axes[0]))
            elif len(axes) == 2:
                start, rest = chain(*axes), tuple(range(2, 1 + d - axes[1]))
            else:
                start, rest = table, tuple(i for i in range(d) if i not in axes)
            result: Array = start.sum(axis=rest)
            return result

        return summed
