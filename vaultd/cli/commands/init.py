"""Make a vault, or make a folder of notes that you have into one. No byte of yours is changed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "make a vault (also in a folder of notes that you have)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--force", action="store_true", help="also a checkout of code")
    parser.add_argument("path", nargs="?", metavar="PATH", help="the folder (default: ~/vaultd)")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Make it, and print what was added."""
    from vaultd.config import load
    from vaultd.engine.setup import init

    report = init(load(args.path or getattr(args, "vault", None)), force=args.force)
    terminal.say(f"Vault: {report.root}")
    for path in report.added:
        terminal.say(f"  added {path}")
    if not report.added:
        terminal.say("  nothing to add, it is a vault already")
    for note in report.notes:
        terminal.say(note)
    terminal.say("Next: `vaultd up` starts the daemon.")
    return 0
