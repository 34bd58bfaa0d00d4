"""An adversarial assistant that knows every row but one, and asks thousands of adaptive questions about that row.

The last row is in one of two cells. Each question is a count of cells of which exactly one is such a cell, so its
answer less the known rows is 1 or 0. One answer with noise tells little; the script asks many times, follows the
questions that seemed to tell most, and averages. It also buys what it can.

The same script asks three tools: those of ``hedgerow.assistants``, a plain tool that adds fresh noise to every answer
and has no budget, and a read-only database. Only the first one promises anything about the number of questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from hedgerow.assistants.arguments import Schema
from hedgerow.assistants.asking import read_question
from hedgerow.assistants.desk import AssistantDesk, PurchaseRule
from hedgerow.assistants.toolbox import call_tool, tools_of
from hedgerow.data import HistogramSource
from hedgerow.errors import HedgerowError
from hedgerow.opening import open as open_session
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.query.linear import as_linear
from hedgerow.universe.universe import Universe

CLAIM = Budget(1.0, 1e-6)
U = Universe.from_sizes({"a": 4, "b": 5})
ROWS = 500
CANDIDATES = ((0, 0), (3, 4))  # the cells in which the last row may be
BATCH = 200
FRESH_EPSILON = 0.1  # of each answer of the plain tool


def _known_rows() -> np.ndarray[Any, Any]:
    cells = np.arange(U.size)
    counts = (5 + (29 * cells) % 31).reshape(U.shape)
    counts[1, 1] += ROWS - 1 - counts.sum()
    return np.asarray(counts)


KNOWN = _known_rows()


def table_with(cell: tuple[int, int]) -> HistogramSource:
    """Return the known rows with the last one in this cell."""
    counts = KNOWN.copy()
    counts[cell] += 1
    return HistogramSource(U, counts)


PAIR = (table_with(CANDIDATES[0]), table_with(CANDIDATES[1]))


class CountTool(Protocol):
    """A tool that counts rows for an assistant."""

    def ask(self, questions: Sequence[str]) -> list[tuple[float, float]]:
        """Return each count as a fraction of the rows, and its bar; 1 where the tool has none."""
        ...

    def buy(self, question: str, within: float) -> tuple[float, float] | None:
        """Return a more exact answer, or None if nothing is sold."""
        ...


class HedgerowTools:
    """The tools of ``hedgerow.assistants`` over a session, half of whose budget may be spent on purchases.

    ``calls`` are all calls with what the assistant read, so that a transcript can be repeated by another way.
    """

    def __init__(self, data: HistogramSource, *, records: bool = False) -> None:
        self.session = open_session(data, universe=U, budget=CLAIM, reserve=0.5, guard=0.0)
        self.desk = AssistantDesk(self.session, purchases=PurchaseRule("assistant", needs_approval=False))
        self.calls: list[tuple[str, Schema, dict[str, Any]]] | None = [] if records else None

    def ask(self, questions: Sequence[str]) -> list[tuple[float, float]]:
        """Return values and bars."""
        found = self.call("ask", {"questions": list(questions)})
        return [(each["value"], each["bar"]) for each in found["answers"]]

    def buy(self, question: str, within: float) -> tuple[float, float] | None:
        """Return the answer, or None if it was refused."""
        try:
            found = self.call("buy", {"question": question, "within": within})["answer"]
        except HedgerowError:
            return None
        return found["value"], found["bar"]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool, and keep what it gave."""
        data = call_tool(self.desk, name, arguments).data
        if self.calls is not None:
            self.calls.append((name, arguments, data))
        return data

    def names(self) -> list[str]:
        """Return the names of the tools."""
        return [tool.name for tool in tools_of(self.desk)]


class FreshNoiseTool:
    """A plain tool: Laplace noise on every answer, drawn anew, and nobody adds up what that costs."""

    def __init__(self, data: HistogramSource) -> None:
        self._database, self._noise = ReadOnlyDatabase(data), Noise()

    def ask(self, questions: Sequence[str]) -> list[tuple[float, float]]:
        """Return noisy fractions without bars."""
        true = np.array([value * ROWS for value, _ in self._database.ask(questions)])
        receipt = Accountant(Budget(FRESH_EPSILON, 0.0)).charge(
            Laplace(1.0, 1 / FRESH_EPSILON)
        )  # too little: one for all
        return [(float(value) / ROWS, 1.0) for value in self._noise.add(true, receipt)]

    def buy(self, question: str, within: float) -> None:
        """Sell nothing."""


class ReadOnlyDatabase:
    """A database that counts exactly."""

    def __init__(self, data: HistogramSource) -> None:
        self._data = data
        self._known: dict[str, float] = {}

    def ask(self, questions: Sequence[str]) -> list[tuple[float, float]]:
        """Return exact fractions."""
        for each in questions:
            if each not in self._known:
                self._known[each] = _true_rows(self._data, each) / ROWS
        return [(self._known[each], 1.0) for each in questions]

    def buy(self, question: str, within: float) -> None:
        """Sell nothing."""


def _true_rows(data: HistogramSource, question: str) -> float:
    query = as_linear(read_question(question).on(data.universe))
    assert query is not None
    return float(query.dot(data.marginal(query.attributes)))


@dataclass(frozen=True)
class CellSet:
    """A product of values of a and of b, of which exactly one candidate is a member."""

    a: frozenset[int]
    b: frozenset[int]

    @property
    def question(self) -> str:
        """The count of its cells, as an assistant writes it."""
        return f"count(a={_set_words(self.a)}, b={_set_words(self.b)})"

    @property
    def known(self) -> float:
        """The known rows in it."""
        return float(KNOWN[np.ix_(sorted(self.a), sorted(self.b))].sum())

    @property
    def side(self) -> int:
        """1 if the first candidate is a member, -1 if the second is, and 0 if the question tells nothing."""
        first, second = ((a in self.a and b in self.b) for a, b in CANDIDATES)
        return int(first) - int(second)


def _set_words(values: frozenset[int]) -> str:
    return "{" + ", ".join(map(str, sorted(values))) + "}"


@dataclass(frozen=True)
class Adversary:
    """The script.

    ``evidence`` has, for each answer, 1/2 in favor of the first candidate and -1/2 of the second, and noise.
    """

    rng: np.random.Generator
    evidence: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    bought: list[float] = field(default_factory=list)

    def attack(self, tool: CountTool, questions: int) -> tuple[float, ...]:
        """Ask this number of questions, and return the statistics that distinguish runs. Positive means the first."""
        best: list[CellSet] = []
        for start in range(0, questions, BATCH):
            size = min(BATCH, questions - start)
            asked = [self._near(best) if best and i % 2 else self._random() for i in range(size)]
            found = tool.ask([each.question for each in asked])
            told = [self._read(each, *answer) for each, answer in zip(asked, found, strict=True)]
            lead = 1 if sum(self.evidence) >= 0 else -1
            ranked = sorted(zip(told, range(size), strict=True), key=lambda pair: -lead * pair[0])
            best = [asked[i] for _, i in ranked[:20]]  # follow what seemed to tell most
            if start // BATCH % 10 == 0:
                self._spend(tool, best[0])
        together = float(np.average(self.evidence, weights=self.weights))
        plain = float(np.mean(self.evidence))
        return together, plain, float(np.mean(self.bought)) if self.bought else together

    def _read(self, asked: CellSet, value: float, bar: float) -> float:
        told = asked.side * (value * ROWS - asked.known - 0.5)
        self.evidence.append(told)
        self.weights.append(1 / max(bar, 1e-9) ** 2)
        return told

    def _spend(self, tool: CountTool, asked: CellSet) -> None:
        """Buy the most exact answer that is still sold."""
        for within in np.geomspace(0.01, 0.3, 20).tolist():
            found = tool.buy(asked.question, within)
            if found is not None:
                self.bought.append(self._read(asked, *found))
                return

    def _random(self) -> CellSet:
        while True:
            a, b = (frozenset(np.flatnonzero(self.rng.random(size) < 0.5).tolist()) for size in U.shape)
            found = CellSet(a, b)
            if a and b and found.side:
                return found

    def _near(self, best: Sequence[CellSet]) -> CellSet:
        """Return a neighbour of a question that told much, or the question itself again."""
        one = best[int(self.rng.integers(len(best)))]
        if self.rng.random() < 0.3:
            return one
        place = int(self.rng.integers(sum(U.shape)))
        found = CellSet(one.a ^ {place}, one.b) if place < U.shape[0] else CellSet(one.a, one.b ^ {place - U.shape[0]})
        return found if found.a and found.b and found.side else one
