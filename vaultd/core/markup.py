"""Raw text inside a Markdown page: folded to one line, cut by bytes, escaped so that it cannot break structure.

A page is read by people in Obsidian and by programs that look for headings, links, tags and block ids. Text that came
out of a session must show as itself and be none of these. `escape` changes only what could be structure (CommonMark,
wikilinks, embeds, tags, comments, callouts, math blocks, block ids) and `unescape` gives the folded text back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

__all__ = ["clip", "code", "escape", "fold", "size", "squash", "unescape"]

_PUNCTUATION = r"!-/:-@\[-`{-~"
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), " ")
_TICKS = re.compile("`+")
_ESCAPED = re.compile(rf"\\([{_PUNCTUATION}])")

_INLINE = re.compile(
    rf"""
      \\(?=[{_PUNCTUATION}]|\Z)            # a backslash that would escape something
    | `                                    # a backtick without a partner
    | (?<=\[)\[ | (?<=!)\[ | (?<=\])\(     # wikilink or embed, image, link
    | (?<=%)%                              # %% comment %%
    | <(?=[A-Za-z/!?%])                    # tag, comment, processing instruction, template
    | (?<![\w&/])\#(?=\S)(?!\d+(?![\w/-])) # tag; a bare number is an issue, not a tag
    | \$(?=\$) | (?<=\$)\$                 # block of math
    | (?<!\S)\^(?=[\w-]+\Z)                # block id at the end
    """,
    re.VERBOSE,
)

_LEADING = re.compile(
    r"""
      \#{1,6}(?=\s|\Z) | > | [-+*](?=\s|\Z) | \| | ~{3,} | =+(?=\s*\Z) | -+(?=\s*\Z) | (?:[*_-]\ ?){3,}\Z
    | \[[ xX-]\](?=\s|\Z) | \[[^\]]*\]:
    """,
    re.VERBOSE,
)
_LEADING_NUMBER = re.compile(r"\d{1,9}(?=[.)](?:\s|\Z))")


def fold(text: str) -> str:
    """One line of `text`: controls and every kind of white space become single spaces, lone surrogates U+FFFD."""
    return " ".join(_SURROGATES.sub("\ufffd", text).translate(_CONTROLS).split())


def size(text: str) -> int:
    """Length in UTF-8 bytes."""
    return len(text.encode("utf-8", "replace"))


def clip(text: str, limit: int) -> str:
    """`text` in at most `limit` UTF-8 bytes; what was cut is shown by an ellipsis, no character is cut in two."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    if limit < 3:
        return ""
    head = data[: limit - 3].decode("utf-8", "ignore")
    space = head.rfind(" ")
    if space > len(head) * 3 // 4:
        head = head[:space]
    return head.rstrip().rstrip("\u200d\ufe0f") + "…"


def squash(text: str) -> str:
    """Letters and digits of `text` only, case folded: two ways of writing one sentence compare equal."""
    return "".join(c for c in text.casefold() if c.isalnum())


def code(text: str) -> str:
    """`text` as one inline code span whose delimiters cannot be closed from inside; empty for nothing."""
    line = fold(text)
    if not line:
        return ""
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def escape(text: str) -> str:
    """`text` as one line of Markdown that shows as itself: no structure, link, tag, comment or embed can begin in it.

    Balanced code spans stay as they are. `unescape` gives the folded text back.
    """
    out: list[str] = []
    for is_code, chunk in _spans(fold(text), escapes=False):
        out.append(chunk if is_code else _INLINE.sub(lambda found: "\\" + found.group(), chunk))
    line = "".join(out)
    number = _LEADING_NUMBER.match(line)
    if number:
        return f"{number.group()}\\{line[number.end() :]}"
    return "\\" + line if _LEADING.match(line) else line


def unescape(line: str) -> str:
    """The text that `escape` was given (folded)."""
    return "".join(
        chunk if is_code else _ESCAPED.sub(lambda found: found.group(1), chunk)
        for is_code, chunk in _spans(line, escapes=True)
    )


def _spans(text: str, *, escapes: bool) -> Iterator[tuple[bool, str]]:
    """Split a line into (is a code span, chunk); with `escapes`, a backslash keeps a backtick from opening one."""
    runs = [(found.start(), found.end()) for found in _TICKS.finditer(text)]
    of_length: dict[int, list[int]] = {}
    for start, end in runs:
        of_length.setdefault(end - start, []).append(start)
    at = 0
    skip_until = 0
    for start, end in runs:
        if start < skip_until:
            continue
        opens = start
        if escapes and _backslashes(text, start) % 2:
            opens += 1
        length = end - opens
        same = of_length.get(length, ())
        after = bisect_right(same, start)
        if after < len(same):
            close = same[after] + length
            yield False, text[at:opens]
            yield True, text[opens:close]
            at = skip_until = close
    yield False, text[at:]


def _backslashes(text: str, end: int) -> int:
    """How many backslashes stand directly before `end`."""
    at = end
    while at > 0 and text[at - 1] == "\\":
        at -= 1
    return end - at
