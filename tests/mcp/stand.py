"""A daemon of the tests: the real loops and the real service, its MCP served over a Unix socket.

`python -m tests.mcp.stand SOCKET`, in the environment of a scratch world; ends with its standard input.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping
from typing import Any

import uvicorn

from vaultd.config import load
from vaultd.engine.daemon import Daemon
from vaultd.engine.local import LocalService
from vaultd.engine.stores import local_now, open_stores
from vaultd.mcp.application import McpApplication


class Served:
    """A companion that serves MCP at a socket."""

    def __init__(self, service: Any, path: str) -> None:
        self._application = McpApplication(service)
        self._server = uvicorn.Server(uvicorn.Config(self._application, uds=path, lifespan="off", log_level="error"))
        self._path = path
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def start(self) -> Mapping[str, str]:
        self._thread.start()
        return {"socket": self._path}

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    async def _serve(self) -> None:
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # of older releases
        async with self._application.run():
            await self._server.serve()


def main(path: str) -> None:
    stores = open_stores(load(), local_now)
    daemon = Daemon(stores)
    service = LocalService(lambda: open_stores(load(), local_now), daemon.live, daemon.pulse, lambda _: None)

    def end() -> None:
        sys.stdin.read()
        daemon.stop()

    threading.Thread(target=end, daemon=True).start()
    daemon.run(companions=[Served(service, path)])


if __name__ == "__main__":
    main(sys.argv[1])
