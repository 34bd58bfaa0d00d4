"""Sources that may be registered: files below configured folders, tables of configured databases, and uploads.

    roots       a path is walked component by component without following any link, so that it cannot lead out
    databases   are named; their addresses are in the service's file, so that nobody can make the service connect
    elsewhere uploads     are known by their number, which is given to the person who sent them

Whoever may write into a root decides what its tables are. The place is checked again before every opening.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hedgerow.data.csv_file import Csv
from hedgerow.data.readers import file_of_url
from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import secret
from hedgerow.server.registration_rule import RegistrationRule

SUFFIXES = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz")
LISTED = 1_000  # files of a root that are listed
VISITED = 100_000  # names that are looked at for the list; any file may be named
DEEPEST = 8  # folders below a root
LONGEST = 1_000  # characters of a path
PATTERN = set("*?[$")  # characters by which a path would be read as a pattern, or as the name of a secret
BLOCK = 1 << 20
FILE_DATABASES = ("sqlite", "duckdb")
POSTGRES_PORT = 5432
KEY_FILE, KEY_BYTES = ".key", 32


class Source(msgspec.Struct, forbid_unknown_fields=True):
    """A source by the names of the service's file: a root and a path, a database and a table, or an upload.

    The rest is the format of a text file. ``header`` has the names of the columns of a file whose first line has none.
    """

    root: str = ""
    path: str = ""
    database: str = ""
    table: str = ""
    upload: str = ""
    delimiter: str = ""
    encoding: str = ""
    header: list[str] | None = None

    def csv(self) -> Csv | None:
        """Return the format of a text file, or None if it is the usual one."""
        given: dict[str, Any] = {
            name: value
            for name, value in (("delimiter", self.delimiter), ("encoding", self.encoding), ("columns", self.header))
            if value
        }
        return Csv(**given) if given else None


@dataclass(frozen=True)
class Place:
    """A source as it is opened: ``source`` is a path, or the address of a database with the names of its secrets."""

    source: str
    table: str | None = None

    @property
    def path(self) -> Path | None:
        """The path of a file, or None for a database."""
        return None if self.table is not None else Path(self.source)


class SourceList:
    """The sources of a rule. ``expand`` fills secrets into the address of a database."""

    def __init__(self, rule: RegistrationRule, expand: Callable[[str, str], str]) -> None:
        self._rule, self._expand = rule, expand

    def files(self, root: str) -> list[str]:
        """List the tables of a root by their paths. Links and hidden files are left out."""
        found = []
        for path in _walk(self._root(root)):
            found.append(path)
            if len(found) >= LISTED:
                break
        return sorted(found)

    def find(self, source: Source, upload: Callable[[str], Path]) -> Place:
        """Return the place of a source. ``upload`` returns the path of an uploaded file."""
        named = [name for name in ("root", "database", "upload") if getattr(source, name)]
        if len(named) != 1:
            raise InvalidInput(
                "A source must be a file of a root, a table of a database, or an upload. Found "
                f"{' and '.join(named) or 'none'}. Name one."
            )
        if source.database:
            return self._table(source)
        if source.table:
            raise InvalidInput("table must come with a database. Found it without one. Leave it out.")
        path = upload(source.upload) if source.upload else self.file(source.root, source.path)
        if source.csv() is not None and kind_of(path.name) == ".parquet":
            raise InvalidInput(
                "delimiter, encoding and header must come with a text file. Found them with Parquet. Leave them out."
            )
        return Place(str(path))

    def file(self, root: str, given: str) -> Path:
        """Return the path of a file of a root.

        Nothing but a plain file below it, without any link on the way, is one.
        """
        base, parts = self._root(root), _parts(given)
        if parts is None or kind_of(parts[-1]) is None or not _is_plain(base, parts):
            raise no_file()
        return base.joinpath(*parts)

    def require_unmoved(self, place: Place) -> None:
        """Refuse a file of a root to which a link leads by now."""
        path = place.path
        if path is None:
            return
        for base in (root.resolve() for root in self._rule.roots.values()):
            if path.is_relative_to(base):
                if not _is_plain(base, path.relative_to(base).parts):
                    raise no_file()
                return
        if path.is_symlink() or not path.is_file():
            raise no_file()

    def locate(self, place: Place) -> str:
        """Return a path or an address with its secrets, which is never shown."""
        return place.source if place.table is None else self._expand(place.source, "the address of a database")

    def _root(self, name: str) -> Path:
        if name not in self._rule.roots:
            raise InvalidInput(
                "root must be a name that the service's file lists. Found another name. GET /v1/sources lists them."
            )
        return self._rule.roots[name].resolve()

    def _table(self, source: Source) -> Place:
        """Return the place of a table in a database that the service lists."""
        if source.database not in self._rule.databases:
            raise InvalidInput(
                "database must be a name that the service's file lists. Found another name. GET /v1/sources lists them."
            )
        if not source.table or len(source.table) > 200 or not source.table.isprintable() or source.csv() is not None:
            raise InvalidInput(
                "A database must come with the name of a table, and without the format of a text file. Found other "
                "fields. Correct them."
            )
        return Place(self._rule.databases[source.database], source.table)


def no_file() -> InvalidInput:
    """Return the one refusal of paths that lead nowhere, out of their root, over a link, or to another kind of file."""
    return InvalidInput(
        "path must be a CSV or Parquet file below its root, without a link on the way. Found another path. GET "
        "/v1/sources lists the files."
    )


def kind_of(name: str) -> str | None:
    """Return the suffix by which a file is read, or None if it is not read."""
    return next((suffix for suffix in reversed(SUFFIXES) if name.lower().endswith(suffix)), None)


def _parts(given: str) -> tuple[str, ...] | None:
    """Return the components of a relative path, or None if the path may not be used."""
    if not given or len(given) > LONGEST or "\0" in given or "\\" in given or given.startswith("/"):
        return None
    parts = PurePosixPath(given).parts
    is_usable = 0 < len(parts) <= DEEPEST + 1 and not any(part.startswith(".") or set(part) & PATTERN for part in parts)
    return parts if is_usable else None


def _is_plain(base: Path, parts: tuple[str, ...]) -> bool:
    """Return True if the path leads to a plain file through plain folders. No link is followed."""
    opened: list[int] = []
    try:
        opened.append(os.open(base, os.O_RDONLY | os.O_DIRECTORY))
        for part in parts[:-1]:
            opened.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
        found = os.stat(parts[-1], dir_fd=opened[-1], follow_symlinks=False)
        return stat.S_ISREG(found.st_mode)
    except (OSError, ValueError):
        return False
    finally:
        for each in opened:
            os.close(each)


def _walk(base: Path) -> Iterator[str]:
    """Yield the paths of tables below a folder, without following links."""
    seen = 0
    for folder, folders, files in os.walk(base, followlinks=False):
        seen += len(files) + len(folders)
        if seen > VISITED:
            return
        here = Path(folder).relative_to(base)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if len(here.parts) < DEEPEST else []
        for name in sorted(files):
            path = Path(folder, name)
            is_shown = _parts((here / name).as_posix()) is not None and name.isprintable() and kind_of(name) is not None
            if is_shown and not path.is_symlink() and path.is_file():
                yield (here / name).as_posix()


def _name_of_table(address: str, table: str) -> str:
    """Return one name for all spellings of a table: of its database's address, and of its own name.

    A table of another schema or with capitals of its own may have the name of another one. It is then refused, not
    counted anew.
    """
    scheme = address.partition("://")[0].partition("+")[0].lower()
    name = table.strip().casefold()
    if scheme in FILE_DATABASES:
        return f"{scheme} {os.path.realpath(file_of_url(address))} {name}"
    parts = urlsplit(address)
    scheme = "postgresql" if scheme == "postgres" else scheme
    port = parts.port or (POSTGRES_PORT if scheme == "postgresql" else "")
    name = name.removeprefix("public.") if scheme == "postgresql" else name
    return f"{scheme} {parts.hostname} {port} {parts.path.strip('/').lower()} {name}"


class Marks:
    """The marks of a table: keyed digests of its place or content, which reveal nothing without the key."""

    def __init__(self, folder: Path) -> None:
        path = folder / KEY_FILE
        if not path.exists():
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                os.write(file, secret(KEY_BYTES))
                os.fsync(file)
            finally:
                os.close(file)
        self._key = path.read_bytes()
        if len(self._key) != KEY_BYTES:  # a crash while it was written
            raise InvalidInput(
                f"{KEY_FILE} beside the registered datasets must have {KEY_BYTES} bytes. Found another number. "
                "Restore it, or delete it if nothing was registered yet."
            )

    def of(self, place: Place) -> tuple[str, ...]:
        """Return the marks of a table: of the file's content and place, or of the database and the table's name."""
        if place.table is not None:
            return (self._mark(f"table {_name_of_table(place.source, place.table)}".encode()),)
        path = Path(place.source)
        digest = hashlib.sha256()
        try:
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    digest.update(block)
        except OSError:
            raise no_file() from None
        return self._mark(b"content " + digest.digest()), self._mark(b"place " + os.fsencode(path.resolve()))

    def _mark(self, text: bytes) -> str:
        return hmac.digest(self._key, text, "sha256").hex()
