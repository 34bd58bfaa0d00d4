"""Run the tests near what git sees changed, for `make check`.

A test is near a module if it bears the module's name, or imports it. A test that changed is near itself. Nothing changed: the tests of
the last commit's changes.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALWAYS = ("tests/test_layers.py", "tests/test_imports.py")


def changed() -> list[str]:
    """Return the files that differ from the last commit, new ones included; or those of the last commit."""
    tracked = _git("diff", "--name-only", "HEAD")
    new = _git("ls-files", "--others", "--exclude-standard")
    return [*tracked, *new] or _git("diff", "--name-only", "HEAD~1", "HEAD")


def _git(*command: str) -> list[str]:
    return subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")[
        :-1
    ]


def near(files: list[str]) -> list[str]:
    """Return the test files to run for these changed files."""
    modules = {_module(file) for file in files if file.startswith("src/hedgerow/") and file.endswith(".py")}
    names = {module.rpartition(".")[2].lstrip("_") for module in modules}
    found = {file for file in files if _is_test(Path(file)) and (ROOT / file).exists()}
    for path in ROOT.glob("tests/**/test_*.py"):
        if path.stem.removeprefix("test_") in names or _imported(path) & modules:
            found.add(path.relative_to(ROOT).as_posix())
    return sorted({*found, *ALWAYS})


def _is_test(path: Path) -> bool:
    return path.parts[0] == "tests" and path.name.startswith("test_") and path.suffix == ".py"


def _module(file: str) -> str:
    return ".".join(Path(file).with_suffix("").parts[1:]).removesuffix(".__init__")


@functools.cache
def _imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


if __name__ == "__main__":
    tests = near(changed())
    print(f"{len(tests)} files of tests near the change")
    sys.exit(subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "2", *tests], cwd=ROOT).returncode)
