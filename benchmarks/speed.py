"""Measure the speed of the hypothesis in one process and one thread: `python benchmarks/speed.py`.

Bars: on a dense universe of 10⁷ cells an update and an answer take at most twice the time to read and write the array
once, and at most a fifth of the plain NumPy form; 100 binary attributes with 60 three-way factors along a chain give
any marginal on a clique in 50 ms. Times are the best of several.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy loads its BLAS

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import losses
from hedgerow._compiled import compile_lazily
from hedgerow.convex.sets import L2Ball
from hedgerow.convex.solver.public_minimum import minimize_over
from hedgerow.model import triangulation
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.model.junction_tree import JunctionTree, junction_cells
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.query.linear import Linear
from hedgerow.universe.universe import Universe

Array = NDArray[np.float64]
ETA = 0.05


@dataclass(frozen=True)
class Row:
    what: str
    milliseconds: float
    note: str = ""
    bar: str = ""
    met: bool | None = None

    def __str__(self) -> str:
        verdict = "" if self.met is None else f"{self.bar}: {'met' if self.met else 'MISSED'}"
        return f"{self.what:<74}{self.milliseconds:>9.3f} ms   {self.note:<50}{verdict}"


def best(action: Callable[[], object], repeats: int = 9, *, warm: bool = True) -> float:
    """The least time in milliseconds."""
    if warm:
        action()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


@compile_lazily()
def read_and_write(values: Array, factor: float) -> None:
    """The yardstick: every cell read and written once."""
    for i in range(values.size):
        values[i] = values[i] * factor


def beside_yardstick(hypothesis: Hypothesis, action: Callable[[], object], repeats: int = 15) -> tuple[float, float]:
    """The least time of an action, and the median of its ratio to the yardstick's on the same array right after it."""
    values = hypothesis._current()[0].reshape(-1)
    action()
    read_and_write(values, 1.0)
    ours, yardsticks = [], []
    for _ in range(repeats):
        ours.append(best(action, 1, warm=False))
        yardsticks.append(best(lambda: read_and_write(values, 1.0), 1, warm=False))
    return min(ours), float(np.median(np.array(ours) / np.array(yardsticks)))


def numpy_form(p: Array, updated: Array, asked: Array) -> Callable[[], float]:
    """x ∝ x·exp(−η q), then ⟨q′, x⟩, written plainly; q and q′ have the universe's axes (of size 1 where constant)."""

    def once() -> float:
        np.multiply(p, np.exp(-ETA * updated), out=p)
        np.divide(p, p.sum(), out=p)
        return float((p * asked).sum())

    return once


def dense() -> Iterator[Row]:
    """Small tables on one, two and three attributes, at the front, in the middle and at the end of memory."""
    rng = np.random.default_rng(1)
    cases = [
        (
            Universe.from_sizes({f"a{i}": 10 for i in range(7)}),
            [("0", "6"), ("36", "15"), ("012", "456"), ("246", "135")],
        ),
        (
            Universe.from_sizes({f"a{i}": 2 for i in range(23)}),
            [("m", "a"), ("am", "bl"), ("akw", "cmv"), ("uvw", "abc")],
        ),
    ]
    for universe, pairs in cases:
        for letters in pairs:
            A, B = (tuple(f"a{'0123456789abcdefghijklmnopqrstuvw'.index(c) % 23}" for c in part) for part in letters)
            update, query = (Linear.from_table(universe, names, rng.random(universe.sizes(names))) for names in (A, B))
            hypothesis = Hypothesis(universe, dense=True)
            log_table = -ETA * update.table

            def ours(h: Hypothesis = hypothesis, t: Array = log_table, u: Linear = update, q: Linear = query) -> float:
                h.add_factor(u.attributes, t)
                return h.answer(q)

            def spread(q: Linear, u: Universe = universe) -> Array:
                return q.table.reshape([u[n].size if n in q.attributes else 1 for n in u.names])

            milliseconds, ratio = beside_yardstick(hypothesis, ours)
            p = np.full(universe.shape, 1.0 / universe.size)
            small = best(numpy_form(p, spread(update), spread(query)), 4)
            full = [np.ascontiguousarray(np.broadcast_to(spread(q), universe.shape)) for q in (update, query)]
            plain = best(numpy_form(p, *full), 4)
            yield Row(
                f"update on {len(A)} of {len(universe.names)} attributes, answer on {len(B)} of the others ({letters[0]}, {letters[1]})",
                milliseconds,
                f"{ratio:.2f}× yardstick; NumPy {plain / milliseconds:.1f}× (small exp {small / milliseconds:.1f}×)",
                "≤ 2×, NumPy ≥ 5×",
                ratio <= 2 and min(plain, small) >= 5 * milliseconds,
            )


def full_size() -> Iterator[Row]:
    """A query that depends on every attribute: its table is as large as the universe, and exp is taken of all of it."""
    universe = Universe.from_sizes({f"a{i}": 10 for i in range(7)})
    query = Linear.from_table(universe, universe.names, np.random.default_rng(2).random(universe.shape))
    hypothesis = Hypothesis(universe, dense=True)
    log_table = -ETA * query.table
    hypothesis.add_factor(query.attributes, log_table)
    hypothesis.answer(query)

    def ours() -> float:
        hypothesis.add_factor(query.attributes, log_table)
        return hypothesis.answer(query)

    milliseconds, ratio = beside_yardstick(hypothesis, ours)
    p = np.full(universe.shape, 1.0 / universe.size)
    plain = best(numpy_form(p, query.table, query.table), 4)
    note = f"{ratio:.2f}× yardstick; NumPy {plain / milliseconds:.1f}×"
    yield Row("update and answer, query vector of 10⁷ cells", milliseconds, note)


def chain() -> Iterator[Row]:
    """100 binary attributes (2¹⁰⁰ cells), 60 three-way factors along a chain."""
    universe = Universe.from_sizes({f"b{i}": 2 for i in range(100)})
    rng = np.random.default_rng(3)
    triples: list[tuple[str, ...]] = [(f"b{i}", f"b{i + 1}", f"b{i + 2}") for i in range(60)]
    factors = {names: rng.normal(size=(2, 2, 2)) for names in triples}

    def planned() -> JunctionTree:
        triangulation.forest.cache_clear()
        tree = JunctionTree(universe, triples)
        assert tree._program
        return tree

    tree = planned()
    potentials = tree.zeros()
    for names, table in factors.items():
        tree.add(potentials, names, table)
    yield Row("100 binary attributes: plan the tree", best(planned, 5))
    yield Row("100 binary attributes: calibrate", best(lambda: tree.calibrate(potentials)))

    def cold() -> None:
        triangulation.forest.cache_clear()
        hypothesis = Hypothesis(universe)
        hypothesis.add_factors(factors)
        hypothesis.marginal(triples[30])

    milliseconds = best(cold, 5)
    yield Row("60 factors, then a three-way marginal, from nothing", milliseconds, "", "≤ 50 ms", milliseconds <= 50)
    hypothesis = Hypothesis(universe)
    hypothesis.add_factors(factors)
    slowest = max(_fresh_marginal(hypothesis, names, triples[0]) for names in triples)
    yield Row("one more factor, then a marginal on a clique (slowest)", slowest, "", "≤ 50 ms", slowest <= 50)
    far = ("b3", "b31", "b59")
    yield Row("one more factor, then a marginal across the chain", _fresh_marginal(hypothesis, far, triples[0]))
    yield Row("a marginal again", best(lambda: hypothesis.marginal(far)))


def _fresh_marginal(hypothesis: Hypothesis, names: tuple[str, ...], changed: tuple[str, ...]) -> float:
    hypothesis.add_factor(changed, np.zeros((2, 2, 2)))
    return best(lambda: hypothesis.marginal(names), 1, warm=False)


def calibration() -> Iterator[Row]:
    """Fourteen attributes like a census table's, pairs measured as a release would: calibration is run per gradient."""
    sizes = dict(zip("abcdefghijklmn", [10, 8, 16, 10, 16, 7, 15, 6, 5, 2, 12, 12, 10, 32], strict=True))
    rng = np.random.default_rng(0)
    for pairs in (13, 20, 30):
        cliques = [tuple(rng.choice(list(sizes), size=2, replace=False)) for _ in range(pairs)]
        tree = JunctionTree(sizes, cliques)
        theta, work = rng.normal(size=tree.cells), np.empty(tree.cells)

        def once(tree: JunctionTree = tree, theta: Array = theta, work: Array = work) -> None:
            np.copyto(work, theta)
            tree.calibrate_flat(work)

        def asked(cliques: list[tuple[str, ...]] = cliques) -> None:
            triangulation.cells.cache_clear()
            triangulation.forest.cache_clear()
            junction_cells(sizes, cliques)

        milliseconds = best(once, 15)
        note = f"{1e6 * milliseconds / tree.cells:.1f} ns a cell; size asked in {best(asked):.2f} ms"
        largest = max(math.prod(s) for s in tree.shapes)
        yield Row(f"calibrate {tree.cells} cells ({len(tree.cliques)} cliques, largest {largest})", milliseconds, note)


def beside() -> Iterator[Row]:
    """Exact noise on a large table, and a convex question on a large marginal."""
    cells = np.zeros(10**6, dtype=np.int64)
    account = Accountant(Budget(100.0, 1e-6))
    for event in (Gaussian(1, 25.0), Laplace(1, 25.0)):
        milliseconds = best(lambda event=event: Noise().add(cells, account.charge(event)), 3)  # type: ignore[misc]
        yield Row(f"{type(event).__name__} noise on 10⁶ cells", milliseconds, "", "≤ 1 s", milliseconds <= 1000)
    sizes = {"y": 2} | dict.fromkeys("abcd", 8) | dict.fromkeys("efg", 4)
    risk = losses.Logistic(target="y", features=list("abcdefg")).on(Universe.from_sizes(sizes))
    p = 1 / (1 + np.exp(-risk.predictor(np.array([1.5, -1.0, 0.5, 2.0, 0.0, -0.7, 0.3, 0.2]))))
    marginal = np.random.default_rng(16).random(risk.shape) * np.concatenate([1 - p, p])
    milliseconds = best(lambda: minimize_over(risk, marginal / marginal.sum(), L2Ball(10.0), 1e-8), 3)
    what = f"logistic regression, 7 features, {marginal.size} cells, certified to 1e-8"
    yield Row(what, milliseconds, "", "≤ 1.5 s", milliseconds <= 1500)


def main() -> None:
    for part in (dense, full_size, chain, calibration, beside):
        print(f"\n{(part.__doc__ or '').splitlines()[0]}")
        for row in part():
            print(row, flush=True)


if __name__ == "__main__":
    main()
