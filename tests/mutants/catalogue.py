"""All mutants, and harm that the design leaves no line for."""

from __future__ import annotations

from mutant import Mutant
from of_data import DATA_MUTANTS
from of_engines import ENGINE
from of_erm import ERM
from of_privacy import PRIVACY
from of_textbook import TEXTBOOK

MUTANTS: list[Mutant] = [*PRIVACY, *TEXTBOOK, *ENGINE, *ERM, *DATA_MUTANTS]

NOT_WRITTEN: list[str] = []
