"""The log of unexpected faults."""

from __future__ import annotations

import logging
import traceback

LOG = logging.getLogger("hedgerow.server")


def log_fault(identity: str, fault: BaseException) -> None:
    """Log the type and the place of a fault. Its message may quote data."""
    frames = traceback.extract_tb(fault.__traceback__)
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-6:]))
    LOG.error("request %s: %s at %s", identity, type(fault).__name__, places)
