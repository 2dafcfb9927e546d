"""Handoffs: what one session leaves for the next. List, show, begin one by hand, accept or cancel one."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "handoffs: list, show, begin, accept, cancel"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--all", action="store_true", help="accepted and expired ones too, of every project")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help="list them (the default)")
    listing.add_argument("--all", action="store_true", default=argparse.SUPPRESS, help="see `vaultd handoffs --help`")
    listing.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON document")
    for name, text in (("show", "print one"), ("accept", "print one and mark it accepted"), ("cancel", "expire one")):
        sub = actions.add_parser(name, help=text)
        sub.add_argument("id", metavar="ID")
    begin = actions.add_parser("begin", help="leave one for the next session in this folder's project")
    begin.add_argument(
        "summary", nargs="+", metavar="TEXT", help="what the next session must know (-: from standard input)"
    )
    begin.add_argument("--next", action="append", default=[], metavar="TEXT", dest="next_steps", help="a next step")
    begin.add_argument(
        "--question", action="append", default=[], metavar="TEXT", dest="questions", help="an open question"
    )
    begin.add_argument("--file", action="append", default=[], metavar="PATH", dest="files", help="a file that matters")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Do it."""
    from vaultd.cli.opening import here, opened, project_here
    from vaultd.engine.handoffs import Handoffs
    from vaultd.engine.manual import accept, begin, cancel

    stores = opened(args, forgiving=args.action != "begin")
    if args.action == "begin":
        text = sys.stdin.read() if args.summary == ["-"] else " ".join(args.summary)
        place = project_here(stores)
        made = begin(stores, place, text, args.next_steps, args.questions, args.files)
        terminal.say(f"Handoff {made} waits for the next session in {place.slug}.")
        return 0
    if args.action in ("show", "accept", "cancel"):
        entry = Handoffs(stores).find(args.id)
        if args.action == "accept":
            entry = accept(stores, args.id)
        if args.action == "cancel":
            cancel(stores, args.id)
            terminal.say(f"Cancelled {args.id}.")
            return 0
        page = stores.vault.read(entry.path)
        terminal.say(page.data.decode("utf-8", "replace").rstrip("\n") if page else "")
        return 0
    everything = getattr(args, "all", False)
    project = None if everything else here(stores)
    entries = list(Handoffs(stores).entries(project.folder if project else None, None if everything else "open"))
    entries.sort(key=lambda e: (not e.automatic, e.text("created")), reverse=True)  # as they are given
    if getattr(args, "json", False):
        terminal.json([{"id": e.id, "state": e.state, "path": e.path, **dict(e.values)} for e in entries])
        return 0
    terminal.table(
        [
            (
                e.id,
                e.state + (" (provisional)" if e.provisional else ""),
                e.text("from_agent") if e.automatic else "by hand",
                e.text("created")[:16].replace("T", " "),
                e.folder,
                e.text("title"),
            )
            for e in entries
        ]
    )
    if not entries:
        terminal.say("No open handoffs." if not everything else "No handoffs.")
    return 0
