"""Compiled loops give the same bits whether this process compiled them or read them from the disk."""

from __future__ import annotations

import os
import subprocess
import sys

FITS = """
import hashlib
import numpy as np
import hedgerow as hr
from hedgerow.model.junction_tree import JunctionTree

universe = hr.Universe.from_sizes({"a": 70, "b": 50, "c": 300, "d": 3, "e": 11})
tree = JunctionTree(universe, [("a", "b"), ("b", "c", "d"), ("d", "e")])
for seed in range(20):
    draws = np.random.default_rng(seed)
    potentials = [draws.normal(size=[universe[name].size for name in clique]) for clique in tree.cliques]
    beliefs, log_partition = tree.calibrate(potentials)
    bits = b"".join(np.ascontiguousarray(belief).tobytes() for belief in beliefs)
    print(hashlib.sha256(bits).hexdigest(), log_partition.hex())
"""


def test_the_process_that_compiles_gives_the_bits_of_those_that_follow(tmp_path) -> None:
    def said() -> str:
        given = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", FITS], env=given, check=True, capture_output=True, text=True
        ).stdout

    first = said()
    assert first.count("\n") == 20
    assert list(tmp_path.rglob("*.nbc"))
    assert said() == first
