"""Messages between the service's own processes: values that are pickled, read back at once, and stored nowhere.

A message is read only from a pipe that this program opened. What is stored or sent elsewhere has the forms of
``serialize``.
"""

from __future__ import annotations

import pickle
from typing import Any


def pack(value: Any) -> bytes:
    """Return a value as a message."""
    return pickle.dumps(value, 5)


def unpack(message: bytes) -> Any:
    """Return the value of a message."""
    return pickle.loads(message)
