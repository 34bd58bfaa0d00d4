"""The theory profile: textbook private multiplicative weights with the guarantee of the theorem.

Every answer is within 3α of the data, all at once, with probability 1 − β (see ``pmw``). Where n is private, N/ñ stands for
N/n, ñ an estimate that is off by at most h rows except with its own part of β: an answer is then within 3α + h/ñ, and in
rows within ñ times that. Convex questions are answered within an α of their own (``convex_pmw``), by the same hypothesis. At small n this says little; the practical profile
makes every other choice for accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data.source import DataSource
from hedgerow.engines.engine import AnswersForNothing
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Entry, Ledger, one_at_a_time
from hedgerow.privacy.noise import Noise
from hedgerow.questions.bound import Estimate, Source
from hedgerow.questions.counts import BoundMarginal
from hedgerow.questions.linear import Linear, marginal_cells
from hedgerow.textbook.convex_pmw import OnlineConvexPMW, configure
from hedgerow.textbook.oracles import NoisyGradientDescent
from hedgerow.textbook.pmw import OnlinePMW
from hedgerow.textbook.pmw import configure as configure_linear

ROOM = 1.25  # times the least α of the convex theorem: at the least itself the oracle takes ten times the steps


class Theory(AnswersForNothing):
    """Online PMW behind the interface that a session asks."""

    def __init__(
        self,
        pmw: OnlinePMW,
        convex: OnlineConvexPMW | None = None,
        off: float = 0.0,
        vouched: Collection[Custom] = (),
    ) -> None:
        """``convex`` shares the hypothesis of ``pmw``; without it convex questions are refused.

        ``off``: h, how many rows the scale of both may be off, 0 where n is public.
        """
        self._pmw, self._convex, self.ledger, self._vouched = pmw, convex, pmw.ledger, vouched
        self._doubt = off / pmw.config.scale

    @property
    def error(self) -> float:
        """What holds for every answer: of a fraction, and times ñ of a number of rows."""
        return self._pmw.config.error + self._doubt

    def error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """|ñv − N| ≤ 3αñ, and h more where a measured v was cut off at 1."""
        return error * self.rows

    def total_error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """|ñv − nt| ≤ |ñ − n||v| + n|v − t|: where all numbers are far from 0, the first term is by far the larger."""
        h = self._doubt * self.rows
        reach: float | Array = h * value + (self.rows + h) * error
        return reach

    @property
    def hypothesis(self) -> Hypothesis:
        return self._pmw.hypothesis

    @property
    def rows(self) -> float:
        return self._pmw.config.scale

    @property
    def least_rows(self) -> float:
        return self.rows * (1 - self._doubt)

    def believed(self, query: Linear) -> float:
        return self.hypothesis.answer(query)

    def linear(self, query: Linear, within: float | None) -> Estimate:
        self.require_reach(within)
        answer = self._pmw.ask(query)
        return Estimate(answer.value, self.error, answer.source)

    def quoting(self) -> Quote:
        return Quote(self)

    def free(self, queries: Sequence[Linear]) -> None:
        """None: each answer may teach the hypothesis what the next one uses, so they are asked one by one."""

    @one_at_a_time  # all its cells together
    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Cell by cell: each is a count of its own."""
        self.require_reach(within)
        universe = self.hypothesis.universe
        answers = [self._pmw.ask(cell) for cell in marginal_cells(universe, table.attributes)]
        values = np.array([answer.value for answer in answers]).reshape(universe.sizes(table.attributes))
        source: Source = "measured" if any(a.source == "measured" for a in answers) else "hypothesis"
        return Estimate(values, self.error, source)

    def minimise(self, question: BoundMinimize, within: float | None) -> Estimate:
        """θ within the convex theorem's α of the best, by the same hypothesis and from the same budget."""
        self.require_convex(question)
        assert self._convex is not None
        alpha = self.alpha(within)
        answer = self._convex.ask(question.risk, question.over)
        source: Source = "hypothesis" if answer.source == "hypothesis" else "measured"
        return Estimate(answer.theta, alpha if alpha < math.inf else None, source)

    def require_convex(self, question: BoundMinimize) -> None:
        """Refuse a loss whose constants were not declared, or which nobody vouched for."""
        if self._convex is None:
            raise InvalidInput(
                "The theory profile must know the losses it will be asked, for their constants calibrate it. Found none. "
                'Open the session with workload=[hr.minimize(…), …], or with profile="practical".'
            )
        if not question.is_vouched(self._vouched):
            raise InvalidInput(
                f"A loss of one's own must be vouched for by the owner in the theory profile. Found {question.risk!r}. "
                "Let the owner open the session with vouched=[loss], or use one of hedgerow.losses."
            )

    def alpha(self, within: float | None) -> float:
        """How good a convex answer is: α is of ñ rows, and there may be fewer."""
        assert self._convex is not None
        alpha = self._convex.config.alpha / (1 - self._doubt) if self._doubt < 1 else math.inf
        self.require_reach(within, alpha, "alpha")
        return alpha

    @one_at_a_time
    def resume(self, entries: Sequence[Entry]) -> None:
        """Both kinds in the order in which they taught the hypothesis that they share."""
        for entry in entries:
            self._pmw.relearn(entry)
            if self._convex is not None:
                self._convex.relearn(entry)
        self._pmw.resume(entries)
        if self._convex is not None:
            self._convex.resume(entries)

    def state(self) -> None:
        """None: the theorem bounds how much there is to learn again."""

    def require_reach(self, within: float | None, reach: float | None = None, called: str = "the bar") -> None:
        reach = self.error if reach is None else reach
        if within is not None and within < reach:
            raise InvalidInput(
                f"within must be at least {called} = {reach:.4g} in the theory profile. Found {within:g}. "
                'Open the session with profile="practical", or with a smaller alpha.'
            )


class Quote:
    """The same bars around what the hypothesis says: nothing private is asked, and nothing taught."""

    def __init__(self, engine: Theory) -> None:
        self._engine = engine

    def believed(self, query: Linear) -> float:
        return self._engine.believed(query)

    @property
    def least_rows(self) -> float:
        return self._engine.least_rows

    def linear(self, query: Linear, within: float | None) -> Estimate:
        self._engine.require_reach(within)
        return Estimate(self._engine.believed(query), self._engine.error, "hypothesis")

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        return self.linear(numerator, None), self.linear(denominator, None)

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        self._engine.require_reach(within)
        return Estimate(self._engine.hypothesis.marginal(table.attributes), self._engine.error, "hypothesis")

    def minimise(self, question: BoundMinimize, within: float | None) -> Estimate:
        self._engine.require_convex(question)
        return Estimate(question.fitted(self._engine.hypothesis)[0].theta, self._engine.alpha(within), "hypothesis")


def calibrated(
    data: DataSource,
    ledger: Ledger,
    noise: Noise,
    *,
    convex: Sequence[BoundMinimize],
    queries: int,
    beta: float,
    alpha: float | None,
    vouched: Collection[Custom],
) -> Theory:
    """The engine for so many queries, and for convex ones with constants up to those of the questions in ``convex``."""
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
        return Theory(pmw, off=off)
    beside = convex_pmw(
        convex, data, ledger, noise,
        hypothesis=pmw.hypothesis, rows=scale, queries=queries, beta=beta / split, share=share / split,
    )  # fmt: skip
    return Theory(pmw, beside, off, vouched)


def _reach(event: Laplace | Gaussian, beta: float) -> float:
    """How far its noise reaches, except with probability β: P[|Z| ≥ t] ≤ 2e^{−t/b}, or 2e^{−t²/2σ²}."""
    if isinstance(event, Laplace):
        return event.scale * math.log(2 / beta)
    return event.sigma * math.sqrt(2 * math.log(2 / beta))


_configured = lru_cache(maxsize=64, typed=True)(configure)  # a search over public numbers: once for the same ones


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
) -> OnlineConvexPMW:
    """The convex mechanism, on a share of the budget, for losses with constants up to those of the questions, on a hypothesis shared with counts.

    An update of either kind lowers KL(D ‖ D̂) ≤ ln|X| by what its own theorem says, so both bounds on updates hold.
    """
    scales = [question.scale for question in questions]
    if None in scales:
        raise InvalidInput(
            "Convex questions of the theory profile must be over bounded sets. Found one that is not. Give L2Ball(radius)."
        )
    oracle = NoisyGradientDescent(
        lipschitz=max(q.risk.lipschitz(q.over) for q in questions),
        diameter=max(q.over.diameter_l2(q.risk.dimension) for q in questions),
        dimension=max(q.risk.dimension for q in questions),
    )
    S = max(scale for scale in scales if scale is not None)
    calibrated = partial(
        _configured,
        ledger.budget,
        cells=data.universe.size,
        rows=rows,
        queries=queries,
        beta=beta,
        scale_S=S,
        oracle=oracle,
        share=share,
    )
    config = calibrated(alpha=min(S, ROOM * calibrated().alpha))
    return OnlineConvexPMW(config, data, ledger, noise, hypothesis)
