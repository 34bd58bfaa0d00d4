"""Answers of a session: a value, a bound on its distance from the truth, and its cost.

Arithmetic on answers gives answers. All error bars of a session hold together with probability 1 − β. Whatever interval
arithmetic computes from two of them therefore holds together with them at no further cost: no noise is drawn and no β
is spent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hedgerow import _html
from hedgerow._checks import number
from hedgerow._extras import extra
from hedgerow._types import Array
from hedgerow.convex.minimize import Minimize
from hedgerow.errors import InvalidInput
from hedgerow.query.bound import Labels, Source
from hedgerow.query.counts import Query

if TYPE_CHECKING:
    import pandas as pd

OPERATORS = ("+", "-", "*", "/")
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
        least over the set by at most this much. None if nothing public bounds it.
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
        For a convex question, a bound for each entry of θ. See ``coefficients``.
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

    __array_ufunc__ = None  # makes NumPy numbers defer arithmetic with an answer to the answer

    @property
    def interval(self) -> tuple[Any, Any] | None:
        """Interval that contains the truth, together with all other answers, with probability 1 − β.

        None if nothing bounds the error, and for a convex question, whose error is no distance of θ.
        """
        if self.error is None or isinstance(self.query, Minimize):
            return None
        return self.value - self.error, self.value + self.error

    def certainly_above(self, other: Answer | float) -> bool:
        """Return True if the error bars prove that the truth of every cell is above that of ``other``.

        Parameters
        ----------
        other : Answer or float
            The answer or number to compare with.

        Returns
        -------
        bool
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

    def __bool__(self) -> NoReturn:
        raise InvalidInput(
            "A truth value must take the error bar into account. Found the answer itself. "
            "Use .certainly_above(…), or compare .value if its error may be ignored."
        )

    def _refuse_order(self, other: object) -> NoReturn:
        """Refuse <, <=, > and >=, which would ignore the error bars."""
        raise InvalidInput(
            "A comparison of answers must take their error bars into account. Found <, <=, > or >=. "
            "Use .certainly_above(…) or .certainly_below(…), or compare .value if their errors may be ignored."
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse_order

    def __eq__(self, other: object) -> bool:
        """Compare all fields: True for the same answer to the same question, to the last bit."""
        if not isinstance(other, Answer):
            return NotImplemented
        mine, theirs = ([getattr(a, f.name) for f in fields(Answer)] for a in (self, other))
        return all(
            _equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else a == b
            for a, b in zip(mine, theirs, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.query, self.source, self.cost))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per cell: its label on each axis, the value, the guaranteed error and the typical error."""
        import pandas as pd

        if isinstance(self.query, Minimize):  # its error bounds the risk of θ, not its entries
            return self.coefficients
        shape = np.shape(self.value)
        columns = {"value": self.value, "error": self.error, "typical": self.typical}
        cells = {name: np.broadcast_to(np.nan if v is None else v, shape).ravel() for name, v in columns.items()}
        if not self.labels:
            return pd.DataFrame(cells)
        names, labels = [n for n, _ in self.labels], [list(v) for _, v in self.labels]
        index = pd.MultiIndex.from_product(labels, names=names)
        return pd.DataFrame(cells, index=index).reset_index()

    @property
    def coefficients(self) -> pd.DataFrame:
        """Coefficients of a convex question, one row per entry of θ: its feature, its value and its error.

        ``error`` bounds the distance from the coefficient of least risk, together with all other error bars. It follows
        from the bound on the excess risk if the loss is strongly convex on the table: with a ridge, or for a squared
        loss if enough is known about its features. Otherwise it is NaN: no bound.
        """
        import pandas as pd

        if not isinstance(self.query, Minimize):
            raise InvalidInput(
                f"The question must be convex to have coefficients. Found {self.query!r}. Use .value and .error, or "
                ".frame."
            )
        value = np.ravel(self.value)
        errors = np.full(value.size, np.nan) if self.coefficient_errors is None else self.coefficient_errors
        columns = {"value": value, "error": np.ravel(errors)}
        names = [name for name, _ in self.labels]
        index = pd.MultiIndex.from_product([list(v) for _, v in self.labels], names=names) if names else None
        frame = pd.DataFrame(columns, index=index)
        return frame.reset_index() if names else frame

    @property
    def frame(self) -> pd.DataFrame:
        """The cells as a DataFrame: the same as ``to_frame()``."""
        return self.to_frame()

    def plot(self, axes: Any = None) -> Any:
        """Draw the value, its guaranteed error (thin) and its typical error (thick), and return the axes.

        A table of one or two attributes gets a bar for
        each cell.

        Parameters
        ----------
        axes : matplotlib axes, optional
            Axes to draw on. Default: new axes.

        Returns
        -------
        matplotlib axes
        """
        self._require_values("A plot")
        if len(self.labels) > 2:
            raise InvalidInput(
                f"A plot must show a table of one or two attributes. Found {len(self.labels)}. Ask for fewer, or use "
                ".frame."
            )
        plt = extra("matplotlib.pyplot")

        axes = plt.subplots()[1] if axes is None else axes
        if self.labels:
            _draw_table(axes, self)
        else:
            _draw_bars(axes, np.zeros(1), self, np.array([np.ravel(self.value)]), 0, "tab:green", "")
            axes.set_xticks([])
        axes.set_title(_literal(self.query), fontsize=9)
        axes.set_ylabel("value, guaranteed error (thin), typical error (thick)", fontsize=8)
        return axes

    def __repr__(self) -> str:
        bar = "" if self.error is None else f" ± {np.max(self.error):.4g}"
        value = f"{float(self.value):.6g}" if np.ndim(self.value) == 0 else f"array{np.shape(self.value)}"
        return f"Answer({value}{bar}, {self.source}, cost {self.cost:.3g})"

    def __str__(self) -> str:
        if np.ndim(self.value) == 0:
            return f"{self.query!r} = {_format(self.value)}{self._about()}"
        columns, rows = self._rows()
        widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in (columns, *rows)]
        return "\n".join([f"{self.query!r}{self._about()}", *lines, *self._left_out()])

    def _repr_html_(self) -> str:
        if np.ndim(self.value) == 0:
            return _html.paragraph(str(self))
        columns, rows = self._rows()
        return _html.table(columns, rows, f"{self.query!r}{self._about()}") + "".join(
            map(_html.paragraph, self._left_out())
        )

    def _about(self) -> str:
        """Return the error bar, if one covers all values, the source and the cost, in words."""
        said = []
        if isinstance(self.query, Minimize):
            said.append("excess risk " + ("not bounded" if self.error is None else f"at most {_format(self.error)}"))
        elif np.ndim(self.value) == 0:
            said.append("error not bounded" if self.error is None else f"guaranteed ± {_format(self.error)}")
            said += [] if self.typical is None else [f"typically ± {_format(self.typical)}"]
            said += [f"± {_format(self.resolution)} of it from the bins"] if np.any(self.resolution) else []
        return f" ({', '.join([*said, self.source, f'cost {self.cost:.3g}' if self.cost else 'free'])})"

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        """Return the column names and the first cells as texts."""
        frame = self.to_frame()
        names = {"error": "guaranteed ±", "typical": "typical ±"}
        columns = [str(names.get(c, c)) if c not in dict(self.labels) else str(c) for c in frame.columns]
        rows = [
            [_format(cell) if isinstance(cell, float) else str(cell) for cell in row]
            for row in itertools.islice(frame.itertuples(index=False), SHOWN)
        ]
        return columns, rows

    def _left_out(self) -> Iterator[str]:
        """Yield a line that says how many cells are not shown, if any."""
        if np.size(self.value) > SHOWN:
            yield f"… and {np.size(self.value) - SHOWN} more: .frame has all."

    def _require_values(self, what: str) -> None:
        """Refuse a convex question, whose error is not a distance."""
        if isinstance(self.query, Minimize):
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
    x, y = np.asarray(a.value, dtype=float), np.asarray(b.value, dtype=float)
    with np.errstate(all="ignore"):  # an unbounded ratio may be infinite or NaN
        by_x, by_y = _slopes(operator, x, y)
        value = _apply(operator, x, y)
        error = _reach(operator, value, (x, a.error), (y, b.error))
        coarse = _times(by_x, a.resolution) + _times(by_y, b.resolution)
        usual = None if a.typical is None or b.typical is None else np.hypot(by_x * a.typical, by_y * b.typical)
    return Answer(
        Combination(operator, *(p.query if isinstance(p, Answer) else float(p) for p in (left, right))),
        _plain(value),
        None if error is None or (error.ndim == 0 and not np.isfinite(error)) else _plain(error),
        answers[0].source if len({part.source for part in answers}) == 1 else "combined",
        math.fsum(part.cost for part in answers),
        a.labels or b.labels,
        _plain(coarse if error is None else np.minimum(coarse, error)),
        None if usual is None else _plain(usual),
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
    return "unknown" if math.isnan(found) else f"{found:.4g}"


def _literal(words: object) -> str:
    """Escape dollar signs, between which matplotlib would read mathematics."""
    return str(words).replace("$", r"\$")


def _draw_table(axes: Any, answer: Answer) -> None:
    """Draw a group of bars for each label of the first axis, with one bar for each label of the second."""
    colormaps = extra("matplotlib").colormaps

    name, labels = answer.labels[0]
    groups = answer.labels[1][1] if len(answer.labels) == 2 else ("",)
    values = np.reshape(answer.value, (len(labels), len(groups)))
    places = np.arange(len(labels), dtype=float)
    for k, group in enumerate(groups):
        color = colormaps["viridis"](0.15 + 0.7 * k / max(1, len(groups) - 1))
        _draw_bars(
            axes, places + (k - (len(groups) - 1) / 2) * 0.8 / len(groups), answer, values, k, color, _literal(group)
        )
    axes.set_xticks(places, [_literal(label) for label in labels], rotation=30, ha="right")
    axes.set_xlabel(_literal(name))
    if len(groups) > 1:
        axes.legend(title=_literal(answer.labels[1][0]), frameon=False, fontsize=8)


def _draw_bars(axes: Any, places: Array, answer: Answer, values: Array, k: int, color: Any, label: str) -> None:
    """Draw the k-th bar of each group with its guaranteed and its typical error."""
    axes.bar(places, values[:, k], width=0.75 / values.shape[1], color=color, alpha=0.6, label=label)
    for width, thick in ((answer.error, 1.0), (answer.typical, 4.0)):
        if width is not None:
            each = np.broadcast_to(width, np.shape(answer.value)).reshape(values.shape)[:, k]
            known = np.isfinite(each)
            axes.errorbar(
                places[known],
                values[known, k],
                yerr=each[known],
                fmt="none",
                ecolor="black",
                elinewidth=thick,
                alpha=0.7,
            )
