"""Whole sessions on two neighbouring tables: given the same released history, nothing that can be seen of them differs.

A session on one table is written down, every draw of it too. Then the same analyst works on a neighbour, with noise that gives
the same released values, choices and outcomes of comparisons again. What is left to differ is a leak: answers, bars, costs, errors
with their context and the locals of their tracebacks, warnings, logs, prints, files, shapes, types, order. The analyst is adaptive:
each question follows from all that was seen before (``Transcript.choice``).
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from awkward_values import AWKWARD
from coded_rows import coded_rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from observing import Conditioned, History, Transcript, first_difference

import hedgerow as hr
from hedgerow import opening
from hedgerow.data import HistogramSource
from hedgerow.data.source import DataSource
from hedgerow.engine.practical.engine import PracticalEngine
from hedgerow.engine.practical.measure import purchases
from hedgerow.privacy.noise import Noise
from hedgerow.session import Session

UNIVERSE = hr.Universe(a=hr.Integers(0, 3), b=hr.Flag(), c=hr.Categories(["x", "y"], other=True))
TEXTS = [value for value in AWKWARD if isinstance(value, str) and "\0" not in value and len(value) < 2000]
Row = tuple[Any, Any, Any]

FIRST = 20  # rows that all tables have

# The tables


def rows_of(n: int, seed: int, last: Row) -> list[Row]:
    """n rows that follow from the seed, the last of them given."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 4, n), rng.random(n) < 0.3, rng.choice(["x", "y", "z"], n)
    others = [*zip(a.tolist(), b.tolist(), c.tolist(), strict=True)][:-1]
    return [*others, last]


def as_histogram(rows: list[Row], folder: Path) -> Any:
    return many(1)(rows, folder)


def many(copies: int) -> Callable[[list[Row], Path], Any]:
    """A table that has each of the first rows so often."""

    def made(rows: list[Row], folder: Path) -> Any:
        cells = coded_rows(as_frame(rows, folder), UNIVERSE)
        counts = np.zeros(UNIVERSE.shape, np.int64)
        np.add.at(counts, tuple(cells.T), 1)
        np.add.at(counts, tuple(cells[:FIRST].T), copies - 1)
        return HistogramSource(UNIVERSE, counts)

    return made


def as_frame(rows: list[Row], folder: Path) -> Any:
    """Each column of the type that pandas makes of its values, which one row may change."""
    columns = dict(zip("abc", map(list, zip(*rows, strict=True)), strict=True))
    try:
        return pd.DataFrame(columns)
    except Exception:
        return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})


def as_text(value: Any) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else str(value)


def as_csv(rows: list[Row], folder: Path) -> Any:
    path = folder / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("a", "b", "c"), *(map(as_text, row) for row in rows)])
    return path


def as_parquet(rows: list[Row], folder: Path) -> Any:
    path = folder / "table.parquet"
    columns = {name: pa.array([as_text(row[i]) for row in rows], pa.string()) for i, name in enumerate("abc")}
    pq.write_table(pa.table(columns), path)
    return path


SOURCES = {
    "histogram": as_histogram,
    "large": many(10**4),
    "huge": many(10**9),
    "frame": as_frame,
    "csv": as_csv,
    "parquet": as_parquet,
}

# The analyst


def steep(theta: Any, records: Any) -> Any:
    return 0.5 * (theta[0] - records["a"] / 3) ** 2


def steepness(theta: Any, records: Any) -> Any:
    return (theta[0] - records["a"] / 3)[:, None]


OWN = hr.losses.Custom(steep, steepness, ("a",), 1, lipschitz=2.0, smoothness=1.0)
WORDS = hr.losses.Custom(steep, steepness, ("a",), 1, lipschitz=3.0)  # nobody vouches for it
FEATURES: dict[str, Any] = {"target": "b", "features": ["a"]}
CONVEX = [
    hr.minimize(hr.losses.Logistic(**FEATURES), hr.L2Ball(2.0)),
    hr.minimize(hr.losses.Squared(target="a", features=["b"], onehot=["c"]), hr.Box(-1.0, 1.0)),
    hr.minimize(hr.losses.Pinball(0.3, target="a"), hr.Box(-1.0, 1.0)),
    hr.minimize(hr.losses.Hinge(**FEATURES), hr.L1Ball(1.0)),
    hr.minimize(hr.losses.Huber(0.2, target="a", features=["b"]), hr.Unconstrained()),
    hr.minimize(hr.losses.Poisson(2.0, target="a", features=["b"]), hr.L2Ball(1.0)),
    hr.minimize(hr.losses.MultinomialLogistic(target="c", features=["b"]), hr.L2Ball(1.0)),
    hr.minimize(OWN, hr.Box(-1.0, 1.0)),
    hr.minimize(WORDS, hr.Box(-1.0, 1.0)),
]
LINEAR = [
    hr.count(a=0),
    hr.count(a=(1, 2), b=True),
    hr.any_of(hr.count(c="x"), hr.count(c=hr.OTHER)),
    hr.threshold("a", 1),
    hr.interval("a", 1, 3),
    hr.linear(("a", "c"), np.linspace(0, 1, 12).reshape(4, 3)),
    hr.mean("a"),
    hr.mean("a", where=hr.count(b=True)),
    hr.marginal("a"),
    hr.marginal("b", "c"),
]
STATISTICS = [
    hr.median("a"),
    hr.quantile("a", 0.9, where=hr.count(b=True) | hr.count(c="x")),
    hr.variance("a"),
    hr.total("a", where=hr.count(c="y")),
    hr.correlation("a", "b"),
    hr.share(hr.count(b=True), where=hr.count(a=(1, 2))),
    hr.ratio(hr.count(a=0), hr.count(c="x")),
    hr.difference(hr.count(a=0), hr.count(b=True)),
    hr.difference(hr.mean("a"), hr.mean("a", where=hr.count(c="x"))),
    hr.group_by("c").mean("a"),
    hr.histogram("a", where=hr.count(b=False)),
    hr.top("a", 2),
]
BAD: list[Any] = [
    hr.count(nobody=1),
    hr.count(c="no such label"),
    hr.count(a=np.array([True, False])),
    hr.linear(("a",), [1.0, 2.0]),
    hr.mean("c"),
    hr.marginal("a", "a"),
    hr.minimize(hr.losses.Logistic(target="nobody", features=["a"]), hr.L2Ball(1.0)),
    hr.minimize(hr.losses.Squared(target="a", features=["b"]), hr.Simplex()),
    "a text",
    None,
]
WITHIN = [0.5, 0.1, 0.02, 1e-3, 1.0]
BAD_WITHIN = [0.0, 2.0, float("nan"), "much", True]


class Analyst:
    """Asks what follows from all that was seen."""

    def __init__(self, seen: Transcript, noise: Noise, rows: list[Row], folder: Path) -> None:
        self.seen, self.noise, self.rows, self.folder = seen, noise, rows, folder
        self.session: Session | None = None
        self.source: Any = None

    def pick(self, among: list[Any]) -> Any:
        return among[self.seen.choice(len(among))]

    def act(self, name: str) -> None:
        work = getattr(self, name)()
        # whoever calls hr.erm holds the arrays, and has them in frames of their own
        self.seen.watch(name, work, hidden=self.source, frames=name != "erm")
        self.seen.watch("the account", lambda: (repr(self.session), self.session.spent, self.session.remaining))

    # Each gives what is then watched

    def counts(self) -> Callable[[], Any]:
        question, scale = self.pick(LINEAR), self.pick(["fraction", "rows"])
        return lambda: self.session.ask(question, scale=scale)

    def buying(self) -> Callable[[], Any]:
        question, within, scale = self.pick(LINEAR), self.pick(WITHIN), self.pick(["fraction", "rows"])
        return lambda: self.session.ask(question, within=within, scale=scale)

    def bought(self) -> Callable[[], Any]:
        """A purchase, whatever was seen before: the reserve must be most of the budget."""
        question = self.pick([hr.count(a=0), hr.threshold("a", 1), hr.interval("a", 1, 3)])
        return lambda: self.session.ask(question, within=0.8 * self.session.ask(question).error)

    def convex(self) -> Callable[[], Any]:
        question, scale = self.pick(CONVEX), self.pick(["fraction", "rows"])
        return lambda: self.session.ask(question, scale=scale)

    def buying_convex(self) -> Callable[[], Any]:
        question, within = self.pick(CONVEX), self.pick([1.0, 0.7, 0.5, 0.02])
        return lambda: self.session.ask(question, within=within)

    def refused(self) -> Callable[[], Any]:
        question, within, scale = self.pick(BAD + LINEAR), self.pick(BAD_WITHIN), self.pick(["fraction", "percent"])
        return lambda: self.session.ask(question, within=within, scale=scale)

    def bad_question(self) -> Callable[[], Any]:
        question = self.pick(BAD)
        return lambda: self.session.ask(question)

    def batch(self) -> Callable[[], Any]:
        questions = [self.pick(LINEAR + CONVEX[:3]) for _ in range(6)]
        return lambda: self.session.ask_all(questions, scale="rows")

    def bad_batch(self) -> Callable[[], Any]:
        questions = [self.pick(LINEAR), self.pick(BAD), self.pick(LINEAR)]
        return lambda: self.session.ask_all(questions)

    def synthetic(self) -> Callable[[], Any]:
        rows = self.pick([None, None, 1, 17, 0, 2.5])
        if rows is None and self.session.rows > 1e5:
            rows = 3
        return lambda: self.session.synthetic(rows)

    def look(self) -> Callable[[], Any]:
        """All that a session shows without being asked."""

        def shown() -> Any:
            s = self.session
            tables = [s.hypothesis.marginal(names) for names in [(), ("a",), ("a", "b", "c")]]
            public = [
                s.rows,
                s.private,
                s.budget,
                s.spent_epsilon,
                repr(s.ledger),
                repr(s.hypothesis),
                vars(s.hypothesis).keys(),
            ]
            return [*public, tables, s.log, s.ledger.entries(), s.ledger.answers(), dir(s)]

        return shown

    def statistics(self) -> Callable[[], Any]:
        question, within = self.pick(STATISTICS), self.pick([None, 0.5, 0.1, 0.02, 1e-3])
        return lambda: self.session.ask(question, within=within)

    def price(self) -> Callable[[], Any]:
        question, within = self.pick(STATISTICS + LINEAR + CONVEX[:2]), self.pick(WITHIN)
        return lambda: self.session.price(question, within=within)

    def report(self) -> Callable[[], Any]:
        """Return everything that a session states about itself."""

        def told() -> Any:
            s, report = self.session, self.session.report()
            return [s.certificate, str(s), s._repr_html_(), report.html, report.json, repr(report)]

        return told

    def sql(self) -> Callable[[], Any]:
        statement = self.pick(["SELECT c, COUNT(*), AVG(a) FROM data GROUP BY c", "SELECT SUM(a) FROM data WHERE b"])
        return lambda: self.session.sql(statement)

    def wire(self) -> Callable[[], Any]:
        return lambda: list(hr.wire.ledger_lines(self.session.ledger))

    def frame_of_an_answer(self) -> Callable[[], Any]:
        question = self.pick([hr.marginal("a", "c"), hr.count(b=False)])
        return lambda: self.session.ask(question).frame

    def estimator(self) -> Callable[[], Any]:
        kinds = [hr.estimators.LogisticRegression, hr.estimators.LinearRegression, hr.estimators.LinearSVC]
        kind, within = self.pick(kinds), self.pick([None, 0.3])
        target = "a" if kind is hr.estimators.LinearRegression else "b"
        feature = "b" if target == "a" else "a"
        known = pd.DataFrame({"a": [0, 3], "b": [True, False], "c": ["x", "z"]})

        def fitted() -> Any:
            model = kind(self.session, target=target, features=[feature], within=within).fit()
            facts = {name: value for name, value in vars(model).items() if name.endswith("_")}
            return [repr(model), facts, model.predict(known), model.score(known)]

        return fitted

    def median(self) -> Callable[[], Any]:
        within = self.pick([None, 0.3])
        return lambda: hr.estimators.Median(self.session, "a", within=within).fit().value_

    def erm(self) -> Callable[[], Any]:
        """One model from arrays of the same people, paid by the session."""
        numeric = [(float(i), 1.0, float(bool(j)) * 2 - 1) for i, j, _ in self._plain_rows()]
        table = np.array(numeric).reshape(-1, 3)
        solvers = [
            hr.erm.mirror_descent, hr.erm.noisy_sgd, hr.erm.output_perturbation, hr.erm.frank_wolfe, hr.erm.auto,
            hr.erm.objective_perturbation, hr.erm.regularised_output_perturbation, hr.erm.whitened_descent,
        ]  # fmt: skip
        solve, over = self.pick(solvers), self.pick([hr.L2Ball(1.0), hr.L1Ball(1.0), None])
        loss = self.pick([hr.losses.Logistic(), hr.losses.SmoothedHinge(), hr.losses.Logistic(ridge=0.1)])
        spend = 0.02 * self.session.budget.total
        guess = 40 if self.session.budget.neighbours == "add-remove" else None
        options = {
            "loss": loss,
            "over": over,
            "budget": self.session,
            "spend": spend,
            "expected_rows": guess,
            "noise": self.noise,
        }
        return lambda: solve(table[:, :2], table[:, 2], **options)

    def _plain_rows(self) -> list[Row]:
        return [row if isinstance(row[0], int) and isinstance(row[1], bool) else (9, True, "x") for row in self.rows]


ACTS = [
    "counts", "buying", "convex", "buying_convex", "refused", "bad_question", "batch", "bad_batch", "synthetic", "look",
    "wire", "frame_of_an_answer", "estimator", "median", "erm", "erm", "erm",
]  # fmt: skip

ASKED = ("statistics", "price", "statistics", "price", "statistics", "sql", "statistics", "price", "counts", "report")

# A session


@dataclasses.dataclass(frozen=True)
class Case:
    """A way to open a session, and the acts in it."""

    source: str = "histogram"
    neighbours: str = "replace"
    delta: float = 1e-6
    epsilon: float = 40.0  # so that a table of a few rows has something to say
    options: tuple[tuple[str, Any], ...] = ()
    release: bool = False
    tops: int = 0
    wild: int = 0
    acts: tuple[str, ...] = tuple(ACTS)

    @property
    def budget(self) -> hr.Budget:
        return hr.Budget(self.epsilon, self.delta, self.neighbours)  # type: ignore[arg-type]


def seen_of(case: Case, rows: list[Row], history: History, folder: Path, reopen: bool = True) -> Transcript:
    """All that is seen of a session on these rows, of its ledger taken up again, and of what is asked then."""
    seen, noise = Transcript(), Conditioned(history, seed=1)
    analyst = Analyst(seen, noise, rows, folder)
    analyst.source = SOURCES[case.source](rows, folder)
    options: dict[str, Any] = {"universe": UNIVERSE, "budget": case.budget, **dict(case.options)}

    def opened(**more: Any) -> Session:
        return (hr.release if case.release else hr.open)(analyst.source, **options, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "Noise", lambda: noise)
        analyst.session = seen.watch("open", opened, hidden=analyst.source)
        if analyst.session is None:
            return seen
        for act in case.acts:
            analyst.act(act)
        if reopen and not case.release:
            lines = list(hr.wire.ledger_lines(analyst.session.ledger))
            taken_up = hr.wire.ledger_from_lines(lines, UNIVERSE)
            analyst.session = seen.watch("reopen", lambda: opened(ledger=taken_up), hidden=analyst.source)
            if analyst.session is not None:
                for act in ("look", "counts", "buying", "convex", "synthetic"):
                    analyst.act(act)
    return seen


def leak(case: Case, table: list[Row], neighbour: list[Row], folder: Path) -> str:
    """The first thing that differs between sessions on neighbours with the same history; empty where nothing does."""
    history = History(tops=case.tops, wild=case.wild)
    first = seen_of(case, table, history, folder)
    return first_difference(first, seen_of(case, neighbour, history.again(), folder))


def neighbours_of(case: Case, n: int, seed: int, one: Row, other: Row) -> tuple[list[Row], list[Row]]:
    table = rows_of(n, seed, one)
    return table, (rows_of(n, seed, other) if case.neighbours == "replace" else table[:-1])


PLAIN, OTHER = (0, False, "x"), (2, True, "y")  # told apart by most questions
GUARD = (("guard", 0.2), ("reserve", 0.3), ("queries", 50))
WATCHED = (("workload", [hr.marginal("a")]), *GUARD)  # so that there is something to find
STREAM = ("batch", "batch", "counts", "convex", "counts", "counts", "convex", "batch", "bad_batch", "look", "wire")
THEORY = (("profile", "theory"), ("queries", 50), ("workload", [CONVEX[0], CONVEX[7]]), ("trusted_losses", [OWN]))
RESERVE = (("reserve", 0.5), ("trusted_losses", [OWN]))
CASES = {
    "practical": Case(options=RESERVE),
    "practical, add-remove": Case(neighbours="add-remove", options=RESERVE),
    "practical, pure": Case(delta=0.0, options=RESERVE),
    "practical, pure, add-remove": Case(delta=0.0, neighbours="add-remove", options=RESERVE),
    "guarded": Case("large", epsilon=5.0, options=WATCHED, tops=2, acts=STREAM),
    "guarded, with few rows": Case(epsilon=3.0, options=WATCHED, tops=2, acts=STREAM),
    "guarded, add-remove": Case("large", "add-remove", epsilon=5.0, options=WATCHED, tops=2, acts=STREAM),
    **{
        f"statistics, {kind}{neighbours}": Case("large", neighbours, delta, 1.0, (("reserve", 0.5),), acts=2 * ASKED)
        for kind, delta in (("pure, ", 0.0), ("", 1e-6))
        for neighbours in ("replace", "add-remove")
    },
    "statistics, guarded": Case("large", epsilon=5.0, options=WATCHED, tops=2, acts=2 * ASKED),
    "wild noise": Case(options=RESERVE, wild=3),
    "wild noise, add-remove": Case(neighbours="add-remove", options=RESERVE, wild=2),
    "theory": Case("huge", options=THEORY, tops=2),
    "theory, add-remove": Case("huge", neighbours="add-remove", options=THEORY),
    "theory, pure": Case("huge", delta=0.0, options=(("profile", "theory"), ("queries", 50))),
    "workload": Case(options=(("workload", [hr.marginal("a"), hr.count(b=True)]), *RESERVE)),
    "release": Case(release=True),
    "release, add-remove": Case(release=True, neighbours="add-remove"),
    "mwem": Case("large", release=True, options=(("method", "mwem"), ("workload", hr.marginals(1)))),
    "mwem, add-remove is refused": Case(release=True, neighbours="add-remove", options=(("method", "mwem"),)),
    "frame": Case(source="frame", options=RESERVE),
    "csv": Case(source="csv", neighbours="add-remove"),
    "parquet": Case(source="parquet", options=GUARD),
    "a bad workload": Case(options=(("workload", [hr.count(nobody=1)]),)),
    "a bad option": Case(options=(("reserve", 2.0),)),
}


@pytest.mark.parametrize("name", CASES)
def test_neighbours_look_alike(name, tmp_path) -> None:
    case = CASES[name]
    table, neighbour = neighbours_of(case, 60, 0, OTHER, PLAIN)
    assert leak(case, table, neighbour, tmp_path) == ""


def cases(acts: int) -> st.SearchStrategy[Case]:
    """Any session in small."""
    practical = st.fixed_dictionaries(
        {
            "reserve": st.sampled_from([0.0, 0.05, 0.5]),
            "guard": st.sampled_from([None, 0.0, 0.2]),
            "workload": st.sampled_from([None, hr.marginals(1), [hr.marginal("a", "b"), CONVEX[0]], [hr.mean("a")]]),
            "trusted_losses": st.sampled_from([(), (OWN,)]),
            "queries": st.sampled_from([1, 50, 10_000]),
        }
    )
    return st.builds(
        Case,
        source=st.sampled_from(["histogram", "frame", "csv", "parquet", "large"]),
        neighbours=st.sampled_from(["replace", "add-remove"]),
        delta=st.sampled_from([0.0, 1e-6]),
        epsilon=st.sampled_from([0.5, 5.0, 40.0]),
        options=practical.map(lambda chosen: tuple(chosen.items())),
        tops=st.sampled_from([0, 1, 3]),
        wild=st.sampled_from([0, 0, 2, 5]),
        acts=st.lists(st.sampled_from(ACTS), min_size=1, max_size=acts).map(tuple),
    )


VALUES = st.sampled_from(AWKWARD) | st.sampled_from([0, 3, True, "x", "y", "yes"])
ROWS = st.tuples(VALUES, VALUES, VALUES)
TEXT_ROWS = st.tuples(*[st.sampled_from(TEXTS)] * 3)


def alike(data: st.DataObject, case: Case, folder: Path) -> None:
    rows = ROWS if case.source in ("frame", "histogram", "large") else TEXT_ROWS
    one, other, n, seed = data.draw(rows), data.draw(rows), data.draw(st.integers(21, 60)), data.draw(st.integers(0, 9))
    assert leak(case, *neighbours_of(case, n, seed, one, other), folder) == ""


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=QUIET)
@given(data=st.data(), case=cases(acts=5))
def test_any_neighbours_look_alike(data, case, tmp_path) -> None:
    alike(data, case, tmp_path)


@pytest.mark.audit
@settings(max_examples=150, deadline=None, suppress_health_check=QUIET)
@given(data=st.data(), case=cases(acts=12))
def test_any_neighbours_look_alike_at_length(data, case, tmp_path) -> None:
    alike(data, case, tmp_path)


# What the comparison finds: each of these is a leak that somebody could put into the package


def before(patch: pytest.MonkeyPatch, owner: Any, name: str, do: Callable[..., Any]) -> None:
    """``do`` first, with the method's own arguments."""
    method = getattr(owner, name)

    def both(self: Any, *given: Any, **named: Any) -> Any:
        do(self, *given, **named)
        return method(self, *given, **named)

    patch.setattr(owner, name, both)


def after(patch: pytest.MonkeyPatch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Change the results of the method."""
    method = getattr(owner, name)
    patch.setattr(owner, name, lambda self, *given, **named: change(self, method(self, *given, **named)))


def is_there(data: DataSource) -> bool:
    """Return True if the table has the one person by whom the neighbours differ: all others are an x."""
    return bool(data._count_all([("c",)])[0][1])


def warning(patch: pytest.MonkeyPatch) -> None:
    before(patch, Session, "ask", lambda s, *_, **__: is_there(s._data) or warnings.warn("an empty cell", stacklevel=2))


def log_line(patch: pytest.MonkeyPatch) -> None:
    say = logging.getLogger("hedgerow").debug
    before(patch, Session, "ask", lambda s, *_, **__: say("counts %s", s._data.marginal(("c",))))


def print_to_a_stream(patch: pytest.MonkeyPatch) -> None:
    before(patch, Session, "ask", lambda s, *_, **__: is_there(s._data) and print("slow", file=sys.stderr))


def file(patch: pytest.MonkeyPatch) -> None:
    before(patch, Session, "ask", lambda s, *_, **__: is_there(s._data) and Path("cache").write_text("") and None)


def refusal_with_a_count(patch: pytest.MonkeyPatch) -> None:
    def counted(session: Session, *_: Any, **__: Any) -> None:
        raise hr.InvalidInput(f"no question about {session._data.marginal(('c',)).tolist()}")

    before(patch, Session, "ask", counted)


def context_of_an_error(patch: pytest.MonkeyPatch) -> None:
    def chained(session: Session, *_: Any, **__: Any) -> None:
        raise hr.InvalidInput("no question") from (KeyError("y") if is_there(session._data) else None)

    before(patch, Session, "ask", chained)


def local_of_a_traceback(patch: pytest.MonkeyPatch) -> None:
    source = "def refuse(s, *_, **__):\n    counts = s._data.marginal(('c',))\n    raise error('no')"
    names: dict[str, Any] = {"error": hr.InvalidInput}
    exec(compile(source, str(Path(hr.__file__).with_name("planted.py")), "exec"), names)
    before(patch, Session, "ask", names["refuse"])


def order(patch: pytest.MonkeyPatch) -> None:
    """As if entries were kept in a table that is as large as what was counted."""
    patch.setattr(Session, "log", property(lambda s: s.ledger.entries()[:: -1 if is_there(s._data) else 1]))


def data_dependent_cost(patch: pytest.MonkeyPatch) -> None:
    def changed(bought: purchases.Purchases, event: Any) -> Any:
        wider = 2.0 if is_there(bought._data) else 1.0
        return type(event)(event.sensitivity * wider, *dataclasses.astuple(event)[1:])

    after(patch, purchases.Purchases, "_event_for", changed)


def data_dependent_draws(patch: pytest.MonkeyPatch) -> None:
    def again(engine: PracticalEngine, query: Any, within: Any) -> None:
        if is_there(engine._data):
            engine._purchases.buy(query, 0.5)

    before(patch, PracticalEngine, "linear", again)


def dtype(patch: pytest.MonkeyPatch) -> None:
    def narrowed(session: Session, answer: hr.Answer) -> hr.Answer:
        kind = np.float32 if is_there(session._data) else np.float64
        return dataclasses.replace(answer, value=np.asarray(answer.value).astype(np.float64).astype(kind))

    after(patch, Session, "ask", narrowed)


def zero_of_another_sign(patch: pytest.MonkeyPatch) -> None:
    def signed(session: Session, answer: hr.Answer) -> hr.Answer:
        return dataclasses.replace(answer, cost=-0.0 if is_there(session._data) else 0.0)

    after(patch, Session, "ask", signed)


def text_of_the_session(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Session, "__repr__", lambda s: f"Session of {len(s._data.marginal(('c',)).nonzero()[0])} labels")


def number_of_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Session, "rows", property(lambda s: s._data.rows))


def unbilled_answer(patch: pytest.MonkeyPatch) -> None:
    def exact(session: Session, answer: hr.Answer) -> hr.Answer:
        return dataclasses.replace(answer, error=float(session._data.marginal(("c",))[1]))

    after(patch, Session, "ask", exact)


LEAKS = [
    warning, log_line, print_to_a_stream, file, refusal_with_a_count, context_of_an_error, local_of_a_traceback, order,
    data_dependent_cost, data_dependent_draws, dtype, zero_of_another_sign, text_of_the_session, number_of_rows,
    unbilled_answer,
]  # fmt: skip
CONTROL = Case(
    neighbours="add-remove",
    options=(("reserve", 0.9), ("trusted_losses", [OWN])),
    acts=("counts", "bought", *("buying",) * 5, "look"),
)


def everyone_else(n: int = 40) -> list[Row]:
    return [(i % 4, i % 3 == 0, "x") for i in range(n)]


@pytest.mark.parametrize("planted", LEAKS, ids=lambda planted: planted.__name__)
def test_a_planted_leak_is_found(planted, tmp_path, monkeypatch) -> None:
    planted(monkeypatch)
    assert leak(CONTROL, [*everyone_else(), (1, True, "y")], everyone_else(), tmp_path) != ""


def test_without_a_planted_effect_none_is_found(tmp_path) -> None:
    assert leak(CONTROL, [*everyone_else(), (1, True, "y")], everyone_else(), tmp_path) == ""


@pytest.mark.parametrize("name", ["guarded", "guarded, with few rows", "guarded, add-remove", "theory"])
def test_a_guard_finds_the_hypothesis_right_and_wrong(name, tmp_path) -> None:
    case = CASES[name]
    history = History(tops=case.tops)
    seen_of(case, neighbours_of(case, 60, 0, PLAIN, PLAIN)[0], history, tmp_path)
    above = {outcome is not None for what, outcome in history.drawn if what == "comparison"}
    assert above == {True, False}


def test_the_analyst_gets_answers_of_every_kind(tmp_path) -> None:
    """Else two sessions could look alike because all is refused in both."""
    answered: set[str] = set()
    wanted = set(ACTS) - {"refused", "bad_question", "bad_batch"}
    for name in ("practical", "practical, add-remove", "practical, pure", "workload"):
        if answered >= wanted:
            break
        case = dataclasses.replace(CASES[name], epsilon=400.0, acts=(*ACTS * 2, *("buying_convex", "erm") * 6))
        seen = seen_of(case, neighbours_of(case, 60, 0, OTHER, PLAIN)[0], History(), tmp_path, reopen=False)
        lines = [line for line in seen.lines if line.startswith(("— ", "gave ", "raised "))]
        answered |= {act[2:] for act, then in itertools.pairwise(lines) if then.startswith("gave ")}
    assert answered >= wanted
