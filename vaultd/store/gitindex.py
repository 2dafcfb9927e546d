"""The index of a work tree, changed as git says it may be: by the holder of `index.lock`, and whole.

`git commit` reads the index before it takes the lock, and writes back what it read: what somebody else staged between
the two is lost (git 2.39, and any two of its own commits). So we hold the lock ourselves while a commit is made in a
copy of the index, and put the copy in place afterwards.

| crash after | on disk | what follows |
|---|---|---|
| the lock is made | a lock that nobody holds | removed by the next commit or tidying, see gitlocks.py |
| the copy is made, or changed | the same, and a copy | the same |
| **the commit** (in the copy) | HEAD ahead of the index | brought up together with the lock's removal |
| the copy is in place | a lock that nobody holds | removed |
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from vaultd.store import fs

__all__ = ["IndexLock", "is_ours", "is_ours_here"]

_COPY = "vaultd-index"
"""The name of the copy, in the work tree's own git folder. git locks it as `vaultd-index.lock`."""

_MARK = b"vaultd "
"""How the text of a lock of ours begins; git's own are empty or hold an index."""


def is_ours(lock: Path) -> bool:
    """Whether a lock on an index was taken by vaultd, wherever that runs or ran."""
    return _text(lock).startswith(_MARK)


def is_ours_here(lock: Path) -> bool:
    """The same, and its owner would be seen from here if it lived: same boot, same process namespace."""
    return _text(lock) == _mark() != _MARK


def _mark() -> bytes:
    """What a lock of ours holds: where its owner can be seen."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
        return _MARK + boot + b" " + bytes(Path("/proc/self/ns/pid").readlink()) + b"\n"
    except OSError:
        return _MARK


def _text(lock: Path) -> bytes:
    try:
        return lock.read_bytes()[:200]
    except OSError:
        return b""


class IndexLock:
    """The lock on the index in the git folder `own`. One that was taken must be released.

    Its file stays open while it is held, so that others can see that it has a living owner.
    """

    def __init__(self, own: str) -> None:
        self._index = Path(own, "index")
        self._lock = Path(own, "index.lock")
        self._open: int | None = None
        self.copy = Path(own, _COPY)

    @property
    def stamp(self) -> tuple[int, int, int]:
        """Another one when the index is written; zeros when there is none."""
        try:
            stat = self._index.stat()
        except FileNotFoundError:
            return 0, 0, 0
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    @property
    def orphaned(self) -> bool:
        """Whether a copy was left by an owner that died and whose lock somebody removed."""
        return not os.path.lexists(self._lock) and os.path.lexists(self.copy)

    def take(self) -> bool:
        """Take the lock and copy the index; False when somebody else has it. OSError when it cannot be made."""
        try:
            self._open = os.open(self._lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            return False
        try:
            os.write(self._open, _mark())
            self._remove_copy()
            with contextlib.suppress(FileNotFoundError):  # before the first commit there is none
                # With its time: git compares bytes, too, of files that are no older than their index.
                shutil.copy2(self._index, self.copy)
        except BaseException:
            self.release()
            raise
        return True

    def put_in_place(self) -> bool:
        """Let the copy be the index; False, and nothing is done, when the lock was taken away (a person removed it)."""
        if not self._held:
            return False
        fs.replace(self.copy, self._index)
        return True

    def release(self) -> None:
        """Let go; what is left of the copy goes, too."""
        if self._open is None:
            return
        try:
            if self._held:
                self._remove_copy()
                fs.remove(self._lock)
        finally:
            os.close(self._open)
            self._open = None

    @property
    def _held(self) -> bool:
        """Whether the lock's file is still the one that was made."""
        try:
            return self._open is not None and os.path.samestat(os.fstat(self._open), self._lock.lstat())
        except FileNotFoundError:
            return False

    def _remove_copy(self) -> None:
        for path in (self.copy, self.copy.with_name(f"{_COPY}.lock")):
            fs.remove(path)
