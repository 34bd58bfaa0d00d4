"""Mutants of release files: contents, claims, and hostile files."""

from __future__ import annotations

from mutant import Writer

HOSTILE = "release_file/test_hostile_files.py::test_"
PUBLISHED = "release_file/test_published.py::test_"
SIGNED = "release_file/test_signing.py::test_"

releases = Writer("release files", "release_file/")
releases(
    "RF1", "publish.py::_choose_answers", "answers that the owner left out are in the file",
    'for bound, estimate in given if answers != "none" else ():', "for bound, estimate in given:",
    PUBLISHED + "the_owner_chooses_which_answers_are_recorded",
)  # fmt: skip
releases(
    "RF2", "publish.py::_charge", "questions that the owner left out are named in the log",
    'entry.asked is None or answers == "none"', "entry.asked is None",
    PUBLISHED + "the_owner_chooses_which_answers_are_recorded",
)  # fmt: skip
releases(
    "RF3", "container.py::unpack", "a changed member is read",
    "len(parts[name]) != size or _hash(parts[name]) != digest", "len(parts[name]) != size",
    HOSTILE + "a_flaw_is_refused_by_one_error",
)  # fmt: skip
releases(
    "RF4", "container.py::_require_members", "a bomb is unpacked",
    "if sum(sizes.values()) * COPIES > limit:", "if len(sizes) * COPIES > limit:",
    HOSTILE + "a_bomb_is_refused_before_it_is_unpacked",
)  # fmt: skip
releases(
    "RF5", "container.py::_with_arrays.filled", "one array that is referred to often takes any amount of memory",
    "if placed * COPIES > limit:", "if placed * COPIES < 0:",
    HOSTILE + "an_array_that_is_referred_to_often_counts_as_often",
)  # fmt: skip
releases(
    "RF6", "values.py::read_table", "parameters that are no numbers are read",
    "found.shape != shape or not are_ordinary(found)", "found.shape != shape",
    HOSTILE + "a_flaw_is_refused_by_one_error",
)  # fmt: skip
releases(
    "RF7", "release.py::Release.select_blocks", "an answer about one block has the recorded answers of all",
    "view._begin(self._published, chosen, (), self._limit, is_whole=False)", "view._begin(self._published, self._blocks, (), self._limit, is_whole=False)",
    PUBLISHED + "a_view_of_one_block_answers_about_it",
)  # fmt: skip

WITHOUT = "cli/test_without_table.py::test_"
releases(
    "RF8", "../cli/desk.py::open_without_table", "a guard is passed by: questions are answered as if it had been asked",
    'if use == "ask" and any(', 'if use == "charge" and any(',
    WITHOUT + "a_guard_reads_the_table_and_records_do_not",
)  # fmt: skip
releases(
    "RF9", "../ledger/binding.py::bound_record", "a ledger is made for no table, and any table may go on with it",
    "if binding.fingerprint is None:", "if False:",
    WITHOUT + "an_absent_table_counts_nothing_and_opens_no_ledger",
)  # fmt: skip

releases(
    "RF10", "../data/absent.py::AbsentTable", "a session without its table is taken for one that has it",
    "is_present = False", "is_present = True",
    WITHOUT + "free_calls_give_the_same_without_the_table",
)  # fmt: skip

releases(
    "RF11", "replica.py::state_of_block", "a worker is told the true number of rows where it is private",
    'round(public.rows) if block.budget.neighbours == "replace" else None', "block.data.rows",
    "server/test_workers.py::test_a_worker_gets_the_number_of_rows_only_if_it_is_public",
)  # fmt: skip
releases(
    "RF12", "publish.py::_publish_block", "a published file lists every charge twice",
    "tuple(_charge(entry, answers) for entry in entries)", "tuple(_charge(entry, answers) for entry in [*entries, *entries])",
    "release_file/test_published.py::test_a_file_says_what_was_spent_and_lists_each_charge_once",
)  # fmt: skip
releases(
    "RF13", "publish.py::_choose_answers", "answers that are not bought are published where the owner wanted only those that are",
    'answers == "all" or estimate.source == "measured"', "True",
    "release_file/test_published.py::test_the_owner_chooses_which_answers_are_recorded",
)  # fmt: skip
releases(
    "RF14", "signing.py::verify", "any signature of anybody is good",
    "public.verify(sign_bytes, manifest)", "pass",
    "release_file/test_signing.py::test_another_key_another_text_or_no_signature_is_refused",
)  # fmt: skip
releases(
    "RF15", "signing.py::verify", "a file is verified by the key that it brings along",
    "public = public_key(key)", "public = public_key(signature['key'])",
    "release_file/test_signing.py::test_another_key_another_text_or_no_signature_is_refused",
)  # fmt: skip
releases(
    "RF16", "container.py::unpack", "a file without a signature passes where one is demanded",
    "if SIGNATURE not in sizes:\n                    _refuse(\"signed\", \"no signature\", \"Ask the owner for a signed file, or leave key out\")\n                signer", "signer",
    "release_file/test_signing.py::test_another_key_another_text_or_no_signature_is_refused",
)  # fmt: skip
releases(
    "RF18", "../answering/released_session.py::ReleasedSession._charges", "an assistant's view names who was billed",
    "self._session._charges()", "self._session._charges(names=True)",
    "release_file/test_published.py::test_a_file_neither_names_an_analyst_nor_depends_on_when_it_was_written",
)  # fmt: skip

RELEASE_MUTANTS = releases.mutants

releases(
    "RF20", "../model/small_tables.py::_in_turn", "the first answers of a file have other last bits than the session's",
    'np.argsort(targets, kind="stable").reshape(count, -1).T', 'np.argsort(targets, kind="stable").reshape(count, -1).T[::-1]',
    "test_compiled.py::test_the_first_answers_of_a_model_need_no_compiler_and_have_the_bits_of_compiled_code",
)  # fmt: skip
releases(
    "RF21", "../cli/file.py::File.is_practical", "commands that spend nothing read the table where a table chooses the profile",
    'profile == "practical" or isinstance(profile, hr.Practical)', 'profile == "practical"',
    WITHOUT + "a_drafted_file_with_a_table_for_its_profile_does_without_the_table",
)  # fmt: skip
releases(
    "RF22", "container.py::_parse", "a short text takes any amount of memory once it is parsed",
    "sum(size * data.count(mark) for mark, size in MARKS.items()) > limit:", "0 > limit:",
    HOSTILE + "many_small_values_are_refused_before_they_take_more_memory_than_the_limit",
)  # fmt: skip
releases(
    "RF23", "container.py::unpack", "a directory of a million entries is read into memory",
    "if data.count(ENTRY_MARK) * ENTRY > limit:", "if data.count(ENTRY_MARK) < 0:",
    HOSTILE + "a_directory_of_many_members_is_refused_before_it_is_read",
)  # fmt: skip
releases(
    "RF24", "offline.py::write_offline", "a published release of declared losses promises what the mechanism did not",
    'None if public.alpha is None else write_number("error", public.alpha)', "0.0",
    PUBLISHED + "a_release_of_every_method_gives_the_same_bits_from_the_file",
)  # fmt: skip
releases(
    "RF25", "offline.py::_read_matrix", "a stranger's file promises a table that its residuals do not cover",
    "_require_closed(universe, sets, [*asked, *(query.attributes for query in others)])", "_require_closed(universe, sets, [])",
    HOSTILE + "a_flaw_of_an_offline_release_is_refused_by_one_error",
)  # fmt: skip
releases(
    "RF26", "../engine/practical/certificate/certified_bounds.py::CertifiedCounts.restore", "a file that lacks a bound fails when it is asked",
    "made.anything.keys() != family.keys()", "False",
    HOSTILE + "a_flaw_is_refused_by_one_error",
)  # fmt: skip
