"""The form of an erratum: a place in a document, the printed formula, and a number that tells it from ours."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hedgerow.errors import InvalidInput

ULLMAN = "Ullman, Private Multiplicative Weights Beyond Linear Queries"
WANG = "Wang, Lecture 12: Releasing Multiple Linear Queries Privately II"
FISH = "Fish, Reyzin & Rubinstein, Sampling Without Compromising Accuracy in Adaptive Data Analysis"
DWORK_ROTH = "Dwork & Roth, The Algorithmic Foundations of Differential Privacy, chapter 4"
TALWAR = "Talwar, Thakurta & Zhang, Private Empirical Risk Minimization Beyond the Worst Case"
DOCUMENTS = (ULLMAN, WANG, FISH, DWORK_ROTH, TALWAR)

NOT_YET = "not yet in the package"
A_PROOF = "a step of a proof, for which there is no code"


@dataclass(frozen=True)
class ErratumFinding:
    """A number, and the limit that the claim sets for it."""

    what: str
    number: float
    limit: float
    rule: Literal["at most", "at least"] = "at most"

    def __post_init__(self) -> None:
        if math.isnan(self.number) or math.isnan(self.limit):
            raise InvalidInput(f"A finding must have a number and a limit. Found none for {self.what!r}. Compute them.")

    @property
    def holds(self) -> bool:
        """True if the number respects the limit, up to rounding."""
        slack = 1e-9 * abs(self.limit) or 1e-12
        return self.number <= self.limit + slack if self.rule == "at most" else self.number >= self.limit - slack

    def __str__(self) -> str:
        outcome = "holds" if self.holds else "fails"
        return f"{outcome}: {format_number(self.number)}, {self.rule} {format_number(self.limit)}"


def format_number(number: float) -> str:
    """Return a number with four digits, which are the same on every machine."""
    return "∞" if number == math.inf else f"{number:.4g}"


Demonstration = Callable[[], tuple[ErratumFinding, ErratumFinding]]


@dataclass(frozen=True)
class Erratum:
    """One error of a document, with a demonstration that fails on the printed formula and passes on ours.

    ``in_the_copy`` is True if the error hangs on one symbol of the copy at hand, so that a misprint of the copy cannot
    be excluded.
    """

    name: str
    document: str
    place: str
    printed: str
    wrong: str
    instead: str
    module: str
    demonstrate: Demonstration
    in_the_copy: bool = False

    @property
    def in_the_package(self) -> bool:
        """True if a module of the package has the correction."""
        return self.module not in (NOT_YET, A_PROOF)


@dataclass(frozen=True)
class NotedErratum:
    """An error without a demonstration: a slip of the pen, or an error that could not be shown by a number."""

    document: str
    place: str
    note: str


REGISTER: list[Erratum] = []


def erratum(
    name: str,
    *,
    document: str,
    place: str,
    printed: str,
    wrong: str,
    instead: str,
    module: str,
    in_the_copy: bool = False,
) -> Callable[[Demonstration], Demonstration]:
    """Register the decorated function as the demonstration of an erratum."""

    def registered(demonstrate: Demonstration) -> Demonstration:
        REGISTER.append(Erratum(name, document, place, printed, wrong, instead, module, demonstrate, in_the_copy))
        return demonstrate

    return registered
