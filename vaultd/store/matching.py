"""Which pages answer a query best, over an open whoosh searcher (index.py has it).

Two rankings are added up: BM25 of the whole page, and that of its best passage. Then the page's authority. Every term
of the query may be missing; a bonus for pages that have more of them was measured and gained nothing.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from vaultd.core import query
from vaultd.store import indexed
from vaultd.store.indexed import Found
from vaultd.store.postings import Postings, Segment, impact, norm, segments

__all__ = ["best_pages"]

_TERMS = 64  # of a long query the rarest terms are looked up
_CANDIDATES = 64  # pages that are looked at closely, unless many of them are superseded

# Chosen with tests/bench/outside.py: page recall at five and ten of two sets of conversations and two of documents.
# Adding scores up ranked better there than adding up reciprocal ranks with a constant of 3 or 10.
_PASSAGE_WEIGHT = 0.6  # of a page's best passage, beside the page's own score
_NEIGHBOUR = 0.2  # of the passages before and after, which say what a passage is about
_JOINED = 0.2  # of a term that the query's words make when they are run together


class _Page(NamedTuple):
    """A candidate: its score, where it is, and its record."""

    score: float
    segment: Segment
    number: int
    record: Mapping[str, Any]


def best_pages(
    searcher: Any, postings: Postings, terms: Sequence[str], own: Collection[str], facts: Sequence[str], limit: int
) -> list[Found]:
    """The best pages that have one of the terms and all of the facts, best first, superseded ones after all others.

    `own` are the terms that stand in the query as they are; only those may be read as two words run together. Pages of
    one score come in the order of their paths.
    """
    parts = segments(searcher)
    postings.keep_only(frozenset(part.name for part in parts))
    rarity = _rarity(searcher, terms, own)
    most = max(_CANDIDATES, 2 * limit)
    while True:
        pages = _candidates(searcher, parts, postings, rarity, facts, most)
        if len(pages) < most or sum(not page.record["superseded"] for page in pages) >= limit:
            break
        most *= 2
    if not pages:
        return []
    told = _passages(pages, postings, rarity)
    best, top = pages[0].score, max(told) or 1.0
    found = [
        indexed.found(page.record, page.score / best + _PASSAGE_WEIGHT * score / top)
        for page, score in zip(pages, told, strict=True)
    ]
    return sorted(found, key=lambda hit: (hit.superseded, -hit.score, hit.path))[:limit]


_Rarity = Mapping[tuple[str, ...], float]
"""What is looked for and how rare it is: single terms, and two that have to stand in one page."""


def _rarity(searcher: Any, terms: Sequence[str], own: Collection[str]) -> _Rarity:
    """A word that no page has counts as two words run together, where both are known."""
    pages = searcher.doc_count_all()
    counts = {term: _count(searcher, term) for term in terms}
    known = sorted((term for term in terms if counts[term]), key=lambda term: counts[term])[:_TERMS]
    found: dict[tuple[str, ...], float] = {
        (term,): _idf(pages, counts[term]) * (1.0 if term in own else _JOINED) for term in known
    }
    for term in [term for term in terms if not counts[term] and term in own][:_TERMS]:
        for pair in query.halves(term):
            halves = [_count(searcher, half) for half in pair]
            if all(halves):
                found[pair] = sum(_idf(pages, count) for count in halves) / 2
                break
    return found


def _idf(pages: int, count: int) -> float:
    """How telling a term is that so many of all pages have."""
    return math.log(pages / (count + 1)) + 1.0


def _count(searcher: Any, term: str) -> int:
    """In how many pages a term stands, deleted ones included."""
    return int(searcher.doc_frequency("text", term))


def _candidates(
    searcher: Any, parts: Iterable[Segment], postings: Postings, rarity: _Rarity, facts: Sequence[str], most: int
) -> list[_Page]:
    """The pages that match best as a whole, best first."""
    found: list[tuple[float, int, Segment]] = []
    for part in parts:
        scores = _scores(part, postings, rarity)
        for fact in facts:
            allowed = postings.having(part, fact)
            scores = {number: score for number, score in scores.items() if number in allowed}
        found += [(score, -number - part.offset, part) for number, score in _top(part, scores, most)]
    best = heapq.nlargest(most, found, key=lambda item: item[:2])
    return [
        _Page(score, part, -number - part.offset, searcher.stored_fields(-number)["page"])
        for score, number, part in best
    ]


def _scores(part: Segment, postings: Postings, rarity: _Rarity) -> dict[int, float]:
    """The summed scores of a segment's pages."""
    scores: dict[int, float] = {}
    for group, weight in rarity.items():
        if len(group) == 1:
            posting = postings.of(part, group[0])
            for number, impact in zip(posting.docs, posting.impacts, strict=True):
                scores[number] = scores.get(number, 0.0) + weight * impact
            continue
        one, other = (dict(zip(p.docs, p.impacts, strict=True)) for p in (postings.of(part, half) for half in group))
        for number in one.keys() & other.keys():
            scores[number] = scores.get(number, 0.0) + weight * (one[number] + other[number])
    return scores


def _top(part: Segment, scores: Mapping[int, float], most: int) -> list[tuple[int, float]]:
    """The best pages of a segment that were not deleted since."""
    wanted = most
    while True:
        best = heapq.nlargest(wanted, scores.items(), key=lambda item: (item[1], -item[0]))
        left = [item for item in best if not part.reader.is_deleted(item[0])]
        if len(left) >= most or len(best) < wanted:
            return left[:most]
        wanted *= 2


def _passages(pages: Sequence[_Page], postings: Postings, rarity: _Rarity) -> list[float]:
    """For each page the score of its best passage."""
    lengths = [indexed.unpacked(page.record["lengths"]) for page in pages]
    total, count = sum(sum(each[1:]) for each in lengths), sum(len(each) - 1 for each in lengths)
    usual = max(1.0, total / max(1, count))
    weights = {term: weight for group, weight in rarity.items() for term in group}
    return [
        _best(_within(page, postings, weights), size, usual, weights) for page, size in zip(pages, lengths, strict=True)
    ]


def _within(page: _Page, postings: Postings, terms: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
    """Where the terms stand in a page, as `Words.places` tells it."""
    found = {}
    for term in terms:
        numbers = indexed.unpacked(postings.of(page.segment, term).place(page.number))
        if numbers:
            found[term] = list(zip(numbers[::2], numbers[1::2], strict=True))
    return found


def _best(
    places: Mapping[str, list[tuple[int, int]]], lengths: Sequence[int], usual: float, weights: Mapping[str, float]
) -> float:
    """The score of the best passage of one page. The page's names count as words of each passage."""
    titled = {term: pairs[0][1] for term, pairs in places.items() if pairs[0][0] == 0}
    numbers = {number for pairs in places.values() for number, _ in pairs if number}
    if not numbers and len(lengths) > 1:
        numbers = {1}
    scores = dict.fromkeys(numbers, 0.0)
    for term, pairs in places.items():
        counts = dict(pairs)
        for number in numbers:
            count = counts.get(number, 0) + titled.get(term, 0)
            if count:
                scores[number] += weights[term] * impact(count, norm(lengths[number] + lengths[0], usual))
    around = (score + _NEIGHBOUR * (scores.get(n - 1, 0.0) + scores.get(n + 1, 0.0)) for n, score in scores.items())
    return max(around, default=0.0)
