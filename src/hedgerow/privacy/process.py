"""What belongs to one process, and of which there is one only: accounts, open rounds, sources of noise.

A fork copies all of them. Each copy of an account could be spent in full, and all copies of an open round compare with
one secret threshold, so a fork is refused. It is recognised by a token that every fork renews, for the number of a process
may come back, and by that number, for a library may fork without telling Python.
"""

from __future__ import annotations

import os
from typing import Any, Self

from hedgerow.errors import InvalidInput

_token = object()


def _renew() -> None:
    global _token
    _token = object()


if hasattr(os, "register_at_fork"):  # else there is no fork
    os.register_at_fork(after_in_child=_renew)


class Home:
    """The process in which it was made."""

    __slots__ = ("_number", "_token")

    def __init__(self) -> None:
        self._token, self._number = _token, os.getpid()

    def require(self, name: str, instead: str) -> None:
        """Refuse, before anything private is consulted, to go on in another process."""
        if self._token is not _token or self._number != os.getpid():
            raise InvalidInput(f"{name} must be used in the process that made it. Found a fork of it. {instead}")


class OneOnly:
    """A copy is the original itself, and there is no pickle: what can be copied could be spent, or compared, twice."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise InvalidInput(
            f"A {type(self).__name__} must stay in its process. Found an attempt to pickle it. Pass its answers instead."
        )
