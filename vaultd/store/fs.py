"""Every durable verb: publish, move, exchange, remove, sync, lock. Raw renames and fsyncs are nowhere else.

Names of unfinished files start with `.vaultd-tmp-`: scans pass over them and `sweep_temps` removes them when they are
old. A verb that fails (disk full, read-only) raises the OSError as it is and leaves no litter where it could still
remove it.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import hashlib
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NewType, Self

__all__ = [
    "SWAP_PREFIX",
    "TEMP_PREFIX",
    "Lock",
    "Revision",
    "exchange",
    "make_folder",
    "move",
    "publish",
    "remove",
    "remove_tree",
    "replace",
    "revision",
    "sweep_temps",
    "sync_filesystem",
    "sync_folder",
    "temp_beside",
    "temps",
    "write_private",
]

TEMP_PREFIX = ".vaultd-tmp-"
"""How the names of unfinished files begin."""

SWAP_PREFIX = TEMP_PREFIX + "swap-"
"""How the names begin that may hold a page which a person saved (see store/swap.py); never removed unseen."""

Revision = NewType("Revision", str)
"""sha256 of a file's bytes, 64 hex digits."""

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_NOT_SUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_LINKS = _NOT_SUPPORTED | {errno.EPERM, errno.EMLINK, errno.EACCES}


def revision(data: bytes) -> Revision:
    """The revision of a file with these bytes."""
    return Revision(hashlib.sha256(data).hexdigest())


def temp_beside(path: Path, data: bytes, *, mode: int = 0o666, sync: bool, prefix: str = TEMP_PREFIX) -> Path:
    """A complete new file in the folder of `path`, under a temp name; `mode` is cut by the umask.

    A crash leaves a temp name, perhaps half written: litter. On an error nothing is left.
    """
    temp = path.with_name(f"{prefix}{secrets.token_hex(8)}")
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            _write_all(handle, data)
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)
    except BaseException:
        remove(temp)
        raise
    return temp


def publish(path: Path, data: bytes, *, sync: bool = True, mode: int = 0o666) -> None:
    """Make a file that must not exist yet, complete or not at all; FileExistsError when the name is taken.

    Crash after: the temp file: litter, nothing published. The link: published under its name, the temp name is a second
    one for the same file (litter). The removal of the temp name: published; without `sync` a power cut may still
    take it, with `sync` only before the folder is synced, that is before this returns.
    """
    temp = temp_beside(path, data, mode=mode, sync=sync)
    try:
        _link(temp, path)
    finally:
        remove(temp)
    if sync:
        sync_folder(path.parent)


def write_private(path: Path, data: bytes, *, sync: bool = False, mode: int = 0o600) -> None:
    """Replace a file that is vaultd's alone, whole; missing parents are made for the owner only. Last writer wins.

    Crash after: the temp file: litter, the old content stands. The rename: the new content stands; without `sync` a
    power cut may bring the old one back.
    """
    make_folder(path.parent, mode=0o700, sync=sync)
    temp = temp_beside(path, data, mode=mode, sync=sync)
    try:
        replace(temp, path)
    except BaseException:
        remove(temp)
        raise
    if sync:
        sync_folder(path.parent)


def replace(src: Path, dst: Path) -> None:
    """One rename that takes over the name `dst`, whatever it holds. For files of ours and checked pages only.

    Atomic: a crash leaves either both names as they were or `dst` holding what was `src`.
    """
    src.replace(dst)


def move(src: Path, dst: Path, *, sync: bool = False) -> None:
    """Rename that refuses a name that is taken: FileExistsError; FileNotFoundError when `src` is gone.

    Atomic on Linux. Where the system cannot refuse by itself: a link, then the removal of the old name; a crash
    between them leaves both names for one file. Of racers for one `src` one wins, the others see
    FileNotFoundError. With `sync` both folders are synced before this returns.
    """
    if not _rename2(src, dst, _RENAME_NOREPLACE):
        _move_in_two_steps(src, dst)
    if sync:
        sync_folder(dst.parent)
        if src.parent != dst.parent:
            sync_folder(src.parent)


def exchange(first: Path, second: Path) -> bool:
    """Let two names change places in one step; False where the system or the file system cannot.

    FileNotFoundError when either is missing. Atomic: a crash leaves both as before or both exchanged.
    """
    return _rename2(first, second, _RENAME_EXCHANGE)


def remove(path: Path, missing_ok: bool = True) -> None:
    """Remove one name; a crash leaves it or not."""
    path.unlink(missing_ok=missing_ok)


def remove_tree(path: Path) -> None:
    """Remove a folder and all in it (a symlink inside is removed, not followed); nothing when it is missing.

    A crash leaves part of it; doing it again ends it. A `path` that is itself a symlink is refused (OSError).
    """
    if os.path.lexists(path):
        shutil.rmtree(path)


def make_folder(path: Path, *, mode: int = 0o777, sync: bool = False) -> None:
    """Make a folder and its missing parents (`mode` is cut by the umask); one that is there is left as it is.

    A crash leaves some of the parents, empty. With `sync` each new folder's name is durable.
    """
    if path.is_dir():
        return
    make_folder(path.parent, mode=mode, sync=sync)
    path.mkdir(mode=mode, exist_ok=True)
    if sync:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable (fsync of the folder); does nothing on Windows, which has no such call."""
    if sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_filesystem(path: Path) -> None:
    """Make everything written to the file system that holds `path` durable, in one call; OSError when that failed.

    Elsewhere than on Linux all file systems are synced, and errors of the disk are not reported by the system.
    """
    syncfs = _libc("syncfs")
    if syncfs is None:
        os.sync()
        return
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if syncfs(handle) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(path))
    finally:
        os.close(handle)


def sweep_temps(folder: Path, older_than_s: float, now: float) -> int:
    """Remove temp files under `folder` whose last change is `older_than_s` seconds before `now` (epoch); how many.

    `.git` and symlinked folders are not entered. Names that may hold a person's text (`SWAP_PREFIX`) are left:
    `swap.rescue` looks at those. Files that vanish meanwhile are no error.
    """
    count = 0
    for temp in temps(folder, older_than_s, now):
        if not temp.name.startswith(SWAP_PREFIX):
            remove(temp)
            count += 1
    return count


def temps(folder: Path, older_than_s: float, now: float) -> Iterator[Path]:
    """Temp files under `folder`, whoever left them, that were last changed `older_than_s` seconds before `now`."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            if not name.startswith(TEMP_PREFIX):
                continue
            path = Path(parent, name)
            try:
                found = path.lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(found.st_mode) and found.st_mtime <= now - older_than_s:
                yield path


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


@functools.cache
def _libc(name: str) -> Any:
    """A function of the C library on Linux; None where there is none."""
    return getattr(ctypes.CDLL(None, use_errno=True), name, None) if sys.platform == "linux" else None


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _link(temp: Path, path: Path) -> None:
    """Give `temp` the second name `path`; on file systems without hard links rename it there instead."""
    try:
        os.link(temp, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if not _rename2(temp, path, _RENAME_NOREPLACE):
            raise


def _rename2(src: Path, dst: Path, flag: int) -> bool:
    """renameat2 with one flag; False where it does not exist or the file system does not know the flag."""
    call = _libc("renameat2")
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(src), _AT_FDCWD, os.fsencode(dst), ctypes.c_uint(flag)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_SUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(src), None, str(dst))


def _move_in_two_steps(src: Path, dst: Path) -> None:
    """`move` without help from the system; a folder is renamed after a look, since folders have no second names."""
    if src.is_dir() and not src.is_symlink():
        if os.path.lexists(dst):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(dst))
        src.rename(dst)
        return
    os.link(src, dst, follow_symlinks=False)
    src.unlink()
