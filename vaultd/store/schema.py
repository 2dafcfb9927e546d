"""How a page lies in the whoosh index: its fields. What a posting of a term holds is codec.py's."""

from __future__ import annotations

from whoosh.analysis import IDTokenizer
from whoosh.fields import ID, KEYWORD, STORED, TEXT, Schema

__all__ = ["FORMAT", "SCHEMA"]

FORMAT = 3
"""Number of the layout of the folder, of the whoosh fields and of their postings."""

SCHEMA = Schema(path=ID(), text=TEXT(phrase=False, analyzer=IDTokenizer()), facts=KEYWORD(), page=STORED())
"""One field for all the words of a page, so that the score of a word is one score."""
