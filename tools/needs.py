"""Print the requirements of pyproject.toml for the named libraries, one a line, in the form that `pip install -r` reads.

python tools/needs.py numpy scipy
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def needs(libraries: list[str]) -> list[str]:
    """Return the requirement of each library. A library that a plain install does not bring is a KeyError."""
    declared = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["dependencies"]
    by_name = {re.split(r"[<>=!~\[; ]", requirement)[0]: requirement for requirement in declared}
    return [by_name[library] for library in libraries]


if __name__ == "__main__":
    print(*needs(sys.argv[1:]), sep="\n")
