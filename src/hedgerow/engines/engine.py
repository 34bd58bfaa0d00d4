"""What answers a session. A profile is an engine; tests/engines/test_engines.py is what every one must pass.

An engine is a function of public entries: the ledger's of its opening, met again when it is opened again, and those of the
stream, which ``resume`` takes up. Nothing else that it learned survives, and nothing else is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from hedgerow._types import Array
from hedgerow.convex.minimize import Minimises
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.ledger import Entry
from hedgerow.questions.bound import Estimate
from hedgerow.questions.counts import AnswersMarginals
from hedgerow.questions.linear import AnswersLinear, Linear


class Engine(AnswersLinear, AnswersMarginals, Minimises, Protocol):
    """Answers linear queries, whole tables and convex questions, each from the hypothesis or by paying for better."""

    @property
    def hypothesis(self) -> Hypothesis:
        """The public model that answers come from."""

    @property
    def rows(self) -> float:
        """n where it is public, else an estimate of it."""

    def free(self, queries: Sequence[Linear]) -> list[Estimate] | None:
        """Answers that consult nothing private, all at once; None where each may depend on the one before."""

    def error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """The bar of rows·value around the true number of rows, where ``error`` is that of the fraction."""

    def resume(self, entries: Sequence[Entry]) -> None:
        """Learn again what these entries of a stream taught, in order."""
