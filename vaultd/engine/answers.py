"""Answers to queries: hits with the passages that answer, from a project, from what holds everywhere, and the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from vaultd.core import frontmatter, markup, query, when
from vaultd.core.address import GLOBAL
from vaultd.core.markdown import locate_in
from vaultd.core.passages import lines_of, spans
from vaultd.core.question import EVERYTHING, Question
from vaultd.engine.nearby import Nearby, nothing
from vaultd.engine.records import search_records
from vaultd.engine.service import Reply
from vaultd.engine.stores import Stores
from vaultd.errors import UsageError
from vaultd.store.index import Found, Index

__all__ = ["Answer", "AsOf", "Hit", "Passage", "Source", "Wanted", "answer", "groups_of", "present"]

_TOKEN = 4
"""UTF-8 bytes of a token, as FORMATS reckons everywhere."""

_AT_TIMES = frozenset({"as_of", "cut", "note", "observations", "superseded", "superseded_by", "why"})
"""Keys that are left out when they say nothing."""

_PINNED = 10  # pinned pages that are put in front, at most


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a query is to be answered.

    `projects`: ids of the projects whose pages are hits, "" for pages outside all of them; None for the whole vault in
    one list. Of projects, what holds everywhere and what lies outside come apart. `where`, `expired`, `superseded` as
    in `Question`. `pinned_first`: at most ten pinned pages of the hits' projects stand in front, whether they match or
    not, above the limit. `explain`: hits say why. `tokens`: about how long the hits may be all together, 0 for any
    length. `without` as in `Question`.
    """

    projects: Sequence[str] | None = None
    limit: int = 10
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    expired: bool = False
    superseded: bool = False
    pinned_first: bool = False
    explain: bool = False
    tokens: int = 0
    without: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """What is searched: an index, what gives a page's bytes (None when it is gone), the time that is now there, and
    what looks for a query in the records of some projects' sessions.
    """

    index: Index
    read: Callable[[str], bytes | None]
    now: datetime
    records: Callable[[Sequence[str] | None, str], list[Reply]] = lambda projects, text: []


@dataclass(frozen=True, slots=True)
class AsOf:
    """The commit that an answer is from instead of the present: its name, and when it was made (RFC 3339)."""

    commit: str
    at: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that answers; its score compares over all passages of an answer."""

    anchor: str
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One page that answers a query, in the shape of `search --json`.

    `anchor` and `snippet` are those of its best passage; `passages` has that one first, then others of the page that
    are among the best of all hits. `why`: of each stream what it adds to the page's match, its rank and the stream's
    own score; the page's authority; the query's terms that it has; and its tags and entities that the query names.
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
    superseded_by: str = ""
    passages: Sequence[Passage] = ()
    why: Mapping[str, object] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """UTF-8 bytes that it takes in an answer, about."""
        told = [self.path, self.title, self.kind, self.updated]
        return len("".join(told + [part.anchor + part.snippet for part in self.passages]).encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a query. `pending`: events and pages that it does not cover yet. `cut`: hits left out for want of
    room. `note`: what else the reader must know, "" for nothing. `observations`: what was recorded and has the query's
    words, where no page answers (`records.search_records`). `as_of`: None for the present.
    """

    query: str
    project: str
    generation: int
    pending: int
    hits: list[Hit] = field(default_factory=list)
    global_hits: list[Hit] = field(default_factory=list)
    other_hits: list[Hit] = field(default_factory=list)
    cut: int = 0
    note: str = ""
    observations: list[Reply] = field(default_factory=list)
    as_of: AsOf | None = None

    def as_dict(self) -> dict[str, object]:
        """For JSON, in the fixed order of keys; what is not always there comes after them, and only when it says
        something.
        """
        told = _named(self)
        for name in ("hits", "global_hits", "other_hits"):
            told[name] = [{**_named(hit), "passages": [_named(part) for part in hit.passages]} for hit in told[name]]
        return {**told, "as_of": _named(self.as_of)} if self.as_of is not None else told


def _named(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, in their order, without those that say nothing. Not `asdict`: an answer is
    made often, and that copies all of it.
    """
    told = ((field.name, getattr(thing, field.name)) for field in fields(thing))
    return {name: value for name, value in told if value or name not in _AT_TIMES}


def present(stores: Stores, index: Index) -> Source:
    """The vault as it is now, with its index."""

    def read(path: str) -> bytes | None:
        page = stores.vault.read(path)
        return page.data if page is not None else None

    return Source(index, read, stores.clock(), partial(search_records, stores))


def answer(source: Source, text: str, wanted: Wanted, nearby: Nearby = nothing) -> Answer:
    """Answer a query from what the index holds now. UsageError for a limit below 1."""
    if wanted.limit < 1:
        raise UsageError(f"limit must be at least 1, not {wanted.limit}.")
    own, index = wanted.projects, source.index
    question = Question(
        text,
        source.now,
        wanted.limit,
        groups_of(own),
        wanted.where,
        superseded=wanted.superseded,
        expired=wanted.expired,
        without=wanted.without,
    )
    near = nearby(text, index)
    lists = [_hits(source, question, found, wanted) for found in index.search(question, near.scores)]
    if wanted.pinned_first:
        lists[0] = _pinned_first(source, lists[0], wanted)
    lists, cut = _fitting(lists, wanted.tokens * _TOKEN)
    project = own[0] if own is not None and len(own) == 1 else ""
    hits, everywhere, others = (*lists, [], [])[:3]
    records = source.records(own, text) if not (hits or everywhere) else []
    return Answer(text, project, index.generation, 0, hits, everywhere, others, cut, near.note, records)


def groups_of(projects: Sequence[str] | None) -> list[Collection[str] | None]:
    """The groups of a question about these projects (as in `Wanted`): theirs, what holds everywhere, the outside."""
    if projects is None:
        return [EVERYTHING]
    return [tuple(projects), (GLOBAL,), *([("",)] if "" not in projects else [])]


def _hits(source: Source, question: Question, found: Sequence[Found], wanted: Wanted) -> list[Hit]:
    """Hits with their places: of each page its best passage, and whatever else is among the best of all of them."""
    scores = sorted((score for page in found for _, score in page.passages), reverse=True)[: wanted.limit]
    least = scores[-1] if scores else 0.0
    return [hit for page in found if (hit := _hit(source, question.text, page, least, wanted.explain)) is not None]


def _hit(source: Source, text: str, found: Found, least: float, explain: bool) -> Hit | None:
    """A hit with its passages from a score on; None when the page is gone since."""
    data = source.read(found.path)
    if data is None:
        return None
    lines = lines_of(frontmatter.body(data))
    parts = spans(lines)
    told = [(n, score) for place, (n, score) in enumerate(found.passages) if not place or score >= least]
    if not told or any(number > len(parts) for number, _ in told):
        told, parts = [(1, found.score)], [range(len(lines))]  # its name matched, or it is another page by now
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
        superseded_by=(_replacement(data) or found.replaced_by) if found.superseded else "",
        passages=passages,
        why=_why(found) if explain else {},
    )


def _replacement(data: bytes) -> str:
    """What a page says replaced it, as it is written there: a name or a link."""
    told = frontmatter.parse(data).meta.values.get("superseded_by") or ""
    return markup.clip(markup.fold(", ".join(map(str, told)) if isinstance(told, list) else str(told)), 200)


def _why(found: Found) -> dict[str, object]:
    """Why a page is a hit, as `Hit.why` has it."""
    streams = {
        name: {key: round(value, 4) for key, value in part._asdict().items()} for name, part in found.why.items()
    }
    named = ((entity, set(query.tokens(entity.replace("/", " ")))) for entity in found.entities)
    return {
        **streams,
        "authority": round(found.authority, 4),
        "matched": list(found.matched),
        "entities": [entity for entity, terms in named if terms and terms.issubset(found.matched)],
    }


def _pinned_first(source: Source, hits: Sequence[Hit], wanted: Wanted) -> list[Hit]:
    """The hits with the pinned pages of their projects in front, each once."""
    projects = wanted.projects
    paths = sorted(
        path
        for path, page in list(source.index.known().items())  # another thread may write the index meanwhile
        if page.pinned and (projects is None or page.project in projects)
    )
    there = {hit.path: hit for hit in hits}
    pinned = (there.get(path) or _unasked(source, path, wanted.expired) for path in paths)
    first = list(islice((hit for hit in pinned if hit is not None), _PINNED))
    return [*first, *(hit for hit in hits if hit not in first)]


def _unasked(source: Source, path: str, expired: bool) -> Hit | None:
    """A page as a hit that nothing was asked of; None when it is gone, or its time is over unless such pages come."""
    found, data = source.index.record(path), source.read(path)
    if found is None or data is None:
        return None
    over = when.expired(frontmatter.parse(data).meta.values.get("expires_at"), source.now)
    return _hit(source, "", found, 0.0, explain=False) if expired or not over else None


def _fitting(lists: Sequence[Sequence[Hit]], room: int) -> tuple[list[list[Hit]], int]:
    """As much of the hits as has room (bytes, 0 for any), in their order: each with one passage first, then with more
    where there is room left. How many hits have none; the first one always has.
    """
    if not room:
        return [list(hits) for hits in lists], 0
    spare, cut = room, 0
    kept: list[list[Hit]] = []
    for hits in lists:
        kept.append([])
        for hit in hits:
            short = replace(hit, passages=hit.passages[:1])
            if cut or (short.size > spare and any(kept)):
                cut += 1
                continue
            spare -= short.size
            kept[-1].append(short)
    for shown, hits in zip(kept, lists, strict=True):
        for place, hit in enumerate(hits[: len(shown)]):
            more = hit.size - shown[place].size
            if more <= spare:
                spare -= more
                shown[place] = hit
    return kept, cut
