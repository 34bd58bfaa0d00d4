"""A batch of questions to a session with a guard makes the same comparisons, in the same order, as single questions."""

from __future__ import annotations

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.guard import gaps
from hedgerow.query.counts import bound
from hedgerow.query.linear import Linear

UNIVERSE = hr.Universe(a=hr.Integers(0, 5), b=hr.Flag(), c=hr.Categories(["w", "x", "y"]), d=hr.Integers(0, 3))
_rng = np.random.default_rng(7)
_drawn = _rng.dirichlet(np.full(UNIVERSE.size, 0.3)).reshape(UNIVERSE.shape)
TABLE = HistogramSource(UNIVERSE, np.round(1e6 * _drawn).astype(np.int64))
QUERIES = [
    hr.count(a=(int(lo), int(hi)), b=bool(b), c={"w", "xy"[int(c)]}, d=(0, int(d)))
    for lo, hi, b, c, d in zip(
        *np.sort(_rng.integers(0, 6, (2, 150)), axis=0), *_rng.integers(0, 2, (2, 150)), _rng.integers(0, 3, 150), strict=True
    )
]  # fmt: skip


def opened(neighbours: str) -> hr.Session:
    return hr.open(
        TABLE, universe=UNIVERSE, budget=hr.Budget(1.0, 1e-6, neighbours), guard=0.2, reserve=0.2,
        workload=hr.marginals(1), seed=3,
    )  # fmt: skip


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_guard_says_the_same_of_questions_asked_together_and_one_by_one(neighbours) -> None:
    together, one_by_one = opened(neighbours), opened(neighbours)
    found = together.ask_all(QUERIES)
    wanted = [one_by_one.ask(query) for query in QUERIES]
    assert [a.source for a in found] == [a.source for a in wanted]
    assert {"measured", "hypothesis", "repeat"} <= {a.source for a in found}
    assert [a.cost for a in found] == [a.cost for a in wanted]
    assert [e.events for e in together.log] == [e.events for e in one_by_one.log]
    for ours, other in zip(together.log, one_by_one.log, strict=True):
        assert len(ours.released) == len(other.released)
        for x, y in zip(ours.released, other.released, strict=True):
            assert np.array_equal(x, y)
    for name in ("value", "error"):
        assert [getattr(a, name) for a in found] == pytest.approx(
            [getattr(a, name) for a in wanted], rel=1e-9, abs=1e-12
        )


def test_releases_learned_meanwhile_are_in_the_following_answers() -> None:
    session = opened("replace")
    answers = session.ask_all(QUERIES)
    last = max(i for i, a in enumerate(answers) if a.source == "measured")
    after = [i for i in range(last + 1, len(QUERIES)) if answers[i].source == "hypothesis"]
    believed = [session._engine.hypothesis_answer(bound(QUERIES[i], UNIVERSE)) for i in after]
    assert len(after) > 5 and [answers[i].value for i in after] == pytest.approx(believed, rel=1e-9)


def test_gaps_are_those_of_counts_one_by_one_and_weights_are_rounded_to_the_grid() -> None:
    session = opened("replace")
    engine, rng = session._engine, np.random.default_rng(1)
    asked = [bound(query, UNIVERSE) for query in QUERIES[:30]]
    asked += [Linear.from_table(UNIVERSE, ("a", "c"), rng.random((6, 3))) for _ in range(5)]
    counts = TABLE.marginal(UNIVERSE.names)
    found = gaps(TABLE, engine.knowledge, asked)
    assert found == [engine._gap(query) for query in asked]
    for query, gap in zip(asked, found, strict=True):
        wide = query.table.reshape([UNIVERSE[n].size if n in query.attributes else 1 for n in UNIVERSE.names])
        true = abs(float((wide * counts).sum()) - engine.rows * engine.hypothesis_answer(query))
        assert gap == pytest.approx(true, abs=1.0 if query.is_count else 1e-4)


def test_prepared_answers_that_are_never_asked_for_are_forgotten() -> None:
    session = opened("replace")
    session.ask_all(QUERIES[:10])
    assert not session._engine._ahead._left
    assert session._engine._ahead.free(bound(QUERIES[20], UNIVERSE)) is None
