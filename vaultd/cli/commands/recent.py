"""List the pages that changed last, of this folder's project or of the whole vault."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "list the pages that changed last"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="how many (default 10)")
    parser.add_argument("--all", action="store_true", help="of every project, not only this folder's")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """List them."""
    from dataclasses import asdict

    from vaultd.cli.opening import here, opened
    from vaultd.engine.recall import recent
    from vaultd.errors import UsageError

    stores = opened(args, forgiving=True)
    project = None if args.all else here(stores)
    if args.limit < 1:
        raise UsageError(f"--limit must be at least 1, not {args.limit}.")
    rows = recent(stores, args.limit, project.folder if project else None)
    if args.json:
        terminal.json([asdict(row) for row in rows])
        return 0
    terminal.table([(row.updated[:16].replace("T", " "), row.kind, row.title, row.path) for row in rows])
    if not rows:
        terminal.say("No pages yet.")
    return 0
