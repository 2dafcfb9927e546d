"""What is open at a time, and for how long it may say nothing: a connection that only costs is closed.

aiohttp bounds a head's size and a connection's idle time; not how slowly a head may come, nor how many come at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Connections"]


class Connections:
    """Makes protocols for a listening socket (by `make`, set before it listens) and keeps count.

    `busy` and `free` are told by the application.
    """

    def __init__(self, most: int, head_s: float, stuck_s: float) -> None:
        """`stuck_s`: for how long a client may not read on while more of an answer waits for it."""
        self.make: Callable[[], asyncio.Protocol] = asyncio.Protocol
        self._most = most
        self._head_s = head_s
        self.stuck_s = stuck_s
        self._waiting: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}
        self._busy: set[asyncio.BaseTransport] = set()
        self.open = 0

    def __call__(self) -> asyncio.Protocol:
        """A protocol for one connection."""
        return _Bounded(self, self.make())

    def busy(self, transport: asyncio.BaseTransport | None) -> None:
        """A request's head is complete: it is the application's to time what follows."""
        if transport is not None:
            self._busy.add(transport)
            self._stop(transport)

    def free(self, transport: asyncio.BaseTransport | None) -> None:
        """A request is answered."""
        if transport is not None:
            self._busy.discard(transport)

    def opened(self, transport: asyncio.BaseTransport) -> bool:
        """A connection came; whether there is room for it."""
        self.open += 1
        self.heard(transport)
        return self.open <= self._most

    def heard(self, transport: asyncio.BaseTransport) -> None:
        """Something came: the head of a request, unless one is being answered. It has so long to be complete."""
        if transport not in self._busy and transport not in self._waiting:
            loop = asyncio.get_running_loop()
            self._waiting[transport] = loop.call_later(self._head_s, self._late, transport)

    def closed(self, transport: asyncio.BaseTransport) -> None:
        """A connection ended."""
        self.open -= 1
        self._stop(transport)
        self._busy.discard(transport)

    def _late(self, transport: asyncio.BaseTransport) -> None:
        self._waiting.pop(transport, None)
        transport.close()

    def _stop(self, transport: asyncio.BaseTransport) -> None:
        timer = self._waiting.pop(transport, None)
        if timer is not None:
            timer.cancel()


class _Bounded(asyncio.Protocol):
    """One connection, counted; everything else is the inner protocol's."""

    def __init__(self, connections: Connections, inner: asyncio.Protocol) -> None:
        self._connections = connections
        self._inner = inner
        self._transport: asyncio.BaseTransport | None = None
        self._stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or end at once where there is no room."""
        self._transport = transport
        self._inner.connection_made(transport)
        if not self._connections.opened(transport):
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._transport is not None:
            self._connections.closed(self._transport)
        self._unstuck()
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._transport is not None:
            self._connections.heard(self._transport)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Nothing more will come."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        if isinstance(self._transport, asyncio.WriteTransport):
            loop = asyncio.get_running_loop()
            self._stuck = loop.call_later(self._connections.stuck_s, self._transport.abort)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._unstuck()
        self._inner.resume_writing()

    def _unstuck(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
