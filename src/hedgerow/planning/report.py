"""The options that a plan found, as a table, in sentences, as a picture and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from hedgerow import _html
from hedgerow._json import readable
from hedgerow.errors import InvalidInput
from hedgerow.planning.lower_bounds import LowerBound, evaluations, is_hard
from hedgerow.planning.simulation import WorkloadEffect
from hedgerow.planning.theorems import QUERIES_AT_MOST, About, Unknown

LEVELS = (
    (0.01, "Yes: this table is large enough for most questions."),
    (0.05, "Yes, for shares of the whole table and for large groups."),
    (0.2, "Barely: only coarse questions about the whole table are answered well."),
)
"""The largest guaranteed error, as a fraction of the rows, of each answer to "is my table large enough?"."""

FOUND: dict[Unknown, str] = {
    "rows": "least rows",
    "accuracy": "least error",
    "queries": "most questions",
    "beta": "least beta",
    "epsilon": "least epsilon",
    "delta": "least delta",
}


@dataclass(frozen=True)
class Option:
    """One mechanism in a plan.

    - ``how``: the way to use it. ``by``: the theorem or simulation that the numbers come from.
    - ``error``: at the stated rows all answers are within it, with probability 1 − β. None if there is no such bound.
    - ``rows``: the number of rows that the stated accuracy needs. None if it is not known.
    - ``simulated``: True if ``error`` and ``rows`` come from simulated sessions. They are then examples and no bounds:
      ``error`` is the widest bar of one such session, and a session on another table may have wider ones.
    - ``typical``: the mean error in a simulation. ``interval``: the mean errors to expect on a real table.
    - ``about``: the answers that it gives: counts and averages over the table ("counts"), minimizers of a loss and
      their excess over the best ("minimizers"), averages over the population ("population"), scores of models on it
      ("scores").
    - ``solution``: the value of ``solve_for``. None if no value is enough.
    - ``in_expectation``: True if ``error`` is an expectation, for which β plays no part.
    - ``runs``: False if the mechanism would take more time or memory than there is.
    - ``answers``: the number of answers of the workload, if the mechanism promises nothing for other questions.
    """

    mechanism: str
    adaptive: bool
    how: str
    by: str
    error: float | None = None
    rows: float | None = None
    typical: float | None = None
    simulated: bool = False
    interval: tuple[float, float] | None = None
    about: About = "counts"
    solution: float | None = None
    in_expectation: bool = False
    runs: bool = True
    answers: int | None = None


@dataclass(frozen=True, repr=False)
class Plan:
    """The options that ``hr.plan`` found, with the facts that they rest on.

    Attributes
    ----------
    options : tuple of Option
        One option for each mechanism, the best first.
    epsilon, delta : float
        The privacy budget.
    cells, queries : int
        The size of the universe, and the number of questions.
    beta : float
        The probability that some answer is farther off than promised.
    rows, accuracy : int or float, optional
        The number of rows and the wanted error, as given to ``hr.plan``.
    population : str or None
        What follows for the population from which the rows are drawn, if ``rows`` is given.
    solve_for : str or None
        The quantity that was asked for, if it is neither the error nor the rows.
    lower_bounds : tuple of LowerBound
        Errors at the stated rows that no mechanism can undercut, if ``rows`` is given.
    effect : WorkloadEffect or None
        Typical errors of the workload's questions and of others, with and without the workload, if ``rows`` and
        ``workload`` are given.

    Example
    -------
    >>> plan = hr.plan(universe=universe, budget=hr.Budget(1.0, 1e-6), rows=100_000, simulate=False)
    >>> plan.epsilon, plan.queries
    (1.0, 100000)
    """

    options: tuple[Option, ...]
    epsilon: float
    delta: float
    cells: int
    queries: int
    beta: float
    rows: int | None
    accuracy: float | None
    population: str | None
    solve_for: Unknown | None = None
    lower_bounds: tuple[LowerBound, ...] = ()
    effect: WorkloadEffect | None = None

    @property
    def best(self) -> Option:
        """The best option."""
        return self.options[0]

    @property
    def sentence(self) -> str:
        """The recommendation, as one sentence."""
        best = self.best
        asked = f"{self._number_of_answers(best)} at ε = {self.epsilon:g}, δ = {self.delta:g}"
        begun = asked[0].upper() + asked[1:]
        kind = "Questions may depend on answers." if best.adaptive else "Questions must be known in advance."
        if self.solve_for is not None:
            return self._sentence_of_solution(best, kind)
        if best.in_expectation and self.rows is not None and best.error is not None:
            return (
                f"{begun} about {self.rows:,} rows: {best.mechanism} ({best.how}) promises an expected excess of at "
                f"most {best.error:.3g}. {kind}"
            )
        if self.rows is not None:
            if best.error is None:
                return (
                    f"No mechanism promises anything for {asked} with {self.rows:,} rows. Spend more, ask less, or use "
                    "coarser columns."
                )
            about = f"{begun} about {self.rows:,} rows: {best.mechanism} ({best.how})"
            if best.simulated:
                return (
                    f"{about}. The bars of a simulated session were at most ± {best.error:.3g}, which is no bound: on "
                    f"your table they may be wider. The bars that a session states hold for all of its answers "
                    f"together with probability {1 - self.beta:.0%}. {kind}"
                )
            return (
                f"{about} promises an error of at most ± {best.error:.3g} for every answer, with probability "
                f"{1 - self.beta:.0%} for all of them together. {kind}"
            )
        if best.rows is None:
            return (
                f"No number of rows that was tried promises ± {self.accuracy:g} for {asked}. Spend more, or ask for "
                "less."
            )
        needs = (
            f"needed about {best.rows:,.0f} rows in a simulation, which is no bound: your table may need more"
            if best.simulated
            else f"needs {best.rows:,.0f} rows"
        )
        return f"{begun}, each within ± {self.accuracy:g}: {best.mechanism} ({best.how}) {needs}. {kind}"

    def _number_of_answers(self, option: Option) -> str:
        """Return the number of answers that an option's promise is for."""
        if option.answers is None:
            return f"{self.queries:,} questions"
        return f"the workload's {option.answers:,} answers" if option.answers > 1 else "the workload's one answer"

    def _sentence_of_solution(self, best: Option, kind: str) -> str:
        """Return the recommendation for a quantity other than the error and the rows."""
        assert self.solve_for is not None
        given = {
            "queries": self._number_of_answers(best), "beta": f"β = {self.beta:g}", "epsilon": f"ε = {self.epsilon:g}",
            "delta": f"δ = {self.delta:g}",
        }  # fmt: skip
        others = ", ".join(said for name, said in given.items() if name != self.solve_for)
        about = f"± {self.accuracy:g} on {self.rows:,} rows with {others}"
        if best.solution is None:
            return f"{about}: no mechanism can promise that, whatever {self.solve_for} is. Use more rows or a larger error."
        return (
            f"{about}: {best.mechanism} ({best.how}), {FOUND[self.solve_for]} {_solution(best, self.solve_for)}. {kind}"
        )

    @property
    def limit(self) -> str | None:
        """The errors that no mechanism can undercut, as sentences; None if none is known."""
        said = [
            f"No mechanism can promise less than {'±' if bound.about == 'counts' else 'an excess of'} "
            f"{bound.error:.3g} for {bound.condition} ({bound.by})."
            for bound in self.lower_bounds
            if bound.constant
        ]
        α = self.accuracy
        if self.best.about == "counts" and α is not None and self.cells * α**2 >= 2 * math.log(10):
            least = evaluations(α, self.queries)
            if least > 1:
                said.append(
                    f"{self.queries:,} answers within ± {α:g} take {least:,.0f} evaluations of a question on a row or "
                    "more, on average, for some questions (Fish et al., Proposition 9)."
                )
        if self.rows is not None and is_hard(self.rows, self.queries):
            said.append(
                "No algorithm whose time grows slowly with the number of columns answers every set of so many counts "
                "within 1/100, if one-way functions exist (Ullman §4.3)."
            )
        return " ".join(said) or None

    @property
    def verdict(self) -> str | None:
        """An answer to "is my table large enough?", in two sentences; None if ``rows`` is not given.

        A group is told apart well if its share of the rows is at least twice the guaranteed error. The answer is about
        the best option for any question, because a release of the workload alone promises nothing for others.
        """
        if self.rows is None or self.solve_for is not None or self.best.about != "counts":
            return None
        about = f"{self.rows:,} row{'s' * (self.rows > 1)} at ε = {self.epsilon:g}"
        best = next(option for option in self.options if option.about == "counts" and option.answers is None)
        error = best.error
        if error is None or error > LEVELS[-1][0]:
            bar = "No answer has a useful bar" if error is None else f"Bars reach ± {_percent(error)} of the rows"
            return f"No: {about} {'are' if self.rows > 1 else 'is'} too few for this universe. {bar}. Declare fewer columns or wider bins, or spend more."
        answer = next(answer for most, answer in LEVELS if error <= most)
        least = math.ceil(2 * error * self.rows)
        typical = "" if best.typical is None else f"; most answers are closer, typically ± {_percent(best.typical)}"
        return (
            f"{answer} With {about}, every answer is within about ± {_percent(error)} of the rows{typical}. Groups of "
            f"{least:,} rows or more ({_percent(least / self.rows)}) can be told apart; smaller ones are uncertain."
        )

    def plot(self, axes: Any = None) -> Any:
        """Draw the errors of the best option against the number of rows, and return the axes.

        The errors at ``rows`` are those of the plan. Elsewhere they are scaled: the noise in a count does not depend on
        the number of rows n, so its share of the rows falls as 1/n. On a real table, errors that come from the model
        fall more slowly.

        Parameters
        ----------
        axes : matplotlib axes, optional
            Axes to draw on. Default: new axes.

        Returns
        -------
        matplotlib axes

        Raises
        ------
        InvalidInput
            If the plan has no number of rows, or no error.

        Example
        -------
        >>> axes = hr.plan(universe=universe, budget=hr.Budget(1.0, 1e-6), rows=10_000_000, simulate=False).plot()
        """
        if self.rows is None or self.best.error is None:
            raise InvalidInput(
                "A picture of a plan must have rows= and an error to show. Found none. Call hr.plan(…, rows=…), with "
                "more rows or a larger budget if no mechanism promises anything."
            )
        from hedgerow.display.pictures import draw_sizes

        return draw_sizes(self.rows, self.best.error, self.best.typical, LEVELS, axes)

    @property
    def json(self) -> str:
        """The plan as JSON."""
        record = {**asdict(self), "sentence": self.sentence, "verdict": self.verdict, "limit": self.limit}
        return readable(record, indent=1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of the table of options."""
        if self.solve_for is not None:
            found: tuple[str, ...] = (FOUND[self.solve_for],)
        else:
            found = ("error of all answers",) if self.rows is not None else ()
        needed = (f"rows for ± {self.accuracy:g}",) if self.accuracy is not None and self.solve_for is None else ()
        return ("mechanism", "about", *found, "typically", *needed, "adaptive", "by")

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """The options as rows of text, under ``columns``."""
        found = []
        for o in self.options:
            held = (_error(o),) if self.rows is not None else ()
            needed = (_rows(o),) if self.accuracy is not None else ()
            if self.solve_for is not None:
                held, needed = (_solution(o, self.solve_for),), ()
            typical = "–" if o.interval is None else _typically(*o.interval)
            by = o.by if o.runs else f"{o.by}; too large to run"
            found.append((o.mechanism, o.about, *held, typical, *needed, "yes" if o.adaptive else "no", by))
        return found

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [self.columns, *self.lines]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in lines]
        return "\n".join([*text, *self._sentences()])

    def _sentences(self) -> list[str]:
        """Return the sentences below the table."""
        effect = None if self.effect is None else str(self.effect)
        return [said for said in (self.verdict, self.sentence, self.limit, effect, self.population) if said]

    def _repr_html_(self) -> str:
        return _html.table(self.columns, self.lines) + "".join(map(_html.paragraph, self._sentences()))


def _percent(share: float) -> str:
    """Return a share in percent, with two digits."""
    return f"{100 * share:.3g} %" if share >= 0.995 else f"{100 * share:.2g} %"


def _error(option: Option) -> str:
    """Show the error of an option: a bound, or what a simulation showed."""
    if option.error is None:
        return "no bound"
    return f"{'about' if option.simulated else 'at most'} {option.error:.3g}"


def _typically(low: float, high: float) -> str:
    """Show an interval of mean errors, or a mean error that is known."""
    return f"± {low:.2g}" if low == high else f"± {low:.2g} to {high:.2g}"


def _rows(option: Option) -> str:
    """Show the rows of an option: enough by a theorem, or enough in a simulation."""
    if option.rows is None:
        return "–"
    rows = f"{option.rows:,.0f}" if option.rows < 1e9 else f"{option.rows:.2g}"
    return f"about {rows}" if option.simulated else rows


def _solution(option: Option, unknown: Unknown) -> str:
    """Show the value of an unknown."""
    if option.solution is None:
        return "none is enough"
    if unknown == "queries":
        workload = "" if option.answers is None else ", of the workload"
        return "any number" if option.solution >= QUERIES_AT_MOST else f"{option.solution:,.0f}{workload}"
    return f"{option.solution:.3g}"
