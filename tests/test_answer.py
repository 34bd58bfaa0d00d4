"""Answers: arithmetic whose bars hold, tables with a bar for each cell, and displays without raw values."""

from __future__ import annotations

import math
import operator

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from people import frame, opened

import hedgerow as hr
from hedgerow import wire
from hedgerow.answer import Answer
from hedgerow.console.bars import panels
from hedgerow.errors import InvalidInput

matplotlib.use("Agg")
OPERATIONS = [operator.add, operator.sub, operator.mul, operator.truediv]
A, B = hr.count(sex="F"), hr.count(sex="M")
numbers = st.floats(-5, 5, allow_subnormal=False)
widths = st.floats(0, 3, allow_subnormal=False)
places = st.floats(-1, 1)


def answer(value=0.5, error=0.1, query=A, **about) -> Answer:
    return Answer(query, value, error, **{"source": "hypothesis", "cost": 0.25, **about})


@pytest.mark.parametrize("operation", OPERATIONS)
@given(x=numbers, off=widths, y=numbers, far=widths, at=places, too=places)
def test_the_result_on_any_truths_within_the_bars_is_within_the_results_bar(operation, x, off, y, far, at, too) -> None:
    found = operation(answer(x, off), answer(y, far, B))
    truths = x + at * off, y + too * far
    if found.interval is None:
        assert operation is operator.truediv and abs(y) <= far + 1e-300  # or the quotient is no float any more
        return
    low, high = found.interval
    slack = 1e-9 * max(1.0, abs(low), abs(high))
    assert low - slack <= operation(*truths) <= high + slack


cells = st.lists(st.tuples(numbers, widths, numbers, widths), min_size=1, max_size=3)


@given(cells=cells, against=st.booleans())
def test_certainly_above_and_below_are_stated_exactly_if_they_hold_within_all_bars(cells, against) -> None:
    """For a single value, for a table cell by cell, and for an answer beside a number."""
    x, off, y, far = (np.array(part) for part in zip(*cells, strict=True))
    if against:
        y, far = np.full(x.shape, y[0]), np.zeros(x.shape)
    other = float(y[0]) if against else answer(*((y[0], far[0]) if x.size == 1 else (y, far)), B)
    found = answer(*((x[0], off[0]) if x.size == 1 else (x, off)))
    margin = np.min(np.abs([x - off - (y + far), x + off - (y - far)]))
    if margin > 1e-9:  # where it does not hang on a rounding
        assert found.certainly_above(other) == bool(np.all(x - off > y + far))
        assert found.certainly_below(other) == bool(np.all(x + off < y - far))
        assert not found.certainly_above(found) and not found.certainly_below(found)


def test_nothing_is_certain_of_what_nothing_bounds() -> None:
    for found in (answer(5.0, None), answer(np.array([5.0, 6.0]), None)):
        assert not found.certainly_above(0) and not found.certainly_below(100)
        assert not answer(50.0).certainly_above(found) and not answer(-50.0).certainly_below(found)


@pytest.mark.parametrize("operation", OPERATIONS)
@given(x=numbers, off=widths, y=numbers, far=widths)
def test_the_bar_is_no_wider_than_the_furthest_of_those_truths(operation, x, off, y, far) -> None:
    found = operation(answer(x, off), answer(y, far, B))
    if found.error is not None:
        ends = [operation(a, b) for a in (x - off, x + off) for b in (y - far, y + far)]
        assert found.error == pytest.approx(max(abs(end - found.value) for end in ends))


def test_a_combined_answer_states_its_question_and_its_cost() -> None:
    found = answer(0.5, 0.1, resolution=0.02, typical=0.03) - answer(
        0.2, 0.2, B, resolution=0.01, typical=0.04, source="measured"
    )
    assert found.value == pytest.approx(0.3) and found.error == pytest.approx(0.3)
    assert found.resolution == pytest.approx(0.03) and found.typical == pytest.approx(0.05)
    assert found.cost == 0.5 and found.source == "combined"
    assert repr(found.query) == "(count(sex='F') - count(sex='M'))"
    assert (answer() - answer(query=B)).source == "hypothesis"
    assert wire.loads(wire.dumps(found)) == found
    assert found != answer() and hash(found) == hash(wire.loads(wire.dumps(found)))


@pytest.mark.parametrize(
    ("found", "value", "error", "typical"),
    [
        (answer(typical=0.01) * 2, 1.0, 0.2, 0.02),
        (np.float64(2) * answer(typical=0.01), 1.0, 0.2, 0.02),
        (-answer(typical=0.01), -0.5, 0.1, 0.01),
        (1 - answer(typical=0.01), 0.5, 0.1, 0.01),
        (answer(typical=0.01) / 4, 0.125, 0.025, 0.0025),
        (2 / answer(0.5, 0.0, typical=0.01), 4.0, 0.0, 0.08),  # to first order, 2·0.01/0.5²
        (1 / answer(0.5, 0.1), 2.0, 0.5, None),
        (answer(error=None) + 1, 1.5, None, None),
    ],
)
def test_numbers_are_exact_answers(found, value, error, typical) -> None:
    assert found.value == pytest.approx(value)
    assert found.error == (error if error is None else pytest.approx(error))
    assert found.typical == (typical if typical is None else pytest.approx(typical))


def test_a_ratio_whose_denominator_may_be_nothing_has_no_bar() -> None:
    assert (answer(0.1, 0.01) / answer(0.05, 0.06, B)).error is None
    assert (answer(0.1, 0.01) / answer(0.0, 0.0, B)).interval is None
    cells = answer(np.array([0.1, 0.1]), 0.01, labels=(("sex", ("F", "M")),)) / answer(
        np.array([0.5, 0.0]), np.array([0.1, 0.1]), labels=(("sex", ("F", "M")),)
    )
    assert np.isfinite(cells.error[0]) and cells.error[1] == math.inf  # of the other cell nothing is known


def test_tables_are_combined_cell_by_cell_and_only_with_their_like() -> None:
    axes = (("sex", ("F", "M")),)
    a = answer(np.array([0.4, 0.6]), np.array([0.1, 0.2]), labels=axes)
    found = a - answer(np.array([0.1, 0.1]), 0.05, labels=axes)
    assert np.allclose(found.value, [0.3, 0.5]) and np.allclose(found.error, [0.15, 0.25]) and found.labels == axes
    assert np.allclose((a / answer(0.5, 0.0, B)).value, [0.8, 1.2])
    for scaled in (2 * a, a + 1, 1 - a, answer(0.5, 0.0, B) * a, a / answer(0.5, 0.0, B)):
        assert scaled.labels == axes  # one number leaves the cells what they are, on either side
    with pytest.raises(InvalidInput, match=r"Tables must have the same cells. Found sex and age"):
        a - answer(np.array([0.1, 0.1]), 0.05, labels=(("age", (0, 1)),))


def test_bars_of_differences_and_ratios_hold_in_a_session() -> None:
    data = frame()
    session = opened(data)
    women, men = (session.ask(hr.count(sex=s, smoker=True)) for s in "FM")
    truth = [((data.sex == s) & data.smoker).mean() for s in "FM"]
    low, high = (women - men).interval
    assert low <= truth[0] - truth[1] <= high
    low, high = (women / men).interval
    assert low <= truth[0] / truth[1] <= high and high < 2
    assert women.certainly_above(0) and not women.certainly_above(women) and women.certainly_below(1.0)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_answers_are_not_compared_in_silence(compare) -> None:
    with pytest.raises(InvalidInput, match=r"Use \.certainly_above"):
        compare(answer(), answer(0.6))
    with pytest.raises(InvalidInput, match=r"Use \.certainly_above"):
        compare(answer(), 0.4)


def test_an_answer_has_a_float_and_no_truth() -> None:
    assert float(answer(0.25)) == 0.25
    with pytest.raises(InvalidInput, match="A truth value must"):
        bool(answer())
    with pytest.raises(InvalidInput, match=r"one value to be a float. Found 3 values"):
        float(answer(np.zeros(3)))
    with pytest.raises(InvalidInput, match=r"answers or finite numbers. Found str"):
        answer() + "1"
    with pytest.raises(InvalidInput, match="answers or finite numbers"):
        answer() * math.nan
    with pytest.raises(InvalidInput, match="Found Combination"):
        opened(frame(100)).ask((answer() - answer()).query)


def test_an_excess_risk_is_no_distance() -> None:
    theta = answer(np.zeros(2), 0.01, hr.minimize(hr.losses.Logistic(target="smoker", features=["age"]), hr.L2Ball(1)))
    assert theta.interval is None and theta.frame["error"].isna().all()  # of a coefficient
    assert "excess risk at most 0.01" in str(theta)
    for use in (lambda: theta - theta, lambda: 2 * theta, theta.plot, lambda: -theta):
        with pytest.raises(InvalidInput, match="whose error is an excess risk"):
            use()


def test_a_frame_has_a_value_and_its_errors_for_each_cell() -> None:
    axes = (("sex", ("F", "M")), ("age", (0, 1, 2)))
    value = np.arange(6.0).reshape(2, 3)
    table = answer(value, value / 10, hr.marginal("sex", "age"), labels=axes, typical=0.01)
    assert list(table.to_frame().columns) == ["sex", "age", "value", "error", "typical"]
    row = table.frame.query("sex == 'M' and age == 1").iloc[0]
    assert (row.value, row.error, row.typical) == (4.0, 0.4, 0.01)
    assert answer(0.5, None).frame.iloc[0].isna().tolist() == [False, True, True]


# Faces


def test_a_number_says_its_errors_by_their_names() -> None:
    said = str(answer(0.25, 0.1, typical=0.01, resolution=0.05, cost=0.0))
    assert said == (
        "count(sex='F') = 0.25 (guaranteed ± 0.1, typically ± 0.01, ± 0.05 of it from the bins, hypothesis, free)"
    )
    assert "uninformative" in str(answer(0.25, None)) and "uninformative" in repr(answer(0.25, None))


def test_a_table_shows_its_first_cells_and_how_many_more_there_are() -> None:
    many = answer(np.linspace(0, 1, 50), 0.1, hr.marginal("age"), labels=(("age", tuple(range(50))),))
    assert "… and 30 more" in str(many) and "… and 30 more" in many._repr_html_()
    assert len(str(many).splitlines()) == 1 + 1 + 20 + 1 + 1
    assert "cells have too few rows to tell them from 0" in str(many)
    assert "guaranteed ±" in str(many) and "typical ±" in str(many)


def test_no_label_or_name_reaches_a_page_unescaped() -> None:
    bad = "<script>alert('x')</script>"
    universe = hr.Universe({bad: hr.Categories([bad, "b&b"]), "flag": hr.Flag()})
    table = pd.DataFrame({bad: [bad, "b&b"] * 50, "flag": [True, False] * 50})
    session = hr.open(table, universe=universe, budget=hr.Budget(1, 1e-6), seed=1)
    session.ask(hr.count({bad: bad}))
    session.ask(hr.marginal(bad, "flag"))
    shown = [
        session.ask(hr.count({bad: bad}))._repr_html_(),
        session.ask(hr.marginal(bad, "flag"))._repr_html_(),
        universe._repr_html_(),
        session._repr_html_(),
        session.report().html,
    ]
    assert all("<script" not in page for page in shown)
    assert all("&lt;script&gt;" in page for page in [*shown[:3], shown[4]])


def test_pictures_have_a_bar_a_cell_and_both_errors() -> None:
    one = answer(np.array([0.4, 0.6]), 0.1, hr.marginal("sex"), labels=(("sex", ("F", "M")),), typical=0.01).plot()
    assert len(one.patches) == 2 and len(one.containers) == 3  # the bars, and two kinds of error bars
    two = answer(np.ones((2, 3)), np.ones((2, 3)), hr.marginal("sex", "age"), labels=(("sex", ("F", "M")), ("age", (0, 1, 2))))  # fmt: skip
    drawn = two.plot()
    assert len(drawn.patches) == 6 and [t.get_text() for t in drawn.get_legend().get_texts()] == ["0", "1", "2"]
    assert len(answer(0.5, 0.1).plot().patches) == 1
    assert answer(0.5, 0.1).plot(one) is one
    with pytest.raises(InvalidInput, match=r"a table of one or two attributes. Found 3"):
        answer(np.ones((1, 1, 1)), labels=(("a", (1,)), ("b", (1,)), ("c", (1,)))).plot()


def test_a_picture_shows_dollars_as_dollars() -> None:
    priced = answer(np.ones(2), 0.1, hr.count({"$a_{": "$\\frac$"}), labels=(("$a_{", ("$\\frac$", "$b_{$")),)).plot()
    priced.figure.canvas.draw()  # mathematics that is none would be refused here
    assert priced.get_yticklabels()[1].get_text() == r"\$b_{\$"


def test_a_cell_whose_interval_covers_the_whole_range_is_called_uninformative() -> None:
    """Few rows: the mean of a group of three is known to be in its range, which a number after ± would hide."""
    frame = pd.DataFrame({"group": ["a"] * 3000 + ["b"] * 3, "pay": [10] * 2000 + [40] * 1003})
    universe = hr.Universe(group=hr.Categories(["a", "b"]), pay=hr.Integers(0, 50))
    session = hr.open(frame, universe=universe, budget=hr.Budget(1.0, 1e-6), seed=0, progress=False)
    means = session.ask(hr.group_by("group").mean("pay"))
    assert np.isfinite(means.error[0]) and np.isinf(means.error[1])
    assert means.interval[0][1] == 0 and means.interval[1][1] == 50  # clipped to the attribute's range
    assert "1 of 2 uninformative" in repr(means) and "± inf" not in repr(means)
    assert "uninformative: the interval covers the whole range" in str(means)
    assert "uninformative" in means._repr_html_() and means.to_frame()["upper"][1] == 50
    assert "1 of 2 cells are uninformative" in means.explain() and "within inf" not in means.explain()
    assert hr.serialize.loads(hr.serialize.dumps(means)) == means
    assert means.plot() is not None
    one = session.ask(hr.mean("pay", where=hr.count(group="b")))
    assert one.error is None and "uninformative: the interval covers the whole range" in str(one)
    assert "±" not in repr(one) and "uninformative" in repr(one)
    bars = panels(means, "mean")[0].bars
    assert "uninformative" in bars[1].sentence and "uninformative" not in bars[0].sentence  # the console
    page = session.report().html
    assert page.count("uninformative") == 2 and ">inf<" not in page  # the cell and the single mean
