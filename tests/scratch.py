"""A scratch home, vault and checkout, with events delivered as a hook delivers them."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from tests import zygote
from vaultd.config import Config, load
from vaultd.engine.setup import init
from vaultd.engine.stores import Stores, open_stores

ROOT = Path(__file__).parent.parent
PAYLOADS = ROOT / "tests/data/payloads"
ZONE = timezone(timedelta(hours=1))


def git(*args: str, cwd: Path, at: str = "") -> str:
    """Run git in a test's repository, at another time than now where one is given; its output."""
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    environ |= {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
    identity = ["-c", "user.name=Person", "-c", "user.email=person@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *args], cwd=cwd, env=environ, capture_output=True, text=True, check=True)
    return done.stdout


@dataclass
class Scratch:
    """One scratch world below a folder. `now` is the clock of in-process stores."""

    base: Path
    now: datetime = field(default_factory=lambda: datetime.now(ZONE).replace(microsecond=0))
    extra: dict[str, str] = field(default_factory=dict)
    serial: int = 0

    def __post_init__(self) -> None:
        for name in ("home", "runtime"):
            (self.base / name).mkdir(parents=True, exist_ok=True)

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def vault(self) -> Path:
        return self.base / "vault"

    @property
    def environ(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("VAULTD_V", "XDG_", "GIT_"))}
        own = {
            "HOME": str(self.home),
            "VAULTD_VAULT": str(self.vault),
            "VAULTD_HOST": "testhost",
            "VAULTD_HTTP": "off",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "error",
            "TZ": "UTC-1",
        }
        return {**kept, **own, **self.extra}

    @property
    def config(self) -> Config:
        return load(None, self.environ)

    def init(self) -> Stores:
        init(self.config)
        return self.stores()

    def stores(self) -> Stores:
        return open_stores(self.config, lambda: self.now)

    def checkout(self, name: str = "project", remote: str = "") -> Path:
        """A git checkout with one commit."""
        path = self.base / name
        path.mkdir(parents=True, exist_ok=True)
        git("init", "-q", "-b", "main", cwd=path)
        (path / "README.md").write_text(f"# {name}\n")
        git("add", ".", cwd=path)
        git("commit", "-q", "-m", f"start of {name}", cwd=path)
        if remote:
            git("remote", "add", "origin", remote, cwd=path)
        return path

    def run(
        self, *args: str, cwd: Path | None = None, text: str | bytes = b"", check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """`vaultd ARGS` as a process of its own."""
        data = text.encode() if isinstance(text, str) else text
        done = zygote.run(args, cwd=cwd or self.base, env=self.environ, data=data)
        result = subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
        if check:
            assert result.returncode == 0, result.stderr
        return result

    def json(self, *args: str, cwd: Path | None = None) -> Any:
        return json.loads(self.run(*args, cwd=cwd).stdout)

    def hook(self, agent: str, event: str, payload: dict[str, Any] | bytes, cwd: Path, shell: str = "sh") -> str:
        """One event through the hook script; what it printed."""
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        done = subprocess.run(
            [shell, str(ROOT / "hooks/vaultd-hook"), agent, event],
            cwd=cwd,
            env=self.environ,
            input=data,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0
        assert done.stderr == b""
        return done.stdout.decode()

    def deliver(
        self, agent: str, event: str, payload: dict[str, Any] | bytes, cwd: Path | str = "", **header: str
    ) -> str:
        """An event file put into the inbox directly, one second after the one before; its key."""
        self.serial += 1
        self.now += timedelta(seconds=1)
        key = header.pop("key", "") or f"{int(self.now.timestamp())}-{uuid.uuid4()}"
        rows = {"agent": agent, "event": event, "at": self.now.isoformat(), "cwd": str(cwd), **header}
        text = "".join(
            f"{name}={value.replace('%', '%25').replace(chr(10), '%0A')}\n" for name, value in rows.items() if value
        )
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        path = self.vault / ".vaultd/inbox/new" / key
        path.write_bytes(b"vaultd-event 1\n" + text.encode() + b"\n" + data)
        return key

    def session(
        self,
        cwd: Path,
        *,
        agent: str = "claude-code",
        native: str = "",
        prompts: tuple[str, ...] = ("Fix the greeting",),
        end: bool = True,
    ) -> str:
        """A small session delivered as files: start, prompts, an edit, a failing command, stop, end; its native id."""
        native = native or str(uuid.uuid4())
        base = {"session_id": native, "cwd": str(cwd)}
        facts = {"root": str(cwd)} if (cwd / ".git").exists() else {}
        self.deliver(agent, "SessionStart", {**base, "source": "startup"}, cwd, **facts)
        for prompt in prompts:
            self.deliver(
                agent, "UserPromptSubmit", {**base, "prompt": prompt, "prompt_id": str(uuid.uuid4())}, cwd, **facts
            )
        edit = {
            "tool_name": "Edit",
            "tool_input": {"file_path": f"{cwd}/src/app.py"},
            "tool_response": {"filePath": f"{cwd}/src/app.py"},
        }
        self.deliver(agent, "PostToolUse", {**base, **edit, "tool_use_id": str(uuid.uuid4())}, cwd, **facts)
        if agent == "claude-code":
            failing = {
                "tool_name": "Bash",
                "tool_input": {"command": "make check"},
                "error": "Exit code 2\nmake: *** no rule for check",
            }
            self.deliver(
                agent, "PostToolUseFailure", {**base, **failing, "tool_use_id": str(uuid.uuid4())}, cwd, **facts
            )
        self.deliver(
            agent,
            "Stop",
            {**base, "last_assistant_message": "I changed it.\n\nNext steps:\n1. Add the missing rule."},
            cwd,
            **facts,
        )
        if end:
            self.deliver(agent, "SessionEnd", {**base, "reason": "other"}, cwd, **facts)
        return native


def recorded(agent: str, name: str) -> dict[str, Any]:
    """A recorded payload."""
    data: dict[str, Any] = json.loads((PAYLOADS / agent / f"{name}.json").read_text("utf-8"))
    return data


__all__ = ["PAYLOADS", "ROOT", "ZONE", "Scratch", "git", "recorded"]
