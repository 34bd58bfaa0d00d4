"""A universe in a file that people read and write comes back as it was written."""

from __future__ import annotations

import datetime
import json
import tomllib
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow import serialize
from hedgerow.errors import InvalidInput
from hedgerow.universe.files import from_mapping

days = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
extras = st.fixed_dictionaries({"other": st.booleans(), "missing": st.booleans()})
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6).filter(lambda t: t not in (hr.OTHER, hr.MISSING))
labels = st.one_of(
    texts, st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.booleans(), days,
    st.decimals(allow_nan=False, allow_infinity=False), st.datetimes(), st.tuples(texts, st.integers(0, 3)),
)  # fmt: skip
words = st.lists(st.text("abcdef", min_size=3, max_size=6) | st.integers(5, 90), min_size=1, max_size=3)
edges = st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=5, unique=True).map(sorted)


@st.composite
def attributes(draw) -> hr.Universe:
    how = draw(extras)
    kind = draw(
        st.sampled_from(["categories", "nullable", "flag", "integers", "bins", "edges", "values", "by", "days"])
    )
    if kind in ("categories", "nullable"):
        case, spaces = draw(st.sampled_from(["exact", "ignore"])), draw(st.sampled_from([None, "exact"]))
        unique = st.lists(labels, min_size=1, max_size=5, unique_by=lambda x: x.casefold() if isinstance(x, str) else x)
        listed = [*draw(unique), *([None] if kind == "nullable" else [])]
        return hr.Categories(
            listed, **{**how, "missing": how["missing"] and kind == "categories"}, case=case, spaces=spaces
        )
    if kind == "flag":
        true = draw(st.none() | words)
        return hr.Flag(
            true, draw(st.none() | words.filter(lambda w: not set(map(str, w)) & set(map(str, true or [])))), **how
        )
    if kind == "integers":
        low = draw(st.integers(-(2**70), 2**70))
        return hr.Integers(low, low + draw(st.integers(0, 50)), **how)
    if kind == "bins":
        low, high = draw(edges)[:2]
        return hr.Range(low, high if high - low > 1e-3 else low + 1e6, draw(st.integers(1, 30)), **how)
    if kind in ("edges", "values"):
        cuts = draw(edges)
        values = draw(st.lists(st.floats(-1e9, 1e9), min_size=len(cuts) - 1, max_size=len(cuts) - 1))
        return hr.Range(edges=cuts, values=values if kind == "values" else None, **how)
    chosen = sorted(draw(st.lists(days, min_size=2, max_size=4, unique=True)))
    if kind == "by":
        by = draw(st.sampled_from(["week", "month", "quarter", "year"]))
        return hr.Dates(chosen[0], chosen[-1], by, **how)
    return hr.Dates(edges=chosen, **how)


universes = st.dictionaries(texts, attributes(), min_size=1, max_size=4).map(hr.Universe)


@settings(max_examples=50, deadline=None)
@given(universes)
def test_universes_are_read_as_they_were_written(tmp_path_factory, universe) -> None:
    for name in ("universe.toml", "universe.json"):
        path = tmp_path_factory.getbasetemp() / name
        universe.save(path)
        again = hr.Universe.load(path)
        assert again == universe
        assert [list(map(type, again[n].labels)) for n in again.names] == [
            list(map(type, universe[n].labels)) for n in again.names
        ]
    assert serialize.loads(serialize.dumps(universe)) == universe


def test_a_file_is_what_one_would_write_by_hand(tmp_path) -> None:
    universe = hr.Universe(
        age=hr.Range(17, 90, bins=8, missing=True), sex=hr.Categories(["F", "M", None], other=True), smoker=hr.Flag(true="ja"),
        born=hr.Dates("2015-01-01", "2024-12-31", "month"), children=hr.Integers(0, 9),
    )  # fmt: skip
    universe.save(tmp_path / "people.toml")
    assert tomllib.loads((tmp_path / "people.toml").read_text()) == {
        "age": {"kind": "Range", "low": 17.0, "high": 90.0, "bins": 8, "missing": True},
        "sex": {"kind": "Categories", "values": ["F", "M", {"kind": "none"}], "spaces": "strip", "other": True},
        "smoker": {"kind": "Flag", "true": ["ja"]},
        "born": {"kind": "Dates", "low": datetime.date(2015, 1, 1), "high": datetime.date(2024, 12, 31), "by": "month"},
        "children": {"kind": "Integers", "low": 0, "high": 9},
    }


def test_a_domain_may_be_a_mapping_and_mix_sizes_with_tables(tmp_path) -> None:
    domain = {"age": 85, "sex": {"kind": "Categories", "values": ["F", "M"]}}
    universe = hr.Universe.from_json(domain)
    assert universe.shape == (85, 2)
    (tmp_path / "d.json").write_text(json.dumps(domain))
    assert hr.Universe.from_json(tmp_path / "d.json") == hr.Universe.load(tmp_path / "d.json") == universe


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "A universe must be a table of columns"), ([1], "A universe must be a table of columns"),
        ({"a": "x"}, "The size of 'a' must be a whole number"), ({"a": True}, "The size of 'a' must be a whole number"),
        ({"a": {}}, "The kind of 'a' must be one of"), ({"a": {"kind": "Attribute"}}, "The kind of 'a' must be one of"),
        ({"a": {"kind": "Range"}}, "Column 'a': A Range must have low"),
        ({"a": {"kind": "Range", "low": "x", "high": 3, "bins": 2}}, "Column 'a': The ends of a Range must be finite numbers"),
        ({"a": {"kind": "Range", "low": 1, "high": 3, "bins": 10**9}}, "bins must be between 1 and"),
        ({"a": {"kind": "Range", "low": 1, "high": 3, "bins": 2, "colour": 1}}, "Column 'a' must have the arguments of Range"),
        ({"a": {"kind": "Integers", "low": 0, "high": 10**9}}, "Integers must have at most"),
        ({"a": {"kind": "Flag", "other": "yes"}}, "other must be true or false"),
        ({"a": {"kind": "Categories", "values": "F"}}, "Categories must be a list"),
        ({"a": {"kind": "Categories", "values": [{"kind": "python"}]}}, "Column 'a'"),
        ({"a": {"kind": "Dates", "low": "x", "high": "y", "by": "day"}}, "A date must be"),
        ({3: 4}, "The name of a column must be a text"),
    ],
)  # fmt: skip
def test_a_bad_table_is_refused_by_its_column(columns, words) -> None:
    with pytest.raises(InvalidInput) as refused:
        from_mapping(columns)
    assert words in str(refused.value)


def test_a_bad_file_is_refused(tmp_path) -> None:
    universe = hr.Universe(a=hr.Flag())
    for path, text, words in (
        ("u.yaml", "a: 1", "must be .toml or .json"), ("u.toml", "a = ", "must be TOML or JSON"), ("u.json", "{", "must be TOML or JSON"),
        ("gone.toml", None, "Found nothing at"),
    ):  # fmt: skip
        if text is not None:
            (tmp_path / path).write_text(text)
        with pytest.raises(InvalidInput, match=words):
            hr.Universe.load(tmp_path / path)
    with pytest.raises(InvalidInput, match=r"must be \.toml or \.json"):
        universe.save(tmp_path / "u.txt")
    with pytest.raises(InvalidInput, match="half of a character"):
        hr.Universe({"\ud800": hr.Flag()}).save(tmp_path / "u.toml")
    hr.Universe(a=hr.Categories([Decimal("1.50")])).save(tmp_path / "u.toml")
    assert hr.Universe.load(tmp_path / "u.toml")["a"].labels == (Decimal("1.50"),)
