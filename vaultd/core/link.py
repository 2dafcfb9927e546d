"""A link of a page: what it names, taken apart.

`[[page#Heading|text]]`, `[[project:page]]` and `[text](page.md#heading)`. The project before a colon is a slug; what
has a scheme and slashes (`https://`) or a drive (`C:\\`, `C:/`) leads out of the vault.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote

from vaultd.core.ids import slug

__all__ = ["Link", "markdown_link", "wikilink"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[\\/]{2}")
_OUTSIDE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[\\/]|[\\/]{2}")


@dataclass(frozen=True, slots=True)
class Link:
    """A link as it is written, escapes and percent signs undone.

    `target` names a page or a file ("" for the page itself), `anchor` a place in it (`#Heading`, `#A#B`, `#^block`),
    `text` is what is shown instead, "" where nothing is given. `[[api:notes/x]]` has `project` api and `page` notes/x;
    in any other link `page` is `target`. `external`: it leads out of the vault (a URL, a path of the disk).
    `line` counts from 0; -1 is the frontmatter.
    """

    target: str
    anchor: str = ""
    text: str = ""
    embed: bool = False
    wiki: bool = False
    external: bool = False
    line: int = -1
    project: str = ""
    page: str = ""

    def is_address(self) -> bool:
        """Whether it is an address that stands in the text for itself."""
        return self.external and not (self.wiki or self.embed or self.text)


def wikilink(inner: str, embed: bool = False, line: int = -1) -> Link | None:
    r"""The link that stands between `[[` and `]]`; None where it names nothing. In tables the bar is written `\|`."""
    head, bar, shown = inner.partition("|")
    target, anchor = _parted(head.removesuffix("\\") if bar else head)
    if not target and not anchor:
        return None
    external, project, page = False, "", target
    if ":" in target or target.startswith(("//", "\\\\")):
        external = _OUTSIDE.match(target) is not None
        project, page = ("", target) if external else _project(target)
    return Link(target, anchor, shown.strip(), embed, True, external, line, project, page)


def markdown_link(destination: str, text: str, embed: bool = False, line: int = -1) -> Link | None:
    """The link to a destination; None for an empty one. A scheme makes it a URL, never a project."""
    if _SCHEME.match(destination):
        return Link(destination, "", text, embed, False, True, line, "", destination)
    target, anchor = _parted(destination)
    if "%" in destination:
        target, anchor = unquote(target), unquote(anchor)
    return Link(target, anchor, text, embed, False, False, line, "", target) if target or anchor else None


def _parted(address: str) -> tuple[str, str]:
    """The page and the anchor of what a link names; an anchor of nothing is none."""
    target, sign, anchor = address.strip().partition("#")
    return target.rstrip() if sign else target, f"#{anchor}" if anchor.strip() else ""


def _project(target: str) -> tuple[str, str]:
    """The project and the page that `project:page` or `workspace/project:page` names; else no project."""
    name, _, page = target.partition(":")
    if page and not page[0].isspace() and all(map(_is_slug, name.split("/"))):
        return name, page
    return "", target


def _is_slug(name: str) -> bool:
    return slug(name) == unicodedata.normalize("NFC", name).lower()
