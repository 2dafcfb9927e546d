"""What vaultd knows about an agent: the typed form of one `<id>.toml` (read by tables.py).

A table holds facts (names, paths, units, patterns) and names of *styles*: behaviour that data cannot express, written
once in code and named neutrally.

Field paths are dotted (`tool_input.command`) and lead through objects only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from vaultd.core.event import Kind

__all__ = [
    "UNITS",
    "Agent",
    "CallFields",
    "Client",
    "ConfigFile",
    "Errors",
    "EventSpec",
    "Fields",
    "McpFile",
    "Noise",
    "Switch",
    "ToolSpec",
    "Transcripts",
    "Trust",
]

UNITS: Mapping[str, int] = {"s": 1, "ms": 1000}
"""Timeout units an agent's configuration may use, as parts of a second."""


@dataclass(frozen=True, slots=True)
class Noise:
    """A prompt that nobody typed: how it begins, and the pattern whose group is worth keeping ("" for none)."""

    starts: str
    keep: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class EventSpec:
    """One event of an agent, by the agent's own name.

    `outcome` of a tool event: `ok`, `failed`, `open` (the payload does not say) or `batch` (several calls at once, at
    path `batch`). `timeout` is in seconds, `timeout_max` what the agent cuts it to (0: it does not). `shape` is what
    the hook prints at `moment`, `drain` whether an ingest pass is worth starting. `text`, `source` and `reason` are
    field paths, `reason_is` is a fixed reason. After `missing_after` prompts without one of these the event is taken
    not to fire; 0 for never.
    """

    name: str
    kind: Kind
    wired: bool = False
    timeout: int = 5
    timeout_max: int = 0
    shape: str = ""
    moment: str = ""
    drain: bool = False
    text: str = ""
    source: str = ""
    reason: str = ""
    reason_is: str = ""
    outcome: str = ""
    batch: str = ""
    noise: tuple[Noise, ...] = ()
    missing_after: int = 0

    @property
    def map_line(self) -> str:
        """What the hook is told about this event: shape, moment and drain, `-` for none."""
        return f"{self.shape or '-'} {self.moment or '-'} {'drain' if self.drain else '-'}"


@dataclass(frozen=True, slots=True)
class Client:
    """Which process is the agent: names of `/proc/PID/stat`, and whether it stands for one conversation.

    When it does not (`hook_process_is_client` false), a conversation is over for the next agent `settle_s` seconds
    after its last turn end.
    """

    comm: tuple[str, ...]
    hook_process_is_client: bool = True
    settle_s: int = 0


@dataclass(frozen=True, slots=True)
class Switch:
    """A setting of the agent that, at value `off`, keeps all hooks from running."""

    file: str
    format: str
    path: tuple[str, ...]
    off: bool


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """Where an agent's hooks are configured.

    `folder` is relative to the home folder, `folder_env` the variable that replaces it; `path` leads to the map of
    events; `entry` is the style of one entry; `restart` says what makes the agent read the file again.
    """

    folder: str
    file: str
    path: tuple[str, ...]
    entry: str
    timeout_unit: str
    folder_env: str = ""
    format: str = "json"
    restart: str = ""
    switches: tuple[Switch, ...] = ()


@dataclass(frozen=True, slots=True)
class McpFile:
    """Where an agent's MCP servers are configured.

    `folder` is relative to the home folder; the agent's `folder_env` replaces it as it does the one of its hooks.
    `path` leads to the map of servers, `entry` is what one holds besides `command` and `args`.
    """

    folder: str
    file: str
    format: str
    path: tuple[str, ...]
    entry: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Trust:
    """How an agent records that a person trusted a hook; no style means that it asks nobody."""

    style: str = ""
    file: str = ""
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Where an agent keeps its transcripts, below its folder; `outcome` is the format that holds calls' outcomes."""

    folder: str
    pattern: str
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Fields:
    """Field paths of what any payload may hold."""

    event: str = ""
    session: str = ""
    cwd: str = ""
    turn: str = ""
    transcript: str = ""
    subagent: str = ""


@dataclass(frozen=True, slots=True)
class CallFields:
    """Field paths of a tool call."""

    name: str = ""
    id: str = ""
    error: str = ""
    response: str = ""


@dataclass(frozen=True, slots=True)
class Errors:
    """Patterns in messages: the exit code of a failed command, and answers that mean failed or refused in a batch."""

    exit_code: re.Pattern[str] | None = None
    failed: tuple[re.Pattern[str], ...] = ()
    refused: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Tools by native name (`*` allowed), their family, and where their parts are in the payload.

    `patch` is the path of a patch text whose header lines name the files. `created` is a path and the value there
    that means that the file is new. Truth at any of `open_when` leaves the outcome open, truth at `failed_when` is a
    failure and its absence success.
    """

    names: tuple[str, ...]
    family: str
    files: tuple[str, ...] = ()
    action: str = "read"
    created: tuple[str, str] | None = None
    command: str = ""
    output: tuple[str, ...] = ()
    patch: str = ""
    exit_code: tuple[str, re.Pattern[str]] | None = None
    open_when: tuple[str, ...] = ()
    failed_when: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """Everything that vaultd knows about one agent."""

    id: str
    title: str
    inject_limit: int
    client: Client
    config: ConfigFile
    fields: Fields
    call: CallFields
    events: Mapping[str, EventSpec]
    tools: tuple[ToolSpec, ...]
    transcripts: Transcripts
    trust: Trust
    errors: Errors
    mcp: McpFile

    def tool(self, name: str) -> ToolSpec:
        """The entry of a native tool name; of family `other` when there is none."""
        for spec in self.tools:
            if name in spec.names or any(fnmatchcase(name, pattern) for pattern in spec.names):
                return spec
        return ToolSpec((name,), "other")

    @property
    def wired(self) -> tuple[EventSpec, ...]:
        """The events that hooks are installed for, in the file's order."""
        return tuple(spec for spec in self.events.values() if spec.wired)

    @property
    def shapes(self) -> frozenset[str]:
        """The output shapes that prepared context is needed in."""
        return frozenset(spec.shape for spec in self.events.values() if spec.shape)
