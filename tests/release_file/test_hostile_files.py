"""Hostile files: one class of error, memory within the caller's limit, and no code is executed."""

from __future__ import annotations

import copy
import functools
import json
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import LIMIT, fuzzed, members, resealed, zipped
from questions_at_random import REPLACE, convex, matrix, mwem, small_file

import hedgerow as hr
from hedgerow.release_file import container
from hedgerow.release_file.container import pack, unpack
from hedgerow.serialize.values import read_array, write_array


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


def with_nan(record: dict[str, Any]) -> dict[str, Any]:
    """An array of the same shape, whose last number is NaN."""
    array = read_array(record).copy()
    array.reshape(-1)[-1] = np.nan
    return write_array(array)


def another_kind_of_block(document: dict[str, Any]) -> None:
    """A second block, whose budget adds up ε where that of the first adds up ρ."""
    second = copy.deepcopy(document["blocks"][0])
    second |= {"name": "2", "budget": second["budget"] | {"delta": 0.0}}
    document["blocks"].append(second)


def not_finite(parameters: str) -> bytes:
    """The small file, whose arrays of this name are of the right shape, and not finite."""

    def change(document: dict[str, Any]) -> None:
        given = learned(document)[parameters]
        learned(document)[parameters] = [*map(with_nan, given)] if isinstance(given, list) else with_nan(given)

    return with_document(change)


def another_digit() -> bytes:
    """The small file, in whose document one digit of the budget is another: as long, as well-formed, and not what was signed for."""
    text = members(small_file())[container.DOCUMENT]
    place = text.index(b'"epsilon":') + len(b'"epsilon":')
    digit = b"2" if text[place : place + 1] != b"2" else b"3"
    return zipped(members(small_file()) | {container.DOCUMENT: text[:place] + digit + text[place + 1 :]})


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
    "a document as long, with another digit": another_digit,
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
    "parameters of the right shape that are not finite": lambda: not_finite("theta"),
    "priors of the right shape that are not finite": lambda: not_finite("priors"),
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
    "blocks of two kinds of budget": lambda: with_document(another_kind_of_block),
    "another field": lambda: with_document(changed(("code",), "print()")),
    "a number that is too large": lambda: with_document(changed(("blocks", 0, "spent"), 1e300)),
    "a budget that is too large": lambda: with_document(changed(("blocks", 0, "budget", "epsilon"), 1e300)),
    "a probability above 1": lambda: with_document(changed(("blocks", 0, "beta"), 1.5)),
    "a limit of a certificate twice": lambda: with_document(
        lambda d: d["blocks"][0]["public"]["certified"]["stated"].append(
            d["blocks"][0]["public"]["certified"]["stated"][0]
        )
    ),
    "a size of a certificate without a bound": lambda: with_document(
        lambda d: d["blocks"][0]["public"]["certified"]["anything"].clear()
    ),
    "an unknown profile": lambda: with_document(changed((*PUBLIC, "profile"), "magic")),
}  # fmt: skip


OFFLINE_FLAWS: dict[str, tuple[Any, Callable[[dict[str, Any]], Any]]] = {
    "a residual is missing": (matrix, lambda public: public["measurements"].pop(0)),
    "a residual is there twice": (matrix, lambda public: public["measurements"].insert(1, public["measurements"][0])),
    "a table that no residuals cover": (matrix, lambda public: public["tables"].append(["age", "region"])),
    "a table of too many attributes": (matrix, lambda public: public["tables"].append(["age"] * 40)),
    "a residual that is none": (matrix, lambda public: public["measurements"][0].update(residual=False)),
    "another number of rows": (matrix, lambda public: public.update(rows=public["rows"] + 1)),
    "no workload": (matrix, lambda public: public.update(tables=[], queries=[])),
    "bars that always fail": (matrix, lambda public: public.update(beta=1.0)),
    "parameters of another size": (
        convex,
        lambda public: public["losses"][0].__setitem__(1, write_array(np.zeros(7))),
    ),
    "parameters that are not finite": (
        convex,
        lambda public: public["losses"][0].__setitem__(1, with_nan(public["losses"][0][1])),
    ),
    "a negative promise": (mwem, lambda public: public.update(error=-1.0)),
}


@functools.cache
def offline_document(opened: Any) -> dict[str, Any]:
    budget = hr.Budget(100.0, 1e-2) if opened is convex else REPLACE
    with tempfile.TemporaryDirectory() as folder:
        return unpack(opened(budget).publish(Path(folder) / "people.hedgerow").read_bytes()).document


@pytest.mark.parametrize("flaw", OFFLINE_FLAWS)
def test_a_flaw_of_an_offline_release_is_refused_by_one_error(flaw) -> None:
    opened, change = OFFLINE_FLAWS[flaw]
    document = copy.deepcopy(offline_document(opened))
    hr.load(pack(document), limit=LIMIT)
    change(document["blocks"][0]["public"])
    with pytest.raises(hr.InvalidRelease, match=r"^A release file must "):
        hr.load(pack(document), limit=LIMIT)


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


def most_memory(data: bytes, limit: int) -> int:
    """The most memory that refusing a file takes."""
    tracemalloc.start()
    with pytest.raises(hr.InvalidRelease, match=r"^A release file must "):
        hr.load(data, limit=limit)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("value", [b"[]", b"{}", b"0.5", b'"ab"', b'{"a":0}'])
def test_many_small_values_are_refused_before_they_take_more_memory_than_the_limit(value) -> None:
    """A value of two characters takes some fifty bytes once it is parsed."""
    text = b'{"a":[' + (value + b",") * 400_000 + b"0]}"
    assert most_memory(resealed({container.DOCUMENT: text}), 2**24) < 2**24


def test_a_directory_of_many_members_is_refused_before_it_is_read() -> None:
    entries = b"".join(
        container.ENTRY_MARK + bytes(24) + (9).to_bytes(2, "little") + bytes(16) + f"{i:09}".encode()
        for i in range(100_000)
    )
    end = b"PK\x05\x06" + bytes(8) + len(entries).to_bytes(4, "little") + bytes(6)
    assert most_memory(entries + end, 2**24) < 2**24


def test_a_file_that_fits_is_read_within_the_limit() -> None:
    """The least limit under which the file is read is at least what reading it takes."""
    array = np.arange(2**16) / 7
    big = with_document(lambda d: d["statement"].update(extra=[write_array(array), write_array(array + 1)]))
    low, high = len(big), 2**26
    while high - low > 2**12:
        middle = (low + high) // 2
        try:
            unpack(big, middle)
            high = middle
        except hr.InvalidRelease:
            low = middle
    tracemalloc.start()
    unpack(big, high)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < high


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


def test_200_mutated_files_are_read_and_asked_or_refused_by_one_error() -> None:
    found = fuzzed(200, seed=1, asked_of=3)
    assert found.refused > 120 and found.read > 12 and found.asked > 4  # some mutations are harmless
    assert found.by_kind["container"][0] > 40 and found.by_kind["part"][1] > 8
