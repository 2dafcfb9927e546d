"""Make vaultd one of a client's MCP servers. Prints what it would change; --apply does it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "let a client ask the memory over MCP (prints the change; --apply makes it)"

_ATTEMPTS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--client", required=True, metavar="CLIENT", help="the agent's id, as README lists them")
    parser.add_argument("--apply", action="store_true", help="make the change")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Print the plan, or carry it out."""
    from vaultd.agents import load_agents
    from vaultd.cli.opening import configured
    from vaultd.engine.foreign import apply
    from vaultd.engine.mcpwiring import mcp_plan
    from vaultd.engine.setup import needs_init
    from vaultd.engine.stores import local_now
    from vaultd.errors import ConflictError, UsageError

    config = configured(args)
    agent = load_agents().get(args.client)
    if agent is None:
        raise UsageError(f"Unknown client {args.client!r}. Known are: {', '.join(load_agents())}.")
    plan = mcp_plan(agent, config)
    if not plan.empty:
        terminal.say(plan.text.rstrip("\n"))
    for attempt in range(1, _ATTEMPTS + 1):
        if not args.apply:
            break
        try:
            for text in apply(plan, config.places, local_now()):
                terminal.say(text)
            break
        except ConflictError:
            if attempt == _ATTEMPTS:
                raise
            plan = mcp_plan(agent, config)  # a running client writes this file all the time
    if not args.apply and not plan.empty:
        terminal.say("Nothing was changed. Add --apply to do it.")
    for note in plan.notes:
        terminal.say(note)
    if args.apply and needs_init(config):
        terminal.say("There is no vault yet: `vaultd up` makes one.")
    return 0
