"""Take vaultd out of the agents' configuration and remove everything outside the vault. The vault itself stays."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "take everything outside the vault away again"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--apply", action="store_true", help="do it (without: print what would be done)")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Print the plan, or carry it out."""
    from vaultd.agents import load_agents
    from vaultd.cli.opening import configured
    from vaultd.engine.foreign import apply
    from vaultd.engine.stores import local_now
    from vaultd.engine.uninstall import uninstall_plan

    config = configured(args, forgiving=True)
    plan = uninstall_plan(list(load_agents().values()), config)
    if plan.empty:
        terminal.say("Nothing of vaultd is installed here.")
    elif not args.apply:
        terminal.say(plan.text.rstrip("\n"))
    if args.apply:
        _stop(args, terminal)
        # Once more: in its last moments the daemon may have made something.
        plan = uninstall_plan(list(load_agents().values()), config)
        for text in apply(plan, config.places, local_now()):
            terminal.say(text)
    elif not plan.empty:
        terminal.say("Nothing was changed. Add --apply to do it.")
    for note in plan.notes:
        terminal.say(note)
    if args.apply and not plan.empty:
        terminal.say("vaultd is out of your agents' configuration: start agents that still run again.")
        terminal.say(
            f"Your vault stays: {config.vault} (`.vaultd/` in it holds this machine's events; delete it as you like)."
        )
    return 0


def _stop(args: argparse.Namespace, terminal: Terminal) -> None:
    """Stop the daemon, if there is a vault that has one: it would make the cache anew."""
    from vaultd.cli.opening import opened
    from vaultd.cli.starting import stop_daemon
    from vaultd.errors import NoVaultError

    try:
        pid = stop_daemon(opened(args, forgiving=True))
    except NoVaultError:
        return
    if pid:
        terminal.say(f"Stopped the daemon (pid {pid}).")
