"""All audits at once: every mechanism of this package, then the gallery.

Writes audit.json, and from it audit.md and audit.png.

The findings are kept in audit.json after every audit. So an interrupted run continues with ``--missing``, and a
mechanism that changed can be audited again alone with ``--only``.

A run fails if a claim of this package is refuted, if an audit at full length finds less than it should, or if a broken
mechanism passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from hedgerow._extras import extra
from hedgerow._json import parse, readable
from hedgerow.privacy.noise import Noise
from hedgerow.research.audit_cases.gallery import GALLERY, BrokenMechanism, EpsilonEvidence
from hedgerow.research.audit_cases.own_mechanisms import CASES, AuditCase
from hedgerow.research.pages import short_lines

CATCH = 0.99  # the least probability with which an audit must catch a broken mechanism
HEADER = """# Audit

Written by `make audit`; every figure here comes from that command. A bound *above* a claim would refute it, at the
stated confidence. A bound below it proves nothing: the proofs are in [proofs](proofs). `hedgerow/audit/__init__.py`
and the modules that it lists explain how audits work and what they assume. To check a mechanism of your own:

    from hedgerow import audit
    print(audit.distinguish(mechanism, data, neighbour, runs=20_000))

![The loss found, as a share of the claim](audit.png)
"""
OURS = """
## Ours
*found* is the loss itself (exact) or a lower bound on it (runs, one run), on the worst neighbours that could be
built. `own_mechanisms.py`, `convex_cases.py`, `session_cases.py` and `erm_cases.py` explain why each pair of neighbours moves
the drawn values by the whole billed sensitivity, and tests check it. The *share* of the claim is the power of the
audit. At full length it must be at least the number in brackets, which was set from other runs and from the power
that `bounds.epsilon_of_event` computes for so many runs. The difference from 1 is mostly the price of confidence:
Gaussian noise shows its loss in rare events, and the bounds on two of their frequencies are wrong with probability
1e-5 only. *One run*: canaries by Steinke, Nasr & Jagielski's Theorem 5.2. A coin decides between two fixed rows for
each canary, so the ε is that of a replaced row.

| mechanism | neighbours | auditor | claim | found | share | runs | confidence |
|---|---|---|---|---|---|---|---|
"""
BROKEN = """
## Broken
Each entry of `hedgerow/research/audit_cases/gallery.py` is caught by an audit that our own mechanism passes. *again* is a lower
bound on the probability that the same audit catches it another time. It is 1 for an exact audit; otherwise it follows
from the worst frequencies of the event that the runs allow.

| mechanism | what is wrong | auditor | claim | found | again | runs | ours, by the same test | its runs |
|---|---|---|---|---|---|---|---|---|
"""


@final
@dataclass(frozen=True)
class AuditOutcome:
    """The finding of an audit of our own mechanism, and the fault in it, if any."""

    case: AuditCase
    evidence: EpsilonEvidence
    full: bool

    @staticmethod
    def key(case: AuditCase) -> str:
        """Return the name under which the finding is stored."""
        return f"{case.name} ({case.claim.neighbours})"

    @property
    def share(self) -> float:
        """The share of the claim that was found."""
        return self.evidence.found / self.case.claim.epsilon

    @property
    def fault(self) -> str:
        """The fault: a refuted claim, or an audit without power. Empty if there is none."""
        if self.share > 1 + 1e-9:
            return f"{self.case.name}: {self.evidence.found:.4g} is above the claim of {self.case.claim.epsilon:.4g}"
        if self.full and self.share < self.case.reach:
            return f"{self.case.name}: only {self.share:.2f} of the claim was found, where {self.case.reach} must be"
        return ""

    def row(self) -> str:
        """Return the row of the page's table."""
        claim, at = self.case.claim, f", δ = {self.case.claim.delta:g}" if self.case.claim.delta else ""
        cells = [
            self.case.name, "" if self.case.auditor == "exact" else claim.neighbours, self.case.auditor,
            f"{self.case.currency} = {claim.epsilon:.4g}{at}", f"{self.evidence.found:.4g}",
            f"{self.share:.2f} ({self.case.reach:g})", *_certainty(self.evidence),
        ]  # fmt: skip
        return f"| {' | '.join(cells)} |"


@final
@dataclass(frozen=True)
class CaughtMechanism:
    """The findings of an audit on a broken mechanism, and on ours in its place."""

    entry: BrokenMechanism
    broken: EpsilonEvidence
    ours: EpsilonEvidence

    @property
    def fault(self) -> str:
        """The fault: a broken mechanism that is not caught, or ours that does not pass. Empty if there is none."""
        if not self.entry.is_caught(self.broken) or self.broken.again < CATCH:
            return f"{self.entry.name}: found {self.broken.found:.4g}, again with probability {self.broken.again:.4f}"
        return "" if self.entry.passes(self.ours) else f"{self.entry.name}: ours has {self.ours.found:.4g}"

    def row(self) -> str:
        """Return the row of the page's table."""
        entry, at = self.entry, f", δ = {self.entry.delta:g}" if self.entry.delta else ""
        ours_claim = "" if entry.ours_claim is None else f" of {entry.ours_claim:.4g}"
        cells = [
            entry.name, entry.wrong, entry.auditor, f"ε = {entry.claim:.4g}{at}", f"{self.broken.found:.4g}",
            f"{self.broken.again:.4f}", _certainty(self.broken)[0], f"{self.ours.found:.4g}{ours_claim}",
            _certainty(self.ours)[0],
        ]  # fmt: skip
        return f"| {' | '.join(cells)} |"


def _certainty(evidence: EpsilonEvidence) -> tuple[str, str]:
    return (f"{evidence.runs:,}", f"1 − {1 - evidence.confidence:.0e}") if evidence.runs else ("", "")


@final
class AuditResults:
    """The findings so far, stored in audit.json of a folder, or in memory only if there is no folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        path = folder and folder / "audit.json"
        self._kept: dict[str, dict[str, Any]] = parse(path.read_text()) if path and path.exists() else {}

    def forget(self) -> None:
        """Drop all findings."""
        self._kept = {}

    def __contains__(self, key: str) -> bool:
        return key in self._kept

    def keep(self, key: str, found: dict[str, Any]) -> None:
        """Store a finding."""
        self._kept[key] = found
        if self._folder is not None:
            (self._folder / "audit.json").write_text(readable(self._kept, indent=1, infinities=True) + "\n")

    def ours(self) -> list[AuditOutcome]:
        """Return the findings on our own mechanisms."""
        return [
            AuditOutcome(case, EpsilonEvidence(**kept["found"]), kept["full"])
            for case in CASES
            if (kept := self._kept.get(AuditOutcome.key(case)))
        ]

    def on_broken(self) -> list[CaughtMechanism]:
        """Return the findings on broken mechanisms."""
        return [
            CaughtMechanism(entry, EpsilonEvidence(**kept["broken"]), EpsilonEvidence(**kept["ours"]))
            for entry in GALLERY
            if (kept := self._kept.get(entry.name))
        ]


def run_audits(
    findings: AuditResults, share: float, workers: int, wanted: Callable[[str], bool] = lambda key: True
) -> list[str]:
    """Audit the wanted mechanisms and entries of the gallery, by their keys. Return the faults of all findings."""
    noise = Noise()
    for case in CASES:
        if wanted(key := AuditOutcome.key(case)):
            start = time.monotonic()
            outcome = AuditOutcome(case, case.examine(share, workers), full=share >= 1)
            findings.keep(key, {"found": asdict(outcome.evidence), "full": outcome.full})
            _say(outcome.row(), start)
    for entry in GALLERY:
        if wanted(entry.name):
            start = time.monotonic()
            caught = CaughtMechanism(entry, entry.audit(noise), entry.ours(noise))
            findings.keep(entry.name, {"broken": asdict(caught.broken), "ours": asdict(caught.ours)})
            _say(caught.row(), start)
    faults = [*(o.fault for o in findings.ours()), *(c.fault for c in findings.on_broken())]
    return [fault for fault in faults if fault]


def _say(row: str, start: float) -> None:
    print(row, f"{time.monotonic() - start:.0f} s", flush=True)


def write(folder: Path, findings: AuditResults) -> None:
    """Write the page and the picture of all findings."""
    ours, broken = findings.ours(), findings.on_broken()
    short = [o.case.name for o in ours if not o.full]
    missing = [c.name for c in CASES if AuditOutcome.key(c) not in findings] + [
        e.name for e in GALLERY if e.name not in findings
    ]
    notes = f"\n**With fewer runs than `make audit` makes:** {', '.join(short)}.\n" if short else ""
    notes += f"\n**Not audited yet:** {', '.join(missing)}.\n" if missing else ""
    page = HEADER + notes + OURS + "\n".join(o.row() for o in ours) + "\n" + BROKEN
    (folder / "audit.md").write_text(short_lines(page + "\n".join(c.row() for c in broken) + "\n"))
    _draw(folder / "audit.png", ours, broken)


def _draw(path: Path, ours: Sequence[AuditOutcome], broken: Sequence[CaughtMechanism]) -> None:
    """Draw the shares of all findings as bars."""
    extra("matplotlib").use("Agg")
    plt = extra("matplotlib.pyplot")

    bars = [
        (f"{o.case.name}{' ±' if o.case.claim.neighbours != 'replace' else ''}", o.share, "tab:green") for o in ours
    ]
    bars += [(c.entry.name, c.broken.found / c.entry.claim, "tab:red") for c in broken]
    figure, axes = plt.subplots(figsize=(9, 0.2 * len(bars) + 1.2))
    places = range(len(bars), 0, -1)
    axes.barh(places, [max(bar[1], 0.01) for bar in bars], color=[bar[2] for bar in bars])
    axes.set_yticks(places, [bar[0] for bar in bars], fontsize=6)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_ylim(0.3, len(bars) + 0.7)
    axes.set_xlabel("loss found, as a share of what is claimed (± where rows come and go; broken ones in red)")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(folder: Path | None, share: float, workers: int, only: Sequence[str] = (), missing: bool = False) -> int:
    """Audit all, or what is missing, or those whose key contains one of the texts. Renew the page and print the faults.

    Return the number of faults.
    """
    findings = AuditResults(folder)
    if not only and not missing:
        findings.forget()

    def wanted(key: str) -> bool:
        return key not in findings if missing else not only or any(text in key for text in only)

    wrong = run_audits(findings, share, workers, wanted)
    if folder is not None:
        write(folder, findings)
    print("\n".join(wrong) if wrong else "every claim holds, and every broken mechanism is caught")
    return len(wrong)
