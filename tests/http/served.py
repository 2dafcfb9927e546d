"""A server on a real socket and a real port, over a real vault, in this process; and plain clients for it."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.scratch import Scratch
from vaultd.engine.health import Pulse
from vaultd.engine.live import Live
from vaultd.engine.local import LocalService
from vaultd.engine.passes import Passes
from vaultd.http.asgi import AsgiApplication
from vaultd.http.server import HttpServer
from vaultd.http.settings import Address, HttpSettings

TOKEN = "t" * 40


@dataclass
class Answer:
    """What a server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


@dataclass
class Served:
    """A vault with a project and a session in it, and a server for it."""

    scratch: Scratch
    checkout: Path
    service: LocalService
    pulse: Pulse
    socket: str
    port: int
    written: set[str] = field(default_factory=set)

    def ask(
        self,
        target: str,
        method: str = "GET",
        body: bytes | str | Iterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        tcp: bool = False,
        token: str | None = TOKEN,
    ) -> Answer:
        """One request, over the socket or over TCP with the token."""
        more = {"Authorization": f"Bearer {token}"} if tcp and token is not None else {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        if not tcp:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(30)
            connection.sock.connect(self.socket)
        try:
            connection.request(method, target, body, {**more, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def hook(self, body: object, **query: str) -> Answer:
        """An event over HTTP."""
        pairs = {"agent": "claude-code", "event": "UserPromptSubmit", **query}
        data = body if isinstance(body, bytes) else json.dumps(body)
        return self.ask("/hook?" + "&".join(f"{k}={v}" for k, v in pairs.items()), "POST", data)

    def new(self) -> list[str]:
        """Names of the events that wait."""
        return sorted(path.name for path in (self.scratch.vault / ".vaultd/inbox/new").iterdir())

    def raw(self, data: bytes) -> bytes:
        """Bytes over TCP as they are, and all that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), 30) as link:
            link.sendall(data)
            got = b""
            while part := link.recv(65536):
                got += part
        return got


@contextmanager
def serving(scratch: Scratch, mcp: AsgiApplication | None = None, **limits: Any) -> Iterator[Served]:
    """A server while the block runs; `limits` are fields of HttpSettings."""
    scratch.init()
    checkout = scratch.checkout("shop")
    scratch.session(checkout, native="one-session", prompts=("Mend the price loader",))
    stores = scratch.stores()
    Passes(stores).drain()
    live, pulse, written = Live(stores), Pulse(), set[str]()
    service = LocalService(scratch.stores, live, pulse, written.update)
    path = scratch.config.places.socket(scratch.vault)
    settings = replace(HttpSettings(path, Address("127.0.0.1", 0), TOKEN, ("memory.example",)), **limits)
    server = HttpServer(service, settings, mcp)
    told = server.start()
    try:
        yield Served(scratch, checkout, service, pulse, told["socket"], int(told["http"].rpartition(":")[2]), written)
    finally:
        server.stop()
        live.close()
