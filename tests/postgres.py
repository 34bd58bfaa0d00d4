"""A real PostgreSQL server, started for the tests and removed afterwards."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where a disk need not be waited for: a process that is killed leaves its files there too."""


def binary(name: str) -> Path | None:
    """One of Debian's, or of those beside the initdb on the PATH."""
    found = shutil.which("initdb")
    beside = [Path(found).resolve().parent] if found else []
    places = [*beside, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    return next((place / name for place in places if (place / name).exists()), None)


class Server:
    """A cluster in a folder of its own, reached by its socket. As root it runs as another user, as it insists."""

    def __init__(self, where: str | None = MEMORY) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hr-pg-", dir=where))
        self.user = [] if os.geteuid() else ["runuser", "-u", self._servant(), "--"]
        if self.user:
            shutil.chown(self.folder, self._servant())
        self._run("initdb", "-N", "-A", "trust", "-U", "owner", "-D", str(self.folder / "data"))
        self._started: subprocess.Popen[bytes] | None = None
        self.start()
        self._made = 0

    @staticmethod
    def _servant() -> str:
        import pwd

        return next(name for name in ("postgres", "nobody") if name in {user.pw_name for user in pwd.getpwall()})

    def _run(self, name: str, *given: str) -> None:
        program = binary(name)
        assert program is not None
        subprocess.run([*self.user, str(program), *given], check=True, capture_output=True, cwd=self.folder)

    def start(self) -> None:
        program = binary("postgres")
        assert program is not None
        settings = [
            "-c",
            "listen_addresses=",
            "-c",
            f"unix_socket_directories={self.folder}",
            "-c",
            "max_connections=500",  # sessions that tests leave behind keep theirs
        ]
        self._started = subprocess.Popen(
            [*self.user, str(program), "-D", str(self.folder / "data"), *settings],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder,
        )  # fmt: skip
        for _ in range(300):
            try:
                self.sql("SELECT 1")
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise RuntimeError("PostgreSQL did not start")

    def sql(self, statement: str) -> None:
        with psycopg.connect(f"host={self.folder} user=owner dbname=postgres", autocommit=True) as connection:
            connection.execute(statement)

    def _process(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def stop(self) -> None:
        """At once, as when its machine is switched off."""
        if self._started is not None:
            os.kill(self._process(), signal.SIGQUIT)
            self._started.wait()
            self._started = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def fresh(self) -> str:
        """The URL of a new schema."""
        self._made += 1
        self.sql(f"CREATE SCHEMA ledger{self._made}")
        return f"postgresql://owner@/postgres?host={self.folder}&options=-csearch_path%3Dledger{self._made}"


@functools.cache
def server() -> Server:
    """One for all tests of a process; the test is skipped where there is no PostgreSQL."""
    if binary("initdb") is None:
        pytest.skip("no PostgreSQL here: install Debian's postgresql, or put initdb on the PATH")
    made, here = Server(), os.getpid()
    atexit.register(lambda: made.remove() if os.getpid() == here else None)
    return made
