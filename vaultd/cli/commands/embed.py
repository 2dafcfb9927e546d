"""Make the vectors of pages that have none yet or are older than their page, for searching by meaning.

Needs `[vectors]` in this machine's settings. It may be stopped at any time, and goes on where it was.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "make the vectors of new and changed pages"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--force", action="store_true", help="make all of them anew")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Bring the index up to date, then the vectors. Exit code 1 when pages could not be embedded."""
    from vaultd.cli.opening import opened
    from vaultd.engine.embedding import bring_up, embedder_of, open_vectors, revisions
    from vaultd.engine.reconcile import Reconcile, open_index
    from vaultd.errors import UsageError

    stores = opened(args)
    embedder = embedder_of(stores.config)
    if embedder is None:
        raise UsageError(f"Vectors are off. Set `provider` below [vectors] in {stores.config.places.settings}.")
    index = open_index(stores)
    try:
        reconcile = Reconcile(stores, index)
        reconcile.run(reconcile.behind(), lambda done, total: terminal.progress("indexing", done, total))
        pages = revisions(index)
    finally:
        index.close()
    vectors = open_vectors(stores.config, embedder)
    if vectors.doubt:
        terminal.say(f"The vectors at hand are of no use: {vectors.doubt}. All are made anew.")
    told = bring_up(
        stores,
        embedder,
        vectors,
        pages,
        force=args.force,
        progress=lambda done, total: terminal.progress("embedding", done, total),
    )
    terminal.say(
        f"Embedded {told.embedded} pages with {embedder.model} ({embedder.provider}), dropped {told.dropped}; "
        f"{len(vectors.revisions())} of {len(pages)} pages have vectors of {vectors.dimension} numbers."
    )
    for path, reason in told.failed.items():
        terminal.warn(f"{path}: {reason}")
    return 1 if told.failed else 0
