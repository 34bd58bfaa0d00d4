"""The process: open the datasets, print the first token once, and listen."""

from __future__ import annotations

import contextlib
import gc
import os
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.routing import BaseRoute

from hedgerow._extras import extra
from hedgerow.errors import InvalidInput
from hedgerow.ledger.chain import Head
from hedgerow.privacy.noise import random_token
from hedgerow.server.api import Service
from hedgerow.server.app import Application
from hedgerow.server.approvals import ApprovalStore
from hedgerow.server.commits import GroupCommits
from hedgerow.server.connections import timed_protocol
from hedgerow.server.dataset import Dataset
from hedgerow.server.heads import HeadFile
from hedgerow.server.journal import AnswerJournal
from hedgerow.server.outcomes import OutcomeStore
from hedgerow.server.people import TokenStore
from hedgerow.server.pool import WorkerPool
from hedgerow.server.registrar import Desk, Registrar
from hedgerow.server.registrations import RegistrationStore
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.settings import Settings
from hedgerow.server.trail import Trail
from hedgerow.session import Session

if TYPE_CHECKING:
    from starlette.applications import Starlette

MakePages = Callable[[Application, ServiceRegistry], Sequence[BaseRoute]]
BACKLOG = 2048
FRONT_TOKEN = "HEDGEROW_FRONT_TOKEN"  # variable of the environment with the token of a front
SWITCH = 0.0005  # seconds after which a thread that computes lets another run
COLLECTED = (
    2_000,
    10,
    1_000,
)  # objects, and collections of younger ones, after which the interpreter looks what it can free
GRACE = 30  # seconds in which requests may end after the service is told to stop


def application(
    settings: Settings,
    sessions: Mapping[str, Session],
    registry: ServiceRegistry,
    pages: MakePages | None = None,
    desk: Desk | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Starlette:
    """Return the ASGI application of a service for open sessions, with its pages. The sessions are closed with it.

    With a ``desk``, and a rule of registration in the settings, owners may register tables. Those of earlier lives of
    the service are opened now.
    """
    _require_different(sessions)
    limits, commits = settings.limits, GroupCommits(registry)
    pool = WorkerPool(settings.workers, limits.work_seconds, limits.memory) if settings.workers else None
    journal, trail = AnswerJournal(registry, commits), Trail(registry)

    def make(name: str, session: Session) -> Dataset:
        limit, head = limits.new_answers_per_day, _head_file(settings, name)
        return Dataset(name, session, limits.waiting, limits.waiting_of_one, pool, journal, head, limit, trail)

    datasets, rules = {name: make(name, session) for name, session in sessions.items()}, dict(settings.approvals)
    registrar = None
    if desk is not None and settings.registration is not None:
        store = RegistrationStore(registry)
        registrar = Registrar(settings, settings.registration, desk, store, datasets, rules, make)
        again = registrar.open_again(tell)
        _require_different({**sessions, **{name: session for name, (_, session) in again.items()}})
        for registration, session in again.values():
            registrar.serve(registration, make(registration.name, session))
    service = Service(
        datasets,
        TokenStore(registry),
        trail,
        ApprovalStore(registry),
        limits,
        commits,
        pool,
        rules,
        registrar,
    )
    made = None if pages is None else lambda served: pages(served, registry)
    return Application(settings, service, OutcomeStore(registry, random_token(8)), made).starlette()


def _head_file(settings: Settings, name: str) -> HeadFile | None:
    return HeadFile(settings.heads[name]) if name in settings.heads else None


def first_token(registry: ServiceRegistry) -> str | None:
    """Make an owner's token if the registry has no token yet, and return it to be shown once."""
    tokens = TokenStore(registry)
    return None if tokens.list() else tokens.create("owner", "owner")[0]


def serve(
    settings: Settings,
    desk: Desk,
    tell: Callable[[str], None],
    pages: MakePages | None = None,
) -> None:
    """Open every dataset and serve until the process is told to stop. ``tell`` shows a line to the owner."""
    uvicorn = extra("uvicorn")
    if settings.engine:
        from hedgerow.server.front import front

        tell(f"a front for {settings.engine}, listening on {_address(settings)}")
        app = front(settings, os.environ.get(FRONT_TOKEN, ""))
        uvicorn.Server(uvicorn.Config(app, **_options(settings))).run()
        return
    with contextlib.ExitStack() as stack:
        registry = ServiceRegistry(settings.registry)
        stack.callback(registry.close)
        sessions = {}
        for name, path in settings.datasets.items():
            tell(f"opening {name}")
            head = _head_file(settings, name)
            sessions[name] = desk.open_session(path, Head() if head is None else head.noted)
        app = application(settings, sessions, registry, pages, desk, tell)
        token = first_token(registry)
        tell(f"listening on {_address(settings)}")
        if token is not None:
            tell(f"first owner token, shown once: {token}")
        let_answers_pass()
        config = uvicorn.Config(app, **_options(settings))
        uvicorn.Server(config).run()


def let_answers_pass() -> None:
    """Keep the pauses of the interpreter short, because every answer passes through one thread.

    Another thread gives way after ``SWITCH`` seconds. Objects made at the start live as long as the process, so the
    garbage collector need not visit them again. Neither is what lasts a while, except when there is little to do
    (``Application``).
    """
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED)


def _address(settings: Settings) -> str:
    return f"{'https' if settings.certificate else 'http'}://{settings.host}:{settings.port}{settings.prefix}"


def _options(settings: Settings) -> dict[str, Any]:
    """Return the options of the HTTP server."""
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
        "http": timed_protocol(settings.limits.header_seconds),
        "limit_concurrency": settings.limits.connections,
        "ws": "none",
    }


def _require_different(sessions: Mapping[str, Session]) -> None:
    """Refuse two datasets with the same table and different ledgers: its people would pay two budgets.

    Under one ledger the same table may have two names: there is one budget.
    """
    seen: dict[str, tuple[str, str]] = {}
    for name, session in sessions.items():
        (first, *_) = session.blocks.values()
        ledger = getattr(first.ledger, "identity", None) or f"in memory {id(first.ledger)}"
        for fingerprint in (block.data.fingerprint() for block in session.blocks.values()):
            if fingerprint in seen and seen[fingerprint][1] != ledger:
                raise InvalidInput(
                    f"Each table must have one ledger. Found {name!r} and {seen[fingerprint][0]!r} with the same "
                    "table and two ledgers. Give them one ledger, or serve one of them."
                )
            seen[fingerprint] = (name, ledger)
