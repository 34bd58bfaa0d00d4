"""Two neighbouring tables with the same released history give the same file: it holds nothing but what was released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from questions_at_random import small_file
from recorder import Recorder

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.engine import build_practical_engine
from hedgerow.privacy.ledger import Accountant
from hedgerow.release_file.container import unpack
from hedgerow.session import Session

U = hr.Universe.from_sizes({"y": 2, "a": 3, "b": 3})


def people() -> np.ndarray:
    counts = (np.arange(U.size) * 7) % 5 + 150
    return counts.reshape(U.shape)


def neighbour(counts: np.ndarray, neighbours: str) -> np.ndarray:
    other = counts.copy()
    other[0, 0, 0] -= 1
    if neighbours == "replace":
        other[1, 2, 1] += 1
    return other


def told(counts: np.ndarray, budget: hr.Budget, noise: Recorder, path: Any, answers: Any) -> bytes:
    ledger, data = Accountant(budget), HistogramSource(U, counts)
    engine = build_practical_engine(data, ledger, noise, workload=None, queries=100, beta=0.05, guard=0.0, reserve=0.2)
    session = Session(data, ledger, noise, engine)
    session.ask(hr.count(y=1, a={0, 2}))
    session.ask(hr.count(a=1), within=0.05)
    session.ask(hr.mean("b", where=hr.count(y=1)))
    return session.publish(path, answers=answers).read_bytes()


@pytest.mark.parametrize("answers", ["all", "none"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_neighbours_with_the_same_releases_give_the_same_file(neighbours, answers, tmp_path) -> None:
    budget, counts = hr.Budget(1.0, 1e-6, neighbours), people()
    noise = Recorder(0)
    one = told(counts, budget, noise, tmp_path / "one.hedgerow", answers)
    other = told(neighbour(counts, neighbours), budget, Recorder(0, noise.draws), tmp_path / "b.hedgerow", answers)
    assert one == other
    fresh = told(neighbour(counts, neighbours), budget, Recorder(1), tmp_path / "c.hedgerow", answers)
    assert fresh != one  # other releases show


def test_the_fields_of_a_file_are_those_that_the_page_lists() -> None:
    from pathlib import Path

    page = (Path(__file__).resolve().parents[2] / "docs" / "release-file.md").read_text()
    document = unpack(small_file()).document
    fields = {*document, *document["blocks"][0], *document["blocks"][0]["public"]}
    assert [name for name in sorted(fields) if f"`{name}`" not in page] == []
