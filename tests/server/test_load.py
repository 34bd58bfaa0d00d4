"""Small versions of `make load`: a real service under malformed and mixed requests, and kills. The tool checks every answer."""

from __future__ import annotations

from pathlib import Path

import load
import postgres
import pytest
from load_service import LoadedService


@pytest.mark.parametrize(
    ("phases", "ledger"),
    [
        ({"fuzz": 200, "mixed": 250}, "SQLite"),
        ({"bursts": 3}, "SQLite"),
        ({"kills": 1}, "SQLite"),
        ({"fronts": 1}, "PostgreSQL"),
    ],
    ids=["requests", "bursts", "kills", "fronts"],
)
def test_a_service_keeps_its_promises_under_load(tmp_path: Path, phases: dict[str, int], ledger: str) -> None:
    url = postgres.server().fresh() if ledger == "PostgreSQL" else "sqlite:///people.ledger"
    service = LoadedService(tmp_path, url, rows=20_000 if "bursts" in phases else 5_000, workers=1)
    service.start()
    try:
        for phase, size in phases.items():
            assert load.PHASES[phase][0](service, size)["requests"] >= size
    finally:
        service.stop()
