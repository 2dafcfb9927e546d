"""Which pages answer a query best, over an open whoosh searcher (index.py has it; nothing here imports whoosh).

The score of a page is whoosh's BM25F of each term, added up, times the page's authority. Every term of the query may be
missing; a bonus for pages that have more of them was measured on five outside retrieval sets and gained nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from typing import Any

from vaultd.core import query
from vaultd.core.ranking import CEILING
from vaultd.store import indexed
from vaultd.store.indexed import Found

__all__ = ["best_pages"]

_TERMS = 64  # of a long query the rarest terms are looked up


def best_pages(
    searcher: Any, terms: Sequence[str], own: Collection[str], facts: Sequence[str], limit: int
) -> list[Found]:
    """The best pages that have one of the terms and all of the facts, best first, superseded ones after all others.

    `own` are the terms that stand in the query as they are; only those may be read as two words run together. Pages of
    one score come in the order of their paths. Looks as far down as a page could still be among the best.
    """
    scores = _scores(searcher, terms, own)
    for fact in facts:
        allowed = set(searcher.postings("facts", fact).all_ids()) if _count(searcher, "facts", fact) else set()
        scores = {number: score for number, score in scores.items() if number in allowed}
    found: list[Found] = []
    best: list[float] = []
    for number, score in sorted(scores.items(), key=lambda item: -item[1]):
        if len(best) == limit and score * CEILING < best[0]:
            break
        hit = indexed.found(searcher.stored_fields(number)["page"], score)
        found.append(hit)
        if not hit.superseded:
            heapq.heappush(best, hit.score)
            if len(best) > limit:
                heapq.heappop(best)
    return sorted(found, key=lambda hit: (hit.superseded, -hit.score, hit.path))[:limit]


def _scores(searcher: Any, terms: Sequence[str], own: Collection[str]) -> dict[int, float]:
    """The summed scores by document. A word that no page has counts as two words run together, where both are known.

    A plain loop over the postings takes an eighth of the time that whoosh's tree of matchers takes for a long query.
    """
    counts = {term: _count(searcher, "text", term) for term in terms}
    scores: dict[int, float] = {}
    for term in sorted((term for term in terms if counts[term]), key=lambda term: counts[term])[:_TERMS]:
        _add(searcher, term, scores)
    for term in [term for term in terms if not counts[term] and term in own][:_TERMS]:
        for pair in query.halves(term):
            if all(_count(searcher, "text", half) for half in pair):
                one, other = (_add(searcher, half, {}) for half in pair)
                for number in one.keys() & other.keys():
                    scores[number] = scores.get(number, 0.0) + one[number] + other[number]
                break
    return scores


def _add(searcher: Any, term: str, scores: dict[int, float]) -> dict[int, float]:
    """Add a term's score to each document that has it; its weight is the same in every segment."""
    for leaf, offset in searcher.leaf_searchers():
        if not _count(leaf, "text", term):
            continue
        matcher = leaf.postings("text", term)
        while matcher.is_active():
            number = matcher.id() + offset
            scores[number] = scores.get(number, 0.0) + matcher.score()
            matcher.next()
    return scores


def _count(searcher: Any, field: str, term: str) -> int:
    """In how many documents a term stands, deleted ones included."""
    return int(searcher.doc_frequency(field, term))
