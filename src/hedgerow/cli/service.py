"""The commands ``serve`` and ``token``: the service for many analysts, and who may use it."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hedgerow as hr
from hedgerow.cli.environment import expand
from hedgerow.cli.file import DEFAULT, File, Place
from hedgerow.cli.output import AsJson, GuardedGroup, complain, log_to_stderr, show, table
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from hedgerow.ledger.chain import Head
    from hedgerow.server.people import Token
    from hedgerow.server.registrar import Desk
    from hedgerow.server.registry import ServiceRegistry
    from hedgerow.server.settings import Settings
    from hedgerow.session import Session

ServiceFile = Annotated[
    Path | None,
    typer.Option("--service", help="Configuration of the service. Without it, the one dataset of --file is served."),
]
tokens = typer.Typer(cls=GuardedGroup, no_args_is_help=True, rich_markup_mode=None, help="Say who may use the service.")


def serve(
    service: ServiceFile = None,
    place: Place = DEFAULT,
    listen: Annotated[str | None, typer.Option(help="Address and port. Default: 127.0.0.1:8470.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve the bundled table, with no file at all.")] = False,
) -> None:
    """Serve datasets to many analysts over HTTP. The first start prints an owner's token, once."""
    if demo:
        serve_demo(listen)
        return
    _require_extras()
    from hedgerow import console
    from hedgerow.server import run

    log_to_stderr()
    settings = _settings(service, place, listen)
    _require_different(settings)
    run.serve(settings, desk(), complain, console.pages)


def serve_demo(listen: str | None = None) -> None:
    """Serve the bundled table until the process is told to stop, and forget everything then."""
    _require_extras()
    from hedgerow import console
    from hedgerow.server import run
    from hedgerow.server.registrar import Desk

    log_to_stderr()
    with tempfile.TemporaryDirectory() as folder:
        opens = Desk(lambda path, _: _demo_session(path), expand, lambda _: ())
        run.serve(_demo_settings(Path(folder), listen), opens, complain, console.pages)


def desk() -> Desk:
    """Return the functions by which a service opens the files of its datasets."""
    from hedgerow.server.registrar import Desk

    return Desk(_open_dataset, expand, _sources_of)


def _sources_of(path: Path) -> list[tuple[str, str | None]]:
    file = File(path)
    return [(file.source, file.table), *((each["source"], each["table"]) for each in file.blocks)]


def _require_extras() -> None:
    from hedgerow._extras import extra

    for module in ("starlette", "msgspec", "uvicorn", "jinja2"):
        extra(module)


def _demo_settings(folder: Path, listen: str | None) -> Settings:
    """Return the settings of a service for the bundled table, which forgets everything when it stops."""
    from hedgerow.server.settings import DEFAULT_LISTEN, DEFAULT_WORKERS, Settings, address

    return Settings(
        *address(listen or DEFAULT_LISTEN), folder / "registry.sqlite", {"demo": folder}, workers=DEFAULT_WORKERS
    )


def _demo_session(folder: Path) -> Session:
    from hedgerow import demo

    ledger = f"sqlite:///{folder}/demo.ledger"
    return hr.open(demo.path(), universe=demo.universe(), budget=hr.Budget(1, 1e-6), ledger=ledger, reserve=0.2)


def _settings(service: Path | None, place: Path, listen: str | None) -> Settings:
    from hedgerow.server.settings import read_settings, settings_of_desk

    if service is None:
        return settings_of_desk(place, listen)
    if listen is not None:
        raise InvalidInput("--listen must be left out with --service. Found both. Write listen into the file.")
    return read_settings(service)


def _open_dataset(path: Path, head: Head) -> Session:
    """Open the session of a desk file, and append its blocks. It spends what `hedgerow open` would spend.

    A ledger that has not the noted head is refused before anything is opened: an older copy would spend again.
    """
    from hedgerow.cli.desk import open_session

    file = File(path)
    if head.number:
        hr.ledger.read(file.ledger).verify(head)
    return open_session(file)


def _require_different(settings: Settings) -> None:
    """Refuse two datasets of one source with different ledgers."""
    seen: dict[tuple[str, str | None], tuple[str, str]] = {}
    for name, path in settings.datasets.items():
        file = File(path)
        key = (_place(file.source), file.table)
        if key in seen and seen[key][1] != file.ledger:
            raise InvalidInput(
                f"Each table must have one ledger. Found {seen[key][0]!r} and {name!r} with the same source and "
                "different ledgers: its people would pay twice. Give both the same ledger."
            )
        seen[key] = (name, file.ledger)


def _place(source: str) -> str:
    return source if "://" in source else str(Path(source).resolve())


@tokens.command("create")
def create(
    person: Annotated[str, typer.Argument(help="Name of the person, in the audit trail and in the ledger.")],
    role: Annotated[
        str, typer.Option(help="owner, analyst, auditor, or front for a process that answers for the engine.")
    ] = "analyst",
    project: Annotated[str, typer.Option(help="Project whose cap counts the person's purchases, too.")] = "",
    dataset: Annotated[
        list[str] | None, typer.Option(help="A dataset that the token is for; repeat for several. Default: all.")
    ] = None,
    days: Annotated[float | None, typer.Option(help="Days until the token expires. Default: never.")] = None,
    signs_on: Annotated[
        bool, typer.Option("--sign-on", help="Make an account for a person whom the reverse proxy names.")
    ] = False,
    service: ServiceFile = None,
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown once and stored nowhere."""
    from hedgerow.server.people import TokenStore
    from hedgerow.server.registrations import RegistrationStore

    with open_registry(service, place) as (registry, settings):
        registered = [each.name for each in RegistrationStore(registry).list() if each.state == "open"]
        known = [*settings.datasets, *registered]
        unknown = sorted(set(dataset or ()) - set(known))
        if unknown:
            raise InvalidInput(f"--dataset must be one of {', '.join(known)}. Found {unknown[0]!r}. Name one of these.")
        secret, token = TokenStore(registry).create(
            person, role, project=project, datasets=dataset, days=days, signs_on=signs_on
        )
    told = secret or f"{person} signs on at the proxy"
    show({"token": secret or None, **_record(token)}, as_json, lambda screen: screen.print(told, soft_wrap=True))


@tokens.command("list")
def list_(service: ServiceFile = None, place: Place = DEFAULT, as_json: AsJson = False) -> None:
    """List all tokens, without their secrets."""
    from hedgerow.server.people import TokenStore

    with open_registry(service, place) as (registry, _):
        records = [_record(token) for token in TokenStore(registry).list()]
    lines = [[str(value) for value in record.values()] for record in records]
    names = ("id", "person", "project", "role", "datasets", "created", "expires", "state")
    show({"tokens": records}, as_json, lambda screen: screen.print(table(names, lines)))


@tokens.command("revoke")
def revoke(
    identity: Annotated[str, typer.Argument(help="Id of the token, as `hedgerow token list` shows it.")],
    service: ServiceFile = None,
    place: Place = DEFAULT,
) -> None:
    """End a token at once."""
    from hedgerow.server.people import TokenStore

    with open_registry(service, place) as (registry, _):
        if not TokenStore(registry).revoke(identity):
            raise InvalidInput(
                f"The id must be that of a token that has not ended. Found {identity!r}. See `hedgerow token list`."
            )


@contextlib.contextmanager
def open_registry(service: Path | None, place: Path) -> Iterator[tuple[ServiceRegistry, Settings]]:
    """Open the registry of a service for one command."""
    from hedgerow.server.registry import ServiceRegistry

    settings = _settings(service, place, None)
    if settings.engine:
        raise InvalidInput(
            "--service must name the engine's file. Found a front's, which has no registry. Name the other."
        )
    registry = ServiceRegistry(settings.registry)
    try:
        yield registry, settings
    finally:
        registry.close()


def _record(token: Token) -> dict[str, Any]:
    """Return the public facts about a token, for display."""
    is_over = token.expires is not None and token.expires <= time.time()
    return {
        "id": token.id,
        "person": token.person,
        "project": token.project,
        "role": token.role,
        "datasets": "all" if token.datasets is None else ", ".join(token.datasets),
        "created": format_day(token.created),
        "expires": "never" if token.expires is None else format_day(token.expires),
        "state": "revoked" if token.revoked is not None else "expired" if is_over else "valid",
    }


def format_day(at: float) -> str:
    """Return a moment as text, in universal time."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
