"""Strings to look for in pages that no index knows, so that few of them need be read.

A page that holds a term of a query (`query.terms`) holds one of its strings, mostly: a stemmer cuts off ends, so what
it leaves stands in the page as it is. Not found so are names written together in the query and apart in the page, and
accents that only the page has.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from vaultd.core import query, when

__all__ = ["sought"]

_LONG = 4  # characters; shorter parts of a name stand in too many words to tell anything
_MOST = 8
_DAYS = 120  # names of days, months and years of a time in words
_AROUND = re.compile(r"\A\W+|(?::\d+){0,2}\W*\Z")  # of a name: marks, and the line that a path ends with
_PLAIN = re.compile(r"[A-Za-z0-9]{3,}")


def sought(text: str, now: datetime) -> list[tuple[str, ...]]:
    """What to look for, at most nine things, each in one or several spellings: the time that the query names (as days,
    months and years), then its words, the longest first. The case of a to z does not count. Empty for no word.
    """
    span = when.span(text, now)
    words = span.rest if span is not None else text
    asked = frozenset(query.terms(words))
    found: dict[tuple[str, ...], None] = {}
    for _, _, word in query.places(words):
        found.update(dict.fromkeys(_plain(word, asked) if word.isascii() else _spelled(word)))
    longest = sorted(found, key=lambda spellings: -len(spellings[0]))
    telling = [spellings for spellings in longest if len(spellings[0]) > 1] or longest
    return [*([tuple(islice(span.names(), _DAYS))] if span is not None else []), *telling[:_MOST]]


def _plain(word: str, asked: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """A name as it is, and those of its parts that have no other in them: who has a longer one has these, too."""
    forms = [form for form in query.tokens(word) if form in asked]
    whole = _AROUND.sub("", word[: query.LONGEST]).lower()
    if len(forms) > 1 and whole.isprintable():
        yield (whole,)
    forms = [form for form in forms if len(form) >= _LONG] or forms
    for form in forms:
        if not any(other != form and other in form for other in forms):
            yield (form, f"{form[:-1]}ie") if form.isalpha() and form.endswith("y") else (form,)


def _spelled(word: str) -> Iterator[tuple[str, ...]]:
    """A word with other letters than a to z: its longest part without them, else the ways to write it."""
    for part in re.findall(r"\w+", word):
        plain = max(_PLAIN.findall(part), key=len, default="")
        if plain and query.fold(part).isascii():
            yield (plain,)
            continue
        forms = [part, unicodedata.normalize("NFC", part), unicodedata.normalize("NFD", part), *query.terms(part)]
        spellings = (s for form in forms for s in (form, form.lower(), form.capitalize(), form.upper()))
        yield tuple(dict.fromkeys(spellings))
