"""A lower bound on ε for any mechanism, from its outputs on two neighbours.

Papers: Ding et al., *Detecting violations of differential privacy*; Jagielski, Ullman & Oprea, *Auditing differentially
private machine learning*. The bound and its confidence: ``bounds``.

Symbols: D and D′ neighbours; a statistic gives a number for an output; an event is "at least t" or "at most t" of it.

The runs are split. Some learn statistics, if none is given; some choose the event; the others, which played no part in
either, judge it. So the confidence holds whatever was learned and chosen. Runs are made in numbered blocks, so that the
same blocks, and the same bound, result from any number of processes.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal, final

import numpy as np

from hedgerow import _progress
from hedgerow._types import Array
from hedgerow.audit import bounds
from hedgerow.audit.learned import LEARNERS, Outputs, Scorer
from hedgerow.errors import InvalidInput

Mechanism = Callable[[Any], Any]
Kind = Literal["number", "category", "vector", "sequence"]

BLOCKS = 32  # the number of blocks in which runs are made
_LEARN, _LEARNED = 3 / 8, 1 / 2  # shares of the runs that learn a statistic, and that learn it or choose the event


@final
@dataclass(frozen=True)
class PerProcess:
    """A mechanism that is made anew for every block of runs, because noise belongs to the process that made it.

    Parameters
    ----------
    make : callable
        ``make(number)`` returns the mechanism for a block. Blocks have different numbers, from which a seed may be
        derived. A mechanism that draws from the operating system does not need them.

    Example
    -------
    >>> noisy = hr.audit.PerProcess(lambda number: lambda data: data + np.random.default_rng().laplace())
    >>> finding = hr.audit.distinguish(noisy, 0.0, 1.0, runs=2000)
    """

    make: Callable[[int], Mechanism]


@final
@dataclass(frozen=True)
class Finding:
    """The result of an audit: with probability ``confidence``, ε at δ is at least ``epsilon``.

    A bound below a claim proves nothing: another event or pair may be worse.

    Attributes
    ----------
    epsilon, delta, confidence : float
        The bound on ε, its δ, and the probability with which it holds.
    runs, judged : int
        The number of runs on each neighbour, and the number of those that judged the event.
    reachable : float
        The largest bound that these runs could have given.
    hits : tuple of int
        How often the event happened on either neighbour, among the judged runs.
    event : str
        A description of the event.

    Example
    -------
    >>> finding = hr.audit.distinguish(mechanism, data, neighbour, runs=2000)
    >>> finding.runs
    2000
    """

    epsilon: float
    delta: float
    confidence: float
    runs: int
    judged: int
    reachable: float
    hits: tuple[int, int]
    event: str

    def refutes(self, epsilon: float) -> bool:
        """Return True if the finding refutes a claim of (epsilon, δ), at the confidence.

        Parameters
        ----------
        epsilon : float
            The ε of the claim.

        Returns
        -------
        bool

        Example
        -------
        >>> hr.audit.distinguish(mechanism, data, neighbour, runs=2000).refutes(10.0)
        False
        """
        return self.epsilon > epsilon

    def __str__(self) -> str:
        return (
            f"ε ≥ {self.epsilon:.3f} at δ = {self.delta:g} with confidence {self.confidence:g} ({self.event}: "
            f"{self.hits[0]} "
            f"and {self.hits[1]} of {self.judged} runs; no more than {self.reachable:.2f} could have been found)"
        )


def distinguish(
    mechanism: Mechanism | PerProcess,
    data: Any,
    neighbour: Any,
    *,
    runs: int,
    delta: float = 0.0,
    confidence: float = 0.999,
    kind: Kind = "number",
    statistic: Callable[[Any], float] | None = None,
    workers: int = 1,
    progress: bool = False,
) -> Finding:
    """Measure how well a mechanism's outputs tell two neighbours apart.

    Parameters
    ----------
    mechanism : callable or PerProcess
        A function from data to an output.
    data, neighbour : any
        The two neighbours.
    runs : int
        The number of runs on each neighbour.
    delta : float
        The δ of the claim.
    confidence : float
        The probability with which the bound holds.
    kind : str
        The kind of output. A "number" is its own statistic. For a "category", a "vector" or a "sequence" (a transcript)
        a statistic is learned.
    statistic : callable, optional
        A statistic to use instead. The best ones grow with the likelihood ratio.
    workers : int
        The number of processes, for a ``PerProcess`` mechanism.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Finding

    Raises
    ------
    InvalidInput
        If the kind is unknown, the runs are too few, or several processes would share one mechanism.

    Example
    -------
    >>> print(audit.distinguish(mechanism, data, neighbour, runs=20_000))
    """
    if kind != "number" and kind not in LEARNERS:
        raise InvalidInput(f"kind must be number or {', '.join(LEARNERS)}. Found {kind!r}. Say what an output is.")
    if runs < 2 * BLOCKS:
        raise InvalidInput(f"runs must be at least {2 * BLOCKS}. Found {runs!r}. Run it more often.")
    first, second = outputs_of(mechanism, (data, neighbour), runs, workers=workers, progress=progress)
    if statistic is not None or kind == "number":
        score = float if statistic is None else statistic
        scores = [np.array([score(z) for z in outputs], dtype=float) for outputs in (first, second)]
        return judge_event(scores[0], scores[1], bounds.chosen_runs(runs), delta=delta, confidence=confidence)
    learning, choosing = int(_LEARN * runs), int(_LEARNED * runs)
    scorers = LEARNERS[kind](first[:learning], second[:learning])
    best = max(scorers, key=lambda scorer: _promise(scorer, first, second, learning, choosing, delta, confidence))
    scores = [best(outputs[learning:]) for outputs in (first, second)]
    return judge_event(
        scores[0], scores[1], choosing - learning, delta=delta, confidence=confidence, runs=runs, what="learned score"
    )


def judge_event(
    first: Array,
    second: Array,
    choosing: int,
    *,
    delta: float,
    confidence: float,
    runs: int | None = None,
    what: str = "score",
) -> Finding:
    """Let the first ``choosing`` scores choose an event, and the others judge it."""
    left = min(first.size, second.size) - choosing
    event = bounds.best_tail(first[:choosing], second[:choosing], left, delta=delta, confidence=confidence)
    hits = event.hits(first[choosing:]), event.hits(second[choosing:])
    found = bounds.bound_of_hits(*(hits if event.for_first else hits[::-1]), left, delta=delta, confidence=confidence)
    return Finding(
        found, delta, confidence, first.size if runs is None else runs, left,
        bounds.reachable_epsilon(left, confidence=confidence, delta=delta), hits, f"{what} {event}",
    )  # fmt: skip


def _promise(
    scorer: Scorer, first: Outputs, second: Outputs, start: int, end: int, delta: float, confidence: float
) -> float:
    """Return the bound that a scorer promises on the runs that choose the event."""
    one, two = scorer(first[start:end]), scorer(second[start:end])
    return bounds.best_tail(one, two, len(first) - end, delta=delta, confidence=confidence).promise


# Runs


def outputs_of(
    mechanism: Mechanism | PerProcess, tables: tuple[Any, Any], runs: int, *, workers: int = 1, progress: bool = False
) -> tuple[list[Any], list[Any]]:
    """Return ``runs`` outputs on each of two tables, in an order that does not depend on the number of processes."""
    sizes = [runs // BLOCKS + (block < runs % BLOCKS) for block in range(BLOCKS)]
    if isinstance(mechanism, PerProcess):
        work = _Work(mechanism.make, tables, sizes)
    elif workers == 1:
        work = _Work(lambda number: mechanism, tables, sizes)
    else:
        raise InvalidInput(
            f"A mechanism for {workers} processes must be a PerProcess. Found a function, whose noise they would "
            "share. "
            "Give PerProcess(lambda number: mechanism), which makes its own noise."
        )
    outputs: tuple[list[Any], list[Any]] = [], []
    with _progress.bar("auditing", BLOCKS, progress) as tell:
        for block, (one, two) in enumerate(_blocks(work, workers)):
            outputs[0].extend(one)
            outputs[1].extend(two)
            tell(block + 1)
    return outputs


@dataclass(frozen=True)
class _Work:
    """The runs to make: how to make the mechanism, the tables, and the sizes of the blocks."""

    make: Callable[[int], Mechanism]
    tables: tuple[Any, Any]
    sizes: list[int]

    def block(self, number: int) -> tuple[list[Any], list[Any]]:
        """Make the runs of one block."""
        run = self.make(number)
        one, two = ([run(table) for _ in range(self.sizes[number])] for table in self.tables)
        return one, two


def _send_blocks(work: _Work, numbers: Iterable[int], end: Connection) -> None:
    """Make blocks in a process of their own, and send each, or the error that it ended with."""
    for number in numbers:
        try:
            end.send(work.block(number))
        except Exception as error:
            end.send(error)
            return


def _blocks(work: _Work, workers: int) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield the outputs of all blocks, in order, made in this process or in forks of it.

    Forks inherit functions that cannot be pickled. Each has a pipe of its own: no thread and no lock is shared with
    them.
    """
    if workers == 1 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(work.block, range(BLOCKS))
        return
    context, ends, forks = multiprocessing.get_context("fork"), [], []
    try:
        for first in range(workers):
            ours, theirs = context.Pipe(duplex=False)
            given = (work, range(first, BLOCKS, workers), theirs)
            forks.append(context.Process(target=_send_blocks, args=given, daemon=True))
            forks[-1].start()
            theirs.close()  # so that the end of a fork is the end of its pipe
            ends.append(ours)
        for number in range(BLOCKS):
            try:
                made = ends[number % workers].recv()
            except EOFError:
                made = InvalidInput(
                    "A process of an audit must live until its runs are made. Found that one died. Use fewer "
                    "workers, or give it more memory."
                )
            if isinstance(made, Exception):
                raise made
            yield made
    finally:
        for fork, end in zip(forks, ends, strict=False):
            fork.terminate()
            fork.join()
            end.close()


def runs_for(epsilon: float, *, confidence: float = 0.999, delta: float = 0.0) -> int:
    """Return the fewest judged runs with which a bound of ε could be found at all."""
    judged_runs = 1
    while bounds.reachable_epsilon(judged_runs, confidence=confidence, delta=delta) <= epsilon:
        judged_runs = math.ceil(judged_runs * 1.01)
        if judged_runs > 10**12:
            raise InvalidInput(f"epsilon must be within reach of 10^12 runs. Found {epsilon!r}. Ask for less.")
    return judged_runs
