"""Names follow docs/glossary.md: one word for one idea, one spelling, and no two public classes of one name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "hedgerow"
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
TERMS = re.findall(r"^\| \*\*(.+?)\*\*", GLOSSARY, re.MULTILINE)


def listed(text: str) -> set[str]:
    return set(text.split())


# scikit-learn's names, in hr.estimators (on a session) and in hr.erm (on arrays); the glossary explains them
SHARED = {"HuberRegressor", "Lasso", "LinearRegression", "LinearSVC", "LogisticRegression", "Ridge"}

# Last words of class names that are no terms of ours: of programming, of mathematics, of Python's database interface, and scikit-learn's.
ORDINARY = listed(
    """
    application body call dataset endpoint metrics practical rate refusal registry reply request service theory token trail
    absolute account accountant aggregate alias amount analyst appending array askable association author auto axis balance ball
    behind best binding book box broken cache candidate case cashier category chain clause close coder combination config
    conjunction connection content contrast contribution convex copyable correlation cover csv cursor custom database
    date descent dialect difference digit discovery distribution dp draw durable entropy erratum estimate euclidean exceeded
    exponential extra family feature file filter finding fit flag fold forest form function gap gaussian general group head
    hinge histogram history holdout huber index input inspection instance integer judge knowledge laplace large lasso limit line
    linear lock logistic lost mean median metric minimize minimum mixture model move moved name need node norm not number
    objective option order outcome overview pair parity part perturbation pick pinball planned planner pmw point poisson
    polytope pool postgres potential precomputed prediction prior problem process product progress publication publishing
    quantile quote quotient range ratio reading recorder refit regression regressor repeated report respondent result ridge rule
    run sample sampling schedule schema scope score scored scorer scq seeded series session set setting sgd share shelf simplex
    size snapshot solver spending sqlite squared standing statement step stopping store subsampled sum summary surrogate svc
    table tail target term thread threshold time top total transcript tree turn unavailable unconstrained uniform variance
    vector verdict walk warning watch wolfe
    practical registry theory
    """
)

# Words of module names that are no terms of ours.
MODULE_WORDS = listed(
    """
    api app client connection dataset limit openapi outcome people remote server service setting trail
    account amplification analyst answering askable asking audit auto backend batch binding broken by cache candidate case
    certified chain chart check cli coding compiled composed container contrast contribution conversion convex counting csv
    cursor custom data date db demo deprecated descent desk dialect discovery document draft drafting durable duration dwork
    elementary environment erm errata erratum estimator exact expected extra false family feature file filter first fish fit
    flat frame frank free gallery game general generalise gradient group hard histogram history holdout html inspection instance
    interface json junction kernel kind largest lasso layout learned line linear many measure memory merged metrics minimize
    minimum mirror mixture model monitor multi multiplicative mwem noisy number objective offline on one only opening order
    output over own owner page pair parquet parse perturbation perturbed planned planning pmw postgres potential practical
    preparing privacy private problem process progress public publication publish published publishing rate ratio read reader
    redaction refit registry renamed report research result roth run sampled sampling scaling schema scope scoring scq
    search selection serialize session set sgd shared shrinkage signing simulation size small snapshot solver spark sparse
    spending spill sql sqlite starting state statement statistics store stored story stream structured subsampled sum summary
    syntax synthetic table talwar textbook theorem theory thread time transfer tree triangulation turn type ullman uniform
    unsafe url vector wang warning weight weighted whitened width wire wolfe wording
    attached category difference flag frequent integer profile quantile range spread total truth
    """
)

IRREGULAR = listed(
    """
    been begun borne bought bound broken brought built caught chosen dealt done drawn driven fallen fed felt forgotten found frozen
    given gone grown had heard held hidden kept known laid led left lent lost made meant met missed paid proven said seen sent shown
    shrunk sold spent spelt spoken stood sworn taken taught thought thrown told torn understood woken won worn written
    """
)
# What is left to rename: methods of the ledger, of the session and of the JSON forms.
LEFT = listed(
    """
    _asked _asking _connected _kept _refused _shown _tried
    asking checked closed declared exported imported opened registered released remembered
    said shown spending verified waited written
    """
)
NOUNS_AND_ADJECTIVES = {
    "bounded",
    "heading",
    "meaning",
    "opening",
    "rounding",
    "binding",
    "meeting",
    "bound",
    "red",
    "string",
    "having",
    "nothing",
    "spelling",
}

BRITISH = re.compile(
    r"(?<![a-z])(?:neighbour|generalis|vectoris|regularis|standardis|normalis|optimis|minimis|maximis|summaris|penalis|randomis|serialis|initialis"
    r"|recognis|colour|behaviour|centre|centring|labell|modell|analys(?:e|ed|ing)(?![a-z]))"
)
PUBLIC_BRITISH = {
    *("neighbour", "neighbours", "neighbour_values", "neighbour_scores", "run_neighbour"),
    *("generalise", "generalisation", "vectorised", "regularised_output_perturbation"),
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        yield ".".join(file.relative_to(PACKAGE).with_suffix("").parts), ast.parse(file.read_text())


MODULES = dict(modules())


def classes() -> Iterator[tuple[str, str]]:
    """Every public class with its module."""
    for module, tree in MODULES.items():
        yield from (
            (node.name, module)
            for node in tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )


def functions() -> Iterator[tuple[str, str]]:
    """Every function and method with its module, without properties: these are named like values."""
    for module, tree in MODULES.items():
        for scope in [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
            for node in scope.body:
                if isinstance(node, ast.FunctionDef) and not any(
                    re.search("property|setter", ast.unparse(d)) for d in node.decorator_list
                ):
                    yield node.name, module


def words(name: str) -> list[str]:
    """The words of a name in CamelCase or snake_case, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def singular(word: str) -> str:
    if word in ("series", "postgres", "alias"):
        return word
    if word in ("losses", "batches"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is", "cs")) else word


def is_participle(name: str) -> bool:
    """True for one word that is a participle or a gerund and neither a noun nor an adjective that we use."""
    parts = words(name)
    if len(parts) != 1 or parts[0] in NOUNS_AND_ADJECTIVES:
        return False
    return parts[0] in IRREGULAR or bool(re.search(r"(?<!e)ed$|ing$", parts[0]))


KNOWN = {singular(part) for term in TERMS for part in words(term)}


def test_the_glossary_is_short_and_has_every_term_once() -> None:
    assert 30 <= len(TERMS) <= 60
    assert len(set(TERMS)) == len(TERMS)


def test_no_two_public_classes_share_a_name() -> None:
    where = defaultdict(list)
    for name, module in classes():
        where[name].append(module)
    shared = {name: places for name, places in where.items() if len(places) > 1}
    assert shared.keys() == SHARED, shared
    assert all({place.split(".")[0] for place in places} == {"erm", "estimators"} for places in shared.values())


def test_the_last_word_of_a_class_is_a_term_or_an_ordinary_word() -> None:
    unknown = {
        name: module for name, module in classes() if singular(words(name)[-1]) not in KNOWN | ORDINARY | {"error"}
    }
    assert unknown == {}, sorted({singular(words(name)[-1]) for name in unknown})


def test_the_words_of_a_module_are_terms_or_ordinary_words() -> None:
    parts = {singular(word) for module in MODULES for part in module.split(".") for word in words(part)}
    assert parts - KNOWN - MODULE_WORDS - {"init", "main"} == set()


def test_no_ordinary_word_is_a_term_too_or_goes_unused() -> None:
    last = {singular(words(name)[-1]) for name, _ in classes()}
    parts = {singular(word) for module in MODULES for part in module.split(".") for word in words(part)}
    assert (ORDINARY & KNOWN, ORDINARY - last) == (set(), set())
    assert (MODULE_WORDS & KNOWN, MODULE_WORDS - parts) == (set(), set())


def test_no_function_is_a_bare_participle() -> None:
    assert {name: module for name, module in functions() if is_participle(name) and name not in LEFT} == {}


@pytest.mark.parametrize("name", ["held", "_stated", "opened", "asking", "told", "kept"])
def test_a_bare_participle_is_recognized(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize("name", ["hold", "need", "ring_", "kept_rows", "spread", "cut", "read", "seed", "bounded"])
def test_other_names_are_not_taken_for_participles(name: str) -> None:
    assert name == "ring_" or not is_participle(name)


def test_names_are_spelled_as_in_america_but_for_the_public_ones() -> None:
    british = set()
    for module, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names = [node.name]
                if isinstance(node, ast.FunctionDef):
                    a = node.args
                    names += [each.arg for each in [*a.posonlyargs, *a.args, *a.kwonlyargs]]
                british |= {(name, module) for name in names if BRITISH.search("_".join(words(name)))}
    assert {(name, module) for name, module in british if name.strip("_") not in PUBLIC_BRITISH} == set()
