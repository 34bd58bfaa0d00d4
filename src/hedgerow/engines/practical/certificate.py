"""A certificate: the largest error of any small question, itself released, for a few per cent of the budget.

Proof: docs/proofs/certificate.md. Symbols: H the hypothesis' tables when it was made, N the data's counts, ñ the rows.

    T    = max over sets t of up to three attributes in a public family, over products q on t, of |⟨q, N_t⟩ − ⟨q, G_t⟩| − a_t(q);
           and over the sums q that are 0 where a mean of an ordered attribute within one value of another is what H has, a_t(q) < 0 being all the same
    A(k) = max over sets t of k attributes, over all weights q on t, of |⟨q, N_t⟩ − ⟨q, G_t⟩|

G_t is ñ·H_t rounded to whole steps of a public power of two, and a_t(q) what is expected of q by public quantities (``expected_errors``): one
number so gives each question a bar of its own size. One row moves every term by at most 1, and so their maximum: T and the A
are drawn once each with noise of sensitivity 1. Every question of the class, also one that an analyst invents later, then
errs by at most what it is allowed, that number and the noise's quantile. After a refit the bar still is about H: answers may move inside it.

*Typical error*: the mean of the same |⟨q, N_t⟩ − ⟨q, G_t⟩| over all boxes on the sets that no measurement covers, or on all where each is
covered, a set the more the fewer of its boxes a row is in, and then as if each set were alike. A row is in few of these boxes, so that it moves
the mean by far less than 1. It is an average over questions and bounds none. It is drawn first, and what is expected of a question is in proportion to it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Literal, Protocol

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.engines.practical.expected_errors import MOST_SUM, Allowed, allowed, usual
from hedgerow.engines.practical.largest_errors import PLACES, Steps, work
from hedgerow.engines.practical.measurement import Rows, varying
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.questions.linear import Linear, answer_all
from hedgerow.questions.universe import Universe
from hedgerow.questions.wire_values import Json

LARGEST = 3  # attributes of a set
MOST_WORK = 3e8  # additions for all sets of one size: less than a second
MOST_CELLS, MOST_LISTED = 3_000_000, 60_000  # of one size
NEARLY = 1e-9  # how far weights may be from a line to be taken for it, and what is left
MOST_SETS = {1: 5_000, 2: 5_000, 3: 3_000}  # all pairs of 100 attributes
Class = Literal["products", "any", "means"]


class Known(Protocol):
    """What a certificate is about (``knowledge.Knowledge``)."""

    @property
    def universe(self) -> Universe: ...

    @property
    def hypothesis(self) -> Hypothesis: ...

    @property
    def rows(self) -> Rows: ...

    def believed(self, names: Names) -> Array: ...

    def measures(self, names: Names) -> bool: ...

    def deviations(self, names: Names, queries: Sequence[Linear]) -> Array: ...


@dataclass(frozen=True)
class Limit:
    """All questions of a class on ``sets`` of the ``of`` sets of so many attributes err by at most ``bar``, of the rows.

    ``kind``: "products" are of an interval of each ordered attribute and a set of values of each other one, or of a number that
    rises or falls along one of them, and most of them have narrower bars; "any" are of any weights; "means" are Σ (x − c) of a number
    within one value of another attribute, over its range, c being about its mean. ``beta``: with what probability it may fail, those of products
    and means all at once.
    """

    kind: Class
    size: int
    bar: float
    sets: int
    of: int
    beta: float


@dataclass(frozen=True)
class Certificate:
    """What holds for every question of a kind, asked or not, about the hypothesis as it was when the session was opened.

    ``typical``: the mean error of a box of up to three attributes that nothing measured, or of all where each was measured: no
    bound. None where they were too many. ``beta_of_rows``: with what probability what is known of the number of rows may fail,
    where that is private.
    """

    limits: tuple[Limit, ...]
    typical: float | None
    beta_of_rows: float = 0.0

    @property
    def beta(self) -> float:
        """The probability that any of it fails."""
        at_once = max((limit.beta for limit in self.limits if limit.kind != "any"), default=0.0)
        return at_once + math.fsum(limit.beta for limit in self.limits if limit.kind == "any") + self.beta_of_rows

    def __str__(self) -> str:
        products = [limit for limit in self.limits if limit.kind == "products"]
        bars = "; ".join(
            f"{limit.bar:.2g} on {limit.size} attribute{'s' if limit.size > 1 else ''}"
            + ("" if limit.sets == limit.of else f" ({limit.sets:,} of {limit.of:,} sets)")
            for limit in products
        )
        anything = max((limit.bar for limit in self.limits if limit.kind == "any"), default=math.inf)
        usual = "" if self.typical is None else f" Typically they err by {self.typical:.1g}: an average, no bound."
        return (
            f"With probability {1 - self.beta:.4g}, the session's answers to all counts of ranges and sets of values, asked or not, are "
            f"within {bars} of the table's, most of them far closer; and questions of any weights within {anything:.2g}.{usual}"
        )


class Certified:
    """The released numbers at work: how far a question's true count may be from what was certified."""

    def __init__(self, known: Known, family: dict[int, list[Names]]) -> None:
        self.hypothesis, self.rows, self.universe = known.hypothesis, known.rows, known.universe
        self.family = {names for sets in family.values() for names in sets}
        self.rounding: dict[Names, float] = {}  # how far the steps are from what they stand for, in rows
        self.bits = 0  # of a step
        self.typical: float | None = None  # in rows
        self.margin = math.inf  # by how many rows an error may exceed what is allowed
        self.anything: dict[int, float] = {}  # how many rows any weights may be off, by the number of attributes
        self.means = math.inf  # how many rows the sums of which means are made may be off
        self._allowed: dict[Names, list[Allowed]] = {}
        self.certificate: Certificate | None = None

    @classmethod
    def restored(cls, known: Known, record: Json) -> Certified:
        """What ``state`` described, of what was known when it was made."""
        made = cls(known, small_sets(known))
        made.margin, made.bits = record["margin"], record["bits"]
        made.anything = {size: rows for size, rows in record["anything"]}
        made.rounding = dict(zip(sorted(made.family), record["rounding"], strict=True))
        made.typical, means = record["typical"], record.get("means")  # not in snapshots from before it was drawn
        made.means = math.inf if means is None else means
        stated = tuple(Limit(*fields) for fields in record["stated"])
        usual = None if made.typical is None else made.typical / known.rows.estimate
        made.certificate = Certificate(stated, usual, record["beta_of_rows"])
        return made

    def state(self) -> Json:
        """All that was released and what follows from it, public and as JSON."""
        assert self.certificate is not None
        return {
            "margin": self.margin,
            "bits": self.bits,
            "anything": [[size, rows] for size, rows in self.anything.items()],
            "rounding": [self.rounding[names] for names in sorted(self.family)],
            "typical": self.typical,
            "means": self.means if math.isfinite(self.means) else None,
            "stated": [list(astuple(limit)) for limit in self.certificate.limits],
            "beta_of_rows": self.certificate.beta_of_rows,
        }

    def believed(self, names: Names) -> Array:
        """The table that was certified."""
        return self.hypothesis.marginal(names)

    def allowed(self, names: Names, *, keep: bool = True) -> list[Allowed]:
        """What is expected of the questions on these attributes: public, and fixed once the typical error is drawn."""
        found = self._allowed.get(names) or allowed(self.believed(names), self.typical or 0.0, self.bits)
        if keep:
            self._allowed[names] = found
        return found

    def stepped(self, names: Names) -> Steps:
        """ñ times that table in whole steps; by how many rows a question's value differs is kept."""
        bits = self.bits
        expected = np.ldexp(self.rows.estimate * self.believed(names), bits)
        steps = np.clip(np.rint(expected), 0, MOST_SUM // expected.size)
        off = steps - expected
        self.rounding[names] = math.ldexp(float(max(off[off > 0].sum(), -off[off < 0].sum())), -bits)
        return steps.astype(np.int64)

    def reach(self, names: Names, queries: Sequence[Linear]) -> Array:
        """How many rows the true count of each query on ``names`` may be from ñ times its certified answer."""
        if names not in self.family:
            return np.full(len(queries), math.inf)
        pieces = self._products(names, queries)
        reach: Array = np.full(len(queries), math.inf)
        for each in self.allowed(names):
            steps = each.table
            on_cells = 0.0 if steps is None else self._rows_of(answer_all(queries, lambda _, steps=steps: steps))  # type: ignore[misc]
            reach = np.minimum(reach, self._of_product(each) * pieces + on_cells)
        if len(names) == 2 and math.isfinite(self.means):
            reach = np.minimum(reach, [self._of_mean(names, query) for query in queries])
        anything = self.anything[len(names)]
        if (reach > anything).any():
            public = self.rows.low == self.rows.high  # then what is added to all weights changes nothing
            reach = np.minimum(reach, anything * np.array([_spread(q, public) for q in queries]))
        reach += self.rounding[names]
        return reach

    def places(self, names: Names, axis: int) -> Steps:
        """Where the means of an attribute are within the values of another, in PLACES of its range: of the table that was certified, and public."""
        lines = np.moveaxis(np.maximum(self.believed(names), 0.0), axis, -1)
        along, totals = lines @ np.linspace(0.0, 1.0, lines.shape[-1]), lines.sum(axis=-1)
        means = np.divide(along, totals, out=np.full(totals.shape, 0.5), where=totals > 0)
        places: Steps = np.clip(np.rint(means * PLACES), 0, PLACES).astype(np.int64)
        return places

    def _of_mean(self, names: Names, query: Linear) -> float:
        """How many rows γ + β(u − c) within one value of an attribute, and γ at its others, may be off: |β|(M + |c − c₀|·that value's own error),
        c₀ being the place that was certified, and γ times what is not known of n. Infinite for what is no such line. A value's own error is that
        of its count by this table: what is certified of it, and how far the two tables are apart.
        """
        if query.vectors:
            return math.inf
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
            away = abs(c - int(self.places(names, axis)[k]) / PLACES)
            value = {other: np.arange(self.universe[other].size) == k}
            of_value = 0.0
            if away:
                of_value = float(self.reach((other,), [Linear.product(self.universe, value)])[0])
                of_value += self._apart(names, axis, k)
            return (
                abs(slope) * (self.means + away * of_value)
                + abs(gamma) * self.rows.off
                + off * (self.rows.high + self.rows.estimate)
            )
        return math.inf

    def _apart(self, names: Names, axis: int, k: int) -> float:
        """How many rows the count of a value is, by this table, from what it is by the value's own: corrected tables need not agree."""
        by_pair, by_itself = self.believed(names).sum(axis=axis), self.believed((names[1 - axis],))
        return self.rows.estimate * abs(float(by_pair[k] - by_itself[k]))

    def cells(self, names: Names) -> Array:
        """The same of each cell of a table."""
        reach: Array = np.full(self.universe.sizes(names), math.inf)
        if names not in self.family:
            return reach
        for each in self.allowed(names):
            on_cells = 0.0 if each.table is None else self._rows_of(each.table)
            reach = np.minimum(reach, self._of_product(each) + on_cells)
        reach = np.minimum(reach, self.anything[len(names)])
        reach += self.rounding[names]
        return reach

    def flat(self, names: Names) -> float:
        """How many rows any product on these attributes may be off, whichever cells it is about."""
        lines = allowed(self.believed(names), self.typical or 0.0, self.bits, flat=True)
        return min(map(self._of_product, lines)) + self.rounding[names]

    def _of_product(self, each: Allowed) -> float:
        """Of one product, beside what its cells are allowed; sums of products have it once for each."""
        return max(0.0, math.ldexp(each.offset, -self.bits) + self.margin)

    def _rows_of(self, steps: Steps | Array) -> Array:
        rows: Array = np.ldexp(np.asarray(steps, dtype=float), -self.bits)
        return rows

    def usual(self, names: Names, queries: Sequence[Linear]) -> Array:
        """How many rows such queries are off in the mean, as a guess; NaN where nobody knows. No bound."""
        roots = self._roots(names)
        return self._usual(
            names, np.full(len(queries), math.nan) if roots is None else answer_all(queries, lambda _: roots)
        )

    def usual_cells(self, names: Names) -> Array:
        """The same of each cell of a table."""
        roots = self._roots(names)
        return self._usual(names, np.full(self.universe.sizes(names), math.nan) if roots is None else roots)

    def _roots(self, names: Names) -> Array | None:
        if self.typical is None or names not in self.family:
            return None
        roots: Array = np.sqrt(np.maximum(self.believed(names), 0.0))
        return roots

    def _usual(self, names: Names, parts: Array) -> Array:
        if self.typical is None or names not in self.family:
            return parts
        rows: Array = self.typical * usual(self.believed(names), ordered_axes(self.universe, names), parts)
        return rows

    def distance(self, names: Names) -> float:
        """How many rows the true counts may be from those certified in ℓ1."""
        if names not in self.family:
            return math.inf
        return 2 * (self.anything[len(names)] + self.rounding[names])

    def _products(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Of how many products, by weight, each query is the sum.

        A vector v ≥ 0 along an ordered attribute is the sum of the intervals of its level sets, Σ (v_i − v_{i−1})⁺ by weight,
        and along another of the level sets themselves, max v by weight. A table that is no product is a sum of its lines.
        """
        if not all(query.vectors for query in queries):
            return np.array([self._of_one(names, query) for query in queries])
        pieces = np.ones(len(queries))
        for axis, name in enumerate(names):
            vectors = np.stack([q.vectors[axis] for q in queries if q.vectors]).astype(float)
            pieces *= _rises(vectors) if self.universe[name].ordered else vectors.max(axis=1)
        return pieces

    def _of_one(self, names: Names, query: Linear) -> float:
        if query.vectors:
            return float(self._products(names, [query])[0])
        axes = [axis for axis, name in enumerate(names) if self.universe[name].ordered]
        lines = [float(_rises(np.moveaxis(query.table, axis, -1)).sum()) for axis in axes]
        return min(lines, default=math.inf)


def _spread(query: Linear, public: bool) -> float:
    """The largest weight, less the smallest where n is public; of a count of some but not all cells 1."""
    if query.vectors and query.is_count:
        return 1.0
    return float(query.table.max() - (query.table.min() if public else 0.0))


def _rises(vectors: Array) -> Array:
    """Σ_i (v_i − v_{i−1})⁺ along the last axis, v_{−1} = 0."""
    rises: Array = vectors[..., 0] + np.maximum(np.diff(vectors, axis=-1), 0.0).sum(axis=-1)
    return rises


# The family: public


def small_sets(known: Known) -> dict[int, list[Names]]:
    """The sets of each size that are certified: all, or as many as can be gone through, of very many those inside the model's cliques."""
    universe, found = known.universe, {}
    names = varying(universe, universe.names)
    for size in range(1, min(LARGEST, len(names)) + 1):
        if math.comb(len(names), size) <= MOST_LISTED:
            every = set(itertools.combinations(names, size))
        else:
            inside = (itertools.combinations(varying(universe, clique), size) for clique in known.hypothesis.cliques)
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


def _work(universe: Universe, names: Names) -> float:
    return work(universe.sizes(names), ordered_axes(universe, names))


def ordered_axes(universe: Universe, names: Names) -> list[bool]:
    return [universe[name].ordered for name in names]
