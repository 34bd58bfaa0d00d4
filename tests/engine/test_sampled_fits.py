"""Models whose joint table is too large are fitted on a weighted sample; intervals of coefficients are bootstrapped."""

from __future__ import annotations

import math
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.convex.solver.weighted_rows import WeightedRows
from hedgerow.engine import coefficient_widths, sampled_fit
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.losses import Logistic, MultinomialLogistic, Squared
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.universe.universe import Universe
from hedgerow.unsafe import unsafe_answer

SMALL = hr.Universe(a=hr.Integers(0, 3), b=hr.Categories(["x", "y", "z"]), c=hr.Flag(), y=hr.Flag())
WIDE = hr.Universe({f"x{i}": hr.Integers(0, 5) for i in range(9)} | {"y": hr.Flag()})  # 20 million cells
FEATURES = [f"x{i}" for i in range(9)]
BALL = hr.L2Ball(10.0)


def wide_rows(rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(0, 6, rows) for name in FEATURES})
    z = 2.0 * (frame.x0 / 2.5 - 1) - 1.0 * (frame.x4 / 2.5 - 1)
    return frame.assign(y=rng.random(rows) < 1 / (1 + np.exp(-z)))


@pytest.fixture(scope="module", autouse=True)
def few_records() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampled_fit, "LARGEST_SAMPLE", 40_000)
        yield


@pytest.fixture(scope="module")
def session() -> hr.Session:
    workload = [*(hr.marginal("y", name) for name in FEATURES), hr.marginal("x0", "x4")]
    return hr.open(wide_rows(), universe=WIDE, budget=hr.Budget(2.0, 1e-6), workload=workload, seed=0, progress=False)


@pytest.fixture(scope="module")
def logistic() -> hr.Query:
    return hr.minimize(Logistic(target="y", features=FEATURES), BALL)


@pytest.fixture(scope="module")
def answer(session, logistic) -> hr.Answer:
    return session.ask(logistic)


@pytest.mark.parametrize("loss", [Logistic(target="y", features=["a", "b"], where=hr.count(c=True), ridge=0.1),
                                  MultinomialLogistic(target="b", features=["a", "y"]), Squared(target="a", features=["b"])])  # fmt: skip
def test_a_sum_over_records_is_the_sum_over_their_table(loss) -> None:
    risk, rng = loss.on(SMALL), np.random.default_rng(1)
    columns = np.array([rng.integers(0, size, 400) for size in risk.shape], dtype=np.int32)
    weights = rng.random(400) / 400
    table = np.zeros(risk.shape)
    np.add.at(table, tuple(columns), weights)
    rows, cells, theta = WeightedRows.of(risk, columns, weights), risk.objective(table), rng.normal(size=risk.dimension)
    assert rows.mass == pytest.approx(cells.mass) and rows.value(theta) == pytest.approx(cells.value(theta))
    assert np.allclose(rows.gradient(theta), np.ravel(cells.gradient(theta)))
    assert np.allclose(rows.hessian(theta), cells.hessian(theta))


def test_a_sampled_fit_is_as_good_as_it_says_and_the_same_every_time() -> None:
    """On a small universe the loss on the hypothesis itself is known."""
    hypothesis, rng = Hypothesis(SMALL), np.random.default_rng(2)
    hypothesis.add_factor(SMALL.names, rng.normal(size=SMALL.shape))
    question = hr.minimize(Logistic(target="y", features=["a", "b", "c"]), BALL).on(SMALL)
    found = sampled_fit.fit_on_sample(question, hypothesis)
    best, marginal = question.fit_on(hypothesis)
    excess = question.risk.objective(marginal).value(found.theta) - best.value
    assert 0 <= excess <= found.simulation < 0.01
    assert np.array_equal(found.theta, sampled_fit.fit_on_sample(question, hypothesis).theta)


def test_records_follow_the_hypothesis_in_the_tables_of_the_target() -> None:
    hypothesis = Hypothesis(SMALL)
    hypothesis.add_factor(("a", "y"), np.random.default_rng(3).normal(size=(4, 2)))
    risk = Logistic(target="y", features=["a", "b"]).on(SMALL)
    columns, weights = sampled_fit.draw_records(risk, hypothesis, 5000, 1)
    for feature in ("a", "b"):
        places = risk.attributes.index(feature), risk.attributes.index("y")
        table = np.zeros((SMALL[feature].size, 2))
        np.add.at(table, (columns[places[0]], columns[places[1]]), weights)
        assert np.abs(table - hypothesis.marginal((feature, "y"))).max() < 1e-9


def test_a_model_beyond_the_largest_table_is_fitted_and_says_how(session, logistic, answer) -> None:
    assert math.prod(logistic.on(WIDE).shape) > 2 * 10**7
    named = dict(zip(answer.coefficients["feature"], answer.value, strict=True))
    assert named["x0"] == pytest.approx(2.0, abs=0.15) and named["x4"] == pytest.approx(-1.0, abs=0.15)
    assert max(abs(named[f"x{i}"]) for i in (1, 2, 3, 5, 6, 7, 8)) < 0.15
    assert answer.error is None and 0 < answer.simulation < 0.01 and answer.cost == 0
    assert "fitted on a sample of the hypothesis" in str(answer)
    assert np.isfinite(answer.coefficients["error"]).all() and set(answer.coefficients["basis"]) == {"bootstrap"}
    assert hr.serialize.loads(hr.serialize.dumps(answer)) == answer


def test_a_published_release_fits_the_same_model(session, logistic, answer, tmp_path) -> None:
    session.publish(tmp_path / "table.hedgerow")
    loaded = hr.load(tmp_path / "table.hedgerow").ask(logistic)
    assert np.allclose(loaded.value, answer.value) and loaded.simulation == pytest.approx(answer.simulation)
    assert np.allclose(loaded.coefficient_errors, answer.coefficient_errors)


def test_a_sampled_fit_refuses_unsupported_calls(session, logistic) -> None:
    with pytest.raises(InvalidInput, match="within must be used with a loss whose excess risk can be measured"):
        session.ask(logistic, within=0.01)
    with pytest.raises(TooLarge, match="fewer features, declare coarser bins, or fit it once"):
        logistic.on(WIDE).fit_on(session.hypothesis)


def test_a_declared_wide_model_weighs_its_target_most(logistic) -> None:
    sets = dict(logistic.on(WIDE).weighted_sets(3))
    assert sets["x0", "y"] > 10 * sets["x0", "x1"] > 0 and len(sets) == 45


def test_bootstrapped_intervals_say_so_and_contain_the_coefficients_of_the_table() -> None:
    """One table. ``make bench-models`` counts 200 sessions."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"a": rng.integers(0, 4, 8000), "b": rng.choice(["x", "y", "z"], 8000)})
    frame["c"] = rng.random(8000) < 0.3
    frame["y"] = rng.random(8000) < 0.2 + 0.1 * frame.a + 0.2 * frame.c
    session = hr.open(frame, universe=SMALL, budget=hr.Budget(2.0, 1e-6), seed=1, progress=False)
    question = hr.minimize(Logistic(target="y", features=["a", "b", "c"]), BALL)
    answer = session.ask(question)
    truth = unsafe_answer(session._data, question)
    assert (np.abs(answer.value - truth) <= 1.5 * answer.coefficient_errors).all()
    assert answer.coefficient_errors.max() < 0.3 and "by bootstrap at 95 %, not guaranteed" in str(answer)
    ridge = session.ask(hr.minimize(Logistic(target="y", features=["a"], ridge=1.0), hr.L2Ball(1.0)))
    assert ridge.coefficient_basis == "guaranteed"


def test_the_universe_of_the_wide_tests_is_past_the_limit() -> None:
    assert isinstance(WIDE, Universe) and not Logistic(target="y", features=FEATURES).on(WIDE).is_listable


def test_a_coefficient_whose_feature_was_never_measured_with_the_target_has_no_interval() -> None:
    """A bootstrap would repeat the assumption of independence, and call 0 certain."""
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"a": rng.integers(0, 4, 8000), "b": rng.choice(["x", "y", "z"], 8000)})
    frame["c"] = rng.random(8000) < 0.3
    frame["y"] = rng.random(8000) < 0.2 + 0.1 * frame.a + 0.2 * frame.c
    workload = [hr.marginal("a", "y"), hr.marginal("b"), hr.marginal("c")]
    session = hr.open(
        frame, universe=SMALL, budget=hr.Budget(2.0, 1e-6), workload=workload, guard=0, seed=1, progress=False
    )
    answer = session.ask(hr.minimize(Logistic(target="y", features=["a", "b", "c"]), BALL))
    apart = {pair.first if pair.second == "y" else pair.second for pair in answer.support.separated}
    table = answer.coefficients
    of = table["feature"].str.partition("=")[0]
    assert "c" in apart and "a" not in apart
    assert (np.isinf(table["error"]) == of.isin(apart & {"a", "b", "c"})).all()
    assert hr.serialize.loads(hr.serialize.dumps(answer)) == answer


def test_a_bootstrapped_width_is_the_t_interval_of_the_replicates_and_their_distance_from_the_fit(monkeypatch) -> None:
    """The interval that statistics takes for one more draw than was seen, around the replicates' mean."""
    drawn = np.random.default_rng(3).normal([1.0, -2.0], [0.5, 3.0], (6, 2))
    monkeypatch.setattr(coefficient_widths, "theta_on", lambda question, each, fewer: each)
    question = mock.Mock(**{"risk.is_listable": True, "risk.glm": None})
    widths = coefficient_widths.bootstrap_widths(question, None, np.array([1.5, -2.0]), list(drawn), None)
    low, high = stats.t.interval(coefficient_widths.LEVEL, 5, drawn.mean(axis=0), drawn.std(axis=0, ddof=1))
    assert widths == pytest.approx((high - low) / 2 + np.abs(drawn.mean(axis=0) - [1.5, -2.0]))
