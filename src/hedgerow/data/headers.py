"""Explain why a declared column is not in a table, by public facts: the names of its columns.

The names of a frame's or a database's columns are public. The first line of a text file is a header only if the owner
says so; a file without one begins with a record. So a message quotes that line only if it is recognizably a header: it
has a declared name, possibly in another case, with other blanks, between other delimiters or in another encoding.
"""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow._checks import did_you_mean, plain_spelling
from hedgerow.errors import InvalidInput

DELIMITERS = {";": "';'", "\t": "'\\t'", "|": "'|'", ",": "','", ":": "':'"}
NO_TEXT = str.maketrans("", "", "\0\ufffd\ufeff")  # what remains of UTF-16 that is read as UTF-8, beside the letters
SHOWN = 8  # a message names at most this many columns


def missing_columns(
    missing: Sequence[str], declared: Sequence[str], columns: Sequence[str], *, is_text: bool
) -> InvalidInput:
    """Return the error about declared columns that a table does not have, with the likely cause.

    ``is_text`` is True if the columns are the fields of the first line of a text file.
    """
    must = f"The table must have every column the universe declares. Found no {list_names(missing)}"
    wanted = {plain_spelling(name) for name in declared}
    if is_text:
        cause = _cause_in_text(wanted, columns)
        if cause is not None:
            return InvalidInput(f"{must}{cause}")
        if not wanted & {plain_spelling(name) for name in columns}:
            return InvalidInput(
                f"{must} in its first line. If the file has no header, name its columns, as in "
                "csv=hr.Csv(columns=[…]). If its delimiter or encoding is another, declare them, as in "
                "csv=hr.Csv(delimiter=';', encoding='latin-1'). Otherwise declare the columns as the file spells "
                "them."
            )
    found = f"; the table has {list_names(columns)}" if columns else "; the table has no columns"
    hints = "".join(did_you_mean(name, columns) for name in missing[:SHOWN])
    return InvalidInput(f"{must}{found}.{hints} Rename the column, or take it out of the universe.")


def require_header(columns: Sequence[str], delimiter: str | None) -> None:
    """Refuse a first line that cannot be the header, before its fields are taken for the names of all columns.

    ``delimiter`` is the declared one, or None. If the only column of a file has a delimiter in its name, the owner must
    declare the delimiter.
    """
    if not any(columns):
        raise InvalidInput(
            "The first line must name the columns. Found an empty one. Check that this is the right file, and that "
            "it is complete."
        )
    if any(name.translate(NO_TEXT) != name for name in columns):
        encoding = "utf-16" if any("\0" in name for name in columns) else "latin-1"
        raise InvalidInput(
            "The first line must be in the declared encoding. Found characters that are not. Declare the file's, as in "
            f"--encoding {encoding} or csv=hr.Csv(encoding='{encoding}')."
        )
    marks = [mark for mark in DELIMITERS if mark in columns[0] and mark != ":"]
    if delimiter is None and len(columns) == 1 and marks:
        written = DELIMITERS[max(marks, key=columns[0].count)]
        raise InvalidInput(
            f"The first line must have columns between ','. Found one column, which has {written} in it. Declare the "
            f"delimiter, as in --delimiter {written} or csv=hr.Csv(delimiter={written})."
        )


def _cause_in_text(wanted: set[str], columns: Sequence[str]) -> str | None:
    """Return why a header's fields are not the declared names, if it is clear; otherwise None."""
    if not any(columns):
        return ", and an empty first line. Check that this is the right file, and that it is complete."
    letters = [name.translate(NO_TEXT) for name in columns]
    if letters != list(columns) and wanted & {plain_spelling(name) for name in letters}:
        return (
            f", but {list_names(letters)} in an encoding other than the declared one, probably UTF-16. Declare it, as "
            "in csv=hr.Csv(encoding='utf-16')."
        )
    for mark, written in DELIMITERS.items():
        parts = [part.strip("\"'") for name in letters for part in name.split(mark)]
        if len(parts) > len(columns) and wanted & {plain_spelling(part) for part in parts}:
            return f", but {list_names(parts)} between {written}. Declare it, as in csv=hr.Csv(delimiter={written})."
    return None


def list_names(names: Sequence[str]) -> str:
    """List the first few names for a message."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more
