"""Answers as short records and sentences: the value, the interval that contains the truth, and what that settles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hedgerow.answer import Answer
from hedgerow.assistants.desk import AssistantLimits
from hedgerow.assistants.quoting import label_words, safe_text, visible_text
from hedgerow.display import titles
from hedgerow.query.bound import Bound
from hedgerow.query.composed import ComposedQuestion
from hedgerow.query.counts import BoundMarginal, Query
from hedgerow.query.linear import Linear
from hedgerow.query.ratios import BoundMean
from hedgerow.query.statistics.frequent import BoundTop

LONGEST_LABEL, LONGEST_NAME = 200, 1_000  # characters of a label and of a column's name, as data
MUCH = 0.2  # share of a bar that is worth a remark
ECHOED = 200  # characters of a question that a text repeats
UNITS = {
    "share": "as a fraction", "points": "in percentage points", "rows": "in rows", "value": "in the units of the values",
    "total": "in the units of the values, added up over the rows", "number": "as a number without a unit",
}  # fmt: skip
FRACTIONS = ("share", "points")  # units that are shown times 100


def unit_of(query: Query, bound: Bound[Any], scale: str) -> str:
    """Return the unit of an answer, one of ``UNITS``."""
    if bound.in_rows:
        return "total"
    kind = query.quantity
    if bound.is_fraction:
        return "rows" if scale == "rows" else "points" if kind == "points" else "share"
    return "value" if kind == "count" else kind


Ends = tuple[Any, Any]
"""The least and the greatest value that the truth can have: numbers, or one for each cell."""


def ends_of(bound: Bound[Any], unit: str) -> Ends:
    """Return the ends between which the truth is, whatever the table is."""
    if isinstance(bound, BoundMean):
        return bound.low, bound.high
    if isinstance(bound, BoundTop):
        return 0.0, 1.0 if unit == "share" else math.inf
    if isinstance(bound, ComposedQuestion):
        low, high = bound.limits
        if unit in ("rows", "total"):  # the number of rows may be private, so that only the sign is known
            return np.where(np.asarray(low) >= 0, 0.0, -math.inf), math.inf
        return low, high
    is_count = isinstance(bound, BoundMarginal) or (isinstance(bound, Linear) and bound.is_count)
    return (0.0, 1.0 if unit == "share" else math.inf) if is_count else (-math.inf, math.inf)


def answer_record(
    answer: Answer, unit: str, bound: Bound[Any], limits: AssistantLimits, given: Any = None
) -> dict[str, Any]:
    """Return an answer as data: one number with its interval, or a table of them.

    ``given`` is the question in the words of the caller.
    """
    asked = safe_text(given if isinstance(given, str) else repr(answer.query))
    record: dict[str, Any] = {
        "question": asked, "unit": unit, "measures": safe_text(titles.unit(answer.query, unit == "rows"), ECHOED),
        "charged": plain_number(answer.cost),
    }  # fmt: skip
    if not isinstance(bound, BoundTop) and getattr(bound, "is_coarse", False):
        record["cuts_bins"] = True
    least, greatest = ends_of(bound, unit)
    if np.ndim(answer.value) == 0:
        ends = float(least), float(greatest)
        return record | number_record(answer.value, answer.error, answer.typical, ends) | _resolution(answer)
    values = np.ravel(answer.value)
    errors, typical = _each(answer.error, values), _each(answer.typical, values)
    if answer.query.is_convex:
        bound_of_risk = None if answer.error is None else plain_number(float(np.max(answer.error)))
        return record | {"parameters": [plain_number(v) for v in values[: limits.cells]], "excess_risk": bound_of_risk}
    names = [name for name, _ in answer.labels]
    shape = np.shape(answer.value)
    lows, highs = (np.ravel(np.broadcast_to(end, shape)) for end in (least, greatest))
    cells = []
    for at in range(min(values.size, limits.cells)):
        place = np.unravel_index(at, shape)
        labels = [plain_label(answer.labels[axis][1][int(k)]) for axis, k in enumerate(place)] if names else []
        ends = float(lows[at]), float(highs[at])
        cells.append({"labels": labels, **number_record(values[at], errors[at], typical[at], ends)})
    record |= {
        "axes": [plain_name(name) for name in names],
        "cells": cells,
        "cells_left_out": int(values.size - len(cells)),
    } | _resolution(answer)
    if len(names) == 1 and 2 <= values.size <= limits.cells:
        record["largest"] = _largest(cells)
    return record


def number_record(
    value: Any, error: Any, typical: Any, ends: tuple[float, float] = (-math.inf, math.inf)
) -> dict[str, Any]:
    """Return a number, its bar, and the interval that contains the truth, which is between ``ends``."""
    v = float(value)
    e = math.nan if error is None else float(error)
    record = {"value": plain_number(v), "bar": None, "low": None, "high": None}
    record["typical_error"] = None if typical is None else plain_number(float(typical))
    if math.isfinite(v) and math.isfinite(e):
        low, high = min(max(ends[0], v - e), v), max(min(ends[1], v + e), v)  # a value may be beyond the ends
        record |= {"bar": outward(e, 1, 7), "low": outward(low, -1, 7), "high": outward(high, 1, 7)}
    return record


def outward(value: float, side: int, digits: int) -> float:
    """Round an end of an interval away from its middle, so that the rounded interval contains the exact one."""
    if value == 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits)
    rounded = float(f"{value:.{digits}g}")
    return rounded if (rounded - value) * side >= 0 else float(f"{rounded + side * step:.{digits}g}")


def _resolution(answer: Answer) -> dict[str, Any]:
    """Return the part of the bar that is due to bins, if there is any."""
    part = float(np.max(answer.resolution)) if np.size(answer.resolution) else 0.0
    return {"bar_from_bins": plain_number(part)} if part else {}


def is_wide_by_bins(record: dict[str, Any]) -> bool:
    """Return True if a good part of a bar is due to values inside bins, or if they leave the answer without one."""
    bars = [cell["bar"] for cell in record.get("cells", [record]) if "bar" in cell]
    return record.get("cuts_bins", False) and (
        None in bars or record.get("bar_from_bins", 0.0) >= MUCH * max(bars, default=math.inf)
    )


def _each(found: Any, values: Any) -> Any:
    """Return one bar for each value; NaN where there is none."""
    return np.broadcast_to(math.nan if found is None else np.ravel(found) if np.ndim(found) else found, values.shape)


def _largest(cells: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the cell with the largest value, and how many of the others are certainly smaller."""
    known = [cell for cell in cells if cell["value"] is not None and cell["low"] is not None]
    if not known:
        return None
    top = max(known, key=lambda cell: cell["value"])
    below = [cell for cell in known if cell is not top and cell["high"] < top["low"]]
    return {"labels": top["labels"], "certainly_above": len(below), "of": len(cells) - 1}


def plain_number(value: float) -> float | None:
    """Return a number to seven digits, or None if it is not finite."""
    return float(f"{value:.7g}") if math.isfinite(value) else None


def plain_label(value: Any) -> Any:
    """Return a label as a JSON value. A long text is cut, and marks that nobody sees are escaped."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return plain_number(value)
    return visible_text(str(value), LONGEST_LABEL)


def plain_name(name: str) -> str:
    """Return a column's name as data, with invisible characters escaped."""
    return visible_text(name, LONGEST_NAME)


# Words


def sentence(record: dict[str, Any]) -> str:
    """Return a record as one or several lines for a reader."""
    head = record["question"] if len(record["question"]) <= ECHOED else record["question"][:ECHOED] + "…"
    if "parameters" in record:
        known = record["excess_risk"]
        said = "with no bound on its excess risk" if known is None else f"with an excess risk of at most {known:g}"
        return f"{head}: {len(record['parameters'])} coefficients {said}. Use fit_model to see their names."
    if "cells" not in record:
        return f"{head} = {number_words(record, record['unit'])}{_charge(record)}"
    lines = [f"{head}, {record['measures']}, {UNITS[record['unit']]}{_charge(record)}:"]
    for cell in record["cells"]:
        labels = " × ".join(label_words(label) for label in cell["labels"])
        lines.append(f"  {labels}: {number_words(cell, record['unit'])}")
    if record["cells_left_out"]:
        lines.append(f"  … and {record['cells_left_out']} more cells. Ask about fewer values to see them.")
    if record.get("largest"):
        top = record["largest"]
        name = " × ".join(label_words(label) for label in top["labels"])
        lines.append(f"  Largest: {name}, certainly above {top['certainly_above']} of the other {top['of']}.")
    return "\n".join(lines)


def number_words(record: dict[str, Any], unit: str) -> str:
    """Return a number with its interval in words."""
    if record["value"] is None:
        return "unknown: nothing that was released bounds it"
    value, suffix = _in_words(record["value"], unit), ""
    if unit == "points":  # said once
        suffix, value = value[value.index(" ") :], value.split(" ")[0]
    if record["low"] is None:
        return f"about {value}{suffix}, without a bar: a hint, not a finding"
    bar, low, high = (
        _in_words(record[name], unit, side).removesuffix(suffix)
        for name, side in (("bar", 1), ("low", -1), ("high", 1))
    )
    ends = f"certainly between {low} and {high}{suffix}"
    ends += ", added up over the rows" if unit == "total" else ""
    may_be_0 = "; may be 0" if record["bar"] and record["low"] <= 0 <= record["high"] else ""
    return f"{value} ± {bar}, {ends}{may_be_0}"


def _in_words(value: float, unit: str, side: int = 0) -> str:
    """Return a number in its unit. An end of an interval is rounded outward."""
    if unit == "rows":
        whole = round(value) if side == 0 else math.floor(value) if side < 0 else math.ceil(value)
        return f"{whole:,} rows"
    if unit in FRACTIONS:
        sign = "%" if unit == "share" else "percentage points"
        return f"{100 * value if side == 0 else outward(100 * value, side, 4):.4g} {sign}"
    shown = value if side == 0 else outward(value, side, 5)
    return f"{shown:,.0f}" if 1e5 <= abs(shown) < 1e15 else f"{shown:.5g}"


def _charge(record: dict[str, Any]) -> str:
    return f" (charged {record['charged']:g})" if record["charged"] else ""


def verdict(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Compare two records of single numbers: their difference, its interval, and whether the bars settle the sign."""
    comparison: dict[str, Any] = {"first": first["question"], "second": second["question"], "settled": False}
    if first.get("value") is None or second.get("value") is None or first["unit"] != second["unit"]:
        comparison["words"] = "These two cannot be compared: both must be single known numbers in one unit."
        return comparison
    gap = first["value"] - second["value"]
    unit = "points" if first["unit"] == "share" else first["unit"]
    comparison |= {"difference": plain_number(gap), "unit": unit}
    if first["low"] is None or second["low"] is None:
        comparison["words"] = f"The difference is about {_in_words(gap, unit)}, without a bar: nothing is settled."
        return comparison
    reach = first["bar"] + second["bar"]
    low, high = outward(first["low"] - second["high"], -1, 7), outward(first["high"] - second["low"], 1, 7)
    comparison |= {"low": low, "high": high, "settled": low > 0 or high < 0}
    if comparison["settled"]:
        which, least = ("larger", low) if low > 0 else ("smaller", -high)
        comparison["words"] = (
            f"The first is certainly {which} than the second, by at least {_in_words(least, unit, -1)}: the "
            f"difference, {_in_words(gap, unit)}, exceeds both bars together."
        )
    else:
        comparison["words"] = (
            f"Not settled: the difference, {_in_words(gap, unit)}, is within both bars together "
            f"({_in_words(reach, unit, 1)}). Do not report it as a finding. difference(a, b) as a question may have a "
            "narrower bar."
        )
    return comparison
