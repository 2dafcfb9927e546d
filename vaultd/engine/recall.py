"""Recall: search, read and list pages. Reads only; what the index does not know yet is counted, never hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath

from vaultd.core import frontmatter
from vaultd.core.kinds import kind_of, tier_of
from vaultd.core.markdown import title_of
from vaultd.engine.answers import Answer, Wanted, answer, present
from vaultd.engine.nearby import nearby_of
from vaultd.engine.reconcile import Reconcile, open_index
from vaultd.engine.stores import Stores
from vaultd.errors import NotFoundError, UsageError

__all__ = ["Recent", "find_page", "recent", "search"]

_WAIT_PAGES = 500
"""Pages that a search brings into the index by itself before it answers; more are left to the daemon and counted."""


@dataclass(frozen=True, slots=True)
class Recent:
    """A page in a list of recent ones; `updated` is the file's time."""

    path: str
    title: str
    kind: str
    tier: str
    updated: str


def search(
    stores: Stores,
    text: str,
    wanted: Wanted,
    *,
    daemon: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Answer a query. Pages that the index does not know are indexed first, unless there are many and a daemon is at
    it. No query is an error; a query without a word has no hits.
    """
    index, nearby = open_index(stores), nearby_of(stores.config)
    try:
        reconcile = Reconcile(stores, index)
        behind = reconcile.behind()
        if behind.count and (not daemon or behind.count <= _WAIT_PAGES):
            reconcile.run(behind, progress, blocking=not daemon)
        told = answer(present(stores, index), text, wanted, nearby)
        if index.doubt:  # it turned out damaged while it was read
            reconcile.run(reconcile.behind(), progress)
            told = answer(present(stores, index), text, wanted, nearby)
        return replace(told, pending=reconcile.behind().count + len(stores.inbox.pending()))
    finally:
        index.close()


def find_page(stores: Stores, name: str) -> str:
    """The path of the page that a person means: a path in the vault, a path without `.md`, a title's file name, or a
    session's id. NotFoundError, UsageError when several pages fit.
    """
    for path in (name, f"{name}.md"):
        plain = path.endswith(".md") and not path.startswith("/") and ".." not in PurePosixPath(path).parts
        if plain and stores.vault.read(path) is not None:
            return path
    wanted = PurePosixPath(name).name.removesuffix(".md").lower()
    fits = [
        s.path
        for s in stores.vault.scan()
        if (stem := PurePosixPath(s.path).stem.lower()) == wanted or stem.endswith(f"-{wanted}")
    ]
    fits = fits or [path for path, values in _sessions(stores) if values.get("session_id") == name]
    if not fits:
        raise NotFoundError(
            f"No page {name!r}. `vaultd search` finds pages by their words, `vaultd recent` lists the newest."
        )
    if len(fits) > 1:
        shown = "\n  ".join(sorted(fits)[:10])
        raise UsageError(f"{len(fits)} pages are called {name!r}. Name one of them:\n  {shown}")
    return fits[0]


def _sessions(stores: Stores) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The session pages of all projects."""
    for project in stores.projects.known():
        yield from stores.pages.folder(f"{project.folder}/sessions")


def recent(stores: Stores, limit: int, folder: str | None = None) -> list[Recent]:
    """The pages that changed last, newest first, of one project folder or of the whole vault."""
    stats = [s for s in stores.vault.scan() if folder is None or s.path.startswith(folder + "/")]
    rows: list[Recent] = []
    for stat in sorted(stats, key=lambda s: (-s.mtime_ns, s.path))[:limit]:
        page = stores.vault.read(stat.path)
        if page is None:
            continue
        meta, body = frontmatter.parse(page.data)
        when = datetime.fromtimestamp(stat.mtime_ns / 1e9, stores.clock().tzinfo)
        rows.append(
            Recent(
                stat.path,
                title_of(meta.values, body, stat.path),
                kind_of(stat.path, meta.values),
                tier_of(stat.path, meta.values),
                when.isoformat(timespec="seconds"),
            )
        )
    return rows
