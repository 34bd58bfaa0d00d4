"""The cells of a source's rows, in the order of the rows, before they are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import hedgerow as hr
from hedgerow.data.table import code_batches


def coded_rows(source: Any, universe: hr.Universe, **how: Any) -> NDArray[np.int64]:
    batches = [np.column_stack(cells).astype(np.int64) for cells in code_batches(source, universe, **how)]
    return np.concatenate([np.zeros((0, len(universe.names)), np.int64), *batches])
