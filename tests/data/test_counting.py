"""Many tables counted in one scan, against one array for each."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hedgerow.data.counting import BLOCK, ManyTables
from hedgerow.universe.universe import Universe


@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (300, 2, 20, 7), (70_000, 2, 3, 2)], ids=["bytes", "words", "wide"])
@pytest.mark.parametrize("batches", [(1,), (BLOCK - 1, 3), (2 * BLOCK + 5, 0, 7)])
def test_every_row_is_counted_once_in_every_table(sizes, batches) -> None:
    rng = np.random.default_rng(0)
    universe = Universe.from_sizes(dict(zip("abcd", sizes, strict=True)))
    sets = [s for k in range(4) for s in itertools.combinations(universe.names, k)]
    tables = ManyTables(universe, sets)
    cells = [np.column_stack([rng.integers(0, m, rows) for m in sizes]) for rows in batches]
    for batch in cells:
        tables.add([batch[:, universe.index(n)] for n in tables.columns], len(batch))
    everyone = np.concatenate(cells)
    for names, counts in zip(sets, tables.tables(), strict=True):
        places = np.zeros(len(everyone), np.int64)
        for name in names:
            places = places * universe[name].size + everyone[:, universe.index(name)]
        expected = np.bincount(places, minlength=universe.cells(names)).reshape(universe.sizes(names))
        assert counts.dtype == np.int64 and np.array_equal(counts, expected)
