"""A real service for `make load`: its folder, its processes, and a lean client that repeats what was cut off."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.server.people import TokenStore
from hedgerow.server.registry import ServiceRegistry

AT = "/v1/datasets/people"
DESK = """
source = "people.csv"
ledger = "{ledger}"
[budget]
epsilon = 8.0
delta = 1e-6
[options]
reserve = 0.4
[universe.age]
kind = "Integers"
low = 17
high = 90
[universe.sex]
kind = "Categories"
values = ["F", "M"]
[universe.smoker]
kind = "Flag"
[universe.region]
kind = "Categories"
values = ["east", "north", "south", "west"]
"""
SERVICE = """
listen = "127.0.0.1:{port}"
registry = "registry.sqlite"
workers = {workers}
[datasets.people]
file = "hedgerow.toml"
[limits]
requests_per_minute = 100000000
wrong_tokens_per_minute = 100000000
header_seconds = 2
body_seconds = 2
"""


FRONT = """
listen = "127.0.0.1:{port}"
engine = "http://127.0.0.1:{engine}"
workers = 2
[limits]
requests_per_minute = 100000000
wrong_tokens_per_minute = 100000000
header_seconds = 2
body_seconds = 2
"""


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class LoadedService:
    """A service with a folder of its own. It may be killed and started again."""

    def __init__(
        self, folder: Path, ledger: str = "sqlite:///people.ledger", rows: int = 20_000, workers: int = 2
    ) -> None:
        self.folder, self.port = folder, free_port()
        regions = ("east", "north", "south", "west")
        lines = [f"{17 + (7 * i) % 74},{'FM'[i % 2]},{str(i % 3 == 0).lower()},{regions[i % 4]}" for i in range(rows)]
        (folder / "people.csv").write_text("\n".join(["age,sex,smoker,region", *lines]) + "\n")
        (folder / "hedgerow.toml").write_text(DESK.format(ledger=ledger))
        (folder / "service.toml").write_text(SERVICE.format(port=self.port, workers=workers))
        registry = ServiceRegistry(folder / "registry.sqlite")
        tokens = TokenStore(registry)
        self.owner = tokens.create("owner", "owner")[0]
        self.front = tokens.create("front", "front")[0]
        self.analysts = [tokens.create(f"analyst{i}", "analyst", project="load")[0] for i in range(8)]
        registry.close()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the service, and wait until its workers are ready."""
        self.process = self._start("service.toml", self.port, place="/v1/ready")

    def start_front(self, port: int, limits: str = "") -> subprocess.Popen[bytes]:
        """Start a front that answers for this service what is free, and wait until it answers. ``limits`` are further lines."""
        (self.folder / f"front-{port}.toml").write_text(FRONT.format(port=port, engine=self.port) + limits)
        return self._start(f"front-{port}.toml", port, HEDGEROW_FRONT_TOKEN=self.front)

    def _start(
        self, file: str, port: int, seconds: float = 180, place: str = "/v1/health", **environment: str
    ) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "hedgerow.cli", "serve", "--service", str(self.folder / file)]
        log = (self.folder / "log").open("ab")
        process = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **environment}
        )
        log.close()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            with contextlib.suppress(OSError):  # noqa: SIM117
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{place}", timeout=5):
                    return process
            time.sleep(0.05)
        raise RuntimeError("the service did not start")

    def kill(self) -> None:
        """End the engine as a power failure would. Its workers see their pipes end."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """Ask the service to stop, and wait for that."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None

    def processes(self, pid: int | None = None) -> list[list[int]]:
        """Return the processes of the service, or of a front, by generation: its own, that which forks workers, the workers."""
        parents = dict[int, list[int]]()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
        pid = self.process.pid if pid is None and self.process is not None else pid
        found = [[] if pid is None else [pid]]
        while found[-1]:
            found.append([child for pid in found[-1] for child in parents.get(pid, [])])
        return found[:-1]

    def workers(self) -> list[int]:
        """Return the worker processes."""
        return [pid for generation in self.processes()[2:] for pid in generation]

    def memory(self) -> float:
        """Return the resident memory of all processes of the service, in MB."""
        return sum(_memory(pid) for generation in self.processes() for pid in generation) / 1e6

    def processor_time(self, of: int | None = None) -> float:
        """Return the processor time that all processes of the service, or of a front, have used, in seconds."""
        found = 0.0
        for each in (each for generation in self.processes(of) for each in generation):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
                found += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return found

    def owner_reads(self, path: str, at: str = AT) -> Any:
        """Return what an endpoint tells the owner."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{at}{path}", headers={"Authorization": f"Bearer {self.owner}"}
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.loads(response.read())


def _memory(pid: int) -> float:
    """Return the memory of a process that is its own or its part of what is shared, in bytes."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return float(line.split()[1]) * 1024
    return 0.0


@dataclass(frozen=True)
class Response:
    """A response: its status, its headers and its body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class LoadClient:
    """One kept connection, by the plainest means, because the client shares the processors with the service."""

    def __init__(self, port: int, token: str, patience: float = 180.0, others: tuple[int, ...] = ()) -> None:
        self._ports, self.token, self.patience = [port, *others], token, patience
        self.repeated = 0  # requests that were sent again
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: Any = None, key: str | None = None) -> Response:
        """Send a request, again with the same key while the service is away, and return the response."""
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n"
        if content:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        if key is not None:
            head += f"Idempotency-Key: {key}\r\n"
        message, deadline = head.encode() + b"\r\n" + content, time.monotonic() + self.patience
        while True:
            with contextlib.suppress(OSError, EOFError, asyncio.IncompleteReadError):
                found = await asyncio.wait_for(self.raw(message), self.patience)
                if found.status not in (409, 503):
                    return found
            if time.monotonic() > deadline:
                raise TimeoutError("the service did not answer in time")
            self.repeated += 1
            self._ports.append(self._ports.pop(0))  # another front may be there
            await asyncio.sleep(0.05)

    async def raw(self, message: bytes) -> Response:
        """Send bytes, and read one response."""
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._ports[0], limit=1 << 26)
            reader, writer = self._streams
            writer.write(message)
            return await self._response(reader)
        except BaseException:
            self.close()
            raise

    async def _response(self, reader: asyncio.StreamReader) -> Response:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        if headers.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(await reader.readline(), 16):
                parts.append(await reader.readexactly(size))
                await reader.readexactly(2)
            await reader.readexactly(2)
            body = b"".join(parts)
        else:
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            self.close()
        return Response(int(head[0].split()[1]), headers, body)

    def close(self) -> None:
        """Close the connection. The next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def at_once(clients: list[LoadClient], count: int, one: Callable[[LoadClient, int], Any], start: int = 0) -> None:
    """Let clients do the requests of these numbers, each the next one as soon as it is free."""
    numbers = iter(range(start, start + count))

    async def work(client: LoadClient) -> None:
        for number in numbers:
            await one(client, number)

    try:
        await asyncio.gather(*map(work, clients))
    finally:
        for client in clients:
            client.close()


def end_process(pid: int) -> None:
    """Kill a process of the service."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
