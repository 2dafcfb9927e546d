"""Record again after `vaultd pause`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "record again after `vaultd pause`"


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Clear the flag."""
    from vaultd.cli.opening import opened
    from vaultd.engine.setup import set_paused

    set_paused(opened(args, forgiving=True), False)
    terminal.say("Recording.")
    return 0
