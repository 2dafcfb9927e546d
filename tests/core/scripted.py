"""Scripted sessions: a short JSON form of a session's events, made into events as the sanitiser would pass them on.

A script has `agent`, `native`, `cwd`, `root`, `start` and `events`; each event is an object with one verb:

    {"start": "startup", "handoff": "..."}      {"prompt": "..."}      {"read": "path"} {"edit": ...} {"create": ...}
    {"shell": "command", "exit": 0, "output": "...", "error": "..."}   {"say": "..."} (turn end)   {"notice": "..."}
    {"precompact": "auto"} {"compact": "summary"} {"subagent": "last message"} {"other": "EventName"} {"end": "reason"}
    {"close": "dead"} (delivered by vaultd itself)      {"repeat": 40, "events": [...]} with {n} in its texts

`exit` null means that the agent reported nothing. `ok`, `turn`, `child` (id of a subagent), `after` (seconds since the
event before, default 20), `twice` (a second wiring reports it too), `failed` (for files) say the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from vaultd.core.event import CLOSE_EVENT, Event, FileTouch, Kind, ToolCall
from vaultd.core.ids import Key, session_id
from vaultd.core.sanitize import observe

FOLDER = Path(__file__).parent.parent / "data" / "sessions"

_KINDS = {
    "start": Kind.START,
    "prompt": Kind.PROMPT,
    "say": Kind.TURN_END,
    "notice": Kind.NOTICE,
    "precompact": Kind.PRE_COMPACT,
    "compact": Kind.POST_COMPACT,
    "subagent": Kind.SUBAGENT,
    "other": Kind.OTHER,
    "end": Kind.END,
    "close": Kind.END,
}
_FILES = ("read", "edit", "create", "delete")


def names() -> list[str]:
    """The scripted sessions there are."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> dict[str, Any]:
    """One script."""
    script = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(script, dict)
    return script


def events(script: dict[str, Any]) -> list[Event]:
    """The events of a script, sanitised and bounded as they are in a store."""
    at = datetime.fromisoformat(script["start"])
    agent, native = script["agent"], script["native"]
    made: list[Event] = []
    for step in _unrolled(script["events"]):
        at += timedelta(seconds=step.get("after", 20))
        number = len(made)
        event = Event(
            key=Key(f"{int(at.timestamp())}-{number:06d}"),
            agent=agent,
            name="",
            kind=Kind.OTHER,
            at=at,
            sid=session_id(agent, native),
            native=native,
            cwd=step.get("cwd", script["cwd"]),
            root=step.get("root", script["root"]),
            head=script.get("head", "") if "start" in step else "",
            handoff=step.get("handoff", ""),
            turn=step.get("turn", ""),
            subagent=step.get("child", ""),
            transcript=f"/home/dev/.agent/{native}.jsonl",
            mtime_ns=number,
        )
        event = _meaning(event, step, f"call-{number}")
        made.append(observe(event).event)
        if step.get("twice"):
            made.append(replace(made[-1], key=Key(f"{int(at.timestamp())}-{number:06d}b")))
    return made


def _meaning(event: Event, step: dict[str, Any], call_id: str) -> Event:
    """What one step says."""
    for verb in _FILES:
        if verb in step:
            ok = not step.get("failed", False)
            touch = (FileTouch(step[verb], verb),)
            name = {"read": "Read", "create": "Write"}.get(verb, "Edit")
            tool = ToolCall(name, verb, call_id, touch, ok=ok, error=step.get("error", ""))
            return replace(event, kind=Kind.TOOL, name="PostToolUse", tool=tool)
    if "shell" in step:
        code: int | None = step.get("exit", 0)
        worked: bool | None = step.get("ok", None if code is None else code == 0)
        output, error = step.get("output", ""), step.get("error", "")
        tool = ToolCall("Bash", "shell", call_id, (), step["shell"], code, worked, error, output)
        pending = step.get("pending", False)
        return replace(event, kind=Kind.PRE_TOOL if pending else Kind.TOOL, name="PostToolUse", tool=tool)
    verb = next(verb for verb in _KINDS if verb in step)
    event = replace(event, kind=_KINDS[verb], name=CLOSE_EVENT if verb == "close" else verb)
    if verb in ("end", "close"):
        return replace(event, reason=step[verb])
    if verb in ("start", "precompact"):
        return replace(event, source=step[verb])
    if verb == "other":
        return replace(event, name=step[verb])
    return replace(event, text=step[verb])


def _unrolled(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The steps, repeated ones written out."""
    for step in steps:
        if "repeat" not in step:
            yield step
            continue
        for number in range(step["repeat"]):
            for inner in step["events"]:
                yield {
                    key: value.replace("{n}", str(number)) if isinstance(value, str) else value
                    for key, value in inner.items()
                }
