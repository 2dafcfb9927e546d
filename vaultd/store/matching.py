"""Which pages answer a question best, over an open whoosh searcher (index.py has it).

Streams are added up (core/fusion.py has their weights): BM25 of the whole page, that of its best passages, the time
that the question names, and links from and to pages that answer. Then the page's authority. Every term of the query may
be missing; a bonus for pages that have more of them was measured and gained nothing.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from vaultd.core import fusion, query, when
from vaultd.core.question import Question
from vaultd.core.ranking import asks_of_sessions
from vaultd.store import indexed, scoring
from vaultd.store.entries import Found, Part
from vaultd.store.links import Links, Place
from vaultd.store.passagescores import best_passages, look, terms_of
from vaultd.store.postings import Postings, Segment, segments
from vaultd.store.rarity import Rarity, rarities

__all__ = ["best_pages"]

_CANDIDATES = 40  # pages that are looked at closely, unless many of them are left out; 64 ranked no set better
_LINKING = 5  # of the best of them links are followed,
_FAN = 20  # unless a page has more of them: a list of everything says nothing about any of it
_OF_TIME = 3  # matches of the best page: what being of the time is worth where nothing else is asked for


class _Page(NamedTuple):
    """A candidate: where it is, and its record."""

    segment: Segment
    number: int
    record: Mapping[str, Any]

    @property
    def id(self) -> int:
        """Its number in the whole index."""
        return self.segment.offset + self.number


_Allowed: TypeAlias = Mapping[str, frozenset[int]] | None
"""The pages of each segment that may answer; None for all."""


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of pages that gets a list of its own: those that may be in it, and its candidates."""

    allowed: _Allowed
    pages: Sequence[_Page]

    def holds(self, part: Segment, number: int) -> bool:
        """Whether a page belongs to it."""
        return self.allowed is None or number in self.allowed[part.name]


class _Hit:
    """A page with what the streams say for it, and the query's terms that it has, with how often it says each."""

    __slots__ = ("factor", "match", "matched", "page", "score", "superseded", "why")

    def __init__(self, page: _Page, why: Mapping[str, float], matched: Mapping[str, int]) -> None:
        self.page = page
        self.why = why
        self.matched = matched
        self.match = sum(why.values())
        self.superseded: bool = page.record["superseded"]
        self.factor = self.score = 0.0  # its authority, and its match with that

    def answers(self, best: _Hit) -> bool:
        """Whether it is an answer beside the best one."""
        return fusion.answers(self.why, self.matched.values(), (best.match, len(best.matched)))


def best_pages(searcher: Any, postings: Postings, question: Question, near: Mapping[str, float]) -> list[list[Found]]:
    """The best pages for a question, a list for each of its groups: best first, superseded ones after all others.

    Equals come by their paths. Scores compare over all the lists. What is too weak beside the best page is no answer;
    of the first group, beside its own best.
    """
    near = {} if "vector" in question.without else near
    search = _Search(searcher, postings, question, near)
    lists = search.answer()
    if not lists[0] and search.names_a_time_of_pages():  # its other words say what pages seldom do
        return _Search(searcher, postings, question, near, all_of_time=True).answer()
    return lists


class _Search:
    """One question to one generation of the index."""

    def __init__(
        self,
        searcher: Any,
        postings: Postings,
        question: Question,
        near: Mapping[str, float],
        *,
        all_of_time: bool = False,
    ) -> None:
        """`all_of_time`: every page of the time that the question names is an answer."""
        self._searcher = searcher
        self._postings = postings
        self._question = question
        self._near = near
        self._parts = segments(searcher)
        postings.keep_only(frozenset(part.name for part in self._parts))
        self._links = Links(self._parts, postings)
        self._span = None if "time" in question.without else when.span(question.text, question.now)
        text = self._span.rest if self._span is not None else question.text
        own = set(query.tokens(text))
        self._of_sessions = self._span is not None or asks_of_sessions(question.text)
        self._rarity: Rarity = rarities(searcher, query.terms(text), own)
        self._timely = {part.name: self._of_time(part) for part in self._parts}
        facts = [[indexed.fact(key, value) for value in values] for key, values in question.where.items()]
        self._groups = [self._allowed(facts, projects) for projects in question.groups]
        self._scored: dict[str, dict[int, float]] = {}
        self._most = 0
        self._all_of_time = self._span is not None and (self._span.alone or all_of_time)

    def answer(self) -> list[list[Found]]:
        """The hits of each group."""
        most = max(_CANDIDATES, 2 * self._question.limit)
        return self._ranked([self._group(allowed, most) for allowed in self._groups])

    def names_a_time_of_pages(self) -> bool:
        """Whether pages are of the time that the question names beside other words."""
        return self._span is not None and not self._all_of_time and any(self._timely.values())

    def _allowed(self, facts: Sequence[Sequence[str]], projects: Collection[str] | None) -> _Allowed:
        """The pages of a group."""
        own = [[indexed.fact(indexed.PROJECT, project) for project in projects]] if projects is not None else []
        wanted = [*facts, *own]
        return {part.name: self._all(part, wanted) for part in self._parts} if wanted else None

    def _group(self, allowed: _Allowed, most: int) -> _Group:
        """A group's pages that match best as a whole; more of them when many are superseded or expired."""
        while True:
            pages = self._candidates(allowed, most)
            left = [page for page in pages if self._wanted(page)]
            if len(pages) < most or sum(not page.record["superseded"] for page in left) >= self._question.limit:
                there = {page.id for page in left}
                return _Group(allowed, left + [page for page in self._alike(allowed) if page.id not in there])
            most *= 2

    def _alike(self, allowed: _Allowed) -> list[_Page]:
        """The pages of a group that are nearest by meaning; of the nearest of all pages some hundreds are looked at."""
        found: list[_Page] = []
        for path in heapq.nlargest(10 * _CANDIDATES, self._near, key=lambda path: (self._near[path], path)):
            for number in self._searcher.document_numbers(path=indexed.key(path)):
                page = self._page(*self._links.at(number))
                if (allowed is None or page.number in allowed[page.segment.name]) and self._wanted(page):
                    found.append(page)
            if len(found) >= _CANDIDATES:
                break
        return found

    def _ranked(self, groups: Sequence[_Group]) -> list[list[Found]]:
        """The hits of each group."""
        pages = {page.id: page for group in groups for page in group.pages}
        text = {page.id: self._scored[page.segment.name].get(page.number, 0.0) for page in pages.values()}
        closely = pages.values() if "passage" not in self._question.without else ()
        places = [(page.segment, page.number, page.record["lengths"]) for page in closely]
        looked = dict(zip(pages, look(places, self._postings, self._rarity), strict=False))
        streams = {
            "text": text,
            "passage": {number: fusion.of_passages(page.passages.values()) for number, page in looked.items()},
            "time": {page.id: 1.0 for page in pages.values() if page.number in self._timely[page.segment.name]},
        }
        if self._near:
            streams["vector"] = fusion.spread({page.id: self._near.get(page.record["path"]) for page in pages.values()})
        if "links" not in self._question.without:
            matches = {number: sum(why.values()) for number, why in self._fused(streams).items()}
            streams["links"] = self._linked(pages, matches)
        hits = [
            _Hit(pages[number], why, looked[number].terms if number in looked else self._matched(pages[number]))
            for number, why in self._fused(streams).items()
        ]
        lists = [[hit for hit in hits if group.holds(hit.page.segment, hit.page.number)] for group in groups]
        kept = [self._cut(own, _best(hits if place else own)) for place, own in enumerate(lists)]
        passages = (score for page in looked.values() for score in page.passages.values())
        top = max(text.values(), default=0.0) or 1.0, max(passages, default=0.0) or 1.0
        ordered = {name: sorted(-score for score in scores.values()) for name, scores in streams.items()}

        def found(hit: _Hit) -> Found:
            number = hit.page.id
            why = {
                name: Part(adds, bisect_left(ordered[name], -streams[name][number]) + 1, streams[name][number])
                for name, adds in hit.why.items()
            }
            comparable = best_passages(looked.get(number), top[1], text.get(number, 0.0) / top[0])
            return indexed.found(hit.page.record, hit.score, hit.factor, why, comparable, list(hit.matched))

        return [list(map(found, self._first(own))) for own in kept]

    def _cut(self, hits: Sequence[_Hit], best: _Hit | None) -> list[_Hit]:
        """A group's hits without those that are no answer beside the best one."""
        kept = [hit for hit in hits if best is not None and (self._of_all(hit) or hit.answers(best))]
        current = [hit for hit in kept if not hit.superseded]
        strongest = max(hits, key=lambda hit: hit.match, default=None)
        # What was replaced comes unasked where the present has no answer beside it, or the past is asked for.
        wanted = self._question.superseded or self._span is not None
        if not wanted and any(strongest is not None and hit.answers(strongest) for hit in current):
            return current
        return kept

    def _first(self, hits: Sequence[_Hit]) -> list[_Hit]:
        """As many hits as are wanted, in their order."""
        for hit in hits:
            hit.factor = indexed.factor(hit.page.record, of_sessions=self._of_sessions)
            hit.score = hit.match * hit.factor
        return sorted(hits, key=lambda hit: (hit.superseded, -hit.score, hit.page.record["path"]))[
            : self._question.limit
        ]

    def _of_all(self, hit: _Hit) -> bool:
        """Whether a page is of the time where all pages of it are asked for."""
        return self._all_of_time and "time" in hit.why

    def _candidates(self, allowed: _Allowed, most: int) -> list[_Page]:
        """The pages that match best as a whole, best first."""
        if most > self._most:
            self._scored, self._most = {part.name: self._score(part, most) for part in self._parts}, most
            if self._all_of_time:
                self._add_all_of_time()
        found: list[tuple[float, int, Segment]] = []
        for part in self._parts:
            may = allowed[part.name] if allowed is not None else None
            best_here = scoring.best(part, self._scored[part.name], may, most)
            found += [(score, -number - part.offset, part) for number, score in best_here]
        best = heapq.nlargest(most, found, key=lambda item: item[:2])
        return [self._page(part, -number - part.offset) for _, number, part in best]

    def _score(self, part: Segment, most: int) -> dict[int, float]:
        """The scores of a segment's pages that may be in one of the groups."""
        sets = [allowed[part.name] for allowed in self._groups if allowed is not None]
        may = frozenset().union(*sets) if len(sets) == len(self._groups) else None
        return scoring.scores(part, self._postings, self._rarity, may, part.pages if self._all_of_time else most)

    def _add_all_of_time(self) -> None:
        """Let the pages of the time match better than any other that says its name, and best if they say it too."""
        best = max((max(scores.values(), default=0.0) for scores in self._scored.values()), default=0.0) or 1.0
        for part in self._parts:
            scores = self._scored[part.name]
            for number in self._timely[part.name]:
                scores[number] = scores.get(number, 0.0) + _OF_TIME * best

    def _wanted(self, page: _Page) -> bool:
        """Whether a page may be an answer at all."""
        return self._question.expired or not when.expired(page.record["expires"], self._question.now)

    def _fused(self, streams: Mapping[str, Mapping[int, float]]) -> dict[int, dict[str, float]]:
        return fusion.fuse({name: s for name, s in streams.items() if name not in self._question.without})

    def _linked(self, pages: Mapping[int, _Page], matches: Mapping[int, float]) -> dict[int, float]:
        """What pages are worth for their links with the best ones: links lift a page that answers, they find none."""

        def wanted(place: Place) -> bool:
            return place.id in pages

        scores: dict[int, float] = {}
        for number in heapq.nlargest(_LINKING, matches, key=lambda number: (matches[number], -number)):
            best = pages[number]
            for place in self._links.around(Place(best.segment, best.number), _FAN, wanted):
                if len(pages[place.id].record["links"]) <= _FAN:
                    scores[place.id] = max(scores.get(place.id, 0.0), matches[number])
        return scores

    def _page(self, part: Segment, number: int) -> _Page:
        return _Page(part, number, self._links.record(Place(part, number)))

    def _matched(self, page: _Page) -> Mapping[str, int]:
        """The query's terms that a page has, and how often it says them."""
        terms = dict.fromkeys(term for group in self._rarity for term in group)
        return terms_of(page.segment, page.number, self._postings, terms)

    def _all(self, part: Segment, facts: Iterable[Sequence[str]]) -> frozenset[int]:
        """The pages that have one of the facts of each list."""
        sets = [self._any(part, each) for each in facts]
        return frozenset.intersection(*sets)

    def _any(self, part: Segment, facts: Iterable[str]) -> frozenset[int]:
        return frozenset().union(*(self._postings.having(part, fact) for fact in facts))

    def _of_time(self, part: Segment) -> Collection[int]:
        """The pages of the time that the question names."""
        names = self._span.names() if self._span is not None else ()
        return self._any(part, (indexed.fact(indexed.DAY, name) for name in names))


def _best(hits: Iterable[_Hit]) -> _Hit | None:
    """The hit that matches best, a superseded one only when there are no others."""
    return max(hits, key=lambda hit: (not hit.superseded, hit.match), default=None)
