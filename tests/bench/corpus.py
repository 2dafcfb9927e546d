"""A vault of made-up notes, and questions to ask of it: the same in every run.

Words fall as they do in prose: a hundred English stop words first, then by Zipf's law some tens of thousands of words
of our own making, with English endings, and every tenth a name as it stands in code, a path, a version or an error's
number. About 250 words a page, under headings, in paragraphs, lists and code, with tags and links.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from vaultd.core.query import STOP_WORDS

__all__ = ["PROJECTS", "Corpus"]

VOCABULARY = 40_000
PROJECTS = 7
_FIRST = [*"bcdfghklmnprstvw", "br", "cl", "dr", "fl", "gr", "pl", "pr", "sh", "sp", "st", "tr"]
_VOWELS = [*"aeiou", "ai", "ea", "ou"]
_LAST = ["", "", "", "n", "r", "s", "t", "l", "m", "ck", "nd", "st"]
_ENDINGS = ["", "", "", "", "s", "ed", "ing", "er", "ation", "ly"]


class Corpus:
    """Pages by number, and words drawn from them."""

    def __init__(self, words: int = 250) -> None:
        """`words`: of a page, about."""
        self._words = words
        chance = random.Random(7)
        made: dict[str, None] = dict.fromkeys(sorted(STOP_WORDS, key=lambda word: (len(word), word)))
        plain: list[str] = []
        while len(made) < VOCABULARY:
            if len(plain) > 100 and chance.random() < 0.1:
                made[_name(chance, plain)] = None
                continue
            stem = "".join(
                chance.choice(_FIRST) + chance.choice(_VOWELS) + chance.choice(_LAST)
                for _ in range(chance.choice((1, 2, 2, 3)))
            )
            plain.append(stem)
            made[stem + chance.choice(_ENDINGS)] = None
        self._vocabulary = list(made)
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))

    def path(self, number: int) -> str:
        """A page's path in the vault."""
        return f"projects/p{number % PROJECTS}/notes/n{number:06}.md"

    def title(self, number: int) -> str:
        """A page's title."""
        return " ".join(self._draw(random.Random(f"title {number}"), 5)).capitalize()

    def body(self, number: int) -> str:
        """A page's text below its frontmatter."""
        chance = random.Random(f"body {number}")
        parts = [f"# {self.title(number)}"]
        left = self._words
        while left > 0:
            kind = chance.choice(("prose", "prose", "prose", "list", "code", "heading"))
            if kind == "heading":
                parts.append("## " + " ".join(self._draw(chance, 3)))
                left -= 3
            elif kind == "code":
                rows = (f"{a}({b}, {c!r})" for a, b, c in (self._draw(chance, 3) for _ in range(3)))
                parts.append("```python\n" + "\n".join(rows) + "\n```")
                left -= 9
            elif kind == "list":
                parts.append("\n".join("- " + " ".join(self._draw(chance, 8)) for _ in range(4)))
                left -= 32
            else:
                words = self._draw(chance, 60)
                parts.append(" ".join(words[:30]) + f" [[{self._other(chance)}]] " + " ".join(words[30:]) + ".")
                left -= 60
        return "\n\n".join(parts) + "\n"

    def page(self, number: int) -> str:
        """A page as it lies on disk."""
        chance = random.Random(f"tags {number}")
        tags = ", ".join(chance.sample(["parser", "retry", "cache", "release", "testing", "windows"], 2))
        day = f"2026-{1 + number % 12:02}-{1 + number % 28:02}"
        return f"---\ntags: [{tags}]\nupdated: {day}\n---\n{self.body(number)}"

    def write(self, vault: Path, numbers: range) -> None:
        """Put pages on disk."""
        for number in numbers:
            path = vault / self.path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.page(number), "utf-8")

    def questions(self, pages: int, count: int) -> list[str]:
        """Half of two to five words, half of eight to ten, each of one page's own, frequent and rare ones alike. No
        stop words: not every search leaves those out.
        """
        chance = random.Random(11)
        asked = []
        for number in range(count):
            size = chance.randint(2, 5) if number % 2 == 0 else chance.randint(8, 10)
            words = sorted(set(self.body(chance.randrange(pages)).split()) - STOP_WORDS)
            asked.append(" ".join(chance.sample([word for word in words if word.strip("#-`.[]()")], size)))
        return asked

    def _draw(self, chance: random.Random, count: int) -> Sequence[str]:
        """Words by their frequency."""
        total = self._weights[-1]
        return [self._vocabulary[bisect(self._weights, chance.random() * total)] for _ in range(count)]

    def _other(self, chance: random.Random) -> str:
        """The name of some page."""
        return f"n{chance.randrange(10_000):06}"


def _name(chance: random.Random, plain: Sequence[str]) -> str:
    """A name as it stands in code and its messages."""
    one, two, three = chance.choices(plain, k=3)
    return chance.choice(list(_names(one, two, three, chance.randrange(1000))))


def _names(one: str, two: str, three: str, number: int) -> Iterator[str]:
    """The ways to make a name of three words and a number."""
    yield one + two.title()
    yield f"{one}_{two}"
    yield f"{one}-{two}"
    yield f"src/{one}/{two}_{three}.py"
    yield f"{one}.{two}"
    yield f"E{number:04}"
    yield f"v{number % 10}.{number // 10 % 10}.{number // 100}"
