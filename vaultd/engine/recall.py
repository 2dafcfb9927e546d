"""Recall: search, read and list pages. Reads only; what the index does not know yet is counted, never hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import PurePosixPath

from vaultd.core import frontmatter
from vaultd.core.kinds import kind_of, tier_of
from vaultd.core.markdown import locate, title_of
from vaultd.engine.reconcile import Reconcile, open_index
from vaultd.engine.stores import Stores
from vaultd.errors import NotFoundError, UsageError
from vaultd.store.index import Found, Index

__all__ = ["Answer", "Hit", "Recent", "answer", "find_page", "recent", "search"]

_WAIT_PAGES = 500
"""Pages that a search brings into the index by itself before it answers; more are left to the daemon and counted."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One page that answers a query, in the shape of `search --json`."""

    path: str
    anchor: str
    title: str
    project: str
    kind: str
    tier: str
    score: float
    snippet: str
    updated: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a query. `pending`: events and pages that it does not cover yet."""

    query: str
    project: str
    generation: int
    pending: int
    hits: list[Hit] = field(default_factory=list)
    global_hits: list[Hit] = field(default_factory=list)
    other_hits: list[Hit] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """For JSON, in the fixed order of keys."""
        return asdict(self)


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
    query: str,
    *,
    limit: int = 10,
    project: str | None = None,
    where: Mapping[str, str] | None = None,
    daemon: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Answer a query for a project (id), or for the whole vault when `project` is None.

    Pages that the index does not know are indexed first, unless there are many and a daemon is at it. A project's
    answer keeps `_global` and pages outside all projects apart. No query is an error; a query without a word has no
    hits.
    """
    if limit < 1:
        raise UsageError(f"--limit must be at least 1, not {limit}.")
    index = open_index(stores)
    try:
        reconcile = Reconcile(stores, index)
        behind = reconcile.behind()
        if behind.count and (not daemon or behind.count <= _WAIT_PAGES):
            reconcile.run(behind, progress, blocking=not daemon)
        told = answer(stores, index, query, limit, project, where or {})
        if index.doubt:  # it turned out damaged while it was read
            reconcile.run(reconcile.behind(), progress)
            told = answer(stores, index, query, limit, project, where or {})
        return replace(told, pending=reconcile.behind().count + len(stores.inbox.pending()))
    finally:
        index.close()


def answer(
    stores: Stores, index: Index, query: str, limit: int, project: str | None, where: Mapping[str, str]
) -> Answer:
    """The hits of all scopes that a query has."""

    def hits(scope: str | None) -> list[Hit]:
        found = index.search(query, limit, project=scope, where=where)
        return [hit for f in found if (hit := _hit(stores, query, f)) is not None]

    if project is None:
        return Answer(query, "", index.generation, 0, hits(None))
    return Answer(query, project, index.generation, 0, hits(project), hits("_global"), hits(""))


def _hit(stores: Stores, query: str, found: Found) -> Hit | None:
    """A hit with its place in the page; None when the page is gone since."""
    page = stores.vault.read(found.path)
    if page is None:
        return None
    place = locate(frontmatter.parse(page.data).body, query)
    return Hit(
        path=found.path,
        anchor=place.anchor,
        title=found.title,
        project=found.project,
        kind=found.kind,
        tier=found.tier,
        score=round(found.score, 4),
        snippet=place.snippet,
        updated=found.updated,
    )


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
