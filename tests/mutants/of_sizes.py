"""Mutants of the checks of sizes: work that is accepted and does not fit, or is refused after a charge."""

from __future__ import annotations

from mutant import Writer

SIZES = "test_sizes.py::test_"
OWNER = SIZES + "the_limit_is_what_the_owner_says"
QUESTION = SIZES + "a_question_above_the_limit_is_refused_for_nothing"
ALIKE = SIZES + "records_and_statements_above_the_limit_are_refused_for_nothing"
FIT = SIZES + "a_fit_is_judged_by_its_public_size_alone"

sizes = Writer("sizes", "")
sizes(
    "SZ01", "_memory.py::require_values", "a value is thought to take a thousandth of what it does",
    "if total * VALUE > limit:", "if total * VALUE > 1000 * limit:",
    OWNER,
)  # fmt: skip
sizes(
    "SZ02", "_memory.py::in_force", "the owner's limit is ignored",
    "return default_limit() if given is None else given", "return default_limit()",
    OWNER,
)  # fmt: skip
sizes(
    "SZ03", "_memory.py::require_fit", "the matrix of a convex question's parameters is forgotten",
    " + dimension**2 * SQUARE", "",
    SIZES + "each_part_of_a_convex_fit_is_judged",
)  # fmt: skip
sizes(
    "SZ04", "_memory.py::require_fit", "the curvature of many classes is thought to be that of one",
    "cells * outputs**2 * FIT + sum(columns) * ARRAY + dimension**2 * SQUARE", "cells * FIT",
    SIZES + "each_part_of_a_convex_fit_is_judged",
)  # fmt: skip
sizes(
    "SZ05", "answering/askable.py::bind_questions", "what is kept of all parts of a question is not judged",
    'require("The tables of all parts of the questions", cells, KEPT,', 'require("The tables of all parts of the questions", 0, KEPT,',
    SIZES + "questions_that_are_many_are_judged_together",
)  # fmt: skip
sizes(
    "SZ06", "query/statistics/groups.py::GroupedQuestion.parts", "groups are bound, and take memory, before they are judged",
    "            if not any(cell):  # all other groups are as large", "            if False:",
    SIZES + "groups_are_judged_before_they_are_all_bound",
)  # fmt: skip
sizes(
    "SZ07", "answering/synthetic.py::synthetic_records", "any number of synthetic records is drawn",
    'require("Synthetic records", rows * len(universe.names), RECORD,', 'require("Synthetic records", 1, RECORD,',
    ALIKE,
)  # fmt: skip
sizes(
    "SZ08", "erm/problem.py::prepare_problem", "a refusal depends on the private number of rows",
    "size = p * _memory.PARAMETER + (n * p * _memory.ENTRY", "size = p * _memory.PARAMETER + (source.count * p * _memory.ENTRY",
    FIT,
)  # fmt: skip
sizes(
    "SZ09", "drafting/draft.py::draft", "a draft of too many bins is charged for cut after cut",
    "if bins > CANDIDATES:", "if False:",
    SIZES + "a_draft_of_more_bins_than_cuts_is_refused_for_nothing",
)  # fmt: skip
sizes(
    "SZ10", "_memory.py::default_limit", "addresses that libraries take are given away",
    "OF_ADDRESSES * max(0, addresses - _reserved_bytes())", "OF_ADDRESSES * addresses",
    SIZES + "a_limit_below_a_limit_on_addresses_leaves_room_for_libraries",
)  # fmt: skip
sizes(
    "SZ11", "opening.py::open", "an opening is judged once it has charged",
    "        require_libraries()\n        require_memory(universe, chosen.workload, chosen.model_cells)\n", "        require_libraries()\n",
    OWNER,
)  # fmt: skip
sizes(
    "SZ12", "engine/practical/measurement.py::contrasts_of.found", "matrices of all sessions stay in memory",
    "sum(each * each for each in tuple(there)) > MOST_ENTRIES", "False",
    SIZES + "matrices_of_wide_attributes_do_not_pile_up",
)  # fmt: skip

DAYS = "test_durations.py::test_"
sizes(
    "SZ13", "opening.py::open", "an opening of days begins, and spends",
    "tell(_show_reading(require_time(universe, chosen.model_cells)))", "pass",
    DAYS + "an_opening_of_days_is_refused_before_the_table_is_read",
)  # fmt: skip
sizes(
    "SZ14", "erm/solver.py::carry_out", "a fit of days is paid for before anybody knows",
    "_require_time(problem, plan)", "pass",
    DAYS + "a_fit_of_days_is_refused[mirror_descent-options0]",
)  # fmt: skip
sizes(
    "SZ15", "erm/solver.py::_require_time", "whether a fit is refused depends on how many entries of private rows are not 0",
    "entries = n * p if isinstance(problem.X, np.ndarray) else n + p", "entries = float(np.count_nonzero(problem.X) if isinstance(problem.X, np.ndarray) else problem.X.nnz)",
    DAYS + "a_sparse_matrix_is_not_judged_by_its_entries", DAYS + "a_fit_of_days_is_refused[mirror_descent-options0]",
)  # fmt: skip
sizes(
    "SZ16", "erm/problem.py::require_steps", "more steps than can be planned end in a MemoryError",
    '_memory.require("The number of steps", steps, _memory.STEP, "Take fewer steps", "steps")', "pass",
    DAYS + "more_steps_than_can_be_planned_are_refused",
)  # fmt: skip
sizes(
    "SZ17", "_duration.py::most_hours", "a day is a day whatever the owner says",
    "if given is None:", "if True:",
    DAYS + "the_limit_is_the_owners_and_a_day_where_nothing_is_said",
)  # fmt: skip
UNIVERSES = "test_sizes.py::test_every_question_on_a_universe_of_any_size_is_answered_or_refused_for_free"
sizes(
    "SZ18", "query/statistics/contingency.py::PairAssociation.on", "an association of a hundred thousand values takes days, and terabytes",
    '"An association", math.prod(bound.shape), sum(bound.shape),', '"An association", 1, 1,', UNIVERSES,
)  # fmt: skip
sizes(
    "SZ19", "query/statistics/groups.py::require_kept", "questions are judged when all of them are in memory",
    "for query in alike:  # one at a time, because all of them bound may be too many already\n        cells += bound(query, universe).kept_cells(universe) * times",
    "for part in [bound(query, universe) for query in alike]:\n        cells += part.kept_cells(universe) * times", UNIVERSES,
)  # fmt: skip
sizes(
    "SZ20", "privacy/events.py::Gaussian.rho", "a bar that nobody can buy ends in an OverflowError",
    "return ratio * ratio / 2", "return ratio**2 / 2",
    "privacy/test_events.py::test_noise_that_is_next_to_none_is_refused_as_no_number",
)  # fmt: skip

sizes(
    "SZ21", "query/linear.py::key_of", "two questions about many values get each other's answers",
    "hashlib.blake2b(packed, digest_size", "hashlib.blake2b(packed[-LONG:], digest_size",
    "test_sizes.py::test_a_question_about_many_values_keeps_a_short_key",
)  # fmt: skip
sizes(
    "SZ22", "_memory.py::require_libraries", "sessions that were closed leave holes, until questions end in a MemoryError",
    "    _map_large_arrays()\n", "",
    "test_sizes.py::test_closed_tables_give_their_addresses_back_where_they_are_limited",
)  # fmt: skip

SIZE_MUTANTS = sizes.mutants
