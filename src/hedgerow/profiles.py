"""Profiles of a session: the engine that answers, with the options that are its own.

``Practical`` spends most of the budget on a hypothesis before the first question. ``Theory`` is the textbook mechanism
with its guarantee. A profile is public and immutable; it refuses options outside their range when it is made, before
any row is read.

A workload is read as people write it (``read_workload``), on a universe:

    hr.count(smoker=True)                        a question
    "mean('income', where=count(sex='F'))"       a question as text
    "SELECT sex, AVG(income) FROM data GROUP BY sex"
    "income ~ sex + age"                         each column on the right with the one on the left, and in pairs
    "income ~ sex * age"                         these, and all three together
    ("sex", "income")                            the table of these columns
    "income"                                     the column with every other one

Workloads are public. What is read is a list of questions: tables of counts, except for questions that were given as
such. Beside texts and names, every other column is expected by itself: these tables cost little, and without them
nothing would be measured of the columns that were not named. A list of questions alone is taken as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, TypedDict

from hedgerow._checks import number, positive
from hedgerow.engine.practical.engine import MOST_RESERVE
from hedgerow.engine.practical.measure.prefit import MODEL_CELLS
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import Query, bound, marginal
from hedgerow.query.parse import question, read_question
from hedgerow.query.workloads import Workload, conjunctions, intervals, marginals, parities, thresholds
from hedgerow.universe.universe import Universe


class ProfileOptions(TypedDict, total=False):
    """Options of both profiles, as keywords of ``hr.open``."""

    queries: int
    beta: float
    alpha: float | None
    workload: Workload | Iterable[Any] | str | None
    guard: float | None
    reserve: float | None
    model_cells: int
    pay_for_hits: bool


@dataclass(frozen=True, kw_only=True)
class Practical:
    """Profile that spends most of the budget on a hypothesis before the first question. For tables of any size.

    Parameters
    ----------
    queries : int
        Expected number of questions.
    beta : float
        Probability with which any error bar may fail, for all error bars together.
    workload : Workload, str or iterable, optional
        Questions that the hypothesis should answer best. Default: all sets of up to three attributes. Items are
        questions, SQL texts, formulas such as ``"income ~ sex + age"``, tuples of columns such as ``("sex",
        "income")``, and names of columns, each with all others. Convex questions in it are certified: a tenth of the
        amount that the opening spends bounds the excess risk of all of them.
    guard : float, optional
        Share of the budget for the sparse vector, or 0 for none. Default: a public rule.
    reserve : float, optional
        Share of the budget that is kept for ``ask(within=…)``. Default: a public rule, the cost of ten counts to a
        hundredth of the rows, but between 1 and 5 percent; 2 percent if n is private.
    model_cells : int
        Largest size of the hypothesis, in cells of its junction tree (about 50 bytes each; time grows in proportion).
        Strong pairs beyond this size are still measured, and correct answers and synthetic records.
    pay_for_hits : bool
        Give the sparse vector a public threshold, so that only "wrong" costs anything: a "wrong" then costs about a
        seventh, at the same threshold. All other noise is about 4 percent larger at the same price
        (docs/benchmarks-hits.md).

    Raises
    ------
    InvalidInput
        If an option is outside its range.

    Example
    -------
    >>> import hedgerow as hr
    >>> hr.Practical(reserve=0.1, workload=hr.marginals(2))
    Practical(workload=marginals(2), reserve=0.1)
    """

    name: ClassVar[Literal["practical"]] = "practical"

    queries: int = 100_000
    beta: float = 0.05
    workload: Workload | Iterable[Any] | str | None = None
    guard: float | None = None
    reserve: float | None = None
    model_cells: int = MODEL_CELLS
    pay_for_hits: bool = False

    def __post_init__(self) -> None:
        _require_queries(self.queries)
        if not isinstance(self.model_cells, int) or isinstance(self.model_cells, bool) or self.model_cells < 1:
            raise InvalidInput(
                f"model_cells must be a whole number of at least 1. Found {self.model_cells!r}. Leave it out, or give "
                f"{MODEL_CELLS}."
            )
        _require_beta(self.beta)
        if not isinstance(self.pay_for_hits, bool):
            raise InvalidInput(f"pay_for_hits must be True or False. Found {self.pay_for_hits!r}. Choose one.")
        reserve = self.reserve
        if reserve is None:  # the rule needs the table; its largest result must fit beside the guard
            reserve = MOST_RESERVE
        kept, guarded = number(reserve), 0.0 if self.guard is None else number(self.guard)
        if not (kept >= 0 and guarded >= 0 and kept + 2 * guarded < 1):
            raise InvalidInput(
                f"reserve and guard must be shares with reserve + 2·guard below 1. Found {reserve!r} and "
                f"{self.guard!r}. Lower them."
            )
        object.__setattr__(self, "workload", checked_workload(self.workload))

    def __repr__(self) -> str:
        return _format(self)

    @property
    def declared(self) -> dict[str, Any]:
        """Options that a durable ledger is bound to, in the order and form in which its record holds them."""
        more = {} if self.model_cells == MODEL_CELLS else {"model_cells": self.model_cells}
        more |= {"pay_for_hits": True} if self.pay_for_hits else {}
        return _declaration(self, alpha=None, guard=self.guard, reserve=self.reserve) | more


@dataclass(frozen=True, kw_only=True)
class Theory:
    """Profile of the textbook mechanism with its guarantee. For tables with very many rows.

    Parameters
    ----------
    queries : int
        Number of questions k of the theorem.
    beta : float
        Failure probability β of the theorem.
    alpha : float, optional
        Error α of the theorem. Default: the smallest that the budget allows.
    workload : iterable of Query, optional
        Convex questions that state the largest constants of the losses that will be asked.

    Raises
    ------
    InvalidInput
        If an option is outside its range.

    Example
    -------
    >>> import hedgerow as hr
    >>> hr.Theory(queries=100, alpha=0.2)
    Theory(queries=100, alpha=0.2)
    """

    name: ClassVar[Literal["theory"]] = "theory"

    queries: int = 100_000
    beta: float = 0.05
    alpha: float | None = None
    workload: Workload | Iterable[Any] | str | None = None

    def __post_init__(self) -> None:
        _require_queries(self.queries)
        _require_beta(self.beta)
        if self.alpha is not None:
            wanted = positive("alpha", self.alpha, "Give the error that the theorem should guarantee, or leave it out.")
            object.__setattr__(self, "alpha", wanted)
        object.__setattr__(self, "workload", checked_workload(self.workload))

    def __repr__(self) -> str:
        return _format(self)

    @property
    def declared(self) -> dict[str, Any]:
        """Options that a durable ledger is bound to, in the order and form in which its record holds them."""
        return _declaration(self, alpha=self.alpha, guard=None, reserve=None)


Profile = Practical | Theory
PROFILES: dict[str, type[Practical] | type[Theory]] = {kind.name: kind for kind in (Practical, Theory)}


def profile_of(given: Any, options: Mapping[str, Any]) -> Profile:
    """Return the profile that ``hr.open`` was asked for: an object, or a name with its options as keywords.

    Refuse an option of the other profile, and an option beside an object, which has a place for it.
    """
    known = {field.name for kind in PROFILES.values() for field in fields(kind)}
    for name in options:
        if name not in known:
            raise TypeError(f"open() got an unexpected keyword argument {name!r}")
    if isinstance(given, Practical | Theory):
        kind: Any = type(given)
        _require_own(kind, options)
        for name, value in options.items():
            raise InvalidInput(
                f"{name} must be given in the profile. Found {name}={value!r} beside profile=hr.{given!r}. Write "
                f"profile=hr.{kind.__name__}({name}=…)."
            )
        return given
    if not isinstance(given, str) or given not in PROFILES:
        raise InvalidInput(
            f"profile must be 'practical' or 'theory'. Found {given!r}. Choose one, or give hr.Practical(…) or "
            "hr.Theory(…)."
        )
    kind = PROFILES[given]
    _require_own(kind, options)
    own = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in options.items() if name in own})  # type: ignore[no-any-return]


def _require_own(kind: type[Practical] | type[Theory], options: Mapping[str, Any]) -> None:
    """Refuse an option that only the other profile has. Its default, if given, says nothing and is accepted."""
    own = {field.name for field in fields(kind)}
    for other in PROFILES.values():
        for field in fields(other):
            if field.name in options and field.name not in own and options[field.name] != field.default:
                raise InvalidInput(
                    f"{field.name} must come with profile={other.name!r}. Found {field.name}="
                    f"{options[field.name]!r} with {kind.name!r}. Leave it out, or write "
                    f"profile=hr.{other.__name__}({field.name}=…)."
                )


def checked_workload(workload: Any) -> Any:
    """Check a workload, or the list of its items, before any row is read. Names and texts are read on the universe."""
    if not (workload is None or isinstance(workload, Workload | str)) and isinstance(workload, Iterable):
        workload = list(workload)
    require_workload(workload)
    return workload


def with_questions(profile: Profile, universe: Universe) -> Profile:
    """Return the profile with its workload as questions: texts, formulas and names are read on the universe."""
    return replace(profile, workload=read_workload(profile.workload, universe))


def _require_queries(queries: Any) -> None:
    """Refuse a number of questions that is no whole number of at least 1."""
    if not isinstance(queries, int) or isinstance(queries, bool) or queries < 1:
        raise InvalidInput(f"queries must be a whole number of at least 1. Found {queries!r}. Say how many you expect.")


def _require_beta(beta: Any) -> None:
    """Refuse a probability of failure outside (0, 1)."""
    if not 0 < number(beta) < 1:
        raise InvalidInput(f"beta must be between 0 and 1. Found {beta!r}. Give the probability of failure.")


def _declaration(
    profile: Profile, *, alpha: float | None, guard: float | None, reserve: float | None
) -> dict[str, Any]:
    """Return the options of a profile under the names that every ledger has. An option of the other profile is None."""
    return {
        "profile": profile.name,
        "queries": profile.queries,
        "beta": profile.beta,
        "alpha": alpha,
        "workload": profile.workload,
        "guard": guard,
        "reserve": reserve,
    }


def _format(profile: Profile) -> str:
    """Show the options of a profile that differ from their defaults."""
    given = [(field.name, getattr(profile, field.name)) for field in fields(profile)]
    defaults = {field.name: field.default for field in fields(profile)}
    return f"{type(profile).__name__}({', '.join(f'{n}={v!r}' for n, v in given if v is not defaults[n] and v != defaults[n])})"


WORKLOADS = {each.__name__: each for each in (conjunctions, intervals, marginals, parities, thresholds)}
WAYS = (
    "questions, SQL text, formulas such as 'income ~ sex + age', tuples of columns such as ('sex', 'income'), or names "
    "of columns"
)


def require_workload(given: Any) -> None:
    """Refuse what no universe could read as a workload, before any row is read."""
    if given is None or isinstance(given, Workload | str):
        return
    items = given if isinstance(given, list | tuple) else None
    if items is None or not all(isinstance(item, Query | str) or _is_names(item) for item in items):
        raise InvalidInput(
            "workload must be a workload, such as hr.marginals(2), or a list of questions. Found "
            f"{type(given).__name__}. Give {WAYS}."
        )


def read_workload(given: Any, universe: Universe) -> Workload | list[Query] | None:
    """Return a workload, or the list of its questions, as this universe reads it.

    Parameters
    ----------
    given : Workload, str or iterable
        A workload, or a list of questions, SQL texts, formulas, tuples of columns and names of columns; or one of these
        as text.
    universe : Universe
        The universe whose columns are named.
    """
    if given is None or isinstance(given, Workload):
        return given
    found = _read_call(given) if isinstance(given, str) else None
    if found is not None:
        return found
    items = [given] if isinstance(given, str) else list(given)
    require_workload(items)
    read = [query for item in items for query in ([item] if isinstance(item, Query) else _read(item, universe))]
    if all(isinstance(item, Query) for item in items):
        return read
    named = {name for query in read for names in bound(query, universe).tables for name in names}
    return read + [marginal(name) for name in universe.names if name not in named]


def _read_call(text: str) -> Workload | None:
    """Return the workload that a text such as ``marginals(2)`` calls; None for any other text."""
    if text.split("(")[0].strip() not in WORKLOADS or "(" not in text:
        return None
    found: Workload = read_question(text, WORKLOADS)
    return found


def _read(item: Any, universe: Universe) -> Iterator[Query]:
    """Yield the questions that one item means."""
    if not isinstance(item, str):
        yield marginal(*_columns(item, universe))
    elif item in universe.names:
        yield from (marginal(item, other) for other in universe.names if other != item)
    elif "~" in item:
        yield from _of_formula(item, universe)
    elif item.lstrip()[:6].upper() == "SELECT":
        yield from _of_sql(item, universe)
    elif item.strip().isidentifier():
        _columns([item.strip()], universe)
    else:
        yield question(item)


def _of_formula(text: str, universe: Universe) -> Iterator[Query]:
    """Yield the tables that a model ``y ~ a + b:c`` depends on most.

    These are y with every term, and every two columns on the right, which say how the columns share y.
    """
    left, *right = text.split("~")
    if len(right) != 1 or not left.strip():
        raise InvalidInput(
            f"A formula must have one ~, with a column before it. Found {text!r}. Write 'income ~ sex + age'."
        )
    (target,) = _columns([left.strip()], universe)
    terms: list[tuple[str, ...]] = []
    for term in right[0].split("+"):
        crossed = [part.strip() for part in term.replace("*", ":").split(":")]
        names = _columns(crossed, universe)
        terms += [*((name,) for name in names), names] if "*" in term else [names]
    features = list(dict.fromkeys(name for term in terms for name in term))
    if target in features:
        raise InvalidInput(
            f"A formula must not have its target among the features. Found {target!r} on both sides of {text!r}. "
            "Remove it on the right."
        )
    wanted = [(target, *term) for term in terms] + list(itertools.combinations(features, 2))
    yield from (marginal(*names) for names in dict.fromkeys(wanted))


def _of_sql(text: str, universe: Universe) -> Iterator[Query]:
    """Yield the tables that the questions of a statement need."""
    from hedgerow.sql.result import example_questions

    asked = [bound(query, universe) for query in example_questions(text, universe)]
    sets = dict.fromkeys(universe.order(names) for each in asked for names in each.tables if names)
    yield from (marginal(*names) for names in sets)


def _columns(names: Iterable[str], universe: Universe) -> tuple[str, ...]:
    """Return the names, each once; refuse one that is no column."""
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in universe.names:
            raise InvalidInput(
                f"A workload must name columns of the universe. Found {name!r}. The columns are "
                f"{', '.join(map(repr, universe.names[:12]))}{', …' if len(universe.names) > 12 else ''}."
            )
    return chosen


def _is_names(item: Any) -> bool:
    """Return True for a tuple or list of names."""
    return isinstance(item, tuple | list) and bool(item) and all(isinstance(name, str) for name in item)
