"""Limits of a process that works for the service: no secrets in its environment, and so much memory."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from hedgerow._memory import ARROW, LIBRARIES, OF_ADDRESSES

SECRETS = (
    "HEDGEROW_",
    "PG",
    "AWS_",
    "AZURE_",
    "GOOGLE_",
)  # beginnings of environment variables that a worker does not need


def drop_secrets() -> None:
    """Remove secrets from the environment of the process."""
    for name in [name for name in os.environ if name.startswith(SECRETS)]:
        del os.environ[name]


def limit_addresses(memory: int) -> None:
    """Limit the memory of the process to this number of bytes beyond what its libraries have reserved."""
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = max(pages * os.sysconf("SC_PAGE_SIZE"), LIBRARIES + ARROW) + int(memory / OF_ADDRESSES)
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
