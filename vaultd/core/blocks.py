"""Prose taken apart: headings, list entries and paragraphs, their labels, their sentences. No code, no quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vaultd.core import phrases
from vaultd.core.markup import fold
from vaultd.core.phrases import Section

__all__ = ["Block", "blocks", "labelled", "plain", "prose_lines", "sentences"]

_FENCE = re.compile(r"[ \t]*(?:[-*+>] )?[ \t]*(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*\Z")
_BOLD_LINE = re.compile(r"\s*(?:\d+[.)]\s+)?(\*\*|__)(?!\s)(.+?)\1\s*[:：]?\s*\Z")
_ITEM = re.compile(r"(\s*)(?:[-*+•‣–]|(\d{1,3})[.)、])\s+(?:\[([ xX-])\]\s+)?(.*)\Z")
_SKIPPED = re.compile(r"\s*(?:>|\||</?[\w-]+>\s*\Z|[-*_=]{3,}\s*\Z)")
_DROPPED = re.compile(r"<!--.*?-->|<(analysis|thinking)>.*?</\1>", re.DOTALL)
_NUMBERING = re.compile(r"\A(?:\d{1,2}[.)]\s+|\W+(?=\w))")
_HEADING_GOES_ON = re.compile(
    r"\s*\(| (?:for|to|of|on|in|with|before|after|when|from|and|we|i|you|made|taken|so|today|tomorrow|now|here|left)\b",
    re.I,
)
_AFTER_LABEL = re.compile(r"\s*(?:\([^)]{0,60}\))?\s*(?:[:：]|\s[—–-]\s)\s*(.*)\Z", re.DOTALL)

_CUT = re.compile(r"\[\.\.\. \d+ bytes cut \.\.\.\]\Z")
"""What the sanitiser leaves where it cut."""

_CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_BOLD = re.compile(
    r"(?P<code>(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`))|\*\*|(?<!\w)__(?=\S)(?!\w+__)(?P<text>.+?)(?<=\S)__(?!\w)"
)
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|No|Nr|Dr|Mr|Mrs|Ms|St|fig|z\.\s?B|d\.\s?h|u\.\s?a|bzw|ca|ggf|p\.\s?ex)\.",
    re.I,
)
_ENDS_WORD = re.compile(r"(?<![\w.])[^\W\d_]{3,}\Z")
_STOP = re.compile(r"""[.!?…]+["')\]*_”’»`]*(?=\s+\S)|[。！？]+[」』）”]*""")


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, list item or paragraph; an item has an indent, perhaps a number, and `done` for a ticked box."""

    kind: str
    text: str
    done: bool = False
    indent: int = 0
    number: int = 0


def blocks(text: str) -> Iterator[Block]:
    """Headings, list items and paragraphs of `text`; lines that continue one are joined to it."""
    block: Block | None = None
    for line in [*prose_lines(text), ""]:
        opened = _opened(line)
        if opened is not None and block is not None and _continues(block, opened, line):
            block = replace(block, text=f"{block.text} {opened.text}")
            continue
        if block is not None:
            yield replace(block, text=plain(block.text))
        block = opened


def _continues(block: Block, opened: Block, line: str) -> bool:
    """True when `line` goes on with the block that is open, instead of opening one of its own."""
    if block.kind == "heading" or opened.kind != "paragraph" or block.text.endswith((":", "：")):
        return False
    if block.kind == "item":
        return line.startswith((" ", "\t"))
    full = block.text.endswith((".", "!", "?", "。", "？", "！"))
    return not (full and labelled(replace(block, text=block.text[:200]))[0]) and labelled(opened)[0] is None


def _opened(line: str) -> Block | None:
    """The block that a line would open; None for a blank or skipped line."""
    if not line.strip() or _SKIPPED.match(line):
        return None
    heading = _HEADING.match(line)
    if heading:
        return Block("heading", heading.group(1))
    bold = _BOLD_LINE.match(line)
    if bold and "**" not in bold.group(2) and not bold.group(2).endswith((".", "!", "?")):
        return Block("heading", bold.group(2))
    item = _ITEM.match(line)
    if item and item[4]:
        indent = len(item[1].expandtabs(4))
        return Block("item", item[4].strip(), (item[3] or "") in ("x", "X"), indent, int(item[2] or 0))
    return Block("paragraph", line.strip())


def labelled(block: Block) -> tuple[Section | None, str]:
    """The section that a heading, a lead-in line or a `Label: text` opens, and the text that follows on its line."""
    bare = _NUMBERING.sub("", plain(block.text))
    for section, pattern in phrases.LABELS:
        match = pattern.match(bare)
        if match:
            after = bare[match.end() :]
            colon = _AFTER_LABEL.match(after)
            if colon:
                return section, colon.group(1).strip()
            if (not after.strip(" .!?") and block.kind != "item") or (
                block.kind == "heading" and _HEADING_GOES_ON.match(after)
            ):
                return section, ""
    if bare.endswith((":", "：")) and len(bare) <= 80:
        for section, pattern in phrases.LEAD_INS:
            if pattern.search(bare):
                return section, ""
    return None, ""


def plain(text: str) -> str:
    """One line without bold marks and heading signs, as an entry or a title shows it; names such as `__init__` stay."""
    line = _BOLD.sub(lambda found: found["code"] or found["text"] or "", fold(text))
    return re.sub(r"\A(?:#{1,6} |[-*+] )+", "", line).strip()


def sentences(paragraph: str) -> list[str]:
    """The sentences of one paragraph, each with its stop; code spans and common abbreviations do not end one."""
    line = fold(paragraph)
    masked = _CODE_SPAN.sub(lambda found: "x" * len(found.group()), line)
    masked = _ABBREVIATION.sub(lambda found: "x" * len(found.group()), masked)
    parts: list[str] = []
    start = 0
    for stop in _STOP.finditer(masked):
        follows = masked[stop.end() :].lstrip()[:1]
        if stop.group().startswith((".", "…")) and follows.islower() and not _ends_word(masked, stop.start()):
            continue
        parts.append(line[start : stop.end()].strip())
        start = stop.end()
    parts.append(line[start:].strip())
    return [part for part in parts if part]


def _ends_word(text: str, end: int) -> bool:
    """True when an ordinary word of three letters or more ends at `end`: the stop behind it is no abbreviation's."""
    return _ENDS_WORD.search(text[max(0, end - 40) : end]) is not None


def prose_lines(text: str, instead: str = "") -> Iterator[str]:
    """Lines outside fenced code, without comments and without the reasoning part of a summary."""
    fence = ""
    lines = _DROPPED.sub("", text).splitlines()
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if _CUT.match(line):
            # What was cut out may hold a fence: an odd number behind it means that the first one closes.
            marks = [found.group(1)[:3] for found in map(_FENCE.match, lines[number:]) if found]
            fence = marks[0] if len(marks) % 2 else ""
        elif fence:
            if mark and mark.group(1).startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark:
            fence = mark.group(1)
            yield instead
        else:
            yield line
