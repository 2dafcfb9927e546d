"""Run a command under ptrace and kill it, from outside, at one of its durable system calls.

    python tracer.py --below DIR [--kill-at N] [--how before|after|half] [--alone] -- COMMAND ...

Counts, over the command's whole process tree, the system calls that change files below DIR (writes, renames, links,
unlinks, truncations, folders, syncs). At number N (from 0) everything is killed with SIGKILL: *before* the call runs,
*after* it ran, or after *half* of a write's bytes were written. With --alone only the process that made the call's tree
root is killed and its children live on. Prints one JSON line: {"steps": [[call, path], ...], "killed": bool, "code": int}.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
from dataclasses import dataclass, field

TRACEME, CONT_SYSCALL, SETOPTIONS, GET_SYSCALL_INFO, GETREGS, SETREGS = 0, 24, 0x4200, 0x420E, 12, 13
OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10  # TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, TRACEEXEC
WALL = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long

# x86_64 numbers: name, and where the path or descriptor is: ("fd", arg) or ("path", dirfd arg or None, path arg)
CALLS: dict[int, tuple[str, tuple[str, int | None, int]]] = {
    1: ("write", ("fd", None, 0)),
    18: ("pwrite64", ("fd", None, 0)),
    20: ("writev", ("fd", None, 0)),
    74: ("fsync", ("fd", None, 0)),
    75: ("fdatasync", ("fd", None, 0)),
    76: ("truncate", ("path", None, 0)),
    77: ("ftruncate", ("fd", None, 0)),
    82: ("rename", ("path", None, 1)),
    83: ("mkdir", ("path", None, 0)),
    84: ("rmdir", ("path", None, 0)),
    86: ("link", ("path", None, 1)),
    87: ("unlink", ("path", None, 0)),
    258: ("mkdirat", ("path", 0, 1)),
    263: ("unlinkat", ("path", 0, 1)),
    264: ("renameat", ("path", 2, 3)),
    265: ("linkat", ("path", 2, 3)),
    306: ("syncfs", ("fd", None, 0)),
    316: ("renameat2", ("path", 2, 3)),
}


class SyscallInfo(ctypes.Structure):
    _fields_ = [
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("ip", ctypes.c_uint64),
        ("sp", ctypes.c_uint64),
        ("nr", ctypes.c_uint64),
        ("args", ctypes.c_uint64 * 6),
        ("more", ctypes.c_uint64),
    ]


def ptrace(request: int, pid: int, addr: int = 0, data: object = 0) -> int:
    value = ctypes.addressof(data) if isinstance(data, ctypes.Structure | ctypes.Array) else int(data)  # type: ignore[call-overload]  # an int by elimination
    return int(libc.ptrace(request, pid, ctypes.c_void_p(addr), ctypes.c_void_p(value)))


def text_at(pid: int, address: int) -> str:
    """A NUL-terminated string in a process's memory."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            out = b""
            while b"\0" not in out and len(out) < 4096:
                chunk = memory.read(min(256, 4096 - (address + len(out)) % 4096))
                if not chunk:
                    break
                out += chunk
    except OSError:
        return ""
    return os.fsdecode(out.split(b"\0", 1)[0])


def link_of(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def target(pid: int, info: SyscallInfo) -> tuple[str, str] | None:
    """The name of a durable call and the path it changes; None for any other call."""
    known = CALLS.get(info.nr)
    if known is None:
        return None
    name, (kind, folder, arg) = known
    if kind == "fd":
        return name, link_of(f"/proc/{pid}/fd/{info.args[arg]}")
    path = text_at(pid, info.args[arg])
    if not path.startswith("/"):
        base = link_of(f"/proc/{pid}/cwd")
        if folder is not None and ctypes.c_int32(info.args[folder] & 0xFFFFFFFF).value >= 0:
            base = link_of(f"/proc/{pid}/fd/{info.args[folder]}")
        path = os.path.join(base, path)
    return name, path


def halve(pid: int) -> None:
    """Make the write that is about to run write half of its bytes (x86_64: rdx is the count)."""
    registers = (ctypes.c_ulonglong * 27)()
    ptrace(GETREGS, pid, 0, registers)
    registers[12] = registers[12] // 2
    ptrace(SETREGS, pid, 0, registers)


@dataclass
class Trace:
    below: str
    kill_at: int | None
    how: str
    alone: bool
    steps: list[tuple[str, str]] = field(default_factory=list)
    tasks: set[int] = field(default_factory=set)
    due: int = 0
    killed: bool = False
    code: int = 0

    def run(self, command: list[str]) -> None:
        root = os.fork()
        if root == 0:
            ptrace(TRACEME, 0)
            os.execvp(command[0], command)
        os.waitpid(root, WALL)
        ptrace(SETOPTIONS, root, 0, OPTIONS)
        self.tasks.add(root)
        ptrace(CONT_SYSCALL, root)
        while self.tasks:
            try:
                pid, status = os.waitpid(-1, WALL)
            except ChildProcessError:
                break
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                self.tasks.discard(pid)
                if pid == root:
                    self.code = os.waitstatus_to_exitcode(status)
                continue
            self.tasks.add(pid)
            self.stopped(pid, root, status)

    def stopped(self, pid: int, root: int, status: int) -> None:
        number, event = os.WSTOPSIG(status), status >> 16
        deliver = 0
        if number == signal.SIGTRAP | 0x80:
            self.call(pid, root)
        elif not event and number not in (signal.SIGSTOP, signal.SIGTRAP):
            deliver = number
        if not (self.killed and not self.alone):
            ptrace(CONT_SYSCALL, pid, 0, deliver)

    def call(self, pid: int, root: int) -> None:
        info = SyscallInfo()
        ptrace(GET_SYSCALL_INFO, pid, ctypes.sizeof(info), info)
        if info.op == 2 and self.due == pid:  # the chosen call has run
            self.due = 0
            self.kill(root)
            return
        if info.op != 1:
            return
        found = target(pid, info)
        if found is None or not found[1].startswith(self.below):
            return
        self.steps.append(found)
        if self.killed or self.kill_at is None or len(self.steps) - 1 != self.kill_at:
            return
        if self.how == "before":
            self.kill(root)
            return
        if self.how == "half" and found[0] in ("write", "pwrite64"):
            halve(pid)
        self.due = pid

    def kill(self, root: int) -> None:
        self.killed = True
        for pid in [root] if self.alone else list(self.tasks):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--below", required=True)
    parser.add_argument("--kill-at", type=int)
    parser.add_argument("--how", choices=["before", "after", "half"], default="before")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    out = os.dup(1)
    os.dup2(2, 1)
    trace = Trace(os.path.realpath(args.below), args.kill_at, args.how, args.alone)
    trace.run(args.command[1:])
    os.write(out, json.dumps({"steps": trace.steps, "killed": trace.killed, "code": trace.code}).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
