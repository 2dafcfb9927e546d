"""A vault as the hook sees it, and real hook processes run against it."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.waiting import until
from vaultd.core.event import Delivery, parse_delivery
from vaultd.core.ids import KEY, Key

HOOK = Path(__file__).resolve().parents[2] / "hooks/vaultd-hook"
SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "ash"]}
START = b'{"session_id":"5e551011-aaaa","cwd":"/elsewhere","hook_event_name":"SessionStart","source":"startup"}'
NAME = "0123456789-g1"
ORIGIN = "0f6c8f60-78df-4b54-a539-2264768981b0"
TEXT = b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"a \xe2\x82\xac b"}}\n'


@dataclass(frozen=True)
class Result:
    """What a hook process left behind; by then everything it started has ended, too."""

    code: int
    out: bytes
    err: bytes


@dataclass
class Running:
    """A started hook process. `lifeline` ends when it and all its descendants have ended."""

    process: subprocess.Popen[bytes]
    lifeline: int

    def finish(self, payload: bytes = b"", timeout: float = 30.0) -> Result:
        """Give the payload, wait for the hook and for everything that it started.

        BrokenPipeError when the hook did not read all of the payload.
        """
        if self.process.stdin is not None:
            self.process.stdin.write(payload)
            self.process.stdin.close()
            self.process.stdin = None
        out, err = self.process.communicate(timeout=timeout)
        self.settle(timeout)
        return Result(self.process.returncode, out or b"", err or b"")

    def settle(self, timeout: float = 30.0) -> None:
        """Wait until no descendant runs."""
        ready, _, _ = select.select([self.lifeline], [], [], timeout)
        assert ready, "something that the hook started still runs"
        assert os.read(self.lifeline, 1) == b""
        os.close(self.lifeline)


@dataclass
class Room:
    """A scratch home with a vault in it."""

    base: Path
    shell: Sequence[str]
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home = self.base / "home"
        self.vault = self.base / "vault"
        self.room = self.vault / ".vaultd"
        self.spool = self.home / ".local/state/vaultd/spool"
        self.handoffs = self.vault / "projects/repo/handoffs"
        self.home.mkdir()
        self.make_vault()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "VAULTD_VAULT": str(self.vault)}

    def make_vault(self) -> None:
        """Lay the vault's working room out, with a map as the engine writes it."""
        for folder in ("inbox/tmp", "inbox/new", "outbox/map", "outbox/at"):
            (self.room / folder).mkdir(parents=True)
        for folder in ("open", "accepted"):
            (self.handoffs / folder).mkdir(parents=True)
        (self.room / "vault-id").write_text("0123456789abcdef\n")
        self.map("claude-code.SessionStart", "session-start-json start -")
        self.map("claude-code.Stop", "- - drain")
        self.map("claude-code.PostToolUse", "- - -")

    def map(self, name: str, line: str) -> None:
        (self.room / "outbox/map" / name).write_text(line + "\n")

    def start(
        self,
        event: str = "PostToolUse",
        *more: str,
        agent: str = "claude-code",
        cwd: Path | bytes | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        wrapper: Sequence[str] = (),
        hook: Path = HOOK,
    ) -> Running:
        """Start a hook process; `wrapper` is a command line that runs what follows it."""
        merged: dict[str, str | None] = {**self.env, **(env or {})}
        read, write = os.pipe()
        process = subprocess.Popen(
            [*wrapper, *self.shell, str(hook), agent, event, *more],
            cwd=self.base if cwd is None else cwd,
            env={name: value for name, value in merged.items() if value is not None},
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            pass_fds=[write],
            start_new_session=True,
        )
        os.close(write)
        return Running(process, read)

    def run(
        self,
        event: str = "PostToolUse",
        payload: bytes = b"{}",
        *,
        agent: str = "claude-code",
        cwd: Path | bytes | None = None,
        env: Mapping[str, str | None] | None = None,
        stdout: int = subprocess.PIPE,
        wrapper: Sequence[str] = (),
        hook: Path = HOOK,
    ) -> bytes:
        """Run the hook to its end; what it printed. It must exit 0 and say nothing on stderr."""
        started = self.start(event, agent=agent, cwd=cwd, env=env, stdout=stdout, wrapper=wrapper, hook=hook)
        result = started.finish(payload)
        assert (result.code, result.err) == (0, b"")
        return result.out

    def deliveries(self, folder: Path | None = None) -> list[Delivery]:
        """Everything in `new`, parsed; each must be a whole event file with a proper key, and no temp be left."""
        box = folder or self.room / "inbox"
        assert list((box / "tmp").iterdir()) == []
        found = []
        for path in sorted((box / "new").iterdir()):
            assert KEY.match(path.name)
            delivery = parse_delivery(Key(path.name), path.read_bytes())
            assert delivery is not None
            found.append(delivery)
        return found

    def only(self, folder: Path | None = None) -> Delivery:
        """The one delivery there is; taken out."""
        [delivery] = self.deliveries(folder)
        ((folder or self.room / "inbox") / "new" / delivery.key).unlink()
        return delivery

    def place(self, path: Path) -> Path:
        """Where context for sessions that start at `path` is prepared."""
        return self.room / "outbox/at" / str(path).lstrip("/") / "@vaultd"

    def offer(
        self,
        path: Path,
        name: str = NAME,
        *,
        native: str = ORIGIN,
        owner: str = "0",
        after: str | None = "0",
        text: bytes = TEXT,
    ) -> None:
        """Put a handoff up for sessions that start at `path`."""
        (self.handoffs / f"open/{name}.md").write_text(f"handoff {name}\n")
        place = self.place(path)
        place.mkdir(parents=True, exist_ok=True)
        (place / "session-start-json").write_bytes(text)
        lines = [f"{self.handoffs}/open/{name}.md", f"{self.handoffs}/accepted/{name}.md", native, owner]
        (place / "claim").write_text("".join(line + "\n" for line in [*lines, *([] if after is None else [after])]))

    def state(self, name: str = NAME) -> str:
        """The folder that the handoff is in."""
        [found] = [f for f in ("open", "accepted") if (self.handoffs / f / f"{name}.md").exists()]
        return found


def git(cwd: Path, *arguments: str) -> str:
    """Run real git; its output."""
    config = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    config += ["-c", "protocol.file.allow=always"]
    return subprocess.run(
        ["git", *config, *arguments], cwd=cwd, check=True, capture_output=True, text=True
    ).stdout.strip()


def folder_with_git(path: Path) -> Path:
    """A folder that looks like a checkout to the hook, quicker to make than a real one."""
    (path / ".git").mkdir(parents=True)
    (path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return path


def checkout(path: Path) -> Path:
    """A real git checkout with one commit."""
    path.mkdir(parents=True)
    git(path, "init", "-q")
    git(path, "commit", "-q", "--allow-empty", "-m", "first")
    return path


def wait_for_temps(room: Room, count: int, size: int) -> None:
    """Until so many hooks wait for the end of their payload, of which they wrote so many bytes."""

    def there() -> bool:
        temps = list((room.room / "inbox/tmp").iterdir())
        return len(temps) == count and all(t.stat().st_size >= size for t in temps)

    until(there, every=0.002)


def claimed(room: Room, cwd: Path | bytes, payload: bytes = START, event: str = "SessionStart") -> str:
    """The id that a start claims, "" for none; what was printed, where the handoff lies and the event must agree."""
    printed = room.run(event, payload, cwd=cwd)
    delivery = room.only()
    assert delivery.payload == payload
    name = delivery.header.get("handoff", "")
    assert printed == (TEXT if name else b"")
    assert name == "" or room.state(name) == "accepted"
    assert "handoff" not in delivery.header or "offered" not in delivery.header
    return name
