"""Bind a ledger to one table, one declaration and one version of the package.

The table is recognized by a keyed fingerprint: HMAC-SHA-256 of its content. Without the key the fingerprint says
nothing. With the key, somebody who knows all rows but one could test guesses of the last row. So the key belongs to the
owner. It is never stored in the ledger or beside it, but

    in the environment HEDGEROW_LEDGER_KEY, at least 64 hexadecimal digits, as services get their secrets or in a file
    of mode 0600, ``key_file()``: ~/.config/hedgerow/ledger.key unless HEDGEROW_LEDGER_KEY_FILE names
                         another; it is made with the first ledger and serves all ledgers

Each ledger has a random name that enters its fingerprint, so that two ledgers do not reveal whether their tables are
the same.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import secret
from hedgerow.serialize import dumps

KEY, KEY_FILE = "HEDGEROW_LEDGER_KEY", "HEDGEROW_LEDGER_KEY_FILE"
FIRST_FIT = "1"  # the fit of ledgers that note none
LEAST = 32  # the least number of bytes of a key


@dataclass(frozen=True)
class Binding:
    """The table and the declaration that a ledger belongs to.

    ``fingerprint`` returns the fingerprint of the table, which is as secret as the table. It is None for a session
    without its table, which can charge nothing. ``options`` are the options
    with which the session is opened, by name, as public texts. ``fit`` is the version of the rule by which the engine
    fits its hypothesis to the entries.
    """

    fingerprint: Callable[[], str] | None = field(repr=False)
    options: Mapping[str, str]
    fit: str = FIRST_FIT


def comparable_options(**options: Any) -> dict[str, str]:
    """Return options as texts that can be compared: serialized if possible, otherwise as Python shows them."""
    return {name: _text(value) for name, value in options.items()}


def _text(value: Any) -> str:
    """Serialize one option."""
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    try:
        return dumps(value)
    except InvalidInput:  # for example a loss that the caller wrote
        return repr(value)


def version_now() -> str:
    """Return the installed version of the package, or "unknown"."""
    try:
        return version("hedgerow")
    except PackageNotFoundError:
        return "unknown"


def key_file() -> Path:
    """Return the path of the owner's key."""
    named = os.environ.get(KEY_FILE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "hedgerow" / "ledger.key"


def bound_record(binding: Binding) -> dict[str, str]:
    """Return a new ledger's record of its table: a random name, an identifier of the key, and the fingerprint."""
    if binding.fingerprint is None:
        raise InvalidInput("A new ledger must be opened on its table. Found no table. Open the session on the table.")
    name, key = secret(16).hex(), _key(make=True)
    return {"name": name, "key": _which(key), "table": _fingerprint(key, name, binding.fingerprint())}


def require_same(record: Mapping[str, Any], options: Mapping[str, str], wrote: str, binding: Binding) -> None:
    """Refuse another declaration, version, key or table than the ledger's, in this order.

    Only the last check reads the table.

    The refusal reveals one bit about the table to the person who opens it. This is the owner, who has the table anyway.
    """
    differing = [name for name in {**options, **binding.options} if options.get(name) != binding.options.get(name)]
    if differing:
        name = differing[0]
        raise InvalidInput(
            f"A ledger must be resumed as it was opened. Found another {name}: {_shorten(binding.options.get(name))}, "
            f"where it was {_shorten(options.get(name))}. Open it as before; another declaration needs a new ledger, "
            "whose budget adds to this one's."
        )
    if wrote != version_now():
        raise InvalidInput(
            "A ledger must be resumed by the version that wrote it, so that answers stay the same. Found hedgerow "
            f"{version_now()}, where it was {wrote}. Install that version, or call "
            "hedgerow.ledger.read(url).accept_version(): what was spent stays spent."
        )
    key = _key(make=False)
    if not hmac.compare_digest(str(record.get("key")), _which(key)):
        raise InvalidInput(
            "The key must be the one that the ledger was made with. Found another key. Put the owner's key into "
            f"{KEY} or {key_file()}."
        )
    if binding.fingerprint is None:
        return
    found = _fingerprint(key, str(record.get("name")), binding.fingerprint())
    if not hmac.compare_digest(str(record.get("table")), found):
        raise InvalidInput(
            "A ledger must be resumed on the table that it was opened on. Found another table. Open the first one; a "
            "table that has changed needs a new ledger, whose budget adds to this one's."
        )


def require_other(record: Mapping[str, Any], binding: Binding) -> None:
    """Refuse the table of another block, because a person in two blocks would lose the sum of what both blocks promise.

    The refusal is shown to the person who appends the block: the owner, who has both tables. It recognizes whole tables
    only.
    """
    if binding.fingerprint is None:
        return
    found = _fingerprint(_key(make=False), str(record.get("name")), binding.fingerprint())
    if hmac.compare_digest(str(record.get("table")), found):
        raise InvalidInput(
            "The rows of a block must not be those of another. Found a table that is already a block of the ledger. "
            "Append new rows only; to ask more about these rows, continue with their block."
        )


def _shorten(text: str | None) -> str:
    """Shorten the text of an option for a message."""
    return "nothing" if text is None else text if len(text) <= 60 else text[:60] + "…"


def _which(key: bytes) -> str:
    """Return a public identifier of a key."""
    return hmac.digest(key, b"which key", "sha256").hex()[:16]


def _fingerprint(key: bytes, name: str, content: str) -> str:
    """Return the fingerprint of a table's content under a key and a ledger's name."""
    return hmac.digest(key, f"table {name} {content}".encode(), "sha256").hex()


def _key(make: bool) -> bytes:
    """Return the owner's key. If there is none, make one or refuse."""
    given, path = os.environ.get(KEY), key_file()
    if given:
        return _read(given, KEY)
    if not path.exists():
        if not make:
            raise InvalidInput(
                f"The key of the ledger must exist. Found none. Put the owner's key into {KEY} or {path}."
            )
        _make(path)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise InvalidInput(
            f"Only its owner must be able to use the key file. Found that others may use {path}. chmod 600 it."
        )
    return _read(path.read_text(), str(path))


def _read(text: str, where: str) -> bytes:
    """Parse a key, and refuse one that is too short."""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) < LEAST:
        raise InvalidInput(
            f"The key in {where} must be at least {2 * LEAST} hexadecimal digits. Found another text. Restore "
            "the key. If no ledger needs it, remove it, and a new key is made."
        )
    return key


def _make(path: Path) -> None:
    """Make a key file, whole or not at all, and by one process only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partly = path.with_name(f"{path.name}.{secret(8).hex()}")
    file = os.open(partly, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.write(file, secret(LEAST).hex().encode())
        os.fsync(file)
    finally:
        os.close(file)
    try:
        os.link(partly, path)
    except FileExistsError:  # another process was first, and its key is used
        pass
    finally:
        partly.unlink()


def digest(text: str) -> str:
    """Return the SHA-256 hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
