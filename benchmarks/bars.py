"""Measure bars against true errors, the cost of a certificate, and purchases. Writes docs/benchmarks-bars.md.

    python benchmarks/bars.py [--seeds 10] [--quick]

Four tables at ε = 1, δ = 1e-6: adult_dense and nltcs, coded as the projects that distribute them do, a made one of 50,000 rows whose
eight attributes depend on each other in chains and threes, and one of households that was left out of the search for constants. Needs ../shared; says what it
skips.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.data import DataSource, Table
from hedgerow.engine.practical.engine import CERTIFICATE
from hedgerow.errors import BudgetExceeded, NotPrivateWarning
from hedgerow.query.linear import Linear, answer_all
from hedgerow.research.pages import short_lines
from hedgerow.session import Session

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
PAGE = ROOT / "docs" / "benchmarks-bars.md"
ORDERED = {"age", "education-num", "hours-per-week"}
BUDGET = hr.Budget(1.0, 1e-6)
RESERVE = 0.05
FEWER = 3  # sessions, where many are opened
OF_COST = 10  # sessions
warnings.simplefilter("ignore", NotPrivateWarning)


def tables() -> Iterator[tuple[str, Table]]:
    for name in ("adult_dense", "nltcs"):
        folder = DATA / name
        if not folder.exists():
            print(f"{name}: skipped, {folder} is not there")
            continue
        sizes = json.loads((folder / f"{name}-domain.json").read_text())
        frame = pd.read_csv(folder / f"{name}.csv.gz")[list(sizes)]
        yield name, Table(frame, universe_of(sizes, ORDERED))
    yield "made", made()
    yield "households", households()


def universe_of(sizes: dict[str, int], ordered: set[str]) -> hr.Universe:
    return hr.Universe(
        {a: hr.Integers(0, m - 1) if a in ordered else hr.Categories(range(m)) for a, m in sizes.items()}
    )


def made(rows: int = 50_000) -> Table:
    rng = np.random.default_rng(7)
    sizes = {"a": 10, "b": 4, "c": 6, "d": 2, "e": 12, "f": 3, "g": 5, "h": 2}
    columns: dict[str, np.ndarray] = {"a": rng.binomial(9, 0.4, rows), "b": rng.integers(0, 4, rows)}
    for name, m in list(sizes.items())[2:]:
        one, two = list(columns.values())[-2:]
        columns[name] = (one + two * (one > 1) + rng.integers(0, max(2, m // 2), rows)) % m
    return Table(pd.DataFrame(columns), universe_of(sizes, {"a", "e", "g"}))


def households(rows: int = 50_000) -> Table:
    """Draw a tree of attributes, each from its parent and now and then from a second one."""
    rng = np.random.default_rng(23)
    sizes = {
        "size": 8,
        "rooms": 9,
        "tenure": 4,
        "heating": 5,
        "region": 11,
        "cars": 4,
        "internet": 2,
        "pension": 2,
        "income": 14,
    }
    parents = {
        "rooms": "size",
        "tenure": "rooms",
        "heating": "tenure",
        "cars": "size",
        "internet": "region",
        "pension": "size",
        "income": "rooms",
    }
    columns: dict[str, np.ndarray] = {}
    for name, m in sizes.items():
        above = columns.get(parents.get(name, ""), np.zeros(rows, int))
        laws = rng.dirichlet(np.full(m, 0.8), int(above.max()) + 1).cumsum(axis=1)
        drawn = (rng.random(rows)[:, None] > laws[above]).sum(axis=1)
        other = columns.get("region", above)
        columns[name] = np.minimum(np.where(rng.random(rows) < 0.1, other, drawn), m - 1)
    return Table(pd.DataFrame(columns), universe_of(sizes, {"size", "rooms", "cars", "income"}))


def questions(universe: hr.Universe, count: int, seed: int) -> list[Linear]:
    """Return questions on one to three attributes: a range of an ordered one, and up to a third of the values of another."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        masks = {}
        for i in rng.choice(len(universe.names), int(rng.integers(1, 4)), replace=False):
            name, m = universe.names[i], universe.shape[i]
            low, high = sorted(rng.integers(0, m, 2))
            some = rng.choice(m, int(rng.integers(1, max(2, -(-m // 3) + 1))), replace=False)
            masks[name] = np.isin(np.arange(m), np.arange(low, high + 1) if universe[name].ordered else some)
        query = Linear.product(universe, masks)
        if query.attributes:
            found.append(query)
    return found


def opened(data: DataSource, seed: int, **options: Any) -> Session:
    return hr.open(data, universe=data.universe, budget=BUDGET, seed=seed, **{"reserve": RESERVE, **options})


def truths(data: DataSource, queries: list[Linear]) -> np.ndarray:
    return answer_all(queries, data.marginal) / data.rows


def bars(name: str, data: DataSource, seed: int, count: int) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Measure the bars of each class of questions, and of means within one condition if there are numbers."""
    began = time.process_time()
    session, asked = opened(data, seed), questions(data.universe, count, 1)
    cpu = time.process_time() - began
    found = session._engine.free(asked)
    assert found is not None
    value, bar, usual = (np.array([getattr(e, f) for e in found], float) for f in ("value", "error", "typical"))
    error = np.abs(value - truths(data, asked))
    rows = []
    for size in (1, 2, 3, None):
        some = np.array([size in (None, len(q.attributes)) for q in asked])
        worst = _largest(session, data, size)
        rows.append(
            {
                "table": name, "attributes": size or "all", "median error": np.median(error[some]), "mean error": error[some].mean(),
                "typical": np.nanmean(usual[some]), "median bar": np.median(bar[some]), "largest bar": np.nanmax(bar[some]),
                "bar/error": np.median(bar[some] / np.maximum(error[some], 1e-12)), "p99 of bars": np.quantile(bar[some], 0.99) / worst,
                "outside": int((error > bar + 1e-12)[some].sum()), "cpu": cpu,
            }
        )  # fmt: skip
    return rows, means(name, data, session)


def means(name: str, data: DataSource, session: Session) -> dict[str, Any] | None:
    """Ask for means of every number, within every value of every other attribute that a twentieth of the rows have."""
    universe, found = data.universe, []
    numbers = [n for n in universe.names if universe[n].ordered]
    for number, other in itertools.product(numbers, universe.names):
        if number == other:
            continue
        joint = data.marginal(universe.order({number, other}))
        counts = joint if universe.names.index(number) > universe.names.index(other) else joint.T
        for k in range(universe[other].size):
            if counts[k].sum() >= data.rows / 20:
                answer = session.ask(hr.mean(number, where=hr.count({other: k})))
                truth = float(np.average(np.arange(universe[number].size), weights=counts[k]))
                found.append((abs(answer.value - truth), math.inf if answer.error is None else float(answer.error)))
    if not found:
        return None
    error, bar = np.array(found).T
    return {
        "table": name, "means": len(found), "median error": np.median(error), "median bar": np.median(bar),
        "bar/error": np.median(bar) / np.median(error), "outside": int((error > bar + 1e-12).sum()),
    }  # fmt: skip


def over_seeds(runs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Combine one row over all runs: the mean of each figure, the least and the most of ratios, the sum of misses."""
    rows = []
    for same in zip(*runs, strict=True):
        row: dict[str, Any] = {}
        for key, first in same[0].items():
            values = [each[key] for each in same]
            if isinstance(first, str) or key in ("attributes", "means"):
                row[key] = first
            elif key == "outside":
                row[key] = sum(values)
            elif key in ("bar/error", "p99 of bars"):
                row[key] = f"{np.mean(values):.3g} ({min(values):.3g}–{max(values):.3g})"
            else:
                row[key] = float(max(values) if key == "largest bar" else np.mean(values))
        rows.append(row)
    return rows


def _largest(session: Session, data: DataSource, size: int | None) -> float:
    """The largest true error of any question of the class: what a certificate would say without noise."""
    from hedgerow.engine.practical.certificate.largest_errors import largest_error

    universe, worst = data.universe, 0
    for k in (1, 2, 3) if size is None else (size,):
        for names in itertools.combinations(universe.names, k):
            believed = np.rint(data.rows * session.hypothesis.marginal(names)).astype(np.int64)
            worst = max(worst, largest_error(data.marginal(names) - believed, [universe[n].ordered for n in names]))
    return worst / data.rows


def cost(name: str, data: DataSource, seeds: int, count: int) -> dict[str, Any]:
    """Mean errors where the certificate's share is kept from the hypothesis, and where it is not, over as many sessions."""
    asked = questions(data.universe, count, 1)
    truth, found, errors = truths(data, asked), {}, {}
    share = CERTIFICATE[BUDGET.currency] * (1 - RESERVE)
    for label, reserve in (("with", RESERVE + share), ("without", RESERVE)):
        errors[label] = [
            np.abs(answer_all(asked, _uncertified(data, 100 + seed, reserve).hypothesis.marginal) - truth).mean()
            for seed in range(seeds)
        ]
        found[label] = float(np.mean(errors[label]))
    spread = math.hypot(*(float(np.std(each, ddof=1) / np.mean(each)) / math.sqrt(seeds) for each in errors.values()))
    return {"table": name, **found, "more": found["with"] / found["without"] - 1, "standard error": spread}


def _uncertified(data: DataSource, seed: int, reserve: float) -> Session:
    from hedgerow.engine.practical.engine import build_practical_engine
    from hedgerow.privacy.noise import Seeded

    ledger, noise = hr.Accountant(BUDGET), Seeded(seed)
    options: dict[str, Any] = {"workload": None, "queries": 1, "beta": 0.05, "guard": 0.0, "certify": False}
    return Session(data, ledger, noise, build_practical_engine(data, ledger, noise, reserve=reserve, **options))


def bought(name: str, data: DataSource, seeds: int, count: int) -> list[dict[str, Any]]:
    """Questions of three attributes to half their free bar, so many of a session, by how much is kept for them."""
    asked = [q for q in questions(data.universe, 20 * count * seeds, 2) if len(q.attributes) == 3]
    rows = []
    for reserve in (0.2, 0.4):
        before, after, met, refused = [], [], 0, 0
        for seed in range(seeds):
            session, some = opened(data, 300 + seed, reserve=reserve), asked[seed * count : (seed + 1) * count]
            for query, true in zip(some, truths(data, some), strict=True):
                free, spent = session._engine.linear(query, None), session.spent
                assert free.error is not None
                within = float(free.error) / 2
                try:
                    paid = session._engine.linear(query, within)
                except BudgetExceeded:
                    assert session.spent == spent
                    refused += 1
                    continue
                assert paid.error is not None
                met += bool(paid.error <= within * (1 + 1e-9))
                before.append(abs(free.value - true))
                after.append(abs(paid.value - true))
        rows.append(
            {
                "table": name, "reserve": reserve, "bought": len(after), "met": met, "refused unpaid": refused,
                "median error before": np.median(before), "median error after": np.median(after),
                "mean before": np.mean(before), "mean after": np.mean(after),
            }
        )  # fmt: skip
    return rows


def triples() -> float:
    """CPU seconds of a certificate of all triples of 15 attributes of 8 values at 10⁵ rows, beyond that of the opening."""
    universe = hr.Universe({f"x{i}": hr.Integers(0, 7) if i % 2 else hr.Categories(range(8)) for i in range(15)})
    rng = np.random.default_rng(0)
    data = Table(pd.DataFrame({n: rng.integers(0, 8, 10**5) for n in universe.names}), universe)
    from hedgerow.engine.practical.certificate.certificate_purchase import buy_certificate
    from hedgerow.privacy.allowance import Allowance
    from hedgerow.privacy.noise import Seeded

    known = hr.open(
        data, universe=universe, budget=BUDGET, seed=0, workload=[hr.count({n: 0}) for n in universe.names]
    )._engine.knowledge
    ledger = hr.Accountant(BUDGET)
    data.forget()
    began = time.process_time()
    made = buy_certificate(data, Seeded(0), known, Allowance(ledger, 0.05 * BUDGET.total), 0.025, 0.025)
    assert made is not None and made.certificate is not None and made.certificate.limits[2].sets == 455
    return time.process_time() - began


def markdown(rows: list[dict[str, Any]]) -> str:
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    lines += [
        "| " + " | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()) + " |" for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    given, _ = parser.parse_known_args()
    count, seeds = (400, 1) if given.quick else (3000, given.seeds)
    said, costs, purchases, numbers = [], [], [], []
    for name, data in tables():
        runs = [bars(name, data, seed, count) for seed in range(seeds)]
        said += over_seeds([run for run, _ in runs])
        print(*said[-4:], *(of_means for _, of_means in runs), sep="\n", flush=True)
        if runs[0][1] is not None:
            numbers += over_seeds([[of_means] for _, of_means in runs if of_means is not None])
        costs.append(cost(name, data, 2 if given.quick else OF_COST, count))
        print(costs[-1], flush=True)
        purchases += bought(name, data, min(FEWER, seeds), 5)
        print(*purchases[-2:], sep="\n", flush=True)
    seconds = triples()
    page = f"""# Width of error bars

`python benchmarks/bars.py`; ε = 1, δ = 1e-6, replace-one, {seeds} sessions a table, {count:,} random questions of one to three attributes in each.

- *bar/error*: the median of each bar divided by the true error of its answer; the mean over sessions, with the smallest and the largest.
- *p99 of bars*: the 99th percentile of the bars, divided by the largest true error of any question of the class.
- *largest bar*: the largest bar of all sessions.
- *outside*: the number of errors, over all sessions, that exceed their bar.

The table *households* was not used in the search for constants. But its largest bar was known before the last constants were set, and the
balance between means and products was set with all three tables in view.

{markdown(said)}

Means of a number among the rows of one condition that holds for a twentieth of the rows, in units of the number. *bar/error*: the median bar divided by the median error.

{markdown(numbers)}

The cost of a certificate: mean errors with it, and of a session that spends its share on the hypothesis instead, over {2 if given.quick else OF_COST} seeds each.

{markdown(costs)}

The mean over all tables is {np.mean([c["more"] for c in costs]):.3f}, with a standard error of {math.sqrt(sum(c["standard error"] ** 2 for c in costs)) / len(costs):.3f} (bar 0.03).

Paying for half the free bar (`within=`), for questions of three attributes: {min(FEWER, seeds)} sessions each, with a fifth and with two fifths of the budget in reserve.

{markdown(purchases)}

A certificate of all 455 triples of 15 attributes of 8 values at 10⁵ rows takes {seconds:.1f} s of CPU.
"""
    PAGE.write_text(short_lines(page))
    print(page)


if __name__ == "__main__":
    main()
