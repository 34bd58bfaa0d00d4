"""The base class of sessions and published releases: questions in batches, SQL, synthetic records and reports."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow import _html
from hedgerow._checks import whole
from hedgerow._memory import KEPT, STACKED, at_most, limit_memory, pause_collector, require
from hedgerow._progress import show_bar
from hedgerow.answer import Answer
from hedgerow.answering import answer_cache
from hedgerow.answering.answer_cache import AnswerCache, AnswerHistory
from hedgerow.answering.answers_on_record import RecordedAnswer, answers_on_record, split_parts
from hedgerow.answering.measured import MeasuredTable, MeasuredTables
from hedgerow.answering.scaling import Scale, require_scale, scaled_answer
from hedgerow.answering.synthetic import require_record_options, synthetic_records
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.engine.certificate import NONE, Certificate
from hedgerow.engine.interface import Answers
from hedgerow.engine.public import PublicAnswers
from hedgerow.errors import InvalidInput
from hedgerow.generalise.statement import PopulationStatement, population_statement
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.budget import Budget
from hedgerow.query.bound import BOOTSTRAP, Bound, Estimate
from hedgerow.query.composed import ComposedQuestion
from hedgerow.query.counts import Query, Resolution
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.linear import Linear
from hedgerow.report import Charge, Report
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd

    from hedgerow.answering.associations import Associations
    from hedgerow.answering.summary import Summary
    from hedgerow.sql.result import SqlResult

# ask_all answers at most this many questions in one vectorized batch
AT_ONCE = 8192


class Askable(ABC):
    """Questions and answers about one table. A session and a published release are asked in the same way.

    A subclass sets ``_engine``, which answers; ``_cache``, the answers given so far; ``_history``, the answers of a
    report; ``_limit``, the memory in bytes that a question may use; and ``_beta``, the probability that any bar fails.
    """

    _engine: Answers
    _cache: AnswerCache
    _history: AnswerHistory
    _limit: int | None
    _beta: float

    @property
    @abstractmethod
    def blocks(self) -> Mapping[str, Any]:
        """Blocks by name, in order."""

    @abstractmethod
    def ask(
        self,
        query: Query,
        *,
        within: float | None = None,
        scale: Scale = "fraction",
        resolution: Resolution = "values",
    ) -> Answer:
        """Answer a question privately.

        Parameters
        ----------
        query : Query
            The question, made by ``hr.count``, ``hr.marginal``, ``hr.mean``, ``hr.minimize``, and so on.
        within : float, optional
            The error bar that the answer must have. A session buys it, if the free bar is wider.
        scale : {"fraction", "rows"}
            The scale of counts.
        resolution : {"values", "bins"}
            "values" asks about the values themselves, "bins" about the table as the universe codes it.

        Returns
        -------
        Answer

        Raises
        ------
        InvalidInput
            If the question does not fit the universe.
        BudgetExceeded
            If the answer would cost more than is left.

        Example
        -------
        >>> session.ask(hr.count(sex="F")).cost
        0.0
        """

    @abstractmethod
    def price(self, query: Query, *, within: float | None = None, resolution: Resolution = "values") -> float:
        """Return the cost of asking a question with this ``within`` now.

        Parameters
        ----------
        query : Query
            The question.
        within : float, optional
            The error bar that the answer must have.
        resolution : {"values", "bins"}
            As in ``ask``.

        Returns
        -------
        float
            The cost in the budget's currency.

        Raises
        ------
        InvalidInput
            If the question does not fit the universe, or ``within`` is missing or cannot be met.

        Example
        -------
        >>> session.price(hr.count(sex="F"), within=0.5)
        0.0
        """

    @property
    @abstractmethod
    def universe(self) -> Universe:
        """Public universe that codes the rows."""

    @property
    @abstractmethod
    def budget(self) -> Budget:
        """Privacy budget. With several blocks: the promise to a person in any one of them."""

    @property
    @abstractmethod
    def spent(self) -> float:
        """Amount spent, in the budget's currency: ε if δ = 0, else ρ."""

    @property
    @abstractmethod
    def spent_epsilon(self) -> float:
        """Amount spent, expressed as an ε at the budget's δ."""

    @property
    @abstractmethod
    def private(self) -> bool:
        """True if nobody can know the noise; False if it comes from a ``seed``."""

    @property
    def hypothesis(self) -> Hypothesis:
        """Public model of the data that free answers come from."""
        return self._engine.hypothesis

    @property
    def rows(self) -> float:
        """Number of rows n: exact under replace-one, a private estimate under add/remove."""
        return self._engine.rows

    @property
    def certificate(self) -> Certificate | None:
        """Bounds that hold for all small questions at once, asked or not, or None if nothing was certified.

        ``str(session.certificate)`` states them in words. It is None if its noise alone would reach farther than 5 % of
        the rows, as for small tables; each answer still has its own bar.
        """
        return self._engine.certificate

    draft_cost: tuple[float, float] = (0.0, 0.0)
    """ε and δ that drafting the universe from the rows cost before the opening, beside the budget."""

    @property
    def whole_promise(self) -> tuple[float, float]:
        """ε and δ of everything that was released about the rows: the budget and the draft of the universe."""
        return self.budget.epsilon + self.draft_cost[0], self.budget.delta + self.draft_cost[1]

    @property
    def measured(self) -> MeasuredTables:
        """The tables that were measured, each with its noise: what all free answers rest on.

        ``answer.support`` says of one answer which of them it follows from. Empty for profiles whose model follows from
        single questions.
        """
        tables = self._public_answers().measured
        return MeasuredTables([MeasuredTable(names, self.universe.cells(names), noise) for names, noise in tables])

    @property
    def generalisation(self) -> PopulationStatement:
        """Bound on the distance between all answers so far and the population, and the theorem that gives it.

        The bound assumes that the rows are independent draws from the population. With several blocks it covers the
        answers about all of them.
        """
        return self.population_after(0)

    def population_after(self, more: int) -> PopulationStatement:
        """Return the bound of ``generalisation`` that also covers ``more`` numbers, which are on no record.

        Parameters
        ----------
        more : int
            Numbers that were read elsewhere, such as those that a published release has answered since it was loaded.

        Returns
        -------
        PopulationStatement

        Example
        -------
        >>> "population" in str(session.population_after(1000))
        True
        """
        asked = self._numbers_given() + more
        rows = self.rows if self.budget.neighbours == "replace" else None
        return population_statement(self.budget, rows=rows, asked=asked, sample_beta=self._beta)

    def population_error(self, answer: Answer) -> float | None:
        """Return the error bar of a fraction for the population, or None if no theorem gives one.

        ``generalisation`` states the theorem. With several blocks only answers about all of them are covered: an answer
        given before a block was appended is about fewer rows.

        Parameters
        ----------
        answer : Answer
            An answer of this session.

        Returns
        -------
        float or None

        Raises
        ------
        InvalidInput
            If the question does not fit the universe.

        Example
        -------
        >>> wide = session.population_error(session.ask(hr.count(sex="F")))
        """
        bound = bound_to(answer.query, self.universe)
        if not bound.is_fraction or (len(self.blocks) > 1 and not self._cache.is_last_answer(bound, answer.value)):
            return None
        return self.generalisation.error(None if answer.error is None else float(np.max(answer.error)))

    def bootstrap_errors(self, answer: Answer) -> Any:
        """Return bootstrapped half widths of the coefficients of a model, also where guaranteed ones are stated.

        Guaranteed intervals of coefficients hold with all others, and are often too wide to settle a sign. These say
        how far the released noise moves each coefficient, at 95 % and one at a time. They are no guarantee. They are
        free.

        Parameters
        ----------
        answer : Answer
            The answer to a convex question about a generalized linear model.

        Returns
        -------
        array or None
            One half width for each entry of θ. None if nothing can be bootstrapped.

        Example
        -------
        >>> loss = hr.losses.Squared(target="income", features=["age"])
        >>> errors = session.bootstrap_errors(session.ask(hr.minimize(loss, hr.L2Ball(5.0))))
        """
        if answer.coefficient_basis == BOOTSTRAP:
            return answer.coefficient_errors
        question = bound_to(answer.query, self.universe)
        if not isinstance(question, BoundMinimize) or question.risk.glm is None:
            return None
        from hedgerow.engine.coefficient_widths import bootstrap_widths

        with limit_memory(self._limit), self._exclusively():
            public = self._public_answers()
            drawn, support = public.replicates(), public.support([question.attributes])
            theta = np.asarray(answer.value)
            return bootstrap_widths(question, public.hypothesis, theta, drawn, support) if drawn else None

    # Steps that a session does and a release need not do.

    @abstractmethod
    def _exclusively(self) -> contextlib.AbstractContextManager[object]:
        """Answer in turn with other threads, with linear algebra on one thread."""

    @abstractmethod
    def _public_answers(self) -> PublicAnswers:
        """Return all that was released, as an object that answers for free."""

    @abstractmethod
    def _generator(self) -> np.random.Generator:
        """Return the source of randomness of synthetic records."""

    @abstractmethod
    def _charges(self, *, names: bool = False) -> Iterator[Charge]:
        """Iterate over all charges so far, for the report: with ``names``, who was billed and when, if known."""

    @abstractmethod
    def _on_record(self) -> Iterator[RecordedAnswer]:
        """Iterate over all answers on record, whoever asked, in order."""

    @abstractmethod
    def _numbers_given(self) -> int:
        """Return how many numbers all answers on record have."""

    @abstractmethod
    def _require_all(self) -> None:
        """Refuse a question about all rows while some of the rows cannot be asked."""

    def _write_together(self) -> contextlib.AbstractContextManager[object]:
        """Write the answers of a batch together at its end."""
        return contextlib.nullcontext()

    @abstractmethod
    def _ask_bound(self, query: Query, bound: Bound[Any], within: float | None, scale: Scale) -> Answer:
        """Answer one bound question."""

    # Batches

    def ask_all(
        self,
        queries: Iterable[Query],
        *,
        scale: Scale = "fraction",
        resolution: Resolution = "values",
        progress: bool | None = None,
    ) -> list[Answer]:
        """Answer many questions in order.

        Each answer equals the one that ``ask`` would give. Answers are computed together where that changes nothing. A
        question that does not fit the universe is refused before anything is spent.

        Parameters
        ----------
        queries : iterable of Query
            The questions.
        scale, resolution
            As in ``ask``.
        progress : bool, optional
            Show a progress bar. Default: on a terminal and in a notebook, for more than 1,000 questions.

        Returns
        -------
        list of Answer

        Raises
        ------
        InvalidInput
            If a question does not fit the universe, or a single question is given in place of a list.
        BudgetExceeded
            If the answers would cost more than is left.

        Example
        -------
        >>> [answer.cost for answer in session.ask_all([hr.count(sex="F"), hr.count(sex="M")])]
        [0.0, 0.0]
        """
        require_scale(scale)
        if isinstance(queries, Query | str) or not isinstance(queries, Iterable):
            raise InvalidInput(
                f"queries must be a list of questions. Found {type(queries).__name__}. Put it in a list, or use ask."
            )
        self._require_all()
        asked = list(queries)
        answers: list[Answer] = []
        with limit_memory(self._limit), pause_collector(), show_bar("answering", len(asked), progress) as advance:
            # binding comes first, so that a bad question is refused before anything is spent
            bound = bind_questions(asked, self.universe, resolution)
            at_once = at_most(STACKED * max(self.universe.shape), AT_ONCE)
            for start in range(0, len(asked), at_once):
                some = slice(start, start + at_once)
                answers += self._batch(list(zip(asked[some], bound[some], strict=True)), scale, advance)
        return answers

    def _batch(self, asked: list[tuple[Query, Bound[Any]]], scale: Scale, advance: Callable[[], None]) -> list[Answer]:
        """Answer one batch of questions in one turn."""
        with self._exclusively():
            return self._computed_together(asked, scale, advance)

    def _computed_together(
        self, asked: list[tuple[Query, Bound[Any]]], scale: Scale, advance: Callable[[], None]
    ) -> list[Answer]:
        """Answer a batch in order. Free answers are computed together."""
        self._cache.prepare(part for _, bound in asked for part in _linears(bound))
        answers = []
        try:
            with self._write_together():
                for query, bound in asked:
                    found = self._cache.ready(bound) if isinstance(bound, Linear) else None
                    if found is None:
                        answers.append(self._ask_bound(query, bound, None, scale))
                    else:
                        answers.append(self._answer(query, bound, found, 0.0, scale))
                    advance()
        finally:
            self._cache.prepare(())  # discard unused prepared answers: a later answer may be more precise
        return answers

    def _answer(self, query: Query, bound: Bound[Any], estimate: Estimate, cost: float, scale: Scale) -> Answer:
        """Scale an estimate to an answer and remember it for the report."""
        answer = scaled_answer(query, bound, estimate, cost, scale, self._engine)
        self._history.add(answer)
        return answer

    # SQL and synthetic records

    def sql(self, statement: str) -> pd.DataFrame:
        """Run a SELECT on the table ``data`` and return its rows, with the errors of each aggregate beside it.

        Each aggregate has two more columns: its guaranteed error and its typical error. Counts are in rows. Every
        declared value of a GROUP BY column gets a row. docs/sql.md lists the supported SQL.

        Parameters
        ----------
        statement : str
            A SELECT statement.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        InvalidInput
            If the statement is not supported, or does not fit the universe.
        TooLarge
            If the statement has too many groups.

        Example
        -------
        >>> session.sql("SELECT sex, count(*) FROM data GROUP BY sex")  # doctest: +SKIP
        """
        return self.sql_result(statement).frame

    def sql_result(self, statement: str) -> SqlResult:
        """Run a SELECT as ``sql`` does, and return a result whose cells are answers.

        Parameters
        ----------
        statement : str
            A SELECT statement.

        Returns
        -------
        SqlResult

        Raises
        ------
        InvalidInput
            If the statement is not supported, or does not fit the universe.
        TooLarge
            If the statement has too many groups.

        Example
        -------
        >>> result = session.sql_result("SELECT sex, count(*) AS n FROM data GROUP BY sex")
        >>> len(result.rows)
        2
        """
        from hedgerow.sql.result import run_statement

        with limit_memory(self._limit):
            return run_statement(statement, self.universe, lambda queries: self.ask_all(queries, scale="rows"))

    def synthetic(
        self,
        rows: int | None = None,
        *,
        resolution: Literal["values", "bins"] = "values",
        impossible: Iterable[Query] = (),
    ) -> pd.DataFrame:
        """Draw synthetic records whose counts match the hypothesis. Costs nothing.

        Parameters
        ----------
        rows : int, optional
            Number of records. Default: as many as the table has.
        resolution : {"values", "bins"}
            With ``"values"`` a number is drawn uniformly inside its bin, because the hypothesis knows no more. With
            ``"bins"`` it is the representative of its bin.
        impossible : iterable of Query
            Counts that no record can satisfy, as everybody knows, such as
            ``hr.count(sex="M", pregnant=True)``: no synthetic record does.

        Returns
        -------
        pandas.DataFrame
            The records. ``attrs["certificate"]`` states what the session certifies about its answers. Counts of the
            records are whole numbers, so they deviate from the table by up to that rounding more.

        Example
        -------
        >>> session.synthetic(3).shape[0]
        3
        """
        wanted = require_record_options(round(self.rows) if rows is None else rows, resolution)
        self._require_all()
        with limit_memory(self._limit), self._exclusively():
            return synthetic_records(self.hypothesis, wanted, self._generator, resolution, self.certificate, impossible)

    # Summaries and reports

    def describe(self) -> Summary:
        """Summarize the whole table: every column, and the strongest associations. Costs nothing.

        The summary is computed from what was released, so a guard is not asked and nothing is charged. It prints as
        text and shows as HTML; ``.frame`` is in the form of ``pandas.DataFrame.describe``, ``.error_frame`` has the
        bars, and ``.association_frame`` the associations.

        Returns
        -------
        Summary

        Example
        -------
        >>> session.describe().frame  # doctest: +SKIP
        """
        from hedgerow.answering.summary import describe

        public = self._public_answers()
        self._require_all()
        with limit_memory(self._limit), self._exclusively():
            return describe(
                self.universe,
                public.hypothesis,
                public.rows,
                lambda query: self._public_answer(public, query, "fraction"),
                lambda query: self._public_answer(public, query, "rows"),
            )

    def public_view(self) -> Askable:
        """Return a view that charges nothing whatever is asked: this object, unless it is a session.

        Returns
        -------
        Askable

        Example
        -------
        >>> session.public_view().ask(hr.count(sex="F")).cost
        0.0
        """
        return self

    def associations(self, most: int = 20) -> Associations:
        """List the strongest associations between two columns, by Cramér's V. Costs nothing.

        Like ``describe``, the list is computed from what was released. It prints as text and shows as HTML; ``.frame``
        is a frame. The ranking is that of the hypothesis, so two columns that were never measured together may be
        missing.

        Parameters
        ----------
        most : int
            List at most this many.

        Returns
        -------
        Associations

        Raises
        ------
        InvalidInput
            If ``most`` is not a whole number of at least 1.

        Example
        -------
        >>> session.associations().frame  # doctest: +SKIP
        """
        from hedgerow.answering.associations import strongest_associations

        wanted = whole("most", most)
        if wanted < 1:
            raise InvalidInput(f"most must be at least 1. Found {most!r}. Give the number of associations to list.")
        public = self._public_answers()
        self._require_all()
        with limit_memory(self._limit), self._exclusively():
            return strongest_associations(
                self.universe, public.hypothesis, lambda query: self._public_answer(public, query, "fraction"), wanted
            )

    def _public_answer(self, public: PublicAnswers, query: Query, scale: Scale) -> Answer:
        """Answer a question from what was released, without asking the engine."""
        bound = bind_questions([query], self.universe, "values")[0]
        return scaled_answer(query, bound, bound.ask(public, None), 0.0, scale, public)

    def report(self, *, everybody: bool = False, names: bool = False) -> Report:
        """Return a document of what was spent and answered so far. It contains nothing private.

        Read it as ``.html``, or keep it by ``.json`` or ``.save(path)``.

        Parameters
        ----------
        everybody : bool
            List the answers of all sessions on the ledger, as fractions, instead of the answers of this session as
            given.
        names : bool
            Say who was billed and when, if the ledger is durable. Names of analysts are theirs: leave them out of
            what is published.

        Returns
        -------
        Report

        Example
        -------
        >>> "spent" in session.report().json
        True
        """
        certificate, answers = self.certificate, self._history.answers
        parts: tuple[Answer, ...] = ()
        if everybody:
            asked, below = split_parts(list(self._on_record()), self._engine, answer_cache.REPORTED)
            answers, parts = (tuple(answers_on_record(each, self.universe, self._engine)) for each in (asked, below))
        return Report(
            self._facts() | {"spent_epsilon": self.spent_epsilon},
            tuple((name, type(self.universe[name]).__name__, self.universe[name].size) for name in self.universe.names),
            None if certificate is None else str(certificate),
            tuple(self._charges(names=names)),
            answers,
            parts,
        )

    def _facts(self) -> dict[str, Any]:
        """Return the public facts about the table and its budget as a whole."""
        public = self.budget.neighbours == "replace"
        return {
            "private": "yes" if self.private else "NO: the noise comes from a seed",
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            **(
                {"draft_epsilon": self.draft_cost[0], "draft_delta": self.draft_cost[1]} if any(self.draft_cost) else {}
            ),
            "neighbours": self.budget.neighbours,
            **({} if self.budget.rows_per_unit == 1 else {"rows_per_unit": self.budget.rows_per_unit}),
            "rows" if public else "rows_estimated": self.rows,
            "cells": self.universe.size,
            "spent": self.spent,
            "spent_of": self.budget.total,
            "currency": self.budget.currency,
        }

    def _repr_html_(self) -> str:
        said = _html.paragraph(self.certificate or NONE)
        return _html.table((type(self).__name__.lower(), ""), self._lines()) + said

    def __str__(self) -> str:
        lines = [f"{name:>15}  {fact}" for name, fact in self._lines()]
        return "\n".join([*lines, str(self.certificate or NONE)])

    def _lines(self) -> list[tuple[str, str]]:
        """Return the public facts as pairs of texts, for display."""
        facts = self._facts()
        total, currency = facts.pop("spent_of"), facts.pop("currency")
        spent = facts["spent"]
        facts["spent"] = f"{spent / total:.1%} of the budget ({currency} {spent:.4g} of {total:.4g})"
        return [(name.replace("_", " "), _fact(fact)) for name, fact in facts.items()]


def _fact(fact: Any) -> str:
    return f"{fact:.6g}" if isinstance(fact, float) else f"{fact:,}" if isinstance(fact, int) else str(fact)


def _linears(bound: Bound[Any]) -> Iterable[Linear]:
    """Return the linear queries that answering a question needs in any case."""
    if isinstance(bound, Linear):
        return (bound,)
    return bound.linears if isinstance(bound, ComposedQuestion) else ()


def bind_questions(queries: Sequence[Query], universe: Universe, resolution: Resolution) -> list[Bound[Any]]:
    """Bind questions to the universe, and refuse them if the tables of their parts exceed the memory limit."""
    bound: list[Bound[Any]] = []
    cells = 0
    for query in queries:  # one at a time, because all of them bound may be too many already
        each = bound_to(query, universe, resolution)
        if isinstance(each, ComposedQuestion):
            cells += each.kept_cells(universe)
            require(
                "The tables of all parts of the questions", cells, KEPT, "Ask fewer at a time, or with coarser bins"
            )
        bound.append(each)
    return bound
