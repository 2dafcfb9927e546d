"""Links in a page's frontmatter: properties that hold `[[links]]`, and `relations` with a meaning.

A property is a link when it is one from end to end, as Obsidian has it: prose with brackets in it is not. `relations`
is a mapping of kinds to targets, or a list of entries with `type` and `target`; there a target may also be written
plainly, as `notes/x.md`, `project:notes/x.md` or `workspace/project:notes/x.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from vaultd.core.link import Link, wikilink

__all__ = ["RELATIONS", "Property", "property_links", "relations", "replaced"]

RELATIONS = "relations"
"""The key of links with a meaning."""

SUPERSEDES = "supersedes"
"""The key, and the kind of relation, of links to what a page replaces."""

_WIKI = re.compile(r"\s*\[\[([^\[\]\n]*)\]\]\s*")


class Property(NamedTuple):
    """A link of the frontmatter: the key it stands under, for a relation its kind (`fixes`); and the link."""

    key: str
    link: Link


def property_links(values: Mapping[str, object]) -> list[Property]:
    """The links in all values but `relations`, in lists and mappings too, under the key at the top; never raises."""
    return [
        Property(key, link)
        for key, value in values.items()
        if key != RELATIONS
        for text in _texts(value)
        if (link := _linked(text))
    ]


def relations(values: Mapping[str, object]) -> list[Property]:
    """The links of `relations` with their kinds, in their order; what has neither shape is left out. Never raises."""
    told = values.get(RELATIONS)
    entries = [told] if isinstance(told, Mapping) else told if isinstance(told, list | tuple) else []
    return [
        Property(kind.strip(), link)
        for entry in entries
        if isinstance(entry, Mapping)
        for kind, value in _kinds(entry)
        if isinstance(kind, str) and kind.strip()
        for text in _texts(value)
        if (link := _linked(text) or wikilink(text.strip()))
    ]


def replaced(values: Mapping[str, object]) -> list[Link]:
    """The pages that a page says it replaces: in `supersedes`, as links or plain names, or as such relations."""
    told = [_linked(text) or wikilink(text.strip()) for text in _texts(values.get(SUPERSEDES))]
    told += [found.link for found in relations(values) if found.key.casefold() == SUPERSEDES]
    return [link for link in told if link is not None and link.target]


def _kinds(entry: Mapping[object, object]) -> Iterator[tuple[object, object]]:
    """Kinds and targets of an entry in either shape."""
    if "target" in entry:
        yield entry.get("type"), entry["target"]
    else:
        yield from entry.items()


def _linked(text: str) -> Link | None:
    """The link that a value is; None for any other text."""
    found = _WIKI.fullmatch(text)
    return wikilink(found[1]) if found else None


def _texts(value: object) -> Iterator[str]:
    """The strings in a value; frontmatter is nested at most 64 deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
