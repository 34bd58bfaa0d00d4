"""The rows of each person in arrays: at most k of them are kept, by the rule of ``data.contributions``.

The choice depends on the person's own rows alone. The hash needs no secret: privacy holds for any rule that looks at
one person only (docs/proofs/people.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hedgerow._types import Array, Matrix
from hedgerow.data.contributions import kept_rows as kept_by_hash
from hedgerow.data.contributions import person_of
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Payer
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Ledger

Whose = Sequence[Any] | NDArray[Any]


def payer_of_units(payer: Payer, rows_per_unit: int | None) -> tuple[Payer, int]:
    """Return the payer for whole persons, and the number of rows of each person that are kept."""
    if isinstance(payer, Budget):
        promised = payer.per_unit(rows_per_unit)
        return promised, promised.rows_per_unit
    ledger = payer if isinstance(payer, Ledger) else getattr(payer, "ledger", None)
    budget = getattr(ledger, "budget", None)
    if not isinstance(budget, Budget) or budget.per_unit(rows_per_unit) != budget:
        raise InvalidInput(
            "The account that pays for persons must have the same rows_per_unit in its budget. Found another "
            "number. Open the account with Budget(…, 'add-remove', rows_per_unit=…)."
        )
    return payer, budget.rows_per_unit


def kept_rows(X: Matrix, y: Array, unit: Whose, most: int) -> NDArray[np.intp]:
    """Return the numbers of the rows that are kept, in order."""
    owners = persons(unit)
    if len(owners) != y.size:
        raise InvalidInput("unit must have one value for each row of X. Found a different number. Match the lengths.")
    return np.array(kept_by_hash(owners, [content.hex() for content in _contents(X, y)], most), np.intp)


def persons(unit: Whose) -> list[bytes]:
    """Return the person of each row, which does not depend on other values.

    A whole number names the same person as an int and as a float. All rows without a value belong to one person.
    """
    given = unit.to_numpy() if hasattr(unit, "to_numpy") else unit
    if not isinstance(given, np.ndarray):
        # keep values unchanged: with a type of numpy's choice, one value could convert the others
        given = np.fromiter(given, dtype=object)
    if given.ndim != 1 or given.dtype.kind not in "iufOUSb":
        raise InvalidInput(
            f"unit must be one number or text for each row. Found an array of {given.dtype} with {given.ndim} axes. "
            "Convert it."
        )
    return [person_of(value) for value in given.tolist()]


def _contents(X: Matrix, y: Array) -> list[bytes]:
    """Return the bytes of each row and its label."""
    labels = np.asarray(y, np.float64)
    if not sp.issparse(X):
        return [row.tobytes() + label.tobytes() for row, label in zip(np.asarray(X, np.float64), labels, strict=True)]
    rows = sp.csr_array(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    ends = rows.indptr
    return [
        rows.indices[start:end].astype(np.int64).tobytes() + rows.data[start:end].tobytes() + label.tobytes()
        for start, end, label in zip(ends[:-1], ends[1:], labels, strict=True)
    ]
