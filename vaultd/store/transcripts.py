"""Reads agents' own transcripts: only the end of a named file, only what is newest in a folder. Nothing is written.

A path comes from a payload and may be anything, so what is no regular file is not opened, and every read is bounded.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

__all__ = ["TAIL", "Growth", "newest", "tail"]

TAIL = 4 * 1024 * 1024
"""Bytes of a transcript's end that are read unless told otherwise: outcomes of calls stand near it."""

_LOOKED_AT = 20_000  # files whose time is looked at, newest folders by name first


@dataclass(frozen=True, slots=True)
class Growth:
    """A transcript, when it last grew (epoch seconds), and its bytes."""

    path: Path
    at: float
    size: int = 0


def tail(path: str | Path, limit: int = TAIL) -> bytes:
    """The last `limit` bytes of a regular file (a link to one is followed); b"" for anything else or unreadable."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  # before opening: opening a device can do things
            return b""
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return b""
        return _read(handle, max(0, found.st_size - limit), limit)
    except OSError:
        return b""
    finally:
        os.close(handle)


def newest(folder: Path, pattern: str, limit: int = _LOOKED_AT) -> Growth | None:
    """The file that grew last, and is not empty, among those at `folder`/`pattern`; None when there is none.

    `pattern` has one `*` pattern per level and crosses none. At most `limit` files are looked at, folders that sort
    last first. Links are not followed.
    """
    best: Growth | None = None
    for count, entry in enumerate(_entries(folder, pattern.split("/"))):
        if count >= limit:
            break
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if found.st_size and (best is None or found.st_mtime > best.at):  # an empty one tells of nothing
            best = Growth(Path(entry.path), found.st_mtime, found.st_size)
    return best


def _entries(folder: Path | str, parts: list[str]) -> Iterator[os.DirEntry[str]]:
    """Regular files at a pattern of names, folder by folder."""
    try:
        with os.scandir(folder) as found:
            entries = sorted((e for e in found if fnmatchcase(e.name, parts[0])), key=lambda e: e.name, reverse=True)
    except OSError:
        return
    for entry in entries:
        try:
            if len(parts) > 1 and entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path, parts[1:])
            elif len(parts) == 1 and entry.is_file(follow_symlinks=False):
                yield entry
        except OSError:
            continue


def _read(handle: int, start: int, limit: int) -> bytes:
    """At most `limit` bytes from `start`; the file may grow or shrink meanwhile."""
    chunks: list[bytes] = []
    while limit > 0 and (chunk := os.pread(handle, min(limit, 1 << 20), start)):
        chunks.append(chunk)
        start += len(chunk)
        limit -= len(chunk)
    return b"".join(chunks)
