"""Mutants of the registration of tables: reading, double payment, and uploads."""

from __future__ import annotations

from mutant import Writer

registration = Writer("registration", "server/")
ATTACKS, STORIES = "server/test_registration_attacks.py::", "server/test_registration.py::"
registration(
    "RG01", "sources.py::_is_plain", "a link leads out of a root",
    "os.stat(parts[-1], dir_fd=opened[-1], follow_symlinks=False)", "os.stat(parts[-1], dir_fd=opened[-1])",
    ATTACKS + "test_no_path_leads_out_of_its_root",
)  # fmt: skip
registration(
    "RG02", "sources.py::_is_plain", "a link to a folder leads out of a root",
    "os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW", "os.O_RDONLY | os.O_DIRECTORY",
    ATTACKS + "test_no_path_leads_out_of_its_root",
)  # fmt: skip
registration(
    "RG03", "registering.py::registrar_for", "an owner of one dataset registers others",
    'token.role != "owner" or token.datasets is not None', 'token.role != "owner"',
    STORIES + "test_only_an_owner_of_the_whole_service_registers",
)  # fmt: skip
registration(
    "RG04", "registrar.py::Registrar.require_new", "the people of a table pay two budgets",
    "each.id != identity and each.state in FIXED", "False",
    ATTACKS + "test_a_table_is_recognized_by_the_content_that_it_had_when_it_was_opened",
)  # fmt: skip
registration(
    "RG05", "registrar.py::Registrar._require_other_fingerprint", "the records of a table pay two budgets in two files",
    "own in others", "False",
    STORIES + "test_the_same_records_in_another_file_are_recognized_under_the_same_universe",
)  # fmt: skip
registration(
    "RG06", "registrar.py::Registrar.draft", "a draft is not noted",
    "cost = sum_costs([found.draft, (price.epsilon, price.delta)])", "cost = found.draft",
    STORIES + "test_a_draft_is_paid_for_before_rows_are_read_and_stays_paid_after_it_is_given_up",
)  # fmt: skip
registration(
    "RG07", "registrar.py::Registrar._spent_on", "the draft of a registration that was given up is forgotten",
    "{each.id: each.draft for each in self.store.with_marks(marks)}", "{}",
    STORIES + "test_a_draft_is_paid_for_before_rows_are_read_and_stays_paid_after_it_is_given_up",
)  # fmt: skip
registration(
    "RG08", "registrar.py::Registrar.open_again", "a dataset whose ledger is gone spends its budget again",
    "self._require_ledger(each)", "pass",
    ATTACKS + "test_a_dataset_whose_ledger_is_gone_never_spends_again",
)  # fmt: skip
registration(
    "RG09", "uploads.py::Uploads._write", "an upload has no limit",
    "size > self._rule.upload", "False",
    ATTACKS + "test_an_upload_of_a_wrong_kind_or_size_is_refused_and_leaves_nothing",
)  # fmt: skip
registration(
    "RG10", "upload_trial.py::_parquet_size", "a file says little of itself and holds a thousand times as much",
    "size += max(batch.nbytes, batch.num_rows)", "size += 0",
    ATTACKS + "test_the_trial_counts_content_and_stops_at_the_limit",
)  # fmt: skip
registration(
    "RG11", "registrations.py::RegistrationStore.require_free", "a dataset gets the answers of an earlier one of its name",
    "any(self._registry.rows", "any([] and self._registry.rows",
    ATTACKS + "test_a_name_under_which_answers_or_approvals_are_on_record_is_not_given_again",
)  # fmt: skip

REGISTRATION = registration.mutants
