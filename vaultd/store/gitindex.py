"""The index of a work tree, changed as git says it may be: by the holder of `index.lock`, and whole.

`git commit` reads the index before it takes the lock, and writes back what it read: what somebody else staged between
the two is lost (git 2.39, and any two of its own commits). So we hold the lock ourselves while a commit is made in a
copy of the index, and put the copy in place afterwards.

| crash after | on disk | what follows |
|---|---|---|
| the lock is made | a lock that nobody holds | removed when it is old |
| the copy is made, or changed | the same, and a copy | the same |
| **the commit** (in the copy) | HEAD ahead of the index | brought up together with the lock's removal |
| the copy is in place | a lock that nobody holds | removed when it is old |
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from vaultd.store import fs

__all__ = ["COPY", "IndexLock"]

COPY = "vaultd-index"
"""The name of the copy, in the work tree's own git folder. git locks it as `vaultd-index.lock`."""


class IndexLock:
    """The lock on the index in the git folder `own`. One that was taken must be released."""

    def __init__(self, own: str) -> None:
        self._index = Path(own, "index")
        self._lock = Path(own, "index.lock")
        self.copy = Path(own, COPY)

    def take(self) -> bool:
        """Take the lock and copy the index; False when somebody else has it."""
        try:
            fs.publish(self._lock, b"", sync=False)
        except FileExistsError:
            return False
        try:
            self._remove_copy()
            with contextlib.suppress(FileNotFoundError):  # before the first commit there is none
                mode = self._index.stat().st_mode
                fs.write_private(self.copy, self._index.read_bytes())
                self.copy.chmod(mode)
        except BaseException:
            self.release()
            raise
        return True

    def put_in_place(self) -> None:
        """Let the copy be the index."""
        fs.replace(self.copy, self._index)

    def release(self) -> None:
        """Let go; what is left of the copy goes, too."""
        self._remove_copy()
        fs.remove(self._lock)

    def _remove_copy(self) -> None:
        for path in (self.copy, self.copy.with_name(f"{COPY}.lock")):
            fs.remove(path)
