"""Every benchmark, one after the other: `make bench`. Tables and plots go to docs/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = (
    "speed.py",
    "threads.py",
    "data.py",
    "scale.py",
    "width.py",
    "accuracy.py",
    "bars.py",
    "convex.py",
    "erm.py",
    "holdout.py",
    "sampling.py",
    "streams.py",
    "ledger.py",
)


def main() -> None:
    for script in SCRIPTS:
        if (HERE / script).exists():
            print(f"── {script}", flush=True)
            subprocess.run([sys.executable, str(HERE / script), *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
