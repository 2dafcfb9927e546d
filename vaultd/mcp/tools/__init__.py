"""The table of tools."""

from __future__ import annotations

from collections.abc import Mapping

from vaultd.mcp.tool import Tool
from vaultd.mcp.tools import (
    briefing,
    delete_page,
    handoffs,
    observations,
    query,
    read_page,
    recent,
    routing,
    status,
    write_page,
)

__all__ = ["TOOLS"]

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        query.TOOL,
        recent.TOOL,
        read_page.TOOL,
        briefing.TOOL,
        status.TOOL,
        write_page.TOOL,
        delete_page.TOOL,
        *handoffs.TOOLS,
        observations.TOOL,
        routing.TOOL,
    )
}
"""Every tool by its name, in the order of `tools/list`: what is asked most comes first."""
