"""`vaultd demo`: a recorded session through the real hook, a real daemon and real git, in a scratch folder.

Nothing is simulated but the agent: its recorded payloads are piped into the hook script as the agent would, with a word
made at run time in the prompt, and each step shows where that word stands.
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from vaultd.agents import recorded_session
from vaultd.cli.starting import start_daemon, stop_daemon
from vaultd.cli.terminal import Terminal
from vaultd.config import current_environment, load
from vaultd.core.event import Process
from vaultd.engine.processes import alive
from vaultd.engine.setup import hook_source, init
from vaultd.engine.stores import Stores, local_now, open_stores
from vaultd.errors import VaultdError

__all__ = ["Demo"]

_CHECKOUT = "/home/dev/project"  # what stands for the checkout in the recordings
_STEP_S = 10.0
T = TypeVar("T")


class Demo:
    """One run of the demo."""

    def __init__(self, terminal: Terminal) -> None:
        self._say = terminal.say
        self._base = Path(tempfile.mkdtemp(prefix="vaultd-demo-")).resolve()
        self._word = "".join(secrets.choice("bcdfghjklmnprstvz") + secrets.choice("aeiou") for _ in range(5))
        self._environ = self._environment()

    def play(self, *, keep: bool) -> int:
        """Play all steps; 0 if the word arrived everywhere, else 1. The daemon is gone then, the folder unless kept."""
        process: Process | None = None
        stores: Stores | None = None
        try:
            stores = self._open()
            process, _ = start_daemon(stores)
            self._say(f"2. A daemon runs (pid {process.pid}).")
            self._session(stores)
            self._page(stores)
            self._commit(stores)
            self._search(stores)
            self._next(stores)
        finally:
            if stores is not None:
                stop_daemon(stores)
            if process is not None:
                gone = not alive(process)
                self._say(f"8. The daemon (pid {process.pid}) is {'gone' if gone else 'still there'}.")
            if keep:
                self._say(f"The vault is kept: {self._base / 'vault'}")
            else:
                shutil.rmtree(self._base, ignore_errors=True)
                self._say("The scratch vault is removed. Yours: `vaultd up`, and it says what comes next.")
        return 0

    def _environment(self) -> dict[str, str]:
        """An environment in which nothing of the person's is read or written."""
        environ = {k: v for k, v in current_environment().items() if not k.startswith(("VAULTD_", "XDG_", "GIT_"))}
        return {**environ, "HOME": str(self._base / "home"), "VAULTD_VAULT": str(self._base / "vault")}

    def _open(self) -> Stores:
        """Make the scratch vault and checkout."""
        for name in ("home", "project"):
            (self._base / name).mkdir()
        self._run(["git", "init", "-q", "-b", "main", str(self._base / "project")])
        config = load(str(self._base / "vault"), self._environ)
        init(config)
        (self._base / "home/vaultd-hook").write_bytes(hook_source())
        self._say(f"1. Made a vault: {config.vault}")
        return open_stores(config, local_now)

    def _session(self, stores: Stores) -> None:
        """Pipe the recorded session into the hook."""
        session = recorded_session()
        for step in session["session"]:
            self._hook(step)
        title = stores.agents[session["session"][0]["agent"]].title
        self._say(f"3. Played a recorded {title} session through the hook: {len(session['session'])} events.")
        self._say(f"   Its prompt holds a word made just now: {self._word}")

    def _page(self, stores: Stores) -> None:
        """Show the session page."""
        path = self._await("a session page", lambda: self._holding(stores, "*/*/sessions/*.md"))
        self._say(f"4. The session page {path}:")
        text = (stores.vault.root / path).read_text("utf-8")
        self._quote(text.partition("\n---\n")[2].strip().splitlines()[:12])

    def _commit(self, stores: Stores) -> None:
        """Show the commit that holds the word."""

        def probe() -> str:
            return self._run(
                ["git", "-C", str(stores.vault.root), "log", "--oneline", f"-S{self._word}", "--", "*/sessions/*"]
            ).strip()

        self._say(f"5. The git commit: {self._await('a commit', probe).splitlines()[0]}")

    def _search(self, stores: Stores) -> None:
        """Show the search answer."""

        def probe() -> dict[str, Any]:
            command = [
                sys.executable,
                "-P",
                "-m",
                "vaultd",
                "--vault",
                str(stores.vault.root),
                "search",
                "--json",
                self._word,
            ]
            answer = json.loads(self._run(command, cwd=self._base / "project"))
            return answer["hits"][0] if answer["hits"] else {}

        hit = self._await("a search answer", probe)
        self._say(f"6. `vaultd search {self._word}` answers: {hit['path']} ({hit['kind']})")
        self._say(f"   {hit['snippet']}")

    def _next(self, stores: Stores) -> None:
        """Show what the next agent is given."""
        step = recorded_session()["next"]
        prepared = stores.vault.room / "outbox/at"
        self._await("the prepared text", lambda: list(prepared.rglob("claim")))
        text = self._hook(step)
        title = stores.agents[step["agent"]].title
        self._say(f"7. A {title} session that starts in {self._base / 'project'} is given exactly this:")
        context = json.loads(text)["hookSpecificOutput"]["additionalContext"]
        self._quote(context.splitlines())
        if self._word not in context:
            raise VaultdError(
                f"The word {self._word} did not arrive. `vaultd demo --keep` leaves the vault to look at."
            )

    def _hook(self, step: dict[str, Any]) -> str:
        """One event through the hook script; what it printed."""
        payload = json.dumps(step["payload"], ensure_ascii=False)
        payload = payload.replace(_CHECKOUT, str(self._base / "project")).replace("{word}", self._word)
        return self._run(
            ["sh", str(self._base / "home/vaultd-hook"), step["agent"], step["event"]],
            cwd=self._base / "project",
            text=payload,
        )

    def _holding(self, stores: Stores, pattern: str) -> str:
        """The first page of a pattern that holds the word."""
        for path in stores.vault.root.glob(pattern):
            if self._word in path.read_text("utf-8"):
                return path.relative_to(stores.vault.root).as_posix()
        return ""

    def _run(self, command: list[str], cwd: Path | None = None, text: str = "") -> str:
        """Run a command in the scratch environment; its output."""
        done = subprocess.run(
            command,
            cwd=cwd or self._base,
            env=self._environ,
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode != 0:
            raise VaultdError(f"`{' '.join(command[:4])} ...` failed: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def _await(self, what: str, probe: Callable[[], T]) -> T:
        """Wait until a probe gives something. VaultdError when it does not."""
        deadline, pause = time.monotonic() + _STEP_S, threading.Event()
        while True:
            value = probe()
            if value:
                return value
            if time.monotonic() > deadline:
                raise VaultdError(
                    f"Waited {_STEP_S:.0f} s for {what} in vain. Run `vaultd demo --keep` and look into the vault."
                )
            pause.wait(0.1)

    def _quote(self, lines: list[str]) -> None:
        """Print lines, marked."""
        for text in lines:
            self._say(f"   | {text}")
