"""Read the records of a delimited text file so that no line changes how another line is read.

The dialect is declared, never guessed from the rows. A record is a line. A field that begins with the quote character
may contain delimiters and doubled quotes. It may also continue over the following lines, but only if the record that it
completes is well formed: every quote in a quoted field is doubled or closes the field, no quote stands in an unquoted
field, and there are as many fields as the header has. Otherwise a quote is a character like any other, and the record
ends with its line.

So a file that a CSV writer wrote is read exactly, and a line that no CSV writer would write is a record by itself
(docs/reading.md states the one exception).
"""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compile_lazily
from hedgerow.errors import InvalidInput

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
LONGEST_RECORD = 1 << 24  # bytes: the rest of a longer line is ignored, and a record of several lines is never longer
BLOCK = 1 << 23  # bytes read at once
RECORDS = 1 << 17  # records of one batch
SMALL = 1 << 24  # up to this many bytes are read with NumPy, if their quotes allow it, before loops are compiled
NEWLINE, RETURN = 10, 13
ABSENT = -1  # the length of a field that a short line does not have
MORE, MALFORMED = -2, -1  # results instead of a record's end: more bytes are needed, or the record is malformed
# Multi-byte encodings in which no byte of a character can be taken for a delimiter, a quote or a newline
EAST_ASIAN = ("gb2312", "gbk", "gb18030", "big5", "cp950", "shift_jis", "cp932", "euc_jp", "cp949")
# cp949 contains euc_kr except for its sequences of eight bytes, which could swallow a newline
DECODED_AS = {"euc_kr": "cp949"}
UNICODE = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")


@dataclass(frozen=True)
class Csv:
    """The dialect of a delimited text file. It is public and declared by the owner.

    Parameters
    ----------
    delimiter : str, optional
        One ASCII character. The default is a comma, and a tab for .tsv files.
    quote : str, optional
        One ASCII character, or None if fields are never quoted.
    encoding : str
        The encoding of the text. Bytes that are invalid in it are read as U+FFFD.
    columns : sequence of str, optional
        The names of the columns, for a file without a header line.
    multiline : bool
        False if every line is a record, even a line that ends within quotes.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or if the encoding cannot be read line by line.

    Examples
    --------
    >>> Csv(delimiter=";", encoding="latin-1").delimiter
    ';'
    """

    delimiter: str | None = None
    quote: str | None = '"'
    encoding: str = "utf-8"
    columns: Sequence[str] | None = None
    multiline: bool = True

    def __post_init__(self) -> None:
        for what, mark in (("delimiter", self.delimiter), ("quote", self.quote)):
            one = isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in "\r\n\0"
            if mark is not None and not one:
                raise InvalidInput(
                    f"The {what} must be one ASCII character that ends no line. Found {mark!r}. Give one, such as "
                    + ("a comma or a semicolon." if what == "delimiter" else "the double quote, or None.")
                )
        if self.quote is not None and self.quote == (self.delimiter or ","):
            raise InvalidInput(
                f"The delimiter and the quote must differ. Found {self.quote!r} for both. Change one of them."
            )
        if not _is_readable(self.encoding):
            raise InvalidInput(
                "The encoding must be UTF-8, UTF-16, UTF-32, one with one byte per character, or a common East Asian "
                f"one. Found {self.encoding!r}. Convert the file to UTF-8."
            )
        if self.columns is not None and (
            isinstance(self.columns, str) or not all(isinstance(name, str) for name in self.columns)
        ):
            raise InvalidInput(
                f"columns must be the names of the file's columns. Found {self.columns!r}. Give a list of texts."
            )


def _is_readable(encoding: Any) -> bool:
    """Return True if an invalid byte in one line cannot change how other lines are read."""
    try:
        name = _codec(encoding)
        if name in UNICODE or name == "utf-8-sig" or name in EAST_ASIAN:
            return True
        # In these a line could change the meaning of others, or spell a newline.
        if name.startswith("iso2022") or "escape" in name:
            return False
        decoded = bytes(range(256)).decode(name, "replace")
    except Exception:  # an unknown name, or a codec that is not for text
        return False
    return len(decoded) == 256 and decoded[:128] == bytes(range(128)).decode("ascii")


def _codec(encoding: str) -> str:
    """Return the name of the codec that decodes an encoding."""
    name = codecs.lookup(encoding).name
    return DECODED_AS.get(name, name)


class CsvFile:
    """A delimited file: the names of its columns, and its records in batches."""

    def __init__(self, path: Path, dialect: Csv) -> None:
        self._path, self._dialect = path, dialect
        tab = ".tsv" in (suffix.lower() for suffix in path.suffixes)
        self._delimiter = ord(dialect.delimiter or ("\t" if tab else ","))
        self._quote = -1 if dialect.quote is None else ord(dialect.quote)
        self.columns = self._header() if dialect.columns is None else list(dialect.columns)

    def _header(self) -> list[str]:
        """Read the names of the columns from the first line."""
        line = b""
        for block in self._blocks():
            line += block
            if b"\n" in block or len(line) > LONGEST_RECORD:
                break
        # A lone carriage return ends the header too: if all lines end that way, rows must not be taken for names.
        line = line.partition(b"\n")[0].partition(b"\r")[0][:LONGEST_RECORD]
        data = np.frombuffer(line + b"\n", np.uint8)
        width = line.count(bytes([self._delimiter])) + 1  # at most
        places, lengths = np.zeros((1, width), np.int64), np.full((1, width), ABSENT)
        read = cast(Any, _line).py_func  # compiling is not worth it for one line
        read(data, 0, len(line), self._delimiter, self._quote, np.arange(width), places[0], lengths[0])
        copied = [_gather_fields(data, places[:, i], lengths[:, i], self._quote, compile=False) for i in range(width)]
        fields = [field[0].as_py() for field in copied]
        return [field.decode("utf-8", "replace") for field in fields if field is not None]

    def batches(self, wanted: Sequence[int]) -> Iterator[list[Any]]:
        """Yield the wanted columns as Arrow arrays of bytes (UTF-8), some records at a time."""
        slots = np.full(max(wanted) + 1, -1)
        slots[list(wanted)] = np.arange(len(wanted))
        places, lengths = np.empty((RECORDS, len(wanted)), np.int64), np.empty((RECORDS, len(wanted)), np.int64)
        skipping, final, pending = self._dialect.columns is None, False, b""  # a header line is skipped
        blocks, seen = self._blocks(), 0
        while not final:
            block = next(blocks, None)
            final = block is None
            pending += block or b""
            seen += len(block or b"")
            data, start = np.frombuffer(pending or b"\n", np.uint8)[: len(pending)], 0
            while True:
                if skipping:
                    end = pending.find(b"\n", start)
                    skipping = end < 0
                    start = len(pending) if skipping else end + 1
                if skipping:
                    break
                plain = (
                    _plain_fields(data, start, final, self._delimiter, self._quote, wanted) if seen <= SMALL else None
                )
                if plain is not None:
                    firsts, sizes, start = plain
                    for first in range(0, firsts.shape[1], RECORDS):
                        some = slice(first, first + RECORDS)
                        fields = zip(firsts[:, some], sizes[:, some], strict=True)
                        yield [
                            _gather_fields(data, place, length, self._quote, compile=False) for place, length in fields
                        ]
                    break
                records, start, skipping = _records(
                    data, start, final, self._delimiter, self._quote, self._dialect.multiline,
                    len(self.columns), slots, places, lengths,
                )  # fmt: skip
                if records:
                    fields = zip(places[:records].T, lengths[:records].T, strict=True)
                    yield [_gather_fields(data, place, length, self._quote, compile=True) for place, length in fields]
                if records < RECORDS and not skipping:
                    break
            pending = pending[start:]

    def _blocks(self) -> Iterator[bytes]:
        """Yield the bytes of the file, converted to UTF-8 and without a byte order mark."""
        encoding = _codec(self._dialect.encoding)
        unicode = encoding.startswith("utf-8")
        decoder = None if unicode else codecs.getincrementaldecoder(encoding)("replace")
        beginning = True
        with _open_file(self._path) as file:
            while True:
                block = file.read(BLOCK)
                end = not block
                if decoder is not None:
                    block = decoder.decode(block, end).encode("utf-8", "replace")
                if beginning and block:
                    block, beginning = block.removeprefix(codecs.BOM_UTF8), False
                if block:
                    yield block
                if end:
                    return


def _open_file(path: Path) -> IO[bytes]:
    """Open a file, decompressed according to its suffix."""
    kind = path.suffix.lower()
    if kind == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if kind in (".zst", ".bz2", ".lz4"):
        import pyarrow as pa

        return pa.input_stream(str(path), compression="detect")  # type: ignore[no-any-return]
    return open(path, "rb")


def _plain_fields(
    data: Bytes, start: int, final: bool, delimiter: int, quote: int, wanted: Sequence[int]
) -> tuple[Places, Places, int] | None:
    """Find the fields of all complete lines from the start on, without a loop over bytes.

    Returns the places and lengths of the fields, one row per wanted column, and the start of the next line. Returns
    None if some quote needs the loops. Every quote must begin or end a field that is quoted as a whole. Then no quoted
    field contains a delimiter, a newline or a quote, and each line is a record.
    """
    region = data[start:]
    ends = start + np.flatnonzero(region == NEWLINE)
    if final and len(region) and (not len(ends) or ends[-1] + 1 < len(data)):
        ends = np.append(ends, len(data))  # the end of the file ends a line too
    if not len(ends):
        return np.zeros((len(wanted), 0), np.int64), np.zeros((len(wanted), 0), np.int64), start
    begins = np.concatenate([[start], ends[:-1] + 1])
    after = min(int(ends[-1]) + 1, len(data))
    if (ends - begins).max() > LONGEST_RECORD:
        return None
    ends = ends - ((ends > begins) & (data[ends - 1] == RETURN))
    marks = start + np.flatnonzero(data[start:after] == delimiter)
    if quote >= 0 and not _are_whole(
        data, np.sort(np.append(begins, marks + 1)), np.sort(np.append(marks, ends)), start, after, quote
    ):
        return None
    first, last = np.searchsorted(marks, begins), np.searchsorted(marks, ends)
    bounds = np.append(marks, 0)  # a dummy end, so that fields which a line does not have can be looked up and ignored
    places, lengths = np.zeros((len(wanted), len(ends)), np.int64), np.full((len(wanted), len(ends)), ABSENT)
    for row, column in enumerate(wanted):
        has = last - first >= column
        place = begins if column == 0 else bounds[np.where(has, first + column - 1, -1)] + 1
        end = np.where(last - first > column, bounds[np.minimum(first + column, len(marks))], ends)
        quoted = has & (end - place >= 2) & (data[np.where(has & (end > place), place, 0)] == quote)
        places[row] = place + quoted
        lengths[row] = np.where(
            has, np.where(quoted, place - end, end - place), ABSENT
        )  # a quoted field has the length −2 − n, here −2 − (end − place − 2)
    return places, lengths, after


def _are_whole(data: Bytes, begins: Places, ends: Places, start: int, stop: int, quote: int) -> bool:
    """Return True if each quote of a region begins or ends a field that begins and ends with a quote."""
    quotes = np.count_nonzero(data[start:stop] == quote)
    if not quotes:
        return True
    long = ends - begins >= 2
    quoted = long & (data[np.where(long, begins, 0)] == quote) & (data[np.where(long, ends - 1, 0)] == quote)
    return bool(2 * np.count_nonzero(quoted) == quotes)


def _gather_fields(data: Bytes, places: Places, lengths: Places, quote: int, *, compile: bool) -> Any:
    """Copy fields into an Arrow array of bytes, with null where a line was too short to have the field."""
    import pyarrow as pa

    content = np.empty(max(1, int(np.abs(lengths).sum())), np.uint8)
    ends = np.zeros(len(lengths) + 1, np.int64)
    present = np.ones(len(lengths), bool)
    copy = _copy_fields if compile else _copy_fields_by_arrays
    copy(data, places, lengths, quote, content, ends, present)
    valid = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)


def _copy_fields_by_arrays(
    data: Bytes, places: Places, lengths: Places, quote: int, content: Bytes, ends: Places, present: NDArray[np.bool_]
) -> None:
    """Copy fields as ``_copy_fields`` does, but with NumPy. Only fields with doubled quotes need a loop."""
    present[:] = lengths != ABSENT
    sizes = np.where(lengths >= 0, lengths, np.maximum(-2 - lengths, 0))
    ends[1:] = np.cumsum(sizes)
    total = int(ends[-1])
    content[:total] = data[np.arange(total) + np.repeat(places - ends[:-1], sizes)]
    if quote < 0 or not (content[:total] == quote).any():
        return
    for row in np.flatnonzero(lengths < ABSENT)[::-1]:  # from the last, so that the ends of earlier fields stay valid
        field = content[ends[row] : ends[row + 1]].tobytes()
        fewer = field.replace(bytes([quote, quote]), bytes([quote]))
        gone = len(field) - len(fewer)
        if gone:
            content[ends[row] : ends[row + 1] - gone] = np.frombuffer(fewer, np.uint8)
            content[ends[row + 1] - gone : ends[-1] - gone] = content[ends[row + 1] : ends[-1]].copy()
            ends[row + 1 :] -= gone


@compile_lazily()
def _copy_fields(
    data: Bytes, places: Places, lengths: Places, quote: int, content: Bytes, ends: Places, present: NDArray[np.bool_]
) -> None:
    """Copy fields one after another into ``content``.

    A length below ABSENT, −2 − n, marks a quoted field of n bytes, in which doubled quotes become single ones.
    """
    at = 0
    for row in range(lengths.size):
        start, length = places[row], lengths[row]
        if length >= 0:
            for i in range(start, start + length):
                content[at] = data[i]
                at += 1
        elif length == -1:
            present[row] = False
        else:
            i, end = start, start - 2 - length
            while i < end:
                content[at] = data[i]
                at += 1
                i += 2 if data[i] == quote else 1
        ends[row + 1] = at


@compile_lazily()
def _line(
    data: Bytes, start: int, end: int, delimiter: int, quote: int, slots: Places, places: Places, lengths: Places
) -> bool:
    """Find the fields of one line. A field ends with its line at the latest.

    Returns True if one of the fields was still within quotes at the end of the line.
    """
    if end > start and data[end - 1] == RETURN:
        end -= 1
    i, field, unclosed = start, 0, False
    while True:
        first, close = i, -1
        if i < end and data[i] == quote:
            j = i + 1
            while j < end:
                if data[j] == quote:
                    if j + 1 < end and data[j + 1] == quote:
                        j += 2
                        continue
                    if j + 1 == end or data[j + 1] == delimiter:
                        close = j
                    break
                j += 1
            unclosed |= j >= end
        if close >= 0:
            i = close + 1
        else:
            while i < end and data[i] != delimiter:
                i += 1
        if field < slots.size and slots[field] >= 0:
            slot = slots[field]
            places[slot] = first + 1 if close >= 0 else first
            lengths[slot] = -2 - (close - first - 1) if close >= 0 else i - first
        field += 1
        if i >= end:
            return unclosed
        i += 1


@compile_lazily()
def _lines(
    data: Bytes, start: int, stop: int, final: bool, delimiter: int, quote: int, width: int,
    slots: Places, places: Places, lengths: Places,
) -> int:  # fmt: skip
    """Find the fields of a well-formed record that may take several lines, and return where the record ends.

    Returns MORE if more bytes are needed to decide, and MALFORMED if there is no such record.
    """
    i, field = start, 0
    unknown = -1 if final or stop - start >= LONGEST_RECORD else -2  # MALFORMED or MORE
    stop = min(stop, start + LONGEST_RECORD)
    whole = final and stop == data.size  # the end of the file ends a record too
    while True:
        first, quoted = i, i < stop and data[i] == quote
        if quoted:
            i += 1
            while True:
                if i >= stop:
                    return unknown
                if data[i] == quote:
                    if i + 1 < stop and data[i + 1] == quote:
                        i += 2
                        continue
                    break
                i += 1
            last = i
            i += 1
            if i < stop and data[i] == RETURN:
                if i + 1 == stop and not whole:
                    return unknown
                if i + 1 < stop and data[i + 1] != NEWLINE:
                    return -1
                i += 1
        else:
            while i < stop and data[i] != delimiter and data[i] != NEWLINE:
                if data[i] == quote:
                    return -1
                i += 1
            last = i
            if i > first and data[i - 1] == RETURN and (i >= stop or data[i] == NEWLINE):
                last -= 1
        if i >= stop and not whole:
            return unknown
        if i < stop and data[i] != delimiter and data[i] != NEWLINE:
            return -1
        if field < slots.size and slots[field] >= 0:
            slot = slots[field]
            places[slot] = first + 1 if quoted else first
            lengths[slot] = -2 - (last - first - 1) if quoted else last - first
        field += 1
        if i >= stop or data[i] == NEWLINE:
            return min(i, stop) if field == width else -1
        i += 1


@compile_lazily()
def _records(
    data: Bytes, start: int, final: bool, delimiter: int, quote: int, multiline: bool, width: int,
    slots: Places, places: Places, lengths: Places,
) -> Any:  # fmt: skip
    """Find records from the start on.

    Returns their number, the start of the next record, and True if the rest of its line must be skipped.
    """
    stop, rows = data.size, 0
    while start < stop and rows < lengths.shape[0]:
        end, bound = start, min(stop, start + LONGEST_RECORD)
        while end < bound and data[end] != NEWLINE:
            end += 1
        if end == stop and not final:
            break  # the line continues in the next block
        ended = end < stop and data[end] == NEWLINE
        for slot in range(lengths.shape[1]):
            lengths[rows, slot] = -1  # ABSENT
        unclosed = _line(data, start, end, delimiter, quote, slots, places[rows], lengths[rows])
        if unclosed and multiline and ended:
            over = _lines(data, start, stop, final, delimiter, quote, width, slots, places[rows], lengths[rows])
            if over == -2:
                break
            if over >= 0:
                end = over
            else:
                for slot in range(lengths.shape[1]):
                    lengths[rows, slot] = -1
                _line(data, start, end, delimiter, quote, slots, places[rows], lengths[rows])
        rows += 1
        if end < stop and data[end] != NEWLINE:
            return rows, end, True  # the line is longer than the longest record
        start = min(end + 1, stop)
    return rows, start, False
