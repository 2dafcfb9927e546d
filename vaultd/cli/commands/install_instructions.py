"""Tell an agent in its instructions when to ask its memory: a few lines, and a skill where it has such. Prints what it
would change; --apply does it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "tell one agent when to ask the memory (prints the change; --apply makes it)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="the agent's id, as README lists them")
    parser.add_argument("--agent", dest="named", metavar="AGENT", help="the same")
    parser.add_argument("--apply", action="store_true", help="make the change")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Print the plan, or carry it out."""
    from vaultd.cli.planning import install_part

    return install_part(args, terminal, "instructions")
