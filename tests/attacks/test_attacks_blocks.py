"""Attacks on blocks and on rows of a cluster by timing, killing processes and sharing ledgers."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.bars.error_bars import _code
from hedgerow.erm import spark_rows
from hedgerow.errors import TooLarge
from hedgerow.privacy.accounts import Accounts
from hedgerow.privacy.events import Gaussian
from hedgerow.query.linear import Linear

UNIVERSE = hr.Universe(a=hr.Integers(0, 1), b=hr.Integers(0, 1))
BUDGET = hr.Budget(1.0, 1e-6)
pytestmark = pytest.mark.filterwarnings("ignore::hedgerow.errors.PublicWarning")


def block(k: int) -> HistogramSource:
    return HistogramSource(UNIVERSE, np.array([[1000 + k, 2000], [500, 700]]))


def opened(blocks: int, **options: object) -> hr.Session:
    session = hr.open(block(0), universe=UNIVERSE, budget=BUDGET, workload=hr.marginals(1), guard=0.0, **options)  # type: ignore[arg-type]
    for k in range(1, blocks):
        session.append(block(k))
    return session


def test_changes_of_a_block_by_another_process_are_learned_once(tmp_path) -> None:
    """Each block that is not behind would otherwise double the times that a question is begun again."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    here, there = opened(5, ledger=url), opened(5, ledger=url)
    there.blocks["5"].ledger.charge(Gaussian(1.0, 1000.0), why="elsewhere")
    blocks = list(here.blocks.values())
    learned: list[str] = []
    accounts = Accounts(
        [b.name for b in blocks], [b.ledger for b in blocks], [lambda news, name=b.name: learned.append(name) for b in blocks]
    )  # fmt: skip
    begun = []

    def ask() -> None:
        begun.append(len(learned))
        for each in blocks:
            each.ledger.sync()

    with accounts.asking(hr.count(a=1)):
        accounts.retry_when_behind(None, ask)
    assert learned == ["5"] and begun == [0, 1]
    here.close()
    there.close()


def test_threads_that_append_at_once_append_different_blocks() -> None:
    session = opened(1)
    begun = [threading.Thread(target=session.append, args=(block(k),)) for k in (1, 2)]
    with session.blocks["1"].ledger.exclusively():  # both have begun before either has its turn
        for thread in begun:
            thread.start()
        for thread in begun:
            thread.join(0.2)
    for thread in begun:
        thread.join()
    assert list(session.blocks) == ["1", "2", "3"]
    assert session.rows == sum(view.rows for view in map(session.select_blocks, session.blocks))


def test_a_series_that_cannot_be_counted_is_refused_before_any_block_pays() -> None:
    wide = hr.Universe({f"f{i}": hr.Flag() for i in range(30)})
    rows = pd.DataFrame({name: [True, False] * 50 for name in wide.names})
    session = hr.open(rows, universe=wide, budget=BUDGET, workload=[hr.count(f0=True)], guard=0.0)
    spent, series = session.spent, hr.count(dict.fromkeys(wide.names, True)).over_time(share=0.01)
    for ask in (session.ask, session.price):
        with pytest.raises(TooLarge):
            ask(series)
    assert session.spent == spent


def test_an_answer_about_fewer_rows_has_not_the_populations_bar_of_more() -> None:
    large = HistogramSource(UNIVERSE, np.array([[4, 3], [2, 1]]) * 10**8)
    session = hr.open(large, universe=UNIVERSE, budget=hr.Budget(0.02, 1e-9), workload=hr.marginals(1), guard=0.0)
    before = session.ask(hr.count(a=1))
    alone = session.population_error(before)
    session.append(HistogramSource(UNIVERSE, np.array([[1, 2], [3, 4]]) * 10**8))
    both = session.ask(hr.count(a=1))
    assert alone is not None and session.population_error(both) is not None
    assert session.population_error(before) is None
    assert session.select_blocks("1").population_error(before) == alone


@pytest.mark.parametrize("m", [1, 2, 3])
def test_parts_of_a_class_add_up_to_at_most_one(m) -> None:
    """For every set of cells, the empty and the full one included: each counts once together with its complement, in the half of β of products."""
    masks = [np.array(mask) for mask in itertools.product([False, True], repeat=m)]
    sets = [Linear(("a",), (m,), (mask,), None, True) for mask in masks]
    assert np.exp(-_code(sets, [True])).sum() <= 0.5 + 1e-12


# Rows on a cluster: what a worker does with a batch


def test_a_text_that_is_no_text_fails_nothing() -> None:
    """Spark casts any bytes to a text: one such row would tell of itself by the call that fails."""
    pa = pytest.importorskip("pyarrow")
    held = pa.array([b"1.5", b"\xff\xfe", None, "٢".encode()], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 4, held.buffers(), null_count=1)
    (read,) = spark_rows._read_batches([pa.record_batch([texts, texts, texts], names=["c0", "c1", "c2"])], features=1)
    assert spark_rows._unpack_rows(read.column("x"), 1).ravel().tolist() == [1.5, 0.0, 0.0, 2.0]
    assert read.column("y").to_pylist() == [1.5, 0.0, 0.0, 2.0]
    whose = read.column("person").to_pylist()
    assert whose[0] == b"1.5" and whose[2] == b"" and len(set(whose)) == 4


def test_a_worker_of_another_kind_keeps_nothing_that_others_sum() -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"x": spark_rows._pack_rows(np.ones((2, 1))), "y": [0.0, 1.0]})
    for work in (
        spark_rows._clip_batches([batch], problem=None, arithmetic="another"),  # type: ignore[arg-type]
        spark_rows._weigh_batches([batch], rows_of=lambda _: None, rule=lambda _: np.ones(2), arithmetic="another"),  # type: ignore[arg-type, return-value]
    ):
        with pytest.raises(RuntimeError, match="another kind"):
            next(work)
