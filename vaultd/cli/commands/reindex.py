"""Make the search index anew from the vault. Nothing is lost: the index is derived."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "make the search index anew"


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Rebuild it."""
    from vaultd.cli.opening import opened
    from vaultd.engine.reconcile import rebuild

    pages = rebuild(opened(args), lambda done, total: terminal.progress("indexing", done, total))
    terminal.say(f"Indexed {pages} pages.")
    return 0
