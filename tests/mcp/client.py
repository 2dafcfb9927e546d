"""A client of `vaultd mcp` that says exactly what a test wants, and a daemon for it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.scratch import ROOT, Scratch
from tests.waiting import until
from vaultd.engine.processes import told_process

COMMAND = [sys.executable, "-P", "-m", "vaultd", "mcp"]


class Bridge:
    """One `vaultd mcp`, as a process of its own."""

    def __init__(self, scratch: Scratch, cwd: Path, environ: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            COMMAND,
            cwd=cwd,
            env=dict(environ or scratch.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self._rest = b""
        self._serial = 0

    def say(self, *lines: bytes | dict[str, Any] | list[Any]) -> None:
        """Write lines."""
        assert self.process.stdin is not None
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            self.process.stdin.write(data + b"\n")

    def hear(self, timeout: float = 20.0) -> Any:
        """The next message."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"nothing was said within {timeout} s"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, f"the bridge ended: {self.process.stderr.read() if self.process.stderr else b''!r}"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def ask(self, method: str, params: dict[str, Any] | None = None, timeout: float = 20.0) -> Any:
        """A request and its answer."""
        self._serial += 1
        self.say({"jsonrpc": "2.0", "id": self._serial, "method": method, "params": params or {}})
        answer = self.hear(timeout)
        assert answer["id"] == self._serial
        return answer

    def begin(self, protocol: str = "2025-11-25") -> Any:
        """The handshake; what the server said."""
        who = {"name": "test-client", "version": "1"}
        answer = self.ask("initialize", {"protocolVersion": protocol, "capabilities": {}, "clientInfo": who})
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def call(self, tool: str, timeout: float = 20.0, **arguments: Any) -> Any:
        """A call of a tool; its result."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments}, timeout)["result"]

    def close(self) -> int:
        """Say nothing more and wait for its end; the exit code. Nothing was said on standard error."""
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(20)
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert said == b"", said.decode()
        return code


@contextlib.contextmanager
def bridge(scratch: Scratch, cwd: Path, environ: Mapping[str, str] | None = None) -> Iterator[Bridge]:
    """A bridge that is gone afterwards."""
    made = Bridge(scratch, cwd, environ)
    try:
        yield made
        assert made.close() == 0
    finally:
        made.process.kill()
        made.process.wait()
        for stream in (made.process.stdin, made.process.stdout, made.process.stderr):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def daemon(scratch: Scratch) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon of the scratch vault, gone afterwards; it ends by itself should this process die."""
    with tempfile.TemporaryDirectory(prefix="vaultd-") as folder:
        command = [sys.executable, "-P", "-m", "tests.mcp.stand", f"{folder}/socket"]
        environ = {**scratch.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdin=subprocess.PIPE)
        try:
            until(lambda: told_process(scratch.vault / ".vaultd") is not None and Path(folder, "socket").exists())
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(20)


def text_of(result: Mapping[str, Any]) -> str:
    """The words of a tool's result."""
    return "\n".join(part["text"] for part in result["content"])
