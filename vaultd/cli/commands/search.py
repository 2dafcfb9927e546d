"""Search the vault. In a project's folder its own pages come first, `_global` and unscoped pages apart."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vaultd.cli.terminal import Terminal
    from vaultd.engine.answers import Answer, Hit

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
        "--where",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="only pages whose frontmatter says so; of several values for one key, one of them",
    )
    parser.add_argument("--scope", action="append", default=[], metavar="PROJECT", help="another project's pages too")
    parser.add_argument("--pinned-first", action="store_true", help="the pinned pages in front")
    parser.add_argument("--superseded", action="store_true", help="pages that others replaced, too")
    parser.add_argument("--expired", action="store_true", help="pages whose time is over, too")
    parser.add_argument("--explain", action="store_true", help="why each hit stands where it does")
    parser.add_argument(
        "--as-of",
        metavar="TIME",
        help="as git had the vault at the end of a day (2026-11-29), or at a time with offset (2026-11-29T18:00+01:00)",
    )


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Search and print."""
    from vaultd.cli.opening import here, opened
    from vaultd.engine.answers import Wanted
    from vaultd.engine.past import answer_as_of
    from vaultd.engine.processes import daemon_process
    from vaultd.engine.recall import search
    from vaultd.engine.scoping import any_project

    stores = opened(args, forgiving=True)
    project = None if args.all else here(stores)
    own = [project.id] if project else []
    asked = list(dict.fromkeys([*own, *(any_project(stores, name).id for name in args.scope)]))
    wanted = Wanted(
        projects=asked if asked and not args.all else None,
        limit=args.limit,
        where=_where(args.where),
        expired=args.expired,
        superseded=args.superseded,
        pinned_first=args.pinned_first,
        explain=args.explain,
    )
    text = " ".join(args.query)
    if args.as_of is not None:
        answer = answer_as_of(stores, text, wanted, args.as_of)
    else:
        answer = search(
            stores,
            text,
            wanted,
            daemon=daemon_process(stores) is not None,
            progress=lambda done, total: terminal.progress("indexing", done, total),
        )
    terminal.clear()
    if args.json:
        terminal.json(answer.as_dict())
    elif args.paths:
        for hit in (*answer.hits, *answer.global_hits, *answer.other_hits):
            terminal.say(hit.path)
    else:
        _print(terminal, answer, project.slug if project else "")
    return 0


def _where(pairs: Sequence[str]) -> dict[str, list[str]]:
    """The values that are wanted for each key. UsageError for what is no pair."""
    from vaultd.errors import UsageError

    where: dict[str, list[str]] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--where takes KEY=VALUE, not {pair!r}.")
        where.setdefault(key, []).append(value)
    return where


def _print(terminal: Terminal, answer: Answer, project: str) -> None:
    """Print an answer for a person."""
    from vaultd.engine.service import RECORDS

    if answer.as_of is not None:
        terminal.say(f"As of {answer.as_of.at} (commit {answer.as_of.commit[:10]}), not as it is now:")
    lists = (("", answer.hits), ("In every project:", answer.global_hits), ("Outside projects:", answer.other_hits))
    for heading, hits in lists:
        _show(terminal, heading, hits)
    if answer.observations:
        terminal.say(RECORDS)
        for record in answer.observations:
            terminal.say(f"{record['at']} {record['agent']} {record['session']} {record['kind']}")
            terminal.say(f"    {record['text']}")
    elif not any(hits for _, hits in lists):
        scope = f" in {project} (`--all` searches every project)" if project else ""
        terminal.say(f"Nothing found{scope}.")
    if answer.note:
        terminal.warn(answer.note)
    if answer.pending:
        terminal.warn(f"{answer.pending} events or pages are not in yet; ask again in a moment.")


def _show(terminal: Terminal, heading: str, hits: list[Hit]) -> None:
    """Print the hits of one scope."""
    from vaultd.engine.service import because

    if hits and heading:
        terminal.say(heading)
    for hit in hits:
        # A block's id is for links, not for the eye.
        anchor = "" if hit.anchor.startswith("#^") else hit.anchor
        snippet = _BLOCK_ID.sub("", hit.snippet)
        terminal.say(f"{hit.path}{anchor}  ({hit.kind}{_replaced(hit)})")
        terminal.say(f"    {hit.title}")
        if snippet and snippet != hit.title:
            terminal.say(f"    {snippet}")
        if hit.why:
            terminal.say(f"    {because(hit.why)}")


def _replaced(hit: Hit) -> str:
    """What is said beside the kind of a page that another one replaced."""
    if not hit.superseded:
        return ""
    return f", superseded by {hit.superseded_by}" if hit.superseded_by else ", superseded"
