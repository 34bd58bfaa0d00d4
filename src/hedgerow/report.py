"""Document of what a session spent and answered so far, as HTML for people or JSON for programs. Public values only."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow._checks import require_folder
from hedgerow._json import readable
from hedgerow.answer import Answer
from hedgerow.display.report_page import report_body, report_page
from hedgerow.display.titles import title
from hedgerow.errors import InvalidInput


@dataclass(frozen=True)
class Charge:
    """One charge of the log: its purpose, the question it was for, the noise drawn, and the cost.

    ``who`` was billed, and ``when`` (UTC): empty unless the ledger knows and the report was made with names.
    """

    why: str
    asked: str
    noise: str
    cost: float
    who: str = ""
    when: str = ""


@dataclass(frozen=True)
class Report:
    """A snapshot of a session, made by ``session.report()``. It does not change afterwards.

    ``facts``: the budget, the amount spent, and the number of rows (an estimate under add/remove neighbors).
    ``attributes``: those of the universe, each with its kind and its number of cells. ``certificate``: a statement, in
    words, about questions never asked. ``charges``: every billed use of the data. ``answers``: the most recent answers
    that were asked for. ``parts``: counts on record that these are composed of.
    """

    facts: dict[str, Any]
    attributes: tuple[tuple[str, str, int], ...]
    certificate: str | None
    charges: tuple[Charge, ...]
    answers: tuple[Answer, ...]
    parts: tuple[Answer, ...] = ()

    @property
    def html(self) -> str:
        """The report as one self-contained HTML page, with a cover, to be read or printed."""
        return report_page(self)

    @property
    def json(self) -> str:
        """The report as one JSON object. Numbers that are not finite become null."""
        record = {
            "facts": self.facts,
            "attributes": [{"name": name, "kind": kind, "cells": cells} for name, kind, cells in self.attributes],
            "certificate": self.certificate,
            "answers": [record_of(answer) for answer in self.answers],
            "parts": [record_of(answer) for answer in self.parts],
            "charges": [asdict(charge) for charge in self.charges],
        }
        return readable(plain(record), indent=1, ascii_only=True)

    def save(self, path: str | Path) -> Path:
        """Write the report to a path that ends in .html or .json, and return the path."""
        target = require_folder("The path of a report", path)
        if target.suffix not in (".html", ".json"):
            raise InvalidInput(f"The path of a report must end in .html or .json. Found {target.name!r}. Rename it.")
        target.write_text(self.html if target.suffix == ".html" else self.json, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        return report_body(self)

    def __repr__(self) -> str:
        return f"Report({len(self.answers)} answers, {len(self.charges)} charges)"


def record_of(answer: Answer) -> dict[str, Any]:
    """Return an answer as plain data for a program that does not know this package."""
    return {
        "question": repr(answer.query),
        "title": title(answer.query),
        "value": answer.value,
        "error": answer.error,
        "typical": answer.typical,
        "resolution": answer.resolution,
        "source": answer.source,
        "cost": answer.cost,
        "axes": [{"name": name, "labels": list(labels)} for name, labels in answer.labels],
    }


def plain(found: Any) -> Any:
    """Convert to JSON values: arrays become lists, and numbers that are not finite become None."""
    match found:
        case dict():
            return {str(name): plain(part) for name, part in found.items()}
        case list() | tuple():
            return [plain(part) for part in found]
        case np.ndarray() | np.generic():
            return plain(found.tolist())
        case float() if not math.isfinite(found):
            return None
    return found
