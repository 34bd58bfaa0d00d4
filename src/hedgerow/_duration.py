"""Estimate the time of a computation from public sizes before anything is charged, and refuse it if it would take days.

An estimate is a number of elementary steps, which follows from public sizes, times the seconds of such a step on a fast
core. It is therefore too short rather than too long: a computation is refused only if it would take longer than the
limit on any machine. Times that depend on the rows of a table whose n is private are not estimated.
"""

from __future__ import annotations

import math
import os

from hedgerow.errors import InvalidInput, TooLarge

# Seconds per item on a fast core, a third of what was measured on a slow one
ENTRY = 1e-9  # per entry of the rows that one step of a solver reads
MODEL = 1e-5  # per cell of the model's junction tree, over all fits of an opening
PAIR = 3e-5  # per pair of attributes, which an opening counts and compares
CUT = 1e-5  # for each bin of a drafted column: its cut is chosen among many
COLUMN = 1e-3  # per column that is drafted

HOURS = 24.0  # default limit
VARIABLE = "HEDGEROW_MOST_HOURS"  # environment variable that sets another limit


def most_hours() -> float:
    """Return the limit that applies, in hours."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return HOURS
    try:
        hours = float(given)
    except ValueError:
        hours = math.nan
    if not hours > 0:
        raise InvalidInput(f"{VARIABLE} must be a number of hours above 0. Found {given!r}. Set 24, for example.")
    return hours


def require(what: str, seconds: float, way_out: str) -> None:
    """Refuse a computation whose estimated time exceeds the limit."""
    hours = most_hours()
    if seconds > 3600 * hours:
        raise TooLarge(
            f"{what} must take at most {hours:g} hours on a fast core. Found about {format_duration(seconds)}. "
            f"{way_out}, or set {VARIABLE} to more hours."
        )


def format_duration(seconds: float) -> str:
    """Format a time for a message."""
    for size, unit in ((31_557_600, "years"), (86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            many = seconds / size
            return f"{many:,.0f} {unit}" if many < 1e6 else f"10^{math.floor(math.log10(many))} {unit}"
    return f"{max(1, round(seconds))} s"
