"""The theory profile: textbook private multiplicative weights with the guarantee of the theorem.

Every answer is within 3α of the data, all answers together with probability 1 − β (see ``textbook/pmw``). Where n is
private, N/ñ stands for N/n: ñ is an estimate that is off by at most h rows, except with its own part of β. An answer
is then within 3α + h/ñ, and in rows within ñ times that. Convex questions are answered from the same hypothesis,
within an α of their own (``textbook/convex_pmw``). At small n these bounds are too wide to be useful; the practical
profile makes every other choice for accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data.source import DataSource
from hedgerow.engine.public import FreeEngine, PrivateEngine
from hedgerow.engine.sampled_fit import theta_on
from hedgerow.engine.theory_answers import TheoryAnswers
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Entry, Ledger, one_at_a_time
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Estimate, Source
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear, marginal_cells
from hedgerow.textbook.convex_pmw import (
    NUMERICAL,
    ConvexPMWConfig,
    OnlineConvexPMW,
    configure,
    numerical_share,
    require_family,
    suffices,
)
from hedgerow.textbook.oracle_choice import OracleChoice, choices_for
from hedgerow.textbook.pmw import OnlinePMW
from hedgerow.textbook.pmw import configure as configure_linear

ROOM = 1.25  # factor on the smallest α of the convex theorem, and from one α that is tried to the next


class TheoryEngine(PrivateEngine, FreeEngine):
    """Online private multiplicative weights as an engine."""

    def __init__(
        self,
        pmw: OnlinePMW,
        convex: OnlineConvexPMW | None = None,
        off: float = 0.0,
        trusted_losses: Collection[Custom] = (),
    ) -> None:
        """Share one hypothesis between counts and convex questions.

        ``convex`` must share the hypothesis of ``pmw``; without it convex questions are refused. ``off`` is h, the
        number of rows by which the scale of both mechanisms may be off; it is 0 where n is public. ``trusted_losses``
        lists the user-defined losses whose constants the owner trusts.
        """
        self._pmw, self._convex, self.ledger, self._trusted = pmw, convex, pmw.ledger, trusted_losses
        self._doubt = off / pmw.config.scale
        self.public = TheoryAnswers(pmw.hypothesis, pmw.config.scale, self._doubt)

    @property
    def error(self) -> float:
        """The bar of every answer: as a fraction, and times ñ as a number of rows."""
        return self._pmw.config.error + self._doubt

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer a linear query by online PMW."""
        self.require_reach(within)
        answer = self._pmw.ask(query)
        return Estimate(answer.value, self.error, answer.source)

    def make_quote(self) -> TheoryQuote:
        """Return the engine's quote: the same bars around the hypothesis' answers."""
        return TheoryQuote(self)

    def free(self, queries: Sequence[Linear]) -> None:
        """Return None: questions are asked one by one, because each answer may change the hypothesis for the next."""

    @one_at_a_time  # no other question comes between the cells
    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a table cell by cell: each cell is a count of its own."""
        self.require_reach(within)
        universe = self.hypothesis.universe
        answers = [self._pmw.ask(cell) for cell in marginal_cells(universe, table.attributes)]
        values = np.array([answer.value for answer in answers]).reshape(universe.sizes(table.attributes))
        source: Source = "measured" if any(a.source == "measured" for a in answers) else "hypothesis"
        return Estimate(values, self.error, source)

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Return a θ whose risk is within the convex theorem's α of the best, from the same hypothesis and budget."""
        self.require_convex(question)
        question.require_listable()
        assert self._convex is not None
        alpha = self.alpha(within)
        answer = self._convex.ask(question.risk, question.over)
        source: Source = "hypothesis" if answer.source == "hypothesis" else "measured"
        return Estimate(answer.theta, alpha if alpha < math.inf else None, source)

    def require_convex(self, question: BoundMinimize) -> None:
        """Refuse a convex question if no losses were declared, or if the owner does not trust its loss."""
        if self._convex is None:
            raise InvalidInput(
                "The losses of convex questions must be declared in the theory profile, because their constants "
                "calibrate it. Found none. "
                'Open the session with workload=[hr.minimize(…), …], or with profile="practical".'
            )
        if not question.is_trusted(self._trusted):
            raise InvalidInput(
                f"A user-defined loss must be trusted by the owner in the theory profile. Found {question.risk!r}. "
                "Have the owner open the session with trusted_losses=[loss], or use one of hedgerow.losses."
            )

    def alpha(self, within: float | None) -> float:
        """Return the excess risk that convex answers are promised, and refuse a smaller ``within``.

        The mechanism's α is relative to ñ rows; the promise is wider, because there may be fewer rows.
        """
        assert self._convex is not None
        alpha = self._convex.config.alpha / (1 - self._doubt) if self._doubt < 1 else math.inf
        self.require_reach(within, alpha, "alpha")
        return alpha

    @one_at_a_time
    def resume(self, entries: Sequence[Entry]) -> None:
        """Relearn the entries of both kinds of question in the order in which they taught the shared hypothesis."""
        for entry in entries:
            self._pmw.relearn(entry)
            if self._convex is not None:
                self._convex.relearn(entry)
        self._pmw.resume(entries)
        if self._convex is not None:
            self._convex.resume(entries)

    def state(self) -> None:
        """Return None: the theorem bounds the number of updates, so relearning is cheap."""

    def require_reach(self, within: float | None, reach: float | None = None, called: str = "the bar") -> None:
        """Refuse a ``within`` below the bar that the profile promises."""
        reach = self.error if reach is None else reach
        if within is not None and within < reach:
            raise InvalidInput(
                f"within must be at least {called} = {reach:.4g} in the theory profile. Found {within:g}. "
                'Open the session with profile="practical", or with a smaller alpha.'
            )


class TheoryQuote:
    """The engine's bars around the hypothesis' answers: nothing private is consulted, and nothing is learned."""

    def __init__(self, engine: TheoryEngine) -> None:
        self._engine = engine

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer."""
        return self._engine.hypothesis_answer(query)

    @property
    def least_rows(self) -> float:
        """The smallest number of rows that the data may have."""
        return self._engine.least_rows

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Predict the answer to a linear query."""
        self._engine.require_reach(within)
        return Estimate(self._engine.hypothesis_answer(query), self._engine.error, "hypothesis")

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Predict the answers to numerator and denominator."""
        return self.linear(numerator, None), self.linear(denominator, None)

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Predict the answer to a table."""
        self._engine.require_reach(within)
        return Estimate(self._engine.hypothesis.marginal(table.attributes), self._engine.error, "hypothesis")

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Predict the answer to a convex question."""
        self._engine.require_convex(question)
        return Estimate(theta_on(question, self._engine.hypothesis), self._engine.alpha(within), "hypothesis")


def build_theory_engine(
    data: DataSource,
    ledger: Ledger,
    noise: Noise,
    *,
    convex: Sequence[BoundMinimize],
    queries: int,
    beta: float,
    alpha: float | None,
    trusted_losses: Collection[Custom],
) -> TheoryEngine:
    """Build the theory engine for ``queries`` linear questions and for convex questions like those in ``convex``.

    ``alpha`` is the α of both theorems: counts are within 3α, and the excess risk of convex questions within α. It is
    obeyed or refused. The constants of a later loss must not exceed those of a question in ``convex``.
    """
    budget, share, scale, off = ledger.budget, 1.0, float(data.rows), 0.0
    if budget.neighbours == "add-remove":  # n is private: a hundredth of the budget, and a tenth of β, estimate it
        share, event = 0.99, Amount.share_of(budget, 0.01).count()
        scale = max(1.0, float(noise.add(data.rows, ledger.charge(event, why="theory: number of rows"))))
        off, beta = _reach(event, 0.1 * beta), 0.9 * beta
    split = 2 if convex else 1  # budget and β: half for each kind of question
    config = configure_linear(
        budget, cells=data.universe.size, scale=scale, queries=queries, beta=beta / split, alpha=alpha,
        share=share / split,
    )  # fmt: skip
    pmw = OnlinePMW(config, data, ledger, noise)
    if not convex:
        return TheoryEngine(pmw, off=off)
    beside = convex_pmw(
        convex, data, ledger, noise,
        hypothesis=pmw.hypothesis, rows=scale, queries=queries, beta=beta / split, share=share / split,
        alpha=None if alpha is None else alpha * max(0.0, 1 - off / scale),
    )  # fmt: skip
    return TheoryEngine(pmw, beside, off, trusted_losses)


def _reach(event: Laplace | Gaussian, beta: float) -> float:
    """Return t with P[|Z| ≥ t] ≤ β for the event's noise Z.

    The tail bounds are 2e^{−t/b} for Laplace noise and 2e^{−t²/2σ²} for Gaussian noise.
    """
    if isinstance(event, Laplace):
        return event.scale * math.log(2 / beta)
    return event.sigma * math.sqrt(2 * math.log(2 / beta))


_configured = lru_cache(maxsize=256, typed=True)(configure)  # a slow search that depends on public numbers alone


def convex_pmw(
    questions: Sequence[BoundMinimize],
    data: DataSource,
    ledger: Ledger,
    noise: Noise,
    *,
    hypothesis: Hypothesis,
    rows: float,
    queries: int,
    beta: float,
    share: float,
    alpha: float | None = None,
) -> OnlineConvexPMW:
    """Build the convex mechanism on a share of the budget and on a hypothesis that it shares with counts.

    It answers the losses in ``questions``, and others with constants up to theirs. An update of either kind lowers
    KL(D ‖ D̂) ≤ ln|X| by at least the amount that its own theorem states, so both theorems' bounds on the number of
    updates hold.
    """
    family = ConvexFamily(questions, ledger.budget, data.universe.size, queries, beta, share)
    return OnlineConvexPMW(family.configure(rows, alpha), data, ledger, noise, hypothesis)


class ConvexFamily:
    """Declared convex questions, with all public facts that calibrate the mechanism for them but n and α."""

    def __init__(
        self,
        questions: Sequence[BoundMinimize],
        budget: Budget,
        cells: int,
        queries: int,
        beta: float,
        share: float,
    ) -> None:
        if any(question.scale is None for question in questions):
            raise InvalidInput(
                "Convex questions of the theory profile must be over bounded sets. Found an unbounded set. "
                "Use, for example, over=L2Ball(radius)."
            )
        self.S = max(question.scale for question in questions if question.scale is not None)
        self._asked = [(question.risk, question.over) for question in questions]
        self._budget = budget
        self._facts: dict[str, Any] = {
            "cells": cells, "queries": queries, "beta": beta, "scale_S": self.S, "share": share,
        }  # fmt: skip
        self.choices = choices_for(self._asked, budget)

    def configure(self, rows: float, alpha: float | None) -> ConvexPMWConfig:
        """Return the configuration with this α, or with nearly the smallest possible one. Refuse if there is none."""
        best = [c.alpha for oracle in self.choices if (c := self._calibrate_with(oracle, rows, None, NUMERICAL))]
        if not best:  # state the rows that would be enough
            _configured(self._budget, rows=rows, oracle=self.choices[0], **self._facts)
        config = None if alpha is None else self.first(rows, min(alpha, self.S))
        if config is None:
            config = _least(lambda wanted: self.first(rows, wanted), ROOM * min(best), self.S)
            if config is None:
                raise InvalidInput(
                    f"The convex questions of the workload must have an oracle that answers them, at {rows:g} rows and "
                    f"under {self._budget.neighbours} neighbours. Found none for any alpha. Use smooth losses, replace "
                    'neighbours, or profile="practical".'
                )
            if alpha is not None:
                raise InvalidInput(
                    f"alpha must be at least {config.alpha:.4g} for the convex questions of the workload, at {rows:g} "
                    f"rows. Found {alpha!r}. Use more rows, a larger budget or alpha, or smooth losses of fewer "
                    "features."
                )
        return config

    def first(self, rows: float, wanted: float) -> ConvexPMWConfig | None:
        """Return the first configuration with this α that answers every declared loss."""
        numerical = numerical_share(self._budget, self._asked, self.S, wanted, rows)
        if numerical is None:
            return None
        tried = (self._calibrate_with(oracle, rows, wanted, numerical) for oracle in self.choices)
        return next((config for config in tried if config is not None), None)

    def _calibrate_with(
        self, oracle: OracleChoice, rows: float, wanted: float | None, numerical: float
    ) -> ConvexPMWConfig | None:
        """Return the configuration, or None if it does not exist or cannot answer every declared loss."""
        given: dict[str, Any] = {**self._facts, "rows": rows, "oracle": oracle, "numerical": numerical}
        if wanted is not None and not suffices(self._budget, wanted, **given):
            return None  # without the search for the rows that would be enough
        try:
            config = _configured(self._budget, alpha=wanted, **given)
            if wanted is not None:
                for risk, over in self._asked:
                    require_family(config, risk, over, self._budget, rows)
        except InvalidInput:
            return None
        return config


def _least(first: Callable[[float], ConvexPMWConfig | None], low: float, high: float) -> ConvexPMWConfig | None:
    """Return the configuration of the least α, among powers of ROOM from ``low`` up to ``high``, that has one."""
    steps = max(0, math.ceil(math.log(high / low) / math.log(ROOM))) if low < high else 0
    tried = {steps: first(high)}
    none, enough = -1, steps
    while enough - none > 1:
        middle = (none + enough) // 2
        tried[middle] = first(low * ROOM**middle)
        none, enough = (none, middle) if tried[middle] is not None else (middle, enough)
    return tried[enough]
