"""`memory_install_self_routing`: words for an agent's own instructions."""

from __future__ import annotations

from vaultd.mcp.tool import Answer, Call, Tool
from vaultd.mcp.wording import place

__all__ = ["TOOL"]


def _run(call: Call) -> Answer:
    reply = call.service.routing(call.scope)
    return Answer(f"{place(reply)}. Text for your instructions file; ask before you add it:\n{reply['text']}", reply)


TOOL = Tool(
    name="memory_install_self_routing",
    title="Text for your instructions",
    description="Get a text for AGENTS.md and the like that tells agents when to use this memory. Writes nothing.",
    run=_run,
    reads=True,
)
