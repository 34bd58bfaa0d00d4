"""A mutant: a small change to the library that would harm a user, and the tests that must notice it."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import located


@dataclass(frozen=True)
class Mutant:
    """``old`` is once in ``where``, a function, class or constant of ``file`` below src/hedgerow, and ``new`` stands in its place.

    Both are syntax, not text: ``located`` finds ``old`` whatever its formatting. A file that is not there any more is looked for by what
    is in it. ``where`` is "" for what is in no function, class or constant (an import).

    ``tests``: node ids below tests/, of which at least one must fail; few and fast. ``note``: what a user would suffer.
    ``equivalent``: a proof that no test can notice it; such a mutant is kept for the proof, and is not counted.
    """

    id: str
    area: str
    file: str
    where: str
    old: str
    new: str
    tests: tuple[str, ...]
    note: str
    equivalent: str = ""

    @property
    def module(self) -> str:
        """The dotted name within the package."""
        return self.file.removesuffix(".py").replace("/", ".")

    def found_in(self, package: Path) -> Path:
        """The file it is in now: its own, or the only other one that has the place."""
        own = package / self.file
        if own.exists():
            return own
        others = [
            file for file in package.rglob("*.py") if len(located.spans(file.read_text(), self.where, self.old)) == 1
        ]
        return others[0] if len(others) == 1 and self.where else own

    def changed(self, text: str) -> str:
        """The text of its file with the change made."""
        return located.changed(text, self.where, self.old, self.new)


class Writer:
    """A list of mutants of one area, in files of one folder. A place reads "file.py::Class.method"."""

    every: ClassVar[list[Writer]] = []

    def __init__(self, area: str, folder: str) -> None:
        self.area, self.folder = area, folder
        self.mutants: list[Mutant] = []
        Writer.every.append(self)

    def __call__(self, id: str, place: str, note: str, old: str, new: str, *tests: str, equivalent: str = "") -> None:
        file, _, where = place.partition("::")
        file = posixpath.normpath(self.folder + file)  # a place in another folder begins with ../
        self.mutants.append(Mutant(id, self.area, file, where, old, new, tests, note, equivalent))
