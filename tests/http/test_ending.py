"""A server that ends, and clients that hold on: it is gone in time, and takes nothing with it that is another's."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.http.served import TOKEN, Served, serving
from tests.scratch import Scratch


class Stream:
    """Begins to answer and never ends."""

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        yield

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await asyncio.get_running_loop().create_future()


def connected(served: Served, tcp: bool) -> socket.socket:
    link = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
    link.settimeout(10)
    link.connect(("127.0.0.1", served.port) if tcp else served.socket)
    return link


def asked(link: socket.socket, served: Served, target: str) -> None:
    head = f"GET {target} HTTP/1.1\r\nHost: localhost:{served.port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    link.sendall(head.encode())


def test_it_ends_within_two_seconds_whatever_is_open(scratch: Scratch) -> None:
    with contextlib.ExitStack() as links:
        with serving(scratch, Stream()) as served:
            for tcp in (False, True):
                for target in ("", "/mcp"):
                    link = links.enter_context(connected(served, tcp))
                    if target:
                        asked(link, served, target)
                        assert link.recv(100)
            begun = time.monotonic()
        assert time.monotonic() - begun < 2.0
        assert not any(thread.name == "http" for thread in threading.enumerate())
        assert not Path(served.socket).exists()
