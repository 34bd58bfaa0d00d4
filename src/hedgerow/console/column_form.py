"""The declaration of a column as fields of a form, and back."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KINDS = {
    "": "not declared yet",
    "Categories": "categories",
    "Flag": "yes or no",
    "Integers": "whole numbers, one by one",
    "Range": "numbers, in bins",
    "Dates": "dates, by period",
}
FIELDS: Mapping[str, Sequence[str]] = {
    "Categories": ("values",), "Flag": (), "Integers": ("low", "high"), "Range": ("low", "high", "bins"), "Dates": ("low", "high", "by"),
}  # fmt: skip
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d{1,3})?")
WHOLE = re.compile(r"[-+]?\d{1,18}")
MOST_VALUES = 10_000


@dataclass(frozen=True)
class ColumnForm:
    """One column of the form.

    ``kind`` is "kept" for a declaration that the form has no fields for, such as one with uneven bins.
    """

    number: int
    name: str
    kind: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    missing: bool = False
    other: bool = False
    left_out: bool = False

    @classmethod
    def of(cls, number: int, column: Mapping[str, Any]) -> ColumnForm:
        """Return the fields of a column as the service knows it."""
        given, name, left_out = column["declaration"], column["name"], column["left_out"]
        if given is None:
            return cls(number, name, left_out=left_out)
        kind, shown = (
            given["kind"],
            {key: _write(value) for key, value in given.items() if key in FIELDS[given["kind"]]},
        )
        form = cls(number, name, kind, shown, bool(given.get("missing")), bool(given.get("other")), left_out)
        usual = {key: value for key, value in given.items() if (key, value) != ("spaces", "strip")}
        plain = form.declaration()
        return form if plain is not None and _same(plain, usual) else cls(number, name, "kept", left_out=left_out)

    @classmethod
    def read(cls, number: int, name: str, form: Mapping[str, str]) -> ColumnForm:
        """Return the fields that a person filled."""
        kind = form.get(f"kind-{number}", "")
        names = [key for keys in FIELDS.values() for key in keys]
        values = {key: form[f"{key}-{number}"].strip() for key in names if f"{key}-{number}" in form}
        flags = {key: f"{key}-{number}" in form for key in ("missing", "other")}
        known = kind if kind in KINDS or kind == "kept" else ""
        return cls(number, name, known, values, left_out=f"use-{number}" not in form, **flags)

    def declaration(self) -> dict[str, Any] | None:
        """Return the declaration, or None as long as a field is missing."""
        needed = FIELDS.get(self.kind)
        if needed is None or not all(self.values.get(key) for key in needed if key != "by"):
            return None
        given: dict[str, Any] = {"kind": self.kind}
        for key in needed:
            given[key] = _read(key, self.kind, self.values.get(key, ""))
        return given | {key: True for key in ("missing", "other") if getattr(self, key)}


def _read(key: str, kind: str, text: str) -> Any:
    """Return the value of a field of the form in the type that its declaration needs."""
    if key == "values":
        return [line.strip() for line in text.splitlines() if line.strip()][:MOST_VALUES]
    if key == "by":
        return text or "month"
    if kind == "Dates":
        return {"kind": "date", "text": text}
    if WHOLE.fullmatch(text):
        return int(text)
    return float(text) if NUMBER.fullmatch(text) else text  # a text is refused by name


def _write(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(each if isinstance(each, str) else repr(each) for each in value)
    if isinstance(value, Mapping):
        return str(value.get("text", ""))
    if isinstance(value, datetime.date):
        return value.isoformat()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return set(one) == set(other) and all(one[key] == other[key] for key in one)
