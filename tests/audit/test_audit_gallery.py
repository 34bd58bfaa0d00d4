"""Broken mechanisms are caught by audits that ours pass: the quick ones here, all of them by `make audit`."""

import dataclasses

import pytest

from hedgerow.audit import ours, report
from hedgerow.audit.gallery import GALLERY, Evidence
from hedgerow.privacy.noise import Seeded

QUICK = [entry for entry in GALLERY if entry.auditor != "runs" or "doubles" in entry.name or "seeded" in entry.name]


def named(case) -> str:
    return case.name


def test_the_gallery_has_what_it_promises() -> None:
    assert len({entry.name for entry in GALLERY}) == len(GALLERY) >= 12
    assert {entry.auditor for entry in GALLERY} == {"runs", "exact", "ledger"}
    assert len(QUICK) >= 4


@pytest.mark.parametrize("entry", QUICK, ids=named)
def test_a_broken_mechanism_is_caught_and_ours_passes_the_same_test(entry) -> None:
    caught = report.Caught(entry, entry.audit(Seeded(1)), entry.ours(Seeded(2)))
    assert caught.fault == ""
    assert caught.broken.again >= 0.99


@pytest.mark.parametrize("case", ours.EXACT, ids=named)
def test_an_event_of_ours_has_no_more_than_it_claims_and_comes_close(case) -> None:
    (outcome,) = report.audited([case], 1.0, 1)
    assert outcome.fault == ""


def test_faults_are_told() -> None:
    """A claim that is refuted, an audit without power, a broken mechanism that passes, ours that fails."""
    case, entry = ours.EXACT[0], GALLERY[0]
    assert "above the claim" in report.Outcome(case, Evidence(2 * case.claim.epsilon), full=False).fault
    assert "only 0.10" in report.Outcome(case, Evidence(0.1 * case.claim.epsilon), full=True).fault
    assert report.Outcome(case, Evidence(0.1 * case.claim.epsilon), full=False).fault == ""
    assert "again" in report.Caught(entry, Evidence(0.5 * entry.claim), Evidence(0.0)).fault
    assert "again" in report.Caught(entry, Evidence(2 * entry.claim, again=0.9), Evidence(0.0)).fault
    assert "ours has" in report.Caught(entry, Evidence(2 * entry.claim), Evidence(2 * entry.claim)).fault


def test_a_page_and_a_picture_are_written(tmp_path) -> None:
    outcome = report.Outcome(ours.EXACT[0], Evidence(0.4), full=True)
    caught = report.Caught(dataclasses.replace(GALLERY[0], name="a broken one"), Evidence(2.0), Evidence(0.1))
    report.write(tmp_path, [outcome], [caught], 0.5)
    page = (tmp_path / "audit.md").read_text()
    assert "| Laplace noise |" in page and "| a broken one |" in page and "0.5 of its runs" in page
    assert (tmp_path / "audit.png").stat().st_size > 1000
