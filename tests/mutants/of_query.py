"""Harm to what is asked: a bar about another question, or one that does not follow from those of its parts."""

from __future__ import annotations

from mutant import Writer

COVER = "query/test_cover.py::test_"
ASKED = "sessions/test_questions_as_asked.py::test_"
SESSION = "test_session.py::test_"

questions = Writer("questions", "")
statements = Writer("questions", "sql/")
questions(
    "K01", "universe/attributes.py::Range._cover_between", "a bin that is cut counts as wholly meant",
    "inside = (low <= first) & (high >= below)", "inside = (low <= below) & (high >= first)",
    COVER + "a_cell_is_inside_when_all_it_may_hold_is_meant_and_touched_when_anything_is",
)  # fmt: skip
questions(
    "K02", "universe/attributes.py::Range._cover_values", "a value means its bin",
    "inside |= share > 1 - 1e-9", "inside |= share > 0",
    COVER + "the_share_of_whole_numbers_is_how_many_of_a_bin_are_meant",
)  # fmt: skip
questions(
    "K03", "universe/attributes.py::Cover.__invert__", "a negation keeps what is inside",
    "return Cover(~self.touched, ~self.inside, 1.0 - self.share)", "return Cover(~self.inside, ~self.inside, 1.0 - self.share)",
    COVER + "a_negation_swaps_what_is_inside_and_what_is_not_touched",
)  # fmt: skip
questions(
    "K04", "query/composed.py::BoundCount.ends", "the bar of a count that cuts bins is that of its lower end",
    "return known.interval(self.low)[0], known.interval(self.high)[1]", "return known.interval(self.low)",
    ASKED + "all_ranges_of_ages_are_inside_their_bars",
)  # fmt: skip
questions(
    "K05", "query/composed.py::BoundCount.buy", "a count that cuts bins is bought as if it cut none",
    "room = within - open_ / 2", "room = within",
    ASKED + "a_count_that_cuts_bins_is_bought_as_asked",
)  # fmt: skip
questions(
    "K06", "query/composed.py::ComposedQuestion.ask", "what nothing bounds has a bar all the same",
    "known_at_all = bool(np.isfinite(error) and (high - low < most - least or most == least))", "known_at_all = bool(np.isfinite(error))",
    ASKED + "nothing_is_promised_where_nothing_is_known",
)  # fmt: skip
questions(
    "K07", "query/composed.py::total_between", "a sum's lower end takes the bar of one sign the wrong way",
    "low = max(low, most * above[0] + least * below[1])", "low = max(low, most * above[1] + least * below[0])",
    ASKED + "the_bar_of_a_mean_is_that_of_one_sum_over_its_records",
)  # fmt: skip
questions(
    "K08", "query/ratios.py::Quotient.end", "the bar of a mean takes as many records as there may be",
    "slope = slow[0] if outwards else fast[1]", "slope = fast[1]",
    ASKED + "the_bar_of_a_mean_is_that_of_one_sum_over_its_records",
)  # fmt: skip
questions(
    "K09", "query/ratios.py::numbers_among", "a mean is of representatives, whatever the bins hold",
    'ends = declared.bounds if resolution == "values" else (declared.values, declared.values)', "ends = (declared.values, declared.values)",
    ASKED + "a_question_that_cuts_bins_is_answered_as_it_was_asked",
)  # fmt: skip
questions(
    "K10", "query/ratios.py::BoundMean.buy", "what is paid for a mean does not depend on how few records it is of",
    "bar = room / (1 / few + doubt / 2 / many) * (1 - 1e-9)", "bar = room",
    ASKED + "a_mean_is_met_or_refused_unpaid",
)  # fmt: skip
questions(
    "K11", "query/statistics.py::BoundQuantile.ends", "a quantile is surely in the cell where it is believed",
    "lower, upper = min(lower, at), max(upper, at)", "lower = upper = at",
    ASKED + "a_quantile_reaches_as_far_as_the_bars_do",
)  # fmt: skip
questions(
    "K40", "query/statistics.py::BoundQuantile.ends.is_above", "the bar of an interpolated quantile is that of the value of one record",
    "return most <= (NOTHING - self.q) * row", "return most < 0",
    "attacks/test_attacks_sql.py::test_a_continuous_quantile_is_inside_its_bar_however_well_the_table_is_known",
)  # fmt: skip
questions(
    "K41", "query/statistics.py::BoundQuantile.ends.is_within", "an interpolated quantile is in the cell of the record below it",
    "return least >= (1 - self.q - NOTHING) * row", "return least >= 0",
    "attacks/test_attacks_sql.py::test_a_continuous_quantile_is_inside_its_bar_however_well_the_table_is_known",
)  # fmt: skip
statements(
    "K42", "statement.py::_Reader._quantile", "a continuous quantile is answered by the discrete one",
    "of = interpolated_quantile if isinstance(kind, exp.PercentileCont) else quantile", "of = quantile",
    "attacks/test_attacks_sql.py::test_a_continuous_quantile_is_inside_its_bar_however_well_the_table_is_known",
)  # fmt: skip
questions(
    "K12", "query/statistics.py::BoundTop.ask", "the most frequent values are said to be certain",
    "if place < self.k or values[i] + errors[i] >= surely", "if place < self.k",
    ASKED + "the_most_frequent_come_first_and_those_that_may_be_among_them_after",
)  # fmt: skip
questions(
    "K13", "query/counts.py::BoundMarginal.ask", "the axes of a table come in another order than its labels",
    "order = [self.attributes.index(name) for name in self.asked or self.attributes]", "order = list(range(len(self.attributes)))",
    SESSION + "a_marginal_is_an_array_and_a_frame_with_its_axes_as_asked",
)  # fmt: skip
questions(
    "K14", "query/counts.py::Query.__bool__", "`a and b` is b",
    "        raise InvalidInput(\n            \"A question must be combined by &", "        return True\n        raise InvalidInput(\n            \"A question must be combined by &",
    ASKED + "and_or_and_not_are_refused_with_the_way_out",
)  # fmt: skip

QUESTIONS = [*questions.mutants, *statements.mutants]
