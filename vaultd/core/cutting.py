"""Cutting redacted text to a number of bytes: no character is torn, and no mark that stands for a secret. Pure."""

from __future__ import annotations

from vaultd.core.secrets import MARK

__all__ = ["bounded", "clipped"]

_NOTE = 48
"""The most bytes that the line about what is missing may have."""
_TOO_SHORT = 64
"""Below this many bytes there is no room for a tail."""


def bounded(text: str, limit: int, tail: float) -> str:
    """At most `limit` bytes, with head, a line that says what is missing (at most 48 bytes), and tail."""
    data = text.encode()
    if len(data) <= limit:
        return text
    if limit < _TOO_SHORT:
        return _head(text, data, limit)
    room = limit - _NOTE
    last = int(room * tail)
    head = _head(text, data, room - last)
    end = data[len(data) - last :].decode("utf-8", "ignore")
    at = len(text) - len(end)
    for back in range(1, len(MARK)):
        if text.startswith(MARK, at - back):
            end = text[at - back + len(MARK) :]
    cut = len(data) - len(head.encode()) - len(end.encode())
    return f"{head}\n[... {cut} bytes cut ...]\n{end}"


def _head(text: str, data: bytes, most: int) -> str:
    """The first characters that fit into `most` bytes, without a piece of a mark at the end."""
    head = data[: max(0, most)].decode("utf-8", "ignore")
    for back in range(1, len(MARK)):
        if text.startswith(MARK, max(0, len(head) - back)) and len(head) >= back:
            return head[:-back]
    return head


def clipped(text: str, limit: int) -> str:
    """At most `limit` bytes, with an ellipsis where something is missing."""
    data = text.encode()
    if len(data) <= limit:
        return text
    return _head(text, data, limit - 3).rstrip(" ") + "…" if limit >= 3 else _head(text, data, limit)
