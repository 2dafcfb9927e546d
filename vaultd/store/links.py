"""Which pages of an index a page links to, and which link to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from vaultd.core.linking import Resolver
from vaultd.store import indexed
from vaultd.store.postings import Postings, Segment

__all__ = ["Links", "Place"]


class Place(NamedTuple):
    """Where a page is in an index."""

    segment: Segment
    number: int

    @property
    def id(self) -> int:
        """Its number in the whole index."""
        return self.segment.offset + self.number


class Links:
    """The links of one generation. Links lead where Obsidian lets them lead (`core.linking`)."""

    def __init__(self, searcher: Any, parts: Sequence[Segment], postings: Postings) -> None:
        self._searcher = searcher
        self._parts = parts
        self._postings = postings

    def record(self, place: Place) -> Mapping[str, Any]:
        """What the index keeps of a page."""
        record: Mapping[str, Any] = self._searcher.stored_fields(place.id)["page"]
        return record

    def around(self, record: Mapping[str, Any], most: int) -> list[Place]:
        """The pages that a page links to, in the order of its links, then those that link to it; each once, it itself
        not. None when there may be more than `most`: a list of everything says nothing about any of it.
        """
        path = record["path"]
        into = list(self._having(indexed.LINK, indexed.name_of(path)))
        if len(into) + len(record["links"]) > most:
            return []
        found = {}
        for target in record["links"]:
            same = {self.record(place)["path"]: place for place in self._having(indexed.NAME, indexed.name_of(target))}
            leads = Resolver(same).resolve(target, path) if same else None
            if leads is not None and leads != path:
                found[same[leads].id] = same[leads]
        rivals = Resolver(self.record(place)["path"] for place in self._having(indexed.NAME, indexed.name_of(path)))
        for place in into:
            source = self.record(place)
            if source["path"] != path and any(
                rivals.resolve(target, source["path"]) == path
                for target in source["links"]
                if indexed.name_of(target) == indexed.name_of(path)
            ):
                found[place.id] = place
        return list(found.values())

    def _having(self, name: str, value: str) -> Iterator[Place]:
        """The pages that have a fact and were not deleted since."""
        fact = indexed.fact(name, value)
        for part in self._parts:
            for number in sorted(self._postings.having(part, fact)):
                if not part.reader.is_deleted(number):
                    yield Place(part, number)
