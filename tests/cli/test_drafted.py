"""The cost of a draft of the universe is part of every promise about the answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.cli.desk import session
from hedgerow.cli.file import File

FILE = """
source = "people.csv"
ledger = "sqlite:///people.ledger"
[budget]
epsilon = 1.0
delta = 1e-6
[draft]
epsilon = 0.25
delta = 1e-7
[universe.a]
kind = "Integers"
low = 0
high = 9
[universe.b]
kind = "Flag"
"""


@pytest.fixture
def file(tmp_path: Path) -> File:
    rng = np.random.default_rng(0)
    pd.DataFrame({"a": rng.integers(0, 10, 500), "b": rng.random(500) < 0.3}).to_csv(
        tmp_path / "people.csv", index=False
    )
    (tmp_path / "hedgerow.toml").write_text(FILE)
    return File(tmp_path / "hedgerow.toml")


def test_report_statement_release_and_assistants_state_the_budget_and_the_draft(file: File, tmp_path: Path) -> None:
    with session(file, first=True) as opened:
        assert opened.budget.epsilon == 0.75 and opened.draft_cost == (0.25, 1e-7)
        assert opened.whole_promise == pytest.approx((1.0, 1e-6))
        told = json.loads(opened.statement().json)["deployment"]["privacy_loss"]["privacy_parameters"]
        assert (told["epsilon"], told["of_which_draft"]) == (1.0, [0.25, 1e-7]) and told["delta"] == pytest.approx(1e-6)
        assert "are bounded by ε = 1, δ = 1e-06" in opened.report().html
        assert opened.public_view().whole_promise == opened.whole_promise
        opened.publish(tmp_path / "people.hedgerow")
    release = hr.load(tmp_path / "people.hedgerow")
    assert release.draft_cost == (0.25, 1e-7) and release.whole_promise == pytest.approx((1.0, 1e-6))
    assert "are bounded by ε = 1, δ = 1e-06" in release.report().html
    with session(file, use="read") as again:  # without the table
        assert again.draft_cost == (0.25, 1e-7)


def test_without_a_draft_nothing_is_added_and_no_price_is_refused(file: File) -> None:
    frame = pd.DataFrame({"a": [1, 2] * 300, "b": [True, False] * 300})
    with pytest.warns(hr.NotPrivateWarning):
        opened = hr.open(frame, universe=file.universe, budget=hr.Budget(1.0, 1e-6), seed=1)
    assert opened.whole_promise == (1.0, 1e-6) and "draft" not in opened.report().html
    for wrong in ((-1.0, 0.0), (0.1, 1.0), (float("nan"), 0.0)):
        with pytest.raises(hr.InvalidInput, match="The price of a draft must be"):
            opened.note_draft(*wrong)
