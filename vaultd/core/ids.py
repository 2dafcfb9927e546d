"""Names that are derived, never stored: session ids, handoff ids, event keys, project slugs.

All functions are pure. The shapes are fixed on disk (event files, pages, projects) and must not change.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import NewType

__all__ = [
    "AUTO_HANDOFF",
    "KEY",
    "Key",
    "Sid",
    "handoff_id",
    "key_epoch",
    "project_id",
    "session_id",
    "slug",
]

Key = NewType("Key", str)
"""The dedup key of an event: the name of its file in the inbox."""

Sid = NewType("Sid", str)
"""Ten hex digits that stand for one agent's native session."""

KEY = re.compile(r"(?!.*\.reason\.json\Z)(?:[0-9]{1,12}-[0-9A-Za-z._-]{1,80}|h[0-9a-f]{32})\Z")
"""What an event file may be called: `<epoch seconds>-<uuid or pids>`, or `h<32 hex>` from HTTP.

Not what the reason beside a failed event is called.
"""

AUTO_HANDOFF = re.compile(r"(?P<sid>[0-9a-f]{10})-g(?P<generation>[0-9]{1,6})\Z")
"""The id of an automatic handoff: `<sid>-g<generation>`."""


def session_id(agent: str, native: str) -> Sid:
    """The sid of an agent's native session id: first ten hex digits of sha256(agent NUL native)."""
    digest = hashlib.sha256(f"{agent}\0{native}".encode("utf-8", "surrogateescape")).hexdigest()
    return Sid(digest[:10])


def handoff_id(sid: str, generation: int) -> str:
    """The id of the automatic handoff that a session's given generation leaves."""
    return f"{sid}-g{generation}"


def key_epoch(key: str) -> int:
    """Seconds since 1970 in a key's name; 0 for a key that does not carry them."""
    head = key.partition("-")[0]
    return int(head) if KEY.match(key) and head.isdecimal() else 0


def project_id(normalised_remote: str) -> str:
    """The id of a project known by its remote: `p-` and twelve hex digits of the normalised address."""
    return "p-" + hashlib.sha256(normalised_remote.encode()).hexdigest()[:12]


_SLUG_BYTES = 64
_IGNORABLE = re.compile("[\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # marks that nobody sees


def slug(name: str) -> str:
    """A folder name for a project: NFC, lower case, letters and digits of any script and `._-`, at most 64 bytes.

    Never empty, never starting with a dot, an underscore or a dash: `project` stands for a name with nothing left. What
    is written above, below or beside a letter (vowels of many scripts) belongs to it. Doing it again changes nothing.
    """
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).lower())
    kept, letter = "", False
    for c in text:
        letter = c.isalnum() or (letter and unicodedata.category(c) in ("Mn", "Mc") and not _IGNORABLE.match(c))
        kept += c if letter or c in "._-" else "-"
    kept = re.sub(r"-{2,}", "-", kept).lstrip("._-")[:_SLUG_BYTES]
    while len(kept.encode()) > _SLUG_BYTES:
        kept = kept[:-1]
    return kept.rstrip(".-") or "project"
