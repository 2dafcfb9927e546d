"""Sections of a page, cut to a number of bytes by what matters most.

Nothing is cut inside a line here: an entry is in or out, and a list says how many are out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vaultd.core.markup import size

__all__ = ["Section", "capped", "fit", "written"]

_MORE_BYTES = 32  # "- … 12345 more left out" and its line end


@dataclass(frozen=True, slots=True)
class Section:
    """A titled list. `items` are Markdown in display order, each perhaps of several lines.

    `rank`: lower is kept first. `floor`: so many entries go in before any section gets more than its floor; what a
    `patient` section has beyond that waits for all others. `most`: more never go in. `keep` says which entries stay
    when not all do: `first`, `last` or `ends` (first and last); `wanted` says it by index, the most wanted first.
    """

    title: str
    items: tuple[str, ...]
    rank: int = 0
    floor: int = 1
    patient: bool = False
    most: int = 1_000_000
    keep: str = "first"
    wanted: tuple[int, ...] = ()


def capped(section: Section, most: int) -> Section:
    """The section with at most `most` entries, and a line that says how many were left out."""
    chosen = sorted(_wanted(replace(section, most=most)))
    return replace(section, items=_lines(section, chosen), wanted=())


def fit(sections: Sequence[Section], budget: int, per_line: int = 0) -> str:
    """The sections as Markdown in at most `budget` bytes of UTF-8; sections without entries, or without room, are gone.

    By rank: first one entry of each section, then up to its floor, then what is left. Each line counts `per_line` bytes
    more than it has.
    """
    filled = [number for number, section in enumerate(sections) if section.items]
    by_rank = sorted(filled, key=lambda number: sections[number].rank)
    at_last = sorted(filled, key=lambda number: (sections[number].patient, sections[number].rank))
    chosen: dict[int, list[int]] = {}
    left = budget
    for order, most in ((by_rank, lambda _: 1), (by_rank, lambda one: one.floor), (at_last, lambda one: one.most)):
        for number in order:
            section = sections[number]
            for item in _wanted(section)[: most(section)]:
                cost = _cost(section, item, number not in chosen, per_line)
                if item not in chosen.get(number, ()) and cost <= left:
                    chosen.setdefault(number, []).append(item)
                    left -= cost
    return written([replace(sections[n], items=_lines(sections[n], sorted(chosen[n]))) for n in sorted(chosen)])


def _cost(section: Section, item: int, first: bool, per_line: int) -> int:
    """Bytes that an entry takes, with the heading when it is the section's first."""
    text = section.items[item] + "\n"
    cost = _MORE_BYTES + per_line if first else 0
    if first:
        text += _heading(section)
    return cost + size(text) + per_line * text.count("\n")


def written(sections: Sequence[Section]) -> str:
    """The sections as Markdown, each with an empty line before its heading; those without entries are left out."""
    full = (section for section in sections if section.items)
    return "".join(_heading(section) + "".join(f"{item}\n" for item in section.items) for section in full)


def _heading(section: Section) -> str:
    """What stands before a section's entries; a section without a title has no heading."""
    return f"\n## {section.title}\n\n" if section.title else ""


def _wanted(section: Section) -> list[int]:
    """Indexes of the entries that may go in, the most wanted first."""
    order = list(section.wanted or range(len(section.items)))
    if section.keep == "last" and not section.wanted:
        order.reverse()
    elif section.keep == "ends" and len(order) > 1:
        # The newest, the first, then backwards from the newest.
        order = [order[-1], order[0], *order[-2:0:-1]]
    return order[: section.most]


def _lines(section: Section, chosen: Sequence[int]) -> tuple[str, ...]:
    """The chosen entries in display order, with one line where the first left-out ones would stand."""
    missing = len(section.items) - len(chosen)
    lines: list[str] = []
    expected = 0
    noted = not missing
    for item in [*chosen, len(section.items)]:
        if item > expected and not noted:
            lines.append(f"- … {missing} more left out")
            noted = True
        if item < len(section.items):
            lines.append(section.items[item])
        expected = item + 1
    return tuple(lines)
