"""Draw a line chart on logarithmic axes as SVG, so that the demo needs no plotting library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 700, 420
LEFT, RIGHT, TOP, BOTTOM = 76, 684, 40, 364  # the frame of the axes
STYLE = "text{font:13px sans-serif;fill:#222}.title{font-size:16px}.grid{stroke:#ddd}.line{fill:none;stroke-width:2}"


@dataclass(frozen=True)
class ChartLine:
    """A named line through points of positive coordinates."""

    name: str
    color: str
    dashed: bool
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from ``low`` to ``high``, drawn between two pixels."""

    low: float
    high: float
    first: float
    last: float

    @classmethod
    def around(cls, values: Sequence[float], first: float, last: float) -> Axis:
        """Return an axis that leaves a margin of a tenth of a decade at both ends."""
        return cls(min(values) / 10**0.1, max(values) * 10**0.1, first, last)

    def pixel(self, value: float) -> float:
        """Return the pixel of a value."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.first + share * (self.last - self.first), 1)

    def ticks(self) -> Iterator[tuple[float, bool]]:
        """Yield 1, 2, …, 9 times each power of ten on the axis, with True for the powers of ten themselves."""
        for power in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))):
            for digit in range(1, 10):
                if self.low <= digit * 10.0**power <= self.high:
                    yield digit * 10.0**power, digit == 1


def line_chart(lines: Sequence[ChartLine], *, title: str, x_label: str, y_label: str) -> str:
    """Return the chart as the text of an SVG file.

    Parameters
    ----------
    lines : the lines to draw; every coordinate must be positive.
    title, x_label, y_label : the words of the chart.
    """
    across = Axis.around([value for line in lines for value in line.x], LEFT, RIGHT)
    up = Axis.around([value for line in lines for value in line.y], BOTTOM, TOP)
    middle = (TOP + BOTTOM) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_grid(across, up),
        f'<rect x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}" fill="none" stroke="#222"/>',
        *(part for i, line in enumerate(lines) for part in _draw_line(line, across, up, TOP + 22 + 20 * i)),
        f'<text class="title" x="{(LEFT + RIGHT) / 2}" y="26" text-anchor="middle">{escape(title)}</text>',
        f'<text x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text x="20" y="{middle}" text-anchor="middle" transform="rotate(-90 20 {middle})">{escape(y_label)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    """Yield the grid lines and the labels at powers of ten."""
    for value, whole in across.ticks():
        x = across.pixel(value)
        yield f'<line class="grid" x1="{x}" y1="{TOP}" x2="{x}" y2="{BOTTOM}"/>'
        if whole:
            yield f'<text x="{x}" y="{BOTTOM + 20}" text-anchor="middle">{value:,.0f}</text>'
    for value, whole in up.ticks():
        y = up.pixel(value)
        yield f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}"/>'
        if whole:
            yield f'<text x="{LEFT - 8}" y="{y + 5}" text-anchor="end">{value:g}</text>'


def _draw_line(line: ChartLine, across: Axis, up: Axis, legend: float) -> Iterator[str]:
    """Yield the line, and its entry in the legend at the given height."""
    look = f'class="line" stroke="{line.color}"' + (' stroke-dasharray="7 4"' if line.dashed else "")
    points = " ".join(f"{across.pixel(x)},{up.pixel(y)}" for x, y in zip(line.x, line.y, strict=True))
    yield f'<polyline {look} points="{points}"/>'
    yield f'<line {look} x1="{LEFT + 14}" y1="{legend - 4}" x2="{LEFT + 44}" y2="{legend - 4}"/>'
    yield f'<text x="{LEFT + 54}" y="{legend}">{escape(line.name)}</text>'
