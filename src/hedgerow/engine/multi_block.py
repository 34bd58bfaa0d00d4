"""Answer questions about several blocks as one table by asking the engine of each block.

    f_b, n_b               a block's fraction, and its number of rows: public, or known up to an interval
    Σ n_b·f_b / Σ n_b      the fraction of all rows

Linear questions are answered by this formula, with the interval that follows from the blocks' intervals. Means,
quantiles and ratios are composed of such answers, so they are about all rows and not means of means. The bars of the
blocks hold together with the sum of their β, and so does every bar that follows from them (docs/proofs/blocks.md).
Nothing is drawn here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.convex.minimize import BoundMinimize, ConvexRespondent
from hedgerow.engine.certificate import Certificate, CertificateLimit
from hedgerow.engine.coefficient_widths import bootstrap_widths
from hedgerow.engine.interface import Answers, Engine, bar_for_ratio
from hedgerow.engine.public import PublicAnswers, require_sold
from hedgerow.engine.sampled_fit import fit_on_sample
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.model.mixture import Mixture
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.query.bound import BOOTSTRAP, GUARANTEED, Bound, Estimate, Source
from hedgerow.query.counts import BoundMarginal, MarginalRespondent
from hedgerow.query.linear import Linear, LinearRespondent
from hedgerow.query.support import Support

SMALLEST = 1e-300  # replaces a bar of 0 for a block whose free answer is exact


class Respondent(LinearRespondent, MarginalRespondent, ConvexRespondent, Protocol):
    """Anything that answers linear, marginal and convex questions about one block."""


class CachingRespondent(Respondent, Protocol):
    """A respondent that caches its answers."""

    def price(self, bound: Bound[Any], within: float) -> float:
        """Return the cost of asking ``bound`` for a bar of ``within`` now."""
        ...

    def prepare(self, queries: Sequence[Linear]) -> None:
        """Announce the queries that are asked next."""
        ...


@dataclass(frozen=True)
class BlockPart:
    """One block: its engine, the cache of the engine's answers, and the ledger that pays."""

    engine: Engine
    cache: CachingRespondent
    ledger: Ledger


def _interval_of_rows(public: Answers) -> tuple[float, float, float]:
    """Return the number of rows as estimate, lower bound and upper bound."""
    found = public.rows
    off = float(public.error_in_rows(1.0, 0.0))
    return found, max(0.0, found - off), found + off


class BlockMixture:
    """Combine the answers of several respondents into answers about all of their rows."""

    def __init__(
        self,
        respondents: Sequence[Respondent],
        rows: Callable[[], Sequence[tuple[float, float, float]]],
        free: Callable[[Bound[Any]], Sequence[float]],
    ) -> None:
        """``rows`` returns estimate, lower bound and upper bound of each respondent's number of rows.

        ``free`` returns the bar that each respondent gives for free.
        """
        self._respondents, self._rows, self._free = tuple(respondents), rows, free

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypotheses' answer, weighted by the estimated numbers of rows."""
        known = np.array([n for n, _, _ in self._rows()])
        return float(known @ [each.hypothesis_answer(query) for each in self._respondents] / known.sum())

    @property
    def least_rows(self) -> float:
        """The smallest number of rows that all blocks together may have."""
        return math.fsum(each.least_rows for each in self._respondents)

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer a linear query about all rows."""
        bars = self._bars(query, within)
        return self._mix([each.linear(query, bar) for each, bar in zip(self._respondents, bars, strict=True)])

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a whole table about all rows."""
        bars = self._bars(table, within)
        return self._mix([each.marginal(table, bar) for each, bar in zip(self._respondents, bars, strict=True)])

    def _bars(self, bound: Bound[Any], within: float | None) -> Sequence[float | None]:
        """Return the bar to ask of each block so that the combined bar is ``within``. Public.

        Every block gets the same error in rows, or its free bar where that is smaller. The cost of a measurement
        depends on its error in rows and not on the size of the block, so no block pays more than another.
        """
        if within is None:
            return [None] * len(self._respondents)
        rows = np.array([n for n, _, _ in self._rows()])
        free = rows * self._free(bound)
        left, level = within * rows.sum(), math.inf
        for k, most in enumerate(np.sort(free)):  # error that the blocks with small free bars leave goes to the others
            if most * (len(free) - k) > left:
                level = left / (len(free) - k)
                break
            left -= most
        return [float(max(f, 0.0) if f <= level else level) / n or SMALLEST for f, n in zip(free, rows, strict=True)]

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Answer numerator and denominator so accurately that their ratio has a bar of ``within``, if one is given."""
        top, bottom = self.linear(numerator, None), self.linear(denominator, None)
        if within is None:
            return top, bottom
        known = [(float(each.value), 1.0 if each.error is None else float(each.error)) for each in (top, bottom)]
        enough = bar_for_ratio(known[0], known[1], within)
        if enough is None:
            return top, bottom
        return tuple(  # type: ignore[return-value]
            self.linear(query, enough) if off > enough and query.attributes else said
            for query, said, (_, off) in zip((numerator, denominator), (top, bottom), known, strict=True)
        )

    def _mix(self, said: Sequence[Estimate]) -> Estimate:
        """Combine the blocks' estimates: the value weighted by rows, and the interval implied by the blocks'."""
        rows = self._rows()
        shape = np.shape(said[0].value)
        values = np.stack([np.broadcast_to(each.value, shape) for each in said])
        ends = [(0.0, 1.0) if e.error is None else (np.maximum(e.value - e.error, 0.0), np.minimum(e.value + e.error, 1.0)) for e in said]  # fmt: skip
        lows, highs = (np.stack([np.broadcast_to(end[i], shape) for end in ends]) for i in (0, 1))
        known, least, most = (np.array(each, dtype=float) for each in zip(*rows, strict=True))
        value = np.tensordot(known / known.sum(), values, axes=1)
        low, high = 1 - greatest_mean(1 - lows, least, most), greatest_mean(highs, least, most)
        value = np.clip(value, low, high)
        error = np.maximum(high - value, value - low)
        is_known = float(np.max(error, initial=0.0)) < 1
        source: Source = "measured" if any(each.source == "measured" for each in said) else "hypothesis"
        typical_error = None
        if all(each.typical is not None for each in said):  # the blocks' noise is independent; this is not a bound
            parts = [share * np.asarray(each.typical) for share, each in zip(known / known.sum(), said, strict=True)]
            typical_error = np.sqrt(np.sum(np.square(parts), axis=0))
        if shape:
            return Estimate(value, error if is_known else None, source, typical=typical_error)
        return Estimate(float(value), float(error) if is_known else None, source, typical=None if typical_error is None else float(typical_error))  # fmt: skip


def greatest_mean(values: Array, least: Array, most: Array) -> Array:
    """Return, cell by cell, the largest Σ n_b·v_b/Σ n_b for n_b between ``least`` and ``most``.

    The result is 1 where there may be no row at all. The expression is a weighted mean of the values, so at its
    maximum a block whose value is above the mean has as many rows as possible, and a block below it as few as
    possible. The maximum is therefore among the candidates that give the k largest values their upper bounds and the
    others their lower bounds.
    """
    order = np.argsort(-values, axis=0, kind="stable")
    sorted_values = np.take_along_axis(values, order, axis=0)
    low, high = (np.take_along_axis(np.broadcast_to(n.reshape((-1,) + (1,) * (values.ndim - 1)), values.shape), order, axis=0) for n in (least, most))  # fmt: skip
    top, bottom = np.cumsum(high * sorted_values, axis=0), np.cumsum(high, axis=0)
    rest_top = np.sum(low * sorted_values, axis=0) - np.cumsum(low * sorted_values, axis=0)
    rest = np.sum(low, axis=0) - np.cumsum(low, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (top + rest_top) / (bottom + rest)
    found = np.max(np.nan_to_num(means, nan=1.0), axis=0)
    return np.asarray(np.where(np.sum(low, axis=0) > 0, np.minimum(found, 1.0), 1.0))


class BlockAnswers(BlockMixture, PublicAnswers):
    """The public part of several blocks: free answers about all of their rows."""

    def __init__(
        self, blocks: Sequence[PublicAnswers], respondents: Sequence[Respondent] | None = None, *, n_is_public: bool
    ) -> None:
        """``blocks`` are the public parts of the blocks' engines.

        ``respondents`` answer in their place, for example from a cache.
        """

        def free(bound: Bound[Any]) -> list[float]:
            bars = [bound.ask(each.make_quote(), None).error for each in self._quoting_engines()]
            return [1.0 if bar is None else float(np.max(bar)) for bar in bars]

        super().__init__(blocks if respondents is None else respondents, self._intervals_of_rows, free)
        self._blocks, self._n_is_public = tuple(blocks), n_is_public

    def _quoting_engines(self) -> Sequence[Answers]:
        """Return the objects that predict the answer of each block."""
        return self._blocks

    def _intervals_of_rows(self) -> list[tuple[float, float, float]]:
        """Return estimate, lower bound and upper bound of every block's number of rows."""
        return [_interval_of_rows(each) for each in self._blocks]

    @property
    def rows(self) -> float:
        """The estimated number of rows of all blocks."""
        return math.fsum(part.rows for part in self._blocks)

    @property
    def typical_of_rows(self) -> float:
        """The typical error of ``rows``: the blocks' errors are independent."""
        return math.hypot(*(part.typical_of_rows for part in self._blocks))

    @property
    def hypothesis(self) -> Hypothesis:
        """The mixture of the blocks' hypotheses, weighted by their rows."""
        return Mixture([part.hypothesis for part in self._blocks], self._shares)

    def support(self, tables: Sequence[Names]) -> Support | None:
        """Return the weakest support of the blocks, with what every block lacks."""
        found = [part.support(tables) for part in self._blocks]
        known = [each for each in found if each is not None]
        return functools.reduce(Support.join_with, known) if known and len(known) == len(found) else None

    @property
    def measured(self) -> list[tuple[Names, float]]:
        """The sets that every block measured; the noises of the blocks are independent."""
        first, *others = (dict(part.measured) for part in self._blocks)
        return [
            (names, math.hypot(noise, *(each[names] for each in others)))
            for names, noise in first.items()
            if all(names in each for each in others)
        ]

    def replicates(self) -> list[Hypothesis]:
        """Return mixtures of the blocks' replicates; none if a block has none."""
        return [
            Mixture(each, self._shares) for each in zip(*(part.replicates() for part in self._blocks), strict=False)
        ]

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Return the θ of least loss on the mixture of the blocks' hypotheses, without a bound on its excess risk."""
        if within is not None:
            raise InvalidInput(
                f"within must be left out of a convex question about several blocks. Found {len(self._blocks)} blocks. "
                "Buy it of one block: session.select_blocks(name)."
            )
        mixture, simulation = self.hypothesis, None
        if question.risk.is_listable:
            theta = question.fit_on(mixture)[0].theta
        else:
            found = fit_on_sample(question, mixture)
            theta, simulation = found.theta, found.simulation
        each, drawn = None, self.replicates()
        if drawn and question.risk.glm is not None:
            each = bootstrap_widths(question, mixture, theta, drawn, self.support([question.attributes]))
        basis = GUARANTEED if each is None else BOOTSTRAP
        return Estimate(theta, None, "hypothesis", coefficients=each, basis=basis, simulation=simulation)

    @property
    def _shares(self) -> list[float]:
        """Each block's share of the estimated rows."""
        return [part.rows / self.rows for part in self._blocks]

    @property
    def certificate(self) -> Certificate | None:
        """The certificate that follows from the blocks' certificates; None if one is missing.

        Where the numbers of rows are private, nothing is assumed of them but that they are positive.
        """
        found = [part.certificate for part in self._blocks]
        certificates = [each for each in found if each is not None]
        if len(certificates) < len(found):
            return None
        limits = []
        for first in certificates[0].limits:
            if first.kind == "means":  # the certified means differ from block to block
                continue
            alike = [
                one for each in certificates for one in each.limits if (one.kind, one.size) == (first.kind, first.size)
            ]
            # A limit that covers only some attribute sets covers different sets in each block.
            if len(alike) < len(found) or any(one.sets < one.of for one in alike):
                continue
            bars = [one.bar for one in alike]
            bar = math.fsum(s * b for s, b in zip(self._shares, bars, strict=True)) if self._n_is_public else max(bars)
            limits.append(
                CertificateLimit(
                    first.kind, first.size, bar, first.sets, first.of, math.fsum(one.beta for one in alike)
                )
            )
        if not any(limit.kind == "products" for limit in limits):
            return None
        typical_error = [each.typical for each in certificates]
        typical = (
            None
            if None in typical_error
            else math.fsum(s * (t or 0.0) for s, t in zip(self._shares, typical_error, strict=True))
        )
        return Certificate(tuple(limits), typical, math.fsum(each.beta_of_rows for each in certificates))

    def error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """Return the bar in rows from |ñv − nt| ≤ |ñ − n|v + n|v − t|."""
        known, _, most = (math.fsum(each) for each in zip(*self._rows(), strict=True))
        reach: float | Array = (most - known) * value + most * error
        return reach

    total_error_in_rows = error_in_rows


class MultiBlockEngine(BlockAnswers):
    """The ``Engine`` of several blocks."""

    def __init__(self, parts: Sequence[BlockPart]) -> None:
        self._parts = tuple(parts)
        neighbours = parts[0].ledger.budget.neighbours
        super().__init__(
            [part.engine.public for part in parts],
            [part.cache for part in parts],
            n_is_public=neighbours == "replace",
        )

    def _quoting_engines(self) -> Sequence[Answers]:
        """Return the engines, which predict answers that a purchase would change."""
        return [part.engine for part in self._parts]

    @property
    def public(self) -> BlockAnswers:
        """All that was released about the blocks, as an object that answers for free."""
        return BlockAnswers(self._blocks, n_is_public=self._n_is_public)

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer a linear query; refuse before any block is charged if one of them cannot pay."""
        self._require_paid(query, within)
        return super().linear(query, within)

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a table; refuse before any block is charged if one of them cannot pay."""
        self._require_paid(table, within)
        return super().marginal(table, within)

    def _require_paid(self, bound: Bound[Any], within: float | None) -> None:
        """Refuse, before any block is charged, a question that not every block can pay for."""
        if within is None:
            return
        self._require_public()
        for part, bar in zip(self._parts, self._bars(bound, within), strict=True):
            assert bar is not None
            price = part.cache.price(bound, bar)
            if price > part.ledger.remaining * (1 + 1e-9):
                raise BudgetExceeded(
                    "Every block must be able to pay for the answer, "
                    f"{price:.4g} {part.ledger.budget.currency}. "
                    f"Found a block with {part.ledger.remaining:.4g} left of {part.ledger.limit}; nothing was charged. "
                    "Ask for a looser error, or about other blocks."
                )

    def _require_public(self) -> None:
        """Refuse a bought bar where the weights of the blocks are private."""
        if not self._n_is_public:
            raise InvalidInput(
                "within must be asked about one block where the number of rows is private, because the weights of the "
                f"blocks are known only up to intervals. Found {len(self._parts)} blocks. "
                "Buy the answer for each block: session.select_blocks(name)."
            )

    def price(self, bound: Bound[Any], within: float) -> float:
        """Return the cost to any one row, which is the largest amount that a block is charged."""
        self._require_public()
        quotes = [part.engine.make_quote() for part in self._parts]
        require_sold(bound.ask(BlockMixture(quotes, self._rows, self._free), within), within)
        return max(float(getattr(quote, "price", 0.0)) for quote in quotes)

    def make_quote(self) -> BlockMixture:
        """Return the combination of the blocks' quotes."""
        return BlockMixture([part.engine.make_quote() for part in self._parts], self._rows, self._free)

    def free(self, queries: Sequence[Linear]) -> None:
        """Return None: each block answers by itself, in a batch where it can (``expect``)."""

    def expect(self, queries: Sequence[Linear]) -> None:
        """Announce the next queries to every block."""
        for part in self._parts:
            part.cache.prepare(queries)

    def resume(self, entries: Sequence[Entry]) -> None:
        """Do nothing: every block's engine learns by itself (``Accounts.retry_when_behind``)."""

    def state(self) -> None:
        """Return None: every block keeps its own state."""
