"""Judgements of drawn mutants that no test notices, by the place and the syntax of each.

``equivalent``: no test can notice it. ``harmless``: it changes accuracy, speed or wording, and breaks no promise. ``harmful``: a promise
that a test must state yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Judgement:
    kind: Literal["", "equivalent", "harmless", "harmful"]
    reason: str


JUDGED: dict[tuple[str, str, str, int], Judgement] = {}


def equivalent(where: str, old: str, new: str, reason: str, nth: int = 0) -> None:
    JUDGED[where, old, new, nth] = Judgement("equivalent", reason)


def harmless(where: str, old: str, new: str, reason: str, nth: int = 0) -> None:
    JUDGED[where, old, new, nth] = Judgement("harmless", reason)
