"""How a page lies in the whoosh index: its fields. What a posting of a term holds is codec.py's."""

from __future__ import annotations

from whoosh.analysis import IDTokenizer
from whoosh.columns import PickleColumn, VarBytesColumn
from whoosh.fields import COLUMN, ID, KEYWORD, STORED, TEXT, Schema

__all__ = ["FORMAT", "SCHEMA"]

FORMAT = 4
"""Number of the layout of the folder, of the whoosh fields and of their postings."""

SCHEMA = Schema(
    path=ID(),
    text=TEXT(phrase=False, analyzer=IDTokenizer()),  # all the words of a page, so that the score of a word is one
    facts=KEYWORD(),
    page=STORED(),
    state=COLUMN(PickleColumn(VarBytesColumn())),  # of all pages it is read whenever an index is opened to be followed
)
"""The fields."""
