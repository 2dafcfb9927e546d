"""Connect the agents on this machine to the memory: their hooks, MCP servers and instructions.

Shows one plan, and does it when you say yes.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.agents import Agent
    from vaultd.cli.terminal import Terminal

HELP = "connect the agents on this machine to the memory (shows the plan, asks)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="only these (default: all that are found)")
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    parser.add_argument("--print", dest="only_print", action="store_true", help="only show the plan")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Show the plan, ask, carry it out. 6 when a file was refused and left; 4 when no agent is found."""
    from vaultd.agents import load_agents
    from vaultd.cli.opening import configured
    from vaultd.cli.planning import carried_out, declined, named_agents
    from vaultd.engine.connecting import Refused, enter_plan, is_found
    from vaultd.engine.foreign import Plan
    from vaultd.engine.install import refresh_hook
    from vaultd.engine.parts import parts_of
    from vaultd.engine.setup import hook_source, init, needs_init

    config = configured(args)
    known = load_agents()
    agents = named_agents(args.agents) or [a for a in known.values() if is_found(a, config.places, config.environ)]
    if not agents:
        terminal.say(f"No agent is found on this machine. Name those that you use; known are: {', '.join(known)}.")
        return 4
    fresh = needs_init(config)

    def planned() -> tuple[Plan, list[Refused]]:
        parts = [part for agent in agents for part in parts_of(agent, config, fresh=fresh)]
        return enter_plan(parts, config.places)

    plan, refused = planned()
    if not args.yes and not plan.empty:
        terminal.say(plan.text.rstrip("\n") + "\n")
    for one in refused:
        terminal.warn(f"Refused, and left as it is: {one.text}\n")
    for agent in agents:
        terminal.say(f"{agent.title}: {_gets(agent)}")
    if fresh:
        terminal.say(f"A vault is made at {config.vault}.")
    if plan.empty and not fresh:
        refresh_hook(hook_source(), config.places)
        terminal.say("Nothing to change" + (" but what was refused." if refused else ": all of it is there already."))
        return 6 if refused else 0
    if not plan.empty:
        terminal.say(f"{len(plan.changes)} files:\n{plan.summary}")
    if args.only_print or not (args.yes or terminal.ask("Do this?")):
        return declined(terminal, args)
    if fresh:
        init(config)
    refresh_hook(hook_source(), config.places)
    for text in carried_out(config, plan, lambda: planned()[0]):
        terminal.say(text)
    for note in plan.notes:
        terminal.say(note)
    return 6 if refused else 0


def _gets(agent: Agent) -> str:
    """What there is for an agent, in words."""
    hooks = agent.hooks is not None
    parts = [
        "is recorded" if hooks else "is not recorded (it has no hooks that vaultd knows to work)",
        *(["is given handoffs"] if agent.printed and hooks else []),
        *(["asks over MCP"] if agent.mcp is not None else []),
        *(["has a few lines in its instructions"] if agent.instructions is not None else []),
        *(["and a skill"] if agent.instructions is not None and agent.instructions.skill else []),
    ]
    return ", ".join(parts)
