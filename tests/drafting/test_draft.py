"""Drafts of a universe from public facts, and from the data for a price."""

from __future__ import annotations

import datetime
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest
from postgres import server
from sqlite_file import open_sqlite

import hedgerow as hr
from hedgerow.data.readers import open_batches
from hedgerow.data.value_counts import ValueCounts, count_values
from hedgerow.drafting import numbers
from hedgerow.errors import InvalidInput
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded

BUDGET = hr.Budget(2.0, 1e-5)
TABLE = "(sex text check (sex in ('F', 'M')), age int check (age between 0 and 120 and age < 50), k double check (k >= -1.5 and k <= 2))"


def people(rows: int = 4000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(17, 91, rows),
            "income": np.exp(rng.normal(10, 1, rows)).round(2),
            "sex": rng.choice(["F", " M", "M", "rare"], rows, p=[0.5, 0.2, 0.299, 0.001]),
            "children": rng.integers(0, 5, rows),
            "born": pd.Timestamp("2015-03-01") + pd.to_timedelta(rng.integers(0, 1000, rows), "D"),
            "id": [f"p{i}" for i in range(rows)],
            "debt": np.where(rng.random(rows) < 0.3, np.nan, -np.exp(rng.normal(3, 1, rows))),
        }
    )


@pytest.fixture(scope="module")
def drafted() -> tuple[hr.Universe, Accountant]:
    ledger = Accountant(hr.Budget(3.0, 2e-5), slack=5e-6)
    return hr.Universe.draft(people(), budget=BUDGET, ledger=ledger, seed=1), ledger


def test_common_values_become_categories_and_the_rest_is_other(drafted) -> None:
    universe, _ = drafted
    assert set(universe["sex"].listed) == {"F", "M"} and universe["sex"].other
    assert universe["id"].labels == (hr.OTHER,)


def test_numbers_are_cut_where_rows_are(drafted) -> None:
    universe, _ = drafted
    ages, few = universe["age"], universe["children"]
    assert 10 <= ages.edges[0] <= 25 and 80 <= ages.edges[-1] <= 100
    assert isinstance(few, hr.Integers) and (few.low, few.high) == (0, 4)
    shares = np.histogram(people()["age"], ages.edges)[0] / 4000
    assert shares.max() < 0.25


def test_missing_values_have_a_cell_where_there_are_many(drafted) -> None:
    universe, _ = drafted
    assert universe["debt"].missing and not universe["age"].missing
    assert universe["debt"].edges[-1] <= 0.5 and universe["debt"].edges[0] < -30


def test_dates_come_by_the_month(drafted) -> None:
    universe, _ = drafted
    assert universe["born"].by == "month"
    assert universe["born"].edges[0] == datetime.date(2015, 1, 1)
    assert universe["born"].edges[-1] == datetime.date(2017, 12, 31)


def test_the_ledger_has_the_price_and_no_more(drafted) -> None:
    _, ledger = drafted
    assert 0.8 * BUDGET.rho(5e-6) < ledger.spent <= BUDGET.rho(5e-6)
    assert 0 < ledger.set_aside - ledger.slack <= 5e-6 and all(
        entry.why.startswith("draft: ") for entry in ledger.entries()
    )


@pytest.mark.parametrize("column", ["income", "age", "sex", "born"])
def test_a_column_costs_no_more_than_its_part_of_the_price(column) -> None:
    """A draft of one column has the whole price for it, so that a part that is paid twice exceeds the price."""
    ledger = Accountant(hr.Budget(30.0, 2e-5), slack=5e-6)
    hr.Universe.draft(people()[[column]], budget=BUDGET, ledger=ledger, seed=1)
    assert 0 < ledger.spent <= BUDGET.rho(5e-6)


def survey(rows: int = 20_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "smokes": rng.integers(0, 2, rows),
            "asthma": rng.choice(["yes", "no"], rows),
            "race": rng.choice(range(1, 7), rows, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05]),
            "plan": rng.choice([0, 25, 50, 95, 100], rows),
            "children": rng.poisson(1.2, rows),
            "income": np.exp(rng.normal(10.6, 0.8, rows)).round(),
            "zip": rng.integers(10_000, 99_999, rows),
        }
    )


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_draft_recognizes_flags_codes_counts_and_money_and_cuts_off_no_more_than_it_says(epsilon) -> None:
    frame = survey()
    universe = hr.Universe.draft(frame, budget=hr.Budget(epsilon, 1e-6), seed=5)
    assert isinstance(universe["smokes"], hr.Flag) and isinstance(universe["asthma"], hr.Flag)
    assert isinstance(universe["race"], hr.Categories) and set(universe["race"].listed) == {1, 2, 3, 4, 5, 6}
    assert isinstance(universe["plan"], hr.Categories) and set(universe["plan"].listed) == {0, 25, 50, 95, 100}
    assert isinstance(universe["children"], hr.Integers) and universe["children"].low == 0
    for name in ("income", "zip"):
        declared, values, note = universe[name], frame[name], universe.notes[name]
        outside = [float((values < declared.edges[0]).mean()), float((values > declared.edges[-1]).mean())]
        stated = [tuple(map(float, found)) for found in re.findall(r"about ([\d.]+) % ± ([\d.]+) %", note)]
        assert all(abs(100 * true - said) <= noise for true, (said, noise) in zip(outside, stated, strict=True))
        assert max(outside) < 0.05
    assert "a long tail" in universe.notes["income"] and "codes" in universe.notes["zip"]


def test_every_column_has_a_note_and_a_guess_is_called_one() -> None:
    frame = survey(150)
    universe = hr.Universe.draft(frame, budget=hr.Budget(0.1, 1e-6), codebook={"plan": [0, 25, 50, 95, 100]}, seed=5)
    assert set(universe.notes) == set(universe.names) and universe.notes["plan"] == "certain: from the codebook"
    assert universe.notes["income"].startswith("a guess: too few rows") and universe["income"].size == 1
    assert universe.notes["income"] in str(universe) and universe.notes["income"] in universe._repr_html_()
    assert universe == hr.Universe({name: universe[name] for name in universe.names})  # notes are no declaration


@pytest.mark.parametrize(
    ("low", "high", "whole"),
    [
        (0, 262_144, True),
        (16, 128, True),
        (2.0, 8.0, False),
        (-64, 64, True),
        (0.0, 2.0**40, False),
        (-4096.0, -2.0, False),
    ],
)
def test_round_cuts_reach_over_both_bounds(low, high, whole) -> None:
    cuts = numbers.nice_cuts(low, high, whole, 64)
    assert cuts[0] <= low and cuts[-1] > high and (np.diff(cuts) > 0).all() and len(cuts) <= 130
    assert not whole or (cuts == np.floor(cuts)).all()


def test_a_session_opens_with_a_draft_on_the_same_ledger(drafted) -> None:
    ledger = Accountant(hr.Budget(3.0, 2e-5), slack=1e-6)
    frame = people()[["age", "sex"]]
    universe = hr.Universe.draft(frame, budget=hr.Budget(0.3, 2e-6), ledger=ledger, seed=2)
    spent = ledger.spent
    session = hr.open(frame, universe=universe, budget=ledger.budget, ledger=ledger, seed=3, reserve=0.2)
    assert 0 < spent < session.spent


def test_a_file_without_types_is_drafted_alike(tmp_path, drafted) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    universe = hr.Universe.draft(tmp_path / "people.csv", budget=BUDGET, seed=1)
    assert [type(universe[n]) for n in universe.names] == [type(drafted[0][n]) for n in universe.names]


def test_every_path_tallies_alike(tmp_path) -> None:
    frame = people(200).assign(born=lambda f: f["born"].dt.date)
    frame.to_csv(tmp_path / "people.csv", index=False)
    sources = [
        frame,
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        tmp_path / "people.csv",
        frame.convert_dtypes(),
    ]
    found = [count_values(open_batches(source, None, None), range(frame.shape[1])) for source in sources]
    for tallies in found[1:]:
        assert [_facts(t) for t in tallies] == [_facts(t) for t in found[0]]
    assert [t.texts for t in found[1]] == [t.texts for t in found[2]] == [t.texts for t in found[0]]


def _facts(tally: ValueCounts) -> tuple:
    """A file may spell a number otherwise: 5.0 for 5."""
    numbers, days = ([part.tolist() for part in found] for found in (tally.numbers, tally.days))
    return tally.missing, sum(tally.texts.values()), tally.kinds().tolist(), numbers, days


# Free


def test_public_facts_cost_nothing(tmp_path) -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y"]), "b": pd.array([True, False], "boolean"), "c": [1, 2]})
    universe = hr.Universe.draft(hr.TrustSchema(frame), public=["a"], codebook={"c": (0, 9)})
    assert (
        universe["a"].listed == ("x", "y")
        and isinstance(universe["b"], hr.Flag)
        and tuple(universe["c"].listed) == tuple(range(10))
    )
    arrow = pa.table({"a": pa.array(["x", None, "y"]).dictionary_encode()})
    assert hr.Universe.draft(arrow, public=["a"])["a"].listed == ("x", "y")
    assert hr.Universe.draft(arrow.to_batches()[0], public=["a"])["a"].listed == ("x", "y")
    enum = pl.DataFrame({"a": pl.Series(["x"], dtype=pl.Enum(["z", "x"]))})
    assert hr.Universe.draft(enum)["a"].listed == ("z", "x")
    assert hr.Universe.draft(pa.schema([("b", pa.bool_())])).names == ("b",)


def test_a_dictionary_is_private_until_the_owner_says_otherwise() -> None:
    for source in (pd.DataFrame({"a": pd.Categorical(["x"])}), pa.table({"a": pa.array(["x"]).dictionary_encode()})):
        with pytest.raises(InvalidInput, match=r"Found none for 'a'\. Give budget=, a codebook") as refused:
            hr.Universe.draft(source)
        assert "'x'" not in str(refused.value)


def test_checks_and_enumerations_of_postgres_are_public() -> None:
    url = server().fresh()
    other = server().fresh()  # a table of the same name that this search path does not find
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TYPE mood AS ENUM ('sad', 'it''s ok')")
        columns = TABLE.replace("(sex", "(mood mood, sex", 1).replace("double", "double precision")
        db.execute(f"CREATE TABLE t {columns}")
        db.execute("ALTER TABLE t ADD v varchar(1) CHECK (v IN ('a', 'b')), ADD w int CHECK (w > -3), ADD b boolean")
        db.execute("ALTER TABLE t ADD CONSTRAINT later CHECK (w <= 4) NOT VALID")
    with psycopg.connect(other, autocommit=True) as db:
        db.execute("CREATE TYPE mood AS ENUM ('glad')")
        db.execute("CREATE TABLE t (mood mood, sex text CHECK (sex IN ('X')))")
    universe = hr.Universe.from_schema(url, table="t", codebook={"w": (0, 9)})
    assert universe["mood"].listed == ("sad", "it's ok") and universe["sex"].listed == ("F", "M")
    assert (universe["age"].low, universe["age"].high) == (0, 50) and universe["v"].listed == ("a", "b")
    assert (universe["k"].edges[0], universe["k"].edges[-1]) == (-1.5, 2.0) and isinstance(universe["b"], hr.Flag)
    with pytest.raises(InvalidInput, match="Found none for 'w'"):  # old rows need not keep to what was added NOT VALID
        hr.Universe.from_schema(url, table="t")


def test_a_schema_is_read_without_any_row(tmp_path) -> None:
    frame = pd.DataFrame({"a": pd.array([True, None], "boolean"), "age": pd.array([3, 4], "Int64")})
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,age\n1,2\n")
    for source in (frame, tmp_path / "t.parquet", pl.from_pandas(frame), pa.Table.from_pandas(frame).schema):
        universe = hr.Universe.from_schema(source, codebook={"age": (0, 99)})
        assert isinstance(universe["a"], hr.Flag) and (universe["age"].edges[0], universe["age"].edges[-1]) == (0, 99)
        with pytest.raises(InvalidInput, match="Found none for 'age'"):
            hr.Universe.from_schema(source)
    with pytest.raises(InvalidInput, match="Found none for 'a'"):
        hr.Universe.from_schema(tmp_path / "t.csv", codebook={"age": (0, 99)})


def test_types_that_came_with_rows_are_free_only_by_the_owners_word() -> None:
    frame = pa.table({"a": [True, False]})
    assert isinstance(hr.Universe.draft(hr.TrustSchema(frame))["a"], hr.Flag)
    with pytest.raises(InvalidInput, match="Found none for 'a'"):
        hr.Universe.draft(frame)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_checks_and_enumerations_of_a_database_are_public(engine, tmp_path) -> None:
    path = tmp_path / "t.db"
    if engine == "sqlite":
        with open_sqlite(path) as db:
            db.execute(f"CREATE TABLE t {TABLE}")
    else:
        import duckdb

        with duckdb.connect(str(path)) as db:
            db.execute("CREATE TYPE mood AS ENUM ('sad', 'it''s ok')")
            db.execute(f"CREATE TABLE t {TABLE.replace('(sex', '(mood mood, sex', 1)}")
    universe = hr.Universe.draft(f"{engine}://{path}", table="t")
    assert universe["sex"].listed == ("F", "M")
    assert (universe["age"].low, universe["age"].high) == (0, 50)
    assert (universe["k"].edges[0], universe["k"].edges[-1]) == (-1.5, 2.0)
    if engine == "duckdb":
        assert universe["mood"].listed == ("sad", "it's ok")


def test_a_check_on_two_columns_or_with_an_or_says_nothing_of_one(tmp_path) -> None:
    with open_sqlite(tmp_path / "t.db") as db:
        db.execute("CREATE TABLE t (a int, b int, CHECK (a < b), CHECK (a < 3 OR b > 5))")
    with pytest.raises(InvalidInput, match="Found none for 'a', 'b'"):
        hr.Universe.draft(f"sqlite://{tmp_path}/t.db", table="t")


def test_a_codebook_may_be_of_attributes_lists_ends_and_tables() -> None:
    frame = pd.DataFrame({name: [0] for name in "abcd"})
    book = {"a": hr.Flag(), "b": ["x", "y"], "c": (0.0, 1.0), "d": {"kind": "Integers", "low": 1, "high": 3}}
    universe = hr.Universe.draft(frame, codebook=book)
    assert (
        universe["b"].labels == ("x", "y", hr.OTHER) and universe["d"].low == 1 and isinstance(universe["c"], hr.Range)
    )


# Refusals are about public facts


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"budget": (1, 1e-6)}, "budget must be an hr.Budget. Found tuple"),
        ({"budget": hr.Budget(1.0, 0.0)}, "budget must have a delta above 0 to draft columns of text"),
        ({"budget": BUDGET, "ledger": Accountant(hr.Budget(1.0, 1e-6))}, "ledger must have slack for half"),
        ({"budget": BUDGET, "ledger": Accountant(hr.Budget(1.0, 0.0))}, "must both have a delta"),
        ({"budget": BUDGET, "ledger": Accountant(hr.Budget(1.0, 1e-6, "add-remove"))}, "with the budget's neighbours"),
        ({"columns": ["nobody"]}, "Found no 'nobody'"),
        ({"codebook": {"sex": 0.5}, "columns": ["sex"]}, "The codebook of 'sex' must be"),
        ({"budget": BUDGET, "bins": 0}, "bins must be a whole number"),
    ],
)
def test_a_bad_draft_is_refused_by_name(how, words) -> None:
    with pytest.raises(InvalidInput, match=words.replace("(", r"\(")):
        hr.Universe.draft(people(20), **how)


def test_a_pure_budget_drafts_numbers() -> None:
    universe = hr.Universe.draft(
        hr.TrustSchema(pl.from_pandas(people()[["age", "children"]])), budget=hr.Budget(4.0, 0.0), seed=1
    )
    assert isinstance(universe["children"], hr.Integers)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_charges_do_not_depend_on_the_rows(neighbours) -> None:
    """Given what was released: two tables of which the first answers are the same are charged alike, to the end."""
    budget = hr.Budget(0.5, 1e-6, neighbours)
    bills = []
    for column in (
        ["x"] * 500,
        ["x"] * 499 + ["alone"],
        [7] * 5000,
        [7] * 4999 + ["alone"],
        [True] * 500,
        [True] * 499 + [3.5],
    ):
        ledger = Accountant(budget, slack=budget.delta / 2)
        hr.Universe.draft(pd.DataFrame({"a": column}), budget=budget, ledger=ledger, seed=1)
        bills.append([(entry.events, entry.why) for entry in ledger.entries()])
    assert bills[0] == bills[1] and bills[2] == bills[3] and bills[4] == bills[5]


# Numbers


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0.0] * 99, 0.0, 0.0), ([1.0] * 99, 1.0, 2.0), ([-1.0] * 99, -2.0, -1.0), ([100.0] * 99 + [3.0] * 99, 2.0, 128.0),
        ([-5.0] * 99 + [0.0] * 99, -8.0, 0.0), ([0.25] * 99 + [-0.3] * 99, -0.5, 0.5), ([1e300] * 99, 2.0**63, 2.0**64),
        ([math.inf] * 99, 2.0**63, 2.0**64), ([1e-300] * 99, 2.0**-16, 2.0**-15),
    ],
)  # fmt: skip
def test_bounds_are_the_powers_of_two_around_the_numbers(values, low, high) -> None:
    tally = ValueCounts()
    for value in values:
        tally.count(value, 1)
    event, ledger = Laplace(1.0, 0.5), Accountant(hr.Budget(1e6, 0.0))
    assert numbers.bounds(tally.numbers, event, ledger, Seeded(1), "") == (low, high)


def test_noise_alone_is_seldom_taken_for_rows() -> None:
    ledger, noise, empty = Accountant(hr.Budget(1e6, 0.5)), Seeded(3), ValueCounts().numbers
    event = Gaussian(1.0, 9.0)
    found = [numbers.bounds(empty, event, ledger, noise, "") for _ in range(300)]
    assert sum(f is not None for f in found) <= 12
