"""Synthetic records never have what the owner declares impossible, and whole numbers stay whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr

UNIVERSE = hr.Universe(
    age=hr.Integers(0, 90), sex=hr.Categories(["F", "M"]), pregnant=hr.Flag(), income=hr.Range(0, 1000, bins=4)
)
PREGNANT_MEN, PREGNANT_CHILDREN = hr.count(sex="M", pregnant=True), hr.count(age=(0, 9), pregnant=True)


def people(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sex, age = rng.choice(["F", "M"], rows), rng.integers(0, 91, rows)
    pregnant = (sex == "F") & (age > 15) & (age < 50) & (rng.random(rows) < 0.2)
    return pd.DataFrame({"age": age, "sex": sex, "pregnant": pregnant, "income": rng.random(rows) * 1000})


@pytest.fixture(scope="module")
def session() -> hr.Session:
    with pytest.warns(hr.NotPrivateWarning):
        return hr.open(people(), universe=UNIVERSE, budget=hr.Budget(0.3, 1e-6), seed=2)


def wrong(records: pd.DataFrame) -> int:
    return int((records["pregnant"].astype(bool) & ((records["sex"] == "M") | (records["age"] < 10))).sum())


def test_no_record_has_what_is_impossible_in_a_session_and_in_its_release(session, tmp_path) -> None:
    assert wrong(session.synthetic(3000)) > 0  # noise alone makes some
    session.publish(tmp_path / "people.hedgerow")
    for source in (session, hr.load(tmp_path / "people.hedgerow")):
        records = source.synthetic(3000, impossible=[PREGNANT_MEN, PREGNANT_CHILDREN])
        assert len(records) == 3000 and wrong(records) == 0


def test_no_record_of_several_blocks_has_what_is_impossible() -> None:
    with pytest.warns(hr.NotPrivateWarning):
        session = hr.open(people(), universe=UNIVERSE, budget=hr.Budget(0.3, 1e-6), seed=2)
        session.append(people(2000))
    assert wrong(session.synthetic(2000, impossible=[PREGNANT_MEN | PREGNANT_CHILDREN])) == 0


def test_whole_numbers_stay_whole(session) -> None:
    age = session.synthetic(500)["age"].to_numpy(dtype=float)
    assert (age == np.round(age)).all()


def test_invalid_impossible_records_are_refused(session) -> None:
    with pytest.raises(hr.InvalidInput, match="impossible must leave records"):
        session.synthetic(100, impossible=[hr.count()])
    with pytest.raises(hr.InvalidInput, match="impossible must name whole bins"):
        session.synthetic(100, impossible=[hr.count(income=(0, 100))])
    with pytest.raises(hr.InvalidInput, match="impossible must be a list"):
        session.synthetic(100, impossible=PREGNANT_MEN)
    with pytest.raises(hr.InvalidInput, match="must be a count"):
        session.synthetic(100, impossible=[hr.mean("age")])
