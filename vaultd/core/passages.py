"""A page cut into passages: the parts that answer a question by themselves, in lines as they stand.

A passage is a paragraph or two, some lines of a list, a piece of code, or one line with a block id (a turn of a
conversation). Headings begin one, block ids end one, blank lines end one that is long enough.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["BLOCK_ID", "MOST_WORDS", "lines_of", "passages", "spans"]

MOST_WORDS = 120
"""Words of a passage, unless a single line has more. Of 120, 200 and 400 none ranked pages better than another on five
outside sets (tests/bench/retrieval.py); these are the shortest to read."""

BLOCK_ID = re.compile(r"(?:^|\s)\^(?P<id>[A-Za-z0-9-]+)\s*\Z")
"""A block id, as Obsidian has it, at the end of a line."""

_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_FENCE = re.compile(r"\s*(?:```|~~~)")


def passages(body: str) -> list[str]:
    """The texts of a body's passages in their order; every line that is not blank is in one of them."""
    lines = lines_of(body)
    return ["\n".join(lines[span.start : span.stop]) for span in spans(lines)]


def lines_of(body: str) -> list[str]:
    """The lines of a body, whatever ends them."""
    return body.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def spans(lines: Sequence[str]) -> list[range]:
    """The numbers from 0 of each passage's lines, without blank ones at its ends."""
    found: list[range] = []
    first, words, fenced = 0, 0, False

    def cut(end: int) -> None:
        nonlocal first, words
        start, stop = first, end
        while start < stop and not lines[start].strip():
            start += 1
        while start < stop and not lines[stop - 1].strip():
            stop -= 1
        if start < stop:
            found.append(range(start, stop))
        first, words = end, 0

    for number, line in enumerate(lines):
        count = len(line.split())
        if not count:
            if words >= MOST_WORDS // 2:
                cut(number)
            continue
        # A look for a character that each needs takes less time than the expression, and few lines have one.
        if ("`" in line or "~" in line) and _FENCE.match(line):
            fenced = not fenced
        if (not fenced and line[0] == "#" and _HEADING.match(line)) or (words and words + count > MOST_WORDS):
            cut(number)
        words += count
        if not fenced and "^" in line and BLOCK_ID.search(line):
            cut(number + 1)
    cut(len(lines))
    return found
