"""Where in a page an answer stands: its title, the line that answers best, and the anchor that leads there.

`core.obsidian` tells headings from `# comments` in code; it is asked only when a page needs it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath

from vaultd.core import markup, query
from vaultd.core.obsidian import outline
from vaultd.core.outline import Outline
from vaultd.core.passages import BLOCK_ID, lines_of

__all__ = ["SNIPPET", "Place", "locate", "locate_in", "plain", "title_of"]

SNIPPET = 240
"""Characters of a snippet, at most."""

_UNMARKED = str.maketrans("\\", "/", "-_'")
_TITLE = 300  # bytes of a title
_SPOTS = 200  # words that are tried as the first of a snippet
_LEAD = 40  # characters shown before the first word that matches
_LEADING = re.compile(r"(?:\s|>|#{1,6}\s|[-*+]\s|\d{1,9}[.)]\s|\[[ xX-]\]\s|\[![\w-]+\][-+]?)+")
_LINK = re.compile(r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|!?\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")
_EMPHASIS = re.compile(r"(?<![\w*\\])(\*{1,3})(?=[^\s*])([^*]+?)(?<=[^\s\\])\1(?![\w*])")
_MAY_MATTER = re.compile(r"^(?:[ >]*(?:#{1,6}(?:\s|$)|=+\s*$|-+\s*$|<)| {4}|\t)|```|~~~|%%|\$\$", re.MULTILINE)
_FIRST_H1 = re.compile(r"#[ \t]+(?P<text>\S.*)")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a page: `#^block-id`, `#Heading` or "" for the page itself; and a line of plain text from there."""

    anchor: str
    snippet: str


def locate(body: str, text: str) -> Place:
    """The line of a page that answers a query best; the first of equals.

    When no line has a word of the query (its title or a tag may), the page's first line of text.
    """
    lines = lines_of(body)
    return locate_in(lines, text, [range(len(lines))])[0]


def locate_in(lines: Sequence[str], text: str, spans: Sequence[range]) -> list[Place]:
    """For each span of a page's lines the line in it that answers a query best, as `locate` does it for all of them."""
    wanted = _asked(text)
    best = [_best_line(lines, span, wanted) for span in spans]
    last = max((line for line in best if line is not None), default=-1)
    above = "\n".join(lines[: last + 2])  # one more: it may underline a heading
    seen = outline(above) if _MAY_MATTER.search(above) else Outline((), ())
    return [_place(lines, line, span, wanted, seen) for span, line in zip(spans, best, strict=True)]


def _place(lines: Sequence[str], best: int | None, span: range, wanted: _Wanted, seen: Outline) -> Place:
    """The place of a span's best line, or of its first line of text where there is none."""
    if best is None:
        told = (number for number in span if not lines[number].startswith("#") and any(map(str.isalnum, lines[number])))
        best = next(told, None)
        return Place("", _window(plain(lines[best]), wanted) if best is not None else "")
    block = BLOCK_ID.search(lines[best])
    if best in seen.verbatim:
        block, told_line = None, markup.fold(lines[best])
    else:
        told_line = plain(lines[best])
    headings = [heading for line, _, heading in seen.headings if line <= best and heading]
    anchor = f"#^{block['id']}" if block else f"#{headings[-1]}" if headings else ""
    if any(line == best for line, _, _ in seen.headings):  # the anchor says it, or the title
        told_line = _below(lines, range(best + 1, span.stop)) or told_line
    return Place(anchor, _window(told_line, wanted))


def _below(lines: Sequence[str], span: range) -> str:
    """The first line of text or code below a heading, as it is shown; "" where there is none."""
    fenced = False
    for number in span:
        line = lines[number]
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif any(map(str.isalnum, line)):
            return markup.fold(line) if fenced else "" if line.startswith("#") else plain(line)
    return ""


def plain(line: str) -> str:
    """A line of Markdown as a person reads it: without its leading marks, block id, link targets and emphasis."""
    text = _without_id(line) if "^" in line else line
    if "[" in text:
        text = _LINK.sub(lambda found: found[1] or found[2] or "", text)
    mark = _LEADING.match(text)
    text = text[mark.end() :] if mark else text
    if "*" in text:
        text = _EMPHASIS.sub(r"\2", text)
    text = markup.unescape(text) if "\\" in text else text
    return markup.fold(text.replace("`", ""))


def title_of(values: Mapping[str, object], body: str, path: str) -> str:
    """A page's title: what its frontmatter says, else its first heading of level one, else the name of its file."""
    given = values.get("title")
    told = str(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else ""
    title = markup.fold(told) or plain(_first_h1(body)) or PurePosixPath(path).stem
    return markup.clip(title, _TITLE)


def _first_h1(body: str) -> str:
    """The text of the first heading of level one, read without a parser where the page starts with it."""
    found = _FIRST_H1.match(body.lstrip("\r\n"))
    if found:
        text = found["text"].rstrip()
        bare = text.rstrip("#")
        return bare if bare.endswith((" ", "\t")) else text
    if not _MAY_MATTER.search(body):
        return ""
    return next((text for _, level, text in outline(body).headings if level == 1), "")


class _Wanted:
    """The terms of a query, looked for in texts."""

    def __init__(self, text: str) -> None:
        self._terms = frozenset(query.terms(text))
        needles = {term[: min(4, len(term) - 1) or 1] if term.isascii() else term[0] for term in self._terms}
        self._may_be_in = re.compile("|".join(map(re.escape, sorted(needles))) or r"(?!)").search
        self._words: dict[str, frozenset[str]] = {}

    def lines(self, lines: Sequence[str]) -> dict[int, frozenset[str]]:
        """The terms in each of some lines that have any. They are cut only where something of a term is in them."""
        squeezed = _squeezed("\n".join(lines)).split("\n")
        told = ((number, line) for number, line in enumerate(squeezed) if self._may_be_in(line))
        found = ((number, self._terms.intersection(query.tokens(lines[number]))) for number, _ in told)
        return {number: terms for number, terms in found if terms}

    def word(self, word: str) -> frozenset[str]:
        """The terms in a word; hits have many words in common."""
        found = self._words.get(word)
        if found is None:
            may = self._may_be_in(_squeezed(word))
            found = self._words[word] = self._terms.intersection(query.tokens(word)) if may else frozenset()
        return found


@lru_cache(maxsize=1)
def _asked(text: str) -> _Wanted:
    """What a query wants; the same query is asked of every hit."""
    return _Wanted(text)


def _squeezed(text: str) -> str:
    """A text as a part of a term is looked for in it: so that it is in every text with that term."""
    return query.fold(text).casefold().translate(_UNMARKED)


def _best_line(lines: Sequence[str], span: range, wanted: _Wanted) -> int | None:
    """Number of the line in a span with the most telling words of the query; None when there is no such word."""
    matches = wanted.lines(lines[span.start : span.stop])
    if not matches:
        return None
    counts = Counter(term for common in matches.values() for term in common)
    weigh = {term: math.log(1 + len(span) / count) for term, count in counts.items()}
    return span.start + max(matches, key=lambda number: (sum(sorted(weigh[term] for term in matches[number])), -number))


def _without_id(line: str) -> str:
    """A line without the block id at its end."""
    block = BLOCK_ID.search(line)
    return line[: block.start()] if block else line


def _window(text: str, wanted: _Wanted) -> str:
    """At most `SNIPPET` characters of a line, where most words of the query stand together; cuts are shown."""
    if len(text) <= SNIPPET:
        return text
    spots = [(start, end, terms) for start, end, word in query.places(text) if (terms := wanted.word(word))]
    begin = 0
    most = 0
    room = SNIPPET - 2
    for index, (start, _, _) in enumerate(spots[:_SPOTS]):
        inside: set[str] = set()
        for _, end, terms in islice(spots, index, None):
            if end > start + room - _LEAD:
                break
            inside |= terms
        told = len(inside)
        if told > most:
            begin, most = start, told
    begin = max(0, min(begin - _LEAD, len(text) - room))
    if begin:
        space = text.find(" ", begin, begin + _LEAD)
        begin = space + 1 if space >= 0 else begin
    end = min(len(text), begin + room)
    if end < len(text):
        space = text.rfind(" ", end - _LEAD, end)
        end = space if space >= 0 else end
    return ("…" if begin else "") + text[begin:end].strip() + ("…" if end < len(text) else "")
