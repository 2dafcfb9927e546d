"""How the streams of a search become one ranking, and the constants of that: all of them stand here.

A stream gives scores to pages. Each is divided by its best score and weighed; a page's match is the sum. On outside
sets of conversations and of documents adding scores up ranked better than adding up reciprocal ranks (constants of 3
and 10).

The figures beside the constants are from `tests.bench.retrieval`: *chats*, 964 questions about conversations, recall of
pages at five and ten; *wrong*, the share of 35 questions of another set that were given a page they must not be; *own*,
the coding memory that is a test, 67 questions, the answer among the first five.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

__all__ = [
    "FLOOR",
    "FLOOR_OF_ONE",
    "JOINED",
    "NEAR",
    "NEAREST",
    "NEIGHBOUR",
    "OFTEN",
    "PAGE_OF_PASSAGE",
    "SECOND",
    "STREAMS",
    "answers",
    "fuse",
    "of_passages",
    "spread",
]

# Names mined by rule (identifiers, paths, capitalised words) were tried as a stream: 4 of 1,457 questions gained by it.
STREAMS: Mapping[str, float] = {
    "text": 1.0,  # BM25 of the whole page
    "passage": 0.6,  # of its best passages; chats at .4, .6, .8: .8843, .8844, .8830
    "time": 0.3,  # the page is of the time that the query names; chats at .05, .15, .3: .8826, .8847, .8857
    # Its meaning is near the query's, as an embedding model has it (`vaultd[vectors]`); chats without it .884, at .3
    # and .4 .891, .889; at ten .941, .950, .949.
    "vector": 0.35,
    "links": 0.2,  # one of the best links to it, or it links there; own at .1, .2, .3: .955, .970, .970
}
"""The streams and their weights."""

FLOOR, FLOOR_OF_ONE = 0.3, 0.55
"""The share of the best match below which a page is no answer; and that for a page that has but one of the query's
terms, where the best one has more. Wrong at .2, .3, .4 .286, .229, .200; with .55 for one term .143. A floor on the
share of the query's terms that a page has cost more answers.
"""

OFTEN = 8
"""So often a page says its one term that it is about it, and the lower floor is meant. Chats at ten never, at 10, 8, 6:
.9400, .9432, .9426, .9426; wrong .143 down to 6, .171 at 5.
"""

SECOND = 0.2
"""What the second-best passage of a page counts beside its best. Chats at five and ten: .8860, .9406 without, .8856,
.9426 at .2, .8856, .9424 at .3; the passages of a set of documents are best without.
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


def of_passages(scores: Iterable[float]) -> float:
    """What a page's passages say for it, by their scores."""
    return sum(weight * score for weight, score in zip((1.0, SECOND), sorted(scores, reverse=True), strict=False))


def spread(scores: Mapping[Key, float | None]) -> dict[Key, float]:
    """Scores from 0 for the least to 1 for the greatest; those that are none are left out."""
    told = {number: score for number, score in scores.items() if score is not None}
    least, span = min(told.values(), default=0.0), max(told.values(), default=0.0) - min(told.values(), default=0.0)
    return {number: (score - least) / span if span else 1.0 for number, score in told.items()}


def answers(why: Mapping[str, float], said: Collection[int], best: tuple[float, int]) -> bool:
    """Whether a page is an answer beside the best one: by the match of each, and how many of the query's terms each
    has; `said` is how often this one says each of its own. Pages that are among the nearest by meaning are answers,
    whatever words they have.
    """
    match = sum(why.values())
    if why.get("vector", 0.0) >= NEAREST * STREAMS["vector"]:
        return True
    weak = len(said) < 2 <= best[1] and max(said, default=0) < OFTEN
    return match >= (FLOOR_OF_ONE if weak else FLOOR) * best[0]
