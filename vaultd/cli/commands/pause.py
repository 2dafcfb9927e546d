"""Stop recording on this machine until `vaultd resume-capture`: hooks write nothing at all."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "stop recording until `vaultd resume-capture`"


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Set the flag."""
    from vaultd.cli.opening import opened
    from vaultd.engine.setup import set_paused

    set_paused(opened(args, forgiving=True), True)
    terminal.say("Paused: nothing is recorded until `vaultd resume-capture`.")
    return 0
