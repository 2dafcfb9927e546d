"""`memory_briefing`: what a session should know at its start."""

from __future__ import annotations

from vaultd.mcp.tool import Answer, Call, Tool
from vaultd.mcp.tools.handoffs import handoff_lines
from vaultd.mcp.wording import past, place, rows, safe

__all__ = ["TOOL"]


def _run(call: Call) -> Answer:
    reply = call.service.briefing(call.scope)
    lines: list[str] = []
    for title, found in (
        ("Open handoffs:", handoff_lines(reply["handoffs"])),
        ("Pinned:", rows(reply["pinned"])),
        ("Recent:", rows(reply["recent"])),
    ):
        if found:
            lines += [title, *found]
    return Answer(past(f"{place(reply)}: {'briefing.' if lines else 'nothing is known yet.'}", lines), safe(reply))


TOOL = Tool(
    name="memory_briefing",
    title="Briefing",
    description="What to know before starting: open handoffs, pinned and recent pages.",
    run=_run,
    reads=True,
)
