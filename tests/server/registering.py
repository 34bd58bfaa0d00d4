"""A service in this process that may register tables: roots, a database and uploads in a folder of a test."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import serving
from starlette.testclient import TestClient

import hedgerow as hr
from hedgerow.cli.service import desk
from hedgerow.server.people import TokenStore
from hedgerow.server.registration_rule import RegistrationRule
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.run import application
from hedgerow.server.settings import Limits, Settings

DECLARED = {
    "age": {"kind": "Integers", "low": 17, "high": 90},
    "sex": {"kind": "Categories", "values": ["F", "M"]},
    "smoker": {"kind": "Flag"},
}
BUDGET = {"epsilon": 8.0, "delta": 1e-6, "reserve": 0.5}


@dataclass
class Office:
    """A running service with its tokens: of an owner of all, an owner of one dataset, an analyst and an auditor."""

    client: TestClient
    folder: Path
    registry: ServiceRegistry
    tokens: dict[str, str]

    def send(self, method: str, path: str, role: str = "owner", **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[role]}", **options.pop("headers", {})}
        return self.client.request(method, f"/v1/{path}", headers=headers, **options)

    def begin(self, name: str, **source: Any) -> Any:
        return self.send("POST", "registrations", json={"name": name, "source": source})

    def upload(self, name: str, content: bytes, role: str = "owner") -> Any:
        return self.send("POST", "uploads", role, params={"name": name}, content=content)

    def declare(self, identity: str, columns: dict[str, Any] | None = None, left_out: tuple[str, ...] = ()) -> Any:
        body = {"columns": DECLARED if columns is None else columns, "left_out": list(left_out)}
        return self.send("POST", f"registrations/{identity}/columns", json=body)

    def open(self, identity: str, **budget: Any) -> Any:
        """Open a registration, and return it once its opening has ended."""
        begun = self.send("POST", f"registrations/{identity}/open", json=BUDGET | budget)
        if begun.status_code != 202:
            return begun.json()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = self.send("GET", f"registrations/{identity}").json()
            if found["state"] != "opening":
                return found
            time.sleep(0.05)
        raise AssertionError("the opening did not end")

    def files(self) -> list[str]:
        """List all files that uploads have left."""
        return sorted(str(path.relative_to(self.folder)) for path in (self.folder / "registered").rglob("table.*"))


@contextlib.contextmanager
def office(folder: Path, sessions: dict[str, hr.Session] | None = None, files: dict[str, Path] | None = None, **limits: Any) -> Iterator[Office]:  # fmt: skip
    """Run a service with a root, a database and uploads. It may run again on the same folder."""
    tables = folder / "tables"
    tables.mkdir(exist_ok=True)
    if not (tables / "people.csv").exists():
        serving.people().to_csv(tables / "people.csv", index=False)
        with contextlib.closing(sqlite3.connect(folder / "clinic.sqlite")) as database:
            database.execute(
                "CREATE TABLE visits (age INTEGER CHECK (age BETWEEN 17 AND 90), sex TEXT CHECK (sex IN ('F', 'M')))"
            )
            database.executemany("INSERT INTO visits VALUES (?, ?)", [(20 + i % 60, "FM"[i % 2]) for i in range(1500)])
            database.commit()
    rule = RegistrationRule(
        folder / "registered", {"tables": tables}, {"clinic": f"sqlite:///{folder}/clinic.sqlite"},
        **{"upload": 2_000_000, "unpacked": 20_000_000, **limits},
    )  # fmt: skip
    registry = ServiceRegistry(folder / "registry.sqlite")
    store = TokenStore(registry)
    made = {
        "owner": store.create("Olga", "owner")[0],
        "some": store.create("Sam", "owner", datasets=["people"])[0],
        "analyst": store.create("Ana", "analyst")[0],
        "auditor": store.create("Aldo", "auditor")[0],
    }
    settings = Settings(
        "127.0.0.1", 8470, folder / "registry.sqlite", files or {}, hosts=("testserver",), registration=rule,
        limits=Limits(requests_per_minute=100_000),
    )  # fmt: skip
    app = application(settings, sessions or {}, registry, desk=desk())
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Office(client, folder, registry, made)
    registry.close()
