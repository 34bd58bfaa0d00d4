"""Buy a certificate: decide what is released, from which tables and with which noise (see ``certified_bounds``).

Everything is planned from public sizes, the budget and public knowledge. The plan is charged. Then the tables are
scanned, and each number is drawn.
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
from hedgerow.engine.certificate import Certificate, CertificateLimit, Class
from hedgerow.engine.practical.certificate.certified_bounds import (
    MOST_WORK,
    CertifiableAnswers,
    CertifiedCounts,
    ordered_axes,
    small_sets,
    too_costly,
    without,
)
from hedgerow.engine.practical.certificate.largest_errors import (
    USUAL,
    Steps,
    boxes_with,
    half_distance,
    largest_error,
    largest_of_means,
    part_of_boxes,
    sum_of_errors,
)
from hedgerow.engine.practical.measurement import RowCountInterval, varying_names
from hedgerow.errors import BudgetExceeded
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace, grid_at_most
from hedgerow.privacy.ledger import Receipt
from hedgerow.privacy.noise import Noise
from hedgerow.universe.universe import Universe

AT_ONCE = 5_000_000  # most cells of the tables that are counted in one scan
HELPS = 0.05  # no certificate is bought if its noise alone reaches farther than this share of the rows
# Relative amounts of budget for each number, and relative shares of β. Means have theirs where there are numbers.
SHARES: dict[Class, float] = {"products": 1.0, "means": 0.5, "any": 0.013}
DOUBTS: dict[Class, float] = {"products": 20.0, "means": 20.0, "any": 1.0}
TYPICAL = 0.2  # relative amount of budget for the typical error, in the units of SHARES
FINEST, PRIVATE = 20, 10  # a step is 2^-bits rows: most bits where n is public, and bits where there may be 2^50 rows
WEIGHT_BITS = 40  # bits of the weight of a box in the typical error
FINE = 2.0**-8  # grid of the typical error, as a part of its sensitivity
MOST_STEPS = 2**53  # numbers are clipped at this many steps, which float64 holds exactly
WHY = "certificate"  # the reason, as the ledger stores it


def buy_certificate(
    data: DataSource,
    noise: Noise,
    known: CertifiableAnswers,
    allowance: Allowance,
    beta: float,
    beta_of_rows: float,
    planned: float = 0.0,
) -> CertifiedCounts | None:
    """Spend the allowance on a certificate of ``known``; return None if its noise would drown it.

    All decisions are public. ``beta_of_rows`` is the failure probability of the bars by which n is known, where it is
    private. ``planned`` is the share of the budget for planned Gaussian noise, this noise included.
    """
    listed = small_sets(known)
    left_out = too_costly(known, listed)
    family = without(listed, left_out)
    if not family:
        return None
    plan = _plan(known, family, allowance, beta)
    grid = 1.0 if plan.mean is None else plan.mean.grid  # grid of the mean; planned noise may be on a finer grid
    if quantile(plan.margin, plan.doubts["products"]) > HELPS * known.rows.low:
        return None
    found = CertifiedCounts(known, family)
    found.bits, found.left_out = plan.bits, left_out
    try:
        plan, receipt = _charge_plan(plan, allowance, planned)
    except BudgetExceeded:  # only after a crash, when lost draws are paid for twice: go on without a certificate
        return None
    differences = _scan(data, found, family)
    total, farthest = _of_all(found, differences(), family, plan)
    if plan.mean is not None:
        mean = rounded_mean(total, plan.bits, grid)
        found.typical = max(0.0, float(noise.add(mean, receipt))) * alike(known.universe, plan.weights)
    excess = [in_rows(each, plan.bits) for each in _largest_excesses(found, differences(), plan.numbers)]
    found.margin = float(noise.add(excess[0], receipt)) + quantile(plan.margin, plan.doubts["products"])
    if plan.means is not None:  # one step more, because the errors of means were rounded down
        found.means = float(noise.add(excess[1], receipt)) + quantile(plan.means, plan.doubts["means"])
        found.means += math.ldexp(1.0, -plan.bits)
    for size, event in plan.anything.items():
        exact = math.ldexp(min(farthest[size], MOST_STEPS), -plan.bits)
        found.anything[size] = max(0.0, float(noise.add(exact, receipt))) + quantile(event, plan.doubts["any"])
    found.certificate = _statement(known, found, family, plan, beta_of_rows)
    return found


def is_drowned(amount: Amount, rows: float, beta: float) -> bool:
    """Return True if a public n alone shows that the noise would drown a certificate."""
    part = amount.part(SHARES["products"] / (SHARES["products"] + SHARES["any"] + TYPICAL))
    return quantile(part.count(), beta) > HELPS * rows


def _charge_plan(plan: _CertificatePlan, allowance: Allowance, planned: float) -> tuple[_CertificatePlan, Receipt]:
    """Charge the plan, and return it with the noise that was paid for. Planned noise is smaller."""
    gaussian = [event for event in plan.events if isinstance(event, Gaussian)]
    if not gaussian:
        return plan, allowance.charge(*plan.events, why=WHY)
    step = math.ldexp(1.0, -plan.bits)
    drawn, receipt = allowance.charge_planned(*gaussian, share=planned, finest=step, why=WHY)
    mean = None if plan.mean is None else drawn.pop(0)
    margin = drawn.pop(0)
    means = None if plan.means is None else drawn.pop(0)
    anything: dict[int, Laplace | Gaussian] = dict(zip(plan.anything, drawn, strict=True))
    return replace(plan, mean=mean, margin=margin, means=means, anything=anything), receipt


def _statement(
    known: CertifiableAnswers,
    found: CertifiedCounts,
    family: dict[int, list[Names]],
    plan: _CertificatePlan,
    beta_of_rows: float,
) -> Certificate:
    """Return the public statement of what was certified, for every class and size."""
    attributes, limits = len(varying_names(known.universe, known.universe.names)), []
    kinds: tuple[Class, ...] = ("products", "any")
    for kind, (size, sets) in itertools.product(kinds, family.items()):
        of_any = found.anything[size] + max(found.rounding[names] for names in sets)
        rows = min(of_any, max(found.flat(names) for names in sets)) if kind == "products" else of_any
        bar = (rows + known.rows.off) / known.rows.low
        limits.append(CertificateLimit(kind, size, bar, len(sets), math.comb(attributes, size), plan.doubts[kind]))
    if plan.numbers:
        rows = max(found.farthest_of_means(names) for names in plan.numbers)
        bar = (rows + known.rows.off) / known.rows.low
        limits.append(
            CertificateLimit("means", 2, bar, len(plan.numbers), math.comb(attributes, 2), plan.doubts["means"])
        )
    return Certificate(
        tuple(limits),
        None if found.typical is None else found.typical / known.rows.estimate,
        0.0 if known.rows.low == known.rows.high else beta_of_rows,
    )


# Public: the steps and the noise.


@dataclass(frozen=True)
class _CertificatePlan:
    """The noise of the numbers that are drawn: the mean over boxes, T, L, and A by the number of attributes.

    ``numbers`` are the pairs with an ordered attribute, whose means are certified.
    """

    mean: Laplace | Gaussian | None
    margin: Laplace | Gaussian
    means: Laplace | Gaussian | None
    anything: dict[int, Laplace | Gaussian]
    numbers: set[Names]
    weights: dict[Names, int]
    doubts: dict[Class, float]
    bits: int

    @property
    def events(self) -> list[Laplace | Gaussian]:
        """The events in the order in which they are drawn."""
        drawn = [self.mean, self.margin, self.means, *self.anything.values()]
        return [event for event in drawn if event is not None]


def _plan(known: CertifiableAnswers, family: dict[int, list[Names]], amount: Amount, beta: float) -> _CertificatePlan:
    """Divide amount and β among the numbers to be released, and fix their noise."""
    sets = [t for sets in family.values() for t in sets]
    weights = mean_weights(known.universe, [t for t in sets if not known.measures(t)] or sets)
    numbers = {t for t in family.get(2, []) if any(ordered_axes(known.universe, t))}
    parts: dict[Class, float] = {"products": 1, "means": bool(numbers), "any": len(family)}
    whole = sum(part * SHARES[kind] for kind, part in parts.items()) + (TYPICAL if weights else 0.0)
    of_mean, of_margin, of_means, of_any = (
        amount.part(share / whole * (1 - 1e-9)) for share in (TYPICAL, *SHARES.values())
    )
    one = amount.budget.linear()
    bits = step_bits(known.rows, _scale(of_any.noise(one, one)))
    mean = _mean_noise(of_mean, mean_sensitivity(known.universe, weights, amount.budget)) if weights else None
    doubt = beta / sum(part * DOUBTS[kind] for kind, part in parts.items())
    return _CertificatePlan(
        mean,
        of_margin.noise(one, one, 2.0**-bits),
        of_means.noise(one, one, 2.0**-bits) if numbers else None,
        {size: of_any.noise(one, one, 2.0**-bits) for size in family},
        numbers,
        weights,
        {kind: doubt * part for kind, part in DOUBTS.items()},
        bits,
    )


def step_bits(row_count: RowCountInterval, scale: float) -> int:
    """Return the bits of a step, which is 2^-bits rows.

    Steps are as fine as 2^52 steps for the rows, 2^38 for the noise, and 2^60 for 2^50 rows allow.
    """
    bits = min(FINEST, 52 - math.ceil(math.log2(row_count.high))) if row_count.low == row_count.high else PRIVATE
    return max(0, min(bits, 38 - math.ceil(math.log2(scale))))


def _scale(event: Laplace | Gaussian) -> float:
    return event.scale if isinstance(event, Laplace) else event.sigma


def quantile(event: Laplace | Gaussian, beta: float) -> float:
    """Return t such that the noise is below −t with probability at most β.

    Laplace on a grid: P[Z ≥ t] ≤ e^{−t/b}/(1 + e^{−g/b}). Gaussian on a grid: the sum over the grid from t on is at
    most the integral plus its first term, and the sum over the whole grid at least σ√(2π)/g, so P[Z ≥ t] ≤ 1 − Φ(t/σ)
    + g/(σ√(2π)).
    """
    if isinstance(event, Laplace):
        return event.scale * max(0.0, -math.log(beta * (1 + math.exp(-event.grid / event.scale))))
    left = beta - event.grid / (event.sigma * math.sqrt(2 * math.pi))
    if left <= beta / 2:  # the grid is too coarse for this bound: use sub-Gaussianity
        return event.sigma * math.sqrt(-2 * math.log(beta))
    return event.sigma * max(0.0, -NormalDist().inv_cdf(left))


def mean_weights(universe: Universe, sets: Sequence[Names]) -> dict[Names, int]:
    """Return the weight of each box of a set in the typical error, in steps of 2^-WEIGHT_BITS, as far as time allows.

    A set's weight is the number of its boxes divided by the number of those that a row is in: most is learned for
    what a row moves.
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
    """Return the ratio of the typical error with equal weights of sets to that with these weights.

    It is computed from the errors that are expected of boxes.
    """
    expected = {t: part_of_boxes(universe.sizes(t), ordered_axes(universe, t)) ** USUAL for t in weights}
    counts = {
        t: w * math.prod(boxes_with(universe[name].size, universe[name].ordered)[0] for name in t)
        for t, w in weights.items()
    }
    weighted = math.fsum(counts[t] * expected[t] for t in weights) / math.fsum(counts.values())
    return math.fsum(expected.values()) / len(expected) / weighted


def mean_sensitivity(universe: Universe, weights: dict[Names, int], budget: Budget) -> float:
    """Return how far a row can move the mean: by all boxes that contain it.

    Under replace-one the boxes that contain the new row count as well.
    """
    most = 0
    for names, weight in weights.items():
        most += weight * math.prod(boxes_with(universe[name].size, universe[name].ordered)[1] for name in names)
    return budget.bounded_sum(math.ldexp(float(most), -WEIGHT_BITS) * (1 + 2.0**-40))


def _mean_noise(amount: Amount, exact: float) -> Laplace | Gaussian:
    """Return the noise of the mean; rounding moves the means of neighbours apart by at most one grid step."""
    grid = grid_at_most(exact * FINE)
    return amount.noise(exact + grid, exact + grid, grid)


# Private: the tables.


def _differences(
    data: DataSource, found: CertifiedCounts, family: dict[int, list[Names]]
) -> Iterator[tuple[Names, Steps]]:
    """Yield N_t − G_t in whole steps for every set, counting many tables in one scan. Private."""
    for some in _chunks(data.universe, [t for sets in family.values() for t in sets]):
        found.hypothesis.expect(some)
        for names, counts in zip(some, data.marginals(some), strict=True):
            yield names, (counts << found.bits) - found.in_steps(names)
    found.hypothesis.expect(())


def _scan(
    data: DataSource, found: CertifiedCounts, family: dict[int, list[Names]]
) -> Callable[[], Iterable[tuple[Names, Steps]]]:
    """Return a function that gives the differences each time it is called. Private.

    They are kept in memory between calls if they fit, by public sizes.
    """
    if sum(data.universe.cells(t) for sets in family.values() for t in sets) > AT_ONCE:
        return lambda: _differences(data, found, family)
    kept = list(_differences(data, found, family))
    return lambda: kept


def _of_all(
    found: CertifiedCounts,
    differences: Iterable[tuple[Names, Steps]],
    family: dict[int, list[Names]],
    plan: _CertificatePlan,
) -> tuple[int, dict[int, int]]:
    """Return the weighted sum of all boxes' errors, and the largest error of any weights by number of attributes."""
    total, farthest = 0, dict.fromkeys(family, 0)
    for names, difference in differences:
        farthest[len(names)] = max(farthest[len(names)], half_distance(difference))
        if names in plan.weights:
            total += plan.weights[names] * sum_of_errors(difference, ordered_axes(found.universe, names))
    return total, farthest


def _largest_excesses(
    found: CertifiedCounts, differences: Iterable[tuple[Names, Steps]], numbers: Collection[Names]
) -> tuple[int, int]:
    """Return by how much the largest error exceeds its allowance, of products and of the sums that means are made of.

    −a_t(q) is the largest of those of its lines, as a_t(q) is the least of them. ``numbers`` are the pairs whose means
    are certified.
    """
    of_products = of_means = -MOST_STEPS
    for names, difference in differences:
        ordered = ordered_axes(found.universe, names)
        for each in found.allowances(names, keep=False):
            of_products = max(of_products, largest_error(difference, ordered, each.table) - each.offset)
        for axis in np.flatnonzero(ordered).tolist() if names in numbers else ():
            of_means = max(of_means, largest_of_means(difference, axis, *found.sums_of_means(names, axis)))
    return of_products, of_means


def in_rows(steps: int, bits: int) -> float:
    """Convert steps to rows. Steps are cut off at ±2^53, which float64 holds."""
    return math.ldexp(max(-MOST_STEPS, min(steps, MOST_STEPS)), -bits)


def _chunks(universe: Universe, sets: Sequence[Names]) -> Iterator[list[Names]]:
    """Divide the sets into batches whose tables fit in memory together."""
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
    """Return the multiple of the grid nearest to total·2^-(bits + WEIGHT_BITS), computed in whole numbers."""
    unit = bits + WEIGHT_BITS + math.frexp(grid)[1] - 1  # a grid step is 2^unit units of the total
    return min((total + (1 << unit >> 1)) >> unit, MOST_STEPS) * grid
