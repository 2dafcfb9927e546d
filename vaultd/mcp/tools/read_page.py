"""`memory_read_page`: one page, whole."""

from __future__ import annotations

from vaultd.mcp.tool import TEXT, Answer, Call, Tool
from vaultd.mcp.wording import past, place, safe, shown

__all__ = ["TOOL"]


def _run(call: Call) -> Answer:
    reply = call.service.read_page(call.scope, call.text("path"), call.text("query"))
    told = safe(reply)
    head = f"{place(reply)}: {shown(reply['path'])} (revision {reply['revision']})"
    if told["text"] != reply["text"]:
        told["altered"] = True
        head += ". Some marks in it were made harmless here: do not write this text back as the page's."
    return Answer(past(head, [reply["text"]]), told)


TOOL = Tool(
    name="memory_read_page",
    title="Read a page",
    description="Read one page: by path, name or session id, or the best answer to a query.",
    run=_run,
    arguments={"path": TEXT, "query": TEXT},
    aliases={"page": "path", "name": "path", "q": "query", "search": "query"},
    reads=True,
)
