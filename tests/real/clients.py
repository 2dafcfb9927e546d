"""The real agent CLIs in a throw-away home: where they are, how they are configured and run, and how they are ended.

A `Room` is one home with Claude Code and Codex on the fake model, and one git checkout. Nothing in it wires a hook:
that is for the product's own installer. Every process that is started from a room carries its home in the environment,
which is how `Room.close` finds what a client or the product left running, however it was detached, and kills it by pid.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fake_model import FakeModel
from tests.real.programs import Program, written
from tests.real.terminal import Terminal
from tests.real.work import FILES
from tests.waiting import until

FOLDER = "VAULTD_TEST_CLIS"
"""Environment variable: the folder that `.ci/install-clis` filled."""

CLAUDE_ALLOWED = "Bash,Edit,Write,Read"
CODEX_MODEL = "gpt-6.2-sol"
"""Works in code mode, as all current models of Codex do."""

CODEX_PLAIN_MODEL = "gpt-5.5"
"""Has `apply_patch` as a tool of its own, and no code mode."""

VAULTD = (sys.executable, "-m", "vaultd")
"""The product's command line, from the environment that the tests run in."""

CODEX_CONFIG = """\
model = "{model}"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
{top}
[analytics]
enabled = false

[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 1
stream_max_retries = 1

[projects.{project}]
trust_level = "trusted"
"""


@dataclass(frozen=True)
class Clients:
    """Paths of the two native executables."""

    claude: Path
    codex: Path


def find_clients() -> Clients | str:
    """The installed CLIs, or what is missing."""
    if not Path("/proc/self/environ").exists():
        return "no /proc here: what the clients leave running could not be found and ended"
    named = os.environ.get(FOLDER)
    if not named:
        return f"{FOLDER} names no folder with the agent CLIs (.ci/install-clis makes one)"
    folder = Path(named)
    claude = sorted(folder.glob("claude/node_modules/@anthropic-ai/claude-code-*/claude"))
    codex = sorted(folder.glob("codex/node_modules/@openai/codex-*/vendor/*/bin/codex"))
    for name, found in (("Claude Code", claude), ("Codex", codex)):
        if not found:
            return f"no {name} in {folder} ({FOLDER}; .ci/install-clis puts it there)"
    return Clients(claude[0], codex[0])


@dataclass
class Room:
    """One throw-away home, one checkout in it, the fake model, and what runs in them."""

    folder: Path
    clients: Clients
    model: FakeModel
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    terminals: list[Terminal] = field(default_factory=list)
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """The home that every process of the room has."""
        return self.folder / "home"

    @property
    def checkout(self) -> Path:
        """The git checkout that the agents work in."""
        return self.home / "code" / "shop"

    def furnish(self, codex_top: str = "") -> None:
        """Write the clients' configuration and make the checkout; `codex_top` is more TOML for the top of Codex's."""
        self.checkout.mkdir(parents=True)
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        claude = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "projects": {str(self.checkout): trusted},
            "customApiKeyResponses": {"approved": ["fake-key"], "rejected": []},
        }
        (self.home / ".claude").mkdir()
        (self.home / ".claude.json").write_text(json.dumps(claude))
        (self.home / ".codex").mkdir()
        project = json.dumps(str(self.checkout))
        config = CODEX_CONFIG.format(model=CODEX_MODEL, url=self.model.url, project=project, top=codex_top)
        (self.home / ".codex" / "config.toml").write_text(config)
        for name, text in FILES.items():
            (self.checkout / name).write_text(text)
        for command in (
            ["git", "init", "-q", "-b", "main"],
            ["git", "add", "-A"],
            ["git", "-c", "user.name=Dev", "-c", "user.email=dev@example.org", "commit", "-q", "-m", "Start"],
        ):
            subprocess.run(command, cwd=self.checkout, env=self.environment(), check=True)

    def environment(self) -> dict[str, str]:
        """What every process of the room finds in its environment, and nothing else."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "fake-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "FAKE_KEY": "k",
            **self.extra,
        }

    def prepare(self, program: Program, binary: Path) -> None:
        """Write a program's configuration, and run what it wants to be run once."""
        written(program.files, self.home, self.model.url)
        for link, target in program.links.items():
            (self.home / link).symlink_to(self.home / target)
        self.extra |= {name: value.replace("{url}", self.model.url) for name, value in program.environ.items()}
        if program.setup:
            self.run([binary, *(word.replace("{url}", self.model.url) for word in program.setup)])

    def start(self, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        """Start a command in the checkout, its output kept in a file of the room."""
        output = self.folder / f"output-{len(self.started)}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [str(part) for part in command],
                cwd=self.checkout,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def run(self, command: Sequence[str | Path]) -> str:
        """Run a command to its end; its output. AssertionError when it failed."""
        code, output = self.finish(command)
        assert code == 0, f"{command} ended with {code}:\n{output}"
        return output

    def finish(self, command: Sequence[str | Path], timeout: float = 120) -> tuple[int, str]:
        """Run a command to its end, whatever comes of it: exit code and output."""
        number = len(self.started)
        code = self.start(command).wait(timeout)
        return code, (self.folder / f"output-{number}").read_text("utf-8", "replace")

    def claude_command(self, prompt: str, *more: str) -> list[str | Path]:
        """Claude Code, headless, with its tools allowed."""
        return [self.clients.claude, "-p", prompt, "--allowedTools", CLAUDE_ALLOWED, *more]

    def codex_command(self, prompt: str, *more: str) -> list[str | Path]:
        """Codex, headless; its hooks run although nobody trusted them in its own screen."""
        return [self.clients.codex, "exec", "--dangerously-bypass-hook-trust", *more, prompt]

    def claude(self, prompt: str, *more: str) -> str:
        """One headless Claude Code session to its end; what it printed."""
        return self.run(self.claude_command(prompt, *more))

    def codex(self, prompt: str, *more: str) -> str:
        """One headless Codex session to its end; what it printed."""
        return self.run(self.codex_command(prompt, *more))

    def agent(self, name: str, prompt: str, *more: str) -> str:
        """One headless session of the agent named, to its end; what it printed."""
        return self.claude(prompt, *more) if name == "claude-code" else self.codex(prompt, *more)

    def claude_terminal(self) -> Terminal:
        """Claude Code on a pseudo-terminal, at its prompt.

        Not in its automatic mode, which has each command checked by the provider's server.
        """
        more = ["--permission-mode", "default", "--allowedTools", CLAUDE_ALLOWED]
        terminal = self._terminal([self.clients.claude, *more], "/exit")
        terminal.wait_for("/effort")
        return terminal

    def codex_terminal(self, trust: bool = True) -> Terminal:
        """Codex with its server on a pseudo-terminal, at its prompt; told to trust the hooks, or not."""
        terminal = self._terminal([self.clients.codex], "/quit")
        terminal.wait_for("enter confirm")
        terminal.wait_still()
        if trust:
            terminal.press("2", "› 2. Trust all and continue")
        terminal.press("\r" if trust else "3", "Ask Codex to do anything")
        return terminal

    def _terminal(self, command: Sequence[str | Path], goodbye: str) -> Terminal:
        terminal = Terminal([str(part) for part in command], self.checkout, self.environment(), goodbye)
        self.started.append(terminal.process)
        self.terminals.append(terminal)
        return terminal

    def vaultd(self, *arguments: str) -> str:
        """Run the product's command line in the checkout; its output. AssertionError when it failed."""
        return self.run([*VAULTD, *arguments])

    def processes(self, containing: str = "") -> dict[int, str]:
        """Pid and command line of every live process that has the room's home in its environment."""
        found = {}
        wanted = f"HOME={self.home}".encode()
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal() or int(folder.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to somebody else
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    if line and containing in line:
                        found[int(folder.name)] = line
        return found

    def close(self) -> None:
        """Kill what still runs, by pid, and wait until it is gone."""

        def killed() -> bool:
            left = self.processes()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left

        until(killed, 20)
        for process in self.started:
            process.wait(20)
        for terminal in self.terminals:
            terminal.close()
        for link in (self.home / ".codex").glob("app-server-*/*.sock"):
            socket = link.resolve()  # in a folder of Codex's in the system's temp folder
            socket.unlink(missing_ok=True)
            socket.with_suffix(".lock").unlink(missing_ok=True)
