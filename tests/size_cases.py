"""Cases of test_sizes.py, run in one process under a limit on its addresses: a case a line in, outcomes of its steps out, as JSON.

A step is one call: an opening, a question, a fit, a draft. What came of it is "answered", or the name of the error and its message,
with what was spent before and after.
"""

from __future__ import annotations

import datetime
import gc
import itertools
import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import hedgerow as hr

ROWS = 300
Step = Callable[[], Any]


def attribute(kind: str, size: int) -> Any:
    """An attribute of about so many values: kinds that list theirs have at most a public number of them."""
    if kind == "whole":
        return hr.Integers(-3, size - 4)
    if kind == "wide":
        return hr.Integers(10**299, 10**299 + size - 1, missing=True)
    if kind == "bins":
        return hr.Range(0.0, 1e6, bins=size, other=True)
    if kind == "edges":
        return hr.Range(edges=range(size + 1), whole=True)
    if kind == "categories":
        return hr.Categories([f"v{i}" for i in range(min(size, 10**5))], other=True)
    if kind == "days":
        return hr.Dates(datetime.date.min, datetime.date.fromordinal(min(size, 3_652_059)), by="day")
    return hr.Flag(missing=True)


def column(declared: Any, rows: int) -> list[Any]:
    """Some of its values."""
    drawn = np.random.default_rng(declared.size % 2**32).random(rows)
    cells = (drawn * min(declared.size, 2**53)).astype(np.int64)
    if isinstance(declared, hr.Integers):
        return [declared.low + int(cell) for cell in cells]
    if isinstance(declared, hr.Range):
        return list(drawn * declared.edges[-1])
    return [declared.labels[min(int(cell), declared.size - 1)] for cell in cells]


def questions(universe: Any) -> Iterator[tuple[str, Any]]:
    """Every kind of question, about each attribute, some pairs and all of them."""
    numeric = [n for n in universe.names if not isinstance(universe[n], hr.Categories)]
    flags = [n for n in universe.names if isinstance(universe[n], hr.Flag)]
    for name in universe.names:
        first = universe[name].labels[0]
        yield f"count {name}", lambda name=name, first=first: hr.count({name: first})
        yield f"not {name}", lambda name=name, first=first: ~hr.count({name: first}) | hr.count({name: hr.not_(first)})
        yield f"marginal {name}", lambda name=name: hr.marginal(name)
        yield f"top {name}", lambda name=name: hr.top(name, 3)
        yield f"histogram {name}", lambda name=name: hr.histogram(name)
        yield f"groups {name}", lambda name=name: hr.group_by(name).mean(numeric[0])
        yield f"medians {name}", lambda name=name: hr.group_by(name).median(numeric[-1])
    for name in numeric:
        some = hr.count({universe.names[-1]: universe[universe.names[-1]].labels[0]})
        yield f"mean {name}", lambda name=name: hr.mean(name)
        yield f"mean of some {name}", lambda name=name, some=some: hr.mean(name, where=some)
        yield f"median {name}", lambda name=name: hr.median(name)
        yield f"median of some {name}", lambda name=name, some=some: hr.median(name, where=some)
        yield f"total {name}", lambda name=name: hr.total(name)
        yield f"variance {name}", lambda name=name: hr.variance(name)
        yield f"range {name}", lambda name=name: hr.count({name: (None, 10)})
        yield f"edges {name}", lambda name=name: hr.histogram(name, edges=[0, 1, 2, 5, 10])
        event = hr.count({universe.names[-1]: universe[universe.names[-1]].labels[0]})
        yield f"survival {name}", lambda name=name, event=event: hr.survival(name, event)
        yield f"trend {name}", lambda name=name, event=event: hr.trend(event, name)
        yield f"ratio {name}", lambda name=name, event=event: hr.ratio(hr.mean(name), hr.mean(name, where=event))
    for a, b in itertools.islice(itertools.combinations(universe.names, 2), 3):
        one = {name: universe[name].labels[0] for name in (a, b)}
        yield f"pair {a} {b}", lambda a=a, b=b: hr.marginal(a, b)
        yield f"both {a} {b}", lambda one=one: hr.count(one)
        yield f"either {a} {b}", lambda a=a, b=b, one=one: hr.count({a: one[a]}) | hr.count({b: one[b]})
        yield f"share {a} {b}", lambda a=a, b=b, one=one: hr.share(hr.count({a: one[a]}), hr.count({b: one[b]}))
        yield (
            f"difference {a} {b}",
            lambda a=a, b=b, one=one: hr.difference(hr.count({a: one[a]}), hr.count({b: one[b]})),
        )
        yield f"cramers {a} {b}", lambda a=a, b=b: hr.cramers_v(a, b)
        part = hr.count({b: universe[b].labels[0]})
        yield f"compare {a} {b}", lambda a=a, part=part: hr.compare(hr.group_by(a).share(part))
        yield (
            f"compare with one {a} {b}",
            lambda a=a, part=part: hr.compare(
                hr.group_by(a).share(part), against=universe[a].labels[0], measure="odds ratio"
            ),
        )
        yield (
            f"relative {a} {b}",
            lambda a=a, part=part: hr.relative_risk(
                part, hr.count({a: universe[a].labels[0]}), ~hr.count({a: universe[a].labels[0]})
            ),
        )
        yield (
            f"odds {a} {b}",
            lambda a=a, part=part: hr.odds_ratio(
                part, hr.count({a: universe[a].labels[0]}), ~hr.count({a: universe[a].labels[0]})
            ),
        )
    for a, b in itertools.islice(itertools.combinations(numeric, 2), 3):
        yield f"correlation {a} {b}", lambda a=a, b=b: hr.correlation(a, b)
    yield "all", lambda: hr.marginal(*universe.names)
    ball = hr.L2Ball(1.0)
    for a, b in itertools.islice(itertools.permutations(numeric, 2), 2):
        yield f"squared {a} {b}", lambda a=a, b=b: hr.minimize(hr.losses.Squared(target=a, features=[b]), ball)
        yield f"onehot {a} {b}", lambda a=a, b=b: hr.minimize(hr.losses.Huber(target=a, features=[b], onehot=[b]), ball)
        yield f"quantile loss {a}", lambda a=a: hr.minimize(hr.losses.Pinball(target=a, features=[]), ball)
        yield (
            f"classes {a} {b}",
            lambda a=a, b=b: hr.minimize(hr.losses.MultinomialLogistic(target=a, features=[b]), ball),
        )
    for a in flags[:1]:
        rest = [n for n in universe.names if n != a]
        yield f"logistic {a}", lambda a=a, rest=rest: hr.minimize(hr.losses.Logistic(target=a, features=rest), ball)


def of_session(session: Any, wanted: str | None) -> Iterator[tuple[str, Step]]:
    """All that can be asked of a session."""
    for name, query in questions(session.universe):
        yield f"ask {name}", lambda query=query: session.ask(query())
        if wanted is not None:
            yield f"buy {name}", lambda query=query: session.ask(query(), within=float(wanted))
    names = session.universe.names
    yield "price", lambda: session.price(hr.count({names[0]: session.universe[names[0]].labels[0]}), within=0.1)
    yield "ask_all", lambda: session.ask_all([hr.marginal(name) for name in names])
    for select in (
        f"SELECT {names[0]}, count(*) FROM data GROUP BY {names[0]}",
        f"SELECT {names[-1]}, avg({names[0]}) FROM data GROUP BY {names[-1]}",
        f"SELECT {', '.join(names)}, count(*) FROM data GROUP BY {', '.join(names)}",
        f"SELECT min({names[0]}), max({names[0]}), count(*) FROM data WHERE {names[0]} > 5",
        f"SELECT DISTINCT {names[0]} FROM data",
        f"SELECT avg({', avg('.join(f'{names[0]}) AS v{i}' for i in range(500))} FROM data",
    ):
        yield f"sql {select}", lambda select=select: session.sql(select)
    yield "associations", lambda: session.associations()
    yield "many associations", lambda: session.associations(10**9)
    yield "describe", lambda: (session.describe(), session.statement())
    yield "public view", lambda: (session.public_view().describe(), session.public_view().ask(hr.marginal(*names)))
    yield "synthetic", lambda: session.synthetic(50)
    yield "many synthetic", lambda: session.synthetic(10**13)
    yield "report", lambda: (session.report().html, str(session), repr(session), session.certificate)


class Paying:
    """Whoever pays for the steps of a case."""

    def __init__(self) -> None:
        self.ledger: Any = None

    @property
    def spent(self) -> float:
        return 0.0 if self.ledger is None else float(self.ledger.spent)


def session_steps(case: dict[str, Any], paying: Paying) -> Iterator[tuple[str, Step]]:
    """Open a table of these attributes, and ask everything."""
    declared: dict[str, Any] = {}

    def declare() -> None:
        declared["u"] = hr.Universe({f"a{i}": attribute(*a) for i, a in enumerate(case["attributes"])})
        repr(declared["u"]), str(declared["u"]), hash(declared["u"]), declared["u"] == declared["u"]

    yield "declare", declare
    if "u" not in declared:
        return
    universe = declared["u"]
    frame = pd.DataFrame({name: pd.Series(column(universe[name], ROWS), dtype=object) for name in universe.names})
    budget = hr.Budget(10.0, 1e-6, neighbours=case["neighbours"])
    opened = []

    def release() -> None:
        ball, a, b = hr.L2Ball(1.0), universe.names[0], universe.names[-1]
        workload = {
            "": None, "pairs": hr.marginals(2), "conjunctions": hr.conjunctions(2), "all": [hr.marginal(*universe.names)],
            "counts": [hr.count({a: universe[a].labels[0]}), hr.count({b: universe[b].labels[0]})],
            "fit": [hr.minimize(hr.losses.Huber(target=a, features=[b]), ball)],
            "onehot": [hr.minimize(hr.losses.Squared(target=a, features=[b], onehot=[b]), ball)],
        }[case.get("workload", "")]  # fmt: skip
        opened.append(
            hr.release(
                frame, universe=universe, budget=budget, method=case["method"], workload=workload, seed=1,
                limit=case.get("limit"), progress=False,
            )
        )  # fmt: skip

    def open_session() -> None:
        opened.append(
            hr.open(
                frame, universe=universe, budget=budget, ledger=paying.ledger, profile=case["profile"], seed=1,
                limit=case.get("limit"), reserve=case.get("reserve"), progress=False,
            )
        )  # fmt: skip

    if "method" in case:
        yield "release", release
    else:
        paying.ledger = hr.Accountant(budget)
        yield "open", open_session
    if opened:
        paying.ledger = opened[0].ledger
        yield from of_session(opened[0], case.get("within"))


def fit_steps(case: dict[str, Any], paying: Paying) -> Iterator[tuple[str, Step]]:
    """Fit models of p features, by every solver."""
    import scipy.sparse

    n, p = case["rows"], case["p"]
    X = scipy.sparse.random_array((n, p), density=min(1.0, 3 / p), format="csr", rng=np.random.default_rng(1))
    y = (np.arange(n) % 2).astype(float)
    budget = hr.Budget(1.0, 1e-6, neighbours=case["neighbours"])
    given: dict[str, Any] = {"seed": 1, "expected_rows": None if case["neighbours"] == "replace" else n}
    ball, simplex = hr.L2Ball(1.0), hr.L1Ball(1.0)
    erm: Any = hr.erm
    for solver, over in (
        ("auto", ball), ("auto", simplex), ("frank_wolfe", simplex), ("frank_wolfe_general", ball),
        ("mirror_descent", simplex), ("noisy_sgd", ball), ("objective_perturbation", ball), ("output_perturbation", ball),
        ("regularised_output_perturbation", None), ("whitened_descent", ball),
    ):  # fmt: skip
        paying.ledger = hr.Accountant(budget, slack=budget.delta / 2)
        loss = hr.losses.Logistic(ridge=0.01 if solver == "output_perturbation" else 0.0)
        yield (
            f"{solver} {over!r}"[:60],
            lambda solver=solver, over=over, ledger=paying.ledger, loss=loss: getattr(erm, solver)(
                X, y, loss=loss, over=over, budget=ledger, **given
            ),
        )
    paying.ledger = hr.Accountant(budget)
    yield "lasso", lambda ledger=paying.ledger: erm.lasso(X, y, budget=ledger, **given)


def draft_steps(case: dict[str, Any], paying: Paying) -> Iterator[tuple[str, Step]]:
    """Draft a universe of a table with numbers of this size."""
    rng = np.random.default_rng(1)
    numbers = (rng.random(2000) * float(case["largest"])).astype(object)
    frame = pd.DataFrame(
        {
            "x": pd.Series([int(v) for v in numbers] if case["whole"] else numbers, dtype=object),
            "t": [f"v{i % 50}" for i in range(2000)],
        }
    )
    budget = hr.Budget(5.0, 1e-6, neighbours=case["neighbours"])
    paying.ledger = hr.Accountant(budget, slack=budget.delta / 2)
    yield (
        f"draft of {case['bins']} bins",
        lambda: hr.drafting.draft(
            frame, budget=budget, ledger=paying.ledger, bins=case["bins"], most=case["most"], seed=1
        ),
    )


KINDS = {"session": session_steps, "fit": fit_steps, "draft": draft_steps}


def outcomes(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the outcome of each step of a case."""
    paying = Paying()
    every, offset = case.get("every", 1), case.get("offset", 0)
    for place, (name, step) in enumerate(KINDS[case["kind"]](case, paying)):
        wanted = (place + offset) % every == 0 and any(name.startswith(start) for start in case.get("only", [""]))
        if name not in ("declare", "open", "release") and not wanted:
            continue
        before, start = paying.spent, time.perf_counter()
        error, message = "", ""
        try:
            step()
        except BaseException as found:  # whatever it is, the parent says whether it may be
            error, message = type(found).__name__, str(found)
            ours = isinstance(found, hr.HedgerowError)
            if not ours:
                places = reversed(traceback.extract_tb(found.__traceback__)[-9:])
                message += "".join(f" < {Path(place.filename).name}:{place.lineno}" for place in places)
            found.__traceback__ = None  # with which all arrays of its frames would stay
        else:
            ours = True
        yield {
            "step": name, "error": error, "message": message[:600], "ours": ours, "before": before, "after": paying.spent,
            "seconds": round(time.perf_counter() - start, 2),
        }  # fmt: skip


def main() -> None:
    import resource

    addresses = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        case = json.loads(line)
        gc.collect()
        for outcome in outcomes(case):
            print(json.dumps({"case": case} | outcome), flush=True)


if __name__ == "__main__":
    main()
