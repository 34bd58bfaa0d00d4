"""What can go wrong, said from public facts alone.

Every message reads "X must be Y. Found Z. Do W." and depends on parameters, schema and budget only, never on rows.
"""

from __future__ import annotations


class HedgerowError(Exception):
    """Anything hedgerow refuses to do. Nothing was spent and nothing was lost."""


class InvalidInput(HedgerowError, ValueError):
    """A question, parameter or schema that does not make sense."""


class BudgetExceeded(HedgerowError):
    """The answer would cost more privacy than is left. Decided before the data are touched."""


class TooLarge(HedgerowError):
    """An array of a publicly known size would not fit the memory limit."""


class DataUnavailable(HedgerowError):
    """The table could not be read. The engine's own message is withheld, for it may quote rows."""


class NotPrivateWarning(UserWarning):
    """Randomness is repeatable: for tests and simulations only, never for real data."""
