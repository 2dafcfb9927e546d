"""A page as Obsidian understands it, from one parse: headings, links, tags, tasks, code, block ids, what is hidden.

markdown-it reads the blocks, `core.inline` the text in them. Beyond CommonMark there are comments (`%%`) and math
(`$$`) over several lines, and footnotes; one that is not closed is text. Both are loaded only when a page is read,
because markdown-it takes as long as all else together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from vaultd.core import markup
from vaultd.core.outline import Heading, Outline, plain_outline
from vaultd.core.passages import BLOCK_ID

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

    from vaultd.core.inline import BlockId, Tag
    from vaultd.core.link import Link

__all__ = ["LINES", "Code", "Parsed", "Task", "outline", "parse", "parsed_outline"]

LINES = 20_000
"""Lines of a page that `parse` reads; what stands below is left out. A list of so many entries takes two seconds."""

_VERBATIM = frozenset({"fence", "code_block", "html_block", "hidden"})
_DEEPEST = 60  # blocks in one another that are read: lists in lists count twice; below them markdown-it gives up
_TOKENS = 120_000  # of blocks: more than so many lines have, unless each begins a dozen lists
_TASK = re.compile(r"\[([^\[\]\n])\](?:[ \t]+|(?=\n)|\Z)")
_FOOTNOTE = re.compile(r"\[\^[^\s\[\]]{1,200}\]:[ \t]*")


class Task(NamedTuple):
    """A list entry with a box: line from 0, the character in the box (a space: not done), its text on one line."""

    line: int
    state: str
    text: str


class Code(NamedTuple):
    """A fenced block: its language ("" for none), the lines of its fences (the last of an open one is its end)."""

    language: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Parsed(Outline):
    """All that a page holds, each kind in its order. Nothing comes from code, HTML, comments or math."""

    code: Sequence[Code]
    tasks: Sequence[Task]
    links: Sequence[Link]
    tags: Sequence[Tag]
    blocks: Sequence[BlockId]


def parse(body: str) -> Parsed:
    """What the text of a page holds, without its frontmatter (`core.properties`); never raises."""
    from vaultd.core import inline

    text = _unified(body)
    if text.count("\n") >= LINES:
        text = "\n".join(text.split("\n", LINES)[:LINES])
    defined: dict[str, dict[str, dict[str, str]]] = {}
    tokens = _parser().parse(text, defined)
    references = {label: entry["href"] for label, entry in defined.get("references", {}).items()}
    seen = _outline(tokens)
    lines = text.split("\n")
    code: list[Code] = []
    tasks: list[Task] = []
    found = inline.Found()
    for index, token in enumerate(tokens):
        if token.map is None:
            continue
        if token.type == "fence":
            language = token.info.split(maxsplit=1)[:1]
            code.append(Code(language[0] if language else "", token.map[0], token.map[1] - 1))
        elif token.type == "inline":
            content, line = token.content, _first_line(token, lines)
            box = _TASK.match(content) if tokens[index - 2].type == "list_item_open" else None
            if box:
                content = content[box.end() :]
                tasks.append(Task(line, box[1], _folded(content)))
            inline.scan(content, line, references, found)
    return Parsed(seen.headings, seen.verbatim, code, tasks, found.links, found.tags, found.blocks)


def outline(body: str) -> Outline:
    """The headings and the hidden lines alone, of all lines: `parse` without a look at the text."""
    return plain_outline(body) or parsed_outline(body)


def parsed_outline(body: str) -> Outline:
    """The same by the parser, also where that is not needed."""
    return _outline(_parser().parse(_unified(body)))


def _outline(tokens: Sequence[Token]) -> Outline:
    headings: list[Heading] = []
    verbatim: set[int] = set()
    for index, token in enumerate(tokens):
        if token.map is None:
            continue
        if token.type in _VERBATIM:
            verbatim.update(range(*token.map))
        elif token.type == "heading_open" and token.level == 0:
            text = tokens[index + 1].content  # the inline token that a heading always holds
            headings.append(Heading(token.map[0], int(token.tag[1:]), _folded(text)))
    return Outline(headings, verbatim)


def _unified(body: str) -> str:
    """A page's text with one kind of line end, as markdown-it would make it."""
    return body.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def _first_line(token: Token, lines: Sequence[str]) -> int:
    """The line where a token's text begins: rarely a later one than its own, when odd white space was stripped."""
    assert token.map is not None
    first = token.content.partition("\n")[0]
    return next((number for number in range(*token.map) if first in lines[number]), token.map[0])


def _folded(text: str) -> str:
    """One line of text, without a block id at its end."""
    block = BLOCK_ID.search(text)
    return markup.fold(text[: block.start()] if block else text)


@cache
def _parser() -> MarkdownIt:
    """markdown-it for blocks only, with those of Obsidian; addresses stay as they are written."""
    from markdown_it import MarkdownIt

    class Blocks(MarkdownIt):
        """It neither encodes nor judges a destination: nothing is rendered."""

        def normalizeLink(self, url: str) -> str:
            return url

        def validateLink(self, url: str) -> bool:
            return True

    parser = Blocks("commonmark", {"maxNesting": _DEEPEST}).disable(["inline"])
    ruler = parser.block.ruler
    ruler.before("code", "enough", _enough)
    ruler.before("fence", "hidden", _hidden, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    ruler.before("reference", "footnote", _footnote)
    return parser


def _enough(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The end of a page that is made to take long."""
    if silent or len(state.tokens) < _TOKENS:
        return False
    state.line = end
    return True


def _hidden(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A comment or math that begins a line and ends on a later one; what follows its end there is text."""
    at = state.bMarks[start] + state.tShift[start]
    sign = state.src[at : at + 2]
    if sign not in ("%%", "$$") or state.is_code_block(start):
        return False
    if state.src.find(sign, at + 2, state.eMarks[start]) >= 0:
        return False
    for line in range(start + 1, end):
        if state.sCount[line] < state.blkIndent and not state.isEmpty(line):
            return False
        closes = state.src.find(sign, state.bMarks[line], state.eMarks[line])
        if closes < 0:
            continue
        if not silent:
            state.push("hidden", "", 0).map = [start, line + 1]
            rest = state.push("inline", "", 0)
            rest.content = state.src[closes + 2 : state.eMarks[line]].strip()
            rest.map = [line, line + 1]
            state.line = line + 1
        return True
    return False


def _footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A footnote: what follows its label, and lines indented under it, are blocks of their own."""
    at = state.bMarks[start] + state.tShift[start]
    label = None if state.is_code_block(start) else _FOOTNOTE.match(state.src, at, state.eMarks[start])
    if silent or not label:
        return False
    kept = state.bMarks[start], state.tShift[start], state.sCount[start]
    state.blkIndent += 4
    state.level += 1
    state.bMarks[start], state.tShift[start], state.sCount[start] = label.end(), 0, state.blkIndent
    state.md.block.tokenize(state, start, end)
    state.bMarks[start], state.tShift[start], state.sCount[start] = kept
    state.blkIndent -= 4
    state.level -= 1
    return True
