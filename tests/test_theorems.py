"""The accuracy theorems, tested against adversaries.

Each theorem promises success with probability at least 1 − β. With β = 0.1 games are played until they tell: a mechanism
that keeps the promise fails the test with probability at most 10⁻⁶, and one that breaks it three times as often as allowed
(rate 0.3) passes with probability at most 10⁻³ (``sequential``).
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from sequential import is_kept

from hedgerow.data import HistogramSource
from hedgerow.data.counting import everywhere
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.query.linear import Linear
from hedgerow.query.workloads import conjunctions
from hedgerow.research import games
from hedgerow.textbook import bounds, mwem, pmw, sparse_vector
from hedgerow.textbook import multiplicative_weights as experts
from hedgerow.universe.universe import Universe

BETA = 0.1
UNIVERSE = Universe.from_sizes({"a": 32, "b": 32})  # 2^10 cells
BITS = Universe.from_sizes({f"x{i}": 2 for i in range(10)})  # 2^10 cells
PURE, APPROXIMATE = Budget(1.0, 0.0), Budget(1.0, 1e-9)
QUERIES = 60


def concentrated(rows: int, rng: np.random.Generator, cells: int = 1024) -> np.ndarray:
    """Data far from uniform, on 1, 4 or 32 cells: KL(D ‖ uniform) is ln|X| less the logarithm of that."""
    counts = np.zeros(cells, np.int64)
    support = rng.choice(cells, size=rng.choice([1, 4, 32]), replace=False)
    counts[support] = rows // len(support)
    counts[support[0]] += rows - counts.sum()
    return counts


# Theorem 4.10


@pytest.mark.parametrize("step", ["paper", "hoeffding"])
@pytest.mark.parametrize(("cells", "alpha"), [(2**10, 0.05), (2**10, 0.2), (2**14, 0.1)])
def test_theorem_4_10_holds_against_an_adversary_that_makes_the_smallest_mistakes(step, cells, alpha):
    truth = np.zeros(cells)
    truth[7] = 1.0
    log_weights, updates = np.zeros(cells), 0
    bound, eta = experts.update_bound(alpha, cells, step), experts.step_size(alpha, step)
    while True:
        difference = truth - experts.normalize(log_weights)
        order = np.argsort(-difference, kind="stable")
        gaps = np.cumsum(difference[order])  # of the first j cells: from the largest gap there is down to 0
        wrong = np.flatnonzero(gaps > alpha)
        if not wrong.size:
            break
        query = np.zeros(cells)
        query[order[: wrong[gaps[wrong].argmin()] + 1]] = 1.0
        # the measured value is off by almost α, as far towards the hypothesis as the theorem allows
        measured, believed = query @ truth - 0.999 * alpha, query @ experts.normalize(log_weights)
        log_weights += experts.log_factor(query, overshoots=bool(measured < believed), eta=eta)
        updates += 1
        assert updates <= bound
    assert updates > bound / 4  # the adversary is a strong one: the bound cannot be much too large


# Theorems 4.14 and 4.15


def pmw_failures(
    config: pmw.PMWConfig,
    budget: Budget,
    adversary: Callable[[np.ndarray, pmw.PMWConfig, np.random.Generator], games.Analyst],
    noise_of: Callable[[int], Noise] = Seeded,
) -> Iterator[bool]:
    """Yield, game after game, True if an answer is off by more than 3α or if there are more updates than Theorem 4.10 allows."""
    for seed in itertools.count():
        rng = np.random.default_rng([seed, 414])
        mechanisms: list[pmw.OnlinePMW] = []

        def start(data, seed=seed, mechanisms=mechanisms):
            mechanisms.append(pmw.OnlinePMW(config, data, Accountant(budget), noise_of(seed)))
            return mechanisms[0].ask

        analyst = adversary(concentrated(int(config.scale), rng), config, rng)
        transcript = games.accuracy_game(analyst, start, config.queries, games.linear_error)
        assert mechanisms[0].updates <= config.rounds
        few_updates = mechanisms[0].updates <= experts.update_bound(config.alpha, config.cells, config.step)
        yield not (transcript.accurate(config.error) and few_updates)


def near_threshold(counts, config, rng):
    """Asks at gaps where the guard is least sure, and at the largest gap there is."""
    a = config.alpha
    return games.NearGap(UNIVERSE, counts, config, targets=(2 * a, 1.0, 2.5 * a, 1.5 * a, 2.9 * a, 1.1 * a))


POOL = [
    Linear.from_table(UNIVERSE, UNIVERSE.names, table)
    for table in np.random.default_rng(0).integers(0, 2, (200, 32, 32))
]


def worst_of_pool(counts, config, rng):
    return games.WorstOfPool(UNIVERSE, counts, config, POOL)


@pytest.mark.parametrize(
    ("budget", "adversary"),
    [
        pytest.param(PURE, near_threshold, id="theorem 4.14"),
        pytest.param(APPROXIMATE, worst_of_pool, id="theorem 4.15"),
        pytest.param(PURE, worst_of_pool, id="theorem 4.14 and another adversary", marks=pytest.mark.audit),
        pytest.param(APPROXIMATE, near_threshold, id="theorem 4.15 and another adversary", marks=pytest.mark.audit),
    ],
)
def test_online_pmw_keeps_the_books_promise_at_the_books_number_of_rows(budget, adversary):
    alpha = 0.15
    rows = math.ceil(bounds.pmw_rows(alpha, BETA, budget.epsilon, budget.delta, QUERIES, UNIVERSE.size))
    config = pmw.configure(
        budget, cells=UNIVERSE.size, scale=rows, queries=QUERIES, beta=BETA, alpha=alpha, step="paper"
    )
    assert is_kept(pmw_failures(config, budget, adversary), BETA, 3 * BETA)


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_online_pmw_keeps_the_promise_at_its_own_smaller_number_of_rows(budget):
    rows = math.ceil(pmw.rows_needed(budget, 0.1, BETA, QUERIES, UNIVERSE.size))
    config = pmw.configure(budget, cells=UNIVERSE.size, scale=rows, queries=QUERIES, beta=BETA)
    assert config.alpha == pytest.approx(0.1, rel=1e-3)
    assert is_kept(pmw_failures(config, budget, near_threshold), BETA, 3 * BETA)


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_the_promise_is_kept_with_the_operating_systems_randomness(budget):
    rows = math.ceil(pmw.rows_needed(budget, 0.15, 1e-9, QUERIES, UNIVERSE.size))
    config = pmw.configure(budget, cells=UNIVERSE.size, scale=rows, queries=QUERIES, beta=1e-9)
    games_played = pmw_failures(config, budget, near_threshold, lambda seed: Noise())
    assert not any(itertools.islice(games_played, 2))


@pytest.mark.audit
@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_the_game_sees_a_mechanism_with_a_tenth_of_the_rows_fail(budget):
    rows = math.ceil(pmw.rows_needed(budget, 0.15, BETA, QUERIES, UNIVERSE.size))
    config = pmw.configure(budget, cells=UNIVERSE.size, scale=rows, queries=QUERIES, beta=BETA)
    starved = dataclasses.replace(config, scale=rows // 10)  # the same noise on fewer rows
    assert not is_kept(pmw_failures(starved, budget, near_threshold), BETA, 3 * BETA)


@pytest.mark.parametrize("step", ["paper", "hoeffding"])
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("cells", [2, 2**10, 10**30])
@pytest.mark.parametrize("queries", [1, 1000, 10**12])
def test_the_calibrated_noise_never_needs_more_rows_than_the_theorems_ask_for(step, alpha, cells, queries):
    for epsilon, delta in [(0.01, 0.0), (1.0, 0.0), (0.1, 1e-6), (1.0, 1e-9), (8.0, 1e-6), (1.0, 1e-2)]:
        budget = Budget(epsilon, delta)
        ours = pmw.rows_needed(budget, alpha, BETA, queries, cells, step)
        assert ours <= bounds.pmw_rows(alpha, BETA, epsilon, delta, queries, cells)
        ours = mwem.rows_needed(budget, alpha, BETA, queries, cells, step)
        assert ours <= bounds.mwem_rows(alpha, BETA, epsilon, delta, queries, cells)


# Theorem 12.6

WORKLOAD = [q.on(BITS) for q in conjunctions(3).on(BITS)]  # 175 queries
EVERYWHERE = np.stack([everywhere(BITS, q) for q in WORKLOAD])
HARD_CELLS = [1023, 0, 682]  # all ones, all zeros, alternating: far from uniform on every conjunction


def mwem_failures(config: mwem.MWEMConfig, budget: Budget, noise_of: Callable[[int], Noise] = Seeded) -> Iterator[bool]:
    for seed in itertools.count():
        counts = concentrated(int(config.scale), np.random.default_rng([seed, 126]))
        if seed % 2:  # an adversary that knows the workload
            counts = np.roll(np.eye(1, 1024, dtype=np.int64)[0], HARD_CELLS[seed % 3]) * int(config.scale)
        released = mwem.release(config, WORKLOAD, HistogramSource(BITS, counts), Accountant(budget), noise_of(seed))
        assert released.updates <= config.rounds
        learned = released.hypothesis.marginal(BITS.names).reshape(-1)
        worst = np.abs(EVERYWHERE @ (counts / config.scale - learned)).max()
        yield not (released.stopped and worst <= config.error)


@pytest.mark.audit
@pytest.mark.parametrize(
    ("budget", "step"),
    [
        pytest.param(PURE, "paper", id="pure"),
        pytest.param(APPROXIMATE, "hoeffding", id="approximate"),
        pytest.param(PURE, "hoeffding", id="pure and another step", marks=pytest.mark.audit),
        pytest.param(APPROXIMATE, "paper", id="approximate and another step", marks=pytest.mark.audit),
    ],
)
def test_theorem_12_6_holds_at_the_number_of_rows_with_our_constants(budget, step):
    alpha = 0.2
    rows = math.ceil(bounds.mwem_rows(alpha, BETA, budget.epsilon, budget.delta, len(WORKLOAD), BITS.size))
    config = mwem.configure(
        budget, cells=BITS.size, scale=rows, queries=len(WORKLOAD), beta=BETA, alpha=alpha, step=step
    )
    assert is_kept(mwem_failures(config, budget), BETA, 3 * BETA)


@pytest.mark.audit
def test_offline_release_keeps_the_promise_at_its_own_smaller_number_of_rows():
    rows = math.ceil(mwem.rows_needed(APPROXIMATE, 0.05, BETA, len(WORKLOAD), BITS.size))
    config = mwem.configure(APPROXIMATE, cells=BITS.size, scale=rows, queries=len(WORKLOAD), beta=BETA)
    assert is_kept(mwem_failures(config, APPROXIMATE), BETA, 3 * BETA)
    assert not next(mwem_failures(config, APPROXIMATE, lambda seed: Noise()))


@pytest.mark.audit
def test_the_harness_sees_an_offline_release_with_a_tenth_of_the_rows_fail():
    rows = math.ceil(mwem.rows_needed(APPROXIMATE, 0.05, BETA, len(WORKLOAD), BITS.size))
    config = mwem.configure(APPROXIMATE, cells=BITS.size, scale=rows, queries=len(WORKLOAD), beta=BETA)
    starved = dataclasses.replace(config, scale=rows // 10)
    assert not is_kept(mwem_failures(starved, APPROXIMATE), BETA, 3 * BETA)


# Ullman, Theorem 3.1

TOPS, ASKED = 20, 500


def threshold_failures(rows: float) -> Iterator[bool]:
    """Games of 500 threshold queries, 3-sensitive in rows, with values at the very edges of the theorem's promise."""
    alpha = 0.1 * rows
    for seed in itertools.count():
        rng = np.random.default_rng([seed, 31])
        config, _ = sparse_vector.threshold_game_config(
            Amount.share_of(APPROXIMATE),
            threshold=round(0.75 * alpha),
            rounds=TOPS,
            queries=ASKED,
            beta=BETA,
            sensitivity=3.0,
        )
        accountant, noise, progress = Accountant(APPROXIMATE), Seeded(seed), sparse_vector.Progress()

        def above(value):
            nonlocal progress
            outcome, progress = sparse_vector.step(config, progress, value, accountant, noise)  # noqa: B023
            return outcome.above

        def adversary(past):
            tops = sum(turn.above for turn in past)
            if tops < TOPS - 1 and rng.random() < 0.1:  # noqa: B023
                return math.ceil(alpha)
            return math.floor(alpha / 2)

        yield bool(games.threshold_game(adversary, above, ASKED).wrong(alpha))


def test_ullmans_theorem_3_1_holds_at_its_number_of_rows_and_is_seen_to_fail_at_a_fiftieth():
    rows = bounds.threshold_game_rows(0.1, BETA, APPROXIMATE.epsilon, APPROXIMATE.delta, ASKED, TOPS)
    assert is_kept(threshold_failures(rows), BETA, 3 * BETA)
    assert not is_kept(threshold_failures(rows / 50), BETA, 3 * BETA)
