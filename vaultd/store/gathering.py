"""The postings of a segment while it is made, and how those of a term lie on disk; nothing here imports whoosh.

Pages come in the order of their numbers, so what is gathered of a term is sorted already, and only the terms are sorted
in the end. What takes more memory than there is room for goes to files without a name, which no crash leaves behind.
"""

from __future__ import annotations

import heapq
import marshal
import struct
import sys
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

__all__ = ["ORDER", "Gathered", "Gathering", "Listed", "listed", "packed"]

ORDER = sys.byteorder
"""Of the numbers in `packed`: an index is not read on a machine with another one."""

Gathered = list[Any]
"""What is gathered of a term: page, weight, value; page, weight, value; and so on."""

# Bytes of memory, about: three references and their share of a list; a list, its key and text.
_POSTING, _TERM = 30, 300
_BATCH = 500  # terms that are written to a file, and read from it, together
_SIZE = 8  # bytes that tell how long a batch is
_ONE = struct.Struct("=3sHBB")  # most terms stand in one page only


@dataclass(frozen=True, slots=True)
class Listed:
    """The postings of a term in a segment: pages in order, how much it counts in each, and a value for each.

    `values` has the values one after the other, `ends` where each ends.
    """

    docs: array[int]
    weights: array[int]
    ends: array[int]
    values: bytes

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Page, weight and value of each posting."""
        start = 0
        for doc, weight, end in zip(self.docs, self.weights, self.ends, strict=True):
            yield doc, weight, self.values[start:end]
            start = end


def packed(gathered: Gathered) -> bytes:
    """The postings of a term as bytes: the types of three arrays; pages, weights, lengths of values; the values."""
    if len(gathered) == 3 and gathered[0] < 1 << 16 and gathered[1] < 1 << 8 > len(gathered[2]):
        doc, weight, value = gathered
        return bytes(_ONE.pack(b"HBB", doc, weight, len(value)) + value)
    docs, weights, values = gathered[0::3], gathered[1::3], gathered[2::3]
    arrays = [_small(numbers) for numbers in (docs, weights, [len(value) for value in values])]
    return b"".join(
        (*(numbers.typecode.encode() for numbers in arrays), *(numbers.tobytes() for numbers in arrays), *values)
    )


def listed(data: bytes, count: int) -> Listed:
    """What `packed` made of so many postings. ValueError, IndexError for what it did not make."""
    at, arrays = 3, []
    for code in data[:3].decode("ascii"):
        numbers = array(code)
        end = at + count * numbers.itemsize
        numbers.frombytes(data[at:end])
        arrays.append(numbers)
        at = end
    docs, weights, sizes = arrays
    ends = array("I", accumulate(sizes))
    if len(docs) != count or len(data) - at != (ends[-1] if ends else 0):
        raise ValueError("these are no postings")
    return Listed(docs, weights, ends, data[at:])


class Gathering:
    """Gathers postings and gives them back by field and term. `room`: bytes of memory that it takes, about."""

    def __init__(self, folder: Path, room: int) -> None:
        """`folder`: where files go when the room is not enough."""
        self._folder, self._room = folder, room
        self._used = 0
        self._fields: dict[str, dict[str, Gathered]] = {}
        self._pairs: dict[bytes, bytes] = {}  # values of two bytes, of which there are few
        self._runs: list[IO[bytes]] = []

    def add(self, field: str, number: int, weights: Mapping[str, int], values: Mapping[str, bytes]) -> None:
        """The terms of a page, each once. Pages come in the order of their numbers."""
        terms = self._fields.setdefault(field, {})
        before, pairs = len(terms), self._pairs
        for term, weight in weights.items():
            value = values.get(term, b"")
            if len(value) == 2:
                value = pairs.setdefault(value, value)
            found = terms.get(term)
            if found is None:
                terms[term] = [number, weight, value]
            else:
                found += (number, weight, value)
        self._count(len(weights), len(terms) - before)

    def add_term(self, field: str, term: str, postings: Iterable[tuple[int, int, bytes]]) -> None:
        """Postings of one term, whose pages come after those that are here."""
        terms = self._fields.setdefault(field, {})
        before = len(terms)
        gathered = [part for posting in postings for part in posting]
        if gathered:
            terms.setdefault(term, []).extend(gathered)
            self._count(len(gathered) // 3, len(terms) - before)

    def iter_postings(self) -> Iterator[tuple[str, str, Gathered]]:
        """Field, term and postings, by field and term. What whoosh asks for when a segment is finished, once."""
        if not self._runs:
            return self._sorted()
        self._save()
        return _merged([_read(run) for run in self._runs])

    def cleanup(self) -> None:
        """Let go of all that is held."""
        self._fields = {}
        while self._runs:
            self._runs.pop().close()

    def _count(self, postings: int, terms: int) -> None:
        """So much came in; put it all into a file when it is too much."""
        self._used += _POSTING * postings + _TERM * terms
        if self._used > self._room:
            self._save()

    def _save(self) -> None:
        """Put what is here into a file."""
        run: IO[bytes] = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  until `cleanup`
        self._runs.append(run)
        postings = self._sorted()
        while batch := [item for item, _ in zip(postings, range(_BATCH), strict=False)]:
            data = marshal.dumps(batch, 2)  # the version that does not look for what is there twice
            run.write(len(data).to_bytes(_SIZE, "big") + data)
        self._fields, self._used = {}, 0

    def _sorted(self) -> Iterator[tuple[str, str, Gathered]]:
        """What is in memory."""
        for field, terms in sorted(self._fields.items()):
            for term in sorted(terms):
                yield field, term, terms[term]


def _read(run: IO[bytes]) -> Iterator[tuple[str, str, Gathered]]:
    """What was put into a file."""
    run.seek(0)
    while size := run.read(_SIZE):
        yield from marshal.loads(run.read(int.from_bytes(size, "big")))


def _merged(runs: Sequence[Iterator[tuple[str, str, Gathered]]]) -> Iterator[tuple[str, str, Gathered]]:
    """What several files have, the postings of a term in the order of the files."""
    name = itemgetter(0, 1)
    for (field, term), parts in groupby(heapq.merge(*runs, key=name), key=name):
        yield field, term, [part for _, _, gathered in parts for part in gathered]


def _small(numbers: Sequence[int]) -> array[int]:
    """Numbers in as few bytes each as the largest needs."""
    most = max(numbers)
    return array("B" if most < 1 << 8 else "H" if most < 1 << 16 else "I", numbers)
