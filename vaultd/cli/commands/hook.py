"""Deliver one event: reads the agent's payload from standard input. The portable twin of the hook script."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "deliver one event (what agents call; not for people)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("agent", metavar="AGENT")
    parser.add_argument("event", metavar="EVENT")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Deliver it."""
    from vaultd.cli.hook import run_hook

    return run_hook([args.agent, args.event])
