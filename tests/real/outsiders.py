"""MCP programs of others against a vault with a daemon: the inspector, the conformance suite, the TypeScript client."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real.clients import FOLDER
from tests.scratch import ROOT, Scratch

DATA = ROOT / "tests/data/outsiders"


@dataclass(frozen=True)
class Outsiders:
    """Where the programs are."""

    node: str
    inspector: Path
    conformance: Path
    sdk: Path


def find_outsiders() -> Outsiders | str:
    """The installed programs, or what is missing."""
    named = os.environ.get(FOLDER)
    if not named:
        return f"{FOLDER} names no folder with programs of others (.ci/install-clis makes one)"
    folder = Path(named)
    inside = folder / "node22/node_modules/.bin"
    node = shutil.which("node", path=f"{inside}:{os.environ['PATH']}")
    paths = [
        folder / "inspector/node_modules/.bin/mcp-inspector",
        folder / "conformance/node_modules/.bin/conformance",
        folder / "sdk/node_modules/@modelcontextprotocol/sdk",
    ]
    missing = [path.name for path in paths if not path.exists()]
    if node is None or missing:
        return f"no {', '.join(missing) or 'node'} in {folder} (.ci/install-clis puts it there)"
    return Outsiders(node, *paths)


@dataclass
class Served:
    """A vault with one project and a session in it, its daemon listening on a port, and what talks to it."""

    scratch: Scratch
    checkout: Path
    outsiders: Outsiders
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where MCP is."""
        told = json.loads((self.scratch.vault / ".vaultd/daemon.json").read_bytes())
        return f"http://{told['http']}/mcp"

    @property
    def token(self) -> str:
        """What a client over TCP must know."""
        return (self.scratch.home / ".config/vaultd/token").read_text("utf-8").strip()

    @property
    def stdio(self) -> list[str]:
        """The bridge's command line."""
        return [sys.executable, "-m", "vaultd", "mcp"]

    def node(self, *args: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a program of theirs in the checkout."""
        environ = {**self.scratch.environ, "PATH": f"{Path(self.outsiders.node).parent}:{os.environ['PATH']}"}
        return subprocess.run(
            [self.outsiders.node, *map(str, args)],
            cwd=self.checkout,
            env=environ,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def inspect(self, transport: str, *args: str) -> Any:
        """One call of the inspector's command line; what it printed, read as JSON."""
        where: Sequence[str] = self.stdio
        if transport == "http":
            # fmt: off
            where = ["--transport", "http", "--server-url", self.url,
                     "--header", f"Authorization: Bearer {self.token}", f"X-Vaultd-Cwd: {self.checkout}"]
            # fmt: on
        done = self.node(self.outsiders.inspector, "--cli", *where, *args)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


class Doorman:
    """Forwards connections to a port and puts a header into each request: for clients that cannot be told one."""

    def __init__(self, port: int, header: str) -> None:
        self._port = port
        self._line = header.encode() + b"\r\n"
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._port))
            threading.Thread(target=self._requests, args=(near, far), daemon=True).start()
            threading.Thread(target=self._copy, args=(far, near), daemon=True).start()

    def _requests(self, near: socket.socket, far: socket.socket) -> None:
        """Each request with the header behind its first line; bodies are counted by their length."""
        with near, far, near.makefile("rb") as stream, contextlib.suppress(OSError):  # a client may go away
            while first := stream.readline():
                head, length = [first, self._line, b"Connection: keep-alive\r\n"], 0
                while (line := stream.readline()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                    if name.lower() != b"connection":
                        head.append(line)
                far.sendall(b"".join(head) + b"\r\n" + stream.read(length))
            far.shutdown(socket.SHUT_WR)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
