"""Survival curves: the estimate of Kaplan and Meier, and an interval that holds for every table within the bars."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.query.parse import question
from hedgerow.serialize import dumps, loads

UNIVERSE = hr.Universe(months=hr.Integers(0, 11, missing=True), died=hr.Flag(), arm=hr.Categories(["A", "B"]))


def patients(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    event, censored = rng.exponential(6, rows), rng.uniform(0, 14, rows)
    months = np.minimum(np.minimum(event, censored), 11).astype(int).astype(object)
    months[rng.random(rows) < 0.02] = None
    return pd.DataFrame({"months": months, "died": event <= censored, "arm": rng.choice(["A", "B"], rows)})


def by_hand(frame: pd.DataFrame) -> list[float]:
    """The textbook's loop: one patient after the other."""
    kept, survive, curve = frame.dropna(), 1.0, []
    for k in range(12):
        at_risk = int((kept["months"] >= k).sum())
        deaths = int(((kept["months"] == k) & kept["died"]).sum())
        survive *= 1 - deaths / at_risk if at_risk else 1.0
        curve.append(survive)
    return curve


class Known:
    """Intervals around the true counts, of one width."""

    def __init__(self, frame: pd.DataFrame, width: float) -> None:
        self.data, self.width = hr.data.Table(frame, UNIVERSE), width

    def value(self, query) -> float:
        counts = self.data.marginal(query.attributes)
        return float((counts * query.table).sum() / self.data.rows)

    def interval(self, query) -> tuple[float, float]:
        return self.value(query) - self.width, self.value(query) + self.width


@pytest.mark.parametrize("where", [None, "A"])
def test_the_curve_is_that_of_kaplan_and_meier(where) -> None:
    frame = patients(500)
    query = hr.survival("months", "died", where=None if where is None else hr.count(arm=where))
    kept = frame if where is None else frame[frame["arm"] == where]
    found = query.on(UNIVERSE)
    assert found.best(Known(frame, 0.0)) == pytest.approx(by_hand(kept))
    low, high = found.ends(Known(frame, 0.0))
    assert np.allclose(low, high) and np.allclose(low, by_hand(kept))
    assert hr.unsafe.unsafe_answer(frame, query, UNIVERSE) == pytest.approx(by_hand(kept))


@pytest.mark.parametrize("width", [1e-3, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_interval_holds_for_every_table_whose_counts_are_within_the_bars(width, seed) -> None:
    """The bars of one table hold the curves of others that are as near to it."""
    rng = np.random.default_rng(seed)
    frame = patients(300, seed)
    low, high = hr.survival("months", "died").on(UNIVERSE).ends(Known(frame, width))
    assert (low <= high).all() and (np.diff(low) <= 1e-12).all() and (np.diff(high) <= 1e-12).all()
    for _ in range(10):
        other = frame.copy()
        moved = rng.choice(300, max(1, int(width * 300)) if width < 1 else 300, replace=False)
        if len(moved) / 300 > width:
            continue
        other.loc[moved, "months"] = rng.integers(0, 12, len(moved)).astype(object)
        other.loc[moved, "died"] = rng.random(len(moved)) < 0.5
        curve = np.array(by_hand(other))
        assert (low - 1e-9 <= curve).all() and (curve <= high + 1e-9).all()


def test_far_times_keep_a_bar_that_does_not_add_up() -> None:
    """Without censoring the curve is one count, and its bar is that of the count at every time."""
    frame = pd.DataFrame({"months": np.arange(1200) % 12, "died": True, "arm": "A"})
    low, high = hr.survival("months", "died").on(UNIVERSE).ends(Known(frame, 0.01))
    assert (high - low).max() < 0.05


def test_a_session_answers_with_bars_that_hold() -> None:
    frame = patients(8000)
    with pytest.warns(hr.errors.NotPrivateWarning):
        session = hr.open(frame, universe=UNIVERSE, budget=hr.Budget(1.0, 1e-6), seed=1)
    answer = session.ask(hr.survival("months", "died"))
    assert answer.labels == (("months", tuple(range(12))),) and answer.error.max() < 0.3
    assert (np.abs(answer.value - by_hand(frame)) <= answer.error).all()


def test_it_is_written_and_read() -> None:
    query = hr.survival("months", "died", where=hr.count(arm="A"))
    assert loads(dumps(query)) == query == question(repr(query))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (lambda: hr.survival("arm", "died"), "a column of numbers or dates"),
        (lambda: hr.survival("months", hr.mean("months")), "the name of a flag, or a count"),
        (lambda: hr.survival("month", "died"), "Did you mean 'months'"),
        (lambda: hr.survival("months", "arm"), "declares"),
    ],
)
def test_questions_without_a_curve_are_refused(query, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        query().on(UNIVERSE)
