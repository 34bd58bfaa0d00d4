"""Models of many features in a session, beside the same models without privacy: ``make bench-models``.

Three questions are asked. (1) Logistic models of 9, 20 and 40 features of the census (299,285 people): how far is the area
under the curve from that of the same model fitted to the rows? (2) Over 200 sessions on small tables, each with rows of
its own: how often does the interval of a coefficient contain the coefficient of least risk on the table? (3) What does a formula as
``workload=`` change, for its own questions and for others?
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tables
from sklearn.metrics import roc_auc_score

import hedgerow as hr
from hedgerow.data.coding import cells_of
from hedgerow.unsafe import unsafe_answer

FEATURES = (9, 20, 40)
SESSIONS, ROWS = 200, 5_000
RESULTS = Path(__file__).parent / "models.json"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-models.md"
BEHIND = 0.005


def areas(epsilon: float, counts: tuple[int, ...] = FEATURES, *, declared: bool) -> list[dict[str, object]]:
    """Return the areas under the curve on held-back rows, by number of features.

    With ``declared``, the largest model was listed as the workload when the session was opened.
    """
    learn, test = (table := tables.load("whole_census")).split()
    universe = hr.Universe({name: hr.Categories(range(size)) for name, size in table.sizes.items()})
    others = [name for name in table.sizes if name != table.target]
    widest = hr.minimize(hr.losses.Logistic(target=table.target, features=others[: max(counts)]), hr.L2Ball(20.0))
    started = time.process_time()
    session = hr.open(
        learn.frame, universe=universe, budget=hr.Budget(epsilon, 1e-9, neighbours="add-remove"), queries=10_000, seed=0,
        progress=False, workload=[widest] if declared else None,
    )  # fmt: skip
    opening, found = time.process_time() - started, []
    for count in counts:
        loss = hr.losses.Logistic(target=table.target, features=others[:count])
        started = time.process_time()
        answer = session.ask(hr.minimize(loss, hr.L2Ball(20.0)))
        seconds = time.process_time() - started
        risk = loss.on(universe)
        truth = best_of(risk, learn.frame, table.target)
        rows = risk.features.rows({name: cells_of(universe, name, test.frame) for name in others[:count]})
        y = test.frame[table.target].to_numpy()
        ours, best = (float(roc_auc_score(y, rows @ theta)) for theta in (np.asarray(answer.value), truth))
        errors = np.asarray(answer.coefficient_errors)
        found.append({
            "features": count, "declared": declared, "coefficients": len(errors), "rows": len(learn.frame), "ours": ours, "not private": best,
            "behind": best - ours, "simulation": answer.simulation, "intervals": bool(np.isfinite(errors).all()),
            "opening_seconds": opening, "seconds": seconds,
        })  # fmt: skip
        print(found[-1], flush=True)
    return found


def best_of(risk: object, frame: pd.DataFrame, target: str) -> np.ndarray:
    """Return the minimizer on the rows themselves, without privacy."""
    from hedgerow.convex.solver.public_minimum import minimize_objective
    from hedgerow.convex.solver.weighted_rows import WeightedRows

    names = risk.attributes  # type: ignore[attr-defined]
    columns = np.ascontiguousarray(frame[list(names)].to_numpy(np.int32).T)
    rows = WeightedRows.of(risk, columns, np.full(len(frame), 1 / len(frame)))  # type: ignore[arg-type]
    return minimize_objective(risk, rows, hr.L2Ball(20.0), 1e-6).theta  # type: ignore[arg-type]


def small_table(seed: int, rows: int = ROWS) -> tuple[hr.Universe, pd.DataFrame]:
    """Return a table of four columns in which the third depends on the others."""
    rng = np.random.default_rng(seed)
    universe = hr.Universe(
        age=hr.Integers(0, 5), region=hr.Categories(["north", "south", "west"]), smoker=hr.Flag(), ill=hr.Flag()
    )
    age, region = rng.integers(0, 6, rows), rng.integers(0, 3, rows)
    smoker = rng.random(rows) < 0.2 + 0.15 * (region == 1) + 0.03 * age
    z = -1 + 0.5 * (age - 2.5) / 2.5 + 0.7 * (region == 1) - 0.4 * (region == 2) + 0.8 * smoker
    ill = rng.random(rows) < 1 / (1 + np.exp(-z))
    names = np.array(["north", "south", "west"])[region]
    return universe, pd.DataFrame({"age": age, "region": names, "smoker": smoker, "ill": ill})


def coverage(sessions: int = SESSIONS, rows: int = ROWS) -> dict[str, object]:
    """Return how often intervals contain the coefficient of least risk on the table, over many sessions."""
    question = hr.minimize(hr.losses.Logistic(target="ill", features=["age", "region", "smoker"]), hr.L2Ball(10.0))
    inside, widths, off = [], [], []
    for seed in range(sessions):
        universe, frame = small_table(seed, rows)
        session = hr.open(frame, universe=universe, budget=hr.Budget(1.0, 1e-6), seed=seed, progress=False)
        answer = session.ask(question)
        apart = np.abs(np.asarray(answer.value) - unsafe_answer(session._data, question))
        inside.append(apart <= np.asarray(answer.coefficient_errors))
        widths.append(np.asarray(answer.coefficient_errors))
        off.append(apart)
        assert answer.coefficient_basis == "bootstrap"
    return {
        "sessions": sessions, "rows": rows, "of each coefficient": np.mean(inside, axis=0).round(3).tolist(),
        "of all": float(np.mean(inside)), "mean half width": float(np.mean(widths)), "mean error": float(np.mean(off)),
    }  # fmt: skip


def workload_effect(epsilon: float) -> dict[str, object]:
    """Return the mean error of shares of high income by group, with and without a formula as the workload."""
    table, groups = tables.load("whole_census"), ["sex", "race", "education", "major_occupation"]
    universe = hr.Universe({name: hr.Categories(range(size)) for name, size in table.sizes.items()})
    truth = {g: table.frame.groupby(g).income.mean() for g in groups}
    found: dict[str, object] = {}
    for name, workload in (("without", None), ("with", ["income ~ " + " + ".join(groups)])):
        session = hr.open(
            table.frame, universe=universe, budget=hr.Budget(epsilon, 1e-9, neighbours="add-remove"), queries=10_000,
            seed=0, progress=False, workload=workload,
        )  # fmt: skip
        off = [
            abs(session.ask(hr.share(hr.count(income=1), where=hr.count({g: int(value)}))).value - share)
            for g in groups
            for value, share in truth[g].items()
        ]
        other = ["age", "weeks", "marital", "class", "citizenship", "veteran"]
        pairs = [(a, b) for i, a in enumerate(other) for b in other[i + 1 :]]
        others = []
        for pair in pairs:
            cells = np.zeros(universe.sizes(pair))
            np.add.at(cells, tuple(table.frame[column] for column in pair), 1 / len(table.frame))
            others.append(float(np.abs(np.asarray(session.ask(hr.marginal(*pair)).value) - cells).sum() / 2))
        found[name] = {
            "shares of high income, mean error": float(np.mean(off)),
            "other pairs, mean distance": float(np.mean(others)),
        }
    return found


def main() -> None:
    """Measure what the options name, and write it beside this file and on the page."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("areas", "coverage", "workload"))
    parser.add_argument("--epsilon", type=float, default=1.0)
    given = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}

    def keep(name: str, found: object) -> None:
        """Store a part as soon as it is measured, and write the page."""
        print(name, found, flush=True)
        kept[name] = found
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
        PAGE.write_text(page(kept))

    if given.only in (None, "coverage"):
        keep("coverage", coverage())
    if given.only in (None, "workload"):
        keep("workload", workload_effect(given.epsilon))
    if given.only in (None, "areas"):
        for declared in (True, False):
            keep("declared" if declared else "not declared", areas(given.epsilon, declared=declared))
    PAGE.write_text(page(kept))


def page(kept: dict[str, Any]) -> str:
    """Return the page of what has been measured."""
    lines = [
        "# Benchmarks of models in a session",
        "",
        "`make bench-models`: logistic models fitted to the model of a session at ε = 1.",
        "",
        "## Area under the curve",
        "",
        "Income above 50,000 in the census (299,285 people, 41 columns), fitted to four fifths of the rows and judged on",
        f"the rest, by the number of features; wanted: at most {BEHIND} behind the same model fitted to the rows. *Declared*:",
        "the model of 40 features was listed as the workload when the session was opened. *Sample*: a bound on what fitting",
        "to a sample of the hypothesis adds to the risk.",
        "",
        "| features | workload | session | rows | behind | sample | intervals of all coefficients |",
        "|---:|---|---:|---:|---:|---:|---|",
    ]
    for workload in ("declared", "not declared"):
        for row in kept.get(workload, ()):
            behind = f"{row['behind']:.4f}" if row["behind"] <= BEHIND else f"**{row['behind']:.4f}**"
            sample = "–" if row["simulation"] is None else f"{row['simulation']:.4f}"
            lines.append(
                f"| {row['features']} | {workload} | {row['ours']:.4f} | {row['not private']:.4f} | {behind} | {sample} | "
                f"{'yes' if row['intervals'] else '**no**'} |"
            )
    found = kept.get("coverage")
    if found:
        lines += [
            "",
            "## Intervals of coefficients",
            "",
            f"A model of three features, fitted in {found['sessions']} sessions on tables of {found['rows']:,} rows, each drawn anew, at δ = 10⁻⁶.",
            "The intervals, by bootstrap at 95 %, contain the coefficient of least risk on the table:",
            "",
            "| coefficient | " + " | ".join(str(i + 1) for i in range(len(found["of each coefficient"]))) + " | all |",
            "|---|" + "---:|" * (len(found["of each coefficient"]) + 1),
            "| share | "
            + " | ".join(f"{each:.1%}" for each in (*found["of each coefficient"], found["of all"]))
            + " |",
            "",
            f"Their mean half width is {found['mean half width']:.3f}, the mean error {found['mean error']:.3f}.",
        ]
    found = kept.get("workload")
    if found:
        names = list(found["with"])
        lines += [
            "",
            "## A formula as the workload",
            "",
            'On the same census, with `workload=["income ~ sex + race + education + major_occupation"]` and without:',
            "",
            "| | without | with |",
            "|---|---:|---:|",
            *(f"| {name} | {found['without'][name]:.4f} | {found['with'][name]:.4f} |" for name in names),
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
