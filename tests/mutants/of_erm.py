"""Mutants of one-shot models from arrays."""

from __future__ import annotations

from mutant import Writer

PROBLEM = "erm/test_erm_problem.py::test_"
VALUES = "erm/test_erm_values.py::test_"
SOLVERS = "erm/test_solvers.py::test_"
MIRROR = "erm/test_erm_mirror_descent.py::test_"
FRANK_WOLFE = "erm/test_erm_frank_wolfe.py::test_"
LASSO = "erm/test_erm_lasso.py::test_"
PERTURBATION = "erm/test_erm_perturbation.py::test_"
SGD = "erm/test_erm_sgd.py::test_"
WHITENED = "erm/test_erm_whitened_descent.py::test_"
AUTO = "erm/test_erm_auto.py::test_"
ESTIMATORS = "erm/test_erm_estimators.py::test_"
SEEDS = "privacy/test_seeds.py::test_"
PROMISES = "erm/test_erm_promises.py::test_"
WORKERS = "erm/test_erm_spark_workers.py::test_"
SPARK = "erm/test_erm_spark.py::test_"
EXACT = "exact/test_exact_erm.py::test_"

erm = Writer("erm", "erm/")
erm(
    "E01", "rows.py::in_whole_units", "rows are not clipped to their bound",
    "return _truncate(_clip_rows(X, bound, norm), unit)", "return _truncate(X, unit)",
    PROBLEM + "rows_beyond_the_bound_are_clipped_and_rows_within_it_are_kept",
)  # fmt: skip
erm(
    "E02", "rows.py::_truncate", "features are rounded up, beyond the bound of their row",
    "return np.trunc(X / unit)", "return np.sign(X) * np.ceil(np.abs(X / unit))",
    PROBLEM + "rows_beyond_the_bound_are_clipped_and_rows_within_it_are_kept",
    PROBLEM + "one_row_moves_the_sum_of_gradients_by_no_more_than_the_sensitivity_and_some_row_moves_it_as_far",
)  # fmt: skip
erm(
    "E03", "rows.py::_clip_rows", "rows of a sparse matrix are clipped to twice their bound",
    "return sp.csr_array((relative * _scales(lengths, safe, bound)[row],", "return sp.csr_array((relative * _scales(lengths, safe, 2 * bound)[row],",
    PROBLEM + "rows_beyond_the_bound_are_clipped_and_rows_within_it_are_kept",
    FRANK_WOLFE + "an_entry_stored_in_parts_is_clipped_as_a_whole",
)  # fmt: skip
erm(
    "E04", "problem.py::Problem.prepare_labels", "labels are not clipped to their bound",
    "return np.clip(self.loss.as_labels(raw), -self.label_bound, self.label_bound)", "return self.loss.as_labels(raw)",
    PROBLEM + "targets_are_clipped_to_their_bound",
)  # fmt: skip
erm(
    "E05", "problem.py::Problem.gradient_change", "a replaced row is billed as one that goes",
    "return self.budget.gradient(self.lipschitz)", "return self.lipschitz",
    PROBLEM + "one_row_moves_the_sum_of_gradients_by_no_more_than_the_sensitivity_and_some_row_moves_it_as_far",
)  # fmt: skip
erm(
    "E06", "problem.py::Problem.row_l2", "rows bounded entry by entry are taken to be as short as one entry",
    'return self.row_bound * (math.sqrt(self.p) if self.norm == "linf" else 1.0)', "return self.row_bound",
    PROMISES + "a_row_at_every_bound_of_its_entries_is_as_long_as_is_billed",
)  # fmt: skip
erm(
    "E07", "problem.py::Problem.slopes_in_units", "slopes are not held at their bound",
    "return np.clip(np.trunc(np.nan_to_num(slopes) / self.slope_unit), -top, top)", "return np.trunc(np.nan_to_num(slopes) / self.slope_unit)",
    PROMISES + "no_slope_counts_for_more_than_its_bound",
)  # fmt: skip
erm(
    "E08", "problem.py::Problem.capped_sum", "where n is private sums of many more rows than guessed are not cut, and their rounding is heard of",
    "if cut and rows > self.most_rows:", "if False:",
    VALUES + "with_thousands_of_times_the_guessed_rows_sums_are_exact_and_cut",
)  # fmt: skip
erm(
    "E09", "problem.py::public_rows", "where n is private it must be right",
    "return int(expected_rows)\n", "return max(int(expected_rows), count)\n",
    PROMISES + "with_a_private_n_only_the_guess_of_n_is_seen",
)  # fmt: skip
erm(
    "E10", "exact_sums.py::row_products", "a row's last bits depend on how many rows come before it",
    "np.vecdot(np.ascontiguousarray(X), vector) if isinstance(X, np.ndarray) else X @ vector", "X @ vector",
    PROBLEM + "a_row_that_goes_leaves_the_scores_of_the_others_as_they_were_to_the_last_bit",
    VALUES + "a_row_that_goes_leaves_even_a_single_other_as_it_was_to_the_last_bit_whatever_the_order_in_memory",
)  # fmt: skip
erm(
    "E11", "exact_sums.py::exact_sum", "sums of many rows are rounded, by what other rows hold",
    "if n == 0 or room >= bits_of_V:", "if True:",
    VALUES + "sums_of_whole_numbers_are_those_of_whole_numbers",
)  # fmt: skip
erm(
    "E12", "exact_sums.py::_carry", "a carry is lost",
    "sums[d], sums[d + 1] = sums[d] - (carry << width), sums[d + 1] + carry", "sums[d] = sums[d] - (carry << width)",
    VALUES + "sums_of_whole_numbers_are_those_of_whole_numbers",
)  # fmt: skip
erm(
    "E13", "values.py::as_number", "one value that is no number raises, and is heard of",
    "    except Exception:  # a user-defined number may raise anything\n        return np.nan", "    except ZeroDivisionError:\n        return np.nan",
    VALUES + "a_number_that_breaks_is_missing",
)  # fmt: skip
erm(
    "E14", "values.py::_finite", "an infinite value makes the whole fit NaN",
    "np.nan_to_num(values, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)", "values",
    VALUES + "rows_without_end_are_clipped_along_their_infinite_entries",
)  # fmt: skip
erm(
    "E15", "values.py::_whole_entries", "an entry of a sparse matrix in parts is clipped part by part",
    "        if fresh.has_canonical_format:  # looked up afresh, for a flag may be out of date\n            return fresh", "        return fresh",
    VALUES + "an_entry_of_a_sparse_matrix_that_is_stored_in_parts_is_read_as_their_sum",
    FRANK_WOLFE + "an_entry_stored_in_parts_is_clipped_as_a_whole",
)  # fmt: skip
erm(
    "E16", "solver.py::solve", "a fit without a seed draws from seed 0",
    "Noise() if seed is None else Seeded(seed)", "Seeded(seed or 0)",
    SEEDS + "a_fit_draws_from_no_seed_unless_one_is_given",
)  # fmt: skip
erm(
    "E17", "solver.py::carry_out", "of all events of a call the first is charged",
    "receipt = allowance.charge(*plan.events,", "receipt = allowance.charge(*plan.events[:1],",
    SOLVERS + "all_events_are_charged_before_the_first_draw_and_each_is_drawn_once",
)  # fmt: skip
erm(
    "E18", "solver.py::carry_out", "a fit is not in the log",
    "    allowance.ledger.record(receipt, theta, noise.private)\n", "",
    SOLVERS + "the_log_has_what_came_out_and_whether_a_seed_was_used",
)  # fmt: skip
erm(
    "E19", "auto.py::Auto.plan", "the solver of the largest risk is run",
    "return min(promises(problem, amount), key=lambda promise: promise.risk).plan", "return max(promises(problem, amount), key=lambda promise: promise.risk).plan",
    AUTO + "by_theory_it_runs_the_solver_of_the_least_promise",
)  # fmt: skip
erm(
    "E20", "estimators.py::LinearModel._payment", "every class spends the whole budget",
    'return {"budget": Accountant(self.budget), "spend": self.budget.total / parts}', 'return {"budget": self.budget}',
    ESTIMATORS + "several_classes_share_one_budget",
)  # fmt: skip
erm(
    "E63", "estimators.py::LinearModel._payment", "a fit is not charged to the ledger it was given",
    'return {"budget": self.ledger, "spend"', 'return {"budget": Accountant(self.budget), "spend"',
    ESTIMATORS + "every_fit_is_charged_to_the_ledger_whichever_clone_it_is_of",
)  # fmt: skip
erm(
    "E64", "estimators.py::LinearModel._require_payer", "a fit of several classes spends what is left before it is refused",
    "if self.budget.total > self.ledger.remaining * (1 + 1e-12):", "if False:",
    ESTIMATORS + "a_fit_that_does_not_fit_spends_nothing",
)  # fmt: skip
erm(
    "E21", "estimators.py::code_labels.code_of", "a label that is no stated class raises, and is heard of",
    'spelt.get(_text(label) or "", 0)', 'spelt[_text(label) or ""]',
    VALUES + "a_label_that_is_no_stated_class_is_of_the_first_one",
)  # fmt: skip

solvers = Writer("erm", "erm/solvers/")
solvers(
    "E30", "descent.py::_best_weights", "the risk that is stated leaves out the noise",
    "used += V * a[t] ** 2 / (2 * (strength - β * a[t] ** 2 / A))", "used += 0.0 * A",
    MIRROR + "the_schedules_bound_holds_for_a_quadratic_in_expectation",
)  # fmt: skip
solvers(
    "E31", "descent.py::descend", "what is released is the last step and not the average",
    "w = (A * w + a * (θ if plan.smooth else before)) / A_next", "w = θ",
    PROMISES + "descent_averages_its_steps_as_its_bound_says",
)  # fmt: skip
solvers(
    "E32", "frank_wolfe.py::descend", "vertices are chosen with half their noise",
    "draw.choose(-over.vertex_scores(g) / unit)", "draw.choose(-2 * over.vertex_scores(g) / unit)",
    PROMISES + "one_row_moves_the_scores_of_frank_wolfe_by_what_is_billed",
)  # fmt: skip
solvers(
    "E33", "frank_wolfe.py::descend", "steps do not converge, as printed",
    "            mu = 2 / (t + 2)\n", "            mu = 1 / (T + 2)\n",
    PROMISES + "frank_wolfe_leaves_its_start_behind",
)  # fmt: skip
solvers(
    "E34", "frank_wolfe.py::best_steps", "the risk that is stated leaves out the noise",
    "return Steps(steps, fit / (steps + 2) + noise * steps**power)", "return Steps(steps, fit / (steps + 2))",
    PROMISES + "the_bound_of_frank_wolfe_is_that_of_the_theorem",
)  # fmt: skip
solvers(
    "E35", "frank_wolfe.py::score_sensitivity", "rounding in scores is not billed",
    "rounding = problem.n * terms * _ROUNDING", "rounding = 0.0",
    PROMISES + "the_bound_of_frank_wolfe_is_that_of_the_theorem",
)  # fmt: skip
solvers(
    "E36", "frank_wolfe.py::plan_steps", "all steps together cost T times the budget where δ = 0",
    "ε0 = available / steps.iterations if pure", "ε0 = available if pure",
    PROMISES + "all_choices_of_frank_wolfe_cost_the_budget_and_no_more",
)  # fmt: skip
solvers(
    "E37", "frank_wolfe_general.py::FrankWolfeGeneral.run", "gradients have no noise",
    "noisy = draw.add(problem.gradient(theta)) + problem.n * problem.loss.ridge * theta", "noisy = problem.gradient(theta) + problem.n * problem.loss.ridge * theta",
    SOLVERS + "all_events_are_charged_before_the_first_draw_and_each_is_drawn_once",
)  # fmt: skip
solvers(
    "E38", "frank_wolfe_general.py::FrankWolfeGeneral.plan", "T steps have the noise of one",
    "(amount.fine_gaussian(problem.gradient_change, p, T),) * T", "(amount.fine_gaussian(problem.gradient_change, p),) * T",
    SOLVERS + "a_budget_pays_for_one_call_and_its_epsilon_is_not_exceeded",
)  # fmt: skip
solvers(
    "E39", "mirror_descent.py::MirrorDescent.run.gradient", "gradients have no noise",
    "return draw.add(problem.gradient(theta)) / n + ridge * theta", "return problem.gradient(theta) / n + ridge * theta",
    SOLVERS + "all_events_are_charged_before_the_first_draw_and_each_is_drawn_once",
)  # fmt: skip
solvers(
    "E40", "mirror_descent.py::MirrorDescent.plan", "half the noise is billed for and drawn",
    "event = amount.fine_gaussian(problem.gradient_change, problem.p, steps.count)", "event = amount.fine_gaussian(problem.gradient_change / 2, problem.p, steps.count)",
    MIRROR + "the_noise_is_the_sensitivity_times_the_root_of_the_steps_over_mu",
)  # fmt: skip
solvers(
    "E41", "noisy_sgd.py::NoisySgd.run.gradient", "every row is in every step, though amplification is billed",
    "noisy = draw.add(problem.gradient(theta, draw.sample(problem.X.shape[0])))", "draw.sample(problem.X.shape[0])\n            noisy = draw.add(problem.gradient(theta))",
    PROMISES + "a_step_of_sgd_sees_the_rows_of_its_sample_alone_and_scales_them_to_all",
)  # fmt: skip
solvers(
    "E42", "noisy_sgd.py::NoisySgd.plan", "half the noise is billed for and drawn",
    "steps=T, sensitivity=L, values=problem.p", "steps=T, sensitivity=L / 2, values=problem.p",
    PROMISES + "the_noise_of_sgd_is_for_the_longest_gradient_of_a_row",
)  # fmt: skip
solvers(
    "E43", "noisy_sgd.py::NoisySgd.run.gradient", "steps are a fraction of what they should be, and nothing is learned",
    "return noisy / expected + ridge * theta", "return noisy / problem.n + ridge * theta",
    PROMISES + "a_step_of_sgd_sees_the_rows_of_its_sample_alone_and_scales_them_to_all",
)  # fmt: skip
solvers(
    "E44", "objective_perturbation.py::ObjectivePerturbation.run", "how near the minimum was is not hidden",
    "return problem.over.project(draw.add(found))", "return problem.over.project(found)",
    SOLVERS + "all_events_are_charged_before_the_first_draw_and_each_is_drawn_once",
)  # fmt: skip
solvers(
    "E45", "objective_perturbation.py::ObjectivePerturbation.plan", "the tilt has half its noise",
    "tilt = Gaussian(problem.gradient_change, σ, grid_at_most(σ * (", "tilt = Gaussian(problem.gradient_change, σ / 2, grid_at_most(σ * (",
    SOLVERS + "a_budget_pays_for_one_call_and_its_epsilon_is_not_exceeded",
)  # fmt: skip
solvers(
    "E46", "objective_perturbation.py::ObjectivePerturbation.plan", "what hides the distance is for half of it",
    "apart = 2 * g * 1.001", "apart = g",
    PROMISES + "noise_on_a_minimum_pays_for_how_far_the_computed_one_is",
)  # fmt: skip
solvers(
    "E47", "objective_perturbation.py::risk_bound", "the risk that is stated leaves out the noise",
    "return (weight * radius**2 / 2 + min(p * sigma**2 / (2 * (weight + ridge)), sigma * width)) / n", "return weight * radius**2 / 2 / n",
    PROMISES + "the_bounds_of_perturbations_are_those_of_their_docstrings",
)  # fmt: skip
solvers(
    "E86", "objective_perturbation.py::ObjectivePerturbation.run", "the set is left to a projection of the minimum without it, and the risk that is stated is not one over the set",
    "found = minimum(problem, problem.over, plan", "found = minimum(problem, __import__('hedgerow').Unconstrained(), plan",
    PERTURBATION + "the_risk_of_objective_perturbation_is_bounded_where_the_set_binds",
)  # fmt: skip
solvers(
    "E87", "objective_perturbation.py::ObjectivePerturbation.plan", "the risk that is stated leaves out how far the last noise moves a point of a set",
    "bound += hidden_risk(problem, hide.sigma) + ", "bound += ",
    PROMISES + "the_bounds_of_perturbations_are_those_of_their_docstrings",
)  # fmt: skip
solvers(
    "E88", "objective_perturbation.py::ObjectivePerturbation.plan", "the bound is stated for points of the norm that was asked for, though the set has longer ones",
    "typical_radius(problem) if inside else reach, Λ - own", "reach, Λ - own",
    PERTURBATION + "a_radius_chooses_the_ridge_and_the_bound_stays_one_over_the_set",
)  # fmt: skip
solvers(
    "E89", "minimum.py::require_projection", "a minimum is proven by nearest points that a solver found, more or less",
    "    if isinstance(problem.over, Polytope):\n", "    if problem.p == 0:\n",
    PERTURBATION + "a_set_whose_nearest_points_are_a_solvers_outcome_is_refused_whatever_the_rows",
)  # fmt: skip
solvers(
    "E90", "minimum.py::_newton_exactly", "sums of very many like rows round by more than the proof of a minimum allows, and none is found",
    "g, z, s = _gradient(problem, θ, weight, tilt, is_exact=True)", "g, z, s = _gradient(problem, θ, weight, tilt)",
    VALUES + "rows_that_are_all_alike_leave_a_minimum_with_a_proof",
)  # fmt: skip
solvers(
    "E91", "minimum.py::_prove", "the nearest point to 0 is taken to be exact, though it is rounded",
    "float(max(np.linalg.norm(v), np.linalg.norm(point)))", "float(np.linalg.norm(v))",
    VALUES + "the_proof_allows_for_rounding_where_the_nearest_point_to_0_is_not_0",
)  # fmt: skip
solvers(
    "E92", "objective_perturbation.py::beyond", "a tilt longer than is allowed for costs more than a tiny delta",
    "return max(12.0, math.sqrt(2 * (math.log(2e9) - math.log(delta) + epsilon)))", "return 12.0",
    PROMISES + "a_tilt_longer_than_is_allowed_for_costs_next_to_nothing_of_any_delta[1.0-1e-40]",
)  # fmt: skip
solvers(
    "E48", "output_perturbation.py::_noise_on_minimum", "half the noise is billed for and drawn",
    "apart = problem.gradient_change / weight", "apart = problem.lipschitz / weight",
    PERTURBATION + "the_worst_neighbour_moves_the_minimum_by_the_sensitivity_that_is_billed",
)  # fmt: skip
solvers(
    "E49", "output_perturbation.py::_noise_on_minimum", "the distance of the computed minimum is not billed",
    "return amount.fine_gaussian(apart + 2 * g, problem.p), MinimumTarget(weight, g)", "return amount.fine_gaussian(apart, problem.p), MinimumTarget(weight, g)",
    PROMISES + "noise_on_a_minimum_pays_for_how_far_the_computed_one_is",
)  # fmt: skip
solvers(
    "E50", "output_perturbation.py::_noisy_minimum", "the minimum is released bare",
    "return draw.add(minimum(problem, problem.over, target.weight, np.zeros(problem.p), target.distance))",
    "return minimum(problem, problem.over, target.weight, np.zeros(problem.p), target.distance)",
    SOLVERS + "all_events_are_charged_before_the_first_draw_and_each_is_drawn_once",
)  # fmt: skip
solvers(
    "E51", "output_perturbation.py::risk_bound", "the risk that is stated is a tenth of the theorem's",
    "return (problem.lipschitz + Δ * problem.over.radius_l2(p)) * sigma * math.sqrt(p)", "return 0.1 * (problem.lipschitz + Δ * problem.over.radius_l2(p)) * sigma * math.sqrt(p)",
    PROMISES + "the_bounds_of_perturbations_are_those_of_their_docstrings",
)  # fmt: skip
solvers(
    "E52", "minimum.py::minimum", "a minimum that is not near enough passes",
    "            if proven <= distance:\n                return point\n            if proven < spread", "            if proven < math.inf:\n                return point\n            if proven < spread",
    VALUES + "the_least_distance_that_may_be_asked_for_is_reached",
    VALUES + "the_returned_point_is_as_close_as_asked_according_to_another_solver",
)  # fmt: skip
solvers(
    "E53", "minimum.py::_prove", "a tenth of the distance is proved",
    "return point, (float(np.linalg.norm(r)) * (1 + 1e-9) + float(slack)) / weight", "return point, (float(np.linalg.norm(r)) * 0.1) / weight",
    VALUES + "the_distance_that_is_proven_is_never_below_the_true_one",
)  # fmt: skip
solvers(
    "E54", "lasso.py::LassoSolver.plan", "a pure budget is refitted with noise it cannot pay for",
    "again = not amount.budget.pure if self.refit is None else self.refit", "again = self.refit is not False",
    LASSO + "a_pure_budget_runs_without_a_refit_and_refuses_one",
)  # fmt: skip
solvers(
    "E55", "sparse_refit.py::SHARES", "the lasso's parts cost twice the budget",
    "SHARES = (0.02, 0.49, 0.49)", "SHARES = (0.02, 0.98, 0.98)",
    LASSO + "the_events_are_fixed_before_a_feature_is_named_and_fit_the_budget",
)  # fmt: skip
solvers(
    "E56", "sparse_refit.py::refit_named", "coefficients leave the ball",
    "theta[S] = nearest(found, metric.moments, problem.over.radius_l1(problem.p))", "theta[S] = found",
    LASSO + "the_result_is_in_the_ball",
)  # fmt: skip
solvers(
    "E57", "whitened_descent.py::descend_whitened", "long rows are not held",
    "problem.gradient(A @ θ, weights=weights, cut=False)", "problem.gradient(A @ θ, cut=False)",
    PROMISES + "no_row_moves_a_release_of_whitened_descent_by_more_than_is_billed",
)  # fmt: skip
solvers(
    "E58", "whitened_descent.py::plan_noise", "second moments have the noise of add-remove under replace",
    "moments = amount.fine_gaussian(budget.marginal_l2() + scaled,", "moments = amount.fine_gaussian(1.0 + scaled,",
    WHITENED + "two_rows_second_moments_are_apart_by_no_more_than_is_billed",
)  # fmt: skip
solvers(
    "E59", "whitened_descent.py::label_event", "two sums of labels are billed as one",
    "return amount.fine_gaussian(math.sqrt(2) * problem.budget.linear(), 2, share=share)", "return amount.fine_gaussian(problem.budget.linear(), 2, share=share)",
    PROMISES + "two_sums_of_labels_are_billed_as_two",
)  # fmt: skip
solvers(
    "E60", "whitened_descent.py::metric_of", "second moments are released bare",
    "square[upper] = draw.add(gram[upper] * scale) / scale / problem.n", "square[upper] = gram[upper] / problem.n",
    SOLVERS + "all_events_are_charged_before_the_first_draw_and_each_is_drawn_once",
)  # fmt: skip
solvers(
    "E61", "whitened_descent.py::metric_of", "both halves of a symmetric matrix are billed as one",
    "scale = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))", "scale = np.where(upper[0] == upper[1], 1.0, 2.0)",
    PROMISES + "no_row_moves_a_release_of_whitened_descent_by_more_than_is_billed",
)  # fmt: skip
solvers(
    "E62", "whitened_descent.py::label_size", "labels' sizes are released bare",
    "noisy = draw.add(np.minimum(sums, problem.most_rows)) / problem.n", "noisy = np.minimum(sums, problem.most_rows) / problem.n",
    SOLVERS + "all_events_are_charged_before_the_first_draw_and_each_is_drawn_once",
)  # fmt: skip
erm(
    "E70", "exact_sums.py::Digits.add", "of rows in several places only the last block counts",
    "sums = [new + old for new, old in zip(sums, self.values, strict=True)]", "pass",
    SPARK + "digits_of_parts_add_up_to_the_sum_of_all_rows",
)  # fmt: skip
erm(
    "E71", "spark_rows.py::ClusterProblem._sum_on_workers.add_up", "what two workers summed is not added up",
    '.groupBy("place").sum("digit")', '.groupBy("place").max("digit")',
    SPARK + "the_model_is_that_of_the_same_rows_in_memory_to_the_last_bit",
)  # fmt: skip
erm(
    "E72", "spark_rows.py::_clip_batches", "rows on a cluster are not clipped to their bound",
    "rows = in_whole_units(X, problem.row_bound, problem.norm, problem.unit)", "rows = np.trunc(X / problem.unit)",
    WORKERS + "sums_of_parts_are_those_of_all_rows",
)  # fmt: skip
erm(
    "E73", "spark_rows.py::_keep_rows", "one row more of each person stays on a cluster than is paid for",
    "return rows.take(kept_rows(X, y, person, most))", "return rows.take(kept_rows(X, y, person, most + 1))",
    WORKERS + "rows_of_a_person_are_kept_as_in_memory",
)  # fmt: skip
erm(
    "E74", "spark_rows.py::_require_arithmetic", "a worker that rounds otherwise joins, and rows that move to it are heard of",
    "if arithmetic() != expected:", "if False:",
    WORKERS + "rows_are_numbered_by_how_their_worker_computes_and_others_are_refused",
)  # fmt: skip
erm(
    "E75", "problem.py::require_here", "a solver that needs rows here fits a table without rows",
    "if not problem.is_here:", "if False:",
    SPARK + "refusals_rest_on_public_facts_and_cost_nothing",
)  # fmt: skip
erm(
    "E76", "spark_rows.py::_texts", "one text that is no UTF-8 fails the call, and is heard of",
    'text.decode("utf-8", "replace")', 'text.decode("utf-8")',
    "attacks/test_attacks_blocks.py::test_a_text_that_is_no_text_fails_nothing",
)  # fmt: skip
erm(
    "E77", "spark_rows.py::_clip_batches", "a worker that rounds otherwise clips rows that others sum",
    "_require_arithmetic(arithmetic)  # here too", "pass  # here too",
    "attacks/test_attacks_blocks.py::test_a_worker_of_another_kind_keeps_nothing_that_others_sum",
)  # fmt: skip
solvers(
    "E78", "whitened_descent.py::descend_whitened", "a sum is cut before it is whitened: where more rows came than were guessed one row moves it by several times what is billed",
    "problem.gradient(A @ θ, weights=weights, cut=False)", "problem.gradient(A @ θ, weights=weights)",
    EXACT + "one_more_row_moves_sums_of_up_to_a_hundred_times_the_guessed_rows_by_no_more_than_is_billed[whitened_descent]",
)  # fmt: skip
solvers(
    "E79", "whitened_descent.py::whiten_sum", "a whitened sum grows with rows that nobody guessed, and so does its rounding",
    "return moved if length <= problem.most_rows else moved * (problem.most_rows / length)", "return moved",
    WHITENED + "rounding_in_the_whitened_sum_is_within_what_is_billed_for_any_number_of_rows",
)  # fmt: skip
solvers(
    "E80", "whitened_descent.py::metric_of", "the metric is stretched further than its arithmetic is billed for",
    "raised = np.clip(values, floor, max(_STEEPEST, floor))", "raised = np.maximum(values, floor)",
    WHITENED + "the_metric_is_no_more_stretched_than_its_arithmetic_is_billed_for",
)  # fmt: skip
solvers(
    "E81", "whitened_descent.py::_rounding_distance", "rounding of sums of more rows than were guessed is not billed",
    "condition = math.sqrt(max(_STEEPEST / floor, 1.0))", "condition = 0.0",
    WHITENED + "rounding_in_the_whitened_sum_is_within_what_is_billed_for_any_number_of_rows",
)  # fmt: skip
solvers(
    "E82", "whitened_descent.py::whiten_sum", "a sum is pulled into a ball of another metric than the one that is billed",
    "    moved = metric.A @ total / (problem.slope_bound * metric.length)\n    length = float(np.linalg.norm(moved))\n",
    "    moved = metric.A @ total / (problem.slope_bound * metric.length)\n    length = float(np.linalg.norm(total)) / problem.lipschitz\n",
    EXACT + "one_more_row_moves_sums_of_up_to_a_hundred_times_the_guessed_rows_by_no_more_than_is_billed[whitened_descent]",
)  # fmt: skip
erm(
    "E83", "estimators.py::code_labels", "one missing label turns a column to floats, and other rows are of another class",
    "        if number in numbered:\n", "        if False:\n",
    ESTIMATORS + "classes_that_are_one_number_are_refused_whatever_the_rows",
)  # fmt: skip
erm(
    "E84", "estimators.py::LinearModel._read", "where n is private a ridge is scaled by it, and what is refused depends on it",
    "return features, labels, public_rows(labels.size, self.expected_rows, self.budget)", "return features, labels, labels.size",
    ESTIMATORS + "the_message_about_a_missing_guess_does_not_depend_on_the_number_of_rows",
)  # fmt: skip
erm(
    "E85", "estimators.py::code_labels.code_of", "a column that one row turned to texts has other classes",
    "return numbered[number] if number in numbered else spelt.get", "return spelt.get",
    ESTIMATORS + "the_class_of_a_row_does_not_depend_on_what_another_rows_label_is",
)  # fmt: skip
sets = Writer("erm", "convex/sets/")
sets(
    "E93", "convex_set.py::project_simplex", "nearest points of many coordinates are off by more than the proof of a minimum allows",
    "if abs(left) <= ROUNDED * scale:", "if True:",
    "convex/test_sets.py::test_nearest_points_of_many_coordinates_are_right_to_what_minima_allow_for",
)  # fmt: skip

ERM = [*erm.mutants, *solvers.mutants, *sets.mutants]
