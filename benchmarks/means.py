"""Numbers within groups: guaranteed bars and typical errors of means and more. Writes docs/benchmarks-means.md.

    python benchmarks/means.py [--seeds 2] [--tables census-28 adult …] [--columns] [--page]

Tables and declarations are those of associations.py. ``--columns`` measures what sums of numbers as columns of their own
would gain, and nothing else. Each result is kept in .tables/means.json, so that the command goes on where it was.
``--page`` writes the page from what there is.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from associations import DELTA, DOCS, EPSILON, GROUP, TABLES, Run, counted, table_of, universe_of
from numpy.typing import NDArray
from tables import BUILT

import hedgerow as hr
from hedgerow.unsafe import unsafe_answer

STORED = BUILT / "means.json"
EVERY = ("census-28", "census-42", *TABLES)
BARS, LEAST = 6.0, 50  # wanted: median bar / median error of means; questions of a class that is judged
QUESTIONS, LEVELS = 60, (0.1, 0.25, 0.5, 0.75, 0.9)  # questions of each class about numbers, and quantiles' orders
MODELS, FEATURES, WIDEST_FEATURE, NORMAL_95 = 10, 2, 10, 1.96
SHARE_OF_SUMS, UNMEASURED = 0.05, 0.12  # part of the budget for sums; errors of unmeasured means in deviations
CLASSES = (
    *("cells of pairs", "counts of 1", "counts of 2", "counts of 3", "shares of groups", "means of groups"),
    *("quantiles", "correlations", "differences", "coefficients"),
)
warnings.simplefilter("ignore")


def opened(frame: pd.DataFrame, sizes: dict[str, int], seed: int, epsilon: float = EPSILON) -> hr.Session:
    """Open a session on a table."""
    return hr.open(
        frame,
        universe=universe_of(sizes),
        budget=hr.Budget(epsilon, DELTA, neighbours="add-remove"),
        queries=10_000,
        progress=False,
        seed=seed,
    )


def errors(name: str, seed: int) -> Run:
    """Return mean error and mean typical error by class, and median bar / median error of means."""
    frame, sizes = table_of(name)
    session, rng = opened(frame, sizes, seed), np.random.default_rng(1)
    found: Run = {"classes": {}}
    pairs = list(itertools.combinations(sizes, 2))
    tables = session.ask_all([hr.marginal(*pair) for pair in pairs])
    known = [
        (np.abs(np.asarray(a.value) - counted(frame, sizes, pair) / len(frame)).mean(), np.mean(a.typical))
        for pair, a in zip(pairs, tables, strict=True)
        if a.typical is not None
    ]
    found["classes"]["cells of pairs"] = _calibration(known)
    for size in (1, 2, 3):
        chosen = [tuple(rng.choice(list(sizes), size, replace=False).tolist()) for _ in range(150)]
        masks = [{n: rng.random(sizes[n]) < 1 / 3 for n in names} for names in chosen]
        masks = [each for each in masks if all(mask.any() and not mask.all() for mask in each.values())]
        counts = session.ask_all([hr.count(each) for each in masks])
        hits = [np.logical_and.reduce([mask[frame[n].to_numpy()] for n, mask in each.items()]) for each in masks]
        known = [
            (abs(a.value - h.mean()), a.typical) for a, h in zip(counts, hits, strict=True) if a.typical is not None
        ]
        found["classes"][f"counts of {size}"] = _calibration(known)
    _means(found, session, frame, sizes, rng)
    found["classes"] |= _of_numbers(session, frame, sizes, np.random.default_rng(2))
    return found


def _means(
    found: Run, session: hr.Session, frame: pd.DataFrame, sizes: dict[str, int], rng: np.random.Generator
) -> None:
    """Shares and means within groups of at least 1 % of the rows."""
    means, shares, groups, numbers = [], [], [], [name for name in sizes if session.universe[name].ordered]
    often = {name: counted(frame, sizes, (name,)) >= GROUP * len(frame) for name in sizes}
    for _ in range(150):
        group, of = rng.choice(list(sizes), 2, replace=False).tolist()
        if not often[group].any():
            continue
        value = int(rng.choice(np.flatnonzero(often[group])))
        inside = frame[group].to_numpy() == value
        where, mask = hr.count({group: np.arange(sizes[group]) == value}), rng.random(sizes[of]) < 1 / 3
        if mask.any() and not mask.all():
            a = session.ask(hr.share(hr.count({of: mask}), where))
            shares.append((abs(a.value - mask[frame[of].to_numpy()[inside]].mean()), a.typical))
        if others := [name for name in numbers if name != group]:
            of = str(rng.choice(others))
            a = session.ask(hr.mean(of, where=where))
            groups.append(float(inside.sum()))
            means.append(_in_range(sizes[of], abs(a.value - frame[of][inside].mean()), a.typical, a.error))
    if means:
        found["floor of means"] = _floor(session, frame, sizes, groups, [m[0] for m in means])
    found["classes"]["shares of groups"] = _calibration([s for s in shares if s[1] is not None])
    found["classes"]["means of groups"] = _calibration([m[:2] for m in means if m[1] is not None])
    if means:
        off, _, bars = zip(*means, strict=True)
        found["bars of means"] = float(np.median([np.inf if bar is None else bar for bar in bars]) / np.median(off))


def sums_of_groups(
    session: hr.Session, frame: pd.DataFrame, sizes: dict[str, int]
) -> Iterator[tuple[str, str, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]:
    """Yield, for every number and other attribute, the places of the number about each group's believed mean.

    The places are parts of its range, one line for each group, with the believed and the true counts.
    """
    numbers = [name for name in sizes if session.universe[name].ordered]
    pairs = [(group, of) for of in numbers for group in sizes if group != of]
    answers = session.ask_all([hr.marginal(*pair) for pair in pairs])
    for (group, of), answer in zip(pairs, answers, strict=True):
        believed = len(frame) * np.asarray(answer.value, float)
        along = np.linspace(0, 1, sizes[of])
        totals = believed.sum(axis=1, keepdims=True)
        places = along - np.divide(believed @ along[:, None], totals, out=np.full(totals.shape, 0.5), where=totals > 0)
        yield group, of, places, believed, counted(frame, sizes, (group, of))


def _floor(
    session: hr.Session, frame: pd.DataFrame, sizes: dict[str, int], groups: list[float], off: list[Any]
) -> float:
    """Return what median bar / median error would be if the largest error of all sums were known without noise.

    No bar of the same number of rows for all groups can be narrower and hold for all of them.
    """
    sums = sums_of_groups(session, frame, sizes)
    largest = max(
        float(np.abs((places * (true - believed)).sum(axis=1)).max()) for _, _, places, believed, true in sums
    )
    return float(np.median(largest / np.array(groups)) / np.median(off))


def columns(name: str, seed: int) -> Run:
    """Compare means by cells alone with means that also use sums of numbers, measured as columns of their own.

    The sums of all numbers within all groups, about their believed means, get a share of the budget, and cells the
    rest. Both estimates are combined by precision. The noise of the sums is NumPy's: this is an experiment.
    """
    frame, sizes = table_of(name)
    rho, rng, found = hr.Budget(EPSILON, DELTA).total, np.random.default_rng(seed), {}
    for share in (0.0, SHARE_OF_SUMS):
        low, high = 0.0, EPSILON
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if hr.Budget(middle, DELTA).total <= (1 - share) * rho else (low, middle)
        session = opened(frame, sizes, seed, EPSILON if share == 0 else low)
        sums = list(sums_of_groups(session, frame, sizes))
        moved = sum(float(np.abs(places).max()) ** 2 for _, _, places, _, _ in sums)  # by one row, squared
        off = []
        for group, of, places, believed, true in sums:
            error = (places * (true - believed)).sum(axis=1)
            if share:
                means = session.ask(hr.group_by(group).mean(of))
                spread = np.sqrt((places**2 * believed).sum(axis=1) * believed.sum(axis=1))
                typical = UNMEASURED * spread if means.typical is None else means.typical / (sizes[of] - 1)
                typical = typical if means.typical is None else typical * believed.sum(axis=1) * math.sqrt(math.pi / 2)
                noise = moved / (2 * share * rho)
                weight = np.square(typical) / (np.square(typical) + noise)
                error = error - weight * (error + rng.normal(0, math.sqrt(noise), error.shape))
            often = true.sum(axis=1) >= GROUP * len(frame)
            off += (np.abs(error) / np.maximum(true.sum(axis=1), 1))[often].tolist()
        found["sums" if share else "cells"] = float(np.mean(off))
    return found


def _in_range(size: int, *numbers: float | None) -> tuple[float | None, ...]:
    """Return numbers in units of an attribute as parts of its range."""
    return tuple(None if number is None else number / (size - 1) for number in numbers)


def _of_numbers(
    session: hr.Session, frame: pd.DataFrame, sizes: dict[str, int], rng: np.random.Generator
) -> dict[str, list[float]]:
    """Quantiles, correlations and differences within groups of at least 1 % of the rows, and coefficients."""
    numbers = [name for name in sizes if session.universe[name].ordered]
    often = {name: np.flatnonzero(counted(frame, sizes, (name,)) >= GROUP * len(frame)) for name in sizes}
    groups = [name for name in sizes if len(often[name]) >= 2]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in CLASSES[6:]}

    def ask(kind: str, question: Any, size: int = 2) -> None:
        answer = session.ask(question)
        if answer.typical is not None:
            off = abs(answer.value - float(unsafe_answer(frame, question, session.universe)))
            found[kind].append(_in_range(size, off, answer.typical))  # type: ignore[arg-type]

    for _ in range(QUESTIONS):
        group = str(rng.choice(groups))
        first, second = (hr.count({group: int(v)}) for v in rng.choice(often[group], 2, replace=False))
        if others := [name for name in numbers if name != group]:
            of = str(rng.choice(others))
            ask("quantiles", hr.quantile(of, float(rng.choice(LEVELS)), where=first), sizes[of])
            ask("differences", hr.difference(hr.mean(of, where=first), hr.mean(of, where=second)), sizes[of])
        if len(others) > 1:
            a, b = rng.choice(others, 2, replace=False).tolist()
            ask("correlations", hr.correlation(a, b, where=first if rng.random() < 0.5 else None))
        else:
            of = str(rng.choice([name for name in sizes if name != group]))
            share = hr.count({of: rng.choice(sizes[of], max(1, sizes[of] // 3), replace=False).tolist()})
            ask("differences", hr.difference(hr.share(share, first), hr.share(share, second)))
    targets, narrow = [n for n in sizes if sizes[n] == 2], [n for n in sizes if sizes[n] <= WIDEST_FEATURE]
    for _ in range(MODELS if targets and len(narrow) > FEATURES else 0):
        target = str(rng.choice(targets))
        features = rng.choice([n for n in narrow if n != target], FEATURES, replace=False).tolist()
        model = hr.minimize(hr.losses.Logistic(target=target, features=features), hr.L2Ball(10.0))
        answer = session.ask(model)
        truth = np.ravel(unsafe_answer(frame, model, session.universe))
        for value, true, width in zip(np.ravel(answer.value), truth, np.ravel(answer.coefficient_errors), strict=True):
            if np.isfinite(width) and answer.coefficient_basis == "bootstrap":
                found["coefficients"].append((abs(value - true), width * math.sqrt(2 / math.pi) / NORMAL_95))
    return {kind: _calibration(known) for kind, known in found.items()}


def _calibration(known: list[Any]) -> list[float]:
    """The number of questions, and the sums of their errors and of their typical errors."""
    return [len(known), float(sum(each[0] for each in known)), float(sum(each[1] for each in known))]


def _stored() -> dict[str, Run]:
    return json.loads(STORED.read_text()) if STORED.exists() else {}


def _marked(text: str, good: bool) -> str:
    return text if good else f"**{text}**"


def page() -> str:
    results = _stored()
    lines = [
        "# Benchmarks of numbers within groups",
        "",
        f"`python benchmarks/means.py`: ε = {EPSILON:g}, δ = {DELTA:g}, add/remove. Tables and declarations are those of",
        f"[associations](benchmarks-associations.md). Groups have at least {GROUP:.0%} of the rows. Bold: outside of what is wanted.",
        "",
        "## Guaranteed bars of means",
        "",
        f"Median bar / median error of 150 means of a seed; wanted: at most {BARS:g}. Bars hold for all numbers within all",
        "groups at once. *Largest known*: the same if the largest error of all the sums that means are made of were known",
        "without noise and were, in rows, the bar of each. Bars that hold for all groups can be narrower than that for one",
        "group only if they are wider for another.",
        "",
        "| | seeds | bar / error | largest known |",
        "|---|---:|---:|---:|",
    ]
    for name in EVERY:
        runs = [run for key, run in results.items() if key.startswith(f"{name} errors ") and "bars of means" in run]
        if runs:
            bars, floor = (float(np.mean([run[key] for run in runs])) for key in ("bars of means", "floor of means"))
            lines.append(f"| {name} | {len(runs)} | {_marked(f'{bars:.1f}', bars <= BARS)} | {floor:.1f} |")
    lines += [
        "",
        "## Typical errors",
        "",
        f"Mean error / stated typical error, for classes with at least {LEAST} questions; wanted: within [0.5, 2]. Errors of",
        "means, quantiles and differences of means are parts of the number's range. That of a coefficient of a logistic",
        "model is compared with its bootstrapped interval, as of a normal error.",
        "",
        "| | " + " | ".join(CLASSES) + " |",
        "|---|" + "---:|" * len(CLASSES),
    ]
    for name in EVERY:
        runs = [run for key, run in results.items() if key.startswith(f"{name} errors ")]
        if not runs:
            continue
        cells = []
        for each in CLASSES:
            number, off, said = np.sum([run["classes"][each] for run in runs], axis=0).tolist()
            ratio = off / said if said else math.nan
            cells.append("–" if number < LEAST else _marked(f"{ratio:.2f}", 0.5 <= ratio <= 2))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "## Sums of numbers as columns of their own",
        "",
        f"`--columns`: the sums of every number within every group, about the group's believed mean, get {SHARE_OF_SUMS:.0%} of the",
        "budget, and cells the rest. Both estimates are combined by precision. The noise of the sums is NumPy's: this is",
        f"an experiment. All other errors grow by {1 / math.sqrt(1 - SHARE_OF_SUMS) - 1:.1%}. Mean error of all numbers in all groups, in parts of",
        "the number's range:",
        "",
        "| | cells alone | with sums | ratio |",
        "|---|---:|---:|---:|",
    ]
    for name in EVERY:
        runs = [run for key, run in results.items() if key.startswith(f"{name} columns ")]
        if runs:
            cells_alone, sums = (float(np.mean([run[key] for run in runs])) for key in ("cells", "sums"))
            lines.append(f"| {name} | {cells_alone:.5f} | {sums:.5f} | {sums / cells_alone:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tables", nargs="+", default=list(EVERY))
    parser.add_argument("--columns", action="store_true")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    given = parser.parse_args()
    kind, measured = ("columns", columns) if given.columns else ("errors", errors)
    for seed, name in itertools.product(range(0 if given.page else given.seeds), given.tables):
        key = f"{name} {kind} {seed}"
        if key not in _stored():
            found = measured(name, seed)
            print(key, found, flush=True)
            STORED.write_text(json.dumps(_stored() | {key: found}, indent=1))
    (DOCS / "benchmarks-means.md").write_text(page())


if __name__ == "__main__":
    main()
