"""The part of a service's file about registration: folders and databases that tables may come from, and uploads.

    [registration]
    folder = "registered"                     # files and ledgers of registered datasets, and tables that were uploaded
    upload = 100_000_000                      # bytes of an uploaded file; default: 0, none may be uploaded
    unpacked = 1_000_000_000                  # bytes of its content

    [registration.roots]
    clinic = "/srv/tables"                    # files in this folder may be registered

    [registration.databases]
    warehouse = "postgresql://reader:${PGPASSWORD}@db.internal/clinic"

Nothing else can be registered: a request names a root and a path in it, or a database and a table, never an address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedgerow.errors import InvalidInput

KEYS = ("folder", "upload", "unpacked", "roots", "databases")
SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
LARGEST = 10**12  # bytes that a limit may allow


@dataclass(frozen=True)
class RegistrationRule:
    """The sources that owners may register, and the limits of uploads. Without ``upload`` there are none."""

    folder: Path
    roots: Mapping[str, Path] = field(default_factory=dict)
    databases: Mapping[str, str] = field(
        default_factory=dict, repr=False
    )  # with the names of secrets, never their values
    upload: int = 0
    unpacked: int = 1_000_000_000

    def __post_init__(self) -> None:
        for name, least in (("upload", 0), ("unpacked", 1)):
            found = getattr(self, name)
            if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= LARGEST:
                raise InvalidInput(
                    f"registration.{name} must be a whole number of bytes from {least} to {LARGEST}. Found {found!r}. "
                    "Correct it."
                )
        for name in (*self.roots, *self.databases):
            if not SOURCE_NAME.fullmatch(name):
                raise InvalidInput(
                    f"The name of a source must be up to 64 letters, digits, '-' and '_'. Found {name!r}. Rename it."
                )
        for name, root in self.roots.items():
            if self.folder.resolve().is_relative_to(root.resolve()) or root.resolve().is_relative_to(
                self.folder.resolve()
            ):
                raise InvalidInput(
                    f"registration.folder must be apart from the roots. Found it and the root {name!r} within each "
                    "other. Name another folder."
                )


def read_rule(given: Any, folder: Path) -> RegistrationRule:
    """Read the table [registration] of a service's file, whose paths are relative to ``folder``."""
    content = _table(given, "registration")
    for key in content:
        if key not in KEYS:
            raise InvalidInput(
                f"[registration] must have only {', '.join(KEYS)}. Found {key!r}. Correct it, or take it out."
            )
    place = content.get("folder")
    if not isinstance(place, str) or not place:
        raise InvalidInput(
            'registration.folder must be a path. Found none. For example folder = "registered", which is made if needed.'
        )
    limits = {name: content[name] for name in ("upload", "unpacked") if name in content}
    return RegistrationRule(
        folder / place,
        {name: folder / path for name, path in _texts(content, "roots").items()},
        _texts(content, "databases"),
        **limits,
    )


def _texts(content: Mapping[str, Any], name: str) -> dict[str, str]:
    found = _table(content.get(name, {}), f"registration.{name}")
    for key, value in found.items():
        if not isinstance(value, str) or not value:
            raise InvalidInput(f"registration.{name}.{key} must be a text. Found another value. Correct it.")
    return dict(found)


def _table(given: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"[{name}] must be a table. Found something else. Correct it.")
    return given
