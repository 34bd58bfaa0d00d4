"""Rounds after an overview choose and measure the residuals that the overview leaves unknown."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.engine import CERTIFICATE, RESERVE_OF_UNKNOWN
from hedgerow.engine.practical.fit.residuals import Evidence, center
from hedgerow.engine.practical.free_answers import FittedModel, FreeAnswers
from hedgerow.engine.practical.measure import prefit as selection
from hedgerow.engine.practical.measure.prefit import Prefit, residual_event
from hedgerow.engine.practical.measurement import Measurement
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.events import Gaussian, Planned
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded
from hedgerow.serialize import decode_state, encode_state

UNIVERSE = hr.Universe(a=hr.Flag(), b=hr.Flag(), c=hr.Flag(), d=hr.Integers(0, 5), e=hr.Categories(["x", "y", "z"]))
PARITY = ("a", "b", "c")
ROWS = 20_000


def table(rows: int = ROWS) -> HistogramSource:
    """c says whether a and b differ, which no pair shows; e follows from d, which a pair shows; all else is independent."""
    cells = np.indices(UNIVERSE.shape)
    a, b, c, d, e = cells
    weights = np.where(c == (a != b), 0.8, 0.2) * np.where(e == d // 2, 0.9, 0.05)
    weights = weights / weights.sum()
    return HistogramSource(UNIVERSE, np.round(rows * weights).astype(np.int64))


def fitted(
    neighbours: str = "add-remove", seed: int = 0, model_cells: int = selection.MODEL_CELLS, **changed: object
) -> tuple[Prefit, Accountant]:
    budget = hr.Budget(1.0, 1e-6, neighbours)
    ledger, data = Accountant(budget), table()
    rows = float(data.rows) if neighbours == "replace" else None
    with pytest.MonkeyPatch.context() as patched:
        for name, value in changed.items():
            patched.setattr(selection, name, value)
        asked = selection.EverySmallSet(UNIVERSE)
        made = Prefit(data, Seeded(seed), asked, Allowance(ledger, 0.9 * budget.total), rows, model_cells=model_cells)
        made.run()
    return made, ledger


def after_the_overview(made: Prefit) -> list[Measurement]:
    assert made.learned.overview is not None
    return made.learned.measurements[made.learned.overview.measured :]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_only_the_residual_of_three_attributes_is_measured(neighbours) -> None:
    made, ledger = fitted(neighbours)
    chosen = after_the_overview(made)
    (parity,) = (m for m in chosen if m.attributes == PARITY)
    assert parity.residual and parity.values == pytest.approx(center(parity.values))
    assert all(m.residual == (len(m.attributes) == 3) for m in chosen)
    # one coordinate, that a row of flags moves by (1/2)^(3/2), or twice that where it may be replaced
    moved = math.sqrt(1 / 8) * (1 if neighbours == "add-remove" else 2)
    assert parity.event.sensitivity == pytest.approx(moved, rel=1e-3)
    assert ledger.spent == pytest.approx(0.9 * ledger.budget.total, rel=1e-6)
    true = made._data.marginal(PARITY)
    assert made.learned.rows * made.learned.marginal(PARITY) == pytest.approx(true, abs=0.01 * ROWS)


def test_the_first_choice_knows_what_the_overview_says() -> None:
    """The pair that was strong before it was measured has little more to teach."""
    for seed in range(4):
        assert after_the_overview(fitted(seed=seed)[0])[0].attributes == PARITY


def test_a_model_that_has_all_cells_may_have_any_set() -> None:
    """It has no more cells with them, however few cells a model should have."""
    made, _ = fitted(model_cells=UNIVERSE.size // 2)
    assert made.learned.model.tree.cells == UNIVERSE.size
    assert PARITY in [m.attributes for m in after_the_overview(made)]


def test_a_residual_counts_the_noise_of_smaller_tables_against_it_but_what_it_teaches_is_its_own() -> None:
    rng = np.random.default_rng(1)
    evidence = Evidence(UNIVERSE, 5e3)
    sigmas = {s: 5.0 + i for i, s in enumerate([("a",), ("b",), ("d",), ("a", "b"), ("a", "d"), ("b", "d")])}
    for s, σ in sigmas.items():
        values = center(rng.normal(size=UNIVERSE.sizes(s)))
        evidence.add(Measurement(s, values, Gaussian(1.0, σ), residual=True))
    assert evidence.lacks_residual(("a", "b", "d"))
    assert not evidence.lacks_residual(("a", "b")) and not evidence.lacks_residual(("a", "b", "c"))
    below = evidence.variance_below(("a", "b", "d"))
    own = Measurement(("a", "b", "d"), np.zeros((2, 2, 6)), Gaussian(1.0, 3.0), residual=True)
    evidence.add(own)
    whole = evidence.estimate(("a", "b", "d"))[1]
    assert whole - below == pytest.approx(9.0 * (1 / 2) * (1 / 2) * (5 / 6)) and below > 0
    assert not evidence.lacks_residual(("a", "b", "d"))


def test_the_variance_that_is_expected_of_a_residual_is_what_it_has() -> None:
    made, ledger = fitted()
    amount = Allowance(Accountant(ledger.budget), 0.01 * ledger.budget.total)
    names = ("a", "d", "e")
    by = made._contrasts(names)
    σ = residual_event(amount, by, None).sigma
    spread = np.ones((1, 1))
    for each in by:
        spread = np.kron(spread, each.inverse)
    assert made._residual_variance(names, amount) == pytest.approx(σ**2 * np.square(spread).sum(axis=1).mean())


def test_attributes_of_few_values_have_less_noise_where_nobody_says_what_is_asked() -> None:
    def noise(exponent: float) -> dict[tuple[str, ...], float]:
        learned = fitted(FEW_VALUES=exponent)[0].learned
        assert learned.overview is not None
        first = learned.measurements[: learned.overview.measured]
        return {m.attributes: m.event.sigma for m in first}

    alike, usual = noise(0.0), noise(selection.FEW_VALUES)
    assert (
        usual["a", "b"] < 0.97 * alike["a", "b"]
        and usual["d",] > alike["d",]
        and usual["d", "e"] > 1.02 * alike["d", "e"]
    )
    shares = {s: (usual[s] / alike[s]) ** -2 for s in alike}  # of the budget, over what it was
    # √(often) of each attribute: a flag's is 3^(1/4) times that of one of six values
    assert shares["a", "b"] / shares["b", "d"] == pytest.approx(3 ** (selection.FEW_VALUES / 2), rel=0.05)


def test_the_gain_of_attributes_of_few_values_costs_uniform_questions_less_than_a_hundredth() -> None:
    """As docs/proofs/residuals.md says, of the mean deviation of sets of one, two and three attributes."""

    def deviation(exponent: float) -> float:
        made = fitted(FEW_VALUES=exponent)[0]
        overview = made.learned.overview
        assert overview is not None
        first = {m.attributes: m.variance for m in made.learned.measurements[: overview.measured]}
        asked = {name: each.asked for name, each in zip(UNIVERSE.names, made._contrasts(UNIVERSE.names), strict=True)}
        found = []
        for size in (1, 2, 3):
            of_size = []
            for t in itertools.combinations(UNIVERSE.names, size):
                inside = (s for s in first if set(s) <= set(t))
                of_size.append(
                    sum(first[s] * math.prod(asked[a][0 if a in s else 1] for a in t) for s in inside) ** 0.5
                )
            found.append(float(np.mean(of_size)))
        return float(np.mean(found))

    assert deviation(selection.FEW_VALUES) < 1.01 * deviation(0.0)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_bars_are_those_of_the_overview_and_a_resumed_session_has_them(neighbours) -> None:
    """Later measurements are chosen by earlier results, so no bar rests on their noise."""
    data, budget = table(), hr.Budget(1.0, 1e-6, neighbours)
    session = hr.open(data, universe=UNIVERSE, budget=budget, seed=0)
    learned = session._engine.knowledge.learned
    assert any(m.attributes == PARITY for m in learned.measurements)
    assert not learned.overview.covers(PARITY)
    rows = float(data.rows) if neighbours == "replace" else None
    state = decode_state(json.loads(json.dumps(encode_state(learned.state()))))
    again = FittedModel.restore(UNIVERSE, rows, state)
    assert again.overview.sets == learned.overview.sets and not again.overview.covers(PARITY)
    assert again.evidence.estimate(PARITY)[1] == learned.evidence.estimate(PARITY)[1]
    public = None if rows is None else data.rows
    asked = [hr.count(a=True, d=(1, 3)).on(UNIVERSE), hr.count(a=True, b=True, c=False).on(UNIVERSE)]
    first, second = (FreeAnswers(each, 0.05, public).free_all(asked) for each in (learned, again))
    assert np.array_equal(first, second)


def test_a_snapshot_from_before_rounds_measured_residuals_is_read() -> None:
    """Then all residuals were the overview's."""
    made = fitted(OVERVIEW_ROUNDS=1, ROUNDS_AT_ONCE=1)[0].learned
    count = made.overview.measured
    made.measurements[count:] = []
    state = made.state()
    del state["overview"]
    assert FittedModel.restore(UNIVERSE, None, state).overview.measured == count
    for wrong in (-1, 0, count + 1):
        with pytest.raises(hr.InvalidInput, match=r"overview must .*Found"):
            FittedModel.restore(UNIVERSE, None, state | {"overview": wrong})


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_certificate_is_paid_from_what_was_planned(neighbours) -> None:
    budget = hr.Budget(1.0, 1e-6, neighbours)
    session = hr.open(table(), universe=UNIVERSE, budget=budget, seed=0, reserve=0.1, guard=0.0)
    (entry,) = (entry for entry in session.log if entry.why == "certificate")
    assert entry.events and all(isinstance(event, Planned) for event in entry.events)
    planned = [e for entry in session.log for e in entry.events if isinstance(e, Planned)]
    assert math.fsum(map(budget.cost, planned)) == pytest.approx(planned[0].share * budget.total, rel=1e-6)
    assert session.remaining == pytest.approx(0.1 * budget.total, rel=1e-3)


def test_with_a_small_public_n_no_certificate_is_planned_and_its_part_buys_something_else() -> None:
    budget, shares = hr.Budget(1.0, 1e-6), []
    for rows in (300, ROWS):
        session = hr.open(table(rows), universe=UNIVERSE, budget=budget, seed=0, reserve=0.1, guard=0.0)
        assert (session.certificate is None) == (rows == 300)
        shares.append(session.remaining / budget.total)
    assert shares == pytest.approx([0.1 + 0.9 * CERTIFICATE["rho"], 0.1], rel=1e-3)


def test_with_few_rows_no_certificate_is_bought_and_its_part_is_promised_to_nobody() -> None:
    """It was planned, as n is private, so it buys nothing else: what is said to be left is what questions may spend."""
    budget = hr.Budget(0.1, 1e-6, "add-remove")
    session = hr.open(table(200), universe=UNIVERSE, budget=budget, seed=0)
    assert session.certificate is None
    assert session.remaining <= (RESERVE_OF_UNKNOWN + 1e-9) * budget.total


def test_no_pair_shows_the_structure_of_the_table() -> None:
    """The table is the one of these tests."""
    counts = table().marginal(PARITY) / ROWS
    for pair in itertools.combinations(range(3), 2):
        away = next(i for i in range(3) if i not in pair)
        assert counts.sum(axis=away) == pytest.approx(np.full((2, 2), 0.25), abs=0.01)
    assert counts[0, 0, 0] == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("budget", [hr.Budget(4.0, 0.0), hr.Budget(4.0, 0.0, "add-remove")], ids=repr)
def test_synthetic_records_come_from_a_model_with_all_measurements_of_the_rounds(budget) -> None:
    """Without an overview too: e follows from d, and does so in synthetic records."""
    session = hr.open(table(), universe=UNIVERSE, budget=budget, guard=0.0, seed=3)
    records = session.synthetic(5000)
    follows = np.mean([{"x": 0, "y": 1, "z": 2}[e] == d // 2 for d, e in zip(records["d"], records["e"], strict=True)])
    assert follows > 0.8  # where the two are independent, a third
