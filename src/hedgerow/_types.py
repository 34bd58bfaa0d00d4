"""The types of arrays and names that everybody uses, each once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Counts = NDArray[np.int64]
"""Records by cell: private until noise is added."""
Matrix = Any
"""A dense float64 table or a scipy CSR array."""
Names = tuple[str, ...]
"""Attributes, in the order of the universe."""
