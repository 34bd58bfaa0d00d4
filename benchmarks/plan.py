"""Errors of real tables beside those that a plan predicts: `make bench-plan`, which writes docs/benchmarks-plan.md.

A plan sees no table: it simulates a session on made-up rows of the same universe. The measured error is the mean distance from
the truth, over all cells of 40 tables of three attributes, of a session on the real table at ε = 1, δ = 10⁻⁹.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from tables import TABLES, load

import hedgerow as hr
from hedgerow.data import Table
from hedgerow.planning import simulation
from hedgerow.unsafe import unsafe_answer

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-plan.md"
BUDGET = hr.Budget(1.0, 1e-9)
HEAD = """# Predicted and measured errors
*Written by `make bench-plan` (benchmarks/plan.py).*

`hr.plan` reads no table: it simulates a session on made-up rows of the declared universe. The interval of its typical
error is from half to twice the simulated mean. The measured error is that of a session on the real table at ε = 1,
δ = 10⁻⁹: the mean distance from the truth over all cells of 40 tables of three attributes. payroll_like is made, not
real. Bar: 5 seconds of one core.

| table | rows | columns | predicted | measured | inside | CPU seconds of the plan |
|---|---|---|---|---|---|---|
"""


def measured(name: str) -> tuple[str, bool]:
    """A line of the page, and True if the prediction contains what was measured."""
    table = load(name)
    universe, rows = hr.Universe.from_sizes(table.sizes), len(table.codes)
    start = time.process_time()
    (option,) = [o for o in hr.plan(universe=universe, budget=BUDGET, rows=rows, progress=False).options if o.simulated]
    seconds = time.process_time() - start
    assert option.interval is not None
    data, asked = Table(table.frame, universe), simulation.questions(universe, None)
    session = hr.open(data, universe=universe, budget=BUDGET, progress=False)
    off = [
        np.abs(np.asarray(answer.value) - unsafe_answer(data, answer.query, resolution="bins")).ravel()
        for answer in session.ask_all(asked, resolution="bins", progress=False)
    ]
    error, (low, high) = float(np.concatenate(off).mean()), option.interval
    inside = low <= error <= high
    line = (
        f"| {name} | {rows:,} | {len(table.sizes)} | {low:.2g} to {high:.2g} | {error:.2g} | {'yes' if inside else 'no'} | "
        f"{seconds:.1f} |"
    )
    return line, inside


RELEASES = """
## Releases of all pairs
Errors of the cells of all tables of two attributes, at ε = 1, δ = 10⁻⁹. The predicted mean is that of `hr.plan`.

| table | method | predicted mean | mean | largest | widest bar |
|---|---|---|---|---|---|
"""


def releases(name: str) -> list[str]:
    """Lines of the page: the factorization release beside the adaptive one."""
    table = load(name)
    universe, rows = hr.Universe.from_sizes(table.sizes), len(table.codes)
    data, workload = Table(table.frame, universe), hr.marginals(2)
    planned = hr.plan(universe=universe, budget=BUDGET, rows=rows, workload=workload, simulate=False)
    (exact,) = [option.typical for option in planned.options if option.mechanism == "matrix mechanism"]
    lines = []
    for method in ("matrix", "adaptive"):
        made = hr.release(data, universe=universe, budget=BUDGET, workload=workload, method=method)
        answers = made.ask_all(workload.on(universe), resolution="bins", progress=False)
        off = np.concatenate(
            [np.abs(np.asarray(a.value) - unsafe_answer(data, a.query, resolution="bins")).ravel() for a in answers]
        )
        bar = max(float(np.max(np.inf if a.error is None else a.error)) for a in answers)
        said = f"{exact:.2g}" if method == "matrix" else "–"
        lines.append(f"| {name} | {method} | {said} | {off.mean():.2g} | {off.max():.2g} | {bar:.2g} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    warnings.simplefilter("ignore")
    lines, inside = [], 0
    for name in sys.argv[1:] or TABLES:
        line, good = measured(name)
        print(line, flush=True)
        lines.append(line)
        inside += good
    if not sys.argv[1:]:
        said = f"\n\n{inside} of {len(lines)} measured errors are inside the interval.\n"
        compared = [line for name in ("nltcs", "adult_dense") for line in releases(name)]
        PAGE.write_text(HEAD + "\n".join(lines) + said + RELEASES + "\n".join(compared) + "\n")


if __name__ == "__main__":
    main()
