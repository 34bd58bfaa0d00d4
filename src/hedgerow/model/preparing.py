"""Compile the loops of large models while a table is read."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator

import numpy as np

from hedgerow.model.flat_sums import FEW_TABLES, FlatSums
from hedgerow.model.junction_tree import FEW_CLIQUES, JunctionTree
from hedgerow.model.tree_sizes import cells_with
from hedgerow.model.triangulation import FEW
from hedgerow.universe.attributes import Integers
from hedgerow.universe.universe import Universe


@contextlib.contextmanager
def compile_ahead(universe: Universe) -> Iterator[None]:
    """Compile in a thread if a model of this universe needs compiled loops; wait for the thread on exit."""
    if len(universe.names) <= FEW:
        yield
        return
    thread = threading.Thread(target=compile_all, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def compile_all() -> None:
    """Run every loop that a large model needs once, on a made-up chain of attributes.

    A failure is ignored here: the first real use fails again and can say what was being done.
    """
    names = [f"a{i}" for i in range(1 + max(FEW, FEW_CLIQUES, FEW_TABLES))]
    pairs = list(itertools.pairwise(names))
    with contextlib.suppress(Exception):
        tree = JunctionTree(Universe({name: Integers(0, 1) for name in names}), pairs)
        tree.calibrate(tree.zeros())
        sums = FlatSums.plan(tree, [*pairs, (names[0],)])
        assert sums is not None
        parameters, beliefs = np.zeros(4 * len(pairs) + 2), np.zeros(tree.cells)
        sums.potentials(parameters, beliefs)
        sums.means(beliefs, parameters)
        cells_with(tree, pairs, [(names[0], names[2])])
