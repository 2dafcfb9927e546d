"""How the streams of a search become one ranking, and the constants of that: all of them stand here.

A stream gives scores to pages. Each is divided by its best score and weighed; a page's match is the sum. On outside
sets of conversations and of documents adding scores up ranked better than adding up reciprocal ranks (constants of 3
and 10).

The figures beside the constants are from `tests.bench.retrieval`: *chats*, 964 questions about conversations, recall of
pages at five and ten; *wrong*, the share of 35 questions of another set that were given a page they must not be; *own*,
the coding memory that is a test, 67 questions, the answer among the first five.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

__all__ = [
    "FLOOR",
    "FLOOR_OF_ONE",
    "JOINED",
    "NEAR",
    "NEAREST",
    "NEIGHBOUR",
    "PAGE_OF_PASSAGE",
    "STREAMS",
    "answers",
    "fuse",
]

# Names mined by rule (identifiers, paths, capitalised words) were tried as a stream: 4 of 1,457 questions gained by it.
STREAMS: Mapping[str, float] = {
    "text": 1.0,  # BM25 of the whole page
    "passage": 0.6,  # of its best passage; chats at .4, .6, .8: .8843, .8844, .8830
    "time": 0.3,  # the page is of the time that the query names; chats at .05, .15, .3: .8826, .8847, .8857
    # Its meaning is near the query's, as an embedding model has it (`vaultd[vectors]`); chats without it .884, at .3
    # and .4 .891, .889; at ten .941, .950, .949.
    "vector": 0.35,
    "links": 0.2,  # a page that answers links to it, or it links there; own at .1, .2, .3: .955, .970, .970
}
"""The streams and their weights."""

FLOOR, FLOOR_OF_ONE = 0.3, 0.55
"""The share of the best match below which a page is no answer; and that for a page that has but one of the query's
terms, where the best one has more. Wrong at .2, .3, .4 .286, .229, .200; with .55 for one term .143, which costs chats
.003 at ten. A floor on the share of the query's terms that a page has cost more answers.
"""

NEIGHBOUR = 0.2
"""The share of the passages before and after in a passage's score: they say what it is about. Chats at .1, .2, .35:
.8837, .8844, .8851, but their first places fall with the last.
"""

PAGE_OF_PASSAGE = 0.8
"""What the match of its whole page is worth for a passage, beside its own. At .6, .8, 1.0 chats by their turns have
.623, .635, .641 at five; the first place is best at .6.
"""

NEAREST = 0.8
"""The share of the way from the least to the most similar candidate from which a page is an answer by that alone."""

JOINED = 0.2
"""What a term counts that the query's words make when they are run together. Wrong at .1, .2: .171, .143."""

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


def answers(why: Mapping[str, float], terms: int, best: tuple[float, int]) -> bool:
    """Whether a page is an answer beside the best one, by match and number of the query's terms of each. Pages that are
    among the nearest by meaning are, whatever words they have.
    """
    match = sum(why.values())
    if why.get("vector", 0.0) >= NEAREST * STREAMS["vector"]:
        return True
    least = FLOOR_OF_ONE if terms < 2 <= best[1] else FLOOR
    return match >= least * best[0]
