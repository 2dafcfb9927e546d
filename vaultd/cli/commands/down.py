"""Stop the daemon. Capture goes on: events wait in the inbox."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "stop the daemon (events wait in the inbox)"


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Stop it and wait until it is gone."""
    from vaultd.cli.opening import opened
    from vaultd.cli.starting import stop_daemon

    pid = stop_daemon(opened(args, forgiving=True))
    terminal.say(f"Stopped the daemon (pid {pid})." if pid else "No daemon runs.")
    return 0
