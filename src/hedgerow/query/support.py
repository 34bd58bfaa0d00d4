"""The support of an answer: which of its attributes were measured together, and what is assumed about the others.

An answer about attributes that were measured in one table follows from counts of their own. If only smaller tables were
measured, it is inferred from these. If two of its attributes were in no measured table at all, nothing was seen of how
they depend on each other: the hypothesis takes them as independent, given the attributes that were measured with both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from hedgerow._types import Names

SupportKind = Literal["measured", "inferred", "assumed"]
KINDS: tuple[SupportKind, ...] = ("measured", "inferred", "assumed")  # from the firmest to the weakest
SHOWN = 4  # tables, pairs or attributes that a sentence names


@dataclass(frozen=True)
class SeparatedPair:
    """Two attributes that were in no measured table together, and those that were measured with both of them."""

    first: str
    second: str
    given: Names = ()

    def __str__(self) -> str:
        given = f" given {_list_names(self.given, ' and ')}" if self.given else ""
        return f"{self.first} and {self.second} were never measured together: assumed independent{given}"


@dataclass(frozen=True)
class Support:
    """The measured tables that an answer rests on, and the pairs of its attributes that were never measured together.

    Attributes
    ----------
    kind : {"measured", "inferred", "assumed"}
        "measured" if one measured table has all attributes, "inferred" if every two of them share a measured table,
        "assumed" if two of them do not.
    tables : tuple of tuples of str
        The largest sets of the attributes that were measured together.
    separated : tuple of SeparatedPair
        The pairs that were never measured together.
    missing : tuple of tuples of str
        The tables that would have to be measured for the answer to rest on counts of its own.
    """

    kind: SupportKind
    tables: tuple[Names, ...] = ()
    separated: tuple[SeparatedPair, ...] = ()
    missing: tuple[Names, ...] = ()

    def join_with(self, other: Support) -> Support:
        """Return the support of an answer that needs both: the weaker kind, and the parts of both."""
        kind = KINDS[max(KINDS.index(self.kind), KINDS.index(other.kind))]
        return Support(
            kind,
            tuple(dict.fromkeys(self.tables + other.tables)),
            tuple(dict.fromkeys(self.separated + other.separated)),
            tuple(dict.fromkeys(self.missing + other.missing)),
        )

    def __str__(self) -> str:
        if self.kind == "assumed":
            return _list_names(list(map(str, self.separated)), "; ")
        parts = [" × ".join(names) for names in self.tables if names]
        if self.kind == "inferred":
            return f"inferred from the measured parts {_list_names(parts, ', ')}"
        return "measured together" if any(len(names) > 1 for names in self.tables) else "measured"


MEASURED = Support("measured")


class MeasuredSets:
    """The attribute sets whose tables were measured, and the support that they give to a question."""

    def __init__(self, sets: Iterable[Names], order: Sequence[str]) -> None:
        """``order`` has the attributes in the order in which sets list them; all others change no table."""
        self._place = {name: i for i, name in enumerate(order)}
        self._with: dict[str, set[frozenset[str]]] = {name: set() for name in order}
        for names in sets:
            for name in names:
                self._with[name].add(frozenset(names))
        self._found: dict[Names, Support] = {}

    def support(self, tables: Iterable[Names]) -> Support:
        """Return the support of a question that follows from the tables of these attribute sets."""
        found: Support | None = None
        for names in tables:
            if names not in self._found:
                self._found[names] = self._of(tuple(name for name in names if name in self._place))
            found = self._found[names] if found is None else found.join_with(self._found[names])
        return MEASURED if found is None else found

    def _of(self, names: Names) -> Support:
        """Return the support of one table."""
        asked = frozenset(names)
        inside = {asked & each for name in names for each in self._with[name]}
        if asked in inside or not asked:
            return Support("measured", (names,))
        largest = [each for each in inside if not any(each < other for other in inside)]
        pairs = {frozenset(pair) for each in largest for pair in itertools.combinations(each, 2)}
        separated = tuple(
            SeparatedPair(a, b, self._in_order(self._beside(a) & self._beside(b)))
            for a, b in itertools.combinations(names, 2)
            if frozenset((a, b)) not in pairs
        )
        tables = tuple(sorted(map(self._in_order, largest), key=lambda each: [self._place[name] for name in each]))
        return Support("assumed" if separated else "inferred", tables, separated, (names,))

    def _beside(self, name: str) -> set[str]:
        """Return the attributes that were measured together with this one."""
        return {other for each in self._with[name] for other in each if other != name}

    def _in_order(self, names: Iterable[str]) -> Names:
        return tuple(sorted(names, key=self._place.__getitem__))


def _list_names(parts: Sequence[str], between: str) -> str:
    """Join texts; name a few of many and count the others."""
    if len(parts) <= SHOWN:
        return between.join(parts)
    others = len(parts) - SHOWN
    return f"{between.join(parts[:SHOWN])} and {others} {'other' if others == 1 else 'others'}"
