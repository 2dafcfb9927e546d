"""Show what is recorded, what waits, and what is wrong. Exit code 7 when something is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "show what is recorded, what waits, and what is wrong"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Show it."""
    from vaultd.cli.opening import folder, opened
    from vaultd.cli.report import show_status
    from vaultd.engine.install import wired_agents
    from vaultd.engine.status import http_state, open_sessions, status, watch_state

    stores = opened(args, forgiving=True)
    report = status(stores)
    if args.json:
        terminal.json(report)
    else:
        wired = wired_agents(stores.agents.values(), stores.config.places, stores.config.environ)
        told = {"watch": watch_state(stores), "http": http_state(stores), "wired": ", ".join(wired)}
        show_status(terminal, report, folder(stores), open_sessions(stores), told)
    return 0 if report["ok"] else 7
