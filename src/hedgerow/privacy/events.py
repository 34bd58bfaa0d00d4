"""Events: frozen records of what a mechanism draws, from which both the sampler and the accountant work.

Papers: Bun & Steinke "Concentrated differential privacy" (zCDP); Canonne, Kamath & Steinke "The discrete Gaussian for
differential privacy"; Cesar & Rogers "Bounding, concentrating, and truncating" (bounded range); Dwork & Roth ch. 3.

Symbols: Δ sensitivity, in rows, under the budget's neighbours; b scale and σ standard deviation of the noise, in rows;
h = grid/b; ε pure privacy loss; ρ zCDP loss: D_α(M(x) ‖ M(x')) <= ρ α for every α > 1.

A grid is a power of two, so that dividing by it is exact in floating point. Values off the grid are rounded to it,
which can move neighbours apart. The caller therefore adds the grid to Δ, once for every value that one row can change.
For an ℓ2 sensitivity the caller adds the square root of that number times the grid.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, final

from hedgerow import errors
from hedgerow._checks import positive, whole

MOST_ROWS = 2**50  # the largest number of rows of a table
COIN = 2**32  # sampling rates are multiples of 1/COIN, so that a coin is a comparison of whole numbers
FINEST, COARSEST = 2.0**-40, 2.0**40
"""The least and the largest spread of noise, in grid steps, so that no sum can overflow, whatever the data contain."""

ROUNDED_AT_RANDOM = 2.0  # standard deviation, in grid steps, of the rounding that turns continuous noise into discrete
COARSE_STEPS = 4.0  # the σ of planned noise is at least this many grid steps
ROUNDING = 2.0**-40  # relative, and far more than the rounding error of a few float64 operations


def comparison_grid(scale: float) -> float:
    """Return the grid, in rows, of the noise in a threshold test.

    Whole rows lie on this grid, and float64 adds its multiples exactly.
    """
    return 2.0**-20 if scale <= 2.0**24 else 1.0


def grid_at_most(step: float) -> float:
    """Return the largest power of two that is at most ``step``: a grid that is no coarser than requested."""
    return math.ldexp(0.5, math.frexp(positive("grid step", step))[1])


@functools.cache
def _fields_of(kind: type[Event]) -> list[tuple[str, list[type[Event]], bool]]:
    """Return, for each field, its name, the kinds of events that it may hold, and True if it is a whole number."""
    found = []
    for field in dataclasses.fields(kind):
        kinds = [KINDS[name] for name in str(field.type).split(" | ") if name in KINDS]
        found.append((field.name, kinds, field.type == "int"))
    return found


@dataclasses.dataclass(frozen=True)
class Event:
    """One use of the data. An event is frozen, and its constructor refuses what could not be billed or drawn."""

    def __post_init__(self) -> None:
        own: Any = type(self)
        for name, kinds, is_whole in _fields_of(own):
            value = getattr(self, name)
            if kinds:
                _require_kind(name, value, kinds)
                continue
            object.__setattr__(self, name, whole(name, value) if is_whole else positive(name, value))
        # A loss that underflows to zero, or is NaN, would be billed as free.
        positive(f"rho of {type(self).__name__}", self.rho)
        if not self.epsilon > 0:
            raise errors.InvalidInput(
                f"epsilon of {type(self).__name__} must be above 0. Found {self.epsilon!r}. Use a smaller scale."
            )

    if TYPE_CHECKING:  # at run time an inherited property would become the default of a field of the same name

        @property
        def epsilon(self) -> float:
            """The pure loss ε, or infinity where there is none."""

        @property
        def rho(self) -> float:
            """The zCDP loss ρ."""

        @property
        def delta(self) -> float:
            """The probability with which the stated loss may fail. It is zero unless a field says otherwise."""
    else:
        delta = 0.0

    @property
    def draws(self) -> Iterable[Event]:
        """The events that may be drawn once this event is paid for, in order: by default the event itself."""
        return (self,)

    def to_dict(self) -> dict[str, Any]:
        """Return a record for JSON, which keeps every float exactly."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain = {name: value.to_dict() if isinstance(value, Event) else value for name, value in fields.items()}
        return {"kind": type(self).__name__, **plain}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return the event that `to_dict` described, and refuse anything else."""
        fields = dict(record)
        kind = KINDS.get(str(fields.pop("kind", None)))
        if kind is None or not issubclass(kind, cls):
            raise errors.InvalidInput(
                f"kind must be one of {', '.join(KINDS)}. Found {record.get('kind')!r}. "
                "Read the record with the version that wrote it."
            )
        names = {field.name for field in dataclasses.fields(kind)}
        if set(fields) != names:
            raise errors.InvalidInput(
                f"fields of {kind.__name__} must be {', '.join(sorted(names))}. "
                f"Found {', '.join(sorted(fields)) or 'none'}. Read the record with the version that wrote it."
            )
        return kind(**{n: Event.from_dict(v) if isinstance(v, Mapping) else v for n, v in fields.items()})


def _require_kind(name: str, part: object, kinds: list[type[Event]]) -> None:
    """Refuse a part of another type, which could set its own price or have a δ that nobody counts."""
    if type(part) not in kinds:
        raise errors.InvalidInput(
            f"{name} must be {' or '.join(kind.__name__ for kind in kinds)}. Found {type(part).__name__}. "
            "Describe each draw by itself."
        )


def _check_grid(name: str, spread: float, grid: float) -> None:
    """Refuse a grid that is no power of two, or that is too fine or too coarse for the noise."""
    if math.frexp(grid)[0] != 0.5:
        raise errors.InvalidInput(
            f"grid must be a power of two. Found {grid!r}. Use {grid_at_most(grid)!r}, or events.grid_at_most(step)."
        )
    if not FINEST <= spread / grid <= COARSEST:
        raise errors.InvalidInput(
            f"{name} must be between 2^-40 and 2^40 grid steps. Found {spread / grid:.3g}. Choose another grid."
        )


@final
@dataclasses.dataclass(frozen=True)
class Laplace(Event):
    """Discrete Laplace noise, P[k grid] ∝ exp(−|k| grid/b), added to every value. Δ is the ℓ1 sensitivity.

    ε = Δ/b. ρ = ε − (1 − e^−ε)·h/sinh(h), which is the KL divergence of two noises that are ε apart and bounds every
    order (docs/proofs/laplace.md). On a fine grid this is ε − 1 + e^−ε; with one grid step it is ε·tanh(ε/2).
    """

    sensitivity: float
    scale: float
    grid: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_grid("scale", self.scale, self.grid)

    @property
    def epsilon(self) -> float:
        """ε = Δ/b."""
        return self.sensitivity / self.scale

    @property
    def rho(self) -> float:
        """ρ = ε − (1 − e^−ε)·h/sinh(h), and at most ε·tanh(ε/2)."""
        ε, h = self.epsilon, self.grid / self.scale
        fine = _exp_remainder(ε)  # ε − (1 − e^−ε)
        coarse = -math.expm1(-ε) * _sinh_remainder(h)  # (1 − e^−ε)·(1 − h/sinh h)
        return min(fine + coarse, ε * math.tanh(ε / 2))


def _exp_remainder(x: float) -> float:
    """Return e^−x − 1 + x for x > 0, without cancellation."""
    if x > 0.5:
        return math.expm1(-x) + x
    return math.fsum((-x) ** k / math.factorial(k) for k in range(2, 19))


def _sinh_remainder(h: float) -> float:
    """Return 1 − h/sinh(h) for h > 0, without cancellation or overflow."""
    if h > 0.5:
        return 1 - 2 * h * math.exp(-h) / -math.expm1(-2 * h)
    return math.fsum(h**k / math.factorial(k) for k in range(3, 20, 2)) / math.sinh(h)


@final
@dataclasses.dataclass(frozen=True)
class Gaussian(Event):
    """Discrete Gaussian noise, P[k grid] ∝ exp(−(k grid)²/2σ²), added to every value. Δ is the ℓ2 sensitivity.

    ρ = Δ²/(2σ²) (Canonne, Kamath & Steinke, Theorem 4 and its multivariate form). No finite ε bounds the loss.
    """

    sensitivity: float
    sigma: float
    grid: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_grid("sigma", self.sigma, self.grid)

    @property
    def epsilon(self) -> float:
        """Infinity: Gaussian noise has no finite ε."""
        return math.inf

    @property
    def rho(self) -> float:
        """ρ = Δ²/(2σ²)."""
        ratio = self.sensitivity / self.sigma
        return ratio * ratio / 2  # a product overflows to infinity, and a power raises


@final
@dataclasses.dataclass(frozen=True)
class Exponential(Event):
    """The exponential mechanism: choose argmax(score + Gumbel(2Δ/ε)). Δ bounds the change of every score.

    The choice is ε-DP. The log-ratio between neighbours ranges over an interval of width ε only, so ρ = ε²/8 (Cesar &
    Rogers).
    """

    sensitivity: float
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2.0**-500 <= self.scale <= 2.0**500:
            raise errors.InvalidInput(
                f"2 sensitivity / epsilon must be between 2^-500 and 2^500. Found {self.scale!r}. Rescale the scores."
            )

    @property
    def scale(self) -> float:
        """The scale of the Gumbel noise, 2Δ/ε."""
        return 2 * self.sensitivity / self.epsilon

    @property
    def rho(self) -> float:
        """ρ = ε²/8."""
        return self.epsilon * self.epsilon / 8


@final
@dataclasses.dataclass(frozen=True)
class AboveThreshold(Event):
    """A guard round: any number of "below", up to and including the first "above". It is billed when the round opens.

    The threshold gets noise Lap(Δ/ε₁) once, and every query gets noise Lap(2Δ/ε₂). The loss is ε = ε₁ + ε₂, whatever
    the number of "below" (Dwork & Roth, Theorem 3.23). ρ = ε·tanh(ε/2), as for every ε-DP mechanism
    (docs/proofs/accounting.md).

    Δ is rounded up to the grid of the noise, 2^-20 rows. Without that the proof would be off by one grid step. So read
    the scales from the event, and do not compute them from the Δ that was passed.
    """

    sensitivity: float
    epsilon_threshold: float
    epsilon_query: float

    def __post_init__(self) -> None:
        super().__post_init__()
        finest, given = comparison_grid(0.0), self.sensitivity
        if not finest <= given <= COARSEST:
            raise errors.InvalidInput(
                f"sensitivity must be between 2^-20 and 2^40 rows. Found {given!r}. Count in rows, not in fractions."
            )
        for grid in (finest, 1.0):
            object.__setattr__(self, "sensitivity", math.ceil(given / grid) * grid)
            if max(map(comparison_grid, (self.threshold_scale, self.query_scale))) <= grid:
                break
        for name in ("threshold_scale", "query_scale"):
            if not FINEST <= getattr(self, name) <= COARSEST:
                raise errors.InvalidInput(
                    f"{name} must be between 2^-40 and 2^40 rows. Found {getattr(self, name):.3g}. Change the epsilons."
                )

    @property
    def threshold_scale(self) -> float:
        """Δ/ε₁, the scale of the threshold's noise, in rows."""
        return self.sensitivity / self.epsilon_threshold

    @property
    def query_scale(self) -> float:
        """2Δ/ε₂, the scale of each query's noise, in rows."""
        return 2 * self.sensitivity / self.epsilon_query

    @property
    def epsilon(self) -> float:
        """ε = ε₁ + ε₂."""
        return self.epsilon_threshold + self.epsilon_query

    @property
    def rho(self) -> float:
        """ρ = ε·tanh(ε/2)."""
        return self.epsilon * math.tanh(self.epsilon / 2)


@final
@dataclasses.dataclass(frozen=True)
class ApproximateDP(Event):
    """A mechanism that is known only to be (ε, δ)-DP, by a proof from elsewhere.

    It is billed, but nothing is drawn from it here.

    Outside an event of probability δ the mechanism is ε-DP, so it is δ-approximately ρ-zCDP with ρ = ε·tanh(ε/2) (Bun &
    Steinke, Lemma 8.8). Use it only where there is no sharper description: a Gaussian billed in this way would cost
    many times its own ρ.
    """

    epsilon: float
    delta: float = dataclasses.field()  # without a field() the default would be the 0 of the base class

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_delta(self.delta)

    @property
    def rho(self) -> float:
        """ρ = ε·tanh(ε/2)."""
        return self.epsilon * math.tanh(self.epsilon / 2)

    @property
    def draws(self) -> Iterable[Event]:
        """Nothing: the mechanism draws elsewhere."""
        return ()


@final
@dataclasses.dataclass(frozen=True)
class Repeated(Event):
    """The same noise on each of ``times`` releases, billed together and drawn one by one. The losses add up."""

    event: Laplace | Gaussian
    times: int

    @property
    def epsilon(self) -> float:
        """The sum of the releases' ε."""
        return self.times * self.event.epsilon

    @property
    def rho(self) -> float:
        """The sum of the releases' ρ."""
        return self.times * self.event.rho

    @property
    def draws(self) -> Iterable[Event]:
        """The noise of each release."""
        return itertools.repeat(self.event, self.times)


@final
@dataclasses.dataclass(frozen=True)
class Planned(Event):
    """Gaussian noise from the share of a budget that was set aside for such noise before anything was charged.

    Discrete Gaussian noise of standard deviation σ is continuous noise of variance σ² − (2 grid)², rounded at random,
    up to factors 1 ± 10⁻³³ on its probabilities. The event is billed by Δ²/2σ² of that continuous noise, at a price
    that follows from the budget and the share. The ledger enforces the share (docs/proofs/planned.md).
    """

    event: Gaussian
    share: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share > 1:
            raise errors.InvalidInput(f"share must be at most 1. Found {self.share!r}. Use a part of the budget.")
        if self.event.sigma < COARSE_STEPS * self.event.grid:
            raise errors.InvalidInput(
                f"sigma of planned noise must be at least {COARSE_STEPS:g} grid steps. Found "
                f"{self.event.sigma / self.event.grid:.3g}. Choose a finer grid, or charge the noise as it is."
            )

    @property
    def epsilon(self) -> float:
        """Infinity: Gaussian noise has no finite ε."""
        return math.inf

    @property
    def rho(self) -> float:
        """ρ of the discrete noise, Δ²/(2σ²)."""
        return self.event.rho

    @property
    def continuous_rho(self) -> float:
        """ρ of the continuous noise, Δ²/2(σ² − (2 grid)²)."""
        noise = self.event
        return self.rho / (1 - (ROUNDED_AT_RANDOM * noise.grid / noise.sigma) ** 2)

    @property
    def draws(self) -> Iterable[Event]:
        """The Gaussian noise itself."""
        return (self.event,)


@final
@dataclasses.dataclass(frozen=True)
class PoissonSample(Event):
    """A secret sample that contains each row with probability heads/2^32.

    It is part of other events and not billed alone.
    """

    heads: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", whole("heads", self.heads))
        if self.heads > COIN:
            raise errors.InvalidInput(f"heads must be at most 2^32. Found {self.heads!r}. Give a rate of at most 1.")

    def loss(self, epsilon: float) -> float:
        """Return log(1 + q(e^ε′ − 1)): the loss of an ε′-DP mechanism on the sample, if a row is added or removed."""
        return _mixed_loss(self.heads / COIN, epsilon)

    @property
    def epsilon(self) -> float:
        """Infinity: a sample has no price of its own."""
        return math.inf

    @property
    def rho(self) -> float:
        """Infinity: a sample has no price of its own."""
        return math.inf


@final
@dataclasses.dataclass(frozen=True)
class DistinctRows(Event):
    """A secret sample without replacement from a table with a public number of rows.

    Every set of ``size`` rows is equally likely. The sample is part of other events and not billed alone.
    """

    size: int
    rows: int

    def __post_init__(self) -> None:
        _check_rows(self)
        if not self.size <= self.rows:
            raise errors.InvalidInput(
                f"size must be at most the table's rows, {self.rows}. Found {self.size}. Take fewer, or with "
                "replacement."
            )

    def loss(self, epsilon: float) -> float:
        """Return log(1 + (ℓ/n)(e^ε′ − 1)): the loss of an ε′-DP mechanism on the sample."""
        return _mixed_loss(self.size / self.rows, epsilon)

    @property
    def epsilon(self) -> float:
        """Infinity: a sample has no price of its own."""
        return math.inf

    @property
    def rho(self) -> float:
        """Infinity: a sample has no price of its own."""
        return math.inf


@final
@dataclasses.dataclass(frozen=True)
class RepeatedRows(Event):
    """A secret sample with replacement from a table with a public number of rows.

    Each of the ``size`` rows is drawn from the whole table, so that a row can be drawn more than once. The sample is
    part of other events and not billed alone.
    """

    size: int
    rows: int

    def __post_init__(self) -> None:
        _check_rows(self)

    def loss(self, epsilon: float) -> float:
        """Return ℓ·log(1 + (e^ε′ − 1)/n): a row that is drawn j times costs jε′."""
        return self.size * _mixed_loss(1 / self.rows, epsilon)

    @property
    def epsilon(self) -> float:
        """Infinity: a sample has no price of its own."""
        return math.inf

    @property
    def rho(self) -> float:
        """Infinity: a sample has no price of its own."""
        return math.inf


def _check_rows(sample: DistinctRows | RepeatedRows) -> None:
    """Refuse sizes that are not whole numbers, and tables that are too large."""
    for name in ("size", "rows"):
        object.__setattr__(sample, name, whole(name, getattr(sample, name)))
    if not sample.rows <= MOST_ROWS:
        raise errors.InvalidInput(f"rows must be at most 2^50. Found {sample.rows!r}. Use a smaller table.")


def _mixed_loss(rate: float, epsilon: float) -> float:
    """Return log(1 + rate·(e^ε − 1)), without overflow."""
    if epsilon < 500:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))


@final
@dataclasses.dataclass(frozen=True)
class Subsampled(Event):
    """A secret sample, and ε-DP noise or a choice that reads the sample alone.

    The loss is exact (docs/proofs/subsampled.md).

    The sensitivity of ``inner`` is for one row of the sample: replaced in a sample of fixed size, added or removed in a
    Poisson sample. A sample of fixed size requires neighbours that replace a row. A Poisson sample requires neighbours
    that add or remove one.
    """

    sample: DistinctRows | RepeatedRows | PoissonSample
    inner: Laplace | Exponential

    @property
    def epsilon(self) -> float:
        """The sample's exact loss at the ε′ of ``inner``."""
        return self.sample.loss(self.inner.epsilon)

    @property
    def rho(self) -> float:
        """ρ = ε·tanh(ε/2)."""
        return self.epsilon * math.tanh(self.epsilon / 2)

    @property
    def draws(self) -> Iterable[Event]:
        """The sample, then the noise or the choice."""
        return (self.sample, self.inner)


@final
@dataclasses.dataclass(frozen=True)
class FlippedRows(Event):
    """Several sampling counting queries, ``times`` in number: each asks one random row, and its answer may be false.

    A query takes one row at random, asks it a yes-or-no question, and flips the answer with probability heads/2^32.
    With α = heads/2^32 and i of n rows that would say "yes", the answer is "yes" with probability α + (1 − 2α)i/n.
    Changing i by one changes the logarithm of this probability, and of that of "no", by at most log(1 + (1 − 2α)/(αn)),
    which is attained (docs/proofs/scq.md).
    """

    heads: int
    rows: int
    times: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.heads < COIN // 2:
            raise errors.InvalidInput(
                f"heads must be below 2^31. Found {self.heads!r}. Lie with a probability below one half."
            )

    @property
    def flip(self) -> float:
        """α, the probability that an answer is flipped."""
        return self.heads / COIN

    @property
    def each(self) -> float:
        """The ε of one query."""
        return math.log1p((1 - 2 * self.flip) / (self.flip * self.rows))

    @property
    def epsilon(self) -> float:
        """The sum of the queries' ε."""
        return self.times * self.each

    @property
    def rho(self) -> float:
        """The sum of the queries' ρ, each ε·tanh(ε/2)."""
        return self.times * self.each * math.tanh(self.each / 2)


@final
@dataclasses.dataclass(frozen=True)
class SubsampledGaussian(Event):
    """Gaussian noise on each of ``steps`` sums, each over a fresh secret sample: (ε, δ)-DP as a whole.

    ``amplification`` makes such events and checks them at every charge: ε follows from the noise, the rate and the
    number of steps.
    """

    epsilon: float
    delta: float = dataclasses.field()  # without a field() the default would be the 0 of the base class
    steps: int
    sample: PoissonSample
    noise: Gaussian

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_delta(self.delta)

    @property
    def rho(self) -> float:
        """ρ = ε·tanh(ε/2)."""
        return self.epsilon * math.tanh(self.epsilon / 2)

    @property
    def draws(self) -> Iterable[Event]:
        """The sample and then the noise, once per step."""
        return itertools.chain.from_iterable(itertools.repeat((self.sample, self.noise), self.steps))


@final
@dataclasses.dataclass(frozen=True)
class PerturbedObjective(Event):
    """The minimum of a randomly tilted objective, with noise that hides its numerical error: (ε, δ)-DP as a whole.

    ``perturbed_objective`` checks such events at every charge. ε and δ follow from the two draws and from ``curvature``
    = λ/Λ, the largest curvature that one row adds to the objective, as a share of its strong convexity. Δ of the tilt
    is the change of the objective's gradient. Δ of the second draw is the distance between two computed minima whose
    exact minima agree.
    """

    epsilon: float
    delta: float = dataclasses.field()  # without a field() the default would be the 0 of the base class
    curvature: float
    tilt: Gaussian
    hide: Gaussian

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_delta(self.delta)

    @property
    def rho(self) -> float:
        """ρ = ε·tanh(ε/2)."""
        return self.epsilon * math.tanh(self.epsilon / 2)

    @property
    def draws(self) -> Iterable[Event]:
        """The tilt, then the noise that hides the numerical error."""
        return (self.tilt, self.hide)


@final
@dataclasses.dataclass(frozen=True)
class ThresholdedCounts(Event):
    """Noisy counts of the values of a column, released only where the noisy count reaches a threshold T.

    The set of values that occur is private. A value that occurs in a single row is released with probability P[1 + Z ≥
    T], and that is δ. Apart from that value the two tables have the same values, and the loss is that of the noise
    (docs/proofs/drafting.md). Counts are whole numbers, and so is the noise. With Z a discrete Gaussian and k = T − 1,
        P[Z ≥ k] ≤ e^(−k²/2σ²) / (1 − e^(−k/σ²)) / (√(2π)·σ),
    by a geometric series above the tail and by Poisson's summation formula below the normalizing sum.
    """

    noise: Gaussian
    threshold: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise.grid != 1:
            raise errors.InvalidInput(f"grid must be 1 for counts. Found {self.noise.grid!r}. Count in rows.")
        if self.threshold < 2:
            raise errors.InvalidInput(
                "threshold must be at least 2, because otherwise every value would be released. Found "
                f"{self.threshold!r}. Raise it."
            )
        _check_delta(self.delta)

    @property
    def epsilon(self) -> float:
        """Infinity: Gaussian noise has no finite ε."""
        return math.inf

    @property
    def rho(self) -> float:
        """ρ of the noise."""
        return self.noise.rho

    @property
    def delta(self) -> float:
        """The bound on P[Z ≥ T − 1], rounded up."""
        σ, k = self.noise.sigma, self.threshold - 1
        exponent = -((k / σ) ** 2) / 2
        whole = max(1.0, math.sqrt(2 * math.pi) * σ)
        bound = math.exp(exponent) / -math.expm1(-k / σ**2) / whole * (1 + ROUNDING)
        return max(bound, math.ulp(0.0))  # never free, however small

    @property
    def draws(self) -> Iterable[Event]:
        """The noise of the counts."""
        return (self.noise,)


def _check_delta(delta: float) -> None:
    """Refuse a δ of 1 or more."""
    if not delta < 1:
        raise errors.InvalidInput(f"delta must be below 1. Found {delta!r}. Use far less than 1 / rows.")


KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        AboveThreshold,
        ApproximateDP,
        DistinctRows,
        Exponential,
        FlippedRows,
        Gaussian,
        Laplace,
        PerturbedObjective,
        Planned,
        PoissonSample,
        Repeated,
        RepeatedRows,
        Subsampled,
        SubsampledGaussian,
        ThresholdedCounts,
    )
}
"""Every kind of event. An object of any other type is neither billed nor drawn."""
