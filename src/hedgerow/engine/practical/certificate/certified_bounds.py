"""Certificates: the largest error of any small question, itself released, for a few per cent of the budget.

Proof: docs/proofs/certificate.md. Symbols: H are the hypothesis' tables when the certificate was made, N the data's
counts, ñ the rows.

    T    = max over sets t of up to three attributes in a public family, over products q on t, of
           |⟨q, N_t⟩ − ⟨q, G_t⟩| − a_t(q)
    L    = max over pairs t of that family, over the sums λ = x − c of an ordered attribute within one value of the
           other, c about the mean that H has there, of |⟨λ, N_t⟩ − ⟨λ, G_t⟩|/f_t(λ) − a_t(λ)
    A(k) = max over sets t of k attributes, over all weights q on t, of |⟨q, N_t⟩ − ⟨q, G_t⟩|

G_t is ñ·H_t rounded to whole steps of a public power of two. a_t(q) is the error expected of q by public quantities
(``error_allowances``), so that one number gives each question a bar of its own size. f_t(λ) is the most that a row
moves ⟨λ, N_t⟩. One row moves every term by at most 1, and so their maximum: T, L and each A are drawn once with noise
of sensitivity 1. Every question of the class, including one that an analyst invents later, then errs by at most its
expected error plus that number and the noise's quantile. After a refit the bar is still about H; the new answers may
move inside it.

*Typical error*: the mean of the same |⟨q, N_t⟩ − ⟨q, G_t⟩| over all boxes on the sets that no measurement covers, or
on all sets if each is covered. A set has the more weight the fewer of its boxes a row is in; the result is then
rescaled as if all sets had equal weight. A row is in few of these boxes, so it moves the mean by far less than 1. The
typical error is an average over questions and bounds none of them. It is drawn first, and the error expected of a
question is proportional to it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.engine.certificate import Certificate, CertificateLimit
from hedgerow.engine.practical.certificate.largest_errors import (
    MOST_SUM,
    PLACES,
    ErrorAllowance,
    Steps,
    allowance_of_means,
    error_allowances,
    typical_errors,
    work,
)
from hedgerow.engine.practical.measurement import RowCountInterval, varying_names
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.linear import Linear, Products, answer_all, stack_vectors
from hedgerow.universe.universe import Universe

LARGEST = 3  # most attributes of a certified set
MOST_WORK = 3e8  # most additions for all sets of one size: less than a second
MOST_CELLS = 3_000_000  # most cells of all sets of one size, and of a table on the way to one
MOST_LISTED = 60_000  # most sets that are listed
NEARLY = 1e-9  # weights this near to a line count as that line; the bar includes the rest
MOST_SETS = {1: 5_000, 2: 5_000, 3: 3_000}  # most sets of each size: enough for all pairs of 100 attributes


class CertifiableAnswers(Protocol):
    """The knowledge that a certificate is about (``knowledge.Knowledge``)."""

    @property
    def universe(self) -> Universe:
        """The universe of the questions."""
        ...

    @property
    def hypothesis(self) -> Hypothesis:
        """The hypothesis to be certified."""
        ...

    @property
    def rows(self) -> RowCountInterval:
        """The public knowledge of n."""
        ...

    def hypothesis_table(self, names: Names) -> Array:
        """Return the hypothesis' table on ``names``."""
        ...

    def measures(self, names: Names) -> bool:
        """Return True if a measurement covers these attributes."""
        ...

    def deviations(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Return the standard deviations of what was measured of these queries, in rows."""
        ...


SumsOfMeans = tuple[Steps, Steps, Steps]
"""The terms of each value of an attribute (``sums_of_means``).

c and f are in PLACES of a number's range, the allowance is in steps.
"""


class CertifiedCounts:
    """The released numbers of a certificate in use: how far a true count may be from the certified answer."""

    def __init__(self, known: CertifiableAnswers, family: dict[int, list[Names]]) -> None:
        self.hypothesis, self.rows, self.universe = known.hypothesis, known.rows, known.universe
        self.family = {names for sets in family.values() for names in sets}
        self.left_out: list[Names] = []  # sets whose tables are too costly to make
        self.rounding: dict[Names, float] = {}  # rounding error of the table in whole steps, in rows
        self.bits = 0  # a step is 2^-bits rows
        self.typical: float | None = None  # typical error in rows
        self.margin = math.inf  # rows by which an error may exceed its allowance
        self.anything: dict[int, float] = {}  # bound in rows for any weights, by the number of attributes
        self.means = math.inf  # rows by which the sums that means are made of may exceed their allowance
        self._unmeasured = {names for names in family.get(2, ()) if not known.measures(names)}
        self._are_scaled = True  # False if the bound is of the sums as they are, without f and allowance
        self._sums: dict[tuple[Names, int], SumsOfMeans] = {}
        self._allowed: dict[Names, list[ErrorAllowance]] = {}
        self._kept_roots: dict[Names, Array] = {}
        self.certificate: Certificate | None = None

    @classmethod
    def restore(cls, known: CertifiableAnswers, record: dict[str, Any]) -> CertifiedCounts:
        """Rebuild the certificate that ``state`` described; ``known`` is the knowledge it was made from."""
        left_out = [tuple(names) for names in record.get("left_out", ())]
        family = without(small_sets(known), left_out)
        made = cls(known, family)
        made.left_out = left_out
        made.margin, made.bits = record["margin"], record["bits"]
        made.anything = {size: rows for size, rows in record["anything"]}
        if made.anything.keys() != family.keys():
            raise InvalidInput(
                f"A certificate must bound sums on sets of {sorted(family)} attributes. Found bounds for "
                f"{sorted(made.anything)}. Publish the file again."
            )
        made.rounding = dict(zip(sorted(made.family), record["rounding"], strict=True))
        # Older snapshots have "means", a bound of the sums as they are, or neither.
        made.typical, made._are_scaled = record["typical"], "sums" in record
        means = record.get("sums", record.get("means"))
        made.means = math.inf if means is None else means
        stated = tuple(CertificateLimit(*fields) for fields in record["stated"])
        typical_error = None if made.typical is None else made.typical / known.rows.estimate
        made.certificate = Certificate(stated, typical_error, record["beta_of_rows"])
        return made

    def state(self) -> dict[str, Any]:
        """Return all that was released and what follows from it, public and as plain data."""
        assert self.certificate is not None
        state = {
            "margin": self.margin,
            "bits": self.bits,
            "anything": [[size, rows] for size, rows in self.anything.items()],
            "rounding": [self.rounding[names] for names in sorted(self.family)],
            "typical": self.typical,
            "sums" if self._are_scaled else "means": self.means if math.isfinite(self.means) else None,
            "stated": [list(astuple(limit)) for limit in self.certificate.limits],
            "beta_of_rows": self.certificate.beta_of_rows,
        }
        return state | ({"left_out": [list(names) for names in self.left_out]} if self.left_out else {})

    def certified_table(self, names: Names) -> Array:
        """Return the table that was certified."""
        return self.hypothesis.marginal(names)

    def allowances(self, names: Names, *, keep: bool = True) -> list[ErrorAllowance]:
        """Return the allowances of questions on these attributes: public, fixed once the typical error is drawn."""
        found = self._allowed.get(names) or error_allowances(
            self.certified_table(names), self.typical or 0.0, self.bits
        )
        if keep:
            self._allowed[names] = found
        return found

    def in_steps(self, names: Names) -> Steps:
        """Return ñ times the certified table in whole steps, and record the rounding error in rows."""
        bits = self.bits
        expected = np.ldexp(self.rows.estimate * self.certified_table(names), bits)
        steps = np.clip(np.rint(expected), 0, MOST_SUM // expected.size)
        off = steps - expected
        self.rounding[names] = math.ldexp(float(max(off[off > 0].sum(), -off[off < 0].sum())), -bits)
        return steps.astype(np.int64)

    def reach(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Return how many rows the true count of each query on ``names`` may be from ñ times its certified answer."""
        if names not in self.family:
            return np.full(len(queries), math.inf)
        pieces = self._products(names, queries)
        reach: Array = np.full(len(queries), math.inf)
        for each in self.allowances(names):
            steps = each.table
            on_cells = 0.0 if steps is None else self._rows_of(answer_all(queries, lambda _, steps=steps: steps))  # type: ignore[misc]
            reach = np.minimum(reach, _times(pieces, self._of_product(each)) + on_cells)
        anything = self.anything[len(names)]
        if (reach > anything).any():
            public = self.rows.low == self.rows.high  # with n public, a constant added to all weights changes nothing
            spreads = 1.0 if isinstance(queries, Products) else np.array([_spread(q, public) for q in queries])
            reach = np.minimum(reach, anything * spreads)
        reach += self.rounding[names]
        return reach

    def reach_of_count(self, names: Names, query: Linear) -> float:
        """Return what ``reach`` gives for one product of sets of cells."""
        if names not in self.family:
            return math.inf
        vectors, pieces, found = query.vectors or (), 1, math.inf
        for name, mask in zip(names, vectors, strict=True):
            if self.universe[name].ordered:  # the number of its intervals
                pieces *= int(mask[0]) + int(np.count_nonzero(mask[1:] > mask[:-1]))
        for each in self.allowances(names):
            on_cells = 0.0 if each.table is None else math.ldexp(query.dot(each.weights), -self.bits)
            found = min(found, self._of_product(each) * pieces + on_cells)
        return min(found, self.anything[len(names)]) + self.rounding[names]

    def places(self, names: Names, axis: int) -> Steps:
        """Return the means of an attribute within each value of another, in PLACES of its range. Public.

        They are those of the table that was certified.
        """
        lines = np.moveaxis(np.maximum(self.certified_table(names), 0.0), axis, -1)
        along, totals = lines @ np.linspace(0.0, 1.0, lines.shape[-1]), lines.sum(axis=-1)
        means = np.divide(along, totals, out=np.full(totals.shape, 0.5), where=totals > 0)
        places: Steps = np.clip(np.rint(means * PLACES), 0, PLACES).astype(np.int64)
        return places

    def sums_of_means(self, names: Names, axis: int) -> SumsOfMeans:
        """Return the sums that were certified of an attribute within each value of another. Public.

        f_k is the most that a row moves the sum: max(c_k, 1 − c_k), or 1 where a row may be replaced.
        """
        key = names, axis
        if key not in self._sums:
            places = self.places(names, axis)
            farthest, allowed = np.full_like(places, PLACES), np.zeros_like(places)
            if self._are_scaled and names in self._unmeasured:
                lines = np.moveaxis(self.rows.estimate * self.certified_table(names), axis, -1)
                allowed = allowance_of_means(lines, places / PLACES, self.bits)
            if self._are_scaled and self.rows.low < self.rows.high:
                farthest = np.maximum(places, PLACES - places)
            self._sums[key] = places, farthest, allowed
        return self._sums[key]

    def farthest_of_means(self, names: Names) -> float:
        """Return how many rows any of the sums that means of a pair are made of may be off."""
        axes = np.flatnonzero(ordered_axes(self.universe, names)).tolist()
        return max(float(self._of_sums(names, axis).max()) for axis in axes) + self.rounding[names]

    def _of_sums(self, names: Names, axis: int) -> Array:
        """Return how many rows each of the sums of an attribute within a value of another may be off."""
        _, farthest, allowed = self.sums_of_means(names, axis)
        return farthest / PLACES * np.maximum(0.0, self._rows_of(allowed) + self.means)

    def of_mean(self, names: Names, query: Linear) -> tuple[float, float]:
        """Return γ, and how many rows ⟨q − γ, counts⟩ may be off, for a line q within one value of an attribute.

        The line is γ + β(u − c) within that value, and γ at the others. The bound is |β|(that of u − c₀ + |c − c₀|·that
        value's own error), with c₀ the place that was certified. A value's own error is that of its count by this
        table: its certified error, plus the distance between the two tables. Any other query has no bound.
        """
        if len(names) != 2 or names not in self.family or query.vectors or not math.isfinite(self.means):
            return 0.0, math.inf
        for axis, other in ((0, names[1]), (1, names[0])):
            if not self.universe[names[axis]].ordered:
                continue
            lines = np.moveaxis(query.table, axis, -1)
            bent = np.flatnonzero(np.ptp(lines, axis=-1) > 0)
            if bent.size != 1:
                continue
            k, rest = int(bent[0]), np.delete(lines, bent[0], axis=0)
            slope, gamma = float(lines[k, -1] - lines[k, 0]), float(rest[0, 0])
            if slope == 0:
                continue
            c = (gamma - float(lines[k, 0])) / slope
            line = gamma + slope * (np.linspace(0.0, 1.0, lines.shape[-1]) - c)
            off = max(float(np.abs(lines[k] - line).max()), float(np.abs(rest - gamma).max()))
            if off > NEARLY:
                continue
            away = abs(c - int(self.sums_of_means(names, axis)[0][k]) / PLACES)
            value = {other: np.arange(self.universe[other].size) == k}
            of_value = 0.0
            if away:
                of_value = float(self.reach((other,), [Linear.product(self.universe, value)])[0])
                of_value += self._apart(names, axis, k)
            return gamma, (
                abs(slope) * (float(self._of_sums(names, axis)[k]) + away * of_value)
                + off * (self.rows.high + self.rows.estimate)
                + self.rounding[names]
            )
        return 0.0, math.inf

    def _apart(self, names: Names, axis: int, k: int) -> float:
        """Return the distance in rows between the counts of a value by this table and by the value's own table.

        Corrected tables need not agree.
        """
        by_pair, by_itself = self.certified_table(names).sum(axis=axis), self.certified_table((names[1 - axis],))
        return self.rows.estimate * abs(float(by_pair[k] - by_itself[k]))

    def cells(self, names: Names) -> Array:
        """Return how many rows each cell of a table may be off."""
        reach: Array = np.full(self.universe.sizes(names), math.inf)
        if names not in self.family:
            return reach
        for each in self.allowances(names):
            on_cells = 0.0 if each.table is None else self._rows_of(each.table)
            reach = np.minimum(reach, self._of_product(each) + on_cells)
        reach = np.minimum(reach, self.anything[len(names)])
        reach += self.rounding[names]
        return reach

    def flat(self, names: Names) -> float:
        """Return how many rows any product on these attributes may be off, whichever cells it is about."""
        lines = error_allowances(self.certified_table(names), self.typical or 0.0, self.bits, flat=True)
        return min(map(self._of_product, lines)) + self.rounding[names]

    def _of_product(self, each: ErrorAllowance) -> float:
        """Return a product's bound apart from the allowance of its cells; sums of products have it once for each."""
        return max(0.0, math.ldexp(each.offset, -self.bits) + self.margin)

    def _rows_of(self, steps: Steps | Array) -> Array:
        """Convert steps to rows."""
        rows: Array = np.ldexp(np.asarray(steps, dtype=float), -self.bits)
        return rows

    def typical_errors(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Return the expected mean error of such queries in rows; NaN if unknown. A guess, not a bound."""
        roots = self._roots(names)
        return self._typical_of_parts(
            names, np.full(len(queries), math.nan) if roots is None else answer_all(queries, lambda _: roots)
        )

    def typical_cells(self, names: Names) -> Array:
        """Return the expected mean error of each cell of a table in rows; NaN if unknown."""
        roots = self._roots(names)
        return self._typical_of_parts(names, np.full(self.universe.sizes(names), math.nan) if roots is None else roots)

    def _roots(self, names: Names) -> Array | None:
        """Return the square roots of the certified table; None if the set has no typical error."""
        if self.typical is None or names not in self.family:
            return None
        if names not in self._kept_roots:
            self._kept_roots[names] = np.sqrt(np.maximum(self.certified_table(names), 0.0))
        return self._kept_roots[names]

    def _typical_of_parts(self, names: Names, parts: Array) -> Array:
        """Return the expected errors in rows of questions with these sums of square roots."""
        if self.typical is None or names not in self.family:
            return parts
        roots = self._roots(names)
        assert roots is not None
        rows: Array = self.typical * typical_errors(roots, ordered_axes(self.universe, names), parts)
        return rows

    def distance(self, names: Names) -> float:
        """Return how many rows the true counts may be from those certified in ℓ1."""
        if names not in self.family:
            return math.inf
        return 2 * (self.anything[len(names)] + self.rounding[names])

    def _products(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Return the total weight of products that each query is the sum of.

        A vector v ≥ 0 along an ordered attribute is the sum of the intervals of its level sets, with total weight Σ
        (v_i − v_{i−1})⁺. Along another attribute it is the sum of the level sets themselves, with total weight max v.
        A table that is no product is a sum of its lines.
        """
        stacked = isinstance(queries, Products)
        if not stacked and not all(query.vectors for query in queries):
            return np.array([self._of_one(names, query) for query in queries])
        pieces = np.ones(len(queries))
        for axis, name in enumerate(names):
            if isinstance(queries, Products):
                lines: NDArray[Any] = queries.masks[axis]
            else:
                lines = stack_vectors([q.vectors[axis] for q in queries if q.vectors])
            vectors = lines.astype(float)
            pieces *= _rises(vectors) if self.universe[name].ordered else vectors.max(axis=1)
        return pieces

    def _of_one(self, names: Names, query: Linear) -> float:
        """Return the total weight of products of one query."""
        if query.vectors:
            return float(self._products(names, [query])[0])
        axes = [axis for axis, name in enumerate(names) if self.universe[name].ordered]
        lines = [float(_rises(np.moveaxis(query.table, axis, -1)).sum()) for axis in axes]
        return min(lines, default=math.inf)


def _times(pieces: Array, rows: float) -> Array:
    """Return the bounds of sums of products, each within ``rows``: infinite for what is no sum of them, even if 0."""
    few = np.isfinite(pieces)
    bounds: Array = np.where(few, np.where(few, pieces, 0.0) * rows, math.inf)
    return bounds


def _spread(query: Linear, public: bool) -> float:
    """Return the largest weight, less the smallest if n is public; 1 for a count of some but not all cells."""
    if query.vectors and query.is_count:
        return 1.0
    return float(query.table.max() - (query.table.min() if public else 0.0))


def _rises(vectors: Array) -> Array:
    """Return Σ_i (v_i − v_{i−1})⁺ along the last axis, with v_{−1} = 0."""
    rises: Array = vectors[..., 0] + np.maximum(np.diff(vectors, axis=-1), 0.0).sum(axis=-1)
    return rises


# The family of certified sets, which is public.


def small_sets(known: CertifiableAnswers) -> dict[int, list[Names]]:
    """Return the sets of each size that are certified: all, or as many as can be scanned.

    If there are very many sets, only those inside the model's cliques are considered.
    """
    universe, found = known.universe, {}
    names = varying_names(universe, universe.names)
    for size in range(1, min(LARGEST, len(names)) + 1):
        if math.comb(len(names), size) <= MOST_LISTED:
            every = set(itertools.combinations(names, size))
        else:
            inside = (
                itertools.combinations(varying_names(universe, clique), size) for clique in known.hypothesis.cliques
            )
            every = set(itertools.islice(itertools.chain.from_iterable(inside), MOST_LISTED))
        taken: list[Names] = []
        additions, cells = 0.0, 0
        for work_of_it, t in sorted((_work(universe, t), t) for t in every):
            additions, cells = additions + work_of_it, cells + universe.cells(t)
            if additions > MOST_WORK or cells > MOST_CELLS or len(taken) == MOST_SETS[size]:
                break
            taken.append(t)
        if taken:
            found[size] = taken
    return found


def too_costly(known: CertifiableAnswers, family: dict[int, list[Names]]) -> list[Names]:
    """List the sets whose tables the model makes only from larger ones: a public fact.

    For sets of ``LARGEST`` attributes a table on the way may have each set's part of ``MOST_WORK`` cells, for others
    ``MOST_CELLS``.
    """
    found = []
    for size, sets in family.items():
        cells = MOST_CELLS if size < LARGEST else int(MOST_WORK / len(sets))
        found += [t for t in sets if not known.hypothesis.can_tabulate(t, cells)]
    return found


def without(family: dict[int, list[Names]], left_out: Sequence[Names]) -> dict[int, list[Names]]:
    """Return the family without some sets."""
    rest = {size: [t for t in sets if t not in left_out] for size, sets in family.items()} if left_out else family
    return {size: sets for size, sets in rest.items() if sets}


def _work(universe: Universe, names: Names) -> float:
    """Return the number of additions that a set needs."""
    return work(universe.sizes(names), ordered_axes(universe, names))


def ordered_axes(universe: Universe, names: Names) -> list[bool]:
    """Return for each attribute whether it is ordered."""
    return [universe[name].ordered for name in names]
