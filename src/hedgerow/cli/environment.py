"""Credentials: from the environment alone, named in the file as ``${PGPASSWORD}``, and in nothing that is written or shown."""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl, quote, unquote

from hedgerow.errors import InvalidInput

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SECRET = re.compile(r"pass|pwd|token|secret|key", re.IGNORECASE)  # names of what a URL should not spell out
_values: set[str] = set()


def expanded(text: str, what: str) -> str:
    """With what the environment has for each ``${NAME}``; inside a URL its special characters are escaped."""
    whole = VARIABLE.fullmatch(text)

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        given = os.environ.get(name)
        if given is None:
            raise InvalidInput(
                f"The environment must have {name}, which {what} names. Found none. Set it, as in: export {name}=…"
            )
        escaped = given if whole or "://" not in text else quote(given, safe="")
        _values.update({given, escaped, *_parts(given)})
        return escaped

    return VARIABLE.sub(value, text)


def _parts(value: str) -> list[str]:
    """What a whole URL holds besides its place: a driver that misreads it may quote a part."""
    _, mark, rest = value.partition("://")
    place, _, query = rest.partition("?")
    user = place.rpartition("@")[0]
    found = [*re.split("[:@/]", user), *(each for _, each in parse_qsl(query)), *re.split("[=&]", query)]
    return [*found, *map(unquote, found)] if mark else []


def redacted(text: str) -> str:
    """Without anything that came from the environment."""
    for value in sorted(_values, key=len, reverse=True):
        if len(value) > 3:  # shorter ones are in every other word, and no secrets
            text = text.replace(value, "***")
    return text


def require_no_secret(url: str, what: str) -> None:
    """Refuse a password that is spelt out, without repeating it."""
    scheme, mark, rest = VARIABLE.sub("", url).partition("://")
    if not mark or (scheme in ("sqlite", "duckdb") and "?" not in rest):
        return
    place, _, query = rest.partition("?")
    user, at, _ = place.rpartition("@")
    spelt = bool(at and user.partition(":")[2])
    spelt |= any(SECRET.search(name) and value for name, value in parse_qsl(query))
    if spelt:
        raise InvalidInput(
            f"{what} must not spell out a password. Found one. Put it into the environment, and write "
            "'…://user:${PGPASSWORD}@host/…' in its place."
        )
