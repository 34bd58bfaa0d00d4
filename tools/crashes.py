"""Does a ledger keep what it promises? Sessions killed at every step of theirs, and many at once, on SQLite and PostgreSQL.

    python tools/crashes.py                       300 kills and 8 processes × 2,000 questions on each
    python tools/crashes.py --kills 20 --processes 3 --questions 100 --only SQLite

tests/ledger/crashing.py says what is checked after every kill. Status 1 at the first thing that does not hold.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "ledger")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--questions", type=int, default=2000, help="of each process")
    parser.add_argument("--only", choices=["SQLite", "PostgreSQL"])
    given = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEDGEROW_LEDGER_KEY_FILE"] = str(Path(folder) / "ledger.key")
        crashing, ledgers = importlib.import_module("crashing"), importlib.import_module("fresh_ledgers")
        crashing.warm_up()
        for name, fresh in {"SQLite": ledgers.sqlite_url, "PostgreSQL": ledgers.postgres_url}.items():
            if given.only not in (None, name):
                continue
            began, lives = time.monotonic(), crashing.Lives(fresh)
            lives.run(given.kills)
            print(
                f"{name}: {lives.kills.total()} kills, {lives.finished} sessions finished, {time.monotonic() - began:.0f} s"
            )
            for step, times in sorted(lives.kills.items()):
                print(f"    {times:4d} {step}")
            if given.processes:
                began = time.monotonic()
                found = crashing.crowd(fresh(), given.processes, given.questions)
                said = ", ".join(f"{count} {what}" for what, count in found.items())
                print(f"{name}: {said}, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
