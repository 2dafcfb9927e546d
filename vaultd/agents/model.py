"""What vaultd knows about an agent: the typed form of one `<id>.toml` (read by tables.py).

A table holds facts (names, paths, units, patterns) and names of *styles*: behaviour that data cannot express, written
once in code and named neutrally.

Field paths are dotted (`tool_input.command`) and lead through objects; `name[]` leads through all of a list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from vaultd.core.event import Kind

__all__ = [
    "UNITS",
    "USUAL_LIMIT",
    "Agent",
    "CallFields",
    "Client",
    "Errors",
    "EventSpec",
    "Evidence",
    "Fields",
    "Home",
    "HookFile",
    "Instructions",
    "McpFile",
    "Noise",
    "Switch",
    "Told",
    "ToolSpec",
    "Transcripts",
    "Trust",
]

USUAL_LIMIT = 9_000
"""Bytes that no prepared context is longer than, whatever more an agent takes: more would only cost."""

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
    the hook prints at `moment`, `drain` whether an ingest pass is worth starting. `text` are field paths of which the
    first that leads to some text counts, `source` and `reason` are field paths, `reason_is` is a fixed reason. After
    `missing_after` prompts without one of these the event is taken not to fire; 0 for never. `entry` stands instead of
    the hook file's own.
    """

    name: str
    kind: Kind
    wired: bool = False
    timeout: int = 5
    timeout_max: int = 0
    shape: str = ""
    moment: str = ""
    drain: bool = False
    text: tuple[str, ...] = ()
    source: str = ""
    reason: str = ""
    reason_is: str = ""
    outcome: str = ""
    batch: str = ""
    noise: tuple[Noise, ...] = ()
    missing_after: int = 0
    entry: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """Which process is the agent: names of `/proc/PID/stat`, and whether it stands for one conversation.

    When it does not (`hook_process_is_client` false), it may serve several and outlive them: a conversation is over
    for the next agent `settle_s` seconds after its last turn end, or when that process is gone. `programs` are the
    names of its executables: one in PATH shows that it is installed. With `on_request` it is connected only when a
    person names it: another agent has the same programs.
    """

    comm: tuple[str, ...] = ()
    hook_process_is_client: bool = True
    settle_s: int = 0
    programs: tuple[str, ...] = ()
    on_request: bool = False


@dataclass(frozen=True, slots=True)
class Home:
    """An agent's own folder: relative to the home folder (`macos` there), or what a variable says instead.

    The folder is `<variable>/<below>` where the variable `env` has a value.
    """

    folder: str
    env: str = ""
    below: str = ""
    macos: str = ""


@dataclass(frozen=True, slots=True)
class Switch:
    """A setting of the agent that, at value `off`, keeps all hooks from running."""

    file: str
    format: str
    path: tuple[str, ...]
    off: bool


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file of ours in the agent's folder: a path there, and a file of `plugins/` that it is made from."""

    file: str
    template: str


@dataclass(frozen=True, slots=True)
class Setting:
    """What makes an agent use files of ours: `value` at `path` in its settings, whose last part is our own name.

    `allow` leads to a list that, where there is one, must name it too.
    """

    file: str
    path: tuple[str, ...]
    value: Mapping[str, Any]
    format: str = "json"
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HookFile:
    """Where an agent's hooks are configured, and what one looks like there.

    `file` lies in the agent's folder, or in `folder` (relative to the home folder). A `*` in it stands for every file
    of that kind that exists, `{event}` for one file per event. `path` leads to the list that an entry is put into,
    `{event}` in it stands for the event's name. `entry` is the entry itself, `constants` what must be in the file
    besides. `template` names a file of `plugins/` that is written whole, instead of entries; `beside` are more such
    files, `setting` is what makes the agent use them. `restart` says what makes the agent read it again.

    In entries: `{command}` the shell command (also at the end of a longer one), `{hook}` the program and `{args}` its
    arguments, `{event}`, and `{timeout}` in the agent's unit.
    """

    file: str
    folder: str | None = None
    format: str = "json"
    path: tuple[str, ...] = ()
    entry: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    timeout_unit: str = "s"
    template: str = ""
    beside: tuple[OwnFile, ...] = ()
    setting: Setting | None = None
    executable: bool = False
    restart: str = ""
    switches: tuple[Switch, ...] = ()


@dataclass(frozen=True, slots=True)
class McpFile:
    """Where an agent's MCP servers are configured.

    `path` leads to the map of servers, `entry` is ours: `{command}`, `{args}`, or `{argv}` for both in one list.
    `constants` are what must be in the file besides.
    """

    file: str
    path: tuple[str, ...]
    folder: str | None = None
    format: str = "json"
    entry: Mapping[str, Any] = field(default_factory=lambda: {"command": "{command}", "args": "{args}"})
    constants: Mapping[str, Any] = field(default_factory=dict)
    restart: str = ""


@dataclass(frozen=True, slots=True)
class Instructions:
    """Files that an agent reads at each start: `file` for every project, `skill` a folder of its skills ("" for none).

    Both are in the agent's folder, or in `folder` (relative to the home folder).
    """

    file: str
    folder: str | None = None
    skill: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a capability rests on.

    `version` and `date` of the real program that it was seen with ("" when it was not), `sources` are addresses of
    documentation or source code, `note` what is not certain.
    """

    version: str = ""
    date: str = ""
    sources: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Trust:
    """How an agent records that a person trusted a hook; no style means that it asks nobody."""

    style: str = ""
    file: str = ""
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """Where a transcript has what a payload lacks: the text at `text` of the last line with the values of `when`.

    A line is one JSON object; `when` is field paths and the values that must stand there. `file` is another pattern
    than the transcripts' own, for a file that is one object.
    """

    text: str
    when: Mapping[str, str] = field(default_factory=dict)
    file: str = ""


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Where an agent keeps its transcripts, below its folder, or below `home` in the home folder.

    `{session}` in `pattern` stands for the native session id. `outcome` is the format that holds calls' outcomes,
    `answer` and `prompt` tell where those are for events whose payload has none.
    """

    folder: str = ""
    pattern: str = ""
    home: str | None = None
    outcome: str = ""
    answer: Told | None = None
    prompt: Told | None = None


@dataclass(frozen=True, slots=True)
class Fields:
    """Field paths of what any payload may hold. `parent` leads to the session of a subagent's parent.

    What matches one of `strip` in a prompt was put there by somebody else than the person.
    """

    event: str = ""
    session: str = ""
    cwd: str = ""
    turn: str = ""
    transcript: str = ""
    subagent: str = ""
    parent: str = ""
    strip: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class CallFields:
    """Field paths of a tool call. `error` are paths of a message that only a failed call has, `response` of an
    answer in a batch.
    """

    name: str = ""
    id: str = ""
    error: tuple[str, ...] = ()
    response: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Errors:
    """Patterns in messages: the exit code of a failed command, what it printed, and answers that mean failed or
    refused.
    """

    exit_code: re.Pattern[str] | None = None
    output: re.Pattern[str] | None = None
    failed: tuple[re.Pattern[str], ...] = ()
    refused: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Tools by native name (`*` allowed), their family, and where their parts are in the payload.

    `patch` is the path of a patch text whose header lines name the files. `created` is a path and the value there
    that means that the file is new. Truth at any of `open_when` leaves the outcome open, truth at `failed_when` is a
    failure and its absence success. Where `exit_code` is not found, the code is 0, or unknown with `code_always`.
    """

    names: tuple[str, ...]
    family: str
    files: tuple[str, ...] = ()
    action: str = "read"
    created: tuple[str, Any] | None = None
    command: str = ""
    output: tuple[str, ...] = ()
    patch: str = ""
    exit_code: tuple[str, re.Pattern[str]] | None = None
    code_always: bool = False
    open_when: tuple[str, ...] = ()
    failed_when: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """Everything that vaultd knows about one agent. What there is no evidence of is None."""

    id: str
    title: str
    home: Home
    evidence: Mapping[str, Evidence]
    inject_limit: int = USUAL_LIMIT
    client: Client = field(default_factory=Client)
    fields: Fields = field(default_factory=Fields)
    call: CallFields = field(default_factory=CallFields)
    events: Mapping[str, EventSpec] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()
    shapes: Mapping[str, Any] = field(default_factory=dict)
    transcripts: Transcripts = field(default_factory=Transcripts)
    trust: Trust = field(default_factory=Trust)
    errors: Errors = field(default_factory=Errors)
    hooks: HookFile | None = None
    mcp: McpFile | None = None
    instructions: Instructions | None = None

    def tool(self, name: str) -> ToolSpec:
        """The entry of a native tool name; of family `other` when there is none."""
        for spec in self.tools:
            if name in spec.names or any(fnmatchcase(name, pattern) for pattern in spec.names):
                return spec
        return ToolSpec((name,), "other")

    @property
    def wired(self) -> tuple[EventSpec, ...]:
        """The events that hooks are installed for, in the file's order."""
        return tuple(spec for spec in self.events.values() if spec.wired) if self.hooks is not None else ()

    @property
    def printed(self) -> Mapping[str, str]:
        """The output shapes that prepared context is needed in, by the names under which it is prepared."""
        return {self._prepared(spec): spec.shape for spec in self.events.values() if spec.shape}

    def _prepared(self, spec: EventSpec) -> str:
        """The name under which context is prepared for an event: the shape, with the limit where that is a low one."""
        return spec.shape if self.inject_limit >= USUAL_LIMIT or not spec.shape else f"{spec.shape}.{self.inject_limit}"

    def map_line(self, spec: EventSpec) -> str:
        """What the hook is told about an event: shape, moment and drain, `-` for none, and where once in a session is
        enough the last name of the path to the session's id.
        """
        moment = spec.moment or ("start" if spec.kind is Kind.START else "-")
        words = [self._prepared(spec) or "-", moment, "drain" if spec.drain else "-"]
        if spec.moment not in ("", "start"):
            words.append(self.fields.session.rpartition(".")[2])
        return " ".join(words)
