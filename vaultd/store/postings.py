"""What the segments of an index hold of each term, kept in plain arrays.

A segment's postings never change: so what was read of one is kept, by its name and the term, until room is short. A
plain loop over such arrays takes a tenth of the time that whoosh's matchers take. Deleted pages stay in them: whoever
asks leaves those out. With no room everything is read anew each time, and the answers are the same.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from vaultd.store import codec

__all__ = ["MOST", "Posting", "Postings", "Segment", "impact", "norm", "segments"]

_K1, _B = 1.2, 0.75
"""BM25's usual constants; others were tried on three outside sets and gained nothing to speak of."""


_FACTS = 10_000  # whose pages are kept; most have one or two

MOST = _K1 + 1
"""What every impact is less than."""


def norm(length: float, usual: float) -> float:
    """What BM25 adds to a term's count in a text of this length: more where it is longer than usual."""
    return _K1 * (1 - _B + _B * length / usual)


def impact(count: float, norm: float) -> float:
    """What BM25 multiplies a term's rarity with, of the term's count in a text and the text's norm."""
    return count * (_K1 + 1) / (count + norm)


@dataclass(frozen=True, slots=True)
class Posting:
    """The pages of a segment that have a term, in order; `impacts` is what the term's rarity is multiplied with.

    `places` holds one after the other what the term's places in each page are packed into, `ends` where each ends.
    """

    docs: array[int]
    impacts: array[float]
    ends: array[int]
    places: bytes

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 300 + (self.docs.itemsize + 8) * len(self.docs) + len(self.places)

    def place(self, doc: int) -> bytes | None:
        """The places of the term in a page, packed; none of them where the page has it only in a tag or the like, None
        where it does not have it.
        """
        at = bisect_left(self.docs, doc)
        if at == len(self.docs) or self.docs[at] != doc:
            return None
        return self.places[self.ends[at - 1] if at else 0 : self.ends[at]]


_NONE = Posting(array("I"), array("f"), array("I"), b"")


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of an open index: its reader and name, the number of its first page, the usual page's length, and how
    many pages it has, deleted ones included.
    """

    reader: Any
    name: str
    offset: int
    usual: float
    pages: int


@dataclass(slots=True)
class Postings:
    """The postings that were read, at most about `room` bytes of them, the least lately used go first.

    For one thread at a time.
    """

    room: int
    _kept: OrderedDict[tuple[str, str, float], Posting] = field(default_factory=OrderedDict)
    _facts: dict[tuple[str, str], frozenset[int]] = field(default_factory=dict)
    _norms: dict[tuple[str, float], array[float]] = field(default_factory=dict)
    _used: int = 0
    _names: frozenset[str] = frozenset()

    def of(self, segment: Segment, term: str) -> Posting:
        """What a segment holds of a term."""
        key = (segment.name, term, segment.usual)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        found = _read(segment, term, self._norm(segment))
        self._kept[key] = found
        self._used += found.size
        while self._used > self.room and self._kept:
            self._used -= self._kept.popitem(last=False)[1].size
        return found

    def having(self, segment: Segment, fact: str) -> frozenset[int]:
        """The pages of a segment that have a fact."""
        key = (segment.name, fact)
        if key not in self._facts:
            has = ("facts", fact) in segment.reader
            self._facts[key] = frozenset(codec.postings(segment.reader, "facts", fact).docs if has else ())
            if len(self._facts) > _FACTS or not self.room:
                self._facts = {key: self._facts[key]}
        return self._facts[key]

    def keep_only(self, names: frozenset[str]) -> None:
        """Let go of all that does not belong to these segments."""
        if names == self._names:
            return
        self._names = names
        for key in [key for key in self._kept if key[0] not in names]:
            self._used -= self._kept.pop(key).size
        self._facts = {key: docs for key, docs in self._facts.items() if key[0] in names}
        self._norms = {key: norms for key, norms in self._norms.items() if key[0] in names}

    def _norm(self, segment: Segment) -> array[float]:
        """The norm of each page of a segment."""
        key = (segment.name, segment.usual)
        if key not in self._norms:
            length, count = segment.reader.doc_field_length, segment.reader.doc_count_all()
            self._norms[key] = array("f", (norm(length(doc, "text", 0), segment.usual) for doc in range(count)))
        return self._norms[key]


def segments(searcher: Any) -> list[Segment]:
    """The segments of an open index. The usual length is rounded to steps of the root of two, so that it seldom moves
    and what was read stays right.
    """
    average = searcher.avg_field_length("text") or 1.0
    usual = 2.0 ** (round(2 * math.log2(max(1.0, average))) / 2)
    leaves = [(leaf.reader(), offset) for leaf, offset in searcher.leaf_searchers()]
    return [
        Segment(reader, reader.segment().segment_id(), offset, usual, reader.doc_count_all())
        for reader, offset in leaves
    ]


def _read(segment: Segment, term: str, norms: array[float]) -> Posting:
    if ("text", term) not in segment.reader:
        return _NONE
    found = codec.postings(segment.reader, "text", term)
    impacts = array("f", [impact(weight, norms[doc]) for doc, weight in zip(found.docs, found.weights, strict=True)])
    return Posting(found.docs, impacts, found.ends, found.values)
