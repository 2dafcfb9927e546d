"""What the index keeps of a page: its terms and where they stand, its facts, and the record that comes back of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from vaultd.core import query, when
from vaultd.core.passages import passages
from vaultd.core.ranking import authority
from vaultd.store.entries import Found, IndexDoc, Part

__all__ = [
    "FIELDS",
    "NOTHING",
    "Words",
    "fact",
    "factor",
    "facts",
    "found",
    "key",
    "name_of",
    "packed",
    "record",
    "state",
    "unpacked",
    "words",
]

NOTHING: Mapping[Any, Any] = MappingProxyType({})
"""An empty mapping that nobody can change."""

FIELDS = 7
"""Number of what `record`, `words` and `facts` give: to be raised with every change, so that an index is made anew."""

PROJECT, NAME, LINK, DAY, REPLACES = "\0project", "\0name", "\0link", "\0day", "\0replaces"
"""Names of facts that no frontmatter has: the project's id, the page's own file name, the names of pages it links to,
its days, months and years (`when.days_of`), and the names of pages that it replaces, "" if there are any."""

_TITLE, _TAG = 3, 2  # how often a word of the title (or an alias) and of a tag counts
_VALUE = 256  # characters of a value that are compared


@dataclass(frozen=True, slots=True)
class Words:
    """A page's terms: how much each counts, and where it stands.

    `places` gives for each term, packed, pairs of a passage's number from 1 and how often the term is in it; number 0
    are the page's names, which belong to every passage. `lengths` are the passages' lengths in terms, the names' first.
    """

    weights: Mapping[str, int]
    places: Mapping[str, bytes]
    lengths: Sequence[int]


def words(doc: IndexDoc) -> Words:
    """The terms of a page; one counts more in the title, an alias or a tag than in the text."""
    title = Counter(term for name in (doc.title, *doc.aliases) for term in query.tokens(name))
    weights = Counter({term: count * _TITLE for term, count in title.items()})
    for tag in (*doc.tags, *doc.entities):
        for term in query.tokens(tag):
            weights[term] += _TAG
    for text in (PurePosixPath(doc.path).stem, doc.summary):
        weights.update(query.tokens(text))
    places = {term: packed((0, count)) for term, count in title.items()}
    lengths = [title.total()]
    before = ""
    for number, passage in enumerate(passages(doc.body), 1):
        seam = f"{before[-3:]}\n{passage[:3]}"
        if not seam.isascii():  # of a script without spaces any two neighbours are found, also on two lines
            weights.update(term for term in query.tokens(seam) if len(term) == 2)
        before = passage
        pairs = [packed((number, count)) for count in range(4)]  # nearly all
        found = query.tokens(passage)
        lengths.append(len(found))
        for term, count in Counter(found).items():
            weights[term] = weights.get(term, 0) + count
            pair = pairs[count] if count < len(pairs) else packed((number, count))
            places[term] = places[term] + pair if term in places else pair
    return Words(weights, places, lengths)


def packed(numbers: Iterable[int]) -> bytes:
    """Small numbers, mostly in a byte each: seven bits at a time, lowest first; the eighth says that more follow."""
    data = bytearray()
    for number in numbers:
        while number > 127:
            data.append(number & 127 | 128)
            number >>= 7
        data.append(number)
    return bytes(data)


def unpacked(data: bytes) -> list[int]:
    """The numbers of `packed`."""
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 127) << shift
        if byte > 127:
            shift += 7
        else:
            numbers.append(number)
            number = shift = 0
    return numbers


def facts(doc: IndexDoc) -> list[str]:
    """What a page can be filtered by: its frontmatter, and its kind, tier and project whether it says them or not."""
    return sorted({fact(name, value) for name, value in _told(doc)})


def fact(name: str, value: object) -> str:
    """One value of one key, as it is kept and asked for; case and space around it do not count."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return key(f"{name}={text.strip().casefold()[:_VALUE]}")


def key(text: str) -> str:
    """Text as a term, also when it holds lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()


def record(doc: IndexDoc, lengths: Sequence[int] = ()) -> dict[str, object]:
    """What comes back of a page; `lengths` as in `Words`."""
    return {
        "path": doc.path,
        "title": doc.title,
        "kind": doc.kind,
        "tier": doc.tier,
        "project": doc.project,
        "updated": doc.updated,
        "summary": doc.summary,
        "tags": tuple(doc.tags),
        "entities": tuple(doc.entities),
        "pinned": doc.pinned,
        "superseded": doc.superseded,
        "expires": str(doc.meta.get("expires_at") or ""),
        "links": tuple(doc.links),
        "replaces": tuple(doc.replaces),
        "lengths": packed(lengths),
    }


def state(doc: IndexDoc) -> tuple[str, tuple[object, ...]]:
    """A page's path, and the fields of its `Known`: kept apart from its record, for those of all pages are read at
    once.
    """
    scanned = (doc.inode, doc.mtime_ns, doc.size, doc.revision)
    return doc.path, (*scanned, doc.project, doc.kind, doc.unparsable, doc.pinned)


def factor(page: Mapping[str, Any], *, of_sessions: bool) -> float:
    """The authority of a page, from its record (`of_sessions` as there)."""
    return authority(
        page["kind"],
        page["tier"],
        path=page["path"],
        pinned=page["pinned"],
        superseded=page["superseded"],
        tags=page["tags"],
        of_sessions=of_sessions,
    )


def found(
    page: Mapping[str, Any],
    score: float = 0.0,
    factor: float = 1.0,
    why: Mapping[str, Part] = NOTHING,
    passages: Sequence[tuple[int, float]] = (),
    matched: Sequence[str] = (),
) -> Found:
    """A hit from a page's record, and what is said for it."""
    told = {name: page[name] for name in ("path", "project", "kind", "tier", "title", "updated", "summary")}
    return Found(
        score=score,
        superseded=page["superseded"],
        replaced_by=page.get("replaced_by", ""),
        passages=passages,
        why=why,
        authority=factor,
        matched=matched,
        entities=(*page["tags"], *page["entities"]),
        **told,
    )


def name_of(target: str) -> str:
    """The name by which links find a page: its file's, without folders and `.md`, whatever the case."""
    return query.fold(target.rpartition(":")[2].rpartition("/")[2]).casefold().removesuffix(".md")


def _told(doc: IndexDoc) -> Iterator[tuple[str, object]]:
    """The names and values that make a page's facts."""
    for name, value in doc.meta.items():
        if name.startswith("\0"):  # as ours do, which a page may not tell
            continue
        for item in value if isinstance(value, list | tuple) else (value,):
            yield name, item
    yield PROJECT, doc.project
    yield NAME, name_of(doc.path)
    for target in doc.links:
        yield LINK, name_of(target)
    for target in ("", *doc.replaces) if doc.replaces else ():
        yield REPLACES, name_of(target)
    for day in when.days_of(doc.meta, doc.path):
        yield DAY, day
    for name in ("kind", "tier", "title", "pinned", "superseded"):
        yield name, getattr(doc, name)
    for tag in doc.tags:
        yield "tags", tag
    for alias in doc.aliases:
        yield "aliases", alias
