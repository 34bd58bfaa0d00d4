"""Every mechanism has its page in docs/proofs, with all the parts of a proof, and the constants on it are those of the code.

A new kind of event, or a new module that charges or draws, fails here until it is entered below and has a page.
"""

from __future__ import annotations

import ast
import importlib
import operator
import re
from pathlib import Path
from typing import Any

import pytest

import hedgerow
from hedgerow.privacy.events import KINDS

PACKAGE = Path(hedgerow.__file__).parent
PROOFS = Path(__file__).resolve().parent.parent / "docs" / "proofs"
PAGES = sorted(page for page in PROOFS.glob("*.md") if page.name != "README.md")
PARTS = ("Precondition", "Pseudocode", "Privacy", "Arithmetic", "Utility", "Errors")
LEAST = 60  # characters of a part

EVENTS = {
    "AboveThreshold": "above_threshold",
    "ApproximateDP": "accounting",
    "DistinctRows": "subsampled",
    "Exponential": "exponential",
    "FlippedRows": "scq",
    "Gaussian": "gaussian",
    "HitRound": "hits",
    "Laplace": "laplace",
    "PerturbedObjective": "erm_objective_perturbation",
    "Planned": "planned",
    "PoissonSample": "amplification",
    "RandomRuns": "private_search",
    "Repeated": "repeated",
    "RepeatedRows": "subsampled",
    "Subsampled": "subsampled",
    "SubsampledGaussian": "amplification",
    "ThresholdedCounts": "drafting",
}
MECHANISMS = {
    "ledger/durable.py": "accounting",  # it charges as every ledger does, and writes that down
    "drafting/kinds.py": "drafting",
    "drafting/numbers.py": "drafting",
    "drafting/selection.py": "drafting",
    "engine/matrix.py": "matrix",
    "engine/over_time.py": "blocks",
    "engine/practical/certificate/certified_bounds.py": "certificate",
    "engine/practical/certificate/certificate_purchase.py": "certificate",
    "engine/practical/convex/convex_answers.py": "practical_convex",
    "engine/practical/convex/loss_certificate.py": "practical_convex",
    "engine/practical/guard.py": "practical",
    "engine/practical/fit/value_groups.py": "merging",
    "engine/practical/measure/prefit.py": "practical",
    "engine/practical/measure/purchases.py": "practical",
    "engine/practical/fit/residuals.py": "residuals",
    "engine/sampling.py": "subsampled",
    "engine/theory.py": "pmw",
    "erm/search.py": "private_search",
    "erm/solver.py": "allowance",
    "erm/solvers/frank_wolfe.py": "erm_frank_wolfe",
    "erm/solvers/frank_wolfe_general.py": "erm_frank_wolfe",
    "erm/solvers/lasso.py": "erm_frank_wolfe",
    "erm/solvers/mirror_descent.py": "erm_mirror_descent",
    "erm/solvers/noisy_sgd.py": "erm_sgd",
    "erm/solvers/objective_perturbation.py": "erm_objective_perturbation",
    "erm/solvers/output_perturbation.py": "erm_output_perturbation",
    "erm/solvers/sparse_refit.py": "erm_frank_wolfe",
    "erm/solvers/whitened_descent.py": "erm_whitened_descent",
    "generalise/holdout.py": "holdout",
    "privacy/allowance.py": "allowance",
    "privacy/amplification.py": "amplification",
    "privacy/guard_round.py": "above_threshold",
    "privacy/ledger.py": "accounting",
    "privacy/noise.py": "randomness",
    "privacy/perturbed_objective.py": "erm_objective_perturbation",
    "privacy/uniforms.py": "randomness",
    "textbook/convex_offline.py": "convex_pmw",
    "textbook/convex_pmw.py": "convex_pmw",
    "textbook/descent_by_queries.py": "descent_by_queries",
    "textbook/mwem.py": "mwem",
    "textbook/oracles.py": "convex_pmw",
    "textbook/localized_oracle.py": "convex_pmw",
    "textbook/oracle_choice.py": "convex_pmw",
    "textbook/pmw.py": "pmw",
    "textbook/scq.py": "scq",
    "textbook/small_db.py": "small_db",
    "textbook/sparse_vector.py": "sparse_vector",
    "textbook/subsampled.py": "subsampled",
}
NO_MECHANISM = {
    "textbook/bounds.py": "sizes of tables that the theorems ask for",
    "research/games.py": "simulations of their own tables",
    "research/monitors.py": "simulations of their own populations: see transfer",
    "textbook/multiplicative_weights.py": "learns from losses that are public",
    "textbook/noisy_mirror_descent.py": "its caller draws the noise: see erm_mirror_descent",
    "erm/solvers/descent.py": "steps of a plan",
    "erm/solvers/minimum.py": "finds a minimum, and proves that it is near: see erm_output_perturbation",
    "engine/practical/bars/error_bars.py": "reads released values",
    "engine/practical/bars/count_bars.py": "reads released values",
    "engine/practical/fit/corrections.py": "draws records of a public model: see merging",
    "model/hypothesis.py": "draws records of a public model",
    "model/mixture.py": "draws records of public models",
    "demo/__init__.py": "asks a session, and itself draws only on a public table",
}
DRAWS = {"charge", "open_round", "choose", "sample", "draw_rows", "draw_runs", "flips"}


def parts_of(text: str) -> dict[str, str]:
    """Return the text under each heading of the second level, by heading."""
    found = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], (part.strip() for part in found[1::2]), strict=True))


def code_of(text: str) -> list[str]:
    """The modules that the page says it is about."""
    named = re.search(r"^Code: (.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return [] if named is None else re.findall(r"`((?:\w+/)*\w+\.py)`", named[1])


def constants_of(text: str) -> list[tuple[str, str, str]]:
    """(module, name, value) of every `module.NAME` = value."""
    return re.findall(r"`([a-z_.]+)\.(_?[A-Z][A-Z_]*)` = ([-+*/().\de]*\d)", text)


def value_of(written: str) -> Any:
    """A number, or a sum, product, quotient or power of numbers."""
    operators = {
        ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
        ast.Pow: operator.pow, ast.USub: operator.neg,
    }  # fmt: skip

    def found(node: ast.AST) -> Any:
        match node:
            case ast.Expression(body):
                return found(body)
            case ast.Constant(int() | float() as number):
                return number
            case ast.BinOp(left, kind, right):
                return operators[type(kind)](found(left), found(right))
            case ast.UnaryOp(kind, operand):
                return operators[type(kind)](found(operand))
        raise ValueError(written)

    return found(ast.parse(written, mode="eval"))


def wrong_constants(text: str) -> list[str]:
    wrong = []
    for module, name, written in constants_of(text):
        found = getattr(importlib.import_module(f"hedgerow.{module}"), name)
        if float(found) != float(value_of(written)):
            wrong.append(f"{module}.{name} is {found}, not {written}")
    return wrong


def drawing() -> set[str]:
    """Modules that charge a ledger or draw from a receipt. What audits them, and shows where papers err, is no mechanism."""
    found = set()
    beside = {
        *(PACKAGE / "audit").glob("*.py"),
        *(PACKAGE / "research" / "errata").glob("*.py"),
        *(PACKAGE / "research" / "audit_cases").glob("*.py"),
    }
    for path in set(PACKAGE.rglob("*.py")) - beside:
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        methods = [call for call in calls if isinstance(call, ast.Attribute)]
        noise = [c for c in methods if c.attr == "add" and "noise" in ast.unparse(c.value).lower()]
        if noise or any(call.attr in DRAWS and "hypothesis" not in ast.unparse(call.value) for call in methods):
            found.add(path.relative_to(PACKAGE).as_posix())
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_all_the_parts_of_a_proof(page) -> None:
    parts = parts_of(page.read_text())
    assert {part for part in PARTS if len(parts.get(part, "")) < LEAST} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_code_that_is_there(page) -> None:
    named = code_of(page.read_text())
    assert named
    assert [name for name in named if not (PACKAGE / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_constants_of_a_page_are_those_of_the_code(page) -> None:
    assert wrong_constants(page.read_text()) == []


def test_every_event_has_a_page() -> None:
    assert set(EVENTS) == set(KINDS)
    assert {page for page in EVENTS.values() if not (PROOFS / f"{page}.md").exists()} == set()
    unnamed = {kind for kind, page in EVENTS.items() if f"`{kind}`" not in (PROOFS / f"{page}.md").read_text()}
    assert unnamed == set()


def test_every_module_that_charges_or_draws_has_a_page() -> None:
    folders = [PACKAGE / "textbook", PACKAGE / "erm" / "solvers"]
    there = {path.relative_to(PACKAGE).as_posix() for folder in folders for path in folder.glob("[!_]*.py")}
    assert (drawing() | there) - set(MECHANISMS) - set(NO_MECHANISM) == set()
    assert {name for name in {**MECHANISMS, **NO_MECHANISM} if not (PACKAGE / name).exists()} == set()


@pytest.mark.parametrize("module", MECHANISMS)
def test_the_page_of_a_mechanism_says_that_it_is_about_it(module) -> None:
    assert module in code_of((PROOFS / f"{MECHANISMS[module]}.md").read_text())


def test_every_page_is_listed() -> None:
    listed = set(re.findall(r"\]\((\w+\.md)\)", (PROOFS / "README.md").read_text()))
    assert listed == {page.name for page in PAGES}


def test_a_page_without_a_part_or_with_another_constant_is_found() -> None:
    text = "# Page\n\nCode: `no/such.py`.\n\n## Privacy\n`privacy.ledger.FIT` = 1e-11, `privacy.events.COIN` = 2**32.\n"
    assert set(parts_of(text)) == {"Privacy"}
    assert code_of(text) == ["no/such.py"]
    assert wrong_constants(text) == ["privacy.ledger.FIT is 1/1000000000000, not 1e-11"]


def test_constants_are_found_on_the_pages() -> None:
    assert sum(len(constants_of(page.read_text())) for page in PAGES) >= 25


CUTS = re.compile(r"np\.clip|\.clip\(|np\.minimum|into_ball\(|\.project\(|capped_sum\(|whiten_sum\(")
SEES_ROWS = ("data", "drafting", "erm", "textbook", "generalise", "privacy", "engine", "convex/solver")


def test_every_module_that_cuts_or_projects_beside_rows_or_noise_is_on_the_page_of_cuts() -> None:
    page = (PROOFS / "cuts_and_projections.md").read_text()
    found = [
        path.relative_to(PACKAGE).as_posix()
        for folder in SEES_ROWS
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if CUTS.search(path.read_text())
    ]
    assert len(found) > 30
    assert [name for name in found if f"`{name}`" not in page] == []
