"""``python -m hedgerow.audit``: audit every mechanism of ours and the gallery. Run by ``make audit``."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from hedgerow.audit.report import main
from hedgerow.errors import PublicWarning

if __name__ == "__main__":
    warnings.simplefilter("ignore", PublicWarning)  # budgets are chosen for what an audit can see of them
    parser = argparse.ArgumentParser(prog="python -m hedgerow.audit", description=__doc__)
    parser.add_argument(
        "--docs", type=Path, help="the folder to keep audit.json in, and write audit.md and audit.png to"
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the runs; below 1 nothing is said about power")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--only", nargs="+", default=(), help="those whose names have one of these texts; others are kept"
    )
    which.add_argument("--missing", action="store_true", help="those that docs/audit.json does not have yet")
    given = parser.parse_args()
    sys.exit(min(main(given.docs, given.share, given.workers, given.only, given.missing), 1))
