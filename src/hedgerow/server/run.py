"""The process: open the datasets, print the first token once, and listen."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow._extras import extra
from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import random_token
from hedgerow.server.api import Service
from hedgerow.server.app import Application
from hedgerow.server.dataset import Dataset
from hedgerow.server.outcomes import OutcomeStore
from hedgerow.server.people import TokenStore
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.settings import Settings
from hedgerow.server.trail import Trail
from hedgerow.session import Session

if TYPE_CHECKING:
    from starlette.applications import Starlette

BACKLOG = 2048
GRACE = 30  # seconds in which requests may end after the service is told to stop


def application(settings: Settings, sessions: Mapping[str, Session], registry: ServiceRegistry) -> Starlette:
    """Return the ASGI application of a service for open sessions. The sessions are closed with it."""
    _require_different(sessions)
    datasets = {
        name: Dataset(name, session, settings.limits.waiting, settings.limits.waiting_of_one)
        for name, session in sessions.items()
    }
    service = Service(datasets, TokenStore(registry), Trail(registry), settings.limits)
    return Application(settings, service, OutcomeStore(registry, random_token(8))).starlette()


def first_token(registry: ServiceRegistry) -> str | None:
    """Make an owner's token if the registry has no token yet, and return it to be shown once."""
    tokens = TokenStore(registry)
    return None if tokens.list() else tokens.create("owner", "owner")[0]


def serve(settings: Settings, open_session: Callable[[Path], Session], tell: Callable[[str], None]) -> None:
    """Open every dataset and serve until the process is told to stop. ``tell`` shows a line to the owner."""
    uvicorn = extra("uvicorn")
    with contextlib.ExitStack() as stack:
        registry = ServiceRegistry(settings.registry)
        stack.callback(registry.close)
        sessions = {}
        for name, path in settings.datasets.items():
            tell(f"opening {name}")
            sessions[name] = open_session(path)
        app = application(settings, sessions, registry)
        token = first_token(registry)
        scheme = "https" if settings.certificate else "http"
        tell(f"listening on {scheme}://{settings.host}:{settings.port}{settings.prefix}")
        if token is not None:
            tell(f"first owner token, shown once: {token}")
        config = uvicorn.Config(app, **_options(settings))
        uvicorn.Server(config).run()


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "host": settings.host,
        "port": settings.port,
        "ssl_certfile": settings.certificate,
        "ssl_keyfile": settings.key,
        "ssl_version": ssl.PROTOCOL_TLS_SERVER,
        "proxy_headers": False,
        "server_header": False,
        "access_log": False,  # paths may hold questions
        "log_level": "warning",
        "backlog": BACKLOG,
        "timeout_graceful_shutdown": GRACE,
        "h11_max_incomplete_event_size": 64 * 1024,
        "ws": "none",
    }


def _require_different(sessions: Mapping[str, Session]) -> None:
    """Refuse two datasets with the same table and different ledgers: its people would pay two budgets."""
    seen: dict[str, str] = {}
    for name, session in sessions.items():
        for fingerprint in (block.data.fingerprint() for block in session.blocks.values()):
            if fingerprint in seen and seen[fingerprint] != name:
                raise InvalidInput(
                    f"Each table must be served once. Found {name!r} and {seen[fingerprint]!r} with the same table. Give "
                    "them one ledger, or serve one of them."
                )
            seen[fingerprint] = name
