"""`memory_recent`: the newest pages."""

from __future__ import annotations

from vaultd.mcp.tool import FLAG, NUMBER, Answer, Call, Tool
from vaultd.mcp.wording import past, place, rows, safe

__all__ = ["TOOL"]


def _run(call: Call) -> Answer:
    everywhere = call.flag("global")
    reply = call.service.recent(call.scope, limit=call.number("limit", 10), everywhere=everywhere)
    pages = reply["pages"]
    head = f"{place(reply, everywhere=everywhere)}: {f'{len(pages)} newest pages.' if pages else 'no pages yet.'}"
    return Answer(past(head, rows(pages)), safe(reply))


TOOL = Tool(
    name="memory_recent",
    title="Newest pages",
    description="List the pages that changed last.",
    run=_run,
    arguments={"limit": NUMBER, "global": FLAG},
    aliases={"n": "limit", "top_k": "limit", "k": "limit", "everywhere": "global"},
    reads=True,
)
