"""An ASGI application inside an aiohttp one: the MCP library speaks ASGI, and one server is enough."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

from aiohttp import web

from vaultd.http.bodies import bounded, too_large

__all__ = ["AsgiApplication", "answer_with"]

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]

_PIECE = 64 * 1024

log = logging.getLogger("vaultd.http")


class AsgiApplication(Protocol):
    """What can be mounted: it works while `run` is entered."""

    def run(self) -> AbstractAsyncContextManager[None]:
        """Work until the block ends."""

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer one request."""


async def answer_with(app: AsgiApplication, request: web.Request, body_bytes: int, body_s: float) -> web.StreamResponse:
    """Let an ASGI application answer a request; body and answer are streamed. HTTPRequestEntityTooLarge, TimeoutError
    when the body has more than `body_bytes` or `body_s` seconds pass without a piece of it.

    A client that goes away cancels the handler (the server runs with `handler_cancellation`), and the application. An
    application that fails after it began to answer costs the connection: the client must not take a part for the whole.
    """
    bounded(request, body_bytes)
    state = _Exchange(request, body_bytes, body_s)
    try:
        await app(_scope(request), state.receive, state.send)
        if state.refused is not None:
            raise state.refused
        if state.response is None:
            raise web.HTTPInternalServerError
        await state.response.write_eof()
    except ConnectionError:
        raise
    except Exception as error:
        if state.response is None:
            raise state.refused or error from None
        log.exception("a fault in the middle of an answer")
        raise ConnectionError("an answer that cannot be ended") from error
    return state.response


class _Exchange:
    """One request and its answer."""

    def __init__(self, request: web.Request, body_bytes: int, body_s: float) -> None:
        self._request = request
        self._body_bytes = body_bytes
        self._body_s = body_s
        self._come = 0
        self._read = False
        self.response: web.StreamResponse | None = None
        self.refused: Exception | None = None

    async def receive(self) -> _Message:
        """The next piece of the body; after its end nothing comes any more but the end of the connection."""
        if self._read:
            await asyncio.get_running_loop().create_future()  # cancelled when the client goes away
        try:
            async with asyncio.timeout(self._body_s):
                data = await self._request.content.read(_PIECE)
            self._come += len(data)
            if self._come > self._body_bytes:
                raise too_large(self._body_bytes)
        except Exception as error:  # whatever the application makes of it, the client is told why
            self.refused = error
            raise
        self._read = self._request.content.at_eof()
        return {"type": "http.request", "body": data, "more_body": not self._read}

    async def send(self, message: _Message) -> None:
        """A piece of the answer."""
        if self.refused is not None:
            return
        if message["type"] == "http.response.start":
            self.response = web.StreamResponse(status=message["status"])
            for name, value in message.get("headers", ()):
                self.response.headers.add(name.decode("latin-1"), value.decode("latin-1"))
            await self.response.prepare(self._request)
        elif message["type"] == "http.response.body" and self.response is not None and message.get("body"):
            await self.response.write(message["body"])


def _scope(request: web.Request) -> _Message:
    """The request as ASGI tells it."""
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": f"{request.version.major}.{request.version.minor}",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.raw_path.encode("ascii", "replace").partition(b"?")[0],
        "query_string": request.raw_path.partition("?")[2].encode("utf-8", "surrogateescape"),
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.raw_headers],
        "client": tuple(peer[:2]) if isinstance(peer, tuple) else None,
        "server": None,
        "state": {},
    }
