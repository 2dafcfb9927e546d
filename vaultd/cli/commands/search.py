"""Search the vault. In a project's folder its own pages come first, `_global` and unscoped pages apart."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal
    from vaultd.engine.recall import Hit

HELP = "search the vault"
_BLOCK_ID = re.compile(r" \^[\w-]+\Z")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("query", nargs="+", metavar="QUERY")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="hits per scope (default 10)")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--paths", action="store_true", help="one path a line")
    parser.add_argument("--all", action="store_true", help="search every project, not only this folder's")
    parser.add_argument(
        "--where", action="append", default=[], metavar="KEY=VALUE", help="only pages whose frontmatter says so"
    )


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Search and print."""
    from vaultd.cli.opening import here, opened
    from vaultd.engine.processes import daemon_process
    from vaultd.engine.recall import search
    from vaultd.errors import UsageError

    stores = opened(args, forgiving=True)
    where = {}
    for pair in args.where:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--where takes KEY=VALUE, not {pair!r}.")
        where[key] = value
    project = None if args.all else here(stores)
    answer = search(
        stores,
        " ".join(args.query),
        limit=args.limit,
        project=project.id if project else None,
        where=where,
        daemon=daemon_process(stores) is not None,
        progress=lambda done, total: terminal.progress("indexing", done, total),
    )
    terminal.clear()
    if args.json:
        terminal.json(answer.as_dict())
        return 0
    if args.paths:
        for hit in (*answer.hits, *answer.global_hits, *answer.other_hits):
            terminal.say(hit.path)
        return 0
    for heading, hits in (
        ("", answer.hits),
        ("In every project:", answer.global_hits),
        ("Outside projects:", answer.other_hits),
    ):
        _show(terminal, heading, hits)
    if not (answer.hits or answer.global_hits or answer.other_hits):
        scope = f" in {project.slug} (`--all` searches every project)" if project else ""
        terminal.say(f"Nothing found{scope}.")
    if answer.pending:
        terminal.warn(f"{answer.pending} events or pages are not in yet; ask again in a moment.")
    return 0


def _show(terminal: Terminal, heading: str, hits: list[Hit]) -> None:
    """Print the hits of one scope."""
    if hits and heading:
        terminal.say(heading)
    for hit in hits:
        # A block's id is for links, not for the eye.
        anchor = "" if hit.anchor.startswith("#^") else hit.anchor
        snippet = _BLOCK_ID.sub("", hit.snippet)
        terminal.say(f"{hit.path}{anchor}  ({hit.kind})")
        terminal.say(f"    {hit.title}")
        if snippet and snippet != hit.title:
            terminal.say(f"    {snippet}")
