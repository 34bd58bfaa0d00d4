"""What a mutant is: a small change to the library that would harm a user, and the tests that must notice it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Mutant:
    """``old`` occurs exactly once in ``file``, a path below src/hedgerow, and ``new`` stands in its place.

    ``tests``: node ids below tests/, of which at least one must fail; few and fast. ``note``: what a user would suffer.
    ``equivalent``: a proof that no test can notice it; such a mutant is kept for the proof, and is not counted.
    """

    id: str
    area: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    note: str
    equivalent: str = ""

    @property
    def module(self) -> str:
        """The dotted name within the package."""
        return self.file.removesuffix(".py").replace("/", ".")


class Writer:
    """A list of mutants of one area, in files of one folder."""

    every: ClassVar[list[Writer]] = []

    def __init__(self, area: str, folder: str) -> None:
        self.area, self.folder = area, folder
        self.mutants: list[Mutant] = []
        Writer.every.append(self)

    def __call__(self, id: str, file: str, note: str, old: str, new: str, *tests: str, equivalent: str = "") -> None:
        self.mutants.append(Mutant(id, self.area, self.folder + file, old, new, tests, note, equivalent))
