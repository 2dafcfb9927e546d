"""Take vaultd out of agents' files again.

A file that nobody else changed gets back the very bytes it had; from any other only what is ours goes. The vault and
the daemon stay.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "take vaultd out of agents' files again (shows the plan, asks)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="only these (default: all)")
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    parser.add_argument("--print", dest="only_print", action="store_true", help="only show the plan")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Show the plan, ask, carry it out."""
    from vaultd.agents import load_agents
    from vaultd.cli.opening import configured
    from vaultd.cli.planning import carried_out, declined, named_agents
    from vaultd.engine.foreign import Plan
    from vaultd.engine.uninstall import uninstall_plan

    config = configured(args, forgiving=True)
    agents = named_agents(args.agents) or list(load_agents().values())

    def plan_of() -> Plan:
        return uninstall_plan(agents, config, everything=False)

    plan = plan_of()
    if plan.empty:
        terminal.say("Nothing of vaultd is in these agents' files.")
        return 0
    if not args.yes:
        terminal.say(plan.text.rstrip("\n") + "\n")
    terminal.say(f"{len(plan.changes)} files:\n{plan.summary}")
    if args.only_print or not (args.yes or terminal.ask("Do this?")):
        return declined(terminal, args)
    for text in carried_out(config, plan, plan_of):
        terminal.say(text)
    for note in plan.notes:
        terminal.say(note)
    terminal.say("Agents that run now keep what they read: start them again.")
    return 0
