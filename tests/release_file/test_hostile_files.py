"""A file from a stranger: one class of error, memory within the caller's limit, and nothing that runs."""

from __future__ import annotations

import copy
import io
import json
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from questions_at_random import small_file

import hedgerow as hr
from hedgerow.release_file import container
from hedgerow.release_file.container import pack, unpack

LIMIT = 2**26
SCALARS = [None, True, -1, 0, 1, 2**40, -(2**63), 10**30, 0.5, -3.7, 1e308, "", "a", "arrays/0.npy", [], {}, [[]], {"kind": "float", "text": "nan"}]  # fmt: skip


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


def npy(array: Any, header: str) -> bytes:
    head = header.encode() + b" " * (-(11 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + np.asarray(array).tobytes()


def with_array(data: bytes) -> bytes:
    """The small file with one array as its member, which its size alone would not make one."""
    return resealed(members(small_file()) | {"arrays/0.npy": data})


def with_document(change: Callable[[dict[str, Any]], Any]) -> bytes:
    document = copy.deepcopy(unpack(small_file()).document)
    found = change(document)
    return pack(document if found is None else found)


def learned(document: dict[str, Any]) -> dict[str, Any]:
    return document["blocks"][0]["public"]["learned"]


def changed(path: tuple[Any, ...], value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


GOOD_HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"
PUBLIC = ("blocks", 0, "public")
ARRAY = {"kind": "array", "dtype": "float64", "shape": [1], "data": "AAAAAAAA+H8="}  # of one NaN
FLAWS: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "no zip": lambda: b"\x80\x04cposix\nsystem\n",
    "half of it": lambda: small_file()[: len(small_file()) // 2],
    "a pickle as an array": lambda: with_array(b"\x80\x04cposix\nsystem\n(S'true'\ntR."),
    "an array of objects": lambda: with_array(npy([1.0], GOOD_HEADER.replace("<f8", "|O"))),
    "a huge header": lambda: with_array(npy([1.0, 2.0], GOOD_HEADER + " " * 60_000)),
    "a header that is code": lambda: with_array(npy([1.0, 2.0], "__import__('os').abort()")),
    "a huge shape": lambda: with_array(npy([1.0, 2.0], GOOD_HEADER.replace("(2,)", "(2**60,)"))),
    "a shape of trillions": lambda: with_array(npy([1.0, 2.0], GOOD_HEADER.replace("(2,)", "(1099511627776,)"))),
    "fewer items than said": lambda: with_array(npy([1.0], GOOD_HEADER)),
    "a member twice": lambda: zipped([*members(small_file()).items(), *members(small_file()).items()]),
    "a path that leaves": lambda: zipped(members(small_file()) | {"../../etc/passwd": b"root"}),
    "an array that is not used": lambda: with_array(npy([1.0, 2.0], GOOD_HEADER)),
    "another compression": lambda: zipped(members(small_file()), zipfile.ZIP_LZMA),
    "a changed document": lambda: zipped(
        members(small_file()) | {container.DOCUMENT: members(small_file())[container.DOCUMENT] + b" "}
    ),
    "no manifest": lambda: zipped({container.DOCUMENT: b"{}"}),
    "a later version": lambda: zipped(
        members(small_file())
        | {container.MANIFEST: members(small_file())[container.MANIFEST].replace(b'"version":1', b'"version":2')}
    ),
    "deep lists": lambda: resealed({container.DOCUMENT: b"[" * 100_000 + b"]" * 100_000}),
    "an unfinished text": lambda: resealed({container.DOCUMENT: b'{"' + b"a\\" * 100_000}),
    "NaN as JSON": lambda: resealed({container.DOCUMENT: b'{"a": NaN}'}),
    "a float that is too large": lambda: resealed({container.DOCUMENT: b'{"a": 1e999}'}),
    "a name twice in JSON": lambda: resealed({container.DOCUMENT: b'{"a": 1, "a": 2}'}),
    "not UTF-8": lambda: resealed({container.DOCUMENT: b'{"a": "\xff"}'}),
    "NaN in the parameters": lambda: with_document(changed((*PUBLIC, "learned", "theta"), ARRAY)),
    "another table": lambda: with_document(lambda d: learned(d)["sets"].append(["b", "a"])),
    "an attribute that is not there": lambda: with_document(lambda d: learned(d)["sets"].append(["zip"])),
    "numbers without end": lambda: with_document(changed((*PUBLIC, "shares"), [10**15])),
    "a universe without end": lambda: with_document(
        changed(("universe", "attributes", 0, 1), {"kind": "Integers", "low": 0, "high": 2**52, "other": False})
    ),
    "too many rows": lambda: with_document(changed(("blocks", 0, "rows"), 2**60)),
    "no rows, where they are public": lambda: with_document(changed(("blocks", 0, "rows"), None)),
    "a negative cost": lambda: with_document(changed(("blocks", 0, "charges", 0, 3), -1.0)),
    "no block": lambda: with_document(changed(("blocks",), [])),
    "a block twice": lambda: with_document(lambda d: d["blocks"].append(d["blocks"][0])),
    "another field": lambda: with_document(changed(("code",), "print()")),
    "an unknown profile": lambda: with_document(changed((*PUBLIC, "profile"), "magic")),
}  # fmt: skip


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_refused_by_one_error(flaw) -> None:
    with pytest.raises(hr.InvalidRelease, match=r"^A release file must "):
        hr.load(FLAWS[flaw](), limit=LIMIT)


def test_the_small_file_itself_is_read() -> None:
    assert hr.load(small_file(), limit=LIMIT).ask(hr.count(a=1)).error is not None
    assert pack(unpack(small_file()).document) == small_file()


@pytest.mark.parametrize("member", [container.DOCUMENT, "arrays/0.npy", container.MANIFEST])
def test_a_bomb_is_refused_before_it_is_unpacked(member) -> None:
    zeros = b"\x00" * 2**28
    bomb = zipped(members(small_file()) | {member: zeros})
    assert len(bomb) < 2**20
    liar = bomb.replace((2**28).to_bytes(4, "little"), (100).to_bytes(4, "little"))  # says that it has 100 bytes
    del zeros
    for data in (bomb, liar):
        tracemalloc.start()
        with pytest.raises(hr.InvalidRelease):
            hr.load(data, limit=2**24)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 2**24


def test_an_array_that_is_referred_to_often_counts_as_often() -> None:
    array = npy(np.zeros(2**17), GOOD_HEADER.replace("(2,)", f"({2**17},)"))
    reference = {"kind": "member", "name": "arrays/0.npy"}
    data = resealed({container.DOCUMENT: json.dumps({"a": [reference] * 1000}).encode(), "arrays/0.npy": array})
    with pytest.raises(hr.InvalidRelease, match="limit"):
        unpack(data, 2**24)


def test_a_file_larger_than_the_limit_is_not_read(tmp_path) -> None:
    path = tmp_path / "people.hedgerow"
    path.write_bytes(small_file())
    with pytest.raises(hr.InvalidRelease, match="limit"):
        hr.load(path, limit=1_000)
    with pytest.raises(hr.InvalidRelease, match="exist"):
        hr.load(tmp_path / "nothing.hedgerow")


# Files mutated at random


def mutated_bytes(rng: np.random.Generator) -> bytes:
    """The small file with bytes changed, removed, repeated or cut off."""
    data = bytearray(small_file())
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


def mutated_record(rng: np.random.Generator) -> bytes:
    """A file whose hashes fit, with a part of its document replaced, removed, repeated or exchanged."""
    document: Any = copy.deepcopy(unpack(small_file()).document)
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


def fuzzed(many: int, seed: int) -> tuple[int, int]:
    """Read mutated files; return how many were refused, and how many were read."""
    rng = np.random.default_rng(seed)
    refused = 0
    for i in range(many):
        data = mutated_bytes(rng) if i % 2 else mutated_record(rng)
        tracemalloc.start()
        try:
            hr.load(data, limit=LIMIT)
        except hr.InvalidRelease:
            refused += 1
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < LIMIT
    return refused, many - refused


def test_500_mutated_files_are_read_or_refused_by_one_error() -> None:
    refused, read = fuzzed(500, seed=1)
    assert refused > 350 and read > 5  # some mutations are harmless, such as another name


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(2, 10))
def test_20_000_mutated_files_are_read_or_refused_by_one_error(seed) -> None:
    refused, _ = fuzzed(2_500, seed)
    assert refused > 1_500
