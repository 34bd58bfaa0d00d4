"""The command line: the demo ends with a picture, a release writes records, a refusal is one line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from hedgerow.cli import app


def test_the_demo_answers_and_saves_its_picture(tmp_path) -> None:
    ran = CliRunner().invoke(app, ["demo", "--folder", str(tmp_path), "--questions", "1500"])
    assert ran.exit_code == 0, ran.output
    assert "1,500 questions" in ran.output
    assert "private answer" in ran.output
    assert (tmp_path / "error-by-questions.png").stat().st_size > 10_000


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
