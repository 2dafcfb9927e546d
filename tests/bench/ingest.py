"""Ingest against bare file operations, in one run: events a second of both, their ratio, memory, and packing.

    python tests/bench/ingest.py [--events 100000] [--sessions 200] [--sample 5000] [--rounds 5]

Bare operations are what one event costs at least: read the file, write another in its session's folder, rename it,
remove the first, with one syncfs for each 512. To make a file takes from 10 to 400 microseconds on ext4, depending on
what was deleted in the last minute; so --rounds times in turn the bare operations and ingest of --sample events are
measured, of sessions that go on (each event has a file of its own), and the medians compared. Then --events of sessions
that end are taken in at once, between two more measurements of bare operations.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.scratch import Scratch
from vaultd.engine.passes import Passes

BATCH = 512
SESSION = 500
TEXT = "Please look at the loader in src/app.py and make the retry count configurable, then run the tests again. " * 3


def events(scratch: Scratch, cwd: Path, count: int, sessions: int, *, end: bool = True) -> None:
    """Fill the inbox: sessions of prompts, tool calls, turn ends and (unless they go on) an end."""
    new = scratch.vault / ".vaultd/inbox/new"
    every = 1 if end else 0.2  # the last event of a session that goes on is not half an hour old
    start = time.time() - count * every - 10
    each = max(4, count // sessions)
    head = f"cwd={cwd}\nroot={cwd}\n"
    for n in range(count):
        native = f"{n // each:08d}-{2222 if end else 3333}-4333-8444-666666666666"
        place, base = n % each, {"session_id": native, "cwd": str(cwd)}
        payload: dict[str, object]
        if end and (place == each - 1 or n == count - 1):
            name, payload = "SessionEnd", {**base, "reason": "other"}
        elif place % 50 == 0:
            name, payload = "UserPromptSubmit", {**base, "prompt": f"{TEXT} {n}", "prompt_id": str(n)}
        elif place % 50 == 49:
            name, payload = "Stop", {**base, "last_assistant_message": TEXT}
        else:
            name = "PostToolUse"
            call = {
                "tool_name": "Bash",
                "tool_input": {"command": f"make part-{n}"},
                "tool_response": {"stdout": TEXT, "stderr": ""},
            }
            payload = {**base, **call, "tool_use_id": f"t{n}"}
        at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(start + n * every))
        key = f"{int(start + n * every)}-{uuid.uuid4()}"
        (new / key).write_bytes(
            f"vaultd-event 1\nagent=claude-code\nevent={name}\nat={at}\n{head}\n{json.dumps(payload)}".encode()
        )


@dataclass
class Rate:
    """What one event took, in microseconds: on the clock and of the processor."""

    wall: float
    cpu: float

    @staticmethod
    def of(count: int, work: Callable[[], object]) -> Rate:
        """Measure the work of so many events."""
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        return Rate((time.perf_counter() - wall) / count * 1e6, (time.process_time() - cpu) / count * 1e6)

    def __str__(self) -> str:
        return f"{1e6 / self.wall:8.0f} events/s, {self.wall:6.0f} us each, {self.cpu:5.0f} of them CPU"


def bare(folder: Path, count: int) -> Rate:
    """Bare file operations."""
    source, target = folder / "new", folder / "done"
    source.mkdir(parents=True)
    for n in range(0, count, SESSION):
        (target / str(n // SESSION)).mkdir(parents=True)
    data = b"x" * 700
    for n in range(count):
        (source / str(n)).write_bytes(data)
    handle = os.open(source, os.O_RDONLY)
    rate = Rate.of(count, lambda: bare_operations(source, target, handle, count))
    os.close(handle)
    return rate


def bare_operations(source: Path, target: Path, handle: int, count: int) -> None:
    """Move so many files from one folder to another, as carefully as ingest does."""
    libc = ctypes.CDLL(None)
    for first in range(0, count, BATCH):
        names = [str(n) for n in range(first, min(first + BATCH, count))]
        for name in names:
            content = (source / name).read_bytes()
            session = target / str(int(name) // SESSION)
            (session / f".{name}").write_bytes(content)
            os.rename(session / f".{name}", session / name)  # noqa: PTH104  # the bare operation
        libc.syncfs(handle)
        for name in names:
            os.unlink(source / name)  # noqa: PTH108  # the bare operation


def going(scratch: Scratch, count: int) -> Rate:
    """Ingest of sessions that go on, in a vault of its own."""
    stores = scratch.init()
    events(scratch, scratch.checkout(), count, max(1, count // SESSION), end=False)
    return Rate.of(count, Passes(stores).drain)


def report(what: str, ingest: list[Rate], bare: list[Rate]) -> None:
    """Print the rates, and what part of the bare operations' rate ingest reaches."""
    print(what)
    for rate in bare:
        print(f"  bare operations    {rate}")
    for rate in ingest:
        print(f"  ingest             {rate}")
    ratio = median(rate.wall for rate in bare) / median(rate.wall for rate in ingest)
    print(f"  ratio              {ratio:8.2f} (at least 0.5)")


def rss() -> float:
    """This process's resident memory in MB."""
    for row in Path("/proc/self/status").read_text().splitlines():
        if row.startswith("VmRSS"):
            return int(row.split()[1]) / 1024
    return 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--sample", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="vaultd-bench-"))
    try:
        scratch = Scratch(base)
        stores = scratch.init()
        cwd = scratch.checkout()
        bares, goings = [], []
        for n in range(args.rounds):
            bares.append(bare(base / f"bare{n}", args.sample))
            goings.append(going(Scratch(base / f"going{n}"), args.sample))
        passes = Passes(stores)
        events(scratch, cwd, args.events, args.sessions)
        before = bare(base / "before", args.sample)
        memory: list[tuple[int, float]] = []
        seen = 0

        def progress(done: int, total: int) -> None:
            nonlocal seen
            if done - seen >= total // 10 or done == total:
                seen = done
                memory.append((done, rss()))

        whole = Rate.of(args.events, lambda: passes.drain(progress=progress))
        after = bare(base / "after", args.sample)
        done = scratch.vault / ".vaultd/done"
        packs, folders = len(list(done.glob("*.jsonl"))), sum(1 for p in done.iterdir() if p.is_dir())
        report("sessions that go on", goings, bares)
        report("sessions that end", [whole], [before, after])
        print("memory (events: MB)    " + ", ".join(f"{done}: {size:.0f}" for done, size in memory))
        print(f"peak                   {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.0f} MB")
        print(f"done/                  {packs} packs, {folders} folders left")
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
