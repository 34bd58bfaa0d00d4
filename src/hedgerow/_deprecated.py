"""Former names of modules, which work for one release and warn where they are used.

A former name gives the very module of its new name, so that classes are the same under both and pickles still load.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {  # former name: new name, below hedgerow; a package takes along the modules that are not listed
    "audit.gallery": "research.audit_cases.gallery",
    "audit.ours": "research.audit_cases.own_mechanisms",
    "audit.report": "research.audit_cases.report",
    "bench": "unsafe",
    "data.histogram": "data.source",
    "demo.convex": "research.stories.many_models",
    "demo.holdout": "research.stories.false_discovery",
    "engines": "engine",
    "engines.engine": "engine.interface",
    "engines.practical.certificate": "engine.practical.certificate.certified_bounds",
    "engines.practical.knowledge": "engine.practical.free_answers",
    "engines.together": "engine.multi_block",
    "errata": "research.errata",
    "generalise.analysts": "research.analysts",
    "ledgers": "ledger",
    "ledgers.notes": "ledger.answer_log",
    "ledgers.reading": "ledger.read_only",
    "ledgers.views": "ledger.spending",
    "questions": "query",
    "questions.attributes": "universe.attributes",
    "questions.dates": "universe.dates",
    "questions.files": "universe.files",
    "questions.quotients": "query.ratios",
    "questions.text": "query.parse",
    "questions.universe": "universe.universe",
    "questions.words": "query.wording",
    "textbook.games": "research.games",
    "textbook.monitors": "research.monitors",
}
ALIASES = {"bench"}  # former names that stay, and warn of nothing


def new_name(former: str) -> str | None:
    """Return the new name of a module by its former one, both below hedgerow, or None."""
    parts = former.split(".")
    for length in range(len(parts), 0, -1):
        found = MOVED.get(".".join(parts[:length]))
        if found is not None:
            return ".".join([found, *parts[length:]])
    return None


def warn(former: str, new: str, stacklevel: int) -> None:
    """Warn of a former name, at the line that uses it."""
    if former not in ALIASES:
        text = f"hedgerow.{former} is now hedgerow.{new}. The former name works in this release only."
        warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)


def find_moved(former: str) -> ModuleType | None:
    """Import a module by its former name below hedgerow, and warn at the caller's caller; None for other names."""
    new = new_name(former)
    if new is None:
        return None
    warn(former, new, stacklevel=3)
    return importlib.import_module(f"hedgerow.{new}")


class FormerNames:
    """Let import statements find modules by their former names.

    Neither class has the abstract base of its kind: importing these takes longer than importing all else here.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec that loads the module of the new name, or None for a name that is not a former one."""
        if not name.startswith("hedgerow."):
            return None
        former = name.removeprefix("hedgerow.")
        new = new_name(former)
        if new is None:
            return None
        warn(former, new, stacklevel=2)
        return ModuleSpec(name, Alias(f"hedgerow.{new}"))  # type: ignore[arg-type]


class Alias:
    """Load a module that is there already under another name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of the new name."""
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module back its own spec, which the import system has replaced."""
        module.__spec__ = self._spec


def install() -> None:
    """Look for former names before files, or a module would be loaded twice."""
    if not any(type(finder).__name__ == FormerNames.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, FormerNames())
