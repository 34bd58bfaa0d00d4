"""The public part of the practical profile: answers and bars from released measurements and the certificate.

``PracticalAnswers`` reads ``free_answers`` (the fitted hypothesis with its error bars) and the certified losses. It is
what a session answers for free, what a quote starts from, and what a release file contains.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.convex.losses.families import Squared
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.engine.certificate import Certificate
from hedgerow.engine.coefficient_widths import bootstrap_widths
from hedgerow.engine.practical.certificate.certified_bounds import CertifiedCounts
from hedgerow.engine.practical.convex.excess_bounds import coefficient_bounds, free_answer
from hedgerow.engine.practical.convex.loss_certificate import CertifiedLosses
from hedgerow.engine.practical.convex.replicates import Replicates
from hedgerow.engine.practical.free_answers import FittedModel, FreeAnswers
from hedgerow.engine.practical.measurement import Measurement, varying_names
from hedgerow.engine.public import PublicAnswers, require_sold
from hedgerow.engine.sampled_fit import SampledMinimum, fit_on_sample
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.bound import BOOTSTRAP, GUARANTEED, Estimate, Source
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import GroupedQueries, Linear
from hedgerow.query.support import Support
from hedgerow.universe.universe import Universe


class PracticalAnswers(PublicAnswers):
    """Free answers of the practical profile. ``free_answers`` may learn more later; the answers follow it."""

    bounds_new_questions = True

    def __init__(
        self,
        knowledge: FreeAnswers,
        losses: CertifiedLosses,
        opening: dict[str, Any] | None = None,
        *,
        n_is_public: bool,
    ) -> None:
        """``losses`` are the certified convex questions of the workload.

        ``opening`` is what was learned when the session was opened, which the certificate is about.
        """
        self.knowledge, self.losses, self._n_is_public, self.opening = knowledge, losses, n_is_public, opening
        self._last_sampled: tuple[Hypothesis, Hashable, SampledMinimum] | None = None
        self._replicates: Replicates | None = None

    def afresh(self) -> PracticalAnswers:
        """Return the same answers with nothing computed yet, so that a question takes as long as the first time."""
        return PracticalAnswers(self.knowledge, self.losses, self.opening, n_is_public=self._n_is_public)

    @property
    def hypothesis(self) -> Hypothesis:
        """The public model that answers come from."""
        return self.knowledge.hypothesis

    @property
    def rows(self) -> float:
        """The number of rows n, or its estimate where n is private."""
        return self.knowledge.rows.estimate

    @property
    def least_rows(self) -> float:
        """The smallest number of rows that the data may have."""
        return self.knowledge.rows.low

    @property
    def typical_of_rows(self) -> float:
        """The mean error of ``rows``; 0 where n is public."""
        return math.sqrt(2 / math.pi) * self.knowledge.rows.deviation

    @property
    def certificate(self) -> Certificate | None:
        """The released bound on the errors of all small questions; None if none was bought."""
        return None if self.knowledge.certified is None else self.knowledge.certified.certificate

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All released measurements."""
        return tuple(self.knowledge.learned.measurements)

    def support(self, tables: Sequence[Names]) -> Support:
        """Return which of the tables were measured, and what is assumed of the others."""
        return self.knowledge.support(tables)

    @property
    def measured(self) -> list[tuple[Names, float]]:
        """The measured attribute sets, each with the standard deviation of one cell, in rows."""
        known, universe = self.knowledge, self.knowledge.universe
        tables = (varying_names(universe, each.attributes) for each in known.learned.measurements if each.query is None)
        found = []
        for names in dict.fromkeys(filter(None, tables)):
            cell = Linear.product(universe, {n: np.arange(universe[n].size) == 0 for n in names})
            noise = known.bars.deviation(cell)
            if math.isinf(noise) and names in known.learned.evidence:  # a residual beside those of the overview
                noise = math.sqrt(known.learned.evidence.estimate(names)[1])
            found.append((names, noise))
        return found

    def error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """Return the bar of ñ·value around the true count, ``error`` being that of the fraction.

        |ñv − nt| ≤ |ñ − n|v + n|v − t|.
        """
        off = 0.0 if self._n_is_public else self.knowledge.rows.off
        reach: float | Array = off * value + self.knowledge.rows.high * error
        return reach

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer."""
        return self.knowledge.answer(query)

    def free(self, queries: Sequence[Linear]) -> list[Estimate]:
        """Answer all queries in one batch."""
        queries = GroupedQueries(queries)
        values, errors = self.knowledge.free_all(queries)
        typical = self.knowledge.typical(queries)
        return list(map(estimate, values.tolist(), errors.tolist(), typical.tolist()))

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer a linear query, with a bar of ``within`` if the free bar is narrow enough."""
        value, error = self.knowledge.free(query, within)
        found = estimate(value, error, self.knowledge.typical_of(query))
        if within is not None:
            require_sold(found, within)
        return found

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a whole table with a bar for each cell; ``within`` limits the widest bar."""
        values, errors = self.knowledge.table(table.attributes, within)
        found = table_estimate(values, errors, "hypothesis", self.knowledge.typical_cells(table.attributes))
        if within is not None:
            require_sold(found, within)
        return found

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Return θ with the bound on its excess risk that follows from released values."""
        found = self.convex_estimate(question, *self.free_minimum(question))
        if within is not None:
            require_sold(found, within)
        return found

    def free_minimum(self, question: BoundMinimize) -> tuple[Array, float]:
        """Return the free θ with the narrower of its public bar and the certified one."""
        if not question.risk.is_listable:
            return self._sampled_minimum(question).theta, math.inf
        found, error = free_answer(self.knowledge, question)
        declared = self.losses.get(question)
        if declared is not None and declared[1] < error:
            return declared
        return found.theta, error

    def convex_estimate(
        self, question: BoundMinimize, theta: Array, error: float, source: Source = "hypothesis"
    ) -> Estimate:
        """Build the estimate of a convex question, with an interval for every coefficient.

        The intervals are guaranteed where they follow from the excess risk, and bootstrapped elsewhere.
        """
        listable = question.risk.is_listable
        is_squared = type(getattr(question.risk, "loss", None)) is Squared
        least = self.knowledge.least(question.attributes) if is_squared and listable else None
        each, basis = coefficient_bounds(question, theta, error, least), GUARANTEED
        if each is None and question.risk.glm is not None:
            support = self.support([question.attributes])
            each = bootstrap_widths(question, self.hypothesis, theta, self.replicates(), support)
            basis = BOOTSTRAP
        return Estimate(
            theta,
            error if math.isfinite(error) else None,
            source,
            coefficients=each,
            basis=basis,
            simulation=None if listable else self._sampled_minimum(question).simulation,
        )

    def _sampled_minimum(self, question: BoundMinimize) -> SampledMinimum:
        """Return the minimum on a sample of the hypothesis; that of the last question is kept."""
        if self._last_sampled is None or self._last_sampled[:2] != (self.hypothesis, question.key):
            self._last_sampled = self.hypothesis, question.key, fit_on_sample(question, self.hypothesis)
        return self._last_sampled[2]

    def replicates(self) -> list[Hypothesis]:
        """Return hypotheses fitted to other draws of the noise of what is known now."""
        if self._replicates is None or self._replicates.hypothesis is not self.hypothesis:
            self._replicates = Replicates(self.knowledge)
        return self._replicates.hypotheses()


# The state of what is public, as plain data (docs/release-file.md).


def practical_state(public: PracticalAnswers) -> dict[str, Any]:
    """Return everything that the answers follow from, as plain data.

    The certificate is about what was known at the opening. That is part of the state too, unless nothing was learned
    since.
    """
    known, opening = public.knowledge, public.opening
    certified = known.certified if opening is not None else None
    has_grown = opening is not None and len(opening["measurements"]) < len(known.learned.measurements)
    return {
        "learned": known.learned.state(),
        "opening": opening if certified is not None and has_grown else None,
        "certified": None if certified is None else certified.state(),
        "losses": [(public.losses.questions[key], *public.losses.answers[key]) for key in public.losses.questions],
        "beta": float(known.beta),
        "shares": [*known.bars.shares, known.bars.numbers],
    }


def restore_practical(universe: Universe, state: dict[str, Any], public_rows: int | None) -> PracticalAnswers:
    """Rebuild the answers that ``practical_state`` described; ``public_rows`` is n where it is public."""
    rows, beta = None if public_rows is None else float(public_rows), float(state["beta"])
    known = FreeAnswers(FittedModel.restore(universe, rows, state["learned"]), beta, public_rows, state["shares"])
    if state["certified"] is not None:
        before = known
        if state["opening"] is not None:
            before = FreeAnswers(FittedModel.restore(universe, rows, state["opening"]), beta, public_rows)
        known.certified = CertifiedCounts.restore(before, state["certified"])
    answers = {question.key: (theta, bar) for question, theta, bar in state["losses"]}
    losses = CertifiedLosses(answers, {question.key: question for question, _, _ in state["losses"]})
    return PracticalAnswers(known, losses, n_is_public=public_rows is not None)


def estimate(value: float, error: float, typical: float = math.nan) -> Estimate:
    """Build the estimate of a fraction; a bar of 1 or more says nothing and becomes None."""
    typical_error = None if math.isnan(typical) else min(typical, 1.0)
    return Estimate(value, error if error < 1 else None, "hypothesis", typical=typical_error)


def table_estimate(values: Array, errors: Array, source: Source, typical: Array) -> Estimate:
    """Build the estimate of a table; bars of 1 or more say nothing and become None."""
    typical_error = None if np.isnan(typical).any() else np.minimum(typical, 1.0)
    return Estimate(values, errors if errors.max() < 1 else None, source, typical=typical_error)
