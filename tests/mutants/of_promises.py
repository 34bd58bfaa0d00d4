"""Mutants that passed all tests until one stated the promise: each note is the promise that it breaks."""

from __future__ import annotations

from mutant import Writer

promise = Writer("promises stated", "")
promise(
    "PK01", "privacy/planned.py::mixed_delta", "δ of planned noise is an upper bound: all that is above the cells counts as lost",
    " + float(above[-1])\n", "\n",
    "privacy/test_planned.py::test_all_that_is_above_the_cells_counts_as_lost",
)  # fmt: skip
promise(
    "PK02", "privacy/ledger.py::Ledger.share_turn", "threads that ask of different blocks take turns in one lock",
    "self._turn.share(other._turn)", "pass",
    "ledger/test_ledger_of_blocks.py::test_threads_that_ask_of_different_blocks_of_one_ledger_take_turns",
)  # fmt: skip
promise(
    "PK03", "privacy/replay.py::Replay.end", "a second session on a ledger pays for its own draws",
    "            self._has_opened = True\n", "",
    "privacy/test_ledgers.py::test_an_opening_reuses_all_charges_of_an_unfinished_opening_and_none_of_a_finished_one",
)  # fmt: skip
promise(
    "PK04", "privacy/budget.py::Budget.epsilon_of_rows", "what k rows of a person have lost is as much as k times less noise would lose one row",
    "epsilon_of_rho(k**2 * rho, delta)", "epsilon_of_rho(k * rho, delta)",
    "privacy/test_rows_per_unit.py::test_the_loss_of_k_rows_is_that_of_one_row_with_k_times_less_noise",
)  # fmt: skip
promise(
    "PK05", "privacy/accounts.py::Accounts.spent_epsilon", "what is said to be spent on blocks is the most of any",
    "return max(ledger.spent_epsilon for ledger in self._ledgers)", "return min(ledger.spent_epsilon for ledger in self._ledgers)",
    "sessions/test_blocks.py::test_several_accounts_have_spent_the_most_of_any_and_have_left_the_least",
)  # fmt: skip
promise(
    "PK06", "ledger/caps.py::Caps._above", "a cap of one name is not used up by a name that begins like it",
    'who == name or who.startswith(f"{name}/")', "who == name or who.startswith(name)",
    "ledger/test_durable.py::test_a_cap_is_used_only_by_its_own_analyst_and_not_by_similar_names",
)  # fmt: skip
promise(
    "PK07", "engine/practical/fit/value_groups.py::ValueGroups.draw_values", "drawn numbers of two attributes are independent inside their bins",
    "low + uniforms[:, k] * (high - low)", "low + uniforms[:, 0] * (high - low)",
    "engine/test_value_groups.py::test_records_of_groups_become_records_of_their_values_by_their_shares",
)  # fmt: skip
promise(
    "PK08", "answer.py::Answer.certainly_below", "certainly_below is said only where all truths within the bars are below",
    "return (-self).certainly_above(-other)", "return not self.certainly_above(other)",
    "test_answer.py::test_certainly_above_and_below_are_stated_exactly_if_they_hold_within_all_bars",
)  # fmt: skip
promise(
    "PK09", "answer.py::Answer.certainly_above", "a table is certainly above only where every cell is",
    "return gap is not None and bool(np.all(gap[0] > 0))", "return gap is not None and bool(np.any(gap[0] > 0))",
    "test_answer.py::test_certainly_above_and_below_are_stated_exactly_if_they_hold_within_all_bars",
)  # fmt: skip
promise(
    "PK10", "session.py::Session._settle", "raw rows of one block never answer for several",
    "self._cache, self._sampling = AnswerCache(self._engine, self._ledger.answer_log), None", "self._cache, self._sampling = AnswerCache(self._engine, self._ledger.answer_log), blocks[0].sampling",
    "sessions/test_blocks.py::test_raw_rows_of_one_block_never_answer_for_several",
)  # fmt: skip
promise(
    "PK11", "session.py::Session._settle", "a statement about the population fails where the bars of any block do",
    "self._beta = math.fsum(block.beta for block in blocks)", "self._beta = max(block.beta for block in blocks)",
    "sessions/test_blocks.py::test_a_statement_about_the_population_fails_where_bars_of_any_block_do",
)  # fmt: skip
promise(
    "PK12", "answering/over_time.py::answer_over_time", "all series, however often they grow, share one β",
    "series.number * (series.number + 1)) / (count * (count + 1))", "series.number * (series.number + 1))",
    "sessions/test_blocks.py::test_all_series_however_often_they_grow_share_half_of_the_second_beta",
)  # fmt: skip
promise(
    "PK13", "answering/askable.py::Askable.population_after", "no statement about the population rests on an estimate of n",
    'rows = self.rows if self.budget.neighbours == "replace" else None', "rows = self.rows",
    "generalise/test_statement.py::test_under_add_remove_no_statement_rests_on_an_estimate_of_n",
)  # fmt: skip
promise(
    "PK14", "session.py::Session.price", "what was bought is repeated for nothing, and priced so",
    "return self._cache.price(bound, wanted)", "return self._engine.price(bound, wanted)",
    "test_session.py::test_the_price_of_an_answer_already_bought_is_zero_like_its_repetition",
)  # fmt: skip
promise(
    "PK15", "query/statistics/spread.py::BoundCorrelation.ends.over", "the interval of a correlation holds for every table that the bars allow",
    "scale = least if is_outward else most", "scale = most",
    "query/test_composed.py::test_the_truth_of_every_table_that_the_bars_allow_is_between_the_ends",
)  # fmt: skip
promise(
    "PK16", "engine/theory_answers.py::TheoryAnswers.total_error_in_rows", "a total is inside its bar where n is private, however far from 0 its numbers are",
    "h * value + (self.rows + h) * error", "(self.rows + h) * error",
    "sessions/test_questions_as_asked.py::test_a_total_is_inside_its_bar_where_the_number_of_rows_is_private_however_far_from_0_numbers_are",
)  # fmt: skip
promise(
    "PK17", "query/ratios.py::BoundRatio.slopes", "the upper end of a ratio holds for every table that the bars allow",
    "slope = self.below.low if upper else self.below.high", "slope = self.below.high",
    "query/test_composed.py::test_the_truth_of_every_table_that_the_bars_allow_is_between_the_ends",
)  # fmt: skip
promise(
    "PK18", "query/ratios.py::BoundMean.buy", "the lower end of a bought mean holds for every table that the bars allow",
    "lower = c + (low / few if low < 0 else low / many) - coarse", "lower = c + low / many - coarse",
    "query/test_composed.py::test_the_truth_of_every_table_that_the_bars_allow_is_between_the_ends", "query/test_composed.py::test_a_purchase_is_as_accurate_as_was_asked_for",
)  # fmt: skip
promise(
    "PK19", "generalise/widths.py::interval", "both ends of an interval fail together with the share of β of the query",
    "spent + math.log(2), math.floor(n))", "spent, math.floor(n))",
    "generalise/test_holdout.py::test_both_ends_of_an_interval_fail_together_with_the_share_of_beta_that_the_query_has",
)  # fmt: skip
promise(
    "PK20", "generalise/widths.py::measurement_width", "the width of a measurement is left on either side with its share of β",
    "noise = plan.measurement.sigma * math.sqrt(2 * math.log(2 / share))", "noise = plan.measurement.sigma * math.sqrt(2 * math.log(1 / share))",
    "generalise/test_holdout.py::test_the_width_of_a_measurement_is_left_on_either_side_with_its_share_of_beta",
    equivalent="P(|N| > x·σ) ≤ exp(−x²/2), so √(2 ln(1/s)) is a bound on both sides already, with s: narrower, and as true",
)  # fmt: skip
promise(
    "PK21", "generalise/holdout.py::Holdout._score", "an interval leaves room for what values lose as whole units",
    "low, min(1.0, high + 1 / UNITS)", "low, high",
    "generalise/test_holdout.py::test_an_interval_leaves_room_for_what_values_lose_as_whole_units",
)  # fmt: skip
promise(
    "PK22", "sql/conditions.py::_is", "NOT (x IS TRUE) holds of records whose x is NULL",
    "        return SqlCondition(chosen, ~chosen)\n", "        return SqlCondition(chosen, inner.false if constant(other) else inner.true)\n",
    "sql/test_three_values.py::test_a_condition_counts_the_records_of_which_it_is_true",
)  # fmt: skip
promise(
    "PK23", "sql/statement.py::_Reader.having", "HAVING BETWEEN includes both its ends",
    "_compare_numbers(operator.le, v[1], v[0]), _compare_numbers(operator.le, v[0], v[2])", "_compare_numbers(operator.lt, v[1], v[0]), _compare_numbers(operator.le, v[0], v[2])",
    "sql/test_three_values.py::test_having_keeps_the_groups_of_which_it_is_true",
)  # fmt: skip
promise(
    "PK24", "sql/statement.py::_all", "NULL AND FALSE is FALSE in HAVING",
    "return False if a is False or b is False else None if a is None or b is None else True", "return None if a is None or b is None else a and b",
    "sql/test_three_values.py::test_having_keeps_the_groups_of_which_it_is_true",
)  # fmt: skip
promise(
    "PK25", "sql/statement.py::_root", "the bar of a deviation reaches to the farther root of its variance",
    "return replace(answer, value=value, error=max(high - value, value - low), resolution=0.0, typical=None)", "return replace(answer, value=value, error=high - value, resolution=0.0, typical=None)",
    "sql/test_three_values.py::test_the_bar_of_a_deviation_reaches_to_the_farther_root_of_its_variance",
)  # fmt: skip
promise(
    "PK26", "ledger/replay.py::read_charge", "a charge out of order is found though its hash fits",
    "    if entry.number != number or entry.released:\n", "    if entry.released:\n",
    "ledger/test_durable.py::test_a_charge_that_is_not_the_next_one_is_found_though_its_hash_fits",
)  # fmt: skip
promise(
    "PK27", "ledger/snapshots.py::StoredSnapshots.take", "no snapshot is taken that lacks what others bought",
    "        if self._state_now is None or self._log.has_news or self._chain.is_broken:", "        if self._state_now is None or self._chain.is_broken:",
    "ledger/test_durable.py::test_no_snapshot_is_taken_that_lacks_what_others_bought",
)  # fmt: skip
promise(
    "PK28", "ledger/chain.py::check_lines", "a line earlier than the one before it is found though its hash fits",
    "        if line.time < before.time:", "        if False:",
    "ledger/test_durable.py::test_a_line_earlier_than_the_one_before_it_is_found_though_its_hash_fits",
)  # fmt: skip
promise(
    "PK29", "ledger/store.py::_reason", "a refusal has nothing of a database's statement or its values",
    'return said[0].rstrip(".")[:160] if said else type(error).__name__', "return str(error)",
    "ledger/test_trouble.py::test_a_refusal_has_the_databases_first_words_and_nothing_of_the_statement_or_its_values",
)  # fmt: skip
promise(
    "PK30", "data/coding.py::Coder._of_day", "the last day of a range is in its period",
    "not self._firsts[0] <= day <= self._last", "not self._firsts[0] <= day < self._last",
    "data/test_rules.py::test_every_day_of_a_range_is_in_its_period_and_those_beside_it_are_outside",
)  # fmt: skip
promise(
    "PK31", "data/spark_table.py::_as_signed", "every cell fits the signed type of its column on Spark",
    "if size - 1 <= np.iinfo(kind).max", "if size - 1 <= 2 * np.iinfo(kind).max",
    "data/test_spark_workers.py::test_every_cell_fits_the_signed_type_of_its_column",
)  # fmt: skip
promise(
    "PK32", "data/spark_table.py::SparkTable._distinct_values", "a Spark table's fingerprint is of all its records",
    "        if some:\n            yield np.array(some, np.int64)\n", "",
    "data/test_spark_workers.py::test_a_fingerprint_is_of_all_records_however_many_come_together",
)  # fmt: skip
promise(
    "PK33", "data/source.py::HistogramSource.merge_values", "merged counts keep the order of their axes",
    "counts = np.moveaxis(fewer, 0, axis)", "counts = fewer",
    "data/test_sources.py::test_rows_under_fewer_values_are_counted_as_if_each_had_been_coded_so",
)  # fmt: skip
promise(
    "PK34", "erm/estimators.py::_Regressor._solve_scaled", "a ridge penalty follows the public number of rows",
    "self._loss(n)", "self._loss(X.shape[0])",
    "erm/test_erm_estimators.py::test_the_penalty_is_of_the_public_number_of_rows_however_many_there_are",
)  # fmt: skip
promise(
    "PK35", "planning/plan.py::_theorem_option", "the rows that a plan says are enough are, and half of them are not",
    'needed = solve(mechanism, goal, "rows")', 'needed = (solve(mechanism, goal, "rows") or 0.0) / 2',
    "planning/test_plan.py::test_the_rows_that_a_plan_says_are_enough_are_and_half_of_them_are_not",
)  # fmt: skip
promise(
    "PK36", "planning/plan.py::_simulated_option", "no rows are promised that the simulation did not find enough",
    "needed = float(found.rows) if enough else None", "needed = float(found.rows)",
    "planning/test_plan.py::test_no_rows_are_promised_that_the_simulation_did_not_find_enough",
)  # fmt: skip
promise(
    "PK37", "cli/output.py::GuardedGroup.invoke", "a command ends with status 0 only where all is well",
    "code = INTERRUPTED", "code = 0",
    "cli/test_cli_trouble.py::test_a_command_ends_with_the_status_of_how_it_ended_and_with_0_only_where_all_is_well",
)  # fmt: skip

promise(
    "MX01", "engine/matrix.py::plan_matrix", "a factorization release under add/remove pays as if a row were replaced by itself",
    'budget.pure or budget.neighbours != "replace"', "budget.pure",
    "engine/test_matrix.py::test_a_workload_that_cannot_be_planned_is_refused",
)  # fmt: skip
promise(
    "JR01", "engine/practical/measure/prefit.py::joint_event", "rounding of joint residuals is not billed",
    "exact + grid * math.sqrt(count)", "exact",
    "exact/test_exact_practical.py::test_one_row_moves_what_is_drawn_from_by_its_sensitivity_and_nothing_else_at_all",
)  # fmt: skip
promise(
    "B121", "engine/practical/bars/error_bars.py::_laplace_sum", "the norm of coarse Laplace noise is that of an exponential",
    "return event.scale * (cells + math.sqrt(2 * cells * x) + x) + rounded * cells", "return event.scale * (cells + math.sqrt(2 * cells * x) + x)",
    "engine/test_bar_widths.py::test_a_bar_is_the_one_of_the_proof",
)  # fmt: skip
promise(
    "B122", "engine/practical/bars/error_bars.py::_laplace_sum", "a bar that was bought is wider than the one that was asked and paid for",
    "min(event.grid, event.scale * math.log(2))", "event.grid",
    "engine/test_bar_widths.py::test_a_bar_is_proportional_to_the_noise_however_coarse_its_grid",
)  # fmt: skip
promise(
    "B123", "engine/practical/certificate/certified_bounds.py::_times", "a question that the certificate does not cover gets a value that is no number",
    "np.where(few, np.where(few, pieces, 0.0) * rows, math.inf)", "pieces * rows",
    "engine/test_certificate.py::test_a_question_that_is_no_sum_of_products_has_a_bar_however_exact_the_products_are",
)  # fmt: skip
promise(
    "LB01", "planning/lower_bounds.py::many_counts", "a plan states a limit that a mechanism for rows that come and go can undercut",
    "ε, δ = 2 * ε, min(1.0, δ * (1 + math.exp(min(ε, 700.0))))", "pass",
    "planning/test_lower_bounds.py::test_under_add_remove_many_counts_have_the_bound_of_two_steps",
)  # fmt: skip
promise(
    "LB03", "planning/lower_bounds.py::one_count", "a plan states a limit that is twice what a mechanism reaches",
    "/ (2 * rows)", "/ rows",
    "planning/test_lower_bounds.py::test_a_mechanism_of_two_answers_is_not_below_the_bound_of_one_count_and_is_below_twice_the_bound",
)  # fmt: skip

PROMISES = promise.mutants
