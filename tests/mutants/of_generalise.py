"""Mutants of statements about the population, and of the reusable holdout."""

from __future__ import annotations

from mutant import Writer

TRANSFER = "generalise/test_transfer.py::test_"
STATEMENT = "generalise/test_statement.py::test_"
HOLDOUT = "generalise/test_holdout.py::test_"
POPULATION = "generalise/test_population.py::test_"
EXACT = (
    "exact/test_exact_generalise.py::test_one_row_moves_what_is_drawn_from_by_its_sensitivity_and_nothing_else_at_all"
)

theorem = Writer("generalise", "")
theorem(
    "GT01", "generalise/transfer.py::replace_one_cost", "a session for rows that come and go transfers as if they were replaced",
    "return 2 * epsilon, min(1.0, delta * (2 + _excess(epsilon)))", "return epsilon, delta",
    TRANSFER + "rows_that_come_and_go_transfer_as_one_that_is_replaced",
)  # fmt: skip
theorem(
    "GT02", "generalise/transfer.py::jung_extra", "the failures of privacy are forgotten",
    "return (math.sqrt(sample_beta) + math.sqrt(2 * delta)) ** 2 / beta", "return sample_beta / beta",
    TRANSFER + "the_price_of_failures_is_the_least_that_the_theorem_allows",
)  # fmt: skip
theorem(
    "GT03", "generalise/transfer.py::theorem_10", "Theorem 10 needs the rows that are printed, for a monitor without negations",
    "1024 * math.log(2 * queries / beta) / alpha**2)", "1024 * math.log(queries / beta) / alpha**2)",
    TRANSFER + "theorem_10_counts_negations_too",
)  # fmt: skip
theorem(
    "GT04", "generalise/transfer.py::in_expectation", "privacy is free: the population is as the sample",
    "return _cut_to_unit(sample_error + _excess(epsilon) + delta)", "return _cut_to_unit(sample_error + delta)",
    TRANSFER + "every_way_back_leads_there",
)  # fmt: skip
theorem(
    "GT05", "generalise/statement.py::population_statement", "a statement does not widen with what is asked",
    "while questions < asked:", "while False:",
    STATEMENT + "the_statement_widens_with_the_questions_and_its_betas_add_up",
)  # fmt: skip
theorem(
    "GT06", "generalise/statement.py::PopulationStatement.error", "an error above 1 is stated as if it said something",
    "if sample_error is None or not sample_error + self.extra < 1:", "if sample_error is None:",
    STATEMENT + "a_session_at_an_epsilon_of_one_says_that_no_theorem_helps",
)  # fmt: skip
theorem(
    "GT07", "research/analysts.py::greedy", "an analyst that was to overfit does not, and every mechanism passes",
    "votes += np.sign(ask(q) - q @ population) * (q - 0.5)", "votes += np.sign(0.5 - ask(q)) * (q - 0.5) * 0",
    POPULATION + "an_adaptive_analyst_finds_more_than_a_static_one",
)  # fmt: skip

holdout = Writer("generalise", "generalise/")
holdout(
    "HO01", "holdout.py::Holdout._score", "after a wrong guess the round goes on: its threshold is compared with again",
    "                        self._round = None\n", "",
    HOLDOUT + "an_exhausted_holdout_says_so_and_earlier_scores_remain",
)  # fmt: skip
holdout(
    "HO02", "holdout.py::Holdout._measure", "what is measured has no noise",
    "noisy = self._noise.add(total / UNITS, receipt)", "noisy = total / UNITS",
    EXACT,
)  # fmt: skip
holdout(
    "HO03", "holdout.py::Holdout._measure", "a measurement tells all its digits, and the intervals count few",
    "return min(float(self._held.n), max(0.0, round(noisy / step) * step))", "return noisy",
    HOLDOUT + "a_measurement_says_no_more_than_its_resolution_and_so_does_the_ledger",
)  # fmt: skip
holdout(
    "HO04", "holdout.py::Holdout._open_round", "the ledger tells the digits that the score does not",
    "receipt = self._ledger.charge(self.plan.guard, self.plan.measurement, why=ROUND, keep=False)",
    "receipt = self._ledger.charge(self.plan.guard, self.plan.measurement, why=ROUND)",
    HOLDOUT + "a_measurement_says_no_more_than_its_resolution_and_so_does_the_ledger",
)  # fmt: skip
holdout(
    "HO05", "holdout.py::Holdout._guess_sum", "the guess is made from the holdout itself",
    "return round(_total(values(self._train)) * self._held.n / self._train.n)", "return _total(values(self._held))",
    HOLDOUT + "a_score_that_the_training_set_explains_is_the_training_set_s_and_free_but_for_the_round", EXACT,
)  # fmt: skip
holdout(
    "HO06", "holdout.py::Holdout.__init__", "rows come and go in a holdout whose intervals know how many there are",
    'if budget.neighbours != "replace":', "if False:",
    HOLDOUT + "senseless_arguments_are_refused",
)  # fmt: skip
holdout(
    "HO07", "holdout.py::_call_model", "what a model raised, which may quote a row, is passed on",
    "    except Exception:\n        pass\n    raise InvalidInput(\n", "    except ZeroDivisionError:\n        pass\n    raise InvalidInput(\n",
    HOLDOUT + "a_model_that_raises_on_a_row_is_refused_without_its_words_or_judged_row_by_row",
)  # fmt: skip
holdout(
    "HO08", "holdout.py::_read_only", "a model writes to the test set, and all later scores are of something else",
    "    seen.flags.writeable = False\n", "",
    HOLDOUT + "a_model_cannot_write_to_the_holdout",
)  # fmt: skip
holdout(
    "HO09", "metrics.py::in_units", "one row counts for more than one",
    "np.floor(np.clip(known, 0.0, 1.0) * UNITS)", "np.floor(known * UNITS)",
    HOLDOUT + "a_value_that_is_no_number_is_the_worst_and_others_are_clipped", EXACT,
)  # fmt: skip
holdout(
    "HO10", "metrics.py::Metric.worst", "a model that says nothing about a row is right about it",
    "return 0.0 if self.greater_is_better else 1.0", "return 1.0",
    EXACT, HOLDOUT + "a_metric_s_worst_value_is_its_own",
)  # fmt: skip
holdout(
    "HO11", "widths.py::words", "intervals forget what was measured before",
    "return which + combinations + (f + m) * math.log(plan.values)", "return which + combinations",
    HOLDOUT + "the_shares_of_beta_of_all_that_could_be_asked_add_up_to_at_most_one",
)  # fmt: skip
holdout(
    "HO12", "widths.py::below", "intervals forget the noise of the threshold",
    "return plan.threshold + max(0.0, τ) + max(0.0, ν) + 2 * FINEST", "return plan.threshold",
    HOLDOUT + "after_below_the_guess_is_as_close_as_stated",
)  # fmt: skip
holdout(
    "HO13", "widths.py::measurement_width", "the noise of a measurement is said to be a third of what it is",
    "return noise + plan.resolution / 2 + FINEST", "return noise / 3",
    HOLDOUT + "noise_stays_within_its_width",
)  # fmt: skip
holdout(
    "HO14", "widths.py::_parts", "half of β is spent three times",
    "return 2 / (1 / (count * (count + 1)) + (1 / planned if count <= planned else 0.0))",
    "return 1 / (1 / (count * (count + 1)) + (1 / planned if count <= planned else 0.0))",
    HOLDOUT + "parts_of_a_probability_add_up_to_at_most_one",
)  # fmt: skip
holdout(
    "HO15", "search.py::EarlyStopping.update", "a loss that rises is an improvement",
    "if self.best is None or self._sign * score.value > self._sign * self.best.value:",
    "if self.best is None or score.value > self.best.value:",
    HOLDOUT + "early_stopping_stops_after_patience_updates_without_an_improvement",
)  # fmt: skip
holdout(
    "HO16", "scoring.py::WholeTrainingSet.split", "a search fits on half of the rows it is given",
    "yield rows, rows", "yield rows[::2], rows",
    HOLDOUT + "the_split_of_a_holdout_is_all_rows_twice",
)  # fmt: skip

holdout(
    "HO17", "holdout.py::Holdout._score", "words are counted though the rows were asked about elsewhere",
    "alone = len(self._ledger.entries()) == self._charges", "alone = True",
    HOLDOUT + "words_are_counted_only_while_the_ledger_pays_for_nothing_else",
)  # fmt: skip

holdout(
    "HO20", "pairs.py::_units", "a sum over pairs moves by more than is billed",
    "return halves * UNITS // (2 * max(1, rows - 1))", "return halves * UNITS // max(1, rows - 1)",
    "generalise/test_ranking_pairs.py::test_a_row_moves_a_sum_over_pairs_by_at_most_one",
)  # fmt: skip
holdout(
    "HO21", "widths.py::interval", "pairs of rows are taken for independent rows",
    "spent + math.log(2), math.floor(n))", "spent + math.log(2), plan.rows)",
    "generalise/test_ranking_pairs.py::test_an_interval_of_pairs_is_that_of_half_as_many_rows",
)  # fmt: skip

monitor = Writer("generalise", "")
monitor(
    "GT08", "research/monitors.py::exponential_monitor", "the monitor takes no negations, and does not see half of what is wrong",
    "scores = epsilon * rows * np.concatenate([gaps, -gaps]) / 2", "scores = epsilon * rows * np.concatenate([gaps, gaps - 9]) / 2",
    POPULATION + "the_monitor_takes_a_query_or_its_negation",
)  # fmt: skip

GENERALISE = [*theorem.mutants, *holdout.mutants, *monitor.mutants]
