"""Pages as the index is told of them, knows them and finds them; how it keeps them: indexed.py.

Of the body only the words are kept. Everything else comes back with a hit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Drop", "Found", "IndexDoc", "Known", "Part", "Put"]


@dataclass(frozen=True, slots=True)
class IndexDoc:
    """A page as the index is told of it.

    `project` is a project's id, "" for a page outside all of them. `updated` is the page's own word. `meta` holds the
    scalar values of its frontmatter, for filters. `links` are the targets of its links as they are written,
    `replaces` those of links to pages that it replaces. Inode,
    `mtime_ns`, size and revision are those of the bytes read.
    """

    path: str
    title: str
    body: str
    kind: str = "fact"
    tier: str = "semantic"
    project: str = ""
    tags: Sequence[str] = ()
    aliases: Sequence[str] = ()
    summary: str = ""
    updated: str = ""
    pinned: bool = False
    superseded: bool = False
    revision: str = ""
    inode: int = 0
    mtime_ns: int = 0
    size: int = 0
    meta: Mapping[str, object] = field(default_factory=dict)
    unparsable: bool = False
    links: Sequence[str] = ()
    replaces: Sequence[str] = ()
    entities: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Put:
    """A page is there with this content; whatever the index knew of its path is forgotten."""

    doc: IndexDoc

    @property
    def path(self) -> str:
        """The page's path."""
        return self.doc.path


@dataclass(frozen=True, slots=True)
class Drop:
    """There is no page under this path."""

    path: str


@dataclass(frozen=True, slots=True)
class Known:
    """The state of a page that the index has: as scanned (inode, `mtime_ns`, size) and as read (revision)."""

    inode: int
    mtime_ns: int
    size: int
    revision: str
    project: str
    kind: str
    unparsable: bool = False
    pinned: bool = False


class Part(NamedTuple):
    """What a stream says for a page: what it adds to the page's match, the page's rank from 1 among those that were
    looked at closely, and the stream's own score, which has no unit.
    """

    adds: float
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """A page that answers a query. `score` has no unit: it compares hits of one answer, the higher the better.
    `replaced_by`: the path of a page that says that it replaced this one; what the page says itself is not here.

    `passages`: numbers of its best passages from 1 and their scores, which compare over the hits of one answer; best
    first. `why`: the streams that speak for it. What they add makes its match, and that by its `authority` the score.
    `matched`: the query's terms that it has. `entities`: its tags, and what its frontmatter names as entities.
    """

    path: str
    score: float
    project: str
    kind: str
    tier: str
    title: str
    updated: str
    summary: str
    superseded: bool
    replaced_by: str = ""
    passages: Sequence[tuple[int, float]] = ()
    why: Mapping[str, Part] = field(default_factory=dict)
    authority: float = 1.0
    matched: Sequence[str] = ()
    entities: Sequence[str] = ()
