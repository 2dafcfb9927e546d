"""`memory_query`: search."""

from __future__ import annotations

from vaultd.mcp.tool import FLAG, NUMBER, TEXT, Answer, Call, Tool
from vaultd.mcp.wording import past, place, rows, safe

__all__ = ["TOOL"]


def _run(call: Call) -> Answer:
    everywhere = call.flag("global")
    reply = call.service.query(call.scope, call.text("query"), limit=call.number("limit", 10), everywhere=everywhere)
    hits = reply["hits"]
    found = f"{len(hits)} {'hit' if len(hits) == 1 else 'hits'}." if hits else "no page answers this."
    head = f"{place(reply, everywhere=everywhere)}: {found}"
    if reply["pending"]:
        head += f" {reply['pending']} new events and pages are not searchable yet."
    lines = rows(hits)
    for name, title in (("global_hits", "For all projects:"), ("other_hits", "Outside projects:")):
        if reply[name]:
            lines += [title, *rows(reply[name])]
    return Answer(past(head, lines), safe(reply))


TOOL = Tool(
    name="memory_query",
    title="Search the memory",
    description="Search past sessions, decisions and notes of this project by their words.",
    run=_run,
    arguments={
        "query": TEXT,
        "limit": {**NUMBER, "description": "1-100, default 10"},
        "global": {**FLAG, "description": "all projects"},
    },
    required=("query",),
    aliases={"q": "query", "search": "query", "n": "limit", "top_k": "limit", "k": "limit", "everywhere": "global"},
    reads=True,
)
