"""Recall: search, read and list pages. Reads only; what the index does not know yet is counted, never hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import PurePosixPath

from vaultd.core import frontmatter
from vaultd.core.kinds import kind_of, tier_of
from vaultd.core.markdown import locate_in, title_of
from vaultd.core.passages import lines_of, spans
from vaultd.core.question import EVERYTHING, Question
from vaultd.engine.reconcile import Reconcile, open_index
from vaultd.engine.stores import Stores
from vaultd.errors import NotFoundError, UsageError
from vaultd.store.index import Found, Index

__all__ = ["Answer", "Hit", "Recent", "answer", "find_page", "recent", "search"]

_WAIT_PAGES = 500
"""Pages that a search brings into the index by itself before it answers; more are left to the daemon and counted."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that answers; its score compares over all passages of one list of hits."""

    anchor: str
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One page that answers a query, in the shape of `search --json`.

    `anchor` and `snippet` are those of its best passage; `passages` has that one first, then others of the page that
    are among the best of all hits. `why`: what each stream adds to its score, its authority, and the terms it has.
    """

    path: str
    anchor: str
    title: str
    project: str
    kind: str
    tier: str
    score: float
    snippet: str
    updated: str
    superseded: bool = False
    passages: list[Passage] = field(default_factory=list)
    why: Mapping[str, object] = field(default_factory=dict)


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
    question: Question,
    project: str | None,
    *,
    daemon: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Answer a question for a project (id, "" for none), or for the whole vault when `project` is None.

    Pages that the index does not know are indexed first, unless there are many and a daemon is at it. A project's
    answer keeps `_global` and pages outside all projects apart. No query is an error; a query without a word has no
    hits.
    """
    if question.limit < 1:
        raise UsageError(f"--limit must be at least 1, not {question.limit}.")
    index = open_index(stores)
    try:
        reconcile = Reconcile(stores, index)
        behind = reconcile.behind()
        if behind.count and (not daemon or behind.count <= _WAIT_PAGES):
            reconcile.run(behind, progress, blocking=not daemon)
        told = answer(stores, index, question, project)
        if index.doubt:  # it turned out damaged while it was read
            reconcile.run(reconcile.behind(), progress)
            told = answer(stores, index, question, project)
        return replace(told, pending=reconcile.behind().count + len(stores.inbox.pending()))
    finally:
        index.close()


def answer(stores: Stores, index: Index, question: Question, project: str | None) -> Answer:
    """The hits of all scopes: a project's, those of `_global` and those outside projects apart; None for all in one."""
    groups = [(project,), ("_global",), ("",)] if project is not None else [EVERYTHING]
    found = index.search(replace(question, groups=groups))
    lists = [_hits(stores, question.text, pages, question.limit) for pages in found]
    return Answer(question.text, project or "", index.generation, 0, *lists)


def _hits(stores: Stores, text: str, found: Sequence[Found], most: int) -> list[Hit]:
    """Hits with their places: of each page its best passage, and whatever else is among the best `most` of all."""
    scores = sorted((score for page in found for _, score in page.passages), reverse=True)[:most]
    least = scores[-1] if scores else 0.0
    return [hit for page in found if (hit := _hit(stores, text, page, least)) is not None]


def _hit(stores: Stores, text: str, found: Found, least: float) -> Hit | None:
    """A hit with its passages from a score on; None when the page is gone since."""
    page = stores.vault.read(found.path)
    if page is None:
        return None
    lines = lines_of(frontmatter.parse(page.data).body)
    parts = spans(lines)
    told = [(n, score) for place, (n, score) in enumerate(found.passages) if not place or score >= least]
    if any(number > len(parts) for number, _ in told) or not told:
        told, parts = [(1, found.score)], [range(len(lines))]  # the page is another one by now, or its name matched
    places = locate_in(lines, text, [parts[number - 1] for number, _ in told])
    passages = [
        Passage(place.anchor, place.snippet, round(score, 4)) for place, (_, score) in zip(places, told, strict=True)
    ]
    return Hit(
        path=found.path,
        anchor=passages[0].anchor,
        title=found.title,
        project=found.project,
        kind=found.kind,
        tier=found.tier,
        score=round(found.score, 4),
        snippet=passages[0].snippet,
        updated=found.updated,
        superseded=found.superseded,
        passages=passages,
        why={**{name: round(part, 4) for name, part in found.why.items()}, "matched": list(found.matched)},
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
