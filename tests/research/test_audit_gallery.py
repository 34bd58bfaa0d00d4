"""Broken mechanisms are caught by audits that ours pass: the quick ones here, all of them by `make audit`."""

import dataclasses

import pytest

from hedgerow.privacy.noise import Seeded
from hedgerow.research.audit_cases import own_mechanisms, report
from hedgerow.research.audit_cases.gallery import GALLERY, EpsilonEvidence

QUICK = [entry for entry in GALLERY if entry.auditor != "runs" or "doubles" in entry.name or "seeded" in entry.name]


def named(case) -> str:
    return case.name


def test_the_gallery_has_what_it_promises() -> None:
    assert len({entry.name for entry in GALLERY}) == len(GALLERY) >= 12
    assert {entry.auditor for entry in GALLERY} == {"runs", "exact", "ledger"}
    assert len(QUICK) >= 4


@pytest.mark.parametrize("entry", QUICK, ids=named)
def test_a_broken_mechanism_is_caught_and_ours_passes_the_same_test(entry) -> None:
    caught = report.CaughtMechanism(entry, entry.audit(Seeded(1)), entry.ours(Seeded(2)))
    assert caught.fault == ""
    assert caught.broken.again >= 0.99


@pytest.mark.parametrize("case", own_mechanisms.EXACT, ids=named)
def test_an_event_of_ours_has_no_more_than_it_claims_and_comes_close(case) -> None:
    assert report.run_audits(report.AuditResults(None), 1.0, 1, lambda key: key == report.AuditOutcome.key(case)) == []


def test_faults_are_told() -> None:
    """A claim that is refuted, an audit without power, a broken mechanism that passes, ours that fails."""
    case, entry = own_mechanisms.EXACT[0], GALLERY[0]
    assert "above the claim" in report.AuditOutcome(case, EpsilonEvidence(2 * case.claim.epsilon), full=False).fault
    assert "only 0.10" in report.AuditOutcome(case, EpsilonEvidence(0.1 * case.claim.epsilon), full=True).fault
    assert report.AuditOutcome(case, EpsilonEvidence(0.1 * case.claim.epsilon), full=False).fault == ""
    assert "again" in report.CaughtMechanism(entry, EpsilonEvidence(0.5 * entry.claim), EpsilonEvidence(0.0)).fault
    assert (
        "again"
        in report.CaughtMechanism(entry, EpsilonEvidence(2 * entry.claim, again=0.9), EpsilonEvidence(0.0)).fault
    )
    assert (
        "ours has"
        in report.CaughtMechanism(entry, EpsilonEvidence(2 * entry.claim), EpsilonEvidence(2 * entry.claim)).fault
    )


def test_a_page_and_a_picture_are_written_of_what_is_kept(tmp_path) -> None:
    case, entry = own_mechanisms.EXACT[0], GALLERY[0]
    findings = report.AuditResults(tmp_path)
    findings.keep(report.AuditOutcome.key(case), {"found": dataclasses.asdict(EpsilonEvidence(0.4)), "full": False})
    both = {"broken": dataclasses.asdict(EpsilonEvidence(2.0)), "ours": dataclasses.asdict(EpsilonEvidence(0.1))}
    findings.keep(entry.name, both)
    again = report.AuditResults(tmp_path)  # from the file
    assert again.ours() == findings.ours() and again.on_broken() == findings.on_broken()
    report.write(tmp_path, again)
    page = (tmp_path / "audit.md").read_text()
    assert f"| {case.name} |" in page and f"| {entry.name} |" in page
    assert f"With fewer runs than `make audit` makes:** {case.name}." in page
    assert "Not audited yet:**" in page and own_mechanisms.EXACT[1].name in page.split("## Ours")[0]
    assert (tmp_path / "audit.png").stat().st_size > 1000


def test_missing_audits_are_run_and_stored_ones_stay(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(report, "CASES", own_mechanisms.EXACT[:2])
    monkeypatch.setattr(report, "GALLERY", ())
    first, second = map(report.AuditOutcome.key, own_mechanisms.EXACT[:2])
    assert report.main(tmp_path, 1.0, 1, only=[second]) == 0
    report.AuditResults(tmp_path).keep(second, {"found": dataclasses.asdict(EpsilonEvidence(9.0)), "full": True})
    assert report.main(tmp_path, 1.0, 1, missing=True) == 1  # the one that was kept is above its claim
    assert first in report.AuditResults(tmp_path)
    assert report.main(tmp_path, 1.0, 1) == 0
