"""What an agent said: a delivery (bytes in the inbox) and the event that it means.

A `Delivery` is one file of the inbox, split into header and payload. `agents.normalise` turns it into an
`Event`, in words that are the same for every agent. Every text in an event is untrusted and unbounded until
`core.sanitize.observe` made an observation of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from vaultd.core.ids import Key, Sid

__all__ = [
    "CLOSE_EVENT",
    "HEADER_LINE",
    "Delivery",
    "Event",
    "FileTouch",
    "Kind",
    "Process",
    "ToolCall",
    "parse_delivery",
    "why_no_event",
]

HEADER_LINE = b"vaultd-event 1"
"""First line of an event file; the number is the format's."""

_FIRST_LINE = re.compile(rb"vaultd-event ([0-9]{1,9})\r?(?:\n|\Z)")

CLOSE_EVENT = "@close"
"""Event name of the closing events that vaultd itself delivers for a session (dead client, quiet, finalised)."""


class Kind(StrEnum):
    """What an event means, whatever the agent calls it."""

    START = "session-start"
    PROMPT = "prompt"
    PRE_TOOL = "pre-tool"
    TOOL = "tool"
    TURN_END = "turn-end"
    PRE_COMPACT = "pre-compact"
    POST_COMPACT = "post-compact"
    SUBAGENT = "subagent"
    NOTICE = "notice"
    END = "session-end"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event file as it lies in the inbox.

    `header` holds the decoded header values; bytes that are not UTF-8 are kept as surrogate escapes. `payload` is what
    the agent wrote to the hook, byte for byte, perhaps cut off. `mtime_ns` orders deliveries of one second.
    """

    key: Key
    header: Mapping[str, str]
    payload: bytes
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was seen alive: pid, start in clock ticks since boot (field 22 of /proc/PID/stat), boot id."""

    pid: int
    start: int
    boot: str


@dataclass(frozen=True, slots=True)
class FileTouch:
    """A file that a tool read or changed; `action` is read, edit, create or delete."""

    path: str
    action: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call in the words of every agent.

    `family`: shell, edit, read, search, agent, mcp or other. `ok` is None where the agent does not say.
    `error` is the message of a failed call, `output` the text a shell command printed (both unbounded here);
    contents of files are in neither.
    """

    name: str
    family: str
    call_id: str = ""
    files: tuple[FileTouch, ...] = ()
    command: str = ""
    exit_code: int | None = None
    ok: bool | None = None
    error: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a session.

    `text` is the prompt of a PROMPT, the assistant's last message of a TURN_END or SUBAGENT, the summary of a
    POST_COMPACT, the message of a NOTICE; else empty. `turn` identifies a prompt or turn so that two wirings that
    report one thing twice collapse. `subagent` is the child's id when the event happened inside a subagent.
    `native` is the agent's own session id, "" when the payload had none. `body` stands for the payload of an event that
    came over HTTP: 32 hex digits of its sha256.
    """

    key: Key
    agent: str
    name: str
    kind: Kind
    at: datetime
    sid: Sid
    native: str = ""
    cwd: str = ""
    root: str = ""
    gitfile: str = ""
    head: str = ""
    remote: str = ""
    run: str = ""
    workstream: str = ""
    handoff: str = ""
    client: Process | None = None
    source: str = ""
    reason: str = ""
    text: str = ""
    turn: str = ""
    subagent: str = ""
    transcript: str = ""
    tool: ToolCall | None = None
    body: str = ""
    mtime_ns: int = 0

    @property
    def order(self) -> tuple[float, int, str]:
        """Sort key: event time, then file time, then name."""
        return (self.at.timestamp(), self.mtime_ns, self.key)

    @property
    def words(self) -> str:
        """All that was said in it, for searching: its text, its tool's name, command, error, output and files."""
        tool = self.tool
        told = [tool.name, tool.command, tool.error, tool.output, *(file.path for file in tool.files)] if tool else []
        return "\n".join(part for part in (self.text, *told) if part)


def parse_delivery(key: Key, data: bytes, mtime_ns: int = 0) -> Delivery | None:
    """Split an event file; None when its first line is not ours or its header never ends.

    Header lines without `=` and unknown keys are kept out and in respectively; a repeated key keeps its first value.
    """
    head, blank, payload = data.partition(b"\n\n")
    lines = head.split(b"\n")
    if not blank or lines[0].rstrip(b"\r") != HEADER_LINE:
        return None
    header: dict[str, str] = {}
    for line in lines[1:]:
        name, equals, value = line.partition(b"=")
        if equals:
            header.setdefault(name.decode("ascii", "replace"), _unescape(value).decode("utf-8", "surrogateescape"))
    return Delivery(key, header, payload, mtime_ns)


def why_no_event(data: bytes) -> str:
    """Why `parse_delivery` made nothing of these bytes, in words for the person."""
    first = _FIRST_LINE.match(data)
    if first is None:
        return "the file is not an event"
    if int(first[1]) > 1:
        return (
            f"the event has the newer format {int(first[1])}, this vaultd reads up to 1: update vaultd, then retry it"
        )
    return "the event's header is cut off" if int(first[1]) == 1 else "the file is not an event"


def _unescape(value: bytes) -> bytes:
    """Undo the header's three escapes: %25, %0A, %0D."""
    if b"%" not in value:
        return value
    return value.replace(b"%0A", b"\n").replace(b"%0D", b"\r").replace(b"%25", b"%")
