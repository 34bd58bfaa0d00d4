"""Seeded transcripts of every mechanism on tables that are written down here.

    python tests/transcripts.py --store               store those of textbook and privacy in transcripts.json
    python tests/transcripts.py --write before.json   write all of them, to the last bit
    python tests/transcripts.py --compare before.json run them again and name those that differ in any bit

A change that should change no result is checked on one machine: ``--write`` before it, ``--compare`` after it.
``test_transcripts`` compares the stored ones on every machine, to a tolerance that it derives. A result that changes on
purpose is stored anew, with the change.

Stored are those of textbook and privacy alone (``KEPT``). What a session answers follows from a fit, which stops at a tolerance
far above rounding: a bit that differs between two processors becomes a hundredth of an answer, or another choice.

Each transcript is a function without arguments that gives numbers, strings, lists and dicts. They go through the public
surface wherever there is one; what is imported from inside the package is listed once, below. The tables are made of raw
bits and whole numbers, so that no other library's version changes them.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import json
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

# From inside the package: all that has no public door.
from paying import paid

import hedgerow as hr
from hedgerow import audit
from hedgerow.convex.sets import InterpolationBall, NuclearBall
from hedgerow.data import HistogramSource
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.conversion import subsampled_multiplier
from hedgerow.privacy.events import AboveThreshold, ApproximateDP, Exponential, Gaussian, Laplace
from hedgerow.privacy.noise import Seeded
from hedgerow.research import games
from hedgerow.textbook import bounds, convex_offline, convex_pmw, mwem, oracles, pmw, small_db
from hedgerow.textbook import multiplicative_weights as experts
from hedgerow.textbook import sparse_vector as sv

STORED = Path(__file__).with_name("transcripts.json")
TRANSCRIPTS: dict[str, Callable[[], Any]] = {}


def transcript(function: Callable[..., Any], name: str = "", *given: Any, **named: Any) -> Callable[..., Any]:
    """Register the function under its own name, or under another with arguments of its own."""
    key = name or function.__name__.replace("_", " ")
    assert key not in TRANSCRIPTS, key
    TRANSCRIPTS[key] = functools.partial(function, *given, **named)
    return function


# What is written down


def plain(found: Any) -> Any:
    """As JSON keeps it; floats exactly."""
    match found:
        case np.ndarray():
            return plain(found.tolist())
        case np.generic():
            return found.item()
        case dict():
            return {str(key): plain(value) for key, value in found.items()}
        case list() | tuple():
            return [plain(value) for value in found]
        case hr.Answer():
            return plain([found.value, found.error, found.source, found.cost])
    if hasattr(found, "to_dict") and dataclasses.is_dataclass(found):  # an event
        return plain(list(found.to_dict().values()))
    assert found is None or isinstance(found, bool | int | float | str), type(found)
    return found


def said(act: Callable[[], Any]) -> Any:
    """Return the result of a call, or the text of its refusal."""
    try:
        return plain(act())
    except hr.HedgerowError as refusal:
        return {"refused": f"{type(refusal).__name__}: {refusal}"}


def counted(events: Sequence[Any]) -> dict[str, Any]:
    """Events in order: each kind once, then which came when."""
    kinds = list(dict.fromkeys(events))
    number = {kind: i for i, kind in enumerate(kinds)}
    return {"kinds": plain(kinds), "order": [number[event] for event in events]}


def bill(session: hr.Session) -> dict[str, Any]:
    return {
        "rows": plain(session.rows),
        "spent": session.spent,
        "remaining": session.remaining,
        "spent epsilon": session.spent_epsilon,
        "log": counted([(type(entry.event).__name__, entry.cost) for entry in session.log]),
    }


# Tables


def uniform(seed: int, *shape: int) -> np.ndarray:
    """Multiples of 2^-53 in [0, 1): raw bits, which no version of numpy draws otherwise."""
    bits = np.random.PCG64(seed).random_raw(math.prod(shape))
    return ((bits >> np.uint64(11)) * 2.0**-53).reshape(shape)


SMALL = hr.Universe(age=hr.Integers(0, 7), sex=hr.Categories(["F", "M"]), smoker=hr.Flag(), region=hr.Integers(0, 3))
FLAGS = hr.Universe({f"x{i}": hr.Flag() for i in range(6)})
BITS = hr.Universe.from_sizes({f"x{i}": 2 for i in range(6)})  # the same cells, as targets of ±1


@functools.cache
def people(rows: int = 20_000) -> pd.DataFrame:
    u = uniform(1, 4, rows)
    age = (8 * u[0] * (0.4 + 0.6 * u[1])).astype(int)
    smoker = u[2] < 0.1 + 0.08 * age
    sex = np.where(u[3] < 0.5 + 0.05 * smoker, "F", "M")
    region = np.minimum(3, (u[1] * 2 + 0.3 * age * u[3]).astype(int))
    return pd.DataFrame({"age": age, "sex": sex, "smoker": smoker, "region": region})


def in_one_cell(universe: hr.Universe, rows: int, cell: int = 21) -> HistogramSource:
    """As far from uniform as can be."""
    return HistogramSource(universe, np.where(np.arange(universe.size) == cell, rows, 0).reshape(universe.shape))


def many(scale: int) -> HistogramSource:
    """The people, each many times over."""
    table = people()
    cells = (table.age, (table.sex == "M").astype(int), table.smoker.astype(int), table.region)
    counts = np.zeros(SMALL.shape, np.int64)
    np.add.at(counts, tuple(np.asarray(c) for c in cells), scale)
    return HistogramSource(SMALL, counts)


def skewed(universe: hr.Universe, rows: int) -> HistogramSource:
    """Most rows in few cells: much to learn."""
    weights = (4 * uniform(2, universe.size) ** 8 * rows / universe.size).astype(np.int64)
    weights[-1] += rows - weights.sum()
    return HistogramSource(universe, weights.reshape(universe.shape))


BUDGETS = {
    f"{neighbours}, {kind}": hr.Budget(1.0, delta, neighbours)
    for neighbours in ("replace", "add-remove")
    for kind, delta in (("pure", 0.0), ("approximate", 1e-6))
}
APPROXIMATE, PURE = BUDGETS["replace, approximate"], BUDGETS["replace, pure"]


# Sessions


def some_questions() -> list[hr.Query]:
    table = uniform(3, 8, 2)
    return [
        hr.count(sex="F"),
        hr.count(sex="F", smoker=True, age=(2, 5)),
        hr.count(region={0, 3}) & ~hr.count(age=0),
        hr.marginal("age"),
        hr.marginal("smoker", "region"),
        hr.linear(("age", "sex"), table),
        hr.mean("age", where=hr.count(smoker=True)),
        hr.threshold("age", 3),
        hr.interval("region", 1, 2),
        hr.any_of(hr.count(age=7), hr.count(region=3)),
        hr.conjunction(smoker=True, sex="M"),
        hr.parity("sex", "smoker"),
    ]


def asked(session: hr.Session, within: Sequence[float] = (0.05, 0.015, 0.006)) -> dict[str, Any]:
    """A session from its opening to its bill."""
    opening = bill(session)
    questions = some_questions()
    found = {
        "one by one": [said(lambda q=q: session.ask(q)) for q in questions],
        "repeats": [said(lambda q=q: session.ask(q)) for q in questions[:4]],
        "in rows": [said(lambda q=q: session.ask(q, scale="rows")) for q in (questions[1], questions[4])],
        "within": [
            said(lambda q=q, w=w: session.ask(q, within=w))
            for w in within
            for q in (questions[2], hr.count(age=(1, 3), region=2), hr.marginal("age", "region"), hr.mean("region"))
        ],
        "batch": said(
            lambda: session.ask_all(
                [hr.count(age=a, smoker=s) for a in range(8) for s in (True, False)]
                + [hr.marginal("sex", "smoker"), hr.count(sex="F"), hr.mean("age")]
            )
        ),
        "workloads": said(
            lambda: [
                session.ask_all(work.on(SMALL))
                for work in (hr.intervals("region"), hr.thresholds("age"), hr.parities(2), hr.conjunctions(2))
            ]
        ),
        "marginals": said(lambda: session.ask_all(hr.marginals(2, most_cells=16).on(SMALL), scale="rows")),
        "synthetic": session.synthetic(40).astype(str).agg(" ".join, axis=1).tolist(),
    }
    return {"opening": opening, **found, "closing": bill(session)}


def practical(budget: hr.Budget, **options: Any) -> Any:
    return asked(hr.open(people(), universe=SMALL, budget=budget, seed=11, **options))


def theory(budget: hr.Budget, rows: int, data: str = "people", **options: Any) -> Any:
    table = many(rows // len(people())) if data == "people" else skewed(SMALL, rows)
    given = {"queries": 200, "profile": "theory", "seed": 12, **options}
    return asked(hr.open(table, universe=SMALL, budget=budget, **given))


def released(budget: hr.Budget, **options: Any) -> Any:
    data = skewed(SMALL, 10**6) if options.get("method") == "mwem" else people()
    # nothing is left to measure with: a refusal would state a difference of near-equal numbers
    return asked(hr.release(data, universe=SMALL, budget=budget, seed=13, **options), within=())


for kind, budget in BUDGETS.items():
    transcript(practical, f"practical session, {kind}", budget)
    transcript(theory, f"theory session, {kind}", budget, 10**8)
    transcript(theory, f"theory session that learns, {kind}", budget, 10**9, "skewed")
    transcript(released, f"release, {kind}", budget)
    transcript(released, f"release by mwem, {kind}", budget, method="mwem", workload=hr.marginals(2))
transcript(theory, "theory session with few rows", APPROXIMATE, 20_000)
transcript(theory, "theory session with too few rows", APPROXIMATE, 20_000, alpha=0.01)
transcript(theory, "theory session with its alpha", APPROXIMATE, 10**9, alpha=0.05, beta=0.01)
transcript(practical, "practical session, guarded", APPROXIMATE, guard=0.1, queries=50)
transcript(practical, "practical session, guarded and pure", PURE, guard=0.1, queries=50)
transcript(practical, "practical session, unguarded", APPROXIMATE, guard=0.0, reserve=0.5, beta=0.01)
transcript(
    practical,
    "practical session with workload",
    APPROXIMATE,
    workload=[hr.marginal(n) for n in SMALL.names],
    reserve=0.8,
)
transcript(practical, "practical session of conjunctions", BUDGETS["add-remove, pure"], workload=hr.conjunctions(2))
transcript(released, "release of a workload", APPROXIMATE, workload=hr.marginals(3))


def overview(session: hr.Session) -> Any:
    """All that was drawn before the first fit: exact counts on a grid, and noise on the same grid.

    A choice and a certificate compare the table with what was fitted.
    """
    drawn = itertools.takewhile(
        lambda entry: entry.why in ("prefit: marginal", "prefit: residual", "prefit: residuals"), session.log
    )
    return [[[plain(event) for event in entry.events], entry.cost, entry.why, plain(entry.released)] for entry in drawn]


for kind, budget in BUDGETS.items():
    opened = functools.partial(hr.open, people(), universe=SMALL, budget=budget)
    transcript(lambda o=opened: overview(o(seed=11)), f"overview, {kind}")
    transcript(lambda o=opened: overview(o(seed=11, workload=hr.conjunctions(2))), f"overview of conjunctions, {kind}")
    transcript(lambda o=opened: overview(o(seed=11, guard=0.1, queries=50)), f"overview, guarded, {kind}")
    released_once = functools.partial(hr.release, people(), universe=SMALL, budget=budget, seed=13)
    transcript(lambda r=released_once: overview(r(workload=hr.marginals(3))), f"overview of a release, {kind}")


def in_blocks(budget: hr.Budget, **options: Any) -> Any:
    """A session that grows, asked after each block about all, one and some of them, and over time."""
    parts = [people().iloc[a:b] for a, b in ((0, 2000), (2000, 3200), (3200, None))]
    session = hr.open(parts[0], universe=SMALL, budget=budget, seed=17, reserve=0.4, **options)
    series, found = hr.count(age=(2, 5), sex="F").over_time(span=2, share=0.1), []
    for part in (None, *parts[1:]):
        if part is not None:
            session.append(part)
        views = [session, *([] if part is None else [session.select_blocks("2"), session.select_blocks("1", "2")])]
        found.append([said(lambda v=v, q=q: v.ask(q)) for v in views for q in some_questions()])
        found.append([said(lambda: session.ask(series)), said(lambda: session.ask(hr.count(age=4), within=0.02))])
    return {"answers": found, "rows": session.rows, "spent": [each.spent for each in session.blocks.values()]}


for kind, budget in BUDGETS.items():
    transcript(in_blocks, f"practical session in blocks, {kind}", budget)


@transcript
def bundled_demo() -> Any:
    from hedgerow import demo

    session = hr.open(demo.path(), universe=demo.universe(), budget=APPROXIMATE, seed=5)
    queries = [
        hr.count(health="poor", visits=(4.5, 20)),
        hr.marginal("coinsurance", "health"),
        hr.mean("visits", where=hr.count(individual_deductible=True)),
    ]
    return {"answers": plain(session.ask_all(queries)), "bill": bill(session)}


# Convex questions


def own_loss() -> Any:
    return hr.losses.Custom(
        value=lambda theta, r: 0.5 * (theta[0] - r["age"] / 7) ** 2,
        gradient=lambda theta, r: (theta[0] - r["age"] / 7)[:, None],
        attributes=("age",),
        dimension=1,
        lipschitz=1.0,
        smoothness=1.0,
        strong_convexity=1.0,
    )


BALL = hr.L2Ball(2.0)
REGION = {"target": "region", "features": ["age", "smoker"]}
SMOKER = {"target": "smoker", "features": ["age", "sex"]}
TRIANGLE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [-1.0, 0.0, 0.0], [0.0, -1.0, -0.5]]
CONVEX = {
    "logistic": (hr.losses.Logistic(**SMOKER), BALL),
    "logistic, ridge": (hr.losses.Logistic(**SMOKER, ridge=0.1), BALL),
    "logistic, everywhere": (hr.losses.Logistic(**SMOKER), None),
    "logistic, where": (hr.losses.Logistic(**SMOKER, where=hr.count(region=0)), hr.L2Ball(1.0)),
    "bounded logistic": (hr.losses.BoundedLogistic(**SMOKER), BALL),
    "multinomial": (hr.losses.MultinomialLogistic(target="region", features=["smoker"]), BALL),
    "squared": (hr.losses.Squared(**REGION), BALL),
    "squared, ridge": (hr.losses.Squared(**REGION, ridge=0.5), hr.L2Ball(1.0)),
    "squared, l1": (hr.losses.Squared(**REGION), hr.L1Ball(1.0)),
    "squared, simplex": (hr.losses.Squared(**REGION), hr.Simplex()),
    "squared, box": (hr.losses.Squared(**REGION), hr.Box(-0.25, 0.5)),
    "squared, polytope": (hr.losses.Squared(**REGION), hr.Polytope(TRIANGLE)),
    "squared, groups": (hr.losses.Squared(**REGION), hr.GroupL1Ball(0.5, [0, 0, 1])),
    "squared, interactions": (hr.losses.Squared(**REGION, interactions=[("age", "smoker")], onehot=["smoker"]), BALL),
    "hinge": (hr.losses.Hinge(target="smoker", features=["age"]), BALL),
    "smoothed hinge": (hr.losses.SmoothedHinge(0.5, target="smoker", features=["age"]), BALL),
    "huber": (hr.losses.Huber(0.5, target="age", features=["region"], ridge=0.1), BALL),
    "quantile": (hr.losses.Pinball(0.8, target="region"), hr.Box(-1.0, 1.0)),
    "median": (hr.losses.Pinball(0.5, target="age"), hr.Box(-1.0, 1.0)),
    "absolute": (hr.losses.Absolute(target="age", features=["sex"], where=hr.count(smoker=True)), BALL),
    "poisson": (hr.losses.Poisson(1.0, target="region", features=["age"]), hr.L2Ball(1.0)),
}


def minimised(
    names: Sequence[str], *, within: float | None = None, source: HistogramSource | None = None, **options: Any
) -> Any:
    own = own_loss()
    session = hr.open(people() if source is None else source, universe=SMALL, trusted_losses=[own], **options)
    found: dict[str, Any] = {}
    for name in names:
        question = hr.minimize(*CONVEX[name])
        found[name] = said(lambda question=question: session.ask(question, within=within))
    found["vouched"] = said(lambda: session.ask(hr.minimize(own, hr.Box(0.0, 1.0)), within=within))
    found["not vouched"] = said(lambda: session.ask(hr.minimize(own_loss(), hr.Box(0.0, 1.0)), within=within))
    found["repeat"] = said(lambda: session.ask(hr.minimize(*CONVEX[names[0]])))
    return found | {"bill": bill(session)}


def single() -> list[hr.Query]:
    """A workload that leaves much to learn."""
    return [hr.marginal(name) for name in SMALL.names]


for kind, budget in BUDGETS.items():
    transcript(minimised, f"convex, practical, {kind}", list(CONVEX), budget=budget, seed=21)
    transcript(
        minimised, f"convex, practical, bought, {kind}",
        ["logistic", "squared, ridge", "hinge", "squared, l1", "median", "multinomial"],
        within=0.01, budget=budget, seed=22, source=many(50), workload=single(), reserve=0.7,
    )  # fmt: skip
    transcript(
        minimised, f"convex, theory, {kind}", ["squared, ridge", "logistic, where", "poisson", "logistic, everywhere"],
        budget=budget, seed=23, profile="theory", queries=20, source=many(1000),
        workload=[hr.minimize(*CONVEX["squared, ridge"]), hr.minimize(*CONVEX["logistic, where"])],
    )  # fmt: skip


def theory_taught(neighbours: str) -> Any:
    """Regressions and counts teach one hypothesis, from one budget."""
    universe = hr.Universe.from_sizes({"a": 4, "b": 2})
    data = HistogramSource(universe, np.array([[0, 50], [1, 49], [0, 50], [2, 48]]) * 30_000)
    means = [hr.minimize(hr.losses.Squared(target=n), hr.Box(-1.0, 1.0)) for n in ("b", "a")]
    given = {"budget": hr.Budget(1.0, 1e-6, neighbours), "profile": "theory", "queries": 50, "seed": 24}
    session = hr.open(data, universe=universe, workload=means, **given)
    queries = [means[0], hr.count(b=1), means[1], hr.marginal("a"), means[0]]
    answers = [said(lambda query=query: session.ask(query)) for query in queries]
    return [answers, plain(session.hypothesis.marginal(("a", "b"))), bill(session)]


for neighbours in ("replace", "add-remove"):
    transcript(theory_taught, f"convex, theory that learns, {neighbours}", neighbours)


def session_estimator(name: str) -> Any:
    session = hr.open(people(), universe=SMALL, budget=APPROXIMATE, seed=31)
    kind = getattr(hr.estimators, name)
    mine = people().iloc[:30]
    if name in ("Median", "Quantile"):
        model = kind(session, "age").fit()
        return plain([model.value_, model.error_bound_, model.source_, model.cost_])
    classifies = name in ("LogisticRegression", "LinearSVC")
    model = kind(session, target="smoker" if classifies else "region", features=["age", "sex"]).fit()
    return plain(
        {
            "coef": model.coef_,
            "intercept": model.intercept_,
            "answer": [model.error_bound_, model.source_, model.cost_],
            "predicted": model.predict(mine),
            "score": model.score(mine),
        }
    )


for name in hr.estimators.__all__:
    transcript(session_estimator, f"session estimator, {name}", name)


# Empirical risk minimisation


@functools.cache
def rows_of(p: int = 4, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = (2 * uniform(4, n, p) - 1) / 2
    noise = uniform(5, n) - 0.5
    signal = X @ (np.arange(1, p + 1) / p) + 0.4 * noise
    return X, (signal > 0).astype(int), np.clip(signal, -1, 1)


L2, L1 = hr.L2Ball(1.0), hr.L1Ball(1.0)
LOGISTIC, SQUARED, RIDGE = hr.losses.Logistic(), hr.losses.Squared(), hr.losses.Squared(ridge=0.1)
HUBER, HINGE = hr.losses.Huber(0.5), hr.losses.Hinge()
CORNERS = hr.Polytope(np.vstack([np.eye(4), -np.eye(4) / 2]))
SOLVED: dict[str, dict[str, tuple[Any, Any, dict[str, Any]]]] = {
    "auto": {
        "logistic": (LOGISTIC, L2, {}),
        "logistic, theory": (LOGISTIC, L2, {"profile": "theory"}),
        "hinge": (HINGE, L2, {}),
        "ridge, theory": (RIDGE, L2, {"profile": "theory"}),
        "l1": (SQUARED, L1, {"norm": "linf"}),
    },
    "frank_wolfe": {
        "logistic": (LOGISTIC, L1, {}),
        "simplex": (SQUARED, hr.Simplex(), {"norm": "l2"}),
        "polytope": (HUBER, CORNERS, {"iterations": 7}),
        "hinge": (HINGE, L1, {}),
    },
    "frank_wolfe_general": {
        "logistic": (LOGISTIC, L2, {}),
        "groups": (RIDGE, hr.GroupL1Ball(1.0, 2), {"iterations": 6}),
        "smoothed hinge": (hr.losses.SmoothedHinge(0.5), hr.Box(-1.0, 1.0), {}),
    },
    "mirror_descent": {
        "logistic": (LOGISTIC, L2, {}),
        "hinge, l1": (HINGE, L1, {"norm": "linf"}),
        "quantile, simplex": (hr.losses.Pinball(0.3), hr.Simplex(), {}),
        "absolute, box": (hr.losses.Absolute(), hr.Box(-1.0, 1.0), {"iterations": 9}),
        "groups": (SQUARED, hr.GroupL1Ball(1.0, 2), {"iterations": 9}),
        "interpolation": (SQUARED, InterpolationBall(1.0, 0.5), {"iterations": 9}),
        "nuclear": (SQUARED, NuclearBall(1.0, (2, 2)), {"iterations": 9}),
        "polytope": (SQUARED, CORNERS, {"iterations": 9}),
        "ridge": (RIDGE, L2, {}),
    },
    "noisy_sgd": {
        "logistic": (LOGISTIC, L2, {"epochs": 2.0, "batch": 40}),
        "hinge": (HINGE, hr.Box(-1.0, 1.0), {"epochs": 2.0}),
    },
    "objective_perturbation": {"logistic": (LOGISTIC, L2, {}), "huber": (HUBER, hr.Unconstrained(), {})},
    "output_perturbation": {"ridge": (RIDGE, L2, {}), "logistic": (hr.losses.Logistic(ridge=0.2), L2, {})},
    "regularised_output_perturbation": {"logistic": (LOGISTIC, None, {}), "huber": (HUBER, None, {"radius": 2.0})},
    "whitened_descent": {
        "logistic": (LOGISTIC, L2, {}),
        "everywhere": (LOGISTIC, None, {}),
        "squared": (SQUARED, L2, {"iterations": 8}),
        "huber": (HUBER, None, {}),
    },
}  # fmt: skip


def result(found: Any) -> Any:
    return plain(
        {
            "theta": found.theta,
            "events": counted(found.events),
            "cost": found.cost,
            "bound": found.risk_bound,
            "iterations": found.iterations,
            "solver": found.solver,
        }
    )


def guess(budget: hr.Budget) -> dict[str, int]:
    return {} if budget.neighbours == "replace" else {"expected_rows": 380}


def solved(solver: str, budget: hr.Budget) -> Any:
    X, classes, values = rows_of()
    found = {}
    for name, (loss, over, options) in SOLVED[solver].items():
        y = classes if loss.labels == "binary" else values
        given = {"loss": loss, "over": over, "budget": budget, "seed": 41, **guess(budget), **options}
        found[name] = said(lambda y=y, given=given: result(getattr(hr.erm, solver)(X, y, **given)))
    return found


def lasso(budget: hr.Budget) -> Any:
    X, _, values = rows_of(30)
    given = {"budget": budget, "seed": 42, **guess(budget)}
    return {
        str(refit): said(lambda refit=refit: result(hr.erm.lasso(2 * X, values, radius=1.5, refit=refit, **given)))
        for refit in (None, True, False)
    }


def array_estimator(name: str, budget: hr.Budget) -> Any:
    X, classes, values = rows_of()
    kind = getattr(hr.erm, name)
    given = {"random_state": 43, **guess(budget)}

    def fitted(y: np.ndarray, **options: Any) -> Any:
        model = kind(budget, **given, **options).fit(X, y)
        return [model.coef_, model.intercept_, model.predict(X[:20])]

    if name not in ("LogisticRegression", "LinearSVC"):
        return [said(lambda: fitted(values)), said(lambda: fitted(3 * values, radius=1.0, label_bound=3.0))]
    three = classes + (values > 0.4)
    return [said(lambda: fitted(classes, classes=[0, 1])), said(lambda: fitted(three, classes=[0, 1, 2], radius=2.0))]


for kind, budget in BUDGETS.items():
    for solver in SOLVED:
        transcript(solved, f"erm {solver}, {kind}", solver, budget)
    transcript(lasso, f"erm lasso, {kind}", budget)
    for name in ("HuberRegressor", "Lasso", "LinearRegression", "LinearSVC", "LogisticRegression", "Ridge"):
        transcript(array_estimator, f"erm {name}, {kind}", name, budget)


@transcript
def erm_paid_by_an_account() -> Any:
    X, classes, values = rows_of()
    account, noise = hr.Accountant(APPROXIMATE), Seeded(44)
    sparse = sp.csr_array(np.where(np.abs(X) < 0.25, 0.0, X))
    given = {"budget": account}
    fits = [
        lambda: hr.erm.frank_wolfe(sparse, classes, loss=LOGISTIC, over=L1, spend=0.001, noise=noise, **given),
        lambda: hr.erm.frank_wolfe_general(X, classes, loss=LOGISTIC, over=L2, spend=0.001, noise=noise, **given),
        lambda: hr.erm.lasso(X, values, spend=0.001, noise=noise, **given),
        lambda: hr.erm.mirror_descent(sparse, classes, loss=HINGE, over=L2, spend=0.001, seed=45, **given),
        lambda: hr.erm.output_perturbation(X, values, loss=RIDGE, over=L2, spend=0.001, seed=45, **given),
        lambda: hr.erm.whitened_descent(sparse, classes, loss=LOGISTIC, spend=0.001, seed=45, **given),
        lambda: hr.erm.auto(X, values, loss=HUBER, over=L2, spend=0.001, seed=45, **given),
        lambda: hr.erm.noisy_sgd(X, values, loss=HUBER, over=L2, spend=0.001, seed=45, **given),
        lambda: hr.erm.objective_perturbation(X, values, loss=HUBER, over=L2, spend=0.001, seed=45, **given),
    ]
    found = [said(lambda fit=fit: [result(fit()), account.spent]) for fit in fits]
    slack = hr.Accountant(APPROXIMATE, slack=5e-7)
    given = {"budget": slack, "spend": slack.remaining / 2, "seed": 46, "loss": LOGISTIC, "over": L2}
    perturbed = said(lambda: result(hr.erm.objective_perturbation(X, classes, **given)))
    return [found, perturbed, slack.spent, slack.slack]


# Noise


@transcript
def noise() -> Any:
    source = Seeded(51)
    tables = np.arange(600.0).reshape(20, 30) / 4
    return plain(
        {
            "laplace": [source.add(10, paid(Laplace(1.0, 3.0))) for _ in range(20)],
            "laplace on a fine grid": source.add(tables[0], paid(Laplace(1.0, 0.7, 2.0**-10))),
            "laplace of a large scale": source.add(np.arange(20), paid(Laplace(1.0, 1e9))),
            "gaussian": [source.add(10.25, paid(Gaussian(1.0, 3.0, 0.25))) for _ in range(20)],
            "gaussian table": source.add(tables, paid(Gaussian(1.0, 40.0))).sum(axis=1),
            "gaussian of a large deviation": source.add(np.arange(20), paid(Gaussian(1.0, 1e8))),
            "choices": [source.choose(np.arange(12.0), paid(Exponential(1.0, 0.5))) for _ in range(30)],
            "comparisons": source._comparisons(2.5, 12),
            "comparison": [source._comparison(scale) for scale in (1.0, 7.5, 1.0, 1e8)],
            "samples": [source.subsample(100, 12), source.subsample(20, 12), source.subsample(9, 12, replace=True)],
            "generator": [source.generator().bit_generator.random_raw(3) for _ in range(2)],
            "many": [np.abs(source._comparisons(3.0, 200_000)).sum(), source.add(0, paid(Laplace(1.0, 1.0)))],
        }
    )


# Accounting

PAID = [
    Laplace(1.0, 20.0),
    Laplace(2.0, 30.0, 2.0**-6),
    Gaussian(1.0, 30.0),
    Gaussian(math.sqrt(2), 50.0, 0.5),
    Exponential(1.0, 0.05),
    AboveThreshold(1.0, 0.02, 0.03),
    AboveThreshold(0.3, 0.02, 0.03),
]


def priced(budget: hr.Budget) -> Any:
    account, spent = hr.Accountant(budget), []
    costs = [said(lambda e=event: [*plain(e)[1:], e.epsilon, e.rho, budget.cost(e)]) for event in PAID]
    for event in PAID * 3:
        spent.append(said(lambda e=event: [account.charge(e), account.spent, account.spent_epsilon][1:]))
    return plain(
        {
            "total": [budget.total, budget.currency],
            "costs": costs,
            "spent": spent,
            "sensitivities": [
                budget.linear(),
                budget.bounded_sum(1.5),
                budget.marginal_l1(),
                budget.marginal_l2(),
                budget.residual_l2([2, 3, 4]),
                budget.marginal_distance(),
                budget.gradient(2.0),
            ],
        }
    )


for kind, budget in BUDGETS.items():
    transcript(priced, f"accounting, {kind}", budget)


@transcript
def accounting_conversions() -> Any:
    budgets = [(e, d) for e in (0.01, 0.5, 1.0, 8.0) for d in (1e-12, 1e-6, 1e-2)]
    slack = hr.Accountant(APPROXIMATE, slack=2e-7)
    slack.charge(ApproximateDP(0.05, 1e-7))
    slack.charge(Gaussian(1.0, 30.0))
    return plain(
        {
            "rho": [hr.Budget(e, d).total for e, d in budgets],
            "with slack": [slack.spent, slack.slack, slack.spent_epsilon, said(lambda: slack.charge(ApproximateDP(0.1, 5e-7)))],
            "gaussians": [
                epsilon_of([Gaussian(1.0, sigma)] * count) for sigma in (5.0, 50.0) for count in (1, 10)
            ],
            "mixed": [epsilon_of(PAID[i:] + PAID[:i] * 2, 4.0) for i in range(len(PAID))],
            "exponentials": epsilon_of([Exponential(1.0, 0.1)] * 40, 2.0),
            "sampled": [subsampled_multiplier(1.0, 1e-6, rate, steps) for rate, steps in ((0.01, 100), (0.1, 20))],
        }
    )  # fmt: skip


def epsilon_of(events: Sequence[Any], epsilon: float = 8.0) -> float:
    account = hr.Accountant(hr.Budget(epsilon, 1e-6))
    for event in events:
        account.charge(event)
    return account.spent_epsilon


# Mechanisms without a public door

POOL = [hr.count({f"x{i}": True, f"x{j}": False}).on(FLAGS) for i, j in itertools.combinations(range(6), 2)]
POOL += [hr.linear(("x0", "x1"), uniform(6, 2, 2)).on(FLAGS)]


def pmw_online(budget: hr.Budget, step: str) -> Any:
    data, account = skewed(FLAGS, 10**7), hr.Accountant(budget)
    config = pmw.configure(budget, cells=FLAGS.size, scale=1e7, queries=100, beta=0.1, step=step)
    mechanism = pmw.OnlinePMW(config, data, account, Seeded(61))
    answers = [mechanism.ask(query) for query in POOL * 2]
    return plain(
        {
            "config": [config.alpha, config.rounds, config.threshold, config.eta, config.grid, config.guard, config.measurement],
            "answers": [[a.value, a.source, a.cost, a.measured_rows] for a in answers],
            "updates": mechanism.updates,
            "hypothesis": mechanism.hypothesis.marginal(("x0", "x3", "x5")),
            "events": counted(account.events),
        }
    )  # fmt: skip


def mwem_release(budget: hr.Budget, step: str) -> Any:
    data, account = skewed(FLAGS, 10**7), hr.Accountant(budget)
    config = mwem.configure(budget, cells=FLAGS.size, scale=1e7, queries=len(POOL), beta=0.1, alpha=0.05, step=step)
    found = mwem.release(config, POOL, data, account, Seeded(62))
    return plain(
        {
            "config": [config.alpha, config.rounds, config.eta, config.grid, config.choice, config.measurement],
            "measured": [[POOL.index(query) if query in POOL else -1, rows] for query, rows in found.measurements],
            "updates": [found.updates, found.stopped],
            "hypothesis": found.hypothesis.marginal(("x0", "x3", "x5")),
            "events": counted(account.events),
        }
    )


def small_database(budget: hr.Budget) -> Any:
    universe = hr.Universe.from_sizes({"a": 2, "b": 3})
    queries = [hr.count(a=1).on(universe), hr.count(b={0, 2}).on(universe), hr.count(a=0, b=1).on(universe)]
    queries += [hr.linear(("a", "b"), uniform(7, 2, 3)).on(universe)]
    data, account = skewed(universe, 300), hr.Accountant(budget)
    chosen = [
        said(lambda q=q, s=s: small_db.release(q, data, account, Seeded(s), size=6, epsilon=0.15).counts)
        for s, q in ((1, queries[:3]), (2, queries), (3, queries))
    ]
    last = said(lambda: small_db.release(queries[:3], data, account, Seeded(4), alpha=0.4).counts)
    return [chosen, last, counted(account.events)]


for kind, budget in BUDGETS.items():
    for step in ("paper", "hoeffding"):
        transcript(pmw_online, f"pmw, {step}, {kind}", budget, step)
        transcript(mwem_release, f"mwem, {step}, {kind}", budget, step)
    transcript(small_database, f"small database, {kind}", budget)

ROOT = math.sqrt(3)  # the norm of two features of ±1 and the intercept
FAMILIES = {
    "bounded": (0.14, 2 * ROOT, oracles.NoisyGradientDescentOracle(ROOT, 2.0, 3), LOGISTIC),
    "generalised linear": (0.1, 2 * ROOT, oracles.RegularizedOutputPerturbationOracle(ROOT, 1.0, 3, 2 * ROOT), hr.losses.Huber(1.0)),
    "strongly convex": (0.03, 10.5, oracles.OutputPerturbationOracle(5.25, 0.5, 3, 10.5), hr.losses.Squared(ridge=0.5)),
}  # fmt: skip


def convex_online(family: str, neighbours: str, step: str) -> Any:
    alpha, S, oracle, loss = FAMILIES[family]
    budget = hr.Budget(1.0, 1e-9, neighbours)
    given = {"cells": BITS.size, "queries": 8, "beta": 0.1, "scale_S": S, "oracle": oracle, "step": step}
    rows = math.ceil(2 * convex_pmw.rows_needed(budget, alpha * S, 0.1, 8, BITS.size, S, oracle, step))
    config = convex_pmw.configure(budget, rows=rows, alpha=alpha * S, **given)
    account = hr.Accountant(budget)
    mechanism = convex_pmw.OnlineConvexPMW(config, in_one_cell(BITS, rows), account, Seeded(63))
    asked = [("x0", ["x1", "x2"]), ("x3", ["x4", "x5"]), ("x0", ["x1", "x2"]), ("x5", ["x0", "x3"])]
    answers = []
    for target, features in asked:
        risk = dataclasses.replace(loss, target=target, features=tuple(features)).on(BITS)
        found = mechanism.ask(risk, L2)
        answers.append([found.theta, found.source, found.cost])
    return plain(
        {
            "config": [rows, config.rounds, config.threshold, config.eta, config.grid, config.guard, config.plan.event],
            "plan": [config.plan.error, config.plan.steps, config.plan.step, config.plan.ridge],
            "answers": answers,
            "hypothesis": mechanism.hypothesis.marginal(("x0", "x3", "x5")),
            "events": counted(account.events),
        }
    )


for family in FAMILIES:
    for neighbours in ("replace", "add-remove"):
        transcript(convex_online, f"convex pmw, {family}, {neighbours}", family, neighbours, "hoeffding")
transcript(convex_online, "convex pmw, paper's step", "strongly convex", "replace", "paper")


@transcript
def convex_pmw_needs_a_delta() -> Any:
    alpha, S, oracle, _ = FAMILIES["bounded"]
    given = {"cells": 64, "rows": 1e6, "queries": 8, "beta": 0.1, "scale_S": S, "oracle": oracle, "alpha": alpha}
    return [said(lambda: convex_pmw.configure(PURE, **given)), said(lambda: convex_offline.configure(PURE, **given))]


def convex_release(neighbours: str) -> Any:
    """Means of flags, ½(θ − q)² on [0, 1]: S = L = σ = 1."""
    budget = hr.Budget(1.0, 1e-9, neighbours)
    workload = [(hr.losses.Squared(target=f"x{i}").on(FLAGS), hr.Box(0.0, 1.0)) for i in range(3)]
    oracle = oracles.OutputPerturbationOracle(1.0, 1.0, 1, 1.0)
    config = convex_offline.configure(
        budget, cells=FLAGS.size, rows=10**7, queries=3, beta=0.1, scale_S=1.0, oracle=oracle, alpha=0.1
    )
    account = hr.Accountant(budget)
    found = convex_offline.release(config, workload, in_one_cell(FLAGS, 10**7), account, Seeded(64))
    return plain(
        [found.answers, found.updates, found.stopped, found.hypothesis.marginal(("x0", "x2")), counted(account.events)]
    )


for neighbours in ("replace", "add-remove"):
    transcript(convex_release, f"convex offline, {neighbours}", neighbours)


def sparse_vector_of(budget: hr.Budget, **options: Any) -> Any:
    guard = sv.guard_round(budget.total / 8, sensitivity=1.0)
    config = sv.SparseVector(100.0, guard, rounds=3, **options)
    account, source, progress, found = hr.Accountant(budget), Seeded(65), sv.Progress(), []

    def one(value: float) -> Any:
        nonlocal progress
        outcome, progress = sv.step(config, progress, value, account, source)
        return [outcome.above, outcome.measured, outcome.gap, outcome.cost, progress.tops]

    for value in (0, 40, 90.5, 180, 300, 99, 20, 400, 130, 10, 900, 50):
        found.append(said(lambda value=value: one(float(value))))
    return [found, counted(account.events)]


for kind, budget in BUDGETS.items():
    spent = Laplace(1.0, 60.0) if budget.pure else Gaussian(1.0, 60.0)
    transcript(sparse_vector_of, f"sparse vector, {kind}", budget)
    transcript(sparse_vector_of, f"sparse vector, measured, {kind}", budget, measurement=spent, gap=True)


@transcript
def games_of_accuracy() -> Any:
    data = skewed(FLAGS, 10**7)
    counts = np.asarray(data.marginal(FLAGS.names)).reshape(-1)
    config = pmw.configure(APPROXIMATE, cells=FLAGS.size, scale=1e7, queries=40, beta=0.1)
    analysts = {
        "worst": games.WorstOfPool(FLAGS, counts, config, POOL),
        "near": games.NearGap(FLAGS, counts, config, targets=(2 * config.alpha, 1.0, 1.5 * config.alpha)),
    }
    found = {}
    for name, analyst in analysts.items():
        account = hr.Accountant(APPROXIMATE)
        game = games.accuracy_game(
            analyst, lambda d, a=account: pmw.OnlinePMW(config, d, a, Seeded(66)).ask, 40, games.linear_error
        )
        found[name] = [[t.answer.value, t.answer.source, t.error] for t in game.turns], game.halted
    return plain(found)


@transcript
def games_of_thresholds() -> Any:
    config, width = sv.threshold_game_config(
        Amount.share_of(APPROXIMATE), threshold=300.0, rounds=4, queries=60, beta=0.1, sensitivity=3.0
    )
    account, source, progress = hr.Accountant(APPROXIMATE), Seeded(67), sv.Progress()

    def above(value: float) -> bool:
        nonlocal progress
        outcome, progress = sv.step(config, progress, value, account, source)
        return outcome.above

    game = games.threshold_game(lambda past: 50.0 * (len(past) % 9), above, 60)
    composed = games.adaptive_composition(
        lambda past: lambda d: source.add(d + len(past), paid(Laplace(1.0, 10.0))), 100, rounds=5
    )
    return plain([width, [[t.value, t.above] for t in game.turns], game.halted, game.wrong(400.0), composed])


@transcript
def audits() -> Any:
    one, other = Seeded(68), Seeded(69)
    event = Laplace(1.0, 1.0)
    scores = [one.add(np.zeros(4000), paid(event)), other.add(np.ones(4000), paid(event))]
    return plain(
        [
            audit.epsilon_lower_bound(
                lambda: one.add(0, paid(event)) >= 1, lambda: other.add(1, paid(event)) >= 1, 2000
            ),
            audit.epsilon_lower_bound_of_scores(*scores, confidence=0.99, delta=1e-6),
            audit.clopper_pearson(3, 50, 0.01),
            audit.runs_to_tell(0.1, 0.3, 1e-6, 0.01),
        ]
    )


@transcript
def learning_from_experts() -> Any:
    advice, truth = uniform(8, 30, 5) < 0.6, uniform(9, 30) < 0.5
    losses, queries = 2 * uniform(10, 40, 4) - 1, (uniform(11, 6, 16) < 0.5).astype(float)
    histogram = uniform(12, 16) / uniform(12, 16).sum()
    predictions = [experts.run_halving(advice, truth), experts.weighted_majority(advice, truth)]
    return plain(
        {
            "predictions": [[p.predicted, p.mistakes, p.weights] for p in predictions],
            "played": experts.multiplicative_weights(losses)[::8],
            "picked": experts.multiplicative_weights_picks(losses, uniform(13, 40)),
            "queries": [
                experts.multiplicative_weights_for_queries(queries, histogram, 0.02, step)
                for step in ("paper", "hoeffding")
            ],
            "bounds": [
                experts.halving_mistakes(9),
                experts.weighted_majority_mistakes(9, 3),
                experts.regret_bound(4, 40),
                experts.update_bound(0.05, 64, "paper"),
                experts.update_bound(0.05, 64, "hoeffding"),
            ],
        }
    )


@transcript
def bounds_of_theorems() -> Any:
    both = [(1.0, 0.0), (0.5, 1e-6)]
    return plain(
        {
            "pmw": [[bounds.pmw_rows(0.1, 0.1, *p, 100, 64), bounds.pmw_alpha(1e7, 0.1, *p, 100, 64)] for p in both],
            "mwem": [[bounds.mwem_rows(0.1, 0.1, *p, 100, 64), bounds.mwem_alpha(1e7, 0.1, *p, 100, 64)] for p in both],
            "small db": [
                bounds.small_db_size(0.1, 100),
                bounds.small_db_size_vc(0.1, 3),
                bounds.small_db_error(1e6, 12, 0.1, 1.0, 64, 0.1),
                bounds.small_db_rows(0.1, 0.1, 1.0, 100, 64),
                bounds.small_db_rows(0.1, 0.1, 1.0, 100, 64, 3),
                bounds.small_db_alpha(1e6, 0.1, 1.0, 100, 64),
                bounds.ln_databases(64, 12),
            ],
            "thresholds": [
                bounds.threshold_game_rows(0.1, 0.1, 1.0, 1e-6, 100, 5),
                bounds.threshold_game_alpha(1e6, 0.1, 1.0, 1e-6, 100, 5),
            ],
            "convex": convex_pmw.theorem_rows(0.1, 0.1, 1.0, 1e-6, 100, 64, 2.0),
        }
    )


# Stored and compared

OF_ROOMS = {
    "privacy": ("noise", "accounting"),
    "textbook": (
        "pmw, ", "mwem, ", "small database, ", "convex pmw", "convex offline, ", "sparse vector, ", "games of ", "learning from experts",
        "bounds of theorems",
    ),
}  # fmt: skip
KEPT = [name for name in TRANSCRIPTS if name.startswith(sum(OF_ROOMS.values(), ()))]
"""The transcripts of textbook and privacy, whose results are the mechanisms of papers and stay as they are.

All others follow from choices of this package, and change whenever one is made better. Their properties are tested where
they are made; a refactoring is checked by ``--write`` and ``--compare``, which run everything.
"""


def read(path: Path = STORED) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def recomputed(name: str) -> Any:
    """As read back from the file."""
    return json.loads(json.dumps(said(TRANSCRIPTS[name])))


CHARGES = ("kinds", "cost", "costs", "spent", "spent epsilon", "remaining", "total", "config", "plan")
"""Where prices and scales of noise are, which may be tiny: they are compared by their ratio alone."""


def difference(before: Any, after: Any, rtol: float = 0.0, atol: float = 0.0, path: str = "") -> str:
    """Return the first place where two transcripts differ, or "". Floats may differ by the tolerances, nothing else may."""
    if type(before) is not type(after):
        return f"{path}: {before!r} became {after!r}"
    if isinstance(before, dict | list):
        keys = list(before) if isinstance(before, dict) else range(len(before))
        if (list(after) if isinstance(after, dict) else range(len(after))) != keys:
            return f"{path}: {len(before)} entries became {len(after)}, or have other names"
        parts = ((before[k], after[k], rtol, 0.0 if k in CHARGES else atol, f"{path}/{k}") for k in keys)
        return next(filter(None, (difference(*part) for part in parts)), "")
    if before == after or (before != before and after != after):
        return ""
    if isinstance(before, float) and math.isclose(before, after, rel_tol=rtol, abs_tol=atol):
        return ""
    return f"{path}: {before!r} became {after!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Seeded transcripts of every mechanism.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--store", action="store_true", help="store those of textbook and privacy")
    action.add_argument("--write", type=Path, metavar="FILE", help="write all of them")
    action.add_argument("--compare", type=Path, metavar="FILE", help="name those that differ from the file in any bit")
    given = parser.parse_args()
    warnings.simplefilter("ignore", hr.NotPrivateWarning)
    wanted = KEPT if given.store else TRANSCRIPTS
    found = {name: recomputed(name) for name in wanted}
    if given.store or given.write:
        lines = [f"{json.dumps(name)}: {json.dumps(found[name], ensure_ascii=False)}" for name in found]
        (given.write or STORED).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return 0
    before = read(given.compare)
    changed = {name: difference(before[name], found[name]) for name in found if name in before}
    changed |= {name: "in one of the two only" for name in before.keys() ^ found.keys()}
    changed = {name: where for name, where in changed.items() if where}
    for name, where in changed.items():
        print(f"{name}\n    {where}")
    print(f"{len(changed)} of {len(found)} differ.")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
