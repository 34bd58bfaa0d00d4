"""Flags: true or false, by the words that mean either."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow._truth import FALSE_WORDS, TRUE_WORDS
from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes.attribute import BLANKS, Attribute, values_with_extras, with_extras


@dataclass(frozen=True, init=False, repr=False)
class Flag(Attribute):
    """A yes/no column.

    A value is True if it is one of true, t, yes, y and 1, or one of the words in ``true``; blanks and case are ignored.
    Any other value is False. With ``other=True`` any other value goes to an extra cell, unless it is one of false, f,
    no, n and 0, or one of the words in ``false``. Booleans, and the texts true and false, are always recognized.

    Parameters
    ----------
    true, false
        A word or number, or a list of these, instead of the usual words.
    other : bool
        Add a cell for values that are neither.
    missing : bool
        Add a cell for missing values.

    Raises
    ------
    InvalidInput
        If a word is listed as both true and false.

    Example
    -------
    >>> hr.Flag(true="ja", false="nein").labels
    (False, True)
    """

    true: tuple[Any, ...] = (*TRUE_WORDS, 1)
    false: tuple[Any, ...] = (*FALSE_WORDS, 0)

    def __init__(self, true: Any = None, false: Any = None, *, other: bool = False, missing: bool = False) -> None:
        words = _words("true", true, Flag.true), _words("false", false, Flag.false)
        both = {_word(word) for word in words[0]} & {_word(word) for word in words[1]}
        if both and true is not None and false is not None:
            raise InvalidInput(
                f"The words of a Flag must be either true or false. Found {min(both)!r} in both. Remove one."
            )
        # a word that the user lists overrules the usual meaning
        yes = tuple(word for word in words[0] if true is not None or _word(word) not in both)
        no = tuple(word for word in words[1] if false is not None or _word(word) not in both)
        values = values_with_extras(np.array([0.0, 1.0]), missing, other)
        super().__init__(with_extras((False, True), missing, other), values, other, False, missing)
        object.__setattr__(self, "true", yes)
        object.__setattr__(self, "false", no)

    @property
    def value_type(self) -> type:
        """The type of True and False."""
        return bool

    @property
    def is_number(self) -> bool:
        """True: a model uses 0 and 1."""
        return True

    @property
    def is_truth(self) -> bool:
        """True: a flag is a condition by itself."""
        return True

    @property
    def scale(self) -> tuple[float, float]:
        """0 and 1: the numbers of a flag are used as they are."""
        return 0.0, 1.0

    def read_literal(self, value: Any) -> Any:
        """Return True for 1, False for 0, and other literals as they are."""
        return bool(value) if not isinstance(value, bool) and value in (0, 1) else super().read_literal(value)

    def _likely_value(self, value: Any) -> str:
        for truth, words in ((True, self.true), (False, self.false)):
            if _word(value) in map(_word, (*words, truth)):
                return f" Did you mean {truth}?"
        return super()._likely_value(value)


def _word(given: Any) -> str:
    return str(given).strip(BLANKS).casefold()


def _words(which: str, given: Any, usual: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the words given for one side of a flag, or the usual ones."""
    if given is None:
        return usual
    words = (given,) if isinstance(given, str | int | float) else tuple(given) if isinstance(given, Iterable) else ()
    if not words or not all(isinstance(word, str | int | float) and not isinstance(word, bool) for word in words):
        raise InvalidInput(
            f"{which} must be a word or a number, or a list of these. Found {given!r}. For example Flag(true='ja', "
            "false='nein')."
        )
    return words
