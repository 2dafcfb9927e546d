"""Close a session that its agent did not close, and make its page and handoff final."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "close a session that its agent did not close"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--agent", metavar="AGENT", help="of this agent (default: of any)")
    parser.add_argument(
        "--session-id", metavar="ID", help="this session (default: the one in this project heard of last)"
    )
    parser.add_argument("session", nargs="?", metavar="ID", help="the same as --session-id")
    parser.add_argument("--all", action="store_true", help="every open session")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Close it."""
    from vaultd.cli.opening import here, opened
    from vaultd.engine.once import finalize

    stores = opened(args)
    closed = finalize(stores, args.agent, args.session_id or args.session, here(stores), everything=args.all)
    for name in closed:
        terminal.say(f"Closed {name}.")
    return 0
