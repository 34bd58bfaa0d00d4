"""The demo's story of an association: do people who pay more, or feel better, see the doctor less?

All of it comes from the session that is open already, for free. The picture is SVG, without a plotting library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from hedgerow.answer import Answer
from hedgerow.data.source import DataSource
from hedgerow.query.counts import count
from hedgerow.query.ratios import share
from hedgerow.session import Session
from hedgerow.unsafe import unsafe_answer

GROUPS = (
    *(("coinsurance", value, f"pays {value} %") for value in (0, 25, 50, 95)),
    *(("health", value, f"{value} health") for value in ("excellent", "good", "fair", "poor")),
)
SHOWN = 3  # associations that are named
WIDTH, ROW, LEFT, RIGHT, TOP = 700, 34, 170, 670, 64
STYLE = (
    "text{font:13px sans-serif;fill:#222}.title{font-size:16px}.bar{stroke:#2ca02c;stroke-width:3}.grid{stroke:#ddd}"
)


@dataclass(frozen=True)
class GroupShare:
    """The share of a group, with its guaranteed interval and the truth."""

    name: str
    answer: Answer
    truth: float

    @property
    def interval(self) -> tuple[float, float]:
        """The guaranteed interval, within [0, 1]."""
        low, high = self.answer.interval or (0.0, 1.0)
        return max(0.0, float(low)), min(1.0, float(high))


def group_shares(session: Session, data: DataSource, none: set[str]) -> list[GroupShare]:
    """Ask which share of each group sees no doctor; ``none`` is the bin of no visit."""
    found = []
    for column, value, name in GROUPS:
        question = share(count(visits=none), where=count({column: value}))
        found.append(GroupShare(name, session.ask(question), float(unsafe_answer(data, question))))
    return found


def story(session: Session, shares: Sequence[GroupShare]) -> str:
    """Tell the association in sentences: what the bars prove, and the strongest associations of the table."""
    by_name = {each.name: each.answer for each in shares}
    free, most = by_name["pays 0 %"], by_name["pays 95 %"]
    poor, excellent = by_name["poor health"], by_name["excellent health"]
    lines = [
        f"No doctor's visit in a year: {float(free):.1%} of those whose care is free, {float(most):.1%} of those who "
        f"pay 95 %; {float(poor):.1%} in poor health, {float(excellent):.1%} in excellent health.",
        f"The guaranteed bars prove {_proof('those who pay more stay away more often', most, free)}, and "
        f"{_proof('those in excellent health do so more than those in poor health', excellent, poor)}.",
    ]
    strongest = list(session.associations())[:SHOWN]
    named = "; ".join(f"{' and '.join(each.columns)} ({each.cramers_v:.2f})" for each in strongest)
    return "\n".join([*lines, f"Strongest associations by Cramér's V, free too: {named}.".replace("_", " ")])


def _proof(claim: str, more: Answer, less: Answer) -> str:
    return f"that {claim}" if more.certainly_above(less) else f"nothing yet about whether {claim}"


def draw_shares(shares: Sequence[GroupShare], title: str) -> str:
    """Return the picture: a dot for each answer, a line for its guaranteed interval, and a cross for the truth."""
    height = TOP + ROW * len(shares) + 50
    reach = max(each.interval[1] for each in shares) * 1.05
    bottom = TOP + ROW * len(shares)

    def x(value: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * value / reach, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text class="title" x="{WIDTH / 2}" y="26" text-anchor="middle">{escape(title)}</text>',
    ]
    for tick in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        if tick <= reach:
            parts.append(f'<line class="grid" x1="{x(tick)}" y1="{TOP - 14}" x2="{x(tick)}" y2="{bottom}"/>')
            parts.append(f'<text x="{x(tick)}" y="{bottom + 18}" text-anchor="middle">{tick:.0%}</text>')
    for i, each in enumerate(shares):
        y, (low, high) = TOP + ROW * i, each.interval
        at, true = x(float(each.answer)), x(each.truth)
        parts += [
            f'<text x="{LEFT - 12}" y="{y + 5}" text-anchor="end">{escape(each.name)}</text>',
            f'<line class="bar" x1="{x(low)}" y1="{y}" x2="{x(high)}" y2="{y}"/>',
            f'<circle cx="{at}" cy="{y}" r="5" fill="#2ca02c"/>',
            f'<path d="M{true - 5} {y - 5}l10 10m0 -10l-10 10" stroke="#d62728" stroke-width="2"/>',
        ]
    legend = "dot: private answer, line: guaranteed interval, cross: the truth (this table is public)"
    parts.append(f'<text x="{WIDTH / 2}" y="{height - 10}" text-anchor="middle">{legend}</text></svg>')
    return "\n".join(parts) + "\n"


def save_picture(folder: Path, shares: Sequence[GroupShare]) -> Path:
    """Write the picture into a folder, and return its path."""
    target = folder / "visits-by-group.svg"
    target.write_text(draw_shares(shares, "share without a doctor's visit in a year"), "utf-8")
    return target
