"""Types of arrays and names that many modules share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Counts = NDArray[np.int64]
"""Number of records in each cell. Private until noise is added."""
Matrix = Any
"""A dense float64 array or a SciPy CSR array."""
Names = tuple[str, ...]
"""Names of attributes, in the order of the universe."""
