"""Both sources of noise, as mechanisms call them: scale, grid, tails and independence, and each test against broken sources."""

from __future__ import annotations

import contextlib
import io
import math
import subprocess
import sys
from decimal import Decimal, localcontext

import numpy as np
import pytest
from exact_laws import (
    ENDS,
    FALSE_FAIL,
    FALSE_PASS,
    PAIRS_NEEDED,
    RIGHT,
    SCALES,
    are_independent,
    draws_needed,
    is_uniform,
    needed_for_scales,
    p_value,
    uniforms,
    wrong_scale,
)
from paying import paid
from people import SMALL, frame
from recording import measured_noises
from scipy import special, stats

import hedgerow as hr
from hedgerow.data import Table
from hedgerow.privacy import noise
from hedgerow.privacy.amplification import subsampled_gaussian
from hedgerow.privacy.events import COIN, Exponential, Gaussian, Laplace
from hedgerow.privacy.noise import Noise, Seeded

SOURCES = {"private": Noise, "seeded": lambda: Seeded(3)}
both = pytest.mark.parametrize("made", SOURCES.values(), ids=list(SOURCES))
kinds = pytest.mark.parametrize("kind", [Laplace, Gaussian])
FEW, MANY = 50, 2 * noise._OPENDP_UP_TO  # cells: OpenDP's, and our own sampler's


def released(source: Noise, event: Laplace | Gaussian, cells: int, count: int) -> np.ndarray:
    """At least ``count`` noises on tables of so many cells, a row for each table."""
    return np.stack([source.add(np.zeros(cells), paid(event)) for _ in range(math.ceil(count / cells))])


# Scale and grid


@both
@kinds
@pytest.mark.parametrize("cells", [FEW, MANY])
def test_noise_has_the_scale_and_the_grid_that_were_billed(made, kind, cells) -> None:
    """Power against a scale of 0.5, 0.8 and 1.25 times the right one, and so against a grid that is left out."""
    rng, source, u = np.random.default_rng(1), made(), []
    for scale, grid in [(40.0, 2.0**-14), (0.7, 1.0), (900.0, 8.0), (3.0, 0.25)]:
        event = kind(1.0 + grid, scale, grid)
        u.append(uniforms(released(source, event, cells, needed_for_scales(kind)), event, rng))
        assert is_uniform(u[-1])
    assert is_uniform(np.concatenate(u))


class Broken(Seeded):
    """A source of noise with one defect, chosen by name."""

    def __init__(self, defect: str, times: float = 1.0) -> None:
        super().__init__(4)
        self.defect, self.times, self.last = defect, times, None

    def _add_in_steps(self, steps, event):
        drawn = super()._add_in_steps(np.zeros_like(steps), event)
        match self.defect:
            case "scale":
                drawn = np.rint(drawn * self.times).astype(np.int64)
            case "grid left out":
                kind = type(event)
                spread = event.scale if kind is Laplace else event.sigma
                drawn = super()._add_in_steps(np.zeros_like(steps), kind(event.sensitivity, spread))
            case "reused":
                drawn = self.last = drawn if self.last is None else self.last
            case "shared":
                drawn = np.broadcast_to(drawn[..., :1], drawn.shape)
        return steps + drawn


@kinds
@pytest.mark.parametrize("times", SCALES)
def test_a_source_of_another_scale_is_seen(kind, times) -> None:
    event = kind(1.0, 4000.0)
    drawn = released(Broken("scale", times), event, MANY, needed_for_scales(kind))
    assert not is_uniform(uniforms(drawn, event, np.random.default_rng(2)))


@kinds
def test_a_source_that_leaves_the_grid_out_is_seen(kind) -> None:
    for event in (kind(1.0, 40.0, 2.0**-14), kind(9.0, 900.0, 8.0)):
        drawn = released(Broken("grid left out"), event, MANY, needed_for_scales(kind))
        assert not is_uniform(uniforms(drawn, event, np.random.default_rng(2)))


# Tails: by the words themselves, without waiting for them


class Given(Noise):
    """Noise from these words, one after the other; then from zeros, which accept what is proposed."""

    def __init__(self, words) -> None:
        super().__init__()
        self.left = [int(w) for w in words]

    def _words(self, count):
        given, self.left = self.left[:count], self.left[count:]
        return np.array(given + [0] * (count - len(given)), dtype=np.uint64)


LAST = 2**64 - 1  # the word whose exponential is 0


def exp_words(x: Decimal) -> Decimal:
    """2^64·e^−x: how many words have an exponential of at least x."""
    with localcontext() as context:
        context.prec = 60
        return (-x).exp() * 2**64


@pytest.mark.parametrize("s", [0.6, 1.0, 6.5, 250.25, 2.0**20])
def test_the_tail_of_laplace_noise_has_its_probability_to_forty_scales(s) -> None:
    """Pr[G ≥ k] = e^(−k/s): word for word, on both sides of where it changes; and G − G′ is handed on as it is."""
    for scales in (0.5, 1, 4, 8, 11.9, 12.1, 13, 20, 30, 40):
        k = max(1, math.ceil(scales * s))
        words = exp_words(Decimal(k) / Decimal(s))
        inside, outside = int(words) - 1, int(words) + 1  # the word at the boundary is settled by further bits
        assert Given([inside, LAST])._laplace(s, 1)[0] >= k > Given([outside, LAST])._laplace(s, 1)[0] >= 0
        assert -Given([LAST, inside])._laplace(s, 1)[0] >= k > -Given([LAST, outside])._laplace(s, 1)[0] >= 0


@pytest.mark.parametrize("further", [1, 2**40, 2**63])
def test_the_tail_of_laplace_noise_goes_on_where_a_word_ends(further) -> None:
    with localcontext() as context:
        context.prec = 60
        expected = math.floor(10 * -(Decimal(further) / 2**128).ln())
    assert Given([0, LAST, further])._laplace(10.0, 1)[0] in (expected, expected - 1)
    assert expected > 440


@pytest.mark.parametrize("σ", [0.7, 1.0, 6.5, 250.25, 2.0**19])
def test_the_tail_of_gaussian_noise_has_its_probability_to_eight_deviations(σ) -> None:
    """Proposed with probability ∝ e^(−|k|/t), and kept with a(k) so that both together are ∝ e^(−k²/2σ²): word for word."""
    t = math.floor(σ) + 1
    proposals = 17  # for one draw

    def kept(k: int, coin: int) -> bool:
        first = int((exp_words(Decimal(abs(k)) / t) + exp_words(Decimal(abs(k) + 1) / t)) / 2)
        words = [LAST] * (2 * proposals)
        words[0 if k >= 0 else proposals] = first
        coins = [LAST] * proposals  # the other proposals, all of them 0, are turned down
        coins[0] = coin
        found = Given(words + coins)._gaussian(σ, 1).tolist()
        assert found in ([], [k])
        return found == [k]

    with localcontext() as context:
        context.prec = 60
        variance = Decimal(σ) ** 2
        for k in (math.ceil(d * σ) for d in (0.3, 1.0, 2.0, 3.9, 4.1, 5.0, 6.5, 8.0)):
            # a(k)·e^(−k/t) = e^(−k²/2σ²)·c, with the c for which a is 1 where it is largest
            boundary = int(exp_words(Decimal(k * k) / (2 * variance) - Decimal(k) / t + variance / (2 * t * t)))
            assert boundary > 1000
            for signed in (k, -k):
                assert kept(signed, boundary - 1) and not kept(signed, boundary + 1)


@kinds
@pytest.mark.parametrize("cells", [FEW, MANY])
def test_every_draw_is_released_as_it_is(kind, cells) -> None:
    """No step between the sampler and the release may cut, fold or rescale it, however far out it is."""

    class Far(Seeded):
        def _add_in_steps(self, steps, event):
            return steps + far

    event = kind(1.0, 3.0, 0.25)
    for far in (-(2**45), -(10**6), -145, 49, 97, 10**6, 2**45):
        assert np.array_equal(Far(1).add(np.full(cells, 2.5), paid(event)), np.full(cells, 2.5 + far / 4))


@kinds
@pytest.mark.parametrize("made", [Noise, lambda: Seeded(5)])
def test_far_draws_are_as_frequent_as_the_law_says(made, kind) -> None:
    """Beyond 4σ, and beyond 12 scales: 18 and 60 are expected, and none would be seen if tails were cut there."""
    size, beyond = (3_000_000, 12) if kind is Laplace else (1_000_000, 4)
    event = kind(1.0, 50.0)
    law = stats.laplace if kind is Laplace else stats.norm
    expected = 2 * law.sf((beyond * 50 + 0.5) / 50) * size
    far = np.count_nonzero(np.abs(made().add(np.zeros(size), paid(event))) > beyond * 50)
    assert math.exp(-expected) < FALSE_PASS
    assert stats.poisson.ppf(FALSE_FAIL / 2, expected) <= far <= stats.poisson.isf(FALSE_FAIL / 2, expected)


@pytest.mark.audit
@kinds
def test_far_draws_of_small_tables_are_as_frequent_as_the_law_says(kind) -> None:
    """OpenDP's sampler, as we call it: as many draws as have 18 Laplace or 30 Gaussian ones that far."""
    beyond, size = (12, 3_000_000) if kind is Laplace else (4, 500_000)
    source, far = Noise(), 0
    law = stats.laplace if kind is Laplace else stats.norm
    for _ in range(size // 250):
        far += np.count_nonzero(np.abs(source.add(np.zeros(250), paid(kind(1.0, 50.0)))) > beyond * 50)
    expected = 2 * law.sf((beyond * 50 + 0.5) / 50) * size
    assert stats.poisson.ppf(FALSE_FAIL / 2, expected) <= far <= stats.poisson.isf(FALSE_FAIL / 2, expected)


# Independence


def pairs_of(table: np.ndarray, event) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Uniforms of noises, a row for each release: neighbours in a release, and the same cell in the next."""
    u = uniforms(table, event, np.random.default_rng(6)).reshape(table.shape)
    return {
        "cells": (u[:, :-1].ravel(), u[:, 1:].ravel()),
        "far cells": (u[:, : u.shape[1] // 2].ravel(), u[:, u.shape[1] - u.shape[1] // 2 :].ravel()),
        "releases": (u[:-1].ravel(), u[1:].ravel()),
    }


@both
@kinds
@pytest.mark.parametrize("cells", [FEW, MANY])
def test_no_cell_and_no_release_tells_of_another(made, kind, cells) -> None:
    event = kind(1.0, 70.0)
    pairs = pairs_of(released(made(), event, cells, max(4 * PAIRS_NEEDED, 4 * cells)), event)
    assert all(are_independent(*pair) for pair in pairs.values())


@kinds
def test_noise_that_is_used_again_or_shared_is_seen(kind) -> None:
    event = kind(1.0, 70.0)
    for defect, where in (("reused", "releases"), ("shared", "cells")):
        pairs = pairs_of(released(Broken(defect), event, 20, 4 * PAIRS_NEEDED), event)
        assert not are_independent(*pairs[where])


@kinds
def test_two_sources_tell_nothing_of_each_other(kind) -> None:
    event, rng = kind(1.0, 70.0), np.random.default_rng(7)
    sources = [Noise(), Noise(), Seeded(1), Seeded(2)]
    u = [uniforms(released(source, event, MANY, PAIRS_NEEDED), event, rng) for source in sources]
    assert all(are_independent(u[i], u[j]) for i, j in ((0, 1), (0, 2), (2, 3), (1, 3)))
    again = uniforms(released(Seeded(1), event, MANY, PAIRS_NEEDED), event, rng)
    assert not are_independent(u[2], again)


DRAWN_ELSEWHERE = """
import sys; sys.path.insert(0, "tests")
from paying import paid
from hedgerow.privacy.events import Laplace
from hedgerow.privacy.noise import Noise
import numpy as np
source, event = Noise(), Laplace(1.0, 2.0**39)
print(*source.add(np.zeros(600), paid(event)).astype(int), *source.add(np.zeros(200), paid(event)).astype(int))
print(*[int(source._comparison(2.0**20) * 2**20) for _ in range(200)])
"""


def test_two_processes_never_draw_the_same() -> None:
    """2^39 steps wide: among a thousand draws of either, a pair is equal by chance with a probability below 10^-5."""
    elsewhere = subprocess.run([sys.executable, "-c", DRAWN_ELSEWHERE], capture_output=True, text=True, check=True)
    here: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(DRAWN_ELSEWHERE, here)
    drawn = [set(text.split()) for text in (elsewhere.stdout, said.getvalue())]
    assert min(map(len, drawn)) > 990
    assert len(drawn[0] & drawn[1]) <= 2


# A session without a seed


@pytest.mark.parametrize("how", [hr.open, hr.release], ids=["open", "release"])
def test_a_session_without_a_seed_draws_what_no_other_session_drew(how) -> None:
    """Tables have four cells, and noise a standard deviation above 10: two equal draws have a chance below 10^-6."""
    table = Table(frame(2000), SMALL)

    def draws(**seed) -> set[tuple[float, ...]]:
        session = how(table, universe=SMALL, budget=hr.Budget(1.0, 1e-6), workload=[hr.marginal(*SMALL.names)], **seed)
        return {tuple(z.ravel().tolist()) for _, z in measured_noises(session._engine, table) if z.size >= 4}

    first, others = draws(), (draws(), draws(seed=0), draws(seed=1))
    assert first and all(first.isdisjoint(other) for other in others)
    assert draws(seed=0) == others[1]


def test_a_call_of_erm_without_a_seed_draws_what_no_other_call_drew() -> None:
    X, y = np.tile(np.eye(3), (50, 1)), np.tile([0.5, -0.2, 0.1], 50)
    given = {"loss": hr.losses.Squared(ridge=0.1), "over": hr.L2Ball(1.0), "budget": hr.Budget(1.0, 1e-6)}
    thetas = [
        tuple(hr.erm.output_perturbation(X, y, **given, **seed).theta) for seed in ({}, {}, {"seed": 0}, {"seed": 1})
    ]
    assert len(set(thetas)) == 4


# Choices


def of_scores(scores: np.ndarray, event: Exponential, times: float = 1.0) -> np.ndarray:
    """exp(ε·score/2Δ), normalised; the Gumbel noise so many times as wide."""
    return special.softmax(scores * event.epsilon / (2 * event.sensitivity * times))


def choices_needed(scores: np.ndarray, event: Exponential) -> int:
    right = of_scores(scores, event)
    return max(draws_needed(right, of_scores(scores, event, times)) for times in SCALES)


@both
def test_a_choice_among_few_is_the_exponential_mechanism(made) -> None:
    """Power against Gumbel noise of 0.5, 0.8 and 1.25 times its scale."""
    event, scores, source = Exponential(3.0, 0.9), np.array([0.0, 8.0, 20.0, 13.0]), made()
    chosen = [source.choose(scores, paid(event)) for _ in range(choices_needed(scores, event))]
    assert p_value(np.bincount(chosen, minlength=4), of_scores(scores, event)) > FALSE_FAIL


GROUPS = np.array([0.0, 1.5, 3.0, 4.0])  # scores of many candidates, so many of each


@both
@pytest.mark.parametrize("few", [pytest.param(noise._FEW, marks=pytest.mark.audit), 250])
def test_a_choice_among_very_many_is_the_same_mechanism(made, few, monkeypatch) -> None:
    """By the staircase: which score is chosen, and that candidates of one score are chosen alike. The same power."""
    monkeypatch.setattr(noise, "_FEW", few)
    event, of, source = Exponential(1.0, 1.5), np.arange(noise._FEW + 4) % 4, made()
    chosen = np.array([source.choose(GROUPS[of], paid(event)) for _ in range(choices_needed(GROUPS, event))])
    assert p_value(np.bincount(of[chosen], minlength=4), of_scores(GROUPS, event)) > FALSE_FAIL
    assert p_value(np.bincount(chosen * 4 // of.size, minlength=4), np.full(4, 0.25)) > FALSE_FAIL


def test_choices_with_gumbel_noise_of_another_scale_are_seen() -> None:
    rng = np.random.default_rng(9)
    for scores, event in ((np.array([0.0, 8.0, 20.0, 13.0]), Exponential(3.0, 0.9)), (GROUPS, Exponential(1.0, 1.5))):
        for times in SCALES:
            wrong = rng.multinomial(choices_needed(scores, event), of_scores(scores, event, times))
            assert p_value(wrong, of_scores(scores, event)) < FALSE_FAIL


# Secret samples


@both
def test_a_secret_sample_has_each_row_at_its_rate_whatever_the_others_do(made) -> None:
    """Power against rates of 0.8 and 1.25 times the right one, and against one sample for all steps."""
    rate, rows = 0.1, 2000
    heads = round(rate * COIN)
    event = subsampled_gaussian(1.0, 1e-6, "replace", heads=heads, steps=3, sensitivity=1.0, values=1)
    needed = max(draws_needed(np.array([rate, 1 - rate]), np.array([x * rate, 1 - x * rate])) for x in (0.8, 1.25))
    source, held = made(), []
    for _ in range(math.ceil(max(needed, 20_000) / (3 * rows)) + 1):
        receipt = paid(event)
        for _ in range(3):
            held.append(np.isin(np.arange(rows), source.sample(rows, receipt)))
            source.add(0.0, receipt)
    inside = np.array(held)
    total = np.array([np.count_nonzero(inside), np.count_nonzero(~inside)])
    assert p_value(total, np.array([rate, 1 - rate])) > FALSE_FAIL
    for first, second in ((inside[:-1], inside[1:]), (inside[:, :-1], inside[:, 1:])):  # steps, and rows of a step
        squares = np.bincount((2 * first.astype(int) + second).ravel(), minlength=4)
        right = np.array([(1 - rate) ** 2, (1 - rate) * rate, rate * (1 - rate), rate**2])
        assert p_value(squares, right) > FALSE_FAIL
    for times in (0.8, 1.25):
        broken = paid(subsampled_gaussian(1.0, 1e-6, "replace", heads=round(times * rate * COIN), steps=1, sensitivity=1.0, values=1))  # fmt: skip
        size = source.sample(max(needed, 20_000), broken).size
        counts = np.array([size, max(needed, 20_000) - size])
        assert p_value(counts, np.array([rate, 1 - rate])) < FALSE_FAIL


def test_the_number_of_draws_is_what_the_two_error_rates_ask_for() -> None:
    """The helper itself: right draws pass and wrong ones do not, as often as it says."""
    rng = np.random.default_rng(8)
    for kind in (Laplace, Gaussian):
        law, count = (stats.laplace if kind is Laplace else stats.norm), needed_for_scales(kind)
        for times in SCALES:
            assert (
                stats.ncx2.cdf(
                    stats.chi2.isf(FALSE_FAIL, ENDS.size),
                    ENDS.size,
                    count * ((wrong_scale(kind, times) - RIGHT) ** 2 / RIGHT).sum(),
                )
                < FALSE_PASS
            )
            drawn = [law.cdf(law.rvs(size=count, random_state=rng) * times) for _ in range(20)]
            assert not any(map(is_uniform, drawn))
        assert all(is_uniform(rng.random(count)) for _ in range(200))
