"""What a session has said so far, as a document for people (HTML) or programs (JSON): released and public values only."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import _html
from hedgerow.answer import Answer
from hedgerow.errors import InvalidInput


@dataclass(frozen=True)
class Charge:
    """One line of the log."""

    why: str
    asked: str
    noise: str
    cost: float


@dataclass(frozen=True)
class Report:
    """Made by ``session.report()``: what is in it stays as it was then.

    ``facts``: the budget, what was spent, the number of rows (of add/remove neighbours an estimate). ``attributes``: the
    universe's, each with its kind and cells. ``certificate``: what holds of answers never asked for, in words. ``answers``:
    those that the session gave last.
    """

    facts: dict[str, Any]
    attributes: tuple[tuple[str, str, int], ...]
    certificate: str | None
    charges: tuple[Charge, ...]
    answers: tuple[Answer, ...]

    @property
    def html(self) -> str:
        """A page that needs nothing else."""
        parts = [_html.table(("", ""), [(name.replace("_", " "), _words(fact)) for name, fact in self.facts.items()])]
        if self.certificate is not None:
            parts += [_html.heading("Certificate"), _html.paragraph(self.certificate)]
        parts += [
            _html.heading("What a record may be"),
            _html.table(("attribute", "kind", "cells"), self.attributes),
            _html.heading("Answers"),
            _html.paragraph(
                "Guaranteed errors hold all together; typical ones are the size of errors on average, and promise nothing."
            ),
            *(answer._repr_html_() for answer in self.answers),
            _html.heading("Charges"),
            _html.table(
                ("why", "asked", "noise", "cost"), [(c.why, c.asked, c.noise, f"{c.cost:.4g}") for c in self.charges]
            ),
        ]
        return _html.page("hedgerow session", *parts)

    @property
    def json(self) -> str:
        """The same as one JSON object; what is not finite is null."""
        record = {
            "facts": self.facts,
            "attributes": [{"name": name, "kind": kind, "cells": cells} for name, kind, cells in self.attributes],
            "certificate": self.certificate,
            "answers": [record_of(answer) for answer in self.answers],
            "charges": [asdict(charge) for charge in self.charges],
        }
        return json.dumps(plain(record), allow_nan=False, indent=1, default=str)

    def save(self, path: str | Path) -> Path:
        """Write it where the name ends in .html or .json; the path."""
        target = Path(path)
        if target.suffix not in (".html", ".json"):
            raise InvalidInput(f"The path of a report must end in .html or .json. Found {target.name!r}. Rename it.")
        target.write_text(self.html if target.suffix == ".html" else self.json, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"Report({len(self.answers)} answers, {len(self.charges)} charges)"


def record_of(answer: Answer) -> dict[str, Any]:
    """An answer for a program that knows nothing of this package."""
    return {
        "question": repr(answer.query),
        "value": answer.value,
        "error": answer.error,
        "typical": answer.typical,
        "resolution": answer.resolution,
        "source": answer.source,
        "cost": answer.cost,
        "axes": [{"name": name, "labels": list(labels)} for name, labels in answer.labels],
    }


def plain(found: Any) -> Any:
    """As JSON has it: arrays as lists, what is not finite as None."""
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


def _words(fact: Any) -> str:
    return f"{fact:.6g}" if isinstance(fact, float) else str(fact)
