"""Judgements of drawn mutants that no test notices, by the place and the syntax of each.

``equivalent``: no test can notice it. ``harmless``: it changes accuracy, speed or wording, and breaks no promise. ``harmful``: a promise
that a test must state yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Judgement:
    kind: Literal["", "equivalent", "harmless", "harmful"]
    reason: str


WRITTEN = {29: 7, 30: 6}
"""By the seed of a fresh draw, for how many of its survivors tests were written after they had been run."""

JUDGED: dict[tuple[str, str, str, int], Judgement] = {}


def equivalent(where: str, old: str, new: str, reason: str, nth: int = 0) -> None:
    JUDGED[where, old, new, nth] = Judgement("equivalent", reason)


def harmless(where: str, old: str, new: str, reason: str, nth: int = 0) -> None:
    JUDGED[where, old, new, nth] = Judgement("harmless", reason)


def harmful(where: str, old: str, new: str, reason: str, nth: int = 0) -> None:
    JUDGED[where, old, new, nth] = Judgement("harmful", reason)


# Judgements

equivalent(
    "gaussian_mu",
    "scipy.optimize.brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, low, high, xtol=1e-300, rtol=1e-13)",
    "scipy.optimize.brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, low, high, xtol=2e-300, rtol=1e-13)",
    "The relative tolerance of 1e-13 is reached long before an absolute one of 2e-300.",
)  # R3ecbee2
equivalent(
    "noise_scale",
    "privacy_delta(epsilon, smoothness, lipschitz, weight, low, neighbours)",
    "privacy_delta(epsilon, smoothness, lipschitz, low, weight, neighbours)",
    "The loop only brackets a root: a lower end that is lower gives the same root.",
)  # Reba0ffd
equivalent(
    "Amount.approximate",
    "scipy.optimize.brentq(lambda ε: ε * math.tanh(ε / 2) - ρ, 0.0, ρ + 2 * math.sqrt(ρ) + 1, rtol=1e-13)",
    "scipy.optimize.brentq(lambda ε: ε * math.tanh(ε / 2) - ρ, 0.0, ρ + 2 * math.sqrt(ρ) + 1, rtol=2e-13)",
    "The tolerance of a root stays below the share that is kept for rounding.",
)  # R60ba790
equivalent(
    "privacy_delta",
    "zip(largest, smallest, strict=True)",
    "zip(smallest, largest, strict=True)",
    "The two lists are added pairwise, and a sum does not depend on the order of its terms.",
)  # Ra579316
equivalent(
    "Caps.require",
    "spent + more > cap * (1 + FIT)",
    "spent + more >= cap * (1 + FIT)",
    "Sums that equal a cap times 1 + 1e-12 exactly do not occur: a cap that is met exactly is below it.",
)  # Rdd70de0
harmless(
    "Sqlite._take_turn",
    "self._turning.execute('PRAGMA synchronous = OFF')",
    "pass",
    "Speed only: the connection that holds the turn writes nothing.",
)  # Rdc33b0a
equivalent(
    "StoredContent.__init__",
    "upto == 0",
    "upto == 1",
    "The first line of a ledger is its account: no answer and no cap is in it.",
)  # Rd5032d3
harmless(
    "",
    "1 << 20",
    "1 << 21",
    "Speed only: from how many rows on equal rows are counted together.",
)  # R6ee07ee
harmless(
    "DataSource._keep",
    "self._cached_cells > CACHED_CELLS",
    "self._cached_cells >= CACHED_CELLS",
    "Memory only: the edge at which counts are no longer cached.",
)  # Reefadb5
harmless(
    "_keep_rows",
    "universe.size <= FOLDED_AT_ONCE",
    "universe.size < FOLDED_AT_ONCE",
    "Speed only: the edge at which rows are counted together.",
)  # Rf4a81a1
equivalent(
    "_arrow_batches",
    "engine._run_pre_execute_hooks(expression)",
    "pass",
    "The query for no row, which is asked of every such table before, has registered what the hooks register.",
)  # R2e14ffb
equivalent(
    "Coder.cell",
    "bool(value)",
    "value",
    "The cells of truths are looked up in a dictionary, in which numpy's truths equal Python's.",
)  # R34fe29f
harmless(
    "Coder.cells",
    "array.dtype.itemsize <= 8",
    "array.dtype.itemsize < 8",
    "Speed only: numbers of 8 bytes are coded one by one, by the rule that arrays are held to.",
)  # R6c28b1a
harmless(
    "_of_database",
    "refuse_connection(failed)",
    "pass",
    "Wording only: what is read of no connection is refused some lines later, by its kind.",
)  # R41cf2d8
harmless(
    "",
    "1 << 21",
    "2 << 21",
    "Memory only: how many cells of counts are cached.",
)  # Rdebe791
harmless(
    "Dialect._check_unicode_returns",
    "return True",
    "return False",
    "A hook of old versions of SQLAlchemy, which those that are supported do not call.",
)  # R0b68a7f
harmless(
    "Dialect._get_server_version_info",
    "return (1,)",
    "return (2,)",
    "Wording only: the version that the dialect says it has.",
)  # R98009ef
harmless(
    "Convex._buy",
    "self._ledger.budget.cost(event)",
    "self._ledger.budget.cost(event) / 2",
    "Accuracy only: how what is left is split among attempts. Each is billed by its own events.",
)  # Rae15092
harmless(
    "Prefit._measure_everything",
    "learned.refit(50)",
    "learned.refit(51)",
    "Speed only: one step more of a fit to what was released.",
)  # R27374fa
harmless(
    "Convex._teach",
    "self._purchases.table(names, whole)",
    "pass",
    "Accuracy only: nothing is bought there, nothing is billed, and the bar is of what is known.",
)  # Rd20dcbe
harmless(
    "Prefit._measure_workload",
    "self.learned.refit(ROUND_STEPS)",
    "pass",
    "Accuracy only: a fit to what was released that later ones repeat.",
)  # R30fd158
harmless(
    "Prefit._overview",
    "self.learned.grow(*(s for s in self._singles() if s in self.learned.evidence))",
    "pass",
    "Accuracy only: which released tables the model has when it is first fitted.",
)  # R35e881f
harmless(
    "Convex._teach",
    "size > 0",
    "size >= 0",
    "Only where a noisy average of steps equals the point it started from in every bit.",
)  # R3ec5b6a
harmless(
    "take_strongest_pairs",
    "waiting[i], room = (False, room - added[i])",
    "waiting[i], room = (True, room - added[i])",
    "Speed only: a pair that the model has already is looked at again, and is no longer clear.",
)  # R94acc03
harmless(
    "attribute_sets",
    "each /= len(tables)",
    "pass",
    "Accuracy only: the weights by which a workload's tables are chosen.",
)  # Rc29cdcf
harmless(
    "_count_in_groups",
    "cells, taken = (0, 0)",
    "cells, taken = (0, 1)",
    "Memory only: the first set of a scan does not count towards its size.",
)  # R437cf40
harmless(
    "_norm",
    "query.table - query.table.mean()",
    "query.table + query.table.mean()",
    "Accuracy only: how much noise is planned for a bar, which is then that of the noise that was drawn.",
)  # Rf284ee9
harmless(
    "build_practical_engine",
    "beside > 0 and rows is not None and is_drowned(certifying, rows, (1 - OF_BARS) * beta)",
    "beside > 0 or (rows is not None and is_drowned(certifying, rows, (1 - OF_BARS) * beta))",
    "Accuracy only: where a certificate is left out because noise would drown it.",
)  # R87eeab9
harmless(
    "Prefit._measure_workload",
    "math.comb(len(self._names), 2)",
    "math.comb(2, len(self._names))",
    "Speed only: the cells of a clique are counted by the rule for all trees.",
)  # Rd419e9e
harmless(
    "_descent",
    "Schedule(np.array(weights), 0.0, True, Δ)",
    "Schedule(np.array(weights), 0.0, False, Δ)",
    "Speed only: each stage ends with a proof of how near the minimum is, whatever steps led there.",
)  # Re28956d
harmless(
    "_digits",
    "one_thread",
    "__import__('contextlib').nullcontext()",
    "Speed only: threads of linear algebra on a worker; sums of whole numbers do not depend on them.",
)  # R1834dea
harmless(
    "regularized_weight",
    "grid.size - 1",
    "grid.size - 2",
    "Accuracy only: the last cell of a grid of weights, where no optimum is.",
)  # R46558d3
equivalent(
    "into_ball",
    "excess(low) <= 0",
    "excess(low) < 0",
    "Where a norm equals the radius in every bit, the point that is found is the one that was given, but for its last bits.",
)  # R82b0db3
harmless(
    "",
    "2.0 ** counting.NOISE_BITS",
    "4.0 ** counting.NOISE_BITS",
    "Only tables of more than 10^11 rows could be sold such noise.",
)  # Rc30fcf7
equivalent(
    "into_ball",
    "high += 40",
    "pass",
    "The upper end leaves e^-40 of a point of finite size inside any ball, so the loop is never entered.",
)  # Rb74c911
harmless(
    "schedule",
    "3 * most_steps.bit_length()",
    "4 * most_steps.bit_length()",
    "Accuracy only: how many schedules are compared, each with a bound of its own.",
)  # R792b6d4
harmless(
    "Holdout.select_features.right",
    "rows.column(column) > cut",
    "rows.column(column) >= cut",
    "On which side of a cut the cut itself is, in training and in the holdout alike.",
)  # R4636c36
harmless(
    "_best_monitor",
    "10",
    "11",
    "Accuracy only: how many monitors are compared, each with a theorem of its own.",
)  # Rf923f3a
harmless(
    "_draw_table",
    "axes.set_xticks(places, [_literal(label) for label in labels], rotation=30, ha='right')",
    "axes.set_xticks(places, [_literal(label) for label in labels], rotation=31, ha='right')",
    "The angle of labels in a picture.",
)  # R1a3730a
equivalent(
    "Answer.__radd__",
    "_combine('+', other, self)",
    "_combine('+', self, other)",
    "A sum does not depend on the order of its terms.",
)  # R2a97fc5
equivalent(
    "_cost",
    "f'{answer.cost:.3g}' if answer.cost else 'free'",
    "f'{answer.cost:.3g}' if answer.cost / 2 else 'free'",
    "Half of a cost is 0 exactly where the cost is.",
)  # R52f1eb1
equivalent(
    "StoredAnswerLog.at_once",
    "self._turn",
    "__import__('contextlib').nullcontext()",
    "The session that answers several questions together has the turn already, and the lock may be nested.",
)  # Rca8aec4
harmless(
    "Coder._of_texts",
    "self._texts += len(texts)",
    "pass",
    "Speed only: from how many texts on numbers are read by compiled code, which is held to the rule.",
)  # R6e05816
equivalent(
    "",
    "np.array(1.0)",
    "np.array(2.0)",
    "Only the width of n is asked of it, and of a query about no attribute the width does not read the weight.",
)  # Radae420
equivalent(
    "release",
    "is_same_file(out, table)",
    "is_same_file(table, out)",
    "Whether two paths are one file does not depend on which of them comes first.",
)  # Rbfd940e
harmless(
    "Prefit._rounds",
    "self._grow([names for names, _, _ in chosen], limit)",
    "pass",
    "Accuracy only: tables that were measured correct answers and synthetic records also where the model lacks them, and bars are of the evidence.",
)  # R4df98aa
harmless(
    "ValueGroups._describe_sets",
    "self._sets.clear()",
    "pass",
    "Memory only: a cache of descriptions that is full is not emptied.",
)  # R0302417
harmless(
    "Sqlite.make_room",
    "LOG + 20",
    "LOG - 20",
    "Speed only: how much of the disk the log is given in advance.",
)  # R2ae45d4
equivalent(
    "gaussian_mu",
    "gaussian_delta(high, epsilon) < delta",
    "gaussian_delta(high, epsilon) <= delta",
    "The loop only brackets a root: an upper end at which δ is reached exactly is one.",
)  # R39e1f63
harmless(
    "",
    "AT_MOST = 1000",
    "AT_MOST = 1001",
    "Speed only: how many requests wait before they are written together.",
)  # R467b02d
harmless(
    "",
    "SEED = 8128",
    "SEED = 8129",
    "The public seed of a fit to synthetic records.",
)  # R6fb3e8a
harmless(
    "_rows_schema",
    "2 ** 31",
    "2 ** 32",
    "The seeds of records that a caller may name: all of them are seeds.",
)  # Ra827097
harmless(
    "Amount.fine_gaussian",
    "σ * _CONTINUOUS / 2",
    "σ * _CONTINUOUS / 3",
    "Accuracy only: a finer grid is within what the formula allows.",
)  # Rfb64952
harmless(
    "_comparison",
    "found['high'] - found['low']",
    "found['high'] + found['low']",
    "Which of two true intervals is told: that of the difference itself, or that of both bars.",
)  # R50a3256
harmless(
    "MergedBars.rows",
    "max(low, b.estimate)",
    "min(low, b.estimate)",
    "Accuracy only: n is estimated by an end of its interval, which stays what it is.",
)  # R34a1d9f
equivalent(
    "Convex._check",
    "Laplace(sensitivity, 1.0)",
    "Laplace(sensitivity / 2, 1.0)",
    "The width of noise of scale 1 does not depend on the sensitivity that the unit has.",
)  # R3241d1a
equivalent(
    "StoredContent.__init__",
    "Line(0, 0, '', replay.RELEASE, line, '')",
    "Line(1, 0, '', replay.RELEASE, line, '')",
    "The number of this line is not read: only what the line has released is.",
)  # Rfe389c2
equivalent(
    "Noise._comparison",
    "self._require_home()",
    "pass",
    "Both places that call it require the process before.",
)  # Rc86f21b
equivalent(
    "_plain_fields",
    "end - place",
    "end + place",
    "A field of one quote never comes so far: a region has only quotes that begin and end a field of two or more.",
)  # R761165d
equivalent(
    "on_population",
    "beyond < 1",
    "beyond <= 1",
    "A width of 1 and more narrows no interval of [0, 1].",
)  # R72a4dca
equivalent(
    "rake_table",
    "apart < AGREES",
    "apart <= AGREES",
    "Only at a distance of exactly 1e-9.",
)  # Ra60f989
harmless(
    "CountBars._tables_on",
    "2 * (base + doubt_of('tables'))",
    "3 * (base + doubt_of('tables'))",
    "Accuracy only: a cap of a tail is wider, and is a cap of it still.",
)  # Rd06478e
harmless(
    "_shape",
    "array.ndim == 2",
    "array.ndim == 3",
    "Wording only: how the shape of X is told in a refusal.",
)  # R89858c0
harmless(
    "_Regressor.__sklearn_tags__",
    "tags.regressor_tags.poor_score = True",
    "pass",
    "A hint to scikit-learn's own checks of estimators, which need not reach a good score.",
)  # R0b5da1d
harmless(
    "LinearModel._scores",
    "check_is_fitted(self)",
    "pass",
    "Wording only: a model that is not fitted is refused by what it lacks.",
)  # R21b41e3
harmless(
    "Purchases.cell",
    "np.arange(universe[n].size) == 0",
    "np.arange(universe[n].size) == 1",
    "All cells of a table have the same price, and no table has an axis of one value.",
)  # R60dc79a
harmless(
    "Purchases._read_measurement",
    "tuple(entry.about.get('attributes', ()))",
    "entry.about.get('attributes', ())",
    "A ledger gives back tuples as tuples.",
)  # R107a5d8
harmless(
    "Convex._teach",
    "self._purchases.query(linear, Amount(budget, 0.25 * allowance * (1 - 1e-09)).count())",
    "pass",
    "Accuracy only: nothing is bought there, nothing is billed, and the bar is of what is known.",
)  # R950d7a8
harmless(
    "_held_out",
    "ledger.close()",
    "pass",
    "The process ends there, and a ledger is closed with it.",
)  # R00501e6
harmless(
    "predicate",
    "attribute.cover(wanted)",
    "pass",
    "Wording only: the predicate is refused when the count is bound, without the name of the column before it.",
)  # Rbdef09e
harmless(
    "_npy",
    "10 + len(header)",
    "10 - len(header)",
    "Speed only: at which multiple of bytes the data of a member begin. Their place is in the header.",
)  # R2314cb0
harmless(
    "_require_measurement",
    "refuse('A measurement', 'of a table of the universe', names)",
    "refuse('A measurement', names, 'of a table of the universe')",
    "Wording only: which half of a refusal says what was found.",
)  # Rf6840b9
harmless(
    "plan_matrix",
    "tuple(times)",
    "times",
    "The multiples are only read in their order, from a list as from a tuple.",
)  # R3b14c1f
equivalent(
    "onto_simplex",
    "largest > shifts",
    "largest >= shifts",
    "Where a value equals its shift, both divisors give the same threshold.",
)  # Re2b6c18
harmless(
    "",
    "STRIDES = (4, 16)",
    "STRIDES = (5, 16)",
    "Accuracy only: which neighboring values a correction takes together.",
)  # Rebd63cf
harmless(
    "build_theory_engine",
    "configure_linear(budget, cells=data.universe.size, scale=scale, queries=queries, beta=beta / split, alpha=alpha, share=share / split)",
    "configure_linear(budget, cells=data.universe.size, scale=scale, queries=queries, beta=beta / split / 2, alpha=alpha, share=share / split)",
    "Accuracy only: the theorem's rounds are planned for half the failure probability.",
)  # Rce7659b
harmless(
    "sample_size",
    "max(1, math.prod(risk.outputs))",
    "max(2, math.prod(risk.outputs))",
    "Speed only: a sample of a loss with one output has twice as many records.",
)  # R0af2001
harmless(
    "plan_matrix",
    "event.sigma ** 2",
    "event.sigma ** 3",
    "Accuracy only: which of two plans with the same promise is taken.",
)  # Rf47898f
equivalent(
    "Prefit._one_way_marginals",
    "self.planned > 0",
    "self.planned / 2 > 0",
    "Half of a number is above 0 where the number is.",
)  # R7c88fda
harmless(
    "Node",
    "dataclass(frozen=True)",
    "dataclass(frozen=False)",
    "A guard against assignments that the library does not make.",
    nth=1,
)  # R23d4536
harmless(
    "descend_whitened",
    "tick(t + 1)",
    "pass",
    "Only the progress that is shown to the owner.",
)  # R9d1f450
equivalent(
    "on_population",
    "math.expm1(plan.epsilon) if plan.epsilon < 1 else 1.0",
    "math.expm1(plan.epsilon) if plan.epsilon < 1 else 2.0",
    "Both are not below 1, which is all that is asked.",
)  # Rd9299eb
harmless(
    "_is_area",
    "isinstance(metric, str)",
    "True",
    "Wording only: a metric that is neither a text nor a metric is refused some lines later.",
)  # Rb510b38
harmless(
    "on_population",
    "SPARED * half",
    "SPARED / half",
    "A plan states a wider bound than the theorem gives, or the other theorem's.",
    nth=2,
)  # R08e7576
harmless(
    "_require_extras",
    "extra(module)",
    "pass",
    "Wording only: each module of the service names its missing extra by itself.",
)  # R3938289
harmless(
    "_from_schema",
    "from_column(types[name], None, 16)",
    "from_column(types[name], None, 17)",
    "Accuracy only: into how many bins a draft divides numbers by default.",
)  # Rc894834
