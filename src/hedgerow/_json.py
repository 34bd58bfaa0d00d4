"""JSON text and plain records: the only module that writes or reads JSON, and the refusals of a record.

Everything that is stored, sent or shown as JSON is a text of one of these writers. ``hedgerow.serialize`` has the forms
of the package's own objects.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NoReturn

from hedgerow.errors import InvalidInput

Json = Any
"""None, bool, int, float, str, a list of these or a dict from str to these."""

LARGEST_PLAIN = 2**53  # every JSON reader agrees on whole numbers up to this one


# Texts. None of them has NaN or Infinity, which are no JSON, unless it is asked for.


def canonical(record: Json) -> str:
    """Return the one text of a record: fields sorted by name, no blanks, ASCII."""
    return json.dumps(record, allow_nan=False, sort_keys=True, separators=(",", ":"))


def write_ordered(record: Json) -> str:
    """Return the text of a record with its fields in their own order, no blanks, ASCII."""
    return json.dumps(record, allow_nan=False, separators=(",", ":"))


def write_spaced(record: Json) -> str:
    """Return the text of a record with its fields in their own order, a blank after each mark, ASCII."""
    return json.dumps(record, allow_nan=False)


def readable(record: Json, *, indent: int = 2, ascii_only: bool = False, infinities: bool = False) -> str:
    """Return the text of a record for people and other programs, one field a line.

    A value of a type that JSON does not have is written as its ``str``. With ``infinities``, numbers that are not
    finite are written as ``Infinity`` and ``NaN``, which ``parse`` reads but other programs may not.
    """
    return json.dumps(record, allow_nan=infinities, indent=indent, ensure_ascii=ascii_only, default=str)


def quote_text(text: str) -> str:
    """Return a text in quotes, with escapes that are valid in JSON and in TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def parse(text: str, *, distinct: bool = False) -> Json:
    """Return the record in a text. Raise ValueError for any text that is not JSON, however it is broken.

    With ``distinct``, a field that is given twice is refused too.
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct if distinct else None)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Make a dict from the fields of a JSON object; refuse repeated names."""
    record = dict(pairs)
    if len(record) != len(pairs):
        raise InvalidInput("The fields of a record must be distinct. Found one twice. Remove one.")
    return record


# Refusals. A record may come from a stranger, so they quote little of it.


def refuse(role: str, wanted: str, found: Any, way_out: str = "Correct the record.") -> NoReturn:
    """Raise InvalidInput: ``role`` must be ``wanted``, but ``found`` was found."""
    raise InvalidInput(f"{role} must be {wanted}. Found {describe_value(found)}. {way_out}")


def describe_value(found: Any) -> str:
    """Describe a value briefly, because a hostile record may be long."""
    if found is None or isinstance(found, bool | float):
        return repr(found)
    if isinstance(found, str):
        return repr(found if len(found) <= 40 else found[:40] + "…")
    return repr(found) if isinstance(found, int) and abs(found) < 10**40 else f"a {type(found).__name__}"


def kind_of(record: Json) -> str | None:
    """Return the kind of a record, or None if it has none."""
    kind = record.get("kind") if type(record) is dict else None
    return kind if type(kind) is str else None


def fields(record: dict[str, Json], *names: str) -> list[Json]:
    """Return the named fields of a record, in this order. Refuse a record with other fields."""
    require_fields(record, names)
    return [record[name] for name in names]


def require_fields(record: dict[str, Json], names: Collection[str], optional: Collection[str] = ()) -> None:
    """Refuse a record unless it has exactly the fields ``names``, of which ``optional`` ones may be missing."""
    found = set(record) - {"kind"}
    if not set(names) - set(optional) <= found <= set(names):
        raise InvalidInput(
            f"The fields of {describe_value(kind_of(record))} must be {', '.join(sorted(names)) or 'none'}. "
            f"Found {', '.join(describe_value(name) for name in sorted(found)[:12]) or 'none'}. "
            "Read the record with the version that wrote it."
        )


def read_text(role: str, record: Json) -> str:
    """Return a plain str. Refuse lone surrogates, because two of them would be read back as one character."""
    if type(record) is not str or not _is_whole(record):
        refuse(role, "a text of whole characters", record)
    return record


def _is_whole(text: str) -> bool:
    """Return True if a text has no lone surrogates."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def read_list(role: str, record: Json) -> list[Json]:
    """Return a list; refuse anything else."""
    if type(record) is not list:
        refuse(role, "a list", record)
    return record
