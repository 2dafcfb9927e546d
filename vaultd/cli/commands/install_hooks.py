"""Wire an agent: add the hook to its configuration. Prints what it would change; --apply does it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "wire an agent (prints the change; --apply makes it)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--agent", required=True, metavar="AGENT", help="the agent's id, as README lists them")
    parser.add_argument("--apply", action="store_true", help="make the change")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Print the plan, or carry it out."""
    from vaultd.agents import load_agents
    from vaultd.cli.opening import configured
    from vaultd.cli.planning import show_plan
    from vaultd.engine.install import install_plan, refresh_hook
    from vaultd.engine.setup import hook_source
    from vaultd.errors import UsageError

    config = configured(args)
    agent = load_agents().get(args.agent)
    if agent is None:
        raise UsageError(f"Unknown agent {args.agent!r}. Known are: {', '.join(load_agents())}.")
    show_plan(
        terminal,
        config,
        lambda: install_plan(agent, config.places, config.environ),
        wanted=args.apply,
        first=lambda: refresh_hook(hook_source(), config.places),
    )
    return 0
