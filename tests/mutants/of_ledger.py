"""Mutants of durable ledgers."""

from __future__ import annotations

from mutant import Writer

DURABLE = "ledger/test_durable.py::test_"
TROUBLE = "ledger/test_trouble.py::test_"
LEDGERS = "privacy/test_ledgers.py::test_"
GROUPS = "ledger/test_groups.py::test_"
MOVED = "ledger/test_moved_ledgers.py::test_"

ledger = Writer("ledgers", "ledger/")
ledger(
    "G01", "chain.py::_hash", "a line's hash does not fix the lines before it: history can be rewritten in place",
    "ordered([before, *said]", 'ordered(["", *said]',
    DURABLE + "every_single_byte_of_every_line_is_checked",
)  # fmt: skip
ledger(
    "G02", "chain.py::check_lines", "lines are not compared with their hashes",
    "or line.hash != _hash(before.hash, line.number, *said):", "or not line.hash:",
    DURABLE + "every_single_byte_of_every_line_is_checked",
)  # fmt: skip
ledger(
    "G03", "store.py::Store._append", "a line is written wherever another process has left off, on sums that are too small",
    "if after is not None and (head.number, head.hash) != (after.number, after.hash):", "if after is not None and head.number < 0:",
    DURABLE + "a_line_is_written_after_the_one_that_was_seen_last_or_not_at_all[SQLite]",
)  # fmt: skip
ledger(
    "G04", "store.py::Store._append", "times go back with the clock, and the ledger no longer verifies",
    "max(when, head.time), who, kind, body)", "when, who, kind, body)",
    TROUBLE + "a_clock_that_went_back_refuses_a_charge_and_not_what_was_drawn[SQLite]",
)  # fmt: skip
ledger(
    "G05", "sqlite.py::Sqlite._take_turn", "two sessions have the turn at once on SQLite",
    '"BEGIN EXCLUSIVE"', '"BEGIN"',
    TROUBLE + "a_waiter_is_refused_after_the_limit_and_readers_do_not_wait[SQLite]",
)  # fmt: skip
ledger(
    "G06", "sqlite.py::Sqlite._insert_after", "an answer that was not written is taken for written",
    "(*row, number)).rowcount == 1", "(*row, number)).rowcount >= 0",
    DURABLE + "a_line_is_written_after_the_one_that_was_seen_last_or_not_at_all[SQLite]",
)  # fmt: skip
ledger(
    "G07", "postgres.py::Postgres._take_turn", "two sessions have the turn at once on PostgreSQL",
    "SELECT pg_advisory_lock({LOCK})", "SELECT pg_advisory_lock_shared({LOCK})",
    TROUBLE + "a_waiter_is_refused_after_the_limit_and_readers_do_not_wait[PostgreSQL]",
)  # fmt: skip
ledger(
    "G08", "urls.py::_refusal", "a refused URL is quoted with its password",
    "said = repr(scheme) if found and len(scheme) <= 20 and", "said = repr(text) if True or",
    TROUBLE + "no_piece_of_a_password_is_in_the_refusal_of_a_url[password=hunter2]",
)  # fmt: skip
ledger(
    "G09", "durable.py::Durable._learn_first", "a charge does not look at what other processes have spent",
    "        self._parts.log.catch_up()\n        if self._parts.log.has_news and self._can_learn:", "        if self._parts.log.has_news and self._can_learn:",
    DURABLE + "amounts_spent_by_one_process_are_not_left_for_the_other",
)  # fmt: skip
ledger(
    "G10", "durable.py::Durable._learn_first", "a session buys from what it knew before others had taught",
    "if self._parts.log.has_news and self._can_learn:", "if self._parts.log.has_news and self._parts.chain.is_broken:",
    DURABLE + "sessions_on_one_ledger_know_of_each_others_charges_before_they_charge[SQLite]",
)  # fmt: skip
ledger(
    "G11", "caps.py::Caps.require", "a cap may be overspent",
    "if spent + more > cap * (1 + FIT):", "if spent + more > cap * 2:",
    DURABLE + "nobody_spends_more_than_their_cap_and_all_together_no_more_than_the_budget[SQLite]",
)  # fmt: skip
ledger(
    "G12", "stored_answers.py::StoredAnswerLog.mark_guard_used", "an answer that holds a guard's comparison is not written, and lost with its process",
    "        self._index.has_compared = True\n", "        self._index.has_compared = False\n",
    DURABLE + "free_answers_are_written_with_the_next_charge_and_those_of_a_guard_at_once",
)  # fmt: skip
ledger(
    "G13", "stored_answers.py::StoredAnswerLog.note", "an answer that was paid for is not written before it is given",
    "if paid or self._index.is_full or (self", "if self._index.is_full or (self",
    DURABLE + "free_answers_are_written_with_the_next_charge_and_those_of_a_guard_at_once",
)  # fmt: skip
ledger(
    "G14", "log.py::StoredLog._commit", "a ledger that failed in mid-write goes on with sums that may be wrong",
    "self._chain.fail()", "pass",
    TROUBLE + "no_error_contains_what_could_not_be_written",
)  # fmt: skip
ledger(
    "G15", "shared_chain.py::SharedChain.require_clock", "a clock may go back",
    "if behind > CLOCK:", "if behind > CLOCK * 10**6:",
    TROUBLE + "a_clock_that_went_back_refuses_a_charge_and_not_what_was_drawn[SQLite]",
)  # fmt: skip
ledger(
    "G16", "turns.py::QuestionTurn.charge", "others charge between two charges of a question",
    "if self._questions and not self._is_held:", "if self._questions and self._is_held:",
    TROUBLE + "a_waiter_is_refused_after_the_limit_and_readers_do_not_wait[SQLite]",
)  # fmt: skip
ledger(
    "G17", "snapshots.py::StoredSnapshots.take", "a snapshot forgets half of what was spent",
    '"spent": str(standing.spent)', '"spent": str(standing.spent / 2)',
    DURABLE + "a_snapshot_gives_what_all_entries_give_to_the_last_bit",
)  # fmt: skip
ledger(
    "G18", "snapshots.py::_snapshot", "a snapshot is believed whatever it says",
    ' or replay.record_in(line, sha256=str)["sha256"] != digest(text):', ":",
    DURABLE + "a_changed_snapshot_is_found_and_refused",
)  # fmt: skip
ledger(
    "G19", "caps.py::Author.who", "what serves everybody is on the cap of who opened first",
    "return EVERYBODY if self.is_opening else self.name", "return self.name",
    DURABLE + "charges_of_an_opening_are_on_nobodys_cap",
)  # fmt: skip
ledger(
    "G20", "replay.py::with_release", "of several releases only the last is taken up, and the others are drawn again",
    "released=(*entry.released, value)", "released=(value,)",
    LEDGERS + "a_resumed_receipt_returns_each_of_its_releases_in_turn[SQLite]",
)  # fmt: skip
ledger(
    "G21", "answer_log.py::name_of", "questions on the same attributes get each other's answers",
    "_digest(bound.plain_name)", "_digest(repr(bound.attributes))",
    DURABLE + "a_reopened_session_has_its_spending_and_gives_the_same_answers_for_free[SQLite]",
)  # fmt: skip
ledger(
    "G22", "binding.py::_fingerprint", "the fingerprint needs no key: who knows all rows but one tries out the last",
    'hmac.digest(key, f"table', 'hmac.digest(b"key", f"table',
    DURABLE + "the_key_is_apart_from_the_ledger_and_without_it_nothing_is_recognised",
)  # fmt: skip
ledger(
    "G23", "binding.py::_key", "a key that others may read is used",
    "st_mode & 0o077", "st_mode & 0o000",
    DURABLE + "the_key_is_apart_from_the_ledger_and_without_it_nothing_is_recognised",
)  # fmt: skip
ledger(
    "G24", "binding.py::require_same", "a ledger is taken up on another table: its bars are wrong, and the other's people unbilled",
    'if not hmac.compare_digest(str(record.get("table")), found):', "if not found:",
    DURABLE + "another_table_or_another_declaration_is_refused_and_spends_nothing",
)  # fmt: skip
ledger(
    "G25", "spending.py::verify", "lines cut off at the end are not missed",
    "seen = wanted is None or wanted.number == 0", "seen = True",
    DURABLE + "lines_cut_off_at_the_end_are_found_by_a_head_noted_elsewhere[SQLite]",
)  # fmt: skip
ledger(
    "G26", "read_only.py::Reading.verify", "a reader's check leaves out the head that was noted",
    "return views.verify(self._store, head)", "return views.verify(self._store)",
    DURABLE + "lines_cut_off_at_the_end_are_found_by_a_head_noted_elsewhere[SQLite]",
)  # fmt: skip
ledger(
    "G27", "caps.py::Caps._above", "a project's cap does not hold for its analysts",
    'who == name or who.startswith(f"{name}/")', "who == name",
    DURABLE + "a_project_has_a_cap_that_its_analysts_share_and_each_may_have_one_of_their_own[SQLite]",
)  # fmt: skip
ledger(
    "G27a", "caps.py::Caps._above", "the cap of all analysts does not hold for their sum",
    "for who, spent in self.by.items() if who != EVERYBODY", "for who, spent in self.by.items() if who == ALL",
    DURABLE + "the_cap_of_all_analysts_holds_for_their_sum_and_not_for_everybody",
)  # fmt: skip
ledger(
    "G28", "stored_answers.py::StoredAnswerLog.at_once", "answers of a guard that are given together are not written",
    "if self._index.has_compared and not self._chain.is_in_group:", "if not self._index.waits:",
    DURABLE + "answers_of_a_guard_that_are_given_together_are_written_together_before_they_are_given",
)  # fmt: skip
ledger(
    "G29", "stored_answers.py::StoredAnswerLog.write_left_over", "an answer that could not be written is repeated, and lost with its process",
    "if self._index.has_compared and not self._is_at_once and not self._chain.is_in_group:", "if self._chain.is_broken:",
    TROUBLE + "an_answer_that_could_not_be_written_is_neither_given_nor_repeated[True]",
)  # fmt: skip
ledger(
    "G30", "spending.py::verify", "a snapshot that was changed passes for the one that was taken",
    "if snapshots.get(number) != digest(store.snapshot(number)):", "if number not in snapshots:",
    DURABLE + "a_change_in_any_place_of_any_table_is_found[SQLite]",
)  # fmt: skip
ledger(
    "G31", "read_only.py::Reading.remaining", "what is set aside for planned noise is said to be left for questions",
    "self._parts().subtract_from(Fraction(self.budget.total))[1]", "sum(self._parts().subtract_from(Fraction(self.budget.total)))",
    DURABLE + "the_remainder_that_a_read_only_ledger_states_is_what_questions_may_spend",
)  # fmt: skip
ledger(
    "G32", "shared_chain.py::SharedChain.unread", "a session goes on, or waits for ever, on a ledger that was put back to an older copy",
    "head.number < self.head.number or (", "False and (",
    MOVED + "a_session_under_which_an_older_ledger_was_put_back_charges_nothing_more[DELETE FROM hedgerow_lines WHERE number > 3-SQLite]",
)  # fmt: skip
ledger(
    "G33", "sqlite.py::Sqlite._require_file", "a session charges in a file that was replaced, and nobody finds what it spent",
    "found != self._file", "False",
    MOVED + "a_replaced_ledger_file_gets_no_entries_that_would_be_lost",
)  # fmt: skip
ledger(
    "G34", "sqlite.py::Sqlite.__init__", "who opens a ledger by a link has turns of their own",
    "Path(database).resolve()", "Path(database).absolute()",
    MOVED + "a_link_to_a_ledger_has_the_turns_of_its_file",
)  # fmt: skip
ledger(
    "G35", "sqlite.py::Sqlite._take_turn", "after the lock of turns was removed two sessions have the turn at once",
    "or self._turns is None or self._turns != _file_at(turn)", "or self._turns is None",
    MOVED + "sessions_agree_on_a_new_lock_if_the_lock_of_turns_was_removed",
)  # fmt: skip
ledger(
    "G36", "sqlite.py::Sqlite._require_file", "a file with two names has two logs, and is spent twice",
    "self._path.stat().st_nlink > 1", "self._path.stat().st_nlink > 9",
    MOVED + "a_second_name_of_the_file_spends_nothing_unseen",
)  # fmt: skip
ledger(
    "G37", "postgres.py::Postgres._read_place", "a password with a sign that a URL cannot hold is in the refusal",
    'if "@" in user or "/" in user or', "if",
    TROUBLE + "no_piece_of_a_password_is_in_the_refusal_of_a_url[postgresql://ana:x@hunter2@localhost/people]",
)  # fmt: skip
ledger(
    "G38", "postgres.py::Postgres._read_place", "on a database without an encoding lines are bytes, and no ledger can be read",
    ' | {"client_encoding": "utf8"}', "",
    TROUBLE + "a_database_without_an_encoding_holds_a_ledger",
)  # fmt: skip
ledger(
    "G39", "store.py::Database._or_forgotten", "who is interrupted as the turn comes keeps it, and all others wait",
    "            self._forget_turn()\n", "            pass\n",
    TROUBLE + "a_waiter_interrupted_as_the_turn_comes_does_not_keep_it[SQLite]",
)  # fmt: skip
ledger(
    "G40", "log.py::StoredLog._count_charge", "what another process charged is held and not counted: the budget is spent twice",
    "self._filter.count_earlier(entry)", "pass",
    "privacy/test_logs.py::test_lines_of_another_process_are_read_counted_and_kept_for_the_engine[SQLite]",
)  # fmt: skip
ledger(
    "G41", "log.py::StoredLog.append", "a charge is written beside one of another process that was not seen",
    "alone=True", "alone=False",
    "privacy/test_logs.py::test_a_charge_is_refused_that_follows_one_of_another_process_that_was_not_seen[SQLite]",
)  # fmt: skip
ledger(
    "G42", "caps.py::CappedFilter.admit", "nobody is held to a cap",
    "self._caps.require(planned, costs, cost)", "pass",
    "privacy/test_filters.py::test_a_cap_limits_a_project_as_a_whole_and_openings_are_on_nobodys_cap",
)  # fmt: skip

ledger(
    "G43", "shared_chain.py::SharedChain.end_group", "a group of purchases is given without waiting for the disk",
    "self.is_in_group = False", "pass",
    GROUPS + "a_group_of_purchases_waits_for_the_disk_once_and_is_otherwise_like_one_after_the_other[SQLite]",
)  # fmt: skip
ledger(
    "G44", "log.py::StoredLog.write", "answers of a group can be read by others before its charges are on the disk",
    "kind != replay.ANSWERS and not self._chain.is_off_disk", "kind != replay.ANSWERS",
    GROUPS + "no_answer_of_a_group_is_in_the_database_before_all_of_it_is_on_the_disk",
)  # fmt: skip
ledger(
    "G45", "log.py::StoredLog.end_group", "after a group that may not be on the disk, its session goes on",
    "self._commit(replay.ANSWERS, self._index.body)", "self.write(replay.ANSWERS, self._index.body)",
    GROUPS + "a_group_whose_end_is_not_written_gives_nothing_and_charges_nothing_more",
)  # fmt: skip

LEDGER_MUTANTS = ledger.mutants
