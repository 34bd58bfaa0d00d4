"""Do the tests notice harm? Each mutant is one small change; the tests must fail with it.

    python tools/mutants.py                        all of them; writes docs/mutants.md
    python tools/mutants.py --catalogue            those of tests/mutants/, which somebody thought of
    python tools/mutants.py --random 320 --seed 1  drawn ones, which operators make of any code (tools/mutant_operators.py)
    python tools/mutants.py --area privacy         those of some areas of the catalogue
    python tools/mutants.py --only L03 R1f87655    some of them
    python tools/mutants.py --random 320 --only R1f87655 --tests tests/sql   drawn ones, with these tests and no record
    python tools/mutants.py --list                 what there is
    python tools/mutants.py --record               renew the record of which tests run which lines, which drawn mutants need
    python tools/mutants.py --random 60 --seed 2 --folders privacy server   a fresh draw from some folders, with a section of its own
    python tools/mutants.py --record --tests tests/privacy tests/server     … and a record of the tests of these alone
    python tools/mutants.py --resume               leave out drawn mutants that a stored run caught, and those that are judged
    python tools/mutants.py --random 320 --report  write down what became of them so far, with the judgements as they are now
    python tools/mutants.py --locate               write into the catalogue which function each mutant is in

A mutant is applied to a copy of src of its own, never in place. Of the catalogue, all named tests must first pass on an unchanged copy, the
one that mutants are copies of: so all that was compiled for it is there, but what is made of a changed file. Of the drawn ones, each test
that failed must pass on it in the end.

    caught        a test fails; or, of a drawn mutant, the tests no longer end
    survived      all tests pass: harm that nobody would hear of, and status 1, unless it is judged (tests/mutants/judgements.py)
    not settled   neither: out of time, or pytest itself broke

Seeded results (tests/transcripts.py) notice nearly every change and do not say whether it does harm, so they are not asked.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "mutants"), str(ROOT / "tools")]

import mutant_page  # noqa: E402
from catalogue import MUTANTS, NOT_WRITTEN  # noqa: E402
from judgements import JUDGED  # noqa: E402
from mutant import Mutant  # noqa: E402
from mutant_operators import Site, drawn  # noqa: E402
from mutant_places import locate  # noqa: E402
from mutant_runs import (  # noqa: E402
    CAUGHT,
    NOT_RUN,
    NOT_SETTLED,
    OUT_OF_TIME,
    SOURCE,
    SURVIVED,
    Verdict,
    copied,
    failed_tests,
    judged,
    pytest,
    require_copy,
)
from mutant_tests import Reached  # noqa: E402

PACKAGE, REPORT = SOURCE / "hedgerow", ROOT / "docs" / "mutants.md"
RECORDS = ROOT / ".mutants"
STRATA = ("privacy", "ledger", "data", "sql", "engine", "erm", "generalise", "session", "answer", "cli")
DRAWN, SEED = 320, 1
NOT_RECORDED = ("tests/mutants", "tests/test_transcripts.py")
PLACE = ("file", "where", "operator", "old", "new", "nth")


def verdicts_of(seed: int) -> Path:
    """Return the file with the last verdict on each mutant that was drawn with a seed, so that runs can be resumed."""
    return ROOT / "tests" / "mutants" / ("drawn.json" if seed == SEED else f"drawn-{seed}.json")


def require_sound(mutants: Sequence[Mutant], limit: float, jobs: int, src: Path) -> None:
    """Require that all named tests pass without a mutant, on the copy too. Otherwise no later result means anything."""
    require_copy(src)
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    print(f"{len(mutants)} mutants, {len(tests)} tests: these must pass without a mutant …", flush=True)
    status, printed = pytest(src, tests, limit, jobs)
    if status != 0:
        raise SystemExit(f"All named tests must pass without a mutant. Found that they do not:\n{printed[-3000:]}")


def run_all(todo: Sequence[Callable[[], Verdict]], jobs: int, verbose: bool) -> dict[str, Verdict]:
    columns = (TextColumn("mutants"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    verdicts: dict[str, Verdict] = {}
    with ThreadPoolExecutor(jobs) as pool, Progress(*columns) as display:
        task = display.add_task("mutants", total=len(todo))
        for done in as_completed([pool.submit(each) for each in todo]):
            v = done.result()
            verdicts[v.id] = v
            display.advance(task)
            if verbose or v.outcome != CAUGHT:
                said = f"{v.id} {v.outcome} in {v.seconds:.1f} s, {v.asked} tests  {v.by}"
                display.console.print(said, markup=False, soft_wrap=True)
    return verdicts


def run_catalogue(chosen: Sequence[Mutant], given: argparse.Namespace) -> int:
    running = [m for m in chosen if not m.equivalent]
    with copied(SOURCE) as base:
        require_sound(running, 10 * given.limit, given.jobs, base)
        todo = [lambda m=m: judged(m, m.tests, given.limit, base) for m in running]
        verdicts = run_all(todo, given.jobs, given.verbose)
    print(mutant_page.counted(chosen, verdicts))
    if len(chosen) == len(MUTANTS):
        mutant_page.renewed(REPORT, catalogue=mutant_page.of_catalogue(chosen, verdicts, NOT_WRITTEN))
    return int(any(v.outcome == SURVIVED for v in verdicts.values()))


def run_drawn(sites: Sequence[Site], given: argparse.Namespace) -> int:
    """Run drawn mutants. Each verdict is stored as soon as it is known."""
    reached = None if given.tests or given.report else Reached(RECORDS, PACKAGE)
    file = verdicts_of(given.seed)
    known = _known(file, sites)
    running = [s for s in sites if not (given.resume and _is_settled(s, known))]
    slow = {s.file for s in running if "@compiled(" in (PACKAGE / s.file).read_text()}
    if given.report:
        running = []
    running.sort(key=lambda s: (s.id in known, s.file in slow))  # those that were never run come first

    def one(site: Site) -> Verdict:
        tests = given.tests if reached is None else reached.ordered(site, given.seconds)[0]
        if not tests:
            known[site.id] = Verdict(site.id, SURVIVED, "no test runs it", 0.0)
            return known[site.id]
        work = int(given.limit) if reached is None else 40 + 3 * int(reached.time_of(tests))
        verdict = judged(site, [test.removeprefix("tests/") for test in tests], 15.0 * work, base, work)
        if verdict.by == OUT_OF_TIME:  # far more than the tests need without the change
            verdict = replace(verdict, outcome=CAUGHT)
        known[site.id] = verdict
        _store(file, known, sites)
        return verdict

    with contextlib.ExitStack() as stack:
        if running:
            base = stack.enter_context(copied(SOURCE))
            require_copy(base)
            run_all([lambda s=s: one(s) for s in running], given.jobs, given.verbose)  # type: ignore[misc]
            for test in sorted(unsound(base, [known[s.id].by for s in running if s.id in known], given.jobs)):
                for site in sites:
                    if site.id in known and known[site.id].by == test:
                        known[site.id] = replace(known[site.id], outcome=NOT_SETTLED, by=f"{test} fails without it")
    verdicts = {site.id: known.get(site.id, Verdict(site.id, NOT_SETTLED, NOT_RUN, 0.0)) for site in sites}
    _store(file, known, sites)
    print(mutant_page.tallied(sites, verdicts))
    if not given.only:
        found = mutant_page.of_operators(sites, verdicts, given.seed, is_fresh=given.seed != SEED)
        if given.seed == SEED:
            mutant_page.renewed(REPORT, operators=found)
        else:
            mutant_page.renewed(REPORT, fresh={given.seed: found})
    left = [s for s in sites if verdicts[s.id].outcome == SURVIVED and s.key not in JUDGED]
    return int(bool(left))


def _is_settled(site: Site, known: Mapping[str, Verdict]) -> bool:
    """Tell whether a stored run caught a mutant, or let it survive and somebody has judged it."""
    if site.id not in known:
        return False
    return known[site.id].outcome == CAUGHT or (known[site.id].outcome == SURVIVED and site.key in JUDGED)


def _stored(file: Path) -> list[tuple[Verdict, Site]]:
    """Read the stored verdicts, and the places as they were when they were drawn."""
    found = []
    for record in json.loads(file.read_text()) if file.exists() else []:
        place = record.pop("place")
        found.append((Verdict(**record), Site(**place, start=0, end=0, text="", lines=(), statement=(), names=())))
    return found


def _known(file: Path, sites: Sequence[Site]) -> dict[str, Verdict]:
    """Return the stored verdicts by the ids that their places have now, if only their file has another name."""
    ids, by_key = {site.id for site in sites}, {(site.operator, site.key): site.id for site in sites}
    found = {}
    for verdict, place in _stored(file):
        now = place.id if place.id in ids else by_key.get((place.operator, place.key), place.id)
        found[now] = replace(verdict, id=now)
    return found


def _store(file: Path, known: Mapping[str, Verdict], sites: Sequence[Site]) -> None:
    """Write the verdicts, in the order of their ids, but drop mutants that a whole draw no longer has."""
    places = {site.id: site for site in sites}
    if len(sites) < DRAWN // 2:
        places = {place.id: place for _, place in _stored(file)} | places
    written = [
        asdict(known[id]) | {"place": {name: getattr(places[id], name) for name in PLACE}}
        for id in sorted(known.keys() & places.keys())
    ]
    file.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")


def unsound(base: Path, tests: Sequence[str], jobs: int) -> set[str]:
    """Return the tests that fail without a mutant, too. Mutants that they caught are not settled."""
    left = {test for test in tests if "::" in test}
    bad: set[str] = set()
    while left:
        status, printed = pytest(base, sorted(left), 3000.0, jobs)
        failed = {test for test in left for found in failed_tests(printed) if found.startswith(test.partition("[")[0])}
        if status == 0 or not failed & left:
            if status != 0:
                raise SystemExit(f"The tests that caught mutants must run without one. Found:\n{printed[-3000:]}")
            break
        bad |= failed & left
        left -= failed
    return bad


def record(jobs: int, tests: Sequence[str] = ()) -> int:
    """Run the tests once, all or these, and write down which lines each runs."""
    RECORDS.mkdir(exist_ok=True)
    for file in RECORDS.glob("reached-*.json.gz"):
        file.unlink()
    places = os.pathsep.join(map(str, (SOURCE, ROOT / "tools")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "reached_lines", "-n", str(jobs)]
    command += ["--dist", "worksteal", *(f"--ignore={path}" for path in NOT_RECORDED), *tests]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "REACHED": str(RECORDS), "PYTHONPATH": places}
    ).returncode


def main() -> int:
    asked = argparse.ArgumentParser(description="Do the tests notice harm?")
    asked.add_argument("--catalogue", action="store_true", help="the catalogue only")
    asked.add_argument("--random", type=int, metavar="N", help=f"drawn mutants only, N of them; {DRAWN} by default")
    asked.add_argument("--seed", type=int, default=SEED)
    asked.add_argument("--folders", nargs="+", default=STRATA, help="from which random mutants are drawn")
    asked.add_argument("--only", nargs="+", default=[], metavar="ID")
    asked.add_argument("--area", nargs="+", default=[])
    asked.add_argument("--list", action="store_true", help="show them and run nothing")
    asked.add_argument("--record", action="store_true", help="record which tests run which lines, and stop")
    asked.add_argument("--resume", action="store_true", help="leave out drawn mutants that are settled")
    asked.add_argument("--report", action="store_true", help="write down what became of drawn mutants, and run none")
    asked.add_argument("--locate", action="store_true", help="say in the catalogue where each mutant is, and stop")
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("--limit", type=float, default=120.0, help="seconds for each mutant of the catalogue")
    asked.add_argument("--seconds", type=float, default=40.0, help="of recorded tests, for each drawn mutant")
    asked.add_argument("--tests", nargs="+", default=[], help="for the drawn mutants of --only, instead of the record")
    asked.add_argument("--verbose", action="store_true", help="a line for each, with the test that failed")
    given = asked.parse_args()
    if given.locate:
        print(f"{locate(MUTANTS, ROOT / 'tests' / 'mutants', PACKAGE)} places written")
        return 0
    if given.record:
        return record(given.jobs, given.tests)
    if given.tests and not given.only:
        asked.error("--tests needs --only.")
    is_named = bool(given.only or given.area)
    earlier = [place for _, place in _stored(verdicts_of(given.seed))] if given.seed == SEED else []
    count = given.random or DRAWN
    sites = [] if given.catalogue or given.area else drawn(PACKAGE, given.folders, count, given.seed, earlier)
    unknown = {*given.only} - {m.id for m in MUTANTS} - {s.id for s in sites} | {*given.area} - {
        m.area for m in MUTANTS
    }
    if unknown:
        asked.error(f"unknown: {', '.join(sorted(unknown))}. See --list.")
    chosen = [m for m in MUTANTS if m.id in (given.only or [m.id]) and m.area in (given.area or [m.area])]
    sites = [s for s in sites if s.id in (given.only or [s.id])]
    if given.random and not is_named:
        chosen = []
    if given.list:
        for m in chosen:
            print(f"{m.id}  {m.area:10} {m.file} {m.where}: {m.note}")
        for s in sites:
            print(f"{s.id}  {s.operator:10} {s.file} {s.where}: {s.old}  ->  {s.new}")
        return 0
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": ""}  # caches are beside the sources, so in the copy
    if sites and not is_named and not given.report and not list(RECORDS.glob("reached-*.json.gz")):
        record(given.jobs)
    return (run_catalogue(chosen, given) if chosen else 0) | (run_drawn(sites, given) if sites else 0)


if __name__ == "__main__":
    sys.exit(main())
