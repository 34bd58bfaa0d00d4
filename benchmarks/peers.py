"""Beside AIM and MST at equal budget, on real tables: `make bench-peers`. Writes docs/benchmarks-peers.md.

    python benchmarks/peers.py [--tables adult nltcs …] [--epsilons 0.1 1 10] [--systems hedgerow mst …] [--seeds 5]
                               [--peer-seeds 1] [--limit 3600] [--page]

Everybody learns from the same four fifths of a table, under the same (ε, δ) and neighbours (add-remove), and gives as many
records as it was given rows. From these are counted 2,000 conjunctions of two or three ranges and up to 60 three-way tables;
hedgerow's answers are measured too. A classifier learns from the records and is tested on the rows held back. What takes more
than `--limit` seconds of CPU is stopped, and said so. Each result is kept in .tables/peers/, so that the command goes on where
it was; hedgerow's are measured anew when its sources changed. `--page` writes the page from what there is.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tables import BUILT, ROOT, TABLES, Coded, load

import hedgerow as hr
from hedgerow.errors import NotPrivateWarning, PublicWarning
from hedgerow.research.pages import short_lines

DELTA = 1e-9
PEERS = {
    "mst": {"method": "mst", "options": {}},
    "aim": {"method": "aim", "options": {}},
    "aim, small": {"method": "aim", "options": {"max_model_size": 1, "n_iters": 100}},
}
WHAT = {
    "hedgerow": "answers of `hr.release`, with its default workload",
    "hedgerow, records": "its `synthetic` records",
    "mst": "MST at its defaults",
    "aim": "AIM at its defaults (pairs, models of up to 80 MB, 1,000 iterations a round)",
    "aim, small": "AIM for those in a hurry: models of up to 1 MB, 100 iterations",
}
REPORTED = ("adult", "nltcs", "census", "flights", "ballots", "wages")
CHOSEN_ON = ("adult", "adult_dense", "nltcs", "payroll_like")
CHOSEN_AT_10 = ("ballots", "census", "flights")
CELLS = 200_000  # of a three-way table that is compared
RESULTS = BUILT / "peers"
PAGE = ROOT / "docs" / "benchmarks-peers.md"


# What is asked


class Workload:
    """The questions of a table, and their true answers."""

    def __init__(self, table: Coded) -> None:
        rng, names = np.random.default_rng(1), list(table.sizes)
        self._names, self._sizes = names, table.sizes
        self.conjunctions = [self._ranges(rng) for _ in range(2000)]
        triples = [t for t in itertools.combinations(names, 3) if np.prod([table.sizes[a] for a in t]) <= CELLS]
        self.triples = [triples[i] for i in rng.permutation(len(triples))[:60]]
        self.truth = self.counted(table.codes)

    def _ranges(self, rng: np.random.Generator) -> dict[str, tuple[int, int]]:
        chosen = rng.choice(len(self._names), size=rng.integers(2, 4), replace=False)
        names = [self._names[i] for i in sorted(chosen)]
        ends = {name: np.sort(rng.integers(0, self._sizes[name], 2)) for name in names}
        return {name: (int(low), int(high)) for name, (low, high) in ends.items()}

    def counted(self, codes: NDArray[np.int64]) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Fractions of these rows."""
        columns = {name: np.ascontiguousarray(codes[:, i]) for i, name in enumerate(self._names)}
        found = [
            np.logical_and.reduce([(columns[a] >= low) & (columns[a] <= high) for a, (low, high) in ranges.items()])
            for ranges in self.conjunctions
        ]
        tables = []
        for triple in self.triples:
            shape = [self._sizes[a] for a in triple]
            flat = np.ravel_multi_index([columns[a] for a in triple], shape)
            tables.append(np.bincount(flat, minlength=int(np.prod(shape))) / len(codes))
        return np.array([hits.mean() for hits in found]), tables

    def asked(self, session: hr.Session) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Return the session's answers to the same questions."""
        queries = [
            hr.count({name: np.isin(np.arange(self._sizes[name]), np.arange(low, high + 1)) for name, (low, high) in ranges.items()})
            for ranges in self.conjunctions
        ]  # fmt: skip
        counts = [answer.value for answer in session.ask_all(queries, progress=False)]
        tables = [np.asarray(session.ask(hr.marginal(*triple)).value).ravel() for triple in self.triples]
        return np.array(counts), tables

    def errors(self, found: tuple[NDArray[np.float64], list[NDArray[np.float64]]]) -> dict[str, float]:
        off = np.abs(found[0] - self.truth[0])
        apart = [np.abs(p - q) for p, q in zip(found[1], self.truth[1], strict=True)]
        return {
            "conjunctions": float(off.mean()),
            "worst conjunction": float(off.max()),
            "three-way": float(np.mean([cells.sum() / 2 for cells in apart])),
            "worst cell": float(max(cells.max() for cells in apart)),
        }


def accuracy(records: NDArray[np.int64], held_back: Coded) -> float:
    """Return the accuracy, on real rows, of a classifier that learned from these records."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    names = list(held_back.sizes)
    target = names.index(held_back.target)
    features = [i for i in range(len(names)) if i != target]
    if len(np.unique(records[:, target])) < 2:
        return float((held_back.codes[:, target] == records[0, target]).mean())
    some = records[np.random.default_rng(0).permutation(len(records))[:50_000]]  # records may come in any order
    learned = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(some[:, features], some[:, target])
    return float(learned.score(held_back.codes[:, features], held_back.codes[:, target]))


# Who is measured


def ours(table: Coded, workload: Workload, held_back: Coded, epsilon: float, seed: int) -> dict[str, dict[str, float]]:
    universe = hr.Universe.from_sizes(table.sizes)
    began = time.process_time()
    budget = hr.Budget(epsilon, DELTA, neighbours="add-remove")
    session = hr.release(table.frame, universe=universe, budget=budget, seed=seed, progress=False)
    records = session.synthetic(len(table.codes), resolution="bins")[list(table.sizes)].to_numpy(np.int64)
    cpu = time.process_time() - began
    return {
        "hedgerow": workload.errors(workload.asked(session)) | {"cpu": cpu},
        "hedgerow, records": workload.errors(workload.counted(records)) | {"accuracy": accuracy(records, held_back)},
    }


def peer(system: str, table: Coded, workload: Workload, held_back: Coded, epsilon: float, seed: int, limit: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        codes, records = Path(folder) / "codes.npy", Path(folder) / "records.npy"
        np.save(codes, table.codes)
        request = PEERS[system] | {
            "epsilon": epsilon, "delta": DELTA, "seed": seed, "sizes": table.sizes, "limit": limit,
            "codes": str(codes), "records": str(records),
        }  # fmt: skip
        script = Path(__file__).parent / "peer_dpmm.py"
        ran = subprocess.run([peers_python(), script, json.dumps(request)], capture_output=True, text=True)
        if ran.returncode < 0:  # stopped by the system
            return {system: {"limit": limit}}
        if ran.returncode:
            return {system: {"failed": ran.stderr.strip().splitlines()[-1][:200]}}
        found = np.load(records)
        spent = json.loads(ran.stdout.strip().splitlines()[-1])
        return {system: workload.errors(workload.counted(found)) | {"accuracy": accuracy(found, held_back)} | spent}


def peers_python() -> Path:
    """The Python of .venv-peers-records, made from peers_records.txt when it is not there or is of another list."""
    home, wanted = ROOT / ".venv-peers-records", Path(__file__).parent / "peers_records.txt"
    python, made_from = home / "bin" / "python", home / "made-from.txt"
    if not made_from.exists() or made_from.read_text() != wanted.read_text():
        print("making .venv-peers-records", flush=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", wanted], check=True)
        made_from.write_text(wanted.read_text())
    return python


def sources() -> str:
    """Return the files that hedgerow's results depend on."""
    folders = (ROOT / "src" / "hedgerow" / name for name in ("privacy", "questions", "data", "model", "engines"))
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def kept(table: str, system: str, epsilon: float, seed: int) -> Path:
    return RESULTS / table / f"{system.replace(', ', '-')}-{epsilon:g}-{seed}.json"


def measure(options: argparse.Namespace) -> None:
    version = sources()
    for name in options.tables:
        table = workload = held_back = None
        for system, epsilon in itertools.product(options.systems, options.epsilons):
            for seed in range(options.seeds if system == "hedgerow" else options.peer_seeds):
                path = kept(name, system, epsilon, seed)
                if path.exists():
                    known = json.loads(path.read_text())
                    if (system != "hedgerow" or known["version"] == version) and all(
                        figures.get("limit", options.limit) >= options.limit for figures in known["found"].values()
                    ):
                        continue
                if table is None or workload is None or held_back is None:
                    table, held_back = load(name).split()
                    workload = Workload(table)
                if system == "hedgerow":
                    found = ours(table, workload, held_back, epsilon, seed)
                else:
                    found = peer(system, table, workload, held_back, epsilon, seed, options.limit)
                print(name, system, epsilon, seed, found, flush=True)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps({"version": version, "found": found}))
        real = RESULTS / name / "real.json"
        if not real.exists() and table is not None and held_back is not None:
            real.parent.mkdir(parents=True, exist_ok=True)
            real.write_text(json.dumps({"accuracy": accuracy(table.codes, held_back)}))


# The page


FIGURES = ("conjunctions", "worst conjunction", "three-way", "worst cell", "accuracy", "cpu")


def results(name: str) -> pd.DataFrame:
    """Return all measurements of a table with the present hedgerow: a row for each system, ε and seed."""
    rows, version = [], sources()
    for path in sorted((RESULTS / name).glob("*-*-*.json")):
        *_, epsilon, seed = path.stem.rsplit("-", 2)
        known = json.loads(path.read_text())
        if "hedgerow" in known["found"] and known["version"] != version:
            continue
        for system, figures in known["found"].items():
            rows.append({"system": system, "epsilon": float(epsilon), "seed": int(seed), **figures})
    return pd.DataFrame(rows)


def shown(value: float, error: float, figure: str) -> str:
    if not np.isfinite(value):
        return ""
    digits = 1 if figure == "cpu" else 3 if figure in ("accuracy", "three-way") else 5
    return f"{value:.{digits}f}" + (f" ± {error:.{digits}f}" if np.isfinite(error) and figure != "cpu" else "")


def page() -> str:
    lines = [INTRODUCTION]
    ratios = []
    for name in TABLES:
        found = results(name)
        if found.empty:
            lines += [f"## {name}\nNot measured yet.\n"] if name in REPORTED else []
            continue
        table, real = load(name), RESULTS / name / "real.json"
        best_known = json.loads(real.read_text())["accuracy"] if real.exists() else float("nan")
        chosen = " Constants of hedgerow were chosen on it." if name in CHOSEN_ON else ""
        lines.append(f"## {name}\n{len(table.codes):,} rows, {len(table.sizes)} attributes of {min(table.sizes.values())} to "
                     f"{max(table.sizes.values())} values. A classifier of `{table.target}` that learned from the real rows: {best_known:.3f}.{chosen}\n")  # fmt: skip
        lines.append(
            "| ε | | seeds | conjunctions, mean | worst | three-way, mean distance | worst cell | classifier | CPU, s |"
        )
        lines.append("|---|---|---|---|---|---|---|---|---|")
        for epsilon, at in found.groupby("epsilon"):
            for system in WHAT:
                runs = at[at.system == system]
                if runs.empty:
                    lines.append(f"| {epsilon:g} | {system} | 0 | not run | | | | | |")
                    continue
                if "limit" in runs and runs["limit"].notna().any():
                    lines.append(
                        f"| {epsilon:g} | {system} | | not finished in {runs['limit'].max():.0f} s | | | | | |"
                    )
                    continue
                if "failed" in runs and runs["failed"].notna().any():
                    lines.append(f"| {epsilon:g} | {system} | | failed: {runs['failed'].dropna().iloc[0]} | | | | | |")
                    continue
                cells = [
                    shown(runs[f].mean(), runs[f].sem() if len(runs) > 1 else float("nan"), f) if f in runs else ""
                    for f in FIGURES
                ]
                lines.append(f"| {epsilon:g} | {system} | {len(runs)} | {' | '.join(cells)} |")
            peers = at[at.system.isin(PEERS)]
            if not peers.empty and "conjunctions" in peers and peers["conjunctions"].notna().any():
                ratios.append(compared(name, float(epsilon), at, peers))
        lines.append("")
    lines.append("## Against the best of them\nhedgerow's figure over the least that any peer has; below 1 it is better. The classifier: its accuracy on "
                 "hedgerow's records less the best peer's. CPU over that of AIM at its defaults, or over the limit at which that was stopped. *against* says which peers there were: "
                 "`aim, small` has a fraction of AIM's model and iterations, which may cost it accuracy, and where `aim` is missing the ratio is not one to AIM.\n")  # fmt: skip
    lines.append(
        "| table | ε | against | conjunctions | worst | three-way | worst cell | records: conjunctions | three-way | classifier | CPU / AIM |"
    )
    lines.append("|---|---|---|---|---|---|---|---|---|---|---|")
    return "\n".join([*lines, *ratios]) + "\n"


def compared(name: str, epsilon: float, at: pd.DataFrame, peers: pd.DataFrame) -> str:
    mean = at.groupby("system")[[f for f in FIGURES if f in at]].mean()
    best = peers.groupby("system")[[f for f in FIGURES if f in peers]].mean()
    if "hedgerow" not in mean.index:
        return f"| {name} | {epsilon:g} | | | | | | | | | |"
    answers, records = mean.loc["hedgerow"], mean.loc["hedgerow, records"]
    cells = [f"{answers[f] / best[f].min():.2f}" for f in FIGURES[:4]]
    cells += [f"{records[f] / best[f].min():.2f}" for f in ("conjunctions", "three-way")]
    cells.append(f"{records['accuracy'] - best['accuracy'].max():+.3f}")
    aim = peers[peers.system == "aim"].reindex(columns=["cpu", "limit"])
    took, stopped = aim["cpu"].mean(), aim["limit"].max()
    cells.append(
        f"{answers['cpu'] / took:.3f}"
        if np.isfinite(took)
        else f"< {answers['cpu'] / stopped:.2f}"
        if stopped > 0
        else ""
    )
    against = " · ".join(best.index[best["conjunctions"].notna()])
    return f"| {name} | {epsilon:g} | {against} | {' | '.join(cells)} |"


INTRODUCTION = (
    f"""# Comparison with AIM and MST

`make bench-peers` writes this page from its measurements so far. All methods learn from the same four fifths of a table's rows, at the same ε,
δ = {DELTA:g}, with neighbours that add or remove a row, and produce equally many records. Errors are fractions of the rows. A distance is half the sum of absolute
differences. ± is the standard error over seeds. The peers are AIM and MST of private-pgm, as packaged by dpmm; they produce records only.
Constants of hedgerow were chosen on {", ".join(CHOSEN_ON)}; the other tables were only measured. There is one exception: the way in which a model is built when
all tables are measured, as at ε = 10 in {", ".join(CHOSEN_AT_10)}, was chosen on these.

"""
    + "\n".join(f"- **{system}**: {what}" for system, what in WHAT.items())
    + "\n"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(REPORTED), choices=TABLES)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--systems", nargs="+", default=["hedgerow", *PEERS], choices=["hedgerow", *PEERS])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer-seeds", type=int, default=1)
    parser.add_argument("--limit", type=int, default=3600)
    parser.add_argument("--page", action="store_true", help="measure nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore", NotPrivateWarning)
    warnings.simplefilter("ignore", PublicWarning)
    if not options.page:
        measure(options)
    PAGE.write_text(short_lines(page()))


if __name__ == "__main__":
    main()
