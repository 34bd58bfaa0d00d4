"""The arguments of a tool: their JSON schema, and a check that refuses others with the library's sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hedgerow.answer import Combination
from hedgerow.assistants.quoting import safe_text
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import Query
from hedgerow.query.parse import LONGEST, makers
from hedgerow.serialize.registry import registered

Schema = dict[str, Any]
KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,), "array": (list,), "object": (dict,), "boolean": (bool,), "integer": (int,), "number": (int, float),
}  # fmt: skip
NAMES = {
    "string": "a text", "array": "a list", "object": "an object", "boolean": "true or false", "integer": "a whole number",
    "number": "a number",
}  # fmt: skip
SCALE: Schema = {
    "type": "string", "enum": ["fraction", "rows"], "default": "fraction",
    "description": "Counts as fractions of the rows, or as numbers of rows.",
}  # fmt: skip
RESOLUTION: Schema = {
    "type": "string", "enum": ["values", "bins"], "default": "values",
    "description": (
        "values: about the values themselves; bars then include what bins hide. bins: about the coded table, where "
        "each value is the representative of its bin; bars of means are much narrower."
    ),
}  # fmt: skip
WITHIN: Schema = {
    "type": "number", "exclusiveMinimum": 0,
    "description": "The error bar that is wanted: a fraction for counts and shares, the units of the values for means.",
}  # fmt: skip


def question_schema() -> Schema:
    """Return the schema of a question: a text as in Python, or the library's JSON form."""
    kinds = sorted(kind for kind, of in registered().items() if issubclass(of, Query) and of is not Combination)
    return {
        "description": (
            "A question as text, written as in Python: count(smoker=True, age=(40, 65)); share(count(smoker=True), "
            "where=count(sex='F')); mean('age', where=count(sex='F')); quantile('age', 0.9); "
            "group_by('sex').mean('age'); marginal('sex', 'smoker'); difference(a, b). A range (low, high) includes "
            "both ends, and cuts bins where they lie otherwise; a set {'a', 'b'} lists values, or bins by the labels "
            f"that describe_dataset shows; &, | and ~ combine counts. Functions: {', '.join(makers())}. Or the "
            "library's JSON form."
        ),
        "anyOf": [
            {"type": "string", "minLength": 1, "maxLength": LONGEST},
            {"type": "object", "properties": {"kind": {"type": "string", "enum": kinds}}, "required": ["kind"]},
        ],
    }


def column_list(most: int, what: str) -> Schema:
    """Return the schema of a list of columns."""
    return {
        "type": "array", "items": {"type": "string", "maxLength": 1000}, "minItems": 1, "maxItems": most,
        "description": what,
    }  # fmt: skip


def arguments_schema(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """Return the schema of all arguments of a tool. Unknown ones are refused."""
    return {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": False,
    }  # fmt: skip


def require_arguments(schema: Schema, given: Any) -> dict[str, Any]:
    """Return the arguments with defaults filled in, or refuse those that do not fit the schema."""
    if given is None:
        given = {}
    _require(schema, given, "The arguments")
    defaults = {name: part["default"] for name, part in schema["properties"].items() if "default" in part}
    return {**defaults, **given}


def _require(schema: Schema, given: Any, role: str) -> None:
    """Refuse a value that does not fit its schema."""
    if "anyOf" in schema:
        if not any(_is_kind(given, each.get("type")) for each in schema["anyOf"]):
            kinds = " or ".join(NAMES[each["type"]] for each in schema["anyOf"])
            raise InvalidInput(f"{role} must be {kinds}. Found {_describe(given)}. See the tool's description.")
        for each in schema["anyOf"]:
            if _is_kind(given, each.get("type")):
                _require(each, given, role)
        return
    kind = schema.get("type")
    if not _is_kind(given, kind):
        raise InvalidInput(f"{role} must be {NAMES[str(kind)]}. Found {_describe(given)}. Correct it.")
    if "enum" in schema and given not in schema["enum"]:
        raise InvalidInput(f"{role} must be one of {', '.join(schema['enum'])}. Found {_describe(given)}. Choose one.")
    if kind == "array":
        _require_count(schema, len(given), role, "items", "minItems", "maxItems")
        for i, each in enumerate(given):
            _require(schema["items"], each, f"{role}, item {i + 1},")
    elif kind == "string":
        _require_count(schema, len(given), role, "characters", "minLength", "maxLength")
    elif kind in ("integer", "number"):
        _require_range(schema, given, role)
    elif kind == "object":
        _require_fields(schema, given, role)


def _require_fields(schema: Schema, given: Mapping[str, Any], role: str) -> None:
    """Refuse an object that lacks a required field, has an unknown one, or has a field that does not fit its schema."""
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in given:
            raise InvalidInput(f"{role} must have {name}. Found none. Add it.")
    for name, value in given.items():
        if name in known:
            _require(known[name], value, name)
        elif schema.get("additionalProperties") is False:
            raise InvalidInput(
                f"{role} must be among {', '.join(known) or 'none'}. Found {_describe(name)}. Leave it out."
            )
        elif isinstance(schema.get("additionalProperties"), dict):
            _require(schema["additionalProperties"], value, f"{role}, {safe_text(str(name), 60)},")


def _require_count(schema: Schema, count: int, role: str, what: str, least: str, most: str) -> None:
    if not schema.get(least, 0) <= count <= schema.get(most, math.inf):
        allowed = (
            f"at least {schema[least]}" if count < schema.get(least, 0) else f"at most {schema[most]}"
        )  # fmt: skip
        raise InvalidInput(f"{role} must have {allowed} {what}. Found {count}. Send several calls, or shorten it.")


def _require_range(schema: Schema, given: float, role: str) -> None:
    if not math.isfinite(given):
        raise InvalidInput(f"{role} must be a finite number. Found {given}. Correct it.")
    if "exclusiveMinimum" in schema and given <= schema["exclusiveMinimum"]:
        raise InvalidInput(f"{role} must be above {schema['exclusiveMinimum']}. Found {given:g}. Correct it.")
    if not schema.get("minimum", -math.inf) <= given <= schema.get("maximum", math.inf):
        low, high = schema.get("minimum", "any number"), schema.get("maximum", "any number")
        raise InvalidInput(f"{role} must be from {low} to {high}. Found {given:g}. Correct it.")


def _is_kind(given: Any, kind: Any) -> bool:
    """Return True for a value of a JSON type. A whole number such as 3.0 is an integer; true is no number."""
    if kind is None:
        return True
    if isinstance(given, bool):
        return bool(kind == "boolean")
    if kind == "integer" and isinstance(given, float):
        return given.is_integer()
    return isinstance(given, KINDS[kind])


def _describe(given: Any) -> str:
    return safe_text(repr(given), 60)
