"""All mutants, and harmful changes that the design leaves no line for."""

from __future__ import annotations

from mutant import Mutant
from of_assistants import ASSISTANTS
from of_blocks import BLOCK_MUTANTS
from of_cli import CLI_MUTANTS
from of_console import CONSOLE
from of_data import DATA_MUTANTS
from of_drafting import DRAFTING
from of_engine import ENGINE
from of_erm import ERM
from of_generalise import GENERALISE
from of_ledger import LEDGER_MUTANTS
from of_privacy import PRIVACY
from of_promises import PROMISES
from of_query import QUESTIONS
from of_registration import REGISTRATION
from of_releases import RELEASE_MUTANTS
from of_service import SERVICE
from of_sizes import SIZE_MUTANTS
from of_sources import SOURCE_MUTANTS
from of_textbook import TEXTBOOK

MUTANTS: list[Mutant] = [
    *PRIVACY,
    *TEXTBOOK,
    *ENGINE,
    *ERM,
    *GENERALISE,
    *DATA_MUTANTS,
    *SOURCE_MUTANTS,
    *DRAFTING,
    *QUESTIONS,
    *LEDGER_MUTANTS,
    *CLI_MUTANTS,
    *BLOCK_MUTANTS,
    *SIZE_MUTANTS,
    *PROMISES,
    *SERVICE,
    *REGISTRATION,
    *CONSOLE,
    *RELEASE_MUTANTS,
    *ASSISTANTS,
]

NOT_WRITTEN: list[str] = [
    "A draw that is not charged (of PMW, MWEM, NumericSparse, the overview, `within=`, the theory's n): noise takes receipts alone.",
    "A refused charge that is ignored: there is no receipt to draw from.",
    "T draws for the price of one (an oracle's steps charged once): a receipt gives each event once.",
    "A threshold's noise that is used again after its ⊤: a guard round closes itself.",
    "A gap or a noisy value that is released below the threshold: a guard round gives neither.",
    "A refusal that quotes a label or names a row: no value of a row is refused any more, in a table or in arrays.",
    "A cast that raises on one value: readers cast nothing, and each value is coded by itself.",
    "A deep copy of a session with a fresh account: a session has no copy of its own to make; the ledger's is among the mutants.",
    "A fork that shares noise drawn ahead: a fork is refused, which is among the mutants.",
]
"""Of earlier catalogues: what receipts, guard rounds and the reading rule made impossible to write in a line."""
