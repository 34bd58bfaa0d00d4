"""n·err, sums of gradients and minimisers: no table and no neighbour, loss, set or scale moves them by more than is billed."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow import losses
from hedgerow.convex.sets import Box, GroupL1Ball, InterpolationBall, L1Ball, L2Ball, Simplex
from hedgerow.convex.solver import excess
from hedgerow.convex.solver import public_minimum as solver
from hedgerow.convex.solver.excess import excess_of, in_rows, per_row
from hedgerow.convex.solver.gradient_sums import GradientSums
from hedgerow.convex.solver.private_minimum import Surrogate, certain_place, locate_minimum, private_minimizer
from hedgerow.data import HistogramSource
from hedgerow.losses import Custom
from hedgerow.privacy.budget import Budget
from hedgerow.textbook.sparse_vector import FINEST

UNIVERSE = hr.Universe(
    y=hr.Flag(), r=hr.Range(-3, 5, bins=3), n=hr.Integers(0, 4), c=hr.Categories(["u", "v"], other=True)
)
KINDS = {
    "Logistic": ("y", ("r", "c")),
    "SmoothedHinge": ("y", ("r", "n")),
    "Hinge": ("y", ("c",)),
    "Squared": ("r", ("n", "y")),
    "Huber": ("r", ("c",)),
    "Absolute": ("n", ("y",)),
    "Pinball": ("r", ()),
    "Poisson": ("n", ("y",)),
    "MultinomialLogistic": ("c", ("y",)),
    "BoundedLogistic": ("y", ("n",)),
}
SETS = {
    "L2Ball": L2Ball,
    "L1Ball": L1Ball,
    "Box": lambda size: Box(-size, size),
    "offset box": lambda size: Box(size / 3, size),
    "Simplex": Simplex,
    "GroupL1Ball": lambda size: GroupL1Ball(size, 2),
    "InterpolationBall": lambda size: InterpolationBall(size, 0.5),
}


@st.composite
def questions(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    target, features = KINDS[kind]
    own = {}
    if kind in ("SmoothedHinge", "Huber"):
        own["width"] = 10 ** draw(st.floats(-6, 3))
    ridge = draw(st.sampled_from([0.0, 0.0, 1e-300, 1e-9, 0.3, 1e6]))
    loss = getattr(losses, kind)(**own, target=target, features=features, ridge=ridge, intercept=True)
    ordinary = st.floats(-3, 3)
    size = 10 ** draw(st.one_of(ordinary, ordinary, st.floats(-300, 300), st.floats(-20, -8)))
    over = SETS[draw(st.sampled_from(sorted(SETS)))](size)
    return loss.on(UNIVERSE), over, size


@st.composite
def neighbours(draw, shape):
    """Counts, and the same with a row replaced or gone: sparse or full, from one row to billions."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cells = math.prod(shape)
    rows = draw(st.sampled_from([1, 2, 7, 100, 10**4, 10**6, 10**9]))
    spread = draw(st.sampled_from([0.01, 0.1, 1.0]))
    counts = rng.multinomial(rows, rng.dirichlet(np.full(cells, spread))).astype(np.int64)
    present = np.flatnonzero(counts)
    relation = draw(st.sampled_from(["replace", "add-remove"]))
    near = counts.copy()
    near[present[rng.integers(len(present))]] -= 1
    if relation == "replace":
        near[rng.integers(cells)] += 1
    return counts.reshape(shape), near.reshape(shape), relation


def check_one(question, data):
    risk, over, size = question
    counts, near, relation = data.draw(neighbours(risk.shape))
    budget = Budget(1.0, 1e-6, relation)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    try:
        with np.errstate(all="ignore"):  # sizes near the largest float
            theta = over.project(rng.normal(size=risk.dimension) * size)
            S, _ = risk.scale(over), risk.lipschitz(over)
    except hr.InvalidInput:  # infinite constants: refused before there are counts
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = float(counts.sum()) * (10 ** rng.uniform(-1.5, 1) if relation == "add-remove" else 1.0)
        error = S * 10 ** rng.uniform(-4, -1) if math.isfinite(S) else 1.0
        check_gradients(risk, over, theta, budget, max(estimate, 1.0), counts, near)
        check_places(risk, over, budget, counts, near, 10 ** rng.uniform(-2, 4))
        only_here = bool(rng.integers(2))
        found = excess_of(risk, over, theta, budget, max(estimate, 1.0), error, only_here=only_here)
        if found is None:
            return
        V, W = found.units(counts), found.units(near)
        assert abs(V - W) <= found.most
        for grid in (found.unit, found.unit * 2**7):
            moved = abs(Fraction(found.value(counts, grid)) - Fraction(found.value(near, grid)))
            assert moved <= Fraction(found.sensitivity(grid))
        assert abs(in_rows(found, counts, FINEST) - in_rows(found, near, FINEST)) <= 1


def check_gradients(risk, over, theta, budget, rows, counts, near):
    """Σ∇ℓ at a public θ, as noisy gradient descent releases it."""
    with np.errstate(all="ignore"):
        sums = GradientSums(risk, over, budget, rows)
        if sums.are_certain:
            assert np.linalg.norm(sums.at(theta, counts) - sums.at(theta, near)) <= sums.sensitivity


def check_places(risk, over, budget, counts, near, ridge):
    """The minimiser of Σℓ + (Λ/2)‖θ‖², as output perturbation releases it: L/Λ, and 2L/Λ where a row is replaced."""
    with np.errstate(all="ignore"):
        if not (over.is_bounded and 0 < (L := risk.lipschitz(over)) < math.inf):
            return
        change, places = budget.gradient(L) / ridge, []
        distance = change / 100
        for table in (counts, near):
            surrogate = Surrogate(risk, over, 0.1, ridge / max(int(table.sum()), 1))
            if not certain_place(surrogate, distance):
                return
            places.append(locate_minimum(surrogate, table, distance))
        assert np.linalg.norm(places[0] - places[1]) <= change + 2 * distance


quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]


@given(questions(), st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=quiet, derandomize=True)  # others take minutes: below
def test_one_row_moves_the_value_by_no_more_than_is_billed(question, data):
    check_one(question, data)


@pytest.mark.audit
@pytest.mark.parametrize("part", range(8))  # of a search of 5,600, so that cores share it
def test_one_row_moves_the_value_by_no_more_than_is_billed_in_a_long_search(part):
    @given(questions(), st.data())
    @settings(max_examples=700, deadline=None, suppress_health_check=quiet, database=None)
    def search(question, data):
        check_one(question, data)

    search()


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_value_is_err_within_what_is_stated(kind, relation):
    target, features = KINDS[kind]
    risk, over = getattr(losses, kind)(target=target, features=features).on(UNIVERSE), L2Ball(2.0)
    rng = np.random.default_rng(5)
    counts = rng.multinomial(10**5, rng.dirichlet(np.full(math.prod(risk.shape), 0.3))).reshape(risk.shape)
    theta = over.project(rng.normal(size=risk.dimension))
    error = 1e-3 * risk.scale(over)
    found = excess_of(risk, over, theta, Budget(1.0, 1e-6, relation), 10**5, error)
    truth = risk.objective(counts).value(theta) - solver.minimize_over(risk, counts, over, 1e-9).value
    value = found.units(counts) * found.unit
    assert truth - found.below <= value <= truth + 10**5 * (error + 0.01 * risk.scale(over) / 10**5)
    assert found.below <= 10**5 * error * 1.1 + 0.3 * risk.scale(over)
    assert found.most * found.unit <= 1.06 * Budget(1.0, 1e-6, relation).bounded_sum(risk.scale(over))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_record_loses_or_gains_more_than_is_said_of_one_theta(kind):
    """And where that is less than S, some lose much of it."""
    target, features = KINDS[kind]
    risk, over = getattr(losses, kind)(target=target, features=features).on(UNIVERSE), L2Ball(2.0)
    rng = np.random.default_rng(6)
    theta = over.project(rng.normal(size=risk.dimension))
    found = excess_of(risk, over, theta, Budget(1.0, 1e-6), 1000, 1e-3 * risk.scale(over), only_here=True)
    ends = [over.minimize(rng.normal(size=risk.dimension)) for _ in range(300)]
    gains = np.array([risk.losses(theta) - risk.losses(end) for end in ends]) / found.unit
    assert -found.bound <= gains.min() and gains.max() <= found.gain <= found.bound
    wide = excess_of(risk, over, theta, Budget(1.0, 1e-6), 1000, 1e-3 * risk.scale(over))
    assert found.most == wide.most or (found.most < wide.most and gains.min() < -0.3 * found.bound)


def test_some_row_moves_the_value_by_nearly_what_is_billed():
    """The median of ±1: all rows at −1 and θ = 1, then one row at 1: n·err falls by 4 = 2S, or by 2 where a row goes."""
    universe = hr.Universe.from_sizes({"y": 2})
    risk, over = losses.Absolute(target="y").on(universe), Box(-1.0, 1.0)
    for relation, near, S in (("replace", [999, 1], 4.0), ("add-remove", [999, 0], 2.0)):
        found = excess_of(risk, over, np.array([1.0]), Budget(1.0, 1e-6, relation), 1000, 0.01)
        moved = found.units(np.array([1000, 0])) - found.units(np.array(near))
        assert 0.95 * S <= moved * found.unit <= found.most * found.unit <= 1.06 * S


def test_a_solver_as_bad_as_it_may_be_moves_the_value_by_no_more_than_is_billed(monkeypatch):
    """As above, with the best point for one table and one that leaves all of the promised gap for its neighbour."""
    universe = hr.Universe.from_sizes({"y": 2})
    risk, over, budget = losses.Absolute(target="y").on(universe), Box(-1.0, 1.0), Budget(1.0, 1e-6)
    found = excess_of(risk, over, np.array([1.0]), budget, 1000, 0.01, shares=(0.2,))
    before, near = np.array([1000, 0]), np.array([999, 1])
    f = found.surrogate.function(near)
    best, away = private_minimizer(found.surrogate, near, 1e-9), 1.0
    while 1000 * (f.value(best + away) - f.value(best)) > 0.99 * found.gap:
        away *= 0.99
    V = found.units(before)
    monkeypatch.setattr(excess, "private_minimizer", lambda *_: best + away)
    moved = V - found.units(near)
    assert 2 * found.bound + 0.5 * found.gap / found.unit < moved <= found.most


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_some_row_moves_a_sum_of_gradients_by_nearly_what_is_billed(relation):
    """Two rows on either side of a median, in the same direction and the opposite one."""
    universe = hr.Universe.from_sizes({"y": 2, "a": 2})
    risk, over, budget = (
        losses.Absolute(target="y", features=["a"]).on(universe),
        L2Ball(0.1),
        Budget(1.0, 1e-6, relation),
    )
    sums = GradientSums(risk, over, budget, 1000)
    counts = np.array([[0, 1000], [0, 0]])
    near = np.array([[0, 999], [0, 1 if relation == "replace" else 0]])
    moved = np.linalg.norm(sums.at(np.zeros(2), counts) - sums.at(np.zeros(2), near))
    assert 0.98 * sums.sensitivity <= moved <= sums.sensitivity
    assert sums.sensitivity <= 1.011 * budget.gradient(risk.lipschitz(over))


def test_a_scale_that_numbers_do_not_resolve_is_refused_from_public_facts():
    risk = losses.Logistic(target="y", features=("r", "n")).on(UNIVERSE)
    budget, theta = Budget(1.0, 1e-6), np.zeros(risk.dimension)
    assert excess_of(risk, L2Ball(1.0), theta, budget, 10**6, 1e-3) is not None
    for size in (1e-16, 1e-15, 1e-12, 1e-100, 1e-300):
        assert excess_of(risk, L2Ball(size), theta, budget, 10**6, 1e-3 * size) is None
    assert excess_of(risk, L2Ball(1.0), theta, budget, 10**15, 1e-3) is None


def test_sums_past_int64_are_exact():
    """The bound on a cell's units times the rows is past 2^63 from some 10^8 rows on."""
    counts = np.array([10**12, 3, 2**40])
    F = np.array([2**45, -(2**44), 7])
    assert excess._dot(counts, F, 10**12 * 2**45) == 10**12 * 2**45 - 3 * 2**44 + 7 * 2**40
    assert excess._dot(counts[1:], F[1:], 2**61) == -3 * 2**44 + 7 * 2**40


# Attacks: an analyst who knows every row but one


TABLE = hr.Universe(y=hr.Flag(), a=hr.Integers(0, 3), c=hr.Categories(["u", "v", "w"]), d=hr.Flag(), e=hr.Flag())


def million(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(10**6, rng.dirichlet(np.ones(96) * 2)).reshape(TABLE.shape)


def one_replaced(counts: np.ndarray, away: int, to: int) -> np.ndarray:
    near = counts.copy().reshape(-1)
    near[away] -= 1
    near[to] += 1
    return near.reshape(counts.shape)


def test_sets_so_small_that_sums_only_round_differently_are_never_compared():
    """If S is below a rounding step of the sum, the value of the guard would consist of the table's rounding errors."""
    counts = million()
    session = hr.open(HistogramSource(TABLE, counts), universe=TABLE, budget=hr.Budget(1.0, 1e-6), guard=0.1)
    assert session._engine.guard is not None
    before = len(session.log)
    for size in 10.0 ** np.linspace(-16, -14.5, 20):
        loss = losses.Logistic(target="y", features=["a", "c", "d", "e"])
        answer = session.ask(hr.minimize(loss, over=L2Ball(size)))
        assert answer.source == "hypothesis" and answer.cost == 0
    assert len(session.log) == before and not session._engine._watch.is_open


def test_the_guards_value_of_neighbours_differs_by_at_most_a_row_at_every_scale():
    counts = million()
    near = one_replaced(counts, 3, 60)
    risk = losses.Logistic(target="y", features=["a", "c", "d", "e"]).on(TABLE)
    theta, seen = np.zeros(risk.dimension), 0
    for size in np.geomspace(1e-15, 1e3, 25):
        found = excess_of(risk, L2Ball(size), theta, Budget(1.0, 1e-6), 10**6, 1e-3 * size)
        if found is not None:
            seen += 1
            assert abs(in_rows(found, counts, FINEST) - in_rows(found, near, FINEST)) <= 1
            assert per_row(found, FINEST) * found.unit <= 5 * risk.scale(L2Ball(size))
    assert seen > 5


def test_a_hinge_over_a_large_ball_keeps_its_promise_on_the_table_that_broke_an_ellipsoid():
    universe = hr.Universe(y=hr.Flag(), a=hr.Integers(0, 3), c=hr.Categories(["u", "v", "w"], other=True))
    counts = np.array(
        [
            [[0, 3, 30565, 149], [0, 0, 4019, 89242], [12905, 587048, 131, 55], [2855, 32, 2072, 2]],
            [[13508, 45687, 0, 25926], [0, 0, 1, 0], [184371, 0, 0, 187], [66, 27, 552, 597]],
        ]
    )
    near = one_replaced(counts, 24, 12)
    for loss in (
        losses.SmoothedHinge(width=1e-3, target="y", features=["a", "c"]),
        losses.Hinge(target="y", features=["a", "c"]),
    ):
        for over in (L2Ball(100.0), Box(-100.0, 100.0), L2Ball(3.0)):
            risk = loss.on(universe)
            theta = over.project(np.array([2.0, -1.0, 3.0, 0.5, 1.0, 1.0]))
            found = excess_of(risk, over, theta, Budget(1.0, 1e-6), 10**6, 0.01 * risk.scale(over))
            if found is not None:
                assert abs(found.units(counts) - found.units(near)) <= found.most


# A user's own loss


SMALL = hr.Universe(a=hr.Integers(0, 3), sick=hr.Flag())
BASE = np.array([[1200, 100], [1250, 90], [1180, 110], [1070, 0]])


class Watched:
    """½(θ − h)² by functions that remember every θ they are shown."""

    def __init__(self, **constants):
        self.seen = []
        given = {"lipschitz": 1.0, "smoothness": 1.0, "strong_convexity": 1.0, **constants}
        self.loss = Custom(self.value, self.gradient, ("a", "sick"), 1, **given)

    def value(self, theta, records):
        self.seen.append(theta.copy())
        return 0.5 * (theta[0] - (records["a"] <= 1)) ** 2

    def gradient(self, theta, records):
        self.seen.append(theta.copy())
        return (theta[0] - (records["a"] <= 1))[:, None]


def opened(counts, **options):
    given = {"universe": SMALL, "budget": hr.Budget(1.0, 1e-6), "reserve": 0.3, "guard": 0.1, **options}
    return hr.open(HistogramSource(SMALL, counts), **given)


def test_a_users_functions_never_see_what_was_found_on_the_data():
    """Between the hypothesis and the answer nothing is asked of the data, and ``within`` is refused before a charge."""
    watched = Watched()
    session = opened(BASE)
    question = hr.minimize(watched.loss, over=hr.Box(0.0, 1.0))

    def untouchable(attributes):
        raise AssertionError("read the data")

    session._data.marginal = untouchable
    spent = session.spent
    answer = session.ask(question)
    assert answer.source == "hypothesis" and answer.cost == 0 and watched.seen
    with pytest.raises(hr.InvalidInput, match=r"within must be used with one of hedgerow.losses, or .* trusts"):
        session.ask(question, within=1e-4)
    assert session.spent == spent


def test_an_owner_may_vouch_for_a_loss():
    watched, other = Watched(), Watched()
    session = opened(BASE, trusted_losses=[watched.loss], guard=0.0, workload=[hr.marginal("a"), hr.marginal("sick")])
    bought = session.ask(hr.minimize(watched.loss, over=hr.Box(0.0, 1.0)), within=0.2)
    assert bought.error <= 0.2
    with pytest.raises(hr.InvalidInput, match="trust"):
        session.ask(hr.minimize(other.loss, over=hr.Box(0.0, 1.0)), within=1e-4)
    with pytest.raises(hr.InvalidInput, match=r"trusted_losses must be a list of losses.Custom"):
        opened(BASE, trusted_losses=watched.loss)
    theory = {"profile": "theory", "queries": 10, "reserve": None, "guard": None}
    question = hr.minimize(losses.Squared(target="sick"), hr.Box(-2.0, 2.0))
    strict = opened(BASE * 10**6, workload=[question], **theory)
    with pytest.raises(hr.InvalidInput, match="must be trusted by the owner in the theory profile"):
        strict.ask(hr.minimize(watched.loss, over=hr.Box(0.0, 1.0)))


def test_a_vouched_loss_that_spikes_is_held_to_its_scale():
    """A value of 200 for the one record in question, where S = 2 was declared."""
    spikes = []

    def value(theta, records):
        target = (records["a"] == 3) & (records["sick"] == 1)
        return 0.5 * (theta[0] - (records["a"] <= 1)) ** 2 + 200.0 * target * (theta[0] in spikes)

    loss = Custom(value, Watched().gradient, ("a", "sick"), 1, lipschitz=1.0, smoothness=1.0, strong_convexity=1.0)
    risk, over = loss.on(SMALL), Box(0.0, 1.0)
    near = BASE.copy()
    near[3, 1] += 1
    near[3, 0] -= 1
    theta = np.array([0.1234])
    found = excess_of(risk, over, theta, Budget(1.0, 1e-6), 5000, 1e-3)
    spikes.append(0.1234)
    assert abs(found.units(BASE) - found.units(near)) <= found.most
    assert found.most * found.unit <= 2.5 * risk.scale(over)


def test_classes_of_ones_own_are_refused_as_losses_and_sets():
    """Their methods would be called with private values."""

    class Listening(losses.Logistic):
        pass

    class Wide(L2Ball):
        pass

    with pytest.raises(hr.InvalidInput, match=r"loss must be one of hedgerow.losses. Found Listening"):
        hr.minimize(Listening(target="y", features=["a"]), L2Ball(1.0))
    with pytest.raises(hr.InvalidInput, match=r"over must be a convex set. Found Wide"):
        hr.minimize(losses.Logistic(target="y", features=["a"]), Wide(1.0))


def test_larger_tables_than_were_foreseen_have_a_value_that_moves_as_billed():
    """n is private and far above its estimate: the value is held below a bound that falls by K a row."""
    risk, over = losses.Squared(target="y").on(UNIVERSE), Box(-1.0, 1.0)
    found = excess_of(risk, over, np.array([1.0]), Budget(1.0, 1e-6, "add-remove"), 100, 0.05)
    values = [found.units(np.array([n, 0])) for n in range(0, 900)]
    assert np.abs(np.diff(values)).max() <= found.most
    assert values[850] == 0 and values[400] > 0
    assert found.rows == excess.SPARE * 100


def test_the_minimum_is_looked_for_as_near_as_is_billed_and_a_row_of_the_guard_is_all_that_one_moves(monkeypatch):
    universe = hr.Universe.from_sizes({"y": 2})
    risk, over, budget = losses.Absolute(target="y").on(universe), Box(-1.0, 1.0), Budget(1.0, 1e-6)
    found = excess_of(risk, over, np.array([1.0]), budget, 1000, 0.01)
    asked = []
    monkeypatch.setattr(excess, "private_minimizer", lambda surrogate, counts, near: asked.append(near) or np.zeros(1))
    found.units(np.array([400, 600]))
    assert asked[0] * 1000 <= found.gap * (1 + 1e-12)
    assert per_row(found, 2.0**-20) >= found.most
