"""Questions about the raw values of a few random rows: statistics, and yes/no answers that may be false."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hedgerow.answer import Answer
from hedgerow.answering.scaling import Scale
from hedgerow.engine.sampling import RowSampling
from hedgerow.errors import InvalidInput
from hedgerow.generalise import transfer
from hedgerow.privacy.accounts import Accounts
from hedgerow.privacy.ledger import Ledger
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import Query
from hedgerow.query.row_statistic import RowStatistic

if TYPE_CHECKING:
    from hedgerow.textbook.scq import FlipInterval


class RowQuestions:
    """The questions of a session that are answered by sampling rows."""

    _ledger: Ledger | Accounts
    _sampling: RowSampling | None

    def sample_yes_no(self, predicate: Query, *, lies: float = 0.05) -> bool:
        """Return the yes/no answer of one random row, which is false with probability ``lies``.

        The session must be opened with ``rows=``.

        Parameters
        ----------
        predicate : Query
            A count: the question is whether the row satisfies it.
        lies : float
            The probability of a false answer, below one half.

        Returns
        -------
        bool

        Raises
        ------
        InvalidInput
            If the session was opened without ``keep_rows=``.
        BudgetExceeded
            If the answer would cost more than is left.

        Example
        -------
        >>> session.sample_yes_no(hr.count(sex="F"), lies=0.25) in (True, False)
        True
        """
        with self._ledger.asking(predicate):
            return require_rows(self._sampling).sample_yes_no(predicate, lies)

    def sample_yes_no_stream(
        self, predicate: Query, *, lies: float = 0.05, at_once: int | None = None
    ) -> Iterator[FlipInterval]:
        """Estimate the fraction of rows that say yes from a stream of yes/no answers, more precisely with each one.

        All intervals of one call hold together, so the caller may decide by them when to stop. The session must be
        opened with ``keep_rows=``.

        Parameters
        ----------
        predicate : Query
            A count: the question is whether a row satisfies it.
        lies : float
            The probability of a false answer, below one half.
        at_once : int, optional
            The number of answers between two intervals. Default: a tenth of all answers so far.

        Yields
        ------
        FlipInterval
            The interval after each step.

        Raises
        ------
        InvalidInput
            If the session was opened without ``keep_rows=``.
        BudgetExceeded
            If the next answers would cost more than is left.

        Example
        -------
        >>> first = next(session.sample_yes_no_stream(hr.count(sex="F"), lies=0.25, at_once=1))
        """
        return require_rows(self._sampling).count_stream(predicate, lies, at_once)


def require_rows(sampling: RowSampling | None) -> RowSampling:
    """Return the sampler of raw rows, or refuse if the session keeps none."""
    if sampling is None:
        raise InvalidInput(
            "The session must be opened with rows and have one block to answer about raw values. Found no stored "
            "rows. Use hr.open(…, keep_rows=True), or ask hr.count or hr.mean."
        )
    return sampling


def answer_of_rows(
    query: RowStatistic,
    within: float | None,
    scale: Scale,
    rows: float,
    ledger: Ledger | Accounts,
    sampling: RowSampling | None,
) -> Answer:
    """Answer a statistic of raw values by sampling some of the ``rows`` rows."""
    with ledger.asking(query) as bill:
        ask = _ask_population if query.population else RowSampling.ask
        found = ask(require_rows(sampling), query, within)
        times = rows if scale == "rows" else 1.0
        error = None if found.error is None else found.error * times
        return Answer(query, found.value * times, error, found.source, bill.cost)


def _ask_population(sampling: RowSampling, query: RowStatistic, within: float | None) -> Estimate:
    """Answer a statistic of the population: within α′ of the rows', and so within α of the population's.

    All answers of the session together are private by its budget, so the theorem of Jung et al. holds for them
    (``transfer.on_sample``), however the questions were chosen.
    """
    wanted = query.within if within is None else within
    if wanted is None:
        raise InvalidInput("within must be given for a statistic. Found none. Pass, for example, within=0.05.")
    needs = transfer.on_sample(wanted, *transfer.replace_one(sampling.ledger.budget), sampling.beta)
    found = sampling.ask(query, needs.sample_error, needs.sample_beta)
    assert found.error is not None
    return Estimate(found.value, found.error + (wanted - needs.sample_error), found.source)
