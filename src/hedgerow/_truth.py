"""Truth values as text: how Python and databases write them, and how people do."""

from __future__ import annotations

SPELLED = {"true": True, "false": False}
"""Text of each truth value, in lower case. This is how Python and every database write one, in any letter case."""
TRUE_WORDS = ("true", "t", "yes", "y")
FALSE_WORDS = ("false", "f", "no", "n")
"""Words that people write for them, which a ``Flag`` reads by default."""


def text_of_truth(value: bool) -> str:
    """Return the text of a truth value."""
    return next(text for text, truth in SPELLED.items() if truth == bool(value))
