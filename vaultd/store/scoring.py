"""BM25 of whole pages: the scores of a segment, and the best of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from vaultd.store.postings import MOST, Postings, Segment
from vaultd.store.rarity import Rarity

__all__ = ["best", "scores"]

_LONG = 500  # pages of a term from which it pays to look whether new pages may still count
_DELETED = 200  # pages of a segment that were deleted since; with more nothing is left out


def scores(
    part: Segment, postings: Postings, rarity: Rarity, allowed: Collection[int] | None, most: int
) -> dict[int, float]:
    """The scores of the pages that match, of those `allowed` (None for all).

    The `most` best ones of all that were not deleted are there for certain, others may be missing: what is rare is
    looked up first, and once what is left cannot lift a new page among the best, it only adds to those that are there.
    """
    found: dict[int, float] = {}
    get = found.get
    order = sorted(rarity.items(), key=lambda item: (-item[1], item[0]))
    left = sum(weight * MOST * len(group) for group, weight in order)
    deleted = part.reader.doc_count_all() - part.reader.doc_count()
    may_close = allowed is None and deleted <= _DELETED
    closed = False
    for group, weight in order:
        docs, impacts = _posting(part, postings, group)
        if not closed and may_close and len(docs) > _LONG and len(found) > most + deleted:
            closed = sorted(found.values(), reverse=True)[most + deleted - 1] > left
        left -= weight * MOST * len(group)
        pairs = zip(docs, impacts, strict=True)
        if closed:
            for number, impact in pairs:
                if number in found:
                    found[number] += weight * impact
        elif allowed is None:
            for number, impact in pairs:
                found[number] = get(number, 0.0) + weight * impact
        else:
            for number, impact in pairs:
                if number in allowed:
                    found[number] = get(number, 0.0) + weight * impact
    return found


def best(
    part: Segment, scores: Mapping[int, float], allowed: frozenset[int] | None, most: int
) -> list[tuple[int, float]]:
    """The `most` best pages that are allowed and were not deleted since, best first, equals in their order."""
    told: Mapping[int, float] = scores
    if allowed is not None:
        told = {number: scores[number] for number in scores.keys() & allowed}
    if part.reader.has_deletions():
        told = {number: score for number, score in told.items() if not part.reader.is_deleted(number)}
    ranked = sorted(told.values(), reverse=True)
    least = ranked[most - 1] if len(ranked) > most else 0.0
    found = sorted((-score, number) for number, score in told.items() if score >= least and score > 0.0)
    return [(number, -score) for score, number in found[:most]]


def _posting(part: Segment, postings: Postings, group: tuple[str, ...]) -> tuple[Collection[int], Collection[float]]:
    """The pages that have all terms of a group, and the sums of their impacts."""
    if len(group) == 1:
        posting = postings.of(part, group[0])
        return posting.docs, posting.impacts
    one, other = (dict(zip(p.docs, p.impacts, strict=True)) for p in (postings.of(part, half) for half in group))
    both = sorted(one.keys() & other.keys())
    return both, [one[number] + other[number] for number in both]
