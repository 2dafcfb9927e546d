"""An ASGI application behind our server: bodies both ways, streams, and clients that go away."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.http.served import TOKEN, Served, serving
from tests.scratch import Scratch


class Toy:
    """Echoes a body; on GET sends one piece and waits until nobody listens any more."""

    def __init__(self) -> None:
        self.running = threading.Event()
        self.gone = threading.Event()
        self.ended = threading.Event()
        self.scope: dict[str, Any] = {}

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        self.running.set()
        try:
            yield
        finally:
            self.ended.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope = scope
        headers = [(b"content-type", b"text/plain"), (b"x-two", b"a"), (b"x-two", b"b")]
        if scope["query_string"] == b"fail":
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
            raise ZeroDivisionError("the words of a page")
        if scope["method"] == "GET":
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
            try:
                await receive()
                await receive()
            except asyncio.CancelledError:
                self.gone.set()
                raise
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        for start in range(0, len(body), 100_000):
            await send({"type": "http.response.body", "body": body[start : start + 100_000], "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def served(scratch: Scratch, toy: Toy) -> Iterator[Served]:
    with serving(scratch, toy) as served:
        assert toy.running.wait(10)
        yield served
    assert toy.ended.is_set()


def test_a_body_goes_in_and_comes_back_with_status_and_headers(served: Served, toy: Toy) -> None:
    body = bytes(range(256)) * 2000
    told = served.ask("/mcp?cwd=%2Fa%20b%26c%2B%25", "POST", body, {"X-Odd": "ä".encode().decode("latin-1")})
    assert (told.status, told.body) == (201, body)
    assert told.headers["x-content-type-options"] == "nosniff"
    assert toy.scope["query_string"] == b"cwd=%2Fa%20b%26c%2B%25"  # as it came: `&` in a folder's name is no end of it
    assert dict(toy.scope["headers"])[b"x-odd"] == "ä".encode()


def test_a_client_that_leaves_a_stream_ends_what_works_for_it(served: Served, toy: Toy) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(10)
        link.connect(served.socket)
        link.sendall(b"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n")
        got = b""
        while b"first" not in got:
            got += link.recv(4096)
        assert not toy.gone.is_set()
    assert toy.gone.wait(10)


def test_the_token_is_asked_for_there_too(served: Served) -> None:
    assert served.ask("/mcp", "POST", b"{}", tcp=True, token=None).status == 401
    assert served.ask("/mcp", "POST", b"{}", tcp=True).status == 201


def test_a_body_has_its_bound_there_too(served: Served) -> None:
    assert served.ask("/mcp", "POST", b"x" * (4 * 1024 * 1024)).status == 201
    assert served.ask("/mcp", "POST", b"x" * (4 * 1024 * 1024 + 1)).status == 413
    told = served.ask("/mcp", "POST", (b"x" * 1_000_000 for _ in range(5)))
    assert told.status == 413 and told.json["error"]["code"] == "too-large"


def test_a_body_that_does_not_come_is_not_waited_for(scratch: Scratch, toy: Toy) -> None:
    with serving(scratch, toy, body_s=0.2) as served:
        name = f"Host: localhost:{served.port}\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
        assert served.raw(b"POST /mcp HTTP/1.1\r\n" + name + b"Content-Length: 9\r\n\r\n{").split()[1] == b"408"


def test_an_answer_that_fails_in_its_middle_is_not_taken_for_a_whole_one(served: Served) -> None:
    name = f"Host: localhost:{served.port}\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    got = served.raw(b"GET /mcp?fail HTTP/1.1\r\n" + name + b"\r\n")
    assert got.endswith(b"first\r\n") and got.count(b"HTTP/1.1") == 1
    assert served.ask("/health").status == 200
