"""``import hedgerow`` and a small session are quick: heavy and optional libraries load at first use."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hedgerow as hr

HEAVY = ["numpy", "pandas", "pyarrow", "duckdb", "ibis", "polars", "opendp", "dp_accounting", "matplotlib", "sklearn"]
HEAVY += ["rich", "typer", "sqlalchemy", "sqlglot", "psycopg", "numba", "scipy"]
NOT_FOR_SMALL_WORK = ["pandas", "duckdb", "ibis", "polars", "dp_accounting", "matplotlib", "sklearn", "rich", "sqlglot"]
NOT_FOR_SMALL_WORK += ["numba", "sqlalchemy", "scipy.stats", "scipy.optimize", "scipy.special", "scipy.linalg"]
SMALL_WORK = """
import hedgerow as hr

universe = hr.Universe(age=hr.Integers(17, 90), sex=hr.Categories(["F", "M"]), smoker=hr.Flag(), region=hr.Integers(0, 9))
session = hr.open({path!r}, universe=universe, budget=hr.Budget(epsilon=1, delta=1e-9))
session.ask(hr.count(smoker=True, age=(40, 65)))
session.ask(hr.marginal("sex", "smoker"))
session.ask(hr.mean("age", where=hr.count(smoker=True)))
"""


def loaded_after(code: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return loaded_after("import hedgerow")


@pytest.fixture(scope="module")
def loaded_by_small_work(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    path = tmp_path_factory.mktemp("small") / "people.csv"
    lines = [f"{17 + i % 70},{'FM'[i % 2]},{i % 3 == 0},{i % 10}" for i in range(5000)]
    path.write_text("\n".join(["age,sex,smoker,region", *lines]))
    return loaded_after(SMALL_WORK.format(path=str(path)))


@pytest.mark.parametrize("module", HEAVY)
def test_importing_hedgerow_does_not_load(module: str, loaded: set[str]) -> None:
    assert "hedgerow" in loaded
    assert module not in loaded


@pytest.mark.parametrize("module", NOT_FOR_SMALL_WORK)
def test_a_small_session_compiles_nothing_and_does_not_load(module: str, loaded_by_small_work: set[str]) -> None:
    assert "hedgerow.session" in loaded_by_small_work
    assert module not in loaded_by_small_work


@pytest.mark.parametrize("module", ["pandas", "duckdb", "numba", "scipy.optimize"])
def test_a_module_that_is_loaded_would_be_seen(module: str) -> None:
    assert module in loaded_after(f"import hedgerow, {module}")


def test_every_public_name_loads_and_is_the_one_that_type_checkers_see() -> None:
    tree = ast.parse(Path(hr.__file__).read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: f"{node.module}"
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(seen) == sorted(hr.__all__)
    for name, module in seen.items():
        __import__(module)
        assert getattr(hr, name) is getattr(sys.modules[module], name), name


def test_a_name_that_does_not_exist_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = hr.nothing
