"""Observations as bytes: one line of JSON each, the same for the same observation, read back equal.

Pure. The format number stands first and the event's key in it, so that a file or a line of a pack explains itself:

    {"vaultd-observation":1,"key":"1795982852-...","agent":"...","kind":"prompt","at":"...",...}

Fields that are empty are left out, unknown ones are ignored when reading (another release wrote them), a newer format
is refused. What counts as an observation and how it is made safe is in `core.sanitize`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from vaultd.core.event import Event, FileTouch, Kind, Process, ToolCall
from vaultd.core.ids import Key, Sid
from vaultd.core.sanitize import Observation

__all__ = ["FORMAT", "NewerObservation", "Observation", "observation_json", "parse_observation"]

FORMAT = 1
"""The format's number; a reader refuses a higher one."""


class NewerObservation(ValueError):
    """A whole observation of a format that this program does not know; `key` is its event's, "" when it has none."""

    def __init__(self, number: int, key: str) -> None:
        super().__init__(f"the observation has format {number}, this vaultd reads up to {FORMAT}: update vaultd")
        self.key = key


_MARK = "vaultd-observation"
_TEXTS = (
    *("native", "cwd", "root", "gitfile", "head", "remote", "run", "workstream", "handoff"),
    *("source", "reason", "text", "turn", "subagent", "transcript", "body"),
)
_TOOL_TEXTS = ("call_id", "command", "error", "output")
_T = TypeVar("_T")


def observation_json(observation: Observation) -> bytes:
    """The observation as one line of UTF-8 without a line end."""
    event = observation.event
    fields: dict[str, object] = {
        _MARK: FORMAT,
        "key": event.key,
        "agent": event.agent,
        "name": event.name,
        "kind": event.kind.value,
        "at": event.at.isoformat(),
        "sid": event.sid,
    }
    fields.update({name: getattr(event, name) for name in _TEXTS if getattr(event, name)})
    if event.client is not None:
        fields["client"] = [event.client.pid, event.client.start, event.client.boot]
    if event.tool is not None:
        fields["tool"] = _tool_fields(event.tool)
    if event.mtime_ns:
        fields["mtime_ns"] = event.mtime_ns
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    # Readers that split text at every Unicode line end would tear the line.
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode()


def _tool_fields(tool: ToolCall) -> dict[str, object]:
    fields: dict[str, object] = {"name": tool.name, "family": tool.family}
    fields.update({name: getattr(tool, name) for name in _TOOL_TEXTS if getattr(tool, name)})
    if tool.files:
        fields["files"] = [[file.path, file.action] for file in tool.files]
    if tool.exit_code is not None:
        fields["exit_code"] = tool.exit_code
    if tool.ok is not None:
        fields["ok"] = tool.ok
    return fields


def parse_observation(data: bytes) -> Observation:
    """Read an observation; ValueError says why not: cut off, not ours, of a newer format (NewerObservation), a field of
    a wrong type.

    A line end behind it is allowed. What is read was made safe when it was written: nothing is redacted again.
    """
    try:
        fields = json.loads(data.decode())
    except RecursionError:
        raise ValueError("not an observation: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not an observation, or one that was cut off: {error}") from None
    if not isinstance(fields, dict) or _MARK not in fields:
        raise ValueError("not an observation: no format number")
    number = _get(fields, _MARK, int, 0)
    if number > FORMAT:
        key = fields.get("key")
        raise NewerObservation(number, key if isinstance(key, str) else "")
    if number < 1:
        raise ValueError(f"not an observation: there is no format {number}")
    return Observation(_event(fields))


def _event(fields: Mapping[str, object]) -> Event:
    missing = [name for name in ("key", "agent", "name", "kind", "at", "sid") if name not in fields]
    if missing:
        raise ValueError(f"the observation has no {missing[0]}")
    at = datetime.fromisoformat(_text(fields, "at"))
    if at.tzinfo is None:
        raise ValueError("the observation's time has no offset")
    return Event(
        key=Key(_text(fields, "key")),
        agent=_text(fields, "agent"),
        name=_text(fields, "name"),
        kind=Kind(_text(fields, "kind")),
        at=at,
        sid=Sid(_text(fields, "sid")),
        client=_client(fields),
        tool=_tool(fields),
        mtime_ns=_get(fields, "mtime_ns", int, 0),
        **{name: _text(fields, name) for name in _TEXTS},
    )


def _client(fields: Mapping[str, object]) -> Process | None:
    match fields.get("client"):
        case None:
            return None
        case [int(pid), int(start), str(boot)]:
            return Process(pid, start, boot)
    raise ValueError("the observation's client is not a process")


def _tool(fields: Mapping[str, object]) -> ToolCall | None:
    if "tool" not in fields:
        return None
    tool = fields["tool"]
    if not isinstance(tool, dict):
        raise ValueError("the observation's tool is not an object")
    files = []
    for file in _get(tool, "files", list, []):
        match file:
            case [str(path), str(action)]:
                files.append(FileTouch(path, action))
            case _:
                raise ValueError("the observation's files are not pairs of path and action")
    return ToolCall(
        name=_text(tool, "name"),
        family=_text(tool, "family"),
        files=tuple(files),
        exit_code=_get(tool, "exit_code", int, None),
        ok=_get(tool, "ok", bool, None),
        **{name: _text(tool, name) for name in _TOOL_TEXTS},
    )


def _text(fields: Mapping[str, object], name: str) -> str:
    """A text that is valid Unicode: JSON can smuggle in half a character."""
    value = _get(fields, name, str, "")
    if not value.isascii():
        value.encode()
    return value


def _get(fields: Mapping[str, object], name: str, kind: type[_T], default: _T) -> _T:
    """A field of one type; True is no number here."""
    value = fields.get(name, default)
    if value is default or (isinstance(value, kind) and not (kind is int and isinstance(value, bool))):
        return value
    raise ValueError(f"the observation's {name} is not of type {kind.__name__}")
