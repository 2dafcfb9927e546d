"""Show on a scratch vault how a session of one agent becomes what the next agent is given. Touches nothing of yours."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "show the whole path on a scratch vault"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--keep", action="store_true", help="leave the vault there and say where it is")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Play it."""
    from vaultd.cli.demo import Demo

    return Demo(terminal).play(keep=args.keep)
