"""Bounds on the excess risk of declared losses and on their coefficients, which hold in whole sessions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.convex.solver.public_minimum import minimize_over
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.convex import loss_certificate
from hedgerow.engine.practical.convex.excess_bounds import coefficient_bounds
from hedgerow.errors import InvalidInput, NotPrivateWarning
from hedgerow.losses import Absolute, Hinge, Logistic, Squared
from hedgerow.unsafe import unsafe_excess_risk

pytestmark = pytest.mark.filterwarnings("ignore", category=NotPrivateWarning)

UNIVERSE = hr.Universe(
    y=hr.Flag(), a=hr.Integers(0, 3), b=hr.Integers(0, 2), c=hr.Categories(["u", "v", "w"]), d=hr.Flag()
)
FEATURES = ["a", "b", "c", "d"]
BALL = hr.L2Ball(1.0)


def test_a_flattened_loss_is_the_same_at_its_point_and_nowhere_larger() -> None:
    risk = Squared(target="a", features=["b", "d"]).on(UNIVERSE)
    rng = np.random.default_rng(0)
    for theta in rng.uniform(-1, 1, (5, risk.dimension)):
        flat = loss_certificate.flatten_loss(risk, theta)
        assert np.allclose(flat.losses(theta), risk.losses(theta), rtol=1e-12, atol=1e-15)
        for other in rng.uniform(-3, 3, (20, risk.dimension)):
            assert np.all(flat.losses(other) <= risk.losses(other) + 1e-12)


QUESTIONS = [
    hr.minimize(Logistic(target="y", features=FEATURES), BALL),
    hr.minimize(Hinge(target="y", features=["a", "b", "c"]), BALL),
    hr.minimize(Absolute(target="a", features=["b", "c", "d"]), BALL),
    hr.minimize(Squared(target="b", features=["a", "c", "d"]), BALL),
]
BETA = 0.1


def table(rows: int = 3000, seed: int = 0) -> HistogramSource:
    """Labels that depend on how features go together, which tables of one attribute do not show."""
    rng = np.random.default_rng(seed)
    y, a, b, c, d = np.indices(UNIVERSE.shape)
    weights = rng.random(UNIVERSE.shape) * np.exp(1.5 * ((a + b + 2 * c + d) % 3 == y))
    return HistogramSource(UNIVERSE, rng.multinomial(rows, (weights / weights.sum()).ravel()).reshape(UNIVERSE.shape))


def opened(data: HistogramSource, seed: int, **options) -> hr.Session:
    given = {
        "budget": hr.Budget(0.5, 1e-6),
        "beta": BETA,
        "guard": 0.0,
        "reserve": 0.0,
        "workload": QUESTIONS,
        **options,
    }
    return hr.open(data, universe=UNIVERSE, seed=seed, progress=False, **given)


def missed(data: HistogramSource, session: hr.Session) -> bool:
    answers = [session.ask(question) for question in QUESTIONS]
    assert all(answer.error is not None for answer in answers)
    return any(unsafe_excess_risk(data, a.query, a.value, tolerance=1e-6) > a.error for a in answers)


def most_misses(sessions: int) -> int:
    """More have a probability below 1 % where one session fails with β."""
    return int(stats.binom.isf(0.01, sessions, BETA))


def test_declared_losses_have_bounds_that_hold_and_would_not_if_the_noise_were_forgotten(monkeypatch) -> None:
    """In 8 sessions; with the quantile on the wrong side nearly all fail."""
    data, sessions = table(), 8
    assert sum(missed(data, opened(data, seed)) for seed in range(sessions)) <= most_misses(sessions)
    right = loss_certificate.quantile
    monkeypatch.setattr(loss_certificate, "quantile", lambda *given: -right(*given))
    monkeypatch.setattr(loss_certificate, "_worth", _any_of_them(loss_certificate._worth))
    assert sum(missed_by_certificate(data, seed) for seed in range(5)) > 2


def _any_of_them(worth):
    """Wrap the decision to buy a certificate, so that it is made with the right quantile."""
    return lambda known, question, reach, *rest: worth(known, question, abs(reach), *rest)


def missed_by_certificate(data: HistogramSource, seed: int) -> bool:
    certified = opened(data, seed)._engine.public.losses
    found = [(q, certified.get(q.on(UNIVERSE))) for q in QUESTIONS]
    return any(unsafe_excess_risk(data, q, f[0], tolerance=1e-6) > f[1] for q, f in found if f is not None)


@pytest.mark.audit
def test_in_whole_sessions_the_bounds_of_adaptively_chosen_models_hold_together() -> None:
    """400 sessions, declared and other models, chosen by what was answered before; and the intervals of coefficients."""
    sessions, misses = 400, 0
    for seed in range(sessions):
        data = table(seed=seed)
        session = opened(data, seed)
        wrong = missed(data, session)
        for target in ("a", "b"):
            left = [n for n in ("a", "b", "c") if n != target]
            gains = {n: abs(session.ask(hr.correlation(target, n)).value) if n != "c" else 0.1 for n in left}
            chosen = sorted(gains, key=gains.get)[-1:]
            for loss in (Squared(target=target, features=chosen, ridge=0.1), Absolute(target=target, features=chosen)):
                question = hr.minimize(loss, BALL)
                answer = session.ask(question)
                wrong |= (
                    answer.error is not None and unsafe_excess_risk(data, question, answer.value) > answer.error + 1e-6
                )
                wrong |= not inside(data, question, answer)
        misses += wrong
    assert misses <= most_misses(sessions)


def best(data: HistogramSource, question: hr.Query) -> np.ndarray:
    bound = question.on(UNIVERSE)
    assert isinstance(bound, BoundMinimize)
    return minimize_over(bound.risk, data.marginal(bound.attributes), bound.over, 1e-9).theta


def inside(data: HistogramSource, question: hr.Query, answer: hr.Answer) -> bool:
    if answer.coefficient_errors is None:
        return True
    return bool((np.abs(answer.value - best(data, question)) <= answer.coefficient_errors + 1e-5).all())


# What is certified, and what is kept of it


def test_more_than_what_noise_leaves_is_what_the_losses_have() -> None:
    """A hypothesis that is right has bounds of the noise alone; with more budget they are narrower."""
    data = table(rows=10**5)
    wide, narrow = (
        [session.ask(q).error for q in (QUESTIONS[0], QUESTIONS[3])]
        for session in (opened(data, 0, budget=hr.Budget(e, 1e-6)) for e in (0.1, 16.0))
    )
    assert all(b < 0.8 * a for a, b in zip(wide, narrow, strict=True))


def test_only_declared_losses_are_paid_for() -> None:
    data = table()
    declared, other = opened(data, 0), opened(data, 0, workload=[hr.marginal("a", "b")])
    whys = [{entry.why for entry in session.log} for session in (declared, other)]
    assert loss_certificate.WHY in whys[0] and loss_certificate.WHY not in whys[1]
    assert declared.ask(QUESTIONS[0]).error is not None and declared.ask(QUESTIONS[0]).cost == 0


def test_a_session_on_a_ledger_that_lasts_has_the_same_bounds_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HEDGEROW_LEDGER_KEY", "ab" * 32)
    url = f"sqlite:///{tmp_path}/people.ledger"
    for guard in (0.0, None):
        first, again = (
            [opened(table(), 1, ledger=f"{url}{guard}", guard=guard).ask(q) for q in QUESTIONS] for _ in range(2)
        )
        assert [a.error for a in first] == [a.error for a in again]
        assert all(np.array_equal(a.value, b.value) for a, b in zip(first, again, strict=True))


def test_a_certificate_survives_later_learning() -> None:
    """After a purchase the hypothesis has another answer: the one that was certified is kept while its bound is better."""
    session = opened(table(), 0, reserve=0.6)
    before = session._engine.minimize(QUESTIONS[0].on(UNIVERSE), None)
    session.ask(hr.marginal("a", "b"), within=session.ask(hr.marginal("a", "b")).error.max() / 2)
    after = session._engine.minimize(QUESTIONS[0].on(UNIVERSE), None)
    assert np.array_equal(before.value, after.value) and before.error == after.error


# Coefficients


def ridged(**features) -> hr.Query:
    return hr.minimize(Squared(target="a", features=["b", "d"], ridge=0.05, **features), hr.L2Ball(3.0))


def test_coefficients_stay_within_the_stated_distance_from_the_best_and_can_reach_it() -> None:
    """θ* + t·H⁻¹e_j has the largest jth entry of all that are as good: a hundredth less would be wrong."""
    data, question = table(), ridged().on(UNIVERSE)
    shares = data.marginal(question.attributes) / data.rows
    objective = question.risk.objective(shares)
    θ = best(data, ridged())
    H = objective.hessian(θ)
    for j, t in itertools.product(range(len(θ)), (0.01, 0.3)):
        moved = θ + t * np.linalg.solve(H, np.eye(len(θ))[j])
        excess = objective.value(moved) - objective.value(θ)
        stated = coefficient_bounds(question, moved, excess, shares)
        assert 0.99 * stated[j] < abs(moved - θ)[j] <= stated[j] * (1 + 1e-6)
        looser = coefficient_bounds(question, moved, excess, None)  # from the ridge alone
        assert (looser >= stated * (1 - 1e-9)).all()


def test_an_answer_has_its_coefficients_by_name_with_errors_where_there_are_any() -> None:
    data = table(rows=10**6)
    session = hr.open(data, universe=UNIVERSE, budget=hr.Budget(2, 1e-6), seed=0, progress=False)
    answer = session.ask(ridged())
    frame = answer.coefficients
    assert frame["feature"].tolist() == ["b", "d", "intercept"] and frame["value"].tolist() == answer.value.tolist()
    assert np.isfinite(frame["error"]).all() and inside(data, ridged(), answer)
    assert answer.frame.equals(frame) and hr.wire.loads(hr.wire.dumps(answer)) == answer
    plain = session.ask(hr.minimize(Absolute(target="a", features=["b"]), BALL))
    assert plain.coefficient_basis == "bootstrap" and np.isfinite(plain.coefficients["error"]).all()
    assert answer.coefficient_basis == "guaranteed" and set(frame["basis"]) == {"guaranteed"}
    with pytest.raises(InvalidInput, match="The question must be convex to have coefficients"):
        _ = session.ask(hr.count(y=True)).coefficients


def test_without_curvature_no_coefficient_is_bounded() -> None:
    """One-hot columns beside an intercept say the same twice: any amount may go from one to the other."""
    question = hr.minimize(Squared(target="a", features=["c"], coding="full"), hr.L2Ball(100.0)).on(
        UNIVERSE
    )  # far wider than a bound would be
    shares = table().marginal(question.attributes) / 3000
    assert coefficient_bounds(question, np.zeros(4), 1e-3, shares) is None
    assert coefficient_bounds(question, np.zeros(4), math.inf, shares) is None
    coded = hr.minimize(Squared(target="a", features=["c"]), hr.L2Ball(100.0)).on(UNIVERSE)
    bounded = coefficient_bounds(coded, np.zeros(3), 1e-3, shares)  # beside a reference every column says its own
    assert bounded is not None and np.isfinite(bounded).all()
    ridge = hr.minimize(Logistic(target="y", features=["c"], ridge=0.5, coding="full"), hr.L2Ball(5.0)).on(UNIVERSE)
    assert coefficient_bounds(ridge, np.zeros(4), 0.01, None) == pytest.approx(np.full(4, math.sqrt(0.04)))


# Prices


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_theory_prices_every_question_at_nothing_or_refuses(neighbours) -> None:
    counts = np.full(UNIVERSE.shape, 10**6)
    session = hr.open(
        HistogramSource(UNIVERSE, counts), universe=UNIVERSE, budget=hr.Budget(1, 1e-6, neighbours=neighbours),
        profile="theory", queries=100, workload=[hr.minimize(Absolute(target="y"), hr.L2Ball(0.5))], seed=0, progress=False,
    )  # fmt: skip
    asked = [
        hr.count(y=True), hr.marginal("a", "b"), hr.mean("a"), hr.mean("a", where=hr.count(y=True)), hr.median("a"),
        hr.share(hr.count(y=True), hr.count(d=True)), hr.difference(hr.count(y=True), hr.count(d=True)), hr.variance("b"),
        hr.minimize(Absolute(target="y"), hr.L2Ball(0.5)),
    ]  # fmt: skip
    spent = session.spent
    for question in asked:
        with pytest.raises(hr.HedgerowError, match=r"within must be (at least|above)"):
            session.price(question, within=1e-9)
    assert [session.price(question, within=0.9) for question in asked[:2]] == [0.0, 0.0]
    assert session.spent == spent and session.price(asked[2], within=3.0) == 0.0


def test_a_release_sells_nothing_narrower_than_its_bar() -> None:
    released = hr.release(
        table(), universe=UNIVERSE, budget=hr.Budget(1, 1e-6), workload=[hr.marginal("a")], method="mwem", seed=0
    )
    with pytest.raises(hr.HedgerowError, match="within must be at least"):
        released.price(hr.count(a=1), within=1e-9)
