"""Mutants of the code that reads and counts rows."""

from __future__ import annotations

from mutant import Writer

OPENING = "data/test_opening.py::test_"
DATA = "data/test_data.py::test_"
SOURCES = "data/test_sources.py::test_"
EXACT = "data/test_exact_counts.py::test_"
ATTACKS = "attacks/test_attacks_opening.py::test_"
CONTRACT = "data/test_reading_rule.py::test_"
ROWS = "data/test_row_store.py::test_"
VALUES = "data/test_row_values.py::test_"

data = Writer("data", "data/")
data(
    "D01", "coding.py::Coder.cell", "missing values are in the first cell though the attribute has one for them",
    "return self._missing if text is None else self._place(text, number)", "return 0 if text is None else self._place(text, number)",
    OPENING + "a_column_is_coded_as_its_values_are_one_by_one", OPENING + "one_missing_value_does_not_change_what_the_others_mean",
)  # fmt: skip
data(
    "D02", "coding.py::Coder._of_numbers", "NaN is in the last bin",
    "            if nan.any():\n", "            if False:\n",
    OPENING + "a_column_is_coded_as_its_values_are_one_by_one",
)  # fmt: skip
data(
    "D03", "coding.py::meaning", "one value that cannot be printed raises, and is heard of",
    "    except Exception:  # an object that cannot even be printed gets a text that no label has\n        return", "    except AttributeError:\n        return",
    ATTACKS + "an_object_without_a_class_or_with_a_strange_text_has_a_cell",
)  # fmt: skip
data(
    "D04", "coding.py::Coder._of_numbers", "numbers below the range have no cell",
    "inside = np.clip(values, low, high) - low", "inside = np.minimum(values, high) - low",
    OPENING + "a_column_is_coded_as_its_values_are_one_by_one",
)  # fmt: skip
data(
    "D05", "coding.py::Coder._of_numbers", "a number on an edge is in the bin below it",
    'np.searchsorted(edges[1:-1], values, side="right")', 'np.searchsorted(edges[1:-1], values, side="left")',
    OPENING + "a_column_is_coded_as_its_values_are_one_by_one",
)  # fmt: skip
data(
    "D06", "coding.py::Coder._of_numbers", "numbers below the range are in the first bin though there is a cell for them",
    "cells = np.where((values < low) | (values > high), self._outside, cells)", "cells = np.where(values > high, self._outside, cells)",
    OPENING + "a_column_is_coded_as_its_values_are_one_by_one",
)  # fmt: skip
data(
    "D07", "coding.py::Coder._of_numbers", "large unsigned numbers wrap around to negative ones",
    "values = np.minimum(values, np.uint64(2**63 - 1))", "pass",
    CONTRACT + "unsigned_numbers_beyond_the_signed_ones_are_above_the_range",
)  # fmt: skip
data(
    "D08", "coding.py::_classify_texts", "compiled code loses the sign of a number",
    "wholes[row] = -whole if negative else whole", "wholes[row] = whole",
    "data/test_small_files.py::test_texts_are_numbers_alike_whether_few_or_many",
)  # fmt: skip
data(
    "D09", "coding.py::_classify_texts", "a text that only begins with digits is a number",
    "        if after == end:\n            found[row] = 1", "        if True:\n            found[row] = 1",
    "data/test_small_files.py::test_texts_are_numbers_alike_whether_few_or_many",
)  # fmt: skip
data(
    "D10", "coding.py::Coder._by_label", "labels that are the same number are found by it",
    "by_number = {number: i for number, i in numbered if repeated[number] == 1}", "by_number = {number: i for number, i in numbered}",
    OPENING + "labels_are_found_by_text_then_by_number",
)  # fmt: skip
data(
    "D11", "schema.py::hide_engine_errors", "what an engine says of a row is shown",
    "    except BaseException:  # a panic of a compiled library is not an Exception\n        pass",
    "    except BaseException as engine:\n        refusal = DataUnavailable(str(engine))",
    CONTRACT + "messages_of_an_engine_are_dropped_as_a_whole",
)  # fmt: skip
data(
    "D12", "schema.py::hide_engine_errors", "the failure that quotes a row hangs on the refusal",
    "    raise refusal or DataUnavailable(", "        raise DataUnavailable(str(refusal))\n    raise refusal or DataUnavailable(",
    CONTRACT + "messages_of_an_engine_are_dropped_as_a_whole",
)  # fmt: skip
data(
    "D15", "table.py::code_batches", "cells beyond 255 wrap around",
    "    kinds = [np.min_scalar_type(size - 1) for size in universe.shape]\n    for batch", "    kinds = [np.dtype(np.uint8) for size in universe.shape]\n    for batch",
    CONTRACT + "every_cell_of_a_large_attribute_is_told_from_the_others",
)  # fmt: skip
data(
    "D16", "csv_file.py::_copy_fields", "doubled quotes stay doubled",
    "i += 2 if data[i] == quote else 1", "i += 1",
    OPENING + "the_output_of_a_csv_writer_is_read_exactly",
)  # fmt: skip
data(
    "D17", "csv_file.py::_lines", "a record takes other lines whatever the number of its fields",
    "return min(i, stop) if field == width else -1", "return min(i, stop)",
    CONTRACT + "a_quote_takes_further_lines_only_for_a_record_of_as_many_fields_as_there_are_columns",
)  # fmt: skip
data(
    "D18", "csv_file.py::_records", "a short line has the values of the line before it",
    "        for slot in range(lengths.shape[1]):\n            lengths[rows, slot] = -1\n        unclosed =", "        unclosed =",
    "data/test_small_files.py::test_a_file_is_read_alike_by_arrays_and_by_loops",
)  # fmt: skip
data(
    "D19", "csv_file.py::CsvFile.batches", "the header counts as a row",
    "skipping, final, pending = self._dialect.columns is None, False, b\"\"", "skipping, final, pending = False, False, b\"\"",
    OPENING + "a_record_is_a_line_and_the_last_newline_ends_the_last_record",
)  # fmt: skip
data(
    "D20", "csv_file.py::CsvFile._blocks", "a file that begins with a mark has no first column",
    "block, beginning = block.removeprefix(codecs.BOM_UTF8), False", "beginning = False",
    CONTRACT + "the_mark_that_may_begin_a_file_is_no_part_of_a_name",
)  # fmt: skip
data(
    "D21", "csv_file.py::CsvFile.batches", "what comes between two blocks of a file is lost",
    "            pending = pending[start:]\n", '            pending = b""\n',
    OPENING + "the_ends_of_file_blocks_change_nothing",
)  # fmt: skip
data(
    "D22", "csv_file.py::_is_readable", "an encoding is accepted in which one line changes what others mean",
    'if name.startswith("iso2022") or "escape" in name:', "if False:",
    ATTACKS + "an_encoding_in_which_a_line_can_spell_a_newline_is_refused", OPENING + "a_bad_dialect_is_refused_by_name",
)  # fmt: skip
data(
    "D25", "readers.py::_of_sqlite", "one text of SQLite that is no UTF-8 raises, and is heard of",
    "    connection.text_factory = bytes\n", "    pass\n",
    OPENING + "no_row_of_a_sqlite_table_changes_another",
)  # fmt: skip
data(
    "D26", "readers.py::_of_frame.batches", "rows beyond a frame's first batch are not read",
    "for start in range(0, rows, ROWS):", "for start in range(0, min(rows, 1), ROWS):",
    CONTRACT + "every_batch_of_a_frame_is_read",
)  # fmt: skip
data(
    "D27", "counting.py::exact_count", "a weighted count is off by more than half a step",
    "return min((total + (1 << unit >> 1)) >> unit, LARGEST) * step", "return min(total >> unit, LARGEST) * step",
    EXACT + "a_weighted_count_is_the_exact_one_to_the_nearest_step",
)  # fmt: skip
data(
    "D28", "counting.py::on_grid", "weights are not rounded, and sums carry rounding that depends on the data",
    "return Linear.from_table(universe, query.attributes, np.floor(query.table / grid + 0.5) * grid)", "return query",
    CONTRACT + "a_weighted_question_is_counted_in_multiples_of_its_grid",
)  # fmt: skip
data(
    "D29", "counting.py::exact_count", "a weight of 1 counts for nothing in its last digits",
    "limb = weights >> shift if last else (weights >> shift) & ((1 << LIMB) - 1)", "limb = (weights >> shift) & ((1 << LIMB) - 1)",
    EXACT + "a_weighted_count_is_the_exact_one_to_the_nearest_step",
)  # fmt: skip
data(
    "D30", "counting.py::exact_count", "values beyond 2^53 steps are not cut, and lose their last digits by the data",
    ">> unit, LARGEST) * step", ">> unit, 2 * LARGEST) * step",
    CONTRACT + "values_beyond_what_float64_holds_are_cut",
)  # fmt: skip
data(
    "D13", "counting.py::_count", "the last rows of a block are not counted",
    "for i in range(rows - rows % COPIES, rows):", "for i in range(rows - rows % COPIES, rows - 1):",
    "data/test_small_files.py::test_rows_are_counted_alike_whether_few_or_many",
)  # fmt: skip
data(
    "D14", "counting.py::_count", "rows of one block are counted again in the next",
    "spread[copy * cells + i] = 0", "spread[copy * cells + i] = found[i] * 0 + spread[copy * cells + i]",
    "data/test_small_files.py::test_rows_are_counted_alike_whether_few_or_many",
)  # fmt: skip
data(
    "D62", "counting.py::_count", "cells are counted under the places of other cells",
    "place[i] = place[i] * size + line[i]", "place[i] = place[i] + size * line[i] // size",
    "data/test_small_files.py::test_rows_are_counted_alike_whether_few_or_many",
)  # fmt: skip
data(
    "D31", "source.py::DataSource._find", "whoever is given counts changes them for all that follows",
    "                known[names].flags.writeable = False\n", "",
    SOURCES + "counts_cannot_be_written_to",
)  # fmt: skip
data(
    "D32", "source.py::DataSource.marginals", "counts of one set are given for another",
    "return [known[names] for names in asked]", "return list(known.values())[: len(asked)]",
    CONTRACT + "cached_and_new_counts_come_in_the_order_of_the_request",
)  # fmt: skip
data(
    "SH4", "source.py::_beside", "a table that is part of another is summed over the attributes that were asked for",
    "if name not in kept)", "if name in kept)",
    SOURCES + "part_of_a_table_that_is_counted_is_summed_from_it_unless_that_is_large",
)  # fmt: skip
data(
    "D33", "source.py::DataSource.fingerprint", "tables of different universes pass for the same",
    "digest = hashlib.sha256(declaration_of(self.universe))", "digest = hashlib.sha256()",
    SOURCES + "the_same_cells_of_another_universe_have_another_fingerprint",
)  # fmt: skip
data(
    "D34", "source.py::HistogramSource.__init__", "a histogram holds negative rows",
    " or (array < 0).any():", ":",
    DATA + "a_bad_histogram_is_refused",
)  # fmt: skip
data(
    "D35", "source.py::HistogramSource.__init__", "a histogram holds more rows than arithmetic is proved for",
    "if array.sum(dtype=float) > MOST_ROWS:", "if False:",
    EXACT + "a_histogram_of_more_rows_than_arithmetic_is_proved_for_is_refused",
)  # fmt: skip
data(
    "D36", "source.py::DataSource._require_room", "a table past memory is counted, and the process dies",
    "            if size > LARGEST_MARGINAL:\n", "            if False:\n",
    SOURCES + "too_large_tables_are_refused_before_anything_is_counted",
    DATA + "a_marginal_past_memory_is_refused_with_its_size",
)  # fmt: skip

data(
    "D37", "row_store.py::_File.__enter__", "others of the machine can read the raw rows",
    "os.O_EXCL, 0o600)", "os.O_EXCL, 0o644)",
    ROWS + "only_the_owner_can_open_the_folder_and_its_files",
)  # fmt: skip
data(
    "D38", "row_store.py::_reopen_store", "a store is used again though its files were changed",
    "if identity is None or not same or any(_checksum(folder / n) != s for n, s in manifest[\"files\"].items()):",
    "if identity is None or not same:",
    ROWS + "a_store_that_does_not_fit_any_more_is_built_again",
)  # fmt: skip
data(
    "D39", "row_store.py::_identity", "a store is used again though its source has changed",
    '"changed": [each.st_mtime_ns for each in about],', '"changed": 0,',
    ROWS + "a_store_is_used_again_until_its_source_changes",
)  # fmt: skip
data(
    "D40", "row_store.py::_require_private", "a folder that another user made is trusted",
    "stat.S_IMODE(about.st_mode) & 0o077:", "False:",
    ROWS + "a_folder_that_others_can_open_or_that_holds_something_else_is_refused",
)  # fmt: skip
data(
    "D41", "row_values.py::_value", "what a function raises on one row is heard of",
    "    except BaseException:\n        return 0", "    except ZeroDivisionError:\n        return 0",
    VALUES + "the_rule_is_cut_to_0_and_1_and_0_for_what_raises_or_is_no_number",
)  # fmt: skip
data(
    "D42", "row_values.py::_call_with_columns", "one row on which a function raises makes all others 0",
    "    rows = range(len(columns[0]))\n    alone =", "    return np.zeros(len(columns[0]), np.int64)\n    rows = range(len(columns[0]))\n    alone =",
    VALUES + "the_value_of_a_row_does_not_depend_on_which_others_were_drawn",
)  # fmt: skip
data(
    "D43", "row_values.py::_value", "a value above 1 moves a sum by more than was billed",
    "int(min(max(value, 0.0), 1.0) * STEPS + 0.5)", "int(min(max(value, 0.0), 9.0) * STEPS + 0.5)",
    VALUES + "the_rule_is_cut_to_0_and_1_and_0_for_what_raises_or_is_no_number",
)  # fmt: skip
data(
    "D44", "coding.py::numbers_of", "a missing number is 0 to a function of raw values",
    "            found[carried.is_null().to_numpy(zero_copy_only=False)] = math.nan\n", "            pass\n",
    ROWS + "a_column_has_what_its_values_have_one_by_one",
)  # fmt: skip
data(
    "D63", "coded_rows.py::CodedRows._count", "rows that are given as cells are counted by other attributes than those named",
    "self._columns[self.universe.index(name)]", "self._columns[names.index(name)]",
    SOURCES + "a_marginal_is_what_counting_the_records_one_by_one_gives",
)  # fmt: skip

DATA_MUTANTS = data.mutants
