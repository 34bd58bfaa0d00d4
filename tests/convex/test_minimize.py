"""Convex questions in a session: meaning, bars, purchases, learning, and every refusal."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from pathlib import Path

import doc_pictures
import numpy as np
import pandas as pd
import pytest
from people import SMALL, frame, opened

import hedgerow as hr
from hedgerow import demo
from hedgerow.convex.solver.public_minimum import Minimum, minimize_over
from hedgerow.data import HistogramSource, Table
from hedgerow.engine.practical.bars.error_bars import Measurement
from hedgerow.engine.practical.convex import convex_answers as practical_convex
from hedgerow.engine.practical.convex.excess_bounds import excess_bound
from hedgerow.engine.practical.fit.residuals import Overview
from hedgerow.errors import BudgetExceeded, InvalidInput, TooLarge
from hedgerow.losses import (
    Absolute,
    Custom,
    Hinge,
    Huber,
    Logistic,
    MultinomialLogistic,
    Pinball,
    Poisson,
    Squared,
)
from hedgerow.privacy.events import Gaussian
from hedgerow.query.linear import Linear
from hedgerow.research.stories import many_models as demo_convex
from hedgerow.unsafe import unsafe_answer, unsafe_excess_risk

SMOKER = Logistic(target="smoker", features=["age", "sex"])
BALL = hr.L2Ball(2.0)
QUESTIONS = [
    hr.minimize(SMOKER, BALL),
    hr.minimize(Squared(target="region", features=["age", "smoker"]), BALL),
    hr.minimize(Hinge(target="smoker", features=["age"], onehot=["age"]), BALL),
    hr.minimize(Huber(0.5, target="age", features=["region"], ridge=0.1), BALL),
    hr.minimize(Pinball(0.8, target="region"), hr.Box(-1.0, 1.0)),
    hr.minimize(Absolute(target="age", features=["sex"], where=hr.count(smoker=True)), BALL),
    hr.minimize(Poisson(1.0, target="region", features=["age"]), hr.L2Ball(1.0)),
    hr.minimize(MultinomialLogistic(target="region", features=["smoker"]), BALL),
    hr.minimize(Squared(target="region", features=["age", "sex"]), hr.L1Ball(1.0)),
]


def large(scale: int = 1000) -> HistogramSource:
    """The small table with every row many times over: n is only a scale."""
    table = Table(frame(), SMALL)
    return HistogramSource(SMALL, table.marginal(SMALL.names) * scale)


def ignorant(data, **options) -> hr.Session:
    """A session whose hypothesis knows single attributes only, and has most of its budget left."""
    single = [hr.marginal(name) for name in SMALL.names]
    return opened(data, **{"workload": single, "reserve": 0.8, **options})


# Meaning


def test_a_repeat_is_recognised_however_it_was_written(session) -> None:
    first = hr.minimize(Logistic(target="smoker", features=["age"], where=hr.count(sex="F", region=1)), BALL)
    same = hr.minimize(
        Logistic(
            target="smoker", features=("age", "age"), onehot=["sex"], where=hr.count(region={1}) & ~hr.count(sex="M")
        ),
        hr.L2Ball(2),
    )
    asked, repeated = session.ask(first), session.ask(same)
    assert repeated.source == "repeat" and repeated.cost == 0
    assert np.array_equal(asked.value, repeated.value)


def test_another_loss_set_or_subset_is_another_question() -> None:
    questions = [
        *QUESTIONS,
        hr.minimize(SMOKER, hr.L2Ball(3.0)),
        hr.minimize(SMOKER, hr.L1Ball(2.0)),
        hr.minimize(SMOKER),
        hr.minimize(Logistic(target="smoker", features=["age", "sex"], ridge=0.1), BALL),
        hr.minimize(Logistic(target="smoker", features=["age", "sex"], where=hr.count(region=0)), BALL),
        hr.minimize(Logistic(target="smoker", features=["age", "sex"], intercept=False), BALL),
        hr.minimize(Logistic(target="smoker", features=["age", "sex"], onehot=["age"]), BALL),
        hr.minimize(Huber(0.6, target="age", features=["region"], ridge=0.1), BALL),
    ]
    keys = [question.on(SMALL).key for question in questions]
    assert len(set(keys)) == len(keys)
    assert len(set(questions)) == len(questions)


def test_answers_in_a_batch_are_those_asked_one_by_one(table) -> None:
    asked = [hr.count(smoker=True), QUESTIONS[0], hr.marginal("age"), QUESTIONS[4], hr.mean("age"), QUESTIONS[0]]
    together = opened(table).ask_all(asked)
    alone = opened(table)
    for a, query in zip(together, asked, strict=True):
        b = alone.ask(query)
        assert np.allclose(a.value, b.value, rtol=0, atol=1e-12) and a.source == b.source
    assert together[-1].source == "repeat"


def test_parameters_are_not_scaled_to_rows(session) -> None:
    one, other = session.ask(QUESTIONS[0]), session.ask(QUESTIONS[0], scale="rows")
    assert np.array_equal(one.value, other.value) and one.error == other.error


# Accuracy and bars


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
def test_a_free_answer_is_in_the_set_and_near_the_best(session, question) -> None:
    answer = session.ask(question)
    assert answer.cost == 0 and answer.source in ("hypothesis", "repeat")
    assert question.over.contains(answer.value)
    assert -1e-5 <= unsafe_excess_risk(session._data, question, answer.value) < 0.01


def test_bars_hold_for_all_questions_at_once() -> None:
    """β = 1e-6 a session: a single bar that is passed in these 6 sessions has a probability of at most 6e-6."""
    stated = 0
    for seed, data in itertools.product(range(3), (large(1), large())):
        session = opened(data, seed=seed, beta=1e-6)
        for question in QUESTIONS:
            answer = session.ask(question)
            if answer.error is not None:
                stated += 1
                assert unsafe_excess_risk(data, question, answer.value) <= answer.error
    assert stated > 20


def test_bars_shrink_with_the_number_of_rows() -> None:
    question = hr.minimize(Logistic(target="smoker", features=["age"]), BALL)
    few, many = opened(large(1)).ask(question).error, opened(large(1000)).ask(question).error
    assert many is not None and many < 0.01 and (few is None or many < few / 10)


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
@pytest.mark.parametrize("distance", [1e-3, 0.03])
def test_no_table_within_the_distance_has_more_excess_risk_than_the_bound(question, distance) -> None:
    rng = np.random.default_rng(3)
    bound = question.on(SMALL)
    believed = rng.dirichlet(np.full(math.prod(bound.shape), 0.7)).reshape(bound.shape)
    found = minimize_over(bound.risk, believed, bound.over, 1e-7)
    stated = excess_bound(bound, believed, found, distance)
    for _ in range(10):
        corner = np.zeros(believed.size)
        corner[rng.integers(believed.size)] = 1
        direction = corner.reshape(bound.shape) - believed
        true = believed + direction * min(1.0, distance / np.linalg.norm(direction))
        least = minimize_over(bound.risk, true, bound.over, 1e-7)
        excess = bound.risk.objective(true).value(found.theta) - least.value
        assert excess <= stated + 1e-9


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_distance_of_a_marginal_to_the_hypothesis_is_bounded(neighbours) -> None:
    """β = 1e-6: a bound that is passed has at most that probability. Whole families and single tables alike."""
    data = large(1)
    for workload in (None, [hr.marginal("age", "sex", "smoker")]):
        session = opened(data, budget=hr.Budget(1.0, 1e-6, neighbours), beta=1e-6, workload=workload)
        engine, stated = session._engine, 0
        for names in itertools.chain(*(itertools.combinations(SMALL.names, k) for k in (1, 2, 3))):
            believed = session.hypothesis.marginal(names)
            bound = engine.knowledge.distance(names, believed)
            stated += bound < math.inf
            assert np.linalg.norm(data.marginal(names) / data.rows - believed) <= bound
        assert stated >= 4


def test_no_table_of_norm_one_deviates_more_than_the_widest() -> None:
    rng = np.random.default_rng(0)
    sets = [(), ("age",), ("sex",), ("age", "sex")]
    released = [
        Measurement(s, np.zeros(SMALL.sizes(s)), Gaussian(1.0, sd), residual=True)
        for s, sd in zip(sets, rng.uniform(1, 9, 4), strict=True)
    ]
    overview = Overview(SMALL, released, None)
    along = {"age": np.eye(8)[:, :1] - 1 / 8, "sex": np.array([[1.0, -1.0]]), "none": np.ones((8, 2))}
    pure = [along["age"] * along["none"], along["sex"] * along["none"], along["none"], along["age"] * along["sex"]]
    tables = [*pure, *(rng.normal(size=(8, 2)) for _ in range(200))]
    queries = [Linear(("age", "sex"), (8, 2), None, table / np.linalg.norm(table), False) for table in tables]
    found, widest = overview.deviations(("age", "sex"), queries), overview.widest(("age", "sex"))
    assert found.max() <= widest * (1 + 1e-12) and found.max() == pytest.approx(widest)


def test_a_bound_that_says_nothing_is_not_stated() -> None:
    bound = QUESTIONS[0].on(SMALL)
    believed = np.full(bound.shape, 1 / math.prod(bound.shape))
    found = Minimum(np.zeros(bound.risk.dimension), 0.0, 0.0)
    assert excess_bound(bound, believed, found, 2.0) == math.inf
    assert excess_bound(bound, believed, found, math.inf) == math.inf


# Sensitivity


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
def test_one_row_moves_the_excess_risk_by_no_more_than_is_billed(question, neighbours) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, SMALL.shape)
    single = [hr.marginal(name) for name in SMALL.names]
    budget = hr.Budget(1.0, 1e-6, neighbours)
    session = opened(HistogramSource(SMALL, counts), budget=budget, reserve=0.5, workload=single)
    engine, bound = session._engine._convex, question.on(SMALL)
    _, event = engine._check(bound, question.over.project(np.zeros(bound.risk.dimension)), 1.0)
    for _ in range(8):
        near = counts.copy()
        near[tuple(rng.integers(0, n) for n in SMALL.shape)] += 1
        if neighbours == "replace":
            present = np.argwhere(counts > 0)
            near[tuple(present[rng.integers(len(present))])] -= 1
        theta = question.over.project(rng.normal(size=bound.risk.dimension))
        values = []
        for table in (counts, near):
            tables = HistogramSource(SMALL, table)
            excess = engine._excess(bound, theta, practical_convex.SURROGATE)
            values.append(excess.value(tables.marginal(bound.attributes), event.grid))
        assert abs(values[0] - values[1]) <= event.sensitivity
    S = bound.scale
    assert (2 * S if neighbours == "replace" else S) <= event.sensitivity <= 1.1 * session.budget.bounded_sum(S)


# Buying


@pytest.mark.parametrize(
    "budget",
    [hr.Budget(1.0, 1e-6), hr.Budget(1.0, 0.0), hr.Budget(1.0, 1e-6, neighbours="add-remove")],
    ids=["zCDP", "pure", "add-remove"],
)
def test_within_pays_for_the_bound_it_promises_and_a_repeat_is_free(budget) -> None:
    pairs = [hr.marginal("age", "smoker"), hr.marginal("sex", "smoker")]
    session = opened(large(20), budget=budget, reserve=0.5, workload=pairs, guard=0.0)
    before, question = session.spent, QUESTIONS[0]
    assert session.ask(question).error > 0.5  # the three attributes were never measured together
    bought = session.ask(question, within=0.05)
    assert bought.source == "measured" and bought.error <= 0.05
    assert bought.cost == pytest.approx(session.spent - before) and bought.cost > 0 and session.remaining >= 0
    assert unsafe_excess_risk(session._data, question, bought.value) <= bought.error
    again = session.ask(question, within=0.06)
    assert again.source == "repeat" and again.cost == 0 and np.array_equal(again.value, bought.value)


def test_within_is_free_where_the_bound_is_good_enough() -> None:
    session = opened(large())
    assert session.ask(QUESTIONS[4], within=0.5).cost == 0


def test_a_bound_that_costs_too_much_is_refused_before_anything_is_drawn(table) -> None:
    session = opened(table)
    before = session.spent, len(session.log)
    with pytest.raises(BudgetExceeded, match=r"cost must be at most rho = .* Ask for a looser error"):
        session.ask(QUESTIONS[0], within=1e-5)
    assert (session.spent, len(session.log)) == before


def test_a_regression_that_is_learned_improves_a_later_count() -> None:
    data = large(10)
    count = hr.count(smoker=True, age=(5, 7))
    session = ignorant(data)
    before = abs(session.ask(count).value - unsafe_answer(data, count))
    question = hr.minimize(SMOKER, BALL)
    worse = unsafe_excess_risk(data, question, session.ask(question).value)
    answer = session.ask(question, within=0.02)
    assert ("age", "sex", "smoker") in [m.attributes for m in session._engine.measurements]
    assert unsafe_excess_risk(data, question, answer.value) < worse / 5 and answer.error <= 0.02
    later = hr.count(smoker=True, age=(4, 7), sex={"F", "M"})
    ignorance = abs(ignorant(data).ask(later).value - unsafe_answer(data, later))
    assert abs(session.ask(later).value - unsafe_answer(data, later)) < min(before, ignorance) / 5


def test_a_private_oracle_answers_if_the_marginal_is_too_wide(monkeypatch) -> None:
    """Noise that drowns the marginal: gradient descent finds θ, and ⟨u, D⟩ teaches the hypothesis."""
    data = large(10)
    session = ignorant(data)
    monkeypatch.setattr(practical_convex, "LARGEST_MODEL_CELLS", 10**6)
    monkeypatch.setattr(practical_convex.Amount, "marginal", lambda amount: Gaussian(math.sqrt(2), 1e9))
    question = hr.minimize(SMOKER, BALL)
    free = session.ask(question)
    bought = session.ask(question, within=0.05)
    gradient = session.budget.gradient(SMOKER.on(SMALL).lipschitz(BALL))
    drawn = [event for entry in session.log for event in entry.event.draws]
    steps = [event for event in drawn if event.sensitivity == pytest.approx(gradient, rel=0.01)]
    assert len(steps) >= practical_convex.STEPS
    assert any(m.query is not None for m in session._engine.measurements)
    risks = [unsafe_excess_risk(data, question, a.value) for a in (free, bought)]
    assert risks[1] < risks[0] / 2 and risks[1] <= bought.error
    assert session.spent <= session.budget.total


def test_the_guard_finds_a_regression_that_the_hypothesis_gets_wrong() -> None:
    data = large(1000)
    session = ignorant(data, guard=0.1, reserve=0.2)
    strong = hr.minimize(Logistic(target="smoker", features=["age"]), BALL)
    assert session._engine.guard is not None
    answer = session.ask(strong)
    assert answer.source == "measured" and answer.cost > 0
    assert unsafe_excess_risk(data, strong, answer.value) < 1e-3
    unrelated = hr.minimize(Squared(target="sex", features=["region"]), hr.L2Ball(1.0))
    assert session.ask(unrelated).source == "hypothesis"


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_below_the_guard_the_bar_is_what_it_promises(neighbours) -> None:
    budget = hr.Budget(1.0, 1e-6, neighbours)
    session = ignorant(large(1000), guard=0.1, reserve=0.2, budget=budget)
    question = hr.minimize(Squared(target="sex", features=["region"]), hr.L2Ball(1.0))
    answer = session.ask(question)
    assert answer.source == "hypothesis"
    assert answer.error <= 1.1 * session._engine.guard.promise * budget.bounded_sum(question.on(SMALL).scale)
    assert unsafe_excess_risk(session._data, question, answer.value) <= answer.error


# Profiles and forms


def test_an_unconstrained_logistic_regression_is_answered_without_a_bar(session) -> None:
    answer = session.ask(hr.minimize(SMOKER))
    assert answer.error is None and unsafe_excess_risk(session._data, hr.minimize(SMOKER), answer.value) < 0.01
    with pytest.raises(
        InvalidInput, match=r"within must be used with a loss whose excess risk can be measured.*Change the set"
    ):
        session.ask(hr.minimize(SMOKER), within=0.1)


def test_the_theory_profile_shares_one_hypothesis_and_one_budget_with_counts() -> None:
    universe = hr.Universe.from_sizes({"a": 4, "b": 2})
    data = HistogramSource(universe, np.array([[1, 49]] * 4) * 10**5)
    question = hr.minimize(Squared(target="b"), hr.Box(-1.0, 1.0))  # a mean, in [−1, 1]
    options = {"universe": universe, "budget": hr.Budget(1.0, 1e-6), "profile": "theory", "queries": 50, "seed": 0}
    session = hr.open(data, workload=[question], **options)
    first = session.ask(question)
    assert first.source == "measured" and first.cost > 0  # uniform is wrong
    assert unsafe_excess_risk(data, question, first.value) <= first.error
    assert not np.allclose(session.hypothesis.marginal(("b",)), 0.5)  # what the regression taught, counts use
    count = session.ask(hr.count(b=1))
    assert abs(count.value - unsafe_answer(data, hr.count(b=1))) <= count.error
    assert session.spent <= session.budget.total
    with pytest.raises(InvalidInput, match=r"within must be at least alpha = .* in the theory profile"):
        session.ask(hr.minimize(Squared(target="b"), hr.Box(-0.5, 0.5)), within=1e-6)
    with pytest.raises(InvalidInput, match=r"must be at most .*, as configured"):
        session.ask(hr.minimize(Squared(target="b", features=["a"]), hr.L2Ball(3.0)))
    with pytest.raises(
        InvalidInput, match=r"losses of convex questions must be declared .* Open the session with workload="
    ):
        hr.open(data, **options).ask(question)
    with pytest.raises(InvalidInput, match=r"Convex questions of the theory profile must be over bounded sets"):
        hr.open(data, workload=[hr.minimize(Logistic(target="b", features=["a"]))], **options)


def test_a_release_answers_convex_questions_from_its_hypothesis(table) -> None:
    adaptive = hr.release(table, universe=SMALL, budget=hr.Budget(1.0, 1e-6), seed=0)
    assert unsafe_excess_risk(table, QUESTIONS[0], adaptive.ask(QUESTIONS[0]).value) < 0.01
    workload = [hr.count(smoker=True), hr.count(sex="F")]
    offline = hr.release(table, universe=SMALL, budget=hr.Budget(5.0, 1e-6), seed=0, method="mwem", workload=workload)
    assert offline.ask(QUESTIONS[0]).error is None
    with pytest.raises(BudgetExceeded, match=r"within must be left out of a convex question to a release"):
        offline.ask(QUESTIONS[0], within=0.1)
    with pytest.raises(InvalidInput, match=r"workload of this method must consist of counts, tables and means"):
        hr.release(table, universe=SMALL, budget=hr.Budget(5.0, 1e-6), method="mwem", workload=[QUESTIONS[0]])


def test_a_convex_question_may_be_part_of_the_workload(table) -> None:
    session = opened(table, workload=[hr.minimize(Logistic(target="smoker", features=["age"]), BALL)])
    assert ("age", "smoker") in [m.attributes for m in session._engine.measurements]


def test_a_users_own_loss_is_answered(session) -> None:
    mean = Custom(
        value=lambda theta, r: 0.5 * (theta[0] - r["age"] / 7) ** 2,
        gradient=lambda theta, r: (theta[0] - r["age"] / 7)[:, None],
        attributes=("age",), dimension=1, lipschitz=1.0, smoothness=1.0, strong_convexity=1.0,
    )  # fmt: skip
    answer = session.ask(hr.minimize(mean, hr.Box(0.0, 1.0)))
    assert answer.value[0] == pytest.approx(session.ask(hr.mean("age")).value / 7, abs=0.01)


def test_the_excess_risk_of_the_best_is_zero_and_of_others_is_not(table) -> None:
    best = unsafe_answer(table, QUESTIONS[0])
    assert abs(unsafe_excess_risk(table, QUESTIONS[0], best)) < 1e-7
    assert unsafe_excess_risk(table, QUESTIONS[0], np.zeros_like(best)) > 0.01
    with pytest.raises(InvalidInput, match=r"must be made by hr.minimize. Found count\(smoker=True\)"):
        unsafe_excess_risk(table, hr.count(smoker=True), [0.0])


def test_the_excess_risk_takes_a_plain_frame() -> None:
    codes = pd.DataFrame({"a": [0, 1, 1, 0, 2], "b": [0, 1, 1, 0, 1]})
    question = hr.minimize(Logistic(target="b", features=["a"]), hr.L2Ball(1.0))
    assert unsafe_excess_risk(codes, question, np.zeros(2)) > 0


def test_an_analyst_selects_features_by_what_she_is_told_and_pays_nothing() -> None:
    data = Table(demo.path(), demo.universe())
    session = hr.open(data, universe=demo.universe(), budget=hr.Budget(1.0, 1e-6), seed=0)
    before = session.spent
    made = demo_convex.fits(session, data, 20)
    assert len({fit.query for fit in made}) == 20 and session.spent == before
    assert [len(fit.query.loss.features) for fit in made] == [1] * 7 + [2] * 6 + [3] * 5 + [1] * 2
    believed = {
        fit.query.loss.features[0]: demo_convex._hypothesis_risk(session, fit.query, fit.answer) for fit in made[:7]
    }
    assert made[7].query.loss.features[0] == min(believed, key=believed.get)
    assert np.mean([fit.excess for fit in made]) < 0.01
    alone = [demo_convex.alone(session, data, fit.query, 1e-4, np.random.default_rng(0)) for fit in made[:5]]
    assert np.mean(alone) > np.mean([fit.excess for fit in made[:5]])


def test_the_notebook_runs() -> None:
    """With three of its two hundred fits."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "regressions.ipynb").read_text()
    assert text.count("demo.universe()), 200)") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # true values are shown, because the table is public
        ran = json.loads(doc_pictures.renewed_notebook(text.replace("demo.universe()), 200)", "demo.universe()), 3)")))
    said = ["".join(cell["outputs"][0]["text"]) for cell in ran["cells"] if cell.get("outputs")]
    assert len(said) >= 5 and said[-1].startswith("3 models")


# Refusals: public facts only, nothing spent


def bad_custom(**wrong):
    good = {
        "value": lambda theta, r: 0.5 * (theta[0] - r["age"] / 7) ** 2,
        "gradient": lambda theta, r: (theta[0] - r["age"] / 7)[:, None],
    }
    return Custom(**{**good, **wrong}, attributes=("age",), dimension=1, lipschitz=1.0)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            lambda: hr.minimize(
                bad_custom(value=lambda t, r: -0.5 * t[0] ** 2 + 0 * r["age"], gradient=lambda t, r: -t[0] + 0 * r["age"][:, None]),
                hr.Box(0.0, 1.0),
            ),
            r"A loss must be convex and its gradient a subgradient.*Correct the value or the gradient",
        ),
        (
            lambda: hr.minimize(bad_custom(gradient=lambda t, r: np.full((len(r["age"]), 1), np.nan)), hr.Box(0.0, 1.0)),
            r"The gradient of a loss must be finite. Found NaN or infinity",
        ),
        (
            lambda: hr.minimize(Squared(target="age", features=["sex"])),
            r"Squared must be minimised over a bounded set. Found Unconstrained\(\). Give one, such as L2Ball\(5.0\)",
        ),
        (
            lambda: hr.minimize(bad_custom()),
            r"A loss without a scale must be minimised over a bounded set",
        ),
        (
            lambda: hr.minimize(Logistic(target="weight", features=["age"]), BALL),
            r"An attribute must be one of 'age', 'sex', 'smoker', 'region'. Found 'weight'",
        ),
        (lambda: hr.minimize(Logistic(features=["age"]), BALL), r"Logistic must name its target. Found none"),
        (lambda: hr.minimize("logistic", BALL), r"loss must be one of hedgerow.losses. Found str"),
        (lambda: hr.minimize(SMOKER, 5.0), r"over must be a convex set. Found float. For example L2Ball\(5.0\)"),
        (lambda: hr.minimize(SMOKER, hr.Box([0.0], [1.0])), r"The dimension must be 1, that of the constraint set"),
        (lambda: hr.minimize(SMOKER, BALL) & hr.count(sex="F"), r"A part of &, \|, ~ or where must be a count"),
    ],
)  # fmt: skip
def test_a_bad_question_is_refused_by_name_and_costs_nothing(session, question, message) -> None:
    before = session.spent
    with pytest.raises(InvalidInput, match=message):
        session.ask(question(), within=0.5)
    assert session.spent == before


@pytest.mark.parametrize("size", [1e-300, 1e-101, 1e101, 1e154, 1e300])
@pytest.mark.parametrize("kind", [hr.L2Ball, hr.L1Ball, hr.Simplex, lambda size: hr.Box(-size, size)])
def test_a_set_at_the_ends_of_float64_is_refused_by_its_size(session, kind, size) -> None:
    with pytest.raises(InvalidInput, match=r"must reach between 1e-100 and 1e\+100 from the origin"):
        session.ask(hr.minimize(SMOKER, kind(size)))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("guard", [0.0, 0.1])
def test_a_set_of_one_point_and_a_table_of_one_row_are_answered_like_any_other(neighbours, guard) -> None:
    counts = np.zeros(SMALL.shape, int)
    counts[0, 0, 0, 0] = 1
    budget = hr.Budget(1.0, 1e-6, neighbours)
    session = opened(HistogramSource(SMALL, counts), budget=budget, reserve=0.4, guard=guard)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for over in (hr.Box(0.0, 0.0), hr.Box(0.5, 0.5)):
            answer = session.ask(hr.minimize(Squared(target="age"), over))
            assert answer.value.tolist() == [over.low] and answer.source == "hypothesis"
        assert np.isfinite(session.ask(QUESTIONS[0]).value).all()


def test_a_constant_target_is_refused_from_the_universe_alone() -> None:
    universe = hr.Universe(a=hr.Integers(0, 3), only=hr.Categories(["x"]), flag=hr.Flag())
    data = HistogramSource(universe, np.ones(universe.size, dtype=int))
    session = hr.open(data, universe=universe, budget=hr.Budget(1.0, 1e-6), seed=0)
    with pytest.raises(InvalidInput, match=r"The target must have at least two values. Found 'only' with 1"):
        session.ask(hr.minimize(Squared(target="only", features=["a"]), BALL))
    constant = HistogramSource(universe, np.array([[[10, 0]]] * 4))  # a flag that is never set is a fact about the data
    quiet = hr.open(constant, universe=universe, budget=hr.Budget(1.0, 1e-6), seed=0)
    assert np.isfinite(quiet.ask(hr.minimize(Logistic(target="flag", features=["a"]), BALL)).value).all()


def test_features_past_memory_are_refused_with_the_way_out() -> None:
    universe = hr.Universe.from_sizes({f"x{i}": 10 for i in range(6)} | {"y": 2})
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {name: rng.integers(0, size, 500) for name, size in zip(universe.names, universe.shape, strict=True)}
    )
    single = [hr.marginal(name) for name in universe.names]
    session = hr.open(Table(rows, universe), universe=universe, budget=hr.Budget(1.0, 1e-6), seed=0, workload=single)
    session.hypothesis.memory_limit = 10**6
    with pytest.raises(
        TooLarge,
        match=r"must fit in memory. Found 2000000 cells on x0, x1.*coarser bins, or fit it once with hedgerow.erm",
    ):
        session.ask(hr.minimize(Logistic(target="y", features=[f"x{i}" for i in range(6)]), BALL))
