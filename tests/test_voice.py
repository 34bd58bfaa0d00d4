"""Texts have one voice: docstrings begin with a verb or a noun phrase, public ones name their parameters, pages have short lines.

Links between pages are checked by ``test_docs.py``.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hedgerow as hr
from hedgerow.research.pages import short_lines

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "hedgerow"
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
        *DOCS.rglob("*.md"),
    ]
)
WIDEST = 120
NO_BEGINNING = re.compile(r"(What|Which|Whether|Where|How|Who|Of|That)\b")
NO_NOUN = re.compile(
    r"(Also|As|At|By|For|From|In|On|So|To|With)\b"
)  # adverbs and prepositions; notes of tests may begin so
MODULES = (hr, hr.losses, hr.erm, hr.estimators, hr.wire, hr.audit, hr.unsafe)
MADE_BY_THE_PACKAGE = {  # no user writes these calls, so an example could not be copied
    "hedgerow.Session": ["Parameters"],
    "hedgerow.release_file.release.Release.of": ["Example"],
}
ELSEWHERE = re.compile(r"^Parameters: see ``\w+``", re.MULTILINE)


def docstrings(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of everything in a module that has one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield getattr(node, "name", "module"), text


def long_lines(text: str) -> list[int]:
    """Return the numbers of prose lines that are too long. Tables, code blocks and links to pictures may be longer."""
    found, is_code = [], False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith(("|", "    ", "![")) and len(line) > WIDEST:
            found.append(number)
    return found


def public() -> Iterator[tuple[str, Any]]:
    """Yield every public function, class and method with its name.

    A method that implements a method of a base class is described there: only the first one is yielded.
    """
    seen = set()
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing):
                continue
            listed = [(f"{module.__name__}.{name}", thing), *(methods(thing) if inspect.isclass(thing) else ())]
            for each, found in listed:
                function = inspect.unwrap(found)
                if (key := (function.__module__, function.__qualname__)) not in seen:
                    seen.add(key)
                    yield each, found


def methods(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods of a class and of its bases in this package, each where it is first declared."""
    bases = [base for base in owner.__mro__ if base.__module__.startswith("hedgerow")]
    for place, base in enumerate(bases):
        for name, member in vars(base).items():
            function = getattr(member, "__func__", member)
            is_first = not any(name in vars(later) for later in bases[place + 1 :])
            if not name.startswith("_") and inspect.isfunction(function) and is_first:
                yield f"{base.__module__}.{base.__name__}.{name}", function


def properties() -> Iterator[tuple[str, property]]:
    """Yield the public properties of the public classes. The class's example shows an object that has them."""
    for module in MODULES:
        for owner in (getattr(module, name) for name in module.__all__):
            for base in inspect.getmro(owner) if inspect.isclass(owner) else ():
                for name, member in vars(base).items():
                    if base.__module__.startswith("hedgerow") and isinstance(member, property) and name[0] != "_":
                        yield f"{base.__name__}.{name}", member


def raises(thing: Any) -> bool:
    """Return True if the body of a function raises an error of its own."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))
    except OSError:
        return False
    return any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(ast.parse(source)))


def missing_parts(thing: Any) -> list[str]:
    """Return the parts that a docstring lacks: all of it, parameters, result, errors, an example."""
    text = inspect.cleandoc(thing.__doc__ or "")
    if not text:
        return ["docstring"]
    signature = inspect.signature(thing)
    takes = [name for name in signature.parameters if name not in ("self", "cls")]
    is_class, returns = inspect.isclass(thing), str(signature.return_annotation)
    heads = {*re.findall(r"^(\w+)\n-{3,}$", text, re.MULTILINE)}
    missing = []
    if takes and not {"Parameters", *(["Attributes"] if is_class else [])} & heads and not ELSEWHERE.search(text):
        missing.append("Parameters")
    if not is_class and returns not in ("None", "NoReturn") and not {"Returns", "Yields"} & heads:
        missing.append("Returns")
    if not is_class and raises(thing) and "Raises" not in heads:
        missing.append("Raises")
    if ">>>" not in text:
        missing.append("Example")
    return missing


FOLDERS = [
    *sorted(path.parent for path in PACKAGE.glob("*/__init__.py")),
    *(ROOT / name for name in ("tests", "tools", "benchmarks", "examples")),
]


@pytest.mark.parametrize("folder", [PACKAGE, *FOLDERS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_docstrings_begin_with_a_verb_or_a_noun_phrase(folder: Path) -> None:
    files = sorted(folder.glob("*.py") if folder == PACKAGE else folder.rglob("*.py"))
    assert files
    wrong = NO_BEGINNING if folder.name == "tests" else re.compile(f"{NO_BEGINNING.pattern}|{NO_NOUN.pattern}")
    found = [(path.name, name) for path in files for name, text in docstrings(path.read_text()) if wrong.match(text)]
    assert found == []


def test_docstrings_and_comments_have_short_lines() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        lines = text.splitlines()
        prose = {number for number, line in enumerate(lines, start=1) if line.lstrip().startswith("# ")}
        for node in ast.walk(ast.parse(text)):
            has_text = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if has_text and ast.get_docstring(node) is not None:
                prose |= {*range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)}
        found += [f"{path.name}:{number}" for number in sorted(prose) if len(lines[number - 1]) > WIDEST]
    assert found == []


def test_names_of_tests_begin_with_what_they_are_about() -> None:
    pattern = re.compile(r"def (test_(?:what|which|whether|where|how|who|whose|of|that)(?:ever)?_\w+)")
    assert {name for path in (ROOT / "tests").rglob("*.py") for name in pattern.findall(path.read_text())} == set()
    assert pattern.findall(f"def {'test'}_whatever_is_drawn(") == ["test_whatever_is_drawn"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_prose_has_short_lines(page: Path) -> None:
    assert long_lines(page.read_text()) == []


@pytest.mark.parametrize(("name", "thing"), [pytest.param(name, thing, id=name) for name, thing in public()])
def test_public_names_say_what_they_take_return_and_raise_and_have_an_example(name: str, thing: Any) -> None:
    if isinstance(thing, type) and issubclass(thing, BaseException | Warning):  # made by the package, with a message
        assert inspect.getdoc(thing)
        return
    assert missing_parts(thing) == MADE_BY_THE_PACKAGE.get(name, [])


def test_public_properties_say_what_they_are() -> None:
    found = dict(properties())
    assert len(found) > 100
    assert [name for name, member in found.items() if not inspect.getdoc(member)] == []


def test_pages_of_commands_are_filled_without_a_change_of_their_words() -> None:
    long = " ".join(["word"] * 40)
    page = f"# {long}\n\n{long}\nand the rest\n\n- {long}\n- short\n\n| {long} |\n\n```\n{long}\n```\n{'a' * 118} - b\n"
    filled = short_lines(page)
    assert filled.split() == page.split() and short_lines(filled) == filled
    assert long_lines(filled) == [1] and [line for line in filled.splitlines() if line[:1] == "-"][1:] == ["- short"]


def test_every_page_is_in_the_index_or_in_the_list_of_proofs() -> None:
    listed = {
        (index.parent / link).resolve()
        for index in (DOCS / "README.md", DOCS / "proofs" / "README.md")
        for link in re.findall(r"\]\(([^)#:]+\.(?:md|ipynb))", index.read_text())
    }
    pages = {*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")} - {DOCS / "README.md"}
    assert {page.relative_to(DOCS).as_posix() for page in pages if page.resolve() not in listed} == set()


def test_the_checks_find_what_they_are_for() -> None:
    assert [name for name, text in docstrings('def f():\n    """Whether it is."""\n') if NO_BEGINNING.match(text)] == [
        "f"
    ]
    assert long_lines(f"{'a' * 121}\n| {'b' * 121}\n```\n{'c' * 121}\n```\n{'d' * 120}\n") == [1]

    def without(a: int) -> int:
        """Return a number."""
        if a < 0:
            raise ValueError("a must be at least 0.")
        return a

    def documented(a: int) -> int:
        """Return a number.

        Parameters
        ----------
        a : int

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If a is negative.

        Example
        -------
        >>> documented(1)
        1
        """
        if a < 0:
            raise ValueError("a must be at least 0.")
        return a

    assert missing_parts(without) == ["Parameters", "Returns", "Raises", "Example"]
    assert missing_parts(documented) == [] and missing_parts(lambda: 0) == ["docstring"]
    assert [name for name, _ in methods(hr.L1Ball)].count("hedgerow.convex.sets.convex_set.ConvexSet.project") == 1
