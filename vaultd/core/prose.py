"""Decisions, next steps and open questions that somebody wrote down, found by the words they used.

Nothing is concluded: what comes out is a sentence or a list entry that stands in the text. Sections with a telling
heading ("Next steps", "Decisions", "Open questions" and their like in some languages) give their list entries;
elsewhere a sentence counts only when it says so itself ("we decided ...", "use X instead of Y", "TODO: ..."). Fenced
code, quotes and tables are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from vaultd.core import phrases
from vaultd.core.markup import clip, fold
from vaultd.core.phrases import Section

__all__ = ["Mined", "headline", "is_offer", "mine", "plain", "prose", "sentences", "statements"]

_ENTRY_BYTES = 500
_MOST_ENTRIES = 40
_LONGEST_SENTENCE = 2_000  # characters; keeps patterns quick on text that is no prose

_FENCE = re.compile(r"[ \t]*(?:[-*+>] )?[ \t]*(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*\Z")
_BOLD_LINE = re.compile(r"\s*(?:\d+[.)]\s+)?(\*\*|__)(?!\s)(.+?)\1\s*[:：]?\s*\Z")
_ITEM = re.compile(r"(\s*)(?:[-*+•‣–]|(\d{1,3})[.)、])\s+(?:\[([ xX-])\]\s+)?(.*)\Z")
_SKIPPED = re.compile(r"\s*(?:>|\||</?[\w-]+>\s*\Z|[-*_=]{3,}\s*\Z)")
_DROPPED = re.compile(r"<!--.*?-->|<(analysis|thinking)>.*?</\1>", re.DOTALL)
_NUMBERING = re.compile(r"\A(?:\d{1,2}[.)]\s+|\W+(?=\w))")
_AFTER_LABEL = re.compile(r"\s*(?:\([^)]{0,60}\))?\s*(?:[:：]|\s[—–-]\s)\s*(.*)\Z", re.DOTALL)

_CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|No|Nr|Dr|Mr|Mrs|Ms|St|fig|z\.\s?B|d\.\s?h|u\.\s?a|bzw|ca|ggf|p\.\s?ex)\.",
    re.I,
)
_ENDS_WORD = re.compile(r"(?<![\w.])[^\W\d_]{3,}\Z")
_STOP = re.compile(r"""[.!?…]+["')\]*_”’»`]*(?=\s+\S)|[。！？]+[」』）”]*""")


@dataclass(frozen=True, slots=True)
class Mined:
    """What one text says, each entry once, in the order of the text, each at most 500 bytes.

    `open_questions` were named so; `asks` are question sentences meant for the person, in the order of the text.
    """

    decisions: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Block:
    """A heading, list item or paragraph; an item has an indent, perhaps a number, and `done` for a ticked box."""

    kind: str
    text: str
    done: bool = False
    indent: int = 0
    number: int = 0


@lru_cache(maxsize=256)
def mine(text: str) -> Mined:
    """The decisions, next steps and questions that `text` states.

    Remembered for the newest texts: a session that goes on is told anew after each turn.
    """
    reader = _Reader()
    blocks = list(_blocks(text))
    for number, block in enumerate(blocks):
        reader.take(block, last=number >= len(blocks) - 1)
    return Mined(*(_entries(found) for found in (reader.decisions, reader.steps, reader.questions, reader.asks)))


def is_offer(question: str) -> bool:
    """True for a question that the next prompt answers either way, like "Shall I go on?"."""
    return bool(phrases.OFFER.search(question))


def plain(text: str) -> str:
    """One line without bold marks and heading signs, as an entry or a title shows it."""
    line = re.sub(r"\*\*|__(?=\W|\Z)|(?<!\w)__", "", fold(text))
    return re.sub(r"\A(?:#{1,6} |[-*+] )+", "", line).strip()


def prose(text: str) -> str:
    """`text` with an ellipsis in place of each fenced code block; all of it when nothing else is in it."""
    kept = "\n".join(_prose_lines(text, instead="…"))
    return kept if kept.strip(" \n…") else text


def statements(text: str) -> list[str]:
    """Paragraphs and list entries of `text`, each as one line: no code, no headings, no line that only introduces."""
    blocks = (block for block in _blocks(text) if block.kind != "heading" and not block.text.endswith((":", "：")))
    return [block.text for block in blocks if _labelled(block) == (None, "") or _labelled(block)[1]]


def headline(text: str, limit: int = 80) -> str:
    """The first sentence or line of `text` in at most `limit` characters, without stops; empty for no words."""
    for line in _prose_lines(text):
        for sentence in sentences(plain(line.lstrip(" \t>#"))):
            head = sentence.rstrip(" .,:;!-–—…_*。、：；！")
            if not any(char.isalnum() for char in head):
                continue
            if len(head) > limit:
                head = head[: limit - 1]
                space = head.rfind(" ")
                head = (head[:space] if space > limit // 2 else head).rstrip(" .,:;-–—\u200d\ufe0f") + "…"
            return head
    return ""


def sentences(paragraph: str) -> list[str]:
    """The sentences of one paragraph, each with its stop; code spans and common abbreviations do not end one."""
    line = fold(paragraph)
    masked = _CODE_SPAN.sub(lambda found: "x" * len(found.group()), line)
    masked = _ABBREVIATION.sub(lambda found: "x" * len(found.group()), masked)
    parts: list[str] = []
    start = 0
    for stop in _STOP.finditer(masked):
        follows = masked[stop.end() :].lstrip()[:1]
        if stop.group().startswith((".", "…")) and follows.islower() and not _ENDS_WORD.search(masked[: stop.start()]):
            continue
        parts.append(line[start : stop.end()].strip())
        start = stop.end()
    parts.append(line[start:].strip())
    return [part for part in parts if part]


@dataclass(slots=True)
class _Reader:
    """Walks the blocks of one text and gathers what they say."""

    section: Section | None = None
    listed: bool = False
    opener: _Block | None = None
    decisions: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    asks: list[str] = field(default_factory=list)

    def take(self, block: _Block, *, last: bool) -> None:
        """Read one block; `last` is True for the text's last one, where any question is meant for the person."""
        section, rest = _labelled(block)
        if section is not None:
            self._open(section, rest, block)
        elif block.kind == "heading":
            self.section = None
        else:
            self._read(block, last=last)

    def _open(self, section: Section, rest: str, block: _Block) -> None:
        """Enter a named section; `rest` is what its own line already says."""
        item = block.kind == "item"
        self.section, self.listed, self.opener = section, bool(rest), block if item else None
        if rest:
            said = sentences(rest)
            self._add(section, [" ".join(said[:2])] if section is Section.DECISIONS else said)
            # A labelled list entry says all of it itself; a labelled line may be followed by a list.
            self.section = None if item else section

    def _read(self, block: _Block, *, last: bool) -> None:
        """Read a paragraph or list entry inside or outside a named section."""
        paragraph = block.kind == "paragraph"
        if self.listed if paragraph else _follows(self.opener, block):
            self.section = None
        if block.done:
            return
        if self.section is None or (paragraph and block.text.endswith((":", "："))):
            self._sentences(block, last=last)
            return
        self.listed = True
        self._add(self.section, sentences(block.text) if paragraph else [block.text])

    def _add(self, section: Section, entries: list[str]) -> None:
        """Take the entries of a named section, without those that say "none"."""
        target = {Section.STEPS: self.steps, Section.QUESTIONS: self.questions, Section.DECISIONS: self.decisions}
        target[section].extend(entry for entry in entries if not phrases.NOTHING.match(entry))

    def _sentences(self, block: _Block, *, last: bool) -> None:
        """Look at sentences one by one, outside any named section."""
        parts = sentences(block.text)
        for number, part in enumerate(parts):
            part = part[:_LONGEST_SENTENCE]
            section, rest = _labelled(_Block("paragraph", part))
            if section is not None and rest:
                self._add(section, [rest])
            elif part.rstrip("\"')*_”’»」』）").endswith(("?", "？")):
                answer = parts[number + 1] if number + 1 < len(parts) else ""
                meant = last or phrases.TO_PERSON.search(part)
                if meant and not phrases.COURTESY.search(part) and not phrases.RHETORICAL.match(answer):
                    self.asks.append(part)
            elif phrases.DECIDED.search(part) and not phrases.UNDECIDED.search(part):
                self.decisions.append(part)
            elif phrases.STEP.search(part):
                self.steps.append(part)


def _follows(opener: _Block | None, item: _Block) -> bool:
    """True when `item` comes after `opener` in the same list, so that it is no entry below it."""
    if opener is None or item.indent > opener.indent or bool(item.number) is not bool(opener.number):
        return False
    return not item.number or item.number > opener.number


def _labelled(block: _Block) -> tuple[Section | None, str]:
    """The section that a heading, a lead-in line or a `Label: text` opens, and the text that follows on its line."""
    bare = _NUMBERING.sub("", plain(block.text))
    for section, pattern in phrases.LABELS:
        match = pattern.match(bare)
        if match:
            after = bare[match.end() :]
            colon = _AFTER_LABEL.match(after)
            if colon:
                return section, colon.group(1).strip()
            if not after.strip(" .!") or (block.kind == "heading" and len(bare) <= 60):
                return section, ""
    if bare.endswith((":", "：")) and len(bare) <= 80:
        for section, pattern in phrases.LEAD_INS:
            if pattern.search(bare):
                return section, ""
    return None, ""


def _blocks(text: str) -> Iterator[_Block]:
    """Headings, list items and paragraphs of `text`; lines that continue one are joined to it."""
    block: _Block | None = None
    for line in [*_prose_lines(text), ""]:
        opened = _opened(line)
        if opened is not None and block is not None and _continues(block, opened, line):
            block = replace(block, text=f"{block.text} {opened.text}")
            continue
        if block is not None:
            yield replace(block, text=plain(block.text))
        block = opened


def _continues(block: _Block, opened: _Block, line: str) -> bool:
    """True when `line` goes on with the block that is open, instead of opening one of its own."""
    if block.kind == "heading" or opened.kind != "paragraph" or block.text.endswith((":", "：")):
        return False
    if block.kind == "item":
        return line.startswith((" ", "\t"))
    full = block.text.endswith((".", "!", "?", "。", "？", "！"))
    return not (full and _labelled(replace(block, text=block.text[:200]))[0]) and _labelled(opened)[0] is None


def _opened(line: str) -> _Block | None:
    """The block that a line would open; None for a blank or skipped line."""
    if not line.strip() or _SKIPPED.match(line):
        return None
    heading = _HEADING.match(line)
    if heading:
        return _Block("heading", heading.group(1))
    bold = _BOLD_LINE.match(line)
    if bold and "**" not in bold.group(2) and not bold.group(2).endswith((".", "!", "?")):
        return _Block("heading", bold.group(2))
    item = _ITEM.match(line)
    if item and item[4]:
        indent = len(item[1].expandtabs(4))
        return _Block("item", item[4].strip(), (item[3] or "") in ("x", "X"), indent, int(item[2] or 0))
    return _Block("paragraph", line.strip())


def _prose_lines(text: str, instead: str = "") -> Iterator[str]:
    """Lines outside fenced code, without comments and without the reasoning part of a summary."""
    fence = ""
    for line in _DROPPED.sub("", text).splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark.group(1).startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark:
            fence = mark.group(1)
            yield instead
        else:
            yield line


def _entries(found: list[str]) -> tuple[str, ...]:
    """Each entry once, as one bounded line."""
    lines = dict.fromkeys(clip(plain(entry), _ENTRY_BYTES) for entry in found)
    return tuple(line for line in lines if line)[:_MOST_ENTRIES]
