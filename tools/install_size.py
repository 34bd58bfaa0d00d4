"""Measure a plain install in an empty environment, and write its size and largest parts into docs/install.md."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "install.md"
BEGIN, END = "<!-- sizes: `make size` -->\n", "<!-- end of sizes -->\n"
PARTS = 5


def installed() -> dict[str, float]:
    """Install the package into a new environment; return megabytes by library."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        before = set(_site(python).iterdir())
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", ROOT], check=True)
        sizes: dict[str, float] = {}
        for path in _site(python).iterdir():
            if path not in before:
                name = path.name.partition(".")[0].strip("_").partition("-")[0]
                sizes[name] = sizes.get(name, 0.0) + _bytes(path) / 1e6
        return sizes


def _site(python: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_paths()['platlib'])"
    return Path(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip())


def _bytes(path: Path) -> int:
    return sum(part.stat().st_size for part in ([path] if path.is_file() else path.rglob("*")) if part.is_file())


def table(sizes: dict[str, float]) -> str:
    largest = sorted(sizes, key=lambda name: -sizes[name])[:PARTS]
    rows = [f"| {name} | {sizes[name]:.0f} |" for name in largest]
    return "\n".join(
        ["| library | MB |", "|---|---|", *rows, f"| all of a plain install | {sum(sizes.values()):.0f} |", ""]
    )


if __name__ == "__main__":
    text = PAGE.read_text()
    head, tail = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(head + BEGIN + table(installed()) + END + tail)
