"""Print a page, found by its path, its name or a session's id, or a part of it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "print a page"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument(
        "page",
        metavar="PAGE",
        help="path in the vault, name, or session id; PAGE#Heading and PAGE#^block print that part",
    )


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Print it."""
    from vaultd.cli.opening import opened
    from vaultd.engine.reading import part
    from vaultd.engine.recall import find_page
    from vaultd.errors import NotFoundError

    stores = opened(args, forgiving=True)
    name, _, anchor = args.page.partition("#")
    page = stores.vault.read(find_page(stores, name))
    if page is None:
        raise NotFoundError(f"The page {args.page} was removed this moment.")
    text = part(page, anchor, "")["text"] if anchor else page.data.decode("utf-8", "replace")
    terminal.say(text.removesuffix("\n"))
    return 0
