"""The practical profile's parts: evidence, fits, overviews, error bars and the guard's rule."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paying import paid

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical import free_answers
from hedgerow.engine.practical.bars.error_bars import ErrorBars, Measurement, RowCountInterval
from hedgerow.engine.practical.engine import plan_guard
from hedgerow.engine.practical.fit.residuals import Evidence, Overview, center, coordinates, from_coordinates, subsets
from hedgerow.engine.practical.measure import prefit as selection
from hedgerow.engine.practical.measure.prefit import Prefit
from hedgerow.model import log_linear
from hedgerow.model.log_linear import LocalModel, LogLinear, Target, minimize
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded
from hedgerow.query.linear import Linear

UNIVERSE = hr.Universe.from_sizes({"a": 2, "b": 3, "c": 4})
SETS = subsets(UNIVERSE.names, 1)


def counts(seed: int, rows: int = 5000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(rows, rng.dirichlet(np.ones(UNIVERSE.size))).reshape(UNIVERSE.shape)


def onto(table: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    return table.sum(axis=tuple(i for i, n in enumerate(UNIVERSE.names) if n not in names))


def noisy(table: np.ndarray, names: tuple[str, ...], sigma: float, seed: int) -> Measurement:
    rng = np.random.default_rng(seed)
    y = onto(table, names) + sigma * rng.normal(size=UNIVERSE.sizes(names))
    return Measurement(names, y, Gaussian(1.0, sigma))


@given(st.lists(st.sampled_from(SETS), min_size=1, max_size=5), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_evidence_is_generalised_least_squares(chosen, seed) -> None:
    x = counts(seed).astype(float)
    measured = [noisy(x, names, 5.0 + i, seed + i) for i, names in enumerate(chosen)]
    evidence = Evidence(UNIVERSE)
    rows, values = [], []
    for m in measured:
        evidence.add(m)
        sd = math.sqrt(m.variance)
        for cell in np.ndindex(m.values.shape):
            indicator = np.zeros(UNIVERSE.shape)
            indicator[
                tuple(cell[m.attributes.index(n)] if n in m.attributes else slice(None) for n in UNIVERSE.names)
            ] = 1
            rows.append(indicator.ravel() / sd)
            values.append(m.values[cell] / sd)
    solution = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0].reshape(UNIVERSE.shape)
    for names in chosen:
        assert np.allclose(evidence.estimate(names)[0], onto(solution, names), atol=1e-6)


def test_the_stated_variance_is_the_variance() -> None:
    """1,000 draws: the sample variance is within a factor 1.25 except with probability below 1e-6 (chi-square tails)."""
    x, names = counts(0), ("a", "b")
    estimates = []
    for seed in range(1000):
        evidence = Evidence(UNIVERSE)
        for i, s in enumerate([("a",), ("b", "c"), ("a", "b"), ("a", "b", "c")]):
            evidence.add(noisy(x, s, 4.0 + i, 10 * seed + i))
        estimates.append(evidence.estimate(names)[0][0, 0])
    assert np.var(estimates) == pytest.approx(evidence.estimate(names)[1], rel=0.25)


def test_a_public_n_is_exact_in_every_estimate() -> None:
    evidence = Evidence(UNIVERSE, 5000.0)
    evidence.add(noisy(counts(1), ("a", "b"), 30.0, 1))
    assert evidence.estimate(("a", "b"))[0].sum() == pytest.approx(5000)


@given(st.sampled_from(SETS), st.integers(0, 10**6))
def test_coordinates_are_an_isometry_of_the_residual_up_to_half_a_step(names, seed) -> None:
    table = np.random.default_rng(seed).integers(0, 1000, size=UNIVERSE.sizes(names))
    inside = coordinates(table, selection.GRID)
    assert inside.shape == tuple(m - 1 for m in table.shape)
    assert np.abs(from_coordinates(inside) - center(table)).max() <= selection.GRID / 2 * math.sqrt(inside.size) + 1e-9
    reach = selection.GRID / 2 * math.sqrt(inside.size) + 1e-9
    assert np.linalg.norm(inside) == pytest.approx(np.linalg.norm(center(table)), abs=reach)


@pytest.mark.parametrize("sizes", [(2,), (2, 2), (3, 5), (2, 7), (2, 3, 4)])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_sensitivity_of_a_residual_is_the_largest_over_all_rows(sizes, neighbours) -> None:
    rows = []
    for cell in np.ndindex(sizes):
        one = np.zeros(sizes, np.int64)
        one[cell] = 1
        rows.append(coordinates(one, 2.0**-40).ravel())
    pairs = ((r, 0 * r) for r in rows) if neighbours == "add-remove" else itertools.combinations(rows, 2)
    largest = max(float(np.linalg.norm(a - b)) for a, b in pairs)
    assert hr.Budget(1, 1e-6, neighbours).residual_l2(sizes) == pytest.approx(largest)


def test_the_overview_knows_the_deviation_of_every_query() -> None:
    """An estimate is linear in the noise: its variance is the sum, over all coordinates, of what each alone moves it by, squared."""
    x = counts(2)
    rng = np.random.default_rng(3)
    sets = [(), *subsets(UNIVERSE.names, 1)]
    sigmas = {s: 3.0 + i for i, s in enumerate(sets)}
    queries = [hr.count(a=1, b={0, 2}), hr.count(c=(1, 2)), hr.linear(("b", "c"), rng.random((3, 4)))]
    bound = [q.on(UNIVERSE) for q in queries]

    def overview(moved: tuple[str, ...] | None = None, coordinate: int = 0) -> Overview:
        """Without noise, but for a deviation in one coordinate."""
        measured = []
        for s in sets:
            drawn = coordinates(onto(x, s), selection.GRID)
            if s == moved:
                drawn.reshape(-1)[coordinate] += sigmas[s]
            measured.append(Measurement(s, from_coordinates(drawn), Gaussian(1.0, sigmas[s]), residual=True))
        return Overview(UNIVERSE, measured, None)

    def answers(found: Overview) -> np.ndarray:
        return np.array([q.dot(found.onto(q.attributes)) for q in bound])

    still = overview()
    every = [(s, i) for s in sets for i in range(math.prod(m - 1 for m in UNIVERSE.sizes(s)))]
    moves = np.array([answers(overview(s, i)) - answers(still) for s, i in every])
    stated = [float(still.deviations(q.attributes, [q])[0]) for q in bound]
    assert np.sqrt((moves**2).sum(axis=0)) == pytest.approx(stated, rel=1e-9)
    assert answers(still) == pytest.approx([q.dot(onto(x, q.attributes)) for q in bound], abs=1e-2)


def fitted(seed: int = 4) -> tuple[LogLinear, list[Target], float]:
    x = counts(seed)
    evidence = Evidence(UNIVERSE)
    for i, s in enumerate([("a", "b"), ("b", "c")]):
        evidence.add(noisy(x, s, 10.0, seed + i))
    model = LogLinear(UNIVERSE, {s for t in [("a", "b"), ("b", "c")] for s in subsets(t, 1)})
    targets = []
    for s in model.sets:
        y, v = evidence.estimate(s)
        targets.append(Target(y, np.full(y.shape, 0.2 * math.sqrt(v))))
    return model, targets, evidence.total[0]


def test_a_fit_is_the_optimum_that_a_plain_optimiser_finds() -> None:
    from scipy.optimize import minimize

    model, targets, rows = fitted()
    log_linear.minimize(model, targets, rows, steps=500, tolerance=1e-10)
    y = np.concatenate([t.counts.ravel() for t in targets])
    a = np.concatenate([t.ridge.ravel() for t in targets])

    def objective(x):
        log_z, means = model.evaluate(x)
        return rows * log_z - x @ y + 0.5 * (a * x) @ x, rows * means - y + a * x

    plain = minimize(objective, np.zeros_like(y), jac=True, method="BFGS", options={"gtol": 1e-4, "maxiter": 5000})
    assert objective(model.theta)[0] == pytest.approx(plain.fun, rel=1e-9)


def test_the_gradient_of_the_fit_is_that_of_its_objective() -> None:
    model, _, _ = fitted()
    rng = np.random.default_rng(5)
    x, d = rng.normal(size=model.theta.shape), rng.normal(size=model.theta.shape)
    ahead, behind = model.evaluate(x + 1e-5 * d)[0], model.evaluate(x - 1e-5 * d)[0]
    assert (ahead - behind) / 2e-5 == pytest.approx(float(model.evaluate(x)[1] @ d), rel=1e-6)


def test_growing_a_model_changes_its_structure_and_not_its_distribution() -> None:
    model, targets, rows = fitted()
    minimize(model, targets, rows, steps=50, tolerance=1e-3)
    query = hr.count(a=1, b=2, c=3).on(UNIVERSE)
    larger = model.grow([("a", "c")], query)
    for names in SETS:
        assert np.allclose(larger.marginal(names), model.marginal(names), atol=1e-12)
        assert np.allclose(larger.hypothesis().marginal(names), model.marginal(names), atol=1e-12)


def test_a_single_query_is_fitted_like_a_table() -> None:
    query = hr.count(a=1, b=2, c=3).on(UNIVERSE)
    model = LogLinear(UNIVERSE, {(n,) for n in UNIVERSE.names}, {query.key: query})
    x = counts(6)
    targets = [Target(onto(x, s).astype(float), np.full(UNIVERSE.sizes(s), 1e-6)) for s in model.sets]
    wanted = 0.5 * min(onto(x, ("a",))[1], onto(x, ("b",))[2], onto(x, ("c",))[3])
    targets.append(Target(np.asarray(wanted), np.asarray(1e-6)))
    minimize(model, targets, 5000.0, steps=500, tolerance=1e-12)
    assert 5000 * query.dot(model.marginal(query.attributes)) == pytest.approx(wanted, rel=1e-3)


def test_a_local_fit_meets_its_targets_and_keeps_the_rest_of_its_base() -> None:
    rng = np.random.default_rng(7)
    base = rng.dirichlet(np.ones(12)).reshape(3, 4)
    wanted = rng.dirichlet(np.ones(3))
    local = LocalModel(("b", "c"), base, [("b",)])
    minimize(local, [Target(1000 * wanted, np.full(3, 1e-9))], 1000.0, steps=200, tolerance=1e-12)
    assert np.allclose(local.table().sum(axis=1), wanted, atol=1e-6)
    assert np.allclose(
        local.table() / local.table().sum(axis=1, keepdims=True), base / base.sum(axis=1, keepdims=True), atol=1e-6
    )


@pytest.mark.parametrize("event", [Gaussian(1.0, 20.0), Laplace(1.0, 15.0)])
@pytest.mark.parametrize("kind", ["runs", "products", "tables"])
def test_the_bars_hold_for_questions_chosen_to_break_them(event, kind) -> None:
    """An analyst who sees the noise asks for its worst query of each class: 200 runs at β = 0.2, at most 67 misses.

    If bars failed at rate 0.2, more than 67 misses would have probability below 1e-5.
    """
    universe = hr.Universe.from_sizes({"x": 12})
    data = np.full(12, 400)
    noise, misses = Seeded(8), 0
    for _ in range(200):
        y = np.asarray(noise.add(data, paid(event)), dtype=float)
        z = y - data
        if kind == "runs":
            masks = [np.roll(np.arange(12) < k, i) for k in range(1, 12) for i in range(12)]
            mask = max(masks, key=lambda m: abs(z[m].sum() - m.mean() * z.sum()) / math.sqrt(m.sum() * (1 - m.mean())))
            query = hr.count(x=mask)
        elif kind == "products":
            query = hr.count(x=z > 0)
        else:
            query = hr.linear("x", np.clip(0.5 + z / 60, 0, 1))
        bars = ErrorBars(universe, 0.2)
        bars.add(Measurement(("x",), y, event))
        low, high = bars.intervals([query.on(universe)], RowCountInterval(4800, 4800, 4800))
        truth = query.on(universe).dot(data) / 4800
        misses += not low[0] - 1e-12 <= truth <= high[0] + 1e-12
    assert misses <= 67


def test_bars_of_cells_are_those_of_cells_asked_one_by_one() -> None:
    x = counts(9)
    bars = ErrorBars(UNIVERSE, 0.1)
    for i, s in enumerate([("a",), ("b", "c"), ("a", "b")]):
        bars.add(noisy(x, s, 10.0, i))
    from hedgerow.query.linear import marginal_cells

    rows = RowCountInterval(5000, 4990, 5010)
    for names in [("b",), ("b", "c"), ("a", "b")]:
        together = bars.cell_intervals(names, rows)
        alone = bars.intervals(marginal_cells(UNIVERSE, names), rows)
        for one, other in zip(together, alone, strict=True):
            assert np.allclose(one.ravel(), other, atol=1e-12)
    low, high = bars.cell_intervals(("a", "c"), rows)
    truth = onto(x, ("a", "c")) / 5000
    assert (low <= truth).all()
    assert (truth <= high).all()


def test_an_unmeasured_conjunction_is_bounded_by_its_parts() -> None:
    x = counts(10)
    bars = ErrorBars(UNIVERSE, 0.1)
    for i, s in enumerate([("a", "b"), ("c",)]):
        bars.add(noisy(x, s, 2.0, i))
    query = hr.count(a=1, b={0, 1, 2}, c=(0, 2)).on(UNIVERSE)
    low, high = bars.intervals([query], RowCountInterval(5000, 5000, 5000))
    assert low[0] <= query.dot(onto(x, query.attributes)) / 5000 <= high[0] < 1


def test_the_guard_is_bought_where_it_helps_and_follows_a_public_rule() -> None:
    budget = hr.Budget(1, 1e-9)
    assert plan_guard(budget, 48_842, 100_000, 0.025) is None
    large = plan_guard(budget, 10**7, 100_000, 0.025)
    assert large is not None
    assert large.promise <= 0.02
    assert plan_guard(budget, 10**7, 100_000, 0.025, share=0.0) is None
    assert plan_guard(budget, 48_842, 100_000, 0.025, share=0.2) is not None


@pytest.mark.parametrize("budget", [hr.Budget(1, 1e-6), hr.Budget(1, 1e-6, "add-remove"), hr.Budget(2, 0.0)])
@pytest.mark.parametrize("everything", [False, True])
def test_a_prefit_spends_its_allowance_and_no_more(budget, everything) -> None:
    accountant = Accountant(budget)
    rows = 50_000.0 if budget.neighbours == "replace" else None
    workload = {t: 1.0 for t in itertools.combinations(UNIVERSE.names, 2)}
    allowance = Allowance.of(accountant, 0.7 * budget.total)
    prefit = Prefit(HistogramSource(UNIVERSE, counts(11, 50_000)), Seeded(12), workload, allowance, rows)
    learned = prefit.run(everything=everything)
    assert accountant.spent == pytest.approx(0.7 * budget.total, rel=1e-6)
    assert accountant.spent <= 0.7 * budget.total * (1 + 1e-9)
    off = np.abs(learned.model.marginal(("a", "b")) - onto(counts(11, 50_000), ("a", "b")) / 50_000)
    assert off.max() < 0.02


def test_a_model_that_cannot_hold_the_workload_is_corrected_where_it_was_measured(monkeypatch) -> None:
    """With room for 30 cells a chain of pairs fits but not all: the rest is fitted locally, and better than unfitted."""
    monkeypatch.setattr(selection, "LARGEST_MODEL_CELLS", 15)
    monkeypatch.setattr(selection, "OVERVIEW_CELLS", 15)
    budget = hr.Budget(10, 1e-6)
    data = HistogramSource(UNIVERSE, counts(13, 50_000))
    workload = {t: 1.0 for t in itertools.combinations(UNIVERSE.names, 2)}
    learned = Prefit(data, Seeded(14), workload, Allowance.of(Accountant(budget)), 50_000.0).run(everything=True)
    missing = [t for t in workload if t not in learned.model.sets]
    assert missing
    for names in missing:
        truth = onto(counts(13, 50_000), names) / 50_000
        corrected = learned.marginal(names)
        assert np.abs(corrected - truth).sum() < 0.5 * np.abs(learned.model.marginal(names) - truth).sum()
    assert np.array_equal(learned.marginal(("a",)), learned.model.marginal(("a",)))


def test_linear_queries_of_one_value_attributes_need_no_bar() -> None:
    universe = hr.Universe.from_sizes({"only": 1, "x": 3})
    data = HistogramSource(universe, np.array([[10, 20, 30]]))
    session = hr.open(data, universe=universe, budget=hr.Budget(1, 1e-6), seed=15)
    assert session.ask(hr.count(only=0)).value == 1.0
    assert session.ask(hr.marginal("only", "x")).value.shape == (1, 3)
    assert isinstance(hr.count(x=1).on(universe), Linear)


def test_a_measurement_too_large_for_the_model_still_answers_its_own_question(monkeypatch) -> None:
    monkeypatch.setattr(free_answers, "ROOM", 10)
    data = HistogramSource(UNIVERSE, counts(16, 50_000))
    session = hr.open(data, universe=UNIVERSE, budget=hr.Budget(1, 1e-6), reserve=0.4, seed=17)
    query = hr.count(a=1, b={0, 2}, c={1, 3})
    answer = session.ask(query, within=session.ask(query).error / 3)
    assert answer.source == "measured"
    assert abs(answer.value - hr.unsafe.unsafe_answer(data, query)) <= answer.error
