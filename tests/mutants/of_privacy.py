"""Mutants of events, costs and payment."""

from __future__ import annotations

from mutant import Writer

EVENTS = "privacy/test_events.py::test_"
BUDGET = "privacy/test_budget.py::test_"
JOINT = "privacy/test_joint_sensitivity.py::test_"
CONVERSION = "privacy/test_conversion.py::test_"
AMPLIFICATION = "privacy/test_amplification.py::test_"
ALLOWANCE = "privacy/test_allowance.py::test_"
LEDGERS = "privacy/test_ledgers.py::test_"
NOISE = "privacy/test_noise.py::test_"
NOISES = "privacy/test_noises.py::test_"
SAMPLES = "privacy/test_samples.py::test_"
PROCESSES = "privacy/test_processes.py::test_"
SEEDS = "privacy/test_seeds.py::test_"
PERTURBATION = "erm/test_erm_perturbation.py::test_"
ENGINES = "engine/test_engines.py::test_"
SPARSE = "textbook/test_sparse_vector.py::test_"

# What an event costs

events = Writer("events", "privacy/")
events(
    "A01", "events.py::Laplace.epsilon", "Laplace noise is billed half its ε",
    "return self.sensitivity / self.scale\n", "return self.sensitivity / (2 * self.scale)\n",
    EVENTS + "laplace_noise_one_grid_step_apart_is_randomized_response",
)  # fmt: skip
events(
    "A02", "events.py::Gaussian.rho", "Gaussian noise is billed half its ρ",
    "return ratio * ratio / 2", "return ratio * ratio / 4",
    EVENTS + "the_bill_of_gaussian_noise_covers_every_order",
)  # fmt: skip
events(
    "A03", "events.py::Exponential.rho", "a choice is billed half its ρ",
    "return self.epsilon * self.epsilon / 8", "return self.epsilon * self.epsilon / 16",
    EVENTS + "the_bill_of_the_exponential_mechanism_covers_every_order_of_its_worst_scores",
)  # fmt: skip
events(
    "A04", "events.py::AboveThreshold.query_scale", "a guard's noise on values lacks its factor 2",
    "return 2 * self.sensitivity / self.epsilon_query", "return self.sensitivity / self.epsilon_query",
    EVENTS + "a_guard_round_at_its_scales_loses_no_more_than_it_bills_and_nearly_that",
)  # fmt: skip
events(
    "A05", "events.py::AboveThreshold.epsilon", "a guard is billed the larger of its two parts only",
    "return self.epsilon_threshold + self.epsilon_query", "return max(self.epsilon_threshold, self.epsilon_query)",
    EVENTS + "a_guard_round_at_its_scales_loses_no_more_than_it_bills_and_nearly_that",
)  # fmt: skip
events(
    "A06", "events.py::AboveThreshold.threshold_scale", "a guard's threshold has half its noise",
    "return self.sensitivity / self.epsilon_threshold", "return self.sensitivity / self.epsilon_threshold / 2",
    EVENTS + "a_guard_round_at_its_scales_loses_no_more_than_it_bills_and_nearly_that",
)  # fmt: skip
events(
    "A07", "events.py::AboveThreshold.__post_init__", "a guard's sensitivity is rounded down to its grid, below what a row does",
    "math.ceil(given / grid) * grid", "max(1, math.floor(given / grid)) * grid",
    EVENTS + "the_sensitivity_of_a_guard_is_rounded_up_to_the_grid_of_its_noise",
)  # fmt: skip
events(
    "A08", "events.py::Repeated.rho", "many releases are billed the ρ of one",
    "return self.times * self.event.rho", "return self.event.rho",
    EVENTS + "releases_billed_together_cost_the_sum_of_each",
)  # fmt: skip
events(
    "A09", "events.py::Repeated.epsilon", "many releases are billed the ε of one",
    "return self.times * self.event.epsilon", "return self.event.epsilon",
    EVENTS + "releases_billed_together_cost_the_sum_of_each",
)  # fmt: skip
events(
    "A10", "events.py::Repeated.draws", "a receipt for T releases gives T + 1",
    "itertools.repeat(self.event, self.times)", "itertools.repeat(self.event, self.times + 1)",
    NOISES + "charged_events_are_drawn_exactly_once",
)  # fmt: skip
events(
    "A11", "events.py::ApproximateDP.rho", "an (ε, δ) step from elsewhere is billed less than it loses",
    "return self.epsilon * math.tanh(self.epsilon / 2)",
    "return self.epsilon * math.tanh(self.epsilon / 4)",
    EVENTS + "an_approximate_event_is_billed_as_epsilon_dp_outside_its_delta",
)  # fmt: skip
events(
    "A12", "events.py::SubsampledGaussian.rho", "subsampled noise is billed less than it loses",
    "return self.epsilon * math.tanh(self.epsilon / 2)",
    "return self.epsilon * math.tanh(self.epsilon / 4)",
    EVENTS + "an_event_with_a_proof_of_its_own_is_billed_as_epsilon_dp_outside_its_delta",
)  # fmt: skip
events(
    "A13", "events.py::PerturbedObjective.rho", "a perturbed objective is billed less than it loses",
    "return self.epsilon * math.tanh(self.epsilon / 2)",
    "return self.epsilon * math.tanh(self.epsilon / 4)",
    EVENTS + "an_event_with_a_proof_of_its_own_is_billed_as_epsilon_dp_outside_its_delta",
)  # fmt: skip
events(
    "A14", "events.py::PerturbedObjective.draws", "a perturbed objective gives a draw more than its proof has",
    "return (self.tilt, self.hide)", "return (self.tilt, self.hide, self.hide)",
    NOISES + "charged_events_are_drawn_exactly_once",
)  # fmt: skip
events(
    "A15", "events.py::Laplace.rho", "Laplace noise on a coarse grid is billed as if the grid were fine",
    "return min(fine + coarse, ", "return min(fine, ",
    EVENTS + "the_bill_of_laplace_noise_covers_every_order_and_is_met_by_the_first",
)  # fmt: skip
events(
    "A16", "events.py::Event.__post_init__", "a cost that rounds to zero is free",
    'positive(f"rho of {type(self).__name__}", self.rho)', "pass",
    EVENTS + "a_cost_that_rounds_to_zero_is_refused_rather_than_free",
)  # fmt: skip
events(
    "A17", "events.py::_require_kind", "a part of an event may be of a class that prices itself",
    "if type(part) not in kinds:", "if not isinstance(part, tuple(kinds)):",
    NOISES + "a_part_that_is_not_what_the_bill_counts_is_refused",
)  # fmt: skip
events(
    "A18", "budget.py::Budget.marginal_l2", "under replace a table of counts has the sensitivity of add-remove",
    'return math.sqrt(2.0) if self.neighbours == "replace" else 1.0', "return 1.0",
    BUDGET + "brute_force_finds_no_neighbours_further_apart_than_the_stated_sensitivities",
)  # fmt: skip
events(
    "A19", "budget.py::apart_square", "the sensitivity of a residual lacks √2",
    "return 2 * (own - float(np.min(inner)))", "return own - float(np.min(inner))",
    "engine/test_practical.py::test_the_sensitivity_of_a_residual_is_the_largest_over_all_rows",
)  # fmt: skip
events(
    "CO08", "budget.py::Contribution.ends", "two rows that agree on an attribute are taken to be no further apart than two that do not",
    "dict.fromkeys((self.square, self.least, self.most))", "dict.fromkeys((self.least, self.most))",
    "engine/test_contrasts.py::test_no_rows_are_further_apart_than_the_sensitivity_of_a_ranged_residual",
)  # fmt: skip
events(
    "JS01", "budget.py::_largest_dual", "the bound for many attributes leaves out half the square of a sum",
    "- λ * λ / 2 for", "for",
    JOINT + "the_bound_for_many_attributes_is_never_below_the_maximum_and_near_it",
)  # fmt: skip
events(
    "JS02", "budget.py::_jointly", "what two rows differ in is not paid for in single attributes",
    "fixed = singles[:, None] * ends - ", "fixed = -",
    JOINT + "the_bound_for_many_attributes_is_never_below_the_maximum_and_near_it",
)  # fmt: skip
events(
    "JS03", "budget.py::_jointly", "what the bound leaves of pairs is not paid for",
    "rest += float(left[i, j]) * _alone([contributions[i], contributions[j]])", "pass",
    JOINT + "the_bound_for_many_attributes_is_never_below_the_maximum_and_near_it",
)  # fmt: skip
events(
    "JS04", "budget.py::own_square", "residuals that are multiplied cost as much as those that are not",
    "return math.fsum(w * math.prod", "return math.fsum(math.prod",
    JOINT + "no_rows_are_further_apart_than_the_joint_sensitivity_and_some_are_as_far",
)  # fmt: skip
events(
    "A20", "budget.py::Budget._twice_if_replaced", "bounded sums and gradients have half their sensitivity under replace",
    'return 2 * one if self.neighbours == "replace" else one', "return one",
    BUDGET + "brute_force_finds_no_neighbours_further_apart_than_the_stated_sensitivities",
)  # fmt: skip
events(
    "A21", "budget.py::Budget.cost", "a budget without a δ pays for events that have one",
    "if self.pure and event.delta > 0:", "if False:",
    BUDGET + "a_budget_without_a_delta_cannot_price_an_event_that_has_one",
)  # fmt: skip
events(
    "A22", "budget.py::Budget.cost", "subsampled noise is believed whatever ε it claims",
    "amplification.require_private(event, self.neighbours)", "pass",
    AMPLIFICATION + "a_claim_of_less_than_is_drawn_is_refused_wherever_it_could_be_paid",
)  # fmt: skip
events(
    "A23", "budget.py::Budget.cost", "a perturbed objective is believed whatever ε it claims",
    "perturbed_objective.require_private(event, self.neighbours)", "pass",
    PERTURBATION + "no_claim_is_billed_that_the_draws_of_an_objective_do_not_keep",
)  # fmt: skip
events(
    "A24", "budget.py::Budget.cost", "an event of a user's own class names its own price",
    "if type(event) not in events.KINDS.values():", "if not isinstance(event, Event):",
    LEDGERS + "objects_other_than_events_are_neither_priced_nor_charged",
)  # fmt: skip
events(
    "A25", "budget.py::Budget.rho", "the δ that is set aside is converted to ρ as well",
    "ρ = largest_rho(self.epsilon, self.delta - slack)", "ρ = largest_rho(self.epsilon, self.delta)",
    BUDGET + "slack_is_taken_from_delta_before_converting",
)  # fmt: skip
events(
    "A26", "conversion.py::largest_rho", "ρ is a thousandth more than (ε, δ) allows",
    "return low * (1 - 1e-11)", "return low * 1.001",
    CONVERSION + "rho_is_the_root_of_the_published_conversion_and_never_above_it",
)  # fmt: skip
events(
    "A27", "conversion.py::_dp_event", "exported Laplace noise under-counts what is drawn",
    "return dp.LaplaceDpEvent(1 / _dominating_laplace(event.epsilon))", "return dp.LaplaceDpEvent(1 / event.epsilon)",
    CONVERSION + "an_exported_event_loses_no_less_than_the_draw",
)  # fmt: skip
events(
    "A28", "conversion.py::subsampled_epsilon", "subsampled noise is accounted for half of its steps",
    "divergences = steps * np.array(", "divergences = max(1, steps // 2) * np.array(",
    AMPLIFICATION + "steps_that_all_have_every_row_lose_what_one_gaussian_of_their_sum_does",
)  # fmt: skip
events(
    "A29", "conversion.py::_sampled_divergence", "subsampled noise is accounted at half its rate",
    "z, q, α = multiplier, rate, order", "z, q, α = multiplier, rate / 2, order",
    AMPLIFICATION + "with_every_row_in_every_sample_the_noise_is_that_of_composed_gaussians",
)  # fmt: skip
events(
    "A29a", "conversion.py::_sampled_divergence", "a small loss on a sample is rounded to nothing, and steps without end are free",
    "return (math.log1p(math.exp(total)) if total < 30 else total) / (α - 1)", "return math.log(1 + math.exp(min(total, 700))) / (α - 1)",
    AMPLIFICATION + "rounding_makes_no_loss_on_a_sample_free",
)  # fmt: skip
events(
    "A30", "conversion.py::gaussian_mu", "a Gaussian mechanism has a twentieth less noise than (ε, δ) needs",
    "return root * (1 - 1e-9)", "return root * 1.05",
    "erm/test_erm_problem.py::test_the_analytic_gaussian_meets_delta_and_hardly_more_noise_than_needed",
)  # fmt: skip
events(
    "A31", "conversion.py::gaussian_delta", "the δ of a Gaussian mechanism is understated",
    "math.exp(min(epsilon + ", "math.exp(min(1.05 * epsilon + ",
    "erm/test_erm_problem.py::test_the_analytic_gaussian_meets_delta_and_hardly_more_noise_than_needed",
)  # fmt: skip
events(
    "A32", "conversion.py::dp_events", "equal events are exported once",
    "dp.SelfComposedDpEvent(_dp_event(event), count)", "dp.SelfComposedDpEvent(_dp_event(event), 1)",
    CONVERSION + "a_grouped_count_counts",
)  # fmt: skip
events(
    "A33", "amplification.py::_for_rows_that_come_and_go", "the group privacy of a replaced row forgets δ",
    "(ε / 2, δ / (1 + math.exp(ε / 2)))", "(ε / 2, δ)",
    AMPLIFICATION + "replacing_a_row_is_removing_one_and_adding_one",
)  # fmt: skip
events(
    "A34", "amplification.py::_for_rows_that_come_and_go", "a replaced row counts as one that goes",
    "(ε / 2, δ / (1 + math.exp(ε / 2)))", "(ε, δ / (1 + math.exp(ε / 2)))",
    AMPLIFICATION + "replacing_a_row_is_removing_one_and_adding_one",
)  # fmt: skip
events(
    "A35", "amplification.py::require_private", "subsampled noise may be on a grid that its proof does not cover",
    "if not noise.grid <= noise.sensitivity * _FINE:", "if False:",
    AMPLIFICATION + "noise_on_a_grid_that_the_proof_does_not_cover_is_refused",
)  # fmt: skip
events(
    "A36", "amplification.py::sample_rate", "the rate of a sample is taken to be half of what it is",
    "return heads / COIN", "return heads / (2 * COIN)",
    AMPLIFICATION + "with_every_row_in_every_sample_the_noise_is_that_of_composed_gaussians",
)  # fmt: skip
events(
    "A37", "perturbed_objective.py::privacy_delta", "the Jacobian of a perturbed objective is not paid for",
    "left, s = epsilon - math.log1p(smoothness / weight), lipschitz / sigma", "left, s = epsilon, lipschitz / sigma",
    PERTURBATION + "the_jacobian_takes_its_part_of_epsilon",
)  # fmt: skip
events(
    "A38", "perturbed_objective.py::privacy_delta", "a replaced row's gradient counts as that of one that goes",
    "_two_sided(2 * s * math.cos(a), left)", "_two_sided(s * math.cos(a), left)",
    PERTURBATION + "the_certified_delta_covers_the_true_one_of_a_curved_loss_in_one_dimension",
)  # fmt: skip
events(
    "A39", "perturbed_objective.py::for_hiding", "hiding how near the minimum was takes all of ε besides",
    "return _SHARE * (1 - _MARGIN) * epsilon, _SHARE * (1 - _MARGIN) * delta", "return epsilon, delta",
    PERTURBATION + "no_claim_is_billed_that_the_draws_of_an_objective_do_not_keep",
    PERTURBATION + "the_parts_of_a_perturbed_objective_add_up_to_its_claim",
)  # fmt: skip
events(
    "A40", "perturbed_objective.py::require_private", "how near the minimum was is hidden by any noise",
    "if not (tilted and hidden):", "if not tilted:",
    PERTURBATION + "no_claim_is_billed_that_the_draws_of_an_objective_do_not_keep",
)  # fmt: skip
events(
    "A41", "perturbed_objective.py::_two_sided", "the loss of a tilt is taken on one side only",
    "return 2 * gaussian_delta(mu, epsilon)", "return gaussian_delta(mu, epsilon)",
    PERTURBATION + "the_delta_of_a_tilt_is_that_of_both_its_sides",
)  # fmt: skip

# Allowances

allowance = Writer("allowance", "privacy/")
allowance(
    "W01", "allowance.py::Amount.gaussian", "an amount buys Gaussian noise that costs twice as much",
    "sensitivity / math.sqrt(2 * self.left)", "sensitivity / math.sqrt(4 * self.left)",
    ALLOWANCE + "noise_bought_with_an_amount_costs_exactly_that_amount",
)  # fmt: skip
allowance(
    "W02", "allowance.py::Amount.choice", "an amount buys a choice that costs twice as much",
    "math.sqrt(8 * self.left)", "math.sqrt(16 * self.left)",
    ALLOWANCE + "noise_bought_with_an_amount_costs_exactly_that_amount",
)  # fmt: skip
allowance(
    "W03", "allowance.py::Amount.round_epsilon", "each of many guard rounds gets the price of all",
    "cost = self.left / rounds", "cost = self.left",
    ALLOWANCE + "the_epsilon_of_a_round_is_the_largest_that_its_cost_buys",
)  # fmt: skip
allowance(
    "W04", "allowance.py::Amount.fine_gaussian", "noise for T releases lacks √T",
    "math.sqrt(steps / share) / self.mu", "math.sqrt(1 / share) / self.mu",
    "erm/test_erm_mirror_descent.py::test_the_noise_is_the_sensitivity_times_the_root_of_the_steps_over_mu",
    ALLOWANCE + "gaussian_noise_that_is_all_of_a_budget_has_the_analytic_scale_and_is_certified",
)  # fmt: skip
allowance(
    "W05", "allowance.py::CallFilter.admit", "the certificate of many equal releases counts one",
    "2 * event.rho * count for event, count in Counter(planned).items()", "2 * event.rho for event in Counter(planned)",
    ALLOWANCE + "a_little_less_noise_than_a_budget_buys_is_refused",
)  # fmt: skip
allowance(
    "W06", "allowance.py::CallFilter.admit", "a Budget that pays for one call pays again",
    "        if self._certified is not None:\n            raise BudgetExceeded(", "        if False:\n            raise BudgetExceeded(",
    ALLOWANCE + "one_call_is_paid_once",
)  # fmt: skip
allowance(
    "W07", "allowance.py::Allowance.carve", "what is carved out is still left",
    "self.left -= amount", "pass",
    ALLOWANCE + "an_allowance_that_is_split_off_and_charged_is_no_longer_left",
)  # fmt: skip
allowance(
    "W08", "allowance.py::Allowance.charge", "what is charged is still left",
    "0.0 if self.whole else self.left - receipt.cost", "0.0 if self.whole else self.left",
    ALLOWANCE + "an_allowance_that_is_split_off_and_charged_is_no_longer_left",
)  # fmt: skip
allowance(
    "W09", "allowance.py::Allowance.charge", "a part of a budget spends what was kept for another purpose",
    "if cost > self.left + self._fit and math.isfinite(cost):", "if False:",
    ALLOWANCE + "beyond_what_is_left_everything_is_refused_whatever_the_ledger_has",
)  # fmt: skip
allowance(
    "W10", "allowance.py::Amount.fine_gaussian", "what rounding to the grid adds to a sensitivity is not paid for",
    "Δ = exact + math.sqrt(values) * grid", "Δ = exact",
    ALLOWANCE + "a_fine_grid_is_paid_for_in_the_sensitivity",
)  # fmt: skip
allowance(
    "W11", "allowance.py::Amount.noise", "Laplace noise is calibrated to an ℓ2 sensitivity",
    "return Laplace(l1, l1 / self.left, grid)", "return Laplace(l2, l2 / self.left, grid)",
    ALLOWANCE + "it_buys_laplace_noise_by_l1_without_a_delta_and_gaussian_noise_by_l2_with_one",
)  # fmt: skip
allowance(
    "W12", "allowance.py::Amount.approximate", "an (ε, δ) step from a ledger takes all of δ, whatever was set aside",
    "return ε * (1 - 1e-11), self.slack", "return ε * (1 - 1e-11), self.budget.delta",
    ALLOWANCE + "a_step_with_a_delta_takes_what_a_ledger_and_its_slack_allow",
)  # fmt: skip
allowance(
    "W13", "allowance.py::CallFilter.admit", "a Budget pays for a step of any δ",
    " and planned[0].delta <= δ0 * (1 + 1e-12):", ":",
    ALLOWANCE + "a_step_with_a_delta_is_paid_by_its_epsilon_and_delta",
)  # fmt: skip
allowance(
    "W14", "allowance.py::Amount.mu", "a ledger's share buys noise √2 times too small",
    "return math.sqrt(2 * self.left) * (1 - 1e-12)", "return 2 * math.sqrt(self.left) * (1 - 1e-12)",
    ALLOWANCE + "noise_bought_with_an_amount_costs_exactly_that_amount",
    "erm/test_erm_mirror_descent.py::test_an_accountant_pays_a_share_and_can_pay_again",
)  # fmt: skip
allowance(
    "W15", "allowance.py::Amount.marginal", "a whole table of counts gets the noise of a single count",
    "return self.noise(self.budget.marginal_l1(), self.budget.marginal_l2())",
    "return self.noise(self.budget.linear(), self.budget.linear())",
    ALLOWANCE + "a_table_of_counts_has_the_noise_of_a_table_and_a_number_of_rows_that_of_one",
)  # fmt: skip
allowance(
    "W16", "allowance.py::Amount.part", "a part of a plan is all of it",
    "return Amount(self.budget, share * self.left)", "return Amount(self.budget, self.left)",
    ALLOWANCE + "a_part_of_a_plan_is_a_plan",
)  # fmt: skip

# The ledger and its receipts

ledger = Writer("ledger", "privacy/")
ledger(
    "L01", "filter.py::FIT", "a budget is overspent by a thousandth",
    "FIT = Fraction(1, 10**12)", "FIT = Fraction(1, 10**3)",
    LEDGERS + "equal_parts_fit_exactly_and_one_more_is_refused",
    LEDGERS + "the_tolerance_of_a_fit_is_given_once_and_not_for_every_charge",
)  # fmt: skip
ledger(
    "L02", "filter.py::Filter._fits", "the last event may overshoot",
    "return parts is not None and min(parts.subtract_from(self._total)) >= -self._total * FIT",
    "return parts is not None and min(self._charged.subtract_from(self._total)) >= 0",
    LEDGERS + "equal_parts_fit_exactly_and_one_more_is_refused",
)  # fmt: skip
ledger(
    "L03", "filter.py::Filter.admit", "the δs of events do not add up",
    "if self._failing + failing > self._slack * (1 + FIT):", "if failing > self._slack * (1 + FIT):",
    LEDGERS + "a_slack_is_spent_in_exactly_its_parts_and_paid_for_in_rho",
)  # fmt: skip
ledger(
    "L04", "ledger.py::Ledger.exclusively", "threads do not take turns",
    "        return self._turn\n", "        return OwnersLock()\n",
    LEDGERS + "threads_together_spend_what_there_is_and_no_more",
)  # fmt: skip
ledger(
    "L05", "receipt.py::Cashier.alone", "a charge within a charge, as a signal's handler makes it, sees the old sum",
    "        if not self._charging.acquire(blocking=False):",
    "        self._charging = threading.Lock()\n        if not self._charging.acquire(blocking=False):",
    LEDGERS + "a_charge_within_a_charge_is_refused_as_that_of_a_signals_handler_is",
)  # fmt: skip
ledger(
    "L06", "filter.py::Filter.spent_epsilon", "the ε that is reported counts the events' δ twice",
    "delta = self.budget.delta - float(self._failing)", "delta = self.budget.delta",
    LEDGERS + "the_spent_epsilon_converts_with_the_delta_that_the_events_left",
)  # fmt: skip
ledger(
    "L07", "receipt.py::Receipt.__init__", "a receipt gives each event twice",
    "for event in entry.events for part in event.draws)",
    "for event in entry.events for part in (*event.draws, *event.draws))",
    NOISES + "charged_events_are_drawn_exactly_once",
)  # fmt: skip
ledger(
    "L08", "receipt.py::Receipt.released", "a session that is taken up draws again for what was billed once",
    "        for earlier in self._read:", "        for earlier in ():",
    LEDGERS + "a_resumed_ledger_has_its_spending_and_returns_earlier_releases",
)  # fmt: skip
ledger(
    "L09", "receipt.py::Receipt.__init__", "a receipt that is taken up gives its first release for all",
    "self._read, self._keeps = iter(entry.released), entry.kept",
    "self._read, self._keeps = iter(entry.released[:1] * len(entry.released)), entry.kept",
    LEDGERS + "a_resumed_receipt_returns_each_of_its_releases_in_turn",
)  # fmt: skip
ledger(
    "L10", "replay.py::Replay.__init__", "a ledger that is taken up has spent nothing",
    "            filter.count_earlier(entry)\n", "",
    LEDGERS + "a_resumed_ledger_has_its_spending_and_returns_earlier_releases",
)  # fmt: skip
ledger(
    "L11", "filter.py::Filter.count", "only the last event's δ is remembered",
    "self._failing += exact_total(", "self._failing = exact_total(",
    LEDGERS + "a_slack_is_spent_in_exactly_its_parts_and_paid_for_in_rho",
)  # fmt: skip
ledger(
    "L12", "filter.py::Filter.__init__", "the δ that is set aside is spent in ρ as well",
    "Fraction(budget.total if slack == 0 else budget.rho(slack))", "Fraction(budget.total)",
    LEDGERS + "a_slack_is_spent_in_exactly_its_parts_and_paid_for_in_rho",
)  # fmt: skip
ledger(
    "L13", "receipt.py::Cashier.charge", "an interrupt while an entry is kept leaves it uncounted",
    "self._filter.count(entry)\n            self._log.append(entry)",
    "self._log.append(entry)\n            self._filter.count(entry)",
    LEDGERS + "an_interrupt_while_an_entry_is_kept_counts_too_much_and_gives_no_receipt",
)  # fmt: skip
ledger(
    "L34", "replay.py::Replay.begin", "an opening that was interrupted pays again for what it had",
    "self._taken_up = tuple(self._log.entries[self._first :])", "self._taken_up = ()",
    "test_opening_watched.py::test_ctrl_c_while_opening_keeps_what_was_paid_for",
)  # fmt: skip
ledger(
    "L14", "receipt.py::Cashier.charge", "an entry is not kept before its receipt is given",
    "never too little\n            self._log.append(entry)", "never too little",
    LEDGERS + "every_entry_is_kept_before_its_receipt_is_given_and_again_when_it_is_recorded",
)  # fmt: skip
ledger(
    "L15", "receipt.py::Cashier.record", "what came out is not kept, and lost when the session is taken up",
    "self._log.update(replace(entry, released=(*entry.released, released), private=entry.private and private))", "pass",
    LEDGERS + "every_entry_is_kept_before_its_receipt_is_given_and_again_when_it_is_recorded",
)  # fmt: skip
ledger(
    "L16", "replay.py::Replay.match", "a ledger is taken up by a session that charges something else",
    "if entry.events != planned or not _is_for(entry, why, about):", "if False:",
    LEDGERS + "a_ledger_resumed_with_other_options_is_refused_and_lost_draws_are_paid_again",
)  # fmt: skip
ledger(
    "L17", "replay.py::Replay.match", "what was lost in a crash is drawn again for one price",
    "            if entry.is_readable:\n                return entry", "            return entry",
    LEDGERS + "a_ledger_resumed_with_other_options_is_refused_and_lost_draws_are_paid_again",
)  # fmt: skip
ledger(
    "L18", "log.py::Entry.is_complete", "an entry of which a part came out passes for complete, and the rest is drawn again",
    "return not self.kept or len(self.released) == self.releases", "return not self.kept or len(self.released) >= 1",
    LEDGERS + "an_entry_of_which_only_a_part_came_out_is_lost_and_paid_again",
)  # fmt: skip
ledger(
    "L19", "replay.py::Replay.end", "new charges are met by entries that were taken up already",
    "            self._pending.clear()\n", "",
    LEDGERS + "a_resumed_ledger_has_its_spending_and_returns_earlier_releases",
)  # fmt: skip
ledger(
    "L20", "receipt.py::Cashier.record", "a release is recorded twice over",
    " or len(entry.released) >= entry.releases:", ":",
    LEDGERS + "a_release_is_recorded_once_and_only_for_its_own_receipt",
)  # fmt: skip
ledger(
    "L21", "receipt.py::Cashier.record", "an analyst writes over what was released",
    "                released.flags.writeable = False\n", "",
    LEDGERS + "every_draw_is_recorded_as_it_was_released",
    "attacks/test_attacks_receipts.py::test_values_released_by_a_session_cannot_be_overwritten",
)  # fmt: skip
ledger(
    "L22", "receipt.py::Cashier.record", "noise from a seed is logged as private",
    "private=entry.private and private", "private=True",
    "erm/test_solvers.py::test_the_log_has_what_came_out_and_whether_a_seed_was_used",
)  # fmt: skip
ledger(
    "L23", "receipt.py::Cashier.charge", "of events charged together one is counted",
    "entry = Entry(number, planned, cost", "entry = Entry(number, planned[:1], cost",
    LEDGERS + "a_charge_is_one_entry_with_all_its_events_what_they_cost_why_and_who_asked",
)  # fmt: skip
ledger(
    "L24", "receipt.py::OpenBills.add", "a question's bill leaves out what it paid",
    "bill.charges[number] = cost", "bill.charges[number] = 0.0",
    LEDGERS + "a_bill_has_exactly_the_receipts_of_its_question_and_their_sum",
)  # fmt: skip
ledger(
    "L25", "receipt.py::Receipt.__init__", "anybody makes receipts",
    "if issued is not _issued:", "if issued is None:",
    LEDGERS + "a_receipt_is_made_by_a_ledger_alone",
)  # fmt: skip
ledger(
    "L26", "receipt.py::Receipt.redeem", "cheap noise is charged and other noise drawn",
    "if not isinstance(event, kinds):", "if False:",
    NOISES + "a_draw_of_another_kind_is_refused_and_uses_up_no_more_than_the_one_it_was_next_to",
)  # fmt: skip
ledger(
    "L27", "receipt.py::Receipt.redeem", "each fork draws once more from a receipt",
    '        self._home.require("A receipt", "Draw there, and pass on what was released.")\n', "",
    NOISES + "a_receipt_buys_nothing_in_a_fork_even_of_noise_made_there",
)  # fmt: skip
ledger(
    "L28", "filter.py::Filter.__init__", "an account is opened on a budget that prices events as it likes",
    "if type(budget) is not Budget:", "if not isinstance(budget, Budget):",
    LEDGERS + "only_a_budget_that_prices_as_it_should_opens_an_account",
)  # fmt: skip
ledger(
    "L29", "filter.py::Filter.affords", "events are said to be affordable one by one that are not together",
    "self.admit(planned, [self.budget.cost(event) for event in planned])",
    "self.admit(planned[:1], [self.budget.cost(event) for event in planned[:1]])",
    LEDGERS + "events_charged_together_pass_together_or_not_at_all",
)  # fmt: skip
ledger(
    "L30", "process.py::ProcessGuard.require", "a fork that has the number of its parent spends the account again",
    "if self._token is not _token or self._number != os.getpid():", "if self._number != os.getpid():",
    PROCESSES + "a_fork_that_got_the_number_of_its_parent_is_refused",
)  # fmt: skip
ledger(
    "L31", "process.py::ProcessGuard.require", "a fork that Python was not told of spends the account again",
    "if self._token is not _token or self._number != os.getpid():", "if self._token is not _token:",
    PROCESSES + "a_fork_made_outside_python_is_refused",
)  # fmt: skip
ledger(
    "L32", "process.py::NotCopyable.__deepcopy__", "a deep copy is a second account",
    "def __deepcopy__(self, memo: dict[int, Any]) -> Self:\n        return self",
    "def __deepcopy__(self, memo: dict[int, Any]) -> Self:\n        twin = object.__new__(type(self))\n"
    "        twin.__dict__.update(self.__dict__)\n        return twin",
    PROCESSES + "a_copy_of_an_account_is_the_account",
)  # fmt: skip
ledger(
    "L33", "process.py::NotCopyable.__reduce__", "an account goes into a pickle, and comes back unspent",
    "def __reduce__(self) -> str | tuple[Any, ...]:\n",
    "def __reduce__(self) -> str | tuple[Any, ...]:\n        return type(self), (self.budget,)\n",
    LEDGERS + "a_copy_of_a_ledger_is_the_ledger_and_there_is_no_pickle",
)  # fmt: skip
ledger(
    "L35", "log.py::MemoryLog.update", "what came out is forgotten by a ledger in memory",
    "self._book[entry.number] = entry", "pass",
    LEDGERS + "a_release_is_recorded_once_and_only_for_its_own_receipt",
    "privacy/test_logs.py::test_an_update_completes_one_entry_and_leaves_the_others[memory]",
)  # fmt: skip
ledger(
    "L36", "answer_log.py::MemoryAnswerLog.recall", "a second session repeats answers about the table of the first",
    "None if self._replay.has_other_sessions else self._recalled.get(question.key)", "self._recalled.get(question.key)",
    "privacy/test_answer_logs.py::test_a_second_session_in_memory_gets_no_answers_of_the_first",
)  # fmt: skip

# Noise

noise = Writer("noise", "privacy/")
noise(
    "N01", "noise.py::Noise._add_in_steps", "few values on a fine grid are released nearly bare",
    "measurement = _opendp(isinstance(event, events.Laplace), spread / event.grid)",
    "measurement = _opendp(isinstance(event, events.Laplace), spread)",
    NOISE + "noise_has_the_spread_of_its_event_whatever_its_grid",
)  # fmt: skip
noise(
    "N02", "noise.py::Noise._integers", "many values with Laplace noise on a fine grid are released nearly bare",
    "functools.partial(self._laplace, event.scale / event.grid)", "functools.partial(self._laplace, event.scale)",
    NOISE + "noise_has_the_spread_of_its_event_whatever_its_grid",
)  # fmt: skip
noise(
    "N03", "noise.py::Noise._integers", "many values with Gaussian noise on a fine grid are released nearly bare",
    "functools.partial(self._gaussian, event.sigma / event.grid)", "functools.partial(self._gaussian, event.sigma)",
    NOISE + "noise_has_the_spread_of_its_event_whatever_its_grid",
)  # fmt: skip
noise(
    "N04", "noise.py::Noise._gaussian", "the discrete Gaussian is narrower than it says",
    "return Y[self._coins(z * z / 2, rate)]", "return Y[self._coins(z * z, rate)]",
    NOISE + "large_vectors_follow_the_exact_discrete_law",
)  # fmt: skip
noise(
    "N05", "noise.py::Noise._gaussian", "the tails of Gaussian noise are cut at 4σ: what lies beyond tells neighbours apart",
    "return Y[self._coins(z * z / 2, rate)]",
    "return np.clip(Y[self._coins(z * z / 2, rate)], -math.ceil(4 * σ), math.ceil(4 * σ))",
    NOISE + "no_tail_is_cut",
)  # fmt: skip
noise(
    "N06", "noise.py::Noise._laplace", "the tails of Laplace noise are cut at 12 scales: what lies beyond tells neighbours apart",
    "        return G[:count] - G[count:]\n",
    "        return np.clip(G[:count] - G[count:], -math.ceil(12 * s), math.ceil(12 * s))\n",
    NOISE + "no_tail_is_cut",
)  # fmt: skip
noise(
    "N07", "noise.py::Noise._largest_gumbel", "choices have a third less noise",
    "shifts = (values - values.max()) / event.scale", "shifts = 1.5 * (values - values.max()) / event.scale",
    NOISE + "choices_are_those_of_exact_arithmetic_on_the_same_bits",
)  # fmt: skip
noise(
    "N08", "noise.py::Noise._comparison", "comparisons share their noise",
    "return self._buffers[scale].pop()", "return self._buffers[scale][-1]",
    NOISE + "no_comparison_is_handed_out_twice",
)  # fmt: skip
noise(
    "N09", "noise.py::Noise._coins", "coins near their edge are not settled",
    "for i in _where(np.abs(margin) < 2.0**-44):", "for i in _where(np.abs(margin) < 0):",
    NOISE + "a_coin_inside_a_word_is_settled_by_further_bits",
)  # fmt: skip
noise(
    "N10", "uniforms.py::Uniform.is_below_exp", "a coin is decided by the lower end of what is known of it",
    "if context.divide(Decimal(self.numerator + 1), one) <= low:", "if context.divide(Decimal(self.numerator), one) <= low:",
    NOISE + "a_coin_inside_a_word_is_settled_by_further_bits",
)  # fmt: skip
noise(
    "N11", "noise.py::Noise._below.sampler", "indices are drawn with a bias",
    "return w[w < np.uint64(n)].astype(np.int64)", "return (w % np.uint64(n)).astype(np.int64)",
    NOISE + "every_index_is_as_likely_in_every_place_of_a_subsample",
    NOISE + "a_sample_with_replacement_is_uniform_and_may_exceed_n",
)  # fmt: skip
noise(
    "N12", "noise.py::Noise._staircase", "choices among very many have another law",
    "            coin.bits += k  # now uniform on [0, 2^-k)\n", "",
    "erm/test_erm_frank_wolfe.py::test_the_fast_selection_has_the_law_of_the_exponential_mechanism",
)  # fmt: skip
noise(
    "N13", "noise.py::Noise.sample", "a secret sample has every row, though amplification is billed",
    "return np.flatnonzero(self._below(events.COIN, rows) < event.heads)", "return np.arange(rows)",
    NOISE + "a_sample_has_every_row_at_its_rate",
)  # fmt: skip
noise(
    "N14", "noise.py::Noise._redeem", "noise is drawn without a receipt",
    "if type(receipt) is not Receipt:", "if not hasattr(receipt, 'redeem'):",
    NOISES + "an_event_alone_buys_nothing_and_neither_does_anything_else",
)  # fmt: skip
noise(
    "N15", "noise.py::Noise.add", "values are released without noise",
    "receipt.released(lambda: self._noisy(value, event), self.private)",
    "receipt.released(lambda: value, self.private)",
    NOISE + "large_vectors_follow_the_exact_discrete_law",
)  # fmt: skip
noise(
    "N16", "noise.py::_steps", "a huge value overflows, and is heard of",
    "np.clip(np.nan_to_num(steps, nan=0.0), -float(_LARGEST), float(_LARGEST))", "np.nan_to_num(steps, nan=0.0)",
    NOISE + "no_value_can_raise_or_overflow",
)  # fmt: skip
noise(
    "N17", "noise.py::Noise._low_bits", "wide noise has low digits of another law",
    "        if rejected.size:", "        if False:",
    NOISE + "the_low_part_of_a_wide_draw_is_rejected_when_its_coin_says_so",
)  # fmt: skip
noise(
    "N18", "noise.py::Noise._floor_exponential", "draws near a boundary are those of rounded arithmetic",
    "_where((w < _LEAST) | (fraction < error) | (fraction > 1 - error))", "_where(w < _LEAST)",
    NOISE + "a_boundary_inside_a_word_is_settled_by_further_bits",
)  # fmt: skip
noise(
    "N19", "noise.py::Seeded.private", "noise from a seed passes for private",
    "    private = False\n", "    private = True\n",
    NOISE + "a_seeded_source_warns_and_says_that_it_is_not_private",
)  # fmt: skip
noise(
    "N20", "noise.py::Noise.open_round", "a guard's noise is rounded to a coarser grid than was billed",
    "if math.frexp(unit)[0] != 0.5 or event.sensitivity % unit or not (on_grid or unit <= finest):", "if False:",
    NOISES + "a_round_whose_noise_would_be_rounded_is_refused",
)  # fmt: skip
noise(
    "N21", "noise.py::Noise.open_round.compare", "a guard's values have the noise of its threshold, a fifth too small",
    "return draw(ν, 2 * Δ)", "return draw(ν / 2, Δ)",
    SPARSE + "a_round_has_the_noise_that_its_event_states",
)  # fmt: skip
noise(
    "N22", "noise.py::Noise.open_round.compare", "a guard's values have half their noise",
    "return draw(ν, 2 * Δ)", "return draw(ν / 2, 2 * Δ)",
    SPARSE + "a_round_has_the_noise_that_its_event_states",
)  # fmt: skip
noise(
    "N23", "noise.py::Noise.open_round", "a guard's threshold has half its noise",
    "GuardRound(threshold + draw(event.threshold_scale, Δ),", "GuardRound(threshold + draw(event.threshold_scale / 2, Δ),",
    SPARSE + "a_round_has_the_noise_that_its_event_states",
)  # fmt: skip
noise(
    "N24", "noise.py::Noise.open_round.draw", "the free gap has half its noise",
    "events.Laplace(sensitivity, scale, unit)", "events.Laplace(sensitivity, scale / 2, unit)",
    SPARSE + "a_round_has_the_noise_that_its_event_states",
)  # fmt: skip
noise(
    "N25", "guard_round.py::GuardRound.excess", "a guard compares bare values",
    "noisy = value + self._draw()", "noisy = value",
    SPARSE + "a_round_has_the_noise_that_its_event_states",
)  # fmt: skip
noise(
    "N26", "guard_round.py::GuardRound.excess", "a threshold is compared with after its ⊤",
    "threshold, self._threshold = self._threshold, None", "threshold = self._threshold",
    NOISES + "a_round_is_over_with_its_first_value_above",
)  # fmt: skip
noise(
    "N27", "guard_round.py::GuardRound.excess", "that a round ended is not written down, and a session taken up has it again",
    "            self._over()\n", "",
    SPARSE + "a_resumed_sparse_vector_has_its_remaining_tops",
)  # fmt: skip
noise(
    "N28", "noise.py::Noise._redeem", "an event of any kind is drawn by any method",
    "return receipt.redeem(*kinds)", "return receipt.redeem(*kinds, events.Event)",
    NOISES + "a_draw_of_another_kind_is_refused_and_uses_up_no_more_than_the_one_it_was_next_to",
)  # fmt: skip
noise(
    "N29", "noise.py::Noise.choose", "NaN scores raise, and are heard of",
    "np.clip(np.nan_to_num(given.astype(np.float64), nan=0.0), -_HIGHEST, _HIGHEST)", "given.astype(np.float64)",
    NOISE + "scores_out_of_range_never_raise",
)  # fmt: skip

events(
    "A60", "events.py::RepeatedRows.loss", "rows drawn twice are billed as if drawn once (Proposition 7 as printed)",
    "return self.size * _mixed_loss(1 / self.rows, epsilon)", "return _mixed_loss(1 - (1 - 1 / self.rows) ** self.size, epsilon)",
    SAMPLES + "the_counterexample_to_proposition_7_costs_what_we_say_and_more_than_is_printed",
)  # fmt: skip
events(
    "A61", "events.py::DistinctRows.loss", "a sample without replacement is billed less than it loses",
    "return _mixed_loss(self.size / self.rows, epsilon)", "return _mixed_loss(self.size / self.rows, epsilon) / 2",
    SAMPLES + "the_loss_of_a_sampled_count_is_attained_and_exceeded_by_no_neighbours",
)  # fmt: skip
events(
    "A62", "events.py::FlippedRows.each", "a flip is billed for fewer lies than it tells",
    "math.log1p((1 - 2 * self.flip) / (self.flip * self.rows))", "math.log1p((1 - 2 * self.flip) / self.rows)",
    SAMPLES + "the_loss_of_a_flip_is_attained_and_exceeded_by_no_neighbours",
)  # fmt: skip
events(
    "A63", "amplification.py::require_same_neighbors", "a sample's loss is charged under neighbours for which it does not hold",
    'if comes_and_goes != (neighbours == "add-remove"):', "if False:",
    SAMPLES + "a_loss_is_charged_only_under_the_neighbours_it_was_worked_out_for",
)  # fmt: skip
events(
    "A64", "amplification.py::inner_epsilon", "a query is given more than it may cost",
    "rate, loss = 1 / sample.rows, epsilon / sample.size", "rate, loss = 1 / sample.rows, epsilon",
    SAMPLES + "the_exact_formula_is_solved_and_never_costs_more",
)  # fmt: skip
noise(
    "N30", "noise.py::Noise.flips.draw", "rows tell the truth always",
    "truths ^ (self._below(events.COIN, event.times) < event.heads)", "truths ^ (self._below(events.COIN, event.times) < 0)",
    SAMPLES + "flips_say_yes_as_often_as_their_law_has_it",
)  # fmt: skip
noise(
    "N31", "noise.py::Noise.draw_rows", "a sample that was billed without replacement is drawn with it",
    "event.size, replace=isinstance(event, events.RepeatedRows))", "event.size, replace=True)",
    SAMPLES + "rows_are_drawn_as_they_were_paid_for_each_set_as_likely",
)  # fmt: skip

# Threads: of the whole process, so that what is not given back is taken from its user

THREADS = "test_threads.py::test_"
threads = Writer("threads", "")
threads(
    "TH01", "_threads.py::OneThread._set", "the user's threads are not given back",
    "library.use(1 if to_one else threads)", "library.use(1)",
    THREADS + "the_setting_is_restored_after_an_error_and_only_by_the_outermost_call",
)  # fmt: skip
threads(
    "TH02", "_threads.py::OneThread.__enter__", "an inner call gives threads back while the outer one works",
    "        self._mine.depth = depth + 1\n", "        self._mine.depth = 1\n",
    THREADS + "the_setting_is_restored_after_an_error_and_only_by_the_outermost_call",
)  # fmt: skip
threads(
    "TH03", "_threads.py::OneThread.__enter__", "the first thread to end gives back while others work",
    "                self._working += 1\n", "                self._working = 1\n",
    THREADS + "threads_that_work_at_once_give_back_what_there_was_before_the_first",
)  # fmt: skip
threads(
    "TH04", "_threads.py::OneThread._in_a_fork", "a fork is left with one thread",
    "        if others and not self._working:\n", "        if False:\n",
    THREADS + "a_fork_while_another_thread_works_is_not_left_with_one",
)  # fmt: skip
threads(
    "TH05", "opening.py::open", "an opening burns every core",
    "@one_thread\ndef open(", "def open(",
    THREADS + "counting_uses_one_thread_and_restores_the_users_number_of_threads",
)  # fmt: skip

# Planned noise: a price below that of any other, which two sums must earn

PLANNED = "privacy/test_planned.py::test_"
WITHIN = PLANNED + "more_of_the_same_noise_and_an_answer_or_a_rare_event_are_within_the_budget[1.0-0.001-0.5]"
INTEGRAL = PLANNED + "the_bound_is_an_upper_sum_of_the_integral_and_near_it[0.1-1e-06-0.95]"
planned = Writer("planned noise", "privacy/")
planned(
    "PN01", "planned.py::mixed_delta", "the loss of planned noise has half its variance",
    "epsilon - G - math.sqrt(2 * G) * ends", "epsilon - G - math.sqrt(G) * ends",
    WITHIN,
)  # fmt: skip
planned(
    "PN30", "planned.py::price", "next to no share has next to no price, and what sums may exceed it by buys all",
    "    if holds(1 / LEAST_PRICE):\n        return LEAST_PRICE\n    low, high = 1.0, 1 / LEAST_PRICE\n",
    "    low, high = 1.0, 2.0\n    while holds(high) and high < 1e90:\n        low, high = high, 2 * high\n",
    PLANNED + "the_tolerance_of_a_sum_buys_next_to_nothing_however_small_the_share[1e-20]",
)  # fmt: skip
planned(
    "PN31", "budget.py::Budget.plan_noise", "planned noise is on a grid so fine that large counts are cut off",
    "fine = max(event.sigma / FINE_STEPS, min(finest, event.sigma / FEW_STEPS))", "fine = event.sigma / FINE_STEPS",
    PLANNED + "planned_noise_is_on_a_grid_that_holds_the_largest_counts",
)  # fmt: skip
planned(
    "PN02", "planned.py::mixed_delta", "the loss of planned noise has no mean",
    "epsilon - G - math.sqrt(2 * G) * ends", "epsilon - math.sqrt(2 * G) * ends",
    PLANNED + "the_bound_is_an_upper_sum_of_the_integral_and_near_it[10.0-1e-09-0.7]",
)  # fmt: skip
planned(
    "PN03", "planned.py::mixed_delta", "a cell counts as its lower end: an approximation, and no bound",
    "masses = -np.diff(above, prepend=1.0)", "masses = -np.diff(above, append=0.0)",
    INTEGRAL,
)  # fmt: skip
planned(
    "PN04", "planned.py::price.holds", "all that is not planned is forgotten in the price",
    "mixed_delta(share * ρ * more, (1 - share) * ρ,", "mixed_delta(share * ρ * more, 0.0,",
    WITHIN,
)  # fmt: skip
planned(
    "PN05", "planned.py::_delta", "a loss that is not planned has smaller moments than its ρ allows",
    "logarithm = b * ((1 + b) * O - x)", "logarithm = b * (b * O - x)",
    PLANNED + "the_bound_is_an_upper_sum_of_the_integral_and_near_it[10.0-1e-09-0.7]",
)  # fmt: skip
planned(
    "PN06", "planned.py::price", "planned noise has a hundredth less of its price than is proved",
    "return min(1.0, (1 + 1e-15) / low)", "return min(1.0, 0.99 / low)",
    PLANNED + "a_thousandth_more_would_be_above_what_is_proved[1.0-1e-06-0.8]",
)  # fmt: skip
planned(
    "PN07", "filter.py::Parts.after", "the share is chosen after something came out",
    "if shares and self.share is None and self.spent > 0:", "if shares and self.share is None and self.spent < 0:",
    PLANNED + "a_share_is_declared_before_anything_else_and_once[accountant]",
)  # fmt: skip
planned(
    "PN08", "filter.py::Parts.after", "a second share is as good as the first, which is forgotten",
    "known = shares if self.share is None else shares | {self.share}", "known = shares or {self.share}",
    PLANNED + "a_share_is_declared_before_anything_else_and_once[accountant]",
)  # fmt: skip
planned(
    "PN09", "filter.py::Parts.subtract_from", "what planned noise leaves pays for anything",
    "return share - self.planned, total - share - self.others", "return share - self.planned, total - self.planned - self.others",
    PLANNED + "each_part_pays_for_its_own_and_for_nothing_else[accountant]",
)  # fmt: skip
planned(
    "PN10", "filter.py::Parts.subtract_from", "planned noise takes all there is, at the price of its share",
    "return share - self.planned, total - share - self.others", "return total - self.planned, total - share - self.others",
    PLANNED + "each_part_pays_for_its_own_and_for_nothing_else[accountant]",
)  # fmt: skip
planned(
    "PN11", "filter.py::Filter.admit", "δ that was set aside is promised twice",
    "if parts is None or (parts.share is not None and self._slack > 0):", "if parts is None:",
    PLANNED + "with_slack_nothing_is_planned[accountant]",
)  # fmt: skip
planned(
    "PN12", "filter.py::_parts_of", "a ledger that is read from a snapshot has forgotten its share",
    "return Parts(share, standing.planned, standing.spent - standing.planned)", "return Parts(None, Fraction(0), standing.spent)",
    PLANNED + "a_standing_has_both_parts",
)  # fmt: skip
planned(
    "PN13", "filter.py::Filter.spent_epsilon", "what was spent is told without planned noise",
    "for e, count in list(self._counts.items()) if isinstance(e, Planned))", "for e, count in list(self._counts.items()) if e is None)",
    PLANNED + "spending_is_stated_from_the_noise_and_not_from_its_price",
)  # fmt: skip
planned(
    "PN14", "events.py::Planned.continuous_rho", "discrete noise on a coarse grid is billed as continuous noise of its deviation",
    "return self.rho / (1 - (ROUNDED_AT_RANDOM * noise.grid / noise.sigma) ** 2)", "return self.rho",
    PLANNED + "discrete_noise_is_continuous_noise_of_the_billed_loss_rounded_at_random[0.0-4.0]",
)  # fmt: skip
planned(
    "PN15", "budget.py::Budget.epsilon_of_rows", "a person's rows are not in what was spent on planned noise",
    "planned_noise.mixed_epsilon(k**2 * planned,", "planned_noise.mixed_epsilon(planned,",
    PLANNED + "a_persons_rows_are_in_the_price[7]",
)  # fmt: skip
planned(
    "PN16", "budget.py::Budget._rho_of", "planned noise is billed at its price twice",
    "return self._price(event.share) * event.continuous_rho", "return self._price(event.share) ** 2 * event.continuous_rho",
    PLANNED + "planned_noise_has_the_cost_that_was_asked_for_and_is_less",
)  # fmt: skip
planned(
    "PN17", "allowance.py::Allowance.charge_planned", "less noise is drawn than is said",
    "return [planned.event for planned in less], self.charge(*less, why=why, about=about)", "return [*events], self.charge(*less, why=why, about=about)",
    PLANNED + "an_allowance_charges_less_noise_where_it_may_be_planned_and_else_the_event_as_it_is",
)  # fmt: skip

of_prefit = Writer("planned noise", "engine/practical/")
of_prefit(
    "PN19", "measure/prefit.py::Prefit._one_way_marginals", "choices that grew have no room: the prefit ends early, without a word",
    "self._choice_share *= (1 - ONE_WAY_SHARE) / (1 - ONE_WAY_SHARE - MORE_ONE_WAY)", "self._choice_share *= 1.0",
    PLANNED + "a_prefit_without_an_overview_plans_all_but_its_choices[300-replace]",
)  # fmt: skip
of_prefit(
    "PN20", "measure/prefit.py::Prefit._plan", "the share is one of the prefit, not of the budget: what is left of it is lost",
    "amount = measured * self._whole + self._beside", "amount = measured * self._budget.total + self._beside",
    PLANNED + "a_prefit_plans_its_overview_and_what_it_measures_after_it[1.0-replace]",
)  # fmt: skip
of_ledgers = Writer("planned noise", "ledger/")
of_ledgers(
    "PN18", "caps.py::Caps.require", "what somebody may spend is more than their cap says",
    "if any(isinstance(event, Planned) for event in planned):", "if not planned:",
    PLANNED + "under_a_cap_nothing_is_planned",
)  # fmt: skip
CONVERSION = "privacy/test_conversion.py::test_"
events(
    "CV01", "conversion.py::_epsilon_and_order", "budgets convert to more ρ than they have",
    "divergences + np.log1p(-1 / α) - np.log(delta * α) / (α - 1)", "divergences + np.log1p(-1 / α) - np.log(α) / (α - 1)",
    CONVERSION + "epsilon_of_rho_is_what_dp_accounting_computes",
)  # fmt: skip
events(
    "CV02", "conversion.py::_divergence", "the spent ε of Gaussian noise is halved",
    "orders * (event.sensitivity / event.sigma) ** 2 / 2", "orders * (event.sensitivity / event.sigma) ** 2 / 4",
    CONVERSION + "the_epsilon_of_mixed_events_is_what_dp_accountings_renyi_accountant_finds",
)  # fmt: skip
events(
    "CV03", "conversion.py::renyi_epsilon.divergence", "the spent ε counts each kind of event once",
    "np.sum([count * _divergence(event, orders)", "np.sum([min(count, 1) * _divergence(event, orders)",
    CONVERSION + "the_epsilon_of_mixed_events_is_what_dp_accountings_renyi_accountant_finds",
)  # fmt: skip

RENYI = "privacy/test_renyi_events.py::test_"
HITS = "engine/test_hits.py::test_"
SEARCH = "erm/test_search.py::test_"
renyi = Writer("events at one order", "privacy/")
renyi(
    "RE01", "renyi_events.py::hit_divergence", "a round of hits is billed half its loss",
    "max(-logarithm, 0.0) / (α - 1)", "max(-logarithm, 0.0) / (2 * (α - 1))",
    RENYI + "the_divergence_of_endless_tests_at_the_worst_corner_is_the_bill",
)  # fmt: skip
renyi(
    "RE02", "renyi_events.py::hit_divergence", "of two corners the cheaper one is billed",
    "min(math.log1p(upward)", "max(math.log1p(upward)", RENYI + "one_test_and_its_discount_never_add_up_to_more_than_one",
)  # fmt: skip
renyi(
    "RE03", "renyi_events.py::HitRound.query_scale", "the tests of a round have half the noise that was billed",
    "return self.sensitivity / self.epsilon_query", "return self.sensitivity / self.epsilon_query / 2",
    RENYI + "no_round_of_laplace_tests_loses_more_than_its_bill_and_the_worst_loses_nearly_that",
)  # fmt: skip
renyi(
    "RE04", "renyi_events.py::RandomRuns.divergence", "the choice among runs is not billed",
    " + self.mean * largest_difference(self.each, order) + math.log(self.expected) / (order - 1)", "",
    RENYI + "the_best_of_a_random_number_of_runs_loses_no_more_than_its_bill",
)  # fmt: skip
renyi(
    "RE05", "renyi_events.py::_weights", "the number of runs has another law than the one that was billed",
    "mean / k[1:]", "mean / (k[1:] - 0.5)",
    RENYI + "the_law_of_the_number_of_runs_is_that_of_a_poisson_number_of_one_or_more",
)  # fmt: skip
renyi(
    "RE06", "budget.py::Budget._rho_of", "people with several rows have a promise that no proof gives",
    "event.divergence(self.order) / self.order if self.rows_per_unit == 1 else math.inf", "event.divergence(self.order) / self.order",
    RENYI + "an_event_costs_its_divergence_at_that_order",
)  # fmt: skip
renyi(
    "RE07", "filter.py::Filter.admit", "planned noise is priced by orders at which a round of hits has no bound",
    "(parts.share is not None or self._slack > 0):\n            raise errors.BudgetExceeded(\n                \"An event that",
    "self._slack > 0:\n            raise errors.BudgetExceeded(\n                \"An event that",
    RENYI + "an_account_with_planned_noise_or_slack_does_not_pay_for_it",
)  # fmt: skip
renyi(
    "RE08", "filter.py::Filter.spent_epsilon", "the spent ε of hits is converted as if their price were a ρ",
    "any(isinstance(event, RenyiEvent) for event in list(self._counts))", "False",
    RENYI + "spending_is_a_sum_of_divergences_and_never_above_the_budget",
)  # fmt: skip
renyi(
    "RE09", "conversion.py::order_of", "a budget's order is not the one at which it converts",
    "_least_epsilon_and_order(lambda orders: ρ * orders, delta)[1]", "_least_epsilon_and_order(lambda orders: ρ * orders, delta)[1] / 2 + 0.5",
    RENYI + "the_divergences_at_the_order_of_a_budget_imply_it",
)  # fmt: skip
renyi(
    "RE10", "noise.py::Noise.draw_runs", "fewer runs are made than the law has, and the best of few is worse than stated",
    "enumerate(event.weights, start=1)", "enumerate(event.weights, start=0)",
    RENYI + "the_number_of_runs_that_is_drawn_has_its_law_and_is_not_recorded",
)  # fmt: skip
renyi(
    "RE11", "../engine/practical/guard.py::require_hits", "a budget without δ gets a guard that it cannot price, after the opening has begun",
    "budget.pure or budget.rows_per_unit > 1:", "budget.rows_per_unit > 1:",
    HITS + "a_budget_that_cannot_price_hits_is_refused_before_anything_is_spent",
)  # fmt: skip
renyi(
    "RE12", "../erm/search.py::_score", "a row with a far target moves a score by more than its noise hides",
    "np.clip(each, -bound, bound) / bound / 2", "each / bound / 2", SEARCH + "one_row_moves_a_score_by_at_most_one",
)  # fmt: skip
renyi(
    "RE13", "../erm/search.py::PrivateSearch._fit_candidate", "a fit spends what the score of its run spends too, so that a run costs more than is billed",
    "(1 - self.scoring) * each", "each",
    SEARCH + "each_run_has_its_own_account_that_holds_no_more_than_a_run_may_cost",
)  # fmt: skip
renyi(
    "RE21", "renyi_events.py::RandomRuns.divergence", "of the choice among runs only their number is billed",
    " + self.mean * largest_difference(self.each, order)", "",
    RENYI + "the_best_of_a_random_number_of_runs_loses_no_more_than_its_bill",
)  # fmt: skip
renyi(
    "RE22", "renyi_events.py::largest_difference", "what an event tells is understated, for it is likelier than thought",
    "+ c / np.expm1(TILTS)", "+ 0.9 * c / np.expm1(TILTS)",
    RENYI + "no_event_of_a_run_tells_more_than_the_best_of_several_is_billed_for",
)  # fmt: skip
renyi(
    "RE14", "../erm/search.py::PrivateSearch._fit_candidate", "a run spends the whole budget",
    "Budget(epsilon_of_rho(each, δ) * (1 - 1e-9), δ, self.budget.neighbours)", "Budget(self.budget.epsilon, δ, self.budget.neighbours)",
    SEARCH + "each_run_has_its_own_account_that_holds_no_more_than_a_run_may_cost",
)  # fmt: skip
renyi(
    "RE15", "../erm/search.py::PrivateSearch.fit", "the number of runs is written into the ledger, which analysts read",
    "np.concatenate([np.ravel(each) for each in told])", "np.concatenate([[run], *map(np.ravel, told)])",
    SEARCH + "the_bill_is_the_whole_budget_and_is_what_is_spent",
)  # fmt: skip
renyi(
    "RE16", "../erm/search.py::_score", "a row with products that overflow makes every score nothing, whatever the other rows",
    "np.nan_to_num(found[:, 0], nan=0.0)", "found[:, 0]", SEARCH + "a_row_of_any_size_moves_a_score_by_at_most_one_and_warns_of_nothing",
)  # fmt: skip
renyi(
    "RE23", "../erm/search.py::_row_scores", "a warning tells that a row is too large for a product",
    '@np.errstate(all="ignore")', "", SEARCH + "a_row_of_any_size_moves_a_score_by_at_most_one_and_warns_of_nothing",
)  # fmt: skip
renyi(
    "RE17", "../erm/search.py::PrivateSearch._event", "a search is a candidate, whose loss has no bound at the second order of the bill",
    "any(not isinstance(each, LinearModel) for each in self.candidates)", "any(not hasattr(each, \"ledger\") for each in self.candidates)",
    SEARCH + "arguments_that_make_no_search_are_refused",
)  # fmt: skip
renyi(
    "RE18", "../erm/search.py::PrivateSearch.fit", "a table that is too small for a search is charged, and then refused",
    "labels.size < 2:", "labels.size < 0:",
    SEARCH + "too_few_rows_for_a_search_are_refused_before_anything_is_spent",
)  # fmt: skip
renyi(
    "RE19", "../ledger/caps.py::Caps.require", "rounds of hits are charged to a cap, which converts at an order at which they have no bound",
    "if any(isinstance(event, RenyiEvent) for event in planned):", "if False:",
    RENYI + "nothing_that_is_priced_at_the_budgets_order_is_charged_under_a_cap",
)  # fmt: skip
renyi(
    "RE20", "../ledger/caps.py::_largest_cost", "a cap that comes after rounds of hits believes their price",
    "return budget.total", "return budget.cost(event)",
    RENYI + "nothing_that_is_priced_at_the_budgets_order_is_charged_under_a_cap",
)  # fmt: skip
renyi(
    "RE24", "../display/report_page.py::_cost", "a report says that a round of hits is worth a third of its ε",
    "if any(name in AT_ONE_ORDER for charge in charges for name in KIND.findall(charge.noise)):", "if not charges:",
    "test_report.py::test_a_price_that_is_no_rho_has_no_epsilon_beside_it",
)  # fmt: skip
renyi(
    "RE25", "../display/report_page.py::_cost", "the ε beside a cost is that of a row, where people have several",
    'facts.get("rows_per_unit", 1) ** 2 * cost', "cost", "test_report.py::test_the_epsilon_beside_a_cost_is_that_of_a_person",
)  # fmt: skip
renyi(
    "RE26", "../erm/search.py::PrivateSearch._fit_candidate", "runs of a candidate with a seed have the same noise, which its seed tells",
    "ledger=ledger, random_state=seed)", "ledger=ledger)", SEARCH + "a_seed_of_a_candidate_is_not_used_so_that_its_runs_are_independent",
)  # fmt: skip
renyi(
    "RE27", "../erm/search.py::PrivateSearch.fit", "a search with a seed is written down as private",
    "for each in told]), noise.private)", "for each in told]))", SEARCH + "the_bill_is_the_whole_budget_and_is_what_is_spent",
)  # fmt: skip
SUMMARY = "release_file/test_summary.py::test_"
renyi(
    "RE28", "../answering/privacy_statement.py::_composition", "a statement promises the price of planned noise as its ρ",
    'if "Planned" in kinds:', "if not kinds:",
    SUMMARY + "a_statement_names_a_rho_only_where_costs_are_losses_and_then_that_of_a_person",
)  # fmt: skip
renyi(
    "RE29", "../answering/privacy_statement.py::privacy_statement", "a statement promises the ρ of a row to a person with several",
    "b.total * b.rows_per_unit**2", "b.total",
    SUMMARY + "a_statement_names_a_rho_only_where_costs_are_losses_and_then_that_of_a_person",
)  # fmt: skip

PRIVACY = [
    *renyi.mutants,
    *threads.mutants,
    *of_ledgers.mutants,
    *of_prefit.mutants,
    *events.mutants,
    *planned.mutants,
    *allowance.mutants,
    *ledger.mutants,
    *noise.mutants,
]
