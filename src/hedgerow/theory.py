"""The theory profile: textbook private multiplicative weights, online or offline, with the guarantee of the theorem.

Every answer is within 3α of the data, all at once, with probability 1 − β (see ``pmw``). At small n this says little;
the practical profile makes every other choice for accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.hypothesis import Hypothesis
from hedgerow.linear import Linear, marginal_cells
from hedgerow.mwem import MWEMConfig, MWEMRelease
from hedgerow.pmw import OnlinePMW

Source = Literal["hypothesis", "measured"]


class Theory:
    """Online PMW behind the interface that a session asks."""

    def __init__(self, pmw: OnlinePMW) -> None:
        self._pmw = pmw

    @property
    def hypothesis(self) -> Hypothesis:
        return self._pmw.hypothesis

    @property
    def rows(self) -> float:
        return self._pmw.config.scale

    def answer(self, query: Linear, within: float | None) -> tuple[float, float | None, Source]:
        self._require_reach(within)
        answer = self._pmw.ask(query)
        return answer.value, self._pmw.config.error, answer.source

    def answer_free(self, queries: Sequence[Linear]) -> None:
        """None: each answer may teach the hypothesis what the next one uses, so they are asked one by one."""

    def marginal(
        self, names: tuple[str, ...], within: float | None
    ) -> tuple[NDArray[np.float64], float | None, Source]:
        """Cell by cell: each is a count of its own."""
        self._require_reach(within)
        universe = self.hypothesis.universe
        answers = [self._pmw.ask(cell) for cell in marginal_cells(universe, names)]
        values = np.array([answer.value for answer in answers]).reshape(universe.sizes(names))
        source: Source = "measured" if any(a.source == "measured" for a in answers) else "hypothesis"
        return values, self._pmw.config.error, source

    def _require_reach(self, within: float | None) -> None:
        if within is not None and within < self._pmw.config.error:
            raise InvalidInput(
                f"within must be at least 3·alpha = {self._pmw.config.error:.4g} in the theory profile. Found {within:g}. "
                'Open the session with profile="practical", or with a smaller alpha.'
            )


class Offline:
    """A hypothesis released all at once (``mwem``): within 3α on its workload, with no promise elsewhere."""

    def __init__(self, released: MWEMRelease, config: MWEMConfig, workload: Sequence[Linear]) -> None:
        self.hypothesis, self.rows, self._error = released.hypothesis, config.scale, config.error
        self._promised = {query.key for query in workload} if released.stopped else set()

    def answer(self, query: Linear, within: float | None) -> tuple[float, float | None, Source]:
        error = self._error if query.key in self._promised else None
        if within is not None and (error is None or error > within):
            raise BudgetExceeded(
                f"within must be at least what the release promises ({'nothing' if error is None else f'{error:.4g}'}). "
                f"Found {within:g}, and the whole budget is spent. Open a session instead."
            )
        return self.hypothesis.answer(query), error, "hypothesis"

    def answer_free(self, queries: Sequence[Linear]) -> list[tuple[float, float | None]]:
        return [self.answer(query, None)[:2] for query in queries]

    def marginal(
        self, names: tuple[str, ...], within: float | None
    ) -> tuple[NDArray[np.float64], float | None, Source]:
        errors = [self.answer(cell, within)[1] for cell in marginal_cells(self.hypothesis.universe, names)]
        error = None if None in errors else self._error
        return self.hypothesis.marginal(names), error, "hypothesis"
