"""The container of a release file: a zip of JSON and NumPy arrays, each with its hash, and perhaps a signature.

    manifest.json     format, version, and the SHA-256 and size of every other member
    signature.json    the owner's Ed25519 signature of the manifest's bytes; only in a signed file
    document.json     everything but large arrays; an array in its place is {"kind": "member", "name": "arrays/0.npy"}
    arrays/0.npy …    large arrays, of booleans, 64-bit integers or floats

A file is written completely or not at all, and the same contents give the same bytes. A file from a stranger is read
within a limit on memory: sizes are checked before anything is unpacked, names and types are those above and no others,
nothing is unpickled, and every flaw raises ``InvalidRelease``.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import math
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hedgerow._checks import require_folder
from hedgerow._json import Json, kind_of, parse, write_ordered
from hedgerow._memory import format_bytes
from hedgerow.errors import HedgerowError, InvalidRelease
from hedgerow.release_file.signing import PrivateKey, PublicKey, public_key, sign, verify
from hedgerow.serialize.values import DTYPES, read_array, write_array

FORMAT, VERSION = "hedgerow-release", 1
MANIFEST, SIGNATURE, DOCUMENT = "manifest.json", "signature.json", "document.json"
ARRAY = re.compile(r"arrays/(0|[1-9][0-9]{0,5})\.npy")
LARGE = 1024  # an array of at least this many items is a member of its own
LONGEST_HEADER = 256  # most bytes in the header of an array
MOST_MEMBERS = 100_000
DEEPEST = 60  # most levels of lists and objects within one another
LIMIT = 2**30  # default limit on the memory that reading may take, in bytes
COPIES = 5  # of the unpacked members at the peak: bytes, text, values, and the arrays made of them
ENTRY = 1_000  # bytes of memory per member in the directory of a zip
ENTRY_MARK = b"PK\x01\x02"  # how each entry of the directory begins
MARKS = {b"{": 512, b"[": 144, b",": 80, b":": 80, b'"': 60}  # bytes of memory that parsing takes, by mark of JSON
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the time of every member, so that equal contents are equal files
TOKENS = re.compile(r'"(?:[^"\\]++|\\[\s\S])*+"|[\[{]|[\]}]')  # a text, or where a list or an object begins or ends
NPY = {"|b1": "bool", "<i8": "int64", "<f8": "float64"}


@dataclass(frozen=True)
class Contents:
    """The contents of a release file.

    ``document`` has every array in its place. ``digest`` is the hash of the manifest, by which a file is withdrawn.
    ``signer`` is the key that signed the file, if one did and it was asked for.
    """

    document: dict[str, Json]
    digest: str
    signer: str | None


# Writing


def pack(document: dict[str, Json], key: PrivateKey | None = None) -> bytes:
    """Return the bytes of a release file with this document."""
    arrays: list[NDArray[Any]] = []
    members = {DOCUMENT: _compact(_without_arrays(document, arrays, {}))}
    members |= {f"arrays/{i}.npy": _npy(array) for i, array in enumerate(arrays)}
    listed = {name: {"bytes": len(data), "sha256": _hash(data)} for name, data in members.items()}
    manifest = _compact({"format": FORMAT, "version": VERSION, "members": listed})
    members = {MANIFEST: manifest, **({} if key is None else {SIGNATURE: _compact(sign(manifest, key))}), **members}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as file:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(entry, data)
    return buffer.getvalue()


def save(data: bytes, path: str | Path) -> Path:
    """Write bytes to a path completely or not at all: first beside it, then in its place."""
    target = require_folder("The path of a release file", path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
    return target


def _without_arrays(record: Json, arrays: list[NDArray[Any]], places: dict[str, int]) -> Json:
    """Return the record with a reference in place of each large array, which is added to ``arrays`` once."""
    if kind_of(record) == "array":
        array = read_array(record)
        if array.size < LARGE:
            return record
        content = f"{record['dtype']} {record['shape']} {_hash(record['data'].encode())}"
        if content not in places:
            places[content] = len(arrays)
            arrays.append(array)
        return {"kind": "member", "name": f"arrays/{places[content]}.npy"}
    if isinstance(record, dict):
        return {name: _without_arrays(part, arrays, places) for name, part in record.items()}
    if isinstance(record, list):
        return [_without_arrays(part, arrays, places) for part in record]
    return record


def _compact(record: Json) -> bytes:
    """Return the JSON text of a record, with fields in their order."""
    return write_ordered(record).encode()


def _npy(array: NDArray[Any]) -> bytes:
    """Return an array as an .npy file of version 1.0, in C order."""
    dtype = next(name for name, kind in NPY.items() if array.dtype == DTYPES[kind])
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {array.shape}, }}"
    padding = -(10 + len(header) + 1) % 64
    head = header.encode("ascii") + b" " * padding + b"\n"
    plain = np.ascontiguousarray(array, dtype=np.dtype(dtype))
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + plain.tobytes()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# Reading


@contextlib.contextmanager
def one_error() -> Iterator[None]:
    """Turn every failure of reading into ``InvalidRelease``, whose message quotes nothing of the file."""
    try:
        yield
    except InvalidRelease:
        raise
    except HedgerowError as error:
        raise InvalidRelease(f"A release file must be as it was published. Found a flaw: {error}") from None
    except RecursionError:
        raise InvalidRelease(
            "A release file must be as it was published. Found records that are nested too deep. Fetch it again."
        ) from None
    except (Exception, MemoryError) as error:
        raise InvalidRelease(
            f"A release file must be as it was published. Found one that cannot be read ({type(error).__name__}). "
            "Fetch it again."
        ) from None


def unpack(data: bytes, limit: int = LIMIT, key: PublicKey | None = None) -> Contents:
    """Return the contents of a release file, after every check of its container.

    ``limit`` is the most memory that reading may take, in bytes. With ``key``, the file must be signed by it.
    """
    owner = None if key is None else public_key(key)
    with one_error():
        if len(data) > limit:
            _refuse(f"at most {format_bytes(limit)}", format_bytes(len(data)), "Raise limit= if you trust its source")
        if data.count(ENTRY_MARK) * ENTRY > limit:  # before the directory is read
            _refuse("of a manifest, a document and arrays", "too many members", "Fetch it again")
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            sizes = _require_members(file, limit)
            manifest = _member(file, MANIFEST, sizes)
            listed = _require_manifest(_parse(manifest, limit), sizes)
            signer = None
            if owner is not None:
                if SIGNATURE not in sizes:
                    _refuse("signed", "no signature", "Ask the owner for a signed file, or leave key out")
                signer = verify(manifest, _parse(_member(file, SIGNATURE, sizes), limit), owner)
            parts = {}
            for name, (size, digest) in listed.items():
                parts[name] = _member(file, name, sizes)
                if len(parts[name]) != size or _hash(parts[name]) != digest:
                    _refuse("of members with the hashes of its manifest", "another member", "Fetch it again")
        arrays = {name: _array(part) for name, part in parts.items() if name != DOCUMENT}
        document = _parse(parts[DOCUMENT], limit)
        if not isinstance(document, dict):
            _refuse("a zip with an object as its document", "something else", "Fetch it again")
        used: set[str] = set()
        document = _with_arrays(document, arrays, used, limit)
        if used != set(arrays):
            _refuse("without arrays that nothing refers to", "such an array", "Fetch it again")
        return Contents(document, _hash(manifest), signer)


def _require_members(file: zipfile.ZipFile, limit: int) -> dict[str, int]:
    """Check the directory of a zip before anything is unpacked; return the size of every member."""
    sizes: dict[str, int] = {}
    for entry in file.infolist():
        if entry.filename not in (MANIFEST, SIGNATURE, DOCUMENT) and not ARRAY.fullmatch(entry.filename):
            _refuse("of a manifest, a document and arrays", "another member", "Fetch it again")
        if entry.filename in sizes or len(sizes) == MOST_MEMBERS:
            _refuse("of different members", "one twice, or too many", "Fetch it again")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 0x1:
            _refuse("stored or deflated", "another compression, or encryption", "Fetch it again")
        sizes[entry.filename] = entry.file_size
    if not {MANIFEST, DOCUMENT} <= set(sizes):
        _refuse("of a manifest and a document", "none of them", "Check that it is a .hedgerow file")
    if sum(sizes.values()) * COPIES > limit:
        _refuse(
            f"at most {format_bytes(limit // COPIES)} once unpacked", "more", "Raise limit= if you trust its source"
        )
    return sizes


def _member(file: zipfile.ZipFile, name: str, sizes: dict[str, int]) -> bytes:
    """Unpack one member: no more bytes than its entry declares, whatever the compressed data say."""
    with file.open(name) as member:
        data = member.read(sizes[name])
        if len(data) != sizes[name] or member.read(1):
            _refuse("of members of their declared size", "another size", "Fetch it again")
    return data


def _require_manifest(manifest: Json, sizes: dict[str, int]) -> dict[str, tuple[int, str]]:
    """Check the manifest against the members; return size and hash of each."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        _refuse(f"of the format {FORMAT}", "another", "Check that it is a .hedgerow file")
    if type(manifest.get("version")) is not int or manifest["version"] != VERSION:
        _refuse(f"of version {VERSION}", "another version", "Read it with the hedgerow that wrote it")
    members = manifest.get("members")
    if set(manifest) != {"format", "version", "members"} or not isinstance(members, dict):
        _refuse("of a manifest that lists its members", "another manifest", "Fetch it again")
    found: dict[str, tuple[int, str]] = {}
    for name, about in members.items():
        if not isinstance(about, dict) or set(about) != {"bytes", "sha256"} or type(about["bytes"]) is not int:
            _refuse("of members with a size and a hash", "another manifest", "Fetch it again")
        found[name] = about["bytes"], str(about["sha256"])
    if set(found) != set(sizes) - {MANIFEST, SIGNATURE}:
        _refuse("of the members that its manifest lists", "others", "Fetch it again")
    return found


def _parse(data: bytes, limit: int) -> Json:
    """Parse JSON strictly: no repeated name, no number that is not finite, not too deep, and within the limit."""
    if COPIES * len(data) + sum(size * data.count(mark) for mark, size in MARKS.items()) > limit:
        _refuse(f"of records of at most {format_bytes(limit)}", "more", "Raise limit= if you trust its source")
    text = data.decode("utf-8")
    _require_depth(text)
    record = parse(text, distinct=True)
    if not _is_finite(record):
        _refuse("of finite numbers", "another", "Fetch it again")
    return record


def _is_finite(record: Json) -> bool:
    """Return True if every number of a record is finite; JSON has no others, but Python reads them."""
    if isinstance(record, dict):
        return all(map(_is_finite, record.values()))
    if isinstance(record, list):
        return all(map(_is_finite, record))
    return not isinstance(record, float) or math.isfinite(record)


def _require_depth(text: str) -> None:
    """Refuse a text whose lists and objects are nested too deep, before it is parsed."""
    depth = 0
    for token in TOKENS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEEPEST:
            _refuse(f"of records nested at most {DEEPEST} deep", "deeper ones", "Fetch it again")


def _array(data: bytes) -> NDArray[Any]:
    """Read an .npy file of exactly the form that ``_npy`` writes.

    Its size is that of its data, not what it declares.
    """
    length = int.from_bytes(data[8:10], "little")
    if data[:8] != b"\x93NUMPY\x01\x00" or length > LONGEST_HEADER or len(data) < 10 + length:
        _refuse("of arrays in NumPy's format 1.0", "another form", "Fetch it again")
    header = ast.literal_eval(data[10 : 10 + length].decode("ascii").strip())
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        _refuse("of arrays in NumPy's format 1.0", "another header", "Fetch it again")
    dtype, shape = header["descr"], header["shape"]
    plain = isinstance(shape, tuple) and all(type(side) is int and side >= 0 for side in shape)
    if header["fortran_order"] is not False or dtype not in NPY or not plain:
        _refuse("of arrays of booleans, 64-bit integers or floats", "others", "Fetch it again")
    if math.prod(shape) * np.dtype(dtype).itemsize != len(data) - 10 - length:
        _refuse("of arrays with as many items as their shape has", "more or fewer", "Fetch it again")
    if dtype == "|b1" and set(data[10 + length :]) - {0, 1}:
        _refuse("of booleans that are 0 or 1", "others", "Fetch it again")
    return np.frombuffer(data, np.dtype(dtype), offset=10 + length).reshape(shape)


def _with_arrays(record: Json, arrays: dict[str, NDArray[Any]], used: set[str], limit: int) -> Json:
    """Return the record with each array in the place of its reference, each array at most a few times."""
    placed = 0

    def filled(record: Json) -> Json:
        """Return a record with its references to arrays replaced by the arrays."""
        nonlocal placed
        if kind_of(record) == "member":
            name = record.get("name")
            if set(record) != {"kind", "name"} or not isinstance(name, str) or name not in arrays:
                _refuse("of references to its arrays", "another", "Fetch it again")
            used.add(name)
            placed += arrays[name].nbytes
            if placed * COPIES > limit:
                _refuse(
                    f"of arrays of at most {format_bytes(limit // COPIES)}",
                    "more",
                    "Raise limit= if you trust its source",
                )
            return write_array(arrays[name])
        if isinstance(record, dict):
            return {name: filled(part) for name, part in record.items()}
        if isinstance(record, list):
            return [filled(part) for part in record]
        return record

    return filled(record)


def _refuse(wanted: str, found: str, way_out: str) -> NoReturn:
    raise InvalidRelease(f"A release file must be {wanted}. Found {found}. {way_out}.")
