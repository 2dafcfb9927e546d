"""Stop recording on this machine until `vaultd resume`: hooks write nothing at all."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "stop recording until `vaultd resume`"


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Set the flag."""
    from vaultd.cli.opening import opened
    from vaultd.engine.setup import set_paused

    set_paused(opened(args, forgiving=True), True)
    terminal.say("Paused: nothing is recorded until `vaultd resume`.")
    return 0
