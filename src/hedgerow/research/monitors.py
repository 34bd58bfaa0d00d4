"""Monitors: thought experiments that prove transfer theorems, run as simulations.

Paper: [F] Fish, Reyzin & Rubinstein, *Sampling without compromising accuracy in adaptive data analysis*, Algorithms 2
and 5.

A monitor plays an analyst against a mechanism on samples of a population that it knows, and picks a query whose value
on the sample is far from that on the population. If the mechanism is private, the expected distance of the pick is at
most e^ε − 1 + Tδ (Lemma 18). If it is not, the pick shows how far an analyst can get.

Symbols: p the population, as probabilities of cells; S a sample, as counts; q a query, one value in [0, 1] for each
cell; q(S), q(D) its means.

Differs: Algorithm 2 chooses among q and 1 − q by the signed q(S) − q(D), and Algorithm 5 returns q or 1 − q, whichever
errs towards the answer. Lemma 18 bounds |E[q(D) − q(S)]|, while the printed monitors are used to bound E|q(D) − q(S)|.
Algorithm 5 begins at the first round, because a sample is no longer made of independent draws once a history is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow._types import Array, Integers

Ask = Callable[[Array], float]
Mechanism = Callable[[Integers], Ask]
"""A function from a sample to a function that answers queries about it."""
Analyst = Callable[[Ask], None]
"""An adaptive analyst: it asks any queries, each after the previous answers."""


@dataclass(frozen=True, eq=False)
class MonitorTurn:
    """A query with its answer, and its true values on the sample and on the population."""

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
    """The query that a monitor returns: q, or 1 − q if ``negated``, on one of its samples."""

    turn: MonitorTurn
    negated: bool

    @property
    def gap(self) -> float:
        """The signed q(S) − q(D) of the picked query."""
        return -self.turn.gap if self.negated else self.turn.gap


def draw_counts(population: Array, rows: int, rng: np.random.Generator) -> Integers:
    """Return a sample of independent rows, as counts."""
    counts: Integers = rng.multinomial(rows, population)
    return counts


def simulate(mechanism: Mechanism, analyst: Analyst, population: Array, sample: Integers) -> list[MonitorTurn]:
    """Play the analyst against the mechanism on one sample. Return every query with its answer and true values."""
    turns: list[MonitorTurn] = []
    answering, rows = mechanism(sample), int(sample.sum())

    def ask(query: Array) -> float:
        answer = answering(query)
        turns.append(MonitorTurn(query, answer, float(query @ sample) / rows, float(query @ population)))
        return answer

    analyst(ask)
    return turns


def worst_error(turns: Sequence[MonitorTurn]) -> float:
    """Return the largest |a − q(D)|, the error on the population."""
    return max(turn.error for turn in turns)


def exponential_monitor(
    mechanism: Mechanism, analyst: Analyst, population: Array, samples: Sequence[Integers], epsilon: float, rng: np.random.Generator
) -> Pick:  # fmt: skip
    """Run Algorithm 2: pick one of all queries on all T samples, and their negations.

    A query is picked with probability ∝ exp(εn·u/2), u = q(S) − q(D).
    """
    turns = [turn for sample in samples for turn in simulate(mechanism, analyst, population, sample)]
    gaps = np.array([turn.gap for turn in turns])
    rows = int(samples[0].sum())
    scores = epsilon * rows * np.concatenate([gaps, -gaps]) / 2
    weights = np.exp(scores - scores.max())
    chosen = int(rng.choice(scores.size, p=weights / weights.sum()))
    return Pick(turns[chosen % len(turns)], negated=chosen >= len(turns))


def query_monitor(mechanism: Mechanism, analyst: Analyst, population: Array, sample: Integers, index: int) -> Pick:
    """Run Algorithm 5 from the first round on: return the analyst's query of that index (from 0), or its negation.

    The query is negated if the answer is below the population's value. Then E|q(D) − a| is at most the expected gap
    plus the error on the sample.
    """
    turn = simulate(mechanism, analyst, population, sample)[index]
    return Pick(turn, negated=turn.answer < turn.on_population)
