"""Read randomly mutated files: one class of error, memory within the limit, and no code is executed.

`make fuzz-release` reads 20,000 of them and writes docs/fuzz-release.json. `test_hostile_files` reads some hundreds.
"""

from __future__ import annotations

import copy
import io
import json
import sys
import tempfile
import tracemalloc
import warnings
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from questions_at_random import REPLACE, small_file, theory

import hedgerow as hr
from hedgerow.release_file import container
from hedgerow.release_file.container import pack, unpack

LIMIT = 2**26
MANY, SEED = 20_000, 2
SCALARS = [None, True, -1, 0, 1, 2**40, -(2**63), 10**30, 0.5, -3.7, 1e308, "", "a", "arrays/0.npy", [], {}, [[]], {"kind": "float", "text": "nan"}]  # fmt: skip
RUNNING = {"os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class", "socket.connect", "ctypes.dlopen", "os.remove", "os.rename"}  # fmt: skip


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(parts: list[tuple[str, bytes]] | dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as file:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, data in parts.items() if isinstance(parts, dict) else parts:
            file.writestr(name, data)
    return buffer.getvalue()


def resealed(parts: dict[str, bytes]) -> bytes:
    """A file of these members with a manifest that fits them."""
    others = {name: data for name, data in parts.items() if name != container.MANIFEST}
    listed = {name: {"bytes": len(data), "sha256": container._hash(data)} for name, data in others.items()}
    manifest = {"format": container.FORMAT, "version": container.VERSION, "members": listed}
    return zipped({container.MANIFEST: json.dumps(manifest).encode(), **others})


def mutated_bytes(rng: np.random.Generator, original: bytes) -> bytes:
    """The file with bytes changed, removed, repeated or cut off."""
    data = bytearray(original)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(data)))
        match rng.integers(5):
            case 0:
                data[at] = int(rng.integers(256))
            case 1:
                del data[at : at + int(rng.integers(1, 50))]
            case 2:
                data[at:at] = data[at : at + int(rng.integers(1, 50))]
            case 3:
                del data[max(at, 100) :]
            case _:
                data[at : at + 4] = rng.bytes(4)
    return bytes(data)


def mutated_record(rng: np.random.Generator, original: bytes) -> bytes:
    """A file whose hashes fit, with a part of its document replaced, removed, repeated or exchanged."""
    document: Any = copy.deepcopy(unpack(original).document)
    for _ in range(rng.integers(1, 3)):
        holder, place = document, None
        while isinstance(holder, dict | list) and holder:
            places = sorted(holder) if isinstance(holder, dict) else range(len(holder))
            place = places[int(rng.integers(len(places)))]
            if not isinstance(holder[place], dict | list) or not holder[place] or rng.random() < 0.15:
                break
            holder = holder[place]
        match rng.integers(5):
            case 0 | 1:
                holder[place] = copy.deepcopy(SCALARS[rng.integers(len(SCALARS))])
            case 2:
                del holder[place]
            case 3 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[place]))
            case 3:
                holder["more"] = holder[place]
            case _ if isinstance(holder[place], str) and holder[place]:
                at = int(rng.integers(len(holder[place])))
                holder[place] = holder[place][:at] + "A" + holder[place][at + 1 :]
            case _ if isinstance(holder[place], int | float):
                holder[place] = -holder[place] * 2
            case _:
                holder[place] = None
        if not isinstance(document, dict) or not document:
            break
    try:
        return pack(document)
    except (hr.InvalidInput, ValueError):  # it cannot even be written
        return resealed({container.DOCUMENT: json.dumps(document).encode()})


def originals() -> list[bytes]:
    """Files of every profile: a practical session, one of the theory profile, and one with two blocks."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = theory(REPLACE)
        first.ask(hr.count(sex="F"))
        found = [small_file(), first.publish(Path(folder) / "theory.hedgerow", answers="all").read_bytes()]
        blocks = with_blocks()
        found.append(blocks.publish(Path(folder) / "blocks.hedgerow", answers="all").read_bytes())
    return found


def with_blocks() -> hr.Session:
    universe = hr.Universe(a=hr.Integers(0, 3), b=hr.Flag())
    from hedgerow.data import HistogramSource

    counts = np.array([[900, 300], [200, 800], [400, 100], [50, 700]])
    session = hr.open(
        HistogramSource(universe, counts), universe=universe, budget=REPLACE, seed=1, guard=0.0, block="1"
    )
    session.append(HistogramSource(universe, counts[::-1]), block="2")
    session.ask(hr.count(a=1))
    return session


@dataclass(frozen=True)
class Fuzzed:
    """The numbers of mutated files that were refused and read, and the most memory that reading one took."""

    files: int
    refused: int
    read: int
    limit: int
    most_memory: int


def fuzzed(many: int, seed: int) -> Fuzzed:
    """Read mutated files within the limit; anything but ``InvalidRelease``, too much memory or something that runs is an error."""
    rng, files = np.random.default_rng(seed), originals()
    refused, highest, ran, watching = 0, 0, [], False

    def watch(event: str, _: Any) -> None:
        if watching and event in RUNNING:
            ran.append(event)

    for data in files:
        hr.load(data, limit=LIMIT).ask(hr.count({}))  # so that all modules are loaded before anything is watched
    sys.addaudithook(watch)
    for i in range(many):
        original = files[int(rng.integers(len(files)))]
        data = mutated_bytes(rng, original) if i % 2 else mutated_record(rng, original)
        tracemalloc.start()
        watching = True
        try:
            hr.load(data, limit=LIMIT)
        except hr.InvalidRelease:
            refused += 1
        watching = False
        highest = max(highest, tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert highest < LIMIT
        assert not ran, ran
    return Fuzzed(many, refused, many - refused, LIMIT, highest)


if __name__ == "__main__":
    figures = asdict(fuzzed(MANY, SEED))
    Path(sys.argv[1]).write_text(json.dumps(figures, indent=1) + "\n")
    print(figures)
