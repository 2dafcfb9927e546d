"""Ingest against bare file operations, in one run: events a second of both, their ratio, memory, and packing.

    python tests/bench/ingest.py [--events 100000] [--sessions 200] [--sample 5000]

Bare operations are what one event costs at least: read the file, write another, rename it, remove the first, with one
syncfs for each 512. They are measured before and after ingest, on --sample events, and the mean counts.
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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.scratch import Scratch

BATCH = 512
TEXT = "Please look at the loader in src/app.py and make the retry count configurable, then run the tests again. " * 3


def events(scratch: Scratch, cwd: Path, count: int, sessions: int) -> None:
    """Fill the inbox: sessions of prompts, tool calls, turn ends and an end, a second apart."""
    new = scratch.vault / ".vaultd/inbox/new"
    start = int(time.time()) - count - 10
    each = max(4, count // sessions)
    head = f"cwd={cwd}\nroot={cwd}\n"
    for n in range(count):
        native = f"{n // each:08d}-2222-4333-8444-666666666666"
        place, base = n % each, {"session_id": native, "cwd": str(cwd)}
        payload: dict[str, object]
        if place == each - 1 or n == count - 1:
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
        at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(start + n))
        key = f"{start + n}-{uuid.uuid4()}"
        (new / key).write_bytes(
            f"vaultd-event 1\nagent=claude-code\nevent={name}\nat={at}\n{head}\n{json.dumps(payload)}".encode()
        )


def bare(folder: Path, count: int) -> float:
    """Events a second of bare file operations."""
    source, target = folder / "new", folder / "done"
    source.mkdir(parents=True)
    target.mkdir()
    data = b"x" * 700
    for n in range(count):
        (source / str(n)).write_bytes(data)
    libc, handle = ctypes.CDLL(None), os.open(source, os.O_RDONLY)
    began = time.perf_counter()
    for first in range(0, count, BATCH):
        names = [str(n) for n in range(first, min(first + BATCH, count))]
        for name in names:
            content = (source / name).read_bytes()
            (target / f".{name}").write_bytes(content)
            os.rename(target / f".{name}", target / name)  # noqa: PTH104  # the bare operation, as cheap as it can be
        libc.syncfs(handle)
        for name in names:
            os.unlink(source / name)  # noqa: PTH108  # the bare operation, as cheap as it can be
    took = time.perf_counter() - began
    os.close(handle)
    shutil.rmtree(folder)
    return count / took


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
    args = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="vaultd-bench-"))
    try:
        scratch = Scratch(base)
        stores = scratch.init()
        cwd = scratch.checkout()
        from vaultd.engine.passes import Passes

        events(scratch, cwd, args.events, args.sessions)
        before = bare(base / "bare1", args.sample)
        passes = Passes(stores)
        memory: list[tuple[int, float]] = []
        seen = 0

        def progress(done: int, total: int) -> None:
            nonlocal seen
            if done - seen >= total // 10 or done == total:
                seen = done
                memory.append((done, rss()))

        began = time.perf_counter()
        tally = passes.drain(progress=progress)
        took = time.perf_counter() - began
        after = bare(base / "bare2", args.sample)
        rate, reference = args.events / took, (before + after) / 2
        print(f"bare file operations   {before:8.0f} and {after:.0f} events/s (before and after)")
        print(f"ingest                 {rate:8.0f} events/s over {tally.total} events")
        print(f"ratio                  {rate / reference:8.2f} (at least 0.5)")
        print("memory (events: MB)    " + ", ".join(f"{done}: {size:.0f}" for done, size in memory))
        print(f"peak                   {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.0f} MB")
        done = scratch.vault / ".vaultd/done"
        packs = len(list(done.glob("*.jsonl")))
        print(f"done/                  {packs} packs, {sum(1 for p in done.iterdir() if p.is_dir())} folders left")
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
