"""The vectors of a vault's pages: one file in the cache. Derived from the pages, made anew on any doubt.

    <folder>/pages.vectors    a line (format, provider, model, dimension, how texts are cut, vault), then records

A record is its size and CRC-32, then a page's path, its revision and its vectors, in half precision (measured: the
similarities differ by less than 0.001, page recall not at all). The last record of a path counts; one without vectors
says that the page is gone. Records are appended; once more is dead than alive the file is written anew.

| crash after | on disk | what follows |
|---|---|---|
| part of a record is appended | a tail that its sum does not vouch for | it is not read; the next writer cuts it off |
| a record is appended | the record | it counts |
| a new file has a temp name | litter | the old file counts; the litter goes with the next filling |
| **the new file is renamed** | the new file | it counts |

Nothing is synced: after a power cut sums tell what is whole, the rest is embedded again. Readers never lock.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vaultd.core.embedding import TEXTS, Vector
from vaultd.errors import RefusedError, UsageError
from vaultd.store.fs import make_folder, remove, write_private

__all__ = ["MISSING", "Kind", "Near", "PageVectors", "Vectors"]

FORMAT = 1
"""Number of the layout of the file."""

MISSING = "Vectors need the extra: pip install 'vaultd[vectors]'. Or set `vectors.provider` to off."
"""What a person is told when numpy is not there."""

_MARK = "vaultd-vectors"
_FRAME = struct.Struct("<II")  # size of what follows, its CRC-32
_HEAD = struct.Struct("<HHI")  # bytes of the path, bytes of the revision, number of vectors
_MOST_HEADER = 64 << 10
_DEAD = 1000  # vectors that count no more and are not worth a new file


@dataclass(frozen=True, slots=True)
class Kind:
    """What vectors must have in common to be compared. `dimension` 0: whatever the file has."""

    provider: str
    model: str
    dimension: int


@dataclass(frozen=True, slots=True)
class PageVectors:
    """The vectors of a page as it was at a revision; none: the page is gone."""

    path: str
    revision: str
    vectors: Sequence[Vector]


@dataclass(frozen=True, slots=True)
class Near:
    """Pages by similarity, and what is missing.

    `ranked`: path and cosine (-1 to 1) of each page's best text, best first; those of one similarity in any order.
    `lacking`: how many of the pages asked about have no vectors, or those of another revision only.
    """

    ranked: Sequence[tuple[str, float]]
    lacking: int


@dataclass(slots=True)
class _Held:
    """What was read of one file. `end` is where its whole records end; `last` the record that counts, by path."""

    head: bytes
    dimension: int
    end: int
    revisions: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)  # of the records that are not in the matrix yet
    last: dict[str, int] = field(default_factory=dict)
    matrix: Any = None
    starts: Any = None  # the row of the matrix where each record begins

    @property
    def alive(self) -> int:
        """Vectors that count."""
        return sum(self.counts[number] for number in self.last.values())


class Vectors:
    """The vectors of one vault made by one embedder. Reading is safe in any process; writing is for one at a time:
    the caller holds a lock. Not for several threads at once.
    """

    def __init__(self, folder: Path, vault_root: Path, kind: Kind) -> None:
        """Nothing is opened yet. RefusedError inside the vault."""
        if folder.resolve().is_relative_to(vault_root.resolve()):
            raise RefusedError(f"Vectors may not lie inside the vault ({folder}). Put the cache folder elsewhere.")
        self.folder = folder
        self._file = folder / "pages.vectors"
        self._kind = kind
        self._told = {"provider": kind.provider, "model": kind.model, "vault": os.fspath(vault_root.resolve())}
        self._held: _Held | None = None
        self._doubt = ""

    @property
    def doubt(self) -> str:
        """Why the file that is there does not count; "" when it does, or when there is none."""
        self._look()
        return self._doubt

    @property
    def dimension(self) -> int:
        """Numbers of the vectors in the file; 0 when there is none that counts."""
        held = self._look()
        return held.dimension if held is not None else 0

    def revisions(self) -> dict[str, str]:
        """The revision of each page that has vectors."""
        held = self._look()
        return {path: held.revisions[number] for path, number in held.last.items()} if held is not None else {}

    def nearest(self, query: Vector, pages: Mapping[str, str]) -> Near:
        """Rank pages (path to revision) by a query's vector; vectors of other revisions are ignored.

        UsageError when numpy is missing. A query of another dimension than the file's finds nothing.
        """
        held = self._look()
        if held is None or len(query) != held.dimension:
            return Near((), len(pages))
        revisions = held.revisions
        live = [(path, number) for path, number in held.last.items() if pages.get(path) == revisions[number]]
        if not live:
            return Near((), len(pages))
        numpy = _numpy()
        _fill(held, numpy)
        best = numpy.maximum.reduceat(held.matrix @ numpy.frombuffer(query, numpy.float32), held.starts)
        similar = best[[number for _, number in live]]
        order = numpy.argsort(-similar, kind="stable")
        paths = [live[place][0] for place in order.tolist()]
        return Near(list(zip(paths, similar[order].tolist(), strict=True)), len(pages) - len(live))

    def put(self, pages: Iterable[PageVectors]) -> None:
        """Append pages, which then count; those without vectors count no more.

        Vectors of another dimension, or a file that does not count, start a new file. OSError (a full disk) leaves what
        is whole.
        """
        records = list(pages)
        sizes = {len(vector) for page in records for vector in page.vectors}
        if len(sizes) > 1:
            raise ValueError(f"vectors of several sizes: {sorted(sizes)}")
        held = self._look()
        if sizes and (held is None or sizes != {held.dimension}):
            held = self._begin(sizes.pop(), ())
        if held is None:
            return  # nothing is known, and nothing is told but what is gone
        data = b"".join(map(_record, records))
        with self._file.open("r+b") as file:
            file.truncate(held.end)
            file.seek(held.end)
            file.write(data)

    def clear(self) -> None:
        """Forget all vectors."""
        remove(self._file)

    def compact(self) -> bool:
        """Write the file anew without what counts no more, when that is the most of it; whether it did."""
        held = self._look()
        if held is None or sum(held.counts) - held.alive <= max(held.alive, _DEAD):
            return False
        self._held = None  # read again with all data
        held = self._look()
        if held is None:
            return False
        told = [(path, held.revisions[n], held.counts[n], held.data[n]) for path, n in held.last.items()]
        self._begin(held.dimension, (_packed(*each) for each in told))
        return True

    def _begin(self, dimension: int, records: Iterable[bytes]) -> _Held:
        """Put a new file in the old one's place."""
        make_folder(self.folder, mode=0o700)
        self.folder.chmod(0o700)
        # The number tells a reader that this is another file, also where the system gives it the old one's inode.
        told = {**self._told, "texts": TEXTS, "dimension": dimension, "number": secrets.token_hex(8)}
        write_private(self._file, b"".join((f"{_MARK} {FORMAT} {json.dumps(told)}\n".encode(), *records)))
        held = self._look()
        if held is None:
            raise OSError(f"{self._file}: what was written cannot be read")
        return held

    def _look(self) -> _Held | None:
        """What the file says by now; None, with the doubt, when there is none that counts."""
        held, self._held, self._doubt = self._held, None, ""
        try:
            with self._file.open("rb") as file:
                head = file.readline(_MOST_HEADER)
                if held is None or held.head != head or os.fstat(file.fileno()).st_size < held.end:
                    dimension = self._dimension_in(head)
                    if not dimension:
                        return None
                    held = _Held(head, dimension, len(head))
                file.seek(held.end)
                _read(held, file.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            self._doubt = f"they cannot be read ({error.strerror})"
            return None
        self._held = held
        return held

    def _dimension_in(self, head: bytes) -> int:
        """The dimension that the first line of a file tells; 0, with the doubt, when the file does not count."""
        try:
            mark, number, text = head.decode().split(" ", 2)
            told = json.loads(text)
            dimension, names = int(told["dimension"]), {name: str(told[name]) for name in self._told}
            same = (mark, number, told["texts"]) == (_MARK, str(FORMAT), TEXTS)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            same = False
        if not same:
            self._doubt = "the file is of another format"
            return 0
        for name, value in self._told.items():
            if names[name] != value:
                self._doubt = f"they were made for another {name} ({names[name]})"
                return 0
        if dimension < 1 or self._kind.dimension not in (0, dimension):
            self._doubt = f"they have another dimension ({dimension})"
            return 0
        return dimension


def _read(held: _Held, data: bytes) -> None:
    """Take in the whole records of bytes that begin where the whole ones ended."""
    place = 0
    while place + _FRAME.size <= len(data):
        size, crc = _FRAME.unpack_from(data, place)
        body = data[place + _FRAME.size : place + _FRAME.size + size]
        if len(body) != size or size < _HEAD.size or zlib.crc32(body) != crc:
            break
        path_size, revision_size, count = _HEAD.unpack_from(body)
        middle = _HEAD.size + path_size
        path, revision = os.fsdecode(body[_HEAD.size : middle]), os.fsdecode(body[middle : middle + revision_size])
        numbers = body[middle + revision_size :]
        if len(numbers) != 2 * count * held.dimension:
            break
        held.last.pop(path, None)
        if count:
            held.last[path] = len(held.counts)
            held.revisions.append(revision)
            held.counts.append(count)
            held.data.append(numbers)
        place += _FRAME.size + size
    held.end += place


def _fill(held: _Held, numpy: Any) -> None:
    """Bring the matrix up to what was read."""
    if not held.data:
        return
    new = numpy.frombuffer(b"".join(held.data), "<f2").astype(numpy.float32).reshape(-1, held.dimension)
    held.matrix = new if held.matrix is None else numpy.concatenate((held.matrix, new))
    held.starts = numpy.cumsum([0, *held.counts[:-1]])
    held.data.clear()


def _record(page: PageVectors) -> bytes:
    """A page as it is appended."""
    numbers = b"".join(struct.pack(f"<{len(vector)}e", *vector) for vector in page.vectors)
    return _packed(page.path, page.revision, len(page.vectors), numbers)


def _packed(path: str, revision: str, count: int, numbers: bytes) -> bytes:
    """A record with its sum."""
    name, told = os.fsencode(path), os.fsencode(revision)
    body = b"".join((_HEAD.pack(len(name), len(told), count), name, told, numbers))
    return _FRAME.pack(len(body), zlib.crc32(body)) + body


def _numpy() -> Any:
    """numpy, from the extra."""
    try:
        import numpy
    except ImportError:
        raise UsageError(MISSING) from None
    return numpy
