"""Blocks held to their sensitivities (``neighbouring``): the sums of a tree, and the charge of each block for its own rows."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from neighbouring import BUDGETS, Case, bits, hold, reversed_table, shifted, tables
from recorder import Recorder

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.over_time import BlockSource, Series, due, levels
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.query.counts import bound

U = hr.Universe.from_sizes({"a": 3, "b": 2})
DRAW = "engine.over_time:Series._draw"
ASKED = hr.count(a={0, 2}).over_time(span=4, share=0.15)


def people(seed: int, rows: int = 500) -> np.ndarray:
    counts = (np.arange(U.size) * (3 + seed)) % 5 + 1
    counts[-1 - seed % U.size] += rows - counts.sum()
    return counts.reshape(U.shape)


def tree(budget: Budget, at: int) -> Case:
    """All sums of five blocks, of which one differs, on one account: it is charged for a sum once for every block in it."""

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        columns = [BlockSource(HistogramSource(U, counts if i == at else people(i)), ledger) for i in range(5)]
        nodes = Series(ASKED, bound(ASKED.counted, U), columns, noise).draw_nodes()
        return [(node.first, node.last, node.value, node.event) for node in nodes]

    return Case(run, budget, tables(people(at), budget, 12), reversed_table(people(at)), frozenset({DRAW}))


CASES: dict[str, Callable[[], Case]] = {
    f"tree, block {at}, {name}": functools.partial(tree, budget, at)
    for name, budget in BUDGETS.items()
    for at in (0, 2, 4)
}


def neighbours(budget: Budget, counts: np.ndarray) -> np.ndarray:
    """One row of a block that is counted is not any more, or is gone."""
    source = int(np.flatnonzero((counts * np.array([[1], [0], [1]])).reshape(-1))[0])
    return shifted(
        counts, source, int(np.ravel_multi_index((1, 0), U.shape)) if budget.neighbours == "replace" else None
    )


def told(budget: Budget, counts: list[np.ndarray], noise: Recorder) -> tuple[Any, list[hr.Accountant]]:
    """A session of four blocks, asked about all, some and one of them, with purchases and a series between them."""
    from hedgerow.answering.answer_cache import AnswerCache
    from hedgerow.answering.blocks import Block
    from hedgerow.engine.practical.engine import build_practical_engine
    from hedgerow.session import Session

    ledgers = [Accountant(budget) for _ in counts]
    given: dict[str, Any] = {
        "workload": [hr.marginal("a")],
        "queries": 100,
        "guard": 0.0,
        "reserve": 0.6,
        "certify": False,
    }
    said: list[Any] = []

    def block(i: int, prior: Any) -> Block:
        data = HistogramSource(U, counts[i])
        engine = build_practical_engine(data, ledgers[i], noise, beta=0.05, prior=prior, **given)
        return Block(str(i + 1), data, ledgers[i], engine, AnswerCache(engine, ledgers[i].answer_log), 0.05)

    def append(blocks: Any, name: str, source: Any, **options: Any) -> Block:
        return block(int(name) - 1, blocks[-1].engine.next_prior)

    first = block(0, None)
    session = Session(first.data, first.ledger, noise, first.engine, appending=append)
    for i in range(len(counts)):
        if i:
            session.append(None)
        said.append(session.ask(hr.count(a={0, 2}).over_time(span=4, share=0.1)))
        said.append(session.ask(hr.mean("a")))
        if budget.neighbours == "replace":
            within = 0.2 if float(said[-1].value) > 0.5 else 0.19  # what is bought follows from what was said
            said.append(session.ask(hr.count(b=1), within=within))
        said.append(session.select_blocks(str(i + 1)).ask(hr.count(a=1, b=0)))
        said.append(session.ask(hr.marginal("a", "b")))
    return (said, session.rows, session.spent, [b.spent for b in session.blocks.values()], session.log), ledgers


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=list(BUDGETS))
@pytest.mark.parametrize("at", [0, 1, 3])
def test_every_move_of_a_row_is_paid_by_its_own_block(budget, at) -> None:
    """The parallel composition itself: with one history, all that differs is drawn against the account of the row's block."""
    counts = [people(i, 3000) for i in range(4)]
    other = list(counts)
    other[at] = neighbours(budget, counts[at])
    one = Recorder(0)
    outcome, ledgers = told(budget, counts, one)
    two = Recorder(0, one.draws)
    again, theirs = told(budget, other, two)
    assert bits(outcome) == bits(again)
    for mine, others in zip(ledgers, theirs, strict=True):
        assert [(e.events, e.cost, e.why) for e in mine.entries()] == [
            (e.events, e.cost, e.why) for e in others.entries()
        ]
        assert mine.spent <= budget.total * (1 + 1e-9)
    moved = [a for a, b in zip(one.draws, two.draws, strict=True) if a.raw != b.raw]
    paid = {
        why: [drawn for e in ledgers[at].entries() if (e.why == "over time") is why for drawn in e.event.draws]
        for why in (True, False)
    }
    alone = Counter(a.event for a in moved if a.site != DRAW)
    assert alone and alone <= Counter(paid[False]), f"a draw that block {at + 1} did not pay for"
    # the sums of one, two and four blocks that it is in, each written down in all of them
    assert len(paid[True]) == 3 and len([a for a in moved if a.site == DRAW]) == 1 + 2 + 4


@pytest.mark.parametrize("blocks", [1, 2, 5, 8, 9, 16, 21])
@pytest.mark.parametrize("span", [1, 2, 8])
def test_a_block_is_in_one_sum_of_each_level_and_pays_no_more_than_its_share(blocks, span) -> None:
    places = list(due(blocks, span))
    assert len(set(places)) == len(places)
    for number in range(blocks):
        mine = [last - first + 1 for first, last in places if first <= number <= last]
        assert len(set(mine)) == len(mine) <= levels(span)
    budgets = [Budget(1.0 + (i % 3), 1e-6) for i in range(blocks)]
    columns = [BlockSource(HistogramSource(U, people(i)), Accountant(b)) for i, b in enumerate(budgets)]
    asked = hr.count(a=1).over_time(span=span, share=0.05)
    Series(asked, bound(asked.counted, U), columns, Recorder(1)).draw_nodes()
    for column in columns:
        assert 0 < column.ledger.spent <= 0.05 * column.ledger.budget.total * (1 + 1e-9)


@pytest.mark.parametrize("name", CASES)
def test_neighbours_are_no_farther_apart_than_the_sum_is_billed_for(name) -> None:
    hold(CASES[name]())
