"""A question as a text is the question that Python would make of it, and the text can express nothing else."""

from __future__ import annotations

import datetime

import pytest

import hedgerow as hr
from hedgerow.query import parse

SAME = [
    ("count(smoker=True, age=(40, 65))", hr.count(smoker=True, age=(40, 65))),
    (' hr.count(sex="F") & ~count(age=(None, 30)) ', hr.count(sex="F") & ~hr.count(age=(None, 30))),
    ("count({'income>50K': 1, 'age': {3, 4}})", hr.count({"income>50K": 1, "age": {3, 4}})),
    ("count(a=-1.5, b=+2, c=None)", hr.count(a=-1.5, b=2, c=None)),
    ("count(a=isnt(3), b=MISSING) | any_of('c', count(d=hr.OTHER))", hr.count(a=hr.not_(3), b=hr.MISSING) | hr.any_of("c", hr.count(d=hr.OTHER))),
    ("count(day=(date(2020, 1, 31), datetime.date(2020, 2, 1)))", hr.count(day=(datetime.date(2020, 1, 31), datetime.date(2020, 2, 1)))),
    ('mean("age", where=count(sex="F"))', hr.mean("age", where=hr.count(sex="F"))),
    ('group_by("sex", "age").quantile("visits", 0.9)', hr.group_by("sex", "age").quantile("visits", 0.9)),
    ('difference(median("age"), total("age"))', hr.difference(hr.median("age"), hr.total("age"))),
    ('ratio(mean("age"), count(a=1))', hr.ratio(hr.mean("age"), hr.count(a=1))),
    ("odds_ratio(count(a=1), count(b=2), ~count(b=2))", hr.odds_ratio(hr.count(a=1), hr.count(b=2), ~hr.count(b=2))),
    ('trend("pay", over="age")', hr.trend("pay", over="age")),
    ('cramers_v("a", "b", where=count(c=1))', hr.cramers_v("a", "b", where=hr.count(c=1))),
    (
        'compare(group_by("a").mean("pay"), against="x", measure="ratio")',
        hr.compare(hr.group_by("a").mean("pay"), against="x", measure="ratio"),
    ),
    ("histogram('age', edges=[0, 10, 20])", hr.histogram("age", edges=[0, 10, 20])),
    ("linear(('a', 'b'), [[0, 1], [0.5, 0]])", hr.linear(("a", "b"), [[0, 1], [0.5, 0]])),
    ("marginal('age', 'sex')", hr.marginal("age", "sex")),
]  # fmt: skip


@pytest.mark.parametrize(("written", "query"), SAME, ids=[written for written, _ in SAME])
def test_a_text_is_the_question_that_python_makes_of_it(written: str, query: hr.Query) -> None:
    assert parse.question(written) == query


@pytest.mark.parametrize("query", [query for _, query in SAME[:4]], ids=str)
def test_the_repr_of_a_question_can_be_asked_again(query: hr.Query) -> None:
    if "income" not in repr(query):  # a name that no call can have
        assert parse.question(repr(query)) == query


@pytest.mark.parametrize(
    "written",
    [
        "__import__('os').system('true')",
        "count.__globals__",
        "count(a=open('/etc/passwd'))",
        "count(a=(lambda: 1)())",
        "count(a=[x for x in (1, 2)])",
        "count(a=1 + 1)",
        "count(a=2 ** 100000000)",
        "count(a='x' * 10)",
        "count(a=f'{1}')",
        "count(a=b'x')",
        "count(a=1j)",
        "count(*['a'])",
        "count(**{'a': 1})",
        "count(a=1) and count(b=1)",
        "group_by('sex').__class__",
        "group_by('sex')._attributes",
        "group_by('sex')",
        "mean(age)",
        "count",
        "hr.open('x')",
        "statistic(1)",
        "count(a=-True)",
        "~1",
        "mean()",
        "count({[]: 1})",
        "date(2020, 13, 1)",
        "count(a=1",
        "",
        "x = 1",
        "count(a=1)\x00",
        "(" * 500,
        "~" * 15000 + "count(a=1)",
        "count(a=1)" + " " * 30_000,
        "count(a=" + "9" * 5000 + ")",
    ],
)
def test_anything_else_is_refused_in_a_sentence(written: str) -> None:
    with pytest.raises(hr.InvalidInput, match=r"must .*\. Found .*\. "):
        parse.question(written)


def test_a_refusal_says_where() -> None:
    with pytest.raises(hr.InvalidInput, match="at column 9"):
        parse.question("count(a=b'x')")
    with pytest.raises(hr.InvalidInput, match="at column 7"):
        parse.question("count(1 2)")


@pytest.mark.parametrize(
    ("written", "way_out"),
    [
        ("mean('a') - mean('b')", r"difference\(a, b\)"),
        ("count(a=1) / count(b=1)", r"ratio\(a, b\)"),
        ("group_by('a', mean('b'))", r"group_by\('region'\)\.mean\('age'\)"),
    ],
)
def test_common_first_attempts_are_refused_with_the_right_spelling(written: str, way_out: str) -> None:
    with pytest.raises(hr.InvalidInput, match=way_out):
        parse.question(written)
