"""What a session answers: a value, how far it can be from the truth, and what it cost.

Arithmetic of answers are answers. All bars of a session hold together with 1 − β, so whatever is computed from two of them
by interval arithmetic holds together with them, at no further cost: no noise is drawn and no β is spent.
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
from hedgerow.questions.bound import Labels, Source
from hedgerow.questions.counts import Query

if TYPE_CHECKING:
    import pandas as pd

OPERATORS = ("+", "-", "*", "/")
SHOWN = 20  # rows of a table in a notebook or a terminal


class Combination(Query):
    """What was computed from answers: a description, which cannot be asked itself."""

    def __init__(self, operator: str, left: Query | float, right: Query | float) -> None:
        self.operator, self.left, self.right = operator, left, right

    def on(self, universe: Any, resolution: Any = "values") -> NoReturn:
        raise InvalidInput(
            f"A question must be made by hr.count, hr.marginal, hr.mean, …. Found arithmetic of answers, {self!r}. "
            "Ask its parts, and combine their answers."
        )

    def _identity(self) -> Any:
        return ("arithmetic", self.operator, self.left, self.right)

    def __repr__(self) -> str:
        parts = (f"{part:g}" if isinstance(part, float) else repr(part) for part in (self.left, self.right))
        return "(" + f" {self.operator} ".join(parts) + ")"


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """A private answer. ``error`` is a half-width that holds for all answers of the session at once with 1 − β.

    Of a convex question ``value`` is θ and ``error`` a bound on its excess risk: how much larger its average loss on the
    table may be than the least of the set; ``coefficients`` has what follows for each entry of θ. Of a table there is one ``error`` for each cell. It is None where nothing public
    bounds it. ``resolution`` is how much of it the universe's bins account for; ``typical`` the size that errors of questions
    like it have on average, which is no bound. ``cost`` is what was charged for it, in the budget's currency: ε when δ = 0,
    else ρ.

    ``a + b``, ``a - b``, ``a * b``, ``a / b`` and ``-a``, with answers or numbers, are answers, of tables cell by cell.
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

    __array_ufunc__ = None  # so that numpy's numbers leave arithmetic with answers to them

    @property
    def interval(self) -> tuple[Any, Any] | None:
        """Where the truth lies, with 1 − β together with all other answers; None where nothing bounds it, as of any θ."""
        if self.error is None or isinstance(self.query, Minimize):
            return None
        return self.value - self.error, self.value + self.error

    def certainly_above(self, other: Answer | float) -> bool:
        """Whether the bars say that every cell's truth is above the other's."""
        gap = (self - other).interval
        return gap is not None and bool(np.all(gap[0] > 0))

    def certainly_below(self, other: Answer | float) -> bool:
        """Whether the bars say that every cell's truth is below the other's."""
        return (-self).certainly_above(-other)

    def __add__(self, other: Answer | float) -> Answer:
        return _combined("+", self, other)

    def __radd__(self, other: float) -> Answer:
        return _combined("+", other, self)

    def __sub__(self, other: Answer | float) -> Answer:
        return _combined("-", self, other)

    def __rsub__(self, other: float) -> Answer:
        return _combined("-", other, self)

    def __mul__(self, other: Answer | float) -> Answer:
        return _combined("*", self, other)

    def __rmul__(self, other: float) -> Answer:
        return _combined("*", other, self)

    def __truediv__(self, other: Answer | float) -> Answer:
        return _combined("/", self, other)

    def __rtruediv__(self, other: float) -> Answer:
        return _combined("/", other, self)

    def __neg__(self) -> Answer:
        return -1.0 * self

    def __float__(self) -> float:
        if np.ndim(self.value):
            raise InvalidInput(
                f"float() must be of an answer with one value. Found one with {np.size(self.value)}. Use .value or .frame."
            )
        return float(self.value)

    def __bool__(self) -> NoReturn:
        raise InvalidInput(
            "The truth of an answer must be asked of its bar. Found the answer itself. "
            "Use .certainly_above(…), or compare .value if its error may be forgotten."
        )

    def _unordered(self, other: object) -> NoReturn:
        raise InvalidInput(
            "A comparison of answers must say what it does with their bars. Found <, <=, > or >=. "
            "Use .certainly_above(…) or .certainly_below(…), or compare .value if their errors may be forgotten."
        )

    __lt__ = __le__ = __gt__ = __ge__ = _unordered

    def __eq__(self, other: object) -> bool:
        """The same answer to the same question, to the last bit."""
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
        """One row per cell: what each axis is there, and the value, its guaranteed error and its typical one."""
        import pandas as pd

        if isinstance(self.query, Minimize):  # the bound is on θ's risk, which may bound its coefficients, too
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
        """Of a convex question, one row per entry of θ: its feature, its value, and how far it may be from the one of least risk.

        That ``error`` holds together with all others, and follows from the bound on the excess risk where the loss is strongly
        convex on the table: with a ridge, or squared where enough is known of its features. Elsewhere it is NaN: no bound.
        """
        import pandas as pd

        if not isinstance(self.query, Minimize):
            raise InvalidInput(
                f"Coefficients must be of a convex question. Found {self.query!r}. Use .value and .error, or .frame."
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
        """``to_frame()``."""
        return self.to_frame()

    def plot(self, axes: Any = None) -> Any:
        """The value, its guaranteed error (thin) and its typical one (thick), on matplotlib's axes, which are returned.

        Of a table of one or two attributes a bar for each cell.
        """
        self._require_values("A picture")
        if len(self.labels) > 2:
            raise InvalidInput(
                f"A picture must be of a table of one or two attributes. Found {len(self.labels)}. Ask for fewer, or use .frame."
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
            return f"{self.query!r} = {_shown(self.value)}{self._about()}"
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
        """Its bar, where there is one for all, and where it came from."""
        said = []
        if isinstance(self.query, Minimize):
            said.append("excess risk " + ("not bounded" if self.error is None else f"at most {_shown(self.error)}"))
        elif np.ndim(self.value) == 0:
            said.append("error not bounded" if self.error is None else f"guaranteed ± {_shown(self.error)}")
            said += [] if self.typical is None else [f"typically ± {_shown(self.typical)}"]
            said += [f"± {_shown(self.resolution)} of it from the bins"] if np.any(self.resolution) else []
        return f" ({', '.join([*said, self.source, f'cost {self.cost:.3g}' if self.cost else 'free'])})"

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        """The first cells, as texts."""
        frame = self.to_frame()
        names = {"error": "guaranteed ±", "typical": "typical ±"}
        columns = [str(names.get(c, c)) if c not in dict(self.labels) else str(c) for c in frame.columns]
        rows = [
            [_shown(cell) if isinstance(cell, float) else str(cell) for cell in row]
            for row in itertools.islice(frame.itertuples(index=False), SHOWN)
        ]
        return columns, rows

    def _left_out(self) -> Iterator[str]:
        if np.size(self.value) > SHOWN:
            yield f"… and {np.size(self.value) - SHOWN} more: .frame has all."

    def _require_values(self, what: str) -> None:
        if isinstance(self.query, Minimize):
            raise InvalidInput(
                f"{what} must be of counts, means or tables. Found the answer to a convex question, whose error is an excess "
                "risk and not a distance. Use .value and .error."
            )


def _combined(operator: str, left: Any, right: Any) -> Answer:
    """Interval arithmetic for what is guaranteed; first order for what the bins add and, in quadrature, what is typical."""
    a, b = _operand(left), _operand(right)
    if a.labels and b.labels and a.labels != b.labels:
        raise InvalidInput(
            f"Tables must have the same cells. Found {_axes(a)} and {_axes(b)}. Ask for both over the same attributes, in one order."
        )
    answers = [part for part in (left, right) if isinstance(part, Answer)]
    x, y = np.asarray(a.value, dtype=float), np.asarray(b.value, dtype=float)
    with np.errstate(all="ignore"):  # where nothing bounds a ratio it may be anything
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
    if isinstance(part, Answer):
        part._require_values("Arithmetic")
        return part
    exact = number(part)
    if not math.isfinite(exact):
        raise InvalidInput(
            f"Answers must be combined with answers or finite numbers. Found {type(part).__name__}. Use .value for anything else."
        )
    return Answer(Query(), exact, 0.0, "repeat", 0.0, typical=0.0)


def _apply(operator: str, x: Array, y: Array) -> Array:
    match operator:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
    return np.asarray(x / y)


def _slopes(operator: str, x: Array, y: Array) -> tuple[Array, Array]:
    """How much the result moves with each part, to first order."""
    match operator:
        case "+" | "-":
            return np.ones(()), np.ones(())
        case "*":
            return np.abs(y), np.abs(x)
    return np.abs(1 / y), np.abs(x / y**2)


def _times(slope: Array, width: float | Array) -> Array:
    return np.where(np.asarray(width) == 0, 0.0, slope * width)  # 0 even where the slope is infinite


def _reach(
    operator: str, value: Array, a: tuple[Array, float | Array | None], b: tuple[Array, float | Array | None]
) -> Array | None:
    """The furthest that the result can be from ``value`` with each part within its bar: it is so at the bars' ends."""
    (x, off), (y, far) = a, b
    if off is None or far is None:
        return None
    corners = [np.abs(_apply(operator, x + s * off, y + t * far) - value) for s in (-1, 1) for t in (-1, 1)]
    reach = np.maximum.reduce(np.broadcast_arrays(*corners))
    bounded = np.abs(y) > far if operator == "/" else np.True_
    return np.where(bounded & ~np.isnan(reach), reach, np.inf)


def _plain(found: Any) -> Any:
    """A number of Python's own, or an array."""
    return float(found) if np.ndim(found) == 0 else np.asarray(found)


def _equal(a: Any, b: Any) -> bool:
    return a is not None and b is not None and np.array_equal(a, b, equal_nan=True)


def _axes(answer: Answer) -> str:
    return " × ".join(name for name, _ in answer.labels)


def _shown(found: Any) -> str:
    found = float(np.max(found))
    return "unknown" if math.isnan(found) else f"{found:.4g}"


def _literal(words: object) -> str:
    """As matplotlib shows it unchanged: it would read what stands between dollars as mathematics."""
    return str(words).replace("$", r"\$")


def _draw_table(axes: Any, answer: Answer) -> None:
    """A group of bars for each label of the first axis, one for each label of the second."""
    colormaps = extra("matplotlib").colormaps

    name, labels = answer.labels[0]
    groups = answer.labels[1][1] if len(answer.labels) == 2 else ("",)
    values = np.reshape(answer.value, (len(labels), len(groups)))
    places = np.arange(len(labels), dtype=float)
    for k, group in enumerate(groups):
        colour = colormaps["viridis"](0.15 + 0.7 * k / max(1, len(groups) - 1))
        _draw_bars(
            axes, places + (k - (len(groups) - 1) / 2) * 0.8 / len(groups), answer, values, k, colour, _literal(group)
        )
    axes.set_xticks(places, [_literal(label) for label in labels], rotation=30, ha="right")
    axes.set_xlabel(_literal(name))
    if len(groups) > 1:
        axes.legend(title=_literal(answer.labels[1][0]), frameon=False, fontsize=8)


def _draw_bars(axes: Any, places: Array, answer: Answer, values: Array, k: int, colour: Any, label: str) -> None:
    axes.bar(places, values[:, k], width=0.75 / values.shape[1], color=colour, alpha=0.6, label=label)
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
