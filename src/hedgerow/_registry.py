"""Registries: the classes that the package offers of one kind, each registered beside its definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T", bound=type)

NEWER = {"newer": True}
"""Metadata of a dataclass field that its older records do not have: a record leaves it out while it is None."""


class ClassRegistry(Generic[K]):
    """Classes by name. What is made of every class is made of one that is registered later, too."""

    def __init__(self) -> None:
        self._named: dict[str, type[K]] = {}
        self._uses: list[Callable[[str, type[K]], object]] = []

    def add(self, kind: T, name: str | None = None) -> T:
        """Register a class, by its own name or by another. Return it, so that this can decorate a class."""
        own = kind.__name__ if name is None else name
        self._named[own] = kind
        for use in self._uses:
            use(own, kind)
        return kind

    def each(self, use: Callable[[str, type[K]], object]) -> None:
        """Call ``use`` with the name of every class and the class: those of now, and each that is registered later."""
        self._uses.append(use)
        for name, kind in list(self._named.items()):
            use(name, kind)

    def discard(self, kind: type[K]) -> None:
        """Forget a class. What was made of it stays; for tests, which define classes of their own."""
        self._named = {name: known for name, known in self._named.items() if known is not kind}

    def __contains__(self, kind: object) -> bool:
        return kind in self._named.values()

    def __iter__(self) -> Iterator[type[K]]:
        return iter(self._named.values())

    def __len__(self) -> int:
        return len(self._named)

    def items(self) -> list[tuple[str, type[K]]]:
        """Return every class with its name."""
        return list(self._named.items())
