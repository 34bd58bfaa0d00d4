"""The configuration file of a service.

    listen = "127.0.0.1:8470"
    registry = "hedgerow-service.sqlite"

    [datasets.people]
    file = "people/hedgerow.toml"             # the table, universe, budget and ledger, as `hedgerow init` drafts it

    [limits]
    questions = 10_000                        # questions in one batch

Paths are relative to the file's folder. docs/service.md has every key.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hedgerow.errors import InvalidInput

DEFAULT_LISTEN = "127.0.0.1:8470"
KEYS = ("listen", "hosts", "registry", "certificate", "key", "behind_proxy", "prefix", "datasets", "limits")
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
    waiting: int = 1_000  # requests that wait for one dataset
    waiting_of_one: int = 200  # of these, requests of one person

    def __post_init__(self) -> None:
        for each in fields(self):
            found = getattr(self, each.name)
            if isinstance(found, bool) or not isinstance(found, int | float) or not found > 0:
                raise InvalidInput(f"limits.{each.name} must be a number above 0. Found {found!r}. Correct it.")


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
    limits: Limits = field(default_factory=Limits)

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
        if self.prefix and not re.fullmatch(r"(/[A-Za-z0-9_-]+)+", self.prefix):
            raise InvalidInput(f"prefix must be a path such as '/hedgerow'. Found {self.prefix!r}. Correct it.")


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
    datasets = _table(content, "datasets")
    if not datasets:
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
        limits=_limits(content),
    )


def settings_of_desk(path: Path, listen: str | None = None) -> Settings:
    """Return the settings of a service for the one dataset that a ``hedgerow.toml`` describes."""
    name = path.absolute().parent.name
    kept = name if NAME.fullmatch(name) else "data"
    return Settings(
        *address(listen or DEFAULT_LISTEN), path.absolute().parent / "hedgerow-service.sqlite", {kept: path.absolute()}
    )


def address(given: str) -> tuple[str, int]:
    """Return host and port of an address such as ``127.0.0.1:8470``."""
    host, mark, port = given.rpartition(":")
    if not mark or not port.isascii() or not port.isdigit() or int(port) > 65_535 or not host:
        raise InvalidInput(f"listen must be an address and a port. Found {given!r}. For example {DEFAULT_LISTEN!r}.")
    return host.strip("[]"), int(port)


def _file_of(name: str, given: Any) -> str:
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"The name of a dataset must be letters, digits, '-' and '_', at most 64. Found {name!r}. Rename it."
        )
    if not isinstance(given, Mapping):
        raise InvalidInput(f"[datasets.{name}] must be a table. Found something else. Write file = … below it.")
    _require_keys(given, ("file",), f"[datasets.{name}]")
    return str(_of(given, "file", str, ""))


def _limits(content: Mapping[str, Any]) -> Limits:
    given = _table(content, "limits")
    _require_keys(given, tuple(each.name for each in fields(Limits)), "[limits]")
    return Limits(**given)


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
