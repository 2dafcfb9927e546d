"""From a delivery to an event: what an agent said, in words that are the same for every agent. Pure; never raises.

Nothing that was delivered is dropped here: an unknown event, a payload that is cut off or is no JSON at all, a missing
session or directory each give an event with what could be read. Rejected is only a delivery that names no event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from vaultd.agents.calls import batch_call, completed, tool_call
from vaultd.agents.model import Agent, EventSpec, Told
from vaultd.agents.payload import first_text, lookup, parse, plain, text
from vaultd.agents.transcripts import OUTCOMES, last_told
from vaultd.core.event import CLOSE_EVENT, Delivery, Event, Kind, Process, ToolCall
from vaultd.core.ids import Sid, key_epoch, session_id

__all__ = ["Rejected", "complete", "normalise", "reads_transcript", "transcript_pattern"]

_NAME_LIMIT = 64
_NOISE = 4_000  # characters of what nobody typed that are looked through
_ID_LIMIT = 200
_STAT = re.compile(r"(\d{1,10}) \((.*)\) (.*)\Z", re.DOTALL)
_UNSAFE_NAME = re.compile(r"[^\w.@:-]", re.ASCII)
_HIGH_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_NOT_IN_CHILD = frozenset({Kind.START, Kind.PROMPT, Kind.TURN_END, Kind.END})


@dataclass(frozen=True, slots=True)
class Rejected:
    """A delivery from which no event can be made, and why."""

    reason: str


def normalise(agent: Agent, delivery: Delivery, now: datetime) -> Event | Rejected:
    """What a delivery means. `now` (aware) counts where neither header nor file tell a time.

    The header's event name counts; the payload's directory beats the header's. What a subagent does is an event of its
    session with `subagent` set, and no prompt, turn end or end of it.
    """
    fields = parse(delivery.payload, _worth_in_part(agent))
    header = {
        name: value if value.isascii() else _HIGH_SURROGATE.sub("\ufffd", value)
        for name, value in delivery.header.items()
    }
    name = header.get("event") or text(lookup(fields, agent.fields.event))
    if not name:
        return Rejected("neither the header nor the payload names an event")
    name = _UNSAFE_NAME.sub("_", name)[:_NAME_LIMIT]
    subagent = _id(lookup(fields, agent.fields.subagent))
    spec = agent.events.get(name)
    meaning = _Meaning() if spec is None else _meaning(agent, spec, fields, in_child=bool(subagent))
    event = _event(agent, delivery, header, fields, now, name=name, subagent=subagent, meaning=meaning)
    return _close(event, fields) if name == CLOSE_EVENT else event


def reads_transcript(agent: Agent, event: Event) -> bool:
    """Whether `complete` could add something to this event if it were given the agent's transcript."""
    call = event.tool
    if _wanted(agent, event) is not None:
        return True
    return (
        call is not None
        and event.kind is Kind.TOOL
        and bool(agent.transcripts.outcome and event.transcript and call.call_id)
        and call.family in ("shell", "edit")
        and call.exit_code is None
    )


def transcript_pattern(agent: Agent, event: Event) -> str:
    """Where the transcript of an event is, below the agent's transcripts, when the event does not say; "" for unknown.

    With `*` for what is not known.
    """
    told = _wanted(agent, event)
    if event.transcript and not (told is not None and told.file):
        return ""
    pattern = told.file if told is not None and told.file else agent.transcripts.pattern
    if "{session}" not in pattern or not re.fullmatch(r"[\w.:-]{1,200}", event.native, re.ASCII):
        return ""
    return pattern.replace("{session}", event.native)


def complete(agent: Agent, event: Event, transcript: bytes) -> Event:
    """An event with the outcome of its call, or what was answered, as the transcript (or its last bytes) tells it.

    Never raises. It is returned as it was where the transcript does not know.
    """
    if not reads_transcript(agent, event):
        return event
    if (told := _wanted(agent, event)) is not None:
        return replace(event, text=_stripped(agent, last_told(told, transcript)))
    if event.tool is None:
        return event
    outcome = OUTCOMES[agent.transcripts.outcome](transcript).get(event.tool.call_id)
    return event if outcome is None else replace(event, tool=completed(event.tool, outcome))


def _wanted(agent: Agent, event: Event) -> Told | None:
    """Where the text of an event is to be found that has none; None when it needs none."""
    if event.text or event.subagent:
        return None
    return {Kind.TURN_END: agent.transcripts.answer, Kind.PROMPT: agent.transcripts.prompt}.get(event.kind)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What the kind of an event tells beyond what every event has."""

    kind: Kind = Kind.OTHER
    text: str = ""
    source: str = ""
    reason: str = ""
    tool: ToolCall | None = None


def _event(
    agent: Agent,
    delivery: Delivery,
    header: Mapping[str, str],
    fields: Mapping[str, Any],
    now: datetime,
    *,
    name: str,
    subagent: str,
    meaning: _Meaning,
) -> Event:
    """What every event has, and what this one means."""
    at = _time(delivery, header, now)
    place = lookup(fields, agent.fields.cwd)
    if agent.fields.cwd.endswith("[]") and isinstance(place, list):
        place = place[0]  # of several folders the first
    cwd = _path(place) or header.get("cwd", "").replace("\0", "")
    parent = _id(lookup(fields, agent.fields.parent)) if subagent else ""
    native = parent or _id(lookup(fields, agent.fields.session)) or _id(header.get("session", ""))
    process = _process(agent, header)
    return Event(
        key=delivery.key,
        agent=agent.id,
        name=name,
        kind=meaning.kind,
        at=at,
        sid=session_id(agent.id, native) if native else _sid_of_day(agent, process, cwd, at),
        native=native,
        cwd=cwd,
        root=header.get("root", "").replace("\0", ""),
        gitfile=header.get("gitfile", ""),
        head=header.get("head", ""),
        remote=header.get("remote", ""),
        run=header.get("run", ""),
        workstream=header.get("workstream", ""),
        handoff=header.get("handoff", ""),
        client=process,
        source=meaning.source,
        reason=meaning.reason,
        text=meaning.text,
        turn=_id(lookup(fields, agent.fields.turn)),
        subagent=subagent,
        transcript=_path(lookup(fields, agent.fields.transcript)),
        tool=meaning.tool,
        body=header.get("body", "")[:32],
        mtime_ns=delivery.mtime_ns,
    )


def _meaning(agent: Agent, spec: EventSpec, fields: Mapping[str, Any], *, in_child: bool) -> _Meaning:
    """What an event of a known name means."""
    if in_child and spec.kind in _NOT_IN_CHILD:
        return _Meaning()
    if spec.kind in (Kind.TOOL, Kind.PRE_TOOL):
        batch = spec.outcome == "batch"
        call = (batch_call if batch else tool_call)(agent, spec, fields)
        return _Meaning() if call is None and batch else _Meaning(spec.kind, tool=call)
    said = first_text(fields, spec.text)
    if spec.kind is Kind.PROMPT:
        said = _stripped(agent, said)
        if not said.strip() and any(lookup(fields, path) is not None for path in spec.text):
            return _Meaning()  # nobody asked anything
    for noise in spec.noise:
        if said.lstrip().startswith(noise.starts):
            kept = noise.keep.search(said[:_NOISE]) if noise.keep else None
            return _Meaning(Kind.NOTICE, kept[1].strip() if kept else "")
    reason = spec.reason_is or _id(lookup(fields, spec.reason))
    return _Meaning(spec.kind, said, _id(lookup(fields, spec.source)), reason)


def _stripped(agent: Agent, said: str) -> str:
    """A prompt without what somebody else than the person put there."""
    for pattern in agent.fields.strip:
        said = pattern.sub("", said)
    return said


def _close(event: Event, fields: Mapping[str, Any]) -> Event | Rejected:
    """A close that vaultd delivered itself; it names the session by native id, or by sid where there is none."""
    native, sid = _id(fields.get("session_id")), text(fields.get("sid"))
    if native:
        sid = session_id(event.agent, native)
    elif not re.fullmatch(r"[0-9a-f]{10}", sid):
        return Rejected("a closing event that names no session")
    return replace(event, kind=Kind.END, sid=Sid(sid), native=native, reason=_id(fields.get("reason")), client=None)


def _worth_in_part(agent: Agent) -> Iterator[str]:
    """Members whose text is worth keeping when the payload ends inside it."""
    yield from (path.rpartition(".")[2] for spec in agent.events.values() for path in spec.text)
    for tool in agent.tools:
        yield from (path.rpartition(".")[2] for path in (tool.command, tool.patch, *tool.output) if path)
    yield from (path.rpartition(".")[2] for path in agent.call.error)


def _time(delivery: Delivery, header: Mapping[str, str], now: datetime) -> datetime:
    """When it happened: the header's time, else the key's, else the file's, else now."""
    try:
        at = datetime.fromisoformat(header.get("at", ""))
        at.astimezone(UTC)  # a date at either end of the calendar has no such time
    except (ValueError, OverflowError):
        pass
    else:
        return at if at.tzinfo is not None else at.replace(tzinfo=now.tzinfo)
    for seconds in (key_epoch(delivery.key), delivery.mtime_ns / 1e9):
        try:
            if seconds > 0:
                return datetime.fromtimestamp(seconds, now.tzinfo)
        except (ValueError, OverflowError, OSError):
            continue
    return now


def _process(agent: Agent, header: Mapping[str, str]) -> Process | None:
    """The agent's process among the hook's parent and grandparent, by name; None when neither is it."""
    boot = header.get("boot", "").strip()
    for place in ("proc", "pproc"):
        found = _STAT.match(header.get(place, ""))
        if found is None or found[2] not in agent.client.comm or not boot:
            continue
        rest = found[3].split()  # field 3 (state) and on: the start time is field 22
        if len(rest) > 19 and rest[19].isdecimal() and len(rest[19]) < 20:
            return Process(int(found[1]), int(rest[19]), boot)
    return None


def _sid_of_day(agent: Agent, process: Process | None, cwd: str, at: datetime) -> Sid:
    """The session of events that name none: one per client process and day, else per directory and day."""
    who = f"{process.pid}.{process.start}.{process.boot}" if process else f"in:{cwd}"
    return session_id(agent.id, f"@{who}@{at:%Y-%m-%d}")


def _path(value: Any) -> str:
    """An absolute path that can be one; else "" (bytes that were no UTF-8 are lost in JSON, the header has them)."""
    path = text(value) if isinstance(value, str) else ""
    absolute = path.startswith(("/", "\\\\")) or re.match(r"[A-Za-z]:[\\/]", path) is not None
    return path if absolute and "\0" not in path and "\ufffd" not in path else ""


def _id(value: Any) -> str:
    """A short word such as an id: one line, bounded."""
    word = text(value) if isinstance(value, str | int) else ""
    word = word[:_ID_LIMIT]
    return plain(word if word.isprintable() else "".join(c for c in word if c.isprintable())).strip()
