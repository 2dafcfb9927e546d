"""`memory_read_page`: one page, whole or in part, with the pages around it."""

from __future__ import annotations

from vaultd.mcp.tool import NUMBER, TEXT, Answer, Call, Tool
from vaultd.mcp.wording import past, place, safe, shown

__all__ = ["TOOL"]


def _run(call: Call) -> Answer:
    reply = call.service.read_page(
        call.scope,
        call.text("path"),
        call.text("query"),
        anchor=call.text("anchor"),
        lines=call.text("lines"),
        related=call.number("include_related", 0),
    )
    told = safe(reply)
    lines = f"lines {reply['lines']} of {reply['of']}"
    head = f"{place(reply)}: {shown(reply['path'])} (revision {reply['revision']}, {lines})"
    if told["text"] != reply["text"]:
        told["altered"] = True
        head += ". Some marks in it were made harmless here: do not write this text back as the page's."
    around = [f"- {page['path']} · {page['title']} · {page['hops']}" for page in reply.get("related", ())]
    return Answer(
        past(head, [reply["text"], *(["Linked pages (and how many links away):"] if around else []), *around]), told
    )


TOOL = Tool(
    name="memory_read_page",
    title="Read a page",
    description="Read one page: by path, name or session id, or the best answer to a query.",
    run=_run,
    arguments={
        "path": TEXT,
        "query": TEXT,
        "anchor": {**TEXT, "description": "#Heading or #^block"},
        "lines": {**TEXT, "description": "like 12-40"},
        "include_related": {**NUMBER, "description": "hops to linked pages, 1-3"},
    },
    aliases={
        "page": "path",
        "name": "path",
        "q": "query",
        "search": "query",
        "related": "include_related",
        "range": "lines",
    },
    reads=True,
)
