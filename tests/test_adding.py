"""A new loss and a new question take one class and one line each: both are defined here, and pass every contract.

The loss is ``LogCosh``, registered by its decorator; the question is the mean square of an attribute, offered by a call. No other part of
the package knows them.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow import losses, unsafe
from hedgerow.convex.losses.loss import LOSSES
from hedgerow.convex.minimize import bound_convex
from hedgerow.convex.solver.public_minimum import minimize_over
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import QUESTIONS, Query, bound
from hedgerow.query.parse import question
from hedgerow.query.ratios import BoundMean, bound_mean
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics import MAKERS, STATISTICS, OfRecords, about, offer
from hedgerow.serialize import dumps, loads

TESTS = Path(__file__).parent


# The loss: its class, and the line that registers it


@LOSSES.add
@dataclass(frozen=True)
class LogCosh(losses.Loss):
    """The loss ln cosh(z − y): squared near 0, absolute far from it."""

    @property
    def smoothness(self) -> float:
        """sup φ″ = 1, at z = y."""
        return 1.0

    def value(self, z: Any, y: Any) -> Any:
        """Return ln cosh(z − y)."""
        return np.logaddexp(z - y, y - z) - np.log(2.0)

    def slopes(self, z: Any, y: Any, tolerance: float = 0.0) -> tuple[Any, Any]:
        """Return tanh(z − y) as both slopes."""
        return (slope := np.tanh(z - y)), slope

    def curvature(self, z: Any, y: Any) -> Any:
        """Return 1 − tanh²(z − y)."""
        return 1 - np.tanh(z - y) ** 2


# The question: its class, its function, and the line that offers both


@dataclass(frozen=True, eq=False, repr=False)
class MeanSquare(OfRecords):
    """The mean of x², made by ``mean_square``."""

    attribute: str
    where: Query | None = None

    def on(self, universe: hr.Universe, resolution: Any = "values") -> BoundMean:
        """Bind the mean of the squares, between those of the ends of every cell."""
        part = bound_mean("A mean square", universe, self.attribute, self.where, resolution)
        ends = np.stack([part.lowest**2, part.highest**2])
        crosses = (part.lowest < 0) & (part.highest > 0)
        return about(part, np.where(crosses, 0.0, ends.min(axis=0)), ends.max(axis=0))

    def true_value(self, rows: RawRows) -> float:
        """Return the mean square of the values themselves."""
        return float((rows.values(self.attribute, self.where) ** 2).mean())


def mean_square(attribute: str, where: Query | None = None) -> Query:
    """Ask for the mean square of an attribute."""
    return MeanSquare(attribute, where)


offer(MeanSquare, mean_square)


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """Other tests hold the package's own lists against each other."""
    yield
    LOSSES.discard(LogCosh)
    STATISTICS.discard(MeanSquare)
    QUESTIONS.discard(MeanSquare)
    del MAKERS["mean_square"]


UNIVERSE = hr.Universe(age=hr.Range(20, 80, bins=6), smoker=hr.Flag(), visits=hr.Integers(0, 5))
LOSS = LogCosh(target="visits", features=["age", "smoker"])
ASKED = hr.minimize(LOSS, hr.L2Ball(2.0))


def people(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(6)
    age = rng.uniform(20, 80, rows)
    return pd.DataFrame({"age": age, "smoker": rng.random(rows) < 0.3, "visits": np.minimum(5, rng.poisson(age / 30))})


FRAME = people(20_000)


@pytest.fixture(scope="module")
def session() -> hr.Session:
    return hr.open(FRAME, universe=UNIVERSE, budget=hr.Budget(2.0, 1e-6), reserve=0.3, seed=5, progress=False)


def contracts(file: str, argument: str, like: type) -> dict[str, Callable[..., None]]:
    """Every test of a file that is run over all things of one kind, or over those that are like this one, by name."""
    spec = importlib.util.spec_from_file_location(f"contract_of_{argument}", TESTS / file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {
        name: function
        for name, function in vars(module).items()
        if name.startswith("test_")
        for mark in getattr(function, "pytestmark", ())
        if mark.args[0] == argument and any(isinstance(each, like) for each in mark.args[1])
    }


OF_LOSSES = contracts("convex/test_losses.py", "loss", losses.Huber)


@pytest.mark.parametrize("name", OF_LOSSES)
def test_the_loss_meets_the_contract_of_every_loss(name: str) -> None:
    test = OF_LOSSES[name]
    given: dict[str, Any] = {"loss": LogCosh()}
    if "rng" in inspect.signature(test).parameters:
        given["rng"] = np.random.default_rng(8)
    others = {mark.args[0]: mark.args[1] for mark in test.pytestmark if mark.args[0] != "loss"}  # type: ignore[attr-defined]
    for values in itertools.product(*others.values()):
        test(**given, **dict(zip(others, values, strict=True)))


def test_a_wrong_loss_breaks_the_contract() -> None:
    @dataclass(frozen=True)
    class Wrong(LogCosh):
        def slopes(self, z: Any, y: Any, tolerance: float = 0.0) -> tuple[Any, Any]:
            return (slope := np.tanh(z - y) / 2), slope

    assert len(OF_LOSSES) >= 5
    with pytest.raises(AssertionError):
        OF_LOSSES["test_the_derivative_is_the_slope_of_the_value"](Wrong(), np.random.default_rng(8))


def test_a_question_about_the_loss_is_stored_and_is_the_same_when_it_comes_back() -> None:
    text = dumps(ASKED)
    assert loads(text) == ASKED and dumps(loads(text)) == text and '"LogCosh"' in text
    same = dataclasses.replace(LOSS, features=("smoker", "age"))
    assert bound(hr.minimize(LOSS, hr.L2Ball(2.0)), UNIVERSE).key == bound(ASKED, UNIVERSE).key
    assert bound(hr.minimize(same, hr.L2Ball(2.0)), UNIVERSE).key != bound(ASKED, UNIVERSE).key  # another order of θ


def test_the_solver_certifies_its_minimum_of_the_loss() -> None:
    (asked,) = bound_convex([ASKED], UNIVERSE)
    counts = np.random.default_rng(1).integers(1, 50, asked.shape).astype(float)
    found = minimize_over(asked.risk, counts, asked.over, 1e-8)
    objective = asked.risk.objective(counts)
    assert 0 <= found.gap <= 1e-8 * counts.sum()
    around = np.random.default_rng(2).normal(size=(300, found.theta.size))
    around *= (2.0 * np.random.default_rng(3).random(300) / np.linalg.norm(around, axis=1))[:, None]
    assert min(objective.value(theta) for theta in around) >= found.value - found.gap


def test_a_session_answers_the_loss_within_its_bar_and_sells_a_narrower_one(session: hr.Session) -> None:
    said = session.ask(ASKED)
    assert said.cost == 0 and said.error is not None
    assert unsafe.unsafe_excess_risk(FRAME, ASKED, said.value, UNIVERSE) <= said.error
    price = session.price(ASKED, within=said.error / 4)
    assert price > 0
    bought = session.ask(ASKED, within=said.error / 4)
    assert bought.cost > 0 and bought.error is not None and bought.error <= said.error
    assert unsafe.unsafe_excess_risk(FRAME, ASKED, bought.value, UNIVERSE) <= bought.error
    assert session.ask(ASKED).source == "repeat"


def test_an_erm_solver_takes_the_loss() -> None:
    X, y = FRAME[["age"]].to_numpy() / 80, FRAME["visits"].to_numpy() / 5
    theta = hr.erm.noisy_sgd(X, y, loss=LogCosh(), over=hr.L2Ball(1.0), budget=hr.Budget(1.0, 1e-6), seed=1).theta
    assert np.linalg.norm(theta) <= 1 + 1e-9 and np.log(np.cosh(X @ theta - y)).mean() < np.log(np.cosh(y)).mean()


def test_a_loss_that_is_not_registered_is_refused() -> None:
    @dataclass(frozen=True)
    class Analysts(LogCosh):
        pass

    with pytest.raises(InvalidInput, match=r"loss must be one of hedgerow\.losses"):
        hr.minimize(Analysts(target="visits", features=["age"]), hr.L2Ball(2.0))


QUERIES = [
    mean_square("age"),
    mean_square("visits", where=hr.count(smoker=True)),
    mean_square("age", hr.count(visits=(1, 3))),
]


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_the_question_is_stored_written_bound_and_compared_as_every_other(query: Query) -> None:
    assert loads(dumps(query)) == query and '"kind":"mean_square"' in dumps(query)
    where = "" if query.where is None else f", where={query.where!r}"
    assert question(f"mean_square({query.attribute!r}{where})") == query and hash(query) == hash(loads(dumps(query)))
    assert bound(query, UNIVERSE).key == bound(loads(dumps(query)), UNIVERSE).key
    keys = [bound(each, UNIVERSE).key for each in QUERIES]
    assert all(a != b for a, b in itertools.combinations(keys, 2))
    assert bound(query, UNIVERSE).stored == (query, "values")


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_a_session_answers_the_question_within_its_bar_prices_it_and_repeats_it(
    session: hr.Session, query: Query
) -> None:
    said, truth = session.ask(query), unsafe.unsafe_answer(FRAME, query, UNIVERSE)
    assert said.error is not None and abs(said.value - truth) <= said.error
    assert said.resolution <= said.error
    assert session.price(query, within=2 * said.error) == 0.0
    again = session.ask(query)
    assert (again.value, again.source, again.cost) == (said.value, "repeat", 0.0)
    assert session.ask_all([query])[0].value == said.value
    assert query in [answer.query for answer in session.report().answers]


def test_the_question_is_asked_of_every_group(session: hr.Session) -> None:
    from hedgerow.query.statistics import GroupedQuestion

    grouped = GroupedQuestion(("smoker",), mean_square("visits"))
    said, truth = session.ask(grouped), unsafe.unsafe_answer(FRAME, grouped, UNIVERSE)
    assert said.value.shape == (2,) and (np.abs(said.value - truth) <= said.error).all()


def test_a_question_that_is_not_offered_is_refused() -> None:
    class Analysts(MeanSquare):
        pass

    with pytest.raises(InvalidInput, match="A question must be made by"):
        bound(Analysts("age"), UNIVERSE)
