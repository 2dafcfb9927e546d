"""The other agents' programs: where they are, what they need to talk to the fake model, how they are run headless.

Claude Code and Codex, which more is asked of, have `clients.py`. Nothing here wires anything: that is for `vaultd
connect`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fake_wire import Json

__all__ = ["PROGRAMS", "Program"]

Edit = Callable[[str], list[Json]]
Ask = Callable[[str, Json], list[Json]]


@dataclass(frozen=True)
class Program:
    """One agent's program.

    `binary` is a pattern below the folder of CLIs, `files` what it finds in its home (`{url}`: the fake model),
    `environ` what in its environment, `setup` a command that is run once, `command` the words before the prompt and
    `after` those behind it. `edit` gives the calls that change a file, `ask` those by which its model uses a tool of
    the memory, where it is not offered that tool as such. `links` are links in its home and what they lead to there,
    `runtime` is a folder below that of the CLIs with what runs it.
    """

    id: str
    binary: str
    command: Sequence[str]
    edit: Edit
    after: Sequence[str] = ()
    files: Mapping[str, Json | str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    setup: Sequence[str] = ()
    ask: Ask | None = None
    links: Mapping[str, str] = field(default_factory=dict)
    runtime: str = ""

    def find(self, folder: Path) -> Path | None:
        """The executable, if it is installed."""
        return next(iter(sorted(folder.glob(self.binary))), None)


OLD, NEW = "return sum(prices)", "return float(sum(prices))"
WHOLE = f"def total(prices):\n    {NEW}\n"


def _edits(tool: str, path: str, old: str, new: str, **more: str) -> Edit:
    return lambda file: [{"tool": tool, "input": {path: file, old: OLD, new: NEW, **more}}]


def _read_first(tool: str, edit: Edit, path: str) -> Edit:
    return lambda file: [{"tool": tool, "input": {path: file}}, *edit(file)]


def _searched(tool: str, arguments: Json) -> list[Json]:
    name = f"mcp__vaultd__{tool}"
    return [
        {"tool": "tool_search", "input": {"query": f"select:{name}"}},
        {"tool": "tool_call", "input": {"name": name, "arguments": arguments}},
    ]


def _writes_whole(file: str) -> list[Json]:
    return [
        {"tool": "read", "input": {"path": file}},
        {"tool": "write", "input": {"path": file, "content": WHOLE}},
    ]


def _called(tool: str, arguments: Json) -> list[Json]:
    return [{"tool": "tool_call", "input": {"id": f"vaultd__{tool}", "args": arguments}}]


def _device(tool: str, arguments: Json) -> list[Json]:
    return [{"tool": "write", "input": {"path": f"xd://mcp__vaultd_{tool}", "content": json.dumps(arguments)}}]


_CHAT = {"limit": {"context": 200000, "output": 8000}}
_GOOGLE = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}
_KIMI = """\
default_model = "fake"
telemetry = false # mine

[providers.fake]
type = "openai"
api_key = "k"
base_url = "{url}/v1"

[models.fake]
provider = "fake"
model = "fake-model"
max_context_size = 200000
"""

PROGRAMS: Mapping[str, Program] = {
    program.id: program
    for program in (
        Program(
            "gemini-cli",
            "gemini/node_modules/.bin/gemini",
            ("-m", "gemini-2.5-pro", "--yolo", "-p"),
            _read_first(
                "read_file", _edits("replace", "file_path", "old_string", "new_string", instruction="x"), "file_path"
            ),
            files={".gemini/settings.json": _GOOGLE},
            environ={
                "GEMINI_API_KEY": "k",
                "GOOGLE_GEMINI_BASE_URL": "{url}",
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
            },
        ),
        Program(
            "opencode",
            "opencode/node_modules/.bin/opencode",
            ("run",),
            _read_first("read", _edits("edit", "filePath", "oldString", "newString"), "filePath"),
            files={
                ".config/opencode/opencode.json": {
                    "autoupdate": False,
                    "share": "disabled",
                    "model": "fake/fake-model",
                    "small_model": "fake/fake-model",
                    "enabled_providers": ["fake"],
                    "provider": {
                        "fake": {
                            "npm": "@ai-sdk/openai-compatible",
                            "name": "Fake",
                            "options": {"baseURL": "{url}/v1", "apiKey": "k"},
                            "models": {"fake-model": {"name": "Fake", **_CHAT}},
                        }
                    },
                    "permission": {"*": "allow"},
                }
            },
            environ={
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            },
        ),
        Program(
            "pi",
            "pi/node_modules/.bin/pi",
            ("--provider", "fake", "--model", "fake-model", "-p"),
            lambda file: [
                {"tool": "read", "input": {"path": file}},
                {"tool": "edit", "input": {"path": file, "edits": [{"oldText": OLD, "newText": NEW}]}},
            ],
            files={
                ".pi/agent/models.json": {
                    "providers": {
                        "fake": {
                            "baseUrl": "{url}/v1",
                            "api": "openai-completions",
                            "apiKey": "k",
                            "models": [{"id": "fake-model", "contextWindow": 200000, "maxTokens": 8000}],
                        }
                    }
                }
            },
            environ={"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
        ),
        Program(
            "oh-my-pi",
            "omp/node_modules/.bin/omp",
            ("--model", "fake/fake-model", "--auto-approve", "--no-title", "-p"),
            _writes_whole,
            files={
                ".omp/agent/models.yml": """\
providers:
  fake:
    baseUrl: {url}/v1
    api: openai-completions
    apiKey: k
    models:
      - id: fake-model
        name: Fake
        contextWindow: 200000
        maxTokens: 8000
"""
            },
            ask=_device,
            runtime="bun/node_modules/.bin",
        ),
        Program(
            "openclaw",
            "openclaw/node_modules/.bin/openclaw",
            ("agent", "--local", "--agent", "main", "-m"),
            _writes_whole,
            files={
                ".openclaw/openclaw.json": {
                    "models": {
                        "providers": {
                            "fake": {
                                "baseUrl": "{url}/v1",
                                "api": "openai-completions",
                                "apiKey": "k",
                                "models": [
                                    {"id": "fake-model", "name": "Fake", "contextWindow": 200000, "maxTokens": 8000}
                                ],
                            }
                        }
                    },
                    "agents": {"defaults": {"model": {"primary": "fake/fake-model"}, "skipBootstrap": True}},
                }
            },
            ask=_called,
            links={".openclaw/workspace": "code/shop"},
            runtime="node24/node_modules/.bin",
        ),
        Program(
            "qwen-code",
            "qwen/node_modules/.bin/qwen",
            ("--approval-mode", "yolo", "-p"),
            _read_first("read_file", _edits("edit", "file_path", "old_string", "new_string"), "file_path"),
            files={".qwen/settings.json": {**_GOOGLE, "security": {"auth": {"selectedType": "openai"}}}},
            environ={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "{url}/v1", "OPENAI_MODEL": "fake-model"},
            ask=_searched,
        ),
        Program(
            "kimi-code",
            "kimi/node_modules/.bin/kimi",
            ("-p",),
            _read_first("Read", _edits("Edit", "path", "old_string", "new_string"), "path"),
            files={".kimi-code/config.toml": _KIMI},
            environ={"KIMI_DISABLE_TELEMETRY": "1", "KIMI_CODE_NO_AUTO_UPDATE": "1"},
        ),
        Program(
            "copilot-cli",
            "copilot/node_modules/.bin/copilot",
            ("-p",),
            _read_first("view", _edits("edit", "path", "old_str", "new_str"), "path"),
            after=("--allow-all-tools",),
            environ={
                "COPILOT_OFFLINE": "true",
                "COPILOT_AUTO_UPDATE": "false",
                "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
                "COPILOT_PROVIDER_API_KEY": "k",
                "COPILOT_MODEL": "fake-model",
            },
        ),
        Program(
            "cline",
            "cline/node_modules/.bin/cline",
            ("--json",),
            _edits("editor", "path", "old_text", "new_text"),
            environ={"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1"},
            setup=("auth", "-p", "openai-compatible", "-k", "k", "-m", "fake-model", "-b", "{url}/v1"),
        ),
    )
}


def written(files: Mapping[str, Json | str], home: Path, url: str) -> None:
    """Put a program's files into a home."""
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content, indent=2) + "\n"
        path.write_text(text.replace("{url}", url))
