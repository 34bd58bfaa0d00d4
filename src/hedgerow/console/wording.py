"""Numbers and sentences: how an answer is said. Digits follow the error, so that none is shown that means nothing."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from typing import Any

from hedgerow.display.titles import UNINFORMATIVE, label

LONGEST = 60  # characters of a label
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
SHARES = ("share", "rate")
DIRECTIONS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")


def visible(text: str) -> str:
    """Return a text with a mark in place of each character that would change the direction of the texts beside it."""
    return text.translate(DIRECTIONS)


def short(value: Any) -> str:
    """Return the label of a cell, or a name, cut to a length that fits a picture."""
    text = visible(" ".join(label(value).split())) or "(empty)"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def digits(error: float | None, least: int = 0, most: int = 6) -> int:
    """Return how many decimals a number with this error deserves: those that are above a third of the error."""
    if error is None or not math.isfinite(error) or error <= 0:
        return max(2, least)
    return max(least, min(most, -math.floor(math.log10(error / 3))))


def number(value: float | None, measure: str, error: float | None = None) -> str:
    """Write a number of a measure: shares in percent, rows as whole numbers."""
    if value is None or math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if measure in SHARES or measure == "points":
        places = digits(None if error is None else 100 * error, 1, 3)
        return f"{_with_sign(100 * value, places)} {'points' if measure == 'points' else '%'}"
    if measure == "rows":
        return _with_sign(value, 0)
    return _with_sign(value, digits(error, 0 if abs(value) >= 100 else 1, 4))


def _with_sign(value: float, places: int) -> str:
    text = f"{value:,.{places}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) != 0 else f"{0:.{places}f}"


def sentence(
    value: float, low: float | None, high: float | None, typical: float | None, measure: str, error: float | None
) -> str:
    """Say one number with both of its errors. ``error`` decides how many digits are shown."""
    if low is None or high is None or not (math.isfinite(low) or math.isfinite(high)):
        said = f"About {number(value, measure, error)}, {UNINFORMATIVE}: it has no guaranteed error"
    elif not math.isfinite(high):
        said = f"At least {number(low, measure, error)}"
    elif not math.isfinite(low):
        said = f"At most {number(high, measure, error)}"
    else:
        said = f"Between {number(low, measure, error)} and {number(high, measure, error)}"
    if typical is None or not math.isfinite(typical):
        return f"{said}."
    shown = number(typical, "points" if measure in SHARES else measure, typical)
    return f"{said}, typically within {shown}."


def is_wide(value: float, low: float | None, high: float | None, measure: str) -> bool:
    """Return True if an interval is too wide to use: its half exceeds half of the value, and 2.5 percentage points."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return True
    half = (high - low) / 2
    return half > 0.5 * abs(value) and (measure not in SHARES or half > 0.025)


def amount(cost: float, currency: str) -> str:
    """Write a cost in its currency."""
    return f"{cost:.3g} {'ρ' if currency == 'rho' else 'ε'}"


def moment(seconds: float) -> str:
    """Write a moment in UTC."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M")


def small(value: float) -> str:
    """Write a parameter such as δ without leading zeros in its exponent."""
    return f"{value:g}".replace("e-0", "e-")


def count(number: int) -> str:
    """Write a number of combinations: in full, or as a power of ten if it is very large."""
    if number < 10**9:
        return f"{number:,}"
    power = len(str(number)) - 1
    return f"about {number / 10**power:.1f} × 10{str(power).translate(RAISED)}"


def size(number: int) -> str:
    """Write a number of bytes."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return f"{number} bytes"


def percent(share: float) -> str:
    """Write a share in percent with three digits."""
    return f"{100 * share:.3g} %"


FILTERS: Mapping[str, Callable[..., str]] = {
    "short": short, "visible": visible, "moment": moment, "percent": percent, "small": small, "cell": lambda value: visible(label(value)), "count": count,
}  # fmt: skip
