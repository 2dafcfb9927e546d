"""`memory_read_session_observations`: what was recorded of a session, event by event."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vaultd.mcp.tool import NUMBER, TEXT, TEXTS, Answer, Call, Tool
from vaultd.mcp.wording import past, place, safe, shown

__all__ = ["TOOL"]

_MOST_CHARS = 64 * 1024


def _run(call: Call) -> Answer:
    offset = call.number("offset", 0)
    reply = call.service.observations(
        call.scope,
        call.text("session_id"),
        limit=call.number("limit", 50),
        offset=offset,
        newest_first=call.values.get("order") == "desc",
        kinds=call.texts("kinds"),
        text=call.text("q"),
        most=call.number("body_max_chars", 4000),
    )
    found = _fitting(reply["observations"])
    reply = {**reply, "observations": found}
    which = f"{offset + 1}-{offset + len(found)} of {reply['total']}" if found else f"none of {reply['total']}"
    head = f"{place(reply)}: session {shown(reply['session'])} of {shown(reply['agent'])}, observations {which}."
    return Answer(past(head, map(_line, found)), safe(reply))


def _fitting(observations: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """As many from the first on as one answer can hold; one is always given. The rest is asked for by `offset`."""
    room = _MOST_CHARS
    for number, one in enumerate(observations):
        room -= len(json.dumps(one))
        if room < 0 and number:
            return list(observations[:number])
    return list(observations)


def _line(one: Mapping[str, Any]) -> str:
    """One observation; what follows its first line stands further in."""
    ok = one.get("ok")
    parts = [one["kind"], one.get("tool"), "failed" if ok is False else "", one.get("command"), *one.get("files", ())]
    head = f"- {one['at']} {' · '.join(str(part)[:500] for part in parts if part)}"
    body = str(one.get("text") or "").strip()
    return "\n    ".join([head, *body.splitlines()])


TOOL = Tool(
    name="memory_read_session_observations",
    title="What was recorded of a session",
    description="Read what was recorded of a session: prompts, tool calls, results. q filters by text.",
    run=_run,
    arguments={
        "session_id": TEXT,
        "limit": {**NUMBER, "description": "1-200, default 50"},
        "offset": NUMBER,
        "order": {"type": "string", "enum": ["asc", "desc"]},
        "kinds": TEXTS,
        "q": TEXT,
        "body_max_chars": NUMBER,
    },
    required=("session_id",),
    aliases={"session": "session_id", "id": "session_id", "query": "q", "search": "q", "n": "limit"},
    reads=True,
)
