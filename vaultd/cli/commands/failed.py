"""Events that could not be understood: list them, put them back into the inbox, or drop them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "events that could not be understood: list, retry, drop"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("action", nargs="?", choices=["list", "retry", "drop"], default="list")
    parser.add_argument("key", nargs="*", metavar="KEY", help="which (default for retry: all)")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Do it."""
    from vaultd.cli.opening import opened
    from vaultd.errors import NotFoundError, UsageError

    inbox = opened(args).inbox
    there = inbox.failures()
    keys = args.key or there
    missing = [key for key in keys if key not in there]
    if missing:
        raise NotFoundError(f"No failed event {missing[0]}. `vaultd failed` lists them.")
    if args.action == "list":
        terminal.table([(key, inbox.failure_reason(key)) for key in keys])
        if keys:
            terminal.warn(
                "`vaultd failed retry` tries them again (after an update, say), `vaultd failed drop KEY` deletes."
            )
        else:
            terminal.say("No failed events.")
    elif args.action == "retry":
        for key in keys:
            inbox.retry(key)
        terminal.say(f"{len(keys)} put back into the inbox. `vaultd ingest` works it off.")
    elif not args.key:
        raise UsageError("Name the events to drop: `vaultd failed drop KEY ...`.")
    else:
        for key in keys:
            inbox.drop(key)
        terminal.say(f"Dropped {len(keys)}.")
    return 0
