"""Bars and whiskers: an answer as lines of a picture, in percent of its width.

A thin whisker is the guaranteed error and a thick one the typical error. Pictures are tables: each line has its label,
its bar as an SVG, and its number, so that they read as well without seeing them and fit a phone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow._types import Array
from hedgerow.answer import Answer
from hedgerow.console import wording

HEADROOM = 1.04  # the width of a picture, in lengths of its longest bar
LONGEST_WHISKER = 3.0  # a whisker beyond so many times the largest value does not widen the picture


@dataclass(frozen=True)
class Bar:
    """One cell of an answer. Positions are in percent of the picture's width."""

    label: str
    cell: int
    value: float
    shown: str
    sentence: str
    is_wide: bool
    start: float
    length: float
    whisker: tuple[float, float] | None
    typical: tuple[float, float] | None
    is_cut: bool = False
    href: str = ""
    is_chosen: bool = False


@dataclass(frozen=True)
class Panel:
    """Bars that share a caption: the cells of one column, for one cell of each other column."""

    caption: str
    bars: Sequence[Bar] = field(default_factory=list)


@dataclass(frozen=True)
class Ends:
    """The values of an answer with their guaranteed and typical ends, cut where no truth can be."""

    value: Array
    low: Array
    high: Array
    typical: Array

    @classmethod
    def of(cls, answer: Answer, measure: str) -> Ends:
        """Return the ends of an answer, NaN where nothing bounds it."""
        value = np.asarray(answer.value, float)
        interval = answer.interval
        unknown = np.full(value.shape, np.nan)
        low, high = (
            (unknown, unknown)
            if interval is None
            else (np.broadcast_to(np.asarray(e, float), value.shape) for e in interval)
        )
        if answer.error is not None and np.ndim(answer.error):  # an infinite error is that of an uninformative cell
            low, high = (np.where(np.isfinite(answer.error), end, np.nan) for end in (low, high))
        if measure in ("share", "rows", "rate"):
            low = np.maximum(low, 0.0)
        if measure in ("share", "rate"):
            high = np.minimum(high, 1.0)
        typical = unknown if answer.typical is None else np.broadcast_to(np.asarray(answer.typical, float), value.shape)
        return cls(value, np.minimum(low, value), np.maximum(high, value), typical)


def panels(
    answer: Answer,
    measure: str,
    link: Callable[[int], str] = lambda _: "",
    chosen: Sequence[int] = (),
    whole: str = "all rows",
) -> list[Panel]:
    """Return an answer as panels of bars: the last axis along the bars, one panel for each cell of the others."""
    ends = Ends.of(answer, measure)
    axes = [list(labels) for _, labels in answer.labels]
    frame = Frame(measure, *_extent(ends), _median_error(ends))
    if not axes:
        return [Panel("", [_bar(whole, 0, ends, (), frame)])]
    found = []
    for outer in itertools.product(*(range(len(labels)) for labels in axes[:-1])):
        caption = " · ".join(
            f"{wording.short(name)} {wording.short(labels[i])}"
            for (name, _), labels, i in zip(answer.labels, axes, outer, strict=False)
        )
        lines = [
            _bar(label, k, ends, (*outer, k), frame, href=link(k), is_chosen=k in chosen)
            for k, label in enumerate(axes[-1])
        ]
        found.append(Panel(caption, lines))
    return found


@dataclass(frozen=True)
class Frame:
    """The measure of a picture, the numbers at its ends, and the error that decides how many digits are shown."""

    measure: str
    left: float
    right: float
    error: float | None

    def place(self, value: float) -> float:
        """Return the place of a number, in percent of the width."""
        share = (value - self.left) / (self.right - self.left)
        return round(100 * min(max(share, 0.0), 1.0), 3)


def _extent(ends: Ends) -> tuple[float, float]:
    """Return the numbers at the left and at the right end of the picture."""
    value = np.nan_to_num(ends.value, nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(np.max(np.abs(value), initial=0.0))
    cut = max(LONGEST_WHISKER * largest, 1e-12)
    high = float(np.max(np.minimum(np.nan_to_num(ends.high, nan=0.0, posinf=cut), cut), initial=0.0))
    low = float(np.min(np.maximum(np.nan_to_num(ends.low, nan=0.0, neginf=-cut), -cut), initial=0.0))
    right = max(high, float(value.max(initial=0.0)), 0.0)
    left = min(low, float(value.min(initial=0.0)), 0.0)
    if right == left:
        right = left + 1.0
    return left * HEADROOM, right * HEADROOM


def _median_error(ends: Ends) -> float | None:
    """Return the middle of the guaranteed errors, which decides how many digits are shown."""
    half = ((ends.high - ends.low) / 2).ravel()
    half = half[np.isfinite(half)]
    return float(np.median(half)) if half.size else None


def _bar(
    name: Any, cell: int, ends: Ends, at: tuple[int, ...], frame: Frame, *, href: str = "", is_chosen: bool = False
) -> Bar:
    """Return one bar of a picture: its place, its whiskers, its words and its link."""
    value, low, high, typical = (float(part[at]) for part in (ends.value, ends.low, ends.high, ends.typical))
    is_bounded, is_known = not (math.isnan(low) or math.isnan(high)), math.isfinite(value)
    least, most = (low, high) if is_bounded else (None, None)
    typical_error = min(typical, high - value, value - low) if is_bounded else typical
    spread = (
        (frame.place(value - typical_error), frame.place(value + typical_error))
        if is_known and math.isfinite(typical_error)
        else None
    )
    zero, end = frame.place(0.0), frame.place(value if is_known else 0.0)
    return Bar(
        wording.short(name), cell, value, wording.number(value, frame.measure, frame.error),
        wording.sentence(value, least, most, typical, frame.measure, frame.error),
        wording.is_wide(value, least, most, frame.measure), min(zero, end), abs(end - zero),
        (frame.place(low), frame.place(high)) if is_bounded and is_known else None,
        spread, is_bounded and (high > frame.right or low < frame.left), href, is_chosen,
    )  # fmt: skip
