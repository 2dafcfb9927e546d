"""How a page lies in the whoosh index: its fields, and what a posting of a term holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whoosh.analysis import IDTokenizer
from whoosh.fields import ID, KEYWORD, STORED, TEXT, Schema
from whoosh.formats import Format

from vaultd.store import indexed
from vaultd.store.indexed import IndexDoc, Words

__all__ = ["FORMAT", "SCHEMA", "Placed", "fields"]

FORMAT = 2
"""Number of the layout of the folder and of the whoosh fields."""


_NOWHERE = indexed.packed((0, 0))  # not empty, since whoosh loses such a value


class Placed(Format):  # type: ignore[misc]  # whoosh has no types
    """Postings that say how much a term counts in a page, and in which passages it stands (`Words.places`, packed)."""

    posting_size = -1

    def word_values(self, value: Any, analyzer: Any, **kwargs: Any) -> Iterator[tuple[str, int, float, bytes]]:
        """What whoosh keeps of each term; `value` is a list with a page's `Words` in it."""
        words: Words = value[0]
        for term, weight in words.weights.items():
            yield term, weight, float(weight), words.places.get(term, _NOWHERE)


_TEXT = TEXT(phrase=False, analyzer=IDTokenizer())
_TEXT.format = Placed()
SCHEMA = Schema(path=ID(), text=_TEXT, facts=KEYWORD(), page=STORED())
"""One field for all the words of a page, so that the score of a word is one score."""


def fields(doc: IndexDoc) -> dict[str, Any]:
    """A page as whoosh is told of it."""
    words = indexed.words(doc)
    return {
        "path": indexed.key(doc.path),
        "text": [words],
        "facts": indexed.facts(doc),
        "page": indexed.record(doc, words.lengths),
    }
