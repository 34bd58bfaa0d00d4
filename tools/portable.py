"""Check that results do not depend on the machine: run the tests that compare results as other machines would compute them.

    python tools/portable.py                     run the main variants, one after the other, and print a table
    python tools/portable.py --only oldest       run the named variants
    python tools/portable.py --list              list the variants and their settings
    python tools/portable.py tests/erm           run these tests instead of PART

A variant is an environment: other kernels of linear algebra, NumPy without its vector instructions, loops compiled for any
processor of the family or not compiled at all, another folder. Variants that this processor cannot run are listed as left out.
A variant with ``finds`` is part of another variant. It runs only when it is named, to find the cause of a failure of the other one.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PART = (
    "tests/test_transcripts.py",
    "tests/test_docs.py",
    "tests/research/test_errata.py",
    "tests/test_report.py",
    "tests/model",
    "tests/engine",
    "tests/exact",
    "tests/serialize/test_forms.py",
    "tests/ledger/test_durable.py",
    "tests/ledger/test_ledger_of_blocks.py",
)
LOOPS = ("tests/test_transcripts.py", "tests/model")
"""Tests of the compiled loops: without a compiler the others would take hours."""
NO_WARNINGS = ("-W", "ignore::RuntimeWarning")
"""Loops that are not compiled overflow as compiled ones do, on purpose, but NumPy warns of it."""
NOT_COPIED = (".git", ".venv", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", ".coverage*")

INSTRUCTIONS = np.show_config(mode="dicts")["SIMD Extensions"]
HAS = {*INSTRUCTIONS["baseline"], *INSTRUCTIONS.get("found", ())}
VECTORS = " ".join(INSTRUCTIONS.get("found", ()))
"""NumPy's instructions above its baseline that this processor has. NumPy warns of any other that is to be disabled."""
NO_VECTORS = {"NPY_DISABLE_CPU_FEATURES": VECTORS}
GENERIC = {"NUMBA_CPU_NAME": "generic"}


@dataclass(frozen=True)
class Variant:
    """An environment to run tests in.

    ``needs`` lists names of the instruction set that the variant requires; any one of them suffices. ``finds`` names the
    variant that includes this one.
    """

    name: str
    varied: str
    environment: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    part: Sequence[str] = ()
    elsewhere: bool = False
    finds: str = ""


VARIANTS = (
    Variant("haswell", "linear algebra: AVX2", {"OPENBLAS_CORETYPE": "Haswell"}, ("AVX2", "X86_V3")),
    Variant("nehalem", "linear algebra: SSE4.2", {"OPENBLAS_CORETYPE": "Nehalem"}, ("SSE42", "X86_V2"), finds="oldest"),
    Variant("skylakex", "linear algebra: AVX-512", {"OPENBLAS_CORETYPE": "SkylakeX"}, ("AVX512_SKX", "X86_V4")),
    Variant("vectors", f"NumPy without {VECTORS}", NO_VECTORS, tuple(VECTORS.split()) or ("vectors",), finds="oldest"),
    Variant("generic", "loops compiled for any processor of the family", GENERIC, finds="oldest"),
    Variant("oldest", "nehalem, vectors and generic at once", {"OPENBLAS_CORETYPE": "Nehalem", **NO_VECTORS, **GENERIC}, ("SSE42", "X86_V2")),
    Variant("python", "loops not compiled", {"NUMBA_DISABLE_JIT": "1"}, part=(*LOOPS, *NO_WARNINGS)),
    Variant("elsewhere", "a folder of another name, and the order of sets", {"PYTHONHASHSEED": "0"}, elsewhere=True),
)  # fmt: skip


def copied(to: Path) -> Path:
    """Copy the project, without what was made from it, to another folder."""
    return Path(shutil.copytree(ROOT, to / "another folder, é", ignore=shutil.ignore_patterns(*NOT_COPIED)))


def run(variant: Variant, part: Sequence[str], most: int) -> tuple[str, bool]:
    """Run the tests in the variant; return pytest's last line, and whether all passed."""
    with tempfile.TemporaryDirectory() as made:
        folder = copied(Path(made)) if variant.elsewhere else ROOT
        environment = {
            **os.environ,
            "PYTHONHASHSEED": "random",
            "PYTHONPATH": str(folder / "src"),
            "NUMBA_CACHE_DIR": f"{made}/loops",  # compiled for this variant alone
            **variant.environment,
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(most), *part]
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    failures = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    print(*failures, sep="\n", end="\n" if failures else "")
    counts = re.findall(r"^.*\b\d+ (?:passed|failed|errors?)\b.*? in ", ran.stdout, re.MULTILINE)
    if not counts:
        print(ran.stdout[-2000:], ran.stderr[-2000:])
    return (counts[-1].removesuffix(" in ").strip("= ") if counts else "did not run"), ran.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tests", nargs="*", help="tests to run instead of the portable part")
    parser.add_argument("--only", nargs="+", choices=[v.name for v in VARIANTS], help="variants to run")
    parser.add_argument("--list", action="store_true", help="say what is varied")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    chosen = [v for v in VARIANTS if (v.name in given.only if given.only else given.list or not v.finds)]
    rows, all_passed = [], True
    for variant in chosen:
        settings = " ".join(f"{key}={value}" for key, value in variant.environment.items())
        row = f"| {variant.name} | {variant.varied} | `{settings or '-'}` |"
        if not given.list:
            if variant.needs and HAS.isdisjoint(variant.needs):
                rows.append(f"{row} left out: this processor has no {variant.needs[0]} | |")
                continue
            began = time.perf_counter()
            outcome, passed = run(variant, given.tests or variant.part or PART, given.workers)
            row += f" {outcome} | {time.perf_counter() - began:.0f} s |"
            all_passed = all_passed and passed
            print(row, flush=True)
        rows.append(row)
    print("\n| variant | varied | settings |" + ("" if given.list else " tests | time |"))
    print("|---|---|---|" + ("" if given.list else "---|---|"))
    print(*rows, sep="\n")
    return 0 if all_passed else 1


if __name__ == "__main__":
    sys.exit(main())
