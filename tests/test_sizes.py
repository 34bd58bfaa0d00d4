"""Sizes are judged from public facts: opened or refused, never killed, never charged and then refused.

Cases run in a process whose addresses are limited to 2 GB (``size_cases``). Libraries alone take about 1.1 GB of them, with the variables
of ``SMALLER``; without these Arrow reserves 1 GB more, and an opening is refused before it reads anything.
"""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow import _memory
from hedgerow.data import HistogramSource
from hedgerow.engine.practical import measurement
from hedgerow.query.counts import bound
from hedgerow.query.statistics import groups, statistic

pytest.importorskip("resource")  # Windows has no limits of this kind

ADDRESSES = 2 * 10**9
SMALLER = {
    "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
}  # fmt: skip
KINDS = ("whole", "wide", "bins", "edges", "categories", "days", "flag")
BUDGET = hr.Budget(1.0, 1e-6)


def outcomes(cases: list[dict[str, Any]], more: dict[str, str] = SMALLER) -> list[dict[str, Any]]:
    """Run the cases in one process, which must survive all of them, and return the outcome of every step."""
    script = Path(__file__).with_name("size_cases.py")
    lines = "\n".join(map(json.dumps, cases)) + "\n"
    ran = subprocess.run(
        [sys.executable, str(script), str(ADDRESSES)],
        input=lines,
        capture_output=True,
        text=True,
        env=os.environ | more,
    )
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, (found[-1:], ran.stderr[-2000:])
    return found


def judged(found: list[dict[str, Any]]) -> None:
    """Each step was answered, or refused by the package's own error in its own form, for nothing."""
    for step in found:
        assert step["ours"], step
        if step["error"]:
            assert " must " in step["message"] and "Found" in step["message"], step
            assert step["after"] == step["before"], step


def session(*attributes: tuple[str, int], neighbours: str = "replace", **more: Any) -> dict[str, Any]:
    more = more if "method" in more else {"profile": "practical"} | more
    return {"kind": "session", "attributes": attributes, "neighbours": neighbours} | more


FIXED = [
    session(("whole", 9), ("flag", 2), ("bins", 5), within="0.2", reserve=0.5, every=7),
    session(("whole", 10**15), ("flag", 2)),
    session(*[("whole", 10**15)] * 12, neighbours="add-remove"),
    session(("wide", 10**15), ("categories", 30), profile="theory"),
    session(("whole", 10**5), ("whole", 10**6), ("whole", 10**6), method="adaptive"),
    session(("whole", 3000), ("flag", 2), ("categories", 900), method="mwem", workload="pairs"),
    session(("bins", 10**15), ("flag", 2)),
    session(("whole", 20_000), ("flag", 2), ("categories", 3000), profile="theory", every=1, only=[
        "ask groups a0", "ask medians a0", "ask groups a2", "ask medians a2", "ask onehot a1", "ask classes a0", "ask all", "ask logistic", "sql SELECT a0", "sql SELECT a2", "sql SELECT avg(a0) AS v0", "many synthetic",
        "ask survival a0", "ask cramers a0", "ask compare a0",
    ]),
    session(("days", 10**6), ("flag", 2), only=["ask compare a0", "ask cramers a0"]),  # masks of all pairs of days: a terabyte
    session(("whole", 10**5), ("flag", 2), method="matrix", workload="counts"),
    session(("whole", 10**5), ("categories", 10**5), method="convex", workload="onehot"),
    session(("whole", 10**5), ("flag", 2), method="small_db", workload="counts"),
    session(("whole", 200_000), ("flag", 2), only=["sql SELECT avg(a0) AS v0"]),  # 500 questions, which are too many once bound
    {"kind": "fit", "rows": 40, "p": 10**8, "neighbours": "replace"},
    {"kind": "fit", "rows": 40, "p": 2000, "neighbours": "add-remove", "only": ["frank", "lasso"]},
    {"kind": "draft", "largest": "1e300", "whole": True, "bins": 16, "most": 10**15, "neighbours": "replace"},
    {"kind": "draft", "largest": "1e3", "whole": False, "bins": 10**15, "most": 64, "neighbours": "add-remove"},
]  # fmt: skip


def test_every_question_on_a_universe_of_any_size_is_answered_or_refused_for_free() -> None:
    found = outcomes(FIXED)
    judged(found)
    last = [[step for step in found if step["case"] == json.loads(json.dumps(case))] for case in FIXED]
    assert not any(
        step["error"] == "TooLarge" for step in last[0] if step["step"] != "many synthetic"
    )  # small: all is answered
    assert sum(not step["error"] for step in last[0]) > 10
    for refused in (1, 2, 3, 4, 5):
        assert [step["error"] for step in last[refused]] == ["", "TooLarge"]
    assert [step["error"] for step in last[6]] == ["TooLarge"]  # it is not even declared
    assert {step["error"] for step in last[7][2:]} == {"TooLarge"}
    assert {step["error"] for step in last[8][2:]} == {"TooLarge"} and len(last[8]) == 4
    for refused, errors in ((9, ["InvalidInput"]), (10, ["TooLarge"]), (11, ["TooLarge"]), (12, ["", "TooLarge"])):
        assert [step["error"] for step in last[refused]] == ["", *errors]
    assert {step["error"] for step in last[13]} == {"TooLarge"} and not any(step["error"] for step in last[14])
    assert [step["error"] for step in last[15] + last[16]] == ["", "TooLarge"]


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(8))
def test_random_universes_are_opened_and_asked_or_refused_for_nothing(seed: int) -> None:
    draw = random.Random(seed)
    cases = []
    for _ in range(25):
        top = draw.choice([2, 3, 4, 5, 6, 7, 10, 15])
        attributes = [
            (draw.choice(KINDS), int(10 ** (top * draw.random()))) for _ in range(draw.choice([1, 2, 3, 4, 6, 9, 12]))
        ]
        how = draw.choice([
            {"method": "adaptive"}, {"method": "mwem", "workload": "pairs"}, {"method": "adaptive", "workload": "conjunctions"}, {"profile": "theory"},
            {"profile": "practical"}, {"profile": "practical", "within": "0.2", "reserve": 0.5},
        ])  # fmt: skip
        neighbours = draw.choice(["replace", "add-remove"])
        cases.append(session(*attributes, neighbours=neighbours, every=11, offset=draw.randrange(11), **how))
    cases += [
        {"kind": "fit", "rows": 60, "p": int(10 ** (3 + 6 * draw.random())), "neighbours": "replace"},
        session(*[("whole", 100_000)] * 7, every=23),  # which used to die after a charge
        session(("whole", 10**6), only=["ask median", "ask mean", "ask variance", "ask top"]),
    ]
    judged(outcomes(cases))


def test_libraries_that_do_not_fit_are_refused_before_anything_is_charged() -> None:
    cases = [
        session(("whole", 5), ("flag", 2), only=[]),
        {"kind": "fit", "rows": 40, "p": 20, "neighbours": "replace", "only": ["frank"]},
        {"kind": "draft", "largest": "1e3", "whole": False, "bins": 8, "most": 64, "neighbours": "replace"},
    ]
    found = outcomes(cases, SMALLER | {"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"})
    judged(found)
    assert [step["error"] for step in found] == ["", *["TooLarge"] * 4]
    assert "RLIMIT_AS must be at least 2.3 GB" in found[1]["message"]


HOLES = """
import resource
import numpy as np
from hedgerow import _memory

def addresses():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()

resource.setrlimit(resource.RLIMIT_AS, (4 * 10**9, 4 * 10**9))
_memory.LOADED_LATER = ()
_memory.require_libraries()
large = np.ones(2**22 - 2**10)  # once it is freed, the allocator takes arrays of its size from the heap
del large
before, small, arrays = addresses(), [], []
for _ in range(100):
    arrays.append(np.ones(2**18))
    small.append(bytearray(1000))
held = addresses() - before
arrays.clear()
print(held, addresses() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have no such option")
def test_closed_tables_give_their_addresses_back_where_they_are_limited() -> None:
    run = [sys.executable, "-c", HOLES]
    ran = subprocess.run(run, capture_output=True, text=True, env=os.environ | SMALLER, check=True)
    held, left = map(int, ran.stdout.split())
    assert held > 2 * 10**8 and left < 10**7


def test_a_question_about_many_values_keeps_a_short_key() -> None:
    universe = hr.Universe(x=hr.Integers(0, 10**5 - 1), y=hr.Integers(0, 4))
    weights = np.random.default_rng(1).random(10**5)
    asked = {
        "a range": [hr.count(x=(0, end)) for end in (500, 501)],
        "weights": [hr.linear(["x"], np.where(np.arange(10**5) == some, 0.5, weights)) for some in (7, 8)],
        "a table": [hr.linear(["x", "y"], np.where(np.arange(5) == some, 0.5, weights[:, None])) for some in (2, 3)],
        "a mean": [hr.mean("x", where=hr.count(x=(0, end))) for end in (500, 501)],
        "a median": [hr.median("x", where=hr.count(x=(0, end))) for end in (500, 501)],
    }  # fmt: skip
    for queries in asked.values():
        keys = [bound(query, universe).key for query in queries]
        assert keys == [bound(query, universe).key for query in queries] and keys[0] != keys[1]
        assert all(len(repr(key)) < 2000 for key in keys)


def opened(values: int, limit: str | None = "20MB", profile: Any = "theory") -> hr.Session:
    universe = hr.Universe(x=hr.Integers(0, values - 1), y=hr.Flag(), z=hr.Flag())
    data = HistogramSource(universe, np.full(universe.size, 5))
    return hr.open(data, universe=universe, budget=BUDGET, profile=profile, seed=1, limit=limit)


def test_the_limit_is_what_the_owner_says() -> None:
    assert opened(40_000).universe.size == 160_000  # 400 bytes a value
    with pytest.raises(hr.TooLarge, match=r"at most 50000 in all, 20 MB of memory\. Found 60004.*bins.*limit="):
        opened(60_000)
    assert opened(60_000, "30MB").universe.size == 240_000
    with pytest.raises(hr.TooLarge):
        opened(1000, "1kB")


@pytest.fixture(scope="module")
def wide() -> hr.Session:
    """A session with an attribute of so many values that hardly anything but counts may be asked of it."""
    return opened(40_000)


QUESTIONS = {
    "a question of groups": hr.group_by("y").median("x"),
    "a histogram": hr.histogram("x"),
    "a feature for each value": hr.minimize(hr.losses.Logistic(target="y", features=["x"], onehot=["x"]), hr.L2Ball(1.0)),
    "a class for each value": hr.minimize(hr.losses.MultinomialLogistic(target="x", features=["y"]), hr.L2Ball(1.0)),
    "a question of a table": hr.marginal("x", "y", "z"),
}  # fmt: skip


@pytest.mark.parametrize("asked", QUESTIONS)
def test_a_question_above_the_limit_is_refused_for_nothing(wide: hr.Session, asked: str) -> None:
    spent = wide.spent
    for ask in (wide.ask, lambda query: wide.ask_all([query]), lambda query: wide.price(query, within=0.1)):
        with pytest.raises(hr.TooLarge, match=r"must .*Found .*limit="):
            ask(QUESTIONS[asked])
    assert wide.spent == spent


def test_counts_of_a_wide_attribute_are_answered_below_the_limit(wide: hr.Session) -> None:
    assert wide.ask(hr.count(x=(0, 99))).value >= 0
    assert len(wide.synthetic(100)) == 100


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.synthetic(10**6),
        lambda session: session.sql("SELECT x, count(*) FROM data GROUP BY x"),
        lambda session: session.sql("SELECT y, median(x) FROM data GROUP BY y"),
    ],
)
def test_records_and_statements_above_the_limit_are_refused_for_nothing(wide: hr.Session, ask: Any) -> None:
    spent = wide.spent
    with pytest.raises(hr.TooLarge, match=r"must .*Found .*limit="):
        ask(wide)
    assert wide.spent == spent


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_fit_is_judged_by_its_public_size_alone(neighbours: Any) -> None:
    budget = hr.Budget(1.0, 1e-6, neighbours=neighbours)
    X, y = np.zeros((50, 400)), np.zeros(50)
    given: dict[str, Any] = {"loss": hr.losses.Logistic(), "over": hr.L1Ball(1.0), "seed": 1}
    account = hr.Accountant(budget)
    if neighbours == "replace":
        with pytest.raises(hr.TooLarge, match="A fit of 400 parameters to 50 rows must take at most 500 kB"):
            hr.erm.frank_wolfe(X, y, budget=account, limit="500kB", **given)
        assert account.spent == 0
        hr.erm.frank_wolfe(X, y, budget=account, limit="1MB", **given)
        return
    with pytest.raises(hr.TooLarge, match="to 90 rows"):  # by the guess: n is private
        hr.erm.frank_wolfe(X, y, budget=account, limit="500kB", expected_rows=90, **given)
    assert account.spent == 0
    hr.erm.frank_wolfe(X, y, budget=account, limit="500kB", expected_rows=20, **given)


def test_a_draft_of_more_bins_than_cuts_is_refused_for_nothing() -> None:
    budget = hr.Budget(1.0, 1e-6)
    account = hr.Accountant(budget, slack=budget.delta / 2)
    with pytest.raises(hr.TooLarge, match="bins must be at most 1024"):
        hr.drafting.draft(pd.DataFrame({"x": [1.0, 2.0]}), budget=budget, ledger=account, bins=1025)
    assert account.spent == 0


@pytest.mark.parametrize(
    ("cells", "outputs", "columns", "dimension"),
    [(4000, 1, [], 1), (40, 10, [], 1), (1, 1, [10**5, 10**5], 1), (1, 1, [], 150)],
)
def test_each_part_of_a_convex_fit_is_judged(cells: int, outputs: int, columns: list[int], dimension: int) -> None:
    with _memory.limit_memory(10**6):
        with pytest.raises(hr.TooLarge, match=f"of {cells} cells and {dimension} parameters, must take at most 1 MB"):
            _memory.require_fit("A fit", cells, outputs, columns, dimension, "Use fewer")
        _memory.require_fit("A fit", cells // 2, max(1, outputs // 2), columns[:1], dimension // 2, "Use fewer")


def test_questions_that_are_many_are_judged_together(wide: hr.Session) -> None:
    some = [hr.mean("x", where=hr.count(x=(0, end))) for end in range(100, 130)]
    spent = wide.spent
    with pytest.raises(hr.TooLarge, match="The tables of all parts of the questions must be at most 400000 cells"):
        wide.ask_all(some)
    assert wide.spent == spent


def test_groups_are_judged_before_they_are_all_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    universe, bounds = hr.Universe(x=hr.Integers(0, 999), y=hr.Integers(0, 499)), []
    for module in (groups, statistic):
        monkeypatch.setattr(module, "bound", lambda *given: bounds.append(given) or bound(*given))
    with (
        _memory.limit_memory(10**9),
        pytest.raises(hr.TooLarge, match="A question of groups, with a table for each group,"),
    ):
        bound(hr.group_by("y").mean("x"), universe)
    assert len(bounds) == 1


def test_matrices_of_wide_attributes_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "MOST_ENTRIES", 500)
    made: list[int] = []
    remembering = measurement.contrasts_of(lambda m: made.append(m) or measurement.helmert(m))
    for m in (10, 15, 10, 20, 20, 10):  # 100 + 225 stay; with 400 the oldest go
        remembering(m)
    assert made == [10, 15, 20, 10]


def test_memory_kept_by_a_question_is_counted_for_each_of_its_parts() -> None:
    universe = hr.Universe(x=hr.Integers(0, 9), y=hr.Integers(0, 6))
    of = {
        "mean": (hr.mean("x"), 10 + 1), "means": (hr.group_by("y").mean("x"), 7 * (70 + 7)), "histogram": (hr.histogram("x"), 0),
        "medians": (hr.group_by("y").median("x"), 7 * 70 * 4),
    }  # fmt: skip
    for query, cells in of.values():
        assert bound(query, universe).kept_cells(universe) == cells  # type: ignore[attr-defined]


def test_a_cache_of_counts_has_its_part_of_the_limit() -> None:
    universe = hr.Universe(a=hr.Integers(0, 99), b=hr.Integers(0, 99))
    data = HistogramSource(universe, np.ones(10_000, int))
    with _memory.limit_memory(64 * 150):
        data.marginals([("a",), ("b",)])
        assert data._cached_cells == 100
    with _memory.limit_memory(64 * 250):
        data.marginals([("a",), ("b",)])
        assert data._cached_cells == 200


def test_a_limit_below_a_limit_on_addresses_leaves_room_for_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
    monkeypatch.setattr(_memory, "_addresses", lambda: 2 * 10**9)
    assert _memory.default_limit() == 48 * 10**7
    monkeypatch.setattr(_memory, "_addresses", lambda: None)
    monkeypatch.setattr(_memory, "_groups", lambda: [10**9])
    assert _memory.default_limit() <= 5 * 10**8
