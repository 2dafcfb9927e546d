"""The four tools for handoffs: what a session leaves for the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vaultd.mcp.tool import FLAG, TEXT, TEXTS, Answer, Call, Tool
from vaultd.mcp.wording import past, place, safe, shown

__all__ = ["TOOLS", "handoff_lines"]


def handoff_lines(handoffs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Handoffs, a line each."""
    return [
        f"- {handoff['id']} · {str(handoff['title'])[:200]} · from {handoff['from_agent'] or 'a person'}, "
        f"{handoff['created']}" + (" · its session goes on" if handoff["provisional"] else "")
        for handoff in handoffs
    ]


def _begin(call: Call) -> Answer:
    reply = call.service.handoff_begin(
        call.scope,
        call.text("summary"),
        questions=call.texts("open_questions"),
        next_steps=call.texts("next_steps"),
        files=call.texts("files"),
        shared=call.flag("shared"),
        by=call.client,
    )
    text = f"{place(reply)}: left handoff {shown(reply['id'])} for the next session."
    if reply["redacted"]:
        text += f" {reply['redacted']} secrets in it were replaced by [REDACTED]."
    return Answer(text, reply)


def _list(call: Call) -> Answer:
    reply = call.service.handoff_list(call.scope)
    found = reply["handoffs"]
    head = f"{place(reply)}: {f'{len(found)} open handoffs.' if found else 'no open handoff.'}"
    return Answer(past(head, handoff_lines(found)), safe(reply))


def _accept(call: Call) -> Answer:
    reply = call.service.handoff_accept(call.scope, call.text("handoff_id"), by=call.client)
    return Answer(f"{place(reply)}: handoff {shown(reply['id'])} is yours.\n{reply['text']}", reply)


def _cancel(call: Call) -> Answer:
    reply = call.service.handoff_cancel(call.scope, call.text("handoff_id"))
    return Answer(f"{place(reply)}: handoff {shown(reply['id'])} is withdrawn.", reply)


_ID = {"id": "handoff_id", "handoff": "handoff_id"}
_OWNERS = frozenset({"any_owner"})  # there is one owner: every handoff is theirs

TOOLS = (
    Tool(
        name="memory_handoff_begin",
        title="Leave a handoff",
        description="Leave unfinished work to the next session of this project.",
        run=_begin,
        arguments={"summary": TEXT, "open_questions": TEXTS, "next_steps": TEXTS, "files": TEXTS, "shared": FLAG},
        required=("summary",),
        aliases={
            "questions": "open_questions",
            "next": "next_steps",
            "files_touched": "files",
            "text": "summary",
            "body": "summary",
        },
    ),
    Tool(
        name="memory_handoff_list",
        title="Open handoffs",
        description="List open handoffs, the one that is given next first.",
        run=_list,
        reads=True,
    ),
    Tool(
        name="memory_handoff_accept",
        title="Take a handoff",
        description="Take an open handoff (without handoff_id the next one): no other session gets it.",
        run=_accept,
        arguments={"handoff_id": TEXT},
        aliases=_ID,
        ignored=_OWNERS,
    ),
    Tool(
        name="memory_handoff_cancel",
        title="Withdraw a handoff",
        description="Withdraw an open handoff: nobody gets it.",
        run=_cancel,
        arguments={"handoff_id": TEXT},
        required=("handoff_id",),
        aliases=_ID,
        ignored=_OWNERS,
        destroys=True,
    ),
)
