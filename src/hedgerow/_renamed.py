"""Names of earlier versions, which keep working through one release.

An old name warns once in a process with ``DeprecationWarning`` and says the new one. Another spelling of a name
(``neighbors`` for ``neighbours``) works without a warning. Type checkers know the present names alone.

>>> @renamed_parameters(who="analyst")
... def charge(*, analyst=""): ...
>>> __getattr__ = renamed_names(__name__, {"Typed": "TrustSchema"})
>>> @renamed_methods(over="select_blocks")
... class Session: ...
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hedgerow.errors import InvalidInput

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

warned: set[str] = set()
"""Old names that this process has been warned of."""


def warn_once(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn of an old name when it is first used."""
    if old not in warned:
        warnings.warn(f"{old} is now {new}. The old name goes with the next release.", DeprecationWarning, stacklevel)
        warned.add(old)


def renamed_parameters(*, spelling: bool = False, **new_names: str) -> Callable[[F], F]:
    """Let a function take keyword arguments under old names too.

    Parameters
    ----------
    spelling : bool
        True for another spelling of the same name, which is not warned of.
    **new_names : str
        The present name of each parameter, by its old name.
    """

    def decorate(function: F) -> F:
        """Return the function with its former parameter names, which warn unless they are only spelled otherwise."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            """Call the function with former names replaced by present ones."""
            for old, new in new_names.items():
                if old in kwargs:
                    if new in kwargs:
                        raise InvalidInput(f"{new} must be given once. Found {old} too. Leave {old} out.")
                    if not spelling:
                        called = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
                        warn_once(f"{called}({old}=)", f"{new}=")
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        call.new_names = {**getattr(function, "new_names", {}), **({} if spelling else new_names)}  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def renamed_arguments(*, spelling: bool = False, **new_names: str) -> Callable[[C], C]:
    """Let the constructor of a class take keyword arguments under old names too."""

    def decorate(cls: C) -> C:
        cls.__init__ = renamed_parameters(spelling=spelling, **new_names)(cls.__init__)  # type: ignore[misc]
        return cls

    return decorate


def renamed_methods(*, spelling: bool = False, **new_names: str) -> Callable[[C], C]:
    """Give the methods and properties of a class their old names too."""

    def decorate(cls: C) -> C:
        for old, new in new_names.items():
            setattr(cls, old, _Renamed(None if spelling else f"{cls.__name__}.{old}", new))
        return cls

    return decorate


class _Renamed:
    """A member of a class under its old name."""

    def __init__(self, old: str | None, new: str) -> None:
        self._old, self._new = old, new
        self.__doc__ = f"The former name of ``{new}``."

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:  # classes are looked through without anybody using the name
            return self
        if self._old is not None:
            warn_once(self._old, self._new)
        return getattr(instance, self._new)


def renamed_names(module: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that finds what was renamed under its old name."""

    def find(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_once(f"{module}.{name}", new_names[name])
        return getattr(sys.modules[module], new_names[name])

    return find
