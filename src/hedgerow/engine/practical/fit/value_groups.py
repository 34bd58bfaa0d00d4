"""Merge rare values inside the model, where larger tables cannot tell them apart; answers stay about values.

    g(x)      the group of a value of a wide attribute; every value of another attribute is a group of its own
    r(x)      the value's share of its group, from the attribute's own noisy counts
    p(x) = P(g(x))·Π_a r_a(x_a)      P: the model, which knows only groups

The counts of a wide attribute are measured first. A value with a count of at least ``WORTH`` times the noise of a
later table is a group of its own; rarer values, in their order, share groups of about that count. A table of groups
has the same sensitivity as a table of values, because a row is in exactly one group, and it has far fewer cells: less
noise in total, and a smaller model. What is lost is how the values *inside* a group differ in their relation to other
attributes; a group holds too few rows to tell that from noise.

The shares within a group are the noisy counts, shrunk towards their mean by as much as noise would spread them (James
& Stein 1961).

Groups and shares are functions of released counts and public sizes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.data.source import DataSource
from hedgerow.engine.practical.measurement import Measurement
from hedgerow.errors import BudgetExceeded
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.events import Gaussian
from hedgerow.privacy.noise import Noise
from hedgerow.query.linear import Linear, key_of, stack_vectors
from hedgerow.universe.attributes import Integers
from hedgerow.universe.universe import Universe

WIDE = 24  # an attribute with more values than this is wide
SHARE = 0.05  # share of the prefit's budget for the counts of the wide attributes
WORTH = 10.0  # a group should hold this many standard deviations of a later table's noise
ROUNDS = 3  # a later table's noise is that of this many tables per attribute, as the prefit begins with
LEAST_GROUPS = 16  # a group need not hold more than 1/16 of the rows, however large the noise
ITSELF = 2.0  # but it holds at least this many standard deviations of the noise of its own counts
MOST_INDICATORS = 1 << 23  # largest groups × values matrix; beyond it, group sums are made without a matrix
KEPT_CELLS = 1 << 20  # most values in the masks of the sets that are kept
KEPT_QUESTIONS = 1 << 13  # most questions whose neighbours in the universe of groups are kept
LEAST = 1e-9  # share of its group that a value with no counts gets

Groups = NDArray[np.int64]


NOTHING, EVERYTHING = (
    Linear((), (), (), np.array(share), True) for share in (0.0, 1.0)
)  # as ``Linear.product`` has them


class GroupedSet(NamedTuple):
    """A set of values of an attribute as its groups see it.

    ``below`` are the groups inside the set, ``above`` the groups that touch it. ``means`` is the part of each
    group that is in it, by the values' shares, and ``part`` the mean of these parts over the groups that touch it.
    ``sizes`` are the numbers of groups in ``below`` and in ``above``.
    """

    below: NDArray[np.bool_]
    above: NDArray[np.bool_]
    means: Array
    part: float
    sizes: tuple[int, int]


class ValueGroups:
    """The groups of values that the model treats as one value each. Public."""

    def __init__(self, universe: Universe, groups: Mapping[str, Groups], shares: Mapping[str, Array]) -> None:
        self.universe, self.groups, self._shares = universe, dict(groups), dict(shares)
        # Bars divide β by this fact about the universe, and not by whether anything was merged, which noise decided.
        self.is_possible = bool(wide(universe))
        inner = {name: universe[name] for name in universe.names}
        self.inner = Universe(inner | {name: Integers(0, int(g.max())) for name, g in self.groups.items()})
        few = [name for name, g in self.groups.items() if (int(g.max()) + 1) * g.size <= MOST_INDICATORS]
        self._indicators = {name: np.eye(int(self.groups[name].max()) + 1)[:, self.groups[name]] for name in few}
        self._orders: dict[str, tuple[Groups, Groups]] = {}
        self._sets: dict[tuple[str, bytes], GroupedSet] = {}
        self._described = 0  # number of values in the masks of these sets
        self._around: dict[Hashable, tuple[Linear, Linear, float]] = {}

    @classmethod
    def none(cls, universe: Universe) -> ValueGroups:
        """Return the merging that merges nothing."""
        return cls(universe, {}, {})

    @classmethod
    def restore(cls, universe: Universe, state: Mapping[str, Any]) -> ValueGroups:
        """Rebuild a merging from its stored ``state``."""
        return cls(universe, {n: groups for n, (groups, _) in state.items()}, {n: s for n, (_, s) in state.items()})

    def state(self) -> dict[str, Any]:
        """Return groups and shares as plain data."""
        return {name: [groups, self._shares[name]] for name, groups in self.groups.items()}

    def touches(self, names: Names) -> bool:
        """Return True if one of these attributes has merged values."""
        return not self.groups.keys().isdisjoint(names)

    def view(self, data: DataSource) -> DataSource:
        """Return the data with groups in place of values. Private."""
        return data.merge_values(self.inner, self.groups) if self.groups else data

    def sum_groups(self, names: Names, table: Array) -> Array:
        """Sum a table of values to a table of groups."""
        for axis, name in enumerate(names):
            if name in self.groups:
                table = self._sums(name, table, axis)
        return np.ascontiguousarray(table)

    def _sums(self, name: str, table: Array, axis: int, shares: Array | None = None) -> Array:
        """Sum over each group along an axis; with ``shares``, values are multiplied by their shares first."""
        if name in self._indicators:
            weights = self._indicators[name] if shares is None else self._indicators[name] * shares
            return np.moveaxis(np.tensordot(weights, table, axes=(1, axis)), 0, axis)
        if shares is not None:
            table = table * shares.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
        order, starts = self._order(name)
        return np.asarray(np.add.reduceat(np.take(table, order, axis=axis), starts, axis=axis))

    def spread(self, names: Names, table: Array) -> Array:
        """Spread a table of groups over values, by their shares."""
        for axis, name in enumerate(names):
            if name in self.groups:
                wide = [-1 if i == axis else 1 for i in range(table.ndim)]
                table = np.take(table, self.groups[name], axis=axis) * self._shares[name].reshape(wide)
        return table

    def regroup(self, other: ValueGroups, name: str, table: Array, axis: int, *, summed: bool) -> Array:
        """Convert one axis of a table from the groups of another merging to these groups.

        With ``sum_groups`` a new group gets the sum of its values' parts, otherwise their mean weighted by shares.
        """
        if name not in self.groups and name not in other.groups:
            return table
        values = np.arange(self.universe[name].size)
        theirs = other.groups.get(name, values)
        shares = other._shares[name] if name in other.groups else np.ones(values.size)
        ours = self.groups.get(name, values)
        if (int(ours.max()) + 1) * table.shape[axis] > MOST_INDICATORS:
            wide = np.take(table, theirs, axis=axis)
            along = [-1 if i == axis else 1 for i in range(table.ndim)]
            if name not in self.groups:
                return wide * shares.reshape(along) if summed else wide
            found = self._sums(name, wide, axis, shares)
            return found if summed else found / self._sums(name, shares, 0).reshape(along)
        weights = np.zeros((int(ours.max()) + 1, table.shape[axis]))
        np.add.at(weights, (ours, theirs), shares)
        if not summed:
            weights /= weights.sum(axis=1, keepdims=True)
        return np.moveaxis(np.tensordot(weights, table, axes=(1, axis)), 0, axis)

    def expected_question(self, query: Linear) -> Linear:
        """Return the question about groups with the same expected answer.

        Each group gets the mean of its values, weighted by their shares.
        """
        if not self.touches(query.attributes):
            return query
        if query.vectors:
            vectors = [self._mean(n, v) for n, v in zip(query.attributes, query.vectors, strict=True)]
            return Linear(query.attributes, tuple(v.size for v in vectors), tuple(vectors), None, False)
        table = query.table
        for axis, name in enumerate(query.attributes):
            if name in self.groups:
                table = self._sums(name, table, axis, self._shares[name])
        return Linear(query.attributes, table.shape, None, np.ascontiguousarray(np.clip(table, 0.0, 1.0)), False)

    def _mean(self, name: str, vector: NDArray[np.generic]) -> Array:
        """Return the mean of ``vector`` over each group, weighted by shares."""
        if name not in self.groups:
            return vector.astype(float)
        if vector.dtype == bool:
            return self._set(name, vector, key_of(vector.tobytes())).means
        return np.clip(self._sums(name, self._shares[name] * vector.astype(float), 0), 0, 1)

    def _set(self, name: str, mask: NDArray[Any], packed: bytes) -> GroupedSet:
        """Return what the groups of an attribute know of a set of values; ``packed`` is its key."""
        found = self._sets.get((name, packed))
        if found is None:
            if self._described > KEPT_CELLS:
                self._sets.clear()
                self._described = 0
            self._describe_sets(name, [mask])
            found = self._sets[name, packed]
        return found

    def expect(self, queries: Sequence[Linear]) -> None:
        """Describe the sets of values of these counts together, because each takes as long alone."""
        wanted: dict[str, dict[bytes, NDArray[Any]]] = {name: {} for name in self.groups}
        for query in queries:
            if query.is_count and query.vectors:
                for name, mask, packed in zip(query.attributes, query.vectors, query.packed, strict=True):
                    if name in wanted:
                        wanted[name][packed] = mask
        cells = sum(len(masks) * self.groups[name].size for name, masks in wanted.items())
        if self._described + cells > KEPT_CELLS:  # none of these is discarded while the others are described
            self._sets.clear()
            self._described = 0
        for name, masks in wanted.items():
            new = [mask for packed, mask in masks.items() if (name, packed) not in self._sets]
            if new:
                self._describe_sets(name, new)

    def _describe_sets(self, name: str, masks: Sequence[NDArray[Any]]) -> None:
        """Describe sets of values, and keep the descriptions."""
        values = stack_vectors(masks).astype(float)
        low, high = self._extremes(name, values, 1)
        each = np.clip(self._sums(name, self._shares[name] * values, 1), 0, 1)
        parts = each.sum(axis=1) / np.maximum(1, np.count_nonzero(each, axis=1))
        same, below, above = (low == high).all(axis=1).tolist(), low.astype(bool), high.astype(bool)
        sizes = list(zip(below.sum(axis=1).tolist(), above.sum(axis=1).tolist(), strict=True))
        self._described += values.size
        for i, mask in enumerate(masks):
            touched = above[i]
            self._sets[name, key_of(mask.tobytes())] = GroupedSet(
                touched if same[i] else below[i], touched, each[i], float(parts[i]), sizes[i]
            )

    def around(self, query: Linear) -> tuple[Linear, Linear]:
        """Return the largest question about groups below this one and the smallest above it.

        Both are the question itself if it divides no group.
        """
        if not self.touches(query.attributes):
            return query, query
        if query.vectors and query.is_count:
            found = self._around.get(query.key)
            if found is None:
                if len(self._around) >= KEPT_QUESTIONS:
                    self._around.clear()
                found = self._around[query.key] = self._enclose_count(query)
            return found[0], found[1]
        low = high = query.table
        for axis, name in enumerate(query.attributes):
            if name in self.groups:
                low, high = self._extremes(name, low, axis)[0], self._extremes(name, high, axis)[1]
        return Linear.canonical(query.attributes, low), Linear.canonical(query.attributes, high)

    def _enclose_count(self, query: Linear) -> tuple[Linear, Linear, float]:
        """Return the counts of groups around a count, and its part of the one above (``part``).

        They are products of the groups ``below`` each set of values, or ``above`` it, and of the query's masks where no
        group is. They are in canonical form: an attribute all of whose groups are counted is left out.
        """
        inner: list[tuple[str, NDArray[np.bool_]]] = []
        outer: list[tuple[str, NDArray[np.bool_]]] = []
        is_whole, is_empty, part = True, False, 1.0
        for name, mask, packed in zip(query.attributes, query.vectors or (), query.packed, strict=True):
            if name not in self.groups:
                inner.append((name, mask))
                outer.append((name, mask))
                continue
            each = self._set(name, mask, packed)
            part *= each.part
            is_whole &= each.below is each.above
            least, most = each.sizes
            is_empty |= not least
            if least < each.below.size:
                inner.append((name, each.below))
            if most < each.above.size:
                outer.append((name, each.above))
        above = _count_of(outer)
        return (above if is_whole else NOTHING if is_empty else _count_of(inner)), above, part

    def part(self, query: Linear, above: Linear) -> float:
        """Return which part of the enclosing question's groups is asked for, averaged over these groups."""
        if not self.touches(query.attributes) or not (query.vectors and above.vectors):
            return 1.0
        if query.is_count:
            self.around(query)
            return self._around[query.key][2]
        vectors = zip(query.attributes, query.vectors, strict=True)
        means = [self._mean(name, vector) for name, vector in vectors]
        return float(np.prod([mean.sum() / max(1, np.count_nonzero(mean)) for mean in means]))

    def _extremes(self, name: str, table: Array, axis: int) -> tuple[Array, Array]:
        """Return the smallest and the largest value of each group along an axis."""
        order, starts = self._order(name)
        ordered = np.take(table, order, axis=axis)
        return np.minimum.reduceat(ordered, starts, axis=axis), np.maximum.reduceat(ordered, starts, axis=axis)

    def _order(self, name: str) -> tuple[Groups, Groups]:
        """Return the values sorted by group, and the position where each group begins."""
        if name not in self._orders:
            groups = self.groups[name]
            order = np.argsort(groups, kind="stable")
            self._orders[name] = order, np.searchsorted(groups[order], np.arange(groups.max() + 1))
        return self._orders[name]

    def draw_values(self, codes: NDArray[np.int32], uniforms: Array) -> NDArray[np.int32]:
        """Turn sampled records of groups into records of values: each value is drawn by its share.

        ``uniforms`` has one column for each merged attribute and one row for each record.
        """
        codes = codes.copy(order="F")
        for k, (name, groups) in enumerate(self.groups.items()):
            column = self.universe.index(name)
            order = np.argsort(groups, kind="stable")
            cumulative = np.cumsum(self._shares[name][order])  # the shares of each group add up to 1
            first = np.searchsorted(groups[order], np.arange(groups.max() + 2))
            group = codes[:, column]
            low = np.where(first[group] > 0, cumulative[first[group] - 1], 0.0)
            high = cumulative[first[group + 1] - 1]
            place = np.searchsorted(cumulative, low + uniforms[:, k] * (high - low), side="right")
            codes[:, column] = order[np.clip(place, first[group], first[group + 1] - 1)]
        return codes

    def of_groups(self, measurement: Measurement) -> Measurement:
        """Convert a measurement of values to one of groups, with the noise variance of a group of mean size."""
        names, event = measurement.attributes, measurement.event
        if not self.touches(names):
            return measurement
        if measurement.query is not None:
            return replace(measurement, query=self.expected_question(measurement.query))
        louder = math.sqrt(self.universe.cells(names) / self.inner.cells(names))
        wider = (
            replace(event, sigma=event.sigma * louder)
            if isinstance(event, Gaussian)
            else replace(event, scale=event.scale * louder)
        )
        return Measurement(names, self.sum_groups(names, measurement.values), wider)


def measure_wide(data: DataSource, noise: Noise, allowance: Allowance) -> tuple[ValueGroups, list[Measurement]]:
    """Measure the wide attributes with a share of the allowance, and merge their rare values.

    Nothing is measured if no attribute is wide. A whole table of counts has the sensitivity ``budget.marginal_l2()``
    (``_l1`` where δ = 0), and is charged before it is drawn.
    """
    universe, budget = data.universe, allowance.budget
    names = wide(universe)
    if not names:
        return ValueGroups.none(universe), []
    later = Amount(budget, allowance.left / (ROUNDS * len(universe.names))).marginal()
    demand = np.array([universe[name].size for name in names], dtype=float) ** (2 / 3)
    found = []
    whole = SHARE * allowance.left
    for name, part in zip(names, whole * demand / demand.sum(), strict=True):
        carved = allowance.carve(float(part))
        event = carved.marginal()
        try:
            receipt = carved.charge(event, why="prefit: values", about={"attributes": (name,)})
        except BudgetExceeded:  # only after a crash, when lost draws are paid for twice: go on with what is known
            break
        values = noise.add(data.marginal((name,)), receipt)
        found.append(Measurement((name,), np.asarray(values, dtype=float), event))
    worth = WORTH * math.sqrt(Measurement((), np.zeros(()), later).variance)
    groups, shares = {}, {}
    for measurement in found:
        (name,), counts, own = measurement.attributes, measurement.values, math.sqrt(measurement.variance)
        least = max(min(worth, float(counts.sum()) / LEAST_GROUPS), ITSELF * own)
        each = group_rare(counts, least)
        if each.max() + 1 < counts.size:
            groups[name], shares[name] = each, group_shares(counts, each, measurement.variance)
    return ValueGroups(universe, groups, shares), found


def _count_of(sets: Sequence[tuple[str, NDArray[np.bool_]]]) -> Linear:
    """Return the count of a set of cells of each of these attributes; of everything if there is none."""
    if not sets:
        return EVERYTHING
    names, masks = zip(*sets, strict=True)
    return Linear(names, tuple([mask.size for mask in masks]), masks, None, True)


def wide(universe: Universe) -> list[str]:
    """List the attributes that have more than ``WIDE`` values."""
    return [name for name in universe.names if universe[name].size > WIDE]


def group_rare(counts: Array, least: float) -> Groups:
    """Assign a group to every value, given the smallest count that a group should have.

    A value with a count of at least ``least`` is alone; rarer values are collected, in their order, until they reach
    ``least`` together.
    """
    groups = np.full(counts.size, -1)
    group, held, begun = 0, 0.0, False
    rare = np.flatnonzero(counts < least)
    for i in rare:
        groups[i], begun = group, True
        held += max(float(counts[i]), 0.0)
        if held >= least:
            group, held, begun = group + 1, 0.0, False
    if begun and group > 0 and held < least / 2:  # too few rows are left for another group
        groups[groups == group] = group - 1
    elif begun:
        group += 1
    alone = np.flatnonzero(groups < 0)
    groups[alone] = group + np.arange(alone.size)
    return groups


def group_shares(counts: Array, groups: Groups, variance: float) -> Array:
    """Return each value's share of its group.

    The counts are shrunk to the group's mean, by the part of their spread that is noise.
    """
    size = np.bincount(groups).astype(float)
    mean = np.bincount(groups, counts) / size
    spread = np.bincount(groups, (counts - mean[groups]) ** 2)
    kept = np.maximum(0.0, 1 - np.maximum(size - 1, 0) * variance / np.maximum(spread, 1e-300))
    drawn = np.maximum(mean[groups] + kept[groups] * (counts - mean[groups]), 0.0)
    drawn += LEAST * np.maximum(np.bincount(groups, drawn), 1.0)[groups]
    return np.asarray(drawn / np.bincount(groups, drawn)[groups])
