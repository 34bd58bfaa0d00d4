"""Pictures of answers, for notebooks and papers: sorted bars with a whisker for each error, drawn with matplotlib.

A thin line is the guaranteed error, and a thick one the typical error. Both are cut where no truth can be: a share of
rows is between 0 and 1. Many categories are shown as the most frequent ones and one bar for all others. Many ordered
cells are shown as a line in a band, and a large table of two attributes as shades.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow._extras import extra
from hedgerow._types import Array
from hedgerow.display import titles

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#F0E442")
"""Okabe and Ito's colors, which color-blind readers can tell apart."""
MOST_ORDERED = 40  # more ordered cells are drawn as a line
MOST_BARS = 72  # a larger table of two attributes is drawn as shades
MOST_TICKS = 25  # shaded tables name at most this many cells of an axis
PANEL_ORDERED = 12  # the same, in a small panel
LONG = 8  # a longer label is written beside a horizontal bar
LONGEST = 34  # a longer label is shortened
WIDTH, GUARANTEED, TYPICAL = 7.0, "thin line: guaranteed error", "thick line: typical error"
ORDERED = re.compile(
    r"[\[(]|\d{4}(-\d\d|-Q[1-4]|$)|(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day$"
)  # bins, periods, weekdays
EXTRAS = ("(missing)", "(other)")  # labels of cells without an order


@dataclass(frozen=True)
class Drawing:
    """Values with the ends of their bars, one row per cell and one column per group, ready to be drawn.

    ``low`` and ``high`` are the ends of the guaranteed error, ``typical`` is half a width. NaN stands for no bar.
    """

    values: Array
    low: Array
    high: Array
    typical: Array

    @property
    def legend(self) -> str:
        """The meaning of the whiskers, as far as there are any."""
        return self._errors(GUARANTEED, TYPICAL)

    @property
    def legend_of_bands(self) -> str:
        """The meaning of the bands around a line."""
        return self._errors("light band: guaranteed error", "dark band: typical error")

    def _errors(self, guaranteed: str, typical: str) -> str:
        """Return the names of the errors that are known."""
        known = ((guaranteed, self.high - self.low), (typical, self.typical))
        return " · ".join(said for said, width in known if np.isfinite(width).any()) or "no error is known"

    def take(self, order: Any) -> Drawing:
        """Return some of the rows, in this order."""
        return Drawing(self.values[order], self.low[order], self.high[order], self.typical[order])


def draw_answer(answer: Any, axes: Any, top: int | None) -> Any:
    """Draw an answer with values on at most two axes, and return the axes of the picture."""
    axis_labels = [list(labels) for _, labels in answer.labels]
    in_rows = _is_in_rows(answer)
    quantity = titles.unit(answer.query, in_rows)
    drawing = _drawing_of(answer, quantity)
    if len(axis_labels) == 2:
        axes = _draw_two(answer, drawing, axis_labels, axes, quantity)
    elif axis_labels:
        axes = _draw_one(answer, drawing, axis_labels[0], axes, quantity, top)
    else:
        axes = _new(axes, 1.7)
        _bars(axes, np.zeros(1), drawing, 0.5, COLORS[0], horizontal=True, is_amount=_is_amount(quantity))
        axes.set_yticks([])
        axes.set_ylim(-0.6, 0.6)
        _name_values(axes, quantity, drawing.legend, horizontal=True)
    title = "\n".join(textwrap.wrap(titles.sentence(answer.query), 68)[:3])
    axes.set_title(_literal(title), fontsize=10, loc="left")
    return axes


def draw_summary(tables: Sequence[Any], associations: Sequence[tuple[str, float]], across: int = 3) -> Any:
    """Draw a panel for each table of one attribute, and one for associations, and return the figure."""
    plt = extra("matplotlib.pyplot")
    panels = len(tables) + bool(associations)
    down = -(-max(panels, 1) // across)
    figure, grid = plt.subplots(down, across, figsize=(4.2 * across, 2.9 * down), layout="constrained", squeeze=False)
    for axes, table in zip(grid.flat, tables, strict=False):
        quantity = titles.unit(table.query, _is_in_rows(table))
        _draw_one(table, _drawing_of(table, quantity), list(table.labels[0][1]), axes, quantity, 8, PANEL_ORDERED)
        axes.set_xlabel("")
        axes.set_ylabel("")
        _thin_ticks(axes)
        axes.set_title(_literal(table.labels[0][0]), fontsize=10, loc="left")
    if associations:
        axes, names = grid.flat[len(tables)], [name for name, _ in associations]
        strengths = np.array([strength for _, strength in associations])
        places = np.arange(len(names), dtype=float)
        axes.barh(places, strengths, color=COLORS[1], height=0.7)
        axes.set_yticks(places, [_literal(_short(name)) for name in names], fontsize=7)
        axes.invert_yaxis()
        axes.set_title("strongest associations (Cramér's V)", fontsize=10, loc="left")
        _tidy(axes)
    for axes in list(grid.flat)[panels:]:
        axes.set_axis_off()
    figure.supxlabel(f"number of rows · {GUARANTEED} · {TYPICAL}", fontsize=8)
    return figure


def draw_sizes(rows: int, error: float, typical: float | None, levels: Sequence[tuple[float, str]], axes: Any) -> Any:
    """Draw errors against numbers of rows, scaled from those at ``rows``, and return the axes."""
    ticker, axes = extra("matplotlib.ticker"), _new(axes, 4.2)
    n = rows * np.logspace(-1.5, 1.5, 61)
    axes.plot(n, np.minimum(1.0, error * rows / n), color=COLORS[0], label="guaranteed error, of all answers together")
    axes.plot([rows], [error], "o", color=COLORS[0])
    if typical is not None and typical > 0:
        axes.plot(n, np.minimum(1.0, typical * rows / n), color=COLORS[2], label="typical error")
        axes.plot([rows], [typical], "o", color=COLORS[2])
    axes.axvline(rows, color="#222222", linewidth=0.8, linestyle=":")
    for most, _ in levels:
        axes.axhline(most, color=COLORS[6], linewidth=0.8, linestyle="--")
    names = ("most questions", "large groups", "coarse questions only")
    for (most, _), name in zip(levels, names, strict=False):
        axes.annotate(
            f"large enough for {name}" if name != names[-1] else name, (n[-1], most), xytext=(0, -9), ha="right",
            textcoords="offset points", fontsize=7, color="#555555",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(n[0], n[-1])
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda found, _: f"{found:,.0f}"))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda found, _: f"{100 * found:g} %"))
    axes.set_xlabel(f"rows of the table (yours has {rows:,})")
    axes.set_ylabel("error, as a share of the rows")
    axes.set_title("Is my table large enough?", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    _tidy(axes)
    return axes


def is_ordered(labels: Sequence[Any]) -> bool:
    """Return True if labels are numbers, intervals or dates, whose order means something."""
    plain = [label for label in labels if label not in EXTRAS]
    return len(plain) > 2 and all(
        (isinstance(label, int | float | np.number) and not isinstance(label, bool))
        or (isinstance(label, str) and ORDERED.match(label) is not None)
        or hasattr(label, "isoformat")
        for label in plain
    )


def _is_in_rows(answer: Any) -> bool:
    """Return True if an answer is given as numbers of rows, as far as its values show."""
    finite = np.asarray(answer.value, float)[np.isfinite(np.asarray(answer.value, float))]
    return bool(finite.size and np.max(np.abs(finite)) > 1)


def _is_amount(quantity: str) -> bool:
    """Return True for shares and numbers of rows, which bars may show from zero."""
    return quantity.startswith(("share", "number"))


def _is_share(quantity: str) -> bool:
    """Return True for shares and for differences of shares, which are written as percentages."""
    return quantity.removeprefix("difference in ").startswith("share")


def _drawing_of(answer: Any, quantity: str) -> Drawing:
    """Return the values of an answer as rows and groups, with the ends of its bars."""
    value = np.asarray(answer.value, float)
    shape = (1, 1) if value.ndim == 0 else (value.shape[0], -1)
    value = np.where(np.isfinite(value), value, np.nan)

    def half(width: Any) -> Array:
        found = np.broadcast_to(np.nan if width is None else np.asarray(width, float), value.shape)
        return np.where(np.isfinite(found), found, np.nan)

    least = 0.0 if _is_amount(quantity) else -np.inf
    most = 1.0 if quantity.startswith("share") else np.inf
    ends = answer.interval
    low, high = (np.full(value.shape, np.nan),) * 2 if ends is None else (np.broadcast_to(e, value.shape) for e in ends)
    low, high = np.minimum(value, np.maximum(low, least)), np.maximum(value, np.minimum(high, most))
    low, high = (np.where(np.isfinite(low) & np.isfinite(high), end, np.nan) for end in (low, high))
    typical = half(answer.typical)
    typical = np.where(np.isnan(typical), np.nan, np.fmin(typical, np.maximum(value - low, high - value)))
    return Drawing(*(np.reshape(part, shape) for part in (value, low, high, typical)))


def _draw_one(
    answer: Any,
    drawing: Drawing,
    labels: list[Any],
    axes: Any,
    quantity: str,
    top: int | None,
    most: int = MOST_ORDERED,
) -> Any:
    """Draw a table of one attribute, as a line if it has more than ``most`` ordered cells."""
    ordered = is_ordered(labels)
    if ordered and len(labels) > most:
        axes = _new(axes, 3.4)
        _line(axes, drawing, labels, ticks=9 if most == MOST_ORDERED else 4)
        axes.set_xlabel(_literal(answer.labels[0][0]))
        _name_values(axes, quantity, drawing.legend_of_bands, horizontal=False)
        return axes
    texts = [titles.label(label) for label in labels]
    if not ordered:
        drawing, texts = _largest_first(drawing, texts, top, answer.query.divides_rows, quantity.startswith("share"))
    horizontal = not ordered or max(map(len, texts)) > LONG or sum(map(len, texts)) > 60
    axes = _new(axes, 1.4 + 0.24 * len(texts) if horizontal else 3.4)
    places = np.arange(len(texts), dtype=float)
    _bars(axes, places, drawing, 0.72, COLORS[0], horizontal=horizontal, is_amount=_is_amount(quantity))
    _name_cells(axes, places, texts, answer.labels[0][0], horizontal=horizontal)
    left_out = len(labels) - drawing.values.shape[0]
    some = f" · the largest {len(texts)} of {len(labels)}" if left_out and not answer.query.divides_rows else ""
    _name_values(axes, quantity, f"{drawing.legend}{some}", horizontal=horizontal)
    return axes


def _largest_first(
    drawing: Drawing, texts: list[str], top: int | None, is_additive: bool, of_one: bool
) -> tuple[Drawing, list[str]]:
    """Sort cells by value, the largest first, and put the smallest ones together: as a sum where cells may be added.

    The bar of a sum is the sum of the bars. ``of_one``: the values are shares, so that no sum exceeds 1.
    """
    order = np.argsort(-np.nan_to_num(drawing.values[:, 0], nan=-np.inf), kind="stable")
    drawing, texts = drawing.take(order), [texts[i] for i in order]
    if top is None or len(texts) <= top + 1:
        return drawing, texts
    rest = drawing.take(slice(top, None))
    kept, names = drawing.take(slice(0, top)), texts[:top]
    if not is_additive:
        return kept, names
    value = rest.values.sum(axis=0)
    low, high = value - (rest.values - rest.low).sum(axis=0), value + (rest.high - rest.values).sum(axis=0)
    typical = np.sqrt(np.square(rest.typical).sum(axis=0))
    with_rest = [
        np.vstack([part, extra_row])
        for part, extra_row in (
            (kept.values, value),
            (kept.low, np.maximum(low, 0.0)),
            (kept.high, np.minimum(high, 1.0) if of_one else high),
            (kept.typical, typical),
        )
    ]
    return Drawing(*with_rest), [*names, f"all {len(texts) - top} others"]


def _draw_two(answer: Any, drawing: Drawing, labels: list[list[Any]], axes: Any, quantity: str) -> Any:
    """Draw a table of two attributes: groups of bars, or shades where there would be too many."""
    names = [name for name, _ in answer.labels]
    if len(labels[1]) > len(COLORS) >= len(labels[0]):  # the shorter axis gets the colors
        names, labels = names[::-1], labels[::-1]
        drawing = Drawing(*(part.T for part in (drawing.values, drawing.low, drawing.high, drawing.typical)))
    if len(labels[1]) > len(COLORS) or drawing.values.size > MOST_BARS:
        return _shades(answer, drawing, labels, names, axes, quantity)
    texts, groups = [titles.label(label) for label in labels[0]], [titles.label(label) for label in labels[1]]
    if not is_ordered(labels[0]):
        order = np.argsort(-np.nansum(drawing.values, axis=1), kind="stable")
        drawing, texts = drawing.take(order), [texts[i] for i in order]
    horizontal = max(map(len, texts)) > LONG or sum(map(len, texts)) > 60
    axes = _new(axes, 1.5 + 0.14 * drawing.values.size if horizontal else 3.6)
    places, step = np.arange(len(texts), dtype=float), 0.82 / len(groups)
    for k, group in enumerate(groups):
        one = Drawing(*(part[:, k : k + 1] for part in (drawing.values, drawing.low, drawing.high, drawing.typical)))
        at = places + (k - (len(groups) - 1) / 2) * step
        _bars(
            axes, at, one, 0.92 * step, COLORS[k], horizontal=horizontal, is_amount=_is_amount(quantity),
            label=_literal(group),
        )  # fmt: skip
    _name_cells(axes, places, texts, names[0], horizontal=horizontal)
    _name_values(axes, quantity, drawing.legend, horizontal=horizontal)
    if len(groups) > 1:
        axes.legend(
            title=_literal(names[1]), frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
        )  # fmt: skip
    return axes


def _shades(answer: Any, drawing: Drawing, labels: list[list[Any]], names: list[str], axes: Any, quantity: str) -> Any:
    """Draw a large table as shades, with its widest error in words."""
    axes = _new(axes, min(9.0, 2.2 + 0.22 * min(len(labels[0]), MOST_TICKS)))
    shown = axes.imshow(drawing.values, aspect="auto", cmap="viridis")
    turned = 90 if sum(len(titles.label(label)) for label in labels[1]) > 60 else 0
    for set_ticks, of, angle in ((axes.set_yticks, labels[0], 0), (axes.set_xticks, labels[1], turned)):
        places = np.arange(0, len(of), -(-len(of) // MOST_TICKS))
        set_ticks(places, [_literal(_short(titles.label(of[i]))) for i in places], fontsize=8, rotation=angle)
    axes.set_ylabel(_literal(names[0]))
    error = np.nan if answer.error is None else float(np.max(answer.error))
    width = f"{100 * error:.2g} %" if _is_share(quantity) else f"{error:.2g}"
    said = "no guaranteed error" if not np.isfinite(error) else f"guaranteed error of each cell: at most ± {width}"
    axes.set_xlabel(f"{_literal(names[1])}\n{said}")
    percent = extra("matplotlib.ticker").PercentFormatter(1.0) if _is_share(quantity) else None
    axes.figure.colorbar(shown, ax=axes, label=quantity, format=percent)
    return axes


def _bars(
    axes: Any, places: Array, drawing: Drawing, width: float, color: str, *, horizontal: bool, is_amount: bool,
    label: str = "",
) -> None:  # fmt: skip
    """Draw one bar per row with its two whiskers, or one point if the values are no amounts."""
    values, low, high, typical = (part[:, 0] for part in (drawing.values, drawing.low, drawing.high, drawing.typical))
    if is_amount:
        draw, across = (axes.barh, "height") if horizontal else (axes.bar, "width")
        draw(places, np.nan_to_num(values), color=color, alpha=0.75, label=label or None, **{across: width})
    else:  # the length of a bar would mean nothing
        at = (values, places) if horizontal else (places, values)
        axes.plot(*at, "o", color=color, markersize=6, label=label or None, zorder=3)
    for below, above, thick, shade in (
        (values - low, high - values, 1.0, "#222222"),
        (typical, typical, 4.0, "#222222"),
    ):
        known = np.isfinite(below) & np.isfinite(above) & np.isfinite(values)
        if known.any():
            ends = np.maximum(0.0, np.array([below[known], above[known]]))
            x, y = (values[known], places[known]) if horizontal else (places[known], values[known])
            error = {"xerr" if horizontal else "yerr": ends}
            axes.errorbar(x, y, fmt="none", ecolor=shade, elinewidth=thick, alpha=0.8, **error)


def _line(axes: Any, drawing: Drawing, labels: list[Any], ticks: int) -> None:
    """Draw many ordered cells as a line in two bands, and cells without an order as points beside it."""
    extras = [i for i, label in enumerate(labels) if label in EXTRAS]
    inside = [i for i in range(len(labels)) if i not in extras]
    numbers = all(isinstance(labels[i], int | float) for i in inside)
    places = np.array([labels[i] if numbers else i for i in inside], float)
    line = drawing.take(inside)
    values, typical = line.values[:, 0], line.typical[:, 0]
    axes.fill_between(places, line.low[:, 0], line.high[:, 0], color=COLORS[0], alpha=0.18, linewidth=0)
    axes.fill_between(places, values - typical, values + typical, color=COLORS[0], alpha=0.35, linewidth=0)
    axes.plot(places, values, color=COLORS[0], linewidth=1.4, drawstyle="default")
    beside = places[-1] + (places[-1] - places[0]) * 0.06 * np.arange(1, len(extras) + 1)
    if extras:
        _bars(axes, beside, drawing.take(extras), 0.0, COLORS[0], horizontal=False, is_amount=False)
    if numbers and not extras:
        return
    if numbers:
        locator = extra("matplotlib.ticker").MaxNLocator(ticks - len(extras), integer=True, steps=[1, 2, 5, 10])
        found = [at for at in locator.tick_values(places[0], places[-1]) if places[0] <= at <= places[-1]]
        texts = [f"{at:g}" for at in found]
    else:
        some = np.unique(np.linspace(0, len(inside) - 1, ticks).round().astype(int))
        found, texts = [float(places[i]) for i in some], [titles.label(labels[inside[i]]) for i in some]
    texts += [titles.label(labels[i]) for i in extras]
    axes.set_xticks([*found, *beside], list(map(_literal, texts)), fontsize=8, rotation=30, ha="right")


def _new(axes: Any, height: float) -> Any:
    """Return the given axes, or new ones of this height in inches."""
    if axes is not None:
        return axes
    _, made = extra("matplotlib.pyplot").subplots(figsize=(WIDTH, max(1.7, height)), layout="constrained")
    return made


def _name_cells(axes: Any, places: Array, texts: list[str], name: str, *, horizontal: bool) -> None:
    """Write the labels of the cells, the first at the top or at the left, and the name of their attribute."""
    shown = [_literal(text) for text in _short_names(texts)]
    size = 9 if len(texts) <= 30 else 7
    if horizontal:
        axes.set_yticks(places, shown, fontsize=size)
        axes.set_ylim(len(texts) - 0.4, -0.6)
        axes.set_ylabel(_literal(name))
    else:
        axes.set_xticks(places, shown, fontsize=size)
        axes.set_xlabel(_literal(name))


def _name_values(axes: Any, quantity: str, legend: str, *, horizontal: bool) -> None:
    """Write what the values measure, and the meaning of the whiskers."""
    ticker = extra("matplotlib.ticker")
    axis = axes.xaxis if horizontal else axes.yaxis
    if _is_share(quantity):
        axis.set_major_formatter(ticker.PercentFormatter(1.0))
    elif isinstance(axis.get_major_formatter(), ticker.ScalarFormatter):
        axis.set_major_formatter(ticker.FuncFormatter(_number))
    if horizontal:
        axes.set_xlabel(f"{_literal(quantity)}\n{legend}", fontsize=9)
    else:
        axes.set_ylabel(_literal(quantity), fontsize=9)
        axes.set_xlabel(f"{axes.get_xlabel()}\n{legend}", fontsize=9)
    _tidy(axes)


def _thin_ticks(axes: Any) -> None:
    """Leave room between the ticks below a small panel."""
    ticker, labels = extra("matplotlib.ticker"), axes.get_xticklabels()
    if not isinstance(axes.xaxis.get_major_locator(), ticker.FixedLocator):
        axes.xaxis.set_major_locator(ticker.MaxNLocator(4))
    elif len(labels) > 10:
        step = -(-len(labels) // 8)
        axes.set_xticks(axes.get_xticks()[::step], [one.get_text() for one in labels[::step]])


def _tidy(axes: Any) -> None:
    """Leave out the frame at the top and at the right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def _short(text: str) -> str:
    """Shorten a label that is too long for a picture in its middle: names that begin alike often end differently."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half].rstrip()}…{text[1 - half :].lstrip()}"


def _short_names(texts: Sequence[str]) -> list[str]:
    """Shorten labels that are too long, and show where those differ that would look alike."""
    short = [_short(text) for text in texts]
    for name in {name for name in short if short.count(name) > 1}:
        alike = [i for i, found in enumerate(short) if found == name]
        places = enumerate(zip(*(texts[i] for i in alike), strict=False))
        begin = max(0, next((at for at, letters in places if len(set(letters)) > 1), 0) - 8)
        for i in alike:
            short[i] = f"…{texts[i][begin : begin + LONGEST - 2].strip()}…"
    return short


def _number(value: float, _: int = 0) -> str:
    """Write a number below an axis, without a power of ten beside it."""
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def _literal(words: object) -> str:
    """Escape dollar signs, between which matplotlib would read mathematics."""
    return str(words).replace("$", r"\$")
