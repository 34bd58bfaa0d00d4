"""Noise against its exact law, the fast sampler against the exact one, and no draw given twice.

Statistical tests: FALSE_FAIL is the chance that a right sampler fails a test, FALSE_PASS the chance that a sampler whose
scale is off by WRONG passes it; the number of draws follows from the two.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from paying import paid
from scipy import stats

from hedgerow import errors
from hedgerow.privacy import events, noise
from hedgerow.privacy.amplification import subsampled_gaussian
from hedgerow.privacy.events import AboveThreshold, Exponential, Gaussian, Laplace
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.uniforms import Uniform, largest_gumbel

FALSE_FAIL, FALSE_PASS, WRONG = 1e-7, 1e-3, 1.04


def sources() -> list[Noise]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.NotPrivateWarning)
        return [Noise(), Seeded(11)]


both = pytest.mark.parametrize("source", sources(), ids=lambda source: type(source).__name__)


class Replay(Noise):
    """Noise from given words, then from one and the same word."""

    def __init__(self, words) -> None:
        super().__init__()
        self.left = np.asarray(words, dtype=np.uint64)

    def _words(self, count: int) -> np.ndarray:
        given, self.left = self.left[:count], self.left[count:]
        return np.concatenate([given, np.full(count - given.size, 0x9E3779B97F4A7C15, dtype=np.uint64)])


# Laws


def laplace_cdf(k: np.ndarray, s: float) -> np.ndarray:
    """P[X <= k] of the discrete Laplace: P[X >= k] = e^(−k/s)/(1 + e^(−1/s)) for k >= 1."""
    e = math.exp(-1 / s)
    return np.where(k >= 0, 1 - np.exp(-(k + 1) / s) / (1 + e), np.exp(np.minimum(k, 0) / s) / (1 + e))


def gaussian_cdf(k: np.ndarray, σ: float) -> np.ndarray:
    """P[X <= k] of the discrete Gaussian; for a wide one the continuous law, equal to within 1/(24σ²)."""
    if σ > 1000:
        return np.asarray(stats.norm.cdf((k + 0.5) / σ))
    reach = np.arange(-math.ceil(40 * σ), math.ceil(40 * σ) + 1)
    weights = np.cumsum(np.exp(-(reach**2) / (2 * σ**2)))
    return weights[np.clip(k - reach[0], 0, reach.size - 1)] / weights[-1]


LAWS = {"Laplace": (Laplace, laplace_cdf), "Gaussian": (Gaussian, gaussian_cdf)}


def bins_of(cdf, spread: float) -> np.ndarray:
    """Up to 24 right ends of bins of comparable probability."""
    reach = np.unique(np.round(np.linspace(-4 * spread - 2, 4 * spread + 2, 4001)).astype(np.int64))
    mass = cdf(reach, spread)
    ends = np.unique(reach[np.searchsorted(mass, np.linspace(0.02, 0.98, 24)).clip(0, reach.size - 1)])
    kept, last = [], 0.0
    for end in ends:
        if min(cdf(np.array([end]), spread)[0] - last, 1 - cdf(np.array([end]), spread)[0]) > 2e-3:
            kept.append(end)
            last = cdf(np.array([end]), spread)[0]
    return np.array(kept)


def probabilities(cdf, spread: float, ends: np.ndarray) -> np.ndarray:
    return np.diff(np.concatenate([[0.0], cdf(ends, spread), [1.0]]))


def draws_needed(right: np.ndarray, wrong: np.ndarray) -> int:
    """Return the number of draws with which a chi-square test at FALSE_FAIL misses `wrong` with probability at most FALSE_PASS."""
    df = right.size - 1
    critical = stats.chi2.isf(FALSE_FAIL, df)
    effect = float(((wrong - right) ** 2 / right).sum())
    count = 1000
    while stats.ncx2.cdf(critical, df, count * effect) > FALSE_PASS:
        count = math.ceil(1.1 * count)
    return count


def assert_law(counts: np.ndarray, expected: np.ndarray) -> None:
    total = counts.sum()
    assert expected.min() * total >= 20, "bins too thin for the chi-square law"
    statistic = ((counts - total * expected) ** 2 / (total * expected)).sum()
    assert stats.chi2.sf(statistic, expected.size - 1) > FALSE_FAIL


def count_into(draws: np.ndarray, ends: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(ends, draws), minlength=ends.size + 1)


# Released values


@both
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("spread", [0.3, 1.0, 2.7, 40.5, 3.0e5, 2.0**21 * 1.3, 1e9])
def test_large_vectors_follow_the_exact_discrete_law(source, law, spread) -> None:
    kind, cdf = LAWS[law]
    ends = bins_of(cdf, spread)
    right, wrong = (probabilities(cdf, x, ends) for x in (spread, spread * WRONG))
    count = max(draws_needed(right, wrong), 2 * noise._OPENDP_UP_TO, math.ceil(25 / right.min()))
    draws = source.add(np.zeros(count), paid(kind(1.0, spread)))
    assert_law(count_into(draws, ends), right)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("spread", [1.0, 40.5])
def test_small_vectors_come_from_opendp_and_follow_the_same_law(law, spread, monkeypatch) -> None:
    monkeypatch.setattr(Noise, "_integers", None)  # whatever is drawn now is OpenDP's
    kind, cdf = LAWS[law]
    ends = bins_of(cdf, spread)
    right, wrong = (probabilities(cdf, x, ends) for x in (spread, spread * 1.1))
    size = noise._OPENDP_UP_TO
    rounds = math.ceil(max(draws_needed(right, wrong), 25 / right.min()) / size)
    draws = np.concatenate([Noise().add(np.zeros(size), paid(kind(1.0, spread))) for _ in range(rounds)])
    assert_law(count_into(draws, ends), right)


@pytest.mark.parametrize("law", LAWS)
def test_the_vector_sampler_and_opendp_cannot_be_told_apart(law) -> None:
    kind, cdf = LAWS[law]
    event = kind(1.0, 6.5)
    ends = bins_of(cdf, 6.5)
    ours = count_into(Noise()._integers(event, 30_000), ends)
    theirs = count_into(np.array(noise._opendp(kind is Laplace, 6.5)([0] * 30_000)), ends)
    assert stats.chi2_contingency(np.stack([ours, theirs])).pvalue > FALSE_FAIL


@both
@pytest.mark.parametrize("law", LAWS)
def test_the_low_digits_of_wide_noise_are_uniform(source, law) -> None:
    draws = source.add(np.zeros(40_000), paid(LAWS[law][0](1.0, 2.0**35))).astype(np.int64)
    assert_law(np.bincount(draws % 16, minlength=16), np.full(16, 1 / 16))


@both
def test_cells_are_independent(source) -> None:
    draws = source.add(np.zeros(200_000), paid(Gaussian(1.0, 10.0)))
    for lag in (1, 2, noise._CHUNK):
        correlation = np.corrcoef(draws[:-lag], draws[lag:])[0, 1]
        assert abs(correlation) * math.sqrt(draws.size - lag) < stats.norm.isf(FALSE_FAIL / 2)


@both
def test_a_number_gives_a_float_and_an_array_an_array_of_its_shape(source) -> None:
    event = Laplace(1.0, 3.0)
    for value in (5, 5.0, np.int64(5), np.float64(5)):
        assert type(source.add(value, paid(event))) is float
    for shape in ((0,), (3,), (2, 0), (4, 5, 6), (30, 40), ()):
        noisy = source.add(np.ones(shape, dtype=np.int64), paid(event))
        assert noisy.shape == shape and noisy.dtype == np.float64


SILENT = 2.0**-30  # in grid steps: noise of this spread is zero


@both
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_values_are_rounded_to_the_grid_before_the_noise(source, kind) -> None:
    for grid in (0.25, 1.0, 8.0):
        values = np.array([0.0, 0.1, -0.1, 3.3, -3.3, 1e6 + 0.2, 12.5, 20.0])
        event = kind(1.0 + grid, SILENT * grid, grid)
        expected = np.rint(values / grid) * grid
        assert np.array_equal(source.add(values, paid(event)), expected)
        assert np.array_equal(source.add(np.resize(values, 800), paid(event)), np.resize(expected, 800))
        assert source.add(3.3, paid(event)) == np.rint(3.3 / grid) * grid


@both
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
@pytest.mark.parametrize("size", [5, 500])
def test_released_values_lie_on_the_grid(source, kind, size) -> None:
    noisy = source.add(np.full(size, 3.3), paid(kind(1.25, 7.0, 0.25)))
    assert np.all(noisy % 0.25 == 0) and np.unique(noisy).size > 1


@both
@pytest.mark.parametrize("size", [6, 600])
def test_no_value_can_raise_or_overflow(source, size) -> None:
    hard = np.resize([math.nan, math.inf, -math.inf, 1e300, -1e300, 2.0**63], size)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for event in (Laplace(1, 10), Gaussian(1, 2.0**40), Laplace(1, 10, 2.0**-20)):
            noisy = source.add(hard, paid(event))
            assert np.all(np.isfinite(noisy))
            # only the clipped values are large, with the sign they had
            assert np.all(noisy[1::6] > 0) and np.all(noisy[2::6] < 0)
        for extreme in (10**30, -(10**30), np.uint64(2**64 - 1), np.int64(-(2**63)), True):
            assert math.isfinite(source.add(extreme, paid(Laplace(1, 10))))
    assert source.add(np.array([2**64 - 1], dtype=np.uint64), paid(Laplace(1, SILENT)))[0] == 2.0**53
    assert source.add(np.array([-(2**63)]), paid(Laplace(1, SILENT)))[0] == -(2.0**53)


@both
def test_values_that_are_not_numbers_are_refused_without_quoting_them(source) -> None:
    for ask in (
        lambda: source.add(np.array(["Ada Lovelace"]), paid(Laplace(1, 10))),
        lambda: source.choose(np.array(["Ada Lovelace"]), paid(Exponential(1, 1))),
    ):
        with pytest.raises(errors.InvalidInput, match="must be numeric") as refusal:
            ask()
        assert "Ada" not in str(refusal.value)


@both
def test_each_event_is_drawn_by_its_own_method_only(source) -> None:
    with pytest.raises(errors.InvalidInput, match=r"event must be Laplace or Gaussian\. Found Exponential"):
        source.add(1.0, paid(Exponential(1, 1)))
    with pytest.raises(errors.InvalidInput, match=r"event must be Exponential\. Found Laplace"):
        source.choose(np.zeros(3), paid(Laplace(1, 1)))


# The fast path against the certain one


def boundary_words(s: float, ks: range) -> list[int]:
    """The words next to U = e^(−k/s), where ⌊−s ln U⌋ changes."""
    with localcontext() as context:
        context.prec = 60
        ends = [int((Decimal(-k) / Decimal(s)).exp() * 2**64) for k in ks]
    return [w for end in ends for w in (end - 1, end, end + 1) if 0 <= w < 2**64]


@pytest.mark.parametrize("s", [2.0**-20, 0.3, 1.0, 7.7, 1000.25, 2.0**21 - 0.5])
def test_geometric_draws_are_those_of_exact_arithmetic_on_the_same_bits(s) -> None:
    rng = np.random.default_rng(3)
    edges = [*boundary_words(s, range(1, 60)), 0, 1, 2**44 - 1, 2**44, 2**64 - 1]
    words = np.concatenate([np.array(edges, dtype=np.uint64), rng.integers(0, 2**64, 3000, dtype=np.uint64)])
    fast = Replay(words)._floor_exponential(s, words.size)
    assert fast.tolist() == [Uniform(w, Replay([])._words).floor_exponential(s) for w in words]


@pytest.mark.parametrize("s", [0.8, 40.0, 2.0**30])
def test_no_tail_is_cut(s) -> None:
    """From bits that say so, noise is as far out as its law has it: 30 scales of a Laplace, 8 deviations of a Gaussian."""
    far, near = int(2**64 * math.exp(-30)), 2**64 - 1
    low_digits = [0] * 64  # of wide noise, whose high and low parts are drawn apart
    draws = Replay([far, near, *low_digits])._laplace(s, 1)
    assert draws[0] == pytest.approx(30 * s, rel=0.05, abs=2)
    drawn = 17  # for one Gaussian, so that enough are kept
    out = int(2**64 * math.exp(-8))
    first = [out, *[near] * (2 * drawn - 1)]
    low_digits = [] if s < 2**20 else [0] * (4 * drawn)
    draws = Replay([*first, *low_digits, *[0] * drawn])._gaussian(s, 1)
    assert draws.max() > 7 * s


def test_a_boundary_inside_a_word_is_settled_by_further_bits() -> None:
    k, s = 3, 2.5
    with localcontext() as context:
        context.prec = 80
        cut = (Decimal(-k) / Decimal(s)).exp() * 2**64
        word, rest = int(cut), int((cut % 1) * 2**64)
    outcomes = [Replay([word, rest + step])._floor_exponential(s, 1)[0] for step in (-1, 1)]
    assert outcomes == [k, k - 1]  # just below the cut U is smaller, so E is larger
    assert Uniform(np.uint64(0), Replay([2**63])._words).floor_exponential(1.0) == math.floor(65 * math.log(2))


@pytest.mark.parametrize(
    "γ", [Fraction(0), Fraction(1, 10**12), Fraction(1, 3), Fraction(5, 2), Fraction(40), Fraction(10**27)]
)
def test_coins_are_those_of_exact_arithmetic_on_the_same_bits(γ) -> None:
    with localcontext() as context:
        context.prec = 60
        cut = int((Decimal(-γ.numerator) / Decimal(γ.denominator)).exp() * 2**64)
    words = [w for w in (0, 1, cut - 1, cut + 1, cut - 2**30, cut + 2**30, 2**63, 2**64 - 1) if 0 <= w < 2**64]
    coins = Replay(words)._coins(np.full(len(words), float(γ)), lambda i: γ)
    assert coins.tolist() == [w < cut or γ == 0 for w in words]


def test_a_coin_inside_a_word_is_settled_by_further_bits() -> None:
    with localcontext() as context:
        context.prec = 80
        cut = (Decimal(-1) / 3).exp() * 2**64
        word, rest = int(cut), int((cut % 1) * 2**64)
    coins = [Replay([word, rest + step])._coins(np.array([1 / 3]), lambda i: Fraction(1, 3))[0] for step in (-1, 1)]
    assert coins == [True, False]


def test_choices_are_those_of_exact_arithmetic_on_the_same_bits() -> None:
    rng = np.random.default_rng(4)
    event = Exponential(1.5, 0.7)
    scale = 2 * Fraction(1.5) / Fraction(0.7)
    for _ in range(150):
        words = rng.integers(0, 2**64, 6, dtype=np.uint64)
        words[rng.integers(6)] = rng.choice(np.array([0, 1, 2**40, 2**64 - 1], dtype=np.uint64))
        scores = rng.choice([0.0, 1.0, 1e9, 1e9 + 1], size=6)
        exact = [(Uniform(w, Replay([])._words), Fraction(v) / scale) for w, v in zip(words, scores, strict=True)]
        assert Replay(words).choose(scores, paid(event)) == largest_gumbel(exact)


def test_a_near_tie_that_float64_cannot_see_is_settled_rightly() -> None:
    """Words one step either side of the tie −ln E₀ = v − ln E₁, E = −ln(1 − U)."""
    event = Exponential(1.0, 2.0)  # scale 1
    for first in np.random.default_rng(6).integers(2**50, 2**63, 100):
        with localcontext() as context:
            context.prec = 60
            E = -(1 - (Decimal(int(first)) + Decimal("0.5")) / 2**64).ln() * Decimal("0.75").exp()
            tie = int((1 - (-E).exp()) * 2**64)
        if first + 2**20 < tie < 2**64 - 2**45:  # four words then outweigh the half that the first word leaves
            outcomes = [Replay([int(first), tie + step]).choose(np.array([0.0, 0.75]), paid(event)) for step in (-4, 4)]
            assert outcomes == [1, 0]  # the smaller U has the larger Gumbel


def test_the_low_part_of_a_wide_draw_is_rejected_when_its_coin_says_so() -> None:
    s, bits = 2.0**22 * 1.5, 2
    high, low = 3 << 62, 1 << 62  # u = 3, then u = 1
    assert Replay([high, 0])._low_bits(s, bits, 1)[0] == 3
    assert Replay([high, 2**64 - 1, low, 0])._low_bits(s, bits, 1)[0] == 1  # e^(−3/s) < 1 − 2^-64
    assert Replay([2**63, high, 0])._geometric(s, 1)[0] == 4 * math.floor(s / 4 * math.log(2)) + 3


def test_a_tie_of_the_first_bits_is_settled_by_further_ones() -> None:
    tie = [2**50, 2**50]
    assert Replay([*tie, 5, 9]).choose(np.zeros(2), paid(Exponential(1, 1))) == 0  # the smaller U has the larger Gumbel
    assert Replay([*tie, 9, 5]).choose(np.zeros(2), paid(Exponential(1, 1))) == 1
    assert Replay([*tie, 7, 7, 9, 5]).choose(np.zeros(2), paid(Exponential(1, 1))) == 1


@pytest.mark.parametrize("function", ["log", "log1p", "exp"])
def test_numpy_is_far_more_accurate_than_the_fast_path_assumes(function) -> None:
    rng = np.random.default_rng(5)
    x = {
        "log": np.concatenate(
            [rng.random(2000), 2.0 ** -rng.uniform(0, 20, 2000), 1 - 2.0 ** -rng.uniform(1, 53, 2000)]
        ),
        "log1p": np.concatenate([-rng.random(2000) / 2, -(2.0 ** -rng.uniform(1, 20, 2000))]),
        "exp": np.concatenate([-rng.random(2000), -rng.uniform(0, 40, 2000)]),
    }[function]
    x = x[x != 1]
    with localcontext() as context:
        context.prec = 50
        exact = [
            Decimal(v).ln() if function == "log" else (1 + Decimal(v)).ln() if function == "log1p" else Decimal(v).exp()
            for v in x.tolist()
        ]
        worst = max(
            abs(Decimal(y) / e - 1) for y, e in zip(getattr(np, function)(x).tolist(), exact, strict=True) if e != 0
        )
    assert worst < Decimal(2) ** -49


# Choices


@both
@pytest.mark.parametrize("offset", [0.0, 1e12])
def test_choices_follow_the_exponential_mechanism(source, offset) -> None:
    event = Exponential(2.0, 0.8)
    scores = np.array([0.0, 1.0, 2.5, 7.0, -3.0])
    right, wrong = (np.exp(scores / (event.scale * x)) / np.exp(scores / (event.scale * x)).sum() for x in (1, 1.25))
    count = draws_needed(right, wrong)
    assert_law(np.bincount([source.choose(scores + offset, paid(event)) for _ in range(count)], minlength=5), right)


@both
def test_scores_out_of_range_never_raise(source) -> None:
    event = Exponential(1.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert source.choose(np.array([-math.inf, 5.0, -1e300]), paid(event)) == 1
        assert source.choose(np.array([0.0, math.inf, 1e200]), paid(event)) in (1, 2)
        assert source.choose(np.array([math.nan, math.nan]), paid(event)) in (0, 1)
        assert source.choose(np.array([-math.inf]), paid(event)) == 0
        assert source.choose(np.array([3, 5000]), paid(event)) == 1


@both
def test_scores_must_be_one_row(source) -> None:
    for scores in (np.zeros(0), np.zeros((2, 2)), np.array(1.0)):
        with pytest.raises(errors.InvalidInput, match="scores must be one row"):
            source.choose(scores, paid(Exponential(1, 1)))


# Comparisons


@both
@pytest.mark.parametrize("scale", [0.7, 60.0, 2.0**25])
@pytest.mark.parametrize("one_by_one", [True, False])
def test_comparison_noise_is_laplace_of_its_scale_on_its_grid(source, scale, one_by_one) -> None:
    grid = events.comparison_grid(scale)
    ends = bins_of(laplace_cdf, scale / grid)
    right, wrong = (probabilities(laplace_cdf, x * scale / grid, ends) for x in (1, WRONG))
    count = draws_needed(right, wrong)
    draws = (
        np.array([source._comparison(scale) for _ in range(count)]) if one_by_one else source._comparisons(scale, count)
    )
    assert np.all(draws % grid == 0)
    assert_law(count_into(draws / grid, ends), right)


@both
def test_a_guards_noise_and_whole_rows_add_up_without_rounding(source) -> None:
    event = AboveThreshold(1.0, 0.001, 0.002)
    for draw in (source._comparison(event.threshold_scale), source._comparison(event.query_scale)):
        for rows in (0, 1, 10**9):
            assert Fraction(draw + rows) == Fraction(draw) + rows
            assert Fraction(draw + event.sensitivity) == Fraction(draw) + Fraction(event.sensitivity)


@both
@pytest.mark.parametrize("scale", [0, -1.0, math.nan, math.inf, 2.0**41, 2.0**-41, "1", None])
def test_a_scale_that_cannot_be_drawn_is_refused(source, scale) -> None:
    for ask in (source._comparison, lambda scale: source._comparisons(scale, 3)):
        with pytest.raises(errors.InvalidInput, match="scale must be"):
            ask(scale)


@both
def test_no_comparison_is_handed_out_twice(source) -> None:
    scale = 2.0**20  # 2^40 grid steps: equal draws would be reused ones, but for a chance of 10^-5
    draws = [source._comparison(scale) for _ in range(3 * noise._BLOCK)] + source._comparisons(scale, 1000).tolist()
    assert len(set(draws)) == len(draws)


@both
def test_many_scales_do_not_pile_up(source) -> None:
    for scale in range(1, 60):
        source._comparison(float(scale))
    assert len(source._buffers) <= noise._SCALES


def test_a_copy_does_not_share_the_originals_draws() -> None:
    original = Noise()
    original._comparison(2.0**20)
    for twin in (copy.copy(original), copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        assert not twin._buffers
        assert {twin._comparison(2.0**20) for _ in range(20)}.isdisjoint(original._buffers[2.0**20])


# Indices


@both
@pytest.mark.parametrize(("n", "size"), [(1, 1), (10, 10), (10, 3), (1000, 20), (10**12, 50), (5, 0), (0, 0)])
def test_a_subsample_has_different_indices_in_range(source, n, size) -> None:
    chosen = source.subsample(n, size)
    assert chosen.dtype == np.int64 and chosen.size == np.unique(chosen).size == size
    assert np.all((chosen >= 0) & (chosen < n))


@both
@pytest.mark.parametrize(("n", "size"), [(6, 3), (13, 3)])
def test_every_index_is_as_likely_in_every_place_of_a_subsample(source, n, size) -> None:
    count = 4000
    samples = np.stack([source.subsample(n, size) for _ in range(count)])
    for place in range(size):
        assert_law(np.bincount(samples[:, place], minlength=n), np.full(n, 1 / n))


@both
def test_every_subset_is_as_likely(source) -> None:
    keys = [sum(1 << int(i) for i in source.subsample(9, 2)) for _ in range(6000)]
    assert_law(np.unique(keys, return_counts=True)[1], np.full(36, 1 / 36))


@both
def test_a_sample_with_replacement_is_uniform_and_may_exceed_n(source) -> None:
    drawn = source.subsample(7, 70_000, replace=True)
    assert_law(np.bincount(drawn, minlength=7), np.full(7, 1 / 7))
    assert np.all(source.subsample(1, 5, replace=True) == 0)


@both
@pytest.mark.parametrize(
    ("n", "size", "replace"), [(5, 6, False), (0, 1, True), (-1, 0, False), (5, -1, True), (5, 1.5, False)]
)
def test_an_impossible_subsample_is_refused(source, n, size, replace) -> None:
    with pytest.raises(errors.InvalidInput):
        source.subsample(n, size, replace)


# Sources


def test_a_seed_repeats_every_draw_and_another_seed_does_not() -> None:
    def everything(seed: int) -> list[object]:
        source = Seeded(seed)
        return [
            source.add(1.0, paid(Laplace(1, 1e6))),
            source.add(np.zeros(500), paid(Gaussian(1, 1e6))).tolist(),
            [source.choose(np.zeros(1000), paid(Exponential(1, 1))) for _ in range(5)],
            [source._comparison(100.0) for _ in range(5)],
            source.subsample(10**6, 5).tolist(),
            source.generator().random(3).tolist(),
            source.generator().random(3).tolist(),
        ]

    first, again, other = everything(7), everything(7), everything(8)
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))
    assert first[-1] != first[-2]


def test_a_seeded_source_warns_and_says_that_it_is_not_private() -> None:
    with pytest.warns(errors.NotPrivateWarning, match="not private"):
        source = Seeded(3)
    assert not source.private and "NOT PRIVATE" in repr(source)


def test_the_default_source_is_private_never_repeats_and_shows_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = Noise()
    source._comparison(1.0)
    assert source.private and repr(source) == "Noise()"
    assert source.add(0, paid(Gaussian(1, 2.0**39))) != Noise().add(0, paid(Gaussian(1, 2.0**39)))
    assert source.generator().random() != source.generator().random()


@both
def test_a_sample_has_every_row_at_its_rate(source) -> None:
    """Within 7 standard deviations, which a right sampler misses once in 10^11 runs; and another one each time."""
    rows, rate = 100_000, 1 / 8
    heads = int(rate * events.COIN)
    event = subsampled_gaussian(1.0, 1e-6, "replace", heads=heads, steps=2, sensitivity=1.0, values=1)
    receipt, samples = paid(event), []
    for _ in range(2):
        samples.append(source.sample(rows, receipt))
        source.add(0.0, receipt)
    for sample in samples:
        assert sample.size == pytest.approx(rows * rate, abs=7 * math.sqrt(rows * rate * (1 - rate)))
        assert np.array_equal(sample, np.unique(sample)) and sample[-1] < rows
    both_times = np.intersect1d(*samples).size
    assert both_times == pytest.approx(rows * rate**2, abs=7 * math.sqrt(rows * rate**2))


@both
@pytest.mark.parametrize("grid", [2.0**-12, 1.0, 4.0])
@pytest.mark.parametrize("event", [Laplace(1.0, 12.0), Gaussian(1.0, 15.0)], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("size", [250, 5000])  # which two samplers draw
def test_noise_has_the_spread_of_its_event_whatever_its_grid(source, grid, event, size) -> None:
    """The variance of 5000 draws is off by at most √(5/5000) of itself, 3 %; the test allows 7 times that."""
    event = dataclasses.replace(event, grid=grid)
    draws = np.concatenate([source.add(np.zeros(size), paid(event)) for _ in range(5000 // size)])
    stated = 2 * 12.0**2 if isinstance(event, Laplace) else 15.0**2
    assert np.var(draws) == pytest.approx(stated, rel=0.22)
    assert not np.any(draws % grid)
