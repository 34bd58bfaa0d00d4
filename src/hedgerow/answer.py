"""Answers of a session: a value, a bound on its distance from the truth, and its cost.

Arithmetic on answers gives answers. All error bars of a session hold together with probability 1 − β. Whatever interval
arithmetic computes from two of them therefore holds together with them at no further cost: no noise is drawn and no β
is spent.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hedgerow import _html
from hedgerow._checks import number, whole
from hedgerow._numbers import few_digits
from hedgerow._types import Array
from hedgerow.display.titles import UNINFORMATIVE, title
from hedgerow.errors import InvalidInput
from hedgerow.query.bound import GUARANTEED, Basis, Labels, Source
from hedgerow.query.counts import Query
from hedgerow.query.support import Support

if TYPE_CHECKING:
    import pandas as pd

OPERATORS = ("+", "-", "*", "/")
TOP = 25  # a picture has at most this many categories with a bar of their own
SHOWN = 20  # a notebook or a terminal shows at most this many cells of a table


class Combination(Query):
    """A description of arithmetic on answers. It cannot be asked itself."""

    def __init__(self, operator: str, left: Query | float, right: Query | float) -> None:
        self.operator, self.left, self.right = operator, left, right

    def on(self, universe: Any, resolution: Any = "values") -> NoReturn:
        """Refuse to bind: only the parts of a combination can be asked."""
        raise InvalidInput(
            f"A question must be made by hr.count, hr.marginal, hr.mean, …. Found arithmetic on answers, {self!r}. "
            "Ask its parts, and combine their answers."
        )

    def _identity(self) -> Any:
        return ("arithmetic", self.operator, self.left, self.right)

    def __repr__(self) -> str:
        parts = (f"{part:g}" if isinstance(part, float) else repr(part) for part in (self.left, self.right))
        return "(" + f" {self.operator} ".join(parts) + ")"


@title.register
def _(query: Combination) -> str:
    left, right = (f"{part:g}" if isinstance(part, float) else title(part) for part in (query.left, query.right))
    sign = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}[query.operator]
    return f"{left}, {sign} {right}"


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """A private answer.

    ``a + b``, ``a - b``, ``a * b``, ``a / b`` and ``-a``, with answers or numbers, are answers; tables are combined
    cell by cell.

    Attributes
    ----------
    query : Query
        The question as it was asked.
    value
        A number, or an array for a table. For a convex question the parameters θ.
    error : float, array or None
        Guaranteed half-width: it holds for all answers of the session at once with probability 1 − β. A table has one
        for each cell. For a convex question it bounds the excess risk: the average loss of θ on the table exceeds the
        least over the set by at most this much. None if nothing public bounds it. Infinite for a cell of a table of
        means or other numbers whose interval covers the whole range of the attribute: it is uninformative.
    source : str
        "hypothesis", "measured", "repeat", or "combined" for arithmetic on answers of different sources.
    cost : float
        Amount charged for this answer, in the budget's currency: ε if δ = 0, else ρ.
    labels
        Name and values of each axis of a table.
    resolution : float or array
        Part of ``error`` that is due to the bins of the universe.
    typical : float, array or None
        Average size of the error of similar questions. This is not a bound.
    coefficient_errors : array or None
        For a convex question, the half width of an interval for each entry of θ. See ``coefficients``.
    coefficient_basis : str
        "guaranteed" if ``coefficient_errors`` follow from the bound on the excess risk, "bootstrap" if they are
        estimates by a parametric bootstrap of the released measurements. See ``coefficients``.
    simulation : float or None
        For a convex question on attributes whose joint table is too large: θ was fitted on a large weighted sample of
        the hypothesis, and this bounds its excess risk on the hypothesis itself, at 99 % over the public seed.
    support : Support or None
        What the answer rests on: attributes that were measured together, smaller tables from which it is inferred, or
        an assumption about attributes that were never measured together. None if that is not known.
    lower, upper : float, array or None
        Ends of ``interval`` that are nearer than ``value`` ± ``error``, as those of a ratio are; None if they are not.

    Example
    -------
    >>> answer = session.ask(hr.count(sex="F"))
    >>> answer.excludes(0.95)
    True
    """

    query: Query
    value: Any
    error: float | Array | None
    source: Source
    cost: float
    labels: Labels = ()
    resolution: float | Array = 0.0
    typical: float | Array | None = None
    coefficient_errors: Array | None = None
    lower: float | Array | None = None
    upper: float | Array | None = None
    coefficient_basis: Basis = GUARANTEED
    simulation: float | None = None
    support: Support | None = field(default=None, compare=False)

    __array_ufunc__ = None  # makes NumPy numbers defer arithmetic with an answer to the answer

    @property
    def interval(self) -> tuple[Any, Any] | None:
        """Interval that contains the truth, together with all other answers, with probability 1 − β.

        None if nothing bounds the error, and for a convex question, whose error is no distance of θ. One end is
        infinite if only the other is bounded.
        """
        if self.query.is_convex or (self.error is None and self.lower is None and self.upper is None):
            return None
        reach = math.inf if self.error is None else self.error
        low = self.value - reach if self.lower is None else self.lower
        return low, self.value + reach if self.upper is None else self.upper

    def excludes(self, value: float) -> Any:
        """Return True if the interval proves that the truth is not this number; for a table, one truth value per cell.

        Of all statements that a session proves in this way, however many, none is wrong with probability 1 − β. So no
        correction for several comparisons is needed.

        Parameters
        ----------
        value : float
            The number, such as 0 for a difference and 1 for a ratio.

        Returns
        -------
        bool or array of bool

        Raises
        ------
        InvalidInput
            If the question is convex, or the value is not finite.

        Example
        -------
        >>> session.ask(hr.difference(first, second)).excludes(0)  # doctest: +SKIP
        """
        self._require_values("excludes")
        wanted, ends = number(value), self.interval
        if not math.isfinite(wanted):
            raise InvalidInput(f"value must be a finite number. Found {value!r}. Give 0, or 1 for a ratio.")
        if ends is None:
            return np.zeros(np.shape(self.value), bool) if np.ndim(self.value) else False
        outside = np.less(wanted, ends[0]) | np.greater(wanted, ends[1])
        return outside if np.ndim(self.value) else bool(outside)

    def explain(self, session: Any = None) -> str:
        """Explain the answer in sentences: what its bar means, what it rests on, and what would narrow the bar.

        Parameters
        ----------
        session : Session, optional
            A session that states the price of a bar of half the width, for free.

        Returns
        -------
        str

        Example
        -------
        >>> print(answer.explain(session))  # doctest: +SKIP
        """
        from hedgerow.display.explanation import explain

        return explain(self, session)

    def certainly_above(self, other: Answer | float) -> bool:
        """Return True if the error bars prove that the truth of every cell is above that of ``other``.

        Parameters
        ----------
        other : Answer or float
            The answer or number to compare with.

        Returns
        -------
        bool

        Example
        -------
        >>> session.ask(hr.count(sex="F")).certainly_above(0.05)
        True
        """
        gap = (self - other).interval
        return gap is not None and bool(np.all(gap[0] > 0))

    def certainly_below(self, other: Answer | float) -> bool:
        """Return True if the error bars prove that the truth of every cell is below that of ``other``.

        Parameters
        ----------
        other : Answer or float
            The answer or number to compare with.

        Returns
        -------
        bool

        Example
        -------
        >>> session.ask(hr.count(sex="F")).certainly_below(0.95)
        True
        """
        return (-self).certainly_above(-other)

    def __add__(self, other: Answer | float) -> Answer:
        return _combine("+", self, other)

    def __radd__(self, other: float) -> Answer:
        return _combine("+", other, self)

    def __sub__(self, other: Answer | float) -> Answer:
        return _combine("-", self, other)

    def __rsub__(self, other: float) -> Answer:
        return _combine("-", other, self)

    def __mul__(self, other: Answer | float) -> Answer:
        return _combine("*", self, other)

    def __rmul__(self, other: float) -> Answer:
        return _combine("*", other, self)

    def __truediv__(self, other: Answer | float) -> Answer:
        return _combine("/", self, other)

    def __rtruediv__(self, other: float) -> Answer:
        return _combine("/", other, self)

    def __neg__(self) -> Answer:
        return -1.0 * self

    def __float__(self) -> float:
        if np.ndim(self.value):
            raise InvalidInput(
                f"An answer must have one value to be a float. Found {np.size(self.value)} values. Use .value or "
                ".frame."
            )
        return float(self.value)

    def __format__(self, how: str) -> str:
        return format(float(self), how) if how else str(self)

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self), digits)

    def __bool__(self) -> NoReturn:
        raise InvalidInput(
            "A truth value must take the error bar into account. Found the answer itself. "
            "Use .certainly_above(…), or compare .value if its error may be ignored."
        )

    def _refuse_order(self, other: object) -> NoReturn:
        """Refuse comparisons with numbers, and of size, which would ignore the error bars."""
        raise InvalidInput(
            "A comparison of answers must take their error bars into account. Found <, <=, >, >= or == with a number. "
            "Use .certainly_above(…) or .certainly_below(…), or compare .value if their errors may be ignored."
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse_order

    def __eq__(self, other: object) -> bool:
        """Compare all fields: True for the same answer to the same question, to the last bit."""
        if isinstance(other, int | float | np.number | np.ndarray):
            self._refuse_order(other)
        if not isinstance(other, Answer):
            return NotImplemented
        mine, theirs = ([getattr(a, f.name) for f in fields(Answer) if f.compare] for a in (self, other))
        return all(
            _equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else a == b
            for a, b in zip(mine, theirs, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.query, self.source, self.cost))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per cell: its label on each axis, the value, the guaranteed error and the typical error.

        Returns
        -------
        DataFrame

        Example
        -------
        >>> list(session.ask(hr.marginal("sex")).to_frame().columns)
        ['sex', 'value', 'error', 'typical']
        """
        import pandas as pd

        if self.query.is_convex:  # its error bounds the risk of θ, not its entries
            return self.coefficients
        shape = np.shape(self.value)
        columns = {"value": self.value, "error": self.error, "typical": self.typical}
        if (self.lower is not None or self.upper is not None) and self.interval is not None:
            columns["lower"], columns["upper"] = self.interval
        cells = {name: np.broadcast_to(np.nan if v is None else v, shape).ravel() for name, v in columns.items()}
        if not self.labels:
            return pd.DataFrame(cells)
        names, labels = [n for n, _ in self.labels], [list(v) for _, v in self.labels]
        index = pd.MultiIndex.from_product(labels, names=names)
        return pd.DataFrame(cells, index=index).reset_index()

    @property
    def coefficients(self) -> pd.DataFrame:
        """Coefficients of a convex question, one row per entry of θ: its feature, its value, its error and their basis.

        ``basis`` says where the errors come from. "guaranteed": the error bounds the distance from the coefficient of
        least risk, together with all other error bars. It follows from the bound on the excess risk if the loss is
        strongly convex on the table: with a ridge, or for a squared loss if enough is known about its features.
        "bootstrap": the error is the half width of a 95 % interval for this one coefficient, by a parametric bootstrap
        of the released measurements. It covers their noise. Where a feature and the target were never measured
        together, the error is infinite. Only for a user-defined loss without a bound it is NaN.
        """
        import pandas as pd

        if not self.query.is_convex:
            raise InvalidInput(
                f"The question must be convex to have coefficients. Found {self.query!r}. Use .value and .error, or "
                ".frame."
            )
        value = np.ravel(self.value)
        errors = np.full(value.size, np.nan) if self.coefficient_errors is None else self.coefficient_errors
        columns = {"value": value, "error": np.ravel(errors), "basis": np.full(value.size, self.coefficient_basis)}
        names = [name for name, _ in self.labels]
        index = pd.MultiIndex.from_product([list(v) for _, v in self.labels], names=names) if names else None
        frame = pd.DataFrame(columns, index=index)
        return frame.reset_index() if names else frame

    @property
    def frame(self) -> pd.DataFrame:
        """The cells as a DataFrame: the same as ``to_frame()``."""
        return self.to_frame()

    def plot(self, axes: Any = None, *, top: int | None = TOP) -> Any:
        """Draw the value, its guaranteed error (thin) and its typical error (thick), and return the axes.

        Categories are sorted, the largest first. Numbers, intervals and dates keep their order.

        Parameters
        ----------
        axes : matplotlib axes, optional
            Axes to draw on. Default: new axes.
        top : int, optional
            Number of categories with a bar of their own; the others share one. None draws all of them.

        Returns
        -------
        matplotlib axes

        Raises
        ------
        InvalidInput
            If the answer is not a number or a table of one or two attributes.

        Example
        -------
        >>> axes = session.ask(hr.marginal("sex")).plot()
        """
        self._require_values("A plot")
        if axes is not None and not hasattr(axes, "errorbar"):
            raise InvalidInput(
                f"axes must be matplotlib's. Found {type(axes).__name__}. Leave it out, or use plt.gca()."
            )
        if len(self.labels) > 2:
            raise InvalidInput(
                f"A plot must show a table of one or two attributes. Found {len(self.labels)}. Ask for fewer, or use "
                ".frame."
            )
        if top is not None:
            whole("top", top)
        from hedgerow.display.pictures import draw_answer

        return draw_answer(self, axes, top)

    def __repr__(self) -> str:
        bar = "" if self.error is None else f" ± {few_digits(float(np.max(self.error)))}"
        if self.interval is None and not self.query.is_convex:
            bar = f" {UNINFORMATIVE}"
        if np.any(empty := self._is_uninformative()):
            finite = np.asarray(self.error)[~empty]
            bar = f" ± {few_digits(finite.max())} and" if finite.size else ""
            bar = f"{bar} {np.count_nonzero(empty)} of {empty.size} uninformative"
        value = few_digits(float(self.value), 6) if np.ndim(self.value) == 0 else f"array{np.shape(self.value)}"
        rests = "" if self.support is None or self.support.kind == "measured" else f", {self.support.kind}"
        return f"Answer({value}{bar}, {self.source}{rests}, cost {self.cost:.3g})"

    def __str__(self) -> str:
        if np.ndim(self.value) == 0:
            return f"{self.query!r} = {_format(self.value)}{self._about()}"
        columns, shown = self._shown_lines()
        widths = [max(len(cell) for cell in column) for column in zip(columns, *shown, strict=True)]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in (columns, *shown)]
        return "\n".join([f"{self.query!r}{self._about()}", *lines, *self._left_out()])

    def _repr_html_(self) -> str:
        if np.ndim(self.value) == 0:
            return _html.paragraph(str(self))
        columns, lines = self._shown_lines()
        return _html.table(columns, lines, f"{self.query!r}{self._about()}") + "".join(
            map(_html.paragraph, self._left_out())
        )

    def _about(self) -> str:
        """Return the error bar, if one covers all values, the source and the cost, in words."""
        said = []
        if self.query.is_convex:
            said.append("excess risk " + ("not bounded" if self.error is None else f"at most {_format(self.error)}"))
            if self.simulation is not None:
                said.append(f"fitted on a sample of the hypothesis, which adds at most {_format(self.simulation)}")
            if self.coefficient_errors is not None and self.coefficient_basis != GUARANTEED:
                said.append("errors of coefficients by bootstrap at 95 %, not guaranteed")
        elif np.ndim(self.value) == 0:
            said.append(self._guaranteed())
            said += [f"typically ± {_format(self.typical)}"] if self.typical else []
            said += [f"± {_format(self.resolution)} of it from the bins"] if np.any(self.resolution) else []
            said += ["too few rows to tell it from 0"] if np.any(self._reaches_zero()) else []
        said += [] if self.support is None or self.source == "measured" else [str(self.support)]
        return f" ({', '.join([*said, self.source, f'cost {self.cost:.3g}' if self.cost else 'free'])})"

    def _reaches_zero(self) -> Any:
        """Return True for cells whose bar says little: it reaches 0, or is unknown."""
        value, ends = np.asarray(self.value, float), self.interval
        if ends is None:
            return np.ones(value.shape, bool)
        low, high = (np.broadcast_to(end, value.shape) for end in ends)
        return ~((low > 0) | (high < 0) | (low == high))

    def _guaranteed(self) -> str:
        """Return the error bar in words, or the interval where an end is nearer than the bar says."""
        ends = self.interval
        if ends is not None and (self.lower is not None or self.upper is not None):
            return f"guaranteed between {_format(ends[0])} and {_format(ends[1])}"
        if self.error is None:
            return f"{UNINFORMATIVE}: the interval covers the whole range"
        return f"guaranteed ± {_format(self.error)}"

    def _is_uninformative(self) -> Any:
        """Return True for each cell of a table whose interval covers the whole range of its values."""
        if self.query.is_convex or self.error is None or np.ndim(self.error) == 0:
            return np.False_
        return np.isinf(self.error)

    def _shown_lines(self) -> tuple[list[str], list[list[str]]]:
        """Return the column names and the first cells as texts."""
        frame = self.to_frame()
        names = {"error": f"{self.coefficient_basis} ±", "typical": "typical ±"}
        columns = [str(names.get(c, c)) if c not in dict(self.labels) else str(c) for c in frame.columns]
        lines = [
            [_format(cell) if isinstance(cell, float) else str(cell) for cell in row]
            for row in itertools.islice(frame.itertuples(index=False), SHOWN)
        ]
        if np.any(empty := self._is_uninformative()):
            for row, is_empty in zip(lines, np.ravel(empty), strict=False):
                row[columns.index(names["error"])] = UNINFORMATIVE if is_empty else row[columns.index(names["error"])]
        return columns, lines

    def _left_out(self) -> Iterator[str]:
        """Yield lines that say how many cells are not shown, and how many say too little, if any."""
        if np.any(self._is_uninformative()):
            yield f"{UNINFORMATIVE}: the interval covers the whole range."
        if np.size(self.value) > SHOWN:
            yield f"… and {np.size(self.value) - SHOWN} more: .frame has all."
        uncertain = 0 if self.query.is_convex else int(np.sum(self._reaches_zero()))
        if uncertain:
            yield f"{uncertain} of {np.size(self.value)} cells have too few rows to tell them from 0."

    def _require_values(self, what: str) -> None:
        """Refuse a convex question, whose error is not a distance."""
        if self.query.is_convex:
            raise InvalidInput(
                f"{what} must use answers to counts, means or tables. Found the answer to a convex question, whose "
                "error is an excess risk and not a distance. Use .value and .error."
            )


def _combine(operator: str, left: Any, right: Any) -> Answer:
    """Combine two answers, or an answer and a number.

    The guaranteed error follows by interval arithmetic. The resolution is combined to first order. So is the typical
    error, whose parts are added in quadrature.
    """
    a, b = _operand(left), _operand(right)
    if a.labels and b.labels and a.labels != b.labels:
        raise InvalidInput(
            f"Tables must have the same cells. Found {_axes(a)} and {_axes(b)}. Ask for both over the same attributes, "
            "in the same order."
        )
    answers = [part for part in (left, right) if isinstance(part, Answer)]
    supports = [part.support for part in answers if part.support is not None]
    x, y = np.asarray(a.value, dtype=float), np.asarray(b.value, dtype=float)
    with np.errstate(all="ignore"):  # an unbounded ratio may be infinite or NaN
        by_x, by_y = _slopes(operator, x, y)
        value = _apply(operator, x, y)
        error = _reach(operator, value, (x, a.error), (y, b.error))
        coarse = _times(by_x, a.resolution) + _times(by_y, b.resolution)
        typical_error = None if a.typical is None or b.typical is None else np.hypot(by_x * a.typical, by_y * b.typical)
    return Answer(
        Combination(operator, *(p.query if isinstance(p, Answer) else float(p) for p in (left, right))),
        _plain(value),
        None if error is None or (error.ndim == 0 and not np.isfinite(error)) else _plain(error),
        answers[0].source if len({part.source for part in answers}) == 1 else "combined",
        math.fsum(part.cost for part in answers),
        a.labels or b.labels,
        _plain(coarse if error is None else np.minimum(coarse, error)),
        None if typical_error is None else _plain(typical_error),
        support=functools.reduce(Support.join_with, supports) if len(supports) == len(answers) else None,
    )


def _operand(part: Any) -> Answer:
    """Return an operand as an answer; a number becomes an exact one."""
    if isinstance(part, Answer):
        part._require_values("Arithmetic")
        return part
    exact = number(part)
    if not math.isfinite(exact):
        raise InvalidInput(
            f"Answers must be combined with answers or finite numbers. Found {type(part).__name__}. Use .value for "
            "anything else."
        )
    return Answer(Query(), exact, 0.0, "repeat", 0.0, typical=0.0)


def _apply(operator: str, x: Array, y: Array) -> Array:
    """Compute x operator y."""
    match operator:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
    return np.asarray(x / y)


def _slopes(operator: str, x: Array, y: Array) -> tuple[Array, Array]:
    """Return the absolute partial derivatives of the result by x and by y."""
    match operator:
        case "+" | "-":
            return np.ones(()), np.ones(())
        case "*":
            return np.abs(y), np.abs(x)
    return np.abs(1 / y), np.abs(x / y**2)


def _times(slope: Array, width: float | Array) -> Array:
    """Multiply a slope by a width; 0 if the width is 0, even if the slope is infinite."""
    return np.where(np.asarray(width) == 0, 0.0, slope * width)


def _reach(
    operator: str, value: Array, a: tuple[Array, float | Array | None], b: tuple[Array, float | Array | None]
) -> Array | None:
    """Return the largest distance of the result from ``value`` with each part within its bar.

    The maximum is attained at the ends of the bars.
    """
    (x, off), (y, far) = a, b
    if off is None or far is None:
        return None
    corners = [np.abs(_apply(operator, x + s * off, y + t * far) - value) for s in (-1, 1) for t in (-1, 1)]
    reach = np.maximum.reduce(np.broadcast_arrays(*corners))
    bounded = np.abs(y) > far if operator == "/" else np.True_
    return np.where(bounded & ~np.isnan(reach), reach, np.inf)


def _plain(found: Any) -> Any:
    """Return a Python float, or an array."""
    return float(found) if np.ndim(found) == 0 else np.asarray(found)


def _equal(a: Any, b: Any) -> bool:
    return a is not None and b is not None and np.array_equal(a, b, equal_nan=True)


def _axes(answer: Answer) -> str:
    return " × ".join(name for name, _ in answer.labels)


def _format(found: Any) -> str:
    """Format the largest of some numbers."""
    found = float(np.max(found))
    return "unknown" if math.isnan(found) else few_digits(found)
