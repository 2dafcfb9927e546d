"""Files on their way into or out of a page's place, and how they are named until that is settled.

A name is `.vaultd-tmp-swap-<revision>-<revision>-<page>-<random>`: the text under it may be dropped when it has one of
the two revisions (first 16 digits): what the page held before, and what was written. Any other text is a person's.
`<page>` is the beginning of the sha256 of the page's name, which itself may be too long to be part of another.
"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from pathlib import Path

from vaultd.store import fs
from vaultd.store.fs import Revision

__all__ = [
    "PIN",
    "Retired",
    "age",
    "inode",
    "mark",
    "marks_of",
    "open_plain",
    "prepare",
    "put_under",
    "read_all",
    "short",
]

PIN = os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""How to hold a file so that its inode number stays its own, without counting as one who has it open (Linux)."""


@dataclass(frozen=True, slots=True)
class Retired:
    """A file that was taken out of `target`: `temp` names it, `handle` is open on it; `known` texts may be dropped."""

    temp: Path
    handle: int
    target: Path
    known: frozenset[str]


def short(revision: Revision) -> str:
    """Enough of a revision to know a text by, short enough for file names."""
    return revision[:16]


def mark(page: Path) -> str:
    """What stands for a page's name in the names of its temp files."""
    return short(fs.revision(os.fsencode(page.name)))


def marks_of(temp: Path) -> tuple[str, str, str]:
    """What is in the name: the revision before, the revision written (both shortened), and the mark of the page."""
    before, _, rest = temp.name.removeprefix(fs.SWAP_PREFIX).partition("-")
    written, _, rest = rest.partition("-")
    return before, written, rest.partition("-")[0]


def open_plain(path: Path) -> int:
    """A descriptor for reading; a symlink is refused (OSError)."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def read_all(handle: int) -> bytes:
    """All bytes of an open file, whatever was read of it before."""
    chunks, offset = [], 0
    while chunk := os.pread(handle, 1 << 20, offset):
        chunks.append(chunk)
        offset += len(chunk)
    return b"".join(chunks)


def inode(path: Path) -> int:
    """The inode that the name stands for."""
    return path.lstat().st_ino


def age(temp: Path, handle: int) -> float:
    """Seconds from the last change of the open file to the making of `temp`, both by the file system's clock."""
    return temp.lstat().st_mtime - os.fstat(handle).st_mtime


def prepare(path: Path, data: bytes, expected: Revision, handle: int) -> Path:
    """The new file for `path`, synced, with the mode, owner and attributes of the old one (`handle`) as far as we may.

    It gets the name that may hold a person's text only when it is complete, so that a torn one is never taken for such.
    On an error nothing is left.
    """
    old = os.fstat(handle)
    temp = fs.temp_beside(path, data, mode=0o600, sync=False)
    try:
        with contextlib.suppress(PermissionError):  # another user's page: it becomes ours
            os.chown(temp, old.st_uid, old.st_gid)
        temp.chmod(old.st_mode & 0o7777)
        for name in os.listxattr(handle) if hasattr(os, "listxattr") else ():
            with contextlib.suppress(OSError):  # one that only the system sets
                os.setxattr(temp, name, os.getxattr(handle, name))
        fs.sync_file(temp)
        marks = f"{short(expected)}-{short(fs.revision(data))}-{mark(path)}"
        ready = temp.with_name(f"{fs.SWAP_PREFIX}{marks}-{temp.name.removeprefix(fs.TEMP_PREFIX)}")
        fs.replace(temp, ready)
    except BaseException:
        fs.remove(temp)
        raise
    return ready


def put_under(hand: Path, target: Path) -> bool:
    """Put `hand` under the name `target`; whether something came out, which `hand` names then.

    A missing target is no obstacle: an editor may have moved it aside, as vim does before it writes the new text.
    """
    while True:
        try:
            if not fs.exchange(hand, target):
                raise OSError(errno.ENOTSUP, "files cannot be exchanged here", str(target))
            return True
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                fs.move(hand, target)
                return False
