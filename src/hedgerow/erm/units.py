"""Selection of the rows of each person, if a person may have several: at most k rows, chosen by a hash.

The rows of a person are ordered by a hash of the person, of the row, and of the number of equal rows of that person
seen so far. The first k rows are kept. So the selection depends only on the person's own rows. The hash needs no
secret: privacy holds for any rule that looks at one person only (docs/proofs/people.md).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hedgerow._types import Array, Matrix
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
            "The account that pays for persons must have the same rows_per_unit in its budget. Found another. Open "
            "it with Budget(…, 'add-remove', rows_per_unit=…)."
        )
    return payer, budget.rows_per_unit


def kept_rows(X: Matrix, y: Array, unit: Whose, most: int) -> NDArray[np.intp]:
    """Return the numbers of the rows that are kept, in order."""
    owners = persons(unit)
    if len(owners) != y.size:
        raise InvalidInput("unit must have one value for each row of X. Found a different number. Match the lengths.")
    seen: Counter[bytes] = Counter()
    marks: list[tuple[bytes, bytes, int]] = []
    for i, (owner, content) in enumerate(zip(owners, _contents(X, y), strict=True)):
        row = len(owner).to_bytes(8, "big") + owner + content
        seen[row] += 1
        marks.append((owner, hashlib.blake2b(row + seen[row].to_bytes(8, "big"), digest_size=32).digest(), i))
    taken: Counter[bytes] = Counter()
    stay = []
    for owner, _, i in sorted(marks):
        taken[owner] += 1
        if taken[owner] <= most:
            stay.append(i)
    return np.array(sorted(stay), np.intp)


def persons(unit: Whose) -> list[bytes]:
    """Return a text for each value that does not depend on other values.

    A whole number has the same text as an int and as a float. A missing value has an empty text.
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
    return [_text(value).strip().encode("utf-8", "replace") for value in given.tolist()]


def _text(value: Any) -> str:
    """Return the text of one value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    try:
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str.__str__(str(value))
    except Exception:  # an object whose conversion to text fails
        return "\0"


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
