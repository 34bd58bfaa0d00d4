"""What a mechanism will draw and what it costs: one frozen record for both the sampler and the accountant.

Papers: Bun & Steinke "Concentrated differential privacy" (zCDP); Canonne, Kamath & Steinke "The discrete Gaussian for
differential privacy"; Cesar & Rogers "Bounding, concentrating, and truncating" (bounded range); Dwork & Roth ch. 3.

Symbols: Δ sensitivity, in rows, under the budget's neighbours; b scale and σ standard deviation of the noise, in rows;
h = grid/b; ε pure privacy loss; ρ zCDP loss: D_α(M(x) ‖ M(x')) <= ρ α for every α > 1.

A grid is a power of two, so that dividing by it is exact in floating point. Values off the grid are rounded to it,
which can move neighbours apart: the caller adds the grid to Δ, once for every value that one row can change (for an
ℓ2 sensitivity: its square root times the grid).
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

MOST_ROWS = 2**50  # of any table
COIN = 2**32  # rates of samples are multiples of its inverse, so that a coin is a comparison of whole numbers
FINEST, COARSEST = 2.0**-40, 2.0**40
"""Noise of less or more than this many grid steps is refused, so that no sum can overflow, whatever the data hold."""

ROUNDED_AT_RANDOM = 2.0  # grid steps: the deviation of the rounding that makes continuous noise discrete
COARSE_STEPS = 4.0  # planned noise has at least so many
ROUNDING = 2.0**-40  # relative: far more than a few operations in float64 can be off by


def comparison_grid(scale: float) -> float:
    """The grid, in rows, of the noise in a threshold test: whole rows are on it, and float64 adds them exactly."""
    return 2.0**-20 if scale <= 2.0**24 else 1.0


def grid_at_most(step: float) -> float:
    """The largest power of two that is at most `step`: a grid no coarser than asked."""
    return math.ldexp(0.5, math.frexp(positive("grid step", step))[1])


@functools.cache
def _fields_of(kind: type[Event]) -> list[tuple[str, list[type[Event]], bool]]:
    """The name of each field, the kinds of events that it may be, and else whether it is a whole number."""
    found = []
    for field in dataclasses.fields(kind):
        kinds = [KINDS[name] for name in str(field.type).split(" | ") if name in KINDS]
        found.append((field.name, kinds, field.type == "int"))
    return found


@dataclasses.dataclass(frozen=True)
class Event:
    """One use of the data. Frozen; refuses at construction what could not be billed or drawn."""

    def __post_init__(self) -> None:
        own: Any = type(self)
        for name, kinds, is_whole in _fields_of(own):
            value = getattr(self, name)
            if kinds:
                _require_kind(name, value, kinds)
                continue
            object.__setattr__(self, name, whole(name, value) if is_whole else positive(name, value))
        # A loss that underflows to zero, or is not a number, would be billed as free.
        positive(f"rho of {type(self).__name__}", self.rho)
        if not self.epsilon > 0:
            raise errors.InvalidInput(
                f"epsilon of {type(self).__name__} must be above 0. Found {self.epsilon!r}. Use a smaller scale."
            )

    if TYPE_CHECKING:  # at run time an inherited property would become the default of a field with its name

        @property
        def epsilon(self) -> float:
            """Pure loss ε; infinite where there is none."""

        @property
        def rho(self) -> float:
            """zCDP loss ρ."""

        @property
        def delta(self) -> float:
            """Slack: the probability with which the stated loss may fail. Zero unless a field says otherwise."""
    else:
        delta = 0.0

    @property
    def draws(self) -> Iterable[Event]:
        """What may be drawn once this is paid for, in order: itself, unless a proof of its own says otherwise."""
        return (self,)

    def to_dict(self) -> dict[str, Any]:
        """A record for JSON, which keeps every float exactly."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain = {name: value.to_dict() if isinstance(value, Event) else value for name, value in fields.items()}
        return {"kind": type(self).__name__, **plain}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The event that `to_dict` described; anything else is refused."""
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
    """A part is what it says: of another type it could price itself as it likes, or have a δ that nobody counts."""
    if type(part) not in kinds:
        raise errors.InvalidInput(
            f"{name} must be {' or '.join(kind.__name__ for kind in kinds)}. Found a {type(part).__name__}. "
            "Describe each draw by itself."
        )


def _check_grid(name: str, spread: float, grid: float) -> None:
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
    """Discrete Laplace noise, P[k grid] ∝ exp(−|k| grid/b), added to every value; Δ is the ℓ1 sensitivity.

    ε = Δ/b.  ρ = ε − (1 − e^−ε)·h/sinh(h), the KL divergence of two noises ε apart, and it bounds every order
    (docs/proofs/laplace.md). On a fine grid it is ε − 1 + e^−ε; with one grid step it is ε·tanh(ε/2).
    """

    sensitivity: float
    scale: float
    grid: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_grid("scale", self.scale, self.grid)

    @property
    def epsilon(self) -> float:
        return self.sensitivity / self.scale

    @property
    def rho(self) -> float:
        ε, h = self.epsilon, self.grid / self.scale
        fine = _exp_remainder(ε)  # ε − (1 − e^−ε)
        coarse = -math.expm1(-ε) * _sinh_remainder(h)  # (1 − e^−ε)·(1 − h/sinh h)
        return min(fine + coarse, ε * math.tanh(ε / 2))


def _exp_remainder(x: float) -> float:
    """e^−x − 1 + x for x > 0, without cancellation."""
    if x > 0.5:
        return math.expm1(-x) + x
    return math.fsum((-x) ** k / math.factorial(k) for k in range(2, 19))


def _sinh_remainder(h: float) -> float:
    """1 − h/sinh(h) for h > 0, without cancellation or overflow."""
    if h > 0.5:
        return 1 - 2 * h * math.exp(-h) / -math.expm1(-2 * h)
    return math.fsum(h**k / math.factorial(k) for k in range(3, 20, 2)) / math.sinh(h)


@final
@dataclasses.dataclass(frozen=True)
class Gaussian(Event):
    """Discrete Gaussian noise, P[k grid] ∝ exp(−(k grid)²/2σ²), added to every value; Δ is the ℓ2 sensitivity.

    ρ = Δ²/(2σ²) (Canonne, Kamath & Steinke, Theorem 4 and its multivariate form). No finite ε bounds it.
    """

    sensitivity: float
    sigma: float
    grid: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_grid("sigma", self.sigma, self.grid)

    @property
    def epsilon(self) -> float:
        return math.inf

    @property
    def rho(self) -> float:
        return (self.sensitivity / self.sigma) ** 2 / 2


@final
@dataclasses.dataclass(frozen=True)
class Exponential(Event):
    """Choose argmax(score + Gumbel(2Δ/ε)): the exponential mechanism. Δ bounds the change of every score.

    ε-DP. The log-ratio of neighbours ranges over an interval of width ε only, so ρ = ε²/8 (Cesar & Rogers).
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
        """Of the Gumbel noise."""
        return 2 * self.sensitivity / self.epsilon

    @property
    def rho(self) -> float:
        return self.epsilon**2 / 8


@final
@dataclasses.dataclass(frozen=True)
class AboveThreshold(Event):
    """A guard round: any number of "below", up to and including the first "above". Billed when the round opens.

    The threshold gets Lap(Δ/ε₁) once, every query Lap(2Δ/ε₂): ε = ε₁ + ε₂ whatever the number of "below"
    (Dwork & Roth, Theorem 3.23). ρ = ε·tanh(ε/2), as for every ε-DP mechanism (docs/proofs/accounting.md).
    Δ is rounded up to the grid of the noise, 2^-20 rows, without which the proof would be off by a step; so read the
    scales here.
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
        return self.sensitivity / self.epsilon_threshold

    @property
    def query_scale(self) -> float:
        return 2 * self.sensitivity / self.epsilon_query

    @property
    def epsilon(self) -> float:
        return self.epsilon_threshold + self.epsilon_query

    @property
    def rho(self) -> float:
        return self.epsilon * math.tanh(self.epsilon / 2)


@final
@dataclasses.dataclass(frozen=True)
class ApproximateDP(Event):
    """A mechanism known only to be (ε, δ)-DP, by a proof from elsewhere. It is billed; nothing is drawn from it here.

    Outside an event of probability δ it is ε-DP, so it is δ-approximately ρ-zCDP with ρ = ε·tanh(ε/2) (Bun & Steinke,
    Lemma 8.8). Only for what has no sharper description: a Gaussian billed so would cost many times its own ρ.
    """

    epsilon: float
    delta: float = dataclasses.field()  # by default it would be the base's 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_delta(self.delta)

    @property
    def rho(self) -> float:
        return self.epsilon * math.tanh(self.epsilon / 2)

    @property
    def draws(self) -> Iterable[Event]:
        return ()


@final
@dataclasses.dataclass(frozen=True)
class Repeated(Event):
    """The same noise on each of so many releases: billed together, drawn one by one. Losses of releases add up."""

    event: Laplace | Gaussian
    times: int

    @property
    def epsilon(self) -> float:
        return self.times * self.event.epsilon

    @property
    def rho(self) -> float:
        return self.times * self.event.rho

    @property
    def draws(self) -> Iterable[Event]:
        return itertools.repeat(self.event, self.times)


@final
@dataclasses.dataclass(frozen=True)
class Planned(Event):
    """Gaussian noise from the share of a budget that was set aside for such noise before anything was charged.

    Discrete Gaussian noise of deviation σ is continuous noise of variance σ² − (2 grid)², rounded at random, up to factors
    1 ± 10⁻³³ on its probabilities. By that noise's Δ²/2σ² it is billed, at a price that follows from the budget and the
    share, which the ledger enforces (docs/proofs/planned.md).
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
        return math.inf

    @property
    def rho(self) -> float:
        return self.event.rho

    @property
    def continuous_rho(self) -> float:
        """Δ²/2(σ² − (2 grid)²)."""
        noise = self.event
        return self.rho / (1 - (ROUNDED_AT_RANDOM * noise.grid / noise.sigma) ** 2)

    @property
    def draws(self) -> Iterable[Event]:
        return (self.event,)


@final
@dataclasses.dataclass(frozen=True)
class PoissonSample(Event):
    """A secret sample that has every row with probability heads/2^32. A part of other events: alone it is not billed."""

    heads: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", whole("heads", self.heads))
        if self.heads > COIN:
            raise errors.InvalidInput(f"heads must be at most 2^32. Found {self.heads!r}. Give a rate of at most 1.")

    def loss(self, epsilon: float) -> float:
        """log(1 + q(e^ε′ − 1)): of what is ε′-private on the sample, where a row comes or goes."""
        return _mixed_loss(self.heads / COIN, epsilon)

    @property
    def epsilon(self) -> float:
        return math.inf

    @property
    def rho(self) -> float:
        return math.inf


@final
@dataclasses.dataclass(frozen=True)
class DistinctRows(Event):
    """A secret sample of a table's rows, whose number is public: every set of ``size`` of them is as likely.

    A part of other events: alone it is not billed.
    """

    size: int
    rows: int

    def __post_init__(self) -> None:
        _check_rows(self)
        if not self.size <= self.rows:
            raise errors.InvalidInput(
                f"size must be at most the table's rows, {self.rows}. Found {self.size}. Take fewer, or with replacement."
            )

    def loss(self, epsilon: float) -> float:
        """log(1 + (ℓ/n)(e^ε′ − 1)): of what is ε′-private on the sample."""
        return _mixed_loss(self.size / self.rows, epsilon)

    @property
    def epsilon(self) -> float:
        return math.inf

    @property
    def rho(self) -> float:
        return math.inf


@final
@dataclasses.dataclass(frozen=True)
class RepeatedRows(Event):
    """The same with replacement: each of ``size`` rows is drawn from all of them, so that one may be drawn more than once."""

    size: int
    rows: int

    def __post_init__(self) -> None:
        _check_rows(self)

    def loss(self, epsilon: float) -> float:
        """ℓ·log(1 + (e^ε′ − 1)/n): a row that is drawn j times costs jε′."""
        return self.size * _mixed_loss(1 / self.rows, epsilon)

    @property
    def epsilon(self) -> float:
        return math.inf

    @property
    def rho(self) -> float:
        return math.inf


def _check_rows(sample: DistinctRows | RepeatedRows) -> None:
    for name in ("size", "rows"):
        object.__setattr__(sample, name, whole(name, getattr(sample, name)))
    if not sample.rows <= MOST_ROWS:
        raise errors.InvalidInput(f"rows must be at most 2^50. Found {sample.rows!r}. Use a smaller table.")


def _mixed_loss(rate: float, epsilon: float) -> float:
    """log(1 + rate·(e^ε − 1)), without overflow."""
    if epsilon < 500:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))


@final
@dataclasses.dataclass(frozen=True)
class Subsampled(Event):
    """A secret sample, and what is drawn from it alone: ε-DP noise or a choice. The exact loss (docs/proofs/subsampled.md).

    The sensitivity of ``inner`` is of one row of the sample: replaced in a sample of fixed size, come or gone in a Poisson
    sample. A sample of fixed size is for neighbours that replace a row, a Poisson sample for rows that come and go.
    """

    sample: DistinctRows | RepeatedRows | PoissonSample
    inner: Laplace | Exponential

    @property
    def epsilon(self) -> float:
        return self.sample.loss(self.inner.epsilon)

    @property
    def rho(self) -> float:
        return self.epsilon * math.tanh(self.epsilon / 2)

    @property
    def draws(self) -> Iterable[Event]:
        return (self.sample, self.inner)


@final
@dataclasses.dataclass(frozen=True)
class FlippedRows(Event):
    """``times`` sampling counting queries: each takes one row at random, asks it yes or no, and lies with probability heads/2^32.

    With α = heads/2^32 and n rows, "yes" of a table with i such rows has probability α + (1 − 2α)i/n. One row more or less
    changes its logarithm, and that of "no", by at most log(1 + (1 − 2α)/(αn)), which is attained (docs/proofs/scq.md).
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
        return self.heads / COIN

    @property
    def each(self) -> float:
        """ε of one of them."""
        return math.log1p((1 - 2 * self.flip) / (self.flip * self.rows))

    @property
    def epsilon(self) -> float:
        return self.times * self.each

    @property
    def rho(self) -> float:
        return self.times * self.each * math.tanh(self.each / 2)


@final
@dataclasses.dataclass(frozen=True)
class SubsampledGaussian(Event):
    """Gaussian noise on each of `steps` sums, every one over a fresh secret sample: (ε, δ)-DP as a whole.

    Made, and on every charge checked, by ``amplification``: ε follows from the noise, the rate and the number of steps.
    """

    epsilon: float
    delta: float = dataclasses.field()  # by default it would be the base's 0
    steps: int
    sample: PoissonSample
    noise: Gaussian

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_delta(self.delta)

    @property
    def rho(self) -> float:
        return self.epsilon * math.tanh(self.epsilon / 2)

    @property
    def draws(self) -> Iterable[Event]:
        return itertools.chain.from_iterable(itertools.repeat((self.sample, self.noise), self.steps))


@final
@dataclasses.dataclass(frozen=True)
class PerturbedObjective(Event):
    """The minimum of an objective tilted at random, and noise that hides how near to it was found: (ε, δ)-DP as a whole.

    Made, and on every charge checked, by ``perturbed_objective``: ε and δ follow from the two draws and from λ/Λ, the most
    that one row adds to the objective's curvature as a share of its strong convexity. Δ of the tilt is the change of its
    gradient, Δ of the second draw the distance of two computed minima of which the exact ones agree.
    """

    epsilon: float
    delta: float = dataclasses.field()  # by default it would be the base's 0
    curvature: float
    tilt: Gaussian
    hide: Gaussian

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_delta(self.delta)

    @property
    def rho(self) -> float:
        return self.epsilon * math.tanh(self.epsilon / 2)

    @property
    def draws(self) -> Iterable[Event]:
        return (self.tilt, self.hide)


@final
@dataclasses.dataclass(frozen=True)
class ThresholdedCounts(Event):
    """How often each value occurs, with Gaussian noise, of those whose noisy count reaches a threshold T; of no others.

    Which values occur is private: one that a single row has is told with probability P[1 + Z ≥ T], and that is δ. Beside it
    the two tables have the same values, and the loss is that of the noise (docs/proofs/drafting.md). Values are whole, and
    so is the noise. With Z a discrete Gaussian and k = T − 1,
        P[Z ≥ k] ≤ e^(−k²/2σ²) / (1 − e^(−k/σ²)) / (√(2π)·σ),
    a geometric series above the tail, and Poisson's sum below the whole.
    """

    noise: Gaussian
    threshold: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise.grid != 1:
            raise errors.InvalidInput(f"grid must be 1 for counts. Found {self.noise.grid!r}. Count in rows.")
        if self.threshold < 2:
            raise errors.InvalidInput(
                f"threshold must be at least 2, or every value would be told. Found {self.threshold!r}. Raise it."
            )
        _check_delta(self.delta)

    @property
    def epsilon(self) -> float:
        return math.inf

    @property
    def rho(self) -> float:
        return self.noise.rho

    @property
    def delta(self) -> float:
        σ, k = self.noise.sigma, self.threshold - 1
        exponent = -((k / σ) ** 2) / 2
        whole = max(1.0, math.sqrt(2 * math.pi) * σ)
        bound = math.exp(exponent) / -math.expm1(-k / σ**2) / whole * (1 + ROUNDING)
        return max(bound, math.ulp(0.0))  # never free, however small

    @property
    def draws(self) -> Iterable[Event]:
        return (self.noise,)


def _check_delta(delta: float) -> None:
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
"""All there are: whatever else calls itself an event is neither billed nor drawn."""
