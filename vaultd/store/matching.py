"""Which pages answer a question best, over an open whoosh searcher (index.py has it).

Streams are added up (core/fusion.py has their weights): BM25 of the whole page, that of its best passage, the time that
the question names, and links from and to pages that answer. Then the page's authority. Every term of the query may be
missing; a bonus for pages that have more of them was measured and gained nothing.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from vaultd.core import fusion, query, when
from vaultd.core.question import Question
from vaultd.core.ranking import asks_of_sessions
from vaultd.store import indexed
from vaultd.store.indexed import Found
from vaultd.store.links import Links, Place
from vaultd.store.passagescores import Scored, passage_scores
from vaultd.store.postings import Postings, Segment, segments
from vaultd.store.rarity import Rarity, rarities

__all__ = ["best_pages"]

_CANDIDATES = 64  # pages that are looked at closely, unless many of them are left out
_LINKING = 10  # of the best of them links are followed,
_FAN = 20  # unless a page has more of them: a list of everything says nothing about any of it
_PASSAGES = 8  # of one hit


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


def best_pages(searcher: Any, postings: Postings, question: Question, near: Mapping[str, float]) -> list[list[Found]]:
    """The best pages for a question, a list for each of its groups: best first, superseded ones after all others.

    Equals come by their paths. Scores compare over all the lists. What is too weak beside the best page is no answer;
    of the first group, beside its own best.
    """
    search = _Search(searcher, postings, question, {} if "vector" in question.without else near)
    groups = [search.group(group) for group in question.groups]
    return search.ranked(groups)


class _Search:
    """One question to one generation of the index."""

    def __init__(self, searcher: Any, postings: Postings, question: Question, near: Mapping[str, float]) -> None:
        self._searcher = searcher
        self._postings = postings
        self._question = question
        self._near = near
        self._parts = segments(searcher)
        postings.keep_only(frozenset(part.name for part in self._parts))
        self._links = Links(searcher, self._parts, postings)
        self._span = None if "time" in question.without else when.span(question.text, question.now)
        text = self._span.rest if self._span is not None else question.text
        self._terms = query.terms(text)
        own = set(query.tokens(text))
        if self._span is not None and own <= query.STOP_WORDS:
            self._terms = []  # nothing but the time is asked for
        self._of_sessions = self._span is not None or asks_of_sessions(question.text)
        self._rarity: Rarity = rarities(searcher, self._terms, own)
        self._timely = {part.name: self._of_time(part) for part in self._parts}
        self._scores = {part.name: self._matching(part) for part in self._parts}

    def group(self, projects: Collection[str] | None) -> _Group:
        """The pages of a group that match best as a whole; more of them when many are superseded or expired."""
        facts = [[indexed.fact(key, value) for value in values] for key, values in self._question.where.items()]
        if projects is not None:
            facts.append([indexed.fact(indexed.PROJECT, project) for project in projects])
        allowed = {part.name: self._all(part, facts) for part in self._parts} if facts else None
        most = max(_CANDIDATES, 2 * self._question.limit)
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
                part = max((p for p in self._parts if p.offset <= number), key=lambda p: p.offset)
                page = self._page(part, number - part.offset)
                if (allowed is None or page.number in allowed[part.name]) and self._wanted(page):
                    found.append(page)
            if len(found) >= _CANDIDATES:
                break
        return found

    def ranked(self, groups: Sequence[_Group]) -> list[list[Found]]:
        """The hits of each group."""
        pages = {page.id: page for group in groups for page in group.pages}
        scores = {page.id: self._scores[page.segment.name][page.number] for page in pages.values()}
        closely = pages.values() if "passage" not in self._question.without else ()
        told = passage_scores(
            [(page.segment, page.number, page.record["lengths"]) for page in closely], self._postings, self._rarity
        )
        scored = dict(zip(pages, told, strict=False))
        streams = {
            "text": scores,
            "passage": {number: max(found.values(), default=0.0) for number, found in scored.items()},
            "time": {page.id: 1.0 for page in pages.values() if page.number in self._timely[page.segment.name]},
        }
        if self._near:
            streams["vector"] = _spread({page.id: self._near.get(page.record["path"]) for page in pages.values()})
        if "links" not in self._question.without:
            matches = {number: sum(why.values()) for number, why in self._fused(streams).items()}
            streams["links"] = self._linked(pages, groups, matches)
        best = max(scores.values(), default=0.0) or 1.0, max(streams["passage"].values(), default=0.0) or 1.0
        found = {
            number: indexed.found(
                pages[number].record,
                why,
                _comparable(scored.get(number, {}), best[1], scores.get(number, 0.0) / best[0]),
                self._matched(pages[number]),
                of_sessions=self._of_sessions,
            )
            for number, why in self._fused(streams).items()
        }
        lists = [
            [hit for n, hit in found.items() if group.holds(pages[n].segment, pages[n].number)] for group in groups
        ]
        best_of_all = _best(found.values())
        return [self._cut(hits, best_of_all if place else _best(hits)) for place, hits in enumerate(lists)]

    def _cut(self, hits: Sequence[Found], best: Found | None) -> list[Found]:
        """A group's hits in their order, as many as are wanted; none that is no answer beside the best one."""
        kept = [hit for hit in hits if best is not None and _answers(hit, best)]
        current = [hit for hit in kept if not hit.superseded]
        strongest = max(hits, key=_match, default=None)
        # What was replaced comes unasked where the present has no answer beside it, or the past is asked for.
        wanted = self._question.superseded or self._span is not None
        if not wanted and any(strongest is not None and _answers(hit, strongest) for hit in current):
            kept = current
        return sorted(kept, key=lambda hit: (hit.superseded, -hit.score, hit.path))[: self._question.limit]

    def _candidates(self, allowed: _Allowed, most: int) -> list[_Page]:
        """The pages that match best as a whole, best first; all of the time when it alone is asked for."""
        found: list[tuple[float, int, Segment]] = []
        for part in self._parts:
            may = allowed[part.name] if allowed is not None else None
            best_here = _top(part, self._scores[part.name], may, most)
            found += [(score, -number - part.offset, part) for number, score in best_here]
        best = heapq.nlargest(most, found, key=lambda item: item[:2])
        return [self._page(part, -number - part.offset) for _, number, part in best]

    def _matching(self, part: Segment) -> list[float]:
        """The scores of all pages of a segment, deleted ones too."""
        if self._terms:
            return _scores(part, self._postings, self._rarity)
        timely = self._timely[part.name]
        return [float(number in timely) for number in range(part.pages)]

    def _wanted(self, page: _Page) -> bool:
        """Whether a page may be an answer at all."""
        return self._question.expired or not when.expired(page.record["expires"], self._question.now)

    def _fused(self, streams: Mapping[str, Mapping[int, float]]) -> dict[int, dict[str, float]]:
        return fusion.fuse({name: s for name, s in streams.items() if name not in self._question.without})

    def _linked(
        self, pages: dict[int, _Page], groups: Sequence[_Group], matches: Mapping[int, float]
    ) -> dict[int, float]:
        """What pages are worth for their links with the best ones; pages that are new are added to `pages`."""
        scores: dict[int, float] = {}
        for number in heapq.nlargest(_LINKING, matches, key=lambda number: (matches[number], -number)):
            for place in self._links.around(pages[number].record, _FAN):
                page = pages.get(place.id) or self._page(place.segment, place.number)
                if any(group.holds(place.segment, place.number) for group in groups) and self._wanted(page):
                    pages[page.id] = page
                    scores[page.id] = max(scores.get(page.id, 0.0), matches[number])
        return scores

    def _page(self, part: Segment, number: int) -> _Page:
        return _Page(part, number, self._links.record(Place(part, number)))

    def _matched(self, page: _Page) -> list[str]:
        """The query's terms that a page has."""
        terms = dict.fromkeys(term for group in self._rarity for term in group)
        return [term for term in terms if self._postings.of(page.segment, term).place(page.number)]

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


def _spread(scores: Mapping[int, float | None]) -> dict[int, float]:
    """Scores from 0 for the least to 1 for the greatest; those that are none are left out."""
    told = {number: score for number, score in scores.items() if score is not None}
    least, span = min(told.values(), default=0.0), max(told.values(), default=0.0) - min(told.values(), default=0.0)
    return {number: (score - least) / span if span else 1.0 for number, score in told.items()}


def _best(hits: Iterable[Found]) -> Found | None:
    """The hit that matches best, a superseded one only when there are no others."""
    return max(hits, key=lambda hit: (not hit.superseded, _match(hit)), default=None)


def _answers(hit: Found, best: Found) -> bool:
    """Whether a page is an answer beside the best one."""
    return fusion.answers(_streams(hit), len(hit.matched), (_match(best), len(best.matched)))


def _match(hit: Found) -> float:
    """How well a page matches, whatever its authority."""
    return sum(_streams(hit).values())


def _streams(hit: Found) -> dict[str, float]:
    """What the streams add to a page's match."""
    return {name: part for name, part in hit.why.items() if name != "authority"}


def _comparable(scores: Scored, best: float, page: float) -> list[tuple[int, float]]:
    """The best passages of a page with scores that compare over pages; a page's own match counts for each of them."""
    found = heapq.nlargest(_PASSAGES, scores.items(), key=lambda item: (item[1], -item[0]))
    return [(number, score / best + fusion.PAGE_OF_PASSAGE * page) for number, score in found]


def _scores(part: Segment, postings: Postings, rarity: Rarity) -> list[float]:
    """The summed scores of all pages of a segment, zero for those that have nothing of the query."""
    scores = [0.0] * part.pages
    for group, weight in rarity.items():
        if len(group) == 1:
            posting = postings.of(part, group[0])
            for number, impact in zip(posting.docs, posting.impacts, strict=True):
                scores[number] += weight * impact
            continue
        one, other = (dict(zip(p.docs, p.impacts, strict=True)) for p in (postings.of(part, half) for half in group))
        for number in one.keys() & other.keys():
            scores[number] += weight * (one[number] + other[number])
    return scores


def _top(part: Segment, scores: Sequence[float], allowed: frozenset[int] | None, most: int) -> list[tuple[int, float]]:
    """The best pages of a segment that match, may answer and were not deleted since; equals in their order."""
    wanted = most
    while True:
        values = sorted(scores if allowed is None else (scores[number] for number in allowed), reverse=True)
        least = max(values[wanted - 1] if len(values) >= wanted else 0.0, sys.float_info.min)
        told = enumerate(scores) if allowed is None else ((number, scores[number]) for number in allowed)
        best = sorted((-score, number) for number, score in told if score >= least)
        left = [(number, -score) for score, number in best if not part.reader.is_deleted(number)]
        if len(left) >= most or len(values) < wanted or values[wanted - 1] <= 0.0:
            return left[:most]
        wanted *= 2
