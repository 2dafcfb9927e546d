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

    `rank`: lower is kept first. `floor`: so many entries go in before any section gets more than its floor. `keep` says
    which entries stay when not all do: `first`, `last` or `ends` (first and last).
    """

    title: str
    items: tuple[str, ...]
    rank: int = 0
    floor: int = 1
    keep: str = "first"


def capped(section: Section, most: int) -> Section:
    """The section with at most `most` entries, and a line that says how many were left out."""
    chosen = sorted(_wanted(section)[:most])
    return replace(section, items=_lines(section, chosen))


def fit(sections: Sequence[Section], budget: int) -> str:
    """The sections as Markdown in at most `budget` bytes of UTF-8; sections without entries, or without room, are gone.

    First every section gets its floor, by rank; then what is left is filled by rank.
    """
    ranked = sorted(
        (number for number, section in enumerate(sections) if section.items), key=lambda n: sections[n].rank
    )
    chosen: dict[int, list[int]] = {}
    left = budget
    for whole in (False, True):
        for number in ranked:
            section = sections[number]
            wanted = _wanted(section)
            for item in wanted if whole else wanted[: section.floor]:
                if item in chosen.get(number, ()):
                    continue
                cost = size(section.items[item]) + 1
                if number not in chosen:
                    cost += size(section.title) + len("\n## \n\n") + _MORE_BYTES
                if cost <= left:
                    chosen.setdefault(number, []).append(item)
                    left -= cost
    return written([replace(sections[n], items=_lines(sections[n], sorted(chosen[n]))) for n in sorted(chosen)])


def written(sections: Sequence[Section]) -> str:
    """The sections as Markdown, each with an empty line before its heading; those without entries are left out."""
    return "".join(
        f"\n## {section.title}\n\n" + "".join(f"{item}\n" for item in section.items)
        for section in sections
        if section.items
    )


def _wanted(section: Section) -> list[int]:
    """Indexes of a section's entries, the most wanted first."""
    order = list(range(len(section.items)))
    if section.keep == "last":
        return order[::-1]
    if section.keep == "ends" and len(order) > 1:
        # The newest, the first, then backwards from the newest.
        return [order[-1], order[0], *order[-2:0:-1]]
    return order


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
