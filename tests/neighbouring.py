"""Compare the transcripts of two neighbours that share one history, and name the rules that they break.

No statistics: distances are whole numbers and fractions, and compared exactly.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from recorder import Drawn, Recorder, Script, Transcript, transcribed

from hedgerow.privacy.amplification import _FINE
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, Gaussian, Laplace, SubsampledGaussian
from hedgerow.privacy.ledger import Accountant, Entry, Ledger

BUDGETS = {
    f"{neighbours}, {kind}": Budget(1.0, delta, neighbours)
    for neighbours in ("replace", "add-remove")
    for kind, delta in (("pure", 0.0), ("approximate", 1e-6))
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A mechanism and where it is held to its sensitivities.

    ``run(table, ledger, noise)`` returns every output. ``pairs``: neighbours. ``far``: another table of as many rows, which
    must look the same given the same history. ``sites``: the functions in which the mechanism draws.
    ``reach``: the share of its sensitivity that a draw attains on some pair, by the ``why`` of its charge and by each
    of its sites; 0.9 by default. Every draw that is named here must occur.
    """

    run: Callable[[Any, Ledger, Recorder], Any]
    budget: Budget
    pairs: Sequence[tuple[Any, Any]]
    far: Any
    sites: frozenset[str]
    reach: dict[str, float] = dataclasses.field(default_factory=dict)
    guard: Callable[[], Iterator[bool]] | None = None
    scripted: Script | None = None
    ledger: Callable[[], Ledger] | None = None

    def transcripts(self) -> Iterator[tuple[Transcript, Transcript]]:
        for _, others in itertools.groupby(self.pairs, key=lambda pair: id(pair[0])):
            pairs = list(others)
            one = self.transcript(pairs[0][0])
            assert not unbalanced(one), "; ".join(unbalanced(one))
            for _, other in pairs:
                yield one, self.transcript(other, one.draws)

    def transcript(self, table: Any, history: Sequence[Drawn] | None = None) -> Transcript:
        ledger = Accountant(self.budget) if self.ledger is None else self.ledger()
        guard = None if self.guard is None else self.guard()
        return transcribed(self.run, table, ledger, Recorder(0, history, guard, self.scripted))


def hold(case: Case) -> None:
    """Fail if a rule is broken, or if the pairs have no power to show that one is."""
    reached: dict[tuple[str, str], float] = {}
    sites: set[str] = set()
    for one, other in case.transcripts():
        found = faults(one, other, case.budget)
        assert not found, "; ".join(found)
        for drawn, share in moved(one, other, case.budget):
            reached[drawn] = max(reached.get(drawn, 0.0), share)
        sites |= {drawn.site for drawn in one.draws if drawn.kind != "compare"}
    found = different(one, case.transcript(case.far, one.draws))
    assert not found, "; ".join(found)
    assert sites == case.sites, f"drawn elsewhere, or not: {sorted(sites ^ case.sites)}; moved: {reached}"
    short = {drawn: share for drawn, share in reached.items() if share < case.reach.get(drawn[0], 0.9)}
    assert not short, f"too much noise, or too weak a search: {short}"
    assert case.reach.keys() <= {why for why, _ in reached}, f"moved: {reached}"


def faults(one: Transcript, other: Transcript, budget: Budget) -> list[str]:
    """Return every broken rule of the runs of two neighbours with the same released history."""
    found = [*unbalanced(one), *unbalanced(other), *different(one, other)]
    for a, b in zip(one.draws, other.draws, strict=False):
        if len(a.raw) == len(b.raw) and distance(a, b) > allowed(a, one.entries[a.number], budget):
            found.append(f"too far apart at {a.site}: {_root(distance(a, b), a):.12g} where {a.event!r}")
    return found


def different(one: Transcript, other: Transcript) -> list[str]:
    """Return the parts of two transcripts that differ although they must not depend on rows."""
    found = []
    bills = [[(e.number, e.events, e.cost, e.why, e.kept) for e in run.entries] for run in (one, other)]
    if bills[0] != bills[1]:
        found.append("a neighbour is charged otherwise")
    if len(one.draws) != len(other.draws):
        found.append("a neighbour draws more, or less")
    for a, b in zip(one.draws, other.draws, strict=False):
        if (a.kind, a.number, a.event, a.scales, len(a.raw)) != (b.kind, b.number, b.event, b.scales, len(b.raw)):
            found.append(f"a neighbour draws something else at {a.site}")
    if bits(one.outcome) != bits(other.outcome):
        found.append("what is told depends on more than was released")
    if bits([entry.released for entry in one.entries]) != bits([entry.released for entry in other.entries]):
        found.append("what is written down depends on more than was released")
    return found


def unbalanced(run: Transcript) -> list[str]:
    """Return events that were charged and not drawn, or drawn and not charged, and guards with other noise than their event's."""
    found = []
    for entry in run.entries:
        mine = [drawn for drawn in run.draws if drawn.number == entry.number]
        if [d.event for d in mine if d.kind != "compare"] != [part for e in entry.events for part in e.draws]:
            found.append(f"drawn is not what was charged: {entry.why}")
        released = [d.out for d in mine if d.kind in ("add", "choose", "flips")]
        if entry.kept and not isinstance(entry.event, AboveThreshold) and bits(entry.released) != bits(released):
            found.append(f"written down is not what was drawn: {entry.why}")
    for drawn in run.draws:
        if isinstance(drawn.event, AboveThreshold):
            scale = drawn.event.threshold_scale if drawn.kind == "open" else drawn.event.query_scale
            if drawn.scales != (scale,):
                found.append(f"a guard draws with {drawn.scales} where {drawn.event!r}")
        elif drawn.kind == "add":
            on_grid = np.asarray(drawn.out) / drawn.event.grid  # type: ignore[attr-defined]
            if not np.array_equal(on_grid, np.rint(on_grid)):
                found.append(f"released off the grid at {drawn.site}")
    return found


def distance(a: Drawn, b: Drawn) -> Fraction:
    """Return the distance of two draws in the norm of the event, squared for Gaussian noise."""
    apart = [abs(x - y) for x, y in zip(a.raw, b.raw, strict=True)]
    if a.kind in ("open", "sample"):  # a threshold is public; how large a sample's table is, nobody hears
        return max(apart) if a.kind == "open" else Fraction(0)
    if isinstance(a.event, Gaussian):
        return sum((x * x for x in apart), Fraction(0))
    return sum(apart, Fraction(0)) if isinstance(a.event, Laplace) else max(apart)


def allowed(drawn: Drawn, entry: Entry, budget: Budget) -> Fraction:
    """Return the billed sensitivity, squared for Gaussian noise."""
    if drawn.kind in ("open", "sample"):
        return Fraction(0)
    # a flip's loss is worked out for one row that says otherwise
    Δ = Fraction(1 if drawn.kind == "flips" else drawn.event.sensitivity)  # type: ignore[attr-defined]
    if isinstance(entry.event, SubsampledGaussian):
        Δ *= 1 + Fraction(_FINE)  # what it is priced at: rounding to the grid is in the noise, not in its sensitivity
        if budget.neighbours == "replace":
            Δ *= 2  # billed as a row that goes and one that comes
    return Δ * Δ if isinstance(drawn.event, Gaussian) else Δ


def moved(one: Transcript, other: Transcript, budget: Budget) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield the share of its sensitivity by which each draw moved, with the reason of the charge and the place of the draw."""
    for a, b in zip(one.draws, other.draws, strict=True):
        if a.kind not in ("open", "sample"):
            entry = one.entries[a.number]
            of_n = " of n" if entry.about.get("attributes") == () else ""
            yield (entry.why + of_n, a.site), _root(distance(a, b) / allowed(a, entry, budget), a)


def _root(value: Fraction, drawn: Drawn) -> float:
    return float(value) ** (0.5 if isinstance(drawn.event, Gaussian) else 1.0)


def bits(found: Any) -> Any:
    """Return a form of a value that is equal exactly if all bits are."""
    match found:
        case np.ndarray():
            return (found.shape, found.dtype.str, found.tobytes())
        case float() | np.floating():
            return float(found).hex()
        case dict():
            return tuple((bits(k), bits(v)) for k, v in found.items())
        case list() | tuple():
            return tuple(map(bits, found))
    if hasattr(found, "key"):
        return bits(found.key)
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        return type(found).__name__, *(bits(getattr(found, field.name)) for field in dataclasses.fields(found))
    return found


# Neighbouring tables of counts


def shifted(counts: np.ndarray, source: int, target: int | None = None) -> np.ndarray:
    """Return the table with one row less in a cell, and one more in another."""
    other = counts.copy()
    other.reshape(-1)[source] -= 1
    if target is not None:
        other.reshape(-1)[target] += 1
    assert (other >= 0).all()
    return other


def tables(counts: np.ndarray, budget: Budget, most: int = 8) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return neighbours of a table: rows moved from its fullest cells to its emptiest, and between others."""
    order = np.argsort(counts.reshape(-1), kind="stable")
    full = [int(c) for c in order[::-1] if counts.reshape(-1)[c] > 0]
    if budget.neighbours == "add-remove":
        return [(counts, shifted(counts, c)) for c in full[:most]]
    moves = [(s, int(t)) for s, t in zip(itertools.cycle(full), order, strict=False) if s != t]
    moves += [(s, int(t)) for s in full[:2] for t in order[::-1] if s != t]
    return [
        (counts, shifted(counts, s, t)) for s, t in dict.fromkeys(moves[: most // 2] + moves[-(most - most // 2) :])
    ]


def reversed_table(counts: np.ndarray) -> np.ndarray:
    """Return a table of as many rows in other cells."""
    return counts.reshape(-1)[::-1].reshape(counts.shape).copy()
