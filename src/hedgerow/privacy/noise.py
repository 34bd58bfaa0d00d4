"""Randomness: the only module that draws any.

Papers: Canonne, Kamath & Steinke "The discrete Gaussian for differential privacy" (the rejection step); Mironov "On
significance of the least significant bits for differential privacy" (why no released value carries float64 noise);
McSherry & Talwar "Mechanism design via differential privacy" (the choice).

Noise, choices and guard rounds are drawn against a receipt only, so everything that is drawn was billed.

Symbols: w a word of 64 fair bits; U in [w, w+1]/2^64 the uniform whose first bits it is; E = −ln U a standard
exponential; s the scale and σ the standard deviation in grid steps; γ a rate: Bernoulli(e^−γ).

Exactness. A draw is a function of real uniforms. It is computed in float64 from their first 64 bits, together with a
bound on the error. Where that bound does not settle the outcome (once in 10^5 draws, or less), the same function is
computed again with `decimal`, whose ln and exp are correctly rounded, on as many further bits as needed. The outcome is
the one that exact arithmetic on infinitely many bits would give. This rests on two assumptions: the bits are fair, and
numpy's log, log1p and exp are right to 2^-46. That is some 64 units in the last place, where numpy claims one to four.

Differs: Canonne, Kamath & Steinke draw Bernoulli(e^−γ) coins from series of rational coins. Here one uniform is
compared with e^−γ, which has the same distribution and can be vectorized. Released values of up to `_OPENDP_UP_TO`
cells come from OpenDP's own sampler.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from hedgerow import errors
from hedgerow._checks import positive
from hedgerow._types import Array, Integers
from hedgerow.privacy import events
from hedgerow.privacy.guard_round import ABOVE, GuardRound
from hedgerow.privacy.ledger import Receipt
from hedgerow.privacy.process import ProcessGuard
from hedgerow.privacy.renyi_events import COINS, HitRound, RandomRuns
from hedgerow.privacy.uniforms import Uniform, Words, largest_gumbel

_OPENDP_UP_TO = 256  # draw up to this many cells with OpenDP, whose 10^5 draws a second are too slow for more
_CHUNK = 1 << 16  # work on this many draws at a time, which fit into the processor's cache
_BLOCK = 1024  # draw this many comparisons in advance
_FEW = 1 << 13  # up to this many candidates, one Gumbel draw for each is no slower than rejection sampling
_SCALES = 16  # keep comparisons in advance for at most this many scales
_LEAST = np.uint64(1 << 44)  # a smaller word has too few significant bits for float64 arithmetic
_UNIT = 2.0**-64  # turns a word into a number in [0, 1)
_HIGHEST = 2.0**500  # scores are clipped to ± this
_LARGEST = 2**53  # values are clipped to ± this many grid steps: a float64 holds them exactly, and sums fit an int64


def random_token(size: int) -> str:
    """Return ``size`` random bytes as hexadecimal text, for names and secrets. Nothing private is drawn with it.

    >>> len(random_token(8))
    16
    """
    return os.urandom(size).hex()


class Noise:
    """Noise from the operating system's randomness, exact on the grid of the event that was billed.

    It works only in the process that made it. A fork would share the draws made in advance, and could draw a second
    time what was charged once.
    """

    private = True

    def __init__(self) -> None:
        self._buffers: dict[float, list[float]] = {}
        self._home = ProcessGuard()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()  # a copy starts without the draws that the original made in advance

    def _require_home(self) -> None:
        """Refuse to draw in another process."""
        self._home.require("Noise", "Draw it there, or make a new one here.")

    def _words(self, count: int) -> Words:
        """Draw words of 64 fair bits."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    # Released values

    @overload
    def add(self, value: float, receipt: Receipt) -> float: ...
    @overload
    def add(self, value: NDArray[Any], receipt: Receipt) -> Array: ...
    def add(self, value: float | NDArray[Any], receipt: Receipt) -> float | Array:
        """Return ``value``, rounded to the grid of the receipt's next event, plus independent noise in every cell."""
        event: events.Laplace | events.Gaussian = self._redeem(receipt, events.Laplace, events.Gaussian)
        return receipt.released(lambda: self._noisy(value, event), self.private)

    def add_for_all(self, value: float, receipts: Sequence[Receipt]) -> float:
        """Add noise once to a value that concerns several accounts, and record the result in all of them.

        Each account must have paid for the same event in full. Otherwise the draw is refused before it is made.
        """
        if any(receipt.events != receipts[0].events for receipt in receipts):
            raise errors.InvalidInput(
                "Receipts for one draw must be for the same event. Found another. Charge each account for what is "
                "drawn."
            )
        drawn = self.add(value, receipts[0])
        for receipt in receipts[1:]:
            self._redeem(receipt, events.Laplace, events.Gaussian)
            receipt.released(lambda: drawn, self.private)
        return drawn

    def _redeem(self, receipt: Receipt, *kinds: type[Any]) -> Any:
        """Return the next event of the receipt, which must be of one of these kinds."""
        self._require_home()
        if type(receipt) is not Receipt:  # an event that was not charged is not enough
            raise errors.InvalidInput(
                f"Noise must be drawn against a receipt. Found {type(receipt).__name__}. Charge the event to a "
                "ledger first."
            )
        return receipt.redeem(*kinds)

    def _noisy(self, value: float | NDArray[Any], event: events.Laplace | events.Gaussian) -> float | Array:
        """Round the value to the event's grid and add noise."""
        if isinstance(value, int):
            value = max(-_LARGEST, min(_LARGEST, value))
        array = np.asarray(value)
        noisy = self._add_in_steps(_steps(array.reshape(-1), event.grid), event)
        result = noisy.astype(np.float64).reshape(array.shape) * event.grid
        return float(result) if array.ndim == 0 and not isinstance(value, np.ndarray) else result

    def _add_in_steps(self, steps: Integers, event: events.Laplace | events.Gaussian) -> Integers:
        """Add noise to values in grid steps, by OpenDP where they are few."""
        if 0 < steps.size <= _OPENDP_UP_TO:
            spread = event.scale if isinstance(event, events.Laplace) else event.sigma
            measurement = _opendp(isinstance(event, events.Laplace), spread / event.grid)
            return np.array(measurement(steps.tolist()), dtype=np.int64)
        return steps + self._integers(event, steps.size)

    def _integers(self, event: events.Laplace | events.Gaussian, count: int) -> Integers:
        """Draw discrete noise, in grid steps."""
        if isinstance(event, events.Laplace):
            return self._in_chunks(functools.partial(self._laplace, event.scale / event.grid), count)
        return self._in_chunks(functools.partial(self._gaussian, event.sigma / event.grid), count)

    # Choices and comparisons, whose noise is never released

    def choose(self, scores: NDArray[Any], receipt: Receipt) -> int:
        """Return argmax(score + Gumbel(2Δ/ε)): index i with probability ∝ exp(ε·score_i/2Δ), exactly."""
        self._require_home()
        given = _numeric("scores", np.asarray(scores))
        if given.ndim != 1 or given.size == 0:
            raise errors.InvalidInput(f"scores must be one row of numbers. Found shape {given.shape}. Flatten them.")
        event: events.Exponential = self._redeem(receipt, events.Exponential)
        values = np.clip(np.nan_to_num(given.astype(np.float64), nan=0.0), -_HIGHEST, _HIGHEST)
        chosen = self._largest_gumbel if values.size <= _FEW else self._staircase
        return receipt.released(lambda: chosen(values, event), self.private)

    def _largest_gumbel(self, values: Array, event: events.Exponential) -> int:
        """Choose by one Gumbel draw per candidate."""
        w = self._words(values.size)
        # Relative to the best score, so that scores near it stay precise.
        shifts = (values - values.max()) / event.scale
        with np.errstate(divide="ignore"):
            # E = −ln(1 − U). The form is chosen by the size of U, so that the relative error of E stays small.
            E = np.where(w >> 63, -np.log((~w).astype(np.float64) * _UNIT), -np.log1p(-(w.astype(np.float64) * _UNIT)))
            noisy = shifts - np.log(E)
        error = 2.0**-40 * (1 + np.abs(shifts))
        unclear = (w < _LEAST) | (~w < _LEAST)
        best = np.max(np.where(unclear, -np.inf, noisy - error))
        contenders = np.flatnonzero(unclear | (noisy + error >= best))
        if contenders.size == 1:
            return int(contenders[0])
        scale = 2 * Fraction(event.sensitivity) / Fraction(event.epsilon)
        top = Fraction(values.max())
        exact = [(Uniform(w[i], self._words), (Fraction(values[i]) - top) / scale) for i in contenders]
        return int(contenders[largest_gumbel(exact)])

    def _staircase(self, values: Array, event: events.Exponential) -> int:
        """Choose among very many candidates without a draw for each, by Walker's rejection from a staircase.

        Let γ_i = (max s − s_i)/b ≥ 0 with b = 2Δ/ε, so that i is wanted with probability ∝ e^(−γ_i). Let k_i be a whole
        number ≤ γ_i/ln 2, so that e^(−γ_i) ≤ 2^(−k_i). Propose i with probability ∝ 2^(−k_i), by a whole number below Σ
        2^(K − k_i). Accept i with probability e^(−γ_i)·2^(k_i), which is at least ½ except for candidates of no weight.

        What is accepted has exactly the wanted distribution for all k_i for which these probabilities are at most 1.
        Rounding in the k_i therefore costs time, never privacy. The coin is decided on the exact rational γ_i, with as
        many bits as needed (`uniforms`).
        """
        top = values.max()
        deepest = 62 - values.size.bit_length()  # K, so that Σ 2^(K − k) fits into 63 bits
        # γ/ln 2 has a relative rounding error far below 2^-40, so k stays at or below its true value
        depth = np.minimum((top - values) * ((1 - 2.0**-40) / (math.log(2) * event.scale)), deepest).astype(np.int8)
        counts = np.bincount(depth, minlength=deepest + 1).tolist()
        total = sum(count << (deepest - k) for k, count in enumerate(counts))
        scale = 2 * Fraction(event.sensitivity) / Fraction(event.epsilon)
        while True:
            rest, k = int(self._below(total, 1)[0]), 0
            while rest >= counts[k] << (deepest - k):
                rest -= counts[k] << (deepest - k)
                k += 1
            i = int(np.flatnonzero(depth == k)[rest >> (deepest - k)])
            coin = Uniform(self._halves(1)[0], self._halves)
            coin.bits += k  # now uniform on [0, 2^-k)
            if coin.is_below_exp((Fraction(float(top)) - Fraction(float(values[i]))) / scale):
                return i

    def _halves(self, count: int) -> Words:
        """Draw words of 64 bits, each from two draws of 32 bits."""
        halves = self._below(1 << 32, 2 * count).astype(np.uint64).reshape(2, count)
        joined: Words = (halves[0] << np.uint64(32)) | halves[1]
        return joined

    def open_round(self, receipt: Receipt, threshold: int, unit: float, on_grid: bool = False) -> GuardRound:
        """Open a guard round for the receipt's next event, with its threshold in steps of ``unit``, in rows.

        Normally the noise lies on the grid of comparisons, of which ``unit`` must be a divisor: at most 2^-20 rows.
        With ``on_grid`` the noise lies on the grid ``unit`` itself. That is needed where the distance above the
        threshold will be released.
        """
        kinds = (events.AboveThreshold,) if on_grid else (events.AboveThreshold, HitRound)  # hits release no gap
        event: events.AboveThreshold | HitRound = self._redeem(receipt, *kinds)
        ν = event.query_scale
        finest = events.comparison_grid(0.0)
        if math.frexp(unit)[0] != 0.5 or event.sensitivity % unit or not (on_grid or unit <= finest):
            # otherwise the noise would be rounded to the unit, and would differ from what was billed
            raise errors.InvalidInput(
                f"unit must be a power of two that divides the sensitivity, at most {finest!r} unless on_grid. Found "
                f"{unit!r}. Count in steps of the noise's grid."
            )

        def draw(scale: float, sensitivity: float) -> int:
            self._require_home()  # a fork has the same secret threshold
            if on_grid:
                return int(cast(float, self._noisy(0.0, events.Laplace(sensitivity, scale, unit))) / unit)
            return int(self._comparison(scale) / unit)

        Δ = event.sensitivity
        over = functools.partial(receipt.released, lambda: ABOVE, self.private)

        def compare() -> int:
            receipt.mark_guard_used()
            return draw(ν, 2 * Δ)

        if isinstance(event, HitRound):  # its threshold is public
            return GuardRound(threshold, compare, over)
        return GuardRound(threshold + draw(event.threshold_scale, Δ), compare, over)

    def draw_runs(self, receipt: Receipt) -> int:
        """Return the secret number of runs that is next on the receipt. It is never recorded."""
        event: RandomRuns = self._redeem(receipt, RandomRuns)
        left = int(self._below(COINS, 1)[0])
        for run, weight in enumerate(event.weights, start=1):
            left -= weight
            if left < 0:
                return run
        raise AssertionError("the weights sum to COINS")

    def _comparison(self, scale: float) -> float:
        """Return one Laplace draw for a threshold test. Only the outcome of that test is released."""
        self._require_home()
        try:
            return self._buffers[scale].pop()  # atomic, so that no draw is handed out twice
        except (KeyError, IndexError):
            block: list[float] = self._comparisons(scale, _BLOCK).tolist()
            draw = block.pop()
            if len(self._buffers) >= _SCALES:
                self._buffers = {}  # discard the unused draws
            self._buffers[scale] = block
            return draw

    def _comparisons(self, scale: float, count: int) -> Array:
        """Draw independent discrete Laplace values, in rows, on the grid `events.comparison_grid`."""
        self._require_home()
        scale = positive("scale", scale)
        if not events.FINEST <= scale <= events.COARSEST:
            raise errors.InvalidInput(f"scale must be between 2^-40 and 2^40 rows. Found {scale!r}. Count in rows.")
        grid = events.comparison_grid(scale)
        draws = self._in_chunks(functools.partial(self._laplace, scale / grid), _count("count", count))
        return draws.astype(np.float64) * grid

    # Row numbers and generators

    def sample(self, rows: int, receipt: Receipt) -> Integers:
        """Return the row numbers of the secret Poisson sample that is next on the receipt."""
        event: events.PoissonSample = self._redeem(receipt, events.PoissonSample)
        return np.flatnonzero(self._below(events.COIN, rows) < event.heads)

    def draw_rows(self, receipt: Receipt) -> Integers:
        """Return the row numbers of the secret sample of fixed size that is next on the receipt."""
        event: events.DistinctRows | events.RepeatedRows = self._redeem(
            receipt, events.DistinctRows, events.RepeatedRows
        )
        if isinstance(event, events.DistinctRows) and event.size == event.rows:
            return np.arange(event.rows)  # the sample is the whole table, so nothing is random
        return self.subsample(event.rows, event.size, replace=isinstance(event, events.RepeatedRows))

    def flips(self, holds: Callable[[Integers], NDArray[np.bool_]], receipt: Receipt) -> NDArray[np.bool_]:
        """Answer sampling counting queries: ask ``holds`` about random rows, and flip each answer by a biased coin.

        ``holds`` takes row numbers and returns a yes or no for each.
        """
        event: events.FlippedRows = self._redeem(receipt, events.FlippedRows)

        def draw() -> NDArray[np.bool_]:
            truths = np.asarray(holds(self._below(event.rows, event.times)), dtype=bool)
            return np.asarray(truths ^ (self._below(events.COIN, event.times) < event.heads))

        return receipt.released(draw, self.private)

    def subsample(self, n: int, size: int, replace: bool = False) -> Integers:
        """Return ``size`` of the indices 0..n−1, uniformly and in random order, all different unless ``replace``."""
        self._require_home()
        n, size = _count("n", n), _count("size", size)
        if (n == 0 < size) if replace else (size > n):
            raise errors.InvalidInput(f"size must be at most n = {n}. Found {size}. Take fewer, or replace.")
        if replace:
            return self._below(n, size)
        if size > n // 4:
            while True:
                keys = self._words(n)
                order = np.argsort(keys)
                if np.all(np.diff(keys[order])):  # without ties every order is equally likely
                    return order[:size].astype(np.int64)
        drawn = self._below(n, 0)
        while drawn.size < size:  # keep the first occurrence of each index in a sequence with replacement
            more = np.concatenate([drawn, self._below(n, 2 * (size - drawn.size))])
            drawn = more[np.sort(np.unique(more, return_index=True)[1])]
        return drawn[:size]

    def generator(self) -> np.random.Generator:
        """Return a numpy generator seeded by the operating system, for synthetic records and simulations only."""
        self._require_home()
        return np.random.default_rng(int.from_bytes(os.urandom(32)))

    # Exact samplers

    def _in_chunks(self, sampler: Callable[[int], Integers], count: int) -> Integers:
        """Call a sampler, which may return fewer draws than asked, until there are ``count`` draws."""
        draws = np.empty(count, dtype=np.int64)
        filled = 0
        while filled < count:
            chunk = sampler(min(_CHUNK, count - filled))  # rejection returns fewer draws, or a few more
            chunk = chunk[: count - filled]
            draws[filled : filled + chunk.size] = chunk
            filled += chunk.size
        return draws

    def _below(self, n: int, count: int) -> Integers:
        """Draw uniformly from 0..n−1."""

        def sampler(count: int) -> Integers:
            w = self._words(count) >> np.uint64(64 - max(1, (n - 1).bit_length()))
            return w[w < np.uint64(n)].astype(np.int64)

        return self._in_chunks(sampler, count)

    def _laplace(self, s: float, count: int) -> Integers:
        """Draw P[k] ∝ e^(−|k|/s), as the difference of two geometric draws."""
        G = self._geometric(s, 2 * count)
        return G[:count] - G[count:]

    def _geometric(self, s: float, count: int) -> Integers:
        """Draw P[G >= k] = e^(−k/s), as G = ⌊s E⌋. For a large s, draw the independent high and low parts of G."""
        shift = max(0, math.frexp(s)[1] - 21)
        G = self._floor_exponential(math.ldexp(s, -shift), count)
        return G if shift == 0 else (G << shift) + self._low_bits(s, shift, count)

    def _low_bits(self, s: float, bits: int, count: int) -> Integers:
        """Draw P[u] ∝ e^(−u/s) on 0..2^bits − 1.

        2^bits is at most s/2^20, so this is nearly uniform. A uniform draw is corrected by rejection.
        """
        u = (self._words(count) >> np.uint64(64 - bits)).astype(np.int64)
        rejected = np.flatnonzero(~self._coins(u / s, lambda i: Fraction(int(u[i])) / Fraction(s)))
        if rejected.size:
            u[rejected] = self._low_bits(s, bits, rejected.size)
        return u

    def _floor_exponential(self, s: float, count: int) -> Integers:
        """Draw ⌊s E⌋ for s < 2^21."""
        w = self._words(count)
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.log(w.astype(np.float64) * _UNIT) * -s
            G = np.floor(x)
            fraction = x - G
        # |error of ln U| <= 1/w + 2^-53 + 14·2^-46 < 2^-41 once w >= 2^44
        error = s * 2.0**-41
        for i in _where((w < _LEAST) | (fraction < error) | (fraction > 1 - error)):
            G[i] = Uniform(w[i], self._words).floor_exponential(s)
        return G.astype(np.int64)

    def _gaussian(self, σ: float, count: int) -> Integers:
        """Draw P[k] ∝ e^(−k²/2σ²), by rejection from a discrete Laplace of scale t = ⌊σ⌋ + 1."""
        t = math.floor(σ) + 1
        Y = self._laplace(float(t), count + count // 2 + 16)
        z = (np.abs(Y) - σ * σ / t) / σ

        def rate(i: int) -> Fraction:
            variance = Fraction(σ) ** 2
            return (abs(int(Y[i])) - variance / t) ** 2 / (2 * variance)

        return Y[self._coins(z * z / 2, rate)]

    def _coins(self, γ: Array, exact: Callable[[int], Fraction]) -> NDArray[np.bool_]:
        """Draw Bernoulli(e^−γ) as U < e^−γ. The rounding error of γ is at most 2^-48 (1 + γ)."""
        w = self._words(γ.size)
        margin = np.exp(-γ) - w.astype(np.float64) * _UNIT
        coins = margin > 0
        for i in _where(np.abs(margin) < 2.0**-44):
            coins[i] = Uniform(w[i], self._words).is_below_exp(exact(i))
        return coins


class Seeded(Noise):
    """Repeatable noise for tests and simulations. Anyone who knows the seed can remove the noise."""

    private = False

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self._sequence = np.random.SeedSequence(seed)
        self._bits = np.random.SFC64(self._sequence)
        self._lock = threading.Lock()
        _announce("Noise from a seed is not private: who knows the seed can remove it. Use it on public data only.")

    def __repr__(self) -> str:
        return f"Seeded({self.seed}: NOT PRIVATE)"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.seed,)

    def _words(self, count: int) -> Words:
        with self._lock:
            return np.asarray(self._bits.random_raw(count), dtype=np.uint64)

    def _add_in_steps(self, steps: Integers, event: events.Laplace | events.Gaussian) -> Integers:
        return steps + self._integers(event, steps.size)  # OpenDP accepts no seed

    def generator(self) -> np.random.Generator:
        """Return a numpy generator derived from the seed."""
        self._require_home()
        with self._lock:
            return np.random.default_rng(self._sequence.spawn(1)[0])


def public_generator(seed: int | None = None) -> np.random.Generator:
    """Return a numpy generator for synthetic records from public values alone, from a seed or the operating system."""
    return np.random.default_rng(int.from_bytes(os.urandom(32)) if seed is None else seed)


def secret(size: int = 32) -> bytes:
    """Return bytes that nobody can guess, for keys and names, never for noise."""
    return os.urandom(size)


def _announce(message: str) -> None:
    """Warn every time, at the line outside this package that caused it.

    Without a registry, Python does not remember that the warning was given before.
    """
    frame = sys._getframe()
    between = ("hedgerow", "numpy")  # numpy's decorators can appear between two frames of this package
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in between:
        frame = frame.f_back
    module = frame.f_globals.get("__name__", "<unknown>")
    warnings.warn_explicit(message, errors.NotPrivateWarning, frame.f_code.co_filename, frame.f_lineno, module)


def _steps(values: NDArray[Any], grid: float) -> Integers:
    """Return values in grid steps, rounded and clipped. The type of the data may raise, their contents never do."""
    if _numeric("value", values).dtype.kind != "f":
        values = np.minimum(values.astype(np.uint64 if values.dtype.kind == "u" else np.int64), _LARGEST)
        values = np.maximum(values.astype(np.int64), -_LARGEST)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.rint(values.astype(np.float64) / grid)
    clipped: Array = np.clip(np.nan_to_num(steps, nan=0.0), -float(_LARGEST), float(_LARGEST))
    return clipped.astype(np.int64)


def _numeric(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Refuse values that are not numeric."""
    if values.dtype.kind not in "buif":  # numpy's own error would quote a private value
        raise errors.InvalidInput(f"{name} must be numeric. Found dtype {values.dtype}. Give integers or floats.")
    return values


def _where(doubtful: NDArray[np.bool_]) -> list[int]:
    return [int(i) for i in np.flatnonzero(doubtful)]


def _count(name: str, value: int) -> int:
    """Refuse anything but a whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise errors.InvalidInput(f"{name} must be a whole number of at least 0. Found {value!r}. Give an int.")
    return int(value)


@functools.lru_cache(maxsize=256)
def _opendp(laplace: bool, scale: float) -> Any:
    """Return an OpenDP measurement that adds discrete noise to integer vectors, saturating at the ends of an i64.

    Parts of OpenDP are imported one by one, because its prelude imports every library for which OpenDP has an extra.
    """
    domains, metrics, measurements, mod = (
        importlib.import_module(f"opendp.{part}") for part in ("domains", "metrics", "measurements", "mod")
    )
    mod.enable_features("contrib")
    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    if laplace:
        return measurements.make_laplace(domain, metrics.l1_distance(T="i64"), scale=scale)
    return measurements.make_gaussian(domain, metrics.l2_distance(T="f64"), scale=scale)
