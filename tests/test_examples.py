"""The examples run as they are, each in a process and a folder of its own, and what they print is true of their tables."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))
NUMBER = r"([\d,]+(?:\.\d+)?)"
BAR = rf"{NUMBER}(%?) ± {NUMBER}"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, folder: Path, **environment: str) -> str:
    """Run an example with a seed and return what it prints. It leaves nothing in its folders."""
    known = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "JAVA_HOME") if name in os.environ}
    paths = {"HOME": str(folder), "TMPDIR": str(folder), "NUMBA_CACHE_DIR": str(folder / "numba")}
    command = [sys.executable, "-W", "ignore", str(FOLDER / f"{name}.py"), "1"]
    done = subprocess.run(
        command, cwd=folder, env={**known, **paths, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def number(text: str) -> float:
    return float(text.replace(",", ""))


def found(pattern: str, said: str) -> list[tuple[str, float, float]]:
    """Return a label, a value and a bar for each line with ``label: value ± bar``; percentages as fractions."""
    lines = re.findall(pattern.replace("BAR", BAR), said)
    assert lines, (pattern, said)
    scale = [0.01 if line[-2] else 1.0 for line in lines]
    return [(line[0], number(line[-3]) * s, number(line[-1]) * s) for line, s in zip(lines, scale, strict=True)]


def holds(pattern: str, said: str, truth: dict[str, float], rounding: float = 0.001) -> None:
    """Check that the bar of each label includes the truth, and is narrow enough to say something."""
    told = found(pattern, said)
    assert {label for label, _, _ in told} == set(truth)
    for label, value, bar in told:
        assert abs(value - truth[label]) <= bar + rounding, (label, value, bar, truth[label])
        assert bar < value, (label, value, bar)


def test_the_readme_names_every_example() -> None:
    assert sorted(re.findall(r"\| \[(\w+)\.py\]", (FOLDER / "README.md").read_text())) == SCRIPTS
    assert len(SCRIPTS) >= 6


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_uses_public_names_only(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    assert set(re.findall(r"^\s*(?:import|from) (hedgerow[\w.]*)", text, re.MULTILINE)) == {"hedgerow"}
    assert not re.search(r"\bhr\.(_|unsafe|bench|research)|/(home|work|Users)/", text)


def test_hospital_visits_are_told_within_their_bars(tmp_path: Path) -> None:
    said, module = run("hospital_visits", tmp_path), example("hospital_visits")
    table = module.visits()
    most = table["patient"].value_counts().max()
    assert f"{len(table):,} visits of {table['patient'].nunique():,} patients. One of them came {most} times" in said
    # The answers are about at most three visits of each patient, a sample of each: near the share of all visits.
    kept = table.groupby("patient").sample(frac=1, random_state=0).groupby("patient").head(module.KEPT)
    shares = kept.groupby("department")["emergency"].mean().to_dict()
    holds(r"  (\w+) +BAR", said, shares)
    low, high = (float(end) / 100 for end in re.findall(r"between ([\d.]+)% and ([\d.]+)%, so it has more", said)[0])
    assert low < shares["cardiology"] - shares["dermatology"] < high
    assert 0 < float(re.findall(r"lost ε = ([\d.]+) of 2", said)[0]) <= 2


def test_missing_answers_of_a_survey_are_told_within_their_bars(tmp_path: Path) -> None:
    said, table = run("survey_with_missing_values", tmp_path), example("survey_with_missing_values").survey()
    silent = table["income"].isna()
    unclear = float((table["region"] == "do not know").mean())
    holds(r"No (income given|known region): +BAR", said, {"income given": silent.mean(), "known region": unclear})
    group = pd.cut(table["age"], [17, 41, 65, 90], labels=["18 to 41", "42 to 65", "66 to 90"])
    by_age, _, rest = said.partition("Of those who gave one")
    holds(r"  (\d\d to \d\d): +BAR", by_age, silent.groupby(group, observed=True).mean().to_dict())
    rich = (table["income"] >= 40_000)[~silent]
    holds(r"  (\d\d to \d\d): +BAR", rest, rich.groupby(group, observed=True).mean().to_dict())
    assert "error bars exclude a difference of 0" in said
    low, high = map(number, re.findall(rf"between {NUMBER} and {NUMBER}\.\n", said)[0])
    assert low <= table["income"].median() <= high
    happy = table["happy"].map(lambda value: "(missing)" if np.isnan(value) else str(int(value)))
    holds(r"happy = (\S+) +BAR people", said, happy.value_counts().astype(float).to_dict(), rounding=1)


def test_flights_are_told_within_their_bars(tmp_path: Path) -> None:
    module = example("flights")
    said, table = run("flights", tmp_path), module.with_weekday(module.flights())
    month = table["day"].dt.strftime("%Y-%m")
    holds(r"  (\d{4}-\d\d) +BAR", said, table["late"].groupby(month).mean().to_dict())
    holds(r"  (\w+day) +BAR", said, table["late"].groupby(table["weekday"]).mean().to_dict())
    assert "Friday is the worst day: its bar is above all others." in said
    late = float((table["late"] & (month == "2023-07")).sum())
    holds(r"(Late flights in July): BAR\.", said, {"Late flights in July": late}, rounding=1)
    first = float((table["day"] < "2023-07-01").mean())
    holds(r"(first half of the year): BAR", said, {"first half of the year": first})
    delay = table["delay"].clip(-10, 110)
    gap = delay[month.isin(["2023-06", "2023-07", "2023-08"])].mean() - delay[month.isin(["2023-01", "2023-02"])].mean()
    holds(r"(summer) is later than one in winter by BAR", said, {"summer": gap}, rounding=0.1)
    low, high = (float(end) for end in re.findall(r"changes by ([-+][\d.]+)% to ([-+][\d.]+)%", said)[0])
    early = table[table["day"] < "2023-09-01"]
    days = (early["day"] - early["day"].min()).dt.days
    assert low <= 3000 * np.polyfit(days, early["late"], 1)[0] <= high
    counts = table.groupby(table["day"].dt.to_period("Q").dt.start_time).size()
    for quarter, many, error, _, _ in re.findall(r"(2023-\d\d-01)" + r" +([\d.]+)" * 4, said):
        assert abs(float(many) - counts[quarter]) <= float(error)


def test_a_search_through_a_holdout_is_not_fooled(tmp_path: Path) -> None:
    said = run("model_search", tmp_path)
    fooled, naive, chosen, low, high, careful = map(float, re.findall(r"([\d.]+)%", said))
    assert fooled - naive > 2 and abs(naive - 50) < 1  # 50,000 fresh people: a standard error of 0.2
    assert low <= careful <= high and low <= chosen <= high and low <= 50 <= high
    assert "The interval includes a half: nothing was found." in said


def test_two_analysts_share_a_ledger(tmp_path: Path) -> None:
    said, table = run("shared_ledger", tmp_path), example("shared_ledger").people()
    young = table["smoker"] & table["age"].between(18, 30) & (table["region"] == "north")
    holds(r"(Free|half the error): BAR", said, {"Free": young.mean(), "half the error": young.mean()})
    (_, _, free), (_, _, paid) = found(r"(Free|half the error): BAR", said)
    assert paid <= free / 2 + 1e-4
    assert "gets the same answer, for 0: it was paid for" in said
    assert re.search(r"what is left of the cap of 'ben'\. Found .* nothing was charged", said)
    shares = dict(re.findall(r"  (the owner|ana|ben) +\d+ charges, +([\d.]+)%", said))
    assert set(shares) == {"the owner", "ana"} and abs(float(shares["the owner"]) - 60) < 0.1
    assert f"for {shares['ana']}% of the budget" in said
    assert not (tmp_path / ".config").exists()  # no key in the reader's home


def test_spark_counts_what_the_table_holds_or_says_what_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        assert "Skipped, because this machine has no Java: install OpenJDK 17" in run("spark_cluster", tmp_path)
        return
    said, table = run("spark_cluster", tmp_path), example("spark_cluster").people()
    assert f"counted {len(table):,} rows" in said
    group = pd.cut(table["age"], [17, 41, 65, 90], labels=["18 to 41", "42 to 65", "66 to 89"])
    holds(r"aged (\d\d to \d\d): +BAR", said, table["smoker"].groupby(group, observed=True).mean().to_dict())
    holds(r"in the (\w+) *: +BAR people", said, table["region"].value_counts().astype(float).to_dict(), rounding=1)
    holds(r"(Smokers) are BAR years", said, {"Smokers": table.loc[table["smoker"], "age"].mean()}, rounding=0.1)


def test_spark_says_in_one_line_that_java_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    (tmp_path / "empty").mkdir()
    environment = {"PATH": str(tmp_path / "empty")}
    if "JAVA_HOME" in os.environ:
        pytest.skip("JAVA_HOME is set here")
    said = run("spark_cluster", tmp_path, **environment)
    assert re.fullmatch(r"Skipped, because this machine has no Java: install .*\n", said)
