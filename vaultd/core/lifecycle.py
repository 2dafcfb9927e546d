"""A session's events put in order: duplicates collapsed, prompts that somebody typed, closings and generations.

Two wirings of one agent report one thing twice; a session folder and its pack may both be at hand. What is counted and
shown is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vaultd.core.event import CLOSE_EVENT, Event, Kind, ToolCall
from vaultd.core.fence import without_history

__all__ = ["Life", "in_order", "is_activity", "latest", "life", "typed"]

_WRAPPERS = re.compile(
    r"\s*<(system-reminder|system_reminder|hook_context|environment_context|ide_\w+|user-prompt-submit-context"
    r"|persisted-output|additional_context)\b[^>]*>.*?</\1>\s*",
    re.DOTALL | re.IGNORECASE,
)
"""Blocks that a client puts round or before what was typed."""

_UNWRAPPED = re.compile(r"\s*<(user_input|user_query)\b[^>]*>(.*?)</\1>\s*\Z", re.DOTALL | re.IGNORECASE)

_UNTYPED = re.compile(
    r"\s*(?:<(?:task-notification|system[_-]notification|system[_-]reminder|command-\w+|local-command-\w+|bash-\w+"
    r"|user-memory-input|environment_context|hook_context|turn_aborted)\b"
    r"|Caveat: The messages below were generated|\[Request interrupted by user)",
    re.IGNORECASE,
)
"""How a prompt begins that nobody typed."""

_CLIENT_COMMAND = re.compile(
    r"\s*/(?:exit|quit|clear|new|compact|help|status|model|login|logout|config|cost|usage|context|resume|mcp|hooks"
    r"|permissions|agents|doctor|vim|memory|fast|theme|settings)\s*\Z"
)
"""A command to the client itself, alone on the line."""


@dataclass(frozen=True, slots=True)
class Life:
    """Where a session stands in its life.

    `generation` starts at 1 and rises when a typed prompt is newer than the last close. `closed`: no typed prompt is
    newer than the last close. `ended` is when its client stopped as far as known: the end event's time, or that of the
    last thing that happened before vaultd itself closed the session. `since_close` counts what an agent still did
    after the last close without a new prompt. `begin` is the index (in the events in order) of the first event of the
    current generation. `given_back` are claims of stretches that ended with at most one prompt and no tool call.
    """

    generation: int
    closed: bool
    closed_by: str
    ended: datetime | None
    last_close: datetime | None
    since_close: int
    provisional: bool
    begin: int
    claimed: tuple[str, ...]
    given_back: tuple[str, ...]


def in_order(events: Iterable[Event]) -> list[Event]:
    """Events by time, each key once, two reports of one thing (same kind, tool call or turn, child) merged into one."""
    by_key = {event.key: event for event in events}
    kept: list[Event] = []
    seen: dict[tuple[object, ...], int] = {}
    for event in sorted(by_key.values(), key=lambda event: event.order):
        identity = _identity(event)
        if identity is None or identity not in seen:
            if identity is not None:
                seen[identity] = len(kept)
            kept.append(event)
        else:
            first = kept[seen[identity]]
            kept[seen[identity]] = _merged(first, event)
    return kept


_NOTICED = frozenset({"dead", "quiet"})  # reasons that vaultd gives for an end that nobody told of


def typed(event: Event) -> str:
    """What a person typed in a prompt event; empty for other events and for prompts that nobody typed."""
    if event.kind is not Kind.PROMPT or event.subagent:
        return ""
    text = without_history(event.text)
    text = _WRAPPERS.sub("\n", text)
    inside = _UNWRAPPED.match(text)
    text = (inside.group(2) if inside else text).strip()
    return "" if _UNTYPED.match(text) or _CLIENT_COMMAND.match(text) else text


def is_activity(event: Event) -> bool:
    """True for what only a working session does: prompts, tools, turn ends, compactions, subagents."""
    quiet = (Kind.START, Kind.END, Kind.NOTICE, Kind.OTHER)
    return event.kind not in quiet


def latest(events: Iterable[Event]) -> list[Event]:
    """The events of the current generation only, in order."""
    ordered = in_order(events)
    return ordered[life(ordered).begin :]


def life(ordered: Sequence[Event]) -> Life:
    """The life of a session whose events are given `in_order`."""
    generation, begin, after_end = 1, 0, 0
    last: Event | None = None
    ended: datetime | None = None
    happened: datetime | None = None
    since_close = turns = 0
    reopened = False
    for number, event in enumerate(ordered):
        if event.kind is Kind.END:
            if event.reason in _NOTICED and last is not None and not reopened and not since_close:
                continue  # the agent had told of its end itself
            ended = happened if event.name == CLOSE_EVENT and happened else event.at
            happened = ended
            last, after_end, since_close, reopened = event, number + 1, 0, False
            continue
        happened = event.at
        if last is not None and not reopened and typed(event):
            generation, begin, reopened, turns = generation + 1, after_end, True, 0
        since_close += is_activity(event)
        turns += event.kind is Kind.TURN_END and not event.subagent
    closed = last is not None and not reopened
    claimed, given_back = _claims(ordered)
    return Life(
        generation=generation,
        closed=closed,
        closed_by=(last.reason or "end") if closed and last else "",
        ended=ended if closed else None,
        last_close=last.at if last else None,
        since_close=since_close if closed else 0,
        provisional=turns > 0 and not closed,
        begin=begin,
        claimed=claimed,
        given_back=given_back,
    )


def _claims(ordered: Sequence[Event]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All handoffs that events claimed, and those whose stretch ended with at most one prompt and no tool."""
    claimed: dict[str, None] = {}
    given_back: dict[str, None] = {}
    open_claims: list[str] = []
    prompts = tools = 0
    for event in ordered:
        if event.handoff and event.kind is not Kind.END:
            claimed.setdefault(event.handoff)
            if event.handoff not in open_claims:
                open_claims.append(event.handoff)
        if event.kind in (Kind.TOOL, Kind.PRE_TOOL):
            tools += 1
        elif event.kind is Kind.PROMPT:
            prompts += bool(typed(event))
        elif event.kind is Kind.END:
            if prompts <= 1 and not tools:
                given_back.update(dict.fromkeys(open_claims))
            open_claims, prompts, tools = [], 0, 0
    return tuple(claimed), tuple(given_back)


def _identity(event: Event) -> tuple[object, ...] | None:
    """What makes two events reports of one thing; None for events that carry no id."""
    if event.tool is not None and event.tool.call_id:
        return event.kind, event.subagent, event.tool.call_id
    if event.turn and event.kind in (Kind.PROMPT, Kind.TURN_END, Kind.PRE_COMPACT, Kind.POST_COMPACT, Kind.SUBAGENT):
        # One turn can take two prompts, and end twice: only the same words are the same thing.
        return event.kind, event.subagent, event.turn, " ".join(event.text.split())
    return None


def _merged(first: Event, second: Event) -> Event:
    """The first report, with what only the second one said."""
    if first.tool is None or second.tool is None:
        return first
    one, two = first.tool, second.tool
    tool: ToolCall = replace(
        one,
        files=tuple(dict.fromkeys((*one.files, *two.files))),
        command=one.command or two.command,
        exit_code=two.exit_code if one.exit_code is None else one.exit_code,
        ok=two.ok if one.ok is None else one.ok,
        error=one.error or two.error,
        output=one.output or two.output,
    )
    return replace(first, tool=tool)
