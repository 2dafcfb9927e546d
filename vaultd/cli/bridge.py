"""`vaultd mcp`: MCP over standard input and output, answered by the daemon.

Small, because a client starts one for each of its sessions and waits for its first answer: `initialize`, `ping` and the
list of tools are answered here, calls of tools by the daemon. Four kinds of threads: the main one reads and watches
whether anybody is still there, workers ask the daemon, one begins to reach it as soon as a client shows up, one writes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
import time
from collections.abc import Callable
from typing import Any

from vaultd import __version__
from vaultd.cli.forwarding import Forwarder, Task, is_modern
from vaultd.cli.jsonrpc import NO_METHOD, Batch, Fault, Lines, Message, Note, Request, error, read, result, written
from vaultd.cli.reaching import Reach
from vaultd.mcp import INSTRUCTIONS, MOST_BYTES

__all__ = ["Bridge"]

_PROTOCOLS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_WATCH_S = 1.0
_LAST_S = 8.0  # for calls at work when the client has said its last
_WORKERS = 8
_MOST_WAITING = 128  # calls and answers; with more nothing is read


class Bridge:
    """One client's connection. It ends with its client: nothing is read or written any more, or the parent is gone."""

    def __init__(self, reach: Reach, cwd: bytes, stdin: int = 0, stdout: int = 1) -> None:
        self._in, self._out = stdin, stdout
        self._parent = os.getppid()
        self._forwarder = Forwarder(reach, cwd)
        self._reach = reach
        self._lines = Lines(MOST_BYTES)
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._work: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._tasks: dict[int, Task] = {}
        self._guard = threading.Lock()
        self._workers = 0
        self._closed = threading.Event()
        self._warmed = False

    def run(self) -> int:
        """Serve until the client is gone; 0."""
        writer = threading.Thread(target=self._write, name="writer", daemon=True)
        writer.start()
        self._read()
        deadline = time.monotonic() + _LAST_S
        while self._tasks and time.monotonic() < deadline and not self._deserted() and not self._unheard():
            self._closed.wait(0.02)
        self._answers.put(None)
        while writer.is_alive() and time.monotonic() < deadline and not self._deserted():
            writer.join(0.05)
        return 0

    def _read(self) -> None:
        """Take lines until there are no more, or nobody is there."""
        watch = select.poll()
        watch.register(self._out, 0)
        reading = False
        while not self._deserted():
            busy = self._answers.qsize() > _MOST_WAITING or len(self._tasks) > _MOST_WAITING
            if reading == busy:
                reading = not busy
                (watch.register if reading else watch.unregister)(self._in)
            ready = dict(watch.poll((0.05 if busy else _WATCH_S) * 1000))
            if self._out in ready:
                return  # nobody reads our answers
            if self._in in ready:
                try:
                    data = os.read(self._in, 1 << 16)
                except BlockingIOError:
                    continue
                for line in self._lines.feed(data) if data else self._lines.rest():
                    self._take(line if isinstance(line, Fault) else read(line))
                if not data:
                    return

    def _deserted(self) -> bool:
        """Whether the client is gone, though somebody may hold its end of our input."""
        return self._closed.is_set() or os.getppid() != self._parent

    def _unheard(self) -> bool:
        """Whether nobody reads what we answer."""
        watch = select.poll()
        watch.register(self._out, 0)
        return bool(watch.poll(0))

    def _take(self, said: Message | Batch | None) -> None:
        """Answer what a line said, now or when the daemon has."""
        if isinstance(said, Batch):
            together = _Together(sum(not isinstance(part, Note) for part in said.messages), self._answer)
            for part in said.messages:
                self._handle(part, together.add)
        elif said is not None:
            self._handle(said, self._answer)

    def _handle(self, said: Message, answer: Callable[[dict[str, Any] | None], None]) -> None:
        """One message. `answer` is called once for what is owed an answer; with None when it was cancelled."""
        if isinstance(said, Fault):
            answer(said.answer)
        elif isinstance(said, Note):
            if said.method == "notifications/cancelled":
                self._cancel(said.params.get("requestId"))
        elif is_modern(said) and said.method != "server/discover":
            self._forward(said, answer)
        elif said.method == "initialize":
            answer(result(said.id, self._hello(said.params)))
            self._warm()
        elif said.method == "ping":
            answer(result(said.id, {}))
        elif said.method == "tools/list":
            from vaultd.mcp.tools import TOOLS

            answer(result(said.id, {"tools": [tool.listed() for tool in TOOLS.values()]}))
        elif said.method == "tools/call":
            self._forward(said, answer)
        else:
            # `server/discover` too, which some clients try first: they go on with `initialize`, which needs no daemon
            answer(error(said.id, NO_METHOD, f"vaultd offers tools, and has no method {said.method[:60]}."))

    def _hello(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to `initialize`."""
        asked = params.get("protocolVersion")
        protocol = asked if asked in _PROTOCOLS else _PROTOCOLS[-1]
        client = params.get("clientInfo")
        name = client.get("name") if isinstance(client, dict) else None
        self._forwarder.met(protocol, name if isinstance(name, str) else "")
        return {
            "protocolVersion": protocol,
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "vaultd", "version": __version__},
            "instructions": INSTRUCTIONS,
        }

    def _warm(self) -> None:
        """Begin to reach the daemon, so that the first call need not wait; what goes wrong is told to that call."""
        if not self._warmed:
            self._warmed = True
            threading.Thread(target=self._forwarder.warm, name="reach", daemon=True).start()

    def _forward(self, request: Request, answer: Callable[[dict[str, Any] | None], None]) -> None:
        """Have the daemon asked."""
        task = Task(request, answer)
        with self._guard:
            self._tasks[id(task)] = task
            more = self._workers < min(_WORKERS, len(self._tasks))
            self._workers += more
        if more:
            threading.Thread(target=self._ask, name="worker", daemon=True).start()
        self._work.put(task)

    def _ask(self) -> None:
        """A worker: one call after the other."""
        while True:
            task = self._work.get()
            answer = self._forwarder.answer(task)
            with self._guard:
                task.answer(answer)
                del self._tasks[id(task)]

    def _cancel(self, ident: object) -> None:
        """The client does not want an answer any more."""
        with self._guard:
            tasks = [task for task in self._tasks.values() if task.request.id == ident]
        for task in tasks:
            task.cancel()

    def _answer(self, message: object) -> None:
        """Have a message written."""
        if message is not None:
            self._answers.put(written(message))

    def _write(self) -> None:
        """The writer: whole lines, one after the other."""
        with contextlib.suppress(OSError):
            while (data := self._answers.get()) is not None:
                while data:
                    try:
                        data = data[os.write(self._out, data) :]
                    except BlockingIOError:  # the client made its end so, which may be ours too
                        select.select([], [self._out], [], _WATCH_S)
        self._closed.set()


class _Together:
    """The answers to a batch, given as one list when the last is there; nothing when there are none."""

    def __init__(self, owed: int, answer: Callable[[object], None]) -> None:
        self._owed = owed
        self._answers: list[dict[str, Any]] = []
        self._answer = answer
        self._guard = threading.Lock()

    def add(self, message: dict[str, Any] | None) -> None:
        """One more."""
        with self._guard:
            self._owed -= 1
            if message is not None:
                self._answers.append(message)
            if self._owed == 0 and self._answers:
                self._answer(self._answers)
