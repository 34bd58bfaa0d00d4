"""Mutants of the command line and of plans: unannounced spending, output, and promises."""

from __future__ import annotations

from mutant import Writer

COMMANDS = "cli/test_commands.py::test_"
TROUBLE = "cli/test_cli_trouble.py::test_"
PLAN = "planning/test_plan.py::test_"
DRAFT = COMMANDS + "rows_are_read_for_a_price_that_is_said_agreed_to_noted_and_taken_off_the_budget"

desk = Writer("command line", "")
desk(
    "Y01", "cli/environment.py::require_no_secret", "a password that is spelt out in the file is taken",
    "    if spelt:\n", "    if not url:\n",
    TROUBLE + "a_password_that_is_spelt_out_is_refused_and_neither_stored_nor_shown",
)  # fmt: skip
desk(
    "Y02", "cli/environment.py::redact", "a refusal shows the password that came from the environment",
    'text = text.replace(value, "***")', "text = str(text)",
    TROUBLE + "values_from_the_environment_are_escaped_in_urls_and_removed_from_messages",
)  # fmt: skip
desk(
    "Y03", "cli/output.py::GuardedGroup.invoke", "an unexpected failure shows its message, which may quote a row",
    "complain(_describe_unexpected(failed))", "complain(str(failed))",
    TROUBLE + "an_unexpected_error_shows_its_kind_and_place_and_not_its_message",
)  # fmt: skip
desk(
    "Y04", "cli/output.py::_warnings_as_sentences.say", "another library's warning about a row is shown",
    'if category.__module__.startswith("hedgerow"):', "if category is not None:",
    TROUBLE + "warnings_of_other_libraries_are_not_shown",
)  # fmt: skip
desk(
    "Y05", "cli/output.py::confirm", "a budget is spent without asking",
    "    if yes:\n", "    if question:\n",
    COMMANDS + "open_says_the_price_asks_and_opens_once",
)  # fmt: skip
desk(
    "Y06", "cli/file.py::File._without_draft", "what the draft has cost is spent again by the session",
    "left = [less(total.epsilon, epsilon), less(total.delta, delta)]", "left = [total.epsilon, total.delta]", DRAFT,
)  # fmt: skip
desk(
    "Y30", "cli/planning.py::plan", "a plan for another epsilon forgets the file's neighbours, and the draft that is spent",
    "budget = file.budget_with(epsilon, delta)", "budget = hr.Budget(epsilon, delta)",
    COMMANDS + "a_plan_with_another_epsilon_is_that_of_a_file_which_declares_it",
)  # fmt: skip
desk(
    "Y31", "cli/starting.py::_neighbours", "a draft that was paid for rows that come and go counts as one for rows that are replaced",
    'if chosen != said and earlier != (0.0, 0.0):', "if chosen is None:",
    COMMANDS + "a_file_that_is_written_over_keeps_the_neighbours_for_which_its_draft_was_paid",
)  # fmt: skip
desk(
    "Y07", "cli/starting.py::init", "a second draft forgets what the first one cost",
    "cost = (more(earlier[0], price.epsilon), more(earlier[1], price.delta))", "cost = (price.epsilon, price.delta)", DRAFT,
)  # fmt: skip
desk(
    "Y08", "cli/desk.py::session", "a question opens a session that nobody has agreed to pay for",
    "    if not first:\n", "    if not first and who:\n",
    COMMANDS + "a_session_must_be_opened_before_it_is_asked",
)  # fmt: skip
desk(
    "Y09", "ledger/sqlite.py::Sqlite.exists", "to look for a ledger makes one",
    "not self._path.exists()", "False",
    COMMANDS + "a_session_must_be_opened_before_it_is_asked",
)  # fmt: skip
desk(
    "Y10", "cli/asking.py::_read_questions", "a table given for questions is quoted row by row",
    'if {".csv", ".tsv", ".parquet"} & {suffix.lower() for suffix in source.suffixes} or file.is_own(source):', "if not source.name:",
    TROUBLE + "a_table_that_is_given_for_questions_is_not_quoted",
)  # fmt: skip
desk(
    "Y11", "cli/ledger.py::verify", "a ledger that was changed verifies as far as scripts can see",
    "raise typer.Exit(FAILED) from None", "raise typer.Exit(0) from None",
    TROUBLE + "a_ledger_that_is_not_what_was_written_has_status_1_where_it_is_checked_and_4_elsewhere",
)  # fmt: skip
desk(
    "Y12", "query/parse.py::read_question", "a text of any length is read",
    "if len(text) > LONGEST:", "if not isinstance(text, str):",
    "query/test_parse.py::test_anything_else_is_refused_in_a_sentence",
)  # fmt: skip
desk(
    "Y13", "query/wording.py::predicate_of", "a report says something near to what was asked",
    "if np.array_equal(cover.inside, mask) and np.array_equal(cover.touched, mask):", "if cover is not None:",
    "query/test_wording.py::test_any_cells_of_any_column",
)  # fmt: skip
desk(
    "Y14", "answering/answer_cache.py::AnswerCache.prepare", "a question of a taken-up session is answered anew, where it was answered before",
    "for query in queries if query not in self}", "for query in queries if query.key not in self._known}",
    "cli/test_same_answers.py::test_200_questions_as_python_sql_and_cli_give_the_same_answers_on_a_seeded_session",
)  # fmt: skip

desk(
    "Y19", "cli/output.py::GuardedGroup.invoke", "what a library logs, of rows perhaps, is shown",
    "logging.getLogger().addHandler(logging.NullHandler())", "logging.getLogger()",
    TROUBLE + "logs_of_other_libraries_are_not_shown",
)  # fmt: skip
plans = Writer("plans", "planning/")
plans(
    "Y15", "theorems.py::noise_width", "noise on every answer is promised for the price of one",
    "math.sqrt(k) * budget.linear())", "budget.linear())",
    PLAN + "noise_on_every_answer_stays_within_what_is_said_of_it",
)  # fmt: skip
plans(
    "Y16", "theorems.py::mechanisms", "an error is promised of answers that may be three times as far off",
    "pmw.rows_needed(g.budget, g.error / 3,", "pmw.rows_needed(g.budget, g.error,",
    PLAN + "the_theorems_are_those_of_the_textbook_said_of_every_answer",
)  # fmt: skip
plans(
    "Y17", "simulation.py::_errors", "the bars of a simulation are too narrow",
    "float(np.max(a.error))", "float(np.max(a.error)) / 1000",
    PLAN + "the_simulated_errors_are_within_their_bars_and_fall_with_the_rows",
)  # fmt: skip
plans(
    "Y18", "plan.py::_rank", "the options are not ranked by what they promise",
    "math.inf if found is None else found", "-math.inf if found is None else -found",
    PLAN + "a_plan_ranks_by_the_error_and_says_what_to_do",
)  # fmt: skip

CLI_MUTANTS = [*desk.mutants, *plans.mutants]
