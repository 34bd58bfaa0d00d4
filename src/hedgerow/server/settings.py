"""The configuration file of a service.

    listen = "127.0.0.1:8470"
    registry = "hedgerow-service.sqlite"

    [datasets.people]
    file = "people/hedgerow.toml"             # the table, universe, budget and ledger, as `hedgerow init` drafts it
    approve_above = 0.05                      # share of the budget above which a purchase waits for an owner's yes

    [assistants]                              # offers /mcp to AI assistants
    purchases = "none"

    [limits]
    questions = 10_000                        # questions in one batch

Paths are relative to the file's folder. docs/service.md has every key.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.server.registration_rule import RegistrationRule, read_rule

DEFAULT_LISTEN = "127.0.0.1:8470"
KEYS = (
    "listen",
    "hosts",
    "registry",
    "certificate",
    "key",
    "behind_proxy",
    "prefix",
    "workers",
    "datasets",
    "assistants",
    "limits",
    "sign_on",
    "engine",
    "engine_certificate",
    "registration",
)
DEFAULT_WORKERS = 2
PURCHASES = ("none", "approved", "capped")  # nothing, what a person approves within the cap, all within the cap
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Limits:
    """The most that one token may ask of the service. All limits are public."""

    body: int = 1_000_000  # bytes of a request
    questions: int = 10_000  # questions of one batch, or of one SQL statement
    records: int = 1_000_000  # synthetic records of one download
    requests_per_minute: int = 6_000
    wrong_tokens_per_minute: int = 60  # for each address
    seconds: float = 120.0  # a request that waits longer is refused; nothing that was paid for is lost
    # questions new to one person, about one dataset; each takes about 4 kB of memory while the service runs
    new_answers_per_day: int = 200_000
    waiting: int = 1_000  # requests that wait for one dataset
    waiting_of_one: int = 200  # of these, requests of one person
    work_seconds: float = 60.0  # of free work in a worker process, which is ended after that
    memory: int = 2_000_000_000  # bytes of one worker process, beside its libraries
    header_seconds: float = 10.0  # in which the head of a request must arrive
    body_seconds: float = 30.0  # in which the rest of it must
    connections: int = 1_000  # open at a time

    def __post_init__(self) -> None:
        for each in fields(self):
            found = getattr(self, each.name)
            if isinstance(found, bool) or not isinstance(found, int | float) or not found > 0:
                raise InvalidInput(f"limits.{each.name} must be a number above 0. Found {found!r}. Correct it.")


@dataclass(frozen=True)
class ApprovalRule:
    """The purchases of a dataset that need an owner's yes: those above ``share`` of its budget."""

    share: float
    days: float = 7.0

    def __post_init__(self) -> None:
        for name, given, least, most in (
            ("approve_above", self.share, 0.0, 1.0),
            ("approval_days", self.days, 0.0, 3_650.0),
        ):
            is_number = isinstance(given, int | float) and not isinstance(given, bool)
            if not is_number or not least <= given <= most or (name == "approval_days" and given == 0):
                raise InvalidInput(f"{name} must be a number from {least:g} to {most:g}. Found {given!r}. Correct it.")


@dataclass(frozen=True)
class ProxyRule:
    """Single sign-on at a reverse proxy: the header that names a person, and the only addresses it is believed from."""

    header: str
    addresses: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]

    def is_trusted(self, address: str) -> bool:
        """Return True if a request from this address may name a person."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self.addresses)


@dataclass(frozen=True)
class Settings:
    """A checked configuration. ``datasets`` maps each name to the path of its own file."""

    host: str
    port: int
    registry: Path
    datasets: Mapping[str, Path]
    hosts: tuple[str, ...] = LOOPBACK_NAMES
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    prefix: str = ""
    assistants: str | None = None  # no /mcp, or by what an assistant may buy: "none", "approved" or "capped"
    workers: int = 0  # processes that give free answers; with none the session's thread does
    limits: Limits = field(default_factory=Limits)
    approvals: Mapping[str, ApprovalRule] = field(default_factory=dict)
    sign_on: ProxyRule | None = None
    engine: str = ""  # address of the engine that a front hands requests on to; a front has no datasets
    engine_certificate: Path | None = None  # authority to trust for it
    registration: RegistrationRule | None = None  # sources that owners may register in a running service
    heads: Mapping[str, Path] = field(default_factory=dict)  # files that note the heads of ledgers, kept elsewhere

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InvalidInput("certificate and key must be given together. Found one of them. Give both files.")
        if not is_loopback(self.host) and self.certificate is None and not self.behind_proxy:
            raise InvalidInput(
                f"A service that listens beyond this machine must use TLS. Found listen on {self.host!r} without. Give "
                "certificate and key, or, where a proxy has TLS and nobody else reaches this port, behind_proxy = true."
            )
        if not is_loopback(self.host) and set(self.hosts) <= set(LOOPBACK_NAMES):
            raise InvalidInput(
                "hosts must have the names by which the service is reached, because requests for other names are refused. "
                'Found none. For example hosts = ["data.example.org"].'
            )
        if self.engine:
            _require_engine(self.engine)
        if isinstance(self.workers, bool) or not 0 <= self.workers <= 64:
            raise InvalidInput(f"workers must be a whole number from 0 to 64. Found {self.workers!r}. Correct it.")
        if self.assistants is not None and self.assistants not in PURCHASES:
            raise InvalidInput(
                f"assistants.purchases must be one of {', '.join(PURCHASES)}. Found {self.assistants!r}. Choose one."
            )
        if self.prefix and not re.fullmatch(r"(/[A-Za-z0-9_-]+)+", self.prefix):
            raise InvalidInput(f"prefix must be a path such as '/hedgerow'. Found {self.prefix!r}. Correct it.")


def _require_engine(engine: str) -> None:
    """Refuse an address to which tokens must not be sent."""
    parts = urllib.parse.urlsplit(engine)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not is_safe or not parts.hostname or "@" in parts.netloc or parts.query or parts.path.endswith("/"):
        raise InvalidInput(
            f"engine must be the https address of the engine, or http on this machine. Found {engine!r}. For example "
            '"https://engine.internal:8470".'
        )


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_settings(path: Path) -> Settings:
    """Read and check a configuration file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InvalidInput(
            f"A file must describe the service. Found none at {str(path)!r}. Name one with --file, or use --demo."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise InvalidInput(f"{path.name} must be TOML in UTF-8. Found other text. Correct it.") from None
    _require_keys(content, KEYS, path.name)
    folder = path.absolute().parent
    datasets, engine = _table(content, "datasets"), _of(content, "engine", str, "")
    if engine and (datasets or any(name in content for name in ("registry", "sign_on", "registration"))):
        raise InvalidInput(
            f"{path.name} must describe an engine or a front. Found both. A front has engine, and no datasets, "
            "registry, sign_on or registration."
        )
    if not datasets and not engine and "registration" not in content:
        raise InvalidInput(
            f'{path.name} must have a dataset. Found none. Write [datasets.people] with file = "hedgerow.toml".'
        )
    return Settings(
        *address(_of(content, "listen", str, DEFAULT_LISTEN)),
        registry=folder / _of(content, "registry", str, "hedgerow-service.sqlite"),
        datasets={name: folder / _file_of(name, each) for name, each in datasets.items()},
        hosts=_hosts(content),
        certificate=_path(content, "certificate", folder),
        key=_path(content, "key", folder),
        behind_proxy=_of(content, "behind_proxy", bool, False),
        prefix=_of(content, "prefix", str, "").rstrip("/"),
        assistants=_assistants(content),
        workers=_of(content, "workers", int, DEFAULT_WORKERS),
        limits=_limits(content),
        sign_on=_sign_on(content),
        engine=engine,
        engine_certificate=_path(content, "engine_certificate", folder),
        registration=read_rule(content["registration"], folder) if "registration" in content else None,
        heads={name: folder / _of(each, "head", str, "") for name, each in datasets.items() if "head" in each},
        approvals={name: _approval_rule(each) for name, each in datasets.items() if "approve_above" in each},
    )


def settings_of_desk(path: Path, listen: str | None = None) -> Settings:
    """Return the settings of a service for the one dataset that a ``hedgerow.toml`` describes."""
    name = path.absolute().parent.name
    kept = name if NAME.fullmatch(name) else "data"
    return Settings(
        *address(listen or DEFAULT_LISTEN), path.absolute().parent / "hedgerow-service.sqlite", {kept: path.absolute()},
        workers=DEFAULT_WORKERS,
    )  # fmt: skip


def address(given: str) -> tuple[str, int]:
    """Return host and port of an address such as ``127.0.0.1:8470``."""
    host, mark, port = given.rpartition(":")
    if not mark or not port.isascii() or not port.isdigit() or int(port) > 65_535 or not host:
        raise InvalidInput(f"listen must be an address and a port. Found {given!r}. For example {DEFAULT_LISTEN!r}.")
    return host.strip("[]"), int(port)


def _file_of(name: str, given: Any) -> str:
    """Return the name of the file of a dataset, after a check of its keys."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"The name of a dataset must be letters, digits, '-' and '_', at most 64. Found {name!r}. Rename it."
        )
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"[datasets.{name}] must be a table. Found a value that is no table. Write file = … below it."
        )
    _require_keys(given, ("file", "approve_above", "approval_days", "head"), f"[datasets.{name}]")
    if "approval_days" in given and "approve_above" not in given:
        raise InvalidInput(
            f"approval_days must come with approve_above. Found it alone in [datasets.{name}]. Add approve_above."
        )
    return str(_of(given, "file", str, ""))


def _approval_rule(given: Mapping[str, Any]) -> ApprovalRule:
    return ApprovalRule(given["approve_above"], given.get("approval_days", ApprovalRule.days))


def _limits(content: Mapping[str, Any]) -> Limits:
    given = _table(content, "limits")
    _require_keys(given, tuple(each.name for each in fields(Limits)), "[limits]")
    return Limits(**given)


def _assistants(content: Mapping[str, Any]) -> str | None:
    if "assistants" not in content:
        return None
    given = _table(content, "assistants")
    _require_keys(given, ("purchases",), "[assistants]")
    return str(_of(given, "purchases", str, "none"))


def _sign_on(content: Mapping[str, Any]) -> ProxyRule | None:
    """Read the rule of a proxy that signs people on; None if there is none."""
    given = _table(content, "sign_on")
    if not given:
        return None
    _require_keys(given, ("header", "addresses"), "[sign_on]")
    header, addresses = _of(given, "header", str, ""), _of(given, "addresses", list, [])
    if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", header) or header.lower() in (
        "authorization",
        "host",
        "origin",
        "cookie",
    ):
        raise InvalidInput(
            f"sign_on.header must be a header that only the proxy sets. Found {header!r}. For example X-Forwarded-User."
        )
    try:
        networks = tuple(ipaddress.ip_network(each) for each in addresses)
    except (ValueError, TypeError):
        networks = ()
    if not networks or any(each.prefixlen == 0 for each in networks):
        raise InvalidInput(
            "sign_on.addresses must be the addresses of the proxy. Found none, all, or other text. For example "
            '["10.0.0.5"].'
        )
    return ProxyRule(header.lower(), networks)


def _hosts(content: Mapping[str, Any]) -> tuple[str, ...]:
    given = content.get("hosts", list(LOOPBACK_NAMES))
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
        raise InvalidInput('hosts must be a list of names. Found something else. For example ["data.example.org"].')
    return tuple(each.lower() for each in given)


def _path(content: Mapping[str, Any], name: str, folder: Path) -> Path | None:
    return folder / _of(content, name, str, "") if name in content else None


def _table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = content.get(name, {})
    if not isinstance(found, Mapping):
        raise InvalidInput(f"[{name}] must be a table. Found something else. Correct it.")
    return found


def _of(content: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    found = content.get(name, default)
    if not isinstance(found, kind):
        raise InvalidInput(f"{name} must be a {kind.__name__}. Found {found!r}. Correct it.")
    return found


def _require_keys(found: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in found:
        if name not in known:
            raise InvalidInput(
                f"{where} must have only {', '.join(known)}. Found {name!r}. Correct it, or take it out."
            )
