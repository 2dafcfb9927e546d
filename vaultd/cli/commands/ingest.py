"""Work the inbox off once: events become pages, handoffs and prepared context, and are committed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "work the inbox off once"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument(
        "--quiet", action="store_true", help="print nothing, and leave at once when another process is at it"
    )


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """One pass; with a daemon running, wait until it worked the inbox off."""
    from vaultd.cli.opening import opened
    from vaultd.engine.once import ingest_once

    progress = None if args.quiet else lambda done, total: terminal.progress("events", done, total)
    result = ingest_once(opened(args), progress, patient=not args.quiet)
    if args.quiet:
        return 0
    shown = [f"{number} {outcome}" for outcome, number in result.tally.outcomes.items() if number]
    terminal.say(
        ", ".join(shown) if shown else "Nothing was waiting." if not result.by_daemon else "The daemon worked it off."
    )
    for path, reason in result.left.items():
        terminal.warn(f"not committed{': ' + path if path else ''} ({reason})")
    return 0
