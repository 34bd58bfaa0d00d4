"""The certificate of a session, as a public value: bounds on the errors of all small questions, asked or not.

``practical/certificate`` draws the numbers; docs/proofs/certificate.md has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from hedgerow import _html

Class = Literal["products", "any", "means"]
SMALLEST = 1e-6  # a smaller average error, which noise may even make negative, is not shown as a number
NONE = (
    "No certificate: for this number of rows and this budget its noise alone would exceed 5 % of the rows, or the "
    "profile buys none. Every answer still has its own guaranteed error. Questions that are not asked have no bound."
)
"""Statement of a session that certifies nothing."""
KINDS = {
    "products": "counts of ranges and sets of values",
    "any": "sums with any weights from 0 to 1",
    "means": "sums of a number within a group, as a share of its range",
}
"""Classes of questions, in words."""


@dataclass(frozen=True)
class CertificateLimit:
    """A bound on the errors of all questions of one class on sets of ``size`` attributes.

    The questions err by at most ``bar``, as a fraction of the rows, on ``sets`` of the ``of`` sets of that size.
    ``beta`` is the probability that the bound fails; those of one kind but "any" hold or fail together.

    ``kind``: "products" are an interval of each ordered attribute times a set of values of each other one, or a
        number that rises or falls along one of them; most of them have narrower bars. "any" are any weights. "means"
        are sums Σ (x − c) of a number within one value of another attribute, relative to its range, with c near its
        mean.
    """

    kind: Class
    size: int
    bar: float
    sets: int
    of: int
    beta: float


@dataclass(frozen=True, repr=False)
class Certificate:
    """Bounds for every question of a kind, asked or not, about the hypothesis at the session's opening.

    ``typical``: the mean error of a box of up to three attributes that no measurement covers, or of all boxes if each
        is covered. It is not a bound, and None if there were too many boxes.
    ``beta_of_rows``: the probability that the interval for the number of rows fails, where that number is private.
    """

    limits: tuple[CertificateLimit, ...]
    typical: float | None
    beta_of_rows: float = 0.0

    @property
    def beta(self) -> float:
        """The probability that any of the bounds fails."""
        at_once = {limit.kind: limit.beta for limit in self.limits if limit.kind != "any"}
        each = [limit.beta for limit in self.limits if limit.kind == "any"]
        return math.fsum([*at_once.values(), *each, self.beta_of_rows])

    def _repr_html_(self) -> str:
        lines = [
            (KINDS[limit.kind], limit.size, f"± {limit.bar:.2g}", f"{limit.sets:,} of {limit.of:,}")
            for limit in self.limits
        ]
        return _html.table(("questions", "columns", "guaranteed error", "sets of columns"), lines) + _html.paragraph(
            self
        )

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        products = [limit for limit in self.limits if limit.kind == "products"]
        bars = "; ".join(
            f"{limit.bar:.2g} on {limit.size} attribute{'s' if limit.size > 1 else ''}"
            + ("" if limit.sets == limit.of else f" ({limit.sets:,} of {limit.of:,} sets)")
            for limit in products
        )
        anything = max((limit.bar for limit in self.limits if limit.kind == "any"), default=math.inf)
        of_typical = ""
        if self.typical is not None and self.typical >= SMALLEST:
            of_typical = f" The typical error is {self.typical:.1g}: an average, not a bound."
        elif self.typical is not None:
            of_typical = " The typical error is too small to be measured at this budget: an average, not a bound."
        return (
            f"With probability {1 - self.beta:.4g}, the session's answers to all counts of ranges and sets of values, "
            f"asked or not, are within {bars} of the true values, most of them far closer; answers to questions with "
            f"any other weights are within {anything:.2g}.{of_typical}"
        )
