"""Mutants of drafts of a universe: a price that is too low, or values of a single row that are named."""

from __future__ import annotations

from mutant import Writer

SELECTION = "drafting/test_selection.py::test_"
DRAFT = "drafting/test_draft.py::test_"
EXACT = "exact/test_exact_drafting.py::test_a_draft_moves_by_its_sensitivity_and_no_more"

drafting = Writer("drafting", "drafting/")
drafting(
    "F01", "selection.py::common_values", "a value that one row has is told",
    "if n >= event.threshold]", "if n >= 1]",
    SELECTION + "only_released_values_are_recorded",
)  # fmt: skip
drafting(
    "F02", "selection.py::common_values", "all values are written into the ledger, those of one row too",
    "why=why, keep=False)", "why=why)",
    SELECTION + "only_released_values_are_recorded",
)  # fmt: skip
drafting(
    "F03", "selection.py::threshold_event", "noise for one count, where a replaced row moves two",
    "amount.gaussian(amount.budget.marginal_l2())", "amount.gaussian(1.0)",
    EXACT,
)  # fmt: skip
drafting(
    "F04", "selection.py::threshold_event", "a threshold whose tail is ten times δ",
    "if middle >= 2 and ThresholdedCounts(noise, middle).delta <= delta:",
    "if middle >= 2 and ThresholdedCounts(noise, middle).delta <= 10 * delta:",
    SELECTION + "the_delta_of_a_threshold_is_at_least_the_exact_tail_and_hardly_more",
)  # fmt: skip
drafting(
    "F05", "numbers.py::quantile_cut", "a quantile is chosen by scores that a row moves by more than is billed",
    "scores = -np.abs(parts * below", "scores = -np.abs(2 * parts * below",
    EXACT,
)  # fmt: skip
drafting(
    "F06", "numbers.py::_end", "the bounds are not the numbers' own",
    "away = upper == (cell > ZERO)", "away = upper",
    DRAFT + "bounds_are_the_powers_of_two_around_the_numbers",
)  # fmt: skip
drafting(
    "F07", "numbers.py::ends", "a count between cuts is of all that is below",
    "noisy = noise.add(np.diff(below(numbers, cuts)), receipt)", "noisy = noise.add(below(numbers, cuts)[1:], receipt)",
    EXACT,
)  # fmt: skip
drafting(
    "F08", "kinds.py::most_common_kind", "missing values have a cell though there are none",
    "return KindEstimate(kind, missing > seen,", "return KindEstimate(kind, missing > -1e9,",
    DRAFT + "missing_values_have_a_cell_where_there_are_many",
)  # fmt: skip
drafting(
    "F09", "draft.py::draft", "rows' values are published as if they were a schema's",
    "found.dictionary(positions[name]) if name in called_public else None", "found.dictionary(positions[name])",
    DRAFT + "a_dictionary_is_private_until_the_owner_says_otherwise",
)  # fmt: skip
drafting(
    "F13", "public.py::between", "a check's upper end is lost: numbers are clamped below it",
    "return Integers(int(low), int(high), missing=missing)", "return Integers(int(low), int(high) - 1, missing=missing)",
    DRAFT + "checks_and_enumerations_of_a_database_are_public",
)  # fmt: skip
drafting(
    "F10", "columns.py::ColumnDrafting.columns", "the draft costs more than was said",
    "part = Amount(self._budget, total * (1 - 1e-9) / len(names))", "part = Amount(self._budget, 1.2 * total / len(names))",
    DRAFT + "the_ledger_has_the_price_and_no_more",
)  # fmt: skip

drafting(
    "F40", "columns.py::ColumnDrafting._numbers", "what the search for common numbers costs is paid a second time",
    "part = part.part(1 - FOR_COMMON)", "pass",
    DRAFT + "a_column_costs_no_more_than_its_part_of_the_price[income]",
)  # fmt: skip

events = Writer("drafting", "privacy/")
events(
    "F11", "events.py::ThresholdedCounts.delta", "the tail begins where the threshold is, not where a row alone must reach it",
    "σ, k = self.noise.sigma, self.threshold - 1", "σ, k = self.noise.sigma, self.threshold",
    SELECTION + "the_delta_of_a_threshold_is_at_least_the_exact_tail_and_hardly_more",
    SELECTION + "no_pair_of_neighbours_has_more_than_the_claim",
)  # fmt: skip
events(
    "F12", "allowance.py::advice", "a delta of one half passes without a word",
    "if budget.delta > most:", "if False:",
    "privacy/test_budget_warnings.py::test_a_budget_that_promises_little_does_not_pass_without_a_word",
)  # fmt: skip

RULES = "data/test_rules.py::test_"
reading = Writer("reading", "data/")
reading(
    "F14", "schema.py::mismatch", "dates are read as numbers, and all are in the first bin",
    'if isinstance(attribute, Integers | Range) and kind in ("date", "time"):', "if False:",
    RULES + "a_declaration_that_a_type_can_never_match_is_refused_from_the_schema",
)  # fmt: skip
reading(
    "F15", "schema.py::mismatch", "a text column is refused though it spells numbers",
    'if kind is None or kind == "text":', "if kind is None:",
    RULES + "a_source_without_types_refuses_nothing",
)  # fmt: skip
reading(
    "F16", "value_counts.py::ValueCounts.count", "a row of a column counts twice, for the price of once",
    "            self.texts[text] += times", "            self.texts[text] += 2 * times",
    DRAFT + "every_path_tallies_alike", "data/test_value_counts.py::test_a_row_counts_once",
)  # fmt: skip
reading(
    "F17", "owner_inspection.py::_judge.judge", "what is clamped is not told",
    'return "clamped" if isinstance(attribute, Integers | Range | Dates)', 'return "clamped" if isinstance(attribute, Integers)',
    RULES + "an_inspection_says_what_would_be_clamped_unmatched_and_missing",
)  # fmt: skip
reading(
    "F18", "coding.py::Coder._by_label.place", "blanks make another category of a value",
    "compared = attribute.spell(text)", "compared = text",
    RULES + "a_value_has_the_cell_that_the_rule_gives_it",
)  # fmt: skip
reading(
    "F19", "coding.py::Coder._of_texts", "what is missing is taken for a number",
    "cells[found == NOTHING] = self._missing", "cells[found == NOTHING] = 0",
    "data/test_small_files.py::test_texts_are_numbers_alike_whether_few_or_many",
)  # fmt: skip
reading(
    "F20", "coding.py::Coder._of_times", "times before 1970 are on the next day, or a date before the range has no bin",
    "cells = np.maximum(np.searchsorted(self._firsts, days, side=\"right\") - 1, 0)",
    "cells = np.searchsorted(self._firsts, days, side=\"left\")",
    RULES + "times_of_every_type_are_on_their_day",
)  # fmt: skip

reading(
    "F24", "readers.py::open_batches", "types that a reader inferred from rows refuse a universe",
    "return replace(found, types=[schema.Column(labels=column.labels) for column in found.types])", "return found",
    "data/test_rules.py::test_a_type_that_came_with_rows_refuses_nothing_until_the_owner_says_so",
)  # fmt: skip
reading(
    "F25", "postgres_table.py::CHECKS", "a check that old rows need not keep to is taken for public",
    "AND contype = 'c' AND convalidated", "AND contype = 'c'",
    "drafting/test_draft.py::test_checks_and_enumerations_of_postgres_are_public",
)  # fmt: skip
reading(
    "F26", "postgres_table.py::CATALOGUE", "labels of another schema's table of the same name are taken",
    "WHERE c.oid = to_regclass(%b) ORDER", "WHERE c.relname = 't' AND %b <> '' ORDER",
    "drafting/test_draft.py::test_checks_and_enumerations_of_postgres_are_public",
)  # fmt: skip

asked = Writer("reading", "")
asked(
    "F22", "universe/dates.py::first_days", "weeks begin on Sundays",
    "monday = low - date_of(low).weekday()", "monday = low - date_of(low).weekday() - 1",
    "universe/test_dates.py::test_bins_begin_where_their_period_does_and_end_with_the_range",
)  # fmt: skip
asked(
    "F23", "universe/files.py::_range", "representatives of bins are lost in the file",
    'record["values"] = values[:bins].tolist()', "pass",
    "universe/test_files.py::test_universes_are_read_as_they_were_written",
)  # fmt: skip

DRAFTING = [*drafting.mutants, *events.mutants, *reading.mutants, *asked.mutants]
