"""Counts over time: the number of rows after each block, by the tree mechanism.

Papers: Dwork, Naor, Pitassi & Rothblum "Differential privacy under continual observation" (2010); Chan, Shi & Song
"Private and continual release of statistics" (2011). The estimate is least squares on all nodes, as in Honaker
"Efficient use of differentially private binary trees" (2015), but with every node that was drawn.

    T          number of blocks in one tree, a power of two: L = log2 T + 1 levels. After T blocks the next tree begins.
    node       blocks i·2^l + 1 … (i + 1)·2^l of a tree. Its count has its own noise, drawn once the last block exists.
    share      largest part of its budget that a block pays for one question: share/L for each of the L nodes it is in

Neighbours differ in one row of one block. That row moves the counts of at most L nodes, by at most 1 each
(``budget.linear()``). Each node is charged to every one of its blocks before it is drawn, with the same event. The
block with the smallest budget decides that event. So no block pays more than its share, however many blocks follow
and however often the question is asked: a node that was drawn once is read from the ledger. Proof:
docs/proofs/blocks.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow._types import Array
from hedgerow.data import counting as exact
from hedgerow.data.source import DataSource
from hedgerow.errors import BudgetExceeded
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.query.counts import OverTime
from hedgerow.query.linear import Linear

WHY = "over time"
PLACES = np.linspace(0.02, 0.98, 49)  # values of λ to try in the Laplace tail bound, as shares of the largest valid λ


@dataclass(frozen=True)
class BlockSource:
    """One block of rows as a tree sees it: its data and the ledger that pays for it."""

    data: DataSource
    ledger: Ledger


@dataclass(frozen=True)
class Node:
    """The noisy count of blocks ``first`` to ``last``, numbered from 0."""

    first: int
    last: int
    value: float
    event: Laplace | Gaussian

    @property
    def variance(self) -> float:
        """The variance of the node's noise."""
        return self.event.sigma**2 if isinstance(self.event, Gaussian) else 2 * self.event.scale**2


def due(blocks: int, span: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last block of every node that is complete after ``blocks`` blocks, in order of completion."""
    for last in range(blocks):
        size = 1
        while size <= span and (last % span + 1) % size == 0:
            yield last - size + 1, last
            size *= 2


def levels(span: int) -> int:
    """Return L, the number of levels of a tree over ``span`` blocks (a power of two)."""
    return span.bit_length()


class Series:
    """One question over time and its nodes, which are read from the blocks' ledgers or drawn."""

    def __init__(self, asked: OverTime, query: Linear, columns: Sequence[BlockSource], noise: Noise) -> None:
        """``query`` is the counted query, bound to the universe; it must count rows."""
        self._asked, self._query, self._columns, self._noise = asked, query, columns, noise

    def stored_nodes(self) -> dict[tuple[int, int], Node]:
        """Return the nodes that the ledgers hold, by first and last block.

        A node is recorded in the ledgers of all its blocks. After a crash it may be in only some of them; the first
        one found is used.
        """
        found: dict[tuple[int, int], Node] = {}
        for number, column in enumerate(self._columns):
            for entry in column.ledger.entries():
                place = self._place(entry)
                event = entry.event
                if place is None or not place[0] <= number <= place[1] or not entry.is_complete:
                    continue
                if isinstance(event, Laplace | Gaussian):
                    found.setdefault(place, Node(*place, float(entry.released[0]), event))
        return found

    def _place(self, entry: Entry) -> tuple[int, int] | None:
        """Return the first and last block of the node that ``entry`` paid for; None if it is of another question."""
        about = entry.about
        asked = about.get("query"), about.get("span"), about.get("share")
        if entry.why != WHY or asked != (self._query, self._asked.span, self._asked.share):
            return None
        return int(about["first"]), int(about["last"])

    @property
    def number(self) -> int:
        """The number of this series in the session, from 1 on, in the order in which the first block was asked."""
        seen = dict.fromkeys(
            (entry.about.get("query"), entry.about.get("span"), entry.about.get("share"))
            for entry in self._columns[0].ledger.entries()
            if entry.why == WHY
        )
        key = self._query, self._asked.span, self._asked.share
        return list(seen).index(key) + 1 if key in seen else len(seen) + 1

    def event(self, first: int, last: int) -> Laplace | Gaussian:
        """Return the noise of a node: what the smallest budget among its blocks buys for one level. Public."""
        each = self._asked.share / levels(self._asked.span)
        budgets = [column.ledger.budget for column in self._columns[first : last + 1]]
        least = min(budgets, key=lambda budget: budget.total)
        return Amount.share_of(least, each).count()

    def missing_nodes(self) -> list[tuple[int, int]]:
        """List the nodes that are complete but were not drawn yet."""
        known = self.stored_nodes()
        return [place for place in due(len(self._columns), self._asked.span) if place not in known]

    def price(self) -> float:
        """Return the cost of asking now to any one row, which is the largest amount that a block pays."""
        costs = [0.0] * len(self._columns)
        for first, last in self.missing_nodes():
            event = self.event(first, last)
            for number in range(first, last + 1):
                costs[number] += self._columns[number].ledger.budget.cost(event)
        return max(costs)

    def draw_nodes(self) -> list[Node]:
        """Return all complete nodes and draw those that are missing; refuse before any draw if a block cannot pay."""
        if self.missing_nodes():
            # Read what other processes recorded: a node that they drew, even if only some blocks have it, is not
            # paid for again.
            for column in self._columns:
                column.ledger.sync()
        missing = self.missing_nodes()
        for number, column in enumerate(self._columns):
            events = [self.event(*place) for place in missing if place[0] <= number <= place[1]]
            if events and not column.ledger.affords(*events):
                cost = math.fsum(map(column.ledger.budget.cost, events))
                raise BudgetExceeded(
                    f"Every block must be able to pay for its part of the series, {cost:.4g} "
                    f"{column.ledger.budget.currency}. Found a block with {column.ledger.remaining:.4g} left of "
                    f"{column.ledger.limit}; nothing was charged. Ask for a smaller share, or stop here."
                )
        for place in missing:
            self._draw(*place)
        known = self.stored_nodes()
        return [known[place] for place in due(len(self._columns), self._asked.span)]

    def _draw(self, first: int, last: int) -> None:
        """Charge every block of the node, then draw its count: one row of one block moves the count by at most 1."""
        event, inside = self.event(first, last), self._columns[first : last + 1]
        about = {
            "query": self._query, "span": self._asked.span, "share": self._asked.share, "first": first, "last": last,
        }  # fmt: skip
        receipts = [column.ledger.charge(event, why=WHY, about=about) for column in inside]
        count = sum(
            int(exact.exact_count(self._query, column.data.marginal(self._query.attributes), 1.0)) for column in inside
        )
        self._noise.add_for_all(count, receipts)


def estimate_counts(nodes: Sequence[Node], blocks: int, span: int, beta: float) -> tuple[Array, Array, Array]:
    """Estimate the counts of each block and of all blocks up to it by least squares, with bars and typical errors.

    Return three arrays of shape (blocks, 2): estimates, bars that hold together with probability 1 − β, and typical
    errors. The last axis is (this block, all blocks up to it). Sums agree: a running count is the sum of the blocks'
    counts. Every estimate is linear in the nodes, so its error is linear in their noise, which is independent from
    node to node.
    """
    within = np.zeros((blocks, len(nodes)))  # weights of the nodes in each block's estimate
    for start in range(0, blocks, span):
        here = [i for i, node in enumerate(nodes) if start <= node.first < start + span]
        size = min(span, blocks - start)
        design = np.zeros((len(here), size))
        for k, i in enumerate(here):
            design[k, nodes[i].first - start : nodes[i].last - start + 1] = 1.0
        weights = design.T / np.array([nodes[i].variance for i in here])
        within[start : start + size, here] = np.linalg.solve(weights @ design, weights)
    upto = np.cumsum(within, axis=0)
    values = np.array([node.value for node in nodes])
    each = beta / (2 * blocks)
    made = np.stack([within, upto], axis=1)
    bars = np.array([[tail(row, nodes, each) for row in rows] for rows in made])
    typical_error = np.sqrt(np.square(made) @ [node.variance for node in nodes]) * math.sqrt(2 / math.pi)
    return made @ values, bars, typical_error


def tail(weights: Array, nodes: Sequence[Node], beta: float) -> float:
    """Return t with Pr[|Σ wZ| > t] ≤ β for the nodes' noise Z.

    Gaussian: the discrete Gaussian is sub-Gaussian with its σ. Laplace of scale b: E e^{λwZ} ≤ 1/(1 − λ²w²b²), so
    that t = (ln(2/β) − Σ ln(1 − λ²w²b²))/λ for any λ below the smallest 1/(|w|b); several values of λ are tried.
    """
    x = math.log(2 / beta)
    scales = np.abs(weights) * [n.event.sigma if isinstance(n.event, Gaussian) else n.event.scale for n in nodes]
    if isinstance(nodes[0].event, Gaussian):
        return math.sqrt(2 * x) * float(np.linalg.norm(scales))
    λ = PLACES / scales.max()
    sums = np.log1p(-np.square(np.multiply.outer(λ, scales))).sum(axis=1)
    return float(((x - sums) / λ).min())
