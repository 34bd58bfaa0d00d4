"""A form with a file, read as it arrives: first its fields, then the file, which is never in memory as a whole.

Fields come before the file, so that the form key is checked before the first byte of the file is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request

from hedgerow._extras import extra
from hedgerow.server.problems import Refusal, bad_request

LARGEST_FIELDS = 100_000  # bytes of all fields before the file
MOST_PARTS = 50


class UploadForm:
    """The parts of a form, in the order in which they arrive."""

    def __init__(self, request: Request) -> None:
        multipart = extra("python_multipart.multipart")
        kind, options = multipart.parse_options_header(request.headers.get("content-type", ""))
        boundary = options.get(b"boundary", b"")
        if kind != b"multipart/form-data" or not 0 < len(boundary) <= 70:
            raise _broken_form()
        self._body = request.stream()
        self._found: deque[tuple[str, bytes]] = deque()
        names = ("part_begin", "part_data", "part_end", "header_field", "header_value", "header_end", "end")
        callbacks = {f"on_{name}": self._note(name) for name in names}
        self._parser = multipart.MultipartParser(boundary, callbacks)
        self._options = multipart.parse_options_header
        self.fields: dict[str, str] = {}
        self.file_name = ""

    def _note(self, name: str) -> Any:
        def noted(data: bytes = b"", start: int = 0, end: int = 0) -> None:
            self._found.append((name, bytes(data[start:end])))

        return noted

    async def read_fields(self) -> dict[str, str]:
        """Read the fields before the file, and the name of the file."""
        size = parts = 0
        header, text = b"", b""
        heading: dict[bytes, bytes] = {}
        options: dict[bytes, bytes] = {}
        async for kind, data in self._events():
            size += len(data)
            parts += kind == "part_begin"
            if size > LARGEST_FIELDS or parts > MOST_PARTS:
                raise _broken_form()
            if kind == "part_begin":
                header, heading, text = b"", {}, b""
            elif kind == "header_field":
                header += data
            elif kind == "header_value":
                heading[header.lower()] = heading.get(header.lower(), b"") + data
            elif kind == "header_end":
                header = b""
                options = self._options(heading.get(b"content-disposition", b""))[1]
                if b"filename" in options:
                    self.file_name = _text(options[b"filename"])
                    return self.fields
            elif kind == "part_data":
                text += data
            elif kind == "part_end":
                self.fields[_text(options.get(b"name", b""))] = _text(text)
        return self.fields

    async def file(self) -> AsyncIterator[bytes]:
        """Yield the parts of the file. Fields after the file are not read."""
        async for kind, data in self._events():
            if kind == "part_data":
                yield data
            elif kind == "part_end":
                return
        raise _broken_form()

    async def discard(self, most: int) -> None:
        """Read and discard the rest of the request, so that the browser shows the refusal."""
        async for part in self._body:
            most -= len(part)
            if most < 0:
                return

    async def _events(self) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the events of the multipart parser as the body arrives."""
        while True:
            while self._found:
                yield self._found.popleft()
            try:
                part = await anext(self._body)
            except StopAsyncIteration:
                return
            try:
                self._parser.write(part)
            except Exception:  # the parser's own errors quote what arrived
                raise _broken_form() from None


def _text(given: bytes) -> str:
    try:
        return given.decode()
    except UnicodeDecodeError:
        raise _broken_form() from None


def _broken_form() -> Refusal:
    return bad_request("A form must be one of this console. Found another. Load the page again.")
