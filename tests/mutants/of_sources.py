"""Mutants of readers of databases, folders and clusters, and of the promise to a person with several rows."""

from __future__ import annotations

from mutant import Writer

DATABASES = "data/test_databases.py::test_"
SOURCES = "data/test_sources.py::test_"
WORKERS = "data/test_spark_workers.py::test_"
SPARK = "data/test_spark.py::test_"
PEOPLE = "data/test_people.py::test_"
UNITS = "erm/test_erm_units.py::test_"
ROWS_PER_UNIT = "privacy/test_rows_per_unit.py::test_"

sources = Writer("sources", "data/")
sources(
    "SR01", "postgres_table.py::_connect", "a table that changes while it is read is read as it never was, by a role that may write",
    "connection.read_only, connection.isolation_level = True, psycopg.IsolationLevel.REPEATABLE_READ", "pass",
    DATABASES + "a_database_is_read_at_one_moment_by_a_connection_that_cannot_write",
)  # fmt: skip
sources(
    "SR40", "headers.py::missing_columns", "the first line of a file without a header, a record, is quoted",
    "if not wanted & {plain_spelling(name) for name in columns}:", "if False:",
    "data/test_headers.py::test_a_first_line_that_may_be_a_record_is_not_quoted",
)  # fmt: skip
sources(
    "SR02", "postgres_table.py::_connect", "one text that the server cannot convert refuses the table",
    "SET client_encoding = SQL_ASCII;", "SET client_encoding = UTF8;",
    DATABASES + "texts_come_in_the_encoding_of_their_server_and_none_fails",
)  # fmt: skip
sources(
    "SR03", "postgres_table.py::_expression", "a date before our era is taken for one of it",
    "THEN '-' || {text} ELSE", "THEN {text} ELSE",
    DATABASES + "every_type_of_postgresql_has_the_cells_of_the_rule",
)  # fmt: skip
sources(
    "SR04", "postgres_table.py::refuse_connection", "a driver's message is shown, and with it a password",
    "Found that it does not ({type(failed).__name__}).", "Found that it does not ({failed}).",
    DATABASES + "the_password_comes_from_the_environment_and_is_in_no_message",
)  # fmt: skip
sources(
    "SR05", "postgres_table.py::of_postgres.batches", "all batches but the first are lost",
    "            while some := reading.execute", "            if some := reading.execute",
    DATABASES + "a_database_is_read_at_one_moment_by_a_connection_that_cannot_write",
)  # fmt: skip
sources(
    "SR06", "parquet_files.py::_common_type", "one file's type decides what is refused for all",
    "return kinds.pop() if len(kinds) == 1 else schema.NOTHING", "return kinds.pop() if kinds else schema.NOTHING",
    DATABASES + "no_file_of_a_folder_changes_how_another_is_read",
)  # fmt: skip
sources(
    "SR07", "parquet_files.py::_keys", "rows without a key have the folder's word for it as their value",
    "None if value == NOWHERE else unquote(value)", "unquote(value)",
    DATABASES + "folders_called_by_a_key_are_a_column_and_what_is_hidden_is_no_data",
)  # fmt: skip
sources(
    "SR08", "parquet_files.py::_is_data", "files that were left behind half written are counted",
    'part.startswith((".", "_")) and "=" not in part for part in parts', "False for part in parts",
    DATABASES + "folders_called_by_a_key_are_a_column_and_what_is_hidden_is_no_data",
)  # fmt: skip
sources(
    "SR09", "parquet_files.py::of_parquet.batches", "only the first file of a folder is read",
    "        for file in files:\n            yield from", "        for file in files[:1]:\n            yield from",
    SOURCES + "no_attributes_give_the_number_of_rows[parquet_folder]",
)  # fmt: skip
sources(
    "SR10", "schema.py::BatchSource.positions", "a column that is there twice is read from its first place",
    "if self.columns.count(name) > 1", "if self.columns.count(name) > 2",
    "data/test_opening.py::test_public_failures_are_named",
)  # fmt: skip
sources(
    "SR20", "parquet_files.py::_rows", "a column of a file is read in place of another",
    "yield [columns[name] for name in wanted]", "yield [columns[name] for name in wanted][::-1]",
    "data/test_opening.py::test_the_same_table_has_the_same_cells_from_every_source",
)  # fmt: skip
sources(
    "SR11", "readers.py::_read_only", "a file of DuckDB is opened to be written",
    "return ibis.duckdb.connect(path, read_only=True)", "return ibis.duckdb.connect(path)",
    DATABASES + "a_file_of_duckdb_is_opened_to_be_read",
)  # fmt: skip
sources(
    "SR12", "table.py::open_source", "the rows of a cluster are brought to this process",
    "return SparkTable(frame if inner is source else TrustSchema(frame), universe, unit)", "pass",
    SPARK + "awkward_values_have_the_cells_of_the_rule_and_change_no_other_row",
)  # fmt: skip
sources(
    "SR13", "spark_table.py::SparkTable._count_all.count", "what two workers counted of a cell is not added up",
    '.groupBy("place").sum("times")', '.groupBy("place").max("times")',
    SPARK + "awkward_values_have_the_cells_of_the_rule_and_change_no_other_row",
)  # fmt: skip
sources(
    "SR22", "spark_table.py::_row_counter.count", "on a cluster values that were merged are counted apart",
    "c if group is None else group[c]", "c",
    WORKERS + "batches_are_coded_and_counted_as_the_table_in_memory",
)  # fmt: skip
sources(
    "SR23", "spark_table.py::_row_coder.code", "on a cluster a person is known by another column",
    "persons(batch.column(len(coders)))", "persons(batch.column(0))",
    WORKERS + "persons_come_with_their_rows",
)  # fmt: skip
sources(
    "SR15", "spark_frame.py::select_columns", "a column is read in place of another",
    'columns = [numbered[f"c{i}"] for i in positions]', 'columns = [numbered[f"c{i}"] for i in positions[::-1]]',
    SPARK + "awkward_values_have_the_cells_of_the_rule_and_change_no_other_row",
)  # fmt: skip
sources(
    "SR30", "table.py::_keep_rows", "rows that came before there were more of them than cells are lost",
    'for batch in of_duckdb(engine, "SELECT * FROM coded", ROWS):', "for batch in ():",
    SOURCES + "a_marginal_is_what_counting_the_records_one_by_one_gives[folded_table]",
)  # fmt: skip
sources(
    "SR31", "table.py::Table.merge_values", "counts of all cells keep values that were merged apart",
    "view._groups, view._folded = {}, self._folded.merge_values(universe, groups)", "view._groups, view._folded = {}, self._folded",
    SOURCES + "rows_under_fewer_values_are_counted_as_if_each_had_been_coded_so[folded_table]",
)  # fmt: skip
sources(
    "SR32", "table.py::_keep_rows", "where cells are counted as rows are read, persons have all of theirs",
    "if unit is None and universe.size <= MOST_FOLDED else math.inf", "if universe.size <= MOST_FOLDED else math.inf",
    PEOPLE + "a_table_of_many_rows_keeps_no_more_of_a_person_s_than_one_of_few",
)  # fmt: skip
sources(
    "SR16", "contributions.py::kept_query", "which of a person's rows stay depends on the rows of others",
    "row_number() OVER (PARTITION BY unit ORDER BY {mark}, {cells}, again) AS place", "row_number() OVER (ORDER BY {mark}, {cells}, again) AS place",
    PEOPLE + "an_added_or_removed_person_moves_at_most_k_rows_of_their_own",
)  # fmt: skip
sources(
    "SR17", "contributions.py::kept_query", "one row more of each person stays than is paid for",
    "WHERE place <= {most}", "WHERE place <= {most} + 1",
    PEOPLE + "an_added_or_removed_person_moves_at_most_k_rows_of_their_own",
)  # fmt: skip
sources(
    "SR18", "contributions.py::kept_query", "rows whose records hash low stay of everybody",
    "md5(hex(unit) || '|' || {record}", "md5({record}",
    PEOPLE + "each_row_of_a_person_is_as_likely_to_stay",
)  # fmt: skip
sources(
    "SR19", "contributions.py::persons", "an id with a blank beside it is another person",
    "bare = [text.strip(BLANKS.encode()) for text", "bare = [text for text",
    PEOPLE + "ids_are_texts_blanks_aside_and_rows_without_one_are_one_person",
)  # fmt: skip

sources(
    "SR21", "table.py::_keep_rows", "cells that memory does not hold are left in whatever folder the process runs in",
    """engine.execute("SET temp_directory = '" + beside.replace("'", "''") + "'")""", "pass",
    SOURCES + "arrays_outside_memory_are_in_a_folder_that_only_its_owner_can_open",
)  # fmt: skip

people = Writer("people", "privacy/")
people(
    "PE01", "budget.py::Budget.rho", "k rows cost ρ in proportion to k",
    "math.nextafter(ρ / self.rows_per_unit**2, 0.0)", "math.nextafter(ρ / self.rows_per_unit, 0.0)",
    ROWS_PER_UNIT + "gaussian_noise_on_k_rows_is_private_by_its_own_law",
)  # fmt: skip
people(
    "PE02", "budget.py::Budget.of_a_row", "a pure budget is spent k times over by a person",
    "ε = math.nextafter(self.epsilon / self.rows_per_unit, 0.0)", "ε = self.epsilon",
    ROWS_PER_UNIT + "laplace_noise_on_k_rows_costs_what_the_budget_says",
)  # fmt: skip
people(
    "PE03", "budget.py::Budget.of_a_row", "the δ of k steps is not added up",
    "return ε, self.delta * share * (1 - 1e-12)", "return ε, self.delta / self.rows_per_unit",
    ROWS_PER_UNIT + "an_approximate_step_is_held_to_what_k_of_them_add_up_to",
)  # fmt: skip
people(
    "PE04", "budget.py::Budget.rho", "a δ of a row is taken for one of k rows",
    "if slack > 0 and self.rows_per_unit > 1:", "if False:",
    ROWS_PER_UNIT + "events_that_can_fail_outright_are_not_sold_to_persons_from_a_ledger",
)  # fmt: skip
people(
    "PE05", "budget.py::Budget.per_unit", "the public number of rows tells of a person's",
    'if self.neighbours != "add-remove":\n            raise errors.InvalidInput(\n                "unit', 'if False:\n            raise errors.InvalidInput(\n                "unit',
    PEOPLE + "options_without_a_promise_to_persons_are_refused",
)  # fmt: skip
people(
    "PE06", "budget.py::Budget.epsilon_of_rows", "what is said to be spent is a row's ε",
    "return k * epsilon if self.pure", "return epsilon if self.pure",
    ROWS_PER_UNIT + "laplace_noise_on_k_rows_costs_what_the_budget_says",
)  # fmt: skip
people(
    "PE07", "allowance.py::Amount.mu", "one call draws Gaussian noise for one row of a person",
    "return μ / self.budget.rows_per_unit", "return μ",
    ROWS_PER_UNIT + "one_call_gives_gaussian_noise_k_times_as_large_and_no_less",
)  # fmt: skip
people(
    "PE08", "allowance.py::CallFilter.admit", "one call certifies Gaussian noise for one row of a person",
    "mu = k * math.sqrt(", "mu = math.sqrt(",
    ROWS_PER_UNIT + "one_call_gives_gaussian_noise_k_times_as_large_and_no_less",
)  # fmt: skip
people(
    "PE09", "allowance.py::Amount.approximate", "one step of a row's ε and δ is sold as a person's",
    "            return self.budget.of_a_row\n", "            return self.budget.epsilon, self.budget.delta\n",
    ROWS_PER_UNIT + "an_approximate_step_is_held_to_what_k_of_them_add_up_to",
)  # fmt: skip

models = Writer("people", "erm/")
models(
    "PE10", "../data/contributions.py::kept_rows", "all rows of a person stay",
    "        if taken[person] <= most:\n", "        if True:\n",
    UNITS + "a_person_who_goes_takes_their_own_rows_and_no_others",
)  # fmt: skip
models(
    "PE11", "../data/contributions.py::kept_rows", "which rows stay depends on where they are among those of others",
    'marked = f"{person.hex().upper()}|{record}|{seen[person, record]}"', 'marked = f"{person.hex().upper()}|{record}|{i}"',
    UNITS + "a_person_who_goes_takes_their_own_rows_and_no_others",
)  # fmt: skip
models(
    "PE12", "../data/coding.py::_meaning_of_float", "an id that is missing changes the ids of all others",
    "(str(int(value)), int(value)) if value.is_integer() else (repr(value), value)", "(repr(value), value)",
    UNITS + "neither_the_order_nor_the_carrier_of_rows_decides",
)  # fmt: skip
models(
    "PE13", "units.py::payer_of_units", "a ledger of single rows pays for persons",
    "if not isinstance(budget, Budget) or budget.per_unit(rows_per_unit) != budget:", "if not isinstance(budget, Budget):",
    UNITS + "a_session_pays_for_the_same_persons_alone",
)  # fmt: skip
FILES = "data/test_small_files.py::test_"
sources(
    "SF01", "csv_file.py::_are_whole", "a quoted text with a comma is read as two fields of a small file",
    "return bool(2 * np.count_nonzero(quoted) == quotes)", "return bool(2 * np.count_nonzero(quoted) <= quotes)",
    FILES + "a_file_is_read_alike_by_arrays_and_by_loops",
)  # fmt: skip
sources(
    "SF02", "csv_file.py::_plain_fields", "a field that a short line of a small file does not have is taken from the next line",
    "has, np.where(quoted, place - end, end - place), ABSENT", "quoted, place - end, end - place",
    FILES + "a_file_is_read_alike_by_arrays_and_by_loops",
)  # fmt: skip
sources(
    "SF03", "counting.py::ManyTables._add_few", "the first batches of a table are counted once too often or not at all",
    "self._counts[start:end] += np.bincount", "self._counts[start:end] = np.bincount",
    FILES + "rows_are_counted_alike_whether_few_or_many",
)  # fmt: skip
sources(
    "SF04", "coding.py::Coder._spread", "a missing value takes the cell of another row's value",
    "places = np.where(known, places, len(cells))", "assert len(known) == len(places)",
    FILES + "texts_are_numbers_alike_whether_few_or_many",
)  # fmt: skip

SOURCE_MUTANTS = [*sources.mutants, *people.mutants, *models.mutants]
