"""Processes, as they are recognised later: of agents, and the daemon. Hooks ask here: it imports next to nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from vaultd.core.event import Process

if TYPE_CHECKING:
    from vaultd.engine.stores import Stores

__all__ = ["alive", "answers", "boot_id", "by_pid", "daemon_process", "own_process", "told_process"]


def boot_id() -> str:
    """This boot's id, "" where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def alive(process: Process) -> bool:
    """Whether this very process is there: same pid, same start time."""
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_bytes()
    except OSError:
        return False
    fields = stat.rpartition(b")")[2].split()
    return len(fields) > 19 and int(fields[19]) == process.start and fields[0] not in (b"Z", b"X")


def own_process(boot: str) -> Process:
    """This process."""
    return by_pid(os.getpid(), boot)


def by_pid(pid: int, boot: str = "") -> Process:
    """The process that has a pid now; one that never lived when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return Process(pid, 0, boot)
    return Process(pid, int(stat.rpartition(b")")[2].split()[19]), boot)


def told_process(room: Path) -> Process | None:
    """The daemon that `daemon.json` in a vault's room tells of, if that very process lives on this boot."""
    try:
        told = json.loads((room / "daemon.json").read_bytes())
        process = Process(int(told["pid"]), int(told["start"]), str(told["boot"]))
        if not Path(str(told["vault"])).samefile(room.parent):
            return None  # the vault was moved here under the daemon of another path
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return process if process.boot == boot_id() and alive(process) else None


def answers(room: Path) -> bool:
    """Whether the daemon that `daemon.json` tells of has opened whatever it answers clients at."""
    try:
        return "ready" in json.loads((room / "daemon.json").read_bytes())
    except (OSError, ValueError, TypeError):
        return False


def daemon_process(stores: Stores) -> Process | None:
    """The running daemon of a vault; None when there is none (whatever an old `daemon.json` says)."""
    return told_process(stores.vault.room)
