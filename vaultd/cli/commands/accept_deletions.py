"""Say that pages which are gone were meant to go, so that commits go on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "say that pages which are gone were meant to go"


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Accept them."""
    from vaultd.cli.opening import opened
    from vaultd.engine.history import History

    stores = opened(args)
    with stores.write_lock:
        gone = History(stores).accept_deletions()
    terminal.say(f"{gone} deletions accepted; they are committed next." if gone else "No page is gone.")
    return 0
