"""Before a release, files that state the same facts must agree, and a wheel with a fault is refused."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import release

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = (ROOT / "CITATION.cff").read_text()
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
PLATFORMS = (ROOT / "docs" / "platforms.md").read_text()


def stated(name: str) -> str:
    """A plain field at the top of CITATION.cff."""
    (found,) = re.findall(rf"^{name}: (.+)$", CITATION, re.MULTILINE)
    return found


def pythons() -> list[str]:
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", each) for each in PROJECT["classifiers"])
    return [each.group(1) for each in found if each]


def test_the_citation_is_of_this_version_title_and_licence() -> None:
    assert [stated(name) for name in ("version", "title", "license")] == [
        PROJECT["version"], PROJECT["name"], PROJECT["license"],
    ]  # fmt: skip
    assert re.findall(r"^  - ([a-z ]+)$", CITATION, re.MULTILINE) == PROJECT["keywords"]
    assert stated("abstract") == f"{PROJECT['description']}."


def test_the_installed_package_has_the_version_of_pyproject() -> None:
    assert version("hedgerow") == PROJECT["version"] == release.VERSION


def test_the_changelog_has_a_section_for_this_version() -> None:
    assert re.search(rf"^## {re.escape(PROJECT['version'])}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_workflow_tests_every_python_of_the_classifiers() -> None:
    (matrix,) = re.findall(r"^        python: \[(.+)\]$", WORKFLOW, re.MULTILINE)
    assert re.findall(r'"([\d.]+)"', matrix) == pythons()
    assert PROJECT["requires-python"] == f">={pythons()[0]}"
    (told,) = re.findall(r"^\| Linux, x86-64, Python ([\d., ]+) \|", PLATFORMS, re.MULTILINE)
    assert told.split(", ") == pythons()


def test_the_workflow_and_the_hooks_run_commands_that_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    run = set(re.findall(r"\bmake ([a-z-]+)", WORKFLOW))
    assert {"test", "release-check"} <= run <= targets
    assert all((ROOT / script).is_file() for script in re.findall(r"\btools/\w+\.py", WORKFLOW + MAKEFILE))
    lint = MAKEFILE.partition("\nlint:")[2].partition("\n\n")[0]
    assert [each for each in re.findall(r"\.venv/bin/(\w+)", HOOKS) if f"$(BIN)/{each}" not in lint] == []


def test_the_workflow_stores_no_secret() -> None:
    assert "id-token: write" in WORKFLOW
    assert re.findall(r"secrets\.|password:|token:", WORKFLOW.replace("id-token:", "")) == []


def test_tracked_texts_pass_the_hooks_of_hygiene() -> None:
    """Hooks that change files at the first commit of somebody else would be in that commit."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git clone: hooks run in one")
    wrong = []
    for name in filter(None, tracked.stdout.split("\0")):
        data = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        if data and b"\0" not in data and (re.search(rb"[ \t]+\r?$", data, re.MULTILINE) or not data.endswith(b"\n")):
            wrong.append(name)
    assert wrong == []


GOOD = {*release.modules(), *release.DATA, *(f"hedgerow-{release.VERSION}.dist-info/{name}" for name in release.ABOUT)}


def test_a_wheel_of_the_package_alone_is_right() -> None:
    assert release.misfits(GOOD, release.modules()) == []
    assert {"hedgerow/__init__.py", "hedgerow/cli/__main__.py"} < release.modules()


@pytest.mark.parametrize("name", ["hedgerow/py.typed", "hedgerow/demo/rand_hie.parquet", "hedgerow/session.py"])
def test_a_wheel_without_a_file_is_refused(name: str) -> None:
    assert release.misfits(GOOD - {name}, release.modules()) == [f"missing: {name}"]


@pytest.mark.parametrize("name", ["tests/test_release.py", "hedgerow/.env", "hedgerow/demo/people.csv"])
def test_a_wheel_with_a_stray_file_is_refused(name: str) -> None:
    assert release.misfits(GOOD | {name}, release.modules()) == [f"stray: {name}"]


def test_every_data_file_of_the_package_is_in_the_wheel() -> None:
    beside = {
        path for path in (ROOT / "src" / "hedgerow").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    shipped = {path.relative_to(ROOT / "src").as_posix() for path in beside if "__pycache__" not in path.parts}
    assert shipped == release.DATA


def test_the_first_example_is_the_one_that_opens_a_session() -> None:
    assert release.first_example().startswith("import hedgerow as hr\n") and "hr.open(" in release.first_example()
