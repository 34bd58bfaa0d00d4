"""A table that grows: questions about some of its blocks and about all, each block's account, and counts over time."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.multi_block import BlockPart, MultiBlockEngine, greatest_mean
from hedgerow.engine.over_time import Node, due, estimate_counts, tail
from hedgerow.engine.practical.fit.value_groups import ValueGroups
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.model.mixture import Mixture
from hedgerow.privacy.accounts import Accounts
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import bound
from hedgerow.query.parse import question

U = hr.Universe(age=hr.Integers(0, 7), sex=hr.Categories(["F", "M"]), smoker=hr.Flag())
NAMES = ("january", "february", "march")
APPROXIMATE, PURE, COMING = hr.Budget(1.0, 1e-6), hr.Budget(2.0, 0.0), hr.Budget(1.0, 1e-6, "add-remove")
pytestmark = pytest.mark.filterwarnings("ignore::hedgerow.errors.NotPrivateWarning")


@functools.cache
def block(i: int, rows: int = 0) -> HistogramSource:
    """Each month has more rows, and older people, than the one before."""
    age = np.exp(-0.15 * (np.arange(8) - i * 2) ** 2)
    shares = np.einsum("a,s,k->ask", age, [0.4 + 0.1 * i, 0.6 - 0.1 * i], [0.7, 0.3]) + 0.01
    shares[:, 0, 1] *= 1.5
    return HistogramSource(U, np.round((rows or 4000 * (i + 1)) * shares / shares.sum()).astype(np.int64))


def grown(budget: hr.Budget = APPROXIMATE, seed: int = 1, blocks: int = 3, **options) -> hr.Session:
    session = hr.open(block(0), universe=U, budget=budget, seed=seed, block=NAMES[0], **{"reserve": 0.2, **options})
    for i in range(1, blocks):
        session.append(block(i), block=NAMES[i])
    return session


def counted(*which: int) -> np.ndarray:
    return np.sum([block(i).marginal(U.names) for i in which], axis=0)


def questions(rng: np.random.Generator, many: int) -> list[hr.Query]:
    found = []
    for _ in range(many):
        low, high = sorted(rng.integers(0, 8, 2).tolist())
        found.append(hr.count({"age": (low, high), **({"sex": "F"} if rng.random() < 0.5 else {"smoker": True})}))
    return found


RANGES = {(): (0, 1, 2), ("february",): (1,), ("january", "february"): (0, 1), ("february", "march"): (1, 2)}


@pytest.mark.parametrize("budget", [APPROXIMATE, PURE, COMING], ids=["approximate", "pure", "add-remove"])
def test_an_answer_is_about_the_rows_of_the_blocks_that_were_asked_and_within_its_bar(budget) -> None:
    session = grown(budget)
    asked = questions(np.random.default_rng(0), 40)
    for names, which in RANGES.items():
        counts = counted(*which)
        view = session.select_blocks(*names) if names else session
        truths = np.array([bound(q, U).dot(counts.sum(axis=_away(q))) / counts.sum() for q in asked])
        answers = view.ask_all(asked)
        one_by_one = [view.ask(q) for q in asked]
        values, errors = (np.array([getattr(a, name) for a in answers], dtype=float) for name in ("value", "error"))
        assert np.all(np.abs(values - truths) <= errors) and errors.max() < 0.25
        assert [a.value for a in one_by_one] == values.tolist() and {a.source for a in one_by_one} == {"repeat"}
        in_rows = view.ask(asked[0], scale="rows")
        assert abs(in_rows.value - truths[0] * counts.sum()) <= in_rows.error
        table = view.ask(hr.marginal("age", "sex"))
        assert np.all(np.abs(table.value - counts.sum(axis=2) / counts.sum()) <= table.error)


def _away(query: hr.Query) -> tuple[int, ...]:
    return tuple(i for i, name in enumerate(U.names) if name not in bound(query, U).attributes)


@pytest.mark.parametrize("budget", [APPROXIMATE, COMING], ids=["replace", "add-remove"])
def test_means_quantiles_and_ratios_are_of_all_rows_and_not_means_of_means(budget) -> None:
    session, counts = grown(budget), counted(0, 1, 2)
    ages = counts.sum(axis=(1, 2))
    mean = session.ask(hr.mean("age"))
    each = [session.select_blocks(name).ask(hr.mean("age")).value for name in NAMES]
    true = float(ages @ np.arange(8)) / ages.sum()
    assert abs(mean.value - true) <= mean.error < abs(np.mean(each) - true)
    median = session.ask(hr.median("age"))
    exact = np.searchsorted(np.cumsum(ages), ages.sum() / 2)
    assert abs(median.value - exact) <= median.error
    share = session.ask(hr.share(hr.count(smoker=True), where=hr.count(sex="F")))
    assert abs(share.value - counts[:, 0, 1].sum() / counts[:, 0].sum()) <= share.error
    total = session.ask(hr.total("age"))
    assert abs(total.value - ages @ np.arange(8)) <= total.error
    frame = session.sql("SELECT sex, count(*) AS n FROM data GROUP BY sex")
    assert np.all(np.abs(frame["n"] - counts.sum(axis=(0, 2))) <= frame["n_error"])


def test_bars_hold_for_all_blocks_and_ranges_together() -> None:
    """A run fails with probability at most 2β = 2 %, so two of eight with at most C(8, 2)·0.02² = 1.2 %; the seeds are fixed."""
    asked, failed = questions(np.random.default_rng(3), 30), 0
    ranges = [(), *((a, b) for a, b in itertools.combinations_with_replacement(NAMES, 2))]
    for seed in range(8):
        session, wrong = grown(seed=seed, beta=0.01), False
        series = session.ask(hr.count(age=(2, 5)).over_time(share=0.05))
        so_far = np.cumsum([block(i).marginal(("age",))[2:6].sum() for i in range(3)])
        wrong |= bool(np.any(np.abs(series.value[:, 1] - so_far) > series.error[:, 1]))
        for names in ranges:
            low, high = (NAMES.index(n) for n in names) if names else (0, 2)
            counts = counted(*range(low, high + 1))
            view = session.select_blocks(*names) if names else session
            for q, a in zip(asked, view.ask_all(asked), strict=True):
                wrong |= abs(a.value - bound(q, U).dot(counts.sum(axis=_away(q))) / counts.sum()) > a.error
        failed += wrong
    assert failed <= 1


def test_every_block_has_its_own_budget_and_pays_for_itself_alone() -> None:
    session = hr.open(block(0), universe=U, budget=APPROXIMATE, seed=1, reserve=0.8)  # most of it for what is bought
    before = session.spent
    small = hr.Budget(0.5, 1e-7)
    session.append(block(1), budget=small).append(block(2))
    assert list(session.blocks) == ["1", "2", "3"] and session.blocks["1"].spent == before
    assert [b.budget for b in session.blocks.values()] == [APPROXIMATE, small, APPROXIMATE]
    assert session.budget == APPROXIMATE and session.rows == sum(block(i).rows for i in range(3))
    spent = [b.spent for b in session.blocks.values()]
    february = session.select_blocks("2")
    bought = february.ask(
        hr.count(age=3, sex="F"), within=0.49 * february.ask(hr.count(age=3, sex="F")).error
    )  # a bar of half the width is never met for free
    after = [b.spent for b in session.blocks.values()]
    assert bought.cost > 0 and [a > b for a, b in zip(after, spent, strict=True)] == [False, True, False]
    assert session.spent == max(after) and session.remaining == min(b.remaining for b in session.blocks.values())
    for each in session.blocks.values():
        assert each.spent <= each.budget.total and each.spent == each.ledger.spent
    after = [b.spent for b in session.blocks.values()]
    wanted = 0.9 * session.ask(hr.count(age=3, sex="M")).error
    together = session.ask(hr.count(age=3, sex="M"), within=wanted)
    costs = [b.spent - a for a, b in zip(after, session.blocks.values(), strict=True)]
    assert together.error <= wanted and 0 < together.cost == pytest.approx(max(costs))
    assert session.ask(hr.count(age=3, sex="M"), within=wanted).cost == 0


def test_a_price_is_what_the_block_that_pays_most_is_charged_and_a_refusal_charges_none() -> None:
    session = grown()
    price = session.price(hr.count(age=4, sex="F"), within=0.0075)
    assert price > 0 and session.ask(hr.count(age=4, sex="F"), within=0.0075).cost == pytest.approx(price)
    spent = [b.spent for b in session.blocks.values()]
    with pytest.raises(BudgetExceeded, match="Every block must be able to pay for the answer"):
        session.ask(hr.count(age=5, sex="F"), within=1e-4)
    assert [b.spent for b in session.blocks.values()] == spent
    assert session.price(hr.mean("age"), within=10.0) == 0


def test_a_charge_that_one_block_cannot_pay_is_paid_by_no_other() -> None:
    """The last has spent nearly all; the one that is asked before it could pay."""
    session = grown(blocks=2)
    poor = session.select_blocks("february")
    for low in range(8):
        usual = poor.ask(hr.count(age=low, smoker=True)).error
        for part in (0.5, 0.7, 0.9):
            with contextlib.suppress(BudgetExceeded):
                poor.ask(hr.count(age=low, smoker=True), within=part * usual)
    wanted = 0.2 * session.ask(hr.count(age=3, sex="F", smoker=True)).error
    spent = [b.spent for b in session.blocks.values()]
    with pytest.raises(BudgetExceeded, match="Every block must be able to pay for the answer"):
        session.ask(hr.count(age=3, sex="F", smoker=True), within=wanted)
    assert [b.spent for b in session.blocks.values()] == spent
    rich = session.select_blocks("january")
    assert rich.ask(hr.count(age=3, sex="F"), within=0.95 * rich.ask(hr.count(age=3, sex="F")).error).cost > 0


def test_a_block_whose_rows_are_private_counts_for_an_interval() -> None:
    """Numbers of rows that are far from their estimates, as far as these say that they may be."""
    parts = [_Told(1000.0, 400.0, 0.9), _Told(1000.0, 400.0, 0.1)]
    answer = MultiBlockEngine([BlockPart(each, each, each) for each in parts]).linear(bound(hr.count(sex="F"), U), None)
    for rows in itertools.product((600, 1400), repeat=2):
        truth = (0.9 * rows[0] + 0.1 * rows[1]) / sum(rows)
        assert abs(answer.value - truth) <= answer.error + 1e-12
    assert answer.value == 0.5 and answer.error == pytest.approx(0.16)
    in_rows = MultiBlockEngine([BlockPart(each, each, each) for each in parts]).error_in_rows(
        answer.value, answer.error
    )
    assert in_rows >= 0.9 * 1400 + 0.1 * 1400 - 0.5 * 2000


class _Told:
    """A block of about so many rows, of which it says that a share is counted, exactly."""

    budget = hr.Budget(1.0, 1e-6, "add-remove")

    def __init__(self, rows: float, off: float, share: float) -> None:
        self.rows, self._off, self._share, self.public = rows, off, share, self

    def error_in_rows(self, value: float, error: float) -> float:
        return self._off * value + (self.rows + self._off) * error

    def linear(self, query: object, within: float | None) -> Estimate:
        return Estimate(self._share, 0.0, "hypothesis")


def test_several_accounts_have_spent_the_most_of_any_and_have_left_the_least() -> None:
    budgets = [hr.Budget(1.0, 1e-6), hr.Budget(0.5, 1e-7), hr.Budget(1.0, 1e-6)]
    ledgers = [Accountant(budget) for budget in budgets]
    accounts = Accounts(("a", "b", "c"), ledgers, [lambda news: None] * 3)
    with accounts.asking() as bill:
        costs = [
            ledger.charge(Gaussian(1.0, 1 / np.sqrt(2 * part * ledger.budget.total))).cost
            for ledger, part in zip(ledgers, (0.6, 0.9, 0.1), strict=True)
        ]
    assert bill.cost == max(costs) == accounts.spent > max(costs[1:])
    assert accounts.remaining == min(ledger.remaining for ledger in ledgers) == ledgers[1].remaining
    spent = [ledger.spent_epsilon for ledger in ledgers]
    assert min(spent) < sorted(spent)[1] < max(spent) == accounts.spent_epsilon
    assert (accounts.budget.epsilon, accounts.budget.delta) == (1.0, 1e-6)


def test_all_that_is_appended_shares_a_second_beta() -> None:
    session = hr.open(block(0), universe=U, budget=APPROXIMATE, seed=1, beta=0.04)
    for i in range(4):
        session.append(block(i % 3, 1000 + i))
    betas = [b.beta for b in session.blocks.values()]
    assert betas[0] == 0.04 and betas[1:] == pytest.approx([0.02 / 2, 0.02 / 6, 0.02 / 12, 0.02 / 20])
    assert sum(betas[1:]) < 0.02 and session.report().facts["bars_fail"] == pytest.approx(0.08)


def test_a_statement_about_the_population_fails_where_bars_of_any_block_do() -> None:
    session = grown()
    for view in (session, session.select_blocks("february", "march"), session.select_blocks("march")):
        said = view.generalisation
        assert said.sample_beta == pytest.approx(sum(b.beta for b in view.blocks.values()))
        assert said.beta == pytest.approx(2 * said.sample_beta)
    assert session.generalisation.sample_beta > session.select_blocks("january").generalisation.sample_beta


def test_raw_rows_of_one_block_never_answer_for_several() -> None:
    frame = pd.DataFrame({"smoker": [True] * 500 + [False] * 500})
    declared = hr.Universe(smoker=hr.Flag())
    session = hr.open(frame, universe=declared, budget=APPROXIMATE, seed=1, keep_rows=True, reserve=0.5)
    assert session.sample_yes_no(hr.count(smoker=True)) in (True, False)
    session.append(pd.DataFrame({"smoker": [True] * 1000}))
    before = [b.spent for b in session.blocks.values()]
    for ask in (session.sample_yes_no, lambda query: next(session.sample_yes_no_stream(query))):
        with pytest.raises(InvalidInput, match="have one block to answer about raw values"):
            ask(hr.count(smoker=True))
    with pytest.raises(InvalidInput, match="have one block to answer about raw values"):
        session.ask(hr.statistic(lambda smoker: smoker, "smoker", within=0.2))
    assert [b.spent for b in session.blocks.values()] == before
    assert session.select_blocks("1").sample_yes_no(hr.count(smoker=True)) in (True, False)


def test_an_answer_about_some_blocks_is_not_one_about_others() -> None:
    session, asked = grown(), hr.count(sex="F")
    early, late = (
        session.select_blocks("january", "march").ask(asked),
        session.select_blocks("february", "march").ask(asked),
    )
    assert late.source == "hypothesis" and late.value > early.value + 0.01
    assert session.select_blocks("february", "march").ask(asked).value == late.value
    assert session.select_blocks("february", "march").ask(asked).source == "repeat"


def test_one_draw_for_several_accounts_is_of_one_event_and_written_down_in_all() -> None:
    ledgers = [Accountant(APPROXIMATE) for _ in range(3)]
    event = Gaussian(1.0, 40.0)
    drawn = Noise().add_for_all(100, [ledger.charge(event) for ledger in ledgers])
    assert [ledger.entries()[0].released for ledger in ledgers] == [(drawn,)] * 3
    other = [ledgers[0].charge(Gaussian(1.0, 50.0)), ledgers[1].charge(event)]
    with pytest.raises(InvalidInput, match="Receipts for one draw must be for the same event"):
        Noise().add_for_all(100, other)
    assert ledgers[0].entries()[1].released == ()
    used = ledgers[2].charge(event)
    Noise().add(1.0, used)
    with pytest.raises(InvalidInput, match="one draw more"):
        Noise().add_for_all(100, [other[1], used])


def test_a_question_on_one_block_is_not_the_question_on_all() -> None:
    session = hr.open(block(0), universe=U, budget=APPROXIMATE, seed=1, block="january")
    first = session.ask(hr.count(sex="F"))
    session.append(block(2), block="march")
    both, alone = session.ask(hr.count(sex="F")), session.select_blocks("january").ask(hr.count(sex="F"))
    assert alone.value == first.value and alone.source == "repeat"
    assert both.source == "hypothesis" and both.value > first.value + 0.05


def test_threads_ask_while_another_appends_and_every_answer_is_about_some_of_the_blocks() -> None:
    session, asked, said = grown(blocks=1), [hr.count(age=a, sex="F") for a in range(8)], list[hr.Answer]()
    threads = [threading.Thread(target=lambda: said.extend(session.ask(q) for q in asked)) for _ in range(4)]
    for thread in threads:
        thread.start()
    session.append(block(1), block="february").append(block(2), block="march")
    for thread in threads:
        thread.join()
    assert len(said) == 32
    for answer in said:
        truths = [
            bound(answer.query, U).dot(counted(*range(k)).sum(axis=2)) / counted(*range(k)).sum() for k in (1, 2, 3)
        ]
        assert min(abs(answer.value - truth) for truth in truths) <= answer.error and answer.cost == 0


def test_records_and_the_hypothesis_are_a_mixture_by_rows() -> None:
    session = grown()
    parts = [b.engine.hypothesis for b in session.blocks.values()]
    rows = np.array([b.rows for b in session.blocks.values()])
    expected = sum(n * part.marginal(("age",)) for n, part in zip(rows, parts, strict=True)) / rows.sum()
    assert np.allclose(session.hypothesis.marginal(("age",)), expected)
    records = session.synthetic(3000)
    found = np.bincount(records["age"].astype(int), minlength=8) / 3000
    assert len(records) == 3000 and np.abs(found - expected).max() < 0.01
    loose = Mixture(parts, rows / rows.sum()).sample(3000, np.random.default_rng(1))
    assert loose.shape == (3000, 3) and np.abs(np.bincount(loose[:, 0], minlength=8) / 3000 - expected).max() < 0.05
    assert len(Mixture(parts, rows / rows.sum()).sample(0, np.random.default_rng(1))) == 0
    assert session.certificate is not None
    each = [b.engine.certificate for b in session.blocks.values()]
    for limit in session.certificate.limits:
        bars = [one.bar for c in each for one in c.limits if (one.kind, one.size) == (limit.kind, limit.size)]
        assert limit.bar == pytest.approx(float(rows @ bars) / rows.sum())
    shared = [c.beta - sum(one.beta for one in c.limits if one.kind == "means") for c in each]  # means differ by block
    assert session.certificate.beta == pytest.approx(sum(shared))


def test_a_model_of_several_blocks_is_fitted_on_their_mixture() -> None:
    session = grown()
    loss = hr.minimize(hr.losses.Logistic(target="smoker", features=["age"]), over=hr.L2Ball(1.0))
    answer = session.ask(loss)
    expected, _ = loss.on(session.universe).fit_on(session.hypothesis)
    assert np.allclose(answer.value, expected.theta) and answer.error is None and answer.cost == 0
    assert answer.coefficient_basis == "bootstrap" and (answer.coefficient_errors > 0).all()
    one = session.select_blocks("january").ask(loss)
    assert answer.coefficient_errors.mean() < one.coefficient_errors.mean()  # of more rows


def test_questions_that_several_blocks_cannot_answer_are_refused_in_a_sentence() -> None:
    session = grown()
    loss = hr.minimize(hr.losses.Logistic(target="smoker", features=["age"]), over=hr.L2Ball(1.0))
    with pytest.raises(InvalidInput, match="within must be left out of a convex question about several blocks"):
        session.ask(loss, within=0.1)
    assert session.select_blocks("march").ask(loss).value.size == 2
    with pytest.raises(InvalidInput, match="A session must have one block to have a ledger"):
        _ = session.ledger
    with pytest.raises(InvalidInput, match="A session must have one block to have a ledger"):
        hr.erm.auto(np.eye(4), np.ones(4), loss=hr.losses.Squared(), over=hr.L2Ball(1.0), budget=session, seed=1)
    with pytest.raises(InvalidInput, match="have one block to answer about raw values"):
        session.sample_yes_no(hr.count(smoker=True))
    with pytest.raises(InvalidInput, match="within must be asked about one block where the number of rows is private"):
        grown(COMING, blocks=2).ask(hr.count(age=2), within=0.2)
    with pytest.raises(InvalidInput, match="A block must be one of january, february, march"):
        session.select_blocks("april")
    with pytest.raises(InvalidInput, match="must come before its last"):
        session.select_blocks("march", "january")
    with pytest.raises(InvalidInput, match="Rows must be appended to a session that was opened on a table"):
        session.select_blocks("march").append(block(1))
    with pytest.raises(InvalidInput, match="a release, which is finished"):
        hr.release(block(0), universe=U, budget=APPROXIMATE, seed=1).append(block(1))


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"block": "january"}, "block must be a new name"),
        ({"block": ""}, "block must be a name of up to 200"),
        ({"block": "a\nb"}, "block must be a name of up to 200"),
        ({"budget": hr.Budget(1.0, 0.0)}, "The budget of a block must equal that of the first"),
        ({"budget": hr.Budget(1.0, 1e-6, "add-remove")}, "The budget of a block must equal that of the first"),
        ({"budget": hr.Budget(1.0, 1e-6, "replace", 2)}, "The budget of a block must equal that of the first"),
        ({"budget": 1.0}, "budget must be an hr.Budget"),
        ({"ledger": hr.Accountant(hr.Budget(3.0, 1e-6))}, "budget must be that of the ledger"),
    ],
)  # fmt: skip
def test_a_block_that_cannot_be_is_refused_and_nothing_has_changed(options, refusal) -> None:
    session = hr.open(block(0), universe=U, budget=APPROXIMATE, seed=1, block="january")
    with pytest.raises(InvalidInput, match=refusal):
        session.append(block(1), **options)
    assert list(session.blocks) == ["january"] and session.ledger.spent == session.spent


def test_the_same_rows_or_ledger_twice_are_refused() -> None:
    session = hr.open(block(0), universe=U, budget=APPROXIMATE, seed=1)
    with pytest.raises(InvalidInput, match="must not be those of another"):
        session.append(block(0))
    with pytest.raises(InvalidInput, match="ledger must be that of this block"):
        session.append(block(1), ledger=session.ledger)
    other = hr.Universe(age=hr.Integers(0, 7))
    with pytest.raises(InvalidInput, match="coded by the session's universe"):
        session.append(HistogramSource(other, np.arange(8)))
    assert len(session.blocks) == 1


def test_a_block_of_a_session_in_memory_is_resumed_with_its_ledger() -> None:
    ledgers = [Accountant(APPROXIMATE) for _ in range(2)]

    def opened() -> hr.Session:
        session = hr.open(block(0), universe=U, budget=APPROXIMATE, seed=1, ledger=ledgers[0])
        return session.append(block(1), ledger=ledgers[1])

    first = opened()
    said, spent = first.ask(hr.mean("age")), [b.spent for b in first.blocks.values()]
    ledgers = [Accountant(APPROXIMATE, earlier=each.entries()) for each in ledgers]
    again = opened()
    assert again.ask(hr.mean("age")).value == said.value
    assert [b.spent for b in again.blocks.values()] == spent


def test_blocks_of_persons_keep_as_many_rows_of_each_as_the_first() -> None:
    rng = np.random.default_rng(0)

    def visits(people: int) -> pd.DataFrame:
        who = rng.integers(0, people, 5 * people)
        return pd.DataFrame({"who": who, "age": rng.integers(0, 8, who.size), "sex": "F", "smoker": who % 2 == 0})

    budget = hr.Budget(1.0, 1e-6, "add-remove")
    session = hr.open(visits(3000), universe=U, budget=budget, unit="who", rows_per_unit=2, seed=1)
    session.append(visits(2000)).append(visits(1000), budget=hr.Budget(0.5, 1e-6, "add-remove"))
    assert [b.budget.rows_per_unit for b in session.blocks.values()] == [2, 2, 2]
    assert [round(b.rows, -3) for b in session.blocks.values()] == [6000, 4000, 2000]
    with pytest.raises(InvalidInput, match="unit must come with a table that has its column"):
        session.append(block(1))


def test_theory_blocks_need_a_public_number_of_rows() -> None:
    rows = 10**9
    options = {"universe": U, "profile": "theory", "queries": 50, "seed": 1}
    session = hr.open(block(0, rows), budget=hr.Budget(8.0, 1e-6), **options).append(block(1, rows))
    counts = block(0, rows).marginal(("sex",)) + block(1, rows).marginal(("sex",))
    answer = session.ask(hr.count(sex="F"))
    assert abs(answer.value - counts[0] / counts.sum()) <= answer.error
    with pytest.raises(InvalidInput, match="within must be at least the bar"):
        session.price(hr.count(sex="F"), within=1e-9)
    coming = hr.open(block(0, rows), budget=hr.Budget(8.0, 1e-6, "add-remove"), **options)
    with pytest.raises(InvalidInput, match="Blocks of the theory profile must have neighbours='replace'"):
        coming.append(block(1, rows))


def test_a_report_names_the_blocks_and_what_bars_may_fail_with() -> None:
    session = grown()
    session.ask(hr.count(sex="F"))
    facts = session.report(everybody=True).facts
    assert facts["blocks"] == "january, february, march" and facts["bars_fail"] == pytest.approx(0.1)
    assert len(session.log) == sum(len(b.ledger.entries()) for b in session.blocks.values())
    assert "blocks" not in session.select_blocks("march").report().facts


# The hypothesis of a new block begins with what the block before came to


def test_a_block_begins_with_what_the_one_before_it_taught() -> None:
    """A small block like a large one before it: its answers are nearer to the truth than those of a session of its own."""
    rows, loud = 100_000, hr.Budget(0.05, 1e-6)
    asked = questions(np.random.default_rng(5), 60)
    small = block(0, 2000)
    truths = np.array([bound(q, U).dot(small.marginal(bound(q, U).attributes)) / small.rows for q in asked])
    off = {"warm": [], "cold": []}
    for seed in range(8):
        first = hr.open(block(0, rows), universe=U, budget=hr.Budget(1.0, 1e-6), seed=seed)
        sessions = {
            "warm": first.append(small, budget=loud).select_blocks("2"),
            "cold": hr.open(small, universe=U, budget=loud, seed=seed),
        }
        for name, session in sessions.items():
            off[name].append(np.abs(np.array([a.value for a in session.ask_all(asked)]) - truths).mean())
    assert np.mean(off["warm"]) < 0.75 * np.mean(off["cold"])


def test_a_block_that_is_not_like_the_one_before_it_is_believed_itself() -> None:
    session = hr.open(block(0, 50_000), universe=U, budget=APPROXIMATE, seed=1).append(block(2, 50_000))
    truth = block(2, 50_000).marginal(("age",)) / block(2, 50_000).rows
    assert np.abs(session.select_blocks("2").hypothesis.marginal(("age",)) - truth).max() < 0.003


def test_potentials_are_carried_to_other_groups_by_shares() -> None:
    universe = hr.Universe(a=hr.Integers(0, 5))
    groups = np.array([0, 0, 1, 1, 2, 2])
    theirs = ValueGroups(universe, {"a": groups}, {"a": np.array([0.25, 0.75, 0.5, 0.5, 0.1, 0.9])})
    ours = ValueGroups(universe, {"a": np.array([0, 0, 0, 1, 2, 2])}, {"a": np.full(6, 0.5)})
    table = np.array([4.0, 2.0, 10.0])
    assert np.allclose(ours.regroup(theirs, "a", table, 0, summed=True), [4 + 1, 1, 10])
    assert np.allclose(ours.regroup(theirs, "a", table, 0, summed=False), [(4 + 1) / 1.5, 2, 10])
    none = ValueGroups.none(universe)
    assert np.allclose(none.regroup(theirs, "a", table, 0, summed=True), [1, 3, 1, 1, 1, 9])
    assert np.allclose(ours.regroup(none, "a", np.arange(6.0), 0, summed=True), [3, 3, 9])


def test_a_wide_attribute_is_warm_started_through_its_groups() -> None:
    universe = hr.Universe(place=hr.Integers(0, 99), sex=hr.Categories(["F", "M"]))
    shares = np.outer(1.0 / (1 + np.arange(100)), [0.3, 0.7])
    tables = [HistogramSource(universe, np.round(n * shares / shares.sum()).astype(np.int64)) for n in (60_000, 5_000)]
    session = hr.open(tables[0], universe=universe, budget=APPROXIMATE, seed=1).append(tables[1])
    learned = session.blocks["2"].engine.knowledge.learned
    assert learned.merging.groups and learned.prior_cells > 0
    for names, view in (((), session), (("2",), session.select_blocks("2"))):
        counts = tables[1].marginal(universe.names) + (0 if names else tables[0].marginal(universe.names))
        for low in (0, 1, 10, 50):
            answer = view.ask(hr.count(place=(low, low + 20), sex="F"))
            assert abs(answer.value - counts[low : low + 21, 0].sum() / counts.sum()) <= answer.error


# Means of fractions by rows that are known to intervals


def test_the_greatest_mean_is_the_greatest_over_all_rows_that_there_may_be() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        values, least = rng.random((4, 3)), rng.integers(0, 50, 4).astype(float)
        most = least + rng.integers(1, 50, 4)
        corners = np.array(list(itertools.product(*zip(least, most, strict=True))))
        corners = corners[corners.sum(axis=1) > 0]
        expected = (corners @ values / corners.sum(axis=1, keepdims=True)).max(axis=0)
        found = greatest_mean(values, least, most)
        assert np.allclose(found, expected if least.sum() > 0 else 1.0)
    exact = np.array([3.0, 5.0])
    assert greatest_mean(np.array([0.5, 0.1]), exact, exact) == pytest.approx(2.0 / 8)
    assert greatest_mean(np.array([0.5, 0.1]), np.zeros(2), exact) == 1.0


# Over time


@pytest.mark.parametrize("budget", [APPROXIMATE, PURE, COMING], ids=["approximate", "pure", "add-remove"])
def test_a_series_has_every_block_and_all_up_to_it_and_goes_on_with_the_next(budget) -> None:
    session, asked = grown(budget, blocks=1), hr.count(age=(2, 5), sex="F").over_time(share=0.1)
    true = np.array([block(i).marginal(("age", "sex"))[2:6, 0].sum() for i in range(3)])
    most = [0.0, 0.0, 0.0]
    for i in range(3):
        if i:
            session.append(block(i), block=NAMES[i])
        price, spent = session.price(asked), [b.spent for b in session.blocks.values()]
        answer = session.ask(asked)
        paid = [b.spent - a for a, b in zip(spent, session.blocks.values(), strict=True)]
        assert answer.source == "measured" and answer.cost == pytest.approx(price) == pytest.approx(max(paid))
        assert answer.value.shape == (i + 1, 2) and np.allclose(np.cumsum(answer.value[:, 0]), answer.value[:, 1])
        expected = np.stack([true, np.cumsum(true)], axis=1)[: i + 1]
        assert np.all(np.abs(answer.value - expected) <= answer.error)
        again = session.ask(asked)
        assert again.source == "repeat" and again.cost == 0 and np.array_equal(again.value, answer.value)
        most = [a + b for a, b in itertools.zip_longest(most, paid, fillvalue=0.0)]
    for cost, each in zip(most, session.blocks.values(), strict=True):
        assert cost <= 0.1 * each.budget.total * (1 + 1e-9)
    frame = answer.frame
    assert list(frame.columns) == ["block", "count", "value", "error", "typical"] and list(frame["block"][::2]) == [
        *NAMES
    ]
    assert session.report(everybody=True).charges and session.report().answers[-1].query == asked


def test_series_are_told_apart_and_each_has_its_part_of_beta() -> None:
    session = grown()
    one, two = (hr.count(age=a).over_time(share=0.02) for a in (1, 2))
    first, second = session.ask(one), session.ask(two)
    assert second.source == "measured" and np.all(second.error > first.error)
    assert np.array_equal(session.ask(one).error, first.error)  # whatever came since
    wide = session.ask(hr.count(age=1).over_time(share=0.02, span=2))
    assert wide.source == "measured" and not np.array_equal(wide.value, first.value)


def test_all_series_however_often_they_grow_share_half_of_the_second_beta(monkeypatch) -> None:
    used: list[float] = []

    def recorded(nodes, blocks, span, beta):
        used.append(beta)
        return estimate_counts(nodes, blocks, span, beta)

    monkeypatch.setattr("hedgerow.answering.over_time.estimate_counts", recorded)
    session = hr.open(block(0), universe=U, budget=APPROXIMATE, seed=1, beta=0.04, reserve=0.5)
    for i in range(4):
        for age in (1, 2, 3):
            session.ask(hr.count(age=age).over_time(share=0.01))
        session.append(block(i % 3, 500 + i))
    assert len(used) == 12 and 0.01 < sum(used) <= 0.04 / 2 * (1 + 1e-9)


def test_a_series_that_a_block_cannot_pay_is_refused_before_any_is_charged() -> None:
    session = grown()
    session.select_blocks("march").ask(hr.count(age=3, smoker=True), within=0.005)
    spent = [b.spent for b in session.blocks.values()]
    with pytest.raises(BudgetExceeded, match="Every block must be able to pay for its part of the series"):
        session.ask(hr.count(age=3).over_time(share=0.19))
    assert [b.spent for b in session.blocks.values()] == spent


@pytest.mark.parametrize(
    ("ask", "refusal"),
    [
        (lambda s: s.ask(hr.count(age=1).over_time(), within=0.1), "within must be left out of a count over time"),
        (lambda s: s.select_blocks("march").ask(hr.count(age=1).over_time()), "must be about all blocks, from the first on"),
        (lambda s: s.ask_all([hr.count(age=1).over_time()]), "A count over time must be asked alone"),
        (lambda s: s.ask(hr.linear("age", np.linspace(0, 1, 8)).over_time()), "A count over time must count rows"),
        (lambda s: hr.count(age=1).over_time(span=3), "span must be a power of two"),
        (lambda s: hr.count(age=1).over_time(span=0), "span must be a whole number"),
        (lambda s: hr.count(age=1).over_time(share=0.0), "share must be above 0"),
        (lambda s: hr.mean("age").over_time(), "must be a count"),
        (lambda s: hr.count(age=1).over_time() & hr.count(age=2), "must be a count"),
    ],
)  # fmt: skip
def test_questions_other_than_counts_over_time_are_refused(ask, refusal) -> None:
    session = grown(blocks=3)
    spent = session.spent
    with pytest.raises(InvalidInput, match=refusal):
        ask(session)
    assert session.spent == spent


def test_a_series_is_written_and_read_as_a_text_and_as_json() -> None:
    asked = hr.count(sex="F", age=(1, 3)).over_time(span=8)
    assert question("count(sex='F', age=(1, 3)).over_time(span=8)") == asked
    assert hr.wire.loads(hr.wire.dumps(asked)) == asked and question(repr(asked)) == asked
    assert asked != hr.count(sex="F", age=(1, 3)).over_time()


@pytest.mark.parametrize("event", [Gaussian(1.0, 30.0), Laplace(1.0, 20.0)], ids=["Gaussian", "Laplace"])
def test_the_bars_of_a_series_hold_for_all_times_and_are_of_the_tree(event) -> None:
    """β = 0.1 over 4,000 runs: more than 500 fail with probability below 10⁻⁷. And noise grows as a tree's does."""
    blocks, span, runs = 21, 8, 4000
    places = list(due(blocks, span))
    spread = event.sigma if isinstance(event, Gaussian) else event.scale
    ledger, noise = Accountant(hr.Budget(1e9, 0.0 if isinstance(event, Laplace) else 1e-6)), Noise()
    drawn = noise.add(np.zeros((runs, len(places)), np.int64), ledger.charge(event))

    def of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        nodes = [Node(*place, float(value), event) for place, value in zip(places, values, strict=True)]
        return estimate_counts(nodes, blocks, span, 0.1)

    true = np.arange(blocks) * 10.0
    values, errors, usual = of(np.array([true[first : last + 1].sum() for first, last in places]))
    assert np.allclose(values, np.stack([true, np.cumsum(true)], axis=1))  # right but for the noise, and linear in it
    by_node = np.array([of(one)[0] for one in np.eye(len(places))])
    off = np.abs(np.tensordot(drawn, by_node, axes=1))
    assert np.allclose(off[0], np.abs(of(drawn[0])[0]))
    assert (off > errors).any(axis=(1, 2)).sum() <= 500
    assert np.allclose(off.mean(axis=0), usual, rtol=0.2)  # of Laplace noise alone it is 13 % too much
    assert errors[:, 1].max() < 12 * spread and usual[7, 1] < usual[6, 1]  # a whole tree is one sum


def test_a_tail_is_that_of_the_noise() -> None:
    """By draws: of 40,000, one in twenty at most are beyond the bound for β = 0.05."""
    weights = np.array([1.0, -0.5, 0.25, 0.0])
    for event, budget in ((Gaussian(1.0, 3.0), hr.Budget(1e9, 1e-6)), (Laplace(1.0, 2.0), hr.Budget(1e9, 0.0))):
        drawn = Noise().add(np.zeros((40_000, 4), np.int64), Accountant(budget).charge(event))
        nodes = [Node(i, i, 0.0, event) for i in range(4)]
        bound_ = tail(weights, nodes, 0.05)
        beyond = float((np.abs(drawn @ weights) > bound_).mean())
        assert beyond <= 0.05 and float((np.abs(drawn @ weights) > bound_ / 2).mean()) > 0.05
