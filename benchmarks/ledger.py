"""Measure what a durable ledger costs: an append, a free answer, an opening from 10⁵ entries. Writes docs/benchmarks-ledger.md.

Ratios are of interleaved runs in one process: chunks of the same questions with and without a ledger, in turn.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

import hedgerow as hr  # noqa: E402
from hedgerow.data import HistogramSource  # noqa: E402
from hedgerow.ledger import answer_log, replay  # noqa: E402
from hedgerow.ledger import opened as ledger_at  # noqa: E402
from hedgerow.ledger.chain import now  # noqa: E402
from hedgerow.privacy.events import Gaussian, Laplace  # noqa: E402
from hedgerow.privacy.ledger import Entry  # noqa: E402
from hedgerow.research.pages import short_lines  # noqa: E402

UNIVERSE = hr.Universe(
    age=hr.Integers(17, 90), sex=hr.Flag(), job=hr.Categories(list("abcdefgh")), region=hr.Integers(0, 11), hours=hr.Integers(0, 9)
)  # fmt: skip
BUDGET = hr.Budget(1.0, 1e-6)
ENTRIES = 100_000
APPENDS, ANSWERS, CHUNK = 300, 2_400, 200


def table() -> HistogramSource:
    rng = np.random.default_rng(0)
    shares = [rng.dirichlet(np.full(m, 2.0)) for m in UNIVERSE.shape]
    joint = np.einsum("a,b,c,d,e->abcde", *shares)
    return HistogramSource(UNIVERSE, rng.multinomial(500_000, joint.ravel()).reshape(joint.shape))


def questions(count: int, attributes: int = 3) -> list[hr.Query]:
    """Return questions on three attributes, as most are, and on four, which have no certificate, so that a guard is asked."""
    rng = np.random.default_rng(1)
    found = {}
    while len(found) < count:
        a, r = np.sort(rng.integers(17, 91, 2)), np.sort(rng.integers(0, 12, 2))
        h, job = int(rng.integers(0, 9)), list("abcdefgh")[: int(rng.integers(1, 8))]
        about = {"age": tuple(map(int, a)), "region": tuple(map(int, r)), "hours": (0, h)}
        query = hr.count(**about) if attributes == 3 else hr.count(**about, job=set(job))
        found[hr.wire.dumps(query)] = query
    return list(found.values())


def opened(data: HistogramSource, ledger: str | None, guard: float = 0.0) -> hr.Session:
    return hr.open(data, universe=UNIVERSE, budget=BUDGET, guard=guard, reserve=0.2, ledger=ledger, seed=1)


def milliseconds(times: list[float]) -> str:
    low, middle, high = (1e3 * q for q in np.quantile(times, [0.1, 0.5, 0.9]))
    return f"{middle:.2f} ms ({low:.2f} to {high:.2f})"


def floors(folder: Path) -> dict[str, list[float]]:
    """Return the time that the disk takes for two pages: in a file that grows, and in one that has its size already."""
    found: dict[str, list[float]] = {}
    for name, sync, size in (("fsync", os.fsync, 0), ("fdatasync", os.fdatasync, 8192 * 100)):
        file = os.open(folder / name, os.O_CREAT | os.O_WRONLY)
        os.write(file, bytes(size))
        os.fsync(file)
        os.lseek(file, 0, os.SEEK_SET)
        times = []
        for _ in range(100):
            began = time.perf_counter()
            os.write(file, b"x" * 8192)
            sync(file)
            times.append(time.perf_counter() - began)
        os.close(file)
        found[name] = times
    return found


def appends(url: str) -> tuple[list[float], list[float]]:
    """A charge and a record, each on the disk when it returns."""
    ledger = ledger_at(url, hr.Budget(1.0, 0.0))
    charged, recorded = [], []
    for i in range(APPENDS):
        began = time.perf_counter()
        receipt = ledger.charge(Laplace(1.0, 1e5))
        between = time.perf_counter()
        ledger.record(receipt, float(i))
        charged.append(between - began)
        recorded.append(time.perf_counter() - between)
    ledger.close()
    return charged, recorded


def slower(
    data: HistogramSource, urls: dict[str, str], one_by_one: bool, guard: float = 0.0
) -> dict[str, tuple[float, float]]:
    """Return, for each ledger, the microseconds of a free answer and the ratio to the time without one, by medians of chunks."""
    sessions = {name: opened(data, url, guard) for name, url in {"": None, **urls}.items()}
    asked = questions(ANSWERS, 4 if guard else 3)
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for start in range(0, ANSWERS, CHUNK):
        some = asked[start : start + CHUNK]
        for name in sorted(sessions, key=lambda name: (start // CHUNK + len(name)) % 3):
            session, began = sessions[name], time.perf_counter()
            if one_by_one:
                for query in some:
                    session.ask(query)
            else:
                session.ask_all(some, progress=False)
            times[name].append((time.perf_counter() - began) / CHUNK)
    usual = times[""][2:]
    ratios = {name: [t / u for t, u in zip(times[name][2:], usual, strict=True)] for name in urls}
    return {name: (1e6 * statistics.median(times[name][2:]), statistics.median(ratios[name])) for name in ratios} | {
        "": (1e6 * statistics.median(usual), 1.0)
    }


def large(data: HistogramSource, url: str) -> tuple[float, float, int]:
    """Seconds to open a ledger of 10⁵ entries and as many answers, with its snapshot; and to verify it."""
    session = opened(data, url)
    ledger: Any = session.ledger
    store, number = ledger._store, len(session.log)
    tiny = Gaussian(1.0, 2.0**20)
    cost = BUDGET.cost(tiny)
    bound = [hr.questions.counts.bound(q, UNIVERSE) for q in questions(2_000)]  # type: ignore[attr-defined]
    estimates = session._engine.free(bound)
    body = answer_log.line_body(zip(bound, estimates or [], strict=True))
    when = now()
    for start in range(0, ENTRIES - number, 1000):
        said = []
        for i in range(number + start, min(number + start + 1000, ENTRIES)):
            entry = Entry(i, (tiny,), cost, "another's", {}, None, False)
            said.append((when, "", replay.CHARGE, replay.written_charge(entry)))
        store.append(said)
    for _ in range(ENTRIES // 2_000):
        store.append([(when, "", replay.ANSWERS, body)])
    ledger.refresh()
    ledger._news.clear()  # they taught nothing
    ledger._keep_state()
    ledger.close()
    began = time.perf_counter()
    again = opened(data, url)
    seconds = time.perf_counter() - began
    assert again.spent == session.spent
    began = time.perf_counter()
    again.ledger.verify()  # type: ignore[attr-defined]
    checked = time.perf_counter() - began
    found = int(again.ledger._parts.log.charges)  # type: ignore[attr-defined]
    again.ledger.close()  # type: ignore[attr-defined]
    return seconds, checked, found


def main() -> None:
    warnings.simplefilter("ignore")
    data = table()
    with tempfile.TemporaryDirectory(dir=os.environ.get("HEDGEROW_BENCH_DISK")) as folder:
        here = Path(folder)
        os.environ["HEDGEROW_LEDGER_KEY_FILE"] = str(here / "ledger.key")
        places: dict[str, Callable[[], str]] = {}
        count = iter(range(1000))
        places["SQLite"] = lambda: f"sqlite:///{here / f'{next(count)}.ledger'}"
        server = None
        try:
            from postgres import Server, binary

            if binary("initdb"):
                server = Server(str(here.parent))  # into a folder of its own: it runs as another user
                places["PostgreSQL"] = server.fresh
        except ImportError:
            pass
        try:
            text = measured(data, here, places)
        finally:
            if server is not None:
                server.remove()
    (ROOT / "docs" / "benchmarks-ledger.md").write_text(short_lines(text))
    print(text)


def measured(data: HistogramSource, here: Path, places: dict[str, Callable[[], str]]) -> str:
    opened(data, None).ask_all(questions(500), progress=False)  # compiled, and warm
    lines = [
        "# Cost of a ledger on disk",
        "",
        f"Measured by `benchmarks/ledger.py` (`make bench`) on {os.cpu_count()} cores, Python {platform.python_version()}. "
        "Medians, with the 10 % and 90 % quantiles.",
        "",
        "## An append",
        "Time to append a line that is on the disk when the call returns. For comparison, the time that the same disk needs for two pages.",
        "",
        "| | a charge, with its turn | a record | pages at a file's end, fsync | pages written over, fdatasync |",
        "|---|---|---|---|---|",
    ]
    said = []
    for name, fresh in places.items():
        charged, recorded = appends(fresh())
        floor = floors(here)
        lines.append(
            f"| {name} | {milliseconds(charged)} | {milliseconds(recorded)} | {milliseconds(floor['fsync'])} "
            f"| {milliseconds(floor['fdatasync'])} |"
        )
        times = [statistics.median(charged) / statistics.median(floor[sync]) for sync in ("fsync", "fdatasync")]
        said.append(
            f"{name}: a charge takes {times[0]:.1f} times as long as the former, {times[1]:.1f} times the latter."
        )
    lines += ["", *said]
    lines += [
        "",
        "## A free answer",
        f"{ANSWERS} different counts over three attributes; the same questions, alternately with and without a ledger, including all writing.",
        "",
        "| | without | " + " | ".join(f"{name} | times" for name in places) + " |",
        "|---|---|" + "---|---|" * len(places),
    ]
    for title, one_by_one, guard in (
        ("`ask`", True, 0.0),
        ("`ask_all`", False, 0.0),
        ("`ask`, a guard asked of most", True, 0.2),
        ("`ask_all`, a guard asked of most", False, 0.2),
    ):
        found = slower(data, {name: fresh() for name, fresh in places.items()}, one_by_one, guard)
        cells = " | ".join(f"{found[name][0]:.0f} µs | {found[name][1]:.3f}" for name in places)
        lines.append(f"| {title} | {found[''][0]:.0f} µs | {cells} |")
    lines += [
        "",
        "An answer that uses an open round of the guard is written before it is returned (for `ask_all`, all answers together; see [ledger](ledger.md)).",
        "",
        "## Opening again",
        f"A ledger of {ENTRIES} entries and as many answers: opened from its snapshot, and verified line by line.",
        "",
        "| | opened | verified |",
        "|---|---|---|",
    ]
    for name, fresh in places.items():
        seconds, checked, entries = large(data, fresh())
        assert entries == ENTRIES
        lines.append(f"| {name} | {seconds:.2f} s | {checked:.2f} s |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
