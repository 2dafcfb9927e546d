"""How well each passage of some pages answers a query: BM25 over passages, with words of those beside them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from vaultd.core.fusion import NEIGHBOUR, PAGE_OF_PASSAGE
from vaultd.store import indexed
from vaultd.store.postings import Postings, Segment, impact, norm
from vaultd.store.rarity import Rarity

__all__ = ["Looked", "best_passages", "look", "terms_of"]

_PASSAGES = 8  # of one hit


class Looked(NamedTuple):
    """What a close look at a page gives: the scores of its passages that have a word of the query, by the passage's
    number from 1; and the query's terms that it has, with how often its title and text say each.
    """

    passages: Mapping[int, float]
    terms: Mapping[str, int]


def look(pages: Sequence[tuple[Segment, int, bytes]], postings: Postings, rarity: Rarity) -> list[Looked]:
    """Look closely at pages: each its segment, its number in there, and its passages' lengths, packed. The usual length
    of a passage is that in these pages.
    """
    lengths = [indexed.unpacked(packed) for _, _, packed in pages]
    total, count = sum(sum(each[1:]) for each in lengths), sum(len(each) - 1 for each in lengths)
    usual = max(1.0, total / max(1, count))
    weights = {term: weight for group, weight in rarity.items() for term in group}
    found = []
    for (segment, number, _), size in zip(pages, lengths, strict=True):
        places = _places(segment, number, postings, weights)
        found.append(Looked(_scores(places, size, usual, weights), _counts(places)))
    return found


def terms_of(segment: Segment, number: int, postings: Postings, terms: Iterable[str]) -> Mapping[str, int]:
    """The terms that a page has, as in `Looked`."""
    return _counts(_places(segment, number, postings, terms))


def best_passages(looked: Looked | None, best: float, page: float) -> list[tuple[int, float]]:
    """The best passages of a page with scores that compare over pages; a page's own match counts for each of them."""
    scores = looked.passages.items() if looked is not None else ()
    found = heapq.nlargest(_PASSAGES, scores, key=lambda item: (item[1], -item[0]))
    return [(number, score / best + PAGE_OF_PASSAGE * page) for number, score in found]


def _counts(places: Mapping[str, list[tuple[int, int]]]) -> dict[str, int]:
    return {term: sum(count for _, count in pairs) for term, pairs in places.items()}


def _places(
    segment: Segment, number: int, postings: Postings, terms: Iterable[str]
) -> dict[str, list[tuple[int, int]]]:
    """Where the terms that a page has stand in it, as `Words.places` tells it."""
    found = {}
    for term in terms:
        packed = postings.of(segment, term).place(number)
        if packed is not None:
            numbers = indexed.unpacked(packed)
            found[term] = list(zip(numbers[::2], numbers[1::2], strict=True))
    return found


def _scores(
    places: Mapping[str, list[tuple[int, int]]], lengths: Sequence[int], usual: float, weights: Mapping[str, float]
) -> dict[int, float]:
    """The scores of one page's passages. The page's names count as words of each passage."""
    titled = {term: pairs[0][1] for term, pairs in places.items() if pairs and pairs[0][0] == 0}
    numbers = {number for pairs in places.values() for number, _ in pairs if number}
    if not numbers and len(lengths) > 1:
        numbers = {1}
    scores = dict.fromkeys(sorted(numbers), 0.0)
    for term, pairs in places.items():
        counts = dict(pairs)
        for number in numbers:
            count = counts.get(number, 0) + titled.get(term, 0)
            if count:
                scores[number] += weights[term] * impact(count, norm(lengths[number] + lengths[0], usual))
    return {n: score + NEIGHBOUR * (scores.get(n - 1, 0.0) + scores.get(n + 1, 0.0)) for n, score in scores.items()}
