"""What a ledger belongs to: one table, one declaration, one version of the package.

The table is recognised by a keyed fingerprint, HMAC-SHA-256 of its content. Without the key it says nothing; with the key, who knows
all rows but one could try out the last. So the key is never in the ledger, and never beside it: it is the owner's,

    in the environment   HEDGEROW_LEDGER_KEY, at least 64 hexadecimal digits, as services get their secrets
    or in a file         of mode 0600, ``key_file()``: ~/.config/hedgerow/ledger.key unless HEDGEROW_LEDGER_KEY_FILE names another;
                         it is made with the first ledger, and serves them all

Each ledger has a name of its own in its fingerprint, so that two ledgers do not tell whether their tables are one.
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
from hedgerow.questions.wire import dumps

KEY, KEY_FILE = "HEDGEROW_LEDGER_KEY", "HEDGEROW_LEDGER_KEY_FILE"
LEAST = 32  # bytes of a key


@dataclass(frozen=True)
class Binding:
    """``fingerprint``: of the table, as secret as the table. ``options``: how the session is opened, by name, as public texts."""

    fingerprint: Callable[[], str] = field(repr=False)
    options: Mapping[str, str]


def declared(**options: Any) -> dict[str, str]:
    """Options as texts to compare: by their form where they have one, else as Python shows them."""
    return {name: _text(value) for name, value in options.items()}


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    try:
        return dumps(value)
    except InvalidInput:  # a loss of one's own
        return repr(value)


def version_now() -> str:
    try:
        return version("hedgerow")
    except PackageNotFoundError:
        return "unknown"


def key_file() -> Path:
    """Where the owner's key is."""
    named = os.environ.get(KEY_FILE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "hedgerow" / "ledger.key"


def bound_record(binding: Binding) -> dict[str, str]:
    """What a new ledger writes down of its table: its own name, which key it is, and the fingerprint under both."""
    name, key = secret(16).hex(), _key(make=True)
    return {"name": name, "key": _which(key), "table": _fingerprint(key, name, binding.fingerprint())}


def require_same(record: Mapping[str, Any], options: Mapping[str, str], wrote: str, binding: Binding) -> None:
    """Refuse another declaration, version, key or table: in this order, the last from the table itself.

    That the table is another is one bit about it, told to who opens it: the owner, who has the table.
    """
    differing = [name for name in {**options, **binding.options} if options.get(name) != binding.options.get(name)]
    if differing:
        name = differing[0]
        raise InvalidInput(
            f"A ledger must be taken up as it was opened. Found another {name}: {_shown(binding.options.get(name))}, where it was "
            f"{_shown(options.get(name))}. Open it as before; another declaration needs a new ledger, with a budget to be added to this one's."
        )
    if wrote != version_now():
        raise InvalidInput(
            f"A ledger must be taken up by the version that wrote it, for answers to stay the same. Found hedgerow {version_now()}, where "
            f"it was {wrote}. Install that version, or say hedgerow.ledgers.read(url).accept_version(): what was spent stays spent."
        )
    key = _key(make=False)
    if not hmac.compare_digest(str(record.get("key")), _which(key)):
        raise InvalidInput(
            f"The key must be the one that the ledger was made with. Found another. Put the owner's key into {KEY} or {key_file()}."
        )
    found = _fingerprint(key, str(record.get("name")), binding.fingerprint())
    if not hmac.compare_digest(str(record.get("table")), found):
        raise InvalidInput(
            "A ledger must be taken up on the table that it was opened on. Found another. Open that table; a table that has changed "
            "needs a new ledger, with a budget to be added to this one's."
        )


def require_other(record: Mapping[str, Any], binding: Binding) -> None:
    """Refuse rows that another block has: a person in two blocks loses the sum of what both promise.

    It is told to who appends, the owner, who has both tables; and it finds whole tables only.
    """
    found = _fingerprint(_key(make=False), str(record.get("name")), binding.fingerprint())
    if hmac.compare_digest(str(record.get("table")), found):
        raise InvalidInput(
            "The rows of a block must not be those of another. Found a table that a block of the ledger has already. Append new rows "
            "alone; to ask again about these, go on with their block."
        )


def _shown(text: str | None) -> str:
    return "nothing" if text is None else text if len(text) <= 60 else text[:60] + "…"


def _which(key: bytes) -> str:
    return hmac.digest(key, b"which key", "sha256").hex()[:16]


def _fingerprint(key: bytes, name: str, content: str) -> str:
    return hmac.digest(key, f"table {name} {content}".encode(), "sha256").hex()


def _key(make: bool) -> bytes:
    given, path = os.environ.get(KEY), key_file()
    if given:
        return _read(given, KEY)
    if not path.exists():
        if not make:
            raise InvalidInput(
                f"The key of the ledger must be there. Found none. Put the owner's key into {KEY} or {path}."
            )
        _make(path)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise InvalidInput(f"The key file must be its owner's alone. Found that others may use {path}. chmod 600 it.")
    return _read(path.read_text(), str(path))


def _read(text: str, where: str) -> bytes:
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) < LEAST:
        raise InvalidInput(
            f"The key in {where} must be at least {2 * LEAST} hexadecimal digits. Found something else. "
            "Restore it, or remove it to have one made for new ledgers."
        )
    return key


def _make(path: Path) -> None:
    """Whole or not at all, and by one process only."""
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
    except FileExistsError:  # another process was first, and its key is the one
        pass
    finally:
        partly.unlink()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
