"""Uploaded tables: kept apart in folders of their own until they are registered, and deleted if they are not.

    size            bytes are counted as they arrive, and the first one too many ends the upload
    type            by suffix and by the first bytes; the name that was sent is used for nothing else
    decompression   a process with limits reads the file through once before anything else does (``upload_trial``)
    number          of waiting uploads, and of those that arrive at a time
    age             uploads that nobody registers within a day are deleted, and so are parts of uploads at every start

A file is readable by the service's user alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import re
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import random_token
from hedgerow.server.problems import Refusal, bad_request
from hedgerow.server.registration_rule import RegistrationRule
from hedgerow.server.sources import kind_of
from hedgerow.server.upload_trial import read_through

FOLDER = ".uploads"
MOST = 20  # uploads that wait to be registered
AT_ONCE = 2
KEPT = 86_400.0  # seconds that an upload waits
TRIAL_SECONDS = 120.0
NUMBER = re.compile(r"[0-9a-f]{16}")
# the first bytes of what is often sent by mistake, or to harm: archives, databases, pictures, programs
OTHERS = (b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"Rar!", b"7z\xbc\xaf", b"SQLite format 3", b"%PDF", b"\x7fELF", b"\x89PNG", b"\xd0\xcf\x11\xe0")  # fmt: skip
FIRST = {".parquet": b"PAR1", ".csv.gz": b"\x1f\x8b", ".tsv.gz": b"\x1f\x8b"}
LONGEST_START = 16


@dataclass(frozen=True)
class Upload:
    """An upload that waits: its number, the name that was sent, and its size."""

    id: str
    name: str
    bytes: int


class Uploads:
    """The uploads of a service."""

    def __init__(self, rule: RegistrationRule, memory: int, idle_seconds: float) -> None:
        self._rule, self._memory, self._idle = rule, memory, idle_seconds
        self._folder = rule.folder / FOLDER
        self._arriving = 0
        self._trying = asyncio.Semaphore(1)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in self._folder.iterdir():
            if not (each / "whole").exists():
                shutil.rmtree(each, ignore_errors=True)

    async def receive(self, name: str, parts: AsyncIterator[bytes]) -> Upload:
        """Write an upload down as it arrives, try it, and return its number."""
        kind = kind_of(name)
        if not self._rule.upload:
            raise Refusal(403, "no-uploads", "No file may be uploaded", "Uploads must be allowed in the service's file. Found that they are not. Register a file "
                "of a root.")  # fmt: skip
        if kind is None or len(name) > 255 or not name.isprintable():
            raise bad_request("An upload must be a .csv, .tsv, .csv.gz, .tsv.gz or .parquet file. Found another name. Convert it.", 415)  # fmt: skip
        self.remove_old()
        if self._arriving >= AT_ONCE or self._arriving + len(list(self._folder.iterdir())) >= MOST:
            raise Refusal(503, "busy", "Too many uploads wait",
                f"At most {MOST} uploads may wait, and {AT_ONCE} arrive at a time. Found as many. Register or delete "
                "some.", {"Retry-After": "10"})  # fmt: skip
        self._arriving += 1
        number = random_token(8)
        here = self._folder / number
        try:
            here.mkdir(mode=0o700)
            size = await self._write(here / f"table{kind}", kind, parts)
            if kind in FIRST or size > self._rule.unpacked:
                await self._try(here / f"table{kind}")
            (here / "whole").touch(0o600)
        except BaseException:
            shutil.rmtree(here, ignore_errors=True)
            raise
        finally:
            self._arriving -= 1
        return Upload(number, name, size)

    def path(self, number: str) -> Path:
        """Return the path of an upload that waits."""
        here = self._folder / number
        if not NUMBER.fullmatch(number) or not (here / "whole").exists():
            raise InvalidInput("upload must be the number of an upload that waits. Found none. Upload the file again.")
        return next(each for each in here.iterdir() if each.name != "whole")

    def take(self, number: str, folder: Path) -> Path:
        """Move an upload into the folder of its dataset, and delete what is left of it."""
        path = self.path(number)
        target = folder / path.name
        os.replace(path, target)
        self.remove(number)
        return target

    def remove(self, number: str) -> None:
        """Delete an upload."""
        if NUMBER.fullmatch(number):
            shutil.rmtree(self._folder / number, ignore_errors=True)

    def remove_old(self) -> None:
        """Delete uploads that wait for too long."""
        for each in list(self._folder.iterdir()):
            with contextlib.suppress(OSError):
                if each.stat().st_mtime < time.time() - KEPT:
                    shutil.rmtree(each, ignore_errors=True)

    async def _write(self, path: Path, kind: str, parts: AsyncIterator[bytes]) -> int:
        """Write the parts of a file. Refuse it as soon as it is too large, of another type, or stops to arrive."""
        size, start = 0, b""
        with open(path, "xb", opener=_private) as file:
            while True:
                try:
                    part = await asyncio.wait_for(anext(parts), self._idle)
                except StopAsyncIteration:
                    break
                except TimeoutError:
                    raise bad_request(
                        "An upload must arrive without long pauses. Found that it stopped. Send it again.", 408
                    ) from None
                size += len(part)
                if size > self._rule.upload:
                    raise bad_request(
                        f"An upload must have at most {self._rule.upload:,} bytes. Found a larger file. Put the file "
                        "into a root.",
                        413,
                    )
                if len(start) < LONGEST_START:
                    start = (start + part)[:LONGEST_START]
                await asyncio.to_thread(file.write, part)
            _require_type(kind, start)
            await asyncio.to_thread(_sync, file.fileno())
        return size

    async def _try(self, path: Path) -> None:
        """Let a process with limits read the file through once. Refuse what it cannot read within them."""
        async with self._trying:
            process = multiprocessing.get_context("spawn").Process(
                target=read_through, args=(str(path), self._rule.unpacked, self._memory), daemon=True
            )
            await asyncio.to_thread(process.start)
            try:
                await asyncio.to_thread(process.join, TRIAL_SECONDS)
                code = process.exitcode
            finally:
                process.kill()
        if code != 0:
            raise bad_request(
                f"An upload must be a readable file of its kind with at most {self._rule.unpacked:,} bytes of "
                "content. Found a file that is larger or cannot be read. Check the file, or put it into a root.",
                422,
            )


def _require_type(kind: str, start: bytes) -> None:
    """Refuse a file whose first bytes are not those of its kind. Text has none of its own, so others' are refused."""
    expected = FIRST.get(kind)
    fits = start.startswith(expected) if expected else not start.startswith((*OTHERS, b"PAR1"))
    if not start or not fits:
        raise bad_request(
            f"An upload must be what its name says, {kind}. Found other content. Rename or convert the file.", 415
        )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _sync(file: int) -> None:
    os.fsync(file)
