"""A missing optional library is named with the extra that installs it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow._extras import EXTRAS

ROOT = Path(__file__).resolve().parent.parent
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
USES = {
    "matplotlib": "Answered.plot()",
    "ibis": "hr.open('mysql://nowhere/x', table='t', universe=U, budget=B)",
    "psycopg": "hr.open('postgresql://nowhere/x', table='t', universe=U, budget=B)",
    "sklearn": "hr.estimators",
    "sqlalchemy": "import hedgerow.sql.dialect",
    "uvicorn": "__import__('hedgerow.cli.service').cli.service.serve_demo('127.0.0.1:0')",
    "fsspec": "hr.open('s3://nowhere/x.parquet', universe=U, budget=B)",
}


@pytest.mark.parametrize("library", sorted(USES))
def test_a_missing_library_is_named_with_its_extra(library: str) -> None:
    code = f"""
import sys
sys.modules[{library!r}] = None
import pandas as pd
import hedgerow as hr
U, B = hr.Universe(a=hr.Flag()), hr.Budget(1, 1e-6)
Answered = hr.open(pd.DataFrame({{"a": [True, False] * 500}}), universe=U, budget=B).ask(hr.count(a=True))
try:
    {USES[library]}
except hr.InvalidInput as refused:
    print(refused)
"""
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert f"{library} must be installed for" in ran.stdout, ran.stderr
    assert f"pip install 'hedgerow[{EXTRAS[library][1]}]'" in ran.stdout


@pytest.mark.parametrize("library", sorted(EXTRAS))
def test_every_extra_that_an_error_names_is_declared_and_on_the_page(library: str) -> None:
    name = EXTRAS[library][1]
    assert name in DECLARED
    assert f"| `{name}` |" in (ROOT / "docs" / "install.md").read_text()
    assert name in DECLARED["all"][0]


def test_a_missing_extra_is_an_import_error_too() -> None:
    assert issubclass(hr.InvalidInput, ValueError)
    from hedgerow._extras import MissingExtra

    assert issubclass(MissingExtra, ImportError) and issubclass(MissingExtra, hr.InvalidInput)
