"""Every mechanism publishes the true values plus noise of the law that was billed.

For each: what it published minus what the data say (worked out here) is on the event's grid, and its law is tested on as many
draws as tell its scale from half and double of it, from both sources. All of them together tell it from 0.8 and 1.25 times.
Where noise is not published but used, as in descents, it is taken at the source, and each draw is seen to reach the answer.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from exact_laws import (
    COARSE,
    ENDS,
    FALSE_FAIL,
    PAIRS_NEEDED,
    are_independent,
    choice_uniform,
    draws_needed,
    is_uniform,
    needed_for_scales,
    needed_roughly,
    p_value,
    uniforms,
)
from paying import paid
from recording import Recorded, RecordedSeeded, joint_noises, measured_noises
from scipy import special, stats
from transcripts import SOLVED, rows_of

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine import theory
from hedgerow.engine.over_time import BlockSource, Series
from hedgerow.engine.practical.engine import build_practical_engine
from hedgerow.errors import HedgerowError
from hedgerow.privacy.events import COIN, Exponential, Gaussian, Laplace
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.session import Session
from hedgerow.textbook import mwem, oracles, pmw, small_db
from hedgerow.textbook import sparse_vector as sv

Noises = list[tuple[Laplace | Gaussian, np.ndarray]]
SOURCES = {"private": lambda seed: Recorded(), "seeded": RecordedSeeded}
both = pytest.mark.parametrize("made", SOURCES.values(), ids=list(SOURCES))
both_if_long = pytest.mark.parametrize(  # the same code but for the words, whose law is in test_laws_of_sources
    "made", [SOURCES["private"], pytest.param(RecordedSeeded, marks=pytest.mark.audit)], ids=list(SOURCES)
)

WIDE = hr.Universe.from_sizes({"a": 24, "b": 20})  # a pair has more cells than OpenDP is given
PURE, APPROXIMATE = hr.Budget(1.0, 0.0), hr.Budget(1.0, 1e-6)
COMING, COMING_PURE = (hr.Budget(1.0, delta, "add-remove") for delta in (1e-6, 0.0))
RICH = {"pure": hr.Budget(200.0, 0.0), "approximate": hr.Budget(200.0, 1e-6)}


@functools.cache
def table(rows: int = 200_000) -> HistogramSource:
    weights = np.outer(np.arange(1, 25), np.arange(20, 0, -1)) ** 2.0
    counts = np.floor(weights / weights.sum() * rows).astype(np.int64)
    counts[0, 0] += rows - counts.sum()
    return HistogramSource(WIDE, counts)


def opened(
    source: Noise, budget: hr.Budget, data: HistogramSource | None = None, **options
) -> tuple[Session, HistogramSource]:
    """As ``hr.open`` does it, with a source of our own."""
    data, account = data or table(), hr.Accountant(budget)
    given = {
        "workload": None,
        "queries": 1000,
        "beta": 0.05,
        "guard": 0.0,
        "reserve": 0.05,
        "certify": False,
        **options,
    }
    return Session(data, account, source, build_practical_engine(data, account, source, **given)), data


# What is published


def prefit(budget: hr.Budget, **options) -> Callable[[Noise], Noises]:
    def run(source: Noise) -> Noises:
        session, data = opened(source, budget, **options)
        return measured_noises(session._engine, data, session.ledger.entries())

    return run


SHARES = np.arange(480.0).reshape(24, 20) / 479
QUESTIONS = [hr.count(a=(3, 17)), hr.marginal("b"), hr.linear(("a", "b"), SHARES), hr.marginal("a", "b")]


def bought(budget: hr.Budget, rows: int) -> Callable[[Noise], Noises]:
    """``within=``: tables, counts, a query that is no count, and n where it is private."""

    def run(source: Noise) -> Noises:
        workload = [hr.marginal("b")]
        session, data = opened(source, budget, table(rows), workload=workload, reserve=0.95)
        before = len(session._engine.measurements)
        for question, within in itertools.product(QUESTIONS, (0.02, 0.01)):
            session.ask(question, within=within)
        return measured_noises(session._engine, data, session.ledger.entries())[before:]

    return run


FLAGS = hr.Universe({f"x{i}": hr.Flag() for i in range(4)})
POOL = [hr.count({f"x{i}": bool(k & 1), f"x{j}": bool(k & 2)}).on(FLAGS) for i, j in itertools.combinations(range(4), 2) for k in range(4)]  # fmt: skip
POOL += [hr.linear(("x0", "x1"), np.array([[0.1, 0.7], [0.25, 1.0]])).on(FLAGS)]


@functools.cache
def in_one_cell(rows: int) -> HistogramSource:
    """As far from uniform as can be: much is measured."""
    return HistogramSource(FLAGS, np.where(np.arange(16) == 5, rows, 0).reshape(FLAGS.shape))


def online(budget: hr.Budget) -> Callable[[Noise], Noises]:
    rows = 10**7
    config = pmw.configure(budget, cells=16, scale=float(rows), queries=100, beta=0.1, alpha=0.1)

    def run(source: Noise) -> Noises:
        data, account, found = in_one_cell(rows), hr.Accountant(budget), []
        mechanism = pmw.OnlinePMW(config, data, account, source)
        for query in POOL:
            answer = mechanism.ask(query)
            if answer.source == "measured":
                event = account.entries()[-1].event
                true = query.dot(data.marginal(query.attributes).astype(float))
                found.append((event, np.asarray(answer.measured_rows - round(true / event.grid) * event.grid)))
        assert found
        return found

    return run


def offline(budget: hr.Budget) -> Callable[[Noise], Noises]:
    config = mwem.configure(budget, cells=16, scale=1e7, queries=len(POOL), beta=0.1, alpha=0.1)

    def run(source: Noise) -> Noises:
        data, account = in_one_cell(10**7), hr.Accountant(budget)
        released = mwem.release(config, POOL, data, account, source)
        events = [e for e in account.events if isinstance(e, Laplace | Gaussian)]
        found = []
        for (query, measured), event in zip(released.measurements, events, strict=True):
            true = query.dot(data.marginal(query.attributes).astype(float))
            found.append((event, np.asarray(measured - round(true / event.grid) * event.grid)))
        return found

    return run


def numeric_sparse(measurement: Laplace | Gaussian) -> Callable[[Noise], Noises]:
    config = sv.SparseVector(100.0, sv.guard_round(1.0), rounds=50, measurement=measurement)

    def run(source: Noise) -> Noises:
        account, progress, found = hr.Accountant(hr.Budget(1e4, 1e-6)), sv.Progress(), []
        for value in range(10_000, 10_050):
            outcome, progress = sv.step(config, progress, float(value), account, source)
            found.append((measurement, np.asarray(outcome.measured - value)))
        return found

    return run


def rows_of_theory(budget: hr.Budget) -> Callable[[Noise], Noises]:
    def run(source: Noise) -> Noises:
        account, data = hr.Accountant(budget), in_one_cell(10**9)
        given = {"convex": [], "queries": 10, "beta": 0.05, "alpha": None, "trusted_losses": ()}
        engine = theory.build_theory_engine(data, account, source, **given)
        return [(account.entries()[0].event, np.asarray(engine.rows - data.rows))]

    return run


def over_time(budget: hr.Budget) -> Callable[[Noise], Noises]:
    """Every sum of the trees of some questions, less what their blocks hold."""

    def run(source: Noise) -> Noises:
        tables = [in_one_cell(1000 + i) for i in range(19)]
        columns, found = [BlockSource(data, hr.Accountant(budget)) for data in tables], []
        for query in POOL[:-1]:
            asked = hr.linear(query.attributes, query.table).over_time(span=8, share=0.04)
            for node in Series(asked, query, columns, source).draw_nodes():
                true = sum(query.dot(data.marginal(query.attributes)) for data in tables[node.first : node.last + 1])
                found.append((node.event, np.asarray(node.value - true)))
        return found

    return run


def output_oracle(source: Noise) -> Noises:
    """θ less the minimum on the data, which is the same for every draw: a mean, ½(θ − q)²."""
    budget, rows = hr.Budget(1.0, 1e-6), 10**6
    risk, over = hr.losses.Squared(target="x0").on(FLAGS), hr.Box(0.0, 1.0)
    oracle = oracles.OutputPerturbationOracle(1.0, 1.0, 1, 1.0)
    plan = oracle.plan(budget, budget.total / 10, rows, 0.05)
    counts = np.array([rows // 2, rows // 2])
    found = []
    for _ in range(20):
        theta = oracle.answer(plan, risk, over, counts, source, paid(plan.event), budget, rows)
        event, minimum, released = source.record.added[-1]
        assert np.array_equal(theta, released) and minimum == pytest.approx([0.5], abs=1e-3)
        found.append((event, theta - np.rint(minimum / event.grid) * event.grid))
    return found


PUBLISHED: dict[str, Callable[[Noise], Noises]] = {
    "prefit, marginals, pure": prefit(PURE),
    "prefit, marginals, rows come and go": prefit(COMING_PURE),
    "prefit, everything": prefit(APPROXIMATE, everything=True),
    "prefit, residuals": prefit(APPROXIMATE, workload=[hr.marginal("a", "b")]),
    "prefit, residuals, rows come and go": prefit(COMING, workload=[hr.marginal("a", "b")]),
    "within, pure": bought(RICH["pure"], 200_000),
    "within, approximate": bought(RICH["approximate"], 200_000),
    "within, rows come and go": bought(hr.Budget(200.0, 1e-6, "add-remove"), 200_000),
    "pmw, pure": online(PURE),
    "pmw, approximate": online(APPROXIMATE),
    "mwem, pure": offline(PURE),
    "mwem, approximate": offline(APPROXIMATE),
    "numeric sparse, Laplace": numeric_sparse(Laplace(1.0, 30.0)),
    "numeric sparse, Gaussian": numeric_sparse(Gaussian(1.0, 30.0)),
    "theory, n, pure": rows_of_theory(COMING_PURE),
    "theory, n, approximate": rows_of_theory(COMING),
    "oracle, output perturbation": output_oracle,
    "over time, pure": over_time(PURE),
    "over time, approximate": over_time(APPROXIMATE),
}


def pooled(run: Callable[[Noise], Noises], made: Callable[[int], Noise], most: int = 600) -> Noises:
    """Noises of as many runs as the coarse test needs."""
    found: Noises = []
    for seed in range(most):
        found += run(made(seed))
        sizes = {kind: sum(z.size for e, z in found if isinstance(e, kind)) for kind in (Laplace, Gaussian)}
        if all(size == 0 or size >= needed_roughly(kind) for kind, size in sizes.items()):
            return found
    raise AssertionError("too few draws")


def as_keys(noises: Noises) -> list[tuple[Laplace | Gaussian, tuple[int, ...], bytes]]:
    """Equal where events and numbers are; a 0 has no sign."""
    return [(event, z.shape, (np.asarray(z, dtype=float) + 0.0).tobytes()) for event, z in noises]


@both
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_values_are_the_truth_plus_exactly_the_drawn_noise(name, made) -> None:
    for seed in range(1 if name.startswith("over time") else 3):  # a draw of each block and level in one
        source = made(seed)
        found, drawn = as_keys(PUBLISHED[name](source)), as_keys(source.record.noises())
        assert found and set(found) <= set(drawn)
        assert not name.startswith(("prefit", "pmw", "mwem", "theory", "over time")) or len(found) == len(drawn)


@both
@pytest.mark.parametrize("budget", [APPROXIMATE, COMING], ids=["replace", "add-remove"])
def test_ranged_residuals_are_the_truth_and_the_noise_that_was_drawn_but_for_what_no_contrast_has(budget, made) -> None:
    """The contrasts of ranges add up to nothing along their attribute, and so does what is kept of the noise."""
    source = made(5)
    session, data = opened(source, budget)
    ranged = [m for m in session._engine.measurements if m.ranged]
    assert {m.attributes for m in ranged} == {("a",), ("b",), ("a", "b")}
    (entry,) = [entry for entry in session.ledger.entries() if "times" in entry.about]
    drawn = joint_noises(source, entry, {m.attributes: m.values.shape for m in ranged})
    for measurement in ranged:
        values, true = measurement.values, data.marginal(measurement.attributes)
        for axis, each in enumerate(measurement.contrasts):
            along = each.rows / np.sqrt(each.squares)[:, None]
            values, true = (np.moveaxis(np.tensordot(along, t, axes=(1, axis)), 0, axis) for t in (values, true))
        noise = drawn[measurement.attributes]
        for axis in range(noise.ndim):
            noise = noise - noise.mean(axis=axis, keepdims=True)
        assert values - true == pytest.approx(noise, abs=1e-6 * measurement.event.sigma + 2 * measurement.event.grid)


LONG = {"pmw, pure", "mwem, pure", "theory, n, pure", "theory, n, approximate", "numeric sparse, Laplace"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.audit) if name in LONG else name for name in PUBLISHED]
)
def test_published_values_minus_the_truth_have_the_law_that_was_billed(name) -> None:
    """Power against half and double the scale, of each source and each kind of noise."""
    rng = np.random.default_rng(1)
    for made in SOURCES.values():
        found = pooled(PUBLISHED[name], made)
        for kind in {type(event) for event, _ in found}:
            u = np.concatenate([uniforms(z, e, rng) for e, z in found if isinstance(e, kind)])
            assert is_uniform(u, COARSE)


@pytest.mark.parametrize("name", ["prefit, residuals", "within, pure", "numeric sparse, Gaussian"])
def test_a_mechanism_that_halves_or_doubles_its_noise_is_seen(name) -> None:
    rng, found = np.random.default_rng(2), pooled(PUBLISHED[name], RecordedSeeded)
    kind = type(found[0][0])
    for times in (0.5, 2.0):
        scaled = [(e, np.rint(times * z / e.grid) * e.grid) for e, z in found if isinstance(e, kind)]
        assert not is_uniform(np.concatenate([uniforms(z, e, rng) for e, z in scaled]), COARSE)


@both
def test_noise_of_one_release_tells_nothing_of_the_next_or_of_another_run(made) -> None:
    """Pairs of cells, of steps of one session, and of runs; each of them of more than the pairs that are needed."""
    rng = np.random.default_rng(3)
    runs = [
        [uniforms(z, e, rng) for e, z in PUBLISHED["prefit, marginals, pure"](made(seed)) if z.size > 250]
        for seed in range(3)
    ]
    assert all(len(run) >= 2 for run in runs)
    first, second, third = ([u[: min(map(len, run))] for u in run] for run in runs)
    steps = [np.concatenate(x) for x in zip(*[(u, v) for run in runs for u, v in itertools.pairwise(run)], strict=True)]
    cells = [np.concatenate([u[k : len(u) - 1 + k] for run in runs for u in run]) for k in (0, 1)]
    across = [np.concatenate([first[0], second[0], first[1]]), np.concatenate([second[0], third[0], second[1]])]
    for pair in (steps, cells, across):
        assert pair[0].size >= PAIRS_NEEDED
        assert are_independent(*pair)


# The guard


def sparse_vector(guard, **options) -> Callable[[Noise], None]:
    """Rounds of a sparse vector, opened and asked about up to 10 values that are low, so that most rounds take many: see the source's record."""
    config = sv.SparseVector(0.0, guard, rounds=10**6, **options)
    low = -math.floor(2 * (guard.threshold_scale + guard.query_scale))

    def run(source: Noise) -> None:
        account = hr.Accountant(hr.Budget(1e9, 0.0))
        while len(source.record.thresholds) < needed_roughly(Laplace):
            progress, _ = sv.ready(config, sv.Progress(), account, source)
            for _ in range(10):
                if progress.is_open:
                    _, progress = sv.step(config, progress, low, account, source)

    return run


def guard_of_practical(source: Noise) -> None:
    session, _ = opened(source, hr.Budget(3.0, 1e-6), table(10**6), guard=0.2, workload=[hr.marginal("b")])
    for a, b in itertools.product(range(24), range(0, 20, 4)):
        session.ask(hr.count(a=(0, a), b=(0, b)))


GUARDS: dict[str, Callable[[Noise], object]] = {
    "sparse vector": sparse_vector(sv.guard_round(0.5)),
    "sparse vector, gap": sparse_vector(sv.guard_round(0.05), gap=True),
    "sparse vector, wide": sparse_vector(sv.guard_round(1e-8, 1.0, 7.0)),
    "practical": guard_of_practical,
    "pmw": online(APPROXIMATE),
}


def in_order(drawn: list[tuple[Laplace, float]], rng: np.random.Generator) -> list[float]:
    """Their uniforms, worked out law by law."""
    u = np.empty(len(drawn))
    for law in {law for law, _ in drawn}:
        places = [i for i, (other, _) in enumerate(drawn) if other == law]
        u[places] = uniforms(np.array([drawn[i][1] for i in places]), law, rng)
    return u.tolist()


@pytest.mark.parametrize("name", GUARDS)
def test_thresholds_and_compared_values_have_the_noise_that_the_round_was_billed_for(name) -> None:
    """τ of Δ/ε₁ and ν of 2Δ/ε₂, as the round uses them. Power against half and double of τ's scale and, for the sparse
    vector itself, against 0.8 times ν's: τ's scale in place of it is 0.79 of it.
    """
    rng, alone = np.random.default_rng(4), name.startswith("sparse vector")
    enough = (needed_for_scales if alone else needed_roughly)(Laplace)
    for made in SOURCES.values():
        thresholds: list[float] = []
        compared: list[float] = []
        for seed in range(60):
            source = made(seed)
            GUARDS[name](source)
            thresholds += in_order(source.record.thresholds, rng)
            compared += in_order(source.record.compared, rng)
            if len(compared) >= enough:
                break
        compared = compared[:enough]  # a number fixed before, for a round ends by what was drawn
        assert is_uniform(np.array(compared), ENDS if alone else COARSE)
        assert not alone or is_uniform(np.array(thresholds), COARSE)  # the others open few rounds
        assert not alone or are_independent(np.array(compared[:-1]), np.array(compared[1:]))


def difference_above(t: np.ndarray, first: float, second: float) -> np.ndarray:
    """P[X − Y ≥ t] of two Laplaces of these scales, on a fine grid."""
    t = np.asarray(t, dtype=float)
    tail = (first**2 * np.exp(-np.abs(t) / first) - second**2 * np.exp(-np.abs(t) / second)) / (
        2 * (first**2 - second**2)
    )
    return np.where(t >= 0, tail, 1 - tail)


@both_if_long
def test_the_guard_says_above_as_often_as_its_two_noises_say(made) -> None:
    """By its answers alone. Power against either noise of half its scale."""
    guard, source, account = sv.guard_round(0.5), made(1), hr.Accountant(hr.Budget(1e9, 0.0))
    τ, ν = guard.threshold_scale, guard.query_scale
    offsets = np.array([-1.0, 2.0]) * (τ + ν)
    right = difference_above(-offsets, ν, τ)
    both_ways = [np.array([p, 1 - p]) for p in right]
    wrongs = [(ν / 2, τ), (ν, τ / 2)]
    count = max(
        min(
            draws_needed(r, np.array([p, 1 - p]))
            for r, p in zip(both_ways, difference_above(-offsets, *w), strict=True)
        )
        for w in wrongs
    )
    config = sv.SparseVector(1000.0, guard, rounds=1)
    for offset, r in zip(offsets, both_ways, strict=True):
        above = 0
        for _ in range(count):
            above += sv.step(config, sv.Progress(), 1000.0 + offset, account, source)[0].above
        assert p_value(np.array([above, count - above]), r) > FALSE_FAIL


@pytest.mark.audit
@both
def test_the_gap_that_is_released_is_the_difference_and_both_noises(made) -> None:
    """A value far above: gap − (value − T) = ν − τ. Power against either noise of half its scale."""
    guard, source, account = sv.guard_round(0.02), made(2), hr.Accountant(hr.Budget(1e9, 0.0))
    config = sv.SparseVector(0.0, guard, rounds=1, gap=True)
    τ, ν = guard.threshold_scale, guard.query_scale
    ends = np.array([-2.0, -1.0, -0.4, 0.4, 1.0, 2.0]) * (τ + ν)

    def bins(*scales: float) -> np.ndarray:
        return np.diff(np.concatenate([[0.0], 1 - difference_above(ends, *scales), [1.0]]))

    right = bins(ν, τ)
    count = max(draws_needed(right, bins(*wrong)) for wrong in ((ν / 2, τ), (ν, τ / 2)))
    far = 2.0**30
    gaps = [sv.step(config, sv.Progress(), far, account, source)[0].gap - far for _ in range(count)]
    counts = np.bincount(np.searchsorted(ends, np.array(gaps) - 0.5), minlength=7)
    assert p_value(counts, right) > FALSE_FAIL


# Choices


@both_if_long
def test_the_small_database_is_chosen_with_the_probabilities_of_its_distances(made) -> None:
    """All databases of two rows over three cells, with scores computed here and ε as billed. Power against 0.5 ε and 2 ε."""
    universe = hr.Universe.from_sizes({"a": 3})
    data = HistogramSource(universe, np.array([30, 12, 6]))
    queries = [hr.count(a=i).on(universe) for i in range(3)]
    m, n, epsilon = 2, 48, 0.25
    candidates = [c for c in itertools.product(range(3), repeat=3) if sum(c) == m]
    truth = np.array([30, 12, 6])
    scores = [-max(abs(m * truth[i] - n * c[i]) for i in range(3)) / m for c in candidates]

    def law(times: float) -> np.ndarray:
        return special.softmax(np.array(scores) * epsilon / (2 * times))

    right = law(1.0)
    kept = right > 0.004
    lump = lambda p: np.append(p[kept], p[~kept].sum()) if not kept.all() else p  # noqa: E731
    if not kept.all() and right[~kept].sum() < 0.004:
        raise AssertionError("choose an epsilon that leaves no thin bins")
    count = max(draws_needed(lump(right), lump(law(times))) for times in (0.5, 2.0))
    source, account, seen = made(3), hr.Accountant(hr.Budget(1e9, 0.0)), np.zeros(len(candidates))
    for _ in range(count):
        chosen = small_db.release(queries, data, account, source, size=m, epsilon=epsilon).counts
        seen[candidates.index(tuple(chosen.ravel().tolist()))] += 1
    assert p_value(lump(seen), lump(right)) > FALSE_FAIL


@both_if_long
def test_mwem_asks_first_what_is_worst_with_the_probabilities_of_its_scores(made) -> None:
    """The first choice: |N − n·q(uniform)| for every query, by hand. Power against 0.5 and 2 times the scale."""
    counts = np.array([62, 26, 12])
    universe = hr.Universe.from_sizes({"a": 3})
    data, queries = HistogramSource(universe, counts), [hr.count(a=i).on(universe) for i in range(3)]
    scores = np.abs(counts - np.array([33, 33, 33]))  # 100/3, to the nearest row
    choice = Exponential(1.0, 0.16)
    config = mwem.MWEMConfig(100.0, 0.3, 0.1, "hoeffding", 1, choice, Laplace(1.0, 5.0))

    def law(times: float) -> np.ndarray:
        return special.softmax(scores * choice.epsilon / (2 * choice.sensitivity * times))

    count = max(draws_needed(law(1.0), law(times)) for times in (0.5, 2.0))
    source, account, seen = made(4), hr.Accountant(hr.Budget(1e9, 0.0)), np.zeros(3)
    for _ in range(count):
        ((query, _),) = mwem.release(config, queries, data, account, source).measurements
        seen[[q.key for q in queries].index(query.key)] += 1
    assert p_value(seen, law(1.0)) > FALSE_FAIL


CHOOSERS: dict[str, Callable[[Noise], object]] = {
    "prefit": lambda source: opened(source, PURE, HistogramSource(FLAGS, in_one_cell(900).marginal(FLAGS.names)), guard=0.0, reserve=0.0),
    "frank_wolfe": lambda source: solved("frank_wolfe", source, PURE),
    "lasso": lambda source: hr.erm.lasso(rows_of(30)[0], rows_of(30)[2], budget=PURE, noise=source),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOOSERS)
def test_every_choice_has_the_law_of_its_scores_and_its_event(name) -> None:
    rng, u = np.random.default_rng(5), []
    for seed, made in itertools.product(range(60), SOURCES.values()):
        source = made(seed)
        CHOOSERS[name](source)
        assert source.record.chosen
        u += [choice_uniform(scores, chosen, event, rng) for event, scores, chosen in source.record.chosen]
        if len(u) >= 200:
            break
    assert is_uniform(np.array(u), COARSE)


# Solvers, whose noise is used and not published


def solved(solver: str, source: Noise, budget: hr.Budget) -> list[hr.erm.Result]:
    """Every problem of the transcripts that the budget allows."""
    X, classes, values = rows_of()
    found = []
    for loss, over, options in SOLVED[solver].values():
        y = classes if loss.labels == "binary" else values
        try:
            found.append(getattr(hr.erm, solver)(X, y, loss=loss, over=over, budget=budget, noise=source, **options))
        except HedgerowError:
            continue
    assert found
    return found


SOLVERS = [solver for solver in SOLVED if solver != "frank_wolfe"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solvers_noise_has_the_law_billed(solver) -> None:
    """Power against half and double the scale."""
    rng = np.random.default_rng(6)
    for made in SOURCES.values():
        u: dict[type, list[np.ndarray]] = {Laplace: [], Gaussian: []}
        for seed in range(120):
            source = made(seed)
            solved(solver, source, APPROXIMATE)
            for event, z in source.record.noises():
                u[type(event)].append(uniforms(z, event, rng))
            if all(not x or sum(map(len, x)) >= needed_roughly(kind) for kind, x in u.items()):
                break
        assert any(u.values())
        for found in u.values():
            assert not found or is_uniform(np.concatenate(found), COARSE)


class Shifted(Seeded):
    """The noise of a seed, with one draw far off or a choice turned to another candidate."""

    def __init__(self, seed: int, draw: int | None = None) -> None:
        super().__init__(seed)
        self.left, self.count = draw, 0

    def _is_it(self) -> bool:
        self.count += 1
        return self.left == self.count - 1

    def _noisy(self, value, event):
        noisy = super()._noisy(value, event)
        spread = event.scale if isinstance(event, Laplace) else event.sigma
        if self._is_it():
            return noisy + np.sign(noisy - value + 1e-300) * np.rint(2 * spread / event.grid) * event.grid
        return noisy

    def choose(self, scores, receipt):
        chosen = super().choose(scores, receipt)
        return (chosen + 1) % len(scores) if self._is_it() else chosen


@pytest.mark.parametrize("solver", [*SOLVED, "lasso"])
def test_every_draw_of_a_solver_reaches_its_answer(solver) -> None:
    """Two deviations more in any one draw, or another choice, and θ is another."""
    X, classes, values = rows_of() if solver != "lasso" else rows_of(30)

    def theta(source: Noise) -> np.ndarray:
        if solver == "lasso":
            return hr.erm.lasso(X, values, budget=APPROXIMATE, noise=source).theta
        loss, over, options = next(iter(SOLVED[solver].values()))
        y = classes if loss.labels == "binary" else values
        return getattr(hr.erm, solver)(
            X, y, loss=loss, over=over, budget=hr.Budget(8.0, 1e-6), noise=source, **options
        ).theta

    plain = Shifted(7)
    usual = theta(plain)
    assert np.array_equal(theta(Shifted(7)), usual)
    draws = sorted({*range(min(plain.count, 6)), plain.count // 2, plain.count - 1})
    for draw in draws:
        assert not np.array_equal(theta(Shifted(7, draw)), usual), f"draw {draw} of {plain.count} is not used"


@both
def test_sgd_sums_gradients_over_the_secret_sample_and_no_other_rows(made) -> None:
    """At the start θ = 0 the sum over rows of x = 1 and y = 1 is −½ for each row of the sample, for the logistic loss."""
    n, sizes = 400, []
    for seed in range(4):
        source = made(seed)
        hr.erm.noisy_sgd(
            np.ones((n, 1)), np.ones(n, dtype=int), loss=hr.losses.Logistic(), over=hr.L2Ball(1.0),
            budget=APPROXIMATE, batch=40, epochs=3.0, noise=source,
        )  # fmt: skip
        record = source.record
        assert len(record.sampled) == len(record.added) > 20
        sample, sums = record.sampled[0], record.added[0][1]
        assert sums == pytest.approx([-0.5 * sample[2].size])
        sizes += [rows.size for _, _, rows in record.sampled]
        assert all(event.heads == math.ceil(0.1 * COIN) and total == n for event, total, _ in record.sampled)
    inside, total = sum(sizes), n * len(sizes)
    assert stats.binom.cdf(inside, total, 0.1) > FALSE_FAIL and stats.binom.sf(inside - 1, total, 0.1) > FALSE_FAIL
    for times in (0.8, 1.25):  # such a rate would be seen
        assert (
            min(stats.binom.sf(total * 0.1 * times, total, 0.1), stats.binom.cdf(total * 0.1 * times, total, 0.1))
            < FALSE_FAIL
        )


# Convex oracles and mechanisms

ROOT = math.sqrt(3)
BITS = hr.Universe.from_sizes({f"x{i}": 2 for i in range(4)})
FAMILIES = {
    "descent": (oracles.NoisyGradientDescentOracle(ROOT, 2.0, 3), hr.losses.Logistic(), 10**4),
    "regularised": (oracles.RegularizedOutputPerturbationOracle(ROOT, 1.0, 3, 2 * ROOT), hr.losses.Huber(1.0), 10**6),
    "output": (oracles.OutputPerturbationOracle(5.25, 0.5, 3, 10.5), hr.losses.Squared(ridge=0.5), 10**6),
}


def asked_of_oracle(family: str, source: Noise) -> np.ndarray:
    oracle, loss, rows = FAMILIES[family]
    risk = dataclasses.replace(loss, target="x0", features=("x1", "x2")).on(BITS)
    counts = np.arange(8).reshape(2, 2, 2) + 1
    counts[0, 0, 0] += rows - counts.sum()
    error = {"descent": 0.5}.get(family, 0.0)
    plan = oracle.plan(APPROXIMATE, APPROXIMATE.total / 4, rows, 0.05, error)
    return oracle.answer(plan, risk, hr.L2Ball(1.0), counts, source, paid(plan.event), APPROXIMATE, rows)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_oracles_noise_has_the_law_billed_and_reaches_theta(family) -> None:
    rng = np.random.default_rng(7)
    for made in SOURCES.values():
        u: list[np.ndarray] = []
        for seed in range(200):
            source = made(seed)
            theta = asked_of_oracle(family, source)
            u += [uniforms(z, e, rng) for e, z in source.record.noises()]
            if family == "regularised":
                assert np.array_equal(theta, source.record.added[-1][2])
            if family == "output":
                assert np.array_equal(theta, hr.L2Ball(1.0).project(source.record.added[-1][2]))
            if sum(map(len, u)) >= needed_roughly(Gaussian):
                break
        assert is_uniform(np.concatenate(u), COARSE)
    plain = Shifted(8)
    usual = asked_of_oracle(family, plain)
    last = plain.count - 2 if family == "descent" else plain.count - 1  # the last step of the average is not in it
    for draw in {0, plain.count // 2, last}:
        assert not np.array_equal(asked_of_oracle(family, Shifted(8, draw)), usual)
