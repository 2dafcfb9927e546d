"""Decisions, next steps and open questions that somebody wrote down, found by the words they used.

Nothing is concluded: what comes out is a sentence or a list entry that stands in the text. Sections with a telling
heading ("Next steps", "Decisions", "Open questions" and their like in some languages) give their list entries;
elsewhere a sentence counts only when it says so itself ("we decided ...", "use X instead of Y", "TODO: ..."). Fenced
code, quotes and tables are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from vaultd.core import phrases
from vaultd.core.blocks import Block, blocks, labelled, plain, prose_lines, sentences
from vaultd.core.markup import clip
from vaultd.core.phrases import Section

__all__ = ["Mined", "headline", "is_offer", "mine", "prose", "statements"]

_ENTRY_BYTES = 500
_MOST_ENTRIES = 40
_LONGEST_SENTENCE = 2_000  # characters; keeps patterns quick on text that is no prose


@dataclass(frozen=True, slots=True)
class Mined:
    """What one text says, each entry once, in the order of the text, each at most 500 bytes.

    `open_questions` were named so; `asks` are question sentences meant for the person, in the order of the text.
    """

    decisions: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def mine(text: str) -> Mined:
    """The decisions, next steps and questions that `text` states.

    Remembered for the newest texts: a session that goes on is told anew after each turn.
    """
    reader = _Reader()
    found = list(blocks(text))
    for block, after in zip(found, [*found[1:], None], strict=False):
        reader.take(block, after)
    return Mined(*(_entries(entries) for entries in (reader.decisions, reader.steps, reader.questions, reader.asks)))


def is_offer(question: str) -> bool:
    """True for a question that the next prompt answers either way, like "Shall I go on?"."""
    return bool(phrases.OFFER.search(question))


def prose(text: str) -> str:
    """`text` with an ellipsis in place of each fenced code block; all of it when nothing else is in it."""
    kept = "\n".join(prose_lines(text, instead="…"))
    return kept if kept.strip(" \n…") else text


def statements(text: str) -> list[str]:
    """Paragraphs and list entries of `text`, each as one line: no code, no headings, no line that only introduces."""
    said = (block for block in blocks(text) if block.kind != "heading" and not block.text.endswith((":", "：")))
    return [block.text for block in said if labelled(block) == (None, "") or labelled(block)[1]]


def headline(text: str, limit: int = 80) -> str:
    """The first sentence or line of `text` in at most `limit` characters, without stops; empty for no words."""
    for line in prose_lines(text):
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


@dataclass(slots=True)
class _Reader:
    """Walks the blocks of one text and gathers what they say."""

    section: Section | None = None
    listed: bool = False
    opener: Block | None = None
    decisions: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    asks: list[str] = field(default_factory=list)

    def take(self, block: Block, after: Block | None) -> None:
        """Read one block; `after` is the next one, None for the last, where any question is meant for the person."""
        section, rest = labelled(block)
        if section is not None:
            self._open(section, rest, block)
        elif block.kind == "heading":
            self.section = None
        else:
            self._read(block, after)

    def _open(self, section: Section, rest: str, block: Block) -> None:
        """Enter a named section; `rest` is what its own line already says."""
        item = block.kind == "item"
        self.section, self.listed, self.opener = section, bool(rest), block if item else None
        if rest:
            said = sentences(rest)
            self._add(section, [" ".join(said[:2])] if section is Section.DECISIONS else said)
            # A labelled list entry says all of it itself; a labelled line may be followed by a list.
            self.section = None if item else section

    def _read(self, block: Block, after: Block | None) -> None:
        """Read a paragraph or list entry inside or outside a named section."""
        paragraph = block.kind == "paragraph"
        if self.listed if paragraph else _follows(self.opener, block):
            self.section = None
        if block.done:
            return
        if self.section is None or (paragraph and block.text.endswith((":", "："))):
            self._sentences(block, after)
            return
        self.listed = True
        self._add(self.section, sentences(block.text) if paragraph else [block.text])

    def _add(self, section: Section, entries: list[str]) -> None:
        """Take the entries of a named section, without those that say "none"."""
        target = {Section.STEPS: self.steps, Section.QUESTIONS: self.questions, Section.DECISIONS: self.decisions}
        for entry in entries:
            if not phrases.NOTHING.match(entry):
                asks = section is Section.STEPS and _is_question(entry)
                (self.questions if asks else target[section]).append(entry)

    def _sentences(self, block: Block, after: Block | None) -> None:
        """Look at sentences one by one, outside any named section."""
        parts = sentences(block.text)
        for number, part in enumerate(parts):
            part = part[:_LONGEST_SENTENCE]
            section, rest = labelled(Block("paragraph", part))
            if section is not None and rest:
                self._add(section, [rest])
            elif _is_question(part):
                if _is_meant(part, parts[number + 1 :], after):
                    self.asks.append(part)
            elif phrases.DECIDED.search(part) and not phrases.UNDECIDED.search(part):
                self.decisions.append(part)
            elif phrases.STEP.search(part):
                self.steps.append(part)


def _is_question(sentence: str) -> bool:
    """True when it ends in a question mark, quotes and emphasis aside."""
    return sentence.rstrip("\"')*_”’»」』）").endswith(("?", "？"))


def _is_meant(question: str, rest: Sequence[str], after: Block | None) -> bool:
    """True when a question is for the person: it ends the text, speaks to somebody, or nothing answers it.

    `rest` are the sentences behind it in its paragraph, `after` is the next block.
    """
    if phrases.COURTESY.search(question) or (rest and phrases.RHETORICAL.match(rest[0])):
        return False
    if after is None or phrases.TO_PERSON.search(question):
        return True
    return not rest and after.kind != "item" and question.count(" ") >= 3 and bool(phrases.ASKING.search(question))


def _follows(opener: Block | None, item: Block) -> bool:
    """True when `item` comes after `opener` in the same list, so that it is no entry below it."""
    if opener is None or item.indent > opener.indent or bool(item.number) is not bool(opener.number):
        return False
    return not item.number or item.number > opener.number


def _entries(found: list[str]) -> tuple[str, ...]:
    """Each entry once, as one bounded line."""
    lines = dict.fromkeys(clip(plain(entry), _ENTRY_BYTES) for entry in found)
    return tuple(line for line in lines if line)[:_MOST_ENTRIES]
