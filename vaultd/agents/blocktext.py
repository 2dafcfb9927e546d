"""A block of ours between two marks in somebody's Markdown file, and whole files of ours. Pure, text to text."""

from __future__ import annotations

import re

__all__ = ["block_in", "own_mark", "with_block", "without_block"]

_BEGIN, _END = "<!-- vaultd:begin -->", "<!-- vaultd:end -->"
_HEADING = "## Memory (vaultd)"
# Its own heading right after the mark, and no second mark before the end: else it is somebody's text about ours.
_BLOCK = re.compile(
    rf"^{_BEGIN}[ \t]*\r?\n{re.escape(_HEADING)}[ \t]*\r?\n(?:(?!{_BEGIN}).)*?^{_END}[ \t]*(?:\r?\n|\Z)",
    re.DOTALL | re.MULTILINE,
)

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)

own_mark = "written by vaultd"
"""Words in the first lines of every file that is wholly ours."""


def block_in(text: str) -> str | None:
    """Our block in a text, its marks included; None when there is none."""
    found = _found(text)
    return found[0] if found else None


def with_block(text: str, content: str) -> str:
    """The text with our block at its end, or with other content in it where it stands."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if not content.startswith(_HEADING + "\n"):
        raise ValueError("our block begins with its heading")
    block = newline.join([_BEGIN, *content.strip("\n").split("\n"), _END]) + newline
    if (there := _found(text)) is not None:
        if there[0].rstrip("\r\n") == block.rstrip("\r\n"):
            return text
        return text[: there.start()] + block + text[there.end() :]
    gap = "" if not text.strip("\ufeff") else newline if text.endswith("\n") else newline * 2
    return text + gap + block


def without_block(text: str) -> str | None:
    """The text without our block and the blank line before it; None when nothing is left."""
    there = _found(text)
    if there is None:
        return text
    before = text[: there.start()]
    for newline in ("\r\n", "\n"):
        if before.endswith(newline * 2):
            before = before[: -len(newline)]
            break
    return (before + text[there.end() :]) if (before + text[there.end() :]).strip("\ufeff") else None


def _found(text: str) -> re.Match[str] | None:
    """Our block: the last that is not inside a code fence."""
    blocks = [found for found in _BLOCK.finditer(text) if len(_FENCE.findall(text[: found.start()])) % 2 == 0]
    return blocks[-1] if blocks else None
