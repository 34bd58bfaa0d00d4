"""Accuracy at equal budget against per-query noise and the textbook mechanism, in one run. Writes docs/benchmarks.md.

    python benchmarks/accuracy.py [--seeds 3] [--quick]

Needs the integer-coded Adult data and the workload definitions beside the repository (../shared); without them it says
what it skips. Errors are fractions of the rows, neighbours are add-remove, δ = 1e-9. AIM and other released systems
are not rerun here.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.data import Table
from hedgerow.errors import InvalidInput, NotPrivateWarning
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Receipt
from hedgerow.privacy.noise import Seeded
from hedgerow.query.linear import answer_all
from hedgerow.research.pages import short_lines
from hedgerow.textbook.pmw import configure

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
DELTA = 1e-9
NUMBERS = {
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
}  # of Adult; all else is a category
warnings.simplefilter("ignore", NotPrivateWarning)


def workloads() -> Any:
    spec = importlib.util.spec_from_file_location("workloads", SHARED / "bench" / "workloads.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded(name: str) -> tuple[Table, hr.Universe, dict[str, int]]:
    """Return a table with its universe, which declares numbers and categories as an owner would."""
    frame, domain = workloads().load(name)
    kinds = {a: hr.Integers(0, m - 1) if a in NUMBERS else hr.Categories([*range(m)]) for a, m in domain.items()}
    universe = hr.Universe(kinds)
    return Table(frame, universe), universe, domain


def bound(universe: hr.Universe, queries: list[list[tuple[str, np.ndarray]]]) -> list[hr.Query]:
    return [hr.count(dict(q)) for q in queries]


def truth_of(data: Table, queries: list[hr.Query]) -> np.ndarray:
    return answer_all([q.on(data.universe) for q in queries], data.marginal) / data.rows


def budget(epsilon: float) -> hr.Budget:
    return hr.Budget(epsilon, DELTA, neighbours="add-remove")


def charged(event: Gaussian | Laplace) -> Receipt:
    """Return a receipt for noise that is calibrated here to a share of the budget, from an account that can pay for it."""
    return hr.Accountant(hr.Budget(1e9, 0.5)).charge(event)


def simplex(y: np.ndarray) -> np.ndarray:
    """Euclidean projection to the probability simplex."""
    flat = y.ravel()
    ordered = np.sort(flat)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, flat.size + 1)
    return np.maximum(flat - excess[np.nonzero(ordered > excess)[0][-1]], 0).reshape(y.shape)


def tvd(p: np.ndarray, q: np.ndarray) -> float:
    return 0.5 * float(np.abs(p - q).sum())


def offline(seeds: int, epsilons: tuple[float, ...]) -> list[dict[str, Any]]:
    """Adult, 14 attributes: 64 three-way marginals (A, mean TVD) and 2,000 predicates (B) from the same release."""
    data, universe, domain = loaded("adult")
    work = workloads()
    triples = [universe.order(t) for t in work.triples(domain)]
    predicates = bound(universe, work.predicates(domain))
    true_b = truth_of(data, predicates)
    true_a = [data.marginal(t) / data.rows for t in triples]
    rows = []
    for epsilon in epsilons:
        for seed in range(seeds):
            began = time.process_time()
            released = hr.release(
                data, universe=universe, budget=budget(epsilon), workload=[hr.marginal(*t) for t in triples], seed=seed
            )
            tables = [released.ask(hr.marginal(*t)).value for t in triples]
            cpu = time.process_time() - began
            off = np.abs(np.array([a.value for a in released.ask_all(predicates, progress=False)]) - true_b)
            rows.append(
                {
                    "method": "hedgerow", "epsilon": epsilon, "A": np.mean([tvd(p, q) for p, q in zip(tables, true_a, strict=True)]),
                    "A max": max(np.abs(p - q).max() for p, q in zip(tables, true_a, strict=True)), "B": off.mean(), "B max": off.max(), "cpu": cpu,
                }
            )  # fmt: skip
            rows += noisy_marginals(data, triples, true_a, predicates, true_b, epsilon, seed)
    return rows


def noisy_marginals(data, triples, true_a, predicates, true_b, epsilon, seed) -> list[dict[str, Any]]:  # type: ignore[no-untyped-def]
    """Every marginal of the workload (or every predicate) with its own share of the budget, Gaussian or Laplace noise."""
    noise, whole = Seeded(1000 + seed), budget(epsilon)
    found = []
    for method, event, each in (
        (
            "Gaussian noise",
            Gaussian(1.0, np.sqrt(len(triples) / (2 * whole.rho()))),
            np.sqrt(len(predicates) / (2 * whole.rho())),
        ),
        ("Laplace noise", Laplace(1.0, len(triples) / epsilon), len(predicates) / epsilon),
    ):
        began = time.process_time()
        noisy = [np.asarray(noise.add(data.marginal(t), charged(event))) / data.rows for t in triples]
        single = Gaussian(1.0, each) if isinstance(event, Gaussian) else Laplace(1.0, each)
        off = np.abs(np.asarray(noise.add(np.round(true_b * data.rows), charged(single))) / data.rows - true_b)
        cpu = time.process_time() - began
        for name, tables in ((method, noisy), (f"{method} + simplex", [simplex(t) for t in noisy])):
            found.append(
                {
                    "method": name, "epsilon": epsilon, "A": np.mean([tvd(p, q) for p, q in zip(tables, true_a, strict=True)]),
                    "A max": max(np.abs(p - q).max() for p, q in zip(tables, true_a, strict=True)), "B": off.mean(), "B max": off.max(), "cpu": cpu,
                }
            )  # fmt: skip
    return found


def online(seeds: int, lengths: tuple[int, ...]) -> list[dict[str, Any]]:
    """adult_dense, 8 attributes, ε = 1: a stream of conjunctions of one to three attributes.

    "told the workload": the owner opens with 2,000 earlier questions of the same kind as ``workload``; else the default.
    """
    data, universe, domain = loaded("adult_dense")
    stream = bound(universe, workloads().stream(domain, max(lengths)))
    earlier = bound(universe, workloads().stream(domain, 2000, seed=99))  # a public log of questions of the same kind
    true = truth_of(data, stream)
    rows, whole = [], budget(1.0)
    for seed in range(seeds):
        session = hr.open(data, universe=universe, budget=whole, seed=seed, reserve=0.0)
        ours = np.abs(np.array([a.value for a in session.ask_all(stream, progress=False)]) - true)
        session = hr.open(data, universe=universe, budget=whole, seed=seed, reserve=0.0, workload=earlier)
        told = np.abs(np.array([a.value for a in session.ask_all(stream, progress=False)]) - true)
        uniform = np.abs(textbook(data, universe, stream, whole, seed) - true)
        for k in lengths:
            noise = Seeded(2000 + seed)
            each = Gaussian(1.0, float(np.sqrt(k / (2 * whole.rho()))))
            laplace = Laplace(1.0, k / whole.epsilon)
            counts = np.round(true[:k] * data.rows)
            for method, off in (
                ("hedgerow", ours[:k]),
                ("hedgerow, told the workload", told[:k]),
                (
                    "Gaussian noise per query",
                    np.abs(np.asarray(noise.add(counts, charged(each))) / data.rows - true[:k]),
                ),
                (
                    "Laplace noise per query",
                    np.abs(np.asarray(noise.add(counts, charged(laplace))) / data.rows - true[:k]),
                ),
                ("textbook OnlineMW", uniform[:k]),
            ):
                rows.append({"method": method, "k": k, "max": off.max(), "mean": off.mean()})
    return rows


def by_default(seeds: int, length: int) -> dict[str, Any]:
    """The same stream in sessions whose options are all left out, the reserve too."""
    data, universe, domain = loaded("adult_dense")
    stream = bound(universe, workloads().stream(domain, length))
    true = truth_of(data, stream)
    means, largest = [], []
    for seed in range(100, 100 + seeds):
        session = hr.open(data, universe=universe, budget=budget(1.0), seed=seed)
        off = np.abs(np.array([a.value for a in session.ask_all(stream, progress=False)]) - true)
        means.append(off.mean())
        largest.append(off.max())
    told = {"seeds": seeds, "k": length}
    for name, values in (("mean", means), ("max", largest)):
        told |= {name: np.mean(values), f"± {name}": np.std(values, ddof=1) / np.sqrt(seeds) if seeds > 1 else 0.0}
    return told


def textbook(data: Table, universe: hr.Universe, stream: list[hr.Query], whole: hr.Budget, seed: int) -> np.ndarray:
    """Online PMW with the theorem's parameters; where they are vacuous it never updates and answers from uniform."""
    try:
        configure(whole, cells=universe.size, scale=data.rows, queries=len(stream), beta=0.05)
    except InvalidInput:
        sizes = [q.on(universe) for q in stream]
        return np.array([np.prod([v.mean() for v in q.vectors]) if q.vectors else float(q.table) for q in sizes])
    session = hr.open(data, universe=universe, budget=whole, profile="theory", queries=len(stream), seed=seed)
    return np.array([a.value for a in session.ask_all(stream, progress=False)])


def beyond(seeds: int, how_many: int) -> list[dict[str, Any]]:
    """A stream that leaves the workload: conjunctions of four to six attributes, against those of one to three."""
    data, universe, domain = loaded("adult_dense")
    work = workloads()
    near = bound(universe, work.stream(domain, how_many))
    far = bound(universe, wide_stream(domain, how_many))
    true_near, true_far = truth_of(data, near), truth_of(data, far)
    rows = []
    for seed in range(seeds):
        session = hr.open(data, universe=universe, budget=budget(1.0), seed=seed, reserve=0.0)
        a = np.abs(np.array([x.value for x in session.ask_all(near, progress=False)]) - true_near)
        b = np.abs(np.array([x.value for x in session.ask_all(far, progress=False)]) - true_far)
        rows.append(
            {
                "1-3 attributes, max": a.max(),
                "4-6 attributes, max": b.max(),
                "4-6, mean": b.mean(),
                "ratio": b.max() / a.max(),
            }
        )
    return rows


def wide_stream(domain: dict[str, int], count: int, seed: int = 5) -> list[list[tuple[str, np.ndarray]]]:
    rng = np.random.default_rng(seed)
    ordinal = {"age", "education-num", "hours-per-week"}
    queries = []
    for _ in range(count):
        query = []
        for name in rng.choice(list(domain), rng.integers(4, 7), replace=False):
            mask = np.zeros(domain[name], bool)
            low, high = (
                sorted(rng.integers(0, domain[name], 2)) if name in ordinal else (rng.integers(domain[name]),) * 2
            )
            mask[int(low) : int(high) + 1] = True
            query.append((str(name), mask))
        queries.append(query)
    return queries


def throughput() -> dict[str, float]:
    """Answers per second from the hypothesis, at most three attributes, one thread; and one refit of 12 marginals."""
    data, universe, domain = loaded("adult_dense")
    stream = bound(universe, workloads().stream(domain, 100_000))
    session = hr.open(data, universe=universe, budget=budget(1.0), seed=0)
    began = time.perf_counter()
    session.ask_all(stream, progress=False)
    batch = len(stream) / (time.perf_counter() - began)
    session = hr.open(data, universe=universe, budget=budget(1.0), seed=1)
    some = bound(universe, workloads().stream(domain, 6000, seed=9))
    session.ask_all(some[:3000], progress=False)
    began = time.perf_counter()
    for query in some[3000:]:
        session.ask(query)
    one = 3000 / (time.perf_counter() - began)
    seconds, gap = refit()
    return {
        "ask_all, answers/s": batch,
        "ask, answers/s": one,
        "refit of 12 marginals, CPU s": seconds,
        "its distance to the optimum, relative": gap,
    }


def refit() -> tuple[float, float]:
    """CPU seconds to refit after the twelfth measured marginal of adult_dense, and how far that is from the optimum."""
    from hedgerow.engine.practical.bars.error_bars import Measurement
    from hedgerow.engine.practical.measure.prefit import FittedModel

    data, universe, _ = loaded("adult_dense")
    rng, noise = np.random.default_rng(0), Seeded(0)
    triples = list(itertools.combinations(universe.names, 3))
    chosen = [triples[i] for i in rng.choice(len(triples), 12, replace=False)]
    learned = FittedModel.nothing(universe)
    event = Gaussian(1.0, 30.0)
    seconds = reached = 0.0
    for names in [*((n,) for n in universe.names), *chosen]:
        learned.add(Measurement(names, np.asarray(noise.add(data.marginal(names), charged(event)), dtype=float), event))
        learned.grow(names)
        began = time.process_time()
        reached = learned.refit(500, 3.0)
        seconds = time.process_time() - began
    return seconds, reached / learned.refit(5000, 1e-6) - 1


def mean_by(rows: list[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Rows with equal keys averaged over seeds, in order of appearance."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[k] for k in keys), []).append(row)
    return [
        {k: (v if k in keys else float(np.mean([r[k] for r in group]))) for k, v in group[0].items()}
        for group in groups.values()
    ]


def markdown(rows: list[dict[str, Any]]) -> str:
    def shown(v: Any) -> str:
        return (
            f"{v:.3g}"
            if isinstance(v, float) and v < 1000
            else f"{v:,.0f}"
            if isinstance(v, float)
            else f"{v:,}"
            if isinstance(v, int)
            else str(v)
        )

    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(shown(row[k]) for k in head) + " |" for row in rows])


def picture(stream: list[dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2))
    colours = {
        "hedgerow": "tab:green",
        "Gaussian noise per query": "tab:red",
        "Laplace noise per query": "tab:orange",
        "textbook OnlineMW": "tab:gray",
    }
    for method, colour in colours.items():
        rows = [r for r in stream if r["method"] == method]
        axes.plot([r["k"] for r in rows], [r["mean"] for r in rows], color=colour, label=f"{method}, mean")
        axes.plot([r["k"] for r in rows], [r["max"] for r in rows], color=colour, linestyle="--")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="questions (dashed: the worst of them)",
        ylabel="error (fraction of the rows)",
        title="Adult, 8 attributes, ε = 1, δ = 1e-9",
    )
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.25)
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "benchmark-stream.png", dpi=150)
    plt.close(figure)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--quick", action="store_true", help="one seed, short streams, nothing written")
    given = arguments.parse_args()
    if not (SHARED / "data").exists():
        print(f"skipped: accuracy on Adult (no data at {SHARED.name}/data beside the repository)")
        return
    seeds = 1 if given.quick else given.seeds
    lengths = (100, 1000) if given.quick else (100, 1000, 10_000, 100_000)
    tables = {
        "Offline: Adult, 14 attributes. A: mean total variation distance over 64 three-way marginals; B: 2,000 predicates": mean_by(
            offline(seeds, (0.1, 1.0, 10.0)), "method", "epsilon"
        ),
        "Online: Adult, 8 attributes, ε = 1, a stream of k conjunctions": mean_by(
            online(seeds, lengths), "method", "k"
        ),
        "The same with every option at its default; ± is the standard error": [
            by_default(1 if given.quick else 5 * seeds, max(lengths))
        ],
        "Beyond the workload: 10,000 conjunctions of 4–6 attributes after a workload of pairs and triples": mean_by(
            beyond(seeds, 1000 if given.quick else 10_000)
        ),
        "Speed, one thread": [throughput()],
    }
    tables["Online: Adult, 8 attributes, ε = 1, a stream of k conjunctions"].sort(
        key=lambda r: r["method"] != "hedgerow"
    )
    text = (
        "# Benchmarks\n\nWritten by `make bench`: means over "
        + f"{seeds} seeds, δ = 1e-9, neighbours add-remove, errors as fractions of the rows. Only hedgerow and plain baselines are run. Sessions keep no reserve; *told the workload* means opened with 2,000 earlier questions of the same kind as its workload.\n"
    )
    for title, rows in tables.items():
        text += f"\n## {title}\n\n{markdown(rows)}\n"
    print(text)
    if not given.quick:
        picture(tables["Online: Adult, 8 attributes, ε = 1, a stream of k conjunctions"])
        (ROOT / "docs" / "benchmarks.md").write_text(
            short_lines(text) + "\n![error by number of questions](benchmark-stream.png)\n"
        )


if __name__ == "__main__":
    main()
