"""Print a page, found by its path, its name or a session's id."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "print a page"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("page", metavar="PAGE", help="path in the vault, name, or session id")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Print it."""
    from vaultd.cli.opening import opened
    from vaultd.engine.recall import find_page
    from vaultd.errors import NotFoundError

    stores = opened(args, forgiving=True)
    page = stores.vault.read(find_page(stores, args.page.partition("#")[0]))
    if page is None:
        raise NotFoundError(f"The page {args.page} was removed this moment.")
    terminal.say(page.data.decode("utf-8", "replace").removesuffix("\n"))
    return 0
