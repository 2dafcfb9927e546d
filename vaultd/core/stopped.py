"""Where a session stood at its last event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vaultd.core.activity import called
from vaultd.core.event import Event, Kind
from vaultd.core.markup import fold
from vaultd.core.outcome import read_outcome

__all__ = ["Stopped", "stopped"]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where the session stood at its last event.

    `kind`: `complete` (the last turn was finished), `mid-turn`, `interrupted` (by the person), `compaction`, `idle`
    (nothing happened). `tool` is the last finished tool call and `tool_failed` how it ended; `running` one that was
    started and never reported back; `notice` what the client said last without an answer.
    """

    kind: str
    at: datetime
    tool: str = ""
    tool_failed: bool = False
    running: str = ""
    notice: str = ""


def stopped(ordered: Sequence[Event], base: str) -> Stopped:
    """Where the main session stood at the last event."""
    state = Stopped("idle", ordered[-1].at)
    ended_turn, hanging = "", dict[str, str]()
    last: Event | None = None
    for event in ordered:
        if event.subagent:
            continue
        tool = event.tool
        if event.kind is Kind.TOOL and tool is not None:
            hanging.pop(tool.call_id, None)
            last = event
        if _interrupts(event):
            state = replace(state, kind="interrupted", at=event.at, notice="")
        elif event.kind is Kind.PROMPT:
            state, hanging, last = Stopped("mid-turn", event.at), {}, None
        elif event.kind is Kind.PRE_TOOL and tool is not None:
            hanging[tool.call_id] = called(event, tool, base)
            state = replace(state, kind="mid-turn", at=event.at)
        elif event.kind is Kind.TOOL and tool is not None:
            late = bool(event.turn) and event.turn == ended_turn
            state = Stopped(state.kind if late else "mid-turn", event.at)
        elif event.kind is Kind.TURN_END:
            ended_turn, hanging = event.turn, {}
            state = replace(state, kind="complete", at=event.at, notice="")
        elif event.kind in (Kind.PRE_COMPACT, Kind.POST_COMPACT) and state.kind != "complete":
            state = replace(state, kind="compaction", at=event.at)
        elif event.kind is Kind.NOTICE and state.kind == "mid-turn":
            state = replace(state, notice=fold(event.text))
    running = next(reversed(hanging.values()), "")
    if last is None or last.tool is None:
        return replace(state, running=running)
    failed = read_outcome(last.tool).failed
    return replace(state, running=running, tool=called(last, last.tool, base), tool_failed=failed)


def _interrupts(event: Event) -> bool:
    """True for an event that says that the person stopped the agent."""
    if event.kind in (Kind.START, Kind.END):
        return False
    words = f"{event.name} {event.reason}".casefold()
    if event.kind is not Kind.TOOL and ("interrupt" in words or "cancel" in event.reason.casefold()):
        return True
    return "[Request interrupted by user" in (event.text if event.tool is None else event.tool.error)
