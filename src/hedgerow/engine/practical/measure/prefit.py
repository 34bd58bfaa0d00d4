"""Choose and measure marginals: the prefit of the practical profile, and the offline release.

Where the pairs of the workload fit one model, an *overview* comes first: the residuals of all single attributes and
pairs (of the whole workload's tables, for a release with little noise), measured at once without choosing. Residuals
cost less than tables, because they do not measure smaller tables again (Xiao et al. 2023). Where the pairs do not fit
one model but their noise would be small, they are measured all the same: the model takes the strongest of them
(``pair_selection``), and all others are estimated by themselves (``interactions``). Otherwise all one-way marginals
come first. Then follow rounds of the exponential mechanism and a measurement, with a larger share of the budget once a
round taught little, as in McKenna et al., "AIM: an adaptive and iterative mechanism for differentially private
synthetic data" (2022). After an overview, and with many attributes, several tables are chosen before the model is
fitted again, no two of them sharing a pair: the scores of one round (``candidates``) then serve many choices, each with
its own charge and draw. What an overview leaves unknown of a table of three attributes is its residual, so only that is
measured.

Differs from AIM: the hypothesis is fitted to least-squares estimates of everything measured (``residuals``,
``log_linear``). One-way marginals share their budget by (cells × workload)^⅔. After an overview, the noise expected
in a cell (for a residual, together with that of the smaller tables) counts against a candidate only up to what the
hypothesis believes is there, Σ min(E|noise|, 0.8·n·h), because a fit that shrinks towards the hypothesis cannot add
more error than that. While pairs are unknown, a score is what stands above the noise, Σ (|count − n·h| −
3·E|noise|)⁺, which makes one large error in a large table visible. A pair that does not fit the model's tree may be
chosen all the same, and corrects what the model says (``corrections``).

Overview shares. A question about a table on t has the variance Σ_{s⊆t} σ_s²·c_s(t), c_s(t) = Π_{a∈s} v_a·Π_{a∈t∖s}
u_a, where v_a and u_a are the means of ‖centred‖² and of (mean)² of what is asked about attribute a. The sum over the
workload is least, for a given cost Σ Δ_s²/(2σ_s²), when each residual's cost is proportional to Δ_s·√(Σ_t c_s(t)). A
session without a declared workload expects questions about values and, for ordered attributes, ranges too; these
attributes are measured by contrasts of ranges (``contrasts``). It expects them more often about attributes with few
values, such as flags and groups (``FEW_VALUES``). With a declared workload, and in a release, a question is a random
count: each value is in it with probability f = ⅓, so that v = m·f(1−f) and u = f².

Privacy. Everything measured is charged before it is drawn. A score is w·(Σ (|count − round(n·h)| − τ)⁺ − discount)
with w ≤ 1, and all but the counts are public. Its sensitivity is ``budget.marginal_distance()``: one row moves one
count up and, under replace-one, another down, and each term moves by no more than its count. Terms and discount are
whole numbers, and w is a multiple of a public power of two, so that the sensitivity is exact (``_exact_scores``).
Gaussian noise is planned: its share of the budget is fixed before anything is charged (``_plan``). The candidates of
a round, and the restriction of its later choices, follow from public sizes and released choices. All parameters are
constants or functions of public sizes, the budget and released values.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from hedgerow._types import Array, Counts, Names
from hedgerow.data.source import MOST_ROWS, DataSource
from hedgerow.engine.practical.fit.residuals import Overview, coordinates, from_coordinates
from hedgerow.engine.practical.free_answers import MANY_ATTRIBUTES, FittedModel
from hedgerow.engine.practical.measure.candidates import (
    FLOATS,
    MOST_OFFERED,
    Candidates,
    EverySmallSet,
    ListedSets,
    WorkloadSets,
)
from hedgerow.engine.practical.measure.pair_selection import expected_distance, take_strongest_pairs
from hedgerow.engine.practical.measurement import FEWEST, Contrasts, Measurement, along, are_few, varying_names
from hedgerow.errors import BudgetExceeded
from hedgerow.model.junction_tree import junction_cells
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.events import Gaussian, Laplace, grid_at_most
from hedgerow.privacy.noise import Noise
from hedgerow.universe.universe import subsets

# One-way marginals, where there is no overview.
ONE_WAY_SHARE = 0.1  # share of the budget for one-way marginals
MORE_ONE_WAY = 0.25  # share of a second measurement of them, made if the first is mostly noise,
NOISY = 0.05  # that is if its expected total variation distance exceeds this

# The overview.
OVERVIEW_SHARE = 0.95  # share of the budget
AFTER_A_CRASH = 1 / 16, 1 / 64  # parts of an overview's share that are tried where the whole was lost and is refused
OVERVIEW_CELLS = 600_000  # most cells of the junction tree of all pairs
OVERVIEW_ROUNDS, ROUNDS_AT_ONCE = 24, 6  # rounds after an overview, and how many tables are chosen between two fits
# A release's overview covers its whole workload if the noise of its tables has less total variation distance than this.
OVERVIEW_OF_ALL = 0.02
STEPS_OF_MULTIPLES, MOST_MULTIPLE = 64, 2**20  # the smallest of the whole numbers k_s, and their limit
ROWS_SHARE = 0.005  # share that measures n, where n is private and needed first
# An overview of pairs that one model cannot hold: largest noise (total variation distance) and number of pairs.
OVERVIEW_NOISE, OVERVIEW_PAIRS = 0.1, 5_000
EARLIER_OVERVIEW_NOISE = 0.05  # the same in ledgers whose opening began with single attributes
# The same in ledgers whose overview was charged one by one.
FIRST_OVERVIEW_NOISE, FIRST_OVERVIEW_PAIRS = 0.0005, 1_000
FIRST_PART_CELLS, FIRST_PARTS_ROUNDS = 50_000, 3
PART_CELLS = 200_000  # most cells of the model that takes the strongest of these pairs
FEWEST_OF_PARTS = 24  # fewest values of an attribute that it measures by contrasts of ranges, which blur single cells
CELLS_OF_PARTS = 1.0  # expect questions about an attribute of m values in proportion to m^this
FEW_OF_PARTS = 8.0  # a pair's precision is multiplied by 1 + this / m², m its fewer values: flags cost little
# The least share of its pairs' budget for pairs with a flag, for each pair that is measured, and the most it may be.
# The more pairs there are, the noisier is each, and the smaller a part of them a flag has. Precisions grow by at most
# the last factor for it.
FLAGS_SHARE, MOST_OF_FLAGS, MOST_TIMES_OF_FLAGS = 1 / 1600, 0.55, 12.0
SINGLES_OF_PARTS = 0.15  # most of its budget for single attributes
PARTS_SHARE = 0.9  # share of the budget for its first draw, where the number of rows was needed to plan it
MASK = 1 / 3  # probability that a value of an attribute is part of a random count
FEW_VALUES = 0.5  # without a declared workload, an attribute of m values is asked about in proportion to m^-this

# Rounds of choosing and measuring.
CHOICE_SHARE = 0.1  # share of a round's budget for the choice; the rest measures
# With more than 15 attributes, (attributes // 8 + 2) tables are chosen between two fits.
AT_ONCE, FEW_ATTRIBUTES = 8, 15
ROUNDS_PER_ATTRIBUTE = 3  # the first rounds have the budget of this many rounds per attribute; later ones may grow
FACTOR = 4.0  # increase of a round's cost when the last one taught little: half the noise
NOTICEABLE = 3.0  # while pairs are unknown, errors below this many times the mean size of the noise do not score
SHRINKS = 0.8  # after an overview, the discount of a cell is at most this part of its believed count

# Sizes and work.
MODEL_CELLS = 500_000  # most cells of the junction tree while tables are chosen
LARGEST_MODEL_CELLS = 1_000_000  # the same once everything is measured and only the fit remains
MOST_MESSAGES = 90_000_000  # with many attributes, most tree cells × values of all attributes: the work of answers
SCAN_CELLS = 10_000_000  # most cells of all tables that are counted in one scan
# Where pairs do not fit one model, a release measures its workload's tables if their noise is below this, and pairs
# few.
DIRECT, DIRECT_PAIRS = 0.25, 1_000
PAIRS_AT_ONCE, TABLES_AT_ONCE = 8, 32  # where all tables are measured, how many enter the model between two fits
PAIRS_PART = 0.6  # part of the model's cells that pairs may take before larger tables
ROUND_STEPS, FINAL_STEPS, ALL_STEPS = 40, 300, 600  # steps of fits: after a round, at the end, if all was measured
GRID = 2.0**-14  # grid of residuals' coordinates for up to 2^38 rows: float64 and the sampler hold 2^53 steps of it
WEIGHT_BITS = 20  # most bits of a candidate's weight; large distances leave fewer


class Prefit:
    """One prefit or release: the rest of its allowance, and what has been learned."""

    def __init__(
        self,
        data: DataSource,
        noise: Noise,
        workload: WorkloadSets | Mapping[Names, float],
        allowance: Allowance,
        rows: float | None,
        learned: FittedModel | None = None,
        model_cells: int = MODEL_CELLS,
        beside: float = 0.0,
        one_by_one: bool = False,
        may_plan: bool = True,
        began_with_singles: bool = False,
        recorded_times: Mapping[Names, int] | None = None,
    ) -> None:
        """Prepare a prefit of ``workload`` that spends ``allowance``.

        ``rows`` is n where it is public. ``learned`` is what is known already. ``model_cells`` limits the size of the
        model. ``beside`` is the amount of Gaussian noise that is charged to the same planned share, but not by the
        prefit. With ``one_by_one``, an overview is charged as in ledgers that were begun before it was one event.
        Without ``may_plan`` no noise is planned, because the ledger will be charged for what excludes it.
        With ``began_with_singles``, the ledger holds an opening that measured single attributes, and no overview,
        first. ``recorded_times`` are the multiples of an overview that the ledger holds, perhaps by an earlier rule.
        """
        self._data, self._noise = data, noise
        self._budget, self._universe = allowance.budget, data.universe
        self._names = varying_names(data.universe, data.universe.names)  # attributes of one value need no measurement
        self._asked = workload if isinstance(workload, WorkloadSets) else ListedSets(data.universe, workload)
        self._allowance, self._whole = allowance, allowance.left
        self._public_rows = rows
        self._choice_share, self._final_steps = CHOICE_SHARE, FINAL_STEPS
        self.planned, self._beside = 0.0, beside  # the planned share of the budget: set before the first charge
        self.learned = FittedModel.nothing(data.universe, rows) if learned is None else learned
        self._model_cells, self._prior_cells = model_cells, self.learned.prior_cells
        self._ranged: set[str] = set()
        self._grid_rows = rows  # as many rows as a grid must hold: n, or its released estimate once an overview has one
        self._one_by_one, self._may_plan, self._recorded_times = one_by_one, may_plan, recorded_times or {}
        self._most_noise = min(EARLIER_OVERVIEW_NOISE, OVERVIEW_NOISE) if began_with_singles else OVERVIEW_NOISE
        self._overviews: list[Measurement] = []
        self._in_parts = False  # True if the pairs of the workload do not fit one model
        self._has_parts = False  # True after an overview whose pairs one model does not hold
        self._usual = {
            a: (m * MASK * (1 - MASK), MASK**2)
            for a, m in zip(self._names, self._universe.sizes(self._names), strict=True)
        }

    def run(self, *, everything: bool = False) -> FittedModel:
        """Spend the allowance and return what was learned.

        With ``everything``, the whole workload is measured without choosing, if the noise allows it.
        """
        if not self._names:
            if self._public_rows is None:
                self._measure((), self._allowance.left)
            return self.learned
        # A charge is refused only after a crash, when lost draws are paid for twice: go on with what is known.
        with contextlib.suppress(BudgetExceeded):
            self._measure_workload(everything)
        if self._public_rows is None and not self.learned.measurements:
            raise BudgetExceeded(
                "The number of rows, which is private, must be measured before anything is answered. "
                "Found no budget left for it: interrupted openings have spent it all. "
                "Open another ledger with the budget that you have left."
            )
        if self._has_parts:
            self.learned.fit_interactions()
        self.learned.refit(self._final_steps, 0.1)
        return self.learned

    def _expect_questions(self, in_parts: bool) -> None:
        """Expect questions about values and ranges, as no workload was declared; favor attributes with few values.

        Where the pairs are many (``in_parts``), expect whole tables instead: every cell counts alike.
        """
        if not self._has_few_values:  # no residual will be measured
            return
        declared, fewest = self.learned.universe, FEWEST_OF_PARTS if in_parts else FEWEST
        # Groups of unordered values have no order either.
        self._ranged = {a for a in self._names if declared[a].ordered and self._universe[a].size >= fewest}
        contrasts = self._contrasts(self._names)
        often = np.array([each.size ** (CELLS_OF_PARTS if in_parts else -FEW_VALUES) for each in contrasts])
        often /= often.mean()
        self._usual = {
            name: (weight * each.asked[0], weight * each.asked[1])
            for name, each, weight in zip(self._names, contrasts, often.tolist(), strict=True)
        }

    @property
    def _has_few_values(self) -> bool:
        """True if the contrasts of all attributes fit in memory, which residuals need."""
        return are_few(self._universe.sizes(self._names))

    def _contrasts(self, names: Names) -> tuple[Contrasts, ...]:
        """Return the contrasts along each of these attributes."""
        return along(self._universe.sizes(names), [name in self._ranged for name in names])

    def _measure_workload(self, everything: bool) -> None:
        """Measure the workload by the first strategy that fits.

        The strategies are an overview, an overview that the model holds only in part, single attributes alone, and
        rounds.
        """
        pairs = self._asked.pairs()
        every = len(pairs) == math.comb(len(self._names), 2)  # all pairs together make one clique
        cells = self._universe.cells(self._names) if every else junction_cells(self._universe, pairs)
        fits = not self._budget.pure and cells <= OVERVIEW_CELLS and self._has_few_values
        if isinstance(self._asked, EverySmallSet) and not everything:
            self._expect_questions(in_parts=not (fits or self._one_by_one))
        self._in_parts = not fits
        if fits:
            whole = everything and self._noise_of_everything() <= OVERVIEW_OF_ALL
            sets = self._inside() if whole else pairs
            # If n was measured just now, the ledger refuses planned noise, and the noise is charged as it is.
            self._plan(1.0 if whole else OVERVIEW_SHARE, bool(pairs))
            share = self._allowance.left if whole else OVERVIEW_SHARE * self._whole
            is_complete = self._overview([*self._singles(), *sets], share)
            self.learned.grow(*(s for s in sets if s in self.learned.evidence))
            if is_complete and not whole:
                self.learned.refit(ROUND_STEPS)
                self._rounds(OVERVIEW_ROUNDS, ROUNDS_AT_ONCE)
        elif self._one_by_one and not everything and self._was_worth_an_overview(pairs):
            self._plan(PARTS_SHARE, True)
            is_complete = self._overview([*self._singles(), *pairs], PARTS_SHARE * self._whole)
            known = [pair for pair in pairs if pair in self.learned.evidence]
            take_strongest_pairs(self.learned, known, FIRST_PART_CELLS, max(4, len(self._names) // 3))
            if is_complete:
                self._rounds(max(FIRST_PARTS_ROUNDS, self._at_once), self._at_once)
        elif not (self._budget.pure or everything or self._one_by_one) and self._is_worth_an_overview(pairs):
            if self._public_rows is None:  # planned before it was known that there are enough rows
                self._overview([*self._singles(), *pairs], PARTS_SHARE * self._whole)
            else:
                self._plan(1.0, False)
            self._overview([*self._singles(), *pairs], self._allowance.left)
            known = [pair for pair in pairs if pair in self.learned.evidence]
            if known:
                room = min(PART_CELLS, self._cells_for_choice(self._share))
                take_strongest_pairs(self.learned, known, room, max(4, len(self._names) // 3))
                self._has_parts = True
        elif self._is_too_wide(pairs):
            self._plan(1.0, False)
            self._single_attributes(1.0)
            self.learned.grow(*self._singles())
        else:
            if not (everything or self.planned):  # measuring everything may need no choices, and so is not planned
                self._plan(ONE_WAY_SHARE, bool(pairs))
            self._one_way_marginals()
            if (
                everything
                and self._fit_in_memory(self._asked.tables())
                and len(pairs) <= DIRECT_PAIRS
                and self._noise_of_everything() <= DIRECT
            ):
                self._measure_everything()
            else:
                self._rounds(ROUNDS_PER_ATTRIBUTE * len(self._universe.names), self._at_once)

    def _plan(self, first: float, rounds: bool) -> None:
        """Fix the planned share: the part of the budget that buys Gaussian noise, whatever is released.

        It is ``first`` of the whole, and in rounds all of the rest but the choices.
        """
        measured = first + (1 - first) * (1 - CHOICE_SHARE if rounds else 0.0)
        amount = measured * self._whole + self._beside
        self.planned = 0.0 if self._budget.pure or not self._may_plan else min(1.0, amount / self._budget.total)

    @property
    def _at_once(self) -> int:
        """The number of tables chosen between two fits."""
        count = len(self._names)
        return 1 if count <= FEW_ATTRIBUTES else count // AT_ONCE + 2

    def _is_worth_an_overview(self, pairs: list[Names]) -> bool:
        """Return True if measuring all pairs at once would leave little noise in each, though no model holds them all.

        The decision follows from public sizes, the budget, and n or its released estimate. The budget is then planned
        as for rounds: nothing may be charged before it is planned.
        """
        if not 0 < len(pairs) <= OVERVIEW_PAIRS or not (self._has_few_values and self._fit_in_memory(pairs)):
            return False
        if self._public_rows is None and not self.learned.measurements:
            self._plan(ONE_WAY_SHARE, True)
            self._measure((), ROWS_SHARE * self._whole)
        sets = [*self._singles(), *pairs]
        times = self._multiples(sets)
        σ = self._joint_event(Amount(self._budget, PARTS_SHARE * self._whole), sets, times).sigma
        noise = [
            expected_distance(σ / math.sqrt(k), self._universe.sizes(s))
            for s, k in zip(sets, times, strict=True)
            if len(s) == 2
        ]
        return 0.5 * float(np.mean(noise)) <= self._most_noise * self.learned.rows

    def _was_worth_an_overview(self, pairs: list[Names]) -> bool:
        """Return the rule of ledgers whose overviews are charged one by one."""
        rows = self._public_rows
        if rows is None or not 0 < len(pairs) <= FIRST_OVERVIEW_PAIRS:
            return False
        if not (self._has_few_values and self._fit_in_memory(pairs)):
            return False
        each = Amount(self._budget, PARTS_SHARE * self._whole / len(pairs))
        noise = [
            expected_distance(residual_event(each, self._contrasts(s), rows).sigma, self._universe.sizes(s))
            for s in pairs
        ]
        return 0.5 * float(np.mean(noise)) <= FIRST_OVERVIEW_NOISE * rows

    def _is_too_wide(self, pairs: list[Names]) -> bool:
        """Return True if no pair of attributes fits in memory, so that only single attributes are measured."""
        return not (self._has_few_values or any(self._universe.cells(pair) <= MOST_OFFERED for pair in pairs))

    def _fit_in_memory(self, sets: Iterable[Names]) -> bool:
        """Return True if these tables can be held all at once."""
        return sum(self._universe.cells(names) for names in sets) <= MOST_OFFERED

    def _singles(self) -> list[Names]:
        """List the sets of one attribute."""
        return sorted((name,) for name in self._names)

    def _count(self, sets: Sequence[Names]) -> list[Counts]:
        """Return the data's tables, counted in as few scans as memory allows."""
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
        """Charge, draw and learn one table, or only its residual where an overview has left nothing else unknown."""
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
        """Measure the residuals of all sets as one event, and n where it is private; return True if it was paid for.

        The coordinates of each set are multiplied by the square root of a whole number, so that one draw gives every
        set the noise that the module docstring derives. Only after a crash, when a lost draw is paid for twice, is the
        charge refused. A small part of it then pays for much noise.
        """
        if self._one_by_one:
            return self._overview_one_by_one(sets, share)
        found: list[Measurement] = []
        times, share = self._multiples(sets), min(share, self._allowance.left)
        if self._public_rows is None and not self._overviews:
            of_rows = self._share_of_rows(sets)
            for part in (1.0, *AFTER_A_CRASH):
                with contextlib.suppress(BudgetExceeded):
                    found.append(self._residual(self._allowance.carve(part * of_rows * share), ()))
                    break
            if not found:
                return False
            self._grid_rows, share = float(found[0].values), (1 - of_rows) * share
        for part in (1.0, *AFTER_A_CRASH):
            with contextlib.suppress(BudgetExceeded):
                found += self._joint_residuals(self._allowance.carve(part * share), sets, times)
                break
        self._learn_overview(found)
        return len(found) >= len(sets)

    def _share_of_rows(self, sets: Sequence[Names]) -> float:
        """Return the share of an overview that measures a private n, by the rule for the shares of residuals."""
        if self._in_parts:  # n was measured before, and so is everything else that its variance adds to
            return ROWS_SHARE
        demand = [
            math.sqrt(self._count_variance(s) * math.prod(each.contribution.square for each in self._contrasts(s)))
            for s in [(), *sets]
        ]
        return max(ROWS_SHARE, demand[0] / math.fsum(demand))

    def _learn_overview(self, found: list[Measurement]) -> None:
        """Learn the residuals of an overview, or of a part of it."""
        if found:
            for measurement in found:
                self.learned.add(measurement)
            self._overviews += found
            self.learned.overview = Overview(self._universe, self._overviews, self._public_rows)
            self.learned.grow(*(s for s in self._singles() if s in self.learned.evidence))
            self.learned.refit(50)

    def _overview_one_by_one(self, sets: list[Names], share: float) -> bool:
        """Measure the residual of each set by a charge of its own, as ledgers do that were begun so."""
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
        self._learn_overview(found)
        return len(found) == len(measured)

    def _multiples(self, sets: Sequence[Names]) -> list[int]:
        """Return whole numbers k_s that are inverse to the variance which each residual should have.

        The cost of each residual is its share by the module docstring, so that k_s ∝ √(Σ_t c_s(t))/Δ_s.
        """
        if all(s in self._recorded_times for s in sets):
            return [self._recorded_times[s] for s in sets]
        wanted = []
        for s in sets:
            own = math.prod(each.contribution.square for each in self._contrasts(s))
            wanted.append(math.sqrt(self._count_variance(s) / own))
        if self._in_parts:  # then most of the budget is for the many cells of pairs
            fewest = [min(self._universe.sizes(s)) if len(s) == 2 else math.inf for s in sets]
            wanted = [k * (1 + FEW_OF_PARTS / m**2) for k, m in zip(wanted, fewest, strict=True)]
            flags, singles = [m == 2 for m in fewest], [len(s) == 1 for s in sets]
            pairs = [len(s) == 2 for s in sets]
            share = min(MOST_OF_FLAGS, sum(pairs) * FLAGS_SHARE)
            more = self._times_to_share(sets, wanted, flags, share, pairs)
            more /= 2 if self._budget.neighbours == "replace" else 1  # a replaced flag alone changes all it has
            more = max(1.0, min(MOST_TIMES_OF_FLAGS, more))
            wanted = [more * k if flag else k for k, flag in zip(wanted, flags, strict=True)]
            less = min(1.0, self._times_to_share(sets, wanted, singles, SINGLES_OF_PARTS, [True] * len(sets)))
            wanted = [less * k if single else k for k, single in zip(wanted, singles, strict=True)]
        least = min(wanted)
        return [min(round(STEPS_OF_MULTIPLES * each / least), MOST_MULTIPLE) for each in wanted]

    def _times_to_share(
        self,
        sets: Sequence[Names],
        precisions: Sequence[float],
        chosen: Sequence[bool],
        share: float,
        among: Sequence[bool],
    ) -> float:
        """Return the factor of the chosen sets' precisions with which they cost this share of all sets ``among``.

        It is 1 if none is chosen, or all are.
        """
        costs = [
            k * math.prod(each.contribution.square for each in self._contrasts(s))
            for k, s in zip(precisions, sets, strict=True)
        ]
        own = math.fsum(cost for cost, mine in zip(costs, chosen, strict=True) if mine)
        rest = math.fsum(cost for cost, mine, counts in zip(costs, chosen, among, strict=True) if counts and not mine)
        return share / (1 - share) * rest / own if own > 0 and rest > 0 else 1.0

    def _joint_event(self, amount: Amount, sets: Sequence[Names], times: Sequence[int]) -> Gaussian:
        """Return the noise on the multiplied coordinates of all sets together (docs/proofs/residuals.md)."""
        contrasts = dict(zip(self._names, self._contrasts(self._names), strict=True))
        return joint_event(amount, contrasts, sets, times, self._grid_rows)

    def _joint_residuals(self, allowance: Allowance, sets: Sequence[Names], times: Sequence[int]) -> list[Measurement]:
        """Measure the residuals of all sets with a whole allowance, as one draw."""
        event = self._joint_event(allowance, sets, times)
        (event,), receipt = allowance.charge_planned(
            event,
            share=self.planned,
            finest=event.grid,
            why="prefit: residuals",
            about={"sets": [list(s) for s in sets], "times": list(times)},
        )
        exact = [
            coordinates(counts, event.grid, self._contrasts(s), k)
            for s, k, counts in zip(sets, times, self._count(sets), strict=True)
        ]
        drawn = np.asarray(self._noise.add(np.concatenate([each.ravel() for each in exact]), receipt), dtype=float)
        parts = np.split(drawn, np.cumsum([each.size for each in exact])[:-1])
        found = []
        for s, k, each, part in zip(sets, times, exact, parts, strict=True):
            values = from_coordinates(part.reshape(each.shape) / math.sqrt(k), self._contrasts(s))
            ranged = tuple(name for name in s if name in self._ranged)
            found.append(Measurement(s, values, event_of_part(event, k), residual=True, ranged=ranged))
        return found

    def _residual(self, allowance: Allowance, s: Names, counts: Counts | None = None) -> Measurement:
        """Measure the residual of a table with a whole allowance; ``counts`` are the data's counts, if known."""
        by = self._contrasts(s)
        event = residual_event(allowance, by, self._grid_rows)
        (event,), receipt = allowance.charge_planned(
            event, share=self.planned, finest=event.grid, why="prefit: residual", about={"attributes": s}
        )
        counts = self._data.marginal(s) if counts is None else counts
        drawn = np.asarray(self._noise.add(coordinates(counts, event.grid, by), receipt), dtype=float)
        ranged = tuple(name for name in s if name in self._ranged)
        return Measurement(s, from_coordinates(drawn, by), event, residual=True, ranged=ranged)

    def _is_residual(self, names: Names) -> bool:
        """Return True if only a table's residual is measured: after an overview, which knows all smaller tables."""
        return self.learned.overview is not None and self.learned.evidence.lacks_residual(names)

    def _residual_variance(self, names: Names, amount: Amount) -> float:
        """Return the variance that a residual bought with ``amount`` adds to a cell, without that of smaller tables."""
        by = self._contrasts(names)
        σ = residual_event(amount, by, self._grid_rows).sigma
        return σ**2 * math.prod(each.loss * (1 - 1 / each.size) for each in by)

    def _count_variance(self, s: Names) -> float:
        """Return Σ_t w_t·c_s(t): how much the residual's noise adds to the variance of what is asked."""
        own = math.prod(self._usual[name][0] for name in s)
        return max(own * self._asked.above(s, {name: outside for name, (_, outside) in self._usual.items()}), 1e-9)

    def _one_way_marginals(self) -> None:
        """Measure all one-way marginals, a second time where they are mostly noise, and fit the model to them."""
        universe, names = self._universe, self._names
        share = ONE_WAY_SHARE - (1 - self._allowance.left / self._whole)  # n may have been measured out of it
        parts = self._single_attributes(share)
        noise = [_mean_absolute(Amount(self._budget, share * float(p)).marginal()) for p in parts]
        if 0.5 * np.mean(np.array(noise) * universe.sizes(names)) > NOISY * self.learned.rows:
            for name, part in zip(names, parts, strict=True):
                self._measure((name,), MORE_ONE_WAY * float(part))
            # This decision may rest on an estimate of n, so the planned share stays as it is and the choices get the
            # rest.
            if self.planned > 0:
                self._choice_share *= (1 - ONE_WAY_SHARE) / (1 - ONE_WAY_SHARE - MORE_ONE_WAY)
        self.learned.grow(*self._singles())
        self.learned.refit(50)

    def _single_attributes(self, share: float) -> Array:
        """Measure each attribute with its part of ``share`` of the budget; return the parts of the whole budget."""
        universe, names = self._universe, self._names
        demand = np.array([universe[a].size * self._asked.often(a) for a in names])
        demand = np.maximum(demand, 0.05 * demand.max() or 1.0) ** (2 / 3)
        parts = np.asarray(self._whole * demand / demand.sum())
        self._count([(name,) for name in names])
        for name, part in zip(names, parts, strict=True):
            self._measure((name,), share * float(part))
        return parts

    def _inside(self) -> list[Names]:
        """List all sets of two or more attributes inside the workload's sets."""
        inside = {s for t in self._asked.tables() for s in subsets(t, 2)}
        return sorted(inside, key=lambda s: (len(s), s))

    def _noise_of_everything(self) -> float:
        """Return the expected total variation distance of the workload's tables if all were measured alike.

        n is measured first if it is private and nothing has been measured.
        """
        if self._public_rows is None and not self.learned.measurements:
            self._measure((), ROWS_SHARE * self._whole)
        cells = [self._universe.cells(t) for t in self._asked.tables()]
        if not cells:
            return math.inf
        each = _mean_absolute(Amount(self._budget, self._allowance.left / len(cells)).marginal())
        return 0.5 * each * float(np.mean(cells)) / self.learned.rows

    def _measure_everything(self) -> None:
        """Measure all tables of the workload; then add to the model, at no cost, those it can hold, pairs first."""
        learned, universe = self.learned, self._universe
        tables = sorted(self._asked.tables())
        demand = np.array([universe.cells(t) for t in tables], dtype=float) ** (2 / 3)
        self._count(tables)
        for names, part in zip(tables, self._allowance.left * demand / demand.sum(), strict=True):
            self._measure(names, float(part))
        learned.refit(50)
        inside = self._inside()
        # Answers about sets outside the model are corrected just as well, but records follow a strong pair only if it
        # is inside the model.
        self._take([names for names in inside if len(names) == 2], PAIRS_PART * self._largest, PAIRS_AT_ONCE)
        self._take(inside, self._largest, TABLES_AT_ONCE)
        self._final_steps = ALL_STEPS

    def _take(self, waiting: list[Names], limit: float, at_once: int) -> None:
        """Add measured sets to the model while they fit within ``limit`` cells, the most surprising first."""
        learned, universe = self.learned, self._universe
        while True:
            waiting = [c for c in waiting if c not in learned.model.sets]
            gains = []
            for c, believed in zip(waiting, self._beliefs(waiting), strict=True):
                counts, variance = learned.evidence.estimate(c)
                noise = math.sqrt(2 * variance / math.pi) * counts.size
                gains.append(float(np.abs(counts - learned.rows * believed).sum()) - noise)
            chosen: list[Names] = []
            too_large: set[Names] = set()  # they stay too large, because the model only grows
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
        """Choose, measure and fit until the allowance is spent; a round that taught little makes the next dearer."""
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
            limit = self._limit() if len(chosen) == 1 else self._cells_for_choice(self._share)
            self._grow([names for names, _, _ in chosen], limit)
            self.learned.refit(ROUND_STEPS)
            little = 0
            for names, believed, discount in chosen:
                change = self.learned.rows * float(np.abs(self.learned.marginal(names) - believed).sum())
                little += change <= discount
            if 2 * little >= len(chosen):
                cost *= FACTOR
        if self.learned.overview is None:  # nothing more will be measured: give the model its final size
            self._grow(self.learned.outside, self._cells_for_choice())

    def _limit(self) -> float:
        """Return the most cells that the model may have with one more set; it grows with the budget spent.

        After an overview the model may always keep the size it has.
        """
        spent = 1 - self._allowance.left / self._whole
        limit = self._model_cells * self._share * max(spent, 0.1)
        has = 0 if self.learned.overview is None else self.learned.model.tree.cells
        return max(limit, self._prior_cells, has)

    @property
    def _share(self) -> float:
        """The part of the cell limit that applies while tables are chosen: smaller with many attributes.

        The work on each cell is repeated for every attribute.
        """
        return min(1.0, MANY_ATTRIBUTES / len(self._names))

    @property
    def _largest(self) -> float:
        """The most cells of the model once everything is measured."""
        return LARGEST_MODEL_CELLS / MODEL_CELLS * self._model_cells

    def _cells_for_choice(self, share: float = 1.0) -> float:
        """Return the most cells that the model may have when several tables were chosen for it."""
        if len(self._names) <= FEW_ATTRIBUTES:
            return share * self._largest
        messages = MOST_MESSAGES / MODEL_CELLS * self._model_cells
        return min(share * self._largest, messages / sum(self._universe.sizes(self._names)))

    def _grow(self, sets: list[Names], limit: float) -> None:
        """Add sets to the model as far as there is room; the others correct what the model says (``corrections``)."""
        limit = max(limit, self._prior_cells)  # the model may be as large as an earlier block's
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
        """Choose up to ``many`` tables by exponential mechanisms over the candidates that fit the model.

        Every choice after the first is restricted to sets that share at most one attribute with each set chosen
        before. Return each choice with the belief about it and its discount.
        """
        learned = self.learned
        limit = self._limit()
        first = learned.overview is None  # large errors may be left anywhere; after an overview, small ones everywhere
        offered = candidates.offer(learned.model, limit, learned.current() if first else None)
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
        return [(offered.sets[j], offered.model_table(offered.sets[j]), float(taught[j])) for j in chosen]

    def _beliefs(self, sets: list[Names]) -> list[Array]:
        """Return the model's marginals; smaller ones are summed from larger ones where that saves an elimination."""
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
    """Return the noise on a residual's coordinates that the amount buys; without attributes, the noise on n.

    n is a whole number. For a residual, rounding moves each of the r coordinates of two neighbours apart by at most a
    grid step g, so by g√r in all. The last factor is room for the square roots of float64.
    """
    if not contrasts:
        return amount.gaussian(amount.budget.linear())
    grid = GRID if rows is None else max(GRID, finest_grid(rows))
    rounding = grid * math.sqrt(math.prod(each.count for each in contrasts))
    sensitivity = (amount.budget.tensor_l2([each.contribution for each in contrasts]) + rounding) * (1 + 2**-40)
    return amount.gaussian(sensitivity, grid)


def joint_event(
    amount: Amount, contrasts: Mapping[str, Contrasts], sets: Sequence[Names], times: Sequence[int], rows: float | None
) -> Gaussian:
    """Return the noise that the amount buys for the coordinates of all sets together, each multiplied by √times."""
    place = {name: i for i, name in enumerate(contrasts)}
    count = sum(math.prod(contrasts[name].count for name in s) for s in sets)
    grid = GRID if rows is None else max(GRID, finest_grid(rows * math.sqrt(max(times))))
    contributions = [each.contribution for each in contrasts.values()]
    exact = amount.budget.joint_l2(contributions, [[place[name] for name in s] for s in sets], times)
    return amount.gaussian((exact + grid * math.sqrt(count)) * (1 + 2**-40), grid)


def event_of_part(event: Gaussian, k: int) -> Gaussian:
    """Return the noise of coordinates that were multiplied by √k, in rows; its grid is rounded up to a power of two."""
    grid = grid_at_most(event.grid / math.sqrt(k))
    grid *= 1 if grid * math.sqrt(k) == event.grid else 2
    return Gaussian(event.sensitivity / math.sqrt(k), event.sigma / math.sqrt(k), grid)


def finest_grid(rows: float) -> float:
    """Return the finest grid on which float64 and the sampler hold every number of up to ``rows`` rows, with noise."""
    return float(2.0 ** (math.ceil(math.log2(max(rows, 1.0))) + 1 - FLOATS))


def _exact_scores(distances: Sequence[int], discounts: Sequence[float] | Array, weights: Array, rows: float) -> Array:
    """Compute w·(distance − discount) for each candidate without error.

    One row moves a score by at most what it moves the distance. Distances and discounts are clipped at a public bound
    of at least four times the rows (clipping is 1-Lipschitz, and no distance reaches the bound where ``rows`` is n).
    Discounts are rounded to whole rows, and weights down to multiples of 2^-b, with b such that all products fit
    float64.
    """
    span = min(FLOATS, math.ceil(math.log2(max(rows, 1.0))) + 2)
    bits = min(WEIGHT_BITS, FLOATS - span)
    most = 2.0**span
    whole = np.maximum(1.0, np.floor(np.ldexp(weights, bits)))
    off = np.array([min(d, 2**span) for d in distances], float) - np.minimum(np.round(np.asarray(discounts)), most)
    return np.asarray(np.ldexp(whole * off, -bits))


def _mean_absolute(event: Laplace | Gaussian) -> float:
    """Return the mean size of the event's noise."""
    return event.scale if isinstance(event, Laplace) else _mean_size(event.sigma**2)


def _mean_size(variance: float) -> float:
    """Return the mean size of Gaussian noise of this variance."""
    return math.sqrt(2 / math.pi * variance)
