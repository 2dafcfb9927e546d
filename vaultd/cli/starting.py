"""Starting the daemon in the background and stopping it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vaultd.core.event import Process
from vaultd.engine.processes import alive, answers, by_pid, daemon_process, told_process
from vaultd.errors import HeldError, VaultdError

if TYPE_CHECKING:
    from vaultd.engine.stores import Stores

__all__ = ["start_at", "start_daemon", "stop_daemon"]

_START_S = 60.0
"""One that cannot start ends at once; one that is alive is only slow: eight started together on two busy processors
took up to 14.6 s.
"""
_STOP_S = 20.0


def start_daemon(stores: Stores) -> tuple[Process, bool]:
    """The running daemon, and whether it was started now. VaultdError with the end of its log when none comes up."""
    return start_at(stores.vault.root, stores.config.environ)


def start_at(root: Path, environ: Mapping[str, str]) -> tuple[Process, bool]:
    """The same for the vault in a folder; a new daemon gets this environment, and is nobody's child."""
    room = root / ".vaultd"
    running = told_process(room)
    if running is not None:
        return running, False
    log = room / "daemon.log"
    before = _size(log)
    started = _start(
        [sys.executable, "-P", "-m", "vaultd", "--vault", str(root), "serve", "--log", str(log)], environ, log
    )
    deadline, pause = time.monotonic() + _START_S, threading.Event()
    while time.monotonic() < deadline:
        running = told_process(room)
        if running is not None:
            if running.pid != started.pid:
                _take_back(started, deadline)
            while not answers(room) and alive(running) and time.monotonic() < deadline:
                pause.wait(0.02)
            return running, running.pid == started.pid
        if not alive(started) and told_process(room) is None:
            break
        pause.wait(0.02)
    said = log.read_bytes()
    said = said[before:] if len(said) >= before else said  # else the log was begun anew
    tail = said.decode("utf-8", "replace").strip().splitlines()[-3:]
    raise VaultdError(f"The daemon did not start. The end of {log}:\n  " + "\n  ".join(tail))


def _take_back(attempt: Process, deadline: float) -> None:
    """End a daemon of ours that another one was quicker than. It would see that and end, but on a busy machine that
    takes longer than anybody waits, and nobody shall find it later.
    """
    pause = threading.Event()
    while alive(attempt) and time.monotonic() < deadline:
        with suppress(ProcessLookupError):
            os.kill(attempt.pid, signal.SIGTERM)
        pause.wait(0.02)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


_DETACHED = """
import os, sys
pid = os.fork()
if pid:
    print(pid, flush=True)
else:
    os.setsid()
    os.dup2(2, 1)
    os.execv(sys.argv[1], sys.argv[1:])
"""
"""Starts a command in a session of its own, as nobody's child: a client that ends whatever it started, and what that
started, does not find it.
"""


def _start(command: Sequence[str], environ: Mapping[str, str], log: Path) -> Process:
    """Start a command, its output added to a log."""
    with open(log, "ab") as out:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _DETACHED, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=out,
            cwd="/",
            env=dict(environ),
            check=True,
        )
    return by_pid(int(done.stdout))


def stop_daemon(stores: Stores) -> int:
    """Stop the daemon and wait until it is gone; its pid, 0 when none ran. HeldError when it does not end."""
    running = daemon_process(stores)
    if running is None:
        return 0
    os.kill(running.pid, signal.SIGTERM)
    deadline, pause = time.monotonic() + _STOP_S, threading.Event()
    while alive(running):
        if time.monotonic() > deadline:
            raise HeldError(
                f"The daemon (pid {running.pid}) still works after {_STOP_S:.0f} s. "
                "Try again, or kill it: no event is lost."
            )
        pause.wait(0.05)
    return running.pid
