"""Protect objects that must exist once and in one process only: accounts, open guard rounds and sources of noise.

A fork copies all of them. Each copy of an account could be spent in full, and all copies of an open round would compare
with the same secret threshold. So these objects refuse to work in a fork. A fork is recognized in two ways: by a token
that every fork renews, because a process number can be reused; and by the process number, because a library can fork
without telling Python.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Self

from hedgerow.errors import InvalidInput

_token = object()


def _renew() -> None:
    """Renew the token in a forked process."""
    global _token
    _token = object()


if hasattr(os, "register_at_fork"):  # platforms without it cannot fork
    os.register_at_fork(after_in_child=_renew)


class ProcessGuard:
    """The process in which the object was made."""

    __slots__ = ("_number", "_token")

    def __init__(self) -> None:
        self._token, self._number = _token, os.getpid()

    def require(self, name: str, instead: str) -> None:
        """Refuse to go on in another process, before any private value is read.

        ``name`` and ``instead`` are the start and the end of the error message.
        """
        if self._token is not _token or self._number != os.getpid():
            raise InvalidInput(f"{name} must be used in the process that made it. Found a fork of it. {instead}")


class NotCopyable:
    """Base of objects that cannot be duplicated: a copy is the original itself, and pickling is refused.

    An account that can be copied could be spent twice, and a round that can be copied could be compared twice.
    """

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise InvalidInput(
            f"A {type(self).__name__} must stay in its process. Found an attempt to pickle it. Pass its answers "
            "instead."
        )


class OwnersLock:
    """The lock of an account. It can be taken only in the process that made the account, by one thread at a time."""

    def __init__(self) -> None:
        self._home, self._lock = ProcessGuard(), threading.RLock()

    def __enter__(self) -> None:
        # Check the process before the lock: in a fork the lock may be held by a thread that does not exist there.
        self._home.require("An account", "Ask there, and pass on the answers.")
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()

    def share(self, other: OwnersLock) -> None:
        """Become one lock with another, so that threads take turns in both together."""
        self._lock = other._lock
