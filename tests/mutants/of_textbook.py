"""Mutants of the papers' mechanisms, their promises and their audits."""

from __future__ import annotations

from mutant import Writer

SPARSE = "textbook/test_sparse_vector.py::test_"
PMW = "textbook/test_pmw.py::test_"
MWEM = "textbook/test_mwem.py::test_"
SMALL_DB = "textbook/test_small_db.py::test_"
EXPERTS = "textbook/test_multiplicative_weights.py::test_"
BOUNDS = "textbook/test_bounds.py::test_"
CONVEX = "textbook/test_convex_pmw.py::test_"
EXCESS = "convex/test_excess.py::test_"
THEOREMS = "test_theorems.py::test_"
AUDIT = "audit/test_audit.py::test_"
SAMPLING = "engine/test_sampling.py::test_"
SUBSAMPLED = "textbook/test_subsampled.py::test_"
SCQ = "textbook/test_scq.py::test_"
DESCENT = "textbook/test_descent_by_queries.py::test_"
CHOICE = "textbook/test_oracle_choice.py::test_"
NOISY = "textbook/test_noisy_mirror_descent.py::test_"
EXACT_SAMPLING = "exact/test_exact_sampling.py::test_"

guard = Writer("sparse-vector", "textbook/")
guard(
    "V01", "sparse_vector.py::_ready", "one more ⊤ is answered than was planned",
    "if progress.tops >= config.rounds:", "if progress.tops > config.rounds:",
    SPARSE + "it_stops_after_c_answers_above_and_charges_nothing_more",
)  # fmt: skip
guard(
    "V02", "sparse_vector.py::step", "the gap is released though not asked for, on a grid that is not safe for it",
    "gap = excess * config.grid if config.gap else None", "gap = excess * config.grid",
    SPARSE + "the_gap_is_released_only_where_it_was_asked_for",
)  # fmt: skip
guard(
    "V03", "sparse_vector.py::step", "what is above is released without noise",
    "measured = float(noise.add(_floor_units(value, grid) * grid, receipt))", "measured = float(_floor_units(value, grid) * grid)",
    SPARSE + "the_measurements_of_earlier_tests_are_the_releases_in_the_ledger",
)  # fmt: skip
guard(
    "V04", "sparse_vector.py::SparseVector.__post_init__", "a value is measured with the noise of a less sensitive one",
    "if measured and not measured.sensitivity >= self.guard.sensitivity:", "if False:",
    SPARSE + "a_sparse_vector_that_its_proof_does_not_cover_is_refused",
)  # fmt: skip
guard(
    "V05", "sparse_vector.py::resume_state", "a session taken up has all its rounds again",
    "return replace(so_far, tops=so_far.tops + sum(entry.released == (ABOVE,) for entry in rounds))", "return so_far",
    SPARSE + "a_resumed_sparse_vector_has_its_remaining_tops",
)  # fmt: skip
guard(
    "V06", "sparse_vector.py::_ready", "a round opens whose measurement cannot be paid: the refusal says ⊤",
    "if config.measurement is not None and not ledger.affords(config.guard, config.measurement):", "if False:",
    SPARSE + "a_round_opens_only_if_its_measurement_is_affordable_too",
)  # fmt: skip
guard(
    "V07", "sparse_vector.py::_ready", "in an open round a refusal to measure says ⊤",
    "if config.measurement is not None and not ledger.affords(config.measurement):", "if False:",
    SPARSE + "an_open_round_whose_measurement_was_spent_elsewhere_is_refused_whatever_the_value",
)  # fmt: skip
guard(
    "V08", "sparse_vector.py::_ready", "a round goes on with other noise than was paid for, or on another account",
    "        progress.require(config, ledger)\n", "",
    SPARSE + "an_open_round_goes_on_only_with_the_noise_that_was_paid_for",
)  # fmt: skip
guard(
    "V09", "sparse_vector.py::_floor_units", "rounding takes neighbours further apart than their sensitivity",
    "return math.floor(value / unit)", "return round(value / unit)",
    SPARSE + "a_value_between_two_steps_is_not_rounded_to_the_even_one",
    SPARSE + "rounding_never_takes_neighbours_further_apart_than_their_sensitivity",
)  # fmt: skip
guard(
    "V10", "sparse_vector.py::comparison_weight", "the promised width forgets that there are many rounds",
    "math.log(2 * rounds / beta)", "math.log(2 / beta)",
    SPARSE + "within_the_promised_width_all_noise_of_all_rounds_and_values_stays_but_for_beta",
)  # fmt: skip
guard(
    "V11", "sparse_vector.py::comparison_weight", "the promised width forgets that there are many values",
    "2 * math.log(max(queries, 2) / beta)", "2 * math.log(2 / beta)",
    SPARSE + "within_the_promised_width_all_noise_of_all_rounds_and_values_stays_but_for_beta",
)  # fmt: skip
guard(
    "V12", "sparse_vector.py::SparseVector.__post_init__", "the gap is released on a grid of which the threshold is no multiple",
    "if self.gap and any(x % self.grid for x in (self.threshold, self.guard.sensitivity)):", "if False:",
    SPARSE + "a_sparse_vector_that_its_proof_does_not_cover_is_refused",
)  # fmt: skip

linear = Writer("textbook", "")
linear(
    "P01", "textbook/pmw.py::OnlinePMW._learn", "the hypothesis is moved away from the data",
    "overshoots = measured < self.config.scale * believed", "overshoots = measured > self.config.scale * believed",
    PMW + "errors_of_the_hypothesis_are_measured_and_learned",
)  # fmt: skip
linear(
    "P02", "textbook/pmw.py::PMWConfig.eta", "η is a tenth of the theorem's: the rounds run out before the hypothesis is right",
    "return experts.step_size(self.alpha, self.step)", "return 0.1 * experts.step_size(self.alpha, self.step)",
    PMW + "an_update_is_that_of_the_book_with_the_step_of_the_theorem",
)  # fmt: skip
linear(
    "P03", "textbook/pmw.py::_calibrate", "the guard is calibrated to half of what a row does",
    "return sparse_vector.guard_round(G * delta / w, ratio, delta), measurement, c, w",
    "return sparse_vector.guard_round(G * delta / w, ratio, delta / 2), measurement, c, w",
    PMW + "events_are_for_the_one_row_that_a_neighbour_moves",
)  # fmt: skip
linear(
    "P04", "textbook/pmw.py::OnlinePMW.ask", "a refusal says what the guard would have answered",
    "        self._require_afforded(measurement)\n", "",
    PMW + "a_round_whose_measurement_was_spent_elsewhere_answers_nothing_whatever_the_data",
)  # fmt: skip
linear(
    "P05", "textbook/pmw.py::OnlinePMW.ask", "counts that the guard found wrong are released bare",
    "measured = float(self._noise.add(N, receipt))", "measured = float(N)",
    PMW + "measurements_are_the_releases_in_the_ledger",
)  # fmt: skip
linear(
    "P06", "textbook/pmw.py::PMWConfig.threshold", "the guard is silent up to twice the error that the theorem allows",
    "return float(round(2 * self.alpha * self.scale))", "return float(round(4 * self.alpha * self.scale))",
    PMW + "the_noise_stays_within_the_rows_that_the_theorem_gives_it",
)  # fmt: skip
linear(
    "P07", "textbook/pmw.py::PMWConfig.error", "2α is promised where 3α is proved",
    "return 3 * self.alpha", "return 2 * self.alpha",
    PMW + "the_noise_stays_within_the_rows_that_the_theorem_gives_it",
)  # fmt: skip
linear(
    "P08", "textbook/pmw.py::_calibrate", "measurements are off by more than promised, for the union over rounds is forgotten",
    "M = math.sqrt(2 * math.log(6 * c / beta))", "M = math.sqrt(2 * math.log(6 / beta))",
    PMW + "all_measurements_stay_within_alpha_but_for_a_third_of_beta",
)  # fmt: skip
linear(
    "P09", "textbook/pmw.py::_calibrate", "the rounds of a pure budget cost c times what there is",
    "w = delta * c * (G + M) / (share * budget.total)", "w = delta * (G + M) / (share * budget.total)",
    PMW + "all_rounds_together_cost_the_budget_and_no_more",
)  # fmt: skip
linear(
    "P10", "textbook/pmw.py::_calibrate", "a share of the budget is spent as if it were all",
    "c * (G**2 + M**2) / 2 / (share * budget.total)", "c * (G**2 + M**2) / 2 / budget.total",
    PMW + "a_share_of_the_budget_is_all_that_the_rounds_cost",
)  # fmt: skip
linear(
    "P11", "textbook/mwem.py::_calibrate", "a choice is drawn for half of what a row does to its scores",
    "return Exponential(delta, E * delta / w), measurement, T, w", "return Exponential(delta / 2, E * delta / w), measurement, T, w",
    MWEM + "events_are_for_the_one_row_that_a_neighbour_moves",
)  # fmt: skip
linear(
    "P12", "textbook/mwem.py::_calibrate", "a measurement has half its noise at the same price",
    "measurement: Laplace | Gaussian = Laplace(delta, w / M)", "measurement: Laplace | Gaussian = Laplace(delta / 2, w / M / 2)",
    MWEM + "events_are_for_the_one_row_that_a_neighbour_moves",
)  # fmt: skip
linear(
    "P13", "textbook/mwem.py::_run_locked", "counts are released bare",
    "measured = float(noise.add(float(counted[worst]), ledger.charge(measurement, why=\"mwem: measurement\")))",
    "ledger.charge(measurement, why=\"mwem: measurement\")\n        measured = float(counted[worst])",
    MWEM + "measurements_are_the_releases_in_the_ledger",
)  # fmt: skip
linear(
    "P14", "textbook/mwem.py::_run_locked", "the release stops at twice the error that its promise allows",
    "if abs(y) <= 2 * config.alpha * config.scale:", "if abs(y) <= 4 * config.alpha * config.scale:",
    MWEM + "an_error_of_three_alpha_does_not_stop_it_and_one_of_alpha_does",
)  # fmt: skip
linear(
    "P15", "textbook/mwem.py::_scores", "scores carry rounding that depends on the data",
    "expected = np.clip(np.floor(believed / steps + 0.5), 0, counting.LARGEST) * steps", "expected = believed",
    MWEM + "scores_are_whole_steps_so_that_no_rounding_depends_on_the_data",
)  # fmt: skip
linear(
    "P16", "textbook/mwem.py::MWEMConfig.error", "2α is promised where 3α is proved",
    "return 3 * self.alpha", "return 2 * self.alpha",
    MWEM + "all_choices_and_measurements_are_right_to_within_alpha_but_for_beta",
)  # fmt: skip
linear(
    "P17", "textbook/mwem.py::_calibrate", "the choice is right only for one round, for the union over rounds is forgotten",
    "E = 2 * math.log(2 * queries * T / beta) / CHOICE", "E = 2 * math.log(2 * queries / beta) / CHOICE",
    MWEM + "all_choices_and_measurements_are_right_to_within_alpha_but_for_beta",
)  # fmt: skip
linear(
    "P18", "textbook/small_db.py::release", "a database is chosen for half of what a row does to its score",
    "allowance.choice(m / unit) if epsilon is None else Exponential(m / unit, epsilon)",
    "allowance.choice(m / unit / 2) if epsilon is None else Exponential(m / unit / 2, epsilon)",
    SMALL_DB + "the_score_moves_by_at_most_the_sensitivity_it_is_billed_for",
)  # fmt: skip
linear(
    "P19", "textbook/small_db.py::_distances", "the score is that of the best query, not of the worst",
    "np.abs(target - n * held).max(axis=1)", "np.abs(target - n * held).min(axis=1)",
    SMALL_DB + "databases_are_drawn_from_exactly_the_exponential_mechanism",
)  # fmt: skip
linear(
    "P20", "textbook/multiplicative_weights.py::update_bound", "four times too few updates are planned",
    '"hoeffding": 2 * alpha**2}', '"hoeffding": 8 * alpha**2}',
    EXPERTS + "algorithm_5_answers_every_query_within_alpha_in_at_most_the_bounded_number_of_updates",
    EXPERTS + "hoeffdings_step_allows_eight_times_fewer_updates_than_the_papers",
)  # fmt: skip
linear(
    "P21", "textbook/multiplicative_weights.py::step_size", "a step so long that an update need not teach",
    '"hoeffding": 4 * alpha}', '"hoeffding": 12 * alpha}',
    EXPERTS + "the_potential_falls_by_what_theorem_4_10_says_at_every_mistake",
)  # fmt: skip
linear(
    "P22", "textbook/multiplicative_weights.py::penalty", "mass is taken from where too little is",
    "return query if overshoots else 1 - query", "return 1 - query if overshoots else query",
    EXPERTS + "an_update_moves_the_answer_towards_the_truth_and_nothing_else_about_it_matters",
)  # fmt: skip
linear(
    "P27", "textbook/noisy_mirror_descent.py::noise_in_dual_norm", "noise in all coordinates counts as noise in one",
    "return float(np.trace(Σ))", "return float(np.diag(Σ).max())",
    NOISY + "the_noise_of_a_gradient_is_at_most_what_is_stated",
)  # fmt: skip
linear(
    "P28", "textbook/scq.py::population_rows", "the rows are those of the paper's slip, for half of the monitor's queries",
    "1024 * math.log(2 * queries / beta)", "1024 * math.log(queries / beta)",
    SCQ + "theorem_11_expectations_are_within_alpha_of_the_population_under_an_adaptive_analyst",
)  # fmt: skip
linear(
    "P23", "textbook/bounds.py::pmw_rows", "the rows of Theorem 4.14 are those of the book's slip",
    "return 36 * ln_x * union / (epsilon * alpha**3)", "return 32 * ln_x * union / (epsilon * alpha**3)",
    BOUNDS + "theorem_4_14_has_the_corrected_constant_36",
)  # fmt: skip
linear(
    "P24", "textbook/bounds.py::small_db_size", "a small database is too small for its promise",
    "return math.ceil(math.log(max(queries, 3)) / alpha**2)", "return math.ceil(math.log(max(queries, 3)) / alpha)",
    BOUNDS + "the_small_database_has_the_size_of_lemma_4_3",
)  # fmt: skip
linear(
    "P25", "research/games.py::linear_error", "the accuracy game sees no error",
    "return abs(query.dot(data.marginal(query.attributes)) / data.rows - answer.value)", "return 0.0",
    THEOREMS + "the_game_sees_a_mechanism_with_a_tenth_of_the_rows_fail",
)  # fmt: skip
linear(
    "P26", "research/games.py::ThresholdTranscript.wrong", "the threshold game forgives a ⊥ that was wrong",
    "(turn.value >= alpha and not turn.above) or ", "",
    PMW + "the_threshold_game_counts_both_ways_to_be_wrong",
)  # fmt: skip

convex = Writer("convex", "textbook/")
convex(
    "C01", "convex_pmw.py::_calibrate", "err is taken to move by S where a row is replaced",
    "    Δ = budget.bounded_sum(S) + 2 * τ\n", "    Δ = S + 2 * τ\n",
    CONVEX + "all_rounds_together_cost_the_budget_and_no_more",
)  # fmt: skip
convex(
    "C02", "convex_pmw.py::log_factor", "the hypothesis is moved away from the data, as the paper prints it",
    "return -config.eta * min(1.0", "return config.eta * min(1.0",
    CONVEX + "learning_from_the_oracle_moves_the_hypothesis_toward_the_data",
)  # fmt: skip
convex(
    "C03", "convex_pmw.py::step_size", "η is a tenth of the theorem's",
    '"hoeffding": 4.0}[step] * bound**2)', '"hoeffding": 40.0}[step] * bound**2)',
    CONVEX + "a_step_has_the_length_that_the_bound_on_updates_is_proved_for",
)  # fmt: skip
convex(
    "C04", "convex_pmw.py::ConvexPMWConfig.threshold", "the guard is silent up to twice the error that the theorem allows",
    "return 0.75 * self.alpha * self.scale", "return 1.5 * self.alpha * self.scale",
    CONVEX + "the_guard_is_right_between_half_of_alpha_and_alpha",
)  # fmt: skip
convex(
    "C05", "convex_pmw.py::excess_in", "a loss is answered whose err a row moves by more than the guard is billed for",
    "if excess is None or grid < excess.unit or excess.sensitivity(grid) > config.guard.sensitivity:", "if excess is None:",
    CONVEX + "a_loss_whose_error_moves_by_more_than_the_guard_is_billed_for_is_refused",
)  # fmt: skip
convex(
    "C06", "convex_pmw.py::require_rows", "a table of fewer rows than the noise is for is accepted",
    'if ledger.budget.neighbours == "replace" and data.rows < config.scale:', "if False:",
    CONVEX + "a_table_of_fewer_rows_than_were_configured_is_refused",
)  # fmt: skip
convex(
    "C07", "convex_pmw.py::_calibrate", "the rounds cost more than the budget",
    "each = share * budget.total / T", "each = 2 * share * budget.total / T",
    CONVEX + "all_rounds_together_cost_the_budget_and_no_more",
)  # fmt: skip
convex(
    "C08", "convex_pmw.py::rows_of", "the private number of rows is used where only its estimate is public",
    'return float(data.rows) if ledger.budget.neighbours == "replace" else config.scale', "return float(data.rows)",
    CONVEX + "under_add_remove_the_number_of_rows_is_never_read",
)  # fmt: skip
convex(
    "C09", "convex_offline.py::_run_locked", "the stop of an offline release reads the exact error",
    "stopped = noise.add(float(errors[worst]), measured) <=", "stopped = float(errors[worst]) <=",
    CONVEX + "the_stop_of_an_offline_release_is_decided_by_a_measurement",
)  # fmt: skip
convex(
    "C10", "convex_offline.py::_run_locked", "an offline release stops at twice the error that its promise allows",
    "<= 0.625 * online.alpha * online.scale", "<= 1.25 * online.alpha * online.scale",
    CONVEX + "the_stop_of_an_offline_release_is_decided_by_a_measurement",
)  # fmt: skip
convex(
    "C11", "oracles.py::NoisyGradientDescentOracle._plan_steps", "the steps of noisy gradient descent lack √T",
    "once * math.sqrt(T), self.diameter", "once, self.diameter",
    CONVEX + "all_rounds_together_cost_the_budget_and_no_more",
)  # fmt: skip
convex(
    "C12", "oracles.py::NoisyGradientDescentOracle.answer", "noisy gradient descent has no noise",
    "noisy = noise.add(sums.at(theta, counts), receipt)  # Σ∇ℓ + b_t", "noisy = sums.at(theta, counts)",
    CONVEX + "the_oracle_is_charged_before_it_draws_and_its_event_is_what_it_draws_from",
)  # fmt: skip
convex(
    "C13", "oracles.py::OutputPerturbationOracle.plan", "output perturbation has half its noise",
    "change = 2 * L / (rows * σ)", "change = L / (rows * σ)",
    CONVEX + "an_oracle_is_billed_for_what_its_theorem_says_of_neighbours",
)  # fmt: skip
convex(
    "C14", "oracles.py::RegularizedOutputPerturbationOracle.plan", "regularised output perturbation has half its noise under replace",
    "change = budget.gradient(L) / Λ", "change = L / Λ",
    CONVEX + "an_oracle_is_billed_for_what_its_theorem_says_of_neighbours",
)  # fmt: skip
convex(
    "C15", "oracles.py::OutputPerturbationOracle.answer", "output perturbation releases the minimum itself",
    "return over.project(noise.add(found, receipt))", "return over.project(found)",
    CONVEX + "the_oracle_is_charged_before_it_draws_and_its_event_is_what_it_draws_from",
)  # fmt: skip
convex(
    "C16", "oracles.py::NoisyGradientDescentOracle.certain", "gradients are summed whose rounding is not billed",
    "return sums.are_certain and sums.sensitivity + math.sqrt(risk.dimension) * each.grid <= each.sensitivity", "return True",
    CONVEX + "gradients_that_a_row_moves_by_more_than_the_plan_is_billed_for_are_not_certain",
)  # fmt: skip
convex(
    "C17", "oracles.py::require_at_most", "a loss of longer gradients than configured is accepted",
    "if not found <= stated * (1 + 1e-12):", "if False:",
    CONVEX + "a_loss_beyond_any_of_an_oracles_constants_is_refused",
)  # fmt: skip

convex(
    "C31", "localized_oracle.py::LocalizedOracle._plan_phases", "a row is taken to move the minimizer of a phase half as far",
    "change = 2 * L / (rows * m)", "change = L / (rows * m)",
    CHOICE + "a_unit_is_as_far_as_one_row_moves_the_minimizer_of_its_phase",
)  # fmt: skip
convex(
    "C32", "localized_oracle.py::LocalizedOracle.answer", "the minimizer of a phase is released without noise",
    "phase.unit * noise.add((found - center) / phase.unit, receipt)", "(found - center)",
    CHOICE + "the_answers_of_the_localized_oracle_are_within_its_bound",
)  # fmt: skip
convex(
    "C33", "oracle_choice.py::OracleChoice.plan", "the promise is that of the easiest of the declared losses",
    "if worst is None or best.error + best.deficit > worst.error + worst.deficit:", "if worst is None or best.error + best.deficit < worst.error + worst.deficit:",
    CHOICE + "a_choice_promises_for_every_loss_the_least_that_one_of_its_oracles_gives",
)  # fmt: skip

solver = Writer("convex", "convex/")
solver(
    "C20", "solver/excess.py::Excess.most", "err on the data moves twice as far as it is billed for",
    "else self.bound + self.gain\n", "else self.bound\n",
    EXCESS + "one_row_moves_the_value_by_no_more_than_is_billed",
    EXCESS + "some_row_moves_the_value_by_nearly_what_is_billed",
)  # fmt: skip
solver(
    "C21", "solver/excess.py::Excess.units", "the minimum on the data is found 200 times too loosely for its bill",
    "found = private_minimizer(self.surrogate, counts, self.gap / self.rows)", "found = private_minimizer(self.surrogate, counts, 200 * self.gap / self.rows)",
    EXCESS + "the_minimum_is_looked_for_as_near_as_is_billed_and_a_row_of_the_guard_is_all_that_one_moves",
)  # fmt: skip
solver(
    "C22", "solver/excess.py::per_row", "the guard's value moves by two rows where one changes",
    "return math.ceil(excess.most * (1 + 4 * finest))", "return math.ceil(excess.most / 2)",
    EXCESS + "the_minimum_is_looked_for_as_near_as_is_billed_and_a_row_of_the_guard_is_all_that_one_moves",
)  # fmt: skip
solver(
    "C60", "solver/excess.py::_range", "a record may lose more than its loss is said to rise by",
    "largest = float(risk.loss.value(ends, risk.labels[None, :]).max())", "largest = float(risk.loss.value(ends / 2, risk.labels[None, :]).max())",
    EXCESS + "no_record_loses_or_gains_more_than_is_said_of_one_theta",
)  # fmt: skip
solver(
    "C23", "solver/excess.py::Excess.units", "one cell's loss is not held to S",
    "F = np.clip(np.rint(each), -self.bound, self.gain).astype(np.int64)", "F = np.rint(each).astype(np.int64)",
    EXCESS + "a_vouched_loss_that_spikes_is_held_to_its_scale",
)  # fmt: skip
solver(
    "C24", "solver/excess.py::Excess.units", "where n is private a huge table's value moves by more than is billed",
    "return min(V, self.bound * math.floor(self.rows - n)) if self.private_rows else V", "return V",
    EXCESS + "larger_tables_than_were_foreseen_have_a_value_that_moves_as_billed",
)  # fmt: skip
solver(
    "C25", "solver/gradient_sums.py::GradientSums.sensitivity", "sums of gradients have half their sensitivity",
    "return self.budget.gradient(self._lipschitz) * taper_factor(self.budget) + 2 * self._rounded",
    "return self._lipschitz * taper_factor(self.budget) + 2 * self._rounded",
    EXCESS + "some_row_moves_a_sum_of_gradients_by_nearly_what_is_billed",
)  # fmt: skip
solver(
    "C26", "solver/private_minimum.py::certain_value", "a minimum passes for certain that some table has not",
    "    return floor <= tolerance / 2 and _accelerated_steps(surrogate, tolerance) <= _most_steps(surrogate)", "    return True",
    "convex/test_private_minimum.py::test_public_facts_tell_where_a_value_is_not_certain_for_every_table",
)  # fmt: skip
solver(
    "C27", "solver/private_minimum.py::_by_newton", "an unproven Newton step passes for the minimum",
    "return proven.theta if proven.gap <= tolerance else None", "return proven.theta",
    "convex/test_private_minimum.py::test_a_method_that_stops_early_is_followed_by_the_proven_one",
)  # fmt: skip
solver(
    "C28", "solver/certificate.py::Best._below", "a tenth of the proven gap is stated as the gap",
    "bounds.append(float(g @ (theta - self.over.minimize(g))))", "bounds.append(0.1 * float(g @ (theta - self.over.minimize(g))))",
    "convex/test_public_minimum.py::test_an_early_stop_says_how_far_it_is",
    "convex/test_public_minimum.py::test_a_smooth_loss_is_solved_to_1e_8_and_no_point_of_the_set_is_lower",
)  # fmt: skip
solver(
    "C29", "losses/custom.py::CustomObjective.gradient", "a user's gradients are longer on the data than declared",
    "clip = np.minimum(1.0, self.risk.loss.lipschitz / np.maximum(lengths, 1e-300))", "clip = np.ones_like(lengths)",
    "convex/test_losses.py::test_on_data_a_gradient_beyond_its_declared_norm_is_clipped_without_a_word",
)  # fmt: skip
solver(
    "C30", "minimize.py::BoundMinimize.is_trusted", "a loss that says it equals a vouched one is vouched for",
    "any(self.risk.loss is loss for loss in losses)", "any(self.risk.loss == loss for loss in losses)",
    "attacks/test_attacks_convex.py::test_functions_that_say_they_are_equal_to_vouched_ones_are_not_vouched",
)  # fmt: skip

sampling = Writer("sampling", "textbook/")
sampling(
    "QS01", "subsampled.py::_require_rows", "a plan for a larger table is billed less than it loses",
    "event.sample.rows != rows:", "event.sample.rows < rows:",
    SUBSAMPLED + "a_plan_for_more_rows_than_there_are_is_refused_for_it_would_be_billed_too_little",
)  # fmt: skip
sampling(
    "QS02", "subsampled.py::plan", "answers are off by more than they say: the sample's share of the error is forgotten",
    "    left = alpha - GRID - sampling_error(chosen, failure / 2, of)\n", "    left = alpha - GRID\n",
    SUBSAMPLED + "noise_has_the_scale_that_the_accuracy_leaves_and_the_sample_the_size_of_theorem_5",
)  # fmt: skip
sampling(
    "QS03", "subsampled.py::for_population", "a population is promised what holds of the sample alone (Theorem 5 as printed)",
    "found = plan(rows, alpha=alpha / 8, beta=alpha * beta / 16, queries=queries, replace=replace)",
    "found = plan(rows, alpha=alpha, beta=beta, queries=queries, replace=replace)",
    SUBSAMPLED + "theorem_5_asks_for_an_eighth_of_alpha_on_the_sample_and_refuses_a_table_that_is_too_small",
)  # fmt: skip
sampling(
    "QS04", "subsampled.py::_total", "a sum of values is released at twice its sensitivity",
    "return int(valued(drawn).sum()) if drawn.size else 0", "return 2 * int(valued(drawn).sum()) if drawn.size else 0",
    EXACT_SAMPLING + "one_row_moves_what_is_drawn_by_no_more_than_is_billed",
)  # fmt: skip
sampling(
    "QS05", "scq.py::interval.excess", "an interval holds for one moment only, and whoever stops by looking is misled",
    "return mixed - likelihood - math.log(1 / beta)",
    "return yes * math.log(max(yes, 1e-9) / asked) + no * math.log(max(no, 1e-9) / asked) - likelihood - math.log(1 / beta) / 2",
    SCQ + "an_interval_holds_at_every_moment_so_that_one_may_stop_by_looking",
)  # fmt: skip
sampling(
    "QS06", "scq.py::honest", "a count leans towards one half by the lies",
    "return min(1.0, max(0.0, (said - flip) / (1 - 2 * flip)))", "return min(1.0, max(0.0, said))",
    SCQ + "answers_average_to_within_alpha_of_the_table",
)  # fmt: skip
sampling(
    "QS12", "scq.py::FlipInterval.error", "the bar of flips is half their interval, though their value is not in its middle",
    "return max(self.high - self.value, self.value - self.low)", "return (self.high - self.low) / 2",
    "attacks/test_attacks_adaptive_bars.py::test_the_bar_of_flips_reaches_the_farther_end_of_their_interval",
)  # fmt: skip
sampling(
    "QS07", "scq.py::sample_yes_no", "a flip is billed for a larger table",
    "    if config.rows != rows:\n", "    if config.rows < rows:\n",
    SCQ + "events_are_refused_where_their_loss_is_not_proven",
)  # fmt: skip
sampling(
    "QS08", "descent_by_queries.py::descend", "iterates leave the set (Algorithm 4 as printed)",
    "theta = risk.over.project(theta - plan.step(t) * gradient)", "theta = (theta - plan.step(t) * gradient)",
    DESCENT + "iterates_are_projected_where_the_listing_forgets_to",
)  # fmt: skip
sampling(
    "QS09", "descent_by_queries.py::minimize", "a descent that cannot be paid for is broken off in its course",
    "if cost > ledger.remaining * (1 + 1e-12):", "if False:",
    DESCENT + "all_of_it_is_refused_before_anything_is_asked",
)  # fmt: skip
sampling(
    "QS10", "descent_by_queries.py::ClippedRisk.gradient.valued", "a coordinate is not what its name says",
    "* X[:, j], self.coordinate)", "* X[:, 0], self.coordinate)",
    DESCENT + "a_coordinate_is_a_statistical_query_whose_average_is_the_gradients",
)  # fmt: skip

sampling(
    "QS11", "subsampled.py::answer", "a function decides by a row's values what the ledger shows",
    "        with ledger.closed():\n            total = _total(valued, drawn)\n", "        total = _total(valued, drawn)\n",
    SAMPLING + "a_function_that_asks_the_session_in_turn_is_charged_nothing_and_refused",
)  # fmt: skip

judges = Writer("judges", "")
judges(
    "J01", "audit/bounds.py::epsilon_lower_bound", "the audit finds nothing",
    "return max(0.0, forward, backward)", "return 0.0",
    AUDIT + "laplace_noise_is_audited_close_to_its_loss",
)  # fmt: skip
judges(
    "J02", "audit/bounds.py::_bound", "the audit does not take δ off",
    "return math.log((p - delta) / q) if p > delta else -math.inf", "return math.log(p / q) if p > delta else -math.inf",
    AUDIT + "delta_is_taken_off_before_the_ratio",
)  # fmt: skip
judges(
    "J03", "audit/bounds.py::epsilon_lower_bound", "the audit's bounds are wrong four times as often as stated",
    "error = (1 - confidence) / 4  # two directions, two probabilities each", "error = 8 * (1 - confidence)",
    AUDIT + "the_bound_of_an_audit_is_that_of_clopper_and_pearson_at_a_quarter_of_its_error",
)  # fmt: skip

TEXTBOOK = [
    *guard.mutants, *linear.mutants, *convex.mutants, *solver.mutants, *sampling.mutants, *judges.mutants,
]  # fmt: skip
