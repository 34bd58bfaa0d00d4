"""Which marginals to measure: the prefit of the practical profile, and the offline release.

Where the pairs of the workload fit one model, an *overview* comes first: the residuals of all single attributes and pairs
(of the whole workload's tables, for a release with little noise), measured at once without choosing. Residuals cost
less than tables, as they do not measure smaller tables again (Xiao et al. 2023). Where the pairs do not fit one model but their
noise would be small, they are measured all the same, and the model takes the strongest of them (``strongest``). Otherwise all
one-way marginals come first. Then rounds of the exponential mechanism and a measurement, with a larger share of the budget once
a round taught little, as in McKenna et al., "AIM: an adaptive and iterative mechanism for differentially private synthetic
data" (2022). After an overview, and of many attributes, several tables are chosen before the model is fitted again, no two of them
sharing a pair: the scores of one round (``candidates``) then serve many choices, each with its own charge and draw. What an
overview leaves unknown of a table of three attributes is its residual: that alone is measured of it.

Differs from AIM: the hypothesis is fitted to least-squares estimates of everything measured (``residuals``, ``log_linear``);
one-way marginals share their budget by (cells × workload)^⅔; after an overview the noise expected in a cell, for a residual with
that of the smaller tables, counts against a candidate only up to what the hypothesis believes is there, Σ min(E|noise|, 0.8·n·h), as
a fit that shrinks towards the hypothesis cannot add more error than that; while pairs are unknown a score is what stands above the noise,
Σ (|count − n·h| − 3·E|noise|)⁺, by which one large error in a large table is seen. A pair that does not fit the
model's tree may be chosen all the same, and corrects what the model says (``corrections``).

Overview shares. What is asked about a table on t has the variance Σ_{s⊆t} σ_s²·c_s(t), c_s(t) = Π_{a∈s} v_a·Π_{a∈t∖s} u_a, v_a and u_a the mean
of ‖centred‖² and of (mean)² of what is asked of attribute a. The sum over the workload is least, for a given
cost Σ Δ_s²/(2σ_s²), when each residual's cost is proportional to Δ_s·√(Σ_t c_s(t)). In a session that was not told what will be asked
it is values, of ordered attributes ranges too, and these are measured by contrasts of ranges (``contrasts``); of attributes of few
values, flags and groups, more often than of others (``FEW_VALUES``). Of a workload's
tables, and in a release, it is a random count: each value in it with probability f = ⅓, so that v = m·f(1−f) and u = f².

Privacy. Everything measured is charged before it is drawn. A score is w·(Σ (|count − round(n·h)| − τ)⁺ − discount), w ≤ 1 and
all but the counts public: its sensitivity is ``budget.marginal_distance()``, as one row moves one count up and, under
replace-one, another down, and each term by no more than its count. Terms and the discount are whole numbers and w is a multiple of a public power of two, so that this
is exact (``_exact_scores``). Gaussian noise is planned: its share of the budget is fixed before anything is charged (``_plan``).
The candidates of a round, and to which of them a later choice of it is restricted, follow from public sizes and released choices. All parameters are constants or functions of public sizes, the budget and released values.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from hedgerow._types import Array, Counts, Names
from hedgerow.data.source import MOST_ROWS, DataSource
from hedgerow.engines.practical.asked import Asked, EverySmallSet, Listed
from hedgerow.engines.practical.candidates import FLOATS, MOST_OFFERED, Candidates
from hedgerow.engines.practical.contrasts import FEWEST, Contrasts, along, are_few
from hedgerow.engines.practical.knowledge import MANY_ATTRIBUTES, Learned
from hedgerow.engines.practical.measurement import Measurement, varying
from hedgerow.engines.practical.residuals import Overview, coordinates, from_coordinates
from hedgerow.engines.practical.strongest import expected_distance, take_strongest
from hedgerow.errors import BudgetExceeded
from hedgerow.model.junction_tree import junction_cells
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.noise import Noise
from hedgerow.questions.universe import subsets

ONE_WAY_SHARE = 0.1
MORE_ONE_WAY = 0.25  # measured again with this share where the first measurements would be mostly noise,
NOISY = 0.05  # which is when their expected total variation distance exceeds this
OVERVIEW_SHARE = 0.95
OVERVIEW_CELLS = 600_000  # of the junction tree of all pairs
OVERVIEW_ROUNDS, ROUNDS_AT_ONCE = 24, 6  # after it, and how many tables are chosen before all are fitted
OVERVIEW_OF_ALL = (
    0.02  # a release's is of all its workload where the noise of its tables alone has less distance than this
)
ROWS_SHARE = 0.005  # for n, where that must be known first
OVERVIEW_NOISE, OVERVIEW_PAIRS = (
    0.0005,
    1_000,
)  # an overview of pairs that one model cannot hold: their distance and number
PART_CELLS = 50_000  # of the model of the strongest of them
PARTS_SHARE, PARTS_ROUNDS = 0.9, 3  # of the budget, for it; after it
MASK = 1 / 3  # of an attribute's values are in a typical count
FEW_VALUES = 0.5  # where nobody says what will be asked, an attribute of m values is asked about as often as m^-this
CHOICE_SHARE = 0.1  # of a round, for choosing; the rest measures
AT_ONCE, FEW_ATTRIBUTES = 8, 15  # of more attributes, a table for every 8 and two are chosen before all are fitted
ROUNDS_PER_ATTRIBUTE = 3  # the first rounds are this fraction of the budget; they grow as they teach less
FACTOR = 4.0  # in cost, when a round taught little: half the noise
NOTICEABLE = 3.0  # times the noise's mean size: what a count is off by less is not looked at, while pairs are unknown
SHRINKS = 0.8
MODEL_CELLS = 500_000  # of the junction tree while choosing
LARGEST_MODEL_CELLS = 1_000_000  # when everything has been measured and only the fit remains
MOST_MESSAGES = 90_000_000  # its cells times the values of all attributes, of many: what answers go through
SCAN_CELLS = 10_000_000  # of all tables that are counted in one scan
DIRECT = 0.25  # where pairs do not fit one model, a release measures its workload's tables if their noise is less
PAIRS_AT_ONCE, TABLES_AT_ONCE = 8, 32  # of tables that were all measured, into the model between two fits
PAIRS_PART = 0.6  # of the model's cells, for pairs before larger tables
ROUND_STEPS, FINAL_STEPS, ALL_STEPS = 40, 300, 600  # of fits; the last where all tables were measured
GRID = 2.0**-14  # of residuals' coordinates, for up to 2^38 rows: float64 and the sampler hold 2^53 steps of it
WEIGHT_BITS = 20  # of a candidate's weight, where the distances leave them


class Prefit:
    """One release: what is left of its allowance, and what has been learned."""

    def __init__(
        self,
        data: DataSource,
        noise: Noise,
        workload: Asked | Mapping[Names, float],
        allowance: Allowance,
        rows: float | None,
        learned: Learned | None = None,
        model_cells: int = MODEL_CELLS,
        beside: float = 0.0,
    ) -> None:
        """``rows``: n where it is public. ``learned``: what is known already. ``model_cells``: how large the model may become.

        ``beside``: how much Gaussian noise will be charged with the prefit's share of planned noise, but not by the prefit.
        """
        self._data, self._noise = data, noise
        self._budget, self._universe = allowance.budget, data.universe
        self._names = varying(data.universe, data.universe.names)  # the others have nothing to measure
        self._asked = workload if isinstance(workload, Asked) else Listed(data.universe, workload)
        self._allowance, self._whole = allowance, allowance.left
        self._public_rows = rows
        self._choice_share, self._final_steps = CHOICE_SHARE, FINAL_STEPS
        self.planned, self._beside = 0.0, beside  # the share of the budget that is planned, once anything was charged
        self.learned = Learned.nothing(data.universe, rows) if learned is None else learned
        self._model_cells, self._prior_cells = model_cells, self.learned.prior_cells
        self._ranged: set[str] = set()
        self._usual = {
            a: (m * MASK * (1 - MASK), MASK**2)
            for a, m in zip(self._names, self._universe.sizes(self._names), strict=True)
        }

    def run(self, *, everything: bool = False) -> Learned:
        """``everything``: measure the whole workload without choosing, where the noise allows it."""
        if not self._names:
            if self._public_rows is None:
                self._measure((), self._allowance.left)
            return self.learned
        if isinstance(self._asked, EverySmallSet) and not everything:
            self._expect_ranges()
        # Refused only after a crash, when what was lost is paid for twice and the last does not fit: go on with what is known.
        with contextlib.suppress(BudgetExceeded):
            self._measure_workload(everything)
        if self._public_rows is None and not self.learned.measurements:
            raise BudgetExceeded(
                "The number of rows, which is private, must be measured before anything is answered. Found nothing left to pay for it: "
                "all was charged before openings were interrupted. Open another ledger, with what is left of your budget."
            )
        self.learned.refit(self._final_steps, 0.1)
        return self.learned

    def _expect_ranges(self) -> None:
        """Nobody said what will be asked: values and ranges, more often of attributes of few values."""
        if not self._has_few_values:  # then no residual is measured
            return
        declared = self.learned.universe  # where groups of unordered values were merged, they have no order either
        self._ranged = {a for a in self._names if declared[a].ordered and self._universe[a].size >= FEWEST}
        contrasts = self._contrasts(self._names)
        often = np.array([each.size**-FEW_VALUES for each in contrasts])
        often /= often.mean()
        self._usual = {
            name: (weight * each.asked[0], weight * each.asked[1])
            for name, each, weight in zip(self._names, contrasts, often.tolist(), strict=True)
        }

    @property
    def _has_few_values(self) -> bool:
        return are_few(self._universe.sizes(self._names))

    def _contrasts(self, names: Names) -> tuple[Contrasts, ...]:
        return along(self._universe.sizes(names), [name in self._ranged for name in names])

    def _measure_workload(self, everything: bool) -> None:
        pairs = self._asked.pairs()
        every = len(pairs) == math.comb(len(self._names), 2)  # then they are one clique
        cells = self._universe.cells(self._names) if every else junction_cells(self._universe, pairs)
        fits = not self._budget.pure and cells <= OVERVIEW_CELLS and self._has_few_values
        if fits:
            whole = everything and self._noise_of_everything() <= OVERVIEW_OF_ALL
            sets = self._inside() if whole else pairs
            self._plan(1.0 if whole else OVERVIEW_SHARE, bool(pairs))  # refused where n was measured first
            share = self._allowance.left if whole else OVERVIEW_SHARE * self._whole
            is_complete = self._overview([*self._singles(), *sets], share)
            self.learned.grow(*(s for s in sets if s in self.learned.evidence))
            if is_complete and not whole:
                self.learned.refit(ROUND_STEPS)
                self._rounds(OVERVIEW_ROUNDS, ROUNDS_AT_ONCE)
        elif not (self._budget.pure or everything) and self._worth_an_overview(pairs):
            self._plan(PARTS_SHARE, bool(pairs))
            is_complete = self._overview([*self._singles(), *pairs], PARTS_SHARE * self._whole)
            known = [pair for pair in pairs if pair in self.learned.evidence]
            if known:
                take_strongest(self.learned, known, PART_CELLS, max(4, len(self._names) // 3))
            if is_complete:
                self._rounds(max(PARTS_ROUNDS, self._at_once), self._at_once)
        elif self._is_too_wide(pairs):
            self._plan(1.0, False)
            self._single_attributes(1.0)
            self.learned.grow(*self._singles())
        else:
            if not everything:  # for which choices may not be needed
                self._plan(ONE_WAY_SHARE, bool(pairs))
            self._one_way_marginals()
            if (
                everything
                and self._fit_in_memory(self._asked.tables())
                and len(pairs) <= OVERVIEW_PAIRS
                and self._noise_of_everything() <= DIRECT
            ):
                self._measure_everything()
            else:
                self._rounds(ROUNDS_PER_ATTRIBUTE * len(self._universe.names), self._at_once)

    def _plan(self, first: float, rounds: bool) -> None:
        """The share of the budget that buys Gaussian noise, whatever comes out: ``first`` of all, and in rounds all but the choices."""
        measured = first + (1 - first) * (1 - CHOICE_SHARE if rounds else 0.0)
        amount = measured * self._whole + self._beside
        self.planned = 0.0 if self._budget.pure else min(1.0, amount / self._budget.total)

    @property
    def _at_once(self) -> int:
        count = len(self._names)
        return 1 if count <= FEW_ATTRIBUTES else count // AT_ONCE + 2

    def _worth_an_overview(self, pairs: list[Names]) -> bool:
        """Whether all pairs at once, though the model cannot hold them all, would have little noise each: by public sizes."""
        rows = self._public_rows
        if rows is None or not 0 < len(pairs) <= OVERVIEW_PAIRS:
            return False
        if not (self._has_few_values and self._fit_in_memory(pairs)):
            return False
        each = Amount(self._budget, PARTS_SHARE * self._whole / len(pairs))
        noise = [
            expected_distance(residual_event(each, self._contrasts(s), rows).sigma, self._universe.sizes(s))
            for s in pairs
        ]
        return 0.5 * float(np.mean(noise)) <= OVERVIEW_NOISE * rows

    def _is_too_wide(self, pairs: list[Names]) -> bool:
        """Whether attributes have so many values that no pair of them fits in memory: single ones are all that can be known."""
        return not (self._has_few_values or any(self._universe.cells(pair) <= MOST_OFFERED for pair in pairs))

    def _fit_in_memory(self, sets: Iterable[Names]) -> bool:
        """Whether tables can be held all at once."""
        return sum(self._universe.cells(names) for names in sets) <= MOST_OFFERED

    def _singles(self) -> list[Names]:
        return sorted((name,) for name in self._names)

    def _count(self, sets: Sequence[Names]) -> list[Counts]:
        """The data's tables, in as few scans as memory allows."""
        found: list[Counts] = []
        waiting: list[Names] = []
        cells = 0
        for names in sets:
            size = self._universe.cells(names)
            if waiting and cells + size > SCAN_CELLS:
                found += self._data.marginals(waiting)
                waiting, cells = [], 0
            waiting.append(names)
            cells += size
        return found + self._data.marginals(waiting)

    def _measure(self, names: Names, cost: float) -> None:
        part = self._allowance.carve(cost)
        if self._is_residual(names):
            self.learned.add(self._residual(part, names))
            return
        event = part.marginal()
        if isinstance(event, Gaussian):
            finest = finest_grid(MOST_ROWS if self._public_rows is None else self._public_rows)
            (event,), receipt = part.charge_planned(
                event, share=self.planned, finest=finest, why="prefit: marginal", about={"attributes": names}
            )
        else:
            receipt = part.charge(event, why="prefit: marginal", about={"attributes": names})
        values = self._noise.add(self._data.marginal(names), receipt)
        self.learned.add(Measurement(names, np.asarray(values, dtype=float), event))

    def _overview(self, sets: list[Names], share: float) -> bool:
        """Residuals of all sets at once, and of n where it is private, each with its share by the rule above; whether all could be paid.

        Not after a crash, when what was lost is paid for twice: then it is one of those that were, the first of them.
        """
        measured = sets if self._public_rows is not None else [(), *sets]
        contrasts = [self._contrasts(s) for s in measured]
        demand = [
            self._budget.tensor_l2([each.contribution for each in by]) * math.sqrt(self._count_variance(s))
            for s, by in zip(measured, contrasts, strict=True)
        ]
        found: list[Measurement] = []
        with contextlib.suppress(BudgetExceeded):
            for s, part, counts in zip(measured, demand, self._count(measured), strict=True):
                found.append(self._residual(self._allowance.carve(share * part / sum(demand)), s, counts))
        if found:
            for measurement in found:
                self.learned.add(measurement)
            self.learned.overview = Overview(self._universe, found, self._public_rows)
            self.learned.grow(*(s for s in self._singles() if s in self.learned.evidence))
            self.learned.refit(50)
        return len(found) == len(measured)

    def _residual(self, allowance: Allowance, s: Names, counts: Counts | None = None) -> Measurement:
        """Of a table, for all of an allowance. ``counts``: the data's, where they are at hand."""
        by = self._contrasts(s)
        event = residual_event(allowance, by, self._public_rows)
        (event,), receipt = allowance.charge_planned(
            event, share=self.planned, finest=event.grid, why="prefit: residual", about={"attributes": s}
        )
        counts = self._data.marginal(s) if counts is None else counts
        drawn = np.asarray(self._noise.add(coordinates(counts, event.grid, by), receipt), dtype=float)
        ranged = tuple(name for name in s if name in self._ranged)
        return Measurement(s, from_coordinates(drawn, by), event, residual=True, ranged=ranged)

    def _is_residual(self, names: Names) -> bool:
        """Whether a table is measured by its residual alone: after an overview, which knows all smaller ones."""
        return self.learned.overview is not None and self.learned.evidence.lacks_residual(names)

    def _residual_variance(self, names: Names, amount: Amount) -> float:
        """Of a cell of a table whose residual would be measured, but for that of smaller tables."""
        by = self._contrasts(names)
        σ = residual_event(amount, by, self._public_rows).sigma
        return σ**2 * math.prod(each.loss * (1 - 1 / each.size) for each in by)

    def _count_variance(self, s: Names) -> float:
        """Σ_t w_t·c_s(t): how much the residual's noise adds to what is asked."""
        own = math.prod(self._usual[name][0] for name in s)
        return max(own * self._asked.above(s, {name: outside for name, (_, outside) in self._usual.items()}), 1e-9)

    def _one_way_marginals(self) -> None:
        universe, names = self._universe, self._names
        parts = self._single_attributes(ONE_WAY_SHARE)
        noise = [_mean_absolute(Amount(self._budget, ONE_WAY_SHARE * float(p)).marginal()) for p in parts]
        if 0.5 * np.mean(np.array(noise) * universe.sizes(names)) > NOISY * self.learned.rows:
            for name, part in zip(names, parts, strict=True):
                self._measure((name,), MORE_ONE_WAY * float(part))
            # Whether they are may follow from an estimate of n: what is planned stays, and choices have the rest.
            if self.planned > 0:
                self._choice_share *= (1 - ONE_WAY_SHARE) / (1 - ONE_WAY_SHARE - MORE_ONE_WAY)
        self.learned.grow(*self._singles())
        self.learned.refit(50)

    def _single_attributes(self, share: float) -> Array:
        """Measure each with its part of this share of the budget; the parts of all of it."""
        universe, names = self._universe, self._names
        demand = np.array([universe[a].size * self._asked.often(a) for a in names])
        demand = np.maximum(demand, 0.05 * demand.max() or 1.0) ** (2 / 3)
        parts = np.asarray(self._whole * demand / demand.sum())
        self._count([(name,) for name in names])
        for name, part in zip(names, parts, strict=True):
            self._measure((name,), share * float(part))
        return parts

    def _inside(self) -> list[Names]:
        """All sets of two and more attributes inside the workload's."""
        inside = {s for t in self._asked.tables() for s in subsets(t, 2)}
        return sorted(inside, key=lambda s: (len(s), s))

    def _noise_of_everything(self) -> float:
        """The expected total variation distance of the workload's tables if all were measured alike. n is measured if need be."""
        if self._public_rows is None and not self.learned.measurements:
            self._measure((), ROWS_SHARE * self._whole)
        cells = [self._universe.cells(t) for t in self._asked.tables()]
        if not cells:
            return math.inf
        each = _mean_absolute(Amount(self._budget, self._allowance.left / len(cells)).marginal())
        return 0.5 * each * float(np.mean(cells)) / self.learned.rows

    def _measure_everything(self) -> None:
        """All tables of the workload; then, at no cost, the model takes those it can hold, pairs first."""
        learned, universe = self.learned, self._universe
        tables = sorted(self._asked.tables())
        demand = np.array([universe.cells(t) for t in tables], dtype=float) ** (2 / 3)
        self._count(tables)
        for names, part in zip(tables, self._allowance.left * demand / demand.sum(), strict=True):
            self._measure(names, float(part))
        learned.refit(50)
        inside = self._inside()
        # Answers about what is outside the model are corrected as well as any; records follow a strong pair only inside it.
        self._take([names for names in inside if len(names) == 2], PAIRS_PART * self._largest, PAIRS_AT_ONCE)
        self._take(inside, self._largest, TABLES_AT_ONCE)
        self._final_steps = ALL_STEPS

    def _take(self, waiting: list[Names], limit: float, at_once: int) -> None:
        """Of sets that were measured, those that the model can hold, the most surprising first: into it."""
        learned, universe = self.learned, self._universe
        while True:
            waiting = [c for c in waiting if c not in learned.model.sets]
            gains = []
            for c, believed in zip(waiting, self._beliefs(waiting), strict=True):
                counts, variance = learned.evidence.estimate(c)
                noise = math.sqrt(2 * variance / math.pi) * counts.size
                gains.append(float(np.abs(counts - learned.rows * believed).sum()) - noise)
            chosen: list[Names] = []
            too_large: set[Names] = set()  # and so they stay, as the model only grows
            for i in np.argsort(gains)[::-1]:
                if gains[i] <= 0 or len(chosen) == at_once:
                    break
                fits = junction_cells(universe, [*learned.model.tops, *chosen, waiting[i]]) <= limit
                if fits:
                    chosen.append(waiting[i])
                else:
                    too_large.add(waiting[i])
            if not chosen:
                return
            waiting = [c for c in waiting if c not in too_large]
            learned.grow(*chosen)
            learned.refit(ROUND_STEPS)

    def _rounds(self, rounds: int, at_once: int) -> None:
        candidates = Candidates(self._universe, self._asked)
        if not candidates.pairs:
            return
        cost = self._allowance.left / rounds
        last = False
        while not last:
            many = max(1, min(at_once, int(self._allowance.left / cost)))
            last = self._allowance.left < (many + 1) * cost
            cost = self._allowance.left / many if last else cost
            choice, measured = self._choice_share * cost, (1 - self._choice_share) * cost
            chosen = self._choose(candidates, many, choice, measured)
            last = last and len(chosen) == many
            for names, _, _ in chosen:
                self._measure(names, measured)
            limit = self._limit() if len(chosen) == 1 else self._chosen(self._share)
            self._grow([names for names, _, _ in chosen], limit)
            self.learned.refit(ROUND_STEPS)
            little = 0
            for names, believed, discount in chosen:
                change = self.learned.rows * float(np.abs(self.learned.marginal(names) - believed).sum())
                little += change <= discount
            if 2 * little >= len(chosen):
                cost *= FACTOR
        if self.learned.overview is None:  # now that nothing else is coming
            self._grow(self.learned.outside, self._chosen())

    def _limit(self) -> float:
        """Of the model's cells, for one set more: it grows with what was spent. After an overview what the model has it may have."""
        spent = 1 - self._allowance.left / self._whole
        limit = self._model_cells * self._share * max(spent, 0.1)
        has = 0 if self.learned.overview is None else self.learned.model.tree.cells
        return max(limit, self._prior_cells, has)

    @property
    def _share(self) -> float:
        """Of the model's cells while it is chosen what to measure, fewer of many attributes: whatever is done with a cell is done for each attribute."""
        return min(1.0, MANY_ATTRIBUTES / len(self._names))

    @property
    def _largest(self) -> float:
        return LARGEST_MODEL_CELLS / MODEL_CELLS * self._model_cells

    def _chosen(self, share: float = 1.0) -> float:
        """Of the model's cells, when several tables were chosen for it."""
        if len(self._names) <= FEW_ATTRIBUTES:
            return share * self._largest
        messages = MOST_MESSAGES / MODEL_CELLS * self._model_cells
        return min(share * self._largest, messages / sum(self._universe.sizes(self._names)))

    def _grow(self, sets: list[Names], limit: float) -> None:
        """Into the model as far as there is room: what is left corrects what it says (``corrections``)."""
        limit = max(limit, self._prior_cells)  # what an earlier block's model has, this one's may have
        tops, taken = self.learned.model.tops, sets
        if junction_cells(self._universe, [*tops, *sets]) > limit:
            taken = []
            for names in sets:
                if junction_cells(self._universe, [*tops, *taken, names]) <= limit:
                    taken.append(names)
        self.learned.grow(*taken)

    def _choose(
        self, candidates: Candidates, many: int, choice: float, measured: float
    ) -> list[tuple[Names, Array, float]]:
        """Exponential mechanisms over the candidates that fit the model; with each choice, what was believed and the discount.

        Those after the first are among the sets that share at most one attribute with each chosen before.
        """
        learned = self.learned
        limit = self._limit()
        first = learned.overview is None  # then large errors may be left anywhere, else small ones everywhere
        offered = candidates.offered(learned.model, limit, learned.current() if first else None)
        amount = Amount(self._budget, measured)
        noise = _mean_absolute(amount.marginal())
        residuals = {s: self._residual_variance(s, amount) for s in offered.sets if self._is_residual(s)}
        own = {s: _mean_size(v) for s, v in residuals.items()}
        with_smaller = {s: _mean_size(v + learned.evidence.variance_below(s)) for s, v in residuals.items()}
        discounts, taught = (offered.discounts(noise, SHRINKS, learned.rows, each) for each in (with_smaller, own))
        demand = np.array(self._asked.weights(offered.sets))
        members = candidates.members(offered.sets)
        among = {"among": hashlib.blake2b(np.packbits(members).tobytes(), digest_size=16).hexdigest()}
        scores: Array | None = None
        left, added, chosen = np.arange(len(offered.sets)), offered.sizes - learned.model.tree.cells, list[int]()
        while left.size and len(chosen) < many:
            part = self._allowance.carve(choice)
            event = part.choice(self._budget.marginal_distance())
            receipt = part.charge(event, why="prefit: choice", about=among)
            if scores is None:
                distances = offered.distances(self._count, learned.rows, round(NOTICEABLE * noise) if first else 0)
                less = np.zeros_like(discounts) if first else discounts
                scores = _exact_scores(distances, less, demand / demand.max(), learned.rows)
            j = int(left[self._noise.choose(scores[left], receipt)])
            chosen.append(j)
            limit -= max(0.0, added[j])
            shared = np.count_nonzero(members[:, members[j]], axis=1)
            left = left[(offered.sizes[left] <= limit) & (shared[left] <= 1)]
        return [(offered.sets[j], offered.believed(offered.sets[j]), float(taught[j])) for j in chosen]

    def _beliefs(self, sets: list[Names]) -> list[Array]:
        """The model's marginals, smaller ones as sums of larger ones where that saves an elimination."""
        model = self.learned.model
        found: dict[Names, Array] = {}
        for names in sorted(sets, key=len, reverse=True):
            if names in found:
                continue
            found[names] = table = model.marginal(names)
            for s in subsets(names, 2)[:-1]:
                if s not in found:
                    found[s] = table.sum(axis=tuple(i for i, n in enumerate(names) if n not in s))
        return [found[s] for s in sets]


def residual_event(amount: Amount, contrasts: Sequence[Contrasts], rows: float | None) -> Gaussian:
    """The noise on a residual's coordinates that the amount buys; of n itself, which is whole, on no attributes.

    Rounding moves each of the r coordinates of two neighbours apart by at most a step g: by g√r in all. The last factor
    is room for the square roots of float64.
    """
    if not contrasts:
        return amount.gaussian(amount.budget.linear())
    grid = GRID if rows is None else max(GRID, finest_grid(rows))
    rounding = grid * math.sqrt(math.prod(each.count for each in contrasts))
    sensitivity = (amount.budget.tensor_l2([each.contribution for each in contrasts]) + rounding) * (1 + 2**-40)
    return amount.gaussian(sensitivity, grid)


def finest_grid(rows: float) -> float:
    """On which float64 and the sampler hold every number of up to so many rows, and noise besides."""
    return float(2.0 ** (math.ceil(math.log2(max(rows, 1.0))) + 1 - FLOATS))


def _exact_scores(distances: Sequence[int], discounts: Sequence[float] | Array, weights: Array, rows: float) -> Array:
    """w·(distance − discount) for each candidate, without error: one row moves it by at most what it moves the distance.

    Distances and discounts are cut off at a public bound of at least four times the rows (1-Lipschitz, and no distance
    reaches it where ``rows`` is n), discounts are rounded to whole rows and weights down to multiples of 2^-b, b such
    that all products fit float64.
    """
    span = min(FLOATS, math.ceil(math.log2(max(rows, 1.0))) + 2)
    bits = min(WEIGHT_BITS, FLOATS - span)
    most = 2.0**span
    whole = np.maximum(1.0, np.floor(np.ldexp(weights, bits)))
    off = np.array([min(d, 2**span) for d in distances], float) - np.minimum(np.round(np.asarray(discounts)), most)
    return np.asarray(np.ldexp(whole * off, -bits))


def _mean_absolute(event: Laplace | Gaussian) -> float:
    return event.scale if isinstance(event, Laplace) else _mean_size(event.sigma**2)


def _mean_size(variance: float) -> float:
    """Of Gaussian noise."""
    return math.sqrt(2 / math.pi * variance)
