"""A part of a page: what an anchor names, or some of its lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vaultd.core import markup
from vaultd.core.obsidian import outline
from vaultd.core.outline import Heading
from vaultd.core.passages import BLOCK_ID, lines_of, spans

__all__ = ["lines_named", "section"]

_RANGE = re.compile(r"\s*(\d{1,7})\s*(?:[-:]\s*(\d{1,7})\s*)?\Z")
_UNSAID = re.compile(r"[^\w]+")


def section(body: str, anchor: str) -> range | None:
    """The lines from 0 that an anchor names; None when it names nothing there.

    `#Heading` is from that heading to the next one of its level or above; `#A#B` the B below A; `#^id` the passage that
    ends with this block id, and the one on either side of it. A `#` in front may be missing; in headings neither case
    nor marks count.
    """
    lines = lines_of(body)
    name = anchor.strip().removeprefix("#")
    if name.startswith("^"):
        return _around(lines, name[1:])
    headings = outline(body).headings
    inside = range(len(lines))
    for wanted in map(_plain, name.split("#")):
        found = next((h for h in headings if h.line in inside and wanted and _plain(h.text) == wanted), None)
        if found is None:
            return None
        inside = range(found.line, _end(headings, found, inside.stop))
    return inside


def lines_named(text: str, count: int) -> range | None:
    """The lines from 0 of `12` or `12-40`, which count from 1, as far as a page of so many lines has them.

    None for what is no such range or lies behind the end.
    """
    found = _RANGE.match(text)
    if found is None:
        return None
    first, last = int(found[1]), int(found[2] or found[1])
    return range(first - 1, min(last, count)) if 1 <= first <= min(last, count) else None


def _around(lines: Sequence[str], block: str) -> range | None:
    """The passage with a block id, between its neighbours."""
    parts = spans(lines)
    for place, part in enumerate(parts):
        if any((found := BLOCK_ID.search(lines[number])) and found["id"] == block for number in part):
            return range(parts[max(0, place - 1)].start, parts[min(len(parts) - 1, place + 1)].stop)
    return None


def _end(headings: Sequence[Heading], heading: Heading, end: int) -> int:
    """Where a heading's section ends."""
    return min((h.line for h in headings if heading.line < h.line < end and h.level <= heading.level), default=end)


def _plain(text: str) -> str:
    """A heading as anchors are compared."""
    return " ".join(_UNSAID.sub(" ", markup.fold(text)).casefold().split())
