"""Make vaultd one of a client's MCP servers. Prints what it would change; --apply does it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "let a client ask the memory over MCP (prints the change; --apply makes it)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--client", required=True, metavar="CLIENT", help="the agent's id, as README lists them")
    parser.add_argument("--apply", action="store_true", help="make the change")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Print the plan, or carry it out."""
    from vaultd.agents import load_agents
    from vaultd.cli.opening import configured
    from vaultd.cli.planning import show_plan
    from vaultd.engine.mcpwiring import mcp_plan
    from vaultd.errors import UsageError

    config = configured(args)
    agent = load_agents().get(args.client)
    if agent is None:
        raise UsageError(f"Unknown client {args.client!r}. Known are: {', '.join(load_agents())}.")
    show_plan(terminal, config, lambda: mcp_plan(agent, config), wanted=args.apply, first=lambda: None)
    return 0
