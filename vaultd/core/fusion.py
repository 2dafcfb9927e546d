"""How the streams of a search become one ranking, and the constants of that: all of them stand here.

A stream gives scores to pages. Each is divided by its best score and weighed; a page's match is the sum. Adding scores
up ranked better than adding up reciprocal ranks (constants of 3 and 10) on all outside sets of tests/bench/outside.py.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

__all__ = ["FLOOR", "JOINED", "NEAR", "NEIGHBOUR", "PAGE_OF_PASSAGE", "STREAMS", "fuse", "passing"]

STREAMS: Mapping[str, float] = {
    "text": 1.0,  # BM25 of the whole page
    "passage": 0.6,  # of its best passage
    "time": 0.3,  # the page is of the time that the query names
    "links": 0.2,  # a page that answers links to it, or it links there
}
"""The streams and their weights."""

FLOOR = 0.3
"""The share of the best match below which a page is no answer."""

NEIGHBOUR = 0.2
"""The share of the passages before and after in a passage's score: they say what it is about."""

PAGE_OF_PASSAGE = 0.8
"""What the match of its whole page is worth for a passage, beside its own."""

JOINED = 0.2
"""What a term counts that the query's words make when they are run together."""

NEAR = 0.6
"""What a known word counts that is spelt nearly like an unknown one of the query."""

Key = TypeVar("Key", bound=Hashable)


def fuse(streams: Mapping[str, Mapping[Key, float]]) -> dict[Key, dict[str, float]]:
    """What each stream contributes to each page; pages in the order in which streams name them first."""
    told: dict[Key, dict[str, float]] = {}
    for name, scores in streams.items():
        top = max(scores.values(), default=0.0)
        if top <= 0:
            continue
        for page, score in scores.items():
            told.setdefault(page, {})[name] = STREAMS[name] * score / top
    return told


def passing(matches: Iterable[float]) -> float:
    """The match that a page needs to be an answer."""
    return FLOOR * max(matches, default=0.0)
