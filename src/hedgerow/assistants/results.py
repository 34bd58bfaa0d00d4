"""Answers as short records and sentences: the value, the interval that contains the truth, and what that settles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hedgerow.answer import Answer
from hedgerow.assistants.desk import AssistantLimits
from hedgerow.assistants.quoting import label_words, safe_text, visible_text
from hedgerow.query.bound import Bound
from hedgerow.query.counts import BoundMarginal, Query
from hedgerow.query.linear import Linear
from hedgerow.query.ratios import BoundMean, Share

LONGEST_LABEL, LONGEST_NAME = 200, 1_000  # characters of a label and of a column's name, as data
ECHOED = 200  # characters of a question that a text repeats
UNITS = {"share": "as a fraction", "rows": "in rows", "value": "in the units of the values"}


def unit_of(query: Query, bound: Bound[Any], scale: str) -> str:
    """Return the unit of an answer: a share, a number of rows, or the units of the values."""
    if getattr(bound, "in_rows", False):
        return "rows"
    if isinstance(query, Share):
        return "share"
    if not bound.is_fraction:
        return "value"
    return "rows" if scale == "rows" else "share"


def ends_of(bound: Bound[Any], unit: str) -> tuple[float, float]:
    """Return the least and the greatest value that the truth can have, whatever the table is."""
    if isinstance(bound, BoundMean):
        return bound.low, bound.high
    is_count = isinstance(bound, BoundMarginal) or (isinstance(bound, Linear) and bound.is_count)
    return (0.0, 1.0 if unit == "share" else math.inf) if is_count else (-math.inf, math.inf)


def answer_record(
    answer: Answer, unit: str, bound: Bound[Any], limits: AssistantLimits, given: Any = None
) -> dict[str, Any]:
    """Return an answer as data: one number with its interval, or a table of them. ``given`` is the question as it came."""
    asked = safe_text(given if isinstance(given, str) else repr(answer.query))
    record: dict[str, Any] = {"question": asked, "unit": unit, "charged": plain_number(answer.cost)}
    ends = ends_of(bound, unit)
    if np.ndim(answer.value) == 0:
        return record | number_record(answer.value, answer.error, answer.typical, ends) | _resolution(answer)
    values = np.ravel(answer.value)
    errors, typical = _each(answer.error, values), _each(answer.typical, values)
    if answer.query.is_convex:
        bound_of_risk = None if answer.error is None else plain_number(float(np.max(answer.error)))
        return record | {"parameters": [plain_number(v) for v in values[: limits.cells]], "excess_risk": bound_of_risk}
    names = [name for name, _ in answer.labels]
    shape = np.shape(answer.value)
    cells = []
    for at in range(min(values.size, limits.cells)):
        place = np.unravel_index(at, shape)
        labels = [plain_label(answer.labels[axis][1][int(k)]) for axis, k in enumerate(place)] if names else []
        cells.append({"labels": labels, **number_record(values[at], errors[at], typical[at], ends)})
    record |= {
        "axes": [plain_name(name) for name in names],
        "cells": cells,
        "cells_left_out": int(values.size - len(cells)),
    }
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
    part = float(np.max(answer.resolution))
    return {"bar_from_bins": plain_number(part)} if part else {}


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
    lines = [f"{head}, {UNITS[record['unit']]}{_charge(record)}:"]
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
    value = _in_words(record["value"], unit)
    if record["low"] is None:
        return f"about {value}, without a bar: a hint, not a finding"
    ends = f"certainly between {_in_words(record['low'], unit, -1)} and {_in_words(record['high'], unit, 1)}"
    may_be_0 = "; may be 0" if record["bar"] and record["low"] <= 0 <= record["high"] else ""
    return f"{value} ± {_in_words(record['bar'], unit, 1)}, {ends}{may_be_0}"


def _in_words(value: float, unit: str, side: int = 0) -> str:
    """Return a number in its unit. An end of an interval is rounded outward."""
    if unit == "rows":
        whole = round(value) if side == 0 else math.floor(value) if side < 0 else math.ceil(value)
        return f"{whole:,} rows"
    if unit == "share":
        return f"{100 * value:.4g} %" if side == 0 else f"{outward(100 * value, side, 4):.4g} %"
    return f"{value:.5g}" if side == 0 else f"{outward(value, side, 5):.5g}"


def _charge(record: dict[str, Any]) -> str:
    return f" (charged {record['charged']:g})" if record["charged"] else ""


def verdict(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return the comparison of two records of single numbers: the difference, its interval, and what the bars settle."""
    comparison: dict[str, Any] = {"first": first["question"], "second": second["question"], "settled": False}
    if first.get("value") is None or second.get("value") is None or first["unit"] != second["unit"]:
        comparison["words"] = "These two cannot be compared: both must be single known numbers in one unit."
        return comparison
    gap = first["value"] - second["value"]
    comparison["difference"] = plain_number(gap)
    if first["low"] is None or second["low"] is None:
        comparison["words"] = f"The difference is about {gap:.4g}, without a bar: nothing is settled."
        return comparison
    reach = first["bar"] + second["bar"]
    low, high = outward(first["low"] - second["high"], -1, 7), outward(first["high"] - second["low"], 1, 7)
    comparison |= {"low": low, "high": high, "settled": low > 0 or high < 0}
    if comparison["settled"]:
        which, least = ("larger", low) if low > 0 else ("smaller", -high)
        comparison["words"] = (
            f"The first is certainly {which} than the second, by at least {outward(least, -1, 4):.4g}: the difference "
            f"{gap:.4g} exceeds both bars together."
        )
    else:
        comparison["words"] = (
            f"Not settled: the difference {gap:.4g} is within both bars together ({reach:.3g}). Do not report it as a "
            "finding. difference(a, b) as a question may have a narrower bar."
        )
    return comparison
