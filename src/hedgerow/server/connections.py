"""Connections whose requests must begin and arrive in time, so that idle clients do not hold them.

The parts of a response that are written at the same time are sent together.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hedgerow._extras import extra


class JoiningConnection:
    """A transport that collects the writes of one turn of the loop: head and body are sent as one packet."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes at the end of this turn of the loop."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)

    def close(self) -> None:
        """Send the waiting bytes, and close the connection."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._parts and not self._transport.is_closing():
            self._transport.write(b"".join(self._parts))
        self._parts = []


def timed_protocol(seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with a limit on the time in which the head of a request arrives."""
    extra("uvicorn")
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedProtocol(H11Protocol):
        """A connection that is closed if the head of a request does not arrive in time."""

        timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            joined: Any = JoiningConnection(transport, self.loop)
            super().connection_made(joined)
            self.begin_wait()

        def begin_wait(self) -> None:
            if self.timer is None:
                self.timer = self.loop.call_later(seconds, self.give_up)

        def end_wait(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

        def give_up(self) -> None:
            """Close a connection without a whole head."""
            self.timer = None
            if not self.transport.is_closing():
                self.transport.close()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            waits = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
            if self.conn.their_state is not h11.IDLE:
                self.end_wait()  # the head has arrived
            elif waits:
                self.begin_wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self.end_wait()
            super().connection_lost(exc)

    return TimedProtocol
