"""Read and ask randomly mutated files: one class of error, memory within the limit, and no code is executed.

`make fuzz-release` reads 20,000 of them and writes docs/fuzz-release.json. `test_hostile_files` reads some hundreds.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import io
import json
import sys
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from questions_at_random import LOGISTIC, REPLACE, convex, matrix, mwem, small_file, theory, with_losses

import hedgerow as hr
from hedgerow.release_file import container
from hedgerow.release_file.container import pack, unpack

LIMIT = 2**26
MANY, SEED = 20_000, 2
SCALARS = [None, True, -1, 0, 1, 2**40, -(2**63), 10**30, 0.5, -3.7, 1e308, "", "a", "arrays/0.npy", [], {}, [[]], {"kind": "float", "text": "nan"}]  # fmt: skip
NUMBERS = [0, -0.0, 1, -1, 3, 0.5, 1 - 1e-16, 5e-324, 1e-300, 1e-12, 1e12, 2**53, 2**63, 10**400, 1e300, 1.7e308, -1e300]  # fmt: skip
FLOATS = [np.nan, np.inf, -np.inf, 0.0, 1.7e308, -1e300, 1e200, 5e-324, 700.0, -700.0]
SHAPES: list[list[int]] = [[2**40], [1] * 70, [0], [-1], [2**62, 2**62], []]
TEXTS = ["", "\u202e\u2066", "../../etc/passwd", "\x00", "a" * 10_000, "NaN", "__class__", "{0}", "<script>", "data", "measured", "add-remove"]  # fmt: skip
NAMES = ["../x", "/etc/passwd", "arrays/../document.json", "arrays/0.npy/", "ARRAYS/0.npy", "arrays/00.npy", "document.json ", "manifest.json\x00", "C:\\x", "arrays/0.npy"]  # fmt: skip
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


# Mutations of the document that know its parts


def nodes(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every part of a record, with the way to it."""
    yield path, record
    if isinstance(record, dict | list):
        for step, part in record.items() if isinstance(record, dict) else enumerate(record):
            yield from nodes(part, (*path, step))


def put(record: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        record = record[step]
    record[path[-1]] = value


def with_numbers(rng: np.random.Generator, document: Any, _: list[Any]) -> None:
    """One or two numbers are hostile ones."""
    places = [path for path, part in nodes(document) if type(part) in (int, float)]
    for _ in range(rng.integers(1, 3)):
        put(document, places[rng.integers(len(places))], NUMBERS[rng.integers(len(NUMBERS))])


def with_arrays(rng: np.random.Generator, document: Any, _: list[Any]) -> None:
    """An array has other entries, another shape or another type."""
    found = [part for _, part in nodes(document) if isinstance(part, dict) and part.get("kind") == "array"]
    record = found[rng.integers(len(found))]
    array = np.frombuffer(base64.b64decode(record["data"]), container.DTYPES[record["dtype"]]).copy()
    match rng.integers(6):
        case 0 if array.dtype.kind == "f" and array.size:
            array[rng.integers(array.size)] = FLOATS[rng.integers(len(FLOATS))]
        case 1 if array.dtype.kind == "f":
            array[:] = FLOATS[rng.integers(3, len(FLOATS))]
        case 0 | 1 if array.dtype.kind == "i":
            array[:] = [-1, 0, 2**62, 10**6][rng.integers(4)]
        case 2:
            record["shape"] = [int(side) for side in rng.permutation(record["shape"])]
        case 3:
            record["shape"] = copy.deepcopy(SHAPES[rng.integers(len(SHAPES))])
        case 4:
            record["dtype"] = ["float64", "int64", "bool", "object", "float32"][rng.integers(5)]
        case _:
            array = array[rng.permutation(array.size)]
    record["data"] = base64.b64encode(array.tobytes()).decode()


def with_graft(rng: np.random.Generator, document: Any, others: list[Any]) -> None:
    """A part is the part of another file that has its name."""
    spare: dict[str, list[Any]] = {}
    for path, part in nodes(others[rng.integers(len(others))]):
        if path and isinstance(path[-1], str):
            spare.setdefault(path[-1], []).append(part)
    places = [path for path, _ in nodes(document) if path and path[-1] in spare]
    path = places[rng.integers(len(places))]
    put(document, path, copy.deepcopy(spare[path[-1]][rng.integers(len(spare[path[-1]]))]))


def with_lists(rng: np.random.Generator, document: Any, _: list[Any]) -> None:
    """A list is the other way round, shorter, longer or much longer."""
    found = [part for _, part in nodes(document) if isinstance(part, list) and part]
    items = found[rng.integers(len(found))]
    match rng.integers(4):
        case 0:
            items.reverse()
        case 1:
            items.append(copy.deepcopy(items[rng.integers(len(items))]))
        case 2:
            items.pop(int(rng.integers(len(items))))
        case _:
            items *= 300


def with_texts(rng: np.random.Generator, document: Any, _: list[Any]) -> None:
    """A text is a hostile one."""
    places = [path for path, part in nodes(document) if isinstance(part, str)]
    put(document, places[rng.integers(len(places))], TEXTS[rng.integers(len(TEXTS))])


PARTS: list[Callable[[np.random.Generator, Any, list[Any]], None]] = [with_numbers, with_arrays, with_graft, with_lists, with_texts]  # fmt: skip


def mutated_part(rng: np.random.Generator, original: bytes, documents: list[Any]) -> bytes:
    """A file whose hashes fit, with valid JSON, in which a part that is known by its type is hostile."""
    document = copy.deepcopy(unpack(original).document)
    PARTS[rng.integers(len(PARTS))](rng, document, documents)
    try:
        return pack(document)
    except (hr.InvalidInput, ValueError, TypeError, KeyError):  # it cannot even be written
        return resealed({container.DOCUMENT: json.dumps(document).encode()})


def mutated_container(rng: np.random.Generator, original: bytes) -> bytes:
    """A zip whose members have hostile names, sizes, numbers or texts."""
    parts = members(original)
    text, name = parts[container.DOCUMENT], NAMES[rng.integers(len(NAMES))]
    opening, closing = [(b"[", b"]"), (b'{"a":', b"}")][rng.integers(2)]
    many = int(rng.integers(1, 200_000))
    match rng.integers(10):
        case 0:  # a name that leads elsewhere, in the directory alone or in the manifest as well
            return (zipped, resealed)[rng.integers(2)]({**parts, name: b"x" * many})
        case 1:  # one member twice, with other contents
            again = list(parts)[rng.integers(len(parts))]
            return zipped([*parts.items(), (again, parts[again] + b" ")])
        case 2:  # other sizes in the headers
            data, at = bytearray(original), original.find(container.ENTRY_MARK)
            data[at + 20 : at + 28] = rng.bytes(8)
            return bytes(data)
        case 3:  # zeros, which are short when they are deflated
            return resealed({container.DOCUMENT: text + b" " * 2**24})
        case 4:
            return resealed({container.DOCUMENT: opening * many + b"1" + closing * many})
        case 5:  # many small values
            return resealed({container.DOCUMENT: b'{"a":[' + [b"[],", b"{},", b"0.5,", b'"ab",'][rng.integers(4)] * many + b"0]}"})  # fmt: skip
        case 6:  # a number of many digits
            return resealed({container.DOCUMENT: b'{"a":' + b"9" * many + b"}"})
        case 7:  # a field twice
            at = text.index(b'"universe"')
            return resealed({container.DOCUMENT: text[:at] + b'"universe":0,' + text[at:]})
        case 8:  # many members
            return zipped({**parts, **{f"arrays/{i}.npy": b"" for i in range(min(many, 3_000))}})
        case _:  # a directory of entries without members
            entry = container.ENTRY_MARK + bytes(42)
            return original + entry * (many // 10)


def originals() -> list[bytes]:
    """Files of every profile: practical sessions, one of the theory profile, one with two blocks, offline releases."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "people.hedgerow"
        found = [small_file(), with_blocks().publish(path, answers="all").read_bytes()]
        for opened, budget in (
            (theory, REPLACE), (with_losses, REPLACE), (mwem, REPLACE), (matrix, REPLACE), (convex, hr.Budget(100.0, 1e-2)),
        ):  # fmt: skip
            session = opened(budget)
            session.ask(hr.count(sex="F"))
            found.append(session.publish(path, answers="all").read_bytes())
    return found


def used(release: hr.Release) -> None:
    """Ask a release everything that its reader may ask: it answers, or refuses with a sentence of the library."""
    names = list(release.universe.names)
    uses: list[Callable[[], object]] = [
        lambda: release.ask(hr.marginal(names[0], names[-1])) if len(names) > 1 else None,
        lambda: release.ask_all([hr.marginal(name) for name in names], progress=False),
        lambda: [release.ask(answer.query) for answer in release.recorded],
        lambda: str(release.describe()),
        lambda: release.synthetic(5, seed=1),
        lambda: release.ask(LOGISTIC),
        lambda: (str(release), str(release.certificate), release.report().html, release.statement().markdown),
        lambda: [release.select_blocks(name).ask(hr.count({})) for name in release.blocks],
    ]
    for use in uses:
        with contextlib.suppress(hr.HedgerowError):
            use()


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
    """The numbers of mutated files that were refused, read and asked, and the most that one of them took."""

    files: int
    refused: int
    read: int
    asked: int
    by_kind: dict[str, list[int]]
    limit: int
    most_memory: int
    most_cpu_seconds: float


def is_installed(library: object) -> bool:
    """Return True for a library that NumPy or a package beside it brought, which is loaded when it is first needed."""
    return Path(np.__file__).parents[1] in Path(str(library)).parents


def fuzzed(many: int, seed: int, asked_of: int = 1) -> Fuzzed:
    """Read mutated files within the limit, and ask one in ``asked_of`` of those that are read.

    Anything but ``InvalidRelease`` when it is read, a fault or a warning when it is asked, too much memory, or something
    that runs is an error.
    """
    rng, files = np.random.default_rng(seed), originals()
    documents = [unpack(data).document for data in files]
    kinds: dict[str, Callable[[bytes], bytes]] = {
        "bytes": lambda original: mutated_bytes(rng, original),
        "record": lambda original: mutated_record(rng, original),
        "part": lambda original: mutated_part(rng, original, documents),
        "container": lambda original: mutated_container(rng, original),
    }
    read, refused, asked = Counter[str](), Counter[str](), 0
    highest, longest, ran, watching = 0, 0.0, [], False

    def watch(event: str, given: Any) -> None:
        if watching and event in RUNNING and not (event == "ctypes.dlopen" and is_installed(given[0])):
            ran.append((event, given))

    for data in files:
        used(hr.load(data, limit=LIMIT))  # so that all modules are loaded before anything is watched
    sys.addaudithook(watch)
    for i in range(many):
        kind = list(kinds)[i % len(kinds)]
        data = kinds[kind](files[int(rng.integers(len(files)))])
        start, release = time.process_time(), None
        tracemalloc.start()
        watching = True
        try:
            release = hr.load(data, limit=LIMIT)
            read[kind] += 1
        except hr.InvalidRelease:
            refused[kind] += 1
        watching = False
        highest = max(highest, tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert highest < LIMIT, kind
        if release is not None and sum(read.values()) % asked_of == 0:
            asked, watching = asked + 1, True
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                used(release)
            watching = False
        longest = max(longest, time.process_time() - start)
        assert not ran, ran
    counted = {kind: [refused[kind], read[kind]] for kind in kinds}
    return Fuzzed(many, refused.total(), read.total(), asked, counted, LIMIT, highest, round(longest, 1))


if __name__ == "__main__":
    figures = asdict(fuzzed(MANY, SEED, asked_of=5))
    Path(sys.argv[1]).write_text(json.dumps(figures, indent=1) + "\n")
    print(figures)
