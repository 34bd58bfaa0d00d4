"""Build what would be released, and try it as a new user would: in an environment that has nothing else.

    python tools/release.py             build into a temporary folder, and check
    python tools/release.py dist        leave the wheel and the sdist in dist/

The wheel is built from the sdist, so that the sdist is complete. The wheel's files are those of the package and no others; a
plain install of it, without extras, runs README's first example, asks the bundled table, and shows its types to mypy.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
CONSOLE = ROOT / "src" / "hedgerow" / "console"
DATA = {"hedgerow/py.typed", "hedgerow/demo/README.md", "hedgerow/demo/rand_hie.parquet"} | {
    f"hedgerow/console/{path.relative_to(CONSOLE).as_posix()}"
    for folder in ("static", "templates")
    for path in (CONSOLE / folder).iterdir()
}
ABOUT = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}

BUNDLED = """
import hedgerow as hr
from hedgerow import demo
session = hr.open(demo.path(), universe=demo.universe(), budget=hr.Budget(epsilon=1, delta=1e-9))
answer = session.ask(hr.count(health="poor"))
assert 0 <= answer.value <= 1 and answer.error < 0.1, answer
"""
MISUSED = 'import hedgerow as hr\nhr.Budget(epsilon="one", delta=1e-9)\n'


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="hedgerow-release-") as folder:
        here = Path(folder)
        wheel = build(Path(arguments[0]).resolve() if arguments else here / "dist", _environment(here / "building"))
        with zipfile.ZipFile(wheel) as file:
            names = file.namelist()
        print(*sorted(names), sep="\n")
        if wrong := misfits(names, modules()):
            raise SystemExit("The wheel must hold the package and nothing else. Found:\n" + "\n".join(wrong))
        try_out(wheel, _environment(here / "empty"), here)
    print(f"hedgerow {VERSION}: built, complete, and working from the wheel alone")


def build(into: Path, python: Path) -> Path:
    """Build the sdist, and from it the wheel; check how an index would show them; return the wheel."""
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "build", "twine")
    _run(python, "-m", "build", "--outdir", into, ROOT)
    made = [into / f"hedgerow-{VERSION}.tar.gz", into / f"hedgerow-{VERSION}-py3-none-any.whl"]
    _run(python, "-m", "twine", "check", "--strict", *made)
    return made[1]


def modules() -> set[str]:
    """Return the package's own modules, by their places in a wheel."""
    return {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "hedgerow").rglob("*.py")}


def misfits(names: Iterable[str], expected: set[str]) -> list[str]:
    """Say what is in a wheel and should not be, and what should be and is not."""
    about = {f"hedgerow-{VERSION}.dist-info/{name}" for name in ABOUT}
    there, wanted = set(names), expected | DATA | about
    return [f"stray: {name}" for name in sorted(there - wanted)] + [
        f"missing: {name}" for name in sorted(wanted - there)
    ]


def first_example() -> str:
    """Return the first Python example of README.md."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        raise SystemExit("README.md must have an example in Python. Found none.")
    return found.group(1)


def try_out(wheel: Path, python: Path, here: Path) -> None:
    """Install the wheel without extras, and run what a new user would run."""
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    _run(python, "-m", "pip", "check")
    command = python.with_name(f"hedgerow{python.suffix}")
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if said != VERSION:
        raise SystemExit(f"hedgerow --version must be {VERSION}. Found {said!r}.")
    _run(command, "demo", "--table", "visits.csv", cwd=here)  # the line above README's first example
    (here / "first.py").write_text(first_example(), encoding="utf-8")
    _run(python, "-I", "first.py", cwd=here)
    _run(python, "-I", "-c", BUNDLED, cwd=here)
    (here / "misused.py").write_text(MISUSED, encoding="utf-8")
    types: list[str | Path] = [
        sys.executable,
        "-m",
        "mypy",
        "--python-executable",
        python,
        "--cache-dir",
        here / "types",
        "misused.py",
    ]
    seen = subprocess.run(types, cwd=here, capture_output=True, text=True).stdout
    if 'misused.py:2: error: Argument "epsilon" to "Budget"' not in seen:
        raise SystemExit(f"mypy must see the types of the installed package. Found:\n{seen}")


def _environment(folder: Path) -> Path:
    """Make an empty environment and return its Python."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    print("$", *(str(part).strip().splitlines()[0] for part in command), flush=True)
    subprocess.run(command, cwd=cwd, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
