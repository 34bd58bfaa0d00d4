"""A draft is refused before anything is charged, or not at all."""

from __future__ import annotations

import datetime

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.privacy.ledger import Accountant


def test_times_without_a_delta_are_refused_before_they_are_charged() -> None:
    """Only a charged draw can tell that they are texts, and texts need a δ."""
    frame = pl.DataFrame({"at": [datetime.time(1, 2)] * 5000})
    budget = hr.Budget(10.0, 0.0)
    ledger = Accountant(budget)
    with pytest.raises(InvalidInput, match="must have a delta above 0"):
        hr.Universe.draft(frame, budget=budget, ledger=ledger, seed=1)
    assert ledger.spent == 0
