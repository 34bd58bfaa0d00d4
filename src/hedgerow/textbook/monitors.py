"""Monitors: thought experiments that prove transfer theorems, run as simulations.

Paper: [F] Fish, Reyzin & Rubinstein, *Sampling without compromising accuracy in adaptive data analysis*, Algorithms 2 and 5.

A monitor plays an analyst against a mechanism on samples of a population that it knows, and picks a query that is far from the
population. Where the mechanism is private, what it picks cannot be far on average: e^ε − 1 + Tδ (Lemma 18). Where it is not, the
pick shows how far an analyst can get.

Symbols: p the population, as probabilities of cells; S a sample, as counts; q a query, one value in [0, 1] for each cell; q(S), q(D) its means.

Differs: Algorithm 2 chooses among q and 1 − q by the signed q(S) − q(D), and Algorithm 5 gives q or 1 − q, whichever errs towards
the answer. Lemma 18 bounds |E[q(D) − q(S)]|, and the printed monitors are used to bound E|q(D) − q(S)|. Algorithm 5 begins at the
first round: given a history, a sample is no longer independent draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow._types import Array, Integers

Ask = Callable[[Array], float]
Mechanism = Callable[[Integers], Ask]
"""Given a sample, something that answers queries about it."""
Analyst = Callable[[Ask], None]
"""Asks what it likes, each query after the answers before."""


@dataclass(frozen=True, eq=False)
class Turn:
    """A query and its answer, and what is true of the sample and of the population."""

    query: Array
    answer: float
    on_sample: float
    on_population: float

    @property
    def gap(self) -> float:
        """q(S) − q(D)."""
        return self.on_sample - self.on_population

    @property
    def error(self) -> float:
        """|a − q(D)|."""
        return abs(self.answer - self.on_population)


@dataclass(frozen=True, eq=False)
class Pick:
    """What a monitor returns: q or, ``negated``, 1 − q, of one of its samples. ``gap``: its signed q(S) − q(D)."""

    turn: Turn
    negated: bool

    @property
    def gap(self) -> float:
        return -self.turn.gap if self.negated else self.turn.gap


def drawn(population: Array, rows: int, rng: np.random.Generator) -> Integers:
    """A sample of independent rows, as counts."""
    counts: Integers = rng.multinomial(rows, population)
    return counts


def simulate(mechanism: Mechanism, analyst: Analyst, population: Array, sample: Integers) -> list[Turn]:
    """The analyst against the mechanism on one sample: every query, with its answer and its truths."""
    turns: list[Turn] = []
    answering, rows = mechanism(sample), int(sample.sum())

    def ask(query: Array) -> float:
        answer = answering(query)
        turns.append(Turn(query, answer, float(query @ sample) / rows, float(query @ population)))
        return answer

    analyst(ask)
    return turns


def worst_error(turns: Sequence[Turn]) -> float:
    """The largest |a − q(D)|: what accuracy on the population is about."""
    return max(turn.error for turn in turns)


def exponential_monitor(
    mechanism: Mechanism, analyst: Analyst, population: Array, samples: Sequence[Integers], epsilon: float, rng: np.random.Generator
) -> Pick:  # fmt: skip
    """Algorithm 2: of all queries on all T samples, and their negations, one with probability ∝ exp(εn·u/2), u = q(S) − q(D)."""
    turns = [turn for sample in samples for turn in simulate(mechanism, analyst, population, sample)]
    gaps = np.array([turn.gap for turn in turns])
    rows = int(samples[0].sum())
    scores = epsilon * rows * np.concatenate([gaps, -gaps]) / 2
    weights = np.exp(scores - scores.max())
    chosen = int(rng.choice(scores.size, p=weights / weights.sum()))
    return Pick(turns[chosen % len(turns)], negated=chosen >= len(turns))


def query_monitor(mechanism: Mechanism, analyst: Analyst, population: Array, sample: Integers, index: int) -> Pick:
    """Algorithm 5 from the first round on: the analyst's query of that index (from 0), or its negation.

    Negated where the answer is below the population's value, so that E of the gap is what E|q(D) − a| is made of.
    """
    turn = simulate(mechanism, analyst, population, sample)[index]
    return Pick(turn, negated=turn.answer < turn.on_population)
