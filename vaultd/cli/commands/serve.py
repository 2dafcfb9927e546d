"""Run the daemon in the foreground until it is stopped (Ctrl-C, SIGTERM)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "run the daemon in the foreground"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--log", metavar="FILE", help="log to this file, begun anew when it is full, not to the screen")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Run it."""
    import os
    import signal
    import sys
    from pathlib import Path

    from vaultd.cli.log import start_log
    from vaultd.cli.opening import opened
    from vaultd.cli.serving import end, reachable, surfaces
    from vaultd.engine.daemon import Daemon

    stores = opened(args)
    start_log(stores.config.rules, Path(args.log) if args.log else None)
    daemon = Daemon(stores, reachable)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: end(daemon))
    daemon.run(
        ready=lambda: terminal.say(f"vaultd serves {stores.vault.root} (Ctrl-C stops it)"),
        companions=[surfaces(daemon, stores)],
    )
    if daemon.changed_settings:
        # The same process with the settings as they are now.
        command = [sys.executable, "-P", "-m", "vaultd", "--vault", str(stores.vault.root), "serve"]
        os.execve(sys.executable, command + (["--log", args.log] if args.log else []), dict(stores.config.environ))
    return 0
