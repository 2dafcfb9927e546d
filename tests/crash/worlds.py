"""Worlds to kill commands in: a vault and a checkout in a known state, restored before every run.

A world always lies in the same folder, because prepared offers and the index hold absolute paths. Commands are run by
the tracer's server (see tracer.py).
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.crash.oracle import Reference, acknowledged, faults, names_in, observed
from tests.crash.tracer import Request
from tests.scratch import ROOT, Scratch

__all__ = ["AREAS", "Plan", "Run", "Server", "World", "age_locks", "points"]

PRELOADED = (
    "vaultd.cli.main",
    "vaultd.cli.commands.ingest",
    "vaultd.engine.once",
    "vaultd.engine.setup",
    "vaultd.engine.manual",
    "whoosh.writing",
    "whoosh.qparser",
    "markdown_it",
    "yaml",
)
LOCK_AGE_S = 600.0
"""A lock file this old can be taken for one of a git that died."""

AREAS = {
    "vault": (["vault"], ["vault/.git/"]),
    "pages": (["vault"], ["vault/.git/", "vault/.vaultd/outbox/"]),
    "git": (["vault/.git/"], []),
    "index": (["home/.cache/"], []),
    "room": (["vault/.vaultd/", "vault/projects/", "home/.local/"], []),
    "all": (["vault", "home"], []),
}
"""Where a durable step counts: (path prefixes, exceptions) below the world's folder."""

SYNCS = frozenset({"fsync", "fdatasync", "syncfs", "sync_file_range"})
WRITES = frozenset({"write", "pwrite64", "sendfile", "copy_file_range"})

Step = tuple[str, str, str]
"""A durable call: its name, its path below the world, the program that made it."""


@dataclass(frozen=True)
class Run:
    """What a command did, and its end."""

    steps: list[Step]
    killed: bool
    code: int
    out: str
    err: str


class Server:
    """The process that runs commands under ptrace."""

    def __init__(self) -> None:
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("tracer.py")), *PRELOADED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def flaw(self) -> str:
        """Why this machine cannot trace; "" when it can."""
        if sys.platform != "linux" or platform.machine() != "x86_64":
            return "the tracer knows the system calls of Linux on x86_64 only"
        told = self.ask(Request(["true"], "/", dict(os.environ)))
        return "" if told["code"] == 0 else "ptrace or seccomp is not permitted here"

    def ask(self, request: Request) -> dict[str, Any]:
        """One run."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(asdict(request)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the tracer died"
        told: dict[str, Any] = json.loads(answer)
        return told


@dataclass(frozen=True)
class Plan:
    """A state of the world and the command that is killed in it. `prepare` makes the state and leaves undone events in
    the inbox. `again` is run afterwards, in order; its exit codes must be among `codes`. `masked`: a regular expression
    for what two runs may say differently on a page. `status`: what git has left to commit in the end, the person's.
    With `later` a lock that a killed git left is old by then.
    """

    name: str
    prepare: Callable[[Scratch, Path], None]
    command: tuple[str, ...] = ("ingest",)
    again: tuple[tuple[str, ...], ...] = (("ingest",),)
    codes: frozenset[int] = frozenset({0})
    masked: str = ""
    status: str = ""
    later: bool = False


@dataclass
class World:
    """One plan's world at `place`, kept below `store` to be restored from."""

    plan: Plan
    place: Path
    store: Path
    server: Server
    keys: list[str] = field(default_factory=list)
    _reference: Reference | None = None
    _steps: dict[str, list[Step]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scratch = Scratch(self.place, extra={"PYTHONHASHSEED": "0"})
        checkout = self.scratch.checkout()
        self.plan.prepare(self.scratch, checkout)
        self.keys = delivered(self.scratch.vault)
        self.keep()

    @property
    def reference(self) -> Reference:
        """What an undisturbed run leaves; it must be without fault itself."""
        if self._reference is None:
            self.restore()
            run = self.run()
            assert run.code == 0, run.err
            self.recover()
            self._reference = Reference.of(self.scratch, self.plan.masked)
            found = faults(self.scratch, self.keys, self._reference)
            assert not found, "\n".join(found)
            assert self._reference.status == self.plan.status
        return self._reference

    def steps(self, area: str) -> list[Step]:
        """The durable steps of an undisturbed run in one area."""
        if area not in self._steps:
            self.restore()
            self._steps[area] = self.run(area=area).steps
        return self._steps[area]

    def keep(self) -> None:
        """Take the present state for the one that is restored."""
        shutil.rmtree(self.store, ignore_errors=True)
        subprocess.run(["cp", "-a", self.place, self.store], check=True)

    def restore(self) -> None:
        """Bring the world back to its state before the command."""
        for entry in self.place.iterdir():  # the folder itself may be a mount point
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        subprocess.run(["cp", "-a", f"{self.store}/.", self.place], check=True)

    def run(
        self,
        command: Sequence[str] = (),
        *,
        area: str = "all",
        kill_at: int | None = None,
        how: str = "before",
        who: str = "all",
        trace: bool = True,
    ) -> Run:
        """The plan's command, or another, as a process that is killed or not."""
        words = [sys.executable, "-m", "vaultd", *(command or self.plan.command)]
        return self.execute(words, area=area, kill_at=kill_at, how=how, who=who, trace=trace, fork=True)

    def execute(
        self,
        words: Sequence[str],
        *,
        area: str,
        stdin: str = os.devnull,
        kill_at: int | None = None,
        how: str = "before",
        who: str = "all",
        trace: bool = True,
        fork: bool = False,
    ) -> Run:
        """Any command in the checkout."""
        prefix = f"{os.path.realpath(self.place)}/"
        below, but = AREAS[area]
        request = Request(
            list(words),
            cwd=str(self.place / "project"),
            env=self.scratch.environ,
            below=[prefix + name for name in below],
            but=[prefix + name for name in but],
            stdin=stdin,
            kill_at=kill_at,
            how=how,
            who=who,
            fork=fork,
            trace=trace,
        )
        told = self.server.ask(request)
        steps = [(call, path.removeprefix(prefix), program) for call, path, program in told["steps"]]
        return Run(steps, told["killed"], told["code"], told["out"], told["err"])

    def recover(self) -> None:
        """What happens after a crash sooner or later: another pass, and one more when a killed git left a lock."""
        if self.plan.later:
            age_locks(self.scratch.vault)
        for command in self.plan.again:
            run = self.run(command, trace=False)
            assert run.code in self.plan.codes, run.err
        if age_locks(self.scratch.vault):
            run = self.run(("ingest",), trace=False)
            assert run.code == 0, run.err

    def killed(self, area: str, number: int, how: str, who: str = "all", *, then: int | None = None) -> list[str]:
        """Restore, kill at one step, recover; everything that is wrong then, each with the step.

        `then`: the first try to recover is killed before its step of this number.
        """
        reference = self.reference
        self.restore()
        run = self.run(area=area, kill_at=number, how=how, who=who)
        if not run.killed:
            assert run.code == 0, run.err
        step = " ".join(run.steps[number]) if run.killed else "the end"
        if then is not None:
            self.run(area="all", kill_at=then)
        found = acknowledged(self.scratch.vault, self.keys)
        try:
            self.recover()
            found += faults(self.scratch, self.keys, reference)
        except Exception as error:  # noqa: BLE001 - whatever it is, the step has to be told with it
            found.append(f"{type(error).__name__}: {error}")
        again = "" if then is None else f", then before step {then}"
        told = f"{self.plan.name}/{area}: killed ({who}) {how} step {number} ({step}){again}"
        return [f"{told}: {fault}" for fault in found]


def points(steps: Sequence[Step]) -> Iterator[tuple[int, str]]:
    """Where to kill, so that each state is met that a kill at one of these steps can leave, and none twice.

    After a step is what is before the next one; and before the step that follows a sync is what is before the sync. So
    of all (step, before or after or half) these remain: before each step but those, half of each write, and the end.
    """
    for number, (call, _, _) in enumerate(steps):
        if number == 0 or steps[number - 1][0] not in SYNCS:
            yield number, "before"
        if call in WRITES:
            yield number, "half"
    if steps:
        yield len(steps) - 1, "after"


def delivered(vault: Path) -> list[str]:
    """Keys of all events that were ever delivered to a vault."""
    return sorted({*names_in(vault / ".vaultd/inbox/new"), *(key for _, _, key in observed(vault))})


def age_locks(vault: Path) -> bool:
    """Make git's left locks look old; whether there are any."""
    locks = [Path(folder, n) for folder, _, names in os.walk(vault / ".git") for n in names if n.endswith(".lock")]
    for lock in locks:
        os.utime(lock, (time.time() - LOCK_AGE_S,) * 2)
    return bool(locks)
