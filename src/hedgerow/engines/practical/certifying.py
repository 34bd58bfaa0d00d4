"""Buying a certificate: what is released, from which tables, with which noise (``certificate`` says what it is worth).

Everything is planned from public sizes, the budget and what is known; then charged; then the tables are gone through, and each number drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from hedgerow._types import Names
from hedgerow.data.source import DataSource
from hedgerow.engines.practical.certificate import (
    MOST_WORK,
    Certificate,
    Certified,
    Class,
    Known,
    Limit,
    ordered_axes,
    small_sets,
)
from hedgerow.engines.practical.expected_errors import USUAL, ahead, part_of_boxes
from hedgerow.engines.practical.largest_errors import (
    Steps,
    boxes_with,
    half_distance,
    largest_error,
    largest_of_means,
    sum_of_errors,
)
from hedgerow.engines.practical.measurement import Rows, varying
from hedgerow.errors import BudgetExceeded
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace, grid_at_most
from hedgerow.privacy.ledger import Receipt
from hedgerow.privacy.noise import Noise
from hedgerow.questions.linear import Linear
from hedgerow.questions.universe import Universe

AT_ONCE = 5_000_000  # cells of the tables that are counted in one scan
HELPS = 0.05  # of the rows: where the noise alone reaches farther, no certificate is bought
# Of what is spent, for each number; that of products is of means too
SHARES: dict[Class, float] = {"products": 1.0, "any": 0.013}
DOUBTS: dict[Class, float] = {"products": 20.0, "any": 1.0}  # of β
TYPICAL = 0.2  # of what is spent, as SHARES
FINEST, PRIVATE = 20, 10  # bits of a step: where n is public, and where there may be 2^50 rows
WEIGHT_BITS = 40  # of the weight of a box in the typical error
FINE = 2.0**-8  # of its sensitivity: the grid of the typical error
MOST_STEPS = 2**53
LOOKED_AT = 100  # pairs, for how far a mean's sums are usually off
WHY = "certificate"


def certified(
    data: DataSource,
    noise: Noise,
    known: Known,
    allowance: Allowance,
    beta: float,
    beta_of_rows: float,
    planned: float = 0.0,
) -> Certified | None:
    """Spend the allowance on a certificate of what is known; None where its noise would drown it. All it decides is public.

    ``beta_of_rows``: that of the bars by which n is known, where it is private. ``planned``: the share of the budget that is
    planned Gaussian noise, this among it.
    """
    family = small_sets(known)
    if not family:
        return None
    plan = _planned(known, family, allowance, beta)
    grid = 1.0 if plan.mean is None else plan.mean.grid  # of its value; noise that is planned may be on a finer one
    if quantile(plan.margin, plan.doubts["products"]) > HELPS * known.rows.low:
        return None
    found = Certified(known, family)
    found.bits = plan.bits
    try:
        plan, receipt = _charged(plan, allowance, planned)
    except BudgetExceeded:  # only after a crash, when what was lost is paid for twice: go on without
        return None
    differences = _scanned(data, found, family)
    total, farthest = _of_all(found, differences(), family, plan)
    if plan.mean is not None:
        mean = rounded_mean(total, plan.bits, grid)
        found.typical = max(0.0, float(noise.add(mean, receipt))) * alike(known.universe, plan.weights)
    lead = ahead(_usual_of_means(known, plan.numbers, found.typical or 0.0), plan.bits)
    exceeding = max(-MOST_STEPS, min(_exceeding(found, differences(), plan.numbers, lead), MOST_STEPS))
    found.margin = float(noise.add(math.ldexp(exceeding, -plan.bits), receipt))
    found.margin += quantile(plan.margin, plan.doubts["products"])
    if plan.numbers:  # a step more, for their errors were rounded down
        found.means = max(0.0, found.margin - math.ldexp(lead, -plan.bits)) + math.ldexp(1.0, -plan.bits)
    for size, event in plan.anything.items():
        exact = math.ldexp(min(farthest[size], MOST_STEPS), -plan.bits)
        found.anything[size] = max(0.0, float(noise.add(exact, receipt))) + quantile(event, plan.doubts["any"])
    found.certificate = _stated(known, found, family, plan, beta_of_rows)
    return found


def is_drowned(amount: Amount, rows: float, beta: float) -> bool:
    """Whether the noise would drown a certificate, as far as a public n alone says."""
    part = amount.part(SHARES["products"] / (sum(SHARES.values()) + TYPICAL))
    return quantile(part.count(), beta) > HELPS * rows


def _charged(plan: _Plan, allowance: Allowance, planned: float) -> tuple[_Plan, Receipt]:
    """With the noise that was paid for, which is less where it is planned."""
    gaussian = [event for event in plan.events if isinstance(event, Gaussian)]
    if not gaussian:
        return plan, allowance.charge(*plan.events, why=WHY)
    step = math.ldexp(1.0, -plan.bits)
    drawn, receipt = allowance.charge_planned(*gaussian, share=planned, finest=step, why=WHY)
    mean = None if plan.mean is None else drawn.pop(0)
    margin, *anything = drawn
    return replace(plan, mean=mean, margin=margin, anything=dict(zip(plan.anything, anything, strict=True))), receipt


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
    if plan.numbers:
        rows = found.means + max(found.rounding[names] for names in plan.numbers)
        bar = (rows + known.rows.off) / known.rows.low
        limits.append(Limit("means", 2, bar, len(plan.numbers), math.comb(attributes, 2), plan.doubts["products"]))
    return Certificate(
        tuple(limits),
        None if found.typical is None else found.typical / known.rows.estimate,
        0.0 if known.rows.low == known.rows.high else beta_of_rows,
    )


# What is public: the steps and the noise


@dataclass(frozen=True)
class _Plan:
    """The noise of the numbers to be drawn: of the mean of boxes, if there is one, of T, and of A by the number of attributes.

    ``numbers``: the pairs with an ordered attribute, whose means are looked at.
    """

    mean: Laplace | Gaussian | None
    margin: Laplace | Gaussian
    anything: dict[int, Laplace | Gaussian]
    numbers: set[Names]
    weights: dict[Names, int]
    doubts: dict[Class, float]
    bits: int

    @property
    def events(self) -> list[Laplace | Gaussian]:
        """In the order in which they are drawn."""
        drawn = [self.mean, self.margin, *self.anything.values()]
        return [event for event in drawn if event is not None]


def _planned(known: Known, family: dict[int, list[Names]], amount: Amount, beta: float) -> _Plan:
    sets = [t for sets in family.values() for t in sets]
    weights = mean_weights(known.universe, [t for t in sets if not known.measures(t)] or sets)
    numbers = {t for t in family.get(2, []) if any(ordered_axes(known.universe, t))}
    parts: dict[Class, float] = {"products": 1, "any": len(family)}
    whole = sum(part * SHARES[kind] for kind, part in parts.items()) + (TYPICAL if weights else 0.0)
    of_mean, of_margin, of_any = (amount.part(share / whole * (1 - 1e-9)) for share in (TYPICAL, *SHARES.values()))
    one = amount.budget.linear()
    bits = step_bits(known.rows, _scale(of_any.noise(one, one)))
    mean = _mean_noise(of_mean, mean_sensitivity(known.universe, weights, amount.budget)) if weights else None
    doubt = beta / sum(part * DOUBTS[kind] for kind, part in parts.items())
    return _Plan(
        mean,
        of_margin.noise(one, one, 2.0**-bits),
        {size: of_any.noise(one, one, 2.0**-bits) for size in family},
        numbers,
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


def _usual_of_means(known: Known, numbers: Collection[Names], typical: float) -> float:
    """How many rows a sum that a mean is made of is off in the mean, as a guess: by the noise of its own table, or as is typical where none was measured."""
    found = []
    for names in sorted(numbers)[:LOOKED_AT]:
        for axis in np.flatnonzero(ordered_axes(known.universe, names)).tolist():
            weights = np.full(known.universe.sizes(names), 0.5)
            within = np.moveaxis(weights, axis, -1)[0]
            within[...] = np.linspace(0.0, 1.0, within.size)
            line = Linear.from_table(known.universe, names, weights)
            found.append(min(typical, math.sqrt(2 / math.pi) * float(known.deviations(names, [line])[0])))
    return math.fsum(found) / len(found) if found else 0.0


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
    expected = {t: part_of_boxes(universe.sizes(t), ordered_axes(universe, t)) ** USUAL for t in weights}
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
        found.hypothesis.expect(some)
        for names, counts in zip(some, data.marginals(some), strict=True):
            yield names, (counts << found.bits) - found.stepped(names)
    found.hypothesis.expect(())


def _scanned(
    data: DataSource, found: Certified, family: dict[int, list[Names]]
) -> Callable[[], Iterable[tuple[Names, Steps]]]:
    """The same, to be gone through twice: kept between where they fit, by public sizes."""
    if sum(data.universe.cells(t) for sets in family.values() for t in sets) > AT_ONCE:
        return lambda: _differences(data, found, family)
    kept = list(_differences(data, found, family))
    return lambda: kept


def _of_all(
    found: Certified, differences: Iterable[tuple[Names, Steps]], family: dict[int, list[Names]], plan: _Plan
) -> tuple[int, dict[int, int]]:
    """The weighted sum of the errors of all boxes, and the largest error of any weights on so many attributes."""
    total, farthest = 0, dict.fromkeys(family, 0)
    for names, difference in differences:
        farthest[len(names)] = max(farthest[len(names)], half_distance(difference))
        if names in plan.weights:
            total += plan.weights[names] * sum_of_errors(difference, ordered_axes(found.universe, names))
    return total, farthest


def _exceeding(
    found: Certified, differences: Iterable[tuple[Names, Steps]], numbers: Collection[Names], lead: int
) -> int:
    """By how much the largest error exceeds what is allowed; −a_t(q) is the largest of its lines', as a_t(q) is the least of them.

    ``numbers``: the pairs whose means are looked at, ``lead`` steps ahead of what is allowed to products.
    """
    most = -MOST_STEPS
    for names, difference in differences:
        ordered = ordered_axes(found.universe, names)
        for each in found.allowed(names, keep=False):
            most = max(most, largest_error(difference, ordered, each.table) - each.offset)
        for axis in np.flatnonzero(ordered).tolist() if names in numbers else ():
            most = max(most, largest_of_means(difference, axis, found.places(names, axis)) + lead)
    return most


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
