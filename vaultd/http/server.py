"""The server beside the daemon: a thread with a loop of its own, a socket for local clients, perhaps a port."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from vaultd.engine.service import Service
from vaultd.errors import VaultdError
from vaultd.http.guard import Guard
from vaultd.http.settings import HttpSettings
from vaultd.store.sockets import listen_local, listen_tcp, retire

if TYPE_CHECKING:
    from aiohttp import web

    from vaultd.http.application import Application
    from vaultd.http.asgi import AsgiApplication

__all__ = ["HttpServer"]

_START_S = 20.0
_STOP_S = 1.5
_POOLS = {"http": 8, "hook": 4, "health": 1}
"""Threads for reads, for events, and for the question whether all is well, which must not wait for the others."""

log = logging.getLogger("vaultd.http")


class HttpServer:
    """Answers from `start` to `stop`. What cannot be opened is logged; the daemon goes on without."""

    def __init__(self, service: Service, settings: HttpSettings, mcp: AsgiApplication | None = None) -> None:
        self._service = service
        self._settings = settings
        self._mcp = mcp
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._told: dict[str, str] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._listening: list[asyncio.Server] = []
        self._runners: list[web.AppRunner] = []
        self._retired: list[Callable[[], None]] = []

    def start(self) -> Mapping[str, str]:
        """Listen; `socket` and `http` say where, each only when it is open, `no-http` why not."""
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()
        self._ready.wait(_START_S)
        return dict(self._told)

    def stop(self) -> None:
        """Stop listening, give what is being answered a moment, end."""
        thread, loop, ending = self._thread, self._loop, self._ending
        if thread is None or loop is None or ending is None:
            return
        with contextlib.suppress(RuntimeError):  # it has ended already
            loop.call_soon_threadsafe(ending.set)
        thread.join(_STOP_S + 0.5)
        self._thread = None

    def _run(self) -> None:
        """The thread."""
        try:
            asyncio.run(self._serve())
        except Exception:  # the daemon records without it
            log.exception("nothing is answered over HTTP")
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        """Open what was asked for, and wait for the end. Clients are let go first, then MCP, then the threads."""
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        pools = [ThreadPoolExecutor(count, thread_name_prefix=name) for name, count in _POOLS.items()]
        try:
            async with contextlib.AsyncExitStack() as stack:
                if self._mcp is not None:
                    from vaultd.http import application  # noqa: F401  # before MCP loads beside it: the door opens first

                    await stack.enter_async_context(self._mcp.run())
                try:
                    await self._open(*pools)
                    self._ready.set()
                    await self._ending.wait()
                finally:
                    await self._close()
        finally:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)

    async def _open(self, reads: Executor, hooks: Executor, vitals: Executor) -> None:
        """Listen at the socket and at the port."""
        from vaultd.http.application import Application
        from vaultd.http.hooks import Hooks

        settings = self._settings
        taken = Hooks(self._service, hooks, settings)
        application = Application(self._service, settings, reads, vitals, taken, self._mcp)
        if settings.socket is not None:
            try:
                local, inode = listen_local(settings.socket)
                self._retired.append(partial(retire, settings.socket, inode))
                await self._listen(application, local, None)
                self._told["socket"] = str(settings.socket)
            except (OSError, VaultdError) as error:
                log.error("no socket for local clients: %s", error)
        if settings.address is not None:
            try:
                port = listen_tcp(settings.address.host, settings.address.port)
                number = int(port.getsockname()[1])
                host = f"[{settings.address.host}]" if ":" in settings.address.host else settings.address.host
                bound = host if settings.address.loopback else "localhost"
                await self._listen(application, port, Guard(settings.token, number, settings.hosts, bound))
                self._told["http"] = f"{host}:{number}"
            except OSError as error:
                where = f"{settings.address.host}:{settings.address.port}"
                self._told["no-http"] = f"nothing listens at {where}: {error.strerror or error}"
                log.warning("%s", self._told["no-http"])

    async def _listen(self, application: Application, listener: socket.socket, guard: Guard | None) -> None:
        """Answer at one listening socket from now on."""
        from aiohttp import web

        from vaultd.http.connections import Connections
        from vaultd.http.spoken import Spoken

        connections = Connections(self._settings.connections, self._settings.head_s, self._settings.idle_s)
        runner = web.AppRunner(
            application.make(guard, connections), handler_cancellation=True, shutdown_timeout=_STOP_S / 2
        )
        await runner.setup()
        self._runners.append(runner)
        assert runner.server is not None
        loop = asyncio.get_running_loop()
        connections.make = partial(
            Spoken,
            runner.server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # aiohttp's own way to say that there is none
            keepalive_timeout=self._settings.idle_s,
            lingering_time=1.0,  # for which the rest of a refused body is read
            auto_decompress=False,  # a few bytes could become gigabytes
        )
        self._listening.append(await loop.create_server(connections, sock=listener, backlog=128))

    async def _close(self) -> None:
        """Take nobody new, and let those that are there go, all at once."""
        for listening in self._listening:
            listening.close()
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))
        for leave in self._retired:
            leave()
