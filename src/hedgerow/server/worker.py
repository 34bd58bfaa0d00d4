"""A worker process: free answers from the public state of the datasets, within limits of memory and time.

A worker has neither tables nor ledgers nor keys. It gets tasks through a pipe and ends when the pipe ends. The
service's own process measures the time of a task and kills a worker that takes too long.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.query.counts import Count, Query, bound
from hedgerow.release_file.replica import Replica
from hedgerow.report import plain
from hedgerow.server.confinement import drop_secrets, limit_addresses
from hedgerow.server.judging import judge_model
from hedgerow.server.messages import pack, unpack
from hedgerow.sql.result import run_statement

FEW = 3  # predicates of a count that is light work whatever their columns
LIGHT_CELLS = 200_000  # cells of the tables that the questions of a request may have as light work
LONG = ("ask", "ask_each", "rehearse", "synthesize")  # heavy work that other heavy work goes before
Work = tuple[str, tuple[Any, ...]]
"""The name of a function of this module, and its arguments after the replica."""


@dataclass(frozen=True)
class Task:
    """Work on one dataset, with what the worker has to learn before it.

    ``state`` is the pickled public state, if the worker has another version. ``given`` are pickled answers that were
    given elsewhere since the worker's last task. ``accepted`` tells that the answers of that task were given,
    ``rejected`` that they were not, because somebody else gave others first.
    """

    dataset: str
    state: bytes | None
    given: tuple[bytes, ...]
    accepted: bool
    rejected: bool
    work: Work = field(repr=False)


@dataclass(frozen=True)
class WorkResult:
    """The result of a task, or its refusal, or the type and place of a fault; and the pickled answers that are new."""

    value: Any = None
    refusal: HedgerowError | None = None
    fault: str = ""
    fresh: bytes = b""


def serve(pipe: Connection, memory: int, niceness: int = 0) -> None:
    """Do the tasks that arrive, until the pipe ends."""
    os.nice(niceness)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # a keyboard's interrupt reaches every process; the service ends its workers
    drop_secrets()
    limit_addresses(memory)
    replicas: dict[str, Replica] = {}
    with contextlib.suppress(EOFError, OSError):
        while True:
            task: Task = unpack(pipe.recv_bytes())
            pipe.send_bytes(pack(_do(task, replicas, memory)))


def _do(task: Task, replicas: dict[str, Replica], memory: int) -> WorkResult:
    """Learn what is new, do the work, and return its outcome."""
    try:
        replica = replicas.setdefault(task.dataset, Replica(memory // 2))
        if task.accepted:
            replica.accept_own()
        if task.rejected:
            replica.forget_own()
        for blob in task.given:
            replica.adopt(unpack(blob))
        if task.state is not None:
            _learn(replica, task.state)
        name, arguments = task.work
        value = WORK[name](replica, *arguments)
        fresh = replica.take_fresh()
        return WorkResult(value, fresh=pack(fresh) if fresh else b"")
    except HedgerowError as refused:
        fresh = replica.take_fresh()
        return WorkResult(refusal=type(refused)(str(refused)), fresh=pack(fresh) if fresh else b"")
    except BaseException as fault:  # of native code too. Its message may quote values
        frames = traceback.extract_tb(fault.__traceback__)[-4:]
        return WorkResult(
            fault=f"{type(fault).__name__} at " + " < ".join(f"{f.name}:{f.lineno}" for f in reversed(frames))
        )


def _learn(replica: Replica, state: bytes) -> None:
    """Learn a state. A refusal of that is a fault, because the worker could not do any other task either."""
    try:
        replica.learn(unpack(state))
    except HedgerowError as refused:
        raise RuntimeError(type(refused).__name__) from refused


def warm(replica: Replica) -> None:
    """Ask the smallest question of each kind and drop the answers, so that libraries are loaded and loops compiled."""
    release = replica.release
    smallest = sorted(release.universe.names, key=lambda name: release.universe[name].size)[:2]
    loss = hr.losses.Squared(target=smallest[0], features=tuple(smallest[1:]))
    for each in ([hr.marginal(*smallest)], [hr.marginal(smallest[0])], [hr.minimize(loss, over=hr.L2Ball(1.0))]):
        with contextlib.suppress(HedgerowError):
            release.ask_all(each, progress=False)
    with contextlib.suppress(HedgerowError):
        run_sql(replica, "SELECT count(*) FROM data", 10)
    replica.forget_own()


def ask(replica: Replica, queries: Sequence[Query], scale: Any, resolution: Any) -> Any:
    """Answer questions."""
    return replica.release.ask_all(list(queries), scale=scale, resolution=resolution, progress=False)


def ask_each(
    replica: Replica, requests: Sequence[Sequence[Query]], scale: Any, resolution: Any, is_heavy: bool
) -> list[Any]:
    """Answer several requests together. Return the answers of each, or its refusal, which does not hinder the others.

    Unless ``is_heavy``, a request with large tables is not answered: its outcome is None.
    """
    light = [is_heavy or _is_light(replica, queries, resolution) for queries in requests]
    outcomes = _answers_of(
        replica, [each for each, is_light in zip(requests, light, strict=True) if is_light], scale, resolution
    )
    return [next(outcomes) if is_light else None for is_light in light]


def _answers_of(
    replica: Replica, requests: Sequence[Sequence[Query]], scale: Any, resolution: Any
) -> Iterator[Sequence[Any] | HedgerowError]:
    """Yield the answers of each request, or its refusal."""
    try:
        answers = iter(ask(replica, [query for queries in requests for query in queries], scale, resolution))
    except HedgerowError as refused:
        if len(requests) == 1:
            yield type(refused)(str(refused))
        else:
            for queries in requests:
                yield from _answers_of(replica, [queries], scale, resolution)
        return
    for queries in requests:
        yield list(islice(answers, len(queries)))


def _is_light(replica: Replica, queries: Sequence[Query], resolution: Any) -> bool:
    """Return True unless the tables of some questions are large. Counts of a few columns are light without a look."""
    universe, cells = replica.release.universe, 0
    for query in queries:
        if isinstance(query, Count) and len(query.predicates) <= FEW:
            continue
        try:
            cells += sum(map(universe.cells, bound(query, universe, resolution).tables))
        except HedgerowError:  # a question that does not fit is refused at once
            continue
    return cells <= LIGHT_CELLS


def rehearse(replica: Replica, query: Query, resolution: Any) -> None:
    """Fit a model that is to be paid for to what was released. What that takes is known before anything is charged."""
    replica.rehearse(query, resolution)


def run_sql(replica: Replica, statement: str, most: int) -> Any:
    """Run a SELECT, and return the names of its columns, its rows, and how many questions it asked."""
    release, asked = replica.release, 0

    def ask_all(queries: Sequence[Query]) -> Any:
        nonlocal asked
        asked += len(queries)
        return release.ask_all(list(queries), scale="rows", progress=False)

    result = run_statement(statement, release.universe, ask_all, most_questions=most)
    return tuple(result.columns), [list(row) for row in result.records], asked


def synthesize(replica: Replica, rows: int, form: str) -> bytes:
    """Draw synthetic records, and write them in a form."""
    return write_records(replica.release.synthetic(rows), form)


def describe(replica: Replica) -> Any:
    """Summarize the table from what was released."""
    return summary_record(replica.release.describe())


def judge(replica: Replica, query: Query, theta: Any) -> Any:
    """Judge a model on the hypothesis."""
    return judge_model(replica.release.hypothesis, replica.release.universe, query, theta)


def call_tool(replica: Replica, name: str, arguments: Any, facts: tuple[Any, ...]) -> tuple[Any, int]:
    """Run a free tool of an assistant. Return its result, and how many numbers were read."""
    from hedgerow.assistants import toolbox
    from hedgerow.assistants.desk import AssistantDesk

    dataset, purchases, shows_spending, numbers = facts
    desk = AssistantDesk(replica.release, dataset, purchases, shows_spending=shows_spending, quotes_prices=False)
    desk.numbers = numbers
    return toolbox.call_tool(desk, name, arguments), desk.numbers - numbers


def summary_record(summary: Any) -> dict[str, Any]:
    """Return a summary as plain data: the statistics of each column, their bars, and the strongest associations."""
    names = ("columns", "cramers_v", "lower", "upper", "values", "difference", "error")
    associations = [{name: getattr(each, name) for name in names} for each in summary.associations]
    found: dict[str, Any] = plain({"columns": summary.columns, "errors": summary.errors, "associations": associations})
    return found


def write_records(frame: Any, form: str) -> bytes:
    """Write records as CSV, Parquet or an Arrow stream."""
    if form == "csv":
        return bytes(frame.to_csv(index=False).encode())
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hedgerow.answering.synthetic import unmix_columns

    table, out = pa.Table.from_pandas(unmix_columns(frame), preserve_index=False), io.BytesIO()
    if form == "parquet":
        pq.write_table(table, out)
    else:
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
    return out.getvalue()


WORK: dict[str, Callable[..., Any]] = {
    "warm": warm, "ask": ask, "ask_each": ask_each, "run_sql": run_sql, "synthesize": synthesize, "describe": describe, "call_tool": call_tool,
    "judge": judge, "rehearse": rehearse,
}  # fmt: skip
