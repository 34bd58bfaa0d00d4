"""Credentials come from the environment only. The file names them as ``${PGPASSWORD}``, and no output contains them."""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl, quote, unquote

from hedgerow.errors import InvalidInput

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SECRET = re.compile(r"pass|pwd|token|secret|key", re.IGNORECASE)  # names of URL parameters that hold secrets
_values: set[str] = set()  # values taken from the environment, which must not appear in any output


def expand(text: str, what: str) -> str:
    """Replace each ``${NAME}`` by its value in the environment. Inside a URL special characters are escaped."""
    whole = VARIABLE.fullmatch(text)

    def value(found: re.Match[str]) -> str:
        """Return the value of an environment variable, escaped if it stands in a URL."""
        name = found.group(1)
        given = os.environ.get(name)
        if given is None:
            raise InvalidInput(
                f"The environment must have {name}, which {what} names. Found no value. Set it, as in: export {name}=…"
            )
        escaped = given if whole or "://" not in text else quote(given, safe="")
        _values.update({given, escaped, *_parts(given)})
        return escaped

    return VARIABLE.sub(value, text)


def _parts(value: str) -> list[str]:
    """Return the user, password and parameters of a URL, because a driver that misreads it may quote a part."""
    _, mark, rest = value.partition("://")
    place, _, query = rest.partition("?")
    user = place.rpartition("@")[0]
    found = [*re.split("[:@/]", user), *(each for _, each in parse_qsl(query)), *re.split("[=&]", query)]
    return [*found, *map(unquote, found)] if mark else []


def redact(text: str) -> str:
    """Return a text without any value that came from the environment."""
    for value in sorted(_values, key=len, reverse=True):
        if len(value) > 3:  # shorter values occur inside ordinary words, and are no secrets
            text = text.replace(value, "***")
    return text


def require_no_secret(url: str, what: str) -> None:
    """Refuse a URL that contains a password, without repeating it."""
    scheme, mark, rest = VARIABLE.sub("", url).partition("://")
    if not mark or (scheme in ("sqlite", "duckdb") and "?" not in rest):
        return
    place, _, query = rest.partition("?")
    user, at, _ = place.rpartition("@")
    spelt = bool(at and user.partition(":")[2])
    spelt |= any(SECRET.search(name) and value for name, value in parse_qsl(query))
    if spelt:
        raise InvalidInput(
            f"{what} must not contain a password. Found one. Put it into the environment, and write "
            "'…://user:${PGPASSWORD}@host/…' in its place."
        )
