"""One account, one process, one question at a time: forks are refused, copies are the original, threads take turns."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import multiprocessing
import os
import pickle
import threading

import numpy as np
import pytest
from concurrency import forked, together
from paying import paid

import hedgerow as hr
from hedgerow import erm, losses
from hedgerow.convex import sets
from hedgerow.data import HistogramSource
from hedgerow.engine.practical import guard
from hedgerow.privacy.amplification import subsampled_gaussian
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, Exponential, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.textbook import convex_pmw, mwem, oracles, pmw, small_db, sparse_vector
from hedgerow.textbook.pmw import OnlinePMW, PMWConfig
from hedgerow.textbook.sparse_vector import Progress, SparseVector, guard_round

UNIVERSE = hr.Universe(a=hr.Integers(0, 3), b=hr.Flag())
COUNTS = np.array([[1200, 100], [1250, 90], [1180, 110], [958, 112]])
DATA = HistogramSource(UNIVERSE, COUNTS)
PURE, APPROXIMATE = Budget(10.0, 0.0), Budget(1.0, 1e-6)
COUNT = hr.count(a=1, b=True)
REFUSED = "must be used in the process that made it"


# Forks


def opened_guard():
    """A round that is open, so that a comparison charges nothing."""
    config, account = SparseVector(1e6, guard_round(0.5), rounds=2), Accountant(PURE)
    progress, _ = sparse_vector.ready(config, Progress(), account, Noise())
    return account, config, progress


def charging():
    account = Accountant(PURE)
    return account, lambda: account.charge(Laplace(1.0, 1.0))


def comparing():
    account, config, progress = opened_guard()
    return account, lambda: sparse_vector.step(config, progress, 0.0, account, Noise())


def opening_a_round():
    account = Accountant(PURE)
    return account, lambda: sparse_vector.ready(SparseVector(0.0, guard_round(0.5), 2), Progress(), account, Noise())


def asking_pmw():
    account = Accountant(PURE)
    config = pmw.configure(PURE, cells=8, scale=10**7, queries=10, beta=0.1)
    mechanism = OnlinePMW(config, HistogramSource(UNIVERSE, np.full(8, 10**7 // 8)), account, Noise())
    query = COUNT.on(UNIVERSE)
    assert mechanism.ask(query).source == "hypothesis"  # the round is open now: the next comparison is free
    return account, lambda: mechanism.ask(query)


def asking_convex_pmw():
    budget = Budget(1.0, 1e-9)
    account, loss = Accountant(budget), losses.Squared(target="b", features=["a"], ridge=0.5)
    oracle, over = oracles.OutputPerturbationOracle(5.25, 0.5, 2, 10.5), sets.L2Ball(1.0)
    config = convex_pmw.configure(budget, cells=8, rows=10**7, queries=10, beta=0.1, scale_S=10.5, oracle=oracle)
    mechanism = convex_pmw.OnlineConvexPMW(config, HistogramSource(UNIVERSE, np.full(8, 10**7 // 8)), account, Noise())
    risk = loss.on(UNIVERSE)
    mechanism.ask(risk, over)
    return account, lambda: mechanism.ask(risk, over)


def asking_offline():
    account, config = Accountant(PURE), mwem.configure(PURE, cells=8, scale=10**7, queries=1, beta=0.1)
    return account, lambda: mwem.release(
        config, [COUNT.on(UNIVERSE)], HistogramSource(UNIVERSE, np.full(8, 10**7 // 8)), account, Noise()
    )


def choosing_a_small_database():
    account = Accountant(PURE)
    return account, lambda: small_db.release([COUNT.on(UNIVERSE)], DATA, account, Noise(), size=2)


def minimising():
    account, rng = Accountant(APPROXIMATE), np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    return account, lambda: erm.mirror_descent(
        X, y, loss=losses.Logistic(), over=sets.L2Ball(1.0), budget=account, spend=0.001
    )


def session(**options):
    return hr.open(DATA, universe=UNIVERSE, budget=APPROXIMATE, **{"reserve": 0.5, **options})


def a_free_question():
    opened = session()
    return opened.ledger, lambda: opened.ask(COUNT)


def a_repeat():
    opened = session()
    opened.ask(COUNT)
    return opened.ledger, lambda: opened.ask(COUNT)


def to_be_bought(opened, query) -> float:
    """The widest bar that is not free."""
    known = opened.ask(query).error.max()
    return next(bar for bar in known * np.arange(0.98, 0.5, -0.02) if opened.price(query, within=bar) > 0)


def a_bought_marginal():
    opened = session(reserve=0.95)
    within = to_be_bought(opened, hr.marginal("a", "b"))
    return opened.ledger, lambda: opened.ask(hr.marginal("a", "b"), within=within)


def a_guarded_question():
    opened = session(guard=0.2, workload=hr.marginals(1))
    assert opened._engine.guard is not None
    watch = opened._engine._watch
    watch.guard = guard.Guard(watch.guard.config, 1e-9, 0.2)  # asked whatever the bars say
    opened.ask(COUNT)
    return opened.ledger, lambda: opened.ask(hr.count(a=2, b=False))


def many_questions():
    opened = session()
    return opened.ledger, lambda: opened.ask_all([COUNT, hr.count(a=2)])


def synthetic_records():
    opened = session()
    return opened.ledger, lambda: len(opened.synthetic(10))


USES = [
    charging, comparing, opening_a_round, asking_pmw, asking_convex_pmw, asking_offline, choosing_a_small_database,
    minimising, a_free_question, a_repeat, a_bought_marginal, a_guarded_question, many_questions, synthetic_records,
]  # fmt: skip


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_fork_is_refused_and_its_parent_is_not(use) -> None:
    account, ask = use()
    before = account.events
    assert REFUSED in forked(ask)
    assert REFUSED in forked(lambda: forked(ask)), "so is the fork of a fork"
    assert account.events == before
    ask()


def test_forty_forks_spend_nothing_between_them() -> None:
    opened = session(reserve=0.95)
    within = to_be_bought(opened, hr.marginal("a", "b"))
    answers = [forked(lambda: opened.ask(hr.marginal("a", "b"), within=within).value) for _ in range(40)]
    assert all(REFUSED in answer for answer in answers)
    assert opened.ask(hr.marginal("a", "b"), within=within).source == "measured"


SAMPLED = subsampled_gaussian(1.0, 1e-6, "replace", heads=2**31, steps=1, sensitivity=1.0, values=1)
DRAWS = {
    "add": lambda noise: noise.add(0.0, paid(Laplace(1.0, 10.0))),
    "choose": lambda noise: noise.choose(np.zeros(3), paid(Exponential(1.0, 1.0))),
    "sample": lambda noise: noise.sample(10, paid(SAMPLED)),
    "open_round": lambda noise: noise.open_round(paid(AboveThreshold(1.0, 0.1, 0.1)), 0, 2.0**-20).is_open,
    "comparison": lambda noise: noise._comparison(2.0**20),
    "comparisons": lambda noise: noise._comparisons(2.0**20, 3),
    "subsample": lambda noise: noise.subsample(10, 3),
    "generator": lambda noise: noise.generator().random(),
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("source", [Noise, lambda: Seeded(0)], ids=["Noise", "Seeded"])
def test_a_fork_draws_nothing_from_its_parents_noise(source, draw) -> None:
    noise = source()
    noise._comparison(2.0**20)  # and drew others ahead
    assert REFUSED in forked(lambda: DRAWS[draw](noise))
    assert "returned" in forked(lambda: DRAWS[draw](source())), "it may make its own"
    DRAWS[draw](noise)


def refusal_of(ask, said) -> None:
    try:
        ask()
    except hr.InvalidInput as refusal:
        said.put(str(refusal))
    else:
        said.put("answered")


def test_a_forked_worker_of_multiprocessing_is_refused() -> None:
    context = multiprocessing.get_context("fork")
    _, ask = comparing()
    said = context.Queue()
    worker = context.Process(target=refusal_of, args=(ask, said))
    worker.start()
    assert REFUSED in said.get(timeout=60)
    worker.join()


def test_a_fork_made_outside_python_is_refused() -> None:
    fork = ctypes.PyDLL(None).fork
    for use in (charging, comparing):
        assert REFUSED in forked(use()[1], fork)


def test_a_fork_that_got_the_number_of_its_parent_is_refused() -> None:
    """Numbers of processes come back."""
    _, ask = comparing()
    mine = os.getpid()

    def with_my_number():
        os.getpid = lambda: mine
        return ask()

    assert REFUSED in forked(with_my_number)


@pytest.mark.parametrize("use", [charging, comparing, asking_pmw, a_free_question], ids=lambda use: use.__name__)
def test_a_fork_made_while_another_thread_asks_is_refused_and_does_not_hang(use) -> None:
    account, ask = use()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with account.exclusively():
            held.set()
            done.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(60)
    try:
        assert REFUSED in forked(ask)
    finally:
        done.set()
        other.join()


def test_a_fork_made_in_the_middle_of_a_question_draws_nothing_for_what_was_charged_once() -> None:
    account, noise, event = Accountant(PURE), Noise(), Laplace(1.0, 1.0)
    with account.exclusively():
        receipt = account.charge(event)
        assert REFUSED in forked(lambda: noise.add(100, receipt))
        assert REFUSED in forked(lambda: Noise().add(100, receipt)), "with noise of its own neither"
        assert REFUSED in forked(lambda: account.charge(event))
        noise.add(100, receipt)


def test_a_fork_may_read_what_is_public() -> None:
    opened = session()
    expected = (repr(opened), opened.spent, len(opened.log), opened.spent_epsilon)
    read = lambda: (repr(opened), opened.spent, len(opened.log), opened.spent_epsilon)  # noqa: E731
    assert forked(read) == f"returned {expected!r}"


def test_a_fork_opens_accounts_of_its_own_which_its_parent_and_its_forks_cannot_use() -> None:
    def a_session_of_its_own():
        opened = session()
        return opened.ask(COUNT).cost, forked(lambda: opened.ask(COUNT))

    assert forked(a_session_of_its_own).startswith("returned (0.0, 'InvalidInput: An account must be used")


# Copies


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("make", [lambda: Accountant(PURE), session], ids=["Accountant", "Session"])
def test_a_copy_of_an_account_is_the_account(make, duplicate) -> None:
    original = make()
    assert duplicate(original) is original


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_mechanism_pays_from_the_same_account_and_shares_its_round(duplicate) -> None:
    account, ask = asking_pmw()
    original = next(cell.cell_contents for cell in ask.__closure__ if isinstance(cell.cell_contents, OnlinePMW))
    twin = duplicate(original)
    assert twin.ledger is account
    assert twin._progress.round is original._progress.round
    account.charge(Laplace(1.0, 1 / account.remaining))
    with pytest.raises(hr.BudgetExceeded):
        twin.ask(COUNT.on(UNIVERSE))  # it cannot afford the measurement that might be needed


@pytest.mark.parametrize("use", [charging, comparing, asking_pmw, a_free_question], ids=lambda use: use.__name__)
def test_nothing_that_spends_can_be_pickled(use) -> None:
    _, ask = use()
    for cell in ask.__closure__:
        if isinstance(cell.cell_contents, Accountant | Progress | OnlinePMW | hr.Session):
            with pytest.raises(hr.InvalidInput, match="must stay in its process"):
                pickle.dumps(cell.cell_contents)


# Threads


def without_turns(account: Accountant) -> None:
    account._turn = contextlib.nullcontext()  # type: ignore[assignment]


def charges_add_up(take_turns: bool) -> None:
    account, event, passed = Accountant(Budget(1.0, 0.0)), Laplace(1.0, 1024.0), []
    if not take_turns:
        without_turns(account)

    def spend() -> None:
        with contextlib.suppress(hr.BudgetExceeded):
            while True:
                account.charge(event)
                passed.append(1)

    together(*[spend] * 6)
    assert len(passed) == len(account.events) == 1024
    assert account.spent == 1.0


def guarded(config: PMWConfig, account: Accountant) -> OnlinePMW:
    counts = np.zeros(8, np.int64)
    counts[0] = config.scale
    return OnlinePMW(config, HistogramSource(UNIVERSE, counts), account, Noise())


def rounds_are_paid(take_turns: bool) -> None:
    """Every question finds the hypothesis wrong: a round, a ⊤ and a measurement each, in that order."""
    account = Accountant(Budget(1e6, 0.0))
    config = PMWConfig(10**6, 8, 1000, 0.001, 0.1, "hoeffding", 500, guard_round(0.5), Laplace(1.0, 10.0))
    asked, sources = guarded(config, account), []
    if not take_turns:
        without_turns(account)
    query = hr.count(a=0).on(UNIVERSE)

    def ask() -> None:
        for _ in range(60):
            sources.append(asked.ask(query).source)

    together(*[ask] * 5)
    assert sources == ["measured"] * 300
    assert account.events == (config.guard, config.measurement) * 300
    assert asked.updates == asked._progress.tops == 300


def the_practical_guard_counts(take_turns: bool) -> None:
    rng = np.random.default_rng(0)
    universe = hr.Universe(a=hr.Integers(0, 7), b=hr.Integers(0, 7))
    counts = rng.multinomial(4 * 10**7, rng.dirichlet(np.full(64, 5.0))).reshape(8, 8)
    opened = hr.open(
        HistogramSource(universe, counts), universe=universe, budget=APPROXIMATE, guard=0.4, workload=hr.marginals(1)
    )
    engine, account = opened._engine, opened.ledger
    queries = [hr.count(a=i, b=j).on(universe) for i in range(8) for j in range(8)]
    if not take_turns:
        without_turns(account)
    said: list[bool] = []

    def ask(order: np.ndarray) -> None:
        for i in order:
            with account.exclusively():
                said.append(engine._watch.is_above(engine._gap(queries[i])))

    together(*[lambda seed=seed: ask(np.random.default_rng(seed).integers(0, 64, 150)) for seed in range(4)])
    rounds = sum(isinstance(event, AboveThreshold) for event in account.events)
    assert sum(said) == engine._watch._progress.tops
    assert rounds - engine._watch.is_open == sum(said) > 100


def answers_cost_what_was_spent(take_turns: bool) -> None:
    universe = hr.Universe(**{name: hr.Integers(0, 3) for name in "abcdef"})
    counts = np.full(universe.size, 500)
    opened = hr.open(
        HistogramSource(universe, counts),
        universe=universe,
        budget=Budget(10.0, 1e-6),
        reserve=0.98,
        workload=hr.marginals(1),
        seed=1,  # what a bar costs that is just not free depends on the noise of the certificate
    )
    if not take_turns:
        without_turns(opened.ledger)
    before, costs = opened.spent, []
    names = [(x, y) for x in "abcdef" for y in "abcdef" if x < y][:6]  # as many as the reserve affords
    within = {pair: to_be_bought(opened, hr.marginal(*pair)) for pair in names}

    def ask(mine: list[tuple[str, str]]) -> None:
        for pair in mine:
            costs.append(opened.ask(hr.marginal(*pair), within=within[pair]).cost)

    together(*[lambda i=i: ask(names[i::4]) for i in range(4)])
    assert sum(cost > 0 for cost in costs) > 1
    assert sum(costs) == pytest.approx(opened.spent - before, rel=1e-9)


@pytest.mark.parametrize(
    "holds", [charges_add_up, rounds_are_paid, the_practical_guard_counts, answers_cost_what_was_spent],
    ids=lambda holds: holds.__name__,
)  # fmt: skip
def test_threads_take_turns(holds, eager, monkeypatch) -> None:
    monkeypatch.setattr(guard, "GUARD_ROUNDS", 3000)  # enough that races could be counted
    holds(take_turns=True)
    with pytest.raises(Exception):  # noqa: B017 — and it would not hold, or break, if they did not
        for _ in range(5):
            holds(take_turns=False)


def test_a_threshold_is_closed_by_one_thread_for_all(eager) -> None:
    """Whoever keeps an earlier progress beside the others finds its round over, and pays for the next."""
    account, noise, config = Accountant(Budget(1e6, 0.0)), Noise(), SparseVector(0.0, guard_round(0.5), rounds=500)
    opened, _ = sparse_vector.ready(config, Progress(), account, noise)
    tops: list[bool] = []

    def ask() -> None:
        for _ in range(100):
            tops.append(sparse_vector.step(config, opened, 1e6, account, noise)[0].above)

    together(*[ask] * 4)
    assert tops == [True] * 400
    assert len(account.events) == 400


@pytest.mark.parametrize("source", [Noise, lambda: Seeded(0)], ids=["Noise", "Seeded"])
def test_no_draw_is_handed_to_two_threads(source, eager) -> None:
    noise, drawn, seeds = source(), [], []

    def draw() -> None:
        for _ in range(2000):
            drawn.append(
                noise._comparison(2.0**20)
            )  # 2^40 steps: equal draws would be one draw, but for a chance of 10^-4
        for _ in range(20):
            seeds.append(noise.generator().random())

    together(*[draw] * 4)
    assert len(set(drawn)) == len(drawn) == 8000
    assert len(set(seeds)) == len(seeds) == 80
