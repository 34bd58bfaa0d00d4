"""Attacks on the promises of privacy that were tried, and what came of them: writes docs/attacks-privacy.json.

    python tools/attacks.py            works out every figure again, in about ten minutes
    python tools/attacks.py --list     what there is

Each row names the test that makes the attack; a figure is what that test's own functions give.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS, REPORT = ROOT / "tests", ROOT / "docs" / "attacks-privacy.json"


@dataclass(frozen=True)
class Attack:
    """``where``: a test below the project. ``figure``: how to compute what was found, or what the test asserts, in words."""

    claim: str
    how: str
    where: str
    figure: str | Callable[[], str]


def _test(name: str) -> Any:
    """A module of tests, with its helpers beside it."""
    path = TESTS / name
    for folder in (TESTS, TESTS / "ledger", path.parent):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    return importlib.import_module(path.stem)


def _sequences() -> str:
    return f"largest true δ / promised δ = {_test('privacy/test_sequences.py').largest_ratio(range(1000, 1400)):.3f} over 400 sequences"


def _adaptive() -> str:
    test, found = _test("privacy/test_sequences.py"), []
    for epsilon, delta in ((1.0, 1e-6), (3.0, 1e-3)):
        found.append(test.reached_by_choices(epsilon, delta))
    return "δ reached / promised δ = " + ", ".join(f"{share:.3f}" for share in found)


def _erm() -> str:
    test = _test("attacks/test_attacks_erm.py")
    largest = {name: max(test.shares(name, seed) for seed in range(100, 200)) for name in test.SOLVERS}
    return f"largest distance / billed distance = {max(largest.values()):.7f} over {100 * len(largest)} tables, {len(largest)} solvers"


def _poisson() -> str:
    test, found = _test("exact/test_exact_sampling_laws.py"), []
    for case in test.POISSON_CASES:
        found += [test.share_of_delta(relation, *case) for relation in ("add-remove", "replace")]
    return f"largest true δ / claimed δ = {max(found):.3f} over {len(found)} cases"


ATTACKS = [
    Attack("A row more among 0 to 100 times the guessed rows moves no sum of one-shot ERM by more than is billed, in the metric that is billed, whatever the row holds",
           "exact", "tests/attacks/test_attacks_erm.py::test_a_row_that_comes_to_any_of_a_hundred_tables_moves_no_sum_by_more_than_is_billed", _erm),
    Attack("A person with many rows moves sums of one-shot ERM by no more than is billed for the rows that are kept",
           "exact", "tests/attacks/test_attacks_erm.py::test_a_person_who_comes_moves_sums_by_what_is_billed_for_all_their_rows", "3 solvers, 0 to 400 rows, at most 3 of 9 rows kept"),
    Attack("No mixed sequence of charges, of every kind of event, passes the filter with more δ at the promised ε than was promised",
           "exact", "tests/privacy/test_sequences.py::test_no_sequence_of_four_hundred_loses_more_than_the_budget_promises", _sequences),
    Attack("No analyst who chooses each event after seeing the loss so far gets beyond the budget (the best of all strategies over twelve parts)",
           "exact", "tests/privacy/test_sequences.py::test_no_analyst_who_chooses_each_event_by_the_loss_so_far_gets_beyond_the_budget", _adaptive),
    Attack("All of a budget in one call of Gaussian noise has the promised δ and no more, for rows and for persons of three",
           "exact", "tests/privacy/test_sequences.py::test_all_of_a_budget_in_one_call_of_gaussian_noise_has_its_delta_and_no_more", "true δ / promised δ between 0.999 and 1 in 6 cases"),
    Attack("Noise on a sample of fixed size, with replacement or Poisson loses exactly what its formula says",
           "exact", "tests/exact/test_exact_sampling_laws.py::test_noise_on_a_sample_loses_exactly_what_the_formula_says", "all samples of all tables of up to 4 rows; equal to 1e-9"),
    Attack("A choice from a sample loses no more than its formula says", "exact",
           "tests/exact/test_exact_sampling_laws.py::test_a_choice_from_a_sample_loses_no_more_than_the_formula_says", "all samples of all tables of up to 4 rows"),
    Attack("Sampling counting queries lose exactly what their formula says", "exact",
           "tests/exact/test_exact_sampling_laws.py::test_flips_of_all_tables_lose_exactly_what_the_formula_says", "all tables of 1, 2 and 5 rows; equal to 1e-6"),
    Attack("Gaussian noise on Poisson samples (noisy SGD) has no more δ than its event claims, for both neighbouring relations", "exact",
           "tests/exact/test_exact_sampling_laws.py::test_noise_on_poisson_samples_has_no_more_delta_than_its_event_says", _poisson),
    Attack("Rounding makes no loss on a sample free, however many steps are claimed", "attack",
           "tests/privacy/test_amplification.py::test_steps_without_end_are_not_free", "3e17 steps at ε = 0.001 are refused"),
    Attack("A session under which an older ledger was put back charges nothing more, on SQLite and PostgreSQL", "attack",
           "tests/ledger/test_moved_ledgers.py::test_a_session_under_which_an_older_ledger_was_put_back_charges_nothing_more", "refused"),
    Attack("A session whose file was replaced charges nothing that nobody finds", "attack",
           "tests/ledger/test_moved_ledgers.py::test_a_replaced_ledger_file_gets_no_entries_that_would_be_lost", "refused"),
    Attack("A link to a ledger, a second name of it, or a lock that was removed gives nobody a turn of their own", "attack",
           "tests/ledger/test_moved_ledgers.py::test_a_link_to_a_ledger_has_the_turns_of_its_file", "links and locks are followed, second names refused"),
    Attack("A ledger file that was cut short is not taken for a ledger", "attack",
           "tests/ledger/test_moved_ledgers.py::test_a_file_that_was_cut_short_is_not_taken_for_a_ledger", "cut to 50 %, 90 % and 1 %: refused"),
    Attack("An older copy that is put back while no session is open is found by a head noted elsewhere, and by nothing else", "attack",
           "tests/ledger/test_moved_ledgers.py::test_a_copy_without_the_log_is_found_by_a_head_noted_elsewhere", "a limitation: docs/ledger.md says what to note"),
    Attack("Commands say the same of neighbouring tables with one released history, and end with the same status", "attack",
           "tests/attacks/test_attacks_surfaces.py::test_commands_say_the_same_of_neighbours_and_end_with_the_same_status", "14 commands, both relations: equal to the last character"),
    Attack("An answer holds nothing of the session and can be pickled and passed on", "attack",
           "tests/attacks/test_attacks_surfaces.py::test_an_answer_holds_nothing_of_the_session_and_can_be_passed_on", "9 kinds of results, all references followed: nothing found"),
    Attack("Threads that ask one session get their own answers and spend what is billed", "attack",
           "tests/attacks/test_attacks_surfaces.py::test_threads_that_ask_one_session_get_their_own_answers_and_spend_what_is_billed", "4 threads, switched every microsecond: sums agree to 1e-9"),
    Attack("A ledger's line of an unknown kind, format or form is refused by sessions and readers, and never passed over", "attack",
           "tests/attacks/test_attacks_versions.py::test_a_line_that_this_version_does_not_know_is_refused_by_sessions_and_readers", "23 lines: refused in the package's own words"),
    Attack("What a line of another version says that it cost is not believed", "attack",
           "tests/attacks/test_attacks_versions.py::test_the_cost_that_a_line_states_is_not_believed", "a charge said to cost 0 is priced by its events, on SQLite and PostgreSQL"),
    Attack("Once a newer version was accepted, an open session of the older one charges nothing, and what it said is not lost", "attack",
           "tests/attacks/test_attacks_versions.py::test_a_session_of_the_older_version_charges_nothing_once_the_newer_was_accepted", "refused, on SQLite and PostgreSQL; sums agree"),
    Attack("A version believes no certificate of another version's fit, and repeats recorded answers", "attack",
           "tests/attacks/test_attacks_versions.py::test_a_version_that_fits_otherwise_does_not_believe_the_certificate_of_another_fit", "no certificate; recorded answers to the last bit"),
    Attack("A version that measures other tables, or in another order, takes no released table for another", "attack",
           "tests/attacks/test_attacks_versions.py::test_a_version_that_measures_in_another_order_takes_no_table_for_another", "residuals, tables and choices: refused, nothing drawn or charged"),
    Attack("An answer whose line in the ledger is gone or changed is not repeated", "attack",
           "tests/attacks/test_attacks_versions.py::test_an_answer_whose_line_is_gone_or_another_is_not_repeated", "refused, on SQLite and PostgreSQL"),
    Attack("A Spark source that fails at a row says nothing of it: not in errors, nor in logs of the driver and of pyspark", "attack",
           "tests/attacks/test_attacks_spark.py::test_neither_errors_nor_logs_mention_the_row_at_which_a_source_fails", "sessions, ERM and drafts: the value is nowhere"),
    Attack("A Spark source that is another at every read is one table, of whose persons at most the stated rows are kept", "attack",
           "tests/attacks/test_attacks_spark.py::test_a_source_that_is_another_at_every_read_is_one_table_whose_persons_keep_their_rows", "all tables of counts agree"),
    Attack("A row of any values moves one count of a Spark table, in whatever parts and order rows come", "attack",
           "tests/attacks/test_attacks_spark.py::test_a_row_of_any_values_moves_one_count_in_whatever_parts_and_order_rows_come", "nulls, decimals, dates, structs, bytes: 1 in each table"),
    Attack("Tables with one released history look the same through SQLAlchemy: metadata, cursors, rows, errors, prices", "attack",
           "tests/attacks/test_attacks_dialect.py::test_neighbours_look_the_same_through_sqlalchemy", "also tables that differ in 399 of 400 rows: equal to the last bit"),
    Attack("No SQL statement reaches another table, a file, another schema or the engine", "attack",
           "tests/attacks/test_attacks_dialect.py::test_no_statement_reaches_another_table_a_file_or_the_engine", "24 statements: refused"),
    Attack("A parameter of a statement is one value, whatever it holds and whatever is beside it", "attack",
           "tests/attacks/test_attacks_dialect.py::test_a_parameter_is_one_value_whatever_it_holds_and_whatever_is_beside_it", "12 texts in 10 places: none leaves its quotes"),
    Attack("What was paid for stays paid after a rollback, and is answered again", "attack",
           "tests/attacks/test_attacks_dialect.py::test_a_purchase_survives_a_rollback_and_is_answered_again", "no charge is taken back"),
    Attack("No command writes over the table, its ledger or its file, by whatever links", "attack",
           "tests/attacks/test_attacks_cli.py::test_no_command_writes_over_the_table_its_ledger_or_its_file", "4 files, 4 ways to name them, 4 commands: refused"),
    Attack("A table that is given in the place of questions is not quoted, whatever it is called", "attack",
           "tests/attacks/test_attacks_cli.py::test_a_table_in_the_place_of_questions_is_not_quoted_whatever_it_is_called", "links and other names: refused"),
    Attack("No row of a tiny table has more δ in noisy SGD than is billed, whatever it and the others hold", "exact",
           "tests/attacks/test_attacks_sgd.py::test_no_row_of_a_tiny_table_has_more_delta_than_is_billed_whatever_it_and_the_others_hold", "all samples of up to 4 rows, both relations: at most 1; with a third of the noise above 1"),
    Attack("A row is held to its bound exactly, at the ends of float64 too", "exact",
           "tests/attacks/test_attacks_sgd.py::test_rows_at_the_edge_of_their_bound_have_a_norm_of_at_most_it_exactly", "600 rows as fractions: at most the bound"),
    Attack("The truth of ratios, odds, trends, associations and survival curves is in its interval, whatever is known and believed of the counts", "attack",
           "tests/attacks/test_attacks_comparisons.py::test_the_truth_is_in_the_interval_whatever_is_known_and_believed_of_the_counts",
           "60 tables of each of 10 questions, with true counts at the ends of what is known: none missed"),
    Attack("Nothing that is published holds the table, the ledger or the noise: files, what workers get, what a view answers", "attack",
           "tests/attacks/test_attacks_surfaces.py::test_nothing_that_is_published_holds_the_table_the_ledger_or_the_noise", "9 kinds of objects, all references followed: nothing found"),
    Attack("A purchase costs its price, also where parts of the question were bought or asked before", "attack",
           "tests/sessions/test_prices.py::test_a_question_whose_parts_were_bought_or_asked_before_costs_its_price", "means, shares and differences, three budgets: price = charge"),
    Attack("A bar that is bought is at most the one that was asked for, however coarse the grid of its noise", "exact",
           "tests/engine/test_bar_widths.py::test_a_bar_is_proportional_to_the_noise_however_coarse_its_grid", "scales from 1e-4 to 100 grid steps: at most in proportion"),
    Attack("Copies of a row that are one person's move a sum of noisy SGD by what is billed for those that are kept", "exact",
           "tests/attacks/test_attacks_sgd.py::test_copies_of_a_row_are_one_persons_and_move_a_sum_by_what_is_billed_for_them", "2 to 40 copies, 2 kept: between 1.9 and 2 times a row's bound"),
    Attack("A private search tells nothing of how few rows there are: it neither fails nor warns, however many there are", "attack",
           "tests/erm/test_search.py::test_a_private_number_of_rows_raises_nothing_however_few_there_are", "0 to 3 rows, four seeds of each: no error"),
    Attack("What is priced at the budget's one Rényi order is charged under no cap, which is an ε by itself", "attack",
           "tests/privacy/test_renyi_events.py::test_nothing_that_is_priced_at_the_budgets_order_is_charged_under_a_cap", "rounds of hits and random numbers of runs: refused; a cap that is set later is spent"),
]  # fmt: skip


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--list", action="store_true", help="say what there is, and work out nothing")
    if given.parse_args().list:
        for attack in ATTACKS:
            print(f"{attack.how:8} {attack.claim}")
        return
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    rows = []
    for attack in ATTACKS:
        figure = f"the test asserts: {attack.figure}" if isinstance(attack.figure, str) else attack.figure()
        rows.append({"claim": attack.claim, "how": attack.how, "where": attack.where, "figure": figure})
        print(f"{attack.claim}: {figure}", flush=True)
    REPORT.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
