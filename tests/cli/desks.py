"""Desks for tests of the command line: a folder with a table, its file and its ledger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from people import SMALL, frame
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli import app
from hedgerow.universe.files import to_mapping, to_toml

SOURCES = Path(hr.__file__).resolve().parent.parent
BUDGET, RESERVE, SEED = hr.Budget(1.0, 1e-6), 0.3, 7
HEAD = f"""\
source = "people.csv"
ledger = "sqlite:///people.ledger"

[budget]
epsilon = {BUDGET.epsilon}
delta = {BUDGET.delta}

[options]
reserve = {RESERVE}
guard = 0.0

"""


@dataclass(frozen=True)
class Desk:
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "hedgerow.toml"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'people.ledger'}"

    def run(self, *command: str, stdin: str | None = None) -> Any:
        """In this process."""
        return CliRunner().invoke(app, [*command, "--file", str(self.file)], input=stdin)

    def json(self, *command: str, stdin: str | None = None) -> Any:
        ran = self.run(*command, "--json", stdin=stdin)
        assert ran.exit_code == 0, ran.output
        return json.loads(ran.stdout)

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        """In a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "hedgerow.cli", *command], cwd=self.folder, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(SOURCES), **environment},
        )  # fmt: skip

    def in_python(self, **options: Any) -> hr.Session:
        """A session on the same table with the same seed, and an account of its own unless told."""
        return hr.open(
            self.folder / "people.csv", universe=SMALL, budget=BUDGET, reserve=RESERVE, guard=0.0, seed=SEED, **options
        )


def made(folder: Path, rows: int = 4000) -> Desk:
    frame(rows).to_csv(folder / "people.csv", index=False)
    (folder / "hedgerow.toml").write_text(HEAD + to_toml(to_mapping(SMALL), "universe"))
    return Desk(folder)


def opened(folder: Path, rows: int = 4000) -> Desk:
    desk = made(folder, rows)
    ran = desk.run("open", "--yes", "--seed", str(SEED))
    assert ran.exit_code == 0, ran.output
    return desk
