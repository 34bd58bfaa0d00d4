"""Questions at random, of every kind, about the small made-up table; and sessions of every kind to ask them of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from people import SMALL, frame, opened

import hedgerow as hr

SIZES = {"age": 8, "sex": ["F", "M"], "smoker": [False, True], "region": 4}
LOGISTIC = hr.minimize(hr.losses.Logistic(target="smoker", features=["age", "sex"]), over=hr.L2Ball(2.0))
SQUARED = hr.minimize(hr.losses.Squared(target="age", features=["sex", "smoker"]), over=hr.L2Ball(1.0))


def predicate(rng: np.random.Generator) -> hr.Query:
    names = rng.choice(list(SIZES), rng.integers(1, 5), replace=False)
    parts: dict[str, Any] = {}
    for name in names:
        values = SIZES[name]
        if isinstance(values, list):
            parts[name] = values[rng.integers(2)]
        elif rng.random() < 0.5:
            low = int(rng.integers(values))
            parts[name] = (low, int(rng.integers(low, values)))
        else:
            parts[name] = {int(v) for v in rng.choice(values, rng.integers(1, values), replace=False)}
    return hr.count(parts)


def question(rng: np.random.Generator) -> hr.Query:
    where = predicate(rng)
    number = str(rng.choice(["age", "region"]))
    names = [str(n) for n in rng.choice(list(SIZES), rng.integers(1, 4), replace=False)]
    kinds: list[Callable[[], hr.Query]] = [
        lambda: where,
        lambda: where,
        lambda: where,
        lambda: hr.any_of(where, predicate(rng)),
        lambda: hr.marginal(*names),
        lambda: hr.mean(number, where=where),
        lambda: hr.share(predicate(rng), where),
        lambda: hr.ratio(predicate(rng), where),
        lambda: hr.median(number, where=where),
        lambda: hr.quantile(number, float(rng.random()), where=where),
        lambda: hr.total(number, where=where),
        lambda: hr.variance(number),
        lambda: hr.correlation("age", "region"),
        lambda: hr.linear(("age", "sex"), rng.random((8, 2))),
        lambda: hr.parity("sex", "smoker"),
        lambda: hr.interpolated_quantile(number, float(rng.random()), where=where),
        lambda: hr.difference(predicate(rng), where),
        lambda: hr.relative_risk(hr.count(smoker=True), where, predicate(rng)),
        lambda: hr.odds_ratio(hr.count(smoker=True), where, predicate(rng)),
        lambda: hr.trend("region", "age", where=hr.count(sex="F")),
        lambda: hr.cramers_v("sex", "region"),
        lambda: hr.compare(hr.group_by("region").share(hr.count(smoker=True))),
    ]
    return kinds[rng.integers(len(kinds))]()


def tiny_questions() -> list[hr.Query]:
    """Every kind of question about two columns, which a table of all tables allows."""
    female, smokes = hr.count(sex="F"), hr.count(smoker=True)
    return [
        female, smokes & female, hr.any_of(female, smokes), hr.marginal("sex", "smoker"), hr.marginal("sex"),
        hr.share(smokes, female), hr.mean("smoker", where=female), hr.parity("sex", "smoker"),
        hr.difference(hr.share(smokes, female), hr.share(smokes, hr.count(sex="M"))), hr.cramers_v("sex", "smoker"),
        hr.odds_ratio(smokes, female, hr.count(sex="M")),
        hr.minimize(hr.losses.Logistic(target="smoker", features=["sex"]), over=hr.L2Ball(1.0)),
    ]  # fmt: skip


def questions(many: int, seed: int) -> list[hr.Query]:
    rng = np.random.default_rng(seed)
    return [*(question(rng) for _ in range(many)), LOGISTIC, SQUARED]


def practical(budget: hr.Budget, **options: Any) -> hr.Session:
    return opened(frame(), budget=budget, **{"guard": 0.0, "reserve": 0.2, **options})


def several_blocks(budget: hr.Budget) -> hr.Session:
    session = practical(budget, block="january")
    session.append(frame(15_000, 1), block="february")
    return session.append(frame(10_000, 2), block="march")


def with_losses(budget: hr.Budget) -> hr.Session:
    return practical(budget, workload=[hr.marginal("age", "sex"), hr.marginal("region", "smoker"), LOGISTIC])


def released(budget: hr.Budget) -> hr.Session:
    return hr.release(frame(), universe=SMALL, budget=budget, seed=1)


def guarded(budget: hr.Budget) -> hr.Session:
    return opened(frame(), budget=budget, guard=0.2, reserve=0.2)


def theory(budget: hr.Budget) -> hr.Session:
    return opened(frame(), budget=budget, profile="theory")


def mwem(budget: hr.Budget) -> hr.Session:
    return hr.release(frame(), universe=SMALL, budget=budget, workload=hr.marginals(1), method="mwem", seed=1)


def matrix(budget: hr.Budget) -> hr.Session:
    workload = [hr.marginal("age", "sex"), hr.marginal("region"), hr.mean("age", where=hr.count(smoker=True))]
    return hr.release(frame(), universe=SMALL, budget=budget, workload=workload, method="matrix", seed=1)


def convex(budget: hr.Budget) -> hr.Session:
    return hr.release(frame(), universe=SMALL, budget=budget, workload=[LOGISTIC, SQUARED], method="convex", seed=1)


def small_db(budget: hr.Budget) -> hr.Session:
    tiny = frame(400)[["sex", "smoker"]]
    return hr.release(tiny, universe=TINY, budget=budget, workload=hr.marginals(2), method="small_db", seed=1)


TINY = hr.Universe(sex=SMALL["sex"], smoker=hr.Flag())
REPLACE, ADD_REMOVE = hr.Budget(1.0, 1e-6), hr.Budget(1.0, 1e-6, "add-remove")
PURE = hr.Budget(1.0, 0.0)


@functools.cache
def small_file() -> bytes:
    """A file of a tiny session, with an answer of each kind and a purchase."""
    import tempfile
    from pathlib import Path

    universe = hr.Universe(a=hr.Integers(0, 3), b=hr.Flag())
    from hedgerow.data import HistogramSource

    data = HistogramSource(universe, np.array([[900, 300], [200, 800], [400, 100], [50, 700]]))
    session = hr.open(data, universe=universe, budget=REPLACE, seed=1, reserve=0.3, guard=0.0)
    session.ask(hr.marginal("a", "b"))
    session.ask(hr.count(a=1), within=0.02)
    session.ask(hr.mean("a", where=hr.count(b=True)))
    with tempfile.TemporaryDirectory() as folder:
        return session.publish(Path(folder) / "small.hedgerow", answers="all").read_bytes()
