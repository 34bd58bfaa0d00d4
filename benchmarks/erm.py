"""Private empirical risk minimisation, measured: slopes of the risk, peers on the same work, and speed.

    python benchmarks/erm.py [--quick] [--only slopes|peers|speed]

writes docs/benchmarks-erm.md, section by section, with docs/erm-slopes.png and docs/erm-peers.png. `--quick` takes smaller tables and
fewer seeds and writes nothing. Data are read from ../shared/data beside the repository, and skipped where they are not there.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy loads its BLAS

import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from erm_peers import peers
from erm_slopes import slopes
from erm_speed import speed

from hedgerow.errors import NotPrivateWarning
from hedgerow.research.pages import short_lines

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "benchmarks-erm.md"
HEAD = "# Private empirical risk minimisation: benchmarks\n\nWritten by `python benchmarks/erm.py`; `--only slopes`, `peers` or `speed` writes one section anew.\n\n"
TITLES = {
    "slopes": "Slopes of the excess risk",
    "peers": "Peers, δ = 1e-6, add or remove one row",
    "speed": "Frank–Wolfe with a million sparse features",
}


def sections() -> dict[str, str]:
    """Return the sections of the page so far, by title."""
    parts = PAGE.read_text().split("\n## ")[1:] if PAGE.exists() else []
    return dict(part.split("\n", 1) for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="smaller tables, fewer seeds, nothing written: two minutes"
    )
    parser.add_argument("--only", choices=TITLES, help="one section")
    given = parser.parse_args()
    warnings.simplefilter("ignore", NotPrivateWarning)
    start = time.perf_counter()
    for name in [given.only] if given.only else TITLES:
        picture = None if given.quick or name == "speed" else DOCS / f"erm-{name}.png"
        lines = {"slopes": slopes, "peers": peers, "speed": speed}[name](given.quick, picture)
        if picture is not None:
            lines = ["\n".join(lines).strip(), "", f"![{name}]({picture.name})"]
        if not given.quick:
            texts = sections() | {TITLES[name]: "\n" + "\n".join(lines).strip() + "\n"}
            PAGE.write_text(
                short_lines(
                    HEAD + "\n".join(f"## {title}\n{texts[title]}" for title in TITLES.values() if title in texts)
                )
            )
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
