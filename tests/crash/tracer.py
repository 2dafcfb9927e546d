"""Runs commands under ptrace and kills them, from outside, at one of their durable system calls.

A server of its own process: one request a line on standard input (JSON, the fields of `Request`), one answer a line on
standard output: {"steps": [[call, path, program], ...], "killed": bool, "code": int, "out": str, "err": str}.

Counted are, over the command's whole process tree and over whatever it leaves behind, the system calls that change
files below the given folders: creating, writing, renaming, linking, removing, truncating, changing modes, syncing. At
number `kill_at` (from 0) everything is killed with SIGKILL: *before* the call runs, *after* it ran, or after *half* of
a write's bytes were written. `who` may instead be `root`, the first process alone, or `caller`, the process that made
the call.

A seccomp filter stops only at these calls, so that a traced run is nearly as fast as any. With `fork` a command that
begins with `python -m` runs in a fork of this process, which has loaded the modules before: a process like any other,
only started faster.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import runpy
import signal
import struct
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TRACEME, CONT, SYSCALL, SETOPTIONS, GETREGS, SETREGS, GET_SYSCALL_INFO = 0, 7, 24, 0x4200, 12, 13, 0x420E
OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x100000  # TRACESYSGOOD, FORK, VFORK, CLONE, EXEC, SECCOMP, EXITKILL
EVENT_SECCOMP = 7
WALL = 0x40000000
AT_CREATE, AT_TRUNCATE = os.O_CREAT, os.O_TRUNC
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long

RDX, R10, R8 = 12, 7, 9


@dataclass(frozen=True)
class Call:
    """A durable call: which argument is its file (a descriptor), or its path and the folder that is relative to;
    `old`: the path that a rename takes it from, and its folder; `count`: the register of how many bytes it writes;
    `flags`: the argument that must ask for creation or truncation.
    """

    name: str
    fd: int | None = None
    path: int | None = None
    at: int | None = None
    old: tuple[int, int | None] | None = None
    count: int | None = None
    flags: int | None = None


# By x86_64 number. Of calls with two paths the new one counts.
CALLS: dict[int, Call] = {
    1: Call("write", fd=0, count=RDX),
    2: Call("open", path=0, flags=1),
    18: Call("pwrite64", fd=0, count=RDX),
    20: Call("writev", fd=0),
    40: Call("sendfile", fd=0, count=R10),
    74: Call("fsync", fd=0),
    75: Call("fdatasync", fd=0),
    76: Call("truncate", path=0),
    77: Call("ftruncate", fd=0),
    82: Call("rename", path=1, old=(0, None)),
    83: Call("mkdir", path=0),
    84: Call("rmdir", path=0),
    85: Call("creat", path=0),
    86: Call("link", path=1),
    87: Call("unlink", path=0),
    88: Call("symlink", path=1),
    90: Call("chmod", path=0),
    91: Call("fchmod", fd=0),
    257: Call("openat", path=1, at=0, flags=2),
    258: Call("mkdirat", path=1, at=0),
    263: Call("unlinkat", path=1, at=0),
    264: Call("renameat", path=3, at=2, old=(1, 0)),
    265: Call("linkat", path=3, at=2),
    266: Call("symlinkat", path=2, at=1),
    268: Call("fchmodat", path=1, at=0),
    277: Call("sync_file_range", fd=0),
    285: Call("fallocate", fd=0),
    306: Call("syncfs", fd=0),
    316: Call("renameat2", path=3, at=2, old=(1, 0)),
    326: Call("copy_file_range", fd=2, count=R8),
}


class SyscallInfo(ctypes.Structure):
    """What the kernel tells of a stop (struct ptrace_syscall_info)."""

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


def filter_program() -> bytes:
    """BPF: stop at the calls of `CALLS` (opening only when it may create or truncate), let every other one pass."""
    load, equal, some, give = 0x20, 0x15, 0x45, 0x06
    trace, allow = 0x7FF00000, 0x7FFF0000
    rows: list[tuple[int, int, int, int]] = [(load, 0, 0, 4), (equal, 1, 0, 0xC000003E), (give, 0, 0, allow)]
    rows.append((load, 0, 0, 0))
    for number, call in CALLS.items():
        if call.flags is None:
            rows += [(equal, 0, 1, number), (give, 0, 0, trace)]
        else:
            rows += [(equal, 0, 4, number), (load, 0, 0, 16 + 8 * call.flags), (some, 0, 1, AT_CREATE | AT_TRUNCATE)]
            rows += [(give, 0, 0, trace), (give, 0, 0, allow)]
    rows.append((give, 0, 0, allow))
    return b"".join(struct.pack("HBBI", *row) for row in rows)


def install_filter() -> bool:
    """Let the kernel stop this process and all its children at durable calls."""
    program = filter_program()
    rows = ctypes.create_string_buffer(program, len(program))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(rows)))
    no_new_privileges, set_seccomp = 38, 22
    return not (libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, 2, head, 0, 0))


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
        return str(Path(path).readlink())
    except OSError:
        return ""


def program_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""


def target(pid: int, call: Call, info: SyscallInfo) -> str:
    """The path of the file that a call changes."""
    if call.fd is not None:
        return link_of(f"/proc/{pid}/fd/{info.args[call.fd]}")
    return argument(pid, info, call.path or 0, call.at)


def argument(pid: int, info: SyscallInfo, number: int, at: int | None) -> str:
    """A path among a call's arguments, absolute; `at`: the argument that names the folder it is relative to."""
    path = text_at(pid, info.args[number])
    if path.startswith("/"):
        return path
    base = link_of(f"/proc/{pid}/cwd")
    if at is not None and ctypes.c_int32(info.args[at] & 0xFFFFFFFF).value >= 0:
        base = link_of(f"/proc/{pid}/fd/{info.args[at]}")
    return os.path.normpath(f"{base}/{path}")


def halve(pid: int, register: int) -> None:
    """Make the write that is about to run write half of its bytes."""
    registers = (ctypes.c_ulonglong * 27)()
    ptrace(GETREGS, pid, 0, registers)
    registers[register] = registers[register] // 2
    ptrace(SETREGS, pid, 0, registers)


@dataclass
class Request:
    """One run. `below`, `but`: path prefixes that count and that do not; `stdin`: a file that is given to the command;
    `trace`: false for a run that is only waited for.
    """

    command: list[str]
    cwd: str
    env: dict[str, str]
    below: list[str] = field(default_factory=list)
    but: list[str] = field(default_factory=list)
    kill_at: int | None = None
    how: str = "before"
    who: str = "all"
    stdin: str = os.devnull
    fork: bool = False
    trace: bool = True


@dataclass
class Trace:
    """A run in progress."""

    request: Request
    seen: Callable[[str, str, str], None] | None = None
    steps: list[tuple[str, str, str]] = field(default_factory=list)
    tasks: set[int] = field(default_factory=set)
    root: int = 0
    due: int = 0
    doomed: set[int] = field(default_factory=set)
    killed: bool = False
    code: int = 0

    def run(self, out: int, err: int) -> None:
        """Run the command to its end, and all that it started to theirs."""
        self.root = os.fork()
        if self.root == 0:
            self.become(out, err)
        if not self.request.trace:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.root, 0)[1])
            return
        os.waitpid(self.root, WALL)
        ptrace(SETOPTIONS, self.root, 0, OPTIONS)
        self.tasks.add(self.root)
        ptrace(CONT, self.root)
        while self.tasks:
            try:
                pid, status = os.waitpid(-1, WALL)
            except ChildProcessError:
                break
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                self.tasks.discard(pid)
                if pid == self.root:
                    self.code = os.waitstatus_to_exitcode(status)
                continue
            self.tasks.add(pid)
            self.stopped(pid, status)

    def become(self, out: int, err: int) -> None:
        """In the child: turn into the command. Never returns."""
        code = 70
        try:
            given = os.open(self.request.stdin, os.O_RDONLY)
            for number, handle in enumerate((given, out, err)):
                os.dup2(handle, number)
            os.chdir(self.request.cwd)
            if self.request.trace:
                ptrace(TRACEME, 0)
                os.kill(os.getpid(), signal.SIGSTOP)
                if not install_filter():
                    os._exit(71)
            if not self.request.fork:
                os.execvpe(self.request.command[0], self.request.command, self.request.env)
            os.environ.clear()
            os.environ.update(self.request.env)
            sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode) for n, mode in enumerate("rww"))
            sys.argv = ["-m", *self.request.command[3:]]
            runpy.run_module(self.request.command[2], run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        except BaseException:  # noqa: BLE001 - whatever it is, this process ends here and shows it
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def stopped(self, pid: int, status: int) -> None:
        number, event = os.WSTOPSIG(status), status >> 16
        if self.killed and (self.request.who == "all" or pid in self.doomed):
            self.send_kill(pid)
            return
        if event == EVENT_SECCOMP:
            self.call(pid)
        elif number == signal.SIGTRAP | 0x80:  # the chosen call has run
            self.kill(pid) if pid == self.due else ptrace(CONT, pid)
        else:
            silent = event or number in (signal.SIGSTOP, signal.SIGTRAP)
            ptrace(CONT, pid, 0, 0 if silent else number)

    def call(self, pid: int) -> None:
        """A process is about to make a durable call."""
        info = SyscallInfo()
        ptrace(GET_SYSCALL_INFO, pid, ctypes.sizeof(info), info)
        call = CALLS[info.nr]
        path = target(pid, call, info)
        counts = path.startswith(tuple(self.request.below)) and not path.startswith(tuple(self.request.but) or ("\0",))
        if not counts:
            ptrace(CONT, pid)
            return
        if self.seen is not None:
            self.seen(call.name, path, argument(pid, info, *call.old) if call.old else "")
        self.steps.append((call.name, path, program_of(pid)))
        if self.killed or len(self.steps) - 1 != self.request.kill_at:
            ptrace(CONT, pid)
        elif self.request.how == "before":
            self.kill(pid)
        else:
            if self.request.how == "half" and call.count is not None:
                halve(pid, call.count)
            self.due = pid
            ptrace(SYSCALL, pid)

    def kill(self, caller: int) -> None:
        self.killed, self.due = True, 0
        chosen = {"all": set(self.tasks), "root": {self.root}, "caller": {caller}}[self.request.who]
        self.doomed = chosen
        for pid in chosen:
            self.send_kill(pid)
        if caller not in chosen:
            ptrace(CONT, caller)

    @staticmethod
    def send_kill(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def answer(request: Request, seen: Callable[[str, str, str], None] | None = None) -> dict[str, Any]:
    """Carry one request out. `seen` is told each step before it runs: call, path, and what a rename's old path was."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        trace = Trace(request, seen)
        trace.run(out.fileno(), err.fileno())
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return {
        "steps": trace.steps,
        "killed": trace.killed,
        "code": trace.code,
        "out": texts[0],
        "err": texts[1],
    }


def serve() -> int:
    """Answer requests until standard input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for module in sys.argv[1:]:
        __import__(module)
    for row in sys.stdin:
        replies.write(json.dumps(answer(Request(**json.loads(row)))) + "\n")
        replies.flush()
    return 0


if __name__ == "__main__":
    sys.exit(serve())
