"""A certificate: the largest error of any small question, itself released, for a few per cent of the budget.

Proof: docs/proofs/certificate.md. Symbols: H the hypothesis' tables when it was made, N the data's counts, ñ the rows.

    T    = max over sets t of up to three attributes in a public family, over products q on t, of |⟨q, N_t⟩ − ⟨q, G_t⟩| − a_t(q)
    A(k) = max over sets t of k attributes, over all weights q on t, of |⟨q, N_t⟩ − ⟨q, G_t⟩|

G_t is ñ·H_t rounded to whole steps of a public power of two, and a_t(q) what is expected of q by public quantities (``expected_errors``): one
number so gives each question a bar of its own size. One row moves every term by at most 1, and so their maximum: T and
the A are drawn once each with noise of sensitivity 1. Every question of the class, also one that an analyst invents later, then
errs by at most what it is allowed, that number and the noise's quantile. After a refit the bar still is about H: answers may move inside it.

*Typical error*: the mean of the same |⟨q, N_t⟩ − ⟨q, G_t⟩| over all boxes on the sets that no measurement covers, or on all where each is
covered, a set the more the fewer of its boxes a row is in, and then as if each set were alike. A row is in few of these boxes, so that it moves
the mean by far less than 1. It is an average over questions and bounds none. It is drawn first, and what is expected of a question is in proportion to it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from statistics import NormalDist
from typing import Literal, Protocol

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.data.source import DataSource
from hedgerow.engines.practical.expected_errors import MOST_SUM, USUAL, Allowed, allowed, part_of_boxes, usual
from hedgerow.engines.practical.largest_errors import (
    Steps,
    boxes_with,
    half_distance,
    largest_error,
    sum_of_errors,
    work,
)
from hedgerow.engines.practical.measurement import Rows, varying
from hedgerow.errors import BudgetExceeded
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace, grid_at_most
from hedgerow.privacy.noise import Noise
from hedgerow.questions.linear import Linear, answer_all
from hedgerow.questions.universe import Universe
from hedgerow.questions.wire_values import Json

LARGEST = 3  # attributes of a set
MOST_WORK = 3e8  # additions for all sets of one size: less than a second
MOST_CELLS, MOST_LISTED = 3_000_000, 60_000  # of one size
MOST_SETS = {1: 5_000, 2: 5_000, 3: 3_000}  # all pairs of 100 attributes
AT_ONCE = 5_000_000  # cells of the tables that are counted in one scan
HELPS = 0.05  # of the rows: where the noise alone reaches farther, no certificate is bought
Class = Literal["products", "any"]
SHARES: dict[Class, float] = {"products": 1.0, "any": 0.013}  # of what is spent, for each number
DOUBTS: dict[Class, float] = {"products": 20.0, "any": 1.0}  # of β
TYPICAL = 0.2  # of what is spent, as SHARES
FINEST, PRIVATE = 20, 10  # bits of a step: where n is public, and where there may be 2^50 rows
WEIGHT_BITS = 40  # of the weight of a box in the typical error
FINE = 2.0**-8  # of its sensitivity: the grid of the typical error
MOST_STEPS = 2**53
WHY = "certificate"


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


@dataclass(frozen=True)
class Limit:
    """All questions of a class on ``sets`` of the ``of`` sets of so many attributes err by at most ``bar``, of the rows.

    ``kind``: "products" are of an interval of each ordered attribute and a set of values of each other one, or of a number that
    rises or falls along one of them, and most of them have narrower bars; "any" are of any weights. ``beta``: with what probability it may
    fail, those of products all at once.
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
        products = max((limit.beta for limit in self.limits if limit.kind == "products"), default=0.0)
        others = math.fsum(limit.beta for limit in self.limits if limit.kind == "any")
        return products + others + self.beta_of_rows

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
        self.hypothesis, self.rows, self._universe = known.hypothesis, known.rows, known.universe
        self.family = {names for sets in family.values() for names in sets}
        self.rounding: dict[Names, float] = {}  # how far the steps are from what they stand for, in rows
        self.bits = 0  # of a step
        self.typical: float | None = None  # in rows
        self.margin = math.inf  # by how many rows an error may exceed what is allowed
        self.anything: dict[int, float] = {}  # how many rows any weights may be off, by the number of attributes
        self._allowed: dict[Names, list[Allowed]] = {}
        self.certificate: Certificate | None = None

    @classmethod
    def restored(cls, known: Known, record: Json) -> Certified:
        """What ``state`` described, of what was known when it was made."""
        made = cls(known, small_sets(known))
        made.margin, made.bits = record["margin"], record["bits"]
        made.anything = {size: rows for size, rows in record["anything"]}
        made.rounding = dict(zip(sorted(made.family), record["rounding"], strict=True))
        made.typical = record["typical"]
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
        anything = self.anything[len(names)]
        if (reach > anything).any():
            public = self.rows.low == self.rows.high  # then what is added to all weights changes nothing
            spread = [float(q.table.max() - (q.table.min() if public else 0.0)) for q in queries]
            reach = np.minimum(reach, anything * np.array(spread))
        reach += self.rounding[names]
        return reach

    def cells(self, names: Names) -> Array:
        """The same of each cell of a table."""
        reach: Array = np.full(self._universe.sizes(names), math.inf)
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
        return (
            min(self._of_product(each) for each in self.allowed(names, keep=False) if each.table is None)
            + self.rounding[names]
        )

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
        return self._usual(names, np.full(self._universe.sizes(names), math.nan) if roots is None else roots)

    def _roots(self, names: Names) -> Array | None:
        if self.typical is None or names not in self.family:
            return None
        roots: Array = np.sqrt(np.maximum(self.believed(names), 0.0))
        return roots

    def _usual(self, names: Names, parts: Array) -> Array:
        if self.typical is None or names not in self.family:
            return parts
        rows: Array = self.typical * usual(self.believed(names), _ordered(self._universe, names), parts)
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
            pieces *= _rises(vectors) if self._universe[name].ordered else vectors.max(axis=1)
        return pieces

    def _of_one(self, names: Names, query: Linear) -> float:
        if query.vectors:
            return float(self._products(names, [query])[0])
        axes = [axis for axis, name in enumerate(names) if self._universe[name].ordered]
        lines = [float(_rises(np.moveaxis(query.table, axis, -1)).sum()) for axis in axes]
        return min(lines, default=math.inf)


def _rises(vectors: Array) -> Array:
    """Σ_i (v_i − v_{i−1})⁺ along the last axis, v_{−1} = 0."""
    rises: Array = vectors[..., 0] + np.maximum(np.diff(vectors, axis=-1), 0.0).sum(axis=-1)
    return rises


def certified(
    data: DataSource, noise: Noise, known: Known, allowance: Allowance, beta: float, beta_of_rows: float
) -> Certified | None:
    """Spend the allowance on a certificate of what is known; None where its noise would drown it. All it decides is public.

    ``beta_of_rows``: that of the bars by which n is known, where it is private.
    """
    family = small_sets(known)
    if not family:
        return None
    plan = _planned(known, family, allowance, beta)
    if quantile(plan.margin, plan.doubts["products"]) > HELPS * known.rows.low:
        return None
    found = Certified(known, family)
    found.bits = plan.bits
    try:
        receipt = allowance.charge(*plan.events, why=WHY)
    except BudgetExceeded:  # only after a crash, when what was lost is paid for twice: go on without
        return None
    differences = _scanned(data, found, family)
    total, farthest = _of_all(data.universe, differences(), family, plan.weights)
    if plan.mean is not None:
        mean = rounded_mean(total, plan.bits, plan.mean.grid)
        found.typical = max(0.0, float(noise.add(mean, receipt))) * alike(known.universe, plan.weights)
    exceeding = math.ldexp(
        max(-MOST_STEPS, min(_exceeding(data.universe, found, differences()), MOST_STEPS)), -plan.bits
    )
    found.margin = float(noise.add(exceeding, receipt)) + quantile(plan.margin, plan.doubts["products"])
    for size, event in plan.anything.items():
        exact = math.ldexp(min(farthest[size], MOST_STEPS), -plan.bits)
        found.anything[size] = max(0.0, float(noise.add(exact, receipt))) + quantile(event, plan.doubts["any"])
    found.certificate = _stated(known, found, family, plan, beta_of_rows)
    return found


def _stated(
    known: Known, found: Certified, family: dict[int, list[Names]], plan: _Plan, beta_of_rows: float
) -> Certificate:
    attributes, limits = len(varying(known.universe, known.universe.names)), []
    kinds: tuple[Class, ...] = ("products", "any")
    for kind, (size, sets) in itertools.product(kinds, family.items()):
        of_any = found.anything[size] + max(found.rounding[names] for names in sets)
        rows = min(of_any, max(found.flat(names) for names in sets)) if kind == "products" else of_any
        bar = (rows + known.rows.off) / known.rows.low
        limits.append(Limit(kind, size, bar, len(sets), math.comb(attributes, size), plan.doubts[kind]))
    return Certificate(
        tuple(limits),
        None if found.typical is None else found.typical / known.rows.estimate,
        0.0 if known.rows.low == known.rows.high else beta_of_rows,
    )


# What is public: the family, the steps and the noise


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
        for t in sorted(every, key=lambda t: (_work(universe, t), t)):
            additions, cells = additions + _work(universe, t), cells + universe.cells(t)
            if additions > MOST_WORK or cells > MOST_CELLS or len(taken) == MOST_SETS[size]:
                break
            taken.append(t)
        if taken:
            found[size] = taken
    return found


def _work(universe: Universe, names: Names) -> float:
    return work(universe.sizes(names), _ordered(universe, names))


def _ordered(universe: Universe, names: Names) -> list[bool]:
    return [universe[name].ordered for name in names]


@dataclass(frozen=True)
class _Plan:
    """The noise of the numbers to be drawn: of the mean of boxes, if there is one, of T, and of A by the number of attributes."""

    mean: Laplace | Gaussian | None
    margin: Laplace | Gaussian
    anything: dict[int, Laplace | Gaussian]
    weights: dict[Names, int]
    doubts: dict[Class, float]
    bits: int

    @property
    def events(self) -> list[Laplace | Gaussian]:
        """In the order in which they are drawn."""
        return [*([] if self.mean is None else [self.mean]), self.margin, *self.anything.values()]


def _planned(known: Known, family: dict[int, list[Names]], amount: Amount, beta: float) -> _Plan:
    sets = [t for sets in family.values() for t in sets]
    weights = mean_weights(known.universe, [t for t in sets if not known.measures(t)] or sets)
    whole = SHARES["products"] + len(family) * SHARES["any"] + (TYPICAL if weights else 0.0)
    of_mean, of_margin, of_any = (
        amount.part(share / whole * (1 - 1e-9)) for share in (TYPICAL, SHARES["products"], SHARES["any"])
    )
    one = amount.budget.linear()
    bits = step_bits(known.rows, _scale(of_any.noise(one, one)))
    mean = _mean_noise(of_mean, mean_sensitivity(known.universe, weights, amount.budget)) if weights else None
    doubt = beta / (DOUBTS["products"] + len(family) * DOUBTS["any"])
    return _Plan(
        mean,
        of_margin.noise(one, one, 2.0**-bits),
        {size: of_any.noise(one, one, 2.0**-bits) for size in family},
        weights,
        {kind: doubt * part for kind, part in DOUBTS.items()},
        bits,
    )


def step_bits(rows: Rows, scale: float) -> int:
    """A step is 2^-bits of a row: as fine as 2^52 steps of the rows, 2^38 of the noise, and 2^60 of 2^50 rows allow."""
    bits = min(FINEST, 52 - math.ceil(math.log2(rows.high))) if rows.low == rows.high else PRIVATE
    return max(0, min(bits, 38 - math.ceil(math.log2(scale))))


def _scale(event: Laplace | Gaussian) -> float:
    return event.scale if isinstance(event, Laplace) else event.sigma


def quantile(event: Laplace | Gaussian, beta: float) -> float:
    """t such that the noise is below −t with probability at most β.

    Laplace on a grid: P[Z ≥ t] ≤ e^{−t/b}/(1 + e^{−g/b}). Gaussian on a grid: the sum over the grid from t on is at most the
    integral and its first term, and that over all of it at least σ√(2π)/g, so P[Z ≥ t] ≤ 1 − Φ(t/σ) + g/(σ√(2π)).
    """
    if isinstance(event, Laplace):
        return event.scale * max(0.0, -math.log(beta * (1 + math.exp(-event.grid / event.scale))))
    left = beta - event.grid / (event.sigma * math.sqrt(2 * math.pi))
    if left <= beta / 2:  # so coarse a grid: by sub-Gaussianity
        return event.sigma * math.sqrt(-2 * math.log(beta))
    return event.sigma * max(0.0, -NormalDist().inv_cdf(left))


def mean_weights(universe: Universe, sets: Sequence[Names]) -> dict[Names, int]:
    """What each box of a set counts in the typical error, in steps of 2^-WEIGHT_BITS, as far as there is time.

    A set counts as much as its boxes are many to those that a row is in: what a row moves is least for what is learned.
    """
    boxes, parts, additions = {}, {}, 0.0
    for names in sets:
        each = [boxes_with(universe[name].size, universe[name].ordered) for name in names]
        number, most = (math.prod(one) for one in zip(*each, strict=True))
        additions += 4.0 * number
        if additions <= MOST_WORK:
            boxes[names], parts[names] = number, number / most
    total = math.fsum(parts.values())
    weights = {names: int(math.ldexp(parts[names] / total, WEIGHT_BITS)) // number for names, number in boxes.items()}
    return {names: weight for names, weight in weights.items() if weight}


def alike(universe: Universe, weights: dict[Names, int]) -> float:
    """The typical error of boxes of sets that count alike, over that of these weights, as errors of boxes are expected to be."""
    expected = {t: part_of_boxes(universe.sizes(t), _ordered(universe, t)) ** USUAL for t in weights}
    counts = {
        t: w * math.prod(boxes_with(universe[name].size, universe[name].ordered)[0] for name in t)
        for t, w in weights.items()
    }
    weighted = math.fsum(counts[t] * expected[t] for t in weights) / math.fsum(counts.values())
    return math.fsum(expected.values()) / len(expected) / weighted


def mean_sensitivity(universe: Universe, weights: dict[Names, int], budget: Budget) -> float:
    """How far a row can move the mean: by all boxes that it is in; under replace-one also by those that it comes to be in."""
    most = 0
    for names, weight in weights.items():
        most += weight * math.prod(boxes_with(universe[name].size, universe[name].ordered)[1] for name in names)
    return budget.bounded(math.ldexp(float(most), -WEIGHT_BITS) * (1 + 2.0**-40))


def _mean_noise(amount: Amount, exact: float) -> Laplace | Gaussian:
    """Neighbours' means are rounded apart by at most a step."""
    grid = grid_at_most(exact * FINE)
    return amount.noise(exact + grid, exact + grid, grid)


# What is private: the tables


def _differences(data: DataSource, found: Certified, family: dict[int, list[Names]]) -> Iterator[tuple[Names, Steps]]:
    """N_t − G_t in whole steps. Many tables in one scan."""
    for some in _chunks(data.universe, [t for sets in family.values() for t in sets]):
        for names, counts in zip(some, data.marginals(some), strict=True):
            yield names, (counts << found.bits) - found.stepped(names)


def _scanned(
    data: DataSource, found: Certified, family: dict[int, list[Names]]
) -> Callable[[], Iterable[tuple[Names, Steps]]]:
    """The same, to be gone through twice: kept between where they fit, by public sizes."""
    if sum(data.universe.cells(t) for sets in family.values() for t in sets) > AT_ONCE:
        return lambda: _differences(data, found, family)
    kept = list(_differences(data, found, family))
    return lambda: kept


def _of_all(
    universe: Universe,
    differences: Iterable[tuple[Names, Steps]],
    family: dict[int, list[Names]],
    weights: dict[Names, int],
) -> tuple[int, dict[int, int]]:
    """The weighted sum of the errors of all boxes, and the largest error of any weights on so many attributes."""
    total, farthest = 0, dict.fromkeys(family, 0)
    for names, difference in differences:
        farthest[len(names)] = max(farthest[len(names)], half_distance(difference))
        if names in weights:
            total += weights[names] * sum_of_errors(difference, _ordered(universe, names))
    return total, farthest


def _exceeding(universe: Universe, found: Certified, differences: Iterable[tuple[Names, Steps]]) -> int:
    """By how much the largest error exceeds what is allowed; −a_t(q) is the largest of its lines', as a_t(q) is the least of them."""
    return max(
        largest_error(difference, _ordered(universe, names), each.table) - each.offset
        for names, difference in differences
        for each in found.allowed(names, keep=False)
    )


def _chunks(universe: Universe, sets: Sequence[Names]) -> Iterator[list[Names]]:
    waiting: list[Names] = []
    cells = 0
    for names in sets:
        cells += universe.cells(names)
        if waiting and cells > AT_ONCE:
            yield waiting
            waiting, cells = [], universe.cells(names)
        waiting.append(names)
    yield waiting


def rounded_mean(total: int, bits: int, grid: float) -> float:
    """The multiple of the grid nearest to total·2^-(bits + WEIGHT_BITS), in whole numbers."""
    unit = bits + WEIGHT_BITS + math.frexp(grid)[1] - 1  # a step of the grid is 2^unit of the total's
    return min((total + (1 << unit >> 1)) >> unit, MOST_STEPS) * grid
