"""Serve MCP over standard input and output: what agents start. Asks the daemon, and starts one when there is none."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "serve MCP over standard input and output (what agents start; not for people)"


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Serve until the client is gone."""
    import os

    from vaultd.cli.bridge import Bridge
    from vaultd.cli.reaching import Reach
    from vaultd.config import current_environment

    try:
        cwd = os.getcwdb()  # noqa: PTH109  # bytes: a name that is not UTF-8 must survive
    except FileNotFoundError:
        cwd = b""
    return Bridge(Reach(getattr(args, "vault", None), current_environment()), cwd).run()
