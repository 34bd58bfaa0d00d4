"""Counts over time: how many rows there were after each block, by the tree mechanism.

Papers: Dwork, Naor, Pitassi & Rothblum "Differential privacy under continual observation" (2010); Chan, Shi & Song "Private and
continual release of statistics" (2011); the estimate from all nodes is least squares, as in Honaker "Efficient use of
differentially private binary trees" (2015) but with every node that was drawn.

    T          the blocks of a tree, a power of two: L = log2 T + 1 levels. After T blocks the next tree begins.
    node       blocks i·2^l + 1 … (i + 1)·2^l of a tree: their count has noise of its own, drawn once, when the last of them is there
    share      of its budget that a block pays, at most, for one question: share/L for each of the L nodes that it is in

Neighbours differ in one row of one block, which moves the counts of at most L nodes, by at most 1 each (``budget.linear()``). Each node is
charged, before it is drawn, to every block in it, at the same event: the block with the least to spend for a level decides which.
So no block pays more than its share, however many come after it and however often it is asked: a node that was drawn is read
from the ledger. Proof: docs/proofs/blocks.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow._types import Array
from hedgerow.data import exact_counts as exact
from hedgerow.data.source import DataSource
from hedgerow.errors import BudgetExceeded
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.questions.counts import OverTime
from hedgerow.questions.linear import Linear

WHY = "over time"
PLACES = np.linspace(0.02, 0.98, 49)  # where the exponent of a Laplace tail is tried, of all that it may be


@dataclass(frozen=True)
class Column:
    """One block, as a tree sees it."""

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
        return self.event.sigma**2 if isinstance(self.event, Gaussian) else 2 * self.event.scale**2


def due(blocks: int, span: int) -> Iterator[tuple[int, int]]:
    """The first and last block of every node that is whole once there are so many blocks, in the order in which they become so."""
    for last in range(blocks):
        size = 1
        while size <= span and (last % span + 1) % size == 0:
            yield last - size + 1, last
            size *= 2


def levels(span: int) -> int:
    return span.bit_length()


class Series:
    """One question over time: its nodes, read from the blocks' ledgers or drawn."""

    def __init__(self, asked: OverTime, query: Linear, columns: Sequence[Column], noise: Noise) -> None:
        """``query``: what is counted, bound to the universe; it counts rows."""
        self._asked, self._query, self._columns, self._noise = asked, query, columns, noise

    def known(self) -> dict[tuple[int, int], Node]:
        """What was drawn, as the ledgers have it. A node is written down in all of its blocks: a crash may leave it in some."""
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
        about = entry.about
        asked = about.get("query"), about.get("span"), about.get("share")
        if entry.why != WHY or asked != (self._query, self._asked.span, self._asked.share):
            return None
        return int(about["first"]), int(about["last"])

    @property
    def number(self) -> int:
        """Which series of the session it is, from 1 on, in the order in which the first block was asked."""
        seen = dict.fromkeys(
            (entry.about.get("query"), entry.about.get("span"), entry.about.get("share"))
            for entry in self._columns[0].ledger.entries()
            if entry.why == WHY
        )
        key = self._query, self._asked.span, self._asked.share
        return list(seen).index(key) + 1 if key in seen else len(seen) + 1

    def event(self, first: int, last: int) -> Laplace | Gaussian:
        """The noise of a node: what the least of its blocks has for a level. Public."""
        each = self._asked.share / levels(self._asked.span)
        budgets = [column.ledger.budget for column in self._columns[first : last + 1]]
        least = min(budgets, key=lambda budget: budget.total)
        return Amount.share_of(least, each).count()

    def missing(self) -> list[tuple[int, int]]:
        known = self.known()
        return [place for place in due(len(self._columns), self._asked.span) if place not in known]

    def price(self) -> float:
        """What asking it now costs any one row: the most that a block pays."""
        costs = [0.0] * len(self._columns)
        for first, last in self.missing():
            event = self.event(first, last)
            for number in range(first, last + 1):
                costs[number] += self._columns[number].ledger.budget.cost(event)
        return max(costs)

    def drawn(self) -> list[Node]:
        """All nodes that are due, those that are not known drawn now; or a refusal before any is."""
        if self.missing():
            for (
                column
            ) in self._columns:  # what another process draws is not paid for again, nor a node in some blocks alone
                column.ledger.look()
        missing = self.missing()
        for number, column in enumerate(self._columns):
            events = [self.event(*place) for place in missing if place[0] <= number <= place[1]]
            if events and not column.ledger.affords(*events):
                cost = math.fsum(map(column.ledger.budget.cost, events))
                raise BudgetExceeded(
                    f"Every block must afford its part of the series, {cost:.4g} {column.ledger.budget.currency}. Found "
                    f"{column.ledger.remaining:.4g} left in one, and nothing was charged. Ask for a smaller share, or stop here."
                )
        for place in missing:
            self._draw(*place)
        known = self.known()
        return [known[place] for place in due(len(self._columns), self._asked.span)]

    def _draw(self, first: int, last: int) -> None:
        """Charge every block of the node, then draw its count: one row of one of them moves it by at most 1."""
        event, inside = self.event(first, last), self._columns[first : last + 1]
        about = {
            "query": self._query, "span": self._asked.span, "share": self._asked.share, "first": first, "last": last,
        }  # fmt: skip
        receipts = [column.ledger.charge(event, why=WHY, about=about) for column in inside]
        count = sum(
            int(exact.counted(self._query, column.data.marginal(self._query.attributes), 1.0)) for column in inside
        )
        self._noise.add_for_all(count, receipts)


def estimated(nodes: Sequence[Node], blocks: int, span: int, beta: float) -> tuple[Array, Array, Array]:
    """The counts of each block and of all up to it (an axis of two), by least squares; bars that hold together with 1 − β; typical errors.

    Sums agree: what is counted up to a block is what each of them has. An estimate is linear in the nodes, and so its error in their
    noise, of which every node has its own.
    """
    within = np.zeros((blocks, len(nodes)))  # each block's estimate, by nodes
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
    usual = np.sqrt(np.square(made) @ [node.variance for node in nodes]) * math.sqrt(2 / math.pi)
    return made @ values, bars, usual


def tail(weights: Array, nodes: Sequence[Node], beta: float) -> float:
    """t with Pr[|Σ wZ| > t] ≤ β for the nodes' noise Z.

    Gaussian: the discrete one is sub-Gaussian with its σ. Laplace of scale b: E e^{λwZ} ≤ 1/(1 − λ²w²b²), so that
    t = (ln(2/β) − Σ ln(1 − λ²w²b²))/λ for any λ below the least 1/|w|b; several are tried.
    """
    x = math.log(2 / beta)
    scales = np.abs(weights) * [n.event.sigma if isinstance(n.event, Gaussian) else n.event.scale for n in nodes]
    if isinstance(nodes[0].event, Gaussian):
        return math.sqrt(2 * x) * float(np.linalg.norm(scales))
    λ = PLACES / scales.max()
    sums = np.log1p(-np.square(np.multiply.outer(λ, scales))).sum(axis=1)
    return float(((x - sums) / λ).min())
