"""What is mounted at `/mcp`: it takes requests at once and answers them when the MCP library is loaded.

Loading takes a second of processor time and tens of megabytes, so it begins, on a thread, with the first request: most
daemons start without anybody who would ask. The bridge makes it begin (`HEAD /mcp`) as soon as a client shows up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from vaultd.engine.service import Service

if TYPE_CHECKING:
    from vaultd.mcp.server import McpServer

__all__ = ["McpApplication"]

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]

_NOT_SERVED = b"MCP is not served now."

log = logging.getLogger("vaultd.mcp")


class McpApplication:
    """An ASGI application that works while `run` is entered."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._running = False
        self._ending = asyncio.Event()
        self._loaded: asyncio.Future[McpServer] | None = None
        self._serving: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve until the block ends."""
        self._ending.clear()
        self._running = True
        try:
            yield
        finally:
            self._running, self._loaded = False, None
            self._ending.set()
            if self._serving is not None:
                await self._serving

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer one HTTP request; 503 when this does not run, or the library cannot be loaded.

        HEAD is answered at once (204).
        """
        if not self._running:
            return await _say(send, 503, _NOT_SERVED)
        loaded = self._loading()
        if scope["method"] == "HEAD":
            return await _say(send, 204)
        try:
            server = await asyncio.shield(loaded)
        except (ImportError, RuntimeError):
            return await _say(send, 503, _NOT_SERVED)
        await server(scope, receive, send)

    def _loading(self) -> asyncio.Future[McpServer]:
        """The server, loaded or about to be."""
        if self._loaded is None:
            self._loaded = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._loaded, self._ending))
        return self._loaded

    async def _serve(self, loaded: asyncio.Future[McpServer], ending: asyncio.Event) -> None:
        """Load, then serve until told to end."""
        try:
            server = await asyncio.to_thread(_load, self._service)
        except Exception as error:  # the daemon does everything else without
            log.exception("MCP cannot be served")
            loaded.set_exception(RuntimeError(str(error)))
            loaded.exception()  # nobody may ask
            return
        async with server.run():
            loaded.set_result(server)
            await ending.wait()


def _load(service: Service) -> McpServer:
    """The server; its module is imported here, on a thread."""
    from vaultd.mcp.server import McpServer

    return McpServer(service)


async def _say(send: _Send, status: int, text: bytes = b"") -> None:
    """Answer with a few words."""
    headers = [(b"content-type", b"text/plain; charset=utf-8")] if text else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
