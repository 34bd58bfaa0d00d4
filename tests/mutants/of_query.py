"""Mutants of questions: a bar about another question, or a bar that does not follow from those of its parts."""

from __future__ import annotations

from mutant import Writer

COVER = "query/test_cover.py::test_"
ASKED = "sessions/test_questions_as_asked.py::test_"
SESSION = "test_session.py::test_"

questions = Writer("questions", "")
statements = Writer("questions", "sql/")
questions(
    "K01", "universe/attributes/ranges.py::Range._cover_between", "a bin that is cut counts as wholly meant",
    "inside = (low <= first) & (high >= below)", "inside = (low <= below) & (high >= first)",
    COVER + "a_cell_is_inside_when_all_it_may_hold_is_meant_and_touched_when_anything_is",
)  # fmt: skip
questions(
    "K90", "query/statistics/curves.py::BoundSurvival.ends", "the lowest curve takes the fewest events",
    "np.minimum(d[:, 1] / r[:, 0], 1.0)", "np.minimum(d[:, 0] / r[:, 0], 1.0)",
    "query/test_survival.py::test_the_interval_holds_for_every_table_whose_counts_are_within_the_bars",
)  # fmt: skip
questions(
    "K91", "engine/sampling.py::RowSampling._try", "a function that fails on every row is billed and answered with 0",
    "require_usable(asked, self._rows.columns, self._universe)", "pass",
    "query/test_row_trial.py::test_nothing_is_charged_for_a_function_that_is_refused",
)  # fmt: skip
questions(
    "K92", "universe/dates.py::Dates._cover_values", "the label of a month asks for its first day",
    "if value is None or self.has_label(value):", "if value is None:",
    "universe/test_dates.py::test_a_label_asks_for_its_whole_bin_as_the_table_shows_it",
)  # fmt: skip
questions(
    "K02", "universe/attributes/ranges.py::Range._cover_values", "a value means its bin",
    "inside |= share > 1 - 1e-9", "inside |= share > 0",
    COVER + "the_share_of_whole_numbers_is_how_many_of_a_bin_are_meant",
)  # fmt: skip
questions(
    "K03", "universe/attributes/attribute.py::Cover.__invert__", "a negation keeps what is inside",
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
    ASKED + "the_error_of_a_mean_is_reached_or_the_purchase_is_refused_without_a_charge",
)  # fmt: skip
questions(
    "K11", "query/statistics/quantiles.py::BoundQuantile.ends", "a quantile is surely in the cell where it is believed",
    "lower, upper = min(lower, at), max(upper, at)", "lower = upper = at",
    ASKED + "a_quantile_reaches_as_far_as_the_bars_do",
)  # fmt: skip
questions(
    "K40", "query/statistics/quantiles.py::BoundQuantile.ends.is_above", "the bar of an interpolated quantile is that of the value of one record",
    "return most <= (NOTHING - self.q) * row", "return most < 0",
    "attacks/test_attacks_sql.py::test_a_continuous_quantile_is_inside_its_bar_however_well_the_table_is_known",
)  # fmt: skip
questions(
    "K41", "query/statistics/quantiles.py::BoundQuantile.ends.is_within", "an interpolated quantile is in the cell of the record below it",
    "return least >= (1 - self.q - NOTHING) * row", "return least >= 0",
    "attacks/test_attacks_sql.py::test_a_continuous_quantile_is_inside_its_bar_however_well_the_table_is_known",
)  # fmt: skip
statements(
    "K42", "statement.py::_Reader._quantile", "a continuous quantile is answered by the discrete one",
    "of = interpolated_quantile if isinstance(kind, exp.PercentileCont) else quantile", "of = quantile",
    "attacks/test_attacks_sql.py::test_a_continuous_quantile_is_inside_its_bar_however_well_the_table_is_known",
)  # fmt: skip
questions(
    "K12", "query/statistics/frequent.py::BoundTop.ask", "the most frequent values are said to be certain",
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

questions(
    "K43", "query/statistics/curves.py::BoundSurvival.ends", "a survival curve is narrower than it may be: the most that may be at risk count at both ends",
    "most = np.where(r[:, 0] > 0, np.minimum(d[:, 1] / r[:, 0], 1.0), 1.0)", "most = np.where(r[:, 1] > 0, np.minimum(d[:, 1] / r[:, 1], 1.0), 1.0)",
    "attacks/test_attacks_comparisons.py::test_the_true_curve_is_in_the_interval_whatever_is_known_and_believed_of_the_counts",
)  # fmt: skip
questions(
    "K44", "query/statistics/curves.py::BoundSurvival.ends", "the lower end of a survival curve counts those who have an event then",
    "later = np.append(r[1:, 0], 0.0)", "later = r[:, 0]",
    "query/test_survival.py::test_the_curve_is_that_of_kaplan_and_meier",
)  # fmt: skip
questions(
    "K45", "query/statistics/curves.py::BoundSurvival.ends", "the upper end of a survival curve is below what may be",
    "1 - so_far[:, 0] / everyone[1]", "1 - so_far[:, 1] / everyone[1]",
    "query/test_survival.py::test_the_interval_holds_for_every_table_whose_counts_are_within_the_bars",
)  # fmt: skip
questions(
    "K46", "query/statistics/odds.py::BoundQuotient.ends", "the lower end of a ratio takes the least denominator",
    "_over(self.rise(low), self.rise(most), 0.0), _over(self.rise(high), self.rise(least), math.inf)", "_over(self.rise(low), self.rise(least), 0.0), _over(self.rise(high), self.rise(least), math.inf)",
    "query/test_comparisons.py::test_the_truth_is_in_the_interval_and_the_question_is_stored_written_and_repeated",
)  # fmt: skip
questions(
    "K47", "query/statistics/odds.py::BoundOddsRatio.rise", "an odds ratio is a relative risk",
    "math.inf if part >= 1 else part / (1 - part)", "part",
    "query/test_comparisons.py::test_the_truth_is_in_the_interval_and_the_question_is_stored_written_and_repeated",
)  # fmt: skip
questions(
    "K48", "query/statistics/odds.py::_over", "a ratio whose denominator may be nothing has a bar",
    "return math.inf if below == 0 else above / below", "return 0.0 if below == 0 else above / below",
    "attacks/test_attacks_comparisons.py::test_the_truth_is_in_the_interval_whatever_is_known_and_believed_of_the_counts",
)  # fmt: skip
questions(
    "K49", "query/statistics/trends.py::BoundTrend.ends", "the bar of a slope forgets that the means are not known",
    "d = first[0] - (max(corners) - bent[0]), first[1] - (min(corners) - bent[1])", "d = first[0], first[1]",
    "attacks/test_attacks_comparisons.py::test_the_truth_is_in_the_interval_whatever_is_known_and_believed_of_the_counts",
)  # fmt: skip
questions(
    "K50", "query/statistics/trends.py::_over", "the bar of a slope takes the largest spread of the scores that there may be",
    "scale = least if outwards else most", "scale = most",
    "attacks/test_attacks_comparisons.py::test_the_truth_is_in_the_interval_whatever_is_known_and_believed_of_the_counts",
)  # fmt: skip
questions(
    "K51", "query/statistics/contingency.py::BoundAssociation.ends", "an association is proven where the correlation may be 0",
    "0.0 if correlated[0] <= 0 <= correlated[1] else min(correlated[0] ** 2, correlated[1] ** 2)", "min(correlated[0] ** 2, correlated[1] ** 2)",
    "query/test_comparisons.py::test_the_truth_is_in_the_interval_and_the_question_is_stored_written_and_repeated",
)  # fmt: skip
questions(
    "K52", "query/statistics/contingency.py::_square_between", "the greatest association leaves out that cells may be emptier",
    "for x in (p, q) for m in (least, most)", "for x in (q,) for m in (least,)",
    "attacks/test_attacks_comparisons.py::test_the_truth_is_in_the_interval_whatever_is_known_and_believed_of_the_counts",
)  # fmt: skip
questions(
    "K53", "query/statistics/families.py::GroupContrast.on", "a comparison of pairs is labelled by the wrong pair",
    'f"{labels[i]} against {labels[j]}" for i, j in pairs', 'f"{labels[j]} against {labels[i]}" for i, j in pairs',
    "query/test_comparisons.py::test_a_family_has_the_bars_of_its_members_asked_alone",
)  # fmt: skip

QUESTIONS = [*questions.mutants, *statements.mutants]
