"""Mutants of tables that grow: accounts of blocks, answers about several blocks, counts over time."""

from __future__ import annotations

from mutant import Writer

BLOCKS = "sessions/test_blocks.py::test_"
EXACT = "exact/test_exact_blocks.py::test_"
LEDGER = "ledger/test_ledger_of_blocks.py::test_"

blocks = Writer("blocks", "")
blocks(
    "BL01", "engine/over_time.py::Series._draw", "the last block of a sum alone pays for it: the others' rows are told for nothing",
    "why=WHY, about=about) for column in inside]", "why=WHY, about=about) for column in inside[-1:]]",
    EXACT + "every_move_of_a_row_is_paid_by_its_own_block",
)  # fmt: skip
blocks(
    "BL02", "engine/over_time.py::Series.event", "a sum's noise is what the richest of its blocks can pay for: a poorer one pays more than its share",
    "least = min(budgets, key", "least = max(budgets, key",
    EXACT + "a_block_is_in_one_sum_of_each_level_and_pays_no_more_than_its_share",
)  # fmt: skip
blocks(
    "BL03", "engine/over_time.py::Series.event", "each level of a tree costs the whole share",
    "each = self._asked.share / levels(self._asked.span)", "each = self._asked.share",
    EXACT + "a_block_is_in_one_sum_of_each_level_and_pays_no_more_than_its_share",
)  # fmt: skip
blocks(
    "BL04", "engine/over_time.py::Series.missing_nodes", "a sum that is known is drawn and billed again with every question",
    "if place not in known]", "if place]",
    BLOCKS + "a_series_has_every_block_and_all_up_to_it_and_goes_on_with_the_next[approximate]",
)  # fmt: skip
blocks(
    "BL05", "engine/over_time.py::due", "a block is in two sums of one size, and pays for each",
    "while size <= span and (last % span + 1) % size == 0:", "while size <= min(span, last % span + 1):",
    EXACT + "a_block_is_in_one_sum_of_each_level_and_pays_no_more_than_its_share",
)  # fmt: skip
blocks(
    "BL06", "engine/over_time.py::estimate_counts", "every number of a series has a bar as if it were the only one",
    "each = beta / (2 * blocks)", "each = 20 * beta",
    BLOCKS + "the_bars_of_a_series_hold_for_all_times_and_are_of_the_tree[Gaussian]",
)  # fmt: skip
blocks(
    "BL07", "engine/over_time.py::tail", "the tail of a sum of Laplace noises is too short",
    "return float(((x - sums) / λ).min())", "return float((x + sums).min() / λ.max())",
    BLOCKS + "a_tail_is_that_of_the_noise",
)  # fmt: skip
blocks(
    "BL08", "engine/over_time.py::Series.draw_nodes", "one block cannot pay its part, and others are charged before it says so",
    "if events and not column.ledger.affords(*events):", "if not events and not column.ledger.affords(*events):",
    BLOCKS + "a_series_that_a_block_cannot_pay_is_refused_before_any_is_charged",
)  # fmt: skip
blocks(
    "BL09", "engine/multi_block.py::BlockMixture._mix", "an answer about several blocks is a mean of theirs, however many rows each has, with a bar around it",
    "low, high = 1 - greatest_mean(1 - lows, least, most), greatest_mean(highs, least, most)", "low, high = lows.mean(axis=0), highs.mean(axis=0)",
    BLOCKS + "bars_hold_for_all_blocks_and_ranges_together",
)  # fmt: skip
blocks(
    "BL10", "engine/multi_block.py::_interval_of_rows", "private numbers of rows are taken for known: bars over blocks do not hold",
    "found = public.rows\n    off = float(public.error_in_rows(1.0, 0.0))", "found = public.rows\n    off = 0.0",
    BLOCKS + "a_block_whose_rows_are_private_counts_for_an_interval",
)  # fmt: skip
blocks(
    "BL11", "engine/multi_block.py::greatest_mean", "the greatest mean is not the greatest",
    "top, bottom = np.cumsum(high * sorted_values, axis=0), np.cumsum(high, axis=0)",
    "top, bottom = np.cumsum(low * sorted_values, axis=0), np.cumsum(low, axis=0)",
    BLOCKS + "the_greatest_mean_is_the_greatest_over_all_rows_that_there_may_be",
)  # fmt: skip
blocks(
    "BL12", "engine/multi_block.py::MultiBlockEngine._require_paid", "a block is charged for an answer that another cannot pay for, and which is refused",
    "if price > part.ledger.remaining * (1 + 1e-9):", "if price > math.inf:",
    BLOCKS + "a_charge_that_one_block_cannot_pay_is_paid_by_no_other",
)  # fmt: skip
blocks(
    "BL13", "privacy/accounts.py::Accounts.remaining", "what is left is said to be what the richest block has left",
    "return min(ledger.remaining for ledger in self._ledgers)", "return max(ledger.remaining for ledger in self._ledgers)",
    BLOCKS + "every_block_has_its_own_budget_and_pays_for_itself_alone",
)  # fmt: skip
blocks(
    "BL14", "privacy/accounts.py::BlocksQuestion.key", "an answer about some blocks is given as one about others",
    'return ("blocks", self.blocks, self.question.key)', 'return ("blocks", self.question.key)',
    BLOCKS + "an_answer_about_some_blocks_is_not_one_about_others",
)  # fmt: skip
blocks(
    "BL15", "privacy/noise.py::Noise.add_for_all", "a block that paid for more noise is told of with less",
    "if any(receipt.events != receipts[0].events for receipt in receipts):", "if not receipts:",
    BLOCKS + "one_draw_for_several_accounts_is_of_one_event_and_written_down_in_all",
)  # fmt: skip
blocks(
    "BL16", "opening.py::_Appending.__call__", "every block has all of β for its bars",
    "beta = first.beta / 2 / (len(blocks) * (len(blocks) + 1))", "beta = first.beta",
    BLOCKS + "all_that_is_appended_shares_a_second_beta",
)  # fmt: skip
blocks(
    "BL17", "opening.py::_Appending.__call__", "rows of a person are not bounded in a block of counts",
    "if self.unit is not None and isinstance(source, DataSource) and source.is_present:", "if self.unit is not None and source is None:",
    BLOCKS + "blocks_of_persons_keep_as_many_rows_of_each_as_the_first",
)  # fmt: skip
blocks(
    "BL18", "session.py::Session._require_all", "a session that lacks a block of its ledger answers as if it had all",
    "if self._is_whole and len(known) >= len(self._blocks):", "if self._is_whole and len(known) < 0:",
    LEDGER + "a_block_is_refused_that_is_not_what_the_ledger_knows[SQLite]",
)  # fmt: skip
blocks(
    "BL19", "answering/spending.py::Spending.ledger", "a fit is paid from the first block's budget, whoever's rows it is about",
    "        if isinstance(self._ledger, Accounts):\n", "        if self._ledger is None:\n",
    BLOCKS + "questions_that_several_blocks_cannot_answer_are_refused_in_a_sentence",
)  # fmt: skip
blocks(
    "BL20", "ledger/binding.py::require_other", "the same people are appended twice, each time for a budget of their own",
    '    found = _fingerprint(_key(make=False), str(record.get("name")), binding.fingerprint())\n', '    found = ""\n',
    LEDGER + "a_block_is_refused_that_is_not_what_the_ledger_knows[SQLite]",
)  # fmt: skip
blocks(
    "BL21", "ledger/account.py::place_block", "a block that is appended again after a crash is a new one, and is billed again",
    "due = names[place - 1] if place <= len(names) else None", "due = None",
    LEDGER + "a_session_of_blocks_is_resumed_with_the_same_answers_for_free[SQLite]",
)  # fmt: skip
blocks(
    "BL22", "ledger/shared_chain.py::SharedChain._of", "what another block spent is taken for this one's, or the other way",
    "return kind if block == self.block or kind in OF_ALL else \"\"", "return kind",
    LEDGER + "processes_share_every_block[SQLite]",
)  # fmt: skip
blocks(
    "BL23", "ledger/snapshots.py::StoredContent.__init__", "a cap does not hold in blocks that are appended after it was set",
    "store.lines(kinds=(own(replay.ANSWERS), replay.CAP), upto=upto)", "store.lines(kinds=(own(replay.ANSWERS), own(replay.CAP)), upto=upto)",
    LEDGER + "a_cap_holds_in_every_block",
)  # fmt: skip
blocks(
    "BL24", "engine/practical/free_answers.py::likeness", "a block is taken for the one before it, whatever was measured",
    "return np.where(off > STANDS_OUT**2 * variance, 1.0, 1 / τ2)", "return np.full(counts.shape, 1 / NEAREST)",
    BLOCKS + "a_block_that_is_not_like_the_one_before_it_is_believed_itself",
)  # fmt: skip
blocks(
    "BL25", "ledger/durable.py::Durable.retry_when_behind", "every block begins a question again because of what another has not heard",
    "if behind.args[0] is not self:", "if False:",
    "attacks/test_attacks_blocks.py::test_changes_of_a_block_by_another_process_are_learned_once",
)  # fmt: skip
blocks(
    "BL26", "query/counts.py::OverTime.counts", "a series that cannot be counted is paid for each time that it is refused",
    "        require_table(found.attributes, found.shape)  # of which each block", "        pass  # of which each block",
    "attacks/test_attacks_blocks.py::test_a_series_that_cannot_be_counted_is_refused_before_any_block_pays",
)  # fmt: skip
blocks(
    "BL27", "answering/askable.py::Askable.population_error", "an answer about the first block has the population's bar of all",
    "(len(self.blocks) > 1 and not self._cache.is_last_answer(bound, answer.value))", "False",
    "attacks/test_attacks_blocks.py::test_an_answer_about_fewer_rows_has_not_the_populations_bar_of_more",
)  # fmt: skip

BLOCK_MUTANTS = blocks.mutants
