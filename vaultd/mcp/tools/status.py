"""`memory_status`: whether the memory works."""

from __future__ import annotations

from vaultd.mcp.tool import Answer, Call, Tool
from vaultd.mcp.wording import place, shown

__all__ = ["TOOL"]


def _run(call: Call) -> Answer:
    reply = call.service.status(call.scope)
    pages, inbox = reply["pages"], reply["inbox"]
    text = f"{place(reply)}: memory works." if reply["ok"] else f"{place(reply)}: the memory has problems."
    text += f" {pages['indexed']} of {pages['disk']} pages searchable, {inbox['new']} events wait."
    return Answer("\n".join([text, *(f"- {shown(problem)}" for problem in reply["problems"])]), reply)


TOOL = Tool(
    name="memory_status",
    title="State of the memory",
    description="Whether the memory works, how much is in it, what is wrong.",
    run=_run,
    reads=True,
)
