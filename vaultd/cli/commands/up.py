"""Make the vault if there is none and start the daemon in the background."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "start the memory: make the vault if there is none, start the daemon"


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Start it, and say what to do next."""
    from vaultd.cli.opening import configured, opened
    from vaultd.cli.starting import start_daemon
    from vaultd.engine.connecting import is_connected, is_found
    from vaultd.engine.install import refresh_hook, wired_agents
    from vaultd.engine.setup import hook_source, init, needs_init, remember, was_here
    from vaultd.engine.status import daemon_says
    from vaultd.errors import NoVaultError, RefusedError

    config = configured(args)
    if needs_init(config):
        if was_here(config):
            raise NoVaultError(
                f"The vault {config.vault} is gone. Was it moved? `vaultd --vault NEW up` uses it there. "
                f"`vaultd init {config.vault}` makes a new, empty one."
            )
        report = init(config)
        terminal.say(f"Made a vault at {report.root}")
        for path in report.added:
            terminal.say(f"  added {path}")
        for note in report.notes:
            terminal.say(note)
    remember(config)
    stores = opened(args)
    refresh_hook(hook_source(), config.places)
    process, started = start_daemon(stores)
    terminal.say(f"The daemon {'runs' if started else 'ran already'} (pid {process.pid}) for {config.vault}")
    wired = wired_agents(stores.agents.values(), config.places, config.environ)
    if wired:
        terminal.say(f"Agents that are wired: {', '.join(wired)}")
    here = [a for a in stores.agents.values() if is_found(a, config.places, config.environ)]
    missing = [a.id for a in here if not is_connected(a, config)]
    if flaw := daemon_says(stores, "no-http"):
        terminal.say(f"HTTP: {flaw}; the rest works.")
    if flaw := daemon_says(stores, "held"):
        raise RefusedError(f"The settings are wrong, events wait: {flaw}")
    terminal.say("`vaultd status` shows what is recorded.")
    if missing and terminal.ask(f"Connect the agents that are found here ({', '.join(missing)})?"):
        from vaultd.cli.commands import connect

        chosen = argparse.Namespace(**{**vars(args), "agents": missing, "yes": False, "only_print": False})
        return connect.run(chosen, terminal)
    if missing or not wired:
        terminal.say(f"Next: `vaultd connect` (found here: {', '.join(missing) or 'none yet'}).")
    return 0
