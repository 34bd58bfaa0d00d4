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
    absolute account accountant adversary aggregate alias amount analyst appending application approval array askable
    association author auto axis balance ball behind best binding body book box broken cache call candidate case
    cashier category chain choice clause close coder combination commit config conjunction connection content contrast
    contribution convex copyable correlation cover csv cursor custom database dataset date descent desk deviation dialect
    difference digit discovery distribution dp drafting draw drawing durable effect end endpoint entropy erratum
    estimate euclidean exceeded exploration exponential extra factor family feature file filter finding fit flag fold forest
    form frame function gap gateway gaussian general goal group head hinge histogram history holdout host huber index
    input inspection instance integer job journal judge knowledge laplace large lasso limit line linear list lock
    logistic lost mark mean median meter metric metrics minimize minimum mixture model move moved name need needed
    node norm not number objective option order outcome overview page pair panel parity part perturbation phase pick
    pinball place planned planner pmw point poisson polytope pool postgres potential practical precomputed prediction
    prior problem process product progress publication publishing quantile queue quote quotient range rate ratio
    reading recorder refit refusal registrar registration registry regression regressor repeated replica replicate
    reply report request resource respondent response result ridge rule run sample sampling schedule schema scope
    score scored scorer scq search seeded series service session set setting sgd share shelf simplex site size
    snapshot solver spending sqlite squared standing state statement step stopping store subsampled sum summary
    support surrogate survival svc table tail target task term theory thread threshold time token tool top total trail
    transcript tree trend turn unavailable unconstrained uniform upload variance vector verdict visit walk warning
    watch wolfe
    """
)

# Words of module names that are no terms of ours.
MODULE_WORDS = listed(
    """
    absent account amplification analyst answering api app appending approval argument arrival askable asking
    assistant association audit auto binding broken buying by cache candidate case category
    certified chain chart check choice cli client coded coding coefficient commit compiled completion composed confinement
    connection console container contingency contribution conversion convex counting csv cursor curve custom
    data database dataset date db demo deprecated descent describing desk dialect difference discovery display
    document draft drafting durable duration dwork effect elementary endpoint environment erm errata erratum estimator
    exact explaining explanation exploration extra false family fault feature file filter first fish fit flag
    form frame frank free frequent front function gallery game gateway general generalise gradient group guide
    hard head header histogram holdout html inspection instance integer interaction interface journal
    json judging junction kernel kind largest lasso layout learned limit line linear localized lower many matrix
    measure measured memory merged message metrics minimize minimum mirror mixture model monitor multi multiplicative
    mwem noisy number objective odd offline on one only openapi opening order outcome output over own owner page pair
    parquet parse people period perturbation perturbed picture planned planning pmw pool postgres potential practical
    privacy private problem process profile progress prospect protocol public publication publish published
    publishing quantile queue quoting range rate ratio raw read reader reading recipe refit registering registrar
    registration registry released remote renamed renyi replica replicate reply report request research resource
    result roth rule run sampled sampling scaling schema scope scoring scq search selection serialize
    scipy server service session set setting sgd shared signing simulation site small snapshot solver spark
    sparse spending spill spread sql sqlite starting state statement statistical statistics store stored story
    structured subsampled sum summary support syntax synthetic table talwar textbook theorem theory thread time title
    token tool toolbox total tour trail transfer tree trend trial triangulation truth turn type ullman uniform unsafe
    upload url vector visit wang weight weighted whitened width wire wolfe wording worker
    """
)

IRREGULAR = listed(
    """
    been begun borne bought bound broken brought built caught chosen dealt done drawn driven fallen fed felt forgotten found frozen
    given gone grown had heard held hidden kept known laid led left lent lost made meant met missed paid proven said seen sent shown
    shrunk sold spent spelt spoken stood sworn taken taught thought thrown told torn understood woken won worn written
    """
)
# Names that users or tests outside of this tree may call: of ledgers, of receipts and of the JSON forms.
PUBLIC_PARTICIPLES = {"asking", "closed", "opened", "registered", "released"}
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
    "spending",
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
    assert {
        name: module for name, module in functions() if is_participle(name) and name not in PUBLIC_PARTICIPLES
    } == {}


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
