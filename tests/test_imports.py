"""``import hedgerow`` is quick: what is heavy, or optional, waits for its first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ["pandas", "pyarrow", "duckdb", "ibis", "polars", "opendp", "dp_accounting", "matplotlib", "sklearn", "rich"]
HEAVY += [
    "sqlalchemy",
    "psycopg",
    "numba",
    "scipy.stats",
    "scipy.optimize",
    "scipy.special",
    "scipy.sparse",
    "scipy.linalg",
]


def loaded_after(code: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return loaded_after("import hedgerow")


@pytest.mark.parametrize("module", HEAVY)
def test_importing_hedgerow_does_not_load(module: str, loaded: set[str]) -> None:
    assert "hedgerow.session" in loaded
    assert module not in loaded


@pytest.mark.parametrize("module", ["pandas", "duckdb", "numba", "scipy.optimize"])
def test_a_module_that_is_loaded_would_be_seen(module: str) -> None:
    assert module in loaded_after(f"import hedgerow, {module}")
