"""The file of a registered dataset, in the form of ``hedgerow init``: its source, ledger, budget and universe.

The service writes it before anything is spent, and opens it at every start as it opens the files of its owner.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow._json import quote_text
from hedgerow.errors import InvalidInput
from hedgerow.universe.files import to_toml
from hedgerow.universe.universe import Universe

NAME = "hedgerow.toml"
LEDGER = "people.ledger"
NOTICE = "# A dataset that was registered with the service. All of it is public. Do not change it: the ledger is bound to it.\n\n"


def desk_text(
    source: Mapping[str, Any], universe: Mapping[str, Any], budget: Mapping[str, Any], draft: Mapping[str, float], reserve: float
) -> str:  # fmt: skip
    """Return the text of the file, and refuse one that would not be read as it was meant."""
    found: dict[str, Any] = {
        "source": source["source"],
        **({"table": source["table"]} if source.get("table") else {}),
        "ledger": f"sqlite:///{LEDGER}",
        **({"csv": dict(source["csv"])} if source.get("csv") else {}),
        "budget": dict(budget),
        **({"draft": dict(draft)} if any(draft.values()) else {}),
        "practical": {"reserve": reserve},
    }
    lines = [f"{name} = {_value(value)}" for name, value in found.items() if not isinstance(value, dict)]
    for name, value in found.items():
        if isinstance(value, dict):
            lines += ["", f"[{name}]", *(f"{key} = {_value(each)}" for key, each in value.items())]
    text = NOTICE + "\n".join(lines) + "\n\n" + to_toml(universe, "universe")
    _require_same(text, found, universe)
    return text


def block_text(block: Mapping[str, Any]) -> str:
    """Return the text that notes an appended block."""
    text = "\n".join(["", "", "[[blocks]]", *(f"{name} = {_value(value)}" for name, value in block.items()), ""])
    if _read(text).get("blocks") != [block]:
        raise _not_held()
    return text


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there, readable by its owner alone, to the disk."""
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())


def add_to(path: Path, text: str) -> None:
    """Append text to a file, completely or not at all."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    write_new(beside, path.read_text(encoding="utf-8").rstrip() + text)
    os.replace(beside, path)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return quote_text(value) if isinstance(value, str) else repr(value)


def _require_same(text: str, found: Mapping[str, Any], universe: Mapping[str, Any]) -> None:
    again = _read(text)
    columns = again.pop("universe", {})
    if again != found or Universe.from_json(columns) != Universe.from_json(universe):
        raise _not_held()


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.encode().decode())
    except ValueError:
        raise _not_held() from None


def _not_held() -> InvalidInput:
    return InvalidInput(
        f"Names, paths and labels must be texts that {NAME} can hold. Found others. Rename them, without control "
        "characters."
    )
