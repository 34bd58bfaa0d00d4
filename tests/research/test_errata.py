"""Errata: every demonstration fails on the printed formula and passes on ours, and the command writes the page."""

from __future__ import annotations

import dataclasses
import importlib
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hedgerow.cli import app
from hedgerow.errors import InvalidInput
from hedgerow.research.errata import ERRATA, NOTED, ErratumFinding, page, report
from hedgerow.research.errata.erratum import DOCUMENTS
from hedgerow.research.errata.exact import binomial_delta, randomized_response_delta

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errata.md"


@pytest.fixture(scope="module")
def ran() -> dict[str, page.ErratumRun]:
    return {one.erratum.name: one for one in page.run_all(ERRATA)}


@pytest.mark.parametrize("name", [erratum.name for erratum in ERRATA])
def test_the_printed_formula_fails(name, ran) -> None:
    assert not ran[name].printed.holds


@pytest.mark.parametrize("name", [erratum.name for erratum in ERRATA])
def test_ours_holds(name, ran) -> None:
    assert ran[name].ours.holds


def test_the_page_is_what_the_command_writes(ran) -> None:
    assert page.page_text(list(ran.values()), NOTED) == PAGE.read_text(encoding="utf-8"), (
        "run `hedgerow errata --write`"
    )


def test_a_demonstration_finds_the_same_every_time(ran) -> None:
    seeded = next(erratum for erratum in ERRATA if erratum.name == "talwar-frank-wolfe-step")
    assert page.run_demonstration(seeded) == ran[seeded.name]


def test_no_two_errata_share_a_name_or_a_place() -> None:
    assert len({erratum.name for erratum in ERRATA}) == len(ERRATA)
    assert len({(erratum.document, erratum.place) for erratum in ERRATA}) == len(ERRATA)


def test_every_document_has_errata_and_every_note_a_document() -> None:
    assert {erratum.document for erratum in ERRATA} == set(DOCUMENTS)
    assert {note.document for note in NOTED} <= set(DOCUMENTS)


def test_the_modules_that_are_named_are_there() -> None:
    for erratum in ERRATA:
        if erratum.in_the_package:
            importlib.import_module(erratum.module)


# The command


def test_the_command_shows_all_and_writes_the_page(tmp_path) -> None:
    ran = CliRunner().invoke(app, ["errata", "--write", "--page", str(tmp_path / "errata.md")])
    assert ran.exit_code == 0, ran.output
    assert f"{len(ERRATA)} of {len(ERRATA)} fail as printed and hold as ours" in ran.output
    assert all(erratum.name in ran.output for erratum in ERRATA)
    assert (tmp_path / "errata.md").read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_the_command_explains_one() -> None:
    ran = CliRunner().invoke(app, ["errata", "fish-with-replacement"])
    assert ran.exit_code == 0, ran.output
    assert "Proposition 7" in ran.output
    assert "fails: 1.24, at most 0.828" in ran.output


@pytest.mark.parametrize(
    "arguments",
    [["nobody-wrote-this"], ["fish-with-replacement", "--write"], ["--write", "--page", "nowhere/errata.md"]],
)
def test_arguments_that_errata_cannot_show_are_refused(arguments, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, ["errata", *arguments])
    assert ran.exit_code == 2
    assert "Found" in ran.output


@pytest.mark.parametrize(
    ("printed", "ours"),
    [(0.5, 0.5), (2.0, 2.0), (0.5, 2.0)],
    ids=["printed holds", "ours fails", "the wrong way round"],
)
def test_the_status_says_when_a_demonstration_does_not_behave(printed, ours, monkeypatch) -> None:
    findings = ErratumFinding("printed", printed, 1.0), ErratumFinding("ours", ours, 1.0)
    astray = dataclasses.replace(ERRATA[0], demonstrate=lambda: findings)
    monkeypatch.setattr(report, "ERRATA", (astray,))
    ran = CliRunner().invoke(app, ["errata"])
    assert ran.exit_code == 1
    assert f"do not behave: {astray.name}" in ran.output


# What the demonstrations measure with


def test_a_finding_holds_up_to_its_limit() -> None:
    assert ErratumFinding("", 1.0, 1.0).holds
    assert not ErratumFinding("", 1.001, 1.0).holds
    assert ErratumFinding("", 1.0, 1.0, "at least").holds
    assert not ErratumFinding("", 0.999, 1.0, "at least").holds
    assert not ErratumFinding("", math.inf, 1.0).holds


def test_a_finding_without_a_number_is_refused_rather_than_taken_for_a_failure() -> None:
    with pytest.raises(InvalidInput, match="number"):
        ErratumFinding("", math.nan, 1.0)


def test_one_randomised_response_has_the_delta_of_the_textbook() -> None:
    for epsilon in (0.0, 0.4, 0.9):
        expected = (math.exp(1.0) - math.exp(epsilon)) / (1 + math.exp(1.0))
        assert randomized_response_delta(epsilon, 1.0, 1) == pytest.approx(expected, rel=1e-12)


def test_many_randomised_responses_are_private_by_the_sum_and_not_by_less() -> None:
    assert randomized_response_delta(5.0, 0.5, 10) == pytest.approx(0.0, abs=1e-15)
    assert randomized_response_delta(4.9, 0.5, 10) > 1e-6


def test_coins_of_one_bias_cannot_be_told_apart() -> None:
    assert binomial_delta(0.0, 50, 0.3, 0.3) == 0.0
