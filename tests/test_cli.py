"""The command line: the demo ends with a picture, a release writes records, a refusal is one line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hedgerow
from hedgerow import demo
from hedgerow.cli import app
from hedgerow.demo import association
from hedgerow.query.counts import count
from hedgerow.research.stories import false_discovery

ROOT = Path(__file__).resolve().parent.parent
WITHOUT = """
import sys
without = sys.argv[1 : sys.argv.index("--")]
del sys.argv[1 : len(without) + 2]
class NotInstalled:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in without:
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, NotInstalled)
from hedgerow.cli import app
app(prog_name="hedgerow")
"""
FIGURES = (
    r"5,000 questions about 20,190 person-years cost ε = 1 in all, and the answers are ([\d.]+)% off on average and "
    r"([\d.]+)% at most, .* within (?:its|their) guaranteed error \(± ([\d.]+)% where widest\)"
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> tuple[str, Path]:
    """Run the demo as `make demo` does, without the libraries that `make demo` does not install.

    Returns what it prints, and where it leaves its picture.
    """
    folder = tmp_path_factory.mktemp("demo")
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, *_not_for_the_demo(), "demo", "--folder", str(folder)],
        capture_output=True, text=True, env=os.environ | {"COLUMNS": "80"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, folder


def _not_for_the_demo() -> list[str]:
    """Return what is imported of every declared library that DEMO_NEEDS of the Makefile does not list, and --."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = [each for extra in project["optional-dependencies"].values() for each in extra]
    declared = {re.split(r"[^\w-]", each)[0] for each in (*project["dependencies"], *optional)} - {"hedgerow"}
    listed = re.search(r"DEMO_NEEDS := ([^#]+)", (ROOT / "Makefile").read_text())
    assert listed is not None and {*listed[1].split()} <= declared
    imported = {"scikit-learn": "sklearn", "ibis-framework": "ibis"}
    return [*sorted(imported.get(each, each.replace("-", "_")) for each in declared - {*listed[1].split()}), "--"]


def test_the_demo_says_its_headline_and_saves_its_picture(ran) -> None:
    output, folder = ran
    assert re.search(FIGURES, " ".join(output.split()))
    assert "cost ε = 1 in all" in " ".join(output.split()) and "(ε = 1, δ = " in " ".join(output.split())
    picture = ElementTree.parse(folder / "error-by-questions.svg")
    lines = picture.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points", "").split()) for line in lines] == [25] * 4


def test_the_demo_tells_an_association_and_draws_it(ran) -> None:
    output, folder = ran
    said = " ".join(output.split())
    assert "No doctor's visit in a year:" in said and "The guaranteed bars prove" in said
    assert "Strongest associations by Cramér's V, free too:" in said
    drawn = (folder / "visits-by-group.svg").read_text()
    assert drawn.count("<circle") == drawn.count('class="bar"') == len(association.GROUPS)
    assert "pays 95 %" in drawn and "excellent health" in drawn


def test_the_table_of_the_demo_has_both_errors_the_truth_and_no_wide_bar(ran) -> None:
    output, _ = ran
    assert all(column in output for column in ("private", "guaranteed", "typical", "truth"))
    rows = re.findall(r"│\s+(\S+)% │\s+± (\S+)% │[^│]*│\s+(\S+)% │", output)
    assert len(rows) == len(demo.SHOWN)
    for private, guaranteed, truth in (map(float, row) for row in rows):
        assert guaranteed <= 5 and abs(private - truth) <= guaranteed + 0.01  # as printed


def test_the_readme_says_what_the_demo_says(ran) -> None:
    """Its figures are those of a run, whose noise is its own: another's are neither half nor twice as large."""
    readme = (Path(__file__).parent.parent / "README.md").read_text().replace("\n> ", " ")
    stated, found = (re.search(FIGURES, " ".join(text.split())) for text in (readme, ran[0]))
    assert stated is not None and found is not None
    for there, here in zip(map(float, stated.groups()), map(float, found.groups()), strict=True):
        assert there / 2 < here < there * 2


def test_neighbouring_bins_are_said_as_one() -> None:
    assert demo.words(count(coinsurance=0, visits={"[9, 15)", "[15, 80]"})) == "coinsurance 0, visits in [9, 80]"
    asked = list(demo.questions(300, np.random.default_rng(0)))
    assert all(demo.words(query).count(" ") >= 1 for query in asked)


@pytest.mark.parametrize(
    ("opposed", "answered"), [(0, None), (4, 601), (600, 5)], ids=["coins", "ends among votes", "ends among features"]
)
def test_the_demo_of_a_holdout_shows_what_is_claimed_and_saves_its_picture(
    tmp_path, monkeypatch, opposed, answered
) -> None:
    """Its five rounds may end before its 605 questions: surely where features say the label in training and the opposite after."""
    sides = iter((1, -1))

    def some_opposed(rows, features, rng):
        X, y = coins(rows, features, rng)
        X[:, :opposed] = next(sides) * y[:, None]
        return X, y

    coins = false_discovery.coins
    monkeypatch.setattr(false_discovery, "coins", some_opposed)
    ran = CliRunner().invoke(app, ["demo", "holdout", "--folder", str(tmp_path), "--questions", "600"])
    assert ran.exit_code == 0, ran.output
    words = " ".join(ran.output.split())
    questions = int(re.search(r"(\d+) questions ·", words).group(1))
    unanswered = re.search(r"its 5 rounds ended before the questions did: (\d+) were not answered", words)
    assert questions + int(unanswered.group(1) if unanswered else 0) == 605
    assert answered is None or 5 <= questions <= answered  # fewer where a coin, too, is taken for more than one
    rows = [line for line in ran.output.splitlines() if re.match(r"│ +(20|50|100|200|500) │", line)]
    assert len(rows) == 5 and sum("–" in line for line in rows) == min(5, 605 - questions)
    assert (tmp_path / "false-discovery.png").stat().st_size > 10_000


def test_a_demo_that_is_not_there_is_refused() -> None:
    ran = CliRunner().invoke(app, ["demo", "nothing"])
    assert ran.exit_code == 2 and "must be one of 'counts', 'convex', 'holdout'" in ran.output


def test_a_release_writes_synthetic_records_with_the_columns_of_the_table(tmp_path) -> None:
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.integers(0, (3, 4, 2), (5000, 3)), columns=["a", "b", "c"]).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "domain.json").write_text(json.dumps({"a": 3, "b": 4, "c": 2}))
    out = tmp_path / "synthetic.csv"
    files = [str(tmp_path / "t.csv"), str(tmp_path / "domain.json")]
    ran = CliRunner().invoke(app, ["release", *files, "--epsilon", "1", "--delta", "1e-6", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    records = pd.read_csv(out)
    assert list(records.columns) == ["a", "b", "c"]
    assert len(records) == 5000
    assert records["b"].isin(range(4)).all()


def test_a_refusal_is_one_line_and_not_a_traceback(tmp_path) -> None:
    (tmp_path / "domain.json").write_text(json.dumps({"a": 3}))
    files = [str(tmp_path / "nowhere.csv"), str(tmp_path / "domain.json")]
    ran = CliRunner().invoke(app, ["release", *files, "--epsilon", "-1", "--delta", "1e-6"])
    assert ran.exit_code == 2
    assert "must be" in ran.output
    assert "Traceback" not in ran.output


def test_the_package_runs_as_a_module_where_the_command_is_not_on_the_path() -> None:
    ran = subprocess.run([sys.executable, "-m", "hedgerow", "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.strip()) == (0, hedgerow.__version__), ran.stderr
