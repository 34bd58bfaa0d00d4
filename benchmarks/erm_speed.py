"""Frank–Wolfe with a million sparse features: time of a step beside two sparse products, and memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from hedgerow import erm
from hedgerow.convex.sets import L1Ball
from hedgerow.losses import Logistic
from hedgerow.privacy.budget import Budget

DELTA = 1e-6


def speed(quick: bool, picture: Path | None = None) -> list[str]:
    n, p, per_row = (20_000, 1_000_000, 100) if quick else (100_000, 1_000_000, 100)
    rng = np.random.default_rng(0)
    held = n * per_row
    X = sp.csr_array(
        (rng.choice([-1.0, 1.0], held), rng.integers(0, p, held), np.arange(0, held + 1, per_row)), shape=(n, p)
    )
    X.sum_duplicates()
    y = rng.choice([0.0, 1.0], n)

    def seconds(action: Callable[[], object], repeats: int) -> float:
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            action()
            times.append(time.perf_counter() - start)
        return min(times)

    theta, r = rng.normal(size=p), rng.normal(size=n)
    pair = seconds(lambda: (X @ theta, X.T @ r), 5)

    def run(T: int) -> None:
        erm.frank_wolfe(X, y, loss=Logistic(), over=L1Ball(1.0), budget=Budget(1.0, DELTA), iterations=T)

    few, more = 2, 12
    step = (seconds(lambda: run(more), 3) - seconds(lambda: run(few), 3)) / (more - few)
    tracemalloc.start()
    run(2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    lines = [
        "| what | measured | bar |",
        "|---|---|---|",
        f"| one step, n = {n:,}, p = {p:,}, {X.nnz:,} non-zeros, noise of the operating system | {1e3 * step:.0f} ms | |",
        f"| the pair X@θ, Xᵀ@r | {1e3 * pair:.0f} ms | |",
        f"| ratio | {step / pair:.2f} | at most 3: {'met' if step <= 3 * pair else 'MISSED'} |",
        f"| peak memory beyond the caller's table | {peak / (12 * X.nnz):.1f} times its bytes | linear in the non-zeros |",
    ]
    print("\n".join(lines), flush=True)
    return lines
