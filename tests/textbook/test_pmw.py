import dataclasses

import numpy as np
import pytest

from hedgerow.data import HistogramSource
from hedgerow.data.counting import everywhere
from hedgerow.errors import BudgetExceeded, InvalidInput, TooLarge
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.query.linear import Linear
from hedgerow.research import games
from hedgerow.textbook import bounds, pmw
from hedgerow.textbook import multiplicative_weights as experts
from hedgerow.universe.universe import Universe

UNIVERSE = Universe.from_sizes({"a": 4, "b": 3, "c": 2})
N = 10**6
PURE, APPROXIMATE = Budget(1.0, 0.0), Budget(1.0, 1e-9)


def configured(budget=APPROXIMATE, **change):
    given = {"cells": UNIVERSE.size, "scale": N, "queries": 200, "beta": 0.05, "alpha": 0.05} | change
    return pmw.configure(budget, **given)


def skewed() -> HistogramSource:
    counts = np.zeros(UNIVERSE.size, np.int64)
    counts[5] = N
    return HistogramSource(UNIVERSE, counts)


def started(budget=APPROXIMATE, data=None, noise=None, **change):
    accountant = Accountant(budget)
    return pmw.OnlinePMW(configured(budget, **change), data or skewed(), accountant, noise or Seeded(0)), accountant


def random_count(rng, names=("a", "b", "c")) -> Linear:
    return Linear.from_table(UNIVERSE, names, rng.integers(0, 2, UNIVERSE.sizes(names)))


@pytest.mark.parametrize("step", ["paper", "hoeffding"])
@pytest.mark.parametrize("budget", [PURE, APPROXIMATE, Budget(0.3, 1e-6, "add-remove")])
def test_all_rounds_together_cost_the_budget_and_no_more(budget, step):
    config = configured(budget, step=step, scale=10**8)
    total = config.rounds * (budget.cost(config.guard) + budget.cost(config.measurement))
    assert total <= budget.total * (1 + 1e-12)
    assert total == pytest.approx(budget.total, rel=0.01)
    accountant = Accountant(budget)
    for _ in range(config.rounds):
        accountant.charge(config.guard)
        accountant.charge(config.measurement)


def test_measurements_are_laplace_in_pure_privacy_and_gaussian_otherwise():
    assert isinstance(configured(PURE).measurement, Laplace)
    assert isinstance(configured(APPROXIMATE).measurement, Gaussian)


def test_without_an_alpha_the_smallest_that_the_rows_guarantee_is_taken():
    config = configured(alpha=None)
    needed = lambda a: pmw.rows_needed(APPROXIMATE, a, 0.05, 200, UNIVERSE.size)  # noqa: E731
    assert needed(config.alpha) <= N < needed(config.alpha * 0.999)
    assert config.alpha < bounds.pmw_alpha(N, 0.05, 1.0, 1e-9, 200, UNIVERSE.size)


def test_the_noise_stays_within_the_rows_that_the_theorem_gives_it():
    config = configured()
    assert config.threshold == round(2 * 0.05 * N)
    assert config.error == pytest.approx(0.15)
    assert config.rounds == experts.update_bound(0.05, UNIVERSE.size, "hoeffding") + 1


def test_too_few_rows_for_an_alpha_are_refused_with_the_number_needed():
    with pytest.raises(
        InvalidInput, match=r"rows must be at least \d+ for alpha = 0.05. Found 1000, for which alpha can be 0\."
    ):
        configured(scale=1000)
    with pytest.raises(InvalidInput, match=r"rows must be at least \d+ for alpha = 0.3. Found 50. Use more rows"):
        configured(scale=50, alpha=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": 0}, "rows must be at least 1. Found 0"),
        ({"cells": 1}, "at least 2 cells"),
        ({"queries": 0}, "queries must be a whole number"),
        ({"beta": 0.0}, "beta must be between 0 and 1"),
        ({"alpha": 1.5}, "alpha must be between 0 and 1"),
        ({"step": "big"}, "step must be 'paper' or 'hoeffding'"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(change, message):
    with pytest.raises(InvalidInput, match=message):
        configured(**change)


def test_good_answers_of_the_hypothesis_are_free_within_an_open_round():
    uniform = HistogramSource(UNIVERSE, np.full(UNIVERSE.size, N // UNIVERSE.size))
    mechanism, accountant = started(data=uniform)
    rng = np.random.default_rng(0)
    answers = [mechanism.ask(random_count(rng)) for _ in range(100)]
    assert {answer.source for answer in answers} == {"hypothesis"}
    assert answers[0].cost == accountant.spent == APPROXIMATE.cost(mechanism.config.guard)
    assert all(answer.cost == 0 for answer in answers[1:])
    assert mechanism.updates == 0


def test_errors_of_the_hypothesis_are_measured_and_learned():
    mechanism, accountant = started()
    query = Linear.from_table(UNIVERSE, ("a",), [1.0, 0.0, 0.0, 0.0])  # cell 5 has a = 0
    first = mechanism.ask(query)
    assert first.source == "measured"
    assert first.value == pytest.approx(1.0, abs=mechanism.config.alpha)
    assert first.measured_rows == pytest.approx(N, abs=mechanism.config.alpha * N)
    assert first.cost == pytest.approx(accountant.spent)
    assert mechanism.hypothesis.answer(query) > 0.25
    while (answer := mechanism.ask(query)).source == "measured":
        pass
    assert answer.value == pytest.approx(1.0, abs=mechanism.config.error)


@pytest.mark.parametrize("noise", [Noise(), Seeded(1)], ids=["private", "seeded"])
def test_answers_come_from_the_attributes_of_the_query_alone(noise):
    class OnlyMarginals(HistogramSource):
        def marginal(self, attributes):
            assert len(tuple(attributes)) <= 2
            return super().marginal(attributes)

    data = OnlyMarginals(UNIVERSE, skewed()._counts)
    mechanism, _ = started(data=data, noise=noise)
    rng = np.random.default_rng(3)
    for names in [("a", "b"), ("b", "c"), ("a",), ("c",)] * 10:
        query = random_count(rng, names)
        truth = query.dot(data.marginal(query.attributes)) / N
        assert mechanism.ask(query).value == pytest.approx(truth, abs=mechanism.config.error)


def test_a_weighted_query_is_answered_like_a_count():
    rng = np.random.default_rng(4)
    mechanism, _ = started(data=skewed())
    for _ in range(60):
        query = Linear.from_table(UNIVERSE, ("a", "c"), rng.random((4, 2)))
        truth = query.dot(skewed().marginal(("a", "c"))) / N
        answer = mechanism.ask(query)
        assert answer.value == pytest.approx(truth, abs=mechanism.config.error)
        if answer.measured_rows is not None:
            assert answer.measured_rows % mechanism.config.grid == 0


def test_a_constant_query_is_answered_exactly_by_the_hypothesis():
    mechanism, _ = started()
    answer = mechanism.ask(Linear.from_table(UNIVERSE, (), 1.0))
    assert (answer.value, answer.source) == (1.0, "hypothesis")


def test_answers_are_clipped_to_fractions_and_the_raw_measurement_is_kept():
    class Upwards(Seeded):
        def add(self, value, receipt):
            return value + 100_000

    mechanism, _ = started(noise=Upwards(0))
    answer = mechanism.ask(Linear.from_table(UNIVERSE, ("a",), [1.0, 0.0, 0.0, 0.0]))
    assert answer.value == 1.0
    assert answer.measured_rows == N + 100_000


def test_after_c_updates_nothing_more_is_answered_or_charged():
    mechanism, accountant = started()
    config = dataclasses.replace(mechanism.config, rounds=2)
    mechanism = pmw.OnlinePMW(config, skewed(), accountant, Seeded(0))
    query = Linear.from_table(UNIVERSE, ("a",), [1.0, 0.0, 0.0, 0.0])
    assert [mechanism.ask(query).source for _ in range(2)] == ["measured"] * 2
    spent = accountant.spent
    with pytest.raises(BudgetExceeded, match="must stop after 2 answers"):
        mechanism.ask(query)
    assert accountant.spent == spent


def test_a_refused_query_never_touches_the_data():
    class Untouchable(HistogramSource):
        def marginal(self, attributes):
            raise AssertionError("touched the data")

    config = configured()
    data = Untouchable(UNIVERSE, skewed()._counts)
    poor = pmw.OnlinePMW(config, data, Accountant(Budget(1e-6, 1e-9)), Seeded(0))
    with pytest.raises(BudgetExceeded):
        poor.ask(Linear.from_table(UNIVERSE, ("a",), [1.0, 0.0, 0.0, 0.0]))
    wide = Universe.from_sizes({f"x{i}": 10 for i in range(9)})
    cramped = pmw.OnlinePMW(
        configured(cells=wide.size, alpha=None),
        Untouchable.__new__(Untouchable),
        Accountant(APPROXIMATE),
        Seeded(0),
        Hypothesis(wide, memory_limit=10**4),
    )
    with pytest.raises(TooLarge):
        cramped.ask(Linear.from_table(wide, wide.names[:4], np.random.default_rng(0).integers(0, 2, (10,) * 4)))


@pytest.mark.parametrize("cell", [5, 23])
def test_a_round_whose_measurement_was_spent_elsewhere_answers_nothing_whatever_the_data(cell):
    counts = np.zeros(UNIVERSE.size, np.int64)
    counts[cell] = N
    mechanism, accountant = started(data=HistogramSource(UNIVERSE, counts))
    mechanism.ask(Linear.from_table(UNIVERSE, (), 1.0))  # opens a round
    accountant.charge(Gaussian(1.0, (2 * accountant.remaining) ** -0.5))
    with pytest.raises(BudgetExceeded, match="must afford a measurement"):
        mechanism.ask(Linear.from_table(UNIVERSE, ("a",), [1.0, 0.0, 0.0, 0.0]))


def test_under_add_remove_the_number_of_rows_is_never_read():
    class Uncounted(HistogramSource):
        @property
        def rows(self):
            raise AssertionError("read the private number of rows")

    budget = Budget(1.0, 1e-9, "add-remove")
    estimate = 1.001 * N  # public, and off by a thousandth
    mechanism, _ = started(budget, data=Uncounted(UNIVERSE, skewed()._counts), scale=estimate)
    query = Linear.from_table(UNIVERSE, ("a",), [1.0, 0.0, 0.0, 0.0])
    assert mechanism.ask(query).value == pytest.approx(1.0, abs=mechanism.config.error + 0.001)


def test_a_universe_of_10_to_the_30_cells_is_as_good_as_a_small_one():
    universe = Universe.from_sizes({f"x{i:02}": 10 for i in range(30)})

    class Concentrated(HistogramSource):
        """All rows have the value 3 everywhere; no array over the universe exists."""

        def __init__(self):
            self.universe = universe

        def marginal(self, attributes):
            names = universe.order(attributes)
            counts = np.zeros(universe.sizes(names), np.int64)
            counts[(3,) * len(names)] = 10**8
            return counts

    budget = Budget(1.0, 1e-9)
    config = pmw.configure(budget, cells=universe.size, scale=10**8, queries=100, beta=0.05)
    mechanism = pmw.OnlinePMW(config, Concentrated(), Accountant(budget), Seeded(0))
    for i in range(0, 30, 3):
        table = np.zeros((10, 10))
        table[3, 3] = 1.0
        query = Linear.from_table(universe, universe.names[i : i + 2], table)
        for _ in range(3):
            assert mechanism.ask(query).value == pytest.approx(1.0, abs=config.error)
    assert mechanism.updates > 0


def test_no_repr_shows_what_the_data_hold():
    mechanism, _ = started()
    mechanism.ask(Linear.from_table(UNIVERSE, ("a",), [1.0, 0.0, 0.0, 0.0]))
    assert repr(mechanism) == f"OnlinePMW(alpha=0.05, 1 of {mechanism.config.rounds} updates)"


def test_an_analyst_rebuilds_the_hypothesis_from_the_answers_alone():
    config = configured(PURE)
    mechanism = pmw.OnlinePMW(config, skewed(), Accountant(PURE), Seeded(2))
    rng = np.random.default_rng(5)
    pool = [random_count(rng) for _ in range(50)]
    analyst = games.WorstOfPool(UNIVERSE, skewed()._counts.reshape(-1), config, pool)
    transcript = games.accuracy_game(analyst, lambda data: mechanism.ask, 60, games.linear_error)
    assert mechanism.updates > 3
    assert analyst.hypothesis(transcript.turns) == pytest.approx(
        mechanism.hypothesis.marginal(UNIVERSE.names).reshape(-1)
    )
    assert transcript.accurate(config.error)
    # and asked what was most wrong: the first query is the worst of the pool against the uniform hypothesis
    gaps = [abs(everywhere(UNIVERSE, q) @ (analyst.truth - 1 / UNIVERSE.size)) for q in pool]
    assert transcript.turns[0].query == pool[int(np.argmax(gaps))]


def test_an_analyst_can_ask_at_any_gap_it_wants():
    config = configured()
    counts = np.random.default_rng(6).integers(0, 10**6, UNIVERSE.size)
    analyst = games.NearGap(UNIVERSE, counts, config, targets=(0.1, 1.0))
    uniform = np.full(UNIVERSE.size, 1 / UNIVERSE.size)
    query = everywhere(UNIVERSE, analyst([]))
    assert query @ (analyst.truth - uniform) == pytest.approx(0.1, abs=0.05)
    turn = games.GameTurn(None, pmw.PMWAnswer(0.0, "hypothesis", 0.0), 0.0)
    worst = everywhere(UNIVERSE, analyst([turn])) @ (analyst.truth - uniform)
    assert worst == pytest.approx(np.abs(analyst.truth - uniform).sum() / 2)  # total variation


def test_a_game_ends_when_the_mechanism_refuses_and_says_so():
    config = dataclasses.replace(configured(), rounds=1)
    mechanism = pmw.OnlinePMW(config, skewed(), Accountant(APPROXIMATE), Seeded(0))
    analyst = games.NearGap(UNIVERSE, skewed()._counts.reshape(-1), config, targets=(1.0,))
    transcript = games.accuracy_game(analyst, lambda data: mechanism.ask, 10, games.linear_error)
    assert transcript.halted
    assert not transcript.accurate(1.0)
    assert len(transcript.turns) < 10


@pytest.mark.parametrize(("step", "eta"), [("paper", 0.05 / 2), ("hoeffding", 4 * 0.05)])
def test_an_update_is_that_of_the_book_with_the_step_of_the_theorem(step, eta):
    """D̂' ∝ D̂·exp(−η(1 − q)) where the hypothesis has too little, so of q's quarter the share p becomes p/(p + (1 − p)e^−η)."""
    mechanism, _ = started(
        step=step, scale=10**8, data=HistogramSource(UNIVERSE, 100 * skewed().marginal(UNIVERSE.names))
    )
    query = Linear.from_table(UNIVERSE, ("a",), [1.0, 0.0, 0.0, 0.0])
    assert mechanism.ask(query).source == "measured"
    assert mechanism.hypothesis.answer(query) == pytest.approx(0.25 / (0.25 + 0.75 * np.exp(-eta)), rel=1e-12)


def test_events_are_for_the_one_row_that_a_neighbour_moves():
    for budget in (PURE, APPROXIMATE, Budget(1.0, 1e-9, "add-remove")):
        config = configured(budget, scale=10**8)
        assert config.guard.sensitivity == config.measurement.sensitivity == 1


def test_measurements_are_the_releases_in_the_ledger():
    mechanism, accountant = started()
    answer = mechanism.ask(Linear.from_table(UNIVERSE, ("a",), [1.0, 0.0, 0.0, 0.0]))
    (entry,) = [entry for entry in accountant.entries() if entry.why == pmw.MEASURED]
    assert entry.released == (answer.measured_rows,)


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE])
def test_all_measurements_stay_within_alpha_but_for_a_third_of_beta(budget):
    """And the promise is what the guard lets pass, 2α, and how far a comparison may be off, α."""
    config = configured(budget, scale=10**8)
    width = pmw.rows_needed(budget, config.alpha, 0.05, 200, UNIVERSE.size) * config.alpha - 2
    noise, c = config.measurement, config.rounds
    failing = c * np.exp(-width / noise.scale) if budget.pure else 2 * c * np.exp(-(width**2) / (2 * noise.sigma**2))
    assert failing <= 0.05 / 3 * (1 + 1e-9)
    assert config.threshold + config.alpha * config.scale == pytest.approx(config.error * config.scale)


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE])
def test_a_share_of_the_budget_is_all_that_the_rounds_cost(budget):
    config = configured(budget, scale=10**8, share=0.5)
    total = config.rounds * (budget.cost(config.guard) + budget.cost(config.measurement))
    assert 0.49 * budget.total <= total <= 0.5 * budget.total * (1 + 1e-12)


def test_the_threshold_game_counts_both_ways_to_be_wrong():
    turns = [(1.0, False), (0.5, True), (0.7, True), (0.7, False), (1.0, True), (0.5, False)]
    transcript = games.ThresholdTranscript(tuple(games.ThresholdTurn(*turn) for turn in turns), halted=False)
    assert transcript.wrong(1.0) == [0, 1]
