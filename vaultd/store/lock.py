"""One writer at a time: a lock that dies with the process that holds it."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["Lock"]


class Lock:
    """An flock on a file: held by one process at a time, let go by the system when the process dies.

    The file is made when missing and never removed. Not re-entrant over two `Lock` objects: the second one waits for
    the first, in the same process too. Acquiring an object that already holds is True at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._handle is not None

    @property
    def current(self) -> bool:
        """Whether the lock is held, and on the file that has its name now: a room that was made anew has another."""
        return self._handle is not None and self._is_current(self._handle)

    def acquire(self, blocking: bool) -> bool:
        """Take the lock; False when another holds it and `blocking` is false. OSError when the file cannot be made."""
        import fcntl  # not at the top: publishing must work where there is no fcntl

        while self._handle is None:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))
                if self._is_current(handle):
                    self._handle, handle = handle, -1
            except BlockingIOError:
                return False
            finally:
                if handle >= 0:
                    os.close(handle)
        return True

    def release(self) -> None:
        """Let go; nothing when not held."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.close(handle)

    def __enter__(self) -> Self:
        self.acquire(blocking=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.release()

    def _is_current(self, handle: int) -> bool:
        """Whether the locked file is still the one under the name; a room that was made anew has another."""
        try:
            return os.path.samestat(os.fstat(handle), self.path.stat())
        except FileNotFoundError:
            return False
