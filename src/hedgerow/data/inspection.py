"""What of a table its universe does not say: for the owner's eyes, since it tells of rows (``bench.unsafe_inspect``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hedgerow.data.batches import Source
from hedgerow.data.coding import Coder, date_in, meaning
from hedgerow.data.tally import counted
from hedgerow.questions.attributes import MISSING, OTHER, Attribute, Categories, Flag, Integers, Range
from hedgerow.questions.dates import Dates


@dataclass
class Inspection:
    """Of one column: how many rows are missing, outside the declared range, or like nothing that is declared."""

    rows: int = 0
    missing: int = 0
    clamped: int = 0
    unmatched: int = 0
    examples: Counter[str] = field(default_factory=Counter)


def inspected(source: Source, positions: list[int], attributes: list[Attribute]) -> list[Inspection]:
    """Each column, value by value, by the rule that codes it."""
    found = [Inspection() for _ in positions]
    judges = [_judge(attribute) for attribute in attributes]
    for batch in source.batches(positions):
        for inspection, judge, column in zip(found, judges, batch, strict=True):
            for value, times in counted(column):
                inspection.rows += times
                verdict = judge(value)
                if verdict is not None:
                    setattr(inspection, verdict, getattr(inspection, verdict) + times)
                if verdict in ("clamped", "unmatched"):
                    inspection.examples[str(meaning(value)[0])] += times
    return found


def _judge(attribute: Attribute) -> Callable[[Any], str | None]:
    """Whether a value is missing, clamped or unmatched: by the same attribute with an extra cell for each."""
    telling = _telling(attribute)
    coder = Coder(telling)

    def judge(value: Any) -> str | None:
        cell = coder.cell(value)
        if cell == telling.missing_cell:
            return "missing"
        if cell != telling.other_cell:
            return None
        text, number = meaning(value)
        within = date_in(text or "") if isinstance(attribute, Dates) else number
        return "clamped" if isinstance(attribute, Integers | Range | Dates) and within is not None else "unmatched"

    return judge


def _telling(attribute: Attribute) -> Attribute:
    extras: dict[str, Any] = {"other": True, "missing": True}
    match attribute:
        case Categories():
            labels = [label for label in attribute.listed if label is not None and label not in (OTHER, MISSING)]
            rules: dict[str, Any] = {"spaces": attribute.spaces, "case": attribute.case}
            return Categories(labels or ["\0"], **rules, **extras)
        case Flag():
            return Flag(attribute.true, attribute.false, **extras)
        case Integers():
            return Integers(attribute.low, attribute.high, **extras)
        case Dates() if attribute.by is None:
            return Dates(edges=attribute.edges, **extras)
        case Dates():
            by: Any = attribute.by
            return Dates(attribute.edges[0], attribute.edges[-1], by, **extras)
        case Range():
            return Range(edges=attribute.edges, **extras)
    raise TypeError(type(attribute).__name__)
