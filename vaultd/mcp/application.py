"""What is mounted at `/mcp`: it takes requests at once and answers them when the MCP library is loaded.

Loading takes a second of processor time. It begins on a thread when `run` is entered, so that a daemon need not wait
for it, and the first request does.
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

log = logging.getLogger("vaultd.mcp")


class McpApplication:
    """An ASGI application that works while `run` is entered."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._loaded: asyncio.Future[McpServer] | None = None

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Load in the background and serve until the block ends."""
        self._loaded = asyncio.get_running_loop().create_future()
        ending = asyncio.Event()
        serving = asyncio.create_task(self._serve(self._loaded, ending))
        try:
            yield
        finally:
            self._loaded = None
            ending.set()
            await serving

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer one HTTP request; 503 when this does not run, or the library cannot be loaded."""
        if self._loaded is None:
            return await _unavailable(send)
        try:
            server = await asyncio.shield(self._loaded)
        except (ImportError, RuntimeError):
            return await _unavailable(send)
        await server(scope, receive, send)

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


async def _unavailable(send: _Send) -> None:
    """503."""
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b"MCP is not served now."})
