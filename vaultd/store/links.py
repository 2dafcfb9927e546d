"""Which pages of an index a page links to, and which link to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from vaultd.core.linking import Resolver
from vaultd.store import indexed
from vaultd.store.postings import Postings, Segment

__all__ = ["Links", "Place"]


_WITH_FOLDER = re.compile(r"[/:]")


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

    def __init__(self, parts: Sequence[Segment], postings: Postings) -> None:
        self._parts = parts
        self._postings = postings
        self._replacing = any(self._having(indexed.REPLACES, ""))

    def at(self, number: int) -> Place:
        """Where a page is, by its number in the whole index."""
        part = max((part for part in self._parts if part.offset <= number), key=lambda part: part.offset)
        return Place(part, number - part.offset)

    def record(self, place: Place) -> Mapping[str, Any]:
        """What the index keeps of a page; `superseded` also where another page says that it replaces this one, which
        is its `replaced_by` then.
        """
        record = self._kept(place)
        by = self._replacement(place, record["path"])
        return {**record, "superseded": True, "replaced_by": by} if by else record

    def around(self, page: Place, most: int, wanted: Callable[[Place], bool] = lambda place: True) -> list[Place]:
        """The pages that a page links to, in the order of its links, then those that link to it; each once, it itself
        not, nor those that are not `wanted`. None of them when there may be more than `most`: a list of everything says
        nothing about any of it.
        """
        record = self._kept(page)
        path = record["path"]
        own = indexed.name_of(path)
        into = list(self._having(indexed.LINK, own))
        if len(into) + len(record["links"]) > most:
            return []
        found = {}
        for target in record["links"]:
            place = self._led_to(target, path, list(self._having(indexed.NAME, indexed.name_of(target))))
            if place is not None and place.id != page.id and wanted(place):
                found[place.id] = place
        rivals = list(self._having(indexed.NAME, own)) if into else []
        for place in into:
            if place.id == page.id or place.id in found or not wanted(place):
                continue
            if self._leads(place, "links", page, own, rivals):
                found[place.id] = place
        return list(found.values())

    def _kept(self, place: Place) -> Mapping[str, Any]:
        record: Mapping[str, Any] = place.segment.reader.stored_fields(place.number)["page"]
        return record

    def _replacement(self, page: Place, path: str) -> str:
        """The path of a page that says that it replaces this one; "" when none does."""
        if not self._replacing:
            return ""
        name = indexed.name_of(path)
        rivals: list[Place] | None = None
        for place in self._having(indexed.REPLACES, name):
            rivals = rivals if rivals is not None else list(self._having(indexed.NAME, name))
            if place.id != page.id and self._leads(place, "replaces", page, name, rivals):
                return str(self._kept(place)["path"])
        return ""

    def _leads(self, source: Place, which: str, page: Place, name: str, rivals: Sequence[Place]) -> bool:
        """Whether one of the links under a key of a page's record leads to a page; `rivals` are all of its name."""
        record = self._kept(source)
        same = (target for target in record[which] if indexed.name_of(target) == name)
        led = (self._led_to(target, record["path"], rivals) for target in same)
        return any(place is not None and place.id == page.id for place in led)

    def _led_to(self, target: str, source: str, same: Sequence[Place]) -> Place | None:
        """Which of the pages with the name in a link it leads to from a page; None for none of them."""
        if len(same) == 1 and not _WITH_FOLDER.search(target):
            return same[0]
        paths = {self._kept(place)["path"]: place for place in same}
        leads = Resolver(paths).resolve(target, source) if same else None
        return paths[leads] if leads is not None else None

    def _having(self, name: str, value: str) -> Iterator[Place]:
        """The pages that have a fact and were not deleted since."""
        fact = indexed.fact(name, value)
        for part in self._parts:
            for number in sorted(self._postings.having(part, fact)):
                if not part.reader.is_deleted(number):
                    yield Place(part, number)
