"""Processes of the command line without the time that Python takes to start and to load it: forks of one that has.

`run` is `python -m vaultd ARGS` for a test: a process of its own with its own environment, folder, standard streams and
exit code. What a start decides by itself (locale, interpreter flags) is the first process's: tests of that start their
own.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent


@cache
def _address(flags: str) -> str:
    """Where the first process listens; it ends with this one."""
    folder = tempfile.mkdtemp(prefix="zygote-")
    address = f"{folder}/socket"
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": flags, "LC_ALL": "C.UTF-8"}
    first = subprocess.Popen(
        [sys.executable, "-m", "tests.zygote", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
    )
    assert first.stdout is not None and first.stdout.readline() == b"ready\n"
    atexit.register(first.kill)
    return address


def run(
    args: Sequence[str], *, cwd: Path, env: Mapping[str, str], data: bytes, timeout: float = 120
) -> subprocess.CompletedProcess[bytes]:
    """`vaultd ARGS`; a code below 0 says that it did not end by itself."""
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
        socket.socket(socket.AF_UNIX) as link,
    ):
        stdin.write(data)
        stdin.seek(0)
        link.settimeout(timeout)
        link.connect(_address(env.get("PYTHONWARNINGS", "")))
        request = json.dumps({"args": list(args), "cwd": str(cwd), "env": dict(env)}).encode()
        socket.send_fds(link, [len(request).to_bytes(4, "big")], [f.fileno() for f in (stdin, stdout, stderr)])
        link.sendall(request)
        answer = link.recv(16)
        for stream in (stdout, stderr):
            stream.seek(0)
        return subprocess.CompletedProcess(args, int(answer or b"-1"), stdout.read(), stderr.read())


def _serve(address: str) -> None:
    """Fork for each connection until standard input ends."""
    for module in pkgutil.walk_packages([str(ROOT / "vaultd")], "vaultd."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            link, _ = listening.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listening.close()
                _become(link)
            link.close()


def _become(link: socket.socket) -> None:
    """Be the process that is asked for, and tell its exit code."""
    code = 1
    try:
        size, fds, _, _ = socket.recv_fds(link, 4, 3)
        request = json.loads(link.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        for number, handle in enumerate(fds):
            os.dup2(handle, number)
            os.close(handle)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()
        sys.argv = ["vaultd", *request["args"]]
        from vaultd.__main__ import main

        try:
            code = main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:  # noqa: BLE001 - shown, as Python itself shows it when it ends
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        link.sendall(str(code).encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
