"""`memory_delete_page`: take a page out of the memory."""

from __future__ import annotations

from vaultd.mcp.tool import TEXT, Answer, Call, Tool
from vaultd.mcp.tools.write_page import SCOPE
from vaultd.mcp.wording import place, shown

__all__ = ["TOOL"]


def _run(call: Call) -> Answer:
    everywhere = call.values.get("scope") == "global"
    reply = call.service.delete_page(call.scope, call.text("path"), everywhere=everywhere)
    kept = f" Commit {shown(reply['commit'])} still has it." if reply["commit"] else ""
    return Answer(f"{place(reply, everywhere=everywhere)}: deleted {shown(reply['path'])}.{kept}", reply)


TOOL = Tool(
    name="memory_delete_page",
    title="Delete a page",
    description="Delete a page; git keeps its text.",
    run=_run,
    arguments={"path": TEXT, "scope": SCOPE},
    required=("path",),
    aliases={"page": "path"},
    destroys=True,
)
