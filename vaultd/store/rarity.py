"""What a question's terms are worth: the rarer, the more; and what is looked for instead where no page has a term."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from vaultd.core import query
from vaultd.core.fusion import JOINED, NEAR

__all__ = ["Rarity", "rarities"]

Rarity: TypeAlias = Mapping[tuple[str, ...], float]
"""What is looked for and what it is worth: single terms, and two that have to stand in one page."""

_TERMS = 64  # of a long query the rarest terms are looked up
_NEAREST = 3  # spellings that are tried instead of a word
_SHORTEST, _LONG = 5, 8  # letters of a word that may be misspelt, and of one that may be so twice


def rarities(searcher: Any, terms: Sequence[str], own: Collection[str]) -> Rarity:
    """The worth of a query's terms.

    `own` are those that stand in it as they are. Of these, one that no page has counts as two words run together, where
    both are known, else as the known words that are spelt nearly so.
    """
    pages = searcher.doc_count_all()
    counts = {term: _count(searcher, term) for term in terms}
    known = sorted((term for term in terms if counts[term]), key=lambda term: counts[term])[:_TERMS]
    found: dict[tuple[str, ...], float] = {
        (term,): _idf(pages, counts[term]) * (1.0 if term in own else JOINED) for term in known
    }
    for term in [term for term in terms if not counts[term] and term in own][:_TERMS]:
        for pair in query.halves(term):
            halves = [_count(searcher, half) for half in pair]
            if all(halves) and query.STOP_FORMS.isdisjoint(pair):  # "forgetting" is not "for getting"
                found[pair] = sum(_idf(pages, count) for count in halves) / 2
                break
        else:
            for near in _near(searcher, term):
                found.setdefault((near,), NEAR * _idf(pages, _count(searcher, near)))
    return found


def _idf(pages: int, count: int) -> float:
    """How telling a term is that so many of all pages have."""
    return math.log(pages / (count + 1)) + 1.0


def _count(searcher: Any, term: str) -> int:
    """In how many pages a term stands, deleted ones included."""
    return int(searcher.doc_frequency("text", term))


def _near(searcher: Any, term: str) -> list[str]:
    """The known words that a word may be misspelt from, nearest first, then the most frequent.

    They begin with the same letter: few slips are in the first, and all others are found by reading a part of the list.
    """
    if len(term) < _SHORTEST or not (term.isascii() and term.isalpha()):
        return []
    most = 2 if len(term) >= _LONG else 1
    found = []
    for word in _beginning(searcher, term[0]):
        if (
            abs(len(word) - len(term)) <= most and word.isalpha() and word[:-1] != term[:-1]
        ):  # "respond" is no "response"
            far = distance(term, word, most)
            if far <= most:
                found.append((far, -_count(searcher, word), word))
    return [word for _, _, word in sorted(found)[:_NEAREST]]


def _beginning(searcher: Any, prefix: str) -> Iterator[str]:
    for word in searcher.reader().expand_prefix("text", prefix):
        yield word.decode("utf-8", "replace") if isinstance(word, bytes) else word


def distance(one: str, other: str, most: int) -> int:
    """How many letters are added, lost, replaced or swapped with their neighbour; `most` + 1 for any more than that."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
