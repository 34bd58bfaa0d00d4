"""Write docs/assurance.md: every promise, how it was checked, where, and the last figure.

    python tools/assurance.py            write the page
    python tools/assurance.py --check    fail if the page is not what it would write

The promises are listed here. Figures are read from the results that other commands keep: docs/audit.json (`make audit`), docs/mutants.md
(`make mutants`) and docs/attacks-*.json (`make audit`). A place that does not exist is an error, so the page cannot name a test that is gone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hedgerow.research.audit_cases.gallery import GALLERY
from hedgerow.research.audit_cases.own_mechanisms import CASES
from hedgerow.research.audit_cases.report import AuditOutcome
from hedgerow.research.pages import short_lines

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGE = DOCS / "assurance.md"
HEAD = """# Assurance

This page lists every promise of hedgerow, how and where it is checked, and the latest figure. `make assurance` writes this page from stored results; a test
fails when the page and the results differ.

How a promise is checked:

| | meaning |
|---|---|
| proof | a written proof, whose constants are compared with the code |
| tests | examples and properties, on every commit |
| exact | the computation itself on neighbouring tables or small cases: no noise, no statistics |
| law | drawn values against the law that was billed, by a statistical test with a stated error rate |
| audit | an attacker who runs the mechanism many times, and finds a share of the claimed loss: above 1 would refute the claim, near 1 shows power |
| attack | scripts that try to break the promise, kept as tests |
| mutants | harmful changes to the code, which the tests must notice |

"""


@dataclass(frozen=True)
class Check:
    """One way in which a promise was checked. ``where`` is a file of the repository, perhaps with ``::test``."""

    how: str
    where: str
    figure: Callable[[], str]


@dataclass(frozen=True)
class Promise:
    """A promise in one sentence, and its checks."""

    group: str
    claim: str
    checks: tuple[Check, ...]


def tests(where: str) -> Check:
    """Return a check by a file or a folder of tests, all of which run on every commit."""
    how = "exact" if "exact" in where else "law" if "laws" in where else "attack" if "attacks" in where else "tests"
    return Check(how, where, lambda: "holds on every commit")


def proof(page: str) -> Check:
    return Check("proof", f"docs/proofs/{page}.md", lambda: "constants compared with the code")


def audited(*names: str) -> Check:
    """Return a check that says the largest share of its claim that an audit found, over the cases whose names have one of the texts."""
    return Check("audit", "docs/audit.md", lambda: _audited(names))


PROMISES: tuple[Promise, ...] = (
    Promise("Privacy", "Everything that a session shows is (ε, δ)-private for its neighbouring relation", (
        proof("practical"), proof("accounting"), tests("tests/sessions/test_neighbours.py"),
        tests("tests/exact/test_exact_practical.py"), audited("a session", "a release"),
    )),
    Promise("Privacy", "Noise has the law and the scale that were billed", (
        proof("laplace"), proof("gaussian"), proof("exponential"), tests("tests/laws/test_laws_of_mechanisms.py"),
        tests("tests/laws/test_laws_of_sources.py"), audited("noise", "choices", "exponential"),
    )),
    Promise("Privacy", "Every place that draws noise is held to its sensitivity", (
        tests("tests/exact/test_exact_everywhere.py"), tests("tests/exact/test_exact_textbook.py"), tests("tests/exact/test_exact_convex.py"),
        audited("PMW", "MWEM", "SmallDB", "sparse vector"),
    )),
    Promise("Privacy", "A one-shot fit costs what it bills, for any number of rows and any public guess of it", (
        proof("cuts_and_projections"), proof("erm_whitened_descent"), tests("tests/exact/test_exact_erm.py"), audited("ERM"),
    )),
    Promise("Privacy", "Rounds that pay for hits, and a search among private models, cost what they bill", (
        proof("hits"), proof("private_search"), tests("tests/privacy/test_renyi_events.py"), tests("tests/erm/test_search.py"),
        tests("tests/engine/test_hits.py"), audited("rounds of hits", "random number of runs", "a private search"),
    )),
    Promise("Privacy", "Secret samples amplify as billed", (
        proof("amplification"), tests("tests/exact/test_exact_sampling.py"), audited("sample", "of 4 rows", "sampling counting"),
    )),
    Promise("Privacy", "A table that grows, people with several rows, and drafts of a universe are billed whole", (
        proof("blocks"), proof("people"), proof("drafting"), tests("tests/exact/test_exact_blocks.py"),
        tests("tests/exact/test_exact_drafting.py"), tests("tests/attacks/test_attacks_blocks.py"), tests("tests/attacks/test_attacks_drafting.py"),
    )),
    Promise("Privacy", "Nothing else depends on rows: errors, warnings, shapes, types, orders", (
        tests("tests/attacks/test_attacks_rows.py"), tests("tests/attacks/test_attacks_opening.py"), tests("tests/attacks/test_attacks_session.py"),
        tests("tests/attacks/test_attacks_sql.py"), tests("tests/attacks/test_attacks_dialect.py"), tests("tests/attacks/test_attacks_spark.py"),
        tests("tests/attacks/test_attacks_cli.py"),
    )),
    Promise("Privacy", "Whatever an AI assistant asks through the tools, one budget covers it, and a purchase stays within cap and price", (
        tests("tests/assistants/test_assistant_neighbours.py"), tests("tests/assistants/test_assistant_buying.py"),
        tests("tests/assistants/test_quoting.py"), tests("tests/server/test_service_assistants.py"),
    )),
    Promise("Ledger", "What was drawn was charged before, survives a crash, and is never spent twice", (
        proof("accounting"), tests("tests/ledger/test_crashes.py"), tests("tests/ledger/test_trouble.py"),
        tests("tests/attacks/test_attacks_ledger.py"), tests("tests/attacks/test_attacks_receipts.py"),
        tests("tests/attacks/test_attacks_versions.py"),
    )),
    Promise("Answers", "A guaranteed bar holds for all answers of a session together", (
        proof("error_bars"), proof("certificate"), tests("tests/laws/test_laws_of_bars.py"), tests("tests/attacks/test_attacks_bars.py"),
    )),
    Promise("Answers", "An answer is about the question that was asked", (
        tests("tests/sessions/test_questions_as_asked.py"), tests("tests/sql"),
    )),
    Promise("Theorems", "The accuracy theorems of the five source documents (docs/errata.md) hold as corrected", (
        tests("tests/test_theorems.py"), tests("tests/research/test_errata.py"),
    )),
    Promise("The checks themselves", "An audit catches mechanisms that are known to be broken", (
        Check("audit", "docs/audit.md", lambda: _gallery()),
    )),
    Promise("The checks themselves", "The tests notice harmful changes", (
        Check("mutants", "docs/mutants.md", lambda: _mutants("catalogue")), Check("mutants", "docs/mutants.md", lambda: _mutants("drawn")),
    )),
)  # fmt: skip


def attacks() -> list[Promise]:
    """Return what the attacks kept: one promise a row of docs/attacks-*.json."""
    found = []
    for path in sorted(DOCS.glob("attacks-*.json")):
        for row in json.loads(path.read_text("utf-8")):
            check = Check(row["how"], row["where"], lambda figure=row["figure"]: figure)  # type: ignore[misc]
            found.append(Promise("Attacked", row["claim"], (check,)))
    return found


@cache
def _kept() -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = json.loads((DOCS / "audit.json").read_text("utf-8"))
    return found


def _audited(names: Sequence[str]) -> str:
    cases = [case for case in CASES if any(name in case.name for name in names)]
    shares = [
        _kept()[key]["found"]["found"] / case.claim.epsilon
        for case in cases
        if (key := AuditOutcome.key(case)) in _kept()
    ]
    missing = len(cases) - len(shares)
    return f"{len(shares)} cases, at most {max(shares):.2f} of the claim" + (f", {missing} not run" if missing else "")


def _gallery() -> str:
    caught = sum(broken.name in _kept() for broken in GALLERY)
    waiting = len(GALLERY) - caught
    return f"{caught} broken mechanisms tried, all caught" + (f"; {waiting} not tried yet" if waiting else "")


def _mutants(which: str) -> str:
    page = (DOCS / "mutants.md").read_text("utf-8")
    if which == "catalogue":
        found = re.search(r"^\| \*\*all\*\* \| \*\*(\d+)\*\* \| \*\*(\d+)\*\* \| \*\*(\d+)\*\*", page, re.MULTILINE)
        return "not run" if found is None else f"{found[1]} of {sum(map(int, found.groups()))} in the catalogue caught"
    found = re.search(r"Caught:\s+(\d+)\s+of\s+(\d+)[^,]*,\s+([\d.]+%)", page)
    return "not run" if found is None else f"{found[1]} of {found[2]} drawn at random caught, {found[3]}"


def require_place(where: str) -> None:
    """Refuse a place that is not in the repository."""
    file, _, test = where.partition("::")
    path = ROOT / file
    if not path.exists() or (test and f"def {test.partition('[')[0]}(" not in path.read_text("utf-8")):
        raise SystemExit(
            f"A check must name a file and a test that exist. Found {where!r}. Mend the row that names it."
        )


def page() -> str:
    """Return the text of the page."""
    lines: list[str] = []
    for promise in (*PROMISES, *attacks()):
        if f"## {promise.group}" not in lines:
            lines += ["", f"## {promise.group}", "", "| promise | how | where | last figure |", "|---|---|---|---|"]
        claim = promise.claim
        for check in promise.checks:
            require_place(check.where)
            file = check.where.partition("::")[0]
            name = check.where.partition("::")[2] or file.removeprefix("docs/").removeprefix("tests/")
            link = file.removeprefix("docs/") if file.startswith("docs/") else f"../{file}"
            lines.append(f"| {claim} | {check.how} | [{name}]({link}) | {check.figure()} |")
            claim = ""
    return short_lines(HEAD + "\n".join(lines[1:]) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not up to date")
    given = parser.parse_args()
    if given.check:
        return 0 if PAGE.read_text("utf-8") == page() else 1
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
