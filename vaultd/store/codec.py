"""How whoosh writes and reads our segments: its own codec and writer, but for the postings.

whoosh sorts every posting by itself, and writes and reads a term's in pickled blocks, one by one; that took most of the
time of a build, and of a search that met a term for the first time. Here they go from memory to disk and back in whole
arrays (gathering.py). Terms, stored fields, lengths, tables of contents and files' names are whoosh's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from whoosh.codec.whoosh3 import W3Codec, W3FieldWriter, W3PerDocReader, W3TermInfo
from whoosh.matching import ListMatcher
from whoosh.writing import SegmentWriter

from vaultd.store import indexed
from vaultd.store.entries import IndexDoc
from vaultd.store.gathering import Gathered, Gathering, Listed, listed, packed

__all__ = ["Codec", "Writer", "postings"]


_KEPT = 2048  # pages of a segment; about 2 kB each


class Codec(W3Codec):  # type: ignore[misc]  # whoosh has no types
    """whoosh's codec with postings as `gathering.packed` has them. Segments name it: it may not move."""

    length_stats = False  # of the shortest and longest page with a term, which nobody asks for

    def field_writer(self, storage: Any, segment: Any) -> Any:
        """What writes terms and their postings."""
        return _FieldWriter(self, storage, segment)

    def per_document_reader(self, storage: Any, segment: Any) -> Any:
        """What reads stored fields and lengths."""
        return _Documents(storage, segment)

    def postings_reader(self, dbfile: Any, terminfo: Any, format_: Any, term: Any = None, scorer: Any = None) -> Any:
        """The postings of a term, as whoosh's own searches and merges want them."""
        offset, size = terminfo.extent()
        size = size[0] if isinstance(size, tuple) else size  # as whoosh reads back what it wrote as a number
        found = listed(dbfile.get(offset, size), terminfo.doc_frequency())
        return _Matcher(found, format_, scorer, term, terminfo)


class _Matcher(ListMatcher):  # type: ignore[misc]  # whoosh has no types
    """whoosh's matcher over a list that is in memory, which is kept beside it."""

    def __init__(self, found: Listed, format_: Any, scorer: Any, term: Any, terminfo: Any) -> None:
        super().__init__(found.docs, found.weights, None, format_, scorer, term=term, terminfo=terminfo)
        self.listed = found


class _Documents(W3PerDocReader):  # type: ignore[misc]  # whoosh has no types
    """Keeps the stored fields of the pages that were asked for lately; a segment's never change."""

    def __init__(self, storage: Any, segment: Any) -> None:
        super().__init__(storage, segment)
        self.stored_fields = lru_cache(_KEPT)(super().stored_fields)


class _FieldWriter(W3FieldWriter):  # type: ignore[misc]  # whoosh has no types
    """Takes what a `Gathering` gives."""

    def add_postings(self, schema: Any, lengths: Any, items: Iterable[tuple[str, str, Gathered]]) -> None:
        """Write all terms and their postings; what whoosh calls when a segment is finished."""
        last = None
        offset = self._postfile.tell()
        for field, term, gathered in items:
            if field != last:
                if last is not None:
                    self.finish_field()
                self.start_field(field, schema[field])
                prefix, last = self._fieldid.to_bytes(2, "big"), field  # as whoosh's reader of terms has it
            data = packed(gathered)
            self._postfile.write(data)
            weights: Any = gathered[1::3]
            info = W3TermInfo(sum(weights), len(weights), maxweight=max(weights), minid=gathered[0], maxid=gathered[-3])
            info.set_extent(offset, len(data))
            offset += len(data)
            self._tindex.add(prefix + term.encode(), info.to_bytes())
        if last is not None:
            self.finish_field()


class Writer(SegmentWriter):  # type: ignore[misc]  # whoosh has no types
    """Writes a segment of pages. `room`: bytes of memory that their postings take, about."""

    def __init__(self, index: Any, room: int, **how: Any) -> None:
        """`how`: as whoosh's writer has it. LockError when another writer does not end."""
        super().__init__(index, codec=Codec(), **how)
        self.pool = Gathering(Path(os.fspath(self.storage.folder)), room)

    def add(self, doc: IndexDoc) -> None:
        """Bring a page in."""
        words, number, page = indexed.words(doc), self.docnum, self.perdocwriter
        self.pool.add("facts", number, dict.fromkeys(indexed.facts(doc), 1), {})
        self.pool.add("path", number, {indexed.key(doc.path): 1}, {})
        self.pool.add("text", number, words.weights, words.places)
        page.start_doc(number)
        page.add_field("page", self.schema["page"], indexed.record(doc, words.lengths), 0)
        page.add_column_value("state", self.schema["state"].column_type, indexed.state(doc))
        page.add_field("text", self.schema["text"], None, sum(words.weights.values()))
        page.finish_doc()
        self._added = True
        self.docnum += 1

    def add_postings_to_pool(self, reader: Any, startdoc: int, docmap: Mapping[int, int] | None) -> None:
        """Take over the postings of a segment that is merged; `docmap` has the new numbers of the pages left in it."""
        for field, term in reader.all_terms():
            found: Iterable[tuple[int, int, bytes]] = postings(reader, field, term)
            if docmap is None:
                moved = ((startdoc + doc, weight, value) for doc, weight, value in found)
            else:
                moved = ((docmap[doc], weight, value) for doc, weight, value in found if doc in docmap)
            self.pool.add_term(field, term.decode(), moved)


def postings(reader: Any, field: str, term: str | bytes) -> Listed:
    """What an open segment holds of a term that it has, deleted pages included."""
    matcher = reader.postings(field, term)
    found: Listed = getattr(matcher, "child", matcher).listed  # the child: behind a filter of deleted pages
    return found
