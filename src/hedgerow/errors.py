"""Exceptions and warnings. Their messages depend on public facts only.

Every message reads "X must be Y. Found Z. Do W." It depends on parameters, schema and budget, never on rows.
"""

from __future__ import annotations


class HedgerowError(Exception):
    """Base class of everything that hedgerow refuses to do. Nothing was spent and nothing was lost."""


class InvalidInput(HedgerowError, ValueError):
    """A question, parameter or schema that does not make sense."""


class BudgetExceeded(HedgerowError):
    """The answer would cost more privacy than is left. The refusal is decided before the data are read."""


class TooLarge(HedgerowError):
    """An array of publicly known size would exceed the memory limit."""


class DataUnavailable(HedgerowError):
    """The table could not be read. The message of the data engine is hidden, because it may quote rows."""


class InvalidRelease(InvalidInput):
    """A release file is damaged, was changed, is not signed by the key, or is larger than the limit."""


class LedgerUnavailable(HedgerowError):
    """The ledger cannot be read or written at the moment, so nothing was released. Earlier charges stay spent."""


class LedgerBroken(HedgerowError):
    """The ledger differs from what was written: a line was changed, removed, moved or cut off."""


class NotPrivateWarning(UserWarning):
    """The noise is repeatable: use it for tests and simulations only, never for real data."""


class PublicWarning(UserWarning):
    """A budget or a universe that is probably a mistake, judged by public facts and never by rows."""


class FitChangedWarning(UserWarning):
    """A ledger was begun with another fit: recorded answers repeat, and new ones follow the fit of this version."""


class UnaccountedWarning(UserWarning):
    """Several models were fitted, each with its own budget: no ledger adds up what they spend together."""
