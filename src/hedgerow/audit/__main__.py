"""``python -m hedgerow.audit``: audit every mechanism of this package, and the gallery. Run by ``make audit``."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from hedgerow.errors import PublicWarning
from hedgerow.research.audit_cases.report import main

if __name__ == "__main__":
    warnings.simplefilter("ignore", PublicWarning)  # the budgets are chosen so that an audit has power
    parser = argparse.ArgumentParser(prog="python -m hedgerow.audit", description=__doc__)
    parser.add_argument(
        "--docs", type=Path, help="the folder that keeps audit.json, and to which audit.md and audit.png are written"
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="the share of the runs to make; below 1 the power of an audit is not checked",
    )
    parser.add_argument("--workers", type=int, default=2, help="the number of processes")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--only", nargs="+", default=(), help="audit only names that contain one of these texts, and keep other results"
    )
    which.add_argument("--missing", action="store_true", help="audit only what docs/audit.json does not have yet")
    given = parser.parse_args()
    sys.exit(min(main(given.docs, given.share, given.workers, given.only, given.missing), 1))
