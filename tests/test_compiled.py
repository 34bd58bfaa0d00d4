"""Compiled loops give the same bits whether this process compiled them or read them from the disk."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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


@pytest.mark.audit  # compiles all anew; results from the cache are those of tests/transcripts.json in every run
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


COMPILED_FIRST = """
import hedgerow as hr
from hedgerow.model import kernels, log_linear, triangulation

log_linear.compile_all()
print(*(len(kernel.signatures) for kernel in (kernels.calibrate, log_linear._add, log_linear._sum, triangulation.cells_with_each)))
universe = hr.Universe.from_json({f"c{i}": 3 for i in range(8)})
rows = {f"c{i}": [j % 3 for j in range(200)] for i in range(8)}
import pandas as pd
hr.open(pd.DataFrame(rows), universe=universe, budget=hr.Budget(1, 1e-6))
print(*(len(kernel.signatures) for kernel in (kernels.calibrate, log_linear._add, log_linear._sum, triangulation.cells_with_each)))
"""


def test_functions_compiled_while_a_table_is_read_are_those_that_its_model_needs() -> None:
    """One kind of arguments each, and none that is compiled only later."""
    said = subprocess.run([sys.executable, "-c", COMPILED_FIRST], check=True, capture_output=True, text=True).stdout
    assert said.splitlines() == ["1 1 1 1", "1 1 1 1"]


FIRST_ANSWERS = """
import sys
import numpy as np
import hedgerow as hr
from hedgerow.model.hypothesis import Hypothesis

sizes = {f"c{i}": 12 + i for i in range(12)}
universe = hr.Universe.from_sizes(sizes)
names, draws = list(sizes), np.random.default_rng(1)
made = Hypothesis(universe, final=True)
made.add_factors({s: draws.normal(size=universe.sizes(s)) for s in zip(names, names[1:], names[2:])})
found = [made.marginal(s).tobytes() for s in [("c0", "c1", "c2"), ("c0", "c11"), ("c1", "c5", "c9"), ("c3",)]]
import hashlib
print(hashlib.sha256(b"".join(found)).hexdigest(), "numba" in sys.modules)
"""


@pytest.mark.parametrize("patience", ["1e9", "-1"])
def test_the_first_answers_of_a_model_need_no_compiler_and_have_the_bits_of_compiled_code(patience) -> None:
    patient = FIRST_ANSWERS.replace(
        "import sys", f"import sys\nimport hedgerow._compiled as c\nc.PATIENCE = {patience}"
    )
    said = subprocess.run([sys.executable, "-c", patient], check=True, capture_output=True, text=True).stdout
    digest, compiled = said.split()
    assert compiled == str(patience == "-1")
    ready = subprocess.run([sys.executable, "-c", FIRST_ANSWERS], check=True, capture_output=True, text=True).stdout
    assert ready.split()[0] == digest
