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


class LedgerUnavailable(HedgerowError):
    """The ledger could not be read or written now, so nothing was released. What was charged before stays spent."""


class LedgerBroken(HedgerowError):
    """The ledger is not what was written: a line was changed, removed, moved or cut off."""


class NotPrivateWarning(UserWarning):
    """Randomness is repeatable: for tests and simulations only, never for real data."""


class PublicWarning(UserWarning):
    """A budget or a universe that is unlikely to be meant: said from public facts, never from rows."""


class UnaccountedWarning(UserWarning):
    """Several models were fitted, each with a budget of its own: what they spend together is nobody's account."""
