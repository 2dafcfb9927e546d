"""A part of a page: what an anchor names, or some of its lines."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence

from vaultd.core import markup
from vaultd.core.obsidian import outline
from vaultd.core.outline import Heading
from vaultd.core.passages import BLOCK_ID, lines_of, spans

__all__ = ["lines_named", "section"]

_RANGE = re.compile(r"\s*(\d{1,7})\s*(?:[-:]\s*(\d{1,7})\s*)?\Z")
_UNSAID = re.compile(r"[\W_]+")


def section(body: str, anchor: str) -> range | None:
    """The lines from 0 that an anchor names; None when it names nothing there.

    `#Heading` is from that heading to the next one of its level or above; `#A#B` the B below A; `#^id` the passage that
    ends with this block id, and the one on either side of it between the same headings. A `#` in front may be missing;
    in headings neither case nor marks count, unless there is nothing else in them. Of several that fit the first.
    """
    lines = lines_of(body)
    name = anchor.strip().removeprefix("#")
    if name.startswith("^"):
        seen = outline(body)
        return _around(lines, name[1:], seen.verbatim, [heading.line for heading in seen.headings])
    headings = outline(body).headings
    exact = next((heading for heading in headings if heading.text == markup.fold(name)), None)  # "C# at work" is one
    found = exact or _below(headings, [*map(_plain, name.split("#"))]) or _below(headings, [_plain(name)])
    return range(found.line, _end(headings, found, len(lines))) if found else None


def lines_named(text: str, count: int) -> range | None:
    """The lines from 0 of `12` or `12-40`, which count from 1, as far as a page of so many lines has them.

    None for what is no such range or lies behind the end.
    """
    found = _RANGE.match(text)
    if found is None:
        return None
    first, last = int(found[1]), int(found[2] or found[1])
    return range(first - 1, min(last, count)) if 1 <= first <= min(last, count) else None


def _around(lines: Sequence[str], block: str, verbatim: Collection[int], headings: Sequence[int]) -> range | None:
    """The passage with a block id, between its neighbours."""
    parts = spans(lines)
    for place, part in enumerate(parts):
        for number in part:
            found = BLOCK_ID.search(lines[number]) if number not in verbatim else None
            if found is None or found["id"] != block:
                continue
            first = max((line for line in headings if line <= number), default=0)
            last = min((line for line in headings if line > number), default=len(lines))
            around = range(parts[max(0, place - 1)].start, parts[min(len(parts) - 1, place + 1)].stop)
            return range(max(first, around.start), min(last, around.stop))
    return None


def _below(headings: Sequence[Heading], names: Sequence[str]) -> Heading | None:
    """The first heading of the last of these names that stands below one of the name before, and so on."""
    above: list[tuple[int, int]] = []  # the levels of those around a heading, and how many names are met down to each
    for heading in headings if all(names) else ():
        while above and above[-1][0] >= heading.level:
            above.pop()
        met = above[-1][1] if above else 0
        met += _plain(heading.text) == names[met]
        if met == len(names):
            return heading
        above.append((heading.level, met))
    return None


def _end(headings: Sequence[Heading], heading: Heading, end: int) -> int:
    """Where a heading's section ends."""
    return min((h.line for h in headings if heading.line < h.line < end and h.level <= heading.level), default=end)


def _plain(text: str) -> str:
    """A heading as anchors are compared."""
    told = unicodedata.normalize("NFC", markup.fold(text)).casefold()
    return " ".join(_UNSAID.sub(" ", told).split()) or told
