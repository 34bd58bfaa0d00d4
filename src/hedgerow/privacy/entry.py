"""Entries of a ledger: what was paid for, why, and what was released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from hedgerow.privacy.events import Event, Exponential, FlippedRows, Gaussian, Laplace, Planned, Repeated

WRITTEN_DOWN = (Laplace, Gaussian, Exponential, Repeated, FlippedRows, Planned)
"""Events that release exactly what is drawn, so that a ledger can return the recorded values instead of drawing again.
"""


@final
@dataclass(frozen=True, eq=False)
class Entry:
    """One entry of a ledger: the events that were paid for, the reason, and the released values. Entries are public.

    - ``about``: details of ``why``, for the code that resumes the session.
    - ``asked``: the question that caused the charge, or None.
    - ``kept``: True if the ledger records the drawn values.
    - ``released``: the drawn values, in order. Where ``kept`` is False, the value that was computed from them, if any.
    - ``private``: False if the noise came from a seed.
    """

    number: int
    events: tuple[Event, ...]
    cost: float
    why: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    asked: Any = None
    kept: bool = True
    released: tuple[Any, ...] = ()
    private: bool = True

    @property
    def event(self) -> Event:
        """The only event, or the first of several."""
        return self.events[0]

    @property
    def releases(self) -> int:
        """The number of values to release: one per draw, or one in all where the drawn values are not kept."""
        return sum(1 for event in self.events for _ in event.draws) if self.kept else 1

    @property
    def is_complete(self) -> bool:
        """True if all values that were paid for are recorded, or if the ledger does not keep them."""
        return not self.kept or len(self.released) == self.releases

    @property
    def is_readable(self) -> bool:
        """True if a receipt can return all values again.

        Guard rounds, samples, values that are not kept and values that were never drawn cannot be returned again.
        """
        return self.kept and self.is_complete and all(isinstance(event, WRITTEN_DOWN) for event in self.events)
