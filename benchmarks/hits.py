"""Guards on streams that leave the workload: `make bench-hits`, which writes docs/benchmarks-hits.md.

10⁴ conjunctions of 4 to 6 attributes are asked of a session on 10⁶ rows whose hypothesis was fitted to tables of up to three: the usual guard,
guards that pay for hits, and none. `python benchmarks/hits.py TABLE …` prints the lines of some tables.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy loads its BLAS

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.data import Table
from hedgerow.engine.practical.guard import GUARD_ROUNDS, HIT_ROUNDS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-hits.md"
BUDGET = hr.Budget(1.0, 1e-9)
ROWS, SEEDS, QUESTIONS = 1_000_000, 3, 10_000
SIZES = {"a": 8, "b": 2, "c": 6, "d": 5, "e": 10, "f": 3, "g": 7, "h": 4, "i": 2, "j": 6}
GUARDS: dict[str, dict[str, Any]] = {
    "none": {"guard": 0.0}, "usual, 10 %": {"guard": 0.1}, "pays for hits, 10 %": {"guard": 0.1, "pay_for_hits": True},
    "pays for hits, 3 %": {"guard": 0.03, "pay_for_hits": True}, "pays for hits, 1 %": {"guard": 0.01, "pay_for_hits": True},
}  # fmt: skip
TABLES = {
    "a common cause": "every column depends on one hidden cause, which pairs and triples show nearly",
    "a parity": "as before, but the parity of d, e, f and g is even in nine rows of ten, which no triple shows",
}
HEAD = """# Guards on streams that leave the workload
*Written by `make bench-hits` (benchmarks/hits.py).*

{questions:,} conjunctions of 4 to 6 of 10 attributes, asked one after another of {rows:,} rows at ε = 1, δ = 10⁻⁹. The
session is opened for tables of up to three attributes. Each guard has the stated share of the budget; the usual one
has {usual} rounds, the others {hits}: by default 10 % and 3 %. *promise* is the bar after "right"; *bar* the mean of all
bars; *error* the mean and the largest distance from the truth; *hits* how often a guard said "wrong"; *spent* the share
of the budget that the stream spent. Means of {seeds} seeds.

| table | guard | promise | bar | mean error | largest error | hits | spent |
|---|---|---|---|---|---|---|---|
"""


def table(kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 3, ROWS)
    columns = {
        name: np.minimum((rng.random(ROWS) ** (1 + cause / 2) * size).astype(np.int64), size - 1)
        for name, size in SIZES.items()
    }
    if kind == "a parity":
        odd = (columns["d"] + columns["e"] + columns["f"] + columns["g"]) % 2 == 1
        moved = odd & (rng.random(ROWS) < 0.8)
        columns["e"] = np.where(
            moved, columns["e"] ^ 1, columns["e"]
        )  # e has 10 values: pairs of neighbours change places
    return pd.DataFrame(columns)


def questions() -> list[dict[str, set[int]]]:
    """The values that each conjunction allows of its attributes."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(QUESTIONS):
        names = sorted(rng.choice(list(SIZES), size=int(rng.integers(4, 7)), replace=False).tolist())
        found.append({n: set(np.flatnonzero(rng.random(SIZES[n]) < 0.5).tolist()) or {0} for n in names})
    return found


def truths(frame: pd.DataFrame, asked: list[dict[str, set[int]]]) -> np.ndarray:
    """The share of the rows in each conjunction, from the table of its attributes."""
    tables: dict[tuple[str, ...], np.ndarray] = {}
    found = []
    for one in asked:
        names = tuple(one)
        if names not in tables:
            flat = np.ravel_multi_index([frame[n].to_numpy() for n in names], [SIZES[n] for n in names])
            sizes = [SIZES[n] for n in names]
            tables[names] = np.bincount(flat, minlength=int(np.prod(sizes))).reshape(sizes)
        found.append(tables[names][np.ix_(*(sorted(one[n]) for n in names))].sum() / ROWS)
    return np.array(found)


def measured(kind: str, guard: str, asked: list[dict[str, set[int]]], truth: np.ndarray, frame: pd.DataFrame) -> str:
    universe = hr.Universe(**{name: hr.Integers(0, size - 1) for name, size in SIZES.items()})  # type: ignore[arg-type]
    found = []
    for seed in range(SEEDS):
        session = hr.open(
            Table(frame, universe), universe=universe, budget=BUDGET, seed=seed, progress=False, **GUARDS[guard]
        )
        opened, watch = session.spent, session._engine._watch  # type: ignore[attr-defined]
        answers = session.ask_all([hr.count(one) for one in asked], progress=False)
        off = np.abs(np.array([answer.value for answer in answers]) - truth)
        bars = [np.nan if answer.error is None else float(answer.error) for answer in answers]
        found.append(
            [
                np.nan if watch is None else watch.guard.promise, float(np.nanmean(bars)), float(off.mean()), float(off.max()),
                0 if watch is None else watch.tops, (session.spent - opened) / BUDGET.total,
            ]
        )  # fmt: skip
    promise, bar, error, largest, hits, spent = np.mean(found, axis=0)
    told = "–" if np.isnan(promise) else f"{promise:.4f}"
    return f"| {kind} | {guard} | {told} | {bar:.4f} | {error:.5f} | {largest:.4f} | {hits:.1f} | {spent:.1%} |"


def main() -> None:
    warnings.simplefilter("ignore")
    asked, lines = questions(), []
    for kind in sys.argv[1:] or TABLES:
        frame = table(kind)
        truth = truths(frame, asked)
        for guard in GUARDS:
            lines.append(measured(kind, guard, asked, truth, frame))
            print(lines[-1], flush=True)
    if not sys.argv[1:]:
        about = "\n".join(f"- **{name}**: {what}." for name, what in TABLES.items())
        PAGE.write_text(
            HEAD.format(rows=ROWS, seeds=SEEDS, questions=QUESTIONS, usual=GUARD_ROUNDS, hits=HIT_ROUNDS)
            + "\n".join(lines)
            + f"\n\n{about}\n"
        )


if __name__ == "__main__":
    main()
