"""The index of a work tree, changed as git says it may be: by the holder of `index.lock`, and whole.

`git commit` reads the index before it takes the lock, and writes back what it read: what somebody else staged between
the two is lost (git 2.39, and any two of its own commits). So we hold the lock ourselves while a commit is made in a
copy of the index, and put the copy in place afterwards.

| crash after | on disk | what follows |
|---|---|---|
| the lock is made | a lock that nobody holds | removed by the next commit or tidying, see gitlocks.py |
| the copy is made, or changed | the same, and a copy | the same |
| **the commit** (in the copy) | HEAD ahead of the index | who takes the lock next finds the copy and brings it up |
| the copy is in place | a lock that nobody holds | removed |

A copy that lies there says that the index may lag behind a commit. It goes only when the index is in order, so that
bringing it up can itself be killed, or fail, at any time.
"""

from __future__ import annotations

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
        self.unsettled = False
        """Whether the index may lag behind a commit: an owner died, or git did. Then the copy outlives the lock."""

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
        """Take the lock, if it is not ours still, and copy the index; False when somebody else has it.

        OSError when it cannot be made.
        """
        if not self._held and not self._make():
            return False
        try:
            self.unsettled = self.unsettled or os.path.lexists(self.copy)
            fs.remove(self._lock_of_copy)
            try:
                # With its time: git compares bytes, too, of files that are no older than their index.
                shutil.copy2(self._index, self.copy)
            except FileNotFoundError:  # before the first commit there is none
                fs.remove(self.copy)
        except BaseException:
            self.release()
            raise
        return True

    def _make(self) -> bool:
        """Make the lock's file."""
        self.release()
        try:
            self._open = os.open(self._lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            return False
        try:
            os.write(self._open, _mark())
        except BaseException:
            self.release()
            raise
        return True

    def put_in_place(self) -> bool:
        """Let the copy be the index; False, and nothing is done, when the lock was taken away (a person removed it)."""
        if not self._held:
            return False
        fs.replace(self.copy, self._index)
        self.unsettled = False
        return True

    def release(self) -> None:
        """Let go; what is left of the copy goes, too, unless it has to say that the index is not in order."""
        if self._open is None:
            return
        try:
            if self._held:
                if not self.unsettled:
                    fs.remove(self._lock_of_copy)
                    fs.remove(self.copy)
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

    @property
    def _lock_of_copy(self) -> Path:
        return self.copy.with_name(f"{_COPY}.lock")
