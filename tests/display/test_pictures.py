"""Pictures are legible: sorted, with both errors, with room for every label, and nothing over the bars."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import numpy as np
import pandas as pd
import pytest
from people import SMALL, frame, opened

import hedgerow as hr
from hedgerow.answer import Answer
from hedgerow.errors import InvalidInput

matplotlib.use("Agg")
import itertools

import matplotlib.pyplot as plt

COUNTIES = tuple(f"county number {i}" for i in range(105))


@pytest.fixture(autouse=True)
def closed_pictures() -> Iterator[None]:
    yield
    plt.close("all")


def table(value, error, *axes, query=None, typical=0.001) -> Answer:
    query = hr.marginal(*(name for name, _ in axes)) if query is None else query
    return Answer(query, np.asarray(value, float), error, "hypothesis", 0.0, axes, 0.0, typical)


def texts_overlap(axes, ticks) -> bool:
    axes.figure.canvas.draw()
    boxes = [tick.get_window_extent() for tick in ticks if tick.get_text()]
    return any(a.overlaps(b) for a, b in itertools.pairwise(boxes))


def test_the_largest_of_many_categories_have_bars_and_the_others_share_one() -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(105))
    axes = table(shares, 0.004, ("place", COUNTIES)).plot()
    lengths = [bar.get_width() for bar in axes.patches]
    assert len(lengths) == 26 and lengths[:25] == sorted(shares, reverse=True)[:25]
    assert lengths[25] == pytest.approx(np.sort(shares)[:80].sum())
    assert axes.get_yticklabels()[25].get_text() == "all 80 others"
    assert axes.get_title(loc="left") == "Rows by place" and "share of rows" in axes.get_xlabel()
    assert not texts_overlap(axes, axes.get_yticklabels())


def test_all_categories_are_drawn_on_request_and_their_labels_do_not_touch() -> None:
    axes = table(np.full(105, 1 / 105), 0.004, ("place", COUNTIES)).plot(top=None)
    assert len(axes.patches) == 105 and not texts_overlap(axes, axes.get_yticklabels())
    with pytest.raises(InvalidInput, match="top must be a whole number"):
        table(np.full(105, 1 / 105), 0.004, ("place", COUNTIES)).plot(top=0)


def test_means_of_categories_are_points_and_are_never_added() -> None:
    means = table(np.arange(105.0), 9.0, ("place", COUNTIES), query=hr.group_by("place").mean("age"))
    axes = means.plot()
    assert not axes.patches and len(axes.lines[0].get_xdata()) == 25
    assert axes.get_xlabel().startswith("mean of age")


def ends_of_whiskers(axes, across: int = 0) -> np.ndarray:
    return np.array([segment for each in axes.collections for segment in each.get_segments()])[..., across]


def test_whiskers_are_the_ends_of_the_interval_on_both_sides() -> None:
    session = opened(frame())
    gap = session.ask(hr.compare(hr.group_by("region").mean("age"), against=0))
    axes = gap.plot()
    low, high = gap.interval
    known = np.isfinite(low) & np.isfinite(high)
    ends = ends_of_whiskers(axes, 1)
    assert known.any() and not axes.patches  # a difference is a point, not a bar from zero
    assert ends.min() == pytest.approx(np.min(low[known])) and ends.max() == pytest.approx(np.max(high[known]))
    assert axes.get_ylabel() == "difference in mean of age" and "(" not in axes.get_title(loc="left")


def test_a_share_that_may_be_anything_has_a_whisker_over_all_shares() -> None:
    axes = table([0.2, 0.4, 0.1], np.array([np.inf, 0.1, np.inf]), ("sex", ("F", "M", "X"))).plot()
    ends = ends_of_whiskers(axes)
    assert ends.min() == 0.0 and ends.max() == 1.0


def test_the_legend_names_only_the_errors_that_are_drawn() -> None:
    both = table([0.2, 0.8], 0.1, ("sex", ("F", "M"))).plot()
    assert "guaranteed" in both.get_xlabel() and "typical" in both.get_xlabel()
    one = table([0.2, 0.8], 0.1, ("sex", ("F", "M")), typical=None).plot()
    assert "guaranteed" in one.get_xlabel() and "typical" not in one.get_xlabel()


def test_long_labels_that_begin_alike_stay_different() -> None:
    names = tuple(f"an occupation with a very long name, number {i}" for i in range(30))
    axes = table(np.full(30, 1 / 30), 0.004, ("job", names)).plot(top=None)
    shown = [tick.get_text() for tick in axes.get_yticklabels()]
    assert len(set(shown)) == 30 and max(map(len, shown)) <= 36


def test_long_labels_that_differ_in_the_middle_stay_different() -> None:
    names = tuple(f"a very long name of a ward, number {i} of the old building" for i in range(12))
    axes = table(np.full(12, 1 / 12), 0.004, ("ward", names)).plot(top=None)
    shown = [tick.get_text() for tick in axes.get_yticklabels()]
    assert len(set(shown)) == 12 and max(map(len, shown)) <= 36 and all("number" in name for name in shown)


def test_missing_values_are_a_point_beside_the_line_of_numbers() -> None:
    values = np.append(np.full(60, 0.9 / 60), 0.1)
    axes = table(values, 0.01, ("age", (*range(20, 80), "(missing)"))).plot()
    assert list(axes.lines[0].get_xdata()) == list(range(20, 80)) and list(axes.lines[1].get_ydata()) == [0.1]
    shown = [tick.get_text() for tick in axes.get_xticklabels()]
    assert shown[-1] == "(missing)" and {"20", "40"} <= set(shown)
    assert "light band: guaranteed" in axes.get_xlabel() and "thin line" not in axes.get_xlabel()


def test_large_numbers_are_written_out_below_an_axis() -> None:
    pay = table(np.array([2e6, 3e6]), 5e5, ("sex", ("F", "M")), query=hr.group_by("sex").mean("pay")).plot()
    pay.figure.canvas.draw()
    assert (
        "2,000,000" in [tick.get_text() for tick in pay.get_xticklabels()]
        and not pay.xaxis.get_offset_text().get_text()
    )


def test_a_picture_of_some_means_says_how_many_there_are() -> None:
    means = table(np.arange(105.0), 9.0, ("place", COUNTIES), query=hr.group_by("place").mean("age"))
    assert "the largest 25 of 105" in means.plot().get_xlabel()


def test_many_bins_are_a_line_in_a_panel_of_a_summary() -> None:
    universe = hr.Universe(pay=hr.Range(0, 100, bins=30), sex=hr.Categories(["F", "M"]))
    people = {"pay": np.arange(3000) % 100, "sex": np.where(np.arange(3000) % 2, "F", "M")}
    session = hr.open(pd.DataFrame(people), universe=universe, budget=hr.Budget(1.0, 1e-6), seed=1)
    pay = session.describe().plot().axes[0]
    assert not pay.patches and len(pay.lines[0].get_xdata()) == 30
    assert [tick.get_text()[0] for tick in pay.get_xticklabels()] == ["["] * 4


def test_whiskers_end_where_no_truth_can_be() -> None:
    axes = table([0.01, 0.99], 0.1, ("sex", ("F", "M"))).plot()
    ends = np.array([segment for each in axes.collections for segment in each.get_segments()])[..., 0]
    assert ends.min() == 0.0 and ends.max() == 1.0


def test_the_whiskers_of_a_mean_end_with_its_interval_and_the_caption_names_only_what_is_drawn() -> None:
    drawn = hr.Answer(
        hr.group_by("sex").mean("age"), np.array([4.0, 2.0]), np.array([9.0, 1.0]), "hypothesis", 0.0, (("sex", ("F", "M")),),
        lower=np.array([0.0, 1.0]), upper=np.array([13.0, 3.0]),
    )  # fmt: skip
    axes = drawn.plot()
    ends = np.array([segment for each in axes.collections for segment in each.get_segments()])[..., 0]
    assert ends.min() == 0.0 and ends.max() == 13.0
    assert "guaranteed" in axes.get_xlabel() and "typical" not in axes.get_xlabel()


def test_numbers_keep_their_order_and_many_become_a_line_in_a_band() -> None:
    few = table([0.2, 0.5, 0.3], 0.1, ("age", (0, 1, 2))).plot()
    assert [bar.get_height() for bar in few.patches] == [0.2, 0.5, 0.3]
    many = table(np.full(300, 1 / 300), 0.01, ("age", tuple(range(300)))).plot()
    assert not many.patches and len(many.lines[0].get_xdata()) == 300 and len(many.collections) == 2
    assert not texts_overlap(many, many.get_xticklabels())


def test_the_legend_is_beside_the_bars() -> None:
    axes = table(np.full((4, 6), 1 / 24), 0.01, ("health", ("a", "b", "c", "d")), ("age", tuple(range(6)))).plot()
    axes.figure.canvas.draw()
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1
    assert len(axes.patches) == 24


def test_a_large_table_of_two_attributes_is_shaded_and_says_its_error() -> None:
    axes = table(np.full((40, 30), 1 / 1200), 0.02, ("age", tuple(range(40))), ("hour", tuple(range(30)))).plot()
    assert len(axes.images) == 1 and "at most ± 2 %" in axes.get_xlabel()


def test_a_summary_has_a_panel_for_each_column_and_one_for_associations() -> None:
    summary = opened(frame()).describe()
    figure = summary.plot()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:4] == list(SMALL.names) and titles[4].startswith("strongest associations")
    assert "{" not in str(summary) and str(summary) == repr(summary)


def test_a_plan_answers_whether_the_table_is_large_enough_in_words_and_in_a_picture() -> None:
    budget = hr.Budget(1.0, 1e-6)
    said = {}
    for rows in (100, 1_000, 10_000_000):
        plan = hr.plan(universe=SMALL, budget=budget, rows=rows, queries=1000, progress=False)
        said[rows] = plan.verdict
        assert plan.verdict in str(plan) and repr(plan) == str(plan) and plan.verdict in plan._repr_html_()
    assert said[100].startswith("No: 100 rows") and said[10_000_000].startswith("Yes: this table is large enough")
    axes = plan.plot()
    assert "10,000,000" in axes.get_xlabel() and axes.get_title(loc="left") == "Is my table large enough?"
    with pytest.raises(InvalidInput, match="must have rows="):
        hr.plan(universe=SMALL, budget=budget, accuracy=0.1, queries=10, simulate=False).plot()


def test_a_notebook_shows_a_table_and_a_terminal_no_dataclass() -> None:
    session = opened(frame())
    session.ask(hr.count(sex="F"))
    X = frame(400).assign(target=lambda rows: rows.smoker)
    with pytest.warns(hr.NotPrivateWarning):
        held = hr.Holdout(X, hr.Budget(1.0, 1e-6), target="target", seed=1)
    for shown in (session, session.universe, session.certificate, session.describe(), session.report(), held):
        assert "<table" in shown._repr_html_() and "Limit(" not in repr(shown)
    assert repr(session.certificate) == str(session.certificate)
    assert "(epsilon=" not in repr(session.generalisation)
