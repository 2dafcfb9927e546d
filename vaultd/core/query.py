"""What is searched for: text cut into the terms that an index keeps, the same way for pages and for queries.

Engineering notes hold names, not only words, so a name is kept whole and in parts:

    XMLHttpRequest                      xmlhttprequest, xml, http, request
    MAX_RETRY_COUNT, max-retry-count    maxretrycount, max, retry, count
    src/core/file.py:12                 src/core/file.py, core/file.py, src, core, file.py, file, py, 12
    v2.7.4                              v2.7.4, 2.7.4, 2.7
    E0308, C++, #12                     e0308 and 0308, c++, #12 and 12

Accents are folded (café = cafe), compatibility forms too (ＵＴＦ = UTF). English words lose their inflection by a
stemmer that is timid on purpose; what is no plain word (digits, other scripts) stays as it is. Chinese, Japanese,
Korean and the other scripts without spaces become single characters and pairs, so that any two neighbouring
characters are found; a gap of up to two spaces or marks between them does not count.

One analysis serves both sides, so a term of a query is a term of a page. Nothing here raises on any text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["ANALYSIS", "STOP_FORMS", "STOP_WORDS", "fold", "halves", "places", "stem", "terms", "tokens"]

ANALYSIS = 1
"""Number of this analysis: to be raised with every change of what `tokens` gives, so that an index is built anew."""

LONGEST = 128
"""Characters kept of one term; longer ones are cut, in pages and queries alike."""

TAILS = 6
"""How many tails of a path are terms of their own."""

_STOP_WORDS = """
    a about after all also am an and any are as at be because been before being but by can could did do does doing
    during each for from had has have having he her here hers him his how i if in into is it its just let me might
    more most my no nor not of off on once only or other our out over own same shall she should so some such than
    that the their theirs them then there these they this those through to too under until up us very was we were
    what when where which while who whom why will with would yet you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that say nothing in a query; they count only in a query of nothing else."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3040-\u30fa\u30fc-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
"""Scripts without spaces between words, and Hangul, whose words are long compounds: found by any two characters."""

_SIGNS = "\u0900-\u0963\u0970-\u0dff\u0f00-\u0fff"
"""Indic and Tibetan blocks: their vowel signs belong to the word around them but are no letters to `re`."""

_MARKS = ".:/\\@'+#&-"
"""What may stand inside a name, besides letters, digits and the underscore."""

_CLASS = re.escape(_MARKS)
_ASCII = re.compile(rf"[\w{_CLASS}]+", re.ASCII)
_ANY = re.compile(
    rf"(?P<run>[{_UNSPACED}](?:[^\w{_SIGNS}{_UNSPACED}]{{0,2}}[{_UNSPACED}])*)"
    rf"|(?:[^\W{_UNSPACED}]|[{_SIGNS}{_CLASS}])+"
)
_SPACED = re.compile(r"\S+")
_PLACED = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_PLAIN_WORD = re.compile(r"([A-Za-z]?[a-z]+)[.:/@'&-]*").fullmatch
_IS_RUN = re.compile(rf"[{_UNSPACED}]").match
_GAP = re.compile(rf"[^{_UNSPACED}]+")
_PLACE = re.compile(r":(\d+)(?::(\d+))?\Z")
_LANGUAGE = re.compile(r"[A-Za-z]\+\+\Z|\A[A-Za-z]#\Z")
_ATOM = re.compile(rf"[A-Za-z]{{1,8}}\+\+|[A-Za-z]#(?!\w)|[\w.{_SIGNS}-]+")
_PIECE = re.compile(r"[vV]?\d+(?:\.\d+)+(?!\w)|[^.]+")
_NUMBERS = re.compile(r"[vV]?(?P<two>\d+\.\d+)(?:\.\d+)*\Z")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CAPITALS = re.compile(r"[A-Z]+s?\Z")


def tokens(text: str) -> list[str]:
    """The terms of a page's text, in its order, each as often as it occurs."""
    found: list[str] = []
    chunks = _chunks(text)
    if text.isascii():
        for chunk in chunks:
            found += _short_forms(chunk) if len(chunk) <= LONGEST else _analyse(chunk)
        return found
    for chunk in chunks:
        if _IS_RUN(chunk):
            found.extend(chunk)
            found.extend(_pairs(chunk))
        else:
            found.extend(_forms(chunk))
    return found


def terms(query: str) -> list[str]:
    """The terms of a query, each once; empty when it holds no letter and no digit.

    Stop words are left out unless there is nothing else. Two or three neighbouring words also count as one name
    ("type error" is TypeError too). Of a script without spaces pairs are asked for, a lone character as it is.
    """
    chunks = _chunks(query)
    found: dict[str, None] = {}
    for chunk in chunks:
        found.update(dict.fromkeys((_pairs(chunk) or chunk) if _IS_RUN(chunk) else _forms(chunk)))
    telling = {term: None for term in found if term not in STOP_FORMS}
    if not telling:
        return list(found)
    for size in (2, 3):
        for start in range(len(chunks) - size + 1):
            words = chunks[start : start + size]
            if all(word.isascii() and word.isalnum() for word in words):
                telling.setdefault(_canonical("".join(words)))
    return list(telling)


def places(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each word of a text begins and ends, and what its terms are made of: the word, or of a script without
    spaces the character with the next one.
    """
    if text.isascii():
        for match in _SPACED.finditer(text):
            yield match.start(), match.end(), match.group()
        return
    for match in _PLACED.finditer(text):
        start, end = match.span()
        word = match.group()
        yield start, end, text[start : end + 1] if _IS_RUN(word) else word


def halves(term: str) -> Iterator[tuple[str, str]]:
    """The ways to read a term as two plain words of at least three letters run together."""
    if term.isascii() and term.isalpha():
        for cut in range(3, len(term) - 2):
            yield stem(term[:cut]), term[cut:]


def fold(text: str) -> str:
    """Text without accents and compatibility forms, its case kept; lone surrogates become spaces."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text).translate(_FOLDS)


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """A lower-case English word without plural, -ing, -ed, -ion of -ation and final e; short words as they are.

    Timid on purpose: names in code must not run together, and it gives most of what Porter's stemmer gives.
    """
    if len(word) < 4:
        return word
    if word.endswith(("ies", "ied")) and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    root = word.removesuffix("ing") if word.endswith("ing") else word.removesuffix("ed")
    if root != word and len(root) >= 3 and any(vowel in root for vowel in "aeiouy"):
        doubled = root[-1] == root[-2] and root[-1] not in "lszaeiou"
        word = root[:-1] if doubled else root
    if len(word) > 7 and word.endswith("ation"):
        word = word[:-3]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def _chunks(text: str) -> list[str]:
    """The names, words and unspaced runs of a text; a run comes without what stood between its characters."""
    text = fold(text)
    if text.isascii():
        return _ASCII.findall(text)
    return [_GAP.sub("", match.group()) if match.lastgroup else match.group() for match in _ANY.finditer(text)]


def _pairs(run: str) -> list[str]:
    """The neighbouring pairs of a run; none when it is one character."""
    return [run[i : i + 2] for i in range(len(run) - 1)]


def _forms(chunk: str) -> tuple[str, ...]:
    """The terms of a name or word, each once, the whole ones first."""
    return _short_forms(chunk) if len(chunk) <= LONGEST else tuple(_analyse(chunk))


@lru_cache(maxsize=1 << 15)
def _short_forms(chunk: str) -> tuple[str, ...]:
    """`_forms` of what is short enough to be remembered."""
    plain = _PLAIN_WORD(chunk)
    return (stem(plain[1].lower()),) if plain else tuple(_analyse(chunk))  # the same, and most words are plain


def _analyse(chunk: str) -> dict[str, None]:
    """The terms of a name: its path's tails, what stands between slashes whole and in parts, numbers after colons."""
    found: dict[str, None] = {}
    name = chunk.replace("\\", "/").rstrip(".:/@'&-")
    place = _PLACE.search(name)
    if place and place.start():
        if name[: place.start()].replace(".", "").isdigit():
            _add(found, name)  # a time, or an address with its port
        name = name[: place.start()]
    segments = [segment for segment in map(_bare, name.split("/")) if segment]
    for start in range(max(0, len(segments) - TAILS), len(segments) - 1):
        _add(found, "/".join(segments[start:]))
    for segment in segments:
        _segment(found, segment)
    for number in place.groups() if place else ():
        _add(found, number or "")
    return found


def _bare(segment: str) -> str:
    """A part of a path without the marks around it, except a single leading dot or hash, `++`, and the hash of C#.

    Empty when it holds no letter and no digit.
    """
    core = segment.lstrip(_MARKS)
    lead = segment[: len(segment) - len(core)]
    core = core.rstrip(".:@'&-")
    if not _LANGUAGE.search(core):
        core = core.rstrip(_MARKS)
    if not any(char.isalnum() for char in core):
        return ""
    return lead + core if lead in (".", "#") else core


def _segment(found: dict[str, None], segment: str) -> None:
    """Add what stands between two slashes: whole, and its words."""
    segment = segment.removesuffix("'s").replace("'", "")
    _add(found, segment)
    for atom in _ATOM.findall(segment):
        _add(found, atom)
        for piece in () if atom[-1] in "+#" else _PIECE.findall(atom):
            numbers = _NUMBERS.match(piece)
            if numbers:
                _add(found, piece.lstrip("vV"))
                _add(found, numbers["two"])
                continue
            _add(found, piece)
            for word in piece.replace("_", "-").split("-"):
                _word(found, word)


def _word(found: dict[str, None], word: str) -> None:
    """Add a word and the humps of a camel-case one; single letters among them say nothing."""
    _add(found, word)
    humps = _HUMP.findall(word) if word.isascii() and not _CAPITALS.match(word) else ()
    if 1 < len(humps) <= 6:
        for hump in humps:
            if len(hump) > 1 or hump.isdigit():
                _add(found, hump)


def _add(found: dict[str, None], form: str) -> None:
    """Add a form in its canonical spelling, unless no letter or digit is left of it."""
    canonical = _canonical(form)
    if canonical:
        found[canonical] = None


def _canonical(form: str) -> str:
    """One spelling for all ways to write a name: no case, no hyphens and underscores between its words."""
    plain = form.replace("-", "").replace("_", "").casefold()[:LONGEST]
    return stem(plain) if plain.isascii() and plain.isalpha() else plain


class _Folds(dict[int, str | None]):
    """What `fold` makes of each character that is not ASCII, worked out when it is first met."""

    def __missing__(self, code: int) -> str | None:
        self[code] = folded = _folded(chr(code))
        return folded


def _folded(char: str) -> str | None:
    """The base letter of an accented Latin, Greek or Cyrillic one; None for a mark that is dropped."""
    category = unicodedata.category(char)
    if category == "Cs" or char == "\u200b":
        return " "
    if category == "Cf" or (category == "Mn" and not "\u0900" <= char <= "\u1fff"):
        return None
    if char < "\u0530" or "\u1e00" <= char <= "\u1fff":
        return unicodedata.normalize("NFD", char)[0]
    return char


_PLAIN = {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "TH", "’": "'"}
_PLAIN |= dict(zip("øØłŁđĐðÐıħĦ", "oOlLdDdDihH", strict=True))
_FOLDS = _Folds({ord(char): plain for char, plain in _PLAIN.items()})
STOP_FORMS = frozenset(map(stem, STOP_WORDS))
"""The terms of these words."""
