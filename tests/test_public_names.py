"""Users see the public names of the package with their types, and no others."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import hedgerow as hr

MODULES = {
    "audit",
    "erm",
    "estimators",
    "generalise",
    "ledger",
    "serialize",
    "textbook",
    "unsafe",
    "wire",
}  # loaded when first named


def test_dir_shows_public_names_and_modules_and_nothing_else() -> None:
    shown = {name for name in dir(hr) if not name.startswith("__")}
    assert shown == {*hr.__all__, *MODULES}


def test_every_mechanism_of_the_papers_is_reached_by_the_name_of_its_file() -> None:
    folder = Path(hr.textbook.__file__).parent
    assert dir(hr.textbook) == sorted(file.stem for file in folder.glob("*.py") if file.stem != "__init__")
    assert all(isinstance(getattr(hr.textbook, name), ModuleType) for name in dir(hr.textbook))


def test_dir_is_the_same_before_and_after_everything_was_used() -> None:
    code = "import hedgerow as hr; a = dir(hr); [getattr(hr, name) for name in a]; assert dir(hr) == a; print(len(a))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert int(ran.stdout or 0) >= len(hr.__all__), ran.stderr


def test_every_name_that_is_shown_is_there() -> None:
    assert all(isinstance(getattr(hr, name), ModuleType) for name in MODULES)
    assert [name for name in hr.__all__ if getattr(hr, name, None) is None] == []
    assert len(set(hr.__all__)) == len(hr.__all__)


def test_the_version_is_that_of_the_package() -> None:
    assert hr.__version__ == version("hedgerow")


def test_a_type_checker_sees_the_types_of_the_package(tmp_path) -> None:
    """Types of an installed package count only with its marker; without it every name is Any, and nothing is wrong."""
    assert (Path(hr.__file__).parent / "py.typed").is_file()
    (tmp_path / "misused.py").write_text('import hedgerow as hr\nhr.Budget(epsilon="one", delta=1e-9)\n')
    # the modules on the way to one name; the others would be Any here, and take long to read
    read = "hedgerow,hedgerow.privacy,hedgerow.privacy.budget"
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nfollow_imports = skip\n[mypy-{read}]\nfollow_imports = silent\n")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", "types", "misused.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert 'misused.py:2: error: Argument "epsilon" to "Budget"' in found.stdout, found.stdout + found.stderr
