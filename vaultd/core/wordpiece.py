"""Text cut into the pieces of words that models of the BERT family know (its uncased form).

Words are runs between spaces and punctuation, in small letters and without accents; each is cut, from its start, into
the longest pieces that the vocabulary has. A word that cannot be cut so is one unknown piece.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Pieces"]

_START, _END, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_LONGEST = 100  # characters of a word that is looked at; the published vocabulary was made with this bound

# The blocks of Chinese characters that the vocabulary was made with; each character is a word.
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


class Pieces:
    """A vocabulary: one piece a line, its number is the line's. ValueError when the marks are missing from it."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._numbers: Mapping[str, int] = {line.rstrip("\n"): number for number, line in enumerate(lines)}
        if not {_START, _END, _UNKNOWN} <= self._numbers.keys():
            raise ValueError("this is no vocabulary of word pieces")

    def numbers(self, text: str, most: int) -> list[int]:
        """The numbers of a text's pieces between the marks for start and end, `most` of them with the marks."""
        found = [self._numbers[_START]]
        for word in _words(text):
            found += self._cut(word)
            if len(found) >= most - 1:
                break
        return [*found[: most - 1], self._numbers[_END]]

    def _cut(self, word: str) -> list[int]:
        """The pieces of one word."""
        unknown = [self._numbers[_UNKNOWN]]
        if len(word) > _LONGEST:
            return unknown
        found, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._numbers.get(mark + word[start:end])
                if number is not None:
                    break
            else:
                return unknown
            found.append(number)
            start = end
        return found


def _words(text: str) -> Iterator[str]:
    """The words of a text; a punctuation mark or a Chinese character is a word of its own."""
    word: list[str] = []
    for char in unicodedata.normalize("NFD", _plain(text).lower()):
        kind = unicodedata.category(char)
        if kind == "Mn":
            continue
        space = char.isspace()
        alone = not space and (_is_mark(char, kind) or _is_ideograph(char))
        if word and (space or alone):
            yield "".join(word)
            word = []
        if alone:
            yield char
        elif not space:
            word.append(char)
    if word:
        yield "".join(word)


def _plain(text: str) -> str:
    """A text without control characters."""
    if text.isascii() and text.isprintable():
        return text
    kept = (" " if c in "\t\n\r" else c for c in text if c in "\t\n\r" or unicodedata.category(c) not in _DROPPED)
    return "".join(c for c in kept if c not in "\0�")


_DROPPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def _is_mark(char: str, kind: str) -> bool:
    """Whether a character is punctuation; of ASCII all that is neither letter, digit nor space counts."""
    return kind.startswith("P") or (char.isascii() and not char.isalnum())


def _is_ideograph(char: str) -> bool:
    """Whether a character is a Chinese one."""
    return char >= "㐀" and any(first <= ord(char) <= last for first, last in _IDEOGRAPHS)
