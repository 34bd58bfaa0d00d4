"""Adaptive analysts to test with: each tries to find a query that is true of the sample and not of the population.

An analyst asks k queries, each a vector of values in [0, 1] over the cells of a public universe, by calling
``ask(query)``. Its last query is its discovery. An analyst sees answers only, never the sample.

``at_random`` does not adapt, and is the control. ``greedy`` combines the queries that correlated with the sample so
far (the classic false discovery). ``least_squares`` reconstructs which cells the sample has (Dinur & Nissim 2003).
``trace_records`` scores each cell by its correlation with the answers' errors (Dwork et al. 2015, *Robust
traceability*) and asks for the cells that look like members.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hedgerow._types import Array

Ask = Callable[[Array], float]
Player = Callable[[Ask, int, Array, np.random.Generator], None]
"""An analyst, called as ``player(ask, k, population, rng)``: it asks exactly k queries."""


def at_random(ask: Ask, queries: int, population: Array, rng: np.random.Generator) -> None:
    """Ask k random queries."""
    for _ in range(queries):
        ask(_coins(population, rng))


def greedy(ask: Ask, queries: int, population: Array, rng: np.random.Generator) -> None:
    """Let queries vote by the sign of their answer's error; every fourth query is the vote so far."""
    votes = np.zeros(population.size)
    for i in range(1, queries + 1):
        if i == queries or i % 4 == 0:
            ask((votes > 0).astype(np.float64))
            continue
        q = _coins(population, rng)
        votes += np.sign(ask(q) - q @ population) * (q - 0.5)


def least_squares(ask: Ask, queries: int, population: Array, rng: np.random.Generator) -> None:
    """Estimate the sample's share of each cell by least squares; then ask for the cells above their share."""
    Q, errors = [], []
    for _ in range(queries - 1):
        q = _coins(population, rng)
        Q.append(q - 0.5)
        errors.append(ask(q) - q @ population)
    shares = np.linalg.lstsq(np.array(Q), np.array(errors), rcond=None)[0] if Q else np.zeros(population.size)
    ask((shares > 0).astype(np.float64))


def trace_records(ask: Ask, queries: int, population: Array, rng: np.random.Generator) -> None:
    """Score each cell by Σ (a − q(D))·(q(x) − q(D)), clipped; then ask for the cells above the mean score.

    Members of the sample score higher.
    """
    scores = np.zeros(population.size)
    for _ in range(queries - 1):
        q = _coins(population, rng)
        mean = q @ population
        scores += np.clip(ask(q) - mean, -0.5, 0.5) * (q - mean)
    ask((scores > scores @ population).astype(np.float64))


ANALYSTS: dict[str, Player] = {
    "random": at_random,
    "greedy": greedy,
    "least squares": least_squares,
    "tracing": trace_records,
}


def _coins(population: Array, rng: np.random.Generator) -> Array:
    return rng.integers(0, 2, population.size).astype(np.float64)
