"""Events for tests in one short call each; a session of the agent `agent` that starts at ten in the morning."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from vaultd.core.event import Event, FileTouch, Kind, ToolCall
from vaultd.core.ids import Key, Sid

START = datetime(2026, 11, 29, 10, 0, tzinfo=timezone(timedelta(hours=1)))
ROOT = "/w/project"


def event(minute: float, kind: Kind, text: str = "", **more: Any) -> Event:
    """One event so many minutes after the start; its key follows from the time unless given."""
    at = START + timedelta(minutes=minute)
    values: dict[str, Any] = {
        "key": Key(f"{int(at.timestamp())}-{kind}-{more.get('subagent', '')}{more.get('turn', '')}"),
        "agent": "agent",
        "name": kind.value,
        "sid": Sid("0123456789"),
        "native": "native-id",
        "cwd": ROOT,
        "root": ROOT,
        "text": text,
    }
    return Event(kind=kind, at=at, **{**values, **more})


def start(minute: float = 0, **more: Any) -> Event:
    return event(minute, Kind.START, **more)


def prompt(minute: float, text: str, **more: Any) -> Event:
    return event(minute, Kind.PROMPT, text, **more)


def say(minute: float, text: str, **more: Any) -> Event:
    return event(minute, Kind.TURN_END, text, **more)


def end(minute: float, reason: str = "other", **more: Any) -> Event:
    return event(minute, Kind.END, reason=reason, **more)


def file(minute: float, action: str, path: str, *, ok: bool | None = True, error: str = "", **more: Any) -> Event:
    tool = ToolCall("Edit", "edit", f"call-{minute}", (FileTouch(path, action),), ok=ok, error=error)
    return event(minute, Kind.TOOL, tool=tool, **more)


def shell(
    minute: float, command: str, output: str = "", *, code: int | None = 0, error: str = "", call: str = "", **more: Any
) -> Event:
    ok = None if code is None else code == 0
    tool = ToolCall("Bash", "shell", call or f"call-{minute}", (), command, code, ok, error, output)
    return event(minute, more.pop("kind", Kind.TOOL), tool=tool, **more)
