"""All mutants, and harm that the design leaves no line for."""

from __future__ import annotations

from mutant import Mutant
from of_privacy import PRIVACY

MUTANTS: list[Mutant] = [*PRIVACY]

NOT_WRITTEN: list[str] = []
