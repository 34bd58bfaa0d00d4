"""A console for tests: the real application on a loopback port, and Chromium with a record of everything it reports."""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import serving
import uvicorn

import hedgerow as hr
from hedgerow import console
from hedgerow.cli.service import desk
from hedgerow.server.people import TokenStore
from hedgerow.server.registration_rule import RegistrationRule
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.run import application
from hedgerow.server.settings import Limits, Settings

CHROMIUM = Path(os.environ.get("HEDGEROW_CHROMIUM", "/usr/bin/chromium"))
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run",
]  # fmt: skip
AXE = Path(__file__).parent / "axe.min.js.gz"
HOSTILE = {
    "html": "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "quotes": "\"'`--></style></title>'; DROP TABLE data; {{ 7 * 7 }}",
    "bidi": "\u202eevil\u2066 שלום عليكم",
    "long": "x" * 10_000,
}


@dataclass
class Served:
    """A running console: its address, its tokens by role, and its sessions."""

    url: str
    tokens: dict[str, str]
    sessions: dict[str, hr.Session]
    registry: ServiceRegistry


@contextlib.contextmanager
def served(
    folder: Path,
    sessions: dict[str, hr.Session],
    *,
    prefix: str = "",
    workers: int = 0,
    port: int | None = None,
    registration: RegistrationRule | None = None,
) -> Iterator[Served]:
    """Serve sessions with the console in a thread of this process."""
    port = port or serving.free_port()
    registry = ServiceRegistry(folder / "registry.sqlite")
    settings = Settings(
        "127.0.0.1", port, folder / "r", dict.fromkeys(sessions, folder), prefix=prefix, workers=workers,
        limits=Limits(requests_per_minute=100_000), registration=registration,
    )  # fmt: skip
    tokens = TokenStore(registry)
    made = {
        "owner": tokens.create("Olga", "owner")[0],
        "analyst": tokens.create("Ana", "analyst", project="heart")[0],
        "auditor": tokens.create("Aldo", "auditor")[0],
    }
    app = application(settings, sessions, registry, console.pages, desk())
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield Served(f"http://127.0.0.1:{port}{prefix}", made, sessions, registry)
    finally:
        server.should_exit = True
        thread.join(60)
        registry.close()


@dataclass
class Watch:
    """Everything that a browser reported that should not be: errors, violations, and requests elsewhere."""

    url: str
    faults: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def follow(self, context: Any) -> None:
        origin = "/".join(self.url.split("/")[:3])
        context.on("console", lambda message: message.type in ("error", "warning") and self.faults.append(message.text))
        context.on("weberror", lambda error: self.faults.append(str(error.error)))
        context.on("request", lambda request: self._note(request.url, origin))
        context.add_init_script(
            "addEventListener('securitypolicyviolation', e => console.error('policy ' + e.violatedDirective + ' ' + e.blockedURI))"
        )

    def _note(self, address: str, origin: str) -> None:
        self.paths.append(address)
        if not address.startswith((origin, "data:", "blob:")):
            self.faults.append(f"request elsewhere: {address}")


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Run Chromium, or skip with a line that says what is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no Chromium at {CHROMIUM}; set HEDGEROW_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def visiting(browser: Any, served: Served, role: str, **options: Any) -> Iterator[tuple[Any, Watch]]:
    """Sign in and yield the page, watched. Nothing bad may have been reported at the end."""
    context, watch = browser.new_context(**options), Watch(served.url)
    watch.follow(context)
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.goto(f"{served.url}/")
    page.get_by_label("Your token").fill(served.tokens[role])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    try:
        yield page, watch
    finally:
        context.close()
    assert watch.faults == []


def faults_of_access(page: Any, watch: Watch) -> list[str]:
    """Return what axe-core finds serious on a page. Its own violations of the policy do not count."""
    before = list(watch.faults)
    page.evaluate(gzip.decompress(AXE.read_bytes()).decode())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    watch.faults[:] = before
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def open_people(folder: Path, **options: Any) -> hr.Session:
    """Open the table of the service's tests."""
    folder.mkdir(exist_ok=True)
    return hr.open(
        serving.people(), universe=serving.UNIVERSE, budget=serving.BUDGET, ledger=f"sqlite:///{folder}/people.ledger",
        **{"reserve": 0.6, **options},
    )  # fmt: skip


def open_hostile() -> hr.Session:
    """Open a table whose names and values try to break a page."""
    import pandas as pd

    values = list(HOSTILE.values())
    name = 'a"><script>alert(3)</script>'
    frame = pd.DataFrame({name: [values[i % 4] for i in range(400)], "b": [i % 2 == 0 for i in range(400)]})
    universe = hr.Universe({name: hr.Categories(values), "b": hr.Flag()})
    return hr.open(frame, universe=universe, budget=hr.Budget(8, 1e-6))
