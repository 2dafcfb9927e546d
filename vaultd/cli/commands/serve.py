"""Run the daemon in the foreground until it is stopped (Ctrl-C, SIGTERM)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal
    from vaultd.engine.stores import Stores

HELP = "run the daemon in the foreground"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--log", metavar="FILE", help="log to this file, begun anew when it is full, not to the screen")
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)  # it served just now: see `_right`


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Run it."""
    import os
    import signal
    import sys
    from pathlib import Path

    from vaultd.cli.log import start_log
    from vaultd.cli.serving import end, filling, reachable, surfaces
    from vaultd.engine.daemon import Daemon

    stores = _right(args)
    start_log(stores.config.rules, Path(args.log) if args.log else None)
    daemon = Daemon(stores, reachable)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: end(daemon))
    daemon.run(
        ready=lambda: terminal.say(f"vaultd serves {stores.vault.root} (Ctrl-C stops it)"),
        companions=[surfaces(daemon, stores), *filling(daemon, stores)],
    )
    if daemon.changed_settings:
        # The same process with the settings as they are now.
        command = [sys.executable, "-P", "-m", "vaultd", "--vault", str(stores.vault.root), "serve", "--again"]
        os.execve(sys.executable, command + (["--log", args.log] if args.log else []), dict(stores.config.environ))
    return 0


def _right(args: argparse.Namespace) -> Stores:
    """The vault, with right settings. A daemon that is started anew waits for those: they changed once and may be wrong
    by now, for a moment or longer. Whoever starts one is told instead (UsageError, RefusedError).
    """
    import sys
    import time

    from vaultd.cli.opening import opened
    from vaultd.cli.serving import reachable
    from vaultd.errors import RefusedError, UsageError

    told = ""
    while True:
        try:
            stores = opened(args)
            reachable(stores.config)
            return stores
        except (UsageError, RefusedError) as error:
            if not args.again:
                raise
            if str(error) != told:
                told = str(error)
                print(f"vaultd: {told} Events wait until then.", file=sys.stderr, flush=True)
        time.sleep(1.0)
