"""Does the service keep its promises under load? Real processes on the loopback address, the client on the same processors.

    python tools/load.py                          every phase at its full size, into docs/benchmarks-service.md
    python tools/load.py rates pace mixed         some phases; the figures of the others stay as they are
    python tools/load.py mixed --requests 2000    one phase, at another size

    mixed     32 clients: free, repeated, paid, SQL, convex and refused requests; every answer and every bill is checked
    steady    the same requests, which arrive evenly at 60 % of the rate that 32 clients reach by themselves
    bursts    purchases of 8 people at once, which are committed together; the engine is killed among some of them
    rates     single questions and batches of 100, as fast as 32 clients can
    pace      the time to a free answer while requests arrive evenly, and convex fits beside them
    memory    the memory of all processes, over many requests
    kills     the engine and its workers are killed with kill -9 while clients repeat their requests
    fronts    two fronts of one engine whose ledger is on PostgreSQL; a front and the engine are killed in turn
    shares    the processor time of a front and of the engine for a free answer that is asked at the front
    fuzz      malformed paths, headers, bodies, questions and SQL
    described requests that schemathesis makes from the OpenAPI document; left out where it is not installed

Status 1 at the first thing that does not hold. A rate or a time that misses its bar is shown beside the bar, and is no failure:
it may be the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from load_fuzz import described, find_schemathesis, fuzz
from load_mix import FITS, FREE, WITHIN, MixChecks, quantile
from load_service import AT, LoadClient, LoadedService, at_once, end_process, free_port

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "benchmarks-service.json"
PAGE = ROOT / "docs" / "benchmarks-service.md"
CLIENTS = 32


def clients_of(service: LoadedService, count: int = CLIENTS) -> list[LoadClient]:
    """Return clients of several analysts."""
    return [LoadClient(service.port, service.analysts[i % len(service.analysts)]) for i in range(count)]


def mixed(service: LoadedService, requests: int) -> dict[str, Any]:
    """Send mixed requests, and check every answer and every bill."""
    before, checks = service.owner_reads("/ledger/spending")["spent"], MixChecks()
    began, used = time.perf_counter(), service.processor_time() + time.process_time()
    asyncio.run(at_once(clients_of(service), requests, checks.one))
    seconds, used = time.perf_counter() - began, service.processor_time() + time.process_time() - used
    return {
        "requests": requests, "requests/s": requests / seconds, **checks.check_bills(service, before),
        "statuses": dict(sorted(checks.statuses.items())), "different questions repeated alike": len(checks.answers),
        "p50 and p99, ms": {k: [quantile(v, 0.5), quantile(v, 0.99)] for k, v in sorted(checks.seconds.items())},
        "p99 of a free answer, ms": quantile(checks.seconds["free"] + checks.seconds["repeat"], 0.99),
        "mean wait of 32 clients that never rest, at this rate, ms": 1e3 * CLIENTS * seconds / requests,
        "processor time a request, client included, ms": 1e3 * used / requests,
    }  # fmt: skip


def steady(service: LoadedService, requests: int, share: float = 0.6) -> dict[str, Any]:
    """Measure the rate of the second fifth of the requests at full speed. The rest arrive evenly at 60 % of it."""
    before, checks, clients = service.owner_reads("/ledger/spending")["spent"], MixChecks(), clients_of(service)
    fifth = requests // 5
    asyncio.run(at_once(clients, fifth, checks.one))
    began = time.perf_counter()
    asyncio.run(at_once(clients, fifth, checks.one, fifth))
    full = fifth / (time.perf_counter() - began)
    checks.seconds.clear()
    numbers = range(2 * fifth, requests)
    asyncio.run(at_pace(clients, [partial(_timed, checks, number) for number in numbers], share * full))
    return {
        "requests": requests, "requests/s at full speed": full, "arrivals/s": share * full,
        **checks.check_bills(service, before),
        "p50 and p99, ms": {k: [quantile(v, 0.5), quantile(v, 0.99)] for k, v in sorted(checks.seconds.items())},
        "p99 of a free answer, ms": quantile(checks.seconds["free"] + checks.seconds["repeat"], 0.99),
    }  # fmt: skip


async def _timed(checks: MixChecks, number: int, client: LoadClient, began: float) -> None:
    await checks.one(client, number, began)


async def at_pace(clients: list[LoadClient], works: list[Callable[[LoadClient, float], Any]], rate: float) -> None:
    """Do pieces of work that arrive evenly, each with a client that is idle by then, or soon after."""
    idle: asyncio.Queue[LoadClient] = asyncio.Queue()
    for client in clients:
        idle.put_nowait(client)

    async def do(work: Callable[[LoadClient, float], Any], arrived: float) -> None:
        client = await idle.get()
        await work(client, arrived)
        idle.put_nowait(client)

    began, tasks = time.perf_counter(), []
    for number, work in enumerate(works):
        arrives = began + number / rate
        await asyncio.sleep(max(0.0, arrives - time.perf_counter()))
        tasks.append(asyncio.create_task(do(work, arrives)))
    await asyncio.gather(*tasks)
    for client in clients:
        client.close()


def bursts(service: LoadedService, times: int) -> dict[str, Any]:
    """Let 16 purchases of 8 people wait at once, and kill the engine among every third 16. Count their commits."""
    before, checks, kills = service.owner_reads("/ledger/spending")["spent"], MixChecks(), 0
    lines = _answer_lines(service)
    for turn in range(times):
        is_killed = turn % 3 == 2

        async def run(turn: int = turn, is_killed: bool = is_killed) -> None:
            clients = clients_of(service, 16)
            waiting = [
                asyncio.create_task(checks.buy(client, turn * 16 + i, 1e-9 if i == 7 else WITHIN))
                for i, client in enumerate(clients)
            ]
            if is_killed:
                await asyncio.sleep(0.002 * (turn % 20))
                service.kill()
                await asyncio.to_thread(service.start)
            await asyncio.gather(*waiting)
            for client in clients:
                client.close()

        kills += is_killed
        asyncio.run(run())
    bills = checks.check_bills(service, before, kills=kills)
    found = _answer_lines(service) - lines
    assert found < bills["purchases"], ("every purchase has a commit of its own", found, bills)
    return {
        "requests": 16 * times,
        "kills": kills,
        **bills,
        "commits with answers": found,
        "statuses": dict(checks.statuses),
    }


def _answer_lines(service: LoadedService) -> int:
    """Return how many lines of the ledger have answers: one for each group of purchases."""
    with contextlib.closing(sqlite3.connect(f"file:{service.folder}/people.ledger?mode=ro", uri=True)) as ledger:
        return int(ledger.execute("SELECT count(*) FROM hedgerow_lines WHERE kind = 'answers'").fetchone()[0])


def rates(service: LoadedService, requests: int) -> dict[str, Any]:
    """Ask single questions, new and repeated, and batches of 100, as fast as the clients can."""
    clients = clients_of(service)

    async def single(client: LoadClient, number: int) -> None:
        found = await client.send("POST", f"{AT}/ask", {"question": FREE[number % len(FREE)]})
        assert found.status == 200, found.body

    async def batch(client: LoadClient, number: int) -> None:
        start = number * 100 % (len(FREE) - 100)
        found = await client.send("POST", f"{AT}/batch", {"questions": FREE[start : start + 100]})
        assert found.status == 200 and len(found.json["answers"]) == 100, found.body

    found: dict[str, Any] = {}
    for name, one, count, answers in (
        ("single, new", single, min(requests, len(FREE)), 1), ("single, repeated", single, requests, 1),
        ("batches of 100", batch, requests // 10, 100),
    ):  # fmt: skip
        began, used = time.perf_counter(), service.processor_time() + time.process_time()
        asyncio.run(at_once(clients, count, one))
        seconds, used = time.perf_counter() - began, service.processor_time() + time.process_time() - used
        found[f"{name}: answers/s"] = answers * count / seconds
        found[f"{name}: processor time an answer, client included, ms"] = 1e3 * used / (answers * count)
    return found


def pace(service: LoadedService, requests: int, per_second: float = 100.0) -> dict[str, Any]:
    """Ask free questions at an even pace, and measure the time to each answer, while convex fits run beside them."""
    waits: list[float] = []

    async def run() -> None:
        clients, fitter = clients_of(service), LoadClient(service.port, service.owner)
        idle: asyncio.Queue[LoadClient] = asyncio.Queue()
        for client in clients:
            idle.put_nowait(client)

        async def ask(number: int) -> None:
            began = time.perf_counter()
            client = await idle.get()
            found = await client.send("POST", f"{AT}/ask", {"question": FREE[-1 - number % len(FREE)]})
            waits.append(time.perf_counter() - began)
            assert found.status == 200, found.body
            idle.put_nowait(client)

        async def fit() -> None:
            for number in range(10**9):
                body = {**FITS[number % len(FITS)], "radius": 1 + number / 1e6}  # a new question each time
                await fitter.send("POST", f"{AT}/fit", body)
                await asyncio.sleep(0.2)

        beside, began, tasks = asyncio.create_task(fit()), time.perf_counter(), []
        for number in range(requests):
            await asyncio.sleep(max(0.0, began + number / per_second - time.perf_counter()))
            tasks.append(asyncio.create_task(ask(number)))
        await asyncio.gather(*tasks)
        beside.cancel()
        for client in [*clients, fitter]:
            client.close()

    asyncio.run(run())
    return {
        "questions": requests, "arrivals/s": per_second, "p50, ms": quantile(waits, 0.5), "p99, ms": quantile(waits, 0.99)
    }  # fmt: skip


def shares(service: LoadedService, requests: int) -> dict[str, Any]:
    """Ask free questions at a front, and measure the processor time of the front and of the engine for an answer."""
    port = free_port()
    front = service.start_front(port)
    found: dict[str, Any] = {}

    async def single(client: LoadClient, number: int) -> None:
        got = await client.send("POST", f"{AT}/ask", {"question": FREE[number % len(FREE)]})
        assert got.status == 200, got.body

    try:
        clients = [LoadClient(port, service.analysts[i % len(service.analysts)]) for i in range(CLIENTS)]
        asyncio.run(at_once(clients[:1], 10, single))
        for name, count in (("new", min(requests, len(FREE) - 10)), ("repeated", requests)):
            began, at = time.perf_counter(), [service.processor_time(), service.processor_time(front.pid)]
            asyncio.run(at_once(clients, count, single, 10))
            used = [service.processor_time() - at[0], service.processor_time(front.pid) - at[1]]
            found[f"{name}: answers/s"] = count / (time.perf_counter() - began)
            found[f"{name}: processor time of the engine for an answer, ms"] = 1e3 * used[0] / count
            found[f"{name}: processor time of the front for an answer, ms"] = 1e3 * used[1] / count
    finally:
        front.kill()
        front.wait()
    return found


def memory(service: LoadedService, requests: int) -> dict[str, Any]:
    """Measure the memory of all processes after each tenth of many requests."""
    checks, sizes, part = MixChecks(), [], requests // 10
    for start in range(0, part * 10, part):
        asyncio.run(at_once(clients_of(service), part, checks.one, start))
        sizes.append(round(service.memory(), 1))
        for kept in checks.seconds.values():
            kept.clear()
    return {
        "requests": part * 10,
        "MB after each tenth": sizes,
        "growth from the third tenth to the last, %": 100 * (sizes[-1] / sizes[2] - 1),
    }


def kills(service: LoadedService, times: int) -> dict[str, Any]:
    """Kill the engine and, as often, a worker, while clients repeat what was cut off with the same keys."""

    def kill_worker(turn: int) -> bool:
        for pid in service.workers()[turn % 2 : turn % 2 + 1]:
            end_process(pid)
            return True
        return False

    return _kills(service, times, clients_of(service, 8), {"worker": kill_worker})


def fronts(service: LoadedService, times: int) -> dict[str, Any]:
    """Ask two fronts of one engine, and kill a front and the engine in turn."""
    ports = [free_port(), free_port()]
    running = [service.start_front(port) for port in ports]
    clients = [LoadClient(ports[i % 2], service.analysts[i], others=(ports[1 - i % 2],)) for i in range(8)]

    def kill_front(turn: int) -> bool:
        running[turn % 2].kill()
        running[turn % 2].wait()
        running[turn % 2] = service.start_front(ports[turn % 2])
        return True

    try:
        return _kills(service, times, clients, {"front": kill_front})
    finally:
        for each in running:
            each.kill()
            each.wait()


def _kills(
    service: LoadedService, times: int, clients: list[LoadClient], others: dict[str, Callable[[int], bool]]
) -> dict[str, Any]:
    before, checks = service.owner_reads("/ledger/spending")["spent"], MixChecks()
    count, is_over = {"engine": 0, **dict.fromkeys(others, 0)}, False

    async def run() -> None:
        async def load(client: LoadClient, first: int) -> None:
            number = first
            while not is_over:
                await checks.one(client, number)
                number += len(clients)

        async def answered(more: int) -> None:
            wanted = sum(checks.statuses.values()) + more
            while sum(checks.statuses.values()) < wanted:
                await asyncio.sleep(0.002)

        async def kill() -> None:
            nonlocal is_over
            for turn in range(times):
                await answered(5 + turn * 37 % 50)
                for name, end in others.items():
                    count[name] += await asyncio.to_thread(end, turn)
                await answered(5 + turn * 61 % 50)
                service.kill()
                count["engine"] += 1
                await asyncio.to_thread(service.start)
            is_over = True

        try:
            await asyncio.gather(kill(), *(load(client, i) for i, client in enumerate(clients)))
        finally:
            for client in clients:
                client.close()

    asyncio.run(run())
    bills = checks.check_bills(service, before, kills=times)
    return {
        **{f"kills of the {name}": n for name, n in count.items()}, **bills, "requests": sum(checks.statuses.values()),
        "requests sent again": sum(client.repeated for client in clients),
    }  # fmt: skip


PHASES: dict[str, tuple[Callable[[LoadedService, int], dict[str, Any]], int]] = {
    "mixed": (mixed, 50_000),
    "steady": (steady, 25_000),
    "bursts": (bursts, 3),
    "rates": (rates, 10_000),
    "pace": (pace, 5_000),
    "shares": (shares, 5_000),
    "memory": (memory, 200_000),
    "kills": (kills, 100),
    "fronts": (fronts, 100),
    "fuzz": (fuzz, 20_000),
    "described": (described, 100),
}


BARS: dict[str, dict[str, tuple[str, float]]] = {
    "rates": {
        "single, new: answers/s": ("at least", 400), "single, repeated: answers/s": ("at least", 400),
        "batches of 100: answers/s": ("at least", 2_000),
    },
    "pace": {"p99, ms": ("below", 25)},
    "memory": {"growth from the third tenth to the last, %": ("below", 5)},
    "mixed": {"requests": ("at least", 50_000), "p99 of a free answer, ms": ("below", 25)},
    "steady": {"p99 of a free answer, ms": ("below", 25)},
    "fuzz": {"requests": ("at least", 20_000), "closed without a response": ("at most", 0)},
    "kills": {"kills of the engine": ("at least", 100), "kills of the worker": ("at least", 100)},
    "fronts": {"kills of the engine": ("at least", 100), "kills of the front": ("at least", 100)},
}  # fmt: skip


def run_phase(name: str, size: int, ledger: str = "sqlite:///people.ledger") -> dict[str, Any]:
    """Run a phase on a new service, and return its figures."""
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="hedgerow-load-") as folder:
        service = LoadedService(Path(folder), ledger)
        service.start()
        try:
            found = PHASES[name][0](service, size)
        finally:
            service.stop()
    return {**found, "ledger": ledger.partition(":")[0], "load of the machine before": round(before, 1)}


def own_postgres() -> str:
    """Start a PostgreSQL server for this run, and return the URL of an empty schema."""
    sys.path.insert(0, str(ROOT / "tests"))
    return str(importlib.import_module("postgres").server().fresh())


def page(figures: dict[str, Any]) -> str:
    """Write the figures as a page."""
    lines = [
        "# The service under load", "",
        "Measured by `python tools/load.py` (`make load`): a real service on the loopback address with two workers, and 32",
        f"clients in one process on the same {os.cpu_count()} processors, Python {platform.python_version()}. Every answer to a repeated question was compared,",
        "and every bill with the ledger; a run that finds a difference ends there. The load of the machine is that before the",
        "service started. Where it is above 0.5, other programs ran beside: times and rates are then those of a busy machine,",
        "and only processor times can be compared. Where something was killed, more may be charged than was billed: the answer",
        "was on record before it could be sent, and its repetition cost nothing.", "",
    ]  # fmt: skip
    for name, found in figures.items():
        lines += [f"## {name}", (PHASES[name][0].__doc__ or "").strip(), "", "| | measured | bar |", "|---|---|---|"]
        lines += [f"| {key} | {_cell(value)} | {_bar(name, key, value)} |" for key, value in found.items()]
        lines.append("")
    return "\n".join(lines)


def _bar(phase: str, key: str, value: Any) -> str:
    """Return the bar of a figure, and whether the figure meets it."""
    if key not in BARS.get(phase, {}):
        return ""
    kind, limit = BARS[phase][key]
    is_met = {"at least": value >= limit, "below": value < limit, "at most": value <= limit}[kind]
    return f"{kind} {limit:,g}: {'met' if is_met else 'not met'}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1_000 else f"{value:.0f}"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_cell(each)}" for key, each in value.items())
    return ", ".join(map(_cell, value)) if isinstance(value, list) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("phases", nargs="*", help="default: all")
    parser.add_argument("--requests", type=int, help="requests, or kills")
    parser.add_argument("--postgres", help="URL of an empty schema for the ledger")
    given = parser.parse_args()
    if unknown := set(given.phases) - set(PHASES):
        parser.error(f"phases must be of {', '.join(PHASES)}. Found {', '.join(unknown)}.")
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    for name in given.phases or PHASES:
        if name == "described" and not given.phases and find_schemathesis() is None:
            print("described: left out, because schemathesis is not installed", flush=True)
            continue
        ledger = given.postgres or (own_postgres() if name == "fronts" else "sqlite:///people.ledger")
        figures[name] = run_phase(name, given.requests or PHASES[name][1], ledger)
        print(name, json.dumps(figures[name], indent=1), flush=True)
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
        PAGE.write_text(page({phase: figures[phase] for phase in PHASES if phase in figures}))


if __name__ == "__main__":
    main()
