"""Links, tags and block ids in one paragraph of a page, as Obsidian reads them.

One pass from left to right over the text that markdown-it gives of a paragraph, a heading or a list entry; what begins
first wins. Code spans, comments, math and HTML tags are passed over, and an escaped sign is none. Every step looks
ahead a bounded way or to the end of what it takes, so that time grows with length and no text is an error.
"""

from __future__ import annotations

import html
import re
import string
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from vaultd.core.link import Link, markdown_link, wikilink

__all__ = ["BlockId", "Found", "Tag", "scan"]

_TEXT = 500  # characters of a shown text; a longer one is no name of anything
_LABEL = 999  # characters of the label of a reference, as CommonMark has it

_SIGN = re.compile(r"[\\`%$<\[\]:#^]")
_INTERESTING = re.compile(r"[\[#^]|://|<[A-Za-z]")
_PUNCTUATION = frozenset(string.punctuation)
_RUN = re.compile("`+")
_SHARPS = re.compile("#+")
_BRACKETS = re.compile(r"\[+")
_WIKI = re.compile(r"\[\[([^\[\]\n|]*+(?:\|(?:[^\[\]\n]|\[(?!\[)|\](?!\]))*+)?)\]\]")
_URL = re.compile(r"://[^\s<>\[\]|`\"]+")
_TAG = re.compile(  # after a blank, the bar of a table, or markup
    r"""
    (?: (?<![^\s|]) | (?<=\*) | (?<===) | (?<=~~) | (?<=[\w"]>) )
    \# ( [^\s!-,.:-@\[-^`{-~\u2000-\u206f\u2e00-\u2e7f]+ )
    """,
    re.VERBOSE,
)
_NO_TAG = re.compile(r"[\d/]*\Z|[-_/]*\Z")
_BLOCK = re.compile(r"(?<!\S)\^([A-Za-z0-9-]+)(?=[^\S\n]*+(?:\n|\Z))")
_DESTINATION = re.compile(
    r"""
    \( \s*+
    (?: <(?P<angle> (?:[^<>\n\\]|\\.)*+ )> | (?P<bare> (?!<)(?: [^\s()\\] | \\. | \((?:[^\s()\\]|\\.)*+\) )*+ ) )
    (?: \s++ (?: "(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+' | \((?:[^()\\]|\\.)*+\) ) )?+ \s*+ \)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMED = re.compile(rf"\[([^\[\]]{{0,{_LABEL}}})\]")
_MATH = re.compile(r"\$(?=\S)(?:[^$\\\n]|\\.)*+(?<=\S)\$(?!\d)")
_MARKUP = re.compile(
    r"""
      <[A-Za-z][A-Za-z0-9-]{0,60}+ (?:\s++[A-Za-z_:][\w.:-]{0,60}+ (?:\s*+=\s*+
        (?: [^\s"'=<>`]{1,500}+ | '[^']{0,500}+' | "[^"]{0,500}+" ))?+ ){0,20}+ \s*+ /? >
    | </[A-Za-z][A-Za-z0-9-]{0,60}+ \s*+ >
    """,
    re.VERBOSE,
)
_AUTOLINK = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*)>")
_SCHEME_BEFORE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,31}\Z")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


class Tag(NamedTuple):
    """A tag of the text: its line from 0, its name as written without `#`; levels are set apart by `/`."""

    line: int
    name: str


class BlockId(NamedTuple):
    """A block id at the end of a line: the line from 0, the id without `^`."""

    line: int
    id: str


@dataclass(frozen=True, slots=True)
class Found:
    """What the paragraphs of a page hold, in their order."""

    links: list[Link] = field(default_factory=list)
    tags: list[Tag] = field(default_factory=list)
    blocks: list[BlockId] = field(default_factory=list)


def scan(text: str, line: int, references: Mapping[str, str], found: Found) -> None:
    """Add to `found` what stands in `text`, whose first line is `line` of the page.

    `references`: destinations by their labels, as markdown-it folds them (`normalizeReference`).
    """
    if not _INTERESTING.search(text):
        return
    reader = _Reader(text, line, references)
    reader.read()
    found.links.extend(link for _, link in sorted(reader.links, key=itemgetter(0)))
    found.tags.extend(tag for _, tag in reader.tags)
    found.blocks.extend(reader.blocks)


class _Reader:
    """Where the reading of one text is, and what it found with its offset.

    Each method takes what begins with one sign at an offset and gives the offset where the reading goes on.
    """

    def __init__(self, text: str, line: int, references: Mapping[str, str]) -> None:
        self.text = text
        self.references = references
        self.links: list[tuple[int, Link]] = []
        self.tags: list[tuple[int, Tag]] = []
        self.blocks: list[BlockId] = []
        self._line = line
        self._breaks = [found.start() for found in re.finditer("\n", text)]
        self._open: list[int] = []  # offsets of the brackets that are open, or of the `!` before one
        self._spent = 0  # so many of them stand around a link, and a link holds no link
        self._bracket = -1  # offset of the bracket before this one
        self._escaped = -1  # offset of the character that was escaped last
        self._unclosed: set[str] = set()  # signs that end nowhere: looked for once
        self._runs: dict[int, list[int]] = {}  # offsets of the runs of backticks, by their length

    def read(self) -> None:
        """Read the text to its end."""
        take = {
            "\\": self._escape,
            "`": self._ticks,
            "%": self._comment,
            "$": self._math,
            "<": self._html,
            "[": self._opens,
            "]": self._closes,
            ":": self._url,
            "#": self._tag,
            "^": self._block,
        }
        text, search, position = self.text, _SIGN.search, 0
        while sign := search(text, position):
            position = take[sign.group()](sign.start())

    def _line_of(self, at: int) -> int:
        return self._line + bisect_right(self._breaks, at)

    def _past(self, sign: str, start: int) -> int:
        """The offset behind the next `sign`, or `start` where there is none."""
        at = -1 if sign in self._unclosed else self.text.find(sign, start)
        if at < 0:
            self._unclosed.add(sign)
            return start
        return at + len(sign)

    def _escape(self, at: int) -> int:
        if self.text[at + 1 : at + 2] not in _PUNCTUATION:
            return at + 1
        self._escaped = at + 1
        return at + 2

    def _ticks(self, at: int) -> int:
        """A code span ends at the next run of as many backticks."""
        if not self._runs:
            for run in _RUN.finditer(self.text):
                self._runs.setdefault(len(run.group()), []).append(run.start())
        end = _end(_RUN, self.text, at)
        same = self._runs.get(end - at, [])
        closes = bisect_left(same, end)
        return same[closes] + end - at if closes < len(same) else end

    def _comment(self, at: int) -> int:
        return self._past("%%", at + 2) if self.text.startswith("%%", at) else at + 1

    def _math(self, at: int) -> int:
        if self.text.startswith("$$", at):
            return self._past("$$", at + 2)
        formula = _MATH.match(self.text, at)
        return formula.end() if formula else at + 1

    def _html(self, at: int) -> int:
        if self.text.startswith("<!--", at):
            return self._past("-->", at + 4)
        address = _AUTOLINK.match(self.text, at)
        if address:
            self._address(at, address[1])
            return address.end()
        markup = _MARKUP.match(self.text, at)
        return markup.end() if markup else at + 1

    def _url(self, at: int) -> int:
        """An address in the text; its scheme stands before the sign that was found."""
        scheme = _SCHEME_BEFORE.search(self.text[max(0, at - 32) : at])
        url = _URL.match(self.text, at) if scheme else None
        if not scheme or not url:
            return at + 1
        address = scheme.group() + url.group().rstrip("?!.,:;*_~'")
        if ")" in address and "(" not in address:
            address = address[: address.index(")")]
        self._address(at - len(scheme.group()), address)
        return url.end()

    def _address(self, at: int, address: str) -> None:
        self.links.append((at, Link(address, external=True, line=self._line_of(at), page=address)))

    def _opens(self, at: int) -> int:
        """Brackets in a row: the last two may be those of a wikilink, the first that of an image."""
        end = _end(_BRACKETS, self.text, at)
        first = at - 1 if at and self.text[at - 1] == "!" and self._escaped != at - 1 else at
        wiki = _WIKI.match(self.text, end - 2) if end - at > 1 else None
        link = wikilink(wiki[1], first < at and end - at == 2, self._line_of(end - 2)) if wiki else None
        inside = end - 2 if wiki else end
        if inside > at:
            self._open.append(first)
            self._open.extend(range(at + 1, inside))
        if link:
            self.links.append((end - 2, link))
        past = wiki.end() if wiki else end
        self._bracket = past - 1
        return past

    def _closes(self, at: int) -> int:
        """The end of a link's text, when a destination or the label of one follows, or the text is a label itself."""
        before, self._bracket = self._bracket, at
        if not self._open:
            return at + 1
        start = self._open.pop()
        embed = self.text[start] == "!"
        if len(self._open) < self._spent:
            self._spent = len(self._open)
            if not embed:
                return at + 1
        begin = start + 1 + embed
        destination, end = self._destination(at + 1)
        if not destination and self.references:
            destination, end = self._reference(begin, at, before < begin)
        if not destination:
            return end
        link = markdown_link(destination, self.text[begin : min(at, begin + _TEXT)], embed, self._line_of(start))
        if link:
            self._add(start, link)
        return end

    def _destination(self, at: int) -> tuple[str, int]:
        """What stands in parentheses at an offset, and where they end; "" where there are none."""
        found = _DESTINATION.match(self.text, at) if self.text.startswith("(", at) else None
        if not found:
            return "", at
        raw: str = found["bare"] if found["angle"] is None else found["angle"]
        return html.unescape(_ESCAPED.sub(r"\1", raw)) if "\\" in raw or "&" in raw else raw, found.end()

    def _reference(self, begin: int, close: int, is_label: bool) -> tuple[str, int]:
        """The destination that a label names, and where the link ends: "" where there is none."""
        named = _NAMED.match(self.text, close + 1)
        label, end = (named[1], named.end()) if named else ("", close + 1)
        if not label.strip() and is_label and close - begin <= _LABEL:
            label = self.text[begin:close]
        if not label:
            return "", close + 1
        from markdown_it.common.utils import normalizeReference  # loaded already: it found the references

        destination = self.references.get(normalizeReference(label), "")
        return destination, end if destination else close + 1

    def _add(self, start: int, link: Link) -> None:
        """Keep a link whose text began at `start`: what its text holds is no tag and no address."""
        while self.tags and self.tags[-1][0] > start:
            self.tags.pop()
        if not link.embed:
            while self.links and self.links[-1][0] > start and self.links[-1][1].is_address():
                self.links.pop()
            self._spent = len(self._open)
        self.links.append((start, link))

    def _tag(self, at: int) -> int:
        tag = _TAG.match(self.text, at)
        if not tag:
            return _end(_SHARPS, self.text, at)
        name = tag[1].rstrip("/")
        if not _NO_TAG.match(name):
            self.tags.append((at, Tag(self._line_of(at), name)))
        return tag.end()

    def _block(self, at: int) -> int:
        block = _BLOCK.match(self.text, at)
        if not block:
            return at + 1
        self.blocks.append(BlockId(self._line_of(at), block[1]))
        return block.end()


def _end(run: re.Pattern[str], text: str, at: int) -> int:
    """Where a run of one sign ends that begins at an offset."""
    found = run.match(text, at)
    return found.end() if found else at + 1
