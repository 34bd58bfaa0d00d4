"""Mutants of engines: measurements, bars, guard, promises, and published state."""

from __future__ import annotations

from mutant import Writer

SHRINKAGE = "engine/test_shrinkage.py::test_"
PRACTICAL = "engine/test_practical.py::test_"
BARS = "engine/test_bar_widths.py::test_"
CONTRASTS = "engine/test_contrasts.py::test_"
ENGINES = "engine/test_engines.py::test_"
RELEASE = "engine/test_promises.py::test_"
EXACT = "data/test_exact_counts.py::test_"
SESSION = "test_session.py::test_"
AHEAD = "engine/test_stream_batch.py::test_"
SHELF = "test_spill.py::test_"
ANSWER = "test_answer.py::test_"
MINIMIZE = "convex/test_minimize.py::test_"
EXCESS = "convex/test_excess.py::test_"
MEASUREMENTS = "serialize/test_measurement_forms.py::test_"
WIRE = "serialize/test_forms.py::test_"
RECEIPTS = "attacks/test_attacks_receipts.py::test_"
CHOSEN = "attacks/test_attacks_bars.py::test_"
SEEDS = "privacy/test_seeds.py::test_"
WIDTH = "engine/test_width.py::test_"
SMALL = "model/test_small_tables.py::test_"
HYPOTHESIS = "model/test_hypothesis.py::test_"

CERTIFICATE = "engine/test_certificate.py::test_"
ROUNDS = "engine/test_rounds.py::test_"
LAWS = "laws/test_laws_of_bars.py::test_"
EXACTLY = (
    "exact/test_exact_practical.py::test_one_row_moves_what_is_drawn_from_by_its_sensitivity_and_nothing_else_at_all"
)

SAMPLED = "engine/test_sampled_fits.py::test_"
models = Writer("models of many features", "engine/")
models(
    "MF01", "sampled_fit.py::fit_on_sample", "a fit on a sample says that the sample costs nothing",
    "return SampledMinimum(theta, max(float(np.mean(gaps)), 0.0) + spread)", "return SampledMinimum(theta, 0.0)",
    SAMPLED + "a_sampled_fit_is_as_good_as_it_says_and_the_same_every_time",
)  # fmt: skip
models(
    "MF02", "sampled_fit.py::draw_records", "records forget what is known of the target and its features",
    "weights = np.full(columns.shape[1], 1 / columns.shape[1])", "return columns, np.full(columns.shape[1], 1 / columns.shape[1])",
    SAMPLED + "records_follow_the_hypothesis_in_the_tables_of_the_target",
)  # fmt: skip
models(
    "MF03", "practical/convex/replicates.py::_noise", "intervals of coefficients leave out the noise of the measurements",
    "scale = math.sqrt(measurement.variance)", "scale = 1e-9",
    SAMPLED + "bootstrapped_intervals_say_so_and_contain_the_coefficients_of_the_table",
)  # fmt: skip
models(
    "MF05", "coefficient_widths.py::bootstrap_widths", "the interval of a coefficient that no measurement saw is next to nothing",
    "of_feature[risk.features.columns_with(apart)] = np.inf", "pass",
    SAMPLED + "a_coefficient_whose_feature_was_never_measured_with_the_target_has_no_interval",
)  # fmt: skip
models(
    "MF04", "practical/public.py::PracticalAnswers.convex_estimate", "a bootstrapped interval is called guaranteed",
    "basis = BOOTSTRAP", "basis = GUARANTEED",
    SAMPLED + "bootstrapped_intervals_say_so_and_contain_the_coefficients_of_the_table",
)  # fmt: skip

LOSSES = "engine/test_convex_certificate.py::test_"
losses = Writer("certificate of losses", "engine/practical/")
losses(
    "CL01", "convex/loss_certificate.py::_event", "the largest excess risk is drawn for half of what a row does to it",
    "one = allowance.budget.linear()", "one = 0.5 * allowance.budget.linear()",
    EXACTLY + "[declared losses, replace, approximate]",
)  # fmt: skip
losses(
    "CL02", "convex/loss_certificate.py::certified_losses", "the largest excess risk is told without noise",
    "upper = max(0.0, float(noise.add(largest, receipt))) + reach", "noise.add(largest, receipt)\n    upper = largest + reach",
    EXACTLY + "[declared losses, replace, approximate]",
)  # fmt: skip
losses(
    "CL03", "convex/loss_certificate.py::certified_losses", "a bound leaves out how far the noise reaches, and takes as much off",
    "upper = max(0.0, float(noise.add(largest, receipt))) + reach", "upper = max(0.0, float(noise.add(largest, receipt)) - reach)",
    LOSSES + "declared_losses_have_bounds_that_hold_and_would_not_if_the_noise_were_forgotten",
)  # fmt: skip
losses(
    "CL04", "convex/loss_certificate.py::CertifiedLosses.state", "what learning changed is answered with the bound of what was certified",
    "kept = [(place, self.get(question)) for place, question in enumerate(declared)]", "kept = [(0, self.get(question)) for place, question in enumerate(declared)]",
    LOSSES + "a_session_on_a_ledger_that_lasts_has_the_same_bounds_again",
)  # fmt: skip
losses(
    "CL05", "convex/excess_bounds.py::coefficient_bounds", "a coefficient may be twice as far from the best as is said",
    "reach = np.sqrt(2 * error * ((V**2) / (λ * (1 - 1e-9))).sum(axis=1))", "reach = np.sqrt(error / 2 * ((V**2) / (λ * (1 - 1e-9))).sum(axis=1))",
    LOSSES + "coefficients_stay_within_the_stated_distance_from_the_best_and_can_reach_it",
)  # fmt: skip
losses(
    "CL06", "convex/excess_bounds.py::coefficient_bounds", "a direction in which nothing curves is taken for bounded",
    "if not λ[0] > FLATTEST * max(float(λ[-1]), 1e-300):", "λ = np.maximum(λ, 1e-3)\n    if not λ[0] > FLATTEST * max(float(λ[-1]), 1e-300):",
    LOSSES + "without_curvature_no_coefficient_is_bounded",
)  # fmt: skip

certificate = Writer("certificate", "engine/practical/")
certificate(
    "CE01", "certificate/certificate_purchase.py::_plan", "the largest error is drawn for half of what a row does to it",
    "one = amount.budget.linear()", "one = 0.5 * amount.budget.linear()",
    EXACTLY + "[certificate, replace, approximate]",
)  # fmt: skip
certificate(
    "CE02", "certificate/certificate_purchase.py::buy_certificate", "by how much errors exceed what is expected is told without noise",
    "found.margin = float(noise.add(excess[0], receipt)) +", "found.margin = 0 * float(noise.add(0.0, receipt)) + excess[0] +",
    EXACTLY + "[certificate, replace, approximate]",
)  # fmt: skip
certificate(
    "CE03", "certificate/certified_bounds.py::CertifiedCounts.in_steps", "what is certified is not what is answered: the hypothesis is put on other steps",
    "steps = np.clip(np.rint(expected), 0, MOST_SUM // expected.size)", "steps = np.clip(2 * np.rint(expected / 2), 0, MOST_SUM // expected.size) * 2",
    CERTIFICATE + "the_numbers_are_those_of_the_data_when_there_is_no_noise",
)  # fmt: skip
certificate(
    "CE04", "certificate/certificate_purchase.py::buy_certificate", "a certificate leaves out how far its noise reaches",
    "+ quantile(plan.margin, plan.doubts[\"products\"])", "",
    CERTIFICATE + "the_numbers_are_those_of_the_data_when_there_is_no_noise",
)  # fmt: skip
certificate(
    "CE21", "certificate/certified_bounds.py::CertifiedCounts._of_product", "what is expected is half of what is allowed: a question has a bar for less than was certified",
    "return max(0.0, math.ldexp(each.offset, -self.bits) + self.margin)", "return max(0.0, math.ldexp(each.offset, -self.bits - 1) + self.margin)",
    CERTIFICATE + "small_counts_have_narrower_bars_than_large_ones_of_the_same_attributes",
)  # fmt: skip
certificate(
    "CE22", "certificate/certified_bounds.py::CertifiedCounts.reach", "a question has what its cells are allowed without what each question is",
    "reach = np.minimum(reach, _times(pieces, self._of_product(each)) + on_cells)", "reach = np.minimum(reach, _times(pieces, max(0.0, self.margin)) + on_cells)",
    CERTIFICATE + "small_counts_have_narrower_bars_than_large_ones_of_the_same_attributes",
)  # fmt: skip
certificate(
    "CE23", "certificate/certificate_purchase.py::_largest_excesses", "what questions exceed is counted for the flat line alone",
    "for each in found.allowances(names, keep=False):", "for each in found.allowances(names, keep=False)[:1]:",
    CERTIFICATE + "the_numbers_are_those_of_the_data_when_there_is_no_noise",
)  # fmt: skip
certificate(
    "CE24", "certificate/largest_errors.py::error_allowances", "what is expected has no bound, and sums overflow",
    "level = min(math.ldexp(typical * FACTOR[size] * total ** (2 * POWER[size]), bits), MOST)", "level = math.ldexp(typical * FACTOR[size] * total ** (2 * POWER[size]), bits)",
    CERTIFICATE + "expected_errors_grow_with_the_cells_that_matter_and_a_question_has_the_least_of_its_lines",
)  # fmt: skip
certificate(
    "CE25", "certificate/largest_errors.py::largest_error", "what is allowed is taken off twice where the data have too few rows",
    "_largest_sum(-table - allowed, ordered)", "_largest_sum(-table - 2 * allowed, ordered)",
    CERTIFICATE + "the_largest_error_is_that_of_the_worst_question",
)  # fmt: skip
certificate(
    "CE26", "certificate/largest_errors.py::largest_of_means", "means are allowed what they were not when the largest error was found",
    "int(max(sums // (last * farthest.astype(object)) - allowed.astype(object)))", "int(max(sums // (last * farthest.astype(object)) + 0 * allowed.astype(object)))",
    CERTIFICATE + "the_numbers_are_those_of_the_data_when_there_is_no_noise",
)  # fmt: skip
certificate(
    "CE27", "certificate/certificate_purchase.py::_largest_excesses", "no sum that a mean is made of is looked at, and all have a bar",
    "if names in numbers else ():", "if False else ():",
    CERTIFICATE + "the_numbers_are_those_of_the_data_when_there_is_no_noise",
)  # fmt: skip
certificate(
    "CE28", "certificate/certified_bounds.py::CertifiedCounts.of_mean", "a mean at another place has the bar of the certified one",
    "abs(slope) * (float(self._of_sums(names, axis)[k]) + away * of_value)", "abs(slope) * float(self._of_sums(names, axis)[k])",
    CERTIFICATE + "means_within_one_value_have_the_bar_of_what_they_are_made_of",
)  # fmt: skip
certificate(
    "CE29", "certificate/largest_errors.py::largest_of_means", "what means are made of is taken at the start of the number: a row moves it as it does a mean's numerator alone",
    "PLACES * along - last * places.astype(object) * totals", "PLACES * along",
    CERTIFICATE + "a_row_moves_what_means_are_made_of_by_one_and_no_more",
)  # fmt: skip
certificate(
    "CE39", "certificate/certified_bounds.py::CertifiedCounts.restore", "after a restart sets are certified that were left out",
    "family = without(small_sets(known), left_out)", "family = small_sets(known)",
    CERTIFICATE + "a_set_that_the_model_cannot_tabulate_is_left_out_and_stays_out_after_a_restart",
)  # fmt: skip
certificate(
    "CE30", "certificate/certified_bounds.py::CertifiedCounts.sums_of_means", "where a row may be replaced it is taken to move a sum as one that comes",
    "if self._are_scaled and self.rows.low < self.rows.high:", "if self._are_scaled:",
    CERTIFICATE + "means_within_one_value_have_the_bar_of_what_they_are_made_of",
)  # fmt: skip
certificate(
    "CE33", "certificate/certificate_purchase.py::buy_certificate", "the certificate of means leaves out how far its noise reaches",
    "+ quantile(plan.means, plan.doubts[\"means\"])", "",
    CERTIFICATE + "the_numbers_are_those_of_the_data_when_there_is_no_noise",
)  # fmt: skip
certificate(
    "CE34", "certificate/certificate_purchase.py::buy_certificate", "the largest error of a mean is released without noise",
    "float(noise.add(excess[1], receipt)) +", "0 * float(noise.add(0.0, receipt)) + excess[1] +",
    EXACTLY + "[certificate, replace, approximate]",
)  # fmt: skip
certificate(
    "CE35", "certificate/certified_bounds.py::CertifiedCounts.restore", "an older bound of means is read as if each sum had its own scale",
    "made._are_scaled = record[\"typical\"], \"sums\" in record", "made._are_scaled = record[\"typical\"], True",
    CERTIFICATE + "a_certificate_from_before_there_was_a_number_of_means_is_restored_without_it",
)  # fmt: skip
certificate(
    "CE36", "free_answers.py::FreeAnswers._cut_to_mean", "what lies below the rest is divided by the most rows there may be",
    "least / (rows.low if least < 0 else rows.high)", "least / rows.high",
    CERTIFICATE + "a_mean_holds_whatever_the_number_of_rows_is",
)  # fmt: skip
certificate(
    "CE31", "certificate/certified_bounds.py::CertifiedCounts.of_mean", "a value is taken to have one count in all tables of a hypothesis that is corrected",
    "of_value += self._apart(names, axis, k)", "pass",
    CERTIFICATE + "a_mean_has_room_for_tables_that_do_not_agree",
)  # fmt: skip
certificate(
    "CE32", "certificate/certified_bounds.py::CertifiedCounts.of_mean", "what is nearly a line is taken for one, and how nearly is left out",
    "+ off * (self.rows.high + self.rows.estimate)", "",
    CERTIFICATE + "a_mean_has_room_for_tables_that_do_not_agree",
)  # fmt: skip
certificate(
    "CE37", "free_answers.py::FreeAnswers._kept_part", "a question has all the noise of its cells, whatever the fit leaves of it",
    "part, left = float(np.vdot(squares, kept)), float(squares.sum())", "part, left = float(squares.sum()), float(squares.sum())",
    "engine/test_count_bars.py::test_a_question_errs_by_the_noise_that_the_fit_leaves_in_its_cells",
)  # fmt: skip
certificate(
    "CE38", "free_answers.py::FreeAnswers._kept_part", "what was measured by itself is taken for a part of its table",
    "if query.key in self._bought:", "if False:",
    "engine/test_count_bars.py::test_a_question_errs_by_the_noise_that_the_fit_leaves_in_its_cells",
)  # fmt: skip
certificate(
    "CE05", "certificate/certificate_purchase.py::quantile", "the quantile of Gaussian noise is a fifth short",
    "return event.sigma * max(0.0, -NormalDist().inv_cdf(left))", "return 0.8 * event.sigma * max(0.0, -NormalDist().inv_cdf(left))",
    CERTIFICATE + "noise_is_below_its_quantile_as_often_as_stated_and_a_shorter_one_would_fail",
)  # fmt: skip
certificate(
    "CE06", "certificate/certificate_purchase.py::quantile", "the quantile of Laplace noise is a quarter short",
    "return event.scale * max(0.0, -math.log(beta * (1 + math.exp(-event.grid / event.scale))))", "return 0.75 * event.scale * max(0.0, -math.log(beta * (1 + math.exp(-event.grid / event.scale))))",
    CERTIFICATE + "noise_is_below_its_quantile_as_often_as_stated_and_a_shorter_one_would_fail",
)  # fmt: skip
certificate(
    "CE07", "certificate/certified_bounds.py::CertifiedCounts._products", "a count of many intervals has the bar of one",
    "pieces *= _rises(vectors) if self.universe[name].ordered else vectors.max(axis=1)", "pieces *= vectors.max(axis=1)",
    CERTIFICATE + "an_alternating_count_is_as_many_intervals_as_it_has",
)  # fmt: skip
certificate(
    "CE08", "certificate/certified_bounds.py::CertifiedCounts.distance", "what is not in the family has the family's bar",
    "        if names not in self.family:\n            return math.inf\n        return 2 *", "        return 2 *",
    CERTIFICATE + "a_family_too_large_is_cut_to_what_can_be_gone_through",
)  # fmt: skip
certificate(
    "CE09", "certificate/certificate_purchase.py::mean_sensitivity", "under replace-one the mean is drawn for the boxes a row leaves alone",
    "return budget.bounded_sum(math.ldexp(float(most), -WEIGHT_BITS) * (1 + 2.0**-40))", "return math.ldexp(float(most), -WEIGHT_BITS) * (1 + 2.0**-40)",
    CERTIFICATE + "a_row_moves_the_mean_by_its_sensitivity_and_no_more",
)  # fmt: skip
certificate(
    "CE10", "certificate/certificate_purchase.py::rounded_mean", "a mean is rounded down and to a step that is too coarse",
    "return min((total + (1 << unit >> 1)) >> unit, MOST_STEPS) * grid", "return min((total >> unit + 1) << 1, MOST_STEPS) * grid",
    CERTIFICATE + "a_mean_is_rounded_to_the_nearest_step_in_whole_numbers",
)  # fmt: skip
certificate(
    "CE11", "certificate/certificate_purchase.py::FINEST", "where n is private sums of steps can overflow",
    "FINEST, PRIVATE = 20, 10", "FINEST, PRIVATE = 20, 20",
    CERTIFICATE + "steps_are_as_fine_as_whole_numbers_allow",
)  # fmt: skip
certificate(
    "CE12", "certificate/largest_errors.py::_best_intervals", "intervals that begin at the first cell alone are looked at",
    "best = max(best + line[i], 0)", "best = best + line[i]",
    "model/test_small_work.py::test_largest_errors_and_sums_of_errors_are_found_alike",
)  # fmt: skip
certificate(
    "CE13", "certificate/largest_errors.py::largest_error", "errors below are not looked at",
    "return max(_largest_sum(table - allowed, ordered), _largest_sum(-table - allowed, ordered))", "return _largest_sum(table - allowed, ordered)",
    CERTIFICATE + "the_largest_error_is_that_of_the_worst_question",
)  # fmt: skip
certificate(
    "CE14", "certificate/largest_errors.py::boxes_with", "a row is in fewer boxes than it can be",
    "return size * (size + 1) // 2 - 1, (middle + 1) * (size - middle) - 1", "return size * (size + 1) // 2 - 1, size - 1",
    CERTIFICATE + "a_row_moves_the_mean_by_its_sensitivity_and_no_more",
)  # fmt: skip
certificate(
    "CE15", "certificate/largest_errors.py::_sum_over_boxes", "the sum of many large errors overflows",
    "upper += size >> LIMB", "upper += 0",
    "model/test_small_work.py::test_largest_errors_and_sums_of_errors_are_found_alike",
)  # fmt: skip
certificate(
    "CE16", "free_answers.py::FreeAnswers.intervals", "after a refit the certificate is taken to be about the new hypothesis",
    "then = believed if made.hypothesis is self.hypothesis else answer_all(queries, self._certified_table)", "then = believed",
    CERTIFICATE + "after_a_refit_answers_stay_within_what_was_certified",
)  # fmt: skip
certificate(
    "CE17", "engine.py::certify_knowledge", "bars and certificate have the whole β each",
    "buy_certificate(data, noise, known, allowance, (1 - OF_BARS) * beta, OF_BARS * beta, planned)", "buy_certificate(data, noise, known, allowance, beta, OF_BARS * beta, planned)",
    CERTIFICATE + "the_certificate_has_its_own_part_of_beta",
)  # fmt: skip
certificate(
    "CE18", "measure/purchases.py::Purchases.buy", "a part of what was asked for is paid before the rest is refused",
    "        if not self.ledger.affords(*(purchase.event for purchase in plan)):\n", "        if not self.ledger.affords(plan[0].event):\n",
    CERTIFICATE + "bars_that_are_bought_together_are_paid_together_or_not_at_all",
)  # fmt: skip
certificate(
    "CE20", "free_answers.py::_combine", "what was bought is taken whole, however noisy, and what was known is dropped",
    "    share = spread**2 / (spread**2 + deviation**2)\n", "    share = 1.0 + 0.0 * deviation\n",
    CERTIFICATE + "two_estimates_are_weighed_by_their_precision",
)  # fmt: skip

MERGING = "engine/test_value_groups.py::test_"
merging = Writer("merged values", "engine/practical/")
merging(
    "MG01", "fit/value_groups.py::measure_wide", "the counts of wide attributes are told without noise",
    "values = noise.add(data.marginal((name,)), receipt)", "noise.add(data.marginal((name,)), receipt)\n        values = data.marginal((name,))",
    EXACTLY + "[merged values, replace, approximate]",
)  # fmt: skip
merging(
    "MG02", "fit/value_groups.py::measure_wide", "the counts of wide attributes are drawn for half of what a row does to them",
    "event = carved.marginal()", "event = replace(carved.marginal(), sensitivity=0.5 * carved.marginal().sensitivity)",
    EXACTLY + "[merged values, replace, approximate]",
)  # fmt: skip
merging(
    "MG03", "fit/value_groups.py::measure_wide", "values are merged by their true counts, for nothing",
    "(name,), counts, own = measurement.attributes, measurement.values, math.sqrt(measurement.variance)",
    "(name,), counts, own = measurement.attributes, data.marginal(measurement.attributes), math.sqrt(measurement.variance)",
    EXACTLY + "[merged values, replace, approximate]",
)  # fmt: skip
merging(
    "MG04", "bars/merged_bars.py::MergedBars.cell_intervals", "a value has the bars of its whole group from below",
    "least = np.where(alone, least, 0.0)", "least = np.where(alone, least, least)",
    MERGING + "a_value_in_a_group_has_no_bar_from_below_by_its_group",
)  # fmt: skip
merging(
    "MG05", "fit/value_groups.py::ValueGroups._extremes", "a question that divides groups is bounded from below by those that it touches",
    "return np.minimum.reduceat(ordered, starts, axis=axis)", "return np.maximum.reduceat(ordered, starts, axis=axis)",
    MERGING + "a_question_lies_between_those_about_groups_around_it_on_every_table",
)  # fmt: skip
merging(
    "MG16", "fit/value_groups.py::ValueGroups._enclose_count", "a count that divides groups is bounded from below by all groups that it touches",
    "inner.append((name, each.below))", "inner.append((name, each.above))",
    MERGING + "a_question_lies_between_those_about_groups_around_it_on_every_table",
)  # fmt: skip
merging(
    "MG06", "bars/merged_bars.py::MergedBars.__init__", "tables of values and of groups have all of β each",
    "CountBars(merging.universe, beta / 2), CountBars(merging.inner, beta / 2)", "CountBars(merging.universe, beta), CountBars(merging.inner, beta)",
    MERGING + "bars_of_merged_values_have_half_of_beta_each_whatever_was_merged",
)  # fmt: skip
merging(
    "MG07", "fit/corrections.py::CorrectedHypothesis._groups", "what does not fit the model is forgotten by answers",
    "return self._of_groups.marginal(names) if found is None else found", "return self._of_groups.marginal(names)",
    MERGING + "a_dependent_pair_that_does_not_fit_the_model_is_measured_and_corrects_every_answer_about_it",
)  # fmt: skip
merging(
    "MG08", "fit/corrections.py::Corrections.records", "what does not fit the model is forgotten by records",
    "for top in self._tops} | self._strongest()", "for top in self._tops}",
    MERGING + "records_have_the_tables_of_the_model_and_of_what_it_cannot_hold",
)  # fmt: skip
merging(
    "MG10", "measure/prefit.py::PAIRS_PART", "of tables that are all measured a strong pair has no room left in the model",
    "PAIRS_PART = 0.6", "PAIRS_PART = 0.0",
    WIDTH + "among_measured_tables_a_strong_pair_enters_the_model_before_a_stronger_triple",
)  # fmt: skip
merging(
    "MG09", "free_answers.py::FittedModel.corrections", "an old certificate changes with what is learned later",
    "self.evidence.copy(), self.rows, everywhere", "self.evidence, self.rows, everywhere",
    MERGING + "corrections_stay_as_they_were_when_more_is_learned",
)  # fmt: skip

practical = Writer("practical", "engine/practical/")
practical(
    "WI01", "measure/candidates.py::OfferedCandidates.distances", "a row moves the score of a pair by twice what is billed",
    "off = np.abs(counts - whole(rows * self._matrix, counts.size))", "off = 2 * np.abs(counts - whole(rows * self._matrix, counts.size))",
    WIDTH + "scores_are_of_each_candidate_by_itself",
)  # fmt: skip
practical(
    "WI18", "fit/corrections.py::rake_table", "a table is raked to the sums of one question, and those of others are left as they come out",
    "for i, target in enumerate(wanted):", "for i, target in enumerate(wanted[:1]):",
    MERGING + "raking_gives_the_sums_asked_for",
)  # fmt: skip
practical(
    "WI02", "measure/prefit.py::Prefit._choose", "tables chosen together are about the same pair, which is paid for twice",
    "(shared[left] <= 1)", "(shared[left] <= 2)",
    WIDTH + "tables_chosen_together_share_at_most_one_attribute_and_all_is_spent",
)  # fmt: skip
practical(
    "WI03", "measure/candidates.py::Candidates.offer", "the model grows past its limit",
    "kept = np.flatnonzero(sizes <= limit)", "kept = np.flatnonzero(sizes <= 4 * limit)",
    WIDTH + "candidates_keep_the_model_within_its_limit",
)  # fmt: skip
practical(
    "WI04", "measure/candidates.py::EverySmallSet.above", "what is asked of larger sets counts for nothing in the noise of smaller ones",
    "products = 1.0, a, ", "products = 1.0, 0.0 * a, ",
    WIDTH + "all_small_sets_ask_what_they_ask_one_by_one",
)  # fmt: skip
practical(
    "WI05", "measure/pair_selection.py::take_strongest_pairs", "of measured pairs the model takes those that are noise",
    "squares - freedom > CLEAR * np.sqrt(2 * freedom)", "squares - freedom < CLEAR * np.sqrt(2 * freedom)",
    WIDTH + "an_overview_that_no_model_holds_teaches_it_the_strongest_pairs",
)  # fmt: skip
model = Writer("model", "model/")
model(
    "WI06", "small_tables.py::SmallTables._pass_down", "what comes from above a separator is not what is likely given it",
    "return table.onto(shared, (name,)) / self._likely(clique)", "return table.onto(shared, (name,)) * self._likely(clique)",
    SMALL + "tables_of_up_to_three_attributes_are_those_of_an_elimination",
)  # fmt: skip
model(
    "WI10", "small_tables.py::SmallTables._meeting", "the values of an attribute are laid out before all that can be is summed away",
    "coming = min(map(list", "coming = max(map(list",
    SMALL + "a_table_is_summed_in_the_order_that_takes_least",
)  # fmt: skip
model(
    "WI11", "small_tables.py::SmallTables._make", "of tables made together each is that of the first",
    "zip(places, outside, strict=True)", "zip(places, all_outside[0], strict=True)",
    SMALL + "tables_made_together_are_to_the_last_bit_what_they_are_one_by_one",
)  # fmt: skip
model(
    "WI12", "small_tables.py::SmallTables._sum_paths", "tables of one meeting are made with the messages of another way",
    "self._from_above(way, n) if way == meeting.clique else self._from_below(way)[n] for n in names", "self._from_above(way, n) if way == meeting.clique else self._from_below(way)[n] for n in names[::-1]",
    SMALL + "tables_made_together_are_to_the_last_bit_what_they_are_one_by_one",
)  # fmt: skip
model(
    "WI13", "junction_tree.py::JunctionTree.home", "attributes are looked for in a clique that holds only some of them",
    "holding &= self._holding[name]", "holding |= self._holding[name]",
    SMALL + "the_tree_of_many_attributes_is_a_junction_tree_of_all_sets",
    SMALL + "tables_of_up_to_three_attributes_are_those_of_an_elimination",
)  # fmt: skip
model(
    "WI14", "triangulation.py::edge_cells", "of a long way only the last step counts",
    "line[b] = before + m * more", "line[b] = m * more",
    SMALL + "an_edge_is_taken_along_the_way_between_its_ends",
)  # fmt: skip
model(
    "WI15", "memory_layout.py::_offsets", "the values of an attribute are taken for those of the next",
    "offsets = np.add.outer(offsets, stride * np.arange(size)).reshape(-1)", "offsets = np.add.outer(offsets, min(stride, 1) * np.arange(size)).reshape(-1)",
    HYPOTHESIS + "folds_agree_with_numpy",
)  # fmt: skip
model(
    "WI16", "hypothesis.py::Hypothesis._multiply", "a marginal that is asked for after a change is that from before it",
    "self._beliefs, self._waiting = None, []\n        elif", "self._waiting = []\n        elif",
    HYPOTHESIS + "changes_and_marginals_in_any_order_agree_with_brute_force",
)  # fmt: skip
model(
    "WI17", "mixture.py::Mixture._compute", "every block counts alike, however many rows it has",
    "tables = [share * part.marginal(names) for", "tables = [part.marginal(names) / len(self._parts) for",
    "sessions/test_blocks.py::test_records_and_the_hypothesis_are_a_mixture_by_rows",
)  # fmt: skip
model(
    "WI07", "triangulation.py::eliminate", "a tree is said to be larger than it is",
    "if degree[u] == degree[v] + 1:", "if degree[u] == degree[v] + 2:",
    SMALL + "the_size_of_a_tree_with_one_set_more_is_that_of_the_tree_itself",
)  # fmt: skip
model(
    "WI08", "hypothesis.py::PairTables.pair_matrix", "attributes below two children of a clique are taken for independent",
    "self._put(found, places, theirs, meeting.T @ there)", "assert meeting.shape[0] == there.shape[0], theirs",
    SMALL + "the_matrix_of_all_pairs_has_the_table_of_each",
)  # fmt: skip
model(
    "WI09", "log_linear.py::FlatSums.__init__", "a fit sees every table as if it were the first",
    "first += stride", "first += 0 * stride",
    SMALL + "a_fit_in_two_loops_sees_what_a_fit_table_by_table_sees",
)  # fmt: skip
SMALL_WORK = "model/test_small_work.py::test_"
model(
    "SW01", "junction_tree.py::JunctionTree._calibrate_by_arrays", "a small tree forgets what a clique's neighbours know",
    "cliques[parent][...] += self._along(message, i, parent)", "assert self._along(message, i, parent).size",
    SMALL_WORK + "a_small_tree_is_calibrated_as_a_large_one",
)  # fmt: skip
model(
    "SW02", "log_linear.py::FlatSums.means", "a small fit sees the sums of its last table only",
    "found += np.bincount(places, beliefs[start:end], minlength=found.size)",
    "found[:] = np.bincount(places, beliefs[start:end], minlength=found.size)",
    SMALL_WORK + "tables_are_added_to_cliques_and_summed_from_them_alike",
)  # fmt: skip
model(
    "SW03", "triangulation.py::eliminate_few", "small graphs lose the edges that an elimination adds, and answers leave out associations",
    "near[u] = (near[u] | near[v]) & ~(1 << u | 1 << v)", "near[u] = near[u] & ~(1 << u | 1 << v)",
    SMALL_WORK + "small_graphs_are_triangulated_as_large_ones",
)  # fmt: skip
model(
    "SW04", "log_linear.py::compile_all", "what is compiled while a table is read is not what its model needs",
    "tree.calibrate(tree.zeros())", "tree.zeros()",
    "test_compiled.py::test_functions_compiled_while_a_table_is_read_are_those_that_its_model_needs",
)  # fmt: skip
practical(
    "SW05", "certificate/largest_errors.py::_intervals", "the whole of an attribute counts as one more question of a small table",
    "if m == 1 or not but_all else ends - starts + 1 < m", "if m >= 1 or not but_all else ends - starts + 1 < m",
    SMALL_WORK + "largest_errors_and_sums_of_errors_are_found_alike",
)  # fmt: skip
practical(
    "R01", "measure/prefit.py::Prefit._choose", "marginals are chosen for half of what a row does to their scores",
    "part.choice(self._budget.marginal_distance())", "part.choice(0.5 * self._budget.marginal_distance())",
    "exact/test_exact_practical.py::test_one_row_moves_what_is_drawn_from_by_its_sensitivity_and_nothing_else_at_all[prefit, replace, approximate]",
)  # fmt: skip
practical(
    "R02", "measure/prefit.py::residual_event", "residuals have half their noise at the same price",
    "sensitivity = (amount.budget.tensor_l2(", "sensitivity = (0.5 * amount.budget.tensor_l2(",
    RELEASE + "the_noise_of_a_residual_pays_for_its_rounding",
)  # fmt: skip
practical(
    "JS05", "measure/prefit.py::joint_event", "the residuals of an overview have half their noise at the same price",
    "return amount.gaussian((exact + grid", "return amount.gaussian((0.5 * exact + grid",
    EXACT + "no_row_moves_a_practical_session_by_more_than_is_billed",
)  # fmt: skip
practical(
    "JS06", "measure/prefit.py::Prefit._joint_residuals", "a prefit learns from bare residuals of an overview",
    "drawn = np.asarray(self._noise.add(np.concatenate([each.ravel() for each in exact]), receipt), dtype=float)",
    "drawn = np.concatenate([each.ravel() for each in exact])",
    RELEASE + "a_session_resumed_on_another_table_gives_the_same_answers",
)  # fmt: skip
practical(
    "JS07", "measure/prefit.py::event_of_part", "a residual of an overview claims the noise of its multiplied coordinates",
    "event.sigma / math.sqrt(k), grid)", "event.sigma / k, grid)",
    "engine/test_pairs.py::test_the_noise_of_every_residual_is_what_its_measurement_says",
)  # fmt: skip
practical(
    "JS08", "measure/prefit.py::Prefit._multiples", "tables with flags are measured as other tables are",
    "k * (1 + FEW_OF_PARTS / m**2)", "k * (1 + 0.0 / m**2)",
    "engine/test_pairs.py::test_the_precision_of_a_pair_follows_its_cells_and_the_fewer_of_its_values",
)  # fmt: skip
practical(
    "JS13", "fit/interactions.py::CommonFactors.fit", "noise is taken for what all pairs have in common",
    "edge = 4 * max(", "edge = 0 * max(",
    "engine/test_pairs.py::test_common_directions_of_all_pairs_are_found_and_noise_has_hardly_any",
)  # fmt: skip
practical(
    "JS14", "fit/interactions.py::_mixture", "an empty cell is believed to have rows",
    "np.square(d + there) / own", "np.square(d - there) / own",
    "engine/test_pairs.py::test_an_empty_cell_is_found_empty_where_most_cells_are_as_believed",
)  # fmt: skip
practical(
    "JS15", "engine.py::_began_with_singles", "an opening that began in one way goes on in another",
    "        return True", "        return False",
    "engine/test_pairs.py::test_an_opening_that_began_with_single_attributes_goes_on_with_them",
)  # fmt: skip
practical(
    "JS16", "engine.py::_recorded_times", "an interrupted overview goes on by another plan than its first draw",
    'entry.why == "prefit: residuals"', 'entry.why == "prefit: none"',
    "engine/test_pairs.py::test_an_interrupted_opening_keeps_the_noise_that_its_overview_was_planned_with",
)  # fmt: skip
practical(
    "JS17", "measure/prefit.py::Prefit._multiples", "pairs with a flag have no part of the budget of their own",
    "more * k if flag else k", "k",
    "engine/test_pairs.py::test_pairs_with_a_flag_have_their_share_of_the_budget_of_pairs",
)  # fmt: skip
practical(
    "JS12", "measure/prefit.py::Prefit._one_way_marginals", "what measured n is spent again, and the last tables find nothing left",
    "share = ONE_WAY_SHARE - (1 - self._allowance.left / self._whole)", "share = ONE_WAY_SHARE",
    "privacy/test_planned.py::test_a_prefit_without_an_overview_plans_all_but_its_choices",
)  # fmt: skip
practical(
    "JS10", "measure/prefit.py::Prefit._overview", "counts of a very large table are cut off where n is private",
    "self._grid_rows, share = float(found[0].values), ", "self._grid_rows, share = None, ",
    "privacy/test_planned.py::test_a_very_large_table_is_answered_as_it_is",
)  # fmt: skip
practical(
    "JS11", "measure/prefit.py::Prefit._share_of_rows", "a private n has next to nothing of an overview",
    "return max(ROWS_SHARE, demand[0] / math.fsum(demand))", "return ROWS_SHARE",
    "test_session.py::test_bars_hold_as_fractions_and_in_rows_whatever_is_known_of_n",
)  # fmt: skip
practical(
    "R03", "measure/prefit.py::Prefit._rounds", "how the budget is spread follows the exact counts, for nothing",
    "change = self.learned.rows * float(np.abs(self.learned.marginal(names) - believed).sum())",
    "change = float(np.abs(self._data.marginal(names) - self.learned.rows * believed).sum())",
    RELEASE + "a_prefit_goes_the_same_way_on_any_table_once_its_releases_are_there",
)  # fmt: skip
practical(
    "R04", "measure/prefit.py::Prefit._measure", "a prefit learns from bare marginals",
    "values = self._noise.add(self._data.marginal(names), receipt)", "values = self._data.marginal(names)",
    RELEASE + "a_session_resumed_on_another_table_gives_the_same_answers",
)  # fmt: skip
practical(
    "R05", "measure/prefit.py::Prefit._residual", "a prefit learns from bare residuals",
    "drawn = np.asarray(self._noise.add(coordinates(counts, event.grid, by), receipt), dtype=float)",
    "drawn = np.asarray(coordinates(counts, event.grid, by), dtype=float)",
    RELEASE + "a_session_resumed_on_another_table_gives_the_same_answers",
)  # fmt: skip
practical(
    "CO01", "measurement.py::Contrasts.contribution", "what a row adds to contrasts of ranges is taken for what it adds to Helmert's",
    "        if self.is_orthonormal:\n            return Contribution", "        if True:\n            return Contribution",
    CONTRASTS + "no_rows_are_further_apart_than_the_sensitivity_of_a_ranged_residual",
)  # fmt: skip
practical(
    "CO02", "measurement.py::Contrasts.contribution", "two rows are taken to be as near as the nearest",
    "float(inner[1:].min()), float(inner[1:].max())", "float(inner[1:].max()), float(inner[1:].max())",
    CONTRASTS + "no_rows_are_further_apart_than_the_sensitivity_of_a_ranged_residual",
)  # fmt: skip
practical(
    "CO03", "measurement.py::of_ranges", "contrasts of ranges measure something of smaller tables over again",
    "    around[0] -= around.sum()\n", "",
    CONTRASTS + "contrasts_say_all_of_the_residual_and_nothing_else",
)  # fmt: skip
practical(
    "CO04", "measurement.py::of_ranges", "noise is shaped for the squares of what is asked",
    "eigenvalues = np.sqrt(w) * (m - 1) / np.sqrt(w).sum()", "eigenvalues = w * (m - 1) / w.sum()",
    CONTRASTS + "no_other_noise_of_a_circle_is_better_for_what_is_asked",
)  # fmt: skip
practical(
    "CO05", "fit/residuals.py::_contrast_sums", "ranged residuals are counted in numbers that overflow",
    "if MOST_ROWS * entries < 2**62:", "if entries < 2**62:",
    CONTRASTS + "ranged_coordinates_are_exact_and_make_the_residual_again",
)  # fmt: skip
practical(
    "CO06", "fit/residuals.py::Overview.deviations", "the deviation of a range is that of orthonormal contrasts",
    "if name in self._ranged:\n                    moved = queries", "if False:\n                    moved = queries",
    CONTRASTS + "an_overview_by_ranges_knows_the_deviation_of_every_query",
)  # fmt: skip
practical(
    "CO07", "measure/prefit.py::residual_event", "the rounding of ranged residuals is billed for fewer coordinates than there are",
    "math.prod(each.count for each in contrasts)", "math.prod(each.size - 2 for each in contrasts)",
    "engine/test_promises.py::test_the_noise_of_a_residual_pays_for_its_rounding",
)  # fmt: skip
practical(
    "CO09", "fit/residuals.py::_contrast_sums", "of large sums the lower half is lost",
    "high, low = (high << bits) + (total >> HALF), total & LOW", "high, low = (high << bits) + (total >> HALF), 0 * total",
    CONTRASTS + "ranged_coordinates_are_exact_and_make_the_residual_again",
)  # fmt: skip
practical(
    "CO10", "engine.py::prefit", "what is asked is said of values that were merged",
    "workload.on(merging.inner)", "workload",
    CONTRASTS + "an_attribute_merged_to_one_group_is_left_out",
)  # fmt: skip
practical(
    "RO01", "measure/prefit.py::Prefit._is_residual", "what the overview knows of a table is paid for again",
    "return self.learned.overview is not None and self.learned.evidence.lacks_residual(names)", "return False",
    ROUNDS + "only_the_residual_of_three_attributes_is_measured",
)  # fmt: skip
practical(
    "RO02", "measure/prefit.py::Prefit._measure_workload", "the first tables are chosen as if nothing had been measured",
    "                self.learned.refit(ROUND_STEPS)\n                self._rounds(", "                self._rounds(",
    ROUNDS + "the_first_choice_knows_what_the_overview_says",
)  # fmt: skip
practical(
    "RO03", "measure/prefit.py::Prefit._limit", "a model that has all cells is offered one set alone, whatever it may teach",
    "return max(limit, self._prior_cells, has)", "return max(limit, self._prior_cells)",
    ROUNDS + "a_model_that_has_all_cells_may_have_any_set",
)  # fmt: skip
practical(
    "RO04", "fit/residuals.py::Evidence.lacks_residual", "a table is taken for measured but for its residual though a smaller one is not",
    "all(s in self._precisions for s in subsets(names)[:-1])", "any(s in self._precisions for s in subsets(names)[:-1])",
    ROUNDS + "a_residual_counts_the_noise_of_smaller_tables_against_it_but_what_it_teaches_is_its_own",
)  # fmt: skip
practical(
    "RO05", "measure/prefit.py::Prefit._residual_variance", "a residual is expected to have the noise of a whole table",
    "return σ**2 * math.prod(each.loss * (1 - 1 / each.size) for each in by)", "return σ**2",
    ROUNDS + "the_variance_that_is_expected_of_a_residual_is_what_it_has",
)  # fmt: skip
practical(
    "RO06", "free_answers.py::FittedModel.restore", "bars of a session taken up rest on noise that was chosen by what came out",
    "Overview(inner, residuals[:count], rows)", "Overview(inner, residuals, rows)",
    ROUNDS + "bars_are_those_of_the_overview_and_a_resumed_session_has_them",
)  # fmt: skip
practical(
    "RO07", "measure/prefit.py::Prefit._expect_questions", "attributes of many values are asked about as often as flags",
    "-FEW_VALUES)", "-0.0)",
    ROUNDS + "attributes_of_few_values_have_less_noise_where_nobody_says_what_is_asked",
)  # fmt: skip
practical(
    "RO08", "certificate/certificate_purchase.py::_charge_plan", "the certificate's noise is not planned, and has no room beside what is",
    "allowance.charge_planned(*gaussian, share=planned, finest=step, why=WHY)", "allowance.charge_planned(*gaussian, share=0.0, finest=step, why=WHY)",
    ROUNDS + "a_certificate_is_paid_from_what_was_planned",
)  # fmt: skip
practical(
    "RO09", "certificate/certificate_purchase.py::_charge_plan", "how far a certificate's noise reaches is said of less noise than was drawn",
    "    margin = drawn.pop(0)\n", "    drawn = [replace(e, sigma=0.9 * e.sigma) for e in drawn]\n    margin = drawn.pop(0)\n",
    CERTIFICATE + "the_numbers_are_those_of_the_data_when_there_is_no_noise",
)  # fmt: skip
practical(
    "RO10", "engine.py::build_practical_engine", "the certificate's part is not planned for: it takes what the prefit's choices need",
    "beside = certifying.left  #", "beside = 0.0  #",
    ROUNDS + "a_certificate_is_paid_from_what_was_planned",
)  # fmt: skip
practical(
    "R06", "measure/candidates.py::whole", "scores carry rounding that depends on the data",
    "np.clip(np.round(expected), 0, most).astype(np.int64)", "np.clip(expected, 0, most)",
    EXACT + "scores_are_exact_whatever_n_was_guessed",
)  # fmt: skip
practical(
    "R07", "measure/prefit.py::residual_event", "what rounding adds to the sensitivity of a residual is not paid for",
    "rounding = grid * math.sqrt(math.prod(each.count for each in contrasts))", "rounding = 0.0",
    RELEASE + "the_noise_of_a_residual_pays_for_its_rounding",
)  # fmt: skip
practical(
    "R08", "measure/purchases.py::_event", "within= buys a whole table at a single count's sensitivity",
    "distance = budget.linear() if alone else budget.marginal_l2()", "distance = budget.linear()",
    RELEASE + "a_table_is_bought_with_the_noise_of_a_table",
)  # fmt: skip
practical(
    "R09", "measure/purchases.py::_event", "within= buys a whole table at a single count's sensitivity, where δ = 0",
    "return Laplace(budget.linear() if alone else budget.marginal_l1(), scale)", "return Laplace(budget.linear(), scale)",
    RELEASE + "a_table_is_bought_with_the_noise_of_a_table",
)  # fmt: skip
practical(
    "R10", "measure/purchases.py::Purchases.table", "within= releases bare tables",
    "drawn = self._noise.add(self._data.marginal(names), receipt)", "drawn = self._data.marginal(names)",
    RELEASE + "a_session_resumed_on_another_table_gives_the_same_answers",
)  # fmt: skip
practical(
    "R11", "measure/purchases.py::Purchases.query", "within= releases bare counts",
    "value = self._noise.add(exact.exact_count(counted, self._data.marginal(counted.attributes), step), receipt)",
    "value = exact.exact_count(counted, self._data.marginal(counted.attributes), step)",
    RELEASE + "a_session_resumed_on_another_table_gives_the_same_answers",
)  # fmt: skip
practical(
    "R12", "measure/purchases.py::Purchases.table", "a question too large to count is charged before it is refused",
    '        require_table(names, self._data.universe.sizes(names))  # before the charge\n', "",
    RELEASE + "a_table_too_large_to_count_is_refused_before_it_is_charged",
)  # fmt: skip
practical(
    "R13", "engine.py::PracticalEngine._gap", "the guard's value moves by two rows where one changes",
    "return abs(exact.exact_count(", "return 2 * abs(exact.exact_count(",
    RELEASE + "the_guards_value_is_the_gap_in_rows",
)  # fmt: skip
practical(
    "R14", "engine.py::certify_knowledge", "n is shown though it is private",
    'public = data.rows if allowance.budget.neighbours == "replace" else None', "public = data.rows",
    SESSION + "n_is_only_estimated_under_add_remove",
)  # fmt: skip
practical(
    "R15", "engine.py::build_practical_engine", "the prefit is told n though it is private",
    'rows = float(data.rows) if budget.neighbours == "replace" else None', "rows = float(data.rows)",
    SESSION + "n_is_only_estimated_under_add_remove",
)  # fmt: skip
practical(
    "R16", "engine.py::build_practical_engine", "the prefit spends what the guard needs",
    "share = 1 - reserve - 2 * kept", "share = 1 - reserve",
    RELEASE + "reserves_of_the_guard_and_of_the_owner_are_left_after_the_opening",
)  # fmt: skip
practical(
    "R33", "engine.py::build_practical_engine", "what is kept for purchases follows from n though it is private",
    "reserve = typical_reserve(budget, rows)", "reserve = typical_reserve(budget, float(data.rows))",
    "engine/test_reserve.py::test_it_is_between_one_and_five_per_cent",
)  # fmt: skip
practical(
    "R17", "engine.py::PracticalEngine.resume", "a session taken up forgets what it bought",
    "        self._purchases.resume(entries)\n", "",
    ENGINES + "a_session_rebuilt_from_its_entries_gives_the_same_answers_to_the_last_bit",
)  # fmt: skip
practical(
    "R18", "engine.py::PracticalEngine.resume", "a session taken up has all its guard's rounds again",
    "            self._watch.resume(entries)\n", "            pass\n",
    RELEASE + "an_exhausted_guard_is_off_and_a_resumed_one_has_its_remaining_rounds",
)  # fmt: skip
practical(
    "R19", "free_answers.py::FreeAnswers.learn", "what was measured does not narrow the bar it was bought for",
    "        self.bars.add(measurement)\n        self.learned.add_values(measurement)", "        self.learned.add_values(measurement)",
    SESSION + "within_of_a_weighted_question_is_paid_once_and_reached",
)  # fmt: skip
practical(
    "R20", "guard.py::plan_guard", "the guard fires at errors far below what it promises, and spends the budget",
    "sparse_vector.SparseVector(2 * width, round_, GUARD_ROUNDS)", "sparse_vector.SparseVector(0.5 * width, round_, GUARD_ROUNDS)",
    BARS + "the_promise_of_a_guard_is_its_threshold_plus_its_width",
)  # fmt: skip
practical(
    "R21", "guard.py::plan_guard", "the guard promises a third of what it can see",
    "GUARD_ROUNDS), 3 * width / rows, wanted)", "GUARD_ROUNDS), width / rows, wanted)",
    BARS + "the_promise_of_a_guard_is_its_threshold_plus_its_width",
)  # fmt: skip
practical(
    "R22", "guard.py::plan_guard", "the guard's rounds cost eight times its share",
    "round_epsilon(GUARD_ROUNDS)", "round_epsilon(1)",
    BARS + "all_rounds_of_a_guard_cost_its_share",
)  # fmt: skip
practical(
    "R23", "guard.py::GuardWatch.is_on", "a guard that is used up is asked again",
    "if self._progress.tops >= self.guard.config.rounds:", "if False:",
    RELEASE + "an_exhausted_guard_is_off_and_a_resumed_one_has_its_remaining_rounds",
)  # fmt: skip
practical(
    "R24", "measurement.py::Measurement.variance", "Laplace noise counts for half its variance",
    "return 2 * self.event.scale**2", "return self.event.scale**2",
    BARS + "the_variance_of_a_measurement_is_that_of_its_noise",
)  # fmt: skip
practical(
    "R25", "fit/residuals.py::coordinates", "residuals near half a step are rounded by float64's luck",
    "        steps[cell] = _round_residual((int(high[cell]) << HALF) + int(low[cell]), int(P[cell]), grid, times)\n", "        pass\n",
    EXACT + "a_residuals_coordinates_are_the_exact_ones_to_the_nearest_step",
)  # fmt: skip
practical(
    "R26", "fit/residuals.py::Evidence._variance", "estimates claim less variance than they have",
    "/ (self._precisions[s] * spread**2)", "/ (self._precisions[s] * spread**3)",
    PRACTICAL + "the_stated_variance_is_the_variance",
)  # fmt: skip
practical(
    "R27", "convex/convex_answers.py::Convex._check", "a measured err has half its noise",
    "return excess, kind(excess.sensitivity(grid), scale, grid)", "return excess, kind(excess.sensitivity(grid) / 2, scale, grid)",
    RELEASE + "a_convex_question_draws_what_it_is_charged_for_at_the_price_of_a_row",
)  # fmt: skip
practical(
    "R28", "convex/convex_answers.py::Convex._measure_excess", "a measured err has no noise",
    "noisy = float(self._noise.add(excess.value(self._data.marginal(query.attributes), event.grid), receipt))",
    "noisy = float(excess.value(self._data.marginal(query.attributes), event.grid))",
    RELEASE + "a_convex_question_draws_what_it_is_charged_for_at_the_price_of_a_row",
)  # fmt: skip
practical(
    "R29", "convex/convex_answers.py::Convex._oracle", "a session's oracle has no noise",
    "noisy = np.asarray(self._noise.add(sums.at(theta, counts), receipt))", "noisy = np.asarray(sums.at(theta, counts))",
    RELEASE + "a_convex_question_draws_what_it_is_charged_for_at_the_price_of_a_row",
)  # fmt: skip
practical(
    "R30", "convex/convex_answers.py::Convex._excess", "a user's functions see what was found on the data",
    "if query.scale is None or not query.risk.is_listable or not query.is_trusted(self._trusted):", "if query.scale is None or not query.risk.is_listable:",
    EXCESS + "a_users_functions_never_see_what_was_found_on_the_data",
)  # fmt: skip
practical(
    "R31", "convex/convex_answers.py::Convex._oracle", "the steps of a session's oracle are for a ℓ2 sensitivity where ℓ1 is billed",
    "l1, l2 = math.sqrt(p) * l2 + p * grid, l2 + math.sqrt(p) * grid", "l1, l2 = l2, l2",
    RELEASE + "a_convex_question_draws_what_it_is_charged_for_at_the_price_of_a_row",
)  # fmt: skip

practical(
    "AH1", "guard.py::Precomputed.free", "questions asked together are answered by what was known before the guard taught something",
    "if self._knowledge.hypothesis is not self._of:", "if self._of is None:",
    AHEAD + "releases_learned_meanwhile_are_in_the_following_answers",
)  # fmt: skip
practical(
    "AH2", "guard.py::gaps", "a guard compares a question asked together with others by half of its gap",
    "abs(c - exact.nearest(b, step))", "0.5 * abs(c - exact.nearest(b, step))",
    AHEAD + "gaps_are_those_of_counts_one_by_one_and_weights_are_rounded_to_the_grid",
)  # fmt: skip
practical(
    "AH3", "guard.py::gaps", "counts of questions asked together are compared with what is believed of others",
    "[gridded[i] for i in members]", "[gridded[i] for i in sorted(members)]",
    AHEAD + "gaps_are_those_of_counts_one_by_one_and_weights_are_rounded_to_the_grid",
)  # fmt: skip

fit = Writer("practical", "model/")
fit(
    "R32", "log_linear.py::minimize.objective", "the fit does not descend on what it minimises",
    "parts.sums(rows * means - y) + a * x, parts.sums(means)", "parts.sums(rows * means - y), parts.sums(means)",
    PRACTICAL + "the_gradient_of_the_fit_is_that_of_its_objective",
    PRACTICAL + "a_fit_is_the_optimum_that_a_plain_optimiser_finds",
)  # fmt: skip
fit(
    "SH01", "log_linear.py::_Parts.whole", "what blocks of cells have in common is left out of what is believed",
    "total[cells] += parts[own][place]", "total[cells] += 0.0",
    SHRINKAGE + "a_fit_with_blocks_is_the_optimum_of_its_objective",
    SHRINKAGE + "an_effect_that_only_all_cells_together_show_is_fitted",
)  # fmt: skip
fit(
    "KN01", "kernels.py::rake", "records are raked by the sums that they have, not to those asked for",
    "sums[c] = target[c] / max(sums[c], 1e-300)", "sums[c] = 1.0 / max(sums[c], 1e-300)",
    "model/test_hypothesis.py::test_raking_gives_records_the_weights_of_a_table",
)  # fmt: skip
shrinkage = Writer("practical", "engine/practical/")
shrinkage(
    "SH02", "fit/corrections.py::blocks", "the sum of a block is taken to have the noise of one cell: its noise is believed",
    "noise = np.asarray(variance * np.bincount(place), float)", "noise = np.full(before.size, variance)",
    SHRINKAGE + "blocks_are_of_wide_attributes_and_have_the_noise_of_their_sums[shape0-sizes0]",
)  # fmt: skip
shrinkage(
    "SH03", "measure/prefit.py::Prefit._measure_workload", "a release measures all triples at once however much noise they have",
    "whole = everything and self._noise_of_everything() <= OVERVIEW_OF_ALL", "whole = everything",
    SHRINKAGE + "a_release_measures_triples_without_choosing_only_where_their_noise_is_small[0.05-2-replace]",
)  # fmt: skip

bars = Writer("bars", "engine/practical/")
bars(
    "B01", "bars/error_bars.py::tail", "bars of Gaussian noise are 30 % too narrow",
    "return event.sigma * norm * gaussian_tail(x, event.grid / event.sigma)", "return 0.7 * event.sigma * norm * gaussian_tail(x, event.grid / event.sigma)",
    BARS + "no_noise_is_beyond_its_tail_more_often_than_stated",
)  # fmt: skip
bars(
    "B02", "bars/error_bars.py::tail", "bars of Laplace noise leave out how many values are summed",
    "return event.scale * (x + square * np.log1p(x / square)) / s", "return event.scale * (x + 0 * square) / s",
    BARS + "no_noise_is_beyond_its_tail_more_often_than_stated",
)  # fmt: skip
bars(
    "B03", "bars/error_bars.py::gaussian_tail", "noise on a coarse grid is taken for noise that has none",
    "    if step > FINE_STEP:\n        return plain", "    if step > 1e9:\n        return plain",
    LAWS + "on_a_coarse_grid_noise_is_not_compared_with_one_that_has_none",
)  # fmt: skip
bars(
    "B04", "bars/error_bars.py::ErrorBars._doubt_after", "all measurements have the whole β each",
    "return -math.log(_share(j) * self._beta)", "return -math.log(self._beta)",
    BARS + "all_measurements_together_fail_with_probability_beta",
)  # fmt: skip
bars(
    "B05", "bars/error_bars.py::ErrorBars._doubt_after", "numbers that are no counts have a share of β that others have too",
    "sum(map(len, self.queries.values())) + self._numbers", "sum(map(len, self.queries.values()))",
    BARS + "all_measurements_together_fail_with_probability_beta",
)  # fmt: skip
bars(
    "B06", "bars/error_bars.py::ErrorBars._doubt_after", "queries measured alone have a share of β that others have too",
    "j = 1 + len(self._tables) + sum(map(len, self.queries.values())) + self._numbers", "j = 1 + len(self._tables) + self._numbers",
    BARS + "all_measurements_together_fail_with_probability_beta",
)  # fmt: skip
bars(
    "B07", "bars/error_bars.py::ErrorBars.add_overview", "an overview has a share of β that the first measurement has too",
    "        self.overview, self.overview_doubt = overview, self._doubt\n        self._numbers += 1",
    "        self.overview, self.overview_doubt = overview, self._doubt",
    BARS + "an_overview_takes_the_first_share_of_beta",
)  # fmt: skip
bars(
    "B08", "bars/error_bars.py::nats_of_kinds", "an analyst picks among all intervals, and the bar is for one",
    'kinds["run"] / (m * (m - 3))', 'kinds["run"]',
    BARS + "a_bar_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B09", "bars/error_bars.py::_sets_of_a_size", "an analyst picks among all sets of so many cells, and the bar is for one",
    "math.log((m - 3) * math.comb(m, k))", "math.log(m - 3)",
    BARS + "a_bar_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B10", "bars/error_bars.py::ErrorBars._width", "an analyst picks among subsets of the attributes, sides and classes, and the bar is for one",
    "base = doubt + doubt_of_subset(len(measurement.attributes), len(asked[0].attributes))", "base = doubt - math.log(2)",
    BARS + "a_bar_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B11", "bars/error_bars.py::ErrorBars._width", "an analyst picks any table, and the bar lacks √cells",
    "table = event.sigma * (math.sqrt(cells) + math.sqrt(2 * x)) * norm", "table = event.sigma * math.sqrt(2 * x) * norm",
    BARS + "a_bar_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B12", "bars/error_bars.py::_laplace_sum", "an analyst picks any table, and the bar is too narrow for Laplace noise",
    "cells + math.sqrt(2 * cells * x) + x", "math.sqrt(2 * cells * x) + x",
    BARS + "a_bar_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B13", "bars/error_bars.py::ErrorBars._joint_width", "an analyst picks among all products of an overview, and the bar is for one",
    "gaussian_tail(base + np.where(others, 0.0, code), 2 * rounding)", "gaussian_tail(base + np.where(others, 0.0, 1.0), 2 * rounding)",
    BARS + "a_bar_of_an_overview_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B14", "bars/error_bars.py::_line_code", "what is bent is taken for a line, and has the bar of one",
    "if steps.size and np.abs(steps - steps[..., :1]).max() > near:", "if False:",
    BARS + "a_line_within_a_product_has_the_bar_of_a_plane",
)  # fmt: skip
bars(
    "B60", "bars/error_bars.py::_line_code", "an analyst picks the product that a line is within, and the bar is for one",
    "                nats += float(_nats(side[None]", "                float(_nats(side[None]",
    BARS + "a_line_within_a_product_has_the_bar_of_a_plane",
)  # fmt: skip
bars(
    "B61", "bars/error_bars.py::_plane_tail", "the noise in a plane is taken for that along one line of it, a fifth too narrow",
    "return math.sqrt(2 * (x + 1e-3)) * math.sqrt(1 + (1.5 * step) ** 2)", "return 0.8 * math.sqrt(2 * (x + 1e-3)) * math.sqrt(1 + (1.5 * step) ** 2)",
    LAWS + "the_noise_in_a_plane_is_beyond_its_tail_as_often_as_stated_and_a_fifth_less_would_be_too_little",
)  # fmt: skip
bars(
    "B98", "bars/error_bars.py::_line_code", "weights that differ by next to nothing are taken for a line, whatever they are by the noise's signs",
    "near = float(np.ptp(table)) * max(1e-15, min(ROUNDED, OF_ALL / (table.size * lines.shape[-1])))", "near = ROUNDED",
    CHOSEN + "weights_that_differ_by_next_to_nothing_are_no_line[1]",
)  # fmt: skip
bars(
    "B99", "bars/error_bars.py::_norms", "what weights that hardly differ differ by is lost in rounding, and so is their bar",
    "        if not queries[i].is_count:\n            left[i]", "        if False:\n            left[i]",
    CHOSEN + "weights_that_differ_by_next_to_nothing_are_no_line[3]",
)  # fmt: skip
bars(
    "B15", "bars/error_bars.py::ErrorBars._joint_width", "an analyst picks among all tables of an overview, and the bar is for one",
    "        base = self.overview_doubt + math.log(len(self.overview.sets))\n", "        base = self.overview_doubt\n",
    BARS + "a_bar_of_an_overview_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B62", "bars/error_bars.py::SHARES", "the shares of the classes add up to more than the whole",
    '"products": 0.5, "lines": 0.4', '"products": 0.9, "lines": 0.4',
    BARS + "classes_share_what_a_measurement_may_fail_by",
)  # fmt: skip
bars(
    "B63", "bars/error_bars.py::nats_of_kinds", "the parts of the kinds of sets add up to more than the whole",
    'kinds["value"] / (m if m == 2 else 2 * m)', 'kinds["value"]',
    BARS + "the_parts_of_all_sets_of_values_add_up_to_no_more_than_the_whole",
)  # fmt: skip
bars(
    "B110", "bars/error_bars.py::doubt_of", "the share of lines is given to products where there are lines too",
    "(0.0 if ordered else SHARES", "(0.0 if False else SHARES",
    BARS + "classes_share_what_a_measurement_may_fail_by",
)  # fmt: skip
bars(
    "B111", "bars/error_bars.py::_code", "a set of two attributes is one with what is the rest of it along each",
    "(math.log(2) if len(ordered) == 1 else 0.0)", "math.log(2) * len(ordered)",
    BARS + "the_parts_of_all_sets_of_values_add_up_to_no_more_than_the_whole",
)  # fmt: skip
bars(
    "B112", "bars/error_bars.py::_code", "runs have a share of an attribute without an order, beside all others",
    "nats += _nats(mask, size, is_ordered)", "nats += _nats(mask, size, True)",
    BARS + "an_attribute_without_an_order_has_no_runs",
)  # fmt: skip
bars(
    "B113", "bars/error_bars.py::_code", "a set of very many values has a part that no float holds, and a mean within it no bar",
    "        nats += _nats(mask, size, is_ordered)\n", "        nats -= np.log(np.exp(-_nats(mask, size, is_ordered)))\n",
    BARS + "with_very_many_values_every_set_has_a_bar_and_so_has_a_mean_within_it",
)  # fmt: skip
bars(
    "B16", "bars/error_bars.py::ErrorBars.intervals", "a bar of a query measured alone is for one side",
    "width = _one_tail(measurement.event, math.log(2) + doubt)", "width = _one_tail(measurement.event, doubt)",
    BARS + "a_bar_of_a_query_measured_alone_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B17", "bars/error_bars.py::ErrorBars.intervals", "a bar of a weighted query leaves out that its value was rounded",
    "width += measurement.event.grid / 2", "pass",
    BARS + "a_bar_of_a_query_measured_alone_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B18", "bars/error_bars.py::ErrorBars.intervals", "a bar of a weighted query leaves out that its weights were rounded",
    "low[i] = max(low[i], (y - width) / row_count.high - measurement.rounding)", "low[i] = max(low[i], (y - width) / row_count.high)",
    BARS + "a_bar_of_a_query_measured_alone_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B19", "bars/error_bars.py::_over", "where n is private an end of a bar is divided by the wrong n",
    "return np.where(value < 0, value / if_negative, value / if_positive)", "return np.where(value < 0, value / if_positive, value / if_negative)",
    BARS + "with_a_private_n_a_bar_holds_for_every_possible_n",
)  # fmt: skip
bars(
    "B20", "bars/error_bars.py::ErrorBars.rows", "what is known of n leaves out most of its noise",
    "low, high = max(low, total - width), min(high, total + width)", "low, high = max(low, total - width / 3), min(high, total + width / 3)",
    BARS + "the_interval_of_n_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B21", "bars/error_bars.py::ErrorBars._bound_by_parts", "parts of a conjunction are taken to leave more than they do",
    "np.where(brings, 1 - below, 0.0)", "np.where(brings, 1 - below, 0.0) / 2",
    BARS + "parts_of_a_conjunction_bound_it_as_frechet_says",
)  # fmt: skip
bars(
    "B22", "bars/error_bars.py::ErrorBars.distance", "the distance of the data from the hypothesis leaves out the noise",
    "off = [float(np.linalg.norm(y - row_count.estimate * believed)) + noise + unknown for y, noise in known]",
    "off = [float(np.linalg.norm(y - row_count.estimate * believed)) + unknown for y, noise in known]",
    BARS + "the_distance_of_a_hypothesis_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B23", "bars/error_bars.py::ErrorBars.distance", "the distance of the data from the hypothesis leaves out what is not known of n",
    "off = [float(np.linalg.norm(y - row_count.estimate * believed)) + noise + unknown for y, noise in known]",
    "off = [float(np.linalg.norm(y - row_count.estimate * believed)) + noise for y, noise in known]",
    BARS + "the_distance_of_a_hypothesis_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B24", "bars/error_bars.py::_table_norm", "a distance from a table summed from more cells leaves out their number",
    "return event.sigma * math.sqrt(measured / cells) * (math.sqrt(cells) + math.sqrt(2 * x))",
    "return event.sigma * (math.sqrt(cells) + math.sqrt(2 * x))",
    BARS + "the_distance_of_a_hypothesis_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B25", "fit/residuals.py::Overview.__init__", "an overview claims half its deviation",
    "m.variance if known is None", "m.variance / 4 if known is None",
    PRACTICAL + "the_overview_knows_the_deviation_of_every_query",
)  # fmt: skip
bars(
    "B26", "fit/residuals.py::_rounding_share", "an overview's bars leave out that residuals were rounded",
    "return event.grid / 2 * math.sqrt(coordinates / measurement.variance)", "return 0.0",
    BARS + "a_bar_of_an_overview_is_the_one_of_the_proof",
)  # fmt: skip
bars(
    "B27", "fit/residuals.py::Overview.widest", "the widest deviation of an overview is that of its narrowest part",
    "return max(math.sqrt(self._variances[s] * along_s[s]", "return min(math.sqrt(self._variances[s] * along_s[s]",
    MINIMIZE + "no_table_of_norm_one_deviates_more_than_the_widest",
)  # fmt: skip
bars(
    "B28", "engine.py::build_practical_engine", "bars and guard have the whole β each",
    "doubt = beta if planned is None else beta / 2", "doubt = beta",
    RELEASE + "bars_and_guard_share_beta",
)  # fmt: skip
bars(
    "B29", "engine.py::PracticalEngine.linear", "a guarded answer promises a third of what ⊥ says",
    "error = min(error, self._promised_bar(watch.guard, query))", "error = min(error, self._promised_bar(watch.guard, query) / 3)",
    RELEASE + "below_the_guard_an_answer_has_the_bar_that_it_promises",
)  # fmt: skip
bars(
    "B30", "engine.py::PracticalEngine._promised_bar", "where n is private a guarded answer leaves out how far it may be off",
    'return (most + (0.0 if self.ledger.budget.neighbours == "replace" else known.rows.off)) / known.rows.estimate',
    "return most / known.rows.estimate",
    RELEASE + "below_the_guard_an_answer_has_the_bar_that_it_promises",
)  # fmt: skip
bars(
    "B100", "engine.py::PracticalEngine._promised_bar", "a guarded answer forgets that what is believed was rounded to whole rows before it was compared",
    "+ 5 * FINEST + rounded_rows(query, known.grid, known.rows.high)", "+ 5 * FINEST",
    "attacks/test_attacks_bars.py::test_a_guards_bar_holds_for_every_epsilon_although_counts_are_compared_in_whole_rows",
)  # fmt: skip
bars(
    "B31", "public.py::PracticalAnswers.error_in_rows", "a bar in rows leaves out what is not known of n",
    "reach: float | Array = off * value + self.knowledge.rows.high * error", "reach: float | Array = self.knowledge.rows.estimate * error",
    BARS + "a_bar_in_rows_holds_for_every_n_that_is_possible",
)  # fmt: skip
bars(
    "B32", "free_answers.py::_move_into_intervals", "the bar around a value that is not in the middle is half the interval",
    "return values, np.maximum(high - values, values - low)", "return values, (high - low) / 2",
    BARS + "a_bar_reaches_both_ends_of_what_is_known",
)  # fmt: skip
bars(
    "B33", "free_answers.py::_move_into_intervals", "an answer outside what is known is not moved into it",
    "values = np.clip(values, low, high)\n", "values = np.asarray(values)\n",
    BARS + "a_bar_reaches_both_ends_of_what_is_known",
)  # fmt: skip
bars(
    "B34", "measurement.py::RowCountInterval.off", "n is taken to be known better than it is",
    "return max(self.high - self.estimate, self.estimate - (self.low if self.low > 1 else 0.0))", "return min(self.high - self.estimate, self.estimate - self.low)",
    BARS + "a_bar_in_rows_holds_for_every_n_that_is_possible",
)  # fmt: skip
bars(
    "B35", "measure/purchases.py::Purchases.number", "a number that was bought takes no share of β",
    "        self._known.bars.add_number()\n        return receipt, width", "        return receipt, width",
    RELEASE + "each_number_that_is_bought_takes_a_share_of_beta",
)  # fmt: skip
bars(
    "B36", "measure/purchases.py::Purchases.resume", "a session taken up forgets the shares of β that numbers took",
    "                self._known.bars.add_number()\n            elif", "                pass\n            elif",
    RELEASE + "each_number_that_is_bought_takes_a_share_of_beta",
)  # fmt: skip
bars(
    "B37", "convex/convex_answers.py::Convex._measure_excess", "the bar of a measured err leaves out its noise",
    "return (max(noisy, 0.0) + width + excess.below) / self._known.rows.low", "return (max(noisy, 0.0) + excess.below) / self._known.rows.low",
    RELEASE + "a_convex_question_draws_what_it_is_charged_for_at_the_price_of_a_row",
)  # fmt: skip
bars(
    "B38", "convex/convex_answers.py::Convex._ask_guard", "the bar below the guard leaves out what the solver may have left",
    "promised = (most * row + excess.below) / self._known.rows.low", "promised = most * row / self._known.rows.high / 3",
    RELEASE + "below_the_guard_a_convex_answer_has_the_bar_of_as_many_rows",
)  # fmt: skip
bars(
    "B39", "convex/excess_bounds.py::_by_distance", "the bar of a free convex answer lacks √cells",
    "bounds = [found.gap + distance * math.sqrt(marginal.size) * query.scale]", "bounds = [found.gap + distance * query.scale / marginal.size]",
    MINIMIZE + "no_table_within_the_distance_has_more_excess_risk_than_the_bound",
)  # fmt: skip
bars(
    "B40", "convex/excess_bounds.py::_curvature", "a logistic loss is taken to have more curvature than it has",
    "kept = 1.0 if type(risk.loss) is Squared else 2 / (2 + reach * risk.features.row_norm_bound)", "kept = 25.0",
    RELEASE + "the_worst_table_at_a_distance_has_no_more_excess_risk_than_is_stated",
)  # fmt: skip
bars(
    "B41", "convex/excess_bounds.py::excess_bound", "the bar of a free convex answer is a tenth of what is proved",
    "found_bound = min(bounds, default=math.inf)", "found_bound = 0.1 * min(bounds)",
    RELEASE + "the_worst_table_at_a_distance_has_no_more_excess_risk_than_is_stated",
)  # fmt: skip
bars(
    "B43", "bars/error_bars.py::ErrorBars._bound_by_parts", "attributes of which nothing is known are taken not to matter to a conjunction",
    "if covered == set(names):", "if covered:",
    BARS + "conjunctions_asked_together_have_each_the_bounds_of_its_own_parts",
)  # fmt: skip
bars(
    "B44", "bars/error_bars.py::ErrorBars._bound_by_parts", "parts of a conjunction that bring an attribute are taken to leave all room",
    "not covered.issuperset(part)", "covered.issuperset(part)",
    BARS + "conjunctions_asked_together_have_each_the_bounds_of_its_own_parts",
)  # fmt: skip
bars(
    "B45", "bars/error_bars.py::doubt_of_subset", "each smaller set of a table's attributes has all of what they share",
    "math.log((2**measured - 1) / (1 - OF_ALL_ATTRIBUTES))", "-math.log(1 - OF_ALL_ATTRIBUTES)",
    BARS + "all_measurements_together_fail_with_probability_beta",
)  # fmt: skip
bars(
    "B46", "bars/error_bars.py::_share", "what is left of β is shared out twice",
    "(1 - OF_FIRST) * EARLY / (i * (i + 1))", "EARLY / (i * (i + 1))",
    BARS + "all_measurements_together_fail_with_probability_beta",
)  # fmt: skip
bars(
    "B47", "bars/error_bars.py::_table_norm", "the distance of a hypothesis is for one set of attributes, and any may be asked about",
    'doubt + doubt_of("tables") + doubt_of_subset(len(measurement.attributes), asked)', 'doubt + doubt_of("tables")',
    BARS + "the_distance_of_a_hypothesis_is_the_one_of_the_proof",
)  # fmt: skip
ALONE = "engine/test_count_bars.py::test_"
bars(
    "B114", "bars/count_bars.py::_table_of", "a count that is asked alone has the bar of one subset of the attributes, of all that there are",
    "base = doubt + doubt_of_subset(len(measurement.attributes), len(names))", "base = doubt",
    ALONE + "a_count_alone_has_the_bar_that_it_has_among_others",
)  # fmt: skip
bars(
    "B115", "bars/count_bars.py::_describe", "a count that is asked alone has the bar of a run, whatever its cells",
    "codes.append(float(nats[int(is_run), size]))", "codes.append(float(nats[1, size]))",
    ALONE + "a_count_alone_has_the_bar_that_it_has_among_others",
)  # fmt: skip
bars(
    "B116", "bars/count_bars.py::CountBars.add", "a count that is asked alone is bounded by what was known before",
    "self._plans = {}", "pass",
    ALONE + "later_measurements_count_at_once",
)  # fmt: skip
bars(
    "B117", "bars/count_bars.py::CountBars.interval", "parts of a conjunction that is asked alone are taken to leave all room",
    "room -= 1 - below if part.brings else 0.0", "room -= 0.0",
    ALONE + "a_count_alone_has_the_bar_that_it_has_among_others",
)  # fmt: skip
bars(
    "B118", "certificate/certified_bounds.py::CertifiedCounts.reach_of_count", "a count of many intervals, asked alone, has the bar of one",
    "pieces *= int(mask[0]) + int(np.count_nonzero(mask[1:] > mask[:-1]))", "pieces *= 1",
    ALONE + "an_answer_alone_is_the_one_among_others",
)  # fmt: skip
bars(
    "B42", "bars/error_bars.py::ErrorBars.rows", "n from an overview leaves out its noise",
    "low, high = max(low, total - width), total + width", "low, high = max(low, total - width / 9), total + width / 9",
    BARS + "the_interval_of_n_is_the_one_of_the_proof",
)  # fmt: skip

promises = Writer("promises", "")
promises(
    "H01", "engine/release.py::run_mwem", "3α is promised though the release never met its stop",
    "{query.key: query for query in queries} if made.stopped else {}", "{query.key: query for query in queries}",
    "engine/test_offline_releases.py::test_mwem_promises_its_workload_if_it_stopped",
)  # fmt: skip
promises(
    "H02", "engine/offline_answers.py::ReleaseEngine.marginal", "a marginal has a bar though none is proved for some of its cells",
    "error = None if None in errors else self.error", "error = self.error",
    RELEASE + "a_release_promises_nothing_of_what_was_not_in_its_workload",
)  # fmt: skip
promises(
    "H03", "engine/offline_answers.py::ReleaseEngine.linear", "a release promises 3α of every question",
    "error = self.error if query.key in self.promised else None", "error = self.error",
    RELEASE + "a_release_promises_nothing_of_what_was_not_in_its_workload",
)  # fmt: skip
promises(
    "H04", "engine/theory.py::TheoryEngine.error", "the theory's bar leaves out what is not known of n",
    "return self._pmw.config.error + self._doubt", "return self._pmw.config.error",
    SESSION + "the_theory_profile_states_what_it_does_not_know_of_n",
)  # fmt: skip
promises(
    "H05", "engine/theory.py::_reach", "n is taken to be known better than its noise allows",
    "return event.sigma * math.sqrt(2 * math.log(2 / beta))", "return event.sigma * math.sqrt(math.log(2 / beta) / 2)",
    RELEASE + "the_theory_knows_n_as_well_as_its_noise_allows",
)  # fmt: skip
promises(
    "H06", "engine/theory.py::build_theory_engine", "counts and convex questions have the whole β each",
    "config = configure_linear(\n        budget, cells=data.universe.size, scale=scale, queries=queries, beta=beta / split, alpha=alpha,",
    "config = configure_linear(\n        budget, cells=data.universe.size, scale=scale, queries=queries, beta=beta, alpha=alpha,",
    RELEASE + "counts_and_convex_questions_of_the_theory_share_budget_and_beta",
)  # fmt: skip
promises(
    "H07", "engine/theory.py::build_theory_engine", "counts have the budget of convex questions too, which are then refused",
    "        share=share / split,\n    )  # fmt: skip\n    pmw =", "        share=share,\n    )  # fmt: skip\n    pmw =",
    RELEASE + "counts_and_convex_questions_of_the_theory_share_budget_and_beta",
)  # fmt: skip
promises(
    "H08", "engine/theory.py::TheoryEngine.alpha", "the convex α leaves out that there may be fewer rows than estimated",
    "alpha = self._convex.config.alpha / (1 - self._doubt) if self._doubt < 1 else math.inf", "alpha = self._convex.config.alpha",
    RELEASE + "with_a_private_n_the_convex_promise_of_the_theory_is_wider",
)  # fmt: skip
promises(
    "H09", "engine/theory.py::TheoryEngine.require_reach", "an error is promised that the theorem does not give",
    "        if within is not None and within < reach:\n", "        if False:\n",
    RELEASE + "the_theory_refuses_what_its_theorem_does_not_give",
)  # fmt: skip
promises(
    "H10", "engine/practical/public.py::estimate", "an answer that nothing bounds has a bar all the same",
    'return Estimate(value, error if error < 1 else None, "hypothesis", typical', 'return Estimate(value, min(error, 0.5), "hypothesis", typical',
    RELEASE + "an_answer_without_a_bound_has_no_bar",
)  # fmt: skip
promises(
    "H11", "engine/practical/public.py::PracticalAnswers.convex_estimate", "a convex answer that nothing bounds has a bar all the same",
    "error if math.isfinite(error) else None", "min(error, 1.0)",
    MINIMIZE + "an_unconstrained_logistic_regression_is_answered_without_a_bar",
)  # fmt: skip

MATRIX = "engine/test_matrix.py::test_"
promises(
    "H26", "engine/matrix_answers.py::MatrixPlan.bar", "a bar holds for one number of the workload, not for all",
    "math.log(2 * self.promised / self.beta)", "math.log(2 / self.beta)",
    MATRIX + "the_errors_are_those_that_were_known_beforehand",
)  # fmt: skip
promises(
    "H27", "engine/matrix.py::plan_matrix", "shares follow the sensitivity alone",
    "math.sqrt(parts[s] / square)", "math.sqrt(1.0 / square)",
    MATRIX + "no_other_shares_have_a_much_smaller_mean_squared_error",
)  # fmt: skip
promises(
    "H28", "engine/matrix.py::run_matrix", "a residual is released without noise",
    "noise.add(np.concatenate([each.ravel() for each in exact]), receipt)", "np.concatenate([each.ravel() for each in exact])",
    MATRIX + "the_errors_are_those_that_were_known_beforehand",
)  # fmt: skip
promises(
    "H29", "engine/matrix_answers.py::MatrixEngine.linear", "a question outside the workload has a bar",
    "error = float(self.plan.bar(deviation)) if promised else None", "error = float(self.plan.bar(deviation))",
    MATRIX + "a_release_spends_the_whole_budget_and_promises_the_workload_alone",
)  # fmt: skip
promises(
    "H30", "planning/report.py::Plan.limit", "a bound of which only the growth is known is stated as a limit",
    "if bound.constant", "if bound.error",
    "planning/test_plan.py::test_a_bound_without_a_constant_is_not_stated_as_a_limit",
)  # fmt: skip
promises(
    "H20", "engine/offline_answers.py::ConvexReleaseEngine.minimize", "the θ of an undeclared loss has a promise",
    "if theta is None:", "if False:",
    "engine/test_offline_releases.py::test_the_convex_release_is_within_its_promise_on_declared_losses",
)  # fmt: skip
promises(
    "H21", "engine/release.py::run_convex", "α is promised though the mechanism never met its stop",
    "config.online.alpha if made.stopped else None", "config.online.alpha",
    "engine/test_offline_releases.py::test_a_convex_release_that_did_not_stop_promises_nothing",
)  # fmt: skip
promises(
    "H22", "answering/row_questions.py::_ask_population", "the rows are measured as loosely as the population was asked about",
    "sampling.ask(query, needs.sample_error, needs.sample_beta)", "sampling.ask(query, wanted, needs.sample_beta)",
    "engine/test_sampling.py::test_an_answer_about_the_population_is_dearer_and_wider_by_what_privacy_allows",
)  # fmt: skip
promises(
    "H23", "erm/by_statistical_queries.py::population_gap", "an excess over the population forgets what privacy allows",
    "2 * risk.norm * risk.diameter * min(1.0, math.expm1(min(ε, 1.0)) + δ)", "2 * risk.norm * risk.diameter * δ",
    "erm/test_erm_by_statistical_queries.py::test_the_bound_for_the_population_adds_what_privacy_allows",
)  # fmt: skip
promises(
    "H24", "planning/lower_bounds.py::told_apart", "tables are said to be told apart a step too late",
    "return high", "return high + 1",
    "planning/test_lower_bounds.py::test_the_steps_that_may_be_told_apart_are_the_first_for_which_privacy_allows_it",
)  # fmt: skip
promises(
    "H25", "planning/theorems.py::_most_queries", "one question more is promised than the bound allows",
    "return float(low)", "return float(high) * 1.1",
    "planning/test_plan.py::test_every_quantity_is_found_from_all_others",
)  # fmt: skip

session = Writer("session", "")
session(
    "SH2", "answering/answer_cache.py::AnswerHistory.add", "a report keeps every table that was ever answered in memory",
    "while self._cells > REPORTED_CELLS and", "while self._cells < 0 and",
    SHELF + "a_report_has_the_last_answers_that_there_is_room_for",
)  # fmt: skip
session(
    "SH3", "_spill.py::Shelf._append", "a table that is put away is written over the one before",
    "at, self._used = self._used, self._used + -(-array.nbytes // 64) * 64", "at, self._used = self._used, self._used",
    SHELF + "a_stored_array_is_independent_of_its_original",
)  # fmt: skip
session(
    "S01", "answering/answer_cache.py::AnswerCache._find", "a repeat does not have the bar that is asked for now",
    "if known is None or (within is not None and not is_within(known.error, within)):", "if known is None:",
    SESSION + "within_pays_exactly_when_the_free_bar_is_too_wide",
)  # fmt: skip
session(
    "S34", "answering/scaling.py::scaled_answer", "the typical error of all rows is said to be none, though their number is private",
    "typical_error = np.hypot(typical_error * n, np.abs(value) * engine.typical_of_rows)", "typical_error = typical_error * n",
    "attacks/test_attacks_adaptive_bars.py::test_the_typical_error_of_all_rows_is_that_of_their_number_where_it_is_private",
)  # fmt: skip
session(
    "S13", "answer.py::_reach", "a bar of two answers forgets one side of the first",
    "for s in (-1, 1) for t in (-1, 1)]", "for s in (1,) for t in (-1, 1)]",
    ANSWER + "the_result_on_any_truths_within_the_bars_is_within_the_results_bar",
    ANSWER + "the_bar_is_no_wider_than_the_furthest_of_those_truths",
)  # fmt: skip
session(
    "S14", "answer.py::_reach", "a ratio has a bar though its denominator may be 0",
    "bounded = np.abs(y) > far if", "bounded = np.abs(y) > 0 if",
    ANSWER + "a_ratio_whose_denominator_may_be_nothing_has_no_bar",
)  # fmt: skip
session(
    "CE19", "engine/interface.py::bar_for_ratio", "the bar of a ratio leaves out its denominator's",
    "return within * least / (1 + share + within)", "return 1.5 * within * least / (1 + share + within)",
    CERTIFICATE + "a_ratio_is_bought_as_one_or_refused_unpaid",
)  # fmt: skip
session(
    "S02", "answering/spending.py::Spending.log", "the log leaves an entry out",
    "for entry in self._ledger.entries())", "for entry in self._ledger.entries()[1:])",
    SESSION + "the_spend_never_passes_the_budget_and_the_log_adds_up",
)  # fmt: skip
session(
    "S03", "session.py::Session._ask_bound", "an answer says that it cost nothing",
    "answer = scaled_answer(query, bound, estimate, bill.cost, scale, self._engine)", "answer = scaled_answer(query, bound, estimate, 0.0, scale, self._engine)",
    SESSION + "within_pays_exactly_when_the_free_bar_is_too_wide",
)  # fmt: skip
session(
    "S04", "answering/scaling.py::scaled_answer", "a bar in rows is that of the fraction",
    "error = None if error is None else bar_in_rows(np.abs(value), error)", "pass",
    RELEASE + "a_bar_in_rows_is_of_as_many_rows",
)  # fmt: skip
session(
    "S05", "answering/answer_cache.py::AnswerCache.keep", "a session taken up pays again for what it answered",
    "        self._log.note(bound, kept)\n", "",
    RELEASE + "a_resumed_session_repeats_its_answers_for_free",
)  # fmt: skip
session(
    "S06", "answering/spending.py::Spending.log", "a session with a seed says that it is private",
    "return tuple(replace(entry, private=entry.private and self.private) for entry in self._ledger.entries())", "return tuple(replace(entry, private=True) for entry in self._ledger.entries())",
    SEEDS + "a_seeded_session_says_so_wherever_it_is_shown",
)  # fmt: skip
session(
    "S07", "answering/answer_cache.py::AnswerCache._find", "a repeat is paid for again",
    "        known = self._known_of(bound)\n        if known is None or (", "        known = None\n        if known is None or (",
    SESSION + "a_repeat_is_free_and_equal_however_it_was_written",
)  # fmt: skip
session(
    "S31", "profiles.py::Practical.__post_init__", "a guard may take what is kept for purchases by default",
    "reserve = MOST_RESERVE", "reserve = 0.0",
    "engine/test_reserve.py::test_a_guard_that_leaves_no_room_for_it_is_refused_before_the_table_is_read",
)  # fmt: skip
session(
    "S32", "profiles.py::_require_own", "an option of the other profile is taken and ignored",
    "if field.name in options and field.name not in own and options[field.name] != field.default:", "if False:",
    "test_profiles.py::test_an_option_in_the_wrong_place_is_refused_before_the_table_is_read",
)  # fmt: skip
session(
    "S08", "opening.py::_prepare", "a session without a seed draws from seed 0",
    "return data, account, Noise() if seed is None else Seeded(seed)", "return data, account, Seeded(seed or 0)",
    SEEDS + "a_session_draws_from_no_seed_unless_one_is_given",
)  # fmt: skip
session(
    "S09", "opening.py::_prepare", "a session spends another budget than its ledger's",
    "    if account.budget != budget:", "    if False:",
    RELEASE + "a_session_is_opened_on_the_budget_of_its_ledger",
)  # fmt: skip
session(
    "S10", "opening.py::_read_source", "an empty table is refused though its number of rows is private",
    'if budget.neighbours == "replace" and data.rows == 0:', "if data.rows == 0:",
    RELEASE + "an_empty_table_opens_where_n_is_private",
)  # fmt: skip
session(
    "S11", "opening.py::_open_engine", "a session taken up forgets what its stream taught",
    "engine.resume(account.end_replay())", "account.end_replay()",
    ENGINES + "a_session_rebuilt_from_its_entries_gives_the_same_answers_to_the_last_bit",
)  # fmt: skip
session(
    "S12", "opening.py::_read_source", "questions are asked of another universe than the data's",
    "if data.universe != universe:", "if False:",
    RELEASE + "a_session_is_opened_on_the_universe_of_its_data",
)  # fmt: skip

wire = Writer("wire", "")
wire(
    "Q01", "serialize/releases.py::_read_measurement", "a measurement that comes back has lost its rounding, and its bar is too narrow",
    'read_number("rounding", rounding),', "0.0,",
    MEASUREMENTS + "a_measurement_comes_back_as_it_was",
)  # fmt: skip
wire(
    "Q02", "serialize/releases.py::_read_measurement", "a residual that comes back passes for a table",
    'read_flag("residual", residual),', "False,",
    MEASUREMENTS + "a_measurement_comes_back_as_it_was",
)  # fmt: skip
wire(
    "Q03", "serialize/releases.py::_read_entry", "an entry that comes back passes for private",
    'private=read_flag("private", private),', "private=True,",
    RELEASE + "an_entry_comes_back_with_every_field",
)  # fmt: skip
wire(
    "Q04", "serialize/releases.py::_read_entry", "an entry that comes back waits for draws that were not kept",
    'kept=read_flag("kept", kept),', "kept=True,",
    RELEASE + "an_entry_comes_back_with_every_field",
)  # fmt: skip
wire(
    "Q05", "serialize/releases.py::_read_entry", "an entry that comes back has one event",
    'for event in read_list("events", events)),', 'for event in read_list("events", events)[:1]),',
    RELEASE + "an_entry_comes_back_with_every_field",
)  # fmt: skip
wire(
    "Q06", "serialize/releases.py::_read_entry", "an entry that comes back has lost what came out",
    'released=tuple(read_value(value) for value in read_list("released", released)),', "released=(),",
    RELEASE + "an_entry_comes_back_with_every_field",
)  # fmt: skip
wire(
    "Q07", "serialize/releases.py::_read_estimate", "an answer without a bar comes back with one of 0",
    "return Estimate(found, bar, said,", "return Estimate(found, 0.0 if bar is None else bar, said,",
    RELEASE + "an_answer_without_a_bar_comes_back_without_one",
)  # fmt: skip
wire(
    "Q08", "serialize/releases.py", "a budget that comes back has other neighbours",
    'read_text("neighbours", neighbours),  # type: ignore[arg-type]', '"add-remove",',
    WIRE + "objects_come_back_equal_to_those_that_were_sent", RELEASE + "an_entry_comes_back_with_every_field",
)  # fmt: skip
wire(
    "Q09", "serialize/ledgers.py::ledger_from_lines", "the answers of a ledger are lost on its way",
    "return Accountant(account.budget, account.slack, entries, answers)",
    "return Accountant(account.budget, account.slack, entries)",
    RELEASE + "a_resumed_session_repeats_its_answers_for_free",
)  # fmt: skip
wire(
    "Q10", "serialize/ledgers.py::ledger_from_lines", "the entries of a ledger are lost on its way, and its budget is whole again",
    "return Accountant(account.budget, account.slack, entries, answers)",
    "return Accountant(account.budget, account.slack, (), answers)",
    ENGINES + "a_session_rebuilt_from_its_entries_gives_the_same_answers_to_the_last_bit",
)  # fmt: skip
wire(
    "Q11", "serialize/releases.py::_read_entry", "an entry that comes back has lost the query that was measured",
    'decode("query", value, Linear) if is_query else read_value(value)', "None if is_query else read_value(value)",
    RELEASE + "an_entry_comes_back_with_every_field",
)  # fmt: skip

ENGINE = [
    *certificate.mutants,
    *merging.mutants,
    *models.mutants,
    *losses.mutants,
    *practical.mutants,
    *model.mutants,
    *fit.mutants,
    *shrinkage.mutants,
    *bars.mutants,
    *promises.mutants,
    *session.mutants,
    *wire.mutants,
]
