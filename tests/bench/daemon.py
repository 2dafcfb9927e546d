"""What the daemon costs and how soon it answers, as a process of its own beside real hooks.

    python tests/bench/daemon.py [--sessions 40] [--killed 5] [--pages 2000] [--idle 60] [--many 10000] [--hooks 300]

Prints, and asserts nothing:

    turn end to provisional handoff, session end to prepared context    from the start of the hook; p95 within 1 s
    SIGKILL of a client to prepared context      within 5 s
    idle processor time, in a vault of --pages   under 1 %
    resident memory, wall time of `vaultd search`
    the hook's latency while --many pages are indexed, beside that with an idle daemon; p99 within 300 ms
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

sys.path.pop(0)  # this folder: its http.py would be taken for Python's
sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.scratch import Scratch, git
from tests.waiting import until
from vaultd.core import frontmatter
from vaultd.core.ids import session_id

AGENT = "claude-code"
WORDS = (
    "loader",
    "retry",
    "parser",
    "schema",
    "index",
    "cache",
    "worker",
    "queue",
    "branch",
    "merge",
    "commit",
    "page",
)


def pages(vault: Path, count: int, folder: str) -> None:
    """Write pages of about 200 words."""
    chance = random.Random(7)
    for number in range(count):
        path = vault / folder / f"{number % 50:02}" / f"n{number:06}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (" ".join(chance.choices(WORDS, k=12)) for _ in range(16))
        path.write_text(f"---\ntags: [bench]\n---\n# Note {number}\n\n" + "\n".join(lines) + "\n", "utf-8")


class Daemon:
    """The daemon of a scratch vault, seen from outside."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch
        scratch.run("up", check=True)
        self.pid = int(json.loads((scratch.vault / ".vaultd/daemon.json").read_bytes())["pid"])

    def stop(self) -> None:
        self.scratch.run("down")

    def cpu(self) -> float:
        """Processor seconds so far, those of its children that ended included."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> tuple[float, float]:
        """Resident MB now and at most."""
        rows = dict(row.split(":", 1) for row in Path(f"/proc/{self.pid}/status").read_text().splitlines())
        return int(rows["VmRSS"].split()[0]) / 1024, int(rows["VmHWM"].split()[0]) / 1024

    def indexed(self) -> bool:
        """Whether the index has all pages."""
        told = self.scratch.json("status", "--json")
        return bool(told["pages"]["indexed"] >= told["pages"]["disk"] and not told["index"]["pending"])

    def settle(self, timeout: float) -> None:
        """Wait until all pages are indexed and the daemon has done what follows."""
        until(self.indexed, timeout, 1.0)
        until(self.at_rest, timeout, 0.01)

    def at_rest(self) -> bool:
        """Whether it used less than a twentieth of a processor for two seconds."""
        before = self.cpu()
        time.sleep(2)
        return self.cpu() - before < 0.1


class Session:
    """One session through the hook, with a word of its own."""

    def __init__(self, scratch: Scratch, cwd: Path, number: int) -> None:
        self.scratch, self.cwd = scratch, cwd
        self.native, self.word = str(uuid.uuid4()), f"word{number:04}{uuid.uuid4().hex[:8]}"
        self.base = {"session_id": self.native, "cwd": str(cwd)}

    def hook(self, event: str, **payload: object) -> float:
        """One event; the seconds that the hook took."""
        before = time.perf_counter()
        self.scratch.hook(AGENT, event, {**self.base, **payload}, self.cwd)
        return time.perf_counter() - before

    def work(self) -> None:
        """A prompt and an edit."""
        self.hook("UserPromptSubmit", prompt=f"Mend the loader for {self.word}", prompt_id=self.native)
        path = f"{self.cwd}/{self.word}.py"
        edit = {"tool_name": "Edit", "tool_input": {"file_path": path}, "tool_response": {"filePath": path}}
        self.hook("PostToolUse", **edit, tool_use_id="t1")

    def left(self) -> bool:
        """Whether it has left a provisional handoff."""
        sid = session_id(AGENT, self.native)
        return any(self.word in p.read_text("utf-8") for p in self.scratch.vault.glob(f"*/*/handoffs/open/{sid}-*.md"))

    def prepared(self) -> bool:
        """Whether the next session in this checkout would be given this one's final handoff."""
        claim = self.scratch.vault / ".vaultd/outbox/at" / str(self.cwd).lstrip("/") / "@vaultd/claim"
        try:
            lines = claim.read_text().splitlines()
            text = claim.with_name("session-start-json").read_text()
            page = frontmatter.parse(Path(lines[0]).read_bytes()).meta.values
        except (OSError, IndexError):
            return False
        return lines[2] == self.native and self.word in text and page.get("provisional") is False


def show(name: str, seconds: Sequence[float], bound: str = "") -> None:
    """One line: count, median, 95th and 99th percentile, the longest, in milliseconds."""
    ordered = sorted(seconds)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 for share in (0.5, 0.95, 0.99, 1.0)]
    figures = "  ".join(f"{word} {value:6.0f}" for word, value in zip(("p50", "p95", "p99", "max"), at, strict=True))
    print(f"{name:44} {len(ordered):4} times  {figures} ms  {bound}", flush=True)


def taken(work: Callable[[], object], probe: Callable[[], bool], timeout: float = 30) -> float:
    """Seconds from the start of some work until a probe is true."""
    before = time.perf_counter()
    work()
    until(probe, timeout, 0.005)
    return time.perf_counter() - before


def contexts(scratch: Scratch, cwd: Path, count: int) -> None:
    """Sessions one after the other: from each turn end and each session end to the prepared context."""
    turns, ends = [], []
    for number in range(count):
        session = Session(scratch, cwd, number)
        session.hook("SessionStart", source="startup")
        session.work()
        said = "I mended it.\n\nNext steps:\n1. Run the tests."
        stop = partial(session.hook, "Stop", last_assistant_message=said)
        turns.append(taken(stop, session.left))
        ends.append(taken(partial(session.hook, "SessionEnd", reason="other"), session.prepared))
    show("turn end to provisional handoff", turns)
    show("session end to prepared context", ends, "(p95 within 1 s)")


def killed(scratch: Scratch, cwd: Path, count: int) -> None:
    """Clients that are killed in the middle of a turn."""
    client = scratch.base / "claude"
    client.symlink_to("/bin/sh")
    took = []
    for number in range(count):
        session = Session(scratch, cwd, 9000 + number)
        payload = scratch.base / "prompt.json"
        payload.write_text(json.dumps({**session.base, "prompt": f"Mend the parser for {session.word}"}))
        tool = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"stdout": ""}}
        again = scratch.base / "tool.json"
        again.write_text(json.dumps({**session.base, **tool, "tool_use_id": "t1"}))
        hook = f"sh {Path(__file__).parents[2]}/hooks/vaultd-hook {AGENT}"
        script = f"{hook} UserPromptSubmit <{payload}; {hook} PostToolUse <{again}; echo ready; read wait; :"
        process = subprocess.Popen(
            [str(client), "-c", script], cwd=cwd, env=scratch.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        until(lambda: not list((scratch.vault / ".vaultd/inbox/new").iterdir()), 10)
        took.append(taken(process.kill, session.prepared))
        process.communicate()
    show("SIGKILL of a client to the final context", took, "(within 5 s)")


def hooks(scratch: Scratch, cwd: Path, count: int) -> list[float]:
    """Seconds that ordinary events take."""
    session = Session(scratch, cwd, 9999)
    tool = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"stdout": ""}}
    return [session.hook("PostToolUse", **tool, tool_use_id=f"t{n}") for n in range(count)]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"sessions": 40, "killed": 5, "pages": 2000, "idle": 60, "many": 10_000, "hooks": 300}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="vaultd-bench-"))
    scratch = Scratch(base)
    scratch.init()
    pages(scratch.vault, args.pages, "notes")
    cwd = scratch.checkout()
    daemon = Daemon(scratch)
    try:
        daemon.settle(300)
        print(f"{args.pages} pages indexed: {daemon.memory()[0]:.0f} MB resident, {daemon.memory()[1]:.0f} at most")
        contexts(scratch, cwd, args.sessions)
        killed(scratch, cwd, args.killed)
        until(lambda: not git("status", "--porcelain", cwd=scratch.vault), 180, 5.0)
        daemon.settle(120)
        idle(daemon, args.idle)
        search = partial(scratch.run, "search", "loader retry", cwd=cwd, check=True)
        show("`vaultd search`", [taken(search, lambda: True) for _ in range(10)])
        show("hook beside an idle daemon", hooks(scratch, cwd, args.hooks))
        pages(scratch.vault, args.many - args.pages, "more")
        until(lambda: not daemon.indexed(), 30, 0.2)
        show(f"hook while {args.many} pages are indexed", hooks(scratch, cwd, args.hooks), "(p99 within 300 ms)")
        print(f"  and then the index was {'complete already' if daemon.indexed() else 'still at it'}")
        print(f"resident memory while indexing: {daemon.memory()[0]:.0f} MB, {daemon.memory()[1]:.0f} at most")
    finally:
        daemon.stop()
        shutil.rmtree(base, ignore_errors=True)
    return 0


def idle(daemon: Daemon, seconds: int) -> None:
    """Processor time and memory of a daemon that has nothing to do."""
    before = daemon.cpu()
    time.sleep(seconds)
    used = daemon.cpu() - before
    print(f"idle for {seconds} s: {used / seconds * 100:.2f} % of a processor (under 1 %), {daemon.memory()[0]:.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
